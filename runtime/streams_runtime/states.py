"""States of clients, threads and tasks: one named table each, and the one guarded mutator that moves along it.

The tables are those of KIP-696 and of Kafka Streams' StreamThread and Task. Nothing else in the project sets a
state. `python -m streams_runtime.states` prints the tables as mermaid diagrams;
runtime/streams_runtime/lifecycle/README.md carries them.
"""

from __future__ import annotations

import enum
import threading
from collections import deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from streams_runtime.errors import IllegalStateException

EXIT_NOT_RUNNING = 0
EXIT_UNUSABLE = 64
EXIT_ERROR = 70
"""Exit codes of a process that runs one client: it ended in NOT_RUNNING, the application's file could not be used, it
ended in ERROR. Any other one is a crash.
"""


class ClientState(enum.StrEnum):
    """State of a streams client (KIP-696). ERROR and NOT_RUNNING are terminal."""

    CREATED = "CREATED"
    REBALANCING = "REBALANCING"
    RUNNING = "RUNNING"
    PENDING_SHUTDOWN = "PENDING_SHUTDOWN"
    NOT_RUNNING = "NOT_RUNNING"
    PENDING_ERROR = "PENDING_ERROR"
    ERROR = "ERROR"


class ThreadState(enum.StrEnum):
    """State of a stream thread. DEAD is terminal."""

    CREATED = "CREATED"
    STARTING = "STARTING"
    PARTITIONS_REVOKED = "PARTITIONS_REVOKED"
    PARTITIONS_ASSIGNED = "PARTITIONS_ASSIGNED"
    RUNNING = "RUNNING"
    PENDING_SHUTDOWN = "PENDING_SHUTDOWN"
    DEAD = "DEAD"


class GlobalThreadState(enum.StrEnum):
    """States of the global stream thread (GlobalStreamThread.State): RUNNING once its tables are complete."""

    CREATED = "CREATED"
    RUNNING = "RUNNING"
    PENDING_SHUTDOWN = "PENDING_SHUTDOWN"
    DEAD = "DEAD"


class TaskState(enum.StrEnum):
    """State of a task. A restoring task closes through SUSPENDED; a closed one may be revived."""

    CREATED = "CREATED"
    RESTORING = "RESTORING"
    RUNNING = "RUNNING"
    SUSPENDED = "SUSPENDED"
    CLOSED = "CLOSED"


S = TypeVar("S", bound=enum.StrEnum)


class Move(enum.Enum):
    """What the table says of a move from one state to another."""

    ALLOWED = "allowed"
    REFUSED = "refused"  # quietly: the mutator returns False and no listener hears of it
    ILLEGAL = "illegal"  # a defect of the caller: the mutator raises


@dataclass(frozen=True)
class TransitionTable(Generic[S]):
    """Which state may become which, by name.

    `allowed` has an entry for every state. `refused` lists moves that a race between threads can ask for without
    anybody being wrong (a rebalance that ends during a shutdown, say). Everything else is illegal.
    """

    name: str
    initial: S
    allowed: Mapping[S, frozenset[S]]
    refused: Mapping[S, frozenset[S]]

    def judge(self, old: S, new: S) -> Move:
        """Say what the table holds for old → new."""
        if new in self.allowed[old]:
            return Move.ALLOWED
        return Move.REFUSED if new in self.refused.get(old, frozenset()) else Move.ILLEGAL

    def mermaid(self) -> str:
        """Draw the allowed moves between different states as a mermaid state diagram."""
        lines = ["stateDiagram-v2", f"    [*] --> {self.initial.value}"]
        for old, successors in self.allowed.items():
            lines += [f"    {old.value} --> {new.value}" for new in type(old) if new in successors and new is not old]
            if not successors - {old}:
                lines.append(f"    {old.value} --> [*]")
        return "\n".join(lines)


def _all_but(states: type[S], *kept: S) -> frozenset[S]:
    return frozenset(state for state in states if state not in kept)


_C, _T, _G, _K = ClientState, ThreadState, GlobalThreadState, TaskState

CLIENT = TransitionTable(
    "client",
    _C.CREATED,
    allowed={
        _C.CREATED: frozenset({_C.REBALANCING, _C.PENDING_SHUTDOWN}),
        _C.REBALANCING: frozenset({_C.RUNNING, _C.PENDING_SHUTDOWN, _C.PENDING_ERROR}),
        _C.RUNNING: frozenset({_C.REBALANCING, _C.RUNNING, _C.PENDING_SHUTDOWN, _C.PENDING_ERROR}),
        _C.PENDING_SHUTDOWN: frozenset({_C.NOT_RUNNING}),
        _C.NOT_RUNNING: frozenset(),
        _C.PENDING_ERROR: frozenset({_C.ERROR}),
        _C.ERROR: frozenset(),
    },
    refused={
        _C.REBALANCING: frozenset({_C.REBALANCING}),
        _C.PENDING_SHUTDOWN: _all_but(_C, _C.NOT_RUNNING),
        _C.NOT_RUNNING: frozenset({_C.PENDING_SHUTDOWN, _C.NOT_RUNNING}),
        _C.PENDING_ERROR: _all_but(_C, _C.ERROR),
        _C.ERROR: frozenset({_C.PENDING_SHUTDOWN, _C.PENDING_ERROR, _C.ERROR}),
    },
)

THREAD = TransitionTable(
    "thread",
    _T.CREATED,
    allowed={
        _T.CREATED: frozenset({_T.STARTING, _T.PENDING_SHUTDOWN}),
        _T.STARTING: frozenset({_T.PARTITIONS_REVOKED, _T.PARTITIONS_ASSIGNED, _T.PENDING_SHUTDOWN}),
        _T.PARTITIONS_REVOKED: frozenset({_T.PARTITIONS_REVOKED, _T.PARTITIONS_ASSIGNED, _T.PENDING_SHUTDOWN}),
        _T.PARTITIONS_ASSIGNED: frozenset(
            {_T.PARTITIONS_REVOKED, _T.PARTITIONS_ASSIGNED, _T.RUNNING, _T.PENDING_SHUTDOWN}
        ),
        _T.RUNNING: frozenset({_T.PARTITIONS_REVOKED, _T.PARTITIONS_ASSIGNED, _T.RUNNING, _T.PENDING_SHUTDOWN}),
        _T.PENDING_SHUTDOWN: frozenset({_T.DEAD}),
        _T.DEAD: frozenset(),
    },
    refused={
        _T.PENDING_SHUTDOWN: _all_but(_T, _T.DEAD),
        _T.DEAD: frozenset(_T),
    },
)

GLOBAL_THREAD = TransitionTable(
    "global thread",
    _G.CREATED,
    allowed={
        _G.CREATED: frozenset({_G.RUNNING, _G.PENDING_SHUTDOWN}),
        _G.RUNNING: frozenset({_G.PENDING_SHUTDOWN}),
        _G.PENDING_SHUTDOWN: frozenset({_G.DEAD}),
        _G.DEAD: frozenset(),
    },
    refused={
        _G.PENDING_SHUTDOWN: _all_but(_G, _G.DEAD),
        _G.DEAD: frozenset(_G),
    },
)

TASK = TransitionTable(
    "task",
    _K.CREATED,
    allowed={
        _K.CREATED: frozenset({_K.RESTORING, _K.CLOSED}),
        _K.RESTORING: frozenset({_K.RUNNING, _K.SUSPENDED}),
        _K.RUNNING: frozenset({_K.SUSPENDED}),
        _K.SUSPENDED: frozenset({_K.RESTORING, _K.CLOSED}),
        _K.CLOSED: frozenset({_K.CREATED}),
    },
    refused={},
)

StateListener = Callable[[S, S], None]


class StateMachine(Generic[S]):
    """Holds one state and moves it along its table; the only thing in the project that sets a state.

    Listeners are called as `listener(new, old)` outside the lock and in the order of the moves, whichever threads
    made them. A listener may itself ask for a move: its own listeners are called after those of the move before. One
    that raises keeps nobody else from hearing; what it raised is raised from the `move` that called it.
    """

    def __init__(self, table: TransitionTable[S], owner: str) -> None:
        self._table = table
        self._owner = owner
        self._state = table.initial
        self._changed = threading.Condition()
        self._listeners: list[StateListener[S]] = []
        self._undelivered: deque[tuple[S, S]] = deque()
        self._delivering = False

    @property
    def state(self) -> S:
        """The present state."""
        return self._state

    def add_listener(self, listener: StateListener[S]) -> None:
        """Call `listener(new, old)` after every move from now on. Must not block for long."""
        with self._changed:
            self._listeners.append(listener)

    def move(self, new: S, with_it: Callable[[], None] | None = None, only_from: Collection[S] | None = None) -> bool:
        """Move to `new`. True when the state is `new` now, False when the table refuses the move quietly.

        A move from a state to itself that the table allows changes nothing, and listeners do not hear of it. `with_it`
        is called when the state changes, before anybody can see that; it must not use this machine. With `only_from`
        the move is refused quietly from any other state, whatever the table says of it.

        Raises:
            IllegalStateException: the table does not have this move; the caller is wrong.
        """
        with self._changed:
            old = self._state
            if only_from is not None and old not in only_from:
                return False
            verdict = self._table.judge(old, new)
            if verdict is Move.REFUSED:
                return False
            if verdict is Move.ILLEGAL:
                raise IllegalStateException(f"{self._owner}: {self._table.name} can't go from {old} to {new}")
            if new is old:
                return True
            if with_it is not None:
                with_it()
            self._state = new
            self._undelivered.append((new, old))
            self._changed.notify_all()
        self._deliver()
        return True

    def wait_for(self, condition: Callable[[S], bool], timeout: float | None = None) -> bool:
        """Block until `condition(state)` holds; False when `timeout` seconds pass first."""
        with self._changed:
            return self._changed.wait_for(lambda: condition(self._state), timeout)

    def _deliver(self) -> None:
        """Hand undelivered moves to the listeners; one thread at a time does it for all."""
        failure: BaseException | None = None
        with self._changed:
            if self._delivering:
                return
            self._delivering = True
        while True:
            with self._changed:
                if not self._undelivered:
                    self._delivering = False
                    break
                new, old = self._undelivered.popleft()
                listeners = tuple(self._listeners)
            for listener in listeners:
                try:
                    listener(new, old)
                except BaseException as error:
                    failure = failure or error
        if failure is not None:
            raise failure


def diagrams() -> str:
    """All tables as fenced mermaid blocks, for the README of lifecycle."""
    drawn = (
        (CLIENT.name, CLIENT.mermaid()),
        (THREAD.name, THREAD.mermaid()),
        (GLOBAL_THREAD.name, GLOBAL_THREAD.mermaid()),
        (TASK.name, TASK.mermaid()),
    )
    return "\n\n".join(f"**{name}**\n\n```mermaid\n{drawing}\n```" for name, drawing in drawn)


if __name__ == "__main__":
    print(diagrams())
