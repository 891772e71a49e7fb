"""stillvec completion: real shells complete verbs, options, names and files, those that the parsers take."""

from __future__ import annotations

import argparse
import importlib
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from stillvec.cli import VERBS, completion_command, main
from stillvec.cli.completion_command import LISTS, REGISTRIES, SCRIPTS, Command, describe_command, visible_actions
from stillvec.learners import LEARNERS

PLAIN = {"TERM": "dumb", "PATH": os.environ["PATH"], "HOME": "/nonexistent", "LC_ALL": "C.UTF-8"}
START = {
    "bash": ["bash", "--norc", "--noprofile", "-i"],
    "zsh": ["zsh", "-f", "-i"],
}
BEGIN = {
    "bash": "PS1='> '; bind 'set bell-style none'; bind 'set enable-bracketed-paste off'; source completion.bash",
    "zsh": "PS1='> '; unsetopt beep zle_bracketed_paste; autoload -U compinit; compinit -u -D; source completion.zsh",
}
# what is typed, and the arguments that the shell then gives: a ⇥ completes
TYPED = {
    "stillvec dist⇥": ["distill"],
    "stillvec distill tex⇥ --meth⇥ first⇥": ["distill", "text.txt", "--method", "first_component"],
    "stillvec distill --method auto,dec⇥": ["distill", "--method", "auto,decontextualized"],
    "stillvec refine text.txt --step graph⇥": ["refine", "text.txt", "--step", "graph_retrofit"],
    "stillvec distill --device cu⇥": ["distill", "--device", "cuda"],
    "stillvec distill --teacher mini⇥": ["distill", "--teacher", "minilm"],
    "stillvec distill --dictionary tex⇥": ["distill", "--dictionary", "text.txt"],
    "stillvec completion fi⇥": ["completion", "fish"],
}


@pytest.fixture(scope="module")
def verbs() -> list[Command]:
    return [describe_command(verb) for verb in VERBS]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, verbs: list[Command]) -> Path:
    """A folder with a text and the three scripts."""
    folder = tmp_path_factory.mktemp("shell")
    (folder / "text.txt").write_text("ice", "utf-8")
    for shell in ("bash", "zsh", "fish"):
        (folder / f"completion.{shell}").write_text(SCRIPTS[shell](verbs), "utf-8")
    return folder


class Typing:
    """A shell at a terminal, in which `stillvec` tells the arguments it is given."""

    def __init__(self, shell: str, place: Path) -> None:
        self.shell = shell
        self.terminal, inner = pty.openpty()
        self.process = subprocess.Popen(
            START[shell], cwd=place, env=PLAIN, stdin=inner, stdout=inner, stderr=inner, start_new_session=True
        )
        os.close(inner)
        self.line(BEGIN[shell])
        self.line("stillvec() { printf '<%s>' \"$@\"; echo; }")

    def line(self, text: str) -> str:
        """What appears until the line was done. zsh takes a tab with more behind it for pasted, so it gets time."""
        for part in re.split("(⇥)", text):
            os.write(self.terminal, part.replace("⇥", "\t").encode())
            if self.shell == "zsh" and part == "⇥":
                self.read(quiet=0.2)
        os.write(self.terminal, b"; echo do''ne\n")
        return self.read(until="done")

    def read(self, until: str = "", quiet: float = 20) -> str:
        """What appears until a line comes, or until nothing more does."""
        seen, end = "", time.monotonic() + 20
        while time.monotonic() < end and not (until and re.search(rf"^{until}\r?$", seen, re.M)):
            if not select.select([self.terminal], [], [], quiet if seen else 5)[0]:
                break
            seen += os.read(self.terminal, 65536).decode(errors="replace")
        return seen

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.terminal)


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_a_shell_completes_what_is_typed(shell: str, place: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"There is no {shell} here.")
    typing = Typing(shell, place)
    try:
        for typed, wanted in TYPED.items():
            seen = typing.line(typed)
            assert "".join(f"<{word}>" for word in wanted) + "\r\n" in seen, (typed, seen)
    finally:
        typing.close()


def test_fish_completes_too(place: Path) -> None:
    if shutil.which("fish") is None:
        pytest.skip("There is no fish here.")

    def offered(line: str) -> list[str]:
        command = f"source completion.fish; complete -C '{line}'"
        env = PLAIN | {"HOME": str(place)}
        completed = subprocess.run(
            ["fish", "-N", "-c", command], cwd=place, env=env, capture_output=True, text=True, check=True
        )
        return [each.partition("\t")[0] for each in completed.stdout.splitlines()]

    for typed, wanted in TYPED.items():
        if typed.count("⇥") == 1:
            assert wanted[-1] in [each.split(" ")[-1] for each in offered(typed[:-1])], typed
    assert offered("stillvec dist") == ["distill"]


@pytest.mark.skipif(shutil.which("bash") is None, reason="There is no bash here.")
def test_nothing_is_offered_for_a_number(place: Path) -> None:
    typing = Typing("bash", place)
    try:
        assert "<distill><--dim><te>\r\n" in typing.line("stillvec distill --dim te⇥")
    finally:
        typing.close()


def test_all_verbs_and_options_are_offered(verbs: list[Command]) -> None:
    for verb in verbs:
        parser = argparse.ArgumentParser()
        importlib.import_module(f"stillvec.cli.{verb.name}_command").arguments(parser)
        flags = {flag for action in visible_actions(parser) for flag in action.option_strings}
        assert {flag for option in verb.options for flag in option.flags} == flags
        for text in (SCRIPTS["bash"](verbs), SCRIPTS["zsh"](verbs)):
            assert all(flag in text for flag in flags)


def test_tables_name_options_that_there_are(verbs: list[Command]) -> None:
    options = {(verb.name, flag): option for verb in verbs for option in verb.options for flag in option.flags}
    assert {*REGISTRIES} | LISTS <= {*options}
    assert options["distill", "--method"].names == (*LEARNERS,)
    assert options["distill", "--device"].names == ("auto", "cpu", "cuda")
    assert options["evaluate", "--lexicon"].files
    assert not options["distill", "--seed"].files
    assert "word2vec" in options["convert", "--format"].names
    missing = [
        key
        for key, option in options.items()
        if option.takes_value and key not in REGISTRIES and re.search(r"\b(NAME\[|known are )", option.help)
    ]
    assert missing == [], "REGISTRIES lists every option that takes names of a registry"


def test_a_second_call_takes_from_the_cache(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("STILLVEC_CACHE", str(tmp_path))
    assert main(["completion", "zsh"]) == 0
    first = capsys.readouterr().out
    nothing: Callable[[str], Command] = lambda verb: pytest.fail(f"{verb} was looked at again")  # noqa: E731
    monkeypatch.setattr(completion_command, "describe_command", nothing)
    assert main(["completion", "zsh"]) == 0
    assert capsys.readouterr().out == first
    (kept,) = (tmp_path / "completion").iterdir()
    kept.write_text("{", "utf-8")
    with pytest.raises(pytest.fail.Exception):
        main(["completion", "zsh"])


def test_where_torch_is_missing_the_other_verbs_complete(tmp_path: Path) -> None:
    code = """
import sys
class NoTorch:
    def find_spec(self, name, *rest):
        if name == "torch":
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, NoTorch())
from stillvec.cli import main
sys.exit(main(["completion", "bash"]))
"""
    env = os.environ | {"STILLVEC_CACHE": str(tmp_path)}
    completed = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert 'convert) names="-h --help --format' in completed.stdout
    assert 'distill) names="-h --help' in completed.stdout  # help needs no torch
