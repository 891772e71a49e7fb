"""fastText's `.bin`: a word is the mean of its row and those of its hashed n-grams (Bojanowski et al., 2017).

Vectors are written as a model without n-grams, which fastText and gensim load.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import FormatError
from stillvec.files import create_bytes, open_local
from stillvec.formats.format import Format
from stillvec.formats.grams import ngrams
from stillvec.formats.vector_table import VectorTableBuilder, check_numbers, encode_words
from stillvec.vectors import WordVectors

_MAGIC, _VERSION = 793_712_314, 12
_SETTINGS = struct.Struct("<ii12id")  # magic, version, and what fastText calls args
_SIZES = struct.Struct("<3iqq")  # entries, words, labels; tokens, n-grams that pruning left (-1: all)
_SOFTMAX, _SKIPGRAM, _SUPERVISED = 3, 2, 3
_WORDS = 1 << 12  # words whose n-grams are looked up at once
_FLOAT = np.dtype("<f4")


@dataclass(frozen=True)
class _Model:
    words: list[bytes]
    counts: list[int]
    table: NDArray[np.float32]  # (words + buckets, dim)
    shortest: int
    longest: int


def recognize(path: Path, head: bytes) -> bool:
    return head[:4] == struct.pack("<i", _MAGIC)


def read(path: Path) -> WordVectors:
    with open_local(path, FormatError) as place, open(place, "rb") as stream:
        if not place.stat().st_size:
            raise FormatError(f"{path} is empty, and vectors were to be read from it.")
        raw = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        try:
            model = _parse_model(path, raw)
        except (struct.error, OverflowError) as error:
            raise FormatError(f"{path} ends before its words and vectors do; it is cut short.") from error
        rows = VectorTableBuilder(path, model.table.shape[1], lambda row: f"{path}, word {row + 1:,}")
        for first in range(0, len(model.words), _WORDS):
            some = model.words[first : first + _WORDS]
            rows.add(some, _means(model, some, first))
        return rows.finish(model.counts)


def write(vectors: WordVectors, path: Path) -> None:
    check_numbers(vectors, path, np.float32)
    words = encode_words(vectors, path)
    bad = next((word for word in words if b"\0" in word), None)
    if bad is not None:
        raise FormatError(f"{path} was not written: the word {bad.decode()!r} holds a NUL, which ends a word there.")
    counts = np.maximum(vectors.vocabulary.counts, 1).tolist()  # gensim leaves out words never seen, not their vectors
    size, dim = len(words), vectors.dim
    with create_bytes(path) as stream:
        settings = (dim, 5, 0, 1, 5, 1, _SOFTMAX, _SKIPGRAM, 0, 0, 0, 100, 1e-4)
        stream.write(_SETTINGS.pack(_MAGIC, _VERSION, *settings) + _SIZES.pack(size, size, 0, sum(counts), -1))
        for word, count in zip(words, counts, strict=True):
            stream.write(b"%b\0%b" % (word, struct.pack("<qb", count, 0)))
        stream.write(struct.pack("<?qq", False, size, dim))
        for first in range(0, size, _WORDS):
            stream.write(np.ascontiguousarray(vectors.matrix[first : first + _WORDS], _FLOAT).data)
        stream.write(struct.pack("<?qq", False, 0, dim))  # no output layer: it is not trained on


def _parse_model(path: Path, raw: mmap.mmap) -> _Model:
    magic, version, dim, *_, kind, buckets, shortest, longest, _, _ = _SETTINGS.unpack_from(raw)
    if magic != _MAGIC or not 0 < version <= _VERSION:
        raise FormatError(f"{path} does not begin as a fastText model of version {_VERSION} or before does.")
    entries, size, _, _, left = _SIZES.unpack_from(raw, _SETTINGS.size)
    words, counts, position = _dictionary(path, raw, entries, size)
    position += 8 * max(0, left)
    quantized, rows, columns = struct.unpack_from("<?qq", raw, position)
    if quantized or left >= 0:
        raise FormatError(
            f"{path} is a quantized or pruned fastText model (.ftz), whose vectors are rounded to codes; take the .bin "
            "it was made of."
        )
    position += struct.calcsize("<?qq")
    if columns != dim or dim < 1 or rows != size + buckets or buckets < 0:
        raise FormatError(
            f"{path}: a table of {rows} x {columns} does not fit {size} words, {buckets} buckets, {dim} numbers."
        )
    if position + rows * columns * _FLOAT.itemsize > len(raw):
        raise FormatError(f"{path} ends within its {rows:,} vectors of {columns} numbers; it is cut short.")
    table = np.frombuffer(raw, _FLOAT, rows * columns, position).reshape(rows, columns)
    if not buckets or (version < _VERSION and kind == _SUPERVISED):  # which had n-grams in name only
        longest = 0
    return _Model(words, counts, table, shortest, longest)


def _dictionary(path: Path, raw: mmap.mmap, entries: int, size: int) -> tuple[list[bytes], list[int], int]:
    """The words, without labels, their counts, and where the entries end."""
    words, counts, position = [], [], _SETTINGS.size + _SIZES.size
    for _ in range(entries):
        end = raw.find(b"\0", position)
        if end < 0:
            raise FormatError(f"{path} ends within its words; it is cut short.")
        count, label = struct.unpack_from("<qb", raw, end + 1)
        if label == 0:
            words.append(raw[position:end])
            counts.append(count)
        position = end + 1 + struct.calcsize("<qb")
    if len(words) != size:
        raise FormatError(f"{path} announces {size:,} words and has {len(words):,}; it is damaged.")
    return words, counts, position


def _means(model: _Model, words: Sequence[bytes], first: int) -> NDArray[np.float32]:
    """Means over a word's row and those of its n-grams, `first` being the row of the first word."""
    from scipy.sparse import csr_array

    grams, owners = ngrams(words, model.shortest, model.longest)
    bare = np.array([word == b"</s>" for word in words])[owners]  # fastText's own: the end of a sentence has none
    rows = len(model.words) + grams[~bare].astype(np.int64) % max(1, len(model.table) - len(model.words))
    rows = np.concatenate([np.arange(first, first + len(words)), rows])
    owners = np.concatenate([np.arange(len(words)), owners[~bare]])
    used, place = np.unique(rows, return_inverse=True)
    parts = csr_array((np.ones(len(rows), np.float32), (owners, place)), shape=(len(words), len(used)))
    sums = parts @ np.ascontiguousarray(model.table[used], np.float32)
    return np.asarray(sums / np.bincount(owners, minlength=len(words))[:, None].astype(np.float32), np.float32)


FORMAT = Format(recognize, read, write)
