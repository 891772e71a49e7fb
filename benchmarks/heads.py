"""Texts per second of a head on one core, beside model2vec's classifier and the teacher (its vector of each text).

    python benchmarks/heads.py VECTORS DATASET [--texts 20000] [--teacher minilm] [--heads linear,cnn]

model2vec's model reads texts with the same vectors, without a classifier. Medians of five
runs; the teacher reads 200 texts.
"""

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path

for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS"):
    os.environ[name] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

import numpy as np  # noqa: E402

import stillvec  # noqa: E402
from stillvec.heads.labelled_data import read_data  # noqa: E402


def measure(call, n_texts: int, n_runs: int = 5) -> float:
    """Texts per second, the median."""
    seconds = []
    for _ in range(n_runs):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return n_texts / statistics.median(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("vectors")
    add("dataset")
    add("--texts", type=int, default=20000)
    add("--teacher", default="minilm")
    add("--heads", default="linear,cnn")
    options = parser.parse_args()
    data = read_data(options.dataset, "text")
    known = [data.items[row] for row in data.test] or [*data.items]
    texts = (known * (1 + options.texts // len(known)))[: options.texts]
    print(f"{len(texts):,} texts of {np.mean([len(text.split()) for text in known]):.1f} words")
    rates = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in options.heads.split(","):
            stillvec.fit(options.vectors, options.dataset, name, out=Path(folder) / name, device="cpu")
            head = stillvec.load_head(Path(folder) / name)
            head.predict(texts[:100])
            size = sum(file.stat().st_size for file in (Path(folder) / name).rglob("*") if file.is_file())
            scores = head.manifest["scores"]
            given = scores["test"] or scores["dev"]
            rate = measure(lambda h=head: h.predict(texts), len(texts))
            rates[name] = rate
            print(f"{name}\t{rate:,.0f} texts/s\t{size / 1e6:.1f} MB\t{given}")
        measure_model2vec(options.vectors, texts)
    from stillvec.encoding.text_states import encode_texts
    from stillvec.progress import drain
    from stillvec.teachers import load_teacher

    teacher = load_teacher(options.teacher, device="cpu", precision="fp32")
    key = (teacher.depth, "mean" if teacher.head is None else "own")
    few = texts[:200]
    rate = measure(lambda: drain(encode_texts(teacher, few, [key])), len(few), 3)
    print(f"{options.teacher}\t{rate:,.0f} texts/s\t(vectors of texts alone, without a classifier)")
    for name, of_head in rates.items():
        print(f"{options.teacher} takes {of_head / rate:,.0f} times as long per text as {name}")


def measure_model2vec(source: str, texts: list[str]) -> None:
    """model2vec's encoding of texts with the same vectors, to which its classifier adds one or two layers."""
    from model2vec import StaticModel

    with tempfile.TemporaryDirectory() as folder:
        stillvec.save(stillvec.load(source), Path(folder) / "m", format="model2vec")
        model = StaticModel.from_pretrained(str(Path(folder) / "m"))
        rate = measure(lambda: model.encode(texts, use_multiprocessing=False), len(texts))
    print(f"model2vec\t{rate:,.0f} texts/s\t(vectors of texts alone, without a classifier)")


if __name__ == "__main__":
    main()
