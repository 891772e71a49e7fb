"""stillvec evaluate VECTORS...: score sets of vectors, compare them and test differences for significance."""

import argparse
import dataclasses
from pathlib import Path
from typing import Any

from stillvec.cli import console
from stillvec.cli.flags import List, add_json, add_renamed
from stillvec.cli.progress_bar import show_events
from stillvec.cli.terminal_text import warn
from stillvec.errors import UsageError
from stillvec.evaluation import TASKS, Evaluation, Report
from stillvec.evaluation.candidates import Encoder, TeacherEncoder
from stillvec.evaluation.report_tables import build_tables, list_notes
from stillvec.evaluation.tasks import split_tasks, task_class
from stillvec.evaluation.teacher_states import is_teacher
from stillvec.evaluation.text_baselines import BASELINES, open_baselines
from stillvec.files import cache_folder
from stillvec.formats import local_path, read_manifest

_POLICIES = {
    "skip": "Items with OOV words are left out",
    "mean": "OOV words get the mean vector",
    "zero": "OOV words get the zero vector",
    "subword": "OOV words get a vector composed from their n-grams",
}


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags; the `dest` of a flag is the field of `Evaluation` that it sets."""
    add = parser.add_argument
    sources = "folders of vectors, or files in any supported format; teacher:NAME[@LAYER][:cls] is a teacher at a layer"
    add("vectors", metavar="VECTORS", nargs="+", help=sources)
    add("--data", metavar="DIR", help="folder with similarity/, analogy/, ... (default: $STILLVEC_DATA or gensim's)")
    own = "create a test for your field: rate pairs of words from this text in the browser (kept in --data, or own/)"
    add("--own", metavar="CORPUS", help=own)
    add("--pairs", type=int, metavar="N", help="pairs to propose with --own (default: 100)")
    add("--port", type=int, default=0, metavar="N", help="port for the page of --own (default: any free port)")
    add("--no-browser", action="store_true", help="with --own, do not open the page in the browser")
    tasks = f"tasks with optional settings: {', '.join(TASKS)} (default: all with data that are not costly)"
    add("--tasks", metavar="A,B:key=value", type=_tasks, help=tasks)
    add("--list-tasks", action=List, const=TASKS, help="list all tasks with their settings")
    add("--only", metavar="A,B", type=_names, help="names of the datasets to use (see stillvec datasets)")
    add("--all", action="store_true", dest="costly", help="also run costly tasks, those that train a model")
    add("--quick", action="store_true", help="run costly tasks with less data and one seed")
    oov = add("--oov", choices=[*_POLICIES], default="skip", help="policy for OOV words (default: skip)")
    add_renamed(parser, "--unknown", oov)
    ranking = "show where another OOV policy would change the ranking (implied by --report)"
    add_renamed(parser, "--policies", add("--compare-oov", action="store_true", help=ranking))
    lexicon = "lexicon used to refine the vectors: adds scores without the pairs it contains; may be repeated"
    repeated: dict[str, Any] = {"action": "append", "default": []}
    add("--lexicon", **repeated, dest="lexicons", metavar="FILE|wordnet", help=lexicon)
    add("--teacher", metavar="DIR", help="also evaluate this teacher on whole texts, as an upper bound")
    kinds = f"also evaluate this on whole texts ({', '.join(BASELINES)}), such as model2vec:DIR; may be repeated"
    baseline = add("--baseline", **repeated, metavar="KIND[:SOURCE]", help=kinds)
    add_renamed(parser, "--rival", baseline)
    neighbours = "show the share of common nearest neighbours of each two sets (implied by --report)"
    add("--overlap", action="store_true", help=neighbours)
    add_json(parser, words_follow=False)
    page = "write an HTML page, or tables as .md, .csv, .json or .tex; may be repeated"
    add("--report", **repeated, metavar="FILE.html", help=page)
    add("--seed", type=int, default=0, metavar="N", help="random seed of the bootstrap intervals (default: 0)")
    add("--no-cache", action="store_true", help="do not read or write cached answers ($STILLVEC_CACHE)")
    add("--quiet", action="store_true", help="do not show progress")


def run(options: argparse.Namespace) -> int:
    if options.report:
        from stillvec.report import check_writable

        for file in options.report:
            check_writable(Path(file))
    if options.own and not _rate_pairs(options):
        return 1
    work = make_evaluation(options)
    with show_events(quiet=options.quiet or options.json == "-") as listener:
        work.show_steps(listener)
    report = work.report
    console.show(report.to_json(), options.json, lambda: _print_report(report, options.oov))
    if options.report:
        _write_reports(options, work)
    for error in report.errors:
        warn(f"stillvec: {error}")
    return 1 if report.errors else 0


def _print_report(report: Report, oov: str) -> None:
    show_report(report)
    console.note(f"{_POLICIES[oov]}.")
    console.note(legend({score.task for score in report.scores}))


def _rate_pairs(options: argparse.Namespace) -> bool:
    """Rate the pairs of --own, and evaluate on these; False if there are too few."""
    from stillvec.exploration.field_test import MIN_RATED, judge
    from stillvec.input_checks import check_count

    if options.tasks or options.only:
        raise UsageError.conflict("--own evaluates on pairs that it proposes", cure="leave out --tasks and --only")
    options.data = options.data or "own"
    pairs: dict[str, Any] = {}
    if options.pairs is not None:
        pairs["n_pairs"] = check_count(options.pairs, "--pairs", least=MIN_RATED)
    place = {"data": options.data, "seed": options.seed, "port": options.port}
    vectors = [source for source in options.vectors if not is_teacher(source)]
    files = judge(options.own, vectors, **pairs, **place, open_browser=not options.no_browser, notify=console.note_now)
    if files.n_rated < MIN_RATED:
        console.note(
            f"{files.n_rated} pairs are rated; scores need {MIN_RATED} or more. Run the same command again to continue."
        )
        return False
    console.note(f"{files.n_rated} of {len(files.pairs)} pairs are rated, in {files.rated}.")
    options.tasks, options.only = ["similarity"], [files.name]
    return True


def make_evaluation(options: argparse.Namespace) -> Evaluation:
    """Create the evaluation from the flags; reports show OOV policies and overlaps, so `--report` enables both."""
    encoders: dict[str, Encoder] = {}
    if options.teacher:
        encoders["teacher"] = TeacherEncoder(options.teacher)
    encoders |= open_baselines(options.baseline)
    names = [field.name for field in dataclasses.fields(Evaluation) if field.init and hasattr(options, field.name)]
    settings = {name: getattr(options, name) for name in names}
    if options.report:
        settings |= {"compare_oov": True, "overlap": True}
    cache = None if options.no_cache else cache_folder() / "answers"
    return Evaluation(**settings, encoders=encoders, cache=cache)


def _write_reports(options: argparse.Namespace, work: Evaluation) -> None:
    from stillvec.report import write_report

    paths = [source for source in options.vectors if not is_teacher(source)]
    folders = {name: local_path(path) for name, path in zip(work.sets, paths, strict=True)}
    manifests = {name: read_manifest(path) for name, path in folders.items() if (path / "manifest.json").is_file()}
    for file in options.report:
        write_report(work.report, work.sets, file, manifests=manifests)
        if options.json != "-":
            console.note(f"Wrote {file}")


def show_report(report: Report) -> None:
    """Print all tables and notes of a report."""
    for table in build_tables(report, console.width()):
        console.table(table.title, table.columns, table.rows)
        for line in table.notes:
            console.note(line)
    for line in list_notes(report):
        console.note(line)


def legend(tasks: set[str]) -> str:
    """Explain the term "covered" for these tasks."""
    units = {task_class(task).item_unit for task in tasks}
    if units == {"text"}:
        return "A text counts as covered if at least one word in it has a vector."
    text = ", a text if at least one word has one" if "text" in units else ""
    return f"An item counts as covered if every word in it has a vector{text}."


def _tasks(text: str) -> list[str]:
    try:
        return split_tasks(text)
    except UsageError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]
