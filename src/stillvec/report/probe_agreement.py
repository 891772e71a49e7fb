"""Label probes: accuracy over restarts, F1 of every label, and the agreement of the sets."""

import math
from collections.abc import Iterator, Sequence
from statistics import fmean

from stillvec.evaluation import LabelProbe
from stillvec.evaluation.label_tables import MEASURES, agreement_table, label_tables
from stillvec.evaluation.score_table import TextTable
from stillvec.report.html_markup import Html, element, fold, join, lead, note
from stillvec.report.html_tables import column, numeric, table
from stillvec.report.report_data import ReportData
from stillvec.report.svg import scatter

_TITLES = {
    "kappa": "Agreement of the predicted labels",
    "r_labels": "Agreement of F1 over labels",
    "r_sentences": "Agreement of accuracy over sentences",
}


def probes_section(data: ReportData) -> Html | None:
    probes = data.report.label_probes
    if not probes:
        return None
    text = (
        "A perceptron predicts labels of words in a treebank from their vectors. The controls are random vectors, and "
        "the most frequent label of the word in training, which a static vector can exceed only on unseen words."
    )
    parts: list[object] = [lead(text)]
    for dataset in dict.fromkeys(probe.dataset for probe in probes):
        chosen = [probe for probe in probes if probe.dataset == dataset]
        accuracies, f1_scores, _ = label_tables(chosen, n_labels=None)
        parts += [_table(accuracies), *map(note, accuracies.notes)]
        parts += [fold("F1 of every label", join((_table(f1_scores), *_scatters(chosen))))]
        parts += _agreements(dataset, chosen)
    return join(parts)


def _table(shown: TextTable) -> Html:
    rows = [[row[0], *(element("td", cell, class_="num") for cell in row[1:])] for row in shown.rows]
    return table(shown.title, (shown.columns[0], *map(column, shown.columns[1:])), rows)


def _scatters(probes: Sequence[LabelProbe]) -> Iterator[Html]:
    """The F1 of each label with the first two sets or, for one set, with it and random vectors."""
    first, second = probes[0].names[:2]
    for probe in probes:
        points = [
            (fmean(probe.f1[first][label]), fmean(probe.f1[second][label]), f"{label} ({count:,} words)")
            for label, count in probe.labels.items()
        ]
        yield element("h4", f"{probe.kind}: F1 of each label with {first} (across) and {second} (up)")
        yield scatter(points, f"{probe.kind}: F1 of each label with {first} and with {second}")


def _agreements(dataset: str, probes: Sequence[LabelProbe]) -> Iterator[Html]:
    """Three heat maps: of single predictions, of labels and of sentences."""
    text = (
        "How far the probes of two sets agree; a set with itself is two restarts, the most that can be expected. "
        "Darker is more. Sets that share hardly anything can agree about which labels and sentences are easy: compare "
        "with the row of random vectors."
    )
    yield lead(text)
    for measure in MEASURES:
        shown = agreement_table(dataset, probes, measure)
        values = [value for probe in probes for value in probe.matrix(measure).tolist()]
        body = []
        for (label, *_), of_row in zip(shown.rows, values, strict=True):
            body.append((label, *map(_cell, of_row)))
        yield element("h3", _TITLES[measure])
        yield table(shown.title, (shown.columns[0], *map(column, shown.columns[1:])), body, classes="heat")


def _cell(value: float) -> Html:
    if math.isnan(value):  # a set with itself, of one restart
        return numeric(value)
    return numeric(value, class_="up", style=f"--heat:{max(0.0, min(1.0, value)):.2f}")
