"""ONNX: a model that averages word vectors, with the words in its metadata.

Input `rows` (texts, n) int64: the row of each word, negative for unknown words and padding.
Output `mean` (texts, dim) float32: zero for a text without known words.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from stillvec.errors import FormatError
from stillvec.files import create_bytes, open_bytes
from stillvec.files.compression import HEAD_BYTES
from stillvec.formats.format import Format, damage_error, empty_error, write_error
from stillvec.formats.vector_table import assemble, encode_words
from stillvec.registry import require
from stillvec.vectors import WordVectors

_OPSET, _IR = 13, 8  # supported by runtimes since 2021
_MAX_BYTES = (1 << 31) - (1 << 20)  # bytes per protobuf
_NODES = (  # operator, inputs, output
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
    return head[:1] == b"\x08" and b"\x12\x08stillvec" in head[:16]  # IR version, then producer


def read(path: Path) -> WordVectors:
    onnx = require_onnx("Reading ONNX")
    decoding = require("google.protobuf.message", "onnx", "Reading ONNX")
    with open_bytes(path, FormatError) as stream:
        raw = bytearray()
        while chunk := stream.read(HEAD_BYTES):  # read(n) reserves n bytes at once
            raw += chunk
            if len(raw) > _MAX_BYTES:
                raise FormatError.expected(f"at most {_MAX_BYTES:,} bytes", "more", path=path, code="too-large")
    if not raw:
        raise empty_error(path)
    try:
        model = onnx.ModelProto.FromString(bytes(raw))
    except (decoding.DecodeError, ValueError) as error:
        raise damage_error(path, "ONNX", error) from None
    metadata = {entry.key: entry.value for entry in model.metadata_props}
    table = next((tensor for tensor in model.graph.initializer if tensor.name == "vectors"), None)
    if table is None or table.data_location or not {"words", "counts", "lowercase"} <= metadata.keys():
        raise FormatError.expected("an ONNX model written by stillvec", "another one", path=path)
    try:
        matrix = onnx.numpy_helper.to_array(table)
        words, counts, lowercase = (json.loads(metadata[name]) for name in ("words", "counts", "lowercase"))
        words, counts = [str(word) for word in words], [int(count) for count in counts]
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise damage_error(path, "words and vectors", error) from None
    return assemble(path, words, np.asarray(matrix), counts, lowercase=bool(lowercase))


def write(vectors: WordVectors, path: Path) -> None:
    onnx = require_onnx("Writing ONNX")
    encode_words(vectors, path)
    metadata = {key: json.dumps(value, ensure_ascii=False) for key, value in describe_words(vectors).items()}
    write_model(_build_graph(onnx, np.asarray(vectors.matrix, np.float32)), metadata, path)


def require_onnx(purpose: str) -> Any:
    return require("onnx", "onnx", purpose)


def describe_words(vectors: WordVectors) -> dict[str, object]:
    """What the metadata of a model says of its words."""
    vocabulary = vectors.vocabulary
    return {"words": [*vocabulary.words], "counts": vocabulary.counts.tolist(), "lowercase": vocabulary.lowercase}


def write_model(graph: Any, metadata: Mapping[str, str], path: Path) -> None:
    onnx = require_onnx("Writing ONNX")
    size = sum(tensor.ByteSize() for tensor in graph.initializer) + sum(map(len, map(str.encode, metadata.values())))
    if size > _MAX_BYTES:
        raise write_error(path, f"{size:,} bytes exceed the limit of an ONNX model, 2 GiB")
    versions = [onnx.helper.make_opsetid("", _OPSET)]
    model = onnx.helper.make_model(graph, producer_name="stillvec", opset_imports=versions, ir_version=_IR)
    onnx.helper.set_model_props(model, metadata)
    with create_bytes(path) as stream:
        stream.write(model.SerializeToString(deterministic=True))


def _build_graph(onnx: Any, matrix: Any) -> Any:
    helper, kinds = onnx.helper, onnx.TensorProto
    constants = {"vectors": matrix, "zero": np.array(0, np.int64), "one": np.array(1, np.float32)}
    constants |= {"second": np.array([1], np.int64), "last": np.array([2], np.int64)}
    settings = {"Cast": {"to": kinds.FLOAT}, "ReduceSum": {"keepdims": 0}}
    return helper.make_graph(
        [helper.make_node(kind, inputs, [output], **settings.get(kind, {})) for kind, inputs, output in _NODES],
        "mean of words",
        [helper.make_tensor_value_info("rows", kinds.INT64, ["texts", "n"])],
        [helper.make_tensor_value_info("mean", kinds.FLOAT, ["texts", matrix.shape[1]])],
        [onnx.numpy_helper.from_array(value, name) for name, value in constants.items()],
    )


FORMAT = Format(recognize, read, write, (".onnx",))
