"""The life of a client: start, close, errors, threads that come and go. Threads are played (support/played_threads)."""

from __future__ import annotations

import logging
import threading

import pytest
from played_threads import PlayedThread, Stage
from waiting import eventually

from streams_runtime.errors import (
    IllegalStateException,
    LockException,
    MissingSourceTopicException,
    ProcessorStateException,
    ShutdownRequestedException,
    TimeoutException,
)
from streams_runtime.lifecycle.retry_budget import RestartBudget, RestartPolicy
from streams_runtime.lifecycle.uncaught import REPLACEMENTS, UncaughtExceptionResponse, declared, judge
from streams_runtime.states import ClientState, GlobalThreadState, ThreadState

LONG = 20.0
REPLACE = declared("replaceThread")
BOOM = ProcessorStateException("the disk is full")


def test_closing_right_after_creation_is_not_running_and_start_is_refused_from_then_on() -> None:
    stage = Stage()
    assert stage.life.close(LONG)
    assert stage.state is ClientState.NOT_RUNNING
    with pytest.raises(IllegalStateException, match="is NOT_RUNNING and can't be started"):
        stage.start()
    assert not stage.made


def test_closing_twice_is_closing_once() -> None:
    stage = Stage(threads=2)
    stage.start()
    assert stage.life.close(LONG)
    assert stage.life.close(LONG)
    stage.hears(ClientState.REBALANCING, ClientState.RUNNING, ClientState.PENDING_SHUTDOWN, ClientState.NOT_RUNNING)
    assert len(stage.heard) == 4
    assert [each.state for each in stage.made] == [ThreadState.DEAD] * 2


def test_everything_is_freed_before_the_last_state_is_seen() -> None:
    for end in ("close", "error"):
        stage = Stage()
        seen: list[bool] = []
        stage.life.machine.add_listener(
            lambda new, _old, stage=stage, seen=seen: (  # type: ignore[misc]
                seen.append(stage.open) if new in (ClientState.NOT_RUNNING, ClientState.ERROR) else None
            )
        )
        stage.start()
        if end == "close":
            stage.life.close(LONG)
        else:
            stage.made[0].die(BOOM)
        assert stage.life.wait_for_end(LONG)
        eventually(lambda seen=seen: seen == [False], "the listener saw everything freed")  # type: ignore[misc]


def test_close_in_pending_error_and_in_error_warns_and_does_nothing(caplog: pytest.LogCaptureFixture) -> None:
    stage = Stage()
    answers: list[bool] = []

    def close_at_once(new: ClientState, _old: ClientState) -> None:
        if new is ClientState.PENDING_ERROR:
            answers.append(stage.life.close(None))

    stage.life.set_state_listener(close_at_once)
    stage.start()
    caplog.set_level(logging.WARNING)
    stage.made[0].die(BOOM)
    assert stage.life.wait_for(ClientState.ERROR, timeout=LONG)
    assert stage.life.close(None) is True
    eventually(lambda: len(answers) == 1, "the listener has closed it")
    warnings = [each.getMessage() for each in caplog.records if "close() does nothing" in each.getMessage()]
    assert len(warnings) == 2
    assert stage.state is ClientState.ERROR


@pytest.mark.parametrize("at", [ClientState.REBALANCING, ClientState.RUNNING])
def test_a_close_without_a_limit_from_a_listener_returns_at_once_and_ends_the_client(at: ClientState) -> None:
    stage = Stage()
    answers: list[bool] = []
    stage.life.set_state_listener(lambda new, _old: answers.append(stage.life.close(None)) if new is at else None)
    stage.made_stubborn = True  # as a thread is that waits for its own listener
    stage.start()
    if stage.made:
        assert answers == [False]
    else:  # closed before its first thread, it may have ended by the time of the answer
        assert len(answers) == 1
    for each in stage.made:
        eventually(lambda each=each: each.asked_to_stop, "it is closed")  # type: ignore[misc]
        each.end()
    assert stage.life.wait_for(ClientState.NOT_RUNNING, timeout=LONG)
    assert not stage.open
    assert not stage.live


def test_a_close_that_does_not_come_to_its_end_returns_in_time_and_goes_on() -> None:
    stage = Stage()
    stage.start()
    thread = stage.made[0]
    thread.stubborn = True
    hurry = threading.Event()
    object.__setattr__(stage.life._works, "hurry", hurry.set)
    assert stage.life.close(0.02) is False
    assert hurry.wait(LONG)
    assert stage.state is ClientState.PENDING_SHUTDOWN
    thread.end()
    assert stage.life.close(LONG)


def test_a_thread_that_does_not_end_within_the_grace_is_hurried() -> None:
    stage = Stage()
    stage.start()
    stage.made[0].stubborn = True
    assert stage.life.close(LONG)
    assert stage.hurried == 1


def test_what_fails_while_threads_are_closed_keeps_nothing_open(caplog: pytest.LogCaptureFixture) -> None:
    """Spark's JVM is gone, say, when its jobs are to be cancelled: threads are waited for, and all is freed."""
    stage = Stage(threads=2)
    stage.start()
    for each in stage.made:
        each.stubborn = True

    def hurry() -> None:
        for each in stage.made:
            each.end()
        raise ConnectionError("the JVM is gone")

    object.__setattr__(stage.life._works, "hurry", hurry)
    with caplog.at_level(logging.WARNING):
        stage.life.fail(BOOM)
        assert stage.life.wait_for(ClientState.ERROR, timeout=LONG)
    assert not stage.open
    assert all(each.awaited for each in stage.made)
    assert "ConnectionError: the JVM is gone" in caplog.text


def test_a_thread_that_cannot_be_told_to_stop_keeps_no_other_from_it_and_nothing_open(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    stage = Stage(threads=3)
    stage.start()
    first, *others = stage.made
    first.end()

    def stop() -> None:
        raise RuntimeError("can't be told")

    monkeypatch.setattr(first, "stop", stop)
    assert stage.life.close(LONG)
    assert stage.state is ClientState.NOT_RUNNING
    assert not stage.open
    assert [each.asked_to_stop for each in others] == [True, True]
    assert "RuntimeError: can't be told" in caplog.text


def test_listeners_and_handlers_are_set_in_created_only() -> None:
    stage = Stage()
    stage.start()
    with pytest.raises(IllegalStateException, match="only in CREATED; app-0 is RUNNING"):
        stage.life.set_state_listener(lambda _new, _old: None)
    with pytest.raises(IllegalStateException, match="only in CREATED; app-0 is RUNNING"):
        stage.life.set_handler(REPLACE)
    stage.life.close(LONG)


def test_a_listener_that_raises_is_told_of_and_wedges_nothing(caplog: pytest.LogCaptureFixture) -> None:
    stage = Stage()

    def raising(new: ClientState, _old: ClientState) -> None:
        raise ValueError(f"not {new}")

    stage.life.set_state_listener(raising)
    stage.start()
    assert stage.state is ClientState.RUNNING
    assert stage.life.close(LONG)
    assert stage.state is ClientState.NOT_RUNNING
    eventually(lambda: "ValueError: not NOT_RUNNING" in caplog.text, "each of its failures is told")


def test_what_fails_at_the_start_ends_in_error() -> None:
    def refuse() -> None:
        raise LockException("in use by process 7")

    stage = Stage(opening=refuse)
    stage.life.start()
    assert stage.life.wait_for(ClientState.ERROR, timeout=LONG)
    assert isinstance(stage.life.error, LockException)
    assert not stage.made
    assert not stage.open


def test_the_client_rebalances_while_a_thread_does_and_runs_when_all_live_ones_run() -> None:
    stage = Stage(threads=2)
    stage.start(run=False)
    one, two = stage.made
    one.run()
    assert stage.state is ClientState.REBALANCING
    two.run()
    assert stage.state is ClientState.RUNNING
    two.rebalance()
    assert stage.state is ClientState.REBALANCING
    stage.life.remove_thread(LONG)
    assert stage.state is ClientState.REBALANCING, "the one that is left is not RUNNING"
    two.run()
    assert stage.state is ClientState.RUNNING
    stage.life.close(LONG)


def test_a_thread_that_says_that_it_runs_when_the_client_has_just_ended_moves_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = Stage()
    stage.start(run=False)
    life = stage.life

    def all_running(_crew: object) -> bool:
        return life.fail(RuntimeError("meanwhile")) and life.wait_for_end(20)

    monkeypatch.setattr(type(life._pool), "all_running", property(all_running))
    stage.made[0].run()
    assert stage.state is ClientState.ERROR
    stage.hears(ClientState.PENDING_ERROR, ClientState.ERROR)


def test_a_thread_that_is_removed_in_a_rebalance_does_not_keep_the_others_from_running() -> None:
    stage = Stage(threads=2)
    stage.start()
    one, two = stage.made
    one.rebalance()
    removed = stage.life.remove_thread(LONG)
    assert removed is one
    assert two.state is ThreadState.RUNNING
    assert stage.state is ClientState.RUNNING
    stage.life.close(LONG)


def test_threads_come_and_go_and_their_names_are_used_again() -> None:
    stage = Stage(threads=2)
    assert stage.life.add_thread() is None, "CREATED"
    assert stage.life.remove_thread(LONG) is None
    stage.start()
    assert stage.life.add_thread() == "app-0-StreamThread-3"
    assert stage.state is ClientState.RUNNING, "a thread that starts is no rebalance yet"
    removed = stage.life.remove_thread(LONG)
    assert removed is not None
    assert removed.name == "app-0-StreamThread-1"
    assert stage.life.add_thread() == "app-0-StreamThread-1"
    stage.life.close(LONG)
    assert stage.life.add_thread() is None
    assert stage.life.remove_thread(LONG) is None


def test_the_last_thread_may_go_and_the_client_stays_running() -> None:
    stage = Stage()
    stage.start()
    assert stage.life.remove_thread(LONG) is stage.made[0]
    assert stage.state is ClientState.RUNNING
    assert stage.life.threads == ()
    assert stage.life.remove_thread(LONG) is None
    assert stage.life.add_thread() == "app-0-StreamThread-1"
    stage.made[-1].run()
    assert stage.state is ClientState.RUNNING
    stage.life.close(LONG)


def test_a_thread_removes_another_one_and_itself_only_when_it_is_alone() -> None:
    stage = Stage(threads=2)
    stage.start()
    one, two = stage.made
    one.is_current = True
    assert stage.life.remove_thread(None) is two
    assert stage.life.remove_thread(None) is one
    assert one.asked_to_stop
    one.is_current = False
    stage.life.close(LONG)


def test_a_removal_that_takes_too_long_is_a_timeout_and_goes_on() -> None:
    stage = Stage(threads=2)
    stage.start()
    one, two = stage.made
    one.stubborn = True
    with pytest.raises(TimeoutException, match=r"StreamThread-1 has not ended within 0\.01 s"):
        stage.life.remove_thread(0.01)
    assert stage.life.remove_thread(LONG) is two, "nobody is removed twice"
    assert stage.life.add_thread() == two.name, "its number is not free yet"
    one.end()
    assert stage.life.add_thread() == one.name
    stage.life.close(LONG)


def test_no_thread_is_added_in_error() -> None:
    stage = Stage()
    stage.start()
    stage.made[0].die(BOOM)
    assert stage.life.wait_for(ClientState.ERROR, timeout=LONG)
    assert stage.life.add_thread() is None
    assert len(stage.made) == 1


def test_a_replaced_thread_has_its_successor_under_its_number_once_it_is_gone() -> None:
    stage = Stage(REPLACE, threads=2)
    stage.start()
    one, two = stage.made
    stage.life.uncaught(one, BOOM)
    assert stage.state is ClientState.REBALANCING
    eventually(lambda: one.awaited, "its member name is free only when it is gone")
    assert len(stage.made) == 2
    two.rebalance()
    two.run()
    assert stage.state is ClientState.REBALANCING, "not all threads are there"
    one.end()
    eventually(lambda: len(stage.made) == 3, "the successor")
    eventually(lambda: stage.made[2].state is ThreadState.STARTING, "it starts")
    assert (stage.made[2].name, len(stage.life.threads)) == (one.name, 2)
    assert stage.overlaps == []
    stage.made[2].run()
    assert stage.state is ClientState.RUNNING
    assert stage.life.error is None
    stage.life.close(LONG)


def replaced(stage: Stage, times: int) -> PlayedThread:
    """The thread that stands there after so many replacements."""
    for number in range(times):
        stage.made[-1].die(BOOM)
        eventually(lambda number=number: len(stage.made) == number + 2, "a successor")  # type: ignore[misc]
        eventually(lambda: stage.made[-1].state is ThreadState.STARTING, "it starts")
    return stage.made[-1]


def test_replacements_that_do_not_help_end_the_client() -> None:
    stage = Stage(REPLACE, policy=RestartPolicy(budget=3, refill=60, first=0))
    stage.start()
    replaced(stage, 3).die(BOOM)
    assert stage.life.wait_for(ClientState.ERROR, timeout=LONG)
    assert len(stage.made) == 4
    assert stage.life.error is BOOM
    assert "3 replacements in a row did not help" in " ".join(BOOM.__notes__)


def test_time_in_running_allows_replacements_anew() -> None:
    stage = Stage(REPLACE, policy=RestartPolicy(budget=1, refill=60, first=0))
    stage.start()
    for number in range(4):
        stage.now += 60
        stage.made[-1].die(ProcessorStateException("again"))
        eventually(lambda number=number: len(stage.made) == number + 2, "a successor")  # type: ignore[misc]
        eventually(lambda: stage.made[-1].state is ThreadState.STARTING, "it starts")
        stage.made[-1].run()
    assert stage.state is ClientState.RUNNING
    stage.life.close(LONG)


def test_a_close_does_not_wait_for_a_successor_that_is_not_there_yet() -> None:
    stage = Stage(REPLACE, policy=RestartPolicy(first=3600, longest=3600))
    stage.start()
    stage.made[0].die(BOOM)
    assert stage.life.close(LONG)
    assert len(stage.made) == 1
    assert stage.life.error is None


def test_a_request_for_the_end_of_the_application_is_kept_with_the_error() -> None:
    stage = Stage(declared("shutdownApplication"))
    stage.start()
    stage.made[0].die(BOOM)
    assert stage.life.wait_for(ClientState.ERROR, timeout=LONG)
    assert stage.life.shutdown_requested
    assert stage.life.error is BOOM


def test_who_is_told_of_the_end_of_the_application_ends_in_error_and_asks_nobody() -> None:
    stage = Stage()
    request = ShutdownRequestedException("app-1", "LockException", "in use by process 7")
    with pytest.raises(IllegalStateException, match="tell it after start"):
        stage.life.shut_down_with_application(request)
    stage.start()
    assert stage.life.shut_down_with_application(request)
    assert not stage.life.shut_down_with_application(request)
    assert stage.life.wait_for(ClientState.ERROR, timeout=LONG)
    assert stage.life.error is request
    assert not stage.life.shutdown_requested
    assert "app-1: LockException: in use by process 7" in str(request)


def test_a_handler_sees_the_exception_itself_and_decides_by_its_class() -> None:
    def by_class(error: BaseException) -> UncaughtExceptionResponse:
        if isinstance(error, MissingSourceTopicException):
            return UncaughtExceptionResponse.SHUTDOWN_APPLICATION
        return UncaughtExceptionResponse.SHUTDOWN_CLIENT

    for error, asks in ((MissingSourceTopicException("orders"), True), (LockException("in use"), False)):
        stage = Stage(by_class)
        stage.start()
        stage.made[0].die(error)
        assert stage.life.wait_for(ClientState.ERROR, timeout=LONG)
        assert stage.life.shutdown_requested is asks


FULL = RestartBudget.full(REPLACEMENTS)


def failing_handler(_error: BaseException) -> UncaughtExceptionResponse:
    raise KeyError("no such thing")


@pytest.mark.parametrize(
    ("error", "handler", "beyond_repair", "note"),
    [
        (BOOM, failing_handler, None, "handler failed on it with KeyError: 'no such thing'"),
        (BOOM, lambda _error: "replaceThread", None, "returned 'replaceThread', which is no UncaughtExceptionResponse"),
        (BOOM, lambda _error: None, None, "returned None"),
        (BOOM, REPLACE, "Spark's JVM has ended", "not replaced: Spark's JVM has ended"),
        (IllegalStateException("a defect"), REPLACE, None, "not replaced: the runtime asked for a move"),
        (MemoryError(), REPLACE, None, "not replaced: the process is out of memory"),
        (SystemExit(1), REPLACE, None, "not replaced: SystemExit is meant to end the process"),
    ],
)
def test_what_a_new_thread_would_not_mend_ends_the_client_and_says_why(
    error: BaseException, handler: object, beyond_repair: str | None, note: str
) -> None:
    verdict = judge(error, handler, FULL, 0.0, beyond_repair)  # type: ignore[arg-type]
    assert verdict.response is UncaughtExceptionResponse.SHUTDOWN_CLIENT
    assert note in verdict.note
    assert verdict.budget == FULL


def test_the_end_of_the_global_thread_ends_the_client_in_error() -> None:
    stage = Stage()
    stage.start()
    stage.life.global_thread_moved("global", GlobalThreadState.RUNNING)
    assert stage.state is ClientState.RUNNING
    stage.life.global_thread_moved("global", GlobalThreadState.DEAD)
    assert stage.life.wait_for(ClientState.ERROR, timeout=LONG)
    assert "global has ended" in str(stage.life.error)
    stage.hears(ClientState.PENDING_ERROR, ClientState.ERROR)


def test_the_global_thread_ends_quietly_when_the_client_closes() -> None:
    stage = Stage()
    stage.start()
    assert stage.life.close(LONG)
    stage.life.global_thread_moved("global", GlobalThreadState.DEAD)
    assert (stage.state, stage.life.error) == (ClientState.NOT_RUNNING, None)


def test_an_exception_of_the_global_thread_ends_the_client_also_where_threads_are_replaced(
    caplog: pytest.LogCaptureFixture,
) -> None:
    stage = Stage(REPLACE)
    stage.start()
    error = ProcessorStateException("the disk is full")
    stage.life.uncaught_in_global_thread("global", error)
    assert stage.life.wait_for(ClientState.ERROR, timeout=LONG)
    assert stage.life.error is error
    assert len(stage.made) == 1
    assert "the thread is not replaced: it is the global stream thread, of which there is no other" in caplog.text


def test_an_exception_of_the_global_thread_may_end_the_application() -> None:
    stage = Stage(declared("shutdownApplication"))
    stage.start()
    stage.life.uncaught_in_global_thread("global", BOOM)
    assert stage.life.wait_for(ClientState.ERROR, timeout=LONG)
    assert stage.life.shutdown_requested
