"""The input of a page: the report, the vectors and how they were made."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from stillvec.evaluation import Report
from stillvec.evaluation.score_table import MeanScore, choose_basis, rank_sets
from stillvec.report.html_markup import Html, element, set_name
from stillvec.report.html_tables import column
from stillvec.report.svg import colour
from stillvec.vectors import WordVectors


@dataclass(frozen=True)
class ReportData:
    """Everything that the sections of a page need."""

    report: Report
    sets: Mapping[str, WordVectors]  # those of the report that were given
    manifests: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    words: tuple[str, ...] = ()  # whose neighbours to show; empty: chosen automatically

    @cached_property
    def ranking(self) -> list[MeanScore]:
        return rank_sets(self.report)

    @cached_property
    def names(self) -> list[str]:
        """The sets, the best first."""
        return [mean.name for mean in self.ranking]

    @cached_property
    def with_vectors(self) -> list[str]:
        """The sets whose vectors were given, the best first."""
        return [name for name in self.names if name in self.sets]

    @cached_property
    def with_pairs(self) -> list[str]:
        """The sets that answered the similarity datasets, the best first."""
        return [name for name in self.names if all(name in pairs.cosines for pairs in self.report.pairs)]

    @cached_property
    def basis(self) -> str:
        return choose_basis(self.report)

    def colour(self, name: str) -> str:
        return colour(self.names.index(name))

    def set_row(self, name: str) -> Html:
        """The header of the row of a set, in its colour."""
        return element("th", set_name(name), scope="row", class_=f"set {self.colour(name)}")

    def set_columns(self, names: Sequence[str] | None = None) -> list[Html]:
        """The headers of one column per set, by default of all."""
        return [column(set_name(name)) for name in (self.names if names is None else names)]
