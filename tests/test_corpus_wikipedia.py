"""Dumps of wikis: mark-up becomes prose, and what is no article stays out."""

from __future__ import annotations

import bz2
import re
import time
import tracemalloc
from collections import Counter
from html import escape
from pathlib import Path
from xml.etree import ElementTree

import pytest
from error_checks import raises

from stillvec.corpus import Corpus
from stillvec.corpus.wikitext import plain_paragraphs
from stillvec.errors import CorpusError

MEDIA = frozenset({"file", "image", "category", "media"})
LONG = "and so this paragraph is long enough to be one."

MARKUP = {  # wikitext of a sentence, and its prose
    "'''Bold''' and ''italic'' and '''''both'''''": "Bold and italic and both",
    "A [[link]], a [[target|shown]] one, [[word]]s": "A link, a shown one, words",
    "[[File:a.jpg|thumb|A [[nested]] caption]]Here": "Here",
    "[[Image:a.png]][[Category:X]][[Datei:b.svg|mini|links]]Here": "Here",
    "[[fr:Titre]]See [[:Category:X]] of [[wikt:en:word|word]]": "See Category:X of word",
    "One<ref>{{cite|a=[[b]]}}</ref> two<ref name=x/> three<ref name='y'>z</ref>": "One two three",
    "One<!-- a\ncomment --> two": "One two",
    "A {{box|with {{inner|one}}}} gone {{nowrap|but not}} {{convert|5|km|mi}}": "A gone but not 5 km",
    "{{lang|fr|mot}} [[a|{{nowrap|b c}}]]": "mot b c",
    "Ends<math>x^2 < {{y}}</math>, 2 &lt; 3&nbsp;km &amp; more": "Ends, 2 < 3 km & more",
    "[http://a.b/c Shown] and [http://a.b] and <small>small<br/>er</small>": "Shown and and small er",
    "A name ({{IPA|x}}; ) and (, [[b]]) it": "A name and (b) it",
    "Unbalanced }} and [[ here": "Unbalanced and here",
    "One\nline goes\non": "One line goes on",
    "it's the dogs' `c` ": "it's the dogs' `c`",
}


@pytest.mark.parametrize("wikitext", MARKUP)
def test_markup_becomes_prose(wikitext: str) -> None:
    (prose,) = plain_paragraphs(f"{wikitext} {LONG}", MEDIA)
    assert prose == f"{MARKUP[wikitext]} {LONG}".replace("``", "")


def test_what_is_not_prose_is_removed_completely() -> None:
    wikitext = f"""{{{{Infobox
| name = X
| text = {{{{plainlist|
* a}}}}
}}}}
== Heading ==
First {LONG}
{{| class="wikitable"
|-
! head || other
|-
| cell {LONG}
{{| class="inner"
| in
|}}
|}}
<gallery>
a.jpg|Caption {LONG}
</gallery>
* a label
* An item {LONG}
:: Indented {LONG}
----
=== References ===
Second {LONG}
== External links ==
* Homepage {LONG}
== Life ==
Third {LONG}
__NOTOC__
"""
    assert list(plain_paragraphs(wikitext, MEDIA)) == [
        f"First {LONG}",
        f"An item {LONG}",
        f"Indented {LONG}",
        f"Second {LONG}",
        f"Third {LONG}",
    ]


def test_no_wikitext_takes_long() -> None:
    start = time.perf_counter()
    for piece in ["{{", "[[", "{|", "[[a|", "{{a|[", "'''", "<ref>", "== x", "}}", "|}", "[", "&", "(;"]:
        list(plain_paragraphs(piece * (20_000 // len(piece)), MEDIA))
    assert time.perf_counter() - start < 5


def _page(text: str, namespace: str = "0", more: str = "") -> str:
    revision = f"<revision><text>{escape(text)}</text></revision>"
    return f"<page><title>T</title><ns>{namespace}</ns>{more}{revision}</page>"


def _dump(*pages: str) -> str:
    names = '<siteinfo><namespaces><namespace key="6">Skrá</namespace></namespaces></siteinfo>'
    return f'<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.10/">{names}{"".join(pages)}</mediawiki>'


def test_only_articles_of_a_dump_are_read(tmp_path: Path) -> None:
    pages = (
        _page(f"Kept {LONG}"),
        _page(f"Talk {LONG}", "1"),
        _page(f"Moved {LONG}", more='<redirect title="x"/>'),
        _page(f"#REDIRECT [[x]] {LONG}"),
        _page(f"[[Skrá:a|b]]Also {LONG}"),
    )
    (tmp_path / "pages-articles1.xml-p1p20.bz2").write_bytes(bz2.compress(_dump(*pages).encode()))
    assert list(Corpus(tmp_path).paragraphs()) == [f"Kept {LONG}", f"Also {LONG}"]


def test_a_dump_is_known_by_its_beginning(tmp_path: Path) -> None:
    (tmp_path / "unnamed").write_text(_dump(_page(f"Kept {LONG}")))
    assert list(Corpus(tmp_path / "unnamed").paragraphs()) == [f"Kept {LONG}"]


@pytest.mark.parametrize(("end", "said"), [("<page>", "line 1"), ("</wrong>", "mismatched tag")])
def test_malformed_xml_is_named(end: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_text(_dump().replace("</mediawiki>", end))
    with raises(CorpusError, code="bad-xml", path=tmp_path / "a.xml", line=1, match=said):
        list(Corpus(tmp_path / "a.xml").paragraphs())


def test_xml_that_is_not_a_dump_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_text("<html><body>text</body></html>")
    with raises(CorpusError, path=tmp_path / "a.xml", match="MediaWiki"):
        list(Corpus(tmp_path / "a.xml").paragraphs())


def test_the_memory_of_a_dump_does_not_grow_with_its_pages(tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_text(_dump(*[_page(f"{n} {LONG}") for n in range(10_000)]))
    corpus = Corpus(tmp_path / "a.xml")
    next(corpus.paragraphs())
    assert not tracemalloc.is_tracing()
    tracemalloc.start()
    assert sum(1 for _ in corpus.paragraphs()) == 10_000
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 5_000_000  # the whole tree takes more than 10 MB


@pytest.fixture(scope="module")
def sample() -> Path:
    gensim = pytest.importorskip("gensim", reason="the sample of Wikipedia comes with gensim")
    (path,) = Path(gensim.__file__).parent.glob("test/test_data/enwiki-latest-*-shortened.bz2")
    return Path(path)


def test_the_packaged_sample_of_wikipedia_becomes_clean_prose(sample: Path) -> None:
    text = "\n".join(Corpus(sample).paragraphs())
    assert 420_000 < len(text.split()) < 445_000
    assert "Anarchism is a political philosophy that advocates self-governed societies" in text
    assert not re.search(r"\[\[|\]\]|\{\{|\}\}|''|<ref|&nbsp;|thumb\||^[*#:|!=]|style=|\n\n", text, re.MULTILINE)


def test_the_prose_has_the_words_that_a_parser_finds(sample: Path) -> None:
    parser = pytest.importorskip("mwparserfromhell")
    with bz2.open(sample) as stream:
        tree = ElementTree.parse(stream)
    texts = [element.text or "" for element in tree.iter() if element.tag.endswith("}text")]
    article = next(text for text in texts if "neurodevelopmental disorder" in text[:5000])
    reference = Counter(re.findall(r"\w+", str(parser.parse(article).strip_code())))
    ours = Counter(re.findall(r"\w+", " ".join(plain_paragraphs(article, MEDIA))))
    assert (ours - reference).total() < 0.01 * ours.total()
    assert (ours & reference).total() > 0.8 * reference.total()  # the parser keeps captions, lists and headings


def test_a_line_with_unresolved_markup_goes_through_the_parser() -> None:
    pytest.importorskip("mwparserfromhell")
    (prose,) = plain_paragraphs(
        "The [[river|old river]] and {{lang|fr|its [[Pont|bridge]] stood there for years.", frozenset()
    )
    assert "old river" in prose
    assert "bridge" in prose
    assert "[[" not in prose
    assert "{{" not in prose
