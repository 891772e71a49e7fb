"""fastText's `.vec`: word2vec's text, in a file of that ending (Bojanowski et al., 2017)."""

from __future__ import annotations

from pathlib import Path

from stillvec.files import uncompressed_name
from stillvec.formats import word2vec
from stillvec.formats.format import Format
from stillvec.vectors import WordVectors


def recognises(path: Path, head: bytes) -> bool:
    return uncompressed_name(path).endswith(".vec") and word2vec.recognises(path, head)


def read(path: Path) -> WordVectors:
    return word2vec.read(path)


def write(vectors: WordVectors, path: Path) -> None:
    word2vec.write(vectors, path)


FORMAT = Format(recognises, read, write, (".vec",))
