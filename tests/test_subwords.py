"""Words never seen: n-grams hashed as floret and spaCy hash them, fitted as numpy would, and used where words are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stillvec
from stillvec import Vocabulary, WordVectors
from stillvec.cli import main
from stillvec.errors import FormatError, StillvecWarning, UsageError, VocabularyError
from stillvec.evaluation import evaluate
from stillvec.formats import load, read_manifest, save
from stillvec.refinement.subword import Subword
from stillvec.subwords import FLORET_SEED, Ngrams, SubwordTable, murmur3

UNSEEN = ["snowing", "x", "ab", "naïveté", "日本語", "a" * 40]
_MASK = (1 << 64) - 1


@pytest.fixture(scope="module")
def vectors() -> WordVectors:
    stems, ends = ["snow", "fire", "walk", "house", "grün"], ["", "s", "ed", "ing", "er", "y"]
    words = [stem + end for stem in stems for end in ends]
    random = np.random.default_rng(0)
    of_stem, of_end = random.normal(size=(5, 1, 8)), 0.3 * random.normal(size=(1, 6, 8))
    matrix = (of_stem + of_end + 0.5).reshape(30, 8).astype(np.float32)
    return WordVectors(Vocabulary(words, range(60, 0, -2)), matrix)


@pytest.fixture(scope="module")
def known(vectors: WordVectors) -> WordVectors:
    """Without two words that follow from the others."""
    return Subword(buckets=3000, ridge=0.001)(vectors.subset(w for w in vectors if w not in ("snowing", "walked")))


def _slow_murmur(text: bytes, seed: int) -> tuple[int, int]:
    """MurmurHash3_x64_128 as its author writes it, a byte at a time."""
    left = lambda x, by: ((x << by) | (x >> (64 - by))) & _MASK  # noqa: E731
    c1, c2, h1, h2 = 0x87C37B91114253D5, 0x4CF5AD432745937F, seed, seed
    whole = len(text) // 16 * 16
    for at in range(0, len(text), 16):
        k1 = int.from_bytes(text[at : at + 8], "little")
        k2 = int.from_bytes(text[at + 8 : at + 16], "little")
        h1 ^= left(k1 * c1 & _MASK, 31) * c2 & _MASK
        if at < whole:
            h1 = ((left(h1, 27) + h2) * 5 + 0x52DCE729) & _MASK
        h2 ^= left(k2 * c2 & _MASK, 33) * c1 & _MASK
        if at < whole:
            h2 = ((left(h2, 31) + h1) * 5 + 0x38495AB5) & _MASK
    h1, h2 = h1 ^ len(text), h2 ^ len(text)
    h1 = (h1 + h2) & _MASK
    h2 = (h2 + h1) & _MASK
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        h1, h2 = ((h ^ (h >> 33)) * factor & _MASK for h in (h1, h2))
    h1, h2 = (h ^ (h >> 33) for h in (h1, h2))
    h1 = (h1 + h2) & _MASK
    return h1, (h2 + h1) & _MASK


def test_hashes_are_those_of_a_slow_murmur_at_every_length() -> None:
    random = np.random.default_rng(2)
    texts = [random.bytes(length) for length in range(70)]
    for seed in (0, FLORET_SEED):
        assert [tuple(row) for row in murmur3(texts, seed).tolist()] == [_slow_murmur(text, seed) for text in texts]


def test_the_hash_of_the_quick_brown_fox_is_the_published_one() -> None:
    ((first, second),) = murmur3([b"The quick brown fox jumps over the lazy dog"], 0).tolist()
    assert f"{first:016x}{second:016x}" == "e34bbc7bbc071b6c7a433ca9c49a9347"


def test_a_string_has_its_n_grams_and_itself_between_marks() -> None:
    assert Ngrams(10, 3, 4).of("ab") == ["<ab>", "<ab", "ab>", "<ab>"]
    assert Ngrams(10, 2, 2).of("é雪") == ["<é雪>", "<é", "é雪", "雪>"]
    assert Ngrams(10).of("") == []


@pytest.mark.parametrize("hash_count", [1, 2, 4])
def test_a_vector_is_the_mean_of_the_rows_of_all_hashes(hash_count: int) -> None:
    ngrams = Ngrams(97, 2, 5, hash_count)
    matrix = np.random.default_rng(3).normal(size=(97, 5)).astype(np.float32)
    made = SubwordTable(ngrams, matrix).vectors([*UNSEEN, ""])
    for word, row in zip(UNSEEN, made, strict=False):
        hashes = []
        for gram in ngrams.of(word):
            a, b = _slow_murmur(gram.encode(), FLORET_SEED)
            hashes += [a & 0xFFFFFFFF, a >> 32, b & 0xFFFFFFFF, b >> 32][:hash_count]
        np.testing.assert_allclose(row, matrix[[each % 97 for each in hashes]].mean(axis=0), rtol=1e-5, atol=1e-6)
    assert not made[-1].any()


def test_many_strings_get_what_each_gets_alone() -> None:
    table = SubwordTable(Ngrams(500, 2, 5), np.random.default_rng(4).normal(size=(500, 2)).astype(np.float32))
    words = [f"word{number}" * (number % 7) for number in range(9000)]  # over a block of words and several of rows
    alone = np.stack([table.vectors([word])[0] for word in words[::500]])
    np.testing.assert_allclose(table.vectors(words)[::500], alone, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("power", [0.0, 0.5])
def test_the_fit_is_the_one_that_numpy_solves_for(vectors: WordVectors, power: float) -> None:
    made = Subword(buckets=40, power=power, ridge=0.1, sweeps=200)(vectors)
    assert made.subwords is not None
    rows, lengths = Ngrams(40, 2, 5, 1).rows(vectors.words)
    shares = np.zeros((30, 40))
    np.add.at(shares, (np.repeat(np.arange(30), lengths), rows), np.repeat(1 / lengths, lengths))
    weight = vectors.vocabulary.counts**power
    weight = np.diag(weight / weight.mean())
    middle = vectors.matrix.mean(axis=0)
    left = shares.T @ weight @ shares + 0.1 * np.eye(40)
    wanted = np.linalg.solve(left, shares.T @ weight @ (vectors.matrix - middle)) + middle
    np.testing.assert_allclose(made.subwords.matrix, wanted, atol=4e-3)  # half precision
    assert np.array_equal(made.matrix, vectors.matrix)


def test_numbers_too_large_for_half_precision_stay_whole(vectors: WordVectors) -> None:
    large = Subword(buckets=100)(WordVectors(vectors.vocabulary, vectors.matrix * 1e6)).subwords
    small = Subword(buckets=100)(WordVectors(vectors.vocabulary, vectors.matrix * 1e-9)).subwords
    plain = Subword(buckets=100)(vectors).subwords
    assert large is not None
    assert small is not None
    assert plain is not None
    assert (large.matrix.dtype, small.matrix.dtype, plain.matrix.dtype) == (np.float32, np.float32, np.float16)


def test_words_that_were_left_out_come_near_their_true_vectors(vectors: WordVectors, known: WordVectors) -> None:
    for word in ("snowing", "walked"):
        a, b = known[word], vectors[word]
        assert a @ b / np.linalg.norm(a) / np.linalg.norm(b) > 0.9
        assert known.nearest(word, 1)[0][0].startswith(word[:4])
        assert word not in known


def test_an_unseen_word_is_written_as_the_vocabulary_writes_words(known: WordVectors) -> None:
    np.testing.assert_array_equal(known["SNOWING"], known["snowing"])
    mixed = known[["snow", "snowing"]]
    np.testing.assert_array_equal(mixed, [known["snow"], known["snowing"]])
    assert known.nearest_batch(["snow", "snowing"], 2) == [
        [(word, pytest.approx(cosine, abs=1e-5)) for word, cosine in known.nearest(requested, 2)]
        for requested in ("snow", "snowing")
    ]
    assert known.analogy("walk", "walking", "snow", 1)[0][0]
    assert known.similarity("snowing", "snow") > 0.5


def test_without_n_grams_an_unseen_word_is_refused_as_before(vectors: WordVectors, known: WordVectors) -> None:
    with pytest.raises(VocabularyError, match="'skiing'"):
        vectors["skiing"]
    with pytest.raises(VocabularyError):
        known[""]
    with pytest.raises(UsageError, match="--oov subword"):
        vectors.from_subwords(["skiing"])
    with pytest.raises(UsageError, match="dimension"):
        WordVectors(["a"], [[1.0]], subwords=known.subwords)


def test_a_text_is_the_mean_of_its_words_seen_and_unseen(known: WordVectors, vectors: WordVectors) -> None:
    texts = ["Snow, snowing snow!", "fire walks", "", "Walked"]
    wanted = [
        (2 * known["snow"] + known["snowing"]) / 3,
        (known["fire"] + known["walks"]) / 2,
        np.zeros(8),
        known["walked"],
    ]
    np.testing.assert_allclose(known.encode(texts), wanted, rtol=1e-5, atol=1e-6)
    weights = np.linspace(0.1, 2, len(known))
    row = known.vocabulary.index["snow"]
    wanted = (2 * weights[row] * known["snow"] + 2 * known["snowing"]) / (2 * weights[row] + 2)
    np.testing.assert_allclose(known.encode(texts[0], weights=weights), wanted, rtol=1e-5)


def test_a_subset_keeps_the_n_grams_and_another_step_leaves_them_out(known: WordVectors) -> None:
    assert known.subset(["fire"]).subwords is known.subwords
    with pytest.warns(StillvecWarning, match="n-grams"):
        assert stillvec.refine(known, "center").subwords is None


def test_a_folder_keeps_the_n_grams_and_tells_of_them(known: WordVectors, tmp_path: Path) -> None:
    save(known, tmp_path / "v")
    back = load(tmp_path / "v")
    assert read_manifest(tmp_path / "v")["subwords"] == {
        "bow": "<", "buckets": 3000, "eow": ">", "hash_count": 1, "hash_seed": FLORET_SEED, "maxn": 5, "minn": 2,
    }  # fmt: skip
    np.testing.assert_array_equal(back[UNSEEN], known[UNSEEN])
    save(WordVectors(back.vocabulary, back.matrix), tmp_path / "v", force=True)
    assert "subwords" not in read_manifest(tmp_path / "v")
    assert not (tmp_path / "v" / "subwords.safetensors").exists()


@pytest.mark.parametrize(
    ("expected", "sentence"),
    [({"buckets": 3001}, "3,001 x 8 floats"), ({"minn": 9}, "minn"), ({"max": 3}, "'max'")],
)
def test_a_folder_whose_n_grams_do_not_fit_is_refused(
    known: WordVectors, tmp_path: Path, expected: dict[str, Any], sentence: str
) -> None:
    save(known, tmp_path / "v")
    manifest = read_manifest(tmp_path / "v")
    manifest["subwords"] |= expected
    (tmp_path / "v" / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(FormatError, match=sentence):
        load(tmp_path / "v")


def test_florets_file_comes_back_and_is_recognised(known: WordVectors, tmp_path: Path) -> None:
    for name in ("v.floret", "v.floret.gz"):
        save(known, tmp_path / name, format="floret")
        back = load(tmp_path / name)
        assert len(back) == 0
        np.testing.assert_array_equal(back[UNSEEN], known[UNSEEN])
        np.testing.assert_array_equal(back["snow"], known.from_subwords(["snow"])[0])


@pytest.mark.parametrize(
    ("text", "sentence"),
    [("2 1 2 5 1 7 <\n", "BOW and EOW"), ("2 1 2 5 9 7 < >\n", "BOW and EOW"),
     ("2 1 2 5 1 7 < >\n0 1\n", "got 1"), ("2 1 2 5 1 7 < >\n0 1\n2 1\n", "row 1, got"),
     ("2 1 2 5 1 7 < >\n0 nan\n1 1\n", "NaN")],
)  # fmt: skip
def test_an_invalid_floret_file_is_refused_with_its_line(tmp_path: Path, text: str, sentence: str) -> None:
    (tmp_path / "v.floret").write_text(text)
    with pytest.raises(FormatError, match=sentence):
        load(tmp_path / "v.floret", format="floret")


def test_vectors_without_n_grams_are_no_floret_table(vectors: WordVectors, tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="--oov subword"):
        save(vectors, tmp_path / "v.floret", format="floret")
    assert not (tmp_path / "v.floret").exists()


def test_spacy_gives_every_string_the_vector_that_we_give(known: WordVectors, tmp_path: Path) -> None:
    spacy = pytest.importorskip("spacy")
    from spacy.training.initialize import convert_vectors  # what `spacy init vectors --mode floret` calls

    save(known, tmp_path / "v.floret", format="floret")
    pipeline = spacy.blank("en")
    convert_vectors(pipeline, tmp_path / "v.floret", truncate=0, prune=-1, mode="floret")
    theirs = np.stack([pipeline.vocab.get_vector(word) for word in [*UNSEEN, "snow"]])
    np.testing.assert_allclose(theirs, known.from_subwords([*UNSEEN, "snow"]), rtol=1e-5, atol=1e-6)


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    (tmp_path / "similarity").mkdir()
    rows = ["snow\tsnowing\t9", "snowing\twalked\t2", "fire\tfires\t8", "walked\thouses\t3", "walks\twalked\t9"]
    (tmp_path / "similarity" / "p.tsv").write_text("\n".join(rows) + "\n")
    (tmp_path / "sentences").mkdir()
    (tmp_path / "sentences" / "s.csv").write_text("snow,snowing,5\nfires walked,fires,3\nwalked,snowing,1\n")
    return tmp_path


def test_evaluation_makes_unknown_words_of_n_grams_and_still_tells_what_is_known(
    known: WordVectors, pairs: Path
) -> None:
    from scipy.stats import spearmanr

    scores = {s.dataset: s for s in evaluate(known, pairs, oov="subword").scores if s.metric == "spearman"}
    rows = [line.split("\t") for line in (pairs / "similarity" / "p.tsv").read_text().splitlines()]
    cosines = [known.similarity(a, b) for a, b, _ in rows]
    assert scores["p"].value == pytest.approx(spearmanr([float(gold) for _, _, gold in rows], cosines).statistic)
    assert (scores["p"].n_items, scores["p"].n_covered) == (5, 1)
    assert scores["s"].n_covered == 1
    texts = known.encode(["snow", "fires walked", "walked", "snowing", "fires", "snowing"]).reshape(2, 3, 8)
    lengths = np.linalg.norm(texts, axis=2)
    cosines = ((texts[0] * texts[1]).sum(axis=1) / lengths[0] / lengths[1]).tolist()
    assert scores["s"].value == pytest.approx(spearmanr([5, 3, 1], cosines).statistic)


@pytest.mark.parametrize("policy", ["skip", "mean", "zero"])
def test_other_policies_do_not_look_at_n_grams(known: WordVectors, pairs: Path, policy: Any) -> None:
    plain = WordVectors(known.vocabulary, known.matrix)
    assert str(evaluate(known, pairs, oov=policy).scores) == str(evaluate(plain, pairs, oov=policy).scores)


def test_a_set_without_n_grams_is_named(vectors: WordVectors, pairs: Path) -> None:
    with pytest.raises(UsageError, match="--oov subword"):
        evaluate(vectors, pairs, oov="subword")


def test_answers_of_other_n_grams_are_not_taken_from_the_cache(known: WordVectors) -> None:
    from stillvec.formats.request import digest_vectors

    other = Subword(buckets=3000, ridge=1.0)(known)
    names = {digest_vectors(each) for each in (known, other, WordVectors(known.vocabulary, known.matrix))}
    assert len(names) == 3


def test_tokens_that_are_unknown_have_rows_of_their_own_in_what_trains(known: WordVectors) -> None:
    from stillvec.heads.lookup import Lookup

    lookup = Lookup(known, "subword")
    for made in (
        lookup.read_tokens([["snow", "snowing", "snowing"]]),
        lookup.read_texts(["snow, Snowing snowing"]),
    ):
        np.testing.assert_array_equal(made.table[made.ids], known[["snow", "snowing", "snowing"]])


def test_the_verb_stores_n_grams_and_the_other_verbs_use_them(
    vectors: WordVectors, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given, out = tmp_path / "given", tmp_path / "out"
    save(vectors, given)
    assert main(["refine", str(given), "--step", "normalize", "--oov", "subword:buckets=500", "--out", str(out)]) == 0
    assert [did["step"] for did in read_manifest(out)["refined"]] == ["normalize", "subword"]
    assert main(["info", str(out), "--all"]) == 0
    assert "subwords.buckets" in capsys.readouterr().out
    assert main(["nearest", str(out), "snowings", "-k", "1"]) == 0
    assert "snow" in capsys.readouterr().out
    assert main(["convert", str(out), str(tmp_path / "x.floret")]) == 0
    assert (tmp_path / "x.floret").read_text().startswith(f"500 8 2 5 1 {FLORET_SEED} < >\n0 ")
    assert main(["info", str(tmp_path / "x.floret")]) == 0
    assert "500 rows" in capsys.readouterr().out
    assert main(["refine", str(out), "--step", "center", "--out", str(tmp_path / "later")]) == 0
    assert "n-grams" in capsys.readouterr().err
    assert load(tmp_path / "later").subwords is None


def test_quantized_vectors_stay_packed_when_n_grams_are_added(vectors: WordVectors, tmp_path: Path) -> None:
    save(vectors, tmp_path / "given")
    steps = ["--step", "quantize:to=int8", "--oov", "subword:buckets=50"]
    assert main(["refine", str(tmp_path / "given"), *steps, "--out", str(tmp_path / "out")]) == 0
    assert read_manifest(tmp_path / "out")["stored"] == "int8"


@pytest.mark.parametrize(
    ("flag", "sentence"),
    [("fasttext", "subword"), ("subword:minn=7", "minn <= maxn"), ("subword:buckets=0", "buckets >= 1")],
)
def test_invalid_n_grams_are_refused_before_anything_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], flag: str, sentence: str
) -> None:
    assert main(["refine", str(tmp_path / "none"), "--oov", flag, "--out", str(tmp_path / "out")]) == 2
    assert sentence in capsys.readouterr().err


def test_a_server_answers_for_words_that_were_never_seen(known: WordVectors) -> None:
    pytest.importorskip("fastapi")
    from fastapi.testclient import TestClient

    from stillvec.service.application import create_app
    from stillvec.service.models import ServedModels

    with TestClient(create_app(ServedModels({"known": known}))) as client:
        row = client.get("/vectors", params={"word": "snowing"}).json()["data"][0]
        assert row["vector"] == pytest.approx(known["snowing"].tolist())
        near = client.get("/nearest", params={"word": "snowing", "k": 1}).json()["data"][0]
        assert near["word"] == known.nearest("snowing", 1)[0][0]
