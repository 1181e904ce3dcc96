"""What a local run shows: rows made of /state and of processes, the table, the lines, the JSON events."""

from __future__ import annotations

import io
import json

import pytest
from pipeline_kit import source, topology_of
from rich.console import Console

from streams_runtime.cli.local.progress.group_lag import GroupProgress
from streams_runtime.cli.local.progress.live_table import drawing, duration
from streams_runtime.cli.local.progress.overview import (
    Failure,
    Overview,
    ReplicaSnapshot,
    application_row,
    instance_row,
    on_the_way,
    restoration_of,
    setup_of,
    topic_rows,
    weakest,
)
from streams_runtime.cli.local.progress.run_account import RunAccount
from streams_runtime.cli.local.progress.run_document import change, document_of
from streams_runtime.cli.local.progress.run_events import RunEvent
from streams_runtime.cli.local.progress.run_output import JsonReporter, LineReporter, application_line
from streams_runtime.kafka.types import TopicPartition

NOW = 1000.0


def store(partition=0, start=0, position=0, end=100, began=990.0, ended=None):
    return {
        "store": "totals",
        "topic": "app-totals-changelog",
        "partition": partition,
        "start": start,
        "position": position,
        "end": end,
        "restored": position - start,
        "started_at": began,
        "ended_at": ended,
    }


def described(state="RUNNING", tasks=("0_0",), lags=(), stores=(), error=None, late=0):
    return {
        "state": state,
        "tasks": [{"id": task, "state": "RUNNING"} for task in tasks],
        "lag": [{"topic": "orders", "partition": n, "lag": lag} for n, lag in enumerate(lags)],
        "restoration": list(stores),
        "counters": {"records_processed": 7, "late_records": late},
        "error": error,
    }


def row(name="app-0", now=NOW, **of):
    return instance_row(ReplicaSnapshot(name, **of), now)


def overview(*rows, lag=0, setup="Created"):
    progress = GroupProgress(frozenset(), {}, {}, {TopicPartition("orders", 0): lag})
    application = application_row("app", rows, progress, setup, age=75)
    return Overview(application, rows, topic_rows(progress), backlog=100)


def test_records_that_come_too_late_are_shown_as_soon_as_there_are_any():
    none, some = overview(row(described=described())), overview(row(described=described(late=1234)))
    assert "late" not in application_line(none.application)
    assert application_line(some.application).endswith(" setup Created late 1,234")
    assert "LATE" not in drawn(none)
    assert "1,234" in drawn(some)


def test_a_process_that_has_not_answered_yet_is_created():
    it = row(pid=12)
    assert (it.state, it.pid, it.tasks, it.lag) == ("CREATED", 12, {}, None)


def test_an_instance_is_what_its_state_says():
    it = row(pid=12, url="http://x", described=described(tasks=("0_0", "1_0"), lags=(3, None, 4)))
    assert (it.state, list(it.tasks), it.lag, it.url) == ("RUNNING", ["0_0", "1_0"], 7, "http://x")


def test_a_process_that_is_gone_has_no_tasks_whatever_it_said_last():
    it = row(state="CRASHED", described=described(lags=(5,), stores=[store()]))
    assert (it.state, it.pid, it.tasks, it.lag, it.restoring) == ("CRASHED", None, {}, None, 0)
    assert it.counters == {"records_processed": 7, "late_records": 0}


def test_an_error_is_shown_as_soon_as_the_instance_tells_it():
    it = row(described=described("PENDING_ERROR", error={"class": "LockException", "message": "in use"}))
    assert it.failure == Failure("LockException", "in use")


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        (["RUNNING", "RUNNING"], "RUNNING"),
        (["RUNNING", "REBALANCING"], "REBALANCING"),
        (["CREATED", "REBALANCING"], "CREATED"),
        (["RUNNING", "CRASHED"], "CRASHED"),
        (["CRASHED", "PENDING_ERROR"], "PENDING_ERROR"),
        (["RUNNING", "ERROR", "CRASHED"], "ERROR"),
        (["RUNNING", "NOT_RUNNING"], "RUNNING"),
        (["NOT_RUNNING", "NOT_RUNNING"], "NOT_RUNNING"),
        (["RUNNING", "PENDING_ERROR", "PENDING_SHUTDOWN"], "PENDING_ERROR"),
    ],
)
def test_an_application_is_as_well_as_its_weakest_instance(states, expected):
    assert weakest(states) == expected


def test_a_restoration_is_measured_over_what_goes_on_now():
    before = store(0, 0, 50, 50, began=900, ended=905)
    just_done = store(1, 10, 60, 60, began=990, ended=995)
    ongoing = store(2, 0, 100, 400, began=990)
    it = restoration_of([before, just_done, ongoing], NOW)
    assert (it.done, it.total, it.left) == (150, 450, 300)
    assert it.rate == pytest.approx(15.0)
    assert it.eta == pytest.approx(20.0)


def test_nothing_is_restored_when_all_has_ended():
    assert restoration_of([store(ended=995.0)], NOW) is None


def test_a_restoration_that_has_not_begun_to_move_has_no_eta():
    assert restoration_of([store()], NOW).eta is None


@pytest.mark.parametrize(
    ("before", "present", "failures", "expected"),
    [
        ({"a", "b"}, {"a", "b"}, [], "AlreadySetUp"),
        ({"a"}, {"a"}, [], "Pending"),
        ({"a"}, {"a", "b"}, [], "Created"),
        (set(), set(), [Failure("MissingSourceTopicException", "")], "MissingSourceTopics"),
        (set(), set(), [Failure("LockException", "")], "Pending"),
    ],
)
def test_the_setup_column_tells_what_became_of_the_internal_topics(before, present, failures, expected):
    assert setup_of({"a", "b"}, before, present, failures) == expected


def test_an_instance_that_will_not_come_back_is_not_waited_for():
    running = row(described=described())
    assert not on_the_way([running, row("app-1", state="ERROR", over=True)])
    assert not on_the_way([running, row("app-1", state="CRASHED", over=True)])
    assert on_the_way([running, row("app-1", state="CRASHED")])
    assert on_the_way([running, row("app-1", described=described("REBALANCING"))])
    assert on_the_way([row(state="ERROR", over=True)])
    assert on_the_way([running, row("app-1", described=described() | {"spark_ready": False})])


def test_the_account_says_at_the_end_how_often_a_record_came_too_late():
    topology = topology_of([source("string")], sinks=[{"from": "in", "topic": "out"}])
    nothing = GroupProgress(frozenset(), {}, {}, {})
    account = RunAccount("app", topology, nothing, NOW)
    account.overview([ReplicaSnapshot("app-0", described=described())], nothing, NOW)
    assert account.late is None
    seen = [
        ReplicaSnapshot("app-0", described=described(late=1_200)),
        ReplicaSnapshot("app-1", described=described(late=3)),
    ]
    account.overview(seen, nothing, NOW)
    account.overview([ReplicaSnapshot("app-0", state="NOT_RUNNING"), seen[1]], nothing, NOW)
    assert account.late == RunEvent(
        "late",
        "1,203 times a record came too late (app-0 1,200, app-1 3); the logs name the steps",
        {"late_records": {"app-0": 1_200, "app-1": 3}},
        problem=True,
    )


def drawn(seen, width=80):
    console = Console(file=io.StringIO(), width=width)
    console.print(drawing(seen))
    return console.file.getvalue()


def test_the_table_has_the_columns_of_kubectl_and_fits_eighty_characters():
    text = drawn(overview(row(pid=12345, url="http://127.0.0.1:45678", described=described(lags=(50_000_000,)))))
    assert text.splitlines()[0].split() == ["NAME", "STATE", "READY", "TASKS", "RESTORING", "LAG", "SETUP", "AGE"]
    assert text.splitlines()[1].split() == ["app", "RUNNING", "1/1", "1", "0", "0", "Created", "1m15s"]
    assert "http://127.0.0.1:45678" in text
    assert "50,000,000" in text


def test_bars_are_shown_for_what_goes_on_only():
    restoring = row(described=described("REBALANCING", stores=[store(position=25)]))
    busy, idle = drawn(overview(restoring, lag=60)), drawn(overview(row(described=described())))
    assert "app-0 restores" in busy
    assert "25 of 100 records" in busy
    assert "40 of 100 records" in busy
    assert "restores" not in idle
    assert "backlog" not in idle


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "0s"), (45, "45s"), (190, "3m10s"), (3600, "1h"), (90_061, "1d1h")]
)
def test_ages_read_as_those_of_kubectl(seconds, text):
    assert duration(seconds) == text


def test_a_change_is_named_for_what_a_reader_waits_for():
    calm = document_of(overview(row(pid=1, described=described(lags=(9,)))))
    other_lag = document_of(overview(row(pid=1, described=described(lags=(8,)))))
    restored = document_of(overview(row(pid=1, described=described(lags=(9,), stores=[store()]))))
    other_pid = document_of(overview(row(pid=2, described=described(lags=(8,)))))
    crashed = document_of(overview(row(state="CRASHED")))
    assert change(calm, calm) is None
    assert change(None, calm) == "state"
    assert change(calm, other_lag) == "progress"
    assert change(calm, restored) == "restoration"
    assert change(calm, other_pid) == "instance"
    assert change(calm, crashed) == "state"


def test_json_tells_each_change_once_and_news_after_the_overview_it_came_with(capfdbinary):
    reporter = JsonReporter()
    first = overview(row(pid=1, described=described()))
    reporter.show(first)
    reporter.show(first)
    reporter.show(overview(row(state="CRASHED")))
    reporter.report(RunEvent("crash", "app-0 crashed", {"instance": "app-0"}))
    events = [json.loads(line) for line in capfdbinary.readouterr().out.splitlines()]
    assert [event["event"] for event in events] == ["state", "state", "crash"]
    assert [event["application"]["state"] for event in events[:2]] == ["RUNNING", "CRASHED"]
    assert events[2]["instance"] == "app-0"


def test_lines_tell_changes_and_send_problems_to_stderr(capsys):
    reporter = LineReporter()
    reporter.show(overview(row(pid=1, described=described())))
    reporter.show(overview(row(pid=1, described=described())))
    reporter.report(RunEvent("crash", "app-0 crashed", problem=True))
    reporter.report(RunEvent("exit", "", {"code": 0}))
    out, err = capsys.readouterr()
    assert out.splitlines() == [
        "  app-0 RUNNING pid 1",
        "app RUNNING ready 1/1 tasks 1 restoring 0 lag 0 setup Created",
    ]
    assert err.splitlines() == ["app-0 crashed"]
