"""Sentences of a language with little text: the map of states to sentence vectors is learned in other languages, too.

    STILLVEC_LANGUAGES=... STILLVEC_DATA=... python recipes/language_priors.py TEACHER [--only de es]
        [--english out/text-mix.txt --lines 10000] [--out out/language-priors]

`additive:prior=true` shrinks a word towards P = X M, what a linear map M makes of the teacher's states of the word.
With 4,000 sentences M is poor. States of a multilingual teacher are in one space, so that M may be learned in English,
or in all languages: moments of its regression are summed. Each language keeps its own words, frequencies and sentences.

The settings are chosen on German alone: half of the pairs of its development part, whose sentences are not in the text.
The second table has the test parts of all languages, with these settings and with the usual ones; German keeps the
smaller text. Scores of the teacher are those of `recipes/languages.py sentences`, texts those of recipes/languages.py.
What is in the folder `--out` is not read by the teacher again. A script because maps of several results are summed.
"""

from __future__ import annotations

import csv
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
from languages import LANGUAGES, data, write_text
from scipy.sparse import csr_array
from scores import argument_parser, format_interval, print_header, print_row, split_cells, write_json

import stillvec
from stillvec import WordVectors
from stillvec.evaluation import Score
from stillvec.learners.accumulators import remove_directions
from stillvec.learners.additive import bags_of, invert_moments, join_states, sif_weights
from stillvec.numerics.array_types import Floats
from stillvec.pipeline.previous_result import PreviousResult
from stillvec.training.bag_regression import BagSystem, mean_text, solve_system

HEADERS = {
    "language-priors-settings": "| map learned in | smoothing | ridge | directions | development | with n-grams |",
    "language-priors": "| language | `additive:prior=true` | with n-grams | as chosen |",
}
SMOOTHING = (1e-3, 3e-3, 3e-4)
GRID = {"ridge": (0.3, 0.1, 1.0, 3.0), "smoothing": SMOOTHING, "directions": (1, 0, 2)}


class Setting(NamedTuple):
    source: str  # where the map is learned
    smoothing: float
    ridge: float
    directions: int
    n_grams: bool = False  # for unknown words


DEFAULT = Setting("own", 1e-3, 0.3, 1)


@dataclass(frozen=True)
class Part:
    """The words and sentences of one language: A (S, V), AᵀC of centred C (V, D), states (V, E)."""

    vectors: WordVectors
    bags: csr_array
    goal: Floats
    states: Floats

    @cached_property
    def moments(self) -> tuple[Floats, Floats]:
        """Of the regression of C on A X: (E, E), (E, D)."""
        sums = self.bags @ self.states
        return (sums.T @ sums).astype(np.float64), (self.states.T @ self.goal).astype(np.float64)


def read_part(folder: Path) -> Part:
    previous = PreviousResult(folder)
    sentences = previous.statistics["sentences"]
    bags = bags_of(sentences)
    rows = np.repeat(np.arange(len(bags.lengths)), bags.lengths)
    matrix = csr_array((np.asarray(bags.shares), (rows, bags.words)), (len(bags.lengths), bags.n_words))
    products = np.asarray(sentences["sum:products"])
    goal = products - np.asarray(matrix.sum(axis=0))[:, None] * mean_text(bags, products)
    states = join_states(previous.statistics["states"], previous.statistics["alone"])
    return Part(stillvec.load(folder), matrix, goal, states)


def distill(text: Path, teacher: str, out: Path) -> dict[float, Part]:
    """A part for each smoothing, from one pass, or from the folder of an earlier one."""
    methods = ",".join(f"additive:prior=true,smoothing={each}" for each in SMOOTHING)
    if not out.exists():
        stillvec.distill_all(
            text, teacher=teacher, method=methods, language="none", min_count=1, contexts="all", out=out, progress=True
        )
    folders = sorted(path.parent for path in out.glob("additive*/manifest.json"))
    return {PreviousResult(folder).learner().smoothing: read_part(folder) for folder in folders}  # type: ignore[attr-defined]


def learn_map(parts: Iterable[Part]) -> Floats:
    """M (E, D) of all parts, of which each sentence counts the same."""
    moments = [part.moments for part in parts]
    return invert_moments(sum(first for first, _ in moments), sum(second for _, second in moments))


def solve(part: Part, onto: Floats, ridge: float) -> Floats:
    """Words shrunk towards the map of their states (V, D)."""
    a = part.bags
    prior = part.states @ onto
    goal = part.goal - a.T @ (a @ prior)
    diagonal = np.asarray(a.power(2).sum(axis=0))
    solution, _ = solve_system(BagSystem(a, a.T.tocsr(), diagonal, goal), ridge, 12)
    return np.asarray(prior + solution, np.float32)


def finish(part: Part, matrix: Floats, setting: Setting) -> WordVectors:
    vocabulary = part.vectors.vocabulary
    weights = sif_weights(vocabulary, setting.smoothing).astype(np.float32)[:, None]
    vectors = WordVectors(vocabulary, remove_directions(matrix, vocabulary, setting.directions) * weights)
    return stillvec.refine(vectors, "subword") if setting.n_grams else vectors


def split_development(language: str, out: Path) -> Path:
    """The text without half of the development pairs, which become a dataset."""
    with (data() / f"sentences/stsb-{language}.dev.csv").open(encoding="utf-8") as file:
        rows = [*csv.reader(file, quoting=csv.QUOTE_MINIMAL)]
    random.Random(0).shuffle(rows)
    held = rows[: len(rows) // 2]
    (out / "sentences").mkdir(parents=True, exist_ok=True)
    with (out / f"sentences/stsb-{language}.half.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(held)
    without = {text.strip() for row in held for text in row[:2]}
    lines = [line for line in write_text(language).read_text("utf-8").splitlines() if line not in without]
    path = out / f"{language}-half.txt"
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def spearman(vectors: WordVectors, folder: Path, dataset: str, resamples: int = 1000) -> Score:
    """The score with its interval; unknown words by n-grams if the vectors have them."""
    oov = "skip" if vectors.subwords is None else "subword"
    report = stillvec.evaluate(vectors, folder, ["sentences"], only=[dataset], oov=oov, resamples=resamples)
    return next(each for each in report.scores if (each.metric, each.words) == ("spearman", "own"))


Results = Mapping[float, Part]  # smoothing → part


@dataclass(frozen=True)
class Language:
    own: Results
    others: Mapping[str, Sequence[Results]]  # by the name of where the map is learned
    solved: dict[tuple[str, float, float], Floats] = field(default_factory=dict)

    def make_vectors(self, setting: Setting) -> WordVectors:
        source, smoothing, ridge, *_ = setting
        part = self.own[smoothing]
        if (source, smoothing, ridge) not in self.solved:
            learned = [part] if "own" in source else []
            onto = learn_map([*learned, *(each[smoothing] for each in self.others[source])])
            self.solved[source, smoothing, ridge] = solve(part, onto, ridge)
        return finish(part, self.solved[source, smoothing, ridge], setting)


def choose(half: Language, folder: Path, dataset: str) -> Setting:
    """The best setting on half of a development part: one value after the other, for each source of the map."""
    print_header(*split_cells(HEADERS["language-priors-settings"]))
    found: dict[Setting, float] = {}

    def measure(setting: Setting) -> float:
        if setting not in found:
            found[setting] = 100 * spearman(half.make_vectors(setting), folder, dataset, 0).value
        return found[setting]

    for source in half.others:
        start = best = DEFAULT._replace(source=source)
        for name, values in GRID.items():
            best = max((best._replace(**{name: value}) for value in values), key=measure)
        for setting in dict.fromkeys([start, best]):
            print_row(source, *map(str, setting[1:4]), measure(setting), measure(setting._replace(n_grams=True)))
        write_json(folder / "settings.json", [[*setting, value] for setting, value in found.items()])
    return max(found, key=measure)


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("teacher", metavar="TEACHER")
    parser.add_argument("--english", type=Path, metavar="FILE", help="read this text, too")
    parser.add_argument("--lines", type=int, default=100_000)
    parser.add_argument("--only", nargs="+", default=LANGUAGES, metavar="LANGUAGE")
    parser.add_argument("--out", type=Path, default=Path("out/language-priors"))
    options = parser.parse_args()
    out: Path = options.out
    out.mkdir(parents=True, exist_ok=True)
    half = distill(split_development("de", out), options.teacher, out / "de-half")
    others = {each: distill(write_text(each), options.teacher, out / each) for each in options.only if each != "de"}
    languages = {"de": half, **others}
    english = []
    if options.english:
        lines = options.english.read_text("utf-8").splitlines()
        random.Random(0).shuffle(lines)
        (out / "english.txt").write_text("\n".join(lines[: options.lines]) + "\n", "utf-8")
        english = [distill(out / "english.txt", options.teacher, out / "english")]

    def gather(language: str) -> Language:
        rest = [*english, *(part for other, part in languages.items() if other != language)]
        sources: dict[str, Sequence[Results]] = {"own": []}
        if rest:
            sources |= {"others": rest, "own and others": rest}
        return Language(languages[language], sources)

    setting = choose(gather("de"), out, "stsb-de.half")
    print(f"\nchosen: {setting}\n")
    print_header(*split_cells(HEADERS["language-priors"]))
    for language in languages:
        known = gather(language)
        tried = (DEFAULT, DEFAULT._replace(n_grams=True), setting)
        scores = [spearman(known.make_vectors(each), data(), f"stsb-{language}.test") for each in tried]
        print_row(language, *(format_interval(each.value, each.low, each.high) for each in scores))


if __name__ == "__main__":
    main()
