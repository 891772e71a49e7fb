"""`Head`: a fitted head with the vectors that it reads; prediction needs NumPy and SciPy alone."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import UsageError
from stillvec.heads.canonical_names import CanonicalNames
from stillvec.heads.head_kind import EncodesTexts, HeadKind, to_probabilities
from stillvec.heads.knn_head import Knn
from stillvec.heads.linear_head import Linear
from stillvec.heads.lookup import Lookup
from stillvec.heads.marked_texts import MarkedText, parse_marked_text
from stillvec.heads.numpy_layers import Floats32
from stillvec.heads.oov_policy import OovPolicy
from stillvec.heads.pair_head import join_pairs
from stillvec.heads.sequence_batches import Sequences
from stillvec.heads.span_head import SpanHead, read_spans
from stillvec.heads.tagger_head import Tagger
from stillvec.heads.word_splitting import TOKEN
from stillvec.input_checks import check_count, check_strings, describe
from stillvec.vectors import WordVectors
from stillvec.vocabulary import WordMatcher

_BLOCK = 4096  # texts at once

NameSource = CanonicalNames | str | os.PathLike[str] | None
Spans = tuple[tuple[int, int], ...]  # the first character of each word, and the one after its last


@dataclasses.dataclass(frozen=True)
class Explanation:
    """Why a text has its label, or its words their tags."""

    label: str  # the most likely one; of a tagger, the tags
    words: tuple[str, ...] = ()
    weights: tuple[float, ...] = ()  # of each word; of a `tagger`, the probability of its tag
    spans: Spans = ()  # where the words are; () if words were given
    tags: tuple[str, ...] = ()  # of a tagger
    examples: tuple[tuple[str, str, float], ...] = ()  # of a `knn`, the nearest training texts: (text, label, cosine)
    experts: tuple[tuple[str, tuple[float, ...]], ...] = ()  # of a tagger: (type or source, its weight per word)


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

    @property
    def example(self) -> Any:
        """The shortest item that it reads."""
        if isinstance(self.kind, SpanHead):
            return MarkedText(("a",), (0, 0) * self.kind.count_spans(self.arrays))
        return ("a", "a") if self.kind.unit == "pair" else "a"

    def predict(self, texts: Iterable[Any], canonical: NameSource = None) -> list[Any]:
        """The label of each text; a tuple of labels if texts may have several; of a tagger, the tags of each sentence.

        Parameters
        ----------
        texts: texts; for a tagger also sentences as lists of words; for pairs, (text, text); for spans, texts with a
            span in [brackets] or (words, (first, last)), two spans with four places.
        canonical: names, or their file, whose canonical ones are also tried in their place (see `CanonicalNames`).
        """
        if isinstance(self.kind, Tagger) and canonical is None:
            return self._tag(self._read_sentences(texts)[0])
        likely = self.predict_proba(texts, canonical)
        if self.multilabel:
            return [tuple(self.labels[place] for place in np.flatnonzero(row)) for row in likely > self.threshold]
        return [self.labels[place] for place in likely.argmax(axis=1).tolist()]

    def predict_proba(self, texts: Iterable[Any], canonical: NameSource = None) -> Floats32:
        """The probability of each label (n, k), in the order of `labels`.

        Parameters
        ----------
        texts: the texts, pairs or spans, as in `predict`.
        canonical: as in `predict`.
        """
        if isinstance(self.kind, SpanHead) and canonical is not None:
            raise UsageError("Canonical names are for heads that label texts or pairs.", code="no-canonical")
        if isinstance(self.kind, Tagger):
            cure = "use explain, which has those of tags"
            raise UsageError(f"A tagger has no probabilities of labels; {cure}.", code="no-probabilities")
        given = self._check(texts)
        likely = to_probabilities(self.score(given), several=self.multilabel)
        return likely if canonical is None else self._try_canonical(given, likely, canonical)

    def score(self, texts: Sequence[Any]) -> Floats32:
        """The scores of labels (n, k), whose softmax or sigmoid are the probabilities.

        Parameters
        ----------
        texts: the texts, or pairs of texts, or spans.
        """
        scores = np.zeros((len(texts), len(self.labels)), np.float32)
        for start in range(0, len(texts), _BLOCK):
            scores[start : start + _BLOCK] = self._score_block(texts[start : start + _BLOCK])
        return scores

    def explain(self, texts: Iterable[Any], n_examples: int = 3) -> list[Explanation]:
        """Which words and training texts decided; of a tagger, how likely each tag is.

        Parameters
        ----------
        texts: the texts, as in `predict`.
        n_examples: training texts of a `knn` (default: 3).
        """
        check_count(n_examples, "n_examples")
        if isinstance(self.kind, Tagger):
            return self._explain_tags(*self._read_sentences(texts))
        given = self._check(texts)
        label = self.score(given).argmax(axis=1)
        sequences = self._read(given)
        if isinstance(self.kind, Knn):
            found = self.kind.find_examples(self.arrays, sequences, n_examples)
            named = [tuple((text, self.labels[row], cosine) for text, row, cosine in near) for near in found]
            return [Explanation(self.labels[at], examples=near) for at, near in zip(label.tolist(), named, strict=True)]
        weights = self.kind.explain(self.arrays, sequences, label)
        finders: dict[str, Callable[[Any], tuple[list[list[str]], list[Spans]]]]
        finders = {"pair": self._find_pairs, "span": _find_spans}
        find = finders.get(self.kind.unit, self._find_words)
        words, spans = find(given)
        parts = np.split(weights, sequences.ends[:-1])
        return [
            Explanation(self.labels[at], tuple(of_text), tuple(map(float, part)), places)
            for at, of_text, places, part in zip(label.tolist(), words, spans, parts, strict=True)
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

    def _try_canonical(self, texts: list[Any], likely: Floats32, source: NameSource) -> Floats32:
        names = source if isinstance(source, CanonicalNames) else CanonicalNames.read(source)  # type: ignore[arg-type]
        is_pair = self.kind.unit == "pair"
        versions, item = names.vary(texts if is_pair else [(text,) for text in texts])
        scores = self.score([*versions] if is_pair else [text for (text,) in versions])
        others = to_probabilities(scores, several=self.multilabel)
        if not self.multilabel:
            return names.combine(likely, others, item).astype(np.float32)
        own, others = (np.stack([1 - each, each], axis=-1) for each in (likely, others))  # (n, k, 2)
        return names.combine(own, others, item)[..., 1].astype(np.float32)

    @cached_property
    def _shared_lookup(self) -> Lookup:
        oov: OovPolicy = "skip" if self.vectors.subwords is None else "subword"
        return Lookup(self.vectors, oov, self.arrays.get("unknown"))

    @property
    def _lookup(self) -> Lookup:
        return self._shared_lookup.renew()

    def _read(self, texts: Sequence[Any]) -> Sequences:
        if self.kind.unit == "pair":
            return join_pairs(self._lookup.read_texts([text for pair in texts for text in pair]))
        if self.kind.unit == "span":
            return read_spans(self._lookup, self._check(texts))
        return self._lookup.read_texts(texts)

    def _check(self, texts: Iterable[Any]) -> list[Any]:
        if self.kind.unit == "pair":
            pairs = [pair if isinstance(pair, str) else tuple(pair) for pair in texts]
            for number, pair in enumerate(pairs):
                if isinstance(pair, str) or len(pair) != 2 or not all(isinstance(text, str) for text in pair):
                    raise UsageError.expected("a pair of texts", describe(pair), where=f"texts[{number}]")
            return pairs
        if isinstance(self.kind, SpanHead):
            n_spans = self.kind.count_spans(self.arrays)
            return [parse_marked_text(item, n_spans) for item in texts]
        return check_strings(texts, "texts", what="texts")

    def _score_block(self, texts: Sequence[Any]) -> Floats32:
        plain = type(self.kind) is Linear and not self.kind.compares_by_cosine and "hidden" not in self.arrays
        if plain and self.vectors.subwords is None:
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

    def _read_sentences(self, texts: Iterable[Any]) -> tuple[list[list[str]], list[Spans]]:
        """Words of sentences, and where they are in a text, which is divided into words and punctuation."""
        sentences, spans = [], []
        for number, text in enumerate(texts):
            found = [*TOKEN.finditer(text)] if isinstance(text, str) else None
            words = [*text] if found is None else [match.group() for match in found]
            sentences.append(check_strings(words, f"texts[{number}]"))
            spans.append(tuple(match.span() for match in found or ()))
        return sentences, spans

    def _tag(self, sentences: list[list[str]]) -> list[list[str]]:
        assert isinstance(self.kind, Tagger)
        sequences = self._lookup.read_tokens(sentences)
        names = self.kind.name_tags(self.arrays, sequences, self.labels) if len(sequences.ids) else []
        ends = sequences.ends.tolist()
        return [names[end - len(words) : end] for end, words in zip(ends, sentences, strict=True)]

    def _explain_tags(self, sentences: list[list[str]], spans: list[Spans]) -> list[Explanation]:
        assert isinstance(self.kind, Tagger)
        sequences = self._lookup.read_tokens(sentences)
        chances, gates = self.kind.explain_tags(self.arrays, sequences)
        types = sorted({name.partition("-")[2] or name for name in self.labels})
        if "widths" in self.arrays:
            gates = self.kind.weigh_sources(self.arrays, sequences.table[sequences.ids])
            types = [str(source["name"]) for source in self.manifest["sources"]]
        number = {name: place for place, name in enumerate(self.labels)}
        found = []
        said = self._tag(sentences)
        for words, places, tags, end in zip(sentences, spans, said, sequences.ends.tolist(), strict=True):
            rows = slice(end - len(words), end)
            likely: tuple[float, ...] = ()
            if chances is not None:
                likely = tuple(float(row[number[tag]]) for row, tag in zip(chances[rows], tags, strict=True))
            opened = [] if gates is None else gates[rows].T.tolist()
            experts = tuple(zip(types, map(tuple, opened), strict=False))
            found.append(Explanation(" ".join(tags), tuple(words), likely, places, tuple(tags), experts=experts))
        return found

    def _find_pairs(self, pairs: Sequence[tuple[str, str]]) -> tuple[list[list[str]], list[Spans]]:
        """The words of the two texts, with a bar between them, and no places."""
        sides = [self._find_words([pair[side] for pair in pairs])[0] for side in (0, 1)]
        return [[*first, "|", *second] for first, second in zip(*sides, strict=True)], [()] * len(pairs)

    def _find_words(self, texts: Sequence[str]) -> tuple[list[list[str]], list[Spans]]:
        """The words of each text, as they are read, and where they are."""
        found = self._shared_lookup._matcher.match(texts)
        spans: list[list[tuple[int, int]]] = [[] for _ in texts]
        for text, start, end in zip(found.text_index.tolist(), found.starts.tolist(), found.ends.tolist(), strict=True):
            spans[text].append((start, end))
        words = [[text[start:end] for start, end in of_text] for text, of_text in zip(texts, spans, strict=True)]
        return words, [*map(tuple, spans)]


def _find_spans(items: Sequence[MarkedText]) -> tuple[list[list[str]], list[Spans]]:
    """The words of the spans of each item, with a bar between two, and no places."""
    words = [" | ".join(map(" ".join, item.spans)).split(" ") for item in items]
    return words, [()] * len(items)
