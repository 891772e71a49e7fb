"""What becomes of items with out-of-vocabulary words."""

from typing import Literal

OovPolicy = Literal["skip", "mean", "zero", "subword"]
