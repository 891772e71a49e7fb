"""Speaker and listener (Gupta et al. 2020): how many bits and parameters does a compositional code need?

    python recipes/emergent_language.py train [--concepts 3] [--values 4] [--bits 4 5 6 7 8] [--widths 4 8 16 32]
        [--seeds 5] [--steps 3000] [--seconds 600] [--out out/emergent.jsonl]
    python recipes/emergent_language.py show out/emergent.jsonl [--figure docs/figures/emergent.svg]

A speaker turns a string of concepts into bits, a listener turns the bits back into the string. All lengths and seeds
of one width are trained at once, on a GPU as a graph. `train` appends a line of JSON per model, `show` prints the table
and draws the figure. The defaults are a small language of 64 strings for two CPU cores; the paper's has `--concepts 6
--values 10 --bits 19 20 21 22 23 24 25`.

Not in the paper: the weight of the KL term (`--beta`), the sizes of embeddings, batch and learning rate.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from scores import print_header, print_row, split_cells
from torch import Tensor

from stillvec.analysis import measure_residual_entropy
from stillvec.training.step_graph import Inputs, StepGraph

HEADERS = {
    "emergent": "| bits | parameters | solved | accuracy | worst | new strings | precision | recall | entropy | worst |"
}
_CHUNK = 20  # steps whose noise is drawn at once
_TESTED = 2000  # strings
_BETA1, _BETA2 = 0.9, 0.999  # Adam


@dataclass(frozen=True)
class Language:
    concepts: int
    values: int
    held_out: float  # share of the strings; 0: all are trained
    seed: int = 0

    def draw(self) -> tuple[Tensor, Tensor]:
        """Training and held-out strings (n, concepts)."""
        size = self.values**self.concepts
        order = torch.from_numpy(np.random.default_rng(self.seed).permutation(size))
        strings = torch.stack([order // self.values**place % self.values for place in range(self.concepts)], 1)
        n_held = round(self.held_out * size)
        return strings[n_held:], strings[:n_held] if n_held else strings


@dataclass(frozen=True)
class Settings:
    width: int  # units of both LSTMs
    embedding: int = 16  # per symbol and per bit
    batch: int = 256
    rate: float = 2e-3
    beta: float = 0.01  # weight of the KL divergence from the prior
    gain: float = 10.0  # of the speaker's first odds: with small ones, bits are noise, and few concepts are ever learnt


class Ensemble:
    """Speakers and listeners of several lengths and seeds, trained at once; shorter codes are masked."""

    def __init__(self, language: Language, settings: Settings, lengths: list[int], seed: int, device: str) -> None:
        self.language, self.settings, self.lengths, self.device = language, settings, lengths, device
        self.longest, n = max(lengths), len(lengths)
        self.mask = (
            (torch.arange(self.longest) < torch.tensor(lengths)[:, None]).float().to(device)[:, None]
        )  # (M, 1, L)
        n_symbols, e, h = language.concepts * language.values, settings.embedding, settings.width
        random = torch.Generator().manual_seed(seed)

        def draw(*shape: int, scale: float) -> Tensor:
            return (torch.randn(n, *shape, generator=random) * scale).to(device).requires_grad_()

        self.params = {
            "symbols": draw(n_symbols, e, scale=1.0),
            "bits": draw(2, e, scale=1.0),
            "prior": draw(self.longest, scale=0.0),
            "temperature": draw(1, 1, scale=0.0),
        }
        ends = {"speaker": (language.concepts * e, 1), "listener": (self.longest * e, n_symbols)}
        for name, (n_inputs, n_outputs) in ends.items():
            self.params |= {
                f"{name}.first": draw(n_inputs, h, scale=1 / math.sqrt(n_inputs)),
                f"{name}.input": draw(n_inputs, 4 * h, scale=1 / math.sqrt(n_inputs)),
                f"{name}.state": draw(h, 4 * h, scale=1 / math.sqrt(h)),
                f"{name}.bias": draw(1, 4 * h, scale=0.0),
                f"{name}.output": draw(h, n_outputs, scale=(settings.gain if name == "speaker" else 1) / math.sqrt(h)),
                f"{name}.shift": draw(1, n_outputs, scale=0.0),
            }
        tensors = [*self.params.values()]
        self.moments = [[torch.zeros_like(tensor) for tensor in tensors] for _ in range(2)]
        self.n_steps = torch.zeros(1, device=device)
        state = [tensor.detach() for tensor in tensors] + self.moments[0] + self.moments[1] + [self.n_steps]
        self.graph = StepGraph(self._step, state)

    def count_parameters(self, length: int) -> int:
        """Of one model with a code of this length, without what the mask leaves out."""
        own = sum(tensor[0].numel() for tensor in self.params.values())
        unused = self.longest - length
        return own - unused * (1 + 5 * self.settings.embedding * self.settings.width)

    def train(self, strings: Tensor, n_steps: int, seconds: float, random: torch.Generator) -> None:
        """For so many steps, or fewer if they take longer; the learning rate decreases to zero."""
        strings, begun = strings.to(self.device), time.perf_counter()
        shape = (_CHUNK, len(self.lengths), self.settings.batch, self.longest)
        done = 0.0
        for first in range(0, n_steps, _CHUNK):
            if self.device == "cuda":
                torch.cuda.synchronize()
            done = max(first / n_steps, (time.perf_counter() - begun) / seconds)
            if done >= 1:
                return
            rates = torch.full((_CHUNK,), self.settings.rate * min(1.0, 2 * (1 - done)), device=self.device)
            rows = torch.randint(len(strings), (_CHUNK, self.settings.batch), generator=random, device=self.device)
            uniform = torch.rand(shape, generator=random, device=self.device).clamp(1e-6, 1 - 1e-6)
            self.graph.run({"strings": strings[rows], "noise": torch.logit(uniform), "rate": rates}, {})

    def speak(self, strings: Tensor) -> Tensor:
        """The log odds of each bit (M, B, L)."""
        place = torch.arange(self.language.concepts, device=self.device) * self.language.values
        embedded = self.params["symbols"][:, strings + place].flatten(2)  # (M, B, concepts * e)
        return self._recur("speaker", embedded, self.longest).squeeze(3).transpose(1, 2)

    def listen(self, bits: Tensor) -> Tensor:
        """The log probability of each symbol at each place (M, B, concepts, symbols)."""
        off, on = self.params["bits"][:, :1, None], self.params["bits"][:, 1:, None]  # (M, 1, 1, e)
        embedded = (off + bits[..., None] * (on - off)) * self.mask[..., None]  # (M, B, L, e)
        return F.log_softmax(self._recur("listener", embedded.flatten(2), self.language.concepts), 3).transpose(1, 2)

    def _recur(self, name: str, inputs: Tensor, n_steps: int) -> Tensor:
        """Outputs of an LSTM that reads the same input at each step (M, steps, B, outputs).

        Its first state is a function of the input, too: from zeros, the first concepts are learnt last, or never.
        """
        part = {key.partition(".")[2]: tensor for key, tensor in self.params.items() if key.startswith(name)}
        fixed = torch.baddbmm(part["bias"], inputs, part["input"])  # (M, B, 4h)
        state = cell = torch.tanh(torch.bmm(inputs, part["first"]))
        outputs = []
        for _ in range(n_steps):
            gates = torch.baddbmm(fixed, state, part["state"])
            keep, write, read, new = gates.chunk(4, 2)
            cell = torch.sigmoid(keep + 1) * cell + torch.sigmoid(write) * torch.tanh(new)
            state = torch.sigmoid(read) * torch.tanh(cell)
            outputs.append(state)
        stacked = torch.stack(outputs, 1)  # (M, steps, B, h)
        return (stacked.flatten(1, 2) @ part["output"] + part["shift"]).unflatten(1, stacked.shape[1:3])

    def _loss(self, strings: Tensor, noise: Tensor) -> Tensor:
        """Reconstruction and KL divergence of each model (M,), straight through the sampled bits."""
        odds = self.speak(strings)
        soft = torch.sigmoid((odds + noise) / (F.softplus(self.params["temperature"]) + 0.3))
        bits = (soft > 0.5).float() + soft - soft.detach()
        place = torch.arange(self.language.concepts, device=self.device) * self.language.values
        target = (strings + place)[None, :, :, None].expand(len(self.lengths), -1, -1, -1)
        reconstruction = -self.listen(bits).gather(3, target).sum((2, 3)).mean(1)
        prior = self.params["prior"][:, None]
        on = torch.sigmoid(odds)
        kl = on * (F.logsigmoid(odds) - F.logsigmoid(prior)) + (1 - on) * (F.logsigmoid(-odds) - F.logsigmoid(-prior))
        return reconstruction + self.settings.beta * (kl * self.mask).sum(2).mean(1)

    def _step(self, inputs: Inputs) -> Tensor:
        losses = self._loss(inputs["strings"], inputs["noise"])
        tensors = [*self.params.values()]
        gradients = torch.autograd.grad(losses.sum(), tensors)
        with torch.no_grad():
            self.n_steps += 1
            for tensor, gradient, first, second in zip(tensors, gradients, *self.moments, strict=True):
                first.mul_(_BETA1).add_(gradient, alpha=1 - _BETA1)
                second.mul_(_BETA2).addcmul_(gradient, gradient, value=1 - _BETA2)
                scale = (second / (1 - _BETA2**self.n_steps)).sqrt_().add_(1e-8)
                tensor.sub_(inputs["rate"] * first / (1 - _BETA1**self.n_steps) / scale)
        return losses.detach().mean()

    @torch.no_grad()
    def test(self, trained: Tensor, held_out: Tensor) -> list[dict[str, Any]]:
        """What each model can do."""
        facts: list[dict[str, Any]] = [{"bits": length} for length in self.lengths]
        for name, strings in (("trained", trained[:_TESTED]), ("held out", held_out[:_TESTED])):
            strings = strings.to(self.device)
            bits = (self.speak(strings) > 0).float()
            told = self.listen(bits)
            place = torch.arange(self.language.concepts, device=self.device) * self.language.values
            right = (told.argmax(3) == strings + place).all(2).float().mean(1).tolist()
            target = (strings + place)[None, :, :, None].expand(len(self.lengths), -1, -1, -1)
            recall = told.gather(3, target).sum((2, 3)).mean(1).tolist()
            for model, fact in enumerate(facts):
                fact |= {f"accuracy, {name}": right[model], f"recall, {name}": recall[model]}
        prior = torch.sigmoid(self.params["prior"])[:, None].expand(-1, _TESTED, -1)
        random = torch.Generator(self.device).manual_seed(0)
        sampled = self.listen((torch.rand(prior.shape, generator=random, device=self.device) < prior).float())
        own = torch.arange(self.language.concepts, device=self.device)
        precision = (sampled.argmax(3) // self.language.values == own).all(2).float().mean(1).tolist()
        strings = torch.cat([held_out, trained])[:_TESTED].to(self.device)
        bits = self.speak(strings) > 0
        codes = [bits[model, :, :length].cpu().numpy().astype(int) for model, length in enumerate(self.lengths)]
        entropies = measure_all(codes, strings.cpu().numpy())
        for fact, share, entropy in zip(facts, precision, entropies, strict=True):
            fact |= {"precision": share} | entropy
        return facts


def measure(codes: np.ndarray, strings: np.ndarray) -> dict[str, float]:
    found = measure_residual_entropy(codes, strings)
    return {"entropy": found.value, "entropy, shuffled": found.shuffled}


def measure_all(codes: list[np.ndarray], strings: np.ndarray) -> list[dict[str, float]]:
    """On all cores, in new processes: a process that uses a GPU must not fork."""
    n_cores = len(os.sched_getaffinity(0))
    if n_cores <= 4:
        return [measure(each, strings) for each in codes]
    with ProcessPoolExecutor(n_cores, mp_context=multiprocessing.get_context("spawn")) as pool:
        return [*pool.map(measure, codes, [strings] * len(codes))]


def train(options: argparse.Namespace) -> None:
    language = Language(options.concepts, options.values, options.held_out)
    trained, held_out = language.draw()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.set_float32_matmul_precision("high")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    lengths = [length for length in options.bits for _ in range(options.seeds)]
    for width in options.widths:
        begun = time.perf_counter()
        settings = Settings(width, options.embedding, options.batch, options.rate, options.beta, options.gain)
        ensemble = Ensemble(language, settings, lengths, options.seed, device)
        ensemble.train(trained, options.steps, options.seconds, torch.Generator(device).manual_seed(options.seed))
        facts = ensemble.test(trained, held_out)
        seconds = time.perf_counter() - begun
        with options.out.open("a", encoding="utf-8") as stream:
            for number, fact in enumerate(facts):
                fact |= {"parameters": ensemble.count_parameters(fact["bits"]), "seed": number % options.seeds}
                fact |= asdict(language) | asdict(settings) | {"steps": int(ensemble.n_steps)}
                stream.write(json.dumps(fact) + "\n")
        best = max(fact["accuracy, trained"] for fact in facts)
        print(
            f"width {width}: {len(facts)} models, {int(ensemble.n_steps):,} steps in {seconds:.0f} s, best {best:.3f}",
            flush=True,
        )


def show(options: argparse.Namespace) -> None:
    facts = [json.loads(line) for line in options.results.read_text(encoding="utf-8").splitlines()]
    print_header(*split_cells(HEADERS["emergent"]))
    for bits in sorted({fact["bits"] for fact in facts}):
        for width in sorted({fact["width"] for fact in facts}):
            group = [fact for fact in facts if (fact["bits"], fact["width"]) == (bits, width)]
            columns = {key: [fact[key] for fact in group] for key in group[0]}
            accuracy, held_out = columns["accuracy, trained"], columns["accuracy, held out"]
            solved = f"{sum(value > 0.99 for value in held_out)} of {len(group)}"
            cells = [
                100 * max(accuracy),
                100 * min(accuracy),
                100 * max(held_out),
                100 * float(np.mean(columns["precision"])),
            ]
            recall, entropy = max(columns["recall, held out"]), columns["entropy"]
            row = [f"{value:.2f}" for value in (recall, min(entropy), max(entropy))]
            print_row(str(bits), f"{columns['parameters'][0]:,}", solved, *cells, *row)
    if options.figure is not None:
        draw(facts, options.figure)


def draw(facts: list[dict[str, Any]], path: Path) -> None:
    """Heat maps, bits against parameters: as in figure 3 of the paper."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    mpl.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "stillvec", "font.size": 9}
    bits, widths = (sorted({fact[key] for fact in facts}) for key in ("bits", "width"))
    panels = {
        "accuracy on held-out strings, best": ("accuracy, held out", max),
        "accuracy on held-out strings, worst": ("accuracy, held out", min),
        "residual entropy, lowest": ("entropy", min),
    }
    figure = Figure(figsize=(9.5, 3.2), layout="constrained")
    for axes, (title, (key, choose)) in zip(figure.subplots(1, len(panels)), panels.items(), strict=True):
        cells = np.array(
            [[choose(f[key] for f in facts if (f["bits"], f["width"]) == (b, w)) for b in bits] for w in widths]
        )
        axes.imshow(
            cells, cmap="viridis" if key != "entropy" else "viridis_r", vmin=0, vmax=1, aspect="auto", origin="lower"
        )
        for (row, column), value in np.ndenumerate(cells):
            axes.text(
                column,
                row,
                f"{value:.2f}",
                ha="center",
                va="center",
                fontsize=7,
                color="white" if (value < 0.6) != (key == "entropy") else "black",
            )
        longest = {f["width"]: f["parameters"] for f in facts if f["bits"] == bits[-1]}
        axes.set_xticks(range(len(bits)), bits)
        axes.set_yticks(
            range(len(widths)),
            [f"{longest[width] / 1000:,.0f}k" if longest[width] > 9999 else f"{longest[width]:,}" for width in widths],
        )
        axes.set(title=title, xlabel="bits", ylabel="parameters")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    training = commands.add_parser("train")
    training.set_defaults(run=train)
    training.add_argument("--concepts", type=int, default=3)
    training.add_argument("--values", type=int, default=4)
    training.add_argument("--bits", type=int, nargs="+", default=[4, 5, 6, 7, 8])
    training.add_argument("--widths", type=int, nargs="+", default=[4, 8, 16, 32])
    training.add_argument("--seeds", type=int, default=5)
    training.add_argument("--seed", type=int, default=0)
    training.add_argument("--steps", type=int, default=3000)
    training.add_argument("--seconds", type=float, default=600.0, help="per width, at most")
    training.add_argument("--held-out", type=float, default=0.0, help="share of the strings (default: all are trained)")
    for name, default in (("embedding", 16), ("batch", 256), ("rate", 2e-3), ("beta", 0.01), ("gain", 10.0)):
        training.add_argument(f"--{name}", type=type(default), default=default)
    training.add_argument("--out", type=Path, default=Path("out/emergent.jsonl"))
    showing = commands.add_parser("show")
    showing.set_defaults(run=show)
    showing.add_argument("results", type=Path)
    showing.add_argument("--figure", type=Path)
    options = parser.parse_args()
    options.run(options)


if __name__ == "__main__":
    main()
