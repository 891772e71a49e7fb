"""Label probes: accuracy over restarts, F1 of every label, and the agreement of the sets."""

from stillvec.evaluation.label_tables import label_tables
from stillvec.report.html_markup import Html, element, fold, join, lead, note
from stillvec.report.html_tables import column, table
from stillvec.report.report_data import ReportData


def probes_section(data: ReportData) -> Html | None:
    tables = [*label_tables(data.report.label_probes, n_labels=None)]
    if not tables:
        return None
    text = (
        "A perceptron predicts labels of words in a treebank from their vectors. The controls are random vectors, and "
        "the most frequent label of the word in training, above which a static vector can rise for unseen words only."
    )
    parts: list[object] = [lead(text)]
    for shown in tables:
        rows = [[row[0], *(element("td", cell, class_="num") for cell in row[1:])] for row in shown.rows]
        content = table(shown.title, (shown.columns[0], *map(column, shown.columns[1:])), rows)
        parts.append(fold("F1 of every label", content) if "F1" in shown.title else content)
        parts += map(note, shown.notes)
    return join(parts)
