"""Vectors from files and to files: `load` finds the format by looking, `save` writes whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

from stillvec.errors import FormatError
from stillvec.formats.format import Format
from stillvec.formats.stillvec_folder import read_manifest, read_model, read_statistics, write_folder
from stillvec.formats.streams import first_bytes
from stillvec.registry import Registry
from stillvec.vectors import WordVectors

__all__ = [
    "FORMATS",
    "Format",
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
    """Vectors from a folder of ours or a foreign file, which may be compressed (.gz, .bz2, .xz)."""
    place = Path(path)
    if not place.exists():
        raise FormatError(f"There is no file or folder {place}; vectors were to be read from it.")
    return FORMATS[format or _recognised(place)].read(place)


def save(vectors: WordVectors, path: str | os.PathLike[str], *, format: str = "stillvec") -> None:
    """Write vectors in a format of `FORMATS`; an old file is replaced only when the new one is whole."""
    FORMATS[format].write(vectors, Path(path))


def _recognised(path: Path) -> str:
    head = b"" if path.is_dir() else first_bytes(path)
    for name in FORMATS:
        if FORMATS[name].recognises(path, head):
            return name
    if path.is_dir():
        raise FormatError(
            f"The folder {path} has no manifest.json, so it is no folder of vectors, nor is it one of spaCy, "
            "model2vec, sentence-transformers (StaticEmbedding) or the projector."
        )
    if not head:
        raise FormatError(f"{path} is empty, and vectors were to be read from it.")
    raise FormatError(f"{path} looks like none of the formats {', '.join(FORMATS)}; if it is one, name it.")
