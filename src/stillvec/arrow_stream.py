"""Vectors as a stream of Arrow record batches: the columns `word`, `count` and `vector` (a list of `dim` float32).

Polars, DuckDB, pandas, pyarrow and LanceDB read it through Arrow's C stream interface (`__arrow_c_stream__`).
"""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stillvec.numerics import iterate_blocks
from stillvec.registry import require

LOWERCASE = b"stillvec.lowercase"  # in the metadata of the schema
BATCH_ROWS = 1 << 14


def open_stream(words: Sequence[str], counts: NDArray[np.int64], matrix: NDArray[Any], lowercase: bool) -> Any:
    """A `pyarrow.RecordBatchReader` that copies no float32 matrix."""
    arrow = require("pyarrow", "parquet", "Arrow")
    kind = arrow.list_(arrow.field("item", arrow.float32()), matrix.shape[1])
    kinds = [("word", arrow.string()), ("count", arrow.int64()), ("vector", kind)]
    schema = arrow.schema(kinds, {LOWERCASE: json.dumps(lowercase)})
    batches = (
        arrow.record_batch(
            [
                arrow.array(words[rows], arrow.string()),
                arrow.array(counts[rows]),
                arrow.FixedSizeListArray.from_arrays(arrow.array(block.ravel()), type=kind),
            ],
            schema=schema,
        )
        for rows, block in iterate_blocks(matrix, np.float32, BATCH_ROWS)
    )
    return arrow.RecordBatchReader.from_batches(schema, batches)
