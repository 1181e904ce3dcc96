"""What several stages of a batch give to one node: put together, and for a merge in the order of its places."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from streams_runtime.batch.columns import FROM_OFFSET, FROM_TOPIC, ORDER_TIME
from streams_runtime.batch.record_order import fork_paths_of, ordinals
from streams_runtime.batch.stage import StageInput
from streams_runtime.processors.contract import Applied, ApplyContext
from streams_runtime.state.aggregates.reduce_state import nullable

_ELSE = {ORDER_TIME: "_timestamp", FROM_TOPIC: "_topic", FROM_OFFSET: "_offset"}


def merged_inputs(waiting: Mapping[str, StageInput], more: StageInput) -> StageInput:
    """What a stage begins with, together with what waits for it already."""
    before = waiting.get(more.node.name)
    return more if before is None else replace(before, rows=together(before.rows, more.rows))


def together(some: pa.Table, more: pa.Table) -> pa.Table:
    """The rows of both, with the columns of both: where one has no place of its own for its rows, it is their own."""
    both = [pa.table({name: _plain(each[name]) for name in each.column_names}) for each in (some, more)]
    for name, other in _ELSE.items():
        if any(name in each.column_names for each in both):
            both = [each if name in each.column_names else each.append_column(name, each[other]) for each in both]
    return pa.concat_tables(both, promote_options="default")


def apply(given: StageInput, context: ApplyContext) -> Applied:  # noqa: ARG001 - the contract's signature
    """The rows of a merge in the order of their records."""
    return Applied(rows=in_record_order(given.rows))


def in_record_order(rows: pa.Table) -> pa.Table:
    """The rows of a merge as Kafka Streams would hand them on: record by record, and of one record way by way."""
    sort_keys = list(zip(ordinals(rows["_partition"].to_pylist(), rows), fork_paths_of(rows), strict=True))
    order = sorted(range(len(sort_keys)), key=sort_keys.__getitem__)
    return rows.take(pa.array(order, pa.int64()))


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column without what its stage knows of nulls within its values, in which stages differ."""
    return pc.cast(column, nullable(column.type))
