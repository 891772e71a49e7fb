"""Reads the modules of a sentence-transformers folder: modules.json, and what each module has in its folder.

Only safetensors are read, unless the user asks for pickled weights; a file that is wrong is an error of one sentence.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from stillvec.errors import TeacherError
from stillvec.registry import require
from stillvec.teachers.sentence_head import POOLINGS, SentenceHead, UnitLength

Fetch = Callable[[str], Path | None]  # a file of the teacher by its path in the folder; None: there is none
_OLD_NAMES = {  # settings of earlier versions, in the order in which modes are concatenated → names of modes
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
_ACTIVATIONS = ("Identity", "Tanh", "ReLU", "GELU", "Sigmoid", "SiLU", "LeakyReLU", "ELU")  # of torch.nn
_MAX_PATH = 200  # characters of the path of a module
_MAX_DIM = 1 << 20  # of a vector
NO_PROMPT = "off"  # the name of no prompt
MODULES, CONFIG, LIMITS = "modules.json", "config_sentence_transformers.json", "sentence_bert_config.json"


def make_fetcher(source: str) -> Fetch:
    """Finds a file of the model in its folder, or in the cache of the hub, which downloads it."""
    if Path(source).exists():
        return lambda file: path if (path := Path(source) / file).is_file() else None
    cached = require("transformers", "distill", "A teacher").utils.hub.cached_file

    def fetch(file: str) -> Path | None:
        try:
            found = cached(source, file, _raise_exceptions_for_missing_entries=False)
        except OSError:  # it is not in the cache, and the hub cannot be asked
            return None
        return None if found is None else Path(found)

    return fetch


def read_sentence_head(
    fetch: Fetch, name: str, dim: int, *, prompt: str | None = None, unsafe: bool = False
) -> SentenceHead | None:
    """The head of a teacher whose states have `dim` columns; None for a folder without modules.json.

    `prompt` is the name of one of its prompts, or "off" (default: its default prompt, if it has one).
    """
    reader = _Reader(fetch, name, unsafe)
    listed = reader.read(MODULES)
    if listed is None:
        if prompt not in (None, NO_PROMPT):
            raise TeacherError(f"Teacher {name} has no prompts, since it has no {MODULES}; leave out --prompt.")
        return None
    modules = listed if isinstance(listed, list) else []
    kinds = [str(part.get("type", "")).rpartition(".")[2] if isinstance(part, dict) else "" for part in modules]
    if kinds[:2] != ["Transformer", "Pooling"]:
        got = ", ".join(kinds) or "none"
        raise TeacherError.expected("Transformer, Pooling, ...", got, where="modules", path=reader.path(MODULES))
    poolings, include_prompt = reader.read_pooling(reader.check_path(modules[1]), dim)
    layers, columns = [], dim * len(poolings)
    for kind, part in zip(kinds[2:], modules[2:], strict=True):
        if kind == "Dense":
            layers += reader.read_dense(reader.check_path(part), columns)
            columns = next(layer.out_features for layer in layers[::-1] if isinstance(layer, nn.Linear))
        elif kind == "Normalize":
            layers.append(UnitLength())
        elif kind != "Dropout":
            expected = "Dense, Normalize or Dropout after Pooling"
            raise TeacherError.expected(expected, kind, where="modules", path=reader.path(MODULES))
    head = SentenceHead(columns, poolings, nn.Sequential(*layers), include_prompt, **reader.read_settings(prompt))
    head.layers.eval().requires_grad_(False)
    return replace(head, files=(*reader.files,), digest=_digest(head))


def _digest(head: SentenceHead) -> str:
    settings = (head.poolings, head.include_prompt, head.prompt, head.lowercase, [str(part) for part in head.layers])
    state = hashlib.blake2b(repr(settings).encode(), digest_size=16)
    for tensor in head.layers.state_dict().values():
        state.update(tensor.to(torch.bfloat16).float().numpy().tobytes())
    return state.hexdigest()


class _Reader:
    """Reads the files of one teacher, and notes which."""

    def __init__(self, fetch: Fetch, name: str, unsafe: bool) -> None:
        self.fetch, self.name, self.unsafe = fetch, name, unsafe
        self.files: list[str] = []

    def path(self, file: str) -> Path:
        return self.fetch(file) or Path(file)

    def read(self, file: str) -> Any:
        """The value of a JSON file; None if there is none."""
        path = self.fetch(file)
        if path is None:
            return None
        try:
            value = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            raise TeacherError.expected("JSON", str(error), path=path) from None
        self.files.append(file)
        return value

    def read_object(self, file: str, *, required: bool = False) -> dict[str, Any]:
        value = self.read(file)
        if value is None and not required:
            return {}
        if not isinstance(value, dict):
            got = "no such file" if value is None else type(value).__name__
            raise TeacherError.expected("a JSON object", got, path=self.path(file))
        return value

    def check_path(self, module: dict[str, Any]) -> str:
        """The subfolder of a module."""
        folder = str(module.get("path", ""))
        parts = Path(folder)
        if len(folder) > _MAX_PATH or "\0" in folder or parts.is_absolute() or ".." in parts.parts:
            where = self.path(MODULES)
            raise TeacherError.expected("a subfolder", repr(folder[:60]), where="path", path=where, code="outside")
        return folder

    def read_pooling(self, folder: str, dim: int) -> tuple[tuple[str, ...], bool]:
        file = f"{folder}/config.json"
        config = self.read_object(file, required=True)
        modes = config.get("pooling_mode") or [mode for old, mode in _OLD_NAMES.items() if config.get(old)] or "mean"
        poolings = (*modes,) if isinstance(modes, list) else (modes,)
        for mode in poolings:
            if not isinstance(mode, str) or mode not in POOLINGS:
                raise TeacherError.unknown("pooling", str(mode), POOLINGS)
        stated = config.get("embedding_dimension", config.get("word_embedding_dimension", dim))
        if stated != dim:
            raise TeacherError.expected(f"{dim} dimensions", repr(stated), where="pooling", path=self.path(file))
        return poolings, bool(config.get("include_prompt", True))

    def read_dense(self, folder: str, columns: int) -> list[nn.Module]:
        file = f"{folder}/config.json"
        config = self.read_object(file, required=True)
        n_in, n_out = config.get("in_features"), config.get("out_features")
        if n_in != columns or type(n_out) is not int or not 0 < n_out <= _MAX_DIM:
            got = f"{n_in!r} to {n_out!r}"
            raise TeacherError.expected(f"{columns} features to a number", got, where="Dense", path=self.path(file))
        if config.get("use_residual") or config.get("module_input_name", "sentence_embedding") != "sentence_embedding":
            raise TeacherError.expected("Dense of the sentence vector alone", "another", path=self.path(file))
        activation = str(config.get("activation_function", "torch.nn.modules.activation.Tanh"))
        chosen = activation.rpartition(".")[2]
        if chosen not in _ACTIVATIONS or not activation.startswith("torch.nn."):
            raise TeacherError.unknown("activation", activation, _ACTIVATIONS)
        linear = nn.Linear(columns, n_out, bias=bool(config.get("bias", True)), device="meta")  # memory for none yet
        self._load(linear, folder)
        return [linear, getattr(nn, chosen)()]

    def _load(self, linear: nn.Linear, folder: str) -> None:
        file = f"{folder}/model.safetensors"
        weights = self._read_weights(file, f"{folder}/pytorch_model.bin")
        expected = {name: tuple(tensor.shape) for name, tensor in linear.state_dict().items()}
        given = {name.removeprefix("linear."): tensor.float() for name, tensor in weights.items()}
        if {name: tuple(tensor.shape) for name, tensor in given.items()} != expected:
            got = ", ".join(f"{name} {tuple(tensor.shape)}" for name, tensor in given.items())
            raise TeacherError.expected(f"{expected}", got, where="Dense", path=self.path(file))
        if not all(bool(torch.isfinite(tensor).all()) for tensor in given.values()):
            raise TeacherError.expected("finite weights", "NaN or infinity", where="Dense", path=self.path(file))
        linear.load_state_dict(given, assign=True)

    def _read_weights(self, safe: str, pickled: str) -> dict[str, Tensor]:
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        path = self.fetch(safe)
        if path is None and self.unsafe and (path := self.fetch(pickled)) is not None:
            self.files.append(pickled)
            read = require("transformers", "distill", "A teacher").modeling_utils.load_state_dict
            return dict(read(str(path), weights_only=True))
        if path is None:
            raise TeacherError(
                f"Teacher {self.name} has no {safe}; pickled weights are read only with --unsafe-weights.", path=safe
            )
        self.files.append(safe)
        try:
            return dict(load_file(path))
        except (OSError, SafetensorError) as error:
            raise TeacherError(f"Teacher {self.name}: {path} cannot be read: {error}", path=path) from error

    def read_settings(self, chosen: str | None) -> dict[str, Any]:
        """Prompts and limits."""
        config, limits = self.read_object(CONFIG), self.read_object(LIMITS)
        prompts, default = config.get("prompts") or {}, config.get("default_prompt_name")
        if not isinstance(prompts, dict) or not all(isinstance(text, str) for text in prompts.values()):
            raise TeacherError.expected("texts by name", repr(prompts), where="prompts", path=self.path(CONFIG))
        default = default if chosen is None else None if chosen == NO_PROMPT else chosen
        if default is not None and default not in prompts:
            raise TeacherError.unknown("prompt", str(default), [*prompts, NO_PROMPT], where=f"teacher {self.name}")
        longest = limits.get("max_seq_length")
        if longest is not None and (not isinstance(longest, int) or longest < 1):
            where = "max_seq_length"
            raise TeacherError.expected("a positive number", repr(longest), where=where, path=self.path(LIMITS))
        prompt = prompts[default] if default is not None else ""
        lowercase = bool(limits.get("do_lower_case", False))
        return {"prompts": prompts, "prompt": prompt, "max_tokens": longest, "lowercase": lowercase}
