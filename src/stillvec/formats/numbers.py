"""Convert between blocks of decimal numbers and arrays.

The Matrix Market reader and writer of SciPy are the fastest in the dependencies (C++, multithreaded; eight times as
fast as `numpy.fromstring`). A block is passed to them as one column. The reader ignores anything that follows a number
on its line, so the syntax is checked here first.
"""

import io
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

NUMBER = re.compile(rb"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[-+]?(?:nan|inf|infinity)", re.IGNORECASE)
DECIMAL = re.compile(rb"[-+]?(?:\d+\.\d*|\.\d+)(?:[eE][-+]?\d+)?|[-+]?\d+[eE][-+]?\d+")  # not an integer

_SPACE, _NEWLINE = 32, 10
# classes of bytes
_GAP, _DIGIT, _POINT, _SIGN, _EXPONENT, _OTHER = range(6)
_CLASS_OF = dict.fromkeys(b" \n", _GAP) | dict.fromkeys(b"0123456789", _DIGIT)
_CLASS_OF |= {ord("."): _POINT} | dict.fromkeys(b"+-", _SIGN) | dict.fromkeys(b"eE", _EXPONENT)
_CLASSES = bytes(_CLASS_OF.get(byte, _OTHER) for byte in range(256))
_FOLLOWERS = {
    _GAP: (_DIGIT, _POINT, _SIGN),
    _DIGIT: (_DIGIT, _POINT, _EXPONENT, _GAP),
    _POINT: (_DIGIT, _EXPONENT, _GAP),
    _SIGN: (_DIGIT, _POINT),
    _EXPONENT: (_DIGIT, _SIGN),
}
# without digits and signs: a number has at most one point, then at most one exponent
_SPARE_FOLLOWERS = {_GAP: (_GAP, _POINT, _EXPONENT), _POINT: (_GAP, _EXPONENT), _EXPONENT: (_GAP,)}
_ONE_PER_LINE = bytes.maketrans(b" ", b"\n")
_NOT_SEPARATORS = bytes({*range(256)} - {_SPACE, _NEWLINE})


def parse(text: bytes, n_rows: int, n_columns: int) -> NDArray[np.float32] | None:
    """A (n_rows, n_columns) array from lines of numbers separated by one space; None for any other text."""
    if not _is_grid(text, n_rows, n_columns):
        return None
    from scipy.io import mmread

    head = b"%%%%MatrixMarket matrix array real general\n%d 1\n" % (n_rows * n_columns)
    try:
        column = mmread(io.BytesIO(head + text.translate(_ONE_PER_LINE)))  # (n_rows * n_columns, 1)
    except (ValueError, OverflowError):  # a plus sign or a lone point: the caller parses line by line
        return None
    with np.errstate(over="ignore"):  # overflow gives infinity, which the caller reports
        return np.asarray(column, np.float32).reshape(n_rows, n_columns)


def render(block: NDArray[Any]) -> list[bytes]:
    """Each row of a block as text, with the fewest digits that preserve float32 and a space before each number."""
    from scipy.io import mmwrite

    marked = np.full((len(block), block.shape[1] + 1), np.nan, np.float32)  # NaN marks the start of a row
    marked[:, 1:] = block
    out = io.BytesIO()
    mmwrite(out, marked.reshape(-1, 1), symmetry="general")
    text = np.frombuffer(out.getbuffer(), np.uint8)
    text = text + (text == _NEWLINE) * np.uint8(_SPACE - _NEWLINE)
    joined: bytes = text.tobytes()
    return joined[:-1].split(b" NaN")[1:]


def _is_grid(text: bytes, n_rows: int, n_columns: int) -> bool:
    """Whether the text is `n_rows` lines of `n_columns` valid numbers, separated by one space each."""
    if len(text) < 2 * n_rows * n_columns - 1:  # a digit and a separator per number
        return False
    line = b" " * (n_columns - 1) + b"\n"
    if text.translate(None, _NOT_SEPARATORS) != (line * n_rows)[:-1]:
        return False
    classes = (b"\n%b\n" % text).translate(_CLASSES)
    spare = classes.translate(None, bytes([_DIGIT, _SIGN]))
    return _follow(classes, _FOLLOWERS) and _follow(spare, _SPARE_FOLLOWERS)


def _follow(classes: bytes, followers: dict[int, tuple[int, ...]]) -> bool:
    """Whether each byte but the first is an allowed follower of the previous one."""
    kinds = np.frombuffer(classes, np.uint8)
    pairs = kinds[:-1] * np.uint8(8) + kinds[1:]
    allowed = bytes(first * 8 + second for first, seconds in followers.items() for second in seconds)
    return not pairs.tobytes().translate(None, allowed)
