"""Linguistic profile of a sentence: numeric CoNLL-U features as in Profiling-UD (Brunato et al. 2020).

Three groups: `raw` (length, characters per word, type/token ratio of forms and lemmas), `morphosyntax` (distributions
of parts of speech and of mood, number, person, tense and form of verbs and auxiliaries, lexical density), `syntax`
(depth, links, clauses, order, subordination, distribution of relations). A mean over no words is 0. Feature names are
those of Profiling-UD.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from stillvec.evaluation.intervals import Floats
from stillvec.evaluation.treebank import Sentence, Token

_CONTENT = {"NOUN", "PROPN", "VERB", "ADJ", "ADV"}
_NOMINAL = {"NOUN", "PROPN", "PRON"}
_SUBORDINATE = {"acl", "advcl", "ccomp", "csubj", "xcomp"}
_VERB_FEATURES = {"Mood": "mood", "Number": "num", "Person": "pers", "Tense": "tense", "VerbForm": "form"}
_RARE = 0.05  # minimum share of sentences without the most frequent value of a feature

Numbers = Iterator[tuple[str, float]]


def profile(sentence: Sentence) -> dict[str, dict[str, float]]:
    """Compute all features of a sentence: group → name → value."""
    return {group: dict(measure(sentence)) for group, measure in _GROUPS.items()}


def table(sentences: Sequence[Sentence]) -> tuple[tuple[str, ...], Floats]:
    """Names (`group:name`) and values (n, f) of the features that vary in at least 5% of the sentences."""
    rows = [
        {f"{group}:{name}": value for group, features in profile(sentence).items() for name, value in features.items()}
        for sentence in sentences
    ]
    names = sorted({name for row in rows for name in row})
    numbers = np.array([[row.get(name, 0.0) for name in names] for row in rows])
    mode_counts = np.array([np.unique(column, return_counts=True)[1].max() for column in numbers.T])
    varies = mode_counts <= (1 - _RARE) * len(sentences)
    return tuple(name for name, keep in zip(names, varies, strict=True) if keep), numbers[:, varies]


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
        tokens = [token.features for token in sentence if token.upos == kind]
        for feature, short in _VERB_FEATURES.items():
            yield from _shares(f"{name}_{short}_dist", (values[feature] for values in tokens if feature in values))


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
    """Verbal heads, clause length and verb arity; punctuation and auxiliaries do not count as dependents."""
    verbs = [at for at, token in enumerate(sentence, 1) if token.upos == "VERB"]
    edges = Counter(token.head for token in sentence if token.upos != "PUNCT" and token.relation != "aux")
    yield "verbal_head_dist", len(verbs)
    yield "verbal_root_perc", float(any(token.upos == "VERB" and not token.head for token in sentence))
    yield "avg_token_per_clause", len(sentence) / len(verbs) if verbs else 0.0
    yield "avg_verb_edges", _mean(edges[at] for at in verbs)
    yield from _shares("verbal_arity", (str(edges[at]) for at in verbs))


def _chains(sentence: Sentence, length: str, share: str, belongs: Callable[[Sentence, int], bool]) -> Numbers:
    """Mean length of chains of consecutive links of one kind, and the distribution of lengths."""
    inside = {at for at in range(1, len(sentence) + 1) if belongs(sentence, at)}
    lengths: list[int] = []
    for at in inside - {sentence[at - 1].head for at in inside}:
        chain = {at}
        while (at := sentence[at - 1].head) in inside and at not in chain:
            chain.add(at)
        lengths.append(len(chain))
    yield f"avg_{length}", _mean(lengths)
    yield from _shares(share, (str(n_links) for n_links in lengths))


def _is_prepositional(sentence: Sentence, at: int) -> bool:
    token = sentence[at - 1]
    nominal = token.head and sentence[token.head - 1].upos in _NOMINAL and token.relation == "nmod"
    return bool(nominal) and any(child.head == at and child.relation == "case" for child in sentence)


def _is_subordinate(sentence: Sentence, at: int) -> bool:
    return sentence[at - 1].relation in _SUBORDINATE


def _depths(sentence: Sentence) -> list[int]:
    """Number of links from each word to the root; a cycle counts each of its words once."""

    def depth(token: Token) -> int:
        seen: set[int] = set()
        while token.head and token.head not in seen:
            seen.add(token.head)
            token = sentence[token.head - 1]
        return len(seen)

    return [depth(token) for token in sentence]


def _shares(name: str, values: Iterable[str]) -> Numbers:
    counts = Counter(values)
    total = counts.total()
    return ((f"{name}_{value}", number / total) for value, number in counts.items())


def _mean(values: Iterable[float]) -> float:
    numbers = [*values]
    return float(sum(numbers) / len(numbers)) if numbers else 0.0
