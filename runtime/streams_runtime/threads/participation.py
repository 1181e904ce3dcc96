"""A thread's participation in its group: from joining with one consumer until that one is given up."""

from __future__ import annotations

import logging
from functools import partial

from streams_runtime.errors import (
    BrokerNotAvailableException,
    StreamsException,
    TaskCorruptedException,
    TaskMigratedException,
    UnreleasedInstanceIdException,
)
from streams_runtime.kafka.consumer.group_consumer import GroupConsumer
from streams_runtime.kafka.consumer.invalid_offset import InvalidOffsetException
from streams_runtime.kafka.consumer.range_reader import read_whole
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.pipeline.without_spark.early_runner import SparkNeeded
from streams_runtime.processing.batch_processor import BatchProcessor
from streams_runtime.processing.batch_queue import Batches
from streams_runtime.processing.inputs.alignment import inputs_of
from streams_runtime.processing.inputs.intake import Intake
from streams_runtime.states import ThreadState
from streams_runtime.threads.group_doubts import GroupDoubts
from streams_runtime.threads.thread_parts import ThreadParts

_LOGGER = logging.getLogger("streams_runtime.threads")
_RETRY = 1.0  # seconds until a broker that is away is asked again
_LOOK = 0.1  # seconds between two looks at the group while Spark starts
_SHORT_LOOK = 0.02  # the same until the thread is RUNNING, which others wait for


class Participation:
    """Takes what the group assigns, has it restored, and works off its batches.

    It ends when the thread is to stop, when the member has to join anew with another consumer, or by an error.
    """

    def __init__(self, parts: ThreadParts) -> None:
        self._parts = parts
        self._context = parts.context
        self._stopping = parts.stopping
        self._tasks = parts.tasks
        self._topics = parts.topics
        self._doubts = GroupDoubts(parts.context.admin, parts.membership, parts.context.standbys)
        self._intake: Intake | None = None
        self._batches: Batches | None = None
        self._are_early = False  # whether the batches are those before Spark is there
        self._waits_for_spark = False  # whether one had to wait for it, and all others do
        self._assignment_came = False
        self._join_anew = False
        self._begun: dict[TopicPartition, int] = {}  # where partitions begin by choice, until that is committed

    @property
    def positions(self) -> dict[TopicPartition, int]:
        """The offset that comes next for each input of a running task."""
        intake = self._intake
        return {} if intake is None else intake.positions

    @property
    def computing(self) -> bool:
        """Whether it waits for what Spark makes of a batch."""
        batches = self._batches
        return batches is not None and batches.computing

    def take_part(self, consumer: GroupConsumer) -> None:
        """Until the end, with a consumer that calls `on_assigned` and `on_revoked`; the caller closes it.

        Raises:
            UnreleasedInstanceIdException: another process has the member's name still; take part anew a little later.
            StreamsException, UserCodeException: what ends the thread.
        """
        context = self._context
        self._check_topics()
        read = partial(read_whole, context.client_properties)
        inputs = inputs_of(self._topics.topology)
        resets = [each for each in self._topics.read if context.beginnings.reset_of(each) is not None]
        self._intake = intake = Intake(consumer, context.admin, context.limits, read, inputs, resets)
        self._join(consumer)
        failed = False
        while not self._stopping.is_set() and not self._join_anew:
            try:
                if self._see_to_topics() or self._missed_a_change(consumer) or not self._has_begun(intake, consumer):
                    continue
                self._doubts.ask_for_moves(consumer)
                self._see_to_stores(intake)
                self._parts.output.make_ready()
                batches = self._ready_batches(intake, consumer)
                if batches is None:
                    self._wait_for_spark(consumer)
                    self._keep_up_with_assignment(intake)
                else:
                    self._go_on(batches, intake, consumer)
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
                if not self._goes_on_after(error):
                    raise

    def _see_to_topics(self) -> bool:
        """See to topics that were deleted or made anew behind the application's back; whether there were any.

        Clients that knew a topic before it was made anew are replaced (TopicWatch says why): the producer in any case,
        the member when it reads such a topic.

        Raises what ThreadTopics.make_ready raises.
        """
        if not self._topics.are_others:
            return False
        self._write_anew()  # the producer may have given up on records for the old topics, too
        renewed = self._topics.make_ready()
        self._tasks.follow(renewed)
        if renewed.keys() & self._topics.read or self._topics.others_fit:
            self._join_anew = True
        elif self._tasks.close_restoring():
            self._parts.machine.move(ThreadState.PARTITIONS_ASSIGNED)
        self._topics.seen_to()
        return True

    def _see_to_stores(self, intake: Intake) -> None:
        """Tasks with stores whose files are damaged start over: those stores are set aside, and restored."""
        inputs = self._tasks.close_damaged()
        if inputs:
            intake.remove(inputs)
            self._give_up()
            self._parts.machine.move(ThreadState.PARTITIONS_ASSIGNED)

    def _goes_on_after(self, error: Exception) -> bool:
        """Whether a batch that failed may be done once more, and that has been seen to.

        Raises what `_see_to_topics` raises.
        """
        if not self._parts.sinks.may_go_on_after(error):
            return self._was_for_want_of_topics(error)
        _LOGGER.warning("a batch is done once more, without records that topics refuse: %s", error)
        self._write_anew()
        return True

    def _was_for_want_of_topics(self, error: Exception) -> bool:
        """Whether an error came of topics that were deleted, or made anew, and that has been seen to.

        Raises what `_see_to_topics` raises.
        """
        if self._stopping.is_set() or not self._topics.look_now():
            return False
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
        self._write_anew()
        intake.remove(self._tasks.close_all())
        self.on_assigned(frozenset())
        self._stopping.wait(_RETRY)

    def _check_topics(self) -> None:
        """A rebalance's checks before the first one: a topic that is missing would never be assigned."""
        while not self._stopping.is_set():
            try:
                self._topics.check()
                return
            except BrokerNotAvailableException as error:
                _LOGGER.warning("%s", error)
                self._stopping.wait(_RETRY)

    def _join(self, consumer: GroupConsumer) -> None:
        """No partition is taken from others before it can be worked on: global tables are here (as in Kafka Streams),
        and tasks that others process are warm.
        """
        while not self._stopping.is_set() and not self._context.global_tables_are_complete:
            self._stopping.wait(_LOOK)
        if self._context.warm_up is not None:
            self._context.warm_up.wait(self._stopping.is_set, self._stopping.wait)
        if not self._stopping.is_set():  # the group would wait for a member that joins and ends
            self._doubts.join()
            consumer.subscribe(self._topics.to_join_with())

    def _ready_batches(self, intake: Intake, consumer: GroupConsumer) -> Batches | None:
        """What batches are worked on with; None while they have to wait for Spark."""
        if self._batches is not None and not self._are_early:
            return self._batches
        parts, engine = self._parts, self._context.engine
        processor = engine.processor(parts.counters, self._context.global_stores)
        if processor is not None:
            self._give_up()  # what an early batch has begun
            engine.tag_jobs(parts.name)  # what this thread itself asks Spark: why a record can't be read
            parts.spark.submit(engine.tag_jobs, parts.name)
            self._batches, self._are_early = self._batches_with(processor, intake, consumer), False
            return self._batches
        parts.spark_start.start_if_due(self._assignment_came, parts.machine.state is ThreadState.RUNNING)
        if self._batches is None and not self._waits_for_spark:
            processor = engine.early_processor(parts.counters, self._context.global_stores, self._stopping.is_set)
            if processor is not None:
                self._batches, self._are_early = self._batches_with(processor, intake, consumer), True
        return self._batches

    def _batches_with(self, processor: BatchProcessor, intake: Intake, consumer: GroupConsumer) -> Batches:
        return Batches(
            self._context.topology,
            self._context.admin,
            self._tasks,
            intake,
            self._parts.output.commits(consumer, self._stopping.is_set),
            processor,
            self._parts.counters,
            self._parts.spark,
            self._stopping,
            self._parts.sinks,
        )

    def _wait_for_spark(self, consumer: GroupConsumer) -> None:
        """Before and while Spark starts, the thread joins the group, restores and is RUNNING already."""
        consumer.poll()
        runs = self._parts.machine.state is ThreadState.RUNNING
        self._context.engine.wait(_LOOK if runs else _SHORT_LOOK)

    def _go_on(self, batches: Batches, intake: Intake, consumer: GroupConsumer) -> None:
        """Work on the next batch. One that has to wait for Spark is read again when that is there."""
        try:
            self._take_turn(batches, intake, consumer)
        except SparkNeeded:
            self._give_up()
            self._batches, self._waits_for_spark = None, True

    def _take_turn(self, batches: Batches, intake: Intake, consumer: GroupConsumer) -> None:
        """Work on the next batch. A paused thread stays in the group, takes what comes to it, and has that restored."""
        if self._context.paused.is_set():
            batches.finish()
            consumer.poll()
            self._keep_up_with_assignment(intake)
            self._stopping.wait(_LOOK)
            return
        recorder = self._parts.counters.recorder
        began = recorder.clock()
        with recorder.waiting():
            batch = None
            if batches.isolates:
                consumer.poll()
            else:
                batch = intake.next()
        recorder.polled(recorder.clock() - began, 0 if batch is None else batch.length)
        self._keep_up_with_assignment(intake)
        if self._context.paused.is_set():  # while it read: what it has may have been written since
            batches.finish()
            return
        batches.work_on(batch)
        self._parts.purge.behind(intake.positions)

    def _keep_up_with_assignment(self, intake: Intake) -> None:
        if not self._assignment_came and self._doubts.has_nothing():
            self.on_assigned(frozenset())
        if not self._assignment_came or self._parts.machine.state is ThreadState.RUNNING:
            return
        self._topics.check_once()
        self._tasks.open_new(self._topics.counts)
        positions = self._tasks.restored(self._parts.membership.group)
        if positions.next:
            self._topics.note(self._tasks.topic_ids)
            intake.add(positions.next)
            self._begun = {**self._begun, **positions.begun}
        if self._tasks.settled:
            # After a revocation that nothing is assigned with, this is where the rebalance ends.
            self._parts.machine.move(ThreadState.PARTITIONS_ASSIGNED)
            self._parts.machine.move(ThreadState.RUNNING)

    def _has_begun(self, intake: Intake, consumer: GroupConsumer) -> bool:
        """Commit where partitions begin by choice (Positions.begun); whether that is done, and batches may be read.

        No batch is read before, whose commit this one could take back, and none is at hand: a member hears of
        rebalances while it commits.
        """
        begun = self._to_commit(intake)
        if not begun:
            return True
        done = consumer.commit(
            begun, lambda: self._stopping.is_set() or self._to_commit(intake) != begun, self._tasks.topic_ids
        )
        if done:
            self._begun = {}
        return done

    def _to_commit(self, intake: Intake) -> dict[TopicPartition, int]:
        """What has been chosen for partitions that are still to be read from there."""
        positions = intake.positions
        return {each: at for each, at in self._begun.items() if positions.get(each) == at}

    def _missed_a_change(self, consumer: GroupConsumer) -> bool:
        """Whether the member has missed a change of its assignment: then it joins anew."""
        missed = self._doubts.has_missed_a_change(consumer)
        if missed:
            _LOGGER.warning("%s has not heard what the group has assigned to it, and joins anew", self._parts.name)
            self._give_up()
            self._join_anew = True
        return missed

    def on_assigned(self, partitions: frozenset[TopicPartition]) -> None:
        """The group has assigned these partitions, beside those that the member has."""
        self._tasks.assigned(partitions)
        self._assignment_came = True
        self._topics.assignment_changed()
        self._parts.machine.move(ThreadState.PARTITIONS_ASSIGNED)

    def on_revoked(self, partitions: frozenset[TopicPartition]) -> None:
        """The group takes these partitions away."""
        self._parts.machine.move(ThreadState.PARTITIONS_REVOKED)
        self._topics.assignment_changed()
        inputs = self._tasks.revoked(partitions)
        if self._intake is not None:
            self._intake.remove(inputs | partitions)
            self._give_up()

    def _write_anew(self) -> None:
        """Give up what is not committed, and go on with another producer."""
        self._give_up()
        self._batches = None
        self._parts.output.close()

    def _give_up(self) -> None:
        """What is not committed is read again by whoever has the partitions."""
        self._parts.sinks.look_again()
        if self._batches is not None:
            self._batches.give_up()
        elif self._intake is not None:
            self._intake.restart()
