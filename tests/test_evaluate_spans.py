"""Spans: poolings against NumPy, questions and what is drawn for them, the probe on what edges or one word tell."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from error_checks import raises
from report_sets import section
from sklearn.metrics import f1_score, recall_score

from stillvec.errors import DatasetError, UsageError
from stillvec.evaluation import Report, Score
from stillvec.evaluation.intervals import Resampling
from stillvec.evaluation.network_training import SpanTraining
from stillvec.evaluation.report_tables import list_notes
from stillvec.evaluation.spans import SpanItems, Spans
from stillvec.evaluation.tasks import Answers
from stillvec.heads.lookup import Lookup
from stillvec.heads.networks import NetworkSettings, PaddedTexts
from stillvec.heads.pooling import SPAN_POOLINGS, divide_coherent, pool_size
from stillvec.heads.sequence_batches import Sequences
from stillvec.heads.span_networks import LayeredTexts, SpanNetworks, SpanSettings, _Mix, pool_spans
from stillvec.heads.span_questions import MarkedSentence, SpanQuestions, ask, read_marked
from stillvec.heads.splits import Round
from stillvec.progress import drain
from stillvec.vectors import WordVectors

CPU = torch.device("cpu")


def pool_one(pooling: str, words: Any, query: Any) -> Any:
    """The vector of a span of words (l, d), in NumPy."""
    a, b = divide_coherent(words.shape[1])
    first, last = words[0], words[-1]
    weights = np.exp(words @ query) / np.exp(words @ query).sum()
    return {
        "avg": words.mean(0),
        "max": words.max(0),
        "attention": weights @ words,
        "endpoint": np.append(first, last),
        "diffsum": np.append(last + first, last - first),
        "coherent": np.array([*first[:a], *last[a : 2 * a], first[2 * a : 2 * a + b] @ last[2 * a + b :]]),
    }[pooling]


@pytest.mark.parametrize("pooling", SPAN_POOLINGS)
def test_poolings_are_those_of_numpy(pooling: str) -> None:
    generator = np.random.default_rng(0)
    words, query = generator.standard_normal((2, 3, 13, 64)), generator.standard_normal((2, 64)) / 4
    first = generator.integers(0, 13, (2, 3, 30))
    last = generator.integers(first, 13)
    pooled = pool_spans(pooling, *map(torch.from_numpy, (words, first, last, query)))
    assert pooled.shape[-1] == pool_size(pooling, 64)
    for m, b, s in np.ndindex(*first.shape):
        span = words[m, b, first[m, b, s] : last[m, b, s] + 1]
        np.testing.assert_allclose(pooled[m, b, s].numpy(), pool_one(pooling, span, query[m]), atol=1e-12)


def test_poolings_have_the_sizes_and_special_cases_of_the_paper() -> None:
    assert {name: pool_size(name, 256) for name in SPAN_POOLINGS} == {
        **dict.fromkeys(("avg", "max", "attention"), 256),
        **dict.fromkeys(("endpoint", "diffsum"), 512),
        "coherent": 241,
    }
    words, zero = torch.randn(1, 2, 9, 32, generator=torch.Generator().manual_seed(0)), torch.zeros(1, 32)
    first = torch.tensor([[[0, 2, 5], [3, 8, 1]]])
    last = torch.tensor([[[8, 3, 5], [7, 8, 1]]])
    torch.testing.assert_close(
        pool_spans("attention", words, first, last, zero), pool_spans("avg", words, first, last, zero)
    )
    single = {name: pool_spans(name, words, first, first, torch.ones(1, 32)) for name in SPAN_POOLINGS}
    torch.testing.assert_close(single["avg"], single["max"])
    torch.testing.assert_close(single["avg"], single["attention"])
    assert not single["diffsum"][..., 32:].any()


def test_the_gradient_of_the_maximum_goes_to_the_largest_words() -> None:
    words = torch.randn(1, 1, 7, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64).requires_grad_()
    first, last = torch.tensor([[[0, 2, 4]]]), torch.tensor([[[6, 4, 4]]])
    pool_spans("max", words, first, last, torch.zeros(1, 5)).sum().backward()  # type: ignore[no-untyped-call]
    wanted = np.zeros((7, 5))
    for start, end in ((0, 6), (2, 4), (4, 4)):
        rows = words.detach().numpy()[0, 0, start : end + 1]
        wanted[start + rows.argmax(0), np.arange(5)] += 1
    assert words.grad is not None
    np.testing.assert_allclose(words.grad[0, 0].numpy(), wanted)


TREE = "(TOP (S (NP (PRP We)) (VP (VBD saw) (NP (NP (DT the) (NN man)) (PP (IN with) (NP (NN glasses)))))))"


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


def test_constituents_are_asked_with_all_their_labels_and_others_of_the_same_length(tmp_path: Path) -> None:
    (sentence,) = read_marked(write(tmp_path, "a.txt", TREE.replace("(NP (PRP We))", "(S (NP (PRP We)))")))
    labels = ask("labelling", [sentence])
    names = np.array(labels.names)
    assert {tuple(span): [*names[own]] for span, own in zip(labels.spans.tolist(), labels.labels, strict=True)} == {
        (0, 5): ["S"],
        (0, 0): ["NP", "S"],
        (1, 5): ["VP"],
        (2, 5): ["NP"],
        (2, 3): ["NP"],
        (4, 5): ["PP"],
        (5, 5): ["NP"],
    }
    asked = ask("detection", [sentence] * 3)
    assert asked.names == ("no", "yes")
    marked = {tuple(span) for span in labels.spans.tolist()}
    for number in range(3):  # of equal sentences
        own = asked.text == number
        spans = [tuple(span) for span in asked.spans[own].tolist()]
        is_constituent = asked.labels[own, 1]
        assert len({*spans}) == len(spans)
        assert [span in marked for span in spans] == is_constituent.tolist()
        assert not (asked.labels[own, 0] & is_constituent).any()
        lengths = [[last - first for (first, last), yes in zip(spans, is_constituent, strict=True) if yes == want]
                   for want in (True, False)]  # fmt: skip
        assert sorted(lengths[0]) == sorted(lengths[1]) == [0, 0, 1, 1, 3, 4]  # of the sentence there is no other
    assert {*map(tuple, asked.spans[asked.text == 0].tolist())} == {*map(tuple, asked.spans[asked.text == 2].tolist())}


def test_what_is_drawn_depends_on_the_sentence_and_the_seed_only() -> None:
    sentences = [
        MarkedSentence("entities", tuple(f"w{at}{number}" for at in range(30)), ((3, 4, "person"), (9, 9, "place")))
        for number in range(8)
    ]
    asked = ask("mentions", sentences)
    assert asked.count_by_text(8).tolist() == [2 + 10] * 8
    assert len({tuple(asked.spans[asked.text == number].flatten().tolist()) for number in range(8)}) == 8
    few = ask("mentions", sentences[5:6])
    np.testing.assert_array_equal(few.spans, asked.spans[asked.text == 5])
    assert not np.array_equal(ask("mentions", sentences, draw=1).spans, asked.spans)


def test_json_lines_have_spans_pairs_or_roles(tmp_path: Path) -> None:
    words = '"words": ["They", "saw", "it"]'
    arguments = '[[0, 0, "ARG0"], [2, 2, "ARG1"]]'
    (roles,) = read_marked(write(tmp_path, "r.jsonl", f'{{{words}, "predicates": [[1, "see.01", {arguments}]]}}'))
    assert roles == ("roles", ("They", "saw", "it"), ((1, 1, 0, 0, "ARG0"), (1, 1, 2, 2, "ARG1")))
    (pairs,) = read_marked(write(tmp_path, "p.jsonl", f'{{{words}, "pairs": [[0, 0, 1, 2, "same"]]}}\n\n'))
    assert (pairs.kind, pairs.marks) == ("coreference", ((0, 0, 1, 2, "same"),))
    asked = ask("roles", [pairs._replace(marks=()), roles])
    assert (asked.spans.tolist(), asked.text.tolist(), asked.separate) == ([[1, 1, 0, 0], [1, 1, 2, 2]], [1, 1], True)


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[]",
        '{"words": ["a"]}',
        '{"spans": []}',
        '{"words": [], "spans": []}',
        '{"words": ["a", 1], "spans": []}',
        '{"words": ["a"], "spans": {}}',
        '{"words": ["a"], "spans": [[0, 1, "x"]]}',
        '{"words": ["a", "b"], "spans": [[1, 0, "x"]]}',
        '{"words": ["a"], "spans": [[0, 0]]}',
        '{"words": ["a"], "spans": [[0, false, "x"]]}',
        '{"words": ["a"], "pairs": [[0, 0, "x"]]}',
        '{"words": ["a"], "predicates": [[0, [[0, 0, "x"]]]]}',
        '{"words": ["a"], "predicates": [[0, "f", [3]]]}',
    ],
)
def test_a_malformed_line_is_refused_with_its_number(tmp_path: Path, line: str) -> None:
    path = write(tmp_path, "a.jsonl", f'{{"words": ["a"], "spans": []}}\n{line}\n')
    with raises(DatasetError, code="unexpected-value", path=path, line=2):
        read_marked(path)


def test_only_files_with_wanted_questions_are_found(tmp_path: Path) -> None:
    write(tmp_path, "trees/a.txt", TREE)
    write(tmp_path, "spans/e.jsonl", '{"words": ["a"], "spans": []}')
    write(tmp_path, "spans/c.jsonl", '{"words": ["a"], "pairs": []}')
    write(tmp_path, "spans/broken.jsonl", "{")
    write(tmp_path, "roles/r.jsonl", '{"words": ["a"], "predicates": []}')

    def names(on: str) -> set[str]:
        return {path.stem for path in Spans(on=on).find(tmp_path)} - {"broken"}

    assert [names(on) for on in ("all", "constituents", "mentions+roles", "coreference")] == [
        {"a", "e", "c", "r"},
        {"a"},
        {"e", "r"},
        {"c"},
    ]
    assert Spans(on="constituents+typing").asked == ["labelling", "detection", "typing"]


def test_the_quick_form_has_two_poolings_unless_others_are_named() -> None:
    assert {*Spans().poolings} == {*SPAN_POOLINGS}
    assert Spans(quick=True).poolings == ("max", "endpoint")
    assert Spans("avg+coherent", quick=True).poolings == ("avg", "coherent")
    assert Spans().poolings[0] == "max"


def test_the_report_names_the_poolings_that_are_not_in_it() -> None:
    metrics = [f"typing-{pooling}{ending}" for pooling in ("max", "endpoint") for ending in ("", "-random")]
    scores = [Score("a", "spans", "names.test", metric, 0.5, 0.4, 0.6, 9, 9, "skip") for metric in metrics]
    (note,) = list_notes(Report(tuple(scores)))
    assert "avg, attention, diffsum, coherent;" in note
    assert not list_notes(Report(tuple(replace(score, task="tagging") for score in scores)))


@pytest.mark.parametrize("settings", [{"pooling": "avg+mode"}, {"on": "syntax"}, {"seeds": 0}, {"size": 2}])
def test_wrong_settings_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        Spans(**settings)


def make_questions(n: int, n_parts: int, generator: np.random.Generator) -> SpanQuestions:
    """Some questions about each text of `make_texts`, none about the second."""
    text = np.sort(generator.integers(2, n, 4 * n))
    first = generator.integers(0, 5, (len(text), n_parts))
    last = generator.integers(first, 5)
    spans = np.stack([first, last], axis=2).reshape(len(text), -1)
    return SpanQuestions(("x", "y", "z"), text, spans, generator.random((len(text), 3)) < 0.4, separate=n_parts == 2)


def make_texts(n: int, generator: np.random.Generator, n_sets: int = 1, dim: int = 9) -> list[Sequences]:
    ids = generator.integers(2, 30, 6 * n)
    tables = [generator.standard_normal((30, dim)).astype(np.float32) for _ in range(n_sets)]
    for table in tables:
        table[:2] = 0
    return [Sequences(table, ids, 6 * np.arange(1, n + 1)) for table in tables]


@pytest.mark.parametrize("n_parts", [1, 2])
@pytest.mark.parametrize("pooling", SPAN_POOLINGS)
def test_scores_are_those_of_numpy(pooling: str, n_parts: int) -> None:
    generator = np.random.default_rng(1)
    texts = PaddedTexts(make_texts(6, generator), CPU)
    questions = make_questions(6, n_parts, generator)
    group = SpanNetworks(texts, questions, [NetworkSettings(0, 5, 0.1)], SpanSettings(pooling, 32, 8))
    for part in group.parameters:
        part.data += 0.1 * torch.randn(part.shape, generator=torch.Generator().manual_seed(2))
    parameters = [part[0].double().detach().numpy() for part in group.parameters]
    numbers, scores = group.scores(torch.tensor([[3, 0, 1, 5, 2, 4]]), 6)
    assert sorted(numbers[0].tolist()) == [*range(len(questions))]
    table = texts.tables[0].double().numpy()
    enter, bias, gain, shift, leave, leave_bias = parameters[3 * n_parts :]
    for number, row in zip(numbers[0].tolist(), scores[0].detach().numpy(), strict=True):
        words = table[texts.sequences[0].ids[6 * questions.text[number] :][:6]]
        parts = []
        for part in range(n_parts):
            matrix, added, query = parameters[3 * part :][:3]
            first, last = questions.spans[number, 2 * part : 2 * part + 2]
            parts.append(pool_one(pooling, (words @ matrix + added)[first : last + 1], query))
        hidden = np.tanh(np.concatenate(parts) @ enter + bias)
        hidden = (hidden - hidden.mean()) / np.sqrt(hidden.var() + 1e-5) * (1 + gain) + shift
        np.testing.assert_allclose(row, hidden @ leave + leave_bias, atol=1e-4)


def test_the_layers_of_a_mix_are_summed_with_weights_that_are_learned() -> None:
    generator = np.random.default_rng(1)
    plain = make_texts(60, generator, n_sets=3)
    mixed = replace(plain[0], table=np.zeros((0, 9), np.float32), layers=tuple(part.table for part in plain))
    texts, questions = LayeredTexts(mixed, CPU), make_questions(60, 1, generator)
    group = SpanNetworks(texts, questions, [NetworkSettings(0, 0, 0.05)], SpanSettings("avg", 8, 8))
    scores = torch.tensor([[0.5, -1.0, 2.0]])
    group.parameters[-1].data[:] = scores / 10
    ids = group.read(torch.tensor([[3, 5]]), 6)
    tables = np.stack([part.scale_table() for part in plain])
    shares = np.exp(scores[0].numpy()) / np.exp(scores[0].numpy()).sum()
    wanted = np.einsum("l,l...->...", shares, tables[:, ids.numpy()])
    np.testing.assert_allclose(group.embed(ids).detach().numpy(), wanted, atol=1e-3)
    (gradient,) = torch.autograd.grad(
        group.losses(torch.tensor([[3, 5, 8]]), 6, torch.zeros(2, 1, dtype=torch.int32)).sum(), group.flat
    )
    assert gradient[0, -3:].abs().min() > 0
    np.testing.assert_allclose(group.share_layers(), [shares], atol=1e-6)
    leaf = torch.rand(2, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()
    layers, ids = torch.from_numpy(tables.astype(np.float64)), torch.tensor([[[2, 3]], [[4, 2]]])
    torch.testing.assert_close(
        torch.autograd.grad(_Mix.apply(leaf, layers, ids).square().sum(), leaf),
        torch.autograd.grad(torch.einsum("ml,lm...->m...", leaf, layers[:, ids]).square().sum(), leaf),
        check_dtype=False,
        atol=1e-5,
        rtol=1e-5,
    )


def test_a_network_learns_the_same_beside_others() -> None:
    generator = np.random.default_rng(1)
    texts = PaddedTexts(make_texts(60, generator, n_sets=2), CPU)
    questions, settings = make_questions(60, 1, generator), SpanSettings("attention", 32, 8)
    training = SpanTraining(texts, questions, settings, epochs=2)
    split = Round(np.arange(20, 50), np.arange(50, 60), np.arange(20))
    networks = [NetworkSettings(0, 0, 0.02), NetworkSettings(0, 1, 0.02), NetworkSettings(1, 0, 0.02)]

    together, layers = drain(training.run(split, networks))
    assert layers.shape == (3, 0)
    for at, network in enumerate(networks):
        np.testing.assert_array_equal(together[at], drain(training.run(split, [network]))[0][0])
    assert together[:, questions.text < 20].any()
    assert not together[:, questions.text >= 20].any()


@pytest.mark.gpu
def test_a_gpu_trains_the_probes_of_a_cpu() -> None:
    generator = np.random.default_rng(1)
    plain = make_texts(60, generator, n_sets=3)
    mixed = replace(plain[0], table=np.zeros((0, 9), np.float32), layers=tuple(part.table for part in plain))
    questions, split = make_questions(60, 2, generator), Round(np.arange(20, 50), np.arange(50, 60), np.arange(20))
    networks = [NetworkSettings(0, 0, 0.02), NetworkSettings(0, 1, 0.02)]
    for pooling in SPAN_POOLINGS:
        said = {}
        for name in ("cpu", "cuda"):
            device = torch.device(name)
            for kind, texts in (("mix", LayeredTexts(mixed, device)), ("plain", PaddedTexts(plain[:1], device))):
                training = SpanTraining(texts, questions, SpanSettings(pooling, 32, 8), epochs=2)
                said[kind, name] = drain(training.run(split, networks))
        for kind in ("mix", "plain"):
            assert np.mean(said[kind, "cpu"][0] == said[kind, "cuda"][0]) > 0.98
            np.testing.assert_allclose(said[kind, "cpu"][1], said[kind, "cuda"][1], atol=0.02)


def test_the_labels_of_the_test_select_nothing() -> None:
    generator = np.random.default_rng(1)
    texts = PaddedTexts(make_texts(60, generator), CPU)
    questions, split = make_questions(60, 1, generator), Round(np.arange(20, 50), np.arange(50, 60), np.arange(20))
    flipped = replace(questions, labels=questions.labels ^ (questions.text[:, None] < 20))
    said = [
        drain(SpanTraining(texts, asked, SpanSettings("max", 8, 8), 4).run(split, [NetworkSettings(0, 0, 0.02)]))[0]
        for asked in (questions, flipped)
    ]
    np.testing.assert_array_equal(*said)


@pytest.fixture(scope="module")
def task() -> Spans:
    return Spans(pooling="max+avg+endpoint", on="typing", seeds=1, epochs=8, size=32, each=True, device="cpu")


@pytest.fixture(scope="module")
def answered(task: Spans, tmp_path_factory: pytest.TempPathFactory) -> tuple[SpanItems, Answers]:
    """Spans with two labels: one is that of the last word, the other says whether a trigger is inside."""
    generator = np.random.default_rng(0)
    folder = tmp_path_factory.mktemp("spans")
    for part, n in (("train", 200), ("dev", 40), ("test", 150)):
        sentences = []
        for _ in range(n):
            words = [f"w{number}" for number in generator.integers(0, 12, 20)]
            spans: list[list[Any]] = []
            for first in (0, 5, 10, 15):
                has_trigger = bool(generator.random() < 0.5)
                words[first + generator.integers(1, 4)] = "trigger" if has_trigger else "w0"
                edge = int(words[first + 4][1:]) % 2
                spans += [[first, first + 4, f"edge-{edge}"], [first, first + 4, f"trigger-{has_trigger}"]]
            sentences.append(json.dumps({"words": words, "spans": spans}))
        write(folder, f"a.{part}.jsonl", "\n".join(sentences))
    items = task.read(folder / "a.test.jsonl")
    names = ["trigger", *(f"w{number}" for number in range(12))]
    vectors = WordVectors(names, generator.standard_normal((13, 16)).astype(np.float32))
    return items, task.answer(Lookup(vectors), items)


def test_boundaries_and_content_are_found_by_the_poolings_that_have_them(
    task: Spans, answered: tuple[SpanItems, Answers]
) -> None:
    items, answers = answered
    scores = task.score(items, answers, np.arange(150), Resampling(20))
    edge, trigger = (
        {
            name: np.mean([scores[f"typing-{name}-recall-{part}"].value for part in parts])
            for name in ("avg", "max", "endpoint")
        }
        for parts in (("edge-0", "edge-1"), ("trigger-True", "trigger-False"))
    )
    assert edge["endpoint"] > 0.95
    assert trigger["endpoint"] < 0.65
    for pooling in ("avg", "max"):
        assert trigger[pooling] > 0.85
        assert edge[pooling] < 0.8
    assert scores["typing-endpoint-random"].value > 0.6  # identity of words is enough here
    assert scores["typing-avg"].low < scores["typing-avg"].value < scores["typing-avg"].high
    assert [task.ranks_by(name) for name in ("typing-max", "typing-max-recall-edge-0", "typing-max-random")] == [
        True,
        False,
        False,
    ]


def test_f1_and_recall_are_those_of_scikit_learn(task: Spans, answered: tuple[SpanItems, Answers]) -> None:
    items, answers = answered
    questions = items.questions["typing"]
    generator = np.random.default_rng(0)
    said = generator.random((2, *questions.labels.shape)) < 0.5
    counts = np.stack([questions.count(labels, 150) for labels in said], axis=2)
    recalled = np.stack([questions.count_recalled(labels, 150) for labels in said], axis=2)
    values = {**answers.values, "typing-max": counts, "recalled:typing-max": recalled}
    chosen = generator.permutation(150)[:80]
    scores = task.score(items, Answers(answers.covered, values), chosen, Resampling(0))
    rows = np.isin(questions.text, chosen)
    theirs = [f1_score(questions.labels[rows], labels[rows], average="micro") for labels in said]
    assert scores["typing-max"].value == pytest.approx(np.mean(theirs))
    assert scores["typing-max-sd"].value == pytest.approx(np.std(theirs, ddof=1))
    for at, label in enumerate(questions.names):
        recalls = [recall_score(questions.labels[rows, at], labels[rows, at]) for labels in said]
        assert scores[f"typing-max-recall-{label}"].value == pytest.approx(np.mean(recalls))


def test_the_report_has_a_heat_map_of_poolings_for_each_set(tmp_path: Path) -> None:
    values = {"max": 0.75, "avg": 0.5, "endpoint": 0.9}
    scores = []
    for name, less in (("a", 0.0), ("b", 0.2)):
        for question, dataset in (("detection", "trees.test"), ("typing", "names.test")):
            for pooling, value in values.items():
                metric = f"{question}-{pooling}"
                for ending, number in (("", value - less), ("-random", 0.123), ("-sd", 0.01), ("-recall-x", 0.4567)):
                    place = name, "spans", dataset, f"{metric}{ending}"
                    scores.append(Score(*place, number, number - 0.01, number + 0.01, 10, 10, "skip"))
    tables = re.findall(r"<table.*?</table>", section(tmp_path, Report(tuple(scores)), "spans"))
    assert len(tables) == 2
    rows = re.findall(r"<tr>(.*?)</tr>", tables[1])
    assert [re.sub("<[^>]*>", " ", row).split() for row in rows] == [
        ["pooling", "detection", "trees.test", "typing", "names.test"],
        ["avg", *["30.0", "12.3"] * 2],
        ["max", *["55.0", "12.3"] * 2],
        ["endpoint", *["70.0", "12.3"] * 2],
    ]
    assert tables[1].count("<b>70.0</b>") == 2


def test_the_heat_map_has_no_best_pooling_where_all_are_alike(tmp_path: Path) -> None:
    metrics = [f"roles-{pooling}" for pooling in ("max", "avg")]
    scores = [Score("a", "spans", "roles.test", metric, 0.0, 0.0, 0.0, 10, 10, "skip") for metric in metrics]
    assert "<b>" not in section(tmp_path, Report(tuple(scores)), "spans")
