"""Train on one dataset, test on others: `tagging:source=wikigold` (Liu, Winata & Fung 2020 and others).

The models of every other dataset in the folder that has only labels of the source are trained on the training part of
the source, and what is selected is selected on its development part; nothing of the tested dataset is seen. A dataset
without a test file is tested whole, and one that has only a test file can be tested.
"""

from collections.abc import Collection, Generator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from stillvec.errors import DatasetError, UsageError
from stillvec.evaluation.tasks import Answers, Items, TokenTask
from stillvec.heads.sequence_batches import Representation
from stillvec.heads.splits import part_of, parts_beside, whole_datasets


@dataclass(frozen=True)
class TransferTask(TokenTask):
    """A task whose models may be trained on another dataset than the one that is tested."""

    source: str = field(default="", kw_only=True)  # dataset to train on; tested on the others with its labels

    def find(self, folder: Path) -> list[Path]:
        paths = super().find(folder)
        if not self.source or not paths:
            return paths
        source = self._locate(folder / self.files[0])
        known = {label for file in parts_beside(source).values() for label in self.list_labels(file)}
        chosen = [path for path in paths if path != source and self._can_test(path, known)]
        if not chosen:
            what = f"a dataset with no other labels than {self.source}: {', '.join(sorted(known)[:9])}"
            raise DatasetError.expected(what, "none", path=folder / self.files[0], code="no-data")
        return chosen

    def other_data(self, path: Path) -> tuple[Path, ...]:
        return (self._locate(path.parent),) if self.source else ()

    def choose_files(self, path: Path) -> dict[str, Path]:
        """The file of each part: the test part of `path`, the others of the source."""
        if not self.source:
            return parts_beside(path)
        of_source = parts_beside(self._locate(path.parent))
        return {"test": path} | {part: file for part, file in of_source.items() if part != "test"}

    def answer_steps(self, lookup: Representation, items: Items) -> Generator[float, None, Answers]:
        (answers,) = yield from self.answer_sets([lookup], items)
        return answers

    def answer_sets(self, lookups: Sequence[Representation], items: Items) -> Generator[float, None, list[Answers]]:
        """The answers of several sets of vectors or teachers, whose networks are trained together."""
        raise NotImplementedError

    def list_labels(self, path: Path) -> Collection[str]:
        """The labels that occur in a file."""
        raise NotImplementedError

    def _locate(self, folder: Path) -> Path:
        paths = {part_of(path)[0].rstrip("."): path for path in whole_datasets(folder, self.files[1:])}
        name = self.source.lower()
        if name not in paths:
            raise UsageError.unknown("dataset", self.source, paths, where=f"{folder} for source=")
        return paths[name]

    def _can_test(self, path: Path, known: set[str]) -> bool:
        """Whether a file has only these labels; also if it cannot be read, which the evaluation then reports."""
        try:
            return known.issuperset(self.list_labels(path))
        except DatasetError:
            return True
