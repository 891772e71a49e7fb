"""Linear-chain conditional random field (Lafferty, McCallum & Pereira 2001), many sentences at once.

    p(y | s) = exp(begin[y_1] + sum_t s_t[y_t] + sum_t step[y_{t-1}, y_t] + end[y_n]) / Z

Z by the forward recursion in logarithms, the best path by Viterbi's. Sentences of a batch are filled up to one length;
`inside` says which words there are, and each has at least one.
"""

from __future__ import annotations

import torch
from torch import Tensor

Steps = tuple[Tensor, Tensor, Tensor]  # begin (k,), step (k, k) from row to column, end (k,)


def log_partition(scores: Tensor, inside: Tensor, steps: Steps) -> Tensor:
    """log Z of each sentence (B,); scores are (B, L, k), inside (B, L)."""
    begin, step, end = steps
    ahead = begin + scores[:, 0]  # (B, k)
    for t in range(1, scores.shape[1]):
        onward = torch.logsumexp(ahead.unsqueeze(2) + step, dim=1) + scores[:, t]
        ahead = torch.where(inside[:, t, None], onward, ahead)
    return torch.logsumexp(ahead + end, dim=1)


def path_score(scores: Tensor, tags: Tensor, inside: Tensor, steps: Steps) -> Tensor:
    """What one path of each sentence (B, L) scores before Z (B,)."""
    begin, step, end = steps
    said = scores.gather(2, tags.unsqueeze(2)).squeeze(2)  # (B, L)
    moved = step[tags[:, :-1], tags[:, 1:]]  # (B, L - 1)
    last = tags.gather(1, inside.sum(dim=1, keepdim=True) - 1).squeeze(1)
    return begin[tags[:, 0]] + (said * inside).sum(dim=1) + (moved * inside[:, 1:]).sum(dim=1) + end[last]


def negative_log_likelihood(scores: Tensor, tags: Tensor, inside: Tensor, steps: Steps) -> Tensor:
    """-log p of one path of each sentence (B,)."""
    return log_partition(scores, inside, steps) - path_score(scores, tags, inside, steps)


def marginals(scores: Tensor, inside: Tensor, steps: Steps) -> Tensor:
    """The probability of each tag of each word (B, L, k): the slope of log Z along the scores; 0 outside."""
    with torch.enable_grad():
        scores = scores.detach().requires_grad_()
        (slope,) = torch.autograd.grad(log_partition(scores, inside, steps).sum(), scores)
    return slope


def best_paths(scores: Tensor, inside: Tensor, steps: Steps) -> Tensor:
    """The likeliest path of each sentence (B, L), 0 outside; of equals the one with smaller tags from the end on."""
    begin, step, end = steps
    best = begin + scores[:, 0]
    came: list[Tensor] = []
    for t in range(1, scores.shape[1]):
        reached, before = (best.unsqueeze(2) + step).max(dim=1)  # (B, k)
        here = inside[:, t, None]
        came.append(torch.where(here, before, torch.arange(best.shape[1])))  # outside a path stays where it is
        best = torch.where(here, reached + scores[:, t], best)
    tag = (best + end).argmax(dim=1)
    path = [tag]
    for before in reversed(came):
        tag = before.gather(1, tag.unsqueeze(1)).squeeze(1)
        path.append(tag)
    return torch.stack(path[::-1], dim=1) * inside
