"""The matrices of a teacher by their names in its files: word embeddings and linear layers, no positions or norms."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import torch
from torch import nn

from stillvec.errors import TeacherError
from stillvec.registry import require
from stillvec.teachers.loader import silence_transformers


def find_matrices(folder: Path, stored: Collection[str], *, embeddings: bool = True) -> set[str]:
    """Which of the tensors `stored` in a model's folder are matrices of its architecture."""
    transformers = require("transformers", "distill", "A teacher")
    try:
        with silence_transformers(), torch.device("meta"):
            model = transformers.AutoModel.from_config(transformers.AutoConfig.from_pretrained(folder))
    except Exception as error:  # damaged files make transformers raise almost anything
        raise TeacherError(f"The configuration in {folder} cannot be used: {error}", path=folder) from error
    names = name_matrices(model, embeddings=embeddings)
    prefix = f"{getattr(model, 'base_model_prefix', '')}."
    return {name for name in stored if name in names or name.removeprefix(prefix) in names}


def name_matrices(model: Any, *, embeddings: bool = True) -> set[str]:
    """The names of the matrices of a model: weights of two dimensions outside of embeddings, and the word embeddings.

    Other tables (positions, segments, relative positions) are embeddings, too, and left out.
    """
    words = model.get_input_embeddings()
    names = set()
    for label, module in model.named_modules():
        if isinstance(module, nn.Embedding) and not (module is words and embeddings):
            continue
        own = module.named_parameters(label, recurse=False)
        names |= {name for name, weights in own if weights.ndim == 2}
    return names
