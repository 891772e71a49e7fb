"""Texts in several languages and dictionaries of words, from Debian packages: out/bilingual/en.txt, en-de.tsv, ...

    apt-get install dict-freedict-{eng-{deu,fra,spa,ita},{deu,fra,spa,ita}-eng} gimp-help-{en,de,fr,es,it} \\
        libreoffice-help-{en-us,de,fr,es,it}
    python recipes/bilingual_texts.py [--root /] [--texts DIR [--min-count 1] --only de fr]

The texts are the manuals of LibreOffice and GIMP, each paragraph once. The dictionaries are FreeDict's of both
directions: single words in lower case, that the texts of both languages have at least five times. With `--texts` only
dictionaries are made, of the words of DIR/en.txt, DIR/de.txt, ... A script because no command reads manuals or dictd
files.
"""

from __future__ import annotations

import gzip
import re
from collections import Counter
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

from scores import argument_parser

FOLDER = Path("out/bilingual")
LANGUAGES = {"de": "deu", "fr": "fra", "es": "spa", "it": "ita"}  # beside English: FreeDict's code
MIN_COUNT = 5  # the default of stillvec train
_WORD = re.compile(r"[^\W\d_]+")
_NOTES = re.compile(r"<[^>]*>|\[[^\]]*\]|\([^)]*\)|/[^/]*/|^\s*\d+\.")
_BLOCKS = {"p", "h1", "h2", "h3", "h4", "li", "dt", "dd", "td", "th"}


class _Paragraphs(HTMLParser):
    """The texts of paragraphs, headings and cells."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = [""]

    def handle_starttag(self, tag: str, attributes: object) -> None:
        self.texts += [""] if tag in _BLOCKS else []

    def handle_endtag(self, tag: str) -> None:
        self.texts += [""] if tag in _BLOCKS else []

    def handle_data(self, data: str) -> None:
        self.texts[-1] += data


def read_manuals(root: Path, language: str) -> Iterator[str]:
    """The paragraphs of five words or more, each once."""
    office = "en-US" if language == "en" else language
    folders = (root / "usr/share/libreoffice/help" / office, root / "usr/share/gimp/2.0/help" / language)
    seen = set()
    for file in sorted(file for folder in folders for file in folder.rglob("*.html")):
        parser = _Paragraphs()
        parser.feed(re.sub(r"(?s)<(script|style|header|aside)\b.*?</\1>", " ", file.read_text("utf-8")))
        for text in (" ".join(text.split()) for text in parser.texts):
            if text not in seen and len(_WORD.findall(text)) >= 5:
                seen.add(text)
                yield text


def read_dictionary(root: Path, name: str) -> Iterator[tuple[str, str]]:
    """Pairs of single words of a dictd file, in lower case."""
    path = root / "usr/share/dictd" / name
    content = gzip.decompress(path.with_suffix(".dict.dz").read_bytes())
    for line in path.with_suffix(".index").read_text("utf-8").splitlines():
        _, start, length = line.split("\t")[:3]
        entry = content[_decode(start) : _decode(start) + _decode(length)].decode()
        head, *senses = entry.split("\n")
        word = _NOTES.sub("", head).strip().lower()
        if not _WORD.fullmatch(word):
            continue
        for sense in senses:
            if ":" in sense or sense.startswith(("      ", " see")) or '"' in sense:
                continue
            for text in re.split("[,;]", _NOTES.sub(" ", sense)):
                if _WORD.fullmatch(translation := text.strip().lower()):
                    yield word, translation


def _decode(number: str) -> int:
    """A number of a dictd index: base 64, the most significant digit first."""
    digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    value = 0
    for digit in number:
        value = value * 64 + digits.index(digit)
    return value


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("--root", type=Path, default=Path("/"))
    parser.add_argument("--texts", type=Path, metavar="DIR")
    parser.add_argument("--min-count", type=int, default=MIN_COUNT)
    parser.add_argument("--only", nargs="+", choices=LANGUAGES, default=[*LANGUAGES])
    options = parser.parse_args()
    root: Path = options.root
    FOLDER.mkdir(parents=True, exist_ok=True)
    counts: dict[str, Counter[str]] = {}
    for language in ("en", *options.only):
        if options.texts:
            texts = (options.texts / f"{language}.txt").read_text("utf-8").splitlines()
        else:
            texts = [*read_manuals(root, language)]
            (FOLDER / f"{language}.txt").write_text("\n".join(texts) + "\n", encoding="utf-8")
        counts[language] = Counter(word for text in texts for word in _WORD.findall(text.lower()))
        print(f"{language}: {len(texts):,} paragraphs, {counts[language].total():,} words", flush=True)
    for language in options.only:
        code = LANGUAGES[language]
        pairs = dict.fromkeys(read_dictionary(root, f"freedict-eng-{code}"))
        pairs |= dict.fromkeys((b, a) for a, b in read_dictionary(root, f"freedict-{code}-eng"))
        known = [p for p in pairs if min(counts["en"][p[0]], counts[language][p[1]]) >= options.min_count]
        known.sort(key=lambda pair: (-counts["en"][pair[0]], pair))
        lines = "".join(f"{a}\t{b}\n" for a, b in known)
        (FOLDER / f"en-{language}.tsv").write_text(lines, encoding="utf-8")
        print(f"en-{language}: {len(known):,} pairs of {len({a for a, _ in known}):,} English words", flush=True)


if __name__ == "__main__":
    main()
