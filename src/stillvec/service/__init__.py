"""Vectors over HTTP (the extra `serve`): `serve` loads vectors and answers requests within `Limits`."""

import dataclasses
import logging
import os
from collections.abc import Callable, Mapping

import numpy as np

from stillvec.errors import UsageError
from stillvec.formats import open_vectors
from stillvec.heads.fitted_head import Head
from stillvec.heads.head_folder import is_head, load_head
from stillvec.input_checks import check_arguments
from stillvec.registry import require_all
from stillvec.search import SearchIndex
from stillvec.service.limits import Limits
from stillvec.vectors import WordVectors

__all__ = ["Limits", "serve"]

MIN_TOKEN = 16  # characters

VectorSource = WordVectors | Head | str | os.PathLike[str]


def serve(
    vectors: VectorSource | Mapping[str, VectorSource],
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    token: str | None = None,
    allow_remote: bool = False,
    in_memory: bool = False,
    index: SearchIndex | str | os.PathLike[str] | None = None,
    limits: Limits | None = None,
    notify: Callable[[str], None] | None = None,
    log_requests: Callable[[str], None] | None = None,
) -> None:
    """Serve vectors and heads over HTTP until SIGTERM or SIGINT (Ctrl-C).

    Args:
        vectors: Vectors, a head or their path, or several by name; requests that name none use the first.
        host: Address to listen on. Anything but a loopback address requires `token` or `allow_remote`.
        port: Port to listen on; 0 chooses a free one.
        token: Bearer token of at least 16 characters that requests must send; None requires none.
        allow_remote: Accept requests from other machines without a token.
        in_memory: Copy the vectors into memory, so that overwriting their files has no effect (default: memory-map).
        index: An index of documents (`stillvec.index`) or its path, which /v1/search searches (default: none).
        limits: Limits per request and on connections and concurrent requests (default: `Limits()`).
        notify: Receives one line when vectors are loaded, the server starts or an index is built (default: logging).
        log_requests: Receives one line per request, without the words of the query.
    """
    check_arguments(serve, locals())
    require_all(dict.fromkeys(("fastapi", "uvicorn", "usearch", "threadpoolctl"), "serve"), "stillvec serve")
    from stillvec.service.application import create_app
    from stillvec.service.models import ServedModels
    from stillvec.service.server import bind_socket, format_address, run_app

    if token is not None and len(token) < MIN_TOKEN:
        raise UsageError.expected(f"a token of at least {MIN_TOKEN} characters", f"{len(token)}", code="short-token")
    limits, notify = limits or Limits(), notify or logging.getLogger(__name__).info
    protected = token is not None or allow_remote
    with bind_socket(host, port, allow_remote=protected) as listener:
        opened = {name: _open(source) for name, source in _name_sources(vectors).items()}
        tables = {name: source for name, source in opened.items() if isinstance(source, WordVectors)}
        heads = {name: source for name, source in opened.items() if isinstance(source, Head)}
        if in_memory:
            tables = {name: _copy_to_memory(table) for name, table in tables.items()}
            heads = {name: _copy_head(head) for name, head in heads.items()}
        documents = index if index is None or isinstance(index, SearchIndex) else SearchIndex.load(index)
        models = ServedModels(tables, notify, documents, heads)
        for name, model in models.items():
            model.prepare()
            facts = f"{len(model.vectors):,} words, {model.vectors.dim} dimensions, {model.default_search} search"
            notify(f"{name}: {facts}")
        for name, served in models.heads.items():
            served.prepare()
            notify(
                f"{name}: a head {served.head.name}, {len(served.head.labels):,} labels, {len(served.vectors):,} words"
            )
        if documents is not None:
            documents.search("ready", 1)
            notify(f"index: {documents.n_documents:,} documents, {len(documents):,} passages")
        # DNS rebinding: a web page whose host name was pointed at this machine sends that name as Host
        hosts = () if protected else (host, "localhost", "127.0.0.1", "::1")
        app = create_app(models, limits, token=token, log=log_requests, hosts=hosts)
        access = "token required" if token is not None else "no token required"
        message = f"serving at {format_address(listener)}, {access}; see /docs; press Ctrl+C to stop"
        run_app(app, listener, limits, lambda: notify(message))


def _open(source: VectorSource) -> WordVectors | Head:
    if isinstance(source, Head) or (not isinstance(source, WordVectors) and is_head(source)):
        return source if isinstance(source, Head) else load_head(source)
    return open_vectors(source)


def _copy_head(head: Head) -> Head:
    arrays = {name: np.array(array) for name, array in head.arrays.items()}
    return Head(head.name, head.kind, _copy_to_memory(head.vectors), head.labels, arrays, head.manifest)


def _copy_to_memory(vectors: WordVectors) -> WordVectors:
    subwords = vectors.subwords
    if subwords is not None:
        subwords = dataclasses.replace(subwords, matrix=np.array(subwords.matrix))
    matrix = np.array(vectors.matrix)
    return WordVectors(vectors.vocabulary, matrix, subwords=subwords, provenance=vectors.provenance)


def _name_sources(vectors: VectorSource | Mapping[str, VectorSource]) -> Mapping[str, VectorSource]:
    if isinstance(vectors, Mapping):
        return vectors
    if isinstance(vectors, WordVectors | Head):
        return {"vectors" if isinstance(vectors, WordVectors) else "head": vectors}
    return {os.path.basename(os.path.abspath(vectors)): vectors}
