"""Sentences: a table of hard cases, nothing lost, and the boundaries of a treebank."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stillvec.corpus import split_sentences

CASES = [  # | is where a sentence ends
    "One is here.|Two is there!|Is three?|Yes.",
    "Mr. Smith met Dr. Jones and Prof. Lee in St. Louis.|They left.",
    "Use fruit, e.g. Apples, i.e. Those there, etc. and so on.|Fine.",
    "J. R. R. Tolkien wrote it.|George W. Bush read it.",
    "He lives in the U.S.|The weather is fine.",
    "The U.S. Army and the U.N. Council met at 5 p.m. in D.C. last week.",
    "It began at 5 a.m.|It ended at noon.",
    "He paid Apple Inc.|The sum was large.",
    "Apple Inc. Chairman Jobs spoke.",
    "See Fig. 3 and No. 5, pp. 3-5, vol. II, ch. B.|It is on Jan. 5 or Dec. 24.",
    "No.|I will not.",
    "Pi is 3.14 and not 3.5 or .5 of it.|It was 1999.|5 people saw it.",
    "1. Take an egg.|2. Boil it.",
    "iv. Take an egg.|a. Boil it.",
    "I was ... well ... tired.|Then I slept…|Or so… they say.",
    "Wait... what?|Nothing...|Go on.",
    '"Stop!" he said.|Then he left.',
    '"Where is he?" Kate asked in a low voice.|“Here!” cried Tom.',
    '"I am here."|She sat down.',
    "He left (he was tired.)|She stayed (with him).|“Good.”|'So.'|End.",
    "The claim holds.[1]|Another one.[23]|Last.",
    "See www.example.com/a.html?q=1.|Mail a.b@c.de now!|Go.",
    "Yahoo! is a firm.|What?!|No...|Really!!!|Yes.",
    "The mass.|Elements have mass.|It is in Boston, Mass. Harvard too.",
    "In 5.2 s.|Calculate it.|So do I.|You too.|World War I.|In 1914 it began.",
    "i like it.|you do not.|ok",
    "So v. Maryland (1819) went.|It cost approx. Five dollars.",
    "Das war am 3. Oktober z.B. In Köln.|Gut.",
    "Él dijo eso.|¿Por qué?|¡No sé!|«Bien».|Ya.",
    "यह पहला है।|यह दूसरा है॥|तीसरा",
    "これは本です。|あれも「本。」|そうですか？|はい！",
    "هل هذا صحيح؟|نعم.|هذا صحيح۔|انتهى",
    "ይህ ነው።|ያ ነው።|Սա է։|Այո։",
    "Это он.|А это т.е. Она.|Кто?",
]


@pytest.mark.parametrize("case", CASES)
def test_a_hard_case_is_cut_where_a_reader_would(case: str) -> None:
    spaced = case.replace("|", " ")
    assert split_sentences(spaced) == case.split("|")


def test_scripts_without_spaces_are_cut_without_spaces() -> None:
    assert split_sentences("これは本です。あれも。「え？」はい！") == [
        "これは本です。",
        "あれも。",
        "「え？」",
        "はい！",
    ]


def test_white_space_around_is_lost_and_inside_is_kept() -> None:
    assert split_sentences("  One  is\there. \n Two.\t") == ["One  is\there.", "Two."]
    assert split_sentences("") == split_sentences(" \n ") == []


_TEXTS = st.lists(
    st.sampled_from([*"aZé5. !?…।。\"')]“(\n\u3000", " ", " ", ". ", "Mr.", "U.S.", "The ", "said", "...", "[1]"])
)


@given(st.one_of(st.text(), _TEXTS.map("".join)))
def test_the_sentences_are_the_paragraph_but_for_white_space(paragraph: str) -> None:
    sentences = split_sentences(paragraph)
    assert "".join("".join(sentences).split()) == "".join(paragraph.split())
    assert all(sentence and sentence == sentence.strip() for sentence in sentences)


@pytest.mark.parametrize("piece", [".", '"', "Mr. ", ". ", "([.", "- ", "a.", ".]", "[1]. "])
def test_no_text_takes_long(piece: str) -> None:
    start = time.perf_counter()
    split_sentences(piece * (100_000 // len(piece)))
    assert time.perf_counter() - start < 2


def _documents(path: Path) -> list[list[str]]:
    documents: list[list[str]] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("# newdoc"):
            documents.append([])
        elif line.startswith("# text = "):
            documents[-1].append(line.removeprefix("# text = ").strip())
    return documents


def _ends(sentences: list[str]) -> set[int]:
    """Where sentences end but the last, counted in characters that are no space."""
    lengths = [len("".join(sentence.split())) for sentence in sentences]
    return {sum(lengths[:n]) for n in range(1, len(lengths))}


def test_the_boundaries_of_a_treebank_of_the_web_are_found(data_folder: Path) -> None:
    """Most that are missed end without a stop (headlines, signatures), which nothing on one line shows."""
    found, wanted, right, stopped, stopped_right = 0, 0, 0, 0, 0
    for document in _documents(data_folder / "tagging" / "ud-ewt.test.conllu"):
        gold, ours = _ends(document), _ends(split_sentences(" ".join(document)))
        with_stop = {end for end, text in zip(sorted(gold), document, strict=False) if text[-1] in ".!?"}
        found, wanted, right = found + len(ours), wanted + len(gold), right + len(gold & ours)
        stopped, stopped_right = stopped + len(with_stop), stopped_right + len(with_stop & ours)
    precision, recall = right / found, right / wanted
    assert precision > 0.98
    assert 2 * precision * recall / (precision + recall) > 0.78
    assert stopped_right / stopped > 0.92
