"""Training in the pass itself: a shard is gathered, learnt and forgotten."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from stillvec.encoding import Encoded
from stillvec.learners.accumulators import TextSource, parse_layers, to_numpy
from stillvec.learners.context_blocks import ContextBlock, concatenate_blocks, is_full
from stillvec.learners.stored_contexts import batch_contexts, count_rows
from stillvec.learners.training_loop import TrainableModel, check_final_loss, train_block
from stillvec.progress import drain
from stillvec.statistics.mergeable import Array
from stillvec.teachers import Teacher
from stillvec.training.loss_monitor import LossMonitor
from stillvec.vocabulary import Vocabulary

if TYPE_CHECKING:
    from stillvec.learners.trained_learner import TrainedLearner


@dataclass(frozen=True)
class Streamed:
    """Trains while it listens."""

    learner: TrainedLearner

    @property
    def source(self) -> TextSource:
        return self.learner.contexts().source

    def make_accumulator(self, teacher: Teacher, vocabulary: Vocabulary) -> _StreamTrainer:
        return _StreamTrainer(self.learner, teacher, vocabulary)


class _StreamTrainer:
    """Gathers a shard of sentences, learns it, and forgets it."""

    def __init__(self, learner: TrainedLearner, teacher: Teacher, vocabulary: Vocabulary) -> None:
        self.learner = learner
        self.spec = learner.contexts()
        self.layers = parse_layers(self.spec.layer, teacher.depth)
        self.schedule, self.monitor = learner.schedule(), LossMonitor(learner.rate)
        self._vocabulary, self._width, self._device = vocabulary, teacher.dim, teacher.device
        self.n_contexts = np.zeros(len(vocabulary), np.int64)
        self._model: TrainableModel | None = None
        self._held: list[ContextBlock] = []
        self._last: ContextBlock | None = None
        self._learnt = 0  # shards
        self._words = 0  # that the vocabulary has

    def update(self, encoded: Encoded) -> None:
        words, lengths, contexts, states = batch_contexts(encoded, self.layers, self.spec)
        if not len(lengths):
            return
        self.n_contexts += count_rows(words, len(self.n_contexts))
        self._held.append(
            ContextBlock(
                torch.from_numpy(words).long().to(self._device),
                torch.from_numpy(lengths).long().to(self._device),
                contexts.clone(),
                None if states is None else states.clone(),
            )
        )
        if is_full(self._held):
            self._learn()

    @property
    def loss(self) -> float:
        return self.monitor.loss

    def arrays(self) -> dict[str, Array]:
        self._learn()
        model = self._model or self._begun([])
        if self._last is not None:
            with torch.inference_mode(False):
                check_final_loss(model, self._last, self.schedule, self.monitor)
        found = {f"stored:{name}": to_numpy(tensor.detach()) for name, tensor in model.result().items()}
        return found | {"stored:loss": np.array(self.monitor.loss)}

    def _begun(self, first: list[ContextBlock]) -> TrainableModel:
        counts = torch.from_numpy(np.maximum(self._vocabulary.counts, 1)).to(self._device)
        return self.learner.model(counts, first, self._width, self._device)

    def _learn(self) -> None:
        if not self._held:
            return
        with torch.inference_mode(False):
            shard = concatenate_blocks(self._held)
            self._held, self._last = [], shard
            if self._model is None:
                self._model = self._begun([shard])
            known = int((shard.words >= 0).sum())
            whole = max(int(self._vocabulary.counts.sum()), self._words + known, 1)
            span = (self._words / whole, (self._words + known) / whole)
            drain(train_block(self._model, shard, self.schedule, self._learnt, span, self.monitor))
            self._words += known
            self._learnt += 1
