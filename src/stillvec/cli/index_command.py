"""stillvec index DOCUMENTS --vectors V --out DIR: index documents for search."""

import argparse

from stillvec.cli.console import is_finished, note
from stillvec.cli.flags import add_common
from stillvec.cli.progress_bar import show_events
from stillvec.corpus.documents import DocumentSettings, read_documents
from stillvec.errors import UsageError
from stillvec.search.index_builder import DocumentCounts
from stillvec.search.passages import DEFAULT_PASSAGES
from stillvec.verbs.indexing import index_documents


def arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    types = "text, JSON lines, CSV, TSV, Parquet, CoNLL-U and Wikipedia dumps, also compressed"
    add("documents", nargs="*", metavar="DOCUMENTS", help=f"folders, files or globs of {types}; '-': standard input")
    add("--vectors", metavar="VECTORS", help="vectors of words; an index contains a copy of them in 8 bits")
    add("--out", metavar="DIR", help="the folder to write (default with --add-to: the same folder)")
    add("--add-to", metavar="DIR", help="add the documents to this index, or replace those of the same ids")
    add("--remove", metavar="ID", action="append", default=[], help="remove a document of --add-to; may be repeated")
    passages = f"a passage is a document, a paragraph or N sentences (default: {DEFAULT_PASSAGES})"
    add("--passages", metavar="document|paragraph|N", help=passages)
    add("--field", metavar="NAME", help="the field or column with the text of a record (default: text)")
    ids = "the field or column with the id (default: id or _id, else file and line)"
    add("--id-field", metavar="NAME", help=ids)
    unit = "a document of plain text is a file or a line (default: a line if one file is given, else a file)"
    add("--documents", dest="unit", choices=("auto", "files", "lines"), default="auto", help=unit)
    add("--approximate", action="store_true", help="build a graph for approximate search, for millions of passages")
    add_common(parser, "--force", "--quiet")


def run(options: argparse.Namespace) -> int:
    if options.out is None and options.add_to is None:
        raise UsageError("--out DIR is required, except with --add-to.", code="missing-out")
    if not options.documents and not (options.add_to and options.remove):
        raise UsageError("Expected documents: a folder, files or a glob.", code="missing-documents")
    settings = DocumentSettings(options.field, options.id_field, options.unit)
    with show_events(quiet=options.quiet) as listener:
        index, counts = index_documents(
            read_documents(options.documents, settings) if options.documents else iter(()),
            options.vectors,
            out=options.out,
            add_to=options.add_to,
            remove=options.remove,
            passages=options.passages,
            approximate=options.approximate,
            force=options.force,
            progress=listener,
            inputs=options.documents,
        )
    if is_finished(options.out or options.add_to):
        return 0
    size = f"{index.n_documents:,} documents, {len(index):,} passages x {index.content.vectors.dim}"
    note(f"Wrote {options.out or options.add_to}: {size}{_describe(counts) if options.add_to else ''}")
    if counts.empty:
        note(f"{counts.empty:,} documents have no text.")
    if index.recall is not None:
        note(f"Approximate search: recall@10 {index.recall:.3f}")
    return 0


def _describe(counts: DocumentCounts) -> str:
    facts = {name: getattr(counts, name) for name in ("added", "replaced", "unchanged", "removed")}
    return f" ({', '.join(f'{number:,} {name}' for name, number in facts.items())})"
