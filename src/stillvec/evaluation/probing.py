"""Probing: linguistic properties of sentences, predicted from pooled word vectors (Miaschi & Dell'Orletta 2020).

Data: `tagging/*.conllu`. The targets are numeric features of each sentence with the names of Profiling-UD (Brunato et
al. 2020): `raw` (length, characters per word, type/token ratio of forms and lemmas), `morphosyntax` (distributions of
parts of speech and of mood, number, person, tense and form of verbs and auxiliaries, lexical density), `syntax` (depth,
links, clauses, order, subordination, distribution of relations). A mean over no words is 0. Ridge regression
predicts each feature from the mean and the sum of the known words' rows, with the penalty chosen on the development
set. The score is Spearman's ρ on the test set, averaged over the features of a group. The paper uses support vector
regression; with ridge, all features share one matrix decomposition.

Word identity and sentence length explain most of such a score, so there are two controls: `-random`, the same probe on
random word vectors of the same dimension, and `-length`, a probe that sees only the length. The information in the
vectors is the difference from the controls. `each` also reports every feature separately.

An item is a sentence, covered if at least one of its words is known. Interval: percentile bootstrap over sentences,
with ranks computed once on all sentences.
"""

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from stillvec.evaluation.intervals import Estimate, Floats, Resampling, Rows
from stillvec.evaluation.supervised import LearntItems, estimates, share
from stillvec.evaluation.tasks import Answers, Items, TokenTask
from stillvec.heads.linear_probe import PENALTIES, RidgePath
from stillvec.heads.pooling import POOLINGS, split_poolings
from stillvec.heads.sequence_batches import PADDING, UNKNOWN, Representation, Sequences
from stillvec.heads.splits import Round, pool_parts
from stillvec.heads.treebank import Sentence, Token, conllu

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
    with_case = {token.head for token in sentence if token.relation == "case"}
    nominal = {at for at, token in enumerate(sentence, 1) if token.upos in _NOMINAL}
    modifiers = {at for at, token in enumerate(sentence, 1) if token.relation == "nmod" and token.head in nominal}
    yield from _chains(sentence, "prepositional_chain_len", "prep_dist", modifiers & with_case)
    clauses = {at for at, token in enumerate(sentence, 1) if token.relation in _SUBORDINATE}
    yield from _chains(sentence, "subordinate_chain_len", "subordinate_dist", clauses)
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


def _chains(sentence: Sentence, length: str, share: str, inside: set[int]) -> Numbers:
    """Mean length of chains of consecutive links from the words `inside`, and the distribution of lengths."""
    lengths: list[int] = []
    for at in inside - {sentence[at - 1].head for at in inside}:
        chain = {at}
        while (at := sentence[at - 1].head) in inside and at not in chain:
            chain.add(at)
        lengths.append(len(chain))
    yield f"avg_{length}", _mean(lengths)
    yield from _shares(share, (str(n_links) for n_links in lengths))


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


_QUICK = 3000  # training sentences
_EMPTY = np.zeros((0, 0))


@dataclass(frozen=True)
class ProfiledItems(LearntItems):
    names: tuple[str, ...] = ()  # (f,) group:name
    numbers: Floats = field(default_factory=lambda: _EMPTY)  # (n + m, f)


@dataclass(frozen=True)
class Probing(TokenTask):
    pooling: str = "mean+sum"  # any of mean, sum, min, max, first, last, endpoint, diffsum, coherent, joined by +
    each: bool = False  # also report every feature separately

    files: ClassVar[tuple[str, ...]] = ("tagging", ".conllu")
    max_difference: ClassVar[float] = 2.0
    controls: ClassVar[tuple[str, ...]] = ("-length", "-random")

    def __post_init__(self) -> None:
        split_poolings(self.pooling, POOLINGS)

    def read(self, path: Path) -> ProfiledItems:
        pool, n_tested, splits = pool_parts(path, conllu, lambda _: "", _QUICK if self.quick else None)
        words = tuple(tuple(token.form for token in sentence) for sentence in pool)
        names, numbers = table(pool)
        return ProfiledItems.from_sentences(words, n_tested, (), splits, names, numbers)

    def answer_steps(self, lookup: Representation, items: Items) -> Generator[float, None, Answers]:
        assert isinstance(items, ProfiledItems)
        sequences = yield from share(0, 2, lookup.read_tokens_steps(items.all_texts))
        poolings = split_poolings(self.pooling, POOLINGS)
        control = randomize(sequences)
        inputs: dict[str, Callable[[], NDArray[Any]]] = {"length": lambda: sequences.lengths[:, None]}
        inputs |= {name: partial(POOLINGS[name], sequences) for name in poolings}
        inputs |= {f"{name}-random": partial(POOLINGS[name], control) for name in poolings}
        values: dict[str, NDArray[Any]] = {}
        for number, (name, pool) in enumerate(inputs.items(), 1):
            x = pool()
            values[name] = np.zeros((len(items), items.numbers.shape[1]), np.float32)
            for split in items.rounds:
                values[name][split.test] = fit_probe(x, items.numbers, split)
            yield (1 + number / len(inputs)) / 2
        return Answers(sequences.known[: len(items)] > 0, values)

    def score(self, items: Items, answers: Answers, chosen: Rows, resampling: Resampling) -> dict[str, Estimate]:
        assert isinstance(items, ProfiledItems)
        gold = _rank_columns(items.numbers[chosen])
        group = np.array([name.partition(":")[0] for name in items.names])
        measures: dict[str, Callable[[Floats], Floats]] = {}
        inputs = {name: _rank_columns(values[chosen]) for name, values in answers.values.items()}
        parts = {"all": group != "", **{name: group == name for name in GROUPS}}
        if self.each:
            parts |= {name.partition(":")[2]: np.array(items.names) == name for name in items.names}
        for label, columns in parts.items():
            for name, ranks in inputs.items():
                measures[f"{label}-{name}"] = partial(_mean_r, ranks[:, columns], gold[:, columns])
        return estimates(measures, len(chosen), resampling)


def fit_probe(x: NDArray[Any], y: Floats, split: Round) -> Floats:
    """Ridge predictions for the test items (n, f), with the best penalty on the development set per feature."""
    path = RidgePath(x[split.train], y[split.train])
    errors = [np.square(path.predict(x[split.dev], penalty) - y[split.dev]).sum(axis=0) for penalty in PENALTIES]
    best = np.argmin(errors, axis=0)  # (f,)
    path = RidgePath(x[split.both], y[split.both])
    predictions = np.zeros((len(split.test), y.shape[1]))
    for at, penalty in enumerate(PENALTIES):
        if (best == at).any():
            predictions[:, best == at] = path.predict(x[split.test], penalty)[:, best == at]
    return predictions


def randomize(sequences: Sequences, seed: int = 0) -> Sequences:
    """Replace the rows by random vectors, one per word type."""
    by_row = sequences.occurrence_types is None
    n_rows = len(sequences.table) if by_row else int(sequences.types.max(initial=UNKNOWN)) + 1
    vectors = np.random.default_rng(seed).standard_normal((n_rows, sequences.table.shape[1]), np.float32)
    vectors[[PADDING, UNKNOWN]] = 0
    return replace(sequences, table=vectors, ids=sequences.types, occurrence_types=None, layers=())


def _rank_columns(x: NDArray[Any]) -> Floats:
    """Centred ranks of each column (n, f); ties get their mean rank."""
    from scipy.stats import rankdata

    return np.asarray(rankdata(x, axis=0) - (len(x) + 1) / 2) if len(x) else np.zeros(x.shape)


def _mean_r(x: Floats, y: Floats, weights: Floats) -> Floats:
    """Pearson's r averaged over columns, per resample (R,); r is 0 where one side is constant."""
    n = weights.sum(axis=1, keepdims=True)
    mean_x, mean_y = weights @ x / n, weights @ y / n  # (R, f)
    covariance = weights @ (x * y) / n - mean_x * mean_y
    variances = (weights @ (x * x) / n - mean_x**2) * (weights @ (y * y) / n - mean_y**2)
    varies = variances > 1e-9
    spreads = np.sqrt(np.where(varies, variances, 1))
    return np.asarray(np.divide(covariance, spreads, out=np.zeros_like(covariance), where=varies).mean(axis=1))
