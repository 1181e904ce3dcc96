"""A whole client and a real schema registry as a process, which is not there at the start and is killed in between."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from apicurio import API, apicurio
from avro_kit import field, record
from avro_kit import serialized as serialized_avro
from clients import client, make_topics, read, send
from kube_process import LOOPBACK, free_port
from proto_kit import message_type, proto
from real_registry import RealRegistry
from registry_totals import totals_topology
from waiting import DEADLINE, eventually

from streams_runtime.pipeline.formats.protobuf.proto_wire import unframed

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("spark")]

OLD = record("Order", field("user", "string"), field("amount", "int"))
NEW = record("Order", field("user", "string"), field("amount", "int"), field("more", "string", default=""))
ORDER = record("Order", field("user", "string"), field("amount", "long"))
TOTAL = proto("int64 total = 1", name="Total")


def topology(prefix: str) -> str:
    return totals_topology(prefix, {"format": "avro", "schema": ORDER}, {"format": "protobuf", "schema": TOTAL})


def test_a_client_waits_for_a_registry_that_is_not_there_and_goes_on_after_it_was_killed(
    broker: Any, namespace: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bootstrap, orders, totals = broker.bootstrap_servers, f"{namespace}-orders", f"{namespace}-totals"
    make_topics(bootstrap, **{orders: 1, totals: 1})
    port, files = free_port(), tmp_path / "registry"
    files.mkdir()
    kafka = {"schemaRegistry": {"url": f"http://{LOOPBACK}:{port}{API}"}}
    with client(bootstrap, namespace, topology(namespace), tmp_path / "client", kafka=kafka) as made:
        made.start()
        eventually(lambda: "does not answer" in caplog.text, lambda: f"{made.state}", DEADLINE)
        assert not made.spark_ready
        with apicurio(files, port) as running:
            registry = RealRegistry(url=running.url, server=running.url)
            old = serialized_avro(registry, OLD, [{"user": "ann", "amount": 2}, {"user": "bo", "amount": 1}], orders)
            new = serialized_avro(registry, NEW, [{"user": "ann", "amount": 3, "more": "?"}], orders)
            registry.close()
            send(bootstrap, orders, [("k", each) for each in old])
            found = {"ann": 2, "bo": 1}
            eventually(lambda: _last(bootstrap, totals) == found, lambda: f"{made.state} {made.error}", DEADLINE)
            caplog.clear()
            os.kill(running.process.pid, signal.SIGKILL)
            assert running.process.wait(DEADLINE)
        send(bootstrap, orders, [("k", each) for each in new])
        eventually(lambda: "does not answer" in caplog.text, lambda: f"{made.state} {made.error}", DEADLINE)
        assert _last(bootstrap, totals) == found
        with apicurio(files, port):
            found = {"ann": 5, "bo": 1}
            eventually(lambda: _last(bootstrap, totals) == found, lambda: f"{made.state} {made.error}", DEADLINE)


def _last(bootstrap: str, topic: str) -> dict[str, int]:
    """Each user's last total, read without a registry."""
    found = {}
    for each in read(bootstrap, topic):
        framed = unframed(each.value())
        assert framed is not None
        assert framed[1] == (0,)
        found[each.key().decode()] = message_type(TOTAL, None).read(framed[2])["total"]
    return found
