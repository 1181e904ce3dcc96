"""StreamThread: takes part in the group, runs batches, commits."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Protocol

from streams_runtime.engine import EngineRoom
from streams_runtime.errors import (
    BrokerNotAvailableException,
    ProcessorStateException,
    StreamsException,
    TaskCorruptedException,
    TaskMigratedException,
    UnreleasedInstanceIdException,
)
from streams_runtime.kafka.admin import Admin
from streams_runtime.kafka.group_consumer import GroupConsumer, Membership
from streams_runtime.kafka.producer import BatchProducer
from streams_runtime.kafka.transactions import TransactionalProducer
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.restore.updater import StateUpdater
from streams_runtime.state.directory import StateDirectory
from streams_runtime.states import THREAD, StateMachine, ThreadState
from streams_runtime.tasks.batches import Batches
from streams_runtime.tasks.commits import AtLeastOnce, Commits, ExactlyOnce
from streams_runtime.tasks.intake import Intake, IntakeLimits
from streams_runtime.tasks.manager import TaskManager
from streams_runtime.tasks.processor import Counters
from streams_runtime.tasks.standbys import StandbyTasks
from streams_runtime.tasks.stop_sign import StopSign
from streams_runtime.topics.watch import TopicWatch
from streams_runtime.topology.partitions import internal_topic_names
from streams_runtime.topology.plan import Topology

_LOGGER = logging.getLogger("streams_runtime.threads")
_RETRY = 1.0  # seconds until a broker that is away is asked again
_SILENCE = 1.0  # seconds without an assignment after which the group is asked, and between two questions
_ENGINE_PATIENCE = 2.0  # seconds without an assignment after which Spark starts meanwhile
_ENGINE_LOOK = 0.1  # seconds between two looks at the group while Spark starts
_PURGE_SECONDS = 30.0  # Kafka Streams' repartition.purge.interval.ms


class Application(Protocol):
    """What all threads of a client share; the client gives it."""

    topology: Topology
    admin: Admin
    directory: StateDirectory
    client_properties: Mapping[str, str]
    limits: IntakeLimits
    exactly_once: bool

    engine: EngineRoom
    standbys: StandbyTasks | None

    def make_topics_ready(self) -> Mapping[str, int]:
        """Check all topics, set up internal ones where that is automatic, and return every topic's partition count: a
        rebalance's checks. Raises MissingInternalTopicException with manual set-up.
        """

    def make_updater(self, name: str) -> StateUpdater:
        """A state updater that is not started yet."""


class StreamThread:
    """One thread of a streams client, with its own member, producer, tasks and state updater.

    `on_exception(thread, error)` is called on the thread itself when it ends by an error, before it frees anything.
    """

    def __init__(
        self,
        name: str,
        application: Application,
        membership: Membership,
        on_exception: Callable[[StreamThread, BaseException], None],
        counters: Counters | None = None,
    ) -> None:
        """`counters`: those of the thread that this one replaces."""
        self.name = name
        self.counters = counters or Counters()
        self.machine = StateMachine(THREAD, f"thread {name}")
        self._application = application
        self._membership = membership
        self._on_exception = on_exception
        self._stopping = StopSign()
        self._in_batch = False
        self._assignment_came = False
        self._topics_checked = False
        self._counts: Mapping[str, int] = {}
        self._joined_at = self._asked_at = self._purged = time.monotonic()
        self._updater = application.make_updater(f"{name}-StateUpdater")
        self._tasks = TaskManager(
            application.topology, application.directory, self._updater, application.admin, application.standbys
        )
        self._intake: Intake | None = None
        self._batches: Batches | None = None
        self._producer: BatchProducer | None = None
        self._watch = TopicWatch(application.admin, internal_topic_names(application.topology))
        self._spark = ThreadPoolExecutor(1, f"{name}-spark", initializer=lambda: application.engine.tag_jobs(name))
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    @property
    def state(self) -> ThreadState:
        """The thread's state."""
        return self.machine.state

    @property
    def instance_id(self) -> str:
        """The thread's static name in the group."""
        return self._membership.instance_id

    @property
    def is_current(self) -> bool:
        """Whether it is the thread that calls."""
        return self._thread is threading.current_thread()

    @property
    def tasks(self) -> TaskManager:
        """The thread's tasks."""
        return self._tasks

    @property
    def positions(self) -> dict[TopicPartition, int]:
        """The offset that comes next for each input of a running task."""
        intake = self._intake
        return {} if intake is None else intake.positions

    @property
    def last_turn(self) -> float:
        """When the loop, or a wait for brokers, last turned; by time.monotonic()."""
        return self._stopping.looked_at

    @property
    def in_batch(self) -> bool:
        """Whether a batch is in work, which may keep the loop from turning for long."""
        return self._in_batch

    def start(self) -> None:
        """Start; returns at once."""
        self.machine.move(ThreadState.STARTING)
        self._thread.start()

    def stop(self) -> None:
        """Ask the thread to end after its present batch; returns at once."""
        self._stopping.set()

    def join(self, timeout: float | None = None) -> bool:
        """Wait until the thread is DEAD; False when `timeout` seconds pass first."""
        if self._thread.is_alive() and not self.is_current:
            self._thread.join(timeout)
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            with ExitStack() as resources:
                try:
                    self._work(resources)
                except BaseException as error:
                    self._report(error)
                self.machine.move(ThreadState.PENDING_SHUTDOWN)
                # Stores first: whoever gets the partitions when the member leaves may share the disk.
                resources.callback(self._end_spark_work)
                resources.callback(self._updater.stop)
                resources.callback(self._close_tasks)
        except Exception as error:
            _LOGGER.warning("closing %s: %s: %s", self.name, type(error).__name__, error)
        finally:
            self.machine.move(ThreadState.DEAD)

    def _end_spark_work(self) -> None:
        """What Spark still computes for this thread is of no use to anybody."""
        self._application.engine.cancel_jobs(self.name)
        self._spark.shutdown(wait=True, cancel_futures=True)

    def _report(self, error: BaseException) -> None:
        if self._stopping.is_set():
            _LOGGER.warning("%s left a batch unfinished while closing, to be read again: %s", self.name, error)
        else:
            self._on_exception(self, error)

    def _close_tasks(self) -> None:
        try:
            self._tasks.close()
        except ProcessorStateException as error:
            _LOGGER.warning("%s: %s", self.name, error)

    def _work(self, resources: ExitStack) -> None:
        application, should_stop = self._application, self._stopping.is_set
        if not application.admin.wait_for_broker(should_stop=should_stop):
            return
        self._updater.start()
        resources.callback(self._close_producer)
        while not should_stop():
            consumer = GroupConsumer(
                application.client_properties, self._membership, self._on_assigned, self._on_revoked
            )
            try:
                self._take_part(consumer)
            except UnreleasedInstanceIdException as error:
                _LOGGER.warning("%s", error)
                consumer.close()
                self._stopping.wait(_RETRY)
            except BaseException:
                resources.callback(consumer.close)
                raise
            else:
                resources.callback(consumer.close)

    def _take_part(self, consumer: GroupConsumer) -> None:
        application = self._application
        self._check_topics()
        self._assignment_came = False
        self._joined_at = time.monotonic()
        self._batches = None
        self._intake = intake = Intake(consumer, application.admin, application.limits)
        consumer.subscribe({topic for sub in application.topology.subtopologies for topic in sub.source_topics})
        while not self._stopping.is_set():
            self._in_batch = False
            try:
                self._see_to_topics()
                self._see_to_stores(intake)
                self._see_to_producer()
                self._batches = batches = self._batches or self._ready_batches(intake, consumer)
                if batches is None:
                    self._wait_for_engine(consumer)
                    self._keep_up_with_assignment(intake)
                else:
                    batch = intake.next()
                    self._keep_up_with_assignment(intake)
                    self._in_batch = True
                    batches.work_on(batch)
                    self._purge_repartition_topics(intake.positions)
            except BrokerNotAvailableException as error:
                _LOGGER.warning("%s", error)
                self._give_up()
                self._stopping.wait(_RETRY)
            except UnreleasedInstanceIdException:
                raise
            except TaskMigratedException as error:
                _LOGGER.warning("%s", error)
                self._revive(intake)
            except TaskCorruptedException as error:
                if not self._tasks.any_damaged:
                    raise
                _LOGGER.warning("%s", error)
                self._give_up()
            except Exception as error:
                if not self._was_for_want_of_topics(error):
                    raise

    def _see_to_topics(self) -> None:
        """Internal topics that were deleted behind the application's back are seen to as at a rebalance."""
        gone = self._watch.gone()
        if gone:
            self._make_good(gone)

    def _see_to_stores(self, intake: Intake) -> None:
        """Tasks with stores whose files are damaged start over: those stores are set aside, and restored."""
        inputs = self._tasks.close_damaged()
        if inputs:
            intake.remove(inputs)
            self._give_up()
            self.machine.move(ThreadState.PARTITIONS_ASSIGNED)

    def _was_for_want_of_topics(self, error: Exception) -> bool:
        """Whether an error came of internal topics that are missing, and they are there again.

        Raises MissingInternalTopicException where they may not be made, and what else make_topics_ready raises.
        """
        if self._stopping.is_set():
            return False
        names = internal_topic_names(self._application.topology)
        try:
            present = self._application.admin.describe_topics(names, config=False)
        except StreamsException:
            return False
        gone = (set(names) - present.keys()) | self._watch.gone()
        if not gone:
            return False
        try:
            self._make_good(gone)
        except BrokerNotAvailableException as away:
            _LOGGER.warning("%s", away)  # the topics are noticed again when it is back
        except StreamsException as reason:
            raise reason from error
        return True

    def _make_good(self, gone: Collection[str]) -> None:
        _LOGGER.warning("the brokers do not have internal topics any more: %s", ", ".join(sorted(gone)))
        self._give_up()
        # The producer knows the old topics' partitions, and may have given up on records for them.
        self._batches = None
        self._close_producer()
        self._counts = self._application.make_topics_ready()
        self._watch.forget()

    def _see_to_producer(self) -> None:
        """Before anything is restored: it ends the transaction that a killed predecessor may have left open."""
        application, client_id = self._application, f"{self._membership.client_id}|producer"
        if self._producer is None and application.exactly_once:
            transactional_id = f"{self._membership.group}-{self._membership.instance_id}"
            self._producer = TransactionalProducer(
                application.client_properties, client_id, transactional_id, self._is_in_vain
            )
        elif self._producer is None:
            self._producer = BatchProducer(application.client_properties, client_id, self._is_in_vain)
        if isinstance(self._producer, TransactionalProducer):
            self._producer.initialise()

    def _commits(self, consumer: GroupConsumer) -> Commits:
        assert self._producer is not None
        if isinstance(self._producer, TransactionalProducer):
            return ExactlyOnce(self._producer, consumer)
        return AtLeastOnce(self._producer, consumer, self._stopping.is_set)

    def _revive(self, intake: Intake) -> None:
        """What the brokers have of the last batch is not known: start over from the changelogs and the group's offsets.

        Whether the group still counts this member in shows when the thread takes part in it again.
        """
        self._give_up()
        self._batches = None
        self._close_producer()
        intake.remove(self._tasks.close_all())
        self._on_assigned(frozenset())
        self._stopping.wait(_RETRY)

    def _close_producer(self) -> None:
        if self._producer is not None:
            self._producer.close()
            self._producer = None

    def _is_in_vain(self) -> bool:
        """Whether waiting for the broker to take records is of no use: a stop, or a topic that is gone."""
        return self._stopping.is_set() or bool(self._watch.gone())

    def _check_topics(self) -> None:
        """A rebalance's checks before the first one: a topic that is missing would never be assigned."""
        while not self._stopping.is_set():
            try:
                self._counts = self._application.make_topics_ready()
                return
            except BrokerNotAvailableException as error:
                _LOGGER.warning("%s", error)
                self._stopping.wait(_RETRY)

    def _ready_batches(self, intake: Intake, consumer: GroupConsumer) -> Batches | None:
        """What batches are worked on with; None while Spark is not there yet."""
        application, counters = self._application, self.counters
        processor = application.engine.processor(counters)
        if processor is None:
            return None
        application.engine.tag_jobs(self.name)  # what this thread itself asks Spark: why a record can't be read
        return Batches(
            application.topology,
            application.admin,
            self._tasks,
            intake,
            self._commits(consumer),
            processor,
            counters,
            self._spark,
            self._stopping,
        )

    def _wait_for_engine(self, consumer: GroupConsumer) -> None:
        """Before and while Spark starts, the thread joins the group and restores already."""
        self._start_engine()
        consumer.poll()
        self._application.engine.wait(_ENGINE_LOOK)

    def _start_engine(self) -> None:
        """Start Spark beside a short restoration, but after a bulk load, which needs all cores for a few seconds.

        Without an assignment (an earlier member's session may have to end first) it starts all the same.
        """
        waited = time.monotonic() - self._joined_at
        if not self._updater.loading if self._assignment_came else waited > _ENGINE_PATIENCE:
            self._application.engine.start()

    def _keep_up_with_assignment(self, intake: Intake) -> None:
        if not self._assignment_came:
            self._look_for_nothing_assigned()
        if not self._assignment_came or self.state is ThreadState.RUNNING:
            return
        if not self._topics_checked:
            self._counts = self._application.make_topics_ready()
            self._topics_checked = True
        self._tasks.open_new(self._counts)
        positions = self._tasks.restored(self._membership.group)
        if positions:
            intake.add(positions)
        if self._tasks.settled and self._batches is not None:
            # After a revocation that nothing is assigned with, this is where the rebalance ends.
            self.machine.move(ThreadState.PARTITIONS_ASSIGNED)
            self.machine.move(ThreadState.RUNNING)

    def _look_for_nothing_assigned(self) -> None:
        """A member that the group has no partition for hears nothing: ask the group whether it counts us so."""
        now = time.monotonic()
        if now - self._joined_at < _SILENCE or now - self._asked_at < _SILENCE:
            return
        self._asked_at = now
        members = self._application.admin.group_members(self._membership.group)
        if any(each.client_id == self._membership.client_id and not each.assignment for each in members):
            self._on_assigned(frozenset())

    def _purge_repartition_topics(self, committed: Mapping[TopicPartition, int]) -> None:
        """Delete what is processed from repartition topics, which nobody else reads."""
        if time.monotonic() - self._purged < _PURGE_SECONDS:
            return
        self._purged = time.monotonic()
        topics = self._application.topology.repartition_topics
        done = {each: offset for each, offset in committed.items() if each.topic in topics}
        try:
            self._application.admin.delete_records(done)
        except BrokerNotAvailableException as error:
            _LOGGER.warning("%s. The records are deleted later", error)

    def _on_assigned(self, partitions: frozenset[TopicPartition]) -> None:
        self._tasks.assigned(partitions)
        self._assignment_came = True
        self._topics_checked = False
        self.machine.move(ThreadState.PARTITIONS_ASSIGNED)

    def _on_revoked(self, partitions: frozenset[TopicPartition]) -> None:
        self.machine.move(ThreadState.PARTITIONS_REVOKED)
        self._topics_checked = False
        inputs = self._tasks.revoked(partitions)
        if self._intake is not None:
            self._intake.remove(inputs | partitions)
            self._give_up()

    def _give_up(self) -> None:
        """What is not committed is read again by whoever has the partitions."""
        if self._batches is not None:
            self._batches.give_up()
        elif self._intake is not None:
            self._intake.restart()
