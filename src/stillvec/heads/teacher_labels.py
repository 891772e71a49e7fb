"""The labels that a teacher gives to texts, for heads that learn from it (Adhikari et al. 2020).

A folder with a classifier (`...ForSequenceClassification`) is asked for its probabilities; its labels must be those of
the data. Of any other teacher, the vectors of whole texts are read, and logistic regression on the training texts gives
the probabilities. Copies of training texts are changed word by word: left out, or replaced by one of the nearest words.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from stillvec.errors import CorpusError, TeacherError, UsageError
from stillvec.files import read_lines
from stillvec.heads.labelled_data import LabelledData
from stillvec.heads.linear_probe import PENALTIES, Scaling, fit_sigmoids, one_hot, predict_sigmoids, select_logistic
from stillvec.heads.training_options import TeacherOption
from stillvec.registry import require
from stillvec.teachers.device import resolve_device
from stillvec.teachers.loader import silence_transformers
from stillvec.teachers.precision_choice import gains_from_bf16
from stillvec.vectors import WordVectors

_BATCH_TOKENS = 8192  # padding included
_LEFT_OUT, _REPLACED = 0.1, 0.2  # of the words of a copy
_NEAREST = 10  # words that one may be replaced by


def add_texts(option: TeacherOption, data: LabelledData, vectors: WordVectors, seed: int) -> list[str]:
    """Texts without labels: changed copies of training texts, and those of a file, without those of the test part."""
    texts: list[str] = []
    if data.unit == "pair" and (option.augment or option.texts is not None):
        raise UsageError.conflict("Pairs are not changed, and not read from a file of texts", cure="leave it out")
    if option.augment:
        texts += _change_texts([str(data.items[row]) for row in data.train], option.augment, vectors, seed)
    if option.texts is not None:
        path = Path(option.texts)
        if not path.is_file():
            raise UsageError.not_found(path, "a file of texts, one per line")
        tested = {str(data.items[row]).strip() for row in np.concatenate([data.test, data.dev]).tolist()}
        lines = (line.strip() for _, line in read_lines(path, CorpusError))
        kept = [line for line in dict.fromkeys(lines) if line and line not in tested]
        if not kept:
            raise CorpusError.expected("texts, one per line, that are not in the test part", "none", path=path)
        order = np.random.default_rng(seed).permutation(len(kept))[: option.max_texts]
        texts += [kept[number] for number in np.sort(order).tolist()]
    return texts


def label_texts(
    option: TeacherOption, data: LabelledData, texts: Sequence[str], device: str
) -> Generator[float, None, NDArray[np.float32]]:
    """The probability of each label (n, k) for texts, which begin with those of the data.

    A classifier is not asked about test texts, which have zeros.
    """
    folder = Path(option.model)
    if _is_classifier(folder):
        rows = np.delete(np.arange(len(texts)), data.test)
        asked = yield from _ask_classifier(folder, data, [texts[row] for row in rows.tolist()], device, option.length)
        likely = np.zeros((len(texts), asked.shape[1]), asked.dtype)
        likely[rows] = asked
    elif data.unit == "pair":
        cure = "tune one: stillvec adapt TEACHER --step tune:on=PAIRS"
        raise UsageError.expected("a classifier of pairs", "another model", where=option.model, cure=cure)
    else:
        likely = yield from _ask_probe(option.model, data, texts, device)
    if not np.isfinite(likely).all():
        cure = "its weights may have diverged; tune it again"
        raise TeacherError.expected("finite probabilities", "NaN", path=option.model, cure=cure, code="not-finite")
    if option.hard:
        likely = likely > 0.5 if data.multilabel else one_hot(likely.argmax(axis=1), likely.shape[1])
    return np.asarray(likely, np.float32)


def _is_classifier(folder: Path) -> bool:
    file = folder / "config.json"
    if not file.is_file():
        return False
    try:
        kinds = json.loads(file.read_text("utf-8")).get("architectures") or []
    except (ValueError, AttributeError):
        return False
    return any(str(kind).endswith("ForSequenceClassification") for kind in kinds)


def _ask_classifier(
    folder: Path, data: LabelledData, texts: Sequence[str], device: str, length: int
) -> Generator[float, None, NDArray[Any]]:
    transformers = require("transformers", "distill", "a tuned teacher")
    place = resolve_device(device)
    with silence_transformers():
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
        model = transformers.AutoModelForSequenceClassification.from_pretrained(
            folder, local_files_only=True, use_safetensors=True, dtype=torch.float32
        )
    names = [str(model.config.id2label[number]) for number in range(model.config.num_labels)]
    if missing := [*{*data.names} - {*names}]:
        what = f"a classifier of the labels {', '.join(data.names[:5])}"
        raise TeacherError.expected(what, f"none of {missing[0]!r}", path=folder)
    model = model.eval().to(place)
    in_bf16 = place.type == "cuda" or gains_from_bf16(model)
    columns = [names.index(name) for name in data.names]
    limit = min(int(tokenizer.model_max_length), int(getattr(model.config, "max_position_embeddings", 512)), length)
    sides = [*zip(*texts, strict=True)] if data.unit == "pair" else [texts]
    encoded = tokenizer(*([*side] for side in sides), truncation=True, max_length=limit)
    lengths = np.array([*map(len, encoded["input_ids"])])
    order = np.argsort(-lengths, kind="stable")
    scores = np.zeros((len(texts), len(names)), np.float32)
    at = 0
    with torch.inference_mode(), torch.autocast(place.type, torch.bfloat16, enabled=in_bf16):
        while at < len(order):
            size = max(1, _BATCH_TOKENS // max(1, int(lengths[order[at]])))
            batch = order[at : at + size].tolist()
            parts = {name: [rows[row] for row in batch] for name, rows in encoded.items()}
            padded = tokenizer.pad(parts, return_tensors="pt").to(place)
            scores[batch] = model(**padded).logits.float().cpu().numpy()
            at += size
            yield min(1.0, at / len(order))
    chosen = torch.from_numpy(scores[:, columns])
    return np.asarray((chosen.sigmoid() if data.multilabel else chosen.softmax(dim=1)).numpy())


def _ask_probe(
    name: str, data: LabelledData, texts: Sequence[str], device: str
) -> Generator[float, None, NDArray[Any]]:
    """Logistic regression on the teacher's vectors of texts, its penalty selected on development texts."""
    from stillvec.encoding.text_states import encode_texts
    from stillvec.teachers import load_teacher

    teacher = load_teacher(name, device=device)
    layer = teacher.depth
    key: Any = (layer, "mean" if teacher.head is None else "own")
    rows = yield from encode_texts(teacher, texts, [key])
    x, targets = rows[key], data.targets()
    if data.multilabel:
        scaling = Scaling.of(x[data.train])
        return predict_sigmoids(scaling(x), fit_sigmoids(scaling(x[data.train]), targets[data.train], PENALTIES[2]))
    scaling, weights = select_logistic(x, targets.argmax(axis=1), data.train, data.dev)
    scores = scaling(x) @ weights[:-1] + weights[-1]
    shifted = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(shifted / shifted.sum(axis=1, keepdims=True))


def _change_texts(texts: Sequence[str], n_copies: int, vectors: WordVectors, seed: int) -> list[str]:
    """Copies in which some words are left out, and some replaced by a near one."""
    random = np.random.default_rng([seed, 10])
    words = sorted({word for text in texts for word in text.split() if word.lower() in vectors or word in vectors})
    found = [word if word in vectors else word.lower() for word in words]
    near = {
        word: [other for other, _ in neighbours]
        for word, neighbours in zip(words, vectors.nearest_batch(found, _NEAREST) if found else [], strict=True)
    }
    changed = []
    for text in texts:
        parts = text.split()
        for _ in range(n_copies):
            drawn = random.random(len(parts))
            choices = random.integers(0, _NEAREST, len(parts)).tolist()
            copy = []
            for word, share, choice in zip(parts, drawn.tolist(), choices, strict=True):
                if share < _LEFT_OUT:
                    continue
                others = near.get(word) if share < _LEFT_OUT + _REPLACED else None
                copy.append(others[choice % len(others)] if others else word)
            changed.append(" ".join(copy))
    return changed
