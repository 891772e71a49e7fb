"""HTML tables for notebooks, for light and dark themes."""

from collections.abc import Mapping
from html import escape

_TABLE = "border-collapse:collapse;color:inherit;font-size:0.92em;margin:0.2em 0"
_CELL = "text-align:left;vertical-align:top;padding:0.15em 0.9em 0.15em 0;background:none;color:inherit;border:0"
_LONGEST = 300  # characters per value


def table(title: str, facts: Mapping[str, object]) -> str:
    """An HTML table without colours or scripts; values are escaped."""
    rows = "".join(
        f'<tr style="background:none"><th style="{_CELL};font-weight:normal;opacity:0.7">{_format(name)}</th>'
        f'<td style="{_CELL};max-width:44em;overflow-wrap:anywhere">{_format(value)}</td></tr>'
        for name, value in facts.items()
    )
    return f'<div><strong>{_format(title)}</strong><table style="{_TABLE}"><tbody>{rows}</tbody></table></div>'


def _format(value: object) -> str:
    text = f"{value:,}" if isinstance(value, int) else str(value)
    short = text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
    return escape(short.encode("utf-8", "replace").decode())
