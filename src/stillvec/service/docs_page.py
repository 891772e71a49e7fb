"""The page /docs: every endpoint, to read and to try. The browser builds it from `/openapi.json`."""

from functools import lru_cache

from fastapi.responses import HTMLResponse

from stillvec import __version__
from stillvec.report.web_page import fill_template, join_assets, read_asset

DOCS_PATH = "/docs"


async def show_docs() -> HTMLResponse:
    """The page is the same for every server and contains nothing that a token protects."""
    page, policy = _build_page()
    headers = {"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"}
    return HTMLResponse(page, headers=headers)


@lru_cache(maxsize=1)
def _build_page() -> tuple[str, str]:
    """The page and its content security policy."""
    parts, policy = join_assets(__package__, "docs.css", ["docs.js"], "'self'")
    return fill_template(read_asset(__package__, "docs.html"), parts | {"version": __version__}), policy
