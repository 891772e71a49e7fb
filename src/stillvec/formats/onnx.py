"""ONNX: a model from rows of words to the mean of their vectors, with the words in its metadata.

`rows` (texts, n) int64, the row of each word, below 0 for an unknown one or where a text has ended
→ `mean` (texts, dim) float32, zero where a text has no known word.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from stillvec.errors import FormatError
from stillvec.files import create_bytes, open_bytes
from stillvec.formats.format import Format
from stillvec.formats.vector_table import assemble, check_numbers, encode_words
from stillvec.registry import require
from stillvec.vectors import WordVectors

_OPSET, _IR = 13, 8  # runtimes of 2021 know both
_LARGEST = (1 << 31) - (1 << 20)  # bytes of a protobuf
_STEPS = (  # what is done, with what, to what
    ("GreaterOrEqual", ("rows", "zero"), "known"),
    ("Cast", ("known",), "ones"),  # (texts, n)
    ("Unsqueeze", ("ones", "last"), "mask"),  # (texts, n, 1)
    ("Max", ("rows", "zero"), "places"),
    ("Gather", ("vectors", "places"), "words"),  # (texts, n, dim)
    ("Mul", ("words", "mask"), "counted"),
    ("ReduceSum", ("counted", "second"), "sums"),
    ("ReduceSum", ("mask", "second"), "lengths"),  # (texts, 1)
    ("Max", ("lengths", "one"), "divisors"),
    ("Div", ("sums", "divisors"), "mean"),
)


def recognize(path: Path, head: bytes) -> bool:
    return head[:1] == b"\x08" and b"\x12\x08stillvec" in head[:16]  # the version of the form, then who made it


def read(path: Path) -> WordVectors:
    onnx = require("onnx", "onnx", "Reading ONNX")
    decoding = require("google.protobuf.message", "onnx", "Reading ONNX")
    with open_bytes(path, FormatError) as stream:
        raw = stream.read()
    if not raw:
        raise FormatError(f"{path} is empty, and vectors were to be read from it.")
    try:
        model = onnx.ModelProto.FromString(raw)
    except (decoding.DecodeError, ValueError) as error:
        raise FormatError(f"{path} is cut short or no ONNX model ({error}).") from error
    told = {entry.key: entry.value for entry in model.metadata_props}
    table = next((each for each in model.graph.initializer if each.name == "vectors"), None)
    if table is None or table.data_location or not {"words", "counts", "lowercase"} <= told.keys():
        raise FormatError(f"{path} is an ONNX model without words or a table 'vectors', not one that stillvec wrote.")
    try:
        matrix = onnx.numpy_helper.to_array(table)
        words, counts, lowercase = (json.loads(told[name]) for name in ("words", "counts", "lowercase"))
        listed = [str(word) for word in words], [int(count) for count in counts]
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise FormatError(f"{path}: the words or the table of the model are damaged ({error}).") from error
    return assemble(path, listed[0], np.asarray(matrix), listed[1], lowercase=bool(lowercase))


def write(vectors: WordVectors, path: Path) -> None:
    onnx = require("onnx", "onnx", "Writing ONNX")
    check_numbers(vectors, path, np.float32)
    encode_words(vectors, path)
    kept = vectors.vocabulary
    told = {"words": [*kept.words], "counts": kept.counts.tolist(), "lowercase": kept.lowercase}
    metadata = {key: json.dumps(value, ensure_ascii=False) for key, value in told.items()}
    size = 4 * vectors.matrix.size + sum(len(text.encode()) for text in metadata.values())
    if size > _LARGEST:
        raise FormatError(f"{path} was not written: {size:,} bytes are more than an ONNX model holds, 2 GiB.")
    model = onnx.helper.make_model(
        _graph(onnx, np.asarray(vectors.matrix, np.float32)),
        producer_name="stillvec",
        opset_imports=[onnx.helper.make_opsetid("", _OPSET)],
        ir_version=_IR,
    )
    onnx.helper.set_model_props(model, metadata)
    with create_bytes(path) as stream:
        stream.write(model.SerializeToString(deterministic=True))


def _graph(onnx: Any, matrix: Any) -> Any:
    helper, kinds = onnx.helper, onnx.TensorProto
    constants = {
        "vectors": matrix,
        "zero": np.array(0, np.int64),
        "one": np.array(1, np.float32),
        "second": np.array([1], np.int64),
        "last": np.array([2], np.int64),
    }
    settings = {"Cast": {"to": kinds.FLOAT}, "ReduceSum": {"keepdims": 0}}
    return helper.make_graph(
        [helper.make_node(kind, given, [made], **settings.get(kind, {})) for kind, given, made in _STEPS],
        "mean of words",
        [helper.make_tensor_value_info("rows", kinds.INT64, ["texts", "n"])],
        [helper.make_tensor_value_info("mean", kinds.FLOAT, ["texts", matrix.shape[1]])],
        [onnx.numpy_helper.from_array(value, name) for name, value in constants.items()],
    )


FORMAT = Format(recognize, read, write, (".onnx",))
