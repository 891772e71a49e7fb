"""The language of a text, and templates in it."""

import inspect
import re

import pytest
from tiny_teachers import write_tiny_model

import stillvec
from stillvec import Corpus
from stillvec.cli import main
from stillvec.errors import UsageError
from stillvec.learners.auto import TEMPLATES, Auto
from stillvec.learners.decontextualized import TEMPLATES as BARE
from stillvec.learners.decontextualized import Decontextualized
from stillvec.pipeline.settings import Distillation
from stillvec.verbs.distillation import Arguments, _parameters, split_arguments
from stillvec.vocabulary import Vocabulary, WordMatcher
from stillvec.vocabulary.languages import guess_language, read_languages, templates_of

TEXTS = {
    "en": "The boy went to the house by the river, and it was cold.",
    "de": "Der Junge ging zu dem Haus an der Elbe, und es war sehr kalt für ihn.",
    "fr": "Le garçon est allé dans la maison de la vallée, et il ne voit pas la mer.",
    "es": "El niño fue a la casa de la familia, pero no había nadie en el jardín.",
    "fi": "Poika meni taloon ja hän oli väsynyt, mutta se ei haitannut, kun ilta oli kaunis.",
    "cs": "Chlapec se vrátil do domu, který byl na kraji města, a řekl, že je zima.",
    "ru": "Мальчик пошёл к дому на берегу, но он не видел, что из окна за ним следят.",
    "uk": "Хлопець пішов до будинку на березі, але він не бачив, що за ним стежать і як це.",
    "ar": "ذهب الولد إلى البيت الذي كان على النهر، ولا أحد في البيت من أهله",
    "hi": "लड़का नदी के किनारे घर में गया और उस ने कहा कि यह घर बहुत ठंडा है",
    "tr": "Çocuk nehir için bir ev gördü ve bu ev çok daha güzel, ama o kadar da büyük değil.",
    "ko": "소년은 강가의 집으로 갔다. 매우 추웠다.",
    "ja": "少年は川のそばの家に行きました。とても寒かったです。",
    "zh": "男孩去了河边的房子，天气很冷。",
    "th": "เด็กชายไปที่บ้านริมแม่น้ำ",
}


@pytest.mark.parametrize("language", [*TEXTS])
def test_the_language_of_a_text_is_recognized(language: str) -> None:
    assert guess_language([TEXTS[language]]) == language


def test_a_short_text_is_taken_for_english_and_an_unknown_language_for_none() -> None:
    assert guess_language([]) == guess_language(["river bank boat"]) == "en"
    assert guess_language(["Ọmọkùnrin náà lọ sí ilé tó wà lẹ́gbẹ̀ẹ́ odò."] * 30) == "none"
    assert guess_language(["ლურჯი ცა და მზე"]) == "none"


def test_at_least_twenty_languages_have_templates() -> None:
    assert len(read_languages()) >= 20
    assert Auto.choose_templates(templates_of("en")) == TEMPLATES  # the table has the templates of the default
    assert Decontextualized.choose_templates(templates_of("en")) == BARE


@pytest.mark.parametrize("language", [*read_languages()])
def test_a_word_stays_uninflected_in_each_template(language: str) -> None:
    templates = templates_of(language)
    assert len({*templates}) == 5
    joined = {"zh", "ja"}  # written without spaces
    for template in templates:
        assert template.count("{}") == 1
        before, after = template.split("{}")
        if language not in joined:  # nothing is attached to the word: no ending, no elided article
            assert re.fullmatch(r"(.*\s|¿|)", before), template
            assert re.fullmatch(r"([\s.,:;?؟].*|)", after), template
            matcher = WordMatcher(Vocabulary(["xyz"]))
            assert (matcher.match_rows([template.replace("{}", "xyz")])[0] >= 0).sum() == 1


@pytest.mark.parametrize("language", [code for code, entry in read_languages().items() if entry.words])
def test_the_frequent_words_of_a_language_tell_it_from_all_others(language: str) -> None:
    assert guess_language([" ".join(read_languages()[language].words)]) == language


def _settings(corpus, **given) -> Distillation:
    return split_arguments(Distillation, Arguments.bind(inspect.signature(_parameters), corpus, **given))[1]


def test_the_templates_are_those_of_the_language_of_the_text() -> None:
    german = Corpus.from_texts([TEXTS["de"]])
    settings = _settings(german)
    assert settings.language == "de"
    (auto,) = settings.learners(6).values()
    assert auto.templates == templates_of("de")[1:]
    assert _settings(german, language="fr").language == "fr"
    (bare,) = _settings(german, language="none").learners(6).values()
    assert bare.templates == ("{}",)
    (given,) = _settings(german, method="decontextualized:templates=ein {}").learners(6).values()
    assert given.templates == ("ein {}",)
    (english,) = _settings(Corpus.from_texts([TEXTS["en"]])).learners(6).values()
    assert english == Auto()
    with pytest.raises(UsageError):
        _settings(german, language="klingon")


def test_the_vectors_of_a_german_text_are_made_with_german_templates(tmp_path) -> None:
    teacher = tmp_path / "teacher"
    write_tiny_model(teacher, "bert")
    text = tmp_path / "de.txt"
    text.write_text("\n".join([TEXTS["de"]] * 6), "utf-8")
    flags = [str(text), "--teacher", str(teacher), "--quiet", "--min-count", "1"]
    assert main(["distill", *flags, "--out", str(tmp_path / "de")]) == 0
    vectors = stillvec.load(tmp_path / "de")
    assert vectors.provenance["settings"]["templates"] == [*templates_of("de")[1:]]
    assert vectors.provenance["distillation"]["language"] == "de"
    assert "--language de" in (tmp_path / "de" / "README.md").read_text("utf-8")
