"""State side of a join of two streams: what the stores hold of a batch's keys, and what they will hold.

Records of both sides have one order: by the time that each topic's partition has come to, then by topic and offset; a
record that is on both sides is first on the one to which its way is the earlier (topology.fork_paths), else on the
left.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from streams_runtime.batch.columns import (
    ELEMENT,
    FROM_OFFSET,
    FROM_TOPIC,
    LEFT,
    NULL_VALUE,
    ORDER_TIME,
    OUT_TIME,
    OUT_VALUE,
    RIGHT,
    SIDE,
)
from streams_runtime.batch.drop_reasons import DropReason
from streams_runtime.batch.encode import Bytes, encoded
from streams_runtime.batch.record_order import fork_paths_of, ordinals
from streams_runtime.batch.stage import StageInput
from streams_runtime.processors.contract import Applied, ApplyContext
from streams_runtime.processors.joins.join_order import Alone, PartitionJoin, Result
from streams_runtime.processors.segment_buffer import NO_TIME, SegmentBuffer, buffered_in, spans_of
from streams_runtime.state.open_store import AnyStore
from streams_runtime.state.serdes import Serde
from streams_runtime.state.store import KeyValueStore, Updates, unstamp
from streams_runtime.state.unjoined_records import (
    STREAM_TIME,
    Ordinal,
    first_key_after,
    joined_values,
    ordinal_of,
    split_values,
    unjoined_key,
)
from streams_runtime.state.window_store import JoinStore
from streams_runtime.topology.nodes.stream_join_node import Side, StreamJoinNode

NOT_KEPT = "they were not kept for the other side; a longer grace of the join keeps them"
_TIME_BYTES = 8


@dataclass(frozen=True, slots=True)
class Record:
    """A record of one of the sides, and the row that it is of the batch. Time in ms."""

    row: int
    side: Side
    key: bytes | None
    time: int
    value: bytes | None


@dataclass(slots=True)
class JoinedStreams:
    """What a batch comes to: the results, what the stores will hold, and how many records were dropped or late.

    `keyless`: how many of those that were dropped have no key.
    """

    results: pa.Table
    updates: list[tuple[AnyStore, Updates]] = field(default_factory=list)
    dropped: int = 0
    keyless: int = 0
    late: int = 0


def apply(given: StageInput, context: ApplyContext) -> Applied:
    """The results of a join of streams, and what its stores will hold."""
    joined = join_streams(given, context.stores, context.spark.key_serde(given.node.name))
    return Applied(
        updates=joined.updates,
        rows=joined.results,
        dropped={DropReason.NULL_KEY: joined.keyless, DropReason.NULL_VALUE: joined.dropped - joined.keyless},
        late=joined.late,
        late_outcome=NOT_KEPT,
        late_reason=DropReason.NOT_KEPT,
    )


def join_streams(join: StageInput, stores: Mapping[int, Mapping[str, AnyStore]], keys: Serde) -> JoinedStreams:
    """Join a batch's records with each other and with what the stores hold (by partition, and name); writes nothing.

    `keys` is the keys' serde.

    Raises:
        ProcessorStateException: a store can't be read.
    """
    node = join.node
    assert isinstance(node, StreamJoinNode)
    joined = JoinedStreams(join.rows)
    results: list[Result] = []
    partitions: list[int] = []
    for partition, records in _in_turn(join.rows).items():
        held = _JoinPartition.of(node, stores[partition])
        joining = held.loaded(records)
        for each in records:
            joining.take(each.row, each.side, each.key, each.time, each.value)
        results += joining.results
        partitions += [partition] * len(joining.results)
        joined.updates += held.updates(joining)
        joined.dropped += joining.dropped
        joined.keyless += joining.keyless
        joined.late += sum(kept.late for kept in joining.sides.values())
    joined.results = _table(join.rows, results, partitions, keys)
    return joined


@dataclass(frozen=True, slots=True)
class _JoinPartition:
    """One partition of a join's stores."""

    node: StreamJoinNode
    sides: Mapping[Side, JoinStore]
    alone: KeyValueStore | None

    @classmethod
    def of(cls, node: StreamJoinNode, stores: Mapping[str, AnyStore]) -> _JoinPartition:
        """The stores of the join among those of a task."""
        sides = {}
        for side in Side:
            store = stores[node.store_of(side)]
            assert isinstance(store, JoinStore)
            sides[side] = store
        alone = None if node.alone_store is None else stores[node.alone_store]
        assert alone is None or isinstance(alone, KeyValueStore)
        return cls(node, sides, alone)

    def loaded(self, records: Sequence[Record]) -> PartitionJoin:
        """All that these records may meet, or close."""
        usable = ((each.key, each.time) for each in records if each.key is not None and each.value is not None)
        spans, reach = spans_of(usable), max(self.node.before, self.node.after)
        # Of its own side too: a record gets another number than one with its key and time.
        sides = {side: buffered_in(store, spans, reach) for side, store in self.sides.items()}
        return PartitionJoin(self.node, sides, self._loaded_alone(self.alone, records, sides) if self.alone else None)

    def _loaded_alone(
        self, store: KeyValueStore, records: Sequence[Record], sides: Mapping[Side, SegmentBuffer]
    ) -> Alone:
        """Places that a record may join, those of records that were kept, and those that may be passed on."""
        stream_time = store.get(STREAM_TIME)
        alone = Alone(NO_TIME if stream_time is None else int.from_bytes(stream_time, "big"))
        touched = {
            (time, side, key)
            for side, kept in sides.items()
            if self.node.keeps_alone(side)
            for key, found in kept.records.items()
            for time, *_ in found
        }
        touched |= {
            (each.time, each.side, each.key)
            for each in records
            if each.key is not None and each.value is not None and self.node.keeps_alone(each.side)
        }
        wanted = sorted(touched)
        stored = store.get_stored([unjoined_key(place) for place in wanted])
        alone.held = {
            place: split_values(unstamp(value)[1]) for place, value in zip(wanted, stored, strict=True) if value
        }
        latest = max(alone.stream_time, *(each.time for each in records))
        passed = min(self.node.ahead(side) for side in Side if self.node.keeps_alone(side)) + self.node.grace
        if latest - passed > 0:
            closing = {
                ordinal_of(data): split_values(value)
                for data, value in store.scan(None, first_key_after(latest - passed - 1))
            }
            alone.held |= closing
            alone.wait_for(closing)
        return alone

    def updates(self, joining: PartitionJoin) -> list[tuple[AnyStore, Updates]]:
        """What the batch has changed."""
        found: list[tuple[AnyStore, Updates]] = []
        for side, store in self.sides.items():
            if joining.sides[side].new:
                found.append((store, joining.sides[side].updates()))
        if self.alone is not None and joining.alone is not None:
            found.append((self.alone, _alone_updates(joining.alone)))
        return found


def _alone_updates(alone: Alone) -> Updates:
    changed: list[Ordinal] = sorted(alone.changed)
    values: Bytes = [joined_values(alone.held[place]) if place in alone.held else None for place in changed]
    return Updates(
        [*(unjoined_key(place) for place in changed), STREAM_TIME],
        [*values, alone.stream_time.to_bytes(_TIME_BYTES, "big")],
        [*(time for time, *_ in changed), alone.stream_time],
    )


def _in_turn(rows: pa.Table) -> dict[int, list[Record]]:
    """Each partition's records in their order."""
    partitions: Sequence[int] = rows["_partition"].to_pylist()
    keys, values = encoded(rows["_key"]), encoded(rows[OUT_VALUE])
    times, sides = rows[OUT_TIME].to_pylist(), [Side(side) for side in rows[SIDE].to_pylist()]
    sort_keys = list(zip(ordinals(partitions, rows), fork_paths_of(rows), [-side for side in sides], strict=True))
    found: defaultdict[int, list[Record]] = defaultdict(list)
    # What is the same in all of that is one record's, several times: a flatMap's, in the order of the rows.
    for row in sorted(range(len(sort_keys)), key=sort_keys.__getitem__):
        found[partitions[row]].append(Record(row, sides[row], keys[row], times[row], values[row]))
    return found


def _table(rows: pa.Table, results: Sequence[Result], partitions: Sequence[int], keys: Serde) -> pa.Table:
    """The results as the next stage reads them: their order stands for the offset.

    A result has the headers of the record that brought it about; one whose window has closed has none.
    """
    decoded = {key: keys.decode(key) for key in {each.key for each in results} if key is not None}
    times = pa.array([each.time for each in results], pa.timestamp("ms", tz="UTC"))
    headers = rows["_headers"].take(_row_numbers(None if each.alone else each.row for each in results))
    return pa.table(
        {
            "_key": pa.array([None if each.key is None else decoded[each.key] for each in results], rows["_key"].type),
            "_timestamp": times.cast(pa.timestamp("us", tz="UTC")),
            "_topic": pa.nulls(len(results), pa.string()),
            "_partition": pa.array(partitions, pa.int32()),
            "_offset": pa.array(range(len(results)), pa.int64()),
            "_headers": headers,
            NULL_VALUE: pa.repeat(False, len(results)),
            LEFT: pa.array([each.left for each in results], pa.binary()).cast(pa.string()),
            RIGHT: pa.array([each.right for each in results], pa.binary()).cast(pa.string()),
            **_came_of(rows, results),
        }
    )


def _came_of(rows: pa.Table, results: Sequence[Result]) -> dict[str, pa.ChunkedArray | pa.Array]:
    """The places of the records that brought the results about, if places are kept."""
    if FROM_TOPIC not in rows.column_names:
        return {}
    which = _row_numbers(each.row for each in results)
    kept = {name: rows[name].take(which) for name in (FROM_TOPIC, FROM_OFFSET, ORDER_TIME) if name in rows.column_names}
    numbered = [[*way, number] for number, way in enumerate(fork_paths_of(rows.take(which)))]
    return kept | {ELEMENT: pa.array(numbered, pa.list_(pa.int32()))}


def _row_numbers(rows: Iterable[int | None]) -> pa.Array:
    return pa.array(list(rows), pa.int64())
