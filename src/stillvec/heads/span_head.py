"""The label of a span of words, or of two spans: the probe of the task `spans` (Toshniwal et al. 2020).

    e_k = P x_k + p;   s = pooling of e_i, ..., e_j (`pooling.py`);   h = LayerNorm(tanh(A s + a));   scores = B h + b

The network is that of `span_networks.py`, which trains on whole sentences. Only the words of a span are read, so an
item is these words, and for two spans the words of both with a row of padding between them.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import UsageError
from stillvec.heads.head_kind import HeadKind, Lesson, Trained, choose_threshold
from stillvec.heads.labelled_data import LabelledData, Unit
from stillvec.heads.lookup import Lookup
from stillvec.heads.marked_texts import MarkedText, number_sentences
from stillvec.heads.numpy_layers import Floats32, iterate_batches, sigmoid, softmax
from stillvec.heads.pair_head import divide_pairs, join_pairs
from stillvec.heads.pooling import EDGE_POOLINGS, SPAN_POOLINGS
from stillvec.heads.sequence_batches import PADDING, UNKNOWN, Sequences
from stillvec.heads.span_questions import QUESTIONS, SpanQuestions
from stillvec.numerics.array_types import Floats, Rows
from stillvec.registry import check_least, check_positive

NORM = 1e-5  # added to a variance, as by torch


@dataclass(frozen=True)
class SpanHead(HeadKind):
    unit: ClassVar[Unit] = "span"
    pooling: str = "max"  # or avg, attention, endpoint, diffsum, coherent
    question: str = ""  # detection or mentions ask where spans are; none: the labels that the dataset has
    size: int = 256  # columns of a projected word and units of the network
    epochs: int = 20  # at most
    patience: int = 3  # epochs without a better development score, after which training stops
    rate: float = 3e-3  # falls to a third of it
    draw: int = 0  # seed of the spans that are drawn for detection and mentions

    def __post_init__(self) -> None:
        check_least(self, epochs=1, patience=1, size=4, draw=0)
        check_positive(self, "rate")
        if self.pooling not in SPAN_POOLINGS:
            raise UsageError.unknown("pooling", self.pooling, SPAN_POOLINGS)
        if self.question not in ("", *QUESTIONS):
            raise UsageError.unknown("question", self.question, QUESTIONS)

    def fit(self, lesson: Lesson) -> Generator[float, None, Trained]:
        from stillvec.heads.networks import NetworkSettings, PaddedTexts  # importing torch takes seconds
        from stillvec.heads.span_networks import SpanNetworks, SpanSettings

        data = lesson.data
        texts = PaddedTexts([lesson.sequences], lesson.resolve_device())
        questions, text = ask_items(data), number_sentences(data.items)[1]
        settings = SpanSettings(self.pooling, self.size, self.size)
        networks = [NetworkSettings(0, seed, self.rate) for seed in lesson.seeds]
        group = SpanNetworks(texts, questions, networks, settings)
        gold, judged = lesson.targets[data.dev], np.unique(text[data.dev])

        def measure() -> Floats:
            return np.array([self._measure(scores[data.dev], gold, data)[1] for scores in group.predict_scores(judged)])

        quality = yield from group.train_best(
            np.unique(text[data.train]), self.epochs, measure, decay=1 / 3, patience=self.patience,
            checkpoint=lesson.checkpoint,
        )  # fmt: skip
        at = int(np.argmax(quality))
        threshold, _ = self._measure(group.predict_scores(judged)[at][data.dev], gold, data)
        fixed = {"spans": np.array([group.n_parts]), "factor": np.float32(lesson.sequences.scale_factor).reshape(1)}
        return Trained(group.read_arrays(at) | fixed, float(quality[at]), threshold)

    @staticmethod
    def _measure(scores: Floats32, gold: Floats, data: LabelledData) -> tuple[float, float]:
        """The threshold of probabilities, and the micro-F1 or accuracy with it."""
        if data.multilabel:
            return choose_threshold(sigmoid(scores), gold)
        return 0.5, float((scores.argmax(axis=1) == gold.argmax(axis=1)).mean())

    def count_spans(self, arrays: Mapping[str, NDArray[Any]]) -> int:
        """Of an item: one or two."""
        return int(arrays["spans"][0])

    def encode(self, arrays: Mapping[str, NDArray[Any]], sequences: Sequences) -> Floats32:
        """The vectors of spans that the last layer reads (n, size)."""
        n_spans = self.count_spans(arrays)
        projected = [_project(arrays, sequences, part) for part in range(n_spans)]
        made = np.zeros((len(sequences), len(arrays["enter_bias"])), np.float32)
        own = Sequences(sequences.table, np.arange(len(sequences.ids)) + 1, sequences.ends)  # each word by its number
        side = divide_pairs(sequences) if n_spans > 1 else np.zeros(len(sequences.ids), np.int64)
        side = np.concatenate([[-1], np.where(sequences.ids == PADDING, -1, side)])
        for numbers, words, _ in iterate_batches(own):
            joined = [
                _pool(self.pooling, rows[words], side[words] == part, query)
                for part, (rows, query) in enumerate(projected)
            ]
            hidden = np.tanh(np.concatenate(joined, axis=1) @ arrays["enter"] + arrays["enter_bias"])
            centred = hidden - hidden.mean(axis=1, keepdims=True)
            normed = centred / np.sqrt(np.square(centred).mean(axis=1, keepdims=True) + NORM)
            made[numbers] = normed * (1 + arrays["gain"]) + arrays["shift"]
        return made

    def score(self, arrays: Mapping[str, NDArray[Any]], sequences: Sequences) -> Floats32:
        return np.asarray(self.encode(arrays, sequences) @ arrays["weights"] + arrays["bias"], np.float32)

    def explain(self, arrays: Mapping[str, NDArray[Any]], sequences: Sequences, label: Rows) -> Floats32:
        """How much lower the score of the label is with an unknown word in the place of each (N,)."""
        weights = np.zeros(len(sequences.ids), np.float32)
        own = self.score(arrays, sequences)[np.arange(len(sequences)), label]
        starts = sequences.ends - sequences.lengths
        for place in range(int(sequences.lengths.max(initial=0))):
            chosen = np.flatnonzero(sequences.lengths > place)
            at = starts[chosen] + place
            chosen, at = chosen[sequences.ids[at] != PADDING], at[sequences.ids[at] != PADDING]
            ids = sequences.ids.copy()
            ids[at] = UNKNOWN
            changed = self.score(arrays, Sequences(sequences.table, ids, sequences.ends))
            weights[at] = own[chosen] - changed[chosen, label[chosen]]
        return weights


def ask_items(data: LabelledData) -> SpanQuestions:
    """The items as questions about sentences."""
    _, text = number_sentences(data.items)
    places = {len(item.places) for item in data.items}
    if len(places) > 1:
        raise UsageError.expected("one span in each item, or two in each", "both", where="head span")
    spans = np.array([item.places for item in data.items], np.int64)
    return SpanQuestions(data.names, text, spans, data.targets() > 0, separate=data.question == "roles")


def read_spans(lookup: Lookup, items: Sequence[MarkedText]) -> Sequences:
    """The words of the spans of each item, with padding between two."""
    sequences = lookup.read_tokens([span for item in items for span in item.spans])
    return join_pairs(sequences) if items and len(items[0].places) > 2 else sequences


def _project(arrays: Mapping[str, NDArray[Any]], sequences: Sequences, part: int) -> tuple[Floats32, Floats32]:
    """The projected words, after a row of zeros (N + 1, size), and the query of attention."""
    ending = "_2" if part and "project_2" in arrays else ""
    table = np.asarray(sequences.table, np.float32) * arrays["factor"]
    rows = table @ arrays[f"project{ending}"] + arrays[f"project_bias{ending}"]
    first = np.zeros((1, rows.shape[1]), np.float32)
    return np.concatenate([first, rows[sequences.ids]]), arrays[f"query{ending}"]


def _pool(pooling: str, words: Floats32, inside: NDArray[np.bool_], query: Floats32) -> Floats32:
    """The vectors of spans (B, p), of words (B, L, d) of which some are inside (B, L), side by side."""
    if pooling in EDGE_POOLINGS:
        own = np.arange(len(words))
        first, last = inside.argmax(axis=1), inside.shape[1] - 1 - inside[:, ::-1].argmax(axis=1)
        return np.asarray(EDGE_POOLINGS[pooling](np, words[own, first], words[own, last]), np.float32)
    if pooling == "max":
        return np.asarray(np.where(inside[..., None], words, -np.inf).max(axis=1), np.float32)
    if pooling == "avg":
        weights = inside / inside.sum(axis=1, keepdims=True)
    else:
        weights = softmax(np.where(inside, words @ query, -np.inf))
    return np.asarray(np.einsum("bl,bld->bd", weights, words), np.float32)
