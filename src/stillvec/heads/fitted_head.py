"""`Head`: a fitted head with the vectors that it reads; prediction needs NumPy and SciPy alone."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import UsageError
from stillvec.heads.head_kind import EncodesTexts, HeadKind, to_probabilities
from stillvec.heads.knn_head import Knn
from stillvec.heads.linear_head import Linear
from stillvec.heads.lookup import Lookup
from stillvec.heads.numpy_layers import Floats32
from stillvec.heads.oov_policy import OovPolicy
from stillvec.heads.pair_head import join_pairs
from stillvec.heads.sequence_batches import Sequences
from stillvec.heads.tagger_head import Tagger
from stillvec.input_checks import check_count, check_strings, describe
from stillvec.vectors import WordVectors
from stillvec.vocabulary import WordMatcher

_TOKEN = re.compile(r"\w+(?:['’-]\w+)*|[^\w\s]")
_BLOCK = 4096  # texts at once


def split_tokens(text: str) -> list[str]:
    """The words and punctuation of a text, as a tagger reads them."""
    return _TOKEN.findall(text)


@dataclasses.dataclass(frozen=True)
class Explanation:
    """Why a text has its label: its words and their weights, and the nearest training texts of a `knn`."""

    label: str
    words: tuple[str, ...] = ()
    weights: tuple[float, ...] = ()  # of each word
    examples: tuple[tuple[str, str, float], ...] = ()  # (text, label, cosine)
    experts: tuple[tuple[str, tuple[float, ...]], ...] = ()  # of a tagger: (type or source, its weight for each word)


class Head:
    """A fitted head: `predict` gives the label of each text, or the tags of each sentence.

    `fit` and `load_head` return it.

    Parameters
    ----------
    name: of the kind of head, such as "linear".
    kind: its settings.
    vectors: those of words.
    labels: in the order of the scores.
    arrays: what was learnt, by name.
    manifest: how it was made, and its scores.
    """

    def __init__(
        self,
        name: str,
        kind: HeadKind,
        vectors: WordVectors,
        labels: Sequence[str],
        arrays: Mapping[str, NDArray[Any]],
        manifest: Mapping[str, Any],
    ) -> None:
        self.name, self.kind, self.vectors = name, kind, vectors
        self.labels, self.arrays, self.manifest = tuple(labels), dict(arrays), dict(manifest)
        self.multilabel = bool(self.manifest.get("multilabel", False))
        self.threshold = float(self.manifest.get("threshold", 0.5))

    def __repr__(self) -> str:
        return f"Head({self.name!r}, {len(self.labels):,} labels, {self.vectors!r})"

    @property
    def classes_(self) -> NDArray[np.str_]:
        """The labels, by scikit-learn's name."""
        return np.array(self.labels)

    def predict(self, texts: Iterable[Any]) -> list[Any]:
        """The label of each text; a tuple of labels if texts may have several; of a tagger, the tags of each sentence.

        Parameters
        ----------
        texts: texts; for a tagger also sentences as lists of words; for pairs, (text, text).
        """
        if isinstance(self.kind, Tagger):
            return self._tag(self._read_sentences(texts))
        likely = self.predict_proba(texts)
        if self.multilabel:
            return [tuple(self.labels[place] for place in np.flatnonzero(row)) for row in likely > self.threshold]
        return [self.labels[place] for place in likely.argmax(axis=1).tolist()]

    def predict_proba(self, texts: Iterable[Any]) -> Floats32:
        """The probability of each label (n, k), in the order of `labels`.

        Parameters
        ----------
        texts: the texts, or pairs of texts.
        """
        if isinstance(self.kind, Tagger):
            raise UsageError("A tagger has no probabilities of labels; use predict.", code="no-probabilities")
        return to_probabilities(self.score(self._check(texts)), several=self.multilabel)

    def score(self, texts: Sequence[Any]) -> Floats32:
        """The scores of labels (n, k), whose softmax or sigmoid are the probabilities.

        Parameters
        ----------
        texts: the texts, or pairs of texts.
        """
        scores = np.zeros((len(texts), len(self.labels)), np.float32)
        for start in range(0, len(texts), _BLOCK):
            scores[start : start + _BLOCK] = self._score_block(texts[start : start + _BLOCK])
        return scores

    def explain(self, texts: Iterable[Any], n_examples: int = 3) -> list[Explanation]:
        """Which words and training texts decided.

        Parameters
        ----------
        texts: the texts.
        n_examples: training texts of a `knn` (default: 3).
        """
        check_count(n_examples, "n_examples")
        if isinstance(self.kind, Tagger):
            return self._explain_tags(self._read_sentences(texts))
        given = self._check(texts)
        label = self.score(given).argmax(axis=1)
        sequences = self._read(given)
        if isinstance(self.kind, Knn):
            found = self.kind.find_examples(self.arrays, sequences, n_examples)
            named = [tuple((text, self.labels[row], cosine) for text, row, cosine in near) for near in found]
            return [Explanation(self.labels[at], examples=near) for at, near in zip(label.tolist(), named, strict=True)]
        weights = self.kind.explain(self.arrays, sequences, label)
        words = self._find_words(given) if self.kind.unit == "text" else self._find_pairs(given)
        parts = np.split(weights, sequences.ends[:-1])
        return [
            Explanation(self.labels[at], tuple(of_text), tuple(map(float, part)))
            for at, of_text, part in zip(label.tolist(), words, parts, strict=True)
        ]

    def encode(self, texts: Iterable[str]) -> Floats32:
        """What the last layer reads: vectors of texts that are trained for the labels (n, F).

        Parameters
        ----------
        texts: the texts.
        """
        if not isinstance(self.kind, EncodesTexts):
            raise UsageError(f"A head {self.name!r} has no vectors of texts.", code="no-features")
        return np.asarray(self.kind.encode(self.arrays, self._read(self._check(texts))), np.float32)

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write the folder of the head.

        Parameters
        ----------
        path: the folder.
        force: replace what exists (default: False).
        """
        from stillvec.heads.head_folder import write_head

        write_head(self, path, force=force)

    @cached_property
    def _lookup(self) -> Lookup:
        oov: OovPolicy = "skip" if self.vectors.subwords is None else "subword"
        return Lookup(self.vectors, oov, self.arrays.get("unknown"))

    def _read(self, texts: Sequence[Any]) -> Sequences:
        if self.kind.unit == "pair":
            return join_pairs(self._lookup.read_texts([text for pair in texts for text in pair]))
        return self._lookup.read_texts(texts)

    def _check(self, texts: Iterable[Any]) -> list[Any]:
        if self.kind.unit == "pair":
            pairs = [tuple(pair) for pair in texts]
            if not all(len(pair) == 2 and all(isinstance(text, str) for text in pair) for pair in pairs):
                raise UsageError.expected("pairs of texts", describe(pairs[0]), where="texts")
            return pairs
        return check_strings(texts, "texts", what="texts")

    def _score_block(self, texts: Sequence[Any]) -> Floats32:
        if type(self.kind) is Linear and "hidden" not in self.arrays and self.vectors.subwords is None:
            return self._score_by_word(texts)
        return self.kind.score(self.arrays, self._read(texts))

    def _score_by_word(self, texts: Sequence[str]) -> Floats32:
        """The mean of the scores of words, which are computed once for all words."""
        from scipy.sparse import csr_array

        rows, text = self._matcher.match_rows(texts)
        known = rows >= 0
        known[known] = self._usable[rows[known]]
        rows, text = rows[known], text[known]
        n_known = np.bincount(text, minlength=len(texts))
        ends = np.concatenate([[0], np.cumsum(n_known)])
        counts = csr_array((np.ones(len(rows), np.float32), rows, ends), shape=(len(texts), len(self.vectors)))
        sums = np.asarray(counts @ self._word_scores, np.float32)
        return np.asarray(sums / np.maximum(n_known, 1)[:, None] + self.arrays["bias"], np.float32)

    @cached_property
    def _matcher(self) -> WordMatcher:
        return WordMatcher(self.vectors.vocabulary, lazy=True)

    @cached_property
    def _usable(self) -> NDArray[np.bool_]:
        """Words whose vector is not zero (V,), as `Lookup` has it."""
        return np.asarray(np.asarray(self.vectors.matrix).any(axis=1))

    @cached_property
    def _word_scores(self) -> Floats32:
        """What each word adds to the scores (V, k)."""
        weights = self.arrays["weights"] * self.arrays["factor"]
        return np.asarray(np.asarray(self.vectors.matrix, np.float32) @ weights, np.float32)

    def _read_sentences(self, texts: Iterable[Any]) -> list[list[str]]:
        """Words of sentences; a text is divided into words and punctuation."""
        sentences = [split_tokens(text) if isinstance(text, str) else [*text] for text in texts]
        return [check_strings(words, f"texts[{number}]") for number, words in enumerate(sentences)]

    def split_words(self, text: str) -> list[str]:
        """The words and punctuation of a text, as a tagger reads them.

        Parameters
        ----------
        text: the text.
        """
        return split_tokens(text)

    def _tag(self, sentences: list[list[str]]) -> list[list[str]]:
        assert isinstance(self.kind, Tagger)
        sequences = self._lookup.read_tokens(sentences)
        names = self.kind.name_tags(self.arrays, sequences, self.labels) if len(sequences.ids) else []
        ends = sequences.ends.tolist()
        return [names[end - len(words) : end] for end, words in zip(ends, sentences, strict=True)]

    def _explain_tags(self, sentences: list[list[str]]) -> list[Explanation]:
        assert isinstance(self.kind, Tagger)
        sequences = self._lookup.read_tokens(sentences)
        gates: Floats32 | None
        if "widths" in self.arrays:
            gates = self.kind.weigh_sources(self.arrays, sequences.table[sequences.ids])
            types = [str(source["name"]) for source in self.manifest["sources"]]
        else:
            gates = self.kind.open_gate(self.arrays, sequences)
            types = sorted({name.partition("-")[2] or name for name in self.labels})
        if gates is None:
            what = "This tagger has no experts or several sets of vectors to show; fit it with --with experts."
            raise UsageError(what, code="no-explanation")
        found = []
        for words, tags, end in zip(sentences, self._tag(sentences), sequences.ends.tolist(), strict=True):
            part = gates[end - len(words) : end]
            experts = tuple((name, tuple(map(float, part[:, place]))) for place, name in enumerate(types))
            found.append(Explanation(" ".join(tags), tuple(words), experts=experts))
        return found

    def _find_pairs(self, pairs: Sequence[tuple[str, str]]) -> list[list[str]]:
        """The words of the two texts, with a bar between them."""
        sides = [self._find_words([pair[side] for pair in pairs]) for side in (0, 1)]
        return [[*first, "|", *second] for first, second in zip(*sides, strict=True)]

    def _find_words(self, texts: Sequence[str]) -> list[list[str]]:
        """The words of each text, as they are read."""
        spans = self._lookup._matcher.match(texts)
        words: list[list[str]] = [[] for _ in texts]
        for text, start, end in zip(spans.text_index.tolist(), spans.starts.tolist(), spans.ends.tolist(), strict=True):
            words[text].append(texts[text][start:end])
        return words
