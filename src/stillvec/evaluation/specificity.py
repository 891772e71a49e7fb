"""Specificity: is a text with a long vector more specific than one with a short vector? (Chen & Gimpel 2020.)

The score of a text is the norm of the sum or of the mean of its words (states, for a teacher). Both are to be compared
with two scores that need no vectors:

    information    sum over words of log(rank), the rank by frequency in the vocabulary; OOV words have the last rank
    length         number of words
    norm-sum       norm of the sum of the known words
    norm-mean      norm of their mean
    entropy        of the Gaussian of the text, negated; of vectors by `train --method word_operators` only

The metric of each is Spearman's ρ with the ratings; `-given-length` the partial correlation, given the length. If all
ratings are 0 or 1 (News), also

    auc-           area under the ROC curve
    accuracy-      with the threshold that is best on the training texts; `-given-length`: with that of the training
                   texts that have one more word, as in the paper, if these have both labels; that of `length` is
                   then the majority label of these texts

A teacher has no ranks and so no information. Files: `specificity/*.tsv` with a text, a tab and a number per line;
`NAME.train.tsv` for the threshold. A text is covered if one of its words is known. Interval: percentile bootstrap over
texts, Wilson's for accuracies.
"""

from collections.abc import Generator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np

from stillvec.errors import DatasetError
from stillvec.evaluation.intervals import (
    Estimate,
    Floats,
    Resampling,
    Rows,
    mean_estimate,
    partial_spearman,
    ranks,
    spearman,
)
from stillvec.evaluation.supervised import LearntItems, Measure, estimates, ratio
from stillvec.evaluation.tasks import Answers, ContextualTask, Items
from stillvec.heads.dataset_files import lines
from stillvec.heads.lookup import Lookup
from stillvec.heads.sequence_batches import Representation
from stillvec.heads.splits import part_of, parts_beside, whole_datasets
from stillvec.numerics import compose_operators
from stillvec.vectors import WordVectors
from stillvec.vocabulary import Vocabulary

_WHAT = "a text, a tab and a number"


@dataclass(frozen=True)
class Specificity(ContextualTask):
    item_unit: ClassVar[Literal["word", "text"]] = "text"
    files: ClassVar[tuple[str, ...]] = ("specificity", ".tsv")
    max_difference: ClassVar[float] = 2.0
    controls: ClassVar[tuple[str, ...]] = ("information", "length")
    summary: ClassVar[str] = "correlations and accuracies"

    def find(self, folder: Path) -> list[Path]:
        return whole_datasets(folder / self.files[0], self.files[1:])

    def read(self, path: Path) -> LearntItems:
        texts, gold = _read_rated(path)
        more: list[str] = []
        labels = gold
        if part_of(path)[1] == "test" and {*gold} <= {0.0, 1.0}:
            more, ratings = _read_rated(parts_beside(path)["train"])
            labels = gold + ratings
        items = tuple((text,) for text in texts), np.array(gold), (), tuple((text,) for text in more)
        return LearntItems(*items, tuple(labels))

    def answer_steps(self, lookup: Representation, items: Items) -> Generator[float, None, Answers]:
        assert isinstance(items, LearntItems)
        texts, n = [text for (text,) in items.all_texts], len(items)
        sequences = yield from lookup.read_texts_steps(texts)
        length = np.array([len(text.split()) for text in texts], np.float64)
        sums = np.linalg.norm(sequences.sums().astype(np.float64), axis=1)
        scores = {"length": length, "norm-sum": sums, "norm-mean": sums / np.maximum(sequences.known, 1)}
        if isinstance(lookup, Lookup):
            scores = {"information": measure_information(lookup, texts)} | scores
            if is_trained_by(lookup.vectors, "word_operators"):
                rows, text = lookup.text_rows(texts)
                known = rows >= 0
                gaussians = compose_operators(lookup.vectors.matrix, rows[known], text[known], len(texts))
                scores["entropy"] = -gaussians.entropy()
        values = {name: score[:n] for name, score in scores.items()}
        if len(texts) > n:
            gold = np.array(items.labels)
            for name, score in scores.items():
                threshold = best_threshold(score[n:], gold[n:])
                values[f"accuracy-{name}"] = (score[:n] >= threshold) == (gold[:n] == 1)
                given = score if name != "length" else np.zeros(len(texts))  # which is the majority label
                values[f"given-length:{name}"] = _judge_by_length(given, length, gold, n)
        return Answers(sequences.known[:n] > 0, values)

    def score(self, items: Items, answers: Answers, chosen: Rows, resampling: Resampling) -> dict[str, Estimate]:
        values = {name: array[chosen] for name, array in answers.values.items()}
        gold, n, scores = items.gold[chosen], len(chosen), dict[str, Estimate]()
        names = [name for name in ("information", "length", "norm-sum", "norm-mean", "entropy") if name in values]
        for name in names:
            scores[name] = resampling.correlation(spearman, gold, values[name])
        measures: dict[str, Measure] = {}
        for name in (name for name in names if name != "length"):
            given = partial(partial_spearman, x=values[name], y=gold, given=values["length"])
            measures[f"{name}-given-length"] = given
        for name in names if f"accuracy-{names[-1]}" in values else ():
            scores[f"accuracy-{name}"] = mean_estimate(values[f"accuracy-{name}"], resampling)
            measures[f"auc-{name}"] = partial(_auc, score=values[name], gold=gold)
            right = values[f"given-length:{name}"]
            measures[f"accuracy-{name}-given-length"] = ratio((right == 1).astype(float), np.isfinite(right))
        return scores | estimates(measures, n, resampling)


def is_trained_by(vectors: WordVectors, method: str) -> bool:
    """Whether a method made these vectors and no step changed them since."""
    return vectors.provenance.get("method") == method and not vectors.provenance.get("refined")


def measure_information(lookup: Lookup, texts: list[str]) -> Floats:
    """The sum of the logarithms of the ranks of the words of each text (n,)."""
    rows, text = lookup.text_rows(texts)
    rank = frequency_ranks(lookup.vectors.vocabulary)
    of_words = np.where(rows >= 0, rank[np.maximum(rows, 0)], len(rank))
    return np.bincount(text, np.log(of_words), minlength=len(texts)).astype(np.float64)


def frequency_ranks(vocabulary: Vocabulary) -> Rows:
    """The rank of each word, from 1; a vocabulary without counts is in the order of frequency."""
    rank = np.empty(len(vocabulary), np.int64)
    rank[np.argsort(-vocabulary.counts.astype(np.float64), kind="stable")] = np.arange(1, len(vocabulary) + 1)
    return rank


def best_threshold(score: Floats, gold: Floats) -> float:
    """The score from which on texts are called specific so that most are right; the lowest of equals."""
    values = np.unique(score)
    below = np.searchsorted(values, score)
    errors = np.bincount(below, gold == 1, minlength=len(values)), np.bincount(below, gold == 0, minlength=len(values))
    # from the value at a place on: all specific texts below it are wrong, and all general ones from it on
    wrong = np.append(0, np.cumsum(errors[0])) + np.append(np.cumsum(errors[1][::-1])[::-1], 0)
    return float(np.append(values, np.inf)[int(np.argmin(wrong))])


def _judge_by_length(score: Floats, length: Floats, gold: Floats, n: int) -> Floats:
    """1 or 0 for each of the `n` items (n,): right with the threshold of the training texts with one more word.

    NaN if these do not have both labels.
    """
    right = np.full(n, np.nan)
    for words in np.unique(length[:n]):
        longer = n + np.flatnonzero(length[n:] == words + 1)
        if len(np.unique(gold[longer])) == 2:
            tested = np.flatnonzero(length[:n] == words)
            threshold = best_threshold(score[longer], gold[longer])
            right[tested] = (score[tested] >= threshold) == (gold[tested] == 1)
    return right


def _auc(weights: Floats, score: Floats, gold: Floats) -> Floats:
    """The area under the ROC curve in each resample (R,), by the ranks of the specific texts; NaN with one label."""
    positive = weights * (gold == 1)
    n_positive, n = positive.sum(axis=1), weights.sum(axis=1)
    # items drawn several times share their mean rank, so the sum of ranks is that of Mann and Whitney
    above = (positive * ranks(weights, score)).sum(axis=1) - n_positive * (n_positive + 1) / 2
    pairs = n_positive * (n - n_positive)
    return np.asarray(np.divide(above, pairs, out=np.full(len(n), np.nan), where=pairs > 0))


def _read_rated(path: Path) -> tuple[list[str], list[float]]:
    texts, ratings = [], []
    for number, line in lines(path):
        if not line.strip():
            continue
        text, rating = (part.strip() for part in line.rpartition("\t")[::2])
        try:
            value = float(rating) if text else np.nan
        except ValueError:
            value = np.nan
        if not np.isfinite(value):
            raise DatasetError.expected(_WHAT, repr(line[-40:]), path=path, line=number)
        texts.append(text)
        ratings.append(value)
    if not texts:
        raise DatasetError.expected(f"{_WHAT} per line", "an empty file", path=path, line=1)
    return texts, ratings
