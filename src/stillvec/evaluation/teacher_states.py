"""A teacher at a layer as a representation: a row for every occurrence of a word.

    teacher:NAME[@LAYER][:cls][:prompt=PROMPT]
    teacher:minilm  teacher:minilm@4  teacher:minilm@4-6  teacher:models/bert@0:cls  teacher:models/gemma:prompt=STS

NAME is a teacher as for `distill`, LAYER a layer or several as for its methods (`last`, the default; 0, the input
embeddings; 4; -2; 4-6, `last3` and `all`, the mean of several), or `mix`, the sum of all layers with weights that the
task learns (`layer_mix.py`). The row of a word is the mean over its tokens; with
`:cls`, all words of a text have the state of its first token ([CLS]), so that the mean of the text is that state.

The words of raw texts are those that `distill` would find. The vector of a whole text is the teacher's sentence vector
(`encoding/text_states.py`): at the last layer that of a sentence-transformers folder, with its pooling, Dense layers,
normalization and prompt; elsewhere the mean over all tokens, special tokens included, or with `:cls` the first token.

All representations of one teacher read a text in one pass. States are float16, in files of the cache that are mapped
into memory (`encoding/word_states.py`), under a digest of teacher, precision, kind of device, layer and text.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from stillvec.errors import UsageError
from stillvec.evaluation.answer_cache import digest_folder
from stillvec.evaluation.evaluation_report import OovPolicy
from stillvec.evaluation.intervals import Floats
from stillvec.evaluation.tasks import refuse_mix
from stillvec.formats import VectorSets
from stillvec.heads.sequence_batches import SPECIAL, UNKNOWN, Representation, Sequences
from stillvec.teachers.layer_choice import parse_layers

if TYPE_CHECKING:  # only the pass needs torch
    from stillvec.encoding.context_store import Contexts
    from stillvec.encoding.text_states import Pooling, TextRows
    from stillvec.encoding.word_states import MarkedTexts
    from stillvec.teachers import Teacher

PREFIX = "teacher:"
MIX = "mix"  # the layer whose weights are learned
_FORM = re.compile(rf"{PREFIX}(?P<teacher>.+?)(@(?P<layer>[^@/:]+))?(?P<cls>:cls)?(:prompt=(?P<prompt>[^:]+))?")


@dataclass(frozen=True)
class TeacherSource:
    """A contextual model, by folder or name, loaded on first use."""

    source: str
    device: str = "auto"
    prompt: str | None = None  # the name of one of its prompts; None: its default

    @cached_property
    def identity(self) -> str:
        """The files of its folder, else the digest of the model; with the device, as rounding differs."""
        folder: Path | None = Path(self.source)
        if folder is None or not folder.is_dir():
            from stillvec.teachers.loader import locate_folder

            folder = locate_folder(self.source)
        prompt = "" if self.prompt is None else f" {self.prompt}"
        return f"{self.teacher.digest if folder is None else digest_folder(folder)} {self.device}{prompt}"

    @cached_property
    def teacher(self) -> Teacher:
        from stillvec.teachers import load_teacher

        return load_teacher(self.source, device=self.device, precision="fp32", prompt=self.prompt)


@dataclass
class StateReader:
    """Reads texts with one teacher, all layers that are wanted in one pass."""

    source: TeacherSource
    folder: Path | None = None  # of the cache; None: in memory, until another text is read
    wanted: list[str] = field(default_factory=list)  # layers, of all representations of this teacher
    cls: set[bool] = field(default_factory=set)  # whether a representation takes the mean, the first token
    _latest: tuple[str, dict[int, Contexts]] = field(default=("", {}), init=False, repr=False)
    _encoded: tuple[str, TextRows] = field(default=("", {}), init=False, repr=False)

    def read_steps(self, marked: MarkedTexts) -> Generator[float, None, dict[int, Contexts]]:
        """The stored states of each layer; a generator of the fraction done."""
        from stillvec.encoding.word_states import read_states

        if self._latest[0] != marked.digest:
            self._latest = "", {}  # frees those of another text first
            stores = yield from read_states(self.source.teacher, marked, self._layers(), self.folder)
            self._latest = marked.digest, stores
        return self._latest[1]

    def encode_steps(self, texts: Sequence[str]) -> Generator[float, None, TextRows]:
        """The vectors of whole texts, of each layer; a generator of the fraction done."""
        from stillvec.encoding.text_states import digest_texts, encode_texts

        digest = digest_texts(texts)
        if self._encoded[0] != digest:
            self._encoded = "", {}
            wanted = {
                place for layer in self.wanted for cls in self.cls or {False} for place in self.places(layer, cls)
            }
            self._encoded = digest, (yield from encode_texts(self.source.teacher, texts, wanted, self.folder, digest))
        return self._encoded[1]

    def places(self, layer: str, cls: bool) -> list[tuple[int, Pooling]]:
        """The layers that are averaged for the vector of a text, and how each is pooled."""
        teacher = self.source.teacher
        layers = _parse(layer, teacher.depth)
        if cls:
            return [(number, "first") for number in layers]
        own = teacher.head is not None and layers == (teacher.depth,)
        return [(number, "own" if own else "mean") for number in layers]

    def _layers(self) -> list[int]:
        depth = self.source.teacher.depth
        return sorted({number for layer in self.wanted for number in _parse(layer, depth)})


@dataclass(frozen=True)
class TeacherStates(Representation):
    """A teacher at a layer, or at the mean of several."""

    reader: StateReader
    layer: str = "last"
    cls: bool = False
    oov: ClassVar[OovPolicy] = "skip"

    @property
    def identity(self) -> str:
        """A digest of what determines its rows."""
        return f"states {self.reader.source.identity} {self.layer} {self.cls}"

    @property
    def is_mix(self) -> bool:
        """Whether the task is to learn the weights of the layers."""
        return self.layer == MIX

    def check(self) -> None:
        """Raise an error if the teacher does not have these states."""
        teacher = self.reader.source.teacher
        _parse(self.layer, teacher.depth, f"{PREFIX}{self.reader.source.source}@{self.layer}")
        if self.cls and not teacher.tokenizer.prefix:
            cure = f"leave out :cls for the mean of the words, or use a teacher other than {teacher.name}"
            raise UsageError.conflict(f"The tokenizer of {teacher.name} puts no token before a text", cure=cure)

    def read_tokens_steps(self, sentences: Sequence[Sequence[str]]) -> Generator[float, None, Sequences]:
        """The rows of tokenized sentences; every token is one word."""
        from stillvec.encoding.word_states import MarkedTexts

        return (yield from self._read(MarkedTexts.from_tokens(sentences)))

    def read_texts_steps(self, texts: Sequence[str]) -> Generator[float, None, Sequences]:
        """The rows of the words that `distill` would find."""
        from stillvec.encoding.word_states import MarkedTexts

        return (yield from self._read(MarkedTexts.from_texts(texts)))

    def encode_texts_steps(self, texts: Sequence[str]) -> Generator[float, None, NDArray[np.float32]]:
        """The teacher's sentence vectors, read-only where they are mapped; zero for a text without tokens."""
        if self.is_mix:
            raise refuse_mix(f"The vector of a text of {self.reader.source.source}@{MIX}")
        chosen = yield from self._encode(texts)
        return chosen[0] if len(chosen) == 1 else np.mean(chosen, axis=0, dtype=np.float32)

    def encode_layers_steps(self, texts: Sequence[str]) -> Generator[float, None, list[NDArray[np.float32]]]:
        return (yield from self._encode(texts)) if self.is_mix else [(yield from self.encode_texts_steps(texts))]

    def _encode(self, texts: Sequence[str]) -> Generator[float, None, list[NDArray[np.float32]]]:
        self.check()
        rows = yield from self.reader.encode_steps(texts)
        return [rows[place] for place in self.reader.places(self.layer, self.cls)]

    def count_words(self, texts: Sequence[str]) -> Floats:
        """A word is known if the tokenizer has a token for it."""
        from stillvec.encoding.caching_tokenizer import align_words
        from stillvec.encoding.word_states import MarkedTexts

        spans = MarkedTexts.from_texts(texts).spans
        tokenized, _ = align_words(self.reader.source.teacher.tokenizer.encode([*texts]), spans)
        n_words = np.bincount(spans.text_index, minlength=len(texts))
        return np.stack([tokenized.n_words, n_words], axis=1).astype(np.float64)

    @property
    def _layers(self) -> tuple[int, ...]:
        return _parse(self.layer, self.reader.source.teacher.depth)

    def _read(self, marked: MarkedTexts) -> Generator[float, None, Sequences]:
        from stillvec.encoding.word_states import N_SPECIAL

        assert N_SPECIAL == SPECIAL
        self.check()
        stores = yield from self.reader.read_steps(marked)
        chosen = [stores[layer] for layer in self._layers]
        lengths = chosen[0].lengths[SPECIAL:].astype(np.int64)
        known = chosen[0].words[SPECIAL:] >= 0
        row = np.repeat(np.arange(len(lengths)), lengths) if self.cls else np.arange(len(known))
        types = number_types(marked.words)
        name = "contexts" if self.cls else "states"
        layers = tuple(_average([store], name) for store in chosen) if self.is_mix else ()
        return Sequences(
            np.zeros((0, layers[0].shape[1]), np.float32) if layers else _average(chosen, name),
            np.where(known, SPECIAL + row, UNKNOWN),
            np.cumsum(lengths),
            np.where(known, SPECIAL + types, UNKNOWN),
            layers,
        )


def _parse(layer: str, depth: int, where: str = "setting 'layer'") -> tuple[int, ...]:
    return parse_layers("all" if layer == MIX else layer, depth, where)


def number_types(words: Iterable[str]) -> NDArray[np.int64]:
    """The number of the lower-cased form of each word (N,), from 0 in the order of appearance."""
    numbers: dict[str, int] = {}
    return np.array([numbers.setdefault(word.lower(), len(numbers)) for word in words], np.int64)


def _average(stores: Sequence[Contexts], name: str) -> NDArray[Any]:
    """The rows of one store, mapped as they are if they are not scaled, or the mean of several."""
    if len(stores) == 1 and stores[0].scale == 1:
        return np.asarray(getattr(stores[0], name))
    total = np.zeros(getattr(stores[0], name).shape, np.float32)
    for store in stores:
        total += np.multiply(getattr(store, name), np.float32(store.scale), dtype=np.float32)
    return total / np.float32(len(stores))


def is_teacher(source: object) -> bool:
    """Whether a source of `evaluate` names a teacher."""
    return isinstance(source, str) and source.startswith(PREFIX)


def split_teachers(sources: VectorSets) -> tuple[VectorSets, dict[str, str]]:
    """The sources that are vectors, and those that name teachers, by name."""
    if isinstance(sources, Mapping):
        teachers = {str(name): str(source) for name, source in sources.items() if is_teacher(source)}
        return {name: source for name, source in sources.items() if not is_teacher(source)}, teachers
    listed: list[Any] = (
        [sources] if isinstance(sources, str) else [*sources] if isinstance(sources, list | tuple) else []
    )
    named = {_name(source): source for source in listed if is_teacher(source)}
    if not named:
        return sources, {}
    return [source for source in listed if not is_teacher(source)], named


def open_teachers(sources: Mapping[str, str], folder: Path | None, device: str = "auto") -> dict[str, TeacherStates]:
    """The representations by name; those of one teacher share a reader."""
    readers: dict[tuple[str, str | None], StateReader] = {}
    opened: dict[str, TeacherStates] = {}
    for name, text in sources.items():
        teacher, layer, cls, prompt = parse_teacher(text)
        reader = readers.setdefault((teacher, prompt), StateReader(TeacherSource(teacher, device, prompt), folder))
        reader.wanted.append(layer)
        reader.cls.add(cls)
        opened[name] = TeacherStates(reader, layer, cls)
    return opened


def parse_teacher(text: str) -> tuple[str, str, bool, str | None]:
    """`teacher:NAME[@LAYER][:cls][:prompt=PROMPT]` → teacher, layer, whether [CLS] stands for all words, prompt."""
    match = _FORM.fullmatch(text)
    if match is None:
        what = "teacher:NAME[@LAYER][:cls][:prompt=PROMPT], as in teacher:minilm@4"
        raise UsageError.expected(what, repr(text))
    return match["teacher"], match["layer"] or "last", bool(match["cls"]), match["prompt"]


def _name(text: str) -> str:
    """`teacher:models/bert@4` → `bert@4`."""
    teacher = parse_teacher(text)[0]
    return Path(teacher).name + text.removeprefix(PREFIX + teacher)
