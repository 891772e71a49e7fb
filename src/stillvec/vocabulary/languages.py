"""The language of a text, by its script or its frequent words, and templates for words of this language."""

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from stillvec.errors import UsageError
from stillvec.vocabulary.folding import fold
from stillvec.vocabulary.segmenters import SCRIPTS
from stillvec.vocabulary.word_counter import WordCounter

ENGLISH = "en"
NO_LANGUAGE = "none"  # one that is not in the table
_MIN_WORDS = 200  # of a text whose language is said to be none of the table
_MIN_SHARE = 0.08  # of the words, which are the frequent ones of the language
_MIN_LEAD = 1.1  # over the next language, or the text may be in both
_SCRIPTS = {"ja": SCRIPTS["kana"], "zh": SCRIPTS["Han"], "th": SCRIPTS["Thai"], "ko": "\uac00-\ud7a3"}


class Language(NamedTuple):
    """A language of the table."""

    words: frozenset[str]  # frequent ones; none where the script decides
    templates: tuple[str, ...]  # with {} for a word: a question, its meaning, the word, synonyms, a topic


def templates_of(language: str) -> tuple[str, ...]:
    """The templates of a language; of one without a table the bare word."""
    return read_languages()[language].templates if language != NO_LANGUAGE else ("{}",)


def check_language(language: str) -> None:
    """Raise an error for a language that is not in the table."""
    if language != NO_LANGUAGE and language not in read_languages():
        raise UsageError.unknown("language", language, (*read_languages(), NO_LANGUAGE))


def guess_language(texts: Iterable[str]) -> str:
    """The language of texts; English if they are too short to tell, `NO_LANGUAGE` if they are in none of the table."""
    counter = WordCounter()
    letters: Counter[str] = Counter()
    for text in texts:
        counter.add([text])
        letters.update({code: len(re.findall(f"[{script}]", text)) for code, script in _SCRIPTS.items()})
        letters["all"] += sum(map(str.isalpha, text))
        letters["ASCII"] += sum(char.isalpha() for char in text if char.isascii())
    for code in _SCRIPTS:  # Japanese before Chinese, since both have Han
        if letters[code] > (0.15 if code == "ja" else 0.5) * max(letters["all"], 1):
            return code
    counts = counter.counts()
    n_words = sum(counts.values())
    known = {code: sum(counts.get(word, 0) for word in language.words) for code, language in read_languages().items()}
    best, second = sorted(known, key=lambda code: -known[code])[:2]
    if known[best] >= _MIN_SHARE * n_words and known[best] >= _MIN_LEAD * known[second] and n_words:
        return best
    may_be_english = n_words < _MIN_WORDS and letters["ASCII"] >= 0.9 * letters["all"]
    return ENGLISH if may_be_english else NO_LANGUAGE


@cache
def read_languages() -> Mapping[str, Language]:
    """The table, by code."""
    table = tomllib.loads(files(__package__).joinpath("languages.toml").read_text("utf-8"))
    return {
        code: Language(frozenset(fold(word, True) for word in entry["words"].split()), tuple(entry["templates"]))
        for code, entry in table.items()
    }
