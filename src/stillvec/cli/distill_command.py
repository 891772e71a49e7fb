"""stillvec distill: a teacher and a corpus in, word vectors out."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from stillvec.cli.console import is_finished, note, table
from stillvec.cli.flags import add_cache, add_common, add_renamed
from stillvec.cli.progress_bar import show_events
from stillvec.cli.train_command import CORPUS_HELP, add_settings, corpus_of, print_results, settings_of
from stillvec.errors import UsageError
from stillvec.learners import LEARNERS
from stillvec.pipeline.corpus_counts import list_examples
from stillvec.pipeline.result_folders import locate_results
from stillvec.pipeline.settings import CONTEXTS, PURPOSES, Distillation, format_preset
from stillvec.progress import format_bytes, format_duration
from stillvec.verbs.distillation import distill_all, plan
from stillvec.vocabulary.segmenters import SPACES, describe_segmenter

if TYPE_CHECKING:
    from stillvec.pipeline.plan import Plan
    from stillvec.vectors import WordVectors


_MIN_REPORTED = 1_000_000  # bytes of statistics


def arguments(parser: argparse.ArgumentParser) -> None:
    add, defaults = parser.add_argument, Distillation()
    words = f"{CORPUS_HELP}; none: words without context (--include-words, or the teacher's own)"
    add("corpus", nargs="*", metavar="CORPUS", help=words)
    add("--out", metavar="DIR", help="the folder to write; not needed with --dry-run")
    add_common(parser, "--force")
    teacher = f"a folder, a name on the Hugging Face Hub, or a packaged teacher (default: {defaults.teacher})"
    add("--teacher", metavar="DIR_OR_NAME[,...]", help=f"{teacher}; several are joined into one space")
    add_settings(parser, defaults, LEARNERS, "several share one pass and get a folder each")
    recipe = f"what the vectors are for; determines what auto combines (default: {defaults.purpose})"
    purpose = add("--for", dest="purpose", choices=PURPOSES, help=recipe)
    add_renamed(parser, "--purpose", purpose)
    add("--layer", metavar="N|last|best|all|A-B", help="the teacher's layer; 0 is its input")
    add("--dictionary", metavar="wordnet|FILE", help="glosses that auto uses in addition to the corpus")
    senses = "up to N more vectors for each ambiguous word, with example sentences, which nearest shows"
    add("--senses", type=int, metavar="N", help=senses)
    contexts = f"contexts per word that the teacher reads (default: {CONTEXTS}, or the preset's)"
    language = "language of the templates around single words, such as de; none: words alone (default: detected)"
    add("--language", metavar="auto|CODE|none", help=language)
    add("--contexts", metavar="N|all", help=contexts)
    add("--device", metavar="auto|cpu|cuda", help="where the teacher runs (default: auto)")
    add("--precision", metavar="auto|fp32|bf16|fp16|int8", help="number format of the teacher (default: auto)")
    prompt = "put this prompt of a sentence-transformers teacher before every text (off: no prompt; default: its own)"
    add("--prompt", metavar="NAME", help=prompt)
    threads = "CPU threads; with a GPU, processes that read and tokenize the text (default: one per core)"
    add("--threads", type=int, metavar="N", help=threads)
    add(
        "--add-to",
        metavar="DIR",
        help="add this corpus to an earlier result, with its settings unless others are given",
    )
    default = "(default: $STILLVEC_CACHE, or the user's cache)"
    add_cache(parser, f"methods that train cache the teacher's contexts {default}")
    add("--dry-run", action="store_true", help="estimate the time, memory and disk space of the run without running it")
    add("--resume", action="store_true", help="continue from the checkpoint of an interrupted run")
    engine = "read in this process (or those of torchrun), or with the workers of a Ray cluster (default: %(default)s)"
    add("--engine", choices=("local", "ray"), default="local", help=engine)
    add(
        "--address", metavar="HOST:PORT", help="address of the Ray cluster (default: $RAY_ADDRESS, else one is started)"
    )
    add("--workers", type=int, metavar="N", help="Ray workers (default: one per GPU, else one per CPU)")
    add("--no-statistics", action="store_true", help="do not write what merge and --add-to need")
    add("--unsafe-weights", action="store_true", help="load pickled weights too")
    add("--remote-code", action="store_true", help="run code that comes with the teacher")
    add_common(parser, "--quiet")


def run(options: argparse.Namespace) -> int:
    if options.out is None and not options.dry_run:
        raise UsageError("--out DIR is required, except with --dry-run.", code="missing-out")
    given = settings_of(options, Distillation)
    if options.contexts not in (None, "all"):
        given["contexts"] = _contexts(options.contexts)
    given |= {"add_to": options.add_to, "context_cache": options.context_cache, "threads": options.threads}
    corpus = corpus_of(options)
    if options.dry_run:
        if options.engine == "ray":
            raise UsageError.conflict("--dry-run works with a single process only, without --engine ray")
        with show_events(quiet=options.quiet) as listener:
            estimate = plan(*corpus, **given, out=options.out, resume=options.resume, progress=listener)
        _print_plan(estimate)
        return 0
    given |= {name: getattr(options, name) for name in ("out", "force", "resume", "engine", "address", "workers")}
    with show_events(quiet=options.quiet) as listener:
        results = distill_all(*corpus, **given, statistics=not options.no_statistics, progress=listener)
    print_results(results, options.out)
    if not any(is_finished(path) for path in locate_results(options.out, results).values()):
        print_reading(results)
    if not options.quiet:
        for path in locate_results(options.out, results).values():
            _print_statistics(path)
    if results:  # of several processes, the first has them
        listener.print_time()
    return 0


def _print_statistics(folder: Path) -> None:
    file = folder / "statistics.safetensors"
    if not is_finished(folder) and file.is_file() and file.stat().st_size >= _MIN_REPORTED:
        whole = format_bytes(sum(each.stat().st_size for each in folder.iterdir() if each.is_file()))
        what = f"{format_bytes(file.stat().st_size)} of the {whole} in {folder} are statistics of the text"
        note(f"{what}, for merge and --add-to; --no-statistics leaves them out.")


def _print_plan(estimate: Plan) -> None:
    corpus = f" of {estimate.n_corpus_words:,} in the corpus" if estimate.n_corpus_words else ""
    cache = f"about {format_bytes(estimate.store)}" if estimate.store else ""
    rows = [
        ("vocabulary", f"{estimate.n_words:,} words{corpus}"),
        *_describe_choice(estimate),
        ("words are", "" if estimate.segmenter == SPACES else describe_segmenter(estimate.segmenter)),
        ("teacher and text", "" if estimate.fit is None else estimate.fit.describe()),
        ("the teacher reads", f"about {estimate.n_sentences:,} texts, {estimate.n_tokens:,} tokens"),
        ("time", f"about {format_duration(estimate.seconds)}, without finishing the methods"),
        ("memory", f"at most {_round_up(estimate.memory)} at the peak"),
        ("GPU memory", format_bytes(estimate.device_memory) if estimate.device_memory else ""),
        ("disk", f"{format_bytes(estimate.disk)}, and {format_bytes(2 * estimate.checkpoint)} for checkpoints"),
        ("disk for cached contexts", cache),
        ("device", f"{estimate.device}, {estimate.precision}"),
        ("set by the preset", format_preset(estimate.preset)),
    ]
    table("Estimate of the run", ("", ""), [row for row in rows if row[1]])


def _describe_choice(estimate: Plan) -> list[tuple[str, str]]:
    choice = estimate.choice
    more = ", ..." if choice.n_filtered > len(choice.filtered) else ""
    left_out = f"{choice.n_filtered:,}: {', '.join(choice.filtered)}{more}" if choice.n_filtered else ""
    found = {"phrases": choice.phrases, "words with hyphens": choice.hyphenated}
    rows = [(what, f"{len(words):,}: {list_examples(words)}") for what, words in found.items() if words]
    return [*rows, ("frequent words left out", left_out)]


def _round_up(n_bytes: int) -> str:
    """Bytes as text, not less than they are."""
    step = 10 ** max(0, len(str(n_bytes)) - 2)
    return format_bytes(-(-n_bytes // step) * step)


def print_reading(results: dict[str, WordVectors]) -> None:
    """One line on what the teacher read."""
    for vectors in [each for each in results.values() if "read" in each.provenance][:1]:
        read, n_words = vectors.provenance["read"], vectors.provenance["corpus"]["words"]
        if n_words and not read["pieces"]:
            note("The teacher was not run: its contexts were cached by an earlier run.")
        elif n_words:
            text = f"{read['sentences']:,} sentences with {read['words']:,} of {n_words:,} words"
            pace = f"{read['pieces']:,} tokens in {read['seconds']:,.0f} s ({read['pieces_a_second']:,} per second)"
            note(f"The teacher read {text}; in all {pace}.")


def _contexts(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise UsageError.expected("a number or 'all'", repr(text), where="--contexts") from None
