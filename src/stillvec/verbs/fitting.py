"""`fit`: vectors and labelled data in, a `Head` out."""

from __future__ import annotations

import os
import shutil
import time
import warnings
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

from stillvec.errors import DatasetError, StillvecWarning, UsageError
from stillvec.files import check_not_input, lock_outputs, place_beside, read_lines, reserve_output
from stillvec.files.path_names import show_path
from stillvec.formats import VectorSource, name_sets, open_vectors
from stillvec.formats.packed_vectors import quantize_vectors
from stillvec.formats.request import Request, digest_setting_files, digest_vectors, warn_finished
from stillvec.heads import HEADS
from stillvec.heads.fitted_head import Head
from stillvec.heads.head_folder import LAYOUT, load_head, write_head
from stillvec.heads.head_kind import HeadKind, Lesson, NetworkHead, Trained, micro_f1
from stillvec.heads.labelled_data import LabelledData, read_data
from stillvec.heads.lookup import Lookup
from stillvec.heads.marked_texts import number_sentences
from stillvec.heads.pair_head import join_pairs
from stillvec.heads.primitives_head import Primitives
from stillvec.heads.sequence_batches import Sequences
from stillvec.heads.source_attention import join_sources
from stillvec.heads.span_head import SpanHead
from stillvec.heads.tag_parts import choose_split, is_well_formed
from stillvec.heads.tagger_head import Tagger, list_tags, measure_tags, number_tags
from stillvec.heads.training_options import OPTIONS, Invariant, TeacherOption, TrainingOption
from stillvec.heads.word_splitting import split_tokens
from stillvec.input_checks import check_arguments, check_count
from stillvec.notation import parse_spec
from stillvec.numerics.array_types import Rows
from stillvec.progress import Phase, Progress, drain, relay, show_progress
from stillvec.registry import create
from stillvec.vectors import WordVectors

if TYPE_CHECKING:
    from stillvec.training.checkpoint import Checkpoint

Path_ = str | os.PathLike[str]
Packing = Literal["int8", "fp16", "none"]


def fit(
    vectors: VectorSource | Sequence[VectorSource],
    on: Path_ | Iterable[Any],
    head: str = "linear",
    options: Sequence[str] = (),
    *,
    out: Path_ | None = None,
    multilabel: bool = False,
    text_field: str = "text",
    label_field: str | None = None,
    packing: Packing = "int8",
    seed: int = 0,
    seeds: int = 1,
    device: Literal["auto", "cpu", "cuda"] = "auto",
    resume: bool = False,
    force: bool = False,
    progress: bool | Callable[[Progress], object] = False,
) -> Head:
    """Train a small model on vectors, and return it.

    >>> vectors = WordVectors(["ice", "snow", "fire", "heat"], [[1, 0], [0.9, 0.1], [0, 1], [0.1, 0.9]])
    >>> data = [("ice and snow", "cold"), ("fire, heat", "warm")] * 10
    >>> fit(vectors, data).predict(["Snow!", "the heat of a fire"])
    ['cold', 'warm']

    Parameters
    ----------
    vectors: the vectors of words, the path of a folder or file, or a data frame (see `load`); for a tagger also a list
        of several, of which it learns a weighted sum for each word.
    on: a labelled dataset: a file (`label text` per line, a CSV with columns text and label, CoNLL-U or CoNLL columns
        for a tagger), the name that its parts have in common (`trec` for `trec.train.txt`), or (text, label) pairs; or
        a list of datasets, whose items are learnt together.
    head: its name with settings ("linear", "cnn:epochs=10", "tagger"; default: linear).
    options: training options with settings ("teacher:model=tuned", "adversarial:epsilon=0.1"; default: none).
    out: the folder to write (default: nothing is written).
    multilabel: a text may have several labels, joined by commas (default: if the folder is called `multilabel`).
    text_field: the column of a CSV or TSV file that has the text (default: text).
    label_field: the column that has the label (default: label, labels, category or class).
    packing: the vectors inside the head: "int8", "fp16" or "none", as they are (default: int8).
    seed: of everything random (default: 0).
    seeds: so many networks are trained, from `seed` on, and the best on development items is kept (default: 1).
    device: where networks are trained: "auto", "cpu" or "cuda" (default: auto).
    resume: continue from the last checkpoint of an interrupted training with the same `out` (default: False).
    force: replace what exists; in a folder that stillvec did not write, only files of the same names (default: False).
    progress: True shows a bar in a terminal or a notebook; a function gets every `Progress` event (default: False).
    """
    check_arguments(fit, locals())
    if packing not in ("int8", "fp16", "none"):
        raise UsageError.unknown("packing", packing, ("int8", "fp16", "none"))
    check_count(seeds, "seeds")
    check_count(seed, "seed", least=0)
    kind = create(HEADS, head)
    active = read_options(options, parse_spec(head).name)
    pairs = None if isinstance(on, str | os.PathLike) else [*on]
    request_settings = {
        "head": parse_spec(head).name, "settings": asdict(kind), "packing": packing, "seed": seed, "seeds": seeds,
        "options": {name: asdict(option) for name, option in active.items()}, "multilabel": multilabel,
        "fields": [text_field, label_field],
    }  # fmt: skip
    given = cast("list[VectorSource]", [*vectors] if isinstance(vectors, list | tuple) else [vectors])
    source, widths = _join_sources(given, kind)
    asked: dict[str, Any] = {"question": kind.question, "draw": kind.draw} if isinstance(kind, SpanHead) else {}
    data = read_data(
        on if pairs is None else pairs, kind.unit, multilabel=multilabel, text_field=text_field,
        label_field=label_field, **asked,
    )  # fmt: skip
    _check_kind(kind, head, data)
    request = Request("fit", request_settings, lambda: _digest_inputs(source, data, active), LAYOUT)
    check_not_input(out, [*data.files, *(each for each in given if isinstance(each, str | os.PathLike))], LAYOUT)
    if out is not None and request.check(out, force=force):
        with lock_outputs([Path(out)], LAYOUT):  # a run that was killed after it had written leaves these behind
            shutil.rmtree(place_beside(out, "checkpoint"), ignore_errors=True)
        warn_finished(out, LAYOUT.describe(Path(out)))
        return load_head(out)
    run = _Fitting(
        parse_spec(head).name, kind, active, data, pack_vectors(source, packing), seed, seeds, device,
        _open_checkpoint(out, request, resume=resume), dict(zip(name_sets(given), widths, strict=False)),
    )  # fmt: skip
    with ExitStack() as stack:
        if out is not None:
            stack.enter_context(reserve_output(out, LAYOUT, force=force))
        listener = stack.enter_context(show_progress(progress))
        fitted = drain(run.steps(), listener)
        fitted.manifest["request"] = request.to_manifest()
        if out is not None:
            write_head(fitted, out, force=True)
            shutil.rmtree(place_beside(out, "checkpoint"), ignore_errors=True)
    return fitted


def _join_sources(given: Sequence[VectorSource], kind: HeadKind) -> tuple[WordVectors, tuple[int, ...]]:
    """Several sets side by side, each of the same mean square, and their widths; one set as it is."""
    sets = [*map(open_vectors, given)]
    if len(sets) == 1:
        return sets[0], ()
    if not sets:
        raise UsageError.expected("a set of vectors or several", "none", where="vectors")
    if type(kind) is not Tagger:
        cure = "combine them first: stillvec combine A B --method concat --out BOTH"
        raise UsageError.conflict("Only a tagger reads several sets of vectors", cure=cure)
    return join_sources(sets), tuple(each.dim for each in sets)


def number_languages(data: LabelledData, texts: Sequence[list[list[str]]]) -> tuple[Rows, list[list[str]]]:
    """The language of each item and each sentence of `texts` (n + m,), negative where nothing is learnt from it."""
    datasets = np.zeros(len(data.items), np.int64) if data.datasets is None else data.datasets
    languages = np.full(len(data.items), -1)
    languages[data.train] = datasets[data.train]
    numbers = [np.full(len(part), datasets.max() + 1 + number) for number, part in enumerate(texts)]
    if (n_languages := int(datasets.max()) + 1 + len(texts)) < 2:
        cure = "give several datasets, or files of other languages: invariant:texts=de.txt"
        raise UsageError.expected("two languages or more for 'invariant'", n_languages, cure=cure)
    return np.concatenate([languages, *numbers]), [sentence for part in texts for sentence in part]


def read_sentences(path: Path) -> list[list[str]]:
    """The words and punctuation of each line of a text."""
    sentences = [split_tokens(line) for _, line in read_lines(path, DatasetError) if line.strip()]
    if not sentences:
        raise DatasetError.expected("a sentence per line", "an empty file", path=path)
    return sentences


def read_options(specs: Sequence[str], head: str) -> dict[str, TrainingOption]:
    """The options that change the training, by name."""
    if isinstance(specs, str):
        raise UsageError.expected("a list of options", repr(specs), where="options", cure="put it into a list")
    active: dict[str, TrainingOption] = {}
    for spec in specs:
        name = parse_spec(spec).name
        option = create(OPTIONS, spec)
        if head not in option.heads:
            message = f"The option {name!r} is for {', '.join(option.heads)}, not for {head!r}"
            raise UsageError.conflict(message, cure="leave it out, or choose another head")
        if option.is_active:
            active[name] = option
    return active


def pack_vectors(vectors: WordVectors, packing: Packing) -> WordVectors:
    """The vectors that a head contains."""
    return vectors if packing == "none" else quantize_vectors(vectors, packing)


def _check_kind(kind: HeadKind, head: str, data: LabelledData) -> None:
    if data.multilabel and not kind.several_labels:
        raise UsageError.conflict(f"The head {head!r} gives one label per text", cure="use linear, cnn or attention")
    if data.multilabel and isinstance(kind, NetworkHead) and kind.objective != "cross_entropy":
        raise UsageError.conflict("With several labels per text, the objective is cross_entropy", cure="leave it out")


def _digest_inputs(vectors: WordVectors, data: LabelledData, options: Mapping[str, TrainingOption]) -> dict[str, str]:
    inputs = {"vectors": digest_vectors(vectors), "data": data.digest()}
    for name, option in options.items():
        for key, digest in digest_setting_files(asdict(option)).items():
            inputs[f"{name} {key}"] = digest
        weights = Path(option.model, "model.safetensors") if isinstance(option, TeacherOption) else None
        if weights is not None and weights.is_file():
            inputs.update(digest_setting_files({f"{name} model": weights}))
    return inputs


def _open_checkpoint(out: Path_ | None, request: Request, *, resume: bool) -> Checkpoint | None:
    if out is None:
        return None
    from stillvec.training.checkpoint import open_checkpoint  # imports torch

    folder = place_beside(out, "checkpoint")
    checkpoint = open_checkpoint(folder, request.to_manifest(), resume=resume)
    others = {*folder.glob("training-*.safetensors")}
    if resume and others and checkpoint is not None and checkpoint.path not in others:
        message = f"The interrupted training of {out} had other data, vectors or settings; this one starts again."
        warnings.warn(message, StillvecWarning, stacklevel=3)
    return checkpoint


class _Fitting:
    """One training: reading, the teacher's labels, training, scores."""

    def __init__(
        self,
        name: str,
        kind: HeadKind,
        options: Mapping[str, TrainingOption],
        data: LabelledData,
        vectors: WordVectors,
        seed: int,
        n_seeds: int,
        device: str,
        checkpoint: Checkpoint | None,
        widths: Mapping[str, int],
    ) -> None:
        self.widths = widths  # of several sets by name, empty for one
        self.name, self.kind, self.options, self.data, self.vectors = name, kind, options, data, vectors
        self.seed, self.n_seeds, self.device, self.checkpoint = seed, n_seeds, device, checkpoint
        self.lookup = Lookup(vectors, "skip" if vectors.subwords is None else "subword")

    def steps(self) -> Generator[Progress, None, Head]:
        start = time.perf_counter()
        yield Progress(Phase.STARTING, 0, None, "", 0.0)
        languages: Rows | None = None
        more: Sequence[Any]
        soft = None
        if isinstance(option := self.options.get("invariant"), Invariant):
            languages, more = number_languages(self.data, [read_sentences(path) for path in option.texts])
        else:
            more, soft = yield from self._ask_teacher()
        sequences = self._read([*self.data.items, *more])
        targets = self.data.targets() if self.data.unit != "tokens" else np.zeros((len(self.data.items), 0))
        seeds = tuple(range(self.seed, self.seed + self.n_seeds))
        lesson = Lesson(
            self.data, sequences, targets, self.options, soft, tuple(self.widths.values()), languages, seeds,
            self.device, self.checkpoint,
        )  # fmt: skip
        trained: Trained = yield from self._show(self.kind.fit(lesson), Phase.TRAINING)
        vectors = self.vectors
        if (table := trained.arrays.pop("table", None)) is not None:
            vectors = _change_rows(vectors, sequences, table)
        manifest = self._describe(trained, len(more))
        head = Head(self.name, self.kind, vectors, self.data.names, trained.arrays, manifest)
        manifest["scores"]["test"] = self._measure(head, self.data.test) if len(self.data.test) else None
        head.manifest.update(manifest | {"seconds": round(time.perf_counter() - start, 2)})
        return head

    def _ask_teacher(self) -> Generator[Progress, None, tuple[list[str], Any]]:
        option = self.options.get("teacher")
        if not isinstance(option, TeacherOption):
            return [], None
        from stillvec.heads.teacher_labels import add_texts, label_texts  # imports torch

        more = add_texts(option, self.data, self.vectors, self.seed)
        work = label_texts(option, self.data, [*self.data.items, *more], self.device)
        return more, (yield from self._show(work, Phase.OTHER_TEXTS))

    def _read(self, items: Sequence[Any]) -> Sequences:
        if self.data.unit == "tokens":
            return self.lookup.read_tokens(items)
        if self.data.unit == "pair":
            return join_pairs(self.lookup.read_texts([text for pair in items for text in pair]))
        if self.data.unit == "span":
            return self.lookup.read_tokens(number_sentences(items)[0])
        return self.lookup.read_texts(items)

    def _show(self, work: Generator[float, None, Any], phase: Phase) -> Generator[Progress, None, Any]:
        start = time.perf_counter()

        def convert(done: float) -> Progress:
            return Progress(phase, 0, None, "", time.perf_counter() - start, subject=self.name, work=(done, 1.0))

        return (yield from relay(work, convert))

    def _describe(self, trained: Trained, n_more: int) -> dict[str, Any]:
        data = self.data
        sizes = {"train": len(data.train), "dev": len(data.dev), "test": len(data.test), "unlabelled": n_more}
        metric = "f1" if data.has_spans else "micro-f1" if data.multilabel else "accuracy"
        return {
            "options": {name: asdict(option) for name, option in self.options.items()},
            "multilabel": data.multilabel,
            "threshold": trained.threshold,
            "data": {"files": [show_path(file.name) for file in data.files], "digest": data.digest(), **sizes},
            "scores": {"dev": {metric: round(trained.quality, 6)}},
            "seed": self.seed,
            "seeds": self.n_seeds,
            **({"sources": [{"name": name, "dim": dim} for name, dim in self.widths.items()]} if self.widths else {}),
        }

    def _measure(self, head: Head, rows: Rows) -> dict[str, float]:
        """Of test items, which nothing was selected on."""
        data, items = self.data, [self.data.items[row] for row in rows.tolist()]
        said = head.predict(items)
        if data.unit == "tokens":
            return self._measure_tags(said, rows)
        if data.multilabel:
            place = {name: number for number, name in enumerate(head.labels)}
            given = np.zeros((len(rows), len(place)), bool)
            for row, labels in enumerate(said):
                given[row, [place[label] for label in labels]] = True
            return {"micro-f1": round(micro_f1(given, data.targets()[rows] > 0), 6)}
        gold_labels = [data.labels[row][0] for row in rows.tolist()]
        right = np.mean([ours == theirs for ours, theirs in zip(said, gold_labels, strict=True)])
        return {"accuracy": round(float(right), 6), "macro-f1": round(_macro_f1(said, gold_labels), 6)}

    def _measure_tags(self, said: Sequence[Sequence[str]], rows: Rows) -> dict[str, float]:
        """Of the words of test sentences; with tags that training lacks, also how many of these are right."""
        data = self.data
        gold, place = number_tags(data), {name: number for number, name in enumerate(list_tags(data))}
        numbers = np.array([place.get(tag, len(place)) for tags in said for tag in tags], np.int64)
        scores = {"f1" if data.has_spans else "accuracy": round(measure_tags(data, gold, rows, numbers), 6)}
        pairs = [*zip(chain.from_iterable(data.labels[row] for row in rows), chain.from_iterable(said), strict=True)]
        known = {*data.names}
        unseen = [ours == theirs for theirs, ours in pairs if theirs not in known]
        if not data.has_spans and unseen:
            scores["unseen"] = round(float(np.mean(unseen)), 6)
        if isinstance(self.kind, Primitives):
            split = choose_split(data.names) if self.kind.split == "auto" else self.kind.split
            malformed = {tag for _, tag in pairs if not is_well_formed(tag, split)}
            scores["malformed"] = round(float(np.mean([tag in malformed for _, tag in pairs])), 6)
        return scores


def _macro_f1(said: Sequence[str], gold: Sequence[str]) -> float:
    """The mean F1 of the labels that occur."""
    scores = []
    for label in {*said, *gold}:
        both = sum(ours == theirs == label for ours, theirs in zip(said, gold, strict=True))
        scores.append(2 * both / (said.count(label) + gold.count(label)))
    return float(np.mean(scores))


def _change_rows(vectors: WordVectors, sequences: Sequences, table: Any) -> WordVectors:
    """The vectors with those that were trained; stored in 16 bits."""
    assert sequences.source_rows is not None
    chosen = sequences.source_rows >= 0
    matrix = np.array(vectors.matrix, np.float32)
    matrix[sequences.source_rows[chosen]] = table[chosen]
    provenance = {key: value for key, value in vectors.provenance.items() if key != "stored"}
    changed = WordVectors(vectors.vocabulary, matrix, subwords=vectors.subwords, provenance=provenance)
    steps = [*(provenance.get("refined") or ()), {"step": "tuned with a head"}]
    return quantize_vectors(changed.with_provenance({**provenance, "refined": steps}), "fp16")
