"""Tables for other tools: npy, Parquet, HDF5 and the projector's TSV, as those tools see them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from error_checks import raises

from stillvec import Vocabulary, WordVectors, load, save
from stillvec.cli import main
from stillvec.errors import FormatError

MATRIX = np.random.default_rng(3).normal(size=(3, 4)).astype(np.float32)
OURS = WordVectors(Vocabulary(["ice", "New York", "<unk>"], [7, 5, 0], lowercase=True), MATRIX)


def parquet(path: Path, **columns: Any) -> Path:
    import pyarrow
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.table(columns), path)
    return path


def hdf5(path: Path, **tables: Any) -> Path:
    import h5py

    with h5py.File(path, "w") as file:
        for name, table in tables.items():
            file[name] = table
    return path


def npy(path: Path, words: bytes, table: Any) -> Path:
    np.save(path, table)
    path.with_suffix(".words.txt").write_bytes(words)
    return path


def projector(path: Path, vectors: str, words: str | bytes) -> Path:
    path.mkdir()
    (path / "vectors.tsv").write_text(vectors)
    (path / "metadata.tsv").write_bytes(words if isinstance(words, bytes) else words.encode())
    return path


def test_numpy_reads_our_table_and_the_words_are_in_a_second_file(tmp_path: Path) -> None:
    save(OURS, tmp_path / "v.npy", format="npy")
    np.testing.assert_array_equal(np.load(tmp_path / "v.npy", allow_pickle=False), MATRIX)
    assert (tmp_path / "v.words.txt").read_text() == "ice\nNew York\n<unk>\n"
    assert isinstance(load(tmp_path / "v.npy").matrix.base, np.memmap)


def test_arrow_reads_our_parquet_as_lists_of_one_length(tmp_path: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    save(OURS, tmp_path / "v.parquet", format="parquet")
    table = pyarrow.parquet.read_table(tmp_path / "v.parquet")
    assert table.schema.field("vector").type == pyarrow.list_(pyarrow.field("item", pyarrow.float32()), 4)
    assert table["word"].to_pylist() == [*OURS.words]
    np.testing.assert_array_equal(np.array(table["vector"].to_pylist(), np.float32), MATRIX)


def test_h5py_reads_our_datasets(tmp_path: Path) -> None:
    import h5py

    save(OURS, tmp_path / "v.h5", format="hdf5")
    with h5py.File(tmp_path / "v.h5") as file:
        assert [*file["words"].asstr()] == [*OURS.words]
        np.testing.assert_array_equal(file["vectors"][:], MATRIX)


@pytest.mark.parametrize("name", ["parquet", "hdf5", "projector"])
def test_counts_come_back(tmp_path: Path, name: str) -> None:
    save(OURS, tmp_path / "v", format=name)
    back = load(tmp_path / "v")
    assert back.vocabulary.counts.tolist() == [7, 5, 0]
    assert back.vocabulary.lowercase is (name != "projector")  # which has no place for it, and the words say otherwise


def test_the_projector_gets_a_header_and_as_many_lines_as_vectors(tmp_path: Path) -> None:
    save(OURS, tmp_path / "v", format="projector")
    assert (tmp_path / "v" / "metadata.tsv").read_text() == "word\tcount\nice\t7\nNew York\t5\n<unk>\t0\n"
    np.testing.assert_array_equal(np.loadtxt(tmp_path / "v" / "vectors.tsv", np.float32, delimiter="\t"), MATRIX)
    assert 'tensor_path: "vectors.tsv"' in (tmp_path / "v" / "projector_config.pbtxt").read_text()


def test_foreign_metadata_of_one_column_has_no_header(tmp_path: Path) -> None:
    back = load(projector(tmp_path / "v", "1\t2\n3\t+4e0\n", "ice\nfire\n"))
    assert back.words == ("ice", "fire")
    assert back.matrix.tolist() == [[1, 2], [3, 4]]


def test_parquet_with_lists_of_any_length_and_no_counts_is_read(tmp_path: Path) -> None:
    back = load(parquet(tmp_path / "v", word=["a", "b"], vector=[[1.0, 2.0], [3.0, 4.0]], more=[0, 0]))
    assert back.words == ("a", "b")
    assert back.matrix.tolist() == [[1, 2], [3, 4]]


BAD: dict[str, tuple[Callable[[Path], Path], str]] = {
    "parquet of other columns": (lambda p: parquet(p, word=["a"], x=[1]), "'vector', got 'word', 'x'"),
    "parquet of numbers": (lambda p: parquet(p, word=["a"], vector=[1.0]), "list of floats.*double"),
    "parquet of texts": (lambda p: parquet(p, word=["a"], vector=[["x"]]), "list of floats"),
    "parquet of ragged lists": (
        lambda p: parquet(p, word=["a", "b"], vector=[[1.0], [1.0, 2, 3]]),
        "different",
    ),
    "parquet with a hole": (
        lambda p: parquet(p, word=["a", None], vector=[[1.0], [2.0]]),
        "missing .*row 0",
    ),
    "parquet with NaN": (lambda p: parquet(p, word=["a"], vector=[[np.nan]]), "NaN .*'a'"),
    "parquet with a word twice": (lambda p: parquet(p, word=["a", "a"], vector=[[1.0], [2.0]]), "'a'"),
    "parquet with an empty word": (lambda p: parquet(p, word=[""], vector=[[1.0]]), "word 1: .*empty"),
    "hdf5 without words": (lambda p: hdf5(p, vectors=MATRIX), "'words' .*got 'vectors'"),
    "hdf5 of numbers for words": (lambda p: hdf5(p, words=[1, 2, 3], vectors=MATRIX), "list of strings"),
    "hdf5 of whole numbers": (lambda p: hdf5(p, words=["a"], vectors=[[1]]), "table of floats, got int64"),
    "hdf5 of too few words": (lambda p: hdf5(p, words=["a"], vectors=MATRIX), "1 words and 3 vectors"),
    "npy of too many words": (lambda p: npy(p, b"a\nb", MATRIX[:1]), "2 words and 1 vectors"),
    "npy of one row": (lambda p: npy(p, b"a\n", MATRIX[0]), r"shape \(4,\)"),
    "npy of objects": (lambda p: npy(p, b"a\n", np.array([[{}]])), "Python objects"),
    "npy with NaN": (lambda p: npy(p, b"a\n", np.array([[np.nan]])), "NaN .*'a'"),
    "npy with broken words": (lambda p: npy(p, b"\xff\n", MATRIX[:1]), "UTF-8"),
    "projector of a short line": (lambda p: projector(p, "1\t2\n3\n", "a\nb\n"), r"vectors.tsv:2: .*2 numbers.*got 1"),
    "projector of a text": (lambda p: projector(p, "1\t2\nx\t1\n", "a\nb\n"), r"vectors.tsv:2: .*'x'"),
    "projector with NaN": (lambda p: projector(p, "nan\t2\n", "a\n"), "NaN .*'a'"),
    "projector of other lines": (lambda p: projector(p, "1\n", "word\tcount\na\n"), r"metadata.tsv:2: .*2 columns"),
    "projector of no counts": (lambda p: projector(p, "1\n", "word\tcount\na\tx\n"), r"metadata.tsv:2: .*'x'"),
    "projector with a word twice": (lambda p: projector(p, "1\n2\n", "a\na\n"), "'a'"),
    "projector without numbers": (lambda p: projector(p, "", "a\n"), "empty"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_not_a_table_of_vectors_is_reported_in_one_sentence(
    tmp_path: Path, case: str, capsys: pytest.CaptureFixture[str]
) -> None:
    make, sentence = BAD[case]
    path = make(tmp_path / "v.npy")
    with pytest.raises(FormatError, match=sentence):
        load(path)
    assert main(["convert", str(path), str(tmp_path / "o.vec")]) == 1
    assert len(capsys.readouterr().err.strip().splitlines()) == 1
    assert not (tmp_path / "o.vec").exists()


def test_a_table_without_its_words_is_reported(tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", MATRIX)
    with raises(FormatError, code="not-found", path=tmp_path / "v.words.txt"):
        load(tmp_path / "v.npy")


# ---- HDF5 files that reach outside, or claim more than they hold


def _h5(path: Path) -> Any:
    h5py = pytest.importorskip("h5py")
    file = h5py.File(path, "w")
    file.create_dataset("words", data=[b"a", b"b"], dtype=h5py.string_dtype("utf-8"))
    return file


@pytest.mark.parametrize("kind", ["external", "link", "soft", "virtual"])
@pytest.mark.parametrize("name", ["vectors", "words", "counts"])
def test_an_hdf5_file_cannot_read_other_files(kind: str, name: str, tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    (tmp_path / "secret").write_bytes(b"root:x:0:0:root:/root:/bin/bash\n")
    with h5py.File(tmp_path / "other.h5", "w") as other:
        other["secret"] = np.ones((2, 2), np.float32)
    with _h5(tmp_path / "v.h5") as file:
        file["vectors"] = np.ones((2, 2), np.float32)
        file.pop(name, None)
        if kind == "external":
            file.create_dataset(name, (2, 2), "<f4", external=[(str(tmp_path / "secret"), 0, 16)])
        elif kind == "link":
            file[name] = h5py.ExternalLink("other.h5", "/secret")
        elif kind == "soft":
            file["own"] = h5py.ExternalLink("other.h5", "/secret")
            file[name] = h5py.SoftLink("/own")
        else:
            layout = h5py.VirtualLayout((2, 2), "<f4")
            layout[:] = h5py.VirtualSource(str(tmp_path / "other.h5"), "secret", (2, 2))
            file.create_virtual_dataset(name, layout)
    with raises(FormatError, code="outside", path=tmp_path / "v.h5", match=name):
        load(tmp_path / "v.h5")


@pytest.mark.parametrize("shape", [(2, 2_000_000_000), (20_000_000, 60)])
def test_an_hdf5_file_cannot_claim_more_than_it_holds(shape: tuple[int, int], tmp_path: Path) -> None:
    with _h5(tmp_path / "v.h5") as file:
        file.create_dataset("vectors", shape, "<f4")
    assert (tmp_path / "v.h5").stat().st_size < 10_000
    with raises(FormatError, code="too-large", path=tmp_path / "v.h5", match="32 times"):
        load(tmp_path / "v.h5")


def test_a_compressed_hdf5_table_is_read(tmp_path: Path) -> None:
    with _h5(tmp_path / "v.h5") as file:
        numbers = np.random.default_rng(0).normal(size=(2, 300_000)).astype(np.float32)
        file.create_dataset("vectors", data=numbers, compression="gzip", chunks=True)
    assert np.array_equal(load(tmp_path / "v.h5").matrix, numbers)
