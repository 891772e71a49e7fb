"""The scores as tables for other programs: Markdown, CSV, JSON and LaTeX."""

import csv
import html
import io
import json
import math
import re
from collections.abc import Sequence
from dataclasses import asdict, fields

from stillvec.evaluation import Score
from stillvec.evaluation.label_tables import label_tables
from stillvec.evaluation.score_table import ScoreRow, first_metric_rows, group_scores
from stillvec.report.html_markup import plain
from stillvec.report.html_tables import format_score, number
from stillvec.report.report_data import ReportData
from stillvec.report.significance import verdict

_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
}  # fmt: skip
_ON = {"common": ", common words", "unleaked": ", outside the lexicon"}


def csv_text(data: ReportData) -> str:
    """One row per score, all fields except the sections of a dataset; NaN is empty."""
    names = [field.name for field in fields(Score) if field.name != "details"]
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(names)
    for score in data.report.scores:
        values = asdict(score)
        writer.writerow([_csv_cell(values[name]) for name in names])
    return plain(stream.getvalue())


def json_text(data: ReportData) -> str:
    """The same as `stillvec evaluate --json`."""
    return plain(json.dumps(data.report.to_json(), ensure_ascii=False, indent=1)) + "\n"


def markdown_text(data: ReportData, title: str) -> str:
    """The ranking, all scores, and the significant differences of means."""
    report = data.report
    means = [(mean.name, number(mean.value), f"{number(mean.low)} to {number(mean.high)}") for mean in data.ranking]
    summary = html.unescape(re.sub(r"<[^>]*>", "", verdict(data)))
    parts = [f"# {_markdown(title)}", _markdown(summary), _markdown_table(("vectors", "mean", "95%"), means)]
    parts.append("Scores times 100; the best score of a row is bold.")
    body = []
    for row in group_scores(report.scores):
        if row.words == "common" and data.basis == "own":
            continue  # the same as the row before
        cells = [format_score(row, name) for name in data.names]
        shown = [f"**{cell}**" if name in row.best else cell for name, cell in zip(data.names, cells, strict=True)]
        body.append((row.task, row.dataset + _ON.get(row.words, ""), row.metric, *shown))
    parts.append(_markdown_table(("task", "dataset", "metric", *data.names), body, literal=3))
    if report.overall:
        differences = []
        for pair in report.overall:
            numbers = f"{100 * pair.difference:+.1f}", f"{pair.p_corrected:.3f}"
            differences.append((pair.a, pair.b, *numbers, "yes" if pair.significant else "no"))
        parts.append("Differences of means over similarity datasets, in points; p with Holm's correction.")
        parts.append(_markdown_table(("a", "b", "a − b", "p", "significant"), differences))
    for label_table in label_tables(report.label_probes, n_labels=None):
        parts += [_markdown(f"{label_table.title[0].upper()}{label_table.title[1:]}.")]
        parts.append(
            _markdown_table(tuple(label_table.columns), [tuple(map(str, row)) for row in label_table.rows], literal=1)
        )
        parts += [_markdown(note.strip()) for note in label_table.notes]
    return "\n\n".join(parts) + "\n"


def latex_text(data: ReportData) -> str:
    """A booktabs table: one row per set, one column per dataset by its first metric, the best in bold."""
    report = data.report
    columns = first_metric_rows(report, data.basis)
    heads = [_latex(row.dataset) for row in columns]
    on = "the items that all sets cover" if data.basis == "common" else "the items that each set covers"
    lines = [
        f"% \\usepackage{{booktabs}}; scores times 100, the first metric of each dataset, on {on}",
        f"\\begin{{tabular}}{{l{'r' * len(columns)}r}}",
        "\\toprule",
        " & ".join(["", *heads, "mean"]) + r" \\",
        "\\midrule",
    ]
    top = max((mean.value for mean in data.ranking if math.isfinite(mean.value)), default=math.nan)
    for mean in data.ranking:
        cells = [_latex_cell(row, mean.name) for row in columns]
        cells.append(_bold(number(mean.value), mean.value == top and len(data.names) > 1))
        lines.append(" & ".join([_latex(mean.name), *cells]) + r" \\")
    return "\n".join([*lines, "\\bottomrule", "\\end{tabular}", ""])


def _csv_cell(value: object) -> object:
    """NaN is empty; a quote before text that a spreadsheet would run as a formula."""
    if isinstance(value, str):
        return re.sub(r"^(?=[=+\-@\t\r])", "'", value)
    return "" if _is_missing(value) else value


def _latex_cell(row: ScoreRow, name: str) -> str:
    score = row.scores.get(name)
    return "--" if score is None or _is_missing(score.value) else _bold(number(score.value), name in row.best)


def _bold(text: str, best: bool) -> str:
    shown = text.replace("−", "$-$").replace("–", "--")
    return f"\\textbf{{{shown}}}" if best else shown


def _latex(text: str) -> str:
    return "".join(_LATEX.get(letter, letter) for letter in re.sub(r"\s+", " ", plain(text)))


def _markdown_table(head: tuple[str, ...], body: Sequence[tuple[str, ...]], literal: int = 99) -> str:
    """Cells from column `literal` on are already markup."""
    left = literal if literal < len(head) else 1  # columns of text
    lines = [[*map(_markdown, head)], ["---"] * left + ["---:"] * (len(head) - left)]
    lines += [[cell if at >= literal else _markdown(cell) for at, cell in enumerate(row)] for row in body]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _markdown(text: str) -> str:
    """Escape text for Markdown."""
    return re.sub(r"([\\`*_\[\]|<>&#~])", r"\\\1", re.sub(r"\s+", " ", plain(text)))


def _is_missing(value: object) -> bool:
    return value is None or (isinstance(value, float) and not math.isfinite(value))
