"""stillvec attention FOLDER SENTENCE: what the words of a sentence attend to, as a table and a heat map."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from stillvec.cli.attention_figure import check_drawable, draw_attention
from stillvec.cli.console import note, table
from stillvec.cli.progress_bar import show_warnings
from stillvec.files import atomic_file

if TYPE_CHECKING:
    from stillvec.pipeline import Attention


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="FOLDER", help="a result of attentive_skipgram")
    parser.add_argument("sentence", metavar="SENTENCE")
    parser.add_argument("--teacher", metavar="DIR", help="where its teacher is (default: where it was)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="draw a heat map: .svg or .png")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write words and weights")


def run(options: argparse.Namespace) -> int:
    from stillvec.pipeline import attention  # needs torch, which --help does without

    if options.out is not None:
        check_drawable(options.out)
    with show_warnings():
        found = attention(options.folder, options.sentence, options.teacher)
    rows = [[word, *map(_percent, row)] for word, row in zip(found.words, found.weights.tolist(), strict=True)]
    table("percent of the attention of the word in front", ("", *found.words), rows)
    unknown = [word for word, known in zip(found.words, found.known, strict=True) if not known]
    if unknown:
        note(f"The vectors lack {', '.join(unknown)}: nobody attends there, though the teacher reads it.")
    if options.json is not None:
        with atomic_file(options.json) as part:
            part.write_text(json.dumps(_plain(options.sentence, found), ensure_ascii=False) + "\n", "utf-8")
    if options.out is not None:
        draw_attention(found, options.out)
        note(f"{options.out}: drawn")
    return 0


def _percent(weight: float) -> str:
    return "" if np.isnan(weight) else f"{100 * weight:3.0f}"


def _plain(sentence: str, found: Attention) -> dict[str, object]:
    weights = [[None if np.isnan(each) else each for each in row] for row in found.weights.tolist()]
    return {"sentence": sentence, "words": found.words, "known": found.known, "weights": weights}
