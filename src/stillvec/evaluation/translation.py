"""Translation: the rank of a word's translation among the words of the other language (bilingual lexicon induction).

Files: `translation/XX-YY*.tsv` or `.txt` with a word of XX and a word of YY per line; the name gives the languages.
The vectors contain both, each word prefixed with its language (`en:dog`, `de:hund`), as written by `stillvec combine
--method align:tags=en,de`. A word with several translations is one item, and the best rank counts. Candidates are the
`restrict` most frequent words of the other language, ranked by CSLS (Conneau et al. 2018) or cosine. Interval:
percentile bootstrap for MRR, Wilson for P@1.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from stillvec.combination.rotation import cosine_blocks, neighbourhood
from stillvec.errors import DatasetError
from stillvec.evaluation.intervals import Rows
from stillvec.evaluation.item_files import make_items
from stillvec.evaluation.tasks import Answers, Items, Task
from stillvec.heads.dataset_files import columns, count_fields
from stillvec.heads.lookup import Lookup
from stillvec.numerics import unit_rows

_LANGUAGES = re.compile(r"([^\W_]+)[-_]([^\W_]+)")


@dataclass(frozen=True)
class Translation(Task):
    retrieval: Literal["csls", "cosine"] = "csls"
    restrict: int | None = 200_000  # candidates, as in the papers
    sources: int = 10_000  # most frequent words of the first language, by which hubs of the second are measured
    neighbours: int = 10

    files: ClassVar[tuple[str, ...]] = ("translation", ".tsv", ".txt")

    def read(self, path: Path) -> Items:
        languages = _LANGUAGES.match(path.name)
        if languages is None:
            raise DatasetError.expected("a file name with two languages, such as en-de.tsv", repr(path.name), path=path)
        first, second = languages.groups()
        translations: dict[str, dict[str, None]] = {}
        for line, fields in columns(path):
            if len(fields) != 2 or not all(fields):
                raise DatasetError.expected("a word and its translation", count_fields(fields), path=path, line=line)
            translations.setdefault(f"{first}:{fields[0]}", {})[f"{second}:{fields[1]}"] = None
        texts = [(word, *others) for word, others in translations.items()]
        return make_items(path, "a word and its translation", texts)

    def answer(self, lookup: Lookup, items: Items) -> Answers:
        asked = lookup.rows([words[0] for words in items.texts])
        targets = _rows_tagged(lookup, items.texts[0][1], self.restrict)
        place = {row: number for number, row in enumerate(targets.tolist())}
        known = [[place[row] for row in lookup.rows(words[1:]).tolist() if row in place] for words in items.texts]
        covered = (asked >= 0) & np.array([*map(bool, known)])
        reciprocal = np.zeros(len(items))
        # without a known translation no policy for OOV words can answer an item
        chosen = np.flatnonzero(covered if lookup.oov == "skip" else [*map(bool, known)])
        if len(chosen):
            queries = unit_rows(lookup.take(asked[chosen]))
            candidates = unit_rows(lookup.take(targets))
            hubs = self._hubs(lookup, items.texts[0][0], candidates)
            for rows, cosines in cosine_blocks(queries, candidates):
                scores = cosines - hubs  # CSLS / 2 without the term of the query, which changes no rank
                for number, row in zip(chosen[rows], scores, strict=True):
                    best = row[known[number]].max()
                    reciprocal[number] = 1 / (1 + int((row > best).sum()))
        return Answers(covered, {"mrr": reciprocal, "p@1": reciprocal == 1})

    def _hubs(self, lookup: Lookup, asked: str, candidates: NDArray[np.float32]) -> NDArray[np.float32]:
        """Half the mean cosine of each candidate with its nearest words of the first language; 0 for plain cosine."""
        if self.retrieval == "cosine":
            return np.zeros(len(candidates), np.float32)
        frequent = _rows_tagged(lookup, asked, self.sources)
        return np.asarray(neighbourhood(candidates, unit_rows(lookup.take(frequent)), self.neighbours) / 2, np.float32)


def _rows_tagged(lookup: Lookup, like: str, n_max: int | None) -> Rows:
    """The rows of words with the same tag as `like`, the most frequent first."""
    tag = like.partition(":")[0] + ":"
    rows = (row for row, word in enumerate(lookup.vectors.words) if word.startswith(tag))
    return np.fromiter(rows, np.int64)[:n_max]
