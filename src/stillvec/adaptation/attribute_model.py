"""What a lexicon says of words, inside a left-to-right language model (Zhang et al. 2020, SE, SP and SEP).

    input     w̃ = w + mean of the vectors x_s of the attributes s of the word, x trained (SE)
    output    the attributes of the next word are predicted, too, each by a sigmoid; its mean loss is added (SP)
    both      (SEP)

A word without attributes keeps its vector. Input and output embeddings are tied; when training ends, the vectors of
attributes are added to the input embeddings, so that an ordinary model is left.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from stillvec.errors import UsageError
from stillvec.lexicons import read_attributes
from stillvec.lexicons.word_attributes import Attributes
from stillvec.lexicons.wordnet import find_wordnet

AttributeUse = Literal["input", "output", "both"]
_MIN_WORDS = 10  # of the vocabulary, that have an attribute


def read_lexicon(name: str) -> Attributes:
    """The attributes of words of "wordnet", or of a file."""
    return read_attributes(find_wordnet() if name == "wordnet" else Path(name))


def find_attributes(attributes: Attributes, vocabulary: Mapping[str, int]) -> NDArray[np.float32]:
    """Which attributes each token has (V, S), of those that enough tokens have."""
    known = {token: attributes[token.lower()] for token in vocabulary if token.lower() in attributes}
    counts = Counter(name for names in known.values() for name in names)
    columns = {name: place for place, name in enumerate(sorted(name for name, n in counts.items() if n >= _MIN_WORDS))}
    if not columns:
        what = f"attributes of at least {_MIN_WORDS} words of the vocabulary"
        raise UsageError.expected(what, "none", where="setting 'attributes'")
    table = np.zeros((max(vocabulary.values()) + 1, len(columns)), np.float32)
    for token, names in known.items():
        table[vocabulary[token], [columns[name] for name in names if name in columns]] = 1
    return table


class AttributeModel(nn.Module):
    """A language model with attributes."""

    has: Tensor  # (V, S) 1 where a token has an attribute

    def __init__(self, model: Any, table: NDArray[np.float32], use: AttributeUse, seed: int) -> None:
        super().__init__()
        self.model, self.use, self.config = model, use, model.config
        n_tokens, n_attributes = model.get_input_embeddings().weight.shape[0], table.shape[1]
        has = torch.zeros(n_tokens, n_attributes)
        has[: len(table)] = torch.from_numpy(table)
        self.register_buffer("has", has, persistent=False)
        width = int(model.config.hidden_size)
        random = torch.Generator().manual_seed(seed)
        self.vectors = nn.Parameter(0.02 * torch.randn(n_attributes, width, generator=random))
        self.detector = nn.Linear(width, n_attributes)
        with torch.no_grad():
            self.detector.weight.normal_(0, 0.02, generator=random)
            self.detector.bias.zero_()

    def mean_vectors(self) -> Tensor:
        """What is added to the embedding of each token (V, D)."""
        shares = self.has / self.has.sum(1, keepdim=True).clamp_min(1)
        return shares @ self.vectors

    def read(self, ids: Tensor) -> tuple[Tensor, Tensor]:
        """The logits (B, T, V) and states (B, T, D) of ids (B, T)."""
        words = self.model.get_input_embeddings()(ids)
        if self.use != "output":
            words = words + F.embedding(ids, self.mean_vectors())
        states = self.model.base_model(inputs_embeds=words).last_hidden_state
        return self.model.lm_head(states), states

    def predict_attributes(self, states: Tensor, following: Tensor) -> Tensor:
        """The mean loss of the attributes of the tokens that follow (B, T)."""
        return F.binary_cross_entropy_with_logits(self.detector(states).float(), F.embedding(following, self.has))

    @torch.no_grad()
    def fold(self) -> Any:
        """The model with the vectors of attributes in its input embeddings."""
        table = self.model.get_input_embeddings()
        self.model.lm_head.weight = nn.Parameter(table.weight.detach().clone())
        self.model.config.tie_word_embeddings = False
        if self.use != "output":
            table.weight += self.mean_vectors()
        return self.model
