"""What a manifest says, whoever wrote it, in words that a card can use: names of files and models, never places."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

SHOWN = 5  # corpora and spaces that are named; of more, how many
HUB = {"minilm": ("sentence-transformers/all-MiniLM-L6-v2", "Apache-2.0")}  # short name: the model, its licence

Facts = Mapping[str, Any]


def mapping(facts: Facts, key: str) -> Facts:
    value = facts.get(key)
    return value if isinstance(value, dict) else {}


def named(facts: Facts, key: str) -> list[str]:
    """The name that stands under a key, itself or in a mapping; none, one."""
    value = mapping(facts, key).get("name") or facts.get(key)
    return [last_name(value)] if isinstance(value, str) else []


def model_of(facts: Facts) -> str:
    name = next(iter(named(facts, "teacher")), "")
    return HUB.get(name, (name,))[0]


def steps_of(manifest: Facts) -> list[Facts]:
    return [step for step in manifest.get("refined", ()) if isinstance(step, dict) and "step" in step]


def with_sources(manifest: Facts) -> Iterator[Facts]:
    """The manifest, and those of the spaces that it was combined from."""
    yield manifest
    for space in manifest.get("combined", ()):
        yield from with_sources(space)


def corpora_of(manifest: Facts) -> list[Facts]:
    """The corpora of a result, those of what it was merged from or added to among them."""
    corpus, before = mapping(manifest, "corpus"), mapping(manifest, "added_to")
    parts = corpus.get("parts") or ([corpus] if corpus.get("words") else [])
    return [*parts, *(corpora_of(before) if before else [])]


def files_of(corpus: Facts) -> str:
    names = [last_name(name) for name in corpus.get("sources", ())]
    more = f" and {len(names) - SHOWN:,} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more or "text without a name"


def last_name(value: object) -> str:
    """Of a path its last part, of a model on the hub (owner/name) both."""
    text = str(value).replace("\\", "/")
    place = text.startswith(("/", ".", "~")) or text.count("/") > 1 or ":/" in text
    return (text.rstrip("/").rpartition("/")[2] or text) if place else text


def without_places(text: str) -> str:
    """A setting whose paths, wherever they stand in it, have only their last part."""
    return re.sub(r"(?<![^=:,])(?:~|\.{1,2}|[A-Za-z]:)?[/\\](?:[^,/\\]+[/\\])*", "", text)


def spelt(value: object) -> str:
    if isinstance(value, list):
        return "|".join(map(spelt, value))
    return str(value).lower() if value is None or isinstance(value, bool) else without_places(str(value))


def part(name: str, facts: Facts, between: str = "") -> str:
    """`NAME:key=value,...` as a command line takes it: a list repeats its key, or stands there with `between`."""
    said: list[str] = []
    for key, value in mapping(facts, "settings").items():
        items = [spelt(each) for each in value] if isinstance(value, list) else [spelt(value)] * (value is not None)
        said += [f"{key}={between.join(items)}"] * bool(items) if between else [f"{key}={item}" for item in items]
    return f"{last_name(name)}:{','.join(said)}" if said else last_name(name)


def command(*words: str) -> str:
    return shlex.join(["stillvec", *words])
