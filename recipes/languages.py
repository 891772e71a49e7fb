"""A multilingual teacher in other languages than English: out/languages, and tables.

    STILLVEC_LANGUAGES=... python recipes/languages.py german TEACHER
    STILLVEC_LANGUAGES=... python recipes/languages.py sentences TEACHER [--words DIR]

The folder has the layout of evaluation data: similarity/de-*.tsv, sentences/stsb-XX.{dev,test}.csv, texts/XX.txt (a
sentence per line) and corpora/de-*.txt.xz. `german`: the templates in which words are read alone, on novels.
`sentences`: the STS benchmark in six languages; the text is the sentences of its dev part and those of texts/, and
DIR/XX.txt has frequent words to include, one per line. A script because it makes the texts.
"""

from __future__ import annotations

import csv
import os
from pathlib import Path

from scores import argument_parser, format_interval, print_header, print_row, split_cells

import stillvec
from stillvec import WordVectors

OUT = Path("out/languages")
LANGUAGES = ("de", "es", "fr", "ja", "ru", "zh")
RUNS = {"de": "auto,aggregate,additive,decontextualized", "none": "auto", "en": "auto,decontextualized"}
HEADERS = {
    "languages-german": "| vectors | templates | SimLex-de | WordSim-de |",
    "languages-sentences": "| language | words by | `auto --for sentences` | teacher | share |",
}
N_WORDS = 20_000


def data() -> Path:
    return Path(os.environ["STILLVEC_LANGUAGES"])


def score(vectors: WordVectors | str, task: str, dataset: str) -> str:
    """A score x 100 with its interval."""
    report = stillvec.evaluate(vectors, data=data(), tasks=[task], only=[dataset])
    found = next(each for each in report.scores if each.dataset == dataset)
    return format_interval(found.value, found.low, found.high)


def compare_templates(teacher: str) -> None:
    """German words: templates in German, none, and in English."""
    files = sorted(data().glob("similarity/de-*.tsv"))
    pairs = [line.split("\t") for file in files for line in file.read_text("utf-8").splitlines()]
    words = sorted({word for pair in pairs for word in pair[:2]})
    print_header(*split_cells(HEADERS["languages-german"]))
    for language, methods in RUNS.items():
        novels = sorted(data().glob("corpora/de-*"))
        results = stillvec.distill_all(
            novels, teacher=teacher, method=methods, language=language, include_words=words, min_count=10,
            statistics=False, out=OUT / f"german-{language}", progress=True,
        )  # fmt: skip
        for name, vectors in results.items():
            templates = "" if name in ("aggregate", "additive") else language
            scores = [score(vectors, "similarity", dataset) for dataset in ("de-simlex999", "de-ws353")]
            print_row(f"`{name}`", templates, *scores)


def write_text(language: str) -> Path:
    """The sentences of the dev part and of the text, each once."""
    with (data() / f"sentences/stsb-{language}.dev.csv").open(encoding="utf-8") as file:
        sentences = [text for row in csv.reader(file) for text in row[:2]]
    more = data() / f"texts/{language}.txt"
    sentences += more.read_text("utf-8").splitlines() if more.exists() else []
    OUT.mkdir(parents=True, exist_ok=True)
    path = OUT / f"{language}.txt"
    path.write_text("\n".join(dict.fromkeys(text.strip() for text in sentences if text.strip())) + "\n", "utf-8")
    return path


def compare_sentences(teacher: str, words: Path | None) -> None:
    print_header(*split_cells(HEADERS["languages-sentences"]))
    for language in LANGUAGES:
        listed = (words / f"{language}.txt").read_text("utf-8").split()[:N_WORDS] if words else []
        vectors = stillvec.distill(
            write_text(language), teacher=teacher, purpose="sentences", language=language, include_words=listed,
            min_count=1, statistics=False, out=OUT / f"sentences-{language}", progress=True,
        )  # fmt: skip
        dataset = f"stsb-{language}.test"
        static, whole = score(vectors, "sentences", dataset), score(f"teacher:{teacher}", "sentences", dataset)
        share = float(static.split()[0]) / float(whole.split()[0])
        print_row(language, vectors.vocabulary.segmenter, static, whole, f"{share:.0%}")


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("table", choices=("german", "sentences"))
    parser.add_argument("teacher", metavar="TEACHER")
    parser.add_argument("--words", type=Path, metavar="DIR")
    options = parser.parse_args()
    if options.table == "german":
        compare_templates(options.teacher)
    else:
        compare_sentences(options.teacher, options.words)


if __name__ == "__main__":
    main()
