"""How much memory and disk methods take: tables that listeners fill, what grows with the reading, what finishing needs.

What listeners fill is known from themselves: their memory for no word and for one gives it for all. What finishing
takes besides is a table of data, measured on random states (40,000 words, MiniLM's 384 dimensions and 7 layers).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from stillvec.learners import LEARNERS, Learner, PassPlan
from stillvec.learners.accumulator_state import can_checkpoint, save_state
from stillvec.learners.additive import WeightedSentences
from stillvec.learners.first_component import StateSample
from stillvec.pipeline.settings import Distillation
from stillvec.teachers import Teacher
from stillvec.vocabulary import Vocabulary


class PeakEstimate(NamedTuple):
    """Memory at one moment of finishing, beside the tables that listeners filled."""

    for_each: float = 0  # tables of words x dimensions, for each one heard (a layer of a part),
    besides: float = 0  # and besides
    a_word: int = 0  # bytes, of words read
    a_pair: int = 0  # bytes, of pairs of the 4,000 most frequent words


FINISHING = {
    "additive": [PeakEstimate(0, 9, 60)],
    "aggregate": [PeakEstimate(0, 1)],
    "auto": [PeakEstimate(0.7, 0, 0, 17), PeakEstimate(1.5, 1, 30)],
    "decontextualized": [PeakEstimate(1, 3)],
    "dictionary": [PeakEstimate(1, 3)],
    "token_table": [PeakEstimate(0, 1.25)],
    "whitened_context": [PeakEstimate(0, 4.6)],
}
OTHERWISE = [PeakEstimate(2, 3)]
_PAIRS = 4_000


def table_bytes(learners: Mapping[str, Learner], teacher: Teacher, words: int) -> int:
    """Bytes of the tables that listeners fill."""
    none, one = (_held(learners, teacher, Vocabulary(given, [1] * len(given))) for given in ((), ("word",)))
    return none + words * (one - none)


def _held(learners: Mapping[str, Learner], teacher: Teacher, vocabulary: Vocabulary) -> int:
    accumulators = PassPlan(learners, vocabulary).make_accumulators(teacher).values()
    states = (save_state(each) for each in accumulators if can_checkpoint(each))
    return sum(array.nbytes for state in states for array in state.values())


def growing_bytes(
    learners: Mapping[str, Learner], teacher: Teacher, vocabulary: Vocabulary, words: int, sentences: int
) -> int:
    """Bytes that come with what is read: `words` and `sentences` of the corpus."""
    total = 0
    for spec in PassPlan(learners, vocabulary).specs:
        if isinstance(spec, WeightedSentences):
            total += 8 * words + 4 * sentences
        elif isinstance(spec, StateSample):
            kept = int(np.minimum(vocabulary.counts, spec.keep).sum())
            total += min(kept, words) * 2 * (2 * teacher.dim + 16)  # as many rows again are free
    return total


def finish_bytes(
    learners: Mapping[str, Learner], settings: Distillation, teacher: Teacher, vocabulary: Vocabulary, words: int
) -> Iterator[int]:
    """Bytes beside the tables, method after method; results stay until the end."""
    table, results = 4 * len(vocabulary) * teacher.dim, 0
    for learner in learners.values():
        pairs = min(len(vocabulary), _PAIRS) ** 2
        accumulators = PassPlan({"it": learner}, Vocabulary(())).make_accumulators(teacher).values()
        n_tables = sum(len(accumulator.layers) for accumulator in accumulators)
        yield results + max(
            int((stage.for_each * n_tables + stage.besides) * table) + stage.a_word * words + stage.a_pair * pairs
            for stage in FINISHING.get(_name(learner), OTHERWISE)
        )
        results += output_bytes(learner, settings, teacher, len(vocabulary))


def output_bytes(learner: Learner, settings: Distillation, teacher: Teacher, words: int) -> int:
    """Bytes of the vectors, and of how often each word was read."""
    return words * (4 * (getattr(learner, "dim", None) or settings.dim or teacher.dim) + 16)


def _name(learner: Learner) -> str:
    return next(name for name in LEARNERS if LEARNERS[name] is type(learner))
