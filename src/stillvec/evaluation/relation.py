"""Relation similarity: how well a pair of words illustrates a relation (SemEval-2012 task 2, Jurgens et al. 2012).

    value of a pair (x, y) = mean over the relation's prototypes (x*, y*) of cos(y - x, y* - x*), all vectors normalized

Files: `analogy/*.csv` with the columns type, word1, word2, word3, target if all types are those of SemEval-2012 (`1a`
to `10j`): word1 and word2 are a prototype, word3 and target the pair. The metric is the mean over relations of
Spearman's ρ between these values and human ratings: `spearman` if the file has a column `score`. The table of
word-benchmarks has no ratings but lists the pairs of a relation from best to worst; then their order replaces the
ratings, without ties, and the metric is `spearman-order`. MaxDiff is not computed: it needs the original questions.
Relations with fewer than two scored pairs, or without variance, are left out of the mean. Interval: percentile
bootstrap over the pairs of each relation.

A pair is covered if both its words and at least one prototype are; OOV prototypes are left out unless the policy gives
them a vector.
"""

import math
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import DatasetError
from stillvec.evaluation.analogy import is_relation_table, table
from stillvec.evaluation.intervals import Estimate, Floats, Resampling, Rows, percentiles, spearman
from stillvec.evaluation.item_files import make_items
from stillvec.evaluation.tasks import Answers, Items, Task
from stillvec.files.path_names import files_in
from stillvec.heads.lookup import Lookup
from stillvec.numerics import cosines, unit_rows

_ORDER = "order"  # the last text of an item whose gold value is only a rank


@dataclass(frozen=True)
class Relation(Task):
    max_difference: ClassVar[float] = 2.0

    def find(self, folder: Path) -> list[Path]:
        return [path for path in files_in(folder / "analogy", (".csv",)) if is_relation_table(path)]

    def read(self, path: Path) -> Items:
        """One item per pair: its words, then those of the prototypes; gold is the rating, else minus the rank."""
        prototypes: dict[str, dict[tuple[str, str], None]] = {}
        pairs: dict[tuple[str, str, str], float | None] = {}
        for line, section, (a, b, c, d), score in table(path):
            prototypes.setdefault(section, {})[a, b] = None
            pairs[section, c, d] = _parse_rating(path, line, score)
        rated = all(score is not None for score in pairs.values())
        words = {section: tuple(chain.from_iterable(pairs_of)) for section, pairs_of in prototypes.items()}
        texts = [(c, d, *words[section], "score" if rated else _ORDER) for section, c, d in pairs]
        gold = [score if rated and score is not None else -place for place, score in enumerate(pairs.values())]
        return make_items(path, "a type and four words", texts, gold, [section for section, _, _ in pairs])

    def answer(self, lookup: Lookup, items: Items) -> Answers:
        known = lookup.rows([word for words in items.texts for word in words[:2]]).reshape(-1, 2)
        values = np.zeros(len(items))
        covered = np.asarray((known >= 0).all(axis=1))
        offsets = _offsets(lookup, known)
        for members in _sections(items, np.arange(len(items))):
            prototypes = lookup.rows(items.texts[members[0]][2:-1]).reshape(-1, 2)
            whole = (prototypes >= 0).all(axis=1)
            covered[members] &= whole.any()
            used = prototypes[whole] if whole.any() or lookup.oov == "skip" else prototypes
            for prototype in _offsets(lookup, used):
                values[members] += cosines(offsets[members], np.tile(prototype, (len(members), 1))) / len(used)
        return Answers(covered, {_metric(items): values})

    def score(self, items: Items, answers: Answers, chosen: Rows, resampling: Resampling) -> dict[str, Estimate]:
        metric = _metric(items)
        values: list[Floats] = []
        resampled: list[Floats] = []
        for stream, members in enumerate(_sections(items, chosen)):
            gold, predicted = items.gold[members], answers.values[metric][members]
            value = spearman(np.ones((1, len(members))), gold, predicted)
            if len(members) > 1 and np.isfinite(value[0]):
                blocks = [spearman(weights, gold, predicted) for weights in resampling.weights(len(members), stream)]
                values.append(value)
                resampled.append(np.concatenate([np.zeros(0), *blocks]))
        if not values:
            return {metric: Estimate(np.nan, np.nan, np.nan)}
        # relations without variance in a resample are left out of its mean
        known = np.isfinite(np.array(resampled))
        means = np.where(known, resampled, 0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
        return {metric: Estimate(float(np.mean(values)), *percentiles([means]))}


def _offsets(lookup: Lookup, pairs: Rows) -> NDArray[np.float32]:
    """The second word of each pair minus the first (n, dim)."""
    return np.asarray(unit_rows(lookup.take(pairs[:, 1])) - unit_rows(lookup.take(pairs[:, 0])), np.float32)


def _sections(items: Items, chosen: Rows) -> list[Rows]:
    """The chosen items of each relation, in the order of the file."""
    sections: dict[str, list[int]] = {}
    for at in chosen.tolist():
        sections.setdefault(items.sections[at], []).append(at)
    return [np.array(members, np.int64) for members in sections.values()]


def _metric(items: Items) -> str:
    return "spearman-order" if items.texts[0][-1] == _ORDER else "spearman"


def _parse_rating(path: Path, line: int, text: str | None) -> float | None:
    if text is None:
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise DatasetError.expected("a finite number", repr(text), where="score", path=path, line=line)
    return value
