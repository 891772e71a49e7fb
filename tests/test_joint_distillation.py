"""One space from several teachers."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from tiny_corpus import sentences
from tiny_teachers import write_tiny_model

import stillvec
from stillvec.errors import AlreadyFinished, StillvecError, UsageError
from stillvec.verbs.joint_distillation import name_parts, split_teachers


@pytest.fixture(scope="module")
def teachers(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    folder = tmp_path_factory.mktemp("teachers")
    for seed, name in enumerate(("one", "two")):
        write_tiny_model(folder / name, "bert", seed=seed)
    return str(folder / "one"), str(folder / "two")


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.txt"
    path.write_text("\n".join(sentences(40)), "utf-8")
    return path


def unit_rows(matrix: np.ndarray) -> np.ndarray:
    return matrix / np.linalg.norm(matrix, axis=1, keepdims=True)


def test_cosines_are_the_weighted_means_of_the_teachers_cosines(corpus: Path, teachers: tuple[str, str]) -> None:
    settings = {"method": "aggregate", "min_count": 1, "device": "cpu"}
    joined = stillvec.distill(corpus, teacher=",".join(teachers), **settings)
    first, second = (stillvec.distill(corpus, teacher=teacher, **settings) for teacher in teachers)
    assert joined.words == first.words
    one, two = (unit_rows(np.array(each.matrix, np.float64)) for each in (first, second))
    wanted = (one @ one.T + 0.25 * (two @ two.T)) / 1.25  # 32 dimensions: nothing is cut
    got = unit_rows(np.array(joined.matrix, np.float64))
    assert np.abs(got @ got.T - wanted).max() < 1e-4
    assert [each["name"] for each in joined.provenance["combined"]] == ["one", "two"]
    assert stillvec.distill(corpus, teacher=",".join(teachers), dim=5, **settings).dim == 5


def test_each_teacher_keeps_its_own_result_and_is_read_once(
    corpus: Path, teachers: tuple[str, str], tmp_path: Path
) -> None:
    settings = {"method": "aggregate,decontextualized", "min_count": 1, "device": "cpu"}
    stillvec.distill_all(corpus, teacher=teachers[0], out=tmp_path / "joint.teachers" / "one", **settings)
    manifest = (tmp_path / "joint.teachers" / "one" / "aggregate" / "manifest.json").read_bytes()
    both, out = ",".join(teachers), tmp_path / "joint"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", AlreadyFinished)
        joined = stillvec.distill_all(corpus, teacher=both, out=out, **settings)
    assert sum(issubclass(each.category, AlreadyFinished) for each in caught) == 2  # both methods of the first teacher
    assert (tmp_path / "joint.teachers" / "one" / "aggregate" / "manifest.json").read_bytes() == manifest
    assert np.array_equal(stillvec.load(out / "aggregate").matrix, joined["aggregate"].matrix)
    with pytest.raises(UsageError) as refused:
        stillvec.distill_all(corpus, teacher=both, out=out, dim=5, **settings)
    assert refused.value.code == "exists"


def test_the_plan_adds_the_teachers(corpus: Path, teachers: tuple[str, str]) -> None:
    settings = {"method": "aggregate", "min_count": 1, "device": "cpu"}
    both = stillvec.plan(corpus, teacher=",".join(teachers), **settings)
    each = [stillvec.plan(corpus, teacher=teacher, **settings) for teacher in teachers]
    assert both.n_tokens == sum(one.n_tokens for one in each)
    assert both.n_words == each[0].n_words


@pytest.mark.parametrize(
    "given",
    [{"add_to": "old"}, {"oov": "subword"}, {"purpose": "sentences"}, {"engine": "ray"}, {"layer": "all"}],
    ids=lambda given: next(iter(given)),
)
def test_what_is_for_one_teacher_is_refused(given: dict[str, str], corpus: Path, teachers: tuple[str, str]) -> None:
    with pytest.raises(UsageError, match="teacher"):
        stillvec.distill_all(corpus, teacher=",".join(teachers), **given)


def test_a_teacher_that_does_not_exist_is_refused_before_another_reads(
    corpus: Path, teachers: tuple[str, str], tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(StillvecError):
        stillvec.distill(corpus, teacher=f"{teachers[0]},{tmp_path / 'empty'}", min_count=1, out=tmp_path / "out")
    assert not (tmp_path / "out.teachers").exists()


def test_teachers_are_separated_by_commas(tmp_path: Path) -> None:
    folder = tmp_path / "a,b"
    folder.mkdir()
    assert split_teachers(str(folder)) == [str(folder)]
    assert split_teachers("mpnet, minilm") == ["mpnet", "minilm"]
    for wrong in ("mpnet,", "minilm,minilm"):
        with pytest.raises(UsageError):
            split_teachers(wrong)
    names = name_parts(["x/model", "y/model", "hf://me/small@main"])
    assert names == {"x/model": "model", "y/model": "model-2", "hf://me/small@main": "small"}
