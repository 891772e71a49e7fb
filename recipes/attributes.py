"""Attributes of a lexicon (after Zhang et al. 2020): vectors of unknown words, and what known words gain.

    STILLVEC_DATA=... python recipes/attributes.py VECTORS

Unknown: the pairs of RareWord of which one word at least has no vector and both are in WordNet; the same pairs by the
n-grams of `subword`, by attributes alone, by both (`--oov attributes`), and by both with what WordNet says of the pairs
themselves. Known: datasets by the weight of the attributes. Evaluated pairs are taken out of the lexicon elsewhere.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
from scores import data_folder, print_header, print_row, score_similarity, split_cells

from stillvec import load
from stillvec.lexicons import read_rated_pairs
from stillvec.numerics import cosines, spearman
from stillvec.refinement.lexicon_attributes import LexiconAttributes
from stillvec.refinement.subword import Subword

HEADERS = {
    "attributes-unknown": "| vectors of unknown words | RareWord | difference to n-grams |",
    "attributes-known": "| weight | RG-65 | WordSim-353 | SimLex-999 | MEN | SimVerb |",
}
NAMES = ("rg65", "ws353", "simlex999", "men3000", "simverb3500")
RESAMPLES = 2000


def main() -> None:
    vectors, data = load(sys.argv[1]), data_folder()
    without = (str(data / "similarity"),)
    both = LexiconAttributes(weight=0, extend=True, without=without)(vectors)
    spaces = {
        "n-grams (`subword`)": Subword()(vectors),
        "attributes": LexiconAttributes(weight=0, extend=True, spelling=False, without=without)(vectors),
        "attributes and n-grams": both,
        "attributes and n-grams, evaluated pairs not taken out": LexiconAttributes(weight=0, extend=True)(vectors),
    }
    (rated,) = read_rated_pairs(data / "similarity" / "rareword.tsv").values()
    pairs = [(a, b, score) for a, b, score in rated if a in both and b in both and not (a in vectors and b in vectors)]
    left, right, gold = ([pair[side] for pair in pairs] for side in range(3))
    n_words = len({word for word in [*left, *right] if word not in vectors})
    print(
        f"{len(pairs):,} of {len(rated):,} pairs, {n_words:,} unknown words; {len(both) - len(vectors):,} words added\n"
    )
    print_header(*split_cells(HEADERS["attributes-unknown"]))
    similar = {name: cosines(space[left], space[right]) for name, space in spaces.items()}
    first = next(iter(similar.values()))
    for name, values in similar.items():
        change = "" if values is first else bootstrap(lambda rows, v=values: v[rows], lambda rows: first[rows], gold)
        print_row(name, 100 * float(spearman(values, np.array(gold))), change)
    print()
    print_header(*split_cells(HEADERS["attributes-known"]))
    for weight in (0.0, 0.25, 0.5, 1.0):
        space = LexiconAttributes(weight=weight, without=without)(vectors) if weight else vectors
        scores = score_similarity(space)
        print_row(f"{weight:g}", *(scores[name] for name in NAMES))


def bootstrap(
    new: Callable[[np.ndarray], np.ndarray], old: Callable[[np.ndarray], np.ndarray], gold: list[float]
) -> str:
    random, ratings = np.random.default_rng(0), np.array(gold)
    rows = random.integers(0, len(gold), (RESAMPLES, len(gold)))
    changes = 100 * (spearman(new(rows), ratings[rows]) - spearman(old(rows), ratings[rows]))
    whole = np.arange(len(gold))
    change = 100 * float(spearman(new(whole), ratings) - spearman(old(whole), ratings))
    low, high = np.percentile(changes, [2.5, 97.5])
    return f"{change:+.1f} [{low:.1f}, {high:.1f}]"


if __name__ == "__main__":
    main()
