"""HTML elements: every text is escaped, except values of type `Html`."""

import html
import math
import re
from collections.abc import Iterable, Sequence

from stillvec.evaluation.score_table import ScoreRow

_VOID = {"meta", "br", "wbr"}
_NOT_TEXT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")


class Html(str):
    """Text that is already markup."""

    __slots__ = ()


def escape(value: object) -> Html:
    """Escape a value; characters not allowed in HTML (control characters, lone surrogates) become U+FFFD."""
    return value if isinstance(value, Html) else Html(html.escape(plain(value), quote=True))


def plain(value: object) -> str:
    """Replace characters that UTF-8 or HTML cannot represent."""
    return _NOT_TEXT.sub("\ufffd", str(value))


def element(name: str, /, *children: object, **attributes: object) -> Html:
    """`element("td", word, class_="word")`; None or False omits an attribute, True writes only its name."""
    pairs = []
    for key, value in attributes.items():
        if value is not None and value is not False:
            label = key.rstrip("_").replace("_", "-")
            pairs.append(f" {label}" if value is True else f' {label}="{escape(value)}"')
    opening = f"<{name}{''.join(pairs)}>"
    return Html(opening if name in _VOID else f"{opening}{join(children)}</{name}>")


def join(parts: Iterable[object], between: str = "") -> Html:
    return Html(between.join(escape(part) for part in parts if part is not None))


def word(text: object) -> Html:
    """A word or a name, isolated from the text direction around it."""
    return element("bdi", text)


def set_name(text: object) -> Html:
    """The name of a set, with line breaks allowed after punctuation."""
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
    """A table that scrolls if it is wider than the page; the first column contains row headers.

    Cells that are not already `td` or `th` elements become `td` elements.
    """
    heads = (label if _is(label, "th") else element("th", label, scope="col") for label in head)
    parts = [element("caption", caption), element("thead", element("tr", *heads))]
    parts.append(element("tbody", *(element("tr", _first(row[0]), *map(_cell, row[1:])) for row in rows)))
    if foot is not None:
        parts.append(element("tfoot", element("tr", *map(_cell, foot))))
    inside = element("table", *parts, class_=classes or None)
    return element("div", inside, class_="scroll", tabindex="0", role="region", aria_label=caption)


def number(value: float, digits: int = 1) -> str:
    """A score times 100; a dash for NaN."""
    return "–" if not math.isfinite(value) else _use_minus_sign(f"{100 * value:.{digits}f}")


def points(value: float) -> str:
    """A difference of scores times 100, with its sign."""
    return "–" if not math.isfinite(value) else _use_minus_sign(f"{100 * value:+.1f}")


def interval(low: float, high: float) -> str:
    return "" if not (math.isfinite(low) and math.isfinite(high)) else f"{number(low)} to {number(high)}"


def format_score(row: ScoreRow, name: str) -> str:
    """The value of a set multiplied by the scale of its task."""
    value = row.scores[name].value if name in row.scores else math.nan
    return f"{value:.2f}".replace("-", "−") if row.scale == 1 and math.isfinite(value) else number(value)


def numeric(value: float, text: object | None = None, **attributes: object) -> Html:
    """A cell that is sorted by its number."""
    sort = f"{value:.6g}" if math.isfinite(value) else "-inf"
    classes = " ".join(filter(None, ("num", str(attributes.pop("class_", "") or ""))))
    return element("td", number(value) if text is None else text, class_=classes, data_sort=sort, **attributes)


def column(label: object, classes: str = "num") -> Html:
    """The header of a column."""
    return element("th", label, scope="col", class_=classes)


def chart_column(axis: Html) -> Html:
    """The header of a column of charts: their axis, and a label for screen readers."""
    return column(join((axis, element("span", "chart", class_="hidden"))), "chart")


def dataset_row(dataset: str, remark: str, classes: str | None = None) -> Html:
    """The header of the row of a dataset."""
    return element("th", word(dataset), " ", element("small", remark), scope="row", class_=classes)


def lead(*text: object) -> Html:
    """The paragraph that introduces a section."""
    return element("p", *text, class_="lead")


def note(*text: object) -> Html:
    """A remark below a table or figure."""
    return element("p", *text, class_="note")


def fold(summary: object, *content: object) -> Html:
    """Content that is shown after a click."""
    return element("details", element("summary", summary), *content)


def plural(count: int, one: str, many: str | None = None) -> str:
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def join_names(names: Sequence[str]) -> str:
    """a, b and c"""
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]])) if names else ""


def _use_minus_sign(text: str) -> str:
    shown = "0.0" if text in ("-0.0", "+0.0") else text
    return shown.replace("-", "−")


def _is(value: object, name: str) -> bool:
    return isinstance(value, Html) and value.startswith(f"<{name}")


def _first(value: object) -> Html:
    return value if isinstance(value, Html) and _is(value, "th") else element("th", value, scope="row")


def _cell(value: object) -> Html:
    return value if isinstance(value, Html) and (_is(value, "td") or _is(value, "th")) else element("td", value)
