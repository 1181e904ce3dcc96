"""The state tables, pair by pair, and the one mutator."""

from __future__ import annotations

import itertools
import threading

import pytest

from streams_runtime.errors import IllegalStateException
from streams_runtime.states import (
    CLIENT,
    GLOBAL_THREAD,
    TASK,
    THREAD,
    ClientState,
    GlobalThreadState,
    Move,
    StateMachine,
    TaskState,
    ThreadState,
)

CLIENT_ALLOWED = {
    "CREATED": "REBALANCING PENDING_SHUTDOWN",
    "REBALANCING": "RUNNING PENDING_SHUTDOWN PENDING_ERROR",
    "RUNNING": "REBALANCING RUNNING PENDING_SHUTDOWN PENDING_ERROR",
    "PENDING_SHUTDOWN": "NOT_RUNNING",
    "NOT_RUNNING": "",
    "PENDING_ERROR": "ERROR",
    "ERROR": "",
}
CLIENT_REFUSED = {
    "REBALANCING": "REBALANCING",
    "PENDING_SHUTDOWN": "CREATED REBALANCING RUNNING PENDING_SHUTDOWN PENDING_ERROR ERROR",
    "NOT_RUNNING": "PENDING_SHUTDOWN NOT_RUNNING",
    "PENDING_ERROR": "CREATED REBALANCING RUNNING PENDING_SHUTDOWN NOT_RUNNING PENDING_ERROR",
    "ERROR": "PENDING_SHUTDOWN PENDING_ERROR ERROR",
}
THREAD_ALLOWED = {
    "CREATED": "STARTING PENDING_SHUTDOWN",
    "STARTING": "PARTITIONS_REVOKED PARTITIONS_ASSIGNED PENDING_SHUTDOWN",
    "PARTITIONS_REVOKED": "PARTITIONS_REVOKED PARTITIONS_ASSIGNED PENDING_SHUTDOWN",
    "PARTITIONS_ASSIGNED": "PARTITIONS_REVOKED PARTITIONS_ASSIGNED RUNNING PENDING_SHUTDOWN",
    "RUNNING": "PARTITIONS_REVOKED PARTITIONS_ASSIGNED RUNNING PENDING_SHUTDOWN",
    "PENDING_SHUTDOWN": "DEAD",
    "DEAD": "",
}
GLOBAL_THREAD_ALLOWED = {
    "CREATED": "RUNNING PENDING_SHUTDOWN",
    "RUNNING": "PENDING_SHUTDOWN",
    "PENDING_SHUTDOWN": "DEAD",
    "DEAD": "",
}
TASK_ALLOWED = {
    "CREATED": "RESTORING CLOSED",
    "RESTORING": "RUNNING SUSPENDED",
    "RUNNING": "SUSPENDED",
    "SUSPENDED": "RESTORING CLOSED",
    "CLOSED": "CREATED",
}


@pytest.mark.parametrize(("old", "new"), list(itertools.product(ClientState, ClientState)))
def test_every_pair_of_client_states_is_judged_as_documented(old: ClientState, new: ClientState) -> None:
    expected = Move.ILLEGAL
    if new in CLIENT_ALLOWED[old].split():
        expected = Move.ALLOWED
    elif new in CLIENT_REFUSED.get(old, "").split():
        expected = Move.REFUSED
    assert CLIENT.judge(old, new) is expected


@pytest.mark.parametrize(("old", "new"), list(itertools.product(ThreadState, ThreadState)))
def test_every_pair_of_thread_states_is_judged_as_documented(old: ThreadState, new: ThreadState) -> None:
    closing = old in (ThreadState.PENDING_SHUTDOWN, ThreadState.DEAD)
    otherwise = Move.REFUSED if closing else Move.ILLEGAL
    assert THREAD.judge(old, new) is (Move.ALLOWED if new in THREAD_ALLOWED[old].split() else otherwise)


@pytest.mark.parametrize(("old", "new"), list(itertools.product(GlobalThreadState, GlobalThreadState)))
def test_every_pair_of_global_thread_states_is_judged_as_documented(
    old: GlobalThreadState, new: GlobalThreadState
) -> None:
    closing = old in (GlobalThreadState.PENDING_SHUTDOWN, GlobalThreadState.DEAD)
    otherwise = Move.REFUSED if closing else Move.ILLEGAL
    assert GLOBAL_THREAD.judge(old, new) is (Move.ALLOWED if new in GLOBAL_THREAD_ALLOWED[old].split() else otherwise)


@pytest.mark.parametrize(("old", "new"), list(itertools.product(TaskState, TaskState)))
def test_every_pair_of_task_states_is_judged_as_documented(old: TaskState, new: TaskState) -> None:
    assert TASK.judge(old, new) is (Move.ALLOWED if new in TASK_ALLOWED[old].split() else Move.ILLEGAL)


def _client_in(state: ClientState) -> StateMachine[ClientState]:
    routes = {
        ClientState.CREATED: [],
        ClientState.REBALANCING: ["REBALANCING"],
        ClientState.RUNNING: ["REBALANCING", "RUNNING"],
        ClientState.PENDING_SHUTDOWN: ["PENDING_SHUTDOWN"],
        ClientState.NOT_RUNNING: ["PENDING_SHUTDOWN", "NOT_RUNNING"],
        ClientState.PENDING_ERROR: ["REBALANCING", "PENDING_ERROR"],
        ClientState.ERROR: ["REBALANCING", "PENDING_ERROR", "ERROR"],
    }
    machine = StateMachine(CLIENT, "client")
    for step in routes[state]:
        machine.move(ClientState(step))
    return machine


@pytest.mark.parametrize(("old", "new"), list(itertools.product(ClientState, ClientState)))
def test_the_mutator_obeys_the_table_for_every_pair(old: ClientState, new: ClientState) -> None:
    machine = _client_in(old)
    heard: list[tuple[ClientState, ClientState]] = []
    machine.add_listener(lambda n, o: heard.append((n, o)))
    verdict = CLIENT.judge(old, new)
    if verdict is Move.ILLEGAL:
        with pytest.raises(IllegalStateException, match=f"from {old} to {new}"):
            machine.move(new)
    else:
        assert machine.move(new) is (verdict is Move.ALLOWED)
    moved = verdict is Move.ALLOWED and new is not old
    assert machine.state is (new if moved else old)
    assert heard == ([(new, old)] if moved else [])


def test_listeners_are_called_outside_the_lock_and_in_order_even_when_one_moves_the_state() -> None:
    machine = StateMachine(CLIENT, "client")
    heard: list[str] = []

    def mover(new: ClientState, old: ClientState) -> None:
        if new is ClientState.RUNNING:
            # Another thread can read and move the state while a listener runs: the lock is not held.
            other = threading.Thread(target=machine.move, args=(ClientState.PENDING_SHUTDOWN,))
            other.start()
            other.join(timeout=5)
            assert not other.is_alive()
        heard.append(f"first {new}")

    machine.add_listener(mover)
    machine.add_listener(lambda new, _old: heard.append(f"second {new}"))
    machine.move(ClientState.REBALANCING)
    machine.move(ClientState.RUNNING)
    assert heard == [
        "first REBALANCING",
        "second REBALANCING",
        "first RUNNING",
        "second RUNNING",
        "first PENDING_SHUTDOWN",
        "second PENDING_SHUTDOWN",
    ]


def test_waiting_for_a_state_ends_when_another_thread_moves_there() -> None:
    machine = StateMachine(CLIENT, "client")
    threading.Thread(target=machine.move, args=(ClientState.REBALANCING,)).start()
    assert machine.wait_for(lambda state: state is ClientState.REBALANCING, timeout=5)
    assert not machine.wait_for(lambda state: state is ClientState.ERROR, timeout=0)


def test_the_diagram_has_every_allowed_move_and_no_other() -> None:
    drawn = {tuple(line.strip().split(" --> ")) for line in CLIENT.mermaid().splitlines() if " --> " in line}
    expected = {(old, new) for old, news in CLIENT_ALLOWED.items() for new in news.split() if new != old}
    assert drawn == expected | {("[*]", "CREATED"), ("NOT_RUNNING", "[*]"), ("ERROR", "[*]")}
