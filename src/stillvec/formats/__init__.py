"""Load and save vectors: `load` recognizes the format by the content, `save` writes atomically."""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from stillvec.errors import FormatError, UsageError
from stillvec.files import check_replaceable, inner_suffix, read_head
from stillvec.files.path_names import show_path, unique_names
from stillvec.formats.arrow_table import ArrowTable, read_stream
from stillvec.formats.format import Format, empty_error
from stillvec.formats.hub_folder import local_path
from stillvec.formats.stillvec_folder import read_manifest, read_model, read_statistics, write_folder
from stillvec.hub import is_address, parse_address
from stillvec.input_checks import check_arguments
from stillvec.registry import Registry
from stillvec.vectors import WordVectors

__all__ = [
    "FORMATS",
    "Format",
    "VectorSets",
    "VectorSource",
    "format_by_ending",
    "load",
    "local_path",
    "name_sets",
    "open_sets",
    "open_vectors",
    "read_manifest",
    "read_model",
    "read_statistics",
    "save",
    "write_folder",
]

FORMATS: Registry[Format] = Registry(  # in the order of recognition, the most specific first
    "format",
    {
        "stillvec": "stillvec.formats.stillvec_folder:FORMAT",
        "spacy": "stillvec.formats.spacy:FORMAT",
        "model2vec": "stillvec.formats.static_embeddings:MODEL2VEC",
        "sentence-transformers": "stillvec.formats.static_embeddings:SENTENCE_TRANSFORMERS",
        "projector": "stillvec.formats.projector:FORMAT",
        "npy": "stillvec.formats.npy:FORMAT",
        "parquet": "stillvec.formats.parquet_table:FORMAT",
        "hdf5": "stillvec.formats.hdf5:FORMAT",
        "onnx": "stillvec.formats.onnx:FORMAT",
        "fasttext-bin": "stillvec.formats.fasttext_bin:FORMAT",
        "gensim": "stillvec.formats.gensim:FORMAT",
        "floret": "stillvec.formats.floret:FORMAT",
        "fasttext": "stillvec.formats.word2vec:FASTTEXT",
        "word2vec": "stillvec.formats.word2vec:TEXT",
        "word2vec-binary": "stillvec.formats.word2vec:BINARY",
        "glove": "stillvec.formats.word2vec:GLOVE",
    },
)


VectorSource = WordVectors | str | os.PathLike[str] | ArrowTable
VectorSets = VectorSource | Sequence[VectorSource] | Mapping[str, VectorSource]


def load(path: str | os.PathLike[str] | ArrowTable, *, format: str | None = None) -> WordVectors:
    """Read vectors from a stillvec folder or any file format in `FORMATS`, which may be compressed, or a data frame.

    Parameters
    ----------
    path: the folder or file; "english", the vectors of the package stillvec-english; an address on the Hugging Face
        Hub, hf://OWNER/NAME[@REVISION][/FOLDER] (extra `hub`); or a data frame of Polars or pandas, or another table
        with `__arrow_c_stream__`, with the columns `word`, `vector` (lists of equal length) and optionally `count`.
    format: its name in `FORMATS` (default: recognized by the content).
    """
    check_arguments(load, locals())
    if not isinstance(path, str | os.PathLike):
        if format is not None or not hasattr(path, "__arrow_c_stream__"):
            what = "a path" if format is not None else "a path, or a data frame with the columns 'word' and 'vector'"
            raise UsageError.expected(what, type(path).__name__, where="load")
        return read_stream(path).with_provenance({"source": type(path).__name__})
    place = local_path(path)
    if not place.exists():
        raise FormatError.not_found(place, "vectors")
    if place.is_fifo():
        raise FormatError.expected("a file or folder", "a pipe", path=place, code="not-a-file")
    vectors = FORMATS[format or _recognize(place)].read(place)
    source = str(parse_address(path)) if is_address(path) else show_path(place.name)
    return vectors if vectors.provenance else vectors.with_provenance({"source": source})


def open_vectors(vectors: VectorSource) -> WordVectors:
    """The vectors themselves, or those that a path names or a data frame contains."""
    return vectors if isinstance(vectors, WordVectors) else load(vectors)


def open_sets(sources: VectorSets) -> dict[str, WordVectors]:
    """Several sets by name: those of paths by their last part, or by as many as make the names differ."""
    if isinstance(sources, Mapping):
        return {str(name): open_vectors(source) for name, source in sources.items()}
    if isinstance(sources, WordVectors) or hasattr(sources, "__arrow_c_stream__"):
        return {"vectors": open_vectors(sources)}
    listed = [sources] if isinstance(sources, str | os.PathLike) or not isinstance(sources, Iterable) else [*sources]
    return dict(zip(name_sets(listed), map(open_vectors, listed), strict=True))


def name_sets(sources: Sequence[VectorSource]) -> list[str]:
    """The names of sets: from their paths, or numbers if one of them has no path."""
    paths = [source for source in sources if isinstance(source, str | os.PathLike)]
    if len(paths) == len(sources) and paths:
        return unique_names(paths)
    return [f"vectors-{number}" for number in range(1, len(sources) + 1)]


def save(vectors: WordVectors, path: str | os.PathLike[str], *, format: str | None = None, force: bool = False) -> None:
    """Write vectors; an existing file is replaced only when the new one is complete, a folder only if it is ours.

    A stillvec folder also gets the provenance of the vectors (its manifest) and the compression of its last step.

    Parameters
    ----------
    vectors: the vectors.
    path: the folder or file; .gz, .bz2 and .xz compress a file.
    format: a name in `FORMATS` (default: by the suffix of `path`; without a suffix, a stillvec folder).
    force: replace what exists; in a folder that stillvec did not write, only files of the same names (default: False).
    """
    check_arguments(save, locals())
    place = Path(path)
    chosen = FORMATS[format or format_by_ending(place)]
    check_replaceable(place, chosen.layout, force=force)
    chosen.write(vectors, place)


def format_by_ending(path: Path) -> str:
    """The format of files with this suffix."""
    suffix = inner_suffix(path)
    for name in FORMATS:
        if suffix in FORMATS[name].suffixes:
            return name
    what = f"the suffix of a format ({', '.join(FORMATS)})"
    raise UsageError.expected(what, repr(suffix), path=path, cure="or give the format", code="unknown-ending")


def _recognize(path: Path) -> str:
    head = b"" if path.is_dir() else read_head(path, FormatError)
    for name in FORMATS:
        if FORMATS[name].recognize(path, head):
            return name
    if path.is_dir():
        what = "a folder of stillvec (manifest.json), spaCy, model2vec, sentence-transformers or the projector"
        raise FormatError.expected(what, "another folder", path=path, code="unknown-format")
    if not head:
        raise empty_error(path)
    what = f"one of the formats {', '.join(FORMATS)}"
    raise FormatError.expected(what, "another format", path=path, cure="or give its format", code="unknown-format")
