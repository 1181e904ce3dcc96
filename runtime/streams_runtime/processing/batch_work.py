"""A batch that is being applied: what it sends, holds back until the commit, and counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import ParamSpec

from streams_runtime.batch.drop_reasons import DropReason
from streams_runtime.batch.stage import Emission, StageInput, StoreBatch
from streams_runtime.kafka.producer.batch_producer import BatchProducer
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.metrics.thread_recorder import ThreadRecorder
from streams_runtime.processing.batch_runner import BatchRunner
from streams_runtime.processing.failures.chosen_partitions import check_partitions
from streams_runtime.processing.failures.sink_topics import Sifted, SinkTopics
from streams_runtime.processing.node_names import NodeNames
from streams_runtime.processing.peek_log import Totals
from streams_runtime.processors.contract import ApplyContext
from streams_runtime.processors.merge_inputs import merged_inputs
from streams_runtime.state.open_store import AnyStore
from streams_runtime.state.store import Updates

_P = ParamSpec("_P")
ANY_TOPIC = "*"
"""The topic of measurements of records whose topics nothing declares; no topic is called so."""


@dataclass(slots=True)
class Counters:
    """What a client has done since it started; each thread adds to its own."""

    records_processed: int = 0
    batches: int = 0
    records_dropped: int = 0
    late_records: int = 0
    deserialization_errors: int = 0
    processing_errors: int = 0
    production_errors: int = 0
    dead_letters: int = 0
    peeks: Totals = field(default_factory=dict)
    """Replaced as a whole, never changed: others read it meanwhile."""
    recorder: ThreadRecorder = field(default_factory=ThreadRecorder)
    """The rates and latencies beside them, and which steps have dropped the records."""


@dataclass(frozen=True, slots=True)
class Held:
    """Updates of one store partition that wait for the commit.

    `offset` is the changelog offset that comes next afterwards; None: where the changelog ends once all is produced,
    and before the commit.
    """

    store: AnyStore
    updates: Updates
    offset: int | None


@dataclass(slots=True)
class Outcome:
    """What a batch leaves behind: held updates and the offsets to commit; `ends`: see `Held.offset`."""

    held: list[Held] = field(default_factory=list)
    offsets: dict[TopicPartition, int] = field(default_factory=dict)
    records: int = 0
    ends: Mapping[TopicPartition, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BatchWork:
    """A batch that is being applied: with what, for which tasks (by partition), and what has come of it so far.

    `changes` are those of the batch, by the node that keeps the table; `waiting` what stages begin with, by the node
    that they begin behind. `effects`: what is to be sent and counted once all of it has succeeded; None: at once.
    """

    runner: BatchRunner
    names: NodeNames
    producer: BatchProducer
    outcome: Outcome
    context: ApplyContext
    changes: dict[str, StoreBatch]
    counters: Counters
    sinks: SinkTopics | None
    waiting: dict[str, StageInput] = field(default_factory=dict)
    effects: list[Callable[[], None]] | None = None

    @property
    def recorder(self) -> ThreadRecorder:
        """The counters' own."""
        return self.counters.recorder

    def do(self, effect: Callable[_P, None], *given: _P.args, **named: _P.kwargs) -> None:
        """What is seen outside of the batch."""
        if self.effects is None:
            effect(*given, **named)
        else:
            self.effects.append(partial(effect, *given, **named))

    def finish(self) -> None:
        """All of it has succeeded."""
        for effect in self.effects or ():
            effect()

    def send(self, emission: Emission) -> None:
        """Send records to their topic. Raises FailedProcessingException: a partition is given that it does not have."""
        if emission.chosen_partitions is not None:
            check_partitions(emission, emission.chosen_partitions, self.producer)
        self.do(self._send, emission)

    def _send(self, emission: Emission) -> None:
        if emission.chosen is None:
            self._send_to_topic(emission)
            return
        assert self.sinks is not None, "an expression gives the topics, and nobody knows which there are"
        emissions, sifted = self.sinks.route(emission)
        if sifted.refused:
            self._note_refused(emission.chosen.sink.name, sifted)
        for each in emissions:
            self._send_to_topic(each)

    def _send_to_topic(self, emission: Emission) -> None:
        if self.sinks is not None:
            sifted = self.sinks.sift(emission)
            if sifted.refused:
                self._note_refused(self._sink_of(emission) or emission.topic, sifted)
                emission = sifted.emission
        self._hand_over(emission)

    def _sink_of(self, emission: Emission) -> str | None:
        return self.names.sinks.get(emission.topic) if emission.sink is None else emission.sink

    def _note_refused(self, sink: str, sifted: Sifted) -> None:
        """Records that a sink's topic does not take are counted, and their letters sent."""
        self.counters.production_errors += sifted.refused
        self.recorder.drop(sink, DropReason.REFUSED, sifted.refused)
        if sifted.letters is not None:
            self.counters.dead_letters += len(sifted.letters)
            self._hand_over(sifted.letters)

    def _hand_over(self, emission: Emission) -> None:
        records = (emission.keys, emission.values, emission.timestamps, emission.partition)
        chosen_partitions = None if emission.chosen_partitions is None else emission.chosen_partitions.numbers
        placing = (emission.headers, emission.placed_by, chosen_partitions)
        self.producer.send(emission.topic, *records, *placing)
        # Measurements are by declared topics: those that data name may be any number.
        is_declared = emission.sink is None or emission.topic in self.names.sinks
        topic, sink = emission.topic if is_declared else ANY_TOPIC, self._sink_of(emission)
        self.recorder.sent(topic, sink, emission.keys, emission.values, emission.timestamps)

    def hold(self, store: AnyStore, updates: Updates) -> None:
        """Send what a store will have to its changelog, and keep it until the commit."""
        topic, partition = store.changelog.topic, store.changelog.partition
        self.do(self.producer.send, topic, updates.keys, updates.values, updates.timestamps, partition)
        self.outcome.held.append(Held(store, updates, None))

    def wait(self, stage_input: StageInput) -> None:
        """Keep what a stage begins with until it is that stage's time."""
        self.waiting[stage_input.node.name] = merged_inputs(self.waiting, stage_input)
