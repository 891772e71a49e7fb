"""A dataset and what everyone answered to it: scores on parts of its items, draws to compare by, ranks by policy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from stillvec.evaluation.candidates import Candidate
from stillvec.evaluation.comparison import BootstrapSample, bootstrap
from stillvec.evaluation.datasets import Dataset
from stillvec.evaluation.evaluation_report import Detail, PolicyRanking, Score, Unknown, Words
from stillvec.evaluation.intervals import Estimate, Resampling
from stillvec.evaluation.tasks import Answers, Items, JointlyScored, Task

Mask = NDArray[np.bool_]


class ItemSubset(NamedTuple):
    words: Words
    covered: Mask  # (n,) known
    scored: Mask  # (n,) counted in the value


@dataclass(eq=False)
class DatasetResult:
    """One dataset, and what everyone answered to it."""

    dataset: Dataset
    task: Task
    stream: int  # of the draws
    items: Items = field(init=False)
    leaked: Mask | None = None  # (n,) pairs that the lexicons hold
    answers: dict[Unknown, dict[str, Answers]] = field(default_factory=dict)
    _narrowed: dict[tuple[Unknown, str, bytes], Answers] = field(default_factory=dict)

    def answer(self, contestant: Candidate, policy: Unknown) -> Iterator[float]:
        answers = yield from contestant.answer_steps(self.dataset, self.task, self.items, policy)
        self.answers.setdefault(policy, {})[contestant.name] = answers

    def scores(self, policy: Unknown, common: bool, resampling: Resampling) -> Iterator[Score]:
        everyone = self.answers[policy]
        shared, scored = self.common(policy), self.own(policy)
        for name, answers in everyone.items():
            own = answers.covered
            parts = [ItemSubset("own", own, scored[name])]
            parts += [ItemSubset("common", shared, shared)] if common and len(everyone) > 1 else []
            if self.leaked is not None:
                parts.append(ItemSubset("unleaked", self.unleaked(own), self.unleaked(scored[name])))
            known: dict[bytes, dict[str, Estimate]] = {}
            for part in parts:
                key = part.scored.tobytes()
                given = self._given(policy, name, part.scored)
                if key not in known:
                    known[key] = self.task.score(self.items, given, np.flatnonzero(part.scored), resampling)
                for metric, estimate in known[key].items():
                    yield self._score(name, metric, estimate, part, given, policy)

    def own(self, policy: Unknown) -> dict[str, Mask]:
        """The items that count for each set: those it knows, all of them if unknown words have a vector."""
        return {
            name: each.covered if policy == "skip" else each.covered | True
            for name, each in self.answers[policy].items()
        }

    def common(self, policy: Unknown) -> Mask:
        """The items that all sets know (n,)."""
        return np.asarray(np.logical_and.reduce([each.covered for each in self.answers[policy].values()]))

    def unleaked(self, mask: Mask) -> Mask:
        """Those of some items that no lexicon holds."""
        return mask if self.leaked is None else mask & ~self.leaked

    def _given(self, policy: Unknown, name: str, scored: Mask) -> Answers:
        """What a set answers if only these items are asked; for most tasks that makes no difference."""
        answers = self.answers[policy][name]
        asked = answers.covered if policy == "skip" else answers.covered | True
        if not isinstance(self.task, JointlyScored) or np.array_equal(scored, asked):
            return answers
        key = (policy, name, scored.tobytes())
        if key not in self._narrowed:
            self._narrowed[key] = self.task.narrow(self.items, answers, np.flatnonzero(scored))
        return self._narrowed[key]

    def _score(
        self,
        name: str,
        metric: str,
        estimate: Estimate,
        part: ItemSubset,
        answers: Answers,
        policy: Unknown,
    ) -> Score:
        leaked = None if self.leaked is None or part.words != "unleaked" else int(self.leaked.sum())
        return Score(
            name,
            self.dataset.task,
            self.dataset.name,
            metric,
            *estimate,
            n_items=len(self.items),
            n_covered=int(part.covered.sum()),
            unknown=policy,
            words=part.words,
            details=self._details(answers, metric, part),
            n_leaked=leaked,
        )

    def _details(self, answers: Answers, metric: str, part: ItemSubset) -> tuple[Detail, ...]:
        """The value on each section, in the order of the file."""
        members: dict[str, list[int]] = {}
        for number, section in enumerate(self.items.sections):
            members.setdefault(section, []).append(number)
        details = []
        for section, numbers in members.items():
            those = np.array(numbers)
            found = self.task.score(self.items, answers, those[part.scored[those]], Resampling(0))
            details.append(Detail(section, found[metric].value, len(those), int(part.covered[those].sum())))
        return tuple(details)

    def shared(self, policy: Unknown) -> Iterator[tuple[Words, Mask]]:
        """The items on which sets are compared: those that all know, all of them if unknown words have a vector."""
        covered = self.common(policy)
        words: Words = "common" if policy == "skip" else "own"
        scored = covered if policy == "skip" else covered | True
        yield words, scored
        if self.leaked is not None:
            yield "unleaked", self.unleaked(scored)

    def bootstrap(self, policy: Unknown, scored: Mask, resampling: Resampling) -> dict[str, dict[str, BootstrapSample]]:
        """Metric → set → what it gets, for metrics of which more is better and that at least two sets have."""
        chosen = np.flatnonzero(scored)
        found: dict[str, dict[str, BootstrapSample]] = {}
        if len(chosen) < 2 or len(self.answers[policy]) < 2:
            return {}
        for name in self.answers[policy]:
            given = self._given(policy, name, scored)
            for metric, each in bootstrap(self.task, self.items, given, chosen, resampling, self.stream).items():
                found.setdefault(metric, {})[name] = each
        return {metric: of for metric, of in found.items() if len(of) > 1}

    def rankings(self) -> Iterator[PolicyRanking]:
        """What the sets get under each policy, if there are several of both."""
        if len(self.answers) < 2 or len(next(iter(self.answers.values()))) < 2:
            return
        values: dict[str, dict[Unknown, dict[str, float]]] = {}
        for policy in (each for each in get_args(Unknown) if each in self.answers):  # always in one order
            for name, answers in self.answers[policy].items():
                chosen = np.flatnonzero(answers.covered if policy == "skip" else answers.covered | True)
                for metric, estimate in self.task.score(self.items, answers, chosen, Resampling(0)).items():
                    values.setdefault(metric, {}).setdefault(policy, {})[name] = estimate.value
        for metric, by_policy in values.items():
            if self.task.ranks_by(metric):
                yield PolicyRanking(self.dataset.task, self.dataset.name, metric, by_policy)
