"""Tables of the learning curves: python recipes/curve_tables.py CURVES.jsonl NAME

Scores are means over the eight similarity sets (Spearman x 100), or over the development sets. The points come from
recipes/curves.py.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from scores import argument_parser, print_header, print_row, split_cells

Point = dict[str, Any]
X2STATIC, ATTENTIVE, CONTEXT = "x2static", "attentive_skipgram", "context_to_vec"
TEACHERS = ("minilm", "granite", "smollm", "mpnet")
HEADERS = {
    "curves": "| epochs | X2Static | Context-to-Vec | attentive skip-gram |",
    "teacher-curves": "| method | teacher | after 1 epoch: loss of the last batch, development, 8 sets "
    "| after 2 | after 3 |",
    "start": "| method | epochs | development | 8 sets | cosine to the start |",
    "teachers": "| teacher | X2Static, sentences | X2Static, paragraphs | Context-to-Vec | attentive skip-gram |",
    "converged": "| teacher | X2Static | Context-to-Vec, window 2 | attentive skip-gram, defaults | its WordSim-353 |",
    "settings": "| method | development | 8 sets |",
    "windows": "| method | window 1 | 2 | 3 | 5 | 8 |",
    "pooling": "| pooling of the window | as they are | 3 directions removed |",
    "seeds": "| | RG-65 | WordSim-353 | SimLex-999 | SimVerb-3500 | RareWord | MEN | mean of 8 |",
    "trained-sizes": "| X2Static | 0.3M words | 0.6M | 1.2M | 2.4M |",
}


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("curves", type=Path)
    parser.add_argument("name", choices=HEADERS)
    options = parser.parse_args()
    points = [json.loads(line) for line in options.curves.read_text(encoding="utf-8").splitlines()]
    print_header(*split_cells(HEADERS[options.name]))
    TABLES[options.name](points)


def select(points: Iterable[Point], study: str, teacher: str = "minilm", method: str = "") -> list[Point]:
    return [
        point
        for point in points
        if (point["study"], point["teacher"]) == (study, teacher) and point["method"].startswith(method)
    ]


def format_means(point: Point | None) -> str:
    """The mean of the eight sets as they are / with three directions removed."""
    if point is None:
        return "–"
    epochs = "" if point.get("end", True) else f" ({point['epochs']:g} of {find_number('epochs', point)} epochs)"
    return f"{point['directions=0']['all']:.1f} / {point['directions=3']['all']:.1f}{epochs}"


def find_number(name: str, point: Point) -> int:
    """The value of a setting in the name of the method."""
    return int(re.findall(rf"{name}=(\d+)", point["method"])[0])


def last(points: Iterable[Point]) -> Point | None:
    return max(points, key=lambda point: float(point["epochs"]), default=None)


def end_points(points: Iterable[Point]) -> dict[str, tuple[Point, Point]]:
    """The first and the last point of each method."""
    methods: dict[str, list[Point]] = {}
    for point in points:
        methods.setdefault(point["method"], []).append(point)
    return {method: (curve[0], curve[-1]) for method, curve in methods.items() if len(curve) > 1}


def print_curves(points: list[Point]) -> None:
    curves = {name: select(points, "curves", method=name) for name in (X2STATIC, CONTEXT, ATTENTIVE)}
    epochs = sorted({round(float(point["epochs"]), 1) for curve in curves.values() for point in curve})
    for epoch in epochs:
        at = ([point for point in curve if round(float(point["epochs"]), 1) == epoch] for curve in curves.values())
        print_row(f"{epoch:g}", *(format_means(curve[0] | {"end": True} if curve else None) for curve in at))


def print_teacher_curves(points: list[Point]) -> None:
    """The curves of `teachers`, `settings` and `defaults`: the loss, the development mean and the mean of eight."""
    for study in ("teachers", "settings", "defaults"):
        for teacher in TEACHERS:
            methods: dict[str, dict[int, Point]] = {}
            for point in select(points, study, teacher):
                if point["epochs"]:
                    methods.setdefault(point["method"], {})[round(point["epochs"])] = point
            for method, by_epoch in methods.items():
                print_row(f"`{method}`", teacher, *(format_point(by_epoch.get(epoch)) for epoch in (1, 2, 3)))


def format_point(point: Point | None) -> str:
    """The loss, the development mean and the mean of eight, three directions removed."""
    if point is None:
        return "–"
    scores = point["directions=3"]
    return f"{point['loss']:.3f}, {scores['development']:.1f}, {scores['all']:.1f}"


def print_start(points: list[Point]) -> None:
    for method, (first, end) in end_points(select(points, "start")).items():
        scores = [
            f"{first['directions=3'][name]:.1f} / {end['directions=3'][name]:.1f}" for name in ("development", "all")
        ]
        print_row(f"`{method}`", f"{end['epochs']:g}", *scores, f"{end['cosine_to_start']:.2f}")


def print_teachers(points: list[Point]) -> None:
    for teacher in TEACHERS:
        cells = [
            last(select(points, study, teacher, method))
            for study, method in (
                ("teachers", X2STATIC),
                ("paragraphs", X2STATIC),
                ("teachers", CONTEXT),
                ("teachers", ATTENTIVE),
            )
        ]
        if any(cells):
            print_row(teacher, *map(format_means, cells))


def print_converged(points: list[Point]) -> None:
    """The methods by settings that converge, as they are / with three directions removed."""
    for teacher in TEACHERS:
        study = "settings" if teacher == "minilm" else "defaults"
        default = [point for point in select(points, study, teacher, ATTENTIVE) if "attention=0.03" in point["method"]]
        ends = (select(points, "teachers", teacher, X2STATIC), select(points, study, teacher, CONTEXT), default)
        end = last(default)
        word_sim = "–" if end is None else f"{end['directions=0']['ws353']:.1f} / {end['directions=3']['ws353']:.1f}"
        print_row(teacher, *(format_means(last(curve)) for curve in ends), word_sim)


def print_settings(points: list[Point]) -> None:
    for method, (_, end) in end_points(select(points, "settings")).items():
        print_row(f"`{method}`", end["directions=3"]["development"], end["directions=3"]["all"])


def print_windows(points: list[Point]) -> None:
    for name in (CONTEXT, ATTENTIVE):
        last_points = end_points(select(points, "windows", method=name)).values()
        ends = {find_number("window", end): end["directions=3"]["all"] for _, end in last_points}
        if name == ATTENTIVE:
            same = last(select(points, "teachers", method=name))
            ends |= {} if same is None else {5: same["directions=3"]["all"]}
        print_row(f"`{name}`", *(ends.get(window, "–") for window in (1, 2, 3, 5, 8)))


def print_pooling(points: list[Point]) -> None:
    arms = {"attention": last(select(points, "teachers", method=ATTENTIVE))}
    for method, (_, end) in end_points(select(points, "pooling")).items():
        arms[re.findall(r"pool=(\w+)", method)[0]] = end
    for name, point in arms.items():
        if point is not None:
            print_row(name, point["directions=0"]["all"], point["directions=3"]["all"])


def print_seeds(points: list[Point]) -> None:
    ends = [end for _, end in end_points(select(points, "seeds")).values()]
    ends += [end for _, end in end_points(select(points, "teachers", method=X2STATIC)).values()]
    names = ("rg65", "ws353", "simlex999", "simverb3500", "rareword", "men3000", "all")
    columns = [[end["directions=3"][name] for end in ends] for name in names]
    print_row(f"mean of {len(ends)} seeds", *map(mean, columns))
    print_row("standard deviation", *map(stdev, columns))


def print_sizes(points: list[Point]) -> None:
    sizes = [end_points(select(points, f"size {every}")) for every in (64, 32, 16, 8)]
    epochs = [{find_number("epochs", end): end for _, end in ends.values() if end["end"]} for ends in sizes]
    print_row("5 epochs", *(_format_size(ends.get(5)) for ends in epochs))
    print_row("60 epochs", *(_format_size(ends.get(60)) for ends in epochs))


def _format_size(point: Point | None) -> str | float:
    return "–" if point is None else float(point["directions=3"]["all"])


TABLES: dict[str, Callable[[list[Point]], None]] = {
    "curves": print_curves,
    "teacher-curves": print_teacher_curves,
    "start": print_start,
    "teachers": print_teachers,
    "converged": print_converged,
    "settings": print_settings,
    "windows": print_windows,
    "pooling": print_pooling,
    "seeds": print_seeds,
    "trained-sizes": print_sizes,
}


if __name__ == "__main__":
    main()
