"""ONNX: a head as a model for any runtime, with its words and labels in the metadata.

Input `rows` (texts, n) int64, n at least 1: the row of each word, -1 for an unknown word, -2 for padding at the end;
`rows_2` those of the second text of a pair. Of a head of spans, these are the words of the span and of a second one.
Output `probabilities` (texts, labels) float32; of a tagger `tags` (texts, n) int64 by Viterbi's algorithm, 0 outside a
sentence, and `scores` (texts, n, tags) float32, those of the words before it.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import StillvecWarning, UsageError
from stillvec.files import check_replaceable
from stillvec.formats.onnx import describe_words, require_onnx, write_model
from stillvec.heads.attention_head import AttentionHead
from stillvec.heads.cnn_head import Cnn
from stillvec.heads.fitted_head import Head
from stillvec.heads.head_kind import NetworkHead
from stillvec.heads.knn_head import LEAST, Knn
from stillvec.heads.linear_head import Linear
from stillvec.heads.neighbour_votes import TIE
from stillvec.heads.pair_head import ROUNDING, PairHead
from stillvec.heads.pooling import divide_coherent
from stillvec.heads.span_head import NORM, SpanHead
from stillvec.heads.tagger_head import Tagger
from stillvec.numerics import unit_rows

_FIRST, _SECOND = "rows", "rows_2"
_HIDDEN = -1e4  # the score of a place without a word
Outputs = dict[str, tuple[str, type[Any], list[Any]]]  # name: value, type, shape
_GATES = [0, 2, 1, 3]  # input, forget, output, cell → ONNX's input, output, forget, cell


def write_onnx(head: Head, path: Path, *, force: bool = False) -> None:
    """Write a head as an ONNX model."""
    build = _BUILDERS.get(type(head.kind))
    if build is None:
        known = ", ".join(sorted(kind.__name__.lower().removesuffix("head") for kind in _BUILDERS))
        raise UsageError.expected(f"a head of one of these kinds: {known}", head.name, where="ONNX", code="no-onnx")
    if "widths" in head.arrays:
        raise UsageError.expected("a head on one set of vectors", "one on several", where="ONNX", code="no-onnx")
    if head.vectors.subwords is not None:
        message = "The ONNX model has no character n-grams: a word that is not in the vocabulary is an unknown word."
        warnings.warn(message, StillvecWarning, stacklevel=2)
    graph = _Graph(require_onnx("Writing ONNX"))
    check_replaceable(path, None, force=force)
    outputs = build(graph, head)
    if isinstance(head.kind, PairHead) or (isinstance(head.kind, SpanHead) and head.kind.count_spans(head.arrays) > 1):
        graph.inputs.append(_SECOND)
    facts = {
        "head": head.name,
        "labels": [*head.labels],
        "multilabel": head.multilabel,
        "threshold": head.threshold,
        **describe_words(head.vectors),
    }
    metadata = {key: json.dumps(value, ensure_ascii=False) for key, value in facts.items()}
    write_model(graph.finish(f"head {head.name}", outputs), metadata, path)


class _Graph:
    """Nodes and constants; values are named by number."""

    def __init__(self, onnx: Any, prefix: str = "") -> None:
        self.onnx = onnx
        self.prefix = prefix  # names are unique in a graph and its subgraphs
        self.nodes: list[Any] = []
        self.constants: dict[str, Any] = {}
        self.inputs = [_FIRST]

    def add(self, kind: str, *inputs: Any, n_outputs: int = 1, **settings: Any) -> Any:
        """The output of an operator; arrays and numbers among its inputs become constants, None is left out."""
        names = ["" if value is None else value if isinstance(value, str) else self.store(value) for value in inputs]
        outputs = [f"{self.prefix}v{len(self.nodes)}_{number}" for number in range(n_outputs)]
        self.nodes.append(self.onnx.helper.make_node(kind, names, outputs, **settings))
        return outputs[0] if n_outputs == 1 else outputs

    def store(self, value: Any, name: str | None = None) -> str:
        array = np.asarray(value)
        name = name or f"{self.prefix}c{len(self.constants)}"
        self.constants[name] = self.onnx.numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), name)
        return name

    def floats(self, condition: str) -> str:
        return str(self.add("Cast", condition, to=self.onnx.TensorProto.FLOAT))

    def finish(self, name: str, outputs: Outputs) -> Any:
        helper, kinds = self.onnx.helper, self.onnx.TensorProto
        for public, (value, _, _) in outputs.items():
            self.nodes.append(helper.make_node("Identity", [value], [public]))
        types: dict[type[Any], Any] = {np.float32: kinds.FLOAT, np.int64: kinds.INT64}
        shown = [helper.make_tensor_value_info(key, types[kind], shape) for key, (_, kind, shape) in outputs.items()]
        sizes = dict(zip(self.inputs, ("n", "m"), strict=False))
        rows = [helper.make_tensor_value_info(each, kinds.INT64, ["texts", n]) for each, n in sizes.items()]
        return helper.make_graph(self.nodes, name, rows, shown, [*self.constants.values()])


def _read_words(graph: _Graph, head: Head, rows: str = _FIRST) -> tuple[str, str, str]:
    """The scaled vectors of words (texts, n, d), where one is known and where there is one at all (texts, n, 1)."""
    matrix = np.asarray(head.vectors.matrix, np.float32)
    usable = matrix.any(axis=1).astype(np.float32)  # a word whose vector is zero counts as unknown
    table, place = graph.store(matrix, "vectors"), graph.add("Max", rows, np.int64(0))
    has_row = graph.floats(graph.add("GreaterOrEqual", rows, np.int64(0)))
    known = _widen(graph, graph.add("Mul", has_row, graph.add("Gather", usable, place)))
    scaled = graph.add("Mul", graph.add("Gather", table, place), head.arrays.get("factor", np.float32(1)))
    words = graph.add("Mul", scaled, known)
    return words, known, _widen(graph, graph.floats(graph.add("GreaterOrEqual", rows, np.int64(-1))))


def _read_sequence(graph: _Graph, head: Head) -> tuple[str, str]:
    """The same with the vector of unknown words, if one was trained, and where there is a word."""
    words, known, inside = _read_words(graph, head)
    if "unknown" not in head.arrays:
        return words, inside
    vector = np.asarray(head.arrays["unknown"] * head.arrays["factor"], np.float32)
    return str(graph.add("Add", words, graph.add("Mul", graph.add("Sub", inside, known), vector))), inside


def _widen(graph: _Graph, values: str) -> str:
    return str(graph.add("Unsqueeze", values, np.array([2])))


def _build_linear(graph: _Graph, head: Head) -> Outputs:
    return _score_means(graph, head, _average(graph, head))


def _average(graph: _Graph, head: Head, rows: str = _FIRST) -> str:
    """The mean of the known words (texts, d), zero if there are none."""
    words, known, _ = _read_words(graph, head, rows)
    lengths = graph.add("ReduceSum", known, np.array([1]), keepdims=0)
    sums = graph.add("ReduceSum", words, np.array([1]), keepdims=0)
    return str(graph.add("Div", sums, graph.add("Max", lengths, np.float32(1))))


def _score_means(graph: _Graph, head: Head, features: str) -> Outputs:
    if "hidden" in head.arrays:
        given = graph.add("Add", graph.add("MatMul", features, head.arrays["hidden"]), head.arrays["hidden_bias"])
        features = graph.add("Relu", given)
    return _score(graph, head, features)


def _build_pair(graph: _Graph, head: Head) -> Outputs:
    u, v = _average(graph, head), _average(graph, head, _SECOND)
    apart, limit = _measure_norm(graph, graph.add("Sub", u, v)), _measure_norm(graph, u)
    limit = graph.add("Mul", limit, np.float32(ROUNDING))
    v = graph.add("Where", graph.add("LessOrEqual", apart, limit), u, v)
    differences = graph.add("Abs", graph.add("Sub", u, v))
    return _score_means(graph, head, graph.add("Concat", u, v, differences, graph.add("Mul", u, v), axis=1))


def _measure_norm(graph: _Graph, rows: str) -> str:
    """(texts, 1)."""
    squares = graph.add("ReduceSum", graph.add("Mul", rows, rows), np.array([1]), keepdims=1)
    return str(graph.add("Sqrt", squares))


def _build_knn(graph: _Graph, head: Head) -> Outputs:
    kind, arrays = head.kind, head.arrays
    assert isinstance(kind, Knn)
    features = _average(graph, head)
    has_words = graph.add("Greater", _measure_norm(graph, features), np.float32(0))
    centred = graph.add("Where", has_words, graph.add("Sub", features, arrays["mean"]), features)
    units = graph.add("Div", centred, graph.add("Max", _measure_norm(graph, centred), np.float32(1e-12)))
    examples = unit_rows(arrays["examples"].astype(np.float32))
    k = np.array([min(kind.k, len(examples))], np.int64)
    cosines, nearest = graph.add("TopK", graph.add("MatMul", units, examples.T), k, n_outputs=2)
    labels = np.eye(len(head.labels))[arrays["labels"]]
    worth = graph.add("Cast", cosines, to=graph.onnx.TensorProto.DOUBLE)
    worth = graph.add("Add", graph.add("Mul", worth, np.float64(TIE)), np.float64(1))
    cast = graph.add("Mul", graph.add("Gather", labels, nearest), _widen(graph, worth))  # (texts, k, labels)
    votes = graph.add("ReduceSum", cast, np.array([1]), keepdims=0)
    if kind.balanced:
        votes = graph.add("Div", votes, np.maximum(labels.sum(axis=0), 1))
    total = graph.add("Max", graph.add("ReduceSum", votes, np.array([1]), keepdims=1), np.float64(1e-12))
    shares = graph.floats(graph.add("Max", graph.add("Div", votes, total), np.float64(LEAST)))
    likely = graph.add("Div", shares, graph.add("ReduceSum", shares, np.array([1]), keepdims=1))
    return {"probabilities": (likely, np.float32, ["texts", len(head.labels)])}


def _build_span(graph: _Graph, head: Head) -> Outputs:
    kind, arrays = head.kind, head.arrays
    assert isinstance(kind, SpanHead)
    pooled = []
    for part, rows in enumerate((_FIRST, _SECOND)[: kind.count_spans(arrays)]):
        ending = "_2" if part and "project_2" in arrays else ""
        words, _, inside = _read_words(graph, head, rows)
        projected = graph.add("MatMul", words, arrays[f"project{ending}"])
        projected = graph.add("Add", projected, arrays[f"project_bias{ending}"])
        pooled.append(_pool_span(graph, kind.pooling, projected, inside, arrays[f"query{ending}"]))
    joined = graph.add("Concat", *pooled, axis=1)
    hidden = graph.add("Tanh", graph.add("Add", graph.add("MatMul", joined, arrays["enter"]), arrays["enter_bias"]))
    centred = graph.add("Sub", hidden, graph.add("ReduceMean", hidden, axes=[1], keepdims=1))
    variance = graph.add("ReduceMean", graph.add("Mul", centred, centred), axes=[1], keepdims=1)
    normed = graph.add("Div", centred, graph.add("Sqrt", graph.add("Add", variance, np.float32(NORM))))
    return _score(graph, head, graph.add("Add", graph.add("Mul", normed, 1 + arrays["gain"]), arrays["shift"]))


def _pool_span(graph: _Graph, pooling: str, words: str, inside: str, query: NDArray[Any]) -> str:
    """The vectors of spans (texts, p) of words (texts, n, d), which are inside or padding (texts, n, 1)."""

    def total(weights: str) -> str:
        return str(graph.add("ReduceSum", graph.add("Mul", words, weights), np.array([1]), keepdims=0))

    hidden = graph.add("Mul", graph.add("Sub", np.float32(1), inside), np.float32(_HIDDEN))
    if pooling == "max":
        return str(
            graph.add("ReduceMax", graph.add("Add", graph.add("Mul", words, inside), hidden), axes=[1], keepdims=0)
        )
    if pooling == "avg":
        return total(graph.add("Div", inside, graph.add("ReduceSum", inside, np.array([1]), keepdims=1)))
    if pooling == "attention":
        scores = graph.add("MatMul", words, query.astype(np.float32)[:, None])
        return total(graph.add("Softmax", graph.add("Add", graph.add("Mul", scores, inside), hidden), axis=1))
    number = graph.add("CumSum", inside, np.int64(1))
    length = graph.add("ReduceSum", inside, np.array([1]), keepdims=1)
    ends = (graph.add("Equal", number, np.float32(1)), graph.add("Equal", number, length))
    first, last = (total(graph.add("Mul", graph.floats(end), inside)) for end in ends)
    if pooling == "endpoint":
        return str(graph.add("Concat", first, last, axis=1))
    if pooling == "diffsum":
        return str(graph.add("Concat", graph.add("Add", last, first), graph.add("Sub", last, first), axis=1))
    a, b = divide_coherent(len(query))
    cuts = (first, 0, a), (last, a, 2 * a), (first, 2 * a, 2 * a + b), (last, 2 * a + b, 2 * (a + b))
    parts = [graph.add("Slice", side, *(np.array([each]) for each in (begin, end, 1))) for side, begin, end in cuts]
    near = graph.add("ReduceSum", graph.add("Mul", *parts[2:]), np.array([1]), keepdims=1)
    return str(graph.add("Concat", *parts[:2], near, axis=1))


def _build_cnn(graph: _Graph, head: Head) -> Outputs:
    words, inside = _read_sequence(graph, head)
    n_filters = len(head.arrays["filter_bias"])
    filters = head.arrays["filters"].reshape(-1, 3, n_filters).transpose(2, 0, 1)  # (F, d, 3)
    columns = graph.add("Transpose", words, perm=[0, 2, 1])
    hidden = graph.add("Conv", columns, filters, head.arrays["filter_bias"], kernel_shape=[3], pads=[1, 1])
    open_ = graph.add("Mul", graph.add("Relu", hidden), graph.add("Transpose", inside, perm=[0, 2, 1]))
    return _score(graph, head, graph.add("ReduceMax", open_, axes=[2], keepdims=0))


def _build_attention(graph: _Graph, head: Head) -> Outputs:
    words, inside = _read_sequence(graph, head)
    states = _run_lstm(graph, head, words, inside)
    concat, residual = head.arrays["adds_words"].tolist()
    if residual:
        size, dim = 2 * head.arrays["recur"].shape[1], head.vectors.dim
        added = graph.add("Pad", words, np.array([0, 0, 0, 0, 0, size - dim])) if size > dim else words
        states = graph.add("Add", states, added)
    states = graph.add("Concat", states, words, axis=2) if concat else states
    query = head.arrays["query"].astype(np.float32)[:, None]
    if isinstance(head.kind, AttentionHead) and head.kind.form == "dot":
        scores = graph.add("Div", graph.add("MatMul", states, query), np.float32(len(query) ** 0.5))
    else:
        keys = graph.add("Add", graph.add("MatMul", states, head.arrays["key"]), head.arrays["key_bias"])
        scores = graph.add("MatMul", graph.add("Tanh", keys), query)
    hidden = graph.add("Mul", graph.add("Sub", np.float32(1), inside), np.float32(_HIDDEN))
    shown = graph.add("Add", graph.add("Mul", scores, inside), hidden)
    weights = graph.add("Softmax", shown, axis=1)
    features = graph.add("ReduceSum", graph.add("Mul", weights, states), np.array([1]), keepdims=0)
    return _score(graph, head, features)


def _build_tagger(graph: _Graph, head: Head) -> Outputs:
    words, inside = _read_sequence(graph, head)
    states, arrays = _run_lstm(graph, head, words, inside), head.arrays
    if "gate" in arrays:  # gates (…, e), experts (f, e·g)
        gate = graph.add("Add", graph.add("MatMul", states, arrays["gate"]), arrays["gate_bias"])
        opened = graph.add("Unsqueeze", graph.add("Softmax", gate, axis=2), np.array([2]))  # (B, L, 1, e)
        n_experts, n_states, size = arrays["experts"].shape
        flat = arrays["experts"].transpose(1, 2, 0).reshape(n_states, size * n_experts)
        bias = np.broadcast_to(arrays["expert_bias"].T, (size, n_experts)).reshape(-1)
        made = graph.add("Add", graph.add("MatMul", states, flat), bias)
        parts = graph.add("Reshape", made, np.array([0, 0, size, n_experts]))
        states = graph.add("ReduceSum", graph.add("Mul", parts, opened), np.array([3]), keepdims=0)
    scores = graph.add("Add", graph.add("MatMul", states, arrays["weights"]), arrays["bias"])
    tags = _find_best_paths(graph, head, scores, inside)
    n = len(arrays["bias"])
    return {"tags": (tags, np.int64, ["texts", "n"]), "scores": (scores, np.float32, ["texts", "n", n])}


def _run_lstm(graph: _Graph, head: Head, words: str, inside: str) -> str:
    """The states in both directions (texts, n, 2 U), zero outside a text."""
    enter, recur, biases = head.arrays["enter"], head.arrays["recur"], head.arrays["biases"].sum(axis=0)
    n_units = recur.shape[1]

    def order(values: NDArray[Any]) -> NDArray[np.float32]:
        """(…, 4 U) in ONNX's order of gates, and first."""
        gates = values.reshape(*values.shape[:-1], 4, n_units)[..., _GATES, :]
        return np.moveaxis(gates.reshape(values.shape), -1, 0).astype(np.float32)

    both = range(2)
    weights = np.stack([order(enter.reshape(len(enter), 2, -1)[:, way]) for way in both])  # (2, 4 U, d)
    recurrent = np.stack([order(recur[way]) for way in both])  # (2, 4 U, U)
    bias = np.stack([np.concatenate([order(biases.reshape(2, -1)[way]), np.zeros(4 * n_units)]) for way in both])
    lengths = graph.add("ReduceSum", graph.add("Squeeze", inside, np.array([2])), np.array([1]), keepdims=0)
    steps = graph.add("Cast", graph.add("Max", lengths, np.float32(1)), to=graph.onnx.TensorProto.INT32)
    first = graph.add("Transpose", words, perm=[1, 0, 2])
    states = graph.add(
        "LSTM",
        first,
        weights,
        recurrent,
        bias.astype(np.float32),
        steps,
        hidden_size=n_units,
        direction="bidirectional",
    )  # (n, 2, texts, U)
    rows = graph.add("Transpose", states, perm=[2, 0, 1, 3])
    return str(graph.add("Mul", graph.add("Reshape", rows, np.array([0, 0, 2 * n_units])), inside))


def _find_best_paths(graph: _Graph, head: Head, scores: str, inside: str) -> str:
    """Viterbi's algorithm (texts, n): one scan forward, one back."""
    arrays, helper, kinds = head.arrays, graph.onnx.helper, graph.onnx.TensorProto
    n = len(arrays["bias"])
    first = graph.add("Transpose", scores, perm=[1, 0, 2])  # (n, texts, T)
    here = graph.add("Transpose", inside, perm=[1, 0, 2])  # (n, texts, 1)
    start = graph.add("Add", graph.add("Gather", first, np.int64(0)), arrays["begin"])
    later = [graph.add("Slice", each, np.array([1]), np.array([1 << 31]), np.array([0])) for each in (first, here)]

    step = _Graph(graph.onnx, "step_")
    reached = step.add("Add", step.add("Unsqueeze", "best", np.array([2])), arrays["step"])  # (texts, from, to)
    previous = step.add("ArgMax", reached, axis=1, keepdims=0)
    new = step.add("Add", step.add("ReduceMax", reached, axes=[1], keepdims=0), "given")
    is_inside = step.add("Greater", "inside", np.float32(0))
    step.add("Where", is_inside, new, "best")
    step.add("Where", is_inside, previous, np.arange(n)[None])
    forward = helper.make_graph(
        step.nodes,
        "step",
        [
            helper.make_tensor_value_info(key, kinds.FLOAT, ["texts", size])
            for key, size in (("best", n), ("given", n), ("inside", 1))
        ],
        [
            helper.make_tensor_value_info(step.nodes[-2].output[0], kinds.FLOAT, ["texts", n]),
            helper.make_tensor_value_info(step.nodes[-1].output[0], kinds.INT64, ["texts", n]),
        ],
        [*step.constants.values()],
    )
    best, back = graph.add("Scan", start, *later, n_outputs=2, body=forward, num_scan_inputs=2)
    last = graph.add("ArgMax", graph.add("Add", best, arrays["end"]), axis=1, keepdims=1)  # (texts, 1)

    turn = _Graph(graph.onnx, "back_")
    turn.add("GatherElements", "origins", "tag", axis=1)
    turn.add("Identity", turn.nodes[-1].output[0])
    backward = helper.make_graph(
        turn.nodes,
        "back",
        [
            helper.make_tensor_value_info("tag", kinds.INT64, ["texts", 1]),
            helper.make_tensor_value_info("origins", kinds.INT64, ["texts", n]),
        ],
        [helper.make_tensor_value_info(node.output[0], kinds.INT64, ["texts", 1]) for node in turn.nodes],
        [*turn.constants.values()],
    )
    ways = {"scan_input_directions": [1], "scan_output_directions": [1]}
    _, earlier = graph.add(
        "Scan", last, back, n_outputs=2, body=backward, num_scan_inputs=1, **ways
    )  # (n - 1, texts, 1)
    path = graph.add("Concat", earlier, graph.add("Unsqueeze", last, np.array([0])), axis=0)
    tags = graph.add("Transpose", graph.add("Squeeze", path, np.array([2])), perm=[1, 0])
    mask = graph.add("Cast", graph.add("Squeeze", inside, np.array([2])), to=kinds.INT64)
    return str(graph.add("Mul", tags, mask))


def _score(graph: _Graph, head: Head, features: str) -> Outputs:
    if isinstance(head.kind, NetworkHead) and head.kind.compares_by_cosine:
        square = graph.add("ReduceSum", graph.add("Mul", features, features), np.array([1]), keepdims=1)
        features = graph.add("Div", features, graph.add("Max", graph.add("Sqrt", square), np.float32(1e-12)))
    scores = graph.add("Add", graph.add("MatMul", features, head.arrays["weights"]), head.arrays["bias"])
    likely = graph.add("Sigmoid", scores) if head.multilabel else graph.add("Softmax", scores, axis=1)
    return {"probabilities": (likely, np.float32, ["texts", len(head.labels)])}


_BUILDERS: dict[type[Any], Callable[[_Graph, Head], Outputs]] = {
    Linear: _build_linear,
    Cnn: _build_cnn,
    AttentionHead: _build_attention,
    Knn: _build_knn,
    Tagger: _build_tagger,
    PairHead: _build_pair,
    SpanHead: _build_span,
}
