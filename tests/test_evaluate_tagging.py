"""Tagging: the CRF against all paths, spans against seqeval, the tagger on what only neighbours tell."""

from __future__ import annotations

from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from seqeval.metrics import f1_score
from seqeval.metrics.sequence_labeling import get_entities

from stillvec.errors import DatasetError, UsageError
from stillvec.evaluation.intervals import Resampling
from stillvec.evaluation.supervised import single_thread
from stillvec.evaluation.tagging import Tagging
from stillvec.evaluation.tasks import Answers
from stillvec.heads import crf
from stillvec.heads.crf import best_paths, log_partition, negative_log_likelihood
from stillvec.heads.lookup import Lookup
from stillvec.heads.sequence_batches import Sequences
from stillvec.heads.treebank import are_spans, conllu, count_spans, find_spans, read_tagged
from stillvec.vectors import WordVectors

LENGTHS, TAGS = (4, 1, 3), 3


def marginals(scores: Any, inside: Any, steps: Any) -> Any:
    """The probability of each tag of each word (B, L, k): the gradient of log Z; 0 outside."""
    with torch.enable_grad():
        scores = scores.detach().requires_grad_()
        (gradient,) = torch.autograd.grad(log_partition(scores, inside, steps).sum(), scores)
    return gradient


@pytest.fixture
def chain() -> tuple[torch.Tensor, torch.Tensor, tuple[torch.Tensor, torch.Tensor, torch.Tensor]]:
    """Scores of three sentences of 4, 1 and 3 words, what is inside them, and the steps."""
    random = torch.Generator().manual_seed(0)

    def draw(*shape: int) -> torch.Tensor:
        return 2 * torch.randn(*shape, generator=random, dtype=torch.float64)

    inside = torch.arange(4) < torch.tensor(LENGTHS)[:, None]
    return draw(3, 4, TAGS), inside, (draw(TAGS), draw(TAGS, TAGS), draw(TAGS))


def _paths(chain: tuple, sentence: int) -> dict[tuple[int, ...], float]:  # type: ignore[type-arg]
    """Every path of a sentence and its score."""
    scores, _, (begin, step, end) = chain
    found = {}
    for path in product(range(TAGS), repeat=LENGTHS[sentence]):
        total = begin[path[0]] + end[path[-1]] + sum(scores[sentence, t, tag] for t, tag in enumerate(path))
        found[path] = float(total + sum(step[a, b] for a, b in pairwise(path)))
    return found


@pytest.mark.parametrize("sentence", range(3))
def test_the_crf_is_what_all_paths_together_say(chain: tuple, sentence: int) -> None:  # type: ignore[type-arg]
    paths = _paths(chain, sentence)
    whole = np.logaddexp.reduce([*paths.values()])
    length = LENGTHS[sentence]
    assert float(log_partition(*chain)[sentence]) == pytest.approx(whole)
    best = max(paths, key=paths.__getitem__)
    assert tuple(best_paths(*chain)[sentence, :length].tolist()) == best
    shares = np.zeros((4, TAGS))
    for path, score in paths.items():
        shares[np.arange(length), path] += np.exp(score - whole)
    np.testing.assert_allclose(marginals(*chain)[sentence].numpy(), shares, atol=1e-12)
    tags = torch.zeros(3, 4, dtype=torch.int64)
    for path, score in [*paths.items()][:5]:
        tags[sentence, :length] = torch.tensor(path)
        lost = negative_log_likelihood(chain[0], tags, chain[1], chain[2])[sentence]
        assert float(lost) == pytest.approx(whole - score)


@pytest.mark.parametrize("size", [0.1, 1, 10])
def test_the_best_of_many_tags_is_that_of_all_paths(size: float) -> None:
    """Where only some tags are compared."""
    random = torch.Generator().manual_seed(0)
    n = crf._MANY_TAGS + 10
    begin, end = size * torch.randn(2, n, generator=random)
    step = size * torch.randn(n, n, generator=random)
    scores = 3 * torch.randn(4, 3, n, generator=random)
    first = begin + scores[:, 0]
    pairs = first[:, :, None] + step + scores[:, 1, None]
    paths = pairs[:, :, :, None] + step + scores[:, 2, None, None]
    short, whole = (pairs + end).flatten(1).argmax(dim=1), (paths + end).flatten(1).argmax(dim=1)
    lengths = torch.tensor([3, 3, 2, 1])
    found = best_paths(scores, torch.arange(3) < lengths[:, None], (begin, step, end))
    assert found[0].tolist() == [*np.unravel_index(int(whole[0]), (n, n, n))]
    assert found[1].tolist() == [*np.unravel_index(int(whole[1]), (n, n, n))]
    assert found[2].tolist() == [*np.unravel_index(int(short[2]), (n, n)), 0]
    assert found[3].tolist() == [int((first + end)[3].argmax()), 0, 0]


def test_choosing_tags_keeps_the_order_of_equals(monkeypatch: pytest.MonkeyPatch) -> None:
    random = torch.Generator().manual_seed(0)
    n = crf._MANY_TAGS + 10
    scores, begin, step, end = (
        torch.randint(0, high, shape, generator=random).float()
        for high, shape in ((9, (2, 5, 12, n)), (2, (2, n)), (2, (2, n, n)), (2, (2, n)))
    )
    inside = torch.arange(12) < torch.randint(1, 13, (2, 5, 1), generator=random)
    chosen = best_paths(scores, inside, (begin, step, end))
    monkeypatch.setattr(crf, "_MANY_TAGS", n + 1)
    assert torch.equal(chosen, best_paths(scores, inside, (begin, step, end)))


@pytest.mark.parametrize("size", [1, 30])
def test_products_of_exponentials_are_sums_of_logarithms(size: float) -> None:
    """Also where steps differ by more than single precision has exponents for."""
    generator = torch.Generator().manual_seed(0)
    scores, begin, step, end = (
        (size * torch.randn(shape, generator=generator)).requires_grad_()
        for shape in ((2, 3, 7, 9), (2, 9), (2, 9, 9), (2, 9))
    )
    inside = torch.arange(7) < torch.tensor([[1, 4, 7], [7, 2, 5]]).unsqueeze(-1)
    alpha = begin.unsqueeze(-2) + scores[..., 0, :]
    for at in range(1, 7):
        longer = torch.logsumexp(alpha.unsqueeze(-1) + step.unsqueeze(-3), dim=-2) + scores[..., at, :]
        alpha = torch.where(inside[..., at, None], longer, alpha)
    expected = torch.logsumexp(alpha + end.unsqueeze(-2), dim=-1)
    found = log_partition(scores, inside, (begin, step, end))
    torch.testing.assert_close(found, expected)
    for made, wanted in zip(
        *(torch.autograd.grad(each.sum(), (scores, begin, step, end)) for each in (found, expected)), strict=True
    ):
        torch.testing.assert_close(made, wanted, rtol=1e-4, atol=1e-5)


def test_the_slope_of_the_crf_is_that_of_small_steps(chain: tuple) -> None:  # type: ignore[type-arg]
    scores, inside, steps = chain
    tags = torch.tensor([[0, 1, 2, 1], [2, 0, 0, 0], [1, 1, 0, 0]])
    trained = [each.clone().requires_grad_() for each in (scores, *steps)]
    assert torch.autograd.gradcheck(lambda s, *rest: negative_log_likelihood(s, tags, inside, rest).sum(), trained)


def test_what_stands_outside_a_sentence_changes_nothing(chain: tuple) -> None:  # type: ignore[type-arg]
    scores, inside, steps = chain
    other = torch.where(inside.unsqueeze(2), scores, 100.0)
    torch.testing.assert_close(log_partition(other, inside, steps), log_partition(scores, inside, steps))
    assert torch.equal(best_paths(other, inside, steps), best_paths(scores, inside, steps))


def _numbers(sentences: list[list[str]], names: list[str]) -> tuple[Any, Any]:
    """The numbers of all tags, and the number of the sentence of each."""
    tags = np.array([names.index(tag) for sentence in sentences for tag in sentence])
    return tags, np.repeat(np.arange(len(sentences)), [*map(len, sentences)])


@pytest.mark.parametrize("marks", ["BI", "BIES", "I", "IE"])
def test_spans_are_those_of_seqeval_also_where_tags_break_the_rules(marks: str) -> None:
    generator = np.random.default_rng(0)
    tags = ["O", "O", *(f"{mark}-{kind}" for mark in marks for kind in ("PER", "geo-loc"))]
    sentences = [[str(tag) for tag in generator.choice(tags, generator.integers(1, 9))] for _ in range(400)]
    names = sorted({*tags})
    numbers, text = _numbers(sentences, names)
    starts = np.cumsum([0, *map(len, sentences)])
    found: list[set[tuple[str, int, int]]] = [set() for _ in sentences]
    for first, last, kind in zip(*find_spans(numbers, names, text), strict=True):
        number = text[first]
        name = ["", "PER", "geo-loc"][kind]
        found[number].add((name, int(first - starts[number]), int(last - starts[number])))
    assert found == [set(get_entities(sentence)) for sentence in sentences]


def test_span_f1_is_that_of_seqeval() -> None:
    generator = np.random.default_rng(1)
    tags = ["B-X", "B-Y", "I-X", "I-Y", "O"]
    gold, said = ([[str(t) for t in generator.choice(tags, 6)] for _ in range(100)] for _ in range(2))
    (true, text), (predicted, _) = _numbers(gold, tags), _numbers(said, tags)
    totals = count_spans(true, predicted, tags, text, 100)
    right, named, there = totals.sum(axis=0)
    assert 2 * right / (named + there) == pytest.approx(f1_score(gold, said))
    assert totals[:, 2].tolist() == [len(get_entities(sentence)) for sentence in gold]


def test_tags_of_words_are_no_spans() -> None:
    assert are_spans(["O", "B-NP", "I-NP"])
    assert not are_spans(["NOUN", "B-NP"])
    assert not are_spans(["O"])


def _write(path: Path, sentences: int, seed: int) -> Path:
    """A word is of kind X behind "the" and of kind Y behind "a": only its neighbour tells."""
    generator = np.random.default_rng(seed)
    lines = []
    for _ in range(sentences):
        for _ in range(generator.integers(1, 4)):
            before = str(generator.choice(["the", "a"]))
            lines += [f"{before}\tO", f"{generator.choice(['dog', 'cat'])}\tB-{'X' if before == 'the' else 'Y'}"]
        lines.append("")
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


@pytest.fixture
def vectors() -> WordVectors:
    return WordVectors(["the", "a", "dog", "cat"], np.random.default_rng(0).standard_normal((4, 20)).astype(np.float32))


@pytest.mark.parametrize("tuned", [False, True])
def test_a_tag_that_only_a_neighbour_tells_is_learnt(tuned: bool, vectors: WordVectors, tmp_path: Path) -> None:
    _write(tmp_path / "tagging" / "pets.train.txt", 400, 0)
    _write(tmp_path / "tagging" / "pets.test.txt", 40, 1)
    task = Tagging(seeds=1, epochs=8, tuned=tuned)
    (path,) = task.find(tmp_path)
    items = task.read(path)
    answers = task.answer(Lookup(vectors), items)
    scores = task.score(items, answers, np.arange(len(items)), Resampling(50))
    assert scores["f1"].value > 0.95
    assert scores["f1"].low <= scores["f1"].value <= scores["f1"].high
    assert answers.values["f1"].shape == (40, 3, 1)


@pytest.mark.parametrize("tuned", [False, True])
def test_only_trained_vectors_tell_words_of_the_same_vector_apart(tuned: bool, tmp_path: Path) -> None:
    """A dog is always X and a cat Y; both have one vector until it is trained."""
    same = np.random.default_rng(0).standard_normal(20)
    vectors = WordVectors(["dog", "cat"], np.stack([same, same]).astype(np.float32))
    words = np.random.default_rng(1).choice(["dog\tB-X", "cat\tB-Y"], 600)
    path = tmp_path / "a.txt"
    path.write_text("\n\n".join(words) + "\n", "utf-8")  # sentences of one word
    task = Tagging(seeds=1, epochs=8, tuned=tuned)
    items = task.read(path)
    scores = task.score(items, task.answer(Lookup(vectors), items), np.arange(len(items)), Resampling(9))
    assert (scores["f1"].value > 0.9) == tuned


def test_the_same_seed_gives_the_same_tags(vectors: WordVectors, tmp_path: Path) -> None:
    task = Tagging(quick=True)
    items = task.read(_write(tmp_path / "a.txt", 60, 0))
    first, second = (task.answer(Lookup(vectors), items) for _ in range(2))
    assert len(items) == 12
    assert first.values["f1"].tobytes() == second.values["f1"].tobytes()


def test_span_f1_of_several_seeds_has_a_mean_and_a_spread(tmp_path: Path, vectors: WordVectors) -> None:
    items = Tagging().read(_write(tmp_path / "a.txt", 30, 0))
    found = np.random.default_rng(0).integers(0, 3, (30, 3, 2)).astype(float)
    known = np.ones((30, 2))
    scores = Tagging().score(
        items, Answers(known[:, 0] > 0, {"f1": found, "known-words": known}), np.arange(30), Resampling(9)
    )
    right, said, there = found.sum(axis=0)
    f1 = 2 * right / (said + there)
    assert scores["f1"].value == pytest.approx(f1.mean())
    assert scores["f1-sd"].value == pytest.approx(f1.std(ddof=1))


CONLLU = """# text = He'll go.
1-2\tHe'll\t_\t_\t_\t_\t_\t_\t_\t_
1\tHe\the\tPRON\tPRP\tPerson=3\t3\tnsubj\t_\t_
2\t'll\twill\tAUX\tMD\t_\t3\taux:x\t_\t_
3\tgo\tgo\tVERB\tVB\tVerbForm=Inf\t0\troot\t_\t_
3.1\tgo\tgo\tVERB\tVB\t_\t_\t_\t_\t_
4\t.\t.\tPUNCT\t.\t_\t3\tpunct\t_\t_
"""


def test_conllu_gives_words_and_not_ranges_or_empty_nodes(tmp_path: Path) -> None:
    path = tmp_path / "x.conllu"
    path.write_text(CONLLU, "utf-8")
    (sentence,) = conllu(path)
    assert [token.form for token in sentence] == ["He", "'ll", "go", "."]
    assert sentence[1].relation == "aux"
    assert sentence[0].features == {"Person": "3"}
    assert read_tagged(path) == [(("He", "'ll", "go", "."), ("PRON", "AUX", "VERB", "PUNCT"))]


@pytest.mark.parametrize(
    ("name", "content", "line", "message"),
    [
        ("x.txt", "dog NN\ncat\n", 2, "one field"),
        ("x.txt", "\n", 1, "empty"),
        ("x.conllu", "1\tdog\n", 1, "10 columns.*got 2"),
        ("x.conllu", CONLLU.replace("\t3\tnsubj", "\tx\tnsubj"), 3, "'x'"),
        ("x.conllu", CONLLU.replace("\t3\tnsubj", "\t9\tnsubj"), 3, "'He'.*got 9"),
        ("x.conllu", "# nothing\n", 1, "empty"),
    ],
)
def test_a_malformed_file_is_named_with_its_line(
    name: str, content: str, line: int, message: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(content, "utf-8")
    with pytest.raises(DatasetError, match=message) as caught:
        Tagging().read(tmp_path / name)
    assert (caught.value.path, caught.value.line) == (str(tmp_path / name), line)


def test_invalid_settings_are_refused() -> None:
    with pytest.raises(UsageError, match="epochs"):
        Tagging(epochs=0)


def test_batches_hold_every_text_once_and_texts_of_about_one_length() -> None:
    lengths = np.random.default_rng(0).integers(0, 20, 500)
    sequences = Sequences(np.zeros((2, 1), np.float32), np.ones(lengths.sum(), np.int64), np.cumsum(lengths))
    for generator in (None, np.random.default_rng(1)):
        batches = [*sequences.batches(np.arange(500), 16, generator)]
        assert sorted(np.concatenate(batches).tolist()) == [*range(500)]
        assert np.mean([np.ptp(lengths[batch]) for batch in batches]) < 3


def test_padding_follows_the_words_and_unknown_words_have_a_row_of_their_own(vectors: WordVectors) -> None:
    sequences = Lookup(vectors, "mean").read_tokens([["the", "zebra"], ["dog"], []])
    table = sequences.table
    np.testing.assert_array_equal(table[0], 0)
    np.testing.assert_allclose(table[1], vectors.matrix.mean(axis=0), atol=1e-6)
    ids = sequences.pad(np.array([0, 1, 2]))
    assert (ids > 0).tolist() == [[True, True], [True, False], [False, False]]
    np.testing.assert_array_equal(table[ids[0, 0]], vectors["the"])
    assert ids[0, 1] == 1
    assert sequences.known.tolist() == [1, 1, 0]
    np.testing.assert_allclose(sequences.means(), [vectors["the"], vectors["dog"], table[1]], atol=1e-6)
    assert np.sqrt(np.mean(sequences.scale_table()[2:] ** 2)) == pytest.approx(0.3)


def test_a_tagger_learns_on_one_thread_and_leaves_the_number_as_it_was() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        with single_thread():
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 3
        with pytest.raises(ZeroDivisionError), single_thread():
            raise ZeroDivisionError
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)
