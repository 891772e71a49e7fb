"""A folder for `SentenceTransformer(folder)`: one module, `StaticEmbedding`, the mean of the words of a text."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from stillvec.files import atomic_folder
from stillvec.formats.format import Format
from stillvec.formats.tensors import write_tensors
from stillvec.formats.tokenized import MODULES, STATIC, TOKENIZER, WEIGHTS, read_static, without_unknown
from stillvec.formats.vector_table import check_numbers, encode_words
from stillvec.vectors import WordVectors

_CONFIG = "config_sentence_transformers.json"


def recognize(path: Path, head: bytes) -> bool:
    return (path / MODULES).is_file() and b"StaticEmbedding" in (path / MODULES).read_bytes()


def read(path: Path) -> WordVectors:
    return read_static(path)


def write(vectors: WordVectors, path: Path) -> None:
    check_numbers(vectors, path, np.float32)
    encode_words(vectors, path)
    settings: dict[str, object] = {"prompts": {}, "default_prompt_name": None, "similarity_fn_name": "cosine"}
    with atomic_folder(path, MODULES) as part:
        write_tensors(part / WEIGHTS, {"embedding.weight": np.asarray(vectors.matrix, np.float32)})
        without_unknown(vectors).save(str(part / TOKENIZER), pretty=False)
        (part / _CONFIG).write_text(json.dumps(settings, indent=2) + "\n")
        (part / MODULES).write_text(json.dumps([{"idx": 0, "name": "0", "path": "", "type": STATIC}], indent=2) + "\n")


FORMAT = Format(recognize, read, write)
