"""Label probes of several sets compared word by word, over restarts (Chang & Rafferty 2020).

All figures are on the test words that every set counts. With A and B the labels that two probes predict:

    same           share of words with A = B
    kappa          (same - e) / (1 - e), e = sum over labels of share(A) share(B): agreement beyond chance (Cohen 1960)
    both_right     share of words with A = B = the correct label
    r_labels       Pearson's r of their F1 scores over labels
    r_sentences    Pearson's r of their accuracies over sentences of at least 3 words

Each is the mean over pairs of restarts: restart i of A with restart i + 1 of B (the first after the last), so that the
agreement of a set with itself is that of two different restarts, an upper bound for the others.

Tests over restarts, as in the paper: a one-sample t-test of each set against the majority label of the word, with
Holm's correction over sets and kinds of labels, and one-way ANOVA over sets. They measure the randomness of training
only; how much a difference depends on the test items is what the comparisons of the report say.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.special import fdtrc, stdtr

from stillvec.evaluation.intervals import Floats, Rows, holm, pearson

MAJORITY, RANDOM = "majority label", "random vectors"  # the controls, listed after the sets
_SHORTEST = 3  # words of a sentence whose accuracy counts


@dataclass(frozen=True)
class ProbeAgreement:
    """How far the probes of two sets agree; `a` = `b`: two restarts of one."""

    a: str
    b: str
    same: float
    kappa: float
    both_right: float
    r_labels: float
    r_sentences: float


@dataclass(frozen=True)
class RestartTest:
    """A test over restarts."""

    statistic: float  # t or F
    p: float
    p_corrected: float  # Holm's


@dataclass(frozen=True)
class LabelProbe:
    """The probes of all sets, and of the controls, for one kind of label of a dataset."""

    dataset: str
    kind: str
    n_words: int  # those that every set counts
    labels: Mapping[str, int]  # label → its words, the most frequent first
    accuracies: Mapping[str, tuple[float, ...]]  # set → one per restart
    f1: Mapping[str, Mapping[str, tuple[float, ...]]]  # set → label → one per restart
    t_tests: Mapping[str, RestartTest]  # set → compared with the majority label; none for one restart
    anova: RestartTest | None  # over sets; None for one set or one restart
    agreements: tuple[ProbeAgreement, ...]  # each two sets

    @property
    def names(self) -> tuple[str, ...]:
        """The sets, then the controls."""
        return tuple(self.accuracies)

    def matrix(self, measure: str = "kappa") -> Floats:
        """A measure of `ProbeAgreement` for each two of `names` (n, n); NaN where it is not defined."""
        place = {name: at for at, name in enumerate(self.names)}
        values = np.full((len(place), len(place)), np.nan)
        for pair in self.agreements:
            a, b = place[pair.a], place[pair.b]
            values[a, b] = values[b, a] = getattr(pair, measure)
        return values

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """A probe from its fields as JSON."""
        fields = dict(values)
        fields["accuracies"] = {name: tuple(row) for name, row in values["accuracies"].items()}
        fields["f1"] = {name: {label: tuple(row) for label, row in rows.items()} for name, rows in values["f1"].items()}
        fields["t_tests"] = {name: RestartTest(**test) for name, test in values["t_tests"].items()}
        fields["anova"] = RestartTest(**values["anova"]) if values["anova"] else None
        fields["agreements"] = tuple(ProbeAgreement(**pair) for pair in values["agreements"])
        return cls(**fields)


class Predictions(NamedTuple):
    """What the probes say about the words that every set counts."""

    names: tuple[str, ...]  # (k,) of the labels
    gold: Rows  # (N,) the number of the correct label
    sentence: Rows  # (N,) the number of the sentence of each word
    by_set: Mapping[str, Rows]  # set or control → (N, restarts)


def study_probes(dataset: str, kind: str, predictions: Predictions) -> LabelProbe:
    """Accuracies, F1 per label, tests and agreement; p values are not corrected."""
    names, gold, sentence, by_set = predictions
    counts = np.bincount(gold, minlength=len(names))
    order = [int(at) for at in np.argsort(-counts, kind="stable") if counts[at]]
    f1 = {name: label_f1(gold, rows, len(names))[order] for name, rows in by_set.items()}
    accuracies = {name: _mean_columns(rows == gold[:, None]) for name, rows in by_set.items()}
    long = np.bincount(sentence)[sentence] >= _SHORTEST
    in_sentences = {
        name: _average_groups((rows == gold[:, None])[long], sentence[long]) for name, rows in by_set.items()
    }
    agreements = []
    for a, b in combinations_with_replacement(by_set, 2):
        n_restarts = max(by_set[a].shape[1], by_set[b].shape[1])
        if a == b and n_restarts == 1:
            continue
        measured = []
        for restart in range(n_restarts):
            first, second = restart % by_set[a].shape[1], (restart + 1) % by_set[b].shape[1]
            x, y = by_set[a][:, first], by_set[b][:, second]
            both_right = float(((x == y) & (x == gold)).mean()) if len(gold) else np.nan
            rs = (_correlate(table[a][:, first], table[b][:, second]) for table in (f1, in_sentences))
            measured.append([*cohen_kappa(x, y, len(names)), both_right, *rs])
        agreements.append(ProbeAgreement(a, b, *map(float, np.mean(measured, axis=0))))
    sets = {name: values for name, values in accuracies.items() if name not in (MAJORITY, RANDOM)}
    tested = {name: values for name, values in sets.items() if len(values) > 1}
    return LabelProbe(
        dataset,
        kind,
        len(gold),
        {names[at]: int(counts[at]) for at in order},
        accuracies,
        {
            name: {names[at]: tuple(row.tolist()) for at, row in zip(order, rows, strict=True)}
            for name, rows in f1.items()
        },
        {name: _test_mean(values, accuracies[MAJORITY][0]) for name, values in tested.items()},
        analyze_variance([np.array(values) for values in tested.values()]) if len(tested) > 1 else None,
        tuple(agreements),
    )


def correct_tests(probes: Iterable[LabelProbe]) -> tuple[LabelProbe, ...]:
    """Holm's correction, over the t-tests of all probes and over their analyses of variance."""
    listed = [*probes]
    t_tests = iter(_correct([test for probe in listed for test in probe.t_tests.values()]))
    variances = iter(_correct([probe.anova for probe in listed if probe.anova]))
    return tuple(
        replace(
            probe,
            t_tests={name: next(t_tests) for name in probe.t_tests},
            anova=next(variances) if probe.anova else None,
        )
        for probe in listed
    )


def _correct(tests: list[RestartTest]) -> list[RestartTest]:
    corrected = holm(np.array([test.p for test in tests]))
    return [replace(test, p_corrected=p) for test, p in zip(tests, corrected.tolist(), strict=True)]


def label_f1(gold: Rows, predicted: Rows, n_labels: int) -> Floats:
    """F1 of each label in each restart (k, restarts), `predicted` is (N, restarts); 0 if it is never predicted."""
    columns = []
    for said in predicted.T:
        right = np.bincount(gold[said == gold], minlength=n_labels)
        either = np.bincount(gold, minlength=n_labels) + np.bincount(said, minlength=n_labels)
        columns.append(2 * right / np.maximum(either, 1))
    return np.stack(columns, axis=1)


def cohen_kappa(x: Rows, y: Rows, n_labels: int) -> tuple[float, float]:
    """The share of equal labels, and Cohen's kappa; NaN for no words, or if both give one label to all."""
    if not len(x):
        return np.nan, np.nan
    same = float((x == y).mean())
    chance = float(np.bincount(x, minlength=n_labels) @ np.bincount(y, minlength=n_labels)) / len(x) ** 2
    return same, (same - chance) / (1 - chance) if chance < 1 else np.nan


def analyze_variance(groups: list[Floats]) -> RestartTest:
    """One-way analysis of variance: F, p; NaN without variance within the groups."""
    values = np.concatenate(groups)
    between = sum(len(group) * (group.mean() - values.mean()) ** 2 for group in groups)
    within = sum(float(np.square(group - group.mean()).sum()) for group in groups)
    free = len(groups) - 1, len(values) - len(groups)
    if within <= 1e-24 * len(values):
        return RestartTest(np.nan, np.nan, np.nan)
    f = float((between / free[0]) / (within / free[1]))
    p = float(fdtrc(*free, f))
    return RestartTest(f, p, p)


def _test_mean(values: tuple[float, ...], expected: float) -> RestartTest:
    """One-sample t-test; NaN without variance."""
    error = float(np.std(values, ddof=1)) / len(values) ** 0.5
    if error < 1e-12:
        return RestartTest(np.nan, np.nan, np.nan)
    t = (float(np.mean(values)) - expected) / error
    p = float(2 * stdtr(len(values) - 1, -abs(t)))
    return RestartTest(t, p, p)


def _mean_columns(right: Any) -> tuple[float, ...]:
    return tuple(right.mean(axis=0).tolist()) if len(right) else (np.nan,) * right.shape[1]


def _average_groups(right: Any, group: Rows) -> Floats:
    """The mean of each column (N, restarts) over each group that occurs (groups, restarts)."""
    _, at, sizes = np.unique(group, return_inverse=True, return_counts=True)
    return np.stack([np.bincount(at, column, minlength=len(sizes)) / sizes for column in right.T], axis=1)


def _correlate(x: Floats, y: Floats) -> float:
    return float(pearson(np.ones((1, len(x))), x, y)[0]) if len(x) > 1 else np.nan
