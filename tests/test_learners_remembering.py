"""What listeners hold in the middle of a pass comes back bit for bit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from tiny_corpus import DOES, KIND, WHAT, WHERE, WHO, counted, make_pass, sentences
from tiny_teachers import tiny_teacher

from stillvec.encoding import BatchBudget, TextChunk, TextUnit
from stillvec.learners import EncodingPass
from stillvec.learners.accumulators import AccumulatorSpec, can_checkpoint, load_state, save_state
from stillvec.learners.additive import WeightedSentences
from stillvec.learners.first_component import StateSample
from stillvec.learners.stored_contexts import StoredContexts
from stillvec.result import Result
from stillvec.statistics import Statistics
from stillvec.teachers import Teacher

TEXTS = [*sentences(64), *sentences(64)[:40]]  # many twice
ABSENT = [f"word{number}" for number in range(60)]


@dataclass(frozen=True)
class Only:
    """A learner that only listens."""

    part: AccumulatorSpec

    def specs(self) -> dict[str, AccumulatorSpec]:
        return {"it": self.part}

    def finish(self, collected: Mapping[str, Statistics]) -> Result:
        raise NotImplementedError


@pytest.fixture(scope="module")
def teacher() -> Teacher:
    return tiny_teacher([*WHO, *DOES[:6], *WHAT[:6], *KIND, *WHERE])


def steps(encoding_pass: EncodingPass) -> Iterator[None]:
    chunks = [TextChunk(TEXTS[at : at + 16]) for at in range(0, len(TEXTS), 16)]
    paragraphs = [
        TextChunk([" ".join(TEXTS[at : at + 2]) for at in range(0, len(TEXTS), 2)], unit=TextUnit.WHOLE_PARAGRAPHS)
    ]
    for _ in encoding_pass.run(chunks, BatchBudget(32, 16), paragraphs):
        yield


@pytest.mark.parametrize(
    "part",
    [
        WeightedSentences(max_sentences=50),
        StateSample(keep=2),
        StoredContexts(unit="paragraph"),
        StoredContexts(states=True),
    ],
)
def test_a_pass_continues_from_each_of_its_batches(part: AccumulatorSpec, teacher: Teacher) -> None:
    vocabulary = counted(TEXTS, keep=ABSENT)
    whole = make_pass({"it": Only(part)}, teacher, vocabulary)
    moments = [{name: np.array(array) for name, array in whole.state.to_arrays().items()} for _ in steps(whole)]
    assert len(moments) > 20
    wanted = whole.statistics_of("it")["it"].arrays
    for moment in moments[::5]:
        encoding_pass = make_pass({"it": Only(part)}, teacher, vocabulary)
        encoding_pass.state.restore(moment)
        for name, array in save_state(encoding_pass.accumulators[part]).items():
            assert array.tobytes() == moment[f"part/0/{name}"].tobytes(), name
        for _ in steps(encoding_pass):
            pass
        for name, array in encoding_pass.statistics_of("it")["it"].arrays.items():
            assert array.tobytes() == wanted[name].tobytes(), name


class Everything:
    """One of each kind of memory."""

    state_fields = ("table", "grown", "numbers", "bags", "none", "layers", "count", "share")

    def __init__(self, seed: int) -> None:
        random = np.random.default_rng(seed)
        self.table = torch.from_numpy(random.normal(size=(3, 2)))
        self.grown = torch.from_numpy(random.normal(size=seed)).half()
        self.numbers = random.integers(0, 9, seed)
        self.bags = [random.normal(size=2) for _ in range(seed)]
        self.none: list[np.ndarray] = []
        self.layers = {layer: torch.from_numpy(random.normal(size=2)) for layer in (0, 3)}
        self.count, self.share = seed, seed / 7


def test_each_kind_of_memory_comes_back() -> None:
    old, new = Everything(5), Everything(2)
    table = new.table
    load_state(new, {name: np.array(array) for name, array in save_state(old).items()})
    assert new.table is table, "a table that did not grow is filled where it lies"
    assert torch.equal(new.table, old.table)
    assert torch.equal(new.grown, old.grown)
    assert new.grown.dtype == torch.float16
    assert new.numbers.tolist() == old.numbers.tolist()
    assert np.concatenate(new.bags).tolist() == np.concatenate(old.bags).tolist()
    assert new.none == []
    assert {layer: each.tolist() for layer, each in new.layers.items()} == {
        layer: each.tolist() for layer, each in old.layers.items()
    }
    assert (new.count, new.share) == (5, 5 / 7)
    assert isinstance(new.count, int)


def test_who_names_no_memory_cannot_be_gone_on_with() -> None:
    assert can_checkpoint(Everything(1))
    assert not can_checkpoint(object())
