"""Which words get a vector: stop words, patterns, numbers; and words that look like two written together."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tiny_teachers import write_tiny_model

from stillvec import distill, plan, train
from stillvec.cli import main
from stillvec.errors import StillvecError, UsageError, VocabularyError
from stillvec.formats import read_manifest
from stillvec.pipeline.settings import Distillation, from_manifest, read_stop_words, to_manifest
from stillvec.vocabulary import Vocabulary, WordCounter, WordFilter
from stillvec.vocabulary.function_words import list_function_words
from stillvec.vocabulary.glued_words import describe_glued, find_glued
from stillvec.vocabulary.scripts import find_scripts, select_by_script

COUNTS = {"the": 90, "river": 9, "1990": 8, "3.5": 7, "_": 6, "1px": 5, "new york": 4, "border-radius": 3, "é": 2}
TEXT = ["The river flows in 1990 to the sea .", "A river and the sea , 3.5 miles ."] * 6


@pytest.mark.parametrize(
    ("settings", "left_out"),
    [
        ({}, set()),
        ({"stop_words": ("The", "sea")}, {"the"}),
        ({"numbers": "drop"}, {"1990", "3.5", "_"}),
        ({"exclude": r"\d.*"}, {"1990", "3.5", "1px"}),
        ({"exclude": "new york"}, {"new york"}),
        ({"pattern": "[a-z]+"}, {"1990", "3.5", "_", "1px", "é"}),
        ({"pattern": ".{3,}"}, {"_", "é"}),
    ],
)
def test_a_filter_leaves_out_what_it_names(settings: dict[str, object], left_out: set[str]) -> None:
    assert COUNTS.keys() - WordFilter(**settings).apply(COUNTS).keys() == left_out  # type: ignore[arg-type]


def test_stop_words_of_a_cased_vocabulary_are_left_out_in_any_case() -> None:
    assert not WordFilter(("the",)).allows("The")


def test_included_words_are_not_filtered() -> None:
    assert WordFilter(numbers="drop").apply(COUNTS, ["1990"]).keys() >= {"1990", "the"}


@pytest.mark.parametrize("name", ["exclude", "pattern"])
def test_a_wrong_regular_expression_is_one_sentence(
    name: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=re.escape("'(a'")) as caught:
        Distillation(**{name: "(a"})
    assert name in str(caught.value)
    (tmp_path / "text.txt").write_text("\n".join(TEXT))
    assert main(["train", str(tmp_path / "text.txt"), f"--{name}", "(a", "--out", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_filter_that_leaves_no_word_is_an_error() -> None:
    with pytest.raises(VocabularyError) as caught:
        WordFilter(pattern="nothing").apply(COUNTS)
    assert caught.value.code == "no-words"


def test_stop_words_are_those_of_a_language_or_of_a_file(tmp_path: Path) -> None:
    assert read_stop_words("english") == read_stop_words("EN") == list_function_words("en")
    assert "the" in read_stop_words("english")
    assert "und" in read_stop_words("german")
    (tmp_path / "stop.txt").write_text("river\nsea\n")
    assert read_stop_words(str(tmp_path / "stop.txt")) == ("river", "sea")
    with pytest.raises(UsageError, match="klingon"):
        read_stop_words("klingon")


def test_settings_survive_a_manifest_and_defaults_are_not_in_it() -> None:
    chosen = Distillation(stop_words=read_stop_words("english"), exclude="x.*", pattern="[a-z]+", numbers="drop")
    values = to_manifest(chosen)
    assert (values["stop_words"], values["numbers"]) == ("english", "drop")
    assert from_manifest(values, "here") == chosen
    own = Distillation(stop_words=("river", "sea"))
    assert to_manifest(own)["stop_words"] == ["river", "sea"]
    assert from_manifest(to_manifest(own), "here") == own
    assert not {"stop_words", "exclude", "pattern", "numbers"} & to_manifest(Distillation()).keys()


def test_training_leaves_words_out_and_records_why(tmp_path: Path) -> None:
    given = {"method": "glove:epochs=1", "dim": 4, "min_count": 1, "threads": 1}
    vectors = train(TEXT, **given, stop_words="english", numbers="drop", exclude="m.*", out=tmp_path / "out")  # type: ignore[arg-type]
    assert {*vectors.words} == {"river", "flows", "sea"}
    assert read_manifest(tmp_path / "out")["training"]["stop_words"] == "english"
    card = (tmp_path / "out" / "README.md").read_text()
    assert "--stop-words english" in card
    assert "--numbers drop" in card
    assert {*train(TEXT, **given, stop_words=["sea"], pattern="[a-z]{4,5}").words} == {"river", "flows", "miles"}  # type: ignore[arg-type]


def count(texts: list[str], *, lowercase: bool = True) -> tuple[dict[str, int], dict[str, int]]:
    counter = WordCounter(lowercase=lowercase)
    counter.add(texts)
    return counter.counts(), counter.joins()


PLAIN = ["The solution is the system that we use without football and the power point of a linked list ."] * 300
GLUED = ["SolutionThe end.", "SolutionThe end.", "systemThe, PowerPoint; LinkedIn (getSystem) solutionthe"]


@pytest.mark.parametrize("greek", ["", " λόγος"])  # both ways of counting
@pytest.mark.parametrize("lowercase", [True, False])
def test_words_written_together_are_found_and_names_are_not(greek: str, lowercase: bool) -> None:
    function_words = " ".join(list_function_words("en"))
    texts = [text + greek for text in [*PLAIN, *[function_words] * 300, *GLUED]]
    found = find_glued(*count(texts, lowercase=lowercase), lowercase=lowercase)
    assert {each.word.lower() for each in found} == {"solutionthe", "systemthe"}
    assert found[0].parts == ("Solution", "The")
    assert found[0].n_occurrences == 2


def test_compounds_are_not_reported_in_lower_case() -> None:
    compounds = "without football within into breathe bathe sunthe overcome theme bethe sandwich"
    texts = [*PLAIN, *[" ".join(list_function_words("en"))] * 300, compounds, "systemthe solutionthat"]
    assert {each.word for each in find_glued(*count(texts))} == {"systemthe", "solutionthat"}


def test_a_frequent_word_is_not_two_words() -> None:
    texts = [*PLAIN, *[" ".join(list_function_words("en"))] * 300, *["SystemThe is a name"] * 100]
    assert find_glued(*count(texts)) == []


def test_the_sentence_about_them_has_examples_and_a_cure() -> None:
    found = find_glued(*count([*PLAIN, *[" ".join(list_function_words("en"))] * 300, *GLUED]))
    sentence = describe_glued(found, ["solutionthe"])
    assert "solutionthe" in sentence
    assert "1 of them" in sentence
    assert "--exclude" in sentence
    assert describe_glued([], []) == ""


def test_joins_of_parts_of_a_corpus_add_up() -> None:
    from stillvec.pipeline.corpus_counts import CorpusCounts

    one, other = (CorpusCounts({}, 0, 0, 0, {}, {"Solution The": n}) for n in (1, 2))
    assert (one + other).joins == {"Solution The": 3}


def test_info_and_a_run_tell_of_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = [*PLAIN, *[" ".join(list_function_words("en"))] * 300, *GLUED]
    (tmp_path / "text.txt").write_text("\n".join(texts))
    assert main(["info", str(tmp_path / "text.txt")]) == 0
    assert "solutionthe (2)" in capsys.readouterr().out
    flags = ["--method", "glove:epochs=1", "--dim", "4", "--max-words", "5", "--threads", "1"]
    assert main(["train", str(tmp_path / "text.txt"), *flags, "--out", str(tmp_path / "out")]) == 0
    assert "look like two written together" in capsys.readouterr().err


def test_a_plan_says_what_is_left_out(tmp_path: Path) -> None:
    from tiny_teachers import write_tiny_model

    folder = tmp_path / "teacher"
    write_tiny_model(folder, "bert")
    estimate = plan(TEXT, teacher=str(folder), method="aggregate", min_count=1, stop_words="english", numbers="drop")
    assert estimate.choice.n_filtered >= 4
    assert "the" in estimate.choice.filtered
    with pytest.raises(StillvecError):
        plan(TEXT, teacher=str(folder), method="aggregate", numbers="maybe")  # type: ignore[arg-type]


def test_the_scripts_of_a_corpus_are_those_with_a_twentieth_of_its_letters() -> None:
    russian = Vocabulary(["река", "дом", "usb", "北京", "1990"], [50, 50, 2, 0, 90])
    assert find_scripts(russian) == {"CYRILLIC"}
    assert find_scripts(Vocabulary(["すし", "寿司"], [9, 9])) == {"HIRAGANA", "CJK"}
    assert find_scripts(Vocabulary(["river"])) == set()
    assert select_by_script(["берег", "shore", "bерег", "x-2", "да-да"], {"CYRILLIC"}) == ["берег", "да-да"]


def test_for_sentences_the_words_of_the_teacher_in_the_scripts_of_the_corpus_are_added(tmp_path: Path) -> None:
    write_tiny_model(tmp_path / "teacher", "bert")
    settings = {"teacher": str(tmp_path / "teacher"), "purpose": "sentences", "min_count": 1}
    english = distill(["The cat sleeps here .", "A cat sat in the sun ."], **settings)  # type: ignore[arg-type]
    russian = distill(["Река холодная , дом тёплый .", "Дом стоит у реки ."], **settings)  # type: ignore[arg-type]
    assert {"cat", "house", "dog"} <= {*english.words}
    assert {*russian.words} == {"река", "холодная", "дом", "тёплый", "стоит", "у", "реки"}
