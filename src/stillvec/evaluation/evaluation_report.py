"""What evaluation gives back: scores with coverage and interval, which differences are real, and their JSON form."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from stillvec.errors import UsageError, suggest

Unknown = Literal["skip", "mean", "zero", "subword"]
ANY_SET: tuple[Unknown, ...] = ("skip", "mean", "zero")  # the policies that need nothing but vectors
Words = Literal["own", "common", "unleaked"]


@dataclass(frozen=True)
class Detail:
    """The value on one section of a dataset."""

    section: str
    value: float
    n_items: int
    n_covered: int


@dataclass(frozen=True)
class Score:
    """One number, and what must be known to compare it with another; NaN where it is not defined."""

    vectors: str
    task: str
    dataset: str
    metric: str
    value: float
    low: float
    high: float  # low and high bound 95%
    n_items: int
    n_covered: int  # items whose words are all known; with "unleaked" those of them that are no pair of the lexicon
    unknown: Unknown  # what was done with the other items
    words: Words = "own"  # common: only the items that all sets compared know; unleaked: only those no lexicon holds
    details: tuple[Detail, ...] = ()
    n_leaked: int | None = None  # items that the lexicon holds; only where words is "unleaked"

    def to_json(self) -> dict[str, Any]:
        """The contract's keys and `words`; what else there is. NaN is null, as JSON has no NaN."""
        fields = {key: value for key, value in asdict(self).items() if key not in {"vectors", "details", "n_leaked"}}
        if self.details:
            fields["details"] = [_plain(asdict(each)) for each in self.details]
        if self.n_leaked is not None:
            fields["n_leaked"] = self.n_leaked
        return _plain(fields)


@dataclass(frozen=True)
class Comparison:
    """Two sets of vectors on the same items of one dataset: how much better `a` is than `b`, and is it chance?

    `p` is of the paired bootstrap; `p_corrected` is Holm's for all comparisons of the report on these `words`.
    """

    task: str
    dataset: str  # "mean of 8" in `Report.overall`
    metric: str
    a: str
    b: str
    difference: float  # the value of a less that of b, both on these items
    low: float
    high: float  # low and high bound 95%, not corrected
    p: float
    p_corrected: float
    n_items: int
    words: Words = "common"  # own: every item, where unknown words have a vector

    @property
    def real(self) -> bool:
        """Whether the difference is one at 5%, corrected for how many were looked at."""
        return self.p_corrected < 0.05

    def to_json(self) -> dict[str, Any]:
        return _plain(asdict(self))


@dataclass(frozen=True)
class PolicyRanking:
    """What each set gets on one dataset when unknown words are skipped, averaged or zero."""

    task: str
    dataset: str
    metric: str
    values: Mapping[Unknown, Mapping[str, float]]  # policy → set → value on its own words

    @property
    def orders(self) -> dict[Unknown, tuple[str, ...]]:
        """The sets of each policy, the best first; equals in the order given, those without a value last."""
        keyed = {
            policy: {n: math.inf if math.isnan(v) else -v for n, v in of.items()} for policy, of in self.values.items()
        }
        return {policy: tuple(sorted(keys, key=keys.__getitem__)) for policy, keys in keyed.items()}

    @property
    def changes(self) -> bool:
        """Whether the choice of the policy changes who is better than whom."""
        return len(set(self.orders.values())) > 1

    def to_json(self) -> dict[str, Any]:
        values = {policy: _plain(dict(values)) for policy, values in self.values.items()}
        return {"task": self.task, "dataset": self.dataset, "metric": self.metric, "changes": self.changes} | values


@dataclass(frozen=True)
class Overlap:
    """How many of their nearest neighbours two sets share, the mean over words that both know."""

    a: str
    b: str
    share: float  # 0 to 1
    k: int  # neighbours of each word
    n_words: int

    def to_json(self) -> dict[str, Any]:
        return _plain(asdict(self))


@dataclass(frozen=True)
class Report:
    """All of one evaluation: scores, which differences are real, and what could not be read or was left out."""

    scores: tuple[Score, ...]
    errors: tuple[str, ...] = ()
    comparisons: tuple[Comparison, ...] = ()  # each two sets, dataset by dataset
    overall: tuple[Comparison, ...] = ()  # each two sets, the mean over the similarity datasets
    policies: tuple[PolicyRanking, ...] = ()  # where asked for
    overlaps: tuple[Overlap, ...] = ()  # where asked for
    means: tuple[Score, ...] = ()  # of each set over the similarity datasets, which its details name
    left_out: tuple[str, ...] = ()  # costly tasks that there is data for and that nobody asked for

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(score.vectors for score in self.scores))

    def by(self, name: str) -> tuple[Score, ...]:
        """The scores of one set of vectors."""
        if name not in self.names:
            raise UsageError(f"The report has no vectors {name!r}; {suggest(name, self.names)}")
        return tuple(score for score in self.scores if score.vectors == name)

    def to_json(self) -> dict[str, Any] | list[dict[str, Any]]:
        """`{"vectors": name, "scores": [...]}` for one set of vectors, a list of these for several.

        A comparison of two sets stands with the first of them; what policies change stands with the first set.
        """
        sets: list[dict[str, Any]] = []
        for name in self.names:
            pairs: dict[str, Sequence[Comparison | Overlap]] = {
                "comparisons": self.comparisons,
                "overall": self.overall,
                "overlaps": self.overlaps,
            }
            mine = {key: [each.to_json() for each in some if each.a == name] for key, some in pairs.items()}
            if not sets:
                mine["policies"] = [each.to_json() for each in self.policies]
            mine["means"] = [score.to_json() for score in self.means if score.vectors == name]
            scores = [score.to_json() for score in self.by(name)]
            sets.append({"vectors": name, "scores": scores} | {key: some for key, some in mine.items() if some})
        return sets[0] if len(sets) == 1 else sets

    def dumps(self) -> str:
        """All of it as text, for `loads`; `to_json` is for others to read."""
        return json.dumps(asdict(self))

    @classmethod
    def loads(cls, text: str) -> Report:
        kept = json.loads(text)
        for score in (*kept["scores"], *kept["means"]):
            score["details"] = tuple(Detail(**each) for each in score["details"])
        kinds = {"scores": Score, "means": Score, "policies": PolicyRanking, "overlaps": Overlap}
        kinds |= dict.fromkeys(("comparisons", "overall"), Comparison)
        ready = {
            key: tuple(kinds[key](**each) if key in kinds else each for each in some) for key, some in kept.items()
        }
        return cls(**ready)


def _plain(fields: dict[str, Any]) -> dict[str, Any]:
    return {key: None if isinstance(value, float) and math.isnan(value) else value for key, value in fields.items()}
