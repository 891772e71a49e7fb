"""Tables of a page, their headers and cells, and how numbers are written."""

import math
from collections.abc import Iterable, Sequence

from stillvec.evaluation.score_table import ScoreRow
from stillvec.report.html_markup import Html, element, join, word


def table(caption: str, head: Sequence[object], rows: Iterable[Sequence[object]], *, classes: str = "") -> Html:
    """A table that scrolls if it is wider than the page; the first column contains row headers.

    Cells that are not already `td` or `th` elements become `td` elements.
    """
    heads = (label if _is(label, "th") else element("th", label, scope="col") for label in head)
    parts = [element("caption", caption), element("thead", element("tr", *heads))]
    parts.append(element("tbody", *(element("tr", _first(row[0]), *map(_cell, row[1:])) for row in rows)))
    inside = element("table", *parts, class_=classes or None)
    return element("div", inside, class_="scroll", tabindex="0", role="region", aria_label=caption)


def column(label: object, classes: str = "num") -> Html:
    """The header of a column."""
    return element("th", label, scope="col", class_=classes)


def chart_column(axis: Html) -> Html:
    """The header of a column of charts: their axis, and a label for screen readers."""
    return column(join((axis, element("span", "chart", class_="hidden"))), "chart")


def dataset_row(dataset: str, remark: str, classes: str | None = None) -> Html:
    """The header of the row of a dataset."""
    return element("th", word(dataset), " ", element("small", remark), scope="row", class_=classes)


def numeric(value: float, text: object | None = None, **attributes: object) -> Html:
    """A cell that is sorted by its number."""
    sort = f"{value:.6g}" if math.isfinite(value) else "-inf"
    classes = " ".join(filter(None, ("num", str(attributes.pop("class_", "") or ""))))
    return element("td", number(value) if text is None else text, class_=classes, data_sort=sort, **attributes)


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


def _use_minus_sign(text: str) -> str:
    shown = "0.0" if text in ("-0.0", "+0.0") else text
    return shown.replace("-", "−")


def _is(value: object, name: str) -> bool:
    return isinstance(value, Html) and value.startswith(f"<{name}")


def _first(value: object) -> Html:
    return value if isinstance(value, Html) and _is(value, "th") else element("th", value, scope="row")


def _cell(value: object) -> Html:
    return value if isinstance(value, Html) and (_is(value, "td") or _is(value, "th")) else element("td", value)
