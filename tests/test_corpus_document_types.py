"""Markdown, HTML, PDF, DOCX and EPUB as text."""

from __future__ import annotations

import gzip
import sys
import zipfile
from pathlib import Path

import pytest
from tiny_documents import MARKDOWN, PAGE, make_docx, make_epub, make_pdf, zip_members

from stillvec.corpus import Corpus
from stillvec.corpus.documents import read_documents
from stillvec.corpus.html_text import html_paragraphs
from stillvec.corpus.markdown_text import _find_cut, markdown_paragraphs
from stillvec.errors import CorpusError, MissingExtra, StillvecWarning

LINE = "the quick brown fox jumps over the lazy dog and runs away from"


def read(path: Path, content: str | bytes, **settings: bool) -> list[str]:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with Corpus(path, **settings) as corpus:  # type: ignore[arg-type]
        first = [*corpus.paragraphs()]
        assert [*corpus.paragraphs()] == first
    return first


def test_html_is_read_without_scripts_styles_navigation_and_addresses(tmp_path: Path) -> None:
    texts = ["The ice", "Ice melts in the border-radius, see here.", "One item", "Two items", "H2O stays."]
    assert read(tmp_path / "page.html", PAGE) == texts
    assert read(tmp_path / "page", PAGE) == texts  # recognized by its first bytes
    assert read(tmp_path / "page.htm.gz", gzip.compress(PAGE.encode())) == texts


def test_an_element_that_is_never_closed_does_not_hide_the_page() -> None:
    assert [*html_paragraphs(["<nav><a>Home</a><main><p>Te", "xt</p></main>"], "x")] == ["Text"]


def test_the_encoding_that_a_page_names_is_used(tmp_path: Path) -> None:
    page = '<html><head><meta charset="iso-8859-1"></head><p>Die Flüsse'
    assert read(tmp_path / "page.html", page.encode("latin1")) == ["Die Flüsse"]


def test_markdown_is_read_without_code_blocks_targets_tags_and_template_calls(tmp_path: Path) -> None:
    assert read(tmp_path / "page.md", MARKDOWN) == [
        "The border-radius property",
        "It rounds the corners of a box, as fetch() does; see and .",
        "Press Enter.",
        *("name", "meaning", "radius", "half of it"),
        "Inside a block.",
    ]


def test_markup_can_still_be_read_as_it_is(tmp_path: Path) -> None:
    assert "title: A title" in read(tmp_path / "page.md", MARKDOWN, plain=True)
    assert "<b>melts</b>" in read(tmp_path / "page.html", PAGE, plain=True)[0]


def test_a_long_markdown_text_is_divided_at_headings_outside_of_code() -> None:
    block = "\n# one\n" + "word " * 250_000 + "\n```\n# no heading\n```\n"
    text = block * 2 + "word " * 50_000
    assert text[_find_cut(text) :].startswith("\n# one")
    assert len([*markdown_paragraphs("a\n\nb", "x")]) == 2


def test_docx_is_read_with_tables_and_notes_and_without_deleted_text(tmp_path: Path) -> None:
    assert read(tmp_path / "text.docx", make_docx()) == ["The ice melts.", "A cell", "A note."]
    box = "<w:p><w:r><w:t>Out</w:t></w:r><w:p><w:r><w:t>Box</w:t></w:r></w:p><w:r><w:t>side</w:t></w:r></w:p>"
    assert read(tmp_path / "box.docx", make_docx(box))[:3] == ["Out", "Box", "side"]


def test_epub_is_read_in_the_order_of_its_spine(tmp_path: Path) -> None:
    book = make_epub({"b.xhtml": "<p>Second &amp; last</p>", "a.xhtml": "<html><body><p>First</p></body></html>"})
    assert read(tmp_path / "book.epub", book) == ["First", "Second & last"]


def test_pdf_lines_are_joined_words_repaired_and_page_edges_dropped(tmp_path: Path) -> None:
    pytest.importorskip("pypdf")
    pages = [
        [f"Chapter {number}", LINE, f"{LINE} exam-", f"ple {letter} of it.", "New paragraph", LINE, f"Page {number}"]
        for number, letter in enumerate("abc", 1)
    ]
    texts = read(tmp_path / "text.pdf", make_pdf(pages))
    assert texts[0] == f"{LINE} {LINE} example a of it."
    assert not any("Chapter" in text or "Page" in text for text in texts)
    assert texts[1].startswith("New paragraph")


def test_pdf_without_text_gives_a_warning(tmp_path: Path) -> None:
    pytest.importorskip("pypdf")
    (tmp_path / "scan.pdf").write_bytes(make_pdf([[]]))
    (tmp_path / "text.txt").write_text("Some text.")
    with pytest.warns(StillvecWarning, match=r"scan\.pdf"):
        assert [*Corpus(tmp_path).paragraphs()] == ["Some text."]


def test_a_missing_package_is_named_before_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "text.pdf").write_bytes(make_pdf([[LINE]]))
    monkeypatch.setitem(sys.modules, "pypdf", None)
    monkeypatch.setattr("stillvec.registry._is_installed", lambda package: package != "pypdf")
    with pytest.raises(MissingExtra, match=r"stillvec\[pdf\]"):
        Corpus(tmp_path)


@pytest.mark.parametrize("name", ["text.docx", "text.epub", "text.pdf"])
@pytest.mark.parametrize("content", [b"no archive", b"PK\x03\x04", zip_members({"x": "y"})])
def test_another_or_a_damaged_file_is_one_sentence(tmp_path: Path, name: str, content: bytes) -> None:
    if name.endswith("pdf"):
        pytest.importorskip("pypdf")
    with pytest.raises(CorpusError) as caught:
        read(tmp_path / name, content)
    assert caught.value.path == str(tmp_path / name)


def test_an_archive_that_expands_too_much_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CorpusError) as caught:
        read(tmp_path / "bomb.docx", make_docx(f"<w:p><w:r><w:t>{'a' * (8 << 20)}</w:t></w:r></w:p>"))
    assert caught.value.code == "too-large"


def test_external_entities_are_not_loaded(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    head = f'<?xml version="1.0"?><!DOCTYPE d [<!ENTITY x SYSTEM "file://{tmp_path}/secret.txt">]>'
    xml = f'{head}<w:document xmlns:w="urn:w"><w:p><w:t>&x;</w:t></w:p></w:document>'
    with pytest.raises(CorpusError):
        read(tmp_path / "text.docx", zip_members({"word/document.xml": xml}))
    book = make_epub({"a.xhtml": f"{head}<p>&x; text</p>"})
    assert "secret" not in " ".join(read(tmp_path / "book.epub", book))


def test_entities_that_multiply_are_refused(tmp_path: Path) -> None:
    entities = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10 if n else "lol" * 10}">' for n in range(9))
    xml = f'<!DOCTYPE d [{entities}]><w:document xmlns:w="urn:w"><w:p><w:t>&e8;</w:t></w:p></w:document>'
    with pytest.raises(CorpusError):
        read(tmp_path / "text.docx", zip_members({"word/document.xml": xml}))


def test_a_member_that_lies_about_its_size_is_not_read_further(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.docx", "w") as archive:
        archive.writestr("word/document.xml", "<w:document xmlns:w='w'><w:p><w:t>short</w:t></w:p></w:document>")
    data = bytearray((tmp_path / "a.docx").read_bytes())
    at = data.rindex(b"PK\x01\x02")
    data[at + 24 : at + 28] = (10).to_bytes(4, "little")
    with pytest.raises(CorpusError):
        read(tmp_path / "b.docx", bytes(data))


def test_a_document_is_converted_once_and_its_text_is_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    (tmp_path / "page.html").write_text(PAGE)
    corpus = Corpus(tmp_path / "page.html")
    first = [*corpus.paragraphs()]
    assert len([*(tmp_path / "tmp").iterdir()]) == 1
    monkeypatch.setattr("stillvec.corpus.sources.open_file", None)
    assert [*corpus.paragraphs()] == first
    corpus.close()
    assert not [*(tmp_path / "tmp").iterdir()]


def test_folders_and_an_index_take_documents(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# One\n\nText of one.")
    (tmp_path / "b.docx").write_bytes(make_docx())
    (tmp_path / "c.txt").write_text("Text of three.")
    assert len(Corpus(tmp_path).sources) == 3
    documents = {document.id: document.text for document in read_documents([tmp_path])}
    assert documents == {
        "a.md": "One\n\nText of one.",
        "b.docx": "The ice melts.\n\nA cell\n\nA note.",
        "c.txt": "Text of three.",
    }
