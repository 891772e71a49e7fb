"""Texts divided into words and punctuation, as taggers and heads of spans read them."""

import re

TOKEN = re.compile(r"\w+(?:['’-]\w+)*|[^\w\s]")


def split_tokens(text: str) -> list[str]:
    """The words and punctuation of a text."""
    return TOKEN.findall(text)
