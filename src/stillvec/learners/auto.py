"""The recipe that stands: what is best for words, or for sentences, from one encoding (docs/results.md has the gains).

For words, `v = [A ; 0.8 T ; 0.5 S]` in its first 300 principal components, rows unit:
- A, the word in its contexts: of the last three layers those that agree best with T, averaged. No labels are looked at:
  layers that say of pairs of words what the isolated words say are the layers that mean words (MiniLM: the last; MPNet:
  the last but one and two). Where all words share a direction (the mean holds more than a twentieth of the squared
  length; MPNet), the mean and the first principal direction are removed; where they do not (MiniLM), that only hurts.
- T, the word in templates, each centred, first direction removed, rows unit, averaged.
- S, `additive`: the word as a part of sentences.
- with a dictionary, G beside them, the word's glosses.
Without a corpus there is only T. For sentences it is `additive` alone, whose rows carry their weights.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from stillvec.learners.accumulators import AccumulatorSpec, WordMeans, WordStates, mean_matrix
from stillvec.learners.additive import Additive, WeightedSentences, solve_additive
from stillvec.learners.decontextualized import Isolated
from stillvec.learners.dictionary import Glosses, gloss_means
from stillvec.learners.table_memory import PeakEstimate
from stillvec.numerics import unit_rows
from stillvec.refinement.all_but_the_top import AllButTheTop
from stillvec.refinement.pca import principal_directions
from stillvec.result import Result
from stillvec.statistics import Statistics
from stillvec.statistics.mergeable import Array
from stillvec.vectors import WordVectors
from stillvec.vocabulary import Vocabulary

TEMPLATES = ("the meaning of {} is", "the word {}", "synonyms of {}:", "we talk about {} here.")
_ENOUGH = 3  # words: without the mean and a direction of fewer, nothing is left
_LOOKED_AT = 4000  # frequent words whose pairs are compared
_PAIRS = 200_000  # of these, the nearest
_AS_GOOD = 0.01  # a layer within this of the best agreement is taken too
_SHARED = 0.05  # of the squared length in the mean: from here on, words share a direction
_DIM = 300


@dataclass(frozen=True)
class Auto:
    purpose: str = "words"
    dim: int | None = None  # 300 for words, the teacher's own for sentences
    dictionary: str | None = None
    corpus: bool = True  # whether there is one; without, only words in templates are read
    templates: tuple[str, ...] = TEMPLATES
    template_weight: float = 0.8
    sentence_weight: float = 0.5
    dictionary_weight: float = 1.0
    FINISH_MEMORY: ClassVar[tuple[PeakEstimate, ...]] = (PeakEstimate(0.7, 0, 0, 17), PeakEstimate(1.5, 1, 30))

    def specs(self) -> dict[str, AccumulatorSpec]:
        if self.purpose == "sentences":
            return self._for_sentences().specs()
        found: dict[str, AccumulatorSpec] = {}
        if self.corpus:
            found |= {"states": WordStates("last3"), "sentences": WeightedSentences()}
        found |= {f"template-{n}": Isolated(text) for n, text in enumerate(self.templates)}
        return found if self.dictionary is None else found | {"glosses": Glosses(self.dictionary)}

    def finish(self, statistics: Mapping[str, Statistics]) -> Result:
        vocabulary = next(iter(statistics.values())).vocabulary
        if self.purpose == "sentences":
            return self._sentences(statistics)
        isolated = _average(_spread(each, vocabulary) for each in self._templates(statistics))
        spaces = {"templates": (self.template_weight, isolated)}
        notes: dict[str, object] = {}
        if self.corpus:
            layers, agreement = _agreeing(statistics["states"], isolated, vocabulary)
            means = WordMeans(statistics["states"])
            shared = {layer: _shared(means[layer]) for layer in layers}
            rows = [
                _spread(means[layer], vocabulary) if shared[layer] > _SHARED else unit_rows(means[layer])
                for layer in layers
            ]
            spaces["states"] = (1.0, _average(rows))
            notes["shared"] = {str(layer): round(value, 4) for layer, value in shared.items()}
            additive, _ = solve_additive(statistics["sentences"], ridge=0.1, iterations=12)
            spaces["sentences"] = (self.sentence_weight, unit_rows(additive - additive.mean(0)))
            notes |= {"layers": layers, "agreement": agreement, "why": "the layers that agree best with isolated words"}
        else:
            notes["why"] = "there is no corpus: only words in templates"
        if self.dictionary is not None:
            glosses, defined = gloss_means(statistics["glosses"], self.dictionary)
            centred = unit_rows(glosses - glosses[defined].mean(0)) * defined[:, None]
            spaces["glosses"] = (self.dictionary_weight, centred)
            notes["defined"] = int(defined.sum())
        notes["weights"] = {name: weight for name, (weight, _) in spaces.items()}
        joined = np.concatenate([weight * rows for weight, rows in spaces.values()], axis=1)
        return Result(WordVectors(vocabulary, unit_rows(reduced(joined, self.dim or _DIM))), notes)

    def _for_sentences(self) -> Additive:
        return Additive(ridge=0.03, directions=1)

    def _sentences(self, statistics: Mapping[str, Statistics]) -> Result:
        made = self._for_sentences().finish(statistics)
        matrix = made.vectors.matrix if self.dim is None else reduced(made.vectors.matrix, self.dim)
        why = "a mean of additive vectors is what a sentence needs; rows carry their SIF weight"
        return Result(WordVectors(made.vectors.vocabulary, matrix), {**made.notes, "why": why})

    def _templates(self, statistics: Mapping[str, Statistics]) -> Iterable[Array]:
        for label, kept in statistics.items():
            if label.startswith("template-"):
                (states,) = WordMeans(kept).values()
                yield states


def _spread(matrix: Array, vocabulary: Vocabulary) -> Array:
    """Centred, without its first principal direction, rows unit."""
    if len(matrix) < _ENOUGH:
        return unit_rows(matrix)
    directions = min(1, matrix.shape[1] - 1)
    return unit_rows(AllButTheTop(directions)(WordVectors(vocabulary, matrix)).matrix)


def _shared(matrix: Array) -> float:
    """The share of the rows' squared length that lies in their mean."""
    mean = matrix.mean(0, dtype=np.float64)
    return float(mean @ mean / max(float(np.mean(np.sum(np.square(matrix, dtype=np.float64), axis=1))), 1e-30))


def reduced(joined: Array, dim: int) -> Array:
    """The first principal components, as many as asked for or as there are, without centring: a mean says something."""
    dim = min(dim, joined.shape[1])
    return np.asarray(joined @ principal_directions(joined)[1][:, :dim])


def _average(spaces: Iterable[Array]) -> Array:
    return unit_rows(mean_matrix(spaces))


def _agreeing(statistics: Statistics, isolated: Array, vocabulary: Vocabulary) -> tuple[list[int], dict[str, float]]:
    """The layers whose similarities rank the nearest pairs of frequent words as the isolated words do."""
    rows = np.argsort(-vocabulary.counts, kind="stable")[:_LOOKED_AT]
    means = WordMeans(statistics)
    if len(rows) < 50:
        return [max(means)], {}
    wanted = _pair_similarities(isolated[rows])
    nearest = np.argsort(-wanted, kind="stable")[:_PAIRS]
    ranks = _ranks(wanted[nearest])
    found = {}
    for layer, states in means.items():
        got = _pair_similarities(_spread(states, vocabulary)[rows])[nearest]
        found[layer] = float(np.corrcoef(_ranks(got), ranks)[0, 1])
    best = max(found.values())
    layers = sorted(layer for layer, value in found.items() if value >= best - _AS_GOOD)
    return layers, {str(layer): round(value, 4) for layer, value in found.items()}


def _pair_similarities(rows: Array) -> Array:
    return np.asarray((rows @ rows.T)[np.triu_indices(len(rows), 1)])


def _ranks(values: Array) -> Array:
    ranks = np.empty(len(values))
    ranks[np.argsort(values, kind="stable")] = np.arange(len(values))
    return ranks
