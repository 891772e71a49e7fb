"""Language modelling on the user's own text: a teacher is trained further, or a small one is made.

A teacher with a mask token learns to predict masked tokens, another the next token. A head that the teacher lacks is
made, and trained alone for a tenth of the steps, so that it does not disturb the teacher. `stillvec adapt new` makes a
tokenizer and a small model of the text alone (Wu & Dredze 2020): `layers`, `dim`, `heads`, `vocabulary`.

With `attributes`, a new left-to-right model learns what a lexicon says of words (`attribute_model.py`).

Every fiftieth row of text is held out; the manifest has the loss and the perplexity on these before and after, of
masked models for the same masks.
"""

from __future__ import annotations

import math
import time
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, cast

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from stillvec.adaptation.adaptation_steps import AdaptationResources, Facts, describe_adaptation
from stillvec.adaptation.attribute_model import AttributeModel, AttributeUse, find_attributes, read_lexicon
from stillvec.adaptation.language_models import (
    LoadedModel,
    Objective,
    choose_objective,
    load_model,
    load_tokenizer,
    make_model,
)
from stillvec.adaptation.model_folder import copy_rest, digest_model, is_model, list_pruned, write_model
from stillvec.adaptation.model_training import (
    RAMP,
    ModelTrainer,
    TrainedStep,
    autocast,
    choose_precision,
    draw_rows,
    require_steps,
    train_model,
)
from stillvec.adaptation.token_stream import Units, cut_rows, mask_tokens, read_tokens, train_tokenizer
from stillvec.corpus import Corpus
from stillvec.errors import UsageError
from stillvec.progress import Phase, Progress
from stillvec.registry import check_least, check_positive
from stillvec.teachers.device import resolve_device
from stillvec.teachers.subword_tokenizer import SubwordTokenizer
from stillvec.training.checkpoint import open_checkpoint

_HELD_OUT = 50  # every so many rows
_MOST_HELD_OUT = 512
_RATES = {False: 5e-5, True: 5e-4}  # of a teacher, of a new model
Ids = NDArray[np.int32]


@dataclass(frozen=True, kw_only=True)
class Pretraining(TrainedStep):
    SUMMARY: ClassVar[str] = "trained as a language model on text"
    PAPERS: ClassVar[tuple[str, ...]] = ()
    MAKES_MODEL: ClassVar[bool] = True  # it needs no teacher

    text: tuple[str, ...]  # files, folders or globs
    objective: Literal["auto", "masked", "causal"] = "auto"  # what is predicted: masked tokens or the next token
    epochs: float = 1.0  # passes over the text
    max_steps: int = 0  # at most so many steps (0: no limit)
    mask: float = 0.15  # share of tokens that are masked
    rare: bool = False  # mask in proportion to count^-0.5, rare tokens more often
    vocabulary: int = 8000  # tokens of a new model
    units: Units = "pieces"  # tokens of a new model: pieces of words, or whole words
    lowercase: bool = True  # of a new model
    layers: int = 6  # of a new model
    dim: int = 256  # of a new model
    heads: int = 4  # of a new model
    attributes: str = ""  # wordnet, or a file of words and attributes, for a new left-to-right model
    attributes_in: AttributeUse = "both"  # added to the input, predicted of the next word, or both

    def __post_init__(self) -> None:
        super().__post_init__()
        check_least(self, max_steps=0, vocabulary=64, layers=1, dim=8, heads=1)
        check_positive(self, "mask")
        if not self.mask < 1:
            raise UsageError.expected("below 1", self.mask, where="mask")
        if self.dim % self.heads:
            raise UsageError.expected(f"a multiple of {self.heads} heads", self.dim, where="dim")

    def list_inputs(self) -> list[Path]:
        lexicon = [Path(self.attributes)] if self.attributes else []
        return [Path(source) for source in Corpus(*self.text).sources] + lexicon

    def steps(self, source: Path, target: Path, resources: AdaptationResources) -> Generator[Progress, None, Facts]:
        start = time.perf_counter()
        corpus = Corpus(*self.text)
        is_new = not is_model(source)
        if self.attributes:
            if not is_new or self.objective != "causal":
                got = f"objective={self.objective}"
                raise UsageError.expected("a new teacher with objective=causal", got, where="setting 'attributes'")
            lexicon = read_lexicon(self.attributes)
        if is_new:
            yield Progress("training a tokenizer", 0, None, "", 0.0)
            tokenizer = train_tokenizer(corpus.paragraphs(), self.vocabulary, self.units, lowercase=self.lowercase)
        else:
            tokenizer = load_tokenizer(source)
        objective = self._choose(source, tokenizer, is_new=is_new)
        yield Progress("reading tokens", 0, None, "", time.perf_counter() - start)
        data = _TokenRows(corpus, tokenizer, objective, self)
        model, new = self._open(source, tokenizer, objective, is_new=is_new)
        if self.attributes:
            table = find_attributes(lexicon, tokenizer.get_vocab())
            model = AttributeModel(model, table, self.attributes_in, self.seed)
        model = model.to(resolve_device(resources.device))
        model.config.use_cache = False
        per_epoch, n_steps = require_steps(len(data.train), self)
        n_steps = min(n_steps, self.max_steps or n_steps)
        rate = self.rate or _RATES[is_new]
        frozen = round(RAMP * n_steps) if new else 0
        trainer = ModelTrainer(model, self, rate, n_steps, new=new, kept=list_pruned(source), n_frozen=frozen)
        before = data.measure_loss(model)
        facts = describe_adaptation(self) | {
            "tokens": int(data.n_tokens),
            "teacher": digest_model(source),
            "precision": trainer.precision,
        }
        checkpoint = open_checkpoint(resources.checkpoints, facts, resume=resources.resume)

        def compute_loss(step: int, random: np.random.Generator) -> Tensor:
            return data.compute_loss(model, data.train[draw_rows(len(data.train), step, per_epoch, self)], random)

        yield from train_model(trainer, compute_loss, checkpoint)
        after = data.measure_loss(model)
        if not is_new:
            copy_rest(source, target)
        yield Progress(Phase.WRITING, 0, None, "", 0.0)
        write_model(model.fold() if self.attributes else model, target, None if not is_new else tokenizer)
        pruned = sorted({*list_pruned(source)} | (trainer.name_pruned() if self.sparsity else set()))
        return {
            "pruned": pruned,
            "facts": {
                "objective": objective,
                "tokens": int(data.n_tokens),
                "steps": n_steps,
                "precision": trainer.precision,
                "loss before": before,
                "loss after": after,
                "perplexity": math.exp(min(after, 50)),
            },
        }

    def _choose(self, source: Path, tokenizer: Any, *, is_new: bool) -> Objective:
        if self.objective != "auto":
            return self.objective
        return "masked" if is_new else choose_objective(source, tokenizer)

    def _open(self, source: Path, tokenizer: Any, objective: Objective, *, is_new: bool) -> LoadedModel:
        if is_new:
            size = {"dim": self.dim, "layers": self.layers, "heads": self.heads}
            return LoadedModel(make_model(objective, tokenizer, **size, seed=self.seed), [])
        return load_model(source, "ModelForMaskedLM" if objective == "masked" else "ModelForCausalLM")


class _TokenRows:
    """The rows of tokens of a corpus, those to train on and those held out, and the loss on them."""

    def __init__(self, corpus: Corpus, tokenizer: Any, objective: Objective, settings: Pretraining) -> None:
        backend = tokenizer.backend_tokenizer
        words = SubwordTokenizer(backend)
        self.objective, self.settings, self.mask = objective, settings, tokenizer.mask_token_id
        tokens = read_tokens(corpus.paragraphs(), backend)
        self.n_tokens = len(tokens)
        rows = cut_rows(tokens, settings.length, words.prefix, words.suffix if objective == "masked" else ())
        held = np.arange(len(rows)) % _HELD_OUT == _HELD_OUT // 2
        held[0] |= not held.any()
        self.train, self.held_out = rows[~held], rows[held][:_MOST_HELD_OUT]
        n_tokens = max(len(tokenizer), int(rows.max()) + 1)
        self.special = np.zeros(n_tokens, bool)
        self.special[[token for token in tokenizer.all_special_ids if token < n_tokens]] = True
        counts = np.bincount(tokens, minlength=n_tokens)
        self.weights = np.maximum(counts, 1) ** -0.5 if settings.rare else None
        if objective == "masked" and self.mask is None:
            raise UsageError.expected("a teacher with a mask token", "one without", where="objective=masked")

    def compute_loss(self, model: Any, rows: Ids, random: np.random.Generator) -> Tensor:
        """The mean loss of the chosen tokens, or of all next tokens."""
        device = next(model.parameters()).device
        if self.objective == "causal":
            ids = torch.from_numpy(rows.astype(np.int64)).to(device)
            logits, states = model.read(ids) if self.settings.attributes else (model(input_ids=ids).logits, None)
            loss = F.cross_entropy(logits[:, :-1].flatten(0, 1).float(), ids[:, 1:].flatten())
            if states is None or self.settings.attributes_in == "input" or not model.training:
                return loss
            return loss + cast(Tensor, model.predict_attributes(states[:, :-1], ids[:, 1:]))
        changed, chosen = mask_tokens(rows, self.special, self.mask, self.settings.mask, random, self.weights)
        ids, places = torch.from_numpy(changed).to(device), torch.from_numpy(chosen).to(device)
        targets = torch.from_numpy(rows[chosen].astype(np.int64)).to(device)
        logits = model(input_ids=ids, attention_mask=torch.ones_like(ids)).logits[places]  # (C, V)
        return F.cross_entropy(logits.float(), targets)

    @torch.no_grad()
    def measure_loss(self, model: Any) -> float:
        """The mean loss on held-out rows, with the same masks each time."""
        model.eval()
        losses, sizes = [], []
        device, precision = next(model.parameters()).device, choose_precision(self.settings.precision, model)
        for first in range(0, len(self.held_out), self.settings.batch):
            rows = self.held_out[first : first + self.settings.batch]
            with autocast(device, precision):
                losses.append(float(self.compute_loss(model, rows, np.random.default_rng([first, 3]))))
            sizes.append(len(rows))
        return float(np.average(losses, weights=sizes))
