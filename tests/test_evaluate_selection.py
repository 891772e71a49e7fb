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
from stillvec.evaluation.lookup import Lookup
from stillvec.evaluation.networks import CnnNetwork, CnnSchedule, Convolution, Recurrence
from stillvec.evaluation.sequence_batches import UNKNOWN, Sequences
from stillvec.evaluation.splits import Round
from stillvec.progress import drain

SPLIT = Round(train=np.array([4, 5, 6, 7]), dev=np.array([2, 3]), test=np.array([0, 1]))


def sequences(n: int = 8) -> Sequences:
    table = np.random.default_rng(0).standard_normal((6, 4)).astype(np.float32)
    table[:2] = 0
    return Sequences(table, np.tile([2, 3, 4, 5], n).astype(np.int64), 4 * np.arange(1, n + 1))


@dataclass
class Scripted:
    """A network that is right on development items and on test items after different settings."""

    rate: float
    epoch: int

    def predict(self, sequences: Sequences, chosen: Any) -> Any:
        right = (self.rate, self.epoch) == ((3e-4, 2) if np.array_equal(chosen, SPLIT.dev) else (1e-3, 3))
        return np.ones(len(chosen), np.int64) if right else np.zeros(len(chosen), np.int64)


def test_the_cnn_chooses_rate_and_epochs_on_development_items_and_learns_again_from_both(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[tuple[list[int], float, int]] = []

    def train(self: Convolution, rows: Any, rate: float, epochs: int, seed: int) -> Iterator[Any]:
        calls.append((rows.tolist(), rate, epochs))
        yield from (Scripted(rate, epoch) for epoch in range(1, epochs + 1))

    monkeypatch.setattr(Convolution, "train", train)
    schedule = CnnSchedule((1e-4, 3e-4, 1e-3), (2, 4))
    model = Convolution(sequences(), np.ones(8, np.int64), sequences().table, schedule)
    drain(model.run(SPLIT, 2))
    assert [rows for rows, _, _ in calls[:3]] == [SPLIT.train.tolist()] * 3
    assert calls[3:] == [(SPLIT.both.tolist(), 3e-4, 2)] * 2


def test_the_cnn_drops_half_of_its_features_while_it_learns(monkeypatch: pytest.MonkeyPatch) -> None:
    network = CnnNetwork(sequences().table, 100, 0, tuned=False)
    network.out, network.out_bias = torch.eye(100), torch.zeros(100)
    network.bias = torch.full_like(network.bias, 5.0)  # no feature is zero by itself
    ids = torch.from_numpy(sequences(200).pad(np.arange(200), border=1))
    whole, dropped = network.scores(ids), network.scores(ids, training=True)
    kept = dropped != 0
    assert 0.45 < kept.float().mean() < 0.55
    torch.testing.assert_close(dropped[kept], 2 * whole[kept])
    flags: list[bool] = []
    scores = CnnNetwork.scores
    monkeypatch.setattr(
        CnnNetwork, "scores", lambda self, ids, *, training=False: (flags.append(training), scores(self, ids))[1]
    )
    next(Convolution(sequences(), np.arange(8) % 2, sequences().table).train(SPLIT.train, 1e-3, 1, 0))
    assert flags
    assert all(flags)


def test_the_tagger_keeps_the_epoch_that_is_best_on_development_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    @dataclass
    class Tagger:
        epoch: int

        def predict(self, sequences: Sequences, chosen: Any) -> list[Any]:
            return [np.full(4, self.epoch) for _ in chosen]

    def quality(chosen: Any, said: list[Any]) -> float:
        best = 2 if np.array_equal(chosen, SPLIT.dev) else 4
        return float(said[0][0] == best)

    monkeypatch.setattr(Recurrence, "_train", lambda self, rows, seed: (Tagger(epoch) for epoch in range(1, 6)))
    tagger = Recurrence(sequences(), np.zeros(32, np.int64), sequences().table, quality, epochs=5)
    assert [said.tolist() for said in drain(tagger.run(SPLIT, 0))] == [[2] * 4] * 2


@pytest.mark.parametrize("tuned", [False, True])
def test_the_tagger_changes_the_vectors_only_where_it_may(tuned: bool) -> None:
    tags = np.tile([0, 1, 0, 1], 8)
    tagger = Recurrence(sequences(), tags, sequences().table, lambda rows, said: 0.0, 1, tuned)
    network = next(tagger._train(SPLIT.train, 0))
    assert bool((network.table.detach().numpy() != sequences().table).any()) == tuned


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
    np.testing.assert_array_equal(answers.values["upos-majority"], right)
    assert label_task.KINDS[0] == "upos"


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
