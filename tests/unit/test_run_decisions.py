"""What a local run decides: restarts, what an end means, whether the backlog is caught up with."""

from __future__ import annotations

import signal

import pytest

from streams_runtime.cli.local.outcome import End, end_of, exit_code_of, exit_text
from streams_runtime.cli.local.progress.catch_up import CatchUp
from streams_runtime.cli.local.progress.group_lag import GroupProgress
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.lifecycle.retry_budget import RestartBudget, RestartPolicy

POLICY = RestartPolicy(budget=3, refill=60.0, first=1.0, longest=5.0)


def crashes(uptimes):
    budget, delays = RestartBudget.full(POLICY), []
    for uptime in uptimes:
        budget, delay = budget.after_crash(uptime)
        delays.append(delay)
    return delays


def test_each_restart_in_a_row_waits_twice_as_long_until_the_budget_is_spent():
    assert crashes([0, 0, 0, 0]) == [1.0, 2.0, 4.0, None]


def test_a_restart_never_waits_longer_than_the_longest_delay():
    policy = RestartPolicy(budget=10, longest=5.0)
    budget = RestartBudget.full(policy)
    for _ in range(6):
        budget, delay = budget.after_crash(0)
    assert delay == 5.0


def test_uptime_gives_restarts_back_one_by_one():
    assert crashes([0, 0, 0, 60, 0]) == [1.0, 2.0, 4.0, 4.0, None]


def test_uptime_gives_back_no_more_than_the_whole_budget():
    assert crashes([1e9, 0, 0, 0]) == [1.0, 2.0, 4.0, None]


@pytest.mark.parametrize(
    ("code", "stop_requested", "started", "end"),
    [
        (0, False, True, End.NOT_RUNNING),
        (0, True, True, End.NOT_RUNNING),
        (70, False, True, End.ERROR),
        (70, True, True, End.ERROR),
        (64, False, False, End.UNUSABLE),
        (1, False, True, End.CRASHED),
        (-signal.SIGKILL, False, True, End.CRASHED),
        (-signal.SIGKILL, True, True, End.KILLED),
        (-signal.SIGTERM, False, True, End.CRASHED),
        (-signal.SIGTERM, True, True, End.CRASHED),
        (-signal.SIGTERM, True, False, End.NOT_RUNNING),
        (-signal.SIGSEGV, False, True, End.CRASHED),
    ],
)
def test_an_exit_code_tells_an_error_from_a_crash(code, stop_requested, started, end):
    assert end_of(code, stop_requested, started) is end


@pytest.mark.parametrize(
    ("ends", "complete", "code"),
    [
        ([End.NOT_RUNNING, End.NOT_RUNNING], True, 0),
        ([End.NOT_RUNNING], False, 1),
        ([], True, 0),
        ([End.NOT_RUNNING, End.ERROR], True, 70),
        ([End.UNUSABLE, End.CRASHED], True, 64),
        ([End.ERROR, End.UNUSABLE], True, 70),
        ([End.NOT_RUNNING, End.CRASHED], True, 1),
        ([End.KILLED], True, 1),
    ],
)
def test_the_worst_end_decides_the_exit_code(ends, complete, code):
    assert exit_code_of(ends, complete) == code


def test_a_signal_is_told_by_its_name():
    assert [exit_text(code) for code in (3, -9, -200)] == ["exit code 3", "signal SIGKILL", "signal 200"]


def progress(ends, committed=(), starts=()):
    """Offsets by `topic-partition`."""
    parsed = [{TopicPartition.parse(name): at for name, at in dict(each).items()} for each in (committed, starts, ends)]
    return GroupProgress(frozenset(each.topic for each in parsed[2]), *parsed)


STAGES = CatchUp((("orders", "refunds"), ("app-a-repartition",), ("app-b-repartition",)))
SOURCES = {"orders-0": 10, "refunds-0": 5}
ALL = {**SOURCES, "app-a-repartition-0": 7, "app-b-repartition-0": 3}


def test_nothing_to_read_is_caught_up_with_at_once():
    empty = dict.fromkeys(ALL, 0)
    assert STAGES.advanced(progress(empty)).done


def test_a_source_that_is_not_there_yet_is_waited_for():
    assert not STAGES.advanced(progress({"orders-0": 0})).done


def test_records_that_came_after_the_start_are_not_waited_for():
    begun = CatchUp((("orders",),)).advanced(progress({"orders-0": 10}))
    assert begun.advanced(progress({"orders-0": 99}, {"orders-0": 10})).done


def test_a_commit_short_of_the_backlog_is_not_enough():
    begun = CatchUp((("orders",),)).advanced(progress({"orders-0": 10, "orders-1": 4}))
    assert not begun.advanced(progress({"orders-0": 10, "orders-1": 4}, {"orders-0": 10, "orders-1": 3})).done


def test_repartition_topics_are_caught_up_with_downstream_one_after_the_other():
    now = STAGES.advanced(progress(ALL))
    now = now.advanced(progress(ALL, SOURCES))
    assert now.targets == {TopicPartition("app-a-repartition", 0): 7}
    grown = {**ALL, "app-a-repartition-0": 50, "app-b-repartition-0": 20}
    now = now.advanced(progress(grown, {**SOURCES, "app-a-repartition-0": 7}))
    assert now.targets == {TopicPartition("app-b-repartition", 0): 20}
    assert now.advanced(progress(grown, {**SOURCES, "app-a-repartition-0": 7, "app-b-repartition-0": 20})).done


def test_records_that_retention_took_before_anyone_read_them_are_not_waited_for():
    begun = CatchUp((("orders",),)).advanced(progress({"orders-0": 10}))
    assert begun.advanced(progress({"orders-0": 10}, starts={"orders-0": 10})).done


def test_the_lag_counts_from_the_start_of_what_is_still_there():
    seen = progress({"orders-0": 10, "orders-1": 4}, {"orders-0": 2}, {"orders-1": 3})
    assert seen.lag() == 8 + 1
