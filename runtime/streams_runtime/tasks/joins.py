"""State side of a join: what the table holds for each record's key when the record's turn comes.

Records and the table's changes have one order (tasks.places). What the batch does not change is as the store has it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain

import pyarrow as pa

from streams_runtime.pipeline.encode import Bytes, encoded
from streams_runtime.pipeline.joins import MATCH
from streams_runtime.pipeline.nodes import OUT_VALUE
from streams_runtime.pipeline.stage import Keyed, ToJoin
from streams_runtime.state.shown import Shown
from streams_runtime.state.store import KeyValueStore, unstamp
from streams_runtime.tasks.places import places_among


def matched(join: ToJoin, changes: Keyed | None, stores: Mapping[int, KeyValueStore], show: Shown) -> ToJoin:
    """The records that go on, each with what the table holds for its key (MATCH); of an inner join those with a match.

    `changes` are the batch's changes of the table, nothing of which is in the stores yet; `show` makes what the stores
    hold what a join sees.

    Raises ProcessorStateException: a store can't be read.
    """
    partitions: Sequence[int] = join.rows["_partition"].to_pylist()
    keys = encoded(join.rows["_key"])
    held = _held(partitions, keys, stores, show)
    if changes is None or not len(changes.keys):
        found = [held.get(each) for each in zip(partitions, keys, strict=True)]
    else:
        found = _in_turn(join, partitions, keys, changes, held)
    rows = join.rows.append_column(MATCH, pa.array(found, pa.binary()))
    return ToJoin(join.node, rows if join.node.left else rows.filter(rows[MATCH].is_valid()))


def _held(
    partitions: Sequence[int], keys: Bytes, stores: Mapping[int, KeyValueStore], show: Shown
) -> dict[tuple[int, bytes | None], bytes | None]:
    """What the stores have for these keys, before the batch."""
    wanted: dict[int, set[bytes]] = {}
    for partition, key in zip(partitions, keys, strict=True):
        if key is not None:
            wanted.setdefault(partition, set()).add(key)
    found: dict[tuple[int, bytes | None], bytes | None] = {}
    for partition, some in wanted.items():
        ordered = sorted(some)
        stored = [None if each is None else unstamp(each)[1] for each in stores[partition].get_stored(ordered)]
        found |= {(partition, key): value for key, value in zip(ordered, show(stored), strict=True)}
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
    turns, record_turns = places_among((changing, changes.columns), (partitions, join.rows))
    records = ((place, True, row) for row, place in enumerate(record_turns))
    updates = ((place, False, row) for row, place in enumerate(turns) if changed[row] is not None)
    for _, is_record, row in sorted(chain(records, updates)):
        if is_record:
            found[row] = held.get((partitions[row], keys[row]))
        else:
            held[changing[row], changed[row]] = values[row]
    return found
