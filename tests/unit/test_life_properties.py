"""Random lives of a client against a model of the state tables. Threads are played (support/played_threads)."""

from __future__ import annotations

from typing import Any

import pytest
from example_counts import examples
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from played_threads import PlayedThread, Stage
from waiting import eventually

from streams_runtime.errors import (
    BrokerNotAvailableException,
    IllegalStateException,
    MissingInternalTopicException,
    ShutdownRequestedException,
)
from streams_runtime.lifecycle.retry_budget import RestartPolicy
from streams_runtime.lifecycle.uncaught import UncaughtExceptionResponse
from streams_runtime.states import CLIENT, ClientState, Move, ThreadState

BUDGET = 2
LONG = 20.0


class Lives(RuleBasedStateMachine):
    """`expected` is what the tables say of everything that has happened so far."""

    @initialize(threads=st.integers(1, 3), running=st.booleans())
    def begin(self, threads: int, running: bool) -> None:
        self.answer = UncaughtExceptionResponse.SHUTDOWN_CLIENT
        self.stage = Stage(lambda _error: self.answer, threads, RestartPolicy(BUDGET, refill=60.0, first=0.0))
        self.stage.life.machine.add_listener(self.watch)
        self.expected = ClientState.CREATED
        self.left = float(BUDGET)
        self.wrong: list[str] = []
        if running:
            self.stage.start()
            self.expected = ClientState.RUNNING

    def watch(self, new: ClientState, _old: ClientState) -> None:
        """What is free at an end must be free when anybody can see that end."""
        if new in (ClientState.NOT_RUNNING, ClientState.ERROR):
            if self.stage.open:
                self.wrong.append(f"{new} with its resources open")
            if self.stage.live:
                self.wrong.append(f"{new} with live threads")

    @property
    def working(self) -> bool:
        return self.expected in (ClientState.REBALANCING, ClientState.RUNNING)

    def pick(self, data: Any) -> PlayedThread | None:
        live = self.stage.live
        return data.draw(st.sampled_from(live)) if live else None

    def settle(self, running_if_all_run: bool = False) -> None:
        """What the threads' states make of the client's, by the rule of semantics 1."""
        live = self.stage.live
        if running_if_all_run and live and all(each.state is ThreadState.RUNNING for each in live):
            self.expected = ClientState.RUNNING

    @rule()
    def start(self) -> None:
        if self.expected is ClientState.CREATED:
            self.stage.life.start()
            self.expected = ClientState.REBALANCING
        else:
            with pytest.raises(IllegalStateException):
                self.stage.life.start()

    @precondition(lambda self: self.working)
    @rule(data=st.data())
    def a_rebalance_begins(self, data: st.DataObject) -> None:
        thread = self.pick(data)
        if thread is None:
            return
        if thread.state is not ThreadState.STARTING:
            thread.go(ThreadState.PARTITIONS_REVOKED)
        thread.rebalance()
        self.expected = ClientState.REBALANCING

    @precondition(lambda self: self.working)
    @rule(data=st.data())
    def everything_of_a_thread_is_restored(self, data: st.DataObject) -> None:
        thread = self.pick(data)
        if thread is not None:
            thread.run()
            self.expected = ClientState.REBALANCING
            self.settle(running_if_all_run=True)

    @precondition(lambda self: self.working)
    @rule(data=st.data(), answer=st.sampled_from(UncaughtExceptionResponse), seconds=st.sampled_from([0, 30, 90]))
    def a_thread_ends_by_an_exception(
        self, data: st.DataObject, answer: UncaughtExceptionResponse, seconds: int
    ) -> None:
        thread = self.pick(data)
        if thread is None:
            return
        self.answer = answer
        ran = thread.name in self.stage.life._running_since
        uptimes = {name: self.stage.now - at for name, at in self.stage.life._running_since.items()}
        self.stage.now += seconds
        uptime = uptimes[thread.name] + seconds if ran else 0.0
        number = len(self.stage.made)
        thread.die(MissingInternalTopicException("app-totals-changelog is gone"))
        if answer is UncaughtExceptionResponse.REPLACE_THREAD:
            self.left = min(self.left + uptime / 60.0, BUDGET)
            if self.left >= 1:
                self.left -= 1
                eventually(lambda: len(self.stage.made) > number, "the successor", LONG)
                eventually(lambda: self.stage.made[-1].state is ThreadState.STARTING, "it starts", LONG)
                assert self.stage.made[-1].name == thread.name
                self.expected = ClientState.REBALANCING
                return
        self.expected = ClientState.ERROR

    @precondition(lambda self: self.working)
    @rule()
    def the_broker_is_away(self) -> None:
        """Threads wait for it: nothing moves, and nothing is decided by it."""
        for each in self.stage.live:
            assert not each.asked_to_stop
        assert not isinstance(self.stage.life.error, BrokerNotAvailableException)

    @rule()
    def a_thread_is_added(self) -> None:
        names = {each.name for each in self.stage.live}
        name = self.stage.life.add_thread()
        if not self.working:
            assert name is None
            return
        assert name is not None
        assert name not in names
        numbers = {int(each.rpartition("-")[2]) for each in names}
        assert int(name.rpartition("-")[2]) == min(set(range(1, len(names) + 2)) - numbers)

    @rule()
    def a_thread_is_removed(self) -> None:
        live = self.stage.live if self.working else []
        removed = self.stage.life.remove_thread(LONG)
        assert (removed is None) == (not live)
        self.settle(running_if_all_run=bool(live))

    @rule()
    def close(self) -> None:
        failed = self.expected is ClientState.ERROR
        assert self.stage.life.close(LONG)
        if not failed:
            self.expected = ClientState.NOT_RUNNING

    @precondition(lambda self: self.expected is not ClientState.CREATED)
    @rule()
    def another_instance_asks_for_the_end_of_all(self) -> None:
        told = self.stage.life.shut_down_with_application(ShutdownRequestedException("app-1", "X", "x"))
        assert told == self.working
        if told:
            self.expected = ClientState.ERROR

    @invariant()
    def the_state_is_as_the_model_says(self) -> None:
        if not hasattr(self, "stage"):
            return
        eventually(lambda: self.stage.state is self.expected, f"{self.stage.state} becomes {self.expected}", LONG)
        if self.expected in (ClientState.ERROR, ClientState.NOT_RUNNING):
            assert (self.stage.life.error is not None) == (self.expected is ClientState.ERROR)
            assert not self.stage.open

    @invariant()
    def the_listener_heard_an_unbroken_chain_of_allowed_moves(self) -> None:
        if not hasattr(self, "stage"):
            return
        # Whoever moved last may still be telling.
        eventually(
            lambda: (self.stage.heard[-1][0] if self.stage.heard else ClientState.CREATED) is self.expected, "heard"
        )
        before = ClientState.CREATED
        for new, old in tuple(self.stage.heard):
            assert old is before
            assert CLIENT.judge(old, new) is Move.ALLOWED
            before = new
        assert not self.wrong
        assert not self.stage.overlaps

    def teardown(self) -> None:
        if hasattr(self, "stage"):
            assert self.stage.life.close(LONG)


Lives.TestCase.settings = settings(max_examples=examples(50), stateful_step_count=25, deadline=None)
TestLives = Lives.TestCase
