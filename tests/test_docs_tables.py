"""Every table of measurements in docs/ and README.md has an entry in docs/tables.toml, whose commands print it.

An entry is [[table]] (page, name, script, commands, device, minutes; `tables = N` where a page has N tables with this
header), or [[other]] (page, header, command, reason) for what `make tables` does not make, such as benchmarks.
"""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[1]
RUNNER = ROOT / "recipes" / "make_tables.py"
LIST = ROOT / "docs" / "tables.toml"
PAPERS = ROOT / "docs" / "papers"
KEYS = {"page", "name", "script", "commands", "device", "minutes"}
DECIMAL = re.compile(r"(?<![\w.])\d+\.\d+(?!\.?\w)")
FILE = re.compile(r"(?:recipes|benchmarks)/[\w.-]+\.(?:py|toml)")

if not RUNNER.exists():
    pytest.skip("a wheel has no recipes", allow_module_level=True)


def load_script(path: Path) -> ModuleType:
    """A script as a module, without its folder on the path for other tests."""
    spec = importlib.util.spec_from_file_location(f"recipes_{path.stem}", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


make_tables = load_script(RUNNER)
find_tables, split_row = make_tables.find_tables, make_tables.split_row
read_headers = cache(make_tables.read_headers)

CONTENT: dict[str, Any] = tomllib.loads(LIST.read_text("utf-8"))
TABLES: list[dict[str, Any]] = CONTENT.get("table", [])
OTHER: list[dict[str, Any]] = CONTENT.get("other", [])


class Table(NamedTuple):
    page: str
    header: str
    section: str  # the text from the heading above to the next of the same level, level 3 and below counting as none
    body: list[str]


def read_tables(page: Path) -> Iterator[Table]:
    """The Markdown tables outside code blocks."""
    name = str(page.relative_to(ROOT))
    text = re.sub(
        r"^( *)```.*?^\1```$", lambda code: code[0].replace("\n|", "\n:"), page.read_text("utf-8"), flags=re.M | re.S
    )
    for section in re.split(r"^(?=##? )", text, flags=re.M):
        for header, body in re.findall(r"^(\|.*)\n\|[-|: ]+\n((?:\|.*(?:\n|\Z))+)", section, re.M):
            yield Table(name, normalize(header), section, body.splitlines())


def normalize(header: str) -> str:
    return "| " + " | ".join(split_row(header)) + " |"


def has_measurements(table: Table) -> bool:
    """Whether the body has two or more decimal numbers; code such as `rate=0.1` does not count."""
    return len(DECIMAL.findall(re.sub("`[^`]*`", "", "\n".join(table.body)))) >= 2


def find_header(entry: dict[str, Any]) -> str:
    if "header" in entry:
        return normalize(entry["header"])
    return normalize(read_headers(ROOT / entry["script"]).get(entry["name"], ""))


PAGES = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md"]
FOUND = [table for page in PAGES for table in read_tables(page)]


def label(entry: dict[str, Any]) -> str:
    return str(entry.get("name") or f"{entry.get('page')}: {entry.get('header')}")


@pytest.mark.parametrize("entry", TABLES, ids=label)
def test_an_entry_is_complete(entry: dict[str, Any]) -> None:
    assert KEYS <= set(entry) <= KEYS | {"tables"}, (
        f"docs/tables.toml, {label(entry)}: expected the keys {sorted(KEYS)}"
    )
    assert entry["device"] in ("cpu", "gpu")
    assert entry["minutes"] > 0
    assert entry["commands"], f"docs/tables.toml, {entry['name']}: add the commands that print the table"
    assert re.fullmatch("[a-z0-9-]+", entry["name"])
    named = {entry["script"], *FILE.findall(" ".join(entry["commands"]))}
    assert {name for name in named if not (ROOT / name).is_file()} == set(), "files that do not exist"
    assert any(entry["script"] in command for command in entry["commands"]), (
        f"docs/tables.toml, {entry['name']}: add the command that runs {entry['script']} and prints the table"
    )
    assert entry["name"] in read_headers(ROOT / entry["script"]), (
        f'{entry["script"]}: add HEADERS = {{"{entry["name"]}": "| ... |"}}, a literal at the top level, '
        f"with the header of the table in {entry['page']}"
    )


def test_names_of_tables_are_unique() -> None:
    assert [name for name, count in Counter(entry["name"] for entry in TABLES).items() if count > 1] == []


def test_commands_have_no_ellipsis() -> None:
    commands = [command for entry in TABLES for command in entry["commands"]]
    assert [command for command in commands if "…" in command or "..." in command] == []


@pytest.mark.parametrize("entry", OTHER, ids=label)
def test_an_exception_has_a_command_and_a_reason(entry: dict[str, Any]) -> None:
    assert set(entry) - {"tables"} == {"page", "header", "command", "reason"}
    assert len(entry["reason"]) > 10
    assert {name for name in FILE.findall(entry["command"]) if not (ROOT / name).is_file()} == set()


@pytest.mark.parametrize("entry", [*TABLES, *OTHER], ids=label)
def test_the_page_of_an_entry_has_the_table(entry: dict[str, Any]) -> None:
    header = find_header(entry)
    here = [table.header for table in FOUND if table.page == entry["page"]]
    assert header in here, (
        f"{entry['page']} has no table with the header that {entry.get('script', 'docs/tables.toml')} has for it, "
        f"{header}: correct one of them, or remove the entry from docs/tables.toml. Headers on the page:\n"
        + "\n".join(here)
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_table_of_measurements_has_an_entry(page: Path) -> None:
    name = str(page.relative_to(ROOT))
    wanted = Counter(table.header for table in FOUND if table.page == name and has_measurements(table))
    listed: Counter[str] = Counter()
    for entry in [*TABLES, *OTHER]:
        if entry["page"] == name:
            listed[find_header(entry)] += entry.get("tables", 1)
    missing = wanted - listed
    assert not missing, (
        f"{name} has tables of measurements that docs/tables.toml does not list. For each add\n"
        f'[[table]]\npage = "{name}"\nname = "a-unique-name"\nscript = "recipes/x.py"  # with this header in HEADERS\n'
        'commands = ["python recipes/x.py ..."]\ndevice = "cpu"\nminutes = 3\n'
        "The headers:\n" + "\n".join(missing.elements())
    )


@pytest.mark.parametrize("entry", [*TABLES, *OTHER], ids=label)
def test_the_section_of_a_table_names_its_command(entry: dict[str, Any]) -> None:
    commands = [*entry.get("commands", []), entry.get("command", "")]
    named = [*FILE.findall(" ".join(commands)), *([entry["script"]] if "script" in entry else [entry["command"]])]
    named += [f"make tables ONLY={entry['name']}"] if "name" in entry else []
    sections = [table.section for table in FOUND if (table.page, table.header) == (entry["page"], find_header(entry))]
    assert any(name in section for section in sections for name in named), (
        f"{entry['page']}: name the command in the section of the table, such as {named[-1]}"
    )


def test_tables_are_recognized(tmp_path: Path) -> None:
    assert has_measurements(Table("", "", "", ["| a | 1.0 |", "| b | -2.5 [1, 2] |"]))
    assert not has_measurements(Table("", "", "", ["| a | 1 |", "| `rate=0.1` | 0.10.0 | 2.5", "| v1.2 |"]))
    assert find_tables("x\n| a |b|\n|---|---|\n| 1 | 2 |\ny\n", "| a | b |") == ["| a |b|\n|---|---|\n| 1 | 2 |"]


def run_list(folder: Path, *arguments: str, list_text: str) -> subprocess.CompletedProcess[str]:
    (folder / "tables.toml").write_text(list_text, "utf-8")
    call = [sys.executable, RUNNER, "--tables", folder / "tables.toml", "--out", folder / "made", *arguments]
    return subprocess.run(call, capture_output=True, text=True, timeout=60)


def write_list(folder: Path) -> str:
    """Three tables: good and twin share a command that prints their header, bad fails first."""
    (folder / "script.py").write_text('HEADERS = {"good": "| a | b |", "twin": "| a | b |", "bad": "| c |"}\n', "utf-8")
    show = f"echo run >> {folder}/runs; printf '| a | b |\\\\n|---|---|\\\\n| 1 | 2 |\\\\n'"
    commands = {"bad": "exit 3", "good": show, "twin": show}
    entries = (
        f'[[table]]\npage = "p"\nname = "{name}"\nscript = "{folder}/script.py"\n'
        f'commands = ["{command}"]\ndevice = "cpu"\nminutes = 1\n'
        for name, command in commands.items()
    )
    return "\n".join(entries)


def test_the_runner_goes_on_after_a_failure_and_runs_a_command_once(tmp_path: Path) -> None:
    done = run_list(tmp_path, list_text=write_list(tmp_path))
    assert done.returncode == 1, done.stderr
    assert all(part in done.stdout for part in ("2 made", "1 failed", "bad: failed: exit 3"))
    assert (tmp_path / "made/good.md").read_text("utf-8") == "| a | b |\n|---|---|\n| 1 | 2 |\n"
    assert {path.name for path in (tmp_path / "made").iterdir()} == {"good.md", "twin.md"}
    assert (tmp_path / "runs").read_text("utf-8") == "run\n"


def test_the_runner_fails_where_no_command_prints_the_header(tmp_path: Path) -> None:
    text = write_list(tmp_path).replace("exit 3", "echo nothing")
    done = run_list(tmp_path, "--only", "bad", list_text=text)
    assert done.returncode == 1
    assert "| c |" in done.stdout


def test_the_runner_selects_lists_and_only_prints(tmp_path: Path) -> None:
    text = write_list(tmp_path)
    assert run_list(tmp_path, "--only", "twin", list_text=text).returncode == 0
    assert not (tmp_path / "made/good.md").exists()
    listed = run_list(tmp_path, "--list", list_text=text)
    assert [line.split()[0] for line in listed.stdout.splitlines()] == ["bad", "good", "twin"]
    printed = run_list(tmp_path, "--dry-run", list_text=text)
    assert len(printed.stdout.splitlines()) == 2
    wrong = run_list(tmp_path, "--only", "none", list_text=text)
    assert wrong.returncode == 2
    assert "none" in wrong.stderr


def test_tables_for_a_gpu_are_skipped_where_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(make_tables, "has_gpu", lambda: False)
    table = {"name": "x", "script": "recipes/tables.py", "commands": ["exit 1"], "device": "gpu", "minutes": 1}
    assert make_tables.make_all([table], tmp_path) == 0
    assert "1 skipped" in capsys.readouterr().out


def test_scores_are_printed_below_the_header(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(RUNNER.parent))
    tables = load_script(RUNNER.with_name("tables.py"))

    def write(name: str, **values: float) -> Path:
        scores = [
            {"task": "similarity", "dataset": dataset, "metric": "spearman", "words": "own", "value": value}
            | {"low": value - 0.1, "high": value + 0.1}
            for dataset, value in values.items()
        ]
        (tmp_path / name).write_text(json.dumps([{"vectors": "v", "scores": scores}]), "utf-8")
        return tmp_path / name

    one, two = write("one.json", ws353=0.5, men3000=0.7), write("two.json", ws353=0.8)
    monkeypatch.setitem(tables.HEADERS, "x", "| vectors | 8 | dev | held out | WS [95%] | RG |")
    tables.print_table("x", [f"A={one}:v", f"B={two}:v", f"C={two}:other"])
    assert capsys.readouterr().out.splitlines() == [
        "| vectors | 8 | dev | held out | WS [95%] | RG |",
        "|---|---|---|---|---|---|",
        "| B | 80.0 | 80.0 | – | 80.0 [70.0, 90.0] | – |",
        "| A | 60.0 | 50.0 | 70.0 | 50.0 [40.0, 60.0] | – |",
    ]
    monkeypatch.setitem(tables.HEADERS, "x", "| vectors | A WS | B WS |")
    tables.print_table("x", [f"A={one}", f"B={two}"])
    assert capsys.readouterr().out.splitlines()[2] == "| v | 50.0 | 80.0 |"


def test_methods_that_share_a_forward_pass_keep_their_settings_in_their_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(RUNNER.parent))
    table = load_script(RUNNER.with_name("table.py"))

    def distill(call: list[str]) -> dict[str, float]:
        for name in ("whitened_window", "whitened_window-2"):  # as `stillvec distill` names them
            (tmp_path / "together" / name).mkdir(parents=True)
        return {"seconds": 1}

    monkeypatch.setattr(table, "_run", distill)
    methods = ["whitened_window", "whitened_window:context_weight=0"]
    options = {"only": methods, "out": tmp_path, "corpus": [], "teacher": "t", "contexts": "5", "precision": "fp32"}
    table._make_together(SimpleNamespace(**options))
    assert {path.name for path in tmp_path.glob("whitened*") if path.is_dir()} == {
        "whitened_window",
        "whitened_window-context_weight-0",
    }


def test_papers_are_all_linked_and_all_links_exist() -> None:
    index = (PAPERS / "index.md").read_text("utf-8")
    linked = set(re.findall(r"\]\(([\w.-]+\.md)\)", index))
    pages = {page.name for page in PAPERS.glob("*.md")} - {"index.md"}
    assert pages - linked == set(), "add a link to these pages in docs/papers/index.md"
    assert linked - pages == set(), "docs/papers/index.md links to pages that do not exist"
    nav = (ROOT / "mkdocs.yml").read_text("utf-8")
    assert {page for page in pages if f"papers/{page}" not in nav} == set(), "add these pages to nav in mkdocs.yml"
