"""On an accelerator: `make test-gpu`."""

from __future__ import annotations

import os

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tiny_corpus import make_pass  # noqa: E402

from stillvec.encoding import BatchBudget, TextChunk  # noqa: E402
from stillvec.learners import LEARNERS  # noqa: E402
from stillvec.teachers import load_teacher  # noqa: E402
from stillvec.vocabulary import Vocabulary, WordCounter  # noqa: E402

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU here")]

SENTENCES = [
    "The school of the village stood by the river.",
    "A river runs past the village, and the school is old.",
    "Old schools have small windows; the river has none.",
] * 20


@pytest.mark.parametrize("workers", [0, 2])
def test_a_gpu_gives_the_vectors_of_a_cpu(workers: int) -> None:
    counter = WordCounter()
    counter.add(SENTENCES)
    vocabulary = Vocabulary.build(counter.counts(), min_count=2)
    found = {}
    for device in ("cpu", "cuda"):
        teacher = load_teacher(os.environ.get("STILLVEC_MINILM", "minilm"), device=device, precision="fp32")
        encoding_pass = make_pass({"aggregate": LEARNERS["aggregate"]()}, teacher, vocabulary)
        load = BatchBudget(2048, 16, workers if device == "cuda" else 0)
        for _ in encoding_pass.run([TextChunk(SENTENCES[:30]), TextChunk(SENTENCES[30:])], load):
            pass
        found[device] = (
            encoding_pass.plan.learners["aggregate"].finish(encoding_pass.statistics_of("aggregate")).vectors.matrix
        )
    np.testing.assert_allclose(found["cuda"], found["cpu"], atol=2e-3)


@pytest.mark.parametrize("dim", [7, 384, 1000])
def test_states_are_added_up_by_word_in_one_step(dim: int) -> None:
    summing = pytest.importorskip("stillvec.encoding.triton_segment_sum")
    random = np.random.default_rng(dim)
    states = torch.tensor(random.normal(size=(50, dim)), dtype=torch.bfloat16, device="cuda")
    place, share, row = random.integers(0, 50, 300), random.integers(1, 5, 300), np.sort(random.integers(0, 20, 300))
    start = np.flatnonzero(np.diff(row, prepend=-1) | (np.arange(300) % 64 == 0))  # a word may have several groups
    table = torch.ones(20, dim, device="cuda")
    summing.add_segments(
        table, states, *(torch.tensor(each, device="cuda") for each in (place, share, start, row[start]))
    )
    wanted = np.ones((20, dim))
    for here, pieces, word in zip(place, share, row, strict=True):
        wanted[word] += states[here].double().cpu().numpy() / pieces
    np.testing.assert_allclose(table.cpu().numpy(), wanted, atol=1e-4)


def test_on_this_gpu_it_is_one_step() -> None:
    from stillvec.encoding.encoded import _triton_segment_sum

    assert _triton_segment_sum(torch.device("cuda")) is not None
