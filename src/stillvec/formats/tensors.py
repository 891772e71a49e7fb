"""Write safetensors files without a copy in memory, and memory-map them.

Eight bytes of header length, a JSON header, the bytes of the arrays (https://github.com/huggingface/safetensors).
The NumPy functions of the package copy every array, and statistics may be larger than memory.
"""

import json
import math
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import FormatError
from stillvec.files import ParallelDigest
from stillvec.formats.format import damage_error, write_error

_TYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "|i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "|u1", "BOOL": "|b1",
}  # fmt: skip
_NAMES = {np.dtype(code): name for name, code in _TYPES.items()}
_MAX_HEADER = 100_000_000  # the limit of the safetensors library
_BLOCK = 1 << 24  # bytes copied at once
_KIND = "safetensors"


def write_tensors(path: Path, arrays: Mapping[str, NDArray[Any]], digest: ParallelDigest | None = None) -> None:
    """Write named arrays, the widest numbers first, so that all are aligned; `digest` gets the bytes, too."""
    ordered = sorted(arrays.items(), key=lambda item: (-item[1].dtype.itemsize, item[0]))
    header: dict[str, object] = {}
    end = 0
    for name, array in ordered:
        kind = _NAMES.get(array.dtype.newbyteorder("<"))
        if kind is None:
            raise write_error(path, f"safetensors cannot store {name!r} of type {array.dtype}")
        header[name] = {"dtype": kind, "shape": [*array.shape], "data_offsets": [end, end + array.nbytes]}
        end += array.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as stream:
        head = memoryview(len(text).to_bytes(8, "little") + text)
        for block in chain([head], *(_blocks(array) for _, array in ordered)):
            if digest is not None:
                digest.update(block)
            stream.write(block)


def _blocks(array: NDArray[Any]) -> Iterator[memoryview]:
    """The bytes of an array, in little-endian order."""
    rows = array.reshape(1) if array.ndim == 0 else array
    step = max(1, _BLOCK * len(rows) // max(1, rows.nbytes))
    for first in range(0, len(rows), step):
        block = np.ascontiguousarray(rows[first : first + step], rows.dtype.newbyteorder("<"))
        if block.size:
            yield block.data.cast("B")


def map_tensors(path: Path) -> dict[str, NDArray[Any]]:
    """The arrays of a file as read-only memory maps."""
    size = path.stat().st_size
    with open(path, "rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
        if size < 8 or length > min(size - 8, _MAX_HEADER):
            raise damage_error(path, _KIND, f"the header does not fit into {size:,} bytes")
        text = stream.read(length)
    try:
        header = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise damage_error(path, _KIND, f"the header is not JSON: {error}") from None
    if not isinstance(header, dict):
        raise damage_error(path, _KIND, "the header is not an object")
    metadata = header.pop("__metadata__", None) or {}
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise damage_error(path, _KIND, "the metadata are not texts")
    tensors = {name: _Tensor.read(path, name, entry) for name, entry in header.items()}
    end = 0  # as in the safetensors library: one tensor after the other, without gaps or anything behind the last
    for name, tensor in sorted(tensors.items(), key=lambda item: (item[1].begin, item[1].end)):
        if tensor.begin != end:
            raise damage_error(path, _KIND, f"{name!r} begins at byte {tensor.begin:,}, expected {end:,}")
        end = tensor.end
    if end != size - 8 - length:
        raise damage_error(path, _KIND, f"the tensors have {end:,} bytes, the file {size - 8 - length:,}")
    raw = np.memmap(path, np.uint8, "r", 8 + length) if end else np.zeros(0, np.uint8)
    return {name: raw[at.begin : at.end].view(at.dtype).reshape(at.shape) for name, at in tensors.items()}


class _Tensor(NamedTuple):
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    begin: int
    end: int

    @classmethod
    def read(cls, path: Path, name: str, entry: Any) -> Self:
        """The entry of a header, checked."""
        try:
            kind, shape, (begin, end) = str(entry["dtype"]), entry["shape"], entry["data_offsets"]
        except (KeyError, TypeError, ValueError) as error:
            raise damage_error(path, _KIND, f"the header does not describe {name!r}: {error!r}") from None
        if kind not in _TYPES:
            raise FormatError.unknown("type", kind, _TYPES, where=repr(name), path=path)
        if not isinstance(shape, list) or any(type(number) is not int or number < 0 for number in (*shape, begin, end)):
            raise damage_error(path, _KIND, f"shape and offsets of {name!r} are not natural numbers")
        dtype = np.dtype(_TYPES[kind])
        if end - begin != dtype.itemsize * math.prod(shape):
            raise damage_error(path, _KIND, f"{name!r} has {end - begin:,} bytes for {kind} of shape {shape}")
        return cls(dtype, tuple(shape), begin, end)
