"""The TensorFlow Embedding Projector: a folder of `vectors.tsv`, `metadata.tsv` (word, count) and a config file."""

from itertools import islice
from pathlib import Path

import numpy as np

from stillvec.errors import FormatError
from stillvec.files import FolderLayout, atomic_folder
from stillvec.formats.format import Format, contains_files, decode_text, empty_error, require_files, write_error
from stillvec.formats.numbers import NUMBER, parse, render
from stillvec.formats.vector_table import assemble, encode_words
from stillvec.numerics import iterate_blocks
from stillvec.vectors import WordVectors

_VECTORS, _WORDS, _CONFIG = "vectors.tsv", "metadata.tsv", "projector_config.pbtxt"
_CONFIG_TEXT = (
    f'embeddings {{\n  tensor_name: "words"\n  tensor_path: "{_VECTORS}"\n  metadata_path: "{_WORDS}"\n}}\n'.encode()
)
_NUMBERS = 1 << 16  # numbers per write
_LINES = 1 << 12  # lines per read
_SWAP_TABS = bytes.maketrans(b" \t", b"\t ")


def read(path: Path) -> WordVectors:
    require_files(path, (_VECTORS, _WORDS), "folder of the projector")
    blocks: list[np.ndarray] = []
    with open(path / _VECTORS, "rb") as stream:
        while lines := [line.rstrip(b"\r\n\t ") for line in islice(stream, _LINES)]:
            dim = blocks[0].shape[1] if blocks else lines[0].count(b"\t") + 1
            block = parse(b"\n".join(lines).translate(_SWAP_TABS), len(lines), dim)
            blocks.append(_parse_lines(path / _VECTORS, lines, dim, sum(map(len, blocks))) if block is None else block)
    if not blocks:
        raise empty_error(path / _VECTORS)
    words, counts = _read_words(path / _WORDS)
    return assemble(path, words, np.concatenate(blocks), counts)


def write(vectors: WordVectors, path: Path) -> None:
    words = encode_words(vectors, path)
    if not words:
        raise write_error(path, "there are no words, and without a header the file would be empty")
    lines = zip(words, vectors.vocabulary.counts.tolist(), strict=True)
    with atomic_folder(path, _LAYOUT) as part:
        # with two columns no line is blank, and the projector expects a header
        (part / _WORDS).write_bytes(b"word\tcount\n" + b"".join([b"%b\t%d\n" % line for line in lines]))
        with open(part / _VECTORS, "wb") as stream:
            for _, block in iterate_blocks(vectors.matrix, np.float32, max(1, _NUMBERS // vectors.dim)):
                stream.write(b"".join([row[1:].translate(_SWAP_TABS) + b"\n" for row in render(block)]))
        (part / _CONFIG).write_bytes(_CONFIG_TEXT)


def _read_words(file: Path) -> tuple[list[str], list[int] | None]:
    """The words and, if there is such a column, their counts; a file of one column has no header."""
    text = decode_text(file.read_bytes(), file)
    lines = [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]
    if "\t" not in lines[0]:
        return lines, None
    names = [name.lower() for name in lines[0].split("\t")]
    fields = [line.split("\t") for line in lines[1:]]
    short = next((row for row, line in enumerate(fields, 2) if len(line) != len(names)), None)
    if short is not None:
        got = len(fields[short - 2])
        raise FormatError.expected(f"{len(names)} columns as in line 1", got, path=file, line=short)
    column = next((names.index(name) for name in ("word", "label") if name in names), 0)
    counts = [line[names.index("count")] for line in fields] if "count" in names else None
    bad = next((row for row, count in enumerate(counts or ()) if not count.isdecimal() or len(count) > 18), None)
    if counts is not None and bad is not None:
        raise FormatError.expected("a count below 10^18", repr(counts[bad][:60]), path=file, line=bad + 2)
    return [line[column] for line in fields], None if counts is None else [*map(int, counts)]


def _parse_lines(file: Path, lines: list[bytes], dim: int, before: int) -> np.ndarray:
    """Line by line, to report the one that cannot be read."""
    numbers = np.empty((len(lines), dim), np.float32)
    for row, line in enumerate(lines):
        fields = line.split(b"\t")
        bad = next((field for field in fields if not NUMBER.fullmatch(field)), None)
        if bad is not None or len(fields) != dim:
            got = str(len(fields)) if bad is None else repr(bad.decode(errors="replace"))
            raise FormatError.expected(f"{dim} numbers separated by tabs", got, path=file, line=before + row + 1)
        with np.errstate(over="ignore"):
            numbers[row] = np.array([float(field) for field in fields])
    return numbers


def _is_ours(folder: Path) -> bool:
    return (folder / _CONFIG).is_file() and (folder / _CONFIG).read_bytes() == _CONFIG_TEXT


_LAYOUT = FolderLayout((_CONFIG, _VECTORS, _WORDS), _is_ours)
FORMAT = Format(contains_files(_VECTORS, _WORDS), read, write, layout=_LAYOUT)
