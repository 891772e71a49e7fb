"""Write out/text-mix.txt: the training texts of the shared datasets, one per line, without labels.

    STILLVEC_DATA=... python recipes/text_mix.py [--out out/text-mix.txt] [--without NAME ...] [--samples 2 200000]

The training parts (`*.train.*`) in $STILLVEC_DATA, texts/ and workshop/ beside it, and the paraphrases of workshop/. No
text is in it that `recipes/whole_texts.py` tests on: those of STS-B (all parts), test and development parts of the
classification sets, clustering and retrieval are left out wherever they occur, compared by their letters and digits.
`--without` leaves out datasets by name. `--samples COUNT WORDS` also writes out/text-mix-1.txt and so on: random lines
of 5 to 24 words, none of them in two samples, for teachers that are too slow to read it all. A script because no
command reads the texts of datasets.
"""

from __future__ import annotations

import csv
import io
import json
import random
import re
from collections.abc import Iterator
from pathlib import Path

from scores import argument_parser, data_folder

from stillvec.errors import DatasetError
from stillvec.files import open_bytes

LANGUAGES = re.compile(r"conll2002|morphology-fi|timex-(de|es)|hownet")  # not English


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("--out", type=Path, default=Path("out/text-mix.txt"))
    parser.add_argument("--without", nargs="*", default=())
    parser.add_argument("--samples", nargs=2, type=int, default=(0, 0), metavar=("COUNT", "WORDS"))
    options = parser.parse_args()
    folders = [data_folder(), *(data_folder().resolve().parent / name for name in ("texts", "workshop"))]
    seen = {key(text) for folder in folders for text in test_texts(folder)}
    print(f"{len(seen):,} texts are left out")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    with options.out.open("w", encoding="utf-8") as stream:
        for path in (path for folder in folders for path in training_files(folder)):
            if path.name.partition(".")[0] in options.without:
                continue
            texts = n_words = 0
            for text in read_texts(path):
                line = " ".join(text.split())
                if key(line) not in seen:
                    seen.add(key(line))
                    stream.write(line + "\n")
                    texts, n_words = texts + 1, n_words + line.count(" ") + 1
            print(f"{path.parent.name}/{path.name}: {texts:,} texts, {n_words:,} words", flush=True)
    write_samples(options.out, *options.samples)


def write_samples(path: Path, count: int, n_words: int) -> None:
    """The next sample begins where as many words are written as all before it are to have."""
    lines = [line for line in path.read_text("utf-8").splitlines() if 4 <= len(line.split()) <= 30]
    random.Random(0).shuffle(lines)
    short = iter([line for line in lines if 5 <= len(line.split()) <= 24])
    written = 0
    for number in range(1, count + 1):
        with path.with_stem(f"{path.stem}-{number}").open("w", encoding="utf-8") as stream:
            while written < number * n_words and (line := next(short, None)) is not None:
                stream.write(line + "\n")
                written += len(line.split())


def key(text: str) -> str:
    return "".join(filter(str.isalnum, text.lower()))


def training_files(folder: Path) -> Iterator[Path]:
    kinds = ("classification", "multilabel", "pairs", "paraphrases", "spans", "specificity", "tagging", "trees")
    for path in sorted(path for kind in kinds for path in (folder / kind).glob("*")):
        chosen = ".train." in path.name or path.parent.name == "paraphrases"
        if chosen and not LANGUAGES.search(path.name):
            yield path


def test_texts(folder: Path) -> Iterator[str]:
    for path in folder.glob("sentences/stsb.*.csv"):
        yield from read_texts(path)
    if folder.name == "texts":
        for path in [
            *folder.glob("classification/*"),
            *folder.glob("clustering/*"),
            *folder.glob("retrieval/*/*.jsonl"),
        ]:
            if ".train." not in path.name:
                yield from read_texts(path)


def read_texts(path: Path) -> Iterator[str]:
    kind, suffix = path.parent.name, path.name.removesuffix(".gz").rpartition(".")[2]
    with open_bytes(path, DatasetError) as raw:
        stream = io.TextIOWrapper(raw, "utf-8", errors="replace", newline="\n")  # some are Latin-1 in places
        if kind == "sentences":
            for first, second, *_ in csv.reader(stream):
                yield from (first, second)
        elif kind in ("classification", "multilabel"):
            yield from (line.partition(" ")[2] for line in stream)
        elif kind in ("pairs", "paraphrases", "clustering", "specificity"):
            columns = {"pairs": slice(1, 3), "paraphrases": slice(None), "clustering": slice(1, 2)}
            for line in stream:
                yield from line.rstrip("\n").split("\t")[columns.get(kind, slice(0, 1))]
        elif suffix == "jsonl":
            for item in map(json.loads, stream):
                yield item["text"] if "text" in item else " ".join(item["words"])
                if "title" in item:
                    yield item["title"]
        elif kind == "trees":
            yield from (" ".join(re.findall(r"[^\s()]+(?=\))", line)) for line in stream)
        else:
            yield from sentences_of_columns(stream, suffix)


def sentences_of_columns(stream: Iterator[str], suffix: str) -> Iterator[str]:
    """Sentences of a file with one word per line."""
    column, words = 1 if suffix == "conllu" else 0, []
    for line in stream:
        fields = line.split()
        if fields and not (suffix == "conllu" and (line.startswith("#") or not fields[0].isdigit())):
            words.append(fields[column])
        elif not fields and words:
            yield " ".join(words)
            words = []
    if words:
        yield " ".join(words)


if __name__ == "__main__":
    main()
