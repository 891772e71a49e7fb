"""stillvec predict HEAD [TEXTS]: the labels of texts, by a head that `fit` wrote."""

import argparse
import json
from itertools import chain, islice
from typing import Any

from stillvec.cli.console import note
from stillvec.cli.flags import add_json
from stillvec.cli.terminal_text import escape_controls, warn
from stillvec.cli.text_input import FIELD_HELP, TEXTS_HELP, read_text_arguments
from stillvec.errors import UsageError
from stillvec.files import atomic_file
from stillvec.heads.canonical_names import CanonicalNames
from stillvec.heads.fitted_head import Explanation, Head
from stillvec.heads.head_folder import load_head
from stillvec.heads.predictions import describe_predictions

_BLOCK = 4096  # texts at once
_SHOWN = 8  # words of an explanation


def arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("head", metavar="HEAD", help="the folder of a head")
    add("texts", nargs="*", default=[], metavar="TEXTS", help=TEXTS_HELP)
    add("--text-field", default="text", metavar="NAME", help=FIELD_HELP)
    add("--explain", action="store_true", help="show which words, training texts or experts decided")
    names = "names, one per line, that predictions should not depend on: canonical names are tried in their place"
    add("--canonical", metavar="NAMES.tsv", help=names)
    canonical = "the canonical names, such as frequent ones (default: the first three of the file)"
    add("--canonical-names", metavar="A,B,...", help=canonical)
    add_json(parser, summary="print a JSON object per text, with all probabilities; with a file, write them there")


def run(options: argparse.Namespace) -> int:
    head = load_head(options.head)
    canonical = _read_names(options)
    if canonical is not None and head.kind.unit in ("tokens", "span"):
        raise UsageError("--canonical is for heads that label texts or pairs.", code="no-canonical")
    texts = read_text_arguments(options.texts, options.text_field)
    first = [*islice(texts, _BLOCK)]
    if not first:
        warn("stillvec: there are no texts to label: what was read is empty.")
        return 0
    blocks = chain([first], iter(lambda: [*islice(texts, _BLOCK)], []))
    if options.json not in (None, "-"):
        with atomic_file(options.json) as part, part.open("w", encoding="utf-8") as stream:
            for block in blocks:
                stream.writelines(f"{line}\n" for line in _describe(head, block, options, canonical))
        note(f"Wrote {options.json}")
        return 0
    for block in blocks:
        _print_block(head, block, options, canonical)
    return 0


def _read_names(options: argparse.Namespace) -> CanonicalNames | None:
    if options.canonical is None:
        if options.canonical_names is not None:
            raise UsageError.expected("--canonical with the file of all names", "none", where="--canonical-names")
        return None
    chosen = [name.strip() for name in (options.canonical_names or "").split(",") if name.strip()]
    return CanonicalNames.read(options.canonical, chosen)


def _print_block(head: Head, texts: list[str], options: argparse.Namespace, canonical: CanonicalNames | None) -> None:
    items = _read_items(head, texts)
    if options.json:
        for line in _describe(head, texts, options, canonical):
            print(escape_controls(line))
    elif head.kind.unit == "tokens":
        for sentence in head.explain(items):
            _print_tags(sentence, explain=options.explain)
    else:
        reasons = head.explain(items) if options.explain else [None] * len(texts)
        answers = head.predict(items, canonical), head.predict_proba(items, canonical)
        for text, label, row, why in zip(texts, *answers, reasons, strict=True):
            shown = ",".join(label) if head.multilabel else label
            print(escape_controls(f"{shown}\t{row.max():.3f}\t{text}"))
            if why is not None:
                _print_reason(why)


def _describe(head: Head, texts: list[str], options: argparse.Namespace, canonical: CanonicalNames | None) -> list[str]:
    found = describe_predictions(head, _read_items(head, texts), explain=options.explain, canonical=canonical)
    return [json.dumps({"text": text} | each, ensure_ascii=False) for text, each in zip(texts, found, strict=True)]


def _read_items(head: Head, texts: list[str]) -> list[Any]:
    return [_split_pair(text) for text in texts] if head.kind.unit == "pair" else [*texts]


def _split_pair(text: str) -> tuple[str, str]:
    first, tab, second = text.partition("\t")
    if not tab:
        raise UsageError.expected("two texts separated by a tab", repr(text[:40]))
    return first, second


def _print_tags(why: Explanation, *, explain: bool) -> None:
    for place, (word, tag) in enumerate(zip(why.words, why.tags, strict=True)):
        chance = f"\t{why.weights[place]:.3f}" if why.weights else ""
        gate = "".join(f"\t{name}={weights[place]:.2f}" for name, weights in why.experts)
        print(escape_controls(f"{word}\t{tag}" + (f"{chance}{gate}" if explain else "")))
    print()


def _print_reason(why: Explanation) -> None:
    weights: dict[str, float] = {}
    for word, weight in zip(why.words, why.weights, strict=True):
        weights[word] = weights.get(word, 0) + weight
    ranked = sorted(weights.items(), key=lambda item: -abs(item[1]))
    if ranked:
        print(
            escape_controls(
                f"    {why.label}: {', '.join(f'{word} {weight:+.3f}' for word, weight in ranked[:_SHOWN])}"
            )
        )
    for text, label, cosine in why.examples:
        print(escape_controls(f"    {cosine:.3f}  {label}  {text[:100]}"))
