"""stillvec predict HEAD [TEXTS]: the labels of texts, by a head that `fit` wrote."""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from stillvec.cli.console import note, print_json
from stillvec.cli.terminal_text import escape_controls
from stillvec.errors import CorpusError, UsageError
from stillvec.files import inner_suffix, read_lines
from stillvec.heads.fitted_head import Explanation, Head
from stillvec.heads.head_folder import load_head

_FILE_ENDINGS = (".txt", ".tsv", ".csv", ".jsonl", ".text")
_BLOCK = 4096  # texts at once


def arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("head", metavar="HEAD", help="the folder of a head")
    texts = "texts, files with a text per line, or - (standard input, the default)"
    add("texts", nargs="*", metavar="TEXTS", help=texts)
    add("--explain", action="store_true", help="show which words, training texts or experts decided")
    add("--json", action="store_true", help="a JSON object per line, with all probabilities")


def run(options: argparse.Namespace) -> int:
    head = load_head(options.head)
    block: list[str] = []
    for text in _read_texts(options.texts or ["-"]):
        block.append(text)
        if len(block) == _BLOCK:
            _print_block(head, block, options)
            block = []
    if block:
        _print_block(head, block, options)
    return 0


def _read_texts(given: list[str]) -> Iterator[str]:
    for text in given:
        path = Path(text)
        if text == "-":
            yield from (line.rstrip("\r\n") for line in sys.stdin)
        elif "\0" not in text and len(text) < 4096 and path.is_file():
            yield from (line for _, line in read_lines(path, CorpusError))
        elif not any(map(str.isspace, text)) and inner_suffix(path) in _FILE_ENDINGS:
            raise UsageError.not_found(path, "a file with a text per line")
        else:
            yield text


def _print_block(head: Head, texts: list[str], options: argparse.Namespace) -> None:
    items: list[Any] = [_split_pair(text) for text in texts] if head.kind.unit == "pair" else [*texts]
    if head.kind.unit == "tokens":
        _print_tags(head, texts, options)
        return
    likely = head.predict_proba(items)
    said = head.predict(items)
    explanations = head.explain(items) if options.explain else [None] * len(texts)
    for text, label, row, why in zip(texts, said, likely, explanations, strict=True):
        if options.json:
            chances = {name: round(float(value), 6) for name, value in zip(head.labels, row, strict=True)}
            key = "labels" if head.multilabel else "label"
            given = [*label] if head.multilabel else label
            print_json({"text": text, key: given, "probabilities": chances} | _explain_json(why))
        else:
            shown = ",".join(label) if head.multilabel else label
            print(escape_controls(f"{shown}\t{row.max():.3f}\t{text}"))
            _print_why(why)


def _split_pair(text: str) -> tuple[str, str]:
    first, tab, second = text.partition("\t")
    if not tab:
        raise UsageError.expected("two texts separated by a tab", repr(text[:40]))
    return first, second


def _print_tags(head: Head, texts: list[str], options: argparse.Namespace) -> None:
    sentences = [head.split_words(text) for text in texts]
    explanations = head.explain(sentences) if options.explain else [None] * len(texts)
    for words, tags, why in zip(sentences, head.predict(sentences), explanations, strict=True):
        if options.json:
            print_json({"words": words, "tags": tags} | _explain_json(why))
            continue
        for place, (word, tag) in enumerate(zip(words, tags, strict=True)):
            gate = "".join(f"\t{name}={weights[place]:.2f}" for name, weights in why.experts) if why else ""
            print(escape_controls(f"{word}\t{tag}{gate}"))
        print()


def _explain_json(why: Explanation | None) -> dict[str, Any]:
    if why is None:
        return {}
    shown: dict[str, Any] = {}
    if why.weights:
        shown["words"] = [{"word": word, "weight": round(w, 6)} for word, w in zip(why.words, why.weights, strict=True)]
    if why.examples:
        shown["examples"] = [{"text": text, "label": label, "cosine": round(c, 6)} for text, label, c in why.examples]
    if why.experts:
        shown["experts"] = {name: [round(weight, 4) for weight in weights] for name, weights in why.experts}
    return shown


def _print_why(why: Explanation | None) -> None:
    if why is None:
        return
    ranked = sorted(zip(why.words, why.weights, strict=True), key=lambda pair: -abs(pair[1]))
    if ranked:
        note("    " + ", ".join(f"{word} {weight:+.3f}" for word, weight in ranked[:8]))
    for text, label, cosine in why.examples:
        note(f"    {cosine:.3f} {label}: {text[:100]}")
