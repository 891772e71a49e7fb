"""What a run takes in memory and on the disk, as far as its methods and words decide, and whether that is there.

The memory of a run is the largest resident set size of its process. At its peak it is the most of what follows:
- loading: measured by `plan`, which loads the teacher and counts the words as the run does;
- restoring, of a run that is resumed: the tables of the accumulators, and the largest array of the checkpoint;
- reading: a batch, measured; the tables, and what they grow by; a copy of that, while it grows and for a checkpoint;
- finishing, method by method: the tables, the results so far, and what the method says it needs (`FINISH_MEMORY`).
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from stillvec.encoding import count_readers
from stillvec.learners import Learner, PassPlan
from stillvec.learners.accumulators import HasDim, can_checkpoint, save_state
from stillvec.learners.table_memory import FinishScale, GrowsWithText, finish_peak
from stillvec.memory import RESERVE, require_memory
from stillvec.pipeline.pass_checkpoint import Arrays
from stillvec.pipeline.settings import Distillation
from stillvec.refinement.subword import fit_bytes
from stillvec.teachers import Teacher
from stillvec.vocabulary import Vocabulary

_STRING_BYTES = 600  # of a cached string, its tokens and its words
_WORKSPACE = 48 << 20  # of threads and of the allocator, which keeps some of what was freed
_STATES = 12  # of a batch, in memory at once beside those of the layers that are read
_MARGIN = 0.1  # of the estimate: batches and memory differ between runs


class Measured(NamedTuple):
    """Bytes that `plan` measured in its own process."""

    loading: int  # at the peak of loading the teacher and counting words
    reading: int  # at the peak of reading some batches
    resident: int  # after them


def estimate_peak(
    plan: PassPlan,
    settings: Distillation,
    teacher: Teacher,
    measured: Measured,
    n_words: int,
    n_sentences: int,
    checkpoint: Arrays | None = None,
) -> int:
    """Bytes at the peak of a run that reads so many words and sentences: an upper bound."""
    learners, vocabulary = plan.learners, plan.vocabulary
    on_cpu = teacher.device.type == "cpu"
    tables = table_bytes(learners, teacher, len(vocabulary)) if on_cpu else 0
    growth = text_bytes(learners, teacher, vocabulary, n_words, n_sentences) if on_cpu else 0
    cache = _STRING_BYTES * len(vocabulary)
    restored = max((array.nbytes for array in checkpoint.values()), default=0) if checkpoint is not None else 0
    finishing = max(finish_bytes(learners, settings, teacher, vocabulary, n_words, n_sentences), default=0)
    stages = (
        measured.loading,
        measured.resident + tables + growth + restored,
        measured.reading + cache + tables + 2 * growth,
        measured.resident + cache + tables + growth + finishing,
    )
    return int((max(stages) + _WORKSPACE) * (1 + _MARGIN))


def check_memory(plan: PassPlan, settings: Distillation, teacher: Teacher, n_tokens: int) -> None:
    """Refuse a run before the teacher reads if a batch, or finishing its methods, needs more memory than there is.

    Tables of accumulators that do not fit are in files, so only what is needed beside them counts.
    """
    finishing = max(finish_bytes(plan.learners, settings, teacher, plan.vocabulary), default=0)
    needed = max(finishing, batch_bytes(plan, teacher, n_tokens))
    cure = "give fewer --max-words or methods"
    require_memory(needed + RESERVE, f"The run with {len(plan.vocabulary):,} words", cure)


def batch_bytes(plan: PassPlan, teacher: Teacher, n_tokens: int) -> int:
    """Bytes of the states while batches of so many tokens are read; on a GPU, its memory is not this process's."""
    if teacher.device.type != "cpu":
        return 0
    accumulators = PassPlan(plan.learners, Vocabulary(())).make_accumulators(teacher).values()
    n_layers = len({layer for accumulator in accumulators for layer in accumulator.layers})
    return 4 * n_tokens * teacher.dim * (n_layers + _STATES) * count_readers(teacher)


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
    learners: Mapping[str, Learner],
    settings: Distillation,
    teacher: Teacher,
    vocabulary: Vocabulary,
    n_words: int = 0,
    n_sentences: int = 0,
) -> Iterator[int]:
    """Peak bytes beside the tables, for one method after the other; results stay in memory until the end."""
    results = 0
    for learner in learners.values():
        accumulators = PassPlan({"": learner}, Vocabulary(())).make_accumulators(teacher).values()
        n_tables = sum(len(accumulator.layers) for accumulator in accumulators)
        scale = FinishScale(vocabulary, max(teacher.dim, teacher.text_dim), n_tables, n_words, n_sentences)
        own = output_bytes(learner, settings, teacher, len(vocabulary))
        copied = text_bytes({"": learner}, teacher, vocabulary, n_words, n_sentences)  # as statistics
        yield results + max(finish_peak(learner, scale), copied + own + _completion_bytes(learner, settings, scale))
        results += own + copied


def _completion_bytes(learner: Learner, settings: Distillation, scale: FinishScale) -> int:
    """Bytes for reducing the dimensions, and for fitting n-grams."""
    dim = _output_dim(learner, settings, scale.dim)
    reduced = 3 * scale.table if settings.dim is not None and not isinstance(learner, HasDim) else 0
    return max(reduced, fit_bytes(len(scale.vocabulary), dim) if settings.oov else 0)


def output_bytes(learner: Learner, settings: Distillation, teacher: Teacher, n_words: int) -> int:
    """Bytes of the vectors, and of how often each word was read."""
    return n_words * (4 * _output_dim(learner, settings, max(teacher.dim, teacher.text_dim)) + 16)


def _output_dim(learner: Learner, settings: Distillation, teacher_dim: int) -> int:
    own = learner.dim if isinstance(learner, HasDim) else None
    return own or settings.dim or teacher_dim
