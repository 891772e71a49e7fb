"""stillvec run: a recipe, a whole run in a TOML file."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from stillvec.cli import evaluate
from stillvec.cli.distill import summary
from stillvec.cli.progress import watch
from stillvec.cli.show import note
from stillvec.corpus import Corpus
from stillvec.errors import CallError
from stillvec.pipeline import Run, read_recipe
from stillvec.pipeline.distilling import check_output, saved_steps


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("recipe", metavar="RECIPE.toml")
    parser.add_argument("--store", metavar="DIR", help="where methods that train keep the teacher's contexts")
    parser.add_argument("--resume", action="store_true", help="go on from the last checkpoint of the training")
    parser.add_argument("--quiet", action="store_true", help="no progress")


def run(options: argparse.Namespace) -> int:
    recipe = read_recipe(options.recipe)
    judging = None if recipe.evaluate is None else _judging(recipe.evaluate, options.recipe)
    corpus = Corpus(*recipe.corpus, field=recipe.field) if recipe.corpus else None
    work = Run(recipe.settings, corpus, recipe.add_to, store=options.store, resume=options.resume)
    check_output(recipe.out, work)
    watch(saved_steps(work, recipe.out, statistics=recipe.statistics), quiet=options.quiet)
    for path in work.written.values():
        note(f"Wrote {path}")
    summary(work)
    if judging is None:
        return 0
    judging.vectors = [str(path) for path in work.written.values()]
    return evaluate.run(judging)


def _judging(given: dict[str, Any], recipe: str) -> argparse.Namespace:
    """The options of `stillvec evaluate`, so that a mistake in them is told before the work."""
    parser = argparse.ArgumentParser(prog=f"stillvec run: [evaluate] of {recipe}", exit_on_error=False)
    evaluate.arguments(parser)
    words = ["the result"]
    for key, value in given.items():
        words += [f"--{key}", ",".join(map(str, value)) if isinstance(value, list) else str(value)]
    try:
        options = parser.parse_args(words)
    except argparse.ArgumentError as error:
        raise CallError(f"In [evaluate] of {recipe}, {error.message}.") from None
    if options.data is not None and not Path(options.data).is_dir():
        raise CallError(f"[evaluate] of {recipe} names the data {options.data}, which is not a folder.")
    return options
