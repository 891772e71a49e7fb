"""gensim's skip-gram and CBOW on the same text and vocabulary, for the tables: out/skipgram/METHOD

    STILLVEC_DATA=... python recipes/skipgram.py [--corpus FILE...] [--out DIR] [--epochs 5 15]

They are trained on all sentences. Choose the epochs on the development sets; the rate is gensim's default, the rest
follows the recommendations of Levy & Goldberg (2015).
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import stillvec


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", nargs="+", default=[])
    parser.add_argument("--out", default="out/skipgram")
    parser.add_argument("--methods", nargs="+", default=["cbow", "skipgram"])
    parser.add_argument("--epochs", type=int, nargs="+", default=[5, 15])
    options = parser.parse_args()
    files = options.corpus or sorted(map(str, Path(os.environ["STILLVEC_DATA"], "corpora").glob("*.txt.xz")))
    method = ",".join(f"{name}:epochs={epochs},rate=0.025" for epochs in options.epochs for name in options.methods)
    stillvec.train(*files, method=method, min_count=2, out=options.out)


if __name__ == "__main__":
    main()
