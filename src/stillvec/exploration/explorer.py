"""What the page asks, as plain functions: up to three sets of vectors, each answering for itself."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from stillvec.errors import UsageError, VocabularyError
from stillvec.exploration.axes import along, paired
from stillvec.exploration.examples import ExampleReader
from stillvec.exploration.map_cache import Atlas
from stillvec.exploration.relations import PARTS, LexiconRelations
from stillvec.exploration.suggestions import Speller
from stillvec.exploration.word_map import MOST_WORDS, WordMap
from stillvec.vectors import WordVectors

MOST_SETS = 3
MOST_LISTED = 200  # words of one question
MOST_RELATED = 16  # of one relation
PER_LAYER = 5  # neighbours
Json = dict[str, Any]


@dataclass(frozen=True)
class Explorer:
    """Sets by their names, in the order of the page; what a lexicon, a corpus and layers add, if given."""

    sets: Mapping[str, WordVectors]
    relations: LexiconRelations | None = None
    reader: ExampleReader | None = None
    layers: Mapping[str, WordVectors] = field(default_factory=dict)  # of one teacher, for the card of a word
    atlas: Atlas = field(default_factory=Atlas)

    def __post_init__(self) -> None:
        if not 0 < len(self.sets) <= MOST_SETS:
            raise UsageError(f"One to {MOST_SETS} sets of vectors are looked at, and {len(self.sets)} came.")
        for name, vectors in self.sets.items():
            if not len(vectors):
                raise VocabularyError(f"The set {name} has no words, and there is nothing to look at; give another.")

    def about(self) -> Json:
        """What there is to ask."""
        sets = [{"name": name, "words": len(each), "dim": each.dim} for name, each in self.sets.items()]
        return {
            "sets": sets,
            "lexicon": self.relations is not None,
            "corpus": self.reader is not None,
            "mapped": MOST_WORDS,
            "frequent": _telling(self._first.words[:2000]),
        }

    def complete(self, typed: str, k: int = 8) -> list[str]:
        """Words that begin so, of the first set, then of the others."""
        found = [word for speller in self._spellers.values() for word in speller.beginning(typed, k)]
        return [*dict.fromkeys(found)][:k]

    def neighbours(self, word: str, k: int = 12) -> list[Json]:
        """The nearest words of a word in each set; with each neighbour the numbers of the sets it stands in."""
        answers = self._each(lambda vectors: {"found": vectors.nearest(word, _some(k))}, [word])
        return _with_shared(answers)

    def analogy(self, a: str, b: str, c: str, k: int = 8, method: str = "3cosadd") -> list[Json]:
        """What is to c as b is to a, in each set."""
        answers = self._each(lambda vectors: {"found": vectors.analogy(a, b, c, _some(k), method=method)}, [a, b, c])
        return _with_shared(answers)

    def odd_one_out(self, words: Sequence[str]) -> list[Json]:
        """All words from the odd one on: by their mean cosine with the others (Camacho-Collados & Navigli 2016)."""
        words = [*dict.fromkeys(words)]
        if not 3 <= len(words) <= MOST_LISTED:
            raise UsageError(f"The odd one is found among 3 to {MOST_LISTED} words, and {len(words)} came.")

        def answer(vectors: WordVectors) -> Json:
            rows = vectors[words].astype(np.float64)
            rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-30)
            cosines = rows @ rows.T
            means = (cosines.sum(axis=1) - np.diag(cosines)) / (len(words) - 1)
            order = np.argsort(means, kind="stable")
            return {"found": [(words[row], float(means[row])) for row in order.tolist()]}

        return self._each(answer, words)

    def axes(self, name: str, x: Sequence[str], y: Sequence[str] = (), words: Sequence[str] = ()) -> Json:
        """Where words lie on one axis or two; those of a list, or the most frequent ones. Unknown words are named."""
        vectors = self._named(name)
        if len(words) > MOST_LISTED:
            raise UsageError(f"At most {MOST_LISTED} words are laid along axes, and {len(words)} came.")
        asked = [*dict.fromkeys(words)] or self.about()["frequent"]
        known = [word for word in asked if has(vectors, word)]
        pairs = {side: paired(ends, side) for side, ends in (("x", x), ("y", y)) if ends or side == "x"}
        self._check_known(name, vectors, [word for each in pairs.values() for pair in each for word in pair])
        places = {side: along(vectors, each, known).tolist() if known else [] for side, each in pairs.items()}
        return {"words": known, "unknown": [word for word in asked if not has(vectors, word)], **places}

    def card(self, word: str) -> Json:
        """A word: its count and rank, its length in each set, what the lexicon says; one of n-grams has no rank."""
        facts: list[Json] = []
        for name, vectors in self.sets.items():
            row = vectors.vocabulary.row(word)
            if row is not None:
                count = int(vectors.vocabulary.counts[row])
                norm = float(np.linalg.norm(np.asarray(vectors.matrix[row], np.float64)))
                facts.append({"name": name, "word": vectors.words[row], "rank": row + 1, "count": count, "norm": norm})
            elif has(vectors, word):
                norm = float(np.linalg.norm(vectors[word]))
                facts.append({"name": name, "word": word, "rank": None, "count": 0, "norm": norm})
        if not facts:
            raise UnknownWord(word, "any set", self._alike(word))
        facts.sort(key=lambda fact: fact["rank"] is None)  # whoever knows the word says how it is written
        told = {"relations": self.related(word), "part": self.relations.part(word)} if self.relations else {}
        layers = [(name, each.nearest(word, PER_LAYER)) for name, each in self.layers.items() if word in each]
        alike = self._alike(word) if facts[0]["rank"] is None else []
        return {"word": facts[0]["word"], "sets": facts, "layers": layers, "alike": alike, **told}

    def related(self, word: str) -> dict[str, list[str]]:
        """What the lexicon says of a word, of the words that the first set with it has: the nearest ones first."""
        vectors = next((each for each in self.sets.values() if word in each), None)
        if vectors is None or self.relations is None:
            return {}
        found: dict[str, list[str]] = {}
        own = vectors[word]
        for relation, others in self.relations.of(word).items():
            known = [each for each in others if each in vectors]
            if known:
                rows = vectors[known]
                cosines = rows @ own / np.maximum(np.linalg.norm(rows, axis=1), 1e-30)
                order = np.argsort(-cosines, kind="stable")[:MOST_RELATED]
                found[relation] = [known[place] for place in order.tolist()]
        return found

    def examples(self, word: str) -> Json:
        """Sentences of the corpus."""
        if self.reader is None:
            raise UsageError("There is no corpus to find sentences in; give --corpus FILE.")
        row = self._first.vocabulary.row(word)
        written = word if row is None else self._first.words[row]
        seen = self.reader.examples(written, self._first.vocabulary.lowercase)
        return {"found": seen.found, "read": seen.read, "ended": seen.ended}

    def map(self, name: str) -> Json:
        """The map of a set, or how far it is."""
        state = self.atlas.look(name, self._named(name))
        if isinstance(state, WordMap):
            return self.packed_map(name, state)
        return {"stage": state.stage, "done": state.done, "total": state.total}

    def packed_map(self, name: str, laid: WordMap) -> Json:
        """As the page takes it: places as little-endian pairs of 16 bits, clusters and parts of speech as bytes."""
        vectors = self._named(name)
        words = vectors.words[: len(laid.places)]
        places = np.round((laid.places.astype(np.float64) + 1) / 2 * 65535).astype("<u2")
        packed = {
            "words": words,
            "kept": laid.kept,
            "places": _base64(places),
            "cluster": _base64(laid.cluster.astype(np.uint8)),
            "clusters": [[words[row] for row in rows if row >= 0] for rows in laid.central.tolist()],
        }
        if self.relations is not None and self.relations.tell_parts:
            parts = [self.relations.part(word) for word in words]
            packed["part"] = _base64(np.array([PARTS.index(p) + 1 if p in PARTS else 0 for p in parts], np.uint8))
        return packed

    def _each(self, answer: Callable[[WordVectors], Json], words: Iterable[str]) -> list[Json]:
        """The answer of every set, or in its place which word it lacks; none at all: an error."""
        answers: list[Json] = []
        for name, vectors in self.sets.items():
            lacking = [word for word in words if not has(vectors, word)]
            if lacking:
                missing = UnknownWord(lacking[0], name, self._spellers[name].alike(lacking[0]))
                answers.append({"name": name, "error": str(missing), "alike": missing.alike})
            else:
                answers.append({"name": name, **answer(vectors)})
        if all("error" in each for each in answers):
            lacking = [word for word in words if not any(has(each, word) for each in self.sets.values())]
            if lacking:
                raise UnknownWord(lacking[0], "any set", self._alike(lacking[0]))
        return answers

    def _check_known(self, name: str, vectors: WordVectors, words: Iterable[str]) -> None:
        for word in words:
            if not has(vectors, word):
                raise UnknownWord(word, name, self._spellers[name].alike(word))

    def _named(self, name: str) -> WordVectors:
        if name not in self.sets:
            raise UsageError(f"There is no set {name!r}; there are {', '.join(self.sets)}.")
        return self.sets[name]

    def _alike(self, word: str) -> list[str]:
        found = [each for speller in self._spellers.values() for each in speller.alike(word)]
        return [*dict.fromkeys(found)][:3]

    @property
    def _first(self) -> WordVectors:
        return next(iter(self.sets.values()))

    @cached_property
    def _spellers(self) -> dict[str, Speller]:
        return {name: Speller(vectors.vocabulary) for name, vectors in self.sets.items()}


def has(vectors: WordVectors, word: str) -> bool:
    """Whether there is a vector for it: its own, or one of its n-grams."""
    return word in vectors or (vectors.subwords is not None and bool(word.strip()))


class UnknownWord(VocabularyError):  # noqa: N818 - it is not an error in the program
    """A word that a set lacks, with those that are spelt alike."""

    def __init__(self, word: str, place: str, alike: list[str]) -> None:
        self.alike = alike
        hint = f"did you mean {' or '.join(map(repr, alike))}?" if alike else "try another spelling."
        where = "is in no set" if place == "any set" else f"is not in {place}"
        super().__init__(f"The word {word!r} {where}; {hint}")


def _with_shared(answers: list[Json]) -> list[Json]:
    """Each neighbour with the numbers of all sets that have it."""
    lists = [{word for word, _ in each.get("found", ())} for each in answers]
    for each in answers:
        if "found" in each:
            told = [
                (word, score, [n for n, other in enumerate(lists) if word in other]) for word, score in each["found"]
            ]
            each["found"] = told
    return answers


def _some(k: int) -> int:
    if not 1 <= k <= MOST_LISTED:
        raise UsageError(f"1 to {MOST_LISTED} neighbours can be asked for, and k is {k}.")
    return k


def _base64(array: np.ndarray[Any, Any]) -> str:
    return base64.b64encode(np.ascontiguousarray(array).tobytes()).decode("ascii")


def _telling(words: Sequence[str]) -> list[str]:
    """Sixty of these to begin with: of four letters or more, and past the first sixth, which are "that" and "with"."""
    whole = [word for word in words if len(word) > 3 and word.isalpha()]
    some = whole[len(whole) // 6 :]
    return some[:: max(1, len(some) // 60)][:60]
