"""`extract_glossary`: each form of a definition, sentences that are none, and files that are not overwritten."""

from __future__ import annotations

from pathlib import Path

import pytest

from stillvec import cli, extract_glossary
from stillvec.errors import CorpusError, UsageError
from stillvec.evaluation.glossary import Glossary
from stillvec.lexicons.glossary_forms import clean, find_in_markdown, find_in_paragraph

PAGE = """---
title: "Cache"
slug: Glossary/Cache
---

A **cache** (web cache) is a component that stores HTTP responses temporarily so that they can
be used for later requests.

## Words

Round trip
: The time that a packet needs to a server and back to {{Glossary("client", "the client")}}.

- First paint
  - : The moment at which the [browser](https://example.org) renders anything that is visible.

- **Jitter**: the variation of the latency of packets,
  measured over a *short* time
- **Proxy** is a server that forwards requests of clients to other servers.
- **Note** that this is not a definition of anything

| Term | Used by | Definition |
|------|---------|------------|
| TTL  | DNS     | How long a record may be kept before it is asked for again |

```js
Nonsense
: a line of code that looks like a definition
```

A polyfill is a piece of code that provides modern functionality on older browsers.
This is a sentence that defines nothing at all about the world of pages.
"""


def test_each_form_of_a_markdown_page_is_found() -> None:
    found = {entry.term: (entry.form, entry.definition) for entry in find_in_markdown(PAGE)}
    assert {term: form for term, (form, _) in found.items()} == {
        "Cache": "heading",
        "cache": "sentence",
        "Round trip": "definition list",
        "First paint": "definition list",
        "Jitter": "bold item",
        "Proxy": "bold item",
        "TTL": "table",
        "polyfill": "sentence",
    }
    assert found["Round trip"][1] == "The time that a packet needs to a server and back to the client"
    assert found["First paint"][1] == "The moment at which the browser renders anything that is visible"
    assert found["Jitter"][1] == "the variation of the latency of packets, measured over a short time"
    assert found["Proxy"][1] == "a server that forwards requests of clients to other servers"


@pytest.mark.parametrize(
    ("sentence", "term"),
    [
        ("Federalism is a system of government that has two levels of power.", "federalism"),
        ("A bill of attainder is a law that convicts someone without a trial.", "bill of attainder"),
        ("The Clean Air Act (CAA) is a law that limits what factories may emit.", "Clean Air Act"),
        ("DNA is a molecule that carries the genetic instructions of living beings.", "DNA"),
        ("Osmosis refers to diffusion of water through a membrane that is semipermeable.", "osmosis"),
    ],
)
def test_a_first_sentence_defines_a_term(sentence: str, term: str) -> None:
    (entry,) = find_in_paragraph(f"{sentence} More text follows here.")
    assert entry.term == term
    assert entry.definition == sentence.rstrip(".").partition(" is ")[2] or "refers" in sentence


@pytest.mark.parametrize(
    "sentence",
    [
        "This is a system of government that has two levels of power.",
        "One reason is a lack of money that many states have had.",
        "Which of the following is a law that convicts someone without trial?",
        "Gerrymandering is a centuries-old practice.",
        "Abortion is a very old issue that has caused much debate in courts.",
        "The goal of science is the explanation of what happens in the world.",
        "He is a doctor who works in the city and lives outside.",
        "Federalism is important to the states and their many different people.",
    ],
)
def test_other_sentences_define_nothing(sentence: str) -> None:
    assert [*find_in_paragraph(sentence)] == []


def test_markdown_becomes_plain_text() -> None:
    assert (
        clean('the [**big** one](a.md) of {{Glossary("DOM")}} and `code` <br> 2 * 3')
        == "the big one of DOM and code 2 * 3"
    )


def test_a_folder_gives_one_definition_per_term_that_evaluate_reads(tmp_path: Path) -> None:
    folder = tmp_path / "pages"
    folder.mkdir()
    (folder / "a.md").write_text(PAGE)
    (folder / "b.txt").write_text(
        "A cache is a place in which something is hidden for later use.\n\nA proxy is a form.\n"
    )
    out = tmp_path / "own" / "glossaries" / "web.tsv"
    glossary = extract_glossary(folder, out=out)
    assert glossary.counts == {"definition list": 2, "bold item": 2, "table": 1, "heading": 1, "sentence": 1}
    assert [entry.form for entry in glossary if entry.term.lower() == "cache"] == ["heading"]
    assert len(Glossary().read(out)) == len(glossary) == 7
    before = out.read_bytes()
    with pytest.raises(UsageError) as caught:
        extract_glossary(folder, out=out)
    assert (caught.value.code, caught.value.path) == ("exists", str(out))
    assert out.read_bytes() == before
    extract_glossary(folder / "b.txt", out=out, force=True)
    assert out.read_bytes() != before


def test_text_without_definitions_is_an_error_and_writes_nothing(tmp_path: Path) -> None:
    with pytest.raises(CorpusError) as caught:
        extract_glossary(["Nothing is here.", "Nor is it there."], out=tmp_path / "a.tsv")
    assert caught.value.code == "no-terms"
    assert not (tmp_path / "a.tsv").exists()


def test_files_without_definitions_are_named_as_the_user_gave_them(tmp_path: Path) -> None:
    files = [tmp_path / f"{name}.txt" for name in "abcd"]
    for file in files:
        file.write_text("Nothing is here.\n")
    with pytest.raises(CorpusError) as caught:
        extract_glossary(files)
    assert f"in {files[0]}, {files[1]}, {files[2]}, ...;" in str(caught.value)


def test_the_command_shows_how_many_of_which_form(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.md").write_text(PAGE)
    assert cli.main(["glossary", str(tmp_path / "a.md"), "--out", str(tmp_path / "a.tsv")]) == 0
    shown = capsys.readouterr().out
    assert "definition list" in shown
    assert "Round trip" in shown
    assert "7 terms" in shown
    assert cli.main(["glossary", str(tmp_path / "a.md"), "--out", str(tmp_path / "a.tsv")]) == 2
