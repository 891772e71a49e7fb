"""The page: one HTML file with its style and script in it; with data in it too, it needs no server."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import numpy as np

from stillvec import __version__
from stillvec.errors import CallError
from stillvec.evaluate.evaluating import Step
from stillvec.explore.explorer import Explorer
from stillvec.explore.map import WordMap, mapping
from stillvec.report.markup import plain
from stillvec.report.page import asset
from stillvec.vectors import WordVectors

SCRIPTS = ("source.js", "map.js", "state.js", "words.js", "axes.js", "mapped.js", "page.js")  # joined in this order


def live_page() -> tuple[str, str]:
    """The page that asks a server, and what its browser may do."""
    return _page("", "connect-src 'self'")


def exported_page(data: dict[str, Any]) -> str:
    """The page with its data inside; it may connect to nothing."""
    # no "<" of a word may end the element; JSON reads \u003c as the same letter
    told = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    return _page(f'<script type="application/json" id="data">{told}</script>\n', "connect-src 'none'")[0]


def exporting(explorer: Explorer, most: int = 5000, map_too: bool = True) -> Iterator[Step | dict[str, Any]]:
    """Signs of life, then the data of a page: the most frequent words, vectors as bytes, the map, the relations."""
    if most < 10:
        raise CallError(f"At least 10 words are written, and {most} were asked for.")
    data = explorer.about() | {"corpus": False, "data": [], "maps": {}, "relations": {}, "parts": {}}
    for (name, vectors), told in zip(explorer.sets.items(), data["sets"], strict=True):
        words = [plain(word) for word in vectors.words[:most]]
        told["whole"], told["words"] = told["words"], len(words)
        data["data"].append(_packed(vectors, words))
        for state in mapping(vectors, most) if map_too else ():
            if isinstance(state, WordMap):
                data["maps"][name] = explorer.packed_map(name, state) | {"words": None}  # the words of the set
            else:
                yield state
        if explorer.relations is not None:
            data["relations"] |= {word: found for word in words if (found := explorer.related(word))}
            data["parts"] |= {word: part for word in words if (part := explorer.relations.part(word))}
    yield data


def _packed(vectors: WordVectors, words: list[str]) -> dict[str, Any]:
    """Rows as bytes, each scaled to its largest number: lengths do not matter to a cosine, and are told apart."""
    rows = np.asarray(vectors.matrix[: len(words)], np.float32)
    largest = np.abs(rows).max(axis=1, keepdims=True, initial=0)
    quantised = np.round(rows / np.where(largest > 0, largest, 1) * 127).astype(np.int8)
    norms = np.linalg.norm(rows, axis=1).astype("<f4")
    encoded = {name: base64.b64encode(array.tobytes()).decode() for name, array in (("q", quantised), ("n", norms))}
    counts = vectors.vocabulary.counts[: len(words)].tolist()
    return {"words": words, "counts": counts, "lowercase": vectors.vocabulary.lowercase, **encoded}


def _page(data: str, connect: str) -> tuple[str, str]:
    folder = files(__package__)
    style = asset("colours.css") + folder.joinpath("style.css").read_text("utf-8")
    script = "\n".join(folder.joinpath(name).read_text("utf-8") for name in SCRIPTS)
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; {connect}; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    in_page = policy.replace("; frame-ancestors 'none'", "")  # which only a header may say
    page = folder.joinpath("page.html").read_text("utf-8")
    parts = {"policy": html.escape(in_page), "version": __version__, "style": style, "data": data, "script": script}
    return re.sub(
        r"\{\{(\w+)\}\}", lambda slot: parts[slot[1]], page
    ), policy  # in one go: a word may be called {{script}}


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
