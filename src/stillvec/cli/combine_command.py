"""stillvec combine A B ...: one space of several."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path
from typing import Any

from stillvec.cli.console import note
from stillvec.cli.evaluate_command import unique_names
from stillvec.cli.list_action import List
from stillvec.combination import COMBINERS, Combiner
from stillvec.files import check_replaceable
from stillvec.formats import load, read_manifest, write_folder
from stillvec.registry import create
from stillvec.vectors import WordVectors

_OF_EACH = ("method", "settings", "teacher", "corpus", "refined", "combined")  # what is kept of a space


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "vectors", nargs="+", metavar="VECTORS", help="folders of vectors, or files in any format we read"
    )
    parser.add_argument(
        "--method",
        required=True,
        metavar="NAME",
        help=f"of {', '.join(COMBINERS)}; settings stand after a colon, as in svd:dim=100,words=intersection",
    )
    parser.add_argument("--methods", action=List, const=COMBINERS, help="tell all methods with their settings, and end")
    parser.add_argument("--out", required=True, metavar="DIR", help="the folder to write")


def run(options: argparse.Namespace) -> int:
    check_replaceable(options.out, "manifest.json")
    method = create(COMBINERS, options.method)
    names = unique_names(options.vectors)
    spaces = [load(path) for path in options.vectors]
    made = method(*spaces)
    facts = [_facts(*each) for each in zip(names, options.vectors, spaces, strict=True)]
    write_folder(made, options.out, describe(method) | {"combined": facts})
    shared = set.intersection(*(set(space.words) for space in spaces))
    common = f"{len(spaces)} spaces with {len(shared):,} words in common"
    note(f"{options.out}: {len(made):,} words x {made.dim} from {common}")
    return 0


def describe(method: Combiner) -> dict[str, Any]:
    name = next(name for name in COMBINERS if COMBINERS[name] is type(method))
    return {"method": name, "settings": dataclasses.asdict(method)}  # type: ignore[call-overload]


def _facts(name: str, path: str, space: WordVectors) -> dict[str, Any]:
    """What a space was, and how it was made if it says."""
    facts: dict[str, Any] = {"name": name, "words": len(space), "dim": space.dim}
    if Path(path).is_dir():
        manifest = read_manifest(path)
        facts |= {key: manifest[key] for key in _OF_EACH if key in manifest}
    return facts
