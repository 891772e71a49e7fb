"""`TextMeans`: the mean of the vectors of the words of each text."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from stillvec.numerics.array_types import Floats32, Matrix
from stillvec.subwords import SubwordTable
from stillvec.vocabulary import WordMatcher
from stillvec.vocabulary.folding import fold


class TextMeans:
    """Means over the words that `matcher` finds; with a subword table, OOV words count with the largest weight."""

    def __init__(self, matrix: Matrix, matcher: WordMatcher, subwords: SubwordTable | None, *, lowercase: bool) -> None:
        self.matrix = matrix
        self.matcher = matcher
        self.subwords = subwords
        self.lowercase = lowercase

    def encode_one(self, text: str, weight: Floats32 | None) -> Floats32:
        """The same numbers as `encode` without a sparse matrix, whose construction takes longer than a short text."""
        rows = self.matcher.match_rows([text])[0]
        known = rows[rows >= 0]
        if self.subwords is not None and len(known) < len(rows):
            return np.asarray(self.encode([text], weight)[0])
        vectors = np.asarray(self.matrix[known], np.float32)  # (W, dim)
        total = float(len(known))
        if weight is not None:
            weights = weight[known]
            vectors, total = vectors * weights[:, None], float(weights.sum(dtype=np.float64))
        return np.asarray(vectors.sum(axis=0) / np.float32(total if total > 0 else 1), np.float32)

    def encode(self, texts: Sequence[str], weight: Floats32 | None) -> Floats32:
        """The mean of each text (n, dim), of words that count as `weight` (V,) says."""
        from scipy.sparse import csr_array

        rows, text = self.matcher.match_rows(texts)
        known = rows >= 0
        oov = np.unique(text[~known]) if self.subwords is not None else ()
        rows, text = rows[known], text[known]
        weights = np.ones(len(rows), np.float32) if weight is None else weight[rows]  # (W,)
        ends = np.cumsum(np.bincount(text, minlength=len(texts)))
        table = self.matrix
        if table.dtype != np.float32 or not table.flags.c_contiguous:  # convert only the rows that are used
            used, place = np.unique(rows, return_inverse=True)
            rows = place.astype(np.int32)
            table = np.ascontiguousarray(table[used], np.float32)
        start = np.concatenate([np.zeros(1, np.int64), ends])
        sums = csr_array((weights, rows, start), shape=(len(texts), len(table))) @ np.asarray(table)
        totals = np.bincount(text, weights, len(texts)).astype(np.float64)
        if len(oov) and self.subwords is not None:
            heaviest = 1 if weight is None else weight.max(initial=1)
            more, times = self._sum_oov([texts[at] for at in oov], self.subwords)
            sums[oov] += heaviest * more
            totals[oov] += heaviest * times
        sums /= np.where(totals > 0, totals, 1)[:, None].astype(np.float32)
        return np.asarray(sums, np.float32)

    def _sum_oov(self, texts: Sequence[str], subwords: SubwordTable) -> tuple[Floats32, Floats32]:
        """The sum of the vectors of the OOV words of each text (n, dim), and their number (n,)."""
        from scipy.sparse import csr_array

        matches = self.matcher.match(texts)
        chosen = np.flatnonzero(matches.ids < 0)
        place: dict[str, int] = {}
        columns = (part[chosen].tolist() for part in (matches.text_index, matches.starts, matches.ends))
        spans = zip(*columns, strict=True)
        at = [place.setdefault(texts[text][start:end], len(place)) for text, start, end in spans]
        ones = np.ones(len(at), np.float32)
        counts = csr_array((ones, (matches.text_index[chosen], at)), shape=(len(texts), len(place)))
        times = np.bincount(matches.text_index[chosen], minlength=len(texts)).astype(np.float32)
        return np.asarray(counts @ subwords.vectors([fold(word, self.lowercase) for word in place])), times


def find_smoothing(provenance: Mapping[str, Any]) -> list[float]:
    """The SIF constants of the weights that rows contain, as their provenance says."""
    notes, refined = provenance.get("notes"), provenance.get("refined")
    contained = [notes.get("smoothing")] if isinstance(notes, Mapping) else []
    for record in refined if isinstance(refined, list) else ():
        if record.get("step") in ("normalize", "unit"):
            contained = []
        elif record.get("step") in ("sif", "weight"):
            settings = record.get("settings") or {}
            contained.append(settings.get("a") if settings.get("frequencies", "counts") == "counts" else None)
    return [float(a) for a in contained if isinstance(a, int | float) and a > 0]
