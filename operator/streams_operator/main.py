"""The operator's process: its parts, their order at the start and at the end."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import uuid
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, suppress

from streams_operator import health
from streams_operator.accounts import Accounts
from streams_operator.api import Api, connect
from streams_operator.brokers import Brokers, Seen
from streams_operator.events import Events
from streams_operator.handlers import Watches
from streams_operator.kinds import APPLICATION, Kind
from streams_operator.lease import Lease
from streams_operator.lists import Lists
from streams_operator.metrics import Metrics
from streams_operator.model import Json, KafkaWork
from streams_operator.observe import World
from streams_operator.readings import Readings
from streams_operator.reconcile import Reconciler
from streams_operator.settings import Settings
from streams_operator.wake import Key, Wakes
from streams_operator.watched import Watched, owner
from streams_operator.webhook import certificate, webhook

_LOGGER = logging.getLogger("streams_operator")
_FINISH = 10.0  # seconds that rounds under way have when the process is told to end


class Operator:
    """One replica. Its parts belong to one event loop; kopf has another one, and brokers have threads."""

    def __init__(self, settings: Settings, environment: Mapping[str, str]) -> None:
        self._settings = settings
        self._environment = environment
        self._identity = f"{socket.gethostname()}_{uuid.uuid4()}"
        self._lease: Lease | None = None

    async def run(self, stop: asyncio.Event) -> None:
        """Until `stop`.

        Raises kubernetes.config.ConfigException (there is no API server to be found), OSError (a port is taken).
        """
        settings = self._settings
        async with AsyncExitStack() as stack:
            api = await connect(self._environment, allowed=lambda: self._lease is not None and self._lease.held)
            stack.push_async_callback(api.close)
            lease = self._lease = Lease(api, settings.lease_namespace, settings.lease_name, self._identity)
            parts = _Parts(api, settings, lease, self._identity)
            stack.push_async_callback(parts.accounts.close)
            stack.callback(parts.readings.close)
            await self._serve(stack, parts)
            parts.watches.start()
            stack.push_async_callback(asyncio.to_thread, parts.watches.stop)
            async with asyncio.TaskGroup() as group:
                running = [group.create_task(work) for work in (parts.watched.run(), parts.lead())]
                election = group.create_task(lease.run())
                _LOGGER.info("the operator has started", extra={"identity": self._identity})
                await stop.wait()
                _LOGGER.info("the operator ends")
                await parts.wakes.finish(_FINISH)
                election.cancel()
                await lease.release()
                for task in running:
                    task.cancel()

    async def _serve(self, stack: AsyncExitStack, parts: _Parts) -> None:
        settings = self._settings
        alive: list[health.Check] = [
            lambda: None if parts.watches.running else "kopf's thread has ended",
            lambda: None if parts.watched.alive else "a watch does not bring what happens",
            lambda: None if parts.wakes.turning else "rounds do not end",
        ]
        ready: list[health.Check] = [lambda: None if parts.watched.begun else "the watches have not begun"]
        port = await health.serve(stack, health.probes(alive, ready), settings.health_port)
        _LOGGER.info("probes at port %d", port)
        port = await health.serve(stack, health.metrics(parts.metrics.registry), settings.metrics_port)
        _LOGGER.info("metrics at port %d", port)
        if settings.webhook_port is not None and settings.webhook_certificate is not None:
            tls = certificate(settings.webhook_certificate)
            port = await health.serve(stack, webhook(settings.defaults), settings.webhook_port, tls)
            _LOGGER.info("the webhook at port %d", port)


class _Parts:
    """Everything between a wake and a write."""

    def __init__(self, api: Api, settings: Settings, lease: Lease, identity: str) -> None:
        self._lease = lease
        self.lists = Lists(api)
        self.events = Events(api, identity.split("_", maxsplit=1)[0])
        self.accounts = Accounts(self._wake)
        self.brokers = Brokers(self._answered)
        self.metrics = Metrics(lambda: self.wakes.length, lambda: lease.held)
        self.readings = Readings()
        world = World(api, self.lists, self.brokers, self.accounts, self.readings, settings.defaults)
        self.reconciler = Reconciler(world, self.events, self.metrics)
        self.wakes = Wakes(self.reconciler.round, counted=self.metrics.round)
        self.watches = Watches(settings.namespaces, self._told_from(asyncio.get_running_loop()))
        self.watched = Watched(api, settings.namespaces, self._missed, self.watches.restart)
        self._leading = False

    async def lead(self) -> None:
        """Act while this replica is the leader, stand by while it is not; for ever."""
        while True:
            await self._lease.wait(held=True)
            self._leading = True
            for key in self.watched.keys:
                self._wake(key)
            try:
                await self._lease.during(self.wakes.run())
            finally:
                self._leading = False
                # What another leader does meanwhile is not known here; all is looked at afresh.
                for each in (self.wakes, self.brokers, self.lists, self.events, self.metrics):
                    each.clear()

    def _told_from(self, loop: asyncio.AbstractEventLoop) -> Callable[[Kind, Json, bool], None]:
        """For the watches' thread: takes their news into this loop."""

        def told(kind: Kind, metadata: Json, gone: bool) -> None:
            with suppress(RuntimeError):  # the loop has ended, and with it the interest
                loop.call_soon_threadsafe(self._told, kind, metadata, gone)

        return told

    def _told(self, kind: Kind, metadata: Json, gone: bool) -> None:
        key = owner(kind, metadata)
        if key is None:
            return
        self.watched.tell(kind, metadata, key, gone)
        self.lists.doubt(key, kind.name)
        self._wake(key, urgent=kind is APPLICATION)

    def _missed(self, kind: Kind, key: Key) -> None:
        self.lists.doubt(key, kind.name)
        self._wake(key)

    def _answered(self, key: Key, work: KafkaWork, seen: Seen) -> None:
        self.reconciler.answered(work, seen)
        self._wake(key)

    def _wake(self, key: Key, *, urgent: bool = False) -> None:
        if self._leading:
            self.wakes.wake(key, urgent=urgent)


async def operate(settings: Settings) -> None:
    """Run the operator until SIGTERM or SIGINT; finishes the rounds under way and gives the lease back."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    await Operator(settings, os.environ).run(stop)
