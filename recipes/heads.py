"""Heads of texts by what they are trained for: metric losses (paper 12), and attention near its words (17).

    STILLVEC_WORKSHOP=... STILLVEC_DATA=... python recipes/heads.py texts OUT.txt
    ... python recipes/heads.py objectives|attention VECTORS --out FILE.json
    python recipes/heads.py show objectives|attention FILE.json...

Each study writes a row per head and seed as it goes, with the counts of each test item; `show` prints the table, with
intervals of a bootstrap over test items. `texts` writes the training texts of all datasets, for the vectors. The posts
of EDOS are offensive: none is printed.
"""

from __future__ import annotations

import argparse
import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from head_studies import Rows, Study, add_studies, bootstrap, choose, group, list_seeds, pairs_of, spell
from judge import workshop_folder, write_fewer
from numpy.typing import NDArray
from scores import argument_parser, data_folder, print_row

import stillvec
from stillvec.evaluation.information import bias, clusters, cross_tabulate, information
from stillvec.files import open_bytes
from stillvec.heads.labelled_data import LabelledData, read_data
from stillvec.heads.neighbour_votes import balance_votes, count_votes
from stillvec.heads.treebank import read_tagged

HEADERS = {
    "objectives": "| objective | labels of the head | KNN | KNN, balanced votes | KNN less that of cross-entropy |",
    "attention": "| dataset | head | F1 | uniform attention | permuted attention | changed without 3 words |"
    " information (nats) | probability of a word |",
}
OBJECTIVES = {
    "cross-entropy": ["cross_entropy"],
    "coco": ["coco,scale=10", "coco,scale=30"],
    "arcface": ["arcface,scale=10", "arcface,scale=30"],
    "center": ["center,weight=0.1", "center,weight=10"],
    "contrastive": ["contrastive,margin=0.25", "contrastive,margin=0.75"],
    "triplet": ["triplet,scale=10", "triplet,scale=100"],
}
ATTENTION: dict[str, list[str]] = {
    "plain": [],
    "tying": ["tying:weight=10"],
    "tying, weight 1": ["tying:weight=1"],
    "masking": ["masking:weight=1"],
    "residual": ["residual"],
    "concat": ["concat"],
}
N_NEIGHBOURS = 10
N_WORDS, N_CLUSTERS = 200, 50  # of the information of states about their words


def main() -> None:
    parser = argument_parser(__doc__)
    commands = parser.add_subparsers(required=True)
    add_studies(commands, STUDIES, HEADERS)
    command = commands.add_parser("texts")
    command.add_argument("out", type=Path)
    command.set_defaults(run=lambda options: write_texts(options.out))
    options = parser.parse_args()
    options.run(options)


def write_texts(path: Path) -> None:
    """The training texts of the datasets, of which test parts are no part; the vectors are distilled on them."""
    workshop, data = workshop_folder(), data_folder()
    files = [*workshop.glob("multilabel/*.train.*"), *workshop.glob("classification/*.train.txt")]
    files += [data / f"classification/{name}.train.txt" for name in ("sst5", "trec")]
    lines: list[str] = []
    for file in sorted(files):
        with open_bytes(file, OSError) as stream:
            content = stream.read().decode("utf-8", "replace")
        lines += [line.partition(" ")[2].strip() for line in content.splitlines()]
    for file in sorted(workshop.glob("tagging/*.train.tsv")):
        if file.name.startswith(("btc", "crossner")):
            lines += [" ".join(words) for words, _ in read_tagged(file)]
    lines += [" ".join(words) for words, _ in read_tagged(workshop / "tagging/wikigold.tsv")]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(filter(None, lines)) + "\n", "utf-8")
    print(f"wrote {len(lines):,} texts to {path}")


def fit_objectives(options: argparse.Namespace) -> None:
    """EDOS, five categories: filters and their maximum, trained by each objective, judged by neighbours, too."""
    source = write_fewer(workshop_folder(), Path("out/heads")) / "classification/edos-category"
    shutil.copyfile(workshop_folder() / "classification/edos-category.dev.txt", f"{source}.dev.txt")
    data = read_data(source, "text")
    vectors, rows = stillvec.load(options.vectors), Rows(options.out)
    on = pairs_of(data, options.most) if options.most else source
    for name in choose(options, OBJECTIVES):
        for setting in OBJECTIVES[name]:
            for seed in list_seeds(options):
                spec = spell("cnn", options, f"objective={setting}")
                head = stillvec.fit(vectors, on, spec, seed=seed, device=options.device)
                said = {part: judge(head, data, getattr(data, part)) for part in ("dev", "test")}
                gold = data.targets().argmax(axis=1)
                scores = {way: macro_f1(gold[data.dev], numbers) for way, numbers in said["dev"].items()}
                numbers = {way: each.tolist() for way, each in said["test"].items()}
                rows.add(name=name, setting=setting, seed=seed, dev=scores, **numbers, gold=gold[data.test].tolist())


def judge(head: stillvec.Head, data: LabelledData, rows: NDArray[np.int64]) -> dict[str, NDArray[np.int64]]:
    """The numbers of the labels of items: by the head, and by the nearest training texts."""
    place = {name: number for number, name in enumerate(data.names)}
    train, asked = ([str(data.items[row]) for row in part.tolist()] for part in (data.train, rows))
    known = data.targets()[data.train].argmax(axis=1)
    votes = count_votes(head.encode(train), known, head.encode(asked), N_NEIGHBOURS, len(place))
    named = np.array([place[str(label)] for label in head.predict(asked)])
    return {"labels": named, "knn": votes.argmax(axis=1), "balanced": balance_votes(votes, known).argmax(axis=1)}


def macro_f1(gold: NDArray[np.int64], said: NDArray[np.int64]) -> float:
    n = int(max(gold.max(), said.max())) + 1
    right = np.bincount(gold[gold == said], minlength=n)
    both = np.bincount(gold, minlength=n) + np.bincount(said, minlength=n)
    return float(np.mean(2 * right[both > 0] / both[both > 0]))


def fit_attention(options: argparse.Namespace) -> None:
    """SST-2, and baseball or hockey: what the attention of a head says, with and without states near their words."""
    vectors, rows = stillvec.load(options.vectors), Rows(options.out)
    for dataset, path in {"sst2": write_sst2(), "sport20ng": write_short("sport20ng", 100)}.items():
        if options.on not in (None, dataset):
            continue
        data = read_data(path, "text")
        on = pairs_of(data, options.most) if options.most else path
        for name in choose(options, ATTENTION):
            for seed in list_seeds(options):
                spec = spell("attention", options, "epochs=10,patience=2" if not options.epochs else "")
                head = stillvec.fit(vectors, on, spec, ATTENTION[name], seed=seed, device=options.device)
                asked = [str(data.items[row]) for row in data.test.tolist()]
                gold = data.targets()[data.test].argmax(axis=1)
                rows.add(dataset=dataset, name=name, seed=seed, **diagnose(head, asked, gold), gold=gold.tolist())


def write_sst2() -> Path:
    """SST-5 without its middle label, and the others joined."""
    target = Path("out/heads/classification")
    target.mkdir(parents=True, exist_ok=True)
    for part in ("train", "dev", "test"):
        lines = (data_folder() / f"classification/sst5.{part}.txt").read_text("utf-8").splitlines()
        kept = [f"{int(line[0]) // 3} {line[2:]}" for line in lines if line[0] != "2"]
        (target / f"sst2.{part}.txt").write_text("\n".join(kept) + "\n", "utf-8")
    return target / "sst2"


def write_short(name: str, most: int) -> Path:
    """A dataset whose texts are cut to their first words."""
    target = Path("out/heads/classification")
    target.mkdir(parents=True, exist_ok=True)
    for file in (workshop_folder() / "classification").glob(f"{name}.*.txt"):
        lines = file.read_text("utf-8").splitlines()
        (target / file.name).write_text("\n".join(" ".join(line.split()[: most + 1]) for line in lines) + "\n", "utf-8")
    return target / name


def diagnose(head: stillvec.Head, texts: Sequence[str], gold: NDArray[np.int64]) -> dict[str, Any]:
    """What is said with other attention, without the most attended words, and by single words."""
    kind: Any = head.kind
    sequences, random = head._read(texts), np.random.default_rng(0)
    changes: dict[str, Any] = {"trained": None, "uniform": _flatten, "permuted": lambda a, n: _permute(a, n, random)}
    made = {name: kind.attend(head.arrays, sequences, change) for name, change in changes.items()}
    said = {name: kind.score_features(head.arrays, features).argmax(axis=1) for name, (features, _) in made.items()}
    given = made["trained"][1]
    without = remove_words(texts, head, given)
    deleted = head.score(without).argmax(axis=1)
    words, states, likely = [], [], []
    for numbers, block, _, lengths in kind.iterate_states(head.arrays, sequences):
        scores = kind.score_features(head.arrays, block.reshape(-1, block.shape[2])).reshape(*block.shape[:2], -1)
        shares = np.exp(scores - scores.max(axis=2, keepdims=True))
        shares /= shares.sum(axis=2, keepdims=True)
        for at, number in enumerate(numbers.tolist()):
            first = int(sequences.ends[number] - lengths[at])
            words += sequences.ids[first : first + lengths[at]].tolist()
            states.append(block[at, : lengths[at]])
            if said["trained"][number] == gold[number]:
                likely.append(float(shares[at, : lengths[at], gold[number]].mean()))
    facts = {"information": measure_information(sequences.table, np.array(words), np.concatenate(states))}
    facts |= {"word": float(np.mean(likely)), "deleted": float(np.mean(deleted != said["trained"]))}
    return facts | {name: numbers.tolist() for name, numbers in said.items()}


def _flatten(weights: NDArray[Any], lengths: NDArray[np.int64]) -> NDArray[Any]:
    inside = np.arange(weights.shape[1]) < lengths[:, None]
    return inside / np.maximum(lengths, 1)[:, None]


def _permute(weights: NDArray[Any], lengths: NDArray[np.int64], random: np.random.Generator) -> NDArray[Any]:
    changed = np.zeros_like(weights)
    for at, length in enumerate(lengths.tolist()):
        changed[at, :length] = weights[at, random.permutation(length)]
    return changed


def remove_words(texts: Sequence[str], head: stillvec.Head, weights: NDArray[Any], n_words: int = 3) -> list[str]:
    """The texts without the words of the largest weights."""
    words, start, kept = head._find_words(texts), 0, []
    for of_text in words:
        dropped = {*np.argsort(-weights[start : start + len(of_text)])[:n_words].tolist()}
        kept.append(" ".join(word for at, word in enumerate(of_text) if at not in dropped))
        start += len(of_text)
    return kept


def measure_information(table: NDArray[Any], ids: NDArray[np.int64], states: NDArray[Any]) -> float:
    """I(vector; state) in nats, both in 50 clusters, of the 200 most frequent words; bias is subtracted."""
    frequent = [word for word, _ in Counter(ids[ids > 1].tolist()).most_common(N_WORDS)]
    chosen = np.isin(ids, frequent)
    joint = cross_tabulate(
        clusters(np.asarray(table[ids[chosen]], np.float32), N_CLUSTERS), clusters(states[chosen], N_CLUSTERS)
    )
    return information(joint) - bias(joint)


def show_objectives(rows: list[dict[str, Any]]) -> None:
    """The setting is selected on development posts, by the macro-F1 of neighbours, for each objective."""
    chosen: dict[str, list[dict[str, Any]]] = {}
    for name in OBJECTIVES:
        by_setting = group(rows, lambda row, name=name: row["setting"] if row["name"] == name else None)
        if by_setting:
            chosen[name] = max(by_setting.values(), key=lambda part: np.mean([row["dev"]["knn"] for row in part]))
    gold = np.array(rows[0]["gold"])
    plain = [np.array(row["knn"]) for row in chosen["cross-entropy"]]

    def measure(part: list[dict[str, Any]], drawn: NDArray[np.int64]) -> NDArray[Any]:
        def score(way: str) -> float:
            return float(np.mean([macro_f1(gold[drawn], np.array(row[way])[drawn]) for row in part]))

        base = float(np.mean([macro_f1(gold[drawn], numbers[drawn]) for numbers in plain]))
        return np.array([score("labels"), score("knn"), score("balanced"), score("knn") - base])

    for part in chosen.values():
        cells = bootstrap(lambda drawn, part=part: measure(part, drawn), len(gold), 300)
        print_row(part[0]["setting"].replace(",", ", "), *cells)


def show_attention(rows: list[dict[str, Any]]) -> None:
    for (dataset, name), part in group(rows, lambda row: (row["dataset"], row["name"])).items():
        gold = np.array(part[0]["gold"])

        def measure(
            drawn: NDArray[np.int64], part: list[dict[str, Any]] = part, gold: NDArray[Any] = gold
        ) -> NDArray[Any]:
            ways = ("trained", "uniform", "permuted")
            scores = [np.mean([binary_f1(gold[drawn], np.array(row[way])[drawn]) for row in part]) for way in ways]
            return np.array([scores[0], scores[1] - scores[0], scores[2] - scores[0]])

        cells = bootstrap(measure, len(gold), 300)
        facts = [np.mean([row[key] for row in part]) for key in ("deleted", "information", "word")]
        print_row(dataset, name, *cells, f"{100 * facts[0]:.1f}%", f"{facts[1]:.2f}", f"{facts[2]:.3f}")


def binary_f1(gold: NDArray[np.int64], said: NDArray[np.int64]) -> float:
    return 2 * float((gold & said).sum()) / max(1, int(gold.sum() + said.sum()))


STUDIES = {"objectives": Study(fit_objectives, show_objectives), "attention": Study(fit_attention, show_attention)}

if __name__ == "__main__":
    main()
