"""HTML tables for notebooks, for light and dark themes."""

from collections.abc import Mapping, Sequence
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


def grid(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]], notes: Sequence[str] = ()) -> str:
    """An HTML table with a header; numbers in text keep their places."""
    cell = f"{_CELL};white-space:pre;font-variant-numeric:tabular-nums"
    head = "".join(f'<th style="{cell};font-weight:normal;opacity:0.7">{_format(name)}</th>' for name in columns)
    body = "".join(
        '<tr style="background:none">' + "".join(f'<td style="{cell}">{_format(value)}</td>' for value in row) + "</tr>"
        for row in rows
    )
    table = f'<table style="{_TABLE}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
    return f'<div style="overflow-x:auto"><strong>{_format(title)}</strong>{table}{paragraphs(notes)}</div>'


def paragraphs(texts: Sequence[str]) -> str:
    """One HTML paragraph per text."""
    return "".join(f'<p style="opacity:0.7;margin:0.2em 0">{_format(text)}</p>' for text in texts)


def _format(value: object) -> str:
    text = f"{value:,}" if isinstance(value, int) else str(value)
    short = text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
    return escape(short.encode("utf-8", "replace").decode())
