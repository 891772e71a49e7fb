"""Vectors in fewer bits, for folders that contain a copy of them: search indexes and heads."""

from dataclasses import asdict
from typing import Literal

from stillvec.formats.stillvec_folder import find_packing
from stillvec.refinement.quantize import Quantize
from stillvec.vectors import WordVectors


def quantize_vectors(vectors: WordVectors, to: Literal["int8", "fp16"] = "int8") -> WordVectors:
    """The vectors in 8 or 16 bits unless they are compressed already, with their n-grams."""
    if find_packing(vectors.provenance) is not None:
        return vectors
    step = Quantize(to)
    record = {"step": "quantize", "settings": asdict(step), "stored": step.stored}
    history = {**vectors.provenance, "refined": [*(vectors.provenance.get("refined") or ()), record]}
    return vectors.with_matrix(step(vectors).matrix, subwords=vectors.subwords, provenance=history)
