"""The table of tokens by their bytes gives the numbers of a dict of strings."""

import itertools
import random

import numpy as np
import pytest

from stillvec.vocabulary import token_cache
from stillvec.vocabulary.token_cache import TokenInterner
from stillvec.vocabulary.token_numbers import TokenNumbers, split_texts

ODD = [
    "",
    " ",
    "  two  spaces ",
    "a",
    "a\0",
    "a\0\0",
    "\0",
    "fifteen-letters",
    "sixteen--letters",
    "ends with fifteen-letters",
]
ODD += [
    "naïve Ärger",
    "日本語 テキスト",
    "half \ud800 pair",
    "tab\tand\nline",
    "x" * 300,
    "x" * 301,
    "ab" * 8,
    "ab" * 7,
]


def number(texts: list[str]) -> tuple[list[int], list[str]]:
    """The numbers of all tokens in order of appearance, by a dict."""
    numbers: dict[str, int] = {}
    tokens = [token for text in texts for token in text.split(" ")]
    return [numbers.setdefault(token, len(numbers)) for token in tokens], [*numbers]


def make_texts(n_texts: int, seed: int) -> list[str]:
    choose = random.Random(seed)
    letters = "aabcdeé'.\0日"
    tokens = ["".join(choose.choices(letters, k=choose.randint(0, 20))) for _ in range(4000)]
    return [" ".join(choose.choices(tokens, k=choose.randint(1, 9))) for _ in range(n_texts)]


@pytest.mark.parametrize("n_texts", [1, 31, 32, 700])
def test_numbers_are_those_of_a_dict(n_texts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In parts of 50 texts and in several calls, of which the later ones repeat tokens of the first."""
    monkeypatch.setattr(token_cache, "_TOGETHER", 50)
    texts = make_texts(n_texts, 1) + ODD + make_texts(n_texts, 2) + ODD
    expected, tokens = number(texts)
    interner = TokenInterner()
    parts = [interner.intern(part) for part in (texts[: n_texts // 2 + 1], texts[n_texts // 2 + 1 :])]
    ids, n_tokens = (np.concatenate(column) for column in zip(*parts, strict=True))
    assert ids.tolist() == expected
    assert n_tokens.tolist() == [text.count(" ") + 1 for text in texts]
    assert [*interner] == tokens == interner.pop_new()
    assert interner.n_characters == sum(map(len, tokens))


def test_tokens_that_were_numbered_one_by_one_keep_their_numbers() -> None:
    interner = TokenInterner(["two", "one"])
    assert interner["three"] == 2
    assert interner.intern(["one two three four"] * 40)[0].tolist() == [1, 0, 2, 3] * 40


def test_keys_tell_all_short_tokens_apart() -> None:
    """Among them those that differ only in zeros at the end, and all of up to three of four bytes."""
    short = ["".join(letters) for n in range(4) for letters in itertools.product("ab\0é", repeat=n)]
    short += [f"{'z' * n}" for n in range(4, 16)] + [f"{'z' * n}\0" for n in range(4, 15)]
    split = split_texts(short)
    keys = {*zip(split.low.tolist(), split.high.tolist(), strict=True)}
    assert split.is_short.all()
    assert len(keys) == len(short)
    assert split.strings(np.arange(len(short))) == short


def test_a_crowded_table_says_that_keys_without_a_slot_are_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """All keys have the same first slot, so only as many as there are probes find one."""
    monkeypatch.setattr(TokenNumbers, "_first_slot", lambda self, low, high: np.zeros(len(low), np.int64))
    split = split_texts([f"word-{n}" for n in range(20)])
    table = TokenNumbers()
    table.add(split.low[:12], split.high[:12], np.arange(12))
    found = table.find(split.low, split.high)
    assert found.tolist() == [*range(8)] + [-1] * 12
