"""`judge`: a test of the user's own field, rated on a page in minutes."""

from __future__ import annotations

import logging
import os
import webbrowser
from collections.abc import Callable
from pathlib import Path

from stillvec.corpus import Corpus, CorpusSource, open_corpus
from stillvec.errors import UsageError
from stillvec.evaluation.pair_proposals import propose_pairs
from stillvec.evaluation.rated_pairs_file import RatingFiles
from stillvec.exploration.rating_server import RatingServer
from stillvec.files import inner_name
from stillvec.formats import VectorSets, open_sets
from stillvec.input_checks import check_arguments, check_count

MIN_RATED = 10  # pairs, for a correlation that means anything


def judge(
    corpus: CorpusSource,
    vectors: VectorSets,
    *,
    data: str | os.PathLike[str] = "own",
    n_pairs: int = 100,
    seed: int = 0,
    port: int = 0,
    open_browser: bool = True,
    notify: Callable[[str], None] | None = None,
) -> RatingFiles:
    """Propose pairs of words of a corpus and serve a page on which they are rated, until it says that this is all.

    `evaluate(vectors, data, only=files.name)` then scores any vectors on the ratings. A call with the same corpus and
    folder continues where the last one ended.

    Returns the pairs and ratings, which are also in the files.

    Parameters
    ----------
    corpus: text of the field: files, folders and globs, a list of texts, or a `Corpus`.
    vectors: the vectors that will be compared; pairs are words that all of them have, and none is favoured.
    data: the folder of the test: `similarity/NAME.tsv` has the ratings, a dataset as any other (default: own).
    n_pairs: pairs to propose; a hundred take about five minutes (default: 100).
    seed: of the choice and order of the pairs (default: 0).
    port: port of the page (default: a free one).
    open_browser: open the page in the default browser (default: True).
    notify: receives one line with the address of the page (default: logging).
    """
    check_arguments(judge, locals())
    check_count(n_pairs, "n_pairs", least=MIN_RATED)
    files = open_test(corpus, vectors, data, n_pairs, seed)
    notify = notify or logging.getLogger(__name__).info
    if not files.n_left:
        return files
    with RatingServer(files, port) as server:
        left = f"{files.n_left} of {len(files.pairs)} pairs to rate"
        notify(f"{left} at {server.address} (press Ctrl-C to stop, and run the same command to go on)")
        if open_browser:
            webbrowser.open(server.address)
        try:
            server.serve_forever(poll_interval=0.1)
        except KeyboardInterrupt:
            notify(f"stopped; {files.n_rated} pairs are rated")
    return files


def open_test(
    corpus: CorpusSource, vectors: VectorSets, data: str | os.PathLike[str], n_pairs: int, seed: int
) -> RatingFiles:
    """The test of a corpus in a folder; its pairs are proposed if it is new."""
    source = open_corpus([corpus])
    if source is None:
        raise UsageError.expected("a corpus: files, folders or globs", "none")
    folder = Path(data)
    if folder.exists() and not folder.is_dir():
        raise UsageError.expected("a folder", "a file", path=folder)
    files = RatingFiles.open(folder, _name(corpus, source))
    if not files.pairs:
        sets = [*open_sets(vectors).values()]
        if not sets:
            raise UsageError.expected("at least one set of vectors", "none", where="vectors")
        files.propose(propose_pairs(source, sets, n_pairs, seed))
    return files


def _name(given: CorpusSource, corpus: Corpus) -> str:
    """The name of the test: that of the folder, or of the first file without its ending."""
    if isinstance(given, (str, os.PathLike)) and Path(given).is_dir():
        return Path(given).resolve().name or "texts"
    return Path(inner_name(Path(corpus.sources[0]))).stem if corpus.sources else "texts"
