"""The profile of a sentence: what CoNLL-U tells of it in numbers, after Profiling-UD (Brunato et al. 2020).

Three groups: `raw` (length, characters a word, different forms and lemmas), `morphosyntax` (shares of parts of speech,
of moods, numbers, persons, tenses and forms of verbs and auxiliaries, lexical density), `syntax` (depth, links,
clauses, order, subordination, shares of relations). A share of nothing is 0. Names are Profiling-UD's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from stillvec.evaluation.treebank import Sentence, Token

_CONTENT = {"NOUN", "PROPN", "VERB", "ADJ", "ADV"}
_NOMINAL = {"NOUN", "PROPN", "PRON"}
_SUBORDINATE = {"acl", "advcl", "ccomp", "csubj", "xcomp"}
_VERB_FEATURES = {"Mood": "mood", "Number": "num", "Person": "pers", "Tense": "tense", "VerbForm": "form"}
_RARE = 0.05  # of the sentences: a number that is the same in all others is left out

Numbers = Iterator[tuple[str, float]]


def profile(sentence: Sentence) -> dict[str, dict[str, float]]:
    """Group → name → number."""
    return {group: dict(measure(sentence)) for group, measure in _GROUPS.items()}


def table(sentences: Sequence[Sentence]) -> tuple[tuple[str, ...], NDArray[np.float64]]:
    """Names (`group:name`) and numbers (n, f) of what varies in at least one sentence of twenty."""
    rows = [{f"{g}:{k}": v for g, of in profile(each).items() for k, v in of.items()} for each in sentences]
    names = sorted({name for row in rows for name in row})
    numbers = np.array([[row.get(name, 0.0) for name in names] for row in rows])
    usual = np.array([np.unique(column, return_counts=True)[1].max() for column in numbers.T])
    kept = usual <= (1 - _RARE) * len(sentences)
    return tuple(name for name, keep in zip(names, kept, strict=True) if keep), numbers[:, kept]


def _raw(sentence: Sentence) -> Numbers:
    words = [token for token in sentence if token.upos != "PUNCT"]
    yield "sent_length", len(sentence)
    yield "char_per_tok", _mean(len(token.form) for token in words)
    yield "ttr_form", len({token.form.lower() for token in sentence}) / len(sentence)
    yield "ttr_lemma", len({token.lemma.lower() for token in sentence}) / len(sentence)


def _morphosyntax(sentence: Sentence) -> Numbers:
    yield from _shares("upos_dist", (token.upos for token in sentence))
    yield from _shares("xpos_dist", (token.xpos for token in sentence))
    yield "lexical_density", _mean(token.upos in _CONTENT for token in sentence if token.upos != "PUNCT")
    for kind, name in (("VERB", "verbs"), ("AUX", "aux")):
        held = [token.features for token in sentence if token.upos == kind]
        for feature, short in _VERB_FEATURES.items():
            yield from _shares(f"{name}_{short}_dist", (each[feature] for each in held if feature in each))


def _syntax(sentence: Sentence) -> Numbers:
    links = [(at, token) for at, token in enumerate(sentence, 1) if token.head and token.upos != "PUNCT"]
    lengths = [abs(at - token.head) for at, token in links]
    yield "parse_depth", max(_depths(sentence))
    yield "avg_links_len", _mean(lengths)
    yield "max_links_len", max(lengths, default=0)
    yield from _shares("dep_dist", (token.relation for token in sentence))
    yield "subj_pre", _mean(at < token.head for at, token in links if token.relation in ("nsubj", "csubj"))
    yield "obj_post", _mean(at > token.head for at, token in links if token.relation == "obj")
    yield from _verbs(sentence)
    yield from _chains(sentence, "prepositional_chain_len", "prep_dist", _is_prepositional)
    yield from _chains(sentence, "subordinate_chain_len", "subordinate_dist", _is_subordinate)
    subordinate = [(at, token) for at, token in links if token.relation in _SUBORDINATE]
    principal = sum(token.relation in ("root", "parataxis") for token in sentence)
    yield "principal_proposition_dist", principal / max(1, len(subordinate) + principal)
    yield "subordinate_proposition_dist", len(subordinate) / max(1, len(subordinate) + principal)
    yield "subordinate_post", _mean(at > token.head for at, token in subordinate)


_GROUPS: dict[str, Callable[[Sentence], Numbers]] = {"raw": _raw, "morphosyntax": _morphosyntax, "syntax": _syntax}
GROUPS = tuple(_GROUPS)


def _verbs(sentence: Sentence) -> Numbers:
    """Clauses by their verbs, and what depends on these, but for marks and auxiliaries."""
    verbs = [at for at, token in enumerate(sentence, 1) if token.upos == "VERB"]
    edges = Counter(token.head for token in sentence if token.upos != "PUNCT" and token.relation != "aux")
    yield "verbal_head_dist", len(verbs)
    yield "verbal_root_perc", float(any(token.upos == "VERB" and not token.head for token in sentence))
    yield "avg_token_per_clause", len(sentence) / len(verbs) if verbs else 0.0
    yield "avg_verb_edges", _mean(edges[at] for at in verbs)
    yield from _shares("verbal_arity", (str(edges[at]) for at in verbs))


def _chains(sentence: Sentence, length: str, share: str, belongs: Callable[[Sentence, int], bool]) -> Numbers:
    """Links of one kind that hang on each other: how long such chains are, and the share of each length."""
    inside = {at for at in range(1, len(sentence) + 1) if belongs(sentence, at)}
    ends: list[int] = []
    for at in inside - {sentence[at - 1].head for at in inside}:
        chain = {at}
        while (at := sentence[at - 1].head) in inside and at not in chain:
            chain.add(at)
        ends.append(len(chain))
    yield f"avg_{length}", _mean(ends)
    yield from _shares(share, (str(each) for each in ends))


def _is_prepositional(sentence: Sentence, at: int) -> bool:
    token = sentence[at - 1]
    nominal = token.head and sentence[token.head - 1].upos in _NOMINAL and token.relation == "nmod"
    return bool(nominal) and any(each.head == at and each.relation == "case" for each in sentence)


def _is_subordinate(sentence: Sentence, at: int) -> bool:
    return sentence[at - 1].relation in _SUBORDINATE


def _depths(sentence: Sentence) -> list[int]:
    """Links between each word and the root; a circle counts each of its words once."""

    def depth(token: Token) -> int:
        seen: set[int] = set()
        while token.head and token.head not in seen:
            seen.add(token.head)
            token = sentence[token.head - 1]
        return len(seen)

    return [depth(token) for token in sentence]


def _shares(name: str, values: Iterable[str]) -> Numbers:
    held = Counter(values)
    total = held.total()
    return ((f"{name}_{value}", number / total) for value, number in held.items())


def _mean(values: Iterable[float]) -> float:
    held = [*values]
    return float(sum(held) / len(held)) if held else 0.0
