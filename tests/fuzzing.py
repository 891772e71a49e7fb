"""Real inputs, damaged at random, given to a reader: it may read them or refuse them with an error of ours, no more.

What is read is a few files in a folder. A change is of the kind that files suffer (bytes flipped, cut, doubled, mixed
with another file) or that people attempt (absurd sizes, deep nesting, numbers of other scripts, types that are not
meant). The reader works in a child with little memory and a watch on its time; what it may not do is kept.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import multiprocessing
import os
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from stillvec.errors import StillvecError, StillvecWarning

Files = Mapping[str, bytes]

ROOM = 256 << 20  # bytes that reading may take; an input has some thousands
PATIENCE = 30  # seconds for one input
_MOST = 20  # different failures that are told

_NUMBERS = (
    "0 -1 1 2 7 255 256 65535 65536 2147483647 2147483648 4294967296 9223372036854775807 9223372036854775808 "
    "18446744073709551616 1e309 -1e309 1e-400 1e39 nan inf -inf -0 +1 .5 5. 0x10 1_0 00 ٣ ² ½ 1e 1.2.3 true null None"
)
_TOKENS = (
    *_NUMBERS.encode().split(), b"9" * 400, b"9" * 5000,
    *"\ufeff \u2028 \x85 İ e\u0301 😀 <unk> </s> \xa0".encode().split(b" "),
    *b"\0 \n \t \r \" ' \\ { } [ ] ( ) < > & ; | # = : , / % $HOME ${x} ~ .. - \r\n".split(b" "), b" ", b"  ", b"\n\n",
    b"\xff", b"\xed\xa0\x80", b"\xc0\x80", b"\xf5\x80\x80\x80", b"\xff\xfe", b"\x80\x04", b"[" * 3000,
    b'{"a":' * 50_000, b"(" * 500, b"-" * 500, b"[[" * 40, b"{{" * 40, b"<" * 40, b"{|" * 40, b"a" * 5000, b"<!--",
    b"<ref>", b"&#xD800;", b"&#0;", b"\\ud800", b"\\u0000", b"../..", b"\n[a]\n", b'"""', b"{}", b"[]", b"= 1\n",
    b"= [[1]]\n", b'= {a = "b"}\n', b"[1, 'a']",
)  # fmt: skip
_BOUNDS = (0, 1, 2, 8, 127, 128, 255, 32767, 65535, 65536, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**63, 2**64 - 1)
_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2, 3.5, 1e308, float("nan"), float("inf"), 2**31, 2**63, 2**64, 10**30, -(2**63), "",
    "a", "\0", "\ud800", "1", "F32", "I8", "BF16", "int8", "..", "/", [], {}, [[]], [None], {"": None}, [1, 2],
    ["a"], {"a": 1},
)  # fmt: skip
_FIELD = re.compile(rb"[^\s,=|:\"'\[\]{}()]+")


@dataclass(frozen=True)
class Reader:
    """Who reads, what real inputs look like, and which of their files are changed, inside their packing or outside."""

    name: str
    read: Callable[[Path], object]  # of the folder that holds the files
    seeds: tuple[Files, ...]
    pack: Callable[[bytes], bytes] | None = None  # of seeds of one file
    still: tuple[str, ...] = ()  # files that nobody reads


@dataclass(frozen=True)
class Outcome:
    """How many inputs were read, how many were refused, and what else happened."""

    taken: int
    refused: int
    found: tuple[str, ...]


def fuzz(reader: Reader, count: int, *, seed: int, kept: Path, first: int = 0) -> Outcome:
    """Give a reader `count` damaged inputs in a child; those it stumbled over lie in `kept`."""
    shared = Path("/dev/shm")
    directory = Path(tempfile.mkdtemp(prefix="stillvec-fuzz-", dir=shared if shared.is_dir() else None))
    context = multiprocessing.get_context("fork")
    answer, connection = context.Pipe(duplex=False)
    child = context.Process(target=_work, args=(reader, range(first, first + count), seed, directory, kept, connection))
    try:
        place(whole(reader, reader.seeds[0]), directory)
        with contextlib.suppress(StillvecError):
            reader.read(directory)  # what it imports takes memory of its own
        child.start()
        connection.close()
        try:
            result: Outcome = answer.recv()
        except EOFError:  # it was ended: by the watch, by the system, or by itself
            child.join()
            shutil.copytree(directory, kept / "last", dirs_exist_ok=True)
            reason = signal.Signals(-child.exitcode).name if (child.exitcode or 0) < 0 else f"exit {child.exitcode}"
            result = Outcome(0, 0, (f"the reader was ended ({reason}) by what lies in {kept / 'last'}",))
        child.join()
        return result
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def damaged(reader: Reader, seed: int, number: int) -> tuple[Files, str, bytes]:
    """The files of an input, the one of them that is changed, and how it is now."""
    choose = random.Random(f"{seed} {reader.name} {number}")
    files = choose.choice(reader.seeds)
    name = choose.choice([each for each in files if each not in reader.still])
    others = [each[name] for each in reader.seeds if name in each]
    inside = reader.pack is not None and choose.random() < 0.6
    content = files[name] if inside or reader.pack is None else reader.pack(files[name])
    for _ in range(choose.choice((1, 1, 1, 2, 2, 3, 6))):
        content = _changed(choose, content, choose.choice(others))
    return files, name, reader.pack(content) if inside and reader.pack is not None else content


def whole(reader: Reader, files: Files) -> Files:
    """A real input as it would lie there."""
    if reader.pack is None:
        return files
    return {name: each if name in reader.still else reader.pack(each) for name, each in files.items()}


def place(files: Files, folder: Path) -> None:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def _work(reader: Reader, numbers: range, seed: int, directory: Path, kept: Path, expected: Any) -> None:
    found: dict[str, str] = {}
    taken = 0
    sys.unraisablehook = lambda what: found.setdefault(repr(what.exc_value), f"{what.err_msg} {what.exc_value!r}")
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # ends the child, wherever it is
    faulthandler.register(signal.SIGALRM, chain=True)
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    torch.set_num_threads(1)  # those of the parent are not here, and would be waited for
    _narrow(ROOM)
    there: Files = {}
    for number in numbers:
        files, name, content = damaged(reader, seed, number)
        if files is not there:
            shutil.rmtree(directory)
            directory.mkdir()
            place(files, directory)
            there = files
        (directory / name).unlink(missing_ok=True)  # it may be mapped
        (directory / name).write_bytes(content)
        signal.alarm(PATIENCE)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                warnings.simplefilter("ignore", StillvecWarning)
                reader.read(directory)
            taken += 1
        except StillvecError:
            pass
        except BaseException as error:
            text = "".join(traceback.format_exception(error))
            where = next(
                (each for each in reversed(traceback.extract_tb(error.__traceback__)) if "stillvec" in each.filename),
                None,
            )
            key = f"{type(error).__name__} {where and (where.filename, where.lineno)}"
            if key not in found and len(found) < _MOST:
                found[key] = f"{reader.name}, input {number} of seed {seed}: {name}\n{text}"
                shutil.copytree(directory, kept / f"{number}", dirs_exist_ok=True)
        finally:
            signal.alarm(0)
        if files.get(name) is not None:
            (directory / name).unlink(missing_ok=True)
            (directory / name).write_bytes(files[name])
    expected.send(Outcome(taken, len(numbers) - taken, tuple(found.values())))
    expected.close()


def _narrow(directory: int) -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0]) if sys.platform == "linux" else 0
    if pages:
        limit = pages * resource.getpagesize() + directory
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _changed(choose: random.Random, content: bytes, other: bytes) -> bytes:
    if choose.random() < 0.4:
        tree = _changed_tree(choose, content)
        if tree is not None:
            return tree
    return choose.choice(_CHANGES)(choose, content, other)


def _changed_tree(choose: random.Random, content: bytes) -> bytes | None:
    """JSON, a line of JSON lines or the header of safetensors, with another value somewhere; None for all else."""
    if content[8:10] in (b'{"', b"{}") and len(content) > 10:
        end = 8 + int.from_bytes(content[:8], "little")
        inner = _changed_json(choose, content[8:end])
        return None if inner is None else len(inner).to_bytes(8, "little") + inner + content[end:]
    if content[:1] not in (b"{", b"["):
        return None
    whole = _changed_json(choose, content)
    if whole is not None:
        return whole
    lines = content.split(b"\n")
    at = choose.randrange(len(lines))
    line = _changed_json(choose, lines[at])
    return None if line is None else b"\n".join([*lines[:at], line, *lines[at + 1 :]])


def _changed_json(choose: random.Random, text: bytes) -> bytes | None:
    try:
        tree = json.loads(text)
    except (ValueError, RecursionError):
        return None
    inside: list[tuple[Any, Any]] = []
    waiting = [tree]
    while waiting:
        each = waiting.pop()
        keys = [*each] if isinstance(each, dict) else [*range(len(each))] if isinstance(each, list) else []
        inside += [(each, key) for key in keys]
        waiting += [each[key] for key in keys]
    if not inside or choose.random() < 0.02:
        return json.dumps(choose.choice(_VALUES)).encode()
    holder, key = choose.choice(inside)
    how = choose.randrange(8)
    if how == 0:
        del holder[key]
    elif how == 1 and isinstance(holder, dict):
        holder[choose.choice(["", "a", "format", "dtype", "\0", "__metadata__"])] = holder.pop(key)
    elif how == 2:
        holder[key] = (
            choose.choice(inside)[0] if choose.random() < 0.1 else choose.choice([[holder[key]], {"a": holder[key]}])
        )
    else:
        holder[key] = choose.choice(_VALUES)
    try:
        return json.dumps(tree, ensure_ascii=choose.random() < 0.5).encode("utf-8", "surrogatepass")
    except ValueError:  # a circle
        return b"[" * 100_000


def _flipped(choose: random.Random, content: bytes, other: bytes) -> bytes:
    bits = bytearray(content or b"\0")
    for _ in range(choose.choice((1, 1, 2, 8))):
        bits[choose.randrange(len(bits))] ^= 1 << choose.randrange(8)
    return bytes(bits)


def _replaced(choose: random.Random, content: bytes, other: bytes) -> bytes:
    begin = choose.randrange(len(content) + 1)
    length = choose.choice((0, 0, 1, 4, 16))
    return content[:begin] + choose.choice(_TOKENS) + content[begin + length :]


def _refilled(choose: random.Random, content: bytes, other: bytes) -> bytes:
    """Another field: a word, a number, a name."""
    at = choose.randrange(len(content) + 1)
    field = _FIELD.search(content, at) or _FIELD.search(content)
    if field is None:
        return content + choose.choice(_TOKENS)
    return content[: field.start()] + choose.choice(_TOKENS) + content[field.end() :]


def _cut(choose: random.Random, content: bytes, other: bytes) -> bytes:
    return content[: choose.randrange(len(content) + 1)]


def _without(choose: random.Random, content: bytes, other: bytes) -> bytes:
    begin = choose.randrange(len(content) + 1)
    return content[:begin] + content[begin + choose.choice((1, 2, 4, 8, 64, 1024)) :]


def _twice(choose: random.Random, content: bytes, other: bytes) -> bytes:
    begin = choose.randrange(len(content) + 1)
    piece = content[begin : begin + choose.choice((1, 4, 16, 256))]
    return content[:begin] + piece * choose.choice((1, 1, 2, 100)) + content[begin:]


def _spliced(choose: random.Random, content: bytes, other: bytes) -> bytes:
    return content[: choose.randrange(len(content) + 1)] + other[choose.randrange(len(other) + 1) :]


def _sized(choose: random.Random, content: bytes, other: bytes) -> bytes:
    """Another whole number, as binary headers hold them."""
    size = choose.choice((1, 2, 4, 8))
    begin = choose.randrange(max(1, min(len(content), choose.choice((64, 256, 1 << 20)))))
    number = (choose.choice(_BOUNDS) & (1 << 8 * size) - 1).to_bytes(size, choose.choice(("little", "big")))
    return content[:begin] + number + content[begin + size :]


def _lined(choose: random.Random, content: bytes, other: bytes) -> bytes:
    """Lines in another order, left out or said again."""
    lines = content.split(b"\n")
    how = choose.randrange(4)
    if how == 0:
        choose.shuffle(lines)
    elif how == 1:
        del lines[choose.randrange(len(lines))]
    elif how == 2:
        lines.insert(choose.randrange(len(lines) + 1), choose.choice(lines))
    else:
        lines.insert(choose.randrange(len(lines) + 1), choose.choice((*other.split(b"\n"), *_TOKENS)))
    return b"\n".join(lines)


_CHANGES = (_flipped, _replaced, _refilled, _refilled, _cut, _without, _twice, _spliced, _sized, _lined)
