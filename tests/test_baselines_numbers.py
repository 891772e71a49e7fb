"""Each baseline against a second way: gensim itself, autograd, a hand-made parse."""

from __future__ import annotations

import math
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tiny_corpus import sentences, words_of
from tiny_text import ONE, drained, slow_loss, written

from stillvec.baselines import EncodedCorpus, encode_corpus
from stillvec.baselines.deps import Deps, iterate_contexts, read_pairs
from stillvec.baselines.deps import DepsModel as PairModel
from stillvec.baselines.syngcn import SynGcn, read_trees
from stillvec.baselines.syngcn import SynGcnModel as GraphModel
from stillvec.corpus import Corpus
from stillvec.corpus.conllu import Parse
from stillvec.training.negative_sampling import NegativeSampler, keep_probability, negative_sampling_loss
from stillvec.training.optimizers import RowAdaGrad
from stillvec.vocabulary import Vocabulary


@pytest.fixture
def text(tmp_path: Path) -> EncodedCorpus:
    return written(tmp_path / "text")


def test_a_text_has_the_known_words_sentence_by_sentence(text: EncodedCorpus) -> None:
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
    text = drained(encode_corpus(corpus, vocabulary, tmp_path))
    assert text.rows.tolist() == [1, 0, 2, 1, 3]
    assert text.ends.tolist() == [3, 5]
    assert text.known.words == ("cat", "a", "new york", "dog")
    assert text.lines.read_text("utf-8") == "a cat new\u00a0york\na dog\n"


@pytest.mark.parametrize(("method", "sg"), [("skipgram", 1), ("cbow", 0)])
def test_skipgram_and_cbow_are_gensims_numbers(method: str, sg: int, text: EncodedCorpus, tmp_path: Path) -> None:
    word2vec = pytest.importorskip("gensim.models.word2vec")
    from stillvec.baselines import BASELINES

    settings = {"dim": 12, "epochs": 3, "window": 3, "negatives": 4, "subsample": 1e-2, "rate": 0.04, "seed": 7}
    settings["power"] = 0.4  # gensim's own is 0.75
    got = drained(BASELINES[method](**settings).steps(text, ONE)).vectors
    path = tmp_path / "by-hand.txt"
    path.write_text("".join(" ".join(word for word, _, _ in words_of(each)) + "\n" for each in sentences(96)))
    model = word2vec.Word2Vec(
        sg=sg, vector_size=12, window=3, negative=4, sample=1e-2, alpha=0.04, min_alpha=0.0004, seed=7, workers=1,
        min_count=1, sorted_vocab=0, ns_exponent=0.4,
    )  # fmt: skip
    model.build_vocab_from_freq(dict(zip(text.vocabulary, text.vocabulary.counts.tolist(), strict=True)))
    model.train(corpus_file=str(path), total_examples=96, total_words=text.n_words, epochs=3)
    assert np.array_equal(got.matrix, np.stack([model.wv[word] for word in text.vocabulary]))


def test_contexts_added_are_the_other_table_of_gensim(text: EncodedCorpus) -> None:
    pytest.importorskip("gensim")
    from stillvec.baselines.gensim_methods import Skipgram

    class Kept(Skipgram):
        def vectors(self, model: Any, text: EncodedCorpus) -> Any:
            object.__setattr__(self, "tables", (model.wv.vectors.copy(), model.syn1neg.copy()))
            return super().vectors(model, text)

    learner = Kept(dim=8, epochs=1, add_contexts=True)
    made = drained(learner.steps(text, ONE)).vectors
    words, others = learner.tables
    assert np.allclose(made.matrix, words + others)
    assert np.abs(others).max() > 0


def test_fasttext_gives_a_word_that_the_corpus_lacks_the_mean_of_its_ngrams(tmp_path: Path) -> None:
    fasttext = pytest.importorskip("gensim.models.fasttext")
    from stillvec.baselines.gensim_methods import FastText

    made = sentences(96)
    counts = Counter(word for each in made for word, _, _ in words_of(each))
    vocabulary = Vocabulary.build(counts, min_count=1, include_words=["farmers"])
    text = drained(encode_corpus(Corpus.from_texts(made), vocabulary, tmp_path))
    kept: list[Any] = []

    class Kept(FastText):
        def vectors(self, model: Any, text: EncodedCorpus) -> Any:
            kept.append(model)
            return super().vectors(model, text)

    got = drained(Kept(dim=10, epochs=2, buckets=500).steps(text, ONE)).vectors
    rows = fasttext.ft_ngram_hashes("farmers", 4, 6, 500)
    assert "farmers" in got
    assert np.allclose(got["farmers"], kept[0].wv.vectors_ngrams[rows].mean(0), atol=1e-6)
    assert np.allclose(got["farmer"], kept[0].wv["farmer"])


def test_negative_sampling_has_the_gradient_of_autograd() -> None:
    choose = torch.Generator().manual_seed(0)
    vectors = torch.randn(5, 4, generator=choose)
    table = torch.randn(7, 4, generator=choose)
    targets, drawn = [0, 3, 3, 6, 2], [3, 1, 1]
    loss, by_vectors, rows, by_rows = negative_sampling_loss(
        vectors, table, torch.tensor(targets), torch.tensor(drawn), 10
    )
    a, b = vectors.double().requires_grad_(), table.double().requires_grad_()
    wanted = slow_loss(a, b, targets, drawn, 10)
    wanted.backward()
    assert float(loss) == pytest.approx(wanted.item(), rel=1e-5)
    assert torch.allclose(by_vectors.double(), a.grad, atol=1e-5)
    assert rows.tolist() == [0, 1, 2, 3, 6]
    assert torch.allclose(by_rows.double(), b.grad[rows], atol=1e-5)
    assert b.grad[[4, 5]].abs().max() == 0


def test_words_are_drawn_and_kept_in_the_proportions_of_the_papers() -> None:
    counts = torch.tensor([900, 0, 90, 10])
    drawn = NegativeSampler(counts, 0.5).draw((40_000,), np.random.default_rng(0)).numpy()
    shares = np.sqrt(counts.numpy()) / np.sqrt(counts.numpy()).sum()
    assert np.allclose(np.bincount(drawn, minlength=4) / 40_000, shares, atol=0.01)
    assert np.allclose(keep_probability(counts, 0.01)[[0, 3]], [math.sqrt(0.01 / 0.9) + 0.01 / 0.9, 1.0])
    assert (keep_probability(counts, 0.0) == 1).all()


def test_a_table_steps_by_one_sum_of_squares_a_row() -> None:
    table = RowAdaGrad(torch.zeros(3, 2))
    table.update(torch.tensor([2, 0]), torch.tensor([[3.0, 4.0], [0.0, 1.0]]), 0.5)
    table.update(torch.tensor([2]), torch.tensor([[1.0, 1.0]]), 0.5)
    first = -0.5 * np.array([3, 4]) / math.sqrt(12.5)
    assert np.allclose(table.table[2], first - 0.5 / math.sqrt(12.5 + 1), atol=1e-5)
    assert np.allclose(table.table[0], [0, -0.5 / math.sqrt(0.5)], atol=1e-5)
    assert table.table[1].tolist() == [0, 0]


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
    found = [(forms[word], f"{forms[other]}/{relation}") for word, other, relation in iterate_contexts(parse)]
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
    text = EncodedCorpus(vocabulary, Corpus(tmp_path / "a.conllu"), tmp_path, 0, 0)
    pairs = drained(read_pairs(text, tmp_path, 2))
    found = Counter(zip(pairs.words.tolist(), pairs.contexts.tolist(), strict=True))
    by_word = {words[row]: sorted(n for (word, _), n in found.items() if word == row) for row in range(5)}
    # contexts met once (baker/det-1, baker/nsubj) are gone; markets is not known
    assert by_word == {"the": [2], "sells": [2, 3], "bread": [3], "farmer": [2, 2], "baker": [1, 1]}
    assert pairs.word_counts.tolist() == [2, 5, 3, 4, 2]
    assert sorted(pairs.context_counts.tolist()) == [2, 2, 3, 3, 3, 3]


def test_the_full_stop_that_a_parser_leaves_at_an_abbreviation_hides_no_word(tmp_path: Path) -> None:
    text = EncodedCorpus(Vocabulary(["mr", "smith", "e.g."], [3, 2, 1]), Corpus.from_texts(["x"]), tmp_path, 0, 0)
    parse = Parse(("Mr.", "Smith", "E.g.", ".", "Mrs."), (1, -1, 1, 1, 1), ("dep",) * 5)
    assert text.rows_of(parse) == [0, 1, 2, -1, -1]


def test_the_gradient_of_deps_is_autograds(tmp_path: Path) -> None:
    (tmp_path / "a.conllu").write_text(f"{CONLLU}\n\n{CONLLU}\n", "utf-8")
    vocabulary = Vocabulary(["the", "farmer", "sells", "bread", "markets"], [2] * 5)
    text = EncodedCorpus(vocabulary, Corpus(tmp_path / "a.conllu"), tmp_path, 0, 0)
    pairs = drained(read_pairs(text, tmp_path, 1))
    model = PairModel(Deps(dim=3, negatives=4), pairs)
    choose = np.random.default_rng(0)
    for table in (model.words, model.contexts):
        table.table = torch.from_numpy(choose.normal(size=tuple(table.table.shape)).astype(np.float32))
    words, found = torch.from_numpy(pairs.words), torch.from_numpy(pairs.contexts)
    loss, rows, gradient, _, _ = model.gradients(words, found, torch.tensor([1, 2]))
    table = model.words.table.double().requires_grad_()
    wanted = slow_loss(table[words], model.contexts.table.double(), found.tolist(), [1, 2], 4)
    wanted.backward()
    assert float(loss) == pytest.approx(wanted.item(), rel=1e-5)
    assert rows.tolist() == [0, 1, 2, 3, 4]
    assert torch.allclose(gradient.double(), table.grad, atol=1e-5)


def test_the_layer_of_syngcn_is_the_dense_formula(tmp_path: Path) -> None:
    (tmp_path / "a.conllu").write_text(f"{CONLLU}\n\n{CONLLU.replace('farmer', 'baker')}\n", "utf-8")
    words = ["the", "farmer", "sells", "bread", "markets", "baker"]  # "in" is not known
    text = EncodedCorpus(Vocabulary(words, [2] * 6), Corpus(tmp_path / "a.conllu"), tmp_path, 0, 0)
    trees = drained(read_trees(text, 3))
    assert trees.n_relations == 3
    model = GraphModel(SynGcn(dim=4, negatives=3, subsample=0.0, n_relations=3), np.full(6, 2), trees)
    choose = np.random.default_rng(0)
    for table in model.tables.values():
        table.table = torch.from_numpy(choose.normal(size=tuple(table.table.shape)).astype(np.float32))
    graph = model.graph(np.array([1, 0]), choose)
    rows = {name: table.table.double().requires_grad_() for name, table in model.tables.items()}
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
    target_rows = graph.targets
    assert target_rows.tolist() == [0, 1, 2, 3, 5, 6, 7, 8, 9, 11]
    wanted = slow_loss(hidden[target_rows], rows["targets"], graph.words[target_rows].tolist(), [4, 1], 3)
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
