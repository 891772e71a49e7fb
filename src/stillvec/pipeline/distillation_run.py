"""A distillation from corpus to results: count, select, read once, finish every method."""

import os
import time
import warnings
from collections.abc import Container, Generator, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from stillvec.corpus import Corpus
from stillvec.encoding.context_store import StoreLocation
from stillvec.errors import StillvecWarning, UsageError, is_out_of_memory
from stillvec.files import cache_folder, file_digest
from stillvec.formats.request import Request, digest_json, digest_setting_files
from stillvec.learners import EncodingPass, Learner, PassPlan
from stillvec.learners.accumulators import HasDim
from stillvec.learners.trained_learner import TrainedLearner
from stillvec.memory import RESERVE, is_short
from stillvec.pipeline.corpus_counts import CorpusFacts, digest_corpus, find_terms, select_text
from stillvec.pipeline.memory_estimate import batch_bytes, check_memory, finish_bytes
from stillvec.pipeline.pass_checkpoint import Arrays, PassCheckpoint, facts_of_reading, facts_of_settings, partial_bytes
from stillvec.pipeline.previous_result import PreviousResult, count_isolated
from stillvec.pipeline.readers import MergedStatistics, Reader, ReadFacts, ReadTask
from stillvec.pipeline.result_folders import describe_method, describe_result, list_statistics
from stillvec.pipeline.settings import Distillation, decisive_settings, filter_words, format_preset, resolve_presets
from stillvec.progress import Phase, Progress, format_bytes, relay
from stillvec.result import MethodResult, MethodStatistics, Result
from stillvec.statistics import Statistics
from stillvec.teachers import Teacher
from stillvec.teachers.text_fit import TextFit, measure_fit
from stillvec.training.schedule import TrainingProgress
from stillvec.vocabulary import Vocabulary
from stillvec.vocabulary.folding import fold
from stillvec.vocabulary.scripts import find_scripts, select_by_script
from stillvec.vocabulary.segmenters import SPACES, describe_segmenter, select_terms
from stillvec.vocabulary.word_matcher import multiword_terms, select_words

_FIT_CHARACTERS = 50_000  # of the corpus that are compared with the tokens of the teacher
_NEIGHBOURS = 8  # a context of one word is also one of this many others
_SENTENCE_WORDS = 15  # on average
_TEACHER_WORDS = 30_000  # the first of its whole words, which are the most frequent


class Run:
    """One distillation. Iterate over `steps()`, which yields each method's result as soon as it is finished.

    `reader` decides who reads: this process (default), the processes of torchrun, or a Ray cluster. Presets of methods
    set settings of the run, except those in `given` (default: none is set).
    """

    def __init__(
        self,
        settings: Distillation,
        corpus: Corpus | None,
        add_to: str | os.PathLike[str] | None = None,
        *,
        store: str | os.PathLike[str] | None = None,
        resume: bool = False,
        out: str | os.PathLike[str] | None = None,
        reader: Reader | None = None,
        given: Container[str] | None = None,
    ) -> None:
        self.preset: dict[str, Any] = {}  # settings of the run that the presets of the methods set,
        self.left_preset: dict[str, Any] = {}  # and those on which several methods do not agree
        if given is not None:
            settings, self.preset, self.left_preset = resolve_presets(settings, given)
        self.settings = settings
        self.corpus = None if corpus is None else select_text(corpus, settings)
        self.store = Path(store) if store is not None else cache_folder()
        self.resume = resume
        self.reader = reader or Reader()
        self.checkpoint = None if out is None else PassCheckpoint(out, resume=resume)  # beside the output
        self.previous = None if add_to is None else PreviousResult(Path(add_to))
        self._teacher: Teacher | None = None
        self._learners = settings.learners(depth=1, corpus=corpus is not None)  # refuses wrong names and settings
        self.names: tuple[str, ...] = ()  # of the results, once the teacher is known
        self.results: dict[str, Result] = {}
        self.memory_floor = RESERVE  # bytes that must stay free, or the run is stopped
        self._pass: EncodingPass | None = None  # while the teacher reads
        self.corpus_facts = CorpusFacts()
        self.fit: TextFit | None = None  # of teacher and corpus
        self.read_facts = ReadFacts(settings.contexts)
        self.reader.check(settings, corpus)
        self._decisive = facts_of_settings(settings, None if add_to is None else Path(add_to))
        if self.checkpoint is not None:
            self.checkpoint.check(self._decisive)

    @property
    def weights(self) -> dict[str, float]:
        """About how the time is shared between the activities of this run."""
        trains = any(isinstance(learner, TrainedLearner) for learner in self._learners.values())
        weights = {"loading": 2.0, "counting": 3.0, "reading": 90.0, "merging": 1.0, "computing": 4.0}
        return weights | {"computing": 90.0} if trains else weights

    def steps(self) -> Iterator[Progress | MethodStatistics | MethodResult]:
        start = time.perf_counter()
        if self.checkpoint is not None and self.checkpoint.path.exists() and not self.resume:
            message = f"starting over, although {self.checkpoint.path} exists; --resume would continue from it"
            yield Progress(Phase.STARTING, 0, None, "", 0.0, note=message)
        if self.preset:
            message = f"set by the preset for the whole run: {format_preset(self.preset)}"
            yield Progress(Phase.STARTING, 0, None, "", 0.0, note=message)
        teacher, plan = yield from self.prepare()
        if self.reader.finishes:
            check_memory(plan, self.settings, teacher, self.reader.budget(teacher).n_tokens)
        task = self._make_task(teacher, plan)
        if bytes_needed := task.encoding_pass.bytes_needed:
            message = f"contexts will take about {format_bytes(bytes_needed)} in {self.store}"
            yield Progress(Phase.STARTING, 0, None, "", 0.0, note=message)
        for name, learner in plan.learners.items():
            if isinstance(learner, TrainedLearner) and (
                shortage := learner.describe_shortage(self.corpus_facts.n_words)
            ):
                yield Progress(Phase.STARTING, 0, None, "", 0.0, note=f"{name}: {shortage}")
        self.read_facts = yield from self.reader.read(task)
        merged = yield from self.reader.gather(task)
        n_methods = len(plan.learners)
        for number, name in enumerate(plan.learners if self.reader.finishes else ()):
            done, seconds = (float(number), float(n_methods)), time.perf_counter() - start
            yield Progress(Phase.COMPUTING, 0, None, "", seconds, subject=name, work=done)
            self.results[name] = yield from self._finish(name, task.encoding_pass, merged, start)
            yield MethodResult(name, self.results[name])

    def requests(self, *, statistics: bool = True, expand: bool = False) -> dict[str, Request]:
        """What decides each result, by its name; with `expand` the teacher is loaded to know all of its layers."""
        if expand and self.settings.layer == "all":
            self._set_learners(self._load_teacher())
        words = digest_json(self.settings.include_words)
        common = decisive_settings(self.settings) | {"words": words, "statistics": statistics}
        return {
            name: Request("distill", describe_method(learner) | common, self._digest_inputs)
            for name, learner in self._learners.items()
        }

    def _digest_inputs(self) -> dict[str, str]:
        """Digests of all that is read; before the run, the teacher is loaded and the text is read for them."""
        teacher = self.reader.describe_teacher(self._load_teacher())
        inputs = {"teacher": f"{teacher['digest']} {teacher['device']} {teacher['precision']}"}
        if self.corpus is not None:
            inputs["text"] = self.corpus_facts.digest or digest_corpus(self.corpus)
        if self.previous is not None:
            inputs["earlier result"] = file_digest(self.previous.path / "manifest.json")
        return inputs | digest_setting_files({"dictionary": self.settings.dictionary})

    def _set_learners(self, teacher: Teacher) -> None:
        if self.settings.layer == "all":  # one learner per layer
            self._learners = self.settings.learners(teacher.depth, corpus=self.corpus is not None)

    def _load_teacher(self) -> Teacher:
        if self._teacher is None:
            self._teacher = self.reader.load_teacher(self.settings)
        return self._teacher

    def prepare(self) -> Generator[Progress, None, tuple[Teacher, PassPlan]]:
        """Everything that is known before the teacher reads: the teacher, the methods and the words."""
        if self.settings.segmenter != SPACES:
            message = f"words are {describe_segmenter(self.settings.segmenter)}"
            yield Progress(Phase.STARTING, 0, None, "", 0.0, note=message)
        yield Progress(Phase.LOADING, 0, None, "", 0.0)
        self._warn_left_preset()
        teacher = self._load_teacher()
        self._set_learners(teacher)
        self.names = tuple(self._learners)
        self._check(teacher, self._learners)
        if self.corpus is not None and self.reader.finishes:
            self.fit = measure_fit(teacher.tokenizer, self.corpus.sample(_FIT_CHARACTERS), self.settings.segmenter)
            yield Progress(Phase.STARTING, 0, None, "", 0.0, note=self.fit.describe())
        if self.corpus is None:
            vocabulary = self._words_without_corpus(teacher)
        else:
            terms = yield from find_terms(self.corpus, self.settings)
            if self.previous is not None and self.settings.segmenter == SPACES:
                terms = replace(terms, earlier=tuple(multiword_terms(self.previous.vocabulary)))
            yield Progress(Phase.COUNTING, 0, None, "words", 0.0)
            vocabulary, self.corpus_facts = yield from self.reader.count(self.corpus, self.settings, terms)
            for sentence in self.corpus_facts.choice.notes():
                yield Progress(Phase.STARTING, 0, None, "", 0.0, note=sentence)
            vocabulary = self._add_teacher_words(vocabulary, teacher)
        known = None
        if self.previous is not None:
            self.previous.warn_repeated(self.corpus_facts.to_manifest())
            known, vocabulary = self.previous.vocabulary, self.previous.vocabulary.union(vocabulary)
        return teacher, PassPlan(self._learners, vocabulary, known)

    def _warn_left_preset(self) -> None:
        if self.left_preset and self.reader.finishes:
            message = f"not all methods of the run have a preset that sets {format_preset(self.left_preset)}"
            current = format_preset({name: getattr(self.settings, name) for name in self.left_preset})
            cure = "run the method alone, or give the values"
            warnings.warn(f"{message}; the run has {current} ({cure}).", StillvecWarning, stacklevel=2)

    def _check(self, teacher: Teacher, learners: Mapping[str, Learner]) -> None:
        """Refuse what this teacher cannot do before the corpus is read."""
        dim = self.settings.dim
        if (
            dim is not None
            and dim > teacher.dim
            and not all(isinstance(learner, HasDim) for learner in learners.values())
        ):
            raise UsageError.expected(f"at most {teacher.dim} dimensions, as the teacher has", dim, where="dim")
        PassPlan(learners, Vocabulary(())).make_accumulators(teacher)  # checks layers, poolings and dictionaries
        if self.previous is not None:
            self.previous.check(teacher, learners)

    def _add_teacher_words(self, vocabulary: Vocabulary, teacher: Teacher) -> Vocabulary:
        """For sentences and queries: with whole words of the teacher, which texts may have though this one does not.

        Only words in the scripts of the corpus: of the frequent words of a multilingual teacher, few are Russian.
        """
        if self.settings.purpose not in ("sentences", "queries") or self.settings.max_words is not None:
            return vocabulary
        whole = select_by_script(self._words_of(teacher), find_scripts(vocabulary))[:_TEACHER_WORDS]
        words = [*filter(filter_words(self.settings).allows, whole)]
        return vocabulary.union(vocabulary.like(words))

    def _words_without_corpus(self, teacher: Teacher) -> Vocabulary:
        """The user's words, else the whole words of the teacher's own vocabulary."""
        chosen = self.settings.include_words
        words = chosen or self._words_of(teacher)
        if not chosen:
            words = [*filter_words(self.settings).apply(dict.fromkeys(words, 1))]
        if not words:
            raise UsageError(
                f"The teacher {teacher.name} has no whole words in its vocabulary; give a corpus, or words with "
                "--include-words."
            )
        self.corpus_facts = CorpusFacts(words_from="the list given" if chosen else "the teacher's vocabulary")
        folded = dict.fromkeys(fold(word, self.settings.lowercase) for word in words)
        lowercase, segmenter = self.settings.lowercase, self.settings.segmenter
        kept = [*folded][: self.settings.max_words]
        return Vocabulary(kept, lowercase=lowercase, segmenter=segmenter, terms=select_terms(segmenter, kept))

    def _words_of(self, teacher: Teacher) -> list[str]:
        """The whole words of the teacher's own vocabulary."""
        return select_words(teacher.tokenizer.vocabulary(), self.settings.lowercase, self.settings.segmenter)

    def _make_task(self, teacher: Teacher, plan: PassPlan) -> ReadTask:
        """The pass, where an earlier run left it if that is to be continued."""
        arrays = self.read_checkpoint(teacher, plan)
        if self.checkpoint is not None and arrays is not None:
            self.checkpoint.sweep()
        store = self.store_location(plan.vocabulary, arrays)
        encoding_pass = self.reader.make_pass(plan, teacher, store)
        self._restore(encoding_pass, arrays)
        self.memory_floor = RESERVE + batch_bytes(plan, teacher, self.reader.budget(teacher).n_tokens)
        self._pass = encoding_pass
        if self.checkpoint is not None:
            self.checkpoint.start()
        after_batch = partial(self._after_batch, encoding_pass)
        return ReadTask(self.settings, self.corpus, self.corpus_facts, encoding_pass, store, after_batch)

    def read_checkpoint(self, teacher: Teacher, plan: PassPlan) -> Arrays | None:
        """The state of the pass where a run that is resumed left it, if there is one."""
        budget = self.reader.budget(teacher)
        self._decisive |= facts_of_reading(teacher, budget, self.corpus_facts, plan.vocabulary)
        return None if self.checkpoint is None else self.checkpoint.read(self._decisive)

    def _restore(self, encoding_pass: EncodingPass, arrays: Arrays | None) -> None:
        if not encoding_pass.state.can_checkpoint:
            if self.resume:
                message = "A method that trains in the stream has no checkpoint of the pass, which starts over."
                warnings.warn(message, StillvecWarning, stacklevel=2)
            self.checkpoint = None
        elif arrays is not None and self.checkpoint is not None:
            try:
                encoding_pass.restore(arrays)
            except (KeyError, IndexError, ValueError, TypeError, RuntimeError, OverflowError) as error:
                if is_out_of_memory(error):
                    raise
                raise self.checkpoint.unreadable() from None

    def _after_batch(self, encoding_pass: EncodingPass) -> None:
        """Write a checkpoint when one is due, and at the end of the pass, before stores are closed.

        If memory is too short to finish the methods, the run stops there.
        """
        finished = encoding_pass.finished
        short = finished and self.reader.finishes and self._cannot_finish(encoding_pass)
        if short or (self.checkpoint is not None and self.checkpoint.due(finished=finished)):
            self._write_checkpoint(encoding_pass)
        if short:
            raise MemoryError  # the caller knows the stage
        if finished:
            self.memory_floor, self._pass = RESERVE, None

    def _write_checkpoint(self, encoding_pass: EncodingPass) -> None:
        if self.checkpoint is not None:
            if self.corpus is not None:
                self.corpus.check_unchanged()
            self.checkpoint.write(self._decisive, encoding_pass.state.to_arrays)

    def save_checkpoint(self) -> None:
        """Write a checkpoint between two batches, whether one is due or not, so that the run can be stopped."""
        if self._pass is not None:
            self._write_checkpoint(self._pass)

    def _cannot_finish(self, encoding_pass: EncodingPass) -> bool:
        plan, teacher = encoding_pass.plan, encoding_pass.teacher
        progress = [stage.progress for stage in encoding_pass.state.stages.values()]
        read = sum(part.n_words for part in progress), sum(part.n_sentences for part in progress)
        return is_short(max(finish_bytes(plan.learners, self.settings, teacher, plan.vocabulary, *read), default=0))

    def store_location(self, vocabulary: Vocabulary, arrays: Arrays | None = None) -> StoreLocation | None:
        """Where contexts are stored, and for which text; without a corpus there is little to store."""
        if self.corpus is None:
            return None
        contexts, n_words = self.settings.contexts, self.corpus_facts.n_words
        seed = 0 if contexts is None else self.settings.seed  # where everything is read, nothing is random
        source = {"corpus": self.corpus_facts.digest, "contexts": contexts, "seed": seed}
        if contexts is not None:
            n_words = min(n_words, _NEIGHBOURS * int(vocabulary.counts.clip(max=contexts).sum()))
        checkpoint = None if self.checkpoint is None else self.checkpoint.path
        bytes_written = 0 if arrays is None else partial_bytes(arrays)
        return StoreLocation(self.store, source, n_words, n_words // _SENTENCE_WORDS, checkpoint, bytes_written)

    def _finish(
        self, name: str, encoding_pass: EncodingPass, merged: MergedStatistics, start: float
    ) -> Generator[Progress | MethodStatistics, None, Result]:
        learner = encoding_pass.plan.learners[name]
        statistics = encoding_pass.statistics_of(name, merged)
        facts: dict[str, Any] = {}
        if self.previous is not None:
            statistics = self.previous.merge(statistics)
            facts["added_to"] = self.previous.describe()
        if isinstance(learner, TrainedLearner):
            result = yield from self._train(name, learner, statistics, encoding_pass)
        else:
            yield MethodStatistics(name, list_statistics(statistics))
            result = learner.finish(statistics)
        facts |= {"corpus": self.corpus_facts.to_manifest(), "read": self.read_facts.to_manifest()}
        if self.previous is not None and self.corpus is not None:
            facts["read"] |= count_isolated(statistics)
        facts["seconds"] = time.perf_counter() - start
        teacher = self.reader.describe_teacher(encoding_pass.teacher)
        return describe_result(result, learner, statistics, self.settings, teacher, facts)

    def _train(
        self, name: str, learner: TrainedLearner, statistics: Mapping[str, Statistics], encoding_pass: EncodingPass
    ) -> Generator[Progress, None, Result]:
        """On the teacher's device, so that `--device cpu` holds for the whole run."""
        start = time.perf_counter()
        path, device = encoding_pass.store_path(name), encoding_pass.teacher.device
        steps = learner.steps(statistics, path, resume=self.resume, device=device)

        number, n_methods = [*encoding_pass.plan.learners].index(name), len(encoding_pass.plan.learners)

        def convert(step: TrainingProgress) -> Progress:
            seconds, remark = time.perf_counter() - start, f"loss {step.loss:.4f}"
            work = number + step.done / max(step.total, 1), float(n_methods)
            return Progress(Phase.TRAINING, step.done, step.total, "sentences", seconds, remark, name, work=work)

        return (yield from relay(steps, convert))
