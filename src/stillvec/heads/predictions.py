"""What a head says about texts as plain data, for JSON: `stillvec predict --json` and `/v1/predict`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stillvec.heads.canonical_names import CanonicalNames
from stillvec.heads.fitted_head import Explanation, Head

_DIGITS = 6


def describe_predictions(
    head: Head, texts: Sequence[Any], *, explain: bool = False, canonical: CanonicalNames | None = None
) -> list[dict[str, Any]]:
    """Of each text `label` (or `labels`) and `probabilities`, of a sentence for a tagger its `words` with their tags.

    With `explain`, a classifier's `words` have weights towards `explained`, the most likely label; there are `examples`
    of a `knn`, and `experts` of a tagger that has them.
    """
    if head.kind.unit == "tokens":
        return [_describe_tags(why, explain=explain) for why in head.explain(texts)]
    reasons = head.explain(texts) if explain else [None] * len(texts)
    key = "labels" if head.multilabel else "label"
    described = []
    answers = head.predict(texts, canonical), head.predict_proba(texts, canonical)
    for said, likely, why in zip(*answers, reasons, strict=True):
        chances = dict(zip(head.labels, map(_round, likely.tolist()), strict=True))
        found = {key: [*said] if head.multilabel else said, "probabilities": chances}
        described.append(found | ({} if why is None else _describe_reason(why)))
    return described


def _describe_reason(why: Explanation) -> dict[str, Any]:
    if why.examples:
        near = [{"text": text, "label": label, "cosine": _round(cosine)} for text, label, cosine in why.examples]
        return {"explained": why.label, "examples": near}
    return {"explained": why.label, "words": _describe_words(why, "weight")}


def _describe_tags(why: Explanation, *, explain: bool) -> dict[str, Any]:
    words = _describe_words(why, "probability")
    described: dict[str, Any] = {"words": [word | {"tag": tag} for word, tag in zip(words, why.tags, strict=True)]}
    if explain and why.experts:
        described["experts"] = {name: [*map(_round, weights)] for name, weights in why.experts}
    return described


def _describe_words(why: Explanation, name: str) -> list[dict[str, Any]]:
    words: list[dict[str, Any]] = [{"word": word} for word in why.words]
    if why.weights:
        words = [word | {name: _round(weight)} for word, weight in zip(words, why.weights, strict=True)]
    if not why.spans:
        return words
    return [word | {"start": start, "end": end} for word, (start, end) in zip(words, why.spans, strict=True)]


def _round(number: float) -> float:
    return round(number, _DIGITS)
