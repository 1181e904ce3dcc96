"""A whole client over topics of avro, with a broker and a registry that comes late."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from avro_kit import ORDER, deserialized, record, serialized
from avro_kit import field as avro_field
from clients import client, make_topics, read, send
from registry_front import RegistryFront
from registry_totals import totals_topology
from waiting import DEADLINE, eventually

from streams_runtime.errors import DeserializationException, SchemaRegistryException
from streams_runtime.states import ClientState

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("spark")]


def topology(prefix: str) -> str:
    return totals_topology(prefix, {"format": "avro", "schema": ORDER}, {"format": "avro"})


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
        run = {"ann": {"total": 5}, "bo": {"total": 1}}
        eventually(lambda: _last(registry, bootstrap, totals) == run, lambda: f"{made.state} {made.error}", DEADLINE)
        registry.accept_all()
        other = record("Order", avro_field("user", "string"), avro_field("amount", "string"))
        send(bootstrap, orders, [("k", *serialized(registry, other, [{"user": "a", "amount": "1"}], orders))])
        assert made.wait_for(ClientState.ERROR, timeout=DEADLINE)
        assert isinstance(made.error, DeserializationException)
        assert f"record {orders}-0@3 can't be read" in str(made.error)
        assert "the field amount was written as string" in str(made.error)


def test_a_sink_whose_schema_is_refused_ends_the_client_before_it_reads(
    broker: Any, namespace: str, tmp_path: Path, registry: RegistryFront
) -> None:
    bootstrap, orders, totals = broker.bootstrap_servers, f"{namespace}-orders", f"{namespace}-totals"
    make_topics(bootstrap, **{orders: 1, totals: 1})
    registry.put(f"{totals}-value", record("Other", avro_field("total", "string")))
    kafka = {"schemaRegistry": {"url": registry.url}}
    with client(bootstrap, namespace, topology(namespace), tmp_path, kafka=kafka) as made:
        made.start()
        assert made.wait_for(ClientState.ERROR, timeout=DEADLINE)
        assert isinstance(made.error, SchemaRegistryException)
        assert f"the subject {totals}-value, answered 409" in str(made.error)


def _last(registry: RegistryFront, bootstrap: str, topic: str) -> dict[str, Any]:
    return {
        message.key().decode(): deserialized(registry, message.value(), topic) for message in read(bootstrap, topic)
    }
