"""What is installed: every module imports, the entry point starts, packaged files are there, each command runs once.

`make test-wheel` runs this on the built wheel.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import json
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import stillvec
from stillvec.cli import VERBS, main

PACKAGE = Path(stillvec.__file__).parent
TEXT = "The house by the sea is old. The dog sleeps in the house. He reads a good book by the sea. " * 5
TRITON = ["stillvec.encoding.triton_segment_sum", "stillvec.learners.triton_logistic_step"]
NO_TRITON = [] if importlib.util.find_spec("triton") else TRITON
NOT_IMPORTED = ["stillvec.__main__", *NO_TRITON]
SERVERS = ("serve", "demo")  # they listen, or take minutes: only their help is asked for


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, model: str) -> Path:
    """A corpus, and vectors distilled from it."""
    folder = tmp_path_factory.mktemp("package")
    (folder / "text.txt").write_text(TEXT, "utf-8")
    (folder / "page.md").write_text("- **Sea**: a large body of salt water\n", "utf-8")
    (folder / "data" / "similarity").mkdir(parents=True)
    pairs = "sea\thouse\t3\ndog\tbook\t1\nthe\tby\t5\nold\tgood\t6\n"
    (folder / "data" / "similarity" / "pairs.tsv").write_text(pairs, "utf-8")
    labelled = "".join(f"{label} the old {word}\n" for label, word in [("a", "sea"), ("b", "house")] * 10)
    (folder / "labels.txt").write_text(labelled, "utf-8")
    recipe = f'[distill]\ncorpus = ["text.txt"]\nteacher = {json.dumps(model)}\nmin_count = 1\nout = "by-recipe"\n'
    (folder / "recipe.toml").write_text(recipe, "utf-8")
    for name in ("vectors", "others"):
        call = ["distill", str(folder / "text.txt"), "--teacher", model, "--method", "aggregate", "--min-count", "1"]
        assert main([*call, "--out", str(folder / name), "--quiet"]) == 0
    return folder


CALLS = {  # IN: the folder
    "distill": "distill IN/text.txt --teacher MODEL --method decontextualized --min-count 1 --out IN/words --quiet",
    "train": "train IN/text.txt --method skipgram:dim=8,epochs=1 --min-count 1 --out IN/trained --quiet",
    "evaluate": "evaluate IN/vectors IN/others --data IN/data --report IN/page.html --quiet",
    "datasets": "datasets",
    "glossary": "glossary IN/page.md --out IN/glossary.tsv",
    "nearest": "nearest IN/vectors sea",
    "encode": "encode IN/vectors IN/text.txt --out IN/texts.npy",
    "index": "index IN/text.txt --vectors IN/vectors --out IN/index --quiet",
    "search": "search --help",  # of an index
    "fit": "fit IN/vectors --on IN/labels.txt --head knn --out IN/head --quiet",
    "predict": "predict --help",  # of a head
    "adapt": "adapt MODEL --step prune:sparsity=0.1 --out IN/adapted",
    "analogy": "analogy IN/vectors sea house dog",
    "refine": "refine IN/vectors --step center --out IN/refined",
    "combine": "combine IN/vectors IN/others --method concat --out IN/combined",
    "analyze": "analyze IN/vectors",
    "explore": "explore IN/vectors --export IN/explore.html",
    "merge": "merge IN/vectors IN/others --out IN/merged",
    "convert": "convert IN/vectors IN/vectors.vec",
    "push": "push --help",
    "info": "info IN/vectors",
    "cache": "cache",
    "run": "run IN/recipe.toml",
    "completion": "completion bash",
    "attention": "attention --help",  # only of a result that was trained for it
}


def test_a_fresh_process_imports_the_package_that_is_under_test() -> None:
    done = subprocess.run([sys.executable, "-c", "import stillvec; print(stillvec.__file__)"], capture_output=True)
    assert Path(done.stdout.decode().strip()).resolve() == Path(stillvec.__file__).resolve()


def test_every_public_name_is_there() -> None:
    assert all(callable(getattr(stillvec, name)) for name in stillvec.__all__)


def test_every_module_imports() -> None:
    for module in pkgutil.walk_packages([str(PACKAGE)], "stillvec."):
        if module.name not in NOT_IMPORTED:
            importlib.import_module(module.name)


def test_the_entry_point_is_the_command_line() -> None:
    (entry,) = [e for e in importlib.metadata.entry_points(group="console_scripts") if e.name == "stillvec"]
    assert entry.load().__module__ in ("stillvec.__main__", "stillvec.cli")  # an older installation
    done = subprocess.run([sys.executable, "-m", "stillvec", "--version"], capture_output=True, text=True)
    assert done.stdout == f"stillvec {stillvec.__version__}\n"


def test_packaged_files_are_there() -> None:
    files = {path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*") if path.is_file()}
    assert {"py.typed", "report/style.css", "exploration/page.html", "exploration/style.css"} <= files
    assert all((PACKAGE / name).stat().st_size for name in files if name.endswith((".js", ".css", ".html")))


@pytest.mark.parametrize("command", VERBS)
def test_each_command_runs(command: str, folder: Path, model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    call = f"{command} --help" if command in SERVERS else CALLS[command]
    try:
        code = main([word.replace("IN/", f"{folder}/").replace("MODEL", model) for word in call.split()])
    except SystemExit as end:  # --help
        code = end.code
    assert code == 0
