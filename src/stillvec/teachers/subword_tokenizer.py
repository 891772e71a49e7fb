"""Cuts texts into the teacher's pieces, as the teacher expects its text, with character offsets."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import TeacherError

_PROBE = "house"  # a word any tokenizer knows how to cut

_PARTING = (("WordPiece", "BertPreTokenizer"), ("BPE", "ByteLevel"), ("Unigram", "Metaspace"))
_TRIAL = "The U.S. \"house,\" it's (a) 1,000-dollar café, don't 'tis — £5! e.g. X's"


@dataclass(frozen=True)
class Pieces:
    """The pieces of several texts, one after the other; special tokens are not among them."""

    ids: NDArray[np.int32]  # (P,)
    starts: NDArray[np.int32]  # (P,) first character in the text
    ends: NDArray[np.int32]  # (P,) one past the last
    lengths: NDArray[np.int64]  # (T,) pieces of each text


class SubwordTokenizer:
    """A tokenizer without its padding, truncation and special tokens; these are put around each window by us.

    Byte-level tokenizers cut a word after a space and at the start of a text differently, SentencePiece's place it
    differently; where that is so, a space is put before the text, so that a word's pieces do not depend on its place.
    `segments` are those special tokens that stand in a segment of their own: XLNet's <cls> is in segment 2.
    """

    def __init__(self, backend: Any, *, first: Sequence[int] | None = None) -> None:
        backend.no_padding()
        backend.no_truncation()
        self.prefix, self.suffix = _special_tokens(backend)
        whole = backend.encode(_PROBE)
        self.segments = {token: kind for token, kind in zip(whole.ids, whole.type_ids, strict=True) if kind}
        if first is not None and not self.prefix:
            self.prefix = tuple(first)
        self._backend = _escape_special_tokens(backend)  # "[SEP]" in a corpus is text
        told = json.loads(self._backend.to_str())
        self._kinds = told["model"]["type"], *_kinds(told["pre_tokenizer"])
        self.lead = " " if self._needs_space() else ""

    def cut(self, texts: Sequence[str]) -> Pieces:
        batch = [self.lead + text if text else text for text in texts] if self.lead else texts
        encodings = self._backend.encode_batch(batch, add_special_tokens=False)
        lists = [encoding.ids for encoding in encodings]
        lengths = np.fromiter(map(len, lists), np.int64, len(lists))
        total = int(lengths.sum())
        ids = np.fromiter(chain.from_iterable(lists), np.int32, total)
        offsets = chain.from_iterable(chain.from_iterable(encoding.offsets for encoding in encodings))
        spans = np.fromiter(offsets, np.int32, 2 * total).reshape(-1, 2) - len(self.lead)
        return Pieces(ids, spans[:, 0].copy(), spans[:, 1].copy(), lengths)

    def vocabulary(self) -> list[str]:
        """The tokens that begin a word, without their mark, in the tokenizer's order (the frequent ones first)."""
        ids: dict[str, int] = self._backend.get_vocab()
        tokens = sorted(ids, key=lambda token: ids[token])
        for mark in ("Ġ", "▁"):  # byte-level and SentencePiece: a word begins with its space
            begins = [token for token in tokens if token.startswith(mark)]
            if begins:
                return [self._backend.decode([ids[token]]).replace("▁", " ").strip() for token in begins]
        return [token for token in tokens if not token.startswith("##")]

    @property
    def parts_at_blanks(self) -> bool:
        """Whether the pieces of a plain text are those of its runs between blanks: told by kind, and tried."""
        if not any({model, before} <= {*self._kinds} for model, before in _PARTING):
            return False
        runs = _TRIAL.split(" ")
        apart = [self._ids(self.lead + runs[0]), *(self._after(run) for run in runs[1:])]
        return self._ids(self.lead + _TRIAL) == [*chain.from_iterable(apart)]

    @property
    def parts_at_signs(self) -> bool:
        """Whether the pieces of a run are those of its letters and of the signs between: BERT's kind, and tried."""
        if not {"WordPiece", "BertPreTokenizer"} <= {*self._kinds}:
            return False
        parts = ["“", "house", ",", "school", "—(", "river", "!”", "’"]
        return self._ids("".join(parts)) == [*chain.from_iterable(map(self._ids, parts))]

    def _after(self, run: str) -> list[int]:
        """The pieces of a run behind another word."""
        return self._ids(f"{self.lead}a {run}")[len(self._ids(self.lead + "a")) :]

    def _ids(self, text: str) -> list[int]:
        return list(self._backend.encode(text, add_special_tokens=False).ids)

    def _needs_space(self) -> bool:
        bare, spaced, twice = self._ids(_PROBE), self._ids(f" {_PROBE}"), self._ids(f"{_PROBE} {_PROBE}")
        if bare == spaced:  # a mark for the space that is not there would count as the first letter
            return self._kinds[1:2] == ("Metaspace",)
        return twice == bare + spaced


def _kinds(told: Any) -> list[str]:
    """What a pre-tokenizer is, or is made of."""
    if told is None:
        return []
    return [told["type"], *(kind for each in told.get("pretokenizers", ()) for kind in _kinds(each))]


def _special_tokens(backend: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """What the tokenizer puts before and after a text: BERT [CLS] … [SEP], XLNet … <sep><cls>, Llama <s> …"""
    plain = backend.encode(_PROBE, add_special_tokens=False).ids
    whole = backend.encode(_PROBE, add_special_tokens=True).ids
    for before in range(len(whole) - len(plain) + 1):
        if plain and whole[before : before + len(plain)] == plain:
            return tuple(whole[:before]), tuple(whole[before + len(plain) :])
    raise TeacherError(
        f"The tokenizer cuts {_PROBE!r} into other pieces when special tokens are added; it cannot serve."
    )


def _escape_special_tokens(backend: Any) -> Any:
    """Unigram models hold special tokens among their pieces and would find them in a text: there they are renamed."""
    from tokenizers import Tokenizer
    from tokenizers.models import Unigram

    if isinstance(backend.model, Unigram):
        told = json.loads(backend.to_str())
        special = {token["content"] for token in told["added_tokens"] if token["special"]}
        for token in told["added_tokens"]:
            token["content"] = _unwritten(token["content"], special)
        told["model"]["vocab"] = [[_unwritten(piece, special), score] for piece, score in told["model"]["vocab"]]
        backend = Tokenizer.from_str(json.dumps(told))
    backend.encode_special_tokens = True
    return backend


def _unwritten(piece: str, special: set[str]) -> str:
    return f"\0{piece}" if piece in special else piece
