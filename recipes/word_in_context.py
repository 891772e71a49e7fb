"""Words in context from WordNet's examples: `word_in_context/wordnet-development.tsv` and `-test.tsv` (docs/python.md).

    python recipes/word_in_context.py write out/words-in-context [--wordnet FOLDER]
    python recipes/word_in_context.py table --data out/words-in-context auto=out/senses teacher:minilm

`table` evaluates vectors and teachers on one half of the words (default: test) and prints a table. Choose settings on
the development half.

A pair of examples of one synset is of the same sense, one of two synsets of the same part of speech is not. WordNet's
senses are finer than most people's: pairs of different senses may be hard to tell apart for them, too. As in WiC
(Pilehvar & Camacho-Collados 2019), a word has as many pairs of one kind as of the other.
"""

import argparse
import re
import tempfile
from collections.abc import Iterator
from hashlib import blake2b
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

from stillvec import evaluate
from stillvec.lexicons.wordnet import DATA_FILES, find_wordnet, read_synsets

_QUOTE = re.compile('"([^"]+)"')
_WORD = re.compile(r"\w+")
_MIN_WORDS = 4  # of an example
_MAX_PAIRS = 4  # of each kind per word and part of speech
PARTS = ("development", "test")
HEADERS = {"word-in-context": ["vectors", "accuracy", "95%", "other words only", "pairs"]}


class SensePair(NamedTuple):
    same: bool  # the word has the same sense in both
    word: str
    one: str
    other: str


def read_sense_pairs(path: Path | None = None, part: str = "test") -> Iterator[SensePair]:
    """The pairs of one half of the words; a word is in the same half everywhere.

    Without a path WordNet is looked for where it is usually installed.
    """
    folder = find_wordnet(path)
    for name in DATA_FILES:
        examples: dict[str, dict[str, list[str]]] = {}  # word → synset → examples
        for synset in read_synsets(folder / name, pointers=False):
            for text in _QUOTE.findall(synset.gloss):
                words = _WORD.findall(text.lower())
                for word in {word.lower() for word in synset.words}.intersection(words):
                    if len(words) >= _MIN_WORDS and _find_part(word) == part:
                        examples.setdefault(word, {}).setdefault(synset.offset, []).append(" ".join(text.split()))
        for word in sorted(examples):
            yield from _pair_examples(word, examples[word])


def _pair_examples(word: str, synsets: dict[str, list[str]]) -> Iterator[SensePair]:
    same = [pair for texts in synsets.values() for pair in combinations(texts, 2)]
    other = [pair for one, two in combinations(synsets.values(), 2) for pair in ((a, b) for a in one for b in two)]
    number = min(len(same), len(other), _MAX_PAIRS)
    for is_same, pairs in ((True, same), (False, other)):
        chosen = sorted(pairs, key=lambda pair: _hash(" ".join(pair)))[:number]
        yield from (SensePair(is_same, word, *pair) for pair in chosen)


def _find_part(word: str) -> str:
    return PARTS[_hash(word) % 2]


def _hash(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=4).digest(), "big")


def write_pairs(folder: Path, wordnet: Path | None) -> None:
    (folder / "word_in_context").mkdir(parents=True, exist_ok=True)
    for part in PARTS:
        pairs = [*read_sense_pairs(wordnet, part)]
        lines = [f"{int(pair.same)}\t{pair.word}\t{pair.one}\t{pair.other}\n" for pair in pairs]
        path = folder / "word_in_context" / f"wordnet-{part}.tsv"
        path.write_text("".join(lines), "utf-8")
        print(f"{path}: {len(pairs):,} pairs of {len({pair.word for pair in pairs}):,} words")


def print_table(data: Path, part: str, named: list[str]) -> None:
    sources = dict(text.split("=", 1) if "=" in text else (text, text) for text in named)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "word_in_context").mkdir()
        name = f"wordnet-{part}.tsv"
        text = (data / "word_in_context" / name).read_text("utf-8")
        (Path(folder) / "word_in_context" / name).write_text(text, "utf-8")
        report = evaluate(sources, folder, "word_in_context")
    print(" | ".join(HEADERS["word-in-context"]))
    scores = {(score.vectors, score.metric): score for score in report.scores if score.words == "own"}
    for source in sources:
        main, control = scores[source, "accuracy"], scores[source, "accuracy-texts"]
        interval = f"{100 * main.low:.1f} to {100 * main.high:.1f}"
        print(f"{source} | {100 * main.value:.1f} | {interval} | {100 * control.value:.1f} | {main.n_covered:,}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    write = verbs.add_parser("write", help="write both halves")
    write.add_argument("folder", type=Path)
    write.add_argument("--wordnet", type=Path, help="folder of WordNet's data files (default: where it is installed)")
    table = verbs.add_parser("table", help="evaluate")
    table.add_argument("sources", nargs="+", metavar="[NAME=]VECTORS|teacher:NAME[@LAYER]")
    table.add_argument("--data", type=Path, required=True)
    table.add_argument("--part", choices=PARTS, default="test")
    options = parser.parse_args()
    if options.verb == "write":
        write_pairs(options.folder, options.wordnet)
    else:
        print_table(options.data, options.part, options.sources)


if __name__ == "__main__":
    main()
