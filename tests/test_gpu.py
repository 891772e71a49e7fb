"""On an accelerator: `make test-gpu`."""

from __future__ import annotations

import os

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tiny_corpus import make_pass  # noqa: E402

from stillvec.encoding import BatchBudget, TextChunk  # noqa: E402
from stillvec.learners import LEARNERS  # noqa: E402
from stillvec.learners.context_blocks import ContextBlock  # noqa: E402
from stillvec.registry import settings_from  # noqa: E402
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


def test_a_step_of_x2static_is_one_kernel_that_passes_its_test() -> None:
    from stillvec.learners.x2static import _find_fused_steps

    assert _find_fused_steps(torch.device("cuda")) is not None


@pytest.mark.parametrize(
    ("name", "settings"),
    [("x2static", "gupta-jaggi-2021"), ("context_to_vec", "zheng-2022"), ("attentive_skipgram", "wang-2020")],
)
def test_a_graph_of_steps_trains_as_a_cpu_does(name: str, settings: str) -> None:
    """Two blocks of different size, so that the graph is captured once and replayed with fewer steps."""
    random = torch.Generator().manual_seed(1)
    lengths = torch.randint(10, 41, (2000,), generator=random)  # of which a CPU leaves none out of a batch
    block = ContextBlock(
        torch.randint(-1, 3000, (int(lengths.sum()),), generator=random),
        lengths,
        torch.randn(len(lengths), 64, generator=random),
        torch.randn(int(lengths.sum()), 64, generator=random).half(),
    )
    n_words = int(lengths[:900].sum())
    smaller = ContextBlock(block.words[:n_words], lengths[:900], block.contexts[:900], block.states[:n_words])
    given = {"settings": settings} | ({"subsample": 1e9} if name == "x2static" else {"dim": 32})
    learner = settings_from(LEARNERS[name], given)
    trained = {}
    for device in (torch.device("cpu"), torch.device("cuda")):
        model = learner.model(torch.arange(1, 3001, device=device), [], 64, device)
        model.sampler.draw = lambda shape, generator: torch.full(shape, 7, device=generator.device)
        for part in (block, smaller):
            moved = ContextBlock(*(tensor.to(device) for tensor in part))
            generator = torch.Generator(device).manual_seed(1)
            for _ in model.train_block(moved, generator=generator, lr_at=lambda _: 1e-3):
                pass
        trained[device.type] = model.result()["vectors"].cpu()
    torch.testing.assert_close(trained["cuda"], trained["cpu"], atol=1e-5, rtol=1e-3)
