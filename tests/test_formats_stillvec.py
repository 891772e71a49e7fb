"""Our folder: whole or refused, memory-mapped, and readable by the safetensors package."""

from __future__ import annotations

import json
import pickle
import resource
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
from error_checks import raises

import stillvec
from stillvec import Vocabulary, WordVectors
from stillvec.cli import main
from stillvec.errors import FormatError, UsageError
from stillvec.formats import load, read_manifest, read_statistics, save, write_folder
from stillvec.formats.stillvec_folder import verify_folder
from stillvec.formats.tensors import map_tensors, write_tensors

MATRIX = np.random.default_rng(1).normal(size=(3, 4)).astype(np.float32)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    vocabulary = Vocabulary(["Eis", "new york", "fire"], [30, 2, 1], lowercase=False)
    write_folder(WordVectors(vocabulary, MATRIX), tmp_path / "v", {"method": "aggregate", "seed": 1}, None)
    return tmp_path / "v"


def change_manifest(folder: Path, **values: object) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps(manifest | values))


def test_the_folder_is_as_it_is_written_down(folder: Path) -> None:
    assert sorted(each.name for each in folder.iterdir()) == [
        "README.md",
        "manifest.json",
        "vectors.safetensors",
        "vocabulary.tsv",
    ]
    assert (folder / "vocabulary.tsv").read_bytes() == b"Eis\t30\nnew york\t2\nfire\t1\n"
    assert read_manifest(folder) == {
        "format": 1,
        "stillvec": stillvec.__version__,
        "words": 3,
        "dim": 4,
        "dtype": "float32",
        "lowercase": False,
        "method": "aggregate",
        "seed": 1,
    }


def test_words_counts_and_case_come_back(folder: Path) -> None:
    assert load(folder).vocabulary == Vocabulary(["Eis", "new york", "fire"], [30, 2, 1], lowercase=False)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_precision_is_kept(tmp_path: Path, dtype: type[np.floating]) -> None:
    matrix = np.random.default_rng(0).normal(size=(3, 5)).astype(dtype)
    save(WordVectors(["a", "b", "c"], matrix), tmp_path / "v")
    back = load(tmp_path / "v").matrix
    assert back.dtype == dtype
    np.testing.assert_array_equal(back, matrix)


def test_the_matrix_is_a_read_only_memory_map(folder: Path) -> None:
    matrix = load(folder).matrix
    assert isinstance(matrix, np.memmap)
    assert not matrix.flags.writeable


def test_a_large_folder_opens_without_reading_its_matrix(tmp_path: Path) -> None:
    save(WordVectors([f"w{i}" for i in range(20_000)], np.ones((20_000, 1), np.float32)), tmp_path / "v")
    header = b'{"matrix":{"dtype":"F32","shape":[20000,40000],"data_offsets":[0,3200000000]}}'
    with open(tmp_path / "v" / "vectors.safetensors", "wb") as stream:
        stream.write(len(header).to_bytes(8, "little") + header)
        stream.truncate(8 + len(header) + 3_200_000_000)  # a hole: it takes no room on disk
    change_manifest(tmp_path / "v", dim=40_000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert load(tmp_path / "v").dim == 40_000
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 1_000_000  # KB; read whole, it would have grown by three times as much


def test_the_safetensors_package_reads_our_matrix(folder: Path) -> None:
    theirs = safetensors.numpy.load_file(folder / "vectors.safetensors")
    np.testing.assert_array_equal(theirs["matrix"], MATRIX)


def test_the_safetensors_package_may_write_our_matrix(folder: Path) -> None:
    file = folder / "vectors.safetensors"
    safetensors.numpy.save_file({"matrix": MATRIX + 1}, file, metadata={"by": "them"})
    np.testing.assert_array_equal(load(folder).matrix, MATRIX + 1)


def test_tensors_of_every_type_and_shape_are_shared_with_the_safetensors_package(tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    codes = ["f8", "f4", "f2", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "?"]
    arrays = {code: (rng.random((3, 5)) * 100).astype(code) for code in codes}
    arrays |= {"scalar": np.array(7.5), "none": np.zeros((0, 4), np.float32), "turned": arrays["f8"].T}
    arrays |= {"big-endian": arrays["f4"].astype(">f4"), "wide": np.ones((2, 0, 3))}
    write_tensors(tmp_path / "t", arrays)
    ours, theirs = map_tensors(tmp_path / "t"), safetensors.numpy.load_file(tmp_path / "t")
    assert set(ours) == set(theirs) == set(arrays)
    for name, array in arrays.items():
        np.testing.assert_array_equal(ours[name], array)
        np.testing.assert_array_equal(theirs[name], array)
        assert ours[name].shape == theirs[name].shape == array.shape
        assert ours[name].flags.aligned


def test_statistics_come_back_memory_mapped(tmp_path: Path) -> None:
    sums = {"sum": np.arange(12.0).reshape(3, 4), "count": np.array([3, 2, 1], np.int64)}
    write_folder(WordVectors(["a", "b", "c"], MATRIX), tmp_path / "v", {}, sums)
    back = read_statistics(tmp_path / "v")
    assert set(back) == {"sum", "count"}
    for name, array in back.items():
        assert isinstance(array, np.memmap)
        assert not array.flags.writeable
        np.testing.assert_array_equal(array, sums[name])


def test_a_folder_without_statistics_says_so(folder: Path) -> None:
    with raises(FormatError, code="not-found", path=folder / "statistics.safetensors"):
        read_statistics(folder)


def test_a_manifest_may_hold_numpy_and_paths_but_not_contradict_the_vectors(tmp_path: Path) -> None:
    given = {
        "seed": np.int64(3),
        "rates": np.array([1.5, 2]),
        "corpus": Path("a/b"),
        "words": 99,
        "größe": "ü",
    }
    write_folder(WordVectors(["a", "b", "c"], MATRIX), tmp_path / "v", given)
    manifest = read_manifest(tmp_path / "v")
    assert (manifest["seed"], manifest["rates"], manifest["corpus"]) == (3, [1.5, 2], "a/b")
    assert manifest["words"] == 3
    assert "größe" in (tmp_path / "v" / "manifest.json").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["vectors.safetensors", "vocabulary.tsv"])
def test_a_missing_file_is_named(folder: Path, name: str) -> None:
    (folder / name).unlink()
    with raises(FormatError, code="not-found", path=folder / name):
        load(folder)


def test_a_newer_version_says_how_to_upgrade(folder: Path) -> None:
    change_manifest(folder, format=3)
    with raises(FormatError, code="newer-version", path=folder / "manifest.json", match="pip install --upgrade"):
        load(folder)


@pytest.mark.parametrize("version", [None, "1", 0, [1]])
def test_a_manifest_without_a_version_is_refused(folder: Path, version: object) -> None:
    change_manifest(folder, format=version)
    with raises(FormatError, code="no-version", path=folder / "manifest.json"):
        load(folder)


@pytest.mark.parametrize("text", ["", "{", "[1, 2]", "\x00"])
def test_a_manifest_that_is_not_a_table_is_refused(folder: Path, text: str) -> None:
    (folder / "manifest.json").write_text(text)
    with raises(FormatError, path=folder / "manifest.json"):
        load(folder)


@pytest.mark.parametrize("kept", [0, 4, 20, -1])
def test_truncated_vectors_are_refused(folder: Path, kept: int) -> None:
    file = folder / "vectors.safetensors"
    file.write_bytes(file.read_bytes()[:kept])
    with raises(FormatError, code="damaged", path=file):
        load(folder)


@pytest.mark.parametrize(
    ("header", "said"),
    [
        (b"nonsense", "not JSON"),
        (b"[]", "not an object"),
        (b'{"matrix": 3}', "'matrix'"),
        (b'{"other":{"dtype":"F32","shape":[3,4],"data_offsets":[0,48]}}', "'other'"),
        (b'{"matrix":{"dtype":"BF16","shape":[3,8],"data_offsets":[0,48]}}', "'BF16'"),
        (b'{"matrix":{"dtype":"I32","shape":[3,4],"data_offsets":[0,48]}}', "table of floats"),
        (b'{"matrix":{"dtype":"F32","shape":[12],"data_offsets":[0,48]}}', "table of floats"),
        (b'{"matrix":{"dtype":"F32","shape":[3,5],"data_offsets":[0,48]}}', "48 bytes"),
        (b'{"matrix":{"dtype":"F32","shape":[-3,-4],"data_offsets":[0,48]}}', "shape.*'matrix'"),
        (b'{"matrix":{"dtype":"F32","shape":[3,4],"data_offsets":[-4,44]}}', "offsets of 'matrix'"),
        (
            b'{"matrix":{"dtype":"F32","shape":[2,6],"data_offsets":[0,48]}}',
            "3 words, got 2 rows",
        ),
        (b'{"matrix":{"dtype":"F16","shape":[3,8],"data_offsets":[0,48]}}', r"\(3, 4\).*\(3, 8\)"),
    ],
)
def test_a_wrong_header_of_vectors_is_refused(folder: Path, header: bytes, said: str) -> None:
    file = folder / "vectors.safetensors"
    file.write_bytes(len(header).to_bytes(8, "little") + header + bytes(48))
    with pytest.raises(FormatError, match=said):
        load(folder)


def _tensor(shape: object, begin: object, end: object, dtype: str = "F32") -> dict[str, object]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


@pytest.mark.parametrize(
    "header",
    [
        {"matrix": _tensor([3, 4], 0, 48), "other": _tensor([3, 4], 0, 48)},  # overlap
        {"matrix": _tensor([2, 4], 0, 32), "other": _tensor([2, 4], 16, 48)},
        {"matrix": _tensor([2, 4], 0, 32), "other": _tensor([2], 40, 48)},  # a hole
        {"matrix": _tensor([2, 4], 16, 48)},
        {"matrix": _tensor([2, 4], 0, 32)},  # bytes behind the last tensor
        {},
        {"matrix": _tensor(["3", "4"], 0, 48)},
        {"matrix": _tensor([3.0, 4.0], 0, 48)},
        {"matrix": _tensor("34", 0, 48)},
        {"matrix": _tensor([3, 4], 0.0, 48.0)},
        {"matrix": _tensor([3, 4], "0", "48")},
        {"matrix": _tensor([True, 12], 0, 48)},
        {"matrix": _tensor([3, 4], 0, 48), "__metadata__": {"a": 1}},
        {"matrix": _tensor([3, 4], 0, 48), "__metadata__": [1]},
    ],
)
def test_a_header_that_the_safetensors_library_refuses_is_refused(folder: Path, header: dict[str, object]) -> None:
    file, text = folder / "vectors.safetensors", json.dumps(header).encode()
    file.write_bytes(len(text).to_bytes(8, "little") + text + bytes(48))
    with pytest.raises(safetensors.SafetensorError):
        safetensors.numpy.load_file(file)
    with raises(FormatError, code="damaged", path=file):
        load(folder)


@pytest.mark.parametrize("name", ["vectors.safetensors", "vocabulary.tsv"])
def test_verify_finds_a_flipped_bit(folder: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert verify_folder(folder)
    content = bytearray((folder / name).read_bytes())
    content[-2] ^= 1
    (folder / name).write_bytes(content)
    load(folder)
    with raises(FormatError, code="checksum", path=folder / name):
        verify_folder(folder)
    assert main(["info", str(folder), "--verify"]) == 1
    assert name in capsys.readouterr().err


def test_verify_lists_what_it_read(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info", str(folder), "--verify"]) == 0
    assert "vectors.safetensors" in capsys.readouterr().out


@pytest.mark.parametrize("checksums", [None, {}, {"../secret": "ab"}, {"vectors.safetensors": 3, "/etc/passwd": "ab"}])
def test_a_folder_without_checksums_loads_and_cannot_be_verified(folder: Path, checksums: object) -> None:
    change_manifest(folder, checksums=checksums)
    assert len(load(folder)) == len(MATRIX)
    with raises(FormatError, path=folder / "manifest.json"):
        verify_folder(folder)


@pytest.mark.parametrize(
    ("text", "line", "detail"),
    [
        (b"a\t1\nb\t1\n", None, "2 words, got 3 rows"),
        (b"a\t1\nb\nc\t1\n", 2, "'b'"),
        (b"a\t1\nb\t1\t2\nc\t1\n", 2, "1.t2"),
        (b"a\t1\n\t1\nc\t1\n", 2, "t1"),
        (b"a\t1\t2\n3\nc\t1\n", 1, "1.t2"),
        (b"a\t1\nb\tx\nc\t1\n", 2, "x"),
        (b"a\t1\nb\t1\na\t1\n", 3, "'a' .*line 1"),
        (b"a\t1\nb\t1\nc\t1", 3, "truncated"),
        (b"a\t1\n\xff\t1\nc\t1\n", None, "UTF-8"),
    ],
)
def test_a_wrong_vocabulary_is_refused(folder: Path, text: bytes, line: int | None, detail: str) -> None:
    file = folder / "vocabulary.tsv"
    file.write_bytes(text)
    with raises(FormatError, path=file if line else None, line=line, match=detail):
        load(folder)


def test_nan_in_the_vectors_is_named_by_word(folder: Path) -> None:
    matrix = MATRIX.copy()
    matrix[1, 3] = np.nan
    safetensors.numpy.save_file({"matrix": matrix}, folder / "vectors.safetensors")
    with pytest.raises(FormatError, match="'new york'"):
        load(folder)


def test_a_stretch_of_nan_in_large_vectors_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stillvec.formats.vector_table.MAX_CHECKED", 1000)
    matrix = np.ones((2000, 4), np.float32)
    save(WordVectors([f"w{i}" for i in range(2000)], matrix), tmp_path / "v")
    matrix[1000:] = np.nan
    safetensors.numpy.save_file({"matrix": matrix}, tmp_path / "v" / "vectors.safetensors")
    with pytest.raises(FormatError, match="NaN"):
        load(tmp_path / "v")


def test_a_file_is_not_a_folder_of_vectors(tmp_path: Path) -> None:
    (tmp_path / "v").write_text("x")
    with raises(FormatError, code="is-file", path=tmp_path / "v"):
        load(tmp_path / "v", format="stillvec")


def test_a_folder_of_other_things_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "v").mkdir()
    (tmp_path / "v" / "thesis.tex").touch()
    with pytest.raises(UsageError, match="contains other files"):
        save(WordVectors(["a"], [[1.0]]), tmp_path / "v")
    assert (tmp_path / "v" / "thesis.tex").exists()


def test_numbers_that_safetensors_lacks_are_refused(tmp_path: Path) -> None:
    vectors = WordVectors(["a"], [[1.0]])
    with pytest.raises(FormatError, match="complex128"):
        write_folder(vectors, tmp_path / "v", {}, {"sum": np.ones(1, complex)})
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(FormatError, match=r"longdouble|float128"):
        save(WordVectors(["a"], np.ones((1, 1), np.longdouble)), tmp_path / "v")


# Many words, read when the first is asked for


@pytest.fixture
def unread(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("stillvec.formats.stillvec_folder._MAX_EAGER", 0)
    return folder


def test_many_words_are_read_when_one_is_requested(unread: Path) -> None:
    vectors = load(unread)
    assert len(vectors) == 3
    assert repr(vectors) == "WordVectors(3 words x 4)"
    assert "words" not in vars(vectors.vocabulary)
    np.testing.assert_array_equal(vectors["fire"], MATRIX[2])
    assert vectors.vocabulary == Vocabulary(["Eis", "new york", "fire"], [30, 2, 1], lowercase=False)
    assert [*vectors] == ["Eis", "new york", "fire"]


def test_counts_may_be_requested_first(unread: Path) -> None:
    assert load(unread).vocabulary.counts.tolist() == [30, 2, 1]


def test_what_a_vocabulary_does_not_have_is_not_read_for(unread: Path) -> None:
    vocabulary = load(unread).vocabulary
    assert not hasattr(vocabulary, "colours")
    assert "words" not in vars(vocabulary)


def test_words_not_yet_read_are_those_of_the_folder_that_was_opened(unread: Path) -> None:
    vectors = load(unread)
    save(WordVectors(["other", "words", "now"], MATRIX * 2), unread, force=True)
    assert vectors.words == ("Eis", "new york", "fire")
    np.testing.assert_array_equal(vectors["Eis"], MATRIX[0])


def test_words_not_yet_read_may_be_copied(unread: Path) -> None:
    copied = pickle.loads(pickle.dumps(load(unread).vocabulary))
    assert copied.words == ("Eis", "new york", "fire")


@pytest.mark.parametrize(
    ("lines", "line"), [("Eis\t30\nnew york\t2\nEis\t1\n", 3), ("Eis\t30\nnew york\nfire\t1\n", 2)]
)
def test_a_bad_line_among_many_is_named_when_the_words_are_read(unread: Path, lines: str, line: int) -> None:
    (unread / "vocabulary.tsv").write_text(lines)
    vectors = load(unread)
    with raises(FormatError, path=unread / "vocabulary.tsv", line=line):
        vectors.nearest("Eis")


@pytest.mark.parametrize("lines", ["Eis\t30\nnew york\t2\nfire", "Eis\t30\nfire\t1\n"])
def test_too_few_of_many_words_are_seen_on_opening(unread: Path, lines: str) -> None:
    (unread / "vocabulary.tsv").write_text(lines)
    with pytest.raises(FormatError, match=r"truncated|2 words, got 3 rows"):
        load(unread)


def test_words_of_an_unknown_case_are_read_on_opening(unread: Path) -> None:
    change_manifest(unread, lowercase=None)
    assert "words" in vars(load(unread).vocabulary)
