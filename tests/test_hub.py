"""Vectors on the Hugging Face Hub, against a local server with its API: download, cache, upload, errors."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from fake_hub import TOKEN, FakeHub

import stillvec
from stillvec.cli import main
from stillvec.errors import FormatError, TeacherError, UsageError
from stillvec.formats import read_manifest, read_statistics, save, write_folder
from stillvec.formats.model_card import card
from stillvec.hub import HubAddress, check_card, parse_address
from stillvec.vectors import WordVectors

huggingface_hub = pytest.importorskip("huggingface_hub")
VECTORS = WordVectors(["ice", "snow", "fire", "flame"], np.arange(12, dtype=np.float32).reshape(4, 3) ** 0.5)


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    """A hub of its own, with an empty cache and no token."""
    constants = importlib.import_module("huggingface_hub.constants")
    fake = FakeHub()
    values = {
        "ENDPOINT": fake.address,
        "HUGGINGFACE_CO_URL_TEMPLATE": fake.address + "/{repo_id}/resolve/{revision}/{filename}",
        "HF_HUB_CACHE": str(tmp_path / "hub-cache"),
        "HF_TOKEN_PATH": str(tmp_path / "no-token"),
        "HF_HUB_DISABLE_XET": True,
        "HF_HUB_OFFLINE": False,  # as `conftest.py` sets it
    }
    for name, value in values.items():
        monkeypatch.setattr(constants, name, value)
    monkeypatch.delenv("HF_TOKEN", raising=False)
    with fake.serve():
        yield fake


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A stillvec folder with statistics."""
    path = tmp_path / "vectors"
    write_folder(VECTORS, path, {"method": "aggregate"}, {"states/sum:x": np.zeros((4, 3), np.float32)})
    return path


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("hf://ada/ice", HubAddress("ada/ice")),
        ("hf://ada/ice/", HubAddress("ada/ice")),
        ("hf://ada/ice@v1.0", HubAddress("ada/ice", "v1.0")),
        ("hf://ada/ice@refs%2Fpr%2F1/small/en", HubAddress("ada/ice", "refs/pr/1", "small/en")),
        (Path("hf://ada/ice/small"), HubAddress("ada/ice", None, "small")),
    ],
)
def test_an_address_is_owner_name_revision_and_folder(text: str | Path, address: HubAddress) -> None:
    assert parse_address(text) == address
    assert parse_address(str(address)) == address


@pytest.mark.parametrize(
    "text", ["hf://ice", "hf://", "hf://ada/../x", "hf://ada/ice/../../x", "hf://a b/c", "hf://a/b@"]
)
def test_another_address_is_refused_without_a_request(text: str, hub: FakeHub) -> None:
    with pytest.raises(UsageError) as caught:
        stillvec.load(text)
    assert caught.value.code == "bad-address"
    assert hub.requests == []


def test_vectors_are_downloaded_without_their_statistics(hub: FakeHub, folder: Path) -> None:
    hub.add("ada/ice", files_of(folder) | {"notes.pkl": b"a pickle"})
    vectors = stillvec.load("hf://ada/ice")
    assert vectors.words == VECTORS.words
    assert vectors.matrix.tobytes() == VECTORS.matrix.tobytes()
    assert vectors.provenance["method"] == "aggregate"
    assert not [request for request in hub.requests if "statistics" in request or "pkl" in request]


def test_statistics_are_downloaded_to_merge(hub: FakeHub, folder: Path) -> None:
    hub.add("ada/ice", files_of(folder))
    assert [*read_statistics("hf://ada/ice")] == ["states/sum:x"]


def test_a_second_load_downloads_nothing_and_works_without_network(hub: FakeHub, folder: Path) -> None:
    hub.add("ada/ice", files_of(folder))
    first = stillvec.load("hf://ada/ice")
    hub.requests.clear()
    stillvec.load("hf://ada/ice")
    assert not [request for request in hub.requests if "/resolve/" in request]
    hub.stop()
    begun = time.perf_counter()
    again = stillvec.load("hf://ada/ice")
    assert time.perf_counter() - begun < 5
    assert again.matrix.tobytes() == first.matrix.tobytes()


def test_a_changed_repository_is_downloaded_again(hub: FakeHub, folder: Path) -> None:
    repository = hub.add("ada/ice", files_of(folder))
    old = repository.branches["main"]
    stillvec.load("hf://ada/ice")
    save(VECTORS.with_matrix(-VECTORS.matrix), folder, force=True)
    repository.commit(files_of(folder))
    assert stillvec.load("hf://ada/ice").matrix.min() < 0
    assert stillvec.load(f"hf://ada/ice@{old}").matrix.min() == 0


def test_a_revision_and_a_subfolder(hub: FakeHub, folder: Path) -> None:
    repository = hub.add("ada/all", {"README.md": b"empty"})
    repository.commit({f"small/{name}": content for name, content in files_of(folder).items()}, "refs/pr/1")
    assert stillvec.load("hf://ada/all@refs%2Fpr%2F1/small").words == VECTORS.words


def test_a_file_in_a_repository(hub: FakeHub, tmp_path: Path) -> None:
    save(VECTORS, tmp_path / "v.vec")
    hub.add("ada/texts", {"v.vec": (tmp_path / "v.vec").read_bytes(), "other.vec": b""})
    vectors = stillvec.load("hf://ada/texts/v.vec")
    assert vectors.words == VECTORS.words
    assert vectors.provenance == {"source": "hf://ada/texts/v.vec"}
    assert not [request for request in hub.requests if "other" in request]


@pytest.mark.parametrize("format", ["model2vec", "sentence-transformers", "projector"])
def test_folders_of_other_tools_load_as_they_do_locally(hub: FakeHub, tmp_path: Path, format: str) -> None:
    save(VECTORS, tmp_path / "other", format=format)
    hub.add("minishlab/potion", files_of(tmp_path / "other") | {"onnx/model.onnx": b"x", "pytorch_model.bin": b"x"})
    assert stillvec.load("hf://minishlab/potion").words == VECTORS.words
    assert not [request for request in hub.requests if "onnx" in request or ".bin" in request]


def test_a_contextual_model_is_refused_before_its_weights_are_downloaded(hub: FakeHub) -> None:
    hub.add(
        "google/bert", {"config.json": b'{"model_type": "bert"}', "model.safetensors": b"x", "tokenizer.json": b"{}"}
    )
    with pytest.raises(FormatError) as caught:
        stillvec.load("hf://google/bert")
    assert caught.value.code == "not-found"
    assert not [request for request in hub.requests if "safetensors" in request]


@pytest.mark.parametrize("name", ["../../evil.json", "/etc/evil.json", "a/../../manifest.json", "..\\manifest.json"])
def test_a_file_name_that_leaves_the_folder_is_refused(hub: FakeHub, folder: Path, tmp_path: Path, name: str) -> None:
    hub.add("ada/evil", files_of(folder) | {name: b"{}"})
    before = {*tmp_path.rglob("*")} - {*(tmp_path / "hub-cache").rglob("*")}
    with pytest.raises(FormatError) as caught:
        stillvec.load("hf://ada/evil")
    assert caught.value.code == "outside"
    assert {*tmp_path.rglob("*")} - {*(tmp_path / "hub-cache").rglob("*")} == before
    assert not [request for request in hub.requests if "/resolve/" in request]


def test_a_pickle_on_the_hub_is_not_read(hub: FakeHub) -> None:
    hub.add("ada/kv", {"v.kv": b"\x80\x04\x95gensim.models.keyedvectors."})
    with pytest.raises(FormatError):
        stillvec.load("hf://ada/kv/v.kv")


def test_a_download_that_ends_halfway_is_never_used(
    hub: FakeHub, folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    hub.add("ada/ice", files_of(folder))
    hub.cut.add("vectors.safetensors")
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    with pytest.raises(FormatError):
        stillvec.load("hf://ada/ice")
    assert not [*(tmp_path / "hub-cache").glob("models--ada--ice/snapshots/*/vectors.safetensors")]
    hub.cut.clear()
    assert stillvec.load("hf://ada/ice").matrix.tobytes() == VECTORS.matrix.tobytes()


def _measure_failure(address: str) -> FormatError:
    begun = time.perf_counter()
    with pytest.raises(FormatError) as caught:
        stillvec.load(address)
    assert time.perf_counter() - begun < 5
    assert "\n" not in str(caught.value)
    return caught.value


def test_a_missing_repository_costs_one_request(hub: FakeHub) -> None:
    assert _measure_failure("hf://ada/iec").code == "not-found"
    assert len(hub.requests) == 1


def test_a_private_or_gated_repository_needs_a_token(
    hub: FakeHub, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.add("ada/secret", files_of(folder), private=True)
    hub.add("ada/gated", files_of(folder), gated=True)
    assert "HF_TOKEN" in str(_measure_failure("hf://ada/secret"))
    assert _measure_failure("hf://ada/gated").code == "no-access"
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    assert stillvec.load("hf://ada/secret").words == stillvec.load("hf://ada/gated").words


def test_a_missing_revision(hub: FakeHub, folder: Path) -> None:
    hub.add("ada/ice", files_of(folder))
    assert _measure_failure("hf://ada/ice@v9").code == "not-found"


def test_a_hub_that_fails_is_not_asked_again(hub: FakeHub) -> None:
    hub.broken["/api/models"] = 503
    assert "503" in str(_measure_failure("hf://ada/ice"))
    assert len(hub.requests) == 1


def test_without_network_and_cache(hub: FakeHub) -> None:
    hub.stop()
    assert _measure_failure("hf://ada/ice").code == "no-network"


def test_vectors_come_back_to_the_byte(hub: FakeHub, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    address = stillvec.push_to_hub(folder, "ada/ice", commit_message="The first", private=True)
    assert address == "hf://ada/ice"
    repository = hub.repositories["ada/ice"]
    assert (repository.private, repository.messages) == (True, ["The first"])
    local = {name: content for name, content in files_of(folder).items() if name != "statistics.safetensors"}
    remote = repository.commits[repository.branches["main"]]
    assert {name: content for name, content in remote.items() if name != ".gitattributes"} == local
    assert stillvec.load(address).matrix.tobytes() == VECTORS.matrix.tobytes()
    assert main(["info", address, "--verify"]) == 0


def test_vectors_in_memory_and_a_branch(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    address = VECTORS.push_to_hub("ada/ice", revision="small", license="apache-2.0", language="en")
    assert address == "hf://ada/ice@small"
    assert stillvec.load(address).matrix.tobytes() == VECTORS.matrix.tobytes()
    with pytest.raises(FormatError):
        stillvec.load("hf://ada/ice")
    repository = hub.repositories["ada/ice"]
    text = repository.commits[repository.branches["small"]]["README.md"].decode()
    assert huggingface_hub.ModelCard(text).data.to_dict()["license"] == "apache-2.0"
    assert 'stillvec.load("hf://ada/ice@small")' in text


def test_an_edited_card_is_uploaded_as_it_is(hub: FakeHub, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    (folder / "README.md").write_text("---\nlicense: mit\n---\nMine.\n")
    stillvec.push_to_hub(folder, "ada/ice", statistics=True)
    repository = hub.repositories["ada/ice"]
    files = repository.commits[repository.branches["main"]]
    assert files["README.md"] == b"---\nlicense: mit\n---\nMine.\n"
    assert files["statistics.safetensors"] == (folder / "statistics.safetensors").read_bytes()


def test_an_upload_needs_a_token_a_name_and_rights(hub: FakeHub, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError):
        stillvec.push_to_hub(folder, "ice")
    with pytest.raises(FormatError) as caught:
        stillvec.push_to_hub(folder, "ada/ice")
    assert caught.value.code == "no-access"
    with pytest.raises(FormatError) as caught:
        stillvec.push_to_hub(folder, "ada/ice", token="hf_wrong")
    assert caught.value.code == "no-access"
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    with pytest.raises(FormatError) as caught:
        stillvec.push_to_hub(folder, "bob/ice")
    assert caught.value.code == "no-access"
    hub.stop()
    begun = time.perf_counter()
    with pytest.raises(FormatError) as caught:
        stillvec.push_to_hub(folder, "ada/ice")
    assert caught.value.code == "no-network"
    assert time.perf_counter() - begun < 5


SCORES = [
    {"task": "similarity", "dataset": "simlex999", "metric": "spearman", "value": 0.576, "words": "own"}
    | {"low": 0.2, "high": 0.8, "n_covered": 35, "n_items": 999},
    {"task": "similarity", "dataset": "wordsim353", "metric": "spearman", "value": 0.5, "words": "common"}
    | {"low": 0.2, "high": 0.8, "n_covered": 35, "n_items": 999},
]


def test_a_card_has_the_metadata_of_the_hub(folder: Path) -> None:
    manifest = read_manifest(folder) | {"teacher": "minilm"}
    metadata = {"license": "apache-2.0", "language": ["en"], "datasets": ["wikitext"]}
    facts = huggingface_hub.ModelCard(card(manifest, SCORES, metadata), ignore_metadata_errors=False).data
    assert facts.library_name == "stillvec"
    assert facts.pipeline_tag == "feature-extraction"
    assert facts.base_model == ["sentence-transformers/all-MiniLM-L6-v2"]
    assert (facts.license, facts.language, facts.datasets) == ("apache-2.0", ["en"], ["wikitext"])
    (result,) = facts.eval_results
    assert (result.task_type, result.dataset_name, result.metric_type) == ("similarity", "simlex999", "spearman")
    assert result.metric_value == 0.576
    assert check_card(card(manifest, SCORES, metadata))["tags"][0] == "word-embeddings"


def test_a_card_that_the_hub_would_refuse_is_refused_before_the_upload(
    hub: FakeHub, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    (folder / "README.md").write_text("---\n- a list\n---\n")
    with pytest.raises(FormatError):
        stillvec.push_to_hub(folder, "ada/ice")
    assert hub.requests == []


def _run(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "stillvec", *words]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment})


def test_commands_take_addresses(
    hub: FakeHub, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    monkeypatch.chdir(tmp_path)
    assert main(["push", "vectors", "ada/ice", "--license", "mit", "--language", "en", "--dataset", "wikitext"]) == 0
    (tmp_path / "similarity").mkdir()
    (tmp_path / "similarity" / "few.tsv").write_text("ice\tsnow\t9\nice\tfire\t1\nfire\tflame\t8\nsnow\tflame\t2\n")
    address = "hf://ada/ice"
    calls: list[list[str]] = [
        ["nearest", address, "ice"],
        ["analogy", address, "ice", "snow", "fire"],
        ["info", address],
        ["info", address, "--card"],
        ["convert", address, "out.vec"],
        ["refine", address, "--step", "center", "--out", "refined"],
        ["combine", address, "refined", "--method", "average", "--out", "combined"],
        [
            "evaluate",
            address,
            "refined",
            "--data",
            str(tmp_path),
            "--tasks",
            "similarity",
            "--quiet",
            "--json",
            "s.json",
        ],
        ["analyze", address],
        ["explore", address, "--export", "page.html"],
        ["run", "recipe.toml"],
    ]
    (tmp_path / "recipe.toml").write_text(f'[[refine]]\nin = "{address}"\nsteps = ["normalize"]\nout = "unit"\n')
    for call in calls:
        assert main(call) == 0, call
    printed = capsys.readouterr()
    assert "Traceback" not in printed.out + printed.err
    assert json.loads((tmp_path / "s.json").read_text())[0]["vectors"] == "ice"
    assert (tmp_path / "out.vec").is_file()


def test_the_command_line_says_one_sentence(hub: FakeHub, tmp_path: Path) -> None:
    environment = {"HF_ENDPOINT": hub.address, "HF_HOME": str(tmp_path / "home"), "HF_HUB_OFFLINE": "0"}
    done = _run("nearest", "hf://ada/iec", "ice", **environment)
    assert (done.returncode, done.stdout) == (1, "")
    assert len(done.stderr.splitlines()) == 1
    assert "hf://ada/iec" in done.stderr


def test_a_typo_in_a_teacher_costs_one_request(hub: FakeHub) -> None:
    from stillvec.teachers import load_teacher

    begun = time.perf_counter()
    with pytest.raises(TeacherError) as caught:
        load_teacher("sentence-transformers/all-MinLM")
    assert caught.value.code == "not-found"
    assert len(hub.requests) == 1
    with pytest.raises(TeacherError, match=r"^sentence-transformers/all-MinLM: "):
        load_teacher("hf://sentence-transformers/all-MinLM")
    with pytest.raises(TeacherError) as caught:
        load_teacher("minlm")
    assert "'minilm'" in str(caught.value)
    hub.stop()
    with pytest.raises(TeacherError) as caught:
        load_teacher("sentence-transformers/all-MinLM")
    assert time.perf_counter() - begun < 10
    assert "\n" not in str(caught.value)


def test_without_network_a_teacher_is_looked_for_only_in_the_cache(
    hub: FakeHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    from stillvec.teachers import load_teacher

    transformers = pytest.importorskip("transformers")
    calls: list[bool] = []

    def from_pretrained(name: str, *, local_files_only: bool, **options: object) -> object:
        calls.append(local_files_only)
        raise OSError("not there")

    monkeypatch.setattr(transformers.AutoTokenizer, "from_pretrained", from_pretrained)
    hub.add("ada/tiny", {"config.json": b"{}"})
    for _ in range(2):
        with pytest.raises(TeacherError):
            load_teacher("ada/tiny", device="cpu")
        hub.stop()
    assert calls == [False, True]


@pytest.mark.slow
def test_a_teacher_is_downloaded_once_and_then_loads_without_network(hub: FakeHub, model: str, tmp_path: Path) -> None:
    hub.add("ada/tiny", files_of(Path(model)))
    environment = {"HF_ENDPOINT": hub.address, "HF_HOME": str(tmp_path / "home"), "HF_HUB_OFFLINE": "0"}
    begun = time.perf_counter()
    first = _run("info", "ada/tiny", "--json", **environment)
    online = time.perf_counter() - begun
    assert first.returncode == 0, first.stderr
    hub.stop()
    begun = time.perf_counter()
    assert _run("info", "ada/tiny", "--json", **environment).stdout == first.stdout
    assert time.perf_counter() - begun < 2 * online + 15  # it retries no request; a busy machine slows both
