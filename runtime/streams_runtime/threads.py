"""StreamThread: takes part in the group, runs batches, commits."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from typing import Protocol

from streams_runtime.errors import (
    BrokerNotAvailableException,
    ProcessorStateException,
    StreamsException,
    TaskCorruptedException,
    TaskMigratedException,
    UnreleasedInstanceIdException,
)
from streams_runtime.kafka.admin.kafka_admin import Admin
from streams_runtime.kafka.consumer.group_consumer import GroupConsumer, Membership
from streams_runtime.kafka.consumer.invalid_offset import InvalidOffsetException
from streams_runtime.kafka.consumer.range_reader import read_whole
from streams_runtime.kafka.consumer.unheard_assignment import AssignmentDoubt
from streams_runtime.kafka.types import GroupMember, TopicPartition
from streams_runtime.processing.alignment import inputs_of
from streams_runtime.processing.batch_processor import Counters
from streams_runtime.processing.batch_queue import Batches
from streams_runtime.processing.intake import Intake, IntakeLimits
from streams_runtime.processing.purge import Purge
from streams_runtime.processing.stop_signal import StopSign
from streams_runtime.processing.thread_producer import Output
from streams_runtime.restore.state_updater import StateUpdater
from streams_runtime.spark_runtime import SparkRuntime
from streams_runtime.state.global_store import GlobalStore
from streams_runtime.state.state_directory import StateDirectory
from streams_runtime.states import THREAD, StateMachine, ThreadState
from streams_runtime.tasks.standbys import StandbyTasks
from streams_runtime.tasks.task_manager import TaskManager
from streams_runtime.topics.topic_watch import TopicWatch
from streams_runtime.topology.partition_counts import internal_topic_names
from streams_runtime.topology.plan import Topology

_LOGGER = logging.getLogger("streams_runtime.threads")
_RETRY = 1.0  # seconds until a broker that is away is asked again
_GROUP_SECONDS = 3.0  # that a look at the group has, after which the thread goes on
_SILENCE = 1.0  # seconds without an assignment after which the group is asked, and between two questions
_SPARK_PATIENCE = 2.0  # seconds without an assignment after which Spark starts, though a bulk load may be to come
_SPARK_LOOK = 0.1  # seconds between two looks at the group while Spark starts


class Application(Protocol):
    """What all threads of a client share; the client gives it."""

    topology: Topology
    users_topics: Collection[str]
    admin: Admin
    directory: StateDirectory
    client_properties: Mapping[str, str]
    limits: IntakeLimits
    exactly_once: bool

    engine: SparkRuntime
    standbys: StandbyTasks | None

    @property
    def global_tables_are_complete(self) -> bool:
        """Whether the global tables have what their topics had at the start; True where there are none."""

    @property
    def global_stores(self) -> Mapping[str, GlobalStore]:
        """Their stores, by the names of the tables."""

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
        self._assignment_came = False
        self._topics_checked = False
        self._counts: Mapping[str, int] = {}
        self._began_at = self._joined_at = self._asked_at = time.monotonic()
        self._updater = application.make_updater(f"{name}-StateUpdater")
        self._tasks = TaskManager(
            application.topology, application.directory, self._updater, application.admin, application.standbys
        )
        self._intake: Intake | None = None
        self._batches: Batches | None = None
        self._purge = Purge(application.admin, application.topology.repartition_topics)
        self._output = Output(application.client_properties, membership, application.exactly_once, self._is_in_vain)
        self._watch = TopicWatch(
            application.admin, internal_topic_names(application.topology), application.users_topics
        )
        self._join_anew = False
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
    def computing(self) -> bool:
        """Whether it waits for what Spark makes of a batch, which may keep the loop from turning for long."""
        batches = self._batches
        return batches is not None and batches.computing

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
                finally:
                    # Stores first: whoever gets the partitions when the member leaves may share the disk.
                    resources.callback(self._end_spark_work)
                    resources.callback(self._updater.stop)
                    resources.callback(self._close_tasks)
                    self.machine.move(ThreadState.PENDING_SHUTDOWN)
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
        self._began_at = time.monotonic()
        resources.callback(self._output.close)
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
                if should_stop():
                    resources.callback(consumer.close)
                else:
                    consumer.close()  # which gives back its partitions, and closes their tasks

    def _take_part(self, consumer: GroupConsumer) -> None:
        application = self._application
        self._check_topics()
        self._wait_for_global_tables()
        self._assignment_came = self._join_anew = False
        self._joined_at = time.monotonic()
        self._batches = None
        read = partial(read_whole, application.client_properties)
        inputs = inputs_of(application.topology)
        doubt = AssignmentDoubt(self._membership.client_id)
        self._intake = intake = Intake(consumer, application.admin, application.limits, read, inputs)
        consumer.subscribe(self._topics_read)
        failed = False
        while not self._stopping.is_set() and not self._join_anew:
            try:
                if self._see_to_topics() or self._has_missed_a_change(consumer, doubt):
                    continue
                self._see_to_stores(intake)
                self._output.make_ready()
                self._batches = batches = self._batches or self._ready_batches(intake, consumer)
                if batches is None:
                    self._wait_for_spark(consumer)
                    self._keep_up_with_assignment(intake)
                else:
                    batch = intake.next()
                    self._keep_up_with_assignment(intake)
                    batches.work_on(batch)
                    self._purge.behind(intake.positions)
                    failed = False
            except BrokerNotAvailableException as error:
                _LOGGER.warning("%s", error)
                self._give_up()
                if failed:  # the first time, another broker may answer at once
                    self._stopping.wait(_RETRY)
                failed = True
            except UnreleasedInstanceIdException:
                raise
            except (TaskMigratedException, InvalidOffsetException) as error:
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

    @property
    def _topics_read(self) -> frozenset[str]:
        return frozenset(topic for sub in self._application.topology.subtopologies for topic in sub.source_topics)

    def _see_to_topics(self) -> bool:
        """See to topics that were deleted or made anew behind the application's back; whether there were any.

        Internal ones that are gone are treated as at a rebalance. Clients that knew a topic before it was made anew
        are replaced (TopicWatch says why): the producer in any case, the member when it reads such a topic.

        Raises MissingInternalTopicException where they may not be made, and what else make_topics_ready raises.
        """
        gone = self._watch.gone()
        if not gone and not self._watch.renewed():
            return False
        self._give_up()
        # The producer may have given up on records for the old topics, too.
        self._batches = None
        self._output.close()
        if gone:
            _LOGGER.warning("the brokers do not have internal topics any more: %s", ", ".join(sorted(gone)))
            self._counts = self._application.make_topics_ready()
            self._watch.note(self._application.admin.topic_ids(self._watch.names), ())
        renewed = self._watch.renewed()
        if renewed:
            _LOGGER.warning("topics were deleted and made anew: %s", ", ".join(sorted(renewed)))
        self._tasks.follow(renewed)
        if renewed.keys() & self._topics_read:
            self._join_anew = True
        elif self._tasks.close_restoring():
            self.machine.move(ThreadState.PARTITIONS_ASSIGNED)
        self._watch.forget()
        return True

    def _see_to_stores(self, intake: Intake) -> None:
        """Tasks with stores whose files are damaged start over: those stores are set aside, and restored."""
        inputs = self._tasks.close_damaged()
        if inputs:
            intake.remove(inputs)
            self._give_up()
            self.machine.move(ThreadState.PARTITIONS_ASSIGNED)

    def _was_for_want_of_topics(self, error: Exception) -> bool:
        """Whether an error came of topics that were deleted, or made anew, and that has been seen to.

        Raises what `_see_to_topics` raises.
        """
        if self._stopping.is_set():
            return False
        names = self._watch.names
        try:
            ids = self._application.admin.topic_ids(names)
        except StreamsException:
            return False
        self._watch.note(ids, names - ids.keys())
        try:
            return self._see_to_topics()
        except BrokerNotAvailableException as away:
            _LOGGER.warning("%s", away)  # the topics are noticed again when it is back
            return True
        except StreamsException as reason:
            raise reason from error

    def _revive(self, intake: Intake) -> None:
        """What the brokers have of the last batch is not known: start over from the changelogs and the group's offsets.

        Whether the group still counts this member in shows when the thread takes part in it again.
        """
        self._give_up()
        self._batches = None
        self._output.close()
        intake.remove(self._tasks.close_all())
        self._on_assigned(frozenset())
        self._stopping.wait(_RETRY)

    def _is_in_vain(self) -> bool:
        """Whether waiting for the broker to take records is of no use: a stop, or a topic that is gone or another."""
        return self._stopping.is_set() or bool(self._watch.gone() or self._watch.renewed())

    def _check_topics(self) -> None:
        """A rebalance's checks before the first one: a topic that is missing would never be assigned."""
        while not self._stopping.is_set():
            try:
                self._counts = self._application.make_topics_ready()
                return
            except BrokerNotAvailableException as error:
                _LOGGER.warning("%s", error)
                self._stopping.wait(_RETRY)

    def _wait_for_global_tables(self) -> None:
        """As in Kafka Streams, no partition is taken from others before what it is joined with is here."""
        while not self._stopping.is_set() and not self._application.global_tables_are_complete:
            self._stopping.wait(_SPARK_LOOK)

    def _ready_batches(self, intake: Intake, consumer: GroupConsumer) -> Batches | None:
        """What batches are worked on with; None while Spark is not there yet."""
        application, counters = self._application, self.counters
        processor = application.engine.processor(counters, application.global_stores)
        if processor is None:
            return None
        application.engine.tag_jobs(self.name)  # what this thread itself asks Spark: why a record can't be read
        return Batches(
            application.topology,
            application.admin,
            self._tasks,
            intake,
            self._output.commits(consumer, self._stopping.is_set),
            processor,
            counters,
            self._spark,
            self._stopping,
        )

    def _wait_for_spark(self, consumer: GroupConsumer) -> None:
        """Before and while Spark starts, the thread joins the group and restores already."""
        self._start_spark()
        consumer.poll()
        self._application.engine.wait(_SPARK_LOOK)

    def _start_spark(self) -> None:
        """Start Spark beside a short restoration, but after a bulk load, which needs all cores for a few seconds.

        Before the assignment, where no such load is to be expected: no store, or some that are here from before. And
        when it does not come, since an earlier member's session has to end first; joining again does not begin that
        wait anew.
        """
        if self._assignment_came:
            ready = not self._updater.loading
        else:
            waited = time.monotonic() - self._began_at
            ready = waited > _SPARK_PATIENCE or not self._may_load_in_bulk
        if ready:
            self._application.engine.start()

    @property
    def _may_load_in_bulk(self) -> bool:
        has_stores = any(sub.stores for sub in self._application.topology.subtopologies)
        return has_stores and self._application.directory.tasks.empty

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
            self._watch.note(self._tasks.topic_ids, ())
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

    def _has_missed_a_change(self, consumer: GroupConsumer, doubt: AssignmentDoubt) -> bool:
        """Whether the group's answer to a heartbeat was lost and the assignment with it: then the member joins anew."""

        def members() -> Collection[GroupMember]:
            return self._application.admin.group_members(self._membership.group, _GROUP_SECONDS)

        try:
            missed = doubt.is_justified(consumer.unheard, consumer.assigned, members)
        except StreamsException as error:
            _LOGGER.debug("%s", error)  # whoever needs the brokers says that they are away
            return False
        if missed:
            _LOGGER.warning("%s has not heard what the group has assigned to it, and joins anew", self.name)
            self._give_up()
            self._join_anew = True
        return missed

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
