"""Write out/reference.txt: descriptions of Debian's packages, WordNet's glosses and dictionaries, one entry per line.

    apt-get download dict-foldoc wordnet-base    # then dpkg-deb -x of each into FOLDER
    STILLVEC_DATA=... python recipes/reference_texts.py FOLDER [--descriptions FILE] [--out out/reference.txt]

FOLDER has `usr/share/dictd/*.dict.dz` with their `.index` and `usr/share/wordnet/data.*`; FILE is the list of package
descriptions (`*_main_i18n_Translation-en`) that `apt-get update` writes into /var/lib/apt/lists. General text about
many subjects, for words that the corpora do not have. No text that `recipes/whole_texts.py` tests on is in it. A script
because no command reads these formats.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from scores import argument_parser, data_folder
from text_mix import key, test_texts

_DIGITS = {c: n for n, c in enumerate("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")}
_MARKUP = re.compile(r"\\[^\\]{1,80}\\|\[[^\]]{0,80}\]|\(\d{4}-\d\d-\d\d\)|<[^>]{0,60}>|\{|\}")  # pronunciations, dates


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("--descriptions", type=Path, metavar="FILE")
    parser.add_argument("--out", type=Path, default=Path("out/reference.txt"))
    options = parser.parse_args()
    folders = [data_folder(), data_folder().resolve().parent / "texts"]
    seen = {key(text) for folder in folders for text in test_texts(folder)}
    sources = {path.name: read_dictionary(path) for path in sorted(options.folder.glob("usr/share/dictd/*.index"))}
    sources["WordNet"] = chain.from_iterable(map(read_glosses, sorted(options.folder.glob("usr/share/wordnet/data.*"))))
    if options.descriptions:
        sources["descriptions"] = read_descriptions(options.descriptions)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    with options.out.open("w", encoding="utf-8") as stream:
        for name, texts in sources.items():
            written = n_words = 0
            for text in texts:
                line = " ".join(text.split())
                if line.count(" ") > 2 and key(line) not in seen:
                    seen.add(key(line))
                    stream.write(line + "\n")
                    written, n_words = written + 1, n_words + line.count(" ") + 1
            print(f"{name}: {written:,} texts, {n_words:,} words", flush=True)


def read_dictionary(index: Path) -> Iterator[str]:
    """The entries of a dictionary of dictd, whose index has headword, offset and length, the numbers in base 64."""
    with gzip.open(index.with_suffix(".dict.dz")) as stream:
        content = stream.read()
    places = {tuple(line.split("\t")[1:3]) for line in index.read_text(encoding="utf-8").splitlines()}
    for offset, length in sorted((read_number(offset), read_number(length)) for offset, length in places):
        entry = content[offset : offset + length].decode("utf-8", "replace")
        if not entry.startswith("00-database"):
            head, _, text = entry.partition("\n")
            yield f"{_MARKUP.sub(' ', head)}: {_MARKUP.sub(' ', text)}"


def read_number(text: str) -> int:
    number = 0
    for character in text:
        number = 64 * number + _DIGITS[character]
    return number


def read_glosses(path: Path) -> Iterator[str]:
    """The words of a synset, and its gloss."""
    for line in path.read_text(encoding="latin-1").splitlines():
        if not line.startswith("  "):  # the licence
            fields, _, gloss = line.partition(" | ")
            columns = fields.split()
            words = columns[4 : 4 + 2 * int(columns[3], 16) : 2]
            yield f"{', '.join(words).replace('_', ' ')}: {gloss}"


def read_descriptions(path: Path) -> Iterator[str]:
    """The paragraphs of the descriptions of packages, the first with the name and the summary."""
    for block in path.read_text(encoding="utf-8").split("\n\n"):
        name = re.search(r"^Package: (.*)$", block, re.M)
        _, found, text = block.partition("\nDescription-en: ")
        if name and found:
            for at, paragraph in enumerate(re.split(r"\n \.\n", text)):
                yield f"{name[1]}: {paragraph}" if at == 0 else paragraph


if __name__ == "__main__":
    main()
