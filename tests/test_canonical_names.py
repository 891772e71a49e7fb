"""RESEMBLE: the formula by hand, names in texts, and answers that depend less on names."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import stillvec
from stillvec.cli import main
from stillvec.errors import DatasetError, UsageError
from stillvec.heads import CanonicalNames
from stillvec.heads.fitted_head import Head
from stillvec.vectors import WordVectors
from stillvec.verbs.fitting import fit

NAMES = ("Acme", "Acme Motors", "Initech", "Globex", "Hooli")
ONE = np.zeros(1, np.int64)


def test_the_formula_by_hand() -> None:
    names = CanonicalNames(NAMES, ("Acme", "Globex"), temperature=2.0, confidence=0.75)
    own, others = np.array([[0.9, 0.1]]), np.array([[0.2, 0.8], [0.4, 0.6]])
    tempered = np.sqrt([0.9, 0.1]) / np.sqrt([0.9, 0.1]).sum()
    expected = 0.25 * tempered + 0.75 * (tempered * others[0] * others[1]) ** (1 / 3)
    found = names.combine(own, others, np.zeros(2, np.int64))
    np.testing.assert_allclose(found[0], expected / expected.sum(), atol=1e-9)
    unsure = CanonicalNames(NAMES, ("Acme",), confidence=0)
    assert unsure.combine(own, others[:1], ONE).argmax() == 0
    alone = names.combine(np.array([[0.9, 0.1], [0.3, 0.7]]), others, np.zeros(2, np.int64))
    np.testing.assert_array_equal(alone[1], [0.3, 0.7])  # no name: the same answer


def test_canonical_names_make_noisy_answers_stable() -> None:
    """The simulation of the paper's setting: 50 names that add noise to the score, canonical ones that add less."""
    random = np.random.default_rng(0)
    gold = random.integers(0, 2, 400)
    noisy = (2 * gold - 1)[:, None] + random.normal(0, 1.5, (400, 50))
    calm = (2 * gold - 1)[:, None] + random.normal(0, 0.6, (400, 3))

    def measure(scores: np.ndarray, n: int) -> tuple[float, float, float]:
        likely = 1 / (1 + np.exp(-np.stack([-scores, scores], axis=-1)))  # (400, 50, 2)
        if n:
            names = CanonicalNames(NAMES, NAMES[:n])
            versions = 1 / (1 + np.exp(-np.stack([-calm[:, :n], calm[:, :n]], axis=-1)))
            item = np.repeat(np.arange(400), n)
            likely = np.stack([names.combine(likely[:, at], versions.reshape(-1, 2), item) for at in range(50)], axis=1)
        right = likely.argmax(axis=-1) == gold[:, None]
        return float(right.all(axis=1).mean()), float(right.any(axis=1).mean()), float(right.mean())

    plain, one, three = (measure(noisy, n) for n in (0, 1, 3))
    assert plain[0] < one[0] < three[0]
    assert plain[1] - plain[0] > one[1] - one[0] > three[1] - three[0]
    assert plain[2] < one[2] < three[2]


def test_names_are_replaced_everywhere_and_differently() -> None:
    names = CanonicalNames(NAMES, ("Globex", "Hooli"))
    items = [("Acme Motors sued Initech; Initech won",), ("acme and Acmes",), ("Acme", "Hooli and Acme of Initech")]
    versions, item = names.vary(items)
    assert item.tolist() == [0, 0, 2, 2]
    assert versions[:2] == [("Globex sued Hooli; Hooli won",), ("Hooli sued Globex; Globex won",)]
    assert versions[2:] == [("Globex", "Hooli and Globex of Initech"), ("Hooli", "Globex and Hooli of Initech")]


@pytest.fixture(scope="module")
def head() -> Head:
    """Whose answer hangs on names: their vectors point to a label."""
    random = np.random.default_rng(2)
    words = ("good", "bad", "film", "by", *map(str.lower, NAMES[2:]), "acme")
    matrix = random.normal(0, 0.1, (len(words), 6)).astype(np.float32)
    matrix[0, 0], matrix[1, 0] = 2, -2
    matrix[4, 0], matrix[5, 0], matrix[6, 0] = 3, -3, 0
    texts = [
        (f"{'good' if n % 2 else 'bad'} film by {NAMES[2 + n // 2 % 2]}", "pos" if n % 2 else "neg") for n in range(40)
    ]
    return fit(WordVectors(words, matrix), texts)


def test_a_head_answers_with_canonical_names(head: Head, tmp_path: Path) -> None:
    texts = ["good film by Initech", "good film by Globex", "good film by Hooli", "bad film", "good"]
    (tmp_path / "names.tsv").write_text("Hooli\t9\nInitech\t2\nGlobex\t1\n")
    names = CanonicalNames.read(tmp_path / "names.tsv", ["Hooli"])
    plain, steady = head.predict_proba(texts), head.predict_proba(texts, names)
    assert np.ptp(steady[:3, 0]) < np.ptp(plain[:3, 0])
    np.testing.assert_array_equal(steady[3:], plain[3:])
    asked = head.predict_proba([texts[2]])[0].astype(np.float64)
    tempered = np.sqrt(plain[0].astype(np.float64)) / np.sqrt(plain[0].astype(np.float64)).sum()
    expected = np.sqrt(tempered * asked)
    np.testing.assert_allclose(steady[0], expected / expected.sum(), atol=1e-6)
    assert CanonicalNames.read(tmp_path / "names.tsv").canonical == ("Hooli", "Initech", "Globex")
    np.testing.assert_array_equal(
        head.predict_proba(texts, tmp_path / "names.tsv"),
        head.predict_proba(texts, CanonicalNames.read(tmp_path / "names.tsv")),
    )


def test_several_labels_are_combined_one_by_one(head: Head) -> None:
    texts = [
        (f"{'good' if n % 2 else 'bad'} film by {NAMES[2 + n % 3]}", ("pos", "any") if n % 2 else ("neg",))
        for n in range(60)
    ]
    several = fit(head.vectors, texts, multilabel=True)
    names = CanonicalNames(NAMES, ("Hooli",))
    asked = ["good film by Initech", "good film by Hooli"]
    own, canonical = several.predict_proba(asked).astype(np.float64)
    odds = np.sqrt(own / (1 - own)) * canonical / (1 - canonical)
    np.testing.assert_allclose(several.predict_proba(asked, names)[0], np.sqrt(odds) / (1 + np.sqrt(odds)), atol=1e-5)


def test_the_command_takes_a_file_of_names(head: Head, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    head.save(tmp_path / "head")
    (tmp_path / "names.tsv").write_text("\n".join(NAMES))
    text = "good film by Globex"
    call = ["predict", str(tmp_path / "head"), "--json", "--canonical", str(tmp_path / "names.tsv")]
    assert main([*call, "--canonical-names", "Hooli", text]) == 0
    said = json.loads(capsys.readouterr().out)["probabilities"]
    expected = head.predict_proba([text], CanonicalNames(NAMES, ("Hooli",)))[0]
    assert [said[label] for label in head.labels] == pytest.approx(expected.tolist(), abs=1e-5)
    assert main([*call, text]) == 0
    assert json.loads(capsys.readouterr().out)["probabilities"] != said
    assert main(["predict", str(tmp_path / "head"), "--canonical-names", "Hooli", text]) == 2
    assert main(["predict", str(tmp_path / "head"), "--canonical", str(tmp_path / "none.tsv"), text]) == 1
    assert "none.tsv" in capsys.readouterr().err


def test_wrong_names_are_refused(head: Head, tmp_path: Path) -> None:
    (tmp_path / "one.tsv").write_text("Acme\n\n")
    with pytest.raises(DatasetError):
        head.predict(["good"], tmp_path / "one.tsv")
    for settings in ({"temperature": 0.0}, {"confidence": 1.5}, {"confidence": -1.0}):
        with pytest.raises(UsageError):
            CanonicalNames(NAMES, NAMES[:1], **settings)
    with pytest.raises(UsageError):
        CanonicalNames(NAMES, ())
    tagger = fit(head.vectors, [(("good", "film"), ("O", "B-X"))] * 20, "tagger:epochs=1")
    with pytest.raises(UsageError) as caught:
        tagger.predict(["good"], CanonicalNames(NAMES, NAMES[:1]))
    assert caught.value.code == "no-probabilities"
    assert stillvec.heads.CanonicalNames is CanonicalNames
