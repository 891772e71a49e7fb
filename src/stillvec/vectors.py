"""`WordVectors`: a vocabulary, a matrix, and optionally a table of character n-grams for out-of-vocabulary words."""

from __future__ import annotations

import difflib
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import StillvecWarning, UnknownWordError, UsageError
from stillvec.gensim_names import GensimNames, Neighbours
from stillvec.input_checks import check_arguments, check_count, check_numbers, check_strings, describe
from stillvec.numerics import cosines, principal_axes, second_moments, unit_rows
from stillvec.numerics.array_types import Floats32 as Floats
from stillvec.numerics.array_types import Matrix
from stillvec.progress import Progress, show_progress
from stillvec.row_search import RowSearch, best_rows, check_finite
from stillvec.sense_table import SenseTable
from stillvec.subwords import SubwordTable
from stillvec.text_means import TextMeans, find_smoothing
from stillvec.vocabulary import Vocabulary, WordMatcher
from stillvec.vocabulary.folding import fold
from stillvec.vocabulary.inflections import OVERSAMPLING, Inflections, NeighbourGroups

Array = NDArray[np.float64]
Query = str | int | Matrix
Words = list[str] | tuple[str, ...]
_QUERIES = 1024  # per batch
_TEXTS = 1 << 13  # per step of the progress bar
_VARIANCE_ROWS = 4096  # sampled
ORDERED = 0.8  # `measure_order` from which dimensions count as ordered by importance


class WordVectors(GensimNames):
    """One vector per word. Immutable: `with_matrix` and `subset` make new ones.

    >>> vectors = WordVectors(Vocabulary(["ice", "snow", "fire"]), [[1, 0], [0.9, 0.1], [-1, 0.2]])
    >>> vectors.nearest("ice", k=1)[0][0]
    'snow'

    The methods of `GensimNames` have the names and results of gensim's `KeyedVectors`.

    Parameters
    ----------
    vocabulary: the words, one per row, or a `Vocabulary` with their counts.
    matrix: one row of numbers per word (V, dim).
    subwords: a table of character n-grams, which gives out-of-vocabulary words vectors (default: none).
    contexts: the context table that was trained with them, vectors or one row of numbers per word (default: none).
    senses: vectors of the senses of ambiguous words (default: none).
    provenance: how the vectors were made, the manifest of a folder; `save` writes it (default: nothing).
    """

    def __init__(
        self,
        vocabulary: Vocabulary | Iterable[str],
        matrix: Any,
        *,
        subwords: SubwordTable | None = None,
        contexts: Any = None,
        senses: SenseTable | None = None,
        provenance: Mapping[str, Any] | None = None,
    ) -> None:
        self.vocabulary = vocabulary if isinstance(vocabulary, Vocabulary) else Vocabulary(vocabulary)
        try:
            rows = np.asanyarray(matrix)
            rows = rows if rows.dtype.kind == "f" else rows.astype(np.float32)
        except (TypeError, ValueError, OverflowError):
            raise UsageError.expected("a table of numbers", describe(matrix), where="matrix") from None
        if rows.ndim != 2 or len(rows) != len(self.vocabulary):
            raise UsageError.expected(f"a matrix of {len(self.vocabulary)} rows, one per word", f"shape {rows.shape}")
        if subwords is not None and not isinstance(subwords, SubwordTable):
            raise UsageError.expected("a SubwordTable", describe(subwords), where="subwords")
        if subwords is not None and subwords.dim != rows.shape[1]:
            raise UsageError.expected(f"subword vectors of dimension {rows.shape[1]}", subwords.dim)
        if provenance is not None and not isinstance(provenance, Mapping):
            raise UsageError.expected("a mapping", describe(provenance), where="provenance")
        if senses is not None and not isinstance(senses, SenseTable):
            raise UsageError.expected("a SenseTable", describe(senses), where="senses")
        if senses is not None and senses.matrix.shape[1] != rows.shape[1]:
            raise UsageError.expected(f"senses of dimension {rows.shape[1]}", senses.matrix.shape[1])
        rows = rows.view()
        rows.setflags(write=False)
        self.matrix: Matrix = rows
        self.subwords = subwords
        self.senses = senses
        self.provenance: Mapping[str, Any] = {} if provenance is None else provenance
        table = contexts.matrix if isinstance(contexts, WordVectors) else contexts
        self._contexts = None if table is None else WordVectors(self.vocabulary, table).matrix
        if self._contexts is not None and self._contexts.shape != rows.shape:
            raise UsageError.expected(f"a table of shape {rows.shape}", self._contexts.shape, where="contexts")

    @property
    def contexts(self) -> WordVectors | None:
        """The context table of the same training as vectors, such as the output vectors of skip-gram; None without one.

        `stillvec train --context-table` keeps it; `with_matrix` and refine steps drop it.
        """
        if self._contexts is None:
            return None
        return WordVectors(self.vocabulary, self._contexts, provenance={**self.provenance, "table": "contexts"})

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
        """HTML summary for notebooks."""
        from stillvec.notebook import table

        facts: dict[str, object] = {"words": len(self), "dimensions": self.dim, "numbers": self.matrix.dtype.name}
        for name in ("method", "teacher", "corpus"):
            facts |= {name: text} if (text := _summarize(self.provenance.get(name))) else {}
        if self.subwords is not None:
            ngrams = self.subwords.ngrams
            facts["n-grams"] = f"of {ngrams.minn} to {ngrams.maxn} characters in {ngrams.buckets:,} rows"
        first = "most frequent" if self.vocabulary.counts.any() else "first"
        facts[first] = ", ".join(self.words[:12]) + (", …" if len(self) > 12 else "")
        return table("WordVectors", facts)

    def __deepcopy__(self, memo: dict[int, Any]) -> WordVectors:
        return self  # immutable, and scikit-learn copies its parameters often

    def __reduce__(self) -> tuple[Any, ...]:
        tables: dict[str, Any] = {"subwords": self.subwords, "contexts": self._contexts, "senses": self.senses}
        create = partial(WordVectors, **tables, provenance=dict(self.provenance))
        return create, (self.vocabulary, np.asarray(self.matrix))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The columns `word`, `count` and `vector`, for Polars, DuckDB, pandas, pyarrow and other readers of Arrow."""
        from stillvec.arrow_stream import open_stream

        stream = open_stream(self.words, self.vocabulary.counts, self.matrix, self.vocabulary.lowercase)
        return stream.__arrow_c_stream__(requested_schema)

    def __getitem__(self, word: str | int | Iterable[str | int]) -> Floats:
        """The vector of a word or row (dim,) or of several (n, dim), `v["ice"]`, `v[0]` or `v[["ice", "snow"]]`.

        An OOV word has the vector of its n-grams, if there is a table.
        """
        if isinstance(word, str | int | np.integer):
            row = self._row_or_oov(word)
            vector = self.from_subwords([str(word)])[0] if row < 0 else np.array(self.matrix[row], np.float32)
            return check_finite(vector, [word])
        if not isinstance(word, Iterable):
            raise UsageError.expected("a word, a row number, or a list of them", describe(word))
        words = [*word]
        rows = [self._row_or_oov(item) for item in words]
        oov = [at for at, row in enumerate(rows) if row < 0]
        if not oov:
            return check_finite(np.array(self.matrix[rows], np.float32).reshape(-1, self.dim), words)
        result = np.zeros((len(rows), self.dim), np.float32)
        known = [at for at, row in enumerate(rows) if row >= 0]
        result[known] = self.matrix[[rows[at] for at in known]]
        result[oov] = self.from_subwords([str(words[at]) for at in oov])
        return check_finite(result, words)

    def from_subwords(self, strings: Sequence[str]) -> Floats:
        """Vectors of strings from their character n-grams (n, dim), for known words too.

        Parameters
        ----------
        strings: words, known or not.
        """
        if self.subwords is None:
            cure = "fit one with stillvec refine --oov subword"
            raise UsageError.expected("vectors with a subword table", "none", cure=cure)
        names = check_strings(strings, "strings", what="words")
        return self.subwords.vectors([fold(name, self.vocabulary.lowercase) for name in names])

    @overload
    def similarity(self, a: str, b: str) -> float: ...
    @overload
    def similarity(self, a: Words, b: str | Words) -> NDArray[np.float64]: ...
    @overload
    def similarity(self, a: str, b: Words) -> NDArray[np.float64]: ...
    def similarity(self, a: str | Words, b: str | Words) -> float | NDArray[np.float64]:
        """Cosine of two words; of each pair, if lists are given; 0 if one of them has a zero vector.

        >>> vectors = WordVectors(["ice", "snow", "fire"], [[1, 0], [0, 1], [-1, 0]])
        >>> vectors.similarity("ice", "fire"), vectors.similarity("ice", ["snow", "fire"]).tolist()
        (-1.0, [0.0, -1.0])

        Parameters
        ----------
        a: a word, or a list of words.
        b: a word, or a list of as many words as `a`.
        """
        if isinstance(a, str) and isinstance(b, str):
            return float(cosines(self[[a]], self[[b]])[0])
        x, y = (self[[words] if isinstance(words, str) else check_strings(words, "similarity")] for words in (a, b))
        if not isinstance(a, str) and not isinstance(b, str) and len(x) != len(y):
            cure = "give lists of the same length, or call n_similarity() for their means"
            raise UsageError.expected(f"{len(x)} words", len(y), where="similarity", cure=cure)
        size = max(len(x), len(y)) if len(x) and len(y) else 0
        return cosines(*(rows if len(rows) == size else np.repeat(rows, size, axis=0) for rows in (x, y)))

    @overload
    def nearest(
        self, query: Query, k: int = 10, *, exclude: Iterable[str] = (), group: Literal[False] = False
    ) -> Neighbours: ...
    @overload
    def nearest(
        self, query: Query, k: int = 10, *, exclude: Iterable[str] = (), group: Literal[True]
    ) -> NeighbourGroups: ...
    @overload
    def nearest(
        self, query: Words, k: int = 10, *, exclude: Iterable[str] = (), group: Literal[False] = False
    ) -> list[Neighbours]: ...
    @overload
    def nearest(
        self, query: Words, k: int = 10, *, exclude: Iterable[str] = (), group: Literal[True]
    ) -> list[NeighbourGroups]: ...
    def nearest(
        self, query: Query | Words, k: int = 10, *, exclude: Iterable[str] = (), group: bool = False
    ) -> Neighbours | NeighbourGroups | list[Neighbours] | list[NeighbourGroups]:
        """The `k` words of highest cosine with a word or a vector, without the word itself.

        >>> vectors = WordVectors(["ice", "snow", "fire"], [[1, 0], [1, 0], [-1, 0]])
        >>> vectors.nearest("ice", k=2)
        [('snow', 1.0), ('fire', -1.0)]
        >>> vectors.nearest(["ice", "fire"], k=1)
        [[('snow', 1.0)], [('ice', -1.0)]]
        >>> vectors = WordVectors(["river", "lake", "lakes", "rivers"], [[1, 0], [1, 1], [1, 2], [3, 1]])
        >>> near = vectors.nearest("river", group=True)
        >>> [(word, forms) for word, cosine, forms in near], near.forms
        ([('lake', ('lakes',))], ('rivers',))

        Parameters
        ----------
        query: a word, a vector (dim,), or a list of words, which gives a list of results.
        k: number of neighbours (default: 10).
        exclude: words to leave out, beside the query (default: none).
        group: one entry (word, cosine, forms) per word: inflections of a nearer neighbour are its `forms`, those of
            the query are `forms` of the list (default: False).
        """
        check_arguments(WordVectors.nearest, {"group": group})
        if _is_words(query):
            return self.nearest_batch(query, k, exclude=exclude, group=group)  # type: ignore[call-overload,no-any-return]
        excluded, k = self._rows_of(exclude), check_count(k, "k")
        names = [query] if isinstance(query, str) else []
        if isinstance(query, str | int | np.integer):
            row = self._row_or_oov(query)
            excluded = excluded | {row}
            names = names or [self.words[row]]
            query = self[query]
        scores = self._cosines(query)  # type: ignore[arg-type]
        if group:
            return self.inflections.group(lambda n: self._best(scores, n, excluded), k, names)
        return self._best(scores, k, excluded)

    def analogy(self, a: str, b: str, c: str, k: int = 1, *, method: str = "3cosadd") -> Neighbours:
        """a is to b as c is to what?

        >>> vectors.analogy("man", "king", "woman")  # doctest: +SKIP

        Parameters
        ----------
        a, b, c: the three words, which are never the answer.
        k: number of answers (default: 1).
        method: "3cosadd" (Mikolov et al. 2013) or "3cosmul" (Levy & Goldberg 2014) (default: 3cosadd).
        """
        check_arguments(WordVectors.analogy, locals())
        if method == "3cosadd":  # the sum of the cosines is a multiple of the cosine with the sum: one product
            of_a, of_b, of_c = (unit_rows(self[word]) for word in (a, b, c))
            target = of_b - of_a + of_c
            scores = self._cosines(target) * np.linalg.norm(target)
        elif method == "3cosmul":
            cos_a, cos_b, cos_c = (self._cosines(self[word]) for word in (a, b, c))
            scores = (1 + cos_b) * (1 + cos_c) / ((1 + cos_a) + 2e-3) / 2
        else:
            raise UsageError.unknown("analogy method", method, ("3cosadd", "3cosmul"))
        return self._best(scores, check_count(k, "k"), {self._row_or_oov(word) for word in (a, b, c)})

    @overload
    def nearest_batch(
        self,
        queries: Sequence[str] | Matrix,
        k: int = 10,
        *,
        exclude: Iterable[str] = (),
        group: Literal[False] = False,
    ) -> list[Neighbours]: ...
    @overload
    def nearest_batch(
        self, queries: Sequence[str] | Matrix, k: int = 10, *, exclude: Iterable[str] = (), group: Literal[True]
    ) -> list[NeighbourGroups]: ...
    def nearest_batch(
        self, queries: Sequence[str] | Matrix, k: int = 10, *, exclude: Iterable[str] = (), group: bool = False
    ) -> list[Neighbours] | list[NeighbourGroups]:
        """`nearest` for many words or the rows of a table (n, dim), by matrix products per block.

        Parameters
        ----------
        queries: words, or an array with one query per row (n, dim).
        k: number of neighbours per query (default: 10).
        exclude: words to leave out, beside each query (default: none).
        group: one entry per word, with its inflections, as in `nearest` (default: False).
        """
        check_arguments(WordVectors.nearest_batch, {"group": group})
        excluded, k = self._rows_of(exclude), check_count(k, "k")
        if isinstance(queries, np.ndarray) and not _is_words(queries):
            what = f"finite vectors of dimension {self.dim}"
            units = unit_rows(check_numbers(queries, "queries", (-1, self.dim), what=what))  # (n, dim)
            own, names = [excluded] * len(units), [""] * len(units)
        else:
            names = check_strings(queries, "queries", what="words")
            own = [excluded | {self._row_or_oov(word)} for word in names]
            units = unit_rows(self[names])
        if group:
            return self._group_batch(units, k, own, [[name] if name else [] for name in names])
        return self._nearest_units(units, k, own)

    def _nearest_units(self, units: Floats, k: int, excluded: Sequence[set[int]]) -> list[Neighbours]:
        """The `k` nearest words of each unit vector (n, dim), without its excluded rows."""
        n_best = min(k + max(map(len, excluded), default=0), len(self))
        results: list[Neighbours] = []
        for first in range(0, len(units), _QUERIES):
            rows, scores = self._search.best_batch(units[first : first + _QUERIES], n_best)
            parts = zip(excluded[first : first + _QUERIES], rows.tolist(), scores.tolist(), strict=True)
            for hidden, row, score in parts:
                pairs = zip(row, score, strict=True)
                results.append([(self.words[at], value) for at, value in pairs if at not in hidden][:k])
        return results

    def _group_batch(
        self, units: Floats, k: int, excluded: Sequence[set[int]], names: Sequence[Sequence[str]]
    ) -> list[NeighbourGroups]:
        """The same with one entry per word; only queries with many inflections among their neighbours are repeated."""
        results = [NeighbourGroups()] * len(units)
        pending, n_neighbours = [*range(len(units))], OVERSAMPLING * k
        while pending:
            near = self._nearest_units(units[pending], n_neighbours, [excluded[at] for at in pending])
            repeated = []
            for at, found in zip(pending, near, strict=True):
                results[at], is_complete = self.inflections.fold(found, k, names[at])
                if not is_complete and len(found) == n_neighbours:
                    repeated.append(at)
            pending, n_neighbours = repeated, n_neighbours * OVERSAMPLING
        return results

    def encode(
        self,
        texts: str | Iterable[str],
        *,
        weights: Matrix | None = None,
        sif: float | None = None,
        dimensions: int | None = None,
        normalize: bool = False,
        show_progress_bar: bool = False,
    ) -> Floats:
        """The mean vector of the known words of each text (n, dim), zero if it has none; one text gives (dim,).

        >>> vectors = WordVectors(["ice", "snow"], [[1, 0], [0, 1]])
        >>> vectors.encode("Ice and snow!").tolist(), vectors.encode(["Ice", "fire"]).tolist()
        ([0.5, 0.5], [[1.0, 0.0], [0.0, 0.0]])

        With a subword table, out-of-vocabulary words are included, with the largest weight.

        Parameters
        ----------
        texts: one text, or several.
        weights: one weight per word (V,), for the mean `sum w_i v_i / sum w_i` (default: 1 for each).
        sif: weight words by `a / (a + f)` with this a and their frequency f, instead of `weights` (`sif_weights`).
            Larger values count frequent words more (default: the rows as they are).
        dimensions: keep only the first of them, see `truncate` (default: all).
        normalize: scale the result to length one (default: False).
        show_progress_bar: show a bar in a terminal (default: False).
        """
        if sif is not None or normalize is not False or show_progress_bar is not False:  # checking takes a while
            given = {"sif": sif, "normalize": normalize, "show_progress_bar": show_progress_bar}
            check_arguments(WordVectors.encode, given)
        if sif is not None:
            if weights is not None:
                raise UsageError.conflict("Only one of weights and sif can be given")
            weights = self.sif_weights(sif)
        if dimensions is not None:
            return self.truncate(dimensions).encode(
                texts, weights=weights, normalize=normalize, show_progress_bar=show_progress_bar
            )
        if isinstance(texts, str):
            texts, one = [texts], True
        else:
            texts, one = check_strings(texts, "texts", what="texts"), False
        weight = None if weights is None else self._check_weights(weights)
        if one:
            row = self._means.encode_one(texts[0], weight)
            return unit_rows(row) if normalize else row
        size = _TEXTS if show_progress_bar else max(1, len(texts))
        parts = [np.zeros((0, self.dim), np.float32)]
        with show_progress(show_progress_bar) as listener:
            begun = time.perf_counter()
            for first in range(0, len(texts), size):
                parts.append(self._means.encode(texts[first : first + size], weight))
                if listener is not None:
                    done = min(first + size, len(texts))
                    listener(Progress("encoding", done, len(texts), "texts", time.perf_counter() - begun))
        rows = parts[-1] if len(parts) <= 2 else np.concatenate(parts)
        rows = unit_rows(rows) if normalize else rows
        return np.asarray(rows)

    def sif_weights(self, a: float = 1e-3) -> Floats:
        """Weights with which words count as `a / (a + f)`, f their frequency (V,), for `encode` (Arora et al. 2017).

        Rows that contain such a weight already, as those of `additive`, of `--for sentences` and after the step `sif`
        of `refine`, get `a / (a + f)` divided by it, so that it is not counted twice.

        >>> vectors = WordVectors(Vocabulary(["the", "ice"], [3, 1]), [[1, 0], [0, 1]])
        >>> vectors.sif_weights(0.25).tolist()
        [0.25, 0.5]

        Parameters
        ----------
        a: the constant; as large as the frequency of a word that is to count half (default: 0.001).
        """
        check_arguments(WordVectors.sif_weights, {"a": a})
        if not 0 < a < np.inf:
            raise UsageError.expected("a positive number", repr(a), where="sif")
        if not self.vocabulary.counts.any():
            raise UsageError.conflict("SIF needs word counts, which these vectors lack", cure="use weights")
        shares = self.vocabulary.frequencies()
        weights = a / (a + shares)
        for contained in self.find_smoothing():
            weights = weights * (contained + shares) / contained
        return np.asarray(weights, np.float32)

    def find_smoothing(self) -> list[float]:
        """The SIF constants of the weights that rows contain, as their provenance says."""
        return find_smoothing(self.provenance)

    def with_matrix(
        self,
        matrix: Any,
        *,
        subwords: SubwordTable | None = None,
        contexts: Any = None,
        senses: SenseTable | None = None,
        provenance: Mapping[str, Any] | None = None,
    ) -> WordVectors:
        """The same words with another matrix.

        Parameters
        ----------
        matrix: one row per word (V, dim).
        subwords: a subword table fitted to the matrix (default: none, since the old one was fitted to the old matrix).
        contexts: a context table that belongs to the matrix (default: none, for the same reason).
        senses: senses in the space of the matrix (default: none, for the same reason).
        provenance: how the new vectors were made (default: the provenance of the old ones).
        """
        history = self.provenance if provenance is None else provenance
        tables: dict[str, Any] = {"subwords": subwords, "contexts": contexts, "senses": senses}
        return WordVectors(self.vocabulary, matrix, **tables, provenance=history)

    def truncate(self, dim: int) -> WordVectors:
        """The first dimensions of each vector, as a view; warns if their order means nothing.

        Useful if the dimensions are in the order of their importance, as after the step `pca` and by the method `auto`.

        >>> WordVectors(["ice", "snow"], [[3, 1], [-3, 1]]).truncate(1)
        WordVectors(2 words x 1)

        Parameters
        ----------
        dim: how many.
        """
        share = self.measure_order(dim)
        if dim == self.dim:
            return self
        if dim not in self._truncated:
            if share < ORDERED:
                what = f"The first {dim} of {self.dim} dimensions have {share:.0%} of the variance of {dim} principal"
                message = f"{what} components; refine with pca:dim={self.dim} first."
                warnings.warn(message, StillvecWarning, stacklevel=2)
            subwords = self.subwords and SubwordTable(self.subwords.ngrams, self.subwords.matrix[:, :dim])
            history = {**self.provenance, "truncated": {"from": self.dim, "to": dim}}
            cut = WordVectors(self.vocabulary, self.matrix[:, :dim], subwords=subwords, provenance=history)
            cut.__dict__["_finder"] = self._finder
            self._truncated[dim] = cut
        return self._truncated[dim]

    def measure_order(self, dim: int) -> float:
        """The variance in the first dimensions, as a share of that in as many principal components.

        Near 1 if the dimensions are in the order of their importance. Measured on at most 4096 words.

        Parameters
        ----------
        dim: how many.
        """
        if check_count(dim, "dimensions") > self.dim:
            raise UsageError.expected(f"1 to {self.dim}", dim, where="dimensions")
        columns, components = self._variances
        return float(columns[dim - 1] / components[dim - 1]) if components[-1] > 0 else 1.0

    def with_provenance(self, provenance: Mapping[str, Any]) -> WordVectors:
        """The same vectors with another provenance."""
        tables: dict[str, Any] = {"subwords": self.subwords, "contexts": self._contexts, "senses": self.senses}
        return WordVectors(self.vocabulary, self.matrix, **tables, provenance=provenance)

    def subset(self, words: Iterable[str]) -> WordVectors:
        """The vectors of the given words, in this order.

        Parameters
        ----------
        words: known words, each once.
        """
        rows = [self._row(word) for word in check_strings(words, "words", what="words")]
        counts = self.vocabulary.counts[rows].tolist()
        names = [self.words[row] for row in rows]
        vocabulary = self.vocabulary.like(names, counts)
        contexts = None if self._contexts is None else self._contexts[rows]
        senses = None if self.senses is None else self.senses.select(vocabulary, rows)
        tables: dict[str, Any] = {"subwords": self.subwords, "contexts": contexts, "senses": senses}
        return WordVectors(vocabulary, self.matrix[rows], **tables, provenance=self.provenance)

    def _rows_of(self, words: Iterable[str]) -> set[int]:
        """The rows of those words that are known."""
        names = check_strings([words] if isinstance(words, str) else words, "exclude", what="words")
        return {row for name in names if (row := self.vocabulary.row(name)) is not None}

    def _row_or_oov(self, word: str | int) -> int:
        """The row of a word; -1 for an OOV word if there is a subword table."""
        if self.subwords is not None and isinstance(word, str) and word and self.vocabulary.row(word) is None:
            return -1
        return self._row(word)

    def _row(self, word: str | int) -> int:
        if isinstance(word, str):
            if (row := self.vocabulary.row(word)) is None:
                raise UnknownWordError(f"Unknown word {word!r}; {self._hint(word)}", code="unknown-name")
            return row
        if isinstance(word, bool) or not isinstance(word, int | np.integer):
            raise UsageError.expected("a word or a row number", describe(word))
        if not 0 <= word < len(self):
            raise UnknownWordError.expected(f"a row from 0 to {len(self) - 1:,}", word, code="unknown-name")
        return int(word)

    def _hint(self, word: str) -> str:
        """At most three similar words, those that differ in case first."""
        lower, candidates = word.lower(), self.words[:200_000]
        same = [other for other in candidates if other.lower() == lower]
        near = [other for other in candidates if other[:2].lower() == lower[:2] and abs(len(other) - len(word)) < 3]
        names = [*dict.fromkeys([*same, *difflib.get_close_matches(word, near, n=3)])][:3]
        return f"did you mean {' or '.join(map(repr, names))}?" if names else "try another spelling."

    @cached_property
    def inflections(self) -> Inflections:
        """Which words are forms of one word in the language of the vocabulary."""
        return Inflections(self.words)

    @cached_property
    def _finder(self) -> WordMatcher:
        return WordMatcher(self.vocabulary, lazy=True)

    @cached_property
    def _search(self) -> RowSearch:
        return RowSearch(self.matrix, self.words)

    @cached_property
    def _means(self) -> TextMeans:
        return TextMeans(self.matrix, self._finder, self.subwords, lowercase=self.vocabulary.lowercase)

    @cached_property
    def _truncated(self) -> dict[int, WordVectors]:
        return {}

    @cached_property
    def _variances(self) -> tuple[Array, Array]:
        """Cumulative variances of the dimensions (D,) and of the principal components (D,)."""
        rows = np.asarray(self.matrix[:: max(1, -(-len(self) // _VARIANCE_ROWS))], np.float64)
        rows = rows[np.isfinite(rows).all(axis=1)]  # others are reported when they are used
        moments = second_moments(rows, rows.mean(0) if len(rows) else None)
        return np.cumsum(np.diag(moments)), np.cumsum(principal_axes(moments)[0])

    def _cosines(self, vector: Matrix) -> Floats:
        return self._search.cosines(self._check_vector(vector))

    def _check_vector(self, vector: Any) -> Floats:
        return check_numbers(vector, "query", (self.dim,), what=f"finite vectors of dimension {self.dim}")

    def _check_weights(self, weights: Matrix) -> Floats:
        what = f"{len(self)} finite weights of 0 or more, one per word"
        checked = check_numbers(weights, "weights", (len(self),), what=what)
        if (checked < 0).any():
            raise UsageError.expected(what, "a negative one", where="weights")
        return checked

    def _best(self, scores: Floats, k: int, excluded: set[int]) -> Neighbours:
        return [(self.words[row], float(scores[row])) for row in best_rows(scores, k, excluded)]


def _summarize(fact: object) -> str:
    """A method, teacher or corpus of a manifest as a short text."""
    if not isinstance(fact, Mapping):
        return "" if fact is None else str(fact)
    sources = fact.get("sources")
    named = fact.get("name") or fact.get("from") or (", ".join(map(str, sources)) if sources else "")
    words = f"{fact['words']:,} words" if isinstance(fact.get("words"), int) and fact["words"] else ""
    return ": ".join(filter(None, [str(named), words]))


def _is_words(query: object) -> bool:
    """Whether a query is a list of words, and not one word or a vector."""
    if isinstance(query, np.ndarray):
        return query.dtype.kind == "U" or (
            query.dtype.kind == "O" and query.size > 0 and isinstance(query.flat[0], str)
        )
    return isinstance(query, list | tuple) and (not query or isinstance(query[0], str))
