"""When an instance counts as dead: only when a loop stands still and nothing excuses it."""

from __future__ import annotations

import threading

import pytest

from streams_runtime.processing.stop_signal import StopSign
from streams_runtime.query.server.liveness import (
    READY_SECONDS,
    TURN_SECONDS,
    WORK_SECONDS,
    Pulse,
    health_document,
    stuck_threads,
)
from streams_runtime.states import ThreadState

NOW = 10_000.0


def pulse(age: float, state: ThreadState = ThreadState.RUNNING, **more: bool) -> Pulse:
    return Pulse("t-1", state, NOW - age, **more)


def test_a_loop_that_turns_is_alive() -> None:
    assert stuck_threads([pulse(0), pulse(TURN_SECONDS)], NOW) == ()
    assert stuck_threads([], NOW) == ()


def test_a_loop_that_stands_still_without_a_reason_is_stuck() -> None:
    [stuck] = stuck_threads([pulse(1), pulse(TURN_SECONDS + 1), pulse(2)], NOW)
    assert (stuck.seconds, stuck.allowed) == (TURN_SECONDS + 1, TURN_SECONDS)


def test_readiness_ends_long_before_liveness_and_for_the_same_reasons() -> None:
    assert stuck_threads([pulse(READY_SECONDS + 1)], NOW) == ()
    [stuck] = stuck_threads([pulse(READY_SECONDS), pulse(READY_SECONDS + 1)], NOW, READY_SECONDS)
    assert stuck.allowed == READY_SECONDS
    assert stuck_threads([pulse(READY_SECONDS + 1, computing=True)], NOW, READY_SECONDS) == ()


@pytest.mark.parametrize("reason", ["computing", "restoring"])
def test_a_computation_of_spark_and_a_restoration_may_take_longer(reason: str) -> None:
    assert stuck_threads([pulse(WORK_SECONDS, **{reason: True})], NOW) == ()
    assert len(stuck_threads([pulse(WORK_SECONDS + 1, **{reason: True})], NOW)) == 1


@pytest.mark.parametrize("state", list(ThreadState))
def test_a_thread_that_has_not_started_or_has_ended_is_never_stuck(state: ThreadState) -> None:
    judged = state not in (ThreadState.CREATED, ThreadState.DEAD)
    assert bool(stuck_threads([pulse(1e9, state)], NOW)) is judged


def test_the_account_names_the_thread_and_since_when() -> None:
    stuck = stuck_threads([pulse(400)], NOW)
    assert health_document(stuck, now=1_700_000_400) == {
        "status": "stuck",
        "threads": [
            {
                "name": "t-1",
                "state": "RUNNING",
                "since": "2023-11-14T22:13:20+00:00",
                "seconds": 400,
                "allowed": 300,
            }
        ],
    }
    assert health_document((), now=0) == {"status": "ok"}


def test_looking_at_the_stop_sign_is_a_sign_of_life() -> None:
    sign = StopSign()
    for look in (sign.is_set, lambda: sign.wait(0)):
        sign.looked_at = 0.0
        assert not look()
        assert sign.looked_at > 0
    sign.looked_at = 0.0
    threading.Thread(target=sign.set).start()
    assert sign.wait(60)
    assert sign.is_set()


def test_asking_a_thread_to_stop_is_none() -> None:
    sign = StopSign()
    sign.looked_at = 0.0
    sign.set()
    assert sign.looked_at == 0.0
