"""stillvec run: a recipe, a whole experiment in a TOML file."""

import argparse

from stillvec.cli.console import is_finished, note, report_vectors
from stillvec.cli.distill_command import print_reading
from stillvec.cli.evaluate_command import legend, show_report
from stillvec.cli.flags import add_cache, add_common
from stillvec.cli.progress_bar import show_events
from stillvec.cli.terminal_text import warn
from stillvec.verbs.recipe import check_recipe
from stillvec.verbs.recipe import run as run_recipe
from stillvec.verbs.recipe_steps import Outcome


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("recipe", metavar="RECIPE.toml", help="see docs/commands.md")
    add_cache(parser, "methods that train cache the teacher's contexts")
    parser.add_argument("--resume", action="store_true", help="continue from the last checkpoint of an interrupted run")
    for flag, what in (("--unsafe-weights", "load pickled weights"), ("--remote-code", "run code of the teacher")):
        parser.add_argument(flag, action="store_true", help=f"allow the recipe to {what}")
    parser.add_argument("--dry-run", action="store_true", help="check the recipe and list its steps; run nothing")
    add_common(parser, "--force", "--quiet")


def run(options: argparse.Namespace) -> int:
    names = ("context_cache", "resume", "force", "unsafe_weights", "remote_code")
    settings = {name: getattr(options, name) for name in names}
    if options.dry_run:
        for number, step in enumerate(check_recipe(options.recipe, **settings), 1):
            note(f"{number}. {step}")
        return 0
    with show_events(quiet=options.quiet) as listener:
        outcomes = run_recipe(options.recipe, **settings, progress=listener, finished=_print_outcome)
    errors = [error for outcome in outcomes if outcome.report is not None for error in outcome.report.errors]
    for error in errors:
        warn(f"stillvec: {error}")
    return 1 if errors else 0


def _print_outcome(outcome: Outcome) -> None:
    for path, vectors in outcome.vectors.items():
        report_vectors(path, vectors)
    if outcome.step.verb == "distill" and not any(map(is_finished, outcome.vectors)):
        print_reading(dict(outcome.vectors))
    if outcome.step.verb == "convert" and not is_finished(outcome.step.target or ""):
        note(f"Wrote {outcome.step.target}")
    if outcome.report is not None:
        show_report(outcome.report)
        note(legend({score.task for score in outcome.report.scores}))
