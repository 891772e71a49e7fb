"""Similarity orders before alignment (Vulić et al. 2020): MRR of translations by mapping and alphas, and a heat map.

    python recipes/bilingual_texts.py
    for language in en de fr es it; do
        stillvec train out/bilingual/$language.txt --dim 100 --seed 1 --out out/bilingual/$language-skipgram
    done
    python recipes/bilingual.py [--only en-de de-en] [--words 4000] [--out out/bilingual/orders.svg]

Source words of a dictionary are split at random: half are seeds, a fifth development, the rest tests. As in the paper
one pair decides for all: alphas are chosen on the development words of the first direction, by Procrustes and cosine,
and the rate of RCSLS likewise. Tests are ranked by CSLS among all words of the target language. A script because it
splits dictionaries, and for the figure; one alignment is `stillvec combine --method align`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from bilingual_texts import FOLDER, LANGUAGES
from orders import ALPHAS, draw
from scores import argument_parser, format_interval, print_header, print_row, split_cells

import stillvec
from stillvec import WordVectors
from stillvec.combination.align import Align
from stillvec.evaluation.translation import Translation
from stillvec.heads.lookup import Lookup
from stillvec.numerics import unit_rows

HEADERS = {
    "bilingual": "| from, to | seeds | tests | Procrustes | α | α* | VecMap | α | α* | RCSLS | α | α* |",
    "bilingual-means": "| mapping | without | paper's α | difference | better in | α* | difference | better in |",
}
PAPER = (-0.25, 0.15)  # of the source, of the target
MAPPINGS: dict[str, dict[str, Any]] = {
    "Procrustes": {"rounds": 0},
    "VecMap": {"rounds": 5, "reweight": 0.5, "candidates": 3000},
    "RCSLS": {"rounds": 0, "mapping": "rcsls", "candidates": 3000},
}
RATES = (1.0, 10.0, 25.0, 50.0)  # the paper's
RESAMPLES = 1000


class Direction(NamedTuple):
    source: str
    target: str
    spaces: tuple[WordVectors, WordVectors]  # of the target, of the source
    parts: Mapping[str, dict[str, list[str]]]  # seeds, development, tests: source word, translations

    def align(self, alphas: tuple[float, float], folder: Path, **settings: Any) -> Align:
        """The source is mapped onto the target."""
        file = folder / f"{self.source}-{self.target}.txt"
        pairs = ((word, others) for word, others in self.parts["seeds"].items())
        file.write_text("".join(f"{other} {word}\n" for word, others in pairs for other in others), encoding="utf-8")
        return Align(file, alphas=alphas[::-1], tags=(self.target, self.source), **settings)

    def development(self, method: Align) -> float:
        """MRR of the development words by cosine."""
        target, source = method.fit(*self.spaces)
        words = [*self.parts["development"].items()]
        rows = np.array([self.spaces[1].vocabulary.index[word] for word, _ in words])
        cosines = unit_rows(source.rows(rows)) @ unit_rows(target.rows(np.arange(len(self.spaces[0])))).T  # (n, V)
        index = self.spaces[0].vocabulary.index
        best = np.array(
            [row[[index[t] for t in others]].max() for row, (_, others) in zip(cosines, words, strict=True)]
        )
        return float((1 / (1 + (cosines > best[:, None]).sum(1))).mean())

    def test(self, method: Align, folder: Path) -> np.ndarray:
        """The reciprocal rank of each test word by CSLS."""
        file = folder / f"{self.source}-{self.target}.tsv"
        pairs = ((word, other) for word, others in self.parts["tests"].items() for other in others)
        file.write_text("".join(f"{word}\t{other}\n" for word, other in pairs), encoding="utf-8")
        task = Translation()
        answers = task.answer(Lookup(method(*self.spaces)), task.read(file))
        assert answers.covered.all()
        return np.asarray(answers.values["mrr"])


def read_direction(source: str, target: str, spaces: Mapping[str, WordVectors]) -> Direction:
    language = target if source == "en" else source
    translations: dict[str, list[str]] = {}
    for line in (FOLDER / f"en-{language}.tsv").read_text("utf-8").splitlines():
        word, other = line.split("\t") if source == "en" else reversed(line.split("\t"))
        if word in spaces[source] and other in spaces[target]:
            translations.setdefault(word, []).append(other)
    words = sorted(translations)
    order = np.random.default_rng(0).permutation(len(words))
    cuts = np.split(order, [len(words) // 2, len(words) * 7 // 10])
    names = ("seeds", "development", "tests")
    parts = {name: {words[i]: translations[words[i]] for i in cut} for name, cut in zip(names, cuts, strict=True)}
    return Direction(source, target, (spaces[target], spaces[source]), parts)


def difference(before: Sequence[np.ndarray], after: Sequence[np.ndarray]) -> str:
    """The mean over directions of the mean difference, with a paired bootstrap interval over the words."""
    random = np.random.default_rng(0)
    changes = [b - a for a, b in zip(before, after, strict=True)]
    samples = [
        np.mean([change[random.integers(len(change), size=len(change))].mean() for change in changes])
        for _ in range(RESAMPLES)
    ]
    value = float(np.mean([change.mean() for change in changes]))
    return ("+" if value >= 0 else "") + format_interval(value, *np.percentile(samples, [2.5, 97.5]))


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("--only", nargs="+", default=[f"{a}-{b}" for x in LANGUAGES for a, b in (("en", x), (x, "en"))])
    parser.add_argument("--words", type=int, default=4000, help="the most frequent of each language")
    parser.add_argument("--out", type=Path, default=FOLDER / "orders.svg")
    options = parser.parse_args()
    spaces = {name: stillvec.load(FOLDER / f"{name}-skipgram") for name in ("en", *LANGUAGES)}
    spaces = {name: space.subset(space.words[: options.words]) for name, space in spaces.items()}
    directions = [read_direction(*name.split("-"), spaces) for name in options.only]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)

        def develop(alphas: tuple[float, float], **settings: Any) -> float:
            return directions[0].development(directions[0].align(alphas, folder, **settings))

        grid = np.array([[develop((a, b), **MAPPINGS["Procrustes"]) for b in ALPHAS] for a in ALPHAS])
        row, column = np.unravel_index(grid.argmax(), grid.shape)
        chosen = ALPHAS[row], ALPHAS[column]
        rates = {rate: develop((0.0, 0.0), **MAPPINGS["RCSLS"], rate=rate) for rate in RATES}
        MAPPINGS["RCSLS"]["rate"] = max(rates, key=rates.__getitem__)
        without, paper = (grid[ALPHAS.index(a), ALPHAS.index(b)] for a, b in ((0.0, 0.0), PAPER))
        print(f"development ({options.only[0]}), MRR x 100: without {100 * without:.1f}, paper's α {100 * paper:.1f},")
        print(f"α* = {chosen} {100 * grid.max():.1f}; RCSLS by rate:", end=" ")
        print(", ".join(f"{rate:g} {100 * value:.1f}" for rate, value in rates.items()), flush=True)
        draw(options.out, grid, ["the source", "the target"])
        ranks: dict[str, list[list[np.ndarray]]] = {label: [[], [], []] for label in MAPPINGS}
        print_header(*split_cells(HEADERS["bilingual"]))
        for direction in directions:
            cells = [f"{direction.source}, {direction.target}"]
            cells += [f"{len(direction.parts[part]):,}" for part in ("seeds", "tests")]
            for label, settings in MAPPINGS.items():
                for alphas, column_ranks in zip(((0.0, 0.0), PAPER, chosen), ranks[label], strict=True):
                    column_ranks.append(direction.test(direction.align(alphas, folder, **settings), folder))
                    cells.append(f"{100 * column_ranks[-1].mean():.1f}")
            print_row(*cells)
    print("")
    print_header(*split_cells(HEADERS["bilingual-means"]))
    for label, (without, *others) in ranks.items():
        cells = [label, f"{100 * np.mean([r.mean() for r in without]):.1f}"]
        for after in others:
            better = sum(b.mean() > a.mean() for a, b in zip(without, after, strict=True))
            cells.append(f"{100 * np.mean([r.mean() for r in after]):.1f}")
            cells += [difference(without, after), f"{better} of {len(without)}"]
        print_row(*cells)


if __name__ == "__main__":
    main()
