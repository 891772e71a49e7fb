"""Tagging with a BiLSTM-CRF on word vectors only: parts of speech, chunks, entities.

Files in `tagging/`: `.conllu` (UPOS; UD-EWT), or `.txt`, `.conll`, `.tsv` with one word per line, the tag in the last
column (CoNLL-2000, WNUT-17), and a blank line between sentences; parts as in `splits.py`. If tags mark spans (B-NP,
I-NP, O), the metric is span F1 as in `seqeval`, else word accuracy.

An item is a sentence, covered if at least one of its words is known; OOV words get the vector of the OOV policy. Values
are means over seeds; `-sd` is the standard deviation over seeds. Interval: percentile bootstrap over sentences.
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from stillvec.evaluation.intervals import Estimate, Floats, Resampling, Rows
from stillvec.evaluation.lookup import Lookup
from stillvec.evaluation.splits import pool_parts
from stillvec.evaluation.supervised import LearntItems, beside, estimates, quotient, ratio, single_thread
from stillvec.evaluation.tasks import Answers, CostlyTask, Items
from stillvec.evaluation.treebank import are_spans, counts, read_tagged
from stillvec.registry import check_least

_QUICK = 2000  # training sentences
_QUICK_EPOCHS = 3


@dataclass(frozen=True)
class Tagging(CostlyTask):
    seeds: int = 3
    epochs: int = 8
    tuned: bool = False

    files: ClassVar[tuple[str, ...]] = ("tagging", ".conllu", ".conll", ".txt", ".tsv")
    controls: ClassVar[tuple[str, ...]] = ("-words", "-sd")

    def __post_init__(self) -> None:
        check_least(self, seeds=1, epochs=1)

    def read(self, path: Path) -> LearntItems:
        pool, n_tested, splits = pool_parts(path, read_tagged, lambda _: "", _QUICK if self.quick else None)
        words, tags = (tuple(sentence[side] for sentence in pool) for side in (0, 1))
        return LearntItems.from_sentences(words, n_tested, tags, splits)

    def answer_steps(self, lookup: Lookup, items: Items) -> Generator[float, None, Answers]:
        from stillvec.evaluation.networks import Recurrence  # importing torch takes seconds

        assert isinstance(items, LearntItems)
        names = sorted({*chain.from_iterable(items.labels)})
        number = {name: place for place, name in enumerate(names)}
        has_spans = are_spans(names)
        sequences = lookup.read_tokens(items.all_texts)
        tags = np.array([number[tag] for tag in chain.from_iterable(items.labels)], np.int64)

        def count(chosen: Rows, said: list[Rows]) -> Floats:
            """Correct, predicted and gold counts of each sentence (n, 3)."""
            pairs = ((items.labels[at], [names[tag] for tag in path]) for at, path in zip(chosen, said, strict=True))
            count_pair = counts if has_spans else _words
            return np.array([count_pair(gold, path) for gold, path in pairs], np.float64).reshape(-1, 3)

        def quality(chosen: Rows, said: list[Rows]) -> float:
            return float(_f1(np.ones((1, len(chosen))), count(chosen, said)[:, :, None])[0])

        seeds, epochs = (1, _QUICK_EPOCHS) if self.quick else (self.seeds, self.epochs)
        tagger = Recurrence(sequences, tags, sequences.scale_table(), quality, epochs, self.tuned)
        totals = np.zeros((len(items), 3, seeds))
        runs = [(split, seed) for split in items.rounds for seed in range(seeds)]
        with single_thread():
            tagged = yield from beside([tagger.run(*run) for run in runs])
        for (split, seed), said in zip(runs, tagged, strict=True):
            totals[split.test, :, seed] = count(split.test, said)
        known = sequences.known_of_all[: len(items)]
        return Answers(known[:, 0] > 0, {"f1" if has_spans else "accuracy": totals, "known-words": known})

    def score(self, items: Items, answers: Answers, chosen: Rows, resampling: Resampling) -> dict[str, Estimate]:
        metric = "f1" if "f1" in answers.values else "accuracy"
        totals = answers.values[metric][chosen]  # (n, 3, seeds)
        measures: dict[str, Callable[[Floats], Floats]] = {metric: partial(_f1, found=totals)}
        if totals.shape[2] > 1:
            measures[f"{metric}-sd"] = partial(_f1, found=totals, over_seeds=partial(np.std, ddof=1))
        known = answers.values["known-words"][chosen]
        return estimates(measures | {"known-words": ratio(known[:, 0], known[:, 1])}, len(chosen), resampling)


def _words(gold: tuple[str, ...], said: list[str]) -> tuple[int, int, int]:
    """Correct, predicted and gold tags of a sentence; with one tag per word, F1 equals accuracy."""
    return sum(map(str.__eq__, gold, said)), len(gold), len(gold)


def _f1(weights: Floats, found: Floats, over_seeds: Callable[..., Any] = np.mean) -> Floats:
    """F1 = 2 correct / (predicted + gold) per resample (R,), averaged over seeds; 0 if both counts are 0."""
    n, _, seeds = found.shape
    correct, predicted, gold = (weights @ found.reshape(n, -1)).reshape(-1, 3, seeds).transpose(1, 0, 2)  # (R, seeds)
    return np.asarray(over_seeds(np.nan_to_num(quotient(2 * correct, predicted + gold)), axis=1))
