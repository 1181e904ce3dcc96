"""How much is asked of brokers at once: so much of each cluster, and so much for each namespace.

A cluster that does not answer holds up to its own share, and a tenant whose clusters are all dead up to the tenant's:
nobody else's work waits for either.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary

import orjson

from streams_operator.brokers.broker_addresses import servers_from
from streams_runtime.api import StreamsApplication

PER_CLUSTER = 4
PER_NAMESPACE = 16


def cluster_of(namespace: str, application: StreamsApplication, secret: Mapping[str, str] | None) -> str:
    """The same text for applications that would reach the same brokers as the same client.

    A short name such as kafka:9092 is another Service in each namespace. What a client presents is part of it, since
    brokers may answer one and keep another waiting; it can't be read from the text.
    """
    kafka = application.spec.kafka
    servers = servers_from(namespace, (kafka.bootstrap_servers or "").lower())
    known_by = [sorted(set(servers.split(","))), kafka.config, dict(secret or {})]
    return hashlib.sha256(orjson.dumps(known_by, option=orjson.OPT_SORT_KEYS)).hexdigest()


class BrokerSlots:
    """Slots for work at brokers. They are forgotten when nobody has or awaits one."""

    def __init__(self) -> None:
        self._clusters: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()
        self._namespaces: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    @asynccontextmanager
    async def slot(self, namespace: str, cluster: str) -> AsyncIterator[None]:
        """Wait for a slot of the cluster, then for one of the namespace, and hold both."""
        # In this order: who waits for a dead cluster must not hold a slot that others of the namespace could use.
        async with (
            self._clusters.setdefault(cluster, asyncio.Semaphore(PER_CLUSTER)),
            self._namespaces.setdefault(namespace, asyncio.Semaphore(PER_NAMESPACE)),
        ):
            yield
