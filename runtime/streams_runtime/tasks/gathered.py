"""What several stages of a batch give to one node: put together, and for a merge in the order of its places."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from streams_runtime.pipeline.decode import FROM_OFFSET, FROM_TOPIC, TURN
from streams_runtime.pipeline.merges import ToMerge
from streams_runtime.pipeline.stage import Behind
from streams_runtime.pipeline.stream_joins import StreamsToJoin
from streams_runtime.state.reducing import nullable
from streams_runtime.tasks.places import places, ways_of

_ELSE = {TURN: "_timestamp", FROM_TOPIC: "_topic", FROM_OFFSET: "_offset"}


def gathered(waiting: Mapping[str, Behind], more: Behind) -> Behind:
    """What a stage begins with, together with what waits for it already."""
    before = waiting.get(more.node.name)
    if isinstance(before, ToMerge) and isinstance(more, ToMerge):
        return replace(before, rows=together(before.rows, more.rows))
    if isinstance(before, StreamsToJoin) and isinstance(more, StreamsToJoin):
        return replace(before, rows=together(before.rows, more.rows))
    return more


def together(some: pa.Table, more: pa.Table) -> pa.Table:
    """The rows of both, with the columns of both: where one has no place of its own for its rows, it is their own."""
    both = [pa.table({name: _plain(each[name]) for name in each.column_names}) for each in (some, more)]
    for name, other in _ELSE.items():
        if any(name in each.column_names for each in both):
            both = [each if name in each.column_names else each.append_column(name, each[other]) for each in both]
    return pa.concat_tables(both, promote_options="default")


def merged_in_turn(found: ToMerge) -> ToMerge:
    """The rows of a merge as Kafka Streams would hand them on: record by record, and of one record way by way."""
    rows = found.rows
    turns = list(zip(places(rows["_partition"].to_pylist(), rows), ways_of(rows), strict=True))
    order = sorted(range(len(turns)), key=turns.__getitem__)
    return ToMerge(found.node, rows.take(pa.array(order, pa.int64())))


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column without what its stage knows of nulls within its values, in which stages differ."""
    return pc.cast(column, nullable(column.type))
