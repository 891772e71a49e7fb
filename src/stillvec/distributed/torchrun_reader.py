"""`torchrun -m stillvec distill`: each process reads one part of the corpus, the first one finishes and writes."""

import dataclasses
import json
from collections.abc import Generator
from typing import Any

import numpy as np

from stillvec.corpus import Corpus
from stillvec.distributed.process_group import Arrays, ProcessGroup
from stillvec.encoding import BatchBudget
from stillvec.encoding.context_store import StoreLocation, join_stores, shard_path
from stillvec.errors import UsageError
from stillvec.learners import EncodingPass, PassPlan
from stillvec.learners.accumulators import AccumulatorSpec
from stillvec.learners.partition import Partition
from stillvec.learners.stored_contexts import ContextStoreWriter
from stillvec.learners.trained_learner import TrainedLearner
from stillvec.pipeline.corpus_counts import CorpusCounts, CorpusFacts, Terms, count_partition
from stillvec.pipeline.readers import Counting, MergedStatistics, Reader, ReadFacts, ReadTask
from stillvec.pipeline.settings import Distillation
from stillvec.progress import Phase, Progress, relay
from stillvec.statistics import Statistics, merge
from stillvec.teachers import Teacher
from stillvec.vocabulary import Vocabulary
from stillvec.vocabulary.folding import fold
from stillvec.vocabulary.segmenters import select_terms


class TorchrunReader(Reader):
    """Reads one part of the corpus in each process of a group. Only the first process has results."""

    def __init__(self, group: ProcessGroup, threads: int | None = None) -> None:
        super().__init__(threads)
        self.group = group
        self.partition = Partition(group.rank, group.world_size)

    @property
    def finishes(self) -> bool:  # type: ignore[override]
        return self.group.rank == 0

    def check(self, settings: Distillation, corpus: Corpus | None) -> None:
        check_distributable(settings, corpus)

    def budget(self, teacher: Teacher) -> BatchBudget:
        budget = super().budget(teacher)
        return dataclasses.replace(budget, workers=budget.workers // self.group.local_world_size)

    def count(self, corpus: Corpus, settings: Distillation, terms: Terms) -> Counting:
        own = yield from count_partition(corpus, settings, self.partition, terms)
        counts = self.group.tree_reduce(_pack(own), lambda one, other: _pack(_unpack(one) + _unpack(other)))
        chosen = message = None
        if counts is not None:
            chosen = vocabulary, facts = _unpack(counts).choose_words(corpus, settings, terms)
            message = [vocabulary.words, vocabulary.counts.tolist(), facts.to_manifest()]
        words, word_counts, manifest = self.group.broadcast(message)
        folded = [fold(word, settings.lowercase) for word in settings.include_words]
        vocabulary = Vocabulary(
            words,
            word_counts,
            lowercase=settings.lowercase,
            segmenter=settings.segmenter,
            terms=select_terms(settings.segmenter, folded),
        )
        return chosen or (vocabulary, CorpusFacts.from_manifest(manifest))

    def make_pass(self, plan: PassPlan, teacher: Teacher, store: StoreLocation | None) -> EncodingPass:
        trains = any(isinstance(learner, TrainedLearner) for learner in plan.learners.values())
        self.partition = dataclasses.replace(self.partition, in_order=trains)
        if store is not None:
            store = dataclasses.replace(store, shard=self._shard(self.group.rank))
        encoding_pass = EncodingPass(
            plan, teacher, store=store, partition=self.partition, all_reduce=self.group.all_reduce
        )
        self._check_stores(encoding_pass, store)
        return encoding_pass

    def _shard(self, rank: int) -> str:
        return f"share-{rank}-of-{self.group.world_size}"

    def _check_stores(self, encoding_pass: EncodingPass, store: StoreLocation | None) -> None:
        """A store that exists is seen by all processes, or its folder is not shared by all machines."""
        exists = [writer.contexts is not None for writer in encoding_pass.context_writers]
        seen = self.group.all_reduce({"stores": np.array(exists, np.int64)})["stores"]
        if store is not None and not np.isin(seen, (0, self.group.world_size)).all():
            raise UsageError(
                f"Only some processes see the contexts stored in {store.folder}; give a folder that all machines share "
                "with --context-cache."
            )

    def read(self, task: ReadTask) -> Generator[Progress, None, ReadFacts]:
        own = yield from relay(super().read(task), self._scale)
        sizes = {"n_sentences": own.n_sentences, "n_words": own.n_words, "n_tokens": own.n_tokens}
        sums = self.group.all_reduce({name: np.array([size]) for name, size in sizes.items()})
        n_tokens, phase = int(sums["n_tokens"][0]), task.encoding_pass.phase
        yield Progress(phase, n_tokens, n_tokens, "tokens", own.seconds)
        group = {"processes": self.group.world_size}
        return dataclasses.replace(own, **{name: int(size[0]) for name, size in sums.items()}, group=group)

    def _scale(self, step: Progress) -> Progress:
        """The progress of all processes, estimated from this one."""
        size = self.group.world_size
        return dataclasses.replace(step, done=step.done * size, total=None if step.total is None else step.total * size)

    def gather(self, task: ReadTask) -> Generator[Progress, None, MergedStatistics]:
        """Statistics are merged as those of results are; shards of contexts are concatenated."""
        yield Progress(Phase.MERGING, 0, None, "", 0.0)
        encoding_pass, vocabulary = task.encoding_pass, task.plan.vocabulary
        merged: dict[AccumulatorSpec, Statistics] = {}

        def merge_arrays(one: Arrays, other: Arrays) -> Arrays:
            return dict(merge(Statistics(vocabulary, one), Statistics(vocabulary, other), vocabulary).arrays)

        for spec, accumulator in encoding_pass.accumulators.items():
            if isinstance(accumulator, ContextStoreWriter):
                self._join(accumulator, task)
                continue
            own = {name: np.asarray(array) for name, array in encoding_pass.statistics(spec).arrays.items()}
            whole = self.group.tree_reduce(own, merge_arrays)
            if whole is not None:
                merged[spec] = Statistics(vocabulary, whole)
        return merged

    def _join(self, writer: ContextStoreWriter, task: ReadTask) -> None:
        self.group.barrier()  # all shards are complete
        if task.corpus is None or self.group.rank:
            return
        path = writer.path()
        if not path.exists():
            shards = [shard_path(path, self._shard(rank)) for rank in range(self.group.world_size)]
            writer.contexts = join_stores(path, shards)


def check_distributable(settings: Distillation, corpus: Corpus | None) -> None:
    """Raise an error for text that several processes cannot read, or methods that need one process."""
    if corpus is not None and not corpus.is_files:
        raise UsageError(
            "Several processes can read files, but not standard input or a pipe; write the text to a file first."
        )
    for name, learner in settings.learners(depth=0).items():
        if isinstance(learner, TrainedLearner) and learner.stream:
            raise UsageError(
                f"The method {name} trains in the stream, in one process; leave stream out, or run it in one process."
            )
        if isinstance(learner, TrainedLearner) and corpus is None:
            raise UsageError(
                f"The method {name} without a corpus needs one process; give a corpus, or run it in one process."
            )


def _pack(counts: CorpusCounts) -> Arrays:
    return {"counts": np.frombuffer(json.dumps(dataclasses.asdict(counts)).encode(), np.uint8)}


def _unpack(arrays: Arrays) -> CorpusCounts:
    fields: dict[str, Any] = json.loads(arrays["counts"].tobytes())
    return CorpusCounts(**fields | {"digests": {int(file): text for file, text in fields["digests"].items()}})
