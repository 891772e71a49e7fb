"""Character language models, one reading forward, one backward: contextual string embeddings (Akbik et al. 2018).

A word is `[→h(last character) ; ←h(first character)]`: the forward model has read the text up to the word's end, the
backward model from the text's end down to the word's beginning. (The authors' own code goes one character further, over
the blanks that it puts around every word; a folder that wants that would have to say so.) All characters of a word get
that state, which is layer 1; layer 0 is what is known without context, the mean of the characters' embeddings, filled
up with zeros.

The folder: `forward.safetensors` and `backward.safetensors` (`embedding.weight`, `lstm.*_l0`; one layer) and
`config.json` with `characters` (row → character), `unknown` (the row for all others) and `start` (the character that
each direction reads first).
"""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from stillvec.errors import TeacherError
from stillvec.teachers.character_tokenizer import CharacterTokenizer
from stillvec.teachers.device import LOADED, digest_of, to_device
from stillvec.teachers.teacher import Teacher

WINDOW = 512  # characters
_DIRECTIONS = ("forward", "backward")


def reads_characters(folder: str) -> bool:
    """Whether config.json is that of a character model; it names characters, and no kind of `transformers`."""
    try:
        told = json.loads((Path(folder) / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(told, dict) and "characters" in told and "model_type" not in told


def load_character_lstm(folder: str, name: str, device: torch.device, precision: str) -> Teacher:
    """A folder for which `reads_characters` is true, as a teacher."""
    characters, unknown, start = _config(folder, name)
    model: Any = CharacterLSTM(*(_direction(folder, name, label, len(characters)) for label in _DIRECTIONS))
    model.eval().requires_grad_(False)
    digest = digest_of("character-lstm", {character: row for row, character in enumerate(characters)}, model)
    return Teacher(
        name=name,
        model=to_device(model.to(LOADED[precision]), device, precision),
        cutter=CharacterTokenizer(characters, unknown, start),
        dim=model.ahead.lstm.hidden_size + model.back.lstm.hidden_size,
        depth=1,
        window=WINDOW,
        pad=unknown,
        device=device,
        precision=precision,
        digest=digest,
    )


@dataclass(frozen=True)
class _States:
    """What `transformers` would answer."""

    last_hidden_state: Tensor  # (B, T, 2H)
    hidden_states: tuple[Tensor, ...] = ()


class _Direction(nn.Module):
    def __init__(self, rows: int, embedded: int, hidden: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(rows, embedded)
        self.lstm = nn.LSTM(embedded, hidden, batch_first=True)

    def forward(self, characters: Tensor) -> Tensor:
        embedded = self.embedding(characters)
        with warnings.catch_warnings():  # on a GPU torch copies bf16 weights at each call, 9 MB, and says so
            warnings.filterwarnings("ignore", "RNN module weights")
            states: Tensor = self.lstm(embedded)[0]  # (B, T, H)
        return states


class CharacterLSTM(nn.Module):
    """Ids of a `CharacterTokenizer` in, the states of whole words out, at each of their characters."""

    def __init__(self, ahead: _Direction, back: _Direction) -> None:
        super().__init__()
        self.ahead, self.back = ahead, back
        self.rows = ahead.embedding.num_embeddings

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None, output_hidden_states: bool) -> _States:
        characters = input_ids % self.rows  # (B, T)
        first, last = self._words(input_ids >= self.rows)
        width = input_ids.shape[1]
        place = torch.arange(width, device=input_ids.device)
        lengths = attention_mask.sum(1, keepdim=True) if attention_mask is not None else width
        mirror = torch.where(place < lengths, lengths - 1 - place, place)  # a text from its end, padding stays after it
        mirror = mirror.expand_as(characters)
        ahead = _taken(self.ahead(characters), last)
        back = _taken(self.back(characters.gather(1, mirror)), mirror.gather(1, first))
        states = torch.cat([ahead, back], -1)
        if not output_hidden_states:
            return _States(states)
        both = (self._spelt(each, characters, first) for each in (self.ahead, self.back))
        return _States(states, (torch.cat([*both], -1).to(states.dtype), states))

    def get_input_embeddings(self) -> nn.Embedding:
        raise TeacherError(
            "The teacher reads characters and has no table of tokens; use another method than token_table."
        )

    def _words(self, joined: Tensor) -> tuple[Tensor, Tensor]:
        """Where the word of each character begins and ends (B, T); a window may begin inside a word."""
        joined = joined.clone()
        joined[:, :2] = False  # the start, and the first character of the window
        goes_on = F.pad(joined[:, 1:], (0, 1))
        place = torch.arange(joined.shape[1], device=joined.device).expand_as(joined)
        first = place.masked_fill(joined, 0).cummax(1).values
        last = place.masked_fill(goes_on, joined.shape[1]).flip(1).cummin(1).values.flip(1)
        return first, last

    def _spelt(self, direction: _Direction, characters: Tensor, first: Tensor) -> Tensor:
        """The mean embedding of each word's characters, zeros after it (B, T, H)."""
        embedded = direction.embedding(characters).float()
        counted = F.pad(embedded, (0, 1), value=1.0)  # the last column counts
        sums = torch.zeros_like(counted).scatter_add_(1, first[..., None].expand_as(counted), counted)
        sums = _taken(sums, first)
        return F.pad(sums[..., :-1] / sums[..., -1:], (0, direction.lstm.hidden_size - embedded.shape[-1]))


def _taken(states: Tensor, places: Tensor) -> Tensor:
    """(B, T, H) at places (B, T)."""
    return states[torch.arange(len(states), device=states.device)[:, None], places]


def _config(folder: str, name: str) -> tuple[list[str], int, int]:
    told = json.loads((Path(folder) / "config.json").read_text(encoding="utf-8"))
    characters, unknown, start = (told.get(key) for key in ("characters", "unknown", "start"))
    texts = isinstance(characters, list) and all(isinstance(each, str) for each in characters)
    if not texts or not any(len(each) == 1 for each in characters) or len({*characters}) != len(characters):
        raise TeacherError(f"The config.json of the teacher {name} must list different characters; it does not.")
    if type(unknown) is not int or not 0 <= unknown < len(characters):
        rows = f"a row from 0 to {len(characters) - 1}"
        raise TeacherError(f"The config.json of the teacher {name} gives as 'unknown' {rows}, and {unknown!r} came.")
    if start not in characters:
        raise TeacherError(
            f"The config.json of the teacher {name} names {start!r} as 'start', which is not among its characters."
        )
    return characters, unknown, characters.index(start)


def _direction(folder: str, name: str, label: str, rows: int) -> _Direction:
    path = Path(folder) / f"{label}.safetensors"
    try:
        weights = {key: value.float() for key, value in load_file(path).items() if not key.startswith("decoder.")}
    except (OSError, SafetensorError) as error:
        raise TeacherError(f"The teacher {name} lacks a readable {path.name}: {error}") from error
    shapes = {key: tuple(value.shape) for key, value in weights.items()}
    hidden = shapes.get("lstm.weight_hh_l0", (0, 0))[-1]
    embedded = min(hidden, shapes.get("embedding.weight", (0, 0))[-1])  # layer 0 has to find room in a state
    wanted = _shapes(rows, embedded, hidden)
    if shapes != wanted:
        wrong = next(key for key in wanted | shapes if shapes.get(key) != wanted.get(key))
        raise TeacherError(
            f"{path.name} of the teacher {name} is not one LSTM layer over {rows} characters: {wrong!r} has the shape "
            f"{shapes.get(wrong)}, and {wanted.get(wrong)} is wanted."
        )
    direction = _Direction(rows, embedded, hidden)
    direction.load_state_dict(weights)
    return direction


def _shapes(rows: int, embedded: int, hidden: int) -> dict[str, tuple[int, ...]]:
    gates = 4 * hidden
    return {
        "embedding.weight": (rows, embedded),
        "lstm.weight_ih_l0": (gates, embedded),
        "lstm.weight_hh_l0": (gates, hidden),
        "lstm.bias_ih_l0": (gates,),
        "lstm.bias_hh_l0": (gates,),
    }
