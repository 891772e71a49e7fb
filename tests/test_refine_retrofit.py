"""Retrofitting: the sweeps end where the linear system says, written out here word by word."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stillvec.errors import LexiconError, StillvecWarning, UsageError
from stillvec.refinement.graph_retrofit import GraphRetrofit, log_gamma_weights
from stillvec.refinement.retrofit import Retrofit
from stillvec.vectors import WordVectors
from stillvec.vocabulary import Vocabulary

WORDS = ["ice", "snow", "frost", "fire", "hot", "cold", "Turkey", "turkey", "alone"]
NEAR = {"ice": {"snow": 1, "frost": 0.5}, "snow": {"frost": 2}, "fire": {"hot": 1}, "cold": {"ice": 3, "hot": 1}}
APART = {"hot": {"cold": 1}, "fire": {"ice": 1}}
LONG = {"sweeps": 200}


@pytest.fixture
def vectors() -> WordVectors:
    matrix = np.random.default_rng(0).normal(size=(len(WORDS), 5)) * 2
    return WordVectors(Vocabulary(WORDS, lowercase=False), matrix)  # float64, to compare closely


def _table(path: Path, edges: dict[str, dict[str, float]]) -> str:
    lines = [f"{word}\t{other}\t{weight}" for word, row in edges.items() for other, weight in row.items()]
    path.write_text("\n".join([*lines, "ice\tunknown\t1", "ice\tice\t9"]), encoding="utf-8")
    return str(path)


@pytest.fixture
def near(tmp_path: Path) -> str:
    return _table(tmp_path / "near.tsv", NEAR)


@pytest.fixture
def apart(tmp_path: Path) -> str:
    return _table(tmp_path / "apart.tsv", APART)


def _both_ways(edges: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {word: {} for word in WORDS}
    for word, row in edges.items():
        for other, weight in row.items():
            found[word][other] = found[other][word] = weight
    return found


def _solved(vectors: WordVectors, rows: dict[str, tuple[float, dict[str, float]]]) -> Any:
    """`q_i - Σ_j pull_ij q_j = home_i q'_i`, solved at once; a word without a row stays."""
    system, right = np.eye(len(WORDS)), np.array(vectors.matrix)
    for word, (home, pull) in rows.items():
        at = WORDS.index(word)
        right[at] *= home
        for other, weight in pull.items():
            system[at, WORDS.index(other)] -= weight
    return np.linalg.solve(system, right)


def test_retrofitting_ends_at_the_solution_of_the_linear_system(vectors: WordVectors, near: str) -> None:
    alpha, beta = 1.0, 2.0
    rows = {}
    for word, others in _both_ways(NEAR).items():
        if others:
            total = sum(others.values())
            pull = {other: beta * weight / total / (alpha + beta) for other, weight in others.items()}
            rows[word] = (alpha / (alpha + beta), pull)
    after = Retrofit((near,), alpha=alpha, beta=beta, **LONG)(vectors)
    assert np.allclose(after.matrix, _solved(vectors, rows), atol=1e-12)


def _gamma(vectors: WordVectors, a: str, b: str, nu: float, sigma: float) -> float:
    distance = math.dist(vectors[a].astype(np.float64), vectors[b].astype(np.float64))
    scale = 2 * math.pi * (math.gamma((nu + 1) / 2) / (math.sqrt(nu * math.pi) * math.gamma(nu / 2))) ** 2
    return float(scale * (1 + distance**2 / (sigma * nu)) ** -(nu + 1))


def _alike(vectors: WordVectors) -> WordVectors:
    """Words that share a direction, as real ones do: antonyms are near."""
    return WordVectors(vectors.vocabulary, vectors.matrix + 2)


def _drawn(pushed: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
    """The neighbours that are no antonyms."""
    return {word: {o: w for o, w in row.items() if o not in pushed[word]} for word, row in _both_ways(NEAR).items()}


@pytest.mark.parametrize("form", ["normalized", "printed"])
def test_graph_retrofitting_ends_at_the_solution_of_the_linear_system(
    form: Any, vectors: WordVectors, near: str
) -> None:
    alpha, beta, nu, sigma = 0.6, 0.5, 3.0, 8.0
    rows: dict[str, tuple[float, dict[str, float]]] = {}
    for word, others in _both_ways(NEAR).items():
        gammas = {other: edge * _gamma(vectors, word, other, nu, sigma) for other, edge in others.items()}
        size = sum(gammas.values()) if form == "normalized" else len(gammas)
        scale = alpha + beta if form == "normalized" else 1
        if gammas:
            rows[word] = (alpha / scale, {other: beta * gamma / size / scale for other, gamma in gammas.items()})
    step = GraphRetrofit((near,), (), 400, alpha, beta, nu=nu, sigma=sigma, form=form)
    assert np.allclose(step(vectors).matrix, _solved(vectors, rows), atol=1e-6)


@pytest.mark.parametrize("form", ["normalized", "printed"])
@pytest.mark.parametrize(("repel", "margin"), [(0.0, 0.0), (0.25, -0.6), (0.6, 0.1)])
def test_antonyms_come_to_rest_where_one_word_after_another_does(
    form: Any, repel: float, margin: float, vectors: WordVectors, near: str, apart: str
) -> None:
    alpha, beta, nu, sigma = 0.6, 0.5, 3.0, 8.0
    vectors = _alike(vectors)
    pushed = _both_ways(APART)
    drawn = _drawn(pushed)
    home = {word: vectors[word].astype(np.float64) for word in WORDS}
    now = dict(home)
    for _ in range(3000):
        for word in WORDS:
            gammas = {o: edge * _gamma(vectors, word, o, nu, sigma) for o, edge in drawn[word].items()}
            size = sum(gammas.values()) if form == "normalized" else len(gammas)
            goal, total = alpha * home[word], alpha + beta * bool(gammas)
            for other, gamma in gammas.items():
                goal = goal + beta * gamma / size * now[other]
            for other, edge in pushed[word].items():
                cosine = now[word] @ now[other] / np.linalg.norm(now[word]) / np.linalg.norm(now[other])
                strength = repel * edge * max(0.0, cosine - margin)
                goal = goal - strength * np.linalg.norm(home[word]) * now[other] / np.linalg.norm(now[other])
                total += strength
            if drawn[word] or pushed[word]:
                goal = goal / total if form == "normalized" else goal
                now[word] = now[word] + 0.2 * (goal - now[word])
    step = GraphRetrofit((near,), (apart,), 3000, alpha, beta, repel, margin, nu, sigma, form)
    after = step(vectors)
    assert np.abs(after.matrix - np.stack([now[word] for word in WORDS])).max() < 1e-5
    if repel:
        calm = GraphRetrofit((near,), (apart,), 3000, alpha, beta, 0.0, margin, nu, sigma, form)(vectors)
        assert not np.allclose(after.matrix, calm.matrix, atol=1e-2), "something was pushed"


def test_antonyms_beyond_the_margin_are_let_be(vectors: WordVectors, apart: str, near: str) -> None:
    step = GraphRetrofit((near,), (apart,), 500, repel=5.0, margin=1.0)
    assert np.allclose(step(vectors).matrix, GraphRetrofit((near,), (apart,), 500, repel=0.0)(vectors).matrix)


def test_without_a_sigma_the_scale_of_the_vectors_does_not_matter(vectors: WordVectors, near: str) -> None:
    step = GraphRetrofit((near,))
    larger = WordVectors(vectors.vocabulary, vectors.matrix * 1000)
    assert np.allclose(step(larger).matrix, step(vectors).matrix * 1000)


def test_with_edges_of_one_length_graph_retrofitting_is_retrofitting(near: str) -> None:
    corners = WordVectors(Vocabulary(WORDS, lowercase=False), np.eye(len(WORDS)))
    graph = GraphRetrofit((near,), sweeps=7)(corners)
    assert np.allclose(graph.matrix, Retrofit((near,), sweeps=7)(corners).matrix)


@pytest.mark.parametrize("nu", [1.0, 30.0, 300.0, 1e4, 1e8])
def test_gamma_stands_any_nu(nu: float) -> None:
    found = np.exp(log_gamma_weights(np.array([0.0, 1.0, 50.0]), nu, 2.0))
    assert np.isfinite(found).all()
    assert (np.diff(found) < 0).all()
    if nu < 343:
        scale = 2 * math.pi * (math.gamma((nu + 1) / 2) / (math.sqrt(nu * math.pi) * math.gamma(nu / 2))) ** 2
        assert np.allclose(found, [scale * (1 + d / (2 * nu)) ** -(nu + 1) for d in (0, 1, 50)])
    if nu > 1e6:
        assert np.allclose(found, np.exp([0, -0.5, -25]), rtol=1e-4)  # Gauss is its limit


def test_edges_too_long_for_gamma_still_draw(vectors: WordVectors, near: str) -> None:
    after = GraphRetrofit((near,), sigma=1e-9, nu=1e6)(vectors)
    assert np.isfinite(after.matrix).all()
    assert not np.allclose(after["fire"], vectors["fire"])


def test_neighbours_come_closer_and_antonyms_go_apart(vectors: WordVectors, near: str, apart: str) -> None:
    vectors = _alike(vectors)
    after = GraphRetrofit((near,), (apart,), margin=-1.0)(vectors)
    assert after.similarity("ice", "snow") > vectors.similarity("ice", "snow")
    for pair in (("hot", "cold"), ("fire", "ice")):
        assert after.similarity(*pair) < min(
            vectors.similarity(*pair), GraphRetrofit((near,))(vectors).similarity(*pair)
        )


@pytest.mark.parametrize("repel", [0.5, 5.0, 50.0])
def test_pushing_comes_to_rest_whatever_its_weight(repel: float, vectors: WordVectors, near: str, apart: str) -> None:
    first, second = (GraphRetrofit((near,), (apart,), sweeps, repel=repel)(vectors) for sweeps in (2000, 2001))
    assert np.allclose(first.matrix, second.matrix, atol=1e-3)
    assert np.abs(first.matrix).max() <= np.abs(vectors.matrix).max() * (1 + 1e-9)


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("step", [Retrofit, GraphRetrofit])
def test_words_without_an_edge_keep_their_bytes_and_the_table_its_type(
    step: Any, kind: Any, vectors: WordVectors, near: str
) -> None:
    before = WordVectors(vectors.vocabulary, vectors.matrix.astype(kind))
    after = step((near,))(before)
    untouched = [WORDS.index(word) for word in ("Turkey", "turkey", "alone")]
    assert after.matrix.dtype == kind
    assert after.matrix[untouched].tobytes() == before.matrix[untouched].tobytes()
    assert not (after.matrix[:6] == before.matrix[:6]).all(1).any()


def test_the_case_of_words_is_kept_where_the_vectors_keep_it(vectors: WordVectors, tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text("Turkey cold\n")
    after = Retrofit((str(tmp_path / "list.txt"),))(vectors)
    assert not np.array_equal(after["Turkey"], vectors["Turkey"])
    assert np.array_equal(after["turkey"], vectors["turkey"])
    lower = WordVectors(["turkey", "cold"], vectors.matrix[:2])
    assert not np.array_equal(Retrofit((str(tmp_path / "list.txt"),))(lower)["turkey"], lower["turkey"])


def test_in_one_direction_a_word_is_drawn_only_by_its_own_line(vectors: WordVectors, tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text("ice snow frost\n")
    after = Retrofit((str(tmp_path / "list.txt"),), directed=True, **LONG)(vectors)
    assert np.allclose(after["ice"], vectors["ice"] / 2 + vectors[["snow", "frost"]].mean(0) / 2)
    assert np.array_equal(after["snow"], vectors["snow"])


def test_several_lexicons_are_one_and_an_edge_counts_once(vectors: WordVectors, near: str, tmp_path: Path) -> None:
    (tmp_path / "again.txt").write_text("snow ice\nhot fire\n")  # weights one, as they are or were
    twice = Retrofit((near, str(tmp_path / "again.txt")))(vectors)
    assert np.array_equal(twice.matrix, Retrofit((near,))(vectors).matrix)


def test_of_two_edges_the_stronger_counts_and_one_without_weight_is_none(vectors: WordVectors, tmp_path: Path) -> None:
    def retrofitted(text: str) -> Any:
        (tmp_path / "table.tsv").write_text(text)
        return Retrofit((str(tmp_path / "table.tsv"),))(vectors).matrix

    once = retrofitted("ice\tsnow\t5\nice\tfrost\t1\n")
    assert np.array_equal(retrofitted("snow\tice\t2\nice\tsnow\t5\nice\tfrost\t1\nice\tsnow\t3\n"), once)
    weightless = retrofitted("ice\tsnow\t5\nice\tfrost\t1\nhot\tcold\t0\n")
    assert weightless.tobytes() == once.tobytes()


def test_an_antonym_is_not_a_neighbour_in_either_direction(vectors: WordVectors, tmp_path: Path) -> None:
    (tmp_path / "near.txt").write_text("cold hot\nice snow\n")
    (tmp_path / "apart.txt").write_text("hot cold\n")
    near, apart = str(tmp_path / "near.txt"), str(tmp_path / "apart.txt")
    after = GraphRetrofit((near,), (apart,), margin=-1.0, directed=True)(vectors)
    assert np.array_equal(after["cold"], vectors["cold"])
    assert not np.array_equal(after["hot"], vectors["hot"])


def test_relations_and_parts_of_speech_are_chosen(vectors: WordVectors, tmp_path: Path) -> None:
    table = tmp_path / "table.tsv"
    table.write_text("ice\tsnow\tsynonym\nfire\thot\thypernym\nhot\tcold\tantonym\n")
    moved = lambda step: {w for w in WORDS if not np.array_equal(step(vectors)[w], vectors[w])}  # noqa: E731
    assert moved(Retrofit((str(table),))) == {"ice", "snow"}
    assert moved(Retrofit((str(table),), relations=("synonym", "hypernym"))) == {"ice", "snow", "fire", "hot"}
    assert moved(GraphRetrofit((str(table),), (str(table),), margin=-1.0)) == {"ice", "snow", "hot", "cold"}
    (tmp_path / "data.noun").write_text("00000001 03 n 02 ice 0 frost 0 000 | x\n")
    (tmp_path / "data.verb").write_text("00000001 30 v 02 fire 0 snow 0 000 00 | x\n")
    assert moved(Retrofit((str(tmp_path),), parts=("verb",))) == {"fire", "snow"}


@pytest.mark.parametrize("kind", [Retrofit, GraphRetrofit])
def test_evaluated_pairs_are_taken_out_of_the_lexicon(
    kind: Any, vectors: WordVectors, near: str, tmp_path: Path
) -> None:
    left = {word: dict(row) for word, row in NEAR.items()}
    del left["ice"]["snow"], left["cold"]["hot"]
    rated_pairs = tmp_path / "similarity"
    rated_pairs.mkdir()
    (rated_pairs / "set.tsv").write_text("snow\tice\t9\ncold\thot\t1\nfrost\tfire\t2\nnever\tseen\t1\n")
    other = _table(tmp_path / "left.tsv", left)
    for place in (rated_pairs, tmp_path, rated_pairs / "set.tsv"):
        after = kind((near,), without=(str(place),))(vectors)
        assert np.array_equal(after.matrix, kind((other,))(vectors).matrix)


def test_a_lexicon_without_a_known_edge_is_said_and_changes_nothing(vectors: WordVectors, tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text("apples oranges\n")
    with pytest.warns(StillvecWarning, match=r"No edge of .*list\.txt"):
        after = GraphRetrofit((str(tmp_path / "list.txt"),))(vectors)
    assert after.matrix.tobytes() == vectors.matrix.tobytes()


def test_invalid_settings_and_missing_lexicons_are_refused(vectors: WordVectors) -> None:
    for wrong in ({"sweeps": -1}, {"alpha": 0.0}, {"alpha": math.nan}, {"beta": -1.0}):
        for kind in (Retrofit, GraphRetrofit):
            with pytest.raises(UsageError):
                kind(("x",), **wrong)  # type: ignore[arg-type]
    for wrong in ({"nu": 0.0}, {"sigma": -1.0}, {"repel": -1.0}, {"margin": 1.5}):
        with pytest.raises(UsageError):
            GraphRetrofit(("x",), **wrong)  # type: ignore[arg-type]
    with pytest.raises(LexiconError, match="nowhere"):
        Retrofit(("nowhere.txt",))(vectors)


def test_the_shared_lexicon_moves_real_words_together(data_folder: Path) -> None:
    words = ["happy", "glad", "cheerful", "sad", "unhappy", "stone"]
    vectors = WordVectors(words, np.random.default_rng(1).normal(size=(6, 20)).astype(np.float32))
    lexicons = data_folder / "lexicons"
    antonyms = f"pairs:{lexicons / 'wordnet-antonyms.txt'}"
    step = GraphRetrofit((str(lexicons / "ppdb-xl.txt"),), (antonyms,), margin=-0.5)
    after = step(vectors)
    assert after.similarity("happy", "glad") > vectors.similarity("happy", "glad") + 0.1
    assert after.similarity("happy", "unhappy") < vectors.similarity("happy", "unhappy") - 0.1
