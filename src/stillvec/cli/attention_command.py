"""stillvec attention FOLDER SENTENCE: what the words of a sentence attend to, as a table and a heat map."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from stillvec.cli.console import note, show, table
from stillvec.cli.figures import check_drawable, draw_attention
from stillvec.cli.flags import add_json
from stillvec.cli.progress_bar import show_warnings

if TYPE_CHECKING:
    from stillvec.pipeline.sentence_attention import Attention


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="FOLDER", help="a result of attentive_skipgram")
    parser.add_argument("sentence", metavar="SENTENCE", help="a sentence in plain text")
    parser.add_argument("--teacher", metavar="DIR", help="the teacher (default: as recorded in the manifest)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write a heat map, .svg or .png")
    add_json(parser, words_follow=False)


def run(options: argparse.Namespace) -> int:
    from stillvec.pipeline.sentence_attention import attention  # needs torch, which --help does without

    if options.out is not None:
        check_drawable(options.out)
    with show_warnings():
        result = attention(options.folder, options.sentence, options.teacher)
    weights = [[None if np.isnan(weight) else weight for weight in row] for row in result.weights.tolist()]
    facts = {"sentence": options.sentence, "words": result.words, "known": result.known, "weights": weights}
    show(facts, options.json, lambda: _print_weights(result, weights))
    if options.out is not None:
        draw_attention(result, options.out)
        if options.json != "-":
            note(f"Wrote {options.out}")
    return 0


def _print_weights(result: "Attention", weights: list[list[float | None]]) -> None:
    cells = [["" if weight is None else f"{100 * weight:3.0f}" for weight in row] for row in weights]
    rows = [[word, *row] for word, row in zip(result.words, cells, strict=True)]
    table("attention of each word (row), in percent", ("", *result.words), rows)
    unknown = [word for word, known in zip(result.words, result.known, strict=True) if not known]
    if unknown:
        note(f"Out of vocabulary, so without attention: {', '.join(unknown)}.")
