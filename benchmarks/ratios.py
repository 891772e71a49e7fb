"""One table of all ratios: each benchmark tells its own, benchmarks/all.py lays them side by side."""

from __future__ import annotations

import json
import os
from pathlib import Path

PLACE = "STILLVEC_RATIOS"  # a file to add a line to, if anyone wants them


def tell(what: str, ratio: float, ours: str, beside: str) -> None:
    """More than one is better than what stands beside."""
    if place := os.environ.get(PLACE):
        with Path(place).open("a", encoding="utf-8") as stream:
            stream.write(json.dumps({"what": what, "ratio": ratio, "ours": ours, "beside": beside}) + "\n")


def table(place: Path) -> str:
    """Markdown of all that was told there, and an empty text where nothing was."""
    lines = place.read_text(encoding="utf-8").splitlines() if place.exists() else []
    rows = [json.loads(line) for line in lines]
    cells = [f"| {row['what']} | {row['ours']} | {row['beside']} | **{row['ratio']:.2f}** |" for row in rows]
    return "\n".join(["| what | ours | beside | ratio |", "|---|---|---|---|", *cells]) if rows else ""
