"""Natural alpha embeddings: the identities of the paper, and the definition written out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp

from stillvec.errors import FormatError, UsageError
from stillvec.refinement import natural_alpha as module
from stillvec.refinement.natural_alpha import NaturalAlpha
from stillvec.vectors import WordVectors
from stillvec.vocabulary import Vocabulary

N, D = 500, 20
REFERENCES = ["uniform", "unigram", "counts"]


@pytest.fixture(scope="module")
def model() -> tuple[WordVectors, Any]:
    random = np.random.default_rng(0)
    counts = (1e6 / np.arange(1, N + 1)).astype(int)
    words = Vocabulary([f"w{i}" for i in range(N)], counts)
    return WordVectors(words, random.normal(size=(N, D)) * 0.7), random.normal(size=(N, D)) * 0.7


@pytest.fixture(scope="module")
def contexts(model: tuple[WordVectors, Any], tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("alpha") / "contexts.npy"
    np.save(path, model[1])
    return str(path)


def _model(words: WordVectors, table: Any, reference: str, *, plus: bool = False) -> tuple[Any, Any, Any, Any]:
    """p_w (N, N), p0 (N,), ΔV and I, as the sheet defines them."""
    scores = (words.matrix + (table if plus else 0)) @ table.T
    probabilities = np.exp(scores - logsumexp(scores, axis=1, keepdims=True))
    counts = words.vocabulary.counts / words.vocabulary.counts.sum()
    p0 = {"uniform": np.full(N, 1 / N), "counts": counts, "unigram": counts @ probabilities}[reference]
    shifted = table - p0 @ table
    return probabilities, p0, shifted, shifted.T @ np.diag(p0) @ shifted


def _cosine(a: Any, b: Any) -> Any:
    return (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)


@pytest.mark.parametrize("plus", [False, True])
def test_at_one_with_a_uniform_reference_it_is_the_parameters(
    plus: bool, model: tuple[WordVectors, Any], contexts: str
) -> None:
    after = NaturalAlpha(1.0, contexts=contexts, plus=plus)(model[0]).matrix
    assert np.abs(after - model[0].matrix - (model[1] if plus else 0)).max() < 1e-8


@pytest.mark.parametrize("reference", REFERENCES)
def test_at_one_the_reference_only_shifts(reference: Any, model: tuple[WordVectors, Any], contexts: str) -> None:
    shift = NaturalAlpha(1.0, reference, contexts=contexts)(model[0]).matrix - model[0].matrix
    assert np.abs(shift - shift[0]).max() < 1e-8


@pytest.mark.parametrize("reference", REFERENCES)
def test_at_minus_one_it_is_the_difference_of_expectations(
    reference: Any, model: tuple[WordVectors, Any], contexts: str
) -> None:
    probabilities, p0, _, fisher = _model(*model, reference)
    wanted = np.linalg.solve(fisher, ((probabilities - p0) @ model[1]).T).T
    assert np.abs(NaturalAlpha(-1.0, reference, contexts=contexts)(model[0]).matrix - wanted).max() < 1e-8


@pytest.mark.parametrize("reference", REFERENCES)
@pytest.mark.parametrize("value", [-3.0, 0.0, 0.6, 2.5])
def test_any_alpha_is_its_definition(
    value: float, reference: Any, model: tuple[WordVectors, Any], contexts: str
) -> None:
    probabilities, p0, shifted, fisher = _model(*model, reference, plus=True)
    weights = p0 * 2 / (1 - value) * ((probabilities / p0) ** ((1 - value) / 2) - 1)
    wanted = np.linalg.solve(fisher, (weights @ shifted).T).T
    after = NaturalAlpha(value, reference, contexts=contexts, plus=True)(model[0]).matrix
    assert _cosine(after, wanted).min() > 1 - 1e-9  # rows that would overflow are scaled
    usual = np.abs(weights).max(1) < 1e12
    assert np.allclose(after[usual], wanted[usual], rtol=1e-6, atol=1e-8 * np.abs(wanted[usual]).max())


def test_alpha_goes_to_one_without_a_step(model: tuple[WordVectors, Any], contexts: str) -> None:
    for near in (1 - 1e-6, 1 + 1e-6, 1 - 1e-13):
        after = NaturalAlpha(near, contexts=contexts)(model[0]).matrix
        assert np.abs(after - model[0].matrix).max() < 1e-4
    closer = NaturalAlpha(1 - 1e-10, contexts=contexts)(model[0]).matrix
    assert np.abs(closer - model[0].matrix).max() < 1e-8


def test_the_limit_is_where_a_falling_alpha_goes(model: tuple[WordVectors, Any], contexts: str) -> None:
    """Sheet 9: at least .99 on average at -200, and closer the lower alpha is."""
    limit = NaturalAlpha("limit", contexts=contexts)(model[0]).matrix
    means = [
        _cosine(NaturalAlpha(a, contexts=contexts)(model[0]).matrix, limit).mean() for a in (-5.0, -20.0, -60.0, -200.0)
    ]
    assert means[-1] >= 0.99
    assert means == sorted(means)


@pytest.mark.parametrize(("top", "weighted"), [(1, False), (3, False), (5, True)])
def test_the_limit_is_the_mean_of_the_contexts_that_stand_out(
    top: int, weighted: bool, model: tuple[WordVectors, Any], contexts: str
) -> None:
    probabilities, p0, shifted, fisher = _model(*model, "counts")
    after = NaturalAlpha("limit", "counts", contexts=contexts, top=top, weighted=weighted)(model[0]).matrix
    rows = np.linalg.solve(fisher, shifted.T).T
    for word in (0, 7, 300):
        ratios = probabilities[word] / p0
        chosen = np.argsort(-ratios)[:top]
        wanted = np.average(rows[chosen], axis=0, weights=ratios[chosen] if weighted else None)
        assert np.allclose(after[word], wanted, rtol=1e-6, atol=1e-10)


def test_with_fishers_metric_cosines_are_taken_with_it(model: tuple[WordVectors, Any], contexts: str) -> None:
    *_, fisher = _model(*model, "counts")
    plain, metric = (NaturalAlpha(-2.0, "counts", m, contexts)(model[0]).matrix for m in ("identity", "fisher"))  # type: ignore[arg-type]
    assert np.allclose(metric @ metric.T, plain @ fisher @ plain.T)


@pytest.mark.parametrize("value", [-500.0, -50.0, -1.0, 0.999999, 1.0, 3.0, 10.0, "limit"])
@pytest.mark.parametrize("reference", REFERENCES)
def test_logits_of_eighty_leave_every_number_finite(value: Any, reference: Any, tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    words, table = (random.normal(size=(60, 8)) for _ in range(2))
    scale = np.sqrt(80 / np.abs(words @ table.T).max())
    np.save(tmp_path / "contexts.npy", table * scale)
    vectors = WordVectors(Vocabulary([str(i) for i in range(60)], range(60, 0, -1)), (words * scale).astype(np.float32))
    after = NaturalAlpha(value, reference, contexts=str(tmp_path / "contexts.npy"))(vectors).matrix
    assert np.isfinite(after).all()
    assert after.any(1).all()


def test_few_words_at_a_time_or_all_at_once_is_the_same(
    model: tuple[WordVectors, Any], contexts: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = NaturalAlpha(-1.0, "unigram", contexts=contexts)
    whole = step(model[0]).matrix
    monkeypatch.setattr(module, "_AT_ONCE", 7 * N)
    assert np.allclose(step(model[0]).matrix, whole, rtol=1e-9)


def test_without_contexts_the_vectors_are_their_own(model: tuple[WordVectors, Any], tmp_path: Path) -> None:
    np.save(tmp_path / "same.npy", model[0].matrix)
    both = [NaturalAlpha(-1.0, contexts=c)(model[0]).matrix for c in (None, str(tmp_path / "same.npy"))]
    assert np.array_equal(*both)


def test_what_cannot_be_is_refused(model: tuple[WordVectors, Any], tmp_path: Path) -> None:
    for settings in ({"alpha": -np.inf}, {"alpha": np.nan}, {"top": 0}):
        with pytest.raises(UsageError):
            NaturalAlpha(**settings)
    with pytest.raises(FormatError, match="nowhere"):
        NaturalAlpha(contexts=str(tmp_path / "nowhere.npy"))(model[0])
    np.save(tmp_path / "short.npy", np.ones((3, D)))
    with pytest.raises(FormatError, match=r"\(3, 20\)"):
        NaturalAlpha(contexts=str(tmp_path / "short.npy"))(model[0])
    with pytest.raises(UsageError, match="reference=uniform"):
        NaturalAlpha(reference="counts")(WordVectors(model[0].words, model[0].matrix))
