"""The networks that supervised tasks train, several at a time.

`CnnNetworks` are the sentence classifier of X2Static's evaluation (Gupta & Jaggi 2021; after Kim 2014):

    h_t = ReLU(W_0 x_{t-1} + W_1 x_t + W_2 x_{t+1} + b), 100 filters;   scores = A dropout_{0.5}(max over t of h_t) + c

`TaggerNetworks` are a BiLSTM-CRF (Huang, Xu & Yu 2015): 100 units per direction, dropout 0.5 on the inputs and the
states, and the field of `crf.py`. The vector of a word is the only feature: no characters, no capitalization.

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

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from stillvec.heads.crf import Steps, best_paths, negative_log_likelihood
from stillvec.heads.sequence_batches import Sequences
from stillvec.numerics.array_types import Floats, Rows

_FILTERS, _WIDTH = 100, 3  # Kim's
_UNITS = 100  # of the tagger, per direction
_CLIP = 5.0  # norm of the tagger's gradient
_CLOSED = -1e4  # an input gate that is 0
_BETAS, _EPSILON = (0.9, 0.999), 1e-8  # Adam
_RATE, _PATIENCE, _LONGEST = 5e-3, 10, 500  # of the perceptron
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

    def train(self, rows: Rows, n_epochs: int, decay: float = 1.0) -> Iterator[None]:
        """Learn from the texts `rows`, epoch by epoch; the rate falls to `decay` of it in the last."""
        keys = [(network.vectors, network.seed) for network in self.networks]
        orders = {key: np.random.default_rng(key[1]) for key in keys}
        for epoch in range(n_epochs):
            batches = {
                key: [*self.texts.sequences[key[0]].batches(rows, self.batch_size, order)]
                for key, order in orders.items()
            }
            numbers, widths = self.texts.align([(key[0], batches[key]) for key in keys])
            salts = self._draw_salts(len(widths))
            rates = self.rates * decay ** (epoch / max(1, n_epochs - 1))
            for step, width in enumerate(widths):
                (gradient,) = torch.autograd.grad(self.losses(numbers[step], width, salts[step]).sum(), self.flat)
                self._update(gradient, rates)
                self.parameters = self._split()  # views from before the update have no valid gradient
            yield

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


class CnnNetworks(NetworkGroup):
    batch_size = 50  # Kim's

    def __init__(
        self, texts: PaddedTexts, labels: Rows, networks: Sequence[NetworkSettings], *, tuned: bool = False
    ) -> None:
        self.n_labels = int(labels.max()) + 1
        super().__init__(texts, networks, tuned=tuned)
        self.labels = torch.from_numpy(np.append(labels, 0)).to(texts.device)  # (n + 1,)

    def shapes(self, dim: int) -> Shapes:
        near, far = (_WIDTH * dim) ** -0.5, _FILTERS**-0.5
        filters = ((dim, _WIDTH * _FILTERS), near), ((_FILTERS,), near)
        return [*filters, ((_FILTERS, self.n_labels), far), ((self.n_labels,), far)]

    def scores(self, ids: Tensor, salts: Tensor | None = None) -> Tensor:
        """(M, B, labels) for rows of the tables (M, B, 1 + L + 1); with salts (M,), in training."""
        filters, bias, out, out_bias = self.parameters[:4]
        parts = self.filter_words(ids, filters).view(*ids.shape, _WIDTH, _FILTERS)
        hidden = parts[:, :, :-2, 0] + parts[:, :, 1:-1, 1] + parts[:, :, 2:, 2] + bias[:, None, None]  # (M, B, L, F)
        inside = (ids[:, :, 1:-1] != 0).unsqueeze(-1)
        pooled = (torch.relu(hidden) * inside).amax(dim=2)  # (M, B, F)
        return torch.baddbmm(out_bias.unsqueeze(1), pooled if salts is None else drop_units(pooled, salts), out)

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

    def losses(self, texts: Tensor, width: int, salts: Tensor) -> Tensor:
        scores = self.scores(self.read(texts, width), salts[0])
        labels, counted = self.labels[texts], texts < self.texts.n_texts
        losses = functional.cross_entropy(scores.flatten(0, 1), labels.flatten(), reduction="none").view_as(labels)
        return (losses * counted).sum(dim=1) / counted.sum(dim=1)

    def answer(self, texts: Tensor, width: int) -> Tensor:
        return self.scores(self.read(texts, width)).argmax(dim=2)


class TaggerNetworks(NetworkGroup):
    batch_size, max_norm = 32, _CLIP

    def __init__(
        self, texts: PaddedTexts, tags: Rows, networks: Sequence[NetworkSettings], *, tuned: bool = False
    ) -> None:
        self.n_tags = int(tags.max()) + 1
        super().__init__(texts, networks, tuned=tuned)
        first = texts.sequences[0]
        padded = Sequences(first.table, tags, first.ends).pad(np.arange(len(first)))
        self.tags = torch.from_numpy(np.pad(padded, ((0, 1), (0, 0)))).to(texts.device)  # (n + 1, L)
        self.lengths = torch.from_numpy(np.append(first.lengths, 0)).to(texts.device)  # (n + 1,) the same in every set

    def shapes(self, dim: int) -> Shapes:
        gates, tags, bound = 4 * _UNITS, self.n_tags, _UNITS**-0.5  # gates: input, forget, output, cell
        lstm: list[tuple[int, ...]] = [(dim, 2 * gates), (2, _UNITS, gates), (2, 2 * gates)]  # two biases, as in cuDNN
        return [(shape, bound) for shape in (*lstm, (2 * _UNITS, tags), (tags,), (tags,), (tags, tags), (tags,))]

    def scores(self, ids: Tensor, inside: Tensor, salts: Tensor | None = None) -> Tensor:
        """(M, B, L, tags) for rows of the tables (M, B, L); with salts (2, M), in training."""
        out, out_bias = self.parameters[3:5]
        inputs = self.embed(ids)
        states = self.run_lstm(inputs if salts is None else drop_units(inputs, salts[0]), inside)
        states = states if salts is None else drop_units(states, salts[1])
        return torch.baddbmm(out_bias.unsqueeze(1), states.flatten(1, 2), out).view(*ids.shape, -1)

    def run_lstm(self, inputs: Tensor, inside: Tensor) -> Tensor:
        """The states of both directions (M, B, L, 2 U).

        The direction that begins at the end of the padding enters a sentence with a state of zero: outside, the input
        gate is closed.
        """
        enter, recur, biases = self.parameters[:3]
        n, size, length = inside.shape
        gates = torch.baddbmm(biases.sum(dim=1, keepdim=True), inputs.flatten(1, 2), enter).view(*inside.shape, 2, -1)
        closed = torch.zeros_like(gates[0, 0, 0, 0])
        closed[:_UNITS] = _CLOSED
        gates = gates + (~inside)[..., None, None] * closed
        both = torch.stack([gates[..., 0, :], gates[..., 1, :].flip(2)])  # (2, M, B, L, 4 U)
        recur = recur.transpose(0, 1).flatten(0, 1)  # (2 M, U, 4 U)
        state = cell = inputs.new_zeros(2 * n, size, _UNITS)
        states = []
        for entering in both.flatten(0, 1).unbind(2):
            opened, update = torch.split_with_sizes(torch.baddbmm(entering, state, recur), [3 * _UNITS, _UNITS], dim=2)
            write, keep, show = opened.sigmoid().chunk(3, dim=2)
            cell = torch.addcmul(keep * cell, write, update.tanh())
            state = show * cell.tanh()
            states.append(state)
        forth, back = torch.stack(states, dim=2).view(2, n, size, length, _UNITS)
        return torch.cat([forth, back.flip(2)], dim=3)

    def losses(self, texts: Tensor, width: int, salts: Tensor) -> Tensor:
        ids, inside = self.read(texts, width), self._inside(texts, width)
        scores = self.scores(ids, inside, salts)
        losses = negative_log_likelihood(scores, self.tags[:, :width][texts], inside, self._steps())
        counted = texts < self.texts.n_texts
        return (losses * counted).sum(dim=1) / counted.sum(dim=1)

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
