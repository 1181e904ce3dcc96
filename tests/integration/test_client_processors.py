"""Processors of whole clients: the clock without any input, tasks that move with their stores, Spark that starts."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from clients import client, run_until_done, send, until_done, until_running
from ledger_checks import is_all_counted, is_all_told, ticks, wanted, without_ticks
from ledger_processor import topology
from orders import copies, make_order_topics, orders, totals
from waiting import eventually

from streams_runtime.client import StreamsClient
from streams_runtime.query.stores.key_value_handle import StoreQueryParameters
from streams_runtime.states import ClientState

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("spark")]

START = int(time.time() - 3600) * 1000
"""An hour ago: brokers drop what is older than its retention from the changelog of a session store."""


def sent(bootstrap: str, n: str, first: int, count: int = 40) -> None:
    """Orders, in time, some of them behind it."""
    numbers = range(first, first + count)
    send(bootstrap, f"{n}-orders", orders(numbers), times=[START + 4 * it - 9 * (it % 3) for it in numbers])


def described(made: StreamsClient) -> dict[str, Any]:
    return dict(made.describe())


def has_followed(standbys: StreamsClient, active: StreamsClient, since: float) -> bool:
    """Whether one client keeps what the other one had at a time of the monotonic clock.

    Processors' clocks never stand still, so there may be no moment at which nothing is missing.
    """
    ages = {row["id"]: row["age"] for row in described(standbys)["standbys"]}
    behind = time.monotonic() - since
    is_whole = len(ages) == 2 and sorted(ages) == tasks_of(active)
    return is_whole and all(age is not None and age < behind for age in ages.values())


def tasks_of(made: StreamsClient) -> list[str]:
    return sorted(row["id"] for row in described(made)["tasks"])


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
def test_the_clock_ticks_on_a_running_client_that_gets_no_records(
    broker: Any, namespace: str, tmp_path: Path, guarantee: str
) -> None:
    bootstrap, n = broker.bootstrap_servers, namespace
    make_order_topics(bootstrap, n)
    with client(bootstrap, n, topology(n), tmp_path, processing={"guarantee": guarantee}) as made:
        made.start()
        until_running(made)
        eventually(lambda: sorted(ticks(bootstrap, n)) == ["0_0", "0_1"], "both tasks tick")
        eventually(lambda: min(ticks(bootstrap, n).values()) >= 3, "and they go on")
        behind = lambda: described(made)["counters"]["records_processed"] >= 6  # noqa: E731 - of the repartition topic
        eventually(behind, "what they forward is processed")
    told = ticks(bootstrap, n)
    with client(bootstrap, n, topology(n), tmp_path, processing={"guarantee": guarantee}) as made:
        made.start()
        until_running(made)
        eventually(lambda: all(ticks(bootstrap, n)[task] > count for task, count in told.items()), "numbered on")


def sized(n: str) -> str:
    """Orders by their size: small ones to NAME-copies, large ones added up by user behind a repartition topic."""
    row = 'key: {format: string}, value: {format: json, schema: "user STRING, amount BIGINT, id BIGINT"}'
    process = '{python: "processor_classes:Sizing", value: "amount BIGINT, id BIGINT", key: STRING'
    return f"""
sources:
  - {{name: orders, topic: {n}-orders, {row}}}
steps:
  - {{name: sized, from: orders, process: {process}, outputs: [large, small]}}}}
  - {{name: totals, from: sized.large, aggregate: {{total: sum(amount), n: count(*)}}, store: totals}}
sinks:
  - {{from: sized.small, topic: {n}-copies}}
  - {{from: totals, topic: {n}-totals}}
"""


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
def test_outputs_get_each_record_once_on_clients_of_which_one_goes(
    broker: Any, namespace: str, tmp_path: Path, guarantee: str
) -> None:
    bootstrap, n = broker.bootstrap_servers, namespace
    make_order_topics(bootstrap, n)
    spec = {"processing": {"guarantee": guarantee}}
    with client(bootstrap, n, sized(n), tmp_path / "0", "i-0", **spec) as first:
        with client(bootstrap, n, sized(n), tmp_path / "1", "i-1", **spec) as second:
            for each in (first, second):
                each.start()
            for each in (first, second):
                until_running(each)
            sent(bootstrap, n, 0)
            until_done(first, [f"{n}-orders"], second)
        eventually(lambda: len(tasks_of(first)) == 4 and first.state is ClientState.RUNNING, "it has all")
        sent(bootstrap, n, 40)
        until_done(first, [f"{n}-orders"])
        given = [order for _, order in orders(range(80))]
        large = Counter(order["user"] for order in given if order["amount"] > 1)
        counted = lambda: {user: row["n"] for user, row in totals(bootstrap, n).items()}  # noqa: E731 - asked again
        eventually(lambda: counted() == large, lambda: f"{counted()} beside {large}")
        assert copies(bootstrap, n) == Counter(order["id"] for order in given if order["amount"] != 2)
        assert first.context.admin.partition_counts([f"{n}-sized.large-repartition"])


@pytest.mark.parametrize("of", ["Ledger", "BatchLedger"])
def test_a_task_goes_on_with_its_stores_and_schedules_where_its_standby_was(
    broker: Any, namespace: str, tmp_path: Path, of: str
) -> None:
    bootstrap, n = broker.bootstrap_servers, namespace
    make_order_topics(bootstrap, n)
    spec = {"processing": {"guarantee": "exactly_once_v2", "standbyReplicas": 1}}
    folders = [tmp_path / "0", tmp_path / "1"]
    with client(bootstrap, n, topology(n, of), folders[0], "i-0", **spec) as first:
        with client(bootstrap, n, topology(n, of), folders[1], "i-1", **spec) as second:
            for each in (first, second):
                each.start()
            for each in (first, second):
                until_running(each)
            sent(bootstrap, n, 0)
            until_done(first, [f"{n}-orders"], second)
            eventually(lambda: is_all_told(bootstrap, n), "all orders are told")
            shown, now = lambda: f"{described(first)['standbys']} beside {tasks_of(second)}", time.monotonic()
            eventually(lambda: has_followed(first, second, now), lambda: f"the first keeps what it has: {shown()}")
        restored = described(first)["counters"]["restored_records"]
        eventually(lambda: len(tasks_of(first)) == 4 and first.state is ClientState.RUNNING, "it has all")
        sent(bootstrap, n, 40)
        until_done(first, [f"{n}-orders"])
        eventually(lambda: is_all_told(bootstrap, n) and is_all_counted(bootstrap, n), "all is told and counted")
        assert without_ticks(bootstrap, n) == wanted(bootstrap, n)
        ticks(bootstrap, n)
        assert described(first)["counters"]["restored_records"] == restored
    # The stores are gone: all comes back from the changelogs.
    with client(bootstrap, n, topology(n, of), tmp_path / "2", "i-0", **spec) as third:
        sent(bootstrap, n, 80)
        run_until_done(third, [f"{n}-orders"])
        eventually(lambda: is_all_told(bootstrap, n) and is_all_counted(bootstrap, n), "all is told and counted")
        assert without_ticks(bootstrap, n) == wanted(bootstrap, n)
        with third.store(StoreQueryParameters("counts")).all() as entries:
            kept = {key for key, _ in entries}
        assert {"u0", "u6", "ticks"} <= kept
        assert "progress" not in kept
    ticks(bootstrap, n)
