"""Integer ids for whitespace tokens."""

from collections.abc import Iterable, Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

_POSSESSIVES = ("'s", "'S", "’s", "’S")


class TokenInterner(dict[str, int]):
    """Numbers whitespace tokens in the order in which they first appear."""

    def __init__(self, tokens: Iterable[str] = ()) -> None:
        super().__init__((token, number) for number, token in enumerate(tokens))
        self.n_characters = sum(map(len, self))  # a corpus may have few but long tokens
        self._new: list[str] = []

    def __missing__(self, token: str) -> int:
        number = self[token] = len(self)
        self.n_characters += len(token)
        self._new.append(token)
        return number

    def intern(self, texts: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The ids of the tokens of all texts, concatenated, and the number of tokens per text."""
        n_tokens = np.fromiter((text.count(" ") for text in texts), np.int64, len(texts)) + 1
        tokens = chain.from_iterable(text.split(" ") for text in texts)  # text by text, which fits the CPU cache
        return np.fromiter(map(self.__getitem__, tokens), np.int64, int(n_tokens.sum())), n_tokens

    def pop_new(self) -> list[str]:
        """The tokens added since the last call."""
        new, self._new = self._new, []
        return new


def needs_slow_path(
    texts: Sequence[str], tokens: NDArray[np.int64], n_tokens: NDArray[np.int64], plain: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Which texts have a token that is not plain, or begin with "'s", a word only there or after another word."""
    slow = np.fromiter((text.startswith(_POSSESSIVES) for text in texts), bool, len(texts))
    slow[np.repeat(np.arange(len(texts)), n_tokens)[~plain[tokens]]] = True
    return slow
