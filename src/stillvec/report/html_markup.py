"""Markup that cannot be broken by a word: text is escaped where it enters, only `Html` is taken as it is."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Iterable, Sequence

from stillvec.evaluation.score_table import ScoreRow

_VOID = {"meta", "br", "wbr"}
_NOT_TEXT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


def escape(value: object) -> Html:
    """Any value as text of a page; what no page may hold (control characters, halves of pairs) becomes U+FFFD."""
    return value if isinstance(value, Html) else Html(html.escape(plain(value), quote=True))


def plain(value: object) -> str:
    """Text that UTF-8 and every reader can hold."""
    return _NOT_TEXT.sub("\ufffd", str(value))


def element(name: str, /, *children: object, **attributes: object) -> Html:
    """`element("td", word, class_="word")`; an attribute that is None is left out, one that is True stands alone."""
    told = []
    for key, value in attributes.items():
        if value is not None and value is not False:
            label = key.rstrip("_").replace("_", "-")
            told.append(f" {label}" if value is True else f' {label}="{escape(value)}"')
    opening = f"<{name}{''.join(told)}>"
    return Html(opening if name in _VOID else f"{opening}{join(children)}</{name}>")


def join(parts: Iterable[object], between: str = "") -> Html:
    return Html(between.join(escape(part) for part in parts if part is not None))


def word(text: object) -> Html:
    """A word or a name, in its own direction of writing."""
    return element("bdi", text)


def set_name(text: object) -> Html:
    """The name of a set, which may break after a joint of it."""
    parts = re.split(r"(?<=[-_/:,])", plain(text))
    return element("bdi", join(parts, str(element("wbr"))), class_="name")


def table(
    caption: str,
    head: Sequence[object],
    rows: Iterable[Sequence[object]],
    *,
    classes: str = "",
    foot: Sequence[object] | None = None,
) -> Html:
    """A table whose first column names its rows; it scrolls by itself where it is wider than the page.

    A cell may be a whole `td`; other values become one.
    """
    heads = (each if _is(each, "th") else element("th", each, scope="col") for each in head)
    parts = [element("caption", caption), element("thead", element("tr", *heads))]
    parts.append(element("tbody", *(element("tr", _first(row[0]), *map(_cell, row[1:])) for row in rows)))
    if foot is not None:
        parts.append(element("tfoot", element("tr", *map(_cell, foot))))
    inside = element("table", *parts, class_=classes or None)
    return element("div", inside, class_="scroll", tabindex="0", role="region", aria_label=caption)


def number(value: float, digits: int = 1) -> str:
    """A score times a hundred; a dash where there is none."""
    return "–" if not math.isfinite(value) else _signed(f"{100 * value:.{digits}f}")


def points(value: float) -> str:
    """A difference of scores times a hundred, with its sign."""
    return "–" if not math.isfinite(value) else _signed(f"{100 * value:+.1f}")


def interval(low: float, high: float) -> str:
    return "" if not (math.isfinite(low) and math.isfinite(high)) else f"{number(low)} to {number(high)}"


def format_score(row: ScoreRow, name: str) -> str:
    """The value of a set multiplied by the scale of its task."""
    value = row.scores[name].value if name in row.scores else math.nan
    return f"{value:.2f}".replace("-", "−") if row.scale == 1 and math.isfinite(value) else number(value)


def numeric(value: float, text: object | None = None, **attributes: object) -> Html:
    """A cell that sorts by its number."""
    told = number(value) if text is None else text
    sort = f"{value:.6g}" if math.isfinite(value) else "-inf"
    classes = " ".join(filter(None, ("num", str(attributes.pop("class_", "") or ""))))
    return element("td", told, class_=classes, data_sort=sort, **attributes)


def plural(count: int, one: str, several: str | None = None) -> str:
    return f"{count:,} {one if count == 1 else several or one + 's'}"


def join_names(names: Sequence[str]) -> str:
    """a, b and c"""
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]])) if names else ""


def _signed(text: str) -> str:
    shown = "0.0" if text in ("-0.0", "+0.0") else text
    return shown.replace("-", "−")


def _is(value: object, name: str) -> bool:
    return isinstance(value, Html) and value.startswith(f"<{name}")


def _first(value: object) -> Html:
    return value if isinstance(value, Html) and _is(value, "th") else element("th", value, scope="row")


def _cell(value: object) -> Html:
    return value if isinstance(value, Html) and (_is(value, "td") or _is(value, "th")) else element("td", value)
