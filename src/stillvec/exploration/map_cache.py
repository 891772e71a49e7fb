"""The maps of several sets of vectors, each computed once, in a background thread and one at a time."""

import threading
from dataclasses import dataclass, field

import numpy as np

from stillvec.errors import StillvecError, UsageError
from stillvec.exploration.word_map import WordMap, compute_map
from stillvec.progress import Progress, drain
from stillvec.vectors import WordVectors

_FAILURES = (StillvecError, OSError, MemoryError, ArithmeticError, ValueError, np.linalg.LinAlgError)


@dataclass(frozen=True)
class MapCache:
    maps: dict[str, Progress | WordMap | Exception] = field(default_factory=dict)
    _starting: threading.Lock = field(default_factory=threading.Lock)
    _computing: threading.Lock = field(default_factory=threading.Lock)

    def get(self, name: str, vectors: WordVectors) -> Progress | WordMap:
        """The map of a set, or the progress of computing it, which the first call starts."""
        with self._starting:
            if name not in self.maps:
                self.maps[name] = Progress("waiting for another map", 0, None, "", 0.0)
                threading.Thread(target=self._compute, args=(name, vectors), daemon=True).start()
            state = self.maps[name]
        if isinstance(state, Exception):
            raise UsageError(f"Cannot compute the map of {name}: {state}", code="map-failed")
        return state

    def _compute(self, name: str, vectors: WordVectors) -> None:
        with self._computing:
            try:
                self.maps[name] = drain(compute_map(vectors), lambda event: self.maps.update({name: event}))
            except _FAILURES as error:
                self.maps[name] = error
