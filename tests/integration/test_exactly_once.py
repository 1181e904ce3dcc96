"""Whole clients under exactly once: what is read, what is written, and what becomes of a batch that is given up."""

from __future__ import annotations

import dataclasses
import logging
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from away import standing_still
from clients import client, make_topics, run_until_done, send, until_done, until_running
from instances import write_application
from open_transactions import transaction
from orders import copies, expected_totals, make_order_topics, orders, topology, totals
from waiting import DEADLINE, eventually

from streams_runtime.api.reading.legal_names import transactional_id
from streams_runtime.client import StreamsClient
from streams_runtime.errors import InvalidStateStoreException
from streams_runtime.kafka.broker.embedded_broker import EmbeddedBroker
from streams_runtime.kafka.producer.partitioner import partition_for
from streams_runtime.kafka.producer.transactions import TransactionalProducer
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.processing import purge
from streams_runtime.query.stores.key_value_handle import StoreQueryParameters
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


@pytest.mark.parametrize("backlog", [1, 50_000], ids=["spark-reads", "the-member-fetches"])
def test_what_is_not_committed_is_neither_processed_nor_restored(
    broker: Any, namespace: str, tmp_path: Path, backlog: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(purge, "_INTERVAL", 0)
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
        made.context.limits = dataclasses.replace(made.context.limits, backlog=backlog)
        made.start()
        until_running(made)
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
        eventually(
            lambda: sum(made.context.admin.start_offsets(parts).values()) >= 200, "processed records are deleted"
        )
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
        other = TransactionalProducer(made.context.client_properties, "other", transactional_id(n, f"{n}-i-0-1"))
        other.initialise()
        with caplog.at_level(logging.WARNING):
            send(bootstrap, f"{n}-orders", orders(range(50, 100)))
            until_done(made, [f"{n}-orders"])
        assert "end that one" in caplog.text
        until_running(made)
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


class Gate:
    """Holds a thread up before a step of a transaction: the next one, or the one after that, once it is shut."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *steps: str) -> None:
        self._shut_at = ""
        self._passing = 0
        self._reached = threading.Event()
        self._opened = threading.Event()
        for step in steps:
            self._watch(monkeypatch, step)

    def shut(self, step: str, passing: int) -> None:
        self._reached.clear()
        self._opened.clear()
        self._passing, self._shut_at = passing, step

    def wait(self) -> None:
        assert self._reached.wait(DEADLINE), f"{self._shut_at} comes"

    def open(self) -> None:
        self._opened.set()

    def _watch(self, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
        inner = getattr(TransactionalProducer, step)

        def held_up(producer: TransactionalProducer, *args: Any) -> Any:
            if self._shut_at == step and self._passing:
                self._passing -= 1
            elif self._shut_at == step:
                self._shut_at = ""
                self._reached.set()
                assert self._opened.wait(DEADLINE)
            return inner(producer, *args)

        monkeypatch.setattr(TransactionalProducer, step, held_up)


@contextmanager
def stopping(broker: EmbeddedBroker) -> Iterator[None]:
    broker.stop()
    yield
    broker.start()


@pytest.mark.timeout(300)
def test_a_broker_that_is_away_for_longer_than_a_transaction_may_take_costs_no_record_and_doubles_none(
    namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the midst of a batch, at each step of its transaction: standing still, so that requests lie in the broker's
    socket meanwhile and are answered late; and stopped, so that they are refused.
    """
    seconds, n = 1.5, namespace
    # The first transaction that follows records copies them, the second one adds them up.
    moments = [("flush", 1), ("add_offsets", 0), ("commit", 1)]
    # How often brokers look for transactions that took too long; ten seconds otherwise.
    config = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "200"}
    short = {"config": {"transaction.timeout.ms": int(seconds * 1000)}}
    gate = Gate(monkeypatch, "flush", "add_offsets", "commit")
    with (
        EmbeddedBroker(tmp_path / "broker", config=config) as own,
        client(own.bootstrap_servers, n, topology(n), tmp_path / "state", processing=ONCE, kafka=short) as made,
    ):
        bootstrap = own.bootstrap_servers
        make_order_topics(bootstrap, n)
        send(bootstrap, f"{n}-orders", orders(range(40)))
        run_until_done(made, [f"{n}-orders", f"{n}-by-user-repartition"])
        sent = 40

        def is_right() -> bool:
            assert made.state is not ClientState.ERROR, made.error
            try:
                return contents(made, "totals") == expected_totals(range(sent))
            except InvalidStateStoreException:  # its tasks are being revived
                return False

        eventually(is_right, "the store is right before all that")
        for stopped, step, passing in [(False, *moment) for moment in moments] + [(True, "flush", 0)]:
            what = f"{'stopped' if stopped else 'standing still'} before {step} {passing}"
            gate.shut(step, passing)
            send(bootstrap, f"{n}-orders", orders(range(sent, sent + 40)))
            sent += 40
            gate.wait()
            with stopping(own) if stopped else standing_still(own):
                gate.open()
                over = time.monotonic() + 2 * seconds
                eventually(lambda over=over: time.monotonic() > over, "the transaction's time is over")  # type: ignore[misc]
            eventually(is_right, f"the store is right, after {what}")
            until_done(made, [f"{n}-orders", f"{n}-by-user-repartition"])
            assert copies(bootstrap, n) == Counter(range(sent)), what
            assert totals(bootstrap, n) == expected_totals(range(sent)), what
        send(bootstrap, f"{n}-orders", orders(range(sent, sent + 40)))
        sent += 40
        eventually(is_right, "it goes on")
        until_done(made, [f"{n}-orders", f"{n}-by-user-repartition"])
        assert made.close(60)
        assert copies(bootstrap, n) == Counter(range(sent))
        assert totals(bootstrap, n) == expected_totals(range(sent))
    assert [state for state, _ in made.transitions][-2:] == [ClientState.PENDING_SHUTDOWN, ClientState.NOT_RUNNING]
