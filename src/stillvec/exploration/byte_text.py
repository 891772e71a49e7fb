"""Arrays and sets of rows as text for JSON and addresses."""

import base64
import binascii
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import UsageError


def encode_base64(array: np.ndarray[Any, Any]) -> str:
    return base64.b64encode(np.ascontiguousarray(array).tobytes()).decode("ascii")


def decode_rows(text: str, n_rows: int) -> NDArray[np.int64]:
    """The rows of a set whose bits are 1: base64url, the lowest bit first; bits at the end may be left out."""
    try:
        bits = np.frombuffer(base64.b64decode(text + "=" * (-len(text) % 4), b"-_", validate=True), np.uint8)
    except (binascii.Error, ValueError):
        raise UsageError.expected("rows as base64url", repr(text[:20]), where="rows") from None
    rows = np.flatnonzero(np.unpackbits(bits, bitorder="little"))
    if not len(rows) or rows[-1] >= n_rows:
        raise UsageError.expected(f"1 to {n_rows:,} rows of the map", "others", where="rows")
    return rows
