"""Process steps in whole batches, as a thread works them off: Spark's part is played, the rest is the runtime's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import pyarrow as pa
import pytest
from processor_kit import Harness, Read, SourceTimes, application, harness, rows_of
from state_kit import memory_folder

from streams_runtime.api import parse_application
from streams_runtime.batch.columns import ELEMENT
from streams_runtime.batch.stage import Emission, StageInput, StageOutput
from streams_runtime.errors import UserCodeException
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.pipeline.batch_input import BatchInput, OffsetRange, batch_of_nothing
from streams_runtime.processing.batch_processor import BatchProcessor
from streams_runtime.processing.batch_work import Counters, Outcome
from streams_runtime.processing.failures.error_policy import ErrorPolicy
from streams_runtime.processors.user_processors.forwarded_rows import PUNCTUATED
from streams_runtime.topology.declared.build_topology import build_topology
from streams_runtime.topology.nodes.process_node import ProcessNode
from streams_runtime.topology.plan import SubTopology
from streams_runtime.topology.stage_order import stage_order


@dataclass
class Played:
    """Spark's part: rows as they are; behind the step `p` the step `q` takes what it has forwarded, and then a sink."""

    sub: SubTopology
    records: Sequence[Read] = ()
    has_spark: bool = True

    def __post_init__(self) -> None:
        self.stages = stage_order(self.sub)
        self._by_name = {node.name: node for node in self.sub.nodes}

    def run(self, batch: BatchInput) -> StageOutput:
        node = self._by_name["p"]
        assert isinstance(node, ProcessNode)
        rows = rows_of(self.records)
        # A stage that leaves no rows has no further one behind it.
        return StageOutput(inputs=[StageInput(node, rows)] if len(rows) else [])

    def run_after(self, found: StageInput) -> StageOutput:
        rows = found.rows
        if found.node.name == "p" and "q" in self._by_name:
            node = self._by_name["q"]
            assert isinstance(node, ProcessNode)
            size = len(rows)
            given = rows.drop_columns(["seen"]).append_column("op", rows["seen"])
            return StageOutput(inputs=[StageInput(node, given.append_column("n", pa.nulls(size, pa.int64())))])
        texts = [None if each is None else each.encode() for each in rows["seen"].to_pylist()]
        times = [round(each.timestamp() * 1000) for each in rows["_timestamp"].to_pylist()]
        return StageOutput(emissions=[Emission("out", False, rows["_key"].to_pylist(), texts, times)])

    def side(self, batch: BatchInput) -> Played:
        return self

    def record_times(self) -> pa.Table:
        return SourceTimes(self.records).record_times()


@dataclass
class Sent:
    """What a producer is given, by topic."""

    records: dict[str, list[tuple[Any, Any]]] = field(default_factory=dict)

    def send(self, topic: str, keys: Any, values: Any, *_: Any, **__: Any) -> None:
        self.records.setdefault(topic, []).extend(zip(keys, values, strict=True))


@dataclass
class Batches:
    """The batches of one task."""

    made: Harness
    played: Played
    processor: BatchProcessor
    sent: Sent = field(default_factory=Sent)

    @property
    def tasks(self) -> Any:
        return {0: _Task(self.made.stores[0], self.made.processors[0])}

    def apply(self, records: Sequence[Read], batch: BatchInput) -> Outcome:
        self.played.records = records
        result = self.processor.compute(self.played.sub, batch)
        return self.processor.apply(self.played.sub, self.tasks, batch, result, cast(Any, self.sent))

    def run(self, *records: Read) -> Outcome:
        """A batch of these records, committed."""
        last = records[-1].offset + 1
        outcome = self.apply(records, BatchInput((OffsetRange(TopicPartition("a", 0), records[0].offset, last),)))
        return self._stored(outcome)

    def tick(self, now: int) -> Outcome | None:
        """What a thread does when nothing has come: a batch without records if anything is due."""
        self.made.now = now
        if not self.processor.is_due(self.played.sub, self.tasks):
            return None
        return self._stored(self.apply((), batch_of_nothing({TopicPartition("a", 0): 7})))

    def out(self) -> list[str]:
        """What has come to the sink's topic since the last question."""
        return [value.decode() for _, value in self.sent.records.pop("out", []) if value is not None]

    @staticmethod
    def _stored(outcome: Outcome) -> Outcome:
        for held in outcome.held:
            held.store.write(held.updates, None)
        return outcome


@dataclass
class _Task:
    stores: Any
    processors: Any


def batches_of(made: Harness, sub: SubTopology, failed: str = "fail") -> Batches:
    played = Played(sub)
    policies = ErrorPolicy("fail"), ErrorPolicy(failed)
    runners = {sub.id: cast(Any, played)}
    processor = BatchProcessor(runners, policies[0], Counters(), None, policies[1], lambda: made.now)
    return Batches(made, played, processor)


@pytest.fixture
def one() -> Iterator[Batches]:
    with memory_folder() as folder, harness(folder, "processor_classes:Everything") as made:
        yield batches_of(made, made.sub)


@pytest.fixture
def two() -> Iterator[Batches]:
    """`p`, which tells what its records ask for, and behind it `q`, which does that."""
    document = application("processor_classes:Echo", None)
    steps = document["spec"]["topology"]["steps"]
    behind = {**steps[0]["process"], "python": "processor_classes:Everything", "key": "STRING"}
    del steps[0]["process"]["stores"]
    steps.append({"name": "q", "from": "p", "process": behind})
    document["spec"]["topology"]["sinks"] = [{"from": "q", "topic": "out"}]
    (sub,) = build_topology(parse_application(document)).subtopologies
    with memory_folder() as folder, harness(folder, "processor_classes:Echo", None, of=sub) as made:
        yield batches_of(made, sub)


def read(offset: int, time: int, op: str = "get", n: int = 0) -> Read:
    return Read("a", 0, offset, time, "a", (op, n))


def test_what_is_forwarded_goes_on_and_what_is_kept_goes_to_changelogs(one: Batches) -> None:
    outcome = one.run(read(0, 1, "put", 3), read(1, 2))
    assert one.out() == ["0@0 at 1: None", "swept [('a', {'n': 3})]", "0 at 1", "0@1 at 2: None"]
    assert one.sent.records.keys() == {"app-seen-changelog", "app-p-process-store-changelog"}
    assert one.sent.records["app-seen-changelog"] == [(b"a", None)]
    assert outcome.offsets == {TopicPartition("a", 0): 2}


def test_a_batch_of_which_nothing_reaches_the_step_lets_its_time_come_all_the_same(one: Batches) -> None:
    one.run(read(0, 1, "put", 3))
    one.out()
    one.run(Read("a", 0, 1, 30, reaches=False))
    assert one.out() == ["swept []", "0 at 30"]


def test_without_records_a_batch_is_due_only_when_the_clock_says_so(one: Batches) -> None:
    assert one.tick(0) is None
    assert one.tick(49) is None
    outcome = one.tick(50)
    assert outcome is not None
    assert outcome.offsets == {TopicPartition("a", 0): 7}
    assert one.out() == ["tick 50"]
    assert one.made.contents() == {"tick": b'{"n":50}'}
    assert one.tick(99) is None


def test_before_spark_is_there_nothing_is_called_by_the_clock(one: Batches) -> None:
    assert one.tick(0) is None
    one.played.has_spark = False
    assert one.tick(50) is None
    one.played.has_spark = True
    assert one.tick(50) is not None


def test_a_step_behind_takes_what_is_forwarded_in_its_order_and_by_the_clock_too(two: Batches) -> None:
    assert two.tick(0) is None
    two.run(read(0, 1, "put"), read(1, 3))
    assert two.out() == ["0@0 at 1: None", "swept [('a', {'n': None})]", "0 at 1", "0@1 at 3: None"]
    assert two.tick(50) is not None
    assert two.out() == ["tick 50"]


def test_a_failure_that_may_be_left_out_sends_nothing(one: Batches) -> None:
    with memory_folder() as folder, harness(folder, "processor_classes:Failing") as made:
        failing = batches_of(made, made.sub, "continue")
        with pytest.raises(UserCodeException) as failure:
            failing.run(read(0, 1), read(1, 2, "raise"))
        assert failing.sent.records == {}
        assert failure.value.of_a_record
        failing.run(read(0, 1))  # the part before it, once more
        assert failing.sent.records.keys() == {"app-p-process-store-changelog"}


def test_rows_keep_the_order_of_the_record_that_they_came_of(two: Batches) -> None:
    seen: list[Any] = []
    after = two.played.run_after

    def watched(found: StageInput) -> StageOutput:
        seen.append((found.node.name, found.rows[ELEMENT].to_pylist()))
        return after(found)

    two.played.run_after = watched  # type: ignore[method-assign]
    two.run(read(0, 1), read(1, 2))
    assert seen == [
        ("p", [[0], [0]]),
        ("q", [[0, 0], [PUNCTUATED, 0, 0, 1, 0], [PUNCTUATED, 0, 0, 1, 1], [0, 0]]),
    ]
