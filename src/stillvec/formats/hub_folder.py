"""Vectors on the Hugging Face Hub as a local folder: only the files that a reader of vectors uses are downloaded."""

import os
import re
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from stillvec.formats.packaged_vectors import find_packaged
from stillvec.formats.static_embeddings import MODEL2VEC, SENTENCE_TRANSFORMERS
from stillvec.hub import HubAddress, download, is_address, parse_address

_MANIFEST, _STATISTICS = "manifest.json", "statistics.safetensors"
_STILLVEC = re.compile(r"(manifest\.json|vocabulary\.tsv|README\.md|(vectors|subwords|model)\.safetensors)")
_STATIC = re.compile(r"(.*\.json|(.*/)?model\.safetensors)")
_DESCRIPTION = re.compile(r"(config|modules)\.json")
_OTHERS = re.compile(r"(meta\.json|config\.cfg|vocab/.*|[^/]*\.tsv)")  # spaCy and the projector


def local_path(path: str | os.PathLike[str], *, statistics: bool = False) -> Path:
    """The path itself, the folder of packaged vectors, or where an address `hf://...` was downloaded to.

    `statistics` are large and needed only to merge or to add text.
    """
    if not is_address(path):
        return find_packaged(path) or Path(path)
    address = parse_address(path)
    folder = download(address, partial(_choose_first, address, statistics=statistics)) / address.place
    if folder.is_dir() and not (folder / _MANIFEST).is_file():
        is_static = any(format.recognize(folder, b"") for format in (MODEL2VEC, SENTENCE_TRANSFORMERS))
        download(address, partial(_match, address, _STATIC if is_static else _OTHERS))
    return folder


def _choose_first(address: HubAddress, names: Iterable[str], *, statistics: bool) -> list[str]:
    """A file, all of a stillvec folder, or what describes a folder of another format."""
    everything = [*names]
    if address.place in everything:
        return [address.place]
    top = f"{address.place}/" if address.place else ""
    if f"{top}{_MANIFEST}" not in everything:
        return _match(address, _DESCRIPTION, everything) or _match(address, _OTHERS, everything)
    extra = [name for name in everything if statistics and name == f"{top}{_STATISTICS}"]
    return _match(address, _STILLVEC, everything) + extra


def _match(address: HubAddress, pattern: re.Pattern[str], names: Iterable[str]) -> list[str]:
    top = f"{address.place}/" if address.place else ""
    return [name for name in names if name.startswith(top) and pattern.fullmatch(name[len(top) :])]
