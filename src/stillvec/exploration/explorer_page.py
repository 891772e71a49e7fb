"""The page: one HTML file with its style and script in it; with data in it too, it needs no server."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from importlib.resources import files
from typing import Any

from stillvec import __version__
from stillvec.report.report_page import asset

SCRIPTS = ("source.js", "map.js", "state.js", "words.js", "axes.js", "mapped.js", "page.js")  # joined in this order


def live_page() -> tuple[str, str]:
    """The page that asks a server, and what its browser may do."""
    return _page("", "connect-src 'self'")


def exported_page(data: dict[str, Any]) -> str:
    """The page with its data inside; it may connect to nothing."""
    # no "<" of a word may end the element; JSON reads \u003c as the same letter
    told = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    return _page(f'<script type="application/json" id="data">{told}</script>\n', "connect-src 'none'")[0]


def _page(data: str, connect: str) -> tuple[str, str]:
    folder = files(__package__)
    style = asset("colours.css") + folder.joinpath("style.css").read_text("utf-8")
    script = "\n".join([asset("elements.js"), *(folder.joinpath(name).read_text("utf-8") for name in SCRIPTS)])
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
