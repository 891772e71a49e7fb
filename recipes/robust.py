"""Models whose words are perturbed (paper 08): tuned teachers on MC-TACO, and heads that have few labels.

    STILLVEC_WORKSHOP=... python recipes/robust.py answers NAME=TEACHER... --out FILE.json
    STILLVEC_DATA=... python recipes/robust.py few VECTORS --out FILE.json
    ... python recipes/robust.py show answers|few FILE.json...

Test items are answered once as they are, and once with each word vector moved by one step in the sign of the gradient
of the loss, by at most a multiple of the mean size of word embeddings (`answers`) or of their root mean square (`few`).
`answers` selects the ε of training on development items, with the first teacher, seed 0 and both terms; with
`--seeds 0` it does nothing else.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from head_studies import Rows, Study, add_studies, bootstrap, choose, group, list_seeds, spell
from judge import workshop_folder
from numpy.typing import NDArray
from scores import argument_parser, data_folder, print_row
from torch.nn import functional

import stillvec
from stillvec.adaptation.language_models import load_model, load_tokenizer
from stillvec.adaptation.model_training import autocast, choose_precision
from stillvec.adaptation.tuning_data import READERS, Item, encode_items
from stillvec.heads.labelled_data import read_data
from stillvec.heads.sequence_batches import SPREAD
from stillvec.teachers.device import resolve_device

HEADERS = {
    "answers": "| teacher | trained by | seeds | accuracy | exact match | at 0.05 | at 0.1 | at 0.2 |"
    " exact match less labels | at 0.1 less labels |",
    "few": "| dataset | trained by | clean | 0.02 | 0.05 | 0.1 | clean less plain | at 0.05 less plain |",
}
ANSWERS = {"labels": "label=0,virtual=0", "ADV": "virtual=0", "SMART": "label=0", "ALICE": ""}
TRAINED = (0.03, 0.1, 0.3)  # ε, of which one is selected
CURVE = (0.0, 0.05, 0.1, 0.2)
FEW: dict[str, list[str]] = {
    "plain": [],
    "ADV": ["adversarial:epsilon=0.05,alpha=0"],
    "SMART": ["adversarial:epsilon=0.05,label=0"],
    "ALICE": ["adversarial:epsilon=0.05"],
}
EPSILONS = (0.0, 0.02, 0.05, 0.1)
N_FEW, N_DRAWS, N_ASKED = 400, 10, 2000  # training texts, draws of them, test texts
LENGTH, BATCH = 128, 128


def main() -> None:
    parser = argument_parser(__doc__)
    add_studies(parser.add_subparsers(required=True), STUDIES, HEADERS)
    options = parser.parse_args()
    options.run(options)


def tune_answers(options: argparse.Namespace) -> None:
    """Tune each teacher by labels alone and with the terms of ALICE, and perturb the test items."""
    rows, made = Rows(options.out), tempfile.TemporaryDirectory()
    folder = Path(made.name) / "tuned"
    test = [*READERS["pairs"](workshop_folder() / "pairs/mctaco.test.tsv")]
    if options.most:
        test = test[: options.most]
    teachers = [pair.partition("=")[::2] for pair in options.vectors]
    epsilon = None if options.epsilon is None else float(options.epsilon)

    def tune(teacher: str, way: str, seed: int, epsilon: float) -> dict[str, Any]:
        given = [f"on={workshop_folder() / 'pairs/mctaco'}", f"seed={seed}", f"epochs={options.epochs or 4}"]
        given += [f"length={LENGTH}", "patience=9", f"most={options.most}"]
        given += [f"adversarial={epsilon}"] * (way != "labels")
        stillvec.adapt(
            teacher, f"tune:{','.join([*given, *filter(None, [ANSWERS[way]])])}", out=folder,
            device=options.device, force=True,
        )  # fmt: skip
        facts = json.loads((folder / "adaptation.json").read_text("utf-8"))["adapted"][-1]
        return {"dev": facts["facts"]["dev"], "seconds": facts["seconds"]}

    if epsilon is None:
        tried = {each: tune(teachers[0][1], "ALICE", 0, each)["dev"] for each in TRAINED}
        epsilon = max(tried, key=lambda each: tried[each])
        print("development accuracy by ε:", tried, "selected:", epsilon, flush=True)
    for seed in list_seeds(options):
        for name, teacher in teachers:
            for way in choose(options, ANSWERS):
                facts = tune(teacher, way, seed, epsilon)
                right = attack_teacher(folder, test, options.device)
                shown = {str(each): "".join("01"[int(value)] for value in right[each]) for each in CURVE}
                rows.add(teacher=name, name=way, seed=seed, epsilon=epsilon, **facts, right=shown)
    made.cleanup()


def attack_teacher(folder: Path, items: Sequence[Item], device: str) -> dict[float, NDArray[np.bool_]]:
    """Which items are answered rightly, by the size of the perturbation."""
    tokenizer, place = load_tokenizer(folder), resolve_device(device)
    model = load_model(folder, "ModelForSequenceClassification").model.to(place).eval()
    precision = choose_precision("auto", model)
    number = {label: at for at, label in model.config.id2label.items()}
    table = model.get_input_embeddings()
    size = float(table.weight.detach().abs().mean())
    right = {each: np.zeros(len(items), bool) for each in CURVE}
    order = np.argsort([sum(map(len, item.texts)) for item in items], kind="stable")
    for rows in np.array_split(order, max(1, len(items) // BATCH)):
        chosen = [items[row] for row in rows.tolist()]
        batch = encode_items(tokenizer, chosen, "pairs", LENGTH).inputs
        inputs = {name: value.to(place) for name, value in batch.items()}
        gold = torch.tensor([number[item.labels[0]] for item in chosen], device=place)
        words = table(inputs.pop("input_ids")).detach().requires_grad_()
        inside = inputs["attention_mask"].unsqueeze(2)
        with autocast(place, precision):
            lost = functional.cross_entropy(model(inputs_embeds=words, **inputs).logits.float(), gold, reduction="sum")
        (slope,) = torch.autograd.grad(lost, words)
        for epsilon in CURVE:
            with torch.no_grad(), autocast(place, precision):
                said = model(inputs_embeds=words + epsilon * size * slope.sign() * inside, **inputs).logits.argmax(1)
            right[epsilon][rows] = (said == gold).cpu().numpy()
    return right


def show_answers(rows: list[dict[str, Any]]) -> None:
    """Exact match: the share of questions all of whose answers are judged rightly; intervals over questions."""
    items = [*READERS["pairs"](workshop_folder() / "pairs/mctaco.test.tsv")]
    _, question = np.unique([item.texts[0] for item in items], return_inverse=True)

    def count(part: Sequence[dict[str, Any]], epsilon: float) -> NDArray[Any]:
        """Of each question, the share of seeds whose answers to it are all right."""
        wrong = np.array([[value == "0" for value in row["right"][str(epsilon)]] for row in part])
        asked = question[: wrong.shape[1]]
        return np.mean([np.bincount(asked, weights=each) == 0 for each in wrong], axis=0)

    for (teacher, name), part in group(rows, lambda row: (row["teacher"], row["name"])).items():
        plain = [row for row in rows if (row["teacher"], row["name"]) == (teacher, "labels")]
        exact = [count(part, each) for each in CURVE]
        gaps = np.stack([exact[at] - count(plain, CURVE[at]) for at in (0, 2)], axis=1)
        cells = bootstrap(lambda drawn, gaps=gaps: gaps[drawn].mean(axis=0), len(gaps))
        accuracy = np.mean([row["right"]["0.0"].count("1") / len(row["right"]["0.0"]) for row in part])
        values = [100 * float(each) for each in (accuracy, *map(np.mean, exact))]
        shown = name if name == "labels" else f"{name}, ε = {part[0]['epsilon']}"
        print_row(teacher, shown, str(len(part)), *values, *(cells if name != "labels" else ("", "")))


def fit_few(options: argparse.Namespace) -> None:
    """Few labelled texts: accuracy on test texts whose words are perturbed by one step against the label."""
    vectors, rows = stillvec.load(options.vectors), Rows(options.out)
    for dataset in ("mr", "subj", "trec"):
        if options.on not in (None, dataset):
            continue
        pool = read_data(data_folder() / "classification" / (dataset + (".txt" if dataset != "trec" else "")), "text")
        for draw in range(options.seeds if options.most else N_DRAWS):
            order = np.random.default_rng([draw, 8]).permutation(len(pool.items))
            train, test = order[:N_FEW], order[N_FEW : N_FEW + N_ASKED]
            items = [(pool.items[row], pool.labels[row][0]) for row in train.tolist()]
            for name in choose(options, FEW):
                head = stillvec.fit(
                    vectors,
                    items,
                    spell("cnn", options, "patience=15,rate=3e-3" + (",epochs=60" if not options.epochs else "")),
                    FEW[name],
                    seed=draw,
                    device=options.device,
                )
                place = {label: number for number, label in enumerate(head.labels)}
                asked = [row for row in test.tolist() if pool.labels[row][0] in place]
                gold = np.array([place[pool.labels[row][0]] for row in asked])
                right = [attack_head(head, [str(pool.items[row]) for row in asked], gold, each) for each in EPSILONS]
                rows.add(dataset=dataset, name=name, draw=draw, **dict(zip(map(str, EPSILONS), right, strict=True)))


def attack_head(head: stillvec.Head, texts: Sequence[str], gold: NDArray[np.int64], epsilon: float) -> float:
    """Accuracy of a head `cnn` on texts whose words are moved by at most epsilon of their root mean square."""
    sequences, right = head._read(texts), []
    filters, shift, weights, bias = (
        torch.from_numpy(np.array(head.arrays[name])) for name in ("filters", "filter_bias", "weights", "bias")
    )
    table = torch.from_numpy(np.asarray(sequences.table * head.arrays["factor"], np.float32))
    for rows in np.array_split(np.arange(len(texts)), max(1, len(texts) // 200)):
        ids = torch.from_numpy(sequences.pad(rows, 1))
        inside = (ids != 0).unsqueeze(2)

        def score(words: torch.Tensor, inside: torch.Tensor = inside) -> torch.Tensor:
            parts = (words @ filters).view(*words.shape[:2], 3, -1)
            hidden = parts[:, :-2, 0] + parts[:, 1:-1, 1] + parts[:, 2:, 2] + shift
            return (torch.relu(hidden) * inside[:, 1:-1]).amax(dim=1) @ weights + bias

        words = table[ids].requires_grad_()
        labels = torch.from_numpy(gold[rows])
        (slope,) = torch.autograd.grad(functional.cross_entropy(score(words), labels, reduction="sum"), words)
        with torch.no_grad():
            said = score(words + epsilon * SPREAD * slope.sign() * inside).argmax(dim=1)
        right.append(said.numpy() == gold[rows])
    return float(np.concatenate(right).mean())


def show_few(rows: list[dict[str, Any]]) -> None:
    """Means over draws, each with the same texts for all; intervals over draws."""
    for (dataset, name), part in group(rows, lambda row: (row["dataset"], row["name"])).items():
        plain = [row for row in rows if (row["dataset"], row["name"]) == (dataset, "plain")]
        values = np.array([[row[str(each)] for each in EPSILONS] for row in part])
        base = np.array([[row[str(each)] for each in EPSILONS] for row in plain])[: len(values)]
        gaps = bootstrap(lambda drawn, gap=(values - base)[:, [0, 2]]: gap[drawn].mean(axis=0), len(values))
        print_row(dataset, name, *(100 * values.mean(axis=0)).tolist(), *(gaps if name != "plain" else ("", "")))


STUDIES = {
    "answers": Study(tune_answers, show_answers, "NAME=TEACHER"),
    "few": Study(fit_few, show_few),
}

if __name__ == "__main__":
    main()
