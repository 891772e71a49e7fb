"""stillvec convert VECTORS OUT: vectors from one file format to another."""

import argparse
from pathlib import Path

from stillvec.cli import console
from stillvec.formats import FORMATS, format_by_ending
from stillvec.formats.npy import words_file
from stillvec.verbs.transformation import convert


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("vectors", metavar="VECTORS", help="a folder of vectors, or a file in any supported format")
    parser.add_argument("out", metavar="OUT", help="the file or folder to write; .gz, .bz2 and .xz compress")
    parser.add_argument(
        "--format", "--to", metavar="NAME", help=f"{', '.join(FORMATS)} (default: by the ending of OUT)"
    )
    parser.add_argument("--from", dest="source", metavar="NAME", help="the format of VECTORS (default: recognised)")
    parser.add_argument("--replace-space", metavar="CHAR", help="write this for a space inside a word")


def run(options: argparse.Namespace) -> int:
    out = Path(options.out)
    name = options.format or format_by_ending(out)
    vectors = convert(
        options.vectors, out, format=name, source_format=options.source, replace_space=options.replace_space
    )
    size = sum(file.stat().st_size for file in _list_files(out, name))
    console.note(f"wrote {out}: {len(vectors):,} words x {vectors.dim}, {size:,} bytes, format {name}")
    return 0


def _list_files(out: Path, name: str) -> list[Path]:
    if out.is_dir():
        return [file for file in out.rglob("*") if file.is_file()]
    return [out, words_file(out)] if name == "npy" else [out]
