"""Dependency parses of plain text, by a spaCy pipeline that is installed."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterable, Iterator
from typing import Any

from stillvec.corpus.parses import Parse
from stillvec.errors import CallError


def check_parser(name: str) -> Any:
    """The pipeline, if it is there and parses."""
    if importlib.util.find_spec("spacy") is None:
        raise CallError("Parsing needs the package 'spacy', which is not installed; install it, or give CoNLL-U files.")
    spacy: Any = importlib.import_module("spacy")
    try:
        pipeline = spacy.load(name)
    except OSError:
        raise CallError(f"There is no spaCy pipeline {name!r}; install it (python -m spacy download {name}).") from None
    if "parser" not in pipeline.pipe_names:
        raise CallError(
            f"The spaCy pipeline {name!r} has no parser, only {', '.join(pipeline.pipe_names) or 'nothing'}."
        )
    return pipeline


def made_parses(sentences: Iterable[str], name: str) -> Iterator[Parse]:
    """A parse a sentence of spaCy's, which may part a sentence of ours; spaces are no words."""
    for document in check_parser(name).pipe(sentences):
        for sentence in document.sents:
            tokens = [token for token in sentence if not token.is_space]
            place = {token.i: number for number, token in enumerate(tokens)}
            yield Parse(
                tuple(token.text for token in tokens),
                tuple(-1 if token.head.i == token.i else place.get(token.head.i, -1) for token in tokens),
                tuple(token.dep_ for token in tokens),
            )
