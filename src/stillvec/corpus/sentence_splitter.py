"""Paragraphs to sentences: a regular expression finds candidates, small tables decide.

A sentence ends at a stop (with closing quotes and brackets) before white space, but not before a lower-case word, after
a title or an initial, in a numbering, or where a quotation continues with "he said". The stops of scripts without
capitals or spaces (。 । ؟ ።) always end a sentence.
"""

import re
import tomllib
from importlib.resources import files

_CLOSING = r"\"'”’»›)\]}」』】）〉》"
_OPENING = r"\"'“‘„«‹(\[{「『【（〈《¿¡*_—–\-"
_STOPS, _WIDE, _PLAIN = ".!?…", "。！？｡", "।॥؟۔።፧։។။᙮꓿"
_CANDIDATE = re.compile(  # begins with a character class, which `re` searches many times faster
    rf"[{_STOPS}{_WIDE}{_PLAIN}](?:"
    rf"(?<=[{_STOPS}])(?<![{_STOPS}]{{2}})[{_STOPS}]*(?:[{_CLOSING}]|\[\d{{1,3}}\])*(?=\s)"
    rf"|(?<=[{_WIDE}])(?:[{_WIDE}…]|[{_CLOSING}])*"
    rf"|(?<=[{_PLAIN}])[।॥؟۔።!?.]*[{_CLOSING}]*)"
)
_NEXT = re.compile(rf"\s*[{_OPENING}\s]*([^\W\d_]?)(\d?)([\w'’-]*)")
_SPEECH = re.compile(
    r"\s+(?:[A-Z][\w'’.]*\s+){1,2}(?:said|asked|replied|answered|cried|exclaimed|shouted|whispered|murmured|"
    r"muttered|added|continued|returned|remarked|observed|thought|repeated|began|inquired|enquired)\b"
)
_TABLES = tomllib.loads(files("stillvec.corpus").joinpath("sentence_words.toml").read_text("utf-8"))
_TITLES, _GOES_ON, _BEFORE_NUMBERS, _MAY_END, _MAY_END_CAPITAL, _STARTERS, _DATED = (
    frozenset(words.split()) for words in _TABLES.values()
)
_MAX_ABBREVIATION = 40  # characters
_BRACKETS = "\"'“‘„«‹([{—–-"
_ROMAN = re.compile(r"[IVXLCDM]{2,}|[B-HJ-Z]")  # not the words I and A
_INITIALS = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]$|[A-ZÀ-ÖØ-ÞА-ЯΑ-Ω]$")  # U.S, a.m; J
_NUMBERING = re.compile(r"(?:\d{1,3}|[ivxIVX]{1,4}|[a-zA-Z])(?:\.\d{1,3})*$")


def split_sentences(paragraph: str) -> list[str]:
    """The sentences of a paragraph without surrounding white space."""
    if _CANDIDATE.search(paragraph) is None:
        sentence = paragraph.strip()
        return [sentence] if sentence else []
    ends = sentence_ends(paragraph)
    return [paragraph[start:end].strip() for start, end in zip([0, *ends], ends, strict=False)]


def sentence_ends(paragraph: str) -> list[int]:
    """The character offset of the end of each sentence of a paragraph."""
    ends: list[int] = []
    start = 0
    for candidate in _CANDIDATE.finditer(paragraph):
        if _ends(paragraph, start, candidate):
            if not paragraph[start : candidate.end()].isspace():
                ends.append(candidate.end())
            start = candidate.end()
    if paragraph[start:].strip():
        ends.append(len(paragraph))
    return ends


def _ends(text: str, start: int, candidate: re.Match[str]) -> bool:
    """Whether a sentence that began at `start` ends with this stop."""
    stop = candidate[0]
    if stop[0] not in ".!?…":
        return True
    following = _NEXT.match(text, candidate.end())
    letter = following[1] if following else ""
    if letter.islower() and (stop[-1] not in ".!?" or stop.startswith("..") or not _starts_in_lower_case(text, start)):
        return False
    if stop[-1] in "\"'”’»" and letter and _SPEECH.match(text, candidate.end()):
        return False
    if stop[0] != "." or stop.startswith(".."):
        return True
    return following is None or _full_stop_ends(text, start, candidate.start(), following)


def _starts_in_lower_case(text: str, start: int) -> bool:
    """Whether a sentence starts in lower case, as the next one then may."""
    first = _NEXT.match(text, start)
    return first is not None and first[1].islower()


def _word_before(text: str, start: int, end: int) -> str:
    """The characters between white space and a stop, without opening brackets and quotes."""
    window = text[max(start, end - _MAX_ABBREVIATION) : end]
    return window[max(window.rfind(space) for space in " \xa0\t\n") + 1 :].lstrip(_BRACKETS)


def _full_stop_ends(text: str, start: int, end: int, following: re.Match[str]) -> bool:
    """Whether the full stop at `end` ends a sentence, or belongs to an abbreviation, an initial or a numbering."""
    word = _word_before(text, start, end)
    lower = word.lower()
    after = following[1] + following[2] + following[3]
    if len(word) > 6 and "." not in word:
        return True
    capital = word[:1].isupper()
    if lower in _GOES_ON or (capital and lower in _TITLES):
        return False
    if lower in _BEFORE_NUMBERS and (following[2] or _ROMAN.fullmatch(after)):
        return False
    if lower.isdecimal() and len(lower) <= 2 and after.lower() in _DATED:
        return False
    if end - start <= 8 and _NUMBERING.match(text[start:end].strip()):
        return False
    if lower in _MAY_END or (capital and lower in _MAY_END_CAPITAL) or _INITIALS.match(word):
        return not following[2] and after.lower() in _STARTERS
    return True
