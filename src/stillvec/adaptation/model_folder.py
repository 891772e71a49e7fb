"""The Hugging Face folder of a teacher: which of its files count, its weights by tensor, and our manifest in it.

Tensors are read and written one safetensors file after another, under their own names, so that what a step does not
change keeps its bytes, and heads that a teacher does not run stay where they are.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stillvec.errors import TeacherError
from stillvec.files import FolderLayout, digest, file_digest, read_object

if TYPE_CHECKING:
    from torch import Tensor

MANIFEST = "adaptation.json"
VERSION = 1
_KEPT = (".json", ".txt", ".model", ".jinja", ".spm")  # beside the weights: configuration and tokenizer
_WEIGHTS = ".safetensors"
_MODULES = "modules.json"
_PRUNED = "pruned"  # in the manifest: tensors whose zeros stay zero in later training


def list_files(folder: Path) -> list[str]:
    """The files of a teacher, relative to its folder: configuration, tokenizer, weights, sentence-transformers."""
    names = [file.name for file in folder.iterdir() if file.is_file() and file.suffix in (*_KEPT, _WEIGHTS)]
    for part in _list_modules(folder):
        names += [file.relative_to(folder).as_posix() for file in (folder / part).rglob("*") if file.is_file()]
    return sorted({*names} - {MANIFEST})


def list_weights(folder: Path) -> list[str]:
    """The safetensors files of the model itself."""
    names = [name for name in list_files(folder) if name.endswith(_WEIGHTS) and "/" not in name]
    index = read_object(folder / "model.safetensors.index.json").get("weight_map")
    used = {*index.values()} if isinstance(index, dict) else {"model.safetensors"}
    return [name for name in names if name in used] or names


def copy_rest(source: Path, target: Path) -> None:
    """Copy all files of a teacher but its weights."""
    weights = {*list_weights(source)}
    for name in list_files(source):
        if name not in weights:
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source / name, target / name)


def digest_model(folder: Path) -> str:
    """A digest of the files of a teacher."""
    return digest(f"{name} {file_digest(folder / name)}\n".encode() for name in list_files(folder))


def list_tensors(folder: Path) -> list[str]:
    """The names of all tensors."""
    from safetensors import SafetensorError, safe_open

    names: list[str] = []
    for name in list_weights(folder):
        try:
            with safe_open(folder / name, framework="pt") as file:
                names += file.keys()
        except (OSError, SafetensorError) as error:
            raise _unreadable(folder / name, error) from None
    return names


def read_weights(folder: Path) -> Iterator[tuple[str, dict[str, Tensor], dict[str, str]]]:
    """The name, tensors and metadata of each file of weights."""
    from safetensors import SafetensorError, safe_open

    for name in list_weights(folder):
        try:
            with safe_open(folder / name, framework="pt") as file:
                yield name, {key: file.get_tensor(key) for key in file.keys()}, file.metadata() or {}  # noqa: SIM118
        except (OSError, SafetensorError) as error:
            raise _unreadable(folder / name, error) from None


def _unreadable(path: Path, error: Exception) -> TeacherError:
    return TeacherError(f"{path} cannot be read: {error}.", path=path)


def write_weights(folder: Path, name: str, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
    from safetensors.torch import save_file

    path = folder / name
    path.touch()
    mode = path.stat().st_mode  # that of any new file; safetensors has its own
    with _report_write_errors(path):
        save_file(dict(tensors), path, metadata={"format": "pt", **metadata})
    path.chmod(mode)


@contextmanager
def _report_write_errors(path: Path) -> Iterator[None]:
    """A full disk is an error of safetensors that is no OSError."""
    from safetensors import SafetensorError

    try:
        yield
    except SafetensorError as error:
        raise TeacherError(f"Cannot write {path}: {error}.", path=path) from None


def write_model(model: Any, folder: Path, tokenizer: Any = None) -> None:
    """Write a model of transformers, with its tokenizer if the folder has none."""
    from stillvec.teachers.loader import silence_transformers

    for file in folder.glob("*.safetensors.index.json"):
        file.unlink()
    with silence_transformers(), _report_write_errors(folder):
        model.cpu().save_pretrained(folder)
        if tokenizer is not None:
            tokenizer.save_pretrained(folder)
    mode = (folder / "config.json").stat().st_mode
    for name in list_weights(folder):
        (folder / name).chmod(mode)


def is_model(folder: Path) -> bool:
    """Whether a folder has a model; that of `adapt new` has none before its first step."""
    return (folder / "config.json").is_file()


def read_adaptation(folder: Path) -> dict[str, Any]:
    """Our manifest of a folder; empty if it has none."""
    return read_object(folder / MANIFEST)


def list_pruned(folder: Path) -> list[str]:
    """Tensors whose zeros stay zero when the model is trained."""
    names = read_adaptation(folder).get(_PRUNED)
    return [str(name) for name in names] if isinstance(names, list) else []


def write_adaptation(folder: Path, facts: Mapping[str, Any]) -> None:
    """Write the manifest, with the names and checksums of all other files."""
    checksums = {name: file_digest(folder / name) for name in list_files(folder)}
    manifest = {"adaptation": VERSION, **facts, "checksums": checksums}
    text = json.dumps(manifest, indent=2, sort_keys=True, ensure_ascii=False, default=str)
    (folder / MANIFEST).write_text(text + "\n", "utf-8")


def make_layout(target: Path, *models: Path) -> FolderLayout:
    """What `adapt` writes to `target`: the files of these models, those that it wrote before, and usual ones."""
    usual = ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json")
    listed = [name for folder in models for name in list_files(folder)]
    before = read_adaptation(target).get("checksums")
    names = dict.fromkeys([*usual, *listed, *filter(_is_inside, before if isinstance(before, dict) else ())])
    return FolderLayout((MANIFEST, *names), _is_ours, describe=_describe)


def _is_ours(folder: Path) -> bool:
    return "adaptation" in read_adaptation(folder)


def _describe(folder: Path) -> str:
    steps = [str(step.get("step")) for step in read_adaptation(folder).get("adapted") or () if isinstance(step, dict)]
    return f"a teacher adapted by {', '.join(steps)}" if steps else "a teacher"


def _list_modules(folder: Path) -> list[str]:
    """The folders of the modules of a sentence-transformers model."""
    try:
        modules = json.loads((folder / _MODULES).read_bytes())
    except (OSError, ValueError, RecursionError):
        return []
    parts = (
        [str(part.get("path", "")) for part in modules if isinstance(part, dict)] if isinstance(modules, list) else []
    )
    return [part for part in parts if _is_inside(part) and (folder / part).is_dir()]


def _is_inside(name: str) -> bool:
    """Whether a relative path from a file stays in its folder."""
    return bool(name) and not Path(name).is_absolute() and ".." not in Path(name).parts
