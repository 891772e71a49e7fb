"""Scores explained by factors: intervals, collinearity, the likelihood-ratio test, and the command."""

import json
import math

import numpy as np
import pytest

from stillvec.analysis.score_regression import explain_scores, regress
from stillvec.cli import main
from stillvec.errors import DatasetError, UsageError


def test_slopes_intervals_and_tests_are_those_of_the_normal_equations() -> None:
    generator = np.random.default_rng(0)
    factors, noise = generator.normal(size=(40, 2)), generator.normal(size=40)
    scores = 3 + factors @ [0.5, -1.0] + noise
    result = regress(factors, scores, ["a", "b"])
    design = np.column_stack([np.ones(40), factors])
    inverse = np.linalg.inv(design.T @ design)
    slopes = inverse @ design.T @ scores
    rss = ((scores - design @ slopes) ** 2).sum()
    half = 2.0261924630 * np.sqrt(np.diag(inverse) * rss / 37)  # the 97.5% quantile of t with 37 degrees of freedom
    for at, factor in enumerate(result.factors, 1):
        assert factor.joint.value == pytest.approx(slopes[at])
        assert (factor.joint.low, factor.joint.high) == pytest.approx((slopes[at] - half[at], slopes[at] + half[at]))
        correlation = np.corrcoef(factors.T)[0, 1]
        assert factor.inflation == pytest.approx(1 / (1 - correlation**2))
        reduced = np.column_stack([np.ones(40), factors[:, 2 - at]])
        left = ((scores - reduced @ np.linalg.lstsq(reduced, scores, rcond=None)[0]) ** 2).sum()
        assert factor.p == pytest.approx(math.erfc(math.sqrt(40 * math.log(left / rss) / 2)))  # chi-squared, 1 degree
    assert result.r_squared == pytest.approx(1 - rss / ((scores - scores.mean()) ** 2).sum())


def test_planted_factors_are_recovered_although_they_vary_together() -> None:
    """y = .03 x1 - .014 x2, correlation .8: alone, x2 seems to help; with x1 it is seen to harm."""
    inside, flips, irrelevant = 0, 0, 0
    for seed in range(100):
        generator = np.random.default_rng(seed)
        x1 = generator.normal(0, 2, 99)
        x2 = 0.8 * x1 + 0.6 * generator.normal(0, 2, 99)
        x3 = generator.normal(0, 2, 99)
        scores = 0.03 * x1 - 0.014 * x2 + generator.normal(0, 0.1, 99)
        first, second, third = regress(np.column_stack([x1, x2, x3]), scores, ["x1", "x2", "x3"]).factors
        inside += first.joint.low <= 0.03 <= first.joint.high
        flips += second.alone.value > 0
        irrelevant += third.p > 0.05
    assert inside >= 90
    assert flips >= 85
    assert irrelevant >= 90


def test_factors_that_say_nothing_are_refused() -> None:
    factors = np.arange(20.0).reshape(10, 2)
    with pytest.raises(UsageError):
        regress(factors, np.arange(10.0), ["a", "b"])  # one is the other plus 1
    with pytest.raises(UsageError):
        regress(np.ones((10, 1)), np.arange(10.0), ["a"])


def _write(tmp_path, n=8):
    scores = [
        {"task": "tagging", "dataset": f"pud-{at}", "metric": metric, "value": value}
        for at in range(n)
        for metric, value in (("accuracy", 0.9 - 0.05 * at), ("f1", 0.5))
    ]
    (tmp_path / "scores.json").write_text(json.dumps({"vectors": "teacher", "scores": scores}))
    rows = [f"pud-{at}\t{2**at}\t{(at * 7) % 5}" for at in range(n)]
    (tmp_path / "factors.tsv").write_text("dataset\ttokens:log2\tother\n" + "\n".join(rows) + "\n")
    return tmp_path / "scores.json", tmp_path / "factors.tsv"


def test_the_command_explains_the_scores_of_an_evaluation(tmp_path, capsys) -> None:
    scores, factors = _write(tmp_path)
    slope = explain_scores(scores, factors).factors[0]
    assert slope.joint.value == pytest.approx(-0.05)
    assert main(["analyze", "--explain", str(scores), "--by", str(factors), "--json", str(tmp_path / "out.json")]) == 0
    assert "-0.0500" in capsys.readouterr().out
    assert json.loads((tmp_path / "out.json").read_text())["n_scores"] == 8
    assert main(["analyze", "--explain", str(scores)]) != 0
    assert main(["analyze"]) != 0


def test_a_wrong_table_is_reported_with_its_line(tmp_path) -> None:
    scores, factors = _write(tmp_path)
    factors.write_text("dataset\ta:log2\npud-1\t2\npud-2\t-1\n")
    with pytest.raises(DatasetError) as caught:
        explain_scores(scores, factors)
    assert caught.value.line == 3
    factors.write_text("language\ta\n")
    with pytest.raises(DatasetError) as caught:
        explain_scores(scores, factors)
    assert caught.value.line == 1
    for last in ("pud-1\t3", "pud-2\tnan", "pud-2\tinf"):
        factors.write_text(f"dataset\ta\npud-1\t2\n{last}\n")
        with pytest.raises(DatasetError) as caught:
            explain_scores(scores, factors)
        assert caught.value.line == 3
    few, table = _write(tmp_path, n=3)
    with pytest.raises(DatasetError):
        explain_scores(few, table)
    scores.write_text("[]{")
    with pytest.raises(DatasetError):
        explain_scores(scores, table)
