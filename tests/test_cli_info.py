"""stillvec info: what vectors, a teacher or a corpus are."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tiny_corpus import sentences
from tiny_teachers import write_tiny_model

from stillvec import WordVectors
from stillvec.cli import main
from stillvec.formats import read_manifest, save
from stillvec.teachers import load_teacher


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A teacher, a corpus, vectors of both, and the same in a file of word2vec."""
    folder = tmp_path_factory.mktemp("info")
    write_tiny_model(folder / "teacher", "bert")
    (folder / "text.txt").write_text("\n\n".join(" ".join(sentences(48)[i : i + 4]) for i in range(0, 48, 4)), "utf-8")
    words = [
        "distill",
        str(folder / "text.txt"),
        "--teacher",
        str(folder / "teacher"),
        "--out",
        str(folder / "vectors"),
    ]
    assert main([*words, "--min-count", "1", "--quiet"]) == 0
    assert main(["convert", str(folder / "vectors"), str(folder / "vectors.txt"), "--format", "word2vec"]) == 0
    return folder


def facts(thing: Path, capsys: pytest.CaptureFixture[str], *more: str) -> dict[str, object]:
    capsys.readouterr()
    assert main(["info", str(thing), "--json", *more]) == 0
    told = json.loads(capsys.readouterr().out)
    assert isinstance(told, dict)
    return told


def test_info_on_vectors_tells_how_they_were_made(room: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = facts(room / "vectors", capsys)
    manifest = read_manifest(room / "vectors")
    assert told["method"] == "auto"
    assert told["words"] == manifest["words"]
    assert told["dim"] == manifest["dim"]
    assert str(told["frequent"]).startswith("the, ")
    assert told["teacher.digest"] == manifest["teacher"]["digest"]
    assert told["corpus.words"] == 432


def test_info_on_a_teacher_tells_its_shape(room: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = facts(room / "teacher", capsys)
    assert told | {"dim": 16, "depth": 2, "window": 64, "precision": "fp32", "device": "cpu"} == told
    assert told["digest"] == load_teacher(str(room / "teacher")).digest


def test_info_on_a_corpus_counts_it(room: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = facts(room / "text.txt", capsys)
    assert told["files"] == 1
    assert told["paragraphs"] == 12
    assert told["sentences"] == 48
    assert told["words"] == 432
    assert str(told["frequent"]).startswith("the, ")
    assert told["bytes that are not UTF-8"] == 0


def test_info_on_a_folder_of_texts_and_on_json_lines(
    room: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.txt").write_text("The house.", "utf-8")
    (tmp_path / "b.jsonl").write_text('{"body": "The old dog sleeps."}\n', "utf-8")
    told = facts(tmp_path / "b.jsonl", capsys, "--field", "body")
    assert told["words"] == 4
    told = facts(tmp_path, capsys, "--field", "body")
    assert told["files"] == 2
    assert told["words"] == 6


def test_info_on_a_file_of_vectors(room: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = facts(room / "vectors.txt", capsys)
    manifest = read_manifest(room / "vectors")
    assert told["words"] == manifest["words"]
    assert told["dim"] == manifest["dim"]


@pytest.mark.parametrize("thing", ["vectors", "teacher", "text.txt", "vectors.txt"])
def test_info_prints_a_table(thing: str, room: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["info", str(room / thing)]) == 0
    told = capsys.readouterr().out.splitlines()
    assert thing in told[0]
    assert 4 <= len(told) <= 12
    assert all(len(line) < 140 for line in told[1:])


def test_info_tells_bytes_that_are_not_utf_8_as_a_note(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "latin.txt").write_bytes("The café is old.".encode("latin-1"))
    assert main(["info", str(tmp_path / "latin.txt"), "--json"]) == 0
    told = capsys.readouterr()
    assert json.loads(told.out)["bytes that are not UTF-8"] == 1
    assert told.err.startswith("Note: ")
    assert told.err.count("\n") == 1


@pytest.mark.parametrize("content", [b"", b"\x89PNG\r\n\x1a\n\x00\x00"])
def test_info_on_what_is_nothing_is_refused_in_one_line(
    content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "thing.txt").write_bytes(content)
    assert main(["info", str(tmp_path / "thing.txt")]) == 1
    told = capsys.readouterr().err
    assert told.startswith("stillvec: ")
    assert told.count("\n") == 1
    assert "thing.txt" in told


def test_info_on_what_is_not_there_is_refused_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", str(tmp_path / "nowhere")]) == 1
    told = capsys.readouterr().err
    assert told.startswith("stillvec: ")
    assert told.count("\n") == 1
    assert "nowhere" in told


def test_info_on_vectors_loads_no_torch(room: Path) -> None:
    """It must run where only the light base is installed."""
    code = "import sys; from stillvec.cli import main; main(['info', sys.argv[1]]); sys.exit('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code, str(room / "vectors")], capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_a_folder_of_model2vec_is_vectors_and_no_teacher(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save(WordVectors(["ice", "snow"], [[1.0, 2.0], [3.0, 4.0]]), tmp_path / "v", format="model2vec")
    assert main(["info", str(tmp_path / "v")]) == 0
    assert capsys.readouterr().out.startswith("Vectors")


def test_info_on_vectors_is_short_unless_all_is_asked_for(room: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", str(room / "vectors")]) == 0
    short = capsys.readouterr().out
    assert "auto (" in short
    assert "432 words in text.txt" in short
    assert "distillation." not in short
    assert main(["info", str(room / "vectors"), "--all"]) == 0
    assert "distillation.min_count" in capsys.readouterr().out


def test_info_on_a_bare_name_that_is_not_there_asks_no_hub(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stillvec.teachers.load_teacher", lambda *_, **__: pytest.fail("the hub was asked"))
    assert main(["info", "nosuch"]) == 2
    assert "nosuch" in capsys.readouterr().err
