"""One table of all ratios: each benchmark records its own, benchmarks/all.py collects them."""

from __future__ import annotations

import json
import os
from pathlib import Path

PLACE = "STILLVEC_RATIOS"  # the file that ratios are appended to, if set


def record(what: str, ratio: float, ours: str, beside: str) -> None:
    """Record one ratio; more than 1 means that stillvec is better."""
    if place := os.environ.get(PLACE):
        with Path(place).open("a", encoding="utf-8") as stream:
            stream.write(json.dumps({"what": what, "ratio": ratio, "ours": ours, "beside": beside}) + "\n")


def table(place: Path) -> str:
    """The recorded ratios as a Markdown table; empty if there are none."""
    lines = place.read_text(encoding="utf-8").splitlines() if place.exists() else []
    rows = [json.loads(line) for line in lines]
    cells = [f"| {row['what']} | {row['ours']} | {row['beside']} | **{row['ratio']:.2f}** |" for row in rows]
    return "\n".join(["| what | stillvec | compared with | ratio |", "|---|---|---|---|", *cells]) if rows else ""
