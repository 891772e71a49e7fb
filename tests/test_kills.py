"""A command that is killed and run again ends in the bytes of an undisturbed run, and leaves nothing else.

The quick form kills each command a few times; `make test-kill` does it STILLVEC_KILLS times (default: 200) at random
moments, and once before every change to the file system.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tiny_corpus import sentences

from stillvec.cli import main

KILLS = int(os.environ.get("STILLVEC_KILLS", "200"))
TEXTS = sentences(120)
MANY = "auto,first_component,whitened_context,whitened_window,token_table,x2static"
DISTILL = (
    "distill corpus.txt --teacher MODEL --include-words IN/keep.txt --min-count 1 --device cpu --threads 1 --quiet"
)
DISTILL += " --context-cache cache --out out --method"
TRAIN = "train corpus.txt --min-count 1 --dim 4 --threads 1 --quiet --context-cache cache --out out --method"
COMMANDS = {
    "distill": f"{DISTILL} {MANY}",
    "distill-one": f"{DISTILL} aggregate:layer=all --contexts all",
    "distill-trained": f"{DISTILL} decontextualized,attentive_skipgram --contexts 3",
    "distill-paragraphs": f"{DISTILL} x2static:context=paragraph --contexts 3",
    "train": f"{TRAIN} glove:epochs=3,sent2vec:epochs=3",
    "train-gensim": f"{TRAIN} skipgram:epochs=1",
    "refine": "refine IN/one --step center --step pca:dim=6 --step quantize --oov subword --out out",
    "combine": "combine IN/one IN/two --method gcca --out out",
    "merge": "merge IN/one IN/two --out out",
    "convert": "convert IN/one out/v.npy",
    "convert-text": "convert IN/one out/v.vec.gz",
    "convert-folder": "convert IN/one out --format spacy",
    "index": "index corpus.txt --vectors IN/one --out out --quiet",
    "index-add": "index corpus.txt --add-to IN/index --out out --quiet",
    "adapt": "adapt MODEL --step prune:sparsity=0.4 --step prune:sparsity=0.6 --quiet --out out",
    "adapt-trained": "adapt MODEL --step pretrain:text=corpus.txt,max_steps=8,length=16 --device cpu --quiet --out out",
    "fit": "fit IN/one --on IN/labels.txt --head cnn:epochs=4 --device cpu --quiet --out out",
    "fit-pair": "fit IN/one --on IN/pairs.txt --head pair:hidden=8,epochs=4 --device cpu --quiet --out out",
    "fit-span": "fit IN/one --on IN/entities.jsonl --head span:size=8,epochs=4 --device cpu --quiet --out out",
    "fit-tagger": "fit IN/one --on IN/tags.txt --head tagger:epochs=4 --device cpu --quiet --out out",
    "fit-primitives": "fit IN/one --on IN/tags.txt --head primitives:epochs=4 --device cpu --quiet --out out",
    "run": "run recipe.toml --context-cache cache --quiet",
}
SLOW = (
    "adapt",
    "distill-one",
    "distill-trained",
    "distill-paragraphs",
    "convert-folder",
    "index-add",
    "fit-pair",
    "fit-span",
    "fit-tagger",
    "fit-primitives",
)  # only in the long form
RESUMED = ("distill", "train", "run", "adapt", "fit")
PLACES = {"distill-trained": "out/decontextualized", "train": "out/glove"}
PLACES |= dict.fromkeys(["distill", "run"], "out/x2static")
NOT_COMPARED = ("manifest.json", "adaptation.json", "README.md", "meta.json")  # they contain the time
RECIPE = """
[distill]
corpus = ["corpus.txt"]
teacher = "MODEL"
method = ["aggregate", "x2static"]
min_count = 1
device = "cpu"
threads = 1
out = "out"

[refine]
in = "out/aggregate"
steps = ["center"]
out = "refined"

[convert]
in = "refined"
out = "refined.vec"
"""

pytestmark = [pytest.mark.skipif(sys.platform != "linux", reason="/proc, signals"), pytest.mark.timeout(0)]


class Runs:
    """Runs of stillvec in folders of their own, by a process that forks them."""

    def __init__(self, root: Path, model: str) -> None:
        self.root, self.model = root, model
        self.facts: dict[str, Any] = {}  # of an undisturbed run
        self.trees: dict[tuple[str, str], dict[str, bytes]] = {}
        environment = {**os.environ, "TOKENIZERS_PARALLELISM": "false", "STILLVEC_CACHE": str(root / "unused")}
        server = [sys.executable, str(Path(__file__).with_name("kill_server.py"))]
        pipe = subprocess.PIPE
        self.server = subprocess.Popen(server, stdin=pipe, stdout=pipe, text=True, env=environment)

    def ask(self, folder: Path, name: str, *, resume: bool = True, **more: Any) -> Any:
        assert self.server.stdin is not None
        assert self.server.stdout is not None
        words = self.fill(COMMANDS[name]).split()
        if resume and words[0] in RESUMED and name != "train-gensim":
            words.append("--resume")
        if folder.name.endswith(("-old", "-noted")) or words[0] == "index":  # what is there may be replaced
            words.append("--force")
        print(json.dumps({"folder": str(folder), "arguments": words, **more}), file=self.server.stdin, flush=True)
        answer = json.loads(self.server.stdout.readline())
        assert not answer.get("orphans"), answer
        return answer

    def fill(self, text: str) -> str:
        return text.replace("IN/", f"{self.root}/in/").replace("MODEL", self.model)

    def prepare(self, name: str, state: str = "new") -> Path:
        """A folder where a command can run; the output is new, old, or old with a note of the user in it."""
        folder = self.root / f"{name}-{state}"
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "tmp").mkdir(parents=True)
        lines = [" ".join(TEXTS[at : at + 4]) for at in range(0, len(TEXTS), 4)]
        (folder / "corpus.txt").write_text("\n".join(lines + ["The farmer reads."] * (state == "changed")), "utf-8")
        (folder / "recipe.toml").write_text(self.fill(RECIPE), "utf-8")
        if state in ("old", "noted"):
            old = {"index": "index", "adapt": "adapted", "fit": "head"}.get(name.partition("-")[0], "two")
            shutil.copytree(self.root / "in" / old, folder / PLACES.get(name, "out"))
        if state == "noted":
            (folder / PLACES.get(name, "out") / "notes.txt").write_text("of the user", "utf-8")
        return folder

    def tree(self, name: str, state: str = "new") -> dict[str, bytes]:
        """What an undisturbed run leaves."""
        if (name, state) not in self.trees:
            folder = self.prepare(name, state)
            self.facts[name] = answer = self.ask(folder, name, warm=True)
            assert answer["code"] == 0
            self.trees[name, state] = read_tree(folder)
        return self.trees[name, state]

    def kill(self, folder: Path, name: str, number: int, **moment: Any) -> bool:
        """Whether the run was killed, and had not ended before; a result that exists then is whole."""
        answer = self.ask(folder, name, signal=number, **moment)
        assert answer["code"] in (0, -number, 128 + number), answer  # negative before the first and after the last line
        assert "Traceback" not in answer["said"]
        old = [file.read_bytes() for file in (self.root / "in").rglob("*.safetensors")]
        for file in folder.glob("[!c.]*/**/manifest.json"):
            if not any(part.startswith(".") for part in file.relative_to(folder).parts):
                tables = (file.with_name(f"{content}.safetensors") for content in ("head", "vectors", "passages"))
                table = next(path for path in tables if path.exists())
                assert table.read_bytes() in (*old, self.tree(name)[str(table.relative_to(folder))]), (answer, moment)
        return bool(answer["code"])

    def check(self, folder: Path, name: str, state: str, *, resume: bool = True) -> None:
        """The next run ends as an undisturbed one does."""
        answer = self.ask(folder, name, resume=resume)
        assert answer["code"] == 0, answer
        expected, tree = self.tree(name, state), read_tree(folder)
        assert sorted(tree) == sorted(expected)
        assert [path for path in tree if tree[path] != expected[path]] == []


def read_tree(folder: Path) -> dict[str, bytes]:
    """Every file and folder, with what must be the same."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() and path.name not in NOT_COMPARED else b""
        for path in folder.rglob("*")
    }


def write_labelled(folder: Path) -> None:
    """Pairs of texts, spans and tags, labelled by nothing that can be learnt."""
    pairs, entities, tags = [], [], []
    for number, text in enumerate(TEXTS):
        words = text.split()
        pairs.append(f"{'ab'[number % 2]}\t{text}\t{TEXTS[number - 1]}")
        entities.append(json.dumps({"words": words, "spans": [[0, 1, "ab"[number % 2]]]}))
        tags.append("".join(f"{word} {'AB'[at % 2]}|{'CD'[number % 2]}\n" for at, word in enumerate(words)))
    (folder / "pairs.txt").write_text("\n".join(pairs), "utf-8")
    (folder / "entities.jsonl").write_text("\n".join(entities), "utf-8")
    (folder / "tags.txt").write_text("\n".join(tags), "utf-8")


@pytest.fixture(scope="module")
def runs(model: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    root = tmp_path_factory.mktemp("kills")
    made = Runs(root, model)  # imports while the inputs are written
    inputs = root / "in"
    inputs.mkdir()
    (inputs / "corpus.txt").write_text("\n".join(TEXTS), "utf-8")
    (inputs / "keep.txt").write_text("zebra\nnew york\n", "utf-8")  # which no sentence has
    for seed, out in enumerate(("one", "two")):
        call = f"distill {inputs}/corpus.txt --teacher {model} --method aggregate --min-count 1 --device cpu --quiet"
        assert main([*call.split(), "--seed", str(seed), "--contexts", str(3 + seed), "--out", str(inputs / out)]) == 0
    call = f"index {inputs}/corpus.txt --vectors {inputs}/one --passages 1 --documents files --quiet"
    assert main([*call.split(), "--out", str(inputs / "index")]) == 0
    labels = "".join(f"{'ab'[number % 2]} {text}\n" for number, text in enumerate(TEXTS))
    (inputs / "labels.txt").write_text(labels, "utf-8")
    write_labelled(inputs)
    assert main(["fit", str(inputs / "one"), "--on", str(inputs / "labels.txt"), "--out", str(inputs / "head")]) == 0
    call = f"adapt {model} --step prune:sparsity=0.1 --quiet --out {inputs / 'adapted'}"
    assert main(call.split()) == 0
    yield made
    assert made.server.stdin is not None
    made.server.stdin.close()
    made.server.wait()


def states(name: str) -> list[str]:
    return ["new"] if name.startswith("convert") else ["new", "old", "noted"]


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in SLOW])
def test_a_killed_command_ends_in_the_same_bytes(name: str, runs: Runs) -> None:
    runs.tree(name)
    n_changes = runs.facts[name]["changes"]
    folder = runs.prepare(name)
    for part, number in ((0.3, signal.SIGTERM), (0.6, signal.SIGKILL), (0.95, signal.SIGKILL)):
        runs.kill(folder, name, number, step=max(1, round(part * n_changes)))
    runs.check(folder, name, "new")


@pytest.mark.parametrize("name", ["distill-one", "train", "adapt-trained", "run"])
def test_a_corpus_that_changes_during_a_command_is_an_error(name: str, runs: Runs) -> None:
    runs.tree(name)
    folder = runs.prepare(name)
    answer = runs.ask(folder, name, change=runs.facts[name]["opened"])
    assert answer["code"] == 1
    assert "changed" in answer["said"]
    assert not (folder / "out").exists()
    runs.check(folder, name, "changed", resume=False)


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_killed_at_random_moments_ends_in_the_same_bytes(name: str, runs: Runs) -> None:
    runs.tree(name)
    seconds = runs.ask(runs.prepare(name), name)["seconds"]
    choose, kills = random.Random(7), 0
    while kills < KILLS:
        state = choose.choice(states(name))
        folder = runs.prepare(name, state)
        for _ in range(choose.randint(1, 5)):
            number = choose.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
            kills += runs.kill(folder, name, number, seconds=choose.uniform(0, seconds))
        runs.check(folder, name, state)
    print(f"{name}: {kills} kills")


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_killed_before_any_change_to_the_file_system_ends_in_the_same_bytes(name: str, runs: Runs) -> None:
    for state in states(name):
        runs.tree(name, state)
        folder, step = runs.prepare(name, state), 1
        while runs.kill(folder, name, signal.SIGKILL, step=step):
            runs.check(folder, name, state)
            folder, step = runs.prepare(name, state), step + max(1, runs.facts[name]["changes"] // KILLS)
        assert step > 1


@pytest.mark.slow
@pytest.mark.parametrize("part", [0.0, 0.3, 0.6, 0.9])
@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_continues_after_a_full_disk(name: str, part: float, runs: Runs) -> None:
    n_bytes = 4096 * sum(1 + len(data) // 4096 for path, data in runs.tree(name).items() if path.startswith("out"))
    folder = runs.root / f"{name}-disk"
    folder.mkdir(exist_ok=True)
    if subprocess.run(["mount", "-t", "tmpfs", "tmpfs", str(folder)], capture_output=True, check=False).returncode:
        pytest.skip("No small disk can be mounted here.")
    try:
        used = sum(4096 * (1 + path.stat().st_size // 4096) for path in runs.prepare(name, "disk").rglob("*"))
        resize = ["mount", "-o", f"remount,size={used + int(part * n_bytes)}", str(folder)]
        subprocess.run(resize, check=True)
        answer = runs.ask(folder, name)
        assert answer["code"] == 1 or (answer["code"] == 0 and part), answer  # whole pages: it may fit
        refused = "MB free" in answer["said"]  # contexts that do not fit, before the work
        assert answer["code"] == 0 or refused or "No space left" in answer["said"], answer
        assert "Traceback" not in answer["said"]
        subprocess.run(["mount", "-o", "remount,size=100m", str(folder)], check=True)
        runs.check(folder, name, "new")
    finally:
        subprocess.run(["umount", str(folder)], check=True)
