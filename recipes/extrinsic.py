"""Extrinsic tables of the papers: sentence classification (Gupta & Jaggi 2021, table 4) and tagging (Wang et al. 2020,
table 3; Zheng et al. 2022, table 3) for any number of vectors.

    export STILLVEC_DATA=...
    python recipes/extrinsic.py NAME=VECTORS ... --json out/extrinsic.jsonl [--jobs 9]
    python recipes/extrinsic.py --print --json out/extrinsic.jsonl --reference NAME
    python recipes/extrinsic.py NAME=VECTORS ... --restrict FOLDER


Every set is trained with three seeds, settings are selected on development items, and unknown words have the zero
vector, so that all items count. The networks of all sets are trained together, a process per dataset; `random` is a
control, Gaussian vectors for the words of the first set. A line of JSON is written for every set and dataset when it is
finished; a later run skips what is there. `--print` compares each row with the reference on the same items (paired
bootstrap, the mean over seeds of each item; Holm's correction over the rows of a table); vectors of other seeds, `NAME
seed 1`, are only in a table of their own. `--restrict` writes small
folders to take to another machine: FOLDER/NAME with the words of the datasets, and FOLDER/data, the datasets.
"""

from __future__ import annotations

import argparse
import base64
import json
import lzma
import re
import subprocess
import sys
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scores import argument_parser, data_folder

import stillvec
from stillvec import Vocabulary, WordVectors
from stillvec.errors import StillvecError, UsageError
from stillvec.evaluation.classification import Classification
from stillvec.evaluation.comparison import BootstrapSample, bootstrap, compare, correct_holm
from stillvec.evaluation.intervals import Floats, Resampling
from stillvec.evaluation.supervised import LearntItems
from stillvec.evaluation.tagging import Tagging
from stillvec.evaluation.tasks import Answers
from stillvec.heads.lookup import Lookup
from stillvec.heads.splits import parts_beside
from stillvec.progress import drain

Trained = Classification | Tagging
Device = Literal["auto", "cpu", "cuda"]
DATASETS = {  # heading → file, the longest training first
    "MR": "classification/mr.txt",
    "UD-EWT POS": "tagging/ud-ewt.test.conllu",
    "SUBJ": "classification/subj.txt",
    "CoNLL-2000 chunks": "tagging/conll2000.test.txt",
    "CR": "classification/cr.txt",
    "WNUT-17 entities": "tagging/wnut17.test.conll",
    "SST-5": "classification/sst5.test.txt",
    "MPQA": "classification/mpqa.txt",
    "TREC": "classification/trec.test.txt",
}
HEADERS = {
    "extrinsic-classification": "| vectors | dim | known words | CR | MR | MPQA | SUBJ | TREC | SST-5 "
    "| mean F1 / accuracy | accuracy - reference [95%] | p |",
    "extrinsic-tagging": "| vectors | dim | known words | CoNLL-2000 chunks | WNUT-17 entities | UD-EWT POS "
    "| mean | mean - reference [95%] | p |",
    "extrinsic-seeds": "| vectors | CR | MR | MPQA | SUBJ | TREC | SST-5 | mean accuracy |",
}
SEEDS, RANDOM = 3, "random"
SEED = re.compile(r" seed \d+$")  # of the vectors, in the name of a set


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("vectors", nargs="*", metavar="NAME=VECTORS")
    parser.add_argument("--json", type=Path, default=Path("out/extrinsic.jsonl"), help="results, a line each")
    parser.add_argument("--print", action="store_true", help="print the tables of what is in the JSON lines")
    parser.add_argument("--reference", metavar="NAME", help="the row that others are compared with (default: first)")
    parser.add_argument("--restrict", type=Path, metavar="FOLDER", help="write small folders, FOLDER/NAME")
    parser.add_argument("--to", choices=["fp16", "int8"], default="fp16", help="numbers of the restricted folders")
    parser.add_argument("--only", metavar="NAMES", help="datasets, such as MR,TREC")
    parser.add_argument("--jobs", type=int, default=1, help="datasets at a time, each in a process of its own")
    parser.add_argument("--together", type=int, default=16, help="sets whose networks are trained together")
    parser.add_argument("--device", choices=["auto", "cpu", "cuda"], default="auto")
    parser.add_argument("--quick", action="store_true", help="one seed and less data, to try it")
    options = parser.parse_args()
    if options.print:
        print_tables(options.json, options.reference)
    elif not options.vectors:
        parser.error("expected NAME=VECTORS, or --print")
    elif options.restrict:
        restrict(open_vectors(options.vectors), options.restrict, options.to)
    elif options.jobs > 1:
        run_jobs(options)
    else:
        run_datasets(options)


def open_vectors(specs: Sequence[str]) -> dict[str, WordVectors]:
    sets: dict[str, WordVectors] = {}
    for spec in specs:
        name, equals, path = spec.partition("=")
        if not equals or name in (RANDOM, "data"):
            raise SystemExit(f"expected NAME=VECTORS, with a name that is not {RANDOM} or data, got {spec!r}")
        sets[name] = stillvec.load(path)
    return sets


def select_datasets(only: str | None) -> dict[str, Path]:
    chosen = [*DATASETS] if only is None else only.split(",")
    for name in chosen:
        if name not in DATASETS:
            raise SystemExit(str(UsageError.unknown("dataset", name, DATASETS)))
    return {name: find_dataset(name) for name in DATASETS if name in chosen}


def find_dataset(name: str) -> Path:
    """The file of a dataset, which may be compressed."""
    path = data_folder() / DATASETS[name]
    return path if path.exists() else path.with_name(f"{path.name}.xz")


def make_task(path: Path, *, device: Device = "auto", quick: bool = False) -> Trained:
    if path.parent.name == "tagging":
        return Tagging(seeds=SEEDS, device=device, quick=quick)
    return Classification(model="cnn", seeds=SEEDS, device=device, quick=quick)


def restrict(sets: Mapping[str, WordVectors], folder: Path, to: str) -> None:
    """Save the datasets, and the vectors of their words, which give the same results as all vectors."""
    texts, tokens = list[str](), set[str]()
    for path in select_datasets(None).values():
        items = make_task(path).read(path)
        if path.parent.name == "tagging":
            tokens.update(token for sentence in items.all_texts for token in sentence)
        else:
            texts += [text for (text,) in items.all_texts]
        for file in parts_beside(path).values():
            copy = folder / "data" / file.parent.name / f"{file.name.removesuffix('.xz')}.xz"
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(file.read_bytes() if file.suffix == ".xz" else lzma.compress(file.read_bytes(), preset=1))
    for name, vectors in sets.items():
        plain = WordVectors(vectors.vocabulary, vectors.matrix)  # without n-grams, which the tasks do not use
        lookup = Lookup(plain, "zero")
        rows = {*lookup.rows([*tokens]).tolist(), *lookup.text_rows(texts)[0].tolist()} - {-1}
        small = plain.subset([vectors.words[row] for row in sorted(rows)])
        stillvec.save(stillvec.refine(small, [f"quantize:to={to}"]), folder / name, force=True)
        size = sum(file.stat().st_size for file in (folder / name).iterdir()) / 2**20
        print(f"{name}: {len(small):,} of {len(vectors):,} words x {small.dim}, {size:.1f} MiB", flush=True)


def make_control(vectors: WordVectors) -> WordVectors:
    """Gaussian vectors for the same words."""
    matrix = np.random.default_rng(0).standard_normal((len(vectors), vectors.dim), np.float32)
    return WordVectors(Vocabulary(vectors.words, lowercase=vectors.vocabulary.lowercase), matrix)


def run_jobs(options: argparse.Namespace) -> None:
    """Run a process per dataset, `--jobs` at a time; the lines of each are in one file, as each is one write."""
    waiting, running = [*select_datasets(options.only)], list[tuple[str, subprocess.Popen[bytes]]]()
    failed = []
    while waiting or running:
        while waiting and len(running) < options.jobs:
            name = waiting.pop(0)
            flags = ["--json", str(options.json), "--only", name, "--together", str(options.together)]
            flags += ["--device", options.device, *(["--quick"] if options.quick else [])]
            running.append((name, subprocess.Popen([sys.executable, __file__, *options.vectors, *flags])))
        time.sleep(0.2)
        for name, process in [job for job in running if job[1].poll() is not None]:
            running.remove((name, process))
            failed += [name] if process.returncode else []
    if failed:
        raise SystemExit(f"failed: {', '.join(failed)}")


def run_datasets(options: argparse.Namespace) -> None:
    """Train on the datasets, one after another, and append a line for every set."""
    import torch

    if options.device != "cpu" and torch.cuda.is_available():
        torch.set_float32_matmul_precision("high")  # TF32: products of 11 bits, as many as float16 has
    sets = open_vectors(options.vectors)
    sets[RANDOM] = make_control(next(iter(sets.values())))
    done = {(line["dataset"], line["vectors"]) for line in read_lines(options.json)}
    for dataset, path in select_datasets(options.only).items():
        task = make_task(path, device=options.device, quick=options.quick)
        items = task.read(path)
        waiting = [name for name in sets if (dataset, name) not in done]
        for at in range(0, len(waiting), options.together):
            names, start = waiting[at : at + options.together], time.perf_counter()
            lookups = [Lookup(WordVectors(sets[name].vocabulary, sets[name].matrix), "zero") for name in names]
            answers = drain(task.answer_sets(lookups, items))
            seconds = time.perf_counter() - start
            for name, answer in zip(names, answers, strict=True):
                append_line(options.json, dataset, name, sets[name].dim, answer, options.quick)
            print(f"{dataset}: {len(names)} sets in {seconds:.1f} s", flush=True)


def append_line(path: Path, dataset: str, name: str, dim: int, answers: Answers, quick: bool) -> None:
    """One write per line, so that processes can append to one file."""
    arrays = {key: pack(values) for key, values in answers.values.items() if not key.startswith("accuracy-")}
    line = {"dataset": dataset, "vectors": name, "dim": dim, "quick": quick, "covered": pack(answers.covered), **arrays}
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "ab", buffering=0) as stream:
        stream.write(json.dumps(line).encode() + b"\n")


def pack(values: NDArray[Any]) -> dict[str, Any]:
    small = np.asarray(values, np.int32)  # counts and labels
    return {"shape": small.shape, "data": base64.b64encode(zlib.compress(small.tobytes())).decode()}


def unpack(stored: Mapping[str, Any]) -> NDArray[np.int32]:
    return np.frombuffer(zlib.decompress(base64.b64decode(stored["data"])), np.int32).reshape(stored["shape"])


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The lines that are complete: a run that was stopped may leave a part of one."""
    for line in path.read_bytes().splitlines() if path.exists() else ():
        try:
            yield json.loads(line)
        except ValueError:
            continue


def print_tables(path: Path, reference: str | None) -> None:
    lines = {(line["dataset"], line["vectors"]): line for line in read_lines(path)}
    if not lines:
        raise SystemExit(f"no results in {path}")
    names = [*dict.fromkeys(name for _, name in lines)]
    reference = reference or names[0]
    if reference not in names:
        raise SystemExit(str(UsageError.unknown("reference", reference, names)))
    for table in ("extrinsic-classification", "extrinsic-tagging"):
        columns = [cell for cell in HEADERS[table].strip("| ").split(" | ") if (cell, reference) in lines]
        complete = [name for name in names if all((dataset, name) in lines for dataset in columns)]
        complete = [name for name in complete if not SEED.search(name)]
        if columns:
            scores: dict[str, list[DatasetScore]] = {name: [] for name in complete}
            for stream, dataset in enumerate(columns):
                for name, score in score_dataset(stream, {name: lines[dataset, name] for name in complete}):
                    scores[name].append(score)
            dims = {name: lines[columns[0], name]["dim"] for name in complete}
            print_table(table, columns, scores, dims, reference)
    print_seeds(lines)


class DatasetScore(NamedTuple):
    f1: float | None  # macro F1 of the labels
    value: float  # accuracy, or F1 of spans: the mean over seeds
    spread: float  # standard deviation over seeds
    resampled: Floats  # (R,)
    known: Floats  # number of known words, and of all
    n_items: int


def score_dataset(stream: int, lines: Mapping[str, dict[str, Any]]) -> Iterator[tuple[str, DatasetScore]]:
    """The score of each set on a dataset, with resamples of the same items for all."""
    first = next(iter(lines.values()))
    path = find_dataset(first["dataset"])
    task = make_task(path, quick=first["quick"])
    items = task.read(path)
    for name, line in lines.items():
        answers = restore(line, items)
        scores = task.score(items, answers, np.arange(len(items)), Resampling(0))
        metric = next(key for key in ("accuracy-cnn", "f1", "accuracy") if key in scores)
        f1, spread = (scores[key].value if key in scores else None for key in ("macro-f1-cnn", f"{metric}-sd"))
        resampled = resample(task, items, answers, metric, stream)
        known = answers.values["known-words"].sum(axis=0)
        value = scores[metric].value
        yield name, DatasetScore(f1, value, spread or 0.0, resampled, known, len(items))


def print_table(
    table: str,
    columns: Sequence[str],
    scores: Mapping[str, list[DatasetScore]],
    dims: Mapping[str, int],
    reference: str,
) -> None:
    """Each set with mean and standard deviation over seeds, and its mean over datasets beside the reference.

    A dataset that was not run is –, and in no mean.
    """
    datasets = [cell for cell in HEADERS[table].strip("| ").split(" | ") if cell in DATASETS]
    means = {name: float(np.mean([score.value for score in row])) for name, row in scores.items()}
    samples = {
        name: BootstrapSample(means[name], np.mean([score.resampled for score in row], axis=0), np.zeros(0))
        for name, row in scores.items()
    }
    others = [name for name in scores if name != reference]
    n_items = min(score.n_items for score in scores[reference])
    pairs = [{name: samples[name], reference: samples[reference]} for name in others]
    compared = correct_holm(compare((table, "mean", "mean"), pair, n_items, 1.0)[0] for pair in pairs)
    beside = {reference: ["reference", "–"]}
    for pair in compared:
        change = f"{100 * pair.difference:+.1f} [{100 * pair.low:+.1f}, {100 * pair.high:+.1f}]"
        beside[pair.a] = [change, "< 0.001" if pair.p_corrected < 0.001 else f"{pair.p_corrected:.3f}"]
    print(f"\n{HEADERS[table]}\n|" + "---|" * (HEADERS[table].count("|") - 1))
    for name in sorted(scores, key=lambda name: -means[name]):
        row = scores[name]
        known = np.sum([score.known for score in row], axis=0)
        both = f"{100 * np.mean([score.f1 for score in row]):.1f} / " if row[0].f1 is not None else ""
        values = dict(zip(columns, map(format_score, row), strict=True))
        cells = [name, str(dims[name]), f"{100 * known[0] / known[1]:.1f}%", *(values.get(d, "–") for d in datasets)]
        print("| " + " | ".join([*cells, f"{both}{100 * means[name]:.1f}", *beside[name]]) + " |")


def print_seeds(lines: Mapping[tuple[str, str], dict[str, Any]]) -> None:
    """Accuracies of vectors trained with several seeds: NAME and NAME seed 1, 2, ... are runs of one method."""
    datasets = [cell for cell in HEADERS["extrinsic-seeds"].strip("| ").split(" | ") if cell in DATASETS]
    names = [*dict.fromkeys(name for _, name in lines)]
    for method in dict.fromkeys(SEED.sub("", name) for name in names if SEED.search(name)):
        runs = [name for name in names if SEED.sub("", name) == method]
        runs = [name for name in runs if all((dataset, name) in lines for dataset in datasets)]
        if len(runs) > 1:
            columns = [[*score_runs({run: lines[dataset, run] for run in runs})] for dataset in datasets]
            accuracies = np.array([*columns, np.mean(columns, axis=0)])  # (datasets + 1, runs)
            cells = [f"{100 * row.mean():.1f} ± {100 * row.std(ddof=1):.1f}" for row in accuracies]
            print(f"\n{HEADERS['extrinsic-seeds']}\n|" + "---|" * (len(cells) + 1))
            print(f"| {method}, {len(runs)} seeds | " + " | ".join(cells) + " |")


def score_runs(lines: Mapping[str, dict[str, Any]]) -> Iterator[float]:
    """The accuracy of each set on a dataset."""
    first = next(iter(lines.values()))
    path = find_dataset(first["dataset"])
    items = make_task(path, quick=first["quick"]).read(path)
    for line in lines.values():
        yield float(restore(line, items).values["accuracy-cnn"].mean())


def format_score(score: DatasetScore) -> str:
    f1 = "" if score.f1 is None else f"{100 * score.f1:.1f} / "
    return f"{f1}{100 * score.value:.1f} ± {100 * score.spread:.1f}"


def restore(line: Mapping[str, Any], items: LearntItems) -> Answers:
    """The answers of a set, as the task gave them."""
    packed = {key: unpack(value) for key, value in line.items() if isinstance(value, dict)}
    covered = packed.pop("covered").astype(bool)
    if len(covered) != len(items):
        raise SystemExit(f"{line['dataset']}: {len(covered)} results, but {len(items)} items in the data folder")
    values: dict[str, Floats] = {key: array.astype(np.float64) for key, array in packed.items()}
    if (labels := values.get("macro-f1-cnn")) is not None:
        values["accuracy-cnn"] = (labels == items.gold[:, None]).mean(axis=1)
    return Answers(covered, values)


def resample(task: Trained, items: LearntItems, answers: Answers, metric: str, stream: int) -> Floats:
    """The metric in resamples of the items, the same items for every set (R,)."""
    rows = np.arange(len(items))
    if metric == "accuracy-cnn":
        values = answers.values[metric]
        blocks = Resampling(1000).weights(len(items), stream)
        return np.concatenate([weights @ values / len(items) for weights in blocks])
    return bootstrap(task, items, answers, rows, Resampling(1000), stream)[metric].resampled


if __name__ == "__main__":
    try:
        main()
    except StillvecError as error:
        raise SystemExit(str(error)) from None
