"""Old names of flags, still accepted with a warning."""

import argparse
from collections.abc import Sequence
from typing import Any

from stillvec.errors import warn_renamed


def add_renamed(parser: argparse.ArgumentParser, old: str, new: argparse.Action) -> None:
    """Accept `old` for the option `new`; it is not shown in the help."""
    flag = new.option_strings[-1]

    class Renamed(argparse.Action):
        def __call__(
            self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, used: str | None = None
        ) -> None:
            warn_renamed("flag", old, flag)
            new(parser, namespace, values, used)

    options: dict[str, Any] = {"nargs": new.nargs, "const": new.const, "type": new.type, "choices": new.choices}
    known: Sequence[str] = ("nargs", "const", "type", "choices")
    parser.add_argument(
        old,
        action=Renamed,
        dest=new.dest,
        default=argparse.SUPPRESS,
        help=argparse.SUPPRESS,
        **{key: options[key] for key in known if options[key] is not None},
    )
