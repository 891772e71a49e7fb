"""What every method owes, the day it arrives: rows, order, bytes, settings, sums that merge."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_corpus import (
    DOES,
    KIND,
    WHAT,
    WHERE,
    WHO,
    collect_statistics,
    counted,
    likeness,
    make_pass,
    matrix_of,
    sentences,
)
from tiny_teachers import tiny_teacher

from stillvec.encoding import BatchBudget, TextChunk
from stillvec.errors import LexiconError, StillvecError, UsageError
from stillvec.learners import LEARNERS, EncodingPass, Learner
from stillvec.learners.accumulators import TextSource
from stillvec.learners.trained_learner import TrainedLearner
from stillvec.registry import settings_from
from stillvec.statistics import merge
from stillvec.teachers import Teacher
from stillvec.teachers.layer_choice import parse_layers
from stillvec.vectors import WordVectors
from stillvec.vocabulary import Vocabulary

TEXTS = sentences()
HALVES = TEXTS[:48], TEXTS[48:]
ABSENT = ["zebra", "new york", "x-ray"]  # no sentence has them


@pytest.fixture(scope="module")
def teacher() -> Teacher:
    return tiny_teacher([*WHO, *DOES[:6], *WHAT[:6], *KIND, *WHERE])


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    return counted(TEXTS, keep=ABSENT)


@pytest.fixture(scope="module")
def dictionary(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("dictionary") / "words.tsv"
    senses = [(word, f"a person who {does} {what}") for word, does, what in zip(WHO, DOES, WHAT, strict=True)]
    senses += [
        ("farmer", "the owner of a small village"),
        ("zebra", "a horse with stripes"),
        ("moon", "not known here"),
    ]
    path.write_text("".join(f"{word}\t{gloss}\n" for word, gloss in senses), "utf-8")
    return str(path)


def made(name: str, dictionary: str, **settings: Any) -> Learner:
    """A method, which gets the tiny dictionary where it takes one."""
    kind = LEARNERS[name]
    if name == "dictionary":
        settings["dictionary"] = dictionary
    return settings_from(kind, settings)


@pytest.fixture(params=[*LEARNERS])
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_every_method_gives_one_finite_row_a_word_in_the_order_of_the_vocabulary(
    name: str, teacher: Teacher, vocabulary: Vocabulary, dictionary: str
) -> None:
    learner = made(name, dictionary)
    vectors = learner.finish(collect_statistics({"it": learner}, teacher, vocabulary, TEXTS)["it"]).vectors
    assert isinstance(vectors, WordVectors)
    assert vectors.words == vocabulary.words
    assert vectors.matrix.shape[0] == len(vocabulary)
    assert vectors.matrix.dtype == np.float32
    assert np.isfinite(vectors.matrix).all()


def test_no_word_gets_a_row_of_zeros_even_if_the_corpus_lacks_it(
    name: str, teacher: Teacher, vocabulary: Vocabulary, dictionary: str
) -> None:
    matrix = matrix_of(made(name, dictionary), teacher, vocabulary, TEXTS)
    lengths = np.linalg.norm(matrix, axis=1)
    assert all(word in vocabulary for word in ABSENT)
    assert [word for word, length in zip(vocabulary, lengths, strict=True) if length < 1e-5] == []


def test_words_have_rows_of_their_own(name: str, teacher: Teacher, vocabulary: Vocabulary, dictionary: str) -> None:
    if name == "dictionary":
        pytest.skip("words without a gloss share one row, as they must")
    matrix = matrix_of(made(name, dictionary), teacher, vocabulary, TEXTS)
    assert len(np.unique(matrix, axis=0)) == len(vocabulary)


def test_the_same_run_gives_the_same_bytes(
    name: str, teacher: Teacher, vocabulary: Vocabulary, dictionary: str
) -> None:
    first = matrix_of(made(name, dictionary), teacher, vocabulary, TEXTS)
    again = matrix_of(
        made(name, dictionary), tiny_teacher([*WHO, *DOES[:6], *WHAT[:6], *KIND, *WHERE]), vocabulary, TEXTS
    )
    assert first.tobytes() == again.tobytes()


def test_every_method_continues_from_the_middle_of_a_pass_to_the_same_bytes(
    name: str, teacher: Teacher, vocabulary: Vocabulary, dictionary: str
) -> None:
    learner = made(name, dictionary)
    texts = [*TEXTS, *TEXTS[:20]]  # some sentences twice

    def read(encoding_pass: EncodingPass) -> list[dict[str, np.ndarray]]:
        chunks = [TextChunk(texts[at : at + 32]) for at in range(0, len(texts), 32)]
        paragraphs = [TextChunk([" ".join(texts[at : at + 4]) for at in range(0, len(texts), 4)], None, True, True)]
        steps = encoding_pass.run(chunks, BatchBudget(128, 32), paragraphs)
        return [{key: np.array(array) for key, array in encoding_pass.state.to_arrays().items()} for _ in steps]

    whole = make_pass({"it": learner}, teacher, vocabulary)
    assert whole.state.can_checkpoint, "its listener lacks a memory"
    moments = read(whole)
    wanted = {part: dict(kept.arrays) for part, kept in whole.statistics_of("it").items()}
    for moment in {0, len(moments) // 3, len(moments) // 2, len(moments) - 2, len(moments) - 1}:
        encoding_pass = make_pass({"it": learner}, teacher, vocabulary)
        encoding_pass.state.restore(moments[moment])
        read(encoding_pass)
        for part, kept in encoding_pass.statistics_of("it").items():
            assert kept.arrays.keys() == wanted[part].keys()
            for label, array in kept.arrays.items():
                assert array.tobytes() == wanted[part][label].tobytes(), (moment, label)


def test_settings_are_frozen_and_come_back_from_json(name: str, dictionary: str) -> None:
    kind: Any = LEARNERS[name]
    learner: Any = made(name, dictionary)
    assert dataclasses.is_dataclass(kind)
    assert settings_from(kind, dataclasses.asdict(learner)) == learner
    assert settings_from(kind, json.loads(json.dumps(dataclasses.asdict(learner)))) == learner
    for field in dataclasses.fields(kind):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(learner, field.name, None)


def test_an_unknown_setting_is_refused_by_name(name: str) -> None:
    with pytest.raises(UsageError, match="colour"):
        settings_from(LEARNERS[name], {"colour": "red"})


def test_a_setting_that_is_nearly_right_is_named() -> None:
    with pytest.raises(UsageError, match="did you mean 'layer'"):
        settings_from(LEARNERS["aggregate"], {"layre": "3"})


def test_statistics_are_not_changed_by_finishing(
    name: str, teacher: Teacher, vocabulary: Vocabulary, dictionary: str
) -> None:
    learner = made(name, dictionary)
    collected = collect_statistics({"it": learner}, teacher, vocabulary, TEXTS)["it"]
    before = {(part, label): array.copy() for part, kept in collected.items() for label, array in kept.arrays.items()}
    first = np.array(learner.finish(collected).vectors.matrix)
    for (part, label), array in before.items():
        assert np.array_equal(collected[part][label], array), (part, label)
    assert np.array_equal(learner.finish(collected).vectors.matrix, first)


def test_two_halves_merged_equal_the_whole_in_any_order(name: str, teacher: Teacher, dictionary: str) -> None:
    vocabulary = counted(TEXTS)
    for half in HALVES:
        assert set(counted(half)) == set(vocabulary), "the halves have all words"
    learner = made(name, dictionary)
    whole = collect_statistics({"it": learner}, teacher, vocabulary, TEXTS)["it"]
    one, two = (collect_statistics({"it": learner}, teacher, vocabulary, half)["it"] for half in HALVES)
    if isinstance(learner, TrainedLearner):
        with pytest.raises(UsageError, match="train"):
            merge(one["contexts"], two["contexts"], vocabulary)
        return
    wanted = likeness(learner.finish(whole).vectors.matrix)
    scale = np.abs(wanted).max()
    for a, b in ((one, two), (two, one)):
        merged = learner.finish({part: merge(kept, b[part], vocabulary) for part, kept in a.items()})
        assert merged.vectors.words == vocabulary.words
        assert np.allclose(likeness(merged.vectors.matrix), wanted, rtol=1e-3, atol=1e-4 * scale)


def test_a_half_is_not_the_whole(name: str, teacher: Teacher, dictionary: str) -> None:
    """Or the test above would say nothing."""
    vocabulary, learner = counted(TEXTS), made(name, dictionary)
    whole, half = (likeness(matrix_of(learner, teacher, vocabulary, texts)) for texts in (TEXTS, HALVES[0]))
    listens = any(spec.source is not TextSource.OWN_TEXTS for spec in learner.specs().values())
    assert np.allclose(whole, half, rtol=1e-3, atol=1e-4 * np.abs(whole).max()) is not listens


def test_a_word_that_one_half_lacks_is_as_in_the_whole_after_merging(
    name: str, teacher: Teacher, dictionary: str
) -> None:
    vocabulary, learner = counted(TEXTS, keep=["zebra"]), made(name, dictionary)
    if isinstance(learner, TrainedLearner):
        pytest.skip("what trains does not merge")
    texts = [*TEXTS, "The old king loves the zebra today."]
    whole = collect_statistics({"it": learner}, teacher, vocabulary, texts)["it"]
    one, two = (
        collect_statistics({"it": learner}, teacher, vocabulary, half)["it"] for half in (texts[:48], texts[48:])
    )
    wanted = likeness(learner.finish(whole).vectors.matrix)
    for a, b in ((one, two), (two, one)):
        merged = learner.finish({part: merge(kept, b[part], vocabulary) for part, kept in a.items()})
        got = likeness(merged.vectors.matrix)
        assert np.allclose(got, wanted, rtol=1e-3, atol=1e-4 * np.abs(wanted).max())


def test_several_methods_get_the_same_statistics_in_one_pass_as_alone(
    teacher: Teacher, vocabulary: Vocabulary, dictionary: str
) -> None:
    learners = {name: made(name, dictionary) for name in LEARNERS}
    together = collect_statistics(learners, teacher, vocabulary, TEXTS)
    for name, learner in learners.items():
        alone = collect_statistics({"it": learner}, teacher, vocabulary, TEXTS)["it"]
        assert alone.keys() == together[name].keys()
        for part, kept in alone.items():
            for label, array in kept.arrays.items():
                assert np.array_equal(array, together[name][part][label]), (name, part, label)


def test_equal_specs_of_several_methods_share_one_accumulator(teacher: Teacher, vocabulary: Vocabulary) -> None:
    names = {"auto": LEARNERS["auto"](), "additive": LEARNERS["additive"](), "again": LEARNERS["additive"](ridge=1.0)}
    encoding_pass = make_pass(names, teacher, vocabulary)
    first = {name: encoding_pass.statistics_of(name)["sentences"]["sum:products"] for name in names}
    assert np.shares_memory(first["auto"], first["additive"])
    assert np.shares_memory(first["additive"], first["again"])


@pytest.mark.parametrize(
    ("layer", "wanted"),
    [("last", (6,)), ("0", (0,)), ("3", (3,)), ("-1", (6,)), ("-2", (5,)), ("2-4", (2, 3, 4)), ("all", tuple(range(7))),
     ("last3", (4, 5, 6)), ("last9", tuple(range(7))), ("6-6", (6,)), ("0+last2", (0, 5, 6))],
)  # fmt: skip
def test_layers_are_written_in_several_ways(layer: str, wanted: tuple[int, ...]) -> None:
    assert parse_layers(layer, 6) == wanted


@pytest.mark.parametrize("layer", ["7", "-8", "4-2", "3-7", "first", "", "1-", "2-x", "1.5", "last-2", "last0"])
def test_a_layer_that_does_not_exist_is_refused(layer: str) -> None:
    with pytest.raises(UsageError):
        parse_layers(layer, 6)


def test_poolings_that_do_not_exist_are_refused_by_name(teacher: Teacher, vocabulary: Vocabulary) -> None:
    for settings in ({"pieces": "sum"}, {"contexts": "median"}):
        with pytest.raises(UsageError, match=r"sum|median"):
            matrix_of(LEARNERS["aggregate"](**settings), teacher, vocabulary, TEXTS[:4])


@pytest.mark.parametrize("template", ["no place", "{} and {}"])
def test_a_template_has_one_place_for_the_word(template: str) -> None:
    with pytest.raises(UsageError, match="template"):
        LEARNERS["decontextualized"](templates=(template,)).specs()


def test_a_dictionary_of_other_words_is_refused(teacher: Teacher, vocabulary: Vocabulary, tmp_path: Path) -> None:
    path = tmp_path / "other.tsv"
    path.write_text("mond\tder trabant der erde\n", "utf-8")
    with pytest.raises(LexiconError, match="defines none"):
        matrix_of(LEARNERS["dictionary"](dictionary=str(path)), teacher, vocabulary, TEXTS[:4])


def test_a_missing_dictionary_is_reported_before_the_corpus_is_read(
    teacher: Teacher, vocabulary: Vocabulary, tmp_path: Path
) -> None:
    for learner in (
        LEARNERS["dictionary"](dictionary=str(tmp_path / "none.tsv")),
        LEARNERS["auto"](dictionary=str(tmp_path / "none.tsv")),
    ):
        with pytest.raises(StillvecError, match=r"none\.tsv"):
            make_pass({"it": learner}, teacher, vocabulary)


@pytest.mark.parametrize("words", [["house"], ["house", "sea"], ["house", "sea", "dog"]])
def test_a_list_of_few_words_is_enough(name: str, words: list[str], teacher: Teacher, tmp_path: Path) -> None:
    """Taking out the mean of one word, or the first direction of two, would leave nothing but rounding."""
    path = tmp_path / "dictionary.tsv"
    path.write_text("house\tpeople live in it\n", "utf-8")
    matrix = matrix_of(made(name, str(path)), teacher, Vocabulary(words), [])
    assert np.isfinite(matrix).all()
    apart = name in ("whitened_context", "whitened_window", "additive") or isinstance(
        made(name, str(path)), TrainedLearner
    )
    if not apart:  # they tell sentences apart, and there is none
        assert (np.linalg.norm(matrix, axis=1) > 0.1).all()


def test_two_words_without_a_corpus_are_not_mere_rounding(teacher: Teacher) -> None:
    """Read in another order, sums round differently; what is said of the words is the same."""
    said = [
        likeness(matrix_of(LEARNERS["auto"](), teacher, Vocabulary(words), []))
        for words in (["house", "sea"], ["sea", "house"])
    ]
    assert np.allclose(said[0], said[1], atol=1e-4)
    assert -0.99 < said[0][0, 1] < 0.999
