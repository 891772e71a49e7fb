"""The page /docs: what may be asked, to read and to try. The browser makes it of `/openapi.json` alone."""

from __future__ import annotations

import base64
import hashlib
import re
from functools import lru_cache
from importlib.resources import files

from fastapi.responses import HTMLResponse

from stillvec import __version__
from stillvec.report.report_page import asset

MANUAL = "/docs"


async def manual() -> HTMLResponse:
    """The same for every server; it tells nothing that a token guards."""
    page, policy = _page()
    headers = {"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"}
    return HTMLResponse(page, headers=headers)


@lru_cache(maxsize=1)
def _page() -> tuple[str, str]:
    """The page, and what its browser may do."""
    folder = files(__package__)
    style = asset("colours.css") + folder.joinpath("manual.css").read_text("utf-8")
    script = asset("elements.js") + folder.joinpath("manual.js").read_text("utf-8")
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; connect-src 'self'; img-src data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    parts = {"style": style, "script": script, "version": __version__}
    page = folder.joinpath("manual.html").read_text("utf-8")
    filled = re.sub(r"\{\{(\w+)\}\}", lambda slot: parts[slot[1]], page)
    return filled, policy


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
