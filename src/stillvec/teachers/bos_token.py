"""The token put before each text of a decoder: an attention sink for the first position.

All positions of a decoder attend to the first one when nothing else is relevant, and its state grows far beyond the
others, so no word may be there. Tokenizers name a beginning-of-sequence token, but in chat models it is often one that
was rare in training and does not work as a sink: after SmolLM2's <|im_start|> a lone word has a state 20 times too
long (5 of 18 nearest neighbours make sense), after its <|endoftext|> it does not (18 of 18). So we measure it.
"""

from typing import Any

import torch

from stillvec.teachers.subword_tokenizer import SubwordTokenizer

_TOLERANCE = 1.5  # the tokenizer's own choice may give states this many times longer than the best token
_PROBES = ("house", "king", "dog", "water", "time", "book", "red", "run", "people", "city", "good", "in")


def choose_bos_token(model: Any, hf_tokenizer: Any, tokenizer: SubwordTokenizer) -> tuple[int, ...]:
    """The special token to put before each text; none for encoders, or if the tokenizer already adds one."""
    roles = (getattr(hf_tokenizer, f"{role}_token_id", None) for role in ("bos", "eos", "pad", "unk"))
    candidates = [*dict.fromkeys(token for token in roles if token is not None)]
    if tokenizer.prefix or not candidates or is_bidirectional(model):
        return ()
    probes = [int(tokenizer.encode([word]).ids[0]) for word in _PROBES]
    excess = _measure_excess(model, candidates, probes)
    return (next(token for token, times in zip(candidates, excess, strict=True) if times <= _TOLERANCE * min(excess)),)


@torch.inference_mode()
def _measure_excess(model: Any, candidates: list[int], probes: list[int]) -> list[float]:
    """How many times longer states are after each candidate than after the best one, in the worst layer."""
    device = model.get_input_embeddings().weight.device
    pairs = torch.tensor([[token, probe] for token in candidates for probe in probes], device=device)
    layers = model(input_ids=pairs, output_hidden_states=True).hidden_states
    norms = torch.stack([states[:, 1].float().norm(dim=-1).view(len(candidates), -1).mean(1) for states in layers])
    excess = norms / norms.amin(1, keepdim=True)  # (layers, candidates)
    return [float(times) for times in excess.amax(0)]


def is_bidirectional(model: Any) -> bool:
    """Whether each position sees those after it: encoders and XLNet."""
    if model.config.model_type == "xlnet":
        return True
    flags = (getattr(module, "is_causal", None) for module in model.modules())
    return not (getattr(model.config, "is_decoder", False) or any(flag is True for flag in flags))
