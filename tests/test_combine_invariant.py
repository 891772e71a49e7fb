"""Languages of one teacher that a network cannot tell apart: gradients, and what a new probe finds."""

import numpy as np
import pytest

from stillvec import WordVectors, combine
from stillvec.combination.invariant import InvariantMap, Parameters, scale_rows
from stillvec.heads.linear_probe import tell_groups


def _losses(learnt: Parameters, x: np.ndarray, label: np.ndarray) -> tuple[float, float]:
    """The error of the way back and the cross entropy of spaces, row by row."""
    error = entropy = 0.0
    for row, space in zip(x, label, strict=True):
        mapped = np.tanh(row + row @ learnt.map)
        error += float(np.square(mapped + mapped @ learnt.back - row).sum()) / len(x)
        hidden = np.maximum(mapped @ learnt.first + learnt.first_bias, 0)
        scores = hidden @ learnt.second + learnt.second_bias
        entropy += float(np.log(np.exp(scores).sum()) - scores[space]) / len(x)
    return error, entropy


def test_gradients_are_those_of_finite_differences_with_the_sign_of_the_map_reversed() -> None:
    random = np.random.default_rng(0)
    shapes = [(3, 3), (3, 3), (3, 4), (4,), (4, 2), (2,)]
    learnt = Parameters(*(random.normal(size=shape) / 2 for shape in shapes))
    x, label = random.normal(size=(6, 3)), np.array([0, 1, 0, 1, 1, 0])
    method = InvariantMap(weight=0.7)
    for name, gradient in zip(Parameters._fields, method.gradients(learnt, x, label), strict=True):
        part = getattr(learnt, name)
        for place in np.ndindex(part.shape):
            near = []
            for change in (1e-5, -1e-5):
                part[place] += change
                near.append(np.array(_losses(learnt, x, label)))
                part[place] -= change
            error, entropy = (near[0] - near[1]) / 2e-5
            expected = error - 0.7 * entropy if name == "map" else error + entropy
            assert gradient[place] == pytest.approx(expected, abs=1e-6), name


def test_a_probe_tells_languages_less_well_and_words_keep_their_neighbours() -> None:
    random = np.random.default_rng(0)
    meaning = random.normal(size=(300, 12))
    words = [f"w{number}" for number in range(300)]
    moved = [meaning + 0.1 * random.normal(size=meaning.shape) + shift for shift in (0, 1.5 * random.normal(size=12))]
    spaces = [WordVectors(words, rows.astype(np.float32)) for rows in moved]

    def measure(both: WordVectors) -> tuple[float, float]:
        sides = [both.matrix[[both.vocabulary.index[f"{tag}:{word}"] for word in words]] for tag in ("a", "b")]
        unit = [side / np.linalg.norm(side, axis=1, keepdims=True) for side in sides]
        found = float(((unit[0] @ unit[1].T).argmax(axis=1) == np.arange(300)).mean())
        return tell_groups([scale_rows(side) for side in sides]), found

    plain = measure(combine(spaces, "align:mapping=none,center=false,tags=a,b"))
    hidden = measure(combine(spaces, "invariant:tags=a,b,weight=1"))
    centred = measure(combine(spaces, "align:mapping=none,tags=a,b"))
    assert plain[0] > 0.95
    assert hidden[0] < plain[0]
    assert hidden[1] > plain[1] + 0.05
    assert centred[0] < 0.6  # the simple rival


def test_mapping_none_only_subtracts_the_mean_of_each_space() -> None:
    random = np.random.default_rng(0)
    spaces = [WordVectors(["a", "b", "c"], random.normal(size=(3, 4)).astype(np.float32)) for _ in range(2)]
    both = combine(spaces, "align:mapping=none,tags=x,y")
    for space, tag in zip(spaces, "xy", strict=True):
        rows = space.matrix / np.linalg.norm(space.matrix, axis=1, keepdims=True)
        rows = rows - rows.mean(axis=0)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        np.testing.assert_allclose(np.stack([both[f"{tag}:{word}"] for word in "abc"]), rows, atol=1e-6)
