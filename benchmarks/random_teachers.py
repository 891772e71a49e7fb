"""Write a teacher with random weights in the shape of a known one, for measurements of speed.

    python benchmarks/random_teachers.py SHAPE OUT --tokenizer FOLDER

SHAPE: modernbert (ModernBERT-base) or smollm2 (SmolLM2-135M, a decoder). FOLDER is a teacher whose tokenizer it gets.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

import torch
import transformers

SHAPES = {
    "modernbert": transformers.ModernBertConfig(  # the sizes are its defaults
        pad_token_id=0, bos_token_id=101, cls_token_id=101, eos_token_id=102, sep_token_id=102
    ),
    "smollm2": transformers.LlamaConfig(
        vocab_size=49_152,
        hidden_size=576,
        intermediate_size=1536,
        num_hidden_layers=30,
        num_attention_heads=9,
        num_key_value_heads=3,
        max_position_embeddings=8192,
        pad_token_id=0,
        bos_token_id=101,
        eos_token_id=102,
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shape", choices=SHAPES)
    parser.add_argument("out", type=Path)
    parser.add_argument("--tokenizer", type=Path, required=True)
    options = parser.parse_args()
    torch.manual_seed(0)
    model = transformers.AutoModel.from_config(SHAPES[options.shape], dtype=torch.bfloat16)
    model.save_pretrained(options.out)
    copy_tokenizer(options.tokenizer, options.out)


def copy_tokenizer(source: Path, out: Path) -> None:
    for file in source.glob("*token*"):
        shutil.copy(file, out)


if __name__ == "__main__":
    main()
