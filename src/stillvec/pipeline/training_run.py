"""A training from corpus to folder, without a teacher: count, write the sentences once, train every method, write."""

from __future__ import annotations

import dataclasses
import os
import tempfile
import time
import warnings
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

from stillvec.baselines import BASELINES, Baseline, EncodedCorpus, Resources, encode_corpus
from stillvec.baselines.spacy_parser import Parser, load_parser, write_parses
from stillvec.corpus import Corpus
from stillvec.errors import StillvecWarning, TrainingError, UsageError
from stillvec.files import digest
from stillvec.pipeline.corpus_counts import count_corpus
from stillvec.pipeline.distillation_run import default_store
from stillvec.pipeline.manifest import describe_program
from stillvec.pipeline.pass_checkpoint import PassCheckpoint
from stillvec.pipeline.result_folders import complete
from stillvec.pipeline.settings import Training, to_manifest
from stillvec.progress import Progress
from stillvec.result import MethodResult, Result
from stillvec.vectors import WordVectors
from stillvec.vocabulary import Vocabulary


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
        self.corpus = corpus
        self.store = Path(store) if store is not None else default_store()
        self.resume = resume
        self.baselines = settings.baselines()  # a wrong name or setting is told before the work
        self.parser = self._checked_parser()
        self.results: dict[str, Result] = {}
        self.written: dict[str, Path] = {}  # where they were saved
        self.facts: dict[str, Any] = {}
        self.checkpoint: PassCheckpoint | None = None  # training has checkpoints of its own
        self.vocabulary: Vocabulary | None = None

    def _checked_parser(self) -> Parser | None:
        needing = [name for name, each in self.baselines.items() if getattr(each, "parsed", False)]
        if self.settings.parser is not None:
            if not needing:
                raise UsageError(f"No method of {self.settings.method} looks at parses, so nothing is to be parsed.")
            return load_parser(self.settings.parser)
        if needing:
            self.corpus.parses()  # refuses what holds none
        return None

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.baselines)

    def steps(self) -> Iterator[Progress | MethodResult]:
        begun = time.perf_counter()
        vocabulary, facts = yield from count_corpus(self.corpus, self.settings)
        self.facts["corpus"] = facts.to_manifest()
        self.vocabulary = vocabulary
        with tempfile.TemporaryDirectory(prefix="stillvec-") as folder:
            text = yield from self._write(vocabulary, Path(folder))
            if self.parser is not None:
                text = yield from self._parse(text, self.parser)
            prepared = time.perf_counter() - begun
            for name, baseline in self.baselines.items():
                started = time.perf_counter()
                learnt = yield from self._train(name, baseline, text)
                seconds = time.perf_counter() - started
                self.results[name] = self._described(baseline, learnt, text, prepared, seconds)
                yield MethodResult(name, self.results[name])

    def _write(self, vocabulary: Vocabulary, folder: Path) -> Generator[Progress, None, EncodedCorpus]:
        begun = time.perf_counter()
        steps = encode_corpus(self.corpus, vocabulary, folder)
        while True:
            try:
                words = next(steps)
            except StopIteration as end:
                text: EncodedCorpus = end.value
                return text
            seconds = time.perf_counter() - begun
            yield Progress("writing sentences of known words", words, self.facts["corpus"]["words"], "words", seconds)

    def _parse(self, text: EncodedCorpus, parser: Parser) -> Generator[Progress, None, EncodedCorpus]:
        """Parses are kept in the store, named by text and parser: another run does not make them again."""
        begun, corpus = time.perf_counter(), self.facts["corpus"]
        self.facts["parser"] = parser.facts
        name = digest(iter([corpus["digest"].encode(), parser.facts["digest"].encode()]))
        path = self.store / f"parses-{name}.conllu"
        if not path.exists():
            for read in write_parses(self.corpus.sentences(), parser, path):
                words = round(corpus["words"] * min(1.0, read / corpus["characters"]))
                yield Progress(
                    f"parsing with {parser.name}", words, corpus["words"], "words", time.perf_counter() - begun
                )
        return dataclasses.replace(text, parsed=Corpus(path))

    def _train(self, name: str, baseline: Baseline, text: EncodedCorpus) -> Generator[Progress, None, Result]:
        begun = time.perf_counter()
        yield Progress(f"training {name}", 0, None, "", 0.0)
        checkpoint = self._checkpoint(name, baseline, text)
        threads = self.settings.threads or os.cpu_count() or 1
        steps = baseline.steps(text, Resources(threads, checkpoint))
        while True:
            try:
                step = next(steps)
            except StopIteration as end:
                learnt: Result = end.value
                break
            except TrainingError:
                if checkpoint is not None:  # nothing good comes of going on from there
                    checkpoint.remove()
                raise
            yield Progress(f"training {name}", step.done, step.total, "words", time.perf_counter() - begun, step.remark)
        if checkpoint is not None:
            checkpoint.remove()
        _tell_missing(name, text.vocabulary, learnt.vectors)
        return learnt

    def _checkpoint(self, name: str, baseline: Baseline, text: EncodedCorpus) -> Any:
        """Beside the contexts of methods that distil; named by all that decides the result."""
        if not getattr(baseline, "resumes", False):
            if self.resume:
                told = f"{name} is trained by gensim, which keeps no checkpoint, so it begins anew."
                warnings.warn(told, StillvecWarning, stacklevel=2)
            return None
        from stillvec.training.checkpoint import name_settings, open_checkpoint  # torch, which gensim does not need

        given = {**name_settings(baseline), "method": type(baseline).__name__}
        given |= {"corpus": self.facts["corpus"]["digest"], "words": text.vocabulary.digest}
        if self.parser is not None and getattr(baseline, "parsed", False):
            given["parser"] = self.parser.facts["digest"]
        self.store.mkdir(parents=True, exist_ok=True)
        return open_checkpoint(self.store, given, resume=self.resume)

    def _described(
        self, baseline: Baseline, learnt: Result, text: EncodedCorpus, prepared: float, seconds: float
    ) -> Result:
        """What a method made, with how it was made."""
        name = next(name for name in BASELINES if BASELINES[name] is type(baseline))
        given = to_manifest(self.settings)
        settings = dataclasses.asdict(baseline)  # type: ignore[call-overload]
        trained = {"sentences": text.n_sentences, "words": text.n_words, "seconds": round(seconds, 3)}
        trained["words_a_second"] = round(text.n_words * settings["epochs"] / max(seconds, 1e-9))
        manifest = {
            "method": name,
            "settings": settings,
            "notes": dict(learnt.notes),
            "training": given,
            **self.facts,
            "trained": trained,
            "seconds": prepared + seconds,
            "seed": self.settings.seed,
            **describe_program(),
        }
        return complete(learnt.vectors, manifest, self.settings.oov)


def _tell_missing(name: str, wanted: Vocabulary, made: WordVectors) -> None:
    """Words that no sentence has cannot be learnt; it is said, and the others are written."""
    missing = [word for word in wanted if word not in made.vocabulary.index]
    if missing:
        several = f"{len(missing):,} words have" if len(missing) > 1 else "One word has"
        shown = ", ".join(map(repr, missing[:3])) + (", ..." if len(missing) > 3 else "")
        told = f"{several} no vector of {name}, since nothing that it could learn from has them: {shown}."
        warnings.warn(told, StillvecWarning, stacklevel=2)
