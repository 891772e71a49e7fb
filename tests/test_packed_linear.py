"""Packed linear layers and short attention: what torch's plain operations give is the independent result."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from tiny_teachers import write_tiny_model  # noqa: E402
from torch import nn  # noqa: E402

from stillvec.teachers import encoder_model, load_teacher, packed_linear  # noqa: E402
from stillvec.teachers.packed_linear import PackedLinear, add_residual, apply_gelu, pack_layers  # noqa: E402

BF16 = 2.0**-8  # of a number, by rounding once


def make_model() -> nn.Sequential:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(64, 96), nn.ModuleDict({"inner": nn.Linear(96, 64)})).bfloat16()


@pytest.fixture
def packs() -> None:
    model = make_model()
    pack_layers(model)
    if not isinstance(model[0], PackedLinear):
        pytest.skip("this build of torch does not pack")


@pytest.mark.usefixtures("packs")
@pytest.mark.parametrize("shape", [(5, 64), (3, 7, 64)])
def test_a_packed_layer_gives_what_the_plain_one_gives_in_fp64(shape: tuple[int, ...]) -> None:
    model, packed = make_model(), make_model()
    pack_layers(packed)
    states = torch.randn(shape, generator=torch.Generator().manual_seed(2)).bfloat16()
    residual = torch.randn((*shape[:-1], 96), generator=torch.Generator().manual_seed(3)).bfloat16()
    exact = states.double() @ model[0].weight.double().T + model[0].bias.double()
    for result, expected in (
        (packed[0](states), exact),
        (apply_gelu(packed[0], states), exact * 0.5 * (1 + torch.erf(exact / math.sqrt(2)))),
        (add_residual(packed[0], states, residual), exact + residual.double()),
    ):
        assert (result.double() - expected).abs().max() <= 2 * BF16 * expected.abs().max()
    assert isinstance(packed[1]["inner"], PackedLinear)


@pytest.mark.usefixtures("packs")
@pytest.mark.parametrize("name", ["forward", "add"])
def test_layers_stay_where_packed_ones_give_something_else(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right = getattr(PackedLinear, name)
    monkeypatch.setattr(PackedLinear, name, lambda *given: 1.5 * right(*given))
    model = make_model()
    pack_layers(model)
    assert type(model[0]) is nn.Linear


def test_layers_stay_where_torch_cannot_pack(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(linear: object) -> None:
        raise AttributeError("_reorder_linear_weight")

    monkeypatch.setattr(packed_linear, "PackedLinear", fail)
    model = make_model()
    pack_layers(model)
    assert type(model[0]) is nn.Linear


def test_layers_in_fp32_are_not_packed() -> None:
    model = make_model().float()
    pack_layers(model)
    assert type(model[0]) is nn.Linear


@pytest.mark.usefixtures("packs")
@pytest.mark.parametrize("family", ["bert", "mpnet"])
def test_states_in_bf16_are_those_of_fp32_but_for_rounding_and_texts_do_not_see_padding(
    family: str, tmp_path: Path
) -> None:
    write_tiny_model(tmp_path, family)
    exact, packed = (load_teacher(str(tmp_path), device="cpu", precision=kind) for kind in ("fp32", "bf16"))
    assert isinstance(packed.model.encoder.layer[0].output.dense, PackedLinear)
    ids = torch.arange(6, 6 + 3 * 11).view(3, 11)
    mask = torch.ones_like(ids)
    mask[1, 4:] = 0
    ids = torch.where(mask.bool(), ids, packed.pad)
    layers = range(packed.depth + 1)
    want, got = exact.states(ids, mask, layers), packed.states(ids, mask, layers)
    for layer in layers:
        cosine = torch.cosine_similarity(want[layer], got[layer].float(), dim=-1)[mask.bool()]
        assert cosine.min() > 0.999
    alone = packed.states(ids[1:2, :4], None, layers)[packed.depth][0].float()
    assert torch.allclose(alone, got[packed.depth][1, :4].float(), atol=0.05)


def test_short_attention_is_the_weighted_mean_of_values() -> None:
    random = torch.Generator().manual_seed(4)
    q, k, v = (torch.randn(2, 3, 5, 8, generator=random).bfloat16() for _ in range(3))
    for mask in (None, torch.tensor([[True] * 5, [True] * 3 + [False] * 2])[:, None, None]):
        visible = torch.ones(2, 5, dtype=torch.bool) if mask is None else mask[:, 0, 0]
        got = encoder_model._attend(q, k, v, mask)
        for text in range(2):
            for head in range(3):
                for at in range(5):
                    keys = visible[text].nonzero()[:, 0]
                    weights = [math.exp(float(q[text, head, at] @ k[text, head, key]) / math.sqrt(8)) for key in keys]
                    mean = sum(w * v[text, head, key].float() for w, key in zip(weights, keys, strict=True))
                    assert torch.allclose(got[text, head, at].float(), mean / sum(weights), atol=0.03)
