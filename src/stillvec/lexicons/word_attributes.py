"""What a lexicon says about each word: the sememes of HowNet, or the categories and hypernyms of WordNet.

The senses of a word are merged, and so are words that differ only in case.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from stillvec.lexicons.edge_lines import bad_entry, empty_file, read_entries
from stillvec.lexicons.wordnet import Synset, find_wordnet, read_files
from stillvec.vocabulary.folding import fold

WordNetKind = Literal["hypernyms", "lexnames"]
Attributes = dict[str, frozenset[str]]
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
