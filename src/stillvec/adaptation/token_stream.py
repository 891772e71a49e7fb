"""The tokens of a corpus as one stream, cut into rows of one length, and tokenizers that are trained on a corpus."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import CorpusError
from stillvec.registry import require

_BLOCK = 4096  # paragraphs tokenized at once
SPECIALS = {
    "pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]", "mask_token": "[MASK]",
}  # fmt: skip
Units = Literal["pieces", "words"]


def read_tokens(paragraphs: Iterable[str], backend: Any) -> NDArray[np.int32]:
    """The ids of all tokens of a corpus, without special ones (N,)."""
    backend.no_truncation()
    backend.no_padding()
    parts = []
    for block in _collect(paragraphs, _BLOCK):
        encoded = backend.encode_batch_fast(block, add_special_tokens=False)
        parts += [np.array(each.ids, np.int32) for each in encoded]
    return np.concatenate(parts) if parts else np.zeros(0, np.int32)


def cut_rows(tokens: NDArray[np.int32], length: int, before: Sequence[int], after: Sequence[int]) -> NDArray[np.int32]:
    """Rows of `length` tokens (R, length), special tokens included; the rest of the stream is dropped."""
    room = length - len(before) - len(after)
    n_rows = len(tokens) // room
    if n_rows < 2:
        raise CorpusError.expected(f"text of at least {2 * room} tokens", f"{len(tokens)}", cure="give more text")
    rows = np.empty((n_rows, length), np.int32)
    rows[:, : len(before)] = before
    rows[:, len(before) : length - len(after)] = tokens[: n_rows * room].reshape(n_rows, room)
    rows[:, length - len(after) :] = after
    return rows


def train_tokenizer(paragraphs: Iterable[str], size: int, units: Units, *, lowercase: bool) -> Any:
    """A tokenizer of a corpus: pieces of words (WordPiece), or its most frequent words.

    Words are between spaces and punctuation, in Chinese, too; pieces do not cross Chinese characters, as in BERT.
    """
    tokenizers = require("tokenizers", "distill", "A tokenizer")
    specials = [*SPECIALS.values()]
    if units == "words":
        tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(unk_token=SPECIALS["unk_token"]))
        trainer = tokenizers.trainers.WordLevelTrainer(
            vocab_size=size, special_tokens=specials, show_progress=False, min_frequency=2
        )
    else:
        tokenizer = tokenizers.Tokenizer(tokenizers.models.WordPiece(unk_token=SPECIALS["unk_token"]))
        trainer = tokenizers.trainers.WordPieceTrainer(
            vocab_size=size, special_tokens=specials, show_progress=False, min_frequency=2
        )
        tokenizer.decoder = tokenizers.decoders.WordPiece()
    tokenizer.normalizer = tokenizers.normalizers.BertNormalizer(
        lowercase=lowercase, handle_chinese_chars=units == "pieces"
    )
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    tokenizer.train_from_iterator(paragraphs, trainer)
    numbers = [(name, tokenizer.token_to_id(name)) for name in (SPECIALS["cls_token"], SPECIALS["sep_token"])]
    single = f"{SPECIALS['cls_token']} $A {SPECIALS['sep_token']}"
    pair = f"{single} $B:1 {SPECIALS['sep_token']}:1"
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(single, pair, special_tokens=numbers)
    return require("transformers", "distill", "A tokenizer").PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, **SPECIALS
    )


def mask_tokens(
    rows: NDArray[np.int32],
    special: NDArray[np.bool_],
    mask: int,
    share: float,
    random: np.random.Generator,
    weights: NDArray[np.float64] | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Rows with `share` of their tokens replaced, and which were chosen (B, T).

    Of the chosen tokens, 80% become `mask`, 10% a random token, 10% stay. With `weights` (V,), tokens are chosen in
    proportion to theirs: the largest `log w + Gumbel`, which is sampling without replacement.
    """
    ids = rows.astype(np.int64)
    keys = random.gumbel(size=ids.shape)
    if weights is not None:
        keys += np.log(weights[ids])
    keys[special[ids]] = -np.inf
    n_chosen = max(1, round(share * ids.shape[1]))
    edge = np.partition(keys, -n_chosen, axis=1)[:, -n_chosen][:, None]
    chosen = (keys >= edge) & np.isfinite(keys)
    fate = random.random(ids.shape)
    ids[chosen & (fate < 0.8)] = mask
    ordinary = np.flatnonzero(~special)
    swapped = chosen & (fate >= 0.9)
    ids[swapped] = random.choice(ordinary, int(swapped.sum()))
    return ids, chosen


def _collect(items: Iterable[str], size: int) -> Iterator[list[str]]:
    block: list[str] = []
    for item in items:
        block.append(item)
        if len(block) == size:
            yield block
            block = []
    if block:
        yield block
