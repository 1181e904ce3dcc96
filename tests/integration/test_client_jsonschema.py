"""A whole client over topics of jsonschema under exactly once, with a broker and a registry that comes late."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from clients import client, make_topics, read, send
from json_kit import INTEGER, ORDER, STRING, deserialized, json_schema, serialized
from registry_front import RegistryFront
from registry_totals import totals_topology
from waiting import DEADLINE, eventually

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("spark")]

TOTAL = json_schema("total", total=INTEGER)


def topology(prefix: str) -> str:
    return totals_topology(prefix, {"format": "jsonschema", "schema": ORDER}, {"format": "jsonschema", "schema": TOTAL})


def test_totals_are_written_once_the_registry_is_there_and_what_is_not_valid_is_a_letter(
    broker: Any, namespace: str, tmp_path: Path, registry: RegistryFront
) -> None:
    bootstrap, orders, totals = broker.bootstrap_servers, f"{namespace}-orders", f"{namespace}-totals"
    letters = f"{namespace}-letters"
    make_topics(bootstrap, **{orders: 1, totals: 1, letters: 1})
    values = [{"user": user, "amount": amount} for user, amount in (("ann", 2), ("bo", 1), ("ann", 3))]
    send(bootstrap, orders, [("k", each) for each in serialized(registry, ORDER, values, orders)])
    registry.away = True
    kafka = {"schemaRegistry": {"url": registry.url}}
    processing = {"guarantee": "exactly_once_v2", "onDeserializationError": {"deadLetter": {"topic": letters}}}
    with client(bootstrap, namespace, topology(namespace), tmp_path, kafka=kafka, processing=processing) as made:
        made.start()
        before = len(registry.asked)
        eventually(lambda: len(registry.asked) > before + 2, lambda: f"{registry.asked}", DEADLINE)
        assert not made.spark_ready
        registry.away = False
        run = {"ann": {"total": 5}, "bo": {"total": 1}}
        eventually(lambda: _last(registry, bootstrap, totals) == run, lambda: f"{made.state} {made.error}", DEADLINE)
        registry.accept_all()
        other = json_schema(user=STRING, amount=STRING)
        (bad,) = serialized(registry, other, [{"user": "a", "amount": "1"}], orders)
        (more,) = serialized(registry, ORDER, values[:1], orders)
        send(bootstrap, orders, [("k", bad), ("k", more)])
        run["ann"] = {"total": 7}
        eventually(lambda: _last(registry, bootstrap, totals) == run, lambda: f"{made.state} {made.error}", DEADLINE)
    (letter,) = read(bootstrap, letters)
    assert letter.value() == bad
    headers = {name: value.decode() for name, value in letter.headers()}
    assert headers["__streams.errors.offset"] == "3"
    assert '"1" is not of type' in headers["__streams.errors.message"]


def _last(registry: RegistryFront, bootstrap: str, topic: str) -> dict[str, Any]:
    found = read(bootstrap, topic)
    return {each.key().decode(): deserialized(registry, each.value(), topic) for each in found}
