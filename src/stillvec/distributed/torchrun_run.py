"""`torchrun -m stillvec distill`: each process reads a share of the corpus, the first one finishes and writes."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Generator, Iterator
from typing import Any

import numpy as np

from stillvec.corpus import Corpus
from stillvec.distributed.process_group import Arrays, ProcessGroup
from stillvec.encoding import BatchBudget, StoreLocation, join_stores, shard_of
from stillvec.errors import UsageError
from stillvec.learners import EncodingPass, Learner
from stillvec.learners.partition import Partition
from stillvec.learners.stored_contexts import ContextStoreWriter
from stillvec.learners.trained_learner import TrainedLearner
from stillvec.pipeline import Distillation, Progress, Run
from stillvec.pipeline.corpus_counts import CorpusCounts, count_partition
from stillvec.pipeline.pass_checkpoint import Arrays as Kept
from stillvec.statistics import Statistics, merge
from stillvec.teachers import Teacher
from stillvec.vocabulary import Vocabulary


class RankRun(Run):
    """A distillation that others read for too. Only in the first process has it results."""

    def __init__(
        self,
        team: ProcessGroup,
        settings: Distillation,
        corpus: Corpus | None,
        add_to: str | os.PathLike[str] | None = None,
        *,
        store: str | os.PathLike[str] | None = None,
    ) -> None:
        super().__init__(settings, corpus, add_to, store=store)
        check_shareable(settings, corpus)
        self.team = team
        self.share = Partition(team.number, team.of)

    def prepared(self) -> Generator[Progress, None, tuple[Teacher, dict[str, Learner], Vocabulary]]:
        teacher, learners, vocabulary = yield from super().prepared()
        trained = any(isinstance(learner, TrainedLearner) for learner in learners.values())
        self.share = Partition(self.team.number, self.team.of, in_order=trained)
        return teacher, learners, vocabulary

    def load(self, teacher: Teacher) -> BatchBudget:
        load = super().load(teacher)
        return dataclasses.replace(load, workers=load.workers // self.team.here)

    def desk(self, vocabulary: Vocabulary, kept: Kept | None = None) -> StoreLocation | None:
        desk = super().desk(vocabulary, kept)
        return None if desk is None else dataclasses.replace(desk, shard=self._shard(self.team.number))

    def _shard(self, number: int) -> str:
        return f"share-{number}-of-{self.team.of}"

    def _count(self, corpus: Corpus) -> Generator[Progress, None, Vocabulary]:
        mine = yield from count_partition(corpus, self.settings, self.share)
        whole = self.team.merged(_packed(mine), lambda one, other: _packed(_unpacked(one) + _unpacked(other)))
        told = None
        if whole is not None:
            vocabulary, facts = _unpacked(whole).chosen(corpus, self.settings)
            told = [vocabulary.words, vocabulary.counts.tolist(), facts]
        words, counts, self.facts["corpus"] = self.team.told(told)
        return Vocabulary(words, counts, lowercase=self.settings.lowercase)

    def _read(self, lesson: EncodingPass, teacher: Teacher, vocabulary: Vocabulary) -> Iterator[Progress]:
        lesson.share, lesson.agree = self.share, self.team.added
        self._check_stores(lesson)
        for step in super()._read(lesson, teacher, vocabulary):
            done = step.done * self.team.of
            yield dataclasses.replace(step, done=min(done, step.total) if step.total else done)
        read = self.facts["read"]
        names = ("sentences", "words", "pieces")
        read |= {name: int(sums[0]) for name, sums in self.team.added({n: np.array([read[n]]) for n in names}).items()}
        read |= {"pieces_a_second": round(read["pieces"] / max(read["seconds"], 1e-9)), "processes": self.team.of}
        yield Progress("bringing together what was heard", 0, None, "", 0.0)
        self._gather(lesson)

    def _check_stores(self, lesson: EncodingPass) -> None:
        """A store that is there is there for all, or its folder is not one that all share."""
        there = [listener.kept is not None for listener in lesson.listeners if isinstance(listener, ContextStoreWriter)]
        seen = self.team.added({"stores": np.array(there, np.int64)})["stores"]
        if not np.isin(seen, (0, self.team.of)).all():
            raise UsageError(
                f"Some processes see the contexts kept in {self.store}, and others do not; give a folder that all "
                "machines share with --store."
            )

    def _gather(self, lesson: EncodingPass) -> None:
        """Statistics merge as those of results do; shards of contexts are laid end to end."""
        for part, listener in lesson.heard_by.items():
            if isinstance(listener, ContextStoreWriter):
                self._join(listener)
                continue
            mine = {name: np.asarray(array) for name, array in lesson.statistics(part).arrays.items()}
            whole = self.team.merged(mine, _merging(lesson.vocabulary))
            if whole is not None:
                lesson.told[part] = Statistics(lesson.vocabulary, whole)

    def _join(self, keeper: ContextStoreWriter) -> None:
        self.team.wait()  # all shards are there
        place = keeper.place() if self.corpus is not None else None
        if place is None or self.team.number:
            return
        shards = [shard_of(place, self._shard(number)) for number in range(self.team.of)]
        if not place.exists():
            keeper.kept = join_stores(place, shards)

    def _finish(self, name: str, lesson: EncodingPass, teacher: Teacher, begun: float) -> Iterator[Progress]:
        if not self.team.number:
            yield from super()._finish(name, lesson, teacher, begun)


def check_shareable(settings: Distillation, corpus: Corpus | None) -> None:
    """Text that several can read, and methods that can learn from it in shares."""
    if corpus is not None and not corpus.is_files:
        raise UsageError("Several processes read files, and not standard input or a pipe; write it to a file first.")
    for name, learner in settings.learners(depth=0).items():
        if isinstance(learner, TrainedLearner) and learner.stream:
            raise UsageError(
                f"The method {name} trains in the stream, which one process reads; leave stream out, or run it alone."
            )
        if isinstance(learner, TrainedLearner) and corpus is None:
            raise UsageError(f"The method {name} without a corpus is for one process; give a corpus, or run it alone.")


def _merging(vocabulary: Vocabulary) -> Any:
    def both(one: Arrays, other: Arrays) -> Arrays:
        return dict(merge(Statistics(vocabulary, one), Statistics(vocabulary, other), vocabulary).arrays)

    return both


def _packed(counted: CorpusCounts) -> Arrays:
    return {"counted": np.frombuffer(json.dumps(dataclasses.asdict(counted)).encode(), np.uint8)}


def _unpacked(arrays: Arrays) -> CorpusCounts:
    given = json.loads(arrays["counted"].tobytes())
    return CorpusCounts(**given | {"digests": {int(file): text for file, text in given["digests"].items()}})
