"""The settings of distillation and training."""

import dataclasses
from collections.abc import Container, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from stillvec.baselines import BASELINES, PACKAGES, Baseline
from stillvec.errors import UsageError
from stillvec.learners import LEARNERS, Learner
from stillvec.learners.accumulators import ExpandsLayers, HasRunPresets
from stillvec.lexicons import read_words
from stillvec.notation import Spec, Value, parse_specs
from stillvec.refinement import unknown_steps
from stillvec.registry import Registry, check_least, require_all, settings_from
from stillvec.vocabulary import WordFilter
from stillvec.vocabulary.function_words import LANGUAGES, list_function_words, name_list
from stillvec.vocabulary.languages import ENGLISH, check_language, templates_of
from stillvec.vocabulary.phrases import THRESHOLD, HyphenMode
from stillvec.vocabulary.segmenters import SPACES, require_segmenters
from stillvec.vocabulary.word_filter import NumberMode

OF_TEACHER = (
    "teacher",
    "device",
    "precision",
    "prompt",
    "unsafe_weights",
    "remote_code",
)  # facts of the loaded one decide
_ADDED_LATER = (
    "min_sentences",
    "min_characters",
    "context_table",
    "stop_words",
    "exclude",
    "pattern",
    "numbers",
    "segmenter",
    "language",
    "phrases",
    "phrase_score",
    "hyphens",
    "senses",
    "prompt",
)
PURPOSES = ("words", "corpus", "sentences", "queries")  # what vectors can be made for (`purpose`, --for)
CONTEXTS = 20  # docs/results.md: what fewer and more contexts cost and give


@dataclass(frozen=True, kw_only=True)
class SharedSettings:
    """The settings of both: the vocabulary, and what holds for every method."""

    RENAMED: ClassVar[dict[str, str]] = {"keep": "include_words", "unknown": "oov"}

    method: str
    dim: int | None = None  # None: the method's own
    min_count: int = 5
    max_words: int | None = None
    include_words: tuple[str, ...] = ()  # in the vocabulary whatever their count
    stop_words: tuple[str, ...] = ()  # not in the vocabulary
    exclude: str | None = None  # a regular expression of words that are not in the vocabulary
    pattern: str | None = None  # a regular expression that the words of the vocabulary match
    numbers: NumberMode = "keep"  # "drop": no words without a letter
    phrases: bool = False  # two or three words that often stand together are a word
    phrase_score: float = THRESHOLD  # that a phrase needs (`vocabulary/phrases.py`)
    hyphens: HyphenMode = "split"  # "keep": frequent words with hyphens are words
    min_sentences: int | None = None  # of a paragraph, or it is dropped
    min_characters: int | None = None  # of a paragraph, or it is dropped
    lowercase: bool = True
    segmenter: str = SPACES  # what divides texts in scripts without spaces into words
    seed: int = 0
    oov: str | None = None  # "subword": n-grams that give out-of-vocabulary words a vector

    def __post_init__(self) -> None:
        check_least(self, min_count=1, max_words=1, dim=1, seed=0, min_sentences=1, min_characters=0)
        unknown_steps(self.oov)  # refuse a wrong one before the work
        require_segmenters(self.segmenter)
        filter_words(self)


@dataclass(frozen=True, kw_only=True)
class Distillation(SharedSettings):
    """Everything that decides the result of a distillation, and nothing else."""

    teacher: str = "minilm"
    method: str = "auto"  # or several: "auto,aggregate:contexts=max,additive"
    purpose: str = "words"  # one of PURPOSES: what the vectors are for; only `auto` looks at it
    layer: str | None = None
    dictionary: str | None = None
    senses: int | None = None  # vectors per ambiguous word at most, beside its own
    language: str = ENGLISH  # of the templates in which words are read alone
    contexts: int | None = CONTEXTS  # per word; None: read everything
    device: str = "auto"
    precision: str = "auto"
    prompt: str | None = None  # of the teacher's own, put before every text; None: its default
    unsafe_weights: bool = False
    remote_code: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_least(self, contexts=1, senses=2)
        if self.purpose not in PURPOSES:
            expected = " or ".join(map(repr, PURPOSES))
            raise UsageError.expected(expected, repr(self.purpose), where="setting 'purpose'")
        check_language(self.language)

    def learners(self, depth: int, *, corpus: bool = True) -> dict[str, Learner]:
        """The learners by the name of their result; `layer="all"` gives one per layer of `aggregate`.

        Without a corpus, learners with a setting `corpus` get `corpus=false`.
        """
        learners: dict[str, Learner] = {}
        for label, spec in parse_methods(self.method):
            name, given = spec.name, spec.settings
            kind = LEARNERS[name]
            if not corpus and "corpus" in _fields(kind):
                given = {**given, "corpus": "false"}
            if self.layer == "all" and _expands_layers(kind):
                for layer in range(depth + 1):
                    learners[f"{label}-layer-{layer}"] = self._learner(kind, {**given, "layer": str(layer)})
            else:
                learners[label] = self._learner(kind, given)
        known = {name for learner in learners.values() for name in _fields(type(learner))}
        for name, value in self._general().items():
            if value is not None and name not in known:
                others = ", ".join(method for method in LEARNERS if name in _fields(LEARNERS[method]))
                why = ", since it chooses the layers itself" if name == "layer" and self.method == "auto" else ""
                message = f"Method {self.method} has no setting {name!r}{why}; got {value!r}"
                raise UsageError.conflict(message, cure=f"methods that have it: {others}")
        return learners

    def run_presets(self) -> list[dict[str, Any]]:
        """The settings of the run that the preset of each method sets; a method's own settings override them."""
        return [self._run_preset(spec) for _, spec in parse_methods(self.method)]

    def _run_preset(self, spec: Spec) -> dict[str, Any]:
        if "settings" not in spec.settings:
            return {}
        kind = LEARNERS[spec.name]
        learner = self._learner(kind, spec.settings)  # refuses an unknown preset
        preset = _read_run_presets(kind).get(str(spec.settings["settings"]), {})
        return {name: getattr(learner, name) if name in _fields(kind) else value for name, value in preset.items()}

    def _learner(self, kind: type[Learner], given: Mapping[str, Value]) -> Learner:
        """A learner with the general settings that it has; the method's own override them."""
        general = {**self._general(), "dim": self.dim, "seed": self.seed or None, "min_sentences": self.min_sentences}
        values: dict[str, Any] = {name: value for name, value in general.items() if value is not None}
        if self.language != ENGLISH and "templates" in _fields(kind):
            values["templates"] = kind.choose_templates(templates_of(self.language))  # type: ignore[attr-defined]
        taken = {name: value for name, value in values.items() if name in _fields(kind)}
        return settings_from(kind, {**taken, **given}, f"the method {kind.__name__}")

    def _general(self) -> dict[str, str | int | None]:
        """The settings that go to every method with a field of the same name."""
        purpose = self.purpose if self.purpose != "words" else None
        return {"layer": self.layer, "dictionary": self.dictionary, "purpose": purpose, "senses": self.senses}


def _expands_layers(kind: object) -> bool:
    return isinstance(kind, ExpandsLayers) and kind.EXPANDS_LAYERS


def _read_run_presets(kind: object) -> Mapping[str, Mapping[str, object]]:
    return kind.RUN_PRESETS if isinstance(kind, HasRunPresets) else {}


@dataclass(frozen=True, kw_only=True)
class Training(SharedSettings):
    """Everything that decides the result of a baseline; with several threads most vary slightly from run to run."""

    method: str = "skipgram"  # or several: "skipgram:epochs=5,glove"
    threads: int | None = None  # None: all cores
    parser: str | None = None  # a spaCy pipeline, by name or folder; None: methods that need parses read CoNLL-U
    context_table: bool = False  # keep the context vectors that are trained with the words

    def __post_init__(self) -> None:
        super().__post_init__()
        check_least(self, threads=1)

    def baselines(self) -> dict[str, Baseline]:
        """The methods by the name of their result; a method's own settings override the general ones."""
        general = {"dim": self.dim, "seed": self.seed or None}
        values = {name: value for name, value in general.items() if value is not None}
        methods = parse_methods(self.method, BASELINES)
        packages = dict(PACKAGES[spec.name] for _, spec in methods if spec.name in PACKAGES)
        require_all(packages | ({"spacy": "spacy"} if self.parser else {}), f"Training {self.method}")
        for _, spec in methods if self.context_table else ():
            if not BASELINES[spec.name].has_contexts:
                cure = "skipgram, cbow, fasttext, glove and sent2vec have one"
                raise UsageError.conflict(f"{spec.name} has no context table with one row per word", cure=cure)
        return {
            label: settings_from(BASELINES[spec.name], {**values, **spec.settings}, f"method {spec.name!r}")
            for label, spec in methods
        }


def filter_words(settings: SharedSettings) -> WordFilter:
    """Which words may be in the vocabulary; refuses wrong patterns."""
    if not 0 <= settings.phrase_score < 1:
        raise UsageError.expected("a number from 0 to below 1", settings.phrase_score, where="setting 'phrase_score'")
    if settings.segmenter != SPACES and (settings.phrases or settings.hyphens == "keep"):
        raise UsageError.conflict("phrases and hyphens cannot be combined with a segmenter")
    if settings.hyphens not in ("split", "keep"):
        raise UsageError.unknown("value", settings.hyphens, ("split", "keep"), where="setting 'hyphens'")
    return WordFilter(settings.stop_words, settings.exclude, settings.pattern, settings.numbers)


def read_stop_words(source: str) -> tuple[str, ...]:
    """The stop words of a language, or those in a file, one per line."""
    words = list_function_words(source)
    if not words and not Path(source).expanduser().exists():
        what = f"a language ({', '.join(LANGUAGES)}) or a file of words"
        raise UsageError.expected(what, repr(source), where="stop_words")
    return words or tuple(read_words(Path(source).expanduser()))


def resolve_presets(
    settings: Distillation, given: Container[str]
) -> tuple[Distillation, dict[str, Any], dict[str, Any]]:
    """The settings with what the presets of the methods set for the run; then what they set, and what they do not.

    A setting in `given` stays as it is. Another one is set if the presets of all methods agree on it.
    """
    presets = settings.run_presets()
    wanted = {name: value for preset in presets for name, value in preset.items() if name not in given}
    agreed = {
        name: value
        for name, value in wanted.items()
        if all(name in preset and preset[name] == value for preset in presets)
    }
    left = {name: value for name, value in wanted.items() if name not in agreed}
    return dataclasses.replace(settings, **agreed), agreed, left


def format_preset(values: Mapping[str, Any]) -> str:
    """`contexts=all, min_count=10`."""
    spelt = {
        name: ("all" if name == "contexts" else "none") if value is None else value for name, value in values.items()
    }
    return ", ".join(f"{name}={value}" for name, value in spelt.items())


def to_manifest(settings: SharedSettings) -> dict[str, Any]:
    """The settings by the keys of a manifest, which never change; of included words only their number.

    Settings that were added later are left out where they have their default. Stop words of a language are its name.
    """
    keys = {new: old for old, new in settings.RENAMED.items()}
    values = dataclasses.asdict(settings) | {"include_words": len(settings.include_words)}
    defaults = {field.name: field.default for field in dataclasses.fields(settings)}
    known = {name: value for name, value in values.items() if name not in _ADDED_LATER or value != defaults[name]}
    if stop_words := known.get("stop_words"):
        known["stop_words"] = name_list(stop_words) or [*stop_words]
    return {keys.get(name, name): value for name, value in known.items()}


def decisive_settings(settings: SharedSettings) -> dict[str, Any]:
    """The settings that decide each result of a run, except its method and facts of the loaded teacher."""
    return {key: value for key, value in to_manifest(settings).items() if key not in ("method", *OF_TEACHER)}


def from_manifest(values: Mapping[str, Any], where: str) -> Distillation:
    """The settings in a manifest, without the included words."""
    named = {Distillation.RENAMED.get(key, key): value for key, value in values.items()}
    if isinstance(stop_words := named.get("stop_words"), str):
        named["stop_words"] = list_function_words(stop_words)
    return settings_from(Distillation, named | {"include_words": ()}, where)


def _fields(kind: type[Learner]) -> set[str]:
    return {field.name for field in dataclasses.fields(kind)}  # type: ignore[arg-type]


def parse_methods(text: str, known: Registry[Any] = LEARNERS) -> list[tuple[str, Spec]]:
    """`a,b:key=value,a:key=value` → (label of the result, method and its settings); labels are unique."""
    specs = parse_specs(text, known)
    if not specs:
        raise UsageError.expected(f"a {known.kind}", repr(text), where="method")
    for spec in specs:
        if spec.name not in known:
            raise UsageError.unknown(known.kind, spec.name, known)
    names = [spec.name for spec in specs]
    if len({*map(str, specs)}) < len(specs):
        raise UsageError(f"The same method is given twice with the same settings in {text!r}.", code="given-twice")
    labels = [name if name not in names[:index] else f"{name}-{index + 1}" for index, name in enumerate(names)]
    return [*zip(labels, specs, strict=True)]
