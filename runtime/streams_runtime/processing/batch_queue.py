"""Batches between the intake and the commit: Spark computes one while the thread completes the one before it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field

from streams_runtime.batch.stage import StageOutput
from streams_runtime.errors import (
    BrokerNotAvailableException,
    FailedProcessingException,
    SchemaRegistryNotAvailableException,
    StreamsException,
    TaskMigratedException,
)
from streams_runtime.kafka.admin.kafka_admin import Admin
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.pipeline.batch_input import BatchInput, batch_of_nothing
from streams_runtime.pipeline.spark.query_failures import translating
from streams_runtime.processing.batch_processor import BatchProcessor
from streams_runtime.processing.batch_work import Counters, Outcome
from streams_runtime.processing.commits import Commits
from streams_runtime.processing.failures.isolation import Isolation
from streams_runtime.processing.failures.sink_topics import SinkTopics
from streams_runtime.processing.inputs.intake import Intake, split_by_topics
from streams_runtime.tasks.task_manager import TaskManager
from streams_runtime.topology.plan import SubTopology, Topology

_LOGGER = logging.getLogger("streams_runtime.tasks")
_RETRY = 1.0  # seconds until a broker that is away is asked again


@dataclass(frozen=True, slots=True)
class _Part:
    """A sub-topology's part of a batch, and what Spark makes of it."""

    sub: SubTopology
    batch: BatchInput
    result: Future[StageOutput]
    records: int
    """Offsets of the whole batch, other sub-topologies' parts included."""


@dataclass(frozen=True, slots=True)
class _Apart:
    """A sub-topology's part of a batch that failed by one of its records, and is done once more in parts."""

    sub: SubTopology
    isolation: Isolation


@dataclass(slots=True)
class Batches:
    """The batches in work of one member of the group. Used by its thread only; `stopping` may be set by any."""

    topology: Topology
    admin: Admin
    tasks: TaskManager
    intake: Intake
    commits: Commits
    processor: BatchProcessor
    counters: Counters
    spark: ThreadPoolExecutor
    stopping: threading.Event
    sinks: SinkTopics | None = None
    clock: Callable[[], float] = time.monotonic
    _in_work: list[_Part] = field(default_factory=list, init=False)
    _apart: _Apart | None = field(default=None, init=False)
    _times_given_up: int = field(default=0, init=False)
    computing: bool = field(default=False, init=False)
    """Whether the thread waits for Spark. Any thread may ask."""

    @property
    def isolates(self) -> bool:
        """Whether records that fail are being looked for. Until that is done, no other batch is to be worked on."""
        return self._apart is not None

    def work_on(self, batch: BatchInput | None) -> None:
        """Let Spark begin with the batch, and complete what is in work.

        Behind a backlog the batch stays in work until the next call: Spark computes it while this thread completes the
        one before it. Otherwise it is completed at once.

        Raises:
            BrokerNotAvailableException: `give_up`, and go on when the broker is back; nothing is lost.
            TaskMigratedException: `give_up`, and revive the tasks; nothing is lost.
            StreamsException: a record can't be processed, or the broker refuses the results.
        """
        if self._apart is not None:
            self._work_apart(self._apart)
            return
        given_up = self._times_given_up
        before, self._in_work = self._in_work, [] if batch is None else self._begun(batch)
        self._complete_all(before)
        if not self.intake.size.is_known:
            self._learn(self._in_work)  # the next batch's size goes by what comes of this one, which is small
        if not self.intake.backlogged:
            now, self._in_work = self._in_work, []
            self._complete_all(now)
        self._call_what_is_due(given_up)

    def finish(self) -> None:
        """Complete what is in work and begin nothing; the member fetches nothing until the next batch is asked for.

        Raises what `work_on` raises.
        """
        before, self._in_work = self._in_work, []
        self._complete_all(before)
        self._apart = None
        self.intake.restart()

    def give_up(self) -> None:
        """Forget what is in work and not committed; it is read again by whoever has the partitions."""
        self._in_work = []
        self._apart = None
        self._times_given_up += 1
        self.intake.restart()

    def _complete_all(self, parts: Sequence[_Part]) -> None:
        """Complete the parts in order; no further one once a rebalance, or a lost commit, gave up what is in work."""
        given_up = self._times_given_up
        for part in parts:
            if self._times_given_up == given_up:
                self._complete(part)
        if self._times_given_up == given_up:
            self._learn(parts)

    def _call_what_is_due(self, given_up: int) -> None:
        """What is due by the machine's clock: a batch without records of each sub-topology that has any.

        It ends where the last committed one did. Where anything was given up since, that is seen to first.
        """
        for sub in self.topology.subtopologies:
            tasks = self.tasks.running(sub.id) if self._times_given_up == given_up else {}
            if self.processor.is_due(sub, tasks):
                inputs = {each for task in tasks.values() for each in task.inputs}
                at = {each: offset for each, offset in self.intake.positions.items() if each in inputs}
                nothing: Future[StageOutput] = Future()
                nothing.set_result(StageOutput())
                self._complete(_Part(sub, batch_of_nothing(at), nothing, 0))

    def _learn(self, parts: Sequence[_Part]) -> None:
        """Wait for what Spark makes of a batch: its keys tell how large the next one may be. Failures are met later."""
        self._wait_for_spark(parts)
        results = [part.result.result() for part in parts if part.result.exception() is None]
        self.intake.size.learn(sum(each.records for each in results), sum(each.keys for each in results))

    def _wait_for_spark(self, parts: Sequence[_Part]) -> None:
        self.computing = True
        try:
            wait([part.result for part in parts])
        finally:
            self.computing = False
            self.stopping.is_set()  # a sign of life: the state side has its own time

    def _begun(self, batch: BatchInput) -> list[_Part]:
        """The batch by sub-topology, each with Spark's result to come."""
        parts, records = [], sum(each.end - each.start for each in batch.ranges)
        for sub in self.topology.subtopologies:
            part = split_by_topics(batch, sub.reads)
            if part is not None:
                parts.append(_Part(sub, part, self.spark.submit(self.processor.compute, sub, part), records))
        return parts

    def _complete(self, part: _Part) -> None:
        """A sub-topology's part of a batch: stores' next contents, produce, commit, and only then the stores.

        Where one of its records fails, and that is not to end the thread, it is given up: to be done again in parts.
        """
        with self._traced():
            try:
                self._complete_stages(part)
            except FailedProcessingException as error:
                with translating(part.batch.ranges):
                    isolation = self.processor.isolation(part.sub, part.batch, error)
                if isolation is None:
                    raise
                _LOGGER.warning("a batch of %d records is done once more in parts: %s", isolation.left, error.reason)
                self.give_up()
                self._apart = _Apart(part.sub, isolation)

    @contextmanager
    def _traced(self) -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            self.counters.recorder.ended(error)
            raise
        self.counters.recorder.ended()

    def _work_apart(self, apart: _Apart) -> None:
        """The next part of a batch of which a record fails."""
        isolation, given_up = apart.isolation, self._times_given_up
        batch = isolation.part()
        result = self.spark.submit(self.processor.compute, apart.sub, batch)
        part = _Part(apart.sub, batch, result, batch.size)
        try:
            with self._traced():
                self._complete_stages(part)
        except FailedProcessingException as error:
            if not error.of_a_record:
                raise
            if isolation.failed():
                self._leave_out(part, error)
                if given_up == self._times_given_up:
                    isolation.left_out()
        else:
            if given_up == self._times_given_up:
                isolation.passed()
        if isolation.is_done and self._apart is apart:
            self._apart = None

    def _leave_out(self, part: _Part, error: FailedProcessingException) -> None:
        """Go on behind a record that fails; its letter is committed with its offset."""
        self.commits.begin()
        try:
            with translating(part.batch.ranges):
                outcome = self.processor.leave_out(part.sub, part.batch, error, self.commits.producer)
            self.commits.flush()
            held = self.commits.commit(outcome.offsets, self.tasks.topic_ids)
        except BaseException:
            self.commits.abort()
            raise
        if not held:
            self.give_up()  # as in _complete_stages
            return
        self._store(outcome)

    def _complete_stages(self, part: _Part) -> None:
        started, recorder = self.clock(), self.counters.recorder
        with translating(part.batch.ranges):
            self._wait_for_spark([part])
            result = part.result.result()
            computed = self.clock()
            recorder.stage("spark", computed - started)
            outcome = self._committed_in_time(part, result, computed - started)
        if outcome is None:
            self.give_up()  # the partitions may have gone to others, who read the batch again
            return
        committed = self.clock()
        self._store(outcome)
        recorder.stage("store", self.clock() - committed)
        self.counters.batches += 1
        _LOGGER.debug(
            "batch of %d records: %.2f s waiting for Spark, %.2f s until committed, %.2f s storing",
            outcome.records,
            computed - started,
            committed - computed,
            self.clock() - committed,
        )

    def _committed_in_time(self, part: _Part, result: StageOutput, waited: float) -> Outcome | None:
        """As `_committed`; the time that it takes says how large the next batches may be."""
        began, allowed = self.clock(), self.commits.seconds
        try:
            outcome = self._committed(part, result, waited)
        except (TaskMigratedException, BrokerNotAvailableException) as error:
            took = self.clock() - began
            if took >= allowed and part.records and not isinstance(error, SchemaRegistryNotAvailableException):
                self._note_overrun(part.records, took, allowed)
            raise
        if outcome is not None:
            self.intake.size.kept(part.records, self.clock() - began, allowed)
        return outcome

    def _note_overrun(self, records: int, took: float, allowed: float) -> None:
        self.intake.size.overran(records, took, allowed)
        _LOGGER.warning(
            "the transaction of a batch of %d records took %.1f s, and the brokers abort one after %.1f s"
            " (transaction.timeout.ms): batches have %d records at most from here on, and grow again as they are"
            " quicker. If it goes on, raise transaction.timeout.ms in spec.kafka.config",
            records,
            took,
            allowed,
            self.intake.size.limit,
        )

    def _committed(self, part: _Part, result: StageOutput, waited: float) -> Outcome | None:
        """Produce and commit; None when it was not committed, and is to be read again. `waited`: seconds for Spark."""
        began, recorder = self.clock(), self.counters.recorder
        self.commits.begin()
        try:
            # After a crash this tells which records may have been processed without being committed.
            ranges = {str(each.partition): (each.start, each.end) for each in part.batch.ranges}
            _LOGGER.debug("producing", extra={"ranges": ranges})
            tasks = self.tasks.running(part.sub.id)
            outcome = self.processor.apply(part.sub, tasks, part.batch, result, self.commits.producer, self.sinks)
            applied = self.clock()
            recorder.stage("process", applied - began)
            recorder.processed(part.sub.id, waited + applied - began, outcome.records)
            with recorder.waiting():
                self.commits.flush()
                written = self.clock()
                outcome.ends = self._changelog_ends(outcome)
                asked = self.clock() - written
                held = self.commits.commit(outcome.offsets, self.tasks.topic_ids)
            took = self.clock() - applied - asked
            recorder.stage("commit", took)
            recorder.stage("changelog-ends", asked)
            if held:
                recorder.committed(part.sub.id, took)
            return outcome if held else None
        except BaseException:
            self.commits.abort()
            raise

    def _store(self, outcome: Outcome) -> None:
        """Write what is committed, and go on behind it, whatever fails: nobody sends it again.

        A store whose changelog has no end (it was deleted) keeps its offset: restored from there it comes to the same.
        """
        failures, recorder, clock = [], self.counters.recorder, time.perf_counter
        try:
            for held in outcome.held:
                self.stopping.is_set()  # a sign of life
                if held.store.is_open:
                    try:
                        offset = outcome.ends.get(held.store.changelog) if held.offset is None else held.offset
                        began = clock()
                        held.store.write(held.updates, offset)
                        recorder.stored(held.store.name, len(held.updates), clock() - began)
                    except StreamsException as error:
                        failures.append(error)
        finally:
            self.intake.advance(outcome.offsets)
        if failures:
            raise failures[0]
        self.tasks.note_stored(outcome.offsets)

    def _changelog_ends(self, outcome: Outcome) -> dict[TopicPartition, int]:
        """Where the changelogs end now that all is acknowledged. Those that are gone are left out.

        The commit that follows shows that this thread alone has written them until then. After it that is no longer
        certain: a process that stands still there finds behind its own records those of who has its tasks by now, and
        its store would pass over them.
        """
        written = {held.store.changelog for held in outcome.held if held.offset is None}
        while written:
            try:
                return self.admin.end_offsets(written)
            except BrokerNotAvailableException as error:
                if self.stopping.wait(_RETRY):
                    raise
                _LOGGER.warning("%s", error)
        return {}
