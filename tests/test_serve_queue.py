"""The queue of the server's work: turns, cancelled requests, threads that come back."""

from __future__ import annotations

import asyncio
import threading

from stillvec.service.fair_queue import FairQueue


def test_clients_take_turns() -> None:
    order: list[str] = []

    async def run_all() -> None:
        queue, gate = FairQueue(1, "test"), threading.Event()
        first = asyncio.create_task(queue.run("greedy", gate.wait))
        await asyncio.sleep(0)
        jobs = [queue.run(name, lambda name=name: order.append(name)) for name in ["greedy"] * 3 + ["other"]]
        tasks = [asyncio.create_task(job) for job in jobs]
        await asyncio.sleep(0)
        gate.set()
        await asyncio.gather(first, *tasks)
        queue.close()

    asyncio.run(run_all())
    assert order == ["greedy", "other", "greedy", "greedy"]


def test_a_cancelled_request_leaves_the_queue_and_a_running_one_keeps_its_thread() -> None:
    async def run_all() -> str:
        queue, gate = FairQueue(1, "test"), threading.Event()
        running = asyncio.create_task(queue.run("a", gate.wait))
        waiting = asyncio.create_task(queue.run("a", lambda: "never"))
        last = asyncio.create_task(queue.run("b", lambda: "answered"))
        await asyncio.sleep(0)
        running.cancel()
        waiting.cancel()
        await asyncio.sleep(0.05)
        assert not last.done()  # the thread still works for the cancelled request
        gate.set()
        result = await asyncio.wait_for(last, 30)
        queue.close()
        return result

    assert asyncio.run(run_all()) == "answered"


def test_a_request_cancelled_when_its_turn_comes_passes_the_thread_on() -> None:
    async def run_all() -> str:
        queue, gate = FairQueue(1, "test"), threading.Event()
        running = asyncio.create_task(queue.run("a", gate.wait))
        next_one = asyncio.create_task(queue.run("b", lambda: "never"))
        await asyncio.sleep(0)
        gate.set()
        await running
        queue._release()  # gives the thread to `next_one`, which is cancelled before it runs
        next_one.cancel()
        await asyncio.sleep(0)
        result = await asyncio.wait_for(queue.run("c", lambda: "answered"), 30)
        queue.close()
        return result

    assert asyncio.run(run_all()) == "answered"
