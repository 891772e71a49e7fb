"""What the words of a sentence attend to, in a result that was trained with attention (Wang et al. 2020, figure 7)."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stillvec.encoding import BatchBudget, TextChunk
from stillvec.errors import FormatError, UsageError
from stillvec.formats import load, local_path, read_manifest, read_model
from stillvec.learners import EncodingPass, PassPlan
from stillvec.learners.attentive_skipgram import AttentiveSkipgram
from stillvec.learners.context_to_vec import ContextToVec
from stillvec.learners.windows import compute_attention
from stillvec.pipeline.result_folders import describe_teacher
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
    known: tuple[bool, ...]  # whether the word is in the vocabulary; others have no weights
    weights: NDArray[np.float32]  # (n, n) from the centre in the row; NaN outside its window and for unknown words


def attention(folder: str | os.PathLike[str], sentence: str, teacher: str | Teacher | None = None) -> Attention:
    """Compute how much each word of a sentence attends to the words around it.

    The folder is a result of `attentive_skipgram` or of another method with `pool=attention`; the teacher is, unless
    given, the one that the manifest names.
    """
    place = local_path(folder)
    manifest = read_manifest(place)
    learner = _learner(place, manifest)
    model = read_model(place)
    if "table" not in model or "projection-0" not in model:
        raise FormatError(
            f"{place} has no model.safetensors with a table and projections; distil it again.", path=place
        )
    vocabulary = load(place, format="stillvec").vocabulary
    if (n_known := int((WordMatcher(vocabulary).match_rows([sentence])[0] >= 0).sum())) < 2:
        raise UsageError.expected(f"a sentence with at least two words of {place}", f"{n_known} in {sentence!r}")
    reader = _teacher(place, manifest, teacher)
    # known=vocabulary: only the sentence is read, no single words
    encoding_pass = EncodingPass(PassPlan({"attention": learner}, vocabulary, known=vocabulary), reader)
    for _ in encoding_pass.run([TextChunk([sentence])], BatchBudget(reader.window, 1)):
        pass
    statistics = encoding_pass.statistics_of("attention")["contexts"]
    states = np.asarray(statistics["stored:states"], np.float32) * float(statistics["stored:scale"])
    rows = np.asarray(statistics["stored:words"])
    weights = compute_attention(learner, model, rows, states)
    return Attention(_words_with_states(sentence, vocabulary, reader), tuple((rows >= 0).tolist()), weights)


def _learner(place: Path, manifest: dict[str, Any]) -> AttentiveSkipgram | ContextToVec:
    method, settings = manifest.get("method", "another program"), manifest.get("settings", {})
    kind = _ATTENDING.get(method)
    if kind is None or settings.get("pool") != "attention":
        how = f"{method} with pool={settings['pool']}" if "pool" in settings else method
        raise UsageError(
            f"{place} was made by {how}, which has no attention; expected a result of attentive_skipgram.", path=place
        )
    return settings_from(kind, {**settings, "stream": False}, str(place))


def _teacher(place: Path, manifest: dict[str, Any], given: str | Teacher | None) -> Teacher:
    settings = manifest.get("distillation", {})
    if isinstance(given, str) or given is None:
        name = given or settings.get("teacher") or manifest["teacher"]["name"]
        flags = {key: settings[key] for key in ("precision", "unsafe_weights", "remote_code") if key in settings}
        given = load_teacher(name, **flags)
    if not same_teacher(manifest["teacher"], describe_teacher(given)):
        raise UsageError(
            f"{place} was made with the teacher {manifest['teacher']['name']}, and its projections fit no other; got "
            f"{given.name}."
        )
    return given


def _words_with_states(sentence: str, vocabulary: Vocabulary, teacher: Teacher) -> tuple[str, ...]:
    """The words of the sentence without those whose letters the tokenizer drops."""
    matches = WordMatcher(vocabulary).match([sentence])
    _, rows = align(teacher.tokenizer.encode([sentence]), matches)
    return tuple(sentence[matches.starts[row] : matches.ends[row]] for row in np.unique(rows).tolist())
