"""Dependency parses of plain text by a spaCy pipeline, written as CoNLL-U."""

import importlib
import importlib.util
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from stillvec.corpus.conllu import Parse
from stillvec.errors import UsageError
from stillvec.files import digest
from stillvec.files.private_files import private_file

_UNNEEDED = ("ner", "tagger", "morphologizer", "lemmatizer", "trainable_lemmatizer", "attribute_ruler", "textcat")
_EVENT_EVERY = 500  # parses


@dataclass(frozen=True)
class Parser:
    """A loaded spaCy pipeline."""

    name: str
    pipeline: Any

    @cached_property
    def facts(self) -> dict[str, str]:
        """Its identity for manifests; the digest tells apart two trainings of the same name."""
        meta = self.pipeline.meta
        weights = digest(iter([self.pipeline.to_bytes(exclude=["vocab"])]))
        return {"name": f"{meta['lang']}_{meta['name']}", "version": meta["version"], "digest": weights}

    def parses(self, sentences: Iterable[str]) -> Iterator[Parse]:
        """One parse per sentence of spaCy's, which may split a sentence of ours; whitespace tokens are left out."""
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
    """Load a pipeline with a parser: an installed package, or a folder."""
    if importlib.util.find_spec("spacy") is None:
        raise UsageError("Parsing needs the package 'spacy'; install it or give CoNLL-U files.", code="missing-extra")
    spacy: Any = importlib.import_module("spacy")
    try:
        pipeline = spacy.load(name, exclude=_UNNEEDED)
    except (OSError, ValueError, ImportError) as error:
        if Path(name).exists() or len(Path(name).parts) > 1:
            reason = str(error).partition("\n")[0]
            raise UsageError(f"Cannot load a spaCy pipeline from {name}: {reason}", code="bad-pipeline") from None
        cure = f"install it (python -m spacy download {name}) or give a folder"
        raise UsageError(f"No spaCy pipeline {name!r} is installed; {cure}.", code="no-pipeline") from None
    if "parser" not in pipeline.pipe_names:
        components = ", ".join(pipeline.pipe_names) or "no components"
        raise UsageError.expected("a pipeline with a parser", components, where=f"spaCy pipeline {name!r}")
    return Parser(name, pipeline)


def write_parses(sentences: Iterable[str], parser: Parser, path: Path) -> Generator[int, None, None]:
    """Write CoNLL-U with forms, heads and relations; yields the number of characters read."""
    n_characters = 0

    def count(sentences: Iterable[str]) -> Iterator[str]:
        nonlocal n_characters
        for sentence in sentences:
            n_characters += len(sentence)
            yield sentence

    with private_file(path) as part, open(part, "w", encoding="utf-8", errors="replace", newline="\n") as stream:
        for number, parse in enumerate(parser.parses(count(sentences)), 1):
            columns = zip(parse.forms, parse.heads, parse.relations, strict=True)
            stream.writelines(
                f"{place}\t{form}\t_\t_\t_\t_\t{head + 1}\t{relation or '_'}\t_\t_\n"
                for place, (form, head, relation) in enumerate(columns, 1)
            )
            stream.write("\n")
            if number % _EVENT_EVERY == 0:
                yield n_characters
