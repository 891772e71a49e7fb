"""A term from its definition: where is the right term among all terms of a glossary (Hill et al. 2016)?

The definition and every term become the mean of their words (of a teacher: its own vector of the text), and the terms
are ranked by their cosine with the definition.

    mrr           the mean of 1 / rank of the right term; terms with equal cosines count before it
    hits@1, @10   the share of definitions whose term is the first, among the first ten
    mrr-sif       the same with words weighted by a / (a + f), as in `sentences`, if the vocabulary has counts: function
                  words fill definitions, and some methods give them long vectors
    mrr-spelling  the same by letters: the cosine of counts of three letters, weighted by their rarity among the terms
    mrr-random    the same for an order at random: the mean of 1 / rank over all ranks

The words of the term are removed from the definition before, with all words that begin with the same four letters, so
that spelling does not give it away.

Files: `glossaries/*.tsv` with a term and its definition per line (`stillvec glossary` makes one from a corpus); a first
line `term definition` is a header. A term may have several definitions, each of which is an item. An item is covered if
a word of its term and a word of its definition have a vector; candidates are the terms of all covered items, on common
words those of the items that all sets cover. Interval: percentile bootstrap over definitions, Wilson's for hits.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from stillvec.errors import DatasetError
from stillvec.evaluation.intervals import Floats, Rows
from stillvec.evaluation.item_files import make_items
from stillvec.evaluation.tasks import Answers, ContextualTask, Items
from stillvec.heads.dataset_files import count_fields, lines
from stillvec.heads.lookup import Lookup
from stillvec.heads.sequence_batches import Representation
from stillvec.numerics import unit_rows
from stillvec.refinement.sif import weigh_words

_BLOCK = 1024  # definitions at once
_WORD = re.compile(r"\w+")
_SHARED = 4  # letters
_PLAIN, _SIF = "vectors", "vectors-sif"  # arrays (2, n, dim) beside the ranks: terms, definitions
_A = 1e-3  # constant of the SIF weights (Arora et al. 2017)


@dataclass(frozen=True)
class Glossary(ContextualTask):
    files: ClassVar[tuple[str, ...]] = ("glossaries", ".tsv")
    item_unit: ClassVar[Literal["word", "text"]] = "text"
    controls: ClassVar[tuple[str, ...]] = ("-spelling", "-random")
    takes_encoders: ClassVar[bool] = True

    def read(self, path: Path) -> Items:
        """Terms and definitions; a definition of which nothing is left without the words of the term is left out."""
        texts: list[tuple[str, ...]] = []
        for number, line in lines(path):
            fields = [field.strip() for field in line.split("\t")]
            if not any(fields) or line.startswith("#") or (not texts and [*map(str.lower, fields)] == _HEADER):
                continue
            if len(fields) != 2 or not all(fields):
                raise DatasetError.expected("a term and a definition", count_fields(fields), path=path, line=number)
            if definition := remove_term(*fields):
                texts.append((fields[0], definition))
        return make_items(path, "a term, a tab and a definition", texts)

    def answer_steps(self, lookup: Representation, items: Items) -> Generator[float, None, Answers]:
        terms, definitions = ([text[side] for text in items.texts] for side in (0, 1))
        texts = [*terms, *definitions]
        vectors = {_PLAIN: (yield from lookup.encode_texts_steps(texts))}
        if isinstance(lookup, Lookup) and lookup.vectors.vocabulary.counts.any():
            vectors[_SIF] = _weigh_words(lookup).encode_texts(texts)
        vectors = {name: unit_rows(rows).reshape(2, len(items), -1) for name, rows in vectors.items()}
        known = (lookup.count_words(texts)[:, 0] > 0).reshape(2, -1)
        covered = known[0] & known[1]
        chosen = np.flatnonzero(covered) if lookup.oov == "skip" else np.arange(len(items))
        return self.narrow(items, Answers(covered, vectors), chosen)

    def narrow(self, items: Items, answers: Answers, chosen: Rows) -> Answers:
        """The ranks of the chosen definitions among the terms of these."""
        vectors = {name: answers.values[name] for name in (_PLAIN, _SIF) if name in answers.values}
        names = [items.texts[at][0].casefold() for at in chosen]
        definitions = [items.texts[at][1] for at in chosen]
        first, term = np.unique(names, return_index=True, return_inverse=True)[1:] if names else (chosen, chosen)
        tables = {
            name: (rows[0][chosen][first], rows[1][chosen]) for name, rows in vectors.items()
        }  # (t, dim), (n, dim)
        tables["letters"] = count_letters([names[at] for at in first], definitions)
        ranks = {name: np.full(len(items), np.inf) for name in tables}
        for name, (candidates, queries) in tables.items() if len(chosen) else ():
            ranks[name][chosen] = rank_terms(queries, candidates, term)
        chance = np.full(len(items), np.mean(1 / np.arange(1, len(first) + 1)) if len(first) else 0.0)
        values = {"mrr": 1 / ranks[_PLAIN], "hits@1": ranks[_PLAIN] <= 1, "hits@10": ranks[_PLAIN] <= 10}
        values |= {"mrr-sif": 1 / ranks[_SIF]} if _SIF in ranks else {}
        controls = {"mrr-spelling": 1 / ranks["letters"], "mrr-random": chance}
        return Answers(answers.covered, values | controls | vectors)


_HEADER = ["term", "definition"]


def _weigh_words(lookup: Lookup) -> Lookup:
    """The same with each row times its SIF weight, a / (a + f), less what it contains of it."""
    vectors = lookup.vectors
    weights = weigh_words(vectors, _A)
    return Lookup(
        vectors.with_matrix(vectors.matrix * weights[:, None]), "zero" if lookup.oov == "subword" else lookup.oov
    )


def remove_term(term: str, definition: str) -> str:
    """The definition without the words of the term and those that begin with the same four letters."""
    words = {word.casefold() for word in _WORD.findall(term)}
    starts = tuple({word[:_SHARED] for word in words if len(word) >= _SHARED})

    def keep(match: re.Match[str]) -> str:
        word = match[0].casefold()
        return "" if word in words or (starts and word.startswith(starts)) else match[0]

    rest = _WORD.sub(keep, definition)
    return " ".join(rest.split()) if _WORD.search(rest) else ""


def rank_terms(definitions: Any, candidates: Any, term: Rows) -> Floats:
    """The rank of the right term (n,), from 1; `term` is its row among the candidates. Rows have unit length."""
    ranks = np.zeros(len(term))
    for start in range(0, len(term), _BLOCK):
        block = definitions[start : start + _BLOCK] @ candidates.T
        cosines = (block if isinstance(block, np.ndarray) else block.toarray()).astype(np.float64).round(7)
        own = np.take_along_axis(cosines, term[start : start + _BLOCK, None], 1)
        ranks[start : start + _BLOCK] = (cosines >= own).sum(axis=1)
    return ranks


def count_letters(terms: Sequence[str], definitions: Sequence[str]) -> tuple[Any, Any]:
    """Sparse unit rows of terms and definitions: counts of three letters in words, weighted by rarity in terms."""
    from scipy.sparse import csr_array, diags_array

    place: dict[str, int] = {}
    counts = [Counter(place.setdefault(part, len(place)) for part in _parts(text)) for text in (*terms, *definitions)]
    rows = np.repeat(np.arange(len(counts)), [*map(len, counts)])
    cells = rows, np.array([column for row in counts for column in row], np.int64)
    values = np.array([value for row in counts for value in row.values()], np.float64)
    table = csr_array((values, cells), shape=(len(counts), max(len(place), 1)))
    n_with = (table[: len(terms)] > 0).sum(axis=0)
    weighted = table @ diags_array(np.log((1 + len(terms)) / np.maximum(n_with, 1)))
    lengths = np.sqrt((weighted * weighted).sum(axis=1))
    units = csr_array(diags_array(1 / np.where(lengths > 0, lengths, 1)) @ weighted)
    return units[: len(terms)], units[len(terms) :]


def _parts(text: str) -> list[str]:
    words = (f"<{word}>" for word in _WORD.findall(text.casefold()))
    return [word[at : at + 3] for word in words for at in range(len(word) - 2)]
