"""stillvec push VECTORS OWNER/NAME: upload vectors to the Hugging Face Hub."""

import argparse
from pathlib import Path

from stillvec.cli.console import note
from stillvec.cli.flags import add_common
from stillvec.cli.info_command import read_scores
from stillvec.verbs.hub_upload import push_to_hub


def arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add_common(parser, "vectors")
    add("name", metavar="OWNER/NAME", help="the repository on the hub; created if it does not exist")
    add("--private", action="store_true", default=None, help="create a private repository")
    add("--revision", metavar="BRANCH", help="the branch to write to, created if need be (default: main)")
    add("--message", metavar="TEXT", help="message of the commit")
    add("--license", metavar="NAME", help="for the model card, as the hub abbreviates it: apache-2.0, cc-by-4.0, ...")
    add("--language", metavar="CODE", action="append", help="for the model card: en, de, ...; repeatable")
    add("--dataset", metavar="NAME", action="append", help="for the model card: a dataset on the hub; repeatable")
    add("--scores", metavar="FILE", help="for the model card: scores written by stillvec evaluate --json FILE")
    add("--statistics", action="store_true", help="also upload what is needed to merge and to add text")


def run(options: argparse.Namespace) -> int:
    address = push_to_hub(
        options.vectors,
        options.name,
        private=options.private,
        commit_message=options.message,
        revision=options.revision,
        license=options.license,
        language=options.language,
        datasets=options.dataset or (),
        scores=read_scores(Path(options.scores), Path(options.vectors)) if options.scores else (),
        statistics=options.statistics,
    )
    note(f"Uploaded {options.vectors}; load it with stillvec.load({address!r})")
    return 0
