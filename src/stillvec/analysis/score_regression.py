"""Which factors explain scores: least squares for each factor alone and for all together (Wu & Dredze 2020).

`y = b0 + Σ b_j x_j`, with 95% intervals by Student's t. Factors that vary together share what they explain: the
variance inflation factor `1 / (1 - R²)`, R² of a factor on the others, says how much wider an interval is for that, and
a sign may change between the two. The likelihood-ratio test compares all factors with all but one: `n log(RSS_without /
RSS)` against chi-squared with one degree of freedom. Nothing here says that a factor causes a score.
"""

import json
import math
import os
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import DatasetError, UsageError
from stillvec.heads.dataset_files import lines
from stillvec.input_checks import check_arguments

_LOG = ":log2"  # after the name of a factor whose logarithm is meant
_UNITS = ("vectors", "dataset", "task")
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Slope:
    """The change of the score per unit of a factor, with its 95% interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Factor:
    """What one factor explains."""

    name: str
    alone: Slope  # with no other factor
    joint: Slope  # with all others
    inflation: float  # variance inflation factor
    p: float  # of the likelihood-ratio test

    @property
    def changes_sign(self) -> bool:
        return self.alone.value * self.joint.value < 0


@dataclass(frozen=True)
class ScoreRegression:
    """Least squares of scores on factors."""

    n_scores: int
    r_squared: float  # of all factors together
    factors: tuple[Factor, ...]

    def notes(self) -> list[str]:
        """What to be careful about."""
        notes = []
        for factor in self.factors:
            if factor.changes_sign:
                notes.append(f"{factor.name}: the sign changes once the other factors are known")
            if factor.inflation > 5:
                notes.append(f"{factor.name}: varies with the others (VIF {factor.inflation:.1f})")
        return notes


def explain_scores(
    scores: str | os.PathLike[str], factors: str | os.PathLike[str], *, metric: str | None = None
) -> ScoreRegression:
    """Regress the scores of an evaluation on factors.

    Parameters
    ----------
    scores: what `stillvec evaluate --json` wrote.
    factors: a table with tabs. The header of its first column is what a row stands for: vectors, dataset or task; the
        other columns are numbers. A name that ends with ":log2" stands for the logarithm of its column.
    metric: the metric to explain (default: the first of each dataset).
    """
    check_arguments(explain_scores, locals())
    unit, names, table = _read_factors(Path(factors))
    values = _read_scores(Path(scores), unit, metric)
    keys = [key for key in table if key in values]
    if len(keys) < len(names) + 3:
        what = f"scores of at least {len(names) + 3} rows of {os.fspath(factors)}"
        raise DatasetError.expected(what, f"{len(keys)} ({', '.join(sorted(values)[:5])} ...)", path=scores)
    return regress(np.array([table[key] for key in keys]), np.array([values[key] for key in keys]), names)


def regress(factors: Floats, scores: Floats, names: list[str]) -> ScoreRegression:
    """Least squares of scores (n,) on factors (n, k)."""
    from scipy.stats import chi2

    n = len(factors)
    for name, column in zip(names, factors.T, strict=True):
        if np.ptp(column) == 0:
            raise UsageError.expected("a factor that varies", f"the same number in all {n} rows", where=repr(name))
    slopes, rss = _fit(factors, scores)
    if slopes is None:
        raise UsageError.conflict(f"The factors {', '.join(names)} determine each other", cure="leave one out")
    results = []
    for at, name in enumerate(names):
        others = np.delete(factors, at, axis=1)
        (alone,), _ = _fit(factors[:, [at]], scores)  # type: ignore[misc]
        explained = 1 - _residuals(others, factors[:, at]) / _residuals(others[:, :0], factors[:, at])
        statistic = n * math.log(max(_residuals(others, scores), 1e-300) / max(rss, 1e-300))
        inflation = 1 / max(1 - explained, 1e-12)
        results.append(Factor(name, alone, slopes[at], inflation, float(chi2.sf(statistic, 1))))
    total = _residuals(factors[:, :0], scores)
    return ScoreRegression(n, 1 - rss / total if total else 0.0, tuple(results))


def _fit(factors: Floats, scores: Floats) -> tuple[list[Slope] | None, float]:
    """The slopes, None if factors determine each other, and the residual sum of squares."""
    from scipy.stats import t

    n, k = factors.shape
    scale = factors.std(axis=0)
    design = np.column_stack([np.ones(n), (factors - factors.mean(axis=0)) / scale])
    gram = design.T @ design
    if np.linalg.matrix_rank(design) <= k:
        return None, 0.0
    inverse = np.linalg.inv(gram)
    slopes = inverse @ design.T @ scores
    rss = float(((scores - design @ slopes) ** 2).sum())
    errors = np.sqrt(np.diag(inverse) * rss / (n - k - 1)) * float(t.ppf(0.975, n - k - 1))
    bounds = zip(slopes[1:] / scale, errors[1:] / scale, strict=True)
    return [Slope(float(b), float(b - error), float(b + error)) for b, error in bounds], rss


def _residuals(factors: Floats, scores: Floats) -> float:
    design = np.column_stack([np.ones(len(scores)), factors])
    solution = np.linalg.lstsq(design, scores, rcond=None)[0]
    return float(((scores - design @ solution) ** 2).sum())


def _read_factors(path: Path) -> tuple[str, list[str], dict[str, list[float]]]:
    (_, header), *rows = [(at, line.split("\t")) for at, line in lines(path) if line.strip()] or [(1, [""])]
    if header[0] not in _UNITS or len(header) < 2:
        what = f"a header of {', '.join(_UNITS[:-1])} or {_UNITS[-1]}, a tab, and names of factors"
        raise DatasetError.expected(what, repr("\t".join(header)[:60]), path=path, line=1)
    table = {}
    for number, row in rows:
        if row[0] in table:
            raise DatasetError.expected("each name once", f"{row[0]!r} again", path=path, line=number)
        try:
            values = [float(value) for value in row[1:]]
            values = [math.log2(v) if name.endswith(_LOG) else v for name, v in zip(header[1:], values, strict=True)]
            if not np.isfinite(values).all():
                raise ValueError
        except ValueError:
            what = f"a name and {len(header) - 1} numbers (above 0 for {_LOG})"
            raise DatasetError.expected(what, repr("\t".join(row)[:60]), path=path, line=number) from None
        table[row[0]] = values
    return header[0], header[1:], table


def _read_scores(path: Path, unit: str, metric: str | None) -> dict[str, float]:
    """The mean score of each set of vectors, dataset or task."""
    try:
        content = json.loads(path.read_bytes())
        found: dict[str, list[float]] = defaultdict(list)
        for report in content if isinstance(content, list) else [content]:
            seen: set[tuple[Any, ...]] = set()
            for score in report["scores"]:
                place = (score["task"], score["dataset"])
                wanted = score["metric"] == metric if metric else place not in seen
                seen.add(place)
                key = Path(str(report["vectors"])).name if unit == "vectors" else str(score[unit])
                if wanted and score["value"] is not None:
                    found[key].append(score["value"])
    except FileNotFoundError:
        raise DatasetError.not_found(path, "scores") from None
    except (ValueError, KeyError, TypeError, RecursionError):
        cure = f"stillvec evaluate VECTORS --json {path} writes them"
        raise DatasetError.expected("scores", "something else", path=path, cure=cure) from None
    return {key: fmean(values) for key, values in found.items()}
