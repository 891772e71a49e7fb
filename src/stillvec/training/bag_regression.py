"""Ridge regression of text vectors on bags of words: words whose weighted mean gives the vector of a text.

With A the matrix of the shares of words in texts (rows sum to one) and C the centred vectors of the texts,
`(AᵀA + λI) V = AᵀC`, solved by conjugate gradients with a diagonal preconditioner.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


class Bags(NamedTuple):
    """The words of texts, one text after another."""

    words: Array  # (N,) column of A
    shares: Array  # (N,) float32; those of a text sum to one
    lengths: Array  # (S,) words per text, at least one
    n_words: int  # V


class BagSystem(NamedTuple):
    """The normal equations, as matrices of torch or, without it, of SciPy and NumPy."""

    by_text: Any  # A (S, V), sparse
    by_word: Any  # Aᵀ
    diagonal: Any  # of AᵀA (V,)
    goal: Any  # AᵀC (V, D)


def solve_bags(bags: Bags, products: Array, ridge: float, iterations: int) -> tuple[Array, float]:
    """The ridge solution (V, D), and its relative residual; `products` is AᵀC with C not yet centred (V, D)."""
    solution, residual = solve_system(make_system(bags, products), ridge, iterations)
    return _to_numpy(solution), residual


def solve_system(system: BagSystem, ridge: float, iterations: int) -> tuple[Any, float]:
    """The ridge solution (V, D) as a matrix of the system, and its relative residual."""
    by_text, by_word, diagonal, goal = system
    preconditioner = 1 / (diagonal + ridge)[:, None]
    solution = preconditioner * goal
    residual = goal - (by_word @ (by_text @ solution) + ridge * solution)
    direction = preconditioned = preconditioner * residual
    strength = (residual * preconditioned).sum(0)
    for _ in range(iterations):
        image = by_word @ (by_text @ direction)
        image += ridge * direction
        size = strength / (direction * image).sum(0).clip(1e-30)
        solution += size * direction
        residual -= size * image
        del image, preconditioned  # tables of all words
        preconditioned = preconditioner * residual
        previous, strength = strength, (residual * preconditioned).sum(0)
        direction *= strength / previous.clip(1e-30)
        direction += preconditioned
    lengths = [float(np.linalg.norm(_to_numpy(matrix))) for matrix in (residual, goal)]
    return solution, lengths[0] / max(lengths[1], 1e-30)


def mean_text(bags: Bags, products: Array) -> Array:
    """The mean of C (D,), since the rows of A sum to one."""
    total = products.sum(0, dtype=np.float64)
    return np.asarray(total / max(len(bags.lengths), 1), np.float32)


def make_system(bags: Bags, products: Array) -> BagSystem:
    """The system of bags; `products` is AᵀC with C not yet centred (V, D)."""
    words, shares, lengths, n_words = bags
    places = np.stack([np.repeat(np.arange(len(lengths)), lengths), words.astype(np.int64)])
    shares, shape = np.array(shares), (len(lengths), n_words)
    mean = mean_text(bags, products)
    try:
        import torch
    except ModuleNotFoundError:  # results can be merged without it
        from scipy.sparse import csr_array

        matrix = csr_array((shares, (places[0], places[1])), shape)
        goal = products - matrix.sum(0)[:, None] * mean
        return BagSystem(matrix, matrix.T.tocsr(), matrix.power(2).sum(0), goal)
    from stillvec.teachers.device import resolve_device

    device = resolve_device("auto")
    indices, values = torch.from_numpy(places), torch.from_numpy(shares)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # torch calls sparse rows "in beta"
        matrix = torch.sparse_coo_tensor(indices, values, shape, device=device, check_invariants=False).coalesce()
        by_text, by_word = matrix.to_sparse_csr(), matrix.t().to_sparse_csr()
    column, values = matrix.indices()[1], matrix.values()
    mass = torch.zeros(shape[1], device=device).index_add_(0, column, values)
    diagonal = torch.zeros(shape[1], device=device).index_add_(0, column, values**2)
    goal = torch.from_numpy(np.array(products)).to(device) - mass[:, None] * torch.from_numpy(mean).to(device)
    return BagSystem(by_text, by_word, diagonal, goal)


def _to_numpy(matrix: Any) -> Array:
    return np.asarray(matrix.cpu().numpy() if hasattr(matrix, "cpu") else matrix)
