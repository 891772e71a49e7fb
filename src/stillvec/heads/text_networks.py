"""The networks that classify texts.

`CnnNetworks` are the sentence classifier of X2Static's evaluation (Gupta & Jaggi 2021; after Kim 2014):

    h_t = ReLU(W_0 x_{t-1} + W_1 x_t + W_2 x_{t+1} + b), 100 filters;   features = dropout_{0.5}(max over t of h_t)

`LinearNetworks` read the mean of the known words (`PairNetworks` the means of two texts), with at most one hidden
layer; `AttentionNetworks` are an LSTM in both directions whose states have the width of the words, and attention over
them (Tutek & Šnajder 2020):

    a = softmax over t of v·tanh(W h_t + b), or of q·h_t / sqrt(d);   features = dropout_{0.5}(sum over t of a_t h_t)

The features are scored by an objective (`objectives.py`); training options (`training_options.py`) add to its loss.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from stillvec.heads.networks import (
    NetworkGroup,
    NetworkSettings,
    PaddedTexts,
    Shapes,
    drop_units,
    lstm_shapes,
    run_lstm,
)
from stillvec.heads.objectives import CrossEntropy, Objective, binary_cross_entropy
from stillvec.heads.sequence_batches import SPECIAL, SPREAD, UNKNOWN
from stillvec.heads.training_options import Adversarial, Masking, TrainingOption, Tying
from stillvec.numerics.array_types import Rows

_FILTERS, _WIDTH = 100, 3  # Kim's
_NOISE = 1e-3  # of epsilon, where the inner step of the divergence begins
_QUERY_BOUND = 3**0.5  # uniform numbers of variance 1


@dataclass(frozen=True)
class TextTraining:
    """What texts are trained for."""

    objective: Objective = field(default_factory=CrossEntropy)
    several: bool = False  # whether a text may have several labels
    options: Mapping[str, TrainingOption] = field(default_factory=dict)  # those that are active
    soft: NDArray[np.float32] | None = None  # (n, k) the labels of a teacher
    soft_weight: float = 0.0
    student_first: bool = False  # KL(head ‖ teacher)


class Pass(NamedTuple):
    """What a network makes of a batch."""

    features: Tensor  # (M, B, F)
    extra: Tensor | None = None  # (M, B) what options add to the loss


class TextNetworks(NetworkGroup):
    """Networks whose features `forward` returns; the last parameters of their own are the weights of labels."""

    batch_size = 50  # Kim's

    def __init__(
        self,
        texts: PaddedTexts,
        labels: NDArray[np.int64] | NDArray[np.float32],
        networks: Sequence[NetworkSettings],
        *,
        tuned: bool = False,
        training: TextTraining | None = None,
    ) -> None:
        """Labels are (n,) numbers, or (n, k) shares of labels, zero for a text without a label."""
        self.training = training or TextTraining()
        shares = np.eye(int(labels.max()) + 1, dtype=np.float32)[labels] if labels.ndim == 1 else labels
        self.n_labels = shares.shape[1]
        super().__init__(texts, networks, tuned=tuned)
        self.targets = torch.from_numpy(np.pad(shares, ((0, 1), (0, 0)))).to(texts.device, torch.float32)  # (n + 1, k)
        self.is_labelled = self.targets.sum(dim=1) > 0
        soft = self.training.soft
        self.soft = None if soft is None else torch.from_numpy(np.pad(soft, ((0, 1), (0, 0)))).to(texts.device)

    def own_shapes(self, dim: int) -> tuple[Shapes, int]:
        """The parameters before the weights of labels, and the number of features."""
        raise NotImplementedError

    def forward(self, ids: Tensor, salts: Tensor | None = None, inputs: Tensor | None = None) -> Pass:
        """For rows of the tables (M, B, border + L + border); with salts (2, M), in training.

        With `inputs`, these are the vectors of the rows.
        """
        raise NotImplementedError

    def shapes(self, dim: int) -> Shapes:
        own, n_features = self.own_shapes(dim)
        far = n_features**-0.5
        self.n_own = len(own)
        labels: Shapes = [((n_features, self.n_labels), far), ((self.n_labels,), far)]
        centres: Shapes = [((n_features, self.n_labels), far)] if self.training.objective.needs_centres else []
        return [*own, *labels, *centres]

    def score(self, features: Tensor) -> Tensor:
        """Of each label (M, B, k)."""
        return self.training.objective.score(features, *self.parameters[self.n_own : self.n_own + 2])

    def scores(self, ids: Tensor, salts: Tensor | None = None) -> Tensor:
        """(M, B, k) for rows of the tables (M, B, border + L + border)."""
        return self.score(self.forward(ids, salts).features)

    def losses(self, texts: Tensor, width: int, salts: Tensor) -> Tensor:
        ids, counted = self.read(texts, width), texts < self.texts.n_texts
        option = self.training.options.get("adversarial")
        if isinstance(option, Adversarial):
            losses = self._compute_perturbed(ids, texts, salts, option)
        else:
            losses = self._compute_clean(self.forward(ids, salts), texts)
        return (losses * counted).sum(dim=1) / counted.sum(dim=1)

    def _compute_clean(self, made: Pass, texts: Tensor) -> Tensor:
        """Of each text (M, B)."""
        scores = self.score(made.features)
        losses = self._compute_label(made.features, scores, texts)
        if self.soft is not None:
            losses = losses + self.training.soft_weight * self._diverge(scores, self.soft[texts])
        return losses if made.extra is None else losses + made.extra

    def _compute_label(self, features: Tensor, scores: Tensor, texts: Tensor) -> Tensor:
        targets = self.targets[texts]
        if self.training.several:
            return binary_cross_entropy(scores, targets) * self.is_labelled[texts]
        objective = self.training.objective
        centres = self.parameters[self.n_own + 2] if objective.needs_centres else None
        losses = objective.losses(features, scores, targets, centres)
        return losses if self.soft is None else losses * self.is_labelled[texts]

    def _diverge(self, scores: Tensor, soft: Tensor) -> Tensor:
        """KL between the teacher's labels (M, B, k) and the scores, in the chosen direction (M, B)."""
        return divergence(*self._logs(scores), *_soft_logs(soft, several=self.training.several), **self._direction)

    @property
    def _direction(self) -> dict[str, bool]:
        return {"student_first": self.training.student_first}

    def _logs(self, scores: Tensor) -> tuple[Tensor, ...]:
        """Logs of probabilities: of the labels, or with several labels of each and of its absence."""
        if self.training.several:
            return functional.logsigmoid(scores), functional.logsigmoid(-scores)
        return (functional.log_softmax(scores, dim=2),)

    def _compute_perturbed(self, ids: Tensor, texts: Tensor, salts: Tensor, option: Adversarial) -> Tensor:
        """ALICE: the clean loss, that of perturbed words, and the divergence between perturbed and clean scores."""
        inputs = self.embed(ids)
        epsilon = option.epsilon * SPREAD
        words = (ids != 0).unsqueeze(-1)
        made = self.forward(ids, salts, inputs)
        losses = option.clean * self._compute_clean(made, texts)
        if option.label:
            change = self._attack(ids, inputs, salts, epsilon, lambda moved: self._compute_clean(moved, texts)) * words
            losses = losses + option.label * self._compute_clean(self.forward(ids, salts, inputs + change), texts)
        if option.alpha:
            scores = self.score(made.features)
            noise = epsilon * _NOISE * drop_units(torch.ones_like(inputs), salts[1]).sub_(1)
            change = (
                self._attack(ids, inputs, salts, epsilon, lambda moved: self._disagree(moved, scores.detach()), noise)
                * words
            )
            losses = losses + option.alpha * self._disagree(self.forward(ids, salts, inputs + change), scores)
        return losses

    def _attack(
        self, ids: Tensor, inputs: Tensor, salts: Tensor, epsilon: float, loss: object, start: Tensor | None = None
    ) -> Tensor:
        """One projected step of size epsilon in the sign of the gradient, from `start`."""
        assert callable(loss)
        change = (torch.zeros_like(inputs) if start is None else start).detach().requires_grad_()
        with torch.enable_grad():
            total = loss(self.forward(ids, salts, inputs.detach() + change)).sum()
        (gradient,) = torch.autograd.grad(total, change)
        return (change + epsilon * gradient.sign()).clamp(-epsilon, epsilon).detach()

    def _disagree(self, made: Pass, scores: Tensor) -> Tensor:
        """Symmetric KL of two sets of scores, of each text (M, B)."""
        ours, theirs = self._logs(self.score(made.features)), self._logs(scores)
        return divergence(*ours, *theirs) + divergence(*theirs, *ours)

    def answer(self, texts: Tensor, width: int) -> Tensor:
        return self.scores(self.read(texts, width)).argmax(dim=2)

    def predict_scores(self, rows: Rows) -> NDArray[np.float32]:
        """The scores of texts (M, n, k)."""
        return self._predict_rows(rows, self.score)

    def predict_features(self, rows: Rows) -> NDArray[np.float32]:
        """The features of texts (M, n, F)."""
        return self._predict_rows(rows, lambda features: features)

    def _predict_rows(self, rows: Rows, convert: object) -> NDArray[np.float32]:
        assert callable(convert)
        result: NDArray[np.float32] | None = None
        place = {row: at for at, row in enumerate(rows.tolist())}
        with torch.no_grad():
            for batch in self.texts.sequences[0].batches(rows, 4 * self.batch_size):
                numbers = torch.from_numpy(batch).to(self.texts.device).expand(len(self.networks), -1)
                width = max(1, int(self.texts.sequences[0].lengths[batch].max(initial=0)))
                made = convert(self.forward(self.read(numbers, width)).features).float().cpu().numpy()
                if result is None:
                    result = np.zeros((len(self.networks), len(rows), made.shape[2]), np.float32)
                result[:, [place[row] for row in batch.tolist()]] = made
        assert result is not None
        return result


def _soft_logs(soft: Tensor, *, several: bool) -> tuple[Tensor, ...]:
    safe = soft.clamp(1e-6, 1 - 1e-6 if several else 1)
    return (safe.log(), (1 - safe).log()) if several else (safe.log(),)


def divergence(*logs: Tensor, student_first: bool = True) -> Tensor:
    """KL of the first half of the distributions from the second (M, B), or with `student_first=False` the reverse.

    Each is given by the logs of its probabilities (M, B, k); a label that may be absent has two parts.
    """
    half = len(logs) // 2
    ours, theirs = (logs[:half], logs[half:]) if student_first else (logs[half:], logs[:half])
    parts = [(p.exp() * (p - q)).sum(dim=2) for p, q in zip(ours, theirs, strict=True)]
    return torch.stack(parts).sum(dim=0)


class CnnNetworks(TextNetworks):
    def own_shapes(self, dim: int) -> tuple[Shapes, int]:
        near = (_WIDTH * dim) ** -0.5
        return [((dim, _WIDTH * _FILTERS), near), ((_FILTERS,), near)], _FILTERS

    def forward(self, ids: Tensor, salts: Tensor | None = None, inputs: Tensor | None = None) -> Pass:
        filters, bias = self.parameters[:2]
        products = self.filter_words(ids, filters) if inputs is None else torch.bmm(inputs.flatten(1, 2), filters)
        parts = products.view(*ids.shape, _WIDTH, _FILTERS)
        hidden = parts[:, :, :-2, 0] + parts[:, :, 1:-1, 1] + parts[:, :, 2:, 2] + bias[:, None, None]  # (M, B, L, F)
        inside = (ids[:, :, 1:-1] != 0).unsqueeze(-1)
        pooled = (torch.relu(hidden) * inside).amax(dim=2)  # (M, B, F)
        return Pass(pooled if salts is None else drop_units(pooled, salts[0]))

    def filter_words(self, ids: Tensor, filters: Tensor) -> Tensor:
        """The product of each word with each filter (M, B, L, 3 F)."""
        return self.filter_unique(ids, filters) if ids.device.type == "cpu" else self.filter_all(ids, filters)

    def filter_all(self, ids: Tensor, filters: Tensor) -> Tensor:
        """The products in one operation, best for a GPU."""
        return torch.bmm(self.embed(ids).flatten(1, 2), filters).view(*ids.shape, -1)

    def filter_unique(self, ids: Tensor, filters: Tensor) -> Tensor:
        """The same, with one product for all occurrences of a word in the batch, best for a CPU."""
        filtered = []
        for at, (rows, weights) in enumerate(zip(ids, filters, strict=True)):
            words, place = torch.unique(rows, return_inverse=True)
            table = self.parameters[-1][at] if self.tuned else self.tables[self.vectors[at]]
            filtered.append(functional.embedding(place, functional.embedding(words, table, padding_idx=0) @ weights))
        return torch.stack(filtered)


class LinearNetworks(TextNetworks):
    hidden = 0  # units of a layer between the mean and the scores
    n_parts = 1  # of what is read, each with the columns of a word

    def own_shapes(self, dim: int) -> tuple[Shapes, int]:
        dim *= self.n_parts
        if not self.hidden:
            return [], dim
        return [((dim, self.hidden), dim**-0.5), ((self.hidden,), dim**-0.5)], self.hidden

    def read_means(self, words: Tensor, ids: Tensor) -> Tensor:
        """(M, B, F)."""
        return mean_words(words, (ids != 0) & (ids != UNKNOWN))

    def forward(self, ids: Tensor, salts: Tensor | None = None, inputs: Tensor | None = None) -> Pass:
        means = self.read_means(self.embed(ids) if inputs is None else inputs, ids)
        if not self.hidden:
            return Pass(means)
        hidden = torch.relu(torch.baddbmm(self.parameters[1].unsqueeze(1), means, self.parameters[0]))
        return Pass(hidden if salts is None else drop_units(hidden, salts[0]))


class PairNetworks(LinearNetworks):
    """[u; v; |u - v|; u * v], the means of the words before and after the first padding."""

    n_parts = 4

    def read_means(self, words: Tensor, ids: Tensor) -> Tensor:
        known, second = (ids != 0) & (ids != UNKNOWN), (ids == 0).cumsum(dim=2) > 0
        u, v = (mean_words(words, known & side) for side in (~second, second))
        return torch.cat([u, v, (u - v).abs(), u * v], dim=2)


def mean_words(words: Tensor, chosen: Tensor) -> Tensor:
    """The mean of the chosen words of each text (M, B, d), of words (M, B, L, d)."""
    counted = chosen.unsqueeze(-1)
    return (words * counted).sum(dim=2) / counted.sum(dim=2).clamp(min=1)


class AttentionNetworks(TextNetworks):
    batch_size, max_norm = 32, 5.0
    dot = False  # the form of attention

    def own_shapes(self, dim: int) -> tuple[Shapes, int]:
        width = self.count_features(dim)
        query: Shapes = (
            [((width,), _QUERY_BOUND)]
            if self.dot
            else [((width, width), width**-0.5), ((width,), width**-0.5), ((width,), width**-0.5)]
        )
        return [*lstm_shapes(dim, (dim + 1) // 2), *query], width

    def count_features(self, dim: int) -> int:
        """The width of a state."""
        return 2 * ((dim + 1) // 2) + dim * ("concat" in self.training.options)

    def forward(self, ids: Tensor, salts: Tensor | None = None, inputs: Tensor | None = None) -> Pass:
        words = self.embed(ids) if inputs is None else inputs
        inside = ids != 0
        states = self.read_states(words, inside)
        features = torch.einsum("mbl,mblf->mbf", self.attend(states, inside), states)
        extra = None if salts is None else self._add_terms(ids, words, states, inside, salts)
        return Pass(features if salts is None else drop_units(features, salts[0]), extra)

    def read_states(self, words: Tensor, inside: Tensor) -> Tensor:
        """(M, B, L, F)."""
        states = run_lstm(words, inside, *self.parameters[:3])
        if "residual" in self.training.options:
            states = states + functional.pad(words, (0, states.shape[3] - words.shape[3]))
        return torch.cat([states, words], dim=3) if "concat" in self.training.options else states

    def attend(self, states: Tensor, inside: Tensor) -> Tensor:
        """The weight of each word (M, B, L)."""
        if self.dot:
            given = torch.einsum("mblf,mf->mbl", states, self.parameters[3]) / states.shape[3] ** 0.5
        else:
            matrix, bias, vector = self.parameters[3:6]
            given = torch.einsum("mblf,mf->mbl", torch.tanh(states @ matrix.unsqueeze(1) + bias[:, None, None]), vector)
        weights: Tensor = given.masked_fill(~inside, -1e4).softmax(dim=2)
        return weights

    def _add_terms(self, ids: Tensor, words: Tensor, states: Tensor, inside: Tensor, salts: Tensor) -> Tensor | None:
        """What tying and masking add, the same for each text of a batch (M, 1)."""
        total: Tensor | None = None
        tying, masking = self.training.options.get("tying"), self.training.options.get("masking")
        if isinstance(tying, Tying):
            distances = (states[..., : words.shape[3]] - words).square().sum(dim=3) * inside
            total = tying.weight * (distances.sum(dim=(1, 2)) / inside.sum(dim=(1, 2))).unsqueeze(1)
        if isinstance(masking, Masking):
            term = masking.weight * self._predict_masked(ids, words, inside, salts, masking.share)
            total = term if total is None else total + term
        return total

    def _predict_masked(self, ids: Tensor, words: Tensor, inside: Tensor, salts: Tensor, share: float) -> Tensor:
        """The mean loss of finding masked words, whose vectors are zero, among the rows of the batch (M, 1)."""
        drawn = drop_units(torch.ones_like(words[..., 0]), salts[1], share) == 0
        masked = drawn & inside & (ids >= SPECIAL)
        states = self.read_states(words * ~masked.unsqueeze(-1), inside)[..., : words.shape[3]]
        losses = []
        for of_network, rows, chosen, table in zip(states, ids, masked, self._tables(), strict=True):
            known, places = torch.unique(rows, return_inverse=True)
            scores = of_network[chosen] @ table[known].detach().T  # (c, u)
            losses.append(functional.cross_entropy(scores, places[chosen]) if len(scores) else scores.sum())
        return torch.stack(losses).unsqueeze(1)

    def _tables(self) -> list[Tensor]:
        """Of each network."""
        if self.tuned:
            return [*self.parameters[-1]]
        return [self.tables[number] for number in self.vectors.tolist()]
