"""One notation for methods, steps, combiners and tasks."""

from __future__ import annotations

import pytest

from stillvec.errors import UsageError
from stillvec.notation import Spec, parse_spec, parse_specs

KNOWN = {"auto", "mean", "decontextualized"}


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("auto", Spec("auto")),
        ("auto:", Spec("auto")),
        (" auto : layer = 3 ", Spec("auto", {"layer": "3"})),
        ("auto:k=1,k=2", Spec("auto", {"k": ["1", "2"]})),
        ("auto:k=1,2,name=a:b=c", Spec("auto", {"k": ["1", "2"], "name": "a:b=c"})),
        ("auto:min-count=3", Spec("auto", {"min-count": "3"})),
        ("auto:text={} is a word,text=the {}:", Spec("auto", {"text": ["{} is a word", "the {}:"]})),
    ],
)
def test_a_name_and_its_settings_are_parsed(text: str, spec: Spec) -> None:
    assert parse_spec(text) == spec


@pytest.mark.parametrize(
    ("text", "specs"),
    [
        ("auto,mean", [Spec("auto"), Spec("mean")]),
        ("auto:k=1,2,mean", [Spec("auto", {"k": ["1", "2"]}), Spec("mean")]),
        ("mean:k=1,mean:k=2", [Spec("mean", {"k": "1"}), Spec("mean", {"k": "2"})]),
        ("decontextualized:templates=A {},templates=B {},auto", None),
        ("auto, mean:a=b , c = d ", [Spec("auto"), Spec("mean", {"a": "b", "c": "d"})]),
        ("autto,mean", [Spec("autto"), Spec("mean")]),
        ("mean:k=1,autto:k=2", [Spec("mean", {"k": "1"}), Spec("autto", {"k": "2"})]),
        ("auto,men", [Spec("auto"), Spec("men")]),
        ("", []),
    ],
)
def test_a_known_name_begins_the_next_item(text: str, specs: list[Spec] | None) -> None:
    wanted = [Spec("decontextualized", {"templates": ["A {}", "B {}"]}), Spec("auto")] if specs is None else specs
    assert parse_specs(text, KNOWN) == wanted


def test_what_is_parsed_is_written_the_same_way() -> None:
    for text in ("auto", "auto:k=1,k=2,name=x", "mean:a=b"):
        assert str(parse_spec(text)) == text


@pytest.mark.parametrize("text", ["auto:3", "layer=3"])
def test_a_value_without_a_key_is_refused(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_specs(text, KNOWN)
    assert caught.value.code == "unexpected-value"
