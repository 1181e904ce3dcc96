"""What others see of a running client: its stores for queries, its account for `/state`."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields
from functools import cached_property, partial
from typing import Any, Protocol

from streams_runtime.client_context import ClientContext
from streams_runtime.errors import StreamsRebalancingException
from streams_runtime.kafka.admin.recent_answer import RecentAnswer
from streams_runtime.kafka.types import GroupMember, TopicPartition
from streams_runtime.lifecycle.recent_problems import RecentProblems
from streams_runtime.lifecycle.remedies import error_row
from streams_runtime.measuring import dropped_rows, measurements
from streams_runtime.metrics.measurements import Measurements
from streams_runtime.pipeline.without_spark.findings import StoreFormats
from streams_runtime.processing.batch_work import Counters
from streams_runtime.processing.peek_log import rows_of
from streams_runtime.query.client.sibling_names import every_name, is_sibling
from streams_runtime.query.page.topology_document import topology_document
from streams_runtime.query.server.liveness import Pulse, Stuck, stuck_threads
from streams_runtime.query.stores.local_partitions import view_of
from streams_runtime.query.stores.views import AnyView, KnownInstance, Owner, StoreCodec
from streams_runtime.restore.restore_progress import in_all
from streams_runtime.settings import Peers, no_peers
from streams_runtime.states import ClientState, TaskState
from streams_runtime.store_codecs import codec_of
from streams_runtime.tasks.standby import StandbyTask
from streams_runtime.tasks.task import Task
from streams_runtime.tasks.task_accounts import active_row, standby_row
from streams_runtime.threads.stream_thread import StreamThread
from streams_runtime.topology.plan import TaskId, Topology


class Inspected(Protocol):
    """A client, as it is looked at."""

    @property
    def state(self) -> ClientState: ...

    @property
    def url(self) -> str: ...

    @property
    def instance(self) -> str: ...

    @property
    def error(self) -> BaseException | None: ...

    @property
    def threads(self) -> Sequence[StreamThread]: ...

    @property
    def counters(self) -> Sequence[Counters]: ...

    @property
    def transitions(self) -> Sequence[tuple[ClientState, float]]: ...


class ClientInspection:
    """The client's side of the query layer (query.stores.views.Queryable).

    Safe to use from any thread, in any state.
    """

    def __init__(self, client: Inspected, context: ClientContext, peers: Peers = no_peers) -> None:
        self._client = client
        self._context = context
        self._peers = peers
        self._topology = context.topology
        admin, group = context.admin, context.topology.application_id
        self._ends = RecentAnswer[dict[TopicPartition, int]](self._ask_for_ends, {})
        self._codecs: dict[str, tuple[StoreFormats | None, StoreCodec]] = {}
        self._members = RecentAnswer[tuple[GroupMember, ...]](lambda: admin.group_members(group), ())
        self._problems = RecentProblems(context.settings.instance)
        self._met: frozenset[str] = frozenset()  # instances that the group has had

    @property
    def state(self) -> ClientState:
        """The client's state."""
        return self._client.state

    @property
    def url(self) -> str:
        """The URL that this instance advertises."""
        return self._client.url

    def store_names(self) -> Collection[str]:
        """Names of the topology's stores that queries see."""
        return [store.name for store in self._topology.stores if store.is_queryable]

    def store_type(self, name: str) -> str:
        """The store's kind."""
        return self._topology.store(name)[1].kind

    def partition_count(self, store: str) -> int:
        """Partitions of the store over all instances; a global one is whole on each of them, and has one.

        Raises:
            StreamsRebalancingException: the topics have not been looked at yet; retry.
        """
        if self._is_global(store):
            return 1
        try:
            return self._context.partition_counts[self._topology.store(store)[1].changelog_topic]
        except KeyError:
            raise StreamsRebalancingException(
                f"the partitions of store {store} are not known yet: the client is {self.state}. Retry"
            ) from None

    @property
    def _resolved(self) -> Topology:
        """With the topics that patterns fit, by the last check."""
        return self._topology.resolved(self._context.partition_counts)

    def input_topics(self, store: str) -> Collection[str]:
        """The topics whose records the store's tasks read; none of a global table."""
        return () if self._is_global(store) else self._resolved.store(store)[0].source_topics

    def views(self, store: str) -> Mapping[int, AnyView]:
        """The partitions here that are restored."""
        return {number: view for number, view in self.stale_views(store).items() if view.is_active}

    def active_view(self, store: str, partition: int) -> AnyView | None:
        """The partition, if it is here and restored."""
        if self._is_global(store):
            return self.views(store).get(partition)
        wanted = TaskId(self._topology.store(store)[0].id, partition)
        for thread in self._client.threads:
            task = thread.tasks.tasks.get(wanted)
            if task is not None and store in task.stores and task.stores[store].is_open and _is_running(task):
                return _view(task, store)
        return None

    def stale_views(self, store: str) -> Mapping[int, AnyView]:
        """The partitions here that are open, standbys and those that are still being restored too."""
        if self._is_global(store):
            context = self._context
            found = context.global_stores.get(self._topology.store(store)[1].node)
            is_open = found is not None and found.is_open
            return {0: view_of(found, lambda: context.global_tables_are_complete)} if found and is_open else {}
        return {
            task.id.partition: _view(task, store)
            for task in (*self._tasks(), *self._standbys())
            if store in task.stores and task.stores[store].is_open
        }

    def expected_partitions(self, store: str) -> Collection[int]:
        """The partitions that are assigned here."""
        if self._is_global(store):
            return [0]
        return [task.id.partition for task in self._tasks() if store in task.stores]

    def codec(self, store: str) -> StoreCodec:
        """How the store's bytes are read.

        Raises:
            StreamsRebalancingException: Spark has not analysed the topology yet; retry.
        """
        formats, known = self._context.engine.formats, self._codecs.get(store)
        if known is None or known[0] is not formats:
            known = self._codecs[store] = formats, codec_of(self._topology, store, partial(self._formats, store))
        return known[1]

    def owners(self, store: str) -> Mapping[int, Owner]:
        """Who has each partition: of the group's members, those whose address is vouched for.

        A client id only says which instance a member is; where that instance answers, the settings' `peers` say.
        Every instance has a global store: this one answers for it itself.
        """
        if self._is_global(store):
            return {0: Owner(self._client.instance, self.url)}
        topics = self._resolved.store(store)[0].source_topics
        owners: dict[int, Owner] = {}
        for member in self._members.value():
            partitions = [each.partition for each in member.assignment if each.topic in topics]
            instance = member.client_id.partition("|")[0]
            url = self._url_of(instance) if partitions else None
            if url is not None:
                owners |= dict.fromkeys(partitions, Owner(instance, url))
        return owners

    def instances(self) -> Sequence[KnownInstance]:
        """This instance, those of the group, and those that spec.replicas asks for, by name; with vouched addresses."""
        own, settings = self._client.instance, self._context.settings
        grouped = {each.client_id.partition("|")[0] for each in self._members.value()}
        self._met |= {name for name in grouped if is_sibling(own, name)}
        words = {name: settings.last_words(name) for name in self._met if name != own}
        ended = {name for name, word in words.items() if word is not None}
        names = every_name(own, self._context.application.spec.replicas, grouped | ended)
        return [
            KnownInstance(name, self._url_of(name), name in grouped, words.get(name) or settings.last_words(name))
            for name in names
        ]

    @cached_property
    def topology_document(self) -> Mapping[str, Any]:
        """Steps, stores and topics, and where the page draws them."""
        return topology_document(self._topology)

    def _url_of(self, instance: str) -> str | None:
        return self.url if instance == self._client.instance else self._peers(instance)

    @property
    def spark_ready(self) -> bool:
        """Whether Spark has compiled the topology."""
        return self._context.engine.is_ready

    @property
    def is_analysed(self) -> bool:
        """Whether the topology is analysed, now or at an earlier start, so that stores can be read."""
        return self._context.engine.formats is not None

    def stuck_threads(self, turn_seconds: float | None = None) -> Collection[Stuck]:
        """The threads whose loops stand still, by their own notes."""
        pulses = [
            Pulse(
                thread.name,
                thread.state,
                thread.last_turn,
                thread.computing,
                any(task.state is TaskState.RESTORING for task in thread.tasks.tasks.values()),
            )
            for thread in self._client.threads
        ]
        return stuck_threads(pulses, time.monotonic(), turn_seconds)

    def describe(self) -> Mapping[str, Any]:
        """The client's account: state, threads, tasks, restoration, lag, counters, error."""
        client, context, threads = self._client, self._context, self._client.threads
        restoration, following = context.progress.snapshot(), context.standby_progress.snapshot()
        ages, standbys = context.standby_progress.ages(), sorted(self._standbys(), key=lambda task: task.id)
        error, keeper = client.error, context.global_tables
        return {
            "application_id": self._topology.application_id,
            "instance": client.instance,
            "tags": dict(context.tags),
            "state": str(client.state),
            "paused": context.paused.is_set(),
            "spark_ready": context.engine.is_ready,
            "url": client.url,
            "pid": os.getpid(),
            "transitions": [{"state": str(state), "at": at} for state, at in client.transitions],
            "threads": [{"name": thread.name, "state": str(thread.state)} for thread in threads],
            "global_thread": None if keeper is None else {"name": keeper.name, "state": str(keeper.state)},
            "tasks": [
                active_row(task, thread.name) for thread in threads for _, task in sorted(thread.tasks.tasks.items())
            ],
            "standbys": [standby_row(task, following, ages) for task in standbys],
            "warm_up": None if context.warm_up is None else context.warm_up.snapshot(),
            "restoration": restoration,
            "restoration_in_all": in_all(restoration),
            "snapshots": None if context.snapshots is None else context.snapshots.describe(),
            "rates": self._rates(),
            "lag": self._lag(),
            "counters": _summed(client.counters)
            | {
                "restored_records": context.progress.restored_total,
                "updated_records": context.standby_progress.updates.total,
                "quarantined_stores": context.directory.quarantined,
            },
            "dropped": dropped_rows(client.counters),
            "peeks": rows_of(each.peeks for each in client.counters),
            "problems": self._problems.rows(),
            "error": None if error is None else error_row(error),
        }

    def measure(self) -> Measurements:
        """What was measured, for `/metrics`."""
        stores = [store for task in (*self._tasks(), *self._standbys()) for store in task.stores.values()]
        stores += self._context.global_stores.values()
        return measurements(self._context, self._client.threads, self._client.counters, stores)

    def _is_global(self, store: str) -> bool:
        return self._topology.store(store)[1].global_

    def _formats(self, store: str) -> StoreFormats:
        formats = self._context.engine.formats
        if formats is None:
            raise StreamsRebalancingException(
                f"the format of store {store} is not known yet: the client is {self.state}, and Spark, which is still"
                " starting, has not analysed the topology. Retry"
            )
        return formats

    def _rates(self) -> dict[str, float]:
        """Over the last 30 s: records a second, and parts of the time."""
        restored, standbys = self._context.progress, self._context.standby_progress
        rates = {"restore": restored.restored.rate, "update": standbys.updates.rate}
        return rates | {"restore_ratio": restored.spent.rate / 1e6, "update_ratio": standbys.spent.rate / 1e6}

    def _lag(self) -> list[dict[str, Any]]:
        ends = self._ends.value()
        positions = {each: at for thread in self._client.threads for each, at in thread.positions.items()}
        return [
            {
                "topic": each.topic,
                "partition": each.partition,
                "position": at,
                "committed": at,  # a position moves when its batch is committed
                "end": ends.get(each),
                "lag": max(ends[each] - at, 0) if each in ends else None,
            }
            for each, at in sorted(positions.items())
        ]

    def _ask_for_ends(self) -> dict[TopicPartition, int]:
        """Under exactly once records of open transactions do not count: nobody may read them yet."""
        inputs = [each for thread in self._client.threads for each in thread.positions]
        return self._context.admin.end_offsets(inputs, self._context.exactly_once)

    def _standbys(self) -> list[StandbyTask]:
        standbys = self._context.standbys
        return [] if standbys is None else list(standbys.tasks.values())

    def _tasks(self) -> list[Task]:
        return [task for thread in self._client.threads for task in thread.tasks.tasks.values()]


def _view(task: Task, store: str) -> AnyView:
    return view_of(task.stores[store], partial(_is_running, task), lambda: task.stored)


def _is_running(task: Task) -> bool:
    return task.state is TaskState.RUNNING and not isinstance(task, StandbyTask)


def _summed(counters: Sequence[Counters]) -> dict[str, int]:
    numbers = [field.name for field in fields(Counters) if field.name not in ("peeks", "recorder")]
    return {name: sum(getattr(each, name) for each in counters) for name in numbers}
