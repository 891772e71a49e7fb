"""stillvec analyze VECTORS: what a space is like, what its components know, and which words moved since another."""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Sequence
from pathlib import Path

from stillvec.analysis import Geometry, Probed, Study, analyze, mean_value, saturation
from stillvec.cli import console
from stillvec.cli.geometry_figure import check_drawable, draw_portrait
from stillvec.combination.change import Moves
from stillvec.errors import UsageError
from stillvec.evaluation import Score
from stillvec.files import atomic_file

_FACTS = {  # in the words of a table
    "mean_cosine": "mean cosine of random pairs (0: isotropic)",
    "centred_cosine": "  the same with the mean taken out",
    "partition": "isotropy by partition function (1: isotropic)",
    "isoscore": "isotropy by IsoScore (1: isotropic)",
    "participation": "effective dimension, participation ratio",
    "entropy_rank": "effective dimension, exp of entropy",
    "dim_90": "components that hold 90% of the variance",
    "hubness": "hubness: skewness of {neighbours}-occurrence",
    "most_often": "  the greatest hub is a neighbour so often",
    "never": "  share of words that are nobody's neighbour",
    "mean_norm": "mean norm",
    "norm_frequency": "norm against {frequency}, Spearman",
}


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("vectors", metavar="VECTORS", help="a folder of vectors, or a file in any format we read")
    parser.add_argument("--data", metavar="DIR", help="test data for the components (default: as for evaluate)")
    parser.add_argument(
        "--tasks", metavar="A,B", default="similarity", help="what they are scored by (default: similarity)"
    )
    parser.add_argument("--points", type=int, default=15, metavar="N", help="of the curve of the first k (default: 15)")
    parser.add_argument("--without", metavar="D,...", default="0,1,2,3,5,10", help="how many of the first to take out")
    probing = "labelled texts (a label, a space, a text a line): what does each component know of them? may be repeated"
    parser.add_argument("--probe", action="append", default=[], metavar="FILE", help=probing)
    parser.add_argument("--no-components", action="store_true", help="only the geometry, which needs no test data")
    parser.add_argument("--neighbours", type=int, default=10, metavar="K", help="of hubness (default: 10)")
    parser.add_argument("--against", metavar="OLD", help="older vectors of the same language: which words moved since?")
    chance = "two sets between which nothing changed, for chance; may be given several times"
    parser.add_argument("--control", nargs=2, action="append", default=[], metavar=("A", "B"), help=chance)
    parser.add_argument("-k", type=int, default=20, metavar="N", help="words that moved to show (default: 20)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="draw a figure: .svg or .png")
    parser.add_argument("--json", metavar="FILE", help="write all numbers as JSON; - prints only them")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of random pairs and intervals (default: 0)")


def run(options: argparse.Namespace) -> int:
    if options.out is not None:
        check_drawable(options.out)
    analysis = analyze(
        options.vectors,
        data=options.data,
        tasks=[task.strip() for task in options.tasks.split(",") if task.strip()],
        points=options.points,
        without=_numbers(options.without),
        components=not options.no_components,
        probes=options.probe,
        neighbours=options.neighbours,
        against=options.against,
        controls=options.control,
        seed=options.seed,
    )
    text = json.dumps({"vectors": options.vectors, **analysis.to_json()}, ensure_ascii=False, indent=1)
    if options.json == "-":
        print(text)
    else:
        _tables(analysis.geometry, analysis.components, analysis.missing)
        if analysis.probes:
            _probed(analysis.probes)
        if analysis.moves is not None:
            _moved(analysis.moves, options.k, chance=bool(options.control))
        if options.json:
            with atomic_file(options.json) as part:
                part.write_text(text + "\n", "utf-8")
    if options.out is not None:
        draw_portrait(
            analysis.geometry, analysis.components, options.out, Path(options.vectors).name, [*analysis.probes]
        )
        if options.json != "-":
            console.note(f"{options.out}: drawn")
    return 0


def _numbers(text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not all(part.isdecimal() for part in parts):
        raise UsageError(f"--without takes numbers as in 0,1,5, and {text!r} came.")
    return sorted({int(part) for part in parts})


def _tables(found: Geometry, studied: Study | None, lacking: str) -> None:
    by = {"neighbours": found.neighbours, "frequency": "frequency" if found.counted else "the order of the words"}
    facts = [(text.format(**by), _short(getattr(found, name))) for name, text in _FACTS.items()]
    facts.append(
        (f"mean norm of {len(found.norms)} bands, frequent to rare", " ".join(f"{norm:.2f}" for norm in found.norms))
    )
    facts.append(("hubs", ", ".join(found.hubs)))
    console.table(f"{found.words:,} words x {found.dim}", ("what", "value"), facts)
    if studied is None:
        if lacking:
            console.note(lacking)
        return
    total = sum(found.variances)
    curve = {k: mean_value(scores) for k, scores in studied.cumulative.items()}
    held = {k: 100 * sum(found.variances[:k]) / max(total, 1e-300) for k in curve}
    rows = [(k, f"{held[k]:5.1f}", _hundredths(value)) for k, value in curve.items()]
    console.table("the first k components", ("k", "variance %", "mean score x 100"), rows)
    console.note(f"From {saturation(curve)} components on the mean is within 1.0 of that of all.")
    columns = [f"{name} {100 * share:.0f}%" for name, share in studied.shares.items()]
    each = zip(*studied.thirds.values(), strict=True)
    cells: list[tuple[str, ...]] = [(scores[0].dataset, *map(_cell, scores)) for scores in each]
    cells.append(("mean", *(_hundredths(mean_value(scores)) for scores in studied.thirds.values())))
    console.table(
        "thirds of the components x 100 [95%], with their share of the variance", ("dataset", "whole", *columns), cells
    )
    out = [(count, _hundredths(mean_value(scores))) for count, scores in studied.without.items()]
    console.table("centred, the first components taken out", ("taken out", "mean score x 100"), out)


def _probed(probed: Sequence[Probed]) -> None:
    rows = []
    for each in probed:
        parts = [each.each[round(len(each.each) * at / 3) : round(len(each.each) * (at + 1) / 3)] for at in range(3)]
        best = max(range(len(each.each)), key=lambda place, scores=each.each: scores[place])  # type: ignore[misc]
        means = [_hundredths(sum(part) / max(len(part), 1)) for part in parts]
        alone = f"{_hundredths(each.each[best])} (component {best + 1})"
        rows.append(
            (each.name, _hundredths(each.majority), *means, alone, _hundredths(each.whole), f"{each.trend:+.2f}")
        )
    console.table(
        "one component alone, accuracy x 100 on texts held out",
        ("texts", "majority", "mean of top", "of middle", "of bottom third", "best", "all together", "trend"),
        rows,
    )


def _moved(moves: Moves, most: int, *, chance: bool) -> None:
    columns = (moves.moved, moves.low, moves.high, moves.p, moves.q)
    rows = [*zip(moves.words, *(each.tolist() for each in columns), strict=True)][:most]
    console.table("words that moved", ("word", "moved", "low", "high", "p", "q"), rows)
    if not chance:
        console.note("Without --control p is only a word's place among words about as frequent.")


def _short(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.3f}"


def _hundredths(value: float) -> str:
    return "-" if math.isnan(value) else f"{100 * value:.1f}"


def _cell(score: Score) -> str:
    if math.isnan(score.value):
        return "-"
    return f"{100 * score.value:.1f} [{100 * score.low:.1f}, {100 * score.high:.1f}]"
