"""Every error a user can meet: the templates write the message; tests look at `code`, `path` and `line`."""

import difflib
import errno
import os
import sys
import warnings
from collections.abc import Iterable
from typing import Self

Place = str | os.PathLike[str] | None
Line = int | None
_NO_MEMORY = ("allocate memory", "out of memory", "map segment from shared object", "dctx create failed")
_UNSUPPORTED = {"gensim": (3, 14)}  # package: the first Python that it has no release for
_MOST_NAMES = 32  # listed when no known name is close
_MOST_CHARACTERS = 300  # of what was given


class StillvecError(Exception):
    """The root of every error that stillvec raises on purpose.

    `code` names the kind of failure and never changes with the wording; `path` and `line` say where it was found.
    """

    code: str = "error"
    path: str | None = None
    line: int | None = None

    def __init__(self, message: str, *, code: str | None = None, path: Place = None, line: Line = None) -> None:
        super().__init__(message)
        self.code = code or self.code
        self.path, self.line = None if path is None else os.fspath(path), line

    @classmethod
    def expected(
        cls,
        what: str,
        got: object,
        *,
        where: str = "",
        cure: str = "",
        path: Place = None,
        line: Line = None,
        code: str = "unexpected-value",
    ) -> Self:
        """`FILE:LINE: WHERE: expected WHAT, got GOT; CURE.` `where` is what is wrong: a flag, a setting, a column."""
        place = ": ".join(part for part in (_place(path, line), where) if part)
        sentence = f"expected {what}, got {_shorten(str(got))}"
        sentence = f"{place}: {sentence}" if place else sentence[0].upper() + sentence[1:]
        return cls(_finish(sentence, cure), code=code, path=path, line=line)

    @classmethod
    def unknown(
        cls, kind: str, name: object, known: Iterable[str], *, where: str = "", path: Place = None, line: Line = None
    ) -> Self:
        """`Unknown KIND 'NAME' in WHERE; did you mean 'X'?`, or the list of known names."""
        place = f" in {where}" if where else ""
        prefix = f"{_place(path, line)}: unknown" if path is not None else "Unknown"
        message = f"{prefix} {kind} {_shorten(repr(name))}{place}; {suggest(str(name), known)}"
        return cls(message, code="unknown-name", path=path, line=line)

    @classmethod
    def not_found(cls, path: str | os.PathLike[str], expected: str, *, cure: str = "") -> Self:
        """`No such file or folder: PATH (expected WHAT).`"""
        message = f"No such file or folder: {os.fspath(path)} (expected {expected})"
        return cls(_finish(message, cure), code="not-found", path=path)

    @classmethod
    def conflict(cls, message: str, *, cure: str = "", path: Place = None) -> Self:
        """Two things that are right by themselves do not go together."""
        return cls(_finish(message, cure), code="conflict", path=path)


class UsageError(StillvecError):
    """A setting, a name or a combination of flags that makes no sense."""

    code = "usage"


class TargetError(UsageError, ValueError):
    """Labels that a classifier cannot learn; a `ValueError` too, as in scikit-learn."""


class MissingExtra(StillvecError):  # noqa: N818 - it is not an error in the program
    """A part needs a package that is not installed."""

    code = "missing-extra"

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__("")
        self.args = (package, extra, purpose)  # so that it can be pickled

    def __str__(self) -> str:
        names, extra, purpose = self.args
        packages = str(names).split(", ")
        noun = "package" if len(packages) == 1 else "packages"
        absent = [*filter(lacks_release, packages)]
        python = f"Python {sys.version_info.major}.{sys.version_info.minor}"
        whole = f"{purpose} needs the {noun} {', '.join(map(repr, packages))}"
        if absent == packages:
            return f"{whole}, which {'has' if len(packages) == 1 else 'have'} no release for {python}."
        note = f" ({', '.join(absent)}: no release for {python})" * bool(absent)
        return f"{whole}: pip install 'stillvec[{extra}]'{note}."


def lacks_release(package: str) -> bool:
    """Whether a package cannot be installed on this Python."""
    return sys.version_info >= _UNSUPPORTED.get(package, (99,))


class InputError(StillvecError):
    """Something read from outside is not what it should be."""

    code = "bad-input"


class CorpusError(InputError):
    """Text that cannot be read."""

    @classmethod
    def from_change(cls, name: str) -> Self:
        """A file that something writes to while it is read."""
        message = f"{name} changed while it was read; start again when nothing writes to it any more."
        return cls(message, code="changed", path=name)


class FormatError(InputError):
    """A file or folder of vectors that cannot be read or written."""


class DatasetError(InputError):
    """A file of evaluation items that cannot be read."""


class LexiconError(InputError):
    """A dictionary or word list that cannot be read."""


class VocabularyError(StillvecError):
    """No words, or words that cannot be used."""

    code = "vocabulary"


class UnknownWordError(VocabularyError, KeyError):
    """A word that has no vector; a `KeyError` too, as in gensim."""

    __str__ = Exception.__str__  # that of KeyError puts the message into quotes


class TeacherError(StillvecError):
    """A model that cannot be loaded, or cannot serve as a teacher."""

    code = "teacher"


class TrainingError(StillvecError):
    """Training that diverges, or cannot continue."""

    code = "training"


class StillvecWarning(UserWarning):
    """Shown once, work continues."""


class AlreadyFinished(StillvecWarning):
    """A result exists that was made with the same settings and inputs; it is returned, and nothing is computed."""

    def __init__(self, message: str, path: Place = None) -> None:
        super().__init__(message)
        self.path = None if path is None else os.fspath(path)


class DeprecatedName(StillvecWarning):
    """An old name of a flag, a setting or a part; the new one is in the message."""


def warn_renamed(kind: str, old: str, new: str, *, stacklevel: int = 3) -> None:
    """Tell the user that `old` still works and will not for ever."""
    warnings.warn(f"{kind} {old!r} is deprecated; use {new!r}.", DeprecatedName, stacklevel=stacklevel)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether memory was short, by the error of Python, the system, torch, or a library that could not be loaded."""
    if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
        return True
    text = str(error).lower()
    return isinstance(error, RuntimeError | ImportError | OSError) and any(sign in text for sign in _NO_MEMORY)


def out_of_memory(
    stage: str, checkpoint: str | os.PathLike[str] | None = None, *, distills: bool = True
) -> StillvecError:
    """The error of a run that memory is too short for; one with a checkpoint can continue, with the same settings."""
    cure = "close other programs, or give it less data"
    if distills:
        cure = "close other programs, or give fewer --max-words; stillvec distill --dry-run estimates what a run needs"
    if checkpoint is not None:
        cure = f"with more memory, --resume continues from {os.fspath(checkpoint)}; --dry-run estimates what it needs"
    return StillvecError(f"Out of memory while {stage}; {cure}.", code="out-of-memory")


def suggest(name: str, known: Iterable[str]) -> str:
    """The end of a sentence that helps: the closest known name, or all of them."""
    names = sorted(set(known))
    close = difflib.get_close_matches(name, names, n=1)
    if close:
        return f"did you mean {close[0]!r}?"
    more = f" and {len(names) - _MOST_NAMES:,} more" if len(names) > _MOST_NAMES else ""
    return f"expected one of {', '.join(names[:_MOST_NAMES])}{more}." if names else "there is none."


def _place(path: Place, line: Line) -> str:
    name = "" if path is None else os.fspath(path)
    return f"{name}:{line}" if name and line is not None else name


def _shorten(text: str) -> str:
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}..."


def _finish(sentence: str, cure: str) -> str:
    whole = f"{sentence}; {cure}" if cure else sentence
    return whole if whole.endswith((".", "?", "!")) else f"{whole}."
