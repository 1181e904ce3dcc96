"""GlobalStreamThread: keeps the global tables of a client complete, for all of its stream threads."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable, Mapping

from streams_runtime.client_context import ClientContext
from streams_runtime.errors import BrokerNotAvailableException, SchemaRegistryNotAvailableException
from streams_runtime.kafka.consumer.changelog_consumer import ChangelogConsumer
from streams_runtime.kafka.consumer.group_consumer import Fetched
from streams_runtime.kafka.consumer.record_table import RAW_SCHEMA
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.pipeline.batch_input import BatchInput
from streams_runtime.pipeline.spark.query_failures import translating
from streams_runtime.processing.batch_work import Counters
from streams_runtime.processing.global_tables import GlobalUpdate, open_global_store
from streams_runtime.processing.inputs.intake import batch_of
from streams_runtime.restore.global_topics import GlobalTopics
from streams_runtime.spark_runtime import error_policy
from streams_runtime.state.global_store import GlobalStore
from streams_runtime.state.store import Updates
from streams_runtime.states import GLOBAL_THREAD, GlobalThreadState, StateMachine
from streams_runtime.tasks.task_stores import close_stores, set_damaged_aside
from streams_runtime.topics.external_topics import check_external_topics, source_topics

_LOGGER = logging.getLogger("streams_runtime.threads")
_RETRY = 1.0  # seconds until a broker, or a registry, that is away is asked again
_SPARK_LOOK = 0.1  # seconds between two looks at Spark while it starts
_NOTHING = BatchInput((), RAW_SCHEMA.empty_table())
_GRACE = 10.0  # seconds that a running batch has to end at a close


class GlobalStreamThread:
    """Reads the topics of all global tables into their stores: to their ends first, then as they grow.

    It has a consumer of its own outside of the group. RUNNING (states.GLOBAL_THREAD): the stores have all that the
    topics had at the start. `on_exception(name, error)` is called on the thread itself when it ends by an error.
    """

    def __init__(
        self,
        name: str,
        context: ClientContext,
        on_exception: Callable[[str, BaseException], None],
        counters: Counters,
    ) -> None:
        """The context's restoration listener hears of the reading up to the topics' ends, as of any restoration."""
        self.name = name
        self.machine = StateMachine(GLOBAL_THREAD, f"thread {name}")
        self._context = context
        self._on_exception = on_exception
        self._counters = counters
        self._stopping = threading.Event()
        self._stores: dict[str, GlobalStore] = {}  # replaced as a whole: other threads read it
        self._updates: dict[str, GlobalUpdate] = {}
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    @property
    def state(self) -> GlobalThreadState:
        """The thread's state."""
        return self.machine.state

    @property
    def stores(self) -> Mapping[str, GlobalStore]:
        """The open stores, by the names of their tables."""
        return self._stores

    def start(self) -> None:
        """Start; returns at once."""
        self._thread.start()

    def stop(self) -> None:
        """Ask the thread to end; returns at once."""
        self._stopping.set()

    def close(self) -> None:
        """End the thread, then close the stores, which nobody may be joining with any more. May be called twice.

        A store whose files were found damaged, by whoever read it, is set aside.

        Raises:
            ProcessorStateException: a store could not be flushed, or set aside; its topic has all that it held.
        """
        self.stop()
        if self._thread.is_alive():
            self._thread.join(_GRACE)
            if self._thread.is_alive():
                self._context.engine.cancel_jobs(self.name)
                self._thread.join()
        try:
            close_stores(self._stores)
        finally:
            # Damage that shows only when it is read: so the next start builds the store anew.
            set_damaged_aside(self._stores, self._context.directory)

    def _run(self) -> None:
        try:
            self._work()
        except BaseException as error:
            if self._stopping.is_set():
                _LOGGER.warning("%s left a batch unfinished while closing, to be read again: %s", self.name, error)
            else:
                self._on_exception(self.name, error)
        finally:
            self.machine.move(GlobalThreadState.PENDING_SHUTDOWN)
            self.machine.move(GlobalThreadState.DEAD)

    def _work(self) -> None:
        context, should_stop = self._context, self._stopping.is_set
        for sub in context.topology.global_tables:
            store = open_global_store(sub, context.directory)
            self._stores = {**self._stores, sub.nodes[0].name: store}
        context.engine.start()
        if not context.admin.wait_for_broker(should_stop=should_stop):
            return
        consumer = ChangelogConsumer(context.client_properties, self.name)
        try:
            topics = GlobalTopics(
                consumer,
                context.admin,
                self._stores.values(),
                context.progress,
                context.exactly_once,
                context.poll_seconds,
            )
            self._begin(topics)
            self._follow(topics)
        finally:
            consumer.close()

    def _begin(self, topics: GlobalTopics) -> None:
        while not self._stopping.is_set():
            try:
                missing = topics.begin()
            except BrokerNotAvailableException as error:
                _LOGGER.warning("%s", error)
                self._stopping.wait(_RETRY)
                continue
            if missing:
                named = source_topics(self._context.topology)
                wanted = {topic: named[topic] for topic in missing}
                check_external_topics(wanted, {}, (), self._context.admin.address)
            return

    def _follow(self, topics: GlobalTopics) -> None:
        while not self._stopping.is_set():
            if self.state is GlobalThreadState.CREATED and topics.complete:
                self.machine.move(GlobalThreadState.RUNNING)
            found = topics.poll()
            for topic, followed in topics.followed.items():
                reached = topics.reached(topic)
                if reached != followed.positions:
                    before = {TopicPartition(topic, number): at for number, at in followed.positions.items()}
                    records = found.get(topic, [])
                    batch = batch_of(Fetched(records, {}), before) or _NOTHING
                    if not self._applied(topic, batch, reached):
                        return
                    topics.note(topic, reached, Counter(message.partition() for message in records))

    def _update_of(self, topic: str) -> GlobalUpdate | None:
        """What batches of a topic are applied by, once Spark is there; None when the thread is to end before.

        Raises what kept Spark from starting.
        """
        if topic in self._updates:
            return self._updates[topic]
        context = self._context
        while (ready := context.engine.ready()) is None:
            if self._stopping.is_set():
                return None
            context.engine.wait(_SPARK_LOOK)
        context.engine.tag_jobs(self.name)
        (sub,) = (each for each in context.topology.global_tables if topic in each.source_topics)
        policy, store = error_policy(context.application), self._stores[sub.nodes[0].name]
        self._updates[topic] = GlobalUpdate(store, ready.runners[sub.id], policy, self._counters)
        return self._updates[topic]

    def _applied(self, topic: str, batch: BatchInput, reached: Mapping[int, int]) -> bool:
        """Apply a batch, waiting for Spark and for a registry that is away; False when the thread is to end before."""
        (store,) = (each for each in self._stores.values() if each.changelog.topic == topic)
        if not batch.has_records:
            store.write_through(Updates([], [], []), reached)
            return True
        update = self._update_of(topic)
        while update is not None and not self._stopping.is_set():
            try:
                with translating(batch.ranges):
                    update.apply(batch, reached)
            except SchemaRegistryNotAvailableException as error:
                _LOGGER.warning("%s", error)
                self._stopping.wait(_RETRY)
            else:
                return True
        return False
