"""stillvec info: what vectors, a teacher or a corpus are."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from stillvec.cli.console import note, table
from stillvec.cli.progress_bar import warnings_told
from stillvec.corpus import Corpus, split_sentences
from stillvec.errors import DatasetError, FormatError, UsageError
from stillvec.formats import FORMATS, load, read_manifest
from stillvec.formats.model_card import card
from stillvec.vocabulary import WordCounter


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("thing", metavar="VECTORS_OR_TEACHER_OR_CORPUS")
    parser.add_argument("--field", metavar="NAME", help="the field of JSON lines or Parquet that holds the text")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--card", action="store_true", help="of a folder of vectors: print its card (README.md) anew")
    parser.add_argument("--scores", metavar="FILE", help="with --card: scores by stillvec evaluate --json FILE")


def run(options: argparse.Namespace) -> int:
    if options.scores and not options.card:
        raise UsageError("--scores stands with --card, and --card is missing.")
    if options.card:
        folder = Path(options.thing)
        scores = _scores(Path(options.scores), folder) if options.scores else []
        print(card(read_manifest(folder), scores), end="")
        return 0
    with warnings_told():
        title, facts = _facts(options)
    if options.json:
        note(json.dumps(facts, ensure_ascii=False, indent=2))
    else:
        table(title, ("what", "value"), [(key, _short(value)) for key, value in facts.items()])
    return 0


def _facts(options: argparse.Namespace) -> tuple[str, dict[str, Any]]:
    path = Path(options.thing)
    if (path / "manifest.json").is_file():
        return f"Vectors {path}", _folder(path)
    packed = path.suffix == ".gguf" or (path.is_dir() and any(path.glob("*.gguf")))
    modelled = (path / "config.json").is_file() and not FORMATS["model2vec"].recognises(path, b"")
    if packed or modelled or not path.exists():
        return f"Teacher {options.thing}", _teacher(options.thing)
    return _file(path, options.field)


def _folder(path: Path) -> dict[str, Any]:
    manifest = read_manifest(path)
    vectors = load(path)
    flat: dict[str, Any] = {"words": len(vectors), "dim": vectors.dim, "frequent": ", ".join(vectors.words[:10])}
    for key, value in manifest.items():
        if isinstance(value, dict):
            flat |= {f"{key}.{inner}": each for inner, each in value.items()}
        else:
            flat[key] = value
    return flat


def _scores(file: Path, folder: Path) -> list[dict[str, Any]]:
    """The scores of these vectors in a file of `stillvec evaluate --json`."""
    try:
        found = json.loads(file.read_bytes())
        every = found if isinstance(found, list) else [found]
        sets = {str(one["vectors"]): [dict(score) for score in one["scores"]] for one in every}
    except (ValueError, KeyError, TypeError, RecursionError):
        raise DatasetError(
            f"{file} is no file of scores; stillvec evaluate {folder} --json {file} writes one."
        ) from None
    name = folder.resolve().name
    alike = [key for key in sets if key == name or key.endswith(f"/{name}")] if len(sets) > 1 else [*sets]
    if len(alike) != 1:
        raise DatasetError(f"{file} has scores of {', '.join(sets) or 'nothing'}, and not of {name} alone.")
    return sets[alike[0]]


def _teacher(name: str) -> dict[str, Any]:
    from stillvec.pipeline.manifest import describe_teacher
    from stillvec.teachers import load_teacher

    teacher = load_teacher(name, device="cpu")
    specials = {"before": list(teacher.tokenizer.prefix), "after": list(teacher.tokenizer.suffix)}
    return describe_teacher(teacher) | {"tokens": len(teacher.tokenizer.vocabulary()), "special_tokens": specials}


def _file(path: Path, field: str | None) -> tuple[str, dict[str, Any]]:
    """A file of vectors if it is one, else a corpus."""
    try:
        vectors = load(path)
    except FormatError:
        return f"Corpus {path}", _corpus(path, field)
    facts = {"words": len(vectors), "dim": vectors.dim, "first": ", ".join(vectors.words[:10])}
    if vectors.subwords is not None:
        facts["n-grams"] = f"{vectors.subwords.ngrams.buckets:,} rows"
    return f"Vectors {path}", facts


def _corpus(path: Path, field: str | None) -> dict[str, Any]:
    corpus, counter = Corpus(path, field=field), WordCounter()
    words = sentences = 0
    for paragraph in corpus.paragraphs():
        words += counter.add([paragraph])
        sentences += len(split_sentences(paragraph))
    counts, report = counter.counts(), corpus.report
    if report is None:
        raise UsageError(f"{path} could not be read to its end.")
    often = sorted(counts, key=lambda word: -counts[word])[:10]
    return {
        "files": report.files,
        "characters": report.characters,
        "paragraphs": report.paragraphs,
        "sentences": sentences,
        "words": words,
        "different words": len(counts),
        "seen 5 times or more": sum(count >= 5 for count in counts.values()),
        "frequent": ", ".join(often),
        "bytes that are not UTF-8": report.replaced_bytes,
    }


def _short(value: object) -> str:
    text = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
    return text if len(text) < 90 else text[:87] + "..."
