"""Work in threads, in turns: a client with many requests does not delay those of other clients."""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


class FairQueue:
    """Runs at most `n_threads` jobs at a time; waiting clients take turns."""

    def __init__(self, n_threads: int, name: str) -> None:
        # an own pool: work that outlives its request keeps its thread, so there are never more than the limit
        self._pool = ThreadPoolExecutor(n_threads, name)
        self._n_free = n_threads
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}  # by client, the next one first

    async def run(self, client: str, work: Callable[[], T]) -> T:
        """The result of `work`, computed in a thread when it is the client's turn."""
        loop = asyncio.get_running_loop()
        await self._wait_for_thread(client, loop.create_future())
        job = self._pool.submit(work)

        def release(_: object) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(self._release)

        job.add_done_callback(release)
        return await asyncio.wrap_future(job)

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    async def _wait_for_thread(self, client: str, turn: asyncio.Future[None]) -> None:
        if self._n_free:
            self._n_free -= 1
            return
        self._waiting.setdefault(client, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():  # it had a thread already
                self._release()
            raise

    def _release(self) -> None:
        """Give a free thread to the first request of the next client."""
        while self._waiting:
            client = next(iter(self._waiting))
            turns = self._waiting.pop(client)
            turn = turns.popleft()
            if turns:
                self._waiting[client] = turns  # now the last
            if not turn.done():
                turn.set_result(None)
                return
        self._n_free += 1
