"""Reads the folder of an encoder (`encoder_model.py`) without the package transformers, where it is a plain one.

Whatever is unusual about a folder, such as other settings, several files of weights or a damaged one, returns None:
`transformers` then loads it, or says what is wrong.
"""

from __future__ import annotations

import json
from dataclasses import fields
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from tokenizers import Tokenizer

from stillvec.teachers.encoder_model import KINDS, EncoderConfig, EncoderModel
from stillvec.teachers.rust_panic import raise_panics

_REQUIRED = {
    "hidden_act": "gelu",
    "position_embedding_type": "absolute",
    "relative_attention_num_buckets": 32,
}  # settings that may be there, and their value
_REFUSED = ("is_decoder", "add_cross_attention", "quantization_config", "auto_map", "pruned_heads")
_DEFAULTS: dict[str, dict[str, object]] = {
    "bert": {"pad_token_id": 0, "layer_norm_eps": 1e-12, "type_vocab_size": 2},
    "mpnet": {"pad_token_id": 1, "layer_norm_eps": 1e-12, "relative_attention_num_buckets": 32},
}
_TOKENIZERS = {"bert": "BertTokenizer", "mpnet": "MPNetTokenizer"}
_FIRST = "embeddings.word_embeddings.weight"
_UNUSED = "pooler."  # zeros where the file lacks it
_LENGTH = 10**30  # of a tokenizer without a limit, as transformers has it


class TokenizerFile:
    """tokenizer.json, with what `transformers` calls its tokenizers' properties."""

    def __init__(self, folder: Path) -> None:
        self.backend_tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.backend_tokenizer.no_padding()  # to any length that a damaged file names, which aborts the process
        settings = json.loads((folder / "tokenizer_config.json").read_bytes())
        self.model_max_length = settings.get("model_max_length") or _LENGTH
        roles = ("bos", "eos", "unk", "sep", "pad", "cls", "mask")
        tokens = {role: settings.get(f"{role}_token") for role in roles}
        self.special_tokens = {role: _content(token) for role, token in tokens.items() if token}

    @cached_property
    def _table(self) -> dict[str, int]:
        return dict(self.backend_tokenizer.get_vocab())

    def get_vocab(self) -> dict[str, int]:
        return self._table

    @property
    def all_special_tokens(self) -> list[str]:
        return [*self.special_tokens.values()]

    @property
    def pad_token_id(self) -> int | None:
        return self._table.get(self.special_tokens.get("pad", ""))

    def __call__(self, text: str) -> dict[str, list[int]]:
        return {"input_ids": self.backend_tokenizer.encode(text).ids}


def read_encoder(folder: Path, dtype: torch.dtype) -> tuple[EncoderModel, TokenizerFile] | None:
    """Model and tokenizer, or None for a folder that is unusual."""
    try:
        with raise_panics():
            return _read_plain(folder, dtype)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RuntimeError, RecursionError, SafetensorError):
        return None
    except (ArithmeticError, AssertionError):  # of torch's modules, about numbers in config.json
        return None
    except Exception as error:  # the package tokenizers raises nothing more specific
        if type(error) is not Exception:
            raise
        return None


def _read_plain(folder: Path, dtype: torch.dtype) -> tuple[EncoderModel, TokenizerFile] | None:
    config = _read_config(json.loads((folder / "config.json").read_bytes()))
    files = [*folder.glob("*.safetensors*")]
    settings = json.loads((folder / "tokenizer_config.json").read_bytes())
    kind = str(settings.get("tokenizer_class")).removesuffix("Fast")
    if files != [folder / "model.safetensors"] or kind != _TOKENIZERS[config.model_type]:
        return None
    tokenizer = TokenizerFile(folder)
    if not _is_plain(tokenizer, json.loads((folder / "tokenizer.json").read_bytes()), settings):
        return None
    model = EncoderModel(config)
    _load_weights(model, files[0], dtype)
    return model, tokenizer


def _read_config(given: dict[str, Any]) -> EncoderConfig:
    kind = given["model_type"]
    if kind not in KINDS or any(given.get(name) for name in _REFUSED):
        raise ValueError(kind)
    for name, value in _REQUIRED.items():
        if given.get(name, value) != value:
            raise ValueError(name)
    names = {field.name for field in fields(EncoderConfig)}
    chosen: dict[str, Any] = {name: value for name, value in (_DEFAULTS[kind] | given).items() if name in names}
    return EncoderConfig(**chosen)


def _is_plain(tokenizer: TokenizerFile, written: dict[str, Any], settings: dict[str, Any]) -> bool:
    """Whether the file says what `transformers` makes of it: these tokenizers are built from their settings."""
    backend = tokenizer.backend_tokenizer
    normalizer = written["normalizer"]
    named = {"do_lower_case": "lowercase", "tokenize_chinese_chars": "handle_chinese_chars"}
    named["strip_accents"] = "strip_accents"
    ends = [backend.token_to_id(tokenizer.special_tokens[role]) for role in ("cls", "sep")]
    return (
        (written["model"]["type"], normalizer["type"]) == ("WordPiece", "BertNormalizer")
        and written["pre_tokenizer"] == {"type": "BertPreTokenizer"}
        and all(settings.get(name, normalizer[field]) == normalizer[field] for name, field in named.items())
        and backend.encode("").ids == ends
    )


def _load_weights(model: EncoderModel, path: Path, dtype: torch.dtype) -> None:
    """Give the model its weights, which stay in the mapped file if they have its precision."""
    with safe_open(path, framework="pt") as stored:
        names = {*stored.keys()}  # not a mapping
        prefix = f"{model.config.model_type}." if f"{model.config.model_type}.{_FIRST}" in names else ""
        weights: dict[str, torch.Tensor] = {}
        for name, empty in model.state_dict().items():
            if prefix + name in names:
                weights[name] = stored.get_tensor(prefix + name).to(dtype)
            elif name.startswith(_UNUSED):
                weights[name] = torch.zeros(empty.shape, dtype=dtype)
            else:
                raise KeyError(name)
    model.load_state_dict(weights, assign=True)  # refuses other shapes


def _content(token: str | dict[str, Any]) -> str:
    return token if isinstance(token, str) else str(token["content"])
