"""What a tokenizer makes of a text: tokens per word, unknown tokens, coverage; told before the work."""

import json

import pytest
from tiny_teachers import write_tiny_model
from tokenizers import Tokenizer
from tokenizers.models import Unigram, WordPiece
from tokenizers.pre_tokenizers import BertPreTokenizer

import stillvec
from stillvec.analysis.tokenizer_fit import measure_texts
from stillvec.cli import main
from stillvec.errors import CorpusError
from stillvec.teachers.subword_tokenizer import SubwordTokenizer
from stillvec.teachers.text_fit import measure_fit

TOKENS = ["[UNK]", "house", "river", "b", "##o", "##a", "##t", "snow", "ice"]


def _tokenizer() -> SubwordTokenizer:
    backend = Tokenizer(WordPiece({token: row for row, token in enumerate(TOKENS)}, unk_token="[UNK]"))
    backend.pre_tokenizer = BertPreTokenizer()
    return SubwordTokenizer(backend)


def test_the_numbers_of_a_constructed_text_are_exact() -> None:
    fit = measure_fit(_tokenizer(), ["house river boat, xyz.", "house boat!"])
    assert (fit.n_words, fit.n_whole, fit.n_many, fit.n_unknown) == (6, 4, 2, 1)  # xyz is one unknown token
    assert fit.n_tokens == 2 + 1 + 4 + 4 + 1
    assert fit.tokens_per_word == 12 / 6
    used = {1: 6, 2: 5, 5: 0, 10: 0, 100: 0}  # house 2, river 1, the four tokens of boat 2 each; no unknown one
    assert fit.coverage == {least: count / 9 for least, count in used.items()}


def test_the_coverage_curve_never_rises() -> None:
    fit = measure_fit(_tokenizer(), ["house boat"] * 7 + ["river"] * 3)
    curve = [fit.coverage[least] for least in sorted(fit.coverage)]
    assert curve == sorted(curve, reverse=True)
    assert measure_fit(_tokenizer(), ["..."]).n_words == 0


def test_a_teacher_that_does_not_fit_is_named() -> None:
    good, bad = measure_fit(_tokenizer(), ["house river snow ice"]), measure_fit(_tokenizer(), ["boat boat house"])
    assert good.fits
    assert "does not fit" not in good.describe()
    assert not bad.fits
    assert "does not fit" in bad.describe()
    assert "3.00 tokens per word" in bad.describe()
    assert not measure_fit(_tokenizer(), ["xyz house river snow"]).fits  # unknown words


def test_the_words_of_a_script_without_spaces_are_segmented_first() -> None:
    assert measure_fit(_tokenizer(), ["我爱北京天安门"], "jieba").n_words == 4
    assert measure_fit(_tokenizer(), ["我爱北京天安门"]).n_words == 1


def test_the_command_prints_a_row_per_text(tmp_path, capsys) -> None:
    write_tiny_model(tmp_path / "teacher", "bert")
    (tmp_path / "a.txt").write_text("The river is cold.\n", "utf-8")
    (tmp_path / "b.txt").write_text("Река холодная.\n", "utf-8")
    texts = [f"en={tmp_path / 'a.txt'}", str(tmp_path / "b.txt")]
    assert main(["info", str(tmp_path / "teacher"), "--texts", *texts]) == 0
    printed = capsys.readouterr().out
    assert "en" in printed
    assert "b.txt" in printed
    assert main(["info", str(tmp_path / "teacher"), "--texts", *texts, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["en"]["n_words"] == 4
    fits = measure_texts(str(tmp_path / "teacher"), {"en": tmp_path / "a.txt"})
    assert fits["en"].tokens_per_word == facts["en"]["tokens_per_word"]
    capsys.readouterr()
    assert main(["info", str(tmp_path / "teacher"), "--texts", texts[0], f"en={tmp_path / 'b.txt'}"]) == 2
    assert "'en'" in capsys.readouterr().err  # one of the texts would be lost
    (tmp_path / "a.txt").write_text("...\n", "utf-8")
    with pytest.raises(CorpusError):
        measure_texts(str(tmp_path / "teacher"), {"en": tmp_path / "a.txt"})


def test_a_run_and_its_plan_say_how_teacher_and_text_fit(tmp_path) -> None:
    write_tiny_model(tmp_path / "teacher", "bert")
    texts = ["The river is cold and the house is warm."] * 6
    notes = []
    options = {"teacher": str(tmp_path / "teacher"), "method": "aggregate", "min_count": 1}
    stillvec.distill(texts, **options, progress=lambda event: notes.append(event.note))
    assert sum("tokens per word" in (note or "") for note in notes) == 1
    plan = stillvec.plan(texts, **options)
    assert plan.fit is not None
    assert plan.fit.n_words == 54
    assert plan.segmenter == "spaces"


def test_words_of_a_tokenizer_are_found_by_the_mark_that_most_tokens_have() -> None:
    """A letter of another tokenizer's mark is in EmbeddingGemma's vocabulary, and hid all of its words."""
    scores = [("<unk>", 0.0), ("Ġ", -1.0), ("▁house", -1.0), ("▁river", -1.0), ("s", -2.0)]
    tokenizer = SubwordTokenizer(Tokenizer(Unigram(scores, unk_id=0)))
    assert tokenizer.vocabulary() == ["house", "river"]
