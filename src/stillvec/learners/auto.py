"""The default: the best combination for words, or for sentences, from one forward pass (docs/results.md has the gains).

For words, `v = [A ; 0.8 T ; 0.5 S]`, reduced to its first 300 principal components, rows of unit length:
- A, the word in its contexts, and T, the word in templates: one or more of three layers each, centred, first direction
  removed, rows of unit length. A look at the teacher proposes the layers (`learners/layer_look.py`). Those are used
  whose similarities agree best between contexts and templates, on the pairs of frequent words that are nearest in
  templates. Layers near the input agree because both contain the same tokens, so the similarity of the input
  embeddings is partialled out.
- S, `additive`: the word as a part of sentences.
- with a dictionary also G, the word's glosses.
For a corpus, `v = [A ; 0.5 S ; 1.5 W]`, W from `whitened_window`: what the words around it say, and no templates.
Without a corpus there is only T, of the best layer. For sentences it is `additive` alone, whose rows include their
weights, with words shrunk towards a map of their states; for queries the same with the teacher's own sentence vectors
and nothing removed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from stillvec.errors import UsageError
from stillvec.learners.accumulators import AccumulatorSpec, WordMeans, WordStates, to_numpy
from stillvec.learners.additive import Additive, WeightedSentences, solve_additive
from stillvec.learners.decontextualized import Templates
from stillvec.learners.device_algebra import (
    Table,
    find_largest,
    join,
    mean,
    pair_values,
    place,
    place_means,
    reduce_dimensions,
    spread,
    unit,
)
from stillvec.learners.dictionary import Glosses, gloss_means
from stillvec.learners.table_memory import FinishScale, PeakEstimate
from stillvec.learners.whitened_window import WhitenedWindow
from stillvec.numerics import partial_correlation, rank_values, unit_rows
from stillvec.result import Result
from stillvec.statistics import Array, Statistics
from stillvec.vectors import WordVectors
from stillvec.vocabulary import Vocabulary

if TYPE_CHECKING:
    from stillvec.learners.senses import Senses

TEMPLATES = ("the meaning of {} is", "the word {}", "synonyms of {}:", "we talk about {} here.")
_COMPARED = 4000  # frequent words whose pairs are compared between layers
_PAIRS = 200_000  # the nearest of these pairs
_TOLERANCE = 0.01  # a layer within this of the best agreement is used too
_CANDIDATES = "best3"  # layers to choose from
_DIM = 300
_WEIGHTS = {"words": (0.8, 0.5, 0.0), "corpus": (0.0, 0.5, 1.5)}  # of T, S and W, by purpose
_WHY = {  # by purpose
    "sentences": "the mean of additive vectors represents a sentence; rows include their SIF weight",
    "queries": "the mean of additive vectors is near the teacher's own vector of a text; rows include their SIF weight",
}


_WINDOW = WhitenedWindow(layer="best")


@dataclass(frozen=True)
class Auto:
    SUMMARY: ClassVar[str] = "computed from its states in its contexts, in templates and in sentences"
    PAPERS: ClassVar[tuple[str, ...]] = ("bommasani-2020",)
    FINISH_MEMORY: ClassVar[tuple[PeakEstimate, ...]] = (
        PeakEstimate(per_table=0.7, pair_bytes=24),
        PeakEstimate(per_table=1.5, tables=1, word_bytes=60, sentence_rows=1),
    )
    purpose: str = "words"  # what the vectors are for: words, corpus, sentences, or queries to documents of the teacher
    dim: int | None = None  # dimensions of the vectors; none: 300 for words, the teacher's own for sentences
    dictionary: str | None = None  # a dictionary with glosses: a file, or wordnet
    corpus: bool = True  # whether there is a corpus; without one only templates are read
    templates: tuple[str, ...] = TEMPLATES  # templates for isolated words, with {} in place of the word
    template_weight: float | None = None  # weight of T; none: 0.8 for words, 0 for a corpus
    sentence_weight: float | None = None  # weight of S; none: 0.5
    window_weight: float | None = None  # weight of W; none: 0 for words, 1.5 for a corpus
    dictionary_weight: float = 1.0  # weight of G
    senses: int | None = (
        None  # vectors per ambiguous word at most, beside its own (`learners/senses.py`); none: no senses
    )

    @staticmethod
    def choose_templates(templates: tuple[str, ...]) -> tuple[str, ...]:
        """Of those of a language; the question adds nothing to the others."""
        return templates[1:] or templates

    def finish_bytes(self, scale: FinishScale) -> int:
        if self.purpose in _WHY:
            return self._for_sentences().finish_bytes(scale)
        sample = self._senses.finish_bytes(scale) if self.senses is not None else 0
        return max(peak.total(scale) for peak in self.FINISH_MEMORY) + sample

    @property
    def _senses(self) -> Senses:
        from stillvec.learners.senses import Senses  # needs torch, which merging without senses does not

        return Senses(layer=_CANDIDATES, senses=self.senses or 1)

    def specs(self) -> dict[str, AccumulatorSpec]:
        if self.senses is not None and (self.purpose in _WHY or not self.corpus):
            what = "without a corpus" if not self.corpus else f"for {self.purpose}"
            raise UsageError.conflict(f"Senses are clusters of contexts of words; there are none {what}")
        if self.purpose in _WHY:
            return self._for_sentences().specs()
        specs: dict[str, AccumulatorSpec] = {}
        if self.corpus:
            specs |= {"states": WordStates(f"0+{_CANDIDATES}"), "sentences": WeightedSentences()}
            specs |= _WINDOW.specs() if self._weights["windows"] else {}
            specs |= self._senses.specs() if self.senses is not None else {}
        specs["templates"] = Templates(_CANDIDATES if self.corpus else "best", templates=self.templates)
        return specs if self.dictionary is None else specs | {"glosses": Glosses(dictionary=self.dictionary)}

    def finish(self, statistics: Mapping[str, Statistics]) -> Result:
        if self.purpose in _WHY:
            return self._finish_sentences(statistics)
        vocabulary = next(iter(statistics.values())).vocabulary
        templates = WordMeans(statistics["templates"])
        notes: dict[str, object] = {}
        if self.corpus:
            states = WordMeans(statistics["states"])
            choice = _choose_layers(states, templates, vocabulary)
            additive, _ = solve_additive(statistics["sentences"], ridge=0.1, iterations=12)
            sums = place(additive)
            spaces = {
                "templates": _join_layers(templates, choice.templates, vocabulary),
                "states": _join_layers(states, choice.states, vocabulary),
                "sentences": unit(sums - sums.mean(0)),
            }
            if self._weights["windows"]:
                spaces["windows"] = unit(place(_WINDOW.finish(statistics).vectors.matrix))
            why = "the layers whose similarities agree best between contexts and templates, beyond the input's"
            notes |= {"layers": choice.states, "template_layers": choice.templates}
            notes |= {"agreement": choice.agreement, "why": why}
        else:
            spaces = {"templates": _join_layers(templates, [max(templates)], vocabulary)}
            notes["why"] = "no corpus: only words in templates"
        if self.dictionary is not None:
            glosses, defined = gloss_means(statistics["glosses"], self.dictionary)
            centred = unit_rows(glosses - glosses[defined].mean(0)) * defined[:, None]
            spaces["glosses"] = place(centred)
            notes["defined"] = int(defined.sum())
        weights = {name: self._weights[name] or (0.0 if self.corpus else 1.0) for name in spaces}
        notes["weights"] = {name: weight for name, weight in weights.items() if weight}
        joint = join(weight * spaces[name] for name, weight in weights.items() if weight)
        matrix = to_numpy(unit(reduce_dimensions(joint, self.dim or _DIM)))
        vectors = WordVectors(vocabulary, matrix)
        if self.senses is not None:
            vectors, found = self._senses.finish_in(vectors, statistics["sample"])
            notes |= found
        return Result(vectors, notes)

    @property
    def _weights(self) -> dict[str, float]:
        """The weight of each part."""
        given = (self.template_weight, self.sentence_weight, self.window_weight)
        defaults = _WEIGHTS.get(self.purpose, _WEIGHTS["words"])
        chosen = (default if weight is None else weight for weight, default in zip(given, defaults, strict=True))
        parts = zip(("templates", "sentences", "windows"), chosen, strict=True)
        return {"states": 1.0, "glosses": self.dictionary_weight, **dict(parts)}

    def _for_sentences(self) -> Additive:
        if self.purpose == "queries":
            if self.dim is not None:
                raise UsageError.conflict(
                    "Vectors for queries have the dimensions of the teacher", cure="leave out dim"
                )
            return Additive(prior=True, vectors="own", centred=False)
        return Additive(prior=True, ridge=0.3, directions=1)

    def _finish_sentences(self, statistics: Mapping[str, Statistics]) -> Result:
        result = self._for_sentences().finish(statistics)
        matrix = result.vectors.matrix
        if self.dim is not None:
            matrix = to_numpy(reduce_dimensions(place(matrix), self.dim))
        return Result(WordVectors(result.vectors.vocabulary, matrix), {**result.notes, "why": _WHY[self.purpose]})


def _join_layers(means: WordMeans, layers: Sequence[int], vocabulary: Vocabulary) -> Table:
    """The mean of some layers, each spread, rows of unit length."""
    return unit(mean(spread(place_means(means, layer), vocabulary) for layer in layers))


class _Choice(NamedTuple):
    states: list[int]  # layers of A
    templates: list[int]  # layers of T
    agreement: dict[str, float]  # of "layer of A, layer of T"


def _choose_layers(states: WordMeans, templates: WordMeans, vocabulary: Vocabulary) -> _Choice:
    """The layers that agree best, and those that agree nearly as well with the best one of the other side."""
    rows = np.argsort(-vocabulary.counts, kind="stable")[:_COMPARED]
    if len(rows) < 50:
        return _Choice([max(states)], [max(templates)], {})
    in_contexts = {layer: _pair_similarities(states, layer, vocabulary, rows) for layer in states}
    agreement: dict[tuple[int, int], float] = {}
    for other in templates:
        alone = _pair_similarities(templates, other, vocabulary, rows)
        nearest = find_largest(alone, _PAIRS)
        ranks = {layer: rank_values(to_numpy(values[nearest])) for layer, values in in_contexts.items()}
        target = rank_values(to_numpy(alone[nearest]))
        for layer in templates:  # the candidates: states have the input besides
            agreement[layer, other] = partial_correlation(ranks[layer], target, ranks[0])
    (best, other), least = max(agreement, key=agreement.__getitem__), max(agreement.values()) - _TOLERANCE
    return _Choice(
        [layer for layer in templates if agreement[layer, other] >= least],
        [layer for layer in templates if agreement[best, layer] >= least],
        {f"{layer}, {other}": round(value, 4) for (layer, other), value in agreement.items()},
    )


def _pair_similarities(means: WordMeans, layer: int, vocabulary: Vocabulary, rows: Array) -> Table:
    chosen = spread(place_means(means, layer), vocabulary, rows)
    return pair_values(chosen @ chosen.T)
