"""Builds an index in bounded memory: documents in, columns in files out, combined with those of an older index."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Generator, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stillvec.corpus.documents import Document
from stillvec.errors import CorpusError
from stillvec.progress import Progress
from stillvec.search.column_files import ColumnFile, TextArray, TextFile
from stillvec.search.index_folder import IndexContent
from stillvec.search.passages import PassageUnit, split_passages
from stillvec.search.postings import Postings, PostingsWriter, hash_words
from stillvec.search.text_encoder import TextEncoder
from stillvec.vectors import WordVectors
from stillvec.vocabulary.word_numbering import WordNumbering

_BATCH = 4096  # passages that are encoded together
_BATCH_CHARACTERS = 1 << 22
_DIGEST_BYTES = 16


@dataclass
class DocumentCounts:
    """What happened to the documents."""

    added: int = 0
    replaced: int = 0
    unchanged: int = 0
    removed: int = 0
    empty: int = 0  # without a passage


def digest_text(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=_DIGEST_BYTES).digest()


class IndexBuilder:
    """Adds documents to an empty index or to an older one; `finish` returns the whole content."""

    def __init__(
        self, scratch: Path, vectors: WordVectors, passages: PassageUnit, old: IndexContent | None = None
    ) -> None:
        self.counts = DocumentCounts()
        self._scratch, self._vectors, self._passages, self._old = scratch, vectors, passages, old
        self._encoder = TextEncoder(vectors)
        self._numbering = WordNumbering.like(vectors.vocabulary)
        self._hashes = ColumnFile(scratch / "hashes", np.uint64)
        self._matrix = ColumnFile(scratch / "vectors", np.float32, vectors.dim)
        self._owners = ColumnFile(scratch / "documents", np.int32)
        self._lengths = ColumnFile(scratch / "lengths", np.int32)
        self._digests = ColumnFile(scratch / "digests", np.uint8, _DIGEST_BYTES)
        self._texts, self._ids = TextFile(scratch / "texts"), TextFile(scratch / "ids")
        self._postings = PostingsWriter(scratch)
        self._old_rows: dict[str, int] = {} if old is None else {id: row for row, id in enumerate(old.ids)}
        self._dropped: set[int] = set()  # old documents
        self._new: set[str] = set()
        self._n_new = 0
        self._pending_ids: list[str] = []
        self._pending_digests: list[bytes] = []
        self._pending: list[str] = []  # passages
        self._pending_owners: list[int] = []
        self._pending_characters = 0

    def remove(self, ids: Iterable[str]) -> None:
        """Remove old documents."""
        for id in ids:
            if id not in self._old_rows:
                raise CorpusError.unknown("document", id, self._old_rows)
            self._dropped.add(self._old_rows.pop(id))
            self.counts.removed += 1

    def add(self, document: Document) -> None:
        """Add a document, or replace the old one of the same id unless it has the same text."""
        id = document.id
        if id in self._new:
            raise CorpusError.expected("one document per id", f"{id!r} twice", cure="give every document its own id")
        self._new.add(id)
        digest = digest_text(document.text)
        row = self._old_rows.get(id)
        if row is not None and self._old is not None:
            if bytes(self._old.digests[row]) == digest:
                self.counts.unchanged += 1
                return
            self._dropped.add(row)
        passages = split_passages(document.text, self._passages)
        self.counts.replaced += row is not None
        self.counts.added += row is None
        self.counts.empty += not passages
        self._pending_owners += [self._n_new] * len(passages)
        self._n_new += 1
        self._pending_ids.append(id)
        self._pending_digests.append(digest)
        self._pending += passages
        self._pending_characters += len(document.text)
        if len(self._pending_ids) + len(self._pending) >= 2 * _BATCH or self._pending_characters > _BATCH_CHARACTERS:
            self._flush()

    def add_all(self, documents: Iterable[Document]) -> Generator[Progress, None, None]:
        begun = time.perf_counter()
        number = 0
        for number, document in enumerate(documents, 1):
            self.add(document)
            if not self._pending:
                yield Progress("indexing", number, None, "documents", time.perf_counter() - begun)
        self._flush()
        yield Progress("indexing", number, None, "documents", time.perf_counter() - begun)

    def finish(self) -> IndexContent:
        """The documents of the old index that stay, then the new ones."""
        self._flush()
        new_postings = self._postings
        if self._old is None:
            arrays = new_postings.sort(self._hashes.map(), None, np.zeros(0, np.int64), 0)
            return self._combine(arrays)
        old = self._old
        stays = np.ones(len(old.ids), bool)
        stays[[*self._dropped]] = False
        rows = np.flatnonzero(stays[old.documents]) if len(old.documents) else np.zeros(0, np.int64)
        renumbered = np.full(len(old.texts), -1, np.int64)
        renumbered[rows] = np.arange(len(rows))
        arrays = new_postings.sort(self._hashes.map(), old.postings, renumbered, len(rows))
        return self._append_to_old(old, rows, np.flatnonzero(stays), arrays)

    def close(self) -> None:
        columns = (self._hashes, self._matrix, self._owners, self._lengths, self._digests, self._texts, self._ids)
        for column in (*columns, self._postings):
            column.close()

    def _flush(self) -> None:
        texts = [text.encode("utf-8", "replace").decode() if not text.isascii() else text for text in self._pending]
        if texts:
            self._matrix.append(self._encoder.encode(texts))
            words, lengths = self._numbering.number(texts)
            self._hashes.append(hash_words(self._numbering.pop_new()))
            self._postings.add(words, lengths)
            self._lengths.append(lengths)
            self._texts.extend(texts)
            self._owners.append(np.array(self._pending_owners, np.int32))
        self._ids.extend(self._pending_ids)
        self._digests.append(np.frombuffer(b"".join(self._pending_digests), np.uint8).reshape(-1, _DIGEST_BYTES))
        self._pending_ids, self._pending_digests = [], []
        self._pending, self._pending_owners, self._pending_characters = [], [], 0

    def _combine(self, arrays: dict[str, NDArray[Any]]) -> IndexContent:
        return IndexContent(
            self._vectors,
            self._passages,
            self._matrix.map(),
            self._texts.map(),
            self._owners.map(),
            self._ids.map(),
            self._digests.map(),
            Postings(**arrays, lengths=self._lengths.map()),
            {},
        )

    def _append_to_old(
        self, old: IndexContent, rows: NDArray[np.int64], documents: NDArray[np.int64], arrays: dict[str, NDArray[Any]]
    ) -> IndexContent:
        new = self._combine(arrays)
        number = np.full(len(old.ids), -1, np.int32)
        number[documents] = np.arange(len(documents))
        with ExitStack() as stack:

            def join(name: str, kept: NDArray[Any], kept_rows: NDArray[np.int64], added: NDArray[Any]) -> NDArray[Any]:
                width = kept.shape[1] if kept.ndim == 2 else None
                column = ColumnFile(self._scratch / f"joined-{name}", kept.dtype, width)
                stack.callback(column.close)
                for start in range(0, len(kept_rows), _BATCH):
                    column.append(kept[kept_rows[start : start + _BATCH]])
                for start in range(0, len(added), _BATCH):
                    column.append(added[start : start + _BATCH])
                return column.map()

            def join_texts(name: str, kept: TextArray, kept_rows: NDArray[np.int64], added: TextArray) -> TextArray:
                column = TextFile(self._scratch / f"joined-{name}")
                stack.callback(column.close)
                for table, chosen in ((kept, kept_rows), (added, np.arange(len(added)))):
                    for data, lengths in table.iterate_rows(chosen):
                        column.append(data, lengths)
                return column.map()

            owners = new.documents + np.int32(len(documents))
            return IndexContent(
                self._vectors,
                self._passages,
                join("vectors", old.matrix, rows, new.matrix),
                join_texts("texts", old.texts, rows, new.texts),
                join("documents", number[old.documents], rows, owners),
                join_texts("ids", old.ids, documents, new.ids),
                join("digests", old.digests, documents, new.digests),
                Postings(**arrays, lengths=join("lengths", old.postings.lengths, rows, new.postings.lengths)),
                {},
            )
