"""Which words there are, how often, and where they stand: against slow, obviously right computations."""

from __future__ import annotations

import tracemalloc
import unicodedata
from collections import Counter

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from stillvec.errors import VocabularyError
from stillvec.vocabulary import Vocabulary, WordCounter, WordMatcher
from stillvec.vocabulary.folding import fold

COUNTS = {"the": 90, "snow": 7, "ice": 7, "fire": 5, "ash": 4}


# The vocabulary


def test_words_stand_in_order_of_count_and_then_of_the_alphabet() -> None:
    vocabulary = Vocabulary.build(COUNTS, min_count=1)
    assert vocabulary.words == ("the", "ice", "snow", "fire", "ash")
    assert vocabulary.counts.tolist() == [90, 7, 7, 5, 4]


def test_words_under_the_minimum_count_are_left_out_and_those_at_it_stay() -> None:
    assert Vocabulary.build(COUNTS, min_count=5).words == ("the", "ice", "snow", "fire")


def test_the_most_frequent_words_remain_when_there_is_a_maximum() -> None:
    assert Vocabulary.build(COUNTS, min_count=1, max_words=2).words == ("the", "ice")


def test_kept_words_are_in_whatever_their_count_and_with_it() -> None:
    vocabulary = Vocabulary.build(COUNTS, min_count=50, include_words=["ash", "glacier", "new york"])
    assert dict(zip(vocabulary.words, vocabulary.counts.tolist(), strict=True)) == {
        "the": 90,
        "ash": 4,
        "glacier": 0,
        "new york": 0,
    }


def test_kept_words_take_their_places_from_the_maximum_and_are_never_cut() -> None:
    assert Vocabulary.build(COUNTS, min_count=1, max_words=2, include_words=["ash"]).words == ("the", "ash")
    assert len(Vocabulary.build(COUNTS, max_words=1, include_words=["a", "b", "c"])) == 3


def test_kept_words_are_written_as_the_vocabulary_writes_words() -> None:
    keep = ["Paris", "PARIS", "New  York ", "don’t", "cafe\u0301", "", "  "]
    assert sorted(Vocabulary.build({"paris": 3}, include_words=keep)) == ["café", "don't", "new york", "paris"]
    assert sorted(Vocabulary.build({}, include_words=keep[:2], lowercase=False)) == ["PARIS", "Paris"]


def test_a_kept_word_takes_the_count_of_its_lower_cased_form() -> None:
    assert Vocabulary.build({"paris": 3}, include_words=["Paris"]).counts.tolist() == [3]


def test_a_vocabulary_that_ends_empty_says_why() -> None:
    with pytest.raises(VocabularyError, match=r"\b91 times.*\b90 times"):
        Vocabulary.build(COUNTS, min_count=91)
    with pytest.raises(VocabularyError, match="of 0 words"):
        Vocabulary.build({})


def test_a_word_that_comes_twice_is_named() -> None:
    with pytest.raises(VocabularyError, match="'ice'"):
        Vocabulary(["ice", "snow", "ice"])


def test_counts_that_do_not_fit_the_words_are_refused() -> None:
    with pytest.raises(VocabularyError, match=r"2 counts.*1"):
        Vocabulary(["ice", "snow"], [3])


def test_counts_cannot_be_written_to() -> None:
    with pytest.raises(ValueError, match="read-only"):
        Vocabulary(["ice"], [3]).counts[0] = 4


def test_a_question_in_capitals_means_the_lower_cased_word() -> None:
    vocabulary = Vocabulary(["paris", "café", "don't", "οδος"])
    assert vocabulary.lowercase
    assert [vocabulary.row(word) for word in ("Paris", "CAFE\u0301", "Don’t", "ΟΔΟΣ", "rome")] == [
        0,
        1,
        2,
        3,
        None,
    ]
    assert "PARIS" in vocabulary
    assert "rome" not in vocabulary
    assert 3 not in vocabulary


def test_a_vocabulary_with_capitals_takes_words_as_they_are_written() -> None:
    vocabulary = Vocabulary(["Paris", "paris", "Rome"])
    assert not vocabulary.lowercase
    assert [vocabulary.row(word) for word in ("Paris", "paris", "PARIS", "rome")] == [0, 1, None, None]


def test_vocabularies_are_equal_by_words_counts_and_case() -> None:
    assert Vocabulary(["ice"], [1]) == Vocabulary(["ice"], [1])
    assert Vocabulary(["ice"], [1]) != Vocabulary(["ice"], [2])
    assert Vocabulary(["ice"], [1]) != Vocabulary(["ice"], [1], lowercase=False)
    assert Vocabulary(["ice"]) != ["ice"]


def test_a_union_adds_the_counts_and_orders_again() -> None:
    joined = Vocabulary(["ice", "fire"], [5, 4]).union(Vocabulary(["fire", "ash"], [3, 1]))
    assert joined == Vocabulary(["fire", "ice", "ash"], [7, 5, 1])


def test_a_union_with_capitals_is_not_lower_cased() -> None:
    assert not Vocabulary(["ice"]).union(Vocabulary(["Ice"])).lowercase


def test_rows_in_another_vocabulary_point_at_the_same_words() -> None:
    ours, theirs = Vocabulary(["ice", "ash", "snow"]), Vocabulary(["snow", "ice"])
    assert ours.rows_in(theirs).tolist() == [1, -1, 0]


def test_frequencies_are_shares_and_an_unseen_word_has_half_an_occurrence() -> None:
    assert Vocabulary(["ice", "ash"], [3, 0]).frequencies() == pytest.approx([3 / 3.5, 0.5 / 3.5])


# Finding words: (text, the words as the text writes them)

HARD = {
    "lower-casing that makes a word longer": ("İstanbul İİ is big", ["İstanbul", "İİ", "is", "big"]),
    "a decomposed accent at the end": ("un cafe\u0301 noir", ["un", "cafe\u0301", "noir"]),
    "decomposed accents everywhere": ("e\u0301le\u0301ve\u0301", ["e\u0301le\u0301ve\u0301"]),
    "marks in an order that composing changes": (
        "q\u0307\u0323 a\u0315\u0300b",
        ["q\u0307\u0323", "a\u0315\u0300b"],
    ),
    "decomposed Hangul": (
        "\u1112\u1161\u11ab\u1100\u116e\u11a8 a",
        ["\u1112\u1161\u11ab\u1100\u116e\u11a8", "a"],
    ),
    "Devanagari": ("हिन्दी में क्षत्रिय।", ["हिन्दी", "में", "क्षत्रिय"]),
    "an Indic joiner": ("क्\u200dष है", ["क्\u200dष", "है"]),
    "Arabic with vowels": ("اللُّغَةُ العربية، نعم؟", ["اللُّغَةُ", "العربية", "نعم"]),
    "a Persian non-joiner": ("می\u200cروم خانه", ["می\u200cروم", "خانه"]),
    "Hebrew with its marks": ("צה״ל וְשָׁלוֹם ג׳ירפה", ["צה״ל", "וְשָׁלוֹם", "ג׳ירפה"]),
    "Cyrillic": ("Ещё «раз», Привет-мир", ["Ещё", "раз", "Привет", "мир"]),
    "Greek capitals": ("ΟΔΟΣ και Ἀθῆναι", ["ΟΔΟΣ", "και", "Ἀθῆναι"]),
    "Korean": ("한국어를 배웁니다.", ["한국어를", "배웁니다"]),
    "Georgian and Armenian": ("ქართული ენა, Հայերեն", ["ქართული", "ენა", "Հայերեն"]),
    "emoji with joiners and selectors": ("I ❤️ you 👩‍👩‍👧 🇫🇷 ok👍🏽", ["I", "you", "ok"]),
    "letters beyond the basic plane": ("𝐛𝐨𝐥𝐝 😀 𐐨x", ["𝐛𝐨𝐥𝐝", "𐐨x"]),
    "apostrophes": ("don't won’t O'Brien rock'n'roll", ["don't", "won’t", "O'Brien", "rock'n'roll"]),
    "quotes that look like apostrophes": ("'tis ‘so’ 'quoted' dogs'", ["tis", "so", "quoted", "dogs"]),
    "elisions": (
        "l'homme d’être Qu'il aujourd'hui",
        ["l'", "homme", "d’", "être", "Qu'", "il", "aujourd'hui"],
    ),
    "possessives": ("the dog's, James’s it'S", ["the", "dog", "'s", "James", "’s", "it", "'S"]),
    "a possessive at the very start": ("'s Gravenhage", ["'s", "Gravenhage"]),
    "an s in quotes": ("an 's' here", ["an", "s", "here"]),
    "numbers": (
        "1,000 and 3.5, 1.000,50; 1,a 2nd ½",
        ["1,000", "and", "3.5", "1.000,50", "1", "a", "2nd", "½"],
    ),
    "initials": ("the U.S. and U.S.A.", ["the", "U.S", "and", "U.S.A"]),
    "a decomposed letter beside an apostrophe": ("l'e\u0301te\u0301's", ["l'", "e\u0301te\u0301", "'s"]),
    "underscores": ("foo_bar __init__ _", ["foo_bar", "__init__", "_"]),
    "hyphens and dashes": ("well-known e-mail—yes", ["well", "known", "e", "mail", "yes"]),
    "a Catalan middle dot": ("col·lecció", ["col·lecció"]),
    "control and zero-width characters": (
        "a\x00b zero\u200bwidth\ufeff x\u00ady",
        ["a", "b", "zero", "width", "x", "y"],
    ),
    "every kind of blank": ("a\tb\nc\u00a0d\u3000e", ["a", "b", "c", "d", "e"]),
    "a joiner or a mark alone": ("\u200d \u0301 \ufe0f", []),
    "nothing": ("", []),
    "only blanks": (" \n\t ", []),
}


def _found(vocabulary: Vocabulary, text: str) -> list[tuple[str, str | None]]:
    """(what stands in the text, what the vocabulary calls it) for each word."""
    found = WordMatcher(vocabulary).match([text])
    named = [vocabulary.words[row] if row >= 0 else None for row in found.ids.tolist()]
    return [
        (text[start:end], name)
        for start, end, name in zip(found.starts.tolist(), found.ends.tolist(), named, strict=True)
    ]


@pytest.mark.parametrize("case", HARD)
def test_words_are_found_where_they_stand_in_the_original_text(case: str) -> None:
    text, words = HARD[case]
    assert [word for word, _ in _found(Vocabulary(["nothing"]), text)] == words


@pytest.mark.parametrize("lowercase", [True, False])
@pytest.mark.parametrize("case", HARD)
def test_a_found_word_is_known_under_its_folded_name(case: str, lowercase: bool) -> None:
    text, words = HARD[case]
    folded = [fold(word, lowercase) for word in words]
    vocabulary = Vocabulary(dict.fromkeys(["nothing", *folded]), lowercase=lowercase)
    assert _found(vocabulary, text) == list(zip(words, folded, strict=True))


def test_of_terms_that_are_the_same_when_folded_the_folded_one_is_found() -> None:
    vocabulary = Vocabulary(("’’", "''", "’m", "'m", "’n’"))
    for _ in range(20):  # with both terms, tokenizers chose anew each time
        matcher = WordMatcher(vocabulary)
        assert matcher.match_rows(["i 'm in '' or ’’ rock ’n’ roll"])[0].tolist() == [-1, 3, -1, 1, -1, 1, -1, 4, -1]


@pytest.mark.parametrize(
    ("word", "lowered"),
    [
        ("İstanbul", "i\u0307stanbul"),
        ("ΟΔΟΣ", "οδος"),
        ("Σ", "σ"),
        ("CAFE\u0301", "café"),
        ("Don’t", "don't"),
        ("STRASSE", "strasse"),
        ("ẞ", "ß"),
        ("New\n York", "new york"),
    ],
)
def test_folding_lower_cases_composes_and_straightens(word: str, lowered: str) -> None:
    assert fold(word, True) == lowered


def test_without_lower_casing_only_the_form_of_letters_changes() -> None:
    assert fold("CAFE\u0301’S", False) == "CAFÉ'S"


def test_vectors_made_elsewhere_are_found_though_they_are_written_otherwise() -> None:
    vocabulary = Vocabulary(["don’t", "cafe\u0301"])
    assert _found(vocabulary, "don't café") == [("don't", "don’t"), ("café", "cafe\u0301")]


TERMS = ["New York", "new york city", "York City", "c++", "e-mail", "U.S.", "at&t", "l'", "'s", ".net"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("I love New York!", [("New York", "new york")]),
        ("new york-based", [("new york", "new york")]),
        ("NEW YORK CITY and york city", [("NEW YORK CITY", "new york city"), ("york city", "york city")]),
        ("New York's", [("New York", "new york"), ("'s", "'s")]),
        ("new yorkers, renew york", []),
        ("C++, c++11 objc++ c", [("C++", "c++")]),
        ("an E-mail, e-mails, e mail", [("E-mail", "e-mail")]),
        ("the U.S. and the US.", [("U.S.", "u.s.")]),
        ("AT&T at & t", [("AT&T", "at&t")]),
        ("l'homme, l' homme", [("l'", "l'")]),
        ("asp.net or .NET", [(".NET", ".net")]),
        ("İ New York e\u0301 c++", [("New York", "new york"), ("c++", "c++")]),
    ],
)
def test_kept_terms_are_found_whole_and_the_longest_wins(text: str, found: list[tuple[str, str]]) -> None:
    vocabulary = Vocabulary.build({}, include_words=TERMS)
    assert [(word, name) for word, name in _found(vocabulary, text) if name] == found


def test_a_kept_term_does_not_change_the_words_around_it() -> None:
    vocabulary = Vocabulary.build({}, include_words=TERMS)
    assert [word for word, _ in _found(vocabulary, "In New York, don't e-mail Bob's 3.5 c++")] == [
        *("In", "New York", "don't", "e-mail", "Bob", "'s", "3.5", "c++")
    ]


def test_several_texts_are_found_one_after_the_other() -> None:
    vocabulary = Vocabulary(["b", "a"])
    found = WordMatcher(vocabulary).match(["a b", "", "x", "b e\u0301 a"])
    assert found.ids.tolist() == [1, 0, -1, 0, -1, 1]
    assert found.text_index.tolist() == [0, 0, 2, 3, 3, 3]
    assert found.starts.tolist() == [0, 2, 0, 0, 2, 5]
    assert found.ends.tolist() == [1, 3, 1, 1, 4, 6]


def test_no_texts_give_no_words() -> None:
    finder = WordMatcher(Vocabulary(["a"]))
    assert len(finder.match([]).ids) == 0
    assert len(finder.match_rows([])[0]) == 0


# Against a slow computation, on text made of what is hard

ALPHABET = [
    *"aAbsSlLdqu. ,'’-_ 1 2·×😀éĺİßΣσςΟ\n",
    *(
        "e\u0301",
        "\u0301",
        "\u200d",
        "\u200c",
        "ש״",
        "हि",
        "न्",
        "한",
        "\u1112\u1161\u11ab",
        "Ж",
        "c++",
        " New York ",
    ),
    *("qu'", "l'", "'s", "\ufe0f", "½", "\x00"),
]
hard_texts = st.lists(st.sampled_from(ALPHABET), max_size=30).map("".join)


def _slow_words(text: str, lowercase: bool) -> list[str]:
    """The definition in `finding`, read aloud, one character at a time."""
    text = unicodedata.normalize("NFC", text).replace("’", "'")
    if lowercase:
        text = "".join(char.lower() for char in text)
        text = "".join(_with_final_sigma(text, at) for at in range(len(text)))
    words, at = [], 0
    while at < len(text):
        end = _elision_end(text, at) or _possessive_end(text, at) or _run_end(text, at)
        if end:
            words.append(text[at:end])
        at = end or at + 1
    return words


def _kind(text: str, at: int) -> str:
    return unicodedata.category(text[at])[0] if 0 <= at < len(text) else ""


def _first(text: str, at: int) -> bool:
    return _kind(text, at) in {"L", "N"} or text[at : at + 1] == "_"


def _letter(text: str, at: int) -> bool:
    return at >= 0 and (_first(text, at) or _kind(text, at) == "M" or text[at : at + 1] in {"\u200c", "\u200d"})


def _with_final_sigma(text: str, at: int) -> str:
    ends_word = "L" in (_kind(text, at - 1), _kind(text, at - 2) * (_kind(text, at - 1) == "M"))
    return "ς" if text[at] == "σ" and ends_word and _kind(text, at + 1) not in {"L", "M"} else text[at]


def _elision_end(text: str, at: int) -> int:
    for elided in (*"cdjlmnst", "qu"):
        end = at + len(elided) + 1
        begun = text[at:end] in {f"{elided}'", f"{elided.capitalize()}'"}
        if begun and _kind(text, end) == _kind(text, end + 1) == "L":
            return end
    return 0


def _possessive_end(text: str, at: int) -> int:
    after_word = at == 0 or _letter(text, at - 1)
    return at + 2 if text[at : at + 2] in {"'s", "'S"} and after_word and not _letter(text, at + 2) else 0


def _run_end(text: str, at: int) -> int:
    if not _first(text, at):
        return 0
    while True:
        at += 1
        while _letter(text, at):
            at += 1
        joins = text[at : at + 1] in {*".·׳״"}
        joins |= text[at : at + 1] == "'" and not (text[at + 1 : at + 2] in {*"sS"} and not _letter(text, at + 2))
        joins |= text[at : at + 1] == "," and _kind(text, at - 1) == _kind(text, at + 1) == "N"
        if not (joins and _first(text, at + 1)):
            return at
        at += 1


@pytest.mark.parametrize("case", HARD)
def test_the_slow_computation_agrees_with_the_table_of_hard_cases(case: str) -> None:
    text, words = HARD[case]
    assert _slow_words(text, False) == [fold(word, False) for word in words]


@settings(deadline=None, max_examples=150)
@given(st.lists(hard_texts, max_size=5), st.booleans())
@example(["e\u0301'S"], True)
def test_counts_equal_those_of_the_slow_computation(texts: list[str], lowercase: bool) -> None:
    counter = WordCounter(lowercase=lowercase)
    slow = Counter(word for text in texts for word in _slow_words(text, lowercase))
    assert counter.add(texts) == slow.total()
    assert counter.counts() == dict(slow)


@settings(deadline=None, max_examples=60)
@given(st.lists(hard_texts, max_size=8), st.integers(1, 4))
def test_counts_do_not_depend_on_how_the_texts_come(texts: list[str], step: int) -> None:
    keep = ["New York", "c++", "a-b"]
    whole, apart = WordCounter(include_words=keep), WordCounter(include_words=keep)
    whole.add(texts)
    for start in range(0, len(texts), step):
        apart.add(texts[start : start + step])
        apart.counts()  # what was met is now known, and counted the other way
    assert apart.counts() == whole.counts()


@settings(deadline=None, max_examples=150)
@given(st.lists(hard_texts, min_size=1, max_size=4), st.booleans())
def test_every_counted_word_is_found_and_its_offsets_give_it_back(texts: list[str], lowercase: bool) -> None:
    keep = ["New York", "c++", "a-b"]
    counter = WordCounter(lowercase=lowercase, include_words=keep)
    counter.add(texts)
    vocabulary = Vocabulary.build(counter.counts(), min_count=1, include_words=keep, lowercase=lowercase)
    found = WordMatcher(vocabulary).match(texts)
    spans = zip(found.text_index.tolist(), found.starts.tolist(), found.ends.tolist(), strict=True)
    folded = [fold(texts[text][start:end], lowercase) for text, start, end in spans]
    assert folded == [vocabulary.words[row] for row in found.ids.tolist()]
    assert Counter(folded) == counter.counts()


@settings(deadline=None, max_examples=60)
@given(st.lists(hard_texts, max_size=4))
def test_find_and_rows_agree(texts: list[str]) -> None:
    finder = WordMatcher(Vocabulary.build({"a": 1, "é": 1, "l'": 1}, min_count=1, include_words=["New York", "c++"]))
    found, (rows, text) = finder.match(texts), finder.match_rows(texts)
    assert np.array_equal(found.ids, rows)
    assert np.array_equal(found.text_index, text)
    assert np.all(found.starts < found.ends)
    same = found.text_index[1:] == found.text_index[:-1]
    assert np.all(found.starts[1:][same] >= found.ends[:-1][same])


# Counting


def test_kept_terms_are_counted_whole() -> None:
    counter = WordCounter(include_words=["New York", "c++", "Paris"])
    assert counter.add(["New York, new york and York. C++ in Paris, paris!"]) == 8
    assert counter.counts() == {"new york": 2, "and": 1, "york": 1, "c++": 1, "in": 1, "paris": 2}


def test_counting_without_lower_casing_keeps_capitals_apart() -> None:
    counter = WordCounter(lowercase=False)
    counter.add(["Paris paris PARIS Paris"])
    assert counter.counts() == {"Paris": 2, "paris": 1, "PARIS": 1}


def test_nothing_counted_is_an_empty_table() -> None:
    counter = WordCounter(include_words=["new york"])
    assert counter.add([]) == 0
    assert counter.add(["", "..."]) == 0
    assert counter.counts() == {}


def test_many_words_are_counted_exactly_across_the_learning_of_new_ones() -> None:
    words = [f"w{n % (1 + n // 3)}" for n in range(30_000)]
    texts = [" ".join(words[at : at + 50]) for at in range(0, len(words), 50)]
    counter = WordCounter()
    for at in range(0, len(texts), 100):
        counter.add(texts[at : at + 100])
    assert counter.counts() == Counter(words)


def test_pruning_bounds_the_number_of_words_and_keeps_frequent_and_included_ones() -> None:
    counter = WordCounter(include_words=["Rare", "new york"], max_types=1000)
    counter.add(["rare new york"])
    for round_ in range(20):
        counter.add([f"the the new{round_}x{n} snow" for n in range(2500)])
        assert len(counter.counts()) <= 1002
    counts = counter.counts()
    assert counts["the"] == 20 * 5000
    assert counts["snow"] == 20 * 2500
    assert counts["rare"] == 1
    assert counts["new york"] == 1


def test_memory_does_not_grow_with_the_number_of_different_words() -> None:
    def peak(rounds: int) -> int:
        counter = WordCounter(max_types=2000)
        tracemalloc.start()
        for round_ in range(rounds):
            counter.add([f"new{round_}x{n}" for n in range(2500)])
        used = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return used

    assert peak(20) < 1.5 * peak(4)


def test_a_text_with_half_a_character_has_its_words() -> None:
    matcher = WordMatcher(Vocabulary(["ice", "雪"]))
    texts = ["\ud800 ice", "雪 \udfff ice", "ice"]
    assert [row.tolist() for row in matcher.match_rows(texts)] == [[0, 1, 0, 0], [0, 1, 1, 2]]
    spans = matcher.match(texts)
    places = zip(spans.text_index, spans.starts, spans.ends, strict=True)
    assert [texts[number][start:end] for number, start, end in places] == ["ice", "雪", "ice", "ice"]
