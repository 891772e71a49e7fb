"""Texts of several sizes for the other recipes, every 64th paragraph to all: out/sizes/every-64.txt, every-32.txt, ...

    STILLVEC_DATA=... python recipes/texts.py [--every 64 16]

A script because no command samples paragraphs.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from scores import argument_parser, corpus_files

from stillvec.corpus import Corpus

FOLDER = Path("out/sizes")


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("--every", type=int, nargs="+", default=(64, 32, 16, 8, 4, 2, 1))
    options = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        paths = {step: FOLDER / f"every-{step}.txt" for step in options.every}
        streams = {step: stack.enter_context(path.open("w", encoding="utf-8")) for step, path in paths.items()}
        for number, paragraph in enumerate(Corpus(*corpus_files()).paragraphs()):
            for step, stream in streams.items():
                if number % step == 0:
                    stream.write(" ".join(paragraph.split()) + "\n")


if __name__ == "__main__":
    main()
