"""The explorer page: one HTML file with its style and script; with its data inside, it needs no server.

The data are the most frequent words, quantized vectors, maps, and all details of a word.
"""

import html
import json
import os
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import numpy as np

from stillvec import __version__
from stillvec.errors import UsageError
from stillvec.exploration.byte_text import encode_base64
from stillvec.exploration.explorer import N_LAYER_NEIGHBOURS, Explorer
from stillvec.exploration.word_map import compute_map
from stillvec.files import atomic_file
from stillvec.numerics import unit_rows
from stillvec.progress import Progress
from stillvec.report.html_markup import plain
from stillvec.report.web_page import fill_template, join_assets, read_asset
from stillvec.vectors import WordVectors
from stillvec.vocabulary.inflections import stem_term

SCRIPTS = (  # joined in this order
    *("source.js", "projection.js", "density.js", "map_input.js", "map.js", "state.js", "words.js", "axes.js"),
    *("documents.js", "fields.js", "selection.js", "map_controls.js", "map_view.js", "page.js"),
)
N_QUOTES = 3  # sentences per word
_N_COMPARED = 200  # words whose cosines are compared before and after quantization


def build_live_page() -> tuple[str, str]:
    """The page that queries a server, and its content security policy."""
    return _build_page("", "'self'")


def build_export_page(data: dict[str, Any]) -> str:
    """The page with its data inside; it may connect to nothing."""
    # no "<" of a word may end the element; JSON reads \u003c as the same character
    text = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    return _build_page(f'<script type="application/json" id="data">{text}</script>\n', "'none'")[0]


def _build_page(data: str, connect: str) -> tuple[str, str]:
    parts, policy = join_assets(__package__, "style.css", SCRIPTS, connect)
    in_page = policy.replace("; frame-ancestors 'none'", "")  # which is valid in a header only
    parts |= {"policy": html.escape(in_page), "version": __version__, "data": data}
    return fill_template(read_asset(__package__, "page.html"), parts), policy


def export_steps(
    explorer: Explorer, path: str | os.PathLike[str], n_words: int = 5000
) -> Generator[Progress, None, int]:
    """Write the page with its data as one file; returns the number of words in its largest set."""
    if explorer.index is not None:
        raise UsageError.conflict("An exported page cannot search documents", cure="leave out the index, or serve it")
    if Path(path).is_dir():
        raise UsageError.expected("a file to write", "a folder", path=path)
    data = yield from build_page_data(explorer, n_words)
    with atomic_file(Path(path)) as part:
        part.write_text(build_export_page(data), "utf-8")
    return max(int(facts["words"]) for facts in data["sets"])


def build_page_data(
    explorer: Explorer, n_words: int = 5000, *, with_map: bool = True
) -> Generator[Progress, None, dict[str, Any]]:
    """The data of a page with the `n_words` most frequent words of each set."""
    if n_words < 10:
        raise UsageError.expected("at least 10 words", n_words, where="exported page")
    data = explorer.describe() | {"data": [], "maps": {}, "fields": {}, "relations": {}, "parts": {}}
    for (name, vectors), facts in zip(explorer.sets.items(), data["sets"], strict=True):
        words = [plain(word) for word in vectors.words[:n_words]]
        facts["whole"], facts["words"] = facts["words"], len(words)
        packed, facts["off"] = _pack_vectors(vectors, words)
        data["data"].append(packed)
        if with_map:
            data["maps"][name] = yield from _build_maps(explorer, name, n_words)
            data["fields"][name] = explorer.describe_fields(name, n_words) | {"counts": None}  # those of the set
        if explorer.relations is not None:
            data["relations"] |= {word: related for word in words if (related := explorer.find_relations(word))}
            data["parts"] |= {word: part for word in words if (part := explorer.relations.part(word))}
    all_words = [*dict.fromkeys(word for packed in data["data"] for word in packed["words"])]
    data["senses"] = {word: senses for word in all_words if (senses := explorer.find_senses(word))}
    data["lists"] = explorer.describe_lists()
    data["layers"] = {name: _find_neighbours(vectors, all_words) for name, vectors in explorer.layers.items()}
    yield from _add_sentences(explorer, all_words, data)
    return data


def _build_maps(explorer: Explorer, name: str, n_words: int) -> Generator[Progress, None, dict[str, Any]]:
    """The maps of a set by projection."""
    maps = {}
    for method in explorer.projections:
        word_map = yield from compute_map(explorer.sets[name], n_words, method=method)
        maps[method] = explorer.pack_map(name, word_map) | {"words": None}  # those of the set
    return maps


def _add_sentences(explorer: Explorer, words: list[str], data: dict[str, Any]) -> Generator[Progress, None, None]:
    if explorer.reader is None:
        return
    start = time.perf_counter()
    vocabulary = next(iter(explorer.sets.values())).vocabulary
    for examples in explorer.reader.find_many(words, vocabulary, N_QUOTES):
        data |= {"sentences": examples.quotes, "read": examples.n_sentences, "ended": examples.complete}
        yield Progress("finding sentences", examples.n_sentences, None, "sentences", time.perf_counter() - start)


def _find_neighbours(vectors: WordVectors, words: list[str]) -> dict[str, list[str]]:
    """The neighbours of each word that the vectors of a layer contain."""
    known = [word for word in words if word in vectors]
    neighbours = vectors.nearest_batch(known, N_LAYER_NEIGHBOURS)
    return {word: [plain(other) for other, _ in near] for word, near in zip(known, neighbours, strict=True)}


def _number_stems(vectors: WordVectors, words: list[str]) -> list[int] | None:
    """A number per word, equal for forms of one word; None without a stemmer: the page then compares beginnings."""
    if vectors.inflections.language != "en":
        return None
    numbers: dict[str, int] = {}
    return [numbers.setdefault(stem_term(word), len(numbers)) for word in words]


def _pack_vectors(vectors: WordVectors, words: list[str]) -> tuple[dict[str, Any], float]:
    """Rows as bytes, each scaled to its largest value, since a cosine does not depend on lengths; lengths apart.

    And the largest error of a cosine, between sampled words and all words.
    """
    rows = np.asarray(vectors.matrix[: len(words)], np.float32)
    largest = np.abs(rows).max(axis=1, keepdims=True, initial=0)
    quantized = np.round(rows / np.where(largest > 0, largest, 1) * 127).astype(np.int8)
    norms = np.linalg.norm(rows, axis=1).astype("<f4")
    before, after = (unit_rows(table, np.float32) for table in (rows, quantized))
    sample = np.random.default_rng(0).permutation(len(rows))[:_N_COMPARED]
    error = float(np.abs(before[sample] @ before.T - after[sample] @ after.T).max())
    packed = {
        "words": words,
        "counts": vectors.vocabulary.counts[: len(words)].tolist(),
        "lowercase": vectors.vocabulary.lowercase,
        "q": encode_base64(quantized),
        "n": encode_base64(norms),
        "stems": _number_stems(vectors, words),
    }
    return packed, error
