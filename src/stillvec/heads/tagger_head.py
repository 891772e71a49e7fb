"""A BiLSTM-CRF over word vectors, as in the task `tagging` (Huang, Xu & Yu 2015); prediction by Viterbi's algorithm."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import DatasetError, UsageError
from stillvec.heads.head_kind import Arrays, HeadKind, Lesson, Trained
from stillvec.heads.labelled_data import LabelledData, Unit
from stillvec.heads.numpy_layers import (
    Floats32,
    find_best_paths,
    find_tag_chances,
    iterate_batches,
    run_both_ways,
    softmax,
    write_words,
)
from stillvec.heads.sequence_batches import Sequences, keep_table
from stillvec.heads.training_options import TrainingOption
from stillvec.heads.treebank import count_spans
from stillvec.numerics.array_types import Floats, Rows
from stillvec.registry import check_least, check_positive

_NAMES = ("enter", "recur", "biases", "weights", "bias", "begin", "step", "end")


@dataclass(frozen=True)
class Tagger(HeadKind):
    unit: ClassVar[Unit] = "tokens"
    epochs: int = 8  # at most
    patience: int = 3  # epochs without a better development score, after which training stops
    rate: float = 3e-3  # falls to a third of it
    tuned: bool = False  # whether the vectors of words are trained along

    def __post_init__(self) -> None:
        check_least(self, epochs=1, patience=1)
        check_positive(self, "rate")

    def fit(self, lesson: Lesson) -> Generator[float, None, Trained]:
        from stillvec.heads.networks import NetworkSettings, PaddedTexts, TaggerNetworks  # torch takes seconds

        data = lesson.data
        gold = number_tags(data)
        check_options(data, lesson.options)
        texts = PaddedTexts([lesson.sequences], lesson.resolve_device())
        settings = [NetworkSettings(0, seed, self.rate) for seed in lesson.seeds]
        tags = np.pad(gold, (0, len(lesson.sequences.ids) - len(gold)))  # unlabelled texts have none
        group = TaggerNetworks(
            texts, tags, settings, tuned=self.tuned, names=data.names, options=lesson.options, widths=lesson.widths,
            languages=lesson.languages,
        )  # fmt: skip

        def measure() -> Floats:
            return np.array([measure_tags(data, gold, data.dev, said) for said in group.predict_words(data.dev)])

        quality = yield from group.train_best(
            data.train, self.epochs, measure, decay=1 / 3, patience=self.patience, checkpoint=lesson.checkpoint
        )
        at = int(np.argmax(quality))
        parameters = [part[at].detach().cpu().numpy() for part in group.parameters]
        factor = lesson.sequences.scale_factor
        arrays: Arrays = dict(zip(_NAMES, parameters, strict=False))
        arrays |= {name: parameters[place] for name, place in group.places.items()}
        if lesson.widths:
            arrays["widths"] = np.array(lesson.widths, np.int64)
        arrays["factor"] = np.float32(factor).reshape(1)
        if self.tuned:
            arrays |= keep_table(parameters[-1], lesson.sequences)
        return Trained(arrays, float(quality[at]))

    def tag(self, arrays: Mapping[str, NDArray[Any]], sequences: Sequences) -> Rows:
        """The number of the tag of each word (N,)."""
        tags = np.zeros(len(sequences.ids), np.int64)
        field = arrays["begin"], arrays["step"], arrays["end"]
        for numbers, states, lengths in iterate_states(arrays, sequences):
            scores = _mix_experts(arrays, states)[0] @ arrays["weights"] + arrays["bias"]
            write_words(tags, sequences, numbers, find_best_paths(scores, lengths, *field))
        return tags

    def name_tags(self, arrays: Mapping[str, NDArray[Any]], sequences: Sequences, labels: Sequence[str]) -> list[str]:
        """The tag of each word (N,)."""
        return [labels[number] for number in self.tag(arrays, sequences).tolist()]

    def explain_tags(
        self, arrays: Mapping[str, NDArray[Any]], sequences: Sequences
    ) -> tuple[Floats32 | None, Floats32 | None]:
        """The probability of each tag of each word (N, k), and the weight of each expert for it (N, experts)."""
        chances = np.zeros((len(sequences.ids), len(arrays["bias"])), np.float32)
        gates = np.zeros((len(chances), arrays["gate"].shape[1]), np.float32) if "gate" in arrays else None
        field = arrays["begin"], arrays["step"], arrays["end"]
        for numbers, states, lengths in iterate_states(arrays, sequences):
            features, opened = _mix_experts(arrays, states)
            scores = features @ arrays["weights"] + arrays["bias"]
            write_words(chances, sequences, numbers, find_tag_chances(scores, lengths, *field))
            if gates is not None and opened is not None:
                write_words(gates, sequences, numbers, opened)
        return chances, gates

    def map_words(self, arrays: Mapping[str, NDArray[Any]], table: Floats32) -> Floats32:
        """What the LSTM reads for rows of vectors (n, d)."""
        return _map_words(arrays, np.asarray(table * arrays["factor"], np.float32))[0]

    def weigh_sources(self, arrays: Mapping[str, NDArray[Any]], table: Floats32) -> Floats32:
        """The weight of each source for rows of vectors (n, S); of a tagger on several."""
        weights = _map_words(arrays, np.asarray(table * arrays["factor"], np.float32))[1]
        assert weights is not None
        return weights


def iterate_states(
    arrays: Mapping[str, NDArray[Any]], sequences: Sequences
) -> Generator[tuple[Rows, Floats32, Rows], None, None]:
    """Numbers of sentences (B,), the states of their words in both directions (B, L, 2 U), and lengths (B,)."""
    table = np.asarray(sequences.table * arrays["factor"], np.float32)
    for numbers, ids, lengths in iterate_batches(sequences):
        if lengths.max(initial=0):
            yield numbers, run_both_ways(_map_words(arrays, table[ids])[0], lengths, dict(arrays)), lengths


def _map_words(arrays: Mapping[str, NDArray[Any]], x: Floats32) -> tuple[Floats32, Floats32 | None]:
    """The inputs of the LSTM (..., E) for vectors (..., d), and the weights of their sources (..., S)."""
    weights = None
    if "widths" in arrays:
        cuts = np.cumsum(arrays["widths"])[:-1]
        parts = np.split(x, cuts, axis=-1)
        maps = np.split(arrays["project"], cuts)
        projected = [part @ map_ for part, map_ in zip(parts, maps, strict=True)]
        states = np.tanh(np.stack(projected, axis=-2) + arrays["project_bias"])  # (..., S, E)
        scores = np.tanh(states @ arrays["attend"]) @ arrays["attend_value"]
        has = np.stack([part.any(axis=-1) for part in parts], axis=-1)
        weights = softmax(np.where(has | ~has.any(axis=-1, keepdims=True), scores, -np.inf))
        x = np.einsum("...se,...s->...e", states, weights)
    if "map" in arrays:
        x = np.tanh(x + x @ arrays["map"])
    return np.asarray(x, np.float32), weights


def _mix_experts(arrays: Mapping[str, NDArray[Any]], states: Floats32) -> tuple[Floats32, Floats32 | None]:
    """The features that are scored (B, L, F), and the weights of the experts."""
    if "gate" not in arrays:
        return states, None
    gate = softmax(states @ arrays["gate"] + arrays["gate_bias"])  # (B, L, E)
    experts = np.einsum("blf,efg->blge", states, arrays["experts"]) + arrays["expert_bias"].T
    return np.asarray(np.einsum("blge,ble->blg", experts, gate), np.float32), gate


def check_options(data: LabelledData, options: Mapping[str, TrainingOption]) -> None:
    if {"auxiliary", "experts"} & options.keys() and not data.has_spans:
        what = "tags of spans (B-PER, I-PER, O) for the options of a tagger"
        raise UsageError.expected(what, ", ".join(data.names[:5]))


def number_tags(data: LabelledData) -> Rows:
    """The number of the tag of each word of all sentences (N,); tags that are not learnt come last."""
    place = {name: number for number, name in enumerate(list_tags(data))}
    for words, tags in zip(data.items, data.labels, strict=True):
        if len(words) != len(tags):
            raise DatasetError.expected(f"{len(words)} tags", len(tags), where=" ".join(words)[:40])
    return np.array([place[tag] for tag in chain.from_iterable(data.labels)], np.int64)


def list_tags(data: LabelledData) -> tuple[str, ...]:
    """The tags that are learnt, and those that occur only in test sentences."""
    return (*data.names, *sorted({*chain.from_iterable(data.labels)} - {*data.names}))


def measure_tags(data: LabelledData, gold: Rows, rows: Rows, said: Rows) -> float:
    """F1 of spans, or the accuracy of tags, of the words of sentences one after the other."""
    lengths = np.array([len(data.labels[row]) for row in range(len(data.labels))])
    starts = np.cumsum(lengths) - lengths
    right = np.concatenate([gold[starts[row] : starts[row] + lengths[row]] for row in rows.tolist()])
    if not data.has_spans:
        return float((right == said).mean())
    text = np.repeat(np.arange(len(rows)), lengths[rows])
    correct, predicted, wanted = count_spans(right, said, list_tags(data), text, len(rows)).sum(axis=0)
    return float(2 * correct / max(predicted + wanted, 1))
