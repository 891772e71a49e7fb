"""The folder for results that can be recomputed."""

import os
from pathlib import Path


def cache_folder() -> Path:
    """`$STILLVEC_CACHE`, else `stillvec` in the user's cache folder (`$XDG_CACHE_HOME`, `~/.cache`)."""
    if folder := os.environ.get("STILLVEC_CACHE"):
        return Path(folder)
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "stillvec"
