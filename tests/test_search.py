"""Search in documents: indexes from every kind of input, hits beside slow computations, and changes to an index."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

import stillvec
from stillvec import SearchIndex, WordVectors
from stillvec.cli import main
from stillvec.corpus.documents import Document, DocumentSettings, read_documents
from stillvec.errors import AlreadyFinished, CorpusError, FormatError, StillvecError, UsageError
from stillvec.search.passages import split_passages
from stillvec.search.search_index import METHODS
from stillvec.vocabulary import Vocabulary

WORDS = ("the", "ice", "snow", "fire", "melts", "burns", "river", "house")
DOCUMENTS = {
    "winter": "The ice melts. Snow falls on the river.",
    "summer": "The fire burns the house.",
    "naïve": "Ein Zürcher Haus; the house of ice.",
    "long": "The river. " * 40
    + "\n\n"
    + "The fire burns on and on and on, in a house by the river, until the snow. " * 2,
}


@pytest.fixture(scope="module")
def vectors() -> WordVectors:
    rows = np.random.default_rng(5).normal(size=(len(WORDS), 6)).astype(np.float32)
    rows[2] = rows[1] + 0.1 * rows[2]  # snow is like ice
    return WordVectors(Vocabulary(WORDS, [500, 20, 20, 20, 10, 10, 9, 9]), rows)


@pytest.fixture(scope="module")
def index(vectors: WordVectors, tmp_path_factory: pytest.TempPathFactory) -> SearchIndex:
    return stillvec.index(DOCUMENTS, vectors, out=tmp_path_factory.mktemp("index") / "i", passages="document")


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def slow_bm25(documents: Mapping[str, str], query: str) -> dict[str, float]:
    words = {id: re.findall(r"\w+", text.lower()) for id, text in documents.items()}
    mean = sum(map(len, words.values())) / len(words)
    scores = dict.fromkeys(documents, 0.0)
    for term in re.findall(r"\w+", query.lower()):
        n_with = sum(term in own for own in words.values())
        idf = math.log(1 + (len(words) - n_with + 0.5) / (n_with + 0.5))
        for id, own in words.items():
            count = Counter(own)[term]
            scores[id] += idf * count * 3 / (count + 2 * (0.25 + 0.75 * len(own) / mean))
    return scores


def slow_cosines(vectors: WordVectors, documents: Mapping[str, str], query: str) -> dict[str, float]:
    shares = vectors.vocabulary.counts / vectors.vocabulary.counts.sum()

    def encode(text: str) -> np.ndarray:
        known = [word for word in re.findall(r"\w+", text.lower()) if word in vectors]
        return sum(1e-3 / (1e-3 + shares[vectors.vocabulary.index[word]]) * vectors[word] for word in known)

    q = encode(query)
    return {id: float(q @ (d := encode(t)) / np.linalg.norm(q) / np.linalg.norm(d)) for id, t in documents.items()}


@pytest.mark.parametrize("query", ["ice on the river", "Fire! fire in the house", "snow", "Zürcher ice"])
def test_scores_are_those_of_slow_computations(index: SearchIndex, vectors: WordVectors, query: str) -> None:
    cosines, bm25 = slow_cosines(vectors, DOCUMENTS, query), slow_bm25(DOCUMENTS, query)
    best = max(bm25.values())
    hybrid = {id: (2 * cosines[id] + bm25[id] / best) / 3 for id in DOCUMENTS}
    for method, wanted in (("vectors", cosines), ("bm25", bm25), ("hybrid", hybrid)):
        hits = index.search(query, 10, method=method)  # type: ignore[arg-type]
        assert [hit.id for hit in hits] == sorted((i for i in wanted if wanted[i] > 0), key=lambda i: -wanted[i])
        assert [hit.score for hit in hits] == pytest.approx([wanted[hit.id] for hit in hits], abs=0.02)  # int8


def test_a_word_that_is_not_in_the_vectors_is_found_by_bm25(index: SearchIndex) -> None:
    assert [hit.id for hit in index.search("ZÜRCHER")] == ["naïve"]
    assert index.search("ZÜRCHER", method="vectors") == []
    assert index.search("xyzzy") == []
    assert index.search("") == []


def test_a_hit_has_its_passage_a_snippet_and_highlights(vectors: WordVectors) -> None:
    index = stillvec.index(DOCUMENTS, vectors)
    hit = index.search("house snow", 1)[0]
    assert (hit.id, hit.position) == ("long", 1)
    assert hit.text == DOCUMENTS["long"].partition("\n\n")[2].strip()
    assert {hit.snippet[start:end] for start, end in hit.highlights} == {"house", "snow"}
    long = index.search("river", 5, unique=False)
    assert all(len(hit.snippet) <= 240 for hit in long)
    assert any(len(hit.text) > 240 for hit in long)
    spans = [(hit.snippet, span) for hit in index.search("the ice") for span in hit.highlights]
    assert {snippet[start:end].lower() for snippet, (start, end) in spans} == {"ice"}  # not the frequent "the"


def test_unique_gives_one_passage_per_document(vectors: WordVectors) -> None:
    index = stillvec.index({str(n): "The ice melts.\n" * 30 for n in range(5)}, vectors, passages=1)
    assert len(index) == 150
    assert [hit.id for hit in index.search("ice", 4)] == ["0"] * 4
    assert sorted(hit.id for hit in index.search("ice", 5, unique=True)) == ["0", "1", "2", "3", "4"]


@pytest.mark.parametrize(
    ("unit", "passages"),
    [
        ("document", ["One. Two.\n\nThree four five."]),
        (1, ["One.", "Two.", "Three four five."]),
        (2, ["One. Two.", "Three four five."]),
    ],
)
def test_documents_are_split_into_passages(unit: str | int, passages: list[str]) -> None:
    assert split_passages(" One. Two.\n\nThree four five. ", unit) == passages


def test_short_paragraphs_are_joined_and_long_ones_cut() -> None:
    text = "Title\n\n" + "A paragraph that is long enough to be a passage of its own, by itself." + "\n\nEnd."
    assert split_passages(text, "paragraph") == [text.replace("\n\n", "\n")]
    cut = split_passages("A sentence of some words. " * 200, "paragraph")
    assert len(cut) > 2
    assert max(map(len, cut)) <= 2000
    assert " ".join(cut) == ("A sentence of some words. " * 200).strip()


def test_documents_of_every_kind_of_file(tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    (folder / "sub").mkdir(parents=True)
    (folder / "a.txt").write_text("One line.\nAnother line.\n", "utf-8")
    (folder / "sub" / "b.md").write_text("# Title\n\nText.", "utf-8")
    (folder / "c.jsonl").write_text('{"id": 7, "text": ["A", "b"]}\n{"text": null}\n{"text": "no id"}\n', "utf-8")
    (folder / "d.csv").write_text('id,text\nx,"two\nlines, quoted"\ny,\n', "utf-8")
    (folder / "e.tsv").write_text('text\tother\nsays "hi\t1\n', "utf-8")
    (folder / "empty.txt").write_text(" \n", "utf-8")
    assert {document.id: document.text for document in read_documents([folder])} == {
        "a.txt": "One line.\nAnother line.",
        "sub/b.md": "Title\n\nText.",
        "7": "A\n\nb",
        "c.jsonl:3": "no id",
        "x": "two\nlines, quoted",
        "e.tsv:2": 'says "hi',
    }
    name = str(folder / "a.txt")
    lines = [Document(f"{name}:1", "One line."), Document(f"{name}:2", "Another line.")]
    assert [*read_documents([name])] == lines
    assert [document.id for document in read_documents([name], DocumentSettings(unit="files"))] == [name]
    assert [document.id for document in read_documents([folder / "a.txt", folder / "sub"])] == [
        name,
        f"{folder}/sub/b.md",
    ]


def test_documents_of_parquet(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    table = arrow.table({"_id": [3, 4], "meta": [{"body": "Ice."}, {"body": "Snow."}], "text": ["a", "b"]})
    parquet.write_table(table, tmp_path / "d.parquet")
    assert [*read_documents([tmp_path / "d.parquet"])] == [Document("3", "a"), Document("4", "b")]
    dotted = read_documents([tmp_path / "d.parquet"], DocumentSettings(field="meta.body", id_field="text"))
    assert [*dotted] == [Document("a", "Ice."), Document("b", "Snow.")]


def test_articles_of_wikipedia_are_documents(tmp_path: Path) -> None:
    pages = "".join(
        f"<page><title>{title}</title><ns>0</ns><revision><text>{text}</text></revision></page>"
        for title, text in (("Ice", "Ice is frozen water, and it floats on water."), ("R", "#REDIRECT [[Ice]]"))
    )
    (tmp_path / "wiki.xml").write_text(f"<mediawiki>{pages}</mediawiki>", "utf-8")
    documents = [*read_documents([tmp_path / "wiki.xml"])]
    assert documents == [Document("Ice", "Ice is frozen water, and it floats on water.")]


@pytest.mark.parametrize(
    ("name", "text", "code"),
    [
        ("a.csv", "id,body\n1,x\n", "unknown-name"),
        ("a.csv", "", "unknown-name"),
        ("a.jsonl", '{"text": 1}\n', "unexpected-value"),
        ("a.jsonl", '{"text": "x", "id": [1]}\n', "unexpected-value"),
        ("a.jsonl", "{\n", "not-json"),
    ],
)
def test_bad_records_are_named(tmp_path: Path, name: str, text: str, code: str) -> None:
    (tmp_path / name).write_text(text, "utf-8")
    with pytest.raises(CorpusError) as caught:
        [*read_documents([tmp_path / name])]
    assert caught.value.code == code
    assert caught.value.path == str(tmp_path / name)


def test_texts_pairs_records_and_mappings_are_documents(vectors: WordVectors) -> None:
    texts = ["The ice melts.", "Fire burns."]
    assert [*stillvec.index(texts, vectors).ids] == ["0", "1"]
    assert [*stillvec.index([("a", texts[0]), (5, texts[1])], vectors).ids] == ["a", "5"]
    assert [*stillvec.index(({"id": n, "text": text} for n, text in enumerate(texts)), vectors).ids] == ["0", "1"]
    assert [*stillvec.index({"x": texts[0]}, vectors).ids] == ["x"]
    with pytest.raises(UsageError, match="document 1"):
        stillvec.index(["fine", 3], vectors)
    with pytest.raises(CorpusError, match="twice"):
        stillvec.index([("a", "x"), ("a", "y")], vectors)
    with pytest.raises(CorpusError) as caught:
        stillvec.index([], vectors)
    assert caught.value.code == "empty"


def test_documents_are_added_replaced_skipped_and_removed(vectors: WordVectors, tmp_path: Path) -> None:
    stillvec.index(DOCUMENTS, vectors, out=tmp_path / "i", passages=2)
    before = files_of(tmp_path / "i")
    stillvec.index(DOCUMENTS, add_to=tmp_path / "i")
    assert files_of(tmp_path / "i") == before  # the same texts again
    changed = {"winter": "A blizzard of snow. Very cold.", "new": "Zebras burn."}
    index = stillvec.index(changed, add_to=tmp_path / "i", remove=["long"])
    assert [*index.ids] == ["summer", "naïve", "winter", "new"]
    assert index.search("river", method="bm25") == []
    assert [hit.id for hit in index.search("blizzard zebras", method="bm25")] == ["new", "winter"]
    whole = stillvec.index({"summer": DOCUMENTS["summer"], "naïve": DOCUMENTS["naïve"], **changed}, vectors, passages=2)
    for query in ("snow house", "zebras", "the fire burns"):
        for method in METHODS:
            assert index.search(query, method=method) == whole.search(query, method=method)
    ours, theirs = files_of(tmp_path / "i"), files_of(whole.folder)
    assert ours == theirs
    with pytest.raises(CorpusError, match="nobody"):
        stillvec.index([], add_to=tmp_path / "i", remove=["nobody"])
    with pytest.raises(UsageError, match="passages"):
        stillvec.index(DOCUMENTS, add_to=tmp_path / "i", passages="document")
    with pytest.raises(UsageError, match="other vectors"):
        stillvec.index(DOCUMENTS, vectors.with_matrix(vectors.matrix * 2 + 1), add_to=tmp_path / "i")


def test_all_documents_can_be_removed_and_others_added(vectors: WordVectors, tmp_path: Path) -> None:
    stillvec.index({"a": "The ice melts."}, vectors, out=tmp_path / "i")
    empty = stillvec.index([], add_to=tmp_path / "i", remove=["a"])
    assert (len(empty), empty.n_documents) == (0, 0)
    assert [empty.search("ice", method=method) for method in METHODS] == [[], [], []]
    assert stillvec.index({"b": "Snow."}, add_to=tmp_path / "i").search("snow")[0].id == "b"


def test_many_batches_give_the_same_index(vectors: WordVectors, monkeypatch: pytest.MonkeyPatch) -> None:
    from stillvec.search import index_builder

    whole = stillvec.index(DOCUMENTS, vectors, passages=1)
    monkeypatch.setattr(index_builder, "_BATCH", 2)
    assert files_of(stillvec.index(DOCUMENTS, vectors, passages=1).folder) == files_of(whole.folder)


def test_an_index_can_be_saved_loaded_and_is_no_set_of_vectors(index: SearchIndex, tmp_path: Path) -> None:
    index.save(tmp_path / "copy")
    assert SearchIndex.load(tmp_path / "copy").search("ice") == index.search("ice")
    with pytest.raises(FormatError) as caught:
        stillvec.load(tmp_path / "copy")
    assert caught.value.code == "search-index"
    with pytest.raises(UsageError, match="folder of this index"):
        index.save(index.folder)


def test_what_is_no_index_is_named(vectors: WordVectors, tmp_path: Path) -> None:
    stillvec.save(vectors, tmp_path / "v")
    (tmp_path / "empty").mkdir()
    for name in ("v", "empty", "nowhere"):
        with pytest.raises(FormatError) as caught:
            SearchIndex.load(tmp_path / name)
        assert caught.value.code in ("no-index", "not-found")
    for query, settings in (("ice", {"k": 0}), ("ice", {"method": "magic"}), (3, {})):
        with pytest.raises(StillvecError):
            stillvec.index(DOCUMENTS, vectors).search(query, **settings)  # type: ignore[arg-type]


def test_a_graph_finds_what_exact_search_finds(vectors: WordVectors, tmp_path: Path) -> None:
    pytest.importorskip("usearch")
    rng = np.random.default_rng(2)
    texts = [" ".join(rng.choice(WORDS, 6)) for _ in range(600)]
    index = stillvec.index(texts, vectors, out=tmp_path / "i", approximate=True)
    assert index.recall is not None
    assert index.recall > 0.9
    for method in METHODS:
        exact = {hit.id for hit in index.search("snow on ice", method=method, exact=True)}
        assert len(exact & {hit.id for hit in index.search("snow on ice", method=method)}) >= 8
    graph = tmp_path / "i" / "graph.usearch"
    graph.write_bytes(graph.read_bytes()[:-1])
    with pytest.raises(FormatError) as caught:
        SearchIndex.load(tmp_path / "i").search("ice")
    assert caught.value.code == "checksum"
    assert stillvec.index(["ice"], add_to=tmp_path / "i").recall is None


def test_the_command_line_indexes_and_searches(
    vectors: WordVectors, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    stillvec.save(vectors, "v")
    Path("docs").mkdir()
    for name, text in DOCUMENTS.items():
        Path("docs", f"{name}.txt").write_text(text, "utf-8")
    assert main(["index", "docs", "--vectors", "v", "--out", "i", "--quiet"]) == 0
    assert "4 documents, 5 passages x 6" in capsys.readouterr().out
    assert main(["search", "i", "melting", "ice", "--k", "2"]) == 0
    assert "winter.txt" in capsys.readouterr().out
    assert main(["search", "i", "melting", "ice", "--k", "2", "--json", "--unique", "--method", "vectors"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["query"], len(answer["hits"]), answer["method"]) == ("melting ice", 2, "vectors")
    assert set(answer["hits"][0]) == {"score", "id", "position", "text", "snippet", "highlights"}
    assert main(["index", "docs", "--vectors", "v", "--out", "i", "--quiet", "--passages", "2"]) == 2
    assert "4 documents" in capsys.readouterr().err  # what is there is not replaced silently
    assert main(["index", "docs", "--vectors", "v", "--out", "i", "--quiet", "--force"]) == 0
    Path("docs", "winter.txt").write_text("Changed.", "utf-8")
    assert main(["index", "docs", "--add-to", "i", "--remove", "summer.txt", "--quiet"]) == 0
    assert "(1 added, 1 replaced, 2 unchanged, 1 removed)" in capsys.readouterr().out  # summer.txt was added again
    assert main(["info", "i"]) == 0
    assert "Search index" in capsys.readouterr().out
    assert main(["info", "i", "--verify"]) == 0
    assert main(["search", "i", "xyzzy"]) == 0
    assert "Nothing found" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("call", "code", "noun"),
    [
        ("index docs --vectors v", 2, "--out"),
        ("index --vectors v --out i", 2, "documents"),
        ("index docs --out i", 2, "vectors"),
        ("index docs --vectors v --out i --passages 0", 2, "passages"),
        ("index nowhere --vectors v --out i", 1, "nowhere"),
        ("index docs --vectors nowhere --out i", 1, "nowhere"),
        ("index docs --add-to v", 1, "v"),
        ("index docs --vectors v --out v --force", 2, "input"),
        ("index docs --vectors v --out docs --force", 2, "input"),
        ("search v ice", 1, "search index"),
        ("search nowhere ice", 1, "nowhere"),
    ],
)
def test_bad_calls_are_one_sentence(
    call: str,
    code: int,
    noun: str,
    vectors: WordVectors,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    stillvec.save(vectors, "v")
    Path("docs").mkdir()
    Path("docs", "a.txt").write_text("The ice.", "utf-8")
    assert main([*call.split(), "--quiet"] if call.startswith("index") else call.split()) == code
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1
    assert noun in lines[0]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["docs", "v"]


def test_a_finished_index_that_is_asked_for_again_is_kept(vectors: WordVectors, tmp_path: Path) -> None:
    out = tmp_path / "index"
    stillvec.index(DOCUMENTS, vectors, out=out)
    before = files_of(out)
    with pytest.warns(AlreadyFinished, match="4 documents"):
        again = stillvec.index(DOCUMENTS, vectors, out=out)
    assert again.search("snow")[0].id == "winter"
    assert files_of(out) == before
    changed = {**DOCUMENTS, "winter": "The house burns."}
    fewer = {id: text for id, text in DOCUMENTS.items() if id != "long"}
    for documents, settings in (
        (changed, {}),
        (fewer, {}),
        ({**DOCUMENTS, "new": "snow"}, {}),
        (DOCUMENTS, {"passages": 2}),
    ):
        with pytest.raises(StillvecError) as caught:
            stillvec.index(documents, vectors, out=out, **settings)  # type: ignore[arg-type]
        assert caught.value.code == "exists"
    assert files_of(out) == before


def test_the_command_says_that_an_index_is_finished(
    vectors: WordVectors, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    vectors.save(tmp_path / "v")
    (tmp_path / "texts.txt").write_text("The ice melts.\nThe fire burns.\n", "utf-8")
    call = ["index", str(tmp_path / "texts.txt"), "--vectors", str(tmp_path / "v"), "--out", str(tmp_path / "i")]
    assert main(call) == 0
    assert "Wrote" in capsys.readouterr().out
    assert main(call) == 0
    printed = capsys.readouterr().out
    assert "already finished" in printed
    assert "Wrote" not in printed
