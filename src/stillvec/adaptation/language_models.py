"""Masked and left-to-right language models: loaded from a folder with a head, or new and small."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch

from stillvec.errors import TeacherError, is_out_of_memory
from stillvec.registry import require
from stillvec.teachers.loader import silence_transformers

Objective = Literal["masked", "causal"]
_POSITIONS = 512


class LoadedModel(NamedTuple):
    model: Any
    new: list[str]  # parameters that the folder does not have


def load_model(folder: Path, kind: str, **settings: Any) -> LoadedModel:
    """The class `Auto{kind}` of a folder, in fp32."""
    transformers = require("transformers", "distill", "A teacher")
    with silence_transformers(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)  # of new parameters
        try:
            model, report = getattr(transformers, f"Auto{kind}").from_pretrained(
                folder,
                dtype=torch.float32,
                output_loading_info=True,
                use_safetensors=True,
                local_files_only=True,
                **settings,
            )
        except Exception as error:  # damaged files make transformers raise almost anything
            if is_out_of_memory(error):
                raise MemoryError from error
            first = " ".join(str(error).split())[:200]
            raise TeacherError(f"The teacher {folder} cannot be trained as {kind}: {first}", path=folder) from error
    return LoadedModel(model, sorted({*report["missing_keys"]}))


def load_tokenizer(folder: Path) -> Any:
    transformers = require("transformers", "distill", "A teacher")
    with silence_transformers():
        try:
            return transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
        except Exception as error:
            raise TeacherError(f"The tokenizer in {folder} cannot be loaded: {error}", path=folder) from error


def choose_objective(folder: Path, tokenizer: Any) -> Objective:
    """Masked if the tokenizer has a mask and the architecture a head for it."""
    transformers = require("transformers", "distill", "A teacher")
    config = transformers.AutoConfig.from_pretrained(folder, local_files_only=True)
    known = transformers.models.auto.modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES
    return "masked" if tokenizer.mask_token_id is not None and config.model_type in known else "causal"


def make_model(objective: Objective, tokenizer: Any, *, dim: int, layers: int, heads: int, seed: int) -> Any:
    """A new small model: BERT for masked tokens, GPT-2 from left to right."""
    transformers = require("transformers", "distill", "A teacher")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if objective == "masked":
            config = transformers.BertConfig(
                vocab_size=len(tokenizer), hidden_size=dim, num_hidden_layers=layers, num_attention_heads=heads,
                intermediate_size=4 * dim, max_position_embeddings=_POSITIONS, pad_token_id=tokenizer.pad_token_id,
            )  # fmt: skip
            return transformers.BertForMaskedLM(config)
        config = transformers.GPT2Config(
            vocab_size=len(tokenizer), n_embd=dim, n_layer=layers, n_head=heads, n_positions=_POSITIONS,
            bos_token_id=tokenizer.cls_token_id, eos_token_id=tokenizer.sep_token_id,
            pad_token_id=tokenizer.pad_token_id,
        )  # fmt: skip
        return transformers.GPT2LMHeadModel(config)
