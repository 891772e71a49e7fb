"""Sets, data and scores for tests of the report, and a strict reader of its page."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import numpy as np

from stillvec import Vocabulary, WordVectors
from stillvec.evaluation import Comparison, Report, Score, evaluate
from stillvec.report import write_report
from stillvec.report.gender_pairs import PAIRS
from stillvec.report.report_data import ReportData

EVIL = "<script>alert(1)</script>"
EVIL_NAME = '"><img/src=x/onerror=alert(2)>&amp;'
VOID = {"meta", "br", "wbr"}


class Reader(HTMLParser):
    """Reads a page strictly: every tag is closed in its order."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def words(n: int) -> list[str]:
    return [*[word for pair in PAIRS for word in pair], EVIL, "naïve", *(f"word{chr(97 + i)}" for i in range(26))][:n]


def sets(names: list[str], n: int = 68, counts: bool = True) -> dict[str, WordVectors]:
    """Sets that agree with one hidden space, each with more noise than the one before; each knows fewer words."""
    hidden = np.random.default_rng(0).standard_normal((68, 6))
    found = {}
    for at, name in enumerate(names):
        rows = hidden + 0.6 * at * np.random.default_rng(at + 1).standard_normal(hidden.shape)
        known = n - 2 * at
        vocabulary = Vocabulary(words(known), [1000 - 10 * i for i in range(known)] if counts else None)
        found[name] = WordVectors(vocabulary, rows[:known])
    return found


def data(folder: Path, pairs: int = 150, name: str = "pairs") -> Path:
    """Similarity data that the first set of `sets` is right about, but for noise."""
    generator = np.random.default_rng(7)
    best, known = sets(["best"])["best"], words(68)
    lines = [f"{EVIL}\tnaïve\t0.5"]
    for _ in range(pairs):
        a, b = (known[i] for i in generator.choice(68, 2, replace=False))
        lines.append(f"{a}\t{b}\t{best.similarity(a, b) + 0.3 * generator.standard_normal():.4f}")
    (folder / "similarity").mkdir(exist_ok=True)
    (folder / "similarity" / f"{name}.tsv").write_text("\n".join(lines), "utf-8")
    return folder


def page_of(folder: Path, names: list[str], **options: object) -> str:
    given = sets(names)
    report = evaluate(given, data(folder), resamples=100, compare_oov=True)
    write_report(report, given, folder / "r.html", **options)  # type: ignore[arg-type]
    return (folder / "r.html").read_text("utf-8")


def score(name: str, value: float, dataset: str = "d", task: str = "similarity", covered: int = 10) -> Score:
    return Score(name, task, dataset, "spearman", value, value - 0.1, value + 0.1, 10, covered, "skip")


def compared(a: str, b: str, difference: float, p: float) -> Comparison:
    bounds = (difference - 0.1, difference + 0.1)
    return Comparison("similarity", "mean of 2", "spearman", a, b, difference, *bounds, p, p, 10)


def material_of(folder: Path, names: list[str], **options: bool) -> ReportData:
    given = sets(names, **options)  # type: ignore[arg-type]
    report = evaluate(given, data(folder), resamples=20)
    return ReportData(report, given)


def section(folder: Path, report: Report, name: str, given: dict[str, WordVectors] | None = None) -> str:
    """One section of a page, as it is written."""
    write_report(report, given or {}, folder / "section.html")
    page = (folder / "section.html").read_text("utf-8")
    return page[(start := page.index(f'<section id="{name}">')) : page.index("</section>", start)]
