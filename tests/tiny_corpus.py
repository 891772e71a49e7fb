"""What tests of learners and runs share: real-looking sentences, a tiny teacher that knows their words, a lesson."""

# ruff: noqa: SIM905 - words in a row read best

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pytest
import torch
from tiny_teachers import tiny_teacher

from stillvec.encoding import BatchBudget, TextChunk, TextUnit
from stillvec.encoding.context_store import StoreLocation
from stillvec.learners import EncodingPass, Learner, PassPlan
from stillvec.statistics import Statistics
from stillvec.teachers import Teacher
from stillvec.vocabulary import Vocabulary

WHO = "farmer baker teacher doctor student sailor writer mother child painter king neighbour".split()
DOES = "sells reads paints carries finds loves repairs brings hides remembers buys wants".split()
WHAT = "bread books boats houses letters apples horses pictures songs coins flowers shoes".split()
KIND = "old fresh small heavy strange beautiful expensive wooden".split()
WHERE = "village river market garden school harbour kitchen forest".split()
WHEN = "today often never again slowly".split()
GLUE = "the in near a by".split()


def sentences(count: int = 96, seed: int = 0) -> list[str]:
    """Sentences over 60-odd words; every word stands in both halves of 48 or more of them."""
    choose = random.Random(seed)
    made = []
    for number in range(count):
        who, does, what = WHO[number % 12], choose.choice(DOES), WHAT[(number * 7 + number // 12) % 12]
        kind, where, when = choose.choice(KIND), choose.choice(WHERE), choose.choice(WHEN)
        glue = ("in the", "near a", "by the", "by a")[number % 4]
        made.append(f"The {who} {does} {kind} {what} {glue} {where} {when}.")
    return made


# "nobody", "listens" and "and" occur once: with `count_repeated`, a sentence has no known word, and one some unknown.
PARTLY_KNOWN = [*sentences(72), "Nobody listens.", "The farmer loves the farmer near the river and the school."]


def words_of(text: str) -> list[tuple[str, int, int]]:
    """Words, lower-cased, with their place: enough for letters and spaces, and nobody else's code."""
    return [(found.group(), *found.span()) for found in re.finditer(r"[a-z]+", text.lower())]


def counted(texts: Iterable[str], keep: Sequence[str] = ()) -> Vocabulary:
    counts = Counter(word for text in texts for word, _, _ in words_of(text))
    return Vocabulary.build(counts, min_count=1, include_words=keep)


def count_repeated(texts: Iterable[str]) -> Vocabulary:
    """Only the words that occur twice."""
    counts = Counter(word for text in texts for word, _, _ in words_of(text))
    return Vocabulary.build({word: n for word, n in counts.items() if n > 1}, min_count=2)


def teach_words() -> Teacher:
    """A tiny teacher for which half of the verbs and objects are several pieces."""
    return tiny_teacher([*WHO, *DOES[:6], *WHAT[:6], *KIND, *WHERE])


def collect_statistics(
    learners: Mapping[str, Learner], teacher: Teacher, vocabulary: Vocabulary, texts: Sequence[str]
) -> dict[str, dict[str, Statistics]]:
    """What each learner hears in one encoding."""
    encoding_pass = make_pass(learners, teacher, vocabulary)
    for _ in encoding_pass.run([TextChunk(texts[i : i + 32]) for i in range(0, len(texts), 32)], BatchBudget(256, 32)):
        pass
    return {name: encoding_pass.statistics_of(name) for name in learners}


def matrix_of(learner: Learner, teacher: Teacher, vocabulary: Vocabulary, texts: Sequence[str]) -> np.ndarray:
    return np.array(
        learner.finish(collect_statistics({"it": learner}, teacher, vocabulary, texts)["it"]).vectors.matrix
    )


def slow_states(teacher: Teacher, text: str) -> tuple[np.ndarray, list[tuple[int, int]]]:
    """One text alone, without padding: (layers, pieces, D) without special tokens, and each piece's span."""
    cut = teacher.tokenizer.encode([text])
    ids = [*teacher.tokenizer.prefix, *cut.ids.tolist(), *teacher.tokenizer.suffix]
    layers = range(teacher.depth + 1)
    states = teacher.states(torch.tensor([ids]), None, layers)
    begin = len(teacher.tokenizer.prefix)
    every = np.stack([states[layer][0, begin : begin + len(cut.ids)].numpy() for layer in layers])
    return every.astype(np.float64), [*zip(cut.starts.tolist(), cut.ends.tolist(), strict=True)]


def likeness(matrix: np.ndarray) -> np.ndarray:
    """Inner products of rows: what vectors say of each other, whatever the axes."""
    return matrix.astype(np.float64) @ matrix.astype(np.float64).T


def refused(capsys: pytest.CaptureFixture[str], code: int) -> str:
    """The one line that says why, after exit code 1 (failed), 2 (a wrong call) or 130 (interrupted), and any notes."""
    lines = capsys.readouterr().err.splitlines(keepends=True)
    stderr = "".join(line for line in lines if not line.startswith("Note: "))
    assert code in (1, 2, 130), stderr
    assert stderr.startswith("stillvec: "), stderr
    assert stderr.count("\n") == 1, stderr
    assert stderr.endswith((".\n", "?\n", ")\n")), stderr
    assert "Traceback" not in stderr
    return stderr


def make_pass(
    learners: Mapping[str, Learner],
    teacher: Teacher,
    vocabulary: Vocabulary,
    known: Vocabulary | None = None,
    store: StoreLocation | None = None,
) -> EncodingPass:
    return EncodingPass(PassPlan(learners, vocabulary, known), teacher, store=store)


def run_pass(
    encoding_pass: EncodingPass, texts: Sequence[str], workers: int = 0, *, whole: bool = False
) -> EncodingPass:
    """A lesson that was read these texts, as sentences or as paragraphs read whole."""
    unit = TextUnit.WHOLE_PARAGRAPHS if whole else TextUnit.SENTENCES
    chunks = [TextChunk(texts[i : i + 16], unit=unit) for i in range(0, len(texts), 16)]
    load = BatchBudget(256, 16, workers)
    for _ in encoding_pass.run([], load, chunks) if whole else encoding_pass.run(chunks, load):
        pass
    return encoding_pass
