"""How much of its input each layer of a teacher keeps: I(input; layer) over the words of a text (Tutek & Šnajder 2020).

The occurrences of `n_words` words are clustered by k-means twice, by their input embedding e (layer 0) and by their
state h at a layer; I(e; h) is the mutual information of the two clusterings, in nats, with the bias subtracted
(`evaluation/information.py`). I(word; h) is the same with the word itself, of which all occurrences are alike, in the
place of the cluster of e. At layer 0, I(e; h) compares two clusterings of the same vectors: what is missing to the
entropy is lost by clustering, not by the teacher. Each is reported beside the same for shuffled pairs, which must be
about 0: if it is not, there are too few occurrences for so many clusters.

As in the paper, the words are the most frequent ones or are drawn by their frequency to the power 0.75, and rows are
neither centred nor scaled. Unlike it, k-means is not in mini-batches, and starts from k-means++.

The value is the mean over several seeds of k-means. Interval: 1.96 standard deviations, which join those of a bootstrap
over sentences and of the mean over seeds.
"""

import time
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from stillvec.corpus import CorpusSource, open_corpus
from stillvec.errors import CorpusError, UsageError
from stillvec.evaluation.evaluation_report import JsonRecord
from stillvec.evaluation.information import entropy, label_information
from stillvec.evaluation.intervals import Estimate, Resampling, Rows
from stillvec.evaluation.teacher_states import PREFIX, StateReader, TeacherSource, number_types, parse_teacher
from stillvec.heads.sequence_batches import SPECIAL
from stillvec.input_checks import check_arguments, check_count
from stillvec.numerics import kmeans
from stillvec.progress import Phase, Progress, drain, relay, show_progress

Sample = Literal["frequent", "random"]
_POWER = 0.75  # of the frequency of a word that is drawn
_ROUNDS = 30  # of k-means
_RESAMPLES = 100


@dataclass(frozen=True)
class LayerInformation(JsonRecord):
    """What a layer keeps, in nats."""

    layer: int
    of_input: Estimate  # I(cluster of the input; cluster of the layer)
    of_input_shuffled: float
    of_words: Estimate  # I(word; cluster of the layer)
    of_words_shuffled: float


@dataclass(frozen=True)
class LayerAnalysis(JsonRecord):
    """What `analyze_layers` measured."""

    teacher: str
    n_sentences: int
    n_words: int
    n_occurrences: int
    k: int
    seeds: int
    sample: Sample
    input_entropy: float  # of the clusters of the input: no layer can keep more
    word_entropy: float
    layers: tuple[LayerInformation, ...] = field(default=())


def analyze_layers(
    teacher: str,
    texts: CorpusSource,
    *,
    n_words: int = 1000,
    sample: Sample = "frequent",
    k: int = 100,
    seeds: int = 3,
    n_sentences: int = 5000,
    cache: Path | None = None,
    progress: bool | Callable[[Progress], object] = False,
) -> LayerAnalysis:
    """Measure how much of the input each layer of a teacher keeps.

    Parameters
    ----------
    teacher: `teacher:NAME`, or only the name or folder of a teacher.
    texts: a file, folder or glob of text, a `Corpus`, or a list of texts.
    n_words: number of words whose occurrences are used (default: 1000).
    sample: "frequent" takes the most frequent words, "random" draws by frequency to the power 0.75 (default: frequent).
    k: number of clusters (default: 100).
    seeds: number of clusterings to average over (default: 3).
    n_sentences: number of sentences to read, from the beginning (default: 5000).
    cache: a folder for the states (default: in memory).
    progress: True shows a bar; a function gets every `Progress` event (default: False).
    """
    check_arguments(analyze_layers, locals())
    for name, value, least in (
        ("n_words", n_words, 2),
        ("k", k, 2),
        ("seeds", seeds, 1),
        ("n_sentences", n_sentences, 1),
    ):
        check_count(value, name, least=least)
    if sample not in get_args(Sample):
        raise UsageError.unknown("sample of words", sample, get_args(Sample))
    name = parse_name(teacher)
    corpus = open_corpus([texts])
    read = [] if corpus is None else [*islice(corpus.sentences(), n_sentences)]
    study = _LayerStudy(name, read, n_words, sample, k, seeds, cache)
    with show_progress(progress) as listener:
        steps = study.steps()
        return drain(steps if listener is None else relay(steps, listener))


def parse_name(teacher: str) -> str:
    """The teacher in `teacher:NAME` or `NAME`, of which all layers are read."""
    name, layer, cls, prompt = parse_teacher(teacher if teacher.startswith(PREFIX) else PREFIX + teacher)
    if layer != "last" or cls or prompt:
        raise UsageError.expected("a teacher without @LAYER, since all layers are compared", repr(teacher))
    return name


@dataclass(frozen=True)
class _LayerStudy:
    teacher: str
    sentences: list[str]
    n_words: int
    sample: Sample
    k: int
    seeds: int
    cache: Path | None

    def steps(self) -> Generator[Progress, None, LayerAnalysis]:
        from stillvec.encoding.word_states import MarkedTexts  # torch takes seconds

        start = time.perf_counter()

        def report(remark: str, done: float) -> Progress:
            return Progress(Phase.EVALUATING, round(100 * done), 100, "%", time.perf_counter() - start, remark)

        marked = MarkedTexts.from_texts(self.sentences)
        reader = StateReader(TeacherSource(self.teacher), self.cache, ["all"])
        stores = yield from relay(reader.read_steps(marked), lambda done: report("reading", done / 2))
        types = number_types(marked.words)
        known = np.asarray(stores[0].words[SPECIAL:]) >= 0
        chosen = np.flatnonzero(known & np.isin(types, self._choose(types[known])))
        if len(chosen) < 2 * self.k:
            what = f"at least {2 * self.k:,} occurrences of words for {self.k} clusters"
            raise CorpusError.expected(what, f"{len(chosen):,}", cure="give more text or fewer clusters")
        _, word = np.unique(types[chosen], return_inverse=True)
        sentence = marked.spans.text_index[chosen].astype(np.int64)
        inputs = [self._cluster(stores[0].states, chosen, (seed, 1)) for seed in range(self.seeds)]
        layers = []
        for layer, store in sorted(stores.items()):
            yield report(f"layer {layer}", 0.5 + 0.5 * layer / len(stores))
            clusters = [self._cluster(store.states, chosen, (seed, 0)) for seed in range(self.seeds)]
            of_input = _summarize([*zip(inputs, clusters, strict=True)], sentence)
            of_words = _summarize([(word, cluster) for cluster in clusters], sentence)
            layers.append(LayerInformation(layer, *of_input, *of_words))
        return LayerAnalysis(
            self.teacher,
            len(self.sentences),
            int(word.max()) + 1,
            len(chosen),
            self.k,
            self.seeds,
            self.sample,
            float(np.mean([entropy(np.bincount(labels)) for labels in inputs])),
            entropy(np.bincount(word)),
            tuple(layers),
        )

    def _choose(self, types: Rows) -> Rows:
        """The words whose occurrences are used."""
        counts = np.bincount(types)
        n_words = min(self.n_words, int((counts > 0).sum()))
        if self.sample == "frequent":
            return np.argsort(-counts, kind="stable")[:n_words]
        weights = counts**_POWER
        return np.random.default_rng(0).choice(len(counts), n_words, replace=False, p=weights / weights.sum())

    def _cluster(self, states: Any, chosen: Rows, seed: tuple[int, int]) -> Rows:
        rows = np.asarray(states[SPECIAL + chosen], np.float32)
        return kmeans(rows, self.k, np.random.default_rng(seed), n_rounds=_ROUNDS).labels


def _summarize(pairs: list[tuple[Rows, Rows]], sentence: Rows) -> tuple[Estimate, float]:
    """The mean over seeds with its interval, and that of shuffled pairs."""
    each = [label_information(a, b, seed) for seed, (a, b) in enumerate(pairs)]
    value = float(np.mean([information.value for information in each]))
    variance = _bootstrap_variance(*pairs[0], sentence)
    if len(each) > 1:
        variance += float(np.var([information.value for information in each], ddof=1)) / len(each)
    half = 1.96 * float(np.sqrt(variance))
    return Estimate(value, value - half, value + half), float(np.mean([information.shuffled for information in each]))


def _bootstrap_variance(a: Rows, b: Rows, sentence: Rows) -> float:
    """The variance of I over resamples of sentences."""
    n_sentences = int(sentence.max()) + 1
    blocks = Resampling(_RESAMPLES, 0).weights(n_sentences)
    values = [label_information(a, b, 0, weights[sentence]).value for block in blocks for weights in block]
    return float(np.var(values, ddof=1))
