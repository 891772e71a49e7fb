"""Words of plain texts, found by Python's `re`, against those that the Rust library finds."""

from __future__ import annotations

import copy
from concurrent.futures import ThreadPoolExecutor
from unicodedata import normalize

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stillvec.vocabulary import Vocabulary, WordCounter, WordMatcher, token_cache
from stillvec.vocabulary.latin_matcher import _MIN_CACHED, LatinWordMatcher

LATIN = "".join(map(chr, range(0x180)))
PARTS = [
    *"abcdsSlLqQuxyzé19_ ....,,,''''’’‘“”–—…•€·\n\t\0-+ßµ²½ºŉſĲİΣЖ",
    *(
        "'s",
        "'S",
        "’s",
        "qu'",
        "l'",
        "d'",
        "3.5",
        "1,000",
        "U.S.",
        "don't",
        "rock'n'roll",
        "new",
        "york",
        "e-mail",
        " ",
    ),
    *("new york", "New  York", "c++", "mail", "x.e-mail", "crème brûlée", "cre\u0300me", "\u0301"),
]
texts_of_parts = st.lists(st.sampled_from(PARTS), max_size=25).map("".join)
texts_of_latin = st.text(st.sampled_from(LATIN + "‘’“”–—…•€"), max_size=40)
TERMS = ["new york", "e-mail", "c++", "crème brûlée", "東京 都"]


def both(words: list[str], texts: list[str], lowercase: bool) -> tuple[WordMatcher, int]:
    """The finder, and how many of the texts it left to Rust; both ways must give the same."""
    finder = WordMatcher(Vocabulary(words, lowercase=lowercase))
    for few_or_many in (texts, texts * _MIN_CACHED):  # many are read by their runs
        (rows, text), (slow_rows, slow_text) = finder.match_rows(few_or_many), finder._match_rows_slow(few_or_many)
        assert rows.tolist() == slow_rows.tolist()
        assert text.tolist() == slow_text.tolist()
    few, many = (len(finder._latin.match_rows(each)[2]) for each in (texts, texts * _MIN_CACHED))
    assert few * _MIN_CACHED <= many
    return finder, many // _MIN_CACHED


def test_many_threads_may_find_words_with_one_finder(monkeypatch: pytest.MonkeyPatch) -> None:
    """As those of a server do; what is known of runs is theirs together, and forgotten now and then."""
    monkeypatch.setattr(token_cache, "_MAX_TOKENS", 50)
    texts = [[f"word{number * row} is, word{row}! word{number}" for row in range(40)] for number in range(60)]
    words = ["is", *(f"word{number}" for number in range(0, 2400, 3))]
    finder, alone = WordMatcher(Vocabulary(words)), WordMatcher(Vocabulary(words))
    with ThreadPoolExecutor(8) as pool:
        together = [*pool.map(finder.match_rows, texts * 5)]
    for (rows, text), some in zip(together, texts * 5, strict=True):
        slow, of = alone._match_rows_slow(some)
        assert rows.tolist() == slow.tolist()
        assert text.tolist() == of.tolist()


def test_a_finder_that_was_used_travels() -> None:
    texts = ["the old river", "a new day"] * _MIN_CACHED
    finder = WordMatcher(Vocabulary(["river", "new"]))
    rows = finder.match_rows(texts)[0].tolist()
    assert rows
    assert copy.deepcopy(finder).match_rows(texts)[0].tolist() == rows


def words_of(texts: list[str], lowercase: bool) -> list[str]:
    counter = WordCounter(lowercase=lowercase)
    counter.add(texts)
    return [*counter.counts()]


@settings(deadline=None, max_examples=400)
@given(st.lists(st.one_of(texts_of_parts, texts_of_latin), max_size=6), st.booleans())
def test_every_word_is_found_as_rust_finds_it(texts: list[str], lowercase: bool) -> None:
    both(words_of(texts, lowercase), texts, lowercase)


@settings(deadline=None, max_examples=300)
@given(st.lists(texts_of_parts, max_size=6), st.booleans())
def test_terms_of_several_words_are_found_as_rust_finds_them(texts: list[str], lowercase: bool) -> None:
    both([*dict.fromkeys([*words_of(texts, lowercase), *TERMS])], texts, lowercase)


def test_plain_texts_are_not_left_to_rust() -> None:
    texts = ["It’s the dog's “bone” – 1,000 l'homme.", "naïve Œuvre", "", "A new day in York-shire"]
    assert both(words_of(texts, True), texts, True)[1] == 0


def test_only_texts_that_may_hold_a_term_are_left_to_rust() -> None:
    texts = ["a new day", "in New York", "an e-mail", "mail", "brûlée"]
    assert both(["a", "day", "york", *TERMS], texts, True)[1] == 3  # "york" and "mail" are the longest runs


def test_other_scripts_and_marks_are_left_to_rust() -> None:
    texts = ["Жук", "cre\u0300me", "İstanbul", "plain", "😀"]
    assert both(words_of(texts, True), texts, True)[1] == 4


def test_words_written_otherwise_elsewhere_are_found() -> None:
    finder, _ = both(["don’t", normalize("NFD", "é"), "K"], ["don't é", "don’t k"], True)
    assert finder.match_rows(["don't é", "don’t"])[0].tolist() == [0, 1, 0]


def test_a_sign_that_is_a_word_is_found_where_it_stands_alone() -> None:
    texts = ["a, b", "a , b", ",", "é,", "a--", "-- a", "“a”"]
    finder, left = both([",", "a", "--", "“", "é"], texts, True)
    assert finder.match_rows(["a , b"])[0].tolist() == [1, 0, -1]
    assert left == 4


@settings(deadline=None, max_examples=200)
@given(st.lists(texts_of_parts, max_size=6), st.booleans())
def test_signs_are_found_as_rust_finds_them(texts: list[str], lowercase: bool) -> None:
    signs = [",", ".", "'", "’", "...", "–", "++", "· ·", "€", "''"]
    both([*dict.fromkeys([*words_of(texts, lowercase), *signs])], texts, lowercase)


def test_a_finder_of_rows_makes_no_tables_for_rust_until_they_are_needed() -> None:
    finder = WordMatcher(Vocabulary(["a", "ж"]), lazy=True)
    finder.match_rows(["a b"])
    assert "_tokenizer" not in vars(finder)
    assert finder.match_rows(["a", "ж", "a a"])[0].tolist() == [0, 1, 0, 0]
    assert "_tokenizer" in vars(finder)


@pytest.mark.parametrize("texts", [[], [""], ["", "!"]])
def test_texts_without_words_give_no_rows(texts: list[str]) -> None:
    rows, lengths, left = LatinWordMatcher({"a": 0}, [], True).match_rows(texts)
    assert (rows.tolist(), lengths.tolist(), left) == ([], [0] * len(texts), [])
    assert rows.dtype == np.int32
