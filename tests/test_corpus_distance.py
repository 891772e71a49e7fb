"""Distances between texts: trigram perplexity against a slow computation, shared words, the order, the command."""

import json
import math

import pytest
import torch

from stillvec.analysis.corpus_distance import TrigramModel, compare_corpora
from stillvec.cli import main
from stillvec.errors import CorpusError, UsageError
from stillvec.training import character_model
from stillvec.training.character_model import CharacterModel

DUTCH = "de kat zit op de mat en het huis van de man is groot maar de tuin is klein "
AFRIKAANS = "die kat sit op die mat en die huis van die man is groot maar die tuin is klein "
FINNISH = "kissa istuu matolla ja miehen talo on suuri mutta puutarha on pieni ja kaunis "


def _slow(text: str, history: str, letter: str) -> float:
    """Witten-Bell by counting in the text anew for each history."""
    padded, value = "\n\n" + text, 1 / (len({*text}) + 1)
    for n in (0, 1, 2):
        part = history[2 - n :]
        after = [padded[at] for at in range(2, len(padded)) if padded[at - n : at] == part]
        if after:
            kinds = len({*after})
            value = (after.count(letter) + kinds * value) / (len(after) + kinds)
    return value


def test_probabilities_are_those_of_a_slow_computation_and_sum_to_one() -> None:
    text = DUTCH[:40]
    model = TrigramModel(text)
    for history in ("de", " k", "zz", "\n\n", "xd"):
        for letter in "dek z":
            assert model.probability(history + letter) == pytest.approx(_slow(text, history, letter))
        unseen = model.probability(history + "ø")
        assert sum(model.probability(history + letter) for letter in {*text}) + unseen == pytest.approx(1)
    grams = [("\n\n" + "kat")[at : at + 3] for at in range(3)]
    expected = math.exp(-sum(math.log(_slow(text, gram[:2], gram[2])) for gram in grams) / 3)
    assert model.perplexity("kat") == pytest.approx(expected)


def _write(tmp_path):
    texts = {"nl": DUTCH, "af": AFRIKAANS, "fi": FINNISH}
    for name, text in texts.items():
        (tmp_path / f"{name}.txt").write_text(text * 20, "utf-8")
    return {name: tmp_path / f"{name}.txt" for name in texts}


def test_the_nearest_text_is_found_by_both_measures(tmp_path) -> None:
    distances = compare_corpora(_write(tmp_path))
    for one, other in (("nl", "af"), ("af", "nl")):
        assert distances.nearest(one)[0] == (other, 1.0)
        assert distances.perplexity[one][other] < distances.perplexity[one]["fi"]
    # Dutch and Afrikaans share nine words, and Finnish shares none with either
    assert distances.shared_words["nl"] == {"af": 1.0, "fi": 0.0}


def test_a_recurrent_model_finds_the_nearest_text_too(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(character_model, "STEPS", 25)
    monkeypatch.setattr(character_model, "_BATCH", 8)
    texts = _write(tmp_path)
    distances = compare_corpora(texts, neural=True)
    near = distances.neural_perplexity["nl"]
    assert near["af"] < near["fi"]
    assert distances.nearest("nl")[0] == ("af", 1.0)


def test_a_recurrent_model_learns_its_text_and_its_perplexity_is_that_of_its_probabilities() -> None:
    text = DUTCH * 10
    early, late = (CharacterModel(text, "xyz", steps=steps) for steps in (1, 40))
    assert late.perplexity(DUTCH) < 0.7 * early.perplexity(DUTCH)
    parts, logs, state = late.parts, [], None
    row = [len(late.characters), *(late.characters[letter] for letter in "de kat")]
    for at, letter in enumerate("de kat"):
        states, state = parts["gru"](parts["embed"](torch.tensor([[row[at]]])), state)
        likely = parts["score"](states)[0, 0].softmax(dim=0)[late.characters[letter]]
        logs.append(math.log(0.99 * likely.item() + 0.01 / len(late.characters)))
    assert late.perplexity("de kat") == pytest.approx(math.exp(-sum(logs) / 6), rel=1e-4)
    assert late.perplexity("zzz") > 50


def test_a_short_text_and_a_single_one_are_refused(tmp_path) -> None:
    texts = _write(tmp_path)
    with pytest.raises(UsageError):
        compare_corpora({"nl": texts["nl"]})
    texts["af"].write_text("die kat", "utf-8")
    with pytest.raises(CorpusError):
        compare_corpora(texts)


def test_the_command_prints_the_order(tmp_path, capsys) -> None:
    names = [f"{name}={path}" for name, path in _write(tmp_path).items()]
    assert main(["analyze", "--corpora", *names]) == 0
    assert "af, fi" in capsys.readouterr().out
    assert main(["analyze", "--corpora", *names, "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["shared_words"]["nl"]["fi"] == 0
