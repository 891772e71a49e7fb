"""Vectors for whole texts in several sizes, with only the words of the texts on which they are judged.

    STILLVEC_DATA=... python recipes/text_sizes.py NAME=VECTORS... --dims 256 768 [--also FOLDER...] [--out out/sized]
        [--int8 DIM...]

Writes OUT/NAME-DIM, the first principal components, and OUT/NAME-DIM-ngrams, with n-grams for other words; with
`--int8` also OUT/NAME-DIM-int8, to carry to another machine. The components are those of all words; the n-grams are
fitted to the words that stay. `NAME=A,B` puts two sets side by side, each scaled to a mean squared length of one. The
texts are those of recipes/whole_texts.py and of the folders of `--also`. A script because no command takes the words
of datasets.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import numpy as np
from scores import argument_parser, data_folder
from text_mix import read_texts
from whole_texts import beside

import stillvec
from stillvec import WordVectors
from stillvec.combination.concat import Concat
from stillvec.learners.device_algebra import place, reduce_dimensions

_WORD = re.compile(r"\w+(?:['’]\w+)*")


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("vectors", nargs="+", metavar="NAME=VECTORS")
    parser.add_argument("--dims", type=int, nargs="+", required=True)
    parser.add_argument("--int8", type=int, nargs="*", default=())
    parser.add_argument("--also", type=Path, nargs="*", default=(), metavar="FOLDER")
    parser.add_argument("--out", type=Path, default=Path("out/sized"))
    options = parser.parse_args()
    words = collect_words([data_folder(), beside("texts"), *options.also])
    print(f"{len(words):,} words in the texts", flush=True)
    for name, paths in (text.split("=", 1) for text in options.vectors):
        write_sizes(name, open_sets(paths), words, options)


def collect_words(folders: list[Path]) -> set[str]:
    """The words of all texts that are tested."""
    patterns = ("sentences/stsb.*.csv", "classification/*", "clustering/*", "retrieval/*/*.jsonl")
    return {
        word
        for folder in folders
        for pattern in patterns
        for path in folder.glob(pattern)
        for text in read_texts(path)
        for word in _WORD.findall(text.lower())
    }


def open_sets(paths: str) -> WordVectors:
    sets = [stillvec.load(path) for path in paths.split(",")]
    if len(sets) == 1:
        return sets[0]
    lengths = [float(np.sqrt(np.mean(np.square(vectors.matrix).sum(axis=1)))) for vectors in sets]
    return Concat(weights=tuple(1 / length for length in lengths), unit=False)(*sets)


def write_sizes(name: str, vectors: WordVectors, words: set[str], options: argparse.Namespace) -> None:
    rows = np.array([row for row, word in enumerate(vectors.words) if word in words])
    for dim in sorted({min(dim, vectors.dim) for dim in options.dims}):
        reduced = reduce_dimensions(place(np.asarray(vectors.matrix, np.float32)), dim)
        matrix = np.asarray(reduced.cpu().numpy() if hasattr(reduced, "cpu") else reduced)[rows]
        kept = vectors.vocabulary.like([vectors.words[row] for row in rows], vectors.vocabulary.counts[rows])
        sized = WordVectors(kept, matrix)
        folder = options.out / f"{name}-{dim}"
        stillvec.save(sized, folder, force=True)
        stillvec.save(stillvec.refine(sized, "subword"), options.out / f"{name}-{dim}-ngrams", force=True)
        if dim in options.int8:
            packed = stillvec.refine(sized, "quantize:to=int8")
            stillvec.save(packed, options.out / f"{name}-{dim}-int8", force=True)
        print(f"{folder}: {len(rows):,} of {len(vectors.words):,} words", flush=True)


if __name__ == "__main__":
    main()
