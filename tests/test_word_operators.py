"""Word linear operators: against a slow recursion, samples and a slow loss; what they learn without being told."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch

import stillvec
from stillvec.baselines.encoded_corpus import encode_corpus
from stillvec.baselines.word_operators import OperatorModel, WordOperators, _read_texts, compose
from stillvec.corpus import Corpus
from stillvec.errors import CorpusError, UsageError
from stillvec.numerics import compare_gaussians, compose_operators, spearman
from stillvec.numerics.gaussians import Gaussians
from stillvec.vocabulary import Vocabulary

K = 3


def _table(n_words: int = 7, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, 0.4, (n_words, 2 * K))


def _recur(table: np.ndarray, words: list[int]) -> tuple[np.ndarray, np.ndarray]:
    mean, variance = np.zeros(K), np.ones(K)
    for word in words:
        shift, scale = table[word, :K], np.exp(table[word, K:])
        mean, variance = scale * (mean + shift), scale**2 * variance
    return mean, variance


def test_the_gaussian_of_a_text_is_that_of_the_recursion() -> None:
    table, texts = _table(), [[0, 1, 2], [3], [4, 4, 5, 6], []]
    rows = np.array([word for text in texts for word in text])
    text = np.repeat(np.arange(4), [*map(len, texts)])
    found = compose_operators(table, rows, text, 4)
    padded = np.array([words + [-1] * (4 - len(words)) for words in texts])
    trained = compose(torch.from_numpy(table), torch.from_numpy(padded))
    for at, words in enumerate(texts):
        mean, variance = _recur(table, words)
        for other in (found, Gaussians(*(each.numpy() for each in trained))):
            assert other.mean[at] == pytest.approx(mean)
            assert np.exp(other.log_variance[at]) == pytest.approx(variance)
        assert found.entropy()[at] == pytest.approx(0.5 * np.log(2 * np.pi * np.e * variance).sum())


def test_samples_have_the_mean_and_the_variance_of_the_closed_form() -> None:
    table, random = _table(seed=1), np.random.default_rng(0)
    z = random.normal(size=(200_000, K))
    for word in (2, 0, 5, 5):
        z = np.exp(table[word, K:]) * (z + table[word, :K])
    found = compose_operators(table, np.array([2, 0, 5, 5]), np.zeros(4, int), 1)
    assert np.abs(z.mean(0) - found.mean[0]).max() < 0.02
    assert np.abs(z.var(0) / np.exp(found.log_variance[0]) - 1).max() < 0.02


def test_the_kernel_is_the_integral_of_the_product_of_the_densities() -> None:
    a, b = Gaussians(np.array([[0.3]]), np.array([[0.2]])), Gaussians(np.array([[-0.5]]), np.array([[-0.7]]))
    x = np.linspace(-20, 20, 400_001)
    densities = [
        np.exp(-((x - g.mean[0, 0]) ** 2) / (2 * math.exp(g.log_variance[0, 0])))
        / math.sqrt(2 * math.pi * math.exp(g.log_variance[0, 0]))
        for g in (a, b)
    ]
    integral = float((densities[0] * densities[1]).sum() * (x[1] - x[0]))
    assert compare_gaussians(a, b)[0] == pytest.approx(math.log(integral), abs=1e-6)


def test_the_loss_is_that_of_a_slow_loop() -> None:
    table = _table()
    quadruple = [[0, 1], [2, 1, 3], [4], [5, 6, 0]]  # s1, s2, n1, n2
    padded = torch.tensor([words + [-1] * (3 - len(words)) for words in quadruple])
    settings = WordOperators(dim=2 * K, prior=0.1, margin=2.0)
    model = OperatorModel.__new__(OperatorModel)
    model.settings = settings
    gaussians = [_recur(table, words) for words in quadruple]

    def similar(a: int, b: int) -> float:
        (mean_a, var_a), (mean_b, var_b) = gaussians[a], gaussians[b]
        return float(-0.5 * (np.log(var_a + var_b) + (mean_a - mean_b) ** 2 / (var_a + var_b)).sum())

    wanted = max(0, 2 - similar(0, 1) + similar(0, 2)) + max(0, 2 - similar(0, 1) + similar(1, 3))
    for word in (word for words in quadruple for word in words):
        mean, variance = _recur(table, [word])
        wanted += 0.1 * 0.5 * float((variance + mean**2 - 1 - np.log(variance)).sum())
    assert float(model.loss(torch.from_numpy(table), padded)) == pytest.approx(wanted)


def test_negatives_are_the_most_similar_texts_but_the_partner(tmp_path: Path) -> None:
    path = tmp_path / "pairs.txt"
    path.write_text("".join(f"a{at} b{at} c\tb{at} a{at} d\n" for at in range(6)))
    words = sorted({word for line in path.read_text().split() for word in line.split()})
    encoded = stillvec.progress.drain(encode_corpus(Corpus(path), Vocabulary(words), tmp_path))
    texts = _read_texts(encoded)
    assert texts.n_groups == 6
    model = OperatorModel(WordOperators(dim=2 * K, seed=3), texts, len(words))
    one, other = texts.pad(np.arange(0, 12, 2)), texts.pad(np.arange(1, 12, 2))
    first, second = model._choose_negatives(one, other)
    gaussians = [[_recur(model.words.table.numpy(), row[row >= 0].tolist()) for row in side] for side in (one, other)]
    for at in range(6):
        scores = np.full((2, 6), -np.inf)
        for place in {*range(6)} - {at}:
            for side, (mine, theirs) in enumerate([(gaussians[0], gaussians[1]), (gaussians[1], gaussians[0])]):
                pair = [Gaussians(mean[None], np.log(var)[None]) for mean, var in (mine[at], theirs[place])]
                scores[side, place] = compare_gaussians(*pair)[0]
        assert (first[at], second[at]) == (scores[0].argmax(), scores[1].argmax())


def test_texts_of_more_content_get_less_entropy_at_the_same_length(tmp_path: Path) -> None:
    """No text says how specific it is: pairs share content words, and function words are drawn anew."""
    random = np.random.default_rng(0)
    lines = []
    for _ in range(3000):
        content = [f"content{word}" for word in random.integers(0, 60, random.integers(1, 8))]
        texts = [[*content, *(f"function{word}" for word in random.integers(0, 10, 8 - len(content)))] for _ in "ab"]
        lines.append("\t".join(" ".join(random.permutation(text)) for text in texts))
    path = tmp_path / "pairs.txt"
    path.write_text("\n".join(lines) + "\n")
    vectors = stillvec.train(
        path, method="word_operators:dim=32,epochs=12,rate=0.01,prior=0.001", min_count=1, threads=1
    )
    texts = [line.split("\t")[0] for line in lines[:500]]
    rows, text = vectors._finder.match_rows(texts)
    entropy = compose_operators(vectors.matrix, rows.astype(np.int64), text, len(texts)).entropy()
    n_content = np.array([line.count("content") for line in texts])
    assert float(spearman(-entropy, n_content)) > 0.5


def test_a_corpus_without_pairs_and_an_odd_dimension_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text("the cold river\nthe warm bread\n")
    with pytest.raises(CorpusError, match="separated by tabs"):
        stillvec.train(path, method="word_operators", min_count=1)
    with pytest.raises(UsageError, match="even"):
        WordOperators(dim=7)
