"""The stillvec folder: a matrix, plain (version 1) or compressed (version 2), words, a manifest and statistics.

Specified in docs/formats.md. Loading memory-maps a plain matrix, decompresses others, and reads the words; a large
vocabulary is parsed on first use. Nothing is ever unpickled.
"""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import FormatError, UsageError, VocabularyError
from stillvec.files import FolderLayout, ParallelDigest, atomic_folder, check_replaceable, file_digest, read_object
from stillvec.formats.early_statistics import EarlyStatistics
from stillvec.formats.format import Format, damage_error, decode_text, read_json, require_files, write_error
from stillvec.formats.hub_folder import local_path
from stillvec.formats.matrix_compression import PACKINGS, pack, unpack
from stillvec.formats.model_card import CARD, card
from stillvec.formats.tensors import map_tensors, write_tensors
from stillvec.formats.vector_table import MAX_CHECKED, check_finite, encode_words
from stillvec.registry import settings_from
from stillvec.sense_table import SenseTable
from stillvec.subwords import Ngrams, SubwordTable
from stillvec.vectors import WordVectors
from stillvec.vocabulary import Vocabulary
from stillvec.vocabulary.segmenters import SEGMENTERS, SPACES

VERSION = 2  # a folder is written as the lowest possible version: 1, or 2 with a compressed matrix
_MANIFEST, _VECTORS, _WORDS, STATISTICS, MODEL, _SUBWORDS = (
    "manifest.json", "vectors.safetensors", "vocabulary.tsv", "statistics.safetensors", "model.safetensors",
    "subwords.safetensors",
)  # fmt: skip
INDEX_VERSION_KEY = "search_index"  # in the manifest of the folder of a search index, which has no vectors to load
HEAD_VERSION_KEY = "head_format"  # in that of a head, whose vectors are in a subfolder
_CONTEXTS = "contexts"  # the context table, in the file of the model
_HAS_CONTEXTS = "context_table"  # true in the manifest if there is one
_CHECKSUMS = "checksums"  # of the other files, in the manifest
_SENSES = "ambiguous"  # how many words have several senses, which are in the file of the model
_REQUEST = "request"  # what decided the result, as digests (formats/request.py)
_NOT_SEPARATORS = bytes({*range(256)} - {*b"\t\n"})
_SURROGATE = re.compile("[\ud800-\udfff]")
_FILES = {_VECTORS, _WORDS, STATISTICS, MODEL, _SUBWORDS}
_MAX_EAGER = 1 << 20  # bytes of words parsed on loading; a larger file is parsed on first use


def recognize(path: Path, head: bytes) -> bool:
    return path.is_dir() and (path / _MANIFEST).exists()


def read(path: Path) -> WordVectors:
    manifest = read_manifest(path)
    require_files(path, (_WORDS, _VECTORS), "stillvec folder")
    vocabulary = _read_vocabulary(path / _WORDS, manifest)
    file = path / _VECTORS
    matrix = _read_matrix(file, manifest)
    if matrix.ndim != 2 or matrix.dtype.kind != "f":
        raise FormatError.expected("a table of floats", f"{matrix.dtype} of shape {matrix.shape}", path=file)
    if len(matrix) != len(vocabulary):
        got = f"{len(matrix):,} rows"
        raise FormatError.expected(f"one vector for each of {len(vocabulary):,} words", got, path=file, code="shape")
    shape = (manifest.get("words", len(matrix)), manifest.get("dim", matrix.shape[1]))
    if shape != matrix.shape:
        raise FormatError.expected(f"shape {shape} as in {_MANIFEST}", matrix.shape, path=file, code="shape")
    check_finite(file, vocabulary, matrix)
    tables: dict[str, Any] = {
        "subwords": _read_subwords(path, manifest, matrix),
        "contexts": _read_contexts(path, manifest, vocabulary, matrix),
        "senses": _read_senses(path, manifest, vocabulary, matrix),
    }
    return WordVectors(vocabulary, matrix, **tables, provenance=manifest)


def write(vectors: WordVectors, path: Path) -> None:
    write_folder(vectors, path, vectors.provenance, force=True)  # `save` has checked


def write_folder(
    vectors: WordVectors,
    path: str | os.PathLike[str],
    manifest: Mapping[str, object],
    statistics: Mapping[str, NDArray[Any]] | None = None,
    model: Mapping[str, NDArray[Any]] | None = None,
    *,
    packed: str | None = None,
    request: Mapping[str, Any] | None = None,
    early: EarlyStatistics | None = None,
    force: bool = False,
) -> None:
    """Write vectors with their manifest, the statistics they were computed from and a trained model, atomically.

    The matrix is compressed (int8, pq or sparse; default: as the last refine step allows) if that is lossless. With
    `force` an existing folder is replaced (of one that stillvec did not write, only files of these names); otherwise
    only if it is the result of the same `request`. Statistics that `early` writes are not written again.
    """
    from stillvec import __version__

    folder = Path(path)
    check_replaceable(folder, LAYOUT, force=force or (request is not None and read_request(folder) == request))
    if vectors.matrix.dtype not in (np.float16, np.float32, np.float64):
        raise write_error(folder, f"numbers of type {vectors.matrix.dtype} cannot be stored")
    words = encode_words(vectors, folder, vectors.matrix.dtype)
    packed = packed or find_packing(manifest)
    arrays = None if packed is None else pack(vectors.matrix, packed)
    facts: dict[str, object] = {
        "format": 1 if arrays is None else VERSION,
        "stillvec": __version__,
        "words": len(vectors),
        "dim": vectors.dim,
        "dtype": vectors.matrix.dtype.name,
        "lowercase": vectors.vocabulary.lowercase,
    }
    if vectors.vocabulary.segmenter != SPACES:
        facts |= {"segmenter": vectors.vocabulary.segmenter, "segmenter_terms": [*vectors.vocabulary.terms]}
    own = ("stored", "subwords", _HAS_CONTEXTS, _SENSES, _REQUEST)
    history = {key: value for key, value in manifest.items() if key not in own}
    if request is not None:
        facts[_REQUEST] = dict(request)
    if vectors.subwords is not None:
        facts["subwords"] = asdict(vectors.subwords.ngrams)
    if vectors.contexts is not None:
        facts[_HAS_CONTEXTS] = True
        model = {**(model or {}), _CONTEXTS: vectors.contexts.matrix}
    if vectors.senses is not None:
        facts[_SENSES] = {"words": len(vectors.senses.words), "senses": len(vectors.senses)}
        model = {**(model or {}), **vectors.senses.to_arrays()}
    if arrays is not None:
        facts["stored"] = packed
    with atomic_folder(folder, LAYOUT) as part:
        lines = zip(words, vectors.vocabulary.counts.tolist(), strict=True)
        (part / _WORDS).write_bytes(b"".join([b"%b\t%d\n" % line for line in lines]))
        files: dict[str, Mapping[str, NDArray[Any]] | None] = {}
        files |= {_VECTORS: arrays or {"matrix": vectors.matrix}, STATISTICS: statistics, MODEL: model or None}
        if vectors.subwords is not None:
            files[_SUBWORDS] = {"matrix": vectors.subwords.matrix}
        checksums = {_WORDS: file_digest(part / _WORDS)}
        if early is not None and statistics is not None and early.has(statistics):
            del files[STATISTICS]
            checksums[STATISTICS] = early.move(part / STATISTICS)
        for name, content in files.items():
            if content is not None:
                with ParallelDigest() as digest:
                    write_tensors(part / name, content, digest)
                    checksums[name] = digest.hexdigest()
        facts[_CHECKSUMS] = checksums
        text = json.dumps({**history, **facts}, indent=2, sort_keys=True, ensure_ascii=False, default=_plain)
        text = _SURROGATE.sub(lambda match: f"\\\\x{ord(match[0]) & 0xFF:02x}", text)  # of a name that is not UTF-8
        (part / _MANIFEST).write_bytes(text.encode() + b"\n")
        (part / CARD).write_bytes(card(json.loads(text)).encode())


def find_packing(manifest: Mapping[str, Any]) -> str | None:
    """The compression (int8, pq or sparse) that the last refine step allows; `subword` does not change the matrix."""
    changed = [step for step in manifest.get("refined") or () if step.get("step") != "subword"]
    packing = changed[-1].get("stored") if changed else manifest.get("stored")
    return packing if packing in PACKINGS else None


def read_manifest(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The manifest of a folder: how its vectors were made; without the checksums and the request."""
    return {key: value for key, value in _read_manifest(path).items() if key not in (_CHECKSUMS, _REQUEST)}


def read_request(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What decided the result in a folder, as digests; empty if that is not known, or if there is no folder."""
    request = read_object(Path(path) / _MANIFEST).get(_REQUEST)
    return request if isinstance(request, dict) else {}


def verify_folder(path: str | os.PathLike[str]) -> tuple[str, ...]:
    """Compare the files of a folder with the checksums in its manifest; return the names of these files."""
    file = local_path(path) / _MANIFEST
    checksums = _read_manifest(file.parent).get(_CHECKSUMS)
    if not isinstance(checksums, dict) or not {_VECTORS, _WORDS} <= checksums.keys() <= _FILES:
        cure = "folders of older versions have none: stillvec convert writes a new one"
        raise FormatError.expected(f"{_CHECKSUMS!r} of the files", repr(checksums)[:80], path=file, cure=cure)
    kept = {
        name: checksum for name, checksum in checksums.items() if name != STATISTICS or file.with_name(name).exists()
    }
    require_files(file.parent, tuple(kept), "stillvec folder")  # vectors are shared without their statistics
    for name, checksum in kept.items():
        if (got := file_digest(file.with_name(name))) != checksum:
            raise FormatError.expected(f"checksum {checksum}", got, path=file.with_name(name), code="checksum")
    return tuple(kept)


def _check_steps(file: Path, manifest: Mapping[str, Any]) -> None:
    steps = manifest.get("refined") or []
    if not isinstance(steps, list) or not all(isinstance(step, dict) for step in steps):
        raise FormatError.expected("a list of steps", repr(steps)[:80], where="'refined'", path=file)


def _read_manifest(path: str | os.PathLike[str]) -> dict[str, Any]:
    file = local_path(path) / _MANIFEST
    if file.parent.is_file():
        raise FormatError.expected("a stillvec folder", "a file", path=path, code="is-file")
    require_files(file.parent, (_MANIFEST,), "stillvec folder")
    manifest = read_json(file)
    if isinstance(manifest, dict) and INDEX_VERSION_KEY in manifest:
        cure = "search it with stillvec search, or give its subfolder vectors"
        raise FormatError.expected("vectors", "a search index", path=path, cure=cure, code="search-index")
    if isinstance(manifest, dict) and HEAD_VERSION_KEY in manifest:
        cure = "use it with stillvec predict, or give its subfolder vectors"
        raise FormatError.expected("vectors", "a head", path=path, cure=cure, code="head")
    version = manifest.get("format") if isinstance(manifest, dict) else None
    if not isinstance(version, int) or version < 1:
        raise FormatError.expected(f"'format': 1 to {VERSION}", repr(version), path=file, code="no-version")
    if version > VERSION:
        cure = "it was written by a newer stillvec: pip install --upgrade stillvec"
        raise FormatError.expected(f"'format': 1 to {VERSION}", version, path=file, cure=cure, code="newer-version")
    _check_steps(file, manifest)
    return dict(manifest)


def read_statistics(path: str | os.PathLike[str]) -> dict[str, NDArray[Any]]:
    """The statistics that the vectors were computed from, memory-mapped."""
    file = local_path(path, statistics=True) / STATISTICS
    read_manifest(file.parent)
    if not file.exists():
        raise FormatError.not_found(file, "the statistics of a method that can be merged or continued")
    return map_tensors(file)


def read_model(path: str | os.PathLike[str]) -> dict[str, NDArray[Any]]:
    """The parameters of a trained model besides the vectors, memory-mapped; empty for other methods."""
    file = local_path(path) / MODEL
    read_manifest(file.parent)
    return map_tensors(file) if file.exists() else {}


def _read_matrix(file: Path, manifest: Mapping[str, Any]) -> NDArray[Any]:
    arrays, kind = map_tensors(file), manifest.get("stored")
    if kind is None:
        if "matrix" not in arrays:
            raise FormatError.expected("an array 'matrix'", ", ".join(map(repr, arrays)) or "none", path=file)
        return arrays["matrix"]
    n_words, dim = manifest.get("words"), manifest.get("dim")
    if str(kind) not in PACKINGS or not isinstance(n_words, int) or not isinstance(dim, int):
        got = f"{kind!r} with {n_words!r} words x {dim!r}"
        what = f"a compression ({', '.join(PACKINGS)}) and the shape of the matrix"
        raise FormatError.expected(what, got, path=file.parent / _MANIFEST, code="compression")
    try:
        matrix = unpack(arrays, kind, (n_words, dim))
    except MemoryError:
        message = f"Out of memory: the {n_words:,} x {dim:,} numbers of {file} do not fit; close other programs."
        raise FormatError(message, path=file, code="out-of-memory") from None
    if matrix is None:
        what = f"{n_words} x {dim} numbers compressed as {kind!r}"
        raise FormatError.expected(what, "other arrays", path=file, code="compression")
    return matrix


def _read_subwords(path: Path, manifest: Mapping[str, Any], words: NDArray[Any]) -> SubwordTable | None:
    settings = manifest.get("subwords")
    if settings is None:
        return None
    require_files(path, (_SUBWORDS,), "stillvec folder with subwords")
    file = path / _SUBWORDS
    matrix = map_tensors(file).get("matrix")
    try:
        ngrams = settings_from(Ngrams, settings if isinstance(settings, dict) else {"subwords": settings}, _MANIFEST)
    except UsageError as error:
        raise FormatError(f"{path / _MANIFEST}: {error}", path=path / _MANIFEST) from None
    dim = words.shape[1]
    if matrix is None or matrix.shape != (ngrams.buckets, dim) or matrix.dtype.kind != "f":
        got = "none" if matrix is None else f"{matrix.dtype} of shape {matrix.shape}"
        raise FormatError.expected(f"'matrix' of {ngrams.buckets:,} x {dim} floats", got, path=file)
    if not np.isfinite(matrix[:: max(1, matrix.size // MAX_CHECKED)]).all():
        raise FormatError.expected("finite numbers", "NaN or infinity", path=file)
    return SubwordTable(ngrams, matrix)


def _read_contexts(
    path: Path, manifest: Mapping[str, Any], vocabulary: Vocabulary, words: NDArray[Any]
) -> NDArray[Any] | None:
    if manifest.get(_HAS_CONTEXTS) is not True:
        return None
    require_files(path, (MODEL,), "stillvec folder with a context table")
    file = path / MODEL
    table = map_tensors(file).get(_CONTEXTS)
    if table is None or table.shape != words.shape or table.dtype.kind != "f":
        got = "none" if table is None else f"{table.dtype} of shape {table.shape}"
        raise FormatError.expected(f"{_CONTEXTS!r} of {words.shape[0]:,} x {words.shape[1]} floats", got, path=file)
    check_finite(file, vocabulary, table)
    return table


def _read_senses(
    path: Path, manifest: Mapping[str, Any], vocabulary: Vocabulary, words: NDArray[Any]
) -> SenseTable | None:
    if _SENSES not in manifest:
        return None
    require_files(path, (MODEL,), "stillvec folder with senses")
    file = path / MODEL
    try:
        senses = SenseTable.from_arrays(vocabulary, map_tensors(file))
    except UsageError as error:
        raise FormatError(f"{file}: {error}", path=file) from None
    if senses.matrix.shape[1] != words.shape[1]:
        raise FormatError.expected(f"senses of dimension {words.shape[1]}", senses.matrix.shape[1], path=file)
    return senses


class _LazyVocabulary(Vocabulary):
    """The words of a large file, read on loading and parsed on first use."""

    def __init__(self, file: Path, raw: bytes, rules: Vocabulary) -> None:
        self.lowercase, self.segmenter, self.terms = rules.lowercase, rules.segmenter, rules.terms
        self._file, self._raw, self._size = file, raw, raw.count(b"\n")

    def __len__(self) -> int:
        return self._size

    def __getattr__(self, name: str) -> Any:
        if name not in ("words", "counts"):  # called only while they are not set
            raise AttributeError(f"Vocabulary has no attribute {name!r}.")
        if raw := self._raw:  # otherwise another thread was faster
            parsed = _parse_vocabulary(self._file, raw, self)
            self.words, self.counts, self.__dict__["index"] = parsed.words, parsed.counts, parsed.index
            self._raw = b""
        return self.__dict__[name]


def _read_vocabulary(file: Path, manifest: Mapping[str, Any]) -> Vocabulary:
    lowercase, rules = manifest.get("lowercase"), _read_rules(file.with_name(_MANIFEST), manifest)
    raw = file.read_bytes()
    if raw and not raw.endswith(b"\n"):
        raise damage_error(file, "a line break at the end", "it has none", line=raw.count(b"\n") + 1)
    if len(raw) > _MAX_EAGER and lowercase is not None:
        return _LazyVocabulary(file, raw, rules)
    parsed = _parse_vocabulary(file, raw, rules)
    return parsed if lowercase is not None else Vocabulary(parsed.words, parsed.counts)


def _read_rules(path: Path, manifest: Mapping[str, Any]) -> Vocabulary:
    """An empty vocabulary that finds words as the manifest says."""
    lowercase, segmenter = manifest.get("lowercase"), manifest.get("segmenter", SPACES)
    terms = manifest.get("segmenter_terms", [])
    if not isinstance(lowercase, bool | None):
        raise FormatError.expected("true or false", repr(lowercase)[:60], where="'lowercase'", path=path)
    names = segmenter.split(",") if isinstance(segmenter, str) else [""]
    if names != [SPACES] and not all(name in SEGMENTERS for name in names):
        what = f"{SPACES} or some of {', '.join(SEGMENTERS)}"
        raise FormatError.expected(what, repr(segmenter)[:60], where="'segmenter'", path=path)
    if not isinstance(terms, list) or not all(isinstance(term, str) for term in terms):
        raise FormatError.expected("a list of words", repr(terms)[:60], where="'segmenter_terms'", path=path)
    return Vocabulary((), lowercase=bool(lowercase), segmenter=segmenter, terms=terms)


def _parse_vocabulary(file: Path, raw: bytes, rules: Vocabulary) -> Vocabulary:
    text = decode_text(raw, file)
    fields = text[:-1].replace("\n", "\t").split("\t") if raw else []
    words, counts = fields[::2], fields[1::2]
    regular = raw.translate(None, _NOT_SEPARATORS) == b"\t\n" * len(words)
    if not regular or "" in words or not all(map(str.isdecimal, counts)):
        for number, line in enumerate(text.split("\n"), 1):
            word, _, count = line.partition("\t")
            if not word or not count.isdecimal():
                raise FormatError.expected("a word, a tab and a count", repr(line), path=file, line=number)
    try:
        return rules.like(words, map(int, counts))
    except UsageError:
        raise damage_error(file, "counts below 2^63", "a larger count") from None
    except VocabularyError:
        first: dict[str, int] = {}
        row = next(row for row, word in enumerate(words) if first.setdefault(word, row) != row)
        got = f"{words[row]!r} again (first in line {first[words[row]] + 1})"
        raise FormatError.expected("one line per word", got, path=file, line=row + 1) from None


def _plain(value: object) -> object:
    """NumPy numbers and arrays as JSON values, other objects as text."""
    return value.tolist() if isinstance(value, np.generic | np.ndarray) else str(value)


def _is_ours(folder: Path) -> bool:
    manifest = read_object(folder / _MANIFEST)
    return isinstance(manifest.get("format"), int) and isinstance(manifest.get("stillvec"), str)


def _describe(folder: Path) -> str:
    manifest = read_object(folder / _MANIFEST)
    method, made = manifest.get("method"), str(manifest.get("made", ""))[:16].replace("T", " ")
    steps = len(manifest.get("refined") or ())
    facts = [f" by {method}"] * bool(method) + [f", refined in {steps} step{'s' * (steps > 1)}"] * bool(steps)
    facts += [f", made {made} UTC"] * bool(made) + [", with statistics"] * (folder / STATISTICS).is_file()
    n_words = manifest.get("words")
    size = f"{n_words:,} words x {manifest.get('dim')}" if isinstance(n_words, int) else "vectors"
    return size + "".join(facts)


_NAMES = (_MANIFEST, _VECTORS, _WORDS, STATISTICS, MODEL, _SUBWORDS, CARD)
LAYOUT = FolderLayout(_NAMES, _is_ours, alone=False, describe=_describe)
FORMAT = Format(recognize, read, write, ("",), LAYOUT)
