"""An evaluation on a terminal: a table a task, which differences are real, what policies change, shared neighbours."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import combinations

from stillvec.cli import console, manysets
from stillvec.evaluation import Comparison, Report, Score
from stillvec.evaluation.tasks import task_class

_WIDE = 22  # columns of a cell: 45.3 [40.1, 50.2] 100%
_SETS = 3  # that fit side by side; more of them are rows
_LABELS = {"common": "  on common words", "unleaked": "  less the lexicon's"}

Key = tuple[str, str, str]  # dataset, metric, words


def show_report(report: Report) -> None:
    """Everything that a report has."""
    if len(report.names) > _SETS:
        manysets.show_report(report)
        _tell_rest(report)
        return
    numbered = short_names(report.names)
    for task in dict.fromkeys(score.task for score in report.scores):
        _scores(report, task, numbered)
    _differences(report, numbered)
    _policies(report, numbered)
    if report.overlaps:
        rows = [
            (f"{numbered[each.a]} - {numbered[each.b]}", f"{100 * each.share:.1f}", each.n_words)
            for each in report.overlaps
        ]
        title = f"neighbours: share of the {report.overlaps[0].k} nearest that two sets have in common x 100"
        console.table(title, ("sets", "shared", "words"), rows)
    _tell_rest(report)


def _tell_rest(report: Report) -> None:
    if any(score.words == "unleaked" for score in report.scores):
        console.note("Less the lexicon's: without the pairs, so many, that the lexicon holds.")
    if report.left_out:
        console.note(f"Not run, as they train: {', '.join(report.left_out)} (--tasks NAME, --all, --quick).")


def short_names(names: Sequence[str]) -> dict[str, str]:
    """Names that fit over a cell: the end of a long one, numbered where ends are alike."""
    short = {name: name if len(name) <= _WIDE else f"…{name[-_WIDE + 1 :]}" for name in names}
    if len({*short.values()}) == len(names):
        return short
    return {name: f"{at} …{name[-_WIDE + 4 :]}" for at, name in enumerate(names, 1)}


def _scores(report: Report, task: str, numbered: dict[str, str]) -> None:
    """A row for each dataset, a column for each set of vectors that has a score there."""
    rows: dict[Key, dict[str, Score]] = {}
    for score in report.scores:
        if score.task == task:
            rows.setdefault((score.dataset, score.metric, score.words), {})[score.vectors] = score
    if _same_items(rows):
        rows = {key: scores for key, scores in rows.items() if key[2] != "common"}
    metrics = [*dict.fromkeys(metric for _, metric, _ in rows)]
    words = ["own", *_LABELS]
    ordered = sorted(rows.items(), key=lambda row: (row[0][0], metrics.index(row[0][1]), words.index(row[0][2])))
    names = [name for name in report.names if any(name in scores for scores in rows.values())]
    cells = [(_label(key, scores, metrics), *(_cell(scores.get(name)) for name in names)) for key, scores in ordered]
    if task == "similarity":
        cells += _means(report, names, {key[2] for key in rows})
    what = metrics[0] if len(metrics) == 1 else task_class(task).summary or ", ".join(metrics)
    console.table(f"{task}: {what} x 100 [95%] known", ("dataset", *(numbered[name] for name in names)), cells)


def _same_items(rows: dict[Key, dict[str, Score]]) -> bool:
    """Whether the sets know the same items, so that rows on common words would only repeat their own."""
    for (dataset, metric, words), scores in rows.items():
        if words == "common":
            own = rows[dataset, metric, "own"]
            if any(own[name].n_covered != ours.n_covered for name, ours in scores.items()):
                return False
    return True


def _label(key: Key, scores: dict[str, Score], metrics: Sequence[str]) -> str:
    dataset, metric, words = key
    if words == "unleaked":
        return f"  less {next(iter(scores.values())).n_leaked} of the lexicon"
    return _LABELS.get(words) or _named(dataset, metric, metrics)


def _named(dataset: str, metric: str, metrics: Sequence[str]) -> str:
    """A dataset with its metric, if there are several; `purity-kmeans` beside `purity` is `kmeans`."""
    return f"{dataset} {metric.removeprefix(f'{metrics[0]}-')}" if len(metrics) > 1 else dataset


def _cell(score: Score | None) -> str:
    if score is None:
        return ""
    share = f"{100 * score.n_covered / score.n_items:3.0f}%"
    if math.isnan(score.value):
        return f"{'-':>4} {'':12} {share}"
    return f"{hundredths(score.value)} [{hundredths(score.low)}, {hundredths(score.high)}] {share}"


def hundredths(value: float) -> str:
    """Four characters where it can: 45.3, -7.1, 100."""
    return f"{100 * value:4.1f}" if abs(value) < 0.9995 else f"{100 * value:4.0f}"


def _means(report: Report, names: Sequence[str], shown: set[str]) -> Iterator[tuple[str, ...]]:
    """The mean over the datasets on which every set of vectors has a value, if there are several."""
    for words, label in (("own", "mean of {}"), *_LABELS.items()):
        some = {score.vectors: score for score in report.means if score.words == words}
        if some and words in shown:
            yield (label.format(len(next(iter(some.values())).details)), *(_cell(some.get(name)) for name in names))


def _differences(report: Report, numbered: dict[str, str]) -> None:
    """Each two sets, dataset by dataset."""
    found = [*report.comparisons, *report.overall]
    if not found:
        return
    pairs = [pair for pair in combinations(report.names, 2) if any((each.a, each.b) == pair for each in found)]
    order = {name: str(at) for at, name in enumerate(report.names, 1)}
    corrected = len([each for each in report.comparisons if each.words != "unleaked"])
    title = f"differences x 100 [95%] on the same items; * real at 5%, Holm's correction for {corrected}"
    named = numbered if len(pairs) == 1 else order
    short = {pair: f"{named[pair[0]]} - {named[pair[1]]}" for pair in pairs}
    rows: dict[tuple[str, Key], dict[tuple[str, str], Comparison]] = {}
    for each in found:
        key = (each.task, (each.dataset, each.metric, each.words))
        rows.setdefault(key, {})[each.a, each.b] = each
    metrics = {task: [*dict.fromkeys(each.metric for each in found if each.task == task)] for task, _ in rows}
    kept = [(key, of) for key, of in rows.items() if not all(math.isnan(each.p) for each in of.values())]
    cells = [
        (_difference_label(key, metrics[task]), *(_difference(of.get(pair)) for pair in pairs))
        for (task, key), of in kept
    ]
    console.table(title, ("dataset", *short.values()), cells)
    if len(pairs) > 1:
        console.note("The sets are " + ", ".join(f"{at} {name}" for name, at in order.items()) + ".")


def _difference_label(key: Key, metrics: Sequence[str]) -> str:
    dataset, metric, words = key
    return _LABELS["unleaked"] if words == "unleaked" else _named(dataset, metric, metrics)


def _difference(each: Comparison | None) -> str:
    if each is None or math.isnan(each.p):
        return "-" if each is not None else ""
    star = " *" if each.real else ""
    return f"{100 * each.difference:+5.1f} [{hundredths(each.low)}, {hundredths(each.high)}]{star}"


def _policies(report: Report, numbered: dict[str, str]) -> None:
    """Where the order of the sets hangs on what is done with unknown words."""
    if not report.policies:
        return
    changed = [each for each in report.policies if each.changes]
    if not changed:
        console.note("Whatever is done with unknown words, the order of the sets is the same.")
        return
    at = {name: str(number) for number, name in enumerate(report.names, 1)}
    rows = [
        (f"{each.dataset} {each.metric}", *(" > ".join(at[name] for name in order) for order in each.orders.values()))
        for each in changed
    ]
    title = f"orders that hang on what is done with unknown words, {len(changed)} of {len(report.policies)}"
    console.table(title, ("dataset", *changed[0].values), rows)
    if not report.comparisons:
        console.note("The sets are " + ", ".join(f"{number} {name}" for name, number in at.items()) + ".")
