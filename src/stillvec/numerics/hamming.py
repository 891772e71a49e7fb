"""Rows of signs as packed bits: a set bit is a positive number. Eight bytes are one 64-bit number."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stillvec.numerics.rows import iterate_blocks

Codes = NDArray[np.uint64]
_BITS_OF_BYTE = np.array([byte.bit_count() for byte in range(256)], np.uint8)


def pack_signs(matrix: NDArray[Any]) -> Codes:
    """The signs of each row (n, D) in 64-bit numbers (n, D / 64), padded with zero bits."""
    width = -(-matrix.shape[1] // 64)
    packed = np.zeros((len(matrix), 8 * width), np.uint8)
    for rows, block in iterate_blocks(matrix, matrix.dtype):
        packed[rows, : -(-matrix.shape[1] // 8)] = np.packbits(block > 0, axis=1)
    return packed.view(np.uint64)


def count_differing_bits(codes: Codes, code: Codes) -> NDArray[np.int64]:
    """In how many bits each row (n, w) differs from one code (w,)."""
    distances = np.zeros(len(codes), np.int64)
    for column, word in zip(codes.T, code, strict=True):
        distances += _count_bits(column ^ word)
    return distances


def have_one_magnitude(rows: NDArray[Any]) -> bool:
    """Whether the numbers of each row (n, D) differ only in sign, up to rounding."""
    sizes = np.abs(rows)
    largest = sizes.max(axis=-1, initial=0)
    return bool(rows.size and (largest > 0).all() and (sizes.min(axis=-1) >= (1 - 1e-6) * largest).all())


def _count_bits(words: NDArray[np.uint64]) -> NDArray[Any]:
    if hasattr(np, "bitwise_count"):  # since NumPy 2.0
        return np.asarray(np.bitwise_count(words))
    return np.asarray(_BITS_OF_BYTE[words.view(np.uint8)].reshape(len(words), 8).sum(axis=1, dtype=np.int64))
