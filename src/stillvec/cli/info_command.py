"""stillvec info: describe vectors, a head, a search index, a teacher or a corpus."""

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stillvec.cli.console import note, show, table
from stillvec.cli.flags import add_json, name_texts
from stillvec.cli.progress_bar import show_warnings
from stillvec.cli.terminal_text import escape_controls
from stillvec.corpus import Corpus, split_sentences
from stillvec.errors import CorpusError, DatasetError, FormatError, UsageError
from stillvec.formats import FORMATS, load, local_path, read_manifest
from stillvec.formats.model_card import card
from stillvec.formats.stillvec_folder import verify_folder
from stillvec.heads.head_folder import is_head, read_head_manifest, verify_head
from stillvec.search.index_folder import is_index, read_index, verify_index
from stillvec.vocabulary import WordCounter
from stillvec.vocabulary.glued_words import find_glued


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("thing", metavar="VECTORS_OR_TEACHER_OR_CORPUS", help="also a head or a search index")
    parser.add_argument("--field", metavar="NAME", help="field of JSON lines or Parquet that contains the text")
    texts = "teacher only: what its tokenizer makes of texts, each a file or NAME=FILE, as in de=german.txt"
    parser.add_argument("--texts", nargs="+", metavar="[NAME=]FILE", help=texts)
    parser.add_argument("--all", action="store_true", help="vectors and teachers: show all entries")
    add_json(parser)
    parser.add_argument(
        "--verify", action="store_true", help="vectors, heads and indexes: compare the files with their checksums"
    )
    parser.add_argument("--card", action="store_true", help="vectors only: print the model card (README.md)")
    parser.add_argument("--scores", metavar="FILE", help="with --card: scores written by stillvec evaluate --json FILE")


def run(options: argparse.Namespace) -> int:
    if options.scores and not options.card:
        raise UsageError.conflict("--scores needs --card")
    if options.card:
        folder = Path(options.thing)
        scores = read_scores(Path(options.scores), folder) if options.scores else []
        print(escape_controls(card(read_manifest(folder), scores)), end="")
        return 0
    if options.verify:
        folder = Path(options.thing)
        verify = verify_index if is_index(folder) else verify_head if is_head(folder) else verify_folder
        note(f"Verified {', '.join(verify(folder))} in {options.thing}")
        return 0
    if options.texts:
        _print_fits(options)
        return 0
    with show_warnings():
        place = local_path(options.thing)
        title, facts = _facts(place, options)
    shown = facts if options.all else _overview(place, facts)
    rows = [(key, _shorten(value)) for key, value in shown.items()]
    show(facts, options.json, lambda: table(title, ("", ""), rows), indent=2)
    return 0


def _print_fits(options: argparse.Namespace) -> None:
    from stillvec.analysis.tokenizer_fit import measure_texts

    texts = name_texts(options.texts)
    with show_warnings():
        fits = measure_texts(options.thing, texts, field=options.field)
    headers = ("text", "words", "tokens per word", "one token", "4 or more", "unknown", "of its tokens used", "fits")
    rows = [
        (
            name,
            f"{fit.n_words:,}",
            f"{fit.tokens_per_word:.2f}",
            f"{fit.n_whole / fit.n_words:.1%}",
            f"{fit.many:.1%}",
            f"{fit.unknown:.1%}",
            f"{fit.coverage[1]:.1%}",
            "yes" if fit.fits else "no",
        )
        for name, fit in fits.items()
    ]
    values = {name: fit.to_dict() for name, fit in fits.items()}
    show(values, options.json, lambda: table(f"Teacher {options.thing} and texts", headers, rows), indent=2)


def _facts(path: Path, options: argparse.Namespace) -> tuple[str, dict[str, Any]]:
    if is_index(path):
        return f"Search index {path}", _describe_index(path)
    if is_head(path):
        return f"Head {path}", _describe_head(path)
    if (path / "manifest.json").is_file():
        return f"Vectors {options.thing}", _folder(path)
    is_gguf = path.suffix == ".gguf" or (path.is_dir() and any(path.glob("*.gguf")))
    is_model = (path / "config.json").is_file() and not FORMATS["model2vec"].recognize(path, b"")
    if is_gguf or is_model or not path.exists():
        return f"Teacher {options.thing}", _teacher(options.thing)
    return _file(path, options.field)


def _describe_index(path: Path) -> dict[str, Any]:
    content = read_index(path)
    facts = {key: content.manifest.get(key) for key in ("documents", "passages", "passage_unit", "dim", "recall_at_10")}
    words = f"{len(content.vectors):,}, {len(content.postings.terms):,} different ones in the documents"
    return {key: value for key, value in facts.items() if value is not None} | {"words": words}


def _describe_head(path: Path) -> dict[str, Any]:
    manifest = read_head_manifest(path)
    facts: dict[str, Any] = {key: manifest.get(key) for key in ("head", "labels", "multilabel", "threshold", "seed")}
    for key in ("settings", "options", "data", "scores"):
        part = manifest.get(key)
        for inner, value in part.items() if isinstance(part, dict) else ():
            facts[f"{key}.{inner}"] = value
    return {key: value for key, value in facts.items() if value not in (None, [])}


def _folder(path: Path) -> dict[str, Any]:
    """All entries of the manifest, nested ones with a dotted key."""
    vectors = load(path)
    flat: dict[str, Any] = {"words": len(vectors), "dim": vectors.dim, "frequent": ", ".join(vectors.words[:10])}
    for key, value in read_manifest(path).items():
        flat |= {f"{key}.{inner}": item for inner, item in value.items()} if isinstance(value, dict) else {key: value}
    return flat


def _overview(path: Path, facts: Mapping[str, Any]) -> Mapping[str, Any]:
    """Summary of a teacher or of the manifest of vectors; `--all` shows all entries."""
    if "special_tokens" in facts:
        return _summarize_teacher(facts)
    is_vectors = (path / "manifest.json").is_file() and not is_index(path) and not is_head(path)
    return _summarize_vectors(path, facts) if is_vectors else facts


def _summarize_teacher(facts: Mapping[str, Any]) -> dict[str, str]:
    head = facts.get("sentence_vectors") or {}
    lines = {
        "name": facts["name"],
        "layers": facts["depth"],
        "dimensions": facts["dim"],
        "longest input": f"{facts['window']:,} tokens" if facts["window"] else "",
        "vocabulary": f"{facts['tokens']:,} tokens",
        "sentence vectors": f"{head['pooling']} pooling, {head['dim']} dimensions" if head else "",
        "precision here": f"{facts['precision']} on {facts['device']}",
        "more": "stillvec info --all",
    }
    return {key: str(line) for key, line in lines.items() if line}


def _summarize_vectors(path: Path, facts: Mapping[str, Any]) -> dict[str, str]:
    sources = [Path(str(source)).name for source in facts.get("corpus.sources") or ()]
    text = f" in {', '.join(sources[:3])}{' ...' * (len(sources) > 3)}" if sources else ""
    refined = facts.get("refined") or ()
    steps = [str(step["step"]) for step in refined if isinstance(step, dict) and "step" in step]
    settings = ", ".join(f"{key.partition('.')[2]}={value}" for key, value in facts.items() if key[:9] == "settings.")
    created = str(facts.get("made", "")).replace("T", " ").partition("+")[0]
    lines = {
        "words": f"{facts['words']:,}, {'lower-cased' if facts.get('lowercase') else 'case-sensitive'}",
        "dimensions": f"{facts['dim']:,}, {facts.get('stored') or facts.get('dtype', '')}",
        "most frequent": facts["frequent"],
        "method": f"{facts['method']} ({settings})" if facts.get("method") and settings else facts.get("method"),
        "steps": ", ".join(steps),
        "teacher": f"{facts['teacher.name']}, {facts.get('teacher.precision')}" if "teacher.name" in facts else "",
        "corpus": f"{facts['corpus.words']:,} words{text}" if facts.get("corpus.words") else "",
        "created": f"{created} by stillvec {facts.get('stillvec')}" if created else "",
        "size": f"{sum(file.stat().st_size for file in path.iterdir()) / 1e6:,.1f} MB",
        "more": "stillvec info --all, --card",
    }
    return {key: str(line) for key, line in lines.items() if line}


def read_scores(file: Path, folder: Path) -> list[dict[str, Any]]:
    """Read the scores of these vectors from the output of `stillvec evaluate --json`."""
    try:
        content = json.loads(file.read_bytes())
        reports = content if isinstance(content, list) else [content]
        sets = {str(report["vectors"]): [dict(score) for score in report["scores"]] for report in reports}
    except (ValueError, KeyError, TypeError, RecursionError):
        cure = f"stillvec evaluate {folder} --json {file} writes them"
        raise DatasetError.expected("scores", "something else", path=file, cure=cure) from None
    name = folder.resolve().name
    matches = [key for key in sets if key == name or key.endswith(f"/{name}")] if len(sets) > 1 else [*sets]
    if len(matches) != 1:
        raise DatasetError.expected(f"scores of {name}", f"those of {', '.join(sets) or 'nothing'}", path=file)
    return sets[matches[0]]


def _teacher(name: str) -> dict[str, Any]:
    from stillvec.pipeline.result_folders import describe_teacher
    from stillvec.teachers import PACKAGED, load_teacher

    if "/" not in name and name not in PACKAGED and not Path(name).exists():  # most likely a typo: do not query the Hub
        cure = "a model on the Hugging Face Hub is given as OWNER/NAME"
        raise UsageError.not_found(name, "vectors, a teacher or a corpus", cure=cure)
    teacher = load_teacher(name, device="cpu")
    specials = {"before": list(teacher.tokenizer.prefix), "after": list(teacher.tokenizer.suffix)}
    return describe_teacher(teacher) | {"tokens": len(teacher.tokenizer.vocabulary()), "special_tokens": specials}


def _file(path: Path, field: str | None) -> tuple[str, dict[str, Any]]:
    """Describe a file of vectors or, if it cannot be read as vectors, a corpus."""
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
    n_words = n_sentences = 0
    for paragraph in corpus.paragraphs():
        n_words += counter.add([paragraph])
        n_sentences += len(split_sentences(paragraph))
    counts, report = counter.counts(), corpus.report
    if report is None:
        raise CorpusError(f"{path}: reading stopped before the end.", path=path)
    frequent = sorted(counts, key=lambda word: -counts[word])[:10]
    found = find_glued(counts, counter.joins())
    glued = f"{len(found):,}: " * bool(found) + ", ".join(f"{each.word} ({each.n_occurrences:,})" for each in found)
    return {
        "files": report.files,
        "characters": report.characters,
        "paragraphs": report.paragraphs,
        "sentences": n_sentences,
        "words": n_words,
        "distinct words": len(counts),
        "words seen at least 5 times": sum(count >= 5 for count in counts.values()),
        "frequent": ", ".join(frequent),
        "bytes that are not UTF-8": report.replaced_bytes,
    } | ({"two words written together": glued} if glued else {})


def _shorten(value: object) -> str:
    text = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
    return text if len(text) < 90 else text[:87] + "..."
