"""Figure 1 of Gupta & Jaggi 2021 in our setting: the score by corpus size, from 1/64 to all: out/sizes.json

    STILLVEC_DATA=... STILLVEC_MINILM=... python recipes/sizes.py [--texts]

Every 64th paragraph, every 32nd, ...: out/sizes/every-64.txt. Vectors in out/sizes/every-64/METHOD are included, as
`stillvec train out/sizes/every-64.txt --method skipgram:epochs=15,cbow --min-count 2 --out out/sizes/every-64` writes.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

import stillvec
from stillvec.corpus import Corpus

METHODS = "aggregate,whitened_context,x2static,x2static:settings=gupta-jaggi-2021,attentive_skipgram,context_to_vec"
EVERY = (64, 32, 16, 8, 4, 2, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", action="store_true", help="only write the texts")
    parser.add_argument("--every", type=int, nargs="+", default=EVERY)
    options = parser.parse_args()
    data, folder = Path(os.environ["STILLVEC_DATA"]), Path("out/sizes")
    folder.mkdir(parents=True, exist_ok=True)
    if not all((folder / f"every-{step}.txt").exists() for step in options.every):
        _write_texts(data, folder, options.every)
    results = {}
    for every in [] if options.texts else options.every:
        vectors = stillvec.distill_all(
            folder / f"every-{every}.txt",
            teacher=os.environ["STILLVEC_MINILM"],
            method=METHODS,
            min_count=2,
            context_cache=folder / "contexts",
        )
        for path in sorted((folder / f"every-{every}").glob("*/manifest.json")):
            vectors[path.parent.name] = stillvec.load(path.parent)
        words = int(next(iter(vectors.values())).vocabulary.counts.sum())
        results[every] = {"words": words, "report": stillvec.evaluate(vectors, data, ["similarity"]).to_json()}
        Path("out/sizes.json").write_text(json.dumps(results))
        print(f"every {every}: {words:,} words", flush=True)


def _write_texts(data: Path, folder: Path, sizes: tuple[int, ...]) -> None:
    streams = {step: (folder / f"every-{step}.txt").open("w", encoding="utf-8") for step in sizes}
    files = sorted(map(str, (data / "corpora").glob("*.txt.xz")))
    for number, paragraph in enumerate(Corpus(*files).paragraphs()):
        for step, stream in streams.items():
            if number % step == 0:
                stream.write(" ".join(paragraph.split()) + "\n")
    for stream in streams.values():
        stream.close()


if __name__ == "__main__":
    main()
