"""The layers of a teacher: what can be read from them, and how much of their input they keep (papers 15 and 17).

    STILLVEC_DATA=... python recipes/layers.py probing auto=VECTORS skipgram=VECTORS
    STILLVEC_DATA=... python recipes/layers.py probes skipgram=VECTORS
    python recipes/layers.py information out/sizes/every-64.txt [--teachers minilm FOLDER ...]

A script because the tables join several evaluations.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scores import argument_parser, data_folder, format_interval, print_header, print_row, split_cells

from stillvec import evaluate, load
from stillvec.analysis import LayerAnalysis, analyze_layers
from stillvec.evaluation import Report, Score
from stillvec.evaluation.probing import GROUPS, Probing, fit_probe
from stillvec.evaluation.teacher_states import open_teachers
from stillvec.files import cache_folder
from stillvec.heads.lookup import Lookup

HEADERS = {
    "layers-probing": "| sentence vector | all | raw text | morphosyntax | syntax | all, less skip-gram |",
    "layers-probes": "| feature | skip-gram, ridge | SVR | layer 2, ridge | SVR | layer 6, ridge | SVR |",
    "layers-information": "| teacher | words | layer | I(input; layer) | shuffled | I(word; layer) | shuffled |",
}
FEATURES = ("raw:sent_length", "raw:char_per_tok", "morphosyntax:upos_dist_NOUN", "morphosyntax:upos_dist_PRON")
FEATURES += ("syntax:parse_depth", "syntax:max_links_len", "syntax:dep_dist_obj", "syntax:subordinate_proposition_dist")
TEST = "ud-ewt.test"


def main() -> None:
    parser = argument_parser(__doc__)
    commands = parser.add_subparsers(required=True)
    for name, run in (("probing", print_probing), ("probes", print_probes)):
        command = commands.add_parser(name)
        command.add_argument("vectors", nargs="+", metavar="NAME=VECTORS")
        command.set_defaults(run=run)
    command = commands.add_parser("information")
    command.add_argument("text")
    command.add_argument("--teachers", nargs="+", default=["minilm"])
    command.add_argument("--sentences", type=int, default=1000)
    command.add_argument("--words", type=int, default=200)
    command.add_argument("--clusters", type=int, default=50)
    command.add_argument("--seeds", type=int, default=3)
    command.set_defaults(run=print_information)
    options = parser.parse_args()
    options.run(options)


def print_probing(options: argparse.Namespace) -> None:
    """Every layer of MiniLM, by the mean of the words and by [CLS], beside vectors; quick: 3,000 training sentences."""
    sources: dict[str, Any] = dict(pair.split("=", 1) for pair in options.vectors)
    sources |= {f"layer {layer}": f"teacher:minilm@{layer}" for layer in range(7)}
    sources |= {f"layer {layer}, [CLS]": f"teacher:minilm@{layer}:cls" for layer in range(1, 7)}
    settings = {"only": TEST, "quick": True, "common": False, "resamples": 100, "cache": cache_folder() / "answers"}
    report = evaluate(sources, data_folder(), "probing:pooling=mean", **settings, progress=True)
    print_header(*split_cells(HEADERS["layers-probing"]))
    for name in sources:
        print_row(name, *_groups(report, name, "mean"), f"{_all(report, name) - _all(report, 'skipgram'):+.1f}")
    for name, label in (("layer 6", "all words"), ("skipgram", "words of skip-gram")):
        print_row(f"random vectors, {label}", *_groups(report, name, "mean-random"), "")
    print_row("length only", *_groups(report, "layer 6", "length"), "")


def _groups(report: Report, name: str, pooling: str) -> list[str | float]:
    scores: Mapping[str, Score] = {
        score.metric: score for score in report.scores if score.vectors == name and score.words == "own"
    }
    whole = scores[f"all-{pooling}"]
    return [
        format_interval(whole.value, whole.low, whole.high),
        *(100 * scores[f"{g}-{pooling}"].value for g in GROUPS),
    ]


def _all(report: Report, name: str) -> float:
    return next(100 * score.value for score in report.scores if (score.vectors, score.metric) == (name, "all-mean"))


def print_probes(options: argparse.Namespace) -> None:
    """Ridge regression beside the paper's LinearSVR, on 1,200 training and 800 test sentences."""
    from scipy.stats import spearmanr
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import LinearSVR

    task = Probing(quick=True, pooling="mean")
    items = task.read(data_folder() / "tagging" / f"{TEST}.conllu")
    split = items.rounds[0]
    part = type(split)(split.train[:900], split.dev[:300], split.test[:800])
    (path,) = (pair.split("=", 1)[1] for pair in options.vectors)
    teachers = open_teachers({f"layer {n}": f"teacher:minilm@{n}" for n in (2, 6)}, cache_folder())
    columns = [items.names.index(name) for name in FEATURES]
    gold = items.numbers[:, columns]
    found: dict[str, list[list[float]]] = {"ridge": [], "svr": []}
    for source in (Lookup(load(path)), *teachers.values()):
        x = source.read_tokens(items.all_texts).means().astype(np.float64)
        ridge = fit_probe(x, gold, part)
        found["ridge"].append([_rho(spearmanr(ridge[:, at], gold[part.test, at])) for at in range(len(FEATURES))])
        rows: list[float] = []
        for at in range(len(FEATURES)):
            model = make_pipeline(StandardScaler(), LinearSVR(max_iter=3000, random_state=0))
            spread = gold[part.both, at].std()
            model.fit(x[part.both], gold[part.both, at] / spread)
            rows.append(_rho(spearmanr(model.predict(x[part.test]), gold[part.test, at])))
        found["svr"].append(rows)
    print_header(*split_cells(HEADERS["layers-probes"]))
    for at, name in enumerate(FEATURES):
        cells = [found[kind][source][at] for source in range(3) for kind in ("ridge", "svr")]
        print_row(name.partition(":")[2], *(100 * cell for cell in cells))
    means = [float(np.mean(found[kind][source])) for source in range(3) for kind in ("ridge", "svr")]
    print_row("mean", *(100 * cell for cell in means))


def _rho(result: Any) -> float:
    return float(result.statistic)


def print_information(options: argparse.Namespace) -> None:
    """Both samples of words; the states are read once."""
    print_header(*split_cells(HEADERS["layers-information"]))
    for teacher in options.teachers:
        for sample in ("frequent", "random"):
            analysis = analyze_layers(
                teacher,
                os.fspath(options.text),
                n_words=options.words,
                sample=sample,
                k=options.clusters,
                seeds=options.seeds,
                n_sentences=options.sentences,
                cache=cache_folder(),
            )
            _print_layers(analysis)


def _print_layers(analysis: LayerAnalysis) -> None:
    name = Path(analysis.teacher).name
    for layer in analysis.layers:
        of_input, of_words = (f"{x.value:.2f} [{x.low:.2f}, {x.high:.2f}]" for x in (layer.of_input, layer.of_words))
        shuffled = f"{layer.of_input_shuffled:.2f}", f"{layer.of_words_shuffled:.2f}"
        print_row(name, analysis.sample, str(layer.layer), of_input, shuffled[0], of_words, shuffled[1])
    entropies = f"{analysis.input_entropy:.2f}", f"{analysis.word_entropy:.2f}"
    print_row(name, analysis.sample, "entropy", entropies[0], "", entropies[1], "")


if __name__ == "__main__":
    main()
