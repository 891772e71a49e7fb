"""What grows with the number of processes that read: the phases of `stillvec distill` with a teacher that sleeps.

    python benchmarks/workers.py [--engine ray|torchrun] [--corpus FILE...] [--workers 1,2,4] [--rate N] [--words N]

The teacher is a small random BERT whose forward pass sleeps until its tokens would have been read at --rate tokens per
second, so that several workers share the cores of one machine as if each had a GPU of its own.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import transformers
from encode import _packaged
from random_teachers import copy_tokenizer

from stillvec.corpus import Corpus
from stillvec.teachers.loader import locate_folder

_CODE = """
import time

from transformers import BertConfig, BertModel

RATE = {rate}


class SlowConfig(BertConfig):
    model_type = "slow"


class SlowModel(BertModel):
    config_class = SlowConfig

    def forward(self, input_ids=None, **given):
        begun = time.perf_counter()
        output = super().forward(input_ids=input_ids, **given)
        time.sleep(max(0.0, input_ids.numel() / RATE - (time.perf_counter() - begun)))
        return output
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", choices=("ray", "torchrun"), default="ray")
    parser.add_argument("--corpus", nargs="+", default=[])
    parser.add_argument("--workers", default="1,2,4")
    parser.add_argument("--rate", type=int, default=4000, help="tokens per second of each worker, padding included")
    parser.add_argument("--words", type=int, default=200_000, help="of the text")
    parser.add_argument("--tokenizer", type=Path, help="a teacher whose tokenizer is used (default: minilm)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = options.tokenizer or locate_folder("minilm")
        _write_teacher(source, folder / "teacher", options.rate)
        n_words = _write_text(options.corpus or _packaged(), options.words, folder / "text.txt")
        print(f"{n_words:,} words; each worker reads {options.rate:,} tokens per second")
        print("| workers | " + " | ".join(_PHASES) + " |\n" + "|---" * (len(_PHASES) + 1) + "|", flush=True)
        for workers in options.workers.split(","):
            phases = _run(folder, options.engine, workers)
            print(
                f"| {workers} | " + " | ".join(f"{phases.get(phase, 0.0):.1f}" for phase in _PHASES) + " |", flush=True
            )


_PHASES = ("imports", "loading", "counting", "reading", "merging", "computing", "writing")


def _run(folder: Path, engine: str, workers: str) -> dict[str, float]:
    """Seconds by phase."""
    out = folder / f"out-{workers}"
    start = ["-m", "torch.distributed.run", "--nproc-per-node", workers] if engine == "torchrun" else []
    flags = ["--engine", "ray", "--workers", workers] if engine == "ray" else ["--threads", "1"]
    flags += ["--contexts", "all", "--remote-code", "--device", "cpu", "--precision", "fp32", "--max-words", "5000"]
    flags += ["--method", "aggregate:layer=all", "--teacher", str(folder / "teacher"), "--out", str(out)]
    command = [sys.executable, *start, "-m", "stillvec", "distill", str(folder / "text.txt"), *flags]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    line = next(line for line in done.stdout.splitlines() if line.startswith("Took "))
    return {name: float(value) for name, value in re.findall(r"([a-z]+) ([\d.]+)", line.partition(":")[2])}


def _write_teacher(source: Path, folder: Path, rate: int) -> None:
    n_tokens = len(json.loads((source / "tokenizer.json").read_text("utf-8"))["model"]["vocab"])
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    transformers.BertModel(transformers.BertConfig(vocab_size=n_tokens, **sizes)).save_pretrained(folder)
    config = json.loads((folder / "config.json").read_text("utf-8"))
    config |= {"model_type": "slow", "architectures": ["SlowModel"]}
    config["auto_map"] = {"AutoConfig": "slow_model.SlowConfig", "AutoModel": "slow_model.SlowModel"}
    (folder / "config.json").write_text(json.dumps(config), "utf-8")
    (folder / "slow_model.py").write_text(_CODE.replace("{rate}", str(rate)), "utf-8")
    copy_tokenizer(source, folder)


def _write_text(files: list[str], n_words: int, path: Path) -> int:
    written = 0
    with path.open("w", encoding="utf-8") as stream:
        for paragraph in Corpus(*files).paragraphs():
            stream.write(" ".join(paragraph.split()) + "\n\n")
            written += len(paragraph.split())
            if written >= n_words:
                break
    return written


if __name__ == "__main__":
    main()
