"""Attributes of a lexicon (after Zhang et al. 2020): vectors of unknown words, and what known words gain.

    STILLVEC_DATA=... python recipes/attributes.py unknown|known|synonyms VECTORS

`unknown`: the pairs of RareWord of which one word at least has no vector and both are in WordNet; the same pairs by the
n-grams of `subword`, by attributes alone, by both (`--oov attributes`), and by both with what WordNet says of the pairs
themselves. Settings were chosen on one half of the pairs, drawn at random, and the other half is reported beside it;
then the pairs of other datasets of which a word is unknown.
`known`: datasets by the weight of the attributes. Evaluated pairs are taken out of the lexicon elsewhere. `synonyms`:
answers about texts in which a word is replaced by a synonym.
"""

from __future__ import annotations

import numpy as np
from scores import (
    argument_parser,
    data_folder,
    format_change,
    format_interval,
    print_header,
    print_row,
    score_similarity,
    split_cells,
)

from stillvec import WordVectors, evaluate, load
from stillvec.evaluation import mean_difference
from stillvec.lexicons import read_rated_pairs
from stillvec.numerics import cosines, spearman
from stillvec.refinement.lexicon_attributes import LexiconAttributes
from stillvec.refinement.subword import Subword

HEADERS = {
    "attributes-unknown": "| vectors of unknown words | chosen on | change | tested | difference to n-grams |",
    "attributes-others": "| dataset | pairs | n-grams | attributes | difference | both | difference |",
    "attributes-known": "| weight | RG-65 | WordSim-353 | SimLex-999 | MEN | SimVerb | held out, change |",
    "attributes-synonyms": "| dataset | texts | weight | accuracy | with a synonym | stability |",
}
NAMES = ("rg65", "ws353", "simlex999", "men3000", "simverb3500")
HELD_OUT = ("men3000", "simverb3500")  # the weight was chosen on the others
OTHERS = ("simverb3500", "men3000", "simlex999")
DATASETS = ("sst5.test", "trec.test")
RESAMPLES = 2000
TIMES, ITEMS = 5, 1000  # synonyms per text, texts


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("table", choices=("unknown", "known", "synonyms"))
    parser.add_argument("vectors")
    options = parser.parse_args()
    runs = {"unknown": print_unknown, "known": print_known, "synonyms": print_synonyms}
    runs[options.table](load(options.vectors))


def own_pairs() -> tuple[str, ...]:
    """The evaluated pairs, to be taken out of the lexicon."""
    return (str(data_folder() / "similarity"),)


def print_unknown(vectors: WordVectors) -> None:
    both = LexiconAttributes(weight=0, extend=True, without=own_pairs())(vectors)
    alone = LexiconAttributes(weight=0, extend=True, spelling=False, without=own_pairs())(vectors)
    spaces = {
        "n-grams (`subword`)": Subword()(vectors),
        "attributes": alone,
        "attributes and n-grams": both,
        "attributes and n-grams, evaluated pairs not taken out": LexiconAttributes(weight=0, extend=True)(vectors),
    }
    (rated,) = read_rated_pairs(data_folder() / "similarity" / "rareword.tsv").values()
    pairs = [(a, b, score) for a, b, score in rated if a in both and b in both and not (a in vectors and b in vectors)]
    left, right, gold = ([pair[side] for pair in pairs] for side in range(3))
    n_words = len({word for word in [*left, *right] if word not in vectors})
    is_first = np.random.default_rng(0).permutation(len(pairs)) < len(pairs) // 2
    print(
        f"{len(pairs):,} of {len(rated):,} pairs, {is_first.sum():,} of them to choose on, {n_words:,} unknown words;"
    )
    print(f"{len(both) - len(vectors):,} words added\n")
    print_header(*split_cells(HEADERS["attributes-unknown"]))
    similar = {name: cosines(space[left], space[right]) for name, space in spaces.items()}
    first = next(iter(similar.values()))
    for name, values in similar.items():
        cells: list[str | float] = []
        for part in (is_first, ~is_first):
            new, old, ratings = values[part], first[part], np.array(gold)[part]
            cells += [100 * float(spearman(new, ratings)), "" if values is first else bootstrap(new, old, ratings)]
        print_row(name, *cells)
    print()
    print_header(*split_cells(HEADERS["attributes-others"]))
    for name in OTHERS:
        print_other(name, vectors, *[*spaces.values()][:3])


def print_other(name: str, vectors: WordVectors, old: WordVectors, *spaces: WordVectors) -> None:
    """Pairs of another dataset with an unknown word, on which nothing was chosen."""
    (rated,) = read_rated_pairs(data_folder() / "similarity" / f"{name}.tsv").values()
    pairs = [pair for pair in rated if all(word in spaces[0] for word in pair[:2])]
    pairs = [pair for pair in pairs if not all(word in vectors for word in pair[:2])]
    left, right, gold = ([pair[side] for pair in pairs] for side in range(3))
    before, ratings = cosines(old[left], old[right]), np.array(gold)
    cells: list[str | float] = [f"{len(pairs):,}", 100 * float(spearman(before, ratings))]
    for space in spaces:
        after = cosines(space[left], space[right])
        cells += [100 * float(spearman(after, ratings)), bootstrap(after, before, ratings)]
    print_row(name, *cells)


def print_known(vectors: WordVectors) -> None:
    print_header(*split_cells(HEADERS["attributes-known"]))
    for weight in (0.0, 0.25, 0.5, 1.0):
        space = add_attributes(vectors, weight)
        scores = score_similarity(space)
        change = format_change(mean_difference(space, vectors, data_folder(), HELD_OUT)) if weight else ""
        print_row(f"{weight:g}", *(scores[name] for name in NAMES), change)


def print_synonyms(vectors: WordVectors) -> None:
    spaces = {f"{weight:g}": add_attributes(vectors, weight) for weight in (0.0, 1.0)}
    task = f"substitution:names=synonyms,times={TIMES},items={ITEMS}"
    report = evaluate(spaces, data_folder(), [task], only=[*DATASETS])
    print_header(*split_cells(HEADERS["attributes-synonyms"]))
    for dataset in DATASETS:
        for weight in spaces:
            found = {
                score.metric: score
                for score in report.scores
                if (score.vectors, score.dataset, score.words) == (weight, dataset, "own")
            }
            names = ("accuracy", "accuracy-substituted", "stability")
            cells = [format_interval(found[name].value, found[name].low, found[name].high) for name in names]
            print_row(dataset, f"{found['accuracy'].n_items:,}", weight, *cells)


def add_attributes(vectors: WordVectors, weight: float) -> WordVectors:
    return LexiconAttributes(weight=weight, without=own_pairs())(vectors) if weight else vectors


def bootstrap(new: np.ndarray, old: np.ndarray, ratings: np.ndarray) -> str:
    rows = np.random.default_rng(0).integers(0, len(ratings), (RESAMPLES, len(ratings)))
    changes = 100 * (spearman(new[rows], ratings[rows]) - spearman(old[rows], ratings[rows]))
    change = 100 * float(spearman(new, ratings) - spearman(old, ratings))
    low, high = np.percentile(changes, [2.5, 97.5])
    return f"{change:+.1f} [{low:.1f}, {high:.1f}]"


if __name__ == "__main__":
    main()
