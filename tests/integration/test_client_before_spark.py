"""A client is RUNNING, answers queries and does the batches that need no Spark while Spark is still starting."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ledger_processor
import pytest
from clients import DEADLINE, client, last_values, make_topics, read, run_until_done, send, until_done
from totals_application import USERS, totals
from waiting import eventually

from streams_runtime.client import StreamsClient
from streams_runtime.errors import EnvironmentException, StreamsRebalancingException
from streams_runtime.pipeline.spark import spark_session
from streams_runtime.query.stores.key_value_handle import StoreQueryParameters
from streams_runtime.states import ClientState

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("spark")]

GUARANTEES = pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])


class Start:
    """Spark's start, which waits until it is let on, or fails then."""

    def __init__(self, real: Any) -> None:
        self.begun, self.let_on = threading.Event(), threading.Event()
        self.failure: Exception | None = None
        self._real = real

    def __call__(self, *arguments: Any) -> Any:
        self.begun.set()
        assert self.let_on.wait(DEADLINE)
        if self.failure is not None:
            raise self.failure
        return self._real(*arguments)


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    made = Start(spark_session.open_session)
    monkeypatch.setattr(spark_session, "open_session", made)
    yield made
    made.let_on.set()


def contents(made: StreamsClient) -> dict[Any, Any]:
    with made.store(StoreQueryParameters("totals")).all() as entries:
        return {key: value["total"] for key, value in entries}


def topics(bootstrap: str, name: str) -> None:
    make_topics(bootstrap, **{f"{name}-orders": 2, f"{name}-totals": 2})


def orders(bootstrap: str, name: str, amount: int = 1) -> None:
    """One of each user."""
    send(bootstrap, f"{name}-orders", [(user, {"amount": amount}) for user in USERS])


def is_running(made: StreamsClient) -> None:
    assert made.wait_for(ClientState.RUNNING, timeout=DEADLINE), made.error
    assert not made.spark_ready
    assert made.describe()["spark_ready"] is False


def run_before(bootstrap: str, name: str, folder: Path, start: Start, **spec: Any) -> None:
    """An earlier start, with all that it takes, which does one order of each user; then Spark waits again."""
    topics(bootstrap, name)
    orders(bootstrap, name)
    start.let_on.set()
    with client(bootstrap, name, totals(name), folder, **spec) as made:
        run_until_done(made, [f"{name}-orders"])
        assert made.spark_ready
    start.let_on.clear()


@GUARANTEES
def test_a_first_start_is_running_without_spark_and_processes_once_that_is_there(
    guarantee: str, broker: Any, namespace: str, tmp_path: Path, start: Start
) -> None:
    bootstrap = broker.bootstrap_servers
    topics(bootstrap, namespace)
    orders(bootstrap, namespace)
    with client(bootstrap, namespace, totals(namespace), tmp_path, processing={"guarantee": guarantee}) as made:
        made.start()
        is_running(made)
        eventually(start.begun.is_set, "Spark is started beside it")
        assert not made._inspection.is_analysed
        with pytest.raises(StreamsRebalancingException, match="Spark, which is still starting, has not analysed"):
            contents(made)
        assert read(bootstrap, f"{namespace}-totals") == []
        start.let_on.set()
        until_done(made, [f"{namespace}-orders"])
        assert contents(made) == dict.fromkeys(USERS, 1)
        assert made.spark_ready
    assert (tmp_path / namespace / "analysis.json").exists()


@GUARANTEES
def test_a_restart_answers_and_does_batches_without_spark(
    guarantee: str, broker: Any, namespace: str, tmp_path: Path, start: Start
) -> None:
    bootstrap, spec = broker.bootstrap_servers, {"processing": {"guarantee": guarantee}}
    run_before(bootstrap, namespace, tmp_path, start, **spec)
    with client(bootstrap, namespace, totals(namespace), tmp_path, **spec) as made:
        made.start()
        is_running(made)
        assert made._inspection.is_analysed
        assert contents(made) == dict.fromkeys(USERS, 1)
        orders(bootstrap, namespace)
        until_done(made, [f"{namespace}-orders"])
        assert contents(made) == dict.fromkeys(USERS, 2)
        expected = {user: {"total": 2} for user in USERS}
        assert last_values(bootstrap, f"{namespace}-totals", committed=True) == expected
        # What only Spark can judge waits for it, and all that comes behind it.
        send(bootstrap, f"{namespace}-orders", [("u0", b'\n{"amount": 10}')])
        orders(bootstrap, namespace)
        # The other partition's may have come in a fetch before, and so in a batch without Spark.
        eventually(lambda: any((row["lag"] or 0) > 1 for row in made.describe()["lag"]), "they wait")  # type: ignore[attr-defined]
        assert not made.spark_ready
        start.let_on.set()
        until_done(made, [f"{namespace}-orders"])
        assert made.spark_ready
        assert contents(made) == dict.fromkeys(USERS, 3) | {"u0": 13}
        expected = {user: {"total": 3 + 10 * (user == "u0")} for user in USERS}
        assert last_values(bootstrap, f"{namespace}-totals", committed=True) == expected
        assert len(read(bootstrap, f"{namespace}-totals", committed=True)) <= 3 * len(USERS) + 1, "nothing came twice"


def test_a_pause_a_thread_more_and_a_rebalance_while_spark_starts(
    broker: Any, namespace: str, tmp_path: Path, start: Start
) -> None:
    bootstrap = broker.bootstrap_servers
    run_before(bootstrap, namespace, tmp_path, start)
    with client(bootstrap, namespace, totals(namespace), tmp_path) as made:
        made.pause()
        made.start()
        is_running(made)
        orders(bootstrap, namespace)
        assert made.add_thread() is not None
        eventually(lambda: all(len(each.tasks.tasks) == 1 for each in made.threads), "each has a task")
        is_running(made)
        assert contents(made) == dict.fromkeys(USERS, 1)
        made.resume()
        until_done(made, [f"{namespace}-orders"])
        assert contents(made) == dict.fromkeys(USERS, 2)
        assert not made.spark_ready
        start.let_on.set()
        orders(bootstrap, namespace)
        until_done(made, [f"{namespace}-orders"])
        eventually(lambda: made.spark_ready, "Spark is there")
        assert contents(made) == dict.fromkeys(USERS, 3)


@pytest.mark.parametrize("kept", [False, True])
def test_what_spark_refuses_ends_a_client_that_was_running(
    kept: bool, broker: Any, namespace: str, tmp_path: Path, start: Start
) -> None:
    bootstrap = broker.bootstrap_servers
    run_before(bootstrap, namespace, tmp_path / ("this" if kept else "another"), start)
    start.failure = EnvironmentException("Java is too old: install 17")
    with client(bootstrap, namespace, totals(namespace), tmp_path / "this") as made:
        made.start()
        is_running(made)
        start.let_on.set()
        assert made.wait_for(ClientState.ERROR, timeout=DEADLINE)
        assert made.error is start.failure


def test_an_expression_that_spark_refuses_ends_it_too_and_is_named(
    broker: Any, namespace: str, tmp_path: Path, start: Start
) -> None:
    bootstrap = broker.bootstrap_servers
    topics(bootstrap, namespace)
    wrong = totals(namespace).replace("sum(amount)", "sum(no_such_function(amount))")
    with client(bootstrap, namespace, wrong, tmp_path) as made:
        made.start()
        is_running(made)
        start.let_on.set()
        assert made.wait_for(ClientState.ERROR, timeout=DEADLINE)
        assert "no_such_function" in str(made.error)
    assert not (tmp_path / namespace / "analysis.json").exists()


@pytest.mark.parametrize("kept", [False, True])
def test_a_client_that_is_closed_while_spark_starts_ends_in_order(
    kept: bool, broker: Any, namespace: str, tmp_path: Path, start: Start
) -> None:
    bootstrap = broker.bootstrap_servers
    run_before(bootstrap, namespace, tmp_path / ("this" if kept else "another"), start)
    with client(bootstrap, namespace, totals(namespace), tmp_path / "this") as made:
        made.start()
        is_running(made)
        eventually(start.begun.is_set, "Spark starts")
        assert not made.close(0), "a start that is under way is waited for"
        eventually(lambda: not any(thread.tasks.tasks for thread in made.threads), "its tasks are given back")
        start.let_on.set()
        assert made.wait_for(ClientState.NOT_RUNNING, timeout=DEADLINE)


def test_an_analysis_of_another_topology_is_neither_used_nor_left(
    broker: Any, namespace: str, tmp_path: Path, start: Start
) -> None:
    bootstrap = broker.bootstrap_servers
    run_before(bootstrap, namespace, tmp_path, start)
    kept = (tmp_path / namespace / "analysis.json").read_bytes()
    doubled = totals(namespace).replace("sum(amount)", "sum(amount + amount)")
    with client(bootstrap, namespace, doubled, tmp_path) as made:
        made.start()
        is_running(made)
        assert not made._inspection.is_analysed
        orders(bootstrap, namespace)
        start.let_on.set()
        until_done(made, [f"{namespace}-orders"])
        assert contents(made) == dict.fromkeys(USERS, 3)
    assert (tmp_path / namespace / "analysis.json").read_bytes() != kept


def test_the_clock_of_a_processor_waits_for_spark_and_keeps_nothing_else_waiting(
    broker: Any, namespace: str, tmp_path: Path, start: Start
) -> None:
    bootstrap, ledger = broker.bootstrap_servers, f"{namespace}-ledger"
    make_topics(bootstrap, **{f"{namespace}-others": 1, ledger: 1})
    value = 'format: json, schema: "user STRING, id BIGINT"'
    source = f"sources: [{{name: others, topic: {namespace}-others, key: {{format: string}}, value: {{{value}}}}}, "
    process = f"steps: [{{name: ticks, from: others, process: {ledger_processor.process()}}}, "
    sink = f"sinks: [{{from: ticks, topic: {ledger}}}, "
    topology = totals(namespace).replace("sources: [", source).replace("steps: [", process).replace("sinks: [", sink)
    topics(bootstrap, namespace)
    orders(bootstrap, namespace)
    start.let_on.set()
    with client(bootstrap, namespace, topology, tmp_path) as made:
        run_until_done(made, [f"{namespace}-orders"])
        eventually(lambda: bool(read(bootstrap, ledger)), "the clock ticks")
    start.let_on.clear()
    ticks = len(read(bootstrap, ledger))
    with client(bootstrap, namespace, topology, tmp_path) as made:
        made.start()
        is_running(made)
        for amount in (1, 1, 1):
            orders(bootstrap, namespace, amount)
            until_done(made, [f"{namespace}-orders"])
            began = time.monotonic()
            eventually(lambda: time.monotonic() > began + 1, "a tick would be due")  # noqa: B023
        assert contents(made) == dict.fromkeys(USERS, 4)
        assert not made.spark_ready
        assert len(read(bootstrap, ledger)) == ticks
        start.let_on.set()
        eventually(lambda: len(read(bootstrap, ledger)) > ticks, "it ticks on once Spark is there")
