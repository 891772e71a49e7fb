"""What a space is like: every number by a second way, or on spaces whose answer is known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import skew, spearmanr
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import NearestNeighbors

from stillvec.analysis import PrincipalSpace, geometry, mean_value, probe, read_labelled, saturation, study
from stillvec.analysis.space_geometry import isoscore, k_occurrences
from stillvec.errors import DatasetError, UsageError
from stillvec.evaluation import evaluate
from stillvec.numerics import iterate_blocks
from stillvec.vectors import WordVectors
from stillvec.vocabulary import Vocabulary


def _space(rows: np.ndarray, counts: list[int] | None = None) -> WordVectors:
    return WordVectors(Vocabulary([f"w{number}" for number in range(len(rows))], counts), rows)


@pytest.fixture(params=[1 << 14, 64])
def vectors(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> WordVectors:
    """Off centre, of uneven variance, frequent words longer; once in one block and once in several."""
    monkeypatch.setattr(iterate_blocks, "__defaults__", (np.float64, request.param))
    monkeypatch.setattr("stillvec.analysis.space_geometry.BLOCK_ROWS", request.param)
    random = np.random.default_rng(0)
    rows = random.normal(size=(300, 10)) * np.linspace(3, 0.5, 10) + 0.7
    return _space(rows * np.linspace(2, 0.5, 300)[:, None], [*range(900, 0, -3)])


def test_numbers_of_a_space_are_those_of_numpy_scipy_and_scikit_learn(vectors: WordVectors) -> None:
    found = geometry(vectors, neighbours=5)
    rows = vectors.matrix
    fitted = PCA(10).fit(rows)
    variances = fitted.explained_variance_ * 299 / 300
    assert np.allclose(found.variances, variances)
    assert found.participation == pytest.approx(variances.sum() ** 2 / (variances**2).sum())
    assert found.dim_90 == 1 + int((np.cumsum(fitted.explained_variance_ratio_) < 0.9).sum())
    shares = fitted.explained_variance_ratio_
    assert found.entropy_rank == pytest.approx(np.exp(-(shares * np.log(shares)).sum()))
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    cosines = unit @ unit.T
    assert found.mean_cosine == pytest.approx((cosines.sum() - 300) / (300 * 299), abs=0.01)
    centred = rows - rows.mean(0)
    centred /= np.linalg.norm(centred, axis=1, keepdims=True)
    assert found.centred_cosine == pytest.approx(((centred @ centred.T).sum() - 300) / (300 * 299), abs=0.01)
    nearest = NearestNeighbors(n_neighbors=5, metric="cosine").fit(unit).kneighbors(return_distance=False)
    often = np.bincount(nearest.ravel(), minlength=300)
    assert found.hubness == pytest.approx(skew(often))
    assert (found.most_often, found.never) == (often.max(), (often == 0).mean())
    assert found.hubs[0] == f"w{often.argmax()}"
    norms = np.linalg.norm(rows, axis=1)
    assert found.norm_frequency == pytest.approx(spearmanr(norms, vectors.vocabulary.counts)[0])
    assert found.norm_frequency > 0.5
    assert np.allclose(found.norms, norms.reshape(10, 30).mean(1))
    sums = np.exp(unit @ np.hstack([fitted.components_.T, -fitted.components_.T])).sum(0)
    assert found.partition == pytest.approx(sums.min() / sums.max())


def test_isotropic_and_narrow_spaces_are_distinguished() -> None:
    random = np.random.default_rng(1)
    even = geometry(_space(random.normal(size=(2000, 8))))
    narrow = geometry(_space(random.normal(size=(2000, 8)) * 0.1 + 1))
    flat = geometry(_space(random.normal(size=(2000, 8)) * ([1] + [0.001] * 7)))
    assert abs(even.mean_cosine) < 0.02 < 0.9 < narrow.mean_cosine
    assert abs(narrow.centred_cosine) < 0.02
    assert even.partition > 0.9 > 0.3 > narrow.partition
    assert even.isoscore > 0.95 > 0.01 > flat.isoscore
    assert even.participation > 7.8
    assert flat.participation == pytest.approx(1, abs=0.01)
    assert (even.dim_90, flat.dim_90) == (8, 1)


@pytest.mark.parametrize(("variances", "score"), [([1, 1, 1, 1], 1.0), ([1, 0, 0, 0], 0.0), ([1, 1, 0, 0], 1 / 3)])
def test_isoscore_is_the_share_of_directions_that_are_used(variances: list[float], score: float) -> None:
    """Its authors' law: with equal variance in k of d directions the score is (k - 1) / (d - 1)."""
    assert isoscore(np.array(variances, float)) == pytest.approx(score, abs=1e-9)


def test_many_dimensions_make_hubs() -> None:
    """Radovanović et al. 2010: the skewness grows with the dimension."""
    random = np.random.default_rng(2)
    few, many = (geometry(_space(random.normal(size=(800, dim)) + 0.3)).hubness for dim in (3, 100))
    assert few < 1 < many


def test_each_word_names_its_neighbours() -> None:
    rows = np.array([[1.0, 0], [0.8, 0.6], [0, 1], [0.6, 0.8]])
    assert k_occurrences(rows, 1).tolist() == [0, 2, 0, 2]
    assert k_occurrences(rows, 99).tolist() == [3, 3, 3, 3]


def test_rounding_is_not_a_relation_of_norm_and_frequency() -> None:
    rows = np.random.default_rng(6).normal(size=(200, 5)).astype(np.float32)
    assert geometry(_space(rows / np.linalg.norm(rows, axis=1, keepdims=True))).norm_frequency == 0


def test_without_counts_order_stands_for_frequency() -> None:
    rows = np.random.default_rng(3).normal(size=(200, 5)) * np.linspace(3, 1, 200)[:, None]
    found = geometry(_space(rows))
    assert not found.counted
    assert found.norm_frequency > 0.4


@pytest.mark.parametrize("rows", [np.ones((5, 4)), np.zeros((5, 4))])
def test_vectors_that_are_all_alike_have_finite_numbers(rows: np.ndarray) -> None:
    found = geometry(_space(rows))
    assert np.isfinite([found.isoscore, found.hubness, found.partition, found.entropy_rank, found.norm_frequency]).all()


def test_too_few_words_and_neighbours_are_refused() -> None:
    with pytest.raises(UsageError, match="3 words"):
        geometry(_space(np.eye(2)))
    with pytest.raises(UsageError, match="0 and 10000"):
        geometry(_space(np.eye(4)), neighbours=0)


def test_components_are_those_of_scikit_learn(vectors: WordVectors) -> None:
    space = PrincipalSpace(vectors)
    slow = PCA(10).fit_transform(vectors.matrix)
    made = space.project(2, 7).matrix
    assert np.allclose(np.abs(made), np.abs(slow[:, 2:7]))
    assert made.dtype == np.float64
    assert (space.axes[np.abs(space.axes).argmax(0), np.arange(10)] > 0).all()


def test_taking_out_the_top_leaves_the_rest_alone(vectors: WordVectors) -> None:
    """Sheet 19: nothing is left on the axes taken out, and the others do not change."""
    space = PrincipalSpace(vectors)
    left = space.without_top(3)
    on_axes = left.matrix @ space.axes
    assert on_axes[:, :3].var(0).max() < 1e-20
    assert np.abs(on_axes[:, 3:] - space.project(3, 10).matrix).max() < 1e-8
    assert np.allclose(space.without_top(0).matrix, vectors.matrix - vectors.matrix.mean(0))
    for wrong in (-1, 10):
        with pytest.raises(UsageError, match="0 to 9"):
            space.without_top(wrong)
    with pytest.raises(UsageError, match="components 0 to 9"):
        space.project(4, 11)


def test_variance_is_not_a_sign_of_use() -> None:
    """Sheet 19: sentences labelled by a component of the bottom third are told apart by that third alone."""
    random = np.random.default_rng(4)
    space = PrincipalSpace(_space(random.normal(size=(5000, 90)) * 0.967 ** np.arange(90)))
    sentences = random.integers(0, 5000, (3000, 12))
    component = space.project(75, 76).matrix[:, 0]
    labels = component[sentences].mean(1) > 0

    def accuracy(first: int, last: int) -> float:
        rows = space.project(first, last).matrix[sentences].mean(1)
        rows /= rows.std(0)
        model = LogisticRegression(C=10, max_iter=500).fit(rows[:2000], labels[:2000])
        return float(model.score(rows[2000:], labels[2000:]))

    found = {bounds: accuracy(*bounds) for bounds in ((0, 30), (30, 60), (60, 90))}
    assert found[60, 90] >= 0.95
    assert max(found[0, 30], found[30, 60]) <= 0.56
    assert found[60, 90] == accuracy(60, 90)


@pytest.fixture
def rated_pairs(tmp_path: Path) -> tuple[WordVectors, Path]:
    """People judge by the components 4 to 8 of twelve; the first three are loud noise."""
    random = np.random.default_rng(5)
    rows = random.normal(size=(200, 12)) * ([4, 3.5, 3] + [2] * 5 + [0.3] * 4)
    pairs = random.integers(0, 200, (400, 2))
    meant = rows[:, 3:8] / np.linalg.norm(rows[:, 3:8], axis=1, keepdims=True)
    gold = (meant[pairs[:, 0]] * meant[pairs[:, 1]]).sum(1)
    lines = [f"w{a}\tw{b}\t{score}\n" for (a, b), score in zip(pairs.tolist(), gold.tolist(), strict=True) if a != b]
    (tmp_path / "similarity").mkdir()
    (tmp_path / "similarity" / "made.tsv").write_text("".join(lines))
    return _space(rows @ np.linalg.qr(random.normal(size=(12, 12)))[0]), tmp_path


def test_a_study_finds_where_the_knowledge_lies(rated_pairs: tuple[WordVectors, Path]) -> None:
    found = study(*rated_pairs, points=12, without=(0, 1, 3, 99), resamples=50)
    curve = {k: mean_value(scores) for k, scores in found.cumulative.items()}
    assert [*curve] == [*range(1, 13)]
    assert max(curve[1], curve[2], curve[3]) < 0.2 < curve[8]
    assert curve[12] == pytest.approx(mean_value(found.without[0]), abs=1e-6)
    assert [*found.without] == [0, 1, 3]
    assert mean_value(found.without[3]) > 0.95
    assert {*found.thirds} == {"whole", "top", "middle", "bottom"}
    assert mean_value(found.thirds["middle"]) > max(mean_value(found.thirds[name]) for name in ("top", "bottom")) + 0.2
    assert sum(found.shares.values()) == pytest.approx(1)
    assert found.shares["top"] > 0.6
    (score,) = found.thirds["middle"]
    assert score.low < score.value < score.high


def test_a_study_says_the_same_twice(rated_pairs: tuple[WordVectors, Path]) -> None:
    first, second = (study(*rated_pairs, points=3, without=(1,), resamples=20) for _ in range(2))
    assert first == second


@pytest.mark.parametrize(
    ("curve", "wanted"),
    [({10: 0.2, 20: 0.5, 30: 0.505, 40: 0.5}, 20), ({10: 0.6, 20: 0.4, 30: 0.5}, 30), ({10: 0.1}, 10)],
)
def test_saturation_is_where_the_curve_stays_near_its_end(curve: dict[int, float], wanted: int) -> None:
    assert saturation(curve) == wanted


def test_a_study_of_two_dimensions_is_refused(rated_pairs: tuple[WordVectors, Path]) -> None:
    with pytest.raises(UsageError, match="2 and 15"):
        study(_space(np.eye(2)), rated_pairs[1])


def test_a_component_that_decides_the_label_is_found_by_its_probe() -> None:
    """Sheet 19: the label is the sign of one late component; scikit-learn's regression says what each probe says."""
    random = np.random.default_rng(7)
    vectors = _space(random.normal(size=(400, 12)) * 0.8 ** np.arange(12))
    space = PrincipalSpace(vectors)
    component = space.project(9, 10).matrix[:, 0]
    rows = random.integers(0, 400, (600, 8))
    labels = ["yes" if component[row].mean() > 0 else "no" for row in rows]
    texts = [" ".join(f"w{word}" for word in row) for row in rows]
    found = probe(vectors, texts, labels, "made")
    assert int(np.argmax(found.each)) == 9
    assert found.each[9] > 0.95
    assert np.delete(found.each, 9).max() < 0.65
    assert found.whole > 0.9
    assert (found.texts, found.labels, found.name) == (600, 2, "made")
    assert found == probe(vectors, texts, labels, "made")

    gold = np.array(labels)
    held = np.zeros(600, bool)
    for label in ("no", "yes"):
        held[np.flatnonzero(gold == label)[4::5]] = True
    assert found.majority == max((gold[held] == label).mean() for label in ("no", "yes"))
    projected = space.project(0, 12).matrix[rows].mean(1)
    projected = (projected - projected[~held].mean(0)) / projected[~held].std(0)
    for part, said in (([9], found.each[9]), ([2], found.each[2]), ([*range(12)], found.whole)):
        slow = LogisticRegression(C=1.0, max_iter=500).fit(projected[~held][:, part], gold[~held])
        assert said == pytest.approx(slow.score(projected[held][:, part], gold[held]), abs=0.01)
    assert found.trend == pytest.approx(spearmanr(range(12), found.each)[0])


def test_labelled_texts_are_read_whatever_their_bytes(tmp_path: Path) -> None:
    (tmp_path / "texts.txt").write_bytes("1 café au lait\n\n".encode() + b"0 caf\xe9 noir\n2\tthe\ttea\n")
    assert read_labelled(tmp_path / "texts.txt") == (["café au lait", "café noir", "the\ttea"], ["1", "0", "2"])
    (tmp_path / "empty.txt").write_text("1 \n0 fine\n")
    assert read_labelled(tmp_path / "empty.txt") == (["", "fine"], ["1", "0"]), "as classification reads it"
    (tmp_path / "bad.txt").write_text("1 fine\nalone\n")
    with pytest.raises(DatasetError, match="alone") as caught:
        read_labelled(tmp_path / "bad.txt")
    assert caught.value.line == 2
    with pytest.raises(DatasetError, match="nowhere"):
        read_labelled(tmp_path / "nowhere.txt")
    with pytest.raises(DatasetError, match=r"few.*3 texts, 3 labels and 1 different"):
        probe(_space(np.eye(4)), ["w1", "w2", "w3"], ["a", "a", "a"], "few")


def test_two_thirds_of_the_components_of_real_vectors_are_enough(word_pieces: WordVectors, data_folder: Path) -> None:
    """Sheet 19: the first 200 of 300 lose at most a point on average, over the sets with 100 pairs that are known."""
    space = PrincipalSpace(word_pieces)
    report = evaluate(
        {"some": space.project(0, 256), "all": space.project(0, 384)}, data_folder, ["similarity"], resamples=0
    )
    scores = [each for each in report.scores if each.words == "own" and each.n_covered >= 100]
    some, every = (np.mean([each.value for each in scores if each.vectors == name]) for name in ("some", "all"))
    assert len(scores) >= 10
    assert some >= every - 0.01
