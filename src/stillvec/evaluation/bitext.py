"""Bitext mining: find the translation of a sentence among the sentences of the other language (Artetxe & Schwenk 2019).

Files: `bitext/NAME-XX-YY.tsv` with a sentence of XX, a tab and its translation in YY per line (Tatoeba). The answer is
the sentence of highest cosine; it is correct if its text is that of the translation. `accuracy` is the mean of
`accuracy-forward` (from XX to YY) and `accuracy-backward`; `accuracy-centred` is the same after the mean vector of each
language was subtracted, that of the tested sentences, whose pairing it does not use. `accuracy-length` is a control
that answers the sentence of most similar length. `languages` is how often logistic regression tells from a vector that
it has not seen in which language the sentence is, `languages-centred` after centring (50: not at all). `known-words` is
the share of known words of a pair.

The representation is one multilingual space, or vectors of both languages whose words are prefixed with the language
(`en:dog`, `de:hund`), as written by `stillvec combine --method align:tags=en,de`. A prefix is the code in the file name
or its two-letter form. A pair is covered if both of its sentences have a known word. Interval: percentile bootstrap
over pairs for `accuracy`, Wilson for one direction.
"""

import re
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import DatasetError
from stillvec.evaluation.intervals import Mask
from stillvec.evaluation.supervised import quotient, share
from stillvec.evaluation.tasks import Answers, Items, TextTask
from stillvec.evaluation.text_baselines import LengthEncoder
from stillvec.heads.dataset_files import lines
from stillvec.heads.linear_probe import tell_groups
from stillvec.heads.lookup import Lookup
from stillvec.heads.sequence_batches import Representation
from stillvec.numerics import unit_rows
from stillvec.vectors import WordVectors

_LANGUAGES = re.compile(r"(?:.*[-_])?([^\W\d_]{2,3})[-_]([^\W\d_]{2,3})(?:\.|$)")
_SHORT = {  # ISO 639-3 → 639-1, where the short code is not the start of the long one
    "ces": "cs",
    "cmn": "zh",
    "ell": "el",
    "gle": "ga",
    "glg": "gl",
    "ind": "id",
    "isl": "is",
    "jpn": "ja",
    "kat": "ka",
    "kaz": "kk",
    "lav": "lv",
    "lit": "lt",
    "mkd": "mk",
    "msa": "ms",
    "nld": "nl",
    "pol": "pl",
    "por": "pt",
    "slk": "sk",
    "slv": "sl",
    "spa": "es",
    "swe": "sv",
    "tur": "tr",
    "cym": "cy",
    "est": "et",
}
_QUICK = 300  # pairs
_BLOCK = 1 << 10  # sentences compared with all others at once


@dataclass(frozen=True)
class BitextItems(Items):
    languages: tuple[str, ...] = ()  # of both sides, as in the file name


@dataclass(frozen=True)
class Bitext(TextTask):
    files: ClassVar[tuple[str, ...]] = ("bitext", ".tsv")
    controls: ClassVar[tuple[str, ...]] = ("-words", "-length", "languages", "languages-centred")

    def read(self, path: Path) -> Items:
        pairs: list[tuple[str, str]] = []
        for number, line in lines(path):
            fields = [field.strip() for field in line.split("\t")]
            if line.strip() and (len(fields) != 2 or not all(fields)):
                what = "a sentence, a tab and its translation"
                raise DatasetError.expected(what, repr(line[:40]), path=path, line=number)
            if line.strip():
                pairs.append((fields[0], fields[1]))
        if len(pairs) < 2:
            raise DatasetError.expected("two pairs of sentences or more", len(pairs), path=path, line=1)
        pairs = pairs[:_QUICK] if self.quick else pairs
        languages = _LANGUAGES.match(path.name)
        return BitextItems(tuple(pairs), np.ones(len(pairs)), (), languages.groups() if languages else ())

    def answer_steps(self, lookup: Representation, items: Items) -> Generator[float, None, Answers]:
        assert isinstance(items, BitextItems)
        sides = [[pair[side] for pair in items.texts] for side in (0, 1)]
        readers = _split_languages(lookup, items.languages)
        rows, known = [], []
        for side, (reader, texts) in enumerate(zip(readers, sides, strict=True)):
            rows.append((yield from share(side, 2, reader.encode_texts_steps(texts))))
            known.append(reader.count_words(texts))
        seen, n_words = [counts[:, 0] > 0 for counts in known], known[0] + known[1]
        centred = [
            side - side[mask].mean(axis=0) if mask.any() else side for side, mask in zip(rows, seen, strict=True)
        ]
        lengths = [LengthEncoder().encode(texts) for texts in sides]
        forward, backward = _match(rows, sides)
        values: dict[str, NDArray[Any]] = {
            "accuracy": (forward.astype(np.float64) + backward) / 2,
            "accuracy-forward": forward,
            "accuracy-backward": backward,
            "accuracy-centred": np.mean(_match(centred, sides), axis=0),
            "accuracy-length": np.mean(_match(lengths, sides), axis=0),
            **{f"languages{name}": _tell(part, seen) for name, part in (("", rows), ("-centred", centred))},
            "known-words": np.nan_to_num(quotient(n_words[:, 0], n_words[:, 1])),
        }
        return Answers(seen[0] & seen[1], values)


def _tell(rows: Sequence[NDArray[np.float32]], seen: Sequence[Mask]) -> NDArray[np.float64]:
    """The accuracy of a probe of the language of sentences, once for each pair (n,)."""
    both = seen[0] & seen[1]
    value = tell_groups([unit_rows(side[both]) for side in rows]) if both.sum() > 1 else np.nan
    return np.full(len(both), value)


def _match(rows: Sequence[NDArray[np.float32]], sides: Sequence[Sequence[str]]) -> tuple[Mask, Mask]:
    """Whether each sentence finds its translation, from the first to the second language and back (n,)."""
    units = [unit_rows(side) for side in rows]
    correct = []
    for asked, other in ((0, 1), (1, 0)):
        best = [
            (units[asked][at : at + _BLOCK] @ units[other].T).argmax(axis=1) for at in range(0, len(units[0]), _BLOCK)
        ]
        texts = sides[other]
        correct.append(
            np.array([texts[found] == text for found, text in zip(np.concatenate(best), texts, strict=True)])
        )
    return correct[0], correct[1]


def _split_languages(lookup: Representation, languages: Sequence[str]) -> list[Representation]:
    """What reads each side: the words with the prefix of its language, or the same for both."""
    if not isinstance(lookup, Lookup) or len(languages) != 2:
        return [lookup, lookup]
    parts = [_select_language(lookup, language) for language in languages]
    return [lookup, lookup] if None in parts else [part for part in parts if part is not None]


def _select_language(lookup: Lookup, language: str) -> Lookup | None:
    for tag in (f"{language}:", f"{_SHORT.get(language, language[:2])}:"):
        tagged = [word for word in lookup.vectors.words if word.startswith(tag) and word != tag]
        if tagged:
            words = lookup.vectors.subset(tagged)
            vocabulary = words.vocabulary.like([word.removeprefix(tag) for word in tagged])
            return Lookup(WordVectors(vocabulary, words.matrix), lookup.oov)
    return None
