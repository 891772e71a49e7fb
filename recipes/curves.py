"""Learning curves: the loss and the scores of methods that train, against the number of epochs.

The teacher reads the corpora once and stores the states; every method then trains on the store. After 0, 1, 2, 5, 10,
... epochs the vectors are scored as they are and with three common directions removed: one JSON line each. Scores of
the development sets choose settings, those held out are reported. For example, on a GPU:

    python recipes/curves.py --teacher minilm --out out/curves \
        x2static:settings=gupta-jaggi-2021,epochs=60 context_to_vec:settings=zheng-2022,epochs=60

A script and not a recipe file: vectors are scored while they are trained.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from scores import DEVELOPMENT, HELD_OUT, argument_parser, corpus_files, mean, score_similarity

import stillvec
from stillvec import WordVectors
from stillvec.encoding.context_store import Contexts
from stillvec.learners.accumulators import remove_directions, to_numpy
from stillvec.learners.context_blocks import ContextBlocks
from stillvec.learners.stored_contexts import context_arrays
from stillvec.learners.trained_learner import TrainedLearner
from stillvec.learners.training_loop import train
from stillvec.pipeline.settings import Distillation
from stillvec.statistics import Statistics
from stillvec.teachers.device import resolve_device
from stillvec.vocabulary import Vocabulary

MARKS = (1, 2, 5, 10, 20, 40, 60, 100)  # epochs after which vectors are scored, and the last
STORES = "attentive_skipgram:epochs=0"  # what has the teacher's states stored


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("methods", nargs="+", metavar="METHOD", help="a method that trains, with settings")
    parser.add_argument("--teacher", default="minilm")
    parser.add_argument("--corpus", nargs="+", help="default: the corpora of $STILLVEC_DATA")
    parser.add_argument("--min-count", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1e9, help="most seconds that a method trains")
    parser.add_argument("--out", type=Path, required=True, help="folder of the store and of curves.jsonl")
    options = parser.parse_args()
    vocabulary, stored = store_states(options)
    with (options.out / "curves.jsonl").open("a", encoding="utf-8") as file:
        for method in options.methods:
            for point in draw_curve(method, stored, vocabulary, options.seconds):
                line = json.dumps({"teacher": Path(options.teacher).name, "method": method, **point})
                print(line, flush=True)
                print(line, file=file, flush=True)


def store_states(options: Any) -> tuple[Vocabulary, Statistics]:
    """The vocabulary and the states of the whole corpus; read by the teacher if no earlier run stored them."""
    store = options.out / "store"
    vectors = stillvec.distill(
        *(options.corpus or corpus_files()),
        teacher=options.teacher,
        method=STORES,
        contexts=None,
        min_count=options.min_count,
        context_cache=store,
        statistics=False,
        progress=True,
    )
    (path,) = (path for path in store.iterdir() if path.is_dir())
    return vectors.vocabulary, Statistics(vectors.vocabulary, context_arrays(Contexts.open(path)))


def draw_curve(method: str, stored: Statistics, vocabulary: Vocabulary, limit: float) -> Iterator[dict[str, Any]]:
    (learner,) = Distillation(method=method).learners(0).values()
    assert isinstance(learner, TrainedLearner), f"{method} does not train"
    device = resolve_device("auto")
    blocks = ContextBlocks(stored, device)
    model = learner.model(blocks.count_words(), blocks, stored["stored:contexts"].shape[1], device)
    start = to_numpy(model.result()["vectors"]).copy()
    marks = [epoch for epoch in MARKS if epoch < learner.epochs] + [learner.epochs]
    seconds = 0.0
    yield {"epochs": 0, "seconds": 0.0, "loss": None, **score(model.result()["vectors"], vocabulary)}
    began = time.perf_counter()
    for progress in train(model, blocks, learner.schedule()):
        done = progress.done * learner.epochs / progress.total
        if done < marks[0] and seconds + time.perf_counter() - began < limit:
            continue
        if device.type == "cuda":
            torch.cuda.synchronize()
        seconds += time.perf_counter() - began
        vectors = model.result()["vectors"]
        cosine = torch.cosine_similarity(vectors.cpu(), torch.from_numpy(start)).mean()
        yield {
            "epochs": round(done, 2),
            "seconds": round(seconds, 1),
            "loss": progress.loss,
            "cosine_to_start": round(float(cosine), 4),
            **score(vectors, vocabulary),
        }
        if seconds >= limit:
            return
        marks = [mark for mark in marks if mark > done]
        if not marks:
            return
        began = time.perf_counter()


def score(vectors: torch.Tensor, vocabulary: Vocabulary) -> dict[str, Any]:
    """The means over the development and the held-out sets, and every score, as they are and without directions."""
    matrix = to_numpy(vectors).astype("float32")
    scores: dict[str, Any] = {}
    for directions in (0, 3):
        each = score_similarity(WordVectors(vocabulary, remove_directions(matrix.copy(), vocabulary, directions)))
        scores[f"directions={directions}"] = {
            "development": round(mean(each, DEVELOPMENT), 1),
            "held_out": round(mean(each, HELD_OUT), 1),
            "all": round(mean(each), 1),
            **{name: round(value, 1) for name, value in each.items()},
        }
    return scores


if __name__ == "__main__":
    main()
