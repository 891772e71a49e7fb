"""nearest, analogy and convert, from the command line."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from stillvec import Vocabulary, WordVectors
from stillvec.cli import console, main
from stillvec.formats import FORMATS, load, save


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    words = ["king", "queen", "man", "woman", "雪", "[bold]"]
    matrix = [[1, 1, 0], [1, 0, 1], [0.1, 1, 0], [0.1, 0, 1], [-1, 0.5, 0.2], [-1, -1, -1]]
    save(WordVectors(Vocabulary(words, range(6, 0, -1)), np.array(matrix, np.float32)), tmp_path / "v")
    return tmp_path / "v"


def test_nearest_prints_words_and_cosines_in_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nearest", str(folder), "king", "-k", "2"]) == 0
    assert capsys.readouterr().out == "nearest to king\n  word   cosine\n  man    0.7740\n  queen  0.5000\n"


def test_nearest_gives_each_word_a_table(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nearest", str(folder), "king", "雪"]) == 0
    out = capsys.readouterr().out
    assert "nearest to king" in out
    assert "nearest to 雪" in out


def test_nearest_prints_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nearest", str(folder), "king", "-k", "1", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["vectors"] == str(folder)
    assert said["nearest"] == {"king": [{"word": "man", "cosine": pytest.approx(0.7740, abs=1e-4)}]}


def test_json_is_printed_alone_or_written_in_addition_to_the_tables(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(tmp_path / "out.json")
    for call in (
        ["nearest", str(folder), "king"],
        ["analogy", str(folder), "man", "king", "woman"],
        ["info", str(folder)],
    ):
        assert main([*call, "--json"]) == 0
        printed = json.loads(capsys.readouterr().out)
        assert main(call) == 0
        tables = capsys.readouterr().out
        assert main([*call, "--json", file]) == 0
        assert capsys.readouterr().out == f"{tables}Wrote {file}\n"
        assert json.loads(Path(file).read_text("utf-8")) == printed


def test_a_word_behind_json_is_not_a_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["--json", "king"], ["king", "--json"], ["--json", "-k", "2", "--", "king"], ["--json", "-", "king"]):
        assert main(["nearest", str(folder), *words]) == 0
        assert [*json.loads(capsys.readouterr().out)["nearest"]] == ["king"]


def test_control_characters_of_words_do_not_reach_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    word = "\x1b]0;pwned\x07\x1b[2J\x9b\u202e"
    path = tmp_path / "v.vec"
    path.write_text(f"2 2\n{word} 1 2\nice 1 1\n", "utf-8")
    for arguments in (["info", path], ["nearest", path, "ice"], ["nearest", path, "ice", "--json"]):
        for terminal in (False, True):
            monkeypatch.setattr(sys.stdout, "isatty", lambda terminal=terminal: terminal)
            assert main([*map(str, arguments)]) == 0
            out = capsys.readouterr().out
            assert "pwned" in out
            assert not any(part in out for part in ("\x1b]", "\x1b[2J", "\x07", "\x9b", "\u202e"))
    assert json.loads(out)["nearest"]["ice"][0]["word"] == word


def test_control_characters_of_paths_do_not_reach_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", "\x1b[2J/none.vec"]) == 1
    assert "\x1b" not in capsys.readouterr().err


def test_an_unknown_word_is_one_sentence_and_exit_code_1(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nearest", str(folder), "king", "quen"]) == 1
    out, output = capsys.readouterr()
    assert out == ""
    assert output == "stillvec: Unknown word 'quen'; did you mean 'queen'?\n"


def test_k_of_zero_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nearest", str(folder), "king", "-k", "0"]) == 2
    assert "got 0" in capsys.readouterr().err


@pytest.mark.parametrize("method", ["3cosadd", "3cosmul"])
def test_analogy_finds_the_queen(folder: Path, capsys: pytest.CaptureFixture[str], method: str) -> None:
    assert main(["analogy", str(folder), "man", "king", "woman", "-k", "1", "--method", method]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "man is to king as woman is to"
    assert lines[1].split() == ["word", method]
    assert lines[2].split()[0] == "queen"


def test_analogy_prints_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["analogy", str(folder), "man", "king", "woman", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["question"] == ["man", "king", "woman"]
    assert said["method"] == "3cosadd"
    assert said["answers"][0]["word"] == "queen"


def test_encode_writes_the_vectors_of_texts_files_and_columns(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "t.txt").write_text("A man.\nnothing known\n")
    (tmp_path / "t.csv").write_text('label,body\nx,"king, queen"\n')
    out = tmp_path / "out.npy"
    call = ["encode", str(folder), "the woman", str(tmp_path / "t.txt"), "--out", str(out), "--normalize"]
    assert main(call) == 0
    assert "3 texts x 3; zero rows, for texts without a known word: 1\n" in capsys.readouterr().out
    texts = ["the woman", "A man.", "nothing known"]
    assert np.array_equal(np.load(out), load(folder).encode(texts, normalize=True))
    assert main(call) == 2  # it exists
    assert main([*call, "--force", "--dimensions", "2"]) == 0
    assert np.load(out).shape == (3, 2)
    csv = ["encode", str(folder), str(tmp_path / "t.csv"), "--text-field", "body", "--out", str(out), "--force"]
    assert main(csv) == 0
    assert np.array_equal(np.load(out), load(folder).encode(["king, queen"]))
    assert main(["encode", str(folder), "ice", "--out", str(tmp_path / "out.txt")]) == 2
    assert not (tmp_path / "out.txt").exists()


def test_a_wrong_method_is_a_wrong_call(folder: Path) -> None:
    with pytest.raises(SystemExit) as left:
        main(["analogy", str(folder), "man", "king", "woman", "--method", "sum"])
    assert left.value.code == 2


@pytest.mark.parametrize(
    ("out", "flags", "name"),
    [
        ("o.vec", [], "fasttext"),
        ("o.bin", [], "word2vec-binary"),
        ("o.bin.gz", [], "word2vec-binary"),
        ("o.glove", [], "glove"),
        ("o", [], "stillvec"),
        ("o.txt", ["--format", "word2vec"], "word2vec"),
        ("o.txt", ["--to", "word2vec"], "word2vec"),
        ("o.npy", [], "npy"),
        ("o.h5", [], "hdf5"),
        ("o.parquet", [], "parquet"),
        ("o", ["--to", "projector"], "projector"),
    ],
)
def test_convert_writes_the_requested_format_or_that_of_the_ending(
    folder: Path, capsys: pytest.CaptureFixture[str], out: str, flags: list[str], name: str
) -> None:
    path = folder.parent / out
    assert main(["convert", str(folder), str(path), *flags]) == 0
    size = sum(file.stat().st_size for file in ([*path.iterdir()] if path.is_dir() else path.parent.glob("o.*")))
    assert capsys.readouterr().out == f"Wrote {path}: 6 words x 3, {size:,} bytes, format {name}\n"
    back = load(path, format=name)
    assert back.words == load(folder).words
    np.testing.assert_array_equal(back.matrix, load(folder).matrix)


def test_convert_asks_for_a_format_where_the_ending_does_not_tell(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["convert", str(folder), str(folder.parent / "o.txt")]) == 2
    assert ", ".join(FORMATS) in capsys.readouterr().err


def test_convert_names_the_nearest_format(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", "nowhere", str(folder.parent / "o"), "--format", "glov"]) == 2
    assert "did you mean 'glove'" in capsys.readouterr().err


def test_convert_reads_the_given_format(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "v").write_text("2 3\nice 1 2\nfire 3 4\n")
    assert main(["convert", str(tmp_path / "v"), str(tmp_path / "o"), "--from", "word2vec"]) == 1
    assert "v:2: expected a word and 3 numbers" in capsys.readouterr().err


def test_convert_replaces_spaces_on_request(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save(WordVectors(Vocabulary(["new york", "ice"], [5, 4]), np.eye(2)), tmp_path / "v")
    call = ["convert", str(tmp_path / "v"), str(tmp_path / "o.bin")]
    assert main(call) == 1
    assert "'new york'" in capsys.readouterr().err
    assert main([*call, "--replace-space", "_"]) == 0
    assert load(tmp_path / "o.bin").words == ("new_york", "ice")
    assert main(["convert", str(tmp_path / "v"), str(tmp_path / "o"), "--replace-space", "_"]) == 0
    assert load(tmp_path / "o").vocabulary.counts.tolist() == [5, 4]


@pytest.mark.parametrize("char", ["", " ", "\n"])
def test_a_space_cannot_be_replaced_by_nothing_or_a_space(
    folder: Path, capsys: pytest.CaptureFixture[str], char: str
) -> None:
    assert main(["convert", str(folder), str(folder.parent / "o.bin"), "--replace-space", char]) == 2
    assert "replace_space" in capsys.readouterr().err


def test_replacing_spaces_never_makes_two_words_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save(WordVectors(["new york", "new_york"], np.eye(2)), tmp_path / "v")
    assert main(["convert", str(tmp_path / "v"), str(tmp_path / "o"), "--replace-space", "_"]) == 2
    assert "'new_york'" in capsys.readouterr().err


def test_plain_tables_align_wide_characters_and_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    console.table("words", ("word", "count"), [("雪", 1234), ("e\u0301a", 5)])
    assert capsys.readouterr().out == "words\n  word  count\n  雪    1,234\n  e\u0301a        5\n"


def test_an_empty_table_is_its_head(capsys: pytest.CaptureFixture[str]) -> None:
    console.table("nothing", ("word", "count"), [])
    assert capsys.readouterr().out == "nothing\n  word  count\n"


def test_a_terminal_gets_rich_and_words_are_not_markup(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    console.table("odd [red]words", ("word", "cosine"), [("[bold]", 0.5)])
    console.note("wrote [bold]")
    out = capsys.readouterr().out
    assert "[bold]" in out.splitlines()[-1]
    assert "[red]" in out
    assert "│" in out or "┃" in out


def test_a_table_without_column_names_has_no_header(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    console.table("t", ("", ""), [("a", "x")])
    assert capsys.readouterr().out == "t\n  a  x\n"
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    console.table("t", ("", ""), [("a", "x")])
    assert len([line for line in capsys.readouterr().out.splitlines() if line.strip()]) == 4  # title, frame, row, frame
