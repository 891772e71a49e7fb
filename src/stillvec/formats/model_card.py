"""The model card of vectors, README.md in their folder, in the form of Hugging Face's model cards.

It is generated from the manifest alone, so every folder can have one; it names files and models, but no local paths.
Scores are included when an evaluation is given.
"""

import json
import re
import tomllib
from collections.abc import Iterator, Sequence
from importlib.resources import files
from typing import Any

from stillvec.combination import COMBINERS
from stillvec.errors import FormatError
from stillvec.formats import manifest_view as view
from stillvec.formats.manifest_view import Facts, find_names, get_mapping, last_name, steps_of, with_sources
from stillvec.refinement.steps import STEPS
from stillvec.registry import Registry

CARD = "README.md"
_TABLES = tomllib.loads(files("stillvec.formats").joinpath("model_card.toml").read_text("utf-8"))
PAPERS: dict[str, str] = _TABLES["papers"]
METHODS: dict[str, tuple[str, tuple[str, ...]]] = {
    name: (summary, tuple(keys)) for name, (summary, keys) in _TABLES["methods"].items()
}
_TEXTS: dict[str, str] = _TABLES["texts"]
_FLAGS = {  # settings of a run, in their order in a command
    "teacher": "--teacher", "method": "--method", "purpose": "--for", "layer": "--layer", "dim": "--dim",
    "dictionary": "--dictionary", "senses": "--senses", "min_count": "--min-count", "max_words": "--max-words",
    "contexts": "--contexts",
    "min_sentences": "--min-sentences", "min_characters": "--min-characters",
    "exclude": "--exclude", "pattern": "--pattern", "numbers": "--numbers",
    "segmenter": "--words", "language": "--language",
    "phrase_score": "--phrase-score", "hyphens": "--hyphens",
    "parser": "--parse", "precision": "--precision", "prompt": "--prompt", "threads": "--threads", "seed": "--seed",
}  # fmt: skip


def card(manifest: Facts, scores: Sequence[Facts] = (), metadata: Facts | None = None) -> str:
    """The text of a card; `scores` are the output of `stillvec evaluate --json` for these vectors.

    `metadata` is added to the header: license, language, datasets (names on the hub).
    """
    try:
        return _card(manifest, scores, metadata or {})
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
        raise FormatError.expected("a manifest and scores of stillvec", f"a damaged one ({error!r})") from None


def _card(manifest: Facts, scores: Sequence[Facts], metadata: Facts) -> str:
    plain = "" if "stored" in manifest else "without_stillvec"
    sections = {
        "": _introduce(manifest),
        "How they were made": _describe_run(manifest),
        "How to use them": [_TEXTS[key] for key in ("usage", plain, "conversion") if key],
        "Scores": _scores(scores),
        "Limits": _limits(manifest),
        "Licence": _licence(manifest),
        "Reproduce": _again(manifest),
        "Citation": _papers(manifest),
    }
    parts = [_front(manifest, _own(scores), metadata)]
    for title, lines in sections.items():
        text = "\n".join(lines).strip().replace("\n\n\n", "\n\n")
        parts += [f"## {title}\n\n{text}" if title else text] if text else []
    return "\n\n".join(parts) + "\n"


def _front(manifest: Facts, scores: Sequence[Facts], metadata: Facts) -> str:
    """The YAML header that the hub reads; each value is written as JSON, which is valid YAML."""
    steps = [step["step"] for step in steps_of(manifest)]
    tags = ["word-embeddings", "static-embeddings", *find_names(manifest, "method"), *steps]
    facts: dict[str, object] = {"library_name": "stillvec", "pipeline_tag": "feature-extraction"}
    facts["tags"] = [*dict.fromkeys(tags)]
    if languages := manifest.get("language") or get_mapping(manifest, "settings").get("tags"):
        facts["language"] = languages
    models = [model for source in with_sources(manifest) if "/" in (model := view.describe_model(source)[0])]
    if models:
        facts["base_model"] = [*dict.fromkeys(models)]
    facts |= metadata
    if scores:
        title = " ".join(find_names(manifest, "method") or ["word vectors"])
        facts["model-index"] = [{"name": title, "results": [*map(_describe_score, scores)]}]
    lines = [f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in facts.items()]
    return "\n".join(["---", *lines, "---"])


def _own(scores: Sequence[Facts]) -> list[Facts]:
    """The scores on all items that the vectors cover."""
    return [score for score in scores if score.get("words", "own") == "own" and score.get("value") is not None]


def _describe_score(score: Facts) -> dict[str, object]:
    """An entry of the hub's model index."""
    metric = {"type": score["metric"], "value": round(float(score["value"]), 4), "name": score["metric"]}
    return {
        "task": {"type": score["task"], "name": score["task"]},
        "dataset": {"type": score["dataset"], "name": score["dataset"]},
        "metrics": [metric],
    }


def _introduce(manifest: Facts) -> Iterator[str]:
    method = next(iter(find_names(manifest, "method")), None)
    yield f"# {manifest['words']:,} word vectors{f' by {method}' if method else ''}\n"
    yield f"One vector of {manifest['dim']:,} numbers per word, independent of its context. {_about(method)}\n"
    case = "lower-cased" if manifest.get("lowercase") else "case-sensitive"
    form = f"compressed as {manifest['stored']}" if "stored" in manifest else "uncompressed"
    yield "| | |\n|---|---|"
    yield _row("words", f"{manifest['words']:,}, {case}")
    kinds = {"phrases": "phrases found in the text", "hyphenated": "words with hyphens"}
    for key, what in kinds.items():
        if n_terms := sum(int(corpus.get(key) or 0) for corpus in view.corpora_of(manifest)):
            yield _row(what, f"{n_terms:,}")
    yield _row("dimensions", f"{manifest['dim']:,}")
    yield _row("numbers", f"{manifest['dtype']}, {form}")
    if teacher := get_mapping(manifest, "teacher"):
        shape = [f"{teacher[key]} {word}" for key, word in (("depth", "layers"), ("dim", "wide")) if key in teacher]
        yield _row("teacher", ", ".join([view.describe_model(manifest)[0], *shape]))
    for corpus in view.corpora_of(manifest)[: view.MAX_NAMES]:
        yield _row("text", f"{view.files_of(corpus)}, {corpus.get('words', 0):,} words")
    for name in manifest.get("merged", ())[: view.MAX_NAMES]:
        yield _row("merged from", last_name(name))
    for space in manifest.get("combined", ())[: view.MAX_NAMES]:
        name = [last_name(space["name"])] if "name" in space else []  # a combiner called directly has no names
        facts = [f"{space['words']:,} words x {space['dim']}", *find_names(space, "method")]
        yield _row("combined from", ", ".join([*name, *facts, *find_names(space, "teacher")]))


def _row(what: str, value: str) -> str:
    return f"| {what} | {' '.join(value.split()).replace('|', chr(92) + '|')} |"


def _about(method: str | None) -> str:
    if method is None:
        return "How they were made is not recorded."
    summary, _ = _method_facts(method)
    return f"A word's vector is {summary}." if summary else f"They were made by the method `{method}`."


def _method_facts(name: str) -> tuple[str, tuple[str, ...]]:
    return METHODS.get(name) or _part_facts(COMBINERS, name)


def _part_facts(registry: Registry[Any], name: str) -> tuple[str, tuple[str, ...]]:
    """Summary and papers of a step or combiner, also by its old name; empty for one that is not registered."""
    name = registry.renamed.get(name, name)
    if name not in registry:
        return "", ()
    part = registry[name]
    return getattr(part, "SUMMARY", ""), getattr(part, "PAPERS", ())


def _describe_run(manifest: Facts) -> Iterator[str]:
    read = get_mapping(manifest, "read")
    if read.get("sentences"):
        n_sentences, n_words = (view.count_read(manifest, unit) for unit in ("sentences", "words"))
        yield f"The teacher read {n_sentences:,} sentences, {n_words:,} words."
        if alone := read.get("words_without_context"):
            yield f"{alone:,} of the words do not occur in them and were encoded without context."
        yield ""
    settings = {key: value for key, value in get_mapping(manifest, "settings").items() if value not in (None, [], "")}
    if settings:
        yield f"Settings: {', '.join(f'`{key}={view.format_value(value)}`' for key, value in settings.items())}.\n"
    for number, step in enumerate(steps_of(manifest), 1):
        loss = "".join(f", {name} {value:.4g}" for name, value in get_mapping(step, "loss").items())
        about = _part_facts(STEPS, step["step"])[0] or "a custom step"
        yield f"{number}. Refined by `{view.format_part(step['step'], step)}`: {about}{loss}."
    if "source" in manifest:
        yield f"\nThey were read from the file `{last_name(manifest['source'])}`."
    versions = {"stillvec": manifest.get("stillvec"), **get_mapping(manifest, "libraries")}
    yield f"\nVersions: {', '.join(f'{name} {version}' for name, version in versions.items() if version)}."


def _scores(scores: Sequence[Facts]) -> Iterator[str]:
    own = _own(scores)
    if not own:
        yield _TEXTS["no_scores"]
        return
    yield "| task | dataset | metric | value | 95% interval | items covered |\n|---|---|---|---|---|---|"
    for score in own:
        interval = "" if score.get("low") is None else f"{score['low']:.3f} to {score['high']:.3f}"
        covered = f"{score['n_covered']:,} of {score['n_items']:,}"
        names = " | ".join(str(score[key]) for key in ("task", "dataset", "metric"))
        yield f"| {names} | {score['value']:.3f} | {interval} | {covered} |"


def _limits(manifest: Facts) -> Iterator[str]:
    if senses := get_mapping(manifest, "ambiguous"):
        yield f"- {senses['words']:,} words also have vectors of {senses['senses']:,} senses; their own is a mixture."
    else:
        yield "- Each word has one vector; for a word with several senses it is a mixture."
    if "subwords" in manifest:
        yield "- A word that is not in `vocabulary.tsv` gets a vector from its character n-grams, by its spelling."
    else:
        yield "- A word that is not in `vocabulary.tsv` has no vector."
    if any(get_mapping(source, "teacher") for source in with_sources(manifest)):
        yield "- The vectors inherit what the teacher learned from its training text, including social biases."
    if any(view.corpora_of(source) for source in with_sources(manifest)):
        yield "- They also reflect the period and genre of the text; vectors of rare words are less reliable."
    if any("lexicon" in step.get("settings", {}) for step in steps_of(manifest)):
        yield "- They were refined with a lexicon: its pairs are no fair test (`stillvec evaluate --lexicon FILE`)."
    yield "- They have not been validated for any application. Check nearest neighbours and bias tests before use."


def _licence(manifest: Facts) -> Iterator[str]:
    for name, licence in filter(any, dict.fromkeys(map(view.describe_model, with_sources(manifest)))):
        yield f"The teacher, {name}, {f'is under {licence}' if licence else 'has a licence that is not recorded here'}."
    yield "The licences of texts and lexicons are not recorded here. Check them before you distribute these vectors."


def _again(manifest: Facts) -> Iterator[str]:
    yield "```"
    folder = "FOLDER"
    given = get_mapping(manifest, "distillation") or get_mapping(manifest, "training")
    combined = "combined" in manifest and "method" in manifest  # no method where the combiner was called directly
    if "merged" in manifest:
        yield view.format_command("merge", *map(last_name, manifest["merged"]), "--out", folder)
    elif combined:
        names = [last_name(space.get("name", "VECTORS")) for space in manifest["combined"]]
        method = view.format_part(manifest["method"], manifest, ",")
        yield view.format_command("combine", *names, "--method", method, "--out", folder)
    elif given:
        verb = "distill" if "distillation" in manifest else "train"
        yield view.format_command(verb, *_run(manifest, given), "--out", folder)
    elif "source" in manifest:
        folder = last_name(manifest["source"])
    steps = [word for step in steps_of(manifest) for word in ("--step", view.format_part(step["step"], step))]
    if steps:
        yield view.format_command("refine", folder, *steps, "--out", "REFINED")
    if not (given or steps or combined or "merged" in manifest):
        yield "# the commands are not recorded"
    yield "```"
    if re.search(r",[a-z_]+(:|,|$)", str(given.get("method", ""))) and "merged" not in manifest:
        yield "\nThe run writes several folders; this is one of them."


def _run(manifest: Facts, given: Facts) -> Iterator[str]:
    files = [last_name(source) for corpus in view.corpora_of(manifest)[:1] for source in corpus.get("sources", ())]
    yield from files if len(files) <= view.MAX_NAMES else ["CORPUS..."]
    for key, flag in _FLAGS.items():
        value = "all" if key == "contexts" and key in given and given[key] is None else given.get(key)
        if value not in (None, "auto") or key == "method":
            yield from (flag, view.without_folders(str(value)))
    yield from ["--include-words", "WORDS.txt"] if given.get("include_words") or given.get("keep") else []
    if stop_words := given.get("stop_words"):
        yield from ("--stop-words", stop_words if isinstance(stop_words, str) else "STOP_WORDS.txt")
    yield from ["--phrases"] if given.get("phrases") else []
    yield from ["--cased"] if given.get("lowercase") is False else []
    if "added_to" in manifest:
        yield from ("--add-to", last_name(get_mapping(manifest, "added_to").get("name", "EARLIER")))


def _papers(manifest: Facts) -> Iterator[str]:
    sources = [*with_sources(manifest)]
    facts = [_method_facts(name) for source in sources for name in find_names(source, "method")]
    facts += [_part_facts(STEPS, step["step"]) for source in sources for step in steps_of(source)]
    for key in dict.fromkeys(key for _, papers in facts for key in papers if key in PAPERS):
        yield f"- {PAPERS[key]}"
    if any(get_mapping(source, "teacher") for source in sources):
        yield "- The teacher: see its own model card."
