"""The labels of the nearest training texts by cosine: nothing is trained, and the texts are the explanation."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stillvec.heads.head_kind import Arrays, HeadKind, Lesson, Trained
from stillvec.heads.neighbour_votes import balance_votes, count_votes
from stillvec.heads.numpy_layers import Floats32
from stillvec.heads.sequence_batches import Sequences
from stillvec.numerics import top_k, unit_rows
from stillvec.numerics.array_types import Floats, Rows
from stillvec.registry import check_least

LEAST = 1e-9  # share of votes


@dataclass(frozen=True)
class Knn(HeadKind):
    k: int = 10  # neighbours
    balanced: bool = False  # votes divided by the number of training texts of a label
    center: bool = True  # subtract the mean of the training texts

    def __post_init__(self) -> None:
        check_least(self, k=1)

    @property
    def several_labels(self) -> bool:
        return False

    def fit(self, lesson: Lesson) -> Generator[float, None, Trained]:
        gold = lesson.targets[lesson.data.dev].argmax(axis=1)
        tried = self._remember(lesson, lesson.data.train)
        said = self.score(tried, lesson.sequences).argmax(axis=1)[lesson.data.dev]
        yield 0.5
        both = np.concatenate([lesson.data.train, lesson.data.dev])
        return Trained(self._remember(lesson, both), float((said == gold).mean()))

    def _remember(self, lesson: Lesson, rows: Rows) -> Arrays:
        x = lesson.sequences.means()[rows]
        mean = x.mean(axis=0) if self.center else np.zeros(x.shape[1], np.float32)
        texts = [str(lesson.data.items[row]).encode() for row in rows.tolist()]
        return {
            "mean": mean.astype(np.float32),
            "examples": unit_rows(self._center(x, mean)).astype(np.float16),
            "labels": lesson.targets[rows].argmax(axis=1).astype(np.int32),
            "n_labels": np.array([lesson.targets.shape[1]], np.int32),
            "texts": np.frombuffer(b"".join(texts), np.uint8),
            "text_ends": np.cumsum([*map(len, texts)]),
        }

    def encode(self, arrays: Mapping[str, NDArray[Any]], sequences: Sequences) -> Floats32:
        """The centred means of texts (n, d)."""
        return self._center(sequences.means(), arrays["mean"])

    def score(self, arrays: Mapping[str, NDArray[Any]], sequences: Sequences) -> Floats32:
        """The logarithms of the shares of votes."""
        x, labels = self.encode(arrays, sequences), arrays["labels"].astype(np.int64)
        votes: Floats = count_votes(arrays["examples"], labels, x, self.k, int(arrays["n_labels"][0]))
        votes = balance_votes(votes, labels) if self.balanced else votes
        shares = votes / np.maximum(votes.sum(axis=1, keepdims=True), 1e-12)
        return np.asarray(np.log(np.maximum(shares, LEAST)), np.float32)

    def find_examples(
        self, arrays: Mapping[str, NDArray[Any]], sequences: Sequences, n_examples: int
    ) -> list[list[tuple[str, int, float]]]:
        """Of each text, the nearest training texts, the number of their label, and the cosine."""
        examples = unit_rows(arrays["examples"].astype(np.float32))
        cosines = unit_rows(self.encode(arrays, sequences)) @ examples.T
        nearest: Rows = top_k(cosines, n_examples)
        content, ends = arrays["texts"].tobytes(), arrays["text_ends"]
        return [
            [
                (
                    content[int(ends[row - 1]) if row else 0 : int(ends[row])].decode(errors="replace"),
                    int(arrays["labels"][row]),
                    float(of_text[row]),
                )
                for row in rows.tolist()
            ]
            for rows, of_text in zip(nearest, cosines, strict=True)
        ]

    @staticmethod
    def _center(x: NDArray[Any], mean: NDArray[Any]) -> Floats32:
        """A text without known words stays zero."""
        return np.asarray(np.where(x.any(axis=1, keepdims=True), x - mean, x), np.float32)
