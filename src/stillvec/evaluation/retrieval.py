"""Retrieval: rank the documents of a collection for each query by the cosine of their vectors (BEIR; Thakur et al.
2021).

Data: folders `retrieval/NAME/` in the form of BEIR: `corpus.jsonl` and `queries.jsonl` with `_id`, `text` and possibly
`title` per line, `qrels/test.tsv` with query, document and grade under a header. A document is its title and text; one
with the id and the text of the query is not an answer to it. Queries without a relevant document are left out.

`ndcg@10` has linear gains, as trec_eval; for `mrr@10` and `recall@100` every grade above 0 is relevant. `ndcg@10-bm25`
ranks by BM25 (k1 = 1.2, b = 0.75, all words, no stemming), `ndcg@10-hybrid` by both: reciprocal rank fusion (Cormack et
al. 2009) of the first 1000 documents of each, `sum 1 / (60 + rank)`, which has nothing to choose. `ndcg@10-chance` is
the expected value of a random order. `known-words` is the share of known words of a query, `document-words` that of all
documents.

With `documents=teacher:NAME` that teacher makes the vectors of the documents, and what is evaluated only those of the
queries: an index stays as it is, and queries need no teacher. Both must be in one space (`distill --for queries`).

A query is covered if one of its words is known. Interval: percentile bootstrap over queries.
"""

import json
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import DatasetError, UsageError
from stillvec.evaluation.intervals import Floats, Mask, Rows
from stillvec.evaluation.supervised import quotient
from stillvec.evaluation.tasks import Answers, Items, TextTask
from stillvec.evaluation.teacher_states import open_teachers
from stillvec.files import cache_folder
from stillvec.heads.dataset_files import lines
from stillvec.heads.sequence_batches import Representation
from stillvec.numerics import bm25_norms, bm25_weights, top_k, unit_rows
from stillvec.vocabulary.word_numbering import WordNumbering

_K1, _B = 1.2, 0.75  # of BM25, the usual values
_FUSION, _DEPTH = 60, 1000  # of reciprocal rank fusion
_CUT, _RECALL = 10, 100  # ranks that count
_QUICK_QUERIES, _QUICK_DOCUMENTS = 50, 2000
_BLOCK = 64  # queries compared with all documents at once
_FILES = ("corpus.jsonl", "queries.jsonl", "qrels/test.tsv")


@dataclass(frozen=True)
class JudgedQueries(Items):
    """The queries, the documents of the collection, and which of these are relevant."""

    documents: tuple[str, ...] = ()
    grades: tuple[Mapping[int, float], ...] = ()  # (n,) document → grade above 0; negative for one that is not there
    excluded: tuple[int, ...] = ()  # (n,) the document that is the query itself, or -1


@dataclass(frozen=True)
class Retrieval(TextTask):
    documents: str = ""  # teacher:NAME for the vectors of documents; none: what is evaluated

    files: ClassVar[tuple[str, ...]] = ("retrieval",)
    controls: ClassVar[tuple[str, ...]] = ("-words", "-bm25", "-chance")

    def find(self, folder: Path) -> list[Path]:
        """The folders of collections."""
        return sorted(path.parent for path in (folder / self.files[0]).glob(f"*/{_FILES[0]}"))

    def read(self, path: Path) -> Items:
        corpus, queries, qrels = (path / name for name in _FILES)
        for file in (queries, qrels):
            if not file.is_file():
                raise DatasetError.not_found(file, f"a file of the collection {path.name}")
        documents, asked = dict(_read_texts(corpus)), dict(_read_texts(queries))
        if not documents:
            raise DatasetError.expected("a document per line", "an empty file", path=corpus, line=1)
        grades = _read_grades(qrels, asked)
        if self.quick:
            documents, grades = _reduce(documents, grades)
        place = {name: number for number, name in enumerate(documents)}
        numbered = tuple(
            {place.get(name, -1 - number): grade for number, (name, grade) in enumerate(relevant.items())}
            for relevant in grades.values()
        )
        own = tuple(place[name] if documents.get(name) == asked[name] else -1 for name in grades)
        gold = np.array([len(relevant) for relevant in numbered], np.float64)
        texts = tuple((asked[name],) for name in grades)
        return JudgedQueries(texts, gold, (), tuple(documents.values()), numbered, own)

    def answer_steps(self, lookup: Representation, items: Items) -> Generator[float, None, Answers]:
        assert isinstance(items, JudgedQueries)
        n, texts = len(items), [*(query for (query,) in items.texts), *items.documents]
        rows, documents = yield from self._encode(lookup, texts, n)
        known = lookup.count_words(texts)
        values = {name: np.zeros(n) for name in ("ndcg@10", "mrr@10", "recall@100", "ndcg@10-hybrid", "ndcg@10-bm25")}
        lexical = Bm25(texts[n:])
        for start in range(0, n, _BLOCK):
            block = slice(start, min(start + _BLOCK, n))
            cosines, bm25 = rows[block] @ documents.T, lexical.score(texts[block])
            for scores in (cosines, bm25):
                _exclude(scores, items.excluded[block])
            ranked = {"": top_k(cosines, _DEPTH), "-bm25": top_k(bm25, _DEPTH)}
            ranked["-hybrid"] = fuse([*ranked.values()], [cosines > -np.inf, bm25 > 0])
            for at, grades in enumerate(items.grades[block]):
                for ending, order in ranked.items():
                    values[f"ndcg@10{ending}"][start + at] = ndcg(order[at, :_CUT], grades)
                values["mrr@10"][start + at] = _reciprocal_rank(ranked[""][at, :_CUT], grades)
                values["recall@100"][start + at] = _recall(ranked[""][at, :_RECALL], grades)
            yield block.stop / n
        values["ndcg@10-chance"] = np.array([_chance(grades, len(items.documents)) for grades in items.grades])
        values["known-words"] = np.nan_to_num(quotient(known[:n, 0], known[:n, 1]))
        values["document-words"] = np.full(n, np.nan_to_num(quotient(*known[n:].sum(axis=0))))
        return Answers(known[:n, 0] > 0, values)

    def _encode(
        self, lookup: Representation, texts: Sequence[str], n_queries: int
    ) -> Generator[float, None, tuple[NDArray[np.float32], NDArray[np.float32]]]:
        """Unit vectors of the queries, which come first, and of the documents."""
        if not self.documents:
            rows = unit_rows((yield from lookup.encode_texts_steps(texts)))
            return rows[:n_queries], rows[n_queries:]
        queries = unit_rows((yield from lookup.encode_texts_steps(texts[:n_queries])))
        teacher = open_teachers({"documents": self.documents}, cache_folder())["documents"]
        documents = unit_rows((yield from teacher.encode_texts_steps(texts[n_queries:])))
        if queries.shape[1] != documents.shape[1]:
            got, cure = f"{queries.shape[1]} of the queries", "make them with stillvec distill --for queries"
            raise UsageError.expected(f"{documents.shape[1]} dimensions, as {self.documents} has", got, cure=cure)
        return queries, documents


class Bm25:
    """The words of documents, counted and weighted."""

    def __init__(self, documents: Sequence[str]) -> None:
        from scipy.sparse import csr_array

        self._numbering = WordNumbering()
        words, lengths = self._numbering.number(documents)
        self._n_words = len(self._numbering)
        cells = words.astype(np.int64), np.repeat(np.arange(len(documents)), lengths)
        counts = csr_array((np.ones(len(words)), cells), (self._n_words, len(documents)))
        counts.sum_duplicates()
        n_with = np.diff(counts.indptr)
        norms = bm25_norms(lengths, _K1, _B)[counts.indices]
        counts.data = bm25_weights(counts.data, norms, np.repeat(n_with, n_with), len(documents), _K1)
        self._weights = counts  # (T, n)

    def score(self, queries: Sequence[str]) -> Floats:
        """The sum over the words of each query, repeated ones repeatedly (q, n)."""
        from scipy.sparse import csr_array

        words, lengths = self._numbering.number(queries)
        query = np.repeat(np.arange(len(queries)), lengths)
        there = words < self._n_words
        asked = csr_array((np.ones(there.sum()), (query[there], words[there])), (len(queries), self._n_words))
        return np.asarray((asked @ self._weights).toarray())


def fuse(orders: Sequence[Rows], listed: Sequence[Mask]) -> Rows:
    """Reciprocal rank fusion of orders of documents (q, k), the best first; an order ends where none is `listed`."""
    scores = np.zeros(listed[0].shape)
    for order, mask in zip(orders, listed, strict=True):
        rows = np.arange(len(order))[:, None]
        scores[rows, order] += mask[rows, order] / (_FUSION + 1 + np.arange(order.shape[1]))
    return top_k(scores, _RECALL)


def ndcg(order: Rows, grades: Mapping[int, float]) -> float:
    """The discounted gain of documents in this order, relative to the best order."""
    best = sorted(grades.values(), reverse=True)[: len(order)]
    return float(_gain([grades.get(number, 0.0) for number in order.tolist()]) / _gain(best))


def _gain(grades: Sequence[float]) -> float:
    return float((np.array(grades) / np.log2(np.arange(len(grades)) + 2)).sum())


def _reciprocal_rank(order: Rows, grades: Mapping[int, float]) -> float:
    return next((1 / rank for rank, number in enumerate(order.tolist(), 1) if number in grades), 0.0)


def _recall(order: Rows, grades: Mapping[int, float]) -> float:
    return sum(number in grades for number in order.tolist()) / len(grades)


def _chance(grades: Mapping[int, float], n_documents: int) -> float:
    """The expected nDCG of documents in random order."""
    n_ranks = min(_CUT, n_documents)
    mean = sum(grade for number, grade in grades.items() if number >= 0) / n_documents
    return _gain([mean] * n_ranks) / _gain(sorted(grades.values(), reverse=True)[:n_ranks])


def _exclude(scores: NDArray[Any], documents: Sequence[int]) -> None:
    rows = [at for at, number in enumerate(documents) if number >= 0]
    scores[rows, [documents[at] for at in rows]] = -np.inf


def _read_texts(path: Path) -> Iterator[tuple[str, str]]:
    """(id, title and text) of each line."""
    ids: set[str] = set()
    for number, line in lines(path):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            record = None
        record = record if isinstance(record, dict) else {}
        name, title, text = (record.get(key, "") for key in ("_id", "title", "text"))
        if not (isinstance(name, str) and name and isinstance(text, str) and isinstance(title or "", str)):
            what = 'an object with "_id" and "text"'
            raise DatasetError.expected(what, repr(line[:40]), path=path, line=number)
        if name in ids:
            raise DatasetError.expected("different ids", f"{name!r} twice", path=path, line=number)
        ids.add(name)
        yield name, f"{title or ''} {text}".strip()


def _read_grades(path: Path, queries: Mapping[str, str]) -> dict[str, dict[str, float]]:
    """Query → document → grade above 0, in the order of the queries."""
    grades: dict[str, dict[str, float]] = {name: {} for name in queries}
    for number, line in lines(path):
        query, document, grade = fields if len(fields := line.split("\t")) == 3 else ("", "", "")
        if (number == 1 and not _is_number(grade)) or not line.strip():
            continue
        if not _is_number(grade):
            raise DatasetError.expected("query, document and grade", repr(line[:40]), path=path, line=number)
        if query not in grades:
            raise DatasetError.expected("the id of a query", repr(query), path=path, line=number)
        if float(grade) > 0:
            grades[query][document] = float(grade)
    judged = {name: relevant for name, relevant in grades.items() if relevant}
    if not judged:
        raise DatasetError.expected("a query with a relevant document", "none", path=path, line=1)
    return judged


def _is_number(text: str) -> bool:
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False


def _reduce(
    documents: dict[str, str], grades: dict[str, dict[str, float]]
) -> tuple[dict[str, str], dict[str, dict[str, float]]]:
    """A sample of queries, with their relevant documents and others drawn at random."""
    generator = np.random.default_rng(0)
    drawn = np.sort(generator.permutation(len(grades))[:_QUICK_QUERIES])
    queries = {name: relevant for at, (name, relevant) in enumerate(grades.items()) if at in {*drawn.tolist()}}
    needed = {name for relevant in queries.values() for name in relevant}
    others = [name for name in documents if name not in needed]
    n_others = max(0, _QUICK_DOCUMENTS - len(needed))
    kept = needed | {others[at] for at in generator.permutation(len(others))[:n_others].tolist()}
    return {name: text for name, text in documents.items() if name in kept}, queries
