"""Dependency parses of plain text by a spaCy pipeline: made once, kept as CoNLL-U."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from stillvec.corpus.parses import Parse
from stillvec.errors import UsageError
from stillvec.files import atomic_file, digest

_UNNEEDED = ("ner", "tagger", "morphologizer", "lemmatizer", "trainable_lemmatizer", "attribute_ruler", "textcat")
_TOLD = 500  # parses between signs of life


@dataclass(frozen=True)
class Parser:
    """A spaCy pipeline that is loaded."""

    name: str
    pipeline: Any

    @cached_property
    def described(self) -> dict[str, str]:
        """What tells it from others: two of the same name, trained anew, have another digest."""
        meta = self.pipeline.meta
        held = digest(iter([self.pipeline.to_bytes(exclude=["vocab"])]))
        return {"name": f"{meta['lang']}_{meta['name']}", "version": meta["version"], "digest": held}

    def parses(self, sentences: Iterable[str]) -> Iterator[Parse]:
        """A parse a sentence of spaCy's, which may part a sentence of ours; spaces are no words."""
        for document in self.pipeline.pipe(sentences):
            for sentence in document.sents:
                tokens = [token for token in sentence if not token.is_space]
                place = {token.i: number for number, token in enumerate(tokens)}
                yield Parse(
                    tuple(token.text for token in tokens),
                    tuple(-1 if token.head.i == token.i else place.get(token.head.i, -1) for token in tokens),
                    tuple(token.dep_ for token in tokens),
                )


def load_parser(name: str) -> Parser:
    """The pipeline, if it is there and parses: installed, or a folder that one was saved in."""
    if importlib.util.find_spec("spacy") is None:
        raise UsageError(
            "Parsing needs the package 'spacy', which is not installed; install it, or give CoNLL-U files."
        )
    spacy: Any = importlib.import_module("spacy")
    try:
        pipeline = spacy.load(name, exclude=_UNNEEDED)
    except (OSError, ValueError, ImportError) as error:
        if Path(name).exists() or len(Path(name).parts) > 1:
            why = str(error).partition("\n")[0]
            raise UsageError(f"{name} holds no spaCy pipeline that can be loaded here: {why}") from None
        raise UsageError(
            f"There is no spaCy pipeline {name!r}; install it (python -m spacy download {name}), "
            "or give the folder of one."
        ) from None
    if "parser" not in pipeline.pipe_names:
        raise UsageError(
            f"The spaCy pipeline {name!r} has no parser, only {', '.join(pipeline.pipe_names) or 'nothing'}."
        )
    return Parser(name, pipeline)


def write_parses(sentences: Iterable[str], parser: Parser, path: Path) -> Generator[int, None, None]:
    """CoNLL-U of forms, heads and relations; yields the number of characters read."""
    passed = 0

    def counted() -> Iterator[str]:
        nonlocal passed
        for sentence in sentences:
            passed += len(sentence)
            yield sentence

    with atomic_file(path) as part, open(part, "w", encoding="utf-8", errors="replace", newline="\n") as stream:
        for number, parse in enumerate(parser.parses(counted()), 1):
            stream.writelines(
                f"{place}\t{form}\t_\t_\t_\t_\t{head + 1}\t{relation or '_'}\t_\t_\n"
                for place, (form, head, relation) in enumerate(
                    zip(parse.forms, parse.heads, parse.relations, strict=True), 1
                )
            )
            stream.write("\n")
            if number % _TOLD == 0:
                yield passed
