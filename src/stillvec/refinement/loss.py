"""The loss of a lossy step: change of direction of the rows, and lost squared norm."""

import numpy as np

from stillvec.vectors import WordVectors

_BLOCK = 1 << 14


def loss(before: WordVectors, after: WordVectors) -> dict[str, float]:
    """Mean cosine of rows before and after, over non-zero rows, and the share of the squared norm that is lost."""
    cosines, rows, lost, whole = 0.0, 0, 0.0, 0.0
    for start in range(0, len(before), _BLOCK):
        old, new = (np.asarray(table.matrix[start : start + _BLOCK], np.float64) for table in (before, after))
        squares = (old * old).sum(1)
        lengths = np.sqrt(squares * (new * new).sum(1))
        dots = np.divide((old * new).sum(1), lengths, out=np.zeros(len(old)), where=lengths > 0)
        cosines, rows = cosines + float(dots.sum()), rows + int((squares > 0).sum())
        lost, whole = lost + float(((old - new) ** 2).sum()), whole + float(squares.sum())
    return {"mean cosine": cosines / max(rows, 1), "lost squares": lost / whole if whole else 0.0}
