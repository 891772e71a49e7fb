"""`refine`, `combine`, `merge` and `convert`: vectors in, vectors out, with their provenance."""

from __future__ import annotations

import dataclasses
import os
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

from stillvec.combination import COMBINERS, Combiner
from stillvec.errors import StillvecWarning, UsageError
from stillvec.files import check_not_input, check_replaceable, file_digest, lock_outputs, scratch_folder
from stillvec.formats import (
    FORMATS,
    VectorSource,
    format_by_ending,
    load,
    name_sets,
    open_vectors,
    read_manifest,
    save,
    write_folder,
)
from stillvec.formats.request import (
    Request,
    digest_json,
    digest_setting_files,
    digest_vectors,
    load_finished,
    warn_finished,
)
from stillvec.formats.stillvec_folder import LAYOUT
from stillvec.input_checks import check_arguments, describe
from stillvec.pipeline.previous_result import merge_results
from stillvec.progress import Progress, show_progress
from stillvec.refinement import Step, describe_step, read_step, refine_steps, unknown_steps
from stillvec.registry import create
from stillvec.vectors import WordVectors

COMBINERS.register("attention", "stillvec.heads.source_attention:AttentionSum")  # trains a head, of a layer above

StepSpec = str | Step | Mapping[str, Any]


def refine(
    vectors: VectorSource,
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
    oov: "subword" fits, last, character n-grams for out-of-vocabulary words; "attributes" adds the other words of a
        lexicon (default: none).
    like: a folder whose own refine steps are done first (default: none).
    out: the folder to write (default: nothing is written).
    force: replace what exists; in a folder that stillvec did not write, only files of the same names (default: False).
    progress: True shows a bar in a terminal or a notebook, and lines elsewhere; a function gets a `Progress` event per
        step (default: False).
    """
    check_arguments(refine, locals())
    given = read_steps(steps, oov, like)
    sets = _Inputs([vectors])
    request = request_refine(given, sets) if out is not None else None
    with _reserve(out, request, [vectors, like], force=force) as finished:
        if finished is not None:
            return finished
        (before,) = (after,) = sets.opened
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
            _write(after, out, request, force=force)
        return after


def combine(
    vectors: Sequence[VectorSource],
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
    names: names of the sets, for the provenance (default: from their paths, else numbers).
    out: the folder to write (default: nothing is written).
    force: replace what exists; in a folder that stillvec did not write, only files of the same names (default: False).
    """
    check_arguments(combine, locals())
    if not isinstance(method, str) and not callable(method):
        raise UsageError.expected("the name of a combiner, or an object of its class", describe(method), where="method")
    if len(vectors) < 2:
        raise UsageError.expected("two or more sets of vectors", len(vectors), where="combine")
    combiner = create(COMBINERS, method) if isinstance(method, str) else method
    labels = [*names] if names is not None else name_sets(vectors)
    if len(labels) != len(vectors):
        raise UsageError.expected(f"{len(vectors)} names", len(labels), where="names")
    name = COMBINERS.name_of(combiner)
    settings = dataclasses.asdict(combiner)  # type: ignore[call-overload]
    sets = _Inputs(vectors, labels)
    request = request_combine(combiner, sets)
    with _reserve(out, request, vectors, force=force) as finished:
        if finished is not None:
            return finished
        combined = combiner(*sets.opened)
        spaces = [{"name": label} | space for label, space in zip(labels, combined.provenance["combined"], strict=True)]
        combined = combined.with_provenance(
            {**combined.provenance, "method": name, "settings": settings, "combined": spaces}
        )
        if out is not None:
            _write(combined, out, request, force=force)
        return combined


def merge(
    folders: Sequence[str | os.PathLike[str]], *, out: str | os.PathLike[str] | None = None, force: bool = False
) -> WordVectors:
    """Merge results that were distilled from different corpora with the same method, settings and teacher.

    Parameters
    ----------
    folders: two or more, with their statistics.
    out: the folder to write (default: nothing is written).
    force: replace what exists; in a folder that stillvec did not write, only files of the same names (default: False).
    """
    check_arguments(merge, locals())
    request = request_merge(folders)
    with _reserve(out, request, folders, force=force) as finished:
        if finished is not None:
            return finished
        result = merge_results(folders)
        if out is not None:
            result.save(out, request=request, force=force)
    return result.vectors


def convert(
    vectors: VectorSource,
    out: str | os.PathLike[str],
    *,
    format: str | None = None,
    source_format: str | None = None,
    replace_space: str | None = None,
    contexts: bool = False,
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
    contexts: write the context table of `stillvec train --context-table` instead of the vectors (default: False).
    force: replace what exists; in a folder that stillvec did not write, only files of the same names (default: False).
    """
    check_arguments(convert, locals())
    place = Path(out)
    name = format or format_by_ending(place)
    check_not_input(place, _paths_of([vectors]), FORMATS[name].layout)
    existing: UsageError | None = None
    try:
        check_replaceable(place, FORMATS[name].layout, force=force)
    except UsageError as error:
        if error.code != "exists":
            raise
        existing = error
    with lock_outputs([place], FORMATS[name].layout):
        opened = vectors if isinstance(vectors, WordVectors) else load(vectors, format=source_format)
        if contexts:
            opened = _take_contexts(opened)
        if replace_space is not None:
            opened = _replace_spaces(opened, replace_space)
        if existing is None:
            save(opened, place, format=name, force=force)
        else:
            with scratch_folder() as folder:
                save(opened, folder / place.name, format=name)
                missing = _find_missing(folder, place.parent)
            if missing is None:
                raise existing
            if missing:  # an earlier call was killed before it wrote all of its files
                save(opened, place, format=name, force=True)
            else:
                warn_finished(place, f"{len(opened):,} words x {opened.dim}, format {name}")
    return opened


def request_refine(steps: Sequence[Step], sets: _Inputs | None = None) -> Request:
    """What decides the result of `refine`."""
    return (sets or _Inputs(())).request("refine", steps=[*map(describe_step, steps)])


def request_combine(method: str | Combiner, sets: _Inputs | None = None) -> Request:
    """What decides the result of `combine`."""
    combiner = create(COMBINERS, method) if isinstance(method, str) else method
    settings = dataclasses.asdict(combiner)  # type: ignore[call-overload]
    name, files = COMBINERS.name_of(combiner), digest_setting_files(settings)
    return (sets or _Inputs(())).request("combine", method=name, settings=settings, files=files)


def request_merge(folders: Sequence[str | os.PathLike[str]]) -> Request:
    """What decides the result of `merge`."""

    def digest_results() -> dict[str, str]:
        digests = [f"{Path(folder).name} {file_digest(Path(folder) / 'manifest.json')}" for folder in folders]
        return {f"result {number}": text for number, text in enumerate(digests, 1)}

    return Request("merge", {}, digest_results)


class _Inputs:
    """Sets of vectors, opened on first use, and their names."""

    def __init__(self, vectors: Sequence[VectorSource], names: Sequence[str] = ()) -> None:
        self._vectors, self._names = vectors, names

    @cached_property
    def opened(self) -> list[WordVectors]:
        return [*map(open_vectors, self._vectors)]

    def request(self, verb: str, **settings: Any) -> Request:
        return Request(verb, settings, self._digest)

    def _digest(self) -> dict[str, str]:
        names = zip_longest(self.opened, self._names)
        digests = [f"{name} {digest_vectors(each)} {digest_json(each.provenance)}" for each, name in names]
        return {f"set {number}": text for number, text in enumerate(digests, 1)}


def read_steps(
    steps: Sequence[StepSpec | Sequence[StepSpec]], oov: str | None, like: str | os.PathLike[str] | None
) -> list[Step]:
    flat = chain.from_iterable(step if isinstance(step, list | tuple) else [step] for step in steps)
    given = [*_steps_of(like), *map(read_step, flat), *unknown_steps(oov)]
    if not given:
        cure = "name one, such as center (on the command line after --step)"
        raise UsageError.expected("at least one step", "none", where="refine", cure=cure)
    return given


def _paths_of(vectors: Sequence[VectorSource | None]) -> list[str | os.PathLike[str]]:
    return [path for path in vectors if isinstance(path, str | os.PathLike)]


@contextmanager
def _reserve(
    out: str | os.PathLike[str] | None, request: Request | None, inputs: Sequence[VectorSource | None], *, force: bool
) -> Iterator[WordVectors | None]:
    """Keep an output for this call; yields the vectors in it if they are the result of the same request."""
    if out is None or request is None:
        yield None
        return
    if force or not request.has_settings_of(out):
        check_replaceable(out, LAYOUT, force=force)
    check_not_input(out, _paths_of(inputs), LAYOUT)
    with lock_outputs([out], LAYOUT):
        yield load_finished(out) if request.check(out, force=force) else None


def _write(vectors: WordVectors, out: str | os.PathLike[str], request: Request | None, *, force: bool) -> None:
    decided = None if request is None else request.to_manifest()
    write_folder(vectors, out, vectors.provenance, request=decided, force=force)


def _find_missing(new: Path, place: Path) -> list[Path] | None:
    """The files of a folder that another lacks; None if it has one with other bytes."""
    pairs = [(file, place / file.relative_to(new)) for file in new.rglob("*") if file.is_file()]
    if any(there.exists() and file_digest(there) != file_digest(file) for file, there in pairs):
        return None
    return [there for _, there in pairs if not there.exists()]


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


def _take_contexts(vectors: WordVectors) -> WordVectors:
    if vectors.contexts is None:
        cure = "train them with stillvec train --context-table"
        raise UsageError.expected("vectors with a context table", "none", where="contexts", cure=cure)
    return vectors.contexts


def _replace_spaces(vectors: WordVectors, char: str) -> WordVectors:
    if not char or set(char) & set(" \t\n"):
        raise UsageError.expected("characters that are no space, as in '_'", repr(char), where="replace_space")
    old = vectors.vocabulary
    words = [word.replace(" ", char) for word in old.words]
    for word, before in zip(words, old.words, strict=True):
        if word != before and word in old.index:
            raise UsageError.conflict(f"with {char!r} in place of the space, {before!r} becomes {word!r}, another word")
    vocabulary = old.like(words, old.counts.tolist())
    subwords, contexts = vectors.subwords, vectors.contexts
    return WordVectors(vocabulary, vectors.matrix, subwords=subwords, contexts=contexts, provenance=vectors.provenance)
