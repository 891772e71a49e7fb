"""What the words of a sentence attend to, in a result that was trained with attention (Wang et al. 2020, figure 7)."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stillvec.encoding import BatchBudget, TextChunk
from stillvec.errors import FormatError, UsageError
from stillvec.formats import load, read_manifest, read_model
from stillvec.learners import EncodingPass, PassPlan
from stillvec.learners.attention_weights import compute_attention
from stillvec.learners.attentive_skipgram import AttentiveSkipgram
from stillvec.learners.context_to_vec import ContextToVec
from stillvec.pipeline.manifest import describe_teacher
from stillvec.registry import settings_from
from stillvec.teachers import Teacher, align, load_teacher
from stillvec.teachers.digest import same_teacher
from stillvec.vocabulary import Vocabulary, WordMatcher

_ATTENDING: dict[str, type[AttentiveSkipgram] | type[ContextToVec]] = {
    "attentive_skipgram": AttentiveSkipgram,
    "context_to_vec": ContextToVec,
}


@dataclass(frozen=True)
class Attention:
    words: tuple[str, ...]  # as the sentence writes them
    known: tuple[bool, ...]  # whether the vectors have the word; of the others there is no row to attend to
    weights: NDArray[np.float32]  # (n, n) from the centre in the row; NaN outside its window and for unknown words


def attention(folder: str | os.PathLike[str], sentence: str, teacher: str | Teacher | None = None) -> Attention:
    """How much each word of a sentence attends to the words around it.

    The folder is a result of `attentive_skipgram` (or of another method with `pool=attention`); its teacher, which
    reads the sentence, is the one the manifest names, unless it is given.
    """
    place = Path(folder)
    manifest = read_manifest(place)
    learner = _learner(place, manifest)
    model = read_model(place)
    if "table" not in model or "projection-0" not in model:
        raise FormatError(f"{place} has no model.safetensors with what was learnt beside the vectors; distil it anew.")
    vocabulary = load(place, format="stillvec").vocabulary
    _check_known(sentence, vocabulary, place)
    reader = _teacher(place, manifest, teacher)
    # words of an earlier result are not read alone, so only the sentence is read
    encoding_pass = EncodingPass(PassPlan({"it": learner}, vocabulary, known=vocabulary), reader)
    for _ in encoding_pass.run([TextChunk([sentence])], BatchBudget(reader.window, 1)):
        pass
    statistics = encoding_pass.statistics_of("it")["contexts"]
    states = np.asarray(statistics["stored:states"], np.float32) * float(statistics["stored:scale"])
    rows = np.asarray(statistics["stored:words"])
    weights = compute_attention(learner.config(), model, rows, states)
    return Attention(_seen_words(sentence, vocabulary, reader), tuple((rows >= 0).tolist()), weights)


def _learner(place: Path, manifest: dict[str, Any]) -> AttentiveSkipgram | ContextToVec:
    method, settings = manifest.get("method", "another program"), manifest.get("settings", {})
    kind = _ATTENDING.get(method)
    if kind is None or settings.get("pool") != "attention":
        how = f"{method} with pool={settings['pool']}" if "pool" in settings else method
        raise UsageError(
            f"{place} was made by {how}, where no word attends to another; give a result of attentive_skipgram."
        )
    return settings_from(kind, {**settings, "stream": False}, str(place))


def _check_known(sentence: str, vocabulary: Vocabulary, place: Path) -> None:
    rows, _ = WordMatcher(vocabulary).match_rows([sentence])
    known = int((rows >= 0).sum())
    if known < 2:
        raise UsageError(
            f"Attention needs a sentence with two words or more that {place} knows, and {sentence!r} has {known}."
        )


def _teacher(place: Path, manifest: dict[str, Any], given: str | Teacher | None) -> Teacher:
    made = manifest.get("distillation", {})
    if isinstance(given, str) or given is None:
        name = given or made.get("teacher") or manifest["teacher"]["name"]
        flags = {key: made[key] for key in ("precision", "unsafe_weights", "remote_code") if key in made}
        given = load_teacher(name, **flags)
    if not same_teacher(manifest["teacher"], describe_teacher(given)):
        raise UsageError(
            f"{place} was made with the teacher {manifest['teacher']['name']}, which is not {given.name}; its "
            "projection fits no other."
        )
    return given


def _seen_words(sentence: str, vocabulary: Vocabulary, teacher: Teacher) -> tuple[str, ...]:
    """The words of the sentence that have a state: of one whose letters the tokenizer drops there is none."""
    found = WordMatcher(vocabulary).match([sentence])
    _, word = align(teacher.tokenizer.encode([sentence]), found)
    return tuple(sentence[found.starts[each] : found.ends[each]] for each in np.unique(word).tolist())
