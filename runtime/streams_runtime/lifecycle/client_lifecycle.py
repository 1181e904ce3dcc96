"""The life of one client: its state machine, its threads, and who moves them. Knows neither Kafka nor Spark."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Generic

from streams_runtime.errors import IllegalStateException, ShutdownRequestedException, StreamsException, message_of
from streams_runtime.lifecycle.retry_budget import RestartBudget, RestartPolicy
from streams_runtime.lifecycle.thread_pool import T, ThreadPool
from streams_runtime.lifecycle.uncaught import (
    REPLACEMENTS,
    UncaughtExceptionHandler,
    UncaughtExceptionResponse,
    Verdict,
    judge,
)
from streams_runtime.lifecycle.user_callbacks import Callbacks
from streams_runtime.states import CLIENT, ClientState, GlobalThreadState, StateListener, StateMachine, ThreadState

_LOGGER = logging.getLogger("streams_runtime.client")
_FAILING = frozenset({ClientState.PENDING_ERROR, ClientState.ERROR})
_ENDED = frozenset({ClientState.NOT_RUNNING, ClientState.ERROR})
_WORKING = frozenset({ClientState.REBALANCING, ClientState.RUNNING})
_BATCH_GRACE = 10.0  # seconds that a running batch has to end at a close, before Spark's jobs are cancelled
_NO_OTHER_GLOBAL_THREAD = "it is the global stream thread, of which there is no other"
_REBALANCES = frozenset({ThreadState.PARTITIONS_REVOKED, ThreadState.PARTITIONS_ASSIGNED})


@dataclass(frozen=True, slots=True)
class Works(Generic[T]):
    """What a life is lived with.

    `open` takes what all threads need, and may raise; `free` gives back whatever of it was taken, and raises nothing.
    `hurry` ends what threads wait for. `beyond_repair`: why no new thread could work, or None.
    """

    threads: int
    open: Callable[[], None]
    make_thread: Callable[[int], T]
    hurry: Callable[[], None]
    free: Callable[[], None]
    beyond_repair: Callable[[], str | None]


class ClientLifecycle(Generic[T]):
    """Moves a client from CREATED to NOT_RUNNING or ERROR. Safe to use from any thread, users' callbacks included."""

    def __init__(
        self,
        owner: str,
        works: Works[T],
        handler: UncaughtExceptionHandler,
        policy: RestartPolicy = REPLACEMENTS,
        grace: float = _BATCH_GRACE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.owner = owner
        self.machine = StateMachine(CLIENT, f"client {owner}")
        self.callbacks = Callbacks(f"{owner}-StreamThread-")
        self.error: BaseException | None = None
        """What the client ends, or ended, in ERROR by."""
        self.shutdown_requested = False
        """Whether that asks all other clients of the application to end in ERROR too."""
        self._works = works
        self._handler = handler
        self._budget = RestartBudget.full(policy)
        self._grace = grace
        self._clock = clock
        self._pool: ThreadPool[T] = ThreadPool(works.make_thread, self.fail)
        self._opening = threading.Lock()
        self._judging = threading.Lock()
        self._running_since: dict[str, float] = {}
        self._listener: StateListener[ClientState] | None = None
        self.machine.add_listener(self._tell_user)

    @property
    def state(self) -> ClientState:
        """The client's state."""
        return self.machine.state

    @property
    def threads(self) -> Sequence[T]:
        """The client's threads."""
        return self._pool.threads

    def set_state_listener(self, listener: StateListener[ClientState]) -> None:
        """Replace the user's state listener. Raises IllegalStateException when the client is no longer CREATED."""
        self._only_created("a state listener can be set")
        self._listener = self.callbacks.guarded("the state listener", listener)

    def set_handler(self, handler: UncaughtExceptionHandler) -> None:
        """Replace the uncaught exception handler. Raises IllegalStateException when the client is no longer CREATED."""
        self._only_created("an uncaught exception handler can be set")
        self._handler = handler

    def start(self) -> None:
        """Open everything and start the threads. What fails here ends in ERROR.

        Raises:
            IllegalStateException: the client was started or closed before.
        """
        if self.state is not ClientState.CREATED or not self.machine.move(ClientState.REBALANCING):
            raise IllegalStateException(
                f"client {self.owner} is {self.state} and can't be started; make a new StreamsClient"
            )
        with self._opening:
            if self.state not in _WORKING:
                return  # a listener, or another thread, has closed it meanwhile
            try:
                self._works.open()
                self._pool.start(self._works.threads)
            except Exception as error:
                self.fail(error)

    def close(self, timeout: float | None) -> bool:
        """End in NOT_RUNNING; whether it has ended within `timeout` seconds. From a callback it does not wait."""
        if self.state in _FAILING:
            _LOGGER.warning("close() does nothing: client %s is %s already", self.owner, self.state)
            return self.state is ClientState.ERROR
        self.machine.move(ClientState.PENDING_SHUTDOWN, lambda: self._end_in_background(ClientState.NOT_RUNNING))
        return self.state in _ENDED if self.callbacks.inside else self.wait_for_end(timeout)

    def fail(self, error: BaseException, shutdown_requested: bool = False) -> bool:
        """End in ERROR by `error`; False when the client is ending already."""

        def note() -> None:
            self.error, self.shutdown_requested = error, shutdown_requested
            self._end_in_background(ClientState.ERROR)

        return self.machine.move(ClientState.PENDING_ERROR, note)

    def shut_down_with_application(self, request: ShutdownRequestedException) -> bool:
        """End in ERROR because another instance asked for it; False when the client is ending already.

        Raises:
            IllegalStateException: the client is CREATED; it has nothing to end yet.
        """
        if self.state is ClientState.CREATED:
            raise IllegalStateException(f"client {self.owner} is CREATED; tell it after start()")
        if self.state not in _WORKING or not self.fail(request):
            return False
        _LOGGER.error("%s", request)
        return True

    def wait_for(self, *states: ClientState, timeout: float | None = None) -> bool:
        """Block until the client is in one of `states`, or has ended; whether it is in one of them."""
        self.machine.wait_for(lambda state: state in states or state in _ENDED, timeout)
        return self.state in states

    def wait_for_end(self, timeout: float | None = None) -> bool:
        """Block until the client is NOT_RUNNING or ERROR; False when `timeout` seconds pass first."""
        return self.machine.wait_for(lambda state: state in _ENDED, timeout)

    def add_thread(self) -> str | None:
        """One thread more; its name, or None when the client is neither RUNNING nor REBALANCING."""
        name = self._pool.add() if self.state in _WORKING else None
        if name is None:
            _LOGGER.warning("no thread is added: client %s is %s", self.owner, self.state)
        return name

    def remove_thread(self, timeout: float | None) -> T | None:
        """One thread less; None when the client is neither RUNNING nor REBALANCING, or has none.

        Raises:
            TimeoutException: it has not ended within `timeout` seconds; it goes on ending.
        """
        thread = self._pool.remove(timeout) if self.state in _WORKING else None
        if thread is None:
            _LOGGER.warning(
                "no thread is removed: client %s is %s, with %d threads", self.owner, self.state, len(self.threads)
            )
        return thread

    def thread_moved(self, thread: T, new: ThreadState) -> None:
        """To be told every move of a thread: REBALANCING while any rebalances, RUNNING once every live one runs.

        A client that is ending, or has ended, goes on with that, however late a thread is.
        """
        if new is ThreadState.RUNNING:
            self._running_since.setdefault(thread.name, self._clock())
        if new in _REBALANCES:
            self.machine.move(ClientState.REBALANCING, only_from=_WORKING)
        elif new in (ThreadState.RUNNING, ThreadState.PENDING_SHUTDOWN, ThreadState.DEAD) and self._pool.all_running:
            self.machine.move(ClientState.RUNNING, only_from=_WORKING)

    def uncaught(self, thread: T, error: BaseException) -> None:
        """To be told, on the thread itself, what ends it."""
        verdict = self._judged(thread.name, error, self._works.beyond_repair())
        if verdict.response is UncaughtExceptionResponse.REPLACE_THREAD:
            _LOGGER.warning("%s is replaced in %g s", thread.name, verdict.delay)
            self._pool.replace(thread, verdict.delay)
            self.machine.move(ClientState.REBALANCING, only_from=_WORKING)
            return
        self._end_by(thread.name, error, verdict)

    def uncaught_in_global_thread(self, name: str, error: BaseException) -> None:
        """To be told, on the global thread itself, what ends it: it is never replaced, as in Kafka Streams."""
        self._end_by(name, error, self._judged(name, error, _NO_OTHER_GLOBAL_THREAD))

    def global_thread_moved(self, name: str, new: GlobalThreadState) -> None:
        """To be told every move of the global thread: whatever ends it ends the client, unless that is ending."""
        if new is GlobalThreadState.DEAD and self.state in _WORKING:
            died = StreamsException(
                f"{name} has ended, and with it the global tables are no longer kept up to date. Start the client anew"
            )
            if self.fail(died):
                _LOGGER.error("%s", died)

    def _judged(self, name: str, error: BaseException, beyond_repair: str | None) -> Verdict:
        """What the handler says of an exception that ends the thread of this name."""
        _LOGGER.error("%s ended by %s: %s", name, type(error).__name__, error)
        _LOGGER.debug("stack trace", exc_info=error)
        with self._judging, self.callbacks.entered():
            since = self._running_since.pop(name, None)
            uptime = 0.0 if since is None else self._clock() - since
            verdict = judge(error, self._handler, self._budget, uptime, beyond_repair)
            self._budget = verdict.budget
        if verdict.note:
            error.add_note(verdict.note)
        return verdict

    def _end_by(self, name: str, error: BaseException, verdict: Verdict) -> None:
        everyone = verdict.response is UncaughtExceptionResponse.SHUTDOWN_APPLICATION
        self.fail(error, everyone)
        what = "all clients of the application" if everyone else "this client"
        _LOGGER.error("the exception of %s ends %s: %s", name, what, message_of(error))

    def _tell_user(self, new: ClientState, old: ClientState) -> None:
        if self._listener is not None:
            self._listener(new, old)

    def _only_created(self, what: str) -> None:
        if self.state is not ClientState.CREATED:
            raise IllegalStateException(f"{what} only in CREATED; {self.owner} is {self.state}. Set it before start()")

    def _end_in_background(self, last: ClientState) -> None:
        threading.Thread(target=self._end, args=(last,), name=f"{self.owner}-close", daemon=True).start()

    def _end(self, last: ClientState) -> None:
        """Free everything, then enter the last state: whoever sees it may count on that."""
        try:
            with self._opening, ExitStack() as ending:  # start() has finished what it was at
                ending.callback(self._works.free)  # whatever becomes of the threads
                ending.callback(self._pool.close, self._grace, self._works.hurry)
        except Exception:  # a defect; whoever waits for the end must not wait for ever
            _LOGGER.exception("closing client %s", self.owner)
        finally:
            self.machine.move(last)
