"""The page: one HTML file with everything in it, nothing loaded, readable without its script."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping
from importlib.resources import files

from stillvec import __version__
from stillvec.report.corpus_size import corpus_size_section
from stillvec.report.coverage import coverage_section
from stillvec.report.details import details_section
from stillvec.report.disagreement import disagreement_section
from stillvec.report.frequency import frequency_section
from stillvec.report.gender_pairs import gender_section
from stillvec.report.html_markup import Html, element, join_names, plural
from stillvec.report.neighbours import neighbours_section
from stillvec.report.provenance import notes_section, provenance_section
from stillvec.report.report_data import ReportData
from stillvec.report.scores import heat_section, ranking_section
from stillvec.report.significance import significance_section
from stillvec.report.verdict import verdict

SECTIONS: Mapping[str, Callable[[ReportData], Html | None]] = {  # what has nothing to tell is left out
    "Ranking": ranking_section,
    "Every score": heat_section,
    "Intervals and sections": details_section,
    "Which differences are real": significance_section,
    "Rare and frequent words": frequency_section,
    "Coverage": coverage_section,
    "Where they disagree": disagreement_section,
    "Neighbours": neighbours_section,
    "Pairs in a plane": gender_section,
    "Size of the corpus": corpus_size_section,
    "How each was made": provenance_section,
    "What the numbers mean": notes_section,
}


def asset(name: str) -> str:
    """A file that lies beside this one."""
    return files(__package__).joinpath(name).read_text("utf-8")


def html_page(data: ReportData, title: str) -> str:
    """The whole file."""
    style, script = Html(asset("colours.css") + asset("style.css")), Html(asset("page.js"))
    told = {name: content for name, section in SECTIONS.items() if (content := section(data))}
    links = [element("li", element("a", name, href=f"#{_anchor(name)}")) for name in told]
    sections = [element("section", element("h2", name), content, id=_anchor(name)) for name, content in told.items()]
    header = element("header", element("h1", title), _about(data), verdict(data))
    nav = element("nav", element("ul", *links), aria_label="Sections")
    footer = element("footer", f"Written by stillvec {__version__}. One file; it loads nothing.")
    body = element("body", header, nav, element("main", *sections), footer, element("script", script))
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_policy(script)),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", title),
        element("style", style),
    )
    return f"<!DOCTYPE html>\n{element('html', head, body, lang='en')}\n"


def _about(data: ReportData) -> Html:
    report = data.report
    tasks = [*dict.fromkeys(score.task for score in report.scores)]
    count = len({(score.task, score.dataset) for score in report.scores})
    sets = plural(len(report.names), "set of vectors", "sets of vectors")
    return element("p", f"{sets} on {plural(count, 'dataset')}: {join_names(tasks)}.", class_="about")


def _policy(script: str) -> str:
    """The browser refuses whatever is not this page: no network, and no script but its own."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; base-uri 'none'"


def _anchor(name: str) -> str:
    return name.lower().replace(" ", "-")
