"""Tables of docs/papers/04-feature-tuples.md: feature tuples (Bhat et al. 2020) by their own measures, against cosines.

    STILLVEC_DATA=... STILLVEC_WORKSHOP=... python recipes/tuples.py words
    stillvec run recipes/tuples.toml
    STILLVEC_DATA=... STILLVEC_WORKSHOP=... python recipes/tuples.py similarity|analogy|compounds|entropy

`words` writes out/tuples/words.txt, the words of the datasets. STILLVEC_WORKSHOP has `compounds/`. A script because
each row compares another measure with the cosine on the same pairs, and for the lists of words. Function words are
those of spaCy's list.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scores import (
    argument_parser,
    data_folder,
    format_change,
    format_interval,
    print_header,
    print_row,
    split_cells,
)

import stillvec
from stillvec import WordVectors
from stillvec.evaluation import Difference
from stillvec.evaluation.analogy import Analogy
from stillvec.evaluation.comparison import bootstrap
from stillvec.evaluation.compounds import Compounds
from stillvec.evaluation.intervals import Resampling, percentiles
from stillvec.evaluation.means import SimilarityResult, average_datasets
from stillvec.evaluation.similarity import Similarity
from stillvec.evaluation.tasks import Items
from stillvec.heads.lookup import Lookup
from stillvec.numerics import unit_rows
from stillvec.refinement.fuzzy_sets import analogy_target

HEADERS = {
    "tuples-similarity": "| vectors | tuples | measure | SimLex-999 | against cosine | mean of 8 | against cosine |",
    "tuples-analogy": "| vectors | questions | 3CosAdd | fuzzy, rows | fuzzy, columns | top 5: 3CosAdd | fuzzy, rows |",
    "tuples-compounds": "| vectors | compared | dataset | cosine | cross-entropy, rows | divergence, columns |",
    "tuples-entropy": "| vectors | words | by frequency | by entropy, rows | by entropy, columns | frequent words |",
}
FOLDER = Path("out/tuples")
SETS = ("skipgram-50", "skipgram-100", "minilm")
STEPS = {
    "rows": ("feature_tuples:over=row",),
    "columns": ("feature_tuples:over=column",),
    "rows, base 2, of unit vectors": ("normalize", "feature_tuples:over=row,base=2"),
    "columns, of unit vectors": ("normalize", "feature_tuples:over=column"),
}
MEASURES = {
    "cross_entropy": "cross-entropy",
    "divergence": "divergence",
    "one_sided_divergence": "one-sided divergence",
}
RESAMPLING = Resampling(1000, 0)


def main() -> None:
    parser = argument_parser(__doc__)
    tables = {name.removeprefix("tuples-"): name for name in HEADERS}
    parser.add_argument("table", choices=("words", *tables))
    choice = parser.parse_args().table
    if choice == "words":
        write_words()
        return
    print_header(*split_cells(HEADERS[tables[choice]]))
    printers = {"similarity": print_similarity, "analogy": print_analogy, "compounds": print_compounds}
    (printers | {"entropy": print_entropy})[choice]()


def write_words() -> None:
    """The words of the similarity datasets, Google's analogies and the compounds, and the compounds."""
    words: dict[str, None] = {}
    for file in sorted((data_folder() / "similarity").glob("*.tsv")):
        for line in file.read_text(encoding="utf-8").splitlines():
            words |= dict.fromkeys(word.lower() for word in line.split("\t")[:2])
    for line in (data_folder() / "analogy" / "google.txt").read_text(encoding="utf-8").splitlines():
        if not line.startswith(":"):
            words |= dict.fromkeys(line.lower().split())
    for file in list_compound_files():
        for line in file.read_text(encoding="utf-8").splitlines():
            term = line.split("\t")[0].lower()
            words |= dict.fromkeys((term, *term.split()))
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / "words.txt").write_text("".join(word + "\n" for word in words), encoding="utf-8")


def list_compound_files() -> list[Path]:
    return sorted((Path(os.environ["STILLVEC_WORKSHOP"]) / "compounds").glob("*.tsv"))


def load_sets() -> Iterator[tuple[str, WordVectors]]:
    for name in SETS:
        path = FOLDER / name
        yield name, stillvec.load(path)


def print_similarity() -> None:
    files = sorted((data_folder() / "similarity").glob("*.tsv"))
    for name, vectors in load_sets():
        rows = {("–", "cosine"): (vectors, Similarity())}
        for over, steps in STEPS.items():
            tuples = stillvec.refine(vectors, [*steps])
            for measure, label in MEASURES.items():
                if measure != "one_sided_divergence" or over == "columns":  # equal to the divergence over rows
                    rows[over, label] = tuples, Similarity(measure)  # type: ignore[arg-type]
        parts = []
        for file in files:
            items = Similarity().read(file)
            answers = {str(row): task.answer(Lookup(space), items) for row, (space, task) in rows.items()}
            covered = dict.fromkeys(answers, answers[str(("–", "cosine"))].covered)
            parts.append(SimilarityResult(file.stem, items, answers, covered))
        simlex = average_datasets([part for part in parts if part.name == "simlex999"], RESAMPLING, 1)
        every = average_datasets(parts, RESAMPLING)
        assert simlex is not None
        assert every is not None
        base = str(("–", "cosine"))
        for row in rows:
            cells: list[str] = []
            for mean in (simlex, every):
                sample, plain = mean.samples[str(row)], mean.samples[base]
                low, high = percentiles([sample.resampled])
                change = Difference(sample.value - plain.value, *percentiles([sample.resampled - plain.resampled]))
                cells += [format_interval(sample.value, low, high), "" if str(row) == base else format_change(change)]
            print_row(name, *row, *cells)


def print_analogy() -> None:
    items = Analogy().read(data_folder() / "analogy" / "google.txt")
    for name, vectors in load_sets():
        spaces = {"3cosadd": vectors}
        spaces |= {over: stillvec.refine(vectors, [*STEPS[over]]) for over in ("rows", "columns")}
        cells, n_covered = [], 0
        for form, space in spaces.items():
            task = Analogy(forms=("3cosadd" if form == "3cosadd" else "fuzzy",))
            answers = task.answer(Lookup(space), items)
            chosen = np.flatnonzero(answers.covered)
            (estimate,) = task.score(items, answers, chosen, RESAMPLING).values()
            cells.append(format_interval(*estimate))
            n_covered = len(chosen)
        first_five = (count_hits(spaces[form], items, fuzzy=form == "rows") for form in ("3cosadd", "rows"))
        print_row(name, f"{n_covered:,} of {len(items):,}", *cells, *(100 * hits / n_covered for hits in first_five))


def count_hits(space: WordVectors, items: Items, n_best: int = 5, *, fuzzy: bool) -> int:
    """How many questions have their answer among the best, as the released program for tuples counts."""
    rows = Lookup(space).rows([word for words in items.texts for word in words]).reshape(-1, 4)
    matrix = space.matrix.astype(np.float64) if fuzzy else unit_rows(space.matrix, np.float64)
    logs = (np.log(matrix).T, np.log1p(-matrix).T) if fuzzy else ()
    n_hits = 0
    for batch in np.array_split(rows[(rows >= 0).all(axis=1)], 100):
        a, b, c = (matrix[column] for column in batch.T[:3])
        if fuzzy:
            target = analogy_target(a, b, c)
            scores = target @ logs[0] + (1 - target) @ logs[1]
        else:
            scores = (b - a + c) @ matrix.T
        for column in batch.T[:3]:
            scores[np.arange(len(batch)), column] = -np.inf
        correct = scores[np.arange(len(batch)), batch[:, 3]]
        n_hits += int(((scores > correct[:, None]).sum(axis=1) < n_best).sum())
    return n_hits


def print_compounds() -> None:
    for name, vectors in load_sets():
        spaces = {over: stillvec.refine(vectors, [*STEPS[over]]) for over in ("rows", "columns")}
        for compared, of in (("the two words", "words"), ("the compound and its words", "phrase")):
            if of == "phrase" and name != "minilm":
                continue  # too few compounds are in the text
            for file in list_compound_files():
                tasks = {
                    "cosine": (vectors, Compounds(of=of)),  # type: ignore[arg-type]
                    "rows": (spaces["rows"], Compounds("cross_entropy", symmetric=True, of=of)),  # type: ignore[arg-type]
                    "columns": (spaces["columns"], Compounds("divergence", symmetric=True, of=of)),  # type: ignore[arg-type]
                }
                items = Compounds().read(file)
                cells, plain, n_covered = [], None, 0
                for space, task in tasks.values():
                    answers = task.answer(Lookup(space), items)
                    chosen = np.flatnonzero(answers.covered)
                    n_covered = len(chosen)
                    sample = bootstrap(task, items, answers, chosen, RESAMPLING, 0)["spearman"]
                    pearson = task.score(items, answers, chosen, Resampling(0))["pearson"].value
                    cell = f"{format_interval(sample.value, *percentiles([sample.resampled]))}, r {100 * pearson:.1f}"
                    if plain is not None:
                        change = percentiles([sample.resampled - plain.resampled])
                        cell += f" ({format_change(Difference(sample.value - plain.value, *change))})"
                    plain = plain or sample
                    cells.append(cell)
                print_row(name, compared, f"{file.stem}, {n_covered} of {len(items)}", *cells)


def print_entropy() -> None:
    from spacy.lang.en.stop_words import STOP_WORDS

    for name, vectors in load_sets():
        if not vectors.vocabulary.counts.any():
            continue
        often = [word for word, count in zip(vectors.words, vectors.vocabulary.counts, strict=True) if count >= 100]
        lists = {"frequency": often}
        for over in ("rows", "columns"):
            tuples = stillvec.refine(vectors, [*STEPS[over]])
            listed = stillvec.analyze(tuples, components=False, entropy=100).entropies
            lists[over] = [word for word, _ in listed]
        share = sum(word in STOP_WORDS for word in often) / len(often)
        for n_words in (15, 30, 50):
            counts = [sum(word in STOP_WORDS for word in words[:n_words]) for words in lists.values()]
            print_row(name, str(n_words), *map(str, counts), f"{len(often):,}, {share:.0%} function words")


if __name__ == "__main__":
    main()
