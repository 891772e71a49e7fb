"""stillvec convert VECTORS OUT: vectors from one file format to another, or a head to ONNX."""

import argparse
from pathlib import Path

from stillvec.cli.console import note, report_vectors
from stillvec.cli.flags import add_common
from stillvec.cli.progress_bar import show_warnings
from stillvec.errors import UsageError
from stillvec.formats import FORMATS, format_by_ending
from stillvec.formats.npy import words_file
from stillvec.heads.head_folder import is_head, load_head
from stillvec.heads.onnx_head import write_onnx
from stillvec.verbs.transformation import convert


def arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add_common(parser, "vectors")
    add("out", metavar="OUT", help="the file or folder to write; .gz, .bz2 and .xz compress")
    add("--format", "--to", metavar="NAME", help=f"{', '.join(FORMATS)} (default: by the ending of OUT)")
    add("--from", dest="source_format", metavar="NAME", help="the format of VECTORS (default: detected)")
    add("--replace-space", metavar="CHAR", help="replace spaces inside words by CHAR")
    add("--contexts", action="store_true", help="write the context table of stillvec train --context-table instead")
    add_common(parser, "--force")


def run(options: argparse.Namespace) -> int:
    out = Path(options.out)
    if is_head(options.vectors):
        return _convert_head(options, out)
    name = options.format or format_by_ending(out)
    settings = {name: getattr(options, name) for name in ("source_format", "replace_space", "contexts", "force")}
    with show_warnings():
        vectors = convert(options.vectors, out, format=name, **settings)
    files = [*out.rglob("*")] if out.is_dir() else [out, words_file(out)] if name == "npy" else [out]
    size = sum(file.stat().st_size for file in files if file.is_file())
    report_vectors(out, vectors, f", {size:,} bytes, format {name}")
    return 0


def _convert_head(options: argparse.Namespace, out: Path) -> int:
    name = options.format or ("onnx" if out.suffix == ".onnx" else out.suffix or "no ending")
    if name != "onnx":
        cure = "heads are written as OUT.onnx or with --to onnx"
        raise UsageError.expected("onnx", name, where="format of a head", cure=cure)
    head = load_head(options.vectors)
    with show_warnings():
        write_onnx(head, out, force=options.force)
    note(f"Wrote {out}: head {head.name}, {len(head.labels):,} labels, {out.stat().st_size:,} bytes, format onnx")
    return 0
