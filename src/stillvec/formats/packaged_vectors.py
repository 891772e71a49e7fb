"""Vectors that come as a Python package of their own, by name: `load("english")`."""

import importlib.util
import os
from pathlib import Path

from stillvec.errors import FormatError

PACKAGED_VECTORS = {"english": "stillvec_english"}  # name: the package, with a stillvec folder `vectors` in it


def find_packaged(path: str | os.PathLike[str]) -> Path | None:
    """The folder of packaged vectors, or None if the path is not the name of any.

    Where the package is installed, the name means the package; a file or folder of that name is `./english`.
    """
    if not isinstance(path, str) or path not in PACKAGED_VECTORS:
        return None
    spec = importlib.util.find_spec(PACKAGED_VECTORS[path])
    if spec is not None and spec.submodule_search_locations:
        return Path(spec.submodule_search_locations[0]) / "vectors"
    if Path(path).exists():
        return None
    distribution = PACKAGED_VECTORS[path].replace("_", "-")
    cure = f"install the package {distribution}: pip install ./packages/{path} in a clone of stillvec"
    raise FormatError.not_found(path, "vectors", cure=cure)
