"""Training on contexts: shards in a seeded order, a rate that falls, a watch on the loss, checkpoints.

Whatever is random in a shard comes from a seed and the shard's number, so a run that was stopped goes on from its last
checkpoint to the same result, and on a CPU two runs agree to the bit.
"""

from __future__ import annotations

import hashlib
import math
import time
import warnings
import weakref
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import ClassVar, NamedTuple, Protocol

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from stillvec.encoding import Encoded, Marked
from stillvec.errors import CallError, StillvecWarning, TrainingError
from stillvec.files import atomic_file
from stillvec.learners.kept import SHARD, KeptContexts, Shard, counted, heard_shard
from stillvec.learners.listening import Finished, Part, layers_of, to_numpy
from stillvec.learners.whitening import tidied
from stillvec.statistics import Statistics
from stillvec.statistics.statistics import Array
from stillvec.teachers import Teacher
from stillvec.vectors import WordVectors
from stillvec.vocabulary import Vocabulary

_EVERY = 30.0  # seconds between checkpoints
_LOOK = 32  # batches between two looks at the loss: a look waits for the device
_WORSE = 3.0  # times the first loss: no training that works gets there


class TrainingStep(NamedTuple):
    """A sign of life."""

    done: int  # sentences, over all epochs
    total: int
    loss: float  # a target, lately


@dataclass(frozen=True)
class Course:
    """How long and how fast."""

    epochs: int = 1
    rate: float = 1e-3
    decay: str = "linear"  # to a hundredth of the rate; or "constant"
    seed: int = 0

    def __post_init__(self) -> None:
        if self.decay not in ("linear", "constant"):
            raise CallError(f"The rate decays 'linear' or stays 'constant', and {self.decay!r} came.")
        if self.epochs < 0 or not 0 < self.rate < math.inf:
            raise CallError(f"Training takes 0 epochs or more at a rate above 0, not {self.epochs} at {self.rate}.")
        if self.seed < 0:
            raise CallError(f"The setting seed is at least 0, and {self.seed} came.")

    def rate_at(self, share: float) -> float:
        """The rate when this share of the way is gone."""
        return self.rate if self.decay == "constant" else self.rate * max(0.01, 1 - share)


class Trained(Protocol):
    """What is trained: it learns from a shard, batch by batch, and can be written down."""

    def learn(
        self, shard: Shard, generator: torch.Generator, course: Course, begun: float, ended: float
    ) -> Iterator[tuple[Tensor, int, float]]:
        """Yields the loss and the targets of each batch, and the share of the shard learnt; shares of the way go in."""

    def tensors(self) -> dict[str, Tensor]:
        """All that changes, in place."""

    def result(self) -> dict[str, Tensor]:
        """The `vectors`, and what else is worth keeping, by name."""


Sample = Callable[[], Iterable[Shard]]  # contexts to be looked at before training


@dataclass(frozen=True)
class TrainedLearner:
    """A method that trains: on contexts that the pass kept, or, in one epoch, in the pass itself (`stream`).

    In the stream nothing is kept, so nothing can be looked at beforehand but the first sentences: what is fitted to the
    contexts (whitening, a start from the closed form) is fitted to those.
    """

    settings: str = "stillvec"  # or the paper's, by its name in PRESETS
    layer: str = "last"
    epochs: int = 1
    rate: float = 1e-3
    decay: str = "linear"
    directions: int = 3  # first principal directions taken out at the end, with the mean; 0: nothing is
    seed: int = 0
    stream: bool = False

    def __post_init__(self) -> None:
        if self.stream and self.epochs != 1:
            raise CallError(f"In the stream there is one epoch, and {self.epochs} were asked for; leave stream out.")
        self.course()

    def contexts(self) -> KeptContexts:
        """What it trains on."""
        raise NotImplementedError

    def model(self, counts: Tensor, sample: Sample, width: int, device: torch.device) -> Trained:
        """The table to train: `counts` of the words, contexts to be looked at beforehand, their dimensions."""
        raise NotImplementedError

    def course(self) -> Course:
        return Course(self.epochs, self.rate, self.decay, self.seed)

    def parts(self) -> dict[str, Part]:
        return {"contexts": Streamed(self) if self.stream else self.contexts()}

    def finish(self, heard: Mapping[str, Statistics]) -> Finished:
        steps = self.steps(heard)
        while True:
            try:
                next(steps)
            except StopIteration as end:
                made: Finished = end.value
                return made

    def steps(
        self,
        heard: Mapping[str, Statistics],
        place: Path | None = None,
        *,
        resume: bool = False,
        device: torch.device | None = None,
    ) -> Generator[TrainingStep, None, Finished]:
        """Train, with a sign of life now and then; `place` is a folder for checkpoints, `device` by default a GPU."""
        kept = heard["contexts"]
        if self.stream:
            arrays = {name[5:]: torch.from_numpy(array) for name, array in kept.arrays.items() if name != "kept:loss"}
            return self._finished(arrays, kept.vocabulary, float(kept["kept:loss"]))
        device = device or training_device()
        width = kept["kept:contexts"].shape[1]
        model = self.model(kept_counts(kept).to(device), lambda: shards(kept, device), width, device)
        checkpoint = checkpoint_for(place, asdict(self), resume=resume)
        loss = math.nan
        for step in train(model, kept, self.course(), device, checkpoint):
            loss = step.loss
            yield step
        made = self._finished(model.result(), kept.vocabulary, loss)
        if checkpoint is not None:
            checkpoint.remove()
        return made

    def _finished(self, result: Mapping[str, Tensor], vocabulary: Vocabulary, loss: float) -> Finished:
        if not torch.isfinite(result["vectors"]).all():  # its last steps no loss has seen
            raise diverged(self.rate)
        vectors = tidied(result["vectors"], vocabulary, self.directions)
        extra = {name: to_numpy(tensor.detach()) for name, tensor in result.items() if name != "vectors"}
        notes = {"loss": loss} if math.isfinite(loss) else {}  # without an epoch there is none
        return Finished(WordVectors(vocabulary, vectors), notes, extra)


@dataclass(frozen=True)
class Streamed:
    """Trains while it listens."""

    learner: TrainedLearner
    label: ClassVar[str] = "the corpus"

    @property
    def reads(self) -> str:
        return self.learner.contexts().reads

    def texts(self, vocabulary: Vocabulary) -> Iterator[Marked] | None:
        return None

    def listen(self, teacher: Teacher, vocabulary: Vocabulary) -> _StreamTrainer:
        return _StreamTrainer(self.learner, teacher, vocabulary)


class _StreamTrainer:
    """Gathers a shard of sentences, learns it, and forgets it."""

    def __init__(self, learner: TrainedLearner, teacher: Teacher, vocabulary: Vocabulary) -> None:
        self.learner = learner
        self.part = learner.contexts()
        self.layers = layers_of(self.part.layer, teacher.depth)
        self.course, self.watch = learner.course(), Watch(learner.course())
        self._vocabulary, self._width, self._device = vocabulary, teacher.dim, teacher.device
        self.met = np.zeros(len(vocabulary), np.int64)
        self._model: Trained | None = None
        self._held: list[Shard] = []
        self._learnt = 0  # shards
        self._words = 0  # that the vocabulary has

    def update(self, encoded: Encoded) -> None:
        words, lengths, contexts, states = heard_shard(encoded, self.layers, self.part)
        if not len(lengths):
            return
        self.met += counted(words, len(self.met))
        self._held.append(
            Shard(
                torch.from_numpy(words).long().to(self._device),
                torch.from_numpy(lengths).long().to(self._device),
                contexts.clone(),
                None if states is None else states.clone(),
            )
        )
        if sum(len(each.lengths) for each in self._held) >= SHARD:
            self._learn()

    def arrays(self) -> dict[str, Array]:
        self._learn()
        model = self._model or self._begun([])
        found = {f"kept:{name}": to_numpy(tensor.detach()) for name, tensor in model.result().items()}
        return found | {"kept:loss": np.array(self.watch.loss)}

    def _begun(self, first: list[Shard]) -> Trained:
        counts = torch.from_numpy(np.maximum(self._vocabulary.counts, 1)).to(self._device)
        return self.learner.model(counts, lambda: first, self._width, self._device)

    def _learn(self) -> None:
        if not self._held:
            return
        with torch.inference_mode(False):
            shard = _joined(self._held)
            self._held = []
            if self._model is None:
                self._model = self._begun([shard])
            known = int((shard.words >= 0).sum())
            whole = max(int(self._vocabulary.counts.sum()), self._words + known, 1)
            begun, ended = self._words / whole, (self._words + known) / whole
            for _ in learn_shard(self._model, shard, self.course, self._learnt, begun, ended, self.watch):
                pass
            self._words += known
            self._learnt += 1


class Checkpoint:
    """Where training was, on disk; `resume` goes on from there."""

    def __init__(self, path: Path, *, resume: bool = False) -> None:
        self.path = path
        self.resume = resume
        self._written = time.perf_counter()

    def restore(self, model: Trained) -> int:
        """Fill the model from the checkpoint and give the number of shards it has learnt; 0 without one."""
        if not self.resume or not self.path.exists():
            return 0
        mine = model.tensors()
        try:
            kept = load_file(self.path)
        except (SafetensorError, OSError):
            raise TrainingError(f"The checkpoint {self.path} cannot be read; remove it to begin anew.") from None
        wanted = {"done": torch.Size([])} | {name: each.shape for name, each in mine.items()}
        if {name: each.shape for name, each in kept.items()} != wanted:
            raise TrainingError(f"The checkpoint {self.path} is of other settings; remove it to begin anew.")
        for name, tensor in mine.items():
            tensor.copy_(kept[name])
        return int(kept["done"])

    def write(self, model: Trained, done: int) -> None:
        if time.perf_counter() - self._written < _EVERY:
            return
        kept = {name: tensor.detach().cpu().contiguous() for name, tensor in model.tensors().items()}
        self._written = time.perf_counter()
        try:
            with atomic_file(self.path) as part:
                save_file({**kept, "done": torch.tensor(done)}, part)
        except (SafetensorError, OSError) as error:  # what was learnt so far is worth more than where it could go on
            self._written = math.inf
            told = f"No checkpoint could be written beside {self.path.parent}, so none is: {error}."
            warnings.warn(told, StillvecWarning, stacklevel=2)

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)


def train(
    model: Trained, kept: Statistics, course: Course, device: torch.device, checkpoint: Checkpoint | None = None
) -> Iterator[TrainingStep]:
    """All shards, epoch by epoch; TrainingError as soon as the loss shows that it leads nowhere."""
    begun = checkpoint.restore(model) if checkpoint is not None else 0
    try:
        yield from _train(model, kept, course, device, checkpoint, begun)
    except TrainingError:
        if checkpoint is not None:  # nothing good comes of going on from there
            checkpoint.remove()
        raise


def _train(
    model: Trained, kept: Statistics, course: Course, device: torch.device, checkpoint: Checkpoint | None, begun: int
) -> Iterator[TrainingStep]:
    count = math.ceil(len(kept["kept:lengths"]) / SHARD)
    watch = Watch(course)
    total = course.epochs * len(kept["kept:lengths"])
    done = 0
    for number in range(course.epochs * count):
        epoch, place = divmod(number, count)
        chosen = int(_random(course.seed, epoch).permutation(count)[place])
        if number < begun:
            done += _size(kept, chosen)
            continue
        shard = read_shard(kept, chosen, device, _random(course.seed, epoch, place + 1))
        whole = course.epochs * count
        for share in learn_shard(model, shard, course, number, number / whole, (number + 1) / whole, watch):
            yield TrainingStep(done + int(share * len(shard.lengths)), total, watch.loss)
        done += len(shard.lengths)
        if checkpoint is not None:
            checkpoint.write(model, number + 1)
    watch.look()


def learn_shard(
    model: Trained, shard: Shard, course: Course, number: int, begun: float, ended: float, watch: Watch
) -> Iterator[float]:
    """One shard, which takes the way from the share `begun` to `ended`; yields how much of it is learnt."""
    generator = torch.Generator(shard.contexts.device)
    generator.manual_seed(_seed(course.seed, number))
    for batch, (loss, targets, share) in enumerate(model.learn(shard, generator, course, begun, ended)):
        watch.add(loss, targets)
        if watch.fresh:  # the one loss that no step has spoilt
            watch.look()
        elif batch % _LOOK == _LOOK - 1:
            watch.look()
            yield share
    watch.look()
    yield 1.0


class Watch:
    """The mean loss of the last batches, against that of the first one."""

    def __init__(self, course: Course) -> None:
        self.course = course
        self.loss = math.nan
        self._first = math.nan
        self._sums: list[Tensor] = []
        self._targets = 0

    @property
    def fresh(self) -> bool:
        return math.isnan(self._first)

    def add(self, loss: Tensor, targets: int) -> None:
        self._sums.append(loss)
        self._targets += targets

    def look(self) -> None:
        if not self._targets:
            return
        self.loss = float(torch.stack(self._sums).sum()) / self._targets
        self._sums, self._targets = [], 0
        self._first = self.loss if self.fresh else self._first
        if not math.isfinite(self.loss) or self.loss > _WORSE * self._first + 1:
            raise diverged(self.course.rate, f"the loss of a target went from {self._first:.3g} to {self.loss:.3g}")


def diverged(rate: float, what: str = "its last step led to numbers without end") -> TrainingError:
    return TrainingError(f"Training diverged: {what} at a rate of {rate:g}; give a lower one (rate={rate / 10:g}).")


class RowAdam:
    """Adam on the rows that a batch touches, and on no other (torch's SparseAdam; "lazy" Adam)."""

    def __init__(self, table: Tensor, betas: tuple[float, float] = (0.9, 0.999)) -> None:
        self.table = table
        self.mean = torch.zeros_like(table)
        self.square = torch.zeros_like(table)
        self.steps = torch.zeros((), dtype=torch.int64)
        self.betas = betas

    def update(self, rows: Tensor, gradient: Tensor, rate: float) -> None:
        """One step on `rows`, which differ."""
        self.steps += 1
        count, (first, second) = int(self.steps), self.betas
        size = rate * math.sqrt(1 - second**count) / (1 - first**count)
        step = max(1, len(rows)) if rows.is_cuda else 1024  # what a cache holds
        for some, slope in zip(torch.split(rows, step), torch.split(gradient, step), strict=True):
            mean = self.mean.index_select(0, some).lerp_(slope, 1 - first)
            square = self.square.index_select(0, some).mul_(second).addcmul_(slope, slope, value=1 - second)
            self.mean.index_copy_(0, some, mean)
            self.square.index_copy_(0, some, square)
            self.table.index_add_(0, some, mean.div_(square.sqrt_().add_(1e-8)), alpha=-size)

    def tensors(self) -> dict[str, Tensor]:
        return {"table": self.table, "mean": self.mean, "square": self.square, "steps": self.steps}


class RowSgd:
    """Plain steps against the gradient."""

    def __init__(self, table: Tensor) -> None:
        self.table = table

    def update(self, rows: Tensor, gradient: Tensor, rate: float) -> None:
        self.table.index_add_(0, rows, gradient, alpha=-rate)

    def tensors(self) -> dict[str, Tensor]:
        return {"table": self.table}


def clipped(gradients: Sequence[Tensor], norm: float) -> list[Tensor]:
    """All of them scaled alike, so that their norm, taken together, is no more than that."""
    whole = torch.stack([each.norm() for each in gradients]).norm()
    return [each * (norm / whole.clamp_min(1e-12)).clamp_max(1) for each in gradients]


class Noise:
    """Words drawn in proportion to their count to a power."""

    def __init__(self, counts: Tensor, power: float) -> None:
        weights = counts.double().pow(power) * (counts > 0)
        self.shares = (weights / weights.sum().clamp_min(1e-30)).float()
        self._edges = torch.cumsum(weights, 0) / weights.sum().clamp_min(1e-30)

    def draw(self, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
        points = torch.rand(shape, dtype=torch.float64, device=self._edges.device, generator=generator)
        return torch.searchsorted(self._edges, points, right=True).clamp_max(len(self._edges) - 1)


def kept_counts(kept: Statistics) -> Tensor:
    """How often each word stands in the contexts (V,)."""
    words = np.asarray(kept["kept:words"])
    return torch.from_numpy(np.bincount(words[words >= 0], minlength=len(kept.vocabulary)))


def kept_share(counts: Tensor, threshold: float) -> Tensor:
    """The share of each word's targets that subsampling keeps (V,)."""
    frequency = (counts / counts.sum().clamp_min(1)).clamp_min(1e-30)
    return (torch.sqrt(threshold / frequency) + threshold / frequency).clamp_max(1).float()


def shards(kept: Statistics, device: torch.device) -> Iterator[Shard]:
    """All of them, as they lie."""
    for number in range(math.ceil(len(kept["kept:lengths"]) / SHARD)):
        yield read_shard(kept, number, device)


def read_shard(kept: Statistics, number: int, device: torch.device, order: np.random.Generator | None = None) -> Shard:
    """A shard on the device, its sentences as they lie or shuffled."""
    begin, end = number * SHARD, min((number + 1) * SHARD, len(kept["kept:lengths"]))
    lengths = np.asarray(kept["kept:lengths"][begin:end], np.int64)
    first = int(np.asarray(kept["kept:lengths"][:begin], np.int64).sum())
    last = first + int(lengths.sum())
    scale = float(kept["kept:scale"])
    words = _rows(kept["kept:words"], first, last, device).long()
    contexts = _rows(kept["kept:contexts"], begin, end, device).float() * scale
    states = None
    if "kept:states" in kept.arrays:
        states = _rows(kept["kept:states"], first, last, device)
        states = states if scale == 1 else states.float() * scale
    sizes = torch.from_numpy(lengths).to(device)
    if order is None:
        return Shard(words, sizes, contexts, states)
    chosen = order.permutation(len(lengths))
    starts = np.cumsum(lengths) - lengths
    ends = np.cumsum(lengths[chosen])
    places = np.arange(len(words)) + np.repeat(starts[chosen] - (ends - lengths[chosen]), lengths[chosen])
    sentence, word = torch.from_numpy(chosen).to(device), torch.from_numpy(places).to(device)
    return Shard(words[word], sizes[sentence], contexts[sentence], None if states is None else states[word])


def _rows(array: Array, begin: int, end: int, device: torch.device) -> Tensor:
    """Rows of a kept array on the device: from disk, or, on a GPU with room for all of it, from what lies there."""
    for number, (alive, _) in [*_on_gpu.items()]:
        if alive() is None:
            del _on_gpu[number]
    if device.type == "cuda" and id(array) not in _on_gpu and array.nbytes < _ROOM * torch.cuda.mem_get_info(device)[0]:
        whole = torch.empty(array.shape, dtype=torch.from_numpy(np.zeros(0, array.dtype)).dtype, device=device)
        for at in range(0, len(array), 1 << 18):
            whole[at : at + (1 << 18)] = torch.from_numpy(np.array(array[at : at + (1 << 18)])).to(device)
        _on_gpu[id(array)] = weakref.ref(array), whole
    if id(array) in _on_gpu and device.type == "cuda":
        return _on_gpu[id(array)][1][begin:end]
    return torch.from_numpy(np.array(array[begin:end])).to(device)


_ROOM = 0.3  # of a GPU's free memory, for one array of contexts
_on_gpu: dict[int, tuple[weakref.ref[Array], Tensor]] = {}  # as long as the array itself is there


def _joined(parts: list[Shard]) -> Shard:
    """One shard of many; no tensor of it belongs to the pass."""
    states = [part.states for part in parts if part.states is not None]
    words = torch.cat([part.words for part in parts])
    lengths = torch.cat([part.lengths for part in parts])
    contexts = torch.cat([part.contexts for part in parts])
    return Shard(words, lengths, contexts, torch.cat(states) if states else None)


def training_device() -> torch.device:
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def checkpoint_for(place: Path | None, settings: Mapping[str, object], *, resume: bool) -> Checkpoint | None:
    """The checkpoint of these settings, beside the contexts that are trained on."""
    if place is None:
        return None
    name = hashlib.blake2b(repr(sorted(settings.items())).encode(), digest_size=8).hexdigest()
    return Checkpoint(place / f"training-{name}.safetensors", resume=resume)


def _size(kept: Statistics, number: int) -> int:
    return min(SHARD, len(kept["kept:lengths"]) - number * SHARD)


def _random(*numbers: int) -> np.random.Generator:
    return np.random.default_rng([*numbers])


def _seed(*numbers: int) -> int:
    return int(np.random.SeedSequence([*numbers]).generate_state(1, np.uint64)[0] >> np.uint64(1))
