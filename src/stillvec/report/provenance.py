"""How each set was made, from its manifest, and what the numbers of the page mean."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from stillvec.evaluation.score_table import rank_rows
from stillvec.report.html_markup import Html, element, join, plain, set_name, table
from stillvec.report.report_data import ReportData

_COLUMNS = {  # heading: where it stands in a manifest
    "method": ("method",),
    "teacher": ("teacher", "name"),
    "layer": ("settings", "layer"),
    "words of corpus": ("corpus", "words"),
    "words read": ("read", "words"),
    "seconds": ("seconds",),
    "seed": ("seed",),
    "stillvec": ("stillvec",),
}


def provenance_section(data: ReportData) -> Html | None:
    manifests = {name: data.manifests.get(name) or {} for name in data.names}
    filled = [
        title for title, path in _COLUMNS.items() if any(_at(each, path) is not None for each in manifests.values())
    ]
    if not filled and not data.sets:
        return None
    body = []
    for name, manifest in manifests.items():
        vectors = data.sets.get(name)
        shape = f"{len(vectors):,} × {vectors.dim}" if vectors is not None else "–"
        cells = (element("td", _told(_at(manifest, _COLUMNS[title]))) for title in filled)
        first = element("th", set_name(name), scope="row", class_=f"set {data.colour(name)}")
        body.append((first, element("td", shape, class_="num"), *cells))
    size = element("th", "words × dim", scope="col", class_="num")
    made = table("How each set was made", ("vectors", size, *filled), body, classes="making")
    whole = [
        element("details", element("summary", "All of ", set_name(name)), element("pre", _json(manifest)))
        for name, manifest in manifests.items()
        if manifest
    ]
    silent = [name for name, manifest in manifests.items() if not manifest]
    said = "No record of how these sets were made: " if len(silent) > 1 else "No record of how this set was made: "
    note = element("p", said, join(map(set_name, silent), ", "), ".", class_="note")
    return join((made, note if silent else None, *whole))


def _at(manifest: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    value: Any = manifest
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _told(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"{value:,.0f}"
    return str(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _json(manifest: Mapping[str, Any]) -> str:
    return plain(json.dumps(manifest, ensure_ascii=False, indent=2, sort_keys=True, default=str))


def notes_section(data: ReportData) -> Html:
    """What the words of the page mean."""
    unknown = sorted({score.unknown for score in data.report.scores})
    counted = rank_rows(data.report, data.basis)
    notes = {
        "Score": "Correlations and shares of right answers, times 100; effects of bias as they are.",
        "Mean": "The first metric of each dataset on which every set has a value; datasets of a task weigh the same, "
        f"and tasks weigh the same. Here: {', '.join(f'{row.dataset} ({row.metric})' for row in counted) or 'none'}.",
        "Interval": "95%, by the percentile bootstrap over items; of a share of right answers by Wilson's formula. "
        "That of a mean over similarity datasets draws a pair of words as often in each dataset that holds it; other "
        "means are put together as if datasets were independent.",
        "Real": "Two sets are compared on the same resampled items, so that what is hard for both cancels. A "
        "difference is called real where p, corrected by Holm for all comparisons looked at, is below 5%.",
        "Coverage": "An item is known where all its words have a vector other than zero, a text where one of them has. "
        f"Here items with unknown words were treated as: {', '.join(unknown)}.",
        "Common words": "Only the items that all sets know. Sets that know different items are ranked on these.",
    }
    terms = [part for term, told in notes.items() for part in (element("dt", term), element("dd", told))]
    report = data.report
    parts: list[object] = [element("dl", *terms)]
    for said, some in (("Not read", report.errors), ("Not run, as not requested", report.left_out)):
        if some:
            parts += [element("h3", said), element("ul", *(element("li", each) for each in some))]
    return join(parts)
