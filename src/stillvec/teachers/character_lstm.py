"""Two character language models, forward and backward: contextual string embeddings (Akbik et al. 2018).

A word is `[→h(last character) ; ←h(first character)]`: the forward model has read the text up to the word's end, the
backward model from the text's end back to the word's start. (The authors' code goes one character further, over the
spaces that it puts around every word.) All characters of a word get that state, which is layer 1. Layer 0 is without
context: the mean embedding of the word's characters, padded with zeros.

The folder holds `forward.safetensors` and `backward.safetensors` (`embedding.weight`, `lstm.*_l0`; one layer) and
`config.json` with `characters` (row → character), `unknown` (the row of all others) and `start` (the character that
each direction reads first).
"""

import json
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from stillvec.errors import TeacherError
from stillvec.teachers.device import LOAD_DTYPES, place_model
from stillvec.teachers.digest import check_finite, digest_teacher
from stillvec.teachers.subword_tokenizer import SubwordTokenizer, SubwordTokens
from stillvec.teachers.teacher import Teacher
from stillvec.vocabulary import Vocabulary, WordMatcher

WINDOW = 512  # characters
_DIRECTIONS = ("forward", "backward")
_SPACES = np.array([point for point in range(0x3001) if chr(point).isspace()], np.uint32)  # all there are


def is_character_model(folder: str) -> bool:
    """Whether config.json lists characters and names no model type of `transformers`."""
    try:
        config = json.loads((Path(folder) / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(config, dict) and "characters" in config and "model_type" not in config


def load_character_lstm(folder: str, name: str, device: torch.device, precision: str) -> Teacher:
    """Load a folder for which `is_character_model` is true."""
    characters, unknown, start = _read_config(folder, name)
    model: Any = CharacterLSTM(*(_load_direction(folder, name, label, len(characters)) for label in _DIRECTIONS))
    model.eval().requires_grad_(False)
    check_finite(name, model)
    rows = {character: row for row, character in enumerate(characters)}
    digest, sampled_digest = digest_teacher("character-lstm", rows, model)
    return Teacher(
        name=name,
        model=place_model(model.to(LOAD_DTYPES[precision]), device, precision),
        tokenizer=CharacterTokenizer(characters, unknown, start),
        dim=model.ahead.lstm.hidden_size + model.back.lstm.hidden_size,
        depth=1,
        window=WINDOW,
        pad=unknown,
        device=device,
        precision=precision,
        digest=digest,
        sampled_digest=sampled_digest,
    )


class CharacterTokenizer(SubwordTokenizer):
    """One token per character; a word has a single state, which the model gives to all of its characters.

    The id of a token is the row of its character, plus the number of rows if it continues the word of the character
    before it, so that the model knows the words. Only the last character of a word has the word's offsets, the others
    have empty ones: alignment sees one token per word, a term of several words is the mean of its words, and a word at
    the edge of a window comes from one window. Spaces have empty offsets; other signs are words of one character.
    """

    splits_on_whitespace = False  # spaces are characters too

    def __init__(self, characters: Sequence[str], unknown: int, start: int) -> None:
        self.rows = len(characters)
        self.prefix = self.own_prefix = self.suffix = (start,)  # each direction starts with one
        self.segments = {}
        self.leading_space = ""
        self._unknown = self.unknown_id = unknown
        known = sorted((ord(character), row) for row, character in enumerate(characters) if len(character) == 1)
        self._points = np.array([point for point, _ in known], np.uint32)
        self._rows = np.array([row for _, row in known], np.int32)
        self._matcher = WordMatcher(Vocabulary(()))

    def encode(self, texts: Sequence[str]) -> SubwordTokens:
        lengths = np.fromiter(map(len, texts), np.int64, len(texts))
        points = np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), np.uint32)
        first = np.cumsum(lengths) - lengths  # (N,) start of each text
        words = self._matcher.match(texts)
        begin, end = first[words.text_index] + words.starts, first[words.text_index] + words.ends
        inside = np.zeros(len(points) + 1, np.int32)  # 1 from a word's second character to its last
        inside[begin + 1] += 1
        inside[end] -= 1
        inside = np.cumsum(inside[:-1], dtype=np.int32)

        position = np.arange(len(points)) - np.repeat(first, lengths)
        starts, ends = position.astype(np.int32), position.astype(np.int32) + 1
        empty = np.isin(points, _SPACES)
        empty[:-1] |= inside[1:] > 0  # the word continues
        ends[empty] = starts[empty]
        starts[end - 1], ends[end - 1] = words.starts, words.ends
        return SubwordTokens(self._look_up(points) + self.rows * inside, starts, ends, lengths)

    def encode_whole(self, texts: Sequence[str]) -> list[list[int]]:
        tokens = self.encode(texts)
        return [ids.tolist() for ids in np.split(tokens.ids, np.cumsum(tokens.lengths)[:-1])] if len(texts) else []

    @property
    def size(self) -> int:
        return self.rows

    def vocabulary(self) -> list[str]:
        """Empty: it has characters, no words."""
        return []

    def _look_up(self, points: NDArray[np.uint32]) -> NDArray[np.int32]:
        place = np.minimum(np.searchsorted(self._points, points), len(self._points) - 1)
        return np.where(self._points[place] == points, self._rows[place], np.int32(self._unknown))


@dataclass(frozen=True)
class _States:
    """The output of `forward`, with the attributes of one of `transformers`."""

    last_hidden_state: Tensor  # (B, T, 2H)
    hidden_states: tuple[Tensor, ...] = ()


class _Direction(nn.Module):
    def __init__(self, n_rows: int, embedding_dim: int, hidden_dim: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(n_rows, embedding_dim)
        self.lstm = nn.LSTM(embedding_dim, hidden_dim, batch_first=True)

    def forward(self, characters: Tensor) -> Tensor:
        embedded = self.embedding(characters)
        with warnings.catch_warnings():  # on a GPU torch copies bf16 weights at each call (9 MB) and warns
            warnings.filterwarnings("ignore", "RNN module weights")
            states: Tensor = self.lstm(embedded)[0]  # (B, T, H)
        return states


class CharacterLSTM(nn.Module):
    """Ids of a `CharacterTokenizer` in; at each character, the state of its word out."""

    def __init__(self, ahead: _Direction, back: _Direction) -> None:
        super().__init__()
        self.ahead, self.back = ahead, back
        self.rows = ahead.embedding.num_embeddings

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None, output_hidden_states: bool) -> _States:
        characters = input_ids % self.rows  # (B, T)
        first, last = self._word_bounds(input_ids >= self.rows)
        width = input_ids.shape[1]
        place = torch.arange(width, device=input_ids.device)
        lengths = attention_mask.sum(1, keepdim=True) if attention_mask is not None else width
        mirror = torch.where(place < lengths, lengths - 1 - place, place)  # the text reversed, padding stays at the end
        mirror = mirror.expand_as(characters)
        ahead = _gather(self.ahead(characters), last)
        back = _gather(self.back(characters.gather(1, mirror)), mirror.gather(1, first))
        states = torch.cat([ahead, back], -1)
        if not output_hidden_states:
            return _States(states)
        both = (self._embed_words(model, characters, first) for model in (self.ahead, self.back))
        return _States(states, (torch.cat([*both], -1).to(states.dtype), states))

    def get_input_embeddings(self) -> nn.Embedding:
        raise TeacherError("A character model has no token embeddings; use a method other than token_table.")

    def _word_bounds(self, joined: Tensor) -> tuple[Tensor, Tensor]:
        """First and last position of the word of each character (B, T); a window may begin inside a word."""
        joined = joined.clone()
        joined[:, :2] = False  # the start symbol and the first character of the window
        continues = F.pad(joined[:, 1:], (0, 1))
        place = torch.arange(joined.shape[1], device=joined.device).expand_as(joined)
        first = place.masked_fill(joined, 0).cummax(1).values
        last = place.masked_fill(continues, joined.shape[1]).flip(1).cummin(1).values.flip(1)
        return first, last

    def _embed_words(self, direction: _Direction, characters: Tensor, first: Tensor) -> Tensor:
        """The mean embedding of each word's characters, padded with zeros (B, T, H)."""
        embedded = direction.embedding(characters).float()
        counted = F.pad(embedded, (0, 1), value=1.0)  # the last column counts
        sums = torch.zeros_like(counted).scatter_add_(1, first[..., None].expand_as(counted), counted)
        sums = _gather(sums, first)
        return F.pad(sums[..., :-1] / sums[..., -1:], (0, direction.lstm.hidden_size - embedded.shape[-1]))


def _gather(states: Tensor, positions: Tensor) -> Tensor:
    """States (B, T, H) at positions (B, T)."""
    return states[torch.arange(len(states), device=states.device)[:, None], positions]


def _read_config(folder: str, name: str) -> tuple[list[str], int, int]:
    config = json.loads((Path(folder) / "config.json").read_text(encoding="utf-8"))
    characters, unknown, start = (config.get(key) for key in ("characters", "unknown", "start"))
    path, valid = Path(folder) / "config.json", isinstance(characters, list)
    valid = valid and all(isinstance(text, str) for text in characters) and len({*characters}) == len(characters)
    if not valid or not any(len(text) == 1 for text in characters):
        raise TeacherError(f"{path}: 'characters' of teacher {name} must be a list of distinct characters.", path=path)
    if type(unknown) is not int or not 0 <= unknown < len(characters):
        rows = f"a row from 0 to {len(characters) - 1}"
        raise TeacherError.expected(rows, repr(unknown), where="'unknown'", path=path)
    if start not in characters:
        raise TeacherError.expected("one of 'characters'", repr(start), where="'start'", path=path)
    return characters, unknown, characters.index(start)


def _load_direction(folder: str, name: str, label: str, n_rows: int) -> _Direction:
    path = Path(folder) / f"{label}.safetensors"
    try:
        weights = {key: value.float() for key, value in load_file(path).items() if not key.startswith("decoder.")}
    except (OSError, SafetensorError) as error:
        raise TeacherError(f"Teacher {name}: {path.name} cannot be read: {error}", path=path) from error
    shapes = {key: tuple(value.shape) for key, value in weights.items()}
    hidden = shapes.get("lstm.weight_hh_l0", (0, 0))[-1]
    embedded = min(hidden, shapes.get("embedding.weight", (0, 0))[-1])  # layer 0 must fit into a state
    gates = 4 * hidden
    expected = {
        "embedding.weight": (n_rows, embedded),
        "lstm.weight_ih_l0": (gates, embedded),
        "lstm.weight_hh_l0": (gates, hidden),
        "lstm.bias_ih_l0": (gates,),
        "lstm.bias_hh_l0": (gates,),
    }
    if shapes != expected:
        wrong = next(key for key in expected | shapes if shapes.get(key) != expected.get(key))
        what = f"shape {expected.get(wrong)} (one LSTM layer over {n_rows} characters)"
        raise TeacherError.expected(what, str(shapes.get(wrong)), where=repr(wrong), path=path)
    direction = _Direction(n_rows, embedded, hidden)
    direction.load_state_dict(weights)
    return direction
