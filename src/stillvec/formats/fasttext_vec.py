"""fastText's `.vec`: the text format of word2vec under another suffix (Bojanowski et al., 2017)."""

from __future__ import annotations

from pathlib import Path

from stillvec.files import inner_suffix
from stillvec.formats import word2vec
from stillvec.formats.format import Format


def recognize(path: Path, head: bytes) -> bool:
    return inner_suffix(path) == ".vec" and word2vec.recognize(path, head)


FORMAT = Format(recognize, word2vec.read, word2vec.write, (".vec",))
