"""stillvec combine A B ...: one space of several."""

from __future__ import annotations

import argparse
import dataclasses
from typing import Any

from stillvec.cli.console import note
from stillvec.cli.evaluate_command import unique_names
from stillvec.cli.list_action import List
from stillvec.combination import COMBINERS, Combiner
from stillvec.files import check_replaceable
from stillvec.formats import load, write_folder
from stillvec.registry import create


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
    facts = [{"name": name} | space for name, space in zip(names, made.provenance["combined"], strict=True)]
    write_folder(made, options.out, describe(method) | {"combined": facts})
    shared = set.intersection(*(set(space.words) for space in spaces))
    common = f"{len(spaces)} spaces with {len(shared):,} words in common"
    note(f"{options.out}: {len(made):,} words x {made.dim} from {common}")
    return 0


def describe(method: Combiner) -> dict[str, Any]:
    name = next(name for name in COMBINERS if COMBINERS[name] is type(method))
    return {"method": name, "settings": dataclasses.asdict(method)}  # type: ignore[call-overload]
