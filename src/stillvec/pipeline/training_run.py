"""Training without a teacher: count the corpus, encode its sentences once, train every method."""

import dataclasses
import os
import time
import warnings
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

from stillvec.baselines import BASELINES, Baseline, EncodedCorpus, Resources, encode_corpus
from stillvec.baselines.spacy_parser import Parser, load_parser, write_parses
from stillvec.corpus import Corpus
from stillvec.errors import StillvecWarning, TrainingError, UsageError
from stillvec.files import cache_folder, digest, scratch_folder
from stillvec.files.private_files import create_private_folder
from stillvec.formats import load
from stillvec.formats.request import Request, digest_json
from stillvec.memory import RESERVE
from stillvec.pipeline.corpus_counts import digest_corpus, find_terms, select_text
from stillvec.pipeline.count_pool import count_corpus, start_count
from stillvec.pipeline.result_folders import complete, describe_method, describe_program
from stillvec.pipeline.settings import Training, decisive_settings, to_manifest
from stillvec.progress import Phase, Progress, relay
from stillvec.result import MethodResult, Result
from stillvec.training.schedule import TrainingProgress
from stillvec.vectors import WordVectors
from stillvec.vocabulary import Vocabulary
from stillvec.vocabulary.segmenters import SPACES, describe_segmenter


class TrainingRun:
    """One training. Iterate over `steps()`; then `results` has each method's result."""

    def __init__(
        self,
        settings: Training,
        corpus: Corpus,
        *,
        store: str | os.PathLike[str] | None = None,
        resume: bool = False,
    ) -> None:
        self.settings = settings
        self.corpus = select_text(corpus, settings)
        self.store = Path(store) if store is not None else cache_folder()
        self.resume = resume
        self.threads = settings.threads or os.cpu_count() or 1
        self.baselines = settings.baselines()  # refuses wrong names and settings
        self.parser = self._load_parser()
        self.finished: dict[str, Path] = {}  # folders of methods that need not be trained again
        self.results: dict[str, Result] = {}
        self.facts: dict[str, Any] = {}
        self.checkpoint: Any = None  # of the method that is being trained
        self.memory_floor = RESERVE

    def _load_parser(self) -> Parser | None:
        needed = any(baseline.parsed for baseline in self.baselines.values())
        if needed and (self.settings.phrases or self.settings.hyphens == "keep"):
            cure = "leave out phrases and hyphens, or train these methods separately"
            raise UsageError.conflict("Methods that need parses take their words from the parses", cure=cure)
        if self.settings.parser is None:
            if needed:
                self.corpus.parses()  # refuses a corpus without parses
                if self.corpus.drops_paragraphs:
                    raise UsageError.conflict("min_sentences and min_characters need paragraphs; CoNLL-U has none")
            return None
        if not needed:
            raise UsageError.conflict(f"A parser is given, but no method of {self.settings.method} uses parses")
        return load_parser(self.settings.parser)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.baselines)

    @property
    def weights(self) -> dict[str, float]:
        """About how the time is shared between the activities of this run."""
        parsing = {} if self.parser is None else {"parsing": 90.0}
        return {"counting": 5.0, "encoding": 5.0, **parsing, "computing": 90.0}

    def steps(self) -> Iterator[Progress | MethodResult]:
        begun = time.perf_counter()
        if self.settings.segmenter != SPACES:
            message = f"words are {describe_segmenter(self.settings.segmenter)}"
            yield Progress(Phase.STARTING, 0, None, "", 0.0, note=message)
        terms = yield from find_terms(self.corpus, self.settings)
        yield Progress(Phase.COUNTING, 0, None, "words", 0.0)
        with start_count(self.corpus, self.settings, self.settings.threads, terms) as pending:
            vocabulary, facts = yield from count_corpus(self.corpus, self.settings, pending, terms)
        self.facts["corpus"] = facts.to_manifest()
        for sentence in facts.choice.notes():
            yield Progress(Phase.STARTING, 0, None, "", 0.0, note=sentence)
        with scratch_folder() as folder:
            text = yield from self._write(vocabulary, folder)
            if self.parser is not None:
                text = yield from self._parse(text, self.parser)
            prepared = time.perf_counter() - begun
            for name, baseline in self.baselines.items():
                if name in self.finished:
                    self.results[name] = Result(load(self.finished[name]))
                    if baseline.resumes:  # killed before the checkpoint was removed
                        self._remove_checkpoint(self._checkpoint(name, baseline, text))
                    continue
                started = time.perf_counter()
                learnt = yield from self._train(name, baseline, text)
                seconds = time.perf_counter() - started
                self.results[name] = self._describe(baseline, learnt, text, prepared, seconds)
                yield MethodResult(name, self.results[name])
                self._remove_checkpoint(self.checkpoint)  # by now the result is saved

    def save_checkpoint(self) -> None:
        """A training writes its checkpoints between two parts of an epoch, and none in between."""

    @staticmethod
    def _remove_checkpoint(checkpoint: Any) -> None:
        if checkpoint is not None:
            checkpoint.remove()

    def requests(self, **_: bool) -> dict[str, Request]:
        """What decides each result, by its name."""
        common = decisive_settings(self.settings) | {"words": digest_json(self.settings.include_words)}
        return {
            name: Request("train", describe_method(baseline, BASELINES) | common, self._digest_inputs)
            for name, baseline in self.baselines.items()
        }

    def _digest_inputs(self) -> dict[str, str]:
        """Digests of all that is read; before the run, the text is read for them."""
        corpus = self.facts.get("corpus")
        parser = {} if self.parser is None else {"parser": self.parser.facts["digest"]}
        return {"text": corpus["digest"] if corpus else digest_corpus(self.corpus), **parser}

    def _write(self, vocabulary: Vocabulary, folder: Path) -> Generator[Progress, None, EncodedCorpus]:
        begun, total = time.perf_counter(), self.facts["corpus"]["words"]
        steps = encode_corpus(self.corpus, vocabulary, folder)

        def convert(n_words: int) -> Progress:
            return Progress(Phase.ENCODING, n_words, total, "words", time.perf_counter() - begun)

        yield convert(0)

        return (yield from relay(steps, convert))

    def _parse(self, text: EncodedCorpus, parser: Parser) -> Generator[Progress, None, EncodedCorpus]:
        """Parse the corpus once: the parses are cached under the digests of text and parser."""
        begun, corpus = time.perf_counter(), self.facts["corpus"]
        self.facts["parser"] = parser.facts
        name = digest(iter([corpus["digest"].encode(), parser.facts["digest"].encode()]))
        path = self.store / f"parses-{name}.conllu"
        if not path.exists():
            for read in write_parses(self.corpus.sentences(), parser, path):
                words = round(corpus["words"] * min(1.0, read / corpus["characters"]))
                seconds = time.perf_counter() - begun
                yield Progress(Phase.PARSING, words, corpus["words"], "words", seconds, subject=parser.name)
        return dataclasses.replace(text, parsed=Corpus(path))

    def _train(self, name: str, baseline: Baseline, text: EncodedCorpus) -> Generator[Progress, None, Result]:
        begun, number, n_methods = time.perf_counter(), self.names.index(name), len(self.names)

        def convert(step: TrainingProgress) -> Progress:
            seconds, work = time.perf_counter() - begun, (number + step.done / max(step.total, 1), float(n_methods))
            return Progress(Phase.TRAINING, step.done, step.total, "words", seconds, step.remark, name, work=work)

        yield convert(TrainingProgress(0, 0))
        checkpoint = self.checkpoint = self._checkpoint(name, baseline, text)
        try:
            learnt = yield from relay(baseline.steps(text, Resources(self.threads, checkpoint)), convert)
        except TrainingError:
            self._remove_checkpoint(checkpoint)  # training that diverged would diverge again from there
            raise
        _warn_missing(name, text.vocabulary, learnt.vectors)
        return learnt

    def _checkpoint(self, name: str, baseline: Baseline, text: EncodedCorpus) -> Any:
        """A checkpoint in the cache, named by all that decides the result; None for gensim, and without torch."""
        cause = "" if baseline.resumes else "is trained by gensim, which"
        try:
            if not cause:
                from stillvec.training.checkpoint import name_settings, open_checkpoint  # imports torch
        except ModuleNotFoundError:
            cause = "without torch"
        if cause:
            if self.resume:
                message = f"{name} {cause} writes no checkpoints, so it starts again."
                warnings.warn(message, StillvecWarning, stacklevel=2)
            return None
        given = {**name_settings(baseline), "method": type(baseline).__name__}
        given |= {"corpus": self.facts["corpus"]["digest"], "words": text.vocabulary.digest}
        if self.parser is not None and baseline.parsed:
            given["parser"] = self.parser.facts["digest"]
        create_private_folder(self.store)
        return open_checkpoint(self.store, given, resume=self.resume, threads=self.threads)

    def _describe(
        self, baseline: Baseline, learnt: Result, text: EncodedCorpus, prepared: float, seconds: float
    ) -> Result:
        """Add the manifest to what a method returned."""
        settings = dataclasses.asdict(baseline)
        trained = {"sentences": text.n_sentences, "words": text.n_words, "seconds": round(seconds, 3)}
        trained["words_a_second"] = round(text.n_words * settings["epochs"] / max(seconds, 1e-9))
        manifest = {
            **describe_method(baseline, BASELINES),
            "training": to_manifest(self.settings),
            **self.facts,
            "seed": self.settings.seed,
            "notes": dict(learnt.notes),
            "trained": trained,
            "seconds": prepared + seconds,
            **describe_program(),
        }
        vectors = learnt.vectors if self.settings.context_table else learnt.vectors.with_matrix(learnt.vectors.matrix)
        return complete(vectors, manifest, self.settings.oov)


def _warn_missing(name: str, vocabulary: Vocabulary, vectors: WordVectors) -> None:
    """Warn of words that no sentence has, which therefore have no vector."""
    missing = [word for word in vocabulary if word not in vectors.vocabulary.index]
    if missing:
        count = f"{len(missing):,} words have" if len(missing) > 1 else "One word has"
        examples = ", ".join(map(repr, missing[:3])) + (", ..." if len(missing) > 3 else "")
        message = f"{count} no vector of {name}: no sentence it is trained on contains {examples}."
        warnings.warn(message, StillvecWarning, stacklevel=2)
