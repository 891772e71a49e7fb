"""gensim's own `.kv`, a pickle: written through gensim, and never read."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import numpy as np

from stillvec.errors import FormatError
from stillvec.files import create_bytes, inner_name
from stillvec.formats.format import Format
from stillvec.formats.vector_table import check_numbers, encode_words
from stillvec.registry import require
from stillvec.vectors import WordVectors


def recognize(path: Path, head: bytes) -> bool:
    return head[:1] == b"\x80" and head[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05")  # the protocols of pickle


def read(path: Path) -> NoReturn:
    name = inner_name(path)
    raise FormatError(
        f"{path} is a pickle, as gensim saves its objects, and reading one may run any program, so it is not read; if "
        f"you trust it, let gensim say KeyedVectors.load({name!r}).save_word2vec_format('vectors.bin', binary=True), "
        "and give that file."
    )


def write(vectors: WordVectors, path: Path) -> None:
    models = require("gensim.models", "train", "Writing a .kv file of gensim")
    check_numbers(vectors, path, np.float32)
    encode_words(vectors, path)
    keyed = models.KeyedVectors(vectors.dim)
    keyed.add_vectors([*vectors.words], np.asarray(vectors.matrix, np.float32))
    for word, count in zip(vectors.words, vectors.vocabulary.counts.tolist(), strict=True):
        keyed.set_vecattr(word, "count", count)
    with create_bytes(path) as stream:
        keyed.save(stream)  # in one piece, to a stream


FORMAT = Format(recognize, read, write, (".kv",))
