"""State side of a join: what the table holds for each record's key when the record's turn comes.

Records and the table's changes have one order: by the time that each topic's partition has come to, as Kafka Streams
chooses among partitions; at the same time the table's change comes first. What the batch does not change is as the
store has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

import pyarrow as pa

from streams_runtime.pipeline.encode import Bytes, encoded
from streams_runtime.pipeline.joins import MATCH
from streams_runtime.pipeline.nodes import OUT_VALUE
from streams_runtime.pipeline.runner import Keyed, ToJoin
from streams_runtime.state.store import KeyValueStore, unstamp

Place = tuple[int, int, int, str, int]
"""Partition, time that its topic has come to, rank, topic and offset: sorts by turn. A table is before a stream."""


def matched(join: ToJoin, changes: Keyed | None, stores: Mapping[int, KeyValueStore]) -> ToJoin:
    """The records that go on, each with what the table holds for its key (MATCH); of an inner join those with a match.

    `changes` are the batch's records of the table, nothing of which is in the stores yet.

    Raises ProcessorStateException: a store can't be read.
    """
    partitions: Sequence[int] = join.rows["_partition"].to_pylist()
    keys = encoded(join.rows["_key"])
    held = _held(partitions, keys, stores)
    if changes is None or not len(changes.keys):
        found = [held.get(each) for each in zip(partitions, keys, strict=True)]
    else:
        found = _in_turn(join, partitions, keys, changes, held)
    rows = join.rows.append_column(MATCH, pa.array(found, pa.binary()))
    return ToJoin(join.node, rows if join.node.left else rows.filter(rows[MATCH].is_valid()))


def _held(
    partitions: Sequence[int], keys: Bytes, stores: Mapping[int, KeyValueStore]
) -> dict[tuple[int, bytes | None], bytes | None]:
    """What the stores have for these keys, before the batch."""
    wanted: dict[int, set[bytes]] = {}
    for partition, key in zip(partitions, keys, strict=True):
        if key is not None:
            wanted.setdefault(partition, set()).add(key)
    found: dict[tuple[int, bytes | None], bytes | None] = {}
    for partition, some in wanted.items():
        ordered = sorted(some)
        for key, stored in zip(ordered, stores[partition].get_stored(ordered), strict=True):
            found[partition, key] = None if stored is None else unstamp(stored)[1]
    return found


def _in_turn(
    join: ToJoin,
    partitions: Sequence[int],
    keys: Bytes,
    changes: Keyed,
    held: dict[tuple[int, bytes | None], bytes | None],
) -> list[bytes | None]:
    """The matches of the records while the table changes; `held` follows it."""
    found: list[bytes | None] = [None] * len(partitions)
    changing = changes.partitions.to_pylist()
    changed, values = encoded(changes.keys), changes.columns[OUT_VALUE].to_pylist()
    records = ((place, True, row) for row, place in enumerate(places(partitions, join.rows, 1)))
    turns = enumerate(places(changing, changes.columns, 0))
    updates = ((place, False, row) for row, place in turns if changed[row] is not None)
    for _, is_record, row in sorted(chain(records, updates)):
        if is_record:
            found[row] = held.get((partitions[row], keys[row]))
        else:
            held[changing[row], changed[row]] = values[row]
    return found


def places(partitions: Iterable[int], rows: pa.Table, rank: int) -> list[Place]:
    """The place of each row among those of all topics that are processed together; `rank` decides at the same time."""
    times = rows["_timestamp"].cast(pa.int64()).to_pylist()
    where = list(zip(partitions, rows["_topic"].to_pylist(), rows["_offset"].to_pylist(), times, strict=True))
    come: dict[tuple[int, str], int] = {}
    found: list[Place] = [(0, 0, 0, "", 0)] * len(where)
    for row in sorted(range(len(where)), key=where.__getitem__):
        partition, topic, offset, time = where[row]
        come[partition, topic] = time = max(time, come.get((partition, topic), time))
        found[row] = (partition, time, rank, topic, offset)
    return found
