"""Folders of static embeddings: an embedding table and a `tokenizer.json`.

For `StaticModel.from_pretrained` of model2vec (Tulkens and van Dongen, 2024) and for `SentenceTransformer(folder)`, as
one module, `StaticEmbedding`, which averages the vectors of a text. The tokenizer finds the same words as
`vocabulary.word_matcher`: the same pattern, case and multiword terms.
"""

import json
import warnings
from itertools import chain, compress, count
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import FormatError, StillvecWarning
from stillvec.files import FolderLayout, atomic_folder, read_object
from stillvec.formats.format import Format, Recognizer, damage_error, read_json, require_files
from stillvec.formats.tensors import map_tensors, write_tensors
from stillvec.formats.vector_table import assemble, encode_words, find_storable
from stillvec.vectors import WordVectors
from stillvec.vocabulary.segmenters import SPACES, describe_segmenter
from stillvec.vocabulary.word_matcher import multiword_terms, word_tokenizer

_WEIGHTS, _TOKENIZER, _MODULES, _CONFIG = "model.safetensors", "tokenizer.json", "modules.json", "config.json"
_SENTENCE_CONFIG = "config_sentence_transformers.json"
_MODULE = "sentence_transformers.models.StaticEmbedding"
_MODEL2VEC_SETTINGS = {
    "model_type": "model2vec",
    "architectures": ["StaticModel"],
    "normalize": False,
    "max_length": None,  # texts are not truncated
    "embedding_dtype": "float32",
}
_SENTENCE_SETTINGS: dict[str, object] = {"prompts": {}, "default_prompt_name": None, "similarity_fn_name": "cosine"}
_MALFORMED = (ValueError, KeyError, TypeError, AttributeError, IndexError, OverflowError, RecursionError)


def _mentions(file: str, name: bytes) -> Recognizer:
    return lambda path, head: (path / file).is_file() and name in (path / file).read_bytes()


def read(path: Path) -> WordVectors:
    """One vector per token; model2vec may weight the tokens and let them share rows."""
    folder = path / _find_module(path)
    require_files(folder, (_WEIGHTS, _TOKENIZER), "folder of static embeddings")
    arrays = map_tensors(folder / _WEIGHTS)
    table = arrays.get("embeddings", arrays.get("embedding.weight"))
    if table is None or table.ndim != 2:
        what = "a table 'embeddings' or 'embedding.weight'"
        raise FormatError.expected(what, ", ".join(map(repr, arrays)) or "none", path=folder / _WEIGHTS)
    rows, tokens, lowercase = _read_tokens(folder / _TOKENIZER)
    matrix = _select_rows(folder / _WEIGHTS, table, arrays, rows)
    storable = find_storable(folder / _TOKENIZER, tokens)
    if not storable.all():  # otherwise the table stays memory-mapped
        tokens, matrix = [*compress(tokens, storable)], matrix[storable]
    return assemble(path, tokens, matrix, lowercase=lowercase)


def write_model2vec(vectors: WordVectors, path: Path) -> None:
    encode_words(vectors, path)
    table = np.zeros((len(vectors) + 1, vectors.dim), np.float32)  # the first row is for unknown words
    table[1:] = vectors.matrix
    with atomic_folder(path, _MODEL2VEC_LAYOUT) as part:
        write_tensors(part / _WEIGHTS, {"embeddings": table})
        _tokenizer_with_unknown(vectors).save(str(part / _TOKENIZER), pretty=False)
        _write_json(part / _CONFIG, _MODEL2VEC_SETTINGS)
        _write_json(part / _MODULES, [{"idx": 0, "name": "0", "path": ".", "type": _MODULE}])


def write_sentence_transformers(vectors: WordVectors, path: Path) -> None:
    encode_words(vectors, path)
    with atomic_folder(path, _SENTENCE_LAYOUT) as part:
        write_tensors(part / _WEIGHTS, {"embedding.weight": np.asarray(vectors.matrix, np.float32)})
        _tokenizer_without_unknown(vectors).save(str(part / _TOKENIZER), pretty=False)
        _write_json(part / _SENTENCE_CONFIG, _SENTENCE_SETTINGS)
        _write_json(part / _MODULES, [{"idx": 0, "name": "0", "path": "", "type": _MODULE}])


def _write_json(file: Path, value: object) -> None:
    file.write_text(json.dumps(value, indent=2) + "\n")


def _tokenizer_with_unknown(vectors: WordVectors) -> Any:
    """A tokenizer with the id row + 1 for each word and 0, `[UNK]`, for any other."""
    from tokenizers.models import WordLevel

    names = chain(["[UNK]"], (f"[UNK{number}]" for number in count(1)))
    unknown = next(name for name in names if name not in vectors.vocabulary.index)
    rows = {word: row for row, word in enumerate(vectors.words, 1)}
    return _create_tokenizer(WordLevel({unknown: 0, **rows}, unk_token=unknown), vectors)


def _tokenizer_without_unknown(vectors: WordVectors) -> Any:
    """A tokenizer with the row as id for each word and no token for any other.

    `WordLevel` requires a token for unknown words. A BPE model without merges and unknown token finds a whole word in
    its vocabulary, or else its known characters: none, because words have one mark as prefix and characters two.
    """
    from tokenizers.models import BPE
    from tokenizers.pre_tokenizers import Metaspace, Sequence

    firsts = {word[0] for word in vectors.words}
    mark = next(sign for sign in map(chr, chain([0x2581], range(0xE000, 0xF8FF))) if sign not in firsts)
    terms = {*multiword_terms(vectors.words)}  # they are matched before the text is split
    rows = {word if word in terms else mark + word: row for row, word in enumerate(vectors.words)}
    tokenizer = _create_tokenizer(BPE(rows, [], continuing_subword_prefix=mark + mark, ignore_merges=True), vectors)
    prefix = Metaspace(mark, prepend_scheme="always", split=False)
    tokenizer.pre_tokenizer = Sequence([tokenizer.pre_tokenizer, prefix])
    return tokenizer


def _create_tokenizer(model: Any, vectors: WordVectors) -> Any:
    from tokenizers import AddedToken, Tokenizer

    if (segmenter := vectors.vocabulary.segmenter) != SPACES:
        message = f"The words are {describe_segmenter(segmenter)}; for this format, put spaces between them in texts."
        warnings.warn(message, StillvecWarning, stacklevel=2)
    template, tokenizer = word_tokenizer([], vectors.vocabulary.lowercase), Tokenizer(model)
    tokenizer.normalizer, tokenizer.pre_tokenizer = template.normalizer, template.pre_tokenizer
    terms = multiword_terms(vectors.words)
    tokenizer.add_tokens([AddedToken(term, single_word=True, normalized=True) for term in terms])
    return tokenizer


def _select_rows(file: Path, table: NDArray[Any], arrays: dict[str, NDArray[Any]], tokens: list[int]) -> NDArray[Any]:
    """The weighted rows of the tokens with these ids."""
    ids = np.array(tokens, np.int64)
    try:
        rows = arrays["mapping"][ids] if "mapping" in arrays else ids
        weights = arrays["weights"][ids] if "weights" in arrays else None
        matrix = table if np.array_equal(rows, np.arange(len(table))) else table[rows]
    except IndexError as error:
        raise FormatError.expected("a row for each token", f"{len(table):,} rows ({error})", path=file) from None
    if matrix.dtype.kind != "f":
        matrix = matrix.astype(np.float32)
    with np.errstate(over="ignore", invalid="ignore"):  # overflow gives infinity, which `assemble` reports
        return matrix if weights is None else np.asarray(matrix * weights[:, None], np.float32)


def _read_tokens(file: Path) -> tuple[list[int], list[str], bool | None]:
    """Ids and texts of all tokens but special ones, and whether the tokenizer lower-cases."""
    tokenizer = read_json(file)
    try:
        model, added = tokenizer["model"], tokenizer.get("added_tokens") or []
        unknown, special = model.get("unk_token"), {token["content"] for token in added if token["special"]}
        vocabulary = model["vocab"]
        if isinstance(vocabulary, list):  # Unigram
            unknown = vocabulary[model["unk_id"]][0] if model.get("unk_id") is not None else None
            vocabulary = {token: row for row, (token, _) in enumerate(vocabulary)}
        ids = {**vocabulary, **{token["content"]: token["id"] for token in added}}
        has_mark = model.get("ignore_merges") and not model.get("merges")
        mark = str(model["continuing_subword_prefix"])[:1] if has_mark else ""
        ordered = sorted((int(row), str(token)) for token, row in ids.items() if token not in {unknown, *special})
        normalizer = json.dumps(tokenizer["normalizer"])
    except _MALFORMED as error:
        raise damage_error(file, "a tokenizer of the library tokenizers", repr(error)) from None
    bad = next((pair for pair in ordered[:1] + ordered[-1:] if not 0 <= pair[0] < 1 << 63), None)
    if bad is not None:
        raise FormatError.expected("a row", bad[0], where=f"token {bad[1]!r}", path=file)
    lowercase = "Lowercase" in normalizer or '"lowercase": true' in normalizer or None
    return [row for row, _ in ordered], [token.removeprefix(mark) for _, token in ordered], lowercase


def _find_module(path: Path) -> str:
    """The subfolder of the first module of a sentence transformer."""
    file = path / _MODULES
    if not file.is_file():
        return ""
    modules = read_json(file)
    try:
        kind, folder = str(modules[0]["type"]), str(modules[0]["path"])
    except _MALFORMED as error:
        raise damage_error(file, "the modules of a sentence transformer", repr(error)) from None
    if not kind.endswith("StaticEmbedding"):
        cure = "distill it, or give a static model"
        raise FormatError.expected("one vector per word (StaticEmbedding)", repr(kind), path=file, cure=cure)
    if len(folder) > 200 or Path(folder).is_absolute() or ".." in Path(folder).parts:
        raise FormatError.expected("a subfolder", repr(folder[:60]), path=file, code="outside")
    return folder


_MODEL2VEC_LAYOUT = FolderLayout(
    (_CONFIG, _WEIGHTS, _TOKENIZER, _MODULES), lambda folder: read_object(folder / _CONFIG) == _MODEL2VEC_SETTINGS
)
_SENTENCE_LAYOUT = FolderLayout(
    (_MODULES, _WEIGHTS, _TOKENIZER, _SENTENCE_CONFIG),
    lambda folder: read_object(folder / _SENTENCE_CONFIG) == _SENTENCE_SETTINGS,
)
MODEL2VEC = Format(_mentions(_CONFIG, b"model2vec"), read, write_model2vec, layout=_MODEL2VEC_LAYOUT)
SENTENCE_TRANSFORMERS = Format(
    _mentions(_MODULES, b"StaticEmbedding"), read, write_sentence_transformers, layout=_SENTENCE_LAYOUT
)
