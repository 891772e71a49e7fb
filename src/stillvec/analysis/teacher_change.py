"""What changed between two teachers of one architecture (Gordon, Duh & Andrews 2020): weights and states.

For each matrix (word embeddings and linear layers): shares of zeros, how many places have a zero in only one teacher,
how far weights move in the order of magnitudes, and the cosine of rows. For attention, the share of zeros of each head.
With texts, the cosine of the states of words at each layer.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from stillvec.analysis.layer_information import parse_name
from stillvec.analysis.value_change import ValueChange, compare_values
from stillvec.corpus import CorpusSource, open_corpus
from stillvec.errors import CorpusError, TeacherError
from stillvec.evaluation.evaluation_report import JsonRecord
from stillvec.evaluation.teacher_states import StateReader, TeacherSource
from stillvec.heads.sequence_batches import SPECIAL
from stillvec.input_checks import check_arguments, check_count
from stillvec.numerics import cosines
from stillvec.progress import Phase, Progress, drain, relay, show_progress

_HEADS = re.compile(r"(query|key|value|q|k|v|[qkv]_proj|[qkv]_lin)\.weight$")  # rows of these are those of heads


@dataclass(frozen=True)
class MatrixChange(JsonRecord):
    """A matrix of the model before and after."""

    name: str
    values: ValueChange
    zeros_by_head: tuple[float, float] | None  # smallest and largest share after, for queries, keys and values


@dataclass(frozen=True)
class LayerCosine(JsonRecord):
    """States of words at a layer, before and after."""

    layer: int
    mean: float
    low: float  # the fifth percentile over words


@dataclass(frozen=True)
class TeacherChange(JsonRecord):
    """What `compare_teachers` measured."""

    teacher: str
    against: str
    n_values: int  # weights of all matrices
    zeros: tuple[float, float]  # shares before and after
    mask_difference: float  # share of weights that are zero in exactly one teacher
    rank_movement: float  # mean over weights; chance: 1/3
    matrices: tuple[MatrixChange, ...]
    n_occurrences: int  # words whose states are compared
    layers: tuple[LayerCosine, ...]


def compare_teachers(
    teacher: str,
    against: str,
    texts: CorpusSource | None = None,
    *,
    n_sentences: int = 1000,
    cache: Path | None = None,
    progress: bool | Callable[[Progress], object] = False,
) -> TeacherChange:
    """Compare the weights of two teachers of one architecture and, with texts, their states.

    Parameters
    ----------
    teacher: `teacher:NAME`, or only the name or folder of a teacher.
    against: the teacher before it was changed, as `teacher`.
    texts: a file, folder or glob of text, a `Corpus`, or a list of texts (default: only weights are compared).
    n_sentences: number of sentences to read, from the beginning (default: 1000).
    cache: a folder for the states (default: in memory).
    progress: True shows a bar; a function gets every `Progress` event (default: False).
    """
    check_arguments(compare_teachers, locals())
    check_count(n_sentences, "n_sentences")
    names = [parse_name(name) for name in (teacher, against)]
    corpus = None if texts is None else open_corpus([texts])
    sentences = [] if corpus is None else [*islice(corpus.sentences(), n_sentences)]
    if corpus is not None and not sentences:
        raise CorpusError.expected("sentences", "none", where="texts")
    with show_progress(progress) as listener:
        return drain(_compare(names[0], names[1], sentences, cache), listener)


def _compare(
    teacher: str, against: str, sentences: list[str], cache: Path | None
) -> Generator[Progress, None, TeacherChange]:
    start = time.perf_counter()

    def report(remark: str, done: float) -> Progress:
        return Progress(Phase.EVALUATING, round(100 * done), 100, "%", time.perf_counter() - start, remark)

    yield report("loading", 0.0)
    sources = [TeacherSource(name) for name in (against, teacher)]
    before, after = (_read_matrices(source) for source in sources)
    if {name: matrix.shape for name, matrix in before.items()} != {
        name: matrix.shape for name, matrix in after.items()
    }:
        raise TeacherError.expected(f"a teacher of the architecture of {against}", "another", where=teacher)
    heads = int(getattr(sources[1].teacher.model.config, "num_attention_heads", 0))
    matrices = []
    for number, name in enumerate(before):
        yield report(name, (0.5 if sentences else 1) * number / len(before))
        matrices.append(
            MatrixChange(name, compare_values(before[name], after[name]), _share_heads(name, after[name], heads))
        )
    layers: tuple[LayerCosine, ...] = ()
    n_words = 0
    if sentences:
        layers, n_words = yield from relay(
            _compare_states(sources, sentences, cache), lambda done: report("reading", 0.5 + 0.5 * done)
        )
    return _summarize(teacher, against, matrices, layers, n_words)


def _summarize(
    teacher: str, against: str, matrices: list[MatrixChange], layers: tuple[LayerCosine, ...], n_words: int
) -> TeacherChange:
    sizes = np.array([change.values.n_rows * change.values.n_columns for change in matrices], np.float64)

    def mean(values: list[float]) -> float:
        return float(np.average(values, weights=sizes))

    return TeacherChange(
        teacher,
        against,
        int(sizes.sum()),
        (mean([change.values.zeros[0] for change in matrices]), mean([change.values.zeros[1] for change in matrices])),
        mean([change.values.mask_difference for change in matrices]),
        mean([change.values.rank_movement for change in matrices]),
        tuple(matrices),
        n_words,
        layers,
    )


def _read_matrices(source: TeacherSource) -> dict[str, Any]:
    from stillvec.teachers.matrices import name_matrices  # torch takes seconds

    weights: Mapping[str, Any] = dict(source.teacher.model.named_parameters())
    return {name: weights[name].detach().float().cpu().numpy() for name in sorted(name_matrices(source.teacher.model))}


def _share_heads(name: str, matrix: Any, n_heads: int) -> tuple[float, float] | None:
    """The smallest and the largest share of zeros of a head."""
    if not _HEADS.search(name) or not n_heads or len(matrix) % n_heads:
        return None
    shares = (matrix.reshape(n_heads, -1) == 0).mean(1)
    return float(shares.min()), float(shares.max())


def _compare_states(
    sources: list[TeacherSource], sentences: list[str], cache: Path | None
) -> Generator[float, None, tuple[tuple[LayerCosine, ...], int]]:
    from stillvec.encoding.word_states import MarkedTexts

    marked = MarkedTexts.from_texts(sentences)
    read = []
    for number, source in enumerate(sources):
        reader = StateReader(source, cache, ["all"])
        read.append((yield from relay(reader.read_steps(marked), partial(_halve, number))))
    known = np.flatnonzero(np.logical_and(*(np.asarray(stores[0].words[SPECIAL:]) >= 0 for stores in read)))
    layers = []
    for layer in sorted(read[0]):
        tables: list[Any] = [stores[layer].states for stores in read]
        before, after = (np.asarray(table[SPECIAL + known], np.float32) for table in tables)
        alike = cosines(before, after)
        layers.append(LayerCosine(layer, float(alike.mean()), float(np.percentile(alike, 5))))
    return tuple(layers), len(known)


def _halve(number: int, done: float) -> float:
    return (number + done) / 2
