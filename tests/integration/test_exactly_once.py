"""Whole clients under exactly once: what is read, what is written, and what becomes of a batch that is given up."""

from __future__ import annotations

import dataclasses
import logging
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from clients import client, make_topics, run_until_done, send, until_done
from confluent_kafka import Producer
from instances import write_application
from orders import copies, expected_totals, make_order_topics, orders, topology, totals
from waiting import DEADLINE, eventually

from streams_runtime import threads
from streams_runtime.client import StreamsClient
from streams_runtime.kafka.foreign import QuietLog
from streams_runtime.kafka.partitioner import partition_for
from streams_runtime.kafka.transactions import TransactionalProducer
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.query.handles import StoreQueryParameters
from streams_runtime.states import ClientState

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("spark")]

ONCE = {"guarantee": "exactly_once_v2"}


def with_users(n: str) -> str:
    """The orders' topology with a table beside it, which is its own changelog."""
    value = 'value: {format: json, schema: "name STRING"}'
    users = f"  - {{name: users, topic: {n}-users, key: {{format: string}}, table: {{store: users}}, {value}}}"
    return topology(n, users)


def contents(made: StreamsClient, store: str) -> dict[Any, Any]:
    with made.store(StoreQueryParameters(store)).all() as entries:
        return dict(entries)


@contextmanager
def transaction(bootstrap: str, name: str, topic: str, records: Sequence[tuple[str, bytes]]) -> Iterator[Producer]:
    """An open transaction with these records."""
    config = {"bootstrap.servers": bootstrap, "transactional.id": name, "partitioner": "murmur2_random"}
    producer = Producer(config, logger=QuietLog())
    producer.init_transactions(DEADLINE)
    producer.begin_transaction()
    for key, value in records:
        producer.produce(topic, value, key)
    assert producer.flush(DEADLINE) == 0
    yield producer


@pytest.mark.parametrize("backlog", [1, 50_000], ids=["spark-reads", "the-member-fetches"])
def test_what_is_not_committed_is_neither_processed_nor_restored(
    broker: Any, namespace: str, tmp_path: Path, backlog: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "_PURGE_SECONDS", 0)
    bootstrap, n = broker.bootstrap_servers, namespace
    make_order_topics(bootstrap, n)
    make_topics(bootstrap, **{f"{n}-users": 1})
    never = [("k", b'{"user": "never", "amount": 1, "id": -1}')]
    with transaction(bootstrap, f"{n}-1", f"{n}-orders", never) as aborted:
        send(bootstrap, f"{n}-orders", orders(range(100)))
        aborted.abort_transaction(DEADLINE)
    with transaction(bootstrap, f"{n}-2", f"{n}-users", [("u9", b'{"name": "never"}')]) as aborted:
        aborted.abort_transaction(DEADLINE)
    send(bootstrap, f"{n}-users", [("u1", {"name": "one"})])
    with (
        transaction(bootstrap, f"{n}-3", f"{n}-orders", never * 20) as still_open,
        client(bootstrap, n, with_users(n), tmp_path / "a", processing=ONCE) as made,
    ):
        made.limits = dataclasses.replace(made.limits, backlog=backlog)
        made.start()
        assert made.wait_for(ClientState.RUNNING, timeout=DEADLINE), made.error
        eventually(
            lambda: contents(made, "totals") == expected_totals(range(100)), "what is before the open transaction"
        )
        send(bootstrap, f"{n}-orders", orders(range(100, 200)))
        # Which ends where the transaction begins; the account of it may be a second old.
        eventually(lambda: sum(copies(bootstrap, n).values()) > 100, "what is in the other partition")
        eventually(lambda: all(row["lag"] == 0 for row in made.describe()["lag"]), "no lag up to the open transaction")  # type: ignore[attr-defined]
        held_up = {i for i in range(100, 200) if partition_for(b"k%d" % i, 2) == partition_for(b"k", 2)}
        assert copies(bootstrap, n) == Counter(set(range(200)) - held_up)
        still_open.abort_transaction(DEADLINE)
        until_done(made, [f"{n}-orders", f"{n}-users"])
        repartition = f"{n}-by-user-repartition"
        until_done(made, [repartition])
        assert contents(made, "totals") == expected_totals(range(200))
        assert contents(made, "users") == {"u1": {"name": "one"}}
        parts = [TopicPartition(repartition, number) for number in range(2)]
        eventually(lambda: sum(made.admin.start_offsets(parts).values()) >= 200, "processed records are deleted")
    assert copies(bootstrap, n) == Counter(range(200))
    assert totals(bootstrap, n) == expected_totals(range(200))
    changelog = f"{n}-totals-changelog"
    with transaction(bootstrap, f"{n}-4", changelog, [("u1", b'{"total": 0, "n": 0}')]) as aborted:
        aborted.abort_transaction(DEADLINE)
    with client(bootstrap, n, with_users(n), tmp_path / "b", processing=ONCE) as made:
        run_until_done(made, [f"{n}-orders", repartition])
        assert contents(made, "totals") == expected_totals(range(200))
        assert contents(made, "users") == {"u1": {"name": "one"}}
        assert made.describe()["counters"]["records_processed"] == 0  # type: ignore[index]


def test_a_fenced_producer_is_replaced_and_its_tasks_revived_where_the_group_is(
    broker: Any, namespace: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bootstrap, n = broker.bootstrap_servers, namespace
    make_order_topics(bootstrap, n)
    with client(bootstrap, n, topology(n), tmp_path, processing=ONCE) as made:
        send(bootstrap, f"{n}-orders", orders(range(50)))
        run_until_done(made, [f"{n}-orders", f"{n}-by-user-repartition"])
        other = TransactionalProducer(made.client_properties, "other", f"{n}-{n}-i-0-1")
        other.initialise()
        with caplog.at_level(logging.WARNING):
            send(bootstrap, f"{n}-orders", orders(range(50, 100)))
            until_done(made, [f"{n}-orders"])
        assert "end that one" in caplog.text
        assert made.wait_for(ClientState.RUNNING, timeout=DEADLINE), made.error
        until_done(made, [f"{n}-by-user-repartition"])
        assert contents(made, "totals") == expected_totals(range(100))
        assert made.describe()["counters"]["restored_records"] == 0  # type: ignore[index]
        other.close()
    assert copies(bootstrap, n) == Counter(range(100))
    assert totals(bootstrap, n) == expected_totals(range(100))


def test_a_run_until_caught_up_ends_when_all_that_is_committed_is_processed(
    broker: Any, namespace: str, tmp_path: Path
) -> None:
    """The last records of each stage are below its end, and after them come only markers, or records of nobody."""
    bootstrap, n = broker.bootstrap_servers, namespace
    make_order_topics(bootstrap, n)
    send(bootstrap, f"{n}-orders", orders(range(300)))
    file = tmp_path / "app.yaml"
    write_application(file, n, topology(n), processing=ONCE)
    never = [("k1", b'{"user": "never", "amount": 1, "id": -1}')]
    with transaction(bootstrap, f"{n}-1", f"{n}-orders", never):
        streamsapp = str(Path(sys.executable).with_name("streamsapp"))
        command = [streamsapp, "run", str(file), "--bootstrap-servers", bootstrap, "--until-caught-up"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert copies(bootstrap, n) == Counter(range(300))
    assert totals(bootstrap, n) == expected_totals(range(300))
