"""Spans: how well the words of a span become one vector (Toshniwal et al. 2020).

Constituents, entities, semantic roles and coreference: `span_questions.py` has the files and the questions. A small
network (`span_networks.py`) predicts the labels of a span from the pooled rows of its words, for each pooling of
`pooling.py`. The score is micro-F1 over all labels, on the test sentences; the epoch is selected on development
sentences. For two labels, as in `detection`, it is close to the accuracy.

Where a span begins, how long it is and which words it has says much without any meaning, so beside each score is
`-random`, that of random vectors, one per word, of the same dimension and for the same words. `each` also reports the
recall of every label.

An item is a sentence, covered if at least one of its words is known; OOV words get the vector of the OOV policy. Values
are means over seeds; `-sd` is the standard deviation over seeds. Interval: percentile bootstrap over sentences.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import DatasetError, UsageError
from stillvec.evaluation.intervals import Estimate, Resampling, Rows
from stillvec.evaluation.probing import randomize
from stillvec.evaluation.supervised import (
    LearntItems,
    Measure,
    beside,
    estimates,
    f1_ratio,
    ratio,
    resolve_network_device,
    share,
    single_thread,
)
from stillvec.evaluation.tasks import Answers, Items, TokenTask
from stillvec.heads.pooling import SPAN_POOLINGS, split_poolings
from stillvec.heads.sequence_batches import Representation, Sequences
from stillvec.heads.span_questions import FOLDERS, KINDS, QUESTIONS, SpanQuestions, ask, find_kind, read_marked
from stillvec.heads.splits import pool_parts, whole_datasets
from stillvec.registry import check_least

if TYPE_CHECKING:  # importing torch takes seconds
    from stillvec.heads.networks import PaddedTexts
    from stillvec.heads.span_networks import SpanSettings

_BATCH = 64  # sentences
_ALL, _QUICK_POOLINGS = ("max", "avg", "attention", "endpoint", "diffsum", "coherent"), ("max", "endpoint")
_QUICK, _QUICK_EPOCHS, _QUICK_SIZE, _QUICK_BATCH = 1500, 4, 96, 32  # sentences, epochs, columns and units, a batch


@dataclass(frozen=True)
class SpanItems(LearntItems):
    questions: Mapping[str, SpanQuestions] = field(default_factory=dict)


@dataclass(frozen=True)
class Spans(TokenTask):
    pooling: str = "all"  # the six, of the quick form max+endpoint; or some joined by +; sets are ranked by the first
    on: str = "all"  # or any of constituents, entities, roles, coreference (or of the questions), joined by +
    seeds: int = 3
    epochs: int = 6
    size: int = 256  # columns of a projected word and units of the network
    each: bool = False  # also report the recall of every label
    draw: int = 0  # seed of the spans that are drawn for detection and mentions
    device: Literal["auto", "cpu", "cuda"] = "auto"

    files: ClassVar[tuple[str, ...]] = ("spans", ".jsonl")  # and those in trees/ and roles/
    controls: ClassVar[tuple[str, ...]] = ("-random", "-sd", "-words")
    summary: ClassVar[str] = "micro-F1"
    learns_mix: ClassVar[bool] = True

    def __post_init__(self) -> None:
        split_poolings(self.pooling, ("all", *SPAN_POOLINGS))
        check_least(self, seeds=1, epochs=1, size=4, draw=0)
        for name in self.on.split("+"):
            if name not in ("all", *KINDS, *QUESTIONS):
                raise UsageError.unknown("question", name, ("all", *KINDS, *QUESTIONS))

    @classmethod
    def ranks_by(cls, metric: str) -> bool:
        return super().ranks_by(metric) and "-recall-" not in metric

    @property
    def poolings(self) -> tuple[str, ...]:
        """The poolings that are measured, the one by which sets are ranked first."""
        named = split_poolings(self.pooling, ("all", *SPAN_POOLINGS))
        of_all = _QUICK_POOLINGS if self.quick else _ALL
        return of_all if "all" in named else tuple(named)

    @property
    def asked(self) -> list[str]:
        """The names of the questions."""
        wanted = self.on.split("+")
        kinds = {question: kind for kind, questions in KINDS.items() for question in questions}
        return [name for name in QUESTIONS if {"all", name, kinds[name]} & {*wanted}]

    def find(self, folder: Path) -> list[Path]:
        """The files of trees/, spans/ and roles/ about which there is a question."""
        paths = [path for name, suffix in FOLDERS.items() for path in whole_datasets(folder / name, (suffix,))]
        wanted = {kind for kind, questions in KINDS.items() if {*questions} & {*self.asked}}
        return [path for path in paths if find_kind(path) in {*wanted, None}]  # reading tells what is wrong with a file

    def read(self, path: Path) -> SpanItems:
        pool, n_tested, splits = pool_parts(path, read_marked, lambda _: "", _QUICK if self.quick else None)
        kinds = {sentence.kind for sentence in pool}
        if len(kinds) > 1:
            raise DatasetError.expected("spans of one kind in all parts", " and ".join(sorted(kinds)), path=path)
        words = tuple(sentence.words for sentence in pool)
        questions = {name: ask(name, pool, self.draw) for name in KINDS[pool[0].kind] if name in self.asked}
        return SpanItems.from_sentences(words, n_tested, (), splits, questions)

    def answer_steps(self, lookup: Representation, items: Items) -> Generator[float, None, Answers]:
        assert isinstance(items, SpanItems)
        sequences = yield from share(0, 2, lookup.read_tokens_steps(items.all_texts))
        values = yield from share(1, 2, self._probe(items, sequences))
        values["known-words"] = sequences.known_of_all[: len(items)]
        return Answers(sequences.known[: len(items)] > 0, values)

    def _probe(self, items: SpanItems, sequences: Sequences) -> Generator[float, None, dict[str, NDArray[Any]]]:
        """The counts of each question and pooling, with the vectors and with random ones."""
        from stillvec.heads.networks import PaddedTexts  # importing torch takes seconds
        from stillvec.heads.span_networks import LayeredTexts, SpanSettings

        device, control = resolve_network_device(self.device), randomize(sequences)
        texts = [PaddedTexts([sequences, control], device)]
        if sequences.layers:
            texts = [LayeredTexts(sequences, device), PaddedTexts([control], device)]
        size, batch = (min(self.size, _QUICK_SIZE), _QUICK_BATCH) if self.quick else (self.size, _BATCH)
        values: dict[str, NDArray[Any]] = {}
        cells = [*product(items.questions, self.poolings)]
        for number, (name, pooling) in enumerate(cells):
            work = self._train(items, texts, items.questions[name], SpanSettings(pooling, size, size, batch))
            metric = f"{name}-{pooling}"
            found = yield from share(number, len(cells), work)
            values |= {f"{part}{metric}{ending}": array for (part, ending), array in found.items()}
        return values

    def _train(
        self, items: SpanItems, texts: Sequence[PaddedTexts], questions: SpanQuestions, settings: SpanSettings
    ) -> Generator[float, None, dict[tuple[str, str], NDArray[Any]]]:
        """Correct, predicted and gold labels of each sentence (n, 3, seeds), the same with random vectors (n, 3, 1),
        how often each label of a sentence was recalled (n, k, seeds), and the weights of layers (rounds, seeds, l).

        By what is put before and after the name of the metric.
        """
        from stillvec.evaluation.network_training import SPAN_RATE, SpanTraining
        from stillvec.heads.networks import NetworkSettings

        n_seeds, epochs = (1, _QUICK_EPOCHS) if self.quick else (self.seeds, self.epochs)
        networks = [(texts[0], NetworkSettings(0, seed, SPAN_RATE)) for seed in range(n_seeds)]
        last = texts[-1]  # one seed of the control is enough
        networks.append((last, NetworkSettings(len(last.sequences) - 1, 0, SPAN_RATE)))
        together = last.device.type == "cuda"  # on a CPU each core trains one network
        groups = [[network] for network in networks]
        if together:
            groups = [[network for network in networks if network[0] is part] for part in texts]
        trainings = [
            (SpanTraining(group[0][0], questions, settings, epochs), [network for _, network in group])
            for group in groups
        ]
        with single_thread():
            runs = [training.run(split, group) for split in items.rounds for training, group in trainings]
            trained = yield from beside(runs, 1 if together else None)
        n_rounds = len(items.rounds)
        said = np.concatenate([labels for labels, _ in trained]).reshape(n_rounds, -1, *questions.labels.shape)
        by_network: NDArray[np.bool_] = np.logical_or.reduce(said)  # a question is asked in one round
        counts = np.stack([questions.count(labels, len(items)) for labels in by_network], axis=2)
        recalled = np.stack([questions.count_recalled(labels, len(items)) for labels in by_network[:-1]], axis=2)
        layers = [weights for _, weights in trained if weights.shape[1]]
        found: dict[tuple[str, str], NDArray[Any]] = {("", ""): counts[:, :, :-1], ("", "-random"): counts[:, :, -1:]}
        if layers:
            found["layers:", ""] = np.concatenate(layers).reshape(n_rounds, n_seeds, -1)
        return found | {("recalled:", ""): recalled}

    def score(self, items: Items, answers: Answers, chosen: Rows, resampling: Resampling) -> dict[str, Estimate]:
        assert isinstance(items, SpanItems)
        measures: dict[str, Measure] = {}
        for name, pooling in product(items.questions, self.poolings):
            metric = f"{name}-{pooling}"
            counts = answers.values[metric][chosen]
            measures[metric] = partial(f1_ratio, counts=counts)
            measures[f"{metric}-random"] = partial(f1_ratio, counts=answers.values[f"{metric}-random"][chosen])
            if counts.shape[2] > 1:
                measures[f"{metric}-sd"] = partial(f1_ratio, counts=counts, over_seeds=partial(np.std, ddof=1))
            if self.each:
                measures |= _recalls(metric, items.questions[name], answers.values[f"recalled:{metric}"], chosen)
        known = answers.values["known-words"][chosen]
        return estimates(measures | {"known-words": ratio(known[:, 0], known[:, 1])}, len(chosen), resampling)


def _recalls(metric: str, questions: SpanQuestions, recalled: NDArray[Any], chosen: Rows) -> dict[str, Measure]:
    """The recall of every label that the tested sentences have."""
    gold = questions.count_recalled(questions.labels, len(recalled))[chosen]  # (n, k)
    return {
        f"{metric}-recall-{label}": ratio(recalled[chosen, at].astype(np.float64), gold[:, at].astype(np.float64))
        for at, label in enumerate(questions.names)
        if gold[:, at].any()
    }
