"""Faults around a client: brokers that are away, disks that can't be used."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from clients import client, last_values, make_topics, run_until_done, send, until_done, until_running
from kafka_proxy import Fault, KafkaProxy, Mode
from waiting import eventually

from streams_runtime.errors import ProcessorStateException
from streams_runtime.kafka.broker.embedded_broker import EmbeddedBroker
from streams_runtime.kafka.client.client_properties import client_properties
from streams_runtime.kafka.consumer import unheard_assignment
from streams_runtime.kafka.consumer.group_consumer import GroupConsumer, Membership
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.query.stores.key_value_handle import StoreQueryParameters
from streams_runtime.states import ClientState

pytestmark = pytest.mark.integration

TOPOLOGY = """
sources: [{name: orders, topic: orders, key: {format: string}, value: {format: json, schema: "amount BIGINT"}}]
steps: [{name: totals, from: orders, aggregate: {total: sum(amount), n: count(*)}, store: totals}]
sinks: [{from: totals, topic: totals}]
"""


@pytest.fixture
def own_broker(tmp_path: Path) -> Iterator[EmbeddedBroker]:
    """A broker that the test may stop."""
    with EmbeddedBroker(tmp_path / "broker") as running:
        yield running


@pytest.mark.usefixtures("spark")
def test_a_client_waits_for_a_broker_that_is_away_at_the_start_and_later_and_loses_nothing(
    own_broker: EmbeddedBroker, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    address = own_broker.bootstrap_servers
    make_topics(address, orders=2, totals=1)
    own_broker.stop()
    caplog.set_level(logging.WARNING)
    with client(address, "outage", TOPOLOGY, tmp_path / "state") as made:
        made.start()
        eventually(lambda: any(address in record.getMessage() for record in caplog.records), "a word about the broker")
        assert made.state is ClientState.REBALANCING
        assert not any(record.exc_info for record in caplog.records)

        own_broker.start()
        until_running(made, 90)
        send(address, "orders", [(f"u{i % 10}", {"amount": i}) for i in range(100)])
        until_done(made, ["orders"])

        caplog.clear()
        own_broker.stop()
        eventually(lambda: bool(caplog.records) or made.state is not ClientState.RUNNING, "the outage is noticed")
        own_broker.start()
        send(address, "orders", [(f"u{i % 10}", {"amount": 1000}) for i in range(10)])

        def caught_up() -> bool:
            assert made.state is not ClientState.ERROR, made.error
            if made.state is not ClientState.RUNNING:
                return False
            handle = made.store(StoreQueryParameters("totals"))
            with handle.all() as entries:
                return dict(entries) == {f"u{u}": {"total": sum(range(u, 100, 10)) + 1000, "n": 11} for u in range(10)}

        eventually(caught_up, "the records of before and after the outage in the store", 120)
    assert last_values(address, "totals")["u3"] == {"total": sum(range(3, 100, 10)) + 1000, "n": 11}


@pytest.mark.usefixtures("spark")
def test_a_member_whose_answer_was_lost_gives_back_what_others_wait_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Without that it would after five minutes: what an answer to a heartbeat says comes no second time."""
    monkeypatch.setattr(unheard_assignment, "_APART", 3.0)
    with KafkaProxy() as proxy, EmbeddedBroker(tmp_path / "broker", advertised_port=proxy.port) as broker:
        proxy.upstream_port = broker.port
        address = f"127.0.0.1:{proxy.port}"
        make_topics(address, orders=2, totals=1)
        with client(address, "missed", TOPOLOGY, tmp_path / "state") as made:
            made.start()
            until_running(made, 90)
            # Longer than librdkafka waits, which is the interval of heartbeats.
            proxy.faults = [Fault("ConsumerGroupHeartbeat", Mode.DELAYED, "missed-i-0", delay=(1.5, 1.5), limit=2)]
            has: set[TopicPartition] = set()
            other = GroupConsumer(
                client_properties(address, {}),
                Membership("missed", "other", "other|host|1"),
                has.update,
                has.difference_update,
            )
            try:
                other.subscribe(["orders"])

                def has_its_share() -> bool:
                    other.poll(0.05)
                    return len(has) == 1

                eventually(has_its_share, "the other member has a partition", 60)
            finally:
                other.close()
            assert "has not heard what the group has assigned to it" in caplog.text
            send(address, "orders", [(f"u{i % 10}", {"amount": i}) for i in range(100)])
            until_done(made, ["orders"])


def test_a_state_folder_that_can_not_be_written_ends_in_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with client("127.0.0.1:1", "unwritable", TOPOLOGY, tmp_path / "file" / "state") as made:
        made.start()
        assert made.wait_for(ClientState.ERROR, timeout=60)
        assert isinstance(made.error, ProcessorStateException)
        assert str(tmp_path / "file") in str(made.error)
        assert [state for state, _ in made.transitions][-2:] == [ClientState.PENDING_ERROR, ClientState.ERROR]


FULL_DISK = """
mount -t tmpfs -o size=6m tmpfs "$STATE" || exit 99
"$@"
code=$?
cp "$STATE/termination.json" "$KEPT"
exit $code
"""


def test_a_full_disk_ends_in_error_and_a_larger_one_has_everything(broker: Any, namespace: str, tmp_path: Path) -> None:
    """In a mount namespace of its own, so that the small disk goes away with the process."""
    address = broker.bootstrap_servers
    make_topics(address, **{f"{namespace}-orders": 1, f"{namespace}-totals": 1})
    # Random enough not to be compressed away.
    keys = [os.urandom(2000).hex() for _ in range(4000)]
    send(address, f"{namespace}-orders", [(key, {"amount": 1}) for key in keys])
    topology = TOPOLOGY.replace("topic: orders", f"topic: {namespace}-orders").replace(
        "topic: totals", f"topic: {namespace}-totals"
    )
    file = tmp_path / "app.yaml"
    file.write_text(
        "apiVersion: streamsoperator.io/v1alpha1\nkind: StreamsApplication\nmetadata: {name: full}\n"
        f"spec:\n  applicationId: {namespace}\n  topology:\n"
        + "".join(f"    {line}\n" for line in topology.splitlines())
    )
    small = tmp_path / "small"
    small.mkdir()
    command = [
        *(sys.executable, "-m", "streams_runtime.cli.process.instance", str(file)),
        *("--bootstrap-servers", address, "--instance-id", f"{namespace}-0", "--state-dir", str(small)),
        *("--termination-file", str(small / "termination.json")),
    ]
    ended = subprocess.run(
        ["unshare", "--mount", "bash", "-c", FULL_DISK, "bash", *command],
        env={**os.environ, "STATE": str(small), "KEPT": str(tmp_path / "last-word.json")},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    if ended.returncode == 99:
        pytest.skip("this machine does not let the test mount a small disk in a namespace of its own")
    assert ended.returncode == 70, ended.stderr
    assert "State transition from PENDING_ERROR to ERROR" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert "ProcessorStateException" in ended.stderr
    with client(address, namespace, topology, tmp_path / "large", "0") as made:
        run_until_done(made, [f"{namespace}-orders"])
        with made.store(StoreQueryParameters("totals")).all() as entries:
            assert {key: value["n"] >= 1 for key, value in entries} == dict.fromkeys(keys, True)
