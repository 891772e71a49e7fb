"""GGUF files (llama.cpp): weights and tokenizer in one file, loaded into an ordinary model of `transformers`."""

from pathlib import Path
from typing import Any

from stillvec.errors import TeacherError
from stillvec.registry import require


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
