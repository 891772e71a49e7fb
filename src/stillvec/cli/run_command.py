"""stillvec run: a recipe, a whole run in a TOML file."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from stillvec.cli import evaluate_command, train_command
from stillvec.cli.console import note
from stillvec.cli.distill_command import summary
from stillvec.cli.progress_bar import watch
from stillvec.corpus import Corpus
from stillvec.errors import UsageError
from stillvec.pipeline import Distillation, Run, Training, TrainingRun, read_recipe
from stillvec.pipeline.distillation import check_output
from stillvec.pipeline.recipe import Section
from stillvec.pipeline.result_folders import check_folders, saved_steps


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("recipe", metavar="RECIPE.toml")
    parser.add_argument("--store", metavar="DIR", help="where methods that train keep the teacher's contexts")
    parser.add_argument("--resume", action="store_true", help="go on from the last checkpoint of the training")
    parser.add_argument("--quiet", action="store_true", help="no progress")


def run(options: argparse.Namespace) -> int:
    recipe = read_recipe(options.recipe)
    judging = None if recipe.evaluate is None else _judging(recipe.evaluate, options.recipe)
    distilling = None if recipe.distill is None else _distilling(recipe.distill, options)
    training = None if recipe.train is None else _training(recipe.train, options)
    written: list[str] = []
    if recipe.distill is not None and distilling is not None:
        steps = saved_steps(distilling, recipe.distill.out, statistics=recipe.distill.statistics)
        watch(steps, quiet=options.quiet)
        written += map(str, distilling.written.values())
        for path in distilling.written.values():
            note(f"Wrote {path}")
        summary(distilling)
    if recipe.train is not None and training is not None:
        watch(saved_steps(training, recipe.train.out), quiet=options.quiet)
        written += map(str, training.written.values())
        train_command.summary(training)
    if judging is None:
        return 0
    judging.vectors, judging.quiet = written, options.quiet
    return evaluate_command.run(judging)


def _distilling(section: Section[Distillation], options: argparse.Namespace) -> Run:
    corpus = Corpus(*section.corpus, field=section.field) if section.corpus else None
    work = Run(section.settings, corpus, section.add_to, store=options.store, resume=options.resume, out=section.out)
    check_output(section.out, work)
    return work


def _training(section: Section[Training], options: argparse.Namespace) -> TrainingRun:
    corpus = Corpus(*section.corpus, field=section.field)
    work = TrainingRun(section.settings, corpus, store=options.store, resume=options.resume)
    check_folders(section.out, work.names)
    return work


def _judging(given: dict[str, Any], recipe: str) -> argparse.Namespace:
    """The options of `stillvec evaluate`, so that a mistake in them is told before the work."""
    parser = argparse.ArgumentParser(prog=f"stillvec run: [evaluate] of {recipe}", exit_on_error=False)
    evaluate_command.arguments(parser)
    words = ["the result"]
    for key, value in given.items():
        words += [f"--{key}", ",".join(map(str, value)) if isinstance(value, list) else str(value)]
    try:
        options = parser.parse_args(words)
    except argparse.ArgumentError as error:
        raise UsageError(f"In [evaluate] of {recipe}, {error.message}.") from None
    if options.data is not None and not Path(options.data).is_dir():
        raise UsageError(f"[evaluate] of {recipe} names the data {options.data}, which is not a folder.")
    return options
