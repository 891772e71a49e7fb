"""`WordVectors`: a vocabulary and a matrix, and perhaps n-grams for words it has never seen.

It knows no files, no teacher, no test.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import UsageError, VocabularyError, suggest
from stillvec.subwords import SubwordTable
from stillvec.vocabulary import Vocabulary, WordMatcher
from stillvec.vocabulary.folding import fold

Matrix = NDArray[Any]
_BLOCK = 1 << 16  # rows scored at once, so that a memory-mapped matrix is never copied whole
_QUERIES = 1024  # asked at once
_SCORES = 1 << 22  # cosines held at once
_ROUNDING = 1e-5  # of a product and a quotient in fp32, and more


class WordVectors:
    """One vector per word. Immutable: `with_matrix` and `subset` make new ones.

    >>> vectors = WordVectors(Vocabulary(["ice", "snow", "fire"]), [[1, 0], [0.9, 0.1], [-1, 0.2]])
    >>> vectors.nearest("ice", k=1)[0][0]
    'snow'

    With `subwords`, a table of character n-grams, out-of-vocabulary words have vectors too. `provenance` is how the
    vectors were made (the manifest of a folder); `save` writes it.
    """

    def __init__(
        self,
        vocabulary: Vocabulary | Iterable[str],
        matrix: Any,
        *,
        subwords: SubwordTable | None = None,
        provenance: Mapping[str, Any] | None = None,
    ) -> None:
        self.vocabulary = vocabulary if isinstance(vocabulary, Vocabulary) else Vocabulary(vocabulary)
        rows = np.asanyarray(matrix)
        if rows.dtype.kind != "f":
            rows = rows.astype(np.float32)
        if rows.ndim != 2 or len(rows) != len(self.vocabulary):
            raise UsageError(
                f"{len(self.vocabulary)} words need a matrix of as many rows, and one of shape {rows.shape} came."
            )
        if subwords is not None and subwords.dim != rows.shape[1]:
            raise UsageError(f"Words have {rows.shape[1]} numbers each and n-grams {subwords.dim}; both need as many.")
        rows = rows.view()
        rows.setflags(write=False)
        self.matrix: Matrix = rows
        self.subwords = subwords
        self.provenance: Mapping[str, Any] = {} if provenance is None else provenance

    @property
    def words(self) -> tuple[str, ...]:
        return self.vocabulary.words

    @property
    def dim(self) -> int:
        return int(self.matrix.shape[1])

    def __len__(self) -> int:
        return len(self.vocabulary)

    def __iter__(self) -> Iterator[str]:
        return iter(self.vocabulary)

    def __contains__(self, word: object) -> bool:
        return word in self.vocabulary

    def __repr__(self) -> str:
        return f"WordVectors({len(self):,} words x {self.dim}{', and n-grams' if self.subwords is not None else ''})"

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from stillvec.notebook import table

        told = {name: _told(self.provenance.get(name)) for name in ("method", "teacher", "corpus")}
        facts: dict[str, object] = {"words": len(self), "dimensions": self.dim, "numbers": self.matrix.dtype.name}
        facts |= {name: value for name, value in told.items() if value}
        if self.subwords is not None:
            ngrams = self.subwords.ngrams
            facts["n-grams"] = f"of {ngrams.minn} to {ngrams.maxn} characters in {ngrams.buckets:,} rows"
        first = "most frequent" if self.vocabulary.counts.any() else "first"
        facts[first] = ", ".join(self.words[:12]) + (", …" if len(self) > 12 else "")
        return table("WordVectors", facts)

    def __deepcopy__(self, memo: dict[int, Any]) -> WordVectors:
        return self  # nobody can change it, and scikit-learn copies its settings again and again

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self.vocabulary, np.asarray(self.matrix), self.subwords, dict(self.provenance))

    @overload
    def __getitem__(self, word: str) -> NDArray[np.float32]: ...
    @overload
    def __getitem__(self, word: Sequence[str]) -> NDArray[np.float32]: ...
    def __getitem__(self, word: str | Sequence[str]) -> NDArray[np.float32]:
        """The vector of a word (dim,), or of several (n, dim); of an unseen one by its n-grams, if there are any."""
        if isinstance(word, str):
            row = self._row_or_unseen(word)
            return self.from_subwords([word])[0] if row < 0 else np.array(self.matrix[row], np.float32)
        rows = [self._row_or_unseen(each) for each in word]
        unseen = [at for at, row in enumerate(rows) if row < 0]
        if not unseen:
            return np.array(self.matrix[rows], np.float32).reshape(-1, self.dim)
        found = np.zeros((len(rows), self.dim), np.float32)
        known = [at for at, row in enumerate(rows) if row >= 0]
        found[known] = self.matrix[[rows[at] for at in known]]
        found[unseen] = self.from_subwords([word[at] for at in unseen])
        return found

    def from_subwords(self, strings: Sequence[str]) -> NDArray[np.float32]:
        """What the n-grams say of each string (n, dim), known or not."""
        if self.subwords is None:
            raise UsageError("The vectors have no n-grams to make other words of; refine them with --oov subword.")
        return self.subwords.vectors([fold(each, self.vocabulary.lowercase) for each in strings])

    def similarity(self, a: str, b: str) -> float:
        """Cosine of two words; 0 where one of them is the zero vector."""
        x, y = self[a].astype(np.float64), self[b].astype(np.float64)
        length = float(np.linalg.norm(x) * np.linalg.norm(y))
        return float(x @ y) / length if length else 0.0

    def nearest(
        self, query: str | NDArray[Any], k: int = 10, *, exclude: Iterable[str] = ()
    ) -> list[tuple[str, float]]:
        """The `k` words of highest cosine with a word or a vector; the word itself is not among them."""
        left_out = {row for word in exclude if (row := self.vocabulary.row(word)) is not None}
        if isinstance(query, str):
            left_out.add(self._row_or_unseen(query))
            query = self[query]
        return self._best(self._cosines(query), k, left_out)

    def analogy(self, a: str, b: str, c: str, k: int = 1, *, method: str = "3cosadd") -> list[tuple[str, float]]:
        """What is to `c` as `b` is to `a`; Mikolov's 3CosAdd or Levy and Goldberg's 3CosMul."""
        cos_a, cos_b, cos_c = (self._cosines(self[word]) for word in (a, b, c))
        if method == "3cosadd":
            # the unit sum would only divide all scores by one number
            scores = cos_b - cos_a + cos_c
        elif method == "3cosmul":
            scores = (1 + cos_b) * (1 + cos_c) / ((1 + cos_a) + 2e-3) / 2
        else:
            raise UsageError(f"There is no analogy method {method!r}; {suggest(method, ('3cosadd', '3cosmul'))}")
        return self._best(scores, k, {self._row_or_unseen(word) for word in (a, b, c)})

    def nearest_batch(
        self, queries: Sequence[str] | NDArray[Any], k: int = 10, *, exclude: Iterable[str] = ()
    ) -> list[list[tuple[str, float]]]:
        """`nearest` for many words, or the rows of a table (n, dim), in one product of matrices a block."""
        left_out = {row for word in exclude if (row := self.vocabulary.row(word)) is not None}
        if isinstance(queries, np.ndarray):
            own = [left_out] * len(queries)
        else:
            own = [left_out | {self._row_or_unseen(word)} for word in queries]
            queries = self[queries]
        wanted = self._unit(queries, (len(queries), self.dim))  # (n, dim)
        more = min(_checked(k) + max(map(len, own), default=0), len(self))
        found: list[list[tuple[str, float]]] = []
        for first in range(0, len(wanted), _QUERIES):
            rows, scores = self._best_each(wanted[first : first + _QUERIES], more)
            for left, row, score in zip(own[first : first + _QUERIES], rows.tolist(), scores.tolist(), strict=True):
                pairs = zip(row, score, strict=True)
                found.append([(self.words[at], value) for at, value in pairs if at not in left][:k])
        return found

    def encode(self, texts: str | Sequence[str], *, weights: NDArray[Any] | None = None) -> NDArray[np.float32]:
        """The mean vector of the known words of each text (n, dim), zero where it has none; one text gives (dim,).

        With `weights`, a number a word (V,), it is the weighted mean `sum w_i v_i / sum w_i`. Where there are n-grams,
        unseen words count too, and weigh as much as the heaviest known one.
        """
        from scipy.sparse import csr_array

        if isinstance(texts, str):
            return np.asarray(self.encode([texts], weights=weights)[0])
        rows, text = self._finder.match_rows(texts)
        known = rows >= 0
        unseen = np.unique(text[~known]) if self.subwords is not None else ()
        rows, text = rows[known], text[known]
        weight = self._weights(weights)
        given = weight[rows]  # (W,)
        ends = np.cumsum(np.bincount(text, minlength=len(texts)))
        table = self.matrix
        if table.dtype != np.float32 or not table.flags.c_contiguous:  # only the rows that are used are turned
            used, place = np.unique(rows, return_inverse=True)
            rows = place.astype(np.int32)
            table = np.ascontiguousarray(table[used], np.float32)
        start = np.concatenate([np.zeros(1, np.int64), ends])
        sums = csr_array((given, rows, start), shape=(len(texts), len(table))) @ np.asarray(table)
        totals = np.bincount(text, given, len(texts)).astype(np.float64)
        if len(unseen):
            heaviest = weight.max(initial=1) if len(self) else 1
            more, times = self._unseen_sums([texts[at] for at in unseen])
            sums[unseen] += heaviest * more
            totals[unseen] += heaviest * times
        sums /= np.where(totals > 0, totals, 1)[:, None].astype(np.float32)
        return np.asarray(sums, np.float32)

    def with_matrix(
        self, matrix: Any, *, subwords: SubwordTable | None = None, provenance: Mapping[str, Any] | None = None
    ) -> WordVectors:
        """Other vectors of the same words. The provenance is kept unless one is given.

        The n-grams are dropped unless new ones are given, since they were fitted to the old matrix.
        """
        history = self.provenance if provenance is None else provenance
        return WordVectors(self.vocabulary, matrix, subwords=subwords, provenance=history)

    def with_provenance(self, provenance: Mapping[str, Any]) -> WordVectors:
        """The same vectors with another account of how they were made."""
        return self.with_matrix(self.matrix, subwords=self.subwords, provenance=provenance)

    def subset(self, words: Iterable[str]) -> WordVectors:
        """The vectors of some of the words, in the order given."""
        rows = [self._row(word) for word in words]
        counts = self.vocabulary.counts[rows].tolist()
        names = [self.words[row] for row in rows]
        vocabulary = Vocabulary(names, counts, lowercase=self.vocabulary.lowercase)
        return WordVectors(vocabulary, self.matrix[rows], subwords=self.subwords, provenance=self.provenance)

    def _unseen_sums(self, texts: Sequence[str]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """The sum of the unseen words of each text (n, dim), and how many it has (n,)."""
        from scipy.sparse import csr_array

        found = self._finder.match(texts)
        chosen = np.flatnonzero(found.ids < 0)
        place: dict[str, int] = {}
        spans = zip(*(each[chosen].tolist() for each in (found.text_index, found.starts, found.ends)), strict=True)
        at = [place.setdefault(texts[text][start:end], len(place)) for text, start, end in spans]
        ones = np.ones(len(at), np.float32)
        counts = csr_array((ones, (found.text_index[chosen], at)), shape=(len(texts), len(place)))
        times = np.bincount(found.text_index[chosen], minlength=len(texts)).astype(np.float32)
        return np.asarray(counts @ self.from_subwords([*place])), times

    def _row_or_unseen(self, word: str) -> int:
        """The row of a word; -1 for one that only its n-grams can tell about."""
        row = self.vocabulary.row(word)
        return -1 if row is None and word and self.subwords is not None else self._row(word)

    def _row(self, word: str) -> int:
        row = self.vocabulary.row(word)
        if row is None:
            raise VocabularyError(f"The vectors have no word {word!r}; {self._hint(word)}")
        return row

    def _hint(self, word: str) -> str:
        """At most three known words: those that differ in case first."""
        lower, candidates = word.lower(), self.words[:200_000]
        same = [other for other in candidates if other.lower() == lower]
        near = [other for other in candidates if other[:2].lower() == lower[:2] and abs(len(other) - len(word)) < 3]
        names = [*dict.fromkeys([*same, *difflib.get_close_matches(word, near, n=3)])][:3]
        return f"did you mean {' or '.join(map(repr, names))}?" if names else "try another spelling."

    @cached_property
    def _finder(self) -> WordMatcher:
        return WordMatcher(self.vocabulary, lazy=True)

    @cached_property
    def _norms(self) -> NDArray[np.float32]:
        blocks = (np.asarray(self.matrix[i : i + _BLOCK], np.float32) for i in self._starts())
        norms = np.concatenate([np.linalg.norm(block, axis=1) for block in blocks])
        return np.where(norms > 0, norms, np.inf).astype(np.float32)

    def _starts(self) -> range:
        """Where blocks of rows begin: one, even where there are no rows, as numpy joins no empty list."""
        return range(0, max(1, len(self)), _BLOCK)

    def _cosines(self, vector: NDArray[Any]) -> NDArray[np.float32]:
        wanted = self._unit(vector, (self.dim,))
        if self.matrix.dtype == np.float32:
            dots = np.asarray(self.matrix @ wanted)  # nothing is copied, so no blocks
        else:
            dots = np.concatenate(
                [np.asarray(self.matrix[i : i + _BLOCK], np.float32) @ wanted for i in self._starts()]
            )
        dots /= self._norms
        return dots

    def _unit(self, vectors: NDArray[Any], shape: tuple[int, ...]) -> NDArray[np.float32]:
        wanted = np.asarray(vectors, np.float32)
        if wanted.shape != shape:
            raise UsageError(f"A query vector of {self.dim} numbers is wanted, and one of shape {wanted.shape} came.")
        lengths = np.linalg.norm(wanted, axis=-1, keepdims=True)
        return np.asarray(wanted / np.where(lengths > 0, lengths, 1))

    def _best_each(self, wanted: NDArray[np.float32], k: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """The rows and cosines of the k best for each query (n, k); of a block, only what beats the k best so far."""
        rows = np.zeros((len(wanted), k), np.int64)
        scores = np.full((len(wanted), k), -np.inf, np.float32)
        step = max(k + 1, _SCORES // max(1, len(wanted)))
        held: list[tuple[NDArray[Any], ...]] = []  # found and not yet merged, which costs about as much as a block
        for first in range(0, len(self) if k else 0, step):
            norms = self._norms[first : first + step]
            dots = wanted @ np.asarray(self.matrix[first : first + step], np.float32).T  # (n, B)
            least = scores[:, -1:]
            if first == 0:  # nothing is beaten yet: all from the k-th of some of this block on
                few = max(4 * k, _BLOCK >> 6)
                some = np.partition(dots[:, :few] / norms[:few], -k, axis=1)
                least = np.nextafter(some[:, -k, None], np.float32(-np.inf))
            query, row = np.divmod(np.flatnonzero(dots > _least(least, norms)), len(norms))
            cosines = dots[query, row] / norms[row]
            beats = cosines > least[query, 0]
            held.append((query[beats], row[beats] + first, cosines[beats]))
            if first == 0 or first + step >= len(self) or sum(len(each[0]) for each in held) > len(wanted):
                _merge(rows, scores, *map(np.concatenate, zip(*held, strict=True)))
                held.clear()
        return rows, scores

    def _weights(self, weights: NDArray[Any] | None) -> NDArray[np.float32]:
        if weights is None:
            return self._ones
        given = np.asarray(weights, np.float32)
        if given.shape != (len(self),) or not np.isfinite(given).all() or (given < 0).any():
            raise UsageError(
                f"{len(self)} words need as many weights, finite and not below 0; an array of shape {given.shape} came"
                f"{'' if given.shape != (len(self),) else ' with others'}."
            )
        return given

    @cached_property
    def _ones(self) -> NDArray[np.float32]:
        return np.ones(len(self), np.float32)

    def _best(self, scores: NDArray[np.float32], k: int, left_out: set[int]) -> list[tuple[str, float]]:
        wanted = min(_checked(k) + len(left_out), len(scores))
        if not len(scores):
            return []
        some = scores[: max(_BLOCK >> 4, 4 * wanted)]  # the best of all are at least as good as the best of these
        top = np.flatnonzero(scores >= np.partition(some, len(some) - wanted)[len(some) - wanted])
        top = top[np.lexsort((top, -scores[top]))]
        return [(self.words[row], float(scores[row])) for row in top.tolist() if row not in left_out][:k]


def _least(cosines: NDArray[np.float32], norms: NDArray[np.float32]) -> NDArray[np.float32]:
    """What a dot product must exceed if its cosine is to exceed these, whichever of the norms is its own."""
    longest = norms.max(where=np.isfinite(norms), initial=0)
    bounds = cosines * norms.min() * (1 - _ROUNDING), cosines * longest * (1 + _ROUNDING)
    return np.asarray(np.where(cosines > 0, *bounds))


def _rebuild(
    vocabulary: Vocabulary, matrix: Matrix, subwords: SubwordTable | None, provenance: Mapping[str, Any]
) -> WordVectors:
    return WordVectors(vocabulary, matrix, subwords=subwords, provenance=provenance)


def _told(fact: object) -> str:
    """A method, teacher or corpus of a manifest in a few words."""
    if not isinstance(fact, Mapping):
        return "" if fact is None else str(fact)
    sources = fact.get("sources")
    named = fact.get("name") or fact.get("from") or (", ".join(map(str, sources)) if sources else "")
    words = f"{fact['words']:,} words" if isinstance(fact.get("words"), int) and fact["words"] else ""
    return ": ".join(filter(None, [str(named), words]))


def _checked(k: int) -> int:
    if k < 1:
        raise UsageError(f"At least one neighbour must be asked for, and k is {k}.")
    return k


def _merge(
    rows: NDArray[np.int64],
    scores: NDArray[np.float32],
    query: NDArray[np.int64],
    row: NDArray[np.int64],
    score: NDArray[np.float32],
) -> None:
    """Put (query, row, score) among the k best of each query (n, k), in place; of equals the first row stays."""
    k = rows.shape[1]
    touched = np.unique(query)
    query = np.concatenate([np.repeat(touched, k), query])
    row = np.concatenate([rows[touched].ravel(), row])
    score = np.concatenate([scores[touched].ravel(), score])
    order = np.lexsort((row, -score, query))
    begins = np.searchsorted(query[order], touched)
    best = order[begins[:, None] + np.arange(k)]  # (touched, k)
    rows[touched], scores[touched] = row[best], score[best]
