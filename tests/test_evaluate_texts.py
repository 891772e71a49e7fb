"""The tasks on whole texts: retrieval, clustering and bitext, for vectors, teachers and other encoders."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tiny_teachers import write_tiny_model

from stillvec import WordVectors, evaluate
from stillvec.errors import DatasetError, UsageError
from stillvec.evaluation.bitext import Bitext
from stillvec.evaluation.clustering import TextClustering, v_measure
from stillvec.evaluation.intervals import Resampling
from stillvec.evaluation.retrieval import Bm25, JudgedQueries, Retrieval, fuse
from stillvec.evaluation.teacher_states import open_teachers
from stillvec.evaluation.text_baselines import (
    LengthEncoder,
    RandomEncoder,
    SifEncoder,
    WordLlamaEncoder,
    open_baselines,
    parse_baseline,
)
from stillvec.heads.lookup import Lookup
from stillvec.heads.splits import part_of
from stillvec.numerics import kmeans
from stillvec.vocabulary import Vocabulary

WORDS = ["ice", "snow", "hail", "fire", "coal", "wood", "dog", "cat", "cow", "the"]
VECTORS = WordVectors(WORDS, np.random.default_rng(0).standard_normal((len(WORDS), 5)).astype(np.float32))
DOCUMENTS = {
    "d1": ("Ice", "the ice and the snow"),
    "d2": ("", "fire coal coal wood"),
    "d3": ("Dogs", "dog cat cow dog"),
    "d4": ("", "the snow of the hail"),
    "d5": ("", "nothing known"),
}
QUERIES = {"q1": "snow and ice", "q2": "coal fires", "q3": "nothing known", "q4": "dog", "q5": "the cow"}
GRADES = [
    ("q1", "d1", 2),
    ("q1", "d4", 1),
    ("q1", "gone", 3),
    ("q2", "d2", 1),
    ("q2", "d1", 0),
    ("q3", "d5", 1),
    ("q5", "d3", 1),
]


def write_collection(folder: Path, grades: Sequence[tuple[str, str, float]] = GRADES, extra: str = "") -> Path:
    place = folder / "retrieval" / "tiny"
    (place / "qrels").mkdir(parents=True, exist_ok=True)
    records = [{"_id": name, "title": title, "text": text} for name, (title, text) in DOCUMENTS.items()]
    (place / "corpus.jsonl").write_text("\n".join(map(json.dumps, records)) + f"\n{extra}", "utf-8")
    asked = [{"_id": name, "text": text} for name, text in QUERIES.items()]
    (place / "queries.jsonl").write_text("\n".join(map(json.dumps, asked)), "utf-8")
    lines = ["query-id\tcorpus-id\tscore", *("\t".join(map(str, row)) for row in grades)]
    (place / "qrels" / "test.tsv").write_text("\n".join(lines) + "\n", "utf-8")
    return place


def slow_bm25(query: str, documents: Sequence[str]) -> list[float]:
    texts = [re.findall(r"\w+", text.lower()) for text in documents]
    mean = sum(map(len, texts)) / len(texts)
    scores = []
    for text in texts:
        total = 0.0
        for word in re.findall(r"\w+", query.lower()):
            n_with = sum(word in other for other in texts)
            idf = math.log(1 + (len(texts) - n_with + 0.5) / (n_with + 0.5))
            tf = text.count(word)
            total += idf * tf * 2.2 / (tf + 1.2 * (0.25 + 0.75 * len(text) / mean))
        scores.append(total)
    return scores


def slow_ndcg(order: Sequence[str], grades: dict[str, float]) -> float:
    gain = sum(grades.get(name, 0) / math.log2(rank + 1) for rank, name in enumerate(order[:10], 1))
    best = sum(grade / math.log2(rank + 1) for rank, grade in enumerate(sorted(grades.values(), reverse=True)[:10], 1))
    return gain / best


# --- retrieval


def test_bm25_is_that_of_a_slow_loop() -> None:
    documents = [" ".join(pair).strip() for pair in DOCUMENTS.values()]
    for query in [*QUERIES.values(), "the the snow", "unseen"]:
        assert Bm25(documents).score([query])[0] == pytest.approx(slow_bm25(query, documents)), query


def test_the_measures_of_a_collection_are_those_of_a_slow_computation(tmp_path: Path) -> None:
    task, place = Retrieval(), write_collection(tmp_path)
    items = task.read(place)
    assert [text for (text,) in items.texts] == [QUERIES[name] for name in ("q1", "q2", "q3", "q5")]  # q4 has no answer
    answers = task.answer(Lookup(VECTORS), items)
    assert answers.covered.tolist() == [True, True, False, True]
    names, documents = [*DOCUMENTS], [" ".join(pair).strip() for pair in DOCUMENTS.values()]
    rows = VECTORS.encode(documents, normalize=True)
    for at, query in enumerate(["q1", "q2", "q3", "q5"]):
        grades = {document: float(grade) for asked, document, grade in GRADES if asked == query and grade > 0}
        cosines = rows @ VECTORS.encode(QUERIES[query], normalize=True)
        bm25 = slow_bm25(QUERIES[query], documents)
        orders = [sorted(range(5), key=lambda n: -scores[n]) for scores in (cosines, bm25)]
        places = [{n: at for at, n in enumerate(orders[0])}, {n: at for at, n in enumerate(orders[1]) if bm25[n] > 0}]
        fused = sorted(range(5), key=lambda n: -sum(1 / (61 + at[n]) for at in places if n in at))
        by_metric = dict(zip(("", "-bm25", "-hybrid"), [*orders, fused], strict=True))
        for ending, order in by_metric.items():
            expected = slow_ndcg([names[n] for n in order], grades)
            assert answers.values[f"ndcg@10{ending}"][at] == pytest.approx(expected), (query, ending)
        first = min(orders[0].index(names.index(name)) for name in grades if name in names)
        assert answers.values["mrr@10"][at] == pytest.approx(1 / (1 + first))
        assert answers.values["recall@100"][at] == pytest.approx(sum(name in names for name in grades) / len(grades))
    assert answers.values["known-words"].tolist() == pytest.approx([2 / 3, 1 / 2, 0, 1])
    assert answers.values["document-words"][0] == pytest.approx(17 / 22)


def test_a_teacher_can_make_the_vectors_of_documents(tmp_path: Path) -> None:
    write_tiny_model(tmp_path / "tiny", "bert")
    items = Retrieval().read(write_collection(tmp_path))
    name = f"teacher:{tmp_path / 'tiny'}"
    teacher = open_teachers({"it": name}, None, "cpu")["it"]
    whole, apart = (Retrieval(documents=documents).answer(teacher, items) for documents in ("", name))
    np.testing.assert_allclose(apart.values["ndcg@10"], whole.values["ndcg@10"])
    texts = [" ".join(pair).strip() for pair in DOCUMENTS.values()]
    rows, words = teacher.encode_texts(texts), ("snow", "coal", "cow")
    vectors = WordVectors(Vocabulary(words), rows[[0, 1, 2]])  # each query gets the vector of one document
    asked = Retrieval(documents=name).answer(Lookup(vectors), items)
    assert asked.values["mrr@10"][[0, 1, 3]].tolist() == [1, 1, 1]
    with pytest.raises(UsageError, match="16 dimensions"):
        Retrieval(documents=name).answer(Lookup(VECTORS), items)


def test_the_chance_of_a_collection_is_the_mean_over_random_orders(tmp_path: Path) -> None:
    items = Retrieval().read(write_collection(tmp_path))
    answers = Retrieval().answer(Lookup(VECTORS), items)
    generator, grades = np.random.default_rng(0), {"d1": 2.0, "d4": 1.0, "gone": 3.0}
    orders = [[[*DOCUMENTS][n] for n in generator.permutation(5)] for _ in range(4000)]
    assert answers.values["ndcg@10-chance"][0] == pytest.approx(
        np.mean([slow_ndcg(o, grades) for o in orders]), abs=0.01
    )


def test_what_is_relevant_does_not_change_the_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is chosen by the grades: the same orders are scored whatever they are."""
    scored: list[list[Any]] = []
    monkeypatch.setattr("stillvec.evaluation.retrieval.ndcg", lambda order, _: scored[-1].append(order.tolist()) or 0.0)
    other = [(query, document, 1) for query in ("q1", "q2", "q3", "q5") for document in ("d2", "d5")]
    for number, grades in enumerate((GRADES, other)):
        scored.append([])
        Retrieval().answer(Lookup(VECTORS), Retrieval().read(write_collection(tmp_path / str(number), grades)))
    assert scored[0] == scored[1]


def test_the_query_itself_is_no_answer(tmp_path: Path) -> None:
    own = json.dumps({"_id": "q4", "text": "dog"}) + "\n" + json.dumps({"_id": "q1", "text": "dog"})
    place = write_collection(tmp_path, [*GRADES, ("q4", "d3", 1)], own)
    items = Retrieval().read(place)
    assert isinstance(items, JudgedQueries)
    assert items.excluded == (-1, -1, -1, 5, -1)
    assert Retrieval().answer(Lookup(VECTORS), items).values["mrr@10"][3] == 0.5  # the document q1 is first


def test_fusion_counts_both_orders() -> None:
    orders = [np.array([[0, 1, 2]]), np.array([[2, 1, 3]])]
    listed = [np.ones((1, 5), bool), np.array([[False, True, True, False, False]])]
    assert fuse(orders, listed)[0, :4].tolist() == [2, 1, 0, 3]


def test_a_quick_collection_has_every_relevant_document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stillvec.evaluation.retrieval._QUICK_QUERIES", 2)
    monkeypatch.setattr("stillvec.evaluation.retrieval._QUICK_DOCUMENTS", 3)
    items = Retrieval(quick=True).read(write_collection(tmp_path))
    assert isinstance(items, JudgedQueries)
    assert (len(items), len(items.documents)) == (2, 3)
    whole = Retrieval().read(write_collection(tmp_path))
    assert isinstance(whole, JudgedQueries)
    for (text,), grades in zip(items.texts, items.grades, strict=True):
        at = [query for (query,) in whole.texts].index(text)
        there = {whole.documents[number] for number in whole.grades[at] if number >= 0}
        assert there == {items.documents[number] for number in grades if number >= 0}


@pytest.mark.parametrize(
    ("file", "content", "line"),
    [
        ("corpus.jsonl", '{"_id": "a", "text": "b"}\n{"_id": "c"', 2),
        ("corpus.jsonl", '{"_id": 3, "text": "b"}', 1),
        ("corpus.jsonl", '{"_id": "a", "text": "b"}\n\n{"_id": "a", "text": "c"}', 3),
        ("corpus.jsonl", "\n", 1),
        ("queries.jsonl", "[1]", 1),
        ("qrels/test.tsv", "query-id\tcorpus-id\tscore\nq1\td1\n", 2),
        ("qrels/test.tsv", "query-id\tcorpus-id\tscore\nq1\td1\tmany\n", 2),
        ("qrels/test.tsv", "q1\td1\t1\nq9\td1\t1\n", 2),
        ("qrels/test.tsv", "q1\td1\t0\n", 1),
    ],
)
def test_a_malformed_collection_is_reported_with_its_file_and_line(
    tmp_path: Path, file: str, content: str, line: int
) -> None:
    place = write_collection(tmp_path)
    (place / file).write_text(content)
    with pytest.raises(DatasetError) as caught:
        Retrieval().read(place)
    assert (caught.value.path, caught.value.line) == (str(place / file), line)


def test_a_collection_without_judgements_is_reported(tmp_path: Path) -> None:
    place = write_collection(tmp_path)
    (place / "qrels" / "test.tsv").unlink()
    with pytest.raises(DatasetError) as caught:
        Retrieval().read(place)
    assert caught.value.path == str(place / "qrels" / "test.tsv")


# --- clustering


def write_clusters(folder: Path, n: int = 60) -> Path:
    generator = np.random.default_rng(1)
    themes = {"cold": WORDS[:3], "hot": WORDS[3:6], "beasts": WORDS[6:9]}
    lines = [
        f"{label}\t{' '.join(generator.choice(words, 4))}" for label, words in themes.items() for _ in range(n // 3)
    ]
    (folder / "clustering").mkdir(parents=True, exist_ok=True)
    path = folder / "clustering" / "themes.tsv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_the_v_measure_is_that_of_its_definition() -> None:
    generator = np.random.default_rng(0)
    counts = generator.integers(0, 9, (3, 4, 5)).astype(float)
    counts[2] = 0
    counts[2, 1, 3] = 7  # a single cluster and label
    for table, value in zip(counts, v_measure(counts), strict=True):
        n = table.sum()
        given_cluster = given_label = of_cluster = of_label = 0.0
        for k in range(4):
            of_cluster -= (p := table[k].sum() / n) * math.log(p or 1)
            for c in range(5):
                if table[k, c]:
                    given_cluster -= table[k, c] / n * math.log(table[k, c] / table[k].sum())
                    given_label -= table[k, c] / n * math.log(table[k, c] / table[:, c].sum())
        for c in range(5):
            of_label -= (p := table[:, c].sum() / n) * math.log(p or 1)
        homogeneity = 1 - given_cluster / of_label if of_label else 1
        completeness = 1 - given_label / of_cluster if of_cluster else 1
        assert value == pytest.approx(2 * homogeneity * completeness / (homogeneity + completeness))


def test_batches_find_the_clusters_of_separate_points() -> None:
    generator = np.random.default_rng(0)
    points = (np.repeat(10 * np.eye(4, 6), 50, axis=0) + generator.standard_normal((200, 6))).astype(np.float32)
    run = kmeans(points, 4, np.random.default_rng(3), n_rounds=60, batch=20)
    whole = kmeans(points, 4, np.random.default_rng(3))
    assert len({*zip(run.labels.tolist(), np.repeat(np.arange(4), 50).tolist(), strict=True)}) == 4
    assert whole.inertia <= run.inertia < 1.05 * whole.inertia


def test_themes_are_found_and_chance_is_low(tmp_path: Path) -> None:
    task, path = TextClustering(seeds=3), write_clusters(tmp_path)
    items = task.read(path)
    cold = np.repeat(np.eye(3, 5), 3, axis=0) + 0.01 * np.asarray(VECTORS.matrix[:9])
    scores = task.score(
        items, answers := task.answer(Lookup(WordVectors(WORDS[:9], cold)), items), np.arange(60), Resampling(50)
    )
    assert scores["v-measure"].value == scores["v-measure"].high == 1
    assert scores["v-measure-sd"].value == 0
    assert scores["v-measure-chance"].value < 0.2
    assert scores["known-words"].value == 1
    doubled = task.score(items, answers, np.repeat(np.arange(60), 2), Resampling(0))
    assert doubled["v-measure-chance"].value == pytest.approx(scores["v-measure-chance"].value)  # as weights would


def test_labels_do_not_change_the_clusters(tmp_path: Path) -> None:
    task = TextClustering(seeds=2)
    items = task.read(write_clusters(tmp_path))
    shuffled = replace(items, gold=np.random.default_rng(0).permutation(items.gold))
    first, second = (task.answer(Lookup(VECTORS), each).values["clusters"] for each in (items, shuffled))
    np.testing.assert_array_equal(first, second)


def test_texts_without_a_known_word_are_left_out(tmp_path: Path) -> None:
    path = write_clusters(tmp_path)
    path.write_text(path.read_text() + "cold\tunknown words\n")
    task = TextClustering(seeds=1, quick=True)
    answers = task.answer(Lookup(VECTORS), items := task.read(path))
    assert answers.covered.sum() == len(items) - 1
    report = evaluate(VECTORS, tmp_path, ["clustering:seeds=1"], resamples=20)
    assert {score.n_covered for score in report.scores} == {60}


@pytest.mark.parametrize(("content", "line"), [("a\tb\nc d\n", 2), ("a\t \n", 1), ("a\tb\na\tc\n", 1), ("", 1)])
def test_a_malformed_file_of_clusters_is_reported(tmp_path: Path, content: str, line: int) -> None:
    (tmp_path / "a.tsv").write_text(content)
    with pytest.raises(DatasetError) as caught:
        TextClustering().read(tmp_path / "a.tsv")
    assert caught.value.line == line


# --- bitext

PAIRS = [
    ("ice and snow", "Eis und Schnee"),
    ("a fire", "Feuer"),
    ("a dog", "der Hund"),
    ("fire", "Feuer"),
    ("xyz", "zyx"),
]
GERMAN = {"eis": "ice", "schnee": "snow", "feuer": "fire", "hund": "dog"}


def write_bitext(folder: Path, name: str = "tatoeba-eng-deu.tsv") -> Path:
    (folder / "bitext").mkdir(parents=True, exist_ok=True)
    path = folder / "bitext" / name
    path.write_text("".join(f"{a}\t{b}\n" for a, b in PAIRS), "utf-8")
    return path


def joint_vectors(tags: tuple[str, str], shift: float = 0.0) -> WordVectors:
    english = {f"{tags[0]}{word}": row for word, row in zip(WORDS, VECTORS.matrix, strict=True)}
    german = {f"{tags[1]}{word}": VECTORS[same] + np.float32(shift) for word, same in GERMAN.items()}
    return WordVectors([*english, *german], np.stack([*english.values(), *german.values()]))


@pytest.mark.parametrize("tags", [("", ""), ("en:", "de:"), ("eng:", "deu:")])
def test_translations_are_found_in_both_directions(tmp_path: Path, tags: tuple[str, str]) -> None:
    items = Bitext().read(write_bitext(tmp_path))
    answers = Bitext().answer(Lookup(joint_vectors(tags)), items)
    assert answers.covered.tolist() == [True, True, True, True, False]
    assert answers.values["accuracy-forward"].tolist()[:4] == [True] * 4  # the same text twice is the same answer
    assert answers.values["accuracy-backward"].tolist()[:4] == [True, True, True, False]
    assert answers.values["accuracy"].tolist()[:4] == [1, 1, 1, 0.5]


def test_the_mean_of_each_language_is_subtracted(tmp_path: Path) -> None:
    items = Bitext().read(write_bitext(tmp_path))
    values = Bitext().answer(Lookup(joint_vectors(("en:", "de:"), shift=30.0)), items).values
    assert values["accuracy"][:4].mean() < values["accuracy-centred"][:4].mean()


def test_a_malformed_bitext_is_reported(tmp_path: Path) -> None:
    path = write_bitext(tmp_path)
    path.write_text("a\tb\nonly one\n")
    with pytest.raises(DatasetError) as caught:
        Bitext().read(path)
    assert (caught.value.path, caught.value.line) == (str(path), 2)


# --- encoders and teachers in the same run


class Fixed:
    """An encoder that knows nothing: the first letters of a text."""

    identity = "fixed"

    def encode(self, texts: Sequence[str]) -> NDArray[Any]:
        return np.array([[ord(letter) for letter in f"{text:<3}"[:3]] for text in texts])


def test_vectors_teachers_and_encoders_are_compared_in_one_run(tmp_path: Path) -> None:
    write_collection(tmp_path)
    write_clusters(tmp_path)
    write_bitext(tmp_path)
    write_tiny_model(tmp_path / "model", "bert")
    sets = {"ours": VECTORS, "teacher": f"teacher:{tmp_path / 'model'}@1"}
    tasks = ["retrieval", "clustering:seeds=2", "bitext"]
    encoders = {"fixed": Fixed(), **open_baselines(["random", "length"])}
    report = evaluate(sets, tmp_path, tasks, encoders=encoders, resamples=20, quick=True)
    assert not report.errors
    names = {(score.task, score.vectors) for score in report.scores if score.words == "own"}
    assert names == {(task.partition(":")[0], name) for task in tasks for name in [*sets, *encoders]}
    assert {(pair.a, pair.b) for pair in report.comparisons} >= {("ours", "fixed"), ("ours", "teacher")}
    assert not any(pair.metric.endswith(("-bm25", "-chance", "-words")) for pair in report.comparisons)


def test_an_encoder_is_classified_by_the_linear_probe(tmp_path: Path) -> None:
    (tmp_path / "classification").mkdir()
    lines = [f"{label} {label[0]}{number} text" for number in range(20) for label in ("aa", "zz")]
    path = tmp_path / "classification" / "letters.txt"
    path.write_text("\n".join(lines))
    report = evaluate(
        VECTORS, tmp_path, "classification:model=linear", encoders={"fixed": Fixed()}, resamples=10, quick=True
    )
    scores = {score.metric: score for score in report.by("fixed") if score.words == "own"}
    assert scores["accuracy-linear"].value == 1
    assert "accuracy-cnn" not in scores
    with pytest.raises(UsageError, match="linear"):
        evaluate(VECTORS, tmp_path, "classification:model=cnn", encoders={"fixed": Fixed()}, resamples=10, quick=True)


def test_an_encoder_has_no_words(tmp_path: Path) -> None:
    (tmp_path / "similarity").mkdir()
    (tmp_path / "similarity" / "a.tsv").write_text("ice\tsnow\t9\nice\tfire\t1\ndog\tcat\t8\n")
    report = evaluate(VECTORS, tmp_path, ["similarity"], encoders={"fixed": Fixed()}, resamples=0)
    assert {score.vectors for score in report.scores} == {"vectors"}


# --- baselines


def test_random_vectors_depend_only_on_the_words() -> None:
    first = RandomEncoder().encode(["the ice", "Ice the!", "", "snow"])
    np.testing.assert_allclose(first[0], first[1], rtol=1e-6)
    assert not first[2].any()
    np.testing.assert_array_equal(RandomEncoder().encode(["snow"])[0], first[3])
    np.testing.assert_allclose(first[0], RandomEncoder().encode(["the", "ice"]).mean(axis=0), rtol=1e-5)


def test_the_length_control_orders_texts_by_length() -> None:
    rows = LengthEncoder().encode(["a" * 10, "a" * 12, "a" * 100, ""])
    assert np.argsort(-(rows[:3] @ rows[0])).tolist() == [0, 1, 2]
    assert np.linalg.norm(rows, axis=1) == pytest.approx(np.ones(4))


def test_sif_weights_words_by_their_frequency() -> None:
    counted = WordVectors(Vocabulary(["the", "ice"], counts=[999, 1]), np.eye(2, dtype=np.float32))
    weights = np.array([1e-3 / (1e-3 + 0.999), 1e-3 / (1e-3 + 0.001)])
    np.testing.assert_allclose(SifEncoder(counted).encode(["the ice"])[0], weights / weights.sum(), rtol=1e-5)


@pytest.mark.parametrize("text", ["glove", "random:x", "length:1", "sif", "model2vec:", "wordllama:x"])
def test_a_wrong_baseline_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_baseline(text)


def test_wordllama_is_encoded_by_its_own_package() -> None:
    pytest.importorskip("wordllama")
    rows = WordLlamaEncoder().encode(["ice and snow", "snow and ice", "tax law"])
    cosines = rows @ rows[0] / np.linalg.norm(rows, axis=1) / np.linalg.norm(rows[0])
    assert cosines[1] > cosines[2]


def test_a_file_called_val_is_a_part_for_development() -> None:
    assert part_of(Path("clinc150.val.txt")) == ("clinc150.", "dev")
    assert part_of(Path("carnival.txt"))[1] == ""
