"""Applications for tests of the test driver."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from streams_runtime.testing import Record, TopologyTestDriver

Made = Callable[..., TopologyTestDriver]

ORDERS = {
    "name": "orders",
    "topic": "orders",
    "key": {"format": "string"},
    "value": {"format": "json", "schema": "user STRING, amount BIGINT, at TIMESTAMP"},
}
USERS = {
    "name": "users",
    "topic": "users",
    "key": {"format": "string"},
    "value": {"format": "json", "schema": "tier STRING"},
    "table": {"store": "users"},
}
TOTALS = {"name": "totals", "from": "orders", "aggregate": {"total": "sum(amount)", "n": "count(*)"}, "store": "totals"}


def document(
    sources: Sequence[Mapping[str, Any]],
    steps: Sequence[Mapping[str, Any]] = (),
    sinks: Mapping[str, str] | Sequence[Mapping[str, Any]] = (),
    **spec: Any,
) -> dict[str, Any]:
    """An application's document; `sinks` by topic, if they say nothing but what they are written from."""
    written = [{"from": name, "topic": topic} for topic, name in sinks.items()] if isinstance(sinks, Mapping) else sinks
    topology = {"sources": list(sources), "steps": list(steps), "sinks": list(written)}
    return {
        "apiVersion": "streamsoperator.io/v1alpha1",
        "kind": "StreamsApplication",
        "metadata": {"name": "app"},
        "spec": {"topology": topology, **spec},
    }


BY_USER = {"name": "by-user", "from": "orders", "keyBy": "user"}
SPENT = {**TOTALS, "name": "spent", "from": "by-user", "store": "spent"}
BY_SIZE = {"name": "by-size", "from": "by-user", "keyBy": "if(amount > 2, 'large', 'small')"}
SIZES = {"name": "sizes", "from": "by-size", "aggregate": {"n": "count(*)"}, "store": "sizes"}
REPARTITIONED = document([ORDERS], [BY_USER, SPENT, BY_SIZE, SIZES], {"spent": "spent", "sizes": "sizes"})
"""Three sub-topologies: totals of each user, and then how many orders were large or small."""
BOUGHT = [
    Record(key, {"user": user, "amount": amount})
    for key, user, amount in (("o1", "al", 3), ("o2", "bo", 1), ("o3", "al", 4), ("o4", "cy", 2), ("o5", "bo", 5))
]


@contextmanager
def refused(kind: type[Exception], begins: str) -> Iterator[None]:
    """The block raises this exception, with a message that begins so."""
    with pytest.raises(kind) as raised:
        yield
    assert str(raised.value).startswith(begins)
