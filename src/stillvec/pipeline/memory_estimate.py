"""Memory and disk that methods take: accumulators' tables, what grows with the text, what finishing needs.

The size of an accumulator for all words follows from its sizes for no word and for one. What finishing needs besides is
stated by each method (`FINISH_MEMORY`).
"""

from collections.abc import Iterator, Mapping

from stillvec.learners import Learner, PassPlan
from stillvec.learners.accumulator_state import can_checkpoint, save_state
from stillvec.learners.accumulators import HasDim
from stillvec.learners.table_memory import GrowsWithText, HasFinishMemory, PeakEstimate
from stillvec.pipeline.settings import Distillation
from stillvec.teachers import Teacher
from stillvec.vocabulary import Vocabulary

_DEFAULT_PEAK = (PeakEstimate(2, 3),)
_PAIR_WORDS = 4_000


def table_bytes(learners: Mapping[str, Learner], teacher: Teacher, n_words: int) -> int:
    """Bytes of the tables that accumulators fill."""
    empty, one = (_state_bytes(learners, teacher, Vocabulary(words, [1] * len(words))) for words in ((), ("word",)))
    return empty + n_words * (one - empty)


def _state_bytes(learners: Mapping[str, Learner], teacher: Teacher, vocabulary: Vocabulary) -> int:
    accumulators = PassPlan(learners, vocabulary).make_accumulators(teacher).values()
    states = (save_state(accumulator) for accumulator in accumulators if can_checkpoint(accumulator))
    return sum(array.nbytes for state in states for array in state.values())


def text_bytes(
    learners: Mapping[str, Learner], teacher: Teacher, vocabulary: Vocabulary, n_words: int, n_sentences: int
) -> int:
    """Bytes that accumulators add for `n_words` words and `n_sentences` sentences that are read."""
    growing = (spec for spec in PassPlan(learners, vocabulary).specs if isinstance(spec, GrowsWithText))
    return sum(spec.text_bytes(teacher, vocabulary, n_words, n_sentences) for spec in growing)


def finish_bytes(
    learners: Mapping[str, Learner], settings: Distillation, teacher: Teacher, vocabulary: Vocabulary, n_words: int
) -> Iterator[int]:
    """Peak bytes beside the tables, for one method after the other; results stay in memory until the end."""
    table, results = 4 * len(vocabulary) * teacher.dim, 0
    n_pairs = min(len(vocabulary), _PAIR_WORDS) ** 2
    for learner in learners.values():
        accumulators = PassPlan({"": learner}, Vocabulary(())).make_accumulators(teacher).values()
        n_tables = sum(len(accumulator.layers) for accumulator in accumulators)
        peaks = learner.FINISH_MEMORY if isinstance(learner, HasFinishMemory) else _DEFAULT_PEAK
        yield results + max(peak.total(table, n_tables, n_words, n_pairs) for peak in peaks)
        results += output_bytes(learner, settings, teacher, len(vocabulary))


def output_bytes(learner: Learner, settings: Distillation, teacher: Teacher, n_words: int) -> int:
    """Bytes of the vectors, and of how often each word was read."""
    own = learner.dim if isinstance(learner, HasDim) else None
    return n_words * (4 * (own or settings.dim or teacher.dim) + 16)
