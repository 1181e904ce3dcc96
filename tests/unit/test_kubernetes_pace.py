"""When a pod's conditions are sent."""

from __future__ import annotations

import pytest

from streams_runtime.kubernetes.pace import (
    BETWEEN,
    BETWEEN_COUNTS,
    LONGEST_RETRY,
    REFUSED_RETRY,
    Reported,
    due_at,
)
from streams_runtime.kubernetes.pod_conditions import ClientView, Condition, conditions
from streams_runtime.states import ClientState


def restoring(left: int) -> tuple[Condition, ...]:
    return conditions(ClientView(ClientState.REBALANCING, restoring_tasks=1, records_left=left))


RUNNING = conditions(ClientView(ClientState.RUNNING, running_tasks=1))


def test_the_first_report_is_due_at_once() -> None:
    due = due_at(RUNNING, Reported())
    assert due is not None
    assert due <= 0


def test_what_is_known_already_is_never_due() -> None:
    assert due_at(RUNNING, Reported().accepted(RUNNING, 10)) is None
    assert due_at(restoring(7), Reported().accepted(restoring(7), 10)) is None


def test_a_change_waits_half_a_second_after_the_report_before() -> None:
    assert due_at(RUNNING, Reported().accepted(restoring(0), 10)) == 10 + BETWEEN


def test_what_is_owed_waits_for_an_outage_only() -> None:
    reported = Reported().accepted(restoring(0), 10)
    due = due_at(RUNNING, reported, owed=True)
    assert due is not None
    assert due <= 10
    assert due_at(RUNNING, reported.failed(20, 0.5), owed=True) == 20 + 0.5
    assert due_at(restoring(0), reported, owed=True) is None


def test_a_new_count_alone_waits_five_seconds() -> None:
    assert due_at(restoring(6), Reported().accepted(restoring(7), 10)) == 10 + BETWEEN_COUNTS


def test_a_new_note_is_no_count() -> None:
    late = conditions(ClientView(ClientState.RUNNING, running_tasks=1, note="late"))
    assert due_at(late, Reported().accepted(RUNNING, 10)) == 10 + BETWEEN


def test_back_off_doubles_to_its_longest_and_ends_with_an_answer() -> None:
    reported = Reported()
    delays = []
    for _ in range(12):
        reported = reported.failed(100, spread=0.5)
        delays.append(reported.not_before - 100)
    assert delays[:4] == [0.5, 1, 2, 4]
    assert delays[-1] == LONGEST_RETRY
    assert due_at(RUNNING, reported) == 100 + LONGEST_RETRY
    assert due_at(restoring(1), reported.accepted(RUNNING, 200)) == 200 + BETWEEN


@pytest.mark.parametrize("spread", [0.0, 1.0])
def test_retries_are_spread_by_a_quarter(spread: float) -> None:
    assert Reported().failed(0, spread).not_before == pytest.approx(0.5 * (0.75 + spread / 2))


def test_an_asked_for_patience_is_kept() -> None:
    assert Reported().failed(100, spread=0.5, retry_after=12).not_before == 112


def test_after_a_refusal_it_asks_once_a_minute() -> None:
    assert due_at(RUNNING, Reported().refused(100)) == 100 + REFUSED_RETRY
