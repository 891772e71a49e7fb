"""Steps of adapt: the contract of every step, pruning, outputs, and the comparison of teachers."""

from __future__ import annotations

import dataclasses
import json
import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from tiny_teachers import FAMILIES, write_tiny_model

import stillvec
from stillvec.adaptation import ADAPTATIONS, AdaptationResources
from stillvec.adaptation.model_folder import list_files, make_layout
from stillvec.adaptation.weight_pruning import WeightPruning
from stillvec.analysis import compare_teachers
from stillvec.cli import main
from stillvec.errors import AlreadyFinished, TeacherError, UsageError
from stillvec.progress import drain
from stillvec.registry import create, settings_from
from stillvec.teachers import load_teacher

SMALL: dict[str, str] = {  # small forms of steps
    "pretrain": "pretrain:text={folder}/text.txt,epochs=0.5,length=16,batch=8,rate=1e-3",
    "prune": "prune:sparsity=0.5",
    "tune": "tune:on={folder}/classification/x.txt,epochs=1,length=16,batch=8,rate=1e-3",
}
TEXTS = ["the house stands by the sea", "the dog sleeps in the sun", "he reads a good book about old houses"]


def write_text(path: Path) -> Path:
    path.write_text("\n".join(TEXTS * 60), "utf-8")
    return path


def make_teacher(folder: Path, family: str = "bert") -> Path:
    write_tiny_model(folder, family)
    return folder


@pytest.fixture
def teacher(tmp_path: Path) -> Path:
    return make_teacher(tmp_path / "teacher")


@pytest.fixture(params=[*ADAPTATIONS])
def step(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    write_text(tmp_path / "text.txt")
    (tmp_path / "classification").mkdir()
    lines = [f"{number % 2} {text}" for number, text in enumerate(TEXTS * 6)]
    (tmp_path / "classification/x.txt").write_text("\n".join(lines), "utf-8")
    return create(ADAPTATIONS, SMALL[request.param].format(folder=tmp_path))


def read_weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model.safetensors")


def prune(teacher: Path, out: Path, settings: str) -> dict[str, torch.Tensor]:
    stillvec.adapt(str(teacher), f"prune:{settings}", out=out)
    return read_weights(out)


# the contract of every step


def test_a_step_writes_a_teacher_that_can_be_distilled(step: Any, teacher: Path, tmp_path: Path) -> None:
    stillvec.adapt(teacher, step, out=tmp_path / "out", device="cpu")
    adapted = load_teacher(str(tmp_path / "out"))
    vectors = stillvec.distill(TEXTS, teacher=str(tmp_path / "out"), method="aggregate", min_count=1)
    assert adapted.digest != load_teacher(str(teacher)).digest
    assert vectors.provenance["teacher"]["digest"] == adapted.digest
    assert np.isfinite(vectors.matrix).all()


def test_a_step_gives_the_same_bytes_twice_and_leaves_its_input(step: Any, teacher: Path, tmp_path: Path) -> None:
    before = {name: (teacher / name).read_bytes() for name in list_files(teacher)}
    for name in ("one", "two"):
        stillvec.adapt(teacher, step, out=tmp_path / name, device="cpu")
    assert (tmp_path / "one/model.safetensors").read_bytes() == (tmp_path / "two/model.safetensors").read_bytes()
    assert {name: (teacher / name).read_bytes() for name in list_files(teacher)} == before


def test_settings_of_a_step_come_back_from_the_manifest(step: Any, teacher: Path, tmp_path: Path) -> None:
    stillvec.adapt(teacher, step, out=tmp_path / "out")
    manifest = json.loads((tmp_path / "out/adaptation.json").read_bytes())
    (stored,) = manifest["adapted"]
    assert settings_from(ADAPTATIONS[stored["step"]], stored["settings"]) == step
    assert manifest["teacher"]["name"] == str(teacher)
    assert {*manifest["checksums"]} == {*list_files(tmp_path / "out")}


def test_fields_of_a_step_have_defaults_or_are_required_by_name(step: Any) -> None:
    assert dataclasses.fields(step)
    assert step.SUMMARY


# pruning


@pytest.mark.parametrize("family", [*FAMILIES])
def test_half_of_every_matrix_and_nothing_else_becomes_zero(family: str, tmp_path: Path) -> None:
    teacher = make_teacher(tmp_path / "teacher", family)
    after, before = prune(teacher, tmp_path / "out", "sparsity=0.5"), read_weights(teacher)
    pruned = json.loads((tmp_path / "out/adaptation.json").read_bytes())["pruned"]
    assert {*after} == {*before}
    for name, tensor in after.items():
        if name in pruned:
            zeros = tensor == 0
            assert tensor.ndim == 2
            assert int(zeros.sum()) == round(0.5 * tensor.numel())
            assert float(before[name][zeros].abs().max()) <= float(before[name][~zeros].abs().min())  # the smallest
            assert torch.equal(tensor[~zeros], before[name][~zeros])
        else:
            assert torch.equal(tensor, before[name])
    assert not [name for name in pruned if "position" in name or "norm" in name.lower() or "relative" in name]
    load_teacher(str(tmp_path / "out"))


def test_word_embeddings_are_pruned_unless_asked_otherwise(teacher: Path, tmp_path: Path) -> None:
    words = "embeddings.word_embeddings.weight"
    assert float((prune(teacher, tmp_path / "all", "sparsity=0.5")[words] == 0).float().mean()) == 0.5
    kept = prune(teacher, tmp_path / "kept", "sparsity=0.5,embeddings=false")
    assert torch.equal(kept[words], read_weights(teacher)[words])


def test_sparsity_zero_gives_the_same_bytes_of_weights(teacher: Path, tmp_path: Path) -> None:
    for scope in ("matrix", "row", "global"):
        after = prune(teacher, tmp_path / scope, f"sparsity=0,scope={scope}")
        for name, tensor in read_weights(teacher).items():
            assert tensor.numpy().tobytes() == after[name].numpy().tobytes(), name
    assert load_teacher(str(tmp_path / "row")).digest == load_teacher(str(teacher)).digest


def test_one_threshold_for_all_matrices_differs_from_one_for_each(teacher: Path, tmp_path: Path) -> None:
    before = read_weights(teacher)
    each = prune(teacher, tmp_path / "each", "sparsity=0.4")
    together = prune(teacher, tmp_path / "together", "sparsity=0.4,scope=global")
    names = json.loads((tmp_path / "each/adaptation.json").read_bytes())["pruned"]
    sizes = np.sort(np.concatenate([before[name].abs().numpy().ravel() for name in names]))
    edge = sizes[round(0.4 * len(sizes)) - 1]
    for name in names:
        assert torch.equal(together[name] == 0, before[name].abs() <= edge)
    assert any(not torch.equal(each[name], together[name]) for name in names)


def test_rows_have_the_same_number_of_zeros(teacher: Path, tmp_path: Path) -> None:
    after = prune(teacher, tmp_path / "out", "sparsity=0.25,scope=row")
    words = after["embeddings.word_embeddings.weight"]
    assert {*(words == 0).sum(1).tolist()} == {round(0.25 * words.shape[1])}


def test_random_pruning_depends_on_the_seed_only(teacher: Path, tmp_path: Path) -> None:
    words = "embeddings.word_embeddings.weight"
    one, two = (prune(teacher, tmp_path / f"{seed}", f"sparsity=0.5,by=chance,seed={seed}")[words] for seed in (1, 2))
    again = prune(teacher, tmp_path / "again", "sparsity=0.5,by=chance,seed=1")[words]
    assert torch.equal(one, again)
    assert not torch.equal(one, two)
    assert int((one == 0).sum()) == round(one.numel() / 2)


@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_a_gaussian_matrix_keeps_the_cosine_that_theory_gives(share: float) -> None:
    """The closed forms for a Gaussian matrix: √(1-(s-2tφ(t))) with t = Φ⁻¹((1+s)/2), and √(1-s) at random."""
    from scipy.stats import norm

    matrix = torch.from_numpy(np.random.default_rng(0).normal(size=(4000, 300)).astype(np.float32))
    edge = norm.ppf((1 + share) / 2)
    expected = {"magnitude": math.sqrt(1 - (share - 2 * edge * norm.pdf(edge))), "chance": math.sqrt(1 - share)}
    for by, cosine in expected.items():
        pruned = WeightPruning(share, by=by)._prune("matrix", matrix, None)  # type: ignore[arg-type]
        assert abs(float(torch.cosine_similarity(matrix, pruned).mean()) - cosine) < 0.005


@pytest.mark.parametrize("wrong", ["sparsity=1.5", "sparsity=-0.1", "scope=head", "zeros=maybe"])
def test_wrong_settings_are_refused(wrong: str, teacher: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        stillvec.adapt(teacher, f"prune:{wrong}", out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_information_deletion_frees_the_zeros(teacher: Path, tmp_path: Path) -> None:
    kept = prune(teacher, tmp_path / "kept", "sparsity=0.5")
    freed = prune(teacher, tmp_path / "freed", "sparsity=0.5,zeros=free")
    assert all(torch.equal(kept[name], freed[name]) for name in kept)
    pruned = [json.loads((tmp_path / name / "adaptation.json").read_bytes())["pruned"] for name in ("kept", "freed")]
    assert pruned[0]
    assert pruned[1] == []


# outputs


def test_a_chain_of_steps_is_the_steps_one_by_one(teacher: Path, tmp_path: Path) -> None:
    stillvec.adapt(teacher, "prune:sparsity=0.3", "prune:sparsity=0.6,by=chance", out=tmp_path / "chain")
    stillvec.adapt(teacher, "prune:sparsity=0.3", out=tmp_path / "first")
    stillvec.adapt(tmp_path / "first", "prune:sparsity=0.6,by=chance", out=tmp_path / "second")
    assert (tmp_path / "chain/model.safetensors").read_bytes() == (tmp_path / "second/model.safetensors").read_bytes()
    manifests = [json.loads((tmp_path / name / "adaptation.json").read_bytes()) for name in ("chain", "second")]
    assert [step["settings"] for step in manifests[0]["adapted"]] == [
        step["settings"] for step in manifests[1]["adapted"]
    ]
    assert manifests[0]["teacher"] == manifests[1]["teacher"]


def test_the_same_call_is_already_finished_and_another_is_refused(teacher: Path, tmp_path: Path) -> None:
    out = stillvec.adapt(teacher, "prune:sparsity=0.3", out=tmp_path / "out")
    written = (out / "model.safetensors").stat().st_mtime_ns
    (tmp_path / "out.checkpoint").mkdir()  # as a run leaves it that is killed after it has written
    with pytest.warns(AlreadyFinished):
        stillvec.adapt(teacher, "prune:sparsity=0.3", out=out, resume=True)
    assert not (tmp_path / "out.checkpoint").exists()
    assert (out / "model.safetensors").stat().st_mtime_ns == written
    with pytest.raises(UsageError) as caught:
        stillvec.adapt(teacher, "prune:sparsity=0.4", out=out)
    assert caught.value.code == "exists"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stillvec.adapt(teacher, "prune:sparsity=0.4", out=out, force=True)
    assert (tmp_path / "out/model.safetensors").stat().st_mtime_ns != written


def test_other_files_in_a_folder_stay(teacher: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "notes.txt").write_text("mine")
    with pytest.raises(UsageError):
        stillvec.adapt(teacher, "prune", out=out)
    stillvec.adapt(teacher, "prune", out=out, force=True)
    assert (out / "notes.txt").read_text() == "mine"
    assert load_teacher(str(out)).depth == 2


def test_a_failed_step_leaves_nothing(teacher: Path, tmp_path: Path) -> None:
    (teacher / "model.safetensors").write_bytes(b"no weights")
    with pytest.raises(TeacherError):
        stillvec.adapt(teacher, "prune", out=tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["teacher"]


def test_the_output_must_not_be_the_teacher(teacher: Path) -> None:
    with pytest.raises(UsageError) as caught:
        stillvec.adapt(teacher, "prune", out=teacher, force=True)
    assert caught.value.code == "own-input"


def test_a_teacher_without_safetensors_is_refused(teacher: Path, tmp_path: Path) -> None:
    (teacher / "model.safetensors").unlink()
    with pytest.raises(TeacherError):
        stillvec.adapt(teacher, "prune", out=tmp_path / "out")


def test_adapt_without_a_step_is_refused(teacher: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="step"):
        stillvec.adapt(teacher, out=tmp_path / "out")
    with pytest.raises(UsageError, match="prune"):
        stillvec.adapt(teacher, "prone", out=tmp_path / "out")


def test_weights_in_several_files_and_other_number_types_are_kept(teacher: Path, tmp_path: Path) -> None:
    from transformers import AutoModel

    model = AutoModel.from_pretrained(teacher).half()
    for file in teacher.glob("*.safetensors"):
        file.unlink()
    model.save_pretrained(teacher, max_shard_size="5KB")
    assert len([*teacher.glob("*.safetensors")]) > 1
    stillvec.adapt(teacher, "prune:sparsity=0.5", out=tmp_path / "out")
    assert {file.name for file in (tmp_path / "out").glob("*.safetensors")} == {
        file.name for file in teacher.glob("*.safetensors")
    }
    tensors = {
        name: tensor for file in (tmp_path / "out").glob("*.safetensors") for name, tensor in load_file(file).items()
    }
    assert {tensor.dtype for tensor in tensors.values() if tensor.is_floating_point()} == {torch.float16}
    load_teacher(str(tmp_path / "out"))


def test_sentence_transformers_modules_are_kept(teacher: Path, tmp_path: Path) -> None:
    (teacher / "1_Pooling").mkdir()
    (teacher / "1_Pooling/config.json").write_text(json.dumps({"pooling_mode": "cls"}))
    kinds = {"": "Transformer", "1_Pooling": "Pooling"}
    modules = [{"path": path, "type": f"sentence_transformers.models.{kind}"} for path, kind in kinds.items()]
    (teacher / "modules.json").write_text(json.dumps(modules))
    stillvec.adapt(teacher, "prune", out=tmp_path / "out")
    head = load_teacher(str(tmp_path / "out")).head
    assert head is not None
    assert head.poolings == ("cls",)


def test_the_command_prints_what_was_done(teacher: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call = ["adapt", str(teacher), "--step", "prune:sparsity=0.5", "--out", str(tmp_path / "out"), "--quiet"]
    assert main(call) == 0
    assert "zeros 0.5" in capsys.readouterr().out
    assert main(call) == 0
    assert "already finished" in capsys.readouterr().out
    assert main(["adapt", str(teacher), "--step", "prune:sparsity=2", "--out", str(tmp_path / "out")]) == 2


# comparison of teachers


def test_a_teacher_does_not_differ_from_itself(teacher: Path) -> None:
    change = compare_teachers(str(teacher), str(teacher), TEXTS)
    assert (change.zeros, change.mask_difference, change.rank_movement) == ((0.0, 0.0), 0.0, 0.0)
    assert [layer.layer for layer in change.layers] == [0, 1, 2]
    assert all(math.isclose(layer.mean, 1, abs_tol=1e-5) for layer in change.layers)


def test_a_pruned_teacher_differs_by_what_was_pruned(teacher: Path, tmp_path: Path) -> None:
    stillvec.adapt(teacher, "prune:sparsity=0.5", out=tmp_path / "pruned")
    change = compare_teachers(str(tmp_path / "pruned"), f"teacher:{teacher}", TEXTS)
    before, after = read_weights(teacher), read_weights(tmp_path / "pruned")
    key = "encoder.layer.0.attention.self.key.weight"
    matrix = next(matrix for matrix in change.matrices if matrix.name == key)
    rows = torch.cosine_similarity(before[key], after[key]).mean()
    heads = (after[key].reshape(2, -1) == 0).float().mean(1)
    assert math.isclose(change.mask_difference, 0.5, abs_tol=0.01)
    assert math.isclose(matrix.values.mean_cosine, float(rows), abs_tol=1e-5)
    assert matrix.zeros_by_head == pytest.approx((float(heads.min()), float(heads.max())))
    assert 0 < change.layers[0].mean < 1
    assert change.layers[2].mean < 0.999


def test_teachers_of_other_shapes_are_not_compared(teacher: Path, tmp_path: Path) -> None:
    other = make_teacher(tmp_path / "other", "mpnet")
    with pytest.raises(TeacherError):
        compare_teachers(str(teacher), str(other))


def test_the_command_compares_teachers(teacher: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stillvec.adapt(teacher, "prune:sparsity=0.5", out=tmp_path / "pruned")
    call = ["analyze", f"teacher:{tmp_path / 'pruned'}", "--against", f"teacher:{teacher}"]
    assert main(call) == 0
    assert "masks differ" in capsys.readouterr().out
    assert main([*call, "--json", "-"]) == 0
    assert math.isclose(json.loads(capsys.readouterr().out)["zeros"][1], 0.5, abs_tol=0.01)
    assert main([*call[:-1], "vectors"]) == 2


def test_a_step_can_be_run_alone(teacher: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    made = drain(WeightPruning(0.5).steps(teacher, tmp_path / "out", AdaptationResources()))
    assert made["facts"]["zeros"] == pytest.approx(0.5, abs=0.01)


def test_names_in_an_old_manifest_that_leave_the_folder_are_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    checksums = {"../mine.txt": "0", "/etc/mine": "0", "a/../../mine": "0", "vocab.txt": "0"}
    (tmp_path / "out" / "adaptation.json").write_text(json.dumps({"adaptation": 1, "checksums": checksums}), "utf-8")
    names = make_layout(tmp_path / "out").names
    assert "vocab.txt" in names
    assert not any("mine" in name for name in names)


def test_a_full_disk_is_named_by_the_file_that_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def copy(source: Path, target: Path) -> None:
        raise OSError(28, "No space left on device", str(source), None, str(target))

    teacher = make_teacher(tmp_path / "teacher")
    monkeypatch.setattr("stillvec.adaptation.model_folder.shutil.copyfile", copy)
    assert main(["adapt", str(teacher), "--step", "prune:sparsity=0.1", "--out", str(tmp_path / "out")]) == 1
    error = capsys.readouterr().err
    assert "No space left on device" in error
    assert f"{tmp_path}/.out" in error
    assert str(teacher) not in error
    assert not (tmp_path / "out").exists()
