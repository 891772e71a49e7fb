"""`analyze`: the geometry of a space, scores of its components, entropies, and what changed since another space."""

import dataclasses
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from stillvec.analysis.code_analysis import CodeAnalysis, analyze_codes
from stillvec.analysis.components import Probed, Study, probe, read_labelled, study
from stillvec.analysis.space_geometry import Geometry, geometry
from stillvec.analysis.value_change import ValueChange, compare_vectors
from stillvec.combination.change import Change, Moves
from stillvec.errors import MissingExtra, UsageError
from stillvec.evaluation.tasks import split_tasks
from stillvec.formats import VectorSource, open_vectors
from stillvec.input_checks import check_arguments, check_count
from stillvec.refinement import fuzzy_sets
from stillvec.vectors import WordVectors


@dataclass(frozen=True)
class Analysis:
    """What `analyze` measured."""

    geometry: Geometry
    components: Study | None = None  # None: not asked for, or `missing` says why
    missing: str = ""
    probes: tuple[Probed, ...] = ()
    moves: Moves | None = None
    values: ValueChange | None = None
    entropies: tuple[tuple[str, float], ...] = ()  # words and the entropy of their features, highest first
    codes: CodeAnalysis | None = None

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
        if self.values is not None:
            values["values"] = dataclasses.asdict(self.values)
            by_sparsity = self.values.pruned_differences.items()
            values["values"]["pruned_differences"] = {str(sparsity): share for sparsity, share in by_sparsity}
        if self.entropies:
            values["entropies"] = [{"word": word, "entropy": entropy} for word, entropy in self.entropies]
        if self.codes is not None:
            values["codes"] = dataclasses.asdict(self.codes)
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
    values: bool = False,
    entropy: int | None = None,
    codes: str | os.PathLike[str] | None = None,
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
    values: compare `against` value by value: masks of zeros, ranks of magnitudes, cosines, instead of the moves of
        words between aligned spaces (default: False).
    entropy: list the entropy of feature tuples, of words that occur so often (default: do not).
    codes: the residual entropy of binary or product codes about the attributes of this lexicon: "wordnet", or a file
        with a word, a tab and attributes per line (default: do not).
    seed: random seed of pairs and intervals (default: 0).
    """
    check_arguments(analyze, locals())
    if controls and against is None:
        raise UsageError.conflict("controls estimate chance for against, which was not given")
    if values and against is None:
        raise UsageError.conflict("values compares with against, which was not given")
    if values and controls:
        raise UsageError.conflict("controls estimate chance for moved words, not for values")
    if entropy is not None:
        check_count(entropy, "entropy", least=0)
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
    entropies = () if entropy is None else _list_entropies(space, entropy)
    coded = None if codes is None else analyze_codes(space, codes, seed=seed)
    moves = None
    if against is not None and not values:
        pairs = [(open_vectors(first), open_vectors(second)) for first, second in controls]
        moves = Change(seed=seed)(open_vectors(against), space, pairs)
    changed = compare_vectors(open_vectors(against), space) if values and against is not None else None
    return Analysis(measured, studied, missing, probed, moves, changed, entropies, coded)


def _list_entropies(tuples: WordVectors, min_count: int) -> tuple[tuple[str, float], ...]:
    """Words that occur `min_count` times, all if there are no counts, by the entropy of their features."""
    counts = tuples.vocabulary.counts
    rows = np.flatnonzero((counts >= min_count) | (not counts.any()))
    fuzzy_sets.check_tuples(tuples.matrix[rows])
    entropies = fuzzy_sets.entropy(tuples.matrix[rows])
    order = np.argsort(-entropies, kind="stable")
    return tuple((tuples.words[rows[at]], float(entropies[at])) for at in order.tolist())
