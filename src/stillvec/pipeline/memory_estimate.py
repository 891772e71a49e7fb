"""What a run takes in memory and on the disk, as far as its methods and words decide, and whether that is there."""

import os
from collections.abc import Iterator, Mapping

from stillvec.errors import StillvecError
from stillvec.learners import Learner, PassPlan
from stillvec.learners.accumulators import HasDim, can_checkpoint, save_state
from stillvec.learners.table_memory import GrowsWithText, HasFinishMemory, PeakEstimate, free_memory
from stillvec.pipeline.settings import Distillation
from stillvec.progress import format_bytes
from stillvec.teachers import Teacher
from stillvec.vocabulary import Vocabulary

_DEFAULT_PEAK = (PeakEstimate(2, 3),)
_PAIR_WORDS = 4_000
_SWITCH = "STILLVEC_MEMORY_CHECK"  # 0: try it anyway


def check_memory(plan: PassPlan, settings: Distillation, teacher: Teacher) -> None:
    """Refuse a run before the teacher reads if finishing its methods needs more memory than there is.

    Tables of accumulators that do not fit are in files, so only what a method needs beside them counts.
    """
    if os.environ.get(_SWITCH) == "0":
        return
    needed, free = max(finish_bytes(plan.learners, settings, teacher, plan.vocabulary, 0), default=0), free_memory()
    if needed > free:
        raise StillvecError(
            f"The run needs about {format_bytes(needed)} more memory for {len(plan.vocabulary):,} words, and "
            f"{format_bytes(free)} are free; give fewer --max-words or methods, or set {_SWITCH}=0 to try it anyway.",
            code="out-of-memory",
        )


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
