"""Names of array types."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Floats32 = NDArray[np.float32]
Matrix = NDArray[Any]
Rows = NDArray[np.int64]
Mask = NDArray[np.bool_]
