"""stillvec distill: a teacher and a corpus in, word vectors out."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

from stillvec.cli.console import note, table
from stillvec.cli.progress_bar import watch
from stillvec.corpus import Corpus
from stillvec.encoding import format_bytes
from stillvec.errors import StillvecError, UsageError
from stillvec.learners import LEARNERS
from stillvec.lexicons import read_words
from stillvec.pipeline import Distillation, Run
from stillvec.pipeline.distillation import check_output
from stillvec.pipeline.plan import Plan, Planning
from stillvec.pipeline.readers import LocalReader, Reader
from stillvec.pipeline.result_folders import saved_steps
from stillvec.pipeline.settings import CONTEXTS

if TYPE_CHECKING:
    from stillvec.distributed.process_group import ProcessGroup


def arguments(parser: argparse.ArgumentParser) -> None:
    defaults = Distillation()
    parser.add_argument(
        "corpus",
        nargs="*",
        metavar="CORPUS",
        help="files, folders, globs or - (standard input): text, .gz .bz2 .xz .zst, JSON lines, Parquet, CoNLL-U, "
        "a Wikipedia dump; none: isolated words (--keep, or the teacher's own)",
    )
    parser.add_argument("--out", metavar="DIR", help="the folder to write; only --dry-run needs none")
    parser.add_argument("--teacher", default=defaults.teacher, metavar="DIR_OR_NAME", help="default: %(default)s")
    parser.add_argument(
        "--method",
        default=defaults.method,
        metavar="NAME[:key=value,...][,NAME...]",
        help=f"default: %(default)s; known are {', '.join(LEARNERS)}; several share one encoding, a folder each",
    )
    parser.add_argument(
        "--for", dest="purpose", choices=("words", "sentences"), default=defaults.purpose,
        help="what the vectors are for: auto's recipe differs (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument("--layer", metavar="N|last|all|A-B", help="the teacher's layer; 0 is its input")
    parser.add_argument("--dim", type=int, metavar="N", help="dimensions of the result")
    parser.add_argument("--dictionary", metavar="wordnet|FILE", help="glosses that auto may use beside the corpus")
    parser.add_argument("--min-count", type=int, default=defaults.min_count, metavar="N", help="default: %(default)s")
    parser.add_argument("--max-words", type=int, metavar="N", help="the most frequent N words only")
    parser.add_argument("--keep", metavar="WORDS.txt", help="words and multi-word terms that must be in, one a line")
    parser.add_argument("--cased", action="store_true", help="keep capital letters apart in the vocabulary")
    parser.add_argument(
        "--contexts", default=str(CONTEXTS), metavar="N|all",
        help="contexts of each word that the teacher reads (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument("--field", metavar="NAME", help="the field of JSON lines or Parquet that holds the text")
    parser.add_argument("--paragraphs", choices=("auto", "lines", "blocks"), default="auto", help="what a paragraph is")
    parser.add_argument("--strict", action="store_true", help="stop at bytes that are not UTF-8")
    parser.add_argument("--device", default="auto", metavar="auto|cpu|cuda")
    parser.add_argument("--precision", default="auto", metavar="auto|fp32|bf16|fp16|int8")
    parser.add_argument(
        "--threads", type=int, metavar="N",
        help="of the processor; before a GPU, as many processes read and prepare the text (default: one a core)",
    )  # fmt: skip
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    parser.add_argument(
        "--unknown",
        metavar="subword[:key=value,...]",
        help="fit character n-grams, for words never seen",
    )
    parser.add_argument("--add-to", metavar="DIR", help="add this corpus to an earlier result")
    parser.add_argument(
        "--store", metavar="DIR",
        help="where methods that train keep the teacher's contexts (default: $STILLVEC_CACHE, or a cache folder)",
    )  # fmt: skip
    parser.add_argument(
        "--dry-run", action="store_true", help="tell what the run will take (time, memory, disk), and do nothing"
    )
    parser.add_argument("--resume", action="store_true", help="go on where a run that was stopped was")
    parser.add_argument(
        "--engine", choices=("local", "ray"), default="local",
        help="who reads: this process (or those of torchrun), or the workers of a Ray cluster (default: %(default)s)",
    )  # fmt: skip
    parser.add_argument("--address", metavar="HOST:PORT", help="of the Ray cluster ($RAY_ADDRESS; else one is started)")
    parser.add_argument("--workers", type=int, metavar="N", help="of Ray (default: one a GPU, else one a processor)")
    parser.add_argument("--no-statistics", action="store_true", help="do not keep what merging and --add-to need")
    parser.add_argument("--unsafe-weights", action="store_true", help="read pickled weights too")
    parser.add_argument("--remote-code", action="store_true", help="run code that comes with the teacher")
    parser.add_argument("--quiet", action="store_true", help="no progress")


def run(options: argparse.Namespace) -> int:
    from stillvec.teachers.threads import torch_threads

    if options.threads is not None and options.threads < 1:
        raise UsageError(f"At least one thread is needed, and --threads {options.threads} came.")
    with torch_threads(options.threads):
        if "WORLD_SIZE" in os.environ:  # torchrun started this process, perhaps among several
            from stillvec.distributed.collectives import join_group

            with join_group(options.device) as team:
                return distilled(options, team)
        return distilled(options)


def distilled(options: argparse.Namespace, team: ProcessGroup | None = None) -> int:
    if options.out is None and not options.dry_run:
        raise UsageError("The folder to write is wanted: give --out DIR, or --dry-run, which writes nothing.")
    settings = Distillation(
        teacher=options.teacher,
        method=options.method,
        purpose=options.purpose,
        layer=options.layer,
        dim=options.dim,
        dictionary=options.dictionary,
        min_count=options.min_count,
        max_words=options.max_words,
        keep=tuple(read_words(options.keep)) if options.keep else (),
        lowercase=not options.cased,
        contexts=_contexts(options.contexts),
        seed=options.seed,
        unknown=options.unknown,
        device=options.device,
        precision=options.precision,
        unsafe_weights=options.unsafe_weights,
        remote_code=options.remote_code,
    )
    corpus = None
    if options.corpus:
        corpus = Corpus(*options.corpus, field=options.field, paragraphs=options.paragraphs, strict=options.strict)
    work = work_of(options, settings, corpus, team)
    if options.dry_run:
        tell(plan(work, quiet=options.quiet))
        return 0
    if work.reader.finishes:
        check_output(options.out, work)
    try:
        watch(saved_steps(work, options.out, statistics=not options.no_statistics), quiet=options.quiet)
    except KeyboardInterrupt:
        if work.checkpoint is None or not work.checkpoint.path.exists():
            raise
        raise StillvecError(f"Stopped; --resume goes on from {work.checkpoint.path}.") from None
    for name, result in work.results.items():
        note(
            f"{work.written[name]}: {len(result.vectors):,} words x {result.vectors.dim} by {result.manifest['method']}"
        )
    summary(work)
    return 0


def work_of(
    options: argparse.Namespace, settings: Distillation, corpus: Corpus | None, team: ProcessGroup | None
) -> Run:
    """A run of one process, or our share of one of several, or one that a cluster reads for."""
    others = "torchrun" if team is not None else "--engine ray" if options.engine == "ray" else None
    if others is None:
        if options.address or options.workers:
            raise UsageError("--address and --workers are for --engine ray; give it too.")
        reader: Reader = LocalReader(options.threads)
        given = {"store": options.store, "resume": options.resume, "out": options.out}
        return Run(settings, corpus, options.add_to, **given, reader=reader)
    for flag, given in (("--resume", options.resume), ("--dry-run", options.dry_run)):
        if given:
            raise UsageError(f"{flag} is for a run of one process; leave it out, or start one without {others}.")
    if team is None:
        if options.threads:
            raise UsageError("--threads is for this machine; a Ray cluster gives each worker its share of processors.")
        from stillvec.distributed.ray_reader import RayReader

        reader = RayReader(options.address, options.workers)
        return Run(settings, corpus, options.add_to, store=options.store, reader=reader)
    if options.engine == "ray":
        raise UsageError("torchrun and --engine ray each start processes of their own; leave one of them out.")
    from stillvec.distributed.torchrun_reader import TorchrunReader

    reader = TorchrunReader(team, options.threads)
    return Run(settings, corpus, options.add_to, store=options.store, reader=reader)


def plan(work: Run, *, quiet: bool) -> Plan:
    planning = Planning(work)
    watch(planning.steps(), quiet=quiet)
    assert planning.plan is not None
    return planning.plan


def tell(found: Plan) -> None:
    """A small table, on what the run will take."""
    corpus = f" of {found.n_corpus_words:,} in the corpus" if found.n_corpus_words else ""
    rows = [
        ("words of the vocabulary", f"{found.n_words:,}{corpus}"),
        ("the teacher reads", f"about {found.n_sentences:,} texts, {found.n_tokens:,} pieces"),
        ("time", f"about {format_duration(found.seconds)}, before methods are finished"),
        ("memory", f"{format_bytes(found.memory)} at the peak"),
        ("memory of the GPU", format_bytes(found.device_memory) if found.device_memory else ""),
        ("disk", f"{format_bytes(found.disk)}, and {format_bytes(2 * found.checkpoint)} for checkpoints meanwhile"),
        ("disk for contexts", f"about {format_bytes(found.store)}" if found.store else ""),
        ("device", f"{found.device}, {found.precision}"),
    ]
    table("What the run will take", ("", ""), [row for row in rows if row[1]])


def format_duration(seconds: float) -> str:
    """Seconds in words."""
    if seconds < 120:
        return f"{seconds:,.0f} s"
    return f"{seconds / 60:,.0f} min" if seconds < 7200 else f"{seconds / 3600:,.1f} h"


def summary(work: Run) -> None:
    """One line on what was read."""
    read, corpus = work.read_facts.to_manifest(), work.corpus_facts.to_manifest()
    if corpus["words"] and not read["pieces"]:
        note("The teacher was not asked: its contexts were kept by an earlier run.")
    elif corpus["words"]:
        note(
            f"The teacher read {read['sentences']:,} sentences, {read['words']:,} of {corpus['words']:,} words, "
            f"in {read['seconds']:,.0f} s ({read['pieces_a_second']:,} pieces a second)."
        )


def _contexts(text: str) -> int | None:
    if text == "all":
        return None
    try:
        return int(text)
    except ValueError:
        raise UsageError(f"--contexts takes a number or 'all', and {text!r} came.") from None
