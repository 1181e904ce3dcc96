"""The queue of rounds: each resource in turn, alone, soon, and without harm to the others."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter

import pytest

from streams_operator.model import Key
from streams_operator.reconcile.work_queue import FairQueue, RequeueAfter, WorkQueue

A, B = Key("ns", "a"), Key("ns", "b")


async def until(condition):
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.001)


def run(scenario, act, **options):
    async def main():
        queue = WorkQueue(act, debounce=0.01, chance=lambda: 0.0, **options)
        running = asyncio.create_task(queue.run())
        try:
            await scenario(queue)
        finally:
            running.cancel()

    asyncio.run(main())


def test_many_wakes_in_a_moment_are_one_round():
    rounds = []

    async def act(key):
        rounds.append(key)

    async def scenario(queue):
        for _ in range(100):
            queue.add(A)
        queue.add(B)
        await until(lambda: B in rounds)
        assert rounds == [A, B]

    run(scenario, act)


def test_a_resource_has_one_round_at_a_time_and_another_after_a_wake_during_it():
    inside, most, rounds = Counter(), Counter(), Counter()
    gate = asyncio.Event()

    async def act(key):
        inside[key] += 1
        most[key] = max(most[key], inside[key])
        rounds[key] += 1
        await gate.wait()
        inside[key] -= 1

    async def scenario(queue):
        queue.add(A)
        await until(lambda: rounds[A] == 1)
        queue.add(A)
        queue.add(B)
        await until(lambda: rounds[B] == 1)
        gate.set()
        await until(lambda: rounds[A] == 2)
        assert most[A] == 1

    run(scenario, act)


def test_no_more_rounds_at_once_than_allowed():
    inside, most, done = 0, 0, []

    async def act(key):
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        inside -= 1
        done.append(key)

    async def scenario(queue):
        for number in range(50):
            queue.add(Key("ns", str(number)))
        await until(lambda: len(done) == 50)
        assert most == 3

    run(scenario, act, parallel=3)


def test_a_round_that_asks_for_another_look_gets_it_and_an_event_comes_before_it():
    rounds = []

    async def act(key):
        rounds.append(key)
        return 0.01 if len(rounds) == 1 else 3600.0

    async def scenario(queue):
        queue.add(A)
        await until(lambda: len(rounds) == 2)
        queue.add(A)
        await until(lambda: len(rounds) == 3)

    run(scenario, act)


def test_a_failing_resource_is_logged_once_and_does_not_stop_others(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.WARNING)
    rounds: Counter[Key] = Counter()
    counted: Counter[str] = Counter()

    async def act(key):
        rounds[key] += 1
        if key == A:
            raise RuntimeError("broken") if rounds[A] < 3 else RequeueAfter("no quota", 0.0)

    async def scenario(queue):
        queue.add(A)
        for _ in range(3):
            before = rounds[A]
            queue.add(A, urgent=True)
            queue.add(B)
            await until(lambda before=before: rounds[A] > before)
        await until(lambda: rounds[B] >= 1)

    run(scenario, act, counted=lambda key, result, _: counted.update([f"{key.name}:{result}"]))
    lines = [record.getMessage() for record in caplog.records]
    assert sum("RuntimeError: broken" in line for line in lines) == 1
    assert sum("no quota" in line for line in lines) == 1
    assert counted["b:done"] >= 1
    assert counted["a:failed"] >= 3


def test_an_event_does_not_cut_a_back_off_short_unless_it_is_urgent():
    rounds: Counter[Key] = Counter()

    async def act(key):
        rounds[key] += 1
        if key == A:
            raise RequeueAfter("later", 3600.0, expected=True)

    async def scenario(queue):
        queue.add(A)
        await until(lambda: rounds[A] == 1)
        queue.add(A)
        queue.add(B)
        await until(lambda: rounds[B] == 1)
        # Later than the wake of A would have come.
        queue.add(B, 0.1)
        await until(lambda: rounds[B] == 2)
        assert rounds[A] == 1
        queue.add(A, urgent=True)
        await until(lambda: rounds[A] == 2)

    run(scenario, act)


def test_a_conflict_is_tried_again_without_a_line(caplog: pytest.LogCaptureFixture):
    rounds = []

    async def act(key):
        rounds.append(key)
        if len(rounds) == 1:
            raise RequeueAfter("conflict", expected=True)

    async def scenario(queue):
        queue.add(A)
        await until(lambda: len(rounds) == 2)

    run(scenario, act)
    assert not caplog.records


def test_at_the_end_the_rounds_under_way_finish_and_no_other_begins():
    rounds, ended = [], []
    gate = asyncio.Event()

    async def act(key):
        rounds.append(key)
        await gate.wait()
        ended.append(key)

    async def scenario(queue):
        queue.add(A)
        await until(lambda: rounds == [A])
        finishing = asyncio.create_task(queue.finish(20))
        await asyncio.sleep(0)
        queue.add(B, 0.0)
        gate.set()
        await finishing
        assert ended == [A]
        await asyncio.sleep(0.02)
        assert rounds == [A]

    run(scenario, act)


def test_a_resource_is_not_behind_all_of_another_namespace():
    async def scenario():
        queue = FairQueue()
        for number in range(100):
            queue.put(Key("large", str(number)))
        queue.put(Key("small", "one"))
        assert len(queue) == 101
        order = [await queue.get() for _ in range(101)]
        assert order.index(Key("small", "one")) == 1
        assert [key.name for key in order if key.namespace == "large"] == [str(number) for number in range(100)]
        assert len(queue) == 0

    asyncio.run(scenario())
