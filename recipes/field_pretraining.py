"""A table of docs/papers/16-all-languages.md: does further pretraining of a teacher help the vectors of a field?

    STILLVEC_DATA=... python recipes/field_pretraining.py MiniLM=minilm MPNet=$STILLVEC_MPNET --field DIR [--steps 800]
        [--rates 2e-5 1e-4] [--every 1] [--words 20000] [--scores FILE]

The field is biology: those parts of the corpora, mostly textbooks of biology and anatomy, of which four in a thousand
words are cell, protein, tissue and the like. Each teacher is distilled on this text as it is, after `stillvec adapt
--step pretrain` on the same text, and, as a control, after as many steps on as much other text of the corpora.
`--field` has similarity datasets of the field (Bio-SimLex). The definitions of `glossary` are those that `stillvec
glossary` finds in the field; their paragraphs are taken out of the text. Changes are from the teacher as it is, on the
same pairs and definitions, with intervals over these. `--every 8` takes an eighth of the field, `--scores` appends rows
to a file of JSON lines. A script because it divides the corpora.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
from pruned_teachers import read_rated_words
from scores import (
    argument_parser,
    corpus_files,
    data_folder,
    format_change,
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
from stillvec.evaluation import mean_difference
from stillvec.evaluation.glossary import Glossary
from stillvec.heads.lookup import Lookup

HEADERS = {
    "field-pretraining": "| teacher | trained further on | loss | method | Bio-SimLex | change | glossary | change "
    "| 8 sets | change |"
}
FOLDER = Path("out/field")
METHODS = "auto,aggregate"
FIELD = frozenset(["cell", "cells", "protein", "proteins", "bacteria", "dna", "patient", "tissue", "organism", "blood"])
SHARE = 0.004  # of these words, in a block of the field
BLOCK = 500  # paragraphs
BATCH = 64
RESAMPLES = 1000


class Texts(NamedTuple):
    field: Path
    other: Path
    glossary: Path


def read_blocks() -> Iterator[list[str]]:
    """Consecutive paragraphs of each corpus."""
    for path in corpus_files():
        paragraphs = (" ".join(paragraph.split()) for paragraph in Corpus(path).paragraphs())
        while block := [*islice(paragraphs, BLOCK)]:
            yield block


def is_of_field(block: list[str]) -> bool:
    words = " ".join(block).lower().split()
    return sum(word in FIELD for word in words) > SHARE * len(words)


def write_texts(every: int) -> Texts:
    """The text of the field without the paragraphs that define a term, as much other text, and the definitions."""
    blocks = [*read_blocks()]
    own = [text for block in blocks if is_of_field(block) for text in block]
    others = [text for block in blocks if not is_of_field(block) for text in block]
    texts = Texts(FOLDER / "field.txt", FOLDER / "other.txt", FOLDER / "glossaries" / "biology.tsv")
    FOLDER.mkdir(parents=True, exist_ok=True)
    texts.field.write_text("\n".join(own) + "\n", encoding="utf-8")
    found = stillvec.extract_glossary(texts.field, out=texts.glossary, force=True)
    definitions = [entry.definition for entry in found]
    own = [text for text in own if not any(definition in text for definition in definitions)][::every]
    n_own, n_others = (sum(len(text.split()) for text in part) for part in (own, others))
    texts.field.write_text("\n".join(own) + "\n", encoding="utf-8")
    texts.other.write_text("\n".join(others[:: max(1, round(n_others / n_own))]) + "\n", encoding="utf-8")
    print(f"{n_own:,} words of the field; {len(found):,} definitions\n", flush=True)
    return texts


def read_terms(texts: Texts) -> list[str]:
    lines = texts.glossary.read_text("utf-8").lower().splitlines()[1:]
    return sorted({word for line in lines for word in re.findall(r"[^\W\d_]{2,}", line)})


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("teachers", nargs="+", metavar="NAME=TEACHER")
    parser.add_argument("--field", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=800)
    parser.add_argument("--rates", type=float, nargs="+", default=(2e-5, 1e-4))
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--words", type=int, default=20_000)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--scores", type=Path)
    options = parser.parse_args()
    texts = write_texts(options.every)
    words = sorted({*read_rated_words([data_folder(), options.field]), *read_terms(texts)})
    runs = [(None, 0.0), *((text, rate) for rate in options.rates for text in (texts.field, texts.other))]
    print_header(*split_cells(HEADERS["field-pretraining"]))
    for pair in options.teachers:
        name, _, teacher = pair.partition("=")
        plain: dict[str, WordVectors] = {}
        for text, rate in runs:
            with tempfile.TemporaryDirectory() as folder:
                loss, used = "", teacher
                if text is not None:
                    step = f"pretrain:text={text},rate={rate},batch={BATCH},epochs=1000,max_steps={options.steps}"
                    used = str(stillvec.adapt(teacher, step, out=Path(folder) / "further"))
                    facts = read_adaptation(Path(used))["adapted"][-1]["facts"]
                    loss = f"{facts['loss before']:.2f} to {facts['loss after']:.2f}"
                spaces = stillvec.distill_all(
                    texts.field,
                    teacher=used,
                    method=METHODS,
                    max_words=options.words,
                    include_words=words,
                    statistics=False,
                    threads=options.threads,
                )
            plain = plain or spaces
            label = "–" if text is None else f"{text.stem} text, rate {rate:g}"
            for method, vectors in spaces.items():
                cells = score(vectors, plain[method], options.field, texts)
                print_row(name, label, loss, method, *cells)
                if options.scores is not None:
                    with options.scores.open("a", encoding="utf-8") as stream:
                        stream.write(json.dumps([name, label, loss, method, *cells]) + "\n")


def score(vectors: WordVectors, plain: WordVectors, field: Path, texts: Texts) -> list[str | float]:
    """The scores of the vectors, and their change from those of the teacher as it is."""
    is_plain = vectors is plain
    cells: list[str | float] = []
    for folder in (field, data_folder()):
        change = "" if is_plain else format_change(mean_difference(vectors, plain, folder))
        cells += [mean(score_similarity(vectors, folder=folder)), change]
    ranks, before = (rank_terms(each, texts) for each in (vectors, plain))
    change = "" if is_plain else format_paired(ranks - before)
    return [*cells[:2], 100 * float(ranks.mean()), change, *cells[2:]]


def rank_terms(vectors: WordVectors, texts: Texts) -> np.ndarray:
    """The reciprocal rank of each term for its definition, words weighted by their rarity."""
    task = Glossary()
    answers = task.answer(Lookup(vectors), task.read(texts.glossary))
    return np.asarray(answers.values["mrr-sif"])[answers.covered]


def format_paired(changes: np.ndarray) -> str:
    """The mean change with a bootstrap interval over items, x 100."""
    random = np.random.default_rng(0)
    means = changes[random.integers(len(changes), size=(RESAMPLES, len(changes)))].mean(1)
    value = float(changes.mean())
    return ("+" if value >= 0 else "") + format_interval(value, *np.percentile(means, [2.5, 97.5]))


if __name__ == "__main__":
    main()
