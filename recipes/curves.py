"""Learning curves: the loss and the scores of methods that train, against the number of epochs.

A TOML file lists studies: teachers, methods, and the text. The teacher reads the text once and stores its states; every
method then trains on the store, several at a time on a GPU. After 0, 1, 2, 5, 10, ... epochs the vectors are scored as
they are and with three common directions removed: one JSON line each in OUT/curves.jsonl. What is there already is not
trained again. Scores of the development sets choose settings, those held out are reported. On a GPU:

    python recipes/curves.py recipes/studies/curves.toml --out out/curves --jobs 8
    python recipes/curve_tables.py out/curves/curves.jsonl

A script and not a recipe file: vectors are scored while they are trained.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.multiprocessing as multiprocessing
from scores import DEVELOPMENT, HELD_OUT, argument_parser, corpus_files, mean, score_similarity, write_json

import stillvec
from stillvec import WordVectors
from stillvec.encoding.context_store import Contexts
from stillvec.errors import StillvecError
from stillvec.learners.accumulators import remove_directions, to_numpy
from stillvec.learners.context_blocks import ContextBlocks
from stillvec.learners.stored_contexts import context_arrays
from stillvec.learners.trained_learner import TrainedLearner
from stillvec.learners.training_loop import train
from stillvec.pipeline.settings import Distillation
from stillvec.statistics import Array, Statistics
from stillvec.teachers.device import resolve_device
from stillvec.vocabulary import Vocabulary

MARKS = (1, 2, 5, 10, 20, 40, 60, 100)  # epochs after which vectors are scored, and the last
STORES = {  # what has the teacher's output stored: the states of all words, or contexts alone
    "words": "attentive_skipgram:epochs=0,start=random",
    "sentences": "x2static:epochs=0,start=random",
    "paragraphs": "x2static:epochs=0,start=random,context=paragraph,min_sentences=3",
}


@dataclass(frozen=True)
class Study:
    """Methods on one text, for each of several teachers."""

    name: str
    teachers: tuple[str, ...]
    methods: tuple[str, ...]
    store: str = "words"
    corpus: tuple[str, ...] = ()  # default: the corpora of $STILLVEC_DATA
    min_count: int = 5
    save: bool = False  # keep the vectors at the end, in OUT/vectors

    def store_key(self, teacher: str) -> tuple[str, str, tuple[str, ...], int]:
        return (teacher, self.store, self.corpus, self.min_count)


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("studies", type=Path, help="TOML file with [[study]] tables")
    parser.add_argument("--only", nargs="+", help="names of studies")
    parser.add_argument("--teachers", nargs="+", help="names of teachers")
    parser.add_argument("--seconds", type=float, default=1e9, help="most seconds that a method trains")
    parser.add_argument("--jobs", type=int, default=1, help="methods trained at a time (default: 1)")
    parser.add_argument("--store", action="store_true", help="store the teachers' output and stop")
    parser.add_argument("--out", type=Path, required=True, help="folder of the stores and of curves.jsonl")
    options = parser.parse_args()
    studies = [
        Study(**{key: tuple(value) if isinstance(value, list) else value for key, value in table.items()})
        for table in tomllib.loads(options.studies.read_text(encoding="utf-8"))["study"]
        if options.only is None or table["name"] in options.only
    ]
    options.out.mkdir(parents=True, exist_ok=True)
    log = Log(options.out / "curves.jsonl")
    stored: dict[Any, Stored] = {}
    jobs: list[tuple[Study, str, str]] = []
    for study in studies:
        for teacher in study.teachers:
            if options.teachers is None or teacher in options.teachers:
                methods = [method for method in study.methods if not log.has(study.name, teacher, method)]
                key = study.store_key(teacher)
                if methods and key not in stored:
                    stored[key] = load_store(study, teacher, options.out)
                jobs.extend((study, teacher, method) for method in methods)
    if not options.store:
        run_jobs(jobs, stored, log, options)


def run_jobs(jobs: list[tuple[Study, str, str]], stored: Mapping[Any, Stored], log: Log, options: Any) -> None:
    """Train one after another, or in several processes that share what is stored on the GPU."""
    if options.jobs == 1:
        for study, teacher, method in jobs:
            run_curve(study, teacher, method, stored[study.store_key(teacher)], log, options)
        return
    context = multiprocessing.get_context("spawn")
    waiting = context.SimpleQueue()
    for job in [*jobs, *[None] * options.jobs]:
        waiting.put(job)
    parts = {key: (each.vocabulary, each.path, each.blocks.on_gpu) for key, each in stored.items()}
    processes = [context.Process(target=work, args=(waiting, parts, log.path, options)) for _ in range(options.jobs)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    if any(process.exitcode for process in processes):
        raise SystemExit("a process that trained failed (see above); the same command trains what is missing")


def work(
    waiting: Any, parts: Mapping[Any, tuple[Vocabulary, Path, dict[str, torch.Tensor]]], path: Path, options: Any
) -> None:
    """Train one method after another until none is waiting."""
    log, stored = Log(path), {}
    while (job := waiting.get()) is not None:
        study, teacher, method = job
        key = study.store_key(teacher)
        if key not in stored:
            stored[key] = Stored(*parts[key])
        run_curve(study, teacher, method, stored[key], log, options)


class Stored:
    """The vocabulary and the stored output of a teacher, on the GPU where it fits."""

    def __init__(self, vocabulary: Vocabulary, path: Path, on_gpu: dict[str, torch.Tensor] | None = None) -> None:
        self.vocabulary, self.path = vocabulary, path
        self.statistics = Statistics(vocabulary, context_arrays(Contexts.open(path)))
        self.blocks = ContextBlocks(self.statistics, resolve_device("auto"), gpu_share=0.8)
        self.blocks.on_gpu.update(on_gpu or {})
        self.blocks.read(0)

    @property
    def width(self) -> int:
        return int(self.statistics["stored:contexts"].shape[1])


class Log:
    """The points of all curves; those of a curve that ended are not computed again."""

    def __init__(self, path: Path) -> None:
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        points = [json.loads(line) for line in lines]
        self._ended = {(point["study"], point["teacher"], point["method"]) for point in points if point.get("end")}
        self.path = path

    def has(self, study: str, teacher: str, method: str) -> bool:
        return (study, teacher, method) in self._ended

    def write(self, point: dict[str, Any]) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(point) + "\n")
        scores = point["directions=3"]
        facts = (point["study"], point["teacher"], point["method"], f"{point['epochs']} epochs")
        print(*facts, f"{point['seconds']} s", scores["development"], scores["all"], flush=True)


def load_store(study: Study, teacher: str, out: Path) -> Stored:
    """What the teacher made of the whole text; read now if no earlier run stored it."""
    corpus = [os.path.expandvars(path) for path in study.corpus]
    name = "-".join((teacher, study.store, *(Path(path).stem for path in corpus), str(study.min_count)))
    folder = out / "stores" / name
    counted = folder / "vocabulary.json"
    if not counted.exists():
        write_json(counted, store_states(study, teacher, corpus, folder))
    (path,) = (path for path in folder.iterdir() if path.is_dir())
    return Stored(Vocabulary(**json.loads(counted.read_text(encoding="utf-8"))), path)


def store_states(study: Study, teacher: str, corpus: list[str], folder: Path) -> dict[str, Any]:
    """Read the text with the teacher, store its output, and return the vocabulary."""
    vocabulary = stillvec.distill(
        *(corpus or corpus_files()),
        teacher=os.environ.get(f"STILLVEC_{teacher.upper()}", teacher),
        method=STORES[study.store],
        contexts=None,
        min_count=study.min_count,
        context_cache=folder,
        statistics=False,
    ).vocabulary
    return {"words": list(vocabulary.words), "counts": vocabulary.counts.tolist()}


def run_curve(study: Study, teacher: str, method: str, stored: Stored, log: Log, options: argparse.Namespace) -> None:
    facts = {"study": study.name, "teacher": teacher, "method": method}
    try:
        vectors = draw_curve(method, stored, options.seconds, lambda point: log.write(facts | point))
    except StillvecError as error:  # such as a loss that diverged: one curve less
        print(*facts.values(), error, flush=True)
        return
    if study.save:
        settings = method.translate(str.maketrans({":": "-", ",": "-", "=": "_", ".": "_"}))
        stillvec.save(vectors, options.out / "vectors" / f"{teacher}-{settings}")


def draw_curve(method: str, stored: Stored, limit: float, write: Callable[[dict[str, Any]], None]) -> WordVectors:
    """Train, write a point at each mark, and return the vectors."""
    (learner,) = Distillation(method=method).learners(0).values()
    assert isinstance(learner, TrainedLearner), f"{method} does not train"
    blocks, vocabulary = stored.blocks, stored.vocabulary
    model = learner.model(blocks.count_words(), blocks, stored.width, blocks.device)
    start = to_numpy(model.result()["vectors"]).copy()
    write({"epochs": 0, "seconds": 0.0, "loss": None, **score(start, vocabulary)})
    marks = [epoch for epoch in MARKS if epoch < learner.epochs] + [learner.epochs]
    seconds, began = 0.0, time.perf_counter()
    matrix = start
    for progress in train(model, blocks, learner.schedule()):
        done = progress.done * learner.epochs / progress.total
        if done < marks[0] and seconds + time.perf_counter() - began < limit:
            continue
        if blocks.device.type == "cuda":
            torch.cuda.current_stream().synchronize()
        seconds += time.perf_counter() - began
        matrix = to_numpy(model.result()["vectors"]).astype("float32")
        marks = [mark for mark in marks if mark > done]
        end = not marks or seconds >= limit
        cosine = torch.cosine_similarity(torch.from_numpy(matrix), torch.from_numpy(start)).mean()
        facts = {"epochs": round(done, 2), "seconds": round(seconds, 1), "loss": progress.loss, "end": end}
        write({**facts, "cosine_to_start": round(float(cosine), 4), **score(matrix, vocabulary)})
        if end:
            break
        began = time.perf_counter()
    return WordVectors(vocabulary, remove_directions(matrix.copy(), vocabulary, learner.directions or 3))


def score(matrix: Array, vocabulary: Vocabulary) -> dict[str, Any]:
    """The means over the development and the held-out sets, and every score, as they are and without directions."""
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
