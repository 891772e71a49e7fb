"""Substitution: does an answer change with a name? (Balasubramanian et al. 2020.)

Every tested text or pair that contains an entry of a list (upper case counts, whole words only, and in both texts of a
pair) is answered again with `times` other entries of the list in its place, the same in both texts. The answers are
those of a probe (`text_probe.py`) that learnt from the training texts, which are not changed.

    accuracy              with the name itself, on the items that have one
    worst, best           the share of items that are right with every name, with at least one; the name itself counts
    stability             the share of items whose answer never changes
    accuracy-substituted  the mean over the other names
    accuracy-removed      with nothing in the place of the name
    names-known           the share of the names put in that are in the vocabulary, every word of them; the others are
                          all alike to vectors, which makes them look stable

With `canonical`, every answer is combined with those for a few canonical names in the place of all names of the list
(RESEMBLE, `heads/canonical_names.py`).

`names` is a file (an entry per line, or the first of columns separated by tabs), the name of one in `names/` of the
data folder (companies, countries, first-female, ...), or `synonyms`: each time one word of four letters or more, which
both texts of a pair have, is replaced by a synonym of WordNet, in any of its senses.

Files: `pairs/*.tsv` and `classification/*`, as for these tasks, where a tested text has an entry. Interval: over items,
Wilson's for a share, else the percentile bootstrap.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import DatasetError, UsageError
from stillvec.evaluation.classification import Classification
from stillvec.evaluation.intervals import Rows
from stillvec.evaluation.pairs import Pairs, read_pairs
from stillvec.evaluation.supervised import LearntItems, share
from stillvec.evaluation.tasks import Answers, Items
from stillvec.evaluation.text_probe import EncodedItems, ProbeTask, encode_items
from stillvec.files import inner_name
from stillvec.files.path_names import files_in
from stillvec.heads.canonical_names import CanonicalNames, NameFinder, Texts, read_names, replace_names
from stillvec.heads.dataset_files import read_labelled
from stillvec.heads.sequence_batches import Representation
from stillvec.heads.splits import Round, whole_datasets, with_tested_first
from stillvec.lexicons import read_lexicon
from stillvec.lexicons.wordnet import find_wordnet
from stillvec.registry import check_least

_QUICK_TIMES, _QUICK_ITEMS = 10, 100
_SYNONYMS, _DEFAULT = "synonyms", "companies"
_WORD = re.compile(r"\w+")
_LEAST = 4  # letters of a word that is replaced by a synonym: shorter ones are seldom what WordNet means


class Substitutes(Protocol):
    """Entries that are found in a text, and what is put in their place."""

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Where entries begin and end."""
        ...

    def draw(
        self, entries: Sequence[str], present: set[str], times: int, generator: np.random.Generator
    ) -> list[dict[str, str]]:
        """For each time, what is put in the place of entries; `present` are all entries of the texts."""
        ...


@dataclass(frozen=True)
class NameList(NameFinder):
    """Names, each of which can stand for every other."""

    def draw(
        self, entries: Sequence[str], present: set[str], times: int, generator: np.random.Generator
    ) -> list[dict[str, str]]:
        others = [name for name in self.names if name not in present]
        order = generator.permutation(len(others))
        if len(others) < len(entries):
            return []
        return [
            {entry: others[order[(time + number) % len(order)]] for number, entry in enumerate(entries)}
            for time in range(min(times, len(others)))
        ]


@dataclass(frozen=True)
class SynonymTable:
    """Words and what each may be replaced by."""

    synonyms: Mapping[str, tuple[str, ...]]

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        return (word.span() for word in _WORD.finditer(text) if len(word[0]) >= _LEAST and word[0] in self.synonyms)

    def draw(
        self, entries: Sequence[str], present: set[str], times: int, generator: np.random.Generator
    ) -> list[dict[str, str]]:
        choices = [(entry, synonym) for entry in entries for synonym in self.synonyms[entry] if synonym not in present]
        order = generator.permutation(len(choices))[:times]
        return [dict([choices[number]]) for number in order]


@dataclass(frozen=True)
class SubstitutedItems(LearntItems):
    variants: tuple[Texts, ...] = ()  # (v,) the items with other names
    item: Rows = field(default_factory=lambda: np.zeros(0, np.int64))  # (v,) which item each is
    inserted: tuple[str, ...] = ()  # (v,) the names put in
    removed: tuple[Texts, ...] = ()  # (n,) the items without the name
    names: tuple[str, ...] = ()  # the list


@dataclass(frozen=True)
class Substitution(ProbeTask):
    names: str = "auto"  # a file, a list of names/ or synonyms; auto: companies
    times: int = 50  # other names per item
    items: int = 1000  # at most so many items of a dataset, drawn at random
    seed: int = 0  # of the draws
    canonical: str = ""  # names joined by +, with which every answer is combined (RESEMBLE)

    files: ClassVar[tuple[str, ...]] = Pairs.files  # and those of classification
    controls: ClassVar[tuple[str, ...]] = ("best", "-known", "-substituted", "-removed")

    def __post_init__(self) -> None:
        super().__post_init__()
        check_least(self, times=1, items=1, seed=0)
        if self.canonical and (self.probe != "logistic" or self.names == _SYNONYMS):
            what = "the logistic probe and a list of names"
            raise UsageError.expected(what, f"{self.probe}, {self.names}", where="setting 'canonical' of substitution")

    def find(self, folder: Path) -> list[Path]:
        if self.names == "auto" and self._file(folder) is None:
            return []
        substitutes = self._substitutes(folder)
        paths = [
            path
            for kind in (Pairs, Classification)
            for path in whole_datasets(folder / kind.files[0], kind.files[1:])
            if _has_entry(substitutes, path)
        ]
        if not paths and self.names != "auto":
            what = f"an entry of {self.names} in a text of pairs/ or classification/"
            raise DatasetError.expected(what, "none", path=folder, code="no-data")
        return paths

    def other_data(self, path: Path) -> tuple[Path, ...]:
        folder = path.parent.parent
        lists = [find_wordnet()] if self.names == _SYNONYMS else [file for file in [self._file(folder)] if file]
        return *lists, *(Pairs().other_data(path) if _is_pairs(path) else ())

    def read(self, path: Path) -> SubstitutedItems:
        reader = Pairs(quick=self.quick) if _is_pairs(path) else Classification(quick=self.quick)
        whole = reader.read(path)
        substitutes = self._substitutes(path.parent.parent)
        times, most = (_QUICK_TIMES, _QUICK_ITEMS) if self.quick else (self.times, self.items)
        draws: dict[int, list[dict[str, str]]] = {}
        for row, texts in enumerate(whole.texts):
            entries, present = _entries(substitutes, texts)
            generator = np.random.default_rng([self.seed, row])
            if entries and (drawn := substitutes.draw(entries, present, times, generator)):
                draws[row] = drawn
        if not draws:
            raise DatasetError.expected(f"an entry of {self.names} in a tested text", "none", path=path)
        chosen = np.random.default_rng(self.seed).permutation([*draws])[:most]
        kept = [replace(split, test=split.test[np.isin(split.test, chosen)]) for split in whole.rounds]
        order, rounds = with_tested_first([split for split in kept if len(split.test)])
        everything = [whole.all_texts[row] for row in order]
        labels = tuple(whole.labels[row] for row in order)
        n = sum(len(split.test) for split in rounds)
        variants = [(number, mapping) for number in range(n) for mapping in draws[int(order[number])]]
        return SubstitutedItems(
            tuple(everything[:n]),
            np.array(labels[:n], np.float64),
            (),
            tuple(everything[n:]),
            labels,
            rounds,
            tuple(_substitute(substitutes, everything[number], mapping) for number, mapping in variants),
            np.array([number for number, _ in variants], np.int64),
            tuple(" ".join(mapping.values()) for _, mapping in variants),
            tuple(
                _substitute(substitutes, everything[number], dict.fromkeys(draws[int(order[number])][0], ""))
                for number in range(n)
            ),
            substitutes.names if isinstance(substitutes, NameList) else (),
        )

    def answer_steps(self, lookup: Representation, items: Items) -> Generator[float, None, Answers]:
        assert isinstance(items, SubstitutedItems)
        n, n_all, n_variants = len(items), len(items.all_texts), len(items.variants)
        asked = [*items.all_texts, *items.variants, *items.removed]
        versions, version_of = self._vary(asked, items.names)
        texts = [*asked, *versions]
        table = yield from share(0, 2, encode_items(lookup, texts, slice(n, n_all)))
        labels = np.array(items.labels, np.int64)
        parts: list[Rows] = []
        for number, split in enumerate(items.rounds, 1):
            rows = np.concatenate(
                [
                    split.test,
                    n_all + np.flatnonzero(np.isin(items.item, split.test)),
                    n_all + n_variants + split.test,
                ]
            )
            said = self._answer(table, labels, split, rows, version_of)
            parts = parts or [np.zeros((len(asked), said.shape[1]), np.int64)]
            parts[0][rows] = said
            yield (1 + number / len(items.rounds)) / 2
        own, other, removed = parts[0][:n], parts[0][n_all : n_all + n_variants], parts[0][n_all + n_variants :]
        counts = lookup.count_words(items.inserted)
        known = (counts[:, 0] == counts[:, 1]) & (counts[:, 0] > 0)
        values = compare_answers(labels[:n], items.item, own, other, removed, known)
        return Answers(table.is_covered(np.arange(n)), values)

    def _vary(self, items: Sequence[Texts], names: tuple[str, ...]) -> tuple[list[Texts], Rows]:
        if not self.canonical:
            return [], np.zeros(0, np.int64)
        return self._canonical_names(names).vary(items)

    def _answer(self, table: EncodedItems, labels: Rows, split: Round, rows: Rows, version_of: Rows) -> Rows:
        """The labels of rows (n, seeds); `version_of` are the rows whose versions come after all others."""
        if not self.canonical:
            return self.predict_labels(table, labels, split, rows)
        place = np.full(len(table.places), -1)
        place[rows] = np.arange(len(rows))
        chosen = np.flatnonzero(place[version_of] >= 0)
        first = len(table.places) - len(version_of)
        scores = self.score_labels(table, labels, split, np.concatenate([rows, first + chosen]))
        chances = np.exp(scores - np.logaddexp.reduce(scores, axis=1, keepdims=True))
        own, others = chances[: len(rows)], chances[len(rows) :]
        combined = self._canonical_names(()).combine(own, others, place[version_of[chosen]])
        return np.asarray(combined.argmax(axis=1), np.int64)[:, None]

    def _canonical_names(self, names: tuple[str, ...]) -> CanonicalNames:
        return CanonicalNames(names, tuple(self.canonical.split("+")))

    def _substitutes(self, folder: Path) -> Substitutes:
        if self.names == _SYNONYMS:
            return SynonymTable(_read_synonyms())
        path = self._file(folder)
        if path is None:
            lists = [_stem(file) for file in _name_files(folder)]
            raise UsageError.unknown("list of names", self.names, [*lists, _SYNONYMS], where=str(folder / "names"))
        return NameList(read_names(path))

    def _file(self, folder: Path) -> Path | None:
        """The file of the names, if there is one."""
        name = _DEFAULT if self.names == "auto" else self.names
        if self.names != "auto" and Path(name).expanduser().is_file():
            return Path(name).expanduser()
        return next((file for file in _name_files(folder) if _stem(file) == name), None)


def compare_answers(
    gold: Rows, item: Rows, own: Rows, other: Rows, removed: Rows, known: NDArray[np.bool_]
) -> dict[str, NDArray[Any]]:
    """The answers (n, seeds) to the items and to their variants (v, seeds) of the items `item` (v,), by metric."""
    right, same = other == gold[item][:, None], other == own[item]
    worst, best = own == gold[:, None], own == gold[:, None]
    stable = np.ones(own.shape, bool)
    np.logical_and.at(worst, item, right)
    np.logical_or.at(best, item, right)
    np.logical_and.at(stable, item, same)
    n_variants, n_known = (np.bincount(rows, minlength=len(gold)) for rows in (item, item[known]))
    substituted = np.zeros(own.shape)
    np.add.at(substituted, item, right)
    shares = {
        "accuracy": own == gold[:, None],
        "worst": worst,
        "best": best,
        "stability": stable,
        "accuracy-removed": removed == gold[:, None],
    }
    single = own.shape[1] == 1
    return {
        **{name: values[:, 0] if single else values.mean(axis=1) for name, values in shares.items()},
        "accuracy-substituted": (substituted / np.maximum(n_variants, 1)[:, None]).mean(axis=1),
        "names-known": n_known / np.maximum(n_variants, 1),
    }


@cache
def _read_synonyms() -> Mapping[str, tuple[str, ...]]:
    """The synonyms of each word of WordNet."""
    synonyms: dict[str, dict[str, None]] = {}
    for edge in read_lexicon("wordnet"):
        if edge.relation == "synonym":
            synonyms.setdefault(edge.left, {})[edge.right] = None
            synonyms.setdefault(edge.right, {})[edge.left] = None
    return {word: tuple(others) for word, others in synonyms.items()}


def _entries(substitutes: Substitutes, texts: Texts) -> tuple[list[str], set[str]]:
    """The entries that all texts have, in the order of the first, and those that any of them has."""
    by_text = [dict.fromkeys(text[start:end] for start, end in substitutes.spans(text)) for text in texts]
    shared = [entry for entry in by_text[0] if all(entry in entries for entries in by_text)]
    return shared, {entry for entries in by_text for entry in entries}


def _substitute(substitutes: Substitutes, texts: Texts, mapping: Mapping[str, str]) -> Texts:
    return tuple(replace_names(text, substitutes.spans(text), mapping) for text in texts)


def _is_pairs(path: Path) -> bool:
    return path.parent.name == Pairs.files[0]


def _has_entry(substitutes: Substitutes, path: Path) -> bool:
    """Whether a text or pair of a file has an entry; also true of a file that cannot be read, which `read` reports."""
    pairs, labelled = (read_pairs(path), ()) if _is_pairs(path) else ((), read_labelled(path))
    texts: Iterator[Texts] = chain(((pair.first, pair.second) for pair in pairs), ((text,) for _, text in labelled))
    try:
        return any(_entries(substitutes, item)[0] for item in texts)
    except DatasetError:
        return True


def _name_files(folder: Path) -> list[Path]:
    return files_in(folder / "names", (".tsv", ".txt"))


def _stem(path: Path) -> str:
    return Path(inner_name(path)).stem
