"""What a lexicon says about each word: the sememes of HowNet, or the categories and hypernyms of WordNet.

The senses of a word are merged, and so are words that differ only in case.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

from stillvec.lexicons.edge_lines import bad_entry, empty_file, read_entries
from stillvec.lexicons.rated_pairs import Pair
from stillvec.lexicons.wordnet import DERIVED, Synset, find_wordnet, read_files, read_synsets, words_at
from stillvec.vocabulary.folding import fold
from stillvec.vocabulary.function_words import list_function_words

Descriptions = dict[str, dict[str, float]]  # word → its attributes and their weights
_ABOVE = 0.5  # weight of a synset that is above one of the word's, anywhere
WordNetKind = Literal["hypernyms", "lexnames"]
Attributes = dict[str, frozenset[str]]
_NEAR = ("hypernym", "similar")  # relations to synsets that say as much as the word's own
_WORD = re.compile(r"[^\W\d_]+")
_PARTS = {
    "adj": "all pert",
    "adv": "all",
    "noun": "Tops act animal artifact attribute body cognition communication event feeling food group location motive "
    "object person phenomenon plant possession process quantity relation shape state substance time",
    "verb": "body change cognition communication competition consumption contact creation emotion motion perception "
    "possession social stative weather",
}
_NAMES = [f"{part}.{name}" for part, names in _PARTS.items() for name in names.split()] + ["adj.ppl"]
LEXNAMES = {f"{number:02}": name for number, name in enumerate(_NAMES)}  # lexnames(5WN)


def read_attributes(path: Path, kind: WordNetKind = "hypernyms") -> Attributes:
    """Word → its attributes, from a file or from the folder of WordNet's data files.

    A line of a file is a word, a tab and attributes that are separated by spaces. `kind` is for WordNet: "hypernyms"
    are all synsets above those of the word (the transitive closure), "lexnames" the 45 categories.
    """
    merged: dict[str, set[str]] = {}
    for word, attributes in _read_wordnet(find_wordnet(path), kind) if path.is_dir() else _read_table(path):
        merged.setdefault(fold(word, True), set()).update(attributes)
    if not merged:
        raise empty_file("a word, a tab and attributes", path)
    return {word: frozenset(attributes) for word, attributes in merged.items()}


def read_descriptions(paths: Sequence[Path], without: Collection[Pair] = ()) -> Descriptions:
    """Word → all that lexicons say of it, with weights, from files or WordNet (`Path()`: wherever it is installed).

    Of WordNet: synsets and those directly above or similar (1), those above anywhere (0.5), categories (1), the words
    of glosses and words of the same derivation (1), with the word itself, which links it to those that name it. Of two
    words that are paired in `without` (pairs of `as_pair`), neither gets a synset of the other nor the other as a word
    of its gloss or derivation.
    """
    partners: dict[str, set[str]] = {}
    for left, right in without:
        partners.setdefault(left, set()).add(right)
        partners.setdefault(right, set()).add(left)
    merged: Descriptions = {}
    for path in paths:
        if path == Path() or path.is_dir():
            entries = _describe_words(find_wordnet(None if path == Path() else path), partners)
        else:
            entries = (
                (fold(word, True), {f"{path.name}:{name}": 1.0 for name in names}) for word, names in _read_table(path)
            )
        for word, attributes in entries:
            own = merged.setdefault(word, {})
            for name, weight in attributes.items():
                own[name] = own.get(name, 0.0) + weight
    return merged


def _describe_words(folder: Path, partners: Mapping[str, set[str]]) -> Iterator[tuple[str, dict[str, float]]]:
    """What each synset says of each of its words."""
    files, function_words = read_files(folder), {*list_function_words("english")}
    members = {
        f"{file.removeprefix('data.')}:{synset.offset}": {fold(word, True) for word in synset.words}
        for file, synsets in files.items()
        for synset in synsets.values()
    }
    for file, synsets in files.items():
        glosses = {synset.offset: synset.gloss for synset in read_synsets(folder / file, pointers=False)}
        for offset, synset in synsets.items():
            key = f"{file.removeprefix('data.')}:{offset}"
            near = [key, *(f"{f.removeprefix('data.')}:{at}" for kind, f, at, _ in synset.pointers if kind in _NEAR)]
            says = {f"category:{synset.lexname}": 1.0}
            says |= {f"above:{name}": _ABOVE for name in _find_hypernyms(files, synset)}
            says |= {f"synset:{name}": 1.0 for name in near}
            gloss = _WORD.findall(glosses.get(offset, "").partition('; "')[0].lower())
            says |= {f"gloss:{word}": 1.0 for word in gloss if word not in function_words}
            derived = _find_derived(files, synset)
            for word in members[key]:
                paired = partners.get(word)
                if paired and members[key] & paired:
                    continue
                told = says | {f"gloss:{other}": 1.0 for other in derived.get(word, ())}
                kept = {
                    name: weight for name, weight in told.items() if not paired or not _tells(name, paired, members)
                }
                yield word, kept | {f"gloss:{word}": 1.0}


def _find_derived(files: Mapping[str, dict[str, Synset]], synset: Synset) -> dict[str, set[str]]:
    """The words that those of a synset are derived from, or that are derived from them."""
    found: dict[str, set[str]] = {}
    for relation, file, offset, which in synset.pointers:
        if relation == DERIVED:
            others = {fold(word, True) for word in words_at(files[file][offset], which[2:])}
            for word in words_at(synset, which[:2]):
                found.setdefault(fold(word, True), set()).update(others)
    return found


def _tells(attribute: str, paired: set[str], members: Mapping[str, set[str]]) -> bool:
    """Whether an attribute names a paired word."""
    kind, _, name = attribute.partition(":")
    return name in paired if kind == "gloss" else bool(members.get(name, set()) & paired)


def _read_table(path: Path) -> Iterator[tuple[str, set[str]]]:
    for number, line in read_entries(path, comments="# "):
        word, tab, attributes = line.partition("\t")
        if not (word.strip() and tab and attributes.strip()) or "\t" in attributes:
            raise bad_entry("a word, a tab and attributes separated by spaces", line, path, number)
        yield word.strip(), {*attributes.split()}


def _read_wordnet(folder: Path, kind: WordNetKind) -> Iterator[tuple[str, set[str]]]:
    files = read_files(folder)
    for synsets in files.values():
        for synset in synsets.values():
            attributes = {synset.lexname} if kind == "lexnames" else _find_hypernyms(files, synset)
            yield from ((word, attributes) for word in synset.words)


def _find_hypernyms(files: dict[str, dict[str, Synset]], synset: Synset) -> set[str]:
    """All synsets above one, such as `noun:00001740`."""
    above: set[str] = set()
    open_synsets = [synset]
    while open_synsets:
        for relation, file, offset, _ in open_synsets.pop().pointers:
            key = f"{file.removeprefix('data.')}:{offset}"
            if relation == "hypernym" and key not in above:
                above.add(key)
                open_synsets.append(files[file][offset])
    return above
