"""Heads that learn from a tuned model (paper 10): labels alone, its labels, its probabilities, and more texts.

    python recipes/distilled_heads.py VECTORS DATASET --teacher TUNED --out results.json
    python recipes/distilled_heads.py --show RESULTS.json... [--several]

Writes a row per head, way of learning and seed as it goes; prints the means and the differences from labels alone, with
the interval of a paired bootstrap over test items.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
from scores import print_header, print_row, split_cells

import stillvec
import stillvec.heads.teacher_labels
from stillvec.heads.head_kind import micro_f1
from stillvec.heads.labelled_data import read_data

HEADERS = {"distilled": "| head | learns from | F1 or accuracy | seeds | less labels alone |"}
WAYS = {
    "labels": None,
    "teacher's labels": "hard=true",
    "teacher": "",
    "teacher, student first": "direction=student",
    "teacher's labels, more texts": "hard=true,augment={copies}",
    "teacher, more texts": "augment={copies}",
    "teacher's labels, unlabelled texts": "hard=true,texts={texts}",
    "teacher, unlabelled texts": "texts={texts}",
    "teacher's labels, more and unlabelled texts": "hard=true,augment={copies},texts={texts}",
    "teacher, more and unlabelled texts": "augment={copies},texts={texts}",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("vectors", nargs="?")
    add("dataset", nargs="?")
    add("--teacher")
    add("--out", type=Path)
    add("--show", nargs="+", type=Path, help="only print the table of these results")
    add("--several", action="store_true", help="with --show: texts have several labels")
    add("--heads", default="linear;cnn", help="with their settings, joined by semicolons")
    add("--ways", default="0,1,2,3,4,5", help="numbers of ways, from 0")
    add("--texts", type=Path, help="a file of texts without labels, for the last four ways")
    add("--copies", type=int, default=2, help="changed copies of each training text, for more texts")
    add("--seeds", type=int, default=3)
    add("--length", type=int, default=512, help="tokens of a text that the teacher reads")
    add("--weight", type=float, help="of the divergence from the teacher (default: 4, or 1 with several labels)")
    add("--first-seed", type=int, default=0)
    add("--device", default="auto")
    options = parser.parse_args()
    if options.show:
        show([row for file in options.show for row in json.loads(file.read_text("utf-8"))], several=options.several)
        return
    remember_labels()
    vectors = stillvec.load(options.vectors)
    data = read_data(options.dataset, "text")
    rows, asked = [], f"model={options.teacher},length={options.length}"
    asked += f",weight={options.weight}" if options.weight is not None else ""
    for head in options.heads.split(";"):
        for number in map(int, options.ways.split(",")):
            way = [*WAYS][number]
            n_seeds = 1 if head == "linear" and "more" not in way else options.seeds  # its regression has one solution
            for seed in range(options.first_seed, options.first_seed + n_seeds):
                spec, given = WAYS[way], []
                if spec is not None:
                    filled = spec.format(texts=options.texts, copies=options.copies)
                    given = [f"teacher:{','.join(filter(None, (asked, filled)))}"]
                start = time.perf_counter()
                fitted = stillvec.fit(vectors, options.dataset, head, given, seed=seed, device=options.device)
                name = way.replace("more texts", f"{options.copies} copies")
                row = {"head": head, "way": name, "seed": seed, "seconds": round(time.perf_counter() - start, 1)}
                rows.append(row | {"dev": fitted.manifest["scores"]["dev"]} | fitted.manifest["scores"]["test"])
                counts = judge(fitted, data)
                print(json.dumps(rows[-1]), flush=True)
                rows[-1]["counts"] = counts.tolist()
                options.out.write_text(json.dumps(rows), "utf-8")
    show(rows, several=data.multilabel)


def remember_labels() -> None:
    """Ask a teacher only once about each text."""
    labels = stillvec.heads.teacher_labels
    ask, known = labels._ask_classifier, {}

    def ask_once(folder, data, texts, device, length):
        asked = list(dict.fromkeys(text for text in texts if (folder, length, text) not in known))
        rows = (yield from ask(folder, data, asked, device, length)) if asked else []
        known.update(((folder, length, text), row) for text, row in zip(asked, rows, strict=True))
        return np.stack([known[folder, length, text] for text in texts])

    labels._ask_classifier = ask_once


def show(rows: list[dict], *, several: bool) -> None:
    """The table of rows, perhaps of several runs."""
    right: dict[tuple[str, str], list[np.ndarray]] = {}
    for row in rows:
        right.setdefault((row["head"], row["way"]), []).append(np.array(row["counts"]))
    print_header(*split_cells(HEADERS["distilled"]))
    for (head, way), of_seeds in right.items():
        scores = [
            row["micro-f1" if several else "accuracy"] for row in rows if (row["head"], row["way"]) == (head, way)
        ]
        plain = right.get((head, "labels")) if way != "labels" else None  # in other results, perhaps
        shown = "{:+.1f} [{:+.1f}, {:+.1f}]".format(*compare(plain, of_seeds, several=several)) if plain else ""
        print_row(head, way, 100 * float(np.mean(scores)), str(len(scores)), shown)


def judge(head: stillvec.Head, data) -> np.ndarray:
    """Of each test item, the number of correct, given and true labels (n, 3)."""
    place = {name: number for number, name in enumerate(head.labels)}
    said = np.zeros((len(data.test), len(place)), bool)
    for row, labels in enumerate(head.predict([data.items[row] for row in data.test])):
        said[row, [place[label] for label in (labels if data.multilabel else [labels])]] = True
    gold = data.targets()[data.test] > 0
    assert 0 <= micro_f1(said, gold) <= 1
    return np.stack([(said & gold).sum(axis=1), said.sum(axis=1), gold.sum(axis=1)], axis=1)


def compare(plain: list[np.ndarray], other: list[np.ndarray], *, several: bool) -> tuple[float, float, float]:
    """The difference of micro-F1 (accuracy, with one label per text), x 100, over seeds, and its 95% interval."""
    random = np.random.default_rng(0)
    sums = [np.mean(each, axis=0) for each in (plain, other)]
    draws = [np.arange(len(sums[0])), *(random.integers(0, len(sums[0]), len(sums[0])) for _ in range(1000))]

    def measure(counts: np.ndarray) -> float:
        correct, given, true = counts.sum(axis=0)
        return 200 * correct / max(given + true, 1) if several else 100 * correct / len(counts)

    values = [measure(sums[1][rows]) - measure(sums[0][rows]) for rows in draws]
    low, high = np.percentile(values[1:], [2.5, 97.5])
    return values[0], float(low), float(high)


if __name__ == "__main__":
    main()
