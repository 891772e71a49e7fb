"""stillvec analyze VECTORS: the geometry of a space, what its components encode, and what changed since another.

stillvec analyze teacher:NAME --text FILE: how much of its input each layer of a teacher keeps.
stillvec analyze teacher:NEW --against teacher:OLD [--text FILE]: what changed in the weights and states of a teacher.
"""

import argparse
import math
from collections.abc import Sequence
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path

from stillvec.analysis import (
    Analysis,
    CodeAnalysis,
    Geometry,
    LayerAnalysis,
    Probed,
    Study,
    TeacherChange,
    ValueChange,
    analyze,
    analyze_layers,
    compare_teachers,
    mean_value,
    saturation,
)
from stillvec.analysis.corpus_distance import CorpusDistances, compare_corpora
from stillvec.analysis.score_regression import ScoreRegression, Slope, explain_scores
from stillvec.cli.console import note, show, table
from stillvec.cli.figures import check_drawable, draw_geometry
from stillvec.cli.flags import add_json, name_texts
from stillvec.cli.progress_bar import show_events
from stillvec.combination.change import Moves
from stillvec.errors import UsageError
from stillvec.evaluation import Score
from stillvec.evaluation.intervals import Estimate
from stillvec.evaluation.teacher_states import is_teacher
from stillvec.files import cache_folder

_FACTS = {
    "mean_cosine": "mean cosine of random pairs (0: isotropic)",
    "centred_cosine": "  the same, centred",
    "partition": "isotropy by partition function (1: isotropic)",
    "isoscore": "isotropy by IsoScore (1: isotropic)",
    "participation": "effective dimension, participation ratio",
    "entropy_rank": "effective dimension, exp of entropy",
    "dim_90": "components for 90% of the variance",
    "hubness": "hubness: skewness of {neighbours}-occurrence",
    "most_often": "  occurrences of the largest hub",
    "never": "  share of words that are no neighbour",
    "mean_norm": "mean norm",
    "norm_frequency": "norm against {frequency}, Spearman",
}
_SAME = (
    "data",
    "points",
    "neighbours",
    "against",
    "values",
    "entropy",
    "codes",
    "seed",
)  # flags with the name of a parameter


def arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    what = "a folder of vectors, a file in any format, or hf://OWNER/NAME; not needed with --explain and --corpora"
    add("vectors", nargs="?", metavar="VECTORS", help=what)
    add("--data", metavar="DIR", help="test data for the components (default: as for evaluate)")
    tasks = "tasks that score the components (default: %(default)s)"
    add("--tasks", metavar="A,B", default="similarity", help=tasks)
    points = "points of the curve over the first k components (default: %(default)s)"
    add("--points", type=int, default=15, metavar="N", help=points)
    removed = "how many of the first components to remove (default: %(default)s)"
    add("--without", metavar="D,...", default="0,1,2,3,5,10", help=removed)
    probing = "labelled texts, one `LABEL TEXT` per line: probe each component for the labels; may be repeated"
    add("--probe", action="append", default=[], metavar="FILE", help=probing)
    add("--no-components", action="store_true", help="only the geometry, without test data")
    add("--neighbours", type=int, default=10, metavar="K", help="neighbours for hubness (default: %(default)s)")
    against = "older vectors, to list the words that moved since; teacher:OLD for a teacher"
    add("--against", metavar="OLD", help=against)
    chance = "two sets without real change between them, to estimate chance; may be repeated"
    add("--control", nargs=2, action="append", default=[], metavar=("A", "B"), help=chance)
    values = "compare --against value by value: masks of zeros, ranks of magnitudes, cosines; do not list moved words"
    add("--values", action="store_true", help=values)
    entropy = "list words that occur N times (default: 100) by entropy, in vectors made by refine --step feature_tuples"
    add("--entropy", type=int, nargs="?", const=100, metavar="N", help=entropy)
    codes = "how well bits or product codes keep the attributes of a lexicon apart: residual entropy (default: wordnet)"
    add("--codes", nargs="?", const="wordnet", metavar="FILE", help=codes)
    explain = "scores that evaluate --json wrote: regress them on the factors of --by"
    add("--explain", metavar="SCORES.json", help=explain)
    by = "a table with tabs: vectors, dataset or task first, then numbers; NAME:log2 takes the logarithm"
    add("--by", metavar="FACTORS.tsv", help=by)
    corpora = "texts, each a file or NAME=FILE: measure their distances by character trigrams and by shared words"
    add("--corpora", nargs="+", metavar="[NAME=]FILE", help=corpora)
    add(
        "--neural", action="store_true", help="with --corpora: also by a recurrent model of characters, trained on each"
    )
    add("--metric", metavar="NAME", help="with --explain: the metric (default: the first of each dataset)")
    add("-k", type=int, default=20, metavar="N", help="number of words to show (default: %(default)s)")
    add("--out", type=Path, metavar="FILE", help="draw a figure: .svg or .png")
    add_json(parser, words_follow=False)
    add("--seed", type=int, default=0, metavar="N", help="seed of random pairs and intervals (default: %(default)s)")
    text = "with teacher:NAME instead of VECTORS: text whose words it reads; may be repeated"
    add("--text", action="append", default=[], metavar="FILE", help=text)
    add("--sentences", type=int, metavar="N", help="sentences to read (default: 5000; with --against 1000)")
    add("--words", type=int, metavar="N", help="words whose occurrences are used (default: 1000)")
    drawn = "the most frequent words, or words drawn by frequency to the power 0.75 (default: frequent)"
    add("--sample", choices=["frequent", "random"], help=drawn)
    add("--clusters", type=int, dest="k_means", metavar="K", help="clusters of states (default: 100)")
    add("--seeds", type=int, metavar="N", help="clusterings to average over (default: 3)")


def run(options: argparse.Namespace) -> int:
    if options.explain or options.by:
        return _explain(options)
    if options.corpora:
        return _compare_corpora(options)
    if options.vectors is None:
        raise UsageError.expected("vectors", "nothing", where="stillvec analyze")
    if is_teacher(options.vectors):
        return _run_layers(options) if options.against is None else _run_teachers(options)
    if options.text:
        what = "teacher:NAME instead of VECTORS"
        raise UsageError.expected(what, repr(options.vectors), where="--text")
    if options.against is not None and is_teacher(options.against):
        raise UsageError.expected("older vectors, as VECTORS are no teacher", repr(options.against), where="--against")
    if options.out is not None:
        check_drawable(options.out)
    analysis = analyze(
        options.vectors,
        tasks=[task.strip() for task in options.tasks.split(",") if task.strip()],
        without=_numbers(options.without),
        components=not options.no_components,
        probes=options.probe,
        controls=options.control,
        **{name: getattr(options, name) for name in _SAME},
    )
    values = {"vectors": options.vectors, **analysis.to_json()}
    show(values, options.json, lambda: _print_analysis(analysis, options))
    if options.out is not None:
        name = Path(options.vectors).name
        draw_geometry(analysis.geometry, analysis.components, options.out, name, analysis.probes)
        if options.json != "-":
            note(f"Wrote {options.out}")
    return 0


def _explain(options: argparse.Namespace) -> int:
    if not (options.explain and options.by):
        raise UsageError.conflict("--explain SCORES.json requires --by FACTORS.tsv, and vice versa")
    regression = explain_scores(options.explain, options.by, metric=options.metric)
    show(asdict(regression), options.json, lambda: _print_regression(regression))
    return 0


def _print_regression(regression: ScoreRegression) -> None:
    rows = [
        (factor.name, _slope(factor.alone), _slope(factor.joint), f"{factor.inflation:.1f}", f"{factor.p:.3g}")
        for factor in regression.factors
    ]
    title = f"{regression.n_scores} scores, R² {regression.r_squared:.3f}; change of the score per unit [95%]"
    table(title, ("factor", "alone", "with all", "VIF", "p"), rows)
    for sentence in regression.notes():
        note(sentence)


def _compare_corpora(options: argparse.Namespace) -> int:
    distances = compare_corpora(name_texts(options.corpora), neural=options.neural)
    show(asdict(distances), options.json, lambda: _print_distances(distances))
    return 0


def _print_distances(distances: CorpusDistances) -> None:
    names = [*distances.perplexity]
    of_model = "perplexity of the {} of the column on the text of the row (lower is nearer)"
    for title, values, digits in (
        (of_model.format("model"), distances.perplexity, 1),
        (of_model.format("recurrent model"), distances.neural_perplexity, 1),
        ("shared words (higher is nearer)", distances.shared_words, 3),
    ):
        if not values:
            continue
        cells = [[f"{row[name]:.{digits}f}" if name in row else "" for name in names] for row in values.values()]
        table(title, ("", *names), [(name, *row) for name, row in zip(names, cells, strict=True)])
    order = [(name, ", ".join(other for other, _ in distances.nearest(name))) for name in names]
    table("the other texts, nearest first, by the mean of the ranks", ("text", "nearest first"), order)
    note(f"The first {distances.n_characters:,} characters of each text were compared.")


def _slope(slope: Slope) -> str:
    return f"{slope.value:.4f} [{slope.low:.4f}, {slope.high:.4f}]"


def _run_layers(options: argparse.Namespace) -> int:
    if not options.text:
        raise UsageError.expected("--text FILE, which the teacher reads", "none", where=options.vectors)
    names = {"words": "n_words", "sample": "sample", "k_means": "k", "seeds": "seeds", "sentences": "n_sentences"}
    given = {names[flag]: value for flag, value in vars(options).items() if flag in names and value is not None}
    with show_events(quiet=options.json == "-") as listener:
        analysis = analyze_layers(options.vectors, options.text, **given, cache=cache_folder(), progress=listener)
    show(analysis.to_json(), options.json, lambda: _print_layers(analysis))
    return 0


def _print_layers(analysis: LayerAnalysis) -> None:
    rows = []
    for layer in analysis.layers:
        shuffled = f"{layer.of_input_shuffled:.3f}", f"{layer.of_words_shuffled:.3f}"
        rows.append((layer.layer, _nats(layer.of_input), shuffled[0], _nats(layer.of_words), shuffled[1]))
    columns = ("layer", "I(input; layer)", "shuffled", "I(word; layer)", "shuffled")
    table("mutual information in nats [95%], bias subtracted; layer 0 is the input", columns, rows)
    words = "most frequent words" if analysis.sample == "frequent" else "words drawn by frequency"
    note(
        f"{analysis.n_occurrences:,} occurrences of {analysis.n_words:,} {words} in {analysis.n_sentences:,} "
        f"sentences, {analysis.k} clusters, mean of {analysis.seeds} seeds."
    )
    note(
        f"At most {analysis.input_entropy:.3f} (entropy of the input's clusters), {analysis.word_entropy:.3f} (words)."
    )


def _run_teachers(options: argparse.Namespace) -> int:
    if not is_teacher(options.against):
        raise UsageError.expected("teacher:OLD, as VECTORS are a teacher", repr(options.against), where="--against")
    given = {} if options.sentences is None else {"n_sentences": options.sentences}
    with show_events(quiet=options.json == "-") as listener:
        texts = options.text or None
        change = compare_teachers(
            options.vectors, options.against, texts, **given, cache=cache_folder(), progress=listener
        )
    show(change.to_json(), options.json, lambda: _print_teachers(change))
    return 0


def _print_teachers(change: TeacherChange) -> None:
    rows = []
    for matrix in change.matrices:
        values = matrix.values
        heads = "" if matrix.zeros_by_head is None else _list_percents(matrix.zeros_by_head)
        cells = (values.mask_difference, values.rank_movement, values.mean_cosine)
        rows.append((matrix.name, _list_percents(values.zeros), heads, *map(_percent, cells)))
    overall = (change.mask_difference, change.rank_movement)
    rows.append(("all", _list_percents(change.zeros), "", *map(_percent, overall), ""))
    columns = ("matrix", "zeros before, after", "least, most of a head", "masks differ", "ranks move", "cosine of rows")
    table(f"{change.n_values:,} weights, in %; ranks move by 33.3 by chance", columns, rows)
    if change.layers:
        states = [(layer.layer, f"{layer.mean:.4f}", f"{layer.low:.4f}") for layer in change.layers]
        title = f"cosine of the states of {change.n_occurrences:,} words; layer 0 is the input"
        table(title, ("layer", "mean", "5th percentile"), states)


def _nats(estimate: Estimate) -> str:
    return f"{estimate.value:.3f} [{estimate.low:.3f}, {estimate.high:.3f}]"


def _print_analysis(analysis: Analysis, options: argparse.Namespace) -> None:
    _print_geometry(analysis.geometry)
    if analysis.components is not None:
        _print_components(analysis.geometry, analysis.components)
    elif analysis.missing:
        note(analysis.missing)
    if analysis.probes:
        _print_probes(analysis.probes)
    if analysis.moves is not None:
        _print_moves(analysis.moves, options.k, control=bool(options.control))
    if analysis.values is not None:
        _print_values(analysis.values)
    if analysis.codes is not None:
        _print_codes(analysis.codes)
    if analysis.entropies:
        table("words of the highest entropy", ("word", "entropy"), analysis.entropies[: options.k])
        table("words of the lowest entropy", ("word", "entropy"), analysis.entropies[: -options.k - 1 : -1])


def _print_codes(codes: CodeAnalysis) -> None:
    found = codes.entropy
    parts = zip(codes.concepts, found.symbols, found.by_concept, strict=True)
    rows: list[tuple[str, ...]] = [(name, " ".join(map(str, part)), f"{value:.3f}") for name, part, value in parts]
    rows += [("mean", "", f"{found.value:.3f}"), ("  the same, shuffled", "", f"{found.shuffled:.3f}")]
    what = {"bits": "bits", "pq": "product codes"}[codes.kind]
    table(f"residual entropy of {codes.n_symbols} {what}, {found.n_items:,} words", ("concept", what, "residual"), rows)


def _numbers(text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not all(part.isdecimal() for part in parts):
        raise UsageError.expected("numbers as in 0,1,5", repr(text), where="--without")
    return sorted({int(part) for part in parts})


def _print_geometry(space: Geometry) -> None:
    names = {"neighbours": space.neighbours, "frequency": "frequency" if space.counted else "the order of the words"}
    facts = {text.format(**names): getattr(space, name) for name, text in _FACTS.items()}
    rows = [(text, f"{value:,}" if isinstance(value, int) else f"{value:.3f}") for text, value in facts.items()]
    bands = " ".join(f"{norm:.2f}" for norm in space.norms)
    rows += [(f"mean norm of {len(space.norms)} bands, frequent to rare", bands), ("hubs", ", ".join(space.hubs))]
    table(f"{space.words:,} words x {space.dim}", ("measure", "value"), rows)


def _print_components(space: Geometry, study: Study) -> None:
    total = max(sum(space.variances), 1e-300)
    curve = {k: mean_value(scores) for k, scores in study.cumulative.items()}
    rows = [(k, f"{100 * sum(space.variances[:k]) / total:5.1f}", _percent(value)) for k, value in curve.items()]
    table("the first k components", ("k", "variance %", "mean score x 100"), rows)
    note(f"With {saturation(curve)} components or more, the mean is within 1.0 of that of all.")
    columns = [f"{name} {100 * share:.0f}%" for name, share in study.shares.items()]
    datasets = zip(*study.thirds.values(), strict=True)
    cells: list[tuple[str, ...]] = [(scores[0].dataset, *map(_cell, scores)) for scores in datasets]
    cells.append(("mean", *(_percent(mean_value(scores)) for scores in study.thirds.values())))
    title = "thirds of the components x 100 [95%], with their share of the variance"
    table(title, ("dataset", "whole", *columns), cells)
    without = [(count, _percent(mean_value(scores))) for count, scores in study.without.items()]
    table("centred, without the first components", ("removed", "mean score x 100"), without)


def _print_probes(probes: Sequence[Probed]) -> None:
    rows = []
    for probe in probes:
        scores = probe.each
        bounds = [round(len(scores) * third / 3) for third in range(4)]
        thirds = [scores[start:end] for start, end in pairwise(bounds)]
        means = [_percent(sum(third) / max(len(third), 1)) for third in thirds]
        best = max(range(len(scores)), key=scores.__getitem__)
        alone = f"{_percent(scores[best])} (component {best + 1})"
        rows.append((probe.name, _percent(probe.majority), *means, alone, _percent(probe.whole), f"{probe.trend:+.2f}"))
    columns = ("texts", "majority", "mean of top", "of middle", "of bottom third", "best", "all together", "trend")
    table("single components, accuracy x 100 on held-out texts", columns, rows)


def _print_moves(moves: Moves, count: int, *, control: bool) -> None:
    columns = (moves.moved, moves.low, moves.high, moves.p, moves.q)
    rows = [*zip(moves.words, *(column.tolist() for column in columns), strict=True)][:count]
    table(
        "words that moved: 1 - cosine after alignment, 95% interval", ("word", "moved", "low", "high", "p", "q"), rows
    )
    if not control:
        note("Without --control, p is only the rank of a word among words of similar frequency.")


def _print_values(change: ValueChange) -> None:
    rows = [
        ("zeros before, after", _list_percents(change.zeros)),
        ("zeros after, smallest and largest share of a row", _list_percents(change.zeros_by_row)),
        ("zeros after, smallest and largest share of a column", _list_percents(change.zeros_by_column)),
        ("masks differ (by chance)", f"{_percent(change.mask_difference)} ({_percent(change.mask_chance)})"),
    ]
    for sparsity, share in change.pruned_differences.items():
        chance = 2 * sparsity * (1 - sparsity)
        rows.append((f"  if both were pruned to {sparsity:.0%}", f"{_percent(share)} ({_percent(chance)})"))
    spread = f"{_percent(change.rank_movement)} ± {_percent(change.rank_spread)} (33.3)"
    rows += [
        ("movement in the order of magnitudes (by chance)", spread),
        ("  by tenths of the values before, smallest first", _list_percents(change.movement_by_tenth)),
        ("mean and lowest cosine of a word, x 100", _list_percents((change.mean_cosine, change.lowest_cosine))),
    ]
    table(f"values of {change.n_rows:,} common words x {change.n_columns}, in %", ("measure", "value"), rows)


def _list_percents(values: Sequence[float]) -> str:
    return " ".join(map(_percent, values))


def _percent(value: float) -> str:
    return "-" if math.isnan(value) else f"{100 * value:.1f}"


def _cell(score: Score) -> str:
    interval = f" [{100 * score.low:.1f}, {100 * score.high:.1f}]"
    return _percent(score.value) + ("" if math.isnan(score.value) else interval)
