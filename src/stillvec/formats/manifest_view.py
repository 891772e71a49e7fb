"""Facts from a manifest as text for a model card: names of files and models, never local paths."""

import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

MAX_NAMES = 5  # corpora and spaces listed by name
_NAMES = (
    "sentence-transformers/all-MiniLM-L6-v2",
    "sentence-transformers/all-mpnet-base-v2",
    "ibm-granite/granite-embedding-30m-english",
)
HUB = {name: (name, "Apache-2.0") for name in _NAMES} | {"minilm": (_NAMES[0], "Apache-2.0")}  # model and licence

Facts = Mapping[str, Any]


def get_mapping(facts: Facts, key: str) -> Facts:
    value = facts.get(key)
    return value if isinstance(value, dict) else {}


def find_names(facts: Facts, key: str) -> list[str]:
    """The name under a key, given directly or in a mapping, as a list of one; empty without a name."""
    value = get_mapping(facts, key).get("name") or facts.get(key)
    return [last_name(value)] if isinstance(value, str) else []


def describe_model(facts: Facts) -> tuple[str, str]:
    """The name of the teacher and its licence, empty if unknown; a folder called `minilm` is not the packaged one."""
    value = get_mapping(facts, "teacher").get("name") or facts.get("teacher")
    return HUB.get(value, (last_name(value), "")) if isinstance(value, str) else ("", "")


def steps_of(manifest: Facts) -> list[Facts]:
    return [step for step in manifest.get("refined", ()) if isinstance(step, dict) and "step" in step]


def with_sources(manifest: Facts) -> Iterator[Facts]:
    """The manifest and those of the spaces it was combined from."""
    yield manifest
    for space in manifest.get("combined", ()):
        yield from with_sources(space)


def corpora_of(manifest: Facts) -> list[Facts]:
    """The corpora of a result, including those of merged or earlier results."""
    corpus, previous = get_mapping(manifest, "corpus"), get_mapping(manifest, "added_to")
    parts = corpus.get("parts") or ([corpus] if corpus.get("words") else [])
    return [*parts, *(corpora_of(previous) if previous else [])]


def count_read(manifest: Facts, unit: str) -> int:
    """How many sentences or words the teacher read, also for the earlier results that text was added to."""
    previous = get_mapping(manifest, "added_to")
    return int(get_mapping(manifest, "read").get(unit) or 0) + (count_read(previous, unit) if previous else 0)


def files_of(corpus: Facts) -> str:
    names = [last_name(name) for name in corpus.get("sources", ())]
    more = f" and {len(names) - MAX_NAMES:,} more" if len(names) > MAX_NAMES else ""
    return ", ".join(names[:MAX_NAMES]) + more or "unnamed text"


def last_name(value: object) -> str:
    """The last part of a path; a model on the hub (owner/name) keeps both parts."""
    text = str(value).replace("\\", "/")
    is_path = text.startswith(("/", ".", "~")) or text.count("/") > 1 or ":/" in text
    return (text.rstrip("/").rpartition("/")[2] or text) if is_path else text


def without_folders(text: str) -> str:
    """A setting in which every path is reduced to its last part."""
    return re.sub(r"(?<![^=:,])(?:~|\.{1,2}|[A-Za-z]:)?[/\\](?:[^,/\\]+[/\\])*", "", text)


def format_value(value: object) -> str:
    if isinstance(value, list):
        return "|".join(map(format_value, value))
    return str(value).lower() if value is None or isinstance(value, bool) else without_folders(str(value))


def format_part(name: str, facts: Facts, separator: str = "") -> str:
    """`NAME:key=value,...` for a command line; a list repeats its key, or is joined by `separator`."""
    pairs: list[str] = []
    for key, value in get_mapping(facts, "settings").items():
        values = value if isinstance(value, list) else [value] * (value is not None)
        items = [*map(format_value, values)]
        pairs += [f"{key}={separator.join(items)}"] * bool(items) if separator else [f"{key}={item}" for item in items]
    return f"{last_name(name)}:{','.join(pairs)}" if pairs else last_name(name)


def format_command(*words: str) -> str:
    return shlex.join(["stillvec", *words])
