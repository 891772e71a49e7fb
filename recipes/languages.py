"""A multilingual teacher in other languages than English: out/languages, and tables.

    STILLVEC_LANGUAGES=... python recipes/languages.py german TEACHER
    STILLVEC_LANGUAGES=... python recipes/languages.py sentences TEACHER [--words DIR] [--only de es]
    STILLVEC_LANGUAGES=... python recipes/languages.py bitext TEACHER [--only deu spa]
    STILLVEC_LANGUAGES=... STILLVEC_DATA=... python recipes/languages.py aligned TEACHER [--only de es]

The folder has the layout of evaluation data: similarity/de-*.tsv, sentences/stsb-XX.{dev,test}.csv, texts/XX.txt (a
sentence per line), bitext/tatoeba-eng-XXX.tsv and corpora/de-*.txt.xz.

- `german`: the templates in which words are read alone, on novels.
- `sentences`: the STS benchmark in six languages, without and with n-grams for unknown words; DIR/XX.txt has frequent
  words to include, one per line, such as those of the package wordfreq.
- `bitext`: eleven languages in one space, distilled in one run.
- `aligned`: each language distilled by itself, its space centred or rotated onto English; translations of words are
  those of `recipes/bilingual_texts.py --texts out/languages`.

The text of a language is the sentences of its STS dev part and those of texts/. A script because it makes the texts.
"""

from __future__ import annotations

import csv
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from scores import argument_parser, format_interval, print_header, print_row, split_cells

import stillvec
from stillvec import WordVectors
from stillvec.evaluation import Report
from stillvec.heads.oov_policy import OovPolicy

OUT = Path("out/languages")
LANGUAGES = ("de", "es", "fr", "ja", "ru", "zh")
RUNS = {"de": "auto,aggregate,additive,decontextualized", "none": "auto", "en": "auto,decontextualized"}
HEADERS = {
    "languages-german": "| vectors | templates | SimLex-de | WordSim-de |",
    "languages-sentences": "| language | words by | `--for sentences` | `--oov subword` | teacher | share |",
    "languages-bitext": "| English and | static | forward | backward | centred | teacher | centred | by length |",
    "languages-aligned": "| English and | task | vectors | as they are | centred | Procrustes |",
}
MAX_WORDS = 100_000  # more than there are: none of the teacher's own are added
BITEXT = {
    "deu": "de", "fra": "fr", "spa": "es", "rus": "ru", "cmn": "zh", "jpn": "ja", "fin": "fi", "ara": "ar", "tur": "tr",
    "hin": "hi",
}  # fmt: skip
SEGMENTERS = {"cmn": "jieba", "jpn": "fugashi"}  # one text in ten: `auto` asks for a twentieth of the letters
ALIGNED = {"de": "deu", "es": "spa", "fr": "fra"}
MAPPINGS = ("mapping=none,center=false", "mapping=none", "mapping=procrustes")  # of the columns
FOLDER = Path("out/bilingual")  # of the dictionaries


def data() -> Path:
    return Path(os.environ["STILLVEC_LANGUAGES"])


def score(vectors: WordVectors | str, task: str, dataset: str, oov: OovPolicy = "skip") -> str:
    """A score x 100 with its interval."""
    report = stillvec.evaluate(vectors, data=data(), tasks=[task], only=[dataset], oov=oov)
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
    english = Path(os.environ.get("STILLVEC_DATA", "")) / "sentences/stsb.dev.csv"
    pairs = english if language == "en" else data() / f"sentences/stsb-{language}.dev.csv"
    sentences = []
    if pairs.is_file():
        with pairs.open(encoding="utf-8") as file:
            rows = [*csv.reader(file, quoting=csv.QUOTE_MINIMAL)]
        sentences += [text for row in rows for text in row[:2]]
    more = data() / f"texts/{language}.txt"
    sentences += more.read_text("utf-8").splitlines() if more.exists() else []
    OUT.mkdir(parents=True, exist_ok=True)
    path = OUT / f"{language}.txt"
    text = "\n".join(dict.fromkeys(text.strip() for text in sentences if text.strip())) + "\n"
    if not path.exists() or path.read_text("utf-8") != text:  # another table may be reading it
        path.write_text(text, "utf-8")
    return path


def compare_sentences(teacher: str, only: Sequence[str], words: Path | None) -> None:
    print_header(*split_cells(HEADERS["languages-sentences"]))
    for language in only:
        listed = (words / f"{language}.txt").read_text("utf-8").split() if words else []
        vectors = stillvec.distill(
            write_text(language), teacher=teacher, purpose="sentences", language=language, include_words=listed,
            min_count=1, max_words=MAX_WORDS if words else None, contexts="all", oov="subword", statistics=False,
            out=OUT / f"sentences-{language}", force=True, progress=True,
        )  # fmt: skip
        dataset = f"stsb-{language}.test"
        known, static = (score(vectors, "sentences", dataset, oov) for oov in ("skip", "subword"))
        whole = score(f"teacher:{teacher}", "sentences", dataset)
        share = float(static.split()[0]) / float(whole.split()[0])
        print_row(language, vectors.vocabulary.segmenter, known, static, whole, f"{share:.1%}")


def compare_bitext(teacher: str, only: Sequence[str]) -> None:
    """All languages in one space."""
    texts = [write_text(language) for language in ("en", *(BITEXT[code] for code in only))]
    segmenters = ",".join(SEGMENTERS[code] for code in only if code in SEGMENTERS)
    vectors = stillvec.distill(
        texts, teacher=teacher, purpose="sentences", language="none", min_count=1, statistics=False,
        segmenter=segmenters or "spaces",
        out=OUT / "together", force=True, progress=True,
    )  # fmt: skip
    names = [f"tatoeba-eng-{code}" for code in only]
    whole = f"teacher:{teacher}"
    report = stillvec.evaluate({"static": vectors, "teacher": whole}, data(), ["bitext"], only=names)
    print_header(*split_cells(HEADERS["languages-bitext"]))
    for code, dataset in zip(only, names, strict=True):
        metrics = ("accuracy", "accuracy-forward", "accuracy-backward", "accuracy-centred")
        cells = [find(report, "static", dataset, metric) for metric in metrics]
        cells += [find(report, "teacher", dataset, metric) for metric in ("accuracy", "accuracy-centred")]
        print_row(BITEXT[code], *cells, find(report, "static", dataset, "accuracy-length"))


def find(report: Report, vectors: str, dataset: str, metric: str) -> str:
    """A score x 100 with its interval."""
    found = next(
        score
        for score in report.scores
        if (score.vectors, score.dataset, score.metric, score.words) == (vectors, dataset, metric, "own")
    )
    return format_interval(found.value, found.low, found.high)


def compare_aligned(teacher: str, only: Sequence[str]) -> None:
    """Spaces of one language each: sentences of Tatoeba, and translations of words."""
    print_header(*split_cells(HEADERS["languages-aligned"]))
    english = distill_language("en", teacher, [Path(FOLDER / f"en-{language}.tsv") for language in only])
    for language in only:
        own = distill_language(language, teacher, [FOLDER / f"en-{language}.tsv"])
        for vectors in english:
            task = "bitext" if vectors == "sentences" else "translation"
            folder, metric = (data(), "accuracy") if task == "bitext" else (OUT, "p@1")
            dataset = f"tatoeba-eng-{ALIGNED[language]}" if task == "bitext" else f"en-{language}"
            cells = []
            for mapping in MAPPINGS:
                both = stillvec.combine([english[vectors], own[vectors]], f"align:tags=en,{language},{mapping}")
                report = stillvec.evaluate({"both": both}, folder, [task], only=[dataset])
                cells.append(find(report, "both", dataset, metric))
            print_row(language, task, f"`{vectors}`", *cells)


def distill_language(language: str, teacher: str, dictionaries: Sequence[Path]) -> dict[str, WordVectors]:
    """One language by itself: vectors for sentences, and of the words of dictionaries."""
    column = 0 if language == "en" else 1
    words: dict[str, None] = {}
    for path in dictionaries:
        lines = path.read_text("utf-8").splitlines()
        words |= dict.fromkeys(line.split("\t")[column] for line in lines)
        (OUT / "translation").mkdir(parents=True, exist_ok=True)
        shutil.copy(path, OUT / "translation" / path.name)
    settings: dict[str, Any] = {"teacher": teacher, "language": language, "min_count": 1, "statistics": False}
    text = write_text(language)
    sentences = stillvec.distill(text, purpose="sentences", progress=True, **settings)
    of_words = stillvec.distill_all(
        text, method="aggregate,decontextualized", include_words=[*words], progress=True, **settings
    )
    return {"sentences": sentences, **of_words}


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("table", choices=("german", "sentences", "bitext", "aligned"))
    parser.add_argument("teacher", metavar="TEACHER")
    parser.add_argument("--words", type=Path, metavar="DIR")
    parser.add_argument("--only", nargs="+", metavar="LANGUAGE")
    options = parser.parse_args()
    if options.table == "german":
        compare_templates(options.teacher)
    elif options.table == "sentences":
        compare_sentences(options.teacher, options.only or LANGUAGES, options.words)
    elif options.table == "bitext":
        compare_bitext(options.teacher, options.only or [*BITEXT])
    else:
        compare_aligned(options.teacher, options.only or [*ALIGNED])


if __name__ == "__main__":
    main()
