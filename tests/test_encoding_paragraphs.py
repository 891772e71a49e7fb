"""Sentences inside paragraphs: the teacher reads the paragraph, and each sentence keeps its own words, exactly."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from tiny_corpus import DOES, KIND, WHAT, WHERE, WHO, counted, make_pass, run_pass, sentences, slow_states
from tiny_teachers import tiny_teacher

from stillvec.corpus import Corpus, split_sentences
from stillvec.errors import UsageError
from stillvec.learners import LEARNERS
from stillvec.learners.stored_contexts import StoredContexts
from stillvec.pipeline import sentence_stream
from stillvec.pipeline.sentence_stream import SentenceStream
from stillvec.teachers import Teacher
from stillvec.vocabulary import Vocabulary

TEXTS = sentences(64)
KNOWN = [*WHO, *DOES, *WHAT, *KIND, *WHERE, "the", "in", "near", "a", "by"]


@pytest.fixture(scope="module")
def teacher() -> Teacher:
    return tiny_teacher(KNOWN)


SPLIT = [  # by hand; joined by blanks they are paragraphs
    ["The U.S. king sells 3.5 old boats.", "A child wants bread.", "Mr. Baker reads books by the river!"],
    ['The doctor said: "The horses in the U.S. are small."', "The sailor loves 1,000 strange songs, e.g. letters."],
    [
        "Who hides the coins near Dr. Painter?",
        "(The writer never finds them.)",
        "The teacher at St. John repairs shoes.",
    ],
    ["Only one sentence is in this paragraph."],
    [
        "The baker hides letter x.",
        "A mother brings apples...",
        "The neighbour carries flowers at 5 p.m. to the market.",
        "He sells wooden houses",
    ],
    ["“The student paints pictures!”", "The farmer buys no. 7 of the heavy letters.", "It is No. 8 Garden Road."],
]
PARAGRAPHS = [" ".join(each) for each in SPLIT]
_WORD = re.compile(r"\w+(?:[.,]\w+)*")


def found_in(text: str, end: int | None = None, start: int = 0) -> list[tuple[str, int, int]]:
    return [(match[0].lower(), *match.span()) for match in _WORD.finditer(text, start, end if end else len(text))]


def by_hand(paragraphs: Sequence[str], split: Sequence[Sequence[str]]) -> list[list[list[tuple[str, int, int]]]]:
    """Paragraph → sentence → words with their place in the paragraph."""
    found = []
    for paragraph, texts in zip(paragraphs, split, strict=True):
        starts = [paragraph.index(text) for text in texts]
        found.append([found_in(paragraph, at + len(text), at) for at, text in zip(starts, texts, strict=True)])
    return found


def slow_windows(teacher: Teacher, text: str) -> list[tuple[list[np.ndarray], tuple[int, int]]]:
    """For each piece of a text, its last-layer state in the windows where it is most central, and its span."""
    cut = teacher.tokenizer.encode([text])
    folder = teacher.window - len(teacher.tokenizer.prefix) - len(teacher.tokenizer.suffix)
    count = len(cut.ids)
    starts = [0] if count <= folder else [*range(0, count - folder, folder - folder // 4), count - folder]
    states: list[np.ndarray] = []
    for start in starts:
        ids = [*teacher.tokenizer.prefix, *cut.ids[start : start + folder].tolist(), *teacher.tokenizer.suffix]
        got = teacher.states(torch.tensor([ids]), None, [teacher.depth])[teacher.depth][0]
        states.append(got[len(teacher.tokenizer.prefix) :].double().numpy())
    found = []
    for piece in range(count):
        inside = [(n, s) for n, s in enumerate(starts) if s <= piece < min(s + folder, count)]
        left = {n: piece - s if s else count for n, s in inside}  # where the text begins or ends, nothing is cut off
        right = {n: s + folder - 1 - piece if s + folder < count else count for n, s in inside}
        central = {n: min(left[n], right[n]) for n, _ in inside}
        best = max(central.values())
        near = [states[n][piece - starts[n]] for n in central if central[n] >= best - 1]
        found.append((near, (int(cut.starts[piece]), int(cut.ends[piece]))))
    return found


def kept_paragraphs(
    teacher: Teacher, texts: Sequence[str], vocabulary: Vocabulary, workers: int = 0, **settings: Any
) -> dict[str, np.ndarray]:
    part = StoredContexts(unit="paragraph", states=True, **settings)
    learner: Any = SimpleNamespace(specs=lambda: {"contexts": part})
    statistics = run_pass(make_pass({"it": learner}, teacher, vocabulary), texts, workers, whole=True).statistics_of(
        "it"
    )["contexts"]
    return {name.removeprefix("stored:"): np.array(array) for name, array in statistics.arrays.items()}


def vocabulary_of(split: Sequence[Sequence[str]], without: Sequence[str] = ()) -> Vocabulary:
    words = dict.fromkeys(word for texts in split for text in texts for word, _, _ in found_in(text))
    return Vocabulary([word for word in words if word not in without], lowercase=True)


def by_words(kept: dict[str, np.ndarray]) -> dict[tuple[int, ...], tuple[np.ndarray, np.ndarray]]:
    """Rows of the words of a sentence → its context, the states of its words."""
    ends = np.cumsum(kept["lengths"])
    spans = [slice(end - length, end) for end, length in zip(ends, kept["lengths"], strict=True)]
    made = {
        tuple(kept["words"][span].tolist()): (kept["contexts"][number], kept["states"][span])
        for number, span in enumerate(spans)
    }
    assert len(made) == len(spans), "no two sentences are alike"
    return made


def test_the_sentences_of_the_test_are_those_of_the_splitter() -> None:
    """Or what follows would examine the splitter."""
    assert [split_sentences(paragraph) for paragraph in PARAGRAPHS] == SPLIT


@pytest.mark.parametrize(("window", "layer"), [(128, "last"), (24, "last"), (12, "last"), (128, "1-2")])
def test_a_context_is_the_mean_of_the_words_of_its_sentence_read_in_its_paragraph(window: int, layer: str) -> None:
    teacher = tiny_teacher(KNOWN, window=window)
    without = ["boats", "in", "u.s", "writer"]
    vocabulary = vocabulary_of(SPLIT, without)
    kept = by_words(kept_paragraphs(teacher, PARAGRAPHS, vocabulary, layer=layer))
    checked = 0
    for paragraph, texts in zip(PARAGRAPHS, by_hand(PARAGRAPHS, SPLIT), strict=True):
        if layer == "last":
            pieces = slow_windows(teacher, paragraph)
        else:
            every, spans = slow_states(teacher, paragraph)
            pieces = [([state], span) for state, span in zip(every[1:].mean(0), spans, strict=True)]
        for words in texts:
            context, states = kept.pop(tuple(vocabulary.index.get(word, -1) for word, _, _ in words))
            wanted = []
            for (_, start, end), state in zip(words, states, strict=True):
                own = [near for near, span in pieces if span[0] < end and span[1] > start]
                choices = [np.mean(each, axis=0) for each in itertools.product(*own)]
                closest = min(choices, key=lambda choice: float(np.abs(choice - state).max()))
                assert np.allclose(state, closest, atol=4e-3)
                wanted.append(closest)
                checked += 1
            assert np.allclose(context, np.mean(wanted, axis=0), atol=4e-3)
    assert kept == {}, "there are no other sentences"
    assert checked == sum(len(found_in(paragraph)) for paragraph in PARAGRAPHS), "no word is beyond a window"


def test_a_sentence_in_its_paragraph_is_not_the_sentence_alone(teacher: Teacher) -> None:
    """Or the test above would say nothing of paragraphs."""
    vocabulary = vocabulary_of(SPLIT)
    whole = by_words(kept_paragraphs(teacher, PARAGRAPHS, vocabulary))
    alone = by_words(kept_paragraphs(teacher, [text for texts in SPLIT for text in texts], vocabulary))
    assert whole.keys() == alone.keys()
    differ = [not np.allclose(whole[words][0], alone[words][0], atol=0.05) for words in whole]
    assert sum(differ) == len(differ) - 1, "all but the one that is a paragraph of its own"


@pytest.mark.parametrize("least", [1, 2, 3, 5])
def test_paragraphs_of_fewer_sentences_are_left_out(least: int, teacher: Teacher) -> None:
    vocabulary = vocabulary_of(SPLIT)
    wanted = {
        tuple(vocabulary.index[word] for word, _, _ in words)
        for texts in by_hand(PARAGRAPHS, SPLIT)
        if len(texts) >= least
        for words in texts
    }
    if not wanted:
        with pytest.raises(UsageError, match=r"5 or more sentences.*context=sentence"):
            kept_paragraphs(teacher, PARAGRAPHS, vocabulary, min_sentences=least)
        return
    lacking = set(range(len(vocabulary))) - {row for words in wanted for row in words}
    assert bool(lacking) is (least > 1)
    kept = kept_paragraphs(teacher, PARAGRAPHS, vocabulary, min_sentences=least)
    assert by_words(kept).keys() == wanted | {(row,) for row in lacking}, "words of short ones only are read alone"
    assert len(kept["states"]) == len(kept["words"]) == kept["lengths"].sum()


def test_a_word_without_a_context_is_not_a_short_paragraph(teacher: Teacher) -> None:
    vocabulary = Vocabulary([*vocabulary_of(SPLIT).words, "zebra"], lowercase=True)
    kept = by_words(kept_paragraphs(teacher, PARAGRAPHS, vocabulary, min_sentences=3))
    assert (vocabulary.index["zebra"],) in kept


def test_accumulators_of_paragraphs_do_not_get_each_others_words(teacher: Teacher) -> None:
    vocabulary = Vocabulary([*vocabulary_of(SPLIT).words, "zebra"], lowercase=True)
    learners: dict[str, Any] = {
        str(least): LEARNERS["x2static"](context="paragraph", min_sentences=least) for least in (1, 3)
    }
    together = run_pass(make_pass(learners, teacher, vocabulary), PARAGRAPHS, whole=True)
    for name, learner in learners.items():
        alone = run_pass(make_pass({name: learner}, teacher, vocabulary), PARAGRAPHS, whole=True).statistics_of(name)[
            "contexts"
        ]
        for label, array in alone.arrays.items():
            assert np.array_equal(array, together.statistics_of(name)["contexts"][label]), (name, label)


def test_processes_keep_what_a_thread_keeps(teacher: Teacher) -> None:
    texts, vocabulary = PARAGRAPHS * 8, vocabulary_of(SPLIT)
    one, two = (kept_paragraphs(teacher, texts, vocabulary, workers) for workers in (0, 2))
    assert one.keys() == two.keys()
    for name in one:
        assert np.array_equal(one[name], two[name]), name
    assert len(one["lengths"]) == 8 * sum(map(len, SPLIT))


@pytest.mark.parametrize("longest", [40, 100, 10_000])
def test_a_paragraph_too_long_to_be_read_is_cut_between_sentences(
    longest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sentence_stream, "_MAX_PARAGRAPH", longest)
    text = " ".join(PARAGRAPHS[:3])
    read = SentenceStream(Corpus.from_texts([text]), vocabulary_of(SPLIT), None, 64)
    parts = [part for marked in read.paragraphs() for part in marked.texts]
    assert "".join(parts) == text
    assert [sentence for part in parts for sentence in split_sentences(part)] == split_sentences(text)
    for part in parts:
        assert len(part) <= longest + 1 or len(split_sentences(part)) == 1
    for one, two in itertools.pairwise(parts):  # none is shorter than it need be
        assert len(one) + len(split_sentences(two)[0]) >= longest
    assert (len(parts) > 1) is (longest < 1000)


def test_few_contexts_choose_whole_paragraphs() -> None:
    texts = [" ".join(TEXTS[i % 64 : i % 64 + 4]) for i in range(0, 640, 4)]
    vocabulary = counted(texts)

    def made(contexts: int | None, seed: int) -> list[str]:
        read = SentenceStream(Corpus.from_texts(texts), vocabulary, contexts, 64, seed)
        return [text for marked in read.paragraphs() for text in marked.texts]

    assert made(None, 0) == texts
    few = made(3, 0)
    assert set(few) <= set(texts)
    assert len(few) < len(texts) / 2
    assert set(counted(few).words) == set(vocabulary.words)
    assert made(3, 0) == few != made(3, 1)
