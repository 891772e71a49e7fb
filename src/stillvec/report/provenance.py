"""How each set was created, from its manifest, and the definitions of the numbers on the page."""

import json
from collections.abc import Mapping
from typing import Any

from stillvec.evaluation.score_table import rank_rows
from stillvec.report.html_markup import Html, element, fold, join, note, plain, set_name
from stillvec.report.html_tables import column, table
from stillvec.report.report_data import ReportData

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
    filled = [
        title
        for title, path in _COLUMNS.items()
        if any(_at(manifest, path) is not None for manifest in manifests.values())
    ]
    if not filled and not data.sets:
        return None
    body = []
    for name, manifest in manifests.items():
        vectors = data.sets.get(name)
        shape = f"{len(vectors):,} × {vectors.dim}" if vectors is not None else "–"
        cells = (element("td", _format_value(_at(manifest, _COLUMNS[title]))) for title in filled)
        body.append((data.set_row(name), element("td", shape, class_="num"), *cells))
    summary = table("How each set was created", ("vectors", column("words × dim"), *filled), body, classes="making")
    whole = [
        fold(join(("Manifest of ", set_name(name))), element("pre", _json(manifest)))
        for name, manifest in manifests.items()
        if manifest
    ]
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


def _json(manifest: Mapping[str, Any]) -> str:
    return plain(json.dumps(manifest, ensure_ascii=False, indent=2, sort_keys=True, default=str))


def notes_section(data: ReportData) -> Html:
    """Definitions of the terms and numbers of the page."""
    unknown = sorted({score.unknown for score in data.report.scores})
    counted = rank_rows(data.report, data.basis)
    notes = {
        "Score": "Correlations and accuracies are multiplied by 100; effect sizes of bias are not.",
        "Mean": "The mean over tasks of the mean over their datasets, by the first metric of each dataset on which "
        f"every set has a value. Here: {', '.join(f'{row.dataset} ({row.metric})' for row in counted) or 'none'}.",
        "Interval": "95%: percentile bootstrap over items, or Wilson's interval for accuracies. For the mean over "
        "similarity datasets, a word pair is drawn equally often in each dataset that contains it; for other means, "
        "datasets are treated as independent.",
        "Significant": "Two sets are compared on the same resampled items (paired bootstrap). A difference is "
        "significant if p, with Holm's correction for all comparisons, is below 0.05.",
        "Coverage": "An item counts as covered if every word in it has a nonzero vector, a text if at least one "
        f"word has one. Policy for out-of-vocabulary (OOV) words on this page: {', '.join(unknown)}.",
        "Common words": "Only the items that all sets cover. Sets that cover different items are ranked on these.",
    }
    terms = [part for term, text in notes.items() for part in (element("dt", term), element("dd", text))]
    report = data.report
    parts: list[object] = [element("dl", *terms)]
    for title, lines in (("Errors", report.errors), ("Not run (only on request)", report.left_out)):
        if lines:
            parts += [element("h3", title), element("ul", *(element("li", line) for line in lines))]
    return join(parts)
