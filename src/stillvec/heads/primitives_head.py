"""Tags that are written part by part, so that tags which training lacks can be right (Bhargava & Penn 2020).

The network is that of `primitive_networks.py`; the tags of a sentence are found by a beam over primitives. `split` says
how a tag is divided (`tag_parts.py`).
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import UsageError
from stillvec.heads.head_kind import Lesson, Trained
from stillvec.heads.numpy_layers import Floats32, sigmoid
from stillvec.heads.sequence_batches import Sequences, keep_table
from stillvec.heads.tag_parts import Split, choose_split, join_parts, split_tag
from stillvec.heads.tagger_head import Tagger, iterate_states
from stillvec.numerics.array_types import Floats, Rows
from stillvec.registry import check_least

_MAX_BEAM = 1000  # each has the state of a network


@dataclass(frozen=True)
class Primitives(Tagger):
    epochs: int = 25  # at most
    patience: int = 5  # epochs without a better development score, after which training stops
    split: Split = "auto"  # ccg: at brackets and slashes, features: before bars
    beam: int = 5  # sequences that are continued

    def __post_init__(self) -> None:
        super().__post_init__()
        check_least(self, beam=1)
        if self.beam > _MAX_BEAM:
            raise UsageError.expected(f"at most {_MAX_BEAM}", self.beam, where="setting 'beam'")

    def fit(self, lesson: Lesson) -> Generator[float, None, Trained]:
        from stillvec.heads.networks import NetworkSettings, PaddedTexts  # torch takes seconds
        from stillvec.heads.primitive_networks import PrimitiveNetworks

        data = lesson.data
        if data.has_spans:
            what = "tags that have parts, such as NOUN|Case=Gen or (S\\NP)/NP"
            raise UsageError.expected(what, ", ".join(data.names[:5]), where="head primitives", cure="use tagger")
        split = choose_split(data.names) if self.split == "auto" else self.split
        known = {name: split_tag(name, split) for name in data.names}
        names = sorted({*chain.from_iterable(known.values())})
        number = {name: place for place, name in enumerate(names, 1)}
        learnt = {tag: [number[part] for part in parts] for tag, parts in known.items()}
        parts = [[learnt.get(tag, [1]) for tag in tags] for tags in data.labels]  # others are only in test sentences
        group = PrimitiveNetworks(
            PaddedTexts([lesson.sequences], lesson.resolve_device()), parts, len(names),
            [NetworkSettings(0, seed, self.rate) for seed in lesson.seeds], tuned=self.tuned,
        )  # fmt: skip
        factor = np.float32(lesson.sequences.scale_factor).reshape(1)
        fixed: dict[str, NDArray[Any]] = {
            "primitives": np.frombuffer("\n".join(names).encode(), np.uint8),
            "longest": np.array([max(map(len, known.values()))], np.int32),
            "factor": factor,
        }
        judged = _select(lesson.sequences, data.dev)
        gold = [*chain.from_iterable(data.labels[row] for row in data.dev.tolist())]

        def measure() -> Floats:
            return np.array([self._measure(group, at, fixed, judged, gold) for at in range(len(lesson.seeds))])

        quality = yield from group.train_best(
            data.train, self.epochs, measure, decay=1 / 3, patience=self.patience, checkpoint=lesson.checkpoint
        )
        at = int(np.argmax(quality))
        arrays = group.read_arrays(at) | fixed
        if self.tuned:
            arrays |= keep_table(group.parameters[-1][at].detach().cpu().numpy(), lesson.sequences)
        return Trained(arrays, float(quality[at]))

    def _measure(
        self, group: Any, at: int, fixed: Mapping[str, NDArray[Any]], judged: Sequences, gold: Sequence[str]
    ) -> float:
        """The accuracy on development words, without a beam."""
        arrays = group.read_arrays(at) | dict(fixed)
        if self.tuned:
            table = group.parameters[-1][at].detach().cpu().numpy() / fixed["factor"]
            judged = Sequences(table, judged.ids, judged.ends)
        said = _write_tags(arrays, judged, 1)
        return float(np.mean([ours == theirs for ours, theirs in zip(said, gold, strict=True)]))

    def name_tags(self, arrays: Mapping[str, NDArray[Any]], sequences: Sequences, labels: Sequence[str]) -> list[str]:
        return _write_tags(arrays, sequences, self.beam)

    def explain_tags(
        self, arrays: Mapping[str, NDArray[Any]], sequences: Sequences
    ) -> tuple[Floats32 | None, Floats32 | None]:
        """A beam has no probabilities of tags."""
        return None, None


def _select(sequences: Sequences, rows: Rows) -> Sequences:
    """Some of the texts."""
    starts, lengths = sequences.ends - sequences.lengths, sequences.lengths
    ids = [sequences.ids[starts[row] : starts[row] + lengths[row]] for row in rows.tolist()]
    return Sequences(sequences.table, np.concatenate(ids), np.cumsum(lengths[rows]))


def _write_tags(arrays: Mapping[str, NDArray[Any]], sequences: Sequences, beam: int) -> list[str]:
    """The tag of each word (N,)."""
    names = ["", *bytes(arrays["primitives"]).decode().split("\n")]
    said = [""] * len(sequences.ids)
    starts = sequences.ends - sequences.lengths
    for numbers, states, lengths in iterate_states(arrays, sequences):
        merged = np.maximum(states @ arrays["merge"] + arrays["merge_bias"], 0)
        for number, tags in zip(numbers.tolist(), decode_tags(merged, lengths, arrays, beam), strict=True):
            first = int(starts[number])
            said[first : first + len(tags)] = [join_parts([names[part] for part in parts]) for parts in tags]
    return said


def decode_tags(words: Floats32, lengths: Rows, arrays: Mapping[str, NDArray[Any]], beam: int) -> list[list[list[int]]]:
    """The primitives of each word of each sentence, by a beam over the sequences of whole sentences.

    Words are (B, L, C). A tag has at least one primitive, and at most as many as the longest in training.
    """
    enter, recur, bias = (arrays[f"decoder_{name}"] for name in ("enter", "recur", "bias"))
    n, n_units, longest = len(words), len(recur), int(arrays["longest"][0])
    own = np.arange(n)[:, None]
    state = cell = np.zeros((n, beam, n_units), np.float32)
    before, at, length = (np.zeros((n, beam), np.int64) for _ in range(3))
    total = np.where(np.arange(beam) == 0, 0, -np.inf) + np.zeros((n, 1))
    history: list[tuple[Rows, Rows]] = []  # of each step, the sequence that is continued, and its primitive
    while (at < lengths[:, None]).any():
        is_open = at < lengths[:, None]
        read = words[own, np.minimum(at, words.shape[1] - 1)]
        gates = np.concatenate([read, arrays["embedding"][before]], axis=2) @ enter + state @ recur + bias
        opened = sigmoid(gates[..., : 3 * n_units])
        kept = opened[..., n_units : 2 * n_units] * cell
        cell = kept + opened[..., :n_units] * np.tanh(gates[..., 3 * n_units :])
        state = opened[..., 2 * n_units :] * np.tanh(cell)
        scores = state @ arrays["weights"] + arrays["bias"]
        top = scores.max(axis=2, keepdims=True)
        logs = scores - top - np.log(np.exp(scores - top).sum(axis=2, keepdims=True))  # (B, beam, primitives)
        logs[..., 0][is_open & (length == 0)] = -np.inf
        logs[..., 1:][is_open & (length >= longest)] = -np.inf
        logs[~is_open] = -np.inf
        logs[..., 0][~is_open] = 0  # a sentence that is finished stays as it is
        reached = (total[..., None] + logs).reshape(n, -1)
        best = np.argsort(-reached, axis=1, kind="stable")[:, :beam]
        total = np.take_along_axis(reached, best, 1)
        source, chosen = np.divmod(best, logs.shape[2])
        history.append((source, chosen))
        was_open = is_open[own, source]
        state, cell, length = state[own, source], cell[own, source], length[own, source]
        length = np.where(chosen == 0, 0, length + 1)
        at, before = at[own, source] + ((chosen == 0) & was_open), chosen
    return _trace(history, lengths)


def _trace(history: list[tuple[Rows, Rows]], lengths: Rows) -> list[list[list[int]]]:
    """The primitives of the words of each sentence, by its best sequence."""
    written: list[list[list[int]]] = []
    for number, length in enumerate(lengths.tolist()):
        row, taken = 0, []
        for source, chosen in reversed(history):
            taken.append(int(chosen[number, row]))
            row = int(source[number, row])
        words: list[list[int]] = [[]]
        for part in reversed(taken):
            if part:
                words[-1].append(part)
            else:
                words.append([])
        written.append(words[:length])
    return written
