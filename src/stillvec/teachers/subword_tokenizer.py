"""Splits texts into the teacher's subword tokens, and aligns these with words by character offsets."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import TeacherError
from stillvec.teachers.rust_panic import raise_panics
from stillvec.vocabulary import WordSpans
from stillvec.vocabulary.token_cache import concatenate_ranges

_STRIDE = 1 << 32  # longer than any text: character positions of all texts share one number line
_PROBE = "house"  # a word that any tokenizer can split
_SPLITTING = (("WordPiece", "BertPreTokenizer"), ("BPE", "ByteLevel"), ("Unigram", "Metaspace"))
_TRIAL = "The U.S. \"house,\" it's (a) 1,000-dollar café, don't 'tis — £5! e.g. X's"


@dataclass(frozen=True)
class SubwordTokens:
    """The subword tokens of several texts, concatenated, without special tokens."""

    ids: NDArray[np.int32]  # (T,)
    starts: NDArray[np.int32]  # (T,) first character in the text
    ends: NDArray[np.int32]  # (T,) one past the last
    lengths: NDArray[np.int64]  # (N,) tokens per text


def align(tokens: SubwordTokens, words: WordSpans) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pairs (token, word) that share a character, ordered by word, then token.

    A token that covers several words belongs to each of them; one that covers none (a full stop, a space) to no word.
    """
    text = np.repeat(np.arange(len(tokens.lengths)), tokens.lengths) * _STRIDE
    token_start, token_end = text + tokens.starts, text + tokens.ends
    word_start = words.text_index.astype(np.int64) * _STRIDE + words.starts
    word_end = words.text_index.astype(np.int64) * _STRIDE + words.ends
    first = np.searchsorted(word_end, token_start, side="right")  # first word that ends after the token begins
    last = np.searchsorted(word_start, token_end, side="left")  # one past the last that begins before it ends
    n_words = np.where(token_end > token_start, np.maximum(last - first, 0), 0)  # words that each token covers
    token = np.repeat(np.arange(len(n_words)), n_words)
    word = concatenate_ranges(first, n_words)
    order = np.argsort(word, kind="stable")
    return token[order], word[order]


class SubwordTokenizer:
    """A tokenizer without padding, truncation and special tokens; we put the latter around each window ourselves.

    Byte-level tokenizers split a word at the start of a text differently than after a space, and SentencePiece gives it
    other offsets. For those, a space is put before each text, so that a word's tokens do not depend on its position.
    `segments` maps special tokens to their segment if it is not 0: XLNet's <cls> is in segment 2.
    """

    def __init__(self, backend: Any, *, bos: Sequence[int] = (), prompt: str = "") -> None:
        backend.no_padding()
        backend.no_truncation()
        self.own_prefix, self.suffix = _special_tokens(backend)  # what the tokenizer itself puts around a text
        whole = backend.encode(_PROBE)
        self.segments = {token: kind for token, kind in zip(whole.ids, whole.type_ids, strict=True) if kind}
        self.prefix = self.own_prefix or tuple(bos)
        self._backend = _escape_special_tokens(backend)  # "[SEP]" in a corpus is text
        config = json.loads(self._backend.to_str())
        self._kinds = config["model"]["type"], *_pre_tokenizers(config["pre_tokenizer"])
        self.unknown_id = _unknown_id(backend, config["model"])
        self.leading_space = " " if self._needs_space() else ""
        self.prefix += tuple(self._ids(prompt.rstrip() if self.leading_space else prompt))

    def encode(self, texts: Sequence[str]) -> SubwordTokens:
        batch = [self.leading_space + text if text else text for text in texts] if self.leading_space else texts
        encodings = self._backend.encode_batch(batch, add_special_tokens=False)
        lists = [encoding.ids for encoding in encodings]
        lengths = np.fromiter(map(len, lists), np.int64, len(lists))
        total = int(lengths.sum())
        ids = np.fromiter(chain.from_iterable(lists), np.int32, total)
        offsets = chain.from_iterable(chain.from_iterable(encoding.offsets for encoding in encodings))
        spans = np.fromiter(offsets, np.int32, 2 * total).reshape(-1, 2) - len(self.leading_space)
        return SubwordTokens(ids, spans[:, 0].copy(), spans[:, 1].copy(), lengths)

    def encode_whole(self, texts: Sequence[str]) -> list[list[int]]:
        """The token ids of each text as it is: without special tokens, and without a space before it."""
        return [encoding.ids for encoding in self._backend.encode_batch([*texts], add_special_tokens=False)]

    def decode(self, ids: Sequence[Sequence[int]]) -> list[str]:
        """The texts of tokens, as the tokenizer writes them: without case if it ignores case."""
        return [str(text) for text in self._backend.decode_batch([*map(list, ids)], skip_special_tokens=False)]

    def vocabulary(self) -> list[str]:
        """The tokens that begin a word, without the mark for it, in the tokenizer's order (frequent ones first)."""
        ids: dict[str, int] = self._backend.get_vocab()
        tokens = sorted(ids, key=lambda token: ids[token])
        # byte-level and SentencePiece: a space belongs to the word after it; either has the other's mark as a letter
        marked = [[token for token in tokens if token.startswith(mark)] for mark in ("Ġ", "▁")]
        if begins := max(marked, key=len):
            return [self._backend.decode([ids[token]]).replace("▁", " ").strip() for token in begins]
        return [token for token in tokens if not token.startswith("##")]

    @property
    def size(self) -> int:
        """The number of tokens that there are."""
        return int(self._backend.get_vocab_size())

    @property
    def splits_on_whitespace(self) -> bool:
        """Whether the tokens of a text are those of its whitespace-separated parts: by kind, confirmed by trial."""
        if not any({model, before} <= {*self._kinds} for model, before in _SPLITTING):
            return False
        first, *others = _TRIAL.split(" ")
        separate = [self._ids(self.leading_space + first), *map(self._ids_after_word, others)]
        return self._ids(self.leading_space + _TRIAL) == [*chain.from_iterable(separate)]

    @property
    def splits_on_punctuation(self) -> bool:
        """Whether letters and the punctuation between them are tokenized separately: BERT's kind, and tried."""
        if not {"WordPiece", "BertPreTokenizer"} <= {*self._kinds}:
            return False
        parts = ["“", "house", ",", "school", "—(", "river", "!”", "’"]
        return self._ids("".join(parts)) == [*chain.from_iterable(map(self._ids, parts))]

    def _ids_after_word(self, text: str) -> list[int]:
        """The tokens of a text that follows another word."""
        return self._ids(f"{self.leading_space}a {text}")[len(self._ids(self.leading_space + "a")) :]

    def _ids(self, text: str) -> list[int]:
        return list(self._backend.encode(text, add_special_tokens=False).ids)

    def _needs_space(self) -> bool:
        bare, spaced, twice = self._ids(_PROBE), self._ids(f" {_PROBE}"), self._ids(f"{_PROBE} {_PROBE}")
        if bare == spaced:  # the mark of a missing space would count as the first letter
            return self._kinds[1:2] == ("Metaspace",)
        return twice == bare + spaced


def _unknown_id(backend: Any, model: Any) -> int:
    """The token for what the tokenizer does not know; -1 if it has none, as one of bytes."""
    if model.get("byte_fallback"):
        return -1
    unknown = model.get("unk_id") if model["type"] == "Unigram" else backend.token_to_id(str(model.get("unk_token")))
    return -1 if unknown is None else int(unknown)


def _pre_tokenizers(config: Any) -> list[str]:
    """The type of a pre-tokenizer and of those it is made of."""
    if config is None:
        return []
    return [config["type"], *(kind for part in config.get("pretokenizers", ()) for kind in _pre_tokenizers(part))]


def _special_tokens(backend: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Tokens before and after a text: BERT [CLS] … [SEP], XLNet … <sep><cls>, Llama <s> …"""
    try:
        with raise_panics():
            plain = backend.encode(_PROBE, add_special_tokens=False).ids
            whole = backend.encode(_PROBE, add_special_tokens=True).ids
    except Exception as error:  # what the package raises
        raise TeacherError(f"The tokenizer cannot split {_PROBE!r} ({error}); download the model again.") from None
    for before in range(len(whole) - len(plain) + 1):
        if plain and whole[before : before + len(plain)] == plain:
            return tuple(whole[:before]), tuple(whole[before + len(plain) :])
    raise TeacherError(f"The tokenizer splits {_PROBE!r} differently when special tokens are added; it cannot be used.")


def _escape_special_tokens(backend: Any) -> Any:
    """Make "[SEP]" in a text plain text. Unigram models hold special tokens in their vocabulary: rename them there."""
    from tokenizers import Tokenizer
    from tokenizers.models import Unigram

    if isinstance(backend.model, Unigram):
        config = json.loads(backend.to_str())
        special = {token["content"] for token in config["added_tokens"] if token["special"]}
        for token in config["added_tokens"]:
            token["content"] = _escape(token["content"], special)
        config["model"]["vocab"] = [[_escape(token, special), score] for token, score in config["model"]["vocab"]]
        backend = Tokenizer.from_str(json.dumps(config))
    backend.encode_special_tokens = True
    return backend


def _escape(token: str, special: set[str]) -> str:
    return f"\0{token}" if token in special else token
