"""A file or folder appears whole, under its name, or not at all; what is not ours is left alone."""

from __future__ import annotations

import os
import stat
import time
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from error_checks import raises

from stillvec.errors import CorpusError, DatasetError, FormatError, InputError, LexiconError, UsageError
from stillvec.files import (
    FolderLayout,
    atomic,
    atomic_file,
    atomic_folder,
    check_replaceable,
    create_bytes,
    digest,
    file_digest,
    is_compressed,
    open_bytes,
    read_head,
    read_lines,
)

MARKER = "manifest.json"
LAYOUT = FolderLayout((MARKER, "data"), lambda folder: (folder / MARKER).exists(), alone=False)


class Accident(Exception):  # noqa: N818 - nobody's error
    """What happens in the middle of writing."""


def _fail_inside(writing: AbstractContextManager[Path], accident: type[BaseException] = Accident) -> None:
    with writing as part:
        (part / "data" if part.is_dir() else part).write_text("ha")
        raise accident


def _ours(folder: Path, text: str = "old") -> Path:
    folder.mkdir()
    (folder / MARKER).write_text("{}")
    (folder / "data").write_text(text)
    return folder


def _left(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


# Files


def test_a_file_appears_with_its_content_and_no_other_file(tmp_path: Path) -> None:
    with atomic_file(tmp_path / "new" / "a.txt") as part:
        part.write_text("whole")
        assert not (tmp_path / "new" / "a.txt").exists()
    assert (tmp_path / "new" / "a.txt").read_text() == "whole"
    assert _left(tmp_path / "new") == ["a.txt"]


def test_a_file_is_replaced_only_at_the_end(tmp_path: Path) -> None:
    target = tmp_path / "a.txt"
    target.write_text("old")
    with atomic_file(target) as part:
        part.write_text("new")
        assert target.read_text() == "old"
    assert target.read_text() == "new"


@pytest.mark.parametrize("accident", [Accident, KeyboardInterrupt])
def test_half_a_file_is_never_left_and_the_old_one_survives(tmp_path: Path, accident: type[BaseException]) -> None:
    target = tmp_path / "a.txt"
    target.write_text("old")
    with pytest.raises(accident):
        _fail_inside(atomic_file(target), accident)
    assert target.read_text() == "old"
    assert _left(tmp_path) == ["a.txt"]


def test_half_a_new_file_is_never_left(tmp_path: Path) -> None:
    with pytest.raises(Accident):
        _fail_inside(atomic_file(tmp_path / "a.txt"))
    assert _left(tmp_path) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a disk that is always full is Linux's")
def test_a_full_disk_is_reported(tmp_path: Path) -> None:
    def full() -> None:
        with atomic_file(tmp_path / "a.txt"), open("/dev/full", "w") as stream:
            stream.write("no room")

    with pytest.raises(OSError, match="No space left") as error:
        full()
    assert error.value.filename == str(tmp_path / "a.txt")
    assert not list(tmp_path.iterdir())


def test_a_file_has_the_rights_that_any_new_file_has(tmp_path: Path) -> None:
    (tmp_path / "plain").touch()
    with atomic_file(tmp_path / "ours"):
        pass
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_folder_in_the_place_of_a_file_is_refused_before_any_work(tmp_path: Path) -> None:
    with raises(UsageError, code="is-folder", path=tmp_path):  # noqa: SIM117
        with atomic_file(tmp_path):
            pytest.fail("the work was begun")


def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with atomic_file(pipe) as part:
        assert part == pipe
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert _left(tmp_path) == ["pipe"]


# Folders


def test_a_folder_appears_completely_and_no_other_file(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "out"
    with atomic_folder(target, LAYOUT) as part:
        (part / MARKER).write_text("{}")
        assert not target.exists()
    assert _left(target) == [MARKER]
    assert _left(tmp_path / "deep") == ["out"]


def test_a_folder_of_ours_is_replaced_with_all_it_held(tmp_path: Path) -> None:
    target = _ours(tmp_path / "out")
    with atomic_folder(target, LAYOUT) as part:
        (part / MARKER).write_text("{}")
        assert (target / "data").read_text() == "old"
    assert _left(target) == [MARKER]
    assert _left(tmp_path) == ["out"]


def test_an_empty_folder_is_taken(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with atomic_folder(tmp_path / "out", LAYOUT) as part:
        (part / MARKER).write_text("{}")
    assert _left(tmp_path / "out") == [MARKER]


@pytest.mark.parametrize("accident", [Accident, KeyboardInterrupt])
def test_half_a_folder_is_never_left_and_the_old_one_survives(tmp_path: Path, accident: type[BaseException]) -> None:
    target = _ours(tmp_path / "out")
    with pytest.raises(accident):
        _fail_inside(atomic_folder(target, LAYOUT), accident)
    assert (target / "data").read_text() == "old"
    assert _left(tmp_path) == ["out"]


def test_half_a_new_folder_is_never_left(tmp_path: Path) -> None:
    with pytest.raises(Accident):
        _fail_inside(atomic_folder(tmp_path / "out", LAYOUT))
    assert _left(tmp_path) == []


def test_the_old_folder_stays_when_the_new_one_cannot_take_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = _ours(tmp_path / "out")

    def fail(*_: object) -> bool:
        raise OSError("the disk went away")

    monkeypatch.setattr(atomic, "_exchange", fail)
    with pytest.raises(OSError, match="went away"), atomic_folder(target, LAYOUT) as part:
        (part / "data").write_text("new")
    assert (target / "data").read_text() == "old"
    assert _left(tmp_path) == ["out"]


def test_a_folder_of_other_things_is_refused_before_any_work_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "summer.jpg").write_text("sea")
    with raises(UsageError, code="conflict", path=tmp_path / "photos", match="summer.jpg"):
        check_replaceable(tmp_path / "photos", LAYOUT)
    assert _left(tmp_path) == ["photos"]
    assert _left(tmp_path / "photos") == ["summer.jpg"]


def test_a_file_in_the_place_of_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file")
    with raises(UsageError, code="is-file", path=tmp_path / "out"):
        check_replaceable(tmp_path / "out", LAYOUT)


def test_a_folder_has_the_rights_that_any_new_folder_has(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    with atomic_folder(tmp_path / "ours", LAYOUT):
        pass
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "plain").stat().st_mode


# Digests


def test_a_digest_does_not_depend_on_how_the_bytes_come_but_on_every_one_of_them(tmp_path: Path) -> None:
    whole = digest(iter([b"snow and ice"]))
    assert digest(iter([b"snow", b"", b" and ice"])) == whole
    assert digest(iter([b"snow and icE"])) != whole
    (tmp_path / "a").write_bytes(b"snow and ice")
    assert file_digest(tmp_path / "a") == whole


def test_a_digest_is_the_same_next_year() -> None:
    assert digest(iter([])) == "cae66941d9efbd404e4d88758ea67670"


# Compression and lines

SUFFIXES = (".gz", ".bz2", ".xz", ".zst")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_the_same_content_gives_the_same_compressed_bytes(
    tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, now in (("a", 1e9), ("b", 2e9)):
        monkeypatch.setattr(time, "time", lambda now=now: now)
        with create_bytes(tmp_path / f"{name}{suffix}") as stream:
            stream.write(b"ice\n" * 100)
    assert (tmp_path / f"a{suffix}").read_bytes() == (tmp_path / f"b{suffix}").read_bytes()


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_what_is_compressed_by_its_suffix_is_read_by_its_first_bytes(tmp_path: Path, suffix: str) -> None:
    content = b"".join(b"%d is a number\n" % n**3 for n in range(40_000))
    with create_bytes(tmp_path / f"a.txt{suffix}") as stream:
        stream.write(content)
    renamed = (tmp_path / f"a.txt{suffix}").rename(tmp_path / "a.txt")
    assert renamed.stat().st_size < len(content)
    assert is_compressed(renamed, FormatError)
    with open_bytes(renamed, FormatError) as stream:
        assert stream.readline() == b"0 is a number\n"
        assert stream.read() == content[14:]
    assert read_head(renamed, FormatError) == content[: 1 << 17]


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("error", [CorpusError, FormatError, LexiconError, DatasetError])
def test_a_truncated_archive_is_an_error_of_the_reader(tmp_path: Path, suffix: str, error: type[InputError]) -> None:
    path = tmp_path / f"a.txt{suffix}"
    with create_bytes(path) as stream:
        stream.write(b"".join(b"%d is a number\n" % n**3 for n in range(4_000)))
    path.write_bytes(path.read_bytes()[:-9])
    with raises(error, code="damaged-archive", path=path), open_bytes(path, error) as stream:
        while stream.read(1 << 16):
            pass


def test_letters_that_begin_like_an_archive_are_text(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"BZh9 is how bzip2 begins\n")
    assert [*read_lines(tmp_path / "a.txt", DatasetError)] == [(1, "BZh9 is how bzip2 begins")]


def test_what_a_caller_raises_is_not_taken_for_damage(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"fine\n")
    with pytest.raises(EOFError, match="mine"), open_bytes(tmp_path / "a.txt", FormatError):
        raise EOFError("mine")


@pytest.mark.parametrize("suffix", ["", *SUFFIXES])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_lines_have_numbers_and_no_breaks(tmp_path: Path, suffix: str, encoding: str) -> None:
    path = tmp_path / f"a.txt{suffix}"
    with create_bytes(path) as stream:
        stream.write("eins\r\n\nzwei drei\rvier\nfünf\u2028sechs".encode(encoding))
    assert [*read_lines(path, DatasetError)] == [
        (1, "eins"),
        (2, ""),
        (3, "zwei drei"),
        (4, "vier"),
        (5, "fünf\u2028sechs"),
    ]


def test_a_line_that_is_not_utf8_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"ice\ncaf\xe9\n")
    with raises(DatasetError, code="encoding", path=tmp_path / "a.txt", line=2, match="0xe9"):
        list(read_lines(tmp_path / "a.txt", DatasetError))


def test_a_line_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stillvec.files.text_lines._MAX_LINE", 1000)
    (tmp_path / "a.txt").write_bytes(b"ice\n" + b"x" * 5000)
    with raises(LexiconError, path=tmp_path / "a.txt", line=2, match="1,000"):
        list(read_lines(tmp_path / "a.txt", LexiconError))


def test_the_umask_is_never_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To read it, `os.umask` sets it: the files of other threads would be world-writable for a moment."""
    monkeypatch.delattr("os.umask")
    with atomic_file(tmp_path / "a") as part:
        part.write_text("a")
    with atomic_folder(tmp_path / "b", LAYOUT):
        pass
