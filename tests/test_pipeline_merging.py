"""Parts of a corpus distilled apart and merged, or one added to the other, are the whole."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file
from tiny_corpus import likeness, sentences
from tiny_teachers import write_tiny_model

from stillvec.cli import main
from stillvec.formats import load, read_manifest, read_statistics

TEXTS = [*sentences(240), "A lonely lighthouse keeper whistles."]  # the last part has words of its own
PARTS = {"one": TEXTS[:70], "two": TEXTS[70:150], "three": TEXTS[150:]}
CLOSE = {"additive": 0.9, "auto": 0.98}  # correlation of all inner products


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The texts, whole and in parts, and two teachers."""
    folder = tmp_path_factory.mktemp("merging")
    write_tiny_model(folder / "teacher", "bert")
    write_tiny_model(folder / "other-teacher", "bert", seed=1)
    for name, texts in {"whole": TEXTS, **PARTS}.items():
        (folder / f"{name}.txt").write_text("\n".join(texts), "utf-8")
    return folder


@pytest.fixture
def distil(directory: Path, tmp_path: Path) -> Callable[..., Path]:
    def call(name: str, *arguments: str, to: str | None = None, code: int = 0) -> Path:
        out = tmp_path / (to or name)
        words = [
            "distill",
            str(directory / f"{name}.txt"),
            "--teacher",
            str(directory / "teacher"),
            "--out",
            str(out),
            "--quiet",
        ]
        words += ["--method", "aggregate", "--min-count", "1", "--contexts", "all", *arguments]
        assert main(words) == code
        return out

    return call


def same(one: Path, other: Path, tolerance: float = 1e-4) -> bool:
    """The same words with the same counts in the same order, and vectors that are close."""
    a, b = load(one), load(other)
    wanted = likeness(np.array(b.matrix))
    return a.vocabulary == b.vocabulary and bool(
        np.allclose(likeness(np.array(a.matrix)), wanted, atol=tolerance * np.abs(wanted).max())
    )


@pytest.mark.parametrize(
    "method", ["aggregate", "aggregate:contexts=max", "whitened_context", "whitened_window:dim=12"]
)
def test_parts_merge_into_the_whole_in_any_order(method: str, distil: Callable[..., Path], tmp_path: Path) -> None:
    whole = distil("whole", "--method", method)
    parts = [distil(name, "--method", method) for name in PARTS]
    assert not same(parts[0], whole)
    for order in permutations(parts):
        assert main(["merge", *map(str, order), "--out", str(tmp_path / "merged"), "--force"]) == 0
        assert same(tmp_path / "merged", whole)


OLD = "whitened_context:ridge=0.1,pool=tokens,prior=0,directions=0"  # the defaults of earlier versions


def make_old(folder: Path) -> Path:
    """Write the manifest as earlier versions wrote it."""
    manifest = read_manifest(folder)
    manifest["settings"] = {name: manifest["settings"][name] for name in ("layer", "power", "ridge")}
    manifest["distillation"]["method"] = "whitened_context"
    (folder / "manifest.json").write_text(json.dumps(manifest), "utf-8")
    return folder


def test_results_of_earlier_versions_are_merged_and_added_to_with_their_settings(
    distil: Callable[..., Path], tmp_path: Path
) -> None:
    whole = distil("whole", "--method", OLD)
    assert not same(whole, distil("whole", "--method", "whitened_context", to="today"))
    parts = [str(make_old(distil(name, "--method", OLD))) for name in PARTS]
    assert main(["merge", *parts, "--out", str(tmp_path / "merged")]) == 0
    assert same(tmp_path / "merged", whole)
    added = distil("two", "--add-to", parts[0], "--method", "whitened_context", to="added")
    assert main(["merge", *parts[:2], "--out", str(tmp_path / "merged"), "--force"]) == 0
    assert same(added, tmp_path / "merged")


def test_merging_two_and_then_the_third_is_the_same(distil: Callable[..., Path], tmp_path: Path) -> None:
    whole = distil("whole")
    one, two, three = (str(distil(name)) for name in PARTS)
    assert main(["merge", one, three, "--out", str(tmp_path / "pair")]) == 0
    assert main(["merge", str(tmp_path / "pair"), two, "--out", str(tmp_path / "merged")]) == 0
    assert same(tmp_path / "merged", whole)


@pytest.mark.parametrize("method", ["additive", "auto", "decontextualized", "token_table"])
def test_every_method_merges_closely(method: str, distil: Callable[..., Path], tmp_path: Path) -> None:
    """`additive` weighs words by their frequency in each part, which differs from the whole's in parts this small."""
    whole = distil("whole", "--method", method)
    parts = [str(distil(name, "--method", method)) for name in PARTS]
    assert main(["merge", *parts, "--out", str(tmp_path / "merged")]) == 0
    merged, wanted = load(tmp_path / "merged"), load(whole)
    assert merged.vocabulary == wanted.vocabulary
    a, b = likeness(np.array(merged.matrix)), likeness(np.array(wanted.matrix))
    assert np.corrcoef(a.ravel(), b.ravel())[0, 1] > CLOSE.get(method, 0.99999)


def test_an_included_word_that_one_part_lacks_is_as_in_the_whole(distil: Callable[..., Path], tmp_path: Path) -> None:
    """Where it is lacking it is read alone; what is read alone gives way to contexts."""
    keep = tmp_path / "keep.txt"
    keep.write_text("lighthouse\nwalrus\n", "utf-8")
    whole = distil("whole", "--include-words", str(keep))
    parts = [str(distil(name, "--include-words", str(keep))) for name in PARTS]
    for order in (parts, parts[::-1]):
        assert main(["merge", *order, "--out", str(tmp_path / "merged"), "--force"]) == 0
        assert same(tmp_path / "merged", whole)
    added = distil("three", "--add-to", str(distil("two", "--include-words", str(keep))), to="added")
    plain = distil("two", to="plain-two")
    assert main(["merge", str(plain), parts[2], "--out", str(tmp_path / "merged"), "--force"]) == 0
    assert np.allclose(load(added)["lighthouse"], load(tmp_path / "merged")["lighthouse"], atol=1e-4)


WITHOUT_TORCH = """
import sys
class NoTorch:
    def find_spec(self, name, *rest):
        if name == "torch":
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, NoTorch())
from stillvec.cli import main
sys.exit(main(sys.argv[1:]))
"""
FINISHED_IN_NUMPY = [
    "aggregate",
    "decontextualized",
    "token_table",
    "whitened_context",
    "whitened_window",
    "additive",
    "auto",
]


@pytest.mark.parametrize("method", FINISHED_IN_NUMPY)
def test_merging_needs_no_torch(method: str, distil: Callable[..., Path], tmp_path: Path) -> None:
    parts = [str(distil(name, "--method", method)) for name in ("one", "two")]
    assert main(["merge", *parts, "--out", str(tmp_path / "with")]) == 0
    command = [sys.executable, "-c", WITHOUT_TORCH, "merge", *parts, "--out", str(tmp_path / "without")]
    completed = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert completed.returncode == 0, completed.stderr
    assert same(tmp_path / "without", tmp_path / "with")


def test_a_merged_result_says_what_it_is_of(distil: Callable[..., Path], tmp_path: Path) -> None:
    parts = [distil(name) for name in PARTS]
    assert main(["merge", *map(str, parts), "--out", str(tmp_path / "merged")]) == 0
    manifest, each = read_manifest(tmp_path / "merged"), [read_manifest(part) for part in parts]
    assert manifest["merged"] == ["one", "two", "three"]
    assert manifest["method"] == "aggregate"
    assert manifest["corpus"]["words"] == sum(one["corpus"]["words"] for one in each)
    assert [part["digest"] for part in manifest["corpus"]["parts"]] == [one["corpus"]["digest"] for one in each]
    assert manifest["read"]["sentences"] == len(TEXTS)
    assert manifest["teacher"] == each[0]["teacher"]


def test_adding_a_corpus_equals_distilling_both_at_once(distil: Callable[..., Path]) -> None:
    first = distil("one")
    second = distil("two", "--add-to", str(first), to="second")
    third = distil("three", "--add-to", str(second), to="third")
    assert same(third, distil("whole"))


@pytest.mark.parametrize(
    "method", ["auto", "additive", "whitened_context", "whitened_window", "decontextualized", "token_table"]
)
def test_adding_works_for_every_method_and_is_close(method: str, distil: Callable[..., Path]) -> None:
    first = distil("one", "--method", method)
    for name in ("two", "three"):
        first = distil(name, "--method", method, "--add-to", str(first), to=f"with-{name}")
    whole = load(distil("whole", "--method", method))
    added = load(first)
    assert added.vocabulary == whole.vocabulary
    assert np.isfinite(added.matrix).all()
    a, b = likeness(np.array(added.matrix)), likeness(np.array(whole.matrix))
    assert np.corrcoef(a.ravel(), b.ravel())[0, 1] > CLOSE.get(method, 0.99999)


def test_a_result_is_not_added_to_in_its_own_place(distil: Callable[..., Path], capsys: Any) -> None:
    place = distil("one", to="here")
    before = (place / "manifest.json").read_bytes()
    distil("two", "--add-to", str(place), "--force", to="here", code=2)
    assert "also an input" in capsys.readouterr().err
    assert (place / "manifest.json").read_bytes() == before
    two = distil("two", "--add-to", str(place), to="there")
    assert same(distil("three", "--add-to", str(two), to="all"), distil("whole"))


def test_what_was_added_to_is_in_the_manifest(distil: Callable[..., Path]) -> None:
    first = distil("one")
    manifest = read_manifest(distil("two", "--add-to", str(first), to="second"))
    assert manifest["added_to"]["name"] == "one"
    assert manifest["added_to"]["corpus"]["digest"] == read_manifest(first)["corpus"]["digest"]
    assert manifest["corpus"]["sources"] == ["two.txt"]


def test_words_that_are_known_already_are_not_read_in_templates_again(distil: Callable[..., Path]) -> None:
    first = distil("one", "--method", "decontextualized")
    second = distil("three", "--method", "decontextualized", "--add-to", str(first), to="second")
    new = set(load(second).words) - set(load(first).words)
    assert "lighthouse" in new
    assert read_manifest(second)["read"]["pieces"] < read_manifest(first)["read"]["pieces"]
    times = read_statistics(second)["template-0/sum:contexts"]
    assert set(times.tolist()) == {1}


REFUSED = {
    "another method": (["--method", "additive"], "aggregate"),
    "a setting": (["--method", "aggregate:pieces=first"], "pieces"),
    "a layer": (["--layer", "1"], "layer"),
    "two methods": (["--method", "aggregate,additive"], "one method"),
}


@pytest.mark.parametrize("case", [*REFUSED])
def test_only_like_is_added_to_like(
    case: str, distil: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = distil("one")
    capsys.readouterr()
    arguments, named = REFUSED[case]
    distil("two", *arguments, "--add-to", str(first), to="second", code=2)
    stderr = capsys.readouterr().err
    assert stderr.startswith("stillvec: ")
    assert stderr.count("\n") == 1
    assert named in stderr
    assert not (tmp_path / "second").exists()


def test_the_sentence_about_another_method_names_both(
    distil: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    first = distil("one")
    distil("two", "--method", "additive", "--add-to", str(first), to="second", code=2)
    message = capsys.readouterr().err
    assert "'aggregate'" in message
    assert "'additive'" in message


def test_another_teacher_is_refused(
    distil: Callable[..., Path], directory: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = distil("one")
    other = distil("two", "--teacher", str(directory / "other-teacher"), to="other")
    distil("two", "--teacher", str(directory / "other-teacher"), "--add-to", str(first), to="second", code=2)
    assert main(["merge", str(first), str(other), "--out", str(tmp_path / "merged")]) == 2
    stderr = capsys.readouterr().err.splitlines()
    assert len(stderr) == 2
    assert all(line.startswith("stillvec: ") and "teacher" in line for line in stderr)
    assert not (tmp_path / "merged").exists()


def test_what_does_not_merge_is_refused_in_one_line(
    distil: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, bare = distil("one"), distil("two", "--no-statistics")
    additive = distil("two", "--method", "additive", to="additive")
    first = distil("two", "--method", "aggregate:pieces=first", to="first")
    converted = tmp_path / "converted"
    assert main(["convert", str(one), str(converted), "--format", "stillvec"]) == 0
    capsys.readouterr()
    cases = {
        "no statistics": (bare, "statistics"),
        "another method": (additive, "method"),
        "another setting": (first, "settings"),
        "a folder of vectors that were not distilled": (converted, "statistics"),
        "nothing": (tmp_path / "nowhere", "nowhere"),
    }
    for case, (other, named) in cases.items():
        assert main(["merge", str(one), str(other), "--out", str(tmp_path / "merged")]) in (1, 2), case
        stderr = capsys.readouterr().err
        assert stderr.startswith("stillvec: "), case
        assert stderr.count("\n") == 1, case
        assert named in stderr, case
    assert main(["merge", str(one), "--out", str(tmp_path / "merged")]) in (1, 2)
    assert "at least two" in capsys.readouterr().err
    assert not (tmp_path / "merged").exists()


def test_merging_into_a_folder_of_other_things_is_refused(
    distil: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, two = distil("one"), distil("two")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("x", "utf-8")
    assert main(["merge", str(one), str(two), "--out", str(tmp_path / "mine")]) == 2
    assert "contains other files" in capsys.readouterr().err


def test_a_manifest_that_lacks_what_merging_needs_is_refused_in_one_line(
    distil: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, two = distil("one"), distil("two")
    capsys.readouterr()
    for key in ("method", "settings", "teacher", "distillation"):
        broken = tmp_path / "broken"
        shutil.rmtree(broken, ignore_errors=True)
        shutil.copytree(two, broken)
        content = json.loads((broken / "manifest.json").read_text("utf-8"))
        del content[key]
        (broken / "manifest.json").write_text(json.dumps(content), "utf-8")
        for folders in ((one, broken), (broken, one)):
            assert main(["merge", *map(str, folders), "--out", str(tmp_path / "merged")]) == 1, key
            assert key in capsys.readouterr().err


def _write_old_names(folder: Path) -> None:
    """Rename the array keys and step names of a folder to those of earlier versions."""
    arrays = {name: np.array(array) for name, array in read_statistics(folder).items()}
    assert any("/ragged:" in name for name in arrays)
    save_file(
        {name.replace("/ragged:", "/bag:"): array for name, array in arrays.items()}, folder / "statistics.safetensors"
    )
    text = (folder / "manifest.json").read_text("utf-8")
    manifest = json.loads(text) | {"refined": [{"step": "unit", "settings": {}}]}
    (folder / "manifest.json").write_text(json.dumps(manifest), "utf-8")


@pytest.mark.filterwarnings("ignore::stillvec.errors.DeprecatedName")
def test_folders_of_earlier_versions_load_merge_grow_and_refine(distil: Callable[..., Path], tmp_path: Path) -> None:
    one, two = (distil(name, "--method", "additive") for name in ("one", "two"))
    assert main(["merge", str(one), str(two), "--out", str(tmp_path / "new")]) == 0
    plain = tmp_path / "plain"
    shutil.copytree(one, plain)
    _write_old_names(one)
    assert len(load(one)) == len(load(plain))
    assert main(["refine", str(plain), "--like", str(one), "--out", str(tmp_path / "refined")]) == 0
    assert np.allclose(np.linalg.norm(load(tmp_path / "refined").matrix, axis=1), 1, atol=1e-5)
    assert main(["merge", str(one), str(two), "--out", str(tmp_path / "old-and-new")]) == 0
    assert same(tmp_path / "old-and-new", tmp_path / "new")
    grown = [
        distil("two", "--method", "additive", "--add-to", str(folder), to=folder.name + "-grown")
        for folder in (one, plain)
    ]
    assert same(*grown)
