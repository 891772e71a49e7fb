"""Scores as Markdown, CSV, JSON and LaTeX: the same numbers in every form, and nothing that breaks one."""

from __future__ import annotations

import csv
import dataclasses
import json
import math
from pathlib import Path

import pytest

from stillvec.evaluation import Comparison, Report, Score
from stillvec.evaluation.evaluation_report import Detail
from stillvec.report import write_report

NAME = "50%_a & b|{x}"


def score(name: str, value: float, dataset: str = "men", task: str = "similarity", metric: str = "spearman") -> Score:
    return Score(
        name, task, dataset, metric, value, value - 0.1, value + 0.1, 10, 9, "skip", "own", (Detail("s", 1, 1, 1),)
    )


def report() -> Report:
    scores = [score(NAME, 0.5), score("b", 0.25), score(NAME, math.nan, "rare"), score("b", -0.125, "rare")]
    scores += [score(NAME, 0.3, metric="pearson"), score("b", 0.4, metric="pearson")]
    lead = Comparison("similarity", "mean of 1", "spearman", NAME, "b", 0.25, 0.1, 0.4, 0.01, 0.01, 9)
    return Report(tuple(scores), overall=(lead,))


def written(folder: Path, ending: str) -> str:
    write_report(report(), {}, folder / f"r{ending}", title="A # B")
    return (folder / f"r{ending}").read_text("utf-8")


def test_csv_has_no_formulas(tmp_path: Path) -> None:
    scores = tuple(dataclasses.replace(each, dataset="=1+1", vectors="@v") for each in report().scores)
    write_report(dataclasses.replace(report(), scores=scores, overall=()), {}, tmp_path / "r.csv")
    with open(tmp_path / "r.csv", encoding="utf-8") as stream:
        assert {(row["dataset"], row["vectors"]) for row in csv.DictReader(stream)} == {("'=1+1", "'@v")}


def test_csv_has_a_row_a_score_with_all_fields(tmp_path: Path) -> None:
    rows = [*csv.DictReader(written(tmp_path, ".csv").splitlines())]
    assert len(rows) == len(report().scores)
    assert rows[0]["vectors"] == NAME
    assert rows[2]["value"] == rows[2]["low"] == ""
    for row, each in zip(rows, report().scores, strict=True):
        assert {row[key] for key in ("task", "dataset", "metric", "words")} == {
            each.task,
            each.dataset,
            each.metric,
            "own",
        }
        assert row["value"] == "" or float(row["value"]) == each.value
        assert (int(row["n_items"]), int(row["n_covered"])) == (10, 9)


def test_json_is_that_of_the_report(tmp_path: Path) -> None:
    assert json.loads(written(tmp_path, ".json")) == json.loads(json.dumps(report().to_json()))


def test_latex_has_a_row_a_set_with_the_best_in_bold_and_nothing_that_breaks_it(tmp_path: Path) -> None:
    lines = written(tmp_path, ".tex").splitlines()
    assert lines[1] == r"\begin{tabular}{lrrr}"
    assert lines[3] == r" & men & rare & mean \\"
    assert lines[5] == r"50\%\_a \& b|\{x\} & \textbf{50.0} & -- & \textbf{50.0} \\"
    assert lines[6] == r"b & 25.0 & \textbf{$-$12.5} & 25.0 \\"
    assert lines[7:] == [r"\bottomrule", r"\end{tabular}"]


def test_latex_escapes_each_letter_that_means_something_to_it(tmp_path: Path) -> None:
    letters = "\\ & % $ # _ { } ~ ^ < >"
    write_report(Report((score(letters, 0.5),)), {}, tmp_path / "r.tex")
    row = (tmp_path / "r.tex").read_text("utf-8").splitlines()[5]
    wanted = r"\textbackslash{} \& \% \$ \# \_ \{ \} \textasciitilde{} \textasciicircum{} \textless{} \textgreater{}"
    assert row == wanted + r" & 50.0 & 50.0 \\"


def test_markdown_has_the_sentence_the_ranking_all_scores_and_what_is_real(tmp_path: Path) -> None:
    text = written(tmp_path, ".md")
    escaped = r"50%\_a \& b\|{x}"
    assert text.startswith("# A \\# B\n")
    assert (
        f"{escaped} is best over 1 dataset of similarity, with a mean of 50.0. On word similarity alone, its lead"
        in text
    )
    assert f"| {escaped} | 50.0 | 40.0 to 60.0 |" in text
    assert "| similarity | men | spearman | **50.0** | 25.0 |" in text
    assert "| similarity | rare | spearman | – | **−12.5** |" in text
    assert "| similarity | men | pearson | 30.0 | **40.0** |" in text
    assert f"| {escaped} | b | +25.0 | 0.010 | yes |" in text


@pytest.mark.parametrize("ending", [".md", ".csv", ".tex"])
def test_a_table_of_one_set_marks_nothing_as_best(ending: str, tmp_path: Path) -> None:
    write_report(Report((score("a", 0.5),)), {}, tmp_path / f"r{ending}")
    text = (tmp_path / f"r{ending}").read_text("utf-8")
    assert "**" not in text
    assert "textbf" not in text
    assert "0.5" in text or "50.0" in text
