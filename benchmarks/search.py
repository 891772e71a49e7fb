"""Search: nDCG@10 of vectors, BM25 and both on collections of judged queries; documents and queries per second.

    python benchmarks/search.py VECTORS... [--collections FOLDER] [--passages document] [--documents 100000]

A collection is a folder in the form of BEIR: corpus.jsonl and queries.jsonl (`_id`, `title`, `text`), qrels/test.tsv
(query, document, grade). Settings were chosen on every second query, the column "dev"; "test" are the others, and ±
is half of the 95% bootstrap interval of their mean. Speed: lines of 25 words made from the texts of the collections,
repeated up to --documents, with the first vectors.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import time
from collections import defaultdict
from itertools import cycle, islice
from pathlib import Path

import numpy as np

import stillvec
from stillvec.search import METHODS, SearchIndex

SHARED = Path(__file__).resolve().parents[2] / "shared" / "texts" / "retrieval"
_K = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("vectors", nargs="+")
    parser.add_argument("--collections", type=Path, default=SHARED)
    parser.add_argument("--passages", default="document")
    parser.add_argument("--documents", type=int, default=100_000)
    options = parser.parse_args()
    folders = sorted(path.parent for path in options.collections.glob("*/corpus.jsonl"))
    collections = {folder.name: read_collection(folder) for folder in folders}
    print("| vectors | method | " + " | ".join(f"{name} dev | test" for name in collections) + " | mean dev | test |")
    print("|---|---|" + "---|" * (2 * len(collections) + 2))
    for name in options.vectors:
        indexes = {
            key: stillvec.index(documents, name, passages=options.passages)
            for key, (documents, _, _) in collections.items()
        }
        for method in METHODS if name == options.vectors[0] else METHODS[:2]:
            scores = {key: score(indexes[key], *collections[key][1:], method) for key in collections}
            halves = [[part.mean() for part in parts] for parts in scores.values()]
            cells = [
                f"{dev:.3f} | {test:.3f} ± {interval(parts[1]):.3f}"
                for (dev, test), parts in zip(halves, scores.values(), strict=True)
            ]
            dev, test = np.mean(halves, axis=0)
            print(f"| {Path(name).name} | {method} | {' | '.join(cells)} | {dev:.3f} | {test:.3f} |", flush=True)
    measure_speed(options, [text for documents, _, _ in collections.values() for text in documents.values()])


def read_collection(folder: Path) -> tuple[dict[str, str], dict[str, str], dict[str, dict[str, float]]]:
    """Documents and judged queries by id, and the grades of each query."""
    texts = []
    for name in ("corpus.jsonl", "queries.jsonl"):
        records = map(json.loads, (folder / name).read_text("utf-8").splitlines())
        texts.append({r["_id"]: ". ".join(filter(None, [r.get("title", ""), r["text"]])) for r in records})
    grades: dict[str, dict[str, float]] = defaultdict(dict)
    for line in (folder / "qrels" / "test.tsv").read_text("utf-8").splitlines()[1:]:
        query, document, grade = line.split("\t")
        grades[query][document] = float(grade)
    return texts[0], {id: text for id, text in texts[1].items() if id in grades}, grades


def score(
    index: SearchIndex, queries: dict[str, str], grades: dict[str, dict[str, float]], method: str
) -> list[np.ndarray]:
    """nDCG@10 of each query: those for development, then the others."""
    values = []
    for id, text in queries.items():
        hits = index.search(text, _K, method=method, unique=True)  # type: ignore[arg-type]
        gains = [grades[id].get(hit.id, 0.0) for hit in hits]
        values.append(gain(gains) / gain(sorted(grades[id].values(), reverse=True)[:_K]))
    return [np.array(values[::2]), np.array(values[1::2])]


def gain(grades: list[float]) -> float:
    return sum(grade / math.log2(rank + 2) for rank, grade in enumerate(grades))


def interval(values: np.ndarray) -> float:
    resamples = np.random.default_rng(0).integers(0, len(values), (2000, len(values)))
    low, high = np.percentile(values[resamples].mean(axis=1), [2.5, 97.5])
    return float(high - low) / 2


def measure_speed(options: argparse.Namespace, texts: list[str]) -> None:
    words = [word for text in texts for word in text.split()]
    lines = [" ".join(words[at : at + 25]) for at in range(0, len(words), 25)]
    documents = ((str(number), text) for number, text in enumerate(islice(cycle(lines), options.documents)))
    vectors = stillvec.load(options.vectors[0])
    began, cpu = time.perf_counter(), time.process_time()
    index = stillvec.index(documents, vectors)
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    n = options.documents
    print(f"\n{index!r} on {os.cpu_count()} cores: {n / seconds:,.0f} documents/s ({n / cpu:,.0f} per CPU second)")
    queries = [" ".join(text.split()[:8]) for text in texts[:200]]
    for method in METHODS:
        index.search(queries[0], method=method)
        began = time.perf_counter()
        for query in queries:
            index.search(query, method=method)
        print(f"{method}: {len(queries) / (time.perf_counter() - began):,.0f} queries/s")


if __name__ == "__main__":
    main()
