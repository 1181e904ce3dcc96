"""Batches of a process step over real stores, and what Kafka Streams' Processor API would make of the same records."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, cast

import pyarrow as pa

from streams_runtime.api import parse_application
from streams_runtime.batch.columns import ORDER_TIME
from streams_runtime.batch.stage import StageInput
from streams_runtime.processors.contract import Applied, ApplyContext
from streams_runtime.processors.user_processors.process_records import apply
from streams_runtime.processors.user_processors.processor_records import (
    ProcessorRecord,
    PunctuationType,
    RecordMetadata,
)
from streams_runtime.processors.user_processors.processor_task import ProcessorTask
from streams_runtime.state.open_store import open_store
from streams_runtime.state.store import KeyValueStore
from streams_runtime.topology.declared.build_topology import build_topology
from streams_runtime.topology.nodes.process_node import ProcessNode
from streams_runtime.topology.plan import SubTopology

MICROSECONDS = pa.timestamp("us", tz="UTC")


@dataclass(frozen=True, slots=True)
class Read:
    """A record of a topic; without `reaches` a step before has left it out."""

    topic: str
    partition: int
    offset: int
    time: int
    key: str | None = "a"
    value: tuple[str, int] | None = ("get", 0)
    reaches: bool = True


def application(
    reference: str,
    key: str | None = "STRING",
    topics: Sequence[str] = ("a",),
    leaves_out: bool = False,
    outputs: Sequence[str] = (),
    window: dict[str, str] | None = None,
    session: dict[str, str] | None = None,
) -> dict[str, Any]:
    """A resource with one process step over these topics, behind one that `leaves_out` records or not."""
    stores: dict[str, Any] = {"seen": {"key": "STRING", "value": "n BIGINT"}}
    if window is not None:
        stores["windows"] = {"key": "STRING", "value": "n BIGINT", "window": window}
    if session is not None:
        stores["sessions"] = {"key": "STRING", "value": "n BIGINT", "session": session}
    process = {"python": reference, "value": "seen STRING", "stores": stores} | ({} if key is None else {"key": key})
    process |= {"outputs": [*outputs]} if outputs else {}
    value = {"format": "json", "schema": "op STRING, n BIGINT"}
    sources = [{"name": each, "topic": each, "key": {"format": "string"}, "value": value} for each in topics]
    merge = [{"name": "both", "merge": list(topics)}] if len(topics) > 1 else []
    before = "both" if merge else topics[0]
    where = [{"name": "some", "from": before, "where": "op is null or op != 'no'"}] if leaves_out else []
    steps = [*merge, {"name": "p", "from": "some" if where else before, "process": process}, *where]
    named = [f"p.{output}" for output in outputs] or ["p"]
    sinks = [{"from": name, "topic": name.replace("p", "out")} for name in named]
    return {
        "apiVersion": "streamsoperator.io/v1alpha1",
        "kind": "StreamsApplication",
        "metadata": {"name": "app"},
        "spec": {"topology": {"sources": sources, "steps": steps, "sinks": sinks}},
    }


def step_of(
    reference: str, key: str | None = "STRING", topics: Sequence[str] = ("a",), **declared: Any
) -> tuple[SubTopology, ProcessNode]:
    """Its sub-topology and node."""
    return _planned(json.dumps(application(reference, key, topics, **declared)))


@cache
def _planned(document: str) -> tuple[SubTopology, ProcessNode]:
    """Of the same application once: generated tests ask for it with each example."""
    (sub,) = build_topology(parse_application(json.loads(document))).subtopologies
    return sub, next(node for node in sub.nodes if isinstance(node, ProcessNode))


@dataclass(frozen=True, slots=True)
class SourceTimes:
    """As much of a batch's Spark side as a process step asks for."""

    records: Sequence[Read]

    asked: list[int] = field(default_factory=list)
    """How many records it was asked about, each time."""

    def record_times(self) -> pa.Table:
        self.asked.append(len(self.records))
        return pa.table(
            {
                "_topic": pa.array([each.topic for each in self.records], pa.string()),
                "_partition": pa.array([each.partition for each in self.records], pa.int32()),
                "_offset": pa.array([each.offset for each in self.records], pa.int64()),
                ORDER_TIME: pa.array([each.time * 1000 for each in self.records], MICROSECONDS),
            }
        )


def rows_of(records: Sequence[Read], by_time: bool = False) -> pa.Table:
    """What Spark gives of those that reach the step."""
    given = [each for each in records if each.reaches]
    columns = {
        "_key": pa.array([each.key for each in given], pa.string()),
        "_timestamp": pa.array([each.time * 1000 for each in given], MICROSECONDS),
        "_topic": pa.array([each.topic for each in given], pa.string()),
        "_partition": pa.array([each.partition for each in given], pa.int32()),
        "_offset": pa.array([each.offset for each in given], pa.int64()),
        "_headers": pa.nulls(len(given), pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
        "_null": pa.array([each.value is None for each in given], pa.bool_()),
        "op": pa.array([None if each.value is None else each.value[0] for each in given], pa.string()),
        "n": pa.array([None if each.value is None else each.value[1] for each in given], pa.int64()),
    }
    if by_time:
        columns[ORDER_TIME] = columns["_timestamp"]
    return pa.table(columns)


@dataclass(slots=True)
class Harness:
    """The tasks of one process step; `now` is the machine's clock, in ms."""

    sub: SubTopology
    node: ProcessNode
    stores: dict[int, dict[str, KeyValueStore]]
    now: int = 0
    processors: dict[int, dict[str, ProcessorTask]] = field(default_factory=dict)
    asked: list[int] = field(default_factory=list)
    """About how many records Spark was asked, batch by batch."""
    rows: list[dict[str, Any]] = field(default_factory=list)
    """All that was forwarded and committed, in order."""

    def __post_init__(self) -> None:
        self.processors = {partition: {} for partition in self.stores}

    def apply(self, records: Sequence[Read], is_tick: bool = False) -> Applied:
        """One batch, of which nothing is committed."""
        context = self.context(records, is_tick)
        # Spark gives rows in no order.
        rows = pa.table({}) if is_tick else rows_of([*reversed(records)], len(self.sub.source_topics) > 1)
        applied = apply(StageInput(self.node, rows), context)
        self.asked += context.spark.asked  # type: ignore[attr-defined]
        return applied

    def context(self, records: Sequence[Read] = (), is_tick: bool = False) -> ApplyContext:
        spark: Any = SourceTimes(records)
        return ApplyContext(
            spark,
            self.sub,
            self.stores,
            {},
            {},
            {},
            {},
            processors=self.processors,
            clock=lambda: self.now,
            is_tick=is_tick,
        )

    def run(self, records: Sequence[Read], is_tick: bool = False) -> list[dict[str, Any]]:
        """One batch, committed; the rows that it forwards."""
        applied = self.apply(records, is_tick)
        for store, updates in applied.updates:
            store.write(updates, None)
        assert applied.rows is not None
        found = applied.rows.to_pylist()
        self.rows += found
        return found

    def restart(self) -> None:
        """The tasks are closed, and go on elsewhere with what their stores have."""
        for tasks in self.processors.values():
            for task in tasks.values():
                task.close()
        self.processors = {partition: {} for partition in self.stores}

    def contents(self, partition: int = 0) -> dict[str, bytes]:
        """What the declared store has."""
        return {key.decode(): value for key, value in self.stores[partition]["seen"].scan(None, None)}

    def told(self, partition: int = 0) -> list[tuple[Any, ...]]:
        """Key, value, time (ms) and headers of what a partition's task has forwarded."""
        return [
            (
                each["_key"],
                None if each["_null"] else each["seen"],
                round(each["_timestamp"].timestamp() * 1000),
                tuple((header["key"], header["value"]) for header in each["_headers"] or ()),
            )
            for each in self.rows
            if each["_partition"] == partition
        ]


@contextmanager
def harness(
    folder: Path,
    reference: str,
    key: str | None = "STRING",
    topics: Sequence[str] = ("a",),
    partitions: int = 1,
    of: SubTopology | None = None,
    **declared: Any,
) -> Iterator[Harness]:
    """Tasks with empty stores in a folder; `of`: of another sub-topology than that of the one step.

    Unless a step before it `leaves_out` records, the step never asks Spark when they were.
    """
    sub, node = step_of(reference, key, topics, **{"leaves_out": True, **declared})
    sub = sub if of is None else of
    with ExitStack() as undo:
        stores: dict[int, dict[str, KeyValueStore]] = {}
        for partition in range(partitions):
            stores[partition] = {}
            for spec in sub.stores:
                store = cast(KeyValueStore, open_store(spec, partition, folder / f"{spec.name}-{partition}"))
                undo.callback(store.close)
                stores[partition][spec.name] = store
        made = Harness(sub, node, stores)
        undo.callback(made.restart)
        yield made


class ModelStore:
    """A key-value store of texts as a mapping."""

    def __init__(self) -> None:
        self.pairs: dict[str, dict[str, Any]] = {}

    def get(self, key: str) -> Any:
        return self.pairs.get(key)

    def put(self, key: str, value: dict[str, Any] | None) -> None:
        if value is None:
            self.pairs.pop(key, None)
        else:
            self.pairs[key] = dict(value)

    def put_if_absent(self, key: str, value: dict[str, Any]) -> Any:
        before = self.get(key)
        if before is None:
            self.put(key, value)
        return before

    def delete(self, key: str) -> Any:
        return self.pairs.pop(key, None)

    def range(self, start: str, end: str, *, reverse: bool = False) -> Iterator[tuple[str, Any]]:
        return iter([(key, value) for key, value in self._sorted(reverse) if start <= key <= end])

    def all(self, *, reverse: bool = False) -> Iterator[tuple[str, Any]]:
        return iter(self._sorted(reverse))

    def prefix_scan(self, prefix: str) -> Iterator[tuple[str, Any]]:
        return iter([(key, value) for key, value in self._sorted(False) if key.startswith(prefix)])

    def _sorted(self, reverse: bool) -> list[tuple[str, Any]]:
        return sorted(self.pairs.items(), reverse=reverse)


@dataclass(slots=True)
class _ModelSchedule:
    every: int
    callback: Callable[[int], object]
    next: int = 0
    cancelled: bool = False

    def cancel(self) -> None:
        self.cancelled = True


class Model:
    """A StreamTask with one processor: each record, and then the punctuators whose time has come (stream time alone).

    Written after StreamTask, PartitionGroup and PunctuationSchedule#next, record by record.
    """

    task_id = "0_0"

    def __init__(self, made: Any) -> None:
        self._store, self._schedules, self._stream_time = ModelStore(), list[_ModelSchedule](), -1
        self._record: ProcessorRecord | None = None
        self._metadata: RecordMetadata | None = None
        self._time = 0
        self.told: list[tuple[Any, ...]] = []
        self._made = made
        made.init(self)

    @property
    def pairs(self) -> dict[str, dict[str, Any]]:
        """What the store has."""
        return self._store.pairs

    def read(self, each: Read) -> None:
        """The task takes one record."""
        self._stream_time = max(self._stream_time, each.time)
        if each.reaches:
            value = None if each.value is None else {"op": each.value[0], "n": each.value[1]}
            self._record = ProcessorRecord(each.key, value, each.time)
            self._metadata = RecordMetadata(each.topic, each.partition, each.offset)
            self._time = each.time
            self._made.process(self._record)
            self._record = self._metadata = None
        while due := [each for each in self._schedules if not each.cancelled and each.next <= self._stream_time]:
            first = min(due, key=lambda each: each.next)
            self._time = self._stream_time
            first.callback(self._stream_time)
            following = first.next + first.every
            if self._stream_time >= following:
                missed = (self._stream_time - first.next) // first.every
                following = first.next + (missed + 1) * first.every
            first.next = following

    def state_store(self, name: str) -> ModelStore:
        assert name == "seen"
        return self._store

    def schedule(self, every: Any, type: PunctuationType, callback: Callable[[int], object]) -> _ModelSchedule:
        made = _ModelSchedule(round(every.total_seconds() * 1000), callback)
        if type is PunctuationType.STREAM_TIME:
            self._schedules.append(made)
        return made

    def forward(self, value: Any, **given: Any) -> None:
        record = value if isinstance(value, ProcessorRecord) else None
        if record is None:
            own = None if self._record is None else self._record.key
            key = given.get("key", own)
            record = ProcessorRecord(key, value, given.get("timestamp", self._time))
        record = replace(record, value=record.value)
        seen = None if record.value is None else record.value["seen"]
        self.told.append((record.key, seen, record.timestamp, record.headers))

    def record_metadata(self) -> RecordMetadata | None:
        return self._metadata

    def current_stream_time_ms(self) -> int:
        return self._stream_time
