"""WEAT, the word embedding association test of two lists of targets with two of attributes (Caliskan et al. 2017).

    s(w) = mean over a in A of cos(w, a) - mean over b in B of cos(w, b)
    effect size d = (mean of s over X - mean of s over Y) / standard deviation of s over X and Y

Files: `bias/*.toml` or `*.json` with the lists target_x, target_y, attribute_a and attribute_b. `effect` is d, between
-2 and 2, with a bootstrap over the words of X and of Y. `p` is from a one-sided permutation test: exact if there are at
most `divisions` divisions of X and Y into lists of these sizes, else estimated from that many (seed 0, the observed
division included) with Wilson's interval.

An item is a word of a list. OOV words are named in a warning and left out, unless the policy gives them a vector.
Without resamples there is no test, and no p.
"""

import json
import math
import tomllib
import warnings
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from stillvec.errors import DatasetError, StillvecWarning
from stillvec.evaluation.intervals import Estimate, Floats, Resampling, Rows, percentiles, wilson
from stillvec.evaluation.tasks import Answers, Items, Task
from stillvec.files import inner_suffix
from stillvec.heads.dataset_files import lines
from stillvec.heads.lookup import Lookup
from stillvec.numerics import unit_rows

LISTS = ("target_x", "target_y", "attribute_a", "attribute_b")
_NONE = Estimate(np.nan, np.nan, np.nan)


@dataclass(frozen=True)
class Bias(Task):
    divisions: int = 20_000  # two lists of eight have 12,870

    files: ClassVar[tuple[str, ...]] = ("bias", ".toml", ".json")
    ordered: ClassVar[bool] = False
    scale: ClassVar[int] = 1

    def read(self, path: Path) -> Items:
        """One item per word; gold is the number of its list."""
        lists = _read_lists(path)
        for name in LISTS:
            words = lists.get(name)
            if not isinstance(words, list) or len(words) < 2 or not all(isinstance(w, str) and w for w in words):
                got = "none" if words is None else repr(words)[:60]
                raise DatasetError.expected("two words or more", got, where=name, path=path, line=1)
        pairs = [(word, number) for number, name in enumerate(LISTS) for word in lists[name]]
        return Items(tuple((word,) for word, _ in pairs), np.array([number for _, number in pairs], np.float64))

    def answer(self, lookup: Lookup, items: Items) -> Answers:
        words = [word for (word,) in items.texts]
        rows = lookup.rows(words)
        covered = rows >= 0
        if not covered.all():
            unknown = [word for word, known in zip(words, covered, strict=True) if not known]
            what = f"{len(unknown)} of {len(words)} words of a bias test are out of vocabulary"
            warnings.warn(f"{what}: {', '.join(unknown)}.", StillvecWarning, stacklevel=2)
        units = unit_rows(lookup.take(rows))
        return self.narrow(items, Answers(covered, {"units": units}), lookup.select(covered))

    def narrow(self, items: Items, answers: Answers, chosen: Rows) -> Answers:
        """Compute the association of all words with the chosen attributes only."""
        units = answers.values["units"]  # (n, dim)
        points = units.astype(np.float64)
        association = np.zeros(len(items))
        for attribute, sign in ((2, 1), (3, -1)):
            members = points[chosen[items.gold[chosen] == attribute]]
            association += sign * (points @ members.mean(axis=0)) if len(members) else np.nan
        return Answers(answers.covered, {"effect": association, "units": units})

    def score(self, items: Items, answers: Answers, chosen: Rows, resampling: Resampling) -> dict[str, Estimate]:
        x, y = (answers.values["effect"][chosen[items.gold[chosen] == target]] for target in (0, 1))
        both = np.concatenate([x, y])
        if len(x) < 2 or len(y) < 2 or not np.isfinite(both).all():
            return dict.fromkeys(("effect", "p") if resampling.resamples else ("effect",), _NONE)
        (effect,) = _effects(np.ones((1, len(x))), np.ones((1, len(y))), x, y)
        pairs = zip(resampling.weights(len(x), 0), resampling.weights(len(y), 1), strict=False)
        resampled = [_effects(a[: len(b)], b[: len(a)], x, y) for a, b in pairs]
        estimates = {"effect": Estimate(float(effect), *percentiles(resampled))}
        return estimates | {"p": self._p(both, len(x))} if resampling.resamples else estimates

    def _p(self, association: Floats, n_first: int) -> Estimate:
        """The share of divisions whose first list is associated as much as the first `n_first` words, or more."""
        n = len(association)
        observed = association[:n_first].sum() - 1e-12
        if math.comb(n, n_first) <= self.divisions:
            divisions = np.array([*combinations(range(n), n_first)])
            share = float((association[divisions].sum(axis=1) >= observed).mean())
            return Estimate(share, share, share)
        keys = np.random.default_rng(0).random((self.divisions - 1, n))
        divisions = np.argpartition(keys, n_first - 1, axis=1)[:, :n_first]
        return wilson(1 + int((association[divisions].sum(axis=1) >= observed).sum()), self.divisions)


def _effects(of_x: Floats, of_y: Floats, x: Floats, y: Floats) -> Floats:
    """d in each resample (R,), given how often each word of X and of Y was drawn; NaN where nothing varies."""
    weights, both = np.concatenate([of_x, of_y], axis=1), np.concatenate([x, y])
    n = weights.sum(axis=1)
    means = weights @ both / n
    squares = weights @ both**2 / n - means**2
    deviation = np.sqrt(np.maximum(squares, 0) * n / (n - 1))  # sample deviation, as in the paper's code
    apart = of_x @ x / of_x.sum(axis=1) - of_y @ y / of_y.sum(axis=1)
    varies = squares > 1e-18
    return np.asarray(np.divide(apart, deviation, out=np.full(len(n), np.nan), where=varies))


def _read_lists(path: Path) -> dict[str, Any]:
    text = "\n".join(line for _, line in lines(path))
    kind = inner_suffix(path)[1:].upper()
    try:
        lists = json.loads(text) if kind == "JSON" else tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        line = getattr(error, "lineno", 1)
        raise DatasetError.expected(f"valid {kind}", f"an error: {error}", path=path, line=line) from None
    if not isinstance(lists, dict):
        raise DatasetError.expected(f"the lists {', '.join(LISTS)}", type(lists).__name__, path=path, line=1)
    return lists
