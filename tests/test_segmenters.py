"""Words of scripts without spaces: segmenters, the choice by script, exact offsets, and vectors that remember them."""

import numpy as np
import pytest

import stillvec
from stillvec import Corpus, WordVectors
from stillvec.cli import main
from stillvec.errors import FormatError, MissingExtra, StillvecWarning, UsageError
from stillvec.vocabulary import Vocabulary, WordCounter, WordMatcher, segmenters
from stillvec.vocabulary.segmenters import SEGMENTERS, WordBreaker, choose_segmenter, describe_segmenter, split_names
from stillvec.vocabulary.word_matcher import select_words
from stillvec.vocabulary.word_numbering import WordNumbering

CHINESE = "机器学习是人工智能的一个重要分支，我用Python写C++程序。"
JAPANESE = "私は東京大学で自然言語処理を研究しています。"
THAI = "ผมรักภาษาไทยและการประมวลผลภาษาธรรมชาติ"
WORDS = {  # each text, and words that its segmenter must find
    "jieba": (CHINESE, ["学习", "人工智能", "重要", "python", "程序"]),
    "fugashi": (JAPANESE, ["東京", "大学", "言語", "処理", "研究"]),
    "pythainlp": (THAI, ["ผม", "รัก", "ภาษาไทย", "และ"]),
    "icu": ("ខ្ញុំចូលចិត្តរៀនភាសាខ្មែរ ຂ້ອຍມັກຮຽນພາສາລາວ ကျွန်တော်မြန်မာစာကိုလေ့လာနေသည်", ["រៀន", "ພາສາ", "မြန်မာ"]),
}


@pytest.mark.parametrize("name", [*SEGMENTERS])
def test_each_segmenter_finds_the_words_of_its_language_at_exact_offsets(name: str) -> None:
    text, words = WORDS[name]
    counter = WordCounter(segmenter=name)
    n_words = counter.add([text])
    counts = counter.counts()
    assert {*words} <= {*counts}
    assert n_words == sum(counts.values()) > len(words)
    vocabulary = Vocabulary(counts, counts.values(), segmenter=name)
    spans = WordMatcher(vocabulary).match(["", text, "plain text", text])
    found = [text[start:end].lower() for start, end in zip(spans.starts, spans.ends, strict=True)][:n_words]
    assert found == [vocabulary.words[row] for row in spans.ids[:n_words]]  # the same words as those counted, in place
    assert np.bincount(spans.text_index).tolist() == [0, n_words, 2, n_words]
    rows, texts = WordMatcher(vocabulary).match_rows(["", text, "plain text", text])
    assert rows.tolist() == spans.ids.tolist()
    assert texts.tolist() == spans.text_index.tolist()
    numbers, lengths = WordNumbering.like(vocabulary).number([text, "plain text"])
    assert lengths.tolist() == [n_words, 2]
    assert len({*numbers.tolist()[:n_words]}) == len(counts)


@pytest.mark.parametrize("name", [*SEGMENTERS])
def test_a_run_is_divided_without_loss(name: str) -> None:
    text, _ = WORDS[name]
    broken, breaks = WordBreaker(name).insert(text)
    assert breaks is not None
    assert broken.replace(segmenters.BREAK, "") == text
    assert [broken[at] for at in breaks] == [segmenters.BREAK] * len(breaks)


def test_offsets_hold_in_a_text_that_mixes_scripts_and_decomposed_letters() -> None:
    text = "cafe\u0301と東京タワー、cafe\u0301。ภาษาไทย!"
    vocabulary = Vocabulary(["café", "東京", "ภาษาไทย"], segmenter="fugashi,pythainlp")
    spans = WordMatcher(vocabulary).match([text])
    found = {vocabulary.words[row]: text[start:end] for row, start, end in _known(spans)}
    assert found == {"café": "cafe\u0301", "東京": "東京", "ภาษาไทย": "ภาษาไทย"}


def _known(spans):
    columns = (spans.ids.tolist(), spans.starts.tolist(), spans.ends.tolist())
    return [item for item in zip(*columns, strict=True) if item[0] >= 0]


def test_without_a_segmenter_a_clause_is_a_word_as_before() -> None:
    counter = WordCounter()
    counter.add(["我爱北京天安门"])
    assert counter.counts() == {"我爱北京天安门": 1}


def test_included_words_stay_whole_when_counting_and_when_matching() -> None:
    counter = WordCounter(include_words=["机器学习", "AI技术"], segmenter="jieba")
    counter.add(["机器学习和ai技术"])
    assert counter.counts() == {"机器学习": 1, "和": 1, "ai技术": 1}
    vocabulary = Vocabulary.build(counter.counts(), min_count=1, include_words=["机器学习"], segmenter="jieba")
    assert vocabulary.terms == ("机器学习",)
    for other in (vocabulary, vocabulary.like(["学习", "机器学习"]), vocabulary.union(Vocabulary(["和"]))):
        rows, _ = WordMatcher(other).match_rows(["机器学习"])
        assert [other.words[row] for row in rows] == ["机器学习"]


def test_the_teachers_words_that_the_segmenter_divides_are_no_words() -> None:
    assert select_words(["机器", "机器学习", "the"], True, "jieba") == ["机器", "the"]
    assert select_words(["机器", "机器学习", "the"], True) == ["机器", "机器学习", "the"]


@pytest.mark.parametrize(
    ("texts", "chosen"),
    [
        (["The river is cold.", "Der Fluß ist kalt.", "Река холодная", "النهر بارد"], "spaces"),
        (["강물이 차다.", "Con sông lạnh", "གངས་རི་ཆེན་པོ"], "spaces"),  # Korean, Vietnamese and Tibetan: no segmenter
        ([CHINESE], "jieba"),
        ([JAPANESE], "fugashi"),
        ([THAI], "pythainlp"),
        (["ខ្ញុំចូលចិត្ត"], "icu"),
        (["ພາສາລາວ", "မြန်မာစာ"], "icu"),
        ([CHINESE, THAI], "jieba,pythainlp"),
        (["A long English text with one quotation, " * 5 + "北京."], "spaces"),
    ],
)
def test_auto_looks_at_the_scripts_of_the_text(texts: list[str], chosen: str) -> None:
    assert choose_segmenter(texts) == chosen


def test_chinese_and_japanese_are_divided_by_their_own_segmenters_in_one_vocabulary() -> None:
    breaker = WordBreaker("jieba,fugashi")
    assert breaker.insert("东京大学很大")[0] == WordBreaker("jieba").insert("东京大学很大")[0]
    assert breaker.insert(JAPANESE)[0] == WordBreaker("fugashi").insert(JAPANESE)[0]


def test_a_missing_package_is_named_before_any_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stillvec.registry._is_installed", lambda package: package != "rjieba")
    with pytest.raises(MissingExtra) as caught:
        stillvec.train(Corpus.from_texts([CHINESE]), method="glove", min_count=1)
    assert "stillvec[chinese]" in str(caught.value)


def test_spaces_beside_a_segmenter_are_refused_with_what_to_give() -> None:
    with pytest.raises(UsageError) as caught:
        split_names("spaces,jieba")
    assert "'spaces' alone" in str(caught.value)


def test_an_unknown_segmenter_is_refused() -> None:
    with pytest.raises(UsageError) as caught:
        stillvec.train(Corpus.from_texts([CHINESE]), segmenter="jeiba")
    assert "jieba" in str(caught.value)
    with pytest.raises(UsageError):
        Vocabulary(["a"], segmenter="spaces,jieba")


def test_vectors_remember_the_segmenter_in_their_folder(tmp_path) -> None:
    vocabulary = Vocabulary(["机器学习", "人工智能", "和"], segmenter="jieba", terms=["机器学习"])
    vectors = WordVectors(vocabulary, np.eye(3, dtype=np.float32))
    vectors.save(tmp_path / "saved")
    loaded = stillvec.load(tmp_path / "saved")
    assert (loaded.vocabulary.segmenter, loaded.vocabulary.terms) == ("jieba", ("机器学习",))
    for one in (loaded, loaded.subset(["人工智能", "机器学习"]), stillvec.refine(loaded, "center")):
        assert one.vocabulary.segmenter == "jieba"
    assert loaded.encode("人工智能和机器学习").tolist() == pytest.approx([1 / 3] * 3)
    manifest = tmp_path / "saved" / "manifest.json"
    manifest.write_text(manifest.read_text("utf-8").replace('"segmenter": "jieba"', '"segmenter": "jeiba"'), "utf-8")
    with pytest.raises(FormatError) as caught:
        stillvec.load(tmp_path / "saved")
    assert "jeiba" in str(caught.value)


def test_a_format_without_a_segmenter_says_so(tmp_path) -> None:
    vectors = WordVectors(Vocabulary(["机器"], segmenter="jieba"), np.ones((1, 2), np.float32))
    with pytest.warns(StillvecWarning, match="jieba"):
        stillvec.save(vectors, tmp_path / "model", format="model2vec")


def test_the_command_line_says_what_it_chose_and_trains_on_segmented_words(tmp_path, capsys) -> None:
    text = tmp_path / "zh.txt"
    text.write_text("\n".join([CHINESE, "人工智能改变世界。", "机器学习需要数据。"] * 5), "utf-8")
    flags = ["--method", "glove:epochs=1", "--dim", "5", "--min-count", "2", "--threads", "1", "--quiet"]
    assert main(["train", str(text), *flags, "--out", str(tmp_path / "auto")]) == 0
    auto = stillvec.load(tmp_path / "auto")
    assert auto.vocabulary.segmenter == "jieba"
    assert "人工智能" in auto
    assert "--words jieba" in (tmp_path / "auto" / "README.md").read_text("utf-8")
    assert main(["train", str(text), *flags, "--words", "spaces", "--out", str(tmp_path / "spaces")]) == 0
    assert "人工智能" not in stillvec.load(tmp_path / "spaces")
    capsys.readouterr()


def test_a_search_index_divides_documents_and_queries_in_the_same_way(tmp_path) -> None:
    words = ["北京", "天安门", "学习", "机器"]
    vectors = WordVectors(Vocabulary(words, [1] * 4, segmenter="jieba"), np.eye(4, dtype=np.float32))
    (tmp_path / "texts.txt").write_text("我爱北京天安门\n机器学习很有用\n", "utf-8")
    index = stillvec.index(tmp_path / "texts.txt", vectors=vectors, out=tmp_path / "index", unit="lines")
    (hit, *_) = index.search("天安门在哪里")
    assert "天安门" in hit.text
    assert [hit.snippet[start:end] for start, end in hit.highlights] == ["天安门"]


def test_a_sample_of_a_corpus_is_taken_from_the_beginning_of_several_files(tmp_path) -> None:
    for number in range(3):
        (tmp_path / f"{number}.txt").write_text(f"file {number} " * 50 + "\n\n" + "rest " * 1000, "utf-8")
    sample = Corpus(tmp_path).sample(600)
    assert [text[:6] for text in sample] == ["file 0", "file 1", "file 2"]
    assert sum(map(len, sample)) <= 600
    assert Corpus.from_texts(["one text here"]).sample() == ["one text here"]


def test_how_words_are_found_is_told() -> None:
    assert describe_segmenter("spaces") == "separated by spaces"
    assert describe_segmenter("jieba,icu") == "segmented by jieba (Chinese) and icu (Khmer, Lao and Burmese)"
