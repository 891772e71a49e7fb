"""Tables of teachers that `adapt --step tune` tuned: with roles (paper 11), on other domains (01), on Reuters (10).

    python recipes/tuned_teachers.py joint|domains-tuned|multilabel NAME=FOLDER...
    python recipes/tuned_teachers.py best NAME=FOLDER...

A FOLDER is what `adapt` wrote, of which `adaptation.json` is read; a NAME that is given several times is a row with the
mean over its folders, and the least and the most of them in brackets. `best` prints the folder whose score on
development items is the highest.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scores import argument_parser, print_header, print_row, split_cells

HEADERS = {
    "joint": "| trained on | seeds | SNLI | HANS, entailed | HANS, not entailed | Comparisons | roles |",
    "multilabel": "| teacher | seeds | development | test |",
    "domains-tuned": "| tuned | seeds | wikigold, development | ai | literature | music | politics | science | mean |",
}
DOMAINS = ("ai", "literature", "music", "politics", "science")


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("table", choices=[*HEADERS, "best"])
    parser.add_argument("folders", nargs="+", metavar="NAME=FOLDER")
    options = parser.parse_args()
    groups: dict[str, list[dict[str, Any]]] = {}
    quality: dict[str, float] = {}
    for pair in options.folders:
        name, _, folder = pair.partition("=")
        content = json.loads((Path(folder) / "adaptation.json").read_text("utf-8"))
        groups.setdefault(name, []).append(content["adapted"][-1]["facts"])
        quality[folder] = content["adapted"][-1]["facts"]["dev"]
    if options.table == "best":
        print(max(quality, key=lambda folder: quality[folder]))
        return
    print_header(*split_cells(HEADERS[options.table]))
    for name, facts in groups.items():
        columns = zip(*(READERS[options.table](each) for each in facts), strict=True)
        print_row(name, str(len(facts)), *(show([*values]) for values in columns))


def read_joint(facts: dict[str, Any]) -> list[float]:
    hans = {entailed: [v for k, v in facts["hans"].items() if k[1:3] == f"{entailed}_"] for entailed in "en"}
    scores = [facts["snli.test"]["accuracy"], *(float(np.mean(hans[entailed])) for entailed in "en")]
    return [*scores, facts["comparisons"]["accuracy"], facts.get("auxiliary", float("nan"))]


def read_multilabel(facts: dict[str, Any]) -> list[float]:
    return [facts["dev"], facts["test"]]


def read_domains(facts: dict[str, Any]) -> list[float]:
    scores = [facts[f"crossner-{name}.test"] for name in DOMAINS]
    return [facts["dev"], *scores, float(np.mean(scores))]


def show(values: Sequence[float]) -> str:
    if np.isnan(values).any():
        return ""
    spread = f" ({100 * min(values):.1f} to {100 * max(values):.1f})" if len(values) > 1 else ""
    return f"{100 * float(np.mean(values)):.1f}{spread}"


READERS = {"joint": read_joint, "multilabel": read_multilabel, "domains-tuned": read_domains}

if __name__ == "__main__":
    main()
