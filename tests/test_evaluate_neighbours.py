"""The task `neighbours`: every metric against a slow loop over its definition, its controls and its direction."""

from __future__ import annotations

import re
from collections import Counter
from math import log
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import skew

from stillvec import Vocabulary, WordVectors
from stillvec.errors import UsageError
from stillvec.evaluation import evaluate
from stillvec.evaluation.cooccurrence import count_pairs, rank_neighbours, read_contexts
from stillvec.evaluation.crowding import Crowding
from stillvec.evaluation.score_table import group_scores, rank_sets
from stillvec.heads.lookup import Lookup
from stillvec.numerics import nearest_rows
from stillvec.report import write_report
from stillvec.vocabulary.stems import stem_words

STEMS = ["culture", "river", "garden", "market", "winter", "planet", "doctor", "window"]
WORDS = [f"{stem}{ending}" for stem in STEMS for ending in ("", "s", "ed", "ing", "er")]


def make_vectors(spelling: float, seed: int = 0) -> WordVectors:
    """Words of one stem share a part of their vectors, of this size."""
    generator = np.random.default_rng(seed)
    shared = np.repeat(generator.standard_normal((len(STEMS), 12)), 5, axis=0)
    matrix = spelling * shared + generator.standard_normal((len(WORDS), 12))
    return WordVectors(Vocabulary(WORDS, range(len(WORDS), 0, -1)), matrix)


def score_all(vectors: WordVectors, settings: str = "") -> dict[str, float]:
    report = evaluate(vectors, tasks=f"neighbours:k=3,frequent=30,sample=20{settings}", resamples=0)
    return {score.metric: score.value for score in report.scores}


def test_each_metric_is_that_of_its_definition() -> None:
    vectors = make_vectors(1.0)
    task = Crowding(k=3, frequent=30, sample=20)
    items = task.choose_items([vectors])
    words = [text[0] for text in items.texts]
    assert len(words) == 20
    assert items.frequent == tuple(WORDS[:30])
    lists = {word: [near for near, _ in vectors.nearest(word, 3)] for word in words}
    found = score_all(vectors)
    pairs = [(word, near) for word in words for near in lists[word]]
    assert found["same-start"] == pytest.approx(np.mean([a[:4] == b[:4] for a, b in pairs]))
    stems = dict(zip(WORDS, stem_words(WORDS), strict=True))
    assert found["same-stem"] == pytest.approx(np.mean([stems[a] == stems[b] for a, b in pairs]))
    assert found["top-hub"] == max(Counter(near for _, near in pairs).values()) / 20
    among = vectors.subset(items.frequent)
    counts = Counter(near for word in items.frequent for near, _ in among.nearest(word, 3))
    assert found["hubness"] == pytest.approx(skew([counts[word] for word in words]))


def test_random_vectors_are_the_control_and_inflections_raise_the_shares() -> None:
    plain, crowded = (score_all(make_vectors(spelling)) for spelling in (0.0, 3.0))
    assert crowded["same-start"] > 0.9 > 0.3 > plain["same-start"]
    assert crowded["same-start-random"] < 0.3
    assert score_all(make_vectors(3.0), ",language=none").keys() == {
        f"{name}{ending}" for name in ("same-start", "top-hub", "hubness") for ending in ("", "-random")
    }


def test_less_is_better_and_does_not_count_in_the_mean(tmp_path: Path) -> None:
    sets = {"crowded": make_vectors(3.0), "plain": make_vectors(0.0)}
    report = evaluate(sets, tasks="neighbours:k=3", resamples=100)
    rows = {row.metric: row for row in group_scores(report.scores) if row.words == "own"}
    assert rows["same-start"].best == {"plain"}
    assert rows["same-start-random"].best == set()
    start = next(pair for pair in report.comparisons if pair.metric == "same-start")
    assert start.difference > 0 > start.gain
    assert start.significant
    assert {pair.metric for pair in report.comparisons} == {"same-start", "same-stem", "top-hub", "hubness"}
    assert all(np.isnan(mean.value) for mean in rank_sets(report))
    assert "Lower is better: same-start, same-stem, top-hub, hubness." in str(report)
    page = tmp_path / "report.html"
    write_report(report, sets, page)
    row = re.search(r"same-start</small></th>(.*?)</tr>", page.read_text("utf-8"))
    assert row is not None
    assert ["<b>" in cell for cell in re.findall(r"<td.*?</td>", row[1])] == [False, True]  # plain is second
    assert "without ranking them" in page.read_text("utf-8")
    assert all(score.low <= score.value <= score.high for score in report.scores)


def test_the_task_needs_no_data_and_runs_only_if_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STILLVEC_DATA", str(tmp_path / "nowhere"))
    assert evaluate(make_vectors(1.0), tasks=["neighbours"], resamples=0).scores
    (tmp_path / "similarity").mkdir()
    (tmp_path / "similarity" / "a.tsv").write_text("river\tgarden\t1\nriver\trivers\t3\nmarket\tdoctor\t2\n")
    tasks = {score.task for score in evaluate(make_vectors(1.0), tmp_path, resamples=0).scores}
    assert tasks == {"similarity"}


def test_sets_are_compared_on_words_that_all_have_and_cached_with_them(tmp_path: Path) -> None:
    one, other = make_vectors(1.0), make_vectors(1.0, seed=1).subset(WORDS[10:])
    settings = {"tasks": "neighbours:k=3,frequent=25", "resamples": 0, "cache": tmp_path}
    alone = evaluate(one, **settings)
    both = evaluate({"one": one, "other": other}, **settings)
    fresh = evaluate({"one": one, "other": other}, **(settings | {"cache": None}))
    assert both.scores == fresh.scores
    assert alone.scores[0].n_items == 25
    assert Crowding(frequent=25).choose_items([one, other]).frequent == tuple(WORDS[10:35])


def test_settings_and_vocabularies_that_cannot_work_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="klingon"):
        evaluate(make_vectors(1.0), tasks="neighbours:language=klingon")
    with pytest.raises(UsageError) as caught:
        evaluate(make_vectors(1.0), tasks=f"neighbours:corpus={tmp_path / 'no.txt'}")
    assert caught.value.path == str(tmp_path / "no.txt")
    with pytest.raises(UsageError, match="10 common words"):
        evaluate(make_vectors(1.0).subset(WORDS[:9]), tasks="neighbours")


def test_stems_are_those_of_snowball_in_every_language() -> None:
    snowball = pytest.importorskip("snowballstemmer")
    english = ["Cultures", "cultural", "running", "happily", "generously", "dying", "university", "x"]
    assert stem_words(english) == snowball.stemmer("english").stemWords([word.lower() for word in english])
    assert stem_words(["Häuser", "Haus"], "german") == snowball.stemmer("german").stemWords(["häuser", "haus"])


SENTENCES = ["ice melts slowly in warm sun", "snow melts slowly in warm sun", "the fox eats snow", "fire eats ice"]


def slow_counts(words: list[str], window: int) -> np.ndarray:
    counts = np.zeros((len(words), len(words)))
    for sentence in SENTENCES:
        tokens = sentence.split()
        for i, a in enumerate(tokens):
            for j, b in enumerate(tokens):
                if i != j and abs(i - j) <= window and a in words and b in words:
                    counts[words.index(a), words.index(b)] += 1
    return counts


def test_pairs_are_counted_and_weighted_as_in_the_definition() -> None:
    words = ["ice", "snow", "fire", "melts", "slowly", "warm", "eats", "absent"]
    counts = slow_counts(words, 2)
    assert (count_pairs(SENTENCES, words, 2).toarray() == counts).all()
    smooth = counts.sum(axis=0) ** 0.75
    wanted = np.zeros_like(counts)
    for i, j in zip(*np.nonzero(counts), strict=True):
        wanted[i, j] = max(0.0, log(counts[i, j] * smooth.sum() / (counts[i].sum() * smooth[j])))
    lengths = np.linalg.norm(wanted, axis=1, keepdims=True)
    contexts = read_contexts(SENTENCES, words, 2)
    assert np.allclose(contexts.rows.toarray(), wanted / np.where(lengths > 0, lengths, 1))
    assert contexts.counts.tolist() == counts.sum(axis=1).tolist()


@pytest.mark.parametrize("alike", [1, 2, 50])
def test_neighbours_are_ranked_among_words_of_like_frequency(alike: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stillvec.evaluation.cooccurrence._ALIKE", alike)
    words = ["ice", "snow", "fire", "melts", "slowly", "warm", "eats", "absent"]
    contexts = read_contexts(SENTENCES, words, 2)
    dense = contexts.rows.toarray()
    cosines = (dense @ dense.T).round(9)
    order = sorted(range(8), key=lambda row: (-contexts.counts[row], row))
    queries, nearest = np.array([0, 1, 7]), np.array([[1, 4], [0, 7], [6, 5]])
    found = rank_neighbours(contexts, queries, nearest)
    for query, neighbours, percentile in zip(queries, nearest, found, strict=True):
        shares = []
        for near in neighbours:
            at = order.index(near)
            first = max(0, min(at - alike, 8 - (2 * alike + 1)))
            others = [other for other in order[first : first + 2 * alike + 1] if other not in (query, near)]
            below = [np.sign(cosines[query, near] - cosines[query, other]) for other in others]
            shares.append((np.mean(below) + 1) / 2)
        assert percentile == pytest.approx(np.mean(shares))
    assert found[2] == 0.5  # of a word that does not occur


def test_cooccurrence_is_high_for_vectors_of_the_same_text_and_half_for_random_ones(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    topics = [[f"{stem}{ending}" for ending in ("", "s", "ed", "ing", "er")] for stem in STEMS]
    lines = [" ".join(generator.choice(topics[n % 8], 5, replace=False)) + "." for n in range(400)]
    file = tmp_path / "text.txt"
    file.write_text("\n".join(lines))
    found = score_all(make_vectors(3.0), f",corpus={file}")
    assert found["cooccurrence"] > 0.9
    assert abs(found["cooccurrence-random"] - 0.5) < 0.15
    # the file is part of what answers depend on
    task = Crowding(corpus=str(file))
    assert task.own_data() == (file,)


def test_nearest_rows_are_those_of_all_cosines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stillvec.numerics.rows._CELLS", 50)
    vectors = make_vectors(1.0)
    lookup = Lookup(vectors)
    units = vectors.matrix / np.linalg.norm(vectors.matrix, axis=1, keepdims=True)
    rows = nearest_rows(units, 4)
    assert [[WORDS[at] for at in row] for row in rows] == [
        [word for word, _ in vectors.nearest(query, 4)] for query in lookup.vectors.words
    ]
