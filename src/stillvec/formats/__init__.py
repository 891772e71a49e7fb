"""Vectors from files and to files: `load` finds the format by looking, `save` writes whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

from stillvec.errors import FormatError, UsageError
from stillvec.files import inner_name, read_head
from stillvec.formats.format import Format
from stillvec.formats.stillvec_folder import read_manifest, read_model, read_statistics, write_folder
from stillvec.registry import Registry
from stillvec.vectors import WordVectors

__all__ = [
    "FORMATS",
    "Format",
    "format_by_ending",
    "load",
    "read_manifest",
    "read_model",
    "read_statistics",
    "save",
    "write_folder",
]

FORMATS: Registry[Format] = Registry(  # asked in this order: the narrow ones before the wide
    "format",
    {
        "stillvec": "stillvec.formats.stillvec_folder:FORMAT",
        "spacy": "stillvec.formats.spacy:FORMAT",
        "model2vec": "stillvec.formats.model2vec:FORMAT",
        "sentence-transformers": "stillvec.formats.sentence_transformers:FORMAT",
        "projector": "stillvec.formats.projector:FORMAT",
        "npy": "stillvec.formats.npy:FORMAT",
        "parquet": "stillvec.formats.parquet_table:FORMAT",
        "hdf5": "stillvec.formats.hdf5:FORMAT",
        "onnx": "stillvec.formats.onnx:FORMAT",
        "fasttext-bin": "stillvec.formats.fasttext_bin:FORMAT",
        "gensim": "stillvec.formats.gensim:FORMAT",
        "floret": "stillvec.formats.floret:FORMAT",
        "fasttext": "stillvec.formats.fasttext_vec:FORMAT",
        "word2vec": "stillvec.formats.word2vec:FORMAT",
        "word2vec-binary": "stillvec.formats.word2vec_binary:FORMAT",
        "glove": "stillvec.formats.glove_text:FORMAT",
    },
)


def load(path: str | os.PathLike[str], *, format: str | None = None) -> WordVectors:
    """Read vectors from a stillvec folder or any file format in `FORMATS`, which may be compressed.

    Parameters
    ----------
    path: the folder or file.
    format: its name in `FORMATS` (default: recognised from the content).
    """
    place = Path(path)
    if not place.exists():
        raise FormatError.not_found(place, "vectors")
    vectors = FORMATS[format or _recognize(place)].read(place)
    return vectors if vectors.provenance else vectors.with_provenance({"source": place.name})


def save(vectors: WordVectors, path: str | os.PathLike[str], *, format: str | None = None) -> None:
    """Write vectors; an existing file is replaced only when the new one is complete.

    A stillvec folder also gets the provenance of the vectors (its manifest) and keeps the packing of its last step.

    Parameters
    ----------
    vectors: what to write.
    path: the folder or file; .gz, .bz2 and .xz compress a file.
    format: a name in `FORMATS` (default: by the ending of `path`; a name without an ending is a stillvec folder).
    """
    place = Path(path)
    FORMATS[format or format_by_ending(place)].write(vectors, place)


def format_by_ending(path: Path) -> str:
    """The format that the ending of a file name means."""
    ending = Path(inner_name(path)).suffix.lower()
    for name in FORMATS:
        if ending in FORMATS[name].endings:
            return name
    raise UsageError(
        f"The ending of {path} names no format; give the format: {', '.join(FORMATS)}.", code="unknown-ending"
    )


def _recognize(path: Path) -> str:
    head = b"" if path.is_dir() else read_head(path, FormatError)
    for name in FORMATS:
        if FORMATS[name].recognize(path, head):
            return name
    if path.is_dir():
        raise FormatError(
            f"The folder {path} has no manifest.json, so it is no folder of vectors, nor is it one of spaCy, "
            "model2vec, sentence-transformers (StaticEmbedding) or the projector."
        )
    if not head:
        raise FormatError(f"{path} is empty, and vectors were to be read from it.")
    raise FormatError(f"{path} looks like none of the formats {', '.join(FORMATS)}; if it is one, name it.")
