"""Bracketed trees: words, nodes and their spans; malformed lines are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from stillvec.errors import DatasetError
from stillvec.heads.trees import parse_tree, read_trees


def test_the_nodes_of_a_tree_have_their_words_and_parents() -> None:
    tree = parse_tree("(TOP(S (NP (PRP It)) (VP (VBZ works)(-LRB- -LRB-)(NN :-RRB-))))")
    assert tree.words == ("It", "works", "(", ":)")
    assert [(node.label, node.first, node.last, node.parent) for node in tree.constituents] == [
        ("TOP", 0, 3, -1),
        ("S", 0, 3, 0),
        ("NP", 0, 0, 1),
        ("VP", 1, 3, 1),
    ]
    assert [node.label for node in tree.nodes if node.is_tag] == ["PRP", "VBZ", "-LRB-", "NN"]


def test_a_tree_is_as_deep_as_it_is_written() -> None:
    depth = 5000
    tree = parse_tree("(X " * depth + "word" + ")" * depth)
    assert (tree.words, len(tree.nodes)) == (("word",), depth)


@pytest.mark.parametrize(
    "line",
    [
        "(S (NP (PRP It))",
        "(S (NP (PRP It))))",
        "(S)",
        "(S ())",
        "(S (NN a) b)",
        "(S a (NN b))",
        "( a)) (b",
        "word",
        "(S (NN a)) (S (NN b))",
    ],
)
def test_a_malformed_tree_is_refused_with_its_line(tmp_path: Path, line: str) -> None:
    file = tmp_path / "a.txt"
    file.write_text(f"(S (NN a))\n\n{line}\n", "utf-8")
    with pytest.raises(DatasetError) as caught:
        read_trees(file)
    assert (caught.value.code, caught.value.path, caught.value.line) == ("unexpected-value", str(file), 3)


def test_a_tag_may_have_several_words() -> None:
    tree = parse_tree("(2 (2 films) (2 8 1/2))")
    assert [(node.first, node.last, node.is_tag) for node in tree.nodes] == [(0, 2, False), (0, 0, True), (1, 2, True)]


def test_an_empty_file_of_trees_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("\n", "utf-8")
    with pytest.raises(DatasetError):
        read_trees(file)
