"""The worked examples of CONTRIBUTING.md: they pass lint, and the contract tests of their registries."""

from __future__ import annotations

import dataclasses
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "CONTRIBUTING.md"
REGISTRIES = {  # package: registry, contract tests
    "learners": ("stillvec.learners:LEARNERS", "test_learners_contract.py"),
    "baselines": ("stillvec.baselines:BASELINES", "test_baselines_contract.py"),
    "combination": ("stillvec.combination:COMBINERS", "test_combine.py"),
    "refinement": ("stillvec.refinement:STEPS", "test_refine.py"),
    "evaluation": ("stillvec.evaluation:TASKS", ""),
    "formats": ("stillvec.formats:FORMATS", "test_formats_contract.py"),
}

pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="a wheel has no documentation pages")


class Example(NamedTuple):
    package: str
    name: str
    attribute: str
    code: str


def extract_examples() -> list[Example]:
    text = PAGE.read_text("utf-8") if PAGE.exists() else ""
    pattern = r"^<!-- example: (\w+) (\w+) (\w+) -->\n```python\n(.*?)^```$"
    return [Example(*groups) for groups in re.findall(pattern, text, re.M | re.S)]


EXAMPLES = extract_examples()
each_example = pytest.mark.parametrize("example", EXAMPLES, ids=[example.name for example in EXAMPLES])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The examples as modules, and a pytest plugin that registers them."""
    folder = tmp_path_factory.mktemp("examples")
    plugin = []
    for example in EXAMPLES:
        (folder / f"{example.name}.py").write_text(example.code, "utf-8")
        module, _, registry = REGISTRIES[example.package][0].partition(":")
        plugin.append(f"from {module} import {registry}")
        plugin.append(f"{registry}.register({example.name!r}, '{example.name}:{example.attribute}', first=True)")
    (folder / "registered_examples.py").write_text("\n".join(plugin) + "\n", "utf-8")
    return folder


def run(command: Sequence[str], *paths: Path, text: str | None = None) -> str:
    path = os.pathsep.join(map(str, [*paths, ROOT / "src", os.environ.get("PYTHONPATH", "")]))
    environment = os.environ | {"PYTHONPATH": path, "MYPYPATH": path}
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, env=environment, input=text, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def test_there_is_an_example_for_every_registry() -> None:
    assert {example.package for example in EXAMPLES} == set(REGISTRIES)


def test_the_table_of_encoded_has_its_members() -> None:
    from stillvec.encoding import Encoded

    table = PAGE.read_text("utf-8").partition("receives an `Encoded` batch")[2].partition("Pooled states")[0]
    names = re.findall(r"^\| `(\w+)", table, re.M)
    fields = {field.name for field in dataclasses.fields(Encoded)}
    public = {name for name in {*fields, *vars(Encoded)} if not name.startswith(("_", "segment_")) and name != "copier"}
    assert {*names} == public


@each_example
def test_an_example_passes_ruff(example: Example) -> None:
    pytest.importorskip("ruff")
    file = f"src/stillvec/{example.package}/{example.name}.py"
    run(["ruff", "check", "--stdin-filename", file, "-"], text=example.code)
    run(["ruff", "format", "--check", "--stdin-filename", file, "-"], text=example.code)


def test_the_examples_pass_mypy(folder: Path) -> None:
    pytest.importorskip("mypy")
    run(["mypy", "--no-error-summary", *(str(folder / f"{example.name}.py") for example in EXAMPLES)], folder)


def test_the_code_of_the_readme_passes_mypy(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    blocks = re.findall(r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text("utf-8"), re.M | re.S)
    (tmp_path / "readme_example.py").write_text("\n".join(blocks), "utf-8")
    run(["mypy", "--strict", "--no-error-summary", str(tmp_path / "readme_example.py")])


def test_the_examples_pass_the_contract_tests(folder: Path) -> None:
    tests = {package: tests for package, (_, tests) in REGISTRIES.items() if tests}
    names = [example.name for example in EXAMPLES if example.package in tests]
    options = ["-p", "registered_examples", "-p", "no:cacheprovider", "-vv", "-x", "-k", " or ".join(names)]
    output = run(["pytest", *options, *(str(ROOT / "tests" / file) for file in tests.values())], folder)
    for package, file in tests.items():
        passed = [line for line in output.splitlines() if file in line and "PASSED" in line]
        assert passed, f"no contract test of the example of {package} ran"


def test_the_example_of_a_task_scores_vectors(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "triplets").mkdir()
    (tmp_path / "triplets" / "small.tsv").write_text("ice\tsnow\tfire\nfire\tice\tsnow\nice\tquark\tfire\n", "utf-8")
    script = tmp_path / "score.py"
    script.write_text(
        "import sys\n"
        "import registered_examples, stillvec\n"
        "vectors = stillvec.WordVectors(['ice', 'snow', 'fire'], [[1.0, 0.1], [1.0, 0.2], [0.1, 1.0]])\n"
        "score = stillvec.evaluate(vectors, sys.argv[1], tasks=['triplets']).scores[0]\n"
        "assert (score.metric, score.value, score.n_covered, score.n_items) == ('accuracy', 0.5, 2, 3), score\n"
    )
    path = os.pathsep.join(map(str, [folder, ROOT / "src"]))
    command = [sys.executable, str(script), str(tmp_path)]
    done = subprocess.run(command, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
