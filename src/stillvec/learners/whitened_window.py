"""Skip-gram with the teacher's states as centres, in closed form: one pass, no learning rate.

    c_i = (1 - a) h_i + a mean of h around i
    u_w = sum over the i in whose window w is of W^T (c_i - m) / (n_w + prior)

h are the teacher's states, m their mean, W their whitening into `dim` directions; n_w is the number of such i. Then the
first principal directions of all u are removed. It is where `context_to_vec` and, with a = 0, `attentive_skipgram`
begin with `start=closed` (Zheng et al. 2022, Wang et al. 2020).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from stillvec.learners.accumulators import Accumulator, AccumulatorSpec, TextSource, choose_layers
from stillvec.learners.table_memory import PeakEstimate
from stillvec.learners.whitened_means import RowSums, WhitenedMeans
from stillvec.registry import check_least
from stillvec.result import Result
from stillvec.statistics import Statistics
from stillvec.vocabulary import Vocabulary

if TYPE_CHECKING:  # merging needs no torch
    from stillvec.encoding import Encoded
    from stillvec.teachers import Teacher


@dataclass(frozen=True)
class WindowCentres:
    """Sums of the centres in whose window a word is, with the second moments of all states."""

    layer: str = "last"
    window: int = 2
    include_center: bool = True
    context_weight: float = 0.5
    source: ClassVar[TextSource] = TextSource.SENTENCES

    def make_accumulator(self, teacher: Teacher, vocabulary: Vocabulary) -> Accumulator:
        return _CentreSums(self, teacher, len(vocabulary))


class _CentreSums(RowSums):
    def __init__(self, spec: WindowCentres, teacher: Teacher, n_words: int) -> None:
        super().__init__(choose_layers(spec.layer, teacher), teacher, n_words)
        self.spec = spec

    def update(self, encoded: Encoded) -> None:
        import torch

        from stillvec.learners.windows import make_windows, sum_windows

        states = torch.stack([encoded.words(layer) for layer in self.layers]).mean(0)  # (W, D)
        self.add_moments(states)
        sentence, weight = encoded.to_device(encoded.batch.word_sentence), self.spec.context_weight
        near = make_windows(sentence, self.spec.window)
        n_near = near.mask.sum(1)
        centres = states
        if weight:  # a word without neighbours is its own centre
            mean = sum_windows(near, states) / n_near.clamp_min(1)[:, None]
            centres = torch.where((n_near > 0)[:, None], torch.lerp(states, mean, weight), states)
        sums = sum_windows(near, centres)
        if self.spec.include_center:
            sums, n_near = sums + centres, n_near + 1
        else:
            alone = n_near == 0
            sums, n_near = torch.where(alone[:, None], centres, sums), n_near + alone
        self.add_words(encoded.known_id, sums[encoded.known], n_near[encoded.known])


@dataclass(frozen=True)
class WhitenedWindow:
    SUMMARY: ClassVar[str] = "the mean of the states in and around its windows, whitened"
    PAPERS: ClassVar[tuple[str, ...]] = ("wang-2020", "zheng-2022")
    FINISH_MEMORY: ClassVar[tuple[PeakEstimate, ...]] = (PeakEstimate(tables=4.6),)
    layer: str = "last"  # layers of the teacher: last, all, a number, a range such as 3-6, last3, or best
    dim: int = 300  # dimensions of the vectors, at most those of the teacher
    window: int = 2  # words to each side of the centre
    include_center: bool = True  # whether a word is part of its own window
    context_weight: float = 0.5  # a, the weight of the states around the centre; 0: the centre's own state only
    ridge: float = 1.0  # added to the eigenvalues in the whitening, in units of their mean
    prior: float = 8.0  # centres at the overall mean, added to those of each word: a mean of few is noisy
    directions: int = 3  # principal directions removed at the end, with the mean; 0: nothing is removed

    def __post_init__(self) -> None:
        check_least(self, dim=1, window=1, context_weight=0, ridge=0, prior=0, directions=0)

    def specs(self) -> dict[str, AccumulatorSpec]:
        return {"centres": WindowCentres(self.layer, self.window, self.include_center, self.context_weight)}

    def finish(self, statistics: Mapping[str, Statistics]) -> Result:
        return WhitenedMeans(0.5, self.ridge, self.prior, self.directions, self.dim)(statistics["centres"])
