"""Tagging with a BiLSTM-CRF on word vectors only: parts of speech, chunks, entities.

Files in `tagging/`: `.conllu` (UPOS; UD-EWT), or `.txt`, `.conll`, `.tsv` with one word per line, the tag in the last
column (CoNLL-2000, WNUT-17), and a blank line between sentences; parts as in `splits.py`. If tags mark spans (B-NP,
I-NP, O), the metric is span F1 as in `seqeval`, else word accuracy.

With `source=NAME` the tagger is trained on that dataset and tested on the others with its labels (`transfer.py`); types
of spans count, not how their first word is marked.

An item is a sentence, covered if at least one of its words is known; OOV words get the vector of the OOV policy. Values
are means over seeds; `-sd` is the standard deviation over seeds. Interval: percentile bootstrap over sentences.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain, product
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, Self

import numpy as np

from stillvec.evaluation.intervals import Estimate, Floats, Resampling, Rows
from stillvec.evaluation.layer_mix import mix_words
from stillvec.evaluation.supervised import (
    LearntItems,
    beside,
    estimates,
    f1_ratio,
    ratio,
    read_sets,
    resolve_network_device,
    share,
    single_thread,
)
from stillvec.evaluation.tasks import Answers, Items
from stillvec.evaluation.transfer import TransferTask
from stillvec.heads.sequence_batches import Representation, Sequences
from stillvec.heads.splits import Round, pool_parts
from stillvec.heads.treebank import are_spans, count_spans, read_tagged
from stillvec.registry import check_least

if TYPE_CHECKING:
    from stillvec.evaluation.network_training import Recurrence

_QUICK = 2000  # training sentences
_QUICK_EPOCHS = 3


@dataclass(frozen=True)
class Tagging(TransferTask):
    seeds: int = 3
    epochs: int = 8
    tuned: bool = False
    device: Literal["auto", "cpu", "cuda"] = "auto"

    files: ClassVar[tuple[str, ...]] = ("tagging", ".conllu", ".conll", ".txt", ".tsv")
    controls: ClassVar[tuple[str, ...]] = ("-words", "-sd")
    learns_mix: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_least(self, seeds=1, epochs=1)

    def read(self, path: Path) -> LearntItems:
        most, files = _QUICK if self.quick else None, self.choose_files(path)
        pool, n_tested, splits = pool_parts(path, read_tagged, lambda _: "", most, files)
        words, tags = (tuple(sentence[side] for sentence in pool) for side in (0, 1))
        return LearntItems.from_sentences(words, n_tested, tags, splits)

    def list_labels(self, path: Path) -> set[str]:
        """The types of spans, or the tags."""
        tags = {tag for _, tags in read_tagged(path) for tag in tags}
        return {tag.partition("-")[2] or tag for tag in tags} if are_spans([*tags]) else tags

    def answer_sets(self, lookups: Sequence[Representation], items: Items) -> Generator[float, None, list[Answers]]:
        assert isinstance(items, LearntItems)
        gold = GoldTags.of(items)
        sequences = yield from read_sets([lookup.read_tokens_steps(items.all_texts) for lookup in lookups])
        n_seeds = 1 if self.quick else self.seeds
        together = resolve_network_device(self.device).type == "cuda"  # on a CPU each core trains networks of one seed
        groups = [range(n_seeds)] if together else [range(seed, seed + 1) for seed in range(n_seeds)]
        taggers = self._taggers(sequences, gold, items.rounds)
        runs = [(split, seeds) for split in items.rounds for seeds in groups]
        repeated = (tagger for tagger in taggers for _ in groups)
        works = [tagger.run(*run) for tagger, run in zip(repeated, runs, strict=True)]
        with single_thread():
            tagged = yield from share(1, 2, beside(works, 1 if together else None))
        totals = np.zeros((len(lookups), len(items), 3, n_seeds))
        for (split, seeds), by_set in zip(runs, tagged, strict=True):
            for at, seed in product(range(len(lookups)), seeds):
                totals[at, split.test, :, seed] = gold.count(split.test, by_set[at, seed - seeds.start])
        metric = "f1" if gold.has_spans else "accuracy"
        known = [part.known_of_all[: len(items)] for part in sequences]
        return [
            Answers(of_set[:, 0] > 0, {metric: counts, "known-words": of_set})
            for counts, of_set in zip(totals, known, strict=True)
        ]

    def _taggers(self, sequences: list[Sequences], gold: GoldTags, rounds: Sequence[Round]) -> Iterator[Recurrence]:
        """The networks of each round; those of a mix of layers have a table of their own."""
        from stillvec.evaluation.network_training import Recurrence  # importing torch takes seconds
        from stillvec.heads.networks import PaddedTexts

        device, epochs = resolve_network_device(self.device), _QUICK_EPOCHS if self.quick else self.epochs
        texts: PaddedTexts | None = None
        for split in rounds:
            if texts is None or any(part.layers for part in sequences):
                texts = PaddedTexts([mix_words(part, gold.tags, split.train) for part in sequences], device)
            yield Recurrence(texts, gold.tags, gold.quality, epochs, self.tuned)

    def score(self, items: Items, answers: Answers, chosen: Rows, resampling: Resampling) -> dict[str, Estimate]:
        metric = "f1" if "f1" in answers.values else "accuracy"
        totals = answers.values[metric][chosen]  # (n, 3, seeds)
        measures: dict[str, Callable[[Floats], Floats]] = {metric: partial(f1_ratio, counts=totals)}
        if totals.shape[2] > 1:
            measures[f"{metric}-sd"] = partial(f1_ratio, counts=totals, over_seeds=partial(np.std, ddof=1))
        known = answers.values["known-words"][chosen]
        return estimates(measures | {"known-words": ratio(known[:, 0], known[:, 1])}, len(chosen), resampling)


@dataclass(frozen=True)
class GoldTags:
    """The tags of all sentences, and how well others match them."""

    names: list[str]
    tags: Rows  # (N,) of each word
    ends: Rows  # (n,) of each sentence

    @classmethod
    def of(cls, items: LearntItems) -> Self:
        names = sorted({*chain.from_iterable(items.labels)})
        number = {name: place for place, name in enumerate(names)}
        tags = np.array([number[tag] for tag in chain.from_iterable(items.labels)], np.int64)
        return cls(names, tags, np.cumsum([len(labels) for labels in items.labels]))

    @cached_property
    def has_spans(self) -> bool:
        return are_spans(self.names)

    def count(self, chosen: Rows, said: Rows) -> Floats:
        """Correct, predicted and gold counts of sentences (n, 3); with one tag per word, F1 equals accuracy."""
        lengths = np.diff(self.ends, prepend=0)[chosen]
        text = np.repeat(np.arange(len(chosen)), lengths)
        within = np.arange(len(text)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        gold = self.tags[np.repeat(self.ends[chosen] - lengths, lengths) + within]
        if self.has_spans:
            return count_spans(gold, said, self.names, text, len(chosen))
        right = np.bincount(text[gold == said], minlength=len(chosen))
        return np.stack([right, lengths, lengths], axis=1).astype(np.float64)

    def quality(self, chosen: Rows, said: Rows) -> float:
        """F1 or accuracy of the tags of the words of sentences."""
        return float(f1_ratio(np.ones((1, len(chosen))), self.count(chosen, said)[:, :, None])[0])
