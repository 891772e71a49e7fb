"""stillvec adapt TEACHER --step NAME...: a teacher that is changed before it is distilled."""

import argparse

from stillvec.adaptation import ADAPTATIONS
from stillvec.adaptation.model_folder import read_adaptation
from stillvec.cli.console import is_finished, note
from stillvec.cli.flags import List, add_common
from stillvec.cli.progress_bar import show_events
from stillvec.verbs.teacher_adaptation import adapt


def arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    teacher = (
        "a folder, a name on the Hugging Face Hub, the packaged teacher minilm, or new, to create one with pretrain"
    )
    add("teacher", metavar="TEACHER", help=teacher)
    names = f"may be repeated; one of {', '.join(ADAPTATIONS)}; a key may be repeated"
    add("--step", action="append", default=[], metavar="NAME[:key=value,...]", help=names)
    add("--list-steps", action=List, const=ADAPTATIONS, help="list all steps with their settings")
    add_common(parser, "--out", "--force")
    device = "for steps that train (default: %(default)s)"
    add("--device", choices=("auto", "cpu", "cuda"), default="auto", help=device)
    add("--resume", action="store_true", help="continue from the last checkpoint of steps that train")
    add_common(parser, "--quiet")


def run(options: argparse.Namespace) -> int:
    settings = {name: getattr(options, name) for name in ("out", "device", "resume", "force")}
    with show_events(quiet=options.quiet) as listener:
        folder = adapt(options.teacher, options.step, **settings, progress=listener)
    if not is_finished(folder):
        for step in read_adaptation(folder)["adapted"][-len(options.step) :]:
            figures = ", ".join(f"{name} {_format(value)}" for name, value in step["facts"].items())
            note(f"{step['step']}: {figures}")
        note(f"Wrote {folder}; use it with stillvec distill --teacher {folder}.")
    return 0


def _format(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1e4 else f"{value:,.0f}"
    if isinstance(value, list):
        return " ".join(map(_format, value))
    if isinstance(value, dict):
        return " ".join(f"{name} {_format(each)}" for name, each in value.items())
    return f"{value:,}" if isinstance(value, int) else str(value)
