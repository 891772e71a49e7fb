"""GGUF files (llama.cpp's): weights and tokenizer in one, unpacked into an ordinary model of `transformers`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from stillvec.errors import TeacherError
from stillvec.registry import require


def gguf_file(source: str) -> Path | None:
    """The GGUF file that `source` is, or that its folder holds instead of a config.json."""
    path = Path(source)
    if path.is_file() and path.suffix == ".gguf":
        return path
    if not path.is_dir() or (path / "config.json").is_file():
        return None
    files = sorted(path.glob("*.gguf"))
    if len(files) > 1:
        raise TeacherError(f"The folder {source} holds {len(files)} GGUF files; name one of them, such as {files[0]}.")
    return files[0] if files else None


def gguf_options(file: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """What `from_pretrained` of the tokenizer and of the model is told, beside the file's folder.

    Newer `transformers` leave the weights packed where they find kernels for that; we want them plain everywhere.
    """
    for package in ("gguf", "accelerate"):
        require(package, "gguf", "A teacher in a GGUF file")
    config = getattr(require("transformers", "distill", "A teacher"), "GgufConfig", None)
    named = {"gguf_file": file.name}
    return named, named if config is None else named | {"quantization_config": config(dequantize=True)}
