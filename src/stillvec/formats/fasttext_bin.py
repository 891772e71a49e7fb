"""The `.bin` model of fastText: a word is the mean of its own row and those of its hashed n-grams.

Bojanowski et al. (2017). Vectors are written as a model without n-grams, which fastText and gensim can load.
"""

import mmap
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import FormatError
from stillvec.files import create_bytes, open_local
from stillvec.formats.format import Format, begins_with, damage_error, empty_error
from stillvec.formats.vector_table import VectorTableBuilder, encode_words
from stillvec.numerics import iterate_blocks
from stillvec.vectors import WordVectors

_MAGIC, _VERSION = 793_712_314, 12
_SETTINGS = struct.Struct("<ii12id")  # magic, version, and the training arguments
_SIZES = struct.Struct("<3iqq")  # entries, words, labels; tokens, n-grams left by pruning (-1: all)
_SOFTMAX, _SKIPGRAM, _SUPERVISED = 3, 2, 3
_WORDS = 1 << 12  # words per batch
_FLOAT = np.dtype("<f4")
_KIND = "a fastText model"


@dataclass(frozen=True)
class _Model:
    words: list[bytes]
    counts: list[int]
    table: NDArray[np.float32]  # (words + buckets, dim)
    shortest: int
    longest: int


def read(path: Path) -> WordVectors:
    with open_local(path, FormatError) as place, open(place, "rb") as stream:
        if not place.stat().st_size:
            raise empty_error(path)
        raw = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        try:
            model = _parse_model(path, raw)
        except (struct.error, OverflowError) as error:
            raise damage_error(path, _KIND, error) from None
        rows = VectorTableBuilder(path, model.table.shape[1])
        for first in range(0, len(model.words), _WORDS):
            words = model.words[first : first + _WORDS]
            rows.add(words, _average_ngrams(model, words, first))
        return rows.finish(model.counts)


def write(vectors: WordVectors, path: Path) -> None:
    words = encode_words(vectors, path, forbidden="\0")
    counts = np.maximum(vectors.vocabulary.counts, 1).tolist()  # gensim drops words of count 0, but not their vectors
    size, dim = len(words), vectors.dim
    with create_bytes(path) as stream:
        settings = (dim, 5, 0, 1, 5, 1, _SOFTMAX, _SKIPGRAM, 0, 0, 0, 100, 1e-4)
        stream.write(_SETTINGS.pack(_MAGIC, _VERSION, *settings) + _SIZES.pack(size, size, 0, sum(counts), -1))
        for word, count in zip(words, counts, strict=True):
            stream.write(b"%b\0%b" % (word, struct.pack("<qb", count, 0)))
        stream.write(struct.pack("<?qq", False, size, dim))
        for _, block in iterate_blocks(vectors.matrix, _FLOAT, _WORDS):
            stream.write(np.ascontiguousarray(block).data)
        stream.write(struct.pack("<?qq", False, 0, dim))  # no output layer, so training cannot continue


def _parse_model(path: Path, raw: mmap.mmap) -> _Model:
    magic, version, dim, *_, kind, buckets, shortest, longest, _, _ = _SETTINGS.unpack_from(raw)
    if magic != _MAGIC or not 0 < version <= _VERSION:
        raise damage_error(path, _KIND, f"wrong magic number or a version other than 1 to {_VERSION}")
    entries, size, _, _, left = _SIZES.unpack_from(raw, _SETTINGS.size)
    words, counts, position = _parse_dictionary(path, raw, entries, size)
    position += 8 * max(0, left)
    quantized, rows, columns = struct.unpack_from("<?qq", raw, position)
    if quantized or left >= 0:
        cure = "give the .bin file that it was made from"
        raise FormatError.expected(_KIND, "a quantized or pruned one (.ftz)", path=path, cure=cure, code="quantized")
    position += struct.calcsize("<?qq")
    if columns != dim or dim < 1 or rows != size + buckets or buckets < 0:
        sizes = f"a table of {rows} x {columns} for {size} words, {buckets} buckets and {dim} dimensions"
        raise damage_error(path, _KIND, sizes)
    if position + rows * columns * _FLOAT.itemsize > len(raw):
        raise damage_error(path, _KIND, f"it ends before the last of {rows:,} vectors of {columns} numbers")
    table = np.frombuffer(raw, _FLOAT, rows * columns, position).reshape(rows, columns)
    if not buckets or (version < _VERSION and kind == _SUPERVISED):  # n-grams were not used
        longest = 0
    return _Model(words, counts, table, shortest, longest)


def _parse_dictionary(path: Path, raw: mmap.mmap, entries: int, size: int) -> tuple[list[bytes], list[int], int]:
    """The words (without labels), their counts, and the end position of the dictionary."""
    words, counts, position = [], [], _SETTINGS.size + _SIZES.size
    for _ in range(entries):
        end = raw.find(b"\0", position)
        if end < 0:
            raise damage_error(path, _KIND, "it ends within the words")
        count, label = struct.unpack_from("<qb", raw, end + 1)
        if label == 0:
            words.append(raw[position:end])
            counts.append(count)
        position = end + 1 + struct.calcsize("<qb")
    if len(words) != size:
        raise damage_error(path, _KIND, f"{len(words):,} words instead of {size:,}")
    return words, counts, position


def _average_ngrams(model: _Model, words: Sequence[bytes], first: int) -> NDArray[np.float32]:
    """The mean of each word's row and the rows of its n-grams; `first` is the row of the first word."""
    from scipy.sparse import csr_array

    grams, owners = _hash_ngrams(words, model.shortest, model.longest)
    bare = np.array([word == b"</s>" for word in words])[owners]  # the end-of-sentence token has no n-grams
    rows = len(model.words) + grams[~bare].astype(np.int64) % max(1, len(model.table) - len(model.words))
    rows = np.concatenate([np.arange(first, first + len(words)), rows])
    owners = np.concatenate([np.arange(len(words)), owners[~bare]])
    used, column = np.unique(rows, return_inverse=True)
    parts = csr_array((np.ones(len(rows), np.float32), (owners, column)), shape=(len(words), len(used)))
    sums = parts @ np.ascontiguousarray(model.table[used], np.float32)
    return np.asarray(sums / np.bincount(owners, minlength=len(words))[:, None].astype(np.float32), np.float32)


def _hash_ngrams(words: Sequence[bytes], shortest: int, longest: int) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """FNV-1a hashes (of signed bytes, as in fastText) of the n-grams of each `<word>`, and the index of the word."""
    text = np.frombuffer(b"".join([b"<%b>" % word for word in words]), np.int8)
    lengths = np.fromiter((len(word) + 2 for word in words), np.int64, len(words))
    owner = np.repeat(np.arange(len(words)), lengths)
    ends = np.cumsum(lengths)[owner]  # (bytes,) one past the last byte of the word
    starts = (text.view(np.uint8) & 0xC0) != 0x80  # whether a byte starts a character
    first = np.flatnonzero(starts)
    at, hashes = first.copy(), np.full(len(first), 2_166_136_261, np.uint32)
    ngrams: list[tuple[NDArray[np.uint32], NDArray[np.int64]]] = [(hashes[:0], first[:0])]
    for length in range(1, longest + 1):
        alive = at < ends[first]
        first, at, hashes = first[alive], at[alive], hashes[alive]
        if not len(first):
            break
        more = np.ones(len(first), bool)
        while more.any():  # the bytes of one character
            hashes[more] = (hashes[more] ^ text[at[more]].astype(np.uint32)) * np.uint32(16_777_619)
            at[more] += 1
            more &= at < ends[first]
            more[more] = ~starts[at[more]]
        if length >= shortest:
            sign = (length == 1) & ((at == ends[first]) | (first == ends[first] - lengths[owner[first]]))
            ngrams.append((hashes[~sign], owner[first[~sign]]))
    return tuple(map(np.concatenate, zip(*ngrams, strict=True)))  # type: ignore[return-value]


FORMAT = Format(begins_with(struct.pack("<i", _MAGIC)), read, write)
