"""Make the tables of docs/ and README.md: run the commands of docs/tables.toml, write out/tables/NAME.md.

    python recipes/make_tables.py [--only NAME...] [--device cpu|gpu] [--list | --dry-run]

`make tables`, `make tables ONLY="a b"` and `make tables DEVICE=cpu` call it. Commands run in a shell in the root of the
repository, in the order of the list; one that several tables name runs once. A table is what a command prints below the
header that HEADERS of the table's script has for it. After a failure the other tables are still made; the exit code is
then 1. Tables for a GPU are skipped where there is none. Data and teachers are named by the environment (STILLVEC_DATA,
STILLVEC_WORKSHOP, STILLVEC_MPNET, ...); a command whose variable is not set fails and says so.
"""

from __future__ import annotations

import argparse
import ast
import os
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared"
DEVICES = ("cpu", "gpu")


@dataclass
class Runner:
    """Runs each command once and keeps what it printed; None: it failed."""

    folder: Path
    printed: dict[str, str | None] = field(default_factory=dict)

    def make(self, table: Mapping[str, Any]) -> str:
        """Run the commands of a table and write it; return "" or what went wrong."""
        texts = []
        for command in table["commands"]:
            if command not in self.printed:
                self.printed[command] = self._run(command)
            text = self.printed[command]
            if text is None:
                return f"failed: {command}"
            texts.append(text)
        header = read_headers(ROOT / table["script"])[table["name"]]
        found = find_tables("\n".join(texts), header)
        if not found:
            return f"no command printed the header {header}"
        path = self.folder / f"{table['name']}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n\n".join(found) + "\n", encoding="utf-8")
        return ""

    def _run(self, command: str) -> str | None:
        print(f"  $ {command}", flush=True)
        process = subprocess.Popen(
            command, shell=True, cwd=ROOT, env=make_environment(), stdout=subprocess.PIPE, text=True
        )
        assert process.stdout
        lines = []
        for line in process.stdout:
            print(f"    {line}", end="", flush=True)
            lines.append(line)
        return None if process.wait() else "".join(lines)


def make_environment() -> dict[str, str]:
    """With this Python and its scripts first, and the data next to the repository where no other is named."""
    usual = {"STILLVEC_DATA": SHARED / "data", "STILLVEC_WORKSHOP": SHARED / "workshop"}
    found = {name: str(path) for name, path in usual.items() if path.exists()} | {"STILLVEC_MINILM": "minilm"}
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return found | dict(os.environ) | {"PATH": path}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="names of tables")
    parser.add_argument("--device", choices=DEVICES, help="only the tables for this device")
    parser.add_argument("--list", action="store_true", help="list the tables, run nothing")
    parser.add_argument("--dry-run", action="store_true", help="print the commands, run nothing")
    parser.add_argument("--tables", type=Path, default=ROOT / "docs/tables.toml", help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, default=ROOT / "out/tables")
    options = parser.parse_args()
    tables = tomllib.loads(options.tables.read_text("utf-8")).get("table", [])
    unknown = set(options.only or ()) - {table["name"] for table in tables}
    if unknown:
        parser.error(f"--only: no table {', '.join(sorted(unknown))}; --list shows the names")
    tables = [table for table in tables if not options.only or table["name"] in options.only]
    tables = [table for table in tables if options.device in (None, table["device"])]
    if options.list:
        print_list(tables)
        return 0
    if options.dry_run:
        print("\n".join(dict.fromkeys(command for table in tables for command in table["commands"])))
        return 0
    return make_all(tables, options.out)


def make_all(tables: list[Mapping[str, Any]], folder: Path) -> int:
    runner, results = Runner(folder), {}
    for number, table in enumerate(tables, 1):
        name = table["name"]
        print(f"[{number}/{len(tables)}] {name}, about {table['minutes']} min, {table['device']}", flush=True)
        begun = time.perf_counter()
        if table["device"] == "gpu" and not has_gpu():
            results[name] = "skipped: needs a GPU"
        else:
            results[name] = runner.make(table) or f"made in {time.perf_counter() - begun:.0f} s"
        print(f"  {results[name]}", flush=True)
    made, skipped = (sum(r.startswith(word) for r in results.values()) for word in ("made", "skipped"))
    failed = len(results) - made - skipped
    print(f"\n{made} made in {folder}, {skipped} skipped, {failed} failed")
    for name, result in results.items():
        if not result.startswith("made"):
            print(f"  {name}: {result}")
    return 1 if failed else 0


def print_list(tables: Iterable[Mapping[str, Any]]) -> None:
    for table in tables:
        print(f"{table['name']:28} {table['device']}  {table['minutes']:>4} min  {table['page']}")


def has_gpu() -> bool:
    import torch

    return torch.cuda.is_available()


def read_headers(script: Path) -> dict[str, str]:
    """The literal HEADERS of a script, without importing it."""
    for node in ast.parse(script.read_text("utf-8")).body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if any(isinstance(target, ast.Name) and target.id == "HEADERS" for target in targets):
            headers: dict[str, str] = ast.literal_eval(node.value)  # type: ignore[attr-defined]
            return headers
    return {}


def split_row(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def find_tables(text: str, header: str) -> list[str]:
    """The Markdown tables with this header."""
    lines, found = text.splitlines(), []
    for start, line in enumerate(lines):
        if line.startswith("|") and split_row(line) == split_row(header):
            end = next((n for n in range(start, len(lines)) if not lines[n].startswith("|")), len(lines))
            found.append("\n".join(lines[start:end]))
    return found


if __name__ == "__main__":
    sys.exit(main())
