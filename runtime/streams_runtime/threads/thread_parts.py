"""What a stream thread has from its start to its end, however often its member joins the group."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

from streams_runtime.client_context import ClientContext
from streams_runtime.errors import ProcessorStateException
from streams_runtime.kafka.consumer.group_consumer import Membership
from streams_runtime.processing.batch_work import Counters
from streams_runtime.processing.purge import Purge
from streams_runtime.processing.stop_signal import StopSign
from streams_runtime.processing.thread_producer import Output
from streams_runtime.states import THREAD, StateMachine
from streams_runtime.tasks.task_manager import TaskManager
from streams_runtime.threads.spark_start import SparkStart
from streams_runtime.threads.thread_topics import ThreadTopics

_LOGGER = logging.getLogger("streams_runtime.threads")


class ThreadParts:
    """Its states, tasks, topics and producer, and what it asks Spark with."""

    def __init__(self, name: str, context: ClientContext, membership: Membership, counters: Counters) -> None:
        """Start nothing, and connect to nobody."""
        self.name = name
        self.context = context
        self.membership = membership
        self.counters = counters
        self.machine = StateMachine(THREAD, f"thread {name}")
        self.stopping = StopSign()
        self.updater = context.make_updater(f"{name}-StateUpdater")
        self.tasks = TaskManager(
            context.topology,
            context.directory,
            self.updater,
            context.admin,
            context.standbys,
            counters.recorder,
            None if context.snapshots is None else context.snapshots.snapshotter,
            context.beginnings,
        )
        self.topics = ThreadTopics(context)
        self.spark_start = SparkStart(context, self.updater)
        self.purge = Purge(context.admin, context.topology.repartition_topics)
        self.sinks = context.make_sink_topics()
        self.output = Output(
            context.client_properties,
            membership,
            context.exactly_once,
            self._is_in_vain,
            self.sinks.producer_settings,
        )
        self.spark = ThreadPoolExecutor(1, f"{name}-spark", initializer=lambda: context.engine.tag_jobs(name))

    def close_with(self, resources: ExitStack) -> None:
        """Free tasks, updater and Spark's work when `resources` end, before what they have by now.

        Stores first: whoever gets the partitions when the member leaves may share the disk.
        """
        resources.callback(self._end_spark_work)
        resources.callback(self.updater.stop)
        resources.callback(self._close_tasks)

    def _is_in_vain(self) -> bool:
        """Whether waiting for the broker to take records is of no use: a stop, or a topic that is gone or another."""
        return self.stopping.is_set() or self.topics.are_others

    def _end_spark_work(self) -> None:
        """What Spark still computes for this thread is of no use to anybody."""
        self.context.engine.cancel_jobs(self.name)
        self.spark.shutdown(wait=True, cancel_futures=True)

    def _close_tasks(self) -> None:
        try:
            self.tasks.close()
        except ProcessorStateException as error:
            _LOGGER.warning("%s: %s", self.name, error)
