"""The vectors of whole texts at several layers, from one pass of the teacher, cached as files that are mapped.

    mean     the mean over all tokens of the text, special tokens included, as sentence-transformers pools
             (Reimers & Gurevych 2019)
    first    the state of the first token ([CLS])
    own      of the last layer: what a sentence-transformers folder makes of it (`teachers/sentence_head.py`)

A text is tokenized as it is, after the prompt of the teacher if it has one, and truncated to the length that the
teacher reads; one without tokens has the zero vector. A file has the rows of one layer and pooling, float32, under a
digest of teacher, precision, kind of device, layer, pooling, prompt and texts.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from stillvec.encoding.context_store import StoreLocation
from stillvec.files import digest
from stillvec.files.numpy_file import map_array
from stillvec.files.private_files import private_file

if TYPE_CHECKING:
    from stillvec.teachers import Teacher

Pooling = Literal["mean", "first", "own"]
TextRows = dict[tuple[int, Pooling], NDArray[np.float32]]  # layer and pooling → (n, D)
_MAX_TOKENS = 8_192  # in a batch, padding included


def digest_texts(texts: Sequence[str]) -> str:
    return digest(f"{text}\0".encode("utf-8", "surrogatepass") for text in texts)


def encode_texts(
    teacher: Teacher,
    texts: Sequence[str],
    wanted: Collection[tuple[int, Pooling]],
    folder: Path | None = None,
    texts_digest: str | None = None,
) -> Generator[float, None, TextRows]:
    """The rows of each layer and pooling; those in `folder` are opened, the others are computed together.

    A generator of the fraction done.
    """
    facts = {"kind": "whole texts", "teacher": teacher.digest, "precision": teacher.precision}
    facts |= {"device": teacher.device.type, "head": "" if teacher.head is None else repr(teacher.head)}
    location = StoreLocation((folder or Path()) / "texts", {"texts": texts_digest or digest_texts(texts)})
    rows: TextRows = {}
    paths: dict[tuple[int, Pooling], Path] = {}
    for layer, pooling in sorted(wanted):
        path = location.path_for(facts | {"layer": str(layer), "pooling": pooling}).with_suffix(".npy")
        shape = len(texts), teacher.text_dim if pooling == "own" else teacher.dim
        stored = None if folder is None else _open(path, shape)
        if stored is None:
            paths[layer, pooling] = path
            rows[layer, pooling] = np.zeros(shape, np.float32)
        else:
            rows[layer, pooling] = stored
    if paths:
        yield from _fill(teacher, texts, {key: rows[key] for key in paths})
    for key, path in paths.items() if folder is not None else ():
        with private_file(path, sync=False) as part, part.open("wb") as stream:
            np.save(stream, rows[key])
    return rows


def _open(path: Path, shape: tuple[int, int]) -> NDArray[np.float32] | None:
    """The stored rows; None if there are none, or if the file is damaged."""
    try:
        array = map_array(path)
    except ValueError:
        return None
    return array if getattr(array, "shape", None) == shape and array.dtype == np.float32 else None


def _fill(teacher: Teacher, texts: Sequence[str], rows: TextRows) -> Generator[float, None, None]:
    """Compute the rows in batches of texts of similar length, the longest first."""
    ids = _tokenize(teacher, texts)
    lengths = np.array([len(row) for row in ids], np.int64)
    order = [row for row in np.argsort(-lengths, kind="stable").tolist() if lengths[row]]
    layers = sorted({layer for layer, _ in rows})
    n_tokens, done = int(lengths.sum()), 0
    while order:
        size = max(1, _MAX_TOKENS // int(lengths[order[0]]))
        batch, order = order[:size], order[size:]
        states, mask = _run(teacher, [ids[row] for row in batch], layers)
        for (layer, pooling), target in rows.items():
            target[batch] = _pool(teacher, states[layer].float(), mask, pooling)
        done += int(lengths[batch].sum())
        yield done / n_tokens


def _tokenize(teacher: Teacher, texts: Sequence[str]) -> list[list[int]]:
    """The token ids of each text with its prompt and special tokens, truncated; none for a text without tokens."""
    tokenizer, head = teacher.tokenizer, teacher.head
    before, after, limit = tokenizer.prefix, tokenizer.suffix, teacher.window
    given = [*texts]
    if head is not None:
        before, limit = tokenizer.own_prefix, head.max_tokens or limit
        given = [head.prepare(text) for text in texts]
    room = limit - len(before) - len(after)
    rows = tokenizer.encode_whole(given)
    return [
        [*before, *row[:room], *after] if text.strip() and row else [] for text, row in zip(texts, rows, strict=True)
    ]


def _run(teacher: Teacher, rows: Sequence[Sequence[int]], layers: list[int]) -> tuple[Mapping[int, Tensor], Tensor]:
    """The states of each layer (B, T, D), and which tokens are not padding (B, T)."""
    ids = torch.full((len(rows), max(map(len, rows))), teacher.pad)
    mask = torch.zeros_like(ids)
    for at, row in enumerate(rows):
        ids[at, : len(row)] = torch.tensor(row)
        mask[at, : len(row)] = 1
    ids, mask = ids.to(teacher.device), mask.to(teacher.device)
    return teacher.states(ids, mask, layers), mask


def _pool(teacher: Teacher, states: Tensor, mask: Tensor, pooling: Pooling) -> NDArray[Any]:
    """(B, D) of states (B, T, D)."""
    if pooling == "first":
        return np.asarray(states[:, 0].cpu().numpy())
    if pooling == "own" and teacher.head is not None:
        starts = torch.arange(len(states), device=states.device) * states.shape[1]
        vectors = teacher.head.vectors(states.flatten(0, 1), starts, mask.sum(1), _count_prompt(teacher))
        return np.asarray(vectors.cpu().numpy())
    sums = torch.einsum("btd,bt->bd", states, mask.float())
    return np.asarray((sums / mask.sum(1, keepdim=True)).cpu().numpy())


def _count_prompt(teacher: Teacher) -> int:
    """Tokens of the prompt, with the special ones before it; 0 without a prompt."""
    prompt = "" if teacher.head is None else teacher.head.prompt
    return len(teacher.tokenizer.own_prefix) + len(teacher.tokenizer.encode_whole([prompt])[0]) if prompt else 0
