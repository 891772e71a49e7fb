"""The default: the best combination for words, or for sentences, from one forward pass (docs/results.md has the gains).

For words, `v = [A ; 0.8 T ; 0.5 S]`, reduced to its first 300 principal components, rows of unit length:
- A, the word in its contexts: of the last three layers those that agree best with T, averaged. No labels are used: the
  layers that rank pairs of words as isolated words do are the layers of word meaning (MiniLM: the last; MPNet: the last
  but one and two). Where all words share a direction (the mean has more than a twentieth of the squared length; MPNet),
  the mean and the first principal direction are removed; where they do not (MiniLM), that only hurts.
- T, the word in templates, each centred, first direction removed, rows of unit length, averaged.
- S, `additive`: the word as a part of sentences.
- with a dictionary also G, the word's glosses.
Without a corpus there is only T. For sentences it is `additive` alone, whose rows include their weights; for queries
the same with the teacher's own sentence vectors, nothing removed, and words shrunk towards a map of their states.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from stillvec.errors import UsageError
from stillvec.learners.accumulators import AccumulatorSpec, WordMeans, WordStates, mean_matrix, remove_directions
from stillvec.learners.additive import Additive, WeightedSentences, solve_additive
from stillvec.learners.decontextualized import Isolated
from stillvec.learners.dictionary import Glosses, gloss_means
from stillvec.learners.table_memory import FinishScale, PeakEstimate
from stillvec.numerics import spearman, unit_rows
from stillvec.refinement.pca import principal_directions
from stillvec.result import Result
from stillvec.statistics import Array, Statistics
from stillvec.vectors import WordVectors
from stillvec.vocabulary import Vocabulary

TEMPLATES = ("the meaning of {} is", "the word {}", "synonyms of {}:", "we talk about {} here.")
_COMPARED = 4000  # frequent words whose pairs are compared between layers
_PAIRS = 200_000  # the nearest of these pairs
_TOLERANCE = 0.01  # a layer within this of the best agreement is used too
_SHARED = 0.05  # of the squared length in the mean: from here on, words share a direction
_DIM = 300
_WHY = {  # by purpose
    "sentences": "the mean of additive vectors represents a sentence; rows include their SIF weight",
    "queries": "the mean of additive vectors is near the teacher's own vector of a text; rows include their SIF weight",
}


@dataclass(frozen=True)
class Auto:
    SUMMARY: ClassVar[str] = "computed from its states in its contexts, in templates and in sentences"
    PAPERS: ClassVar[tuple[str, ...]] = ("bommasani-2020",)
    FINISH_MEMORY: ClassVar[tuple[PeakEstimate, ...]] = (
        PeakEstimate(per_table=0.7, pair_bytes=17),
        PeakEstimate(per_table=1.5, tables=1, word_bytes=60, sentence_rows=1),
    )
    purpose: str = "words"  # what the vectors are for: words, sentences, or queries to documents of the teacher
    dim: int | None = None  # dimensions of the vectors; none: 300 for words, the teacher's own for sentences
    dictionary: str | None = None  # a dictionary with glosses: a file, or wordnet
    corpus: bool = True  # whether there is a corpus; without one only templates are read
    templates: tuple[str, ...] = TEMPLATES  # templates for isolated words, with {} in place of the word
    template_weight: float = 0.8  # weight of T
    sentence_weight: float = 0.5  # weight of S
    dictionary_weight: float = 1.0  # weight of G

    def finish_bytes(self, scale: FinishScale) -> int:
        peaks = Additive.FINISH_MEMORY if self.purpose in _WHY else self.FINISH_MEMORY
        return max(peak.total(scale) for peak in peaks)

    def specs(self) -> dict[str, AccumulatorSpec]:
        if self.purpose in _WHY:
            return self._for_sentences().specs()
        specs: dict[str, AccumulatorSpec] = {}
        if self.corpus:
            specs |= {"states": WordStates("last3"), "sentences": WeightedSentences()}
        specs |= {f"template-{n}": Isolated(template=text) for n, text in enumerate(self.templates)}
        return specs if self.dictionary is None else specs | {"glosses": Glosses(dictionary=self.dictionary)}

    def finish(self, statistics: Mapping[str, Statistics]) -> Result:
        if self.purpose in _WHY:
            return self._finish_sentences(statistics)
        vocabulary = next(iter(statistics.values())).vocabulary
        templates = [template for label, template in statistics.items() if label.startswith("template-")]
        states = (states for template in templates for states in WordMeans(template).values())
        isolated = unit_rows(mean_matrix(_spread(matrix, vocabulary) for matrix in states))
        spaces = {"templates": (self.template_weight, isolated)}
        notes: dict[str, object] = {}
        if self.corpus:
            layers, agreement = _choose_layers(statistics["states"], isolated)
            means = WordMeans(statistics["states"])
            shared = {layer: _mean_share(means[layer]) for layer in layers}
            rows = (
                _spread(means[layer], vocabulary) if shared[layer] > _SHARED else unit_rows(means[layer])
                for layer in layers
            )
            spaces["states"] = (1.0, unit_rows(mean_matrix(rows)))
            notes["shared"] = {str(layer): round(value, 4) for layer, value in shared.items()}
            additive, _ = solve_additive(statistics["sentences"], ridge=0.1, iterations=12)
            spaces["sentences"] = (self.sentence_weight, unit_rows(additive - additive.mean(0)))
            notes |= {"layers": layers, "agreement": agreement, "why": "the layers that agree best with isolated words"}
        else:
            notes["why"] = "no corpus: only words in templates"
        if self.dictionary is not None:
            glosses, defined = gloss_means(statistics["glosses"], self.dictionary)
            centred = unit_rows(glosses - glosses[defined].mean(0)) * defined[:, None]
            spaces["glosses"] = (self.dictionary_weight, centred)
            notes["defined"] = int(defined.sum())
        notes["weights"] = {name: weight for name, (weight, _) in spaces.items()}
        joint = np.concatenate([weight * rows for weight, rows in spaces.values()], axis=1)
        return Result(WordVectors(vocabulary, unit_rows(reduce_dimensions(joint, self.dim or _DIM))), notes)

    def _for_sentences(self) -> Additive:
        if self.purpose == "queries":
            if self.dim is not None:
                raise UsageError.conflict(
                    "Vectors for queries have the dimensions of the teacher", cure="leave out dim"
                )
            return Additive(prior=True, vectors="own", centred=False)
        return Additive(ridge=0.03, directions=1)

    def _finish_sentences(self, statistics: Mapping[str, Statistics]) -> Result:
        result = self._for_sentences().finish(statistics)
        matrix = result.vectors.matrix if self.dim is None else reduce_dimensions(result.vectors.matrix, self.dim)
        return Result(WordVectors(result.vectors.vocabulary, matrix), {**result.notes, "why": _WHY[self.purpose]})


def _spread(matrix: Array, vocabulary: Vocabulary) -> Array:
    """Centred, without the first principal direction, rows of unit length."""
    return unit_rows(remove_directions(matrix, vocabulary, 1))


def _mean_share(matrix: Array) -> float:
    """The share of the rows' squared length that lies in their mean."""
    mean = matrix.mean(0, dtype=np.float64)
    return float(mean @ mean / max(float(np.mean(np.sum(np.square(matrix, dtype=np.float64), axis=1))), 1e-30))


def reduce_dimensions(matrix: Array, dim: int) -> Array:
    """The first principal components, not centred: the mean carries meaning."""
    dim = min(dim, matrix.shape[1])
    return np.asarray(matrix @ principal_directions(matrix)[1][:, :dim])


def _choose_layers(statistics: Statistics, isolated: Array) -> tuple[list[int], dict[str, float]]:
    """The layers whose similarities rank the nearest pairs of frequent words as the isolated words do."""
    rows = np.argsort(-statistics.vocabulary.counts, kind="stable")[:_COMPARED]
    means = WordMeans(statistics)
    if len(rows) < 50:
        return [max(means)], {}
    expected = _pair_similarities(isolated[rows])
    nearest = np.argsort(-expected, kind="stable")[:_PAIRS]
    agreement = {}
    for layer, states in means.items():
        similarities = _pair_similarities(_spread(states, statistics.vocabulary)[rows])
        agreement[layer] = float(spearman(similarities[nearest], expected[nearest]))
    best = max(agreement.values())
    layers = sorted(layer for layer, value in agreement.items() if value >= best - _TOLERANCE)
    return layers, {str(layer): round(value, 4) for layer, value in agreement.items()}


def _pair_similarities(rows: Array) -> Array:
    return np.asarray((rows @ rows.T)[np.triu_indices(len(rows), 1)])
