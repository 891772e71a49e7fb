"""Settings for whole texts, chosen on texts that `recipes/whole_texts.py` does not test on.

    STILLVEC_DATA=... python recipes/development_texts.py data [--out out/development]
    python recipes/development_texts.py scores NAME=VECTORS ... [--data out/development] [--dim N] [--processes 2]
        [--rivals DIR] [--json FILE]

`data` writes a folder for `evaluate`, and `text.txt` in it: the corpora and out/text-mix.txt (recipes/text_mix.py)
without the texts of the folder. In the folder: STS-B's development part; classification of banking77 (a quarter of its
training texts held out), clinc150, emotion and irony (their development parts); clusters of clinc150, of banking77 and
of the first words of Reuters' stories with one of ten labels; retrieval of the rest of a textbook's paragraph by one of
its sentences, and of a caption by another of the same image.

`scores` prints, x 100, the mean over the datasets of each kind of task, and the mean over the four kinds; names may end
in a pattern (`out/settings/*`). `--dim` keeps principal components. A script because no command averages over tasks.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from glob import glob
from pathlib import Path
from typing import Any

import numpy as np
from scores import argument_parser, corpus_files, data_folder, print_header, print_row, split_cells
from text_mix import key
from whole_texts import KINDS, open_rivals

import stillvec
from stillvec import WordVectors
from stillvec.corpus import Corpus
from stillvec.learners.auto import reduce_dimensions

HEADERS = {
    "development-texts": "| vectors | sentences | classification | retrieval | clustering | mean |",
}
TASKS = "sentences,classification:model=linear,retrieval,clustering:seeds=3"
_TEXTS, _QUERIES = 3000, 1000
_TRAINED, _TESTED = 1600, 1500  # texts of a classification set
_NOTHING = {"nothing": WordVectors(["the"], [[1.0]])}  # evaluate wants a set beside an encoder
Labelled = list[tuple[str, str]]


def main() -> None:
    parser = argument_parser(__doc__)
    commands = parser.add_subparsers(required=True)
    data = commands.add_parser("data")
    data.add_argument("--out", type=Path, default=Path("out/development"))
    data.set_defaults(run=write_data)
    scores = commands.add_parser("scores")
    scores.add_argument("vectors", nargs="+", metavar="NAME=VECTORS")
    scores.add_argument("--data", type=Path, default=Path("out/development"))
    scores.add_argument("--dim", type=int)
    scores.add_argument("--processes", type=int, default=2)
    scores.add_argument("--rivals", type=Path)
    scores.add_argument("--json", type=Path)
    scores.set_defaults(run=print_scores)
    options = parser.parse_args()
    options.run(options)


def write_data(options: argparse.Namespace) -> None:
    random.seed(0)
    texts, workshop = (data_folder().resolve().parent / name for name in ("texts", "workshop"))
    sets = {name: read_labelled(texts / f"classification/{name}.train.txt") for name in ("banking77", "clinc150")}
    sets |= {name: read_labelled(texts / f"classification/tweeteval-{name}.train.txt") for name in ("emotion", "irony")}
    held = {"banking77": sets["banking77"][: len(sets["banking77"]) // 4]}
    sets["banking77"] = sets["banking77"][len(held["banking77"]) :]
    held["clinc150"] = read_labelled(texts / "classification/clinc150.val.txt")
    held |= {name: read_labelled(texts / f"classification/tweeteval-{name}.val.txt") for name in ("emotion", "irony")}
    for name, train in sets.items():
        for part, items, most in (("train", train, _TRAINED), ("test", held[name], _TESTED)):
            write_lines(options.out / f"classification/{name}.{part}.txt", (f"{a} {b}" for a, b in items[:most]))
    clusters = {name: held[name] for name in ("clinc150", "banking77")}
    clusters["reuters"] = read_stories(workshop / "multilabel/reuters90.test.txt.gz")
    for name, items in clusters.items():
        write_lines(options.out / f"clustering/{name}.tsv", (f"{a}\t{b}" for a, b in items[:_TEXTS]))
    with (data_folder() / "sentences/stsb.dev.csv").open(encoding="utf-8", newline="") as stream:
        rows = [*csv.reader(stream)]
    (options.out / "sentences").mkdir(parents=True, exist_ok=True)
    with (options.out / "sentences/stsb.dev.csv").open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows(rows)
    pairs = {"paragraphs": draw_paragraphs(), "captions": draw_captions(workshop / "paraphrases/captions.tsv.gz")}
    for name, items in pairs.items():
        write_collection(options.out / "retrieval" / name, items)
    left_out = {key(text) for _, text in held["banking77"]} | {key(" ".join(pair)) for pair in pairs["paragraphs"]}
    left_out |= {key(text) for pair in pairs["captions"] for text in pair}
    write_lines(options.out / "text.txt", (text for text in all_texts() if key(text) not in left_out))


def read_labelled(path: Path) -> Labelled:
    items = [line.split(" ", 1) for line in path.read_text(encoding="utf-8", errors="replace").splitlines()]
    random.shuffle(items)
    return [(label, " ".join(text.split())) for label, text in items if text.strip()]


def read_stories(path: Path) -> Labelled:
    """The first twelve words of stories with one label, of the ten most frequent labels."""
    with gzip.open(path, "rt", encoding="utf-8", errors="replace") as stream:
        items = [line.split(" ", 1) for line in stream]
    single = [(label, " ".join(text.split()[:12])) for label, text in items if "," not in label]
    frequent = {label for label, _ in Counter(label for label, _ in single).most_common(10)}
    return [item for item in single if item[0] in frequent]


def draw_paragraphs() -> list[tuple[str, ...]]:
    """A sentence of a textbook's paragraph, and its other sentences."""
    textbooks = next(file for file in corpus_files() if "textbooks" in file)
    paragraphs = [split_sentences(paragraph) for paragraph in read_paragraphs(textbooks)]
    chosen = [parts for parts in paragraphs if len(parts) > 3 and 60 < sum(map(len, map(str.split, parts))) < 300]
    drawn = []
    for parts in random.sample(chosen, _TEXTS):
        short = [at for at, part in enumerate(parts) if 6 < len(part.split()) < 30] or [*range(len(parts))]
        at = random.choice(short)
        drawn.append((parts[at], " ".join(parts[:at] + parts[at + 1 :])))
    return drawn


def draw_captions(path: Path) -> list[tuple[str, ...]]:
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        return [tuple(line.rstrip("\n").split("\t")[:2]) for line in random.sample([*stream], _TEXTS)]


def read_paragraphs(file: str) -> Iterator[str]:
    return (" ".join(paragraph.split()) for paragraph in Corpus(file).paragraphs())


def split_sentences(paragraph: str) -> list[str]:
    return re.split(r"(?<=[.?!]) (?=[A-Z])", paragraph)


def all_texts() -> Iterator[str]:
    for file in (*corpus_files(), "out/text-mix.txt"):
        yield from read_paragraphs(file)


def write_lines(path: Path, lines: Iterable[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as stream:
        stream.writelines(f"{line}\n" for line in lines)


def write_collection(folder: Path, pairs: list[tuple[str, ...]]) -> None:
    """Collections in BEIR's form, one document right for each query."""
    documents = (json.dumps({"_id": f"d{at}", "title": "", "text": text}) for at, (_, text) in enumerate(pairs))
    write_lines(folder / "corpus.jsonl", documents)
    asked = [*enumerate(pairs)][:_QUERIES]
    write_lines(folder / "queries.jsonl", (json.dumps({"_id": f"q{at}", "text": text}) for at, (text, _) in asked))
    write_lines(folder / "qrels/test.tsv", ["query-id\tcorpus-id\tscore", *(f"q{at}\td{at}\t1" for at, _ in asked)])


def print_scores(options: argparse.Namespace) -> None:
    named = [text.partition("=")[::2] for text in options.vectors]
    sources = {
        f"{name} {Path(path).name}" if pattern != path else name: path
        for name, pattern in named
        for path in sorted(glob(pattern))
    }
    print_header(*split_cells(HEADERS["development-texts"]))
    with ProcessPoolExecutor(options.processes) as pool:
        works = {name: pool.submit(score, str(path), options.data, options.dim) for name, path in sources.items()}
        rows = {name: work.result() for name, work in works.items()}
    if options.rivals is not None:
        sets, encoders = open_rivals(options.rivals)
        rows |= {name: measure({name: vectors}, {}, options.data) for name, vectors in sets.items()}
        rows |= {name: measure(_NOTHING, {name: encoder}, options.data) for name, encoder in encoders.items()}
    for name, by_dataset in sorted(rows.items(), key=lambda item: -average(item[1])["mean"]):
        print_row(name, *(100 * value for value in average(by_dataset).values()))
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")


def score(path: str, data: Path, dim: int | None) -> dict[str, float]:
    vectors = stillvec.load(path)
    if dim is not None:
        vectors = vectors.with_matrix(reduce_dimensions(vectors.matrix, dim))
    return measure({"vectors": WordVectors(vectors.vocabulary, vectors.matrix)}, {}, data)


def measure(sets: dict[str, WordVectors], encoders: dict[str, Any], data: Path) -> dict[str, float]:
    """Task and dataset → score of the one encoder, or else of the one set."""
    report = stillvec.evaluate(sets, data, TASKS, oov="zero", encoders=encoders, resamples=0)
    (name,) = encoders or sets
    scores = [score for score in report.scores if (score.vectors, score.words) == (name, "own")]
    scores = [score for score in scores if KINDS[score.task] == score.metric]
    return {f"{score.task} {score.dataset}": score.value for score in scores}


def average(scores: dict[str, float]) -> dict[str, float]:
    means = {kind: float(np.mean([value for name, value in scores.items() if name.startswith(kind)])) for kind in KINDS}
    return means | {"mean": float(np.mean([*means.values()]))}


if __name__ == "__main__":
    main()
