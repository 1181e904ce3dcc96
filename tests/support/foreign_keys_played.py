"""A join by a foreign key between topics in memory, without Spark: both sides, cut into batches wherever a test says.

Left rows are JSON {"v": number, "f": key of a right row or null}, right rows {"v": number}. Where a side has a step it
is "v is not divisible by 3". The result is {"v": left number, "w": right number or null}.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson
import pyarrow as pa

from streams_runtime.api import parse_application
from streams_runtime.batch.columns import FOREIGN_KEY, NULL_VALUE, OTHER, OUT_KEY, OUT_TIME, OUT_VALUE
from streams_runtime.batch.snapshot_columns import held_time, held_value
from streams_runtime.batch.stage import StoreBatch
from streams_runtime.kafka.producer.partitioner import partition_for
from streams_runtime.processors.aggregates.store_updates import table_updates
from streams_runtime.processors.contract import ApplyContext
from streams_runtime.processors.joins.join_foreign_key import apply
from streams_runtime.state.shown_values import Shown, as_stored
from streams_runtime.state.store import Updates, unstamp
from streams_runtime.topology.declared.build_topology import build_topology
from streams_runtime.topology.declared.foreign_key_step import ForeignKeySide, foreign_key_sides
from streams_runtime.topology.nodes.foreign_key_nodes import ForeignKeyJoinNode
from streams_runtime.topology.table_parts import TablePart

LEFT, RIGHT = "left", "right"


def document(kind: str = "inner", filtered: bool = False) -> dict[str, Any]:
    """The application; `filtered`: with a where over each side."""
    names = {side: f"some-{side}" if filtered else side for side in (LEFT, RIGHT)}
    sources = [
        {"name": side, "topic": side, "key": {"format": "string"}, "table": {"store": f"{side}-store"}}
        | {"value": {"format": "json", "schema": "v BIGINT, f STRING"}}
        for side in (LEFT, RIGHT)
    ]
    steps: list[dict[str, Any]] = [
        {"name": names[side], "from": side, "where": "v % 3 != 0"} for side in (LEFT, RIGHT) if filtered
    ]
    join = {"table": names[RIGHT], "type": kind, "key": "f", "select": {"w": f"`{names[RIGHT]}`.v"}}
    steps.append({"name": "both", "from": names[LEFT], "join": join, "store": "result"})
    sinks = [{"from": "both", "topic": "out"}]
    return {
        "apiVersion": "streamsoperator.io/v1alpha1",
        "kind": "StreamsApplication",
        "metadata": {"name": "app"},
        "spec": {"topology": {"sources": sources, "steps": steps, "sinks": sinks}},
    }


@dataclass
class Store:
    """A key-value store in memory, one partition of it."""

    name: str
    partition: int
    held: dict[bytes, bytes] = field(default_factory=dict)

    def get_stored(self, keys: Sequence[bytes]) -> list[bytes | None]:
        return [self.held.get(key) for key in keys]

    def scan(self, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        return ((key, unstamp(self.held[key])[1]) for key in sorted(self.held) if start <= key <= end)

    def write(self, updates: Updates) -> None:
        for key, value in zip(updates.keys, updates.stored(), strict=True):
            self.held.pop(key, None)
            self.held |= {} if value is None else {key: value}


@dataclass
class OneTask:
    """A task with stores that are there once they are asked for."""

    partition: int
    stores: dict[str, Store] = field(init=False)

    def __post_init__(self) -> None:
        self.stores = _Stores(self.partition)

    def key_value_store(self, name: str) -> Store:
        return self.stores[name]


class _Stores(dict[str, Store]):
    def __init__(self, partition: int) -> None:
        super().__init__()
        self._partition = partition

    def __missing__(self, name: str) -> Store:
        self[name] = Store(name, self._partition)
        return self[name]


class PlayedCompiler:
    """Spark's part in plain Python."""

    def shown_by(self, table: str) -> Shown:
        return as_stored

    def foreign_keys(self, node: ForeignKeyJoinNode, side: TablePart, snapshots: pa.Table) -> pa.Table:
        rows = _rows(side, snapshots)
        keys = pa.array([row and row[0]["f"] for row in rows], pa.string())
        return pa.table({FOREIGN_KEY: keys, NULL_VALUE: [row is None for row in rows]})

    def rows_sent(self, side: TablePart, snapshots: pa.Table) -> pa.Table:
        rows = _rows(side, snapshots)
        texts = [None if row is None else orjson.dumps(row[0]).decode() for row in rows]
        times = [None if row is None else row[1] for row in rows]
        return pa.table({OUT_VALUE: pa.array(texts, pa.string()), OUT_TIME: pa.array(times, pa.int64())})

    def joined_by_foreign_key(self, node: ForeignKeyJoinNode, side: TablePart, snapshots: pa.Table) -> pa.Table:
        found = []
        for row, other in zip(_rows(side, snapshots), snapshots[OTHER].to_pylist(), strict=True):
            there = row is not None and (other is not None or node.type == "left")
            right = None if other is None else orjson.loads(other)["v"]
            found.append({"v": row[0]["v"], "w": right} if row is not None and there else None)
        texts = [None if each is None else orjson.dumps(each).decode() for each in found]
        return pa.table({OUT_VALUE: pa.array(texts, pa.string())})


def _rows(side: TablePart, snapshots: pa.Table) -> list[tuple[Any, int] | None]:
    held = zip(snapshots[held_value(0)].to_pylist(), snapshots[held_time(0)].cast(pa.int64()).to_pylist(), strict=True)
    rows = [None if value is None else (orjson.loads(value), time // 1000) for value, time in held]
    return [None if row is None or (side.steps and row[0]["v"] % 3 == 0) else row for row in rows]


@dataclass
class Topic:
    """A topic's records by partition, (offset, key, value, time), and up to where they are committed."""

    name: str
    logs: list[list[tuple[bytes | None, bytes | None, int]]]
    committed: list[int]

    @classmethod
    def of(cls, name: str, partitions: int) -> Topic:
        return cls(name, [[] for _ in range(partitions)], [0] * partitions)

    def add(self, key: bytes | None, value: bytes | None, time: int, partition: int | None = None) -> None:
        where = partition_for(key or b"", len(self.logs)) if partition is None else partition
        self.logs[where].append((key, value, time))

    def take(self, limit: int) -> list[tuple[int, int, bytes | None, bytes | None, int]]:
        """Partition, offset and the rest of the records that come next, at most `limit` of each partition."""
        return [
            (partition, offset, *log[offset])
            for partition, log in enumerate(self.logs)
            for offset in range(self.committed[partition], min(len(log), self.committed[partition] + limit))
        ]

    def commit(self, taken: Sequence[tuple[int, int, bytes | None, bytes | None, int]]) -> None:
        for partition, offset, *_ in taken:
            self.committed[partition] = max(self.committed[partition], offset + 1)


class Played:
    """Both sides of the join, each with its own number of partitions."""

    def __init__(self, kind: str, filtered: bool, partitions: tuple[int, int]) -> None:
        topology = build_topology(parse_application(document(kind, filtered)))
        (self.sub, *_) = topology.subtopologies
        sides = [side for sub in topology.subtopologies for side in foreign_key_sides(sub)]
        self.sides: dict[str, ForeignKeySide] = {
            LEFT if isinstance(side.node, ForeignKeyJoinNode) else RIGHT: side for side in sides
        }
        counts = dict(zip((LEFT, RIGHT), partitions, strict=True))
        self.tasks = {side: {number: OneTask(number) for number in range(counts[side])} for side in counts}
        self.tables = {side: Topic.of(side, counts[side]) for side in counts}
        node = self.sides[LEFT].node
        assert isinstance(node, ForeignKeyJoinNode)
        # What a side reads of the other one.
        self.told = {LEFT: Topic.of("responses", counts[LEFT]), RIGHT: Topic.of(node.registrations, counts[RIGHT])}
        self.sink: dict[bytes, tuple[Any, int]] = {}  # the last row, or None, and its time
        self.crashed = False
        self.dropped = 0

    def batch(self, side: str, changes: int, messages: int, crash: bool = False) -> bool:
        """A batch of a side, of so many records of each partition of both topics; whether there were any.

        With `crash` the side dies after its output is written and before its offsets are committed: its stores come
        back from their changelogs, and the batch is read again.
        """
        changed, arrived = self.tables[side].take(changes), self.told[side].take(messages)
        if not changed and not arrived:
            return False
        this, tasks = self.sides[side], self.tasks[side]
        keyed = _keyed(this, changed)
        given = {this.table.sources[0].name: keyed}, {this.node.incoming: _arrived(self.told[side].name, arrived)}
        stores = {number: task.stores for number, task in tasks.items()}
        context = ApplyContext(PlayedCompiler(), self.sub, stores, {}, *given, {})  # type: ignore[arg-type]
        done = apply(this, context)
        self.dropped += sum(done.dropped.values())
        other = self.told[RIGHT if side == LEFT else LEFT]
        for emission in done.emissions:
            for record in zip(emission.keys, emission.values, emission.timestamps, strict=True):
                other.add(*record, partition=emission.partition)
        if done.changes is not None:
            told = (done.changes.columns[OUT_VALUE].to_pylist(), done.changes.timestamps.to_pylist())
            for key, row, time in zip(done.changes.keys.to_pylist(), *told, strict=True):
                # After a crash the store may be ahead of what is read again, and so may be what it deletes.
                there = self.sink.get(key, (None, 0))[0] is not None
                assert row is not None or there or self.crashed, "a deletion of nothing"
                self.sink[key] = (None if row is None else orjson.loads(row), time)
        for store, updates in done.updates:
            store.write(updates)  # type: ignore[call-arg]
        self.crashed = self.crashed or crash
        if not crash:
            for partition, updates in table_updates(keyed).items():
                tasks[partition].key_value_store(f"{side}-store").write(updates)
            self.tables[side].commit(changed)
            self.told[side].commit(arrived)
        return True

    def settle(self) -> None:
        """Work until nothing is left."""
        while self.batch(LEFT, 99, 99) or self.batch(RIGHT, 99, 99):
            pass

    def stored(self) -> dict[tuple[str, None], tuple[Any, int]]:
        """The same with times, as the oracle tells a store."""
        stores = (task.key_value_store("result") for task in self.tasks[LEFT].values())
        found = [(key, *unstamp(value)) for store in stores for key, value in store.held.items()]
        return {(key.decode(), None): (orjson.loads(value), time) for key, time, value in found}

    def result(self) -> dict[bytes, Any]:
        """What the stores of the result hold."""
        stores = (task.key_value_store("result") for task in self.tasks[LEFT].values())
        return {key: orjson.loads(unstamp(value)[1]) for store in stores for key, value in store.held.items()}

    def subscriptions(self) -> set[bytes]:
        """The keys of all subscriptions."""
        stores = (task.key_value_store("both-subscription-store") for task in self.tasks[RIGHT].values())
        return {key for store in stores for key in store.held}


def _keyed(side: ForeignKeySide, records: Sequence[tuple[int, int, bytes | None, bytes | None, int]]) -> StoreBatch:
    source = side.table.sources[0]
    partitions, offsets, keys, values, times = zip(*records, strict=True) if records else ((),) * 5
    columns = {
        OUT_VALUE: pa.array(values, pa.binary()),
        "_topic": pa.array([source.topic] * len(keys), pa.string()),
        "_offset": pa.array(offsets, pa.int64()),
        "_timestamp": pa.array([time * 1000 for time in times], pa.timestamp("us", tz="UTC")),
    }
    whole = (pa.array(partitions, pa.int32()), pa.array(keys, pa.binary()), pa.array(times, pa.int64()))
    return StoreBatch(source, *(pa.chunked_array([each]) for each in whole), pa.table(columns))


def _arrived(topic: str, records: Sequence[tuple[int, int, bytes | None, bytes | None, int]]) -> pa.Table:
    partitions, offsets, keys, values, times = zip(*records, strict=True) if records else ((),) * 5
    return pa.table(
        {
            "_partition": pa.array(partitions, pa.int32()),
            OUT_KEY: pa.array(keys, pa.binary()),
            OUT_VALUE: pa.array(values, pa.binary()),
            OUT_TIME: pa.array(times, pa.int64()),
            "_topic": pa.array([topic] * len(keys), pa.string()),
            "_offset": pa.array(offsets, pa.int64()),
            "_timestamp": pa.array([time * 1000 for time in times], pa.timestamp("us", tz="UTC")),
        }
    )
