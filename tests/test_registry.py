"""Short names lead to parts, settings to frozen dataclasses, and mistakes to the nearest known name."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

import pytest

import stillvec
from stillvec.errors import DeprecatedName, MissingExtra, UsageError, suggest
from stillvec.registry import Registry, create, require, settings_from

PARTS: Registry[Any] = Registry("shape", {"circle": "math:pi", "square": "a_module_that_is_not_there:Square"})


def test_a_short_name_gives_its_part() -> None:
    assert PARTS["circle"] == pytest.approx(3.14159, abs=1e-5)


def test_names_are_listed_in_their_order_without_loading_anything() -> None:
    assert list(PARTS) == ["circle", "square"]
    assert "square" in PARTS
    assert "triangle" not in PARTS


def test_a_name_that_is_not_known_gives_the_nearest() -> None:
    with pytest.raises(UsageError, match="'circle'") as caught:
        PARTS["cirle"]
    assert caught.value.code == "unknown-name"


def test_a_name_like_no_other_gives_all_that_are_known() -> None:
    with pytest.raises(UsageError, match="circle, square"):
        PARTS["xyz"]


def test_a_part_whose_module_is_broken_is_not_reported_as_an_unknown_name() -> None:
    with pytest.raises(ModuleNotFoundError, match="a_module_that_is_not_there"):
        PARTS["square"]


def test_the_nearest_of_several_names_is_chosen() -> None:
    assert suggest("retrofitt", ["refine", "retrofit", "graph_retrofit"]) == "did you mean 'retrofit'?"


def test_an_optional_package_that_is_there_is_given() -> None:
    assert require("json.decoder", "x", "Reading").__name__ == "json.decoder"


def test_an_optional_package_that_is_missing_is_named_with_its_cure() -> None:
    with pytest.raises(MissingExtra, match=r"Reading needs .*'nowhere_at_all'.*pip install 'stillvec\[zstd\]'"):
        require("nowhere_at_all.inside", "zstd", "Reading")


def test_a_package_that_is_broken_inside_is_not_called_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "half_installed.py").write_text("import nowhere_at_all")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="nowhere_at_all"):
        require("half_installed", "x", "Reading")
    assert "half_installed" not in sys.modules


@dataclass(frozen=True)
class Settings:
    size: int
    rate: float = 0.5
    exact: bool = False
    layer: int | str = "last"
    limit: int | None = None
    device: Literal["cpu", "cuda"] = "cpu"
    bits: Literal[8, 16] | None = None
    words: tuple[str, ...] = ()
    layers: tuple[int, ...] = ()
    pair: tuple[int, float] = (1, 1.0)
    file: Path | None = None
    name: str = ""
    anything: Any = None
    made: int = field(default=7, init=False)


@pytest.mark.parametrize(
    ("key", "given", "held"),
    [
        ("size", "3", 3),
        ("rate", "1e-3", 0.001),
        ("rate", 2, 2.0),
        ("exact", "true", True),
        ("exact", "No", False),
        ("exact", True, True),
        ("layer", "3", 3),
        ("layer", 3, 3),
        ("layer", "2-5", "2-5"),
        ("limit", "none", None),
        ("limit", "12", 12),
        ("limit", None, None),
        ("device", "cuda", "cuda"),
        ("bits", "8", 8),
        ("bits", 16, 16),
        ("bits", "none", None),
        ("words", ["a", "b"], ("a", "b")),
        ("words", "a", ("a",)),
        ("layers", ["1", 2], (1, 2)),
        ("layers", "3", (3,)),
        ("pair", [2, "0.5"], (2, 0.5)),
        ("file", "a/b.txt", Path("a/b.txt")),
        ("file", "none", None),
        ("name", "true", "true"),
        ("name", 5, "5"),
        ("anything", {"a": 1}, {"a": 1}),
    ],
)
def test_a_value_is_read_as_the_type_of_its_field(key: str, given: object, held: object) -> None:
    value = getattr(settings_from(Settings, {"size": 1, key: given}), key)
    assert value == held
    assert type(value) is type(held)


@pytest.mark.parametrize(
    ("key", "given"),
    [
        ("size", "three"),
        ("size", 2.5),
        ("size", True),
        ("size", None),
        ("rate", "fast"),
        ("exact", "maybe"),
        ("exact", 1),
        ("limit", "many"),
        ("device", "tpu"),
        ("bits", "4"),
        ("layers", ["1", "x"]),
        ("pair", [1]),
        ("name", ["a"]),
        ("file", 3),
    ],
)
def test_a_value_of_another_type_is_refused_with_its_name(key: str, given: object) -> None:
    with pytest.raises(UsageError, match=re.escape(repr(given))) as caught:
        settings_from(Settings, {"size": 1, key: given})
    assert caught.value.code == "unexpected-value"
    assert repr(key) in str(caught.value)


def test_an_old_name_of_a_setting_or_a_part_works_with_a_warning() -> None:
    @dataclass(frozen=True)
    class New:
        RENAMED: ClassVar[dict[str, str]] = {"keep": "include_words"}
        include_words: str = ""

    with pytest.warns(DeprecatedName, match="include_words"):
        assert settings_from(New, {"keep": "a"}) == New("a")
    parts: Registry[Any] = Registry("mixture", {"mix": f"{__name__}:Mixture"}, renamed={"blend": "mix"})
    with pytest.warns(DeprecatedName, match="mix"):
        assert parts["blend"] is Mixture
    assert [*parts] == ["mix"]
    assert "blend" in parts


def test_what_is_not_given_keeps_its_default() -> None:
    assert settings_from(Settings, {"size": 1}) == Settings(size=1)


def test_a_key_may_be_written_with_hyphens() -> None:
    @dataclass(frozen=True)
    class Two:
        min_count: int = 5

    assert settings_from(Two, {"min-count": "2"}) == Two(min_count=2)


def test_an_unknown_key_gives_the_nearest_and_says_where() -> None:
    with pytest.raises(UsageError, match=r"'devise' in run\.toml.*'device'"):
        settings_from(Settings, {"size": 1, "devise": "cpu"}, where="run.toml")


def test_a_field_that_is_not_a_setting_is_unknown_and_not_offered() -> None:
    with pytest.raises(UsageError, match="'made'") as caught:
        settings_from(Settings, {"size": 1, "made": 3})
    assert "did you mean 'made'" not in str(caught.value)


def test_a_setting_that_is_needed_and_not_given_is_named() -> None:
    with pytest.raises(UsageError, match=r"run\.toml.*'size'"):
        settings_from(Settings, {}, where="run.toml")


@dataclass(frozen=True)
class Mixture:
    shares: tuple[float, ...] = ()
    cold: bool = False
    name: str = ""


MIXTURES: Registry[Any] = Registry("mixture", {"mix": f"{__name__}:Mixture"})


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("mix", Mixture()),
        ("mix:", Mixture()),
        ("mix:shares=1,shares=2", Mixture((1.0, 2.0))),
        ("mix:cold=true", Mixture(cold=True)),
        ("mix:shares=1", Mixture((1.0,))),
        ("mix:shares=1,2.5,cold=yes", Mixture((1.0, 2.5), cold=True)),
        (" mix : cold = true , shares = 1, 2", Mixture((1.0, 2.0), cold=True)),
        ("mix:name=a:b", Mixture(name="a:b")),
        ("mix:name=a=b", Mixture(name="a=b")),
    ],
)
def test_a_part_and_its_settings_are_read_from_text(text: str, wanted: Mixture) -> None:
    assert create(MIXTURES, text) == wanted


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("mx", "unknown-name"),
        ("mix:cold", "unexpected-value"),
        ("mix:cold=true,cold=false", "unexpected-value"),
        ("mix:cald=true", "unknown-name"),
        ("mix:cold=perhaps", "unexpected-value"),
        ("mix:cold=true,2", "unexpected-value"),
    ],
)
def test_text_that_names_no_part_or_a_wrong_setting_is_refused(text: str, code: str) -> None:
    with pytest.raises(UsageError) as caught:
        create(MIXTURES, text)
    assert caught.value.code == code


@pytest.mark.parametrize(("missing", "command"), [("skipgram,glove", "train"), ("glove,deps", "train,distill")])
def test_all_packages_that_methods_lack_are_named_before_the_work(
    missing: str, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "text.txt").write_text("Ice melts.")
    monkeypatch.setattr("stillvec.registry._is_installed", lambda package: False)
    with pytest.raises(MissingExtra, match=r"packages .*'numba'") as caught:
        stillvec.train_all([tmp_path / "text.txt"], method=missing)
    assert f"stillvec[{command}]" in str(caught.value)


def test_a_package_without_a_release_for_this_python_is_not_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stillvec.errors._UNSUPPORTED", {"gensim": (3, 0)})
    assert "pip" not in str(MissingExtra("gensim", "train", "Skip-gram"))
    several = str(MissingExtra("numba, gensim", "train", "Training"))
    assert "pip install" in several
    assert "(gensim: no release" in several
