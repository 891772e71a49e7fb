"""Vectors over HTTP (the extra `serve`): a FastAPI application and the server that runs it.

`application` makes the app of several `Sets`, `running.serve` runs it until it is told to stop; `Limits` says how much
one request may ask for. Only `Limits` can be imported where the extra is not installed.
"""

from stillvec.service.limits import Limits

__all__ = ["Limits"]
