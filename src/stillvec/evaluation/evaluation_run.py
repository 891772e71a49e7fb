"""`evaluate`: every set of vectors on every dataset, on its own words and on the words that all sets know."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, combinations
from pathlib import Path
from typing import get_args

import numpy as np

from stillvec.errors import DatasetError, UsageError, suggest
from stillvec.evaluation.answer_cache import Cache, files_digest, settings_of
from stillvec.evaluation.candidates import Candidate, Encoder, EncoderCandidate, VectorsCandidate
from stillvec.evaluation.comparison import compare, holm
from stillvec.evaluation.dataset_result import DatasetResult, Mask
from stillvec.evaluation.datasets import Dataset, Place, find_datasets
from stillvec.evaluation.evaluation_report import (
    ANY_SET,
    Comparison,
    Overlap,
    Report,
    Score,
    Unknown,
    Words,
)
from stillvec.evaluation.intervals import Resampling
from stillvec.evaluation.means import Mean, SimilarityResult, mean_of
from stillvec.evaluation.neighbour_overlap import neighbour_overlap
from stillvec.evaluation.similarity import Similarity
from stillvec.evaluation.task_selection import chosen_tasks
from stillvec.evaluation.tasks import Task
from stillvec.lexicons import as_pair, lexicon_digest, pairs_held, read_lexicon
from stillvec.progress import Progress
from stillvec.vectors import WordVectors

_NEIGHBOURS = 10  # of a word, whose overlap is told


@dataclass
class Evaluation:
    """One evaluation: `steps()` yields signs of life; then `report` is there. `evaluate` says what the fields are."""

    vectors: Mapping[str, WordVectors]
    data: str | os.PathLike[str] | None = None
    tasks: Sequence[str] | None = None
    only: Sequence[str] | None = None
    unknown: Unknown = "skip"
    common: bool = True
    resamples: int = 1000
    seed: int = 0
    lexicons: Sequence[str | os.PathLike[str]] = ()
    policies: bool = False
    overlap: bool = False
    costly: bool = False
    quick: bool = False
    encoders: Mapping[str, Encoder] = field(default_factory=dict)
    cache: str | os.PathLike[str] | None = None
    report: Report = field(init=False, default_factory=lambda: Report(()))

    def __post_init__(self) -> None:
        known = get_args(Unknown)
        if self.unknown not in known:
            raise UsageError(f"There is no policy {self.unknown!r} for unknown words; {suggest(self.unknown, known)}")
        without = [name for name, each in self.vectors.items() if self.unknown == "subword" and each.subwords is None]
        if without:
            raise UsageError(
                f"The vectors {without[0]!r} have no n-grams to make unknown words of; make them with "
                "stillvec refine VECTORS --oov subword."
            )
        if self.resamples < 0:
            raise UsageError(f"The number of resamples is 0 or more, and {self.resamples} came.")
        if not self.vectors:
            raise UsageError("Evaluating needs at least one set of vectors, and none came.")
        twice = [name for name in self.encoders if name in self.vectors]
        if twice:
            raise UsageError(f"Two sets are called {twice[0]!r}; give one of them another name.")

    def steps(self) -> Iterator[Progress]:
        begun = time.perf_counter()
        for source in self.lexicons:
            next(read_lexicon(source), None)  # a lexicon that cannot be read is told before the work
        tasks, left = chosen_tasks(self.tasks, costly=self.costly, quick=self.quick)
        found = find_datasets(self.data, tasks, named=self.tasks is not None, only=self.only)
        place = Place.of(self.data)
        left_out = tuple(name for name, task in left.items() if place.find(name, task))
        contestants = self._contestants()
        cache = self._cache
        if cache.folder is not None:
            yield Progress("evaluating", 0, None, "", 0.0)
            facts = self._facts(found, tasks, contestants, left_out)
            earlier = cache.report(facts)
            if earlier is not None:
                self.report = earlier
                return
        total = sum(len(self._asked(contestants, dataset, tasks)) for dataset in found)
        done = 0
        judged: list[DatasetResult] = []
        errors: list[str] = []
        for stream, dataset in enumerate(found):
            asked = self._asked(contestants, dataset, tasks)
            each = DatasetResult(dataset, tasks[dataset.task], stream)
            try:
                each.items = each.task.read(dataset.path)
                for contestant, policy in asked:
                    told = f"{dataset.task} {dataset.name}, {contestant.name}"
                    yield Progress("evaluating", done, total, "tests", time.perf_counter() - begun, told)
                    for share in each.answer(contestant, policy):
                        seconds = time.perf_counter() - begun
                        yield Progress("evaluating", done, total, "tests", seconds, f"{told}, {share:.0%}")
                    done += 1
            except DatasetError as error:
                errors.append(str(error))
            else:
                judged.append(each)
        if not judged:
            raise DatasetError(" ".join(errors))
        yield Progress("evaluating", total, total, "tests", time.perf_counter() - begun, "comparing")
        self.report = self._report(judged, tuple(errors), left_out)
        if cache.folder is not None and not errors:
            cache.put_report(facts, self.report)

    @property
    def _cache(self) -> Cache:
        return Cache(None if self.cache is None else Path(self.cache))

    def _facts(
        self,
        found: Sequence[Dataset],
        tasks: Mapping[str, Task],
        contestants: Sequence[Candidate],
        left_out: tuple[str, ...],
    ) -> dict[str, object]:
        """All that decides the report."""
        names = ("unknown", "common", "resamples", "seed", "policies", "overlap")
        return {name: getattr(self, name) for name in names} | {
            "datasets": [[each.task, each.name, files_digest(each.path)] for each in found],
            "tasks": {name: settings_of(task) for name, task in tasks.items()},
            "contestants": [[each.name, each.identity] for each in contestants],
            "lexicons": [lexicon_digest(source) for source in self.lexicons],
            "left_out": left_out,
        }

    def _contestants(self) -> list[Candidate]:
        cache = self._cache
        return [
            *(VectorsCandidate(name, vectors, cache) for name, vectors in self.vectors.items()),
            *(EncoderCandidate(name, encoder, cache) for name, encoder in self.encoders.items()),
        ]

    def _asked(
        self, contestants: Sequence[Candidate], dataset: Dataset, tasks: Mapping[str, Task]
    ) -> list[tuple[Candidate, Unknown]]:
        """Who answers this dataset, with which policies; costly tasks are not repeated to compare policies."""
        task = tasks[dataset.task]
        able = [each for each in contestants if each.can(task)]
        compare = self.policies and len(self.vectors) > 1 and task.ordered and not task.costly
        policies = [self.unknown, *(other for other in ANY_SET if compare and other != self.unknown)]
        return [(each, policy) for policy in policies for each in able]

    def _report(self, judged: Sequence[DatasetResult], errors: tuple[str, ...], left_out: tuple[str, ...]) -> Report:
        self._find_leaks(judged)
        resampling = Resampling(self.resamples, self.seed)
        several = len(self.vectors) + len(self.encoders) > 1
        scores = [score for each in judged for score in each.scores(self.unknown, self.common and several, resampling)]
        alike = [each for each in judged if isinstance(each.task, Similarity)]
        means = _Means(alike, self.unknown, resampling)
        comparisons, overall = self._compare(judged, means, resampling) if several and self.common else ([], [])
        rankings = (ranking for each in judged for ranking in each.rankings()) if self.policies else ()
        return Report(
            tuple(scores),
            errors,
            holm(comparisons),
            holm(overall),
            tuple(rankings),
            self._overlaps(),
            means.scores(self.common and len(self.vectors) > 1),
            left_out,
        )

    def _overlaps(self) -> tuple[Overlap, ...]:
        """Each two sets that share enough words to have neighbours among them."""
        found: list[Overlap] = []
        for a, b in combinations(self.vectors, 2) if self.overlap else ():
            try:
                each = neighbour_overlap(self.vectors[a], self.vectors[b], _NEIGHBOURS, resamples=0)
            except UsageError:  # too few words that both know
                continue
            found.append(Overlap(a, b, each.value, _NEIGHBOURS, each.n_words))
        return tuple(found)

    def _find_leaks(self, judged: Sequence[DatasetResult]) -> None:
        """Mark the pairs that a lexicon holds; a lexicon is read once for all datasets."""
        if not self.lexicons:
            return
        paired = [each for each in judged if each.task.leaks]
        pairs = {each: [as_pair(*texts[:2]) for texts in each.items.texts] for each in paired}
        edges = chain.from_iterable(read_lexicon(source) for source in self.lexicons)
        held = pairs_held(edges, chain.from_iterable(pairs.values()))
        for each in paired:
            each.leaked = np.array([pair in held for pair in pairs[each]])

    def _compare(
        self, judged: Sequence[DatasetResult], means: _Means, resampling: Resampling
    ) -> tuple[list[Comparison], list[Comparison]]:
        """Each two sets on each dataset, and on the mean of the similarity datasets."""
        comparisons: list[Comparison] = []
        for each in judged:
            task, dataset = each.dataset.task, each.dataset.name
            for words, scored in each.shared(self.unknown) if each.task.ordered else ():
                for metric, of in each.bootstrap(self.unknown, scored, resampling).items():
                    n = int(scored.sum())
                    comparisons += compare(of, n, task=task, dataset=dataset, metric=metric, words=words)
        overall: list[Comparison] = []
        for words, mean in means.compare().items():
            n, name = min(mean.pairs.values()), f"mean of {len(mean.parts)}"
            told = {"task": "similarity", "dataset": name, "metric": "spearman"}
            overall += compare(mean.drawn, n, **told, words=words)
        return comparisons, overall


@dataclass
class _Means:
    """Means over the similarity datasets, on each choice of items once."""

    judged: Sequence[DatasetResult]  # of similarity
    policy: Unknown
    resampling: Resampling
    _known: dict[bytes, Mean | None] = field(default_factory=dict)

    def scores(self, common: bool) -> tuple[Score, ...]:
        """Of each set on its own items, on those that all know, and on those that no lexicon holds."""
        own = [each.own(self.policy) for each in self.judged]
        kinds: dict[Words, list[dict[str, Mask]]] = {"own": own}
        if common:
            shared = [dict.fromkeys(each.answers[self.policy], each.common(self.policy)) for each in self.judged]
            kinds["common"] = shared
        if any(each.leaked is not None for each in self.judged):
            kinds["unleaked"] = [
                {name: each.unleaked(mask) for name, mask in masks.items()}
                for each, masks in zip(self.judged, own, strict=True)
            ]
        means = {words: self._mean(masks) for words, masks in kinds.items()}
        return tuple(
            score for words, mean in means.items() if mean is not None for score in mean.scores(self.policy, words)
        )

    def compare(self) -> dict[Words, Mean]:
        """On the items on which sets are compared."""
        kinds: dict[Words, list[dict[str, Mask]]] = {}
        for each in self.judged:
            for words, scored in each.shared(self.policy):
                kinds.setdefault(words, []).append(dict.fromkeys(each.answers[self.policy], scored))
        return {words: mean for words, masks in kinds.items() if (mean := self._mean(masks)) is not None}

    def _mean(self, masks: Sequence[Mapping[str, Mask]]) -> Mean | None:
        key = b"".join(mask.tobytes() for each in masks for mask in each.values())
        if key not in self._known:
            asked = [
                SimilarityResult(each.dataset.name, each.items, each.answers[self.policy], mask)
                for each, mask in zip(self.judged, masks, strict=True)
            ]
            self._known[key] = mean_of(asked, self.resampling)
        return self._known[key]


def evaluate(
    vectors: WordVectors | Mapping[str, WordVectors],
    data: str | os.PathLike[str] | None = None,
    tasks: Sequence[str] | None = None,
    *,
    unknown: Unknown = "skip",
    common: bool = True,
    resamples: int = 1000,
    seed: int = 0,
    lexicons: Sequence[str | os.PathLike[str]] = (),
    policies: bool = False,
    overlap: bool = False,
    costly: bool = False,
    quick: bool = False,
    only: Sequence[str] | None = None,
    encoders: Mapping[str, Encoder] | None = None,
    cache: str | os.PathLike[str] | None = None,
) -> Report:
    """Score vectors, or several sets of them by name, on all datasets of a folder.

    `data` is a folder with `similarity/`, `analogy/`, `sentences/`; None is $STILLVEC_DATA, or else the
    datasets that gensim carries. `tasks` are names, perhaps with settings (`"classification:seeds=3"`); without
    them all run that are not costly (`costly`: these too; `quick`: their quick form). `only` names datasets.
    `unknown` says what becomes of items with unknown words: "skip" leaves them out, "mean" and "zero" put that
    vector in their place; `policies` tells what each choice would give. With several sets `common` adds scores
    on the items that all of them know, and compares each two on these. `lexicons`, those that vectors were
    refined with, add scores on the pairs that they do not hold. `encoders` make a vector of a text themselves,
    and are judged beside the vectors on sentences. `cache` is a folder for answers.

    A file that cannot be read is told in `Report.errors`, and the others are still scored; DatasetError if
    all fail.
    """
    sets = {"vectors": vectors} if isinstance(vectors, WordVectors) else dict(vectors)
    work = Evaluation(
        sets,
        data,
        tasks,
        only,
        unknown,
        common,
        resamples,
        seed,
        lexicons,
        policies,
        overlap,
        costly,
        quick,
        encoders or {},
        cache,
    )
    for _ in work.steps():
        pass
    return work.report
