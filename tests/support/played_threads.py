"""The life of a client with threads that a test plays: no Kafka, no Spark, every move at the test's word."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from waiting import eventually

from streams_runtime.lifecycle.client_lifecycle import ClientLifecycle, Works
from streams_runtime.lifecycle.retry_budget import RestartPolicy
from streams_runtime.lifecycle.uncaught import UncaughtExceptionHandler, declared
from streams_runtime.states import THREAD, ClientState, StateMachine, ThreadState

ALIVE = (ThreadState.STARTING, ThreadState.PARTITIONS_REVOKED, ThreadState.PARTITIONS_ASSIGNED, ThreadState.RUNNING)
SHUTDOWN_CLIENT = declared("shutdownClient")
AT_ONCE = RestartPolicy(first=0.0)


class PlayedThread:
    """Ends as soon as it is told to stop, unless `stubborn`; then when the test calls `end`."""

    def __init__(self, number: int, stage: Stage) -> None:
        self.number, self.name = number, f"app-0-StreamThread-{number}"
        self.stage = stage
        self.machine: StateMachine[ThreadState] = StateMachine(THREAD, self.name)
        self.machine.add_listener(lambda new, _old: stage.life.thread_moved(self, new))
        self.stubborn = False
        self.is_current = False
        self.asked_to_stop = self.awaited = False
        self._gone = threading.Event()

    @property
    def state(self) -> ThreadState:
        return self.machine.state

    def start(self) -> None:
        self.machine.move(ThreadState.STARTING)

    def stop(self) -> None:
        self.asked_to_stop = True
        if not self.stubborn:
            self.end()

    def join(self, timeout: float | None = None) -> bool:
        self.awaited = True
        return False if self.is_current else self._gone.wait(timeout)

    def end(self) -> None:
        """Free everything and be gone, as the thread's own loop does it."""
        self.machine.move(ThreadState.PENDING_SHUTDOWN)
        self.machine.move(ThreadState.DEAD)
        self._gone.set()

    @property
    def gone(self) -> bool:
        return self._gone.is_set()

    def go(self, *states: ThreadState) -> None:
        for state in states:
            self.machine.move(state)

    def rebalance(self) -> None:
        self.go(ThreadState.PARTITIONS_ASSIGNED)

    def run(self) -> None:
        """Everything is restored."""
        self.go(ThreadState.PARTITIONS_ASSIGNED, ThreadState.RUNNING)

    def die(self, error: BaseException) -> None:
        self.stage.life.uncaught(self, error)
        self.end()


class Stage:
    """A life, and what was opened and freed in it. `heard` are the moves that the user's listener was told."""

    def __init__(
        self,
        handler: UncaughtExceptionHandler = SHUTDOWN_CLIENT,
        threads: int = 1,
        policy: RestartPolicy = AT_ONCE,
        opening: Callable[[], Any] = lambda: None,
    ) -> None:
        self.open = False
        self.opening = opening
        self.hurried = 0
        self.now = 0.0
        self.broken: str | None = None
        self.made: list[PlayedThread] = []
        self.made_stubborn = False
        self.overlaps: list[str] = []
        """Names that were given away while a thread still had them."""
        self.heard: list[tuple[ClientState, ClientState]] = []
        works: Works[PlayedThread] = Works(
            threads=threads,
            open=self._open,
            make_thread=self._make,
            hurry=self._hurry,
            free=self._free,
            beyond_repair=lambda: self.broken,
        )
        self.life = ClientLifecycle("app-0", works, handler, policy, grace=0.01, clock=lambda: self.now)
        self.life.set_state_listener(self._hear)

    @property
    def state(self) -> ClientState:
        return self.life.state

    @property
    def live(self) -> list[PlayedThread]:
        return [each for each in self.life.threads if each.state in ALIVE]

    def start(self, run: bool = True) -> None:
        self.life.start()
        for each in self.live if run else ():
            each.run()

    def hears(self, *last: ClientState) -> None:
        """Wait until these are the last states that the listener was told; a state is seen before it is told."""
        eventually(lambda: tuple(new for new, _ in self.heard[-len(last) :]) == last, f"the listener heard {last}")

    def _open(self) -> None:
        self.open = True
        self.opening()

    def _free(self) -> None:
        self.open = False

    def _hurry(self) -> None:
        self.hurried += 1
        for each in self.made:
            each.stubborn = False
            if each.asked_to_stop:
                each.end()

    def _make(self, number: int) -> PlayedThread:
        thread = PlayedThread(number, self)
        thread.stubborn = self.made_stubborn
        self.overlaps += [each.name for each in self.made if each.name == thread.name and not each.gone]
        self.made.append(thread)
        return thread

    def _hear(self, new: ClientState, old: ClientState) -> None:
        self.heard.append((new, old))
