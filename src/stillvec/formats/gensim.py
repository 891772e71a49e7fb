"""The `.kv` format of gensim, a pickle: written by gensim, never read."""

from pathlib import Path
from typing import NoReturn

import numpy as np

from stillvec.errors import FormatError
from stillvec.files import create_bytes, inner_name
from stillvec.formats.format import Format
from stillvec.formats.vector_table import encode_words
from stillvec.registry import require
from stillvec.vectors import WordVectors


def recognize(path: Path, head: bytes) -> bool:
    return head[:1] == b"\x80" and head[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05")  # pickle protocols


def read(path: Path) -> NoReturn:
    name = inner_name(path)
    cure = f"if you trust it, run KeyedVectors.load({name!r}).save_word2vec_format('vectors.bin', binary=True)"
    got = "a pickle of gensim, which can run any program when it is loaded"
    raise FormatError.expected("vectors", got, path=path, cure=cure, code="pickle")


def write(vectors: WordVectors, path: Path) -> None:
    models = require("gensim.models", "train", "Writing .kv of gensim")
    encode_words(vectors, path)
    keyed = models.KeyedVectors(vectors.dim)
    keyed.add_vectors([*vectors.words], np.asarray(vectors.matrix, np.float32))
    for word, count in zip(vectors.words, vectors.vocabulary.counts.tolist(), strict=True):
        keyed.set_vecattr(word, "count", count)
    with create_bytes(path) as stream:
        keyed.save(stream)  # a stream gets everything in one file


FORMAT = Format(recognize, read, write, (".kv",))
