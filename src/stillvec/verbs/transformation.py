"""`refine`, `combine`, `merge` and `convert`: vectors in, vectors out, with their provenance."""

import dataclasses
import os
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from stillvec.combination import COMBINERS, Combiner
from stillvec.errors import StillvecWarning, UsageError
from stillvec.files import reserve_output
from stillvec.files.path_names import unique_names
from stillvec.formats import FORMATS, format_by_ending, load, open_vectors, read_manifest, save
from stillvec.formats.arrow_table import ArrowTable
from stillvec.formats.stillvec_folder import LAYOUT
from stillvec.pipeline.previous_result import merge_results
from stillvec.progress import Progress, show_progress
from stillvec.refinement import Step, read_step, refine_steps, unknown_steps
from stillvec.registry import create
from stillvec.vectors import WordVectors
from stillvec.vocabulary import Vocabulary

Vectors = WordVectors | str | os.PathLike[str] | ArrowTable
StepSpec = str | Step | Mapping[str, Any]


def refine(
    vectors: Vectors,
    *steps: StepSpec | Sequence[StepSpec],
    oov: str | None = None,
    like: str | os.PathLike[str] | None = None,
    out: str | os.PathLike[str] | None = None,
    force: bool = False,
    progress: bool | Callable[[Progress], object] = False,
) -> WordVectors:
    """Refine vectors by one step after another; their provenance says each step and what it lost.

    >>> vectors = WordVectors(["ice", "snow"], [[1, 2], [3, 2]])
    >>> refine(vectors, "center", "normalize").matrix.tolist()
    [[-1.0, 0.0], [1.0, 0.0]]

    Parameters
    ----------
    vectors: the vectors, the path of a folder or file, or a data frame (see `load`).
    steps: names with settings ("retrofit:lexicon=ppdb-xl.txt,sweeps=10"), objects of their classes, entries of a
        manifest, or lists of these.
    oov: "subword" fits, last, character n-grams for out-of-vocabulary words (default: none).
    like: a folder whose own refine steps are done first (default: none).
    out: the folder to write (default: nothing is written).
    force: replace files of the same names in a folder that stillvec did not write (default: False).
    progress: True shows a bar in a terminal or a notebook, and lines elsewhere; a function gets a `Progress` event per
        step (default: False).
    """
    with reserve_output(out, LAYOUT, force=force):
        flat = chain.from_iterable(step if isinstance(step, list | tuple) else [step] for step in steps)
        given = [*_steps_of(like), *map(read_step, flat), *unknown_steps(oov)]
        if not given:
            cure = "as in refine(vectors, 'center')"
            raise UsageError.expected("at least one step", "none", where="refine", cure=cure)
        before = after = open_vectors(vectors)
        begun = time.perf_counter()
        with show_progress(progress) as listener:
            for number, (description, after) in enumerate(refine_steps(before, given), 1):
                if listener is not None:
                    remark = _describe_effect(description, after)
                    seconds = time.perf_counter() - begun
                    listener(Progress(description["step"], number, len(given), "steps", seconds, remark))
        if before.subwords is not None and after.subwords is None:
            message = "The n-grams were fitted to the old vectors and are dropped; fit new ones with oov='subword'."
            warnings.warn(message, StillvecWarning, stacklevel=2)
        if out is not None:
            save(after, out, format="stillvec", force=force)
        return after


def combine(
    vectors: Sequence[Vectors],
    method: str | Combiner,
    *,
    names: Sequence[str] | None = None,
    out: str | os.PathLike[str] | None = None,
    force: bool = False,
) -> WordVectors:
    """Combine several sets of vectors into one.

    Parameters
    ----------
    vectors: two or more sets, paths of folders and files, or data frames.
    method: a combiner, with settings as in "svd:dim=100,words=intersection", or an object of its class.
    names: of the sets, for the provenance (default: from their paths, else numbers).
    out: the folder to write (default: nothing is written).
    force: replace files of the same names in a folder that stillvec did not write (default: False).
    """
    with reserve_output(out, LAYOUT, force=force):
        combiner = create(COMBINERS, method) if isinstance(method, str) else method
        labels = [*names] if names is not None else _names_of(vectors)
        if len(labels) != len(vectors):
            raise UsageError.expected(f"{len(vectors)} names", len(labels), where="names")
        combined = combiner(*map(open_vectors, vectors))
        spaces = [{"name": label} | space for label, space in zip(labels, combined.provenance["combined"], strict=True)]
        name = COMBINERS.name_of(combiner)
        settings = dataclasses.asdict(combiner)  # type: ignore[call-overload]
        combined = combined.with_provenance(
            {**combined.provenance, "method": name, "settings": settings, "combined": spaces}
        )
        if out is not None:
            save(combined, out, format="stillvec", force=force)
        return combined


def merge(
    folders: Sequence[str | os.PathLike[str]], *, out: str | os.PathLike[str] | None = None, force: bool = False
) -> WordVectors:
    """Merge results that were distilled from different corpora with the same method, settings and teacher.

    Parameters
    ----------
    folders: two or more, with their statistics.
    out: the folder to write (default: nothing is written).
    force: replace files of the same names in a folder that stillvec did not write (default: False).
    """
    with reserve_output(out, LAYOUT, force=force):
        result = merge_results(folders)
        if out is not None:
            result.save(out, force=force)
    return result.vectors


def convert(
    vectors: Vectors,
    out: str | os.PathLike[str],
    *,
    format: str | None = None,
    source_format: str | None = None,
    replace_space: str | None = None,
    force: bool = False,
) -> WordVectors:
    """Write vectors in another format, and return what was written.

    Parameters
    ----------
    vectors: the vectors, the path of a folder or file, or a data frame (see `load`).
    out: the file or folder to write; .gz, .bz2 and .xz compress a file.
    format: a name in `stillvec.formats.FORMATS` (default: by the ending of `out`).
    source_format: the format of `vectors` (default: recognised from the content).
    replace_space: what to write for a space inside a word (default: the space itself).
    force: replace files of the same names in a folder that stillvec did not write (default: False).
    """
    place = Path(out)
    name = format or format_by_ending(place)
    with reserve_output(place, FORMATS[name].layout, force=force):
        opened = vectors if isinstance(vectors, WordVectors) else load(vectors, format=source_format)
        if replace_space is not None:
            opened = _replace_spaces(opened, replace_space)
        save(opened, place, format=name, force=force)
    return opened


def _names_of(vectors: Sequence[Vectors]) -> list[str]:
    paths = [path for path in vectors if isinstance(path, str | os.PathLike)]
    if len(paths) == len(vectors) and paths:
        return unique_names(paths)
    return [f"vectors-{number}" for number in range(1, len(vectors) + 1)]


def _steps_of(folder: str | os.PathLike[str] | None) -> list[Step]:
    if folder is None:
        return []
    refined = read_manifest(folder).get("refined")
    if not refined:
        raise UsageError(f"The vectors {os.fspath(folder)} were not refined, so there are no steps to repeat.")
    return [read_step(step) for step in refined]


def _describe_effect(description: Mapping[str, Any], after: WordVectors) -> str:
    """`500 words x 32, mean cosine 0.999`, for people."""
    numbers = description.get("loss", {}) | description.get("gain", {})
    figures = "".join(f", {name} {value:.4g}" for name, value in numbers.items())
    size = "left out" if description.get("left_out") else f"{len(after):,} words x {after.dim}"
    return f"{size}{figures}"


def _replace_spaces(vectors: WordVectors, char: str) -> WordVectors:
    if not char or set(char) & set(" \t\n"):
        raise UsageError.expected("characters that are no space, as in '_'", repr(char), where="replace_space")
    old = vectors.vocabulary
    words = [word.replace(" ", char) for word in old.words]
    for word, before in zip(words, old.words, strict=True):
        if word != before and word in old.index:
            raise UsageError.conflict(f"With {char!r} for the space, {before!r} becomes the other word {word!r}")
    vocabulary = Vocabulary(words, old.counts.tolist(), lowercase=old.lowercase)
    return WordVectors(vocabulary, vectors.matrix, subwords=vectors.subwords, provenance=vectors.provenance)
