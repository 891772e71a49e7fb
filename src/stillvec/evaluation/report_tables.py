"""Text tables of a report: up to three sets as columns, else one row per set and comparisons with the best set."""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from textwrap import wrap

from stillvec.evaluation.evaluation_report import Comparison, Report
from stillvec.evaluation.label_tables import label_tables
from stillvec.evaluation.score_table import ScoreRow, TextTable, group_scores, rank_sets
from stillvec.evaluation.tasks import task_class
from stillvec.heads.pooling import SPAN_POOLINGS

_MAX_COLUMNS = 3  # sets shown as columns
_CELL_WIDTH = 22  # 45.3 [40.1, 50.2] 100%
_NAME_WIDTH, _HEAD_WIDTH = 30, 17  # row label of a set, column header of a dataset
_LEADERS = 3  # places shown of a ranking of many sets
_WORDS = {"own": "", "common": "on common words", "unleaked": "outside the lexicon"}


Labels = Mapping[str, str]  # set → the name shown


Tables = Iterator[TextTable]


def build_tables(report: Report, width: int = 100) -> Tables:
    """Tables of scores per task, differences, rankings that depend on the OOV policy, and shared neighbours."""
    if not report.names:
        return
    few = len(report.names) <= _MAX_COLUMNS
    numbered = {name: f"{at:>2} {shorten(name, _NAME_WIDTH - 3)}" for at, name in enumerate(report.names, 1)}
    labels = shorten_names(report.names) if few else numbered
    for task in dict.fromkeys(score.task for score in report.scores):
        scores, means = _task_rows(report, task)
        yield from (_by_dataset(task, scores, means, labels) if few else _by_set(task, scores, means, labels, width))
    yield from label_tables(report.label_probes)
    best = next((mean.name for mean in rank_sets(report) if math.isfinite(mean.value)), None)
    first = report.names[0] if best is None else best
    role = "" if best is None else ", the best by mean score,"
    yield from _all_differences(report, labels) if few else _lead_differences(report, first, role, labels)
    yield from _policy_orders(report, None if few else _LEADERS)
    yield from _overlaps(report, None if few else first, labels)


def list_notes(report: Report) -> list[str]:
    """Notes below the tables."""
    notes = []
    if report.policies and not any(ranking.changes for ranking in report.policies):
        notes.append("The ranking of the sets is the same under every policy for OOV words.")
    if any(score.words == "unleaked" for score in report.scores):
        notes.append("Outside the lexicon: only pairs that the lexicon does not contain.")
    asked = {score.metric.split("-")[1] for score in report.scores if score.task == "spans" and "-" in score.metric}
    if (missing := [pooling for pooling in SPAN_POOLINGS if pooling not in asked]) and {*SPAN_POOLINGS} & asked:
        notes.append(f"Poolings of spans that were not measured: {', '.join(missing)}; see --tasks spans:pooling=.")
    if report.left_out:
        notes.append(f"Skipped (they train a model): {', '.join(report.left_out)}; see --tasks, --all, --quick.")
    return notes


def format_report(report: Report) -> str:
    """All tables and notes as plain text."""
    lines: list[str] = []
    for table in build_tables(report):
        cells = [[*map(str, row)] for row in (table.columns, *table.rows)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines.append(table.title)
        lines += ["  " + "  ".join(map(str.ljust, row, widths)).rstrip() for row in cells]
        lines += table.notes
    return "\n".join([*lines, *list_notes(report), *report.errors])


def shorten_names(names: Sequence[str]) -> dict[str, str]:
    """Shorten names to the width of a cell; number them if the shortened names are not unique."""
    short = {name: shorten(name, _CELL_WIDTH) for name in names}
    if len({*short.values()}) == len(names):
        return short
    return {name: f"{number} {shorten(name, _CELL_WIDTH - 2)}" for number, name in enumerate(names, 1)}


def shorten(name: str, width: int) -> str:
    """Truncate a long name at the start: its end is more specific."""
    return name if len(name) <= width else f"…{name[1 - width :]}"


def format_value(value: float, scale: int = 100) -> str:
    """Format a score in four characters if possible: 45.3, -7.1, 100; 1.25 at scale 1."""
    return f"{scale * value:4.{2 if scale == 1 else 1 if abs(value) < 0.9995 else 0}f}"


def _task_rows(report: Report, task: str) -> tuple[list[ScoreRow], list[ScoreRow]]:
    """Rows of a task and of its means, without the rows on common words if they are identical to the others."""
    rows = [row for row in group_scores(report.scores) if row.task == task]
    n_covered: dict[tuple[str, str], set[int]] = {}
    for row in rows:
        if row.words in ("own", "common"):
            counts = {score.n_covered for score in row.scores.values()}
            n_covered.setdefault((row.dataset, row.metric), set()).update(counts)
    same = all(len(counts) == 1 for counts in n_covered.values())
    shown = {row.words for row in rows} - ({"common"} if same else set())
    means = [row for row in group_scores(report.means) if row.task == task and row.words in shown]
    return [row for row in rows if row.words in shown], means


def _by_dataset(task: str, scores: Sequence[ScoreRow], means: Sequence[ScoreRow], labels: Labels) -> Tables:
    """One row per dataset, one column per set that has a score."""
    metrics = [*dict.fromkeys(row.metric for row in scores)]
    order = [*_WORDS]
    scores = sorted(scores, key=lambda row: (row.dataset, metrics.index(row.metric), order.index(row.words)))
    names = [name for name in labels if any(name in row.scores for row in scores)]
    rows = [(_label_row(row, metrics), *(_format_cell(row, name) for name in names)) for row in (*scores, *means)]
    metric = metrics[0] if len(metrics) == 1 else task_class(task).summary or ", ".join(metrics)
    title = f"{task}: {metric}{_format_scale(task)} [95%] covered"
    yield TextTable(title, ("dataset", *(labels[name] for name in names)), rows)


def _label_row(row: ScoreRow, metrics: Sequence[str]) -> str:
    n_leaked = next(iter(row.scores.values())).n_leaked
    if row.words == "unleaked" and n_leaked is not None:
        return f"  less {n_leaked} lexicon pairs"
    return f"  {_WORDS[row.words]}" if row.words != "own" else _label_metric(row.dataset, row.metric, metrics)


def _label_metric(dataset: str, metric: str, metrics: Sequence[str]) -> str:
    """Dataset name, with the metric if there are several; if all are kinds of `purity`, `purity-kmeans` is `kmeans`."""
    return f"{dataset} {metric.removeprefix(_common_prefix(metrics))}" if len(metrics) > 1 else dataset


def _common_prefix(metrics: Sequence[str]) -> str:
    """`purity-` if all metrics after `purity` begin with it."""
    prefix = f"{metrics[0]}-"
    return prefix if all(metric.startswith(prefix) for metric in metrics[1:]) else ""


def _format_scale(task: str) -> str:
    kind = task_class(task)
    plain = f" ({kind.unscaled[0]} x 1)" if kind.unscaled else ""
    return f" x {kind.scale}{plain}" if kind.scale != 1 else ""


def _format_cell(row: ScoreRow, name: str) -> str:
    score = row.scores.get(name)
    if score is None:
        return ""
    share = f"{100 * score.n_covered / score.n_items:3.0f}%"
    if math.isnan(score.value):
        return f"{'-':>4} {'':12} {share}"
    value, low, high = (format_value(number, row.scale) for number in (score.value, score.low, score.high))
    return f"{value} [{low}, {high}] {share}"


def _by_set(task: str, scores: Sequence[ScoreRow], means: Sequence[ScoreRow], labels: Labels, width: int) -> Tables:
    """One row per set; columns are datasets (one table per metric) or metrics (one table per dataset) if more."""
    datasets, metrics = ([*dict.fromkeys(getattr(row, key) for row in scores)] for key in ("dataset", "metric"))
    prefix = _common_prefix(metrics)
    by_metric = len(datasets) >= len(metrics)
    for group in metrics if by_metric else datasets:
        for words, label in _WORDS.items():
            inside = [row for row in scores if (row.words, row.metric if by_metric else row.dataset) == (words, group)]
            columns = {row.dataset: row for row in means if row.words == words} if inside else {}
            columns |= {row.dataset if by_metric else row.metric.removeprefix(prefix): row for row in inside}
            title = f"{task}: {group}{_format_scale(task)} ± half the 95% interval"
            yield from _column_blocks(f"{title}, {label}" if label else title, columns, labels, width)


def _column_blocks(title: str, columns: Mapping[str, ScoreRow], labels: Labels, width: int) -> Tables:
    """Split the columns into tables that fit the width; `*` marks the best of a column."""
    names = [name for name in labels if any(name in row.scores for row in columns.values())]
    if not names:
        return
    cells = {head: [_format_half(row, name) for name in names] for head, row in columns.items()}
    name_width = max(len(labels[name]) for name in names)
    blocks: list[list[str]] = [[]]
    free = width - name_width - 4
    for head in columns:
        need = max(len(shorten(head, _HEAD_WIDTH)), *map(len, cells[head])) + 3  # rich adds a border and two spaces
        if blocks[-1] and need > free:
            blocks.append([])
            free = width - name_width - 4
        blocks[-1].append(head)
        free -= need
    coverage = [f"  {line}" for line in wrap(_describe_coverage(columns), width - 4)]
    for number, heads in enumerate(blocks, 1):
        rows = [(labels[name], *(cells[head][at] for head in heads)) for at, name in enumerate(names)]
        heading = ("vectors", *(shorten(head, _HEAD_WIDTH) for head in heads))
        yield TextTable(title, heading, rows, coverage if number == len(blocks) else ())


def _format_half(row: ScoreRow, name: str) -> str:
    score = row.scores.get(name)
    if score is None:
        return ""
    if math.isnan(score.value):
        return "    -"
    half = (score.high - score.low) / 2
    digits = 2 if row.scale == 1 else 1
    value = f"{'*' if name in row.best else ' '}{row.scale * score.value:4.{digits}f}"
    return value if math.isnan(half) else f"{value} ±{row.scale * half:.{digits}f}"


def _describe_coverage(columns: Mapping[str, ScoreRow]) -> str:
    """Share of covered items per dataset, or one share if all are equal."""
    shares = {
        head: sorted(score.n_covered / score.n_items for score in row.scores.values() if score.n_items)
        for head, row in columns.items()
    }
    ends = {head: (f"{100 * values[0]:.0f}", f"{100 * values[-1]:.0f}") for head, values in shares.items() if values}
    ranges = {head: f"{'-'.join(dict.fromkeys(pair))}%" for head, pair in ends.items()}
    if len({*ranges.values()}) == 1:
        return f"Covered: {next(iter(ranges.values()))} of the items."
    return "Covered items: " + ", ".join(f"{head} {share}" for head, share in ranges.items()) + "."


def _format_difference(comparison: Comparison | None) -> str:
    if comparison is None or math.isnan(comparison.p):
        return "-" if comparison is not None else ""
    scale = task_class(comparison.task).scale_of(comparison.metric)
    bounds = ", ".join(format_value(bound, scale) for bound in (comparison.low, comparison.high))
    digits = 2 if scale == 1 else 1
    return f"{scale * comparison.difference:+5.{digits}f} [{bounds}]{' *' if comparison.significant else ''}"


def _all_differences(report: Report, labels: Labels) -> Tables:
    """Differences of all pairs of sets, per dataset."""
    comparisons = [*report.comparisons, *report.overall]
    present = {(comparison.a, comparison.b) for comparison in comparisons}
    pairs = [pair for pair in combinations(report.names, 2) if pair in present]
    if not pairs:
        return
    numbers = {name: str(number) for number, name in enumerate(report.names, 1)}
    short = labels if len(pairs) == 1 else numbers
    rows: dict[tuple[str, str, str, str], dict[tuple[str, str], Comparison]] = {}
    for item in comparisons:
        rows.setdefault((item.task, item.dataset, item.metric, item.words), {})[item.a, item.b] = item
    metrics = {task: [*dict.fromkeys(item.metric for item in comparisons if item.task == task)] for task, *_ in rows}
    cells = []
    for (task, dataset, metric, words), row in rows.items():
        label = f"  {_WORDS[words]}" if words == "unleaked" else _label_metric(dataset, metric, metrics[task])
        if not all(math.isnan(comparison.p) for comparison in row.values()):
            cells.append((label, *(_format_difference(row.get(pair)) for pair in pairs)))
    n_tested = len([comparison for comparison in report.comparisons if comparison.words != "unleaked"])
    title = f"differences x 100 [95%] on the same items; * significant at 5%, Holm's correction for {n_tested}"
    notes = [] if len(pairs) == 1 else [f"Sets: {', '.join(f'{at} {name}' for name, at in numbers.items())}."]
    if less := [*dict.fromkeys(comparison.metric for comparison in comparisons if comparison.lower_is_better)]:
        notes.append(f"Lower is better: {', '.join(less)}.")
    yield TextTable(title, ("dataset", *(f"{short[a]} - {short[b]}" for a, b in pairs)), cells, notes)


def _lead_differences(report: Report, best: str, role: str, labels: Labels) -> Tables:
    """Compare the best set, or the first where none is best, with each other set."""
    tested = [comparison for comparison in report.comparisons if comparison.words != "unleaked"]
    sides = [comparison.from_side(best) for comparison in tested if best in (comparison.a, comparison.b)]
    overall = [mean.from_side(best) for mean in report.overall if best in (mean.a, mean.b) and mean.words != "unleaked"]
    means = {comparison.b: comparison for comparison in overall}
    rows = []
    for name in labels:
        against = [comparison for comparison in sides if comparison.b == name]
        if against:
            n_won = sum(comparison.significant and comparison.gain > 0 for comparison in against)
            n_lost = sum(comparison.significant and comparison.gain < 0 for comparison in against)
            difference = _format_difference(means.get(name))
            rows.append((labels[name], difference, n_won, n_lost, len(against) - n_won - n_lost))
    if rows:
        title = f"{labels[best].strip()}{role} compared with each other set"
        columns = ("other", "mean of similarity [95%]", "better", "worse", "neither")
        note = f"  Better, worse and *: significant at 5%, Holm's correction for {len(tested)}. --json: all of them."
        yield TextTable(title, columns, rows, [note])


def _policy_orders(report: Report, n_places: int | None) -> Tables:
    """Datasets on which the ranking (of the first `n_places` sets) depends on the OOV policy."""
    numbers = {name: str(number) for number, name in enumerate(report.names, 1)}
    orders = [(ranking, [order[:n_places] for order in ranking.orders.values()]) for ranking in report.policies]
    changed = [(ranking, by_policy) for ranking, by_policy in orders if len({*by_policy}) > 1]
    if not changed:
        return
    rows = [
        (f"{ranking.dataset} {ranking.metric}", *(" > ".join(numbers[name] for name in order) for order in by_policy))
        for ranking, by_policy in changed
    ]
    places = "rankings" if n_places is None else f"first {n_places} places"
    title = f"{places} that depend on the policy for OOV words: {len(changed)} of {len(orders)}"
    notes = [] if report.comparisons else [f"Sets: {', '.join(f'{at} {name}' for name, at in numbers.items())}."]
    yield TextTable(title, ("dataset", *changed[0][0].values), rows, notes)


def _overlaps(report: Report, best: str | None, labels: Labels) -> Tables:
    """Share of common neighbours of each two sets, or of each set and the best one."""
    overlaps = [overlap for overlap in report.overlaps if best in (None, overlap.a, overlap.b)]
    if not overlaps:
        return
    rows = []
    for pair in overlaps:
        label = f"{labels[pair.a]} - {labels[pair.b]}" if best is None else labels[pair.b if pair.a == best else pair.a]
        rows.append((label, f"{100 * pair.share:.1f}", pair.n_words))
    partner = "" if best is None else f" with {labels[best].strip()}"
    title = f"neighbours: share of the {overlaps[0].k} nearest words in common{partner} x 100"
    yield TextTable(title, ("sets" if best is None else "other", "shared", "words"), rows)
