"""The first component against numpy and scikit-learn, word by word; the sample of contexts against a slow one."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_corpus import (
    DOES,
    KIND,
    WHAT,
    WHERE,
    WHO,
    collect_statistics,
    counted,
    make_pass,
    matrix_of,
    sentences,
    slow_states,
    words_of,
)
from tiny_teachers import tiny_teacher, write_tiny_model

from stillvec.cli import main
from stillvec.encoding import BatchBudget, BatchBuilder, TextChunk, encode_batches, run_pass
from stillvec.errors import UsageError
from stillvec.formats import load, read_statistics
from stillvec.learners.first_component import FirstComponent, StateSample, first_components, occurrence_keys
from stillvec.statistics import Statistics, merge
from stillvec.teachers import Teacher
from stillvec.vocabulary import Vocabulary, WordMatcher

TEXTS = [*sentences(96), *sentences(96)[:8], "The farmer loves the farmer near the river.", "A zebra."]


@pytest.fixture(scope="module")
def teacher() -> Teacher:
    return tiny_teacher([*WHO, *DOES[:6], *WHAT[:6], *KIND, *WHERE])


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    return counted(TEXTS, keep=["walrus"])  # which no sentence has: it is read alone


@pytest.fixture(scope="module")
def contexts(teacher: Teacher, vocabulary: Vocabulary) -> dict[str, np.ndarray]:
    """Word → the states of its different contexts, layer after layer (layers, contexts, D)."""
    found: dict[str, list[np.ndarray]] = {word: [] for word in vocabulary}
    for text in [*dict.fromkeys(TEXTS), "walrus"]:
        states, spans = slow_states(teacher, text)
        for word, start, end in words_of(text):
            inside = [n for n, (begin, stop) in enumerate(spans) if begin < end and stop > start]
            found[word].append(states[:, inside].mean(1))
    return {word: np.stack(states, 1) for word, states in found.items()}


def component(states: np.ndarray, *, center: bool) -> np.ndarray:
    """One word's, by a singular value decomposition of its states (contexts, D)."""
    mean = states.mean(0)
    if len(states) == 1:
        return np.asarray(mean / np.linalg.norm(mean))
    first = np.linalg.svd(states - mean if center else states)[2][0]
    return np.asarray(first if first @ mean >= 0 else -first)


def read(part: StateSample, teacher: Teacher, vocabulary: Vocabulary, chunks: Sequence[Sequence[str]]) -> Statistics:
    """What the part keeps of texts that are read in these chunks."""
    learner = FirstComponent(part.layer, part.pieces, part.keep, seed=part.seed)
    encoding_pass = make_pass({"it": learner}, teacher, vocabulary)
    for _ in encoding_pass.run([TextChunk(chunk) for chunk in chunks], BatchBudget(256, 32)):
        pass
    return encoding_pass.statistics_of("it")["sample"]


def same(one: Statistics, other: Statistics) -> None:
    """The same contexts, whose states differ by rounding."""
    for name in ("sample:words", "sample:keys", "sample:size"):
        np.testing.assert_array_equal(one[name], other[name], err_msg=name)
    assert one["sample:states"].dtype == np.float16
    np.testing.assert_allclose(one["sample:states"], other["sample:states"], atol=2e-3)
    np.testing.assert_allclose(one["sample:lengths"], other["sample:lengths"], rtol=1e-4)


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize(("layer", "layers"), [("last", [2]), ("1", [1]), ("0-2", [0, 1, 2])])
def test_it_is_the_first_singular_vector_of_the_different_contexts(
    center: bool,
    layer: str,
    layers: list[int],
    teacher: Teacher,
    vocabulary: Vocabulary,
    contexts: dict[str, np.ndarray],
) -> None:
    matrix = matrix_of(FirstComponent(layer, keep=999, center=center), teacher, vocabulary, TEXTS)
    np.testing.assert_allclose(np.linalg.norm(matrix, axis=1), 1, atol=1e-5)
    passed_over = 0
    for word, row in zip(vocabulary, matrix, strict=True):
        states = contexts[word][layers].mean(0)
        spread = np.linalg.svd(states - center * states.mean(0))[1]
        wanted = component(states, center=center)
        if len(spread) > 1 and spread[1] > 0.97 * spread[0]:
            passed_over += 1
            continue  # two directions are nearly as good: half precision may turn one into the other
        if center and len(states) > 1 and abs(wanted @ states.mean(0)) < 1e-2 * np.linalg.norm(states.mean(0)):
            wanted = wanted * np.sign(wanted @ row)  # across the mean, the sign is rounding
        assert row @ wanted > 0.999, word
    assert passed_over <= 10 * center  # of 70


def test_the_blocks_of_words_agree_with_scikit_learn() -> None:
    decomposition = pytest.importorskip("sklearn.decomposition")
    rng = np.random.default_rng(0)
    counts = np.array([7, 7, 5, 2, 1, 0])
    states = rng.normal(size=(6, 7, 12)) + rng.normal(size=(6, 1, 12))
    states[np.arange(7) >= counts[:, None]] = 0
    found = {
        center: first_components(torch.tensor(states), torch.tensor(counts), center=center).numpy()
        for center in (False, True)
    }
    for row, count in enumerate(counts[:4]):
        real = states[row, :count]
        centred = decomposition.PCA(n_components=1).fit(real).components_[0]
        plain = decomposition.TruncatedSVD(n_components=1, algorithm="arpack").fit(real).components_[0]
        for center, wanted in ((True, centred), (False, plain)):
            assert abs(found[center][row] @ wanted) > 1 - 1e-9
            assert found[center][row] @ real.mean(0) >= 0, "towards the mean"
    for matrix in found.values():
        np.testing.assert_allclose(matrix[4], states[4, 0] / np.linalg.norm(states[4, 0]))
        assert not matrix[5].any()


def test_states_that_are_all_alike_give_their_direction_and_not_rounding() -> None:
    """The input layer of a teacher with rotary places has one state a word."""
    state = np.random.default_rng(0).normal(size=64).astype(np.float32)
    noise = 1 + np.random.default_rng(1).uniform(-3e-4, 3e-4, size=(1, 9, 64)).astype(np.float32)
    found = first_components(torch.from_numpy(state * noise), torch.tensor([9]), center=True)[0].numpy()
    assert found @ state / np.linalg.norm(state) > 0.9999


def test_few_contexts_a_word_are_kept_and_no_more_rows_than_twice_that(
    teacher: Teacher, vocabulary: Vocabulary
) -> None:
    encoding_pass = make_pass({"it": FirstComponent(keep=3)}, teacher, vocabulary)
    (listener,) = encoding_pass.accumulators.values()
    rows = []
    for _ in encoding_pass.run([TextChunk(TEXTS[i : i + 16]) for i in range(0, len(TEXTS), 16)], BatchBudget(128, 16)):
        rows.append(len(listener.states))  # type: ignore[attr-defined]
    kept = encoding_pass.statistics_of("it")["sample"]
    counts = np.maximum(vocabulary.counts, 1)  # "walrus" was read alone
    held = np.bincount(kept["sample:words"], minlength=len(vocabulary))
    assert (held >= 1).all()
    assert (held <= np.minimum(counts, 3)).all()
    assert len(kept["sample:keys"]) <= np.minimum(counts, 3).sum() < counts.sum() / 2
    assert rows == sorted(rows)
    assert rows[-1] <= 2 * len(kept["sample:keys"]) + 128
    assert kept["sample:states"].dtype == np.float16


def test_rows_exist_for_the_words_read_and_not_for_the_whole_vocabulary(teacher: Teacher) -> None:
    vocabulary = Vocabulary([*WHO, *(f"unheard{number}" for number in range(5_000))])
    listener = StateSample(keep=64).make_accumulator(teacher, vocabulary)
    preparation = BatchBuilder.for_teacher(teacher, WordMatcher(vocabulary), BatchBudget(256, 32))
    for _ in run_pass(encode_batches(teacher, preparation(TextChunk(TEXTS[:30])), listener.layers), [listener]):
        pass
    assert len(listener.arrays()["sample:keys"]) == 30
    assert len(listener.states) <= 90  # type: ignore[attr-defined]


@pytest.mark.parametrize("keep", [1, 3, 999])
def test_the_sample_is_that_of_the_smallest_keys(keep: int, teacher: Teacher, vocabulary: Vocabulary) -> None:
    """Found slowly: all keys of all sentences, each read as a batch of its own."""
    keys: dict[int, set[int]] = {row: set() for row in range(len(vocabulary))}
    for text in [*TEXTS, "walrus"]:
        preparation = BatchBuilder.for_teacher(teacher, WordMatcher(vocabulary), BatchBudget(256, 32))
        (batch,) = preparation(TextChunk([text]))
        for row, key in zip(batch.word_id.tolist(), occurrence_keys(batch, 5).tolist(), strict=True):
            keys[row].add(key)
    wanted = [(row, key) for row in keys for key in sorted(keys[row])[:keep]]
    kept = read(StateSample(keep=keep, seed=5), teacher, vocabulary, [TEXTS])
    assert [*zip(kept["sample:words"].tolist(), kept["sample:keys"].tolist(), strict=True)] == wanted


def test_the_order_of_reading_and_the_batches_do_not_matter(teacher: Teacher, vocabulary: Vocabulary) -> None:
    shuffled = random.Random(1).sample(TEXTS, len(TEXTS))
    whole = read(StateSample(keep=3), teacher, vocabulary, [TEXTS])
    same(read(StateSample(keep=3), teacher, vocabulary, [shuffled[i : i + 7] for i in range(0, 106, 7)]), whole)


@pytest.mark.parametrize("keep", [1, 3, 999])
def test_parts_with_vocabularies_of_their_own_merge_into_the_whole(
    keep: int, teacher: Teacher, vocabulary: Vocabulary
) -> None:
    whole = read(StateSample(keep=keep), teacher, vocabulary, [TEXTS])
    parts = []
    for texts in (TEXTS[:20], TEXTS[20:64], TEXTS[64:]):
        own = counted(texts, keep=["walrus", "zebra"])
        parts.append(read(StateSample(keep=keep), teacher, own, [texts]))
    assert parts[0].vocabulary.words[:20] != parts[1].vocabulary.words[:20], "words have other rows"
    for a, b, c in ((0, 1, 2), (2, 0, 1)):
        merged = merge(merge(parts[a], parts[b]), parts[c])
        assert merged.vocabulary == vocabulary
        same(merged, whole)
        learner = FirstComponent(keep=keep)
        one, other = (learner.finish({"sample": kept}).vectors.matrix for kept in (merged, whole))
        assert ((one * other).sum(1) > 0.9999).all()


def test_another_seed_takes_other_contexts(teacher: Teacher, vocabulary: Vocabulary) -> None:
    one, other = (
        read(StateSample(keep=3, seed=seed), teacher, vocabulary, [TEXTS])["sample:lengths"] for seed in (0, 1)
    )
    assert len(one) == len(other)
    assert not np.allclose(np.sort(one), np.sort(other))


def test_keys_are_spread_evenly_over_a_words_contexts(teacher: Teacher) -> None:
    """Sentences that differ in one piece, and places in one sentence, have keys that do not know of each other."""
    texts = [f"the {who} {does} the {what} the" for who in WHO for does in DOES for what in WHAT]
    preparation = BatchBuilder.for_teacher(teacher, WordMatcher(Vocabulary(["the"])), BatchBudget(1 << 20, 4_096))
    drawn = [occurrence_keys(batch, 0)[batch.word_id >= 0] for batch in preparation(TextChunk(texts))]
    keys = np.concatenate(drawn) / 2.0**63
    assert len(np.unique(keys)) == 3 * 12**3
    share = np.bincount((keys * 16).astype(int), minlength=16) / len(keys)
    assert np.abs(share - 1 / 16).max() < 0.015  # four standard deviations
    for batch_keys in drawn:
        by_place = batch_keys.reshape(-1, 3) / 2.0**63
        if len(by_place) > 200:
            assert np.abs(np.corrcoef(by_place.T) - np.eye(3)).max() < 0.25


def test_the_same_pieces_in_another_order_are_another_context(teacher: Teacher) -> None:
    finder = WordMatcher(Vocabulary(["the"]))
    batches = BatchBuilder.for_teacher(teacher, finder, BatchBudget(256, 32))(
        TextChunk(["the farmer king", "the king farmer"])
    )
    assert len({key for batch in batches for key in occurrence_keys(batch, 0)[batch.word_id == 0].tolist()}) == 2


def test_both_kinds_of_component_share_one_accumulator(teacher: Teacher, vocabulary: Vocabulary) -> None:
    encoding_pass = make_pass({"plain": FirstComponent(), "centred": FirstComponent(center=True)}, teacher, vocabulary)
    assert len(encoding_pass.accumulators) == 1


def test_states_beyond_half_precision_are_kept(teacher: Teacher, vocabulary: Vocabulary) -> None:
    """Some decoders have numbers of a hundred thousand."""
    kept = collect_statistics({"it": FirstComponent(keep=4)}, teacher, vocabulary, TEXTS)["it"]["sample"]
    large = Statistics(vocabulary, {**kept.arrays, "sample:lengths": kept["sample:lengths"] * 1e6})
    one, other = (FirstComponent().finish({"sample": each}).vectors.matrix for each in (kept, large))
    np.testing.assert_allclose(one, other, atol=1e-4)


def test_folders_merge_and_are_added_to(tmp_path: Path) -> None:
    """Through files: half precision and keys of 63 bits come back as they were."""
    write_tiny_model(tmp_path / "teacher", "bert")

    def distil(name: str, *more: str) -> str:
        words = ["distill", str(tmp_path / f"{name}.txt"), "--teacher", str(tmp_path / "teacher"), "--quiet"]
        words += ["--method", "first_component:keep=3", "--min-count", "1", "--contexts", "all", *more]
        assert main([*words, "--out", str(tmp_path / (name + str(len(more))))]) == 0
        return str(tmp_path / (name + str(len(more))))

    for name, texts in {"whole": TEXTS, "one": TEXTS[:50], "two": TEXTS[50:]}.items():
        (tmp_path / f"{name}.txt").write_text("\n".join(texts), "utf-8")
    whole, one, two = distil("whole"), distil("one"), distil("two")
    assert main(["merge", two, one, "--out", str(tmp_path / "merged")]) == 0
    wanted = load(whole)
    for folder in (str(tmp_path / "merged"), distil("two", "--add-to", one)):
        got = load(folder)
        assert got.vocabulary == wanted.vocabulary
        assert ((got.matrix * wanted.matrix).sum(1) > 0.9999).all()
        kept = read_statistics(folder)["sample/sample:keys"]
        np.testing.assert_array_equal(kept, read_statistics(whole)["sample/sample:keys"])


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU here")
def test_a_gpu_keeps_the_contexts_of_a_cpu(teacher: Teacher, vocabulary: Vocabulary) -> None:
    wanted = read(StateSample(keep=3), teacher, vocabulary, [TEXTS])
    own = tiny_teacher([*WHO, *DOES[:6], *WHAT[:6], *KIND, *WHERE])
    there = dataclasses.replace(own, model=own.model.to("cuda"), device=torch.device("cuda"))
    same(read(StateSample(keep=3), there, vocabulary, [TEXTS[:40], TEXTS[40:]]), wanted)


@pytest.mark.parametrize("keep", [0, -1])
def test_no_contexts_at_all_are_refused(keep: int, teacher: Teacher, vocabulary: Vocabulary) -> None:
    with pytest.raises(UsageError, match="'keep'"):
        make_pass({"it": FirstComponent(keep=keep)}, teacher, vocabulary)
