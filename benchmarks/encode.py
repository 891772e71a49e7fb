"""Tokens per second of the whole pipeline, relative to the bare forward pass on the same batches; and peak memory.

    python benchmarks/encode.py [--teacher minilm] [--corpus FILE...] [--sentences N] [--device auto] [--memory]
                                [--methods A,B:key=value] [--lines | --paragraphs] [--times N] [--int8]

Pipeline: read text from a file, split it into sentences, find words, tokenize and align, run the teacher, sum the
layers by word. The file has one sentence per line, or with --paragraphs whole paragraphs of the corpus. Bare: the same
batches, already on the device, through the same model. If sentences are packed into rows, the pass over padded rows is
measured as well; at most 150,000 sentences, evenly sampled. The runs alternate, twice each; both are printed, and the
better one counts. With --int8, the pipeline of the first method also runs in int8, and is compared with itself.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib.util
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import ratios
import torch

from stillvec.corpus import Corpus, split_sentences
from stillvec.encoding import Batch, BatchBudget, BatchBuilder, BatchLoader, TextChunk
from stillvec.encoding.encoded import DeviceCopier
from stillvec.encoding.forward_pass import compute_states
from stillvec.learners import LEARNERS, EncodingPass, Learner, PassPlan
from stillvec.learners.accumulators import TextSource
from stillvec.pipeline.count_pool import count_corpus
from stillvec.pipeline.sentence_stream import SentenceStream, split_batches
from stillvec.pipeline.settings import Training, parse_methods
from stillvec.progress import drain
from stillvec.registry import create
from stillvec.teachers import Teacher, load_teacher
from stillvec.vocabulary import Vocabulary, WordCounter, WordMatcher

_BARE = 150_000  # sentences


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--teacher", default="minilm")
    parser.add_argument("--corpus", nargs="+", default=[])
    parser.add_argument("--sentences", type=int, default=6000)
    parser.add_argument("--lines", action="store_true", help="each line of the corpus is a sentence")
    parser.add_argument("--paragraphs", action="store_true", help="read whole paragraphs, of --sentences sentences")
    parser.add_argument("--times", type=int, default=1, help="repeat the text this many times")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--precision", default="auto")
    parser.add_argument("--methods", default="aggregate,aggregate:layer=all,auto")
    parser.add_argument("--int8", action="store_true", help="also run the first method in int8, on a CPU")
    parser.add_argument("--memory", action="store_true", help="peak memory for 1x and 10x the corpus instead")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(_child(options.child)))
    elif options.memory:
        _memory(options)
    else:
        _speed(options)


def _speed(options: argparse.Namespace) -> None:
    teacher = load_teacher(options.teacher, device=options.device, precision=options.precision)
    files = options.corpus or _packaged()
    if options.paragraphs:
        paragraphs, sentences = _paragraphs(files, options.sentences)
    else:
        paragraphs = sentences = _sentences(files, options.sentences, options.lines)
    vocabulary = _vocabulary(sentences)
    load = BatchBudget.for_teacher(teacher)
    sample = sentences[:: -(-len(sentences) // _BARE)]
    learners = {label: create(LEARNERS, spec) for label, spec in parse_methods(options.methods)}
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder) / "corpus.txt"
        text.write_text("\n".join(paragraphs * options.times), encoding="utf-8")
        padded = dataclasses.replace(teacher, packing=None)
        bare = {"bare pass, padded rows": (padded, _ready(padded, sample, vocabulary, load))}
        if teacher.packing is not None:
            bare["bare pass, packed rows"] = teacher, _ready(teacher, sample, vocabulary, load)
        print(f"teacher {teacher.name} on {teacher.device.type} in {teacher.precision}")
        for name, (_, ready) in bare.items():
            pieces, read = sum(len(batch.token_index) for batch in ready), sum(batch.ids.size for batch in ready)
            share = f"{pieces / read:.2f} of the input is neither padding nor special tokens"
            print(f"  {name}: {len(sample):,} sentences, {pieces:,} tokens, {len(ready)} batches; {share}")
        for model, ready in bare.values():
            _bare(model, ready[: max(2, len(ready) // 20)])  # warm
        rates: dict[str, list[float]] = {}
        runs = {f"whole pipeline, {name}": (teacher, learner) for name, learner in learners.items()}
        first = next(iter(runs))
        if options.int8:
            runs[f"{first}, int8"] = load_teacher(options.teacher, device="cpu", precision="int8"), runs[first][1]
        for _ in range(2):
            for name, (model, ready) in bare.items():
                rates.setdefault(name, []).append(pieces / _bare(model, ready))
            for name, (model, learner) in runs.items():
                read, seconds = _whole(model, text, vocabulary, learner, load)
                rates.setdefault(name, []).append(read / seconds)
    best = max(rate for name in bare for rate in rates[name])
    for name, values in rates.items():
        both = ", ".join(f"{value:,.0f}" for value in values)
        print(f"  {name:38s} {both} tokens/s   {max(values) / best:5.2f} of the bare pass")
        if options.paragraphs and name not in bare:
            print(f"  {'the first of them':38s} {values[0] / best:5.2f} of the bare pass")
        other, reference = (max(rates[first]), "fp32") if name.endswith(", int8") else (best, "bare pass")
        if name not in bare:
            ratios.record(name, max(values) / other, f"{max(values):,.0f} tokens/s", f"{reference} {other:,.0f}")


def _bare(teacher: Teacher, ready: list[Batch]) -> float:
    """Seconds of the model alone, on batches that are on its device."""
    inputs, copier = [], DeviceCopier(teacher.device)
    for batch in ready:
        moved = copier.copy({"ids": batch.ids, "lengths": batch.lengths, "position_ids": batch.position_ids})
        padded = (batch.lengths != batch.ids.shape[1]).any()
        position_ids = moved["position_ids"] if batch.position_ids.size else None
        inputs.append((moved["ids"], moved["lengths"] if padded else None, position_ids))
    _settle(teacher)
    begun = time.perf_counter()
    for rows in inputs:
        compute_states(teacher, *rows, [teacher.depth])
    _settle(teacher)
    return time.perf_counter() - begun


def _whole(
    teacher: Teacher, text: Path, vocabulary: Vocabulary, learner: Learner, load: BatchBudget
) -> tuple[int, float]:
    """Tokens, and seconds from file to sums, without the own texts of `auto`."""
    corpus_parts = {name: part for name, part in learner.specs().items() if part.source is not TextSource.OWN_TEXTS}
    encoding_pass = EncodingPass(PassPlan({"bench": _Only(corpus_parts)}, vocabulary), teacher)
    stream = SentenceStream(Corpus(text, paragraphs="lines"), vocabulary, None, load.n_sentences)
    begun = time.perf_counter()
    pieces = 0
    for _, progress in encoding_pass.run(stream.chunks(), load):
        pieces = progress.n_tokens
    _settle(teacher)
    return pieces, time.perf_counter() - begun


class _Only:
    """A learner with the given specs."""

    def __init__(self, parts: dict) -> None:
        self._parts = parts

    def specs(self) -> dict:
        return self._parts


def _settle(teacher: Teacher) -> None:
    if teacher.device.type == "cuda":
        torch.cuda.synchronize()


def _ready(teacher: Teacher, sentences: list[str], vocabulary: Vocabulary, load: BatchBudget) -> list[Batch]:
    preparation = BatchBuilder.for_teacher(teacher, WordMatcher(vocabulary), load)
    with BatchLoader(preparation, load.workers) as preparer:
        return list(preparer.batches(TextChunk(chunk) for chunk in split_batches(sentences, load.n_sentences)))


def _sentences(files: list[str], limit: int, lines: bool = False) -> list[str]:
    selected: list[str] = []
    for sentence in Corpus(*files, paragraphs="lines").paragraphs() if lines else _clean(Corpus(*files).sentences()):
        selected.append(sentence)
        if len(selected) == limit:
            break
    return selected


def _paragraphs(files: list[str], limit: int) -> tuple[list[str], list[str]]:
    """Paragraphs, each on one line, and their sentences, at least `limit` of these if there are as many."""
    paragraphs: list[str] = []
    sentences: list[str] = []
    for paragraph in Corpus(*files).paragraphs():
        paragraphs.append(" ".join(paragraph.split()))
        sentences += split_sentences(paragraphs[-1])
        if len(sentences) >= limit:
            break
    return paragraphs, sentences


def _clean(sentences: Iterator[str]) -> Iterator[str]:
    """Sentences that the splitter does not split again."""
    return (sentence for sentence in sentences if split_sentences(sentence) == [sentence] and "\n" not in sentence)


def _vocabulary(sentences: list[str]) -> Vocabulary:
    counter = WordCounter()
    for chunk in split_batches(sentences, 5000):
        counter.add(chunk)
    return Vocabulary.build(counter.counts(), min_count=5)


def _packaged() -> list[str]:
    spec = importlib.util.find_spec("gensim")
    if spec is None or not spec.submodule_search_locations:
        sys.exit("pass --corpus, or install the extra 'packaged', whose text is the default")
    return [str(path) for path in Path(spec.submodule_search_locations[0], "test", "test_data").glob("enwiki-*.bz2")]


def _memory(options: argparse.Namespace) -> None:
    """The same text once and ten times, each in its own process, with a tiny teacher."""
    sentences = _sentences(options.corpus or _packaged(), options.sentences)
    with tempfile.TemporaryDirectory() as folder:
        peaks = []
        for times in (1, 10):
            text = Path(folder) / f"{times}.txt"
            with text.open("w", encoding="utf-8") as stream:
                for _ in range(times):
                    stream.writelines(sentence + "\n" for sentence in sentences)
            done = subprocess.run([sys.executable, __file__, "--child", str(text)], check=True, capture_output=True)
            result = json.loads(done.stdout)
            peaks.append(result["megabytes"])
            print(f"  {times:2d}x: {result['words']:11,} words, peak memory {result['megabytes']:,.0f} MB")
        print(f"  10x over 1x: {peaks[1] / peaks[0]:.3f}")
        sizes = [f"{peak:,.0f} MB" for peak in peaks]
        ratios.record("peak memory of ten times the text", peaks[0] / peaks[1], sizes[1], f"once {sizes[0]}")


def _child(text: str) -> dict:
    sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))
    from tiny_teachers import tiny_teacher

    corpus = Corpus(text, paragraphs="lines")
    vocabulary, count = drain(count_corpus(corpus, Training(max_words=5000)))
    teacher = tiny_teacher(vocabulary.words)
    encoding_pass = EncodingPass(PassPlan({"aggregate": LEARNERS["aggregate"]()}, vocabulary), teacher)
    for _ in encoding_pass.run(SentenceStream(corpus, vocabulary, None, 2048).chunks()):
        pass
    return {"words": count.n_words, "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


if __name__ == "__main__":
    main()
