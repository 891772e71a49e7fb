"""The form in which a vocabulary writes a word: NFC, straight apostrophes, lower case if requested."""

import re
from functools import lru_cache
from typing import Any

_FINAL_SIGMA = r"(?<=\p{L}|\p{L}\p{M})σ(?![\p{L}\p{M}])"  # lower-casing letter by letter turns ΟΔΟΣ into οδοσ
_SURROGATE = re.compile("[\ud800-\udfff]")


def replace_surrogates(text: str) -> str:
    """A text without lone surrogates (`\\ud800` in JSON, an argument that is not UTF-8), which `tokenizers` refuses.

    Positions stay.
    """
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def fold(word: str, lowercase: bool) -> str:
    """A word or term as a vocabulary writes it, stripped and with single spaces."""
    plain = " ".join(word.split())
    if plain.isascii():
        return plain.lower() if lowercase else plain
    try:
        return str(normalizer(lowercase).normalize_str(plain))
    except UnicodeEncodeError:  # a lone surrogate: an argument that is not UTF-8, which is no word of a text
        return plain


@lru_cache(maxsize=2)
def normalizer(lowercase: bool) -> Any:
    """The same for whole texts, as a normalizer of a `tokenizers.Tokenizer`, which keeps the offsets."""
    from tokenizers import Regex
    from tokenizers.normalizers import NFC, Lowercase, Replace, Sequence

    steps = [Lowercase(), Replace(Regex(_FINAL_SIGMA), "ς")] if lowercase else []
    return Sequence([NFC(), Replace("’", "'"), *steps])
