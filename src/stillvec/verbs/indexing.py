"""`index`: documents and vectors in, a `SearchIndex` out."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from stillvec.corpus.documents import Document, DocumentSettings, DocumentUnit, read_documents
from stillvec.errors import CorpusError, FormatError, UsageError
from stillvec.files import atomic_folder, check_not_input, reserve_output, scratch_folder
from stillvec.formats import open_vectors, write_folder
from stillvec.formats.packed_vectors import quantize_vectors
from stillvec.formats.request import warn_finished
from stillvec.input_checks import check_arguments
from stillvec.progress import Progress, drain, show_progress
from stillvec.search.approximate_search import ApproximateIndex
from stillvec.search.index_builder import DocumentCounts, IndexBuilder, digest_text
from stillvec.search.index_folder import GRAPH, LAYOUT, VECTORS, IndexContent, write_index
from stillvec.search.passages import DEFAULT_PASSAGES, PassageUnit, check_passages
from stillvec.search.search_index import SearchIndex
from stillvec.search.text_encoder import TextEncoder
from stillvec.vectors import WordVectors

Path_ = str | os.PathLike[str]
Documents = Path_ | Mapping[str, str] | Iterable[Any]


def index(
    documents: Documents = (),
    vectors: WordVectors | Path_ | None = None,
    *,
    out: Path_ | None = None,
    add_to: Path_ | None = None,
    remove: Iterable[str] = (),
    passages: PassageUnit | None = None,
    field: str | None = None,
    id_field: str | None = None,
    unit: DocumentUnit = "auto",
    approximate: bool = False,
    force: bool = False,
    progress: bool | Callable[[Progress], object] = False,
) -> SearchIndex:
    """Index documents for search, and return the index.

    Parameters
    ----------
    documents: a path (a folder, file or glob) or a list of `Path`s; or texts in memory: a mapping from id to text, or a
        list of texts, of (id, text) pairs or of records with "text" and "id".
    vectors: the vectors of words, or their path; not needed with `add_to`.
    out: the folder to write (default: a temporary folder that is removed with the index).
    add_to: the folder of an index to which the documents are added; a document of a known id replaces the old one
        unless it has the same text. The result is written to `out` (default: to the same folder).
    remove: ids of documents of `add_to` to remove.
    passages: "document", "paragraph", or a number of sentences (default: paragraph).
    field: the field or column of records that has the text, dotted if nested (default: "text").
    id_field: the field or column that has the id (default: "id" or "_id", else the file and line).
    unit: of plain text: a document per "files" or "lines"; "auto" is lines if a single file is given, else files.
    approximate: build a graph for approximate search, which pays from about a million passages (default: False).
    force: replace files of the same names in a folder that stillvec did not write (default: False).
    progress: True draws a bar in a terminal; a function gets every `Progress` event (default: False).
    """
    check_arguments(index, locals())
    return index_documents(
        _convert_documents(documents, DocumentSettings(field, id_field, unit)),
        vectors, out=out, add_to=add_to, remove=remove, passages=passages, approximate=approximate, force=force,
        progress=progress, inputs=[documents] if isinstance(documents, str | os.PathLike) else (),
    )[0]  # fmt: skip


def index_documents(
    documents: Iterator[Document],
    vectors: WordVectors | Path_ | None,
    *,
    out: Path_ | None,
    add_to: Path_ | None,
    remove: Iterable[str],
    passages: PassageUnit | None,
    approximate: bool,
    force: bool,
    progress: bool | Callable[[Progress], object],
    inputs: Iterable[Path_] = (),
) -> tuple[SearchIndex, DocumentCounts]:
    """The index, and what happened to the documents; `inputs` are the paths that they are read from."""
    given = [] if vectors is None or isinstance(vectors, WordVectors) else [vectors]
    check_not_input(out, [*inputs, *given], LAYOUT)
    temporary = tempfile.TemporaryDirectory(prefix="stillvec-") if out is None and add_to is None else None
    target = Path(out or add_to or Path(temporary.name if temporary else "") / "index")
    own = add_to is not None and os.path.realpath(target) == os.path.realpath(add_to)
    if add_to is None and not force and (target / "manifest.json").is_file():
        finished = _find_finished(target, documents, vectors, passages, approximate=approximate)
        if finished is not None:
            return finished, DocumentCounts(unchanged=finished.n_documents)
    with reserve_output(target, LAYOUT, force=force or own):
        old = None if add_to is None else SearchIndex.load(add_to).content
        unit = _choose_passages(passages, old)
        words = _choose_vectors(vectors, old)
        with (
            scratch_folder(target.absolute().parent if target.absolute().parent.is_dir() else None) as scratch,
            show_progress(progress) as listener,
        ):
            builder = IndexBuilder(scratch, words, unit, old)
            try:
                builder.remove(remove)
                drain(builder.add_all(documents), listener)
                content = builder.finish()
                if not len(content.texts) and old is None:
                    raise CorpusError("There is no document with text; give other files.", code="empty")
                with atomic_folder(target, LAYOUT) as part:
                    _write(part, content, approximate)
            finally:
                builder.close()
    opened = SearchIndex.load(target)
    opened._owned = temporary
    return opened, builder.counts


def _find_finished(
    target: Path,
    documents: Iterator[Document],
    vectors: WordVectors | Path_ | None,
    passages: PassageUnit | None,
    *,
    approximate: bool,
) -> SearchIndex | None:
    """The index that is there, if it has these documents, vectors and settings; else None."""
    try:
        old = SearchIndex.load(target)
        _choose_passages(DEFAULT_PASSAGES if passages is None else passages, old.content)
        _choose_vectors(vectors, old.content)
    except (FormatError, UsageError):
        return None
    expected = {id: bytes(digest) for id, digest in zip(old.content.ids, old.content.digests, strict=True)}
    same = all(expected.pop(document.id, None) == digest_text(document.text) for document in documents)
    if not same or expected or approximate != (old.recall is not None):
        return None
    warn_finished(target, f"{old.n_documents:,} documents")
    return old


def _write(part: Path, content: IndexContent, approximate: bool) -> None:
    write_folder(content.vectors, part / VECTORS, content.vectors.provenance)
    facts: dict[str, object] = {"encoder": TextEncoder(content.vectors).describe()}
    if approximate:
        graph = ApproximateIndex(content.matrix)
        graph.build(threads=os.cpu_count() or 1)
        graph.save(part / GRAPH)
        facts["recall_at_10"] = graph.recall
    write_index(part, content, facts)


def _choose_passages(passages: PassageUnit | None, old: IndexContent | None) -> PassageUnit:
    if old is None:
        return check_passages(DEFAULT_PASSAGES if passages is None else passages)
    if passages is not None and check_passages(passages) != old.passages:
        raise UsageError.conflict(f"The index has passages of {old.passages!r}, not {passages!r}", cure="leave it out")
    return old.passages


def _choose_vectors(vectors: WordVectors | Path_ | None, old: IndexContent | None) -> WordVectors:
    if vectors is None:
        if old is None:
            cure = "stillvec.index(documents, vectors), --vectors on the command line"
            raise UsageError.expected("vectors of words", "none", cure=cure, code="missing-vectors")
        return old.vectors
    given = quantize_vectors(open_vectors(vectors))
    if old is None:
        return given
    same = given.vocabulary == old.vectors.vocabulary and np.array_equal(given.matrix, old.vectors.matrix)
    if not same:
        raise UsageError.conflict("The index was made with other vectors", cure="leave them out, or make a new index")
    return old.vectors


def _convert_documents(documents: Documents, settings: DocumentSettings) -> Iterator[Document]:
    if isinstance(documents, str | os.PathLike):
        return read_documents([documents], settings)
    if isinstance(documents, Mapping):
        return (_to_document(item, settings, "") for item in documents.items())
    items = [*documents] if isinstance(documents, list | tuple) else documents
    if isinstance(items, list) and items and all(isinstance(item, os.PathLike) for item in items):
        return read_documents(items, settings)
    return (_to_document(item, settings, str(number)) for number, item in enumerate(items))


def _to_document(item: Any, settings: DocumentSettings, number: str) -> Document:
    """A text, a pair or a record as a document."""
    if isinstance(item, Document):
        return item
    if isinstance(item, str):
        return Document(number, item)
    if isinstance(item, Mapping):
        text = item.get(settings.field or "text")
        ids = ("id", "_id") if settings.id_field is None else (settings.id_field,)
        item = (next((item[key] for key in ids if key in item), number), text)
    match item:
        case [str() | int() as id, str() as text]:
            return Document(str(id), text)
    what = "texts, (id, text) pairs or records with 'text'"
    raise UsageError.expected(what, repr(item)[:60], where=f"document {number}")
