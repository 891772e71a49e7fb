"""Phrases that a corpus shows, and words with hyphens."""

from __future__ import annotations

import math
import random
import re
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from stillvec import distill, plan, train
from stillvec.cli import main
from stillvec.errors import UsageError
from stillvec.formats import read_manifest
from stillvec.pipeline.settings import Distillation, from_manifest, to_manifest
from stillvec.vocabulary.adjacent_words import AdjacentWords
from stillvec.vocabulary.function_words import list_function_words
from stillvec.vocabulary.phrases import DISCOUNT, PhraseFinder

FUNCTION_WORDS = ", ".join(list_function_words("en"))  # with commas between them: no pair of words
GREEK = " λόγος"  # takes the slow path
WORDS = [f"w{chr(97 + number)}" for number in range(20)]


def make_texts(seed: int = 0) -> list[str]:
    """Random words, among which some stand together."""
    draw = random.Random(seed)
    together = ["new york", "new york city", "bank of england", "mother-in-law", "carbon dioxide"]
    pieces = [draw.choice(together) if draw.random() < 0.2 else draw.choice(WORDS) for _ in range(4000)]
    lines = [" ".join(pieces[at : at + 10]).capitalize() + "." for at in range(0, len(pieces), 10)]
    return [*[FUNCTION_WORDS] * 40, *lines]


def find(texts: list[str], threshold: float | None = 0.4, **settings: Any) -> tuple[dict[str, int], dict[str, int]]:
    finder = PhraseFinder(threshold, **settings)
    for _ in range(finder.n_readings):
        for at in range(0, len(texts), 37):
            finder.add(texts[at : at + 37])
        finder.end_reading()
    return finder.find_phrases(), finder.find_hyphenated()


def find_slowly(texts: list[str], threshold: float, min_count: int = 5) -> dict[str, int]:
    """The same by the definition, with dictionaries."""
    function_words = {*list_function_words("en")}
    words: Counter[str] = Counter()
    pairs: Counter[tuple[str, ...]] = Counter()
    triples: Counter[tuple[str, ...]] = Counter()
    for text in texts:
        words.update(re.findall(r"\w+", text.lower()))
        for run in re.findall(r"(?<![\w-])\w+(?: \w+(?![\w-]))*", text.lower()):
            found = run.split(" ")
            pairs.update(pairwise(found))
            triples.update(zip(found, found[1:], found[2:], strict=False))
    total = sum(words.values())

    def score(together: int, one: int, other: int) -> float:
        p = max(together - DISCOUNT, 0.1) / total
        return math.log(p / (one / total * other / total)) / -math.log(p)

    def allowed(together: tuple[str, ...], count: int) -> bool:
        return count >= min_count and together[0] not in function_words and together[-1] not in function_words

    good = {
        pair: count
        for pair, count in pairs.items()
        if allowed(pair, count) and score(count, *(words[word] for word in pair)) >= threshold
    }
    result = {" ".join(pair): count for pair, count in good.items()}
    for triple, count in triples.items():
        scores = [-1.0]
        if triple[1] in function_words:
            scores.append(score(count, words[triple[0]], words[triple[2]]))
        if triple[:2] in good:
            scores.append(score(count, good[triple[:2]], words[triple[2]]))
        if triple[1:] in good:
            scores.append(score(count, words[triple[0]], good[triple[1:]]))
        if allowed(triple, count) and max(scores) >= threshold:
            result[" ".join(triple)] = count
    return result


@pytest.mark.parametrize("greek", ["", GREEK])
@pytest.mark.parametrize("threshold", [0.1, 0.4])
def test_phrases_are_those_of_the_definition(threshold: float, greek: str) -> None:
    texts = [text + greek for text in make_texts()]
    found, hyphenated = find(texts, threshold)
    assert found == find_slowly(texts, threshold)
    assert {"new york", "new york city", "bank of england", "carbon dioxide"} <= found.keys()
    assert hyphenated.keys() == {"mother-in-law"}
    assert found["carbon dioxide"] == sum(text.lower().count("carbon dioxide") for text in texts)


def test_a_higher_threshold_finds_fewer_phrases() -> None:
    few, more = (find(make_texts(), threshold)[0].keys() for threshold in (0.4, 0.0))
    assert few < more


def test_the_order_of_the_texts_changes_nothing() -> None:
    texts = make_texts()
    assert find(texts) == find(texts[::-1]) == find(random.Random(3).sample(texts, len(texts)))


@pytest.mark.parametrize("between", [", ", ". ", " – ", "\n", "  ", " 12 "])
@pytest.mark.parametrize("greek", ["", GREEK])
def test_what_is_apart_is_no_phrase(between: str, greek: str) -> None:
    texts = [FUNCTION_WORDS, *[f"carbon{between}dioxide{greek}"] * 30, *[", ".join(WORDS)] * 30]
    assert "carbon dioxide" not in find(texts)[0]
    assert "carbon dioxide" in find([text.replace(between, " ") for text in texts])[0]


@pytest.mark.parametrize("greek", ["", GREEK])
def test_a_word_beside_a_hyphen_is_in_no_phrase(greek: str) -> None:
    texts = [FUNCTION_WORDS, *[f"the long-term memory of self-made men{greek}"] * 30, *[", ".join(WORDS)] * 30]
    found, hyphenated = find(texts)
    assert not {"term memory", "made men", "memory of self"} & found.keys()
    assert hyphenated == {"long-term": 30, "self-made": 30}


def test_numbers_and_possessives_are_in_no_phrase() -> None:
    texts = [FUNCTION_WORDS, *["see figure 12 of the world's largest 3d printer"] * 30, *[", ".join(WORDS)] * 30]
    assert {*find(texts)[0]} == {"see figure", "3d printer", "largest 3d", "largest 3d printer"}


def test_more_pairs_than_fit_lose_the_rarest_only() -> None:
    texts = make_texts()
    assert {"new york", "carbon dioxide"} <= find(texts, max_keys=100)[0].keys() <= find(texts)[0].keys()


def test_numbers_of_words_are_bounded() -> None:
    adjacent = AdjacentWords(max_words=2)
    assert adjacent.read(["one two three one"]).words.tolist() == [0, 1, -1, 0]


GIVEN: dict[str, Any] = {"method": "cbow:epochs=1", "dim": 4, "threads": 1}


def test_training_counts_phrases_as_words_and_records_them(tmp_path: Path) -> None:
    texts = make_texts()
    vectors = train(texts, **GIVEN, phrases=True, phrase_score=0.4, hyphens="keep", out=tmp_path / "out")
    counts = dict(zip(vectors.words, vectors.vocabulary.counts.tolist(), strict=True))
    assert counts["new york city"] + counts["new york"] == sum(text.lower().count("new york") for text in texts)
    assert "mother-in-law" in vectors
    assert not {"york", "mother", "dioxide"} & counts.keys()
    manifest = read_manifest(tmp_path / "out")
    assert manifest["corpus"]["phrases"] == sum(" " in word for word in vectors.words)
    assert manifest["corpus"]["hyphenated"] == 1
    assert manifest["training"]["phrases"] is True
    card = (tmp_path / "out" / "README.md").read_text()
    assert "--phrases" in card
    assert "--phrase-score 0.4" in card
    assert "--hyphens keep" in card
    assert not {"new york", "mother-in-law"} & {*train(texts, **GIVEN).words}


def test_a_filter_holds_for_phrases() -> None:
    found = train(make_texts(), **GIVEN, phrases=True, exclude="new york.*", stop_words=["carbon"], hyphens="keep")
    assert not {"new york", "new york city", "carbon dioxide", "carbon"} & {*found.words}
    assert {"york", "dioxide", "bank of england", "mother-in-law"} <= {*found.words}


def test_a_rare_part_of_a_longer_phrase_counts_for_its_words() -> None:
    texts = [FUNCTION_WORDS, *["a new york city"] * 40, *["a new york"] * 3, *[", ".join(WORDS)] * 30]
    words = train(texts, **GIVEN, phrases=True, min_count=5).vocabulary
    assert "new york" not in words
    texts += ["a new york"] * 2
    assert "new york" in train(texts, **GIVEN, phrases=True, min_count=5).vocabulary


def test_settings_survive_a_manifest() -> None:
    chosen = Distillation(phrases=True, phrase_score=0.3, hyphens="keep")
    assert from_manifest(to_manifest(chosen), "here") == chosen
    assert not {"phrases", "phrase_score", "hyphens"} & to_manifest(Distillation()).keys()


@pytest.mark.parametrize("wrong", [{"phrase_score": 1.5}, {"phrase_score": -0.1}, {"hyphens": "drop"}])
def test_a_wrong_setting_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=next(iter(wrong))):
        Distillation(**wrong)


def test_methods_that_need_parses_refuse_phrases(tmp_path: Path) -> None:
    (tmp_path / "text.conllu").write_text("1\ta\ta\tX\t_\t_\t0\troot\t_\t_\n\n")
    with pytest.raises(UsageError, match="parses"):
        train(str(tmp_path / "text.conllu"), method="deps", phrases=True)


@pytest.fixture(scope="module")
def teacher(tmp_path_factory: pytest.TempPathFactory) -> str:
    from tiny_teachers import write_tiny_model

    folder = tmp_path_factory.mktemp("teacher")
    write_tiny_model(folder, "bert")
    return str(folder)


def test_a_distillation_has_phrases_and_more_text_keeps_them(teacher: str, tmp_path: Path) -> None:
    texts = make_texts()
    given: dict[str, Any] = {"teacher": teacher, "method": "aggregate", "contexts": 2}
    first = distill(texts, **given, phrases=True, phrase_score=0.4, out=tmp_path / "first")
    assert "new york" in first
    estimate = plan(texts, **given, phrases=True, phrase_score=0.4)
    assert {*estimate.choice.phrases} == {word for word in first.words if " " in word}
    more = [FUNCTION_WORDS, *["We saw: new york; and a yellow submarine, here ."] * 9, *[", ".join(WORDS)] * 30]
    both = distill(more, teacher=teacher, add_to=tmp_path / "first", out=tmp_path / "both")
    assert read_manifest(tmp_path / "both")["distillation"]["phrases"] is True
    assert "yellow submarine" in both
    counts = [vectors.vocabulary.counts[vectors.vocabulary.index["new york"]] for vectors in (first, both)]
    assert counts[1] == counts[0] + 9


def test_dry_run_shows_examples(teacher: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "text.txt").write_text("\n".join(make_texts()))
    flags = ["--teacher", teacher, "--method", "aggregate", "--contexts", "1", "--phrases", "--hyphens", "keep"]
    assert main(["distill", str(tmp_path / "text.txt"), *flags, "--dry-run", "--quiet"]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"phrases +[0-9]+: .*carbon dioxide", shown)
    assert re.search(r"words with hyphens +1: mother-in-law", shown)
