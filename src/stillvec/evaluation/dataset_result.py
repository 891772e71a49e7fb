"""A dataset with the answers of every candidate: scores on subsets of its items, resamples to compare, policies."""

from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from typing import get_args

import numpy as np

from stillvec.evaluation.candidates import Candidate
from stillvec.evaluation.comparison import BootstrapSample, bootstrap
from stillvec.evaluation.datasets import Dataset
from stillvec.evaluation.evaluation_report import Detail, OovPolicy, PolicyRanking, Score, Words
from stillvec.evaluation.intervals import Estimate, Mask, Resampling
from stillvec.evaluation.tasks import Answers, Items, Task


@dataclass(eq=False)
class DatasetResult:
    """One dataset and the answers of every candidate."""

    dataset: Dataset
    task: Task
    stream: int  # of random draws
    items: Items = field(init=False)
    leaked: Mask | None = None  # (n,) pairs that the lexicons contain
    answers: dict[OovPolicy, dict[str, Answers]] = field(default_factory=dict)
    _narrowed: dict[tuple[OovPolicy, str, bytes], Answers] = field(default_factory=dict)

    def answer(self, candidate: Candidate, policy: OovPolicy) -> Generator[float]:
        answers = yield from candidate.answer_steps(self.dataset, self.task, self.items, policy)
        self.answers.setdefault(policy, {})[candidate.name] = answers

    def scores(self, policy: OovPolicy, common: bool, resampling: Resampling) -> Iterator[Score]:
        selected = self.select(policy, common)
        for name in self.answers[policy]:
            estimates: dict[bytes, dict[str, Estimate]] = {}
            for words, masks in selected.items():
                scored = masks[name]
                narrowed = self._narrow(policy, name, scored)
                if (key := scored.tobytes()) not in estimates:
                    estimates[key] = self.task.score(self.items, narrowed, np.flatnonzero(scored), resampling)
                n_leaked = int(self.leaked.sum()) if self.leaked is not None and words == "unleaked" else None
                counts = len(self.items), int((scored & narrowed.covered).sum())
                for metric, estimate in estimates[key].items():
                    details = self._details(narrowed, metric, scored)
                    place = self.dataset.task, self.dataset.name, metric
                    yield Score(name, *place, *estimate, *counts, policy, words, details, n_leaked)

    def select(self, policy: OovPolicy, common: bool) -> dict[Words, dict[str, Mask]]:
        """The items that count for each set: own, common to all, in no lexicon; all if OOV words have a vector."""
        own = {name: _select_scored(answers, policy) for name, answers in self.answers[policy].items()}
        masks: dict[Words, dict[str, Mask]] = {"own": own}
        if common and len(own) > 1:
            masks["common"] = dict.fromkeys(own, self.common(policy))
        if self.leaked is not None:
            masks["unleaked"] = {name: mask & ~self.leaked for name, mask in own.items()}
        return masks

    def common(self, policy: OovPolicy) -> Mask:
        """The items that all sets cover (n,)."""
        return np.asarray(np.logical_and.reduce([answers.covered for answers in self.answers[policy].values()]))

    def comparable(self, policy: OovPolicy) -> Iterator[tuple[Words, Mask]]:
        """The items on which sets are compared: those that all cover, or all if OOV words have a vector."""
        common = self.common(policy)
        scored = common if policy == "skip" else common | True
        yield "common" if policy == "skip" else "own", scored
        if self.leaked is not None:
            yield "unleaked", scored & ~self.leaked

    def bootstrap(self, policy: OovPolicy, mask: Mask, resampling: Resampling) -> dict[str, dict[str, BootstrapSample]]:
        """Metric → set → its resamples, for metrics by which sets are ranked and that at least two sets have."""
        chosen = np.flatnonzero(mask)
        samples: dict[str, dict[str, BootstrapSample]] = {}
        if len(chosen) < 2 or len(self.answers[policy]) < 2:
            return {}
        for name in self.answers[policy]:
            answers = self._narrow(policy, name, mask)
            for metric, sample in bootstrap(self.task, self.items, answers, chosen, resampling, self.stream).items():
                samples.setdefault(metric, {})[name] = sample
        return {metric: by_name for metric, by_name in samples.items() if len(by_name) > 1}

    def rankings(self) -> Iterator[PolicyRanking]:
        """The values of the sets under each policy, if there are several of both."""
        if len(self.answers) < 2 or len(next(iter(self.answers.values()))) < 2:
            return
        values: dict[str, dict[OovPolicy, dict[str, float]]] = {}
        for policy in (policy for policy in get_args(OovPolicy) if policy in self.answers):  # always in one order
            for name, answers in self.answers[policy].items():
                chosen = np.flatnonzero(_select_scored(answers, policy))
                for metric, estimate in self.task.score(self.items, answers, chosen, Resampling(0)).items():
                    values.setdefault(metric, {}).setdefault(policy, {})[name] = estimate.value
        for metric, by_policy in values.items():
            if self.task.ranks_by(metric):
                less = self.task.prefers_less(metric)
                yield PolicyRanking(self.dataset.task, self.dataset.name, metric, by_policy, less)

    def _narrow(self, policy: OovPolicy, name: str, scored: Mask) -> Answers:
        """The answers of a set if only these items are asked; for most tasks that makes no difference."""
        answers = self.answers[policy][name]
        if np.array_equal(scored, _select_scored(answers, policy)):
            return answers
        key = (policy, name, scored.tobytes())
        if key not in self._narrowed:
            self._narrowed[key] = self.task.narrow(self.items, answers, np.flatnonzero(scored))
        return self._narrowed[key]

    def _details(self, answers: Answers, metric: str, scored: Mask) -> tuple[Detail, ...]:
        """The value on each section, in the order of the file."""
        details = []
        for section, rows in self.items.members().items():
            estimates = self.task.score(self.items, answers, rows[scored[rows]], Resampling(0))
            n_covered = int((scored & answers.covered)[rows].sum())
            details.append(Detail(section, estimates[metric].value, len(rows), n_covered))
        return tuple(details)


def _select_scored(answers: Answers, policy: OovPolicy) -> Mask:
    return answers.covered if policy == "skip" else answers.covered | True
