"""Words in context: does a word have the same sense in two texts (Pilehvar & Camacho-Collados 2019)?

Files: `word_in_context/*.tsv` with a label (1: the same sense, 0: another), the word and two texts that contain it, as
`recipes/word_in_context.py` writes them from WordNet's examples.

    accuracy        of "the same sense" where the similarity of the two uses reaches a threshold. For a teacher it is
                    the cosine of the two states of the word; for vectors with senses (`distill --senses`) that of the
                    senses that are nearest to the other words of each text, weighted by inverse frequency. Vectors
                    without senses have one vector per word, and are right by chance.
    accuracy-texts  a control: the same with the similarity of the other words of the two texts, which needs no senses

The threshold is the one that is best on the other half of the words, so that no item is judged by a threshold that was
chosen with it. Interval: percentile bootstrap over items; items of one word are not independent.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import DatasetError
from stillvec.evaluation.intervals import Floats, Rows
from stillvec.evaluation.item_files import make_items
from stillvec.evaluation.tasks import Answers, ContextualTask, Items
from stillvec.heads.dataset_files import lines
from stillvec.heads.lookup import Lookup
from stillvec.heads.sequence_batches import UNKNOWN, Representation
from stillvec.numerics import cosines, unit_rows
from stillvec.refinement.sif import weigh_words
from stillvec.vectors import WordVectors
from stillvec.vocabulary.folding import fold

_TOKEN = re.compile(r"['’]s\b|\w+(?:['’.](?!s\b)\w+)*|[^\w\s]")  # a possessive is a token of its own
_A = 1e-3  # constant of the SIF weights


@dataclass(frozen=True)
class WordInContext(ContextualTask):
    files: ClassVar[tuple[str, ...]] = ("word_in_context", ".tsv")
    item_unit: ClassVar[Literal["word", "text"]] = "text"
    controls: ClassVar[tuple[str, ...]] = ("-texts",)

    def read(self, path: Path) -> Items:
        what, texts, labels = "0 or 1, a word and two texts", [], []
        for number, line in lines(path):
            fields = line.split("\t")
            if len(fields) != 4 or fields[0] not in ("0", "1"):
                raise DatasetError.expected(what, repr(line[:40]), path=path, line=number)
            for text in fields[2:]:
                if _find_word(fields[1], _split_words(text)) is None:
                    raise DatasetError.expected(f"a text with {fields[1]!r}", repr(text[:60]), path=path, line=number)
            texts.append(tuple(fields[1:]))
            labels.append(float(fields[0]))
        return make_items(path, what, texts, labels)

    def answer_steps(self, lookup: Representation, items: Items) -> Generator[float, None, Answers]:
        words = [item[0] for item in items.texts]
        sentences = [_split_words(item[side]) for side in (1, 2) for item in items.texts]  # (2n,)
        places = [_find_word(word, sentence) or 0 for word, sentence in zip(words * 2, sentences, strict=True)]
        sequences = yield from lookup.read_tokens_steps(sentences)
        at = sequences.ends - sequences.lengths + np.array(places, np.int64)  # (2n,) where the words are
        uses = np.asarray(sequences.table[sequences.ids[at]], np.float32)  # (2n, dim)
        known = (sequences.ids[at] != UNKNOWN).reshape(2, -1)
        if isinstance(lookup, Lookup):
            others = [" ".join(_remove(sentence, place)) for sentence, place in zip(sentences, places, strict=True)]
            contexts = lookup.vectors.encode(others, weights=weigh_words(lookup.vectors, _A))
            uses = _choose_senses(lookup.vectors, words * 2, contexts, uses)
        else:
            ids = sequences.ids.copy()
            ids[at] = UNKNOWN
            contexts = replace(sequences, ids=ids).means()
        halves = np.array([blake2b(word.encode(), digest_size=1).digest()[0] % 2 for word in words])
        compared = {"accuracy": uses, "accuracy-texts": contexts}
        pairs = {name: cosines(*rows.reshape(2, len(words), -1)) for name, rows in compared.items()}
        right = {name: judge(similarities, items.gold, halves) for name, similarities in pairs.items()}
        return Answers(known[0] & known[1], right)


def judge(similarities: Floats, same: Floats, halves: Rows) -> Floats:
    """Whether each pair is judged correctly (n,), by the threshold that is best on the pairs of the other half."""
    right = np.zeros(len(same))
    for half in (0, 1):
        here, there = halves == half, halves != half
        threshold = find_threshold(similarities[there], same[there])
        right[here] = (similarities[here] >= threshold) == (same[here] > 0)
    return right


def find_threshold(similarities: Floats, same: Floats) -> float:
    """The one from which on "the same" is correct most often, the lowest of equally good ones."""
    order = np.argsort(similarities, kind="stable")
    ordered, labels = similarities[order], same[order] > 0
    below = np.concatenate([[0], np.cumsum(~labels)])  # correct among the first k, called different
    above = labels.sum() - np.concatenate([[0], np.cumsum(labels)])  # and among the others, called the same
    is_start = np.concatenate([[True], ordered[1:] > ordered[:-1] + 1e-6, [True]]) if len(order) else np.array([True])
    best = int(np.argmax(np.where(is_start, below + above, -1)))
    if best in (0, len(order)):
        return -np.inf if best == 0 else np.inf
    return float(ordered[best - 1] + ordered[best]) / 2


def _choose_senses(
    vectors: WordVectors, words: Sequence[str], contexts: NDArray[np.float32], own: NDArray[np.float32]
) -> NDArray[np.float32]:
    """For each word the sense nearest to its context, or its own vector if it has one sense (n, dim)."""
    chosen = own.copy()
    senses = {word: vectors.senses.find(word) for word in {*words}} if vectors.senses is not None else {}
    for at, word in enumerate(words):
        if found := senses.get(word):
            table = np.stack([sense.vector for sense in found])
            chosen[at] = table[int(np.argmax(unit_rows(table) @ contexts[at]))]
    return chosen


def _split_words(text: str) -> list[str]:
    return _TOKEN.findall(text)


def _find_word(word: str, sentence: Sequence[str]) -> int | None:
    """The place of the first occurrence of a word."""
    folded = fold(word, True)
    return next((place for place, token in enumerate(sentence) if fold(token, True) == folded), None)


def _remove(sentence: Sequence[str], place: int) -> list[str]:
    return [*sentence[:place], *sentence[place + 1 :]]
