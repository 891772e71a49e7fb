"""An evaluation as a self-contained page or as tables; one module per section of the page."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from stillvec.errors import UsageError
from stillvec.evaluation import Report
from stillvec.files import atomic_file
from stillvec.report.report_data import ReportData
from stillvec.vectors import WordVectors

__all__ = ["ENDINGS", "check_writable", "write_report"]

ENDINGS = (".html", ".md", ".csv", ".json", ".tex")


def write_report(
    report: Report,
    sets: Mapping[str, WordVectors],
    path: str | os.PathLike[str],
    *,
    manifests: Mapping[str, Mapping[str, Any]] | None = None,
    words: Sequence[str] = (),
    title: str = "Evaluation of word vectors",
) -> None:
    """Write an evaluation as a page (.html) or as tables (.md, .csv, .json, .tex).

    `sets` are the vectors by their names in the report, `manifests` their manifests (`read_manifest`), `words` those
    whose neighbours are shown. Sections without the data they need are left out, so that a page can also be written
    from a saved report alone (`Report.loads`).
    """
    from stillvec.report import report_page, table_formats

    file = Path(path)
    check_writable(file)
    known = {name: vectors for name, vectors in sets.items() if name in report.names}
    data = ReportData(report, known, manifests or {}, tuple(words))
    forms: Mapping[str, Callable[[], str]] = {
        ".html": lambda: report_page.html_page(data, title),
        ".md": lambda: table_formats.markdown_text(data, title),
        ".csv": lambda: table_formats.csv_text(data),
        ".json": lambda: table_formats.json_text(data),
        ".tex": lambda: table_formats.latex_text(data),
    }
    text = forms[file.suffix.lower()]()
    with atomic_file(file) as part:
        part.write_text(text, "utf-8", newline="\n")


def check_writable(file: Path) -> None:
    """Fail before the work if the report cannot be written."""
    if file.suffix.lower() not in ENDINGS:
        raise UsageError.expected(f"a file name ending in {', '.join(ENDINGS)}", str(file), where="report")
    if file.is_dir():
        raise UsageError.conflict(f"The report {file} is a folder", cure="give the name of a file", path=file)
