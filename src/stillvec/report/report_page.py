"""The report as one self-contained HTML file that loads nothing and is readable without its script."""

from collections.abc import Callable, Mapping

from stillvec import __version__
from stillvec.report.coverage import coverage_section
from stillvec.report.disagreement import disagreement_section
from stillvec.report.gender_pairs import gender_section
from stillvec.report.html_markup import Html, element, escape, join, join_names, plural
from stillvec.report.neighbours import neighbours_section
from stillvec.report.probe_agreement import probes_section
from stillvec.report.provenance import notes_section, provenance_section
from stillvec.report.report_data import ReportData
from stillvec.report.score_curves import corpus_size_section, frequency_section
from stillvec.report.scores import details_section, heat_section, rank_section
from stillvec.report.significance import significance_section, verdict
from stillvec.report.span_poolings import spans_section
from stillvec.report.web_page import fill_template, hash_source, read_asset

SECTIONS: Mapping[str, Callable[[ReportData], Html | None]] = {  # sections without content are left out
    "Ranking": rank_section,
    "All scores": heat_section,
    "Intervals and sections": details_section,
    "Significant differences": significance_section,
    "Label probes": probes_section,
    "Spans": spans_section,
    "Rare and frequent words": frequency_section,
    "Coverage": coverage_section,
    "Largest disagreements": disagreement_section,
    "Neighbours": neighbours_section,
    "Gender pairs": gender_section,
    "Corpus size": corpus_size_section,
    "Provenance": provenance_section,
    "Definitions": notes_section,
}


def html_page(data: ReportData, title: str) -> str:
    """The complete file."""
    colours, style, script = (read_asset(__package__, name) for name in ("colours.css", "style.css", "page.js"))
    contents = {name: content for name, section in SECTIONS.items() if (content := section(data))}
    links = [element("li", element("a", name, href=f"#{_anchor(name)}")) for name in contents]
    sections = [element("section", element("h2", name), part, id=_anchor(name)) for name, part in contents.items()]
    # styles of elements set the shades of cells, so that inline styles are allowed
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src {hash_source(script)}; base-uri 'none'"
    parts = {"policy": policy, "title": title, "version": __version__}
    parts |= {"style": Html(colours + style), "script": Html(script)}
    parts |= {"about": _about(data), "verdict": verdict(data), "links": join(links), "sections": join(sections)}
    return fill_template(read_asset(__package__, "report.html"), {name: escape(part) for name, part in parts.items()})


def _about(data: ReportData) -> Html:
    report = data.report
    tasks = [*dict.fromkeys(score.task for score in report.scores)]
    count = len({(score.task, score.dataset) for score in report.scores})
    sets = plural(len(report.names), "set of vectors", "sets of vectors")
    return element("p", f"{sets} on {plural(count, 'dataset')}: {join_names(tasks)}.", class_="about")


def _anchor(name: str) -> str:
    return name.lower().replace(" ", "-")
