"""Linear-chain conditional random field (Lafferty, McCallum & Pereira 2001) over batches of sentences.

    p(y | s) = exp(begin[y_1] + sum_t s_t[y_t] + sum_t step[y_{t-1}, y_t] + end[y_n]) / Z

Z is computed by the forward algorithm in log space, the best path by Viterbi's. Sentences have at least one word and
are padded; `inside` marks the words.
"""

import torch
from torch import Tensor

Steps = tuple[Tensor, Tensor, Tensor]  # begin (k,), step (k, k) from row to column, end (k,)


def log_partition(scores: Tensor, inside: Tensor, steps: Steps) -> Tensor:
    """log Z of each sentence (B,); scores are (B, L, k), inside (B, L)."""
    begin, step, end = steps
    alpha = begin + scores[:, 0]  # (B, k)
    for t in range(1, scores.shape[1]):
        following = torch.logsumexp(alpha.unsqueeze(2) + step, dim=1) + scores[:, t]
        alpha = torch.where(inside[:, t, None], following, alpha)
    return torch.logsumexp(alpha + end, dim=1)


def path_score(scores: Tensor, tags: Tensor, inside: Tensor, steps: Steps) -> Tensor:
    """The unnormalized log score of one path per sentence (B,); tags are (B, L)."""
    begin, step, end = steps
    emissions = scores.gather(2, tags.unsqueeze(2)).squeeze(2)  # (B, L)
    transitions = step[tags[:, :-1], tags[:, 1:]]  # (B, L - 1)
    last = tags.gather(1, inside.sum(dim=1, keepdim=True) - 1).squeeze(1)
    return begin[tags[:, 0]] + (emissions * inside).sum(dim=1) + (transitions * inside[:, 1:]).sum(dim=1) + end[last]


def negative_log_likelihood(scores: Tensor, tags: Tensor, inside: Tensor, steps: Steps) -> Tensor:
    """-log p of one path per sentence (B,)."""
    return log_partition(scores, inside, steps) - path_score(scores, tags, inside, steps)


def best_paths(scores: Tensor, inside: Tensor, steps: Steps) -> Tensor:
    """The most probable path of each sentence (B, L), 0 outside; of equals the one with smaller tags from the end."""
    begin, step, end = steps
    best = begin + scores[:, 0]
    backpointers: list[Tensor] = []
    for t in range(1, scores.shape[1]):
        reached, previous = (best.unsqueeze(2) + step).max(dim=1)  # (B, k)
        here = inside[:, t, None]
        backpointers.append(torch.where(here, previous, torch.arange(best.shape[1])))  # padding keeps the tag
        best = torch.where(here, reached + scores[:, t], best)
    tag = (best + end).argmax(dim=1)
    path = [tag]
    for previous in reversed(backpointers):
        tag = previous.gather(1, tag.unsqueeze(1)).squeeze(1)
        path.append(tag)
    return torch.stack(path[::-1], dim=1) * inside
