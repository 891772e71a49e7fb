"""The base of methods that train: their settings, the contexts they train on, the model, the vectors."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from stillvec.encoding import Encoded
from stillvec.errors import UsageError
from stillvec.learners.accumulators import AccumulatorSpec, TextSource, choose_layers, remove_directions, to_numpy
from stillvec.learners.context_blocks import BLOCK_SENTENCES, ContextBlock, ContextBlocks, concatenate_blocks, is_full
from stillvec.learners.stored_contexts import StoredContexts, batch_contexts, count_rows
from stillvec.learners.table_memory import FinishScale
from stillvec.learners.training_loop import LossMonitor, TrainableModel, check_final_loss, train, train_block
from stillvec.progress import drain
from stillvec.result import Result
from stillvec.statistics import STORED, Array, Statistics
from stillvec.teachers import Teacher
from stillvec.teachers.device import count_threads, resolve_device
from stillvec.training.checkpoint import name_settings, open_checkpoint
from stillvec.training.schedule import Schedule, TrainingProgress, divergence_error
from stillvec.vectors import WordVectors
from stillvec.vocabulary import Vocabulary

_MODEL_TABLES = 7  # the table and its two moments, and as many copies; the mean of all is removed at the end
_BLOCK_ROW_BYTES = 20  # per number of a context: as stored, scaled, shuffled, whitened, with a bias
_FEW_WORDS = 10_000_000  # over all epochs; docs/results.md: with fewer, the closed forms are far better


class DefaultEpochs(int):
    """A default that stream=true replaces by 1, while the same number given explicitly is refused."""


@dataclass(frozen=True)
class TrainedLearner:
    """A method that trains on contexts that the pass stored or, with `stream`, during the pass itself.

    With `stream` nothing is stored, so whatever is fitted to the contexts before training (whitening, the closed-form
    start) is fitted to the first block of sentences only.
    """

    CLOSED_FORM: ClassVar[str] = ""  # the method that needs no training, which is better for little text
    RENAMED: ClassVar[Mapping[str, str]] = {}
    PRESETS: ClassVar[Mapping[str, Mapping[str, object]]] = {}  # a paper's settings; each lists all that it relies on
    RUN_PRESETS: ClassVar[
        Mapping[str, Mapping[str, object]]
    ] = {}  # settings of the run (`Distillation`) that go with it
    settings: str = "stillvec"  # or a paper's settings, by their name
    layer: str = "last"  # layers of the teacher: last, all, a number, a range such as 3-6, last3, or best
    epochs: int = DefaultEpochs(5)  # passes over the stored contexts; 1 with stream=true
    rate: float = 1e-3  # initial learning rate
    decay: str = "linear"  # of the learning rate: linear (to a hundredth) or constant
    directions: int = 3  # principal directions removed at the end, with the mean; 0: nothing is removed
    seed: int = 0  # random seed
    stream: bool = False  # train during the pass, in one epoch, without storing contexts

    def __post_init__(self) -> None:
        if isinstance(self.epochs, DefaultEpochs):
            object.__setattr__(self, "epochs", 1 if self.stream else int(self.epochs))
        if self.stream and self.epochs != 1:
            raise UsageError.conflict(f"stream=true trains one epoch, got epochs={self.epochs}")
        self.schedule()

    def contexts(self) -> StoredContexts:
        """What it trains on."""
        raise NotImplementedError

    def model(self, counts: Tensor, sample: Iterable[ContextBlock], width: int, device: torch.device) -> TrainableModel:
        """The model before training, for words with these counts and contexts of `width` dimensions.

        `sample` can be iterated repeatedly: contexts that its start may be fitted to.
        """
        raise NotImplementedError

    def model_bytes(self, scale: FinishScale) -> int:
        """Bytes of the model while it is made, trained, copied to a checkpoint, and turned into vectors."""
        return _MODEL_TABLES * 4 * len(scale.vocabulary) * (scale.dim + 1)

    def block_bytes(self, scale: FinishScale, row_bytes: int) -> int:
        """Bytes of the contexts, and the states if it trains on them, of one block."""
        n_sentences = min(scale.n_sentences, BLOCK_SENTENCES)
        n_words = n_sentences * scale.n_words // max(scale.n_sentences, 1) if self.contexts().states else 0
        return row_bytes * scale.dim * (n_sentences + n_words)

    def finish_bytes(self, scale: FinishScale) -> int:
        """For the checks that need no reading, `scale` may have no sentences."""
        if self.stream:
            return 3 * scale.table
        return self.model_bytes(scale) + self.block_bytes(scale, _BLOCK_ROW_BYTES)

    def describe_shortage(self, n_words: int) -> str:
        """What to say before training a random start on so many words, if they are few; else nothing."""
        n_read = n_words * self.epochs
        if not self.epochs or n_read >= _FEW_WORDS or getattr(self, "start", "") == "closed":
            return ""
        return (
            f"{n_words:,} words are few for training from a random start (epochs={self.epochs}); {self.CLOSED_FORM} is "
            "the closed form for such texts"
        )

    def schedule(self) -> Schedule:
        return Schedule(self.epochs, self.rate, self.decay, self.seed)

    def specs(self) -> dict[str, AccumulatorSpec]:
        return {"contexts": Streamed(self) if self.stream else self.contexts()}

    def finish(self, statistics: Mapping[str, Statistics]) -> Result:
        return drain(self.steps(statistics))

    def steps(
        self,
        statistics: Mapping[str, Statistics],
        folder: Path | None = None,
        *,
        resume: bool = False,
        device: torch.device | None = None,
    ) -> Generator[TrainingProgress, None, Result]:
        """Train; `folder` is where checkpoints go (None: none), `device` a GPU by default if there is one."""
        stored = statistics["contexts"]
        if self.stream:
            tensors = {name.removeprefix(STORED): torch.from_numpy(array) for name, array in stored.arrays.items()}
            return self._finish(tensors, stored.vocabulary, float(tensors.pop("loss")))
        device = device or resolve_device("auto")
        blocks = ContextBlocks(stored, device)
        model = self.model(blocks.count_words(), blocks, stored["stored:contexts"].shape[1], device)
        checkpoint = open_checkpoint(folder, name_settings(self), resume=resume, threads=count_threads(device))
        loss = math.nan
        for progress in train(model, blocks, self.schedule(), checkpoint):
            loss = progress.loss
            yield progress
        result = self._finish(model.result(), stored.vocabulary, loss)
        if checkpoint is not None:
            checkpoint.remove()
        return result

    def _finish(self, tensors: Mapping[str, Tensor], vocabulary: Vocabulary, loss: float) -> Result:
        if not torch.isfinite(tensors["vectors"]).all():  # no loss was computed after the last steps
            raise divergence_error(self.rate)
        matrix = np.ascontiguousarray(to_numpy(tensors["vectors"]), np.float32)
        vectors = WordVectors(vocabulary, remove_directions(matrix, vocabulary, self.directions))
        model = {name: to_numpy(tensor) for name, tensor in tensors.items() if name != "vectors"}
        notes = {"loss": loss} if math.isfinite(loss) else {}  # without an epoch there is none
        return Result(vectors, notes, model)


@dataclass(frozen=True)
class Streamed:
    """Trains a model during the pass."""

    learner: TrainedLearner

    @property
    def source(self) -> TextSource:
        return self.learner.contexts().source

    def text_bytes(self, teacher: Teacher, vocabulary: Vocabulary, n_words: int, n_sentences: int) -> int:
        """The model, and three times the sentences of a block: collected, joined, and the last one."""
        if not n_sentences:
            return 0
        scale = FinishScale(vocabulary, teacher.dim, n_words=n_words, n_sentences=n_sentences)
        return self.learner.model_bytes(scale) + self.learner.block_bytes(scale, 3 * 4)

    def make_accumulator(self, teacher: Teacher, vocabulary: Vocabulary) -> _StreamTrainer:
        return _StreamTrainer(self.learner, teacher, vocabulary)


class _StreamTrainer:
    """Collects a block of sentences, trains on it and drops it."""

    def __init__(self, learner: TrainedLearner, teacher: Teacher, vocabulary: Vocabulary) -> None:
        self.learner = learner
        self.spec = learner.contexts()
        self.layers = choose_layers(self.spec.layer, teacher)
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
        rows, sizes = (torch.from_numpy(array).long().to(self._device) for array in (words, lengths))
        self._pending.append(ContextBlock(rows, sizes, contexts.clone(), None if states is None else states.clone()))
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
        arrays = {f"stored:{name}": to_numpy(tensor) for name, tensor in model.result().items()}
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
