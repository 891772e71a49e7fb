"""stillvec run: a recipe, a whole run in a TOML file."""

from __future__ import annotations

import argparse

from stillvec.cli import evaluate
from stillvec.cli.distill import summary
from stillvec.cli.progress import watch
from stillvec.cli.show import note
from stillvec.corpus import Corpus
from stillvec.pipeline import Run, read_recipe
from stillvec.pipeline.distilling import check_output, save_results


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("recipe", metavar="RECIPE.toml")
    parser.add_argument("--quiet", action="store_true", help="no progress")


def run(options: argparse.Namespace) -> int:
    recipe = read_recipe(options.recipe)
    corpus = Corpus(*recipe.corpus, field=recipe.field) if recipe.corpus else None
    work = Run(recipe.settings, corpus, recipe.add_to)
    check_output(recipe.out, work)
    watch(work.steps(), quiet=options.quiet)
    written = save_results(work, recipe.out)
    for path in written:
        note(f"Wrote {path}")
    summary(work)
    if recipe.evaluate is None:
        return 0
    parser = argparse.ArgumentParser()
    evaluate.arguments(parser)
    words = [str(path) for path in written]
    for key, value in recipe.evaluate.items():
        words += [f"--{key}", str(value)]
    return evaluate.run(parser.parse_args(words))
