"""Feature tuples judged by their own measures, and set queries: against loops over the formulas of Bhat et al. 2020."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import pearsonr, spearmanr

from stillvec import WordVectors, evaluate, save
from stillvec.cli import main
from stillvec.errors import DatasetError, UnknownWordError, UsageError
from stillvec.evaluation.analogy import solve
from stillvec.evaluation.compounds import Compounds
from stillvec.evaluation.word_measure import MeasuredTask
from stillvec.heads.lookup import Lookup
from stillvec.refinement import fuzzy_sets
from stillvec.refinement.feature_tuples import FeatureTuples
from stillvec.refinement.set_query import evaluate_query, query

WORDS = [f"w{row}" for row in range(60)]


def random_vectors() -> WordVectors:
    matrix = np.random.default_rng(3).normal(size=(60, 7)).astype(np.float32)
    return WordVectors(WORDS, matrix)


@pytest.fixture(params=["row", "column"])
def tuples(request: pytest.FixtureRequest) -> WordVectors:
    return FeatureTuples(request.param)(random_vectors())


def cross_entropy(s: Any, t: Any) -> float:
    return sum(-p * math.log(q) - (1 - p) * math.log(1 - q) for p, q in zip(s.tolist(), t.tolist(), strict=True))


def divergence(s: Any, t: Any) -> float:
    return cross_entropy(s, t) - cross_entropy(s, s)


def one_sided(s: Any, t: Any) -> float:
    return sum(p * math.log(p / q) for p, q in zip(s.tolist(), t.tolist(), strict=True))


def write_pairs(folder: Path) -> list[tuple[str, str, float]]:
    random = np.random.default_rng(5)
    rows = random.integers(0, 60, (40, 2)).tolist()
    pairs = [(WORDS[a], WORDS[b], float(score)) for (a, b), score in zip(rows, random.normal(size=40), strict=True)]
    (folder / "similarity").mkdir()
    (folder / "similarity" / "a.tsv").write_text("".join(f"{a}\t{b}\t{score}\n" for a, b, score in pairs), "utf-8")
    return pairs


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize(
    ("name", "loop"),
    [("cross_entropy", cross_entropy), ("divergence", divergence), ("one_sided_divergence", one_sided)],
)
def test_similarity_judges_tuples_by_the_measure_of_the_paper(
    name: str, loop: Callable[[Any, Any], float], symmetric: bool, tuples: WordVectors, tmp_path: Path
) -> None:
    pairs = write_pairs(tmp_path)
    far = []
    for a, b, _ in pairs:
        s, t = tuples[a].astype(np.float64), tuples[b].astype(np.float64)
        far.append((loop(s, t) + loop(t, s)) / 2 if symmetric else loop(s, t))
    task = f"similarity:measure={name},symmetric={str(symmetric).lower()}"
    (score,) = evaluate(tuples, tmp_path, [task]).scores
    assert score.value == pytest.approx(-spearmanr([gold for *_, gold in pairs], far)[0], abs=1e-9)


def test_the_cosine_stays_the_default(tuples: WordVectors, tmp_path: Path) -> None:
    pairs = write_pairs(tmp_path)
    (score,) = evaluate(tuples, tmp_path, ["similarity"]).scores
    expected = spearmanr([gold for *_, gold in pairs], [tuples.similarity(a, b) for a, b, _ in pairs])[0]
    assert score.value == pytest.approx(expected, abs=1e-6)


def test_vectors_that_are_no_tuples_have_no_cross_entropy(tmp_path: Path) -> None:
    write_pairs(tmp_path)
    (tmp_path / "analogy").mkdir()
    (tmp_path / "analogy" / "a.txt").write_text("w0 w1 w2 w3\n", "utf-8")
    for task in ("similarity:measure=cross_entropy", "analogy:forms=fuzzy"):
        with pytest.raises(UsageError, match="feature_tuples"):
            evaluate(random_vectors(), tmp_path, [task])
    with pytest.raises(UsageError, match="measure"):
        evaluate(random_vectors(), tmp_path, ["similarity:measure=euclid"])


def test_the_fuzzy_analogy_is_that_of_a_loop_over_all_words(tuples: WordVectors) -> None:
    matrix = tuples.matrix.astype(np.float64)
    questions = np.random.default_rng(8).permuted(np.tile(np.arange(60), (50, 1)), axis=1)[:, :3]
    best = solve(Lookup(tuples), questions, 60, ["fuzzy", "3cosadd"])["fuzzy"]
    for (a, b, c), answer in zip(questions.tolist(), best.tolist(), strict=True):
        total = matrix[b] + matrix[c]
        target = np.clip(total - np.minimum(total, matrix[a]), 1e-30, 1)
        tiny = 1e-300  # 0 ln 0 = 0
        far = [
            sum(
                -p * math.log(q) - (1 - p) * math.log(max(1 - q, tiny))
                for p, q in zip(target.tolist(), matrix[row].tolist(), strict=True)
            )
            for row in range(60)
        ]
        assert answer == min((row for row in range(60) if row not in (a, b, c)), key=far.__getitem__)
        words = [tuples.words[row] for row in (a, b, c)]
        assert fuzzy_sets.analogy(tuples, *words)[0][0] == tuples.words[answer]


@pytest.mark.parametrize(
    ("text", "formula"),
    [
        ("w1", lambda a, b, c: a),
        ("w1 & w2", lambda a, b, c: a * b),
        ("w1 | w2", lambda a, b, c: a + b - a * b),
        ("w1 + w2", lambda a, b, c: min(1, a + b)),
        ("w1 - w2", lambda a, b, c: max(0, a - b)),
        ("~w1", lambda a, b, c: 1 - a),
        ("w1 & w2 - w3", lambda a, b, c: max(0, a * b - c)),
        ("w1 - w2 & w3", lambda a, b, c: max(0, a - b * c)),
        ("(w1 - w2) & w3", lambda a, b, c: max(0, a - b) * c),
        ("w1 | w2 - w3", lambda a, b, c: max(0, a + b - a * b - c)),
        ("w1 - w2 | w3", lambda a, b, c: max(0, a - b) + c - max(0, a - b) * c),
        ("w1 & ~(w2 | w3)", lambda a, b, c: a * (1 - b) * (1 - c)),
        ("~~w1 & ((w2))", lambda a, b, c: a * b),
    ],
)
def test_a_query_is_its_formula(text: str, formula: Callable[..., float], tuples: WordVectors) -> None:
    columns = [tuples[f"w{row}"].astype(np.float64).tolist() for row in (1, 2, 3)]
    features, words = evaluate_query(tuples, text, scaled=False)
    assert features == pytest.approx([formula(*values) for values in zip(*columns, strict=True)], rel=1e-9)
    assert words == [name for name in ("w1", "w2", "w3") if name in text]


def test_a_query_ranks_by_cross_entropy_and_leaves_its_words_out(tuples: WordVectors) -> None:
    target = tuples["w1"].astype(np.float64) * tuples["w2"].astype(np.float64)
    far = {word: cross_entropy(target, tuples[word].astype(np.float64)) for word in WORDS if word not in ("w1", "w2")}
    answers = query(tuples, "w1 & w2", 5, scaled=False)
    assert [word for word, _ in answers] == sorted(far, key=far.__getitem__)[:5]
    assert [value for _, value in answers] == pytest.approx(sorted(far.values())[:5], rel=1e-5)


def test_intersections_and_differences_are_scaled_to_what_they_are_made_of(tuples: WordVectors) -> None:
    a, b, c = (tuples[f"w{row}"].astype(np.float64) for row in (1, 2, 3))
    both = a * b * min(a.sum(), b.sum()) / (a * b).sum()
    rest = np.maximum(both - c, 0)
    rest *= both.sum() / rest.sum()
    assert evaluate_query(tuples, "w1 & w2")[0] == pytest.approx(np.minimum(both, 1))
    assert evaluate_query(tuples, "w1 & w2 - w3")[0] == pytest.approx(np.minimum(rest, 1))
    assert evaluate_query(tuples, "w1 | w2")[0] == pytest.approx(a + b - a * b)


def test_an_intersection_of_small_probabilities_is_not_the_emptiest_word() -> None:
    rows = [[4, 4, 0, 0], [4, 0, 4, 0], [5, 1, 1, 1], [-4, -4, -4, -4], *np.eye(4) * 0.1, *np.zeros((300, 4))]
    words = ["both", "other", "shared", "empty", *(f"w{row}" for row in range(304))]
    tuples = FeatureTuples("column")(WordVectors(words, np.array(rows, np.float32)))
    assert query(tuples, "both & other", 1)[0][0] == "shared"
    assert query(tuples, "both & other", 1, scaled=False)[0][0] != "shared"
    for scaled in (True, False):
        with pytest.raises(UsageError, match="empty"):
            query(tuples, "both - both", scaled=scaled)


def test_words_with_operators_and_spaces_can_be_asked_for() -> None:
    words = ["at&t", "x-ray", "new york", "'s", "&", "snow"]
    tuples = FeatureTuples("row")(WordVectors(words, np.eye(6, dtype=np.float32)))
    assert evaluate_query(tuples, 'at&t & x-ray | "new york" - \'s + "&"')[1] == words[:5]


@pytest.mark.parametrize(
    "text",
    ["", "  ", "w1 &", "& w1", "w1 w2", "(w1", "w1)", "()", '"w1', "~", "w1 - - w2", "(" * 5000, '""', "w1 ~ w2"],
)
def test_a_malformed_query_is_one_sentence(text: str, tuples: WordVectors) -> None:
    with pytest.raises(UsageError, match="query"):
        query(tuples, text)


def test_a_query_needs_known_words_and_tuples(tuples: WordVectors) -> None:
    with pytest.raises(UnknownWordError, match="w99"):
        query(tuples, "w1 & w99")
    with pytest.raises(UsageError, match="feature_tuples"):
        query(random_vectors(), "w1 & w2")
    with pytest.raises(UsageError, match="k"):
        query(tuples, "w1", 0)


def test_nearest_and_analogy_answer_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tuples = FeatureTuples("row")(random_vectors())
    save(tuples, tmp_path / "v")
    assert main(["nearest", str(tmp_path / "v"), "--query", "w1 & w2 - w3", "-k", "1"]) == 0
    best, value = query(tuples, "w1 & w2 - w3", 1)[0]
    plain = query(tuples, "w1 & w2 | w3", 1, scaled=False)[0]
    assert capsys.readouterr().out.split() == [
        "nearest", "to", "w1", "&", "w2", "-", "w3", "word", "cross-entropy", best, f"{value:.4f}",
    ]  # fmt: skip
    assert main(["nearest", str(tmp_path / "v"), "--query", "w1 & w2 | w3", "-k", "1", "--unscaled"]) == 0
    assert capsys.readouterr().out.split()[-2:] == [plain[0], f"{plain[1]:.4f}"]
    assert main(["nearest", str(tmp_path / "v"), "w5", "--query", "w1 | w2", "-k", "2", "--json"]) == 0
    values = json.loads(capsys.readouterr().out)
    assert [row["word"] for row in values["queries"]["w1 | w2"]] == [word for word, _ in query(tuples, "w1 | w2", 2)]
    assert [row["word"] for row in values["nearest"]["w5"]] == [word for word, _ in tuples.nearest("w5", 2)]
    assert main(["analogy", str(tmp_path / "v"), "w1", "w2", "w3", "--method", "fuzzy", "-k", "1"]) == 0
    assert capsys.readouterr().out.split()[-2] == fuzzy_sets.analogy(tuples, "w1", "w2", "w3")[0][0]


def test_a_wrong_query_is_a_wrong_call(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save(random_vectors(), tmp_path / "v")
    for arguments in (["--query", "w1 &"], ["--query", "w1 & w2"], []):
        assert main(["nearest", str(tmp_path / "v"), *arguments]) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err.count("\n") == 1


def compound_folder(folder: Path) -> tuple[list[tuple[str, str]], list[float]]:
    random = np.random.default_rng(9)
    pairs = [(WORDS[a], WORDS[b]) for a, b in random.permuted(np.tile(np.arange(40), (20, 1)), axis=1)[:, :2]]
    ratings = random.normal(size=20).tolist()
    (folder / "compounds").mkdir()
    lines = [f"{a} {b}\t{rating}\t1\n" for (a, b), rating in zip(pairs, ratings, strict=True)]
    (folder / "compounds" / "c.tsv").write_text("".join(lines), "utf-8")
    return pairs, ratings


def test_compounds_are_rated_by_their_words(tuples: WordVectors, tmp_path: Path) -> None:
    pairs, ratings = compound_folder(tmp_path)
    far = [cross_entropy(*(tuples[word].astype(np.float64) for word in pair)) for pair in pairs]
    for task, near in (
        ("compounds", [tuples.similarity(*pair) for pair in pairs]),
        ("compounds:measure=cross_entropy", [-value for value in far]),
    ):
        values = {score.metric: score.value for score in evaluate(tuples, tmp_path, [task]).scores}
        assert values["spearman"] == pytest.approx(spearmanr(ratings, near)[0], abs=1e-6)
        assert values["pearson"] == pytest.approx(pearsonr(ratings, near)[0], abs=1e-6)


def test_compounds_with_vectors_of_their_own_are_compared_with_their_words(tmp_path: Path) -> None:
    pairs, ratings = compound_folder(tmp_path)
    phrases = [" ".join(pair) for pair in pairs[:15]]
    matrix = np.random.default_rng(1).normal(size=(75, 7)).astype(np.float32)
    vectors = WordVectors([*WORDS, *phrases], matrix)
    near = []
    for pair, phrase in zip(pairs[:15], phrases, strict=True):
        total = sum(vectors[word] / np.linalg.norm(vectors[word]) for word in pair)
        near.append(float(total @ vectors[phrase] / np.linalg.norm(total) / np.linalg.norm(vectors[phrase])))
    score = evaluate(vectors, tmp_path, ["compounds:of=phrase"]).scores[0]
    assert (score.metric, score.n_covered) == ("spearman", 15)
    assert score.value == pytest.approx(spearmanr(ratings[:15], near)[0], abs=1e-6)
    tuples = FeatureTuples("row")(vectors)
    far = []
    for (a, b), phrase in zip(pairs[:15], phrases, strict=True):
        x, y, whole = (tuples[word].astype(np.float64) for word in (a, b, phrase))
        far.append(cross_entropy(whole, x * y))
    score = evaluate(tuples, tmp_path, ["compounds:of=phrase,measure=cross_entropy"]).scores[0]
    assert score.value == pytest.approx(-spearmanr(ratings[:15], far)[0], abs=1e-6)


@pytest.mark.parametrize("line", ["snail\t1.3", "snail mail", "snail mail\tx", "a b c\t1", "snail mail\tnan"])
def test_a_malformed_compound_is_reported_with_its_line(line: str, tmp_path: Path) -> None:
    path = tmp_path / "c.tsv"
    path.write_text(f"end user\t4.25\n{line}\n", "utf-8")
    with pytest.raises(DatasetError) as caught:
        Compounds().read(path)
    assert (caught.value.code, caught.value.line) == ("unexpected-value", 2)


def test_identical_tuples_are_the_most_similar_by_divergence(tuples: WordVectors) -> None:
    rows = tuples.matrix[:5]
    assert MeasuredTask(measure="divergence").compare(rows, rows) == pytest.approx(np.zeros(5), abs=1e-9)
    assert (MeasuredTask(measure="divergence").compare(rows[:-1], rows[1:]) < 0).all()
