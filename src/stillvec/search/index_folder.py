"""The folder of a search index, version 1; specified in docs/formats.md. Its arrays are memory-mapped.

- `manifest.json`: version, settings, counts, and checksums of the other files
- `passages.safetensors`: unit vectors, texts, and the document of each passage
- `documents.safetensors`: ids and digests
- `postings.safetensors`: the inverted index for BM25
- `vectors/`: the vectors of words, a stillvec folder, so that the index can be searched by itself
- `graph.usearch`: the graph for approximate search, if there is one
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stillvec import __version__
from stillvec.errors import UsageError
from stillvec.files import FolderLayout, file_digest, read_object
from stillvec.formats import load
from stillvec.formats.format import damage_error, read_versioned, require_files, verify_checksums
from stillvec.formats.stillvec_folder import INDEX_VERSION_KEY
from stillvec.formats.stillvec_folder import LAYOUT as VECTORS_LAYOUT
from stillvec.formats.tensors import map_tensors, write_tensors
from stillvec.search.column_files import TextArray
from stillvec.search.passages import PassageUnit, check_passages
from stillvec.search.postings import Postings
from stillvec.vectors import WordVectors

VERSION = 1
VECTORS, GRAPH = "vectors", "graph.usearch"
_MANIFEST, _PASSAGES, _DOCUMENTS, _POSTINGS = (
    "manifest.json", "passages.safetensors", "documents.safetensors", "postings.safetensors",
)  # fmt: skip
_KIND = "search index"
_TYPES = {  # of the arrays, and their dimensions
    _PASSAGES: {
        "vectors": ("f4", 2), "texts": ("u1", 1), "text_ends": ("i8", 1), "documents": ("i4", 1), "lengths": ("i4", 1),
    },
    _DOCUMENTS: {"ids": ("u1", 1), "id_ends": ("i8", 1), "digests": ("u1", 2)},
    _POSTINGS: {"terms": ("u8", 1), "starts": ("i8", 1), "passages": ("i4", 1), "counts": ("u1", 1)},
}  # fmt: skip


@dataclass(frozen=True)
class IndexContent:
    """What an index consists of."""

    vectors: WordVectors  # of words
    passages: PassageUnit
    matrix: NDArray[np.float32]  # (N, D) unit vectors of the passages
    texts: TextArray  # (N,)
    documents: NDArray[np.int32]  # (N,) of each passage, ascending
    ids: TextArray  # (M,) of the documents
    digests: NDArray[np.uint8]  # (M, 16) of their texts
    postings: Postings
    manifest: Mapping[str, Any]


def write_index(part: Path, content: IndexContent, facts: Mapping[str, object]) -> None:
    """Write an index into a new folder that contains `vectors/` and perhaps the graph."""
    postings, texts, ids = content.postings, content.texts, content.ids
    write_tensors(
        part / _PASSAGES,
        {
            "vectors": content.matrix,
            "texts": texts.data,
            "text_ends": texts.ends,
            "documents": content.documents,
            "lengths": postings.lengths,
        },
    )
    write_tensors(part / _DOCUMENTS, {"ids": ids.data, "id_ends": ids.ends, "digests": content.digests})
    names = ("terms", "starts", "passages", "counts")
    write_tensors(part / _POSTINGS, {name: getattr(postings, name) for name in names})
    manifest = {
        INDEX_VERSION_KEY: VERSION,
        "stillvec": __version__,
        "documents": len(ids),
        "passages": len(texts),
        "dim": int(content.matrix.shape[1]),
        "passage_unit": content.passages,
        **facts,
        "checksums": {name: file_digest(part / name) for name in _list_files(part)},
    }
    (part / _MANIFEST).write_text(json.dumps(manifest, indent=2, sort_keys=True, ensure_ascii=False) + "\n", "utf-8")


def read_index(path: Path) -> IndexContent:
    """Map the arrays of an index and check that they fit together."""
    manifest = read_index_manifest(path)
    require_files(path, (_PASSAGES, _DOCUMENTS, _POSTINGS), _KIND)
    vectors = load(path / VECTORS, format="stillvec")
    arrays = {name: _read_arrays(path / name) for name in _TYPES}
    passages, documents, postings = arrays[_PASSAGES], arrays[_DOCUMENTS], arrays[_POSTINGS]
    texts = TextArray(passages["texts"], passages["text_ends"])
    ids = TextArray(documents["ids"], documents["id_ends"])
    owner = passages["documents"]
    _check(
        path / _PASSAGES,
        len(texts) == len(owner) == len(passages["vectors"]) == len(passages["lengths"]) == manifest.get("passages")
        and passages["vectors"].shape[1] == vectors.dim
        and texts.are_valid()
        and bool((owner[1:] >= owner[:-1]).all())
        and bool((passages["lengths"] >= 0).all())
        and (not len(owner) or 0 <= int(owner[0]) <= int(owner[-1]) < len(ids)),
    )
    _check(
        path / _DOCUMENTS,
        documents["digests"].shape == (len(ids), 16) and ids.are_valid() and len(ids) == manifest.get("documents"),
    )
    terms, starts = postings["terms"], postings["starts"]
    _check(
        path / _POSTINGS,
        len(starts) == len(terms) + 1
        and int(starts[0]) == 0
        and int(starts[-1]) == len(postings["passages"]) == len(postings["counts"])
        and bool((starts[1:] >= starts[:-1]).all())
        and bool((terms[1:] > terms[:-1]).all()),
    )
    try:
        unit = check_passages(manifest.get("passage_unit", ""))
    except UsageError as error:
        raise damage_error(path / _MANIFEST, _KIND, error) from None
    return IndexContent(
        vectors,
        unit,
        passages["vectors"],
        texts,
        owner,
        ids,
        documents["digests"],
        Postings(**postings, lengths=passages["lengths"]),
        manifest,
    )


def read_index_manifest(path: Path) -> dict[str, Any]:
    """The manifest of an index, its version checked."""
    return read_versioned(path, _KIND, INDEX_VERSION_KEY, VERSION, cure="make one with stillvec index")


def verify_index(path: Path) -> tuple[str, ...]:
    """Compare the files of an index with the checksums in its manifest; return the names of these files."""
    return verify_checksums(path, _KIND, read_index_manifest(path), LAYOUT.names)


def _list_files(folder: Path) -> list[str]:
    files = (file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file())
    return sorted(name for name in files if name in LAYOUT.names and name != _MANIFEST)


def _read_arrays(file: Path) -> dict[str, NDArray[Any]]:
    arrays, types = map_tensors(file), _TYPES[file.name]
    for name, (dtype, n_axes) in types.items():
        if name not in arrays or arrays[name].dtype != np.dtype(dtype) or arrays[name].ndim != n_axes:
            raise damage_error(file, _KIND, f"no array {name!r} of type {dtype} with {n_axes} axes")
    return {name: arrays[name] for name in types}


def _check(file: Path, fits: bool) -> None:
    if not fits:
        raise damage_error(file, _KIND, "arrays that do not fit together")


def is_index(folder: Path) -> bool:
    """Whether a folder is a search index, perhaps a damaged one."""
    return isinstance(read_object(folder / _MANIFEST).get(INDEX_VERSION_KEY), int)


def _describe(folder: Path) -> str:
    manifest = read_object(folder / _MANIFEST)
    return f"a search index of {manifest.get('documents', '?')} documents, {manifest.get('passages', '?')} passages"


LAYOUT = FolderLayout(
    (_MANIFEST, _PASSAGES, _DOCUMENTS, _POSTINGS, GRAPH, *(f"{VECTORS}/{name}" for name in VECTORS_LAYOUT.names)),
    is_index,
    alone=False,
    describe=_describe,
)
