"""Decimal numbers to arrays and back, in bulk.

scipy's Matrix Market reader and writer are the fastest text ↔ number code in the dependencies (C++, on all
cores; eight times `numpy.fromstring`). A block of rows is shown to them as one column. The reader forgives
what follows a number on its line, so the grammar is checked here first.
"""

from __future__ import annotations

import io
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

NUMBER = re.compile(rb"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[-+]?(?:nan|inf|infinity)", re.IGNORECASE)
DECIMAL = re.compile(rb"[-+]?(?:\d+\.\d*|\.\d+)(?:[eE][-+]?\d+)?|[-+]?\d+[eE][-+]?\d+")  # no mere whole number

_SPACE, _NEWLINE = 32, 10
# the classes of bytes in numbers: what parts them, digit, point, sign, exponent, anything else
_PART, _DIGIT, _POINT, _SIGN, _EXPONENT, _OTHER = range(6)
_CLASS_OF = dict.fromkeys(b" \n", _PART) | dict.fromkeys(b"0123456789", _DIGIT)
_CLASS_OF |= {ord("."): _POINT} | dict.fromkeys(b"+-", _SIGN) | dict.fromkeys(b"eE", _EXPONENT)
_CLASSES = bytes(_CLASS_OF.get(byte, _OTHER) for byte in range(256))
_FOLLOWERS = {
    _PART: (_DIGIT, _POINT, _SIGN),
    _DIGIT: (_DIGIT, _POINT, _EXPONENT, _PART),
    _POINT: (_DIGIT, _EXPONENT, _PART),
    _SIGN: (_DIGIT, _POINT),
    _EXPONENT: (_DIGIT, _SIGN),
}
# without digits and signs: a number has at most one point, then at most one exponent
_SPARE_FOLLOWERS = {_PART: (_PART, _POINT, _EXPONENT), _POINT: (_PART, _EXPONENT), _EXPONENT: (_PART,)}
_ONE_A_LINE = bytes.maketrans(b" ", b"\n")
_NOT_PARTING = bytes({*range(256)} - {_SPACE, _NEWLINE})


def parse(text: bytes, rows: int, columns: int) -> NDArray[np.float32] | None:
    """A (rows, columns) array from lines of numbers parted by one space; None if it is anything else."""
    if not _is_grid(text, rows, columns):
        return None
    from scipy.io import mmread

    head = b"%%%%MatrixMarket matrix array real general\n%d 1\n" % (rows * columns)
    try:
        column = mmread(io.BytesIO(head + text.translate(_ONE_A_LINE)))  # (rows * columns, 1)
    except (
        ValueError,
        OverflowError,
    ):  # a plus sign, a lone point: right or wrong, the caller looks at each line
        return None
    with np.errstate(over="ignore"):  # too large for float32 is infinite, and found as such
        return np.asarray(column, np.float32).reshape(rows, columns)


def render(block: NDArray[Any]) -> list[bytes]:
    """The rows of a (rows, columns) block, in the fewest digits that keep a float32, a space before each number."""
    from scipy.io import mmwrite

    marked = np.full((len(block), block.shape[1] + 1), np.nan, np.float32)  # a row begins with what no row holds
    marked[:, 1:] = block
    out = io.BytesIO()
    mmwrite(out, marked.reshape(-1, 1), symmetry="general")
    text = np.frombuffer(out.getbuffer(), np.uint8)
    text = text + (text == _NEWLINE) * np.uint8(_SPACE - _NEWLINE)
    whole: bytes = text.tobytes()
    return whole[:-1].split(b" NaN")[1:]


def _is_grid(text: bytes, rows: int, columns: int) -> bool:
    """Whether the text is `rows` lines of `columns` well-formed numbers, parted by one space each."""
    if len(text) < 2 * rows * columns - 1:  # a digit and what parts it from the next
        return False
    line = b" " * (columns - 1) + b"\n"
    if text.translate(None, _NOT_PARTING) != (line * rows)[:-1]:
        return False
    classes = (b"\n%b\n" % text).translate(_CLASSES)
    spare = classes.translate(None, bytes([_DIGIT, _SIGN]))
    return _follow(classes, _FOLLOWERS) and _follow(spare, _SPARE_FOLLOWERS)


def _follow(classes: bytes, followers: dict[int, tuple[int, ...]]) -> bool:
    """Whether each byte but the first is among the followers of the one before."""
    kinds = np.frombuffer(classes, np.uint8)
    pairs = kinds[:-1] * np.uint8(8) + kinds[1:]
    good = bytes(first * 8 + second for first, seconds in followers.items() for second in seconds)
    return not pairs.tobytes().translate(None, good)
