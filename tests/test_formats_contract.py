"""What every format owes its users, asked of all of `FORMATS`."""

from __future__ import annotations

import contextlib
import errno
import io
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from error_checks import raises
from hypothesis import example, given, settings
from hypothesis import strategies as st

from stillvec import Vocabulary, WordVectors
from stillvec.errors import FormatError, MissingExtra, StillvecError, UsageError, lacks_release
from stillvec.files import compression
from stillvec.formats import FORMATS, load, save

ENDINGS = {"fasttext": ".vec"}  # the one format that is known by its name
ODD = [
    "a\u00a0b",
    "\u3000",
    "x\u2028y",
    "\x85",
    "\x1c",
    "😀",
    "e\u0301",
    "\ufeff",
    "a\rb",
    "\r",
    "1984",
    "-1.5",
    "nan",
    "<unk>",
    "[PAD]",
    "[UNK]",
    "▁",
]
MATRIX = np.random.default_rng(1).normal(size=(3, 4)).astype(np.float32)

# gensim is a pickle, which is written and never read; floret takes only vectors that have a table of n-grams
READ = [name for name in FORMATS if name not in ("gensim", "floret")]
FOLDERS = ["stillvec", "spacy", "model2vec", "sentence-transformers", "projector"]
WITHOUT_HEADER = ["glove", "projector"]  # no words would leave no dimension
AS_THEY_ARE = ["stillvec", "npy", "hdf5"]  # half and double precision are kept
UNREAD = ["config.cfg", "meta.json", "tokenizer", "lookups.bin", "projector_config.pbtxt"]  # only the tool reads them
WITHOUT_NUL = ["fasttext-bin", "hdf5"]

every_format = pytest.mark.parametrize("name", READ)
file_formats = pytest.mark.parametrize("name", [name for name in READ if name not in FOLDERS])
folder_formats = pytest.mark.parametrize("name", [name for name in READ if name in FOLDERS])


def target(folder: Path, name: str) -> Path:
    return folder / f"vectors{ENDINGS.get(name, '')}"


@every_format
def test_vectors_come_back_exactly_and_the_format_is_recognised(tmp_path: Path, name: str) -> None:
    path = target(tmp_path, name)
    save(WordVectors(["ice", "snow", "fire"], MATRIX), path, format=name)
    back = load(path)
    assert back.words == ("ice", "snow", "fire")
    assert back.matrix.dtype == np.float32
    np.testing.assert_array_equal(back.matrix, MATRIX)
    assert next(each for each in FORMATS if FORMATS[each].recognize(path, _head(path))) == name


@every_format
def test_unusual_words_survive_a_round_trip(tmp_path: Path, name: str) -> None:
    matrix = np.arange(len(ODD) * 3, dtype=np.float32).reshape(-1, 3) / 7
    save(WordVectors(ODD, matrix), tmp_path / "v", format=name)
    back = load(tmp_path / "v", format=name)
    assert back.words == tuple(ODD)
    np.testing.assert_array_equal(back.matrix, matrix)


@every_format
@settings(max_examples=40, deadline=None)
@given(
    words=st.lists(st.text(st.characters(codec="utf-8"), max_size=6), min_size=1, max_size=6, unique=True),
    numbers=st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=12, max_size=12),
)
@example(words=["new york", "a  b", " c", "d ", " "], numbers=[0.5] * 12)
@example(words=["a"], numbers=[-0.0, 1e-45, 3.4028235e38, 1.1754944e-38, 16777217.0, 0.1, 1 / 3, 5, 6, 7, 8, 9])
def test_any_words_and_numbers_come_back_or_are_refused(name: str, words: list[str], numbers: list[float]) -> None:
    matrix = np.array([numbers] * len(words), np.float32) * np.float32(0.5)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "v"
        try:
            save(WordVectors(words, matrix), path, format=name)
        except FormatError:
            assert not path.exists()
            refused = "\n\t \0" if name in WITHOUT_NUL else "\n\t "
            assert any(not word or set(word) & set(refused) for word in words)
            return
        back = load(path, format=name)
        assert back.words == tuple(words)
        np.testing.assert_array_equal(back.matrix, matrix)


@every_format
@pytest.mark.parametrize("word", ["", "a\nb", "a\tb", "\n", "\ud800"])
def test_words_that_no_line_can_hold_are_refused_and_nothing_is_left(tmp_path: Path, name: str, word: str) -> None:
    with pytest.raises(FormatError, match="was not written"):
        save(WordVectors(["ice", word, "fire"], MATRIX), tmp_path / "v", format=name)
    assert list(tmp_path.iterdir()) == []


@every_format
def test_words_with_spaces_survive_or_are_refused_by_name(tmp_path: Path, name: str) -> None:
    vectors = WordVectors(["ice", "new york", ". . ."], MATRIX)
    if name == "word2vec-binary":
        with pytest.raises(FormatError, match=r"'new york'.*--replace-space"):
            save(vectors, tmp_path / "v", format=name)
        return
    save(vectors, tmp_path / "v", format=name)
    assert load(tmp_path / "v", format=name).words == vectors.words


@every_format
def test_half_precision_loses_nothing(tmp_path: Path, name: str) -> None:
    half = MATRIX.astype(np.float16)
    save(WordVectors(["a", "b", "c"], half), tmp_path / "v", format=name)
    back = load(tmp_path / "v", format=name)
    assert back.matrix.dtype == (np.float16 if name in AS_THEY_ARE else np.float32)
    np.testing.assert_array_equal(back.matrix, half.astype(np.float32))


@every_format
@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite_are_refused(tmp_path: Path, name: str, number: float) -> None:
    matrix = MATRIX.copy()
    matrix[1, 2] = number
    with pytest.raises(FormatError, match="'snow'"):
        save(WordVectors(["ice", "snow", "fire"], matrix), tmp_path / "v", format=name)
    assert list(tmp_path.iterdir()) == []


@every_format
def test_a_double_too_large_for_the_format_is_refused_or_kept(tmp_path: Path, name: str) -> None:
    if name in AS_THEY_ARE:
        save(WordVectors(["a"], np.array([[1e300, 0]])), tmp_path / "v", format=name)
        assert load(tmp_path / "v", format=name).matrix.tolist() == [[1e300, 0]]
        return
    with pytest.raises(FormatError, match="'a'"):
        save(WordVectors(["a"], np.array([[1e300, 0]])), tmp_path / "v", format=name)


@every_format
def test_vectors_without_numbers_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(FormatError, match="0 dimensions"):
        save(WordVectors(["a"], np.zeros((1, 0), np.float32)), tmp_path / "v", format=name)


@every_format
def test_no_words_come_back_as_no_words(tmp_path: Path, name: str) -> None:
    none = WordVectors([], np.zeros((0, 3), np.float32))
    if name in WITHOUT_HEADER:
        with pytest.raises(FormatError, match="no words"):
            save(none, tmp_path / "v", format=name)
        return
    save(none, tmp_path / "v", format=name)
    assert load(tmp_path / "v", format=name).matrix.shape == (0, 3)


@every_format
def test_an_old_result_is_replaced_and_survives_a_failure(tmp_path: Path, name: str) -> None:
    for words in (["a", "b", "c"], ["d", "e", "f"]):
        save(WordVectors(words, MATRIX), tmp_path / "v", format=name, force=True)
    with pytest.raises(FormatError):
        save(WordVectors(["x", "y\n", "z"], MATRIX), tmp_path / "v", format=name, force=True)
    with raises(UsageError, code="exists", path=tmp_path / "v"):
        save(WordVectors(["g", "h", "i"], MATRIX), tmp_path / "v", format=name)
    assert load(tmp_path / "v", format=name).words == ("d", "e", "f")
    assert {each.name for each in tmp_path.iterdir()} - {"v.words.txt"} == {"v"}


class FullDisk(io.BytesIO):
    """A file that exists and takes not one byte more."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        path.write_bytes(b"half")

    def write(self, content: Any) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")


@file_formats
def test_a_full_disk_leaves_the_old_file_and_no_half_one(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "v.gz"
    save(WordVectors(["a", "b", "c"], MATRIX), path, format=name)
    with monkeypatch.context() as patch:
        patch.setitem(compression._BY_SUFFIX, ".gz", replace(compression._BY_SUFFIX[".gz"], writer=FullDisk))
        with pytest.raises(OSError, match="No space left"):
            save(WordVectors(["d", "e", "f"], MATRIX), path, format=name, force=True)
    assert load(path, format=name).words == ("a", "b", "c")
    assert {each.name for each in tmp_path.iterdir()} - {"v.words.txt"} == {"v.gz"}


@every_format
def test_vectors_can_be_written_over_the_file_they_were_read_from(tmp_path: Path, name: str) -> None:
    save(WordVectors(["a", "b", "c"], MATRIX), tmp_path / "v", format=name)
    save(load(tmp_path / "v", format=name), tmp_path / "v", format=name, force=True)
    np.testing.assert_array_equal(load(tmp_path / "v", format=name).matrix, MATRIX)


@every_format
def test_more_rows_than_a_block_come_back(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stillvec.formats.text_rows._BLOCK", 100)
    monkeypatch.setattr("stillvec.formats.text_rows._NUMBERS", 30)
    monkeypatch.setattr("stillvec.formats.word2vec._BLOCK", 100)
    monkeypatch.setattr("stillvec.formats.tensors._BLOCK", 100)
    monkeypatch.setattr("stillvec.formats.npy._BLOCK", 100)
    monkeypatch.setattr("stillvec.formats.hdf5._BLOCK", 100)
    for module in ("arrow_stream", "formats.arrow_table", "formats.parquet_table"):
        monkeypatch.setattr(f"stillvec.{module}.BATCH_ROWS", 100)
    monkeypatch.setattr("stillvec.formats.projector._NUMBERS", 100)
    monkeypatch.setattr("stillvec.formats.projector._LINES", 100)
    matrix = np.random.default_rng(2).normal(size=(300, 7)).astype(np.float32)
    words = [f"word {i} " if i == 150 and name != "word2vec-binary" else f"w{i}" for i in range(300)]
    save(WordVectors(words, matrix), tmp_path / "v", format=name)
    back = load(tmp_path / "v", format=name)
    assert back.words == tuple(words)
    np.testing.assert_array_equal(back.matrix, matrix)


@file_formats
@pytest.mark.parametrize("ending", [".gz", ".bz2", ".xz", ".zst"])
def test_compressed_files_come_back(tmp_path: Path, name: str, ending: str) -> None:
    path = target(tmp_path, name).with_name(target(tmp_path, name).name + ending)
    save(WordVectors(["a", "b", "c"], MATRIX), path, format=name)
    np.testing.assert_array_equal(load(path).matrix, MATRIX)
    assert path.read_bytes()[:2] in (b"\x1f\x8b", b"BZ", b"\xfd7", b"\x28\xb5")
    renamed = path.rename(target(tmp_path, name))  # what a file is called does not matter
    np.testing.assert_array_equal(load(renamed).matrix, MATRIX)


@file_formats
@pytest.mark.parametrize("ending", [".gz", ".bz2", ".xz", ".zst"])
@pytest.mark.parametrize("damage", ["cut", "plain"])
def test_a_damaged_compression_is_named(tmp_path: Path, name: str, ending: str, damage: str) -> None:
    path = tmp_path / f"v{ending}"
    save(WordVectors(["a", "b", "c"], MATRIX), path, format=name)
    path.write_bytes(path.read_bytes()[:-9] if damage == "cut" else b"ice 0.1 0.2\n")
    with raises(FormatError, code="damaged-archive", path=path):
        load(path)


@file_formats
def test_a_folder_where_a_file_is_wanted_is_refused(tmp_path: Path, name: str) -> None:
    with raises(FormatError, code="is-folder", path=tmp_path):
        load(tmp_path, format=name)


@folder_formats
def test_a_folder_of_other_things_is_neither_read_nor_replaced(tmp_path: Path, name: str) -> None:
    (tmp_path / "diary.txt").write_text("Dear diary")
    with raises(FormatError, code="not-found"):
        load(tmp_path, format=name)
    with raises(UsageError, code="conflict", path=tmp_path):
        save(WordVectors(["ice", "snow", "fire"], MATRIX), tmp_path, format=name)


@file_formats
def test_an_empty_file_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "v").touch()
    with pytest.raises(FormatError, match=r"empty|words and dimensions|floret|first line"):
        load(tmp_path / "v", format=name)
    with raises(FormatError, code="empty", path=tmp_path / "v"):
        load(tmp_path / "v")


@pytest.mark.filterwarnings("ignore::stillvec.errors.StillvecWarning")  # broken UTF-8 is told, and read
@every_format
def test_any_bytes_are_read_or_refused_with_our_own_error(tmp_path: Path, name: str) -> None:
    rng = np.random.default_rng(11)
    path = tmp_path / "v"
    vectors = WordVectors(["ice", "snow", "fire"], MATRIX)
    save(vectors, path, format=name)
    for file in [file for file in path.parent.rglob("*") if file.is_file() and file.name not in UNREAD]:
        good = file.read_bytes()
        for _ in range(40):
            bad = bytearray(good)
            for place in rng.integers(0, len(bad), 3):
                bad[place] = rng.choice(list(b" \n\t.-e09\xff\x00"))
            file.write_bytes(bytes(bad[: rng.integers(1, len(bad) + 1)]))
            with contextlib.suppress(StillvecError):
                assert np.isfinite(load(path, format=name).matrix).all()
        file.write_bytes(good)


def test_an_unknown_file_gets_the_list_of_formats(tmp_path: Path) -> None:
    (tmp_path / "v").write_text("Dear diary,\ntoday I read.\n")
    with pytest.raises(FormatError, match=r"stillvec, .*fasttext, word2vec, .*glove"):
        load(tmp_path / "v")


def test_a_folder_of_other_things_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"manifest\.json"):
        load(tmp_path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="nowhere"):
        load(tmp_path / "nowhere")


def test_an_unknown_format_gets_the_nearest_name(tmp_path: Path) -> None:
    vectors = WordVectors(Vocabulary(["a"]), [[1.0]])
    with pytest.raises(UsageError, match="did you mean 'word2vec'"):
        save(vectors, tmp_path / "v", format="word2vek")


def _head(path: Path) -> bytes:
    return b"" if path.is_dir() else path.read_bytes()


@pytest.mark.parametrize(
    ("name", "package", "extra"),
    [
        ("parquet", "pyarrow", "parquet"),
        ("hdf5", "h5py", "hdf5"),
        ("onnx", "onnx", "onnx"),
        ("spacy", "spacy", "spacy"),
        ("gensim", "gensim", "train"),
    ],
)
def test_without_its_package_a_format_names_the_extra(
    tmp_path: Path, name: str, package: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in [each for each in sys.modules if each.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, package, None)  # type: ignore[arg-type]
    cure = "no release" if lacks_release(package) else rf"stillvec\[{extra}\]"
    with pytest.raises(MissingExtra, match=rf"needs the package '{package}'.*{cure}"):
        save(WordVectors(["a"], [[1.0]]), tmp_path / "v", format=name)
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_reported_by_hdf5_as_by_any_other_format(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    h5py = pytest.importorskip("h5py")

    def full(*_: object) -> None:
        raise OSError("Can't close file (file write failed: time = now\n, errno = 28, error message = 'No space')")

    monkeypatch.setattr(h5py, "File", full)
    with pytest.raises(OSError, match="No space left on device") as caught:
        FORMATS["hdf5"].write(WordVectors(["a"], np.ones((1, 2), np.float32)), tmp_path / "x.h5")
    assert caught.value.errno == 28
    assert [*tmp_path.iterdir()] == []
