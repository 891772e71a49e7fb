"""Snippets: the part of a passage that is nearest to a query, and where its words are."""

from __future__ import annotations

from collections.abc import Sequence

from stillvec.corpus import sentence_ends
from stillvec.search.text_encoder import TextEncoder
from stillvec.vocabulary import WordMatcher

WIDTH = 240  # characters


class SnippetMaker:
    """Makes the snippets of the hits of one query."""

    def __init__(self, query: str, words: Sequence[str], encoder: TextEncoder) -> None:
        self._encoder = encoder
        self._query = encoder.encode([query])[0]
        salient = encoder.select_salient(words)
        self._matcher = WordMatcher(encoder.vectors.vocabulary.like(salient)) if salient else None

    def make(self, text: str) -> tuple[str, list[tuple[int, int]]]:
        """A snippet of at most `WIDTH` characters, and the (start, end) of the query's words in it."""
        flat = " ".join(text.split())
        spans = self._match(flat)
        if len(flat) > WIDTH:
            start = self._find_start(flat, spans)
            flat = _cut(flat, start)
            spans = self._match(flat)
        return flat, spans

    def _match(self, text: str) -> list[tuple[int, int]]:
        if self._matcher is None:
            return []
        match = self._matcher.match([text])
        chosen = match.ids >= 0
        return [*zip(match.starts[chosen].tolist(), match.ends[chosen].tolist(), strict=True)]

    def _find_start(self, text: str, spans: Sequence[tuple[int, int]]) -> int:
        """The start of the sentence with the highest cosine, more for each of the query's words in it."""
        ends = sentence_ends(text)
        starts = [0, *ends[:-1]]
        cosines = self._encoder.encode([text[a:b] for a, b in zip(starts, ends, strict=True)]) @ self._query
        words = [sum(a <= start < b for start, _ in spans) for a, b in zip(starts, ends, strict=True)]
        scores = [cosine + 0.1 * n_words for cosine, n_words in zip(cosines.tolist(), words, strict=True)]
        start = starts[scores.index(max(scores))]
        first = next((at for at, _ in spans if at >= start), start)
        return first - WIDTH // 3 if first - start > WIDTH // 2 else start  # in a long sentence, near its first match


def _cut(text: str, start: int) -> str:
    """`WIDTH` characters from `start` or earlier, between words, with dots where text is left out."""
    start = max(0, min(start, len(text) - WIDTH))
    if start:
        start = text.find(" ", start) + 1 or start
    room = WIDTH - (2 if start else 0)
    end = len(text)
    if end - start > room:
        end = text.rfind(" ", start + room // 2, start + room - 2)
        end = end if end > 0 else start + room - 2
    return f"{'… ' if start else ''}{text[start:end].strip()}{' …' if end < len(text) else ''}"
