"""Small language models of one's own text alone: tables of docs/howto/adapt.md and docs/papers/16-all-languages.md.

    STILLVEC_DATA=... python recipes/new_models.py english [--steps 4000] [--every 1] [--words 20000]
    STILLVEC_DATA=... STILLVEC_LANGUAGES=... python recipes/new_models.py german [EmbeddingGemma=TEACHER] [--steps 3000]
        [--parts 1 8] [--words 20000]
    STILLVEC_LANGUAGES=... python recipes/new_models.py skipgram [--parts 1 8]

`english`: the tokenizer and the model of all corpora, with the time of each part, the perplexity, and the scores of
what is distilled from it on the same text.

`german` (after Wu & Dredze 2020): models of German novels alone, and of these with as many English words (novels and
textbooks), both with the same number of steps, on all of the novels and on one part of eight (in the text of two
languages German is repeated, so that it is half). Beside them a multilingual teacher; `skipgram` has the same of
skip-gram. Tags of German words (PUD) are by a BiLSTM-CRF on the teacher's frozen states; the similarity is of words
distilled on the German text, of pairs whose words are in this text five times.

Size of the models: `--layers --dim --heads --vocabulary`. `--scores` appends results to a file of JSON lines as they
are found. A script because it makes the texts.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path
from typing import Any

from languages import data as language_folder
from pruned_teachers import read_rated_words
from scores import (
    argument_parser,
    corpus_files,
    data_folder,
    format_interval,
    mean,
    print_header,
    print_row,
    score_similarity,
    split_cells,
)

import stillvec
from stillvec import WordVectors
from stillvec.adaptation.model_folder import read_adaptation
from stillvec.corpus import Corpus

HEADERS = {
    "new-english": "| method | mean of 8 | RG-65 | WordSim-353 | SimLex-999 | MEN | SimVerb | RareWord |",
    "new-german": "| novels | vectors of | tags, accuracy | SimLex-de | WordSim-de | pairs |",
}
NAMES = ("rg65", "ws353", "simlex999", "men3000", "simverb3500", "rareword")
GERMAN = ("de-simlex999", "de-ws353")
MIN_COUNT = 5  # of skip-gram
FOLDER = Path("out/new")


def main() -> None:
    parser = argument_parser(__doc__)
    commands = parser.add_subparsers(required=True)
    for name, run, n_steps in (
        ("english", make_english, 4000),
        ("german", compare_german, 3000),
        ("skipgram", train_skipgram, 0),
    ):
        command = commands.add_parser(name)
        command.set_defaults(run=run)
        command.add_argument("teachers", nargs="*", metavar="NAME=TEACHER")
        sizes = {
            "steps": n_steps,
            "every": 1,
            "words": 20_000,
            "layers": 6,
            "dim": 384,
            "heads": 6,
            "vocabulary": 16_000,
        }
        for key, value in sizes.items():
            command.add_argument(f"--{key}", type=int, default=value)
        command.add_argument("--batch", type=int, default=128)
        command.add_argument("--parts", type=int, nargs="+", default=[1, 8])
        command.add_argument("--threads", type=int)
        command.add_argument("--scores", type=Path)
    options = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    options.run(options)


def make_model(text: Path, name: str, options: argparse.Namespace) -> tuple[str, dict[str, Any]]:
    """A new model of a text: its folder, and what its manifest and the clock say."""
    begun = time.perf_counter()
    size = ",".join(f"{key}={getattr(options, key)}" for key in ("layers", "dim", "heads", "vocabulary", "batch"))
    step = f"pretrain:text={text},{size},epochs=1000,max_steps={options.steps}"
    folder = stillvec.adapt("new", step, out=FOLDER / name, force=True)
    facts = read_adaptation(folder)["adapted"][-1]["facts"] | {"seconds": time.perf_counter() - begun}
    write(options, name, facts)
    return str(folder), facts


def write(options: argparse.Namespace, *values: Any) -> None:
    if options.scores is not None:
        with options.scores.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(values, ensure_ascii=False) + "\n")


def make_english(options: argparse.Namespace) -> None:
    text = FOLDER / "english.txt"
    text.write_text("\n".join(islice(read_english(), None, None, options.every)) + "\n", encoding="utf-8")
    folder, facts = make_model(text, "english", options)
    begun = time.perf_counter()
    spaces = stillvec.distill_all(
        text, teacher=folder, method="auto,aggregate,additive", max_words=options.words,
        include_words=read_rated_words([data_folder()]), statistics=False, threads=options.threads,
    )  # fmt: skip
    seconds = facts["seconds"], time.perf_counter() - begun
    write(options, "seconds", *seconds)
    print(f"{facts['tokens']:,} tokens, {facts['steps']:,} steps in {seconds[0]:.0f} s with the tokenizer; ", end="")
    print(f"perplexity {facts['perplexity']:.1f}; distilled in {seconds[1]:.0f} s\n")
    print_header(*split_cells(HEADERS["new-english"]))
    for method, vectors in spaces.items():
        scores = score_similarity(vectors)
        write(options, method, scores)
        print_row(f"`{method}`", mean(scores), *(scores.get(name, "–") for name in NAMES))


def read_english() -> Iterator[str]:
    return (" ".join(paragraph.split()) for paragraph in Corpus(*corpus_files()).paragraphs())


def read_german() -> list[str]:
    novels = Corpus(*sorted((language_folder() / "corpora").glob("de-*")))
    return [" ".join(paragraph.split()) for paragraph in novels.paragraphs()]


def compare_german(options: argparse.Namespace) -> None:
    words = read_rated_words([language_folder()])
    print_header(*split_cells(HEADERS["new-german"]))
    given = dict(pair.split("=", 1) for pair in options.teachers)
    tags: dict[str, str] = {}
    for part in options.parts:
        name, text = name_part(part), write_german(part, options)
        both = FOLDER / f"german-english-{part}.txt"
        mix_texts(text.read_text("utf-8").splitlines(), options.every, both)
        teachers = {
            "German": make_model(text, f"german-{part}", options)[0],
            "German and English": make_model(both, f"german-english-{part}", options)[0],
        } | given
        for label, teacher in teachers.items():
            if label not in given or part == options.parts[0]:
                tags[label] = score_tags(teacher)
            spaces = stillvec.distill_all(
                text, teacher=teacher, method="auto,aggregate", language="de", max_words=options.words,
                include_words=words, statistics=False, threads=options.threads,
            )  # fmt: skip
            for method, vectors in spaces.items():
                cells = [tags[label], *score_pairs(vectors)]
                write(options, name, label, method, cells)
                print_row(name, f"{label}, `{method}`", *cells)


def train_skipgram(options: argparse.Namespace) -> None:
    """The rows of skip-gram, apart because gensim is not on every machine with a GPU."""
    for part in options.parts:
        text = write_german(part, options)
        print_row(name_part(part), "skip-gram", "–", *score_pairs(stillvec.train(text, threads=options.threads)))


def name_part(part: int) -> str:
    return "all" if part == 1 else f"one of {part}"


def write_german(part: int, options: argparse.Namespace) -> Path:
    text = FOLDER / f"german-{part}.txt"
    text.write_text("\n".join(read_german()[:: options.every * part]) + "\n", encoding="utf-8")
    return text


def mix_texts(german: list[str], every: int, path: Path) -> None:
    """German paragraphs, repeated, and English ones in turn: as many words of each."""
    n_words = {"de": 0, "en": 0}
    total = sum(len(text.split()) for text in read_german()[::every])
    own = (german[number % len(german)] for number in count())
    other = islice(read_english(), None, None, every)
    with path.open("w", encoding="utf-8") as stream:
        while n_words["de"] < total:
            language = min(n_words, key=n_words.__getitem__)
            text = next(own) if language == "de" else next(other)
            n_words[language] += len(text.split())
            stream.write(text + "\n")


def score_tags(teacher: str) -> str:
    report = stillvec.evaluate(f"teacher:{teacher}", language_folder(), ["tagging:seeds=1"], only=["pud-de"])
    found = next(score for score in report.scores if score.metric == "accuracy")
    return format_interval(found.value, found.low, found.high)


def score_pairs(vectors: WordVectors) -> list[str]:
    """Similarity of words that the text has five times, with intervals, and the number of pairs."""
    counts = vectors.vocabulary.counts.tolist()
    met = vectors.subset([word for word, n in zip(vectors.words, counts, strict=True) if n >= MIN_COUNT])
    report = stillvec.evaluate(met, language_folder(), ["similarity"], only=[*GERMAN])
    scores = [next(score for score in report.scores if score.dataset == dataset) for dataset in GERMAN]
    cells = [format_interval(score.value, score.low, score.high) for score in scores]
    return [*cells, " and ".join(str(score.n_covered) for score in scores)]


if __name__ == "__main__":
    main()
