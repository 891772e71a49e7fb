"""Taggers on texts of other domains (paper 01), and tags that are written part by part (23).

    STILLVEC_WORKSHOP=... python recipes/taggers.py domains|parts VECTORS --out FILE.json
    python recipes/taggers.py show domains|parts FILE.json...
    ... python recipes/taggers.py spelling OUT
    ... python recipes/taggers.py sentences OUT.txt

Each study writes a row per head and seed as it goes, with the counts of each test sentence; `show` prints the table,
with intervals of a bootstrap over test sentences. `spelling` writes vectors of the words of `morphology-fi` that know
their spelling and nothing else, `sentences` its sentences without their tags, for other vectors.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from head_studies import Rows, Study, add_studies, bootstrap, choose, group, list_seeds, spell
from judge import TARGETS, workshop_folder
from numpy.typing import NDArray
from scores import argument_parser, print_row

import stillvec
from stillvec.heads.labelled_data import read_data
from stillvec.heads.tag_parts import choose_split, is_well_formed
from stillvec.heads.treebank import count_spans, read_tagged

HEADERS = {
    "domains": "| vectors | head | wikigold, development | mean of five domains | less plain |",
    "parts": "| dataset | head | words right | words with unseen tags right | malformed | words less tagger |",
}
DOMAINS: dict[str, list[str]] = {
    "plain": [],
    "auxiliary": ["auxiliary"],
    "experts": ["experts"],
    "both": ["auxiliary", "experts"],
}


def main() -> None:
    parser = argument_parser(__doc__)
    commands = parser.add_subparsers(required=True)
    add_studies(commands, STUDIES, HEADERS)
    command = commands.add_parser("spelling")
    command.add_argument("out", type=Path)
    command.set_defaults(run=lambda options: write_spelling(options.out))
    command = commands.add_parser("sentences")
    command.add_argument("out", type=Path)
    command.set_defaults(run=lambda options: write_sentences(options.out))
    options = parser.parse_args()
    options.run(options)


def read_finnish() -> Iterator[Sequence[str]]:
    """The sentences of `morphology-fi`."""
    for part in ("train", "test"):
        for words, _ in read_tagged(workshop_folder() / f"tagging/morphology-fi.{part}.tsv"):
            yield words


def write_sentences(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{' '.join(words)}\n" for words in read_finnish()), "utf-8")


def write_spelling(path: Path, dim: int = 300) -> None:
    """Vectors that know the spelling of Finnish words and nothing else: sums of random vectors of their n-grams."""
    names = sorted({word for words in read_finnish() for word in words})
    rows = []
    for word in names:
        marked = f"<{word.lower()}>"
        grams = {marked[at : at + n] for n in (3, 4, 5) for at in range(len(marked) - n + 1)} | {marked}
        rows.append(sum(np.random.default_rng(crc32(gram.encode())).standard_normal(dim) for gram in sorted(grams)))
    units = np.stack([row / np.linalg.norm(row) for row in rows]).astype(np.float32)
    stillvec.WordVectors(names, units).save(path, force=True)


def fit_domains(options: argparse.Namespace) -> None:
    """Taggers that learn from wikigold, on the test sentences of five domains."""
    vectors, rows = stillvec.load(options.vectors), Rows(options.out)
    folder = workshop_folder() / "tagging"
    tested = {name: [*read_tagged(folder / f"{name}.tsv")] for name in TARGETS}
    data = read_data(folder / "wikigold.tsv", "tokens")
    on: Any = folder / "wikigold.tsv"
    if options.most:
        on = [(data.items[row], data.labels[row]) for row in range(options.most)]
    for tuned in (False, True):
        for name in choose(options, DOMAINS):
            for seed in list_seeds(options):
                spec = spell("tagger", options, "tuned=true" if tuned else "")
                head = stillvec.fit(vectors, on, spec, DOMAINS[name], seed=seed, device=options.device)
                counts = {domain: count_found(head, sentences) for domain, sentences in tested.items()}
                trained = "tuned" if tuned else "frozen"
                rows.add(trained=trained, name=name, seed=seed, dev=head.manifest["scores"]["dev"]["f1"], counts=counts)


def count_found(head: stillvec.Head, sentences: Sequence[tuple[Sequence[str], Sequence[str]]]) -> list[list[float]]:
    """Of each sentence: correct, predicted and gold spans."""
    names = sorted({*head.labels, *(tag for _, tags in sentences for tag in tags)})
    place = {name: number for number, name in enumerate(names)}
    said = head.predict([[*words] for words, _ in sentences])
    numbers = [np.array([place[tag] for tags in part for tag in tags]) for part in ([t for _, t in sentences], said)]
    text = np.repeat(np.arange(len(sentences)), [len(tags) for _, tags in sentences])
    return [row.tolist() for row in count_spans(numbers[0], numbers[1], names, text, len(sentences))]


def fit_parts(options: argparse.Namespace) -> None:
    """Whole tags, and tags written part by part."""
    vectors, rows = stillvec.load(options.vectors), Rows(options.out)
    folder = workshop_folder() / "tagging"
    for dataset in ("morphology-fi", "ccg-questions", "ccg-genia"):
        if options.on not in (None, dataset):
            continue
        path = write_genia(folder) if dataset == "ccg-genia" else folder / dataset
        data = read_data(path, "tokens")
        test = [(data.items[row], data.labels[row]) for row in data.test.tolist()]
        on: Any = [(data.items[row], data.labels[row]) for row in range(options.most)] if options.most else path
        for name in choose(options, ("tagger", "primitives")):
            for seed in list_seeds(options):
                spec = spell(name, options, "epochs=25,patience=5,rate=3e-3" if not options.epochs else "")
                head = stillvec.fit(vectors, on, spec, seed=seed, device=options.device)
                said = head.predict([[*words] for words, _ in test])
                counts = [count_right(gold, ours, head.labels) for (_, gold), ours in zip(test, said, strict=True)]
                split = choose_split(data.names)
                malformed = float(np.mean([not is_well_formed(tag, split) for tags in said for tag in tags]))
                rows.add(dataset=dataset, name=name, seed=seed, malformed=malformed, counts=counts)


def write_genia(folder: Path) -> Path:
    """The first 900 sentences to learn from, the other 100 to test on."""
    target = Path("out/heads/tagging")
    target.mkdir(parents=True, exist_ok=True)
    blocks = (folder / "ccg-genia.tsv").read_text("utf-8").strip().split("\n\n")
    for part, chosen in (("train", blocks[:900]), ("test", blocks[900:])):
        (target / f"ccg-genia.{part}.tsv").write_text("\n\n".join(chosen) + "\n", "utf-8")
    return target / "ccg-genia"


def count_right(gold: Sequence[str], said: Sequence[str], known: Sequence[str]) -> list[int]:
    """Right words, words, right words whose tag training lacks, and such words."""
    right = [ours == theirs for ours, theirs in zip(said, gold, strict=True)]
    unseen = [tag not in known for tag in gold]
    return [sum(right), len(right), sum(a and b for a, b in zip(right, unseen, strict=True)), sum(unseen)]


def show_parts(rows: list[dict[str, Any]]) -> None:
    for (dataset, name), part in group(rows, lambda row: (row["dataset"], row["name"])).items():
        plain = [row for row in rows if (row["dataset"], row["name"]) == (dataset, "tagger")]
        counts, base = (np.mean([row["counts"] for row in each], axis=0) for each in (part, plain))

        def measure(drawn: NDArray[np.int64], counts: NDArray[Any] = counts, base: NDArray[Any] = base) -> NDArray[Any]:
            ours, theirs = counts[drawn].sum(axis=0), base[drawn].sum(axis=0)
            words = ours[0] / ours[1]
            return np.array([words, ours[2] / max(1, ours[3]), words - theirs[0] / theirs[1]])

        cells = bootstrap(measure, len(counts))
        n_unseen = int(counts[:, 3].sum())
        malformed = f"{100 * float(np.mean([row['malformed'] for row in part])):.2f}%"
        print_row(dataset, name, cells[0], f"{cells[1]} of {n_unseen}", malformed, cells[2] if name != "tagger" else "")


def show_domains(rows: list[dict[str, Any]]) -> None:
    for (trained, name), part in group(rows, lambda row: (row["trained"], row["name"])).items():
        plain = [row for row in rows if (row["trained"], row["name"]) == (trained, "plain")]
        dev = 100 * float(np.mean([row["dev"] for row in part]))
        print_row(trained, name, dev, *compare_domains(part, plain if name != "plain" else None))
    frozen, tuned = ([row for row in rows if row["trained"] == which] for which in ("frozen", "tuned"))
    if frozen and tuned:
        same = [[row for row in each if row["name"] == "plain"] for each in (frozen, tuned)]
        print_row("frozen less tuned", "plain", "", "", compare_domains(*same)[1])


def compare_domains(part: list[dict[str, Any]], plain: list[dict[str, Any]] | None) -> list[str]:
    """The mean F1 over domains and seeds, and its difference from that of `plain`, with intervals over sentences."""
    sizes = {domain: len(counts) for domain, counts in part[0]["counts"].items()}
    totals = [{domain: np.array(row["counts"][domain]) for domain in sizes} for row in (*part, *(plain or ()))]
    random = np.random.default_rng(0)
    drawn = [{domain: random.integers(0, n, n) for domain, n in sizes.items()} for _ in range(1000)]

    def measure(rows: Mapping[str, NDArray[np.int64]]) -> tuple[float, float]:
        scores = []
        for counts in totals:
            sums = [counts[domain][rows[domain]].sum(axis=0) for domain in sizes]
            scores.append(np.mean([2 * right / max(1, said + gold) for right, said, gold in sums]))
        ours = float(np.mean(scores[: len(part)]))
        return ours, ours - float(np.mean(scores[len(part) :])) if plain else 0.0

    whole = measure({domain: np.arange(n) for domain, n in sizes.items()})
    low, high = np.percentile([measure(rows) for rows in drawn], [2.5, 97.5], axis=0)
    cells = [f"{100 * v:.1f} [{100 * a:.1f}, {100 * b:.1f}]" for v, a, b in zip(whole, low, high, strict=True)]
    return cells if plain else [cells[0], ""]


STUDIES = {"domains": Study(fit_domains, show_domains), "parts": Study(fit_parts, show_parts)}

if __name__ == "__main__":
    main()
