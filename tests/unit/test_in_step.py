"""Threads of an instance write to a repartition topic in the order of times, and wait for nobody in vain."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate, chain
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pipeline_kit import source, topology_of

from streams_runtime.tasks.in_step import InStep, Pace, slices

TOPOLOGY = topology_of(
    [source("string")],
    [
        {"name": "by", "from": "in", "keyBy": "value"},
        {"name": "n", "from": "by", "aggregate": {"n": "count(*)"}, "store": "n"},
    ],
)
WRITING, COUNTING = TOPOLOGY.subtopologies
TOPIC = "app-by-repartition"
LONG = 60.0
MANY = 10_000


class Log:
    """A topic that all threads write to; `send` is written by the next `flush`, as brokers have it."""

    def __init__(self) -> None:
        self.written: list[int] = []
        self._waiting: dict[int, list[int]] = {}

    def send(self, topic: str, keys: Sequence[bytes], values: Any, timestamps: Sequence[int], *_: Any) -> None:
        assert len(keys) == len(values) == len(timestamps)
        self._waiting.setdefault(threading.get_ident(), []).extend(timestamps)

    def flush(self) -> None:
        self.written += self._waiting.pop(threading.get_ident(), [])


def write(pace: Pace, log: Any, times: list[int]) -> None:
    pace.paced(log, WRITING).send(TOPIC, [b"k"] * len(times), [b"v"] * len(times), times)
    log.flush()
    pace.end()


def test_threads_with_backlogs_write_one_topic_in_the_order_of_times() -> None:
    in_step, log = InStep(), Log()
    paces = [Pace(in_step, f"t{number}", lambda: False) for number in range(3)]
    for pace in paces:
        pace.begin([WRITING], MANY)
    times = [list(range(number, 300_000, 700)) for number in range(3)]
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(write, paces, [log] * 3, times))
    assert sorted(log.written) == sorted(chain.from_iterable(times))
    behind = [come - each for each, come in zip(log.written, accumulate(log.written, max), strict=True)]
    assert max(behind) <= 2 * 3_000, "a hundredth of a batch, and that of who has gone ahead"


def test_who_has_nothing_in_work_keeps_nobody() -> None:
    in_step = InStep()
    one, other = (Pace(in_step, name, lambda: False) for name in ("one", "other"))
    one.begin([WRITING], MANY)
    other.begin([COUNTING], MANY)
    other.begin([WRITING], 10)
    log: Any = Log()
    assert one.paced(log, WRITING) is log, "the other reads the topic, and has few records for it"
    other.begin([WRITING], MANY)
    assert one.paced(log, COUNTING) is log
    assert one.paced(log, WRITING) is not log
    other.end()
    assert one.paced(log, WRITING) is log


@pytest.mark.parametrize("ends", ["the other ends", "told to stop", "patience"])
def test_a_wait_for_another_thread_ends(ends: str) -> None:
    in_step, stop = InStep(), threading.Event()
    in_step.begin("one")
    in_step.begin("other")
    deadline = time.monotonic() + (0 if ends == "patience" else LONG)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(in_step.reach, "one", 6, deadline, stop.is_set)
        if ends == "the other ends":
            in_step.end("other")
        elif ends == "told to stop":
            stop.set()
        waiting.result(LONG / 2)


@given(st.lists(st.integers(0, 10**7), min_size=1, max_size=50))
def test_slices_are_all_records_in_order_each_from_the_time_that_it_begins_at(times: list[int]) -> None:
    come = list(accumulate(times, max))
    found = list(slices(times))
    assert [each for _, part in found for each in times[part]] == times
    assert [moment for moment, _ in found] == [come[part.start] for _, part in found]
    assert len(found) <= 100
