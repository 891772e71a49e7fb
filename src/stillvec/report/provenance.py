"""How each set was created, from its manifest, and the definitions of the numbers on the page."""

import json
from collections.abc import Mapping
from typing import Any

from stillvec.evaluation.score_table import rank_rows
from stillvec.report.html_markup import Html, element, escape, fold, join, note, set_name
from stillvec.report.html_tables import column, table
from stillvec.report.report_data import ReportData
from stillvec.report.web_page import fill_template, read_asset

_COLUMNS = {  # heading: keys in the manifest
    "method": ("method",),
    "teacher": ("teacher", "name"),
    "layer": ("settings", "layer"),
    "corpus words": ("corpus", "words"),
    "words read": ("read", "words"),
    "seconds": ("seconds",),
    "seed": ("seed",),
    "stillvec": ("stillvec",),
}


def provenance_section(data: ReportData) -> Html | None:
    manifests = {name: data.manifests.get(name) or {} for name in data.names}
    known = manifests.values()
    filled = [title for title, path in _COLUMNS.items() if any(_at(item, path) is not None for item in known)]
    if not filled and not data.sets:
        return None
    body = []
    for name, manifest in manifests.items():
        vectors = data.sets.get(name)
        shape = f"{len(vectors):,} × {vectors.dim}" if vectors is not None else "–"
        cells = (element("td", _format_value(_at(manifest, _COLUMNS[title]))) for title in filled)
        body.append((data.set_row(name), element("td", shape, class_="num"), *cells))
    summary = table("How each set was created", ("vectors", column("words × dim"), *filled), body, classes="making")
    whole = []
    for name, manifest in manifests.items():
        if manifest:
            text = json.dumps(manifest, ensure_ascii=False, indent=2, sort_keys=True, default=str)
            whole.append(fold(join(("Manifest of ", set_name(name))), element("pre", text)))
    without = [name for name, manifest in manifests.items() if not manifest]
    missing = note("Without a manifest: ", join(map(set_name, without), ", "), ".") if without else None
    return join((summary, missing, *whole))


def _at(manifest: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    value: Any = manifest
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _format_value(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"{value:,.0f}"
    return str(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def notes_section(data: ReportData) -> Html:
    """Definitions of the terms and numbers of the page."""
    ranked = ", ".join(f"{row.dataset} ({row.metric})" for row in rank_rows(data.report, data.basis)) or "none"
    policies = ", ".join(sorted({score.unknown for score in data.report.scores}))
    values = {"ranked": escape(ranked), "policies": escape(policies)}
    report = data.report
    parts: list[object] = [Html(fill_template(read_asset(__package__, "definitions.html"), values))]
    for title, lines in (("Errors", report.errors), ("Not run (only on request)", report.left_out)):
        if lines:
            parts += [element("h3", title), element("ul", *(element("li", line) for line in lines))]
    return join(parts)
