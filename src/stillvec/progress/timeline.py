"""One scale over all phases of a run: the fraction that is done, the time that is left, and where the time went.

Each activity has a weight, its usual share of the time. Inside an activity the events say how much is done. The rate is
a mean over about the last minute, older work counting less and less, so that the estimate is steady and still follows
a machine that becomes slower; activities still to come are estimated by their weights at that rate.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from stillvec.progress.events import Listener, Progress
from stillvec.progress.phases import Phase

_WINDOW = 60.0  # seconds after which work counts less than half for the rate
_MIN_SECONDS = 2.0  # an estimate from less means nothing
_LIMIT = 0.999  # before the end
_SHARED = {"templates": "reading", "training": "computing", "writing": "computing"}  # counted together


class Timeline:
    """Completes the events of a run by `fraction` and `remaining`; `finish` sums up where the time went.

    `weights` are the shares of the activities in the order in which they come. Texts of all kinds are one activity,
    "reading", and so is all that is done for each method after it, "computing".
    """

    def __init__(self, weights: Mapping[str, float], clock: Callable[[], float] = time.perf_counter) -> None:
        self.seconds: dict[str, float] = {}  # by activity, in the order in which they came
        self._clock = clock
        self._weights = {name: weight / sum(weights.values()) for name, weight in weights.items()}
        names = [*weights]
        self._later = {name: sum(self._weights[other] for other in names[n + 1 :]) for n, name in enumerate(names)}
        self._start = self._last = clock()
        self._activity = ""
        self._fraction = 0.0
        self._rate = _Rate()

    def __call__(self, event: Progress) -> Progress:
        if event.note:
            return replace(event, fraction=self._fraction)
        now = self._clock()
        self._account(now, event.stage.activity if isinstance(event.stage, Phase) else "")
        activity = _SHARED.get(self._activity, self._activity)
        weight, remaining = self._weights.get(activity, 0.0), None
        if weight:
            done, total = event.part or (0.0, 1.0)
            later = self._later[activity]
            rest = later + weight * (1 - min(done / total, 1.0))
            self._fraction = max(self._fraction, min(1 - rest, _LIMIT))
            if event.part is not None:
                self._rate.add(activity, now, done)
                rate = self._rate.value
                remaining = (total * (1 + later / weight) - done) / rate if rate else None
        return replace(event, fraction=self._fraction, remaining=remaining)

    def listen(self, listener: Listener) -> Listener:
        """A listener for events of the run that gives them, completed, to `listener`."""
        return lambda event: listener(self(event))

    def finish(self) -> Progress:
        """The last event; its remark says where the time went."""
        now = self._clock()
        self._account(now, "")
        parts = [f"{name} {seconds:.1f}" for name, seconds in self.seconds.items() if name]
        seconds = now - self._start
        return Progress(Phase.FINISHED, 0, None, "", seconds, ", ".join(parts), fraction=1.0, remaining=0.0)

    def _account(self, now: float, activity: str) -> None:
        """The time since the last event belongs to its activity."""
        self.seconds[self._activity] = self.seconds.get(self._activity, 0.0) + now - self._last
        self._activity, self._last = activity, now


class _Rate:
    """Work per second, as a mean in which older work counts less."""

    def __init__(self) -> None:
        self._activity = ""
        self._last = self._done = self._work = self._seconds = 0.0

    def add(self, activity: str, now: float, done: float) -> None:
        if activity == self._activity:
            decay = math.exp(-(now - self._last) / _WINDOW)
            self._work = self._work * decay + done - self._done
            self._seconds = self._seconds * decay + now - self._last
        else:
            self._activity, self._work, self._seconds = activity, 0.0, 0.0
        self._last, self._done = now, done

    @property
    def value(self) -> float:
        return self._work / self._seconds if self._seconds >= _MIN_SECONDS else 0.0
