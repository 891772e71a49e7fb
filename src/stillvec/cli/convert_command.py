"""stillvec convert VECTORS OUT: vectors from one file format to another."""

from __future__ import annotations

import argparse
from pathlib import Path

from stillvec.cli import console
from stillvec.errors import UsageError
from stillvec.formats import FORMATS, format_by_ending, load, save
from stillvec.formats.npy import words_file
from stillvec.vectors import WordVectors
from stillvec.vocabulary import Vocabulary


def arguments(parser: argparse.ArgumentParser) -> None:
    known = ", ".join(FORMATS)
    parser.add_argument("vectors", metavar="VECTORS", help="a folder of vectors, or a file in any format we read")
    parser.add_argument("out", metavar="OUT", help="where to write; .gz, .bz2 and .xz compress")
    parser.add_argument("--format", "--to", metavar="NAME", help=f"{known} (default: by the ending of OUT)")
    parser.add_argument("--from", dest="source", metavar="NAME", help="the format of VECTORS (default: by looking)")
    parser.add_argument("--replace-space", metavar="CHAR", help="write this for a space in a word")


def run(options: argparse.Namespace) -> int:
    out = Path(options.out)
    name = options.format or format_by_ending(out)
    FORMATS[name]  # a wrong name is said before a large file is read
    vectors = load(options.vectors, format=options.source)
    if options.replace_space is not None:
        vectors = _without_spaces(vectors, options.replace_space)
    save(vectors, out, format=name)
    size = sum(file.stat().st_size for file in _written(out, name))
    console.note(f"wrote {out}: {len(vectors):,} words x {vectors.dim}, {size:,} bytes, format {name}")
    return 0


def _written(out: Path, name: str) -> list[Path]:
    if out.is_dir():
        return [file for file in out.rglob("*") if file.is_file()]
    return [out, words_file(out)] if name == "npy" else [out]


def _without_spaces(vectors: WordVectors, char: str) -> WordVectors:
    if not char or set(char) & set(" \t\n"):
        raise UsageError(f"--replace-space takes what to write for a space, as in --replace-space _, not {char!r}.")
    old = vectors.vocabulary
    words = [word.replace(" ", char) for word in old.words]
    for word, before in zip(words, old.words, strict=True):
        if word != before and word in old.index:
            raise UsageError(f"Written with {char!r}, {before!r} is the other word {word!r}; give another character.")
    vocabulary = Vocabulary(words, old.counts.tolist(), lowercase=old.lowercase)
    return WordVectors(vocabulary, vectors.matrix, subwords=vectors.subwords, provenance=vectors.provenance)
