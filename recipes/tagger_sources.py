"""Several sets of vectors in one tagger, by attention (Lange, Strötgen & Adel 2020).

    STILLVEC_WORKSHOP=... python recipes/tagger_sources.py words DATASET OUT   # its words, and its training text
    STILLVEC_WORKSHOP=... python recipes/tagger_sources.py DATASET NAME=VECTORS NAME=VECTORS ... [--scores FILE.json]

DATASET is one of tagging/, such as conll2002-es. F1 of spans on the test part, mean and standard deviation over seeds,
and the difference from the single set that is best on the development part, with a paired bootstrap interval over
sentences (of counts summed over seeds). "twice" is attention over the best set and itself; with one set, only this is
added. A script because `fit` keeps one seed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scores import argument_parser, format_interval, open_vectors, print_header, print_row, split_cells, write_json

from stillvec import WordVectors
from stillvec.heads.labelled_data import LabelledData, read_data
from stillvec.heads.lookup import Lookup
from stillvec.heads.source_attention import join_sources
from stillvec.heads.tagger_head import Tagger, list_tags, measure_tags, number_tags
from stillvec.heads.treebank import count_spans
from stillvec.numerics.array_types import Floats
from stillvec.progress import drain

HEADERS = {"tagger-sources": "| dataset | vectors | dimensions | development | test | change |"}
RESAMPLES = 2000


class Result(NamedTuple):
    dev: float
    test: Floats  # (seeds,)
    counts: Floats  # (n, 3) correct, predicted and gold spans of test sentences, over all seeds


def read(dataset: str) -> LabelledData:
    return read_data(Path(os.environ["STILLVEC_WORKSHOP"]) / "tagging" / dataset, "tokens")


def write_words(dataset: str, out: Path) -> None:
    """All words, one per line, and the training sentences."""
    data = read(dataset)
    out.mkdir(parents=True, exist_ok=True)
    words = dict.fromkeys(word for sentence in data.items for word in sentence)
    (out / f"{dataset}.words.txt").write_text("\n".join(words) + "\n", "utf-8")
    text = "\n".join(" ".join(data.items[row]) for row in np.sort(np.concatenate([data.train, data.dev])).tolist())
    (out / f"{dataset}.txt").write_text(text + "\n", "utf-8")


def select_words(vectors: WordVectors, words: Sequence[str]) -> WordVectors:
    """The vectors of these words, composed from n-grams where the set can do that."""
    lookup = Lookup(vectors, "skip" if vectors.subwords is None else "subword")
    rows = lookup.rows(words)
    known = rows != -1
    return WordVectors([word for word, has in zip(words, known, strict=True) if has], lookup.take(rows[known]))


def train(sets: Sequence[WordVectors], widths: Sequence[int], data: LabelledData, options: Any) -> list[Result]:
    """Of taggers of several sets of vectors, which make their steps together."""
    from stillvec.heads.networks import NetworkSettings, PaddedTexts, TaggerNetworks
    from stillvec.teachers.device import resolve_device

    gold, kind = number_tags(data), Tagger(epochs=options.epochs)
    sequences = [Lookup(vectors).read_tokens(data.items) for vectors in sets]
    networks = [
        NetworkSettings(number, seed, kind.rate) for number in range(len(sets)) for seed in range(options.seeds)
    ]
    padded = PaddedTexts(sequences, resolve_device("auto"))
    group = TaggerNetworks(padded, gold, networks, names=data.names, widths=widths)

    def measure() -> Floats:
        return np.array([measure_tags(data, gold, data.dev, said) for said in group.predict_words(data.dev)])

    quality = drain(group.train_best(data.train, kind.epochs, measure, decay=1 / 3))
    said = group.predict_words(data.test)
    lengths = np.array([len(data.items[row]) for row in data.test.tolist()])
    text = np.repeat(np.arange(len(data.test)), lengths)
    right = gold[np.isin(sequences[0].text, data.test)]
    counts = np.array([count_spans(right, tags, list_tags(data), text, len(data.test)) for tags in said])
    of_set = np.split(counts, len(sets)), np.split(quality, len(sets))
    return [
        Result(float(dev.mean()), np.array([f1(part.sum(axis=0)) for part in own]), own.sum(axis=0))
        for own, dev in zip(*of_set, strict=True)
    ]


def f1(totals: Floats) -> float:
    return float(2 * totals[0] / max(totals[1] + totals[2], 1))


def compare(found: Result, best: Result) -> str:
    """The change of F1 with its interval."""
    random, changes = np.random.default_rng(0), []
    for _ in range(RESAMPLES):
        rows = random.integers(len(best.counts), size=len(best.counts))
        changes.append(f1(found.counts[rows].sum(axis=0)) - f1(best.counts[rows].sum(axis=0)))
    value = f1(found.counts.sum(axis=0)) - f1(best.counts.sum(axis=0))
    return ("+" if value >= 0 else "") + format_interval(value, *np.percentile(changes, [2.5, 97.5]))


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("dataset")
    parser.add_argument("sources", nargs="+", metavar="NAME=VECTORS")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--limit", type=int, default=100_000, help="sentences of each part")
    parser.add_argument("--scores", type=Path)
    if sys.argv[1] == "words":
        write_words(sys.argv[2], Path(sys.argv[3]))
        return
    options = parser.parse_args()
    data = read(options.dataset)
    parts = {part: getattr(data, part)[: options.limit] for part in ("train", "dev", "test")}
    data = replace(data, **parts)
    words = [*dict.fromkeys(word for sentence in data.items for word in sentence)]
    paths: Mapping[str, str] = dict(pair.split("=", 1) for pair in options.sources)
    sets = {name: select_words(open_vectors(path), words) for name, path in paths.items()}
    print_header(*split_cells(HEADERS["tagger-sources"]))
    results: dict[str, Result] = {}

    def run(named: Mapping[str, WordVectors], widths: Sequence[int] = ()) -> None:
        for name, result in zip(named, train([*named.values()], widths, data, options), strict=True):
            results[name] = result
            best = results[max(results.keys() & sets.keys(), key=lambda each: results[each].dev)]
            change = "" if name in sets else compare(result, best)
            spread = f" ± {100 * result.test.std(ddof=1):.1f}" if len(result.test) > 1 else ""
            cells = f"{100 * result.dev:.1f}", f"{100 * result.test.mean():.1f}{spread}", change
            print_row(options.dataset, name, str(named[name].dim), *cells)
        if options.scores:
            write_json(options.scores, {each: {"dev": r.dev, "test": r.test.tolist()} for each, r in results.items()})

    run(sets)
    best = sets[max(sets, key=lambda name: results[name].dev)]
    if len(sets) > 1:
        together = join_sources([*sets.values()])
        run({"all, attention": together}, [each.dim for each in sets.values()])
        run({"all, concatenated": together})
    run({"the best one twice, attention": join_sources([best, best])}, [best.dim, best.dim])


if __name__ == "__main__":
    main()
