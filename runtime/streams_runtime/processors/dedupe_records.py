"""State side of a dedupe: which records of a batch are the first ones of their ids, and what the store will hold.

Records of a partition have one order: by the time that each topic's partition has come to, then by topic and offset; of
one topic, that of the offsets.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from streams_runtime.batch.columns import ID, OUT_TIME
from streams_runtime.batch.drop_reasons import DropReason
from streams_runtime.batch.encode import encoded
from streams_runtime.batch.record_order import ordinals
from streams_runtime.batch.stage import StageInput
from streams_runtime.processors.contract import Applied, ApplyContext
from streams_runtime.processors.segment_buffer import SegmentBuffer, buffered_in, spans_of
from streams_runtime.state.open_store import AnyStore
from streams_runtime.state.store import Updates
from streams_runtime.state.window_store import DedupeStore
from streams_runtime.topology.nodes.dedupe_node import DedupeNode

NOT_REMEMBERED = "they were not remembered, so that duplicates of them go on too"
_TIME_BYTES = 8

Timed = tuple[bytes | None, int]
"""A record's id and its time in ms."""


@dataclass(slots=True)
class Deduped:
    """What a batch comes to: the records that go on, what the stores will hold, and how many records were which.

    `late`: how many came too late to be remembered; they went on all the same.
    """

    passed: pa.Table
    updates: list[tuple[AnyStore, Updates]] = field(default_factory=list)
    duplicates: int = 0
    late: int = 0


def apply(given: StageInput, context: ApplyContext) -> Applied:
    """The records that are no duplicates, and what the store will hold."""
    found = deduped(given, context.stores)
    return Applied(
        updates=found.updates,
        rows=found.passed,
        dropped={DropReason.DUPLICATE: found.duplicates},
        late=found.late,
        late_outcome=NOT_REMEMBERED,
        late_reason=DropReason.NOT_KEPT,
    )


def deduped(found: StageInput, stores: Mapping[int, Mapping[str, AnyStore]]) -> Deduped:
    """Leave out a batch's duplicates, by what the stores hold (by partition, and name); writes nothing.

    Raises:
        ProcessorStateException: a store can't be read.
    """
    node, rows = found.node, found.rows
    assert isinstance(node, DedupeNode)
    timed: list[Timed] = list(zip(encoded(rows[ID]), rows[OUT_TIME].to_pylist(), strict=True))
    result = Deduped(rows)
    duplicates: set[int] = set()
    for partition, in_order in _in_turn(rows).items():
        store = stores[partition][node.store]
        assert isinstance(store, DedupeStore)
        records = [timed[row] for row in in_order]
        kept = buffered_in(store, spans_of((each, time) for each, time in records if each is not None), node.within)
        is_first = firsts(kept, node.within, records)
        duplicates |= {row for row, first in zip(in_order, is_first, strict=True) if not first}
        result.late += kept.late
        if kept.new:
            result.updates.append((store, kept.updates()))
    goes_on = pa.array([row not in duplicates for row in range(len(timed))], pa.bool_())
    result.passed = rows.filter(goes_on).drop_columns([ID, OUT_TIME])
    result.duplicates = len(duplicates)
    return result


def firsts(kept: SegmentBuffer, within: int, records: Sequence[Timed]) -> list[bool]:
    """Which of a partition's records, in their order, are no duplicates; `kept` follows.

    A record without an id is none. One that comes too late to be remembered is none either, unless a first that still
    is lies close enough.
    """
    found = []
    for key, time in records:
        duplicate = key is not None and any(True for _ in kept.between(key, time - within, time + within))
        found.append(not duplicate)
        if key is not None and not duplicate:
            kept.put(key, time, time.to_bytes(_TIME_BYTES, "big"))
    return found


def _in_turn(rows: pa.Table) -> dict[int, list[int]]:
    """The rows of each partition in the order of its records."""
    partitions: Sequence[int] = rows["_partition"].to_pylist()
    in_order = ordinals(partitions, rows)
    found: defaultdict[int, list[int]] = defaultdict(list)
    # What is the same in all of that is one record's, several times: a flatMap's, in the order of the rows.
    for row in sorted(range(len(in_order)), key=in_order.__getitem__):
        found[partitions[row]].append(row)
    return found
