"""Loads a teacher: anything that `AutoModel` loads, a GGUF file, or a folder of character models (`character_lstm.py`).

Plain encoders are read without `transformers` (`encoder_folder.py`), whose import takes most of the time.
Only safetensors are read and no code of the model is run, unless the user asks for it.
"""

import dataclasses
import difflib
import importlib.util
import json
import re
import sys
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, nullcontext, redirect_stderr
from io import StringIO
from pathlib import Path
from typing import Any

import torch
from torch import nn

from stillvec.errors import TeacherError, is_out_of_memory
from stillvec.hub import is_address, is_reachable, parse_address
from stillvec.memory import require_memory
from stillvec.registry import require
from stillvec.teachers import PACKAGED
from stillvec.teachers.bos_token import choose_bos_token
from stillvec.teachers.character_lstm import is_character_model, load_character_lstm
from stillvec.teachers.device import LOAD_DTYPES, initialize_gpu, place_model, resolve_device, resolve_precision
from stillvec.teachers.digest import check_finite, digest_teacher, join_digests
from stillvec.teachers.encoder_folder import read_encoder
from stillvec.teachers.mpnet import use_fused_attention
from stillvec.teachers.precision_choice import AGREEMENT, computes_bf16, try_bf16
from stillvec.teachers.rust_panic import raise_panics
from stillvec.teachers.sentence_head import SentenceHead
from stillvec.teachers.sentence_modules import make_fetcher, read_sentence_head
from stillvec.teachers.sequence_packing import TRIAL_TOKENS, detect_packing
from stillvec.teachers.subword_tokenizer import SubwordTokenizer
from stillvec.teachers.teacher import Teacher

_NO_OFFSETS = "Teacher {} has no fast tokenizer (tokenizer.json); only those report character offsets."
_KNOWN_ERRORS = {  # part of the message of transformers → ours
    "backend tokenizer": _NO_OFFSETS,
    "ignore_mismatched_sizes": "The weights of teacher {} do not have the shapes that its config.json specifies.",
}
_LAYERS = ("num_hidden_layers", "num_layers", "n_layers", "n_layer")  # in config.json
_MAX_LAYERS = 1000
_MODELS = "transformers.modeling_utils"
_MODELS_BYTES = 112 << 20  # of this module and what it imports, in memory
_MAX_TOKEN = 1 << 24
_MAX_WINDOW = 8192  # tokens of a whole text
WINDOW = 512  # tokens; longer windows cost memory and do not improve word vectors


def load_teacher(
    name: str = "minilm",
    *,
    device: str = "auto",
    precision: str = "auto",
    prompt: str | None = None,
    unsafe_weights: bool = False,
    remote_code: bool = False,
) -> Teacher:
    """Load a teacher.

    name: a folder, a GGUF file, a name on the Hugging Face Hub, or "minilm", which comes as a package (a folder of that
        name is "./minilm").
    device: "auto", "cpu" or "cuda".
    precision: "auto" is bf16 on a GPU and on a CPU that computes in it, if the states agree with fp32, else fp32;
        "int8" is dynamic quantization, for CPUs.
    prompt: the name of a prompt of its sentence-transformers folder, which is put before every text, or "off"
        (default: the folder's default prompt, if it names one).
    unsafe_weights: also read pickled weights, which can execute code.
    remote_code: run code that comes with the model.
    """
    torch_device = resolve_device(device)
    resolved = resolve_precision(precision, torch_device)
    source = _source(name)
    name = source if is_address(name) else name
    if is_character_model(source):
        return load_character_lstm(source, name, torch_device, resolved)
    agreement = None
    with initialize_gpu(torch_device):
        model, tokenizer = _load(source, name, LOAD_DTYPES[resolved], unsafe_weights, remote_code)
        if precision == "auto" and torch_device.type == "cpu" and computes_bf16():
            agreement = try_bf16(model, tokenizer)
            resolved = "bf16" if agreement is not None and agreement >= AGREEMENT else resolved
            if agreement is not None and resolved != "bf16":  # rounding cannot be undone
                model, tokenizer = _load(source, name, LOAD_DTYPES[resolved], unsafe_weights, remote_code)
        fetch, dim = make_fetcher(source), _hidden_size(model)
        head = read_sentence_head(fetch, name, dim, prompt=prompt, unsafe=unsafe_weights)
    teacher = build_teacher(model, tokenizer, name, torch_device, resolved, head)
    return dataclasses.replace(teacher, agreement=agreement)


def load_tokenizer(name: str = "minilm") -> SubwordTokenizer:
    """The tokenizer of a teacher, from its folder without loading the model if that is possible.

    name: as for `load_teacher`.
    """
    folder = locate_folder(name)
    if folder is None or not (folder / "tokenizer.json").is_file() or is_character_model(str(folder)):
        return load_teacher(name, device="cpu").tokenizer
    from tokenizers import Tokenizer

    try:
        with raise_panics():
            return SubwordTokenizer(Tokenizer.from_file(str(folder / "tokenizer.json")))
    except Exception as error:  # what the package raises
        raise TeacherError(f"The tokenizer of teacher {name} cannot be read ({error}); download it again.") from None


def build_teacher(
    model: Any, hf_tokenizer: Any, name: str, device: torch.device, precision: str, head: SentenceHead | None = None
) -> Teacher:
    """Make a teacher of a model and a tokenizer of `transformers`, with what follows the model."""
    if getattr(model.config, "is_encoder_decoder", False):
        model = model.get_encoder()
    model.eval().requires_grad_(False)
    digest, sampled_digest = digest_teacher(str(model.config.model_type), hf_tokenizer.get_vocab(), model)
    if head is not None and not head.is_plain:  # a plain one changes no sums that are added up
        digest, sampled_digest = (join_digests(part, head.digest) for part in (digest, sampled_digest))
    config = model.config.get_text_config()
    if getattr(config, "use_cache", False):
        config.use_cache = False  # no text is generated: a decoder need not cache keys and values
    model = place_model(model, device, precision)
    tokenizer = SubwordTokenizer(_backend(hf_tokenizer, name))
    bos = choose_bos_token(model, hf_tokenizer, tokenizer)
    prompt = "" if head is None else head.prompt
    if bos or prompt:
        tokenizer = SubwordTokenizer(_backend(hf_tokenizer, name), bos=bos, prompt=prompt)
    pads = (hf_tokenizer.pad_token_id, getattr(model.config, "pad_token_id", None))
    pad = next((token for token in pads if isinstance(token, int) and token >= 0), 0)
    if device.type == "cuda":
        use_fused_attention(model)
    longest = _longest_input(model, hf_tokenizer)
    window = min(WINDOW, longest)
    can_pack = device.type == "cuda" and window >= TRIAL_TOKENS  # on a GPU, a position out of range ends the process
    return Teacher(
        name=name,
        model=model,
        tokenizer=tokenizer,
        dim=_hidden_size(model),
        depth=int(config.num_hidden_layers),
        window=window,
        pad=pad,
        device=device,
        precision=precision,
        digest=digest,
        sampled_digest=sampled_digest,
        packing=detect_packing(model, tokenizer, pad, device) if can_pack else None,
        head=None if head is None else head.to(device).limit(longest),
    )


def locate_folder(name: str) -> Path | None:
    """The folder that a teacher is loaded from; None for a single file or a name on the hub."""
    source = Path(_source(name))
    return source if source.is_dir() else None


def _source(name: str) -> str:
    if name in PACKAGED:  # also where there is a folder of that name: it would silently replace the teacher
        package, folder = PACKAGED[name]
        spec = importlib.util.find_spec(package)
        if spec is None or not spec.submodule_search_locations:
            require(package, "packaged", f"The packaged teacher {name!r}")
        else:
            return str(Path(spec.submodule_search_locations[0]) / folder)
    if is_address(name):
        address = parse_address(name)
        if address.revision or address.place:
            raise TeacherError.expected("a teacher as OWNER/NAME", repr(name), code="bad-address")
        return address.name
    path = Path(name)
    if path.exists() and not (path / "config.json").is_file() and find_gguf(name) is None:
        expected = f"Expected a teacher (a folder with config.json or a GGUF file), got {name}."
        raise TeacherError(expected, code="not-a-teacher", path=name)
    looks_local = name.startswith((".", "/", "~")) or name.count("/") > 1
    if looks_local and not path.exists():
        raise TeacherError.not_found(name, "a teacher", cure="give a model's folder, a name on the hub, or 'minilm'")
    return name


def _check_config(source: str) -> None:
    """Refuse sizes that would take hours and all memory before the weights are even looked at."""
    try:
        config = json.loads((Path(source) / "config.json").read_bytes())
    except (OSError, ValueError, RecursionError):
        return  # transformers says why
    for key in _LAYERS if isinstance(config, dict) else ():
        if isinstance(config.get(key), int) and config[key] > _MAX_LAYERS:
            place = Path(source) / "config.json"
            raise TeacherError.expected(f"at most {_MAX_LAYERS:,} layers", f"{config[key]:,}", where=key, path=place)


def _load(source: str, name: str, dtype: torch.dtype, unsafe: bool, remote: bool) -> tuple[Any, Any]:
    _check_config(source)
    gguf = find_gguf(source)
    files = [gguf] if gguf else [*Path(source).glob("*.safetensors")]
    n_bytes = sum(file.stat().st_size for file in files)
    require_memory(n_bytes, f"Loading the teacher {name}", "take a smaller one")
    plain = None if gguf else read_encoder(Path(source), dtype)
    if plain is None:
        code = 0 if _MODELS in sys.modules else _MODELS_BYTES
        require_memory(code + n_bytes, f"Loading the teacher {name}", "take a smaller one")
        model, tokenizer, missing = _load_by_transformers(source, name, dtype, unsafe, remote)
        _check_weights(name, model, missing)
        _clear_weights(model, missing)
    else:
        model, tokenizer = plain
    check_finite(name, model)
    if max(tokenizer.get_vocab().values(), default=0) > _MAX_TOKEN:  # the tokenizer would fill the memory
        raise TeacherError.expected(f"token ids up to {_MAX_TOKEN:,}", "larger ones", where=f"tokenizer of {name}")
    if not set(tokenizer.get_vocab()) - set(tokenizer.all_special_tokens):  # without its files, it has only these
        raise TeacherError(f"The tokenizer of teacher {name} has no vocabulary; is tokenizer.json missing?")
    return model, tokenizer


def _load_by_transformers(
    source: str, name: str, dtype: torch.dtype, unsafe: bool, remote: bool
) -> tuple[Any, Any, Collection[str]]:
    """Model, tokenizer, and the names of the weights that the files lack."""
    transformers = require("transformers", "distill", "A teacher")
    gguf = find_gguf(source)
    tokenizer_options, model_options = make_gguf_options(gguf) if gguf else ({}, {})
    offline = not Path(source).exists() and not _is_on_hub(source)
    folder = str(gguf.parent) if gguf else source
    with silence_transformers(), redirect_stderr(StringIO()) if gguf else nullcontext():  # its bar has no other switch
        try:
            options = {"trust_remote_code": remote, "local_files_only": offline, **tokenizer_options}
            with raise_panics():
                tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **options)
            options |= {"use_safetensors": None if unsafe else True, **model_options}
            options["attn_implementation"] = None  # the default: config.json may name a kernel on the hub
            model, report = transformers.AutoModel.from_pretrained(
                folder, dtype=dtype, output_loading_info=True, **options
            )
        except Exception as error:  # damaged files make transformers raise almost anything
            if is_out_of_memory(error):
                raise MemoryError from error
            raise TeacherError(_reason(name, source, error, unsafe, remote)) from error
    return model, tokenizer, report["missing_keys"]


def _is_on_hub(name: str) -> bool:
    """Whether the hub can be asked for a model; one request, since `transformers` would retry for most of a minute."""
    try:
        return is_reachable(name, TeacherError)
    except TeacherError as error:
        close = difflib.get_close_matches(name, PACKAGED, n=1)
        if error.code != "not-found" or not close:
            raise
        raise TeacherError.unknown("teacher", name, PACKAGED) from error


def _check_weights(name: str, model: Any, missing: Iterable[str]) -> None:
    """`transformers` fills missing weights with random numbers, which is harmless only in parts that we never run."""
    unused = ("pooler.", "decoder.") if model.config.is_encoder_decoder else ("pooler.",)
    absent = sorted(label for label in missing if not label.startswith(unused))
    if absent:
        raise TeacherError(
            f"Teacher {name} lacks {len(absent)} tensors that its config.json specifies, {absent[0]!r} first; "
            "download the model again.",
            code="missing-weights",
        )


def _clear_weights(model: Any, missing: Iterable[str]) -> None:
    """Replace the random numbers of parts that we never run by zeros, or the digest of each load would be another."""
    weights = model.state_dict()
    for label in missing:
        weights[label].zero_()


def _reason(name: str, source: str, error: Exception, unsafe: bool, remote: bool) -> str:
    text = " ".join(str(error).split())
    first = re.split(r"(?<=[.!?]) ", text)[0] if " " in text else f"{type(error).__name__} {text}"
    folder = Path(source)
    if "trust_remote_code" in text and not remote:
        return f"Teacher {name} needs code of its own, which is run only with --remote-code."
    for phrase, sentence in _KNOWN_ERRORS.items():
        if phrase in text:
            return sentence.format(name)
    safe = any(folder.glob("*.safetensors")) or find_gguf(source) is not None
    pickled = folder.is_dir() and any(folder.glob("*.bin"))
    if not unsafe and not safe and (pickled or "safetensors" in text):
        return f"Teacher {name} has no safetensors weights; pickled weights are read only with --unsafe-weights."
    if not folder.exists():
        return f"Teacher {name} is not a local folder and could not be downloaded from the Hugging Face Hub: {first}"
    return f"Teacher {name} could not be loaded: {first}"


def _backend(tokenizer: Any, name: str) -> Any:
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        raise TeacherError(_NO_OFFSETS.format(name))
    unknown = getattr(tokenizer, "unk_token", None)
    if unknown is not None and backend.token_to_id(unknown) is None:  # transformers would ask for it for ever
        where = f"unk_token of teacher {name}"
        raise TeacherError.expected("a token of the vocabulary", repr(unknown), where=where)
    return backend


def _hidden_size(model: Any) -> int:
    return int(model.config.get_text_config().hidden_size)


def _longest_input(model: Any, tokenizer: Any) -> int:
    """The longest input, special tokens included; RoBERTa and MPNet leave out positions up to the padding index."""
    config = model.config.get_text_config()
    named = (getattr(config, name, None) for name in ("max_position_embeddings", "n_positions"))
    limits = [_MAX_WINDOW, *(value for value in named if isinstance(value, int) and value > 0)]
    for label, module in model.named_modules():
        if label.endswith("position_embeddings") and isinstance(module, nn.Embedding):
            skipped = 0 if module.padding_idx is None else module.padding_idx + 1
            limits.append(module.num_embeddings - skipped)
    longest = tokenizer.model_max_length
    if isinstance(longest, int | float) and 0 < longest < 10**6:
        limits.append(int(longest))
    return min(limits)


def find_gguf(source: str) -> Path | None:
    """The GGUF file at `source`, or the one in its folder if that has no config.json."""
    path = Path(source)
    if path.is_file() and path.suffix == ".gguf":
        return path
    if not path.is_dir() or (path / "config.json").is_file():
        return None
    files = sorted(path.glob("*.gguf"))
    if len(files) > 1:
        raise TeacherError(f"Folder {source} holds {len(files)} GGUF files; name one of them, such as {files[0]}.")
    return files[0] if files else None


def make_gguf_options(file: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Arguments of `from_pretrained` for the tokenizer and for the model.

    Newer versions of `transformers` leave the weights packed if they find kernels for that; we always dequantize.
    """
    for package in ("gguf", "accelerate"):
        require(package, "gguf", "A teacher in a GGUF file")
    config = getattr(require("transformers", "distill", "A teacher"), "GgufConfig", None)
    named = {"gguf_file": file.name}
    return named, named if config is None else named | {"quantization_config": config(dequantize=True)}


@contextmanager
def silence_transformers() -> Iterator[None]:
    """Hide the progress bars and load reports of `transformers`; our own errors say what failed."""
    logger = require("transformers", "distill", "A teacher").utils.logging
    level, bars = logger.get_verbosity(), logger.is_progress_bar_enabled()
    logger.set_verbosity_error()
    logger.disable_progress_bar()
    try:
        yield
    finally:
        logger.set_verbosity(level)
        if bars:
            logger.enable_progress_bar()
