"""Train a parser for `stillvec train --parse` on UD English-EWT, for machines without a spaCy pipeline: out/parser.

    STILLVEC_DATA=... python recipes/parses.py [--epochs N] [--out DIR]
    stillvec train out/sizes/every-16.txt --parse out/parser --method deps,syngcn --min-count 2 --out out/parsed

spaCy's tok2vec and parser without pretrained vectors, on one core. The text is tokenized by spaCy, as ours will be; a
token that differs from the treebank counts as wrong, punctuation is not counted. A script because stillvec trains no
parsers.
"""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

import spacy
from scores import argument_parser, data_folder
from spacy.training import Example
from spacy.training.converters import conllu_to_docs
from spacy.util import compounding, fix_random_seed, minibatch


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path("out/parser"))
    options = parser.parse_args()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    fix_random_seed(0)
    pipeline = spacy.blank("en")
    pipeline.add_pipe("tok2vec", config={"model": {"@architectures": "spacy.HashEmbedCNN.v2", **WIDTHS}})
    pipeline.add_pipe("parser", config={"model": PARSER})
    training, development = (_examples(pipeline, part) for part in ("train", "dev"))
    optimizer = pipeline.initialize(lambda: training)
    sizes, best, begun = compounding(8.0, 64.0, 1.002), 0.0, time.perf_counter()
    for epoch in range(options.epochs):
        random.Random(epoch).shuffle(training)
        optimizer.learn_rate = RATE * (1 - epoch / options.epochs)
        for batch in minibatch(training, size=sizes):
            pipeline.update(batch, sgd=optimizer, drop=0.1)
        with pipeline.use_params(optimizer.averages):
            scores = pipeline.evaluate(development)
            if scores["dep_las"] > best:
                best = scores["dep_las"]
                pipeline.to_disk(options.out)
        shown = f"UAS {100 * scores['dep_uas']:.1f}, LAS {100 * scores['dep_las']:.1f} on ud-ewt.dev"
        print(f"epoch {epoch + 1}: {shown}, {time.perf_counter() - begun:.0f} s", flush=True)


RATE = 0.001
WIDTHS = {"width": 96, "depth": 4, "embed_size": 5000, "window_size": 1, "maxout_pieces": 3, "subword_features": True}
WIDTHS |= {"pretrained_vectors": None}
PARSER = {
    "@architectures": "spacy.TransitionBasedParser.v2", "state_type": "parser", "extra_state_tokens": False,
    "hidden_width": 64, "maxout_pieces": 2, "use_upper": True, "nO": None,
    "tok2vec": {"@architectures": "spacy.Tok2VecListener.v1", "width": 96},
}  # fmt: skip


def _examples(pipeline: Any, part: str) -> list[Example]:
    text = (data_folder() / "tagging" / f"ud-ewt.{part}.conllu").read_text(encoding="utf-8")
    return [Example(pipeline.make_doc(doc.text), doc) for doc in conllu_to_docs(text, n_sents=1, no_print=True)]


if __name__ == "__main__":
    main()
