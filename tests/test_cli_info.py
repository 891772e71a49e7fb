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
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
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
    stdout = json.loads(capsys.readouterr().out)
    assert isinstance(stdout, dict)
    return stdout


def test_info_on_vectors_tells_how_they_were_made(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    info = facts(directory / "vectors", capsys)
    manifest = read_manifest(directory / "vectors")
    assert info["method"] == "auto"
    assert info["words"] == manifest["words"]
    assert info["dim"] == manifest["dim"]
    assert str(info["frequent"]).startswith("the, ")
    assert info["teacher.digest"] == manifest["teacher"]["digest"]
    assert info["corpus.words"] == 432


def test_info_on_a_teacher_tells_its_shape(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    info = facts(directory / "teacher", capsys)
    assert info | {"dim": 16, "depth": 2, "window": 64, "precision": "fp32", "device": "cpu"} == info
    assert info["digest"] == load_teacher(str(directory / "teacher")).digest


def test_info_on_a_corpus_counts_it(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    info = facts(directory / "text.txt", capsys)
    assert info["files"] == 1
    assert info["paragraphs"] == 12
    assert info["sentences"] == 48
    assert info["words"] == 432
    assert str(info["frequent"]).startswith("the, ")
    assert info["bytes that are not UTF-8"] == 0


def test_info_on_a_folder_of_texts_and_on_json_lines(
    directory: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.txt").write_text("The house.", "utf-8")
    (tmp_path / "b.jsonl").write_text('{"body": "The old dog sleeps."}\n', "utf-8")
    info = facts(tmp_path / "b.jsonl", capsys, "--field", "body")
    assert info["words"] == 4
    info = facts(tmp_path, capsys, "--field", "body")
    assert info["files"] == 2
    assert info["words"] == 6


def test_info_on_a_file_of_vectors(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    info = facts(directory / "vectors.txt", capsys)
    manifest = read_manifest(directory / "vectors")
    assert info["words"] == manifest["words"]
    assert info["dim"] == manifest["dim"]


@pytest.mark.parametrize("thing", ["vectors", "teacher", "text.txt", "vectors.txt"])
def test_info_prints_a_table(thing: str, directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["info", str(directory / thing)]) == 0
    stdout = capsys.readouterr().out.splitlines()
    assert thing in stdout[0]
    assert 4 <= len(stdout) <= 12
    assert all(len(line) < 140 for line in stdout[1:])


def test_info_tells_bytes_that_are_not_utf_8_as_a_note(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "latin.txt").write_bytes("The café is old.".encode("latin-1"))
    assert main(["info", str(tmp_path / "latin.txt"), "--json"]) == 0
    output = capsys.readouterr()
    assert json.loads(output.out)["bytes that are not UTF-8"] == 1
    assert output.err.startswith("Note: ")
    assert output.err.count("\n") == 1


@pytest.mark.parametrize("content", [b"", b"\x89PNG\r\n\x1a\n\x00\x00"])
def test_info_on_what_is_nothing_is_refused_in_one_line(
    content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "thing.txt").write_bytes(content)
    assert main(["info", str(tmp_path / "thing.txt")]) == 1
    stderr = capsys.readouterr().err
    assert stderr.startswith("stillvec: ")
    assert stderr.count("\n") == 1
    assert "thing.txt" in stderr


def test_info_on_what_is_not_there_is_refused_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", str(tmp_path / "nowhere")]) == 1
    stderr = capsys.readouterr().err
    assert stderr.startswith("stillvec: ")
    assert stderr.count("\n") == 1
    assert "nowhere" in stderr


def test_info_on_vectors_loads_no_torch(directory: Path) -> None:
    """It must run where only the light base is installed."""
    code = "import sys; from stillvec.cli import main; main(['info', sys.argv[1]]); sys.exit('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code, str(directory / "vectors")], capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_a_folder_of_model2vec_is_vectors_and_no_teacher(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save(WordVectors(["ice", "snow"], [[1.0, 2.0], [3.0, 4.0]]), tmp_path / "v", format="model2vec")
    assert main(["info", str(tmp_path / "v")]) == 0
    assert capsys.readouterr().out.startswith("Vectors")


def test_info_on_vectors_is_short_unless_everything_is_requested(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["info", str(directory / "vectors")]) == 0
    short = capsys.readouterr().out
    assert "auto (" in short
    assert "432 words in text.txt" in short
    assert "distillation." not in short
    assert main(["info", str(directory / "vectors"), "--all"]) == 0
    assert "distillation.min_count" in capsys.readouterr().out


def test_info_on_a_bare_name_that_is_not_there_asks_no_hub(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stillvec.teachers.load_teacher", lambda *_, **__: pytest.fail("the hub was asked"))
    assert main(["info", "nosuch"]) == 2
    assert "nosuch" in capsys.readouterr().err
