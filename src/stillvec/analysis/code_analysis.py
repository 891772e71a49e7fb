"""Do the bits of words keep attributes apart? Residual entropy of binary or product codes about a lexicon's attributes.

A concept is an attribute: a word has it or not. Of the attributes of a lexicon the most frequent are used, and of the
symbols of a code as many per concept as leave sixteen words per cell (`analysis/residual_entropy.py`).
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stillvec.analysis.residual_entropy import ResidualEntropy, measure_residual_entropy
from stillvec.errors import UsageError
from stillvec.formats.matrix_compression import pack
from stillvec.lexicons import read_attributes
from stillvec.lexicons.word_attributes import LEXNAMES
from stillvec.lexicons.wordnet import find_wordnet
from stillvec.vectors import WordVectors

_CONCEPTS = 16  # the most frequent attributes
_LEAST_SHARE = 0.01  # of the words that have an attribute
_WORDS_PER_CELL = 16


@dataclass(frozen=True)
class CodeAnalysis:
    kind: str  # bits or pq
    n_symbols: int
    concepts: tuple[str, ...]
    entropy: ResidualEntropy


def analyze_codes(vectors: WordVectors, lexicon: str | os.PathLike[str] = "wordnet", *, seed: int = 0) -> CodeAnalysis:
    """The residual entropy of codes about the most frequent attributes of a lexicon.

    Parameters
    ----------
    vectors: codes, as made by the steps `bits` and `quantize:to=pq`.
    lexicon: "wordnet" for its 45 categories, or a file with a word, a tab and attributes per line (default: wordnet).
    seed: of the shuffled words (default: 0).
    """
    kind, symbols = _find_codes(vectors)
    path = find_wordnet() if lexicon == "wordnet" else Path(lexicon)
    attributes = read_attributes(path, "lexnames")
    rows = [row for row, word in enumerate(vectors.words) if attributes.get(word.lower())]
    sets = [attributes[vectors.words[row].lower()] for row in rows]
    counts = Counter(name for names in sets for name in names)
    usable = [name for name, count in counts.items() if _LEAST_SHARE <= count / len(rows) <= 1 - _LEAST_SHARE]
    chosen = sorted(usable, key=lambda name: (-counts[name], name))[:_CONCEPTS]
    if not chosen:
        raise UsageError.expected(
            "attributes that some words have and others lack", f"{len(rows)} words", where=os.fspath(lexicon)
        )
    concepts = np.array([[name in names for name in chosen] for names in sets], np.int64)
    n_values = 1 + int(symbols.max(initial=1))
    limit = max(1, int(np.log(max(len(rows) / _WORDS_PER_CELL, 1)) / np.log(n_values)))
    found = measure_residual_entropy(symbols[rows], concepts, max_symbols=limit, seed=seed)
    names = tuple(LEXNAMES.get(name, name) if path.is_dir() else name for name in chosen)
    return CodeAnalysis(kind, symbols.shape[1], names, found)


def _find_codes(vectors: WordVectors) -> tuple[str, NDArray[Any]]:
    """The symbols of each word (V, symbols)."""
    for kind in ("bits", "pq"):
        arrays = pack(vectors.matrix, kind)
        if arrays is not None and kind == "bits":
            return kind, np.unpackbits(arrays["codes"], axis=1, count=vectors.dim)
        if arrays is not None:
            return kind, arrays["codes"]
    cure = "make them with stillvec refine --step bits"
    raise UsageError.expected("codes of few values, of the steps bits or quantize:to=pq", "other numbers", cure=cure)
