"""Pairs of texts and other names in them: features and probe by hand, bags of words at 50%, sources, substitutes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from stillvec import WordVectors, evaluate
from stillvec.errors import DatasetError, StillvecError, UsageError
from stillvec.evaluation import Report, substitution
from stillvec.evaluation.intervals import Resampling
from stillvec.evaluation.pairs import PairItems, Pairs
from stillvec.evaluation.substitution import NameList, SubstitutedItems, Substitution, compare_answers
from stillvec.evaluation.text_probe import PAIR_PENALTIES, encode_items, pair_features
from stillvec.heads.linear_probe import PENALTIES
from stillvec.heads.lookup import Lookup
from stillvec.heads.splits import Round
from stillvec.progress import drain

NOUNS = [f"noun{letter}" for letter in "abcdefghijkl"]
ADJECTIVES = [f"adj{letter}" for letter in "abcdefgh"]
WORDS = [*NOUNS, *ADJECTIVES, "the", "is", "more", "less", "than", "a", "and", "sees"]


@pytest.fixture(scope="module")
def vectors() -> WordVectors:
    return WordVectors(WORDS, np.random.default_rng(5).normal(size=(len(WORDS), 6)).astype(np.float32))


def _write(folder: Path, name: str, lines: list[str]) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def _inference(n: int, seed: int) -> list[str]:
    """A noun phrase is entailed if it is in the first text, contradicted if its adjective is another."""
    generator = np.random.default_rng(seed)
    lines = []
    for number in range(n):
        first, second = generator.permutation(NOUNS)[:2]
        adjective, other = generator.permutation(ADJECTIVES)[:2]
        label = ("entailment", "neutral", "contradiction")[number % 3]
        hypothesis = {"entailment": f"the {first}", "neutral": f"a {second}", "contradiction": f"the {other} {first}"}
        kinds = "noun,adjective" if label == "contradiction" else "noun"
        lines.append(f"{label}\tthe {adjective} {first} sees\t{hypothesis[label]}\t{kinds}")
    return lines


def _comparisons(n: int, seed: int) -> list[str]:
    """The same words in the same order, or with the two nouns swapped."""
    generator = np.random.default_rng(seed)
    lines = []
    for number in range(n):
        a, b = generator.permutation(NOUNS)[:2]
        words = f"is {generator.choice(['more', 'less'])} {generator.choice(ADJECTIVES)} than"
        second = (a, b) if number % 2 else (b, a)
        label = "entailment" if number % 2 else "contradiction"
        lines.append(f"{label}\tthe {a} {words} the {b} .\tthe {second[0]} {words} the {second[1]} .\tsame")
    return lines


def _scores(report: Report, dataset: str) -> dict[str, float]:
    return {score.metric: score.value for score in report.scores if score.dataset == dataset}


def _select_and_predict(
    x: NDArray[np.float32], y: NDArray[np.int64], split: Round, penalties: Sequence[float]
) -> NDArray[np.int64]:
    """scikit-learn's logistic regression, with the penalty that is best on the development items."""

    def fit(rows: NDArray[np.int64], penalty: float, asked: NDArray[np.int64]) -> NDArray[np.int64]:
        mean, spread = x[rows].mean(axis=0), x[rows].std(axis=0)
        model = LogisticRegression(C=1 / penalty, max_iter=5000, tol=1e-9).fit((x[rows] - mean) / spread, y[rows])
        return np.asarray(model.predict((x[asked] - mean) / spread))

    right = {penalty: (fit(split.train, penalty, split.dev) == y[split.dev]).mean() for penalty in penalties}
    best = max(penalties, key=lambda penalty: (right[penalty], penalty))
    return fit(np.concatenate([split.train, split.dev]), best, split.test)


def test_the_answers_are_those_of_scikit_learn_on_features_by_hand(vectors: WordVectors, tmp_path: Path) -> None:
    _write(tmp_path, "mini.train.tsv", _inference(90, 0))
    items = Pairs().read(_write(tmp_path, "mini.test.tsv", _inference(40, 1)))
    answers = Pairs().answer(Lookup(vectors), items)

    def encode(text: str) -> NDArray[np.float32]:
        return np.mean([vectors[word] for word in text.split()], axis=0)

    rows = []
    for first, second in items.all_texts:
        u, v = encode(first), encode(second)
        rows.append(np.concatenate([u, v, abs(u - v), u * v]))
    x, y, (split,) = np.array(rows), np.array(items.labels), items.rounds
    theirs = _select_and_predict(x, y, split, PAIR_PENALTIES)
    assert (answers.values["macro-f1"][:, 0] == theirs).mean() >= 0.95  # two solvers may differ on the boundary
    alone = _select_and_predict(x[:, 6:12], y, split, PENALTIES) == y[split.test]
    assert (answers.values["accuracy-second"] == alone).mean() >= 0.95
    scores = Pairs().score(items, answers, np.arange(40), Resampling(50))
    assert scores["accuracy"].value == pytest.approx((answers.values["macro-f1"][:, 0] == items.gold).mean())
    assert scores["accuracy"].low < scores["accuracy"].value < scores["accuracy"].high
    assert scores["accuracy-majority"].value == pytest.approx(13 / 40)  # contradiction, the first of three equals
    assert scores["known-words"].value == 1


def test_a_bag_of_words_is_right_for_exactly_half_of_reordered_pairs(vectors: WordVectors, tmp_path: Path) -> None:
    _write(tmp_path, "pairs/comparisons.dev.tsv", _comparisons(120, 0))
    _write(tmp_path, "pairs/comparisons.test.tsv", _comparisons(80, 1))
    random = WordVectors(WORDS, np.random.default_rng(8).normal(size=(len(WORDS), 40)).astype(np.float32) * 50)
    sets = {"small": vectors, "large": random}
    report = evaluate(sets, tmp_path, "pairs:source=own", common=False, resamples=20)
    for score in report.scores:
        if score.metric in ("reordered", "reordered-words"):
            assert (score.value, score.low, score.high) == (0.5, 0.5, 0.5)
        if score.metric == "reordered-bigrams":
            assert score.value > 0.6
    assert {score.metric for score in report.scores} >= {"reordered", "reordered-words", "reordered-bigrams"}


def test_rounding_of_a_sum_in_another_order_is_no_difference() -> None:
    generator = np.random.default_rng(0)
    words = generator.normal(size=(30, 50)).astype(np.float32)
    u, v = words.mean(axis=0), words[::-1].mean(axis=0)
    assert (u != v).any()
    features = pair_features(np.stack([u, u]), np.stack([v, u]))
    np.testing.assert_array_equal(features[0], features[1])
    assert not features[:, 100:150].any()


@pytest.fixture
def challenge(tmp_path: Path) -> Path:
    """MNLI with three labels, and a challenge set in one file with two and kinds."""
    _write(tmp_path, "pairs/mnli.train.tsv", _inference(90, 0))
    _write(tmp_path, "pairs/mnli.test.tsv", _inference(30, 1))
    lines = [
        line.replace("neutral\t", "non-entailment\t").replace("contradiction\t", "non-entailment\t")
        for line in _inference(30, 2)
    ]
    _write(tmp_path, "pairs/hans.tsv", lines)
    return tmp_path


def test_a_challenge_set_is_tested_with_the_probe_of_its_source(vectors: WordVectors, challenge: Path) -> None:
    items = Pairs().read(challenge / "pairs/hans.tsv")
    assert (len(items), items.names) == (30, ("entailment", "non-entailment"))
    learnt = {items.all_texts[row] for row in items.rounds[0].both}
    assert learnt == {(line.split("\t")[1], line.split("\t")[2]) for line in _inference(90, 0)}
    named = Pairs(source="mnli").read(challenge / "pairs/hans.tsv")
    assert named.all_texts == items.all_texts
    assert len(Pairs(source="own").read(challenge / "pairs/hans.tsv").rounds) == 5  # cross-validated
    report = evaluate(vectors, challenge, "pairs", only="hans", resamples=0)
    (score,) = (score for score in report.scores if score.metric == "accuracy")
    assert {detail.section: detail.n_items for detail in score.details} == {"noun": 30, "adjective": 10}
    assert score.value > 0.5
    assert [path.name for path in Pairs(source="mnli").find(challenge)] == ["hans.tsv"]


def test_labels_that_do_not_fit_the_source_are_an_error(challenge: Path) -> None:
    path = _write(challenge, "pairs/mrpc.tsv", [f"{n % 2}\tthe {NOUNS[n]}\ta {NOUNS[n]}" for n in range(12)])
    with pytest.raises(DatasetError, match=r"mnli\.train\.tsv.*neutral.* 0, 1"):
        Pairs(source="mnli").read(path)
    with pytest.raises(UsageError, match="mnil"):
        Pairs(source="mnil").read(path)
    assert len(Pairs().read(path).rounds) == 5
    assert [file.name for file in Pairs(source="mnli").find(challenge)] == ["hans.tsv"]


def test_no_answer_depends_on_the_labels_of_the_test(vectors: WordVectors, challenge: Path) -> None:
    def answer(task: Pairs | Substitution, path: Path) -> NDArray[np.float64]:
        answers = task.answer(Lookup(vectors), task.read(path)).values
        return answers["macro-f1"] if isinstance(task, Pairs) else answers["stability"]

    names = _write(challenge, "list.txt", NOUNS)
    substitution = Substitution(names=str(names), times=3)
    for file, tasks in (("pairs/mnli.test.tsv", (Pairs(), substitution)), ("pairs/hans.tsv", (Pairs(),))):
        path = challenge / file
        before = [answer(task, path) for task in tasks]
        lines = [line.split("\t") for line in path.read_text("utf-8").splitlines()]
        shuffled = np.random.default_rng(0).permutation([line[0] for line in lines])
        _write(challenge, file, ["\t".join([label, *line[1:]]) for label, line in zip(shuffled, lines, strict=True)])
        for task, first in zip(tasks, before, strict=True):
            np.testing.assert_array_equal(answer(task, path), first)


def test_a_question_counts_if_all_its_answers_are_right(vectors: WordVectors, tmp_path: Path) -> None:
    lines = [f"{'yes' if n % 3 else 'no'}\tthe {NOUNS[n // 5]} sees\ta {ADJECTIVES[n % 5]}\tx" for n in range(30)]
    _write(tmp_path, "q.train.tsv", lines)
    items = Pairs().read(_write(tmp_path, "q.test.tsv", lines))
    answers = Pairs().answer(Lookup(vectors), items)
    right = (answers.values["macro-f1"][:, 0] == items.gold).reshape(6, 5)
    scores = Pairs().score(items, answers, np.arange(30), Resampling(20))
    assert scores["exact-match"].value == pytest.approx(right.all(axis=1).mean())
    assert "reordered" not in scores


def test_a_perceptron_has_seeds(vectors: WordVectors, challenge: Path) -> None:
    task = Pairs(probe="perceptron", hidden=8, seeds=2)
    items = task.read(challenge / "pairs/mnli.test.tsv")
    answers = task.answer(Lookup(vectors), items)
    encoded, labels = drain(encode_items(Lookup(vectors), items.all_texts)), np.array(items.labels)
    labels[:30] = 0  # those of the test are not looked at
    again = task.predict_labels(encoded, labels, items.rounds[0], np.arange(30))
    np.testing.assert_array_equal(again, answers.values["macro-f1"])
    right = (answers.values["macro-f1"] == items.gold[:, None]).mean(axis=0)
    scores = task.score(items, answers, np.arange(30), Resampling(0))
    assert scores["accuracy"].value == pytest.approx(right.mean())
    assert scores["accuracy-sd"].value == pytest.approx(right.std(ddof=1))
    assert right.mean() > 0.5


def test_a_changed_source_is_not_answered_from_the_cache(vectors: WordVectors, challenge: Path) -> None:
    def run() -> dict[str, float]:
        report = evaluate(vectors, challenge, "pairs", only="hans", resamples=0, cache=challenge / "cache")
        return _scores(report, "hans")

    before = run()
    lines = _inference(90, 0)
    _write(
        challenge,
        "pairs/mnli.train.tsv",
        [line.replace("entailment\t", "neutral\t") for line in lines[:60]] + lines[60:],
    )
    assert run() != before


def test_a_teacher_answers_with_its_sentence_vectors(challenge: Path, model: str) -> None:
    _write(challenge, "names/companies.tsv", [f"{noun}\t3" for noun in NOUNS])
    report = evaluate(
        {"teacher": f"teacher:{model}"}, challenge, "pairs,substitution:times=2", only="hans", resamples=0
    )
    assert report.errors == ()
    by_task = {(score.task, score.metric): score.value for score in report.scores}
    assert 0 <= by_task["pairs", "accuracy"] <= 1
    assert by_task["substitution", "worst"] <= by_task["substitution", "accuracy"] <= by_task["substitution", "best"]


@pytest.mark.parametrize(
    ("content", "line", "message"),
    [
        ("1\ta\tb\n0\ta\n", 2, "2 fields"),
        ("1\ta\tb\n\n\tx\ty\n", 3, "2 fields"),
        ("\n", 1, "empty"),
        ("1\ta\tb\n" * 12, None, "two labels"),
        ("1\ta\tb\n0\ta\tb\n", None, "10 training items"),
    ],
)
def test_a_malformed_file_is_an_error(content: str, line: int | None, message: str, tmp_path: Path) -> None:
    path = tmp_path / "x.tsv"
    path.write_text(content, "utf-8")
    with pytest.raises(DatasetError, match=message) as caught:
        Pairs().read(path)
    assert (caught.value.path, caught.value.line) == (str(path), line)


# --- substitution


def test_names_are_matched_whole_and_the_longest_first() -> None:
    names = NameList(("Ford", "Ford Motor", "AT&T", "Target", "St. Ives"))
    text = "Ford Motor and Ford's target: Fordham, AT&T, the Target of St. Ives."
    assert [text[start:end] for start, end in names.spans(text)] == ["Ford Motor", "Ford", "AT&T", "Target", "St. Ives"]


def _companies(n: int, seed: int) -> list[str]:
    generator = np.random.default_rng(seed)
    lines = []
    for number in range(n):
        a, b = generator.permutation(NOUNS)[:2]
        adjective = generator.choice(ADJECTIVES)
        second = a if number % 2 else generator.permutation(NOUNS)[0]
        lines.append(f"{number % 2}\tthe {a} is {adjective} and {b}\tthe {b} sees the {adjective} {second}")
    return lines


@pytest.fixture
def renamed(tmp_path: Path) -> Path:
    _write(tmp_path, "pairs/news.train.tsv", _companies(80, 0))
    _write(
        tmp_path, "pairs/news.test.tsv", [*_companies(30, 1), "1\tthe adja\tthe adja is more", "0\tthe nouna\tthe adja"]
    )
    _write(tmp_path, "names/companies.tsv", [f"{noun}\t{number}" for number, noun in enumerate(NOUNS[:8])])
    return tmp_path


def test_a_name_is_replaced_in_both_texts_by_others_of_the_list(renamed: Path) -> None:
    items = Substitution(times=4).read(renamed / "pairs/news.test.tsv")
    assert isinstance(items, SubstitutedItems)
    names = {*NOUNS[:8]}
    assert 0 < len(items) < 31
    for number, (first, second) in enumerate(items.texts):
        shared = names & {*first.split()} & {*second.split()}
        assert shared
        present = names & {*first.split(), *second.split()}
        rows = np.flatnonzero(items.item == number)
        assert len(rows) == min(4, 8 - len(present))
        assert len({items.variants[row] for row in rows}) == len(rows)
        for row in rows:
            mapping = dict(
                zip([word for word in first.split() if word in shared], items.inserted[row].split(), strict=True)
            )
            assert not {*mapping.values()} & present
            assert len({*mapping.values()}) == len(mapping)
            texts = tuple(" ".join(mapping.get(word, word) for word in text.split()) for text in (first, second))
            assert items.variants[row] == texts
        bare = [" ".join(word for word in text.split() if word not in shared) for text in (first, second)]
        assert [" ".join(text.split()) for text in items.removed[number]] == bare


def test_answers_to_other_names_are_compared_as_a_loop_does() -> None:
    generator = np.random.default_rng(3)
    gold, own, removed = generator.integers(0, 2, 9), generator.integers(0, 2, (9, 2)), generator.integers(0, 2, (9, 2))
    item, known = np.repeat(np.arange(9), 3), generator.integers(0, 2, 27) > 0
    other = np.where(generator.random((27, 2)) < 0.8, own[item], 1 - own[item])
    values = compare_answers(gold, item, own, other, removed, known)
    for number in range(9):
        answers = [[own[number, seed], *other[item == number, seed]] for seed in (0, 1)]
        right = [[answer == gold[number] for answer in by_name] for by_name in answers]
        assert values["worst"][number] == np.mean([all(by_name) for by_name in right])
        assert values["best"][number] == np.mean([any(by_name) for by_name in right])
        assert values["accuracy"][number] == np.mean([by_name[0] for by_name in right])
        assert values["accuracy-substituted"][number] == pytest.approx(np.mean([by_name[1:] for by_name in right]))
        assert values["stability"][number] == np.mean([len({*by_name}) == 1 for by_name in answers])
        assert values["names-known"][number] == pytest.approx(known[item == number].mean())


def test_names_without_a_vector_look_stable_and_the_coverage_says_so(vectors: WordVectors, renamed: Path) -> None:
    names = _write(renamed, "strange.txt", ["nouna", "Zorgle", "Blat Inc.", "Quux"])
    scores = _scores(evaluate(vectors, renamed, f"substitution:names={names}", resamples=0), "news.test")
    assert scores["names-known"] == 0
    assert scores["accuracy-substituted"] == scores["accuracy-removed"]  # they are all alike
    known = _scores(evaluate(vectors, renamed, "substitution:times=5", resamples=0), "news.test")
    assert known["names-known"] == 1
    assert known["worst"] <= known["accuracy"] <= known["best"]
    assert known["best"] - known["worst"] == pytest.approx(1 - known["stability"])  # two labels
    assert known["stability"] < 1


def test_texts_with_one_label_are_substituted_too(vectors: WordVectors, renamed: Path) -> None:
    lines = [f"{n % 2} the {NOUNS[n % 9]} is {ADJECTIVES[n % 8]}" for n in range(40)]
    _write(renamed, "classification/mine.txt", lines)
    task = Substitution(times=3, quick=False)
    assert {path.name for path in task.find(renamed)} == {"mine.txt", "news.test.tsv"}
    items = task.read(renamed / "classification/mine.txt")
    assert len(items) == 36
    assert len(items.rounds) == 5
    answers = task.answer(Lookup(vectors), items)
    assert answers.covered.all()
    assert len(Substitution(items=5).read(renamed / "classification/mine.txt")) == 5


def test_synonyms_of_wordnet_are_put_in_one_at_a_time(renamed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    line = "00000100 03 n 03 nouna 0 big_thing 0 nounb 0 000 | a thing  \n"
    _write(renamed, "wordnet/data.noun", [line])
    monkeypatch.setenv("WNSEARCHDIR", str(renamed / "wordnet"))
    substitution._read_synonyms.cache_clear()
    items = Substitution(names="synonyms").read(renamed / "pairs/news.test.tsv")
    substitution._read_synonyms.cache_clear()
    assert {*items.inserted} <= {"big thing", "nouna", "nounb"}
    for variant, number in zip(items.variants, items.item, strict=True):
        assert variant[0] != items.texts[number][0]


@pytest.mark.parametrize(
    ("names", "code"), [("planets", "unknown-name"), ("empty.txt", "unexpected-value"), ("other.txt", "no-data")]
)
def test_a_list_that_cannot_be_used_is_an_error(names: str, code: str, vectors: WordVectors, renamed: Path) -> None:
    _write(renamed, "empty.txt", [""])
    _write(renamed, "other.txt", ["Mars", "Venus"])
    given = names if names == "planets" else str(renamed / names)
    with pytest.raises(StillvecError) as caught:
        evaluate(vectors, renamed, f"substitution:names={given}")
    assert caught.value.code == code


def test_without_a_list_nothing_is_substituted(vectors: WordVectors, tmp_path: Path) -> None:
    _write(tmp_path, "pairs/news.tsv", _companies(30, 1))
    assert Substitution().find(tmp_path) == []
    assert isinstance(Pairs().read(tmp_path / "pairs/news.tsv"), PairItems)
