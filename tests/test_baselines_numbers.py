"""Each baseline against a second way: gensim itself, brute force, autograd, a hand-made parse."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Generator
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from tiny_corpus import counted, sentences, words_of

from stillvec.baselines import Means, Text, write_text
from stillvec.baselines.cooccurrence import added, count_pairs, dealt
from stillvec.baselines.dependencies import contexts
from stillvec.baselines.deps import Deps, read_pairs
from stillvec.baselines.deps import Model as PairModel
from stillvec.baselines.glove import Factors, Glove
from stillvec.baselines.negatives import Noise, Table, kept_share, told_apart
from stillvec.baselines.sent2vec import Model, Sent2vec
from stillvec.baselines.syngcn import Model as GraphModel
from stillvec.baselines.syngcn import SynGcn
from stillvec.baselines.trees import read_trees
from stillvec.corpus import Corpus
from stillvec.corpus.parses import Parse
from stillvec.vocabulary import Vocabulary

T = TypeVar("T")
ONE = Means(threads=1)


def drained(steps: Generator[Any, None, T]) -> T:
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


@pytest.fixture
def text(tmp_path: Path) -> Text:
    made = sentences(96)
    folder = tmp_path / "text"
    folder.mkdir()
    return drained(write_text(Corpus.from_texts(made), counted(made), folder))


def test_a_text_has_the_known_words_sentence_by_sentence(text: Text) -> None:
    wanted = [[text.vocabulary.index[word] for word, _, _ in words_of(each)] for each in sentences(96)]
    got = [text.rows[first:last].tolist() for first, last in pairwise([0, *text.ends.tolist()])]
    assert got == wanted
    for size in (1, 7, 100, 10_000):
        blocks = [*text.blocks(size)]
        assert np.concatenate([rows for rows, _ in blocks]).tolist() == text.rows.tolist()
        assert sum(len(ends) for _, ends in blocks) == len(wanted)


def test_words_that_are_not_known_and_sentences_of_one_word_are_left_out(tmp_path: Path) -> None:
    corpus = Corpus.from_texts(["A cat in New York.\nCat!\nA dog saw it."])
    vocabulary = Vocabulary(["cat", "a", "new york", "dog", "owl"], [2, 2, 1, 1, 0])
    text = drained(write_text(corpus, vocabulary, tmp_path))
    assert text.rows.tolist() == [1, 0, 2, 1, 3]
    assert text.ends.tolist() == [3, 5]
    assert text.known.words == ("cat", "a", "new york", "dog")
    assert text.lines.read_text("utf-8") == "a cat new\u00a0york\na dog\n"


@pytest.mark.parametrize(("method", "sg"), [("skipgram", 1), ("cbow", 0)])
def test_skipgram_and_cbow_are_gensims_numbers(method: str, sg: int, text: Text, tmp_path: Path) -> None:
    word2vec = pytest.importorskip("gensim.models.word2vec")
    from stillvec.baselines import BASELINES

    settings = {"dim": 12, "epochs": 3, "window": 3, "negatives": 4, "subsample": 1e-2, "rate": 0.04, "seed": 7}
    got = drained(BASELINES[method](**settings).steps(text, ONE)).vectors
    path = tmp_path / "by-hand.txt"
    path.write_text("".join(" ".join(word for word, _, _ in words_of(each)) + "\n" for each in sentences(96)))
    model = word2vec.Word2Vec(
        sg=sg, vector_size=12, window=3, negative=4, sample=1e-2, alpha=0.04, min_alpha=0.0004, seed=7, workers=1,
        min_count=1, sorted_vocab=0,
    )  # fmt: skip
    model.build_vocab_from_freq(dict(zip(text.vocabulary, text.vocabulary.counts.tolist(), strict=True)))
    model.train(corpus_file=str(path), total_examples=96, total_words=text.words, epochs=3)
    assert np.array_equal(got.matrix, np.stack([model.wv[word] for word in text.vocabulary]))


def test_contexts_added_are_the_other_table_of_gensim(text: Text) -> None:
    pytest.importorskip("gensim")
    from stillvec.baselines.skipgram import Skipgram

    class Kept(Skipgram):
        def vectors(self, model: Any, text: Text) -> Any:
            object.__setattr__(self, "tables", (model.wv.vectors.copy(), model.syn1neg.copy()))
            return super().vectors(model, text)

    learner = Kept(dim=8, epochs=1, add_contexts=True)
    made = drained(learner.steps(text, ONE)).vectors
    words, others = learner.tables
    assert np.allclose(made.matrix, words + others)
    assert np.abs(others).max() > 0


def test_fasttext_gives_a_word_that_the_corpus_lacks_the_mean_of_its_ngrams(tmp_path: Path) -> None:
    fasttext = pytest.importorskip("gensim.models.fasttext")
    from stillvec.baselines.fasttext import FastText

    made = sentences(96)
    counts = Counter(word for each in made for word, _, _ in words_of(each))
    vocabulary = Vocabulary.build(counts, min_count=1, keep=["farmers"])
    text = drained(write_text(Corpus.from_texts(made), vocabulary, tmp_path))
    kept: list[Any] = []

    class Kept(FastText):
        def vectors(self, model: Any, text: Text) -> Any:
            kept.append(model)
            return super().vectors(model, text)

    got = drained(Kept(dim=10, epochs=2, buckets=500).steps(text, ONE)).vectors
    rows = fasttext.ft_ngram_hashes("farmers", 4, 6, 500)
    assert "farmers" in got
    assert np.allclose(got["farmers"], kept[0].wv.vectors_ngrams[rows].mean(0), atol=1e-6)
    assert np.allclose(got["farmer"], kept[0].wv["farmer"])


def slow_pairs(window: int) -> dict[tuple[str, str], float]:
    found: dict[tuple[str, str], float] = defaultdict(float)
    for each in sentences(96):
        words = [word for word, _, _ in words_of(each)]
        for i, one in enumerate(words):
            for j, other in enumerate(words):
                if i != j and abs(i - j) <= window:
                    found[one, other] += 1 / abs(i - j)
    return found


@pytest.mark.parametrize(("bound", "block"), [(10**9, 10**9), (300, 100), (1, 50)])
def test_pairs_are_counted_as_by_hand_however_little_is_held(
    bound: int, block: int, text: Text, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stillvec.baselines.cooccurrence._WORDS", block)
    runs = drained(count_pairs(text, 4, tmp_path, bound))
    assert (len(runs) > 1) == (bound < 10**9)
    wanted = np.zeros((len(text.vocabulary),) * 2)
    for (one, other), count in slow_pairs(4).items():
        wanted[text.vocabulary.index[one], text.vocabulary.index[other]] = count
    whole = np.concatenate([rows.toarray() for _, rows in added(runs, bound)])
    assert np.allclose(whole, wanted, rtol=1e-5)
    shares = dealt(runs, 3, tmp_path, 0, bound)
    parts = [share.rows(0, len(wanted)).toarray() for share in shares]
    assert np.allclose(sum(parts), wanted, rtol=1e-5)
    assert all(((parts[a] > 0) & (parts[b] > 0)).sum() == 0 for a, b in ((0, 1), (0, 2), (1, 2)))
    assert min(len(share.counts) for share in shares) > len(runs[0].counts) / 10


@pytest.fixture
def factors(text: Text, tmp_path: Path) -> tuple[Factors, Any]:
    """A model with everything filled with something, and all pairs."""
    runs = drained(count_pairs(text, 5, tmp_path))
    (share,) = dealt(runs, 1, tmp_path, 0)
    model = Factors(Glove(dim=6, window=5, x_max=3.0, alpha=0.6), len(text.vocabulary))
    choose = np.random.default_rng(1)
    model.words[:, :7] = choose.normal(size=(len(model.words), 7)) / 2
    model.contexts[:, [0, 1, 2, 3, 4, 5, 7]] = choose.normal(size=(len(model.words), 7)) / 2
    return model, share


def test_the_loss_of_glove_is_the_papers_sum(text: Text, factors: tuple[Factors, Any]) -> None:
    model, share = factors
    wanted = 0.0
    for (one, other), count in slow_pairs(5).items():
        i, j = text.vocabulary.index[one], text.vocabulary.index[other]
        product = float(model.words[i, :6] @ model.contexts[j, :6])
        distance = product + model.words[i, 6] + model.contexts[j, 7] - math.log(count)
        wanted += min(1.0, (count / 3.0) ** 0.6) * distance**2
    assert model.gradients(share)[2] == pytest.approx(wanted, rel=1e-4)


@pytest.mark.parametrize("threads", [1, 3])
def test_the_gradient_of_glove_is_autograds(threads: int, factors: tuple[Factors, Any]) -> None:
    model, share = factors
    model.threads = threads
    counts = torch.from_numpy(share.rows(0, len(model.words)).toarray()).double()
    words, others = (torch.from_numpy(table).double().requires_grad_() for table in (model.words, model.contexts))
    there = counts > 0
    distance = (words @ others.T)[there] - counts[there].log()
    (0.5 * ((counts[there] / 3.0) ** 0.6).clamp_max(1) * distance**2).sum().backward()
    by_words, by_contexts, _ = model.gradients(share)
    words.grad[:, 7] = 0  # ones stay ones
    others.grad[:, 6] = 0
    assert np.allclose(by_words, words.grad, atol=1e-3)
    assert np.allclose(by_contexts, others.grad, atol=1e-3)


def test_steps_of_glove_are_adagrads_and_the_objective_falls(factors: tuple[Factors, Any]) -> None:
    model, share = factors
    table = torch.from_numpy(model.words.copy()).requires_grad_()
    adagrad = torch.optim.Adagrad([table], lr=model.settings.rate, initial_accumulator_value=1e-6, eps=0)
    table.grad = torch.from_numpy(model.gradients(share)[0].copy())
    adagrad.step()
    first = model.step(share)
    assert np.allclose(model.words[:, :7], table.detach()[:, :7], atol=1e-5)
    assert (model.words[:, 7] == 1).all()
    assert (model.contexts[:, 6] == 1).all()
    losses = [first, *(model.step(share) for _ in range(30))]
    assert losses[-1] < 0.3 * losses[0]


def test_glove_learns_each_word_that_has_neighbours(text: Text) -> None:
    made = drained(Glove(dim=5, epochs=30).steps(text, ONE))
    assert made.vectors.words == text.vocabulary.words
    assert made.notes["loss"] < 0.2


def slow_loss(vectors: torch.Tensor, table: torch.Tensor, targets: list[int], drawn: list[int], k: int) -> torch.Tensor:
    loss = torch.zeros((), dtype=torch.float64)
    for vector, target in zip(vectors, targets, strict=True):
        loss = loss + F.softplus(-(vector @ table[target]))
        for each in drawn:
            loss = loss + k / len(drawn) * F.softplus(vector @ table[each])
    return loss


def test_negative_sampling_has_the_gradient_of_autograd() -> None:
    choose = torch.Generator().manual_seed(0)
    vectors = torch.randn(5, 4, generator=choose)
    table = torch.randn(7, 4, generator=choose)
    targets, drawn = [0, 3, 3, 6, 2], [3, 1, 1]
    loss, by_vectors, rows, by_rows = told_apart(vectors, table, torch.tensor(targets), torch.tensor(drawn), 10)
    a, b = vectors.double().requires_grad_(), table.double().requires_grad_()
    wanted = slow_loss(a, b, targets, drawn, 10)
    wanted.backward()
    assert float(loss) == pytest.approx(wanted.item(), rel=1e-5)
    assert torch.allclose(by_vectors.double(), a.grad, atol=1e-5)
    assert rows.tolist() == [0, 1, 2, 3, 6]
    assert torch.allclose(by_rows.double(), b.grad[rows], atol=1e-5)
    assert b.grad[[4, 5]].abs().max() == 0


def test_words_are_drawn_and_kept_in_the_proportions_of_the_papers() -> None:
    counts = np.array([900, 0, 90, 10])
    drawn = Noise(counts, 0.5).draw(40_000, np.random.default_rng(0)).numpy()
    shares = np.sqrt(counts) / np.sqrt(counts).sum()
    assert np.allclose(np.bincount(drawn, minlength=4) / 40_000, shares, atol=0.01)
    assert np.allclose(kept_share(counts, 0.01)[[0, 3]], [math.sqrt(0.01 / 0.9) + 0.01 / 0.9, 1.0])
    assert (kept_share(counts, 0.0) == 1).all()


def test_a_table_steps_by_one_sum_of_squares_a_row() -> None:
    table = Table(torch.zeros(3, 2))
    table.update(torch.tensor([2, 0]), torch.tensor([[3.0, 4.0], [0.0, 1.0]]), 0.5)
    table.update(torch.tensor([2]), torch.tensor([[1.0, 1.0]]), 0.5)
    first = -0.5 * np.array([3, 4]) / math.sqrt(12.5)
    assert np.allclose(table.rows[2], first - 0.5 / math.sqrt(12.5 + 1), atol=1e-5)
    assert np.allclose(table.rows[0], [0, -0.5 / math.sqrt(0.5)], atol=1e-5)
    assert table.rows[1].tolist() == [0, 0]


def sent2vec_loss(model: Model, words: list[list[int]], batch: Any, drawn: list[int]) -> torch.Tensor:
    """Written out: for each target, the mean of the n-grams that do not have it in them; none is dropped."""
    sources, outer = model.sources.rows, model.targets.rows
    loss = torch.zeros((), dtype=sources.dtype)
    left = Counter(zip(batch.sentence.tolist(), batch.targets.tolist(), strict=True))
    for number, sentence in enumerate(words):
        for place, word in enumerate(sentence):
            if not left[number, word]:
                continue
            left[number, word] -= 1
            features = []
            for size in range(1, model.settings.ngrams + 1):
                for first in range(len(sentence) - size + 1):
                    if not first <= place < first + size:
                        features.append(_feature(model, sentence[first : first + size]))
            context = sources[features].mean(0)
            loss = loss + slow_loss(context[None], outer, [word], drawn, model.settings.negatives)
    return loss


def _feature(model: Model, gram: list[int]) -> int:
    value = gram[0]
    for each in gram[1:]:
        value = (value * 116049371 + each) % 2**64
    return gram[0] if len(gram) == 1 else model.words + value % model.buckets


@pytest.mark.parametrize("ngrams", [1, 2, 3])
def test_the_gradient_of_sent2vec_is_that_of_its_objective_written_out(ngrams: int) -> None:
    words = [[0, 1, 2, 3, 1], [4, 0], [2, 2, 5, 1]]
    settings = Sent2vec(dim=4, ngrams=ngrams, dropped=0, buckets=11, negatives=3, subsample=0.0)
    model = Model(settings, np.array([3, 4, 3, 1, 1, 1]))
    choose = np.random.default_rng(3)
    for table in (model.sources, model.targets):
        table.rows = torch.from_numpy(choose.normal(size=tuple(table.rows.shape)).astype(np.float32))
    rows, lengths = np.concatenate(words), np.array([len(each) for each in words])
    batch = model.batch(rows, lengths, choose)
    assert batch.targets.tolist() == rows.tolist()
    loss, touched, gradient, outer, by_outer = model.gradients(batch, torch.tensor([5, 0]))
    for table in (model.sources, model.targets):
        table.rows = table.rows.double().requires_grad_()
    wanted = sent2vec_loss(model, words, batch, [5, 0])
    wanted.backward()
    by_sources = torch.zeros_like(model.sources.rows).index_copy(0, touched, gradient.double())
    by_targets = torch.zeros_like(model.targets.rows).index_copy(0, outer, by_outer.double())
    assert float(loss) == pytest.approx(wanted.item(), rel=1e-5)
    assert torch.allclose(by_sources, model.sources.rows.grad, atol=1e-5)
    assert torch.allclose(by_targets, model.targets.rows.grad, atol=1e-5)


def test_sent2vec_drops_ngrams_of_each_sentence_and_no_word() -> None:
    model = Model(Sent2vec(dim=4, ngrams=3, dropped=3, buckets=1000), np.full(50, 10))
    rows, lengths = np.arange(20), np.array([2, 10, 8])
    batch = model.batch(rows, lengths, np.random.default_rng(0))
    held = np.diff([*batch.starts.tolist(), len(batch.features)]).tolist()
    assert held == [2, 10 + 9 + 8 - 3, 8 + 7 + 6 - 3]
    assert sorted(batch.features[batch.features < 50].tolist()) == rows.tolist()


def test_sent2vec_learns_who_stands_together(text: Text) -> None:
    made = drained(Sent2vec(dim=16, epochs=40, batch=8, subsample=1.0).steps(text, ONE))
    assert made.vectors.words == text.vocabulary.words
    first = drained(Sent2vec(dim=16, epochs=1, batch=8, subsample=1.0).steps(text, ONE))
    assert made.notes["loss"] < 0.9 * first.notes["loss"]


# "Australian scientist discovers star with telescope", the example of the paper, in both schemes
UNIVERSAL = Parse(
    ("Australian", "scientist", "discovers", "star", "with", "telescope"),
    (1, 2, -1, 2, 5, 2),
    ("amod", "nsubj", "root", "obj", "case", "obl"),
)
STANFORD = Parse(UNIVERSAL.forms, (1, 2, -1, 2, 2, 4), ("amod", "nsubj", "ROOT", "dobj", "prep", "pobj"))
WANTED = {  # the table of the paper, with either scheme's names
    ("australian", "scientist/amod-1"),
    ("scientist", "australian/amod"),
    ("scientist", "discovers/nsubj-1"),
    ("discovers", "scientist/nsubj"),
    ("discovers", "star/OBJ"),
    ("discovers", "telescope/WITH"),
    ("star", "discovers/OBJ-1"),
    ("telescope", "discovers/WITH-1"),
}


@pytest.mark.parametrize(("parse", "names"), [(UNIVERSAL, ("obj", "obl_with")), (STANFORD, ("dobj", "prep_with"))])
def test_the_contexts_of_deps_are_those_of_the_papers_example(parse: Parse, names: tuple[str, str]) -> None:
    forms = [form.lower() for form in parse.forms]
    found = [(forms[word], f"{forms[other]}/{relation}") for word, other, relation in contexts(parse)]
    assert len(found) == len(WANTED)
    assert set(found) == {
        (word, context.replace("OBJ", names[0]).replace("WITH", names[1])) for word, context in WANTED
    }


CONLLU = "\n".join(
    f"{i}\t{form}\t_\t_\t_\t_\t{head}\t{relation}\t_\t_"
    for i, form, head, relation in [
        (1, "The", 2, "det"), (2, "farmer", 3, "nsubj"), (3, "sells", 0, "root"), (4, "bread", 3, "obj"),
        (5, "in", 6, "case"), (6, "markets", 3, "obl"),
    ]
)  # fmt: skip


def test_deps_reads_pairs_of_known_words_with_contexts_that_are_frequent(tmp_path: Path) -> None:
    other = CONLLU.replace("farmer", "baker")
    (tmp_path / "a.conllu").write_text(f"# text = x\n{CONLLU}\n\n{CONLLU}\n\n{other}\n", "utf-8")
    words = ["the", "sells", "bread", "farmer", "baker"]
    vocabulary = Vocabulary(words, [3, 3, 3, 2, 1])
    text = Text(vocabulary, Corpus(tmp_path / "a.conllu"), tmp_path, 0, 0)
    pairs = drained(read_pairs(text, tmp_path, 2))
    found = Counter(zip(pairs.words.tolist(), pairs.contexts.tolist(), strict=True))
    by_word = {words[row]: sorted(n for (word, _), n in found.items() if word == row) for row in range(5)}
    # contexts met once (baker/det-1, baker/nsubj) are gone; markets is not known
    assert by_word == {"the": [2], "sells": [2, 3], "bread": [3], "farmer": [2, 2], "baker": [1, 1]}
    assert pairs.word_counts.tolist() == [2, 5, 3, 4, 2]
    assert sorted(pairs.context_counts.tolist()) == [2, 2, 3, 3, 3, 3]


def test_the_full_stop_that_a_parser_leaves_at_an_abbreviation_hides_no_word(tmp_path: Path) -> None:
    text = Text(Vocabulary(["mr", "smith", "e.g."], [3, 2, 1]), Corpus.from_texts(["x"]), tmp_path, 0, 0)
    parse = Parse(("Mr.", "Smith", "E.g.", ".", "Mrs."), (1, -1, 1, 1, 1), ("dep",) * 5)
    assert text.rows_of(parse) == [0, 1, 2, -1, -1]


def test_the_gradient_of_deps_is_autograds(tmp_path: Path) -> None:
    (tmp_path / "a.conllu").write_text(f"{CONLLU}\n\n{CONLLU}\n", "utf-8")
    vocabulary = Vocabulary(["the", "farmer", "sells", "bread", "markets"], [2] * 5)
    text = Text(vocabulary, Corpus(tmp_path / "a.conllu"), tmp_path, 0, 0)
    pairs = drained(read_pairs(text, tmp_path, 1))
    model = PairModel(Deps(dim=3, negatives=4), pairs)
    choose = np.random.default_rng(0)
    for table in (model.words, model.contexts):
        table.rows = torch.from_numpy(choose.normal(size=tuple(table.rows.shape)).astype(np.float32))
    words, found = torch.from_numpy(pairs.words), torch.from_numpy(pairs.contexts)
    loss, rows, gradient, _, _ = model.gradients(words, found, torch.tensor([1, 2]))
    table = model.words.rows.double().requires_grad_()
    wanted = slow_loss(table[words], model.contexts.rows.double(), found.tolist(), [1, 2], 4)
    wanted.backward()
    assert float(loss) == pytest.approx(wanted.item(), rel=1e-5)
    assert rows.tolist() == [0, 1, 2, 3, 4]
    assert torch.allclose(gradient.double(), table.grad, atol=1e-5)


def test_the_layer_of_syngcn_is_the_dense_formula(tmp_path: Path) -> None:
    (tmp_path / "a.conllu").write_text(f"{CONLLU}\n\n{CONLLU.replace('farmer', 'baker')}\n", "utf-8")
    words = ["the", "farmer", "sells", "bread", "markets", "baker"]  # "in" is not known
    text = Text(Vocabulary(words, [2] * 6), Corpus(tmp_path / "a.conllu"), tmp_path, 0, 0)
    trees = drained(read_trees(text, 3))
    assert trees.labels == 3
    model = GraphModel(SynGcn(dim=4, negatives=3, subsample=0.0, labels=3), np.full(6, 2), 3)
    choose = np.random.default_rng(0)
    for table in model.tables.values():
        table.rows = torch.from_numpy(choose.normal(size=tuple(table.rows.shape)).astype(np.float32))
    graph = model.graph(trees, np.array([6, 0]), np.array([6, 6]), choose)
    rows = {name: table.rows.double().requires_grad_() for name, table in model.tables.items()}
    vectors = rows["words"][graph.words]  # (N, D)
    hidden = torch.zeros_like(vectors)
    for label in range(6):
        arcs = torch.zeros(len(vectors), len(vectors), dtype=torch.float64)  # from column to row
        for sentence in (0, 6):
            for place in range(6):
                head, relation = int(trees.heads[place]), int(trees.relations[place])
                if head >= 0 and trees.words[place] >= 0 and trees.words[head] >= 0:
                    if relation == label:
                        arcs[sentence + head, sentence + place] = 1
                    if relation + 3 == label:
                        arcs[sentence + place, sentence + head] = 1
        gate = torch.sigmoid(vectors @ rows["gates"][label, :4] + rows["gates"][label, 4])[:, None]
        hidden = hidden + arcs @ (gate * (vectors @ rows["mixing"][label].view(4, 4).T + rows["offsets"][label]))
    hidden = hidden.relu()
    told = graph.targets
    assert told.tolist() == [0, 1, 2, 3, 5, 6, 7, 8, 9, 11]
    wanted = slow_loss(hidden[told], rows["targets"], graph.words[told].tolist(), [4, 1], 3)
    wanted.backward()
    steps: dict[str, tuple[list[int], torch.Tensor]] = {}
    for name, table in model.tables.items():
        table.update = lambda touched, gradient, rate, name=name: steps.update({name: (touched.tolist(), gradient)})  # type: ignore[method-assign]
    assert model.step(graph, torch.tensor([4, 1]), 0.1) == pytest.approx(wanted.item(), rel=1e-5)
    for name, (touched, gradient) in steps.items():
        assert torch.allclose(gradient.double(), rows[name].grad[touched], atol=1e-5), name
        rest = [row for row in range(len(rows[name])) if row not in touched]
        assert rows[name].grad[rest].abs().sum() == 0, name
    assert steps.keys() == model.tables.keys()
