"""The card of vectors, README.md beside them: what they are, for people and in the form of Hugging Face's model cards.

It is made of the manifest and nothing else, so every folder can have one; it names files and models, never the places
of a machine. Scores stand in it when an evaluation is given.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from stillvec.combination import COMBINERS
from stillvec.errors import FormatError
from stillvec.formats.manifest_view import (
    HUB,
    SHOWN,
    Facts,
    command,
    corpora_of,
    files_of,
    last_name,
    mapping,
    model_of,
    named,
    part,
    spelt,
    steps_of,
    with_sources,
    without_places,
)
from stillvec.formats.papers import METHODS, PAPERS
from stillvec.refinement.steps import STEPS
from stillvec.registry import Registry

CARD = "README.md"
_FLAGS = {  # settings of a run, in the order they are shown in a command
    "teacher": "--teacher", "method": "--method", "purpose": "--purpose", "layer": "--layer", "dim": "--dim",
    "dictionary": "--dictionary", "min_count": "--min-count", "max_words": "--max-words", "contexts": "--contexts",
    "parser": "--parse", "precision": "--precision", "threads": "--threads", "seed": "--seed",
}  # fmt: skip


def card(manifest: Facts, scores: Sequence[Facts] = ()) -> str:
    """The text of a card; `scores` are those of `stillvec evaluate --json` for these vectors."""
    try:
        return _card(manifest, scores)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
        raise FormatError(
            f"No card can be made of a manifest or scores that were changed by hand or damaged ({error!r})."
        ) from error


def _card(manifest: Facts, scores: Sequence[Facts]) -> str:
    sections = {
        "": _opening(manifest),
        "How they were made": _making(manifest),
        "How to use them": _using(manifest),
        "Scores": _scores(scores),
        "Limits": _limits(manifest),
        "Licence": _licence(manifest),
        "Made again": _again(manifest),
        "To cite": _papers(manifest),
    }
    parts = [_front(manifest)]
    for title, lines in sections.items():
        text = "\n".join(lines).strip().replace("\n\n\n", "\n\n")
        parts += [f"## {title}\n\n{text}" if title else text] if text else []
    return "\n\n".join(parts) + "\n"


def _front(manifest: Facts) -> str:
    """YAML, each value written as JSON, which YAML reads."""
    steps = [step["step"] for step in steps_of(manifest)]
    tags = ["word-embeddings", "static-embeddings", *named(manifest, "method"), *steps]
    facts: dict[str, object] = {"library_name": "stillvec", "tags": [*dict.fromkeys(tags)]}
    tongues = manifest.get("language") or mapping(manifest, "settings").get("tags")
    if tongues:
        facts["language"] = tongues
    models = [model for each in with_sources(manifest) if "/" in (model := model_of(each))]
    if models:
        facts["base_model"] = [*dict.fromkeys(models)]
    lines = [f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in facts.items()]
    return "\n".join(["---", *lines, "---"])


def _opening(manifest: Facts) -> Iterator[str]:
    method = next(iter(named(manifest, "method")), None)
    yield f"# {manifest['words']:,} word vectors{f' by {method}' if method else ''}\n"
    yield f"One vector of {manifest['dim']:,} numbers a word, whatever the sentence. {_about(method)}\n"
    case = "in lower case" if manifest.get("lowercase") else "as they are written, capital letters kept"
    form = f"packed as {manifest['stored']}" if "stored" in manifest else "plain"
    yield "| | |\n|---|---|"
    yield _row("words", f"{manifest['words']:,}, {case}")
    yield _row("dimensions", f"{manifest['dim']:,}")
    yield _row("numbers", f"{manifest['dtype']}, {form}")
    if teacher := mapping(manifest, "teacher"):
        shape = [f"{teacher[key]} {word}" for key, word in (("depth", "layers"), ("dim", "wide")) if key in teacher]
        yield _row("teacher", ", ".join([model_of(manifest), *shape]))
    for corpus in corpora_of(manifest)[:SHOWN]:
        yield _row("text", f"{files_of(corpus)}, {corpus.get('words', 0):,} words")
    for name in manifest.get("merged", ())[:SHOWN]:
        yield _row("merged from", last_name(name))
    for space in manifest.get("combined", ())[:SHOWN]:
        name = [last_name(space["name"])] if "name" in space else []  # a combiner called directly knows no names
        size = f"{space['words']:,} words x {space['dim']}"
        yield _row("combined from", ", ".join([*name, size, *named(space, "method"), *named(space, "teacher")]))


def _row(what: str, told: str) -> str:
    return f"| {what} | {' '.join(told.split()).replace('|', chr(92) + '|')} |"


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


def _making(manifest: Facts) -> Iterator[str]:
    read = mapping(manifest, "read")
    if read.get("sentences"):
        yield f"The teacher read {read['sentences']:,} sentences, {read['words']:,} words."
        if alone := read.get("words_without_context"):
            yield f"{alone:,} of the words were not met in them and were read alone."
        yield ""
    settings = {key: value for key, value in mapping(manifest, "settings").items() if value not in (None, [], "")}
    if settings:
        yield f"Settings: {', '.join(f'`{key}={spelt(value)}`' for key, value in settings.items())}.\n"
    for number, step in enumerate(steps_of(manifest), 1):
        loss = "".join(f", {name} {value:.4g}" for name, value in mapping(step, "loss").items())
        about = _part_facts(STEPS, step["step"])[0] or "a custom step"
        yield f"{number}. Refined by `{part(step['step'], step)}`: {about}{loss}."
    if "source" in manifest:
        yield f"\nThey came from the file `{last_name(manifest['source'])}`."
    versions = {"stillvec": manifest.get("stillvec"), **mapping(manifest, "libraries")}
    yield f"\nVersions: {', '.join(f'{name} {version}' for name, version in versions.items() if version)}."


def _using(manifest: Facts) -> Iterator[str]:
    yield "```python\nimport stillvec\n"
    yield 'vectors = stillvec.load("FOLDER")  # the folder this file lies in'
    yield "word = vectors.words[0]"
    yield "print(vectors[word].shape, vectors.nearest(word, k=5))\n```\n"
    if "stored" not in manifest:
        yield "Without stillvec:\n\n```python\nfrom safetensors.numpy import load_file\n"
        yield 'matrix = load_file("FOLDER/vectors.safetensors")["matrix"]  # a row a line of the words'
        yield 'with open("FOLDER/vocabulary.tsv", encoding="utf-8", newline="\\n") as lines:'
        yield '    words = [line.rsplit("\\t", 1)[0] for line in lines]  # behind the tab is the count\n```\n'
    yield "For whatever reads word2vec's text; `--format` also takes gensim, spacy, model2vec, onnx and others:\n"
    yield "```\nstillvec convert FOLDER vectors.vec --format word2vec\n```"


def _scores(scores: Sequence[Facts]) -> Iterator[str]:
    own = [each for each in scores if each.get("words", "own") == "own" and each.get("value") is not None]
    if not own:
        yield "None are recorded here. To have them in this place:\n\n```"
        yield "stillvec evaluate FOLDER --json scores.json"
        yield "stillvec info FOLDER --card --scores scores.json > card.md && mv card.md FOLDER/README.md\n```"
        return
    yield "| task | dataset | metric | value | 95% | items known |\n|---|---|---|---|---|---|"
    for each in own:
        between = "" if each.get("low") is None else f"{each['low']:.3f} to {each['high']:.3f}"
        known = f"{each['n_covered']:,} of {each['n_items']:,}"
        yield f"| {each['task']} | {each['dataset']} | {each['metric']} | {each['value']:.3f} | {between} | {known} |"


def _limits(manifest: Facts) -> Iterator[str]:
    yield "- A word has one vector: of a word with several senses it is a mixture."
    if "subwords" in manifest:
        yield "- A word that is not in `vocabulary.tsv` has a vector of character n-grams: a guess from its spelling."
    else:
        yield "- A word that is not in `vocabulary.tsv` has no vector."
    if any(mapping(each, "teacher") for each in with_sources(manifest)):
        yield "- What the teacher learnt from its texts, prejudices about people among it, is in these vectors."
    if any(corpora_of(each) for each in with_sources(manifest)):
        yield "- What the text says is in them too: its time and kind show; words rare in it are known less well."
    if any("lexicon" in step.get("settings", {}) for step in steps_of(manifest)):
        yield "- They were refined with a lexicon: its pairs are no fair test (`stillvec evaluate --lexicon FILE`)."
    yield "- Nobody has checked them for any use. Look at neighbours and at bias tests before people are affected."


def _licence(manifest: Facts) -> Iterator[str]:
    for teacher in dict.fromkeys(name for each in with_sources(manifest) for name in named(each, "teacher")):
        name, licence = HUB.get(teacher, (teacher, ""))
        yield f"The teacher, {name}, {f'is under {licence}' if licence else 'has a licence that is not recorded here'}."
    yield "The licences of texts and lexicons are not recorded here. See to them before you pass these vectors on."


def _again(manifest: Facts) -> Iterator[str]:
    yield "```"
    folder = "FOLDER"
    given = mapping(manifest, "distillation") or mapping(manifest, "training")
    combined = "combined" in manifest and "method" in manifest  # no method where the combiner was called directly
    if "merged" in manifest:
        yield command("merge", *map(last_name, manifest["merged"]), "--out", folder)
    elif combined:
        names = [last_name(space.get("name", "VECTORS")) for space in manifest["combined"]]
        yield command("combine", *names, "--method", part(manifest["method"], manifest, ","), "--out", folder)
    elif given:
        yield command("distill" if "distillation" in manifest else "train", *_run(manifest, given), "--out", folder)
    elif "source" in manifest:
        folder = last_name(manifest["source"])
    steps = [word for step in steps_of(manifest) for word in ("--step", part(step["step"], step))]
    if steps:
        yield command("refine", folder, *steps, "--out", "REFINED")
    if not (given or steps or combined or "merged" in manifest):
        yield "# how they were made is not recorded"
    yield "```"
    if re.search(r",[a-z_]+(:|,|$)", str(given.get("method", ""))) and "merged" not in manifest:
        yield "\nThe run gives several folders; this is one of them."


def _run(manifest: Facts, given: Facts) -> Iterator[str]:
    files = [last_name(source) for corpus in corpora_of(manifest)[:1] for source in corpus.get("sources", ())]
    yield from files if len(files) <= SHOWN else ["CORPUS..."]
    for key, flag in _FLAGS.items():
        value = "all" if key == "contexts" and key in given and given[key] is None else given.get(key)
        if value not in (None, "auto") or key == "method":
            yield from (flag, without_places(str(value)))
    yield from ["--include-words", "WORDS.txt"] if given.get("keep") else []
    yield from ["--cased"] if given.get("lowercase") is False else []
    if "added_to" in manifest:
        yield from ("--add-to", last_name(mapping(manifest, "added_to").get("name", "EARLIER")))


def _papers(manifest: Facts) -> Iterator[str]:
    sources = [*with_sources(manifest)]
    facts = [_method_facts(name) for each in sources for name in named(each, "method")]
    facts += [_part_facts(STEPS, step["step"]) for each in sources for step in steps_of(each)]
    for key in dict.fromkeys(key for _, papers in facts for key in papers if key in PAPERS):
        yield f"- {PAPERS[key]}"
    if any(mapping(each, "teacher") for each in sources):
        yield "- and the teacher, as its own card asks."
