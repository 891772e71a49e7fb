"""Bracketed trees, one per line, as in the Penn Treebank: `(S (NP (PRP It)) (VP (VBZ works)))`.

A node directly above a word (in SST, a few times above several) is its tag; all others are constituents. Brackets in
words are written -LRB-, -RRB- and so on. The outermost node may have no label.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from stillvec.errors import DatasetError
from stillvec.heads.dataset_files import lines

ROOTS = ("", "TOP", "ROOT")  # labels that every sentence has
_TOKENS = re.compile(r"\s*([()]|[^\s()]+)")
_BRACKETS = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}"}
_ESCAPED = re.compile("|".join(_BRACKETS))
_LABEL, _FIRST, _LAST, _, _IS_TAG, _PLACE = range(6)


class Node(NamedTuple):
    """A node and the words below it, by their places in the sentence."""

    label: str
    first: int
    last: int  # the last word, not the one after it
    parent: int  # place in `Tree.nodes`; -1 for the root
    is_tag: bool  # directly above a word


class Tree(NamedTuple):
    words: tuple[str, ...]
    nodes: tuple[Node, ...]  # a parent before its children, from left to right

    @property
    def constituents(self) -> Iterator[Node]:
        """The nodes that are not tags."""
        return (node for node in self.nodes if not node.is_tag)


def read_trees(path: Path) -> list[Tree]:
    """All trees of a file; empty lines are skipped."""
    trees = [parse_tree(line, path, number) for number, line in lines(path) if line.strip()]
    if not trees:
        raise DatasetError.expected("a bracketed tree per line", "an empty file", path=path, line=1)
    return trees


def parse_tree(text: str, path: Path | None = None, line: int | None = None) -> Tree:
    """The tree of one line."""

    def refuse(what: str, got: object) -> DatasetError:
        return DatasetError.expected(what, got, path=path, line=line)

    words: list[str] = []
    nodes: list[list[Any]] = []  # the fields of each node
    path_up: list[list[Any]] = []  # the open nodes
    can_have_label = False  # directly after an opening bracket
    for token in _TOKENS.findall(text):
        if not path_up and (nodes or token != "("):
            raise refuse("one bracketed tree per line", repr(text[:40]))
        if token == "(":
            if path_up and path_up[-1][_IS_TAG]:
                raise refuse("words or nodes in a bracket", "both")
            parent = path_up[-1][_PLACE] if path_up else -1
            path_up.append(["", len(words), -1, parent, False, len(nodes)])
            nodes.append(path_up[-1])
        elif token == ")":
            node = path_up.pop()
            if node[_FIRST] == len(words):
                raise refuse("a word in every bracket", "an empty bracket")
            node[_LAST] = len(words) - 1
        elif can_have_label:
            path_up[-1][_LABEL] = token
        elif path_up[-1][_FIRST] < len(words) and not path_up[-1][_IS_TAG]:
            raise refuse("words or nodes in a bracket", "both")
        else:
            path_up[-1][_IS_TAG] = True
            words.append(_ESCAPED.sub(lambda match: _BRACKETS[match[0]], token) if "B-" in token else token)
        can_have_label = token == "("
    if path_up or not nodes:
        raise refuse("a closing bracket for every opening one", f"{len(path_up)} open")
    return Tree(tuple(words), tuple(Node(*node[:_PLACE]) for node in nodes))
