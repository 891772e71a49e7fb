"""`analyze`: the geometry of a space, scores of its components, and words that moved since another space."""

import dataclasses
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stillvec.analysis.components import Probed, Study, probe, read_labelled, study
from stillvec.analysis.space_geometry import Geometry, geometry
from stillvec.combination.change import Change, Moves
from stillvec.errors import MissingExtra, UsageError
from stillvec.evaluation.tasks import split_tasks
from stillvec.formats import VectorSource, open_vectors
from stillvec.input_checks import check_arguments, check_count


@dataclass(frozen=True)
class Analysis:
    """What `analyze` measured."""

    geometry: Geometry
    components: Study | None = None  # None: not asked for, or `missing` says why
    missing: str = ""
    probes: tuple[Probed, ...] = ()
    moves: Moves | None = None

    def to_json(self) -> dict[str, Any]:
        """Everything as plain values."""
        values: dict[str, Any] = {"geometry": dataclasses.asdict(self.geometry)}
        if self.components is not None:
            values["components"] = {"shares": self.components.shares}
            for name in ("cumulative", "thirds", "without"):
                by_part = getattr(self.components, name).items()
                values["components"][name] = {
                    str(key): [score.to_json() for score in scores] for key, scores in by_part
                }
        if self.moves is not None:
            columns = {name: getattr(self.moves, name).tolist() for name in ("moved", "low", "high", "p", "q")}
            rows = zip(self.moves.words, *columns.values(), strict=True)
            values["moved"] = [dict(zip(("word", *columns), row, strict=True)) for row in rows]
        if self.probes:
            values["probed"] = [dataclasses.asdict(probed) for probed in self.probes]
        return values


def analyze(
    vectors: VectorSource,
    *,
    data: str | os.PathLike[str] | None = None,
    tasks: str | Sequence[str] = ("similarity",),
    points: int = 15,
    without: Sequence[int] = (0, 1, 2, 3, 5, 10),
    components: bool = True,
    probes: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = (),
    neighbours: int = 10,
    against: VectorSource | None = None,
    controls: Sequence[tuple[VectorSource, VectorSource]] = (),
    seed: int = 0,
) -> Analysis:
    """Analyze a space.

    Parameters
    ----------
    vectors: the vectors, or the path of a folder or file.
    data: test data for the components (default: as for `evaluate`).
    tasks: what the components are scored by (default: similarity).
    points: number of points of the curve over the first k components (default: 15).
    without: how many of the first components to remove (default: 0, 1, 2, 3, 5, 10).
    components: score the principal components, which needs test data (default: True).
    probes: files of labelled texts (a label, a space, a text per line) that the components are probed with.
    neighbours: k of hubness (default: 10).
    against: older vectors of the same language: which words moved since (default: none).
    controls: pairs of sets between which nothing changed, to estimate chance for `against`.
    seed: random seed of pairs and intervals (default: 0).
    """
    check_arguments(analyze, locals())
    if controls and against is None:
        raise UsageError.conflict("controls estimate chance for against, which was not given")
    check_count(neighbours, "neighbours")
    check_count(points, "points")
    check_count(seed, "seed", least=0)
    tasks = split_tasks(tasks) if isinstance(tasks, str) else tasks
    files = [probes] if isinstance(probes, str | os.PathLike) else probes
    labelled = {Path(file).stem: read_labelled(file) for file in files}
    space = open_vectors(vectors)
    measured = geometry(space, neighbours=neighbours, seed=seed)
    studied, missing = None, ""
    if components:
        try:
            studied = study(space, data, tasks, points=points, without=without, seed=seed)
        except MissingExtra as error:
            missing = f"The components were not scored: {error}"
    probed = tuple(probe(space, *texts, name) for name, texts in labelled.items())
    moves = None
    if against is not None:
        pairs = [(open_vectors(first), open_vectors(second)) for first, second in controls]
        moves = Change(seed=seed)(open_vectors(against), space, pairs)
    return Analysis(measured, studied, missing, probed, moves)
