"""An interactive page to explore vectors: served on this machine, or exported as one file that needs no server."""

import logging
import os
import webbrowser
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from stillvec.corpus import CorpusSource, open_corpus
from stillvec.errors import UsageError
from stillvec.exploration.examples import ExampleReader
from stillvec.exploration.explorer import MAX_SETS, Explorer
from stillvec.exploration.page_export import (
    build_export_page,
    build_live_page,
    build_page_data,
    export_steps,
)
from stillvec.exploration.page_server import PageServer
from stillvec.exploration.word_columns import load_columns
from stillvec.exploration.word_lookup import LexiconRelations
from stillvec.exploration.word_map import DEFAULT_PROJECTIONS, PROJECTIONS, WordMap, compute_map, find_projection
from stillvec.formats import VectorSets, open_sets
from stillvec.input_checks import check_arguments
from stillvec.lexicons import read_lexicon
from stillvec.progress import Progress, drain, show_progress
from stillvec.search import SearchIndex

__all__ = ["DEFAULT_PROJECTIONS", "PROJECTIONS", "Explorer", "PageServer", "WordMap", "build_export_page"]
__all__ += ["build_live_page", "build_page_data", "compute_map", "create_explorer", "explore", "export_steps"]

PathLike = str | os.PathLike[str]


def explore(
    vectors: VectorSets,
    *,
    corpus: CorpusSource | None = None,
    lexicon: PathLike | None = None,
    layers: VectorSets | None = None,
    columns: PathLike | Mapping[str, Iterable[Any]] | None = None,
    projections: Sequence[str] = (),
    index: SearchIndex | PathLike | None = None,
    port: int = 0,
    open_browser: bool = True,
    notify: Callable[[str], None] | None = None,
    export: PathLike | None = None,
    n_words: int = 5000,
    progress: bool | Callable[[Progress], object] = False,
) -> None:
    """Serve the explorer page on this machine until Ctrl-C, or export it as one file that needs no server.

    Args:
        vectors: One to three sets of vectors: vectors or their path, a list of these, or a mapping from names to these.
        corpus: Text to show example sentences from: files, a list of files or texts, or a `Corpus`.
        lexicon: Source of relations and parts of speech: "wordnet", a folder or a file.
        layers: Vectors of a teacher's layers, shown with the details of a word.
        columns: A table with the column `word` and others to colour, filter and search the map by: a CSV, TSV or
            Parquet file, a data frame, or a mapping of columns.
        projections: The maps to offer, first the one to show: "tsne", "pca", "umap" (default: all; an exported page
            has t-SNE and PCA).
        index: An index of documents (`stillvec.index`) or its path, to search in; not in an exported page.
        port: Port to serve the page on; 0 chooses a free one.
        open_browser: Open the page in the default browser.
        notify: Receives one line with the address of the page (default: logging).
        export: File to write instead of serving the page.
        n_words: Number of words per set in the exported page, the most frequent first.
        progress: Of the export, as in `distill`: True shows a bar, a function receives the events.
    """
    check_arguments(explore, locals())
    for method in projections:
        find_projection(method)  # a missing package is reported before the page is opened
    projections = projections or (tuple(PROJECTIONS) if export is None else DEFAULT_PROJECTIONS)
    explorer = create_explorer(
        vectors,
        corpus=corpus,
        lexicon=lexicon,
        layers=layers,
        columns=columns,
        index=index,
        projections=projections,
    )
    if export is not None:
        with show_progress(progress) as listener:
            drain(export_steps(explorer, export, n_words), listener)
        return
    notify = notify or logging.getLogger(__name__).info
    with PageServer(explorer, port) as server:
        notify(f"The explorer page is at {server.address} (press Ctrl-C to stop)")
        if open_browser:
            webbrowser.open(server.address)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            notify("stopped")


def create_explorer(
    vectors: VectorSets,
    *,
    corpus: CorpusSource | None = None,
    lexicon: PathLike | None = None,
    layers: VectorSets | None = None,
    columns: PathLike | Mapping[str, Iterable[Any]] | None = None,
    projections: Sequence[str] = DEFAULT_PROJECTIONS,
    index: SearchIndex | PathLike | None = None,
) -> Explorer:
    """Load what the explorer page needs; the parameters are those of `explore`."""
    if isinstance(vectors, Sequence) and not isinstance(vectors, str) and len(vectors) > MAX_SETS:
        raise UsageError.expected(f"1 to {MAX_SETS} sets of vectors", len(vectors))
    texts = None if corpus is None else open_corpus([corpus])
    sets = open_sets(vectors)
    words = (word for table in sets.values() for word in table.words)
    relations = None if lexicon is None else LexiconRelations(read_lexicon(lexicon), words)
    reader = ExampleReader(texts) if texts else None
    table = None if columns is None else load_columns(columns)
    documents = index if index is None or isinstance(index, SearchIndex) else SearchIndex.load(index)
    other_layers = {} if layers is None else open_sets(layers)
    return Explorer(sets, relations, reader, other_layers, table, [*projections], index=documents)
