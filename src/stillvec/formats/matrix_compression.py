"""Lossless compression of tables: int8 codes with one scale per row, product codes, bits, and sparse rows.

`pack` returns arrays that represent a table exactly, or None if they would be inexact or not smaller. Only the refine
steps `quantize`, `bits` and `prune` round numbers; their tables can be compressed.
"""

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Arrays = dict[str, Array]

_BLOCK = 1 << 14  # rows per block
_SAMPLE = 4096  # rows that determine the parts of product codes
_CODES = 256  # values of a byte
_WIDE = 1 << 16  # dimensions; a wider sparse table must have as many values


class Packing(NamedTuple):
    pack: Callable[[Array], Arrays | None]
    unpack: Callable[[Mapping[str, Array], slice, int], Array]  # a slice of rows, and their dimension
    check: Callable[[Mapping[str, Array], tuple[int, int]], bool]  # whether the arrays fit a table of this shape


def pack(matrix: Array, kind: str) -> Arrays | None:
    """The arrays that represent a table (V, D), or None if they would be inexact or not smaller."""
    packing = PACKINGS[kind]
    arrays = packing.pack(matrix) if matrix.size and matrix.dtype.itemsize >= 4 else None
    if arrays is None or sum(array.nbytes for array in arrays.values()) >= matrix.nbytes:
        return None
    for start in range(0, len(matrix), _BLOCK):
        rows = slice(start, start + _BLOCK)
        if not np.array_equal(_bits(packing.unpack(arrays, rows, matrix.shape[1])), _bits(matrix[rows])):
            return None
    return arrays


def unpack(arrays: Mapping[str, Array], kind: str, shape: tuple[int, int]) -> Array | None:
    """The table (V, D), or None if the arrays are not of this kind and shape."""
    packing = PACKINGS[kind]
    try:
        if not packing.check(arrays, shape):
            return None
    except KeyError:
        return None
    first = packing.unpack(arrays, slice(0, 0), shape[1])
    matrix = np.empty(shape, first.dtype)
    for start in range(0, len(matrix), _BLOCK):
        matrix[start : start + _BLOCK] = packing.unpack(arrays, slice(start, start + _BLOCK), shape[1])
    return matrix


def _bits(rows: Array) -> Array:
    """The numbers as integers, which distinguish 0.0 from -0.0."""
    return np.ascontiguousarray(rows).view(f"u{rows.dtype.itemsize}")


def _pack_steps(matrix: Array) -> Arrays | None:
    """`x = code · scale` with one scale per row, whose largest number has the code 127."""
    scales = np.abs(matrix).max(1) / matrix.dtype.type(127)  # (V,)
    codes = np.empty(matrix.shape, np.int8)
    for start in range(0, len(matrix), _BLOCK):
        rows = slice(start, start + _BLOCK)
        steps = matrix[rows] / np.where(scales[rows] > 0, scales[rows], 1)[:, None]
        codes[rows] = np.clip(np.rint(steps), -127, 127)
    return {"codes": codes, "scales": scales}


def _unpack_steps(arrays: Mapping[str, Array], rows: slice, dim: int) -> Array:
    scales = arrays["scales"][rows]
    with np.errstate(over="ignore", invalid="ignore"):  # a damaged scale; the caller reports what is not finite
        return np.multiply(arrays["codes"][rows], scales[:, None], dtype=scales.dtype)


def _check_steps(arrays: Mapping[str, Array], shape: tuple[int, int]) -> bool:
    codes, scales = arrays["codes"], arrays["scales"]
    return codes.shape == shape and codes.dtype == np.int8 and scales.shape == shape[:1] and scales.dtype.kind == "f"


def _pack_products(matrix: Array) -> Arrays | None:
    """Split the columns into parts of at most 256 distinct rows; one byte per part selects a row."""
    edges = _find_parts(matrix[:: max(1, len(matrix) // _SAMPLE)])
    codes = np.empty((len(matrix), len(edges) - 1), np.uint8)
    centres = np.zeros((_CODES, matrix.shape[1]), matrix.dtype)
    most = 0
    for part, (start, end) in enumerate(pairwise(edges)):
        first, which = _find_distinct(matrix[:, start:end])
        if len(first) > _CODES:
            return None
        centres[: len(first), start:end] = matrix[first, start:end]
        codes[:, part] = which
        most = max(most, len(first))
    return {"codes": codes, "centres": centres[:most].copy(), "widths": np.diff(edges).astype(np.int32)}


def _find_parts(rows: Array) -> list[int]:
    """The edges of the parts, each as wide as possible."""
    edges = [0]
    for column in range(1, rows.shape[1]):
        if len(_find_distinct(rows[:, edges[-1] : column + 1])[0]) > _CODES:
            edges.append(column)
    return [*edges, rows.shape[1]]


def _find_distinct(rows: Array) -> tuple[Array, Array]:
    """The first index of each distinct row, and the inverse; compared by a hash, which `pack` verifies."""
    bits = _bits(rows).astype(np.uint64)
    odd = np.random.default_rng(0).integers(1, 1 << 63, bits.shape[1], np.uint64) * np.uint64(2) + np.uint64(1)
    _, first, which = np.unique(bits @ odd, return_index=True, return_inverse=True)
    return first, which


def _unpack_products(arrays: Mapping[str, Array], rows: slice, dim: int) -> Array:
    codes, centres = arrays["codes"][rows], arrays["centres"]
    edges = np.concatenate([[0], np.cumsum(arrays["widths"])]).tolist()
    block = np.empty((len(codes), dim), centres.dtype)
    for part, (start, end) in enumerate(pairwise(edges)):
        block[:, start:end] = centres[codes[:, part], start:end]
    return block


def _check_products(arrays: Mapping[str, Array], shape: tuple[int, int]) -> bool:
    codes, centres, widths = arrays["codes"], arrays["centres"], arrays["widths"]
    return (
        widths.ndim == 1 and widths.dtype.kind == "i" and bool((widths > 0).all()) and int(widths.sum()) == shape[1]
        and codes.shape == (shape[0], len(widths)) and codes.dtype == np.uint8
        and centres.ndim == 2 and centres.shape[1] == shape[1] and centres.dtype.kind == "f"
        and (not codes.size or int(codes.max()) < len(centres))
    )  # fmt: skip


def _pack_signs(matrix: Array) -> Arrays | None:
    """`x = scale` where the bit is set and `-scale` elsewhere; the first column is the highest bit of a byte."""
    return {"codes": np.packbits(matrix > 0, axis=1), "scale": np.abs(matrix[0, :1])}


def _unpack_signs(arrays: Mapping[str, Array], rows: slice, dim: int) -> Array:
    scale = arrays["scale"]
    return np.asarray(np.where(np.unpackbits(arrays["codes"][rows], axis=1, count=dim), scale, -scale))


def _check_signs(arrays: Mapping[str, Array], shape: tuple[int, int]) -> bool:
    codes, scale = arrays["codes"], arrays["scale"]
    fits = codes.shape == (shape[0], -(-shape[1] // 8)) and codes.dtype == np.uint8
    return fits and scale.shape == (1,) and scale.dtype.kind == "f"


def _pack_sparse(matrix: Array) -> Arrays | None:
    """The non-zero values in row order, their columns, and the number of values per row."""
    small = np.uint16 if matrix.shape[1] <= 1 << 16 else np.uint32
    nonzero = _bits(matrix) != 0  # (V, D)
    columns = np.broadcast_to(np.arange(matrix.shape[1], dtype=small), matrix.shape)[nonzero]
    return {"values": matrix[nonzero], "columns": columns, "lengths": nonzero.sum(1, dtype=np.uint32)}


def _unpack_sparse(arrays: Mapping[str, Array], rows: slice, dim: int) -> Array:
    lengths = arrays["lengths"]
    start, _, _ = rows.indices(len(lengths))
    begin = int(lengths[:start].sum(dtype=np.int64))
    inside = lengths[rows]
    end = begin + int(inside.sum(dtype=np.int64))
    block = np.zeros((len(inside), dim), arrays["values"].dtype)
    block[np.repeat(np.arange(len(inside)), inside), arrays["columns"][begin:end]] = arrays["values"][begin:end]
    return block


def _check_sparse(arrays: Mapping[str, Array], shape: tuple[int, int]) -> bool:
    values, columns, lengths = arrays["values"], arrays["columns"], arrays["lengths"]
    return (
        lengths.shape == shape[:1] and lengths.dtype.kind == "u" and columns.dtype.kind == "u"
        and values.shape == columns.shape == (int(lengths.sum(dtype=np.int64)),) and values.dtype.kind == "f"
        and int(columns.max(initial=0)) < shape[1] <= max(_WIDE, values.size)
    )  # fmt: skip


PACKINGS: dict[str, Packing] = {
    "int8": Packing(_pack_steps, _unpack_steps, _check_steps),
    "pq": Packing(_pack_products, _unpack_products, _check_products),
    "bits": Packing(_pack_signs, _unpack_signs, _check_signs),
    "sparse": Packing(_pack_sparse, _unpack_sparse, _check_sparse),
}
