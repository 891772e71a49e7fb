"""WEAT, the word embedding association test: do two lists of words lean to two others? (Caliskan et al. 2017.)

    s(w) = mean over a in A of cos(w, a) - mean over b in B of cos(w, b)
    effect size d = (mean of s over X - mean of s over Y) / standard deviation of s over X and Y

Every `bias/*.toml` or `*.json` with the lists target_x, target_y, attribute_a and attribute_b, which the user gives.
`effect` is d, between -2 and 2, with a bootstrap over the words of X and of Y. `p` is how often a division of X and Y
together into two lists of these sizes is as far apart as X and Y, or farther: of all divisions where there are at
most `divisions`, else of so many that are drawn (seed 0), X and Y themselves among them. Then its bounds are
Wilson's; an exact p has none.

An item is a word of a list. Unknown words are left out, unless the policy fills them, and named in a warning. Without
resamples there is no test, and so no p.
"""

from __future__ import annotations

import json
import math
import tomllib
import warnings
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import DatasetError, StillvecWarning
from stillvec.evaluation.dataset_files import files_in, lines
from stillvec.evaluation.intervals import Estimate, Floats, Resampling, percentiles, wilson
from stillvec.evaluation.lookup import Lookup, unit
from stillvec.evaluation.tasks import Answers, Items, Task
from stillvec.files import inner_suffix

LISTS = ("target_x", "target_y", "attribute_a", "attribute_b")
_NONE = Estimate(np.nan, np.nan, np.nan)


@dataclass(frozen=True)
class Bias(Task):
    divisions: int = 20_000  # all of two lists of eight are 12,870

    ordered: ClassVar[bool] = False
    scale: ClassVar[int] = 1

    def find(self, folder: Path) -> list[Path]:
        return files_in(folder / "bias", (".toml", ".json"))

    def read(self, path: Path) -> Items:
        """An item a word; gold is the number of its list."""
        held = _document(path)
        for name in LISTS:
            words = held.get(name)
            if not isinstance(words, list) or len(words) < 2 or not all(isinstance(w, str) and w for w in words):
                came = "none" if words is None else repr(words)[:60]
                raise DatasetError(f"{path}:1: a list {name} of two words or more is wanted, and {came} came.")
        pairs = [(word, number) for number, name in enumerate(LISTS) for word in held[name]]
        return Items(tuple((word,) for word, _ in pairs), np.array([number for _, number in pairs], np.float64))

    def answer(self, lookup: Lookup, items: Items) -> Answers:
        words = [word for (word,) in items.texts]
        rows = lookup.rows(words)
        covered = rows >= 0
        if not covered.all():
            unknown = [word for word, known in zip(words, covered, strict=True) if not known]
            told = (
                f"The vectors do not know {len(unknown)} of {len(words)} words of a test of bias: {', '.join(unknown)}."
            )
            warnings.warn(told, StillvecWarning, stacklevel=2)
        used = np.flatnonzero(covered if lookup.oov == "skip" else covered | True)
        return self.narrow(items, Answers(covered, {"units": unit(lookup.take(rows))}), used)

    def narrow(self, items: Items, answers: Answers, chosen: NDArray[np.int64]) -> Answers:
        """Let all words lean to the chosen attributes and no others."""
        units = answers.values["units"]  # (n, dim)
        points = units.astype(np.float64)
        leaning = np.zeros(len(items))
        for attribute, sign in ((2, 1), (3, -1)):
            those = points[chosen[items.gold[chosen] == attribute]]
            leaning += sign * (points @ those.mean(axis=0)) if len(those) else np.nan
        return Answers(answers.covered, {"effect": leaning, "units": units})

    def score(
        self, items: Items, answers: Answers, chosen: NDArray[np.int64], resampling: Resampling
    ) -> dict[str, Estimate]:
        x, y = (answers.values["effect"][chosen[items.gold[chosen] == target]] for target in (0, 1))
        both = np.concatenate([x, y])
        if len(x) < 2 or len(y) < 2 or not np.isfinite(both).all():
            return dict.fromkeys(("effect", "p") if resampling.resamples else ("effect",), _NONE)
        one = _effects(np.ones((1, len(x))), np.ones((1, len(y))), x, y)
        pairs = zip(resampling.weights(len(x), 0), resampling.weights(len(y), 1), strict=False)
        drawn = [_effects(a[: len(b)], b[: len(a)], x, y) for a, b in pairs]
        found = {"effect": Estimate(float(one[0]), *percentiles(drawn))}
        return found | {"p": self._p(both, len(x))} if resampling.resamples else found

    def _p(self, leaning: Floats, size: int) -> Estimate:
        """How often `size` of the words lean as much as the first `size` of them do."""
        n = len(leaning)
        observed = leaning[:size].sum() - 1e-12
        if math.comb(n, size) <= self.divisions:
            every = np.array([*combinations(range(n), size)])
            share = float((leaning[every].sum(axis=1) >= observed).mean())
            return Estimate(share, share, share)
        keys = np.random.default_rng(0).random((self.divisions - 1, n))
        some = np.argpartition(keys, size - 1, axis=1)[:, :size]
        return wilson(1 + int((leaning[some].sum(axis=1) >= observed).sum()), self.divisions)


def _effects(of_x: Floats, of_y: Floats, x: Floats, y: Floats) -> Floats:
    """d in each resample (R,), from how often each word of X and of Y was drawn; NaN where nothing varies."""
    weights, both = np.concatenate([of_x, of_y], axis=1), np.concatenate([x, y])
    n = weights.sum(axis=1)
    means = weights @ both / n
    squares = weights @ both**2 / n - means**2
    deviation = np.sqrt(np.maximum(squares, 0) * n / (n - 1))  # of a sample, as in the paper's code
    apart = of_x @ x / of_x.sum(axis=1) - of_y @ y / of_y.sum(axis=1)
    varies = squares > 1e-18
    return np.asarray(np.divide(apart, deviation, out=np.full(len(n), np.nan), where=varies))


def _document(path: Path) -> dict[str, Any]:
    text = "\n".join(line for _, line in lines(path))
    try:
        held = json.loads(text) if inner_suffix(path) == ".json" else tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        line = getattr(error, "lineno", 1)
        raise DatasetError(f"{path}:{line}: {path.suffix[1:].upper()} is wanted, and this is none: {error}.") from None
    if not isinstance(held, dict):
        raise DatasetError(f"{path}:1: the lists {', '.join(LISTS)} are wanted, and {type(held).__name__} came.")
    return held
