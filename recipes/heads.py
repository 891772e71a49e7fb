"""Heads by what they are trained for: metric losses (paper 12), attention near its words (17), perturbed words (08),
taggers on texts of other domains (01), and tags written part by part (23).

    STILLVEC_WORKSHOP=... STILLVEC_DATA=... python recipes/heads.py texts OUT.txt
    ... python recipes/heads.py objectives|attention|robust|domains|parts VECTORS --out FILE.json
    python recipes/heads.py show objectives|attention|robust|domains|parts FILE.json...

Each study writes a row per head and seed as it goes, with the counts of each test item; `show` prints the table, with
intervals of a bootstrap over test items. `texts` writes the training texts of all datasets, for the vectors. The posts
of EDOS are offensive: none is printed.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from judge import TARGETS, workshop_folder, write_fewer
from numpy.typing import NDArray
from scores import argument_parser, data_folder, print_header, print_row, split_cells, write_json

import stillvec
from stillvec.evaluation.information import bias, clusters, cross_tabulate, information
from stillvec.files import open_bytes
from stillvec.heads.labelled_data import LabelledData, read_data
from stillvec.heads.neighbour_votes import balance_votes, count_votes
from stillvec.heads.tag_parts import choose_split, is_well_formed
from stillvec.heads.treebank import count_spans, read_tagged

HEADERS = {
    "objectives": "| objective | labels of the head | KNN | KNN, balanced votes | KNN less that of cross-entropy |",
    "attention": "| dataset | head | F1 | uniform attention | permuted attention | changed without 3 words |"
    " information (nats) | probability of a word |",
    "robust": "| dataset | trained by | clean | 0.02 | 0.05 | 0.1 | clean less plain | at 0.05 less plain |",
    "parts": "| dataset | head | words right | words with unseen tags right | malformed | words less tagger |",
    "domains": "| vectors | head | wikigold, development | mean of five domains | less plain |",
}
OBJECTIVES = {
    "cross-entropy": ["cross_entropy"],
    "coco": ["coco,scale=10", "coco,scale=30"],
    "arcface": ["arcface,scale=10", "arcface,scale=30"],
    "center": ["center,weight=0.1", "center,weight=10"],
    "contrastive": ["contrastive,margin=0.25", "contrastive,margin=0.75"],
    "triplet": ["triplet,scale=10", "triplet,scale=100"],
}
ATTENTION: dict[str, list[str]] = {
    "plain": [],
    "tying": ["tying:weight=10"],
    "tying, weight 1": ["tying:weight=1"],
    "masking": ["masking:weight=1"],
    "residual": ["residual"],
    "concat": ["concat"],
}
ROBUST: dict[str, list[str]] = {
    "plain": [],
    "ADV": ["adversarial:epsilon=0.05,alpha=0"],
    "SMART": ["adversarial:epsilon=0.05,label=0"],
    "ALICE": ["adversarial:epsilon=0.05"],
}
DOMAINS: dict[str, list[str]] = {
    "plain": [],
    "auxiliary": ["auxiliary"],
    "experts": ["experts"],
    "both": ["auxiliary", "experts"],
}
EPSILONS = (0.0, 0.02, 0.05, 0.1)
N_FEW, N_DRAWS, N_ASKED = 400, 10, 2000  # training texts, draws of them, test texts
N_NEIGHBOURS = 10
N_WORDS, N_CLUSTERS = 200, 50  # of the information of states about their words

Counts = NDArray[np.float64]


def main() -> None:
    parser = argument_parser(__doc__)
    commands = parser.add_subparsers(required=True)
    for name, run in STUDIES.items():
        command = commands.add_parser(name)
        command.add_argument("vectors")
        command.add_argument("--out", required=True, type=Path)
        command.add_argument("--only", help="names of heads, joined by semicolons")
        command.add_argument("--on", help="one of the datasets")
        command.add_argument("--seeds", type=int, default=3)
        command.add_argument("--epochs", type=int)
        command.add_argument("--most", type=int, default=0, help="training items, for a trial")
        command.add_argument("--device", default="auto")
        command.set_defaults(run=run)
    command = commands.add_parser("texts")
    command.add_argument("out", type=Path)
    command.set_defaults(run=lambda options: write_texts(options.out))
    command = commands.add_parser("spelling")
    command.add_argument("out", type=Path)
    command.set_defaults(run=lambda options: write_spelling(options.out))
    command = commands.add_parser("show")
    command.add_argument("study", choices=[*STUDIES])
    command.add_argument("files", nargs="+", type=Path)
    command.set_defaults(run=show)
    options = parser.parse_args()
    options.run(options)


def write_texts(path: Path) -> None:
    """The training texts of the datasets, of which test parts are no part; the vectors are distilled on them."""
    workshop, data = workshop_folder(), data_folder()
    files = [*workshop.glob("multilabel/*.train.*"), *workshop.glob("classification/*.train.txt")]
    files += [data / f"classification/{name}.train.txt" for name in ("sst5", "trec")]
    lines: list[str] = []
    for file in sorted(files):
        with open_bytes(file, OSError) as stream:
            content = stream.read().decode("utf-8", "replace")
        lines += [line.partition(" ")[2].strip() for line in content.splitlines()]
    for file in sorted(workshop.glob("tagging/*.train.tsv")):
        if file.name.startswith(("btc", "crossner")):
            lines += [" ".join(words) for words, _ in read_tagged(file)]
    lines += [" ".join(words) for words, _ in read_tagged(workshop / "tagging/wikigold.tsv")]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(filter(None, lines)) + "\n", "utf-8")
    print(f"wrote {len(lines):,} texts to {path}")


def write_spelling(path: Path, dim: int = 300) -> None:
    """Vectors that know the spelling of Finnish words and nothing else: sums of random vectors of their n-grams."""
    sentences = [
        words
        for part in ("train", "test")
        for words, _ in read_tagged(workshop_folder() / f"tagging/morphology-fi.{part}.tsv")
    ]
    names = sorted({word for words in sentences for word in words})
    rows = []
    for word in names:
        marked = f"<{word.lower()}>"
        grams = {marked[at : at + n] for n in (3, 4, 5) for at in range(len(marked) - n + 1)} | {marked}
        rows.append(sum(np.random.default_rng(crc32(gram.encode())).standard_normal(dim) for gram in sorted(grams)))
    units = np.stack([row / np.linalg.norm(row) for row in rows]).astype(np.float32)
    stillvec.WordVectors(names, units).save(path, force=True)


class Rows:
    """The rows of a study, written as they come."""

    def __init__(self, path: Path) -> None:
        self.path, self.rows = path, list[dict[str, Any]]()

    def add(self, **row: Any) -> None:
        self.rows.append(row)
        write_json(self.path, self.rows)
        print({key: value for key, value in row.items() if not isinstance(value, list | dict)}, flush=True)


def choose(options: argparse.Namespace, names: Iterable[str]) -> list[str]:
    wanted = options.only.split(";") if options.only else None
    return [name for name in names if wanted is None or name in wanted]


def spell(head: str, options: argparse.Namespace, settings: str = "") -> str:
    """The head with its settings."""
    given = [settings, f"epochs={options.epochs}" if options.epochs else ""]
    return f"{head}:{','.join(filter(None, given))}" if any(given) else head


def fit_objectives(options: argparse.Namespace) -> None:
    """EDOS, five categories: filters and their maximum, trained by each objective, judged by neighbours, too."""
    source = write_fewer(workshop_folder(), Path("out/heads")) / "classification/edos-category"
    shutil.copyfile(workshop_folder() / "classification/edos-category.dev.txt", f"{source}.dev.txt")
    data = read_data(source, "text")
    vectors, rows = stillvec.load(options.vectors), Rows(options.out)
    on = pairs_of(data, options.most) if options.most else source
    for name in choose(options, OBJECTIVES):
        for setting in OBJECTIVES[name]:
            for seed in range(options.seeds):
                spec = spell("cnn", options, f"objective={setting}")
                head = stillvec.fit(vectors, on, spec, seed=seed, device=options.device)
                said = {part: judge(head, data, getattr(data, part)) for part in ("dev", "test")}
                gold = data.targets().argmax(axis=1)
                scores = {way: macro_f1(gold[data.dev], numbers) for way, numbers in said["dev"].items()}
                numbers = {way: each.tolist() for way, each in said["test"].items()}
                rows.add(name=name, setting=setting, seed=seed, dev=scores, **numbers, gold=gold[data.test].tolist())


def pairs_of(data: LabelledData, most: int) -> list[tuple[Any, str]]:
    chosen = data.train[:: max(1, len(data.train) // most)]
    return [(data.items[row], data.labels[row][0]) for row in chosen.tolist()]


def judge(head: stillvec.Head, data: LabelledData, rows: NDArray[np.int64]) -> dict[str, NDArray[np.int64]]:
    """The numbers of the labels of items: by the head, and by the nearest training texts."""
    place = {name: number for number, name in enumerate(data.names)}
    train, asked = ([str(data.items[row]) for row in part.tolist()] for part in (data.train, rows))
    known = data.targets()[data.train].argmax(axis=1)
    votes = count_votes(head.encode(train), known, head.encode(asked), N_NEIGHBOURS, len(place))
    named = np.array([place[str(label)] for label in head.predict(asked)])
    return {"labels": named, "knn": votes.argmax(axis=1), "balanced": balance_votes(votes, known).argmax(axis=1)}


def macro_f1(gold: NDArray[np.int64], said: NDArray[np.int64]) -> float:
    n = int(max(gold.max(), said.max())) + 1
    right = np.bincount(gold[gold == said], minlength=n)
    both = np.bincount(gold, minlength=n) + np.bincount(said, minlength=n)
    return float(np.mean(2 * right[both > 0] / both[both > 0]))


def fit_attention(options: argparse.Namespace) -> None:
    """SST-2, and baseball or hockey: what the attention of a head says, with and without states near their words."""
    vectors, rows = stillvec.load(options.vectors), Rows(options.out)
    for dataset, path in {"sst2": write_sst2(), "sport20ng": write_short("sport20ng", 100)}.items():
        if options.on not in (None, dataset):
            continue
        data = read_data(path, "text")
        on = pairs_of(data, options.most) if options.most else path
        for name in choose(options, ATTENTION):
            for seed in range(options.seeds):
                spec = spell("attention", options, "epochs=10,patience=2" if not options.epochs else "")
                head = stillvec.fit(vectors, on, spec, ATTENTION[name], seed=seed, device=options.device)
                asked = [str(data.items[row]) for row in data.test.tolist()]
                gold = data.targets()[data.test].argmax(axis=1)
                rows.add(dataset=dataset, name=name, seed=seed, **diagnose(head, asked, gold), gold=gold.tolist())


def write_sst2() -> Path:
    """SST-5 without its middle label, and the others joined."""
    target = Path("out/heads/classification")
    target.mkdir(parents=True, exist_ok=True)
    for part in ("train", "dev", "test"):
        lines = (data_folder() / f"classification/sst5.{part}.txt").read_text("utf-8").splitlines()
        kept = [f"{int(line[0]) // 3} {line[2:]}" for line in lines if line[0] != "2"]
        (target / f"sst2.{part}.txt").write_text("\n".join(kept) + "\n", "utf-8")
    return target / "sst2"


def write_short(name: str, most: int) -> Path:
    """A dataset whose texts are cut to their first words."""
    target = Path("out/heads/classification")
    target.mkdir(parents=True, exist_ok=True)
    for file in (workshop_folder() / "classification").glob(f"{name}.*.txt"):
        lines = file.read_text("utf-8").splitlines()
        (target / file.name).write_text("\n".join(" ".join(line.split()[: most + 1]) for line in lines) + "\n", "utf-8")
    return target / name


def diagnose(head: stillvec.Head, texts: Sequence[str], gold: NDArray[np.int64]) -> dict[str, Any]:
    """What is said with other attention, without the most attended words, and by single words."""
    kind: Any = head.kind
    sequences, random = head._read(texts), np.random.default_rng(0)
    changes: dict[str, Any] = {"trained": None, "uniform": _flatten, "permuted": lambda a, n: _permute(a, n, random)}
    made = {name: kind.attend(head.arrays, sequences, change) for name, change in changes.items()}
    said = {name: kind.score_features(head.arrays, features).argmax(axis=1) for name, (features, _) in made.items()}
    given = made["trained"][1]
    without = remove_words(texts, head, given)
    deleted = head.score(without).argmax(axis=1)
    words, states, likely = [], [], []
    for numbers, block, _, lengths in kind.iterate_states(head.arrays, sequences):
        scores = kind.score_features(head.arrays, block.reshape(-1, block.shape[2])).reshape(*block.shape[:2], -1)
        shares = np.exp(scores - scores.max(axis=2, keepdims=True))
        shares /= shares.sum(axis=2, keepdims=True)
        for at, number in enumerate(numbers.tolist()):
            first = int(sequences.ends[number] - lengths[at])
            words += sequences.ids[first : first + lengths[at]].tolist()
            states.append(block[at, : lengths[at]])
            if said["trained"][number] == gold[number]:
                likely.append(float(shares[at, : lengths[at], gold[number]].mean()))
    facts = {"information": measure_information(sequences.table, np.array(words), np.concatenate(states))}
    facts |= {"word": float(np.mean(likely)), "deleted": float(np.mean(deleted != said["trained"]))}
    return facts | {name: numbers.tolist() for name, numbers in said.items()}


def _flatten(weights: NDArray[Any], lengths: NDArray[np.int64]) -> NDArray[Any]:
    inside = np.arange(weights.shape[1]) < lengths[:, None]
    return inside / np.maximum(lengths, 1)[:, None]


def _permute(weights: NDArray[Any], lengths: NDArray[np.int64], random: np.random.Generator) -> NDArray[Any]:
    changed = np.zeros_like(weights)
    for at, length in enumerate(lengths.tolist()):
        changed[at, :length] = weights[at, random.permutation(length)]
    return changed


def remove_words(texts: Sequence[str], head: stillvec.Head, weights: NDArray[Any], n_words: int = 3) -> list[str]:
    """The texts without the words of the largest weights."""
    words, start, kept = head._find_words(texts), 0, []
    for of_text in words:
        dropped = {*np.argsort(-weights[start : start + len(of_text)])[:n_words].tolist()}
        kept.append(" ".join(word for at, word in enumerate(of_text) if at not in dropped))
        start += len(of_text)
    return kept


def measure_information(table: NDArray[Any], ids: NDArray[np.int64], states: NDArray[Any]) -> float:
    """I(vector; state) in nats, both in 50 clusters, of the 200 most frequent words; bias is subtracted."""
    frequent = [word for word, _ in Counter(ids[ids > 1].tolist()).most_common(N_WORDS)]
    chosen = np.isin(ids, frequent)
    joint = cross_tabulate(
        clusters(np.asarray(table[ids[chosen]], np.float32), N_CLUSTERS), clusters(states[chosen], N_CLUSTERS)
    )
    return information(joint) - bias(joint)


def fit_robust(options: argparse.Namespace) -> None:
    """A hundred labelled texts: accuracy on test texts whose words are perturbed by one step against the label."""
    vectors, rows = stillvec.load(options.vectors), Rows(options.out)
    for dataset in ("mr", "subj", "trec"):
        if options.on not in (None, dataset):
            continue
        pool = read_data(data_folder() / "classification" / (dataset + (".txt" if dataset != "trec" else "")), "text")
        for draw in range(options.seeds if options.most else N_DRAWS):
            order = np.random.default_rng([draw, 8]).permutation(len(pool.items))
            train, test = order[:N_FEW], order[N_FEW : N_FEW + N_ASKED]
            items = [(pool.items[row], pool.labels[row][0]) for row in train.tolist()]
            for name in choose(options, ROBUST):
                head = stillvec.fit(
                    vectors,
                    items,
                    spell("cnn", options, "epochs=60,patience=15,rate=3e-3"),
                    ROBUST[name],
                    seed=draw,
                    device="cpu",
                )
                place = {label: number for number, label in enumerate(head.labels)}
                asked = [row for row in test.tolist() if pool.labels[row][0] in place]
                gold = np.array([place[pool.labels[row][0]] for row in asked])
                right = [attack(head, [str(pool.items[row]) for row in asked], gold, each) for each in EPSILONS]
                rows.add(dataset=dataset, name=name, draw=draw, **dict(zip(map(str, EPSILONS), right, strict=True)))


def attack(head: stillvec.Head, texts: Sequence[str], gold: NDArray[np.int64], epsilon: float) -> float:
    """Accuracy of a head `cnn` on texts whose words are moved by at most epsilon of their root mean square."""
    import torch
    from torch.nn import functional

    from stillvec.heads.sequence_batches import SPREAD

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


def fit_domains(options: argparse.Namespace) -> None:
    """Taggers that learn from wikigold, on the test sentences of five domains."""
    vectors, rows = stillvec.load(options.vectors), Rows(options.out)
    folder = workshop_folder() / "tagging"
    tested = {name: [*read_tagged(folder / f"{name}.tsv")] for name in TARGETS}
    data = read_data(folder / "wikigold.tsv", "tokens")
    on: Any = folder / "wikigold.tsv"
    if options.most:
        on = [(data.items[row], data.labels[row]) for row in range(options.most)]
    for tuned in (False, True):
        for name in choose(options, DOMAINS):
            for seed in range(options.seeds):
                spec = spell("tagger", options, "tuned=true" if tuned else "")
                head = stillvec.fit(vectors, on, spec, DOMAINS[name], seed=seed, device=options.device)
                counts = {domain: count_found(head, sentences) for domain, sentences in tested.items()}
                trained = "tuned" if tuned else "frozen"
                rows.add(trained=trained, name=name, seed=seed, dev=head.manifest["scores"]["dev"]["f1"], counts=counts)


def count_found(head: stillvec.Head, sentences: Sequence[tuple[Sequence[str], Sequence[str]]]) -> list[list[float]]:
    """Of each sentence: correct, predicted and gold spans."""
    names = sorted({*head.labels, *(tag for _, tags in sentences for tag in tags)})
    place = {name: number for number, name in enumerate(names)}
    said = head.predict([[*words] for words, _ in sentences])
    numbers = [np.array([place[tag] for tags in part for tag in tags]) for part in ([t for _, t in sentences], said)]
    text = np.repeat(np.arange(len(sentences)), [len(tags) for _, tags in sentences])
    return [row.tolist() for row in count_spans(numbers[0], numbers[1], names, text, len(sentences))]


def fit_parts(options: argparse.Namespace) -> None:
    """Whole tags, and tags written part by part."""
    vectors, rows = stillvec.load(options.vectors), Rows(options.out)
    folder = workshop_folder() / "tagging"
    files = {name: folder / name for name in ("morphology-fi", "ccg-questions")} | {"ccg-genia": write_genia(folder)}
    for dataset, path in files.items():
        if options.on not in (None, dataset):
            continue
        data = read_data(path, "tokens")
        test = [(data.items[row], data.labels[row]) for row in data.test.tolist()]
        on: Any = [(data.items[row], data.labels[row]) for row in range(options.most)] if options.most else path
        for name in choose(options, ("tagger", "primitives")):
            for seed in range(options.seeds):
                spec = spell(name, options, "epochs=25,patience=5,rate=3e-3" if not options.epochs else "")
                head = stillvec.fit(vectors, on, spec, seed=seed, device=options.device)
                said = head.predict([[*words] for words, _ in test])
                counts = [count_right(gold, ours, head.labels) for (_, gold), ours in zip(test, said, strict=True)]
                split = choose_split(data.names)
                malformed = float(np.mean([not is_well_formed(tag, split) for tags in said for tag in tags]))
                rows.add(dataset=dataset, name=name, seed=seed, malformed=malformed, counts=counts)


def write_genia(folder: Path) -> Path:
    """The first 900 sentences to learn from, the other 100 to test on."""
    target = Path("out/heads/tagging")
    target.mkdir(parents=True, exist_ok=True)
    blocks = (folder / "ccg-genia.tsv").read_text("utf-8").strip().split("\n\n")
    for part, chosen in (("train", blocks[:900]), ("test", blocks[900:])):
        (target / f"ccg-genia.{part}.tsv").write_text("\n\n".join(chosen) + "\n", "utf-8")
    return target / "ccg-genia"


def count_right(gold: Sequence[str], said: Sequence[str], known: Sequence[str]) -> list[int]:
    """Right words, words, right words whose tag training lacks, and such words."""
    right = [ours == theirs for ours, theirs in zip(said, gold, strict=True)]
    unseen = [tag not in known for tag in gold]
    return [sum(right), len(right), sum(a and b for a, b in zip(right, unseen, strict=True)), sum(unseen)]


def show_parts(rows: list[dict[str, Any]]) -> None:
    for (dataset, name), part in group(rows, lambda row: (row["dataset"], row["name"])).items():
        plain = [row for row in rows if (row["dataset"], row["name"]) == (dataset, "tagger")]
        counts, base = (np.mean([row["counts"] for row in each], axis=0) for each in (part, plain))

        def measure(drawn: NDArray[np.int64], counts: NDArray[Any] = counts, base: NDArray[Any] = base) -> NDArray[Any]:
            ours, theirs = counts[drawn].sum(axis=0), base[drawn].sum(axis=0)
            words = ours[0] / ours[1]
            return np.array([words, ours[2] / max(1, ours[3]), words - theirs[0] / theirs[1]])

        cells = bootstrap(measure, len(counts))
        n_unseen = int(counts[:, 3].sum())
        malformed = f"{100 * float(np.mean([row['malformed'] for row in part])):.2f}%"
        print_row(dataset, name, cells[0], f"{cells[1]} of {n_unseen}", malformed, cells[2] if name != "tagger" else "")


def show(options: argparse.Namespace) -> None:
    rows = [row for file in options.files for row in json.loads(file.read_text("utf-8"))]
    print_header(*split_cells(HEADERS[options.study]))
    SHOW[options.study](rows)


def bootstrap(measure: Callable[[NDArray[np.int64]], NDArray[Any]], n: int, n_draws: int = 1000) -> list[str]:
    """The values of `measure` on all items with the 95% interval over items drawn again, x 100."""
    random = np.random.default_rng(0)
    drawn = np.stack([measure(random.integers(0, n, n)) for _ in range(n_draws)])
    low, high = np.percentile(drawn, [2.5, 97.5], axis=0)
    whole = measure(np.arange(n))
    return [f"{100 * v:.1f} [{100 * a:.1f}, {100 * b:.1f}]" for v, a, b in zip(whole, low, high, strict=True)]


def show_objectives(rows: list[dict[str, Any]]) -> None:
    """The setting is selected on development posts, by the macro-F1 of neighbours, for each objective."""
    chosen: dict[str, list[dict[str, Any]]] = {}
    for name in OBJECTIVES:
        by_setting = group(rows, lambda row, name=name: row["setting"] if row["name"] == name else None)
        if by_setting:
            chosen[name] = max(by_setting.values(), key=lambda part: np.mean([row["dev"]["knn"] for row in part]))
    gold = np.array(rows[0]["gold"])
    plain = [np.array(row["knn"]) for row in chosen["cross-entropy"]]

    def measure(part: list[dict[str, Any]], drawn: NDArray[np.int64]) -> NDArray[Any]:
        def score(way: str) -> float:
            return float(np.mean([macro_f1(gold[drawn], np.array(row[way])[drawn]) for row in part]))

        base = float(np.mean([macro_f1(gold[drawn], numbers[drawn]) for numbers in plain]))
        return np.array([score("labels"), score("knn"), score("balanced"), score("knn") - base])

    for part in chosen.values():
        cells = bootstrap(lambda drawn, part=part: measure(part, drawn), len(gold), 300)
        print_row(part[0]["setting"].replace(",", ", "), *cells)


def show_attention(rows: list[dict[str, Any]]) -> None:
    for (dataset, name), part in group(rows, lambda row: (row["dataset"], row["name"])).items():
        gold = np.array(part[0]["gold"])

        def measure(
            drawn: NDArray[np.int64], part: list[dict[str, Any]] = part, gold: NDArray[Any] = gold
        ) -> NDArray[Any]:
            ways = ("trained", "uniform", "permuted")
            scores = [np.mean([binary_f1(gold[drawn], np.array(row[way])[drawn]) for row in part]) for way in ways]
            return np.array([scores[0], scores[1] - scores[0], scores[2] - scores[0]])

        cells = bootstrap(measure, len(gold), 300)
        facts = [np.mean([row[key] for row in part]) for key in ("deleted", "information", "word")]
        print_row(dataset, name, *cells, f"{100 * facts[0]:.1f}%", f"{facts[1]:.2f}", f"{facts[2]:.3f}")


def binary_f1(gold: NDArray[np.int64], said: NDArray[np.int64]) -> float:
    return 2 * float((gold & said).sum()) / max(1, int(gold.sum() + said.sum()))


def show_robust(rows: list[dict[str, Any]]) -> None:
    """Means over draws, each with the same texts for all; intervals over draws."""
    for (dataset, name), part in group(rows, lambda row: (row["dataset"], row["name"])).items():
        plain = [row for row in rows if (row["dataset"], row["name"]) == (dataset, "plain")]
        values = np.array([[row[str(each)] for each in EPSILONS] for row in part])
        base = np.array([[row[str(each)] for each in EPSILONS] for row in plain])[: len(values)]
        gaps = bootstrap(lambda drawn, gap=(values - base)[:, [0, 2]]: gap[drawn].mean(axis=0), len(values))
        print_row(dataset, name, *(100 * values.mean(axis=0)).tolist(), *(gaps if name != "plain" else ("", "")))


def show_domains(rows: list[dict[str, Any]]) -> None:
    for (trained, name), part in group(rows, lambda row: (row["trained"], row["name"])).items():
        plain = [row for row in rows if (row["trained"], row["name"]) == (trained, "plain")]
        dev = 100 * float(np.mean([row["dev"] for row in part]))
        print_row(trained, name, dev, *compare_domains(part, plain if name != "plain" else None))
    frozen, tuned = ([row for row in rows if row["trained"] == which] for which in ("frozen", "tuned"))
    if frozen and tuned:
        same = [[row for row in each if row["name"] == "plain"] for each in (frozen, tuned)]
        print_row("frozen less tuned", "plain", "", "", compare_domains(*same)[1])


def compare_domains(part: list[dict[str, Any]], plain: list[dict[str, Any]] | None) -> list[str]:
    """The mean F1 over domains and seeds, and its difference from that of `plain`, with intervals over sentences."""
    sizes = {domain: len(counts) for domain, counts in part[0]["counts"].items()}
    totals = [{domain: np.array(row["counts"][domain]) for domain in sizes} for row in (*part, *(plain or ()))]
    random = np.random.default_rng(0)
    drawn = [{domain: random.integers(0, n, n) for domain, n in sizes.items()} for _ in range(1000)]

    def measure(rows: Mapping[str, NDArray[np.int64]]) -> tuple[float, float]:
        scores = []
        for counts in totals:
            sums = [counts[domain][rows[domain]].sum(axis=0) for domain in sizes]
            scores.append(np.mean([2 * right / max(1, said + gold) for right, said, gold in sums]))
        ours = float(np.mean(scores[: len(part)]))
        return ours, ours - float(np.mean(scores[len(part) :])) if plain else 0.0

    whole = measure({domain: np.arange(n) for domain, n in sizes.items()})
    low, high = np.percentile([measure(rows) for rows in drawn], [2.5, 97.5], axis=0)
    cells = [f"{100 * v:.1f} [{100 * a:.1f}, {100 * b:.1f}]" for v, a, b in zip(whole, low, high, strict=True)]
    return cells if plain else [cells[0], ""]


def group(rows: list[dict[str, Any]], key: Callable[[dict[str, Any]], Any]) -> dict[Any, list[dict[str, Any]]]:
    parts: dict[Any, list[dict[str, Any]]] = {}
    for row in rows:
        if (name := key(row)) is not None:
            parts.setdefault(name, []).append(row)
    return parts


STUDIES = {
    "objectives": fit_objectives,
    "attention": fit_attention,
    "robust": fit_robust,
    "domains": fit_domains,
    "parts": fit_parts,
}
SHOW = {
    "objectives": show_objectives,
    "attention": show_attention,
    "robust": show_robust,
    "domains": show_domains,
    "parts": show_parts,
}

if __name__ == "__main__":
    main()
