"""A linear-chain conditional random field (Lafferty, McCallum & Pereira 2001).

    p(y | s) = exp(begin[y_1] + sum_t s_t[y_t] + sum_t step[y_{t-1}, y_t] + end[y_n]) / Z

Z is computed by the forward algorithm in log space, the best path by Viterbi's. Sentences are padded; `inside` marks
their words. All arrays may have further leading dimensions, for several fields side by side (* below).
"""

import torch
from torch import Tensor

_MANY_TAGS = 50  # with fewer, comparing all pairs is faster than choosing them
_ROUNDING = 1e-3  # of scores, in single precision

Steps = tuple[Tensor, Tensor, Tensor]  # begin (*, k), step (*, k, k) from row to column, end (*, k)


def log_partition(scores: Tensor, inside: Tensor, steps: Steps) -> Tensor:
    """log Z of each sentence (*, B); scores are (*, B, L, k), inside (*, B, L).

    Sums over the previous tag are products of matrices of exponentials, each divided by its largest number; in double
    precision, so that none of those that count becomes zero.
    """
    begin, step, end = steps
    largest = step.detach().amax(dim=-2, keepdim=True)  # (*, 1, k)
    factors = (step - largest).double().exp()
    first, *rest = scores.unbind(-2)
    alpha = begin.unsqueeze(-2) + first  # (*, B, k)
    for here, score in zip(inside.unsqueeze(-1).unbind(-2)[1:], rest, strict=True):
        most = alpha.detach().amax(dim=-1, keepdim=True)
        sums = (alpha - most).double().exp() @ factors  # (*, B, k)
        reached = (sums.log() + most + largest).to(alpha.dtype)
        alpha = torch.where(here, reached + score, alpha)
    return torch.logsumexp(alpha + end.unsqueeze(-2), dim=-1)


def path_score(scores: Tensor, tags: Tensor, inside: Tensor, steps: Steps) -> Tensor:
    """The unnormalized log score of one path per sentence (*, B); tags are (*, B, L)."""
    begin, step, end = _with_sentences(steps)
    sizes = (*tags.shape[:-1], -1)
    emissions = scores.gather(-1, tags.unsqueeze(-1)).squeeze(-1)  # (*, B, L)
    pairs = tags[..., :-1] * step.shape[-1] + tags[..., 1:]
    transitions = step.flatten(-2).expand(sizes).gather(-1, pairs)  # (*, B, L - 1)
    last = tags.gather(-1, (inside.sum(dim=-1, keepdim=True) - 1).clamp(min=0))
    ends = begin.expand(sizes).gather(-1, tags[..., :1]) + end.expand(sizes).gather(-1, last)
    return ends.squeeze(-1) + (emissions * inside).sum(dim=-1) + (transitions * inside[..., 1:]).sum(dim=-1)


def negative_log_likelihood(scores: Tensor, tags: Tensor, inside: Tensor, steps: Steps) -> Tensor:
    """-log p of one path per sentence (*, B)."""
    return log_partition(scores, inside, steps) - path_score(scores, tags, inside, steps)


def best_paths(scores: Tensor, inside: Tensor, steps: Steps) -> Tensor:
    """The most probable path of each sentence (*, B, L), 0 outside; of equals that with smaller tags from the end."""
    begin, _, end = _with_sentences(steps)
    step = steps[1]
    first, *rest = scores.unbind(-2)
    best = begin + first
    tags = torch.arange(best.shape[-1], device=best.device)
    backpointers: list[Tensor] = []
    for here, score in zip(inside.unsqueeze(-1).unbind(-2)[1:], rest, strict=True):
        reached, previous = _choose_previous(best, step, here)
        backpointers.append(torch.where(here, previous, tags))  # padding keeps the tag
        best = torch.where(here, reached + score, best)
    tag = (best + end).argmax(dim=-1, keepdim=True)
    path = [tag]
    for previous in reversed(backpointers):
        tag = previous.gather(-1, tag)
        path.append(tag)
    return torch.cat(path[::-1], dim=-1) * inside


def _choose_previous(best: Tensor, step: Tensor, here: Tensor) -> tuple[Tensor, Tensor]:
    """The best score of a path to each tag and the tag before it (*, B, k), for the paths to each tag so far (*, B, k).

    With many tags, only those are compared that can be best before any tag: with a step in the range [low, high] from
    each tag, a tag loses before every other one if best + high is less than the largest best + low.
    """
    if best.shape[-1] < _MANY_TAGS:
        reached, previous = (best.unsqueeze(-1) + step.unsqueeze(-3)).max(dim=-2)
        return reached, previous
    centred = step - step.mean(dim=-2, keepdim=True)  # what a step adds for every previous tag decides nothing
    low, high = (best + bound.unsqueeze(-2) for bound in (centred.amin(dim=-1), centred.amax(dim=-1)))
    able = (high >= low.amax(dim=-1, keepdim=True) - _ROUNDING) & here
    n_able = max(1, int(able.sum(dim=-1).max()))
    chosen = high.topk(n_able, dim=-1).indices.sort(dim=-1).values  # (*, B, c), smaller tags first
    steps = step.unsqueeze(-3).expand(*best.shape, -1)
    taken = steps.gather(-2, chosen.unsqueeze(-1).expand(*chosen.shape, step.shape[-1]))  # (*, B, c, k)
    reached, place = (best.gather(-1, chosen).unsqueeze(-1) + taken).max(dim=-2)
    return reached, chosen.gather(-1, place)


def _with_sentences(steps: Steps) -> Steps:
    """begin (*, 1, k), step (*, 1, k, k), end (*, 1, k)."""
    begin, step, end = steps
    return begin.unsqueeze(-2), step.unsqueeze(-3), end.unsqueeze(-2)
