"""What evaluation gives back: scores with coverage and interval, and their JSON form."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal

from stillvec.errors import CallError
from stillvec.registry import nearest_known

Unknown = Literal["skip", "mean", "zero"]


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
    n_covered: int  # items whose words are all known
    unknown: Unknown  # what was done with the other items
    words: Literal["own", "common"] = "own"  # common: only the items that all sets compared know
    details: tuple[Detail, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The contract's keys and `words`; `details` where there are any. NaN is null, as JSON has no NaN."""
        fields = {key: value for key, value in asdict(self).items() if key not in {"vectors", "details"}}
        if self.details:
            fields["details"] = [{key: _number(value) for key, value in asdict(each).items()} for each in self.details]
        return {key: _number(value) for key, value in fields.items()}


@dataclass(frozen=True)
class Report:
    """All scores of one evaluation, and what could not be read."""

    scores: tuple[Score, ...]
    errors: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(score.vectors for score in self.scores))

    def by(self, name: str) -> tuple[Score, ...]:
        """The scores of one set of vectors."""
        if name not in self.names:
            raise CallError(f"The report has no vectors {name!r}; {nearest_known(name, self.names)}")
        return tuple(score for score in self.scores if score.vectors == name)

    def to_json(self) -> dict[str, Any] | list[dict[str, Any]]:
        """`{"vectors": name, "scores": [...]}` for one set of vectors, a list of these for several."""
        sets = [{"vectors": name, "scores": [score.to_json() for score in self.by(name)]} for name in self.names]
        return sets[0] if len(sets) == 1 else sets


def _number(value: Any) -> Any:
    return None if isinstance(value, float) and math.isnan(value) else value
