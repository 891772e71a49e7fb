"""The queries of the page as plain methods: up to three sets of vectors, each answering for itself."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import UsageError, VocabularyError
from stillvec.evaluation.crowding import Crowding
from stillvec.exploration.byte_text import decode_rows, encode_base64
from stillvec.exploration.examples import ExampleReader
from stillvec.exploration.word_columns import ColumnTable, pack_column
from stillvec.exploration.word_lookup import LexiconRelations, Suggester
from stillvec.exploration.word_map import DEFAULT_PROJECTIONS, MAX_WORDS, PROJECTIONS, MapCache, WordMap
from stillvec.numerics import top_k, unit_rows
from stillvec.search import SearchIndex
from stillvec.search.sense_neighbours import find_near
from stillvec.vectors import WordVectors
from stillvec.vocabulary.folding import fold
from stillvec.vocabulary.function_words import find_function_words
from stillvec.vocabulary.inflections import NeighbourGroups

MAX_SETS = 3
MAX_LISTED = 200  # words per query
MAX_RELATED = 16  # words per relation
N_LAYER_NEIGHBOURS = 5
N_SUGGESTIONS = 3
N_SENSE_NEIGHBOURS = 8
N_SAMPLED, N_LISTED = 300, 3000  # words whose lists are looked at, of so many frequent ones
Json = dict[str, Any]
Pair = tuple[str, str]
Answer = list[tuple[str, float]] | NeighbourGroups


@dataclass(frozen=True)
class Explorer:
    """Sets of vectors by name, in the order of the page, with an optional lexicon, corpus and layers."""

    sets: Mapping[str, WordVectors]
    relations: LexiconRelations | None = None
    reader: ExampleReader | None = None
    layers: Mapping[str, WordVectors] = field(default_factory=dict)  # of one teacher, shown with the details of a word
    columns: ColumnTable | None = None  # of the user, to colour, filter and search the map by
    projections: Sequence[str] = DEFAULT_PROJECTIONS  # that the page offers, first the one it shows first
    maps: MapCache = field(default_factory=MapCache)
    index: SearchIndex | None = None  # of documents

    def __post_init__(self) -> None:
        if not 0 < len(self.sets) <= MAX_SETS:
            raise UsageError.expected(f"1 to {MAX_SETS} sets of vectors", len(self.sets))
        for name, vectors in self.sets.items():
            if not len(vectors):
                raise VocabularyError(f"The vectors {name} contain no words.", code="no-words")
        for method in self.projections:
            if method not in PROJECTIONS:
                raise UsageError.unknown("projection", method, PROJECTIONS)
        if self.columns is not None and not any(word in self._first for word in self.columns.words):
            raise VocabularyError(f"No word of the columns is in {next(iter(self.sets))}.", code="no-words")

    def describe(self) -> Json:
        """What the page can query."""
        sets = [{"name": name, "words": len(vectors), "dim": vectors.dim} for name, vectors in self.sets.items()]
        return {
            "sets": sets,
            "lexicon": self.relations is not None,
            "corpus": self.reader is not None,
            "documents": 0 if self.index is None else self.index.n_documents,
            "mapped": MAX_WORDS,
            "projections": [*self.projections],
            "frequent": _list_content_words(self._first.words[:2000]),
        }

    def complete(self, prefix: str, k: int = 8) -> list[str]:
        """Words with a prefix, of the first set, then of the others."""
        words = [word for suggester in self._suggesters.values() for word in suggester.complete(prefix, k)]
        return [*dict.fromkeys(words)][:k]

    def find_neighbours(self, word: str, k: int = 12, *, group: bool = False) -> list[Json]:
        """The nearest neighbours of a word in each set, each with the numbers of all sets that list it.

        With `group`, one entry per word with its inflections; those of the word itself are `forms` of the answer.
        """
        if not group:
            return _mark_shared(self._query(lambda vectors: vectors.nearest(word, _check_k(k)), [word]))
        return _mark_shared(self._query(lambda vectors: vectors.nearest(word, _check_k(k), group=True), [word]))

    def solve_analogy(self, a: str, b: str, c: str, k: int = 8, method: str = "3cosadd") -> list[Json]:
        """`a` is to `b` as `c` is to what, in each set."""
        answers = self._query(lambda vectors: vectors.analogy(a, b, c, _check_k(k), method=method), [a, b, c])
        return _mark_shared(answers)

    def find_odd_one_out(self, words: Sequence[str]) -> list[Json]:
        """All words by their mean cosine with the others, the odd one first (Camacho-Collados & Navigli 2016)."""
        words = [*dict.fromkeys(words)]
        if not 3 <= len(words) <= MAX_LISTED:
            raise UsageError.expected(f"3 to {MAX_LISTED} words", len(words), where="odd one out")

        def rank(vectors: WordVectors) -> list[tuple[str, float]]:
            rows = unit_rows(vectors[words], np.float64)
            cosines = rows @ rows.T
            means = (cosines.sum(axis=1) - np.diag(cosines)) / (len(words) - 1)
            return [(words[row], float(means[row])) for row in np.argsort(means, kind="stable").tolist()]

        return self._query(rank, words)

    def project_words(self, name: str, x: Sequence[str], y: Sequence[str] = (), words: Sequence[str] = ()) -> Json:
        """The coordinates of words on one or two axes; without `words` of frequent ones. Unknown words are listed."""
        vectors = self._find_set(name)
        if len(words) > MAX_LISTED:
            raise UsageError.expected(f"at most {MAX_LISTED} words", len(words), where="axes")
        words = [*dict.fromkeys(words)] or self.describe()["frequent"]
        known = [word for word in words if has_vector(vectors, word)]
        axes = {side: pair_words(ends, side) for side, ends in (("x", x), ("y", y)) if ends or side == "x"}
        for end in (end for pairs in axes.values() for pair in pairs for end in pair):
            if not has_vector(vectors, end):
                raise UnknownWord(end, name, self._suggesters[name].suggest(end))
        ends = {side: project_words(vectors, pairs, known).tolist() if known else [] for side, pairs in axes.items()}
        return {"words": known, "unknown": [word for word in words if not has_vector(vectors, word)], **ends}

    def search_documents(self, text: str, k: int = 10, method: str = "hybrid") -> list[Json]:
        """The best passages of the indexed documents for a text, without their whole text."""
        if self.index is None:
            raise UsageError.expected("an index of documents", "none", cure="start with --index DIR")
        hits = self.index.search(text, _check_k(k), method=method)  # type: ignore[arg-type]
        return [{name: value for name, value in asdict(hit).items() if name != "text"} for hit in hits]

    def describe_lists(self) -> list[Json]:
        """What is in the lists of nearest words of each set: inflections, beginnings, hubs (the task `neighbours`)."""
        return [{"name": name, **scores} for name, scores in self._list_scores.items()]

    @cached_property
    def _list_scores(self) -> dict[str, dict[str, float]]:
        scores = {}
        for name, vectors in self.sets.items():
            language = "english" if vectors.inflections.language == "en" else "none"
            scores[name] = Crowding(sample=N_SAMPLED, frequent=N_LISTED, language=language).summarize(vectors)
        return scores

    def find_senses(self, word: str) -> list[Json]:
        """The senses of a word in each set that has several, with their neighbours and examples."""
        senses = []
        for name, vectors in self.sets.items():
            for sense in vectors.senses.find(word) if vectors.senses is not None else ():
                near = find_near(vectors, sense, N_SENSE_NEIGHBOURS)
                words = [other for other, _ in near]
                senses.append({"set": name, "share": sense.share, "near": words, "examples": [*sense.examples]})
        return senses

    def describe_word(self, word: str) -> Json:
        """Count, rank and vector length in each set, relations in the lexicon; a word made of n-grams has no rank."""
        facts: list[Json] = []
        for name, vectors in self.sets.items():
            if has_vector(vectors, word):
                row = vectors.vocabulary.row(word)
                known = {"word": word, "rank": None, "count": 0}
                if row is not None:
                    count = int(vectors.vocabulary.counts[row])
                    known = {"word": vectors.words[row], "rank": row + 1, "count": count}
                facts.append({"name": name, **known, "norm": float(np.linalg.norm(vectors[word].astype(np.float64)))})
        if not facts:
            raise UnknownWord(word, None, self._suggest(word))
        facts.sort(key=lambda fact: fact["rank"] is None)  # a set with the word decides how it is written
        lexicon = {"relations": self.find_relations(word), "part": self.relations.part(word)} if self.relations else {}
        layers = {name: vectors for name, vectors in self.layers.items() if word in vectors}
        near = [(name, vectors.nearest(word, N_LAYER_NEIGHBOURS)) for name, vectors in layers.items()]
        suggestions = self._suggest(word) if facts[0]["rank"] is None else []
        more = {"senses": self.find_senses(facts[0]["word"]), "alike": suggestions}
        return {"word": facts[0]["word"], "sets": facts, "layers": near, **more, **lexicon}

    def find_relations(self, word: str) -> dict[str, list[str]]:
        """Related words in the lexicon that the first set with this word contains, the nearest first."""
        vectors = next((vectors for vectors in self.sets.values() if word in vectors), None)
        if vectors is None or self.relations is None:
            return {}
        result: dict[str, list[str]] = {}
        for relation, others in self.relations.find(word).items():
            known = [other for other in others if other in vectors]
            if known:
                cosines = unit_rows(vectors[known]) @ vectors[word]
                result[relation] = [known[at] for at in top_k(cosines, MAX_RELATED).tolist()]
        return result

    def find_examples(self, word: str) -> Json:
        """Sentences of the corpus."""
        if self.reader is None:
            raise UsageError("No corpus to find sentences in; pass --corpus FILE.", code="no-corpus")
        row = self._first.vocabulary.row(word)
        written = word if row is None else self._first.words[row]
        examples = self.reader.find(written, self._first.vocabulary)
        return {"found": examples.quotes[written], "read": examples.n_sentences, "ended": examples.complete}

    def get_map(self, name: str, method: str = "tsne", rows: str = "") -> Json:
        """The map of a set, or of some of its rows, or the progress of computing it; rows as in `decode_rows`."""
        vectors = self._find_set(name)
        chosen = decode_rows(rows, self.count_mapped(name)) if rows else None
        state = self.maps.get((name, method, rows), vectors, chosen)
        if isinstance(state, WordMap):
            return self.pack_map(name, state, chosen)
        return {"stage": state.stage, "done": state.done, "total": state.total}

    def pack_map(self, name: str, word_map: WordMap, rows: NDArray[np.int64] | None = None) -> Json:
        """A map as JSON: positions as little-endian pairs of 16 bits, clusters as bytes."""
        words = self._find_set(name).words
        words = words[: len(word_map.positions)] if rows is None else tuple(words[row] for row in rows.tolist())
        positions = np.round((word_map.positions.astype(np.float64) + 1) / 2 * 65535).astype("<u2")
        return {
            "words": words,
            "kept": word_map.preservation,
            "places": encode_base64(positions),
            "cluster": encode_base64(word_map.labels.astype(np.uint8)),
            "clusters": word_map.name_clusters(words),
        }

    def describe_fields(self, name: str, n_words: int = MAX_WORDS) -> Json:
        """What the words of a map are coloured and filtered by: counts, function words, parts of speech, columns."""
        vectors, n_words = self._find_set(name), min(self.count_mapped(name), n_words)
        words = vectors.words[:n_words]
        function_words = find_function_words(vectors.words)
        columns = [] if self.columns is None else self.columns.pack(vectors.vocabulary, n_words)
        part = None
        if self.relations is not None and self.relations.has_parts:
            parts = [self.relations.part(word) or None for word in words]
            part = pack_column("part of speech", parts, np.arange(n_words))
        return {
            "counts": vectors.vocabulary.counts[:n_words].tolist(),
            "function": [row for row, word in enumerate(words) if fold(word, True) in function_words],
            "part": part,
            "columns": columns,
        }

    def get_vectors(self, name: str, rows: str) -> Json:
        """The vectors of some rows as 32-bit floats."""
        vectors = self._find_set(name)
        chosen = decode_rows(rows, self.count_mapped(name))
        return {"dim": vectors.dim, "vectors": encode_base64(np.asarray(vectors.matrix[chosen]).astype("<f4"))}

    def count_mapped(self, name: str) -> int:
        """The number of words on a map of the set."""
        return min(len(self._find_set(name)), MAX_WORDS)

    def _query(self, answer: Callable[[WordVectors], Answer], words: Iterable[str]) -> list[Json]:
        """The answer of every set, or an error for a set that lacks a word; raises if all of them lack one."""
        answers: list[Json] = []
        for name, vectors in self.sets.items():
            missing = next((word for word in words if not has_vector(vectors, word)), None)
            if missing is None:
                answers.append({"name": name, "found": (found := answer(vectors))})
                answers[-1] |= {"forms": found.forms} if isinstance(found, NeighbourGroups) else {}
            else:
                error = UnknownWord(missing, name, self._suggesters[name].suggest(missing))
                answers.append({"name": name, "error": str(error), "alike": error.suggestions})
        if all("error" in answer for answer in answers):
            for word in words:
                if not any(has_vector(vectors, word) for vectors in self.sets.values()):
                    raise UnknownWord(word, None, self._suggest(word))
        return answers

    def _find_set(self, name: str) -> WordVectors:
        if name not in self.sets:
            raise UsageError.unknown("set of vectors", name, self.sets)
        return self.sets[name]

    def _suggest(self, word: str) -> list[str]:
        words = [known for suggester in self._suggesters.values() for known in suggester.suggest(word)]
        return [*dict.fromkeys(words)][:N_SUGGESTIONS]

    @property
    def _first(self) -> WordVectors:
        return next(iter(self.sets.values()))

    @cached_property
    def _suggesters(self) -> dict[str, Suggester]:
        return {name: Suggester(vectors.vocabulary) for name, vectors in self.sets.items()}


def has_vector(vectors: WordVectors, word: str) -> bool:
    """Whether a word has a vector, its own or one from n-grams."""
    return word in vectors or (vectors.subwords is not None and bool(word.strip()))


class UnknownWord(VocabularyError):  # noqa: N818 - it is not an error in the program
    """A word that is in none of the sets, or not in the set `name`, with words of similar spelling."""

    code = "unknown-word"

    def __init__(self, word: str, name: str | None, suggestions: list[str]) -> None:
        self.word = word
        self.suggestions = suggestions
        hint = f"did you mean {' or '.join(map(repr, suggestions))}?" if suggestions else "try another spelling."
        where = "not in the vocabulary" if name is None else f"not in {name}"
        super().__init__(f"{word!r} is {where}; {hint}")


def _mark_shared(answers: list[Json]) -> list[Json]:
    """Add to each word the numbers of all sets that list it."""
    lists = [{word for word, *_ in answer.get("found", ())} for answer in answers]
    for answer in answers:
        if "found" in answer:
            answer["found"] = [
                (word, score, [number for number, words in enumerate(lists) if word in words], *forms)
                for word, score, *forms in answer["found"]
            ]
    return answers


def _check_k(k: int) -> int:
    if not 1 <= k <= MAX_LISTED:
        raise UsageError.expected(f"1 to {MAX_LISTED}", k, where="k")
    return k


def _list_content_words(words: Sequence[str]) -> list[str]:
    """Sixty frequent words to start with, of four letters or more and no function words."""
    function_words = find_function_words(words)
    long = [word for word in words if len(word) > 3 and word.isalpha() and fold(word, True) not in function_words]
    return long[0 if function_words else len(long) // 6 :][:60]  # in other languages the first are function words


def project_words(vectors: WordVectors, pairs: Sequence[Pair], words: Sequence[str]) -> NDArray[np.float64]:
    """The coordinates (n,) of words on the axis through the means of some pairs (Bolukbasi et al. 2016).

    With unit vectors, `a` the mean of the left words and `b` that of the right ones, the coordinate of a word `w` is
    `2 (w - (a + b) / 2) · (b - a) / ‖b - a‖²`: -1 at the left end, +1 at the right end, 0 between them.
    """
    if not pairs:
        raise UsageError.expected("at least one pair of words such as he-she", "none", where="axis")
    left, right = (unit_rows(vectors[[pair[side] for pair in pairs]], np.float64).mean(axis=0) for side in (0, 1))
    axis = right - left
    length = float(axis @ axis)
    if length < 1e-12:
        name = ", ".join("-".join(pair) for pair in pairs)
        raise UsageError.conflict(f"Both ends of the axis {name} have the same vector", cure="use different words")
    middle = (left + right) / 2
    return np.asarray(2 * (unit_rows(vectors[words], np.float64) - middle) @ axis / length)


def pair_words(words: Sequence[str], name: str) -> list[Pair]:
    """he, she, good, bad → (he, she), (good, bad)."""
    if len(words) % 2:
        raise UsageError.expected("pairs such as he-she, good-bad", f"{len(words)} words", where=f"axis {name}")
    return [*zip(words[::2], words[1::2], strict=True)]
