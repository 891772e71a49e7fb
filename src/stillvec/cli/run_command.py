"""stillvec run: a recipe, a whole experiment in a TOML file."""

import argparse
import sys

from stillvec.cli.console import note
from stillvec.cli.distill_command import print_reading
from stillvec.cli.evaluate_command import legend
from stillvec.cli.evaluation_table import show_report
from stillvec.cli.progress_bar import show_events
from stillvec.cli.renamed_flags import add_renamed
from stillvec.verbs.recipe import Outcome
from stillvec.verbs.recipe import run as run_recipe


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("recipe", metavar="RECIPE.toml")
    cache = parser.add_argument(
        "--context-cache", metavar="DIR", help="where methods that train cache the teacher's contexts"
    )
    add_renamed(parser, "--store", cache)
    parser.add_argument("--resume", action="store_true", help="continue from the last checkpoint of an interrupted run")
    parser.add_argument("--quiet", action="store_true", help="no progress")


def run(options: argparse.Namespace) -> int:
    with show_events(quiet=options.quiet) as listener:
        outcomes = run_recipe(
            options.recipe,
            context_cache=options.context_cache,
            resume=options.resume,
            progress=listener,
            finished=_print_outcome,
        )
    errors = [error for outcome in outcomes if outcome.report is not None for error in outcome.report.errors]
    for error in errors:
        print(f"stillvec: {error}", file=sys.stderr)
    return 1 if errors else 0


def _print_outcome(outcome: Outcome) -> None:
    for path, vectors in outcome.vectors.items():
        note(f"Wrote {path}: {len(vectors):,} words x {vectors.dim}")
    if outcome.step.verb == "distill":
        print_reading(dict(outcome.vectors))
    if outcome.step.verb == "convert":
        note(f"Wrote {outcome.step.target}")
    if outcome.report is not None:
        show_report(outcome.report)
        note(legend({score.task for score in outcome.report.scores}))
