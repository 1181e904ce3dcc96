"""A whole client over topics of protobuf, with a broker and a registry that comes late."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from clients import client, make_topics, read, send
from proto_kit import ORDER, deserialized, proto, serialized
from registry_front import RegistryFront
from registry_totals import totals_topology
from waiting import DEADLINE, eventually

from streams_runtime.errors import DeserializationException
from streams_runtime.states import ClientState

TOTAL = proto("int64 total = 1", name="Total")

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("spark")]


def topology(prefix: str) -> str:
    return totals_topology(prefix, {"format": "protobuf", "schema": ORDER}, {"format": "protobuf", "schema": TOTAL})


def test_totals_are_written_once_the_registry_is_there_and_a_record_that_does_not_fit_ends_the_client(
    broker: Any, namespace: str, tmp_path: Path, registry: RegistryFront
) -> None:
    bootstrap, orders, totals = broker.bootstrap_servers, f"{namespace}-orders", f"{namespace}-totals"
    make_topics(bootstrap, **{orders: 1, totals: 1})
    values = [{"user": user, "amount": amount, "note": ""} for user, amount in (("ann", 2), ("bo", 1), ("ann", 3))]
    send(bootstrap, orders, [("k", each) for each in serialized(registry, ORDER, values, orders)])
    registry.away = True
    kafka = {"schemaRegistry": {"url": registry.url}}
    with client(bootstrap, namespace, topology(namespace), tmp_path, kafka=kafka) as made:
        made.start()
        before = len(registry.asked)
        eventually(lambda: len(registry.asked) > before + 2, lambda: f"{registry.asked}", DEADLINE)
        assert not made.spark_ready
        registry.away = False
        run = {"ann": {"total": "5"}, "bo": {"total": "1"}}
        eventually(lambda: _last(registry, bootstrap, totals) == run, lambda: f"{made.state} {made.error}", DEADLINE)
        registry.accept_all()
        other = proto("string user = 1", "string amount = 2")
        send(bootstrap, orders, [("k", *serialized(registry, other, [{"user": "a", "amount": "1"}], orders))])
        assert made.wait_for(ClientState.ERROR, timeout=DEADLINE)
        assert isinstance(made.error, DeserializationException)
        assert f"record {orders}-0@3 can't be read" in str(made.error)
        assert "the field amount was written as string" in str(made.error)


def _last(registry: RegistryFront, bootstrap: str, topic: str) -> dict[str, Any]:
    found = read(bootstrap, topic)
    return {each.key().decode(): deserialized(registry, TOTAL, each.value(), topic) for each in found}
