"""The operator's process: its parts, their order at the start and at the end."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import uuid
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import AsyncExitStack, suppress

from streams_operator import health
from streams_operator.brokers.broker_work import Brokers, BrokerState
from streams_operator.kube.api import Api, connect
from streams_operator.kube.cache import Cache
from streams_operator.kube.event_recorder import EventRecorder
from streams_operator.kube.handlers import Watches
from streams_operator.kube.kinds import APPLICATION, WATCHED, Kind
from streams_operator.kube.lease import Lease
from streams_operator.kube.reflector import Reflectors
from streams_operator.kube.watched import Watched, owner
from streams_operator.metrics import Metrics
from streams_operator.model import Json, KafkaWork, Key
from streams_operator.operator_settings import Settings
from streams_operator.plan import document
from streams_operator.reconcile.accounts import Accounts
from streams_operator.reconcile.inputs import Inputs
from streams_operator.reconcile.observe import Observer
from streams_operator.reconcile.readings import Readings
from streams_operator.reconcile.reconciler import Reconciler
from streams_operator.reconcile.rollouts import Rollouts
from streams_operator.reconcile.work_queue import WorkQueue
from streams_operator.webhook import certificate, webhook

_LOGGER = logging.getLogger("streams_operator")
_SOON = 0.05  # seconds from a change of a resource to its round: what one command writes at once is one round
_FIRST_LISTS = 10.0  # seconds without a page of them after which a new leader begins, should a watch be refused
_FINISH = 10.0  # seconds that rounds under way have when the process is to end


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
            streams = len(WATCHED) * max(1, len(settings.namespaces))
            api = await connect(
                self._environment, lambda: self._lease is not None and self._lease.held, watches=streams
            )
            stack.push_async_callback(api.close)
            lease = self._lease = Lease(
                api, settings.lease_namespace, settings.shard.lease(settings.lease_name), self._identity
            )
            parts = _Parts(api, settings, lease, self._identity)
            stack.push_async_callback(parts.accounts.close)
            stack.callback(parts.readings.close)
            await self._serve(stack, parts)
            parts.watches.start()
            stack.push_async_callback(asyncio.to_thread, parts.watches.stop)
            async with asyncio.TaskGroup() as group:
                running = [group.create_task(work) for work in parts.running()]
                election = group.create_task(lease.run())
                _LOGGER.info("the operator has started", extra={"identity": self._identity})
                await stop.wait()
                _LOGGER.info("the operator ends")
                await parts.queue.finish(_FINISH)
                election.cancel()
                await lease.release()
                for task in running:
                    task.cancel()

    async def _serve(self, stack: AsyncExitStack, parts: _Parts) -> None:
        settings = self._settings
        alive: list[health.Check] = [
            lambda: None if parts.watches.running else "kopf's thread has ended",
            lambda: None if parts.watched.alive else "a watch does not bring what happens",
            lambda: None if parts.queue.alive else "rounds do not end",
        ]
        ready: list[health.Check] = [
            lambda: None if parts.watched.begun and parts.reflectors.synced.is_set() else "the watches have not begun"
        ]
        port = await health.serve(stack, health.probes(alive, ready), settings.health_port)
        _LOGGER.info("probes at port %d", port)
        port = await health.serve(stack, health.metrics(parts.metrics.registry), settings.metrics_port)
        _LOGGER.info("metrics at port %d", port)
        if settings.webhook_port is not None and settings.webhook_certificate is not None:
            tls = certificate(settings.webhook_certificate)
            port = await health.serve(stack, webhook(settings.defaults), settings.webhook_port, tls)
            _LOGGER.info("the webhook at port %d", port)


class _Parts:
    """Everything between a change and a write."""

    def __init__(self, api: Api, settings: Settings, lease: Lease, identity: str) -> None:
        self._lease = lease
        self.cache = Cache(api, self._news)
        self.events = EventRecorder(api, identity.split("_", maxsplit=1)[0])
        self.accounts = Accounts(self._requeue)
        self.brokers = Brokers(self._on_broker_result)
        self.metrics = Metrics(lambda: self.queue.length, lambda: lease.held)
        self.readings = Readings(document=document)
        self.rollouts = Rollouts(
            settings.defaults.image, settings.rollout_at_a_time, lambda: self.watched.count, self._requeue
        )
        self.metrics.show_rollouts(lambda: self.rollouts.waiting, lambda: self.rollouts.stopped)
        observer = Observer(api, self.cache, self.brokers, self.accounts, self.readings, Inputs(api))
        self.reconciler = Reconciler(observer, self.rollouts, self.events, self.metrics, settings.defaults)
        self.queue = WorkQueue(self.reconciler.round, counted=self.metrics.round)
        self.watches = Watches(settings.namespaces, self._threadsafe_on_change(asyncio.get_running_loop()))
        self.reflectors = Reflectors(api, settings.namespaces, self._on_change, self.cache)
        self.watched = Watched(api, settings.namespaces, self._missed, self._watch_anew, shard=settings.shard)
        self._shard = settings.shard
        self._leading = False

    def running(self) -> Iterable[Coroutine[None, None, None]]:
        """What goes on for as long as the process does."""
        return self.watched.run(), self.reflectors.run(), self.lead()

    async def lead(self) -> None:
        """Act while this replica is the leader, stand by while it is not; for ever."""
        while True:
            await self._lease.wait(held=True)
            self._leading = True
            try:
                await self._lease.during(self._rounds())
            finally:
                self._leading = False
                # The watches go on; what else another leader does meanwhile is not known here.
                for each in (self.queue, self.brokers, self.events, self.metrics, self.rollouts, self.reconciler):
                    each.clear()

    async def _rounds(self) -> None:
        # Rounds that come before the first lists are asked for each on its own.
        await self.reflectors.first_lists(_FIRST_LISTS)
        for key in self.watched.keys:
            self._requeue(key)
        await self.queue.run()

    def _threadsafe_on_change(self, loop: asyncio.AbstractEventLoop) -> Callable[[Kind, Json, bool, Json], None]:
        """For the watches' thread: takes their news into this loop."""

        def on_change(kind: Kind, metadata: Json, gone: bool, whole: Json) -> None:
            with suppress(RuntimeError):  # the loop has ended, and with it the interest
                loop.call_soon_threadsafe(self._on_change, kind, metadata, gone, whole)

        return on_change

    def _on_change(self, kind: Kind, metadata: Json, gone: bool, whole: Json | None) -> None:
        key = owner(kind, metadata)
        if key is not None and self._shard.has(key.namespace):
            self.watched.update(kind, metadata, key, gone)
            self.cache.update(kind, key, metadata, gone, whole)

    def _news(self, kind: Kind, key: Key) -> None:
        self._requeue(key, _SOON if kind is APPLICATION else None, urgent=kind is APPLICATION)

    def _missed(self, kind: Kind, key: Key) -> None:
        self.cache.doubt(key, kind)
        self._requeue(key)

    def _watch_anew(self) -> None:
        self.watches.restart()
        self.reflectors.restart()

    def _on_broker_result(self, key: Key, work: KafkaWork, state: BrokerState) -> None:
        self.reconciler.on_broker_result(work, state)
        self._requeue(key, 0.0)

    def _requeue(self, key: Key, after: float | None = None, *, urgent: bool = False) -> None:
        if self._leading:
            self.queue.add(key, after, urgent=urgent)


async def operate(settings: Settings) -> None:
    """Run the operator until SIGTERM or SIGINT; finishes the rounds under way and gives the lease back."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    await Operator(settings, os.environ).run(stop)
