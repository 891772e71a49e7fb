"""Character models: a word is the forward state after its last and the backward state after its first character."""

from __future__ import annotations

import dataclasses
import json
import os
import pickle
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file
from tiny_corpus import make_pass
from tiny_teachers import write_tiny_character_lstm

from stillvec import distill
from stillvec.encoding import BatchBudget, BatchBuilder, BatchLoader, TextChunk, encode_batch
from stillvec.encoding.batch import window_starts
from stillvec.errors import TeacherError, UsageError
from stillvec.learners import LEARNERS
from stillvec.teachers import Teacher, align, load_teacher
from stillvec.teachers.character_lstm import CharacterTokenizer
from stillvec.vocabulary import Vocabulary, WordMatcher, WordSpans

TEXTS = (
    "The house stands by the sea.",
    "houses",
    "He said: “don't!” (twice), at 3.50 dollars; 1,000 pieces, e-mail & C++…",
    "A naïve café, a nai\u0308ve cafe\u0301 and the dog's J. R. R. — Straße, ΟΔΟΣ, İstanbul.",
    "Smile 😀 and 👩‍👩‍👧 wave, 他读书。 السلام عليكم",
    "   leading and\ttrailing\u00a0spaces   ",
    "",
    "...!?",
    "I",
)
LONG = " ".join([*TEXTS[:3], "x" * 30, *TEXTS[:4]])


@dataclasses.dataclass(frozen=True)
class Slow:
    """One text at a time, one character at a time, the gates written out."""

    folder: Path

    @cached_property
    def weights(self) -> dict[str, dict[str, np.ndarray]]:
        files = {name: load_file(self.folder / f"{name}.safetensors") for name in ("forward", "backward")}
        return {name: {key: each.astype(np.float64) for key, each in file.items()} for name, file in files.items()}

    @cached_property
    def config(self) -> dict[str, object]:
        return json.loads((self.folder / "config.json").read_text(encoding="utf-8"))

    def read(self, direction: str, text: str) -> list[np.ndarray]:
        """The state after each character of `text`, which is read after the start."""
        weights = self.weights[direction]
        hidden = cell = np.zeros(weights["lstm.weight_hh_l0"].shape[1])
        states = []
        for character in [self.config["start"], *text]:
            entered = self.embedding(direction, character) @ weights["lstm.weight_ih_l0"].T + weights["lstm.bias_ih_l0"]
            gates = entered + weights["lstm.weight_hh_l0"] @ hidden + weights["lstm.bias_hh_l0"]
            write, keep, new, show = np.split(gates, 4)
            cell = cell * _sigmoid(keep) + _sigmoid(write) * np.tanh(new)
            hidden = _sigmoid(show) * np.tanh(cell)
            states.append(hidden)
        return states[1:]

    def embedding(self, direction: str, character: str) -> np.ndarray:
        characters = self.config["characters"]
        row = characters.index(character) if character in characters else self.config["unknown"]
        return self.weights[direction]["embedding.weight"][row]

    def words(self, text: str, spans: Sequence[tuple[int, int]], directory: int) -> list[np.ndarray]:
        """(2, D) of each span: layer 0, layer 1; from the window in whose middle its last character stands most."""
        starts = window_starts(len(text), directory)
        read = {start: self.both(text[start : start + directory]) for start in starts}
        words = []
        for begin, end in spans:
            last = end - 1
            holding = [start for start in starts if start <= last < start + directory]
            start = min(holding, key=lambda start: (abs(last + 0.5 - start - directory / 2), -start))
            first = max(begin, start)
            ahead, back = read[start]
            letters = [
                np.mean([self.embedding(direction, each) for each in text[first:end]], axis=0)
                for direction in ("forward", "backward")
            ]
            filled = [np.pad(each, (0, len(ahead[0]) - len(each))) for each in letters]
            words.append(np.stack([np.concatenate(filled), np.concatenate([ahead[last - start], back[first - start]])]))
        return words

    def both(self, text: str) -> tuple[list[np.ndarray], list[np.ndarray]]:
        return self.read("forward", text), self.read("backward", text[::-1])[::-1]


def _sigmoid(values: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-values))


def _numbered(texts: Sequence[str]) -> WordSpans:
    """Every word of the texts, each with a number of its own instead of a row."""
    found = WordMatcher(Vocabulary(["house"])).match(texts)
    return dataclasses.replace(found, ids=np.arange(len(found.ids), dtype=np.int32))


def _compare(teacher: Teacher, folder: Path, texts: Sequence[str], budget: int = 200) -> None:
    found, slow = _numbered(texts), Slow(folder)
    expected: list[np.ndarray] = []
    for number, text in enumerate(texts):
        spans = [*zip(found.starts[found.text_index == number], found.ends[found.text_index == number], strict=True)]
        expected += slow.words(text, spans, teacher.window - 2)
    preparation = BatchBuilder(teacher.tokenizer, WordMatcher(Vocabulary(["x"])), teacher.window, teacher.pad, budget)
    statistics: list[int] = []
    made = preparation(TextChunk(texts, found))
    for batch in made:
        encoded = encode_batch(teacher, batch, [0, 1])
        statistics += batch.word_id.tolist()
        for layer in (0, 1):
            want = [expected[word][layer] for word in batch.word_id.tolist()]
            for pooling in ("mean", "first", "max") if want else ():
                np.testing.assert_allclose(encoded.words(layer, pooling).numpy(), np.stack(want), atol=2e-5)
    assert sorted(statistics) == [*range(len(found.ids))]
    assert any((batch.lengths != batch.ids.shape[1]).any() for batch in made)  # some are padded


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("characters")
    write_tiny_character_lstm(made)
    return made


@pytest.fixture
def teacher(folder: Path) -> Teacher:
    return load_teacher(str(folder), device="cpu", precision="fp32")


def test_words_are_those_of_a_slow_reading_letter_by_letter(teacher: Teacher, folder: Path) -> None:
    assert (teacher.dim, teacher.depth, teacher.window) == (16, 1, 512)
    _compare(teacher, folder, TEXTS)


def test_a_text_over_the_limit_is_read_in_windows_and_a_word_comes_from_one(teacher: Teacher, folder: Path) -> None:
    _compare(dataclasses.replace(teacher, window=42), folder, [LONG, *TEXTS])


def _flair() -> Path:
    folder_name = os.environ.get("STILLVEC_FLAIR", "")
    if not folder_name or not (Path(folder_name) / "config.json").is_file():
        pytest.skip("There are no real character models; STILLVEC_FLAIR names their folder.")
    return Path(folder_name)


def test_real_character_models_agree_with_the_slow_reading() -> None:
    real = load_teacher(str(_flair()), device="cpu", precision="fp32")
    assert (real.dim, real.depth) == (2048, 1)
    _compare(real, _flair(), TEXTS)
    _compare(dataclasses.replace(real, window=90), _flair(), [LONG, *TEXTS])


def _words(teacher: Teacher, text: str, vocabulary: Sequence[str]) -> torch.Tensor:
    preparation = BatchBuilder.for_teacher(teacher, WordMatcher(Vocabulary(vocabulary)), BatchBudget(512, 16))
    (batch,) = preparation(TextChunk([text]))
    encoded = encode_batch(teacher, batch, [1])
    return encoded.words(1)[encoded.known]


def test_a_term_of_several_words_is_their_mean(teacher: Teacher) -> None:
    text = "they saw New York again"
    (term,) = _words(teacher, text, ["new york"])
    torch.testing.assert_close(term, _words(teacher, text, ["new", "york"]).mean(0))


def test_case_is_read_and_the_place_in_the_text_too(teacher: Teacher) -> None:
    lower, upper, again = _words(teacher, "house House house", ["house"])
    assert not torch.allclose(lower, upper)
    assert not torch.allclose(lower, again)


@given(texts=st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=30), max_size=4))
def test_every_word_is_one_piece_that_stands_where_the_word_stands(texts: list[str]) -> None:
    cutter = CharacterTokenizer(["<unk>", "\n", "a", "b", " "], 0, 1)
    found, pieces = _numbered(texts), cutter.encode(texts)
    piece, word = align(pieces, found)
    assert word.tolist() == found.ids.tolist()
    assert pieces.starts[piece].tolist() == found.starts.tolist()
    assert pieces.ends[piece].tolist() == found.ends.tolist()
    assert pieces.lengths.tolist() == [len(text) for text in texts]
    assert (pieces.ids % 5).tolist() == [max(0, "?\nab ".find(letter)) for text in texts for letter in text]


@pytest.mark.parametrize(("precision", "least"), [("bf16", 0.999), ("fp16", 0.999), ("int8", 0.95)])
def test_lower_precisions_stay_close_and_are_the_same_teacher(
    teacher: Teacher, folder: Path, precision: str, least: float
) -> None:
    rough = load_teacher(str(folder), device="cpu", precision=precision)
    assert (rough.digest, rough.precision) == (teacher.digest, precision)
    pair = (_words(each, TEXTS[0], ["house", "sea", "the"]) for each in (rough, teacher))
    assert torch.cosine_similarity(*pair).min() > least


def test_other_weights_are_another_teacher(teacher: Teacher, tmp_path: Path) -> None:
    write_tiny_character_lstm(tmp_path, seed=1)
    assert load_teacher(str(tmp_path), device="cpu").digest != teacher.digest


def test_batches_come_alike_from_worker_processes(teacher: Teacher) -> None:
    preparation = BatchBuilder.for_teacher(teacher, WordMatcher(Vocabulary(["house", "sea"])), BatchBudget(256, 4))
    here = preparation(TextChunk(TEXTS))
    sent = pickle.loads(pickle.dumps(preparation))(TextChunk(TEXTS))
    with BatchLoader(preparation, workers=1) as preparer:
        there = [*preparer.batches([TextChunk(TEXTS)])]
    for others in (sent, there):
        for one, other in zip(here, others, strict=True):
            for field in dataclasses.fields(one):
                np.testing.assert_array_equal(getattr(one, field.name), getattr(other, field.name))


def test_methods_take_it_like_any_teacher(teacher: Teacher) -> None:
    vocabulary = Vocabulary(["house", "sea", "new york"])
    encoding_pass = make_pass({"aggregate": LEARNERS["aggregate"](layer="all")}, teacher, vocabulary)
    for _ in encoding_pass.run([TextChunk(TEXTS)], BatchBudget(256, 16)):
        pass
    vectors = encoding_pass.plan.learners["aggregate"].finish(encoding_pass.statistics_of("aggregate")).vectors
    assert vectors.matrix.shape == (3, 16)
    assert np.linalg.norm(vectors.matrix, axis=1).min() > 0


def test_what_it_cannot_give_is_said(teacher: Teacher) -> None:
    assert teacher.tokenizer.vocabulary() == []
    with pytest.raises(TeacherError, match="no token embeddings"):
        make_pass({"token_table": LEARNERS["token_table"]()}, teacher, Vocabulary(["house"]))


def test_without_corpus_and_words_there_is_nothing_to_distil(folder: Path) -> None:
    with pytest.raises(UsageError, match="--include-words"):
        distill(teacher=str(folder), method="decontextualized", device="cpu")
    assert (
        len(distill(teacher=str(folder), method="decontextualized", device="cpu", include_words=("house", "sea"))) == 2
    )


def _tell(**changes: object) -> Callable[[Path], object]:
    def spoil(folder: Path) -> None:
        path = folder / "config.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | changes))

    return spoil


def _spoil_weights(**changes: np.ndarray) -> Callable[[Path], object]:
    def spoil(folder: Path) -> None:
        path = folder / "backward.safetensors"
        weights = load_file(path) | {name.replace("__", "."): each for name, each in changes.items()}
        save_file({name: each for name, each in weights.items() if each.size}, path)

    return spoil


BROKEN: dict[str, tuple[Callable[[Path], object], str]] = {
    "no list of characters": (_tell(characters="abc"), "'characters' .* distinct"),
    "a character twice": (_tell(characters=["a", "a"]), "'characters' .* distinct"),
    "an unknown row for the unknown": (_tell(unknown=900), "'unknown': expected a row from 0 to .*, got 900"),
    "no start": (_tell(start=None), "'start': expected one of 'characters', got None"),
    "other characters than rows": (
        _tell(characters=["?", "\n"]),
        "'embedding.weight'.*over 2 char.*, 5",
    ),
    "one direction": (lambda f: (f / "backward.safetensors").unlink(), "backward.safetensors cannot be read"),
    "damaged weights": (
        lambda f: (f / "forward.safetensors").write_bytes(b"junk" * 9),
        "forward.safetensors cannot",
    ),
    "a missing tensor": (_spoil_weights(lstm__bias_ih_l0=np.zeros(0)), "'lstm.bias_ih_l0': expected .*, got None"),
    "a second layer": (
        _spoil_weights(lstm__bias_ih_l1=np.zeros(32)),
        "'lstm.bias_ih_l1': .*one LSTM layer",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_folder_that_cannot_teach_says_why_in_one_sentence(case: str, tmp_path: Path) -> None:
    spoil, sentence = BROKEN[case]
    write_tiny_character_lstm(tmp_path)
    spoil(tmp_path)
    with pytest.raises(TeacherError, match=sentence) as caught:
        load_teacher(str(tmp_path))
    assert "\n" not in str(caught.value)
    assert str(tmp_path) in str(caught.value)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU here")
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_gpu_gives_the_states_of_a_cpu(teacher: Teacher, folder: Path, precision: str) -> None:
    quick = load_teacher(str(folder), device="cuda", precision=precision)
    batches = BatchBuilder.for_teacher(teacher, WordMatcher(Vocabulary(["house"])), BatchBudget(256, 16))(
        TextChunk(TEXTS)
    )
    for batch in batches:
        here, there = (encode_batch(each, batch, [0, 1]) for each in (teacher, quick))
        for layer in (0, 1):
            torch.testing.assert_close(there.words(layer).cpu(), here.words(layer), atol=3e-2, rtol=1e-2)
