"""A small recurrent language model of the characters of a text, for the perplexity of another text."""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
from torch import Tensor, nn

_UNITS, _WIDTH = 128, 64  # of the state, of the embedding of a character
_LENGTH, _BATCH = 100, 64  # characters of a row, rows of a step
STEPS = 400
_RATE, _CLIP = 5e-3, 1.0
_UNSEEN = 0.01  # share of the probability that all characters have alike


class CharacterModel:
    """A GRU over characters (Cho et al. 2014), trained on one text; the state begins at zero in each row.

    `p(c) = 0.99 p_GRU(c) + 0.01 / n`, n the number of characters of all texts: one that it has never seen costs much,
    but not infinitely much.
    """

    def __init__(self, text: str, characters: Iterable[str], steps: int | None = None, seed: int = 0) -> None:
        self.characters = {character: number for number, character in enumerate(sorted({*characters, *text}))}
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            size = len(self.characters)
            parts = {
                "embed": nn.Embedding(size + 1, _WIDTH),  # the last is the start of a row
                "gru": nn.GRU(_WIDTH, _UNITS, batch_first=True),
                "score": nn.Linear(_UNITS, size),
            }
        self.parts = nn.ModuleDict(parts).to(self.device)
        self.n_steps = steps or STEPS
        self._train(self._divide(text), torch.Generator().manual_seed(seed))

    def perplexity(self, text: str) -> float:
        """Per character of another text, whose characters must be among those given."""
        total, count = 0.0, 0
        with torch.no_grad():
            for rows in torch.split(self._divide(text), _BATCH):
                known = rows >= 0
                likely = self._score(rows.clamp(min=0)).softmax(dim=2)
                chosen = likely.gather(2, rows.clamp(min=0).unsqueeze(2)).squeeze(2)
                mixed = (1 - _UNSEEN) * chosen + _UNSEEN / len(self.characters)
                total -= float((mixed.log() * known).sum())
                count += int(known.sum())
        return math.exp(total / max(count, 1))

    def _divide(self, text: str) -> Tensor:
        """Rows of characters (n, L); the last is filled with -1."""
        numbers = torch.tensor([self.characters[character] for character in text], dtype=torch.int64)
        padded = nn.functional.pad(numbers, (0, -len(numbers) % _LENGTH), value=-1)
        return padded.view(-1, _LENGTH).to(self.device)

    def _score(self, rows: Tensor) -> Tensor:
        """Of each next character (B, L, n)."""
        start = rows.new_full((len(rows), 1), len(self.characters))
        states, _ = self.parts["gru"](self.parts["embed"](torch.cat([start, rows[:, :-1]], dim=1)))
        scores: Tensor = self.parts["score"](states)
        return scores

    def _train(self, rows: Tensor, random: torch.Generator) -> None:
        optimizer = torch.optim.Adam(self.parts.parameters(), lr=_RATE)
        for step in range(self.n_steps):
            for group in optimizer.param_groups:
                group["lr"] = _RATE * (1 - 0.9 * step / self.n_steps)
            chosen = torch.randint(len(rows), (min(_BATCH, len(rows)),), generator=random)
            batch = rows[chosen.to(self.device)]
            scores = self._score(batch.clamp(min=0))
            loss = nn.functional.cross_entropy(scores.transpose(1, 2), batch, ignore_index=-1)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(self.parts.parameters(), _CLIP)
            optimizer.step()
