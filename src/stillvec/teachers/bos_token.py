"""What stands before a text for a decoder: the token that takes the attention the first position draws.

All positions of a decoder look at the first when they have nothing to look for, and its state grows out of all measure.
A word must not stand there. Tokenizers name a beginning-of-text token, but for chat models it is often one that was
rare in training and does not serve: SmolLM2's <|im_start|> leaves a lone word with a state 20 times too long (5 of 18
nearest neighbours make sense), its <|endoftext|> does not (18 of 18). So it is measured.
"""

from __future__ import annotations

from typing import Any

import torch

from stillvec.teachers.subword_tokenizer import SubwordTokenizer

_CALM = 1.5  # states longer than after the best token: the one that the tokenizer names may be that much worse
_PROBES = ("house", "king", "dog", "water", "time", "book", "red", "run", "people", "city", "good", "in")


def beginning(model: Any, tokenizer: Any, cutter: SubwordTokenizer) -> tuple[int, ...]:
    """The special token to put before each text, if the model is a decoder whose tokenizer puts none there."""
    roles = (getattr(tokenizer, f"{role}_token_id", None) for role in ("bos", "eos", "pad", "unk"))
    candidates = [*dict.fromkeys(token for token in roles if token is not None)]
    if cutter.prefix or not candidates or reads_both_ways(model):
        return ()
    pieces = [int(cutter.cut([word]).ids[0]) for word in _PROBES]
    excess = _excess_after(model, candidates, pieces)
    return (next(token for token, times in zip(candidates, excess, strict=True) if times <= _CALM * min(excess)),)


@torch.inference_mode()
def _excess_after(model: Any, tokens: list[int], pieces: list[int]) -> list[float]:
    """How many times longer states are right after each token than after the best, in the layer where it is worst."""
    device = model.get_input_embeddings().weight.device
    pairs = torch.tensor([[token, piece] for token in tokens for piece in pieces], device=device)
    layers = model(input_ids=pairs, output_hidden_states=True).hidden_states
    lengths = torch.stack([states[:, 1].float().norm(dim=-1).view(len(tokens), -1).mean(1) for states in layers])
    excess = lengths / lengths.amin(1, keepdim=True)  # (layers, tokens)
    return [float(times) for times in excess.amax(0)]


def reads_both_ways(model: Any) -> bool:
    """Encoders and XLNet do."""
    if model.config.model_type == "xlnet":
        return True
    flags = (getattr(module, "is_causal", None) for module in model.modules())
    return not (getattr(model.config, "is_decoder", False) or any(flag is True for flag in flags))
