"""The stem of an English word, by the Porter2 algorithm (Porter 2001, "Snowball: a language for stemming algorithms").

Suffixes are removed in steps, each in a region of the word: R1 is what follows the first non-vowel after a vowel, R2
the same within R1. `y` is a consonant, written Y, at the beginning and after a vowel.
"""

import re
import tomllib
from functools import lru_cache
from importlib.resources import files

_VOWELS = "aeiouy"
_TABLES = tomllib.loads(files(__package__).joinpath("english_stems.toml").read_text("utf-8"))
_WHOLE: dict[str, str] = {**_TABLES["stems"], **{word: word for word in _TABLES["unchanged"].split()}}
_BASES: dict[str, str] = {form: base for base, forms in _TABLES["irregular"].items() for form in forms.split()}
_AFTER_PLURAL = frozenset(_TABLES["unchanged_singulars"].split())
_LONG_STARTS = ("gener", "commun", "arsen", "past", "univers", "later", "emerg", "organ", "inter")  # R1 begins after
_DOUBLES = ("bb", "dd", "ff", "gg", "mm", "nn", "pp", "rr", "tt")
_STEP_4 = (
    *("al", "ance", "ence", "er", "ic", "able", "ible", "ant", "ement", "ment", "ent", "ism", "ate", "iti", "ous"),
    *("ive", "ize", "ion"),
)
_LI_ENDINGS = "cdeghkmnrt"
_SHORT_SYLLABLE = re.compile(r"(?:[^aeiouy][aeiouy][^aeiouywxY]|^[aeiouy][^aeiouy]|^past)$")
_CONSONANT_Y = re.compile(r"(?:^|(?<=[aeiouy]))y")
_REGION = re.compile(r".*?[aeiouy][^aeiouy]")


@lru_cache(maxsize=1 << 16)
def stem_english(word: str) -> str:
    """The stem of a word in lower case."""
    if len(word) <= 2 or word in _WHOLE:
        return _WHOLE.get(word, word)
    word = _CONSONANT_Y.sub("Y", word.removeprefix("'"))
    first = _find_region(word)
    second = _skip_region(word, first)
    word = _remove_plural(word)
    if word in _AFTER_PLURAL:
        return word
    word = _remove_ending(word, first)
    if len(word) > 2 and word[-1] in "yY" and word[-2] not in _VOWELS:
        word = word[:-1] + "i"
    word = _replace(word, first, second, _TABLES["suffixes_2"])
    word = _replace(word, first, second, _TABLES["suffixes_3"])
    word = _remove_suffix(word, second)
    return _remove_last(word, first, second).lower()


def find_base(word: str) -> str:
    """The word to which an irregular form belongs ("mice": "mouse"); other words unchanged."""
    return _BASES.get(word, word)


def _find_region(word: str) -> int:
    """Where R1 begins."""
    start = next((start for start in _LONG_STARTS if word.startswith(start)), "")
    return len(start) or _skip_region(word, 0)


def _skip_region(word: str, begin: int) -> int:
    found = _REGION.match(word, begin)
    return found.end() if found else len(word)


def _has_vowel(text: str) -> bool:
    return any(char in _VOWELS for char in text)


def _remove_plural(word: str) -> str:
    """Steps 0 and 1a: the possessive, then the plural."""
    word = next((word.removesuffix(end) for end in ("'s'", "'s", "'") if word.endswith(end)), word)
    if word.endswith("sses"):
        return word[:-2]
    if word.endswith(("ied", "ies")):
        return word[:-2] if len(word) > 4 else word[:-1]
    if word.endswith("s") and not word.endswith(("us", "ss")) and _has_vowel(word[:-2]):
        return word[:-1]
    return word


def _remove_ending(word: str, first: int) -> str:
    """Step 1b: -ed and -ing."""
    end = next((end for end in ("eedly", "ingly", "edly", "eed", "ing", "ed") if word.endswith(end)), "")
    rest = word[: len(word) - len(end)]
    if end in ("eed", "eedly"):
        return rest + "ee" if len(rest) >= first else word
    if end == "ing" and len(rest) == 2 and rest[1] == "y" and rest[0] not in _VOWELS:
        return rest[0] + "ie"  # dying
    if not end or not _has_vowel(rest):
        return word
    if rest.endswith(("at", "bl", "iz")):
        return rest + "e"
    if rest.endswith(_DOUBLES):
        return rest if len(rest) == 3 and rest[0] in "aeo" else rest[:-1]
    return rest + "e" if len(rest) <= first and _SHORT_SYLLABLE.search(rest) else rest


def _replace(word: str, first: int, second: int, suffixes: dict[str, str]) -> str:
    """Steps 2 and 3: replace the longest suffix, if it is in R1."""
    end = max((end for end in suffixes if word.endswith(end)), key=len, default="")
    rest = word[: len(word) - len(end)]
    if not end or len(rest) < first or (end == "ative" and len(rest) < second):
        return word
    if (end == "ogi" and not rest.endswith("l")) or (end == "li" and rest[-1:] not in [*_LI_ENDINGS]):
        return word
    return rest + suffixes[end]


def _remove_suffix(word: str, second: int) -> str:
    """Step 4: remove the longest suffix, if it is in R2."""
    end = max((end for end in _STEP_4 if word.endswith(end)), key=len, default="")
    rest = word[: len(word) - len(end)]
    if not end or len(rest) < second or (end == "ion" and rest[-1:] not in ("s", "t")):
        return word
    return rest


def _remove_last(word: str, first: int, second: int) -> str:
    """Step 5: a last -e or the second of -ll."""
    rest = word[:-1]
    if word.endswith("e") and (len(rest) >= second or (len(rest) >= first and not _SHORT_SYLLABLE.search(rest))):
        return rest
    return rest if word.endswith("ll") and len(rest) >= second else word
