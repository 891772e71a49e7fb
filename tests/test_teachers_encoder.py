"""Encoders that are read without transformers: what transformers makes of the same folder is the independent result."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from tiny_teachers import write_tiny_model

from stillvec.errors import TeacherError
from stillvec.teachers import Teacher, load_teacher, loader
from stillvec.teachers.encoder_folder import read_encoder
from stillvec.teachers.encoder_model import EncoderModel
from stillvec.teachers.sequence_packing import SequencePacking

FAMILIES = ("bert", "mpnet")


@pytest.fixture(scope="module", params=FAMILIES)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("encoders") / str(request.param)
    write_tiny_model(place, str(request.param))
    weights = load_file(place / "model.safetensors")
    random = torch.Generator().manual_seed(1)
    for tensor in weights.values():  # also of biases and norms, which are all alike
        tensor += 0.2 * torch.randn(tensor.shape, generator=random)
    save_file(weights, place / "model.safetensors", {"format": "pt"})
    return place


@pytest.fixture
def copy(folder: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(folder, tmp_path / "copy"))


def by_transformers(folder: Path, **given: str) -> Teacher:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(loader, "read_encoder", lambda *_: None)
        return load_teacher(str(folder), device="cpu", **given)


def batch(teacher: Teacher) -> tuple[torch.Tensor, torch.Tensor]:
    ids = torch.arange(6, 6 + 3 * 11).view(3, 11)
    mask = torch.ones_like(ids)
    mask[1, 4:] = 0
    return torch.where(mask.bool(), ids, teacher.pad), mask


def test_the_teacher_is_that_of_transformers(folder: Path) -> None:
    own, other = load_teacher(str(folder), device="cpu"), by_transformers(folder)
    assert isinstance(own.model, EncoderModel)
    assert not isinstance(other.model, EncoderModel)
    names = ("digest", "sampled_digest", "dim", "depth", "window", "pad", "precision")
    assert [getattr(own, name) for name in names] == [getattr(other, name) for name in names]
    texts = ["The house, the SEA and caf\u00e9s!", "", "[SEP] in 1999 \u4e2d", "don't"]
    for one, two in zip(*(teacher.tokenizer.encode(texts).__dict__.values() for teacher in (own, other)), strict=True):
        assert one.tolist() == two.tolist()
    assert (own.tokenizer.prefix, own.tokenizer.suffix) == (other.tokenizer.prefix, other.tokenizer.suffix)


@pytest.mark.parametrize("masked", [False, True])
def test_the_states_of_every_layer_are_those_of_transformers(folder: Path, masked: bool) -> None:
    own, other = load_teacher(str(folder), device="cpu"), by_transformers(folder)
    ids, mask = batch(own)
    layers = range(own.depth + 1)
    given = mask if masked else None
    ours, theirs = own.states(ids, given, layers), other.states(ids, given, layers)
    kept = mask.bool() if masked else torch.ones_like(mask).bool()
    for layer in layers:
        torch.testing.assert_close(ours[layer][kept], theirs[layer][kept], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(own.states(ids, given, [own.depth])[own.depth], ours[own.depth])


def test_segments_and_packed_rows_give_the_states_of_transformers(folder: Path) -> None:
    own, other = load_teacher(str(folder), device="cpu"), by_transformers(folder)
    ids, _ = batch(own)
    positions = torch.tensor([[0, 1, 2, 3, 0, 1, 2, 3, 4, 0, 1]]).repeat(3, 1)
    first = own.model.first_position
    inputs: dict[str, Any] = SequencePacking(causal=False, first=first).inputs(positions, torch.float32)
    if own.model.config.model_type == "bert":
        inputs["token_type_ids"] = (ids % 3 == 0).long()
    ours, theirs = (teacher.model(input_ids=ids, **inputs).last_hidden_state for teacher in (own, other))
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
    alone = own.model(input_ids=ids[:1, 4:9]).last_hidden_state  # the second sentence of the first row
    if own.model.config.model_type == "mpnet":
        torch.testing.assert_close(ours[:1, 4:9], alone, rtol=1e-4, atol=1e-5)


def test_long_distances_fall_into_the_buckets_of_mpnet() -> None:
    from transformers.models.mpnet.modeling_mpnet import MPNetEncoder

    place = torch.arange(300)
    want = MPNetEncoder.relative_position_bucket(place[None, :] - place[:, None])

    class Buckets:
        encoder = type("Encoder", (), {"relative_attention_bias": staticmethod(lambda bucket: bucket[..., None])})
        config = type("Config", (), {"relative_attention_num_buckets": 32})

    got = EncoderModel._position_bias(Buckets, 300, torch.device("cpu"))  # type: ignore[arg-type]
    assert torch.equal(got[0, 0], want)
    assert got.is_contiguous()  # else attention is not fused on a GPU


@pytest.mark.parametrize("precision", ["bf16", "int8"])
def test_lower_precision_gives_the_states_of_transformers(folder: Path, precision: str) -> None:
    own, other = (load(str(folder), precision=precision, device="cpu") for load in (load_teacher, load_by_transformers))
    ids, mask = batch(own)
    ours, theirs = (each.states(ids, mask, [each.depth])[each.depth].float() for each in (own, other))
    cosines = torch.cosine_similarity(ours, theirs, dim=-1)[mask.bool()]
    assert cosines.min() > 0.999
    assert not torch.equal(ours, load_teacher(str(folder), device="cpu").states(ids, mask, [own.depth])[own.depth])


def load_by_transformers(folder: str, *, device: str, precision: str) -> Teacher:
    return by_transformers(Path(folder), precision=precision)


def test_a_file_of_a_model_with_a_head_and_without_a_pooler_is_read(copy: Path) -> None:
    kind = json.loads((copy / "config.json").read_text())["model_type"]
    weights = load_file(copy / "model.safetensors")
    renamed = {f"{kind}.{name}": tensor for name, tensor in weights.items() if not name.startswith("pooler.")}
    save_file(renamed | {"lm_head.bias": torch.zeros(3)}, copy / "model.safetensors", {"format": "pt"})
    own, other = load_teacher(str(copy), device="cpu"), by_transformers(copy)
    assert isinstance(own.model, EncoderModel)
    assert own.digest == other.digest


def _set(name: str, value: object, file: str = "config.json") -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        config = json.loads((folder / file).read_text())
        (folder / file).write_text(json.dumps(config | {name: value}))

    return change


def _truncate(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes((folder / "model.safetensors").read_bytes()[:-8])


def _drop(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    del weights["embeddings.LayerNorm.weight"]
    save_file(weights, folder / "model.safetensors", {"format": "pt"})


UNUSUAL: dict[str, Callable[[Path], object]] = {
    "activation": _set("hidden_act", "relu"),
    "decoder": _set("is_decoder", True),
    "own code": _set("auto_map", {"AutoModel": "own.Model"}),
    "other model": _set("model_type", "distilbert"),
    "wrong shapes": _set("hidden_size", 6),
    "a size that is text": _set("hidden_size", "6"),
    "truncated weights": _truncate,
    "missing weights": _drop,
    "no tokenizer": lambda folder: (folder / "tokenizer.json").unlink(),
    "damaged tokenizer": lambda folder: (folder / "tokenizer.json").write_text("{}"),
    "damaged configuration": lambda folder: (folder / "config.json").write_text("[1]"),
    "cased tokenizer": _set("do_lower_case", False, "tokenizer_config.json"),
    "no special tokens": _set("post_processor", None, "tokenizer.json"),
    "several files": lambda folder: shutil.copy(folder / "model.safetensors", folder / "model-2.safetensors"),
}


@pytest.mark.parametrize("change", UNUSUAL.values(), ids=UNUSUAL)
def test_an_unusual_folder_is_left_to_transformers(copy: Path, change: Callable[[Path], object]) -> None:
    change(copy)
    assert read_encoder(copy, torch.float32) is None


def test_padding_to_any_length_is_not_carried_out(copy: Path) -> None:
    file = copy / "tokenizer.json"
    written = json.loads(file.read_text("utf-8"))
    padding = {"strategy": {"Fixed": 10**15}, "direction": "Right", "pad_to_multiple_of": None}
    written["padding"] = padding | {"pad_id": 0, "pad_type_id": 0, "pad_token": "[PAD]"}
    file.write_text(json.dumps(written), "utf-8")
    assert load_teacher(str(copy), device="cpu").digest  # carried out, it aborts the process


def test_a_huge_token_id_is_refused_before_the_tokenizer_fills_the_memory(copy: Path) -> None:
    file = copy / "tokenizer.json"
    written = json.loads(file.read_text("utf-8"))
    written["model"]["vocab"]["huge"] = 2**32 - 1
    file.write_text(json.dumps(written), "utf-8")
    with pytest.raises(TeacherError, match="token ids"):
        load_teacher(str(copy), device="cpu")


def test_weights_that_are_not_finite_are_refused(copy: Path) -> None:
    weights = load_file(copy / "model.safetensors")
    weights["embeddings.LayerNorm.bias"][0] = float("nan")
    save_file(weights, copy / "model.safetensors", {"format": "pt"})
    with pytest.raises(TeacherError) as caught:
        load_teacher(str(copy), device="cpu")
    assert "embeddings.LayerNorm.bias" in str(caught.value)


def test_loading_imports_neither_transformers_nor_the_compiler_of_torch(folder: Path) -> None:
    code = (
        "import sys; from stillvec.teachers import load_teacher; load_teacher(sys.argv[1], device='cpu');"
        "print([name for name in ('transformers', 'torch._dynamo', 'sympy', 'scipy.optimize') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code, str(folder)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
