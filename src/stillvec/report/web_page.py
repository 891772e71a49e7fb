"""Shared parts of all HTML pages: assets, templates and the content security policy."""

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files


def read_asset(package: str, name: str) -> str:
    """The text of a file of a package."""
    return files(package).joinpath(name).read_text("utf-8")


def hash_source(text: str) -> str:
    """The source expression that allows exactly this inline script or style."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def join_assets(package: str, style_name: str, scripts: Sequence[str], connect: str) -> tuple[dict[str, str], str]:
    """Style and script of a page, after the ones all pages share, and the policy that allows nothing else."""
    style = read_asset(__package__, "colours.css") + read_asset(package, style_name)
    script = "\n".join([read_asset(__package__, "elements.js"), *(read_asset(package, name) for name in scripts)])
    policy = (
        f"default-src 'none'; script-src {hash_source(script)}; style-src {hash_source(style)}; connect-src {connect}; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return {"style": style, "script": script}, policy


def fill_template(template: str, parts: Mapping[str, str]) -> str:
    """Replace every `{{name}}` in one pass, so that a value may contain `{{name}}` itself."""
    return re.sub(r"\{\{(\w+)\}\}", lambda slot: parts[slot[1]], template)
