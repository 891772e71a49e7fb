"""Vectors trained on pairs of texts: the gradient, what is learnt, what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from stillvec import WordVectors, refine
from stillvec.errors import DatasetError, UsageError
from stillvec.refinement.text_pairs import TextPairs, _Model, read_texts

LETTERS = "abcdefgh"


@pytest.fixture
def vectors() -> WordVectors:
    return WordVectors([*LETTERS], np.random.default_rng(0).standard_normal((8, 5)).astype(np.float32))


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    """Texts of a and b, which mean the same, or of c and d, or of the others."""
    random = np.random.default_rng(1)
    lines = []
    for _ in range(120):
        words = [[*"ab"], [*"cd"], [*"ef"], [*"gh"]][random.integers(4)]
        lines.append("\t".join(" ".join(map(str, random.choice(words, 2))) for _ in range(2)))
    path = tmp_path / "pairs.tsv"
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def lose_slowly(matrix: np.ndarray, pairs: list[tuple[str, str]], temperature: float) -> float:
    """InfoNCE in both directions, text by text."""
    means = [[np.mean([matrix[LETTERS.index(w)] for w in text.split()], axis=0) for text in pair] for pair in pairs]
    units = [[mean / np.linalg.norm(mean) for mean in pair] for pair in means]
    total = 0.0
    for at, (u, v) in enumerate(units):
        for mine, right, side in ((u, v, 1), (v, u, 0)):
            kept = [
                other[side]
                for number, other in enumerate(units)
                if number == at
                or not (
                    pairs[number][1] == pairs[at][1]
                    or pairs[number][0] == pairs[at][0]
                    or (pairs[at][0] == pairs[number][1] if side else pairs[number][0] == pairs[at][1])
                )
            ]
            scores = np.array([mine @ other for other in kept]) / temperature
            total += np.logaddexp.reduce(scores) - mine @ right / temperature
    return total / (2 * len(pairs))


@pytest.mark.parametrize("maps", [False, True])
def test_the_loss_is_that_of_a_slow_loop_and_the_gradient_that_of_finite_differences(
    maps: bool, vectors: WordVectors, pairs: Path
) -> None:
    texts = read_texts((str(pairs),))
    model = _Model(TextPairs(on=(str(pairs),), temperature=0.5), vectors, texts)
    matrix, batch = np.asarray(vectors.matrix, np.float32), model.learnt[:9]
    table = np.eye(5, dtype=np.float32) if maps else matrix
    loss, used, slope = model.differentiate(table, batch, maps=maps)
    chosen = [(texts[row][0], texts[row][1]) for row in batch.tolist()]
    assert loss == pytest.approx(lose_slowly(matrix, chosen, 0.5), rel=1e-5)
    for row in range(len(used)):
        for column in range(5):
            change = np.zeros_like(table, dtype=np.float64)
            change[used[row], column] = 1e-3
            sides = [matrix @ each if maps else each for each in (table + change, table - change)]
            expected = (lose_slowly(sides[0], chosen, 0.5) - lose_slowly(sides[1], chosen, 0.5)) / 2e-3
            assert slope[row, column] == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("train", ["words", "map"])
def test_texts_that_mean_the_same_become_nearer(train: str, vectors: WordVectors, pairs: Path) -> None:
    tuned = refine(vectors, f"text_pairs:on={pairs},epochs=20,rate=0.05,batch=16,train={train}")
    before, after = vectors.similarity("a", "b"), tuned.similarity("a", "b")
    assert after > before
    (record,) = tuned.provenance["refined"]
    assert record["loss"]["held out after"] < record["loss"]["held out before"]
    assert [*record["files"]] == [str(pairs)]


def test_no_epoch_changes_nothing(vectors: WordVectors, pairs: Path) -> None:
    same = refine(vectors, f"text_pairs:on={pairs},epochs=0")
    assert np.asarray(same.matrix).tobytes() == np.asarray(vectors.matrix).tobytes()


def test_given_vectors_are_approached(vectors: WordVectors, tmp_path: Path) -> None:
    random = np.random.default_rng(2)
    texts = [" ".join(map(str, random.choice([*LETTERS], 3))) for _ in range(80)]
    (tmp_path / "texts.txt").write_text("\n".join(texts), "utf-8")
    goals = random.standard_normal((8, 5)).astype(np.float32)
    np.save(tmp_path / "goals.npy", np.stack([goals[[LETTERS.index(w) for w in t.split()]].mean(0) for t in texts]))
    step = f"text_pairs:on={tmp_path}/texts.txt,toward={tmp_path}/goals.npy,epochs=60,rate=0.1,batch=16"
    record = refine(vectors, step).provenance["refined"][0]
    assert record["loss"]["held out after"] < 0.3 * record["loss"]["held out before"]
    np.save(tmp_path / "goals.npy", np.zeros((3, 5)))
    with pytest.raises(DatasetError, match="array"):
        refine(vectors, step)


def test_wrong_input_is_one_sentence(vectors: WordVectors, tmp_path: Path) -> None:
    (tmp_path / "one.tsv").write_text("a\n" * 30, "utf-8")
    with pytest.raises(DatasetError) as caught:
        refine(vectors, f"text_pairs:on={tmp_path}/one.tsv")
    assert caught.value.line == 1
    for wrong, error in (("missing.tsv", DatasetError), ("one.tsv,train=all", UsageError)):
        with pytest.raises(error):
            refine(vectors, f"text_pairs:on={tmp_path}/{wrong}")
