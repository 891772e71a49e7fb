"""Every error a user can meet; each message says what was wanted, what came, where, and the cure.

StillvecError
├── CallError          a setting, name or combination of flags that makes no sense
├── MissingExtra       a part needs a package that is not installed
├── InputError         something read from outside is not what it should be
│   ├── CorpusError    text
│   ├── FormatError    a file or folder of vectors
│   ├── DatasetError   a file of evaluation items
│   └── LexiconError   a dictionary or word list
├── VocabularyError    no words, or words that cannot be
├── TeacherError       a model that cannot be loaded, or cannot serve as a teacher
└── TrainingError      training that leads nowhere, or cannot go on

StillvecWarning        said once, work goes on
"""

from __future__ import annotations


class StillvecError(Exception):
    """The root: whatever stillvec refuses to do, it refuses with one of these."""


class CallError(StillvecError):
    """A setting, a name or a combination of flags that makes no sense."""


class MissingExtra(StillvecError):  # noqa: N818 - it is not an error in the program
    """A part needs a package that is not installed."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs the package {package!r}, which is not installed: pip install 'stillvec[{extra}]'."
        )


class InputError(StillvecError):
    """Something read from outside is not what it should be."""


class CorpusError(InputError):
    """Text that cannot be read."""


class FormatError(InputError):
    """A file or folder of vectors that cannot be read or written."""


class DatasetError(InputError):
    """A file of evaluation items that cannot be read."""


class LexiconError(InputError):
    """A dictionary or word list that cannot be read."""


class VocabularyError(StillvecError):
    """No words, or words that cannot be."""


class TeacherError(StillvecError):
    """A model that cannot be loaded, or cannot serve as a teacher."""


class TrainingError(StillvecError):
    """Training that leads nowhere, or cannot go on."""


class StillvecWarning(UserWarning):
    """Said once, work goes on."""
