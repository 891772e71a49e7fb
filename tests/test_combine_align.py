"""Alignment: Procrustes, CSLS and orders of similarity by a second way, and what they are for on made-up languages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.linalg import orthogonal_procrustes, polar, sqrtm
from scipy.stats import ortho_group

from stillvec import combine
from stillvec.combination.align import Align
from stillvec.combination.rcsls import minimize_rcsls, rcsls_gradient
from stillvec.combination.rotation import mutual_nearest, neighbourhood, procrustes, reweight_directions
from stillvec.errors import LexiconError, UsageError, VocabularyError
from stillvec.vectors import WordVectors


def _unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_the_rotation_is_that_of_scipy() -> None:
    random = np.random.default_rng(0)
    x, z = random.normal(size=(40, 6)), random.normal(size=(40, 6))
    assert np.allclose(procrustes(x, z), orthogonal_procrustes(x, z)[0])
    often = random.integers(0, 4, 40)
    again = orthogonal_procrustes(np.repeat(x, often, 0), np.repeat(z, often, 0))[0]
    assert np.allclose(procrustes(x, z, often.astype(float)), again)


@pytest.mark.parametrize("cells", [1 << 23, 100])
def test_mutual_nearest_words_are_those_of_a_slow_loop(cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stillvec.combination.rotation._CELLS", cells)
    random = np.random.default_rng(1)
    x, z = _unit(random.normal(size=(30, 4))), _unit(random.normal(size=(37, 4)))
    cosines = x @ z.T
    of_x, of_z = (np.array([sorted(row)[-3:] for row in each]).mean(1) for each in (cosines, cosines.T))
    assert np.allclose(neighbourhood(x, z, 3), of_x, atol=1e-6)
    scores = 2 * cosines - of_x[:, None] - of_z
    slow = [(i, j) for i in range(30) for j in range(37) if scores[i].argmax() == j and scores[:, j].argmax() == i]
    left, right = mutual_nearest(x, z, 3)
    assert [*zip(left.tolist(), right.tolist(), strict=True)] == slow
    assert len(slow) > 5


def test_csls_is_not_caught_by_a_hub() -> None:
    """A word of the other side that is nearest to all by cosine is the nearest of only one by CSLS."""
    x = _unit(np.eye(5) + 0.5)
    hub = _unit(np.ones((1, 5)))
    z = np.vstack([_unit(x - 0.9 * hub * (x @ hub.T)), hub])
    assert ((x @ z.T).argmax(1) == 5).all()
    left, right = mutual_nearest(x, z, 2)
    assert (left == right).sum() >= 4


def _order(rows: np.ndarray, alpha: float) -> np.ndarray:
    space = WordVectors([f"w{number}" for number in range(len(rows))], rows)
    turned = Align(alphas=(alpha, 0.0), center=False).fit(space, space)[0]
    return rows @ turned.order


@pytest.mark.parametrize("order", [2, 3])
def test_orders_of_similarity_are_powers_of_the_gram_matrix(order: int) -> None:
    rows = np.random.default_rng(2).normal(size=(50, 8)) * np.linspace(2, 0.5, 8)
    made = _order(rows, (order - 1) / 2)
    wanted = np.linalg.matrix_power(rows @ rows.T, order)
    made = made @ made.T
    assert np.abs(made / np.linalg.norm(made) - wanted / np.linalg.norm(wanted)).max() < 1e-12


def test_order_zero_keeps_cosines_and_minus_a_half_whitens() -> None:
    rows = np.random.default_rng(3).normal(size=(50, 8)) * np.linspace(2, 0.5, 8)
    same, white = _order(rows, 1e-300), _order(rows, -0.5)
    assert np.allclose(_unit(same) @ _unit(same).T, _unit(rows) @ _unit(rows).T, atol=1e-12)
    covariance = white.T @ white
    assert np.allclose(covariance / covariance[0, 0], np.eye(8), atol=1e-12)


COUNT, DIM, SEED = 3000, 50, 500


def _languages(seed: int) -> tuple[WordVectors, WordVectors]:
    """Two languages of sheet 07: one latent space, spectra exp(-i/8) and exp(-i/20), noise of half a latent axis."""
    random = np.random.default_rng(seed)
    latent = random.normal(size=(COUNT, DIM))
    spaces = []
    for letter, decay in (("s", 8), ("t", 20)):
        noisy = (latent + 0.5 * random.normal(size=latent.shape)) * np.exp(-np.arange(DIM) / decay)
        rows = noisy @ ortho_group.rvs(DIM, random_state=random)
        spaces.append(WordVectors([f"{letter}{number}" for number in range(COUNT)], rows))
    return spaces[0], spaces[1]


def _dictionary(folder: Path, count: int) -> Path:
    file = folder / "seed.txt"
    file.write_text("".join(f"s{number} t{number}\n" for number in range(count)) + "nobody t1\n")
    return file


def _mrr(method: Align, source: WordVectors, target: WordVectors) -> float:
    """Mean reciprocal rank of 500 words outside the seed, by cosine among all words."""
    x, z = (_unit(each.rows(np.arange(COUNT))) for each in method.fit(source, target))
    cosines = x[SEED : 2 * SEED] @ z.T
    right = cosines[np.arange(SEED), np.arange(SEED, 2 * SEED)]
    return float((1 / (1 + (cosines > right[:, None]).sum(1))).mean())


@pytest.mark.parametrize("seed", [1, 2])
def test_orders_of_similarity_bring_languages_together(seed: int, tmp_path: Path) -> None:
    """Sheet 07: a gain of 0.2 or more at the paper's α; whitening both is better still, raising both is worse."""
    pair = _languages(seed)
    seeds = _dictionary(tmp_path, SEED)
    found = {
        a: _mrr(Align(seeds, alphas=a, rounds=0), *pair) for a in ((0, 0), (-0.25, 0.15), (-0.5, -0.5), (0.15, 0.15))
    }
    assert found[-0.25, 0.15] > found[0, 0] + 0.2
    assert found[-0.5, -0.5] > 0.98
    assert found[0.15, 0.15] < found[0, 0]


def test_a_small_seed_grows_by_self_learning(tmp_path: Path) -> None:
    pair = _languages(4)
    few = _dictionary(tmp_path, 40)
    alphas = (-0.5, -0.5)
    alone = _mrr(Align(few, alphas=alphas, rounds=0), *pair)
    once = _mrr(Align(few, alphas=alphas, rounds=1), *pair)
    grown = _mrr(Align(few, alphas=alphas, rounds=8), *pair)
    assert alone < 0.8 * once
    assert once <= grown
    assert grown > 0.95


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0])
def test_reweighting_is_that_of_vecmap_step_by_step(power: float) -> None:
    """Whiten, turn, re-weight, de-whiten, with scipy's roots and inverses; both sides up to one rotation."""
    random = np.random.default_rng(11)
    x = random.normal(size=(200, 6)) * np.linspace(2, 0.5, 6)
    z = x @ ortho_group.rvs(6, random_state=random) + random.normal(size=(200, 6)) * np.linspace(0.2, 2, 6)
    white = [np.linalg.inv(sqrtm(rows.T @ rows)) for rows in (x, z)]
    u, agreement, vt = np.linalg.svd((x @ white[0]).T @ (z @ white[1]))
    slow = []
    for rows, change, turn in ((x, white[0], u), (z, white[1], vt.T)):
        weighted = rows @ change @ turn @ np.diag(agreement**power)
        slow.append(weighted @ turn.T @ np.linalg.inv(change) @ turn)
    made = [rows @ change for rows, change in zip((x, z), reweight_directions(x, z, power), strict=True)]
    for a in range(2):
        for b in range(2):
            assert np.allclose(made[a] @ made[b].T, slow[a] @ slow[b].T)
    if not power:
        assert np.allclose(made[0], x)


def test_reweighting_favours_the_directions_on_which_languages_agree(tmp_path: Path) -> None:
    """Ten directions of fifty say the same in both languages, the others hardly anything."""
    random = np.random.default_rng(12)
    latent, noise = random.normal(size=(COUNT, DIM)), np.array([0.3] * 10 + [3.0] * 40)
    pair = []
    for letter in "st":
        rows = (latent + noise * random.normal(size=latent.shape)) / np.sqrt(1 + noise**2)
        rows = rows @ ortho_group.rvs(DIM, random_state=random)
        pair.append(WordVectors([f"{letter}{number}" for number in range(COUNT)], rows))
    seeds = _dictionary(tmp_path, SEED)
    plain, weighted = (_mrr(Align(seeds, rounds=0, reweight=power), *pair) for power in (0.0, 0.5))
    assert weighted > plain + 0.1


def test_reweighting_takes_the_words_that_self_learning_found(tmp_path: Path) -> None:
    pair, seeds = _languages(13), _dictionary(tmp_path, SEED)
    alphas = (-0.5, -0.5)
    first, other = Align(seeds, alphas=alphas).fit(*pair)
    x, z = first.rows(np.arange(COUNT)), other.rows(np.arange(COUNT))
    left, right = mutual_nearest(x, z)
    wanted = reweight_directions(x[left], z[right], 0.5)
    made = Align(seeds, alphas=alphas, reweight=0.5).fit(*pair)
    assert np.allclose(made[0].rows(np.arange(9)), x[:9] @ wanted[0])
    assert np.allclose(made[1].rows(np.arange(9)), z[:9] @ wanted[1])


def test_identical_words_turn_a_space_back_whatever_its_rotation() -> None:
    random = np.random.default_rng(5)
    words = [f"w{number}" for number in range(60)]
    rows = random.normal(size=(60, 8))
    turned = WordVectors(words[10:], rows[10:] @ ortho_group.rvs(8, random_state=random))
    made = Align(center=False)(WordVectors(words[:50], rows[:50]), turned)
    assert np.allclose(made[words], _unit(rows), atol=1e-5)
    assert made.words == tuple(words)


def _planted(noise: float) -> tuple[WordVectors, WordVectors, np.ndarray]:
    """Two languages, s0 like t0 and so on: the second is turned, of other lengths, and noisy; and the turn."""
    random = np.random.default_rng(11)
    rows, turn = (
        random.normal(size=(400, 12)) * np.geomspace(3, 0.3, 12) + 0.5,
        ortho_group.rvs(12, random_state=random),
    )
    other = (_unit(rows) + noise * random.normal(size=rows.shape)) @ turn * random.uniform(0.5, 2, (400, 1))
    sides = zip("st", (rows, other), strict=True)
    source, target = (WordVectors([f"{side}{number}" for number in range(400)], each) for side, each in sides)
    return source, target, turn


def test_a_planted_rotation_is_recovered_to_a_millionth(tmp_path: Path) -> None:
    source, target, turn = _planted(noise=0)
    x, z = Align(_dictionary(tmp_path, 40)).fit(source, target)
    assert np.abs(z.rotation - turn.T @ x.rotation).max() < 1e-6
    made = Align(_dictionary(tmp_path, 40), tags=("s", "t"))(source, target)
    assert all(made.similarity(f"s:s{number}", f"t:t{number}") > 1 - 1e-6 for number in range(400))


def test_a_noisy_rotation_is_the_polar_factor_of_the_moments(tmp_path: Path) -> None:
    """`combine --method align` against scipy's polar decomposition of rows that are normalized here."""
    source, target, turn = _planted(noise=0.05)
    sides = [_unit(np.asarray(each.matrix, np.float64)) for each in (source, target)]
    sides = [_unit(side - side.mean(axis=0)) for side in sides]
    wanted = polar(sides[1][:40].T @ sides[0][:40])[0]  # of the 40 pairs of the dictionary
    x, z = Align(_dictionary(tmp_path, 40), rounds=0).fit(source, target)
    assert np.allclose(z.rotation @ x.rotation.T, wanted, atol=1e-6)
    again = Align(_dictionary(tmp_path, 40)).fit(source, target)[1].rotation
    once, more = (np.linalg.norm(each - turn.T) for each in (wanted, again))
    assert more < once < 1  # more pairs are found, and the rotation is nearer to the planted one


@pytest.mark.parametrize(
    ("method", "least", "most"),
    [("align:tags=a,b", 0.99, 1.0), ("align:tags=a,b,mapping=none", 0, 0.1), ("invariant:tags=a,b,weight=1", 0, 0.1)],
)
def test_only_a_rotation_undoes_a_rotation(method: str, least: float, most: float) -> None:
    """Centring and `invariant` treat all spaces alike: they are for spaces of one teacher."""
    source, target, _ = _planted(noise=0)
    words = source.words[:40]  # the same words in both, which `align` begins with
    both = combine([source, WordVectors([*words, *target.words[40:]], target.matrix)], method)
    x, z = (_unit(both[[f"{side}{number}" for number in range(40, 400)]]) for side in ("a:s", "b:t"))
    assert least <= ((x @ z.T).argmax(axis=1) == np.arange(360)).mean() <= most


def test_tags_keep_words_of_two_languages_apart(tmp_path: Path) -> None:
    source, target = _languages(6)
    some = source.subset(source.words[:100]), target.subset(target.words[:90])
    made = Align(_dictionary(tmp_path, 80), tags=("en", "de"))(*some)
    assert len(made) == 190
    assert made.similarity("en:s3", "de:t3") > 0.3
    assert made.words[:2] == ("en:s0", "en:s1")


def test_a_narrow_space_is_turned_into_a_wide_one() -> None:
    random = np.random.default_rng(7)
    words = [f"w{number}" for number in range(60)]
    wide = np.hstack([random.normal(size=(60, 4)), 0.01 * random.normal(size=(60, 3))])
    narrow = wide[:, :4] @ ortho_group.rvs(4, random_state=random)
    for pair in ((wide, narrow), (narrow, wide)):
        x, z = Align(center=False).fit(*(WordVectors(words, rows) for rows in pair))
        every = np.arange(60)
        assert (x.rows(every) * z.rows(every)).sum(1).min() > 0.99


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"rounds": -1}, "at least 0"),
        ({"neighbours": 0}, "at least 1"),
        ({"reweight": 1.5}, "0 to 1"),
        ({"tags": ("a", "a")}, "different tag"),
        ({"tags": ("a",)}, "2 tags"),
        ({"alphas": (0.1, 0.1, 0.1)}, "2 alphas"),
    ],
)
def test_what_is_invalid_is_refused(settings: dict[str, Any], expected: str) -> None:
    space = WordVectors(["a", "b"], np.eye(2))
    with pytest.raises(UsageError, match=expected):
        Align(**settings)(space, space)


def test_a_seed_that_says_nothing_is_named(tmp_path: Path) -> None:
    pair = WordVectors(["a", "b"], np.eye(2)), WordVectors(["c", "d"], np.eye(2))
    with pytest.raises(VocabularyError, match="dictionary"):
        Align()(*pair)
    (tmp_path / "seed.txt").write_text("x y\n")
    with pytest.raises(LexiconError, match="none of 1"):
        Align(tmp_path / "seed.txt")(*pair)
    with pytest.raises(UsageError, match="reweight"):
        Align(reweight=0.5)(pair[0], pair[0], pair[0])
    with pytest.raises(UsageError, match="dictionary"):
        Align(tmp_path / "seed.txt")(*pair, pair[0])


def test_the_order_of_similarity_is_changed_before_rows_are_scaled_to_length_one() -> None:
    """`unit(x Q Δ^α)`, with Q and Δ of the vectors as they are: rows of unequal length tell the orders apart."""
    random = np.random.default_rng(5)
    matrix = random.normal(size=(60, 5)) * np.linspace(3, 0.5, 5) * random.uniform(0.1, 9, (60, 1))
    space = WordVectors([f"w{row}" for row in range(60)], matrix)
    first, _ = Align(alphas=(-0.25, 0.15), center=False, rounds=0).fit(space, space)
    values, axes = np.linalg.eigh(matrix.T @ matrix)
    expected = _unit(matrix @ axes * values**-0.25)
    ours = first.rows(np.arange(60))
    assert np.allclose(ours @ ours.T, expected @ expected.T)
    centred, _ = Align(alphas=(-0.25, 0.15), rounds=0).fit(space, space)
    ours_centred, expected_centred = centred.rows(np.arange(60)), _unit(expected - expected.mean(0))
    assert np.allclose(ours_centred @ ours_centred.T, expected_centred @ expected_centred.T)
    values, axes = np.linalg.eigh(_unit(matrix).T @ _unit(matrix))
    swapped = _unit(_unit(matrix) @ axes * values**-0.25)
    assert not np.allclose(ours @ ours.T, swapped @ swapped.T, atol=1e-2)


def test_orders_of_similarity_are_taken_before_the_length() -> None:
    """Sheet 07: `x Q Δ^α` of the raw rows, then length, mean and length; the order of length-one rows is another."""
    random = np.random.default_rng(7)
    rows = random.normal(size=(60, 5)) * np.linspace(3, 0.5, 5) * random.exponential(size=(60, 1))

    def order(table: np.ndarray) -> np.ndarray:
        values, axes = np.linalg.eigh(table.T @ table)
        return _unit(table @ (axes * values**-0.25))

    space = WordVectors([f"w{number}" for number in range(60)], rows)
    made = Align(alphas=(-0.25, 0.0)).fit(space, space)[0].rows(np.arange(60))
    wanted, after = (_unit(turned - turned.mean(0)) for turned in (order(rows), order(_unit(rows))))
    assert np.allclose(made @ made.T, wanted @ wanted.T, atol=1e-12)
    assert np.abs(made @ made.T - after @ after.T).max() > 0.01


def test_the_loss_of_rcsls_and_its_gradient_by_hand() -> None:
    """One pair, one neighbour: -2 x·z + x·(1, 0) + (0, 1)·z with the identity as the map."""
    x, z, both = np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]]), np.eye(2)
    loss, gradient = rcsls_gradient(np.eye(2), (x, z), (both, both), 1)
    assert loss == 2
    assert gradient.tolist() == [[1, -2], [0, 1]]


@pytest.mark.parametrize("neighbours", [1, 3, 99])
def test_the_gradient_of_rcsls_is_that_of_autograd(neighbours: int) -> None:
    torch = pytest.importorskip("torch")
    random = np.random.default_rng(8)
    x, z, all_x, all_z = (_unit(random.normal(size=(count, 4))) for count in (7, 7, 20, 25))
    start = random.normal(size=(4, 4))
    w = torch.tensor(start, requires_grad=True)
    a, b, all_a, all_b = map(torch.tensor, (x, z, all_x, all_z))
    near_z = (a @ w @ all_b.T).topk(min(neighbours, 25)).values.mean(1)
    near_x = (b @ (all_a @ w).T).topk(min(neighbours, 20)).values.mean(1)
    value = (-2 * (a @ w * b).sum(1) + near_z + near_x).mean()
    value.backward()
    loss, gradient = rcsls_gradient(start, (x, z), (all_x, all_z), neighbours)
    assert loss == pytest.approx(value.item(), abs=1e-12)
    assert np.abs(gradient - w.grad.numpy()).max() < 1e-12


def test_rcsls_lowers_its_loss_and_its_singular_values_can_be_limited() -> None:
    random = np.random.default_rng(9)
    x = _unit(random.normal(size=(30, 8)))
    z = _unit(x @ ortho_group.rvs(8, random_state=random) + 0.1 * random.normal(size=(30, 8)))
    start, given = procrustes(x, z), {"neighbours": 3, "rate": 1.0}
    before = rcsls_gradient(start, (x, z), (x, z), 3)[0]
    for spectral in (False, True):
        made = minimize_rcsls(start, (x, z), (x, z), steps=10, spectral=spectral, **given)
        assert rcsls_gradient(made, (x, z), (x, z), 3)[0] < before
        assert (np.linalg.svd(made)[1].max() <= 1 + 1e-12) == spectral


def test_rcsls_finds_more_translations_than_the_rotation(tmp_path: Path) -> None:
    pair, seeds = _languages(1), _dictionary(tmp_path, SEED)
    trained = _mrr(Align(seeds, rounds=0, mapping="rcsls"), *pair)
    assert trained > _mrr(Align(seeds, rounds=0), *pair)


@pytest.mark.parametrize(
    "settings", [{"rate": 0.0}, {"rate": np.nan}, {"steps": 0}, {"mapping": "rcsls", "reweight": 0.5}]
)
def test_settings_of_rcsls_that_make_no_sense_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        Align(**settings)
