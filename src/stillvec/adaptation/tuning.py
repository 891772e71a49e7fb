"""Fine-tuning of a teacher on labelled data: texts, pairs of texts, or tags of words, alone or with a second task.

The whole model is trained with a new head; the epoch that is best on development items is kept. The result is an
ordinary classifier of transformers (`...ForSequenceClassification` or `...ForTokenClassification` with its labels in
config.json), whose states `distill` reads and whose labels `fit --with teacher:DIR` learns from.

`auxiliary` is a second task on the same model with a head of its own, which is not kept (Cengiz & Yuret 2020): each
batch is of one task, drawn in proportion to their sizes. For roles, a vector that is learned is added to the tokens of
the predicate.

`adversarial=ε` adds the loss of the words moved by at most ε of the mean size of their values, in the direction that
raises it, and `virtual=α` times the divergence of what the model says of moved words from what it says of the words
themselves (ALICE, Pereira et al. 2020): one step each, the same dropout.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from stillvec.adaptation.adaptation_steps import AdaptationResources, Facts
from stillvec.adaptation.language_models import load_model, load_tokenizer
from stillvec.adaptation.model_folder import copy_rest, digest_model, list_pruned, write_model
from stillvec.adaptation.model_training import (
    ModelTrainer,
    TrainedStep,
    autocast,
    choose_precision,
    draw_rows,
    require_steps,
    train_model,
)
from stillvec.adaptation.tuning_data import (
    IGNORED,
    READERS,
    Item,
    TokenBatch,
    TuningData,
    encode_items,
    list_parts,
    read_dataset,
)
from stillvec.errors import UsageError
from stillvec.heads.head_kind import choose_threshold
from stillvec.progress import Phase, Progress
from stillvec.registry import check_least
from stillvec.teachers.device import resolve_device
from stillvec.training.checkpoint import open_checkpoint

_RATE, _WIDTH, _MOST = 3e-5, 768, 3e-4  # the learning rate of a model of this width, and of the narrowest
_KINDS = {"tagging": "ModelForTokenClassification"}  # else ModelForSequenceClassification
_START = 1e-3  # of ε: random size of a perturbation before its step
_ENTAILED, _OTHER = "entailment", "non-entailment"


@dataclass(frozen=True, kw_only=True)
class Tuning(TrainedStep):
    SUMMARY: ClassVar[str] = "fine-tuned on labelled data"
    PAPERS: ClassVar[tuple[str, ...]] = ()

    rate: float | None = None  # highest learning rate; none: 3e-5 · (768 / width)², at most 3e-4
    on: str  # a dataset: a file, or NAME of NAME.train.txt, in a folder that names its kind (classification, ...)
    task: Literal["auto", "classification", "multilabel", "pairs", "tagging"] = "auto"  # the kind, if not by the folder
    auxiliary: str = ""  # a second dataset, of any kind or roles
    test: tuple[str, ...] = ()  # further files of the same kind to test on
    patience: int = 2  # epochs without a gain on development items before training stops
    most: int = 0  # training items, the first ones (0: all)
    adversarial: float = 0.0  # ε, relative to the mean size of the values of word embeddings
    label: float = 1.0  # weight of the loss of moved words
    virtual: float = 1.0  # α, weight of the divergence from what is said without perturbation

    def __post_init__(self) -> None:
        super().__post_init__()
        check_least(self, patience=1, most=0, adversarial=0, label=0, virtual=0)

    def list_inputs(self) -> list[Path]:
        files = list_parts(self.on) + (list_parts(self.auxiliary) if self.auxiliary else [])
        return files + [Path(file) for file in self.test]

    def steps(self, source: Path, target: Path, resources: AdaptationResources) -> Generator[Progress, None, Facts]:
        yield Progress(Phase.LOADING, 0, None, "", 0.0)
        data = read_dataset(self.on, self.task)
        if data.kind == "roles":
            cure = "give them as auxiliary="
            raise UsageError.expected("texts, pairs or tags", "roles", where="setting 'on' of tune", cure=cure)
        if self.most:
            data = TuningData(data.kind, data.train[: self.most], data.dev, data.test)
        second = read_dataset(self.auxiliary, "auto") if self.auxiliary else None
        tests = {Path(file).stem: [*READERS[data.kind](Path(file))] for file in self.test}  # before hours of training
        learner = _Learner(self, source, data, second, resolve_device(resources.device))
        sizes = [len(data.train), len(second.train) if second is not None else 0]
        per_epoch, n_steps = require_steps(sizes[0], self)
        per_second = math.ceil(sizes[1] / self.batch)
        whole = per_epoch + per_second
        n_steps = max(1, round(n_steps * whole / per_epoch))
        rate = self.rate or choose_rate(learner.width)
        trainer = ModelTrainer(
            learner.whole,
            self,
            rate,
            n_steps,
            new=learner.new,
            kept=list_pruned(source),
            selects=True,
        )
        facts = asdict(self) | {"items": sizes, "teacher": digest_model(source), "precision": trainer.precision}
        checkpoint = open_checkpoint(resources.checkpoints, facts, resume=resources.resume)

        def draw_tasks(epoch: int) -> NDArray[np.bool_]:
            """Which steps of an epoch are of the first task."""
            return np.random.default_rng([self.seed, epoch, 4]).permutation(np.arange(whole) < per_epoch)

        def compute_loss(step: int, random: np.random.Generator) -> Tensor:
            epoch, place = divmod(step, whole)
            kinds = draw_tasks(epoch)
            is_first = bool(kinds[place])
            number = epoch * (per_epoch if is_first else per_second) + int((kinds[:place] == is_first).sum())
            if is_first:
                rows = draw_rows(sizes[0], number, per_epoch, self)
                return learner.compute_loss([data.train[row] for row in rows.tolist()])
            assert second is not None
            rows = draw_rows(sizes[1], number, per_second, self)
            return learner.compute_second([second.train[row] for row in rows.tolist()])

        n_done = yield from train_model(
            trainer,
            compute_loss,
            checkpoint,
            evaluate=lambda: _judge(data, learner.predict(data.dev))[1],
            per_epoch=whole,
            patience=self.patience,
            task_of=lambda step: int(draw_tasks(step // whole)[step % whole]),
        )
        scores = [score for score in trainer.scores.tolist() if not math.isnan(score)]
        threshold, _ = _judge(data, learner.predict(data.dev)) if data.kind == "multilabel" else (0.5, 0.0)
        measured = self._measure(learner, data, second, tests, threshold)
        copy_rest(source, target)
        yield Progress(Phase.WRITING, 0, None, "", 0.0)
        write_model(learner.model, target)
        pruned = sorted({*list_pruned(source)} | (trainer.name_pruned() if self.sparsity else set()))
        sized: Facts = {"kind": data.kind, "labels": len(data.names), "items": len(data.train), "steps": n_done}
        sized["precision"] = trainer.precision
        return {"pruned": pruned, "facts": {**sized, "dev": max(scores), "dev by epoch": scores, **measured}}

    def _measure(
        self,
        learner: _Learner,
        data: TuningData,
        second: TuningData | None,
        tests: Mapping[str, Sequence[Item]],
        threshold: float,
    ) -> dict[str, Any]:
        """Scores on the test part, on further files, and of the second task."""
        measured: dict[str, Any] = {"threshold": threshold} if data.kind == "multilabel" else {}
        if data.test:
            measured["test"] = data.score(data.test, learner.predict(data.test), threshold)
        for name, items in tests.items():
            measured[name] = _score_kinds(data, items, learner.predict(items), threshold)
        if second is not None:
            part = second.test or second.dev
            measured["auxiliary"] = second.score(part, learner.predict_second(part))
        return measured


class _Learner:
    """The model with its head, the second head, and their losses."""

    def __init__(
        self, settings: Tuning, source: Path, data: TuningData, second: TuningData | None, device: torch.device
    ) -> None:
        self.settings, self.data, self.second, self.device = settings, data, second, device
        self.tokenizer = load_tokenizer(source)
        self.tokenizer.padding_side = "right"
        if self.tokenizer.pad_token_id is None:
            self.tokenizer.pad_token = self.tokenizer.eos_token or self.tokenizer.unk_token
        names = dict(enumerate(data.names))
        several = {"problem_type": "multi_label_classification"} if data.kind == "multilabel" else {}
        kind = _KINDS.get(data.kind, "ModelForSequenceClassification")
        loaded = load_model(
            source, kind, id2label=names, label2id={name: place for place, name in names.items()},
            num_labels=len(names), ignore_mismatched_sizes=True, **several,
        )  # fmt: skip
        self.model = loaded.model
        self.model.config.pad_token_id = self.tokenizer.pad_token_id
        self.model.config.use_cache = False
        self.whole = nn.ModuleDict({"model": self.model})
        self.width = width = int(self.model.config.get_text_config().hidden_size)
        if second is not None:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(settings.seed)
                head = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, len(second.names)))
            size = self.model.get_input_embeddings().embedding_dim
            self.whole["second"] = nn.ModuleDict({"head": head})
            self.whole["second"].register_parameter("mark", nn.Parameter(torch.zeros(size)))
        self.whole.to(device)
        self.precision = choose_precision(settings.precision, self.model)
        self.new = [f"model.{name}" for name in loaded.new]
        if data.kind == "multilabel":
            self._start_at_shares(loaded.new)
        self.new += [name for name, _ in self.whole.named_parameters() if name.startswith("second.")]

    @torch.no_grad()
    def _start_at_shares(self, new: Sequence[str]) -> None:
        """Give each label its share of the training items at first, so that no step is spent on learning it."""
        shares = self.data.targets(self.data.train, (), 0).mean(0).clamp(1e-4, 1 - 1e-4)
        for name in new:
            bias = self.model.get_parameter(name)
            if name.endswith("bias") and bias.shape == shares.shape:
                bias.copy_(shares.logit())

    def compute_loss(self, items: Sequence[Item]) -> Tensor:
        batch = encode_items(self.tokenizer, items, self.data.kind, self.settings.length)
        inputs = self._place(batch.inputs)
        targets = self.data.targets(items, batch.words, inputs["input_ids"].shape[1]).to(self.device)
        state = self._random_state()
        logits = self.model(**inputs).logits
        loss = self._lose(logits, targets)
        if not self.settings.adversarial:
            return loss
        if self.settings.label:
            self._restore(state)
            loss = loss + self.settings.label * self._lose(self._perturb(inputs, targets, None), targets)
        if self.settings.virtual:
            clean = logits.detach()
            self._restore(state)
            loss = loss + self.settings.virtual * self._diverge(self._perturb(inputs, targets, clean), logits)
        return loss

    def _perturb(self, inputs: Mapping[str, Tensor], targets: Tensor, clean: Tensor | None) -> Tensor:
        """The logits of words moved in the direction that raises the loss, or the divergence from `clean`."""
        rest = {name: value for name, value in inputs.items() if name != "input_ids"}
        table = self.model.get_input_embeddings()
        limit = self.settings.adversarial * float(table.weight.detach().abs().mean())
        words, state = table(inputs["input_ids"]), self._random_state()
        moved = (torch.randn_like(words) * _START * limit).requires_grad_()
        self._restore(state)  # so that dropout is the same as without a perturbation
        logits = self.model(inputs_embeds=words.detach() + moved, **rest).logits
        worse = self._lose(logits, targets) if clean is None else self._diverge(logits, clean)
        (slope,) = torch.autograd.grad(worse, moved)
        shift = move_words(moved.detach(), slope, limit) * inputs["attention_mask"][:, :, None]
        self._restore(state)
        result: Tensor = self.model(inputs_embeds=words + shift, **rest).logits
        return result

    def _random_state(self) -> Tensor:
        return torch.cuda.get_rng_state(self.device) if self.device.type == "cuda" else torch.get_rng_state()

    def _restore(self, state: Tensor) -> None:
        if self.device.type == "cuda":
            torch.cuda.set_rng_state(state, self.device)
        else:
            torch.set_rng_state(state)

    def compute_second(self, items: Sequence[Item]) -> Tensor:
        assert self.second is not None
        batch = encode_items(self.tokenizer, items, self.second.kind, self.settings.length)
        logits = self._say_second(batch)
        targets = self.second.targets(items, batch.words, batch.marked.shape[1]).to(self.device)
        return self._lose(logits, targets)

    def _say_second(self, batch: TokenBatch) -> Tensor:
        assert self.second is not None
        inputs = self._place(batch.inputs)
        parts: Any = self.whole["second"]
        words = self.model.get_input_embeddings()(inputs.pop("input_ids"))
        words = words + batch.marked.to(self.device)[:, :, None] * parts.mark
        states = self.model.base_model(inputs_embeds=words, **inputs).last_hidden_state
        logits: Tensor = parts["head"](states if self.second.labels_words else states[:, 0])
        return logits

    def _diverge(self, one: Tensor, other: Tensor) -> Tensor:
        return diverge(one, other, several=self.data.kind == "multilabel")

    @staticmethod
    def _lose(logits: Tensor, targets: Tensor) -> Tensor:
        if targets.is_floating_point():  # summed over labels: the mean leaves gradients of the size of Adam's epsilon
            return F.binary_cross_entropy_with_logits(logits.float(), targets, reduction="sum") / len(targets)
        return F.cross_entropy(logits.float().flatten(0, -2), targets.flatten(), ignore_index=IGNORED)

    def predict(self, items: Sequence[Item]) -> list[NDArray[Any]]:
        return self._predict(items, self.data, lambda batch: self.model(**self._place(batch.inputs)).logits)

    def predict_second(self, items: Sequence[Item]) -> list[NDArray[Any]]:
        assert self.second is not None
        return self._predict(items, self.second, self._say_second)

    @torch.no_grad()
    def _predict(self, items: Sequence[Item], data: TuningData, say: Any) -> list[NDArray[Any]]:
        """Of each item the label, the probabilities of labels (k,), or the tags of its words; those cut off have O."""
        self.whole.eval()
        said: list[NDArray[Any]] = [np.zeros(0)] * len(items)
        order = sorted(range(len(items)), key=lambda row: -sum(map(len, items[row].texts)))
        size = 4 * self.settings.batch
        outside = data.names.index("O") if "O" in data.names else 0
        for first in range(0, len(order), size):
            rows = order[first : first + size]
            batch = encode_items(self.tokenizer, [items[row] for row in rows], data.kind, self.settings.length)
            with autocast(self.device, self.precision):
                logits = say(batch).float().cpu()
            for number, row in enumerate(rows):
                if data.kind == "multilabel":
                    said[row] = logits[number].sigmoid().numpy()
                elif not data.labels_words:
                    said[row] = logits[number].argmax().numpy()
                else:
                    tags, places = logits[number].argmax(-1).numpy(), batch.words[number]
                    said[row] = np.where(places >= 0, tags[places], outside)
        return said

    def _place(self, inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
        return {name: value.to(self.device) for name, value in inputs.items()}


def choose_rate(width: int) -> float:
    """The highest learning rate by default: 3e-5 for BERT's width; narrower models need more."""
    return min(_RATE * (_WIDTH / width) ** 2, _MOST)


def move_words(moved: Tensor, slope: Tensor, limit: float) -> Tensor:
    """One projected step: `clip(δ + ε g / ‖g‖∞, -ε, ε)`, with the norm over each text (n, T, d)."""
    largest = slope.abs().amax(dim=(1, 2), keepdim=True).clamp_min(1e-30)
    return (moved + limit * slope / largest).clamp(-limit, limit)


def diverge(one: Tensor, other: Tensor, *, several: bool = False) -> Tensor:
    """The symmetric Kullback-Leibler divergence of two softmaxes, mean over rows; with `several`, of each label."""
    if several:
        a, b = one.float(), other.float()  # the logits are the logs of the odds
        return ((a.sigmoid() - b.sigmoid()) * (a - b)).sum(-1).mean()
    a, b = (F.log_softmax(logits.float().flatten(0, -2), -1) for logits in (one, other))
    return ((a.exp() - b.exp()) * (a - b)).sum(-1).mean()


def _judge(data: TuningData, said: Sequence[NDArray[Any]]) -> tuple[float, float]:
    """The probability from which a label is given that is best on development items, and their score with it."""
    if data.kind != "multilabel":
        return 0.5, data.score(data.dev, said)
    return choose_threshold(np.stack(said), data.targets(data.dev, (), 0).numpy())


def _score_kinds(
    data: TuningData, items: Sequence[Item], said: Sequence[NDArray[Any]], threshold: float
) -> float | dict[str, float]:
    """The score of a further file; of pairs also that of each kind, and of first texts all of whose pairs are right.

    Where a file has only entailment and non-entailment, all other labels are the latter.
    """
    if data.kind != "pairs":
        return data.score(items, said, threshold)
    collapsed = {item.labels[0] for item in items} <= {_ENTAILED, _OTHER}
    right: dict[str, list[bool]] = {"accuracy": []}
    for item, label in zip(items, said, strict=True):
        name = data.names[int(label)]
        name = _OTHER if collapsed and name != _ENTAILED else name
        for kind in ("accuracy", *item.kinds):
            right.setdefault(kind, []).append(name == item.labels[0])
    scores = {kind: float(np.mean(values)) for kind, values in right.items()}
    groups: dict[str, list[bool]] = {}
    for item, is_right in zip(items, right["accuracy"], strict=True):
        groups.setdefault(item.texts[0], []).append(is_right)
    if 1 < len(groups) <= len(items) / 2:  # several answers to a question, as in MC-TACO
        scores["exact-match"] = float(np.mean([all(values) for values in groups.values()]))
    return scores
