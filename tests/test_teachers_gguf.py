"""A GGUF file is a teacher: weights and tokenizer come out of it as they went in, or one sentence says why not."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from safetensors.numpy import load_file
from tiny_teachers import write_tiny_model

from stillvec.encoding import BatchBuilder, TextChunk, encode_batch
from stillvec.errors import MissingExtra, TeacherError
from stillvec.teachers import Teacher, load_teacher
from stillvec.vocabulary import Vocabulary, WordMatcher, WordSpans

TEXTS = (
    "The house stands by the sea.",
    "I",
    "He said: “don't!” (twice), at 3.50 dollars; 1,000 pieces, e-mail & C++…",
    "A naïve café in Straße and 他读书。 Unbelievably hypercritical reread.",
    "Literal <|im_start|> and <|endoftext|> are text.",
)
PARTS = {  # of a layer: llama.cpp's name → that of transformers
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
}


def _interleaved(matrix: np.ndarray, heads: int) -> np.ndarray:
    """Queries and keys as llama.cpp orders them: the halves that rotate together side by side."""
    return matrix.reshape(heads, 2, -1, matrix.shape[1]).swapaxes(1, 2).reshape(matrix.shape)


def _write_gguf(folder: Path, path: Path) -> None:
    """The tiny Llama of a folder as a GGUF file."""
    gguf = pytest.importorskip("gguf", reason="the package gguf is not installed")
    pytest.importorskip("accelerate", reason="the package accelerate is not installed")
    config = json.loads((folder / "config.json").read_text())
    model = json.loads((folder / "tokenizer.json").read_text())["model"]
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_rope_freq_base(config["rope_parameters"]["rope_theta"])
    writer.add_vocab_size(config["vocab_size"])
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(sorted(model["vocab"], key=model["vocab"].get))
    writer.add_token_types([3 if row < 2 else 1 for row in range(config["vocab_size"])])  # control, normal
    writer.add_token_merges([" ".join(pair) for pair in model["merges"]])
    writer.add_bos_token_id(config["bos_token_id"])
    writer.add_eos_token_id(config["eos_token_id"])
    weights = load_file(folder / "model.safetensors")
    writer.add_tensor("token_embd.weight", weights["embed_tokens.weight"])
    writer.add_tensor("output_norm.weight", weights["norm.weight"])
    heads = {"attn_q": config["num_attention_heads"], "attn_k": config["num_key_value_heads"]}
    for layer in range(config["num_hidden_layers"]):
        for name, part in PARTS.items():
            matrix = weights[f"layers.{layer}.{part}.weight"]
            matrix = _interleaved(matrix, heads[name]) if name in heads else matrix
            writer.add_tensor(f"blk.{layer}.{name}.weight", np.ascontiguousarray(matrix))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _numbered() -> WordSpans:
    found = WordMatcher(Vocabulary(["house"])).match(TEXTS)
    return WordSpans(np.arange(len(found.ids), dtype=np.int32), found.starts, found.ends, found.text_index)


def _words(teacher: Teacher) -> dict[int, np.ndarray]:
    """Every word's state in all layers (layers, D), by its number."""
    preparation = BatchBuilder(teacher.tokenizer, WordMatcher(Vocabulary(["x"])), teacher.window, teacher.pad, 256)
    layers = [*range(teacher.depth + 1)]
    words = {}
    for batch in preparation(TextChunk(TEXTS, _numbered())):
        encoded = encode_batch(teacher, batch, layers)
        states = torch.stack([encoded.words(layer) for layer in layers], 1).numpy()
        words |= dict(zip(batch.word_id.tolist(), states, strict=True))
    return words


def test_a_gguf_file_gives_the_states_of_the_folder_it_was_made_of(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_tiny_model(tmp_path / "plain", "llama3")
    (tmp_path / "packed").mkdir()
    _write_gguf(tmp_path / "plain", tmp_path / "packed" / "tiny.gguf")
    plain = _words(load_teacher(str(tmp_path / "plain"), device="cpu"))
    capfd.readouterr()
    for name in ("packed", "packed/tiny.gguf"):
        teacher = load_teacher(str(tmp_path / name), device="cpu")
        assert (teacher.dim, teacher.depth, teacher.window) == (16, 2, 64)
        words = _words(teacher)
        assert words.keys() == plain.keys()
        for word in words:
            np.testing.assert_allclose(words[word], plain[word], atol=1e-5)
    assert "".join(capfd.readouterr()) == ""  # no bars, no reports


@pytest.mark.parametrize("package", ["gguf", "accelerate"])
def test_a_missing_package_is_named(package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tiny.gguf").write_bytes(b"GGUF")
    if package != "gguf":
        monkeypatch.setitem(sys.modules, "gguf", sys)  # there, whatever it is
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtra, match=f"A teacher in a GGUF file needs the package '{package}'.*stillvec.gguf"):
        load_teacher(str(tmp_path))


def test_a_damaged_file_is_said(tmp_path: Path) -> None:
    pytest.importorskip("gguf", reason="the package gguf is not installed")
    pytest.importorskip("accelerate", reason="the package accelerate is not installed")
    (tmp_path / "tiny.gguf").write_bytes(b"junk" * 99)
    with pytest.raises(TeacherError, match=r"tiny.gguf could not be loaded: .*GGUF magic") as caught:
        load_teacher(str(tmp_path / "tiny.gguf"))
    assert "\n" not in str(caught.value)


def test_of_several_files_one_is_to_be_named(tmp_path: Path) -> None:
    for name in ("b.gguf", "a.gguf"):
        (tmp_path / name).write_bytes(b"GGUF")
    with pytest.raises(TeacherError, match=r"holds 2 GGUF files; name one of them, such as .*a\.gguf"):
        load_teacher(str(tmp_path))


def test_another_file_is_not_a_teacher(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("notes")
    with pytest.raises(TeacherError, match=r"GGUF file.*notes\.txt"):
        load_teacher(str(tmp_path / "notes.txt"))


def _slow(model: Any, tokenizer: Any) -> dict[int, np.ndarray]:
    """One text at a time, straight from `transformers`, after <|endoftext|> and a space."""
    found, words = _numbered(), {}
    for number, text in enumerate(TEXTS):
        encoding = tokenizer(f" {text}", split_special_tokens=True, return_offsets_mapping=True)
        ids = [tokenizer.convert_tokens_to_ids("<|endoftext|>"), *encoding["input_ids"]]
        with torch.no_grad():
            layers = model(input_ids=torch.tensor([ids]), output_hidden_states=True).hidden_states
        states = torch.stack(layers)[:, 0, 1:].numpy()
        for word in np.flatnonzero(found.text_index == number).tolist():
            begin, stop = found.starts[word] + 1, found.ends[word] + 1
            own = [p for p, (start, end) in enumerate(encoding["offset_mapping"]) if max(start, begin) < min(end, stop)]
            words[word] = states[:, own].mean(1)
    return words


def test_the_real_smollm_agrees_with_the_slow_computation() -> None:
    folder = Path(os.environ.get("STILLVEC_SMOLLM", ""))
    files = [*folder.glob("*.gguf")] if folder.name else []
    if len(files) != 1:
        pytest.skip("There is no real GGUF teacher; STILLVEC_SMOLLM names the folder of SmolLM2's one file.")
    gguf = pytest.importorskip("gguf", reason="the package gguf is not installed")
    teacher = load_teacher(str(folder), device="cpu", precision="fp32")
    assert (teacher.dim, teacher.depth, teacher.window) == (576, 30, 512)
    named = {"gguf_file": files[0].name}
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **named)
    slow, quick = _slow(teacher.model, tokenizer), _words(teacher)
    assert slow.keys() == quick.keys()
    for word, states in slow.items():
        for layer, state in enumerate(states):
            np.testing.assert_allclose(quick[word][layer], state, rtol=1e-4, atol=1e-5 * np.abs(state).max())
    weights: dict[str, Any] = teacher.model.state_dict()
    for tensor in gguf.GGUFReader(files[0]).tensors:  # and the weights are the file's
        if tensor.name.split(".")[-2] in ("ffn_down", "ffn_norm"):
            label = f"layers.{tensor.name.split('.')[1]}.{PARTS[tensor.name.split('.')[2]]}.weight"
            np.testing.assert_array_equal(weights[label].numpy(), gguf.dequantize(tensor.data, tensor.tensor_type))
