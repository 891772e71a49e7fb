"""Nothing is chosen or fitted on test items: choices are made on development items, the last fit on both others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from stillvec import Vocabulary, WordVectors
from stillvec.evaluation import labels as label_task
from stillvec.evaluation import probing
from stillvec.evaluation.information import _shares
from stillvec.evaluation.labels import Labels, kind_labels
from stillvec.evaluation.network_training import CnnSchedule, Convolution, Recurrence
from stillvec.heads.lookup import Lookup
from stillvec.heads.networks import NetworkSettings, PaddedTexts, TaggerNetworks, perceptron
from stillvec.heads.sequence_batches import UNKNOWN, Sequences
from stillvec.heads.splits import Round
from stillvec.heads.text_networks import CnnNetworks
from stillvec.progress import drain

SPLIT = Round(train=np.array([4, 5, 6, 7]), dev=np.array([2, 3]), test=np.array([0, 1]))


def sequences(n: int = 8) -> Sequences:
    table = np.random.default_rng(0).standard_normal((6, 4)).astype(np.float32)
    table[:2] = 0
    return Sequences(table, np.tile([2, 3, 4, 5], n).astype(np.int64), 4 * np.arange(1, n + 1))


def padded(n: int = 8, sets: int = 1, border: int = 0) -> PaddedTexts:
    return PaddedTexts([sequences(n)] * sets, torch.device("cpu"), border)


BEST = {0: (3e-4, 2), 1: (1e-4, 4)}  # of each set, on development items


@dataclass
class Scripted:
    """Networks that are right on development items and on test items after different settings."""

    networks: list[NetworkSettings]
    epoch: int

    def predict(self, chosen: Any) -> torch.Tensor:
        if np.array_equal(chosen, SPLIT.dev):
            right = [(network.rate, self.epoch) == BEST[network.vectors] for network in self.networks]
        else:
            right = [(network.rate, self.epoch) == (1e-3, 3) for network in self.networks]
            assert np.array_equal(chosen, SPLIT.test)
            if self.networks[0].rate == self.networks[1].rate:  # the last fit: tell the epoch
                return torch.full((len(self.networks), len(chosen)), self.epoch)
        return torch.tensor([[int(is_right)] * len(chosen) for is_right in right])


def test_the_cnn_chooses_rate_and_epochs_on_development_items_and_learns_again_from_both(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[tuple[list[int], list[tuple[int, int, float]], int]] = []

    def train(self: Convolution, rows: Any, networks: list[NetworkSettings], epochs: int) -> Iterator[Any]:
        calls.append((rows.tolist(), [(each.vectors, each.seed, each.rate) for each in networks], epochs))
        yield from (Scripted(networks, epoch) for epoch in range(1, epochs + 1))

    monkeypatch.setattr(Convolution, "train", train)
    rates = (1e-4, 3e-4, 1e-3)
    model = Convolution(padded(sets=2), np.ones(8, np.int64), CnnSchedule(rates, (2, 4)))
    labels = drain(model.run(SPLIT, 2))
    assert calls == [
        (SPLIT.train.tolist(), [(vectors, 0, rate) for vectors in (0, 1) for rate in rates], 4),
        (SPLIT.both.tolist(), [(0, 0, 3e-4), (0, 1, 3e-4), (1, 0, 1e-4), (1, 1, 1e-4)], 4),
    ]
    assert labels.tolist() == [[[2, 2], [2, 2]], [[4, 4], [4, 4]]]


def test_the_cnn_drops_half_of_its_features_while_it_learns(monkeypatch: pytest.MonkeyPatch) -> None:
    group = CnnNetworks(padded(200, border=1), np.arange(200) % 100, [NetworkSettings(0, 0, 1e-3)])
    group.parameters[1] = torch.full((1, 100), 5.0)  # no feature is zero by itself
    group.parameters[2:] = torch.eye(100)[None], torch.zeros(1, 100)
    ids = group.read(torch.arange(200)[None], 4)
    whole, dropped = group.scores(ids), group.scores(ids, torch.tensor([[7], [0]], dtype=torch.int32))
    kept = dropped != 0
    assert 0.45 < kept.float().mean() < 0.55
    torch.testing.assert_close(dropped[kept], 2 * whole[kept])
    salts: list[Any] = []
    forward = CnnNetworks.forward
    monkeypatch.setattr(
        CnnNetworks, "forward", lambda self, ids, salt=None: (salts.append(salt), forward(self, ids, salt))[1]
    )
    group = next(Convolution(padded(200, border=1), np.arange(200) % 2).train(np.arange(200), group.networks, 1))
    assert len({int(salt[0]) for salt in salts}) == 4  # of the four batches
    group.predict(SPLIT.test)
    assert salts[4:] == [None]


def test_the_tagger_keeps_the_epoch_that_is_best_on_development_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    epochs = {"n": 0}

    def train(self: TaggerNetworks, rows: Any, n_epochs: int, *_: Any) -> Iterator[None]:
        """The weights of the first network are the number of the epoch; the second is an epoch behind."""
        for epoch in range(1, n_epochs + 1):
            self.set_weights(torch.tensor([[epoch], [epoch - 1]]).expand(self.flat.shape).float())
            epochs["n"] = epoch
            yield

    def predict_words(self: TaggerNetworks, chosen: Any) -> Any:
        return np.repeat(self.flat.detach()[:, :1].long().numpy(), 4 * len(chosen), axis=1)

    def quality(chosen: Any, said: Any) -> float:
        best = 2 if np.array_equal(chosen, SPLIT.dev) else 4
        return float(said[0] == best)

    monkeypatch.setattr(TaggerNetworks, "train", train)
    monkeypatch.setattr(TaggerNetworks, "predict_words", predict_words)
    tagger = Recurrence(padded(), np.zeros(32, np.int64), quality, epochs=5)
    assert drain(tagger.run(SPLIT, [0, 1])).tolist() == [[[2] * 8, [2] * 8]]
    assert epochs["n"] == 5


@pytest.mark.parametrize("tuned", [False, True])
def test_the_tagger_changes_the_vectors_only_where_it_may(tuned: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    groups: list[TaggerNetworks] = []
    train = TaggerNetworks.train
    monkeypatch.setattr(TaggerNetworks, "train", lambda self, *given: (groups.append(self), train(self, *given))[1])
    texts, tags = padded(), np.tile([0, 1, 0, 1], 8)
    drain(Recurrence(texts, tags, lambda *_: 0.0, epochs=1, tuned=tuned).run(SPLIT, [0]))
    read = groups[0].embed(torch.arange(6)[None])[0].detach().numpy()
    assert bool((read != texts.sequences[0].scale_table()).any()) == tuned


def test_the_perceptron_stops_by_the_development_counts() -> None:
    labels = np.arange(40) % 2
    x, seen = np.eye(40, dtype=np.float32), np.eye(2)[labels]
    learnt, stopped = (perceptron(x, seen, judged, 20, 0) for judged in (seen, seen[:, ::-1]))
    assert learnt.tolist() == labels.tolist()
    assert stopped.tolist() != labels.tolist()  # every step makes the development loss worse


def treebank(folder: Path) -> Path:
    """Sentences in which each of three words has tags at random."""
    generator = np.random.default_rng(3)
    lines = []
    for _ in range(40):
        for at, word in enumerate(generator.choice(["a", "b", "c"], 3), 1):
            tag = generator.choice(["NOUN", "VERB", "ADJ"])
            lines.append(f"{at}\t{word}\t{word}\t{tag}\t_\t_\t{at - 1}\t{'root' if at == 1 else 'dep'}\t_\t_")
        lines.append("")
    (folder / "tagging").mkdir()
    (folder / "tagging" / "t.conllu").write_text("\n".join(lines) + "\n")
    return folder / "tagging" / "t.conllu"


def test_label_probes_and_the_majority_never_see_test_labels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = Labels()
    items = task.read(treebank(tmp_path))
    vectors = WordVectors(Vocabulary(["a", "b", "c"]), np.eye(3))
    seen: list[tuple[Any, Any]] = []

    def probe(self: Labels, table: Any, train: Any, dev: Any) -> Any:
        seen.append((train, dev))
        return np.zeros((len(table), 1), np.int64)

    monkeypatch.setattr(Labels, "_probe", probe)
    answers = task.answer(Lookup(vectors), items)
    words = [word for sentence in items.all_texts for word in sentence]
    sentence = np.repeat(np.arange(len(items.all_texts)), 3)
    tags = kind_labels(items, 0)
    right = np.zeros(len(items))
    for number, split in enumerate(items.rounds):
        counts = {part: np.zeros((3, 3)) for part in ("train", "dev", "both")}
        for part, table in counts.items():
            for at in np.flatnonzero(np.isin(sentence, getattr(split, part))):
                table["abc".index(words[at]), tags[at]] += 1
        train, dev = seen[2 * number]
        np.testing.assert_array_equal(train[UNKNOWN + 1 :], counts["train"])
        np.testing.assert_array_equal(dev[UNKNOWN + 1 :], counts["dev"])
        for at in np.flatnonzero(np.isin(sentence, split.test)):
            right[sentence[at]] += counts["both"]["abc".index(words[at])].argmax() == tags[at]
    np.testing.assert_array_equal(answers.values["upos-majority"], right[:, None])
    assert label_task.KINDS["relations"][0] == "upos"


def test_a_ridge_probe_is_chosen_on_development_items_and_fitted_again_to_both(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fits: list[Any] = []

    class RecordedPath(probing.RidgePath):  # type: ignore[misc]
        def __init__(self, x: Any, y: Any) -> None:
            fits.append(y.copy())
            super().__init__(x, y)

    monkeypatch.setattr(probing, "RidgePath", RecordedPath)
    generator = np.random.default_rng(0)
    x, y = generator.standard_normal((40, 5)), generator.standard_normal((40, 2))
    split = Round(np.arange(16, 40), np.arange(8, 16), np.arange(8))
    first = probing.fit_probe(x, y, split)
    np.testing.assert_array_equal(fits[0], y[split.train])
    np.testing.assert_array_equal(fits[1], y[split.both])
    poisoned = y.copy()
    poisoned[split.test] = 1e6
    np.testing.assert_array_equal(probing.fit_probe(x, poisoned, split), first)


def test_information_in_the_task_is_without_its_bias() -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    generator = np.random.default_rng(0)
    clusters, tags = generator.integers(0, 6, 60), generator.integers(0, 5, 60)
    every, sentences = np.ones(60, np.int64), np.arange(60)
    (found,) = _shares(clusters, tags, every, sentences, sentences, np.ones((1, 60)))
    cells = len({*zip(clusters.tolist(), tags.tolist(), strict=True)})
    bias = (cells - len({*clusters.tolist()}) - len({*tags.tolist()}) + 1) / 120
    shares = np.bincount(tags) / 60
    entropy = -(shares * np.log(shares)).sum()
    assert bias / entropy > 0.05
    assert found == pytest.approx((metrics.mutual_info_score(clusters, tags) - bias) / entropy)
