"""The folder of a head, version 1; specified in docs/formats.md.

- `manifest.json`: version, head, settings, options, scores, digests, and checksums of the other files
- `head.safetensors`: the arrays of the head
- `labels.tsv`: a label per line
- `vectors/`: the vectors of words, a stillvec folder, so that the head predicts by itself
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from stillvec import __version__
from stillvec.errors import FormatError, UsageError
from stillvec.files import FolderLayout, atomic_folder, check_replaceable, file_digest, read_object
from stillvec.formats import load, write_folder
from stillvec.formats.format import damage_error, decode_text, read_versioned, require_files, verify_checksums
from stillvec.formats.stillvec_folder import HEAD_VERSION_KEY
from stillvec.formats.stillvec_folder import LAYOUT as VECTORS_LAYOUT
from stillvec.formats.tensors import map_tensors, write_tensors
from stillvec.heads import HEADS
from stillvec.heads.fitted_head import Head
from stillvec.input_checks import check_arguments
from stillvec.registry import settings_from

VERSION = 1
VECTORS = "vectors"
_MANIFEST, _ARRAYS, _LABELS = "manifest.json", "head.safetensors", "labels.tsv"
_KIND = "head"
_LARGEST = 1e12  # of the numbers of a head: products of larger ones overflow
_MOST = {"spans": 2, "longest": 1000}  # arrays of one number: spans of an item, primitives of a tag


def write_head(head: Head, path: str | os.PathLike[str], *, force: bool = False) -> None:
    """Write a head atomically."""
    check_replaceable(path, LAYOUT, force=force)
    with atomic_folder(Path(path), LAYOUT) as part:
        write_tensors(part / _ARRAYS, {name: np.ascontiguousarray(array) for name, array in head.arrays.items()})
        (part / _LABELS).write_text("".join(f"{label}\n" for label in head.labels), "utf-8")
        write_folder(head.vectors, part / VECTORS, head.vectors.provenance)
        files = sorted(file for file in part.rglob("*") if file.is_file())
        manifest = {
            **head.manifest,
            HEAD_VERSION_KEY: VERSION,
            "stillvec": __version__,
            "head": head.name,
            "settings": asdict(head.kind),
            "labels": len(head.labels),
            "checksums": {file.relative_to(part).as_posix(): file_digest(file) for file in files},
        }
        text = json.dumps(manifest, indent=2, sort_keys=True, ensure_ascii=False, default=str)
        (part / _MANIFEST).write_text(text + "\n", "utf-8")


def load_head(path: str | os.PathLike[str]) -> Head:
    """A fitted head, from the folder that `fit` wrote.

    Parameters
    ----------
    path: the folder.
    """
    check_arguments(load_head, locals())
    folder = Path(path)
    manifest = read_head_manifest(folder)
    require_files(folder, (_ARRAYS, _LABELS), _KIND)
    name, settings = str(manifest.get("head")), manifest.get("settings")
    try:
        kind = settings_from(HEADS[name], settings if isinstance(settings, dict) else {"settings": settings}, _MANIFEST)
    except (UsageError, TypeError) as error:
        raise damage_error(folder / _MANIFEST, _KIND, error) from None
    text = decode_text((folder / _LABELS).read_bytes(), folder / _LABELS)
    labels = text.split("\n")[:-1]
    if len(labels) != manifest.get("labels") or len({*labels}) != len(labels):
        what = f"{manifest.get('labels')} different labels, one per line"
        raise FormatError.expected(what, f"{len(labels)} lines", path=folder / _LABELS)
    arrays = map_tensors(folder / _ARRAYS)
    _check_numbers(arrays, len(labels), folder / _ARRAYS)
    _check_manifest(manifest, arrays, folder / _MANIFEST)
    vectors = load(folder / VECTORS, format="stillvec")
    head = Head(name, kind, vectors, labels, {key: np.asarray(array) for key, array in arrays.items()}, manifest)
    _try(head, folder / _ARRAYS)
    return head


def _check_numbers(arrays: Mapping[str, Any], n_labels: int, file: Path) -> None:
    for name, array in arrays.items():  # NaN is in no range
        if array.dtype.kind == "f" and array.size and not float(np.abs(array).max()) <= _LARGEST:
            raise damage_error(file, _KIND, f"numbers of {name!r} that are not finite, or larger than {_LARGEST:.0e}")
    if "examples" in arrays:
        n_examples = np.shape(arrays["examples"])[:1]
        if "texts" not in arrays or any(
            np.asarray(arrays.get(name)).shape != n_examples for name in ("labels", "text_ends")
        ):
            raise damage_error(file, _KIND, "not a label and a text of each example")
    if "n_labels" in arrays and arrays["n_labels"].tolist() != [n_labels]:  # as many votes would be counted
        raise damage_error(file, _KIND, f"not the {n_labels} labels of the head")
    for name, most in _MOST.items():
        if name in arrays and arrays[name].tolist() not in [[number] for number in range(1, most + 1)]:
            raise damage_error(file, _KIND, f"{name!r} is not a number from 1 to {most:,}")


def _check_manifest(manifest: Mapping[str, Any], arrays: Mapping[str, Any], file: Path) -> None:
    threshold, multilabel = manifest.get("threshold", 0.5), manifest.get("multilabel", False)
    if type(threshold) not in (int, float) or not 0 <= threshold <= 1 or type(multilabel) is not bool:
        raise damage_error(file, _KIND, f"threshold {threshold!r:.40}, multilabel {multilabel!r:.40}")
    sources = manifest.get("sources")
    items = sources if isinstance(sources, list) else []
    named = all(isinstance(item, dict) and "name" in item for item in items)
    if "widths" in arrays and not (named and len(items) == np.size(arrays["widths"])):
        raise damage_error(file, _KIND, f"no name of each source of its vectors: {sources!r:.40}")


def _try(head: Head, file: Path) -> None:
    """Refuse arrays that do not fit the vectors and labels."""
    try:
        head.predict([head.example])
    except (KeyError, ValueError, IndexError, TypeError, AttributeError) as error:
        raise damage_error(file, _KIND, f"arrays that do not fit: {error}") from None


def read_head_manifest(path: Path) -> dict[str, Any]:
    """The manifest of a head, its version checked."""
    return read_versioned(path, _KIND, HEAD_VERSION_KEY, VERSION, cure="make one with stillvec fit")


def is_head(folder: str | os.PathLike[str]) -> bool:
    """Whether a folder is that of a head, perhaps a damaged one."""
    return isinstance(read_object(Path(folder) / _MANIFEST).get(HEAD_VERSION_KEY), int)


def verify_head(path: Path) -> tuple[str, ...]:
    """Compare the files of a head with the checksums in its manifest; return the names of these files."""
    return verify_checksums(path, _KIND, read_head_manifest(path), LAYOUT.names)


def _describe(folder: Path) -> str:
    manifest = read_object(folder / _MANIFEST)
    return f"a head {manifest.get('head', '?')} of {manifest.get('labels', '?')} labels"


LAYOUT = FolderLayout(
    (_MANIFEST, _ARRAYS, _LABELS, *(f"{VECTORS}/{name}" for name in VECTORS_LAYOUT.names)),
    is_head,
    alone=False,
    describe=_describe,
)
