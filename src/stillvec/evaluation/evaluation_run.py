"""`evaluate`: every set of vectors on every dataset, on its own words and on the words that all sets cover."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import chain, combinations
from pathlib import Path
from typing import get_args

import numpy as np

from stillvec.errors import DatasetError, UsageError, warn_renamed
from stillvec.evaluation.answer_cache import AnswerCache, digest_data
from stillvec.evaluation.candidates import Candidate, Encoder
from stillvec.evaluation.comparison import compare, correct_holm
from stillvec.evaluation.dataset_result import DatasetResult
from stillvec.evaluation.datasets import Dataset, DatasetSource, find_datasets
from stillvec.evaluation.evaluation_report import (
    PLAIN_POLICIES,
    Comparison,
    NeighbourOverlap,
    OovPolicy,
    Report,
    Score,
    ScoredPairs,
    Words,
)
from stillvec.evaluation.intervals import Mask, Resampling
from stillvec.evaluation.label_probes import LabelProbe, correct_tests
from stillvec.evaluation.labels import Labels, compare_probes
from stillvec.evaluation.means import Mean, SimilarityResult, average_datasets
from stillvec.evaluation.neighbour_overlap import neighbour_overlap
from stillvec.evaluation.similarity import Similarity
from stillvec.evaluation.supervised import LearntItems, beside, resolve_network_device, share, single_thread
from stillvec.evaluation.tasks import Task, check_occurrences, select_tasks, split_tasks
from stillvec.evaluation.teacher_states import TeacherStates, open_teachers, split_teachers
from stillvec.files import cache_folder
from stillvec.formats import VectorSets, open_sets
from stillvec.input_checks import check_arguments, check_count
from stillvec.lexicons import as_pair, find_pairs, lexicon_digest, read_lexicon
from stillvec.progress import Listener, Phase, Progress, Timeline, relay, show_progress
from stillvec.vectors import WordVectors

_N_NEIGHBOURS = 10  # per word, for `overlap`

StrPath = str | os.PathLike[str]


@dataclass
class Evaluation:
    """One evaluation: `steps()` yields progress, then `report` is set. `evaluate` documents the fields."""

    vectors: VectorSets
    data: StrPath | None = None
    tasks: str | Sequence[str] | None = None
    only: str | Sequence[str] | None = None
    oov: OovPolicy = "skip"
    common: bool = True
    resamples: int = 1000
    seed: int = 0
    lexicons: Sequence[StrPath] = ()
    compare_oov: bool = False
    overlap: bool = False
    costly: bool = False
    quick: bool = False
    encoders: Mapping[str, Encoder] | None = None
    cache: StrPath | None = None
    report: Report = field(init=False, default_factory=lambda: Report(()))
    sets: dict[str, WordVectors] = field(init=False)  # the vectors by name
    states: dict[str, TeacherStates] = field(init=False)  # the teachers by name

    def __post_init__(self) -> None:
        vectors, teachers = split_teachers(self.vectors)
        self.sets = open_sets(vectors)
        self.states = open_teachers(teachers, None if self.cache is None else cache_folder())
        self.encoders = dict(self.encoders or {})
        self.tasks = split_tasks(self.tasks) if isinstance(self.tasks, str) else self.tasks
        self.only = self.only.split(",") if isinstance(self.only, str) else self.only
        if self.only is not None and not [*self.only]:
            raise UsageError.expected("at least one dataset", "an empty list", where="only")
        if self.oov not in get_args(OovPolicy):
            raise UsageError.unknown("policy for OOV words", self.oov, get_args(OovPolicy))
        without = [name for name, vectors in self.sets.items() if self.oov == "subword" and vectors.subwords is None]
        if without:
            cure = "fit one with stillvec refine VECTORS --oov subword"
            raise UsageError.conflict(f"The vectors {without[0]!r} have no subword table for OOV words", cure=cure)
        check_count(self.resamples, "resamples", least=0)
        check_count(self.seed, "seed", least=0)
        if not self.sets and not self.states:
            raise UsageError.expected("at least one set of vectors", "none")
        names = [*self.sets, *self.states, *self.encoders]
        if twice := [name for name in names if names.count(name) > 1]:
            raise UsageError.conflict(f"Two sets are called {twice[0]!r}", cure="rename one of them")

    def steps(self) -> Iterator[Progress]:
        """Run the evaluation."""
        for lexicon in self.lexicons:
            next(read_lexicon(lexicon), None)  # fail before the work if it cannot be read
        names = None if self.tasks is None else [*self.tasks]
        tasks, skipped = select_tasks(names, costly=self.costly, quick=self.quick)
        for name, states in self.states.items():
            check_occurrences(tasks, name, is_mix=states.is_mix)
        datasets = find_datasets(self.data, tasks, named=self.tasks is not None, only=self.only)
        source = DatasetSource.of(self.data) if skipped and self.only is None else None  # else the datasets are chosen
        left_out = tuple(name for name, task in skipped.items() if source is not None and source.find(name, task))
        cache = AnswerCache(None if self.cache is None else Path(self.cache))
        sources: dict[str, WordVectors | TeacherStates | Encoder] = {
            **self.sets,
            **self.states,
            **(self.encoders or {}),
        }
        candidates = [Candidate(name, source, cache) for name, source in sources.items()]
        key: dict[str, object] = {}
        if cache.folder is not None:
            yield Progress(Phase.EVALUATING, 0, None, "", 0.0)
            settings = ("oov", "common", "resamples", "seed", "compare_oov", "overlap")
            key = {name: getattr(self, name) for name in settings} | {
                "datasets": [[item.task, item.name, digest_data(tasks[item.task], item.path)] for item in datasets],
                "tasks": {name: asdict(task) for name, task in tasks.items()},
                "candidates": [[candidate.name, candidate.identity] for candidate in candidates],
                "lexicons": [lexicon_digest(lexicon) for lexicon in self.lexicons],
                "left_out": left_out,
            }
            if (cached := cache.get_report(key)) is not None:
                self.report = cached
                return
        for states in self.states.values():
            states.check()
        results, errors = yield from self._answer(datasets, tasks, candidates)
        self.report = self._make_report(results, errors, left_out)
        if cache.folder is not None and not errors:
            cache.put_report(key, self.report)

    def show_steps(self, listener: Listener | None) -> None:
        """Run the evaluation and give each event to `listener`, with the time that is left."""
        listen = None if listener is None else Timeline({Phase.EVALUATING.activity: 1.0}).listen(listener)
        for event in self.steps():
            if listen is not None:
                listen(event)

    def _answer(
        self, datasets: Sequence[Dataset], tasks: Mapping[str, Task], candidates: Sequence[Candidate]
    ) -> Generator[Progress, None, tuple[list[DatasetResult], tuple[str, ...]]]:
        """The answers of all candidates to all datasets, and the errors of the files that cannot be read."""
        start = time.perf_counter()
        results = [DatasetResult(item, tasks[item.task], stream) for stream, item in enumerate(datasets)]
        sizes = [len(self._plan(candidates, result.task)) for result in results]
        done, total, label = 0, sum(sizes), ""
        errors: dict[DatasetResult, str] = {}

        def set_label(text: str) -> None:
            nonlocal label
            label = text

        def progress(n_tests: int, part: float, *, one: bool = True) -> Progress:
            """After this part of the next tests; `one` at a time, so that the part of the present one can be shown."""
            tests = part * n_tests
            work = done + tests, float(total)  # a test that takes minutes counts while it runs
            remark = f"{label}, {tests % 1:.0%}" if one and tests % 1 else label
            seconds = time.perf_counter() - start
            return Progress(Phase.EVALUATING, done + int(tests), total, "tests", seconds, remark, work=work)

        works = [self._answer_dataset(result, candidates, set_label) for result in results]
        together, n_threads = self._find_concurrent(results, candidates)
        for result, size, work in zip(results, sizes, works, strict=True):
            if result not in together:
                error = yield from relay(work, partial(progress, size))
                errors |= {result: error} if error else {}
                done += size
        if together:
            chosen = [number for number, result in enumerate(results) if result in together]
            size = sum(sizes[number] for number in chosen)
            with single_thread():
                training = beside([works[number] for number in chosen], n_threads)
                messages = yield from relay(training, partial(progress, size, one=False))
            errors |= {results[number]: error for number, error in zip(chosen, messages, strict=True) if error}
        if len(errors) == len(results):
            raise DatasetError(" ".join(errors.values()))
        yield Progress(Phase.EVALUATING, total, total, "tests", time.perf_counter() - start, "comparing")
        read = [result for result in results if result not in errors]
        return read, tuple(errors[result] for result in results if result in errors)

    def _answer_dataset(
        self, result: DatasetResult, candidates: Sequence[Candidate], set_label: Callable[[str], None]
    ) -> Generator[float, None, str]:
        """The answers of all candidates to one dataset, and why its file cannot be read or nothing."""
        plan = self._plan(candidates, result.task)
        try:
            result.items = result.dataset.read(result.task, [*self.sets.values()])
            for number, (candidate, policy) in enumerate(plan):
                set_label(f"{result.dataset.task} {result.dataset.name}, {candidate.name}")
                yield number / len(plan)
                yield from share(number, len(plan), result.answer(candidate, policy))
        except DatasetError as error:
            return str(error)
        return ""

    def _find_concurrent(
        self, results: Sequence[DatasetResult], candidates: Sequence[Candidate]
    ) -> tuple[set[DatasetResult], int]:
        """Datasets on which models are trained at the same time, and how many at once: sets already share the cores."""
        training = {result for result in results if result.task.costly}
        n_threads = (os.cpu_count() or 1) // max(1, len(candidates))
        if n_threads < 2 or len(training) < 2 or self.states or resolve_network_device("auto").type != "cpu":
            return set(), 1
        return training, n_threads

    def _plan(self, candidates: Sequence[Candidate], task: Task) -> list[tuple[Candidate, OovPolicy]]:
        """Which candidates answer a task, with which policies; costly tasks are not repeated to compare policies."""
        same = not task.ordered or task.costly or bool(task.item_source)  # their own items have no OOV words
        compare_oov = self.compare_oov and len(self.sets) > 1 and not same
        policies = [self.oov, *(other for other in PLAIN_POLICIES if compare_oov and other != self.oov)]
        kinds = WordVectors | TeacherStates  # an encoder answers only where a vector per text is enough
        answering = [item for item in candidates if isinstance(item.source, kinds) or task.takes_encoders]
        return [(candidate, policy) for policy in policies for candidate in answering]

    def _make_report(self, results: list[DatasetResult], errors: tuple[str, ...], left_out: tuple[str, ...]) -> Report:
        self._mark_leaks(results)
        resampling = Resampling(self.resamples, self.seed)
        compares = self.common and len(self.sets) + len(self.states) + len(self.encoders or {}) > 1
        similarity = [result for result in results if isinstance(result.task, Similarity)]
        means = _Means(similarity, self.oov, resampling)
        comparisons, overall = self._compare(results, means, resampling) if compares else ([], [])
        return Report(
            tuple(score for result in results for score in result.scores(self.oov, compares, resampling)),
            errors,
            correct_holm(comparisons),
            correct_holm(overall),
            tuple(ranking for result in results for ranking in result.rankings()) if self.compare_oov else (),
            self._overlaps(),
            tuple(means.scores(compares)),
            left_out,
            tuple(self._pairs(result) for result in similarity),
            correct_tests(chain.from_iterable(self._compare_probes(result) for result in results)),
        )

    def _pairs(self, result: DatasetResult) -> ScoredPairs:
        answers = result.answers[self.oov]
        cosines = {name: answer.values["spearman"] for name, answer in answers.items()}
        covered = {name: answer.covered for name, answer in answers.items()}
        return ScoredPairs(result.dataset.name, result.items.texts, result.items.gold, cosines, covered)

    def _compare_probes(self, result: DatasetResult) -> Iterator[LabelProbe]:
        if isinstance(result.task, Labels) and isinstance(result.items, LearntItems):
            answers = result.answers[self.oov]
            yield from compare_probes(result.dataset.name, result.task.kinds, result.items, answers)

    def _overlaps(self) -> tuple[NeighbourOverlap, ...]:
        """Each two sets that have enough words in common."""
        overlaps: list[NeighbourOverlap] = []
        for a, b in combinations(self.sets, 2) if self.overlap else ():
            try:
                shared = neighbour_overlap(self.sets[a], self.sets[b], _N_NEIGHBOURS, resamples=0)
            except UsageError:  # too few common words
                continue
            overlaps.append(NeighbourOverlap(a, b, shared.value, _N_NEIGHBOURS, shared.n_words))
        return tuple(overlaps)

    def _mark_leaks(self, results: Sequence[DatasetResult]) -> None:
        """Mark the pairs that a lexicon contains; a lexicon is read once for all datasets."""
        if not self.lexicons:
            return
        tested = [result for result in results if result.task.leaks]
        pairs = {result: [as_pair(*texts[:2]) for texts in result.items.texts] for result in tested}
        edges = chain.from_iterable(read_lexicon(lexicon) for lexicon in self.lexicons)
        leaked = find_pairs(edges, chain.from_iterable(pairs.values()))
        for result, members in pairs.items():
            result.leaked = np.array([pair in leaked for pair in members])

    def _compare(
        self, results: Sequence[DatasetResult], means: _Means, resampling: Resampling
    ) -> tuple[list[Comparison], list[Comparison]]:
        """Each two sets on each dataset, and on the mean of the similarity datasets."""
        comparisons: list[Comparison] = []
        for result in results:
            for words, mask in result.comparable(self.oov) if result.task.ordered else ():
                for metric, samples in result.bootstrap(self.oov, mask, resampling).items():
                    place = result.dataset.task, result.dataset.name, metric
                    found = compare(place, samples, int(mask.sum()), result.task.max_difference, words)
                    less = result.task.prefers_less(metric)
                    comparisons += [replace(pair, lower_is_better=less) for pair in found]
        overall: list[Comparison] = []
        for words, mean in means.compare().items():
            n_pairs = min(mean.n_pairs.values())
            overall += compare(mean.place, mean.samples, n_pairs, Similarity.max_difference, words)
        return comparisons, overall


@dataclass
class _Means:
    """Means over the similarity datasets, each selection of items computed once."""

    results: Sequence[DatasetResult]  # of similarity
    policy: OovPolicy
    resampling: Resampling
    _cached: dict[bytes, Mean | None] = field(default_factory=dict)

    def scores(self, common: bool) -> Iterator[Score]:
        """Of each set on its own items, on those that all cover, and on those that no lexicon contains."""
        selections = [result.select(self.policy, common) for result in self.results]
        for words in selections[0] if selections else ():
            if (mean := self._mean([masks[words] for masks in selections])) is not None:
                yield from mean.scores(self.policy, words)

    def compare(self) -> dict[Words, Mean]:
        """On the items on which sets are compared."""
        masks: dict[Words, list[dict[str, Mask]]] = {}
        for result in self.results:
            for words, mask in result.comparable(self.policy):
                masks.setdefault(words, []).append(dict.fromkeys(result.answers[self.policy], mask))
        return {words: mean for words, by_dataset in masks.items() if (mean := self._mean(by_dataset)) is not None}

    def _mean(self, masks: Sequence[Mapping[str, Mask]]) -> Mean | None:
        key = b"".join(mask.tobytes() for by_name in masks for mask in by_name.values())
        if key not in self._cached:
            parts = [
                SimilarityResult(result.dataset.name, result.items, result.answers[self.policy], mask)
                for result, mask in zip(self.results, masks, strict=True)
            ]
            self._cached[key] = average_datasets(parts, self.resampling)
        return self._cached[key]


def evaluate(
    vectors: VectorSets,
    data: StrPath | None = None,
    tasks: str | Sequence[str] | None = None,
    *,
    only: str | Sequence[str] | None = None,
    oov: OovPolicy = "skip",
    common: bool = True,
    resamples: int = 1000,
    seed: int = 0,
    lexicons: StrPath | Sequence[StrPath] = (),
    compare_oov: bool = False,
    overlap: bool = False,
    costly: bool = False,
    quick: bool = False,
    encoders: Mapping[str, Encoder] | None = None,
    cache: StrPath | None = None,
    unknown: OovPolicy | None = None,
    policies: bool | None = None,
    progress: bool | Callable[[Progress], object] = False,
) -> Report:
    """Score one or several sets of vectors on all datasets of a folder.

    Args:
        vectors: vectors, the path of vectors, a list of either, or a mapping from names to either. For the tasks
            `probing` and `information` also a teacher at a layer, `"teacher:minilm@4"`.
        data: a folder with `similarity/`, `analogy/`, `sentences/`, ... Default: $STILLVEC_DATA, or else the datasets
            in gensim.
        tasks: task names, with settings after a colon (`"similarity,classification:seeds=3"`). Default: all tasks
            that have data and are not costly.
        only: names of the datasets to use. Default: all.
        oov: what to do with items that contain out-of-vocabulary words: "skip" leaves them out, "mean" and "zero"
            use that vector, "subword" composes one from character n-grams.
        common: with several sets, add scores on the items that all of them cover, and compare each two on these.
        resamples: bootstrap resamples for the intervals; 0 computes none.
        seed: random seed of the bootstrap.
        lexicons: lexicons that the vectors were refined with; adds scores on the pairs that these do not contain.
        compare_oov: report on which datasets another `oov` would change the order of the sets.
        overlap: report how many nearest neighbours each two sets share.
        costly: also run the tasks that train a model.
        quick: run costly tasks in their quick form, with less data and one seed.
        encoders: other encoders by name, with `encode(texts)` and a string `identity`, evaluated alongside the vectors
            on the tasks for which a vector per text is enough: sentences, classification (its linear probe), retrieval,
            clustering and bitext.
        cache: a folder for answers, so that the same vectors are not evaluated twice.
        unknown: the old name of `oov`.
        policies: the old name of `compare_oov`.
        progress: True shows a bar in a terminal or a notebook, and lines elsewhere; a function gets every `Progress`
            event.

    Returns:
        The report. A file that cannot be read is named in `Report.errors` while the others are still scored; a
        DatasetError is raised if all fail.
    """
    settings = dict(locals())
    check_arguments(evaluate, settings)
    for old, new in (("unknown", "oov"), ("policies", "compare_oov")):
        if (value := settings.pop(old)) is not None:
            warn_renamed("parameter", old, new)
            settings[new] = value
    if isinstance(lexicons, str | os.PathLike):
        settings["lexicons"] = [lexicons]
    run = Evaluation(**{name: value for name, value in settings.items() if name != "progress"})
    with show_progress(progress) as listener:
        run.show_steps(listener)
    return run.report
