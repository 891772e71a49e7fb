"""The networks that supervised tasks train, several at a time.

Those of texts are in `text_networks.py`. `TaggerNetworks` are a BiLSTM-CRF (Huang, Xu & Yu 2015): 100 units per
direction, dropout 0.5 on the inputs and the states, and the field of `crf.py`. The vector of a word is the only
feature: no characters, no capitalization.

A group has networks of different seeds, learning rates and sets of vectors, which make each step together: on a GPU a
step is a few large operations instead of many small ones. What a network learns depends on its own seed, rate and
vectors, not on the others in its group: batches are drawn with its seed, and which units dropout keeps is a hash of its
seed, the step and the place of the unit, the same on every device. Vectors of fewer dimensions than others in the group
are padded with zeros, whose weights never change.

`perceptron` has one hidden layer and predicts the labels of words from label counts per word:

    scores = B ReLU(A x + a) + b;   loss = mean over all occurrences of -log softmax(scores)[label]

A static vector is the same for all occurrences of a word, so label counts replace the occurrences and one full-batch
step is one epoch over the corpus. Optimizer: Adam. Early stopping after 10 steps without a lower development loss (the
paper monitors accuracy, which can stay constant for longer than that while full-batch training still improves). The
states of a teacher differ between occurrences: an epoch then has many steps, and training stops after 3 epochs without
a lower loss.
"""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from stillvec.errors import DatasetError
from stillvec.heads.crf import Steps, best_paths, negative_log_likelihood
from stillvec.heads.sequence_batches import UNKNOWN, Sequences
from stillvec.heads.training_options import Auxiliary, Experts, Invariant, TrainingOption
from stillvec.numerics.array_types import Floats, Rows
from stillvec.training.checkpoint import Checkpoint
from stillvec.training.schedule import divergence_error

_UNITS = 100  # of the tagger, per direction, and of the attention over sources
_CLIP = 5.0  # norm of the tagger's gradient
_CLOSED = -1e4  # an input gate that is 0
_BETAS, _EPSILON = (0.9, 0.999), 1e-8  # Adam
_RATE, _PATIENCE, _LONGEST = 5e-3, 10, 500  # of the perceptron
_MOST_WORDS = 1 << 15  # of a text; the others of its batch are padded to its length
_MOST_PLACES = 1 << 28  # of all texts, each padded to the length of the longest
_BATCH_RATE, _BATCH_PATIENCE = 1e-3, 3  # with batches

Shapes = list[tuple[tuple[int, ...], float]]  # of each parameter of a network: its shape and the bound of its values


@dataclass(frozen=True)
class NetworkSettings:
    """What distinguishes a network from the others in its group."""

    vectors: int  # number of the set
    seed: int
    rate: float


class PaddedTexts:
    """The same texts in several sets of vectors, as padded rows of their tables, on a device."""

    def __init__(self, sequences: Sequence[Sequences], device: torch.device, border: int = 0) -> None:
        self.sequences, self.device, self.border = sequences, device, border
        self.n_texts = len(sequences[0])
        self.width = max(1, *(int(part.lengths.max(initial=0)) for part in sequences))
        most = min(_MOST_WORDS, _MOST_PLACES // (self.n_texts + 1))
        if self.width > most:
            cure = "divide it, or choose a head that reads means of words, such as linear"
            raise DatasetError.expected(f"texts of at most {most:,} words", f"one of {self.width:,}", cure=cure)
        tables = [part.scale_table() for part in sequences]
        self.dims = [table.shape[1] for table in tables]
        ids = np.zeros((len(tables), self.n_texts + 1, self.width + 2 * border), np.int64)  # the last text is empty
        padded = np.zeros((len(tables), max(map(len, tables)), max(self.dims)), np.float32)
        for number, (part, table) in enumerate(zip(sequences, tables, strict=True)):
            block = part.pad(np.arange(self.n_texts), border)
            ids[number, :-1, : block.shape[1]] = block
            padded[number, : len(table), : table.shape[1]] = table
        self.ids = torch.from_numpy(ids).to(device)  # (S, n + 1, border + L + border)
        self.tables = torch.from_numpy(padded).to(device)  # (S, w, d)

    def align(self, of_networks: Sequence[tuple[int, Sequence[Rows]]]) -> tuple[Tensor, list[int]]:
        """The texts of each step (T, M, B) and its width, from the set and the batches of each network.

        A place without a text has the number of the empty one.
        """
        n_steps, size = len(of_networks[0][1]), max(len(batch) for _, batches in of_networks for batch in batches)
        numbers = np.full((n_steps, len(of_networks), size), self.n_texts)
        widths = np.ones(n_steps, np.int64)
        for at, (vectors, batches) in enumerate(of_networks):
            lengths = self.sequences[vectors].lengths
            for step, batch in enumerate(batches):
                numbers[step, at, : len(batch)] = batch
                widths[step] = max(widths[step], lengths[batch].max(initial=0))
        return torch.from_numpy(numbers).to(self.device), widths.tolist()


class NetworkGroup:
    """Networks of one kind; a subclass has their parameters, their loss and their predictions.

    The parameters of network m are the row m of `flat`, so that the optimizer makes one step for all.
    """

    batch_size: int
    max_norm: float | None = None  # of the gradient

    def __init__(self, texts: PaddedTexts, networks: Sequence[NetworkSettings], *, tuned: bool) -> None:
        self.texts, self.networks, self.tuned = texts, networks, tuned
        self.random = [torch.Generator().manual_seed(network.seed) for network in networks]
        self.vectors = torch.tensor([network.vectors for network in networks], device=texts.device)
        self.rates = torch.tensor([[network.rate] for network in networks], device=texts.device)  # (M, 1)
        whole = self.shapes(texts.tables.shape[2])
        self.sizes = [int(np.prod(shape)) for shape, _ in whole]
        rows = [self._draw(network, random) for network, random in zip(networks, self.random, strict=True)]
        self.flat = torch.stack(rows).to(texts.device)  # (M, P)
        self.tables = texts.tables
        if tuned:  # every network has a table of its own, the last of its parameters
            whole.append((texts.tables.shape[1:], 0.0))
            self.sizes.append(texts.tables[0].numel())
            self.flat = torch.cat([self.flat, texts.tables[self.vectors].flatten(1)], dim=1)
        self.whole = whole
        self.flat.requires_grad_()
        self.moments = (
            torch.zeros_like(self.flat, requires_grad=False),
            torch.zeros_like(self.flat, requires_grad=False),
        )
        self.n_steps = 0
        self.parameters = self._split()

    def shapes(self, dim: int) -> Shapes:
        """Of the parameters of a network on vectors of `dim` dimensions."""
        raise NotImplementedError

    def losses(self, texts: Tensor, width: int, salts: Tensor) -> Tensor:
        """The mean loss of each network on its texts (M,); texts are (M, B), `salts` (2, M) those of dropout."""
        raise NotImplementedError

    def _split(self) -> list[Tensor]:
        """Each parameter of all networks (M, ...)."""
        parts = torch.split_with_sizes(self.flat, self.sizes, dim=1)
        return [part.view(-1, *shape) for part, (shape, _) in zip(parts, self.whole, strict=True)]

    def train(self, rows: Rows, n_epochs: int, decay: float = 1.0, n_done: int = 0) -> Iterator[None]:
        """Learn from the texts `rows`, epoch by epoch; the rate falls to `decay` of it in the last.

        Of the first `n_done` epochs, whose result is there, only the random numbers are drawn again.
        """
        keys = [(network.vectors, network.seed) for network in self.networks]
        orders = {key: np.random.default_rng(key[1]) for key in keys}
        for epoch in range(n_epochs):
            batches = {
                key: [*self.texts.sequences[key[0]].batches(rows, self.batch_size, order)]
                for key, order in orders.items()
            }
            numbers, widths = self.texts.align([(key[0], batches[key]) for key in keys])
            salts = self._draw_salts(len(widths))
            if epoch < n_done:
                continue
            rates = self.rates * decay ** (epoch / max(1, n_epochs - 1))
            for step, width in enumerate(widths):
                (gradient,) = torch.autograd.grad(self.losses(numbers[step], width, salts[step]).sum(), self.flat)
                self._update(gradient, rates)
                self.parameters = self._split()  # views from before the update have no valid gradient
            yield

    def train_best(
        self,
        rows: Rows,
        n_epochs: int,
        measure: Callable[[], Floats],
        *,
        decay: float = 1.0,
        patience: int | None = None,
        checkpoint: Checkpoint | None = None,
    ) -> Generator[float, None, Floats]:
        """Train, and end with the weights of each network's best epoch; returns its quality (M,).

        `measure` gives the quality of each network on development items (M,). Training stops early after `patience`
        epochs in which no network became better. Yields the fraction done.
        """
        state = _TrainingState(self)
        n_done = checkpoint.restore(state) if checkpoint else 0
        state.continue_training()
        for epoch, _ in enumerate(self.train(rows, n_epochs, decay, n_done), n_done + 1):
            if not bool(torch.isfinite(self.flat).all()):
                raise divergence_error(float(self.rates.max()), "a weight is not finite")
            state.compare(measure())
            if checkpoint:
                checkpoint.write(state, epoch)
            yield epoch / n_epochs
            if patience is not None and int(state.n_stale) >= patience:
                break
        self.set_weights(state.best)
        return state.quality.numpy()

    def copy_weights(self) -> Tensor:
        """The parameters of each network (M, P), as they are now."""
        return self.flat.detach().clone()

    def set_weights(self, weights: Tensor) -> None:
        self.flat.data.copy_(weights)
        self.parameters = self._split()

    def read(self, texts: Tensor, width: int) -> Tensor:
        """Rows of the tables (M, B, border + width + border)."""
        block = self.texts.ids[:, :, : width + 2 * self.texts.border]
        return block[self.vectors.unsqueeze(1), texts]

    def embed(self, ids: Tensor) -> Tensor:
        """The vectors of rows (M, ..., d)."""
        if not self.tuned:
            return self.tables[self.vectors.view(-1, *[1] * (ids.ndim - 1)), ids]
        own = torch.arange(len(ids), device=ids.device).view(-1, *[1] * (ids.ndim - 1))
        return self.parameters[-1][own, ids] * (ids != 0).unsqueeze(-1)  # padding has no gradient

    def predict(self, rows: Rows) -> Tensor:
        """What each network says of each text (M, n, ...)."""
        place = torch.full((self.texts.n_texts + 1,), len(rows), device=self.texts.device)
        place[torch.from_numpy(rows).to(self.texts.device)] = torch.arange(len(rows), device=self.texts.device)
        size = 4 * self.batch_size
        sets = [network.vectors for network in self.networks]
        batches = {number: [*self.texts.sequences[number].batches(rows, size)] for number in sets}
        numbers, widths = self.texts.align([(number, batches[number]) for number in sets])
        own = torch.arange(len(self.networks), device=self.texts.device).unsqueeze(1)
        said: Tensor | None = None
        with torch.no_grad():
            for step, width in enumerate(widths):
                answers = self.answer(numbers[step], width)
                if said is None:
                    shape = [self.texts.width] * (answers.ndim - 2)
                    said = answers.new_zeros(len(self.networks), len(rows) + 1, *shape)
                block = said if answers.ndim == 2 else said[:, :, :width]
                block[own, place[numbers[step]]] = answers
        assert said is not None
        return said[:, :-1]

    def answer(self, texts: Tensor, width: int) -> Tensor:
        """What each network says of each text of a batch (M, B, ...)."""
        raise NotImplementedError

    def _draw(self, network: NetworkSettings, random: torch.Generator) -> Tensor:
        """The parameters of a network (P,): uniform up to their bounds, zero where its vectors are padded."""
        parts = []
        own, whole = self.shapes(self.texts.dims[network.vectors]), self.shapes(self.texts.tables.shape[2])
        for (shape, bound), (padded, _) in zip(own, whole, strict=True):
            part = torch.zeros(padded)
            part[tuple(map(slice, shape))] = (2 * torch.rand(shape, generator=random) - 1) * bound
            parts.append(part.flatten())
        return torch.cat(parts)

    def _draw_salts(self, n_steps: int) -> Tensor:
        """Random numbers for the dropout of each step and network (T, 2, M)."""
        least, most = torch.iinfo(torch.int32).min, torch.iinfo(torch.int32).max
        salts = [torch.randint(least, most, (n_steps, 2), generator=random) for random in self.random]
        return torch.stack(salts, dim=2).to(self.texts.device, torch.int32)

    @torch.no_grad()
    def _update(self, gradient: Tensor, rates: Tensor) -> None:
        """One step of Adam (Kingma & Ba 2015), with the gradient of each network clipped on its own."""
        if self.max_norm is not None:
            norms = gradient.norm(dim=1, keepdim=True)
            gradient = gradient * (self.max_norm / (norms + 1e-6)).clamp(max=1.0)
        self.n_steps += 1
        first, second = self.moments
        first.lerp_(gradient, 1 - _BETAS[0])
        second.mul_(_BETAS[1]).addcmul_(gradient, gradient, value=1 - _BETAS[1])
        unbiased = [1 - beta**self.n_steps for beta in _BETAS]
        scale = (second / unbiased[1]).sqrt_().add_(_EPSILON)
        self.flat -= rates / unbiased[0] * first / scale


class _TrainingState:
    """What training changes, and the best weights so far, for checkpoints."""

    def __init__(self, group: NetworkGroup) -> None:
        self.group = group
        self.best = group.copy_weights()
        self.quality = torch.full((len(group.networks),), -1.0, dtype=torch.float64)
        self.n_stale, self.n_steps = torch.zeros((), dtype=torch.int64), torch.zeros((), dtype=torch.int64)

    def tensors(self) -> dict[str, Tensor]:
        self.n_steps.fill_(self.group.n_steps)
        first, second = self.group.moments
        own = {"best": self.best, "quality": self.quality, "stale": self.n_stale, "steps": self.n_steps}
        return {"flat": self.group.flat.detach(), "first": first, "second": second, **own}

    def continue_training(self) -> None:
        """Take over what a checkpoint filled in."""
        self.group.n_steps = int(self.n_steps)
        self.group.parameters = self.group._split()

    def compare(self, quality: Floats) -> None:
        now = torch.from_numpy(np.asarray(quality, np.float64))
        better = now > self.quality
        self.quality[better] = now[better]
        on_device = better.to(self.best.device)
        self.best[on_device] = self.group.copy_weights()[on_device]
        self.n_stale.fill_(0 if bool(better.any()) else int(self.n_stale) + 1)


def drop_units(x: Tensor, salts: Tensor, rate: float = 0.5) -> Tensor:
    """Dropout on x (M, ...): whether a number is kept is a hash of its place and of its network's salt (M,)."""
    keys = salts
    for size in x.shape[1:]:
        keys = _mix(keys.unsqueeze(-1) + torch.arange(size, dtype=torch.int32, device=x.device) * -1640531527)
    return x * (keys < round((0.5 - rate) * 2**32)) * (1 / (1 - rate))


def _mix(keys: Tensor) -> Tensor:
    """A hash of int32 (after MurmurHash3's finalizer); changes its argument."""
    keys.bitwise_xor_(keys >> 16).mul_(-2048144789)
    keys.bitwise_xor_(keys >> 13).mul_(-1028477387)
    return keys.bitwise_xor_(keys >> 16).mul_(668265263)


class TaggerNetworks(NetworkGroup):
    """BiLSTM-CRFs; options add a field of entities without types, and experts of types (Liu, Winata & Fung 2020).

    m_t = sum over types a of g_t[a] (A_a h_t + b_a), g_t = softmax(G h_t + b);   the field scores m_t

    Where the table has several sources side by side, of `widths`, a word is the sum of its sources, by attention
    without context (Lange, Strötgen & Adel 2020):

    x_i = tanh(Q_i e_i + b_i), to the largest width;   a = softmax over i of v tanh(W x_i);   e = sum over i of a_i x_i

    A source that lacks the word has no weight. `invariant` maps words by `tanh(x + x A)`; another network tells their
    language from it, and its gradient is reversed before A (Ganin & Lempitsky 2015; Lange et al. 2020).
    """

    batch_size, max_norm = 32, _CLIP

    def __init__(
        self,
        texts: PaddedTexts,
        tags: Rows,
        networks: Sequence[NetworkSettings],
        *,
        tuned: bool = False,
        names: Sequence[str] = (),
        options: Mapping[str, TrainingOption] | None = None,
        widths: Sequence[int] = (),
        languages: Rows | None = None,
    ) -> None:
        """Tags are those of all words (N,); `names`, of the tags, are needed by options.

        Languages are those of texts (n,), negative for texts that nothing is learnt from; for `invariant`.
        """
        self.n_tags = len(names) or int(tags.max()) + 1
        self.options, self.widths = options or {}, [*widths]
        self.types, self.marks = divide_tags(names)
        first = texts.sequences[0]
        self.pools = _pool_words(first, languages) if "invariant" in self.options and languages is not None else []
        super().__init__(texts, networks, tuned=tuned)
        self.pools = [pool.to(texts.device) for pool in self.pools]
        padded = Sequences(first.table, tags, first.ends).pad(np.arange(len(first)))
        self.tags = torch.from_numpy(np.pad(padded, ((0, 1), (0, 0)))).to(texts.device)  # (n + 1, L)
        self.lengths = torch.from_numpy(np.append(first.lengths, 0)).to(texts.device)  # (n + 1,) the same in every set

    def shapes(self, dim: int) -> Shapes:
        tags, bound, wide = self.n_tags, _UNITS**-0.5, 2 * _UNITS
        experts, invariant = self.options.get("experts"), self.options.get("invariant")
        self.places: dict[str, int] = {}  # of the parameters that not every tagger has
        size = experts.size if isinstance(experts, Experts) else wide
        n_inputs = max(self.widths, default=dim)
        shapes = [*lstm_shapes(n_inputs, _UNITS), *_bound(bound, (size, tags), (tags,), (tags,), (tags, tags), (tags,))]
        if isinstance(experts, Experts):
            n_types = int(self.types.max()) + 1
            names = ("experts", "expert_bias", "gate", "gate_bias")
            self.places |= {name: len(shapes) + place for place, name in enumerate(names)}
            shapes += _bound(bound, (n_types, wide, size), (n_types, size), (wide, n_types), (n_types,))
        if self.widths:
            names = ("project", "project_bias", "attend", "attend_value")
            self.places |= {name: len(shapes) + place for place, name in enumerate(names)}
            shapes += _bound((3 * len(self.widths) / dim) ** 0.5, (dim, n_inputs), (len(self.widths), n_inputs))
            shapes += [((n_inputs, _UNITS), n_inputs**-0.5), ((_UNITS,), bound)]
        if isinstance(invariant, Invariant):
            self.places["map"] = len(shapes)
            shapes.append(((n_inputs, n_inputs), 0.0))  # begins as tanh(x)
            self.judge_place = len(shapes)
            n_languages = len(self.pools)
            shapes += _bound(n_inputs**-0.5, (n_inputs, invariant.hidden), (invariant.hidden,))
            shapes += _bound(invariant.hidden**-0.5, (invariant.hidden, n_languages), (n_languages,))
        self.auxiliary_place = len(shapes)
        if "auxiliary" in self.options:
            marks = int(self.marks.max()) + 1
            shapes += _bound(bound, (wide, marks), (marks,), (marks,), (marks, marks), (marks,))
        return shapes

    def read_states(self, ids: Tensor, inside: Tensor, salts: Tensor | None = None) -> Tensor:
        """(M, B, L, 2 U) for rows of the tables (M, B, L); with salts (2, M), in training."""
        inputs = self.read_words(ids)
        inputs = inputs if salts is None else drop_units(inputs, salts[0])
        states = run_lstm(inputs, inside, *self.parameters[:3])
        return states if salts is None else drop_units(states, salts[1])

    def read_words(self, ids: Tensor) -> Tensor:
        """What the LSTM reads (M, B, L, d), for rows of the tables."""
        x = self.embed(ids)
        if self.widths:
            states, weights = self.weigh_sources(x)
            x = (states * weights.unsqueeze(4)).sum(dim=3)
        if "map" in self.places:
            x = torch.tanh(x + torch.einsum("mbld,mde->mble", x, self.parameters[self.places["map"]]))
        return x

    def weigh_sources(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The projected sources of words (M, B, L, S, E) and their weights (M, B, L, S)."""
        project, bias, attend, value = (
            self.parameters[self.places[name]] for name in ("project", "project_bias", "attend", "attend_value")
        )
        parts, maps = (torch.split_with_sizes(part, self.widths, dim) for part, dim in ((x, 3), (project, 1)))
        projected = [torch.einsum("mbld,mde->mble", part, map_) for part, map_ in zip(parts, maps, strict=True)]
        states = torch.tanh(torch.stack(projected, dim=3) + bias[:, None, None])
        hidden = torch.tanh(torch.einsum("mblse,meh->mblsh", states, attend))
        scores = torch.einsum("mblsh,mh->mbls", hidden, value)
        has = torch.stack([part.any(dim=3) for part in parts], dim=3)
        has = has | ~has.any(dim=3, keepdim=True)
        return states, scores.masked_fill(~has, _CLOSED).softmax(dim=3)

    def tell_languages(self, salts: Tensor) -> Tensor:
        """The loss of telling the language of words of each (M,), whose gradient is reversed before the map."""
        option = self.options["invariant"]
        assert isinstance(option, Invariant)
        drawn = [
            pool[draw_numbers(salts + number, option.n_words, len(pool))] for number, pool in enumerate(self.pools)
        ]
        features = self.read_words(torch.stack(drawn, dim=1))  # (M, languages, words, d)
        features = (1 + option.weight) * features.detach() - option.weight * features  # the same, reversed
        first, first_bias, second, second_bias = self.parameters[self.judge_place : self.judge_place + 4]
        scores = _project(_project(features, first, first_bias).relu(), second, second_bias)
        gold = torch.arange(len(self.pools), device=salts.device).view(1, -1, 1).expand(scores.shape[:3])
        return functional.cross_entropy(scores.movedim(3, 1), gold, reduction="none").mean(dim=(1, 2))

    def scores(self, ids: Tensor, inside: Tensor, salts: Tensor | None = None) -> Tensor:
        """(M, B, L, tags)."""
        return self.score(self.read_states(ids, inside, salts))

    def score(self, states: Tensor) -> Tensor:
        features = self.mix_experts(states, self.score_gate(states).softmax(dim=3)) if "gate" in self.places else states
        return _project(features, *self.parameters[3:5])

    def score_gate(self, states: Tensor) -> Tensor:
        """(M, B, L, types)."""
        places = self.places
        return _project(states, self.parameters[places["gate"]], self.parameters[places["gate_bias"]])

    def mix_experts(self, states: Tensor, gate: Tensor) -> Tensor:
        """The features of words (M, B, L, size), by weights of experts (M, B, L, types)."""
        experts, bias = (self.parameters[self.places[name]] for name in ("experts", "expert_bias"))
        given = torch.einsum("mblf,mefg->mbleg", states, experts) + bias[:, None, None]
        return torch.einsum("mbleg,mble->mblg", given, gate)

    def losses(self, texts: Tensor, width: int, salts: Tensor) -> Tensor:
        ids, inside = self.read(texts, width), self._inside(texts, width)
        states, tags = self.read_states(ids, inside, salts), self.tags[:, :width][texts]
        losses = negative_log_likelihood(self.score(states), tags, inside, self._steps())
        experts, auxiliary = self.options.get("experts"), self.options.get("auxiliary")
        if isinstance(experts, Experts) and experts.weight:
            logs = self.score_gate(states).log_softmax(dim=3)
            known = logs.gather(3, self.types.to(tags.device)[tags].unsqueeze(3)).squeeze(3)
            losses = losses - experts.weight * (known * inside).sum(dim=2)
        if isinstance(auxiliary, Auxiliary):
            weights, bias, *field = self.parameters[self.auxiliary_place : self.auxiliary_place + 5]
            begin, step, end = field
            marks = self.marks.to(tags.device)[tags]
            found = negative_log_likelihood(_project(states, weights, bias), marks, inside, (begin, step, end))
            losses = losses + auxiliary.weight * found
        counted = texts < self.texts.n_texts
        total = (losses * counted).sum(dim=1) / counted.sum(dim=1)
        return total + self.tell_languages(salts[0]) if "invariant" in self.options else total

    def answer(self, texts: Tensor, width: int) -> Tensor:
        inside = self._inside(texts, width)
        return best_paths(self.scores(self.read(texts, width), inside), inside, self._steps()).to(torch.int16)

    def predict_words(self, rows: Rows) -> NDArray[np.int64]:
        """The tags of the words of sentences, one sentence after another (M, W)."""
        lengths = self.lengths[torch.from_numpy(rows).to(self.texts.device)]
        inside = torch.arange(self.texts.width, device=self.texts.device) < lengths.unsqueeze(1)
        return self.predict(rows)[:, inside].long().cpu().numpy()

    def _inside(self, texts: Tensor, width: int) -> Tensor:
        return torch.arange(width, device=texts.device) < self.lengths[texts].unsqueeze(-1)

    def _steps(self) -> Steps:
        begin, step, end = self.parameters[5:8]
        return begin, step, end


def _pool_words(sequences: Sequences, languages: Rows) -> list[Tensor]:
    """The rows of the known words of the texts of each language, as often as they occur."""
    of_word = languages[sequences.text]
    known = sequences.ids != UNKNOWN
    return [torch.from_numpy(sequences.ids[known & (of_word == number)]) for number in range(languages.max() + 1)]


def draw_numbers(salts: Tensor, n: int, limit: int) -> Tensor:
    """Numbers below a limit (M, n), hashes of their place and of the salt of their network (M,)."""
    keys = _mix(salts.unsqueeze(1) + torch.arange(n, dtype=torch.int32, device=salts.device) * -1640531527)
    return keys.long().remainder(limit)


def divide_tags(names: Sequence[str]) -> tuple[Tensor, Tensor]:
    """The number of the type of each tag (B-PER and I-PER have one), and of its mark (B, I, O) without the type."""
    types, marks = [name.partition("-")[2] or name for name in names], [name.partition("-")[0] for name in names]
    places = ({name: place for place, name in enumerate(sorted(set(parts)))} for parts in (types, marks))
    numbered = [[place[name] for name in parts] for place, parts in zip(places, (types, marks), strict=True)]
    return torch.tensor(numbered[0]), torch.tensor(numbered[1])


def _bound(bound: float, *shapes: tuple[int, ...]) -> Shapes:
    return [(shape, bound) for shape in shapes]


def _project(x: Tensor, weights: Tensor, bias: Tensor) -> Tensor:
    """x W + b for each network: (M, B, L, F) → (M, B, L, k)."""
    return torch.baddbmm(bias.unsqueeze(1), x.flatten(1, 2), weights).view(*x.shape[:3], -1)


def lstm_shapes(dim: int, n_units: int) -> Shapes:
    """Of the parameters of an LSTM in both directions: of the inputs, the states, and the biases."""
    gates = 4 * n_units  # input, forget, output, cell
    shapes = (dim, 2 * gates), (2, n_units, gates), (2, 2 * gates)  # two biases, as in cuDNN
    return [(shape, n_units**-0.5) for shape in shapes]


def run_lstm(inputs: Tensor, inside: Tensor, enter: Tensor, recur: Tensor, biases: Tensor) -> Tensor:
    """The states of both directions (M, B, L, 2 U) for inputs (M, B, L, d).

    The direction that begins at the end of the padding enters a sentence with a state of zero: outside, the input gate
    is closed.
    """
    n, size, length = inside.shape
    n_units = recur.shape[2]
    gates = torch.baddbmm(biases.sum(dim=1, keepdim=True), inputs.flatten(1, 2), enter).view(*inside.shape, 2, -1)
    closed = torch.zeros_like(gates[0, 0, 0, 0])
    closed[:n_units] = _CLOSED
    gates = gates + (~inside)[..., None, None] * closed
    both = torch.stack([gates[..., 0, :], gates[..., 1, :].flip(2)])  # (2, M, B, L, 4 U)
    recur = recur.transpose(0, 1).flatten(0, 1)  # (2 M, U, 4 U)
    forth, back = scan_lstm(both.flatten(0, 1), recur).view(2, n, size, length, n_units)
    return torch.cat([forth, back.flip(2)], dim=3)


def scan_lstm(gates: Tensor, recur: Tensor) -> Tensor:
    """The states of LSTMs (K, B, L, U) in one direction, for what the inputs give to the gates (K, B, L, 4 U)."""
    n_units = recur.shape[1]
    state = cell = gates.new_zeros(*gates.shape[:2], n_units)
    states = []
    for entering in gates.unbind(2):
        opened, update = torch.split_with_sizes(torch.baddbmm(entering, state, recur), [3 * n_units, n_units], dim=2)
        write, keep, show = opened.sigmoid().chunk(3, dim=2)
        cell = torch.addcmul(keep * cell, write, update.tanh())
        state = show * cell.tanh()
        states.append(state)
    return torch.stack(states, dim=2)


def perceptron(
    x: NDArray[np.float32],
    seen: Floats,
    judged: Floats,
    hidden: int,
    seed: int,
    batches: tuple[int, torch.device] | None = None,
) -> Rows:
    """Predict a label per row of x (w, d): training counts `seen` (w, k), early stopping on counts `judged` (w, k).

    With `batches`, an epoch is many steps, each with so many rows, on a device: for tables of occurrences.
    """
    size, device = batches or (len(x), torch.device("cpu"))
    generator = torch.Generator().manual_seed(seed)
    layers = nn.Linear(x.shape[1], hidden), nn.Linear(hidden, seen.shape[1])
    network = nn.Sequential(layers[0], nn.ReLU(), layers[1])
    with torch.no_grad():
        for layer in layers:
            for tensor in layer.parameters():
                tensor.copy_((2 * torch.rand(tensor.shape, generator=generator) - 1) * layer.in_features**-0.5)
    network = network.to(device)
    in_train, in_dev = (np.flatnonzero(counts.sum(axis=1) > 0) for counts in (seen, judged))
    inputs = {part: torch.from_numpy(x[rows]).to(device) for part, rows in (("train", in_train), ("dev", in_dev))}
    counts = torch.from_numpy((seen[in_train] / seen.sum()).astype(np.float32)).to(device)
    weights = torch.from_numpy(judged[in_dev].astype(np.float32)).to(device)
    optimizer = torch.optim.Adam(network.parameters(), lr=_RATE if batches is None else _BATCH_RATE)
    best, n_stale, weights_of_best = np.inf, 0, network.state_dict()
    for _ in range(_LONGEST):
        order = torch.randperm(len(in_train), generator=generator) if batches else torch.arange(len(in_train))
        for rows in torch.split(order, size):
            optimizer.zero_grad()
            taken = inputs["train"][rows] if batches else inputs["train"]
            logs = torch.log_softmax(network(taken), dim=1)
            loss = -(logs * counts[rows]).sum() * len(order) / len(rows) if batches else -(logs * counts).sum()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        with torch.no_grad():
            dev_loss, n_stale = -float((torch.log_softmax(network(inputs["dev"]), dim=1) * weights).sum()), n_stale + 1
            if dev_loss < best:
                best, n_stale = dev_loss, 0
                weights_of_best = {name: tensor.clone() for name, tensor in network.state_dict().items()}
        if n_stale == (_PATIENCE if batches is None else _BATCH_PATIENCE):
            break
    network.load_state_dict(weights_of_best)
    with torch.no_grad():
        parts = [network(block.to(device)).argmax(dim=1).cpu() for block in torch.split(torch.from_numpy(x), 1 << 16)]
    return np.asarray(torch.cat(parts).numpy(), np.int64)
