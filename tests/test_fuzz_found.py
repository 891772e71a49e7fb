"""What damaged files once did instead of being refused, each as small as it could be made."""

from __future__ import annotations

import gzip
import json
import tracemalloc
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from error_checks import raises
from fuzzed_readers import MADE, RECIPE, TREE, WORDNET, readers_of
from fuzzing import ROOM, Reader, fuzz, place
from tiny_teachers import write_tiny_model

from stillvec import SearchIndex, Vocabulary, WordVectors, fit, index, load_head, refine
from stillvec.cli import completion_command
from stillvec.corpus import Corpus
from stillvec.corpus.wikitext import plain_paragraphs
from stillvec.errors import (
    CorpusError,
    DatasetError,
    FormatError,
    LexiconError,
    StillvecWarning,
    TeacherError,
    UsageError,
)
from stillvec.evaluation.answer_cache import AnswerCache
from stillvec.evaluation.evaluation_report import Report
from stillvec.evaluation.tasks import TASKS
from stillvec.files import cache_folder
from stillvec.formats import load, save, write_folder
from stillvec.formats.model_card import card
from stillvec.formats.tensors import map_tensors, write_tensors
from stillvec.lexicons import read_evaluation_pairs, read_lexicon
from stillvec.pipeline.pass_checkpoint import PassCheckpoint
from stillvec.pipeline.previous_result import PreviousResult, merge_results
from stillvec.refinement.natural_alpha import NaturalAlpha
from stillvec.teachers import load_teacher, load_tokenizer
from stillvec.verbs.recipe import read_recipe

DEEP = "[" * 100_000
DIGITS = "9" * 5000  # Python reads no number of more than 4,300
VECTORS = WordVectors(Vocabulary(["ice", "snow"], [2, 1]), np.ones((2, 4), np.float32))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_folder(VECTORS, tmp_path / "v", MADE, {"around/sum:x": np.ones(2)})
    return tmp_path / "v"


def written(tmp_path: Path, name: str, content: str | bytes) -> Path:
    (tmp_path / name).write_bytes(content.encode() if isinstance(content, str) else content)
    return tmp_path / name


def change_manifest(folder: Path, **facts: Any) -> None:
    """Another manifest."""
    file = folder / "manifest.json"
    file.write_text(json.dumps(json.loads(file.read_bytes()) | facts))


def header(path: Path, **facts: Any) -> Path:
    """A safetensors file with another entry."""
    write_tensors(path, {"matrix": np.zeros((2, 4), np.float32)})
    raw = path.read_bytes()
    length = int.from_bytes(raw[:8], "little")
    entry = json.loads(raw[8 : 8 + length])
    entry["matrix"] |= facts
    text = json.dumps(entry).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + raw[8 + length :])
    return path


# JSON and TOML


def test_a_manifest_nested_too_deeply_is_refused(folder: Path) -> None:
    (folder / "manifest.json").write_text(DEEP)
    with raises(FormatError, code="damaged", path=folder / "manifest.json"):
        load(folder)


def test_a_safetensors_header_nested_too_deeply_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "t", len(DEEP).to_bytes(8, "little") + DEEP.encode())
    with pytest.raises(FormatError, match="not JSON"):
        map_tensors(path)


def test_a_list_of_words_of_spacy_nested_too_deeply_is_refused(tmp_path: Path) -> None:
    (reader,) = readers_of("spacy")
    place(dict(reader.seeds[0]) | {"v/vocab/strings.json": DEEP.encode()}, tmp_path)
    with raises(FormatError, code="damaged", path=tmp_path / "v/vocab/strings.json"):
        load(tmp_path / "v")


@pytest.mark.parametrize("name", ["tokenizer.json", "modules.json"])
def test_json_of_static_embeddings_nested_too_deeply_is_refused(tmp_path: Path, name: str) -> None:
    (reader,) = readers_of("model2vec")
    place(dict(reader.seeds[0]) | {f"v/{name}": DEEP.encode()}, tmp_path)
    with pytest.raises(FormatError, match=name):
        load(tmp_path / "v")


def test_bias_lists_nested_too_deeply_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="JSON"):
        TASKS["bias"]().read(written(tmp_path, "a.json", DEEP))


def test_a_file_whose_first_line_is_nested_too_deeply_is_text(tmp_path: Path) -> None:
    path = written(tmp_path, "file", '{"a":' * 10_000)
    assert "".join(Corpus(path).paragraphs()).count("a") == 10_000


@pytest.mark.parametrize("value", [DIGITS, "[" * 3000 + "]" * 3000])
def test_a_recipe_with_an_absurd_value_is_refused(tmp_path: Path, value: str) -> None:
    path = written(tmp_path, "r.toml", RECIPE.replace("min-count = 3", f"min-count = {value}"))
    with pytest.raises(UsageError, match=r"is not TOML|whole number") as caught:  # by the limit of recursion
        read_recipe(path)
    assert len(str(caught.value)) < 1000


def test_a_store_of_contexts_with_absurd_facts_is_refused(tmp_path: Path) -> None:
    from stillvec.encoding.context_store import Contexts

    for text in (DEEP, '{"shapes": {"words": [Infinity]}, "scale": 1}'):
        written(tmp_path, "store.json", text)
        with pytest.raises(FormatError, match="is not a context cache"):
            Contexts.open(tmp_path)


# Numbers


def test_a_record_with_a_number_of_thousands_of_digits_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="a number with thousands of digits"):
        [*Corpus(written(tmp_path, "a.jsonl", f'{{"text": {DIGITS}}}')).paragraphs()]


def test_a_place_of_thousands_of_digits_in_a_treebank_is_read_or_refused(tmp_path: Path) -> None:
    ranged = written(
        tmp_path, "a.conllu", TREE.replace("# text = Dogs bark.\n", "").replace("1\tDogs", f"{DIGITS}\tDogs")
    )
    assert next(Corpus(ranged).paragraphs()).startswith("Dogs bark")
    headed = written(tmp_path, "b.conllu", TREE.replace("\t2\tnsubj", f"\t{DIGITS}\tnsubj"))
    with raises(CorpusError, code="bad-parse", path=headed):
        [*Corpus(headed).parses()]
    with pytest.raises(DatasetError, match="HEAD"):
        TASKS["labels"]().read(headed)


@pytest.mark.parametrize("count", [DIGITS, "9223372036854775808"])
def test_a_count_beyond_64_bits_is_refused(folder: Path, count: str) -> None:
    (folder / "vocabulary.tsv").write_text(f"ice\t{count}\nsnow\t1\n")
    with raises(FormatError, code="damaged", path=folder / "vocabulary.tsv"):
        load(folder)


def test_a_count_of_thousands_of_digits_in_the_projector_is_refused(tmp_path: Path) -> None:
    place({"v/vectors.tsv": b"1\t2\n", "v/metadata.tsv": f"word\tcount\nice\t{DIGITS}\n".encode()}, tmp_path)
    with raises(FormatError, path=tmp_path / "v/metadata.tsv", line=2):
        load(tmp_path / "v")


@pytest.mark.parametrize("facts", [{"dtype": ["F32"]}, {"shape": [float("inf")]}, {"data_offsets": [0, float("inf")]}])
def test_a_safetensors_entry_of_unexpected_types_is_refused(tmp_path: Path, facts: dict[str, Any]) -> None:
    with pytest.raises(FormatError, match="matrix"):
        map_tensors(header(tmp_path / "t", **facts))


@pytest.mark.parametrize("first", ["2 100000000000000000", "2 4294967296"])
@pytest.mark.parametrize("name", ["v.w2v", "v.vec"])
def test_a_header_with_absurd_sizes_takes_no_memory(tmp_path: Path, first: str, name: str) -> None:
    with pytest.raises(FormatError):
        load(written(tmp_path, name, f"{first}\nice 1 2\nsnow 3 4\n"))


def test_a_wide_header_over_short_lines_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="2000000 numbers"):
        load(written(tmp_path, "v.w2v", "2 2000000\n" + "ice 1 2\n" * 900))


def test_a_floret_table_without_columns_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="floret"):
        load(written(tmp_path, "v.floret", "2 0 2 3 1 5 < >\n0\n1\n"), format="floret")


def test_a_sparse_table_far_wider_than_its_numbers_is_refused(tmp_path: Path) -> None:
    matrix = np.zeros((8, 32), np.float32)
    matrix[:, 0] = 1
    write_folder(WordVectors([f"w{row}" for row in range(8)], matrix), tmp_path / "v", {}, packed="sparse")
    change_manifest(tmp_path / "v", dim=1 << 40)
    with raises(FormatError, code="compression"):
        load(tmp_path / "v")


def test_a_packing_that_is_not_a_name_is_refused(folder: Path) -> None:
    change_manifest(folder, stored={"a": 1})
    with raises(FormatError, code="compression", path=folder / "manifest.json"):
        load(folder)


def test_scales_that_overflow_are_reported_without_a_warning_of_numpy(tmp_path: Path) -> None:
    matrix = np.full((4, 64), 127, np.float32)
    write_folder(WordVectors([f"w{row}" for row in range(4)], matrix), tmp_path / "v", {}, packed="int8")
    arrays = {name: np.array(array) for name, array in map_tensors(tmp_path / "v" / "vectors.safetensors").items()}
    write_tensors(tmp_path / "v" / "vectors.safetensors", arrays | {"scales": arrays["scales"] * np.float32(1e38)})
    with pytest.raises(FormatError, match="NaN"):
        load(tmp_path / "v")


@pytest.mark.filterwarnings("error")
def test_weights_of_static_embeddings_that_overflow_are_reported_without_a_warning_of_numpy(tmp_path: Path) -> None:
    (reader,) = readers_of("model2vec")
    place(reader.seeds[1], tmp_path)
    arrays = {name: np.array(array) for name, array in map_tensors(tmp_path / "v" / "model.safetensors").items()}
    write_tensors(tmp_path / "v" / "model.safetensors", arrays | {"weights": np.full(4, 1e300)})
    with pytest.raises(FormatError, match="NaN"):
        load(tmp_path / "v")


def test_a_row_beyond_64_bits_is_refused(tmp_path: Path) -> None:
    (reader,) = readers_of("spacy")
    place(dict(reader.seeds[0]) | {"v/vocab/key2row": b"\x81\x01\xcf" + b"\xff" * 8}, tmp_path)
    with pytest.raises(FormatError, match="18446744073709551615"):
        load(tmp_path / "v")
    tokenizer = {"model": {"vocab": {"ice": 2**64}}, "normalizer": None}
    (reader,) = readers_of("model2vec")
    place(dict(reader.seeds[0]) | {"v/tokenizer.json": json.dumps(tokenizer).encode()}, tmp_path / "static")
    with pytest.raises(FormatError, match="'ice'"):
        load(tmp_path / "static" / "v", format="model2vec")


@pytest.mark.filterwarnings("error")
def test_an_array_with_a_header_of_python_2_is_read_without_a_warning_of_numpy(tmp_path: Path) -> None:
    save(VECTORS, tmp_path / "v.npy", format="npy")
    raw = (tmp_path / "v.npy").read_bytes()
    (tmp_path / "v.npy").write_bytes(raw.replace(b"(2, 4), }  ", b"(2L, 4), } "))
    assert load(tmp_path / "v.npy").words == ("ice", "snow")


# Types and places


@pytest.mark.parametrize("path", ["../secret", "/etc", "x" * 300])
def test_a_module_that_is_elsewhere_is_refused(tmp_path: Path, path: str) -> None:
    (reader,) = readers_of("sentence-transformers")
    modules = [{"type": "sentence_transformers.models.StaticEmbedding", "path": path}]
    place(dict(reader.seeds[0]) | {"v/modules.json": json.dumps(modules).encode()}, tmp_path)
    with raises(FormatError, code="outside", path=tmp_path / "v/modules.json"):
        load(tmp_path / "v")


def test_a_prefix_of_pieces_that_is_not_a_text_is_read_or_refused(tmp_path: Path) -> None:
    (reader,) = readers_of("model2vec")
    model = {"vocab": {"ice": 0}, "ignore_merges": True, "continuing_subword_prefix": ["a"]}
    tokenizer = json.dumps({"model": model, "normalizer": None}).encode()
    place(dict(reader.seeds[0]) | {"v/tokenizer.json": tokenizer}, tmp_path)
    assert load(tmp_path / "v", format="model2vec").words == ("ice",)


@pytest.mark.parametrize("facts", [{"words": "many"}, {"refined": 3}, {"combined": [1]}, {"read": {"sentences": [1]}}])
def test_a_manifest_of_unexpected_types_makes_no_card(facts: dict[str, Any]) -> None:
    whole = MADE | {"words": 2, "dim": 4, "dtype": "float32"}
    assert card(whole)
    with pytest.raises(FormatError, match="manifest"):
        card(whole | facts)


@pytest.mark.parametrize("facts", [{"method": 3}, {"settings": []}, {"teacher": None}, {"settings": {"settings": []}}])
def test_a_manifest_of_unexpected_types_is_not_added_to(folder: Path, facts: dict[str, Any]) -> None:
    change_manifest(folder, **facts)
    with pytest.raises((FormatError, UsageError), match=r"has no|settings"):
        PreviousResult(folder).learner()


@pytest.mark.parametrize("facts", [{"read": {"words": "many"}}, {"corpus": {}}, {"teacher": {"name": "x"}}])
def test_results_with_unexpected_facts_do_not_merge(tmp_path: Path, facts: dict[str, Any]) -> None:
    for name in "ab":
        write_folder(VECTORS, tmp_path / name, MADE, {"states/sum:read": np.ones(2)})
    change_manifest(tmp_path / "a", **facts)
    warnings.simplefilter("ignore", StillvecWarning)  # of one text in both
    with pytest.raises(FormatError, match=r"The manifest or the statistics of .* are damaged"):
        merge_results([tmp_path / "a", tmp_path / "b"])


def test_a_checkpoint_that_lacks_the_state_of_accumulators_is_refused(tmp_path: Path) -> None:
    (reader,) = (each for each in readers_of("results") if each.name == "checkpoint gone on with")
    place(reader.seeds[0], tmp_path)
    reader.read(tmp_path)
    arrays = {name: np.array(array) for name, array in map_tensors(tmp_path / "out.checkpoint").items()}
    for lacking in ("contexts", next(name for name in arrays if name.startswith("part/"))):
        write_tensors(tmp_path / "out.checkpoint", {name: each for name, each in arrays.items() if name != lacking})
        with pytest.raises(UsageError, match="--resume"):
            reader.read(tmp_path)


def test_a_store_whose_sentences_are_of_other_lengths_is_refused(tmp_path: Path) -> None:
    from stillvec.encoding.context_store import Contexts

    (reader,) = (each for each in readers_of("runs") if each.name == "store of contexts")
    place(dict(reader.seeds[0]) | {"s/lengths.i32": np.array([5, -2], "<i4").tobytes()}, tmp_path)
    with pytest.raises(FormatError, match="is not a context cache"):
        Contexts.open(tmp_path / "s")


@pytest.mark.parametrize("content", [b"\x93NUMPY\x01\x00\x10\x00{'descr': (", b"", b"PK\x05\x06" + bytes(18)])
def test_contexts_of_alpha_that_are_no_table_are_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(FormatError, match=r"c\.npy"):
        NaturalAlpha(contexts=str(written(tmp_path, "c.npy", content)))(VECTORS)


@pytest.mark.parametrize("text", [DEEP, "3", '{"vectors": "v", "scores": 1.5}', '{"vectors": "v", "scores": [3]}'])
def test_a_file_of_scores_that_holds_none_is_refused(tmp_path: Path, text: str) -> None:
    from stillvec.cli.info_command import read_scores

    with pytest.raises(DatasetError, match="scores"):
        read_scores(written(tmp_path, "s.json", text), tmp_path / "v")


def test_a_damaged_report_is_computed_again(tmp_path: Path) -> None:
    cache, facts = AnswerCache(tmp_path), {"a": 1}
    cache.put_report(facts, Report((), ("change_manifest",)))
    assert cache.get_report(facts) == Report((), ("change_manifest",))
    (file,) = tmp_path.iterdir()
    file.write_text(file.read_text().replace("change_manifest", "tall"))
    assert cache.get_report(facts) is None
    file.write_text(DEEP)
    assert cache.get_report(facts) is None


@pytest.mark.parametrize("at", [6, 8, 10])  # of the version, the flags and the method of packing
def test_damaged_answers_are_computed_again(tmp_path: Path, at: int) -> None:
    (reader,) = (each for each in readers_of("reports") if each.name == "kept answers")
    ((name, raw),) = reader.seeds[0].items()
    place({name: raw}, tmp_path)
    assert reader.read(tmp_path) is not None
    at += raw.index(b"PK\1\2")
    place({name: raw[:at] + bytes([raw[at] ^ 0xFF]) + raw[at + 1 :]}, tmp_path)
    assert reader.read(tmp_path) is None


@pytest.mark.parametrize("text", [DEEP, "3", "[3]", '[{"name": "info"}]'])
def test_a_damaged_cached_list_of_verbs_is_written_again(text: str) -> None:
    whole = completion_command.load_commands()
    (file,) = (cache_folder() / "completion").iterdir()
    file.write_text(text)
    assert completion_command.load_commands() == whole


@pytest.mark.parametrize("facts", [b"{", b"\xff\xfe", b"3", DEEP.encode()])
def test_a_checkpoint_whose_facts_cannot_be_read_is_refused(tmp_path: Path, facts: bytes) -> None:
    write_tensors(tmp_path / "out.checkpoint", {"facts": np.frombuffer(facts, np.uint8)})
    with pytest.raises(UsageError, match="--resume"):
        PassCheckpoint(tmp_path / "out", resume=True).read({"seed": 1})


# Tables and lexicons


def test_a_field_larger_than_csv_takes_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "a.csv", f'ice,"{"a" * 200_000}",1\n')
    with pytest.raises(LexiconError, match="field larger than"):
        [*read_evaluation_pairs(path)]
    with pytest.raises(DatasetError, match="field larger than"):
        TASKS["similarity"]().read(path)


@pytest.mark.parametrize(
    ("old", "new"), [(b"0101 |", b"01 |"), (b"n 02 ice", b"n 7fffffff ice"), (b"002 @", b"999999999 @")]
)
def test_a_line_of_wordnet_with_absurd_numbers_is_refused(tmp_path: Path, old: bytes, new: bytes) -> None:
    place(WORDNET | {"data.noun": WORDNET["data.noun"].replace(old, new)}, tmp_path)
    with raises(LexiconError, code="bad-line", path=tmp_path / "data.noun"):
        [*read_lexicon(tmp_path)]


def test_a_parquet_file_with_bytes_that_are_no_text_is_refused(tmp_path: Path) -> None:
    import pyarrow
    from pyarrow import parquet

    texts = pyarrow.array([b"\xff ice"]).cast(pyarrow.string(), safe=False)
    parquet.write_table(pyarrow.table({"text": texts}), tmp_path / "a.parquet")
    with raises(CorpusError, code="bad-parquet", path=tmp_path / "a.parquet"):
        [*Corpus(tmp_path / "a.parquet").paragraphs()]


# What has no end


def once(work: Callable[[], object]) -> Reader:
    """Work as a reader, to be watched as one: it is done where a file is damaged, which is in the child."""
    return Reader("work", lambda folder: (folder / "a").read_bytes() == b"a" or work(), ({"a": b"a"},))


def test_texts_in_hdf5_without_an_end_are_refused(tmp_path: Path) -> None:
    """The C library would look for the end for ever."""
    save(VECTORS, tmp_path / "v.h5", format="hdf5")
    raw = (tmp_path / "v.h5").read_bytes()
    heap = raw.index(b"GCOL")
    (tmp_path / "v.h5").write_bytes(raw[: heap + 16] + bytes(16) + raw[heap + 32 :])
    outcome = fuzz(once(lambda: load(tmp_path / "v.h5")), 1, seed=0, kept=tmp_path / "kept")
    assert (outcome.refused, outcome.found) == (1, ())


ENDLESS = {  # what one may find in a dump, and would be read for minutes or hours
    "tags": "<ref>" * 300_000,
    "links outside": "[http://a " * 20_000,
    "links": "[[a|" * 50_000,
    "signs": ",;:" * 60_000,
    "templates": "{{a|" * 50_000,
}


@pytest.mark.parametrize("text", ENDLESS.values(), ids=ENDLESS)
def test_unclosed_wikitext_is_read_once(tmp_path: Path, text: str) -> None:
    """Twice as much takes twice as long, not four times."""
    assert not fuzz(once(lambda: [*plain_paragraphs(text, frozenset())]), 1, seed=0, kept=tmp_path).found


def test_hidden_tags_go_with_what_they_hold_and_unclosed_ones_alone() -> None:
    text = "One <ref>two <!-- </ref> --></ref>three <REF name=a/>four <ref>five</Ref > six <ref> seven and some words."
    assert [*plain_paragraphs(text, frozenset())] == ["One -->three four six seven and some words."]


ENDINGS: dict[str, Callable[[Path], object]] = {
    "a.jsonl.gz": lambda path: [*Corpus(path).paragraphs()],
    "a.conllu.gz": lambda path: [*Corpus(path).paragraphs()],
    "a.xml.gz": lambda path: [*Corpus(path).paragraphs()],
    "a.w2v.gz": lambda path: load(path, format="word2vec"),
    "a.glove.gz": lambda path: load(path, format="glove"),
    "a.bin.gz": lambda path: load(path, format="word2vec-binary"),
    "a.tsv.gz": lambda path: [*read_lexicon(path)],
}
BEGINS = {"a.xml.gz": b"<mediawiki><page><text>", "a.w2v.gz": b"2 3\n", "a.bin.gz": b"2 3\n", "a.tsv.gz": b"a\tb\n"}


@pytest.mark.parametrize("name", ENDINGS)
def test_a_small_archive_of_one_endless_line_takes_little_memory(tmp_path: Path, name: str, endless: bytes) -> None:
    (tmp_path / name).write_bytes(gzip.compress(BEGINS.get(name, b"")) + endless)
    outcome = fuzz(once(lambda: ENDINGS[name](tmp_path / name)), 1, seed=0, kept=tmp_path / "kept")
    assert not outcome.found
    assert outcome.refused


@pytest.fixture(scope="module")
def endless() -> bytes:
    """A hundred kilobytes that unpack to more than a reader may take."""
    return gzip.compress(b"a" * (16 << 20)) * (2 * ROOM >> 24)


def test_a_damaged_chunk_of_parquet_does_not_end_the_process(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    reader = next(reader for reader in readers_of("parquet") if reader.name == "vectors parquet")
    assert not fuzz(reader, 3000, seed=1, kept=tmp_path).found


def test_parquet_without_words_is_refused(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(arrow.table({"term": ["a"], "vector": [[1.0]]}), tmp_path / "v.parquet")
    with raises(FormatError, path=tmp_path / "v.parquet", match="'word'"):
        load(tmp_path / "v.parquet")


def test_a_window_that_is_not_a_number_is_ignored(tmp_path: Path) -> None:
    write_tiny_model(tmp_path / "t", "bert")
    config = json.loads((tmp_path / "t" / "tokenizer_config.json").read_text())
    window = load_teacher(str(tmp_path / "t"), device="cpu").window
    (tmp_path / "t" / "tokenizer_config.json").write_text(json.dumps({**config, "model_max_length": "long"}))
    assert load_teacher(str(tmp_path / "t"), device="cpu").window == window


@pytest.mark.parametrize(
    ("file", "entry"),
    [
        ("i/vectors/manifest.json", {"lowercase": [1]}),
        ("i/manifest.json", {"passage_unit": 1 << 70}),
        ("i/manifest.json", {"passage_unit": float("inf")}),
        ("i/manifest.json", {"passages": 3}),
    ],
)
def test_a_search_index_with_a_damaged_manifest_is_refused(tmp_path: Path, file: str, entry: dict[str, Any]) -> None:
    index({"a": "ice"}, VECTORS, out=tmp_path / "i")
    manifest = json.loads((tmp_path / file).read_text())
    (tmp_path / file).write_text(json.dumps({**manifest, **entry}))
    with pytest.raises(FormatError):
        SearchIndex.load(tmp_path / "i")


@pytest.mark.parametrize(
    "entry", [{"threshold": {}}, {"threshold": float("nan")}, {"threshold": 2}, {"multilabel": "no"}]
)
def test_a_head_with_a_damaged_manifest_is_refused(tmp_path: Path, entry: dict[str, Any]) -> None:
    fit(VECTORS, [("ice", "cold"), ("fire", "warm")] * 10, out=tmp_path / "h")
    manifest = json.loads((tmp_path / "h" / "manifest.json").read_text())
    (tmp_path / "h" / "manifest.json").write_text(json.dumps({**manifest, **entry}))
    with raises(FormatError, code="damaged", path=tmp_path / "h" / "manifest.json"):
        load_head(tmp_path / "h")


def test_labels_of_a_tree_that_are_not_finite_are_not_numbers(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("(1e309 (2 a) (nan b))\n" * 12)
    assert not TASKS["composition"]().read(tmp_path / "a.txt").labels


def test_an_attribute_with_a_long_name_takes_little_memory(tmp_path: Path) -> None:
    lines = [f"word{number}\t{'a' * 200_000 if number == 0 else 'red'}" for number in range(3000)]
    (tmp_path / "a.tsv").write_text("\n".join(lines))
    tracemalloc.start()
    items = TASKS["attributes"]().read(tmp_path / "a.tsv")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(items) > 100
    assert peak < 16 << 20  # as rows of one width they would take 2.4 GB


def test_a_passage_with_an_absurd_vector_does_not_overflow(tmp_path: Path) -> None:
    index({"a": "ice", "b": "snow"}, VECTORS, out=tmp_path / "i")
    file = tmp_path / "i" / "passages.safetensors"
    tensors = {name: np.array(array) for name, array in map_tensors(file).items()}
    (name,) = (name for name, array in tensors.items() if array.ndim == 2 and array.dtype.kind == "f")
    tensors[name][:] = 3e38
    write_tensors(file, tensors)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hits = SearchIndex.load(tmp_path / "i").search("ice", method="vectors")
    assert [hit.score for hit in hits] == [1, 1]


def test_a_tokenizer_that_panics_is_refused(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Its template names a token that it does not define; `tokenizers` raises what is no `Exception`."""
    write_tiny_model(tmp_path / "t", "bert")
    file = tmp_path / "t" / "tokenizer.json"
    content = json.loads(file.read_bytes())
    content["post_processor"]["special_tokens"].pop("[CLS]")
    file.write_text(json.dumps(content))
    with raises(TeacherError, match="no entry found for key"):
        load_tokenizer(str(tmp_path / "t"))
    load_teacher(str(tmp_path / "t"), device="cpu")  # transformers makes a template of its own, which is whole
    assert "panicked" in capfd.readouterr().err


def test_an_unknown_token_that_is_not_in_the_vocabulary_is_refused(tmp_path: Path) -> None:
    """transformers looks up its number as that of the unknown token, without end."""
    write_tiny_model(tmp_path / "t", "llama3")
    file = tmp_path / "t" / "tokenizer_config.json"
    file.write_text(json.dumps(json.loads(file.read_bytes()) | {"unk_token": ""}))
    with raises(TeacherError, match="unk_token"):
        load_teacher(str(tmp_path / "t"), device="cpu")


def test_a_head_with_a_number_in_place_of_an_array_is_refused(tmp_path: Path) -> None:
    fit(VECTORS, [("ice", "cold"), ("fire", "warm")] * 10, "knn", out=tmp_path / "h")
    file = tmp_path / "h" / "head.safetensors"
    arrays = {name: np.array(array) for name, array in map_tensors(file).items()}
    write_tensors(file, arrays | {"n_labels": np.array(2)})
    with raises(FormatError, code="damaged", path=file):
        load_head(tmp_path / "h")


COLD = [("ice", "cold"), ("fire", "warm")] * 10
ICE = [(["ice", "snow"], ["B-X", "O"]), (["snow", "ice", "a"], ["O", "B-X", "B-Y"])] * 8
PARTS = [(["ice", "snow"], ["NOUN|Case=Gen", "VERB"]), (["snow"], ["NOUN|Case=Gen|Number=Plur"])] * 8


@pytest.mark.parametrize("sources", [None, True, [True, True], [{"columns": 4}, {"name": "b"}], [{"name": "a"}]])
def test_a_head_on_several_sources_that_does_not_name_them_is_refused(tmp_path: Path, sources: Any) -> None:
    fit([VECTORS, VECTORS], ICE, "tagger:epochs=1", out=tmp_path / "h")
    change_manifest(tmp_path / "h", sources=sources)
    with raises(FormatError, code="damaged", path=tmp_path / "h" / "manifest.json"):
        load_head(tmp_path / "h")


@pytest.mark.parametrize(
    ("head", "data", "name", "number"),
    [
        ("span:epochs=1,size=4", [("[ice] and", "cold"), ("a [snow]", "warm")] * 8, "spans", 1 << 40),
        ("span:epochs=1,size=4", [("[ice] and", "cold"), ("a [snow]", "warm")] * 8, "spans", 3),
        ("primitives:epochs=1", PARTS, "longest", 1 << 40),
        ("primitives:epochs=1", PARTS, "longest", 0),
    ],
)
def test_a_head_with_an_absurd_number_is_refused(tmp_path: Path, head: str, data: Any, name: str, number: int) -> None:
    """As many spans, or steps of decoding, as it says would take the memory or hours."""
    fit(VECTORS, data, head, out=tmp_path / "h")
    file = tmp_path / "h" / "head.safetensors"
    arrays = {key: np.array(array) for key, array in map_tensors(file).items()}
    assert name in arrays
    write_tensors(file, arrays | {name: np.array([number])})
    with raises(FormatError, code="damaged", path=file):
        load_head(tmp_path / "h")


@pytest.mark.parametrize(("head", "name"), [("attention:epochs=1", "enter"), ("span:size=4,epochs=1", "enter")])
def test_a_head_with_numbers_that_overflow_is_refused(tmp_path: Path, head: str, name: str) -> None:
    """Its products were infinite, of which NumPy warned."""
    spans = [((words, (0, 1)), "xy"[number % 2]) for number, (words, _) in enumerate(ICE)]
    fit(VECTORS, spans if head.startswith("span") else COLD, head, out=tmp_path / "h")
    file = tmp_path / "h" / "head.safetensors"
    arrays = {key: np.array(array) for key, array in map_tensors(file).items()}
    arrays[name].flat[:] = 3e38
    write_tensors(file, arrays)
    with raises(FormatError, code="damaged", path=file):
        load_head(tmp_path / "h")


@pytest.mark.parametrize("name", ["texts", "text_ends", "labels"])
def test_a_head_of_neighbours_without_its_texts_is_refused(tmp_path: Path, name: str) -> None:
    """`explain` raised KeyError or IndexError."""
    fit(VECTORS, COLD, "knn", out=tmp_path / "h")
    file = tmp_path / "h" / "head.safetensors"
    arrays = {key: np.array(array) for key, array in map_tensors(file).items()}
    for changed in ({}, {name: arrays[name][:1]} if name != "texts" else {}):
        write_tensors(file, {key: array for key, array in arrays.items() if key != name} | changed)
        with raises(FormatError, code="damaged", path=file):
            load_head(tmp_path / "h")


def test_an_infinite_scale_is_reported_without_a_warning_of_numpy(tmp_path: Path) -> None:
    write_folder(WordVectors(["ice", "snow"], np.full((2, 64), 127, np.float32)), tmp_path / "v", {}, packed="int8")
    file = tmp_path / "v" / "vectors.safetensors"
    arrays = {key: np.array(array) for key, array in map_tensors(file).items()}
    arrays["codes"][0, 0], arrays["scales"][0] = 0, np.inf  # their product is not a number
    write_tensors(file, arrays)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with raises(FormatError):
            load(tmp_path / "v")


def test_half_a_character_in_a_sentence_of_spans_is_read(tmp_path: Path) -> None:
    """Spans beside the marked ones are drawn by the words, which were encoded as UTF-8."""
    lines = [json.dumps({"words": ["ice", "\ud800", f"{n}"], "spans": [[0, 0, "x"]]}) + "\n" for n in range(20)]
    assert fit(VECTORS, written(tmp_path, "a.jsonl", "".join(lines)), "span:question=mentions,size=4,epochs=1").labels


def test_an_absurd_beam_is_refused(tmp_path: Path) -> None:
    fit(VECTORS, PARTS, "primitives:epochs=1", out=tmp_path / "h")
    settings = json.loads((tmp_path / "h" / "manifest.json").read_bytes())["settings"]
    change_manifest(tmp_path / "h", settings=settings | {"beam": 1 << 40})
    with raises(FormatError, code="damaged", path=tmp_path / "h" / "manifest.json"):
        load_head(tmp_path / "h")


@pytest.mark.parametrize("content", [b"\x93NUMPY\x01\x00\x10\x00{'shape': (((    ", b"", b"PK\x05\x06" + bytes(18)])
def test_vectors_of_texts_that_cannot_be_read_are_refused(tmp_path: Path, content: bytes) -> None:
    """With a header cut short NumPy raised TokenError, which is no ValueError."""
    (tmp_path / "a.txt").write_text("ice and snow\n" * 30)
    file = written(tmp_path, "goals.npy", content)
    with raises(DatasetError, path=file):
        refine(VECTORS, [f"text_pairs:on={tmp_path / 'a.txt'},toward={file}"])


def test_vectors_of_texts_with_absurd_numbers_do_not_overflow(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("ice and snow\n" * 30)
    np.save(tmp_path / "goals.npy", np.full((30, 4), 3e38, np.float32))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        refine(VECTORS, [f"text_pairs:on={tmp_path / 'a.txt'},toward={tmp_path / 'goals.npy'}"])
