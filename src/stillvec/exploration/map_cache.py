"""The maps of several sets, each laid once, in a thread of its own and one at a time."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

import numpy as np

from stillvec.errors import StillvecError, UsageError
from stillvec.exploration.word_map import WordMap, mapping
from stillvec.progress import Progress
from stillvec.vectors import WordVectors

_FAILURES = (StillvecError, OSError, MemoryError, ArithmeticError, ValueError, np.linalg.LinAlgError)


@dataclass(frozen=True)
class Atlas:
    maps: dict[str, Progress | WordMap | Exception] = field(default_factory=dict)
    _looking: threading.Lock = field(default_factory=threading.Lock)
    _laying: threading.Lock = field(default_factory=threading.Lock)

    def look(self, name: str, vectors: WordVectors) -> Progress | WordMap:
        """The map of a set, or how far it is; the first look begins it."""
        with self._looking:
            if name not in self.maps:
                self.maps[name] = Progress("waiting for its turn", 0, None, "", 0.0)
                threading.Thread(target=self._lay, args=(name, vectors), daemon=True).start()
            state = self.maps[name]
        if isinstance(state, Exception):
            raise UsageError(f"The map of {name} could not be laid: {state}")
        return state

    def _lay(self, name: str, vectors: WordVectors) -> None:
        with self._laying:
            try:
                for state in mapping(vectors):
                    self.maps[name] = state
            except _FAILURES as error:
                self.maps[name] = error
