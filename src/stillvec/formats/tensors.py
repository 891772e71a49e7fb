"""safetensors files, written without a copy in memory and read memory-mapped.

Eight bytes of header length, a JSON header, the bytes of the arrays (https://github.com/huggingface/safetensors).
The package's own numpy reader and writer copy every array, and statistics may be larger than memory.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import FormatError

_TYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "|i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "|u1", "BOOL": "|b1",
}  # fmt: skip
_NAMES = {np.dtype(code): name for name, code in _TYPES.items()}
_LARGEST_HEADER = 100_000_000  # the limit of the safetensors library
_BLOCK = 1 << 24  # bytes turned contiguous at once


def write_tensors(path: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write named arrays; the widest numbers come first, so that all lie aligned."""
    ordered = sorted(arrays.items(), key=lambda item: (-item[1].dtype.itemsize, item[0]))
    header: dict[str, object] = {}
    end = 0
    for name, array in ordered:
        kind = _NAMES.get(array.dtype.newbyteorder("<"))
        if kind is None:
            raise FormatError(f"{path} was not written: safetensors has no numbers of type {array.dtype} ({name!r}).")
        header[name] = {"dtype": kind, "shape": [*array.shape], "data_offsets": [end, end + array.nbytes]}
        end += array.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as stream:
        stream.write(len(text).to_bytes(8, "little") + text)
        for _, array in ordered:
            rows = array.reshape(1) if array.ndim == 0 else array
            step = max(1, _BLOCK * len(rows) // max(1, rows.nbytes))
            for first in range(0, len(rows), step):
                block = np.ascontiguousarray(rows[first : first + step], rows.dtype.newbyteorder("<"))
                stream.write(block.data.cast("B") if block.size else b"")


def map_tensors(path: Path) -> dict[str, NDArray[Any]]:
    """The arrays of a file as read-only memory maps."""
    size = path.stat().st_size
    with open(path, "rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
        if size < 8 or length > min(size - 8, _LARGEST_HEADER):
            raise FormatError(
                f"{path} is cut short or no safetensors file: its header does not fit into {size:,} bytes."
            )
        text = stream.read(length)
    try:
        header = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{path} is no safetensors file: its header is not JSON.") from error
    if not isinstance(header, dict):
        raise FormatError(f"{path} is no safetensors file: its header is not a table of arrays.")
    header.pop("__metadata__", None)
    room = size - 8 - length
    raw = np.memmap(path, np.uint8, "r", 8 + length) if room else np.zeros(0, np.uint8)
    return {name: _map_tensor(path, name, entry, raw) for name, entry in header.items()}


def _map_tensor(path: Path, name: str, entry: Any, raw: NDArray[np.uint8]) -> NDArray[Any]:
    try:
        kind, shape, (begin, end) = (
            str(entry["dtype"]),
            tuple(map(int, entry["shape"])),
            map(int, entry["data_offsets"]),
        )
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise FormatError(f"{path} is no safetensors file: its header does not describe {name!r}.") from error
    if kind not in _TYPES:
        raise FormatError(f"{path}: {name!r} is of type {kind}, which numpy does not have; save it as F16 or F32.")
    if not 0 <= begin <= end <= len(raw):
        raise FormatError(f"{path} is cut short: {name!r} should end at byte {end:,} of the data, of {len(raw):,}.")
    dtype = np.dtype(_TYPES[kind])
    if any(side < 0 for side in shape) or end - begin != dtype.itemsize * int(np.prod(shape, dtype=object)):
        raise FormatError(f"{path}: {name!r} has {end - begin:,} bytes, which is not the size of {kind} {shape}.")
    return raw[begin:end].view(dtype).reshape(shape)
