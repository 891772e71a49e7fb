"""Every reader reads damaged files or refuses them in a sentence, in little memory and time.

`make fuzz` gives each reader thousands, all of them together a million. STILLVEC_FUZZ says how many each,
STILLVEC_FUZZ_SEED which; parts of it run side by side with `-k GROUP` or with other seeds.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
from fuzzed_readers import GROUPS, readers_of
from fuzzing import ROOM, Reader, damaged, fuzz, place, whole

FEW = 200
MANY = int(os.environ.get("STILLVEC_FUZZ", 12_500))  # there are over eighty readers
SEED = int(os.environ.get("STILLVEC_FUZZ_SEED", 0))

every_group = pytest.mark.parametrize("group", GROUPS)


def examined(group: str, count: int, seed: int, kept: Path) -> list[str]:
    """What each reader of a group stumbled over; how many inputs it read and refused is printed."""
    found = []
    for reader in readers_of(group):
        began = time.perf_counter()
        outcome = fuzz(reader, count, seed=seed, kept=kept / reader.name.replace(" ", "-"))
        speed = count / (time.perf_counter() - began)
        print(f"{reader.name}: {outcome.taken:,} read, {outcome.refused:,} refused, {speed:,.0f} a second")
        found += outcome.found
    return found


@every_group
def test_damaged_files_are_read_or_refused_in_a_sentence(tmp_path: Path, group: str) -> None:
    found = examined(group, FEW, 0, tmp_path)
    assert not found, "\n\n".join(found)


@pytest.mark.slow
@every_group
def test_a_million_damaged_files_are_read_or_refused_in_a_sentence(tmp_path: Path, group: str) -> None:
    found = examined(group, MANY, SEED + 1, tmp_path)
    assert not found, "\n\n".join(found)


@every_group
def test_what_is_not_damaged_is_read(tmp_path: Path, group: str) -> None:
    """Else nothing behind the first check would be examined."""
    for reader in readers_of(group):
        if reader.name == "vectors gensim":  # a pickle, which is never read
            continue
        for number, files in enumerate(reader.seeds):
            folder = tmp_path / f"{reader.name} {number}"
            place(whole(reader, files), folder)
            if "anything" not in reader.name or number < 3:  # a PDF and random bytes are in it too
                reader.read(folder)


# The watch itself


def _report_of(stumble: Callable[[], object], tmp_path: Path) -> str:
    """What is told of a reader that stumbles over every damaged file."""

    def read(folder: Path) -> object:
        return None if (folder / "a").read_bytes() == b"whole" else stumble()

    outcome = fuzz(Reader("x", read, ({"a": b"whole"},)), 3, seed=0, kept=tmp_path)
    assert outcome.found
    return outcome.found[0]


def test_an_error_that_is_not_ours_is_found_and_its_input_kept(tmp_path: Path) -> None:
    assert "ZeroDivisionError" in _report_of(lambda: 1 // 0, tmp_path)
    assert (tmp_path / "0" / "a").is_file()


def test_a_warning_that_is_not_ours_is_found(tmp_path: Path) -> None:
    assert "DeprecationWarning" in _report_of(lambda: warnings.warn("old", DeprecationWarning, stacklevel=1), tmp_path)


def test_a_reader_that_takes_much_memory_is_found(tmp_path: Path) -> None:
    assert "MemoryError" in _report_of(lambda: bytearray(2 * ROOM), tmp_path)


def test_a_reader_that_does_not_end_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fuzzing.PATIENCE", 1)
    assert "SIGALRM" in _report_of(lambda: time.sleep(60), tmp_path)
    assert (tmp_path / "last" / "a").is_file()


def test_a_reader_that_ends_the_process_is_found(tmp_path: Path) -> None:
    assert "exit 3" in _report_of(lambda: os._exit(3), tmp_path)


def test_the_same_seed_gives_the_same_inputs() -> None:
    (reader, *_) = readers_of("lexicons")
    assert [damaged(reader, 1, number) for number in range(50)] == [damaged(reader, 1, number) for number in range(50)]
    assert len({damaged(reader, 1, number)[2] for number in range(50)}) > 40
