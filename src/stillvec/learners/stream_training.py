"""Training during the pass: a block of contexts is collected, trained on and dropped."""

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
from stillvec.statistics import Array
from stillvec.teachers import Teacher
from stillvec.training.loss_monitor import LossMonitor
from stillvec.vocabulary import Vocabulary

if TYPE_CHECKING:
    from stillvec.learners.trained_learner import TrainedLearner


@dataclass(frozen=True)
class Streamed:
    """Trains a model during the pass."""

    learner: TrainedLearner

    @property
    def source(self) -> TextSource:
        return self.learner.contexts().source

    def make_accumulator(self, teacher: Teacher, vocabulary: Vocabulary) -> _StreamTrainer:
        return _StreamTrainer(self.learner, teacher, vocabulary)


class _StreamTrainer:
    """Collects a block of sentences, trains on it and drops it."""

    def __init__(self, learner: TrainedLearner, teacher: Teacher, vocabulary: Vocabulary) -> None:
        self.learner = learner
        self.spec = learner.contexts()
        self.layers = parse_layers(self.spec.layer, teacher.depth)
        self.schedule, self.monitor = learner.schedule(), LossMonitor(learner.rate)
        self._vocabulary, self._width, self._device = vocabulary, teacher.dim, teacher.device
        self.n_contexts = np.zeros(len(vocabulary), np.int64)
        self._model: TrainableModel | None = None
        self._pending: list[ContextBlock] = []
        self._last: ContextBlock | None = None
        self._n_blocks = 0  # trained on
        self._n_words = 0  # of the vocabulary, in them

    def update(self, encoded: Encoded) -> None:
        words, lengths, contexts, states = batch_contexts(encoded, self.layers, self.spec)
        if not len(lengths):
            return
        self.n_contexts += count_rows(words, len(self.n_contexts))
        self._pending.append(
            ContextBlock(
                torch.from_numpy(words).long().to(self._device),
                torch.from_numpy(lengths).long().to(self._device),
                contexts.clone(),
                None if states is None else states.clone(),
            )
        )
        if is_full(self._pending):
            self._train()

    @property
    def loss(self) -> float:
        return self.monitor.loss

    def arrays(self) -> dict[str, Array]:
        self._train()
        model = self._model or self._make_model([])
        if self._last is not None:
            with torch.inference_mode(False):
                check_final_loss(model, self._last, self.schedule, self.monitor)
        arrays = {f"stored:{name}": to_numpy(tensor.detach()) for name, tensor in model.result().items()}
        return arrays | {"stored:loss": np.array(self.monitor.loss)}

    def _make_model(self, first: list[ContextBlock]) -> TrainableModel:
        counts = torch.from_numpy(np.maximum(self._vocabulary.counts, 1)).to(self._device)
        return self.learner.model(counts, first, self._width, self._device)

    def _train(self) -> None:
        if not self._pending:
            return
        with torch.inference_mode(False):
            block = concatenate_blocks(self._pending)
            self._pending, self._last = [], block
            if self._model is None:
                self._model = self._make_model([block])
            known = int((block.words >= 0).sum())
            total = max(int(self._vocabulary.counts.sum()), self._n_words + known, 1)
            span = (self._n_words / total, (self._n_words + known) / total)
            drain(train_block(self._model, block, self.schedule, self._n_blocks, span, self.monitor))
            self._n_words += known
            self._n_blocks += 1
