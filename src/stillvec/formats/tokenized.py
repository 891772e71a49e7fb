"""What model2vec and sentence-transformers share: a table of numbers, and a `tokenizer.json` that finds its words.

The tokenizer finds words as we do (`vocabulary.finding`): the same pattern, case and terms of several words.
"""

from __future__ import annotations

import json
from itertools import chain, compress, count
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import FormatError
from stillvec.formats.tensors import map_tensors
from stillvec.formats.vector_table import assemble, storable
from stillvec.vectors import WordVectors
from stillvec.vocabulary.word_matcher import multiword_terms, word_tokenizer

WEIGHTS, TOKENIZER, MODULES = "model.safetensors", "tokenizer.json", "modules.json"
STATIC = "sentence_transformers.models.StaticEmbedding"
_BROKEN = (
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    IndexError,
    OverflowError,
    RecursionError,
)  # JSON of another shape


def with_unknown(vectors: WordVectors) -> Any:
    """A tokenizer that gives row + 1 for each word and 0, `[UNK]`, for any other."""
    from tokenizers.models import WordLevel

    unknown = _free("[UNK]", vectors.vocabulary.index)
    rows = {word: row for row, word in enumerate(vectors.words, 1)}
    return _finding(WordLevel({unknown: 0, **rows}, unk_token=unknown), vectors)


def without_unknown(vectors: WordVectors) -> Any:
    """A tokenizer that gives the row of each word and nothing for any other.

    `WordLevel` must have a token for unknown words. A BPE without merges or such a token gives a piece that is in its
    table as a whole, and else its characters that are: none, since words have one sign before them, characters two.
    """
    from tokenizers.models import BPE
    from tokenizers.pre_tokenizers import Metaspace, Sequence

    firsts = {word[0] for word in vectors.words}
    mark = next(sign for sign in map(chr, chain([0x2581], range(0xE000, 0xF8FF))) if sign not in firsts)
    terms = {*multiword_terms(vectors.words)}  # they are found before pieces are cut
    rows = {word if word in terms else mark + word: row for row, word in enumerate(vectors.words)}
    tokenizer = _finding(BPE(rows, [], continuing_subword_prefix=mark + mark, ignore_merges=True), vectors)
    marking = Metaspace(mark, prepend_scheme="always", split=False)
    tokenizer.pre_tokenizer = Sequence([tokenizer.pre_tokenizer, marking])
    return tokenizer


def read_static(path: Path) -> WordVectors:
    """The vectors of a folder of static embeddings: a row a token, weighted and shared as model2vec may have them."""
    place = path / _first_module(path)
    for name in (WEIGHTS, TOKENIZER):
        if not (place / name).is_file():
            raise FormatError(f"The folder {place} has no {name}; it is no folder of static embeddings.")
    arrays = map_tensors(place / WEIGHTS)
    table = arrays.get("embeddings", arrays.get("embedding.weight"))
    if table is None or table.ndim != 2:
        raise FormatError(
            f"{place / WEIGHTS} has no table 'embeddings' or 'embedding.weight', but {', '.join(arrays)}."
        )
    rows, tokens, lowercase = _tokens(place / TOKENIZER)
    matrix = _weighted(place / WEIGHTS, table, arrays, rows)
    good = storable(place / TOKENIZER, tokens)
    if not good.all():  # else the table stays where it is mapped
        tokens, matrix = [*compress(tokens, good)], matrix[good]
    return assemble(path, tokens, matrix, lowercase=lowercase)


def _weighted(file: Path, table: NDArray[Any], arrays: dict[str, NDArray[Any]], rows: list[int]) -> NDArray[Any]:
    wanted = np.array(rows, np.int64)
    try:
        where = arrays["mapping"][wanted] if "mapping" in arrays else wanted
        weights = arrays["weights"][wanted] if "weights" in arrays else None
        matrix = table if np.array_equal(where, np.arange(len(table))) else table[where]
    except IndexError as error:
        raise FormatError(f"{file}: the tokenizer has tokens that the {len(table):,} rows lack ({error}).") from error
    if matrix.dtype.kind != "f":
        matrix = matrix.astype(np.float32)
    with np.errstate(over="ignore", invalid="ignore"):  # too large for float32 is infinite, and found as such
        return matrix if weights is None else np.asarray(matrix * weights[:, None], np.float32)


def _tokens(file: Path) -> tuple[list[int], list[str], bool | None]:
    """Ids and texts of the tokens that are words or pieces, and whether the tokenizer lower-cases."""
    try:
        told = json.loads(file.read_bytes())
        model, added = told["model"], told.get("added_tokens") or []
        unknown, special = model.get("unk_token"), {token["content"] for token in added if token["special"]}
        pieces = model["vocab"]
        if isinstance(pieces, list):  # Unigram's
            unknown = pieces[model["unk_id"]][0] if model.get("unk_id") is not None else None
            pieces = {piece: row for row, (piece, _) in enumerate(pieces)}
        table = {**pieces, **{token["content"]: token["id"] for token in added}}
        marked = model.get("ignore_merges") and not model.get("merges")
        mark = str(model["continuing_subword_prefix"])[:1] if marked else ""
        ordered = sorted((int(row), str(token)) for token, row in table.items() if token not in {unknown, *special})
        lowers = "Lowercase" in json.dumps(told.get("normalizer")) or '"lowercase": true' in json.dumps(
            told["normalizer"]
        )
    except _BROKEN as error:
        raise FormatError(f"{file} is cut short or no tokenizer of the library tokenizers ({error!r}).") from error
    bad = next((pair for pair in ordered[:1] + ordered[-1:] if not 0 <= pair[0] < 1 << 63), None)
    if bad is not None:
        raise FormatError(f"{file}: the token {bad[1]!r} has the row {bad[0]}.")
    return [row for row, _ in ordered], [token.removeprefix(mark) for _, token in ordered], lowers or None


def _first_module(path: Path) -> str:
    if not (path / MODULES).is_file():
        return ""
    try:
        module = json.loads((path / MODULES).read_bytes())[0]
        kind, place = str(module["type"]), str(module["path"])
    except _BROKEN as error:
        raise FormatError(
            f"{path / MODULES} does not list the modules of a sentence transformer ({error!r})."
        ) from error
    if not kind.endswith("StaticEmbedding"):
        raise FormatError(
            f"{path} is a sentence transformer that begins with {kind!r}, which has no vector a word; distil it, or "
            "give a static one (StaticEmbedding)."
        )
    if len(place) > 200 or Path(place).is_absolute() or ".." in Path(place).parts:
        raise FormatError(f"{path / MODULES}: a module lies in a folder inside this one, and {place[:60]!r} is none.")
    return place


def _finding(model: Any, vectors: WordVectors) -> Any:
    from tokenizers import AddedToken, Tokenizer

    lowercase = vectors.vocabulary.lowercase
    like, tokenizer = word_tokenizer([], lowercase), Tokenizer(model)
    tokenizer.normalizer, tokenizer.pre_tokenizer = like.normalizer, like.pre_tokenizer
    tokenizer.add_tokens(
        [AddedToken(word, single_word=True, normalized=True) for word in multiword_terms(vectors.words)]
    )
    return tokenizer


def _free(name: str, taken: Any) -> str:
    names = chain([name], (f"{name[:-1]}{number}]" for number in count(1)))
    return next(each for each in names if each not in taken)
