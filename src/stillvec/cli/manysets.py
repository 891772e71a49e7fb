"""An evaluation of many sets on a terminal: a row a set of vectors, a column a dataset, as many columns as fit."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap

from stillvec.cli import console
from stillvec.evaluation import Comparison, Report, Score
from stillvec.evaluation.tasks import task_class
from stillvec.report.mean_scores import ranking

_NAME, _HEAD = 30, 17  # columns of the name of a set, and of a dataset over its cells
_LED = 3  # places of an order that are told
_WORDS = {"own": "", "common": ", on common words", "unleaked": ", less the lexicon's pairs"}

Column = Mapping[str, Score]  # by set


def show_report(report: Report) -> None:
    """Scores by task, the best set against the others, what policies change, shared neighbours."""
    labels = {name: f"{at:>2} {shortened(name, _NAME - 3)}" for at, name in enumerate(report.names, 1)}
    for task in dict.fromkeys(score.task for score in report.scores):
        for title, columns in _tables(report, task):
            _table(title, columns, labels, task, task_class(task).ranks_by(title.split(": ")[1].split(" ")[0]))
    standings = [each.name for each in ranking(report) if math.isfinite(each.value)] or [*report.names]
    _differences(report, standings[0], labels)
    _policies(report)
    _overlaps(report, standings[0], labels)


def shortened(name: str, most: int) -> str:
    """The end of a long name, which tells more than its beginning."""
    return name if len(name) <= most else f"…{name[1 - most :]}"


def _tables(report: Report, task: str) -> Iterator[tuple[str, dict[str, Column]]]:
    """Titles, and columns by their heads: datasets of one metric, or metrics of one dataset if these are more."""
    mine = [score for score in report.scores if score.task == task]
    datasets, metrics = ([*dict.fromkeys(getattr(score, key) for score in mine)] for key in ("dataset", "metric"))
    alike = all(metric.startswith(f"{metrics[0]}-") for metric in metrics[1:])
    prefix = f"{metrics[0]}-" if alike else ""  # purity-kmeans beside purity is kmeans
    by_metric = len(datasets) >= len(metrics)
    same = _same_items(mine)
    for group in metrics if by_metric else datasets:
        for words, told in _WORDS.items():
            columns: dict[str, dict[str, Score]] = {}
            if task == "similarity" and words in {score.words for score in mine}:
                means = {score.vectors: score for score in report.means if score.words == words}
                columns |= {f"mean of {len(next(iter(means.values())).details)}": means} if means else {}
            for score in mine:
                metric = score.metric.removeprefix(prefix)
                own, other = (score.metric, score.dataset) if by_metric else (score.dataset, metric)
                if own == group and score.words == words:
                    columns.setdefault(other, {})[score.vectors] = score
            if columns and not (words == "common" and same):
                yield f"{task}: {group} x 100 ± half of the 95% interval{told}", {**columns}


def _same_items(scores: Sequence[Score]) -> bool:
    """Whether all sets know the same items, so that those on common words would only be said again."""
    known: dict[tuple[str, str], set[int]] = {}
    for score in scores:
        if score.words in ("own", "common"):
            known.setdefault((score.dataset, score.metric), set()).add(score.n_covered)
    return all(len(counts) == 1 for counts in known.values())


def _table(title: str, columns: Mapping[str, Column], labels: Mapping[str, str], task: str, ordered: bool) -> None:
    """Blocks of as many columns as the terminal is wide; `*` marks the best of a column."""
    names = [name for name in labels if any(name in column for column in columns.values())]
    cells = {
        head: _cells(column, names, ordered and task_class(task).ranks_by(head)) for head, column in columns.items()
    }
    wide = max(len(labels[name]) for name in names)
    heads: list[str] = []
    room = _room(wide)
    for head in columns:
        need = max(len(shortened(head, _HEAD)), *map(len, cells[head])) + 3  # rich draws a line and two blanks
        if heads and need > room:
            _block(title, heads, names, labels, cells)
            heads, room = [], _room(wide)
        heads.append(head)
        room -= need
    _block(title, heads, names, labels, cells)
    for line in wrap(_coverage(columns), console.width() - 4):
        console.note(f"  {line}")


def _room(wide: int) -> int:
    return console.width() - wide - 4


def _block(
    title: str, heads: Sequence[str], names: Sequence[str], labels: Mapping[str, str], cells: Mapping[str, list[str]]
) -> None:
    rows = [(labels[name], *(cells[head][at] for head in heads)) for at, name in enumerate(names)]
    console.table(title, ("vectors", *(shortened(head, _HEAD) for head in heads)), rows)


def _cells(column: Column, names: Sequence[str], ordered: bool) -> list[str]:
    values = [column[name].value for name in names if name in column and math.isfinite(column[name].value)]
    best = max(values, default=math.nan) if ordered and len(values) > 1 else math.nan
    return [_cell(column.get(name), best) for name in names]


def _cell(score: Score | None, best: float) -> str:
    if score is None:
        return ""
    if math.isnan(score.value):
        return "    -"
    half = (score.high - score.low) / 2
    told = f"{'*' if score.value == best else ' '}{100 * score.value:4.1f}"
    return told if math.isnan(half) else f"{told} ±{100 * half:.1f}"


def _coverage(columns: Mapping[str, Column]) -> str:
    """How much of each dataset is known, in one line; said once where it is the same everywhere."""
    shares = {
        head: sorted(score.n_covered / score.n_items for score in column.values() if score.n_items)
        for head, column in columns.items()
    }
    told = {head: _percent(some[0], some[-1]) for head, some in shares.items() if some}
    if len({*told.values()}) == 1:
        return f"Known items: {next(iter(told.values()))} of each."
    return "Known items: " + ", ".join(f"{head} {share}" for head, share in told.items()) + "."


def _percent(low: float, high: float) -> str:
    first, last = f"{100 * low:.0f}", f"{100 * high:.0f}"
    return f"{last}%" if first == last else f"{first} to {last}%"


def _differences(report: Report, best: str, labels: Mapping[str, str]) -> None:
    """The best set against each other one; the other comparisons are in the JSON form and on the page."""
    told = [each for each in report.comparisons if each.words != "unleaked"]
    means = {
        _other(each, best): each for each in report.overall if best in (each.a, each.b) and each.words != "unleaked"
    }
    rows = []
    for name in labels:
        mine = [each for each in told if {each.a, each.b} == {best, name}]
        if mine:
            won = sum(each.real and _lead(each, best) > 0 for each in mine)
            lost = sum(each.real and _lead(each, best) < 0 for each in mine)
            rows.append((labels[name], _mean(means.get(name), best), won, lost, len(mine) - won - lost))
    if rows:
        first = labels[best].strip()
        title = f"{first}, best by its mean, against each other; real at 5%, Holm's correction for {len(told)}"
        heads = ("other", "mean of similarity [95%]", "really better", "really worse", "neither")
        console.table(title, heads, rows)
        console.note("  * Above: the best of a column; here: real. All comparisons stand in --json and --report.")


def _other(each: Comparison, name: str) -> str:
    return each.b if each.a == name else each.a


def _lead(each: Comparison, name: str) -> float:
    return each.difference if each.a == name else -each.difference


def _mean(each: Comparison | None, best: str) -> str:
    if each is None or math.isnan(each.p):
        return ""
    low, high = (each.low, each.high) if each.a == best else (-each.high, -each.low)
    return f"{100 * _lead(each, best):+5.1f} [{100 * low:.1f}, {100 * high:.1f}]{' *' if each.real else ''}"


def _policies(report: Report) -> None:
    """Where the first places hang on what is done with unknown words."""
    if not report.policies:
        return
    at = {name: str(number) for number, name in enumerate(report.names, 1)}
    leaders = [(each, [order[:_LED] for order in each.orders.values()]) for each in report.policies]
    changed = [(each, orders) for each, orders in leaders if len({*orders}) > 1]
    if not changed:
        console.note(f"Whatever is done with unknown words, the first {_LED} are the same.")
        return
    rows = [
        (f"{each.dataset} {each.metric}", *(" > ".join(at[name] for name in order) for order in orders))
        for each, orders in changed
    ]
    title = f"the first {_LED}, where they hang on what is done with unknown words: {len(changed)} of {len(leaders)}"
    console.table(title, ("dataset", *changed[0][0].values), rows)


def _overlaps(report: Report, best: str, labels: Mapping[str, str]) -> None:
    found = [each for each in report.overlaps if best in (each.a, each.b)]
    if found:
        rows = [
            (labels[each.b if each.a == best else each.a], f"{100 * each.share:.1f}", each.n_words) for each in found
        ]
        title = f"share of the {found[0].k} nearest words that {labels[best].strip()} has in common with x 100"
        console.table(title, ("other", "shared", "words"), rows)
