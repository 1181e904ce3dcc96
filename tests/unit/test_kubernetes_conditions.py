"""The conditions of a pod: what each state of a client makes of them, and when their time moves."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from streams_operator import names
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.kubernetes import pod_conditions as runtime_names
from streams_runtime.kubernetes.client_view import RecordsLeft
from streams_runtime.kubernetes.pod_conditions import (
    MESSAGE_LENGTH,
    ClientView,
    Condition,
    Failure,
    Transitions,
    bounded,
    conditions,
)
from streams_runtime.states import ClientState

BOOM = Failure("DeserializationException", "record orders-0@7 can't be read")
FAILED = {ClientState.PENDING_ERROR, ClientState.ERROR}


def said(view: ClientView) -> dict[str, Condition]:
    return {each.type.partition("/")[2]: each for each in conditions(view)}


def test_the_runtime_and_the_operator_call_the_conditions_the_same() -> None:
    ours = {name: value for name, value in vars(runtime_names).items() if name.startswith("CONDITION_")}
    theirs = {name: value for name, value in vars(names).items() if name.startswith("CONDITION_")}
    assert ours == theirs
    assert runtime_names.ANNOTATION_LEAVE == names.ANNOTATION_LEAVE
    asking = ClientView(ClientState.ERROR, failure=BOOM, shutdown_requested=True, paused=True)
    assert {each.type for each in conditions(asking)} == set(theirs.values())


@pytest.mark.parametrize("state", list(ClientState))
def test_running_holds_in_running_only_and_its_reason_is_the_state(state: ClientState) -> None:
    running = said(ClientView(state, failure=BOOM if state in FAILED else None))["Running"]
    assert (running.holds, running.reason) == (state is ClientState.RUNNING, state.value)


@pytest.mark.parametrize("state", list(ClientState))
def test_a_client_is_not_restartable_from_pending_error_on(state: ClientState) -> None:
    restartable = said(ClientView(state, failure=BOOM))["Restartable"]
    if state in FAILED:
        assert restartable == Condition("streamsoperator.io/Restartable", False, BOOM.name, BOOM.text)
    else:
        assert restartable == Condition("streamsoperator.io/Restartable", True, "NoError")


@pytest.mark.parametrize(
    ("view", "holds", "reason"),
    [
        (ClientView(ClientState.CREATED), False, "WaitingForTasks"),
        (ClientView(ClientState.REBALANCING), False, "WaitingForTasks"),
        (ClientView(ClientState.REBALANCING, restoring_tasks=2, records_left=5), False, "Restoring"),
        (ClientView(ClientState.REBALANCING, running_tasks=1, restoring_tasks=1), False, "Restoring"),
        (ClientView(ClientState.REBALANCING, running_tasks=3), True, "Restored"),
        (ClientView(ClientState.RUNNING, running_tasks=3), True, "Restored"),
        (ClientView(ClientState.RUNNING), True, "Restored"),  # more instances than tasks
        (ClientView(ClientState.RUNNING, running_tasks=3, records_left=1), False, "Restoring"),
        (ClientView(ClientState.PENDING_SHUTDOWN, running_tasks=3), False, "Closed"),
        (ClientView(ClientState.NOT_RUNNING), False, "Closed"),
        (ClientView(ClientState.PENDING_ERROR, failure=BOOM), False, "Closed"),
        (ClientView(ClientState.ERROR, failure=BOOM), False, "Closed"),
    ],
)
def test_restored_holds_once_nothing_is_left_to_restore(view: ClientView, holds: bool, reason: str) -> None:
    restored = said(view)["Restored"]
    assert (restored.holds, restored.reason) == (holds, reason)
    assert restored.message == f"{view.records_left} records left"


@pytest.mark.parametrize("ready", [True, False])
def test_spark_is_said_beside_the_state(ready: bool) -> None:
    spark = said(ClientView(ClientState.RUNNING, spark_ready=ready))["SparkReady"]
    assert (spark.holds, spark.reason) == (ready, "Ready" if ready else "NotReady")


def test_a_note_is_said_with_the_state() -> None:
    assert said(ClientView(ClientState.PENDING_SHUTDOWN, note="not in time"))["Running"].message == "not in time"


def test_a_long_message_keeps_its_beginning_and_says_what_is_missing() -> None:
    text = "record orders-0@7 " + "x" * 10_000
    message = said(ClientView(ClientState.ERROR, failure=Failure("E", text)))["Restartable"].message
    assert len(message) == MESSAGE_LENGTH
    assert message.startswith("record orders-0@7 x")
    assert "10018 characters" in message
    assert bounded("short") == "short"


def test_the_time_of_a_condition_moves_with_its_status_only() -> None:
    times = [datetime(2026, 1, 1, 12, 0, second, tzinfo=UTC) for second in range(4)]
    transitions = Transitions()

    def since(holds: bool, message: str, now: datetime) -> str:
        [item] = transitions.status([Condition("t", holds, "r", message)], now)
        assert (item["status"], item["message"]) == (str(holds), message)
        return str(item["lastTransitionTime"])

    assert since(False, "5 records left", times[0]) == "2026-01-01T12:00:00Z"
    assert since(False, "4 records left", times[1]) == "2026-01-01T12:00:00Z"
    assert since(True, "0 records left", times[2]) == "2026-01-01T12:00:02Z"
    assert since(False, "", times[3].astimezone(timezone(timedelta(hours=5)))) == "2026-01-01T12:00:03Z"


def test_records_left_are_those_of_restorations_that_go_on() -> None:
    left = RecordsLeft()
    first, second = TopicPartition("c", 0), TopicPartition("c", 1)
    left.on_restore_start(first, "s", 100, 1100)
    left.on_restore_start(second, "s", 0, 50)
    assert left.total == 1050
    left.on_batch_restored(first, "s", 600, 480)  # compacted: fewer records than offsets
    assert left.total == 550
    left.on_restore_suspended(second, "s", 0)
    assert left.total == 500
    left.on_restore_end(first, "s", 980)
    assert left.total == 0
