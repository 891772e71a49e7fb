"""stillvec glossary CORPUS... --out FILE.tsv: terms and their definitions, for the task `glossary`."""

import argparse

from stillvec.cli import console
from stillvec.cli.flags import add_common
from stillvec.verbs.glossary_extraction import extract_glossary

_EXAMPLES = 3  # of each form


def arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("corpus", nargs="+", metavar="CORPUS", help="folders, files or globs of Markdown pages or other text")
    add("--out", metavar="FILE.tsv", required=True, help="the glossary to write, such as own/glossaries/mine.tsv")
    add_common(parser, "--force")


def run(options: argparse.Namespace) -> int:
    glossary = extract_glossary(*options.corpus, out=options.out, force=options.force)
    rows = []
    for form, count in glossary.counts.items():
        entries = [entry for entry in glossary if entry.form == form][:_EXAMPLES]
        for number, entry in enumerate(entries):
            rows.append(
                (form if number == 0 else "", f"{count:,}" if number == 0 else "", entry.term, entry.definition)
            )
    console.table("terms found, with examples", ("form", "terms", "term", "definition"), rows)
    console.note(f"Wrote {options.out}: {len(glossary):,} terms. Look through it and delete what is not a definition.")
    return 0
