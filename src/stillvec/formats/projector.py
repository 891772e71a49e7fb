"""The TensorFlow Embedding Projector: a folder of `vectors.tsv`, `metadata.tsv` (word, count) and their names."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import numpy as np

from stillvec.errors import FormatError
from stillvec.files import atomic_folder
from stillvec.formats.format import Format
from stillvec.formats.numbers import NUMBER, parse, render
from stillvec.formats.vector_table import assemble, check_numbers, encode_words
from stillvec.vectors import WordVectors

_VECTORS, _WORDS, _CONFIG = "vectors.tsv", "metadata.tsv", "projector_config.pbtxt"
_NUMBERS = 1 << 16  # numbers written at once
_LINES = 1 << 12  # lines read at once
_SPACED = bytes.maketrans(b" \t", b"\t ")


def recognize(path: Path, head: bytes) -> bool:
    return all((path / name).is_file() for name in (_VECTORS, _WORDS))


def read(path: Path) -> WordVectors:
    for name in (_VECTORS, _WORDS):
        if not (path / name).is_file():
            raise FormatError(f"{path} has no {name}; a folder of the projector holds {_VECTORS} and {_WORDS}.")
    blocks: list[np.ndarray] = []
    with open(path / _VECTORS, "rb") as stream:
        while lines := [line.rstrip(b"\r\n\t ") for line in islice(stream, _LINES)]:
            dim = blocks[0].shape[1] if blocks else lines[0].count(b"\t") + 1
            block = parse(b"\n".join(lines).translate(_SPACED), len(lines), dim)
            blocks.append(_slow(path / _VECTORS, lines, dim, sum(map(len, blocks))) if block is None else block)
    if not blocks:
        raise FormatError(f"{path / _VECTORS} is empty, and vectors were to be read from it.")
    words, counts = _words(path / _WORDS)
    return assemble(path, words, np.concatenate(blocks), counts)


def write(vectors: WordVectors, path: Path) -> None:
    if not len(vectors) and vectors.dim:
        raise FormatError(f"{path} was not written: there are no words, and without a header the file would be empty.")
    check_numbers(vectors, path, np.float32)
    words = encode_words(vectors, path)
    lines = zip(words, vectors.vocabulary.counts.tolist(), strict=True)
    with atomic_folder(path, _WORDS) as part:
        # two columns, so that a word is never a blank line, and the header is one
        (part / _WORDS).write_bytes(b"word\tcount\n" + b"".join([b"%b\t%d\n" % line for line in lines]))
        with open(part / _VECTORS, "wb") as stream:
            step = max(1, _NUMBERS // vectors.dim)
            for first in range(0, len(words), step):
                rows = render(vectors.matrix[first : first + step])
                stream.write(b"".join([row[1:].translate(_SPACED) + b"\n" for row in rows]))
        (part / _CONFIG).write_text(
            f'embeddings {{\n  tensor_name: "words"\n  tensor_path: "{_VECTORS}"\n  metadata_path: "{_WORDS}"\n}}\n'
        )


def _words(file: Path) -> tuple[list[str], list[int] | None]:
    """The words and, where there is such a column, their counts; only several columns have a header."""
    raw = file.read_bytes()
    try:
        lines = [line.removesuffix("\r") for line in raw.decode().removesuffix("\n").split("\n")]
    except UnicodeDecodeError as error:
        raise FormatError(f"{file} is not UTF-8 ({error}).") from error
    if "\t" not in lines[0]:
        return lines, None
    names = [name.lower() for name in lines[0].split("\t")]
    fields = [line.split("\t") for line in lines[1:]]
    short = next((row for row, line in enumerate(fields, 2) if len(line) != len(names)), None)
    if short is not None:
        raise FormatError(f"{file}:{short}: {len(names)} columns are wanted, as in line 1, and the line has others.")
    column = next((names.index(name) for name in ("word", "label") if name in names), 0)
    counts = [line[names.index("count")] for line in fields] if "count" in names else None
    if counts is not None and not all(count.isdecimal() and len(count) < 19 for count in counts):
        raise FormatError(f"{file}: the column 'count' holds what is no count.")
    return [line[column] for line in fields], None if counts is None else [*map(int, counts)]


def _slow(file: Path, lines: list[bytes], dim: int, before: int) -> np.ndarray:
    """Line by line, to name the one that cannot be read."""
    numbers = np.empty((len(lines), dim), np.float32)
    for row, line in enumerate(lines):
        fields = line.split(b"\t")
        bad = next((field for field in fields if not NUMBER.fullmatch(field)), None)
        if bad is not None or len(fields) != dim:
            came = f"{len(fields)} came" if bad is None else f"{bad.decode(errors='replace')!r} came"
            raise FormatError(f"{file}:{before + row + 1}: {dim} numbers with tabs between are wanted, and {came}.")
        with np.errstate(over="ignore"):
            numbers[row] = np.array([float(field) for field in fields])
    return numbers


FORMAT = Format(recognize, read, write)
