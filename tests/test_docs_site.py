"""The documentation site: it builds without warnings, works offline, and every command on it is valid."""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import stillvec
from stillvec.cli import VERBS, CommandParser
from stillvec.errors import StillvecError
from stillvec.learners import LEARNERS
from stillvec.registry import settings_from

ROOT = Path(__file__).resolve().parents[1]
PAGES = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md"]

pytestmark = pytest.mark.skipif(not (ROOT / "mkdocs.yml").exists(), reason="a wheel has no documentation pages")


def build_site(site: Path, **changed: Any) -> None:
    pytest.importorskip("material")
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    config = load_config(str(ROOT / "mkdocs.yml"), site_dir=str(site), strict=True, **changed)
    config.plugins.on_startup(command="build", dirty=False)
    build(config)


def load_reference() -> Any:
    spec = importlib.util.spec_from_file_location("reference", ROOT / "docs" / "reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    build_site(folder)
    return folder


def test_the_reference_has_all_verbs_names_and_methods(site: Path) -> None:
    text = {name: (site / "reference" / f"{name}.html").read_text("utf-8") for name in ("cli", "parts", "python")}
    assert all(f'<h2 id="{verb}">' in text["cli"] for verb in VERBS)
    assert "usage: stillvec distill [-h] [--out DIR]" in text["cli"]
    assert all(f'<h2 id="{name.lower()}">' in text["python"] for name in stillvec.__all__)
    assert 'id="wordvectorsnearest"' in text["python"]
    assert all(f">{name}<" in text["parts"] for name in LEARNERS)


def test_every_setting_has_a_meaning() -> None:
    pytest.importorskip("mkdocs")
    reference = load_reference()
    missing = [
        f"{kind} {name}: {setting}"
        for kind, _, registry in reference.PARTS.values()
        for name in registry
        for setting, (_, meaning) in reference.settings_of(kind, name, registry[name]).items()
        if not meaning
    ]
    assert missing == [], "add a comment at the field, or a line in docs/settings.toml"


def test_every_example_of_a_setting_is_accepted() -> None:
    pytest.importorskip("mkdocs")
    reference, wrong = load_reference(), []
    for kind, _, registry in reference.PARTS.values():
        for name in registry:
            part = registry[name]
            required = {field.name for field in dataclasses.fields(part) if field.default is dataclasses.MISSING}
            needed = {
                key: reference.example_of(part, key)
                for key in required
                if key in reference.settings_of(kind, name, part)
            }
            for setting in reference.settings_of(kind, name, part):
                values = needed | {setting: reference.example_of(part, setting)}
                try:
                    settings_from(part, values)
                except StillvecError as error:
                    wrong.append(f"{name}:{setting}={values[setting]}: {error}")
    assert wrong == []


def test_every_meaning_belongs_to_a_setting() -> None:
    pytest.importorskip("mkdocs")
    reference = load_reference()
    stale = []
    for kind, _, registry in reference.PARTS.values():
        for name, meanings in reference.MEANINGS.get(kind, {}).items():
            known = reference.settings_of(kind, name, registry[name]) if name in registry else {}
            stale += [f"{kind}.{name}: {setting}" for setting in meanings if setting not in known]
    assert stale == [], "docs/settings.toml describes settings that do not exist"


def test_the_migration_page_has_every_renamed_name() -> None:
    pytest.importorskip("mkdocs")
    text = (ROOT / "docs" / "migration.md").read_text("utf-8")
    for _, _, registry in load_reference().PARTS.values():
        renamed = [registry.renamed, *(getattr(registry[name], "RENAMED", {}) for name in registry)]
        names = {name for table in renamed for pair in table.items() for name in pair}
        assert {name for name in names if f"`{name}`" not in text} == set()


def test_the_site_works_offline(site: Path) -> None:
    assert "var __index = {" in (site / "search" / "search_index.js").read_text("utf-8")
    for page in site.rglob("*.html"):
        text = page.read_text("utf-8")
        assert re.findall(r'<(?:script|img|link|iframe)[^>]+(?:src|href)="(?:https?:)?//[^"]+"', text) == [], page.name
        assert "assets/iframe-worker.js" in text, "search works without a server"
    for sheet in site.rglob("*.css"):
        assert re.findall(r"(?:url\(|@import)\s*[\"']?(?:https?:)?//", sheet.read_text("utf-8")) == [], sheet.name


def test_search_works_from_the_disk_in_a_browser(site: Path, tmp_path: Path) -> None:
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("Chromium is not installed.")
    flags = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--virtual-time-budget=5000",
        "--disable-background-networking",
    ]
    page = f"{(site / 'index.html').as_uri()}?q=retrofit"
    command = [browser, *flags, f"--user-data-dir={tmp_path}", "--dump-dom", page]
    seen = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    assert seen.count('class="md-search-result__item"') > 3
    assert "howto/refine.html" in seen.partition("md-search-result__list")[2]


def test_a_broken_link_stops_the_build(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text("# Home\n\n[away](nowhere.md)\n", "utf-8")
    from mkdocs.exceptions import Abort

    with pytest.raises(Abort, match="1 warning"):
        build_site(tmp_path / "site", docs_dir=str(tmp_path / "docs"), hooks=[], nav=["index.md"])


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_every_public_name_in_python_blocks_exists(page: Path) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```$", page.read_text("utf-8"), re.M | re.S)
    names = {name for block in blocks for name in re.findall(r"(?<!from )\bstillvec\.([A-Za-z]\w*)", block)}
    assert {name for name in names if not hasattr(stillvec, name)} == set()


def extract_commands(page: Path) -> Iterator[list[str]]:
    """The arguments of every `stillvec` command in the code blocks of a page."""
    for block in re.findall(r"^```(?:sh|console)?\n(.*?)^```$", page.read_text("utf-8"), re.M | re.S):
        for line in re.findall(r"^(?:\$ )?(stillvec [a-z].*)$", block, re.M):
            words = shlex.split(line, comments=True)
            yield words[1 : next((place for place, word in enumerate(words) if word in ("|", ">", "&&")), None)]
    if page.name == "commands.md":  # its table is made of commands
        for line in re.findall(r"`(stillvec [a-z][^`]*)`", page.read_text("utf-8")):
            yield shlex.split(line)[1:]


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_every_command_of_a_page_is_valid(page: Path) -> None:
    if page.name == "design.md":
        pytest.skip("The synopsis has brackets.")
    for verb, *rest in extract_commands(page):
        assert verb in VERBS, f"{page.name}: stillvec {verb}"
        parser = CommandParser()
        importlib.import_module(f"stillvec.cli.{verb}_command").arguments(parser)
        try:
            parser.parse_args(rest)
        except SystemExit as end:
            pytest.fail(f"{page.name}: stillvec {verb} {shlex.join(rest)} is rejected ({end.code})")


def test_every_paper_has_its_page_and_its_command() -> None:
    """The 24 papers of RepL4NLP-2020 and the four about distilling; the test above parses the commands."""
    papers = ROOT / "docs" / "papers"
    index = (papers / "index.md").read_text("utf-8")
    linked = dict(re.findall(r"^- \[([^\]]+)\]\(([\w.-]+\.md)\)", index, re.M))
    assert [number for number in map("{:02}".format, range(1, 25)) if number not in linked] == []
    assert len(linked) == 28
    for title, page in linked.items():
        text = (papers / page).read_text("utf-8")
        has_command = any(True for _ in extract_commands(papers / page)) or re.search(
            r"`[^`\n]*(stillvec|--method) ", text
        )
        assert has_command, f"{title}: {page} names no command"
        for heading in ("What the paper claims", "Does it hold?"):
            section = re.search(rf"\n## {re.escape(heading)}\n(.*?)(?=\n## |\Z)", text, re.S)
            assert section, f"{title}: {page} has no section {heading}"
            assert re.search(r"\d", section[1]), f"{title}: {heading} in {page} has no number"
        assert re.search(r"\*\*.+?\*\*", section[1], re.S), f"{title}: {page} has no verdict in bold"
