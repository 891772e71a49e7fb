"""The result of an evaluation: scores with coverage and intervals, comparisons of sets, and their JSON form."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Literal

import numpy as np

from stillvec.errors import UsageError
from stillvec.evaluation.intervals import Floats, Mask, Rows
from stillvec.evaluation.label_probes import LabelProbe
from stillvec.heads.oov_policy import OovPolicy as OovPolicy
from stillvec.registry import require

PLAIN_POLICIES: tuple[OovPolicy, ...] = ("skip", "mean", "zero")  # those that need no subword table
Words = Literal["own", "common", "unleaked"]


class JsonRecord:
    """A dataclass with a JSON form."""

    def to_json(self) -> dict[str, Any]:
        """Its fields. NaN becomes null, as JSON has no NaN."""
        return dict(_replace_nan(asdict(self)))  # type: ignore[call-overload]


@dataclass(frozen=True)
class Detail(JsonRecord):
    """The value on one section of a dataset."""

    section: str
    value: float
    n_items: int
    n_covered: int


@dataclass(frozen=True)
class Score:
    """One value, and what is needed to compare it with another; NaN where it is not defined."""

    vectors: str
    task: str
    dataset: str
    metric: str
    value: float
    low: float
    high: float  # low and high bound the 95% interval
    n_items: int
    n_covered: int  # items without OOV words; for "unleaked", those of them that no lexicon contains
    unknown: OovPolicy  # what was done with the other items
    words: Words = "own"  # common: only items that all sets cover; unleaked: only items that no lexicon contains
    details: tuple[Detail, ...] = ()
    n_leaked: int | None = None  # items that a lexicon contains; only where words is "unleaked"

    def to_json(self) -> dict[str, Any]:
        """The documented keys and `words`, then those that are set. NaN becomes null, as JSON has no NaN."""
        values = {key: value for key, value in asdict(self).items() if key not in {"vectors", "details", "n_leaked"}}
        if self.details:
            values["details"] = [detail.to_json() for detail in self.details]
        if self.n_leaked is not None:
            values["n_leaked"] = self.n_leaked
        return dict(_replace_nan(values))


@dataclass(frozen=True)
class Comparison(JsonRecord):
    """Two sets of vectors on the same items of one dataset: how much higher `a` is than `b`, and could it be chance?

    `p` is from the paired bootstrap; `p_corrected` is Holm's, over all comparisons of the report on these `words`.
    """

    task: str
    dataset: str  # "mean of 8" in `Report.overall`
    metric: str
    a: str
    b: str
    difference: float  # the value of a minus that of b, both on these items
    low: float
    high: float  # low and high bound the 95% interval, not corrected
    p: float
    p_corrected: float
    n_items: int
    words: Words = "common"  # own: every item, where OOV words have a vector
    lower_is_better: bool = False

    @property
    def gain(self) -> float:
        """How much better `a` is than `b`: the difference, or minus it where lower is better."""
        return -self.difference if self.lower_is_better else self.difference

    @property
    def significant(self) -> bool:
        """Whether the difference is significant at 5% after the correction."""
        return self.p_corrected < 0.05

    def from_side(self, name: str) -> Comparison:
        """The same comparison with the set `name` as `a`."""
        if self.a == name:
            return self
        bounds = {"difference": -self.difference, "low": -self.high, "high": -self.low}
        return replace(self, a=self.b, b=self.a, **bounds)  # type: ignore[arg-type]


@dataclass(frozen=True)
class PolicyRanking:
    """The value of each set on one dataset under each OOV policy."""

    task: str
    dataset: str
    metric: str
    values: Mapping[OovPolicy, Mapping[str, float]]  # policy → set → value on its own words
    lower_is_better: bool = False

    @property
    def orders(self) -> dict[OovPolicy, tuple[str, ...]]:
        """The sets under each policy, the best first; ties in the order given, sets without a value last."""
        sign = 1 if self.lower_is_better else -1
        keys = {
            policy: {name: math.inf if math.isnan(value) else sign * value for name, value in values.items()}
            for policy, values in self.values.items()
        }
        return {policy: tuple(sorted(by_name, key=by_name.__getitem__)) for policy, by_name in keys.items()}

    @property
    def changes(self) -> bool:
        """Whether the order of the sets depends on the policy."""
        return len(set(self.orders.values())) > 1

    def to_json(self) -> dict[str, Any]:
        values = {policy: _replace_nan(dict(by_name)) for policy, by_name in self.values.items()}
        return {"task": self.task, "dataset": self.dataset, "metric": self.metric, "changes": self.changes} | values


@dataclass(frozen=True)
class NeighbourOverlap(JsonRecord):
    """The share of nearest neighbours that two sets have in common, the mean over words that both contain."""

    a: str
    b: str
    share: float  # 0 to 1
    k: int  # neighbours per word
    n_words: int


@dataclass(frozen=True, eq=False)
class ScoredPairs:
    """A similarity dataset with the cosine that each set gives to each pair."""

    name: str
    texts: tuple[tuple[str, ...], ...]  # (n, 2)
    gold: Floats  # (n,) human ratings
    cosines: Mapping[str, Floats]  # set → (n,)
    covered: Mapping[str, Mask]  # set → (n,)

    def common_rows(self, names: Sequence[str]) -> Rows:
        """The pairs that all of these sets cover."""
        return np.flatnonzero(np.logical_and.reduce([self.covered[name] for name in names]))

    def to_json(self) -> dict[str, Any]:
        values = {"name": self.name, "texts": self.texts, "gold": self.gold.tolist()}
        for key, arrays in (("cosines", self.cosines), ("covered", self.covered)):
            values[key] = {name: array.tolist() for name, array in arrays.items()}
        return values

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> ScoredPairs:
        return cls(
            values["name"],
            tuple(map(tuple, values["texts"])),
            np.array(values["gold"], np.float64),
            {name: np.array(array, np.float64) for name, array in values["cosines"].items()},
            {name: np.array(array, np.bool_) for name, array in values["covered"].items()},
        )


@dataclass(frozen=True, repr=False)
class Report:
    """All of one evaluation: scores, comparisons, and what could not be read or was left out.

    `print(report)`, the prompt and notebooks show tables; `to_json` and `to_pandas` are for programs; `dumps` and
    `loads` keep all of it.
    """

    scores: tuple[Score, ...]
    errors: tuple[str, ...] = ()
    comparisons: tuple[Comparison, ...] = ()  # each two sets, per dataset
    overall: tuple[Comparison, ...] = ()  # each two sets, on the mean over the similarity datasets
    policies: tuple[PolicyRanking, ...] = ()  # with `compare_oov`
    overlaps: tuple[NeighbourOverlap, ...] = ()  # with `overlap`
    means: tuple[Score, ...] = ()  # of each set over the similarity datasets, which its details name
    left_out: tuple[str, ...] = ()  # costly tasks that have data but were not requested
    pairs: tuple[ScoredPairs, ...] = field(default=(), compare=False, repr=False)  # the answers to similarity datasets
    label_probes: tuple[LabelProbe, ...] = ()  # of the task `labels`: F1 per label, restarts, agreement of the sets

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(score.vectors for score in self.scores))

    def by(self, name: str) -> tuple[Score, ...]:
        """The scores of one set of vectors."""
        if name not in self.names:
            raise UsageError.unknown("set of vectors", name, self.names, where="the report")
        return tuple(score for score in self.scores if score.vectors == name)

    def __str__(self) -> str:
        from stillvec.evaluation.report_tables import format_report

        return format_report(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """The tables for notebooks."""
        from stillvec.evaluation.report_tables import build_tables, list_notes
        from stillvec.notebook import grid, paragraphs

        tables = [grid(table.title, table.columns, table.rows, table.notes) for table in build_tables(self)]
        return "".join([*tables, paragraphs([*list_notes(self), *self.errors])])

    def to_pandas(self) -> Any:
        """A DataFrame with one row per score, its interval (`low`, `high`) and its `coverage`; needs pandas."""
        columns = [column.name for column in fields(Score) if column.name != "details"]
        rows = [[getattr(score, column) for column in columns] for score in self.scores]
        frame = require("pandas", "pandas", "Report.to_pandas").DataFrame(rows, columns=columns)
        place = columns.index("n_covered") + 1
        frame.insert(place, "coverage", frame["n_covered"] / frame["n_items"].where(frame["n_items"] > 0))
        return frame

    def to_json(self) -> dict[str, Any] | list[dict[str, Any]]:
        """`{"vectors": name, "scores": [...]}` for one set of vectors, a list of these for several.

        A comparison of two sets is listed with the first of them, rankings by OOV policy and label probes with the
        first set.
        """
        sets: list[dict[str, Any]] = []
        for name in self.names:
            keys = ("comparisons", "overall", "overlaps")
            parts = {key: [pair.to_json() for pair in getattr(self, key) if pair.a == name] for key in keys}
            if not sets:
                parts["policies"] = [ranking.to_json() for ranking in self.policies]
                parts["label_probes"] = [_replace_nan(asdict(probe)) for probe in self.label_probes]
            parts["means"] = [score.to_json() for score in self.means if score.vectors == name]
            scores = [score.to_json() for score in self.by(name)]
            sets.append({"vectors": name, "scores": scores} | {key: values for key, values in parts.items() if values})
        return sets[0] if len(sets) == 1 else sets

    def dumps(self) -> str:
        """All of the report as text, for `loads`."""
        values = asdict(replace(self, pairs=()))
        return json.dumps(values | {"pairs": [pairs.to_json() for pairs in self.pairs]})

    @classmethod
    def loads(cls, text: str) -> Report:
        """A report from the text of `dumps`."""
        values = json.loads(text)
        for score in (*values["scores"], *values["means"]):
            score["details"] = tuple(Detail(**detail) for detail in score["details"])
        kinds = {"scores": Score, "means": Score, "policies": PolicyRanking, "overlaps": NeighbourOverlap}
        kinds |= dict.fromkeys(("comparisons", "overall"), Comparison)
        pairs = tuple(map(ScoredPairs.from_json, values.pop("pairs")))
        probes = tuple(map(LabelProbe.from_json, values.pop("label_probes", ())))
        for key, parts in values.items():
            values[key] = tuple(kinds[key](**part) if key in kinds else part for part in parts)
        return cls(**values, pairs=pairs, label_probes=probes)


def _replace_nan(value: Any) -> Any:
    """NaN as None, also inside of mappings and sequences."""
    if isinstance(value, Mapping):
        return {key: _replace_nan(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_replace_nan(part) for part in value]
    return None if isinstance(value, float) and math.isnan(value) else value
