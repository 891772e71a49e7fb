"""A process that has imported everything and forks one run of stillvec per line of its input, to be killed at a moment.

A request is JSON: `{"folder": F, "arguments": [...]}` with, optionally, `"signal"` and either `"seconds"` or `"step"`,
the number of the change to the file system before which the run gets the signal; or `"change": N`: corpus.txt gets
another line before it is opened for the N-th time. With `"warm"` the run is not forked.
"""

import json
import mmap
import os
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

from stillvec.cli import main
from stillvec.encoding import BatchBudget
from stillvec.pipeline import pass_checkpoint, result_folders
from stillvec.training import checkpoint

CHANGES = ("os.rename", "os.remove", "os.rmdir", "os.mkdir")  # audit events of Python, raised before the change
COUNTS = memoryview(mmap.mmap(-1, 8)).cast("I")  # changes made by the last run, and how often it opened the corpus
STATE: dict[str, Any] = {}  # the request that this process runs


def watch(event: str, arguments: tuple[Any, ...]) -> None:
    if not STATE:
        return
    if event in CHANGES or (event == "ctypes.dlsym" and arguments[1] == "renameat2"):
        if isinstance(arguments[0], str | bytes | os.PathLike) and not is_inside(os.fsdecode(arguments[0])):
            return
        COUNTS[0] += 1
        if COUNTS[0] == STATE.get("step"):
            os.kill(os.getpid(), STATE["signal"])
    elif event == "open" and str(arguments[0]).endswith("corpus.txt") and arguments[1] != "a":
        COUNTS[1] += 1
        if COUNTS[1] == STATE.get("change"):
            with open("corpus.txt", "a", encoding="utf-8") as file:
                file.write("\nThe farmer reads.")


def is_inside(path: str) -> bool:
    return not os.path.isabs(path) or path.startswith(STATE["folder"])


def run(request: dict[str, Any]) -> int:
    os.chdir(request["folder"])
    tempfile.tempdir = f"{request['folder']}/tmp"
    STATE.update(request)
    code: int = main(request["arguments"])
    STATE.clear()
    return code


def start(request: dict[str, Any]) -> int:
    child = os.fork()
    if not child:
        os.setsid()
        log = os.open(f"{request['folder']}.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os._exit(run(request))
    return child


def find_orphans(session: int) -> list[str]:
    """Processes of a run that outlive it by three seconds."""
    for _ in range(30):
        living = []
        for file in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = file.read_text().rpartition(")")[2].split()
            except OSError:  # it has just ended
                continue
            if int(fields[3]) == session and fields[0] != "Z":
                living.append(file.parent.name)
        if not living:
            break
        time.sleep(0.1)
    return living


def answer(request: dict[str, Any]) -> dict[str, Any]:
    COUNTS[0] = COUNTS[1] = 0
    if request.get("warm"):  # here, so that the processes that are killed need not import anything
        return {"code": run(request), "changes": COUNTS[0], "opened": COUNTS[1]}
    begun = time.perf_counter()
    child = start(request)
    if "seconds" in request:
        time.sleep(request["seconds"])
        os.kill(child, request["signal"])
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    seconds = time.perf_counter() - begun
    said = Path(f"{request['folder']}.log").read_text(encoding="utf-8")
    return {"code": code, "seconds": seconds, "said": said, "orphans": find_orphans(child)}


if __name__ == "__main__":
    BatchBudget.for_teacher = staticmethod(lambda *_: BatchBudget(256, 32))  # type: ignore[assignment]
    pass_checkpoint.EVERY, pass_checkpoint._TIMES = 0.0, 0  # a checkpoint after each batch
    checkpoint._EVERY = 0.0
    result_folders._EARLY_BYTES = 5000  # some methods have more, some fewer
    torch.set_num_threads(1)
    sys.addaudithook(watch)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), file=answers, flush=True)
