"""How well senses are found: pairs of words that become one word, and words that stay as they are.

    python recipes/pseudowords.py write out/pseudowords.json CORPUS... [--wordnet FOLDER]
    python recipes/pseudowords.py table out/pseudowords.json minilm ... [--part test] [--bimodality 0.72 ...]

A pseudoword (Schütze 1992) is a word of which it is known where it means what: in the sentences of one noun, another
noun is written in its place. The nouns have one sense in WordNet and occur once in each of 64 sentences; a pseudoword
has 32 or 48 sentences of its own and the others of the second noun. `senses` should divide pseudowords, with the
contexts of each noun in one sense, and leave the nouns without a replacement as they are. Nouns of one sense may still
occur in two kinds of text, so that no rule divides none of them.

`table` reads the sentences with a teacher, at the layers that `auto` would choose from, and divides the words with each
value of the setting; states are kept in `pseudoword-states` beside the words. Choose settings on `--part development`:
its nouns are others than those of the test.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scores import argument_parser, print_header, print_row, split_cells, write_json

from stillvec import Vocabulary
from stillvec.corpus import Corpus
from stillvec.encoding.word_states import N_SPECIAL, MarkedTexts, read_states
from stillvec.learners.accumulators import choose_layers
from stillvec.learners.senses import TEXTS, Senses, encode_texts
from stillvec.lexicons.wordnet import DATA_FILES, find_wordnet, read_synsets
from stillvec.numerics import unit_rows
from stillvec.statistics import KEYS, SIZE, WORDS, Statistics
from stillvec.teachers import Teacher, load_teacher
from stillvec.vocabulary import WordSpans

HEADERS = {
    "pseudowords": "| teacher | layers | bimodality | half divided | quarter divided | noun divided | contexts right |",
}
PARTS = ("development", "test")
N_CONTEXTS = 64  # of a word
KINDS = {"half": 32, "quarter": 16, "one": 0}  # contexts of the second noun
_LENGTHS = range(40, 301)  # characters of a sentence
_INFLECTED = re.compile("(s|ing|ed)$")


class Pseudoword(NamedTuple):
    word: str
    kind: str  # of KINDS
    texts: list[str]  # contexts of the second noun come last


def find_nouns(folder: Path) -> set[str]:
    """Nouns with one synset, and no other part of speech."""
    counts: Counter[str] = Counter()
    nouns: set[str] = set()
    for name in DATA_FILES:
        for synset in read_synsets(folder / name, pointers=False):
            words = {word.lower() for word in synset.words}
            counts.update(words)
            nouns |= words if name.endswith("noun") else set()
    return {noun for noun in nouns if counts[noun] == 1 and noun.isalpha() and not _INFLECTED.search(noun)}


def sample_sentences(corpus: Corpus, nouns: set[str]) -> dict[str, list[str]]:
    """64 sentences of each noun that has so many, in an order by the hash of the noun."""
    generator, found, counts = random.Random(0), dict[str, list[str]](), Counter[str]()
    for sentence in corpus.sentences():
        if len(sentence) not in _LENGTHS:
            continue
        for word, times in Counter(re.findall(r"\b[a-z]{4,}\b", sentence)).items():
            if times > 1 or word not in nouns:
                continue
            counts[word] += 1
            texts = found.setdefault(word, [])
            place = generator.randrange(counts[word])
            if len(texts) < N_CONTEXTS:
                texts.append(sentence)
            elif place < N_CONTEXTS:
                texts[place] = sentence
    return {word: found[word] for word in sorted(found, key=_hash) if len(found[word]) == N_CONTEXTS}


def make_words(sentences: dict[str, list[str]], n_words: int) -> Iterator[Pseudoword]:
    """`n_words` of each kind."""
    nouns = list(sentences)
    for kind, n_second in KINDS.items():
        for _ in range(n_words):
            word = nouns.pop()
            texts = sentences[word][: N_CONTEXTS - n_second]
            if n_second:
                second = nouns.pop()
                texts += [re.sub(rf"\b{second}\b", word, text) for text in sentences[second][:n_second]]
            yield Pseudoword(word, kind, texts)


def _hash(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=4).digest(), "big")


def write_words(path: Path, sources: Sequence[Path], wordnet: Path | None, n_words: int) -> None:
    sentences = sample_sentences(Corpus(*sources), find_nouns(find_wordnet(wordnet)))
    parts = {}
    for number, part in enumerate(PARTS):
        chosen = {word: texts for word, texts in sentences.items() if _hash(f"part {word}") % 2 == number}
        parts[part] = [word._asdict() for word in make_words(chosen, n_words)]
        print(f"{part}: {len(parts[part])} words of {len(chosen)}")
    write_json(path, parts)


def read_sample(teacher: Teacher, words: Sequence[Pseudoword], folder: Path) -> Statistics:
    """The states of the words, as `senses` samples them."""
    texts = [text for word in words for text in word.texts]
    found = [re.search(rf"\b{word.word}\b", text) for word in words for text in word.texts]
    starts = np.array([match.start() for match in found if match], np.int32)
    ends = np.array([match.end() for match in found if match], np.int32)
    spans = WordSpans(np.full(len(texts), -1, np.int32), starts, ends, np.arange(len(texts), dtype=np.int32))
    layers = choose_layers("best3", teacher)
    steps = read_states(teacher, MarkedTexts(texts, spans), layers, folder)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            stores = end.value
            break
    states = np.mean([stores[layer].states[N_SPECIAL:] for layer in layers], axis=0, dtype=np.float32)  # (n, D)
    rows = np.repeat(np.arange(len(words), dtype=np.int32), N_CONTEXTS)
    arrays = {WORDS: rows, KEYS: np.arange(len(rows)), SIZE: np.array([N_CONTEXTS]), TEXTS: encode_texts(texts)}
    arrays |= {"sample:states": unit_rows(states).astype(np.float16), "sample:lengths": np.linalg.norm(states, axis=1)}
    vocabulary = Vocabulary([word.word for word in words], [N_CONTEXTS] * len(words))
    return Statistics(vocabulary, arrays)


class Scores(NamedTuple):
    divided: dict[str, float]  # of each kind: the share of words with several senses
    right: float  # contexts of divided pseudowords whose sense has mostly contexts of the same noun


def score(sample: Statistics, words: Sequence[Pseudoword], settings: Senses) -> Scores:
    _, senses = settings.find(sample)
    labels: dict[int, NDArray[np.int64]] = {}
    for number, sense in enumerate(senses):
        word = labels.setdefault(sense.word, np.zeros(N_CONTEXTS, np.int64))
        word[sense.rows - sense.word * N_CONTEXTS] = number
    divided = {
        kind: float(np.mean([number in labels for number, word in enumerate(words) if word.kind == kind]))
        for kind in KINDS
    }
    right = []
    for number, found in labels.items():
        second = np.arange(N_CONTEXTS) >= N_CONTEXTS - KINDS[words[number].kind]
        if second.any():
            sizes = [(np.sum(second[found == label]), np.sum(~second[found == label])) for label in np.unique(found)]
            right.append(sum(max(size) for size in sizes) / N_CONTEXTS)
    return Scores(divided, float(np.mean(right)) if right else float("nan"))


def print_table(path: Path, teachers: Sequence[str], part: str, values: Sequence[float]) -> None:
    words = [Pseudoword(**word) for word in json.loads(path.read_text("utf-8"))[part]]
    print_header(*split_cells(HEADERS["pseudowords"]))
    for name in teachers:
        teacher = load_teacher(name)
        sample = read_sample(teacher, words, path.parent / "pseudoword-states")
        layers = choose_layers("best3", teacher)
        for value in values:
            scores = score(sample, words, Senses(bimodality=value))
            cells = [f"{100 * share:.0f}%" for share in (*scores.divided.values(), scores.right)]
            span = f"{layers[0]}-{layers[-1]}" if len(layers) > 1 else str(layers[0])
            print_row(Path(name).name, span, f"{value:g}", *cells)


def main() -> None:
    parser = argument_parser(__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    write = verbs.add_parser("write", help="make the words")
    write.add_argument("path", type=Path)
    write.add_argument("corpora", type=Path, nargs="+")
    write.add_argument("--wordnet", type=Path, help="folder of WordNet's data files (default: where it is installed)")
    write.add_argument("--words", type=int, default=60, help="of each kind and part (default: %(default)s)")
    table = verbs.add_parser("table", help="divide them")
    table.add_argument("path", type=Path)
    table.add_argument("teachers", nargs="+")
    table.add_argument("--part", choices=PARTS, default="test")
    table.add_argument("--bimodality", type=float, nargs="+", default=[Senses.bimodality])
    options = parser.parse_args()
    if options.verb == "write":
        write_words(options.path, options.corpora, options.wordnet, options.words)
    else:
        print_table(options.path, options.teachers, options.part, options.bimodality)


if __name__ == "__main__":
    main()
