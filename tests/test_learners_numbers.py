"""Every method against a slow computation that shares no code with it: sentence by sentence, dense, in float64."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from scipy.linalg import fractional_matrix_power
from scipy.stats import rankdata
from tiny_corpus import (
    PARTLY_KNOWN,
    WHAT,
    WHO,
    collect_statistics,
    count_repeated,
    counted,
    likeness,
    make_pass,
    matrix_of,
    sentences,
    slow_states,
    teach_words,
    words_of,
)  # fmt: skip
from tiny_teachers import tiny_teacher

from stillvec.errors import UsageError
from stillvec.learners import LEARNERS, Learner
from stillvec.learners.accumulators import WordStates
from stillvec.learners.additive import Additive, WeightedSentences
from stillvec.learners.aggregate import Aggregate
from stillvec.learners.auto import _TOLERANCE, Auto
from stillvec.learners.decontextualized import Decontextualized
from stillvec.learners.dictionary import Dictionary
from stillvec.learners.layer_look import find_best_layer
from stillvec.learners.token_table import TokenTable
from stillvec.learners.whitened_context import WhitenedContext
from stillvec.learners.whitened_window import WhitenedWindow
from stillvec.numerics import partial_correlation
from stillvec.statistics import Statistics
from stillvec.teachers import Teacher
from stillvec.vocabulary import Vocabulary

TEXTS = PARTLY_KNOWN
POOL: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "mean": lambda rows: rows.sum(0) / len(rows),
    "max": lambda rows: rows.max(0),
    "min": lambda rows: rows.min(0),
    "first": lambda rows: rows[0],
    "last": lambda rows: rows[-1],
}


@pytest.fixture(scope="module")
def teacher() -> Teacher:
    return teach_words()


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    return count_repeated(TEXTS)


@pytest.fixture(scope="module")
def occurrences(teacher: Teacher, vocabulary: Vocabulary) -> dict[str, list[np.ndarray]]:
    return slow_occurrences(teacher, vocabulary)


def slow_occurrences(teacher: Teacher, vocabulary: Vocabulary) -> dict[str, list[np.ndarray]]:
    """Word → for each of its contexts the states of its pieces (layers, pieces, D)."""
    found: dict[str, list[np.ndarray]] = {word: [] for word in vocabulary}
    for text in TEXTS:
        states, spans = slow_states(teacher, text)
        for word, start, end in words_of(text):
            if word in found:
                inside = [n for n, (begin, stop) in enumerate(spans) if begin < end and stop > start]
                found[word].append(states[:, inside])
    return found


def close(got: np.ndarray, wanted: np.ndarray, tolerance: float = 2e-4) -> bool:
    return got.shape == wanted.shape and bool(np.abs(got - wanted).max() <= tolerance * np.abs(wanted).max())


def unit_rows(matrix: np.ndarray) -> np.ndarray:
    return np.stack([row / np.sqrt((row**2).sum()) for row in matrix])


def sentence_vectors(teacher: Teacher, texts: list[str], layer: int = -1) -> np.ndarray:
    return np.stack([slow_states(teacher, text)[0][layer].mean(0) for text in texts])


@pytest.mark.parametrize("pieces", ["mean", "first", "last", "max", "min"])
@pytest.mark.parametrize("contexts", ["mean", "max", "min"])
def test_aggregate_pools_pieces_then_contexts(
    pieces: str, contexts: str, teacher: Teacher, vocabulary: Vocabulary, occurrences: dict[str, list[np.ndarray]]
) -> None:
    assert any(states.shape[1] > 1 for states in occurrences["shoes"]), "some words are several pieces"
    got = matrix_of(Aggregate(pieces=pieces, contexts=contexts), teacher, vocabulary, TEXTS)
    wanted = [POOL[contexts](np.stack([POOL[pieces](s[-1]) for s in occurrences[word]])) for word in vocabulary]
    assert close(got, np.stack(wanted), 1e-5)


@pytest.mark.parametrize(
    ("layer", "wanted"), [("last", [2]), ("0", [0]), ("1", [1]), ("0-1", [0, 1]), ("all", [0, 1, 2]), ("-2", [1])]
)
def test_aggregate_averages_a_range_of_layers(
    layer: str, wanted: list[int], teacher: Teacher, vocabulary: Vocabulary, occurrences: dict[str, list[np.ndarray]]
) -> None:
    learner = Aggregate(layer=layer)
    collected = collect_statistics({"it": learner}, teacher, vocabulary, TEXTS)["it"]
    finished = learner.finish(collected)
    slow = [np.stack([s.mean(1) for s in occurrences[word]]).mean(0)[wanted].mean(0) for word in vocabulary]
    assert close(np.array(finished.vectors.matrix), np.stack(slow), 1e-5)
    assert finished.notes["layers"] == wanted


def means_of_words(teacher: Teacher, texts: list[str], layer: int) -> np.ndarray:
    """The mean of each text's words, each the mean of its pieces: punctuation has no part in it."""
    vectors = []
    for text in texts:
        states, spans = slow_states(teacher, text)
        inside = [
            [n for n, (begin, stop) in enumerate(spans) if begin < end and stop > start]
            for _, start, end in words_of(text)
        ]
        vectors.append(np.mean([states[layer, pieces].mean(0) for pieces in inside], axis=0))
    return np.stack(vectors)


@pytest.mark.parametrize(
    ("power", "ridge", "prior"), [(0.5, 0.1, 0.0), (1.0, 0.1, 4.0), (0.5, 0.01, 1.0), (0.25, 1.0, 4.0)]
)
@pytest.mark.parametrize("layer", ["last", "1-2"])
@pytest.mark.parametrize("pool", ["words", "tokens"])
def test_whitened_context_is_the_closed_form(
    power: float, ridge: float, prior: float, layer: str, pool: str, teacher: Teacher, vocabulary: Vocabulary
) -> None:
    learner = WhitenedContext(layer=layer, pool=pool, power=power, ridge=ridge, prior=prior, directions=0)
    got = matrix_of(learner, teacher, vocabulary, TEXTS)
    chosen = [2] if layer == "last" else [1, 2]
    read = means_of_words if pool == "words" else sentence_vectors
    contexts = np.mean([read(teacher, TEXTS, each) for each in chosen], axis=0)  # (S, D)
    mean = contexts.mean(0)
    covariance = sum(np.outer(c - mean, c - mean) for c in contexts) / len(contexts)
    covariance = covariance + ridge * np.trace(covariance) / len(covariance) * np.eye(len(covariance))
    whitener = fractional_matrix_power(covariance, -power)
    around: dict[str, list[np.ndarray]] = {word: [] for word in vocabulary}
    for text, context in zip(TEXTS, contexts, strict=True):
        for word, _, _ in words_of(text):
            if word in around:
                around[word].append(context)
    wanted = np.stack(
        [whitener @ sum(np.array(around[word]) - mean) / (len(around[word]) + prior) for word in vocabulary]
    )
    assert close(got, wanted, 1e-3)


def dense_additive(
    teacher: Teacher, vocabulary: Vocabulary, ridge: float, smoothing: float, states: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The ridge solution, shrunk towards a map of the states, and the weight of each word."""
    frequency = np.array([int(n) for n in vocabulary.counts], float)
    weight = smoothing / (smoothing + frequency / frequency.sum())
    rows, targets = [], []
    for text, vector in zip(TEXTS, sentence_vectors(teacher, TEXTS), strict=True):
        row = np.zeros(len(vocabulary))
        for word, _, _ in words_of(text):
            if word in vocabulary.index:
                row[vocabulary.index[word]] += weight[vocabulary.index[word]]
        if row.any():
            rows.append(row / row.sum())
            targets.append(vector)
    a, c = np.stack(rows), np.stack(targets)
    assert len(a) == len(TEXTS) - 1, "one sentence has no known word"
    c = c - c.mean(0)
    prior = np.zeros((len(vocabulary), c.shape[1])) if states is None else states @ dense_map(a @ states, c)
    shrunk = np.linalg.solve(a.T @ a + ridge * np.eye(len(vocabulary)), a.T @ (c - a @ prior))
    return prior + shrunk, weight


def dense_map(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Ridge regression of y on x, the penalty a hundredth of the mean squared length of a column."""
    return np.linalg.solve(x.T @ x + 0.01 * np.square(x).sum() / x.shape[1] * np.eye(x.shape[1]), x.T @ y)


@pytest.mark.parametrize(("ridge", "smoothing"), [(0.1, 1e-3), (1.0, 1e-3), (0.1, 0.1)])
def test_additive_is_a_ridge_regression_whose_rows_carry_their_weight(
    ridge: float, smoothing: float, teacher: Teacher, vocabulary: Vocabulary
) -> None:
    learner = Additive(ridge=ridge, smoothing=smoothing, iterations=100)
    solution, weight = dense_additive(teacher, vocabulary, ridge, smoothing)
    assert weight.max() / weight.min() > 1.5, "the weights matter"
    assert close(matrix_of(learner, teacher, vocabulary, TEXTS), solution * weight[:, None], 1e-3)


def test_a_prior_shrinks_additive_rows_towards_mapped_states(teacher: Teacher, vocabulary: Vocabulary) -> None:
    learner = Additive(ridge=0.5, prior=True, iterations=200)
    collected = collect_statistics({"it": learner}, teacher, vocabulary, TEXTS)["it"]
    sides = []
    for label in ("states", "alone"):
        n_contexts = collected[label]["sum:contexts"]
        (sums,) = (table for name, table in collected[label].arrays.items() if "layer-" in name)
        rows = np.stack([row / max(n, 1) for row, n in zip(sums.astype(float), n_contexts, strict=True)])
        rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-30)
        rows = rows - rows.mean(0)
        sides.append(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-30))
    means, alone = sides
    n = np.where(vocabulary.counts > 0, collected["states"]["sum:contexts"], 0).astype(float)[:, None]
    weights = np.sqrt(np.minimum(n, 20))
    predicted = alone @ dense_map(alone * weights, means * weights)
    states = np.concatenate([(n * means + 4 * predicted) / (n + 4), alone], axis=1)
    solution, weight = dense_additive(teacher, vocabulary, 0.5, 1e-3, states)
    assert close(learner.finish(collected).vectors.matrix, solution * weight[:, None], 5e-3)
    plain, _ = dense_additive(teacher, vocabulary, 0.5, 1e-3)
    assert not close(plain, solution, 0.1), "the prior matters"


def test_words_that_the_corpus_lacks_are_no_sentences_of_the_prior(teacher: Teacher) -> None:
    """They would be more than the sentences; statistics of earlier versions have them."""
    texts = sentences(24)
    vocabulary = counted(texts, keep=[f"{word}s" for word in counted(texts)])
    learner = Additive(ridge=0.5, prior=True, iterations=100)
    new = collect_statistics({"it": learner}, teacher, vocabulary, texts)["it"]
    assert len(new["sentences"]["ragged:lengths"]) == len(texts)
    assert not new["states"]["sum:contexts"][vocabulary.counts == 0].any()
    earlier = {"sentences": WeightedSentences(), "states": WordStates(), "alone": learner.specs()["alone"]}
    old = collect_statistics({"it": SimpleNamespace(specs=lambda: earlier)}, teacher, vocabulary, texts)["it"]
    assert len(old["sentences"]["ragged:lengths"]) > len(texts) + 10
    got, wanted = (learner.finish(each).vectors.matrix for each in (new, old))
    assert close(got, wanted, 1e-3)
    assert np.abs(np.asarray(got)[vocabulary.counts == 0]).sum(1).min() > 0, "the prior gives them vectors"


def test_without_a_corpus_the_prior_has_words_alone(teacher: Teacher, vocabulary: Vocabulary) -> None:
    matrix = matrix_of(Additive(prior=True), teacher, Vocabulary(vocabulary.words), [])
    assert np.abs(matrix).sum(1).min() > 0


def test_additive_needs_few_iterations_and_says_how_far_it_came(teacher: Teacher, vocabulary: Vocabulary) -> None:
    collected = collect_statistics({"it": Additive()}, teacher, vocabulary, TEXTS)["it"]
    errors = [float(str(Additive(iterations=n).finish(collected).notes["residual"])) for n in (0, 4, 12)]
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 0.01


@pytest.mark.parametrize("directions", [1, 3])
def test_additive_takes_principal_directions_out_before_the_weights(
    directions: int, teacher: Teacher, vocabulary: Vocabulary
) -> None:
    solution, weight = dense_additive(teacher, vocabulary, 0.1, 1e-3)
    centred = solution - solution.mean(0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    for axis in axes[:directions]:
        centred = centred - np.outer(centred @ axis, axis)
    got = matrix_of(Additive(directions=directions, iterations=100), teacher, vocabulary, TEXTS)
    assert close(got, centred * weight[:, None], 2e-3)


def test_a_plain_mean_of_additive_rows_points_where_the_sentence_does(teacher: Teacher, vocabulary: Vocabulary) -> None:
    """What the weights are stored for."""
    matrix = matrix_of(Additive(ridge=0.01, iterations=60), teacher, vocabulary, TEXTS)
    known = [text for text in TEXTS if text != "Nobody listens."]
    wanted = sentence_vectors(teacher, known)
    means = [
        np.mean([matrix[vocabulary.index[w]] for w, _, _ in words_of(text) if w in vocabulary.index], axis=0)
        for text in known
    ]
    cosines = (unit_rows(np.stack(means)) * unit_rows(wanted - wanted.mean(0))).sum(1)
    assert cosines.mean() > 0.8


TEMPLATES = ("{}", "what is {}?", "the meaning of {} is")


@pytest.mark.parametrize("layer", ["last", "1"])
def test_decontextualized_is_the_mean_over_templates_of_centred_units(
    layer: str, teacher: Teacher, vocabulary: Vocabulary
) -> None:
    number = 2 if layer == "last" else int(layer)
    spaces = []
    for template in TEMPLATES:
        rows = np.stack([slow_states(teacher, template.format(word))[0][number].mean(0) for word in vocabulary])
        spaces.append(unit_rows(rows - rows.mean(0)))
    got = matrix_of(Decontextualized(layer=layer), teacher, vocabulary, [])
    assert close(got, (spaces[0] + spaces[1] + spaces[2]) / 3, 1e-4)


def test_decontextualized_never_looks_at_the_corpus(teacher: Teacher, vocabulary: Vocabulary) -> None:
    without, beside = (matrix_of(Decontextualized(), teacher, vocabulary, texts) for texts in ([], TEXTS))
    assert np.array_equal(without, beside)


@pytest.mark.parametrize("family", ["bert", "gpt2", "albert"])
def test_token_table_is_the_mean_of_rows_of_the_embedding_matrix(family: str, vocabulary: Vocabulary) -> None:
    teacher = tiny_teacher([*WHO, *WHAT[:6]], family=family)
    weights = teacher.model.get_input_embeddings().weight.detach().numpy()  # type: ignore[operator]
    wanted = []
    for word in vocabulary:
        cut = teacher.tokenizer.encode([word])
        wanted.append(weights[cut.ids[cut.ends > 0]].mean(0))  # GPT-2's space before the word is not of the word
    assert close(matrix_of(TokenTable(), teacher, vocabulary, []), np.stack(wanted), 1e-5)


def test_token_table_makes_no_forward_pass(teacher: Teacher, vocabulary: Vocabulary) -> None:
    assert forward_passes({"it": TokenTable()}, teacher, vocabulary, TEXTS) == 0


def test_dictionary_is_the_mean_over_senses(teacher: Teacher, vocabulary: Vocabulary, tmp_path: Path) -> None:
    senses = {
        "farmer": ["a man who owns horses", "one who sells apples", "old word for tenant"],
        "river": ["much water near the village"],
        "moon": ["not a word of ours"],
    }
    path = tmp_path / "words.tsv"
    path.write_text("".join(f"{word}\t{gloss}\n" for word in senses for gloss in senses[word]), "utf-8")
    learner = Dictionary(dictionary=str(path))
    finished = learner.finish(collect_statistics({"it": learner}, teacher, vocabulary, TEXTS)["it"])
    vectors = finished.vectors
    means = {}
    for word in ("farmer", "river"):
        glosses = [slow_states(teacher, f"{word}: {gloss}")[0][-1].mean(0) for gloss in senses[word]]
        means[word] = np.mean(glosses, axis=0)
        assert close(np.array(vectors[word]), means[word], 1e-5)
    assert close(np.array(vectors["bread"]), (means["farmer"] + means["river"]) / 2, 1e-5)
    assert finished.notes["defined"] == 2


def spread(matrix: np.ndarray) -> np.ndarray:
    """Centred, without its first principal direction, rows unit."""
    centred = matrix - matrix.mean(0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    return unit_rows(centred - np.outer(centred @ axes[0], axes[0]))


def template_means(teacher: Teacher, vocabulary: Vocabulary, layer: int) -> np.ndarray:
    """The states of each word, averaged over the templates of auto."""
    texts = [[text.format(word) for text in Auto().templates] for word in vocabulary]
    return np.stack([np.mean([slow_states(teacher, one)[0][layer].mean(0) for one in each], axis=0) for each in texts])


def correlate_rest(x: np.ndarray, y: np.ndarray, given: np.ndarray) -> float:
    """Correlation of the ranks of x and y after a regression of both on those of a third, by least squares."""
    x, y, given = (rankdata(side) for side in (x, y, given))
    design = np.stack([given, np.ones(len(given))], axis=1)
    rest = [side - design @ np.linalg.lstsq(design, side, rcond=None)[0] for side in (x, y)]
    return float(np.corrcoef(rest)[0, 1])


def test_auto_takes_the_layers_that_agree_best_and_joins_its_spaces_by_their_weights(
    vocabulary: Vocabulary, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(vocabulary) >= 50, "with fewer words no layer is chosen"
    monkeypatch.setattr("stillvec.learners.auto._CANDIDATES", "2-4")
    teacher, auto = tiny_teacher([*WHO, *WHAT], depth=4), Auto()
    finished = auto.finish(collect_statistics({"it": auto}, teacher, vocabulary, TEXTS)["it"])

    occurrences = slow_occurrences(teacher, vocabulary)
    means = {
        n: np.stack([np.mean([s[n].mean(0) for s in occurrences[w]], axis=0) for w in vocabulary]) for n in (0, 2, 3, 4)
    }
    alone = {n: template_means(teacher, vocabulary, n) for n in (2, 3, 4)}
    pairs = np.triu_indices(len(vocabulary), 1)
    in_contexts = {n: likeness(spread(rows))[pairs] for n, rows in means.items()}
    agreement = {
        (layer, other): correlate_rest(in_contexts[layer], likeness(spread(rows))[pairs], in_contexts[0])
        for other, rows in alone.items()
        for layer in (2, 3, 4)
    }
    reported = finished.notes["agreement"]
    assert isinstance(reported, dict)
    assert reported == pytest.approx({f"{a}, {b}": value for (a, b), value in agreement.items()}, abs=2e-3)
    best, other = max(agreement, key=agreement.__getitem__)
    chosen = [n for n in (2, 3, 4) if agreement[n, other] >= agreement[best, other] - _TOLERANCE]
    others = [n for n in (2, 3, 4) if agreement[best, n] >= agreement[best, other] - _TOLERANCE]
    assert (finished.notes["layers"], finished.notes["template_layers"]) == (chosen, others)
    assert max(agreement.values()) - min(agreement.values()) > _TOLERANCE, "there is something to choose"

    states = unit_rows(np.mean([spread(means[n]) for n in chosen], axis=0))
    isolated = unit_rows(np.mean([spread(alone[n]) for n in others], axis=0))
    additive, _ = dense_additive(teacher, vocabulary, 0.1, 1e-3)
    joined = np.concatenate([0.8 * isolated, states, 0.5 * unit_rows(additive - additive.mean(0))], axis=1)
    assert np.abs(likeness(np.array(finished.vectors.matrix)) - likeness(unit_rows(joined))).max() < 5e-3


def test_auto_for_a_corpus_joins_contexts_sentences_and_windows(teacher: Teacher, vocabulary: Vocabulary) -> None:
    auto = Auto(purpose="corpus", dim=48)
    finished = auto.finish(collect_statistics({"it": auto}, teacher, vocabulary, TEXTS)["it"])
    assert finished.notes["weights"] == {"states": 1.0, "sentences": 0.5, "windows": 1.5}
    contexts = matrix_of(Auto(purpose="corpus", sentence_weight=0, window_weight=0), teacher, vocabulary, TEXTS)
    windows = matrix_of(WhitenedWindow(layer="best"), teacher, vocabulary, TEXTS)
    additive, _ = dense_additive(teacher, vocabulary, 0.1, 1e-3)
    parts = [(1.0, contexts), (0.25, additive - additive.mean(0)), (2.25, windows)]
    wanted = sum(weight * likeness(unit_rows(rows)) for weight, rows in parts) / 3.5
    assert np.abs(likeness(np.array(finished.vectors.matrix)) - wanted).max() < 5e-3


def test_the_input_itself_never_counts_as_agreement() -> None:
    x, y = np.random.default_rng(0).normal(size=(2, 500))
    assert partial_correlation(x, y, x) == 0.0
    assert partial_correlation(x + y, x, y) == pytest.approx(1.0, abs=1e-12)
    assert partial_correlation(x, y, np.zeros(500)) == pytest.approx(np.corrcoef(x, y)[0, 1])


def test_auto_adds_glosses_where_there_is_a_dictionary(
    teacher: Teacher, vocabulary: Vocabulary, tmp_path: Path
) -> None:
    path = tmp_path / "words.tsv"
    path.write_text("farmer\tone who grows bread\nbaker\tone who sells bread\nriver\twater\n", "utf-8")
    with_it = Auto(dictionary=str(path))
    finished = with_it.finish(collect_statistics({"it": with_it}, teacher, vocabulary, TEXTS)["it"])
    assert finished.notes["defined"] == 3
    assert finished.notes["weights"] == {"templates": 0.8, "states": 1.0, "sentences": 0.5, "glosses": 1.0}
    assert finished.vectors.dim == 4 * teacher.dim
    assert not np.allclose(
        likeness(np.array(finished.vectors.matrix)), likeness(matrix_of(Auto(), teacher, vocabulary, TEXTS)), atol=1e-2
    )


def test_auto_without_a_corpus_uses_templates_only(teacher: Teacher, vocabulary: Vocabulary) -> None:
    bare = Vocabulary(vocabulary.words)  # no counts: no corpus
    auto = Auto(corpus=False)
    finished = auto.finish(collect_statistics({"it": auto}, teacher, bare, [])["it"])
    isolated = spread(template_means(teacher, bare, find_best_layer(teacher)))
    assert np.abs(likeness(np.array(finished.vectors.matrix)) - likeness(isolated)).max() < 1e-3
    assert finished.notes["weights"] == {"templates": 0.8}
    assert "no corpus" in str(finished.notes["why"])


def test_auto_for_sentences_is_additive_with_its_settings(teacher: Teacher, vocabulary: Vocabulary) -> None:
    auto, additive = Auto(purpose="sentences"), Additive(prior=True, ridge=0.3, directions=1)
    assert auto.specs() == additive.specs()
    got, wanted = (matrix_of(learner, teacher, vocabulary, TEXTS) for learner in (auto, additive))
    assert np.array_equal(got, wanted)


def test_vectors_for_queries_lie_in_the_teachers_own_space(teacher: Teacher, vocabulary: Vocabulary) -> None:
    """Nothing is centred: rows without their weights are those of centred sentence vectors, plus the mean of these."""
    auto = Auto(purpose="queries")
    collected = collect_statistics({"it": auto}, teacher, vocabulary, TEXTS)["it"]
    finished, centred = auto.finish(collected), replace(auto._for_sentences(), centred=True).finish(collected)
    known = [text for text in TEXTS if finished.vectors.encode(text).any()]
    mean = np.mean([pool_texts(teacher, text) for text in known], axis=0)
    weights = (1e-3 / (1e-3 + vocabulary.frequencies()))[:, None]
    assert close(finished.vectors.matrix / weights, centred.vectors.matrix / weights + mean, 1e-3)
    assert finished.notes["smoothing"] == 1e-3
    with pytest.raises(UsageError, match="leave out dim"):
        Auto(purpose="queries", dim=5).specs()


def pool_texts(teacher: Teacher, text: str) -> np.ndarray:
    """The mean over all tokens of a text, special ones included."""
    tokens = teacher.tokenizer.encode([text]).ids.tolist()
    ids = torch.tensor([[*teacher.tokenizer.prefix, *tokens, *teacher.tokenizer.suffix]])
    return teacher.states(ids, None, [teacher.depth])[teacher.depth][0].mean(0).numpy()


@pytest.mark.parametrize("purpose", ["words", "sentences"])
def test_auto_keeps_to_the_requested_dimension(purpose: str, teacher: Teacher, vocabulary: Vocabulary) -> None:
    whole, small = (Auto(purpose=purpose, dim=dim) for dim in (300, 5))
    collected = collect_statistics({"it": whole}, teacher, vocabulary, TEXTS)["it"]
    assert small.finish(collected).vectors.dim == 5
    assert whole.finish(collected).vectors.dim == (16 if purpose == "sentences" else 48)


def test_with_few_words_auto_takes_the_best_layer(teacher: Teacher) -> None:
    texts = sentences(6)
    vocabulary, auto = counted(texts), Auto()
    finished = auto.finish(collect_statistics({"it": auto}, teacher, vocabulary, texts)["it"])
    assert len(vocabulary) < 50
    assert finished.notes["layers"] == [find_best_layer(teacher)]


def forward_passes(learners: dict[str, Learner], teacher: Teacher, vocabulary: Vocabulary, texts: list[str]) -> int:
    passes = 0

    def note(module: torch.nn.Module, inputs: object, output: object) -> None:
        nonlocal passes
        passes += 1

    hook = teacher.model.register_forward_hook(note)
    collect_statistics(learners, teacher, vocabulary, texts)
    hook.remove()
    return passes


def test_methods_that_share_a_corpus_cost_one_encoding(teacher: Teacher, vocabulary: Vocabulary) -> None:
    find_best_layer(teacher)  # the look at a teacher is one pass, once
    names = ("auto", "aggregate", "additive", "whitened_context")
    learners = {name: LEARNERS[name]() for name in names}
    alone = {name: forward_passes({name: learners[name]}, teacher, vocabulary, TEXTS) for name in names}
    assert forward_passes(learners, teacher, vocabulary, TEXTS) == alone["auto"]
    assert alone["aggregate"] == alone["additive"] == alone["whitened_context"] < alone["auto"]


def test_a_template_of_several_methods_is_read_once(teacher: Teacher, vocabulary: Vocabulary) -> None:
    find_best_layer(teacher)
    templates = ("{}", "the word {}", "we say {}")
    given = {"one": templates[:2], "other": templates[1:], "twice": ("we say {}", "{}", "{}")}
    learners = {name: LEARNERS["decontextualized"](templates=chosen) for name, chosen in given.items()}
    learners |= {"auto": LEARNERS["auto"](templates=templates, corpus=False)}
    every = {"every": LEARNERS["decontextualized"](templates=templates)}
    assert forward_passes(learners, teacher, vocabulary, []) == forward_passes(every, teacher, vocabulary, [])
    together = collect_statistics(learners, teacher, vocabulary, [])
    for name, learner in learners.items():
        alone = learner.finish(collect_statistics({name: learner}, teacher, vocabulary, [])[name])
        assert np.array_equal(learner.finish(together[name]).vectors.matrix, alone.vectors.matrix)


def test_a_word_the_corpus_lacks_is_read_alone_once_and_says_nothing_of_the_corpus(teacher: Teacher) -> None:
    texts = sentences(24)
    vocabulary = counted(texts, keep=["zebra"])
    kept: dict[str, Statistics] = {}
    learners: dict[str, Learner] = {"aggregate": Aggregate(), "whitened": WhitenedContext(pool="tokens")}
    encoding_pass = collect_statistics(learners, teacher, vocabulary, texts)
    kept |= {"states": encoding_pass["aggregate"]["states"], "contexts": encoding_pass["whitened"]["contexts"]}
    row = vocabulary.index["zebra"]
    alone = slow_states(teacher, "zebra")[0][-1].mean(0)
    assert close(kept["states"]["sum:layer-2"][row], alone, 1e-5)
    assert kept["states"]["sum:contexts"][row] == 1
    assert kept["contexts"]["total:sentences"][0] == len(texts)
    assert close(kept["contexts"]["total:context"], sentence_vectors(teacher, texts).sum(0), 1e-5)


def test_words_of_an_earlier_result_are_not_read_alone_again(teacher: Teacher) -> None:
    texts = sentences(24)
    earlier = counted(texts, keep=["zebra"])
    encoding_pass = make_pass(
        {"it": Aggregate(), "own": TokenTable()}, teacher, counted(texts, keep=["zebra", "lion"]), known=earlier
    )
    for _ in encoding_pass.run([]):
        pass
    read = encoding_pass.statistics_of("it")["states"]
    words = [word for word, times in zip(read.vocabulary, read["sum:contexts"], strict=True) if times]
    assert words == ["lion"]
    table = encoding_pass.statistics_of("own")["table"]["max:table"]
    assert np.isfinite(table).any(1).sum() == 1
