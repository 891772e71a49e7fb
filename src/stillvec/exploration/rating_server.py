"""A page on which pairs of words are rated, one after the other, with the keys 0 to 4; every rating is written at once.

The page sends a token that only it knows, so that no other page in the browser can rate.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Mapping
from typing import Any

from stillvec.errors import UsageError
from stillvec.evaluation.rated_pairs_file import SCALE, RatingFiles
from stillvec.exploration.page_server import PageServer, Query
from stillvec.report.web_page import fill_template, join_assets, read_asset

_SKIP = "skip"


class RatingServer(PageServer):
    """`serve_forever()` returns when the page says that the user is done."""

    def __init__(self, files: RatingFiles, port: int = 0) -> None:
        self.files = files
        self.token = secrets.token_urlsafe(24)
        parts, policy = join_assets("stillvec.exploration", "rating.css", ["rating.js"], "'self'")
        page = fill_template(read_asset("stillvec.exploration", "rating.html"), parts | {"token": self.token})
        super().__init__(None, port, content=(page, policy), queries=_QUERIES)

    def describe(self, query: Query) -> dict[str, Any]:
        self._check(query)
        ratings = [self.files.ratings.get(at, "") for at in range(len(self.files.pairs))]
        shown = [_SKIP if score is None else score for score in ratings]
        return {"pairs": self.files.pairs, "ratings": shown, "scale": SCALE, "file": str(self.files.rated)}

    def rate(self, query: Query) -> dict[str, Any]:
        self._check(query)
        score = query.one("score")
        self.files.rate(query.number("pair", -1), None if score == _SKIP else query.number("score", -1))
        return {"rated": self.files.n_rated, "left": self.files.n_left}

    def finish(self, query: Query) -> dict[str, Any]:
        self._check(query)
        threading.Thread(target=self.shutdown, daemon=True).start()  # it waits for this answer
        return {"rated": self.files.n_rated}

    def _check(self, query: Query) -> None:
        if not secrets.compare_digest(query.one("token", "").encode(), self.token.encode()):
            raise UsageError("The token is wrong: open the page again.", code="wrong-token")


_QUERIES: Mapping[str, Callable[[Any, Query], Any]] = {
    "pairs": lambda server, query: server.describe(query),
    "rate": lambda server, query: server.rate(query),
    "finish": lambda server, query: server.finish(query),
}
