"""Encoders of whole texts to compare vectors with: other static models, a weighted mean, and controls.

model2vec:FOLDER    a model2vec folder, such as potion-base-8M, by its own `encode`
wordllama           WordLlama with the 256 dimensions in its package, by its own `embed`
sif:VECTORS         vectors weighted by smooth inverse frequency, a / (a + f) with a = 1e-3 (Arora et al. 2017)
random              the mean of one random vector per word, of 256 dimensions: only which words two texts share
length              only the number of characters
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
import importlib.util
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import UsageError
from stillvec.evaluation.answer_cache import digest_folder
from stillvec.evaluation.candidates import Encoder
from stillvec.formats import load
from stillvec.formats.request import digest_vectors
from stillvec.refinement.sif import weigh_words
from stillvec.vectors import WordVectors
from stillvec.vocabulary.word_numbering import WordNumbering

_A = 1e-3  # of SIF
_DIM = 256  # of random vectors, that of potion and WordLlama
_QUARTER = np.pi / 2 / np.log(1e6)  # texts of up to a million characters within a right angle


@dataclass(frozen=True)
class Model2VecEncoder:
    """A model2vec folder, encoded by model2vec."""

    folder: str

    @cached_property
    def identity(self) -> str:
        return f"model2vec {digest_folder(Path(self.folder))}"

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        static = importlib.import_module("model2vec").StaticModel.from_pretrained(self.folder)
        return np.asarray(static.encode([*texts]), np.float32)


@dataclass(frozen=True)
class WordLlamaEncoder:
    """The model in the package wordllama."""

    @cached_property
    def identity(self) -> str:
        return f"wordllama {importlib.metadata.version('wordllama')}"

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        package = importlib.import_module("wordllama")
        # without this folder, version 0.4 does not find the tokenizer that it contains
        model = package.WordLlama.load(cache_dir=Path(str(package.__file__)).parent, disable_download=True)
        return np.asarray(model.embed([*texts]), np.float32)


@dataclass(frozen=True)
class SifEncoder:
    """Vectors weighted by smooth inverse frequency; without counts, frequencies are estimated by rank."""

    vectors: WordVectors

    @cached_property
    def identity(self) -> str:
        return f"sif {_A} {digest_vectors(self.vectors)}"

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.asarray(self.vectors.encode([*texts], weights=weigh_words(self.vectors, _A)), np.float32)


@dataclass(frozen=True)
class RandomEncoder:
    """The mean of a random vector per word, which depends only on the word."""

    identity: str = f"random words {_DIM}"

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        numbering = WordNumbering()
        numbers, lengths = numbering.number([*texts])
        words = [hashlib.blake2b(word.encode("utf-8", "surrogatepass")).digest()[:8] for word in numbering.pop_new()]
        table = np.zeros((len(words), _DIM), np.float32)
        for row, digest in zip(table, words, strict=True):
            row[:] = np.random.default_rng(int.from_bytes(digest, "little")).standard_normal(_DIM, np.float32)
        rows = np.zeros((len(texts), _DIM), np.float32)
        np.add.at(rows, np.repeat(np.arange(len(texts)), lengths), table[numbers])
        return np.asarray(rows / np.maximum(lengths, 1)[:, None], np.float32)


@dataclass(frozen=True)
class LengthEncoder:
    """A direction in the plane that turns with the logarithm of the number of characters."""

    identity: str = "length"

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        angles = _QUARTER * np.log1p([len(text) for text in texts])
        return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


def open_baselines(texts: Iterable[str]) -> dict[str, Encoder]:
    """The encoders by name: the kind, with its source where a kind occurs twice."""
    opened: dict[str, Encoder] = {}
    for text in dict.fromkeys(texts):
        kind, _, source = text.partition(":")
        opened[f"{kind} {Path(source).name}" if kind in opened else kind] = parse_baseline(text)
    return opened


def parse_baseline(text: str) -> Encoder:
    """The encoder for a baseline of the list above; fails before any work if it cannot be used."""
    kind, _, source = text.partition(":")
    if kind not in BASELINES:
        raise UsageError.unknown("baseline", kind, BASELINES)
    return BASELINES[kind](source)


def _open_model2vec(folder: str) -> Encoder:
    if not Path(folder).is_dir() or not folder:
        wanted = "model2vec:FOLDER with a folder that model2vec wrote"
        raise UsageError.expected(wanted, repr(f"model2vec:{folder}"), where="--baseline")
    _require("model2vec")
    return Model2VecEncoder(folder)


def _open_wordllama(source: str) -> Encoder:
    _refuse(source, "wordllama")
    _require("wordllama")
    return WordLlamaEncoder()


def _open_sif(source: str) -> Encoder:
    if not source:
        raise UsageError.expected("sif:VECTORS", repr("sif"), where="--baseline")
    return SifEncoder(load(source))


def _open_random(source: str) -> Encoder:
    _refuse(source, "random")
    return RandomEncoder()


def _open_length(source: str) -> Encoder:
    _refuse(source, "length")
    return LengthEncoder()


BASELINES: dict[str, Callable[[str], Encoder]] = {
    "model2vec": _open_model2vec,
    "wordllama": _open_wordllama,
    "sif": _open_sif,
    "random": _open_random,
    "length": _open_length,
}


def _refuse(source: str, kind: str) -> None:
    if source:
        raise UsageError.expected(repr(kind), repr(f"{kind}:{source}"), where="--baseline")


def _require(package: str) -> None:
    if importlib.util.find_spec(package) is None:
        raise UsageError.conflict(f"The baseline {package} is not installed", cure=f"pip install {package}")
