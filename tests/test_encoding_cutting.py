"""Pieces from memory are those of the text: run by run and as a whole give the same, whatever was met before."""

from __future__ import annotations

import dataclasses
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_teachers import FAMILIES, TEXT, tiny_teacher
from tokenizers import Tokenizer, decoders, models

from stillvec.encoding.caching_tokenizer import CachingTokenizer, TokenizedTexts, align_words
from stillvec.teachers import SubwordTokenizer
from stillvec.vocabulary import Vocabulary, WordMatcher, token_cache

WORDS = [*dict.fromkeys(" ".join(TEXT).split())]
TERMS = ["new york", "c++", "e-mail", "l'", "café", "'s", "the school", "don't", "3.5"]
RUNS = [
    *WORDS, "New", "York", "York's", "new york", "C++,", "e-mail", "l'homme", "café", "cafe\u0301", "'s", "’s",
    "school", "school's", "don't", "“The", "3.5", "1,000,", "(it)", "—", "...", "e", "mail", "Straße", "οδός", "日本",
    "\u00a0", "\t", "", "[SEP]", "</s>", "a\nb", "İ", "x" * 40, "the", "The", "school.", "0x1", "_", "&",
    "\u0301", "\u200d", "school,", '"The', "river—(the", "the-school!”", "dogs’", "d'", "'tis", "'S", "’Sblood",
    "York.", "e.g.", "it...school", "sea‐shore", "'s,", "mail-", "x-y", "—the", "(school)'", "the…",
    "the;school", "−5", "3′",
]  # fmt: skip


@cache
def _cutter(family: str) -> SubwordTokenizer:
    return tiny_teacher(family=family).tokenizer


@cache
def _finder(terms: bool) -> WordMatcher:
    return WordMatcher(Vocabulary([*dict.fromkeys([*WORDS, *(TERMS if terms else [])])]))


def _same(one: TokenizedTexts, other: TokenizedTexts) -> None:
    for field in dataclasses.fields(TokenizedTexts):
        np.testing.assert_array_equal(getattr(one, field.name), getattr(other, field.name), field.name)


def _whole(texts: list[str], cutter: SubwordTokenizer, finder: WordMatcher) -> TokenizedTexts:
    return align_words(cutter.encode(texts), finder.match(texts))[0]


texts_of_runs = st.lists(st.lists(st.sampled_from(RUNS), max_size=8).map(" ".join), max_size=6)
any_texts = st.lists(st.text(st.characters(codec="utf-8"), max_size=25), max_size=4)


@settings(deadline=None, max_examples=40)
@given(calls=st.lists(texts_of_runs | any_texts, min_size=1, max_size=3), terms=st.booleans())
@pytest.mark.parametrize("family", FAMILIES)
def test_runs_end_to_end_are_the_text(family: str, calls: list[list[str]], terms: bool) -> None:
    cutter, finder = _cutter(family), _finder(terms)
    runs = CachingTokenizer(cutter, finder)
    for texts in calls:
        _same(runs.tokenize(texts), _whole(texts, cutter, finder))


def test_a_text_without_a_piece_has_none() -> None:
    cutter, finder = _cutter("bert"), _finder(False)
    for texts in (["\x1b \x08"], [""], []):
        _same(CachingTokenizer(cutter, finder).tokenize(texts), _whole(texts, cutter, finder))


@pytest.mark.parametrize("family", ["bert", "roberta", "xlnet"])
def test_the_usual_tokenizers_part_their_text_at_blanks(family: str) -> None:
    assert _cutter(family).splits_on_whitespace


def test_a_run_is_cut_once(monkeypatch: pytest.MonkeyPatch) -> None:
    cutter, finder = _cutter("bert"), _finder(False)
    runs = CachingTokenizer(cutter, finder)
    seen: list[str] = []
    whole = finder.match_tokens
    monkeypatch.setattr(finder, "match_tokens", lambda runs: seen.extend(runs) or whole(runs))
    for _ in range(3):
        runs.tokenize(["the school the school", "the river"])
    assert sorted(seen) == ["river", "school", "the"]


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_cache, "_MAX_TOKENS", 20)
    cutter, finder = _cutter("bert"), _finder(False)
    runs = CachingTokenizer(cutter, finder)
    for start in range(0, 200, 10):
        texts = [f"the w{number} school" for number in range(start, start + 10)]
        _same(runs.tokenize(texts), _whole(texts, cutter, finder))
        assert len(runs._cache.interner) <= 32


def test_long_runs_are_not_remembered_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_cache, "_MAX_CHARACTERS", 1000)
    runs = CachingTokenizer(_cutter("bert"), _finder(False))
    for number in range(30):
        runs.tokenize([f"{number}" + "x" * 300])
        assert runs._cache.interner.n_characters < 1400


def test_words_are_the_tokens_with_the_mark_of_their_kind_though_the_other_mark_is_a_token_too() -> None:
    """EmbeddingGemma has Ġ as a letter, and took it for the only token that begins a word."""
    for words, letter in ({"▁house": "house", "▁snow": "snow"}, "Ġ"), ({"Ġhouse": "house", "Ġsnow": "snow"}, "▁"):
        tokens = ["[UNK]", letter, *words, "s"]
        backend = Tokenizer(models.WordLevel({token: row for row, token in enumerate(tokens)}, unk_token="[UNK]"))
        backend.decoder = decoders.Metaspace() if letter == "Ġ" else decoders.ByteLevel()
        assert SubwordTokenizer(backend).vocabulary() == [*words.values()]
