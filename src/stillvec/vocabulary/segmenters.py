"""Words of scripts that do not separate them by spaces: Chinese, Japanese, Thai, Khmer, Lao and Burmese.

A segmenter, which is a package of its own, divides runs of its scripts; a run is also divided from what stands before
and after it. Everything else in a text is divided as always (`word_matcher.py`), so that a text may mix scripts. Words
that a user gives (`include_words`) are terms, which stay whole as "new york" does.

What a word is where this module divides nothing: in Korean what stands between spaces (an eojeol, with its particles),
in Vietnamese and Tibetan a syllable; words of several syllables are multi-word terms (`include_words`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from unicodedata import category

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import UsageError
from stillvec.registry import Registry, require, require_all

SPACES = "spaces"  # no segmenter
AUTO = "auto"  # chosen by the script of the text
BREAK = "\u200b"  # zero-width space, which no word contains
_LEAST_SHARE = 0.05  # of the letters, for a script to need its segmenter
_LEAST_KANA = 0.2  # of Han, for a text to be Japanese
_CACHED_RUNS = 1 << 16
_MAX_RUN = 5000  # characters that are segmented at once

SCRIPTS = {  # the letters and marks of each script, and its digits, as a class of a regular expression
    "Han": "\u3005-\u3007\u3021-\u3029\u3038-\u303b\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af",
    "kana": "\u3041-\u3096\u3099\u309a\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f",
    "Thai": "\u0e01-\u0e3a\u0e40-\u0e4e\u0e50-\u0e59",
    "Lao": "\u0e81-\u0edf",
    "Khmer": "\u1780-\u17d3\u17d7\u17dc\u17dd\u17e0-\u17e9",
    "Myanmar": "\u1000-\u1049\u1050-\u109f\ua9e0-\ua9fe\uaa60-\uaa7f",
}

Divide = Callable[[str], Iterable[str]]
_DivideRun = Callable[[str], tuple[str, ...]]
_Runs = list[tuple[re.Pattern[str], _DivideRun]]


@dataclass(frozen=True)
class Segmenter:
    """How the runs of some scripts are divided; `load` imports the package and returns the function that divides."""

    language: str  # for messages
    scripts: tuple[str, ...]  # keys of SCRIPTS
    packages: tuple[str, ...]  # to import
    extra: str
    load: Callable[[], Divide]


def _load_jieba() -> Divide:
    cut = require("rjieba", "chinese", "Segmenting Chinese").cut
    return lambda run: cut(run)


def _load_fugashi() -> Divide:
    fugashi = require("fugashi", "japanese", "Segmenting Japanese")
    folder = require("unidic_lite", "japanese", "Segmenting Japanese").DICDIR
    tagger = fugashi.GenericTagger(f'-r /dev/null -d "{folder}" -Owakati')
    return lambda run: [node.surface for node in tagger.parseToNodeList(run)]


def _load_pythainlp() -> Divide:
    tokenize = require("pythainlp.tokenize", "thai", "Segmenting Thai").word_tokenize
    return lambda run: tokenize(run, engine="newmm", join_broken_num=False)


def _load_icu() -> Divide:
    breaker = require("icu4py.breakers", "icu", "Segmenting by ICU").WordBreaker
    return lambda run: [run[start:end] for start, end in breaker(run, "en").segments()]


JIEBA = Segmenter("Chinese", ("Han",), ("rjieba",), "chinese", _load_jieba)
FUGASHI = Segmenter("Japanese", ("Han", "kana"), ("fugashi", "unidic_lite"), "japanese", _load_fugashi)
PYTHAINLP = Segmenter("Thai", ("Thai",), ("pythainlp",), "thai", _load_pythainlp)
ICU = Segmenter("Khmer, Lao and Burmese", tuple(SCRIPTS), ("icu4py",), "icu", _load_icu)

SEGMENTERS: Registry[Segmenter] = Registry(
    "segmenter",
    {
        "jieba": "stillvec.vocabulary.segmenters:JIEBA",
        "fugashi": "stillvec.vocabulary.segmenters:FUGASHI",
        "pythainlp": "stillvec.vocabulary.segmenters:PYTHAINLP",
        "icu": "stillvec.vocabulary.segmenters:ICU",
    },
)


def split_names(segmenter: str) -> list[str]:
    """The names in `NAME[,NAME...]`; none for spaces. Refuses unknown ones."""
    names = [name.strip() for name in segmenter.split(",")]
    if names == [SPACES]:
        return []
    if SPACES in names:
        raise UsageError.expected(f"{SPACES!r} alone, or segmenters", repr(segmenter), where="segmenter")
    for name in names:
        if name not in SEGMENTERS:
            raise UsageError.unknown("segmenter", name, (SPACES, *SEGMENTERS))
    return names


def join_segmenters(*segmenters: str) -> str:
    """The segmenters of several vocabularies, each once."""
    return ",".join(dict.fromkeys(name for segmenter in segmenters for name in split_names(segmenter))) or SPACES


def require_segmenters(segmenter: str) -> None:
    """Check before the work that the packages of segmenters are installed."""
    for name in split_names(segmenter):
        part = SEGMENTERS[name]
        require_all(dict.fromkeys(part.packages, part.extra), f"Segmenting words by {name}")


def choose_segmenter(texts: Iterable[str]) -> str:
    """The segmenters that texts need, by their scripts; a script below a twentieth of the letters needs none."""
    counts = dict.fromkeys(SCRIPTS, 0)
    patterns = {script: re.compile(f"[{letters}]+") for script, letters in SCRIPTS.items()}
    n_letters = 0
    for text in texts:
        n_letters += sum(map(str.isalpha, text))
        for script, pattern in patterns.items():
            counts[script] += sum(map(len, pattern.findall(text)))
    needed = [script for script, count in counts.items() if count > _LEAST_SHARE * n_letters]
    if "kana" in needed and counts["kana"] > _LEAST_KANA * counts["Han"]:  # less than that are quotations
        needed = ["kana", *(script for script in needed if script not in ("Han", "kana"))]
    chosen = {"Han": "jieba", "kana": "fugashi", "Thai": "pythainlp"}
    return join_segmenters(*(chosen.get(script, "icu") for script in needed)) or SPACES


def describe_segmenter(segmenter: str) -> str:
    """For a message: how words are found."""
    names = [f"{name} ({SEGMENTERS[name].language})" for name in split_names(segmenter)]
    return f"segmented by {' and '.join(names)}" if names else "separated by spaces"


class WordBreaker:
    """Inserts breaks between the words of runs; of several segmenters the first with the script divides a run.

    A text with kana is Japanese: in it, a segmenter of kana comes first, and divides Han too.
    """

    def __init__(self, segmenter: str, terms: Iterable[str] = ()) -> None:
        self.names = split_names(segmenter)
        self.terms = tuple(terms)
        scripts = {script for name in self.names for script in SEGMENTERS[name].scripts}
        self._any = re.compile(f"[{''.join(SCRIPTS[script] for script in scripts)}]") if scripts else None
        self._kana = re.compile(f"[{SCRIPTS['kana']}]") if "kana" in scripts else None
        self._runs: _Runs = []
        self._japanese: _Runs = []
        longest_first = sorted(self.terms, key=lambda term: (-len(term), term))
        self._terms = re.compile("|".join(map(re.escape, longest_first)), re.IGNORECASE) if longest_first else None

    def __reduce__(self) -> tuple[Any, ...]:
        return WordBreaker, (",".join(self.names) or SPACES, self.terms)  # other processes load the packages themselves

    def load(self) -> None:
        """Import the packages, whose dictionaries processes then share; otherwise when the first run is found."""
        if self.names and not self._runs:
            parts = [SEGMENTERS[name] for name in self.names]
            loaded = [(part.scripts, lru_cache(_CACHED_RUNS)(_tuple_of(part.load()))) for part in parts]
            self._japanese = _find_runs(sorted(loaded, key=lambda part: "kana" not in part[0]))
            self._runs = _find_runs(loaded)

    def insert(self, text: str) -> tuple[str, NDArray[np.int64] | None]:
        """The text with its breaks, and their positions in it; None if there are none."""
        if self._any is None or not self._any.search(text):
            return text, None
        self.load()
        is_japanese = self._kana is not None and self._kana.search(text) is not None
        cuts: set[int] = set()
        for pattern, divide in self._japanese if is_japanese else self._runs:
            for match in pattern.finditer(text):
                cuts.update(match.start() + cut for cut in _cut(match[0], divide))
        for term in () if self._terms is None else self._terms.finditer(text):
            cuts.difference_update(range(term.start() + 1, term.end()))
            cuts.update(term.span())
        return _insert(text, sorted(cut for cut in cuts if _is_boundary(text, cut)))

    def insert_all(self, texts: Sequence[str]) -> tuple[list[str], list[NDArray[np.int64] | None]]:
        """The same for several texts."""
        pairs = [self.insert(text) for text in texts]
        return [text for text, _ in pairs], [breaks for _, breaks in pairs]

    def select_whole(self, words: Iterable[str]) -> list[str]:
        """The words that are not divided."""
        return [word for word in words if self.insert(word)[1] is None]


def select_terms(segmenter: str, words: Iterable[str]) -> tuple[str, ...]:
    """The words that a segmenter divides, in alphabetical order: what to keep whole of the words that a user gives."""
    breaker = WordBreaker(segmenter)
    return tuple(sorted({word for word in words if breaker.insert(word)[1] is not None}))


def _cut(run: str, divide: _DivideRun) -> set[int]:
    """The boundaries of the words of a run, its ends included."""
    cuts = {0, len(run)}
    for first in range(0, len(run), _MAX_RUN):
        at = first
        for part in divide(run[first : first + _MAX_RUN]):
            at = run.find(part, at) + len(part)
            cuts.add(at)
    return cuts


def _find_runs(loaded: Iterable[tuple[tuple[str, ...], _DivideRun]]) -> _Runs:
    """The pattern of the runs that each segmenter divides: of the scripts that none before it has."""
    runs, left = [], dict(SCRIPTS)
    for scripts, divide in loaded:
        if letters := "".join(left.pop(script) for script in scripts if script in left):
            runs.append((re.compile(f"[{letters}]+"), divide))
    return runs


def _tuple_of(divide: Divide) -> _DivideRun:
    return lambda run: tuple(part for part in divide(run) if part in run)


def _is_boundary(text: str, at: int) -> bool:
    """Whether two words can meet here: not at the ends of the text, nor before a mark."""
    return 0 < at < len(text) and category(text[at])[0] != "M"


def _insert(text: str, cuts: Sequence[int]) -> tuple[str, NDArray[np.int64] | None]:
    if not cuts:
        return text, None
    pieces = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    return BREAK.join(pieces), np.array(cuts, np.int64) + np.arange(len(cuts))


def to_original(offsets: NDArray[np.int32], breaks: NDArray[np.int64]) -> NDArray[Any]:
    """Offsets in a text with breaks as offsets in the text without them."""
    return (offsets - np.searchsorted(breaks, offsets)).astype(np.int32)
