"""The probe of spans (Toshniwal et al. 2020, after Tenney et al. 2019), several networks at a time:

    e_k = P x_k + p, 256 columns;   s = pooling of e_i, ..., e_j (`pooling.py`);   h = LayerNorm(tanh(A s + a))
    score of label l = (B dropout_{0.3}(h) + b)_l;   loss = Σ_l binary cross-entropy, a label holds if its score is > 0

Of a teacher's mix, x_k = Σ_l softmax(10 w)_l x_{k,l} over its layers, each of the same root mean square, with w learned
together with the rest. A question about two spans concatenates their s; for roles, each of the two has a projection of
its own. Batches are of sentences, so that a word is projected once for all spans that contain it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from stillvec.heads.networks import NetworkGroup, NetworkSettings, PaddedTexts, Shapes, drop_units
from stillvec.heads.pooling import EDGE_POOLINGS, pool_size
from stillvec.heads.sequence_batches import Sequences
from stillvec.heads.span_questions import SpanQuestions
from stillvec.numerics.array_types import Rows

PROJECTION = ("project", "project_bias", "query")  # of words; the last is v of attention
_DROPOUT = 0.3
_MIX_SPEED = 10  # of the weights of layers: as with Adam at ten times the rate, since training is short


@dataclass(frozen=True)
class SpanSettings:
    """What the networks of a group have in common."""

    pooling: str
    projected: int = 256  # columns of a word
    hidden: int = 256  # units
    batch_size: int = 64  # sentences


class LayeredTexts(PaddedTexts):
    """The texts of a mix, with the rows of all layers."""

    def __init__(self, sequences: Sequences, device: torch.device) -> None:
        super().__init__([sequences], device)
        shape = len(sequences.layers), *sequences.layers[0].shape
        self.layers = torch.empty(shape, dtype=torch.float16, device=device)  # (layers, w, d)
        for number in range(len(sequences.layers)):
            self.layers[number] = torch.from_numpy(sequences.take_layer(number).scale_table().astype(np.float16))


class SpanNetworks(NetworkGroup):
    def __init__(
        self, texts: PaddedTexts, questions: SpanQuestions, networks: Sequence[NetworkSettings], settings: SpanSettings
    ) -> None:
        self.settings, self.questions, self.batch_size = settings, questions, settings.batch_size
        self.n_parts, self.n_labels = questions.spans.shape[1] // 2, len(questions.names)
        self.n_projections = self.n_parts if questions.separate else 1
        super().__init__(texts, networks, tuned=False)
        numbers = questions.by_text(texts.n_texts)  # (n, S)
        empty = np.pad(numbers, ((0, 1), (0, 0)), constant_values=len(questions))
        self.numbers = torch.from_numpy(empty).to(texts.device)  # (n + 1, S)
        self.counts = (self.numbers < len(questions)).sum(dim=1)  # (n + 1,)
        self.spans = torch.from_numpy(np.pad(questions.spans, ((0, 1), (0, 0)))).to(texts.device)  # (N + 1, 2 or 4)
        labels = np.pad(questions.labels, ((0, 1), (0, 0))).astype(np.float32)
        self.labels = torch.from_numpy(labels).to(texts.device)  # (N + 1, k)

    def shapes(self, dim: int) -> Shapes:
        width, hidden = self.settings.projected, self.settings.hidden
        joined = self.n_parts * pool_size(self.settings.pooling, width)
        enter: Shapes = [
            ((dim, width), dim**-0.5),
            ((width,), dim**-0.5),
            ((width,), 0.0),
        ]  # the last is v of attention
        layer: Shapes = [
            ((joined, hidden), joined**-0.5),
            ((hidden,), joined**-0.5),
            ((hidden,), 0.0),
            ((hidden,), 0.0),
        ]
        leave: Shapes = [((hidden, self.n_labels), hidden**-0.5), ((self.n_labels,), hidden**-0.5)]
        mix: Shapes = [((len(self.texts.layers),), 0.0)] if isinstance(self.texts, LayeredTexts) else []
        return [*enter * self.n_projections, *layer, *leave, *mix]

    def embed(self, ids: Tensor) -> Tensor:
        if not isinstance(self.texts, LayeredTexts):
            return super().embed(ids)
        shares = (_MIX_SPEED * self.parameters[-1]).softmax(dim=1)
        mixed: Tensor = _Mix.apply(shares, self.texts.layers, ids)  # type: ignore[no-untyped-call]
        return mixed

    def share_layers(self) -> NDArray[np.float32]:
        """The weights of the layers of a mix (M, layers); none without a mix (M, 0)."""
        if not isinstance(self.texts, LayeredTexts):
            return np.zeros((len(self.networks), 0), np.float32)
        return (_MIX_SPEED * self.parameters[-1].detach()).softmax(dim=1).cpu().numpy()

    def scores(self, texts: Tensor, width: int, salts: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Numbers of the questions about texts (M, T), and the scores of their labels (M, T, k); N is no question."""
        most = int(self.counts[texts].max())
        numbers = self.numbers[:, :most][texts]  # (M, B, s)
        pooled = self.pool(self.embed(self.read(texts, width)), self.spans[numbers])  # (M, B, s, p)
        counted = int(self.counts[texts].sum(dim=1).max())
        numbers, order = numbers.flatten(1).sort(dim=1, stable=True)
        numbers, order = numbers[:, :counted], order[:, :counted]  # most places of the block are padding
        pooled = pooled.flatten(1, 2).gather(1, order.unsqueeze(-1).expand(-1, -1, pooled.shape[-1]))
        enter, bias, gain, shift, leave, leave_bias = self.parameters[3 * self.n_projections :][:6]
        hidden = torch.tanh(torch.baddbmm(bias.unsqueeze(1), pooled, enter))
        hidden = functional.layer_norm(hidden, hidden.shape[-1:]) * (1 + gain.unsqueeze(1)) + shift.unsqueeze(1)
        hidden = hidden if salts is None else drop_units(hidden, salts[0], _DROPOUT)
        return numbers, torch.baddbmm(leave_bias.unsqueeze(1), hidden, leave)

    def pool(self, words: Tensor, spans: Tensor) -> Tensor:
        """The vectors of spans (M, B, s, p), those of the two spans of a question side by side."""
        parts = []
        for part in range(self.n_parts):
            matrix, bias, query = self.parameters[3 * (part % self.n_projections) :][:3]
            if part < self.n_projections:
                flat = torch.baddbmm(bias.unsqueeze(1), words.flatten(1, 2), matrix)
                projected = flat.view(*words.shape[:3], -1)
            first, last = spans[..., 2 * part], spans[..., 2 * part + 1]
            parts.append(pool_spans(self.settings.pooling, projected, first, last, query))
        return torch.cat(parts, dim=-1)

    def losses(self, texts: Tensor, width: int, salts: Tensor) -> Tensor:
        numbers, scores = self.scores(texts, width, salts)
        lost = functional.binary_cross_entropy_with_logits(scores, self.labels[numbers], reduction="none").sum(dim=2)
        counted = numbers < len(self.questions)
        return (lost * counted).sum(dim=1) / counted.sum(dim=1).clamp(min=1)

    def predict_labels(self, rows: Rows) -> NDArray[np.bool_]:
        """Whether each label holds for each question (M, N, k), where the question is about a text of `rows`."""
        return np.asarray(self._predict(rows, lambda scores: scores > 0, torch.bool))

    def predict_scores(self, rows: Rows) -> NDArray[np.float32]:
        """The score of each label for each question (M, N, k), where the question is about a text of `rows`."""
        return np.asarray(self._predict(rows, lambda scores: scores, torch.float32))

    def _predict(self, rows: Rows, convert: Callable[[Tensor], Tensor], dtype: torch.dtype) -> NDArray[Any]:
        rows = rows[self.questions.count_by_text(self.texts.n_texts)[rows] > 0]
        shape = len(self.networks), len(self.questions) + 1, self.n_labels
        said = torch.zeros(shape, dtype=dtype, device=self.texts.device)
        sets = [network.vectors for network in self.networks]
        batches = {number: [*self.texts.sequences[number].batches(rows, 4 * self.batch_size)] for number in sets}
        texts, widths = self.texts.align([(number, batches[number]) for number in sets])
        own = torch.arange(len(self.networks), device=self.texts.device).unsqueeze(1)
        with torch.no_grad():
            for step, width in enumerate(widths):
                numbers, scores = self.scores(texts[step], width)
                said[own, numbers] = convert(scores)
        return np.asarray(said[:, :-1].cpu().numpy())

    def read_arrays(self, at: int) -> dict[str, NDArray[Any]]:
        """The parameters of one network, by name; a second projection has the ending _2."""
        names = [f"{name}{'_2' * part}" for part in range(self.n_projections) for name in PROJECTION]
        names += ["enter", "enter_bias", "gain", "shift", "weights", "bias"]
        return {name: part[at].detach().cpu().numpy() for name, part in zip(names, self.parameters, strict=False)}


class _Mix(torch.autograd.Function):
    """The rows `ids` (M, ...) of layers (l, w, d), summed with the shares of each network (M, l).

    Rows are read again for the gradient: all layers of a batch at once would be gigabytes.
    """

    @staticmethod
    def forward(ctx: Any, shares: Tensor, layers: Tensor, ids: Tensor) -> Tensor:
        ctx.layers, ctx.ids = layers, ids
        total = torch.zeros(*ids.shape, layers.shape[2], device=ids.device)
        for layer, weights in zip(layers, shares.unbind(1), strict=True):
            total += layer[ids] * weights.view(-1, *[1] * ids.ndim)
        return total

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        products = [(layer[ctx.ids] * gradient).flatten(1).sum(dim=1) for layer in ctx.layers]
        return torch.stack(products, dim=1), None, None


def pool_spans(pooling: str, words: Tensor, first: Tensor, last: Tensor, query: Tensor) -> Tensor:
    """The vectors of spans (M, B, s, p) of words (M, B, L, d); `first` and `last` are (M, B, s), `query` (M, d)."""
    if pooling in EDGE_POOLINGS:
        return EDGE_POOLINGS[pooling](torch, _take(words, first), _take(words, last))  # type: ignore[no-any-return]
    if pooling == "max":
        return _maximum(words, first, last)
    at = torch.arange(words.shape[2], device=words.device)
    inside = (at >= first.unsqueeze(-1)) & (at <= last.unsqueeze(-1))  # (M, B, s, L)
    if pooling == "avg":
        weights = inside.to(words.dtype) / inside.sum(dim=-1, keepdim=True)
    else:
        attended = torch.einsum("mbld,md->mbl", words, query).unsqueeze(2)
        weights = attended.masked_fill(~inside, -torch.inf).softmax(dim=-1)
    return weights @ words


def _take(words: Tensor, places: Tensor) -> Tensor:
    """The words (M, B, s, d) at places (M, B, s)."""
    return words.gather(2, places.unsqueeze(-1).expand(*places.shape, words.shape[-1]))


def _maximum(words: Tensor, first: Tensor, last: Tensor) -> Tensor:
    """The maximum of each column, of two windows of 2^k words, k from a table, that cover the span."""
    level = torch.frexp((last - first + 1).float()).exponent - 1  # (M, B, s), 2^level <= length
    tables, reach = [words], 1
    for _ in range(int(level.max())):
        longer = torch.maximum(tables[-1][:, :, :-reach], tables[-1][:, :, reach:])
        tables.append(torch.cat([longer, tables[-1][:, :, -reach:]], dim=2))  # a window beyond the text is not used
        reach *= 2
    stacked = torch.cat(tables, dim=2)  # (M, B, levels * L, d)
    offset = level.long() * words.shape[2]
    return torch.maximum(_take(stacked, offset + first), _take(stacked, offset + last - 2 ** level.long() + 1))
