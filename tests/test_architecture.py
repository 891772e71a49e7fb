"""A room imports only from shelves below its own; the plan of the house is drawn here once."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import stillvec

SHELVES = (  # from the top down, as in docs/design.md
    ("cli",),
    ("verbs",),
    ("distributed", "service", "exploration", "integrations", "plotting"),
    ("pipeline", "analysis", "report"),
    ("learners", "baselines", "evaluation"),
    ("training", "result"),
    ("encoding", "refinement", "combination", "formats"),
    ("teachers", "statistics", "lexicons"),
    ("corpus", "vectors"),
    ("vocabulary", "subwords"),
    ("registry", "files", "notebook", "numerics"),
    ("notation", "progress"),
    ("errors",),
)
HEIGHT = {room: height for height, shelf in enumerate(reversed(SHELVES)) for room in shelf}
SHEDS = {"utils", "helpers", "common", "core", "base"}
TORCH_ROOMS = {"teachers", "encoding", "training", "learners", "baselines", "evaluation", "distributed"}
PRINTING_ROOMS = {"cli"}
PICKLERS = {"pickle", "cPickle", "_pickle", "cloudpickle", "dill", "joblib", "marshal", "shelve"}
PACKAGE = Path(stillvec.__file__).parent

Complaints = Iterator[str]


def complaints(package: Path) -> list[str]:
    """Everything in the source tree `package` that breaks the plan, one sentence each, with its place."""
    found: list[str] = []
    for path in sorted(package.rglob("*.py")):
        place = path.relative_to(package)
        room = "" if place.name in {"__init__.py", "__main__.py"} and len(place.parts) == 1 else _room(place)
        if room and room not in HEIGHT and room not in SHEDS:
            found.append(f"{place}: there is no room {room!r} on the plan.")
        found += [f"{place}: no module is named {part!r}." for part in _names(place) & SHEDS]
        tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
        inside = (package.name, *place.with_suffix("").parts)
        for node in ast.walk(tree):
            for check in CHECKS:
                where = f"{place}:{getattr(node, 'lineno', 0)}"
                found += [f"{where}: {sentence}" for sentence in check(node, room, inside)]
    return found


def _room(place: Path) -> str:
    return place.parts[0].removesuffix(".py")


def _names(place: Path) -> set[str]:
    return {part.removesuffix(".py") for part in place.parts}


def imported(node: ast.AST, inside: tuple[str, ...]) -> list[str]:
    """The dotted names a node imports, be it by statement or by a string that names one of our modules."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        folder = inside[: len(inside) - node.level] if node.level else ()
        module = ".".join([*folder, *([node.module] if node.module else [])])
        return [f"{module}.{alias.name}" for alias in node.names]
    if isinstance(node, ast.Call) and _called(node.func) in {"import_module", "require", "__import__"}:
        names = [str(arg.value) for arg in node.args[:1] if isinstance(arg, ast.Constant)]
        return [name for name in names if not name.startswith(f"{inside[0]}.")]  # those are met as strings
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        # "stillvec.learners.aggregate:Aggregate" in a registry, f"stillvec.cli.{verb}" before its first brace
        return [node.value] if re.fullmatch(rf"{inside[0]}\.\w+(\.\w+)*(\.|:\w+)?", node.value) else []
    return []


def _called(func: ast.expr) -> str:
    return func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")


def looks_up(node: ast.AST, room: str, inside: tuple[str, ...]) -> Complaints:
    for name in imported(node, inside) if room else []:
        package, *rest = re.split(r"[.:]", name)
        if package != inside[0] or rest == ["__version__"]:
            continue
        target = rest[0] if rest else ""
        if target not in HEIGHT and not isinstance(node, ast.Constant):
            yield f"{room} goes through the front door for {name!r}; import it from its room."
        elif target in HEIGHT and target != room and HEIGHT[target] >= HEIGHT.get(room, -1):
            yield f"{room} imports {target}, which is not on a shelf below it."


def holds_torch(node: ast.AST, room: str, inside: tuple[str, ...]) -> Complaints:
    if room not in TORCH_ROOMS and any(name.split(".")[0] == "torch" for name in imported(node, inside)):
        yield f"torch is imported, and it lives in {', '.join(sorted(TORCH_ROOMS))} only."


def prints(node: ast.AST, room: str, inside: tuple[str, ...]) -> Complaints:
    called = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    if called and room not in PRINTING_ROOMS:
        yield "print is called, and only cli prints."


def unpickles(node: ast.AST, room: str, inside: tuple[str, ...]) -> Complaints:
    for name in imported(node, inside):
        if name.split(".")[0] in PICKLERS or name == "torch.load":
            yield f"{name} is imported; nothing is ever unpickled."
    if not isinstance(node, ast.Call):
        return
    if ast.unparse(node.func) == "torch.load" or _called(node.func) == "read_pickle":
        yield f"{ast.unparse(node.func)} unpickles; read safetensors."
    if any(k.arg == "allow_pickle" and ast.unparse(k.value) != "False" for k in node.keywords):
        yield "allow_pickle is given; nothing is ever unpickled."


CHECKS: tuple[Callable[[ast.AST, str, tuple[str, ...]], Complaints], ...] = (
    looks_up,
    holds_torch,
    prints,
    unpickles,
)


def test_every_room_of_the_house_keeps_the_plan() -> None:
    assert complaints(PACKAGE) == []


def test_the_package_under_test_has_rooms_to_examine() -> None:
    here = {_room(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.py")}
    assert {"cli", "vocabulary", "vectors", "registry", "files", "errors"} <= here


LAWFUL = {
    "pipeline/run.py": "from stillvec.learners.auto import Auto\nfrom stillvec import __version__",
    "learners/auto.py": "import torch\nfrom stillvec.encoding import encode\nfrom .other import Other",
    "learners/__init__.py": "LEARNERS = {'auto': 'stillvec.learners.auto:Auto'}",
    "cli/demo_command.py": "print('hello')",
    "formats/npy.py": "import numpy as np\nrows = np.load('x', allow_pickle=False)",
    "__init__.py": "from stillvec.pipeline import distill",
}
UNLAWFUL = {
    "an import that looks up": ("corpus/text.py", "from stillvec.pipeline import run", "imports pipeline"),
    "an import inside a function": (
        "vectors.py",
        "def f():\n    from stillvec.formats import load",
        "imports formats",
    ),
    "an import for type checkers": (
        "corpus/text.py",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import stillvec.learners.auto",
        "imports learners",
    ),
    "a neighbour on the same shelf": ("corpus/text.py", "import stillvec.vectors", "imports vectors"),
    "a relative import": ("teachers/a.py", "from ..encoding import encode", "imports encoding"),
    "a relative import of a room": ("teachers/__init__.py", "from .. import encoding", "imports encoding"),
    "an import by its name": (
        "files.py",
        "import importlib\nimportlib.import_module('stillvec.cli')",
        "imports cli",
    ),
    "a registry of a room above": ("refinement/a.py", "X = {'a': 'stillvec.learners.a:A'}", "imports learners"),
    "a composed name": ("pipeline/a.py", "def f(verb):\n    return f'stillvec.cli.{verb}'", "imports cli"),
    "the front door": ("pipeline/a.py", "from stillvec import WordVectors", "goes through the front door"),
    "a room that is not planned": ("attic/a.py", "", "there is no room 'attic' on the plan"),
    "a shed": ("utils.py", "", "no module is named 'utils'"),
    "a shed inside a room": ("learners/helpers.py", "", "no module is named 'helpers'"),
    "torch where it does not live": ("statistics/a.py", "from torch import nn", "torch is imported"),
    "torch asked for by name": ("refinement/a.py", "torch = require('torch', 'distill', 'x')", "torch is impo"),
    "a print": ("learners/a.py", "print('hello')", "only cli prints"),
    "pickle": ("formats/a.py", "def f():\n    import pickle", "pickle is imported"),
    "torch.load": ("teachers/a.py", "import torch\nx = torch.load('x')", "torch.load unpickles"),
    "an unpickling numpy": (
        "formats/a.py",
        "import numpy\nx = numpy.load('x', allow_pickle=True)",
        "allow_pickle is given",
    ),
}


def _build(folder: Path, files: dict[str, str]) -> Path:
    package = folder / "stillvec"
    for name, source in files.items():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(source, encoding="utf-8")
    return package


def test_a_lawful_house_gets_no_complaint(tmp_path: Path) -> None:
    assert complaints(_build(tmp_path, LAWFUL)) == []


@pytest.mark.parametrize("case", UNLAWFUL)
def test_what_breaks_the_plan_is_named_with_its_place(case: str, tmp_path: Path) -> None:
    name, source, sentence = UNLAWFUL[case]
    (complaint,) = complaints(_build(tmp_path, LAWFUL | {name: source}))
    assert complaint.startswith(name)
    assert sentence in complaint
