"""Sums that merge: two halves are the whole, in any order, on any vocabularies; what does not fit is refused."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stillvec.errors import UsageError
from stillvec.statistics import Statistics, merge
from stillvec.vocabulary import Vocabulary

DIM = 3
SIZE = 2
LETTERS = "abcdefgh"

# an observation: a word and its state; the statistics of a list of observations are computed with plain loops
observations = st.lists(
    st.tuples(st.sampled_from(LETTERS), st.lists(st.integers(-9, 9), min_size=DIM, max_size=DIM)), max_size=20
)


def _statistics(seen: list[tuple[str, list[int]]], also: str = "") -> Statistics:
    counts = dict.fromkeys(also, 0) | {word: 0 for word, _ in seen}
    for word, _ in seen:
        counts[word] += 1
    ordered = sorted(counts, key=lambda word: (-counts[word], word))
    vocabulary = Vocabulary(ordered, [counts[word] for word in ordered])
    words = len(vocabulary)
    arrays = {
        "sum:state": np.zeros((words, DIM), np.float32),
        "sum:contexts": np.zeros(words, np.int64),
        "max:state": np.full((words, DIM), -np.inf, np.float32),
        "min:state": np.full((words, DIM), np.inf, np.float32),
        "max:place": np.full(words, np.iinfo(np.int64).min),
        "min:place": np.full(words, np.iinfo(np.int64).max),
        "total:gram": np.zeros((DIM, DIM)),
        "total:count": np.array([float(len(seen))]),
        "ragged:words": np.array([vocabulary.index[word] for word, _ in seen], np.int32),
        "ragged:shares": np.array([state[0] for _, state in seen], np.float32),
    }
    for word, state in seen:
        row = vocabulary.index[word]
        arrays["sum:state"][row] += state
        arrays["sum:contexts"][row] += 1
        arrays["max:state"][row] = np.maximum(arrays["max:state"][row], state)
        arrays["min:state"][row] = np.minimum(arrays["min:state"][row], state)
        arrays["max:place"][row] = max(arrays["max:place"][row], state[0])
        arrays["min:place"][row] = min(arrays["min:place"][row], state[0])
        arrays["total:gram"] += np.outer(state, state)
    return Statistics(vocabulary, arrays | _sample(seen, vocabulary))


def _sample(seen: list[tuple[str, list[int]]], vocabulary: Vocabulary) -> dict[str, np.ndarray]:
    """Of each word the two different states with the smallest keys, ordered by word and key."""
    chosen: list[tuple[int, int, tuple[int, ...]]] = []
    for row, word in enumerate(vocabulary):
        states = {tuple(state) for seen_word, state in seen if seen_word == word}
        chosen += sorted((row, _key(state), state) for state in states)[:SIZE]
    return {
        "sample:words": np.array([row for row, _, _ in chosen], np.int32),
        "sample:keys": np.array([key for _, key, _ in chosen], np.int64),
        "sample:states": np.array([state for _, _, state in chosen], np.float16).reshape(-1, DIM),
        "sample:size": np.array([SIZE]),
    }


def _key(state: tuple[int, ...]) -> int:
    return sum((number + 9) * 19**place for place, number in enumerate(state)) * 7919 % 6863  # each state its own


def _assert_equal(one: Statistics, other: Statistics, *, bags_in_order: bool = True) -> None:
    assert one.vocabulary == other.vocabulary
    assert one.arrays.keys() == other.arrays.keys()
    for name in one.arrays:
        assert one[name].dtype == other[name].dtype
        if name.startswith("ragged:") and not bags_in_order:
            continue
        np.testing.assert_array_equal(one[name], other[name], err_msg=name)
    bags = [sorted(zip(s["ragged:words"].tolist(), s["ragged:shares"].tolist(), strict=True)) for s in (one, other)]
    assert bags[0] == bags[1]


@settings(deadline=None)
@given(observations, observations, st.text(LETTERS, max_size=3))
def test_two_halves_merged_are_the_whole(
    first: list[tuple[str, list[int]]], second: list[tuple[str, list[int]]], also: str
) -> None:
    whole = _statistics([*first, *second], also)
    _assert_equal(merge(_statistics(first, also), _statistics(second)), whole)


@settings(deadline=None)
@given(observations, observations)
def test_the_order_of_merging_does_not_matter(
    first: list[tuple[str, list[int]]], second: list[tuple[str, list[int]]]
) -> None:
    one, other = _statistics(first), _statistics(second)
    _assert_equal(merge(one, other), merge(other, one), bags_in_order=False)


@settings(deadline=None)
@given(observations, observations, observations)
def test_three_parts_merge_in_any_grouping(
    a: list[tuple[str, list[int]]], b: list[tuple[str, list[int]]], c: list[tuple[str, list[int]]]
) -> None:
    one, two, three = map(_statistics, (a, b, c))
    _assert_equal(merge(merge(one, two), three), merge(one, merge(two, three)))


def test_neither_part_is_changed_by_merging() -> None:
    one, other = _statistics([("a", [1, 2, 3])]), _statistics([("b", [4, 5, 6])])
    before = [{name: array.copy() for name, array in part.arrays.items()} for part in (one, other)]
    merge(one, other)
    for part, arrays in zip((one, other), before, strict=True):
        for name, array in arrays.items():
            np.testing.assert_array_equal(part[name], array)


def test_a_vocabulary_that_holds_both_can_be_given() -> None:
    vocabulary = Vocabulary(["c", "b", "a"], [9, 5, 1])
    merged = merge(_statistics([("a", [1, 2, 3])]), _statistics([("b", [4, 5, 6])]), vocabulary)
    assert merged.vocabulary is vocabulary
    assert merged["sum:state"].tolist() == [[0, 0, 0], [4, 5, 6], [1, 2, 3]]
    assert merged["ragged:words"].tolist() == [2, 1]


def test_moving_to_another_vocabulary_and_back_changes_nothing() -> None:
    kept = _statistics([("a", [1, 2, 3]), ("b", [4, 5, 6]), ("b", [0, 0, 1])])
    wider = Vocabulary(["z", "a", "y", "b"])
    _assert_equal(kept.on(wider).on(kept.vocabulary), kept)


def test_the_words_of_a_bag_that_a_vocabulary_lacks_are_refused() -> None:
    kept = _statistics([("a", [1, 2, 3]), ("b", [4, 5, 6])])
    with pytest.raises(UsageError, match="'b'"):
        kept.on(Vocabulary(["a", "c"]))


def test_the_words_of_a_sample_that_a_vocabulary_lacks_are_dropped() -> None:
    kept = _statistics([("a", [1, 2, 3]), ("b", [4, 5, 6]), ("b", [0, 0, 1])])
    samples = {name: array for name, array in kept.arrays.items() if name.startswith("sample:")}
    moved = Statistics(kept.vocabulary, samples).on(Vocabulary(["z", "a"]))
    assert moved["sample:words"].tolist() == [1]
    assert moved["sample:states"].tolist() == [[1, 2, 3]]
    assert moved["sample:size"].tolist() == [SIZE]


def test_what_was_read_alone_gives_way_in_a_sample_too() -> None:
    """And only where the other side has contexts: "b" was read alone on both."""
    words = Vocabulary(["a", "b"])

    def part(states: list[list[float]], read: list[int], alone: list[int]) -> Statistics:
        sample = {
            "sample:words": np.array([0, 1], np.int32),
            "sample:keys": np.array([5, 6]),
            "sample:states": np.array(states, np.float16),
            "sample:size": np.array([SIZE]),
        }
        return Statistics(words, sample | {"sum:read": np.array(read), "sum:alone": np.array(alone)})

    met, lacking = part([[1], [2]], [1, 0], [0, 1]), part([[3], [2]], [0, 0], [1, 1])
    for one, other in ((met, lacking), (lacking, met)):
        merged = merge(one, other)
        assert merged["sample:words"].tolist() == [0, 1]
        assert merged["sample:states"].tolist() == [[1], [2]]


def test_samples_of_two_sizes_merge_into_the_smaller() -> None:
    seen = [("a", [number, 0, 0]) for number in range(5)]
    small, large = _statistics(seen[:3]), _statistics(seen)
    every = {"sample:words": [0] * 5, "sample:keys": [_key(tuple(state)) for _, state in seen]}
    every |= {"sample:states": [state for _, state in seen], "sample:size": [9]}
    arrays = {name: np.array(values, large[name].dtype) for name, values in every.items()}
    merged = merge(small, Statistics(large.vocabulary, {**large.arrays, **arrays}), large.vocabulary)
    for name in every:
        np.testing.assert_array_equal(merged[name], large[name])


def _changed(**arrays: object) -> Mapping[str, np.ndarray]:
    plain = {"sum:state": np.zeros((1, DIM)), "total:gram": np.zeros((DIM, DIM)), "ragged:rows": np.zeros((2, DIM))}
    plain |= {"sample:words": np.zeros(1, np.int32), "sample:keys": np.zeros(1, np.int64)}
    plain |= {"sample:states": np.zeros((1, DIM)), "sample:size": np.array([SIZE])}
    return plain | {name.replace("_", ":"): np.asarray(array) for name, array in arrays.items()}


OTHERS = {
    "another key": (_changed(sum_other=[0.0]), "sum:other"),
    "rows of another width": (_changed(sum_state=np.zeros((1, 5))), "sum:state"),
    "a total of another shape": (_changed(total_gram=np.zeros((5, DIM))), "total:gram"),
    "a total that would stretch": (_changed(total_gram=np.zeros((1, DIM))), "total:gram"),
    "a sample of another width": (_changed(sample_states=np.zeros((1, 5))), "sample:states"),
    "ragged rows of another width": (_changed(ragged_rows=np.zeros((2, 5))), "ragged:rows"),
}


@pytest.mark.parametrize("case", OTHERS)
def test_what_does_not_fit_is_refused(case: str) -> None:
    arrays, name = OTHERS[case]
    words = Vocabulary(["a"])
    for one, other in ((_changed(), arrays), (arrays, _changed())):
        with pytest.raises(UsageError, match=name) as caught:
            merge(Statistics(words, one), Statistics(words, other))
        assert caught.value.code == "conflict"
