"""Probing: profiles by hand, controls beside every figure, the ceiling of the label probe, information by clusters."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.metrics import mutual_info_score

from stillvec.errors import UsageError
from stillvec.evaluation.information import MutualInformation, bias, clusters, entropy, information, label_information
from stillvec.evaluation.intervals import Resampling
from stillvec.evaluation.labels import KINDS, Labels
from stillvec.evaluation.probing import Probing, fit_probe, profile, randomize, table
from stillvec.heads.lookup import Lookup
from stillvec.heads.networks import perceptron
from stillvec.heads.pooling import POOLINGS
from stillvec.heads.splits import Round
from stillvec.heads.treebank import Sentence, conllu
from stillvec.vectors import WordVectors

SENTENCES = """\
1 She she PRON PRP Person=3 2 nsubj
2 said say VERB VBD Tense=Past|VerbForm=Fin 0 root
3 that that SCONJ IN _ 5 mark
4 dogs dog NOUN NNS Number=Plur 5 nsubj
5 bark bark VERB VBP Tense=Pres|VerbForm=Fin 2 ccomp
6 . . PUNCT . _ 2 punct

1 Books book NOUN NNS _ 0 root
2 of of ADP IN _ 3 case
3 friends friend NOUN NNS _ 1 nmod
4 of of ADP IN _ 5 case
5 mine mine PRON PRP _ 3 nmod

1 Cats cat NOUN NNS _ 3 obj
2 we we PRON PRP _ 3 nsubj
3 like like VERB VBP Tense=Pres 0 root

1 He he PRON PRP _ 3 nsubj
2 will will AUX MD _ 3 aux
3 go go VERB VB _ 0 root
"""


def _conllu(text: str) -> str:
    rows = []
    for line in text.splitlines():
        fields = line.split()
        rows.append("\t".join([*fields[:8], "_", "_"]) if fields else "")
    return "\n".join(rows) + "\n"


@pytest.fixture
def sentences(tmp_path: Path) -> list[Sentence]:
    path = tmp_path / "three.conllu"
    path.write_text(_conllu(SENTENCES), "utf-8")
    return conllu(path)


BY_HAND = [
    {
        "raw": {"sent_length": 6, "char_per_tok": (3 + 4 + 4 + 4 + 4) / 5, "ttr_form": 1.0},
        "morphosyntax": {
            "lexical_density": 3 / 5,
            "upos_dist_VERB": 2 / 6,
            "xpos_dist_VBD": 1 / 6,
            "verbs_tense_dist_Past": 0.5,
            "verbs_form_dist_Fin": 1.0,
        },
        "syntax": {
            "parse_depth": 2,
            "avg_links_len": (1 + 2 + 1 + 3) / 4,
            "max_links_len": 3,
            "subj_pre": 1.0,
            "obj_post": 0.0,
            "verbal_head_dist": 2,
            "verbal_root_perc": 1.0,
            "avg_token_per_clause": 3.0,
            "avg_verb_edges": 2.0,
            "verbal_arity_2": 1.0,
            "dep_dist_nsubj": 2 / 6,
            "principal_proposition_dist": 0.5,
            "subordinate_proposition_dist": 0.5,
            "subordinate_post": 1.0,
            "avg_subordinate_chain_len": 1.0,
            "subordinate_dist_1": 1.0,
        },
    },
    {
        "raw": {"sent_length": 5, "ttr_form": 4 / 5, "ttr_lemma": 4 / 5},
        "morphosyntax": {"lexical_density": 2 / 5},
        "syntax": {
            "parse_depth": 3,
            "avg_links_len": (1 + 2 + 1 + 2) / 4,
            "avg_prepositional_chain_len": 2.0,
            "prep_dist_2": 1.0,
            "verbal_root_perc": 0.0,
            "avg_token_per_clause": 0.0,
        },
    },
    {"raw": {}, "morphosyntax": {}, "syntax": {"obj_post": 0.0, "subj_pre": 1.0, "parse_depth": 1, "max_links_len": 2}},
    {"syntax": {"avg_verb_edges": 1.0, "verbal_arity_1": 1.0}},
]


@pytest.mark.parametrize("number", range(4))
def test_a_profile_is_what_is_counted_by_a_slow_loop(number: int, sentences: list[Sentence]) -> None:
    found = profile(sentences[number])
    for group, numbers in BY_HAND[number].items():
        for name, value in numbers.items():
            assert found[group][name] == pytest.approx(value), name


def test_a_sentence_that_is_not_a_tree_still_has_a_profile(tmp_path: Path) -> None:
    path = tmp_path / "circle.conllu"
    path.write_text(_conllu("1 a a VERB V _ 2 acl\n2 b b VERB V _ 1 acl\n"), "utf-8")
    (sentence,) = conllu(path)
    assert profile(sentence)["syntax"]["parse_depth"] == 2


def test_what_is_the_same_in_nearly_all_sentences_is_left_out(sentences: list[Sentence]) -> None:
    names, numbers = table([sentences[0]] * 2 + [sentences[1]] * 50)
    assert names == ()
    names, numbers = table([sentences[0]] * 10 + [sentences[1]] * 50)
    assert "raw:sent_length" in names
    assert numbers.shape == (60, len(names))


def _treebank(folder: Path, parts: dict[str, int]) -> Path:
    """Sentences whose nouns, verbs and lengths vary; which word is a noun only the word tells."""
    generator = np.random.default_rng(0)
    (folder / "tagging").mkdir()
    for part, number in parts.items():
        blocks = []
        for _ in range(number):
            length = int(generator.integers(2, 12))
            kinds = generator.choice(["NOUN", "VERB", "ADJ"], length, p=[0.5, 0.3, 0.2])
            rows = []
            for at, kind in enumerate(kinds, 1):
                word = f"{kind.lower()}{generator.integers(0, 8)}"
                relation = "root" if at == 1 else {"NOUN": "obj", "VERB": "ccomp", "ADJ": "amod"}[kind]
                rows.append(f"{at} {word} {word} {kind} X _ {at - 1} {relation}")
            blocks.append("\n".join(rows))
        (folder / "tagging" / f"toy.{part}.conllu").write_text(_conllu("\n\n".join(blocks)), "utf-8")
    return folder / "tagging" / "toy.test.conllu"


@pytest.fixture
def words() -> WordVectors:
    """A vector tells the part of speech and little else."""
    generator = np.random.default_rng(2)
    names = [f"{kind}{n}" for kind in ("noun", "verb", "adj") for n in range(8)]
    matrix = 0.1 * generator.standard_normal((24, 4)).astype(np.float32)
    matrix[np.arange(24), np.repeat(np.arange(3), 8)] += 1
    return WordVectors(names, matrix)


def test_every_probe_is_reported_with_its_length_and_random_control(words: WordVectors, tmp_path: Path) -> None:
    path = _treebank(tmp_path, {"train": 300, "dev": 60, "test": 120})
    task = Probing(each=True)
    assert task.find(tmp_path) == [path]
    items = task.read(path)
    answers = task.answer(Lookup(words), items)
    scores = task.score(items, answers, np.arange(120), Resampling(100))
    for group in ("all", "raw", "morphosyntax", "syntax"):
        for pooling in ("mean", "sum"):
            assert scores[f"{group}-length"].low <= scores[f"{group}-length"].value
            assert scores[f"{group}-{pooling}"].value >= scores[f"{group}-{pooling}-random"].value - 0.05
    assert scores["sent_length-length"].value == pytest.approx(1)
    assert scores["sent_length-sum"].value > 0.9 > scores["sent_length-mean"].value
    assert scores["upos_dist_VERB-mean"].value > 0.95
    assert scores["upos_dist_VERB-mean"].value > scores["upos_dist_VERB-mean-random"].value + 0.05
    at = items.names.index("morphosyntax:upos_dist_VERB")
    theirs = spearmanr(answers.values["mean"][:, at], items.numbers[:120, at]).statistic
    assert scores["upos_dist_VERB-mean"].value == pytest.approx(theirs, abs=1e-6)
    again = task.answer(Lookup(words), items)
    assert all(again.values[name].tobytes() == each.tobytes() for name, each in answers.values.items())


def test_poolings_are_of_the_known_words(words: WordVectors) -> None:
    sequences = Lookup(words).read_tokens([["zebra", "noun1", "verb2", "adj3", "zebra"], ["zebra"]])
    rows = words[["noun1", "verb2", "adj3"]]
    wanted = {"mean": rows.mean(0), "sum": rows.sum(0), "min": rows.min(0), "max": rows.max(0)}
    wanted |= {"avg": wanted["mean"], "first": rows[0], "last": rows[2], "endpoint": np.append(rows[0], rows[2])}
    wanted["diffsum"] = np.append(rows[2] + rows[0], rows[2] - rows[0])
    wanted["coherent"] = np.array([rows[0][0], rows[2][1], rows[0][2] * rows[2][3]])
    for name, pool in POOLINGS.items():
        pooled = pool(sequences)
        np.testing.assert_allclose(pooled, [wanted[name], np.zeros_like(pooled[1])], atol=1e-6, err_msg=name)
    assert POOLINGS["mean"](randomize(sequences))[1].tolist() == [0] * 4


def test_a_probe_never_sees_the_numbers_of_the_test() -> None:
    generator = np.random.default_rng(0)
    x, y = generator.standard_normal((60, 5)), generator.standard_normal((60, 2))
    split = Round(np.arange(20, 50), np.arange(50, 60), np.arange(20))
    other = y.copy()
    other[:20] = 9
    np.testing.assert_array_equal(fit_probe(x, y, split), fit_probe(x, other, split))


def test_invalid_settings_are_refused() -> None:
    for make, sentence in (
        (lambda: Probing(pooling="mean+median"), "'median'"),
        (lambda: Labels(hidden=0), "hidden"),
        (lambda: MutualInformation(k=1), "setting 'k'"),
    ):
        with pytest.raises(UsageError, match=sentence):
            make()


def test_a_probe_of_word_identity_reaches_the_word_majority_and_not_more() -> None:
    generator = np.random.default_rng(0)
    words, labels = 40, 5
    chances = generator.dirichlet(np.full(labels, 0.5), words)
    seen, rated_pairs, tested = (
        np.array([generator.multinomial(200, p) for p in chances]).astype(float) for _ in range(3)
    )
    said = perceptron(np.eye(words, dtype=np.float32), seen, rated_pairs, 64, 0)
    share = tested[np.arange(words), said].sum() / tested.sum()
    majority = tested[np.arange(words), seen.argmax(axis=1)].sum() / tested.sum()
    assert share == pytest.approx(majority, abs=0.01)


def test_the_label_probe_is_reported_with_its_ceiling_and_control(words: WordVectors, tmp_path: Path) -> None:
    path = _treebank(tmp_path, {"train": 100, "dev": 30, "test": 60})
    task = Labels(quick=True)
    items = task.read(path)
    answers = task.answer(Lookup(words), items)
    scores = task.score(items, answers, np.arange(60), Resampling(50))
    assert [*scores] == [f"{kind}-{name}" for kind in KINDS["relations"] for name in ("probe", "random", "majority")]
    assert scores["upos-probe"].value == scores["upos-majority"].value == 1
    relations = [token for sentence in conllu(path) for token in sentence]
    most: dict[str, dict[str, int]] = {}
    for part in ("train", "dev"):
        for sentence in conllu(path.with_name(f"toy.{part}.conllu")):
            for token in sentence:
                held = most.setdefault(token.form, {})
                held[token.relation] = held.get(token.relation, 0) + 1
    right = [max(sorted(most[t.form]), key=most[t.form].__getitem__) == t.relation for t in relations]
    assert scores["relation-majority"].value == pytest.approx(np.mean(right))


def test_unknown_words_are_left_out_of_all_figures_or_of_none(words: WordVectors, tmp_path: Path) -> None:
    path = _treebank(tmp_path, {"train": 40, "dev": 10, "test": 20})
    items = Labels(quick=True).read(path)
    some = words.subset([word for word in words.words if not word.startswith("adj")])
    skipped, kept = (Labels(quick=True).answer(Lookup(some, policy), items) for policy in ("skip", "zero"))
    adjectives = np.array([sum(word.startswith("adj") for word in text) for text in items.texts])
    assert (kept.values["words"] - skipped.values["words"]).tolist() == adjectives.tolist()
    assert kept.values["words"].sum() == sum(map(len, items.texts))


def test_information_is_that_of_scikit_learn_and_its_bias_is_the_formula() -> None:
    generator = np.random.default_rng(0)
    a, b = generator.integers(0, 50, (2, 20_000))
    joint = np.zeros((50, 50))
    np.add.at(joint, (a, b), 1)
    assert information(joint) == pytest.approx(mutual_info_score(a, b))
    assert bias(joint) == pytest.approx(49**2 / 40_000, rel=0.02)
    assert abs(information(joint) - bias(joint)) < 0.005
    assert entropy(np.ones(8)) == pytest.approx(math.log(8))


def test_noise_takes_information_away() -> None:
    generator = np.random.default_rng(0)
    kinds = 6 * generator.standard_normal((20, 8))
    x = kinds[generator.integers(0, 20, 3000)]
    estimates = [
        label_information(clusters(x, 20), clusters(x + sigma * generator.standard_normal(x.shape), 20, seed=1))
        for sigma in (0, 3, 10, 300)
    ]
    values = [each.value for each in estimates]
    assert values == sorted(values, reverse=True)
    assert values[0] >= 0.95 * math.log(20)
    assert abs(values[-1]) < 0.02
    assert all(abs(each.shuffled) < 0.02 for each in estimates)


def test_a_row_that_weighs_two_counts_as_two() -> None:
    generator = np.random.default_rng(0)
    x = np.concatenate([generator.standard_normal((30, 2)) + centre for centre in ([0, 0], [9, 0], [0, 9])])
    weights = generator.integers(1, 4, 90)
    ours = clusters(x, 3, weights)
    theirs = clusters(np.repeat(x, weights, axis=0), 3)
    heavy = clusters(np.array([[100.0], [104.0], [110.0]]), 2, np.array([100, 10, 1]))  # alone 104 would go with 100
    assert heavy[0] != heavy[1] == heavy[2]
    assert mutual_info_score(np.repeat(ours, weights), theirs) == pytest.approx(entropy(np.bincount(theirs)))


def test_clusters_of_vectors_tell_parts_of_speech_and_no_more_than_words_do(words: WordVectors, tmp_path: Path) -> None:
    path = _treebank(tmp_path, {"train": 100, "dev": 30, "test": 60})
    task = MutualInformation(k=3)
    items = task.read(path)
    assert len(items) == 190
    scores = task.score(items, task.answer(Lookup(words), items), np.arange(190), Resampling(20))
    assert scores["upos-vectors"].value == pytest.approx(1, abs=1e-3)
    assert scores["upos-words"].value == pytest.approx(1, abs=1e-2)
    assert scores["upos-random"].value < 0.8
    assert scores["relation-vectors"].low < scores["relation-vectors"].value < 1


def test_unknown_words_are_no_cluster(words: WordVectors, tmp_path: Path) -> None:
    path = _treebank(tmp_path, {"train": 40, "dev": 10, "test": 20})
    items = MutualInformation().read(path)
    some = words.subset([word for word in words.words if word.startswith("noun")])
    answers = MutualInformation(k=3).answer(Lookup(some), items)
    scores = MutualInformation(k=3).score(items, answers, np.flatnonzero(answers.covered), Resampling(0))
    assert math.isnan(scores["upos-words"].value)  # all that is left is nouns, and they are certain
