"""A package imports only from layers below its own, and names keep the conventions; the layers are listed here."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import stillvec

LAYERS = (  # from the top down, as in docs/design.md
    ("cli", "integrations"),
    ("verbs",),
    ("distributed", "service", "exploration", "plotting"),
    ("pipeline", "analysis", "report", "search", "adaptation"),
    ("learners", "baselines", "evaluation"),
    ("heads",),
    ("training", "result"),
    ("formats",),
    ("encoding", "refinement", "combination"),
    ("teachers", "statistics", "lexicons"),
    ("corpus", "vectors"),
    ("gensim_names", "row_search", "sense_table", "text_means"),
    ("vocabulary", "subwords", "arrow_stream", "hub"),
    ("registry", "files", "notebook", "numerics", "memory"),
    ("notation", "progress", "input_checks"),
    ("errors",),
)
HEIGHT = {package: height for height, layer in enumerate(reversed(LAYERS)) for package in layer}
BANNED_MODULES = {"utils", "helpers", "common", "core", "base"}
TORCH_PACKAGES = {"teachers", "encoding", "training", "learners", "baselines", "heads", "evaluation", "distributed"}
TORCH_PACKAGES |= {"adaptation"}
PRINTING_PACKAGES = {"cli"}
PICKLERS = {"pickle", "cPickle", "_pickle", "cloudpickle", "dill", "joblib", "marshal", "shelve"}
PACKAGE = Path(stillvec.__file__).parent

Complaints = Iterator[str]


def complaints(root: Path) -> list[str]:
    """Everything in the source tree `root` that breaks the layers, one sentence each, with its file and line."""
    found: list[str] = []
    for path in sorted(root.rglob("*.py")):
        place = path.relative_to(root)
        package = "" if place.name in {"__init__.py", "__main__.py"} and len(place.parts) == 1 else _package(place)
        if package and package not in HEIGHT and package not in BANNED_MODULES:
            found.append(f"{place}: package {package!r} is in no layer.")
        found += [f"{place}: no module is named {part!r}." for part in _names(place) & BANNED_MODULES]
        tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
        inside = (root.name, *place.with_suffix("").parts)
        for node in ast.walk(tree):
            for check in CHECKS:
                sentences = check(node, package, inside)
                found += [f"{place}:{getattr(node, 'lineno', 0)}: {sentence}" for sentence in sentences]
    return found


def _package(place: Path) -> str:
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
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith(f"{inside[0]}."):
        # "stillvec.learners.aggregate:Aggregate" in a registry, f"stillvec.cli.{verb}" before its first brace
        return [node.value] if re.fullmatch(rf"{inside[0]}\.\w+(\.\w+)*(\.|:\w+)?", node.value) else []
    return []


def _called(func: ast.expr) -> str:
    return func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")


def looks_up(node: ast.AST, package: str, inside: tuple[str, ...]) -> Complaints:
    for name in imported(node, inside) if package else []:
        top, *rest = re.split(r"[.:]", name)
        if top != inside[0] or rest == ["__version__"]:
            continue
        target = rest[0] if rest else ""
        if target not in HEIGHT and not isinstance(node, ast.Constant):
            yield f"{package} imports {name!r} from the top level; import it from its package."
        elif target in HEIGHT and target != package and HEIGHT[target] >= HEIGHT.get(package, -1):
            yield f"{package} imports {target}, which is not in a layer below it."


def holds_torch(node: ast.AST, package: str, inside: tuple[str, ...]) -> Complaints:
    if package not in TORCH_PACKAGES and any(name.split(".")[0] == "torch" for name in imported(node, inside)):
        yield f"torch is imported; only {', '.join(sorted(TORCH_PACKAGES))} may."


def prints(node: ast.AST, package: str, inside: tuple[str, ...]) -> Complaints:
    called = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    if called and package not in PRINTING_PACKAGES:
        yield "print is called; only cli prints."


def unpickles(node: ast.AST, package: str, inside: tuple[str, ...]) -> Complaints:
    for name in imported(node, inside):
        if name.split(".")[0] in PICKLERS or name == "torch.load":
            yield f"{name} is imported; nothing is ever unpickled."
    if not isinstance(node, ast.Call):
        return
    called = _called(node.func)
    if called == "read_pickle" or (called == "load" and ast.unparse(node.func) == "torch.load"):
        yield f"{ast.unparse(node.func)} unpickles; read safetensors."
    if any(k.arg == "allow_pickle" and ast.unparse(k.value) != "False" for k in node.keywords):
        yield "allow_pickle is given; nothing is ever unpickled."


CHECKS: tuple[Callable[[ast.AST, str, tuple[str, ...]], Complaints], ...] = (
    looks_up,
    holds_torch,
    prints,
    unpickles,
)


def test_every_package_imports_only_downwards() -> None:
    assert complaints(PACKAGE) == []


def test_the_package_under_test_has_packages_to_check() -> None:
    here = {_package(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.py")}
    assert {"cli", "vocabulary", "vectors", "registry", "files", "errors"} <= here


VALID = {
    "pipeline/run.py": "from stillvec.learners.auto import Auto\nfrom stillvec import __version__",
    "learners/auto.py": "import torch\nfrom stillvec.encoding import encode\nfrom .other import Other",
    "learners/__init__.py": "LEARNERS = {'auto': 'stillvec.learners.auto:Auto'}",
    "cli/demo_command.py": "print('hello')",
    "formats/npy.py": "import numpy as np\nrows = np.load('x', allow_pickle=False)",
    "__init__.py": "from stillvec.pipeline import distill",
}
INVALID = {
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
    "a package of the same layer": ("corpus/text.py", "import stillvec.vectors", "imports vectors"),
    "a relative import": ("teachers/a.py", "from ..encoding import encode", "imports encoding"),
    "a relative import of a package": ("teachers/__init__.py", "from .. import encoding", "imports encoding"),
    "an import by its name": (
        "files.py",
        "import importlib\nimportlib.import_module('stillvec.cli')",
        "imports cli",
    ),
    "a registry of a package above": ("refinement/a.py", "X = {'a': 'stillvec.learners.a:A'}", "imports learners"),
    "a composed name": ("pipeline/a.py", "def f(verb):\n    return f'stillvec.cli.{verb}'", "imports cli"),
    "an import from the top level": ("pipeline/a.py", "from stillvec import WordVectors", "from the top level"),
    "a package in no layer": ("attic/a.py", "", "package 'attic' is in no layer"),
    "a banned module": ("utils.py", "", "no module is named 'utils'"),
    "a banned module inside a package": ("learners/helpers.py", "", "no module is named 'helpers'"),
    "torch where it is not allowed": ("statistics/a.py", "from torch import nn", "torch is imported"),
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


PARTICIPLES = (
    "told drawn found held kept made heard laid met begun shown known taken given left written sent built chosen "
)
PARTICIPLES += "said seen gone done lost torn spelt learnt taught thrown brought bought"
NO_PARTICIPLES = "seed need feed embed speed shed bleed exceed proceed succeed"
NO_GERUNDS = "string ring bring spring padding encoding embedding whitening setting training sampling"
COUNTED = ("words", "sentences", "rows", "pieces", "tokens")
PROPERTIES = ("property", "cached_property", "setter")
# FILE:NAME of what may stay: the template `UsageError.expected(...)`, and fields that are keys of JSON output.
EXCEPTIONS = {"errors.py:expected", "analysis/space_geometry.py:words", "service/schemas.py:words"}


def name_complaints(package: Path) -> list[str]:
    """Names that break the conventions of CONTRIBUTING.md, one sentence each, with the file."""
    sentences: list[str] = []
    modules: dict[str, list[str]] = {}
    classes: dict[str, list[str]] = {}
    for path in sorted(package.rglob("*.py")):
        place = path.relative_to(package)
        if place.stem != "__main__" and place != Path("__init__.py"):
            name = place.parent.name if place.stem == "__init__" else place.stem
            modules.setdefault(name, []).append(str(place))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                classes.setdefault(node.name, []).append(str(place))
            sentences += [f"{place}: {sentence}" for sentence in _name_sentences(node)]
    for kind, places in (("module", modules), ("class", classes)):
        sentences += [
            f"{where[-1]}: {kind} {name} is also in {where[0]}." for name, where in places.items() if where[1:]
        ]
    return sentences


def _name_sentences(node: ast.AST) -> Complaints:
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        yield from _count_sentence(node.target.id, node.annotation)
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return
    for argument in (*node.args.args, *node.args.kwonlyargs):
        yield from _count_sentence(argument.arg, argument.annotation)
    decorators = {ast.unparse(decorator).rpartition(".")[2] for decorator in node.decorator_list}
    first = node.name.lstrip("_").partition("_")[0]
    if node.name.startswith("__") or decorators & {*PROPERTIES}:
        return
    if first in PARTICIPLES.split() or (first.endswith("ed") and first not in NO_PARTICIPLES.split()):
        yield f"function {node.name} is named by a participle; use a verb in the imperative."
    elif first.endswith("ing") and first not in NO_GERUNDS.split():
        yield f"function {node.name} is named by a gerund; use a verb in the imperative."


def _count_sentence(name: str, annotation: ast.expr | None) -> Complaints:
    if name in COUNTED and annotation is not None and ast.unparse(annotation) == "int":
        yield f"count {name} is an int; name it n_{name}."


def _key(sentence: str) -> str:
    """`FILE:NAME`, as `EXCEPTIONS` lists it."""
    place, _, rest = sentence.partition(": ")
    return f"{place}:{rest.split()[1]}"


def test_names_keep_the_conventions() -> None:
    sentences = name_complaints(PACKAGE)
    assert [sentence for sentence in sentences if _key(sentence) not in EXCEPTIONS] == []


BAD_NAMES = {
    "a module twice": ({"corpus/plan.py": "", "pipeline/plan.py": ""}, "module plan is also in"),
    "a module named as a package": ({"corpus/__init__.py": "", "cli/corpus.py": ""}, "module corpus is also in"),
    "a class twice": ({"a.py": "class Step: ...", "b.py": "class Step: ..."}, "class Step is also in a.py"),
    "a participle": ({"a.py": "def _drawn_from(x): ..."}, "function _drawn_from is named by a participle"),
    "a regular participle": ({"a.py": "def joined(x): ..."}, "function joined is named by a participle"),
    "a gerund": ({"a.py": "class A:\n    def reading(self): ..."}, "function reading is named by a gerund"),
    "a count": ({"a.py": "def f(words: int): ..."}, "name it n_words"),
    "a counting field": ({"a.py": "class A:\n    rows: int = 0"}, "name it n_rows"),
}


@pytest.mark.parametrize("case", BAD_NAMES)
def test_a_bad_name_is_one_sentence(case: str, tmp_path: Path) -> None:
    files, sentence = BAD_NAMES[case]
    (complaint,) = name_complaints(_build(tmp_path, files))
    assert sentence in complaint


def test_good_names_get_no_complaint(tmp_path: Path) -> None:
    source = "class _Step:\n    n_rows: int\n    @property\n    def kept(self): ...\ndef embed(words: list[str]): ..."
    assert name_complaints(_build(tmp_path, {"a.py": source, "b.py": source})) == []


def test_public_signatures_have_no_open_keywords() -> None:
    calls: dict[str, object] = {}
    for name in stillvec.__all__:
        item = getattr(stillvec, name)
        calls[name] = item
        if inspect.isclass(item):
            methods = inspect.getmembers(item, inspect.isfunction)
            calls |= {f"{name}.{key}": value for key, value in methods if key in vars(item) and key[0] != "_"}
    kinds = inspect.Parameter
    bad = [
        f"{name}(**{parameter.name})"
        for name, call in calls.items()
        if not (inspect.isclass(call) and issubclass(call, Exception))
        for parameter in inspect.signature(call).parameters.values()  # type: ignore[arg-type]
        if parameter.kind is kinds.VAR_KEYWORD
    ]
    assert [name for name in bad if name not in EXCEPTIONS] == []


def _build(folder: Path, files: dict[str, str]) -> Path:
    package = folder / "stillvec"
    for name, source in files.items():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(source, encoding="utf-8")
    return package


def test_valid_imports_get_no_complaint(tmp_path: Path) -> None:
    assert complaints(_build(tmp_path, VALID)) == []


@pytest.mark.parametrize("case", INVALID)
def test_an_invalid_import_is_named_with_its_file(case: str, tmp_path: Path) -> None:
    name, source, sentence = INVALID[case]
    (complaint,) = complaints(_build(tmp_path, VALID | {name: source}))
    assert complaint.startswith(name)
    assert sentence in complaint
