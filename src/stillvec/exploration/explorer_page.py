"""The explorer page: one HTML file with its style and script; with its data inside, it needs no server."""

import html
import json
from typing import Any

from stillvec import __version__
from stillvec.report.web_page import fill_template, join_assets, read_asset

SCRIPTS = ("source.js", "map.js", "state.js", "words.js", "axes.js", "map_view.js", "page.js")  # joined in this order


def build_live_page() -> tuple[str, str]:
    """The page that queries a server, and its content security policy."""
    return _build_page("", "'self'")


def build_export_page(data: dict[str, Any]) -> str:
    """The page with its data inside; it may connect to nothing."""
    # no "<" of a word may end the element; JSON reads \u003c as the same character
    text = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    return _build_page(f'<script type="application/json" id="data">{text}</script>\n', "'none'")[0]


def _build_page(data: str, connect: str) -> tuple[str, str]:
    parts, policy = join_assets(__package__, "style.css", SCRIPTS, connect)
    in_page = policy.replace("; frame-ancestors 'none'", "")  # which is valid in a header only
    parts |= {"policy": html.escape(in_page), "version": __version__, "data": data}
    return fill_template(read_asset(__package__, "page.html"), parts), policy
