"""The answers of the explorer against slow second computations."""

from __future__ import annotations

import base64
import csv
import importlib.util
import itertools
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from exact_tsne import affinities, divergence, squared_distances

import stillvec
from stillvec import Corpus, Vocabulary, WordVectors
from stillvec.errors import MissingExtra, StillvecError, UsageError, VocabularyError
from stillvec.exploration import Explorer, compute_map, export_steps
from stillvec.exploration.examples import ExampleReader
from stillvec.exploration.explorer import UnknownWord, project_words
from stillvec.exploration.page_export import build_page_data
from stillvec.exploration.word_columns import load_columns
from stillvec.exploration.word_lookup import LexiconRelations, Suggester
from stillvec.exploration.word_map import MapCache, WordMap, find_clusters, find_content_words
from stillvec.lexicons import Edge
from stillvec.numerics import tsne
from stillvec.progress import Progress, drain
from stillvec.sense_table import SenseTable
from stillvec.subwords import Ngrams, SubwordTable
from stillvec.vocabulary.function_words import _read_lists, find_function_words

LOWER = Vocabulary([], lowercase=True)
EVIL = "<script>alert(1)</script>"
WORDS = ["the", "ice", "icy", "iceberg", "fire", "fir", "firm", "new york", EVIL, "été", "snow", "heat"]


def vectors_of(seed: int, words: list[str] = WORDS, dim: int = 7) -> WordVectors:
    counts = range(10 * len(words), 0, -10)
    return WordVectors(Vocabulary(words, counts), np.random.default_rng(seed).normal(size=(len(words), dim)))


@pytest.fixture
def two() -> Explorer:
    return Explorer({"a": vectors_of(0), "b": vectors_of(1, [*WORDS[:-2], "only"])})


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STILLVEC_CACHE", str(tmp_path / "cache"))


# words as they are typed


def test_completions_begin_as_typed_and_the_most_frequent_come_first() -> None:
    suggester = Suggester(Vocabulary(["Fire" if word == "fire" else word for word in WORDS]))
    assert suggester.complete("i") == ["ice", "icy", "iceberg"]
    assert suggester.complete("fir") == ["fir", "Fire", "firm"]  # the word itself, then by frequency
    assert suggester.complete("NEW Y") == ["new york"]
    assert suggester.complete("<s") == [EVIL]
    assert suggester.complete("zzz") == suggester.complete("  ") == []


def test_completions_are_those_of_a_slow_search() -> None:
    draw = np.random.default_rng(3)
    words = sorted(
        {"".join(draw.choice([*"abé"], draw.integers(1, 6))) for _ in range(200)}, key=lambda w: hash(w) % 97
    )
    suggester = Suggester(Vocabulary(words))
    for typed in ["a", "ab", "é", "bé", "aab"]:
        slow = [word for word in words if word.startswith(typed)]
        slow.sort(key=lambda word: (word != typed, words.index(word)))
        assert suggester.complete(typed, 5) == slow[:5]


def test_a_misspelled_word_gets_the_nearest_spelling() -> None:
    assert Suggester(Vocabulary(WORDS)).suggest("icebarg") == ["iceberg"]
    assert (
        Suggester(Vocabulary(["fixer", "fiery", "fire", "tier"])).suggest("fier")[0] == "fixer"
    )  # all are one letter off
    assert Suggester(Vocabulary(["fire", "fixer", "fiery", "tier"])).suggest("fier")[0] == "fire"  # of these the first
    assert Suggester(Vocabulary(WORDS)).suggest("qqqq") == []


def test_completions_of_several_sets_are_joined(two: Explorer) -> None:
    assert two.complete("on") == ["only"]
    assert two.complete("sn") == ["snow"]


# neighbours, analogies, the odd one


def test_neighbours_are_those_of_each_set_with_the_sets_they_stand_in(two: Explorer) -> None:
    answers = two.find_neighbours("ICE", 4)
    lists = [two.sets[name].nearest("ice", 4) for name in ("a", "b")]
    for answer, slow in zip(answers, lists, strict=True):
        assert [(word, score) for word, score, _ in answer["found"]] == slow
        for word, _, sets in answer["found"]:
            assert sets == [n for n, each in enumerate(lists) if word in dict(each)]


def test_a_word_that_one_set_lacks_is_reported_there_and_answered_by_the_others(two: Explorer) -> None:
    here, there = two.find_neighbours("snow", 3)
    assert len(here["found"]) == 3
    assert there["error"] == "'snow' is not in b; try another spelling."
    with pytest.raises(UnknownWord, match=r"'icebarg' .* did you mean 'iceberg'") as caught:
        two.find_neighbours("icebarg")
    assert caught.value.suggestions == ["iceberg"]


@pytest.mark.parametrize("method", ["3cosadd", "3cosmul"])
def test_analogies_are_those_of_the_vectors(two: Explorer, method: str) -> None:
    first = two.solve_analogy("the", "ice", "fir", 5, method)[0]
    assert [(w, s) for w, s, _ in first["found"]] == two.sets["a"].analogy("the", "ice", "fir", 5, method=method)


def test_the_odd_one_is_that_of_a_slow_search(two: Explorer) -> None:
    words = ["ice", "icy", "fir", "firm", "the"]
    vectors = two.sets["a"]
    found = dict(two.find_odd_one_out([*words, "ice"])[0]["found"])
    for word in words:
        assert found[word] == pytest.approx(
            np.mean([vectors.similarity(word, o) for o in words if o != word]), abs=1e-6
        )
    # the same as taking out the word whose absence leaves the others most alike
    compact = {
        word: np.mean([vectors.similarity(a, b) for a, b in itertools.combinations([w for w in words if w != word], 2)])
        for word in words
    }
    assert next(iter(found)) == max(compact, key=lambda word: compact[word])


def test_too_few_words_have_no_odd_one_and_k_is_bounded(two: Explorer) -> None:
    with pytest.raises(UsageError, match="3 to 200 words, got 2"):
        two.find_odd_one_out(["ice", "icy", "ice"])
    with pytest.raises(UsageError, match=r"k: expected .* got 0"):
        two.find_neighbours("ice", 0)
    with pytest.raises(UsageError, match="got 201"):
        two.solve_analogy("the", "ice", "fir", 201)


# axes


def test_the_ends_of_an_axis_are_at_minus_one_and_one_and_words_where_their_shadow_falls(two: Explorer) -> None:
    vectors = two.sets["a"]
    places = project_words(vectors, [("ice", "fire")], ["ice", "fire", "snow"])
    assert places[:2] == pytest.approx([-1, 1], abs=1e-6)
    a, b, w = (vectors[word] / np.linalg.norm(vectors[word]) for word in ("ice", "fire", "snow"))
    share = np.linalg.lstsq(np.stack([b - a], axis=1), w - a, rcond=None)[0][0]  # 0 at a, 1 at b
    assert places[2] == pytest.approx(2 * share - 1, abs=1e-5)


def test_an_axis_of_several_pairs_goes_between_their_means(two: Explorer) -> None:
    vectors = two.sets["a"]
    pairs = [("ice", "fire"), ("snow", "heat")]
    assert project_words(vectors, pairs, ["ice", "snow"]).mean() == pytest.approx(-1, abs=1e-6)
    assert project_words(vectors, pairs, ["fire", "heat"]).mean() == pytest.approx(1, abs=1e-6)


def test_axes_lay_the_known_words_and_name_the_others(two: Explorer) -> None:
    answer = two.project_words("a", ["ice", "fire"], ["the", "fir"], ["snow", "icy", "qqq"])
    assert (answer["words"], answer["unknown"]) == (["snow", "icy"], ["qqq"])
    assert answer["y"] == pytest.approx(project_words(two.sets["a"], [("the", "fir")], ["snow", "icy"]).tolist())
    assert "y" not in two.project_words("a", ["ice", "fire"], [], ["snow"])
    assert two.project_words("a", ["ice", "fire"])["words"] == two.describe()["frequent"]


@pytest.mark.parametrize(
    ("x", "sentence"),
    [
        (["ice"], "pairs .* got 1 words"),
        ([], "at least one pair"),
        (["ice", "ICE"], "same vector"),
        (["ice", "qqq"], "'qqq' is not in a"),
    ],
)
def test_an_invalid_axis_is_refused(two: Explorer, x: list[str], sentence: str) -> None:
    with pytest.raises((UsageError, VocabularyError), match=sentence):
        two.project_words("a", x, [], ["snow"])


def test_a_set_that_does_not_exist_is_named(two: Explorer) -> None:
    with pytest.raises(UsageError, match=r"'c'.* a, b"):
        two.project_words("c", ["ice", "fire"])


def test_more_sets_than_three_and_empty_ones_are_refused() -> None:
    with pytest.raises(UsageError, match="got 4"):
        Explorer({name: vectors_of(0) for name in "abcd"})
    with pytest.raises(VocabularyError, match="no words"):
        Explorer({"none": WordVectors([], np.zeros((0, 3)))})


# a word's card

EDGES = [
    Edge("ice", "snow", 1.0, "synonym", "noun"),
    Edge("ice", "frost", 1.0, "synonym", "noun"),
    Edge("Ice", "the", 1.0, "hypernym", "noun"),
    Edge("ice", "icy", 1.0, "synonym", "verb"),
    Edge("fire", "ice", 1.0, "antonym", "adj"),
    Edge("fir", "firm"),
]


def test_a_card_tells_count_rank_length_and_relations_the_nearest_first() -> None:
    vectors = vectors_of(0)
    layers = {"layer-1": vectors_of(1), "layer-2": vectors_of(2), "other words": vectors_of(3, ["no", "such"])}
    explorer = Explorer({"a": vectors}, LexiconRelations(EDGES, vectors.words), layers=layers)
    card = explorer.describe_word("Ice")
    assert card["layers"] == [(name, layers[name].nearest("ice", 5)) for name in ("layer-1", "layer-2")]
    assert card["sets"] == [
        {"name": "a", "word": "ice", "rank": 2, "count": 110, "norm": pytest.approx(np.linalg.norm(vectors["ice"]))}
    ]
    alike = sorted(["snow", "icy"], key=lambda word: -vectors.similarity("ice", word))
    assert card["relations"] == {"synonym": alike, "antonym": ["fire"], "hypernym": ["the"]}  # the vectors lack frost
    assert card["part"] == "noun"
    assert explorer.describe_word("the")["relations"] == {"hyponym": ["ice"]}
    assert explorer.describe_word("firm")["relations"] == {"related": ["fir"]}
    with pytest.raises(UnknownWord, match="'qqqq'"):
        explorer.describe_word("qqqq")


def test_a_card_has_the_senses_of_each_set_with_their_neighbours() -> None:
    vectors = vectors_of(0)
    texts = np.zeros((2, 2, 8), np.uint8)
    texts[:, 0, :3] = [[*b"one"], [*b"two"]]
    table = SenseTable(vectors.vocabulary, [1, 1], vectors.matrix[[4, 10]], np.array([0.75, 0.25]), texts)
    explorer = Explorer({"a": vectors.with_matrix(vectors.matrix, senses=table), "b": vectors_of(1)})
    senses = explorer.describe_word("Ice")["senses"]
    assert [(sense["set"], sense["share"], sense["examples"]) for sense in senses] == [
        ("a", 0.75, ["one"]),
        ("a", 0.25, ["two"]),
    ]
    assert [sense["near"][0] for sense in senses] == ["fire", "snow"]
    assert "ice" not in senses[0]["near"]
    assert explorer.describe_word("fire")["senses"] == []
    data = drain(build_page_data(explorer, 12, with_map=False))
    assert data["senses"] == {"ice": senses}


def test_lists_are_described_by_the_task_neighbours() -> None:
    words = [f"{start}{end}" for start in ("walk", "jump", "river", "table", "house") for end in ("", "s", "ed")]
    vectors = vectors_of(0, words)
    (found,) = Explorer({"a": vectors}).describe_lists()
    scores = {score.metric: score.value for score in stillvec.evaluate(vectors, tasks="neighbours", resamples=0).scores}
    for metric in ("same-start", "top-hub", "hubness"):
        assert found[metric] == pytest.approx(scores[metric])
    assert Explorer({"few": vectors_of(0, WORDS[:3])}).describe_lists() == [{"name": "few"}]


def test_a_word_never_seen_has_neighbours_and_a_card_where_there_are_ngrams() -> None:
    plain = vectors_of(0)
    table = SubwordTable(Ngrams(50, 2, 3), np.random.default_rng(0).normal(size=(50, plain.dim)).astype(np.float32))
    made = WordVectors(plain.vocabulary, plain.matrix, subwords=table)
    explorer = Explorer({"plain": plain, "made": made})
    lacks, found = explorer.find_neighbours("icex", 3)
    assert "is not in plain" in lacks["error"]
    assert [word for word, _, _ in found["found"]] == [word for word, _ in made.nearest("icex", 3)]
    card = explorer.describe_word("icex")
    norm = pytest.approx(float(np.linalg.norm(made["icex"])))
    assert card["sets"] == [{"name": "made", "word": "icex", "rank": None, "count": 0, "norm": norm}]
    assert "ice" in card["alike"]
    assert explorer.describe_word("ice")["alike"] == []
    assert explorer.project_words("made", ["ice", "firex"], [], ["icex"])["words"] == ["icex"]
    with pytest.raises(UnknownWord):
        explorer.find_neighbours(" ")


def test_examples_are_the_first_sentences_with_the_whole_word() -> None:
    far = "and " * 60
    corpus = Corpus.from_texts([f"An iceberg swam. {far}ICE is cold. The ice, the ice! We ate it.", "No more ice."])
    explorer = Explorer({"a": vectors_of(0)}, reader=ExampleReader(corpus, max_quotes=2, seconds=1e9))
    seen = explorer.find_examples("Ice")
    (before, word, behind), second = seen["found"]
    assert (word, behind) == ("ICE", " is cold.")
    assert before.startswith("… and and")
    assert second == ("The ", "ice", ", the ice!")
    assert not seen["ended"]
    whole = ExampleReader(corpus, seconds=1e9).find("fir", LOWER)
    assert (whole.quotes, whole.n_sentences, whole.complete) == ({"fir": []}, len([*corpus.sentences()]), True)


def test_examples_of_many_words_are_those_of_each() -> None:
    corpus = Corpus.from_texts(
        ["Ice and snow, ice! The ice.", "No firm snow.", "Snow again; ICE again.", f"{'x ' * 99}fir"]
    )
    words = ["ice", "snow", "firm", "fir", "the"]
    reader = ExampleReader(corpus, max_quotes=2, seconds=1e9)
    *_, seen = reader.find_many(words, LOWER, 2)
    assert seen.quotes == {word: reader.find(word, LOWER).quotes[word] for word in words}
    assert (seen.n_sentences, seen.complete) == (len([*corpus.sentences()]), True)
    ticks = itertools.count(step=100)
    many = Corpus.from_texts([f"Number {n} is here." for n in range(9000)])
    *_, cut = ExampleReader(many, seconds=1.0, clock=lambda: float(next(ticks))).find_many(["ice"], LOWER, 2)
    assert (cut.quotes, cut.complete) == ({"ice": []}, False)
    assert 0 < cut.n_sentences < 9000


def test_the_search_for_examples_ends_when_time_is_up() -> None:
    ticks = itertools.count()
    corpus = Corpus.from_texts([f"Number {n} is here." for n in range(3000)])
    reader = ExampleReader(corpus, seconds=1.5, clock=lambda: float(next(ticks)))
    seen = reader.find("ice", LOWER)
    assert (seen.quotes, seen.complete) == ({"ice": []}, False)
    assert 0 < seen.n_sentences < 3000


def test_there_are_no_examples_without_a_corpus(two: Explorer) -> None:
    with pytest.raises(UsageError, match="--corpus"):
        two.find_examples("ice")


# the map


def test_repulsion_of_few_points_is_exact_however_far_they_are() -> None:
    places = (np.random.default_rng(0).normal(size=(40, 2)) * 500).astype(np.float32)
    near = 1 / (1 + squared_distances(places.astype(np.float64)))
    np.fill_diagonal(near, 0)
    exact = ((near**2).sum(axis=1)[:, None] * places - near**2 @ places) / near.sum()
    assert tsne.repulsion(places) == pytest.approx(exact, rel=1e-3, abs=1e-6)


def test_repulsion_over_the_grid_is_that_of_all_pairs() -> None:
    places = (np.random.default_rng(0).normal(size=(300, 2)) * 6).astype(np.float32)
    near = 1 / (1 + squared_distances(places.astype(np.float64)))
    np.fill_diagonal(near, 0)
    exact = ((near**2).sum(axis=1)[:, None] * places - near**2 @ places) / near.sum()
    off = tsne.repulsion(places) - exact
    assert np.sqrt((off**2).sum() / (exact**2).sum()) < 0.05
    small = places / 10  # where the grid is fine
    near = 1 / (1 + squared_distances(small.astype(np.float64)))
    np.fill_diagonal(near, 0)
    exact = ((near**2).sum(axis=1)[:, None] * small - near**2 @ small) / near.sum()
    assert tsne.repulsion(small) == pytest.approx(exact, rel=1e-3, abs=1e-3 * float(np.abs(exact).max()))


def test_shares_and_the_whole_gradient_are_those_of_exact_tsne() -> None:
    points = np.random.default_rng(1).normal(size=(40, 5)).astype(np.float32)
    near, far = np.zeros((40, 39), np.int64), np.zeros((40, 39), np.float32)
    for rows, found, distances in tsne.find_neighbours(points, 39):
        near[rows], far[rows] = found, distances
    joined = tsne.joint_probabilities(near, far, 6.0)
    exact = affinities(squared_distances(points.astype(np.float64)), 6.0)
    assert joined.toarray() == pytest.approx(exact, abs=1e-5)
    places = np.random.default_rng(2).normal(size=(40, 2)).astype(np.float32)
    slope = 4 * (tsne.attraction(places, joined) - tsne.repulsion(places))  # of the Kullback-Leibler divergence
    assert slope == pytest.approx(divergence(places.astype(np.float64), exact)[1], abs=2e-4)


def test_neighbours_are_exact_and_what_a_plane_keeps_of_them_is_counted() -> None:
    points = np.random.default_rng(4).normal(size=(700, 4)).astype(np.float32)
    places = points[:, :2]
    slow, flat = (squared_distances(p.astype(np.float64)) + np.diag([np.inf] * 700) for p in (points, places))
    near, far = np.zeros((700, 30), np.int64), np.zeros((700, 30), np.float32)
    for rows, found, distances in tsne.find_neighbours(points, 30):
        near[rows], far[rows] = found, distances
    assert [{*row} for row in near.tolist()] == [{*row} for row in np.argsort(slow, axis=1)[:, :30].tolist()]
    assert far == pytest.approx(np.take_along_axis(slow, near, axis=1), abs=1e-4)
    ten = [[{*row} for row in np.argsort(each, axis=1)[:, :10].tolist()] for each in (slow, flat)]
    share = np.mean([len(whole & shown) / 10 for whole, shown in zip(*ten, strict=True)])
    assert 0.1 < share < 0.6
    assert tsne.neighbour_preservation(points, places, n_samples=700) == pytest.approx(share)
    assert tsne.neighbour_preservation(points, places) == pytest.approx(share, abs=0.05)  # of a sample


def grouped(n: int = 240, dim: int = 12) -> tuple[WordVectors, np.ndarray]:
    draw = np.random.default_rng(5)
    kind = np.arange(n) % 4
    rows = 4 * np.eye(4, dim)[kind] + draw.normal(size=(n, dim)) * 0.4
    return WordVectors([f"w{i}" for i in range(n)], rows), kind


def test_a_map_keeps_groups_together_and_is_cached() -> None:
    vectors, kind = grouped()
    events: list[Progress] = []
    computed = drain(compute_map(vectors, 200), events.append)
    assert {event.stage for event in events} == {"finding neighbours", "computing the map"}
    assert computed.positions.shape == (200, 2)
    assert np.abs(computed.positions).max() == pytest.approx(1)
    distances = squared_distances(computed.positions.astype(np.float64)) + np.diag([np.inf] * 200)
    assert (kind[distances.argmin(axis=1)] == kind[:200]).mean() > 0.95
    assert 0.2 < computed.preservation <= 1
    events.clear()
    cached = drain(compute_map(vectors, 200), events.append)
    assert events == []
    assert (cached.positions == computed.positions).all()
    assert cached.preservation == computed.preservation


def test_a_cached_map_that_is_damaged_is_computed_again(tmp_path: Path) -> None:
    vectors, _ = grouped(40)
    drain(compute_map(vectors))
    (cached,) = (tmp_path / "cache" / "maps").iterdir()
    cached.write_bytes(b"no archive")
    assert len([*compute_map(vectors)]) > 1


@pytest.mark.parametrize("n", [1, 2, 4, 5])
def test_even_a_few_words_have_a_map(n: int) -> None:
    computed = drain(compute_map(vectors_of(0, WORDS[:n], 3)))
    assert computed.positions.shape == (n, 2)
    assert np.isfinite(computed.positions).all()


def test_clusters_are_the_groups_there_are_and_named_by_their_most_central_frequent_words() -> None:
    vectors, kind = grouped()
    unit = vectors.matrix / np.linalg.norm(vectors.matrix, axis=1, keepdims=True)
    member, central = find_clusters(unit.astype(np.float32), 4)
    assert len({*zip(member.tolist(), kind.tolist(), strict=True)}) == 4
    for group in range(4):
        inside = np.flatnonzero(member == group)
        middle = unit[inside].sum(axis=0)
        assert len(inside) == 60
        assert central[group, 0] == inside[np.argmax(unit[inside[:50]] @ middle)]  # one of the 50 most frequent


def unpack(text: str, kind: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), kind)


def pack_bits(rows: Sequence[int]) -> str:
    """As the page does."""
    bits = np.zeros(max(rows) + 1, np.uint8)
    bits[list(rows)] = 1
    return base64.urlsafe_b64encode(np.packbits(bits, bitorder="little").tobytes()).decode().rstrip("=")


def test_the_packed_map_has_places_and_clusters_and_its_fields_the_parts_of_speech() -> None:
    vectors = vectors_of(0)
    explorer = Explorer({"a": vectors}, LexiconRelations(EDGES, vectors.words))
    computed = drain(compute_map(vectors))
    packed = explorer.pack_map("a", computed)
    places = unpack(packed["places"], "<u2").reshape(-1, 2) / 65535 * 2 - 1
    assert places == pytest.approx(computed.positions, abs=1e-4)
    assert [*base64.b64decode(packed["cluster"])] == computed.labels.tolist()
    fields = explorer.describe_fields("a")
    assert fields["part"]["levels"][unpack(fields["part"]["codes"], "<i4")[1]] == "noun"  # ice
    assert fields["counts"] == vectors.vocabulary.counts.tolist()
    assert Explorer({"a": vectors}).describe_fields("a")["part"] is None


def test_a_map_of_some_rows_has_only_these_words_and_their_vectors_are_exact() -> None:
    vectors, _ = grouped(60)
    explorer, rows = Explorer({"a": vectors}), [3, 8, 9, 17, 41, 55]
    while "words" not in (packed := explorer.get_map("a", "pca", pack_bits(rows))):
        time.sleep(0.01)
    assert packed["words"] == tuple(f"w{row}" for row in rows)
    answer = explorer.get_vectors("a", pack_bits(rows))
    assert unpack(answer["vectors"], "<f4").reshape(-1, answer["dim"]) == pytest.approx(vectors.matrix[rows])
    for wrong in ("!", pack_bits([60]), "AAAA"):
        with pytest.raises(UsageError) as caught:
            explorer.get_vectors("a", wrong)
        assert caught.value.code == "unexpected-value"


def test_only_some_maps_of_selections_are_kept() -> None:
    vectors, _ = grouped(60)
    cache = MapCache()
    for number in range(30):
        while not isinstance(cache.get(("a", "pca", str(number)), vectors, np.arange(number, number + 6)), WordMap):
            time.sleep(0.001)
    assert len(cache.maps) <= 24
    assert ("a", "pca", "29") in cache.maps


def test_principal_components_are_those_of_a_singular_value_decomposition() -> None:
    vectors, _ = grouped(80)
    unit = vectors.matrix / np.linalg.norm(vectors.matrix, axis=1, keepdims=True)
    computed = drain(compute_map(vectors, method="pca")).positions
    left, values, _ = np.linalg.svd(unit - unit.mean(axis=0), full_matrices=False)
    for side in (0, 1):
        assert abs(np.corrcoef(computed[:, side], left[:, side] * values[side])[0, 1]) == pytest.approx(1, abs=1e-4)


def test_umap_is_computed_by_umap_learn_from_the_principal_plane(monkeypatch: pytest.MonkeyPatch) -> None:
    class Reducer:
        def __init__(self, n_neighbors: int, init: np.ndarray, random_state: int, n_jobs: int) -> None:
            assert (n_neighbors, random_state, n_jobs) == (15, 0, 1)
            self.init = init

        def fit_transform(self, rows: np.ndarray) -> np.ndarray:
            assert np.linalg.norm(rows, axis=1) == pytest.approx(1, abs=1e-5)
            return 3 * self.init

    vectors, _ = grouped(80)
    monkeypatch.setattr("stillvec.registry._is_installed", lambda name: name == "umap")
    monkeypatch.setitem(sys.modules, "umap", SimpleNamespace(UMAP=Reducer))
    computed = drain(compute_map(vectors, method="umap"))
    assert computed.positions == pytest.approx(drain(compute_map(vectors, method="pca")).positions, abs=1e-5)


def test_a_projection_that_is_missing_or_unknown_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stillvec.registry._is_installed", lambda name: False)
    explorer = Explorer({"a": vectors_of(0)}, projections=["pca", "umap"])
    assert explorer.describe()["projections"] == ["pca", "umap"]
    with pytest.raises(MissingExtra, match=r"stillvec\[umap\]"):
        explorer.get_map("a", "umap")
    with pytest.raises(UsageError, match="'som'"):
        explorer.get_map("a", "som")
    with pytest.raises(UsageError, match="'som'"):
        Explorer({"a": vectors_of(0)}, projections=["som"])


def test_clusters_are_named_by_content_words_that_do_not_begin_alike() -> None:
    words = ("the", "of", "animals", "animal", "12", "species", "and", "in", "to", "frog")
    rows = np.array([[1.0, n / 30] for n in range(10)], np.float32)
    nameable = np.array([len(word) > 3 for word in words])
    labels, central = find_clusters(rows / np.linalg.norm(rows, axis=1, keepdims=True), 1, nameable)
    ((*names,),) = WordMap(np.zeros((10, 2), np.float32), labels, central, 1.0).name_clusters(words)
    assert names == ["species", "animal", "frog"]  # not animals, which is less central than animal
    all_words = [*words, *sorted(_read_lists()["en"] - {*words})]
    vectors = WordVectors(all_words, np.eye(len(all_words)))
    known = dict(zip(vectors.words, find_content_words(vectors).tolist(), strict=True))
    assert [known[word] for word in words] == [False, False, True, True, False, True, False, False, False, True]


def test_function_words_are_those_of_the_language_of_the_vocabulary() -> None:
    english, german = (find_function_words(["x", *_read_lists()[name]]) for name in ("en", "de"))
    assert "the" in english
    assert "war" not in english  # a verb in German, a noun in English
    assert "war" in german
    assert find_function_words([f"слово{n}" for n in range(500)]) == frozenset()
    vectors = WordVectors(["house", *sorted(english)], np.eye(len(english) + 1))
    assert Explorer({"a": vectors}).describe_fields("a")["function"] == [*range(1, len(english) + 1)]
    assert Explorer({"a": vectors}).describe()["frequent"] == ["house"]


def test_markup_is_left_out_of_example_sentences() -> None:
    text = 'An <a href="ice.html">icy</a> lake: [ice](https://x.example/ice) and 1 <2 List<int>.'
    seen = ExampleReader(Corpus.from_texts([text]), seconds=1e9).find("ice", LOWER)
    assert seen.quotes == {"ice": [("An icy lake: ", "ice", " and 1 <2 List<int>.")]}


# columns of the user


def test_columns_are_read_from_tables_of_all_kinds_and_matched_as_words_are(tmp_path: Path) -> None:
    rows = [
        ("Ice", "cold, wet", "1.5", "3"),
        ("fire", "hot", "", "1"),
        ("ICE", "again", "7", "2"),
        ("qqq", "", "2", "1"),
    ]
    names = ("word", "feeling", "weight", "grade")
    with open(tmp_path / "c.csv", "w", newline="") as stream:
        csv.writer(stream).writerows([names, *rows])
    with open(tmp_path / "c.tsv", "w", newline="") as stream:
        csv.writer(stream, delimiter="\t").writerows([names, *rows])
    table = {name: [row[at] for row in rows] for at, name in enumerate(names)}
    typed = table | {"weight": [1.5, None, 7.0, 2.0], "grade": [3, 1, 2, 1]}
    sources: list[Any] = [tmp_path / "c.csv", tmp_path / "c.tsv", table, typed]
    if importlib.util.find_spec("pyarrow"):
        import pyarrow
        import pyarrow.parquet

        vectors = pyarrow.array([[1.0]] * 4)  # lists are left out
        pyarrow.parquet.write_table(pyarrow.table(typed | {"vector": vectors}), tmp_path / "c.parquet")
        sources.append(tmp_path / "c.parquet")
    for source in sources:
        columns = load_columns(source)
        assert [*columns.columns] == ["feeling", "weight", "grade"]
        feeling, weight, grade = Explorer({"a": vectors_of(0)}, columns=columns).describe_fields("a")["columns"]
        at = [WORDS.index(word) for word in ("ice", "fire", "snow")]
        codes = unpack(feeling["codes"], "<i4")[at]
        assert [feeling["levels"][code] if code >= 0 else None for code in codes] == ["cold, wet", "hot", None]
        numbers = unpack(weight["numbers"], "<f4")[at]
        assert numbers[0] == 1.5
        assert np.isnan(numbers[1:]).all()
        assert grade["levels"] == ["1", "2", "3"]  # few whole numbers are categories, in their order
        assert unpack(grade["codes"], "<i4")[at].tolist() == [2, 0, -1]


@pytest.mark.parametrize(
    ("name", "text", "code", "line"),
    [
        ("c.csv", "token,x\nice,1\n", "unexpected-value", None),
        ("c.csv", "word\nice\n", "unexpected-value", None),
        ("c.csv", "word,x,x\nice,1,2\n", "unexpected-value", 1),
        ("c.csv", "word,x\nice,1\nfire,1,2\n", "unexpected-value", 3),
        ("c.csv", "", "unexpected-value", None),
        ("c.parquet", "PAR1 is not enough", "damaged", None),
        ("c.xlsx", "", "unexpected-value", None),
        ("c.csv", None, "not-found", None),
    ],
)
def test_a_table_of_columns_that_cannot_be_used_is_reported(
    tmp_path: Path, name: str, text: str | None, code: str, line: int | None
) -> None:
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(StillvecError) as caught:
        load_columns(tmp_path / name)
    assert (caught.value.code, caught.value.line) == (code, line)


def test_columns_without_a_word_of_the_vectors_are_refused() -> None:
    with pytest.raises(VocabularyError) as caught:
        Explorer({"a": vectors_of(0)}, columns=load_columns({"word": ["qqq"], "x": [1]}))
    assert caught.value.code == "no-words"


def test_a_map_is_computed_in_the_background_and_reports_its_progress(two: Explorer) -> None:
    def send_request() -> Iterator[dict[str, object]]:
        while True:
            yield two.get_map("a")
            time.sleep(0.05)

    answers = [*itertools.takewhile(lambda answer: "words" not in answer, send_request())]
    assert all({"stage", "done", "total"} == answer.keys() for answer in answers)
    assert two.get_map("a")["words"] == tuple(WORDS)


def test_documents_of_an_index_are_searched(tmp_path: Path) -> None:
    vectors = vectors_of(0)
    explorer = Explorer({"a": vectors}, index=stillvec.index({"x": f"{WORDS[0]} melts", "y": WORDS[1]}, vectors))
    assert explorer.describe()["documents"] == 2
    first = explorer.search_documents(WORDS[0], 1)[0]
    assert (first["id"], first["snippet"], first["highlights"]) == ("x", f"{WORDS[0]} melts", ((0, len(WORDS[0])),))
    with pytest.raises(UsageError, match="index"):
        Explorer({"a": vectors}).search_documents("ice")
    with pytest.raises(UsageError, match="exported"):
        drain(export_steps(explorer, tmp_path / "page.html"))


def test_neighbours_can_be_grouped_by_stem() -> None:
    words = ["river", "rivers", "lake", "lakes", "fire"]
    vectors = WordVectors(words, [[1, 0], [1, 0.1], [1, 0.5], [1, 0.6], [0, 1]])
    answer = Explorer({"a": vectors}).find_neighbours("river", 2, group=True)[0]
    assert answer["forms"] == ("rivers",)
    assert [(word, *rest) for word, _, *rest in answer["found"]] == [("lake", [0], ("lakes",)), ("fire", [0], ())]
    assert len(Explorer({"a": vectors}).find_neighbours("river", 2)[0]["found"][0]) == 3
