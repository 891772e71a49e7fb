"""Tables of label probes: accuracy over restarts, F1 per label, and the agreement matrix, for every kind of report."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from statistics import fmean, stdev

from stillvec.evaluation.label_probes import LabelProbe
from stillvec.evaluation.score_table import TextTable

MEASURES = {  # of `ProbeAgreement`
    "kappa": "Cohen's kappa of the predicted labels",
    "r_labels": "Pearson's r of the F1 of each label",
    "r_sentences": "Pearson's r of the accuracy on each sentence",
}
_FEW_LABELS = 3  # per kind, as in the paper's figure 2


def label_tables(probes: Sequence[LabelProbe], *, n_labels: int | None = _FEW_LABELS) -> Iterator[TextTable]:
    """Three tables per dataset; F1 of the `n_labels` most frequent labels of each kind, by default 3; None: all."""
    for dataset in dict.fromkeys(probe.dataset for probe in probes):
        of_dataset = [probe for probe in probes if probe.dataset == dataset]
        yield _accuracies(dataset, of_dataset)
        yield _f1_scores(dataset, of_dataset, n_labels)
        yield agreement_table(dataset, of_dataset)


def format_restarts(values: Sequence[float], digits: int = 1) -> str:
    """The mean and the standard deviation, x 100: `81.2 ± 0.3`; the value alone for one restart."""
    mean = f"{100 * fmean(values):.{digits}f}"
    return mean if len(values) < 2 else f"{mean} ± {100 * stdev(values):.{digits}f}"


def format_p(p: float) -> str:
    return "-" if math.isnan(p) else "< 0.001" if p < 0.001 else f"{p:.3f}"


def _accuracies(dataset: str, probes: Sequence[LabelProbe]) -> TextTable:
    rows = []
    for name in probes[0].names:
        cells = []
        for probe in probes:
            test = probe.t_tests.get(name)
            cells.append(format_restarts(probe.accuracies[name]) + (" *" if test and test.p_corrected < 0.05 else ""))
        rows.append((name, *cells))
    n_restarts = max(map(len, probes[0].accuracies.values()))
    title = f"label probes, {dataset}: accuracy x 100 on {probes[0].n_words:,} words"
    notes = []
    if n_restarts > 1:
        title += f", mean and deviation of {n_restarts} restarts"
        notes.append("  *: not the majority label of the word (t-test over restarts at 5%, Holm's correction).")
    tested = [(probe.kind, probe.anova) for probe in probes if probe.anova]
    if tested:
        shown = "; ".join(f"{kind} F = {test.statistic:.1f}, p {_equals(test.p_corrected)}" for kind, test in tested)
        notes.append(f"  Analysis of variance over the sets: {shown}.")
    return TextTable(title, ("vectors", *(probe.kind for probe in probes)), rows, notes)


def _equals(p: float) -> str:
    text = format_p(p)
    return text if text.startswith("<") else f"= {text}"


def _f1_scores(dataset: str, probes: Sequence[LabelProbe], n_labels: int | None) -> TextTable:
    names = probes[0].names
    rows = []
    for probe in probes:
        for label, count in [*probe.labels.items()][:n_labels]:
            scores = (format_restarts(probe.f1[name][label]) for name in names)
            rows.append((f"{probe.kind} {label}", f"{100 * count / max(probe.n_words, 1):.1f}%", *scores))
    which = "" if n_labels is None else f", the {n_labels} most frequent of each kind (--json: all)"
    return TextTable(f"label probes, {dataset}: F1 x 100 per label{which}", ("label", "words", *names), rows)


def agreement_table(dataset: str, probes: Sequence[LabelProbe], measure: str = "kappa") -> TextTable:
    """A measure of `MEASURES` for each two sets, a block per kind of label."""
    names = probes[0].names
    rows = []
    for probe in probes:
        for name, values in zip(names, probe.matrix(measure).tolist(), strict=True):
            cells = ("-" if math.isnan(value) else f"{100 * value:.1f}" for value in values)
            rows.append((f"{probe.kind} {name}", *cells))
    title = f"label probes, {dataset}: agreement, {MEASURES[measure]} x 100"
    note = "  A set with itself: two restarts. --json and pages: correlations over labels and over sentences."
    return TextTable(title, ("vectors", *names), rows, [note] if measure == "kappa" else [])
