"""WEAT: effect and p against plain loops over the paper's formulas and all divisions."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from stillvec import WordVectors
from stillvec.errors import DatasetError, StillvecWarning
from stillvec.evaluation import evaluate
from stillvec.evaluation.bias import LISTS, Bias
from stillvec.evaluation.intervals import Resampling, wilson
from stillvec.heads.lookup import Lookup

HELD = {name: [f"{name}{number}" for number in range(size)] for name, size in zip(LISTS, (5, 4, 3, 6), strict=True)}


def toml_of(held: dict[str, list[str]]) -> str:
    return "".join(f"{name} = {json.dumps(words)}\n" for name, words in held.items())


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "bias").mkdir()
    (tmp_path / "bias" / "test.toml").write_text(toml_of(HELD))
    return tmp_path


@pytest.fixture
def vectors() -> WordVectors:
    words = [word for some in HELD.values() for word in some]
    points = np.random.default_rng(8).standard_normal((len(words), 6))
    points[:5, 0] += 1.2
    points[9:12, 0] += 2
    return WordVectors(words, points)


def slow(vectors: WordVectors, held: dict[str, list[str]]) -> tuple[float, float]:
    """The effect size and the exact p, word by word."""

    def leaning(word: str) -> float:
        a, b = ([vectors.similarity(word, other) for other in held[name]] for name in LISTS[2:])
        return float(np.mean(a) - np.mean(b))

    x, y = ([leaning(word) for word in held[name]] for name in LISTS[:2])
    effect = (np.mean(x) - np.mean(y)) / np.std(x + y, ddof=1)
    everyone = x + y
    divisions = [*combinations(range(len(everyone)), len(x))]
    apart = [
        np.mean([everyone[i] for i in some]) - np.mean([v for i, v in enumerate(everyone) if i not in some])
        for some in divisions
    ]
    return float(effect), sum(each >= np.mean(x) - np.mean(y) - 1e-9 for each in apart) / len(divisions)


def test_effect_and_p_are_those_of_slow_loops(data: Path, vectors: WordVectors) -> None:
    effect, p = evaluate(vectors, data, ["bias"]).scores
    wanted = slow(vectors, HELD)
    assert (effect.metric, p.metric) == ("effect", "p")
    assert effect.value == pytest.approx(wanted[0], abs=1e-5)
    assert p.value == pytest.approx(wanted[1])
    assert p.low == p.value == p.high
    assert effect.low < effect.value < effect.high
    assert (effect.n_items, effect.n_covered) == (18, 18)
    assert 1 / 126 < p.value < 1


def test_p_is_that_of_scipy(vectors: WordVectors) -> None:
    x, y = np.random.default_rng(0).standard_normal((2, 6))
    theirs = stats.permutation_test(
        (x, y), lambda a, b: np.mean(a) - np.mean(b), alternative="greater", n_resamples=np.inf
    )
    assert Bias()._p(np.concatenate([x, y]), 6).value == pytest.approx(theirs.pvalue)


def test_where_divisions_are_many_some_are_drawn_and_p_has_bounds() -> None:
    leaning = np.random.default_rng(1).standard_normal(14)
    exact = Bias()._p(leaning, 7)
    drawn = Bias(divisions=3000)._p(leaning, 7)
    assert drawn == Bias(divisions=3000)._p(leaning, 7)
    assert drawn.low < exact.value < drawn.high
    assert drawn.low < drawn.value < drawn.high
    far = Bias(divisions=1000)._p(np.arange(40.0, 0, -1), 20)
    assert far == wilson(1, 1000)  # X and Y themselves are one of the divisions, so p is never zero


def test_unknown_words_are_left_out_and_named(data: Path, vectors: WordVectors) -> None:
    some = vectors.subset(word for word in vectors.words if word not in ("target_x1", "attribute_b0"))
    with pytest.warns(StillvecWarning, match="2 of 18 words .* target_x1, attribute_b0"):
        effect, p = evaluate(some, data, ["bias"]).scores
    known = {name: [word for word in words if word in some] for name, words in HELD.items()}
    assert (effect.value, p.value) == pytest.approx(slow(some, known), abs=1e-5)
    assert (effect.n_items, effect.n_covered) == (18, 16)
    with pytest.warns(StillvecWarning):
        filled = evaluate(some, data, ["bias"], oov="zero").scores[0]
    assert filled.value != pytest.approx(effect.value)


def test_a_list_that_is_unknown_gives_no_number(data: Path, vectors: WordVectors) -> None:
    some = vectors.subset(word for word in vectors.words if not word.startswith("attribute_a"))
    with pytest.warns(StillvecWarning):
        scores = evaluate(some, data, ["bias"]).scores
    assert all(np.isnan(score.value) for score in scores)


def test_json_is_read_as_toml_is_and_without_resamples_nothing_is_tested(data: Path, vectors: WordVectors) -> None:
    (data / "bias" / "again.json").write_text(json.dumps(HELD | {"comment": "what is not asked for may stand there"}))
    task = Bias()
    one, other = (task.read(path) for path in task.find(data))
    assert one.texts == other.texts
    answers = task.answer(Lookup(vectors), one)
    assert [*task.score(one, answers, np.arange(18), Resampling(0))] == ["effect"]


@pytest.mark.parametrize(
    ("name", "content", "line", "message"),
    [
        ("a.toml", toml_of(HELD | {"target_y": ["one"]}), 1, "target_y.*'one'"),
        ("a.toml", "target_x = ['a', 'b']\n", 1, "target_y.*none"),
        ("a.toml", "target_x = [\n", 1, "TOML"),
        ("a.json", '{\n"target_x": oops}', 2, "JSON"),
        ("a.json", "[1]", 1, "list"),
    ],
)
def test_the_error_for_a_malformed_file_has_its_line(
    tmp_path: Path, name: str, content: str, line: int, message: str
) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(DatasetError, match=message) as caught:
        Bias().read(tmp_path / name)
    assert (caught.value.path, caught.value.line) == (str(tmp_path / name), line)
    assert "\n" not in str(caught.value)


def test_on_common_words_only_the_common_attributes_count(data: Path, vectors: WordVectors) -> None:
    some = vectors.subset(word for word in vectors.words if word not in ("target_x1", "attribute_b0"))
    known = {name: [word for word in words if word in some] for name, words in HELD.items()}
    with pytest.warns(StillvecWarning):
        scores = evaluate({"all": vectors, "some": some}, data, ["bias"]).scores
    common = [score.value for score in scores if score.words == "common"]
    assert common == pytest.approx([*slow(vectors, known)] * 2, abs=1e-5)
