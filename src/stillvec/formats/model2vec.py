"""A folder for model2vec's `StaticModel.from_pretrained` (Tulkens and van Dongen, 2024)."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from stillvec.files import atomic_folder
from stillvec.formats.format import Format
from stillvec.formats.tensors import write_tensors
from stillvec.formats.tokenized import MODULES, STATIC, TOKENIZER, WEIGHTS, read_static, with_unknown
from stillvec.formats.vector_table import check_numbers, encode_words
from stillvec.vectors import WordVectors

_CONFIG = "config.json"


def recognize(path: Path, head: bytes) -> bool:
    return (path / _CONFIG).is_file() and b"model2vec" in (path / _CONFIG).read_bytes()


def read(path: Path) -> WordVectors:
    return read_static(path)


def write(vectors: WordVectors, path: Path) -> None:
    check_numbers(vectors, path, np.float32)
    encode_words(vectors, path)
    table = np.zeros((len(vectors) + 1, vectors.dim), np.float32)  # the first row is for unknown words
    table[1:] = vectors.matrix
    settings = {
        "model_type": "model2vec",
        "architectures": ["StaticModel"],
        "normalize": False,
        "max_length": None,  # texts are not cut
        "embedding_dtype": "float32",
    }
    with atomic_folder(path, TOKENIZER) as part:
        write_tensors(part / WEIGHTS, {"embeddings": table})
        with_unknown(vectors).save(str(part / TOKENIZER), pretty=False)
        (part / _CONFIG).write_text(json.dumps(settings, indent=2) + "\n")
        (part / MODULES).write_text(json.dumps([{"idx": 0, "name": "0", "path": ".", "type": STATIC}], indent=2) + "\n")


FORMAT = Format(recognize, read, write)
