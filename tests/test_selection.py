"""Which sentences the teacher reads: every word gets its contexts, spread over the corpus, from bounded memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stillvec import distill
from stillvec.corpus import Corpus
from stillvec.corpus.selection import ContextSelector
from stillvec.vocabulary import WordCounter, WordMatcher
from stillvec.vocabulary.latin_matcher import LatinWordMatcher

Sentences = Sequence[Sequence[int]]  # the rows of each sentence's words, -1 unknown


def _counts(sentences: Sentences, words: int) -> np.ndarray:
    flat = np.array([row for sentence in sentences for row in sentence if row >= 0], np.int64)
    return np.bincount(flat, minlength=words)


def _choose(selector: ContextSelector, sentences: Sentences, chunk: int) -> np.ndarray:
    chosen = []
    for begin in range(0, len(sentences), chunk):
        part = sentences[begin : begin + chunk]
        rows = np.array([row for sentence in part for row in sentence], np.int32)
        text = np.repeat(np.arange(len(part), dtype=np.int32), [len(sentence) for sentence in part])
        chosen.append(selector.choose(rows, text, len(part)))
    return np.concatenate(chosen) if chosen else np.zeros(0, bool)


def _zipf(sentences: int, words: int, seed: int = 0) -> list[list[int]]:
    random = np.random.default_rng(seed)
    share = 1 / np.arange(1, words + 1)
    draws = random.choice(words + 50, (sentences, 12), p=np.r_[share, np.full(50, 0.002)] / (share.sum() + 0.1))
    return np.where(draws < words, draws, -1).tolist()


def _taken(sentences: Sentences, chosen: np.ndarray, words: int) -> np.ndarray:
    return _counts([sentence for sentence, take in zip(sentences, chosen, strict=True) if take], words)


WORDS = 6
some_sentences = st.lists(st.lists(st.integers(-1, WORDS - 1), max_size=8), max_size=40)


@settings(deadline=None, max_examples=150)
@given(some_sentences, st.integers(1, 12), st.integers(1, 50), st.integers(0, 5))
def test_every_word_gets_as_many_contexts_as_requested_or_as_exist(
    sentences: list[list[int]], contexts: int, chunk: int, seed: int
) -> None:
    counts = _counts(sentences, WORDS)
    selector = ContextSelector(counts, contexts, seed=seed)
    taken = _taken(sentences, _choose(selector, sentences, chunk), WORDS)
    assert (taken >= np.minimum(counts, contexts)).all()
    assert (selector.taken == taken).all()


@settings(deadline=None, max_examples=100)
@given(some_sentences, st.integers(1, 50), st.integers(0, 5))
def test_with_more_contexts_than_there_are_every_sentence_with_a_known_word_is_read(
    sentences: list[list[int]], chunk: int, seed: int
) -> None:
    selector = ContextSelector(_counts(sentences, WORDS), 10_000, seed=seed)
    expected = [any(row >= 0 for row in sentence) for sentence in sentences]
    assert _choose(selector, sentences, chunk).tolist() == expected


@settings(deadline=None, max_examples=100)
@given(some_sentences, st.integers(1, 5), st.integers(1, 50))
def test_a_sentence_without_known_words_is_never_read(sentences: list[list[int]], contexts: int, chunk: int) -> None:
    chosen = _choose(ContextSelector(_counts(sentences, WORDS), contexts), sentences, chunk)
    for sentence, take in zip(sentences, chosen, strict=True):
        assert any(row >= 0 for row in sentence) or not take


@pytest.mark.parametrize("chunk", [200, 1000, 5000])
def test_the_contexts_of_a_frequent_word_come_from_all_parts_of_the_stream(chunk: int) -> None:
    sentences = [[0, 1 + number % 40] for number in range(20_000)]
    counts = _counts(sentences, 41)
    chosen = _choose(ContextSelector(counts, 100), sentences, chunk)
    for word in (0, 1, 40):
        places = np.array([n for n, sentence in enumerate(sentences) if word in sentence and chosen[n]])
        share = np.bincount(places // (len(sentences) // 4), minlength=4) / len(places)
        assert share.min() > 0.15


def test_few_sentences_serve_all_words() -> None:
    sentences = _zipf(20_000, 500)
    counts = _counts(sentences, 500)
    chosen = _choose(ContextSelector(counts, 20), sentences, 4_096)
    taken = _taken(sentences, chosen, 500)
    assert (taken >= np.minimum(counts, 20)).all()
    assert chosen.mean() < 0.12  # 20 x 500 contexts at best are 20 x 500 / 12 sentences: 4 %
    assert np.median(taken[250:]) < 60


def test_the_same_seed_chooses_the_same_sentences_and_another_seed_others() -> None:
    sentences = _zipf(3_000, 200)
    counts = _counts(sentences, 200)
    one, again, other = (_choose(ContextSelector(counts, 10, seed=seed), sentences, 500) for seed in (1, 1, 2))
    assert (one == again).all()
    assert (one != other).any()


def test_how_the_stream_is_cut_changes_how_much_is_read_only_a_little() -> None:
    sentences = _zipf(20_000, 2_000)
    counts = _counts(sentences, 2_000)
    read = [int(_choose(ContextSelector(counts, 20), sentences, chunk).sum()) for chunk in (1_000, 4_000, 20_000)]
    assert max(read) < 1.2 * min(read)


def test_what_is_kept_does_not_grow_with_the_stream() -> None:
    sentences = _zipf(4_000, 100)
    selector = ContextSelector(_counts(sentences, 100) * 5, 20)
    sizes = []
    for _ in range(3):
        _choose(selector, sentences, 500)
        arrays = [value for value in vars(selector).values() if isinstance(value, np.ndarray)]
        sizes.append(sum(array.nbytes for array in arrays))
    assert sizes[0] == sizes[1] == sizes[2] <= (4 * 8 + 1) * 100  # bytes a word


def test_the_arrays_given_are_not_changed() -> None:
    counts = np.array([3, 0, 5])
    rows, text = np.array([0, -1, 2, 1], np.int32), np.array([0, 0, 1, 1], np.int32)
    before = [array.copy() for array in (counts, rows, text)]
    ContextSelector(counts, 2).choose(rows, text, 2)
    assert all(np.array_equal(one, other) for one, other in zip(before, (counts, rows, text), strict=True))


def test_more_text_than_was_counted_is_read_no_further() -> None:
    selector = ContextSelector(np.array([4]), 2)
    chosen = _choose(selector, [[0]] * 100, 10)
    assert chosen.sum() == 2
    assert not chosen[10:].any()


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_equally_good_sentences_are_drawn_from_the_whole_block(seed: int) -> None:
    """The first ones of a block are not better than the last: a corpus may be sorted by topic or date."""
    n_sentences = 2_000
    counts = np.array([n_sentences])
    chosen = np.flatnonzero(_choose(ContextSelector(counts, 60, seed=seed), [[0, -1]] * n_sentences, n_sentences))
    assert len(chosen) == 60
    assert np.bincount(chosen * 4 // n_sentences, minlength=4).min() >= 5
    other = np.flatnonzero(_choose(ContextSelector(counts, 60, seed=9), [[0, -1]] * n_sentences, n_sentences))
    assert len(np.intersect1d(chosen, other)) < 20


def test_a_sentence_of_one_word_is_not_preferred_to_a_short_one() -> None:
    """Fewer than six words say little about a word, however little they cost."""
    sentences = [[0], [0, -1, -1, -1, -1, -1]] * 1_000
    chosen = np.flatnonzero(_choose(ContextSelector(np.array([2_000]), 200), sentences, len(sentences)))
    assert 0.35 < (chosen % 2).mean() < 0.65


def test_of_long_and_short_sentences_the_short_serve_a_word_at_less_cost() -> None:
    sentences = [[0, *[-1] * 29], [0, *[-1] * 7]] * 1_000
    chosen = np.flatnonzero(_choose(ContextSelector(np.array([2_000]), 200), sentences, len(sentences)))
    assert (chosen % 2).mean() == 1


def test_the_words_of_a_text_are_located_at_most_twice(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once to count them, once for batches, which take plain tokens from the selection; that asks for no positions."""
    tokens: Counter[str] = Counter()
    texts: Counter[str] = Counter()

    def count_calls(owner: type, name: str, counts: Counter[str]) -> None:
        function = getattr(owner, name)

        def counted(self: object, items: str | Sequence[str]) -> object:
            counts.update([items] if isinstance(items, str) else items)
            return function(self, items)

        monkeypatch.setattr(owner, name, counted)

    count_calls(LatinWordMatcher, "split_token", tokens)
    count_calls(LatinWordMatcher, "_locate", tokens)
    count_calls(WordCounter, "_add_slow", texts)
    count_calls(WordMatcher, "match", texts)
    monkeypatch.setattr(Corpus, "sample", lambda self, n_characters=0: [])  # for the language
    plain = [f"the dog number {number} sleeps, in the old house by the sea." for number in range(40)]
    others = [f"собака номер {number} спит у моря." for number in range(40)]
    distill(Corpus.from_texts([*plain, *others]), teacher=model, method="aggregate", min_count=1, contexts=3)
    assert (tokens["dog"], max(tokens.values())) == (2, 2)
    assert {texts[text] for text in others} == {2}
    assert not [text for text in plain if text in texts]
