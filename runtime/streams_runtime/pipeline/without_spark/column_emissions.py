"""Columns as records of the topics that they go to, without Spark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import pyarrow as pa

from streams_runtime.api.steps.format_names import REGISTERED
from streams_runtime.batch.columns import HIDDEN
from streams_runtime.batch.encode import Bytes, Headers, encoded, headers_of, windowed_keys
from streams_runtime.batch.json_columns import json_rows
from streams_runtime.batch.stage import Emission, TableRows
from streams_runtime.topology.nodes.aggregate_node import AggregateNode
from streams_runtime.topology.nodes.source_and_sink_nodes import SinkNode
from streams_runtime.topology.nodes.window_kinds import SessionWindows
from streams_runtime.topology.plan import SubTopology


class ColumnWriter(Protocol):
    """Writes keys or values by a registry's schema."""

    def encoded(self, column: pa.ChunkedArray | pa.Array) -> Bytes: ...


class SinkFormats(Protocol):
    """Knows what sinks write: the compiler, and what was found out by it."""

    def value_format(self, sink: SinkNode) -> str:
        """Name of the format that a sink writes."""

    def registered(self, sink: str, part: str) -> ColumnWriter | None:
        """What writes a sink's keys or values (`part`), where a registry has its schema."""


class ColumnEmissions:
    """Makes the records that a sub-topology writes of columns."""

    def __init__(self, formats: SinkFormats, sub: SubTopology) -> None:
        self._formats = formats
        self._sub = sub

    def keys(self, sink: SinkNode, column: pa.ChunkedArray | pa.Array) -> Bytes:
        """Keys as the sink writes them."""
        writer = self._formats.registered(sink.name, "key")
        return encoded(column) if writer is None else writer.encoded(column)

    def values(self, sink: SinkNode, column: pa.ChunkedArray | pa.Array) -> Bytes:
        """Values, from the column that written_rows.value_of gives, as the sink writes them."""
        writer = self._formats.registered(sink.name, "value")
        return encoded(column) if writer is None else writer.encoded(column)

    def of_columns(self, node: SinkNode, rows: pa.Table) -> Emission:
        """What rows come to in the node's topic, of which each has a value: their metadata, then its columns."""
        headers = rows["_headers"]
        values = rows.select([name for name in rows.column_names if name not in HIDDEN])
        times = rows["_timestamp"].cast(pa.int64()).to_numpy() // 1000
        return Emission(
            node.one_topic,
            False,
            self.keys(node, rows["_key"]),
            self._values_of(node, values),
            times.tolist(),
            headers_in(headers),
        )

    def direct(self, sinks: Sequence[SinkNode], rows: TableRows) -> list[Emission]:
        """An aggregate's rows straight to sinks: no step in between, so no need of Spark."""
        timestamps = rows.timestamps.to_pylist()
        emissions = []
        for sink in sinks:
            keys = self.keys(sink, rows.keys)
            values = self._direct_values(sink, rows)
            if rows.gone is not None:
                values = [None if gone else value for value, gone in zip(values, rows.gone.to_pylist(), strict=True)]
            whole = keys
            if rows.starts is not None:
                whole = windowed_keys(keys, rows.starts, rows.ends if self.in_sessions(sink.input) else None)
            placed_by = None if rows.starts is None else keys
            emissions.append(Emission(sink.one_topic, False, whole, values, timestamps, placed_by=placed_by))
        return emissions

    def _direct_values(self, sink: SinkNode, rows: TableRows) -> Bytes:
        if rows.json is not None and self._formats.value_format(sink) == "json":
            return rows.json
        return self._values_of(sink, rows.columns)

    def _values_of(self, sink: SinkNode, columns: pa.Table) -> Bytes:
        match self._formats.value_format(sink):
            case "json":
                return list(json_rows(columns))
            case name if name in REGISTERED:
                return self.values(sink, columns.to_struct_array())
            case _:
                return encoded(columns.column(0))

    def in_sessions(self, name: str) -> bool:
        """Whether the rows that a node gives are sessions, whose keys have two times."""
        node = next(each for each in self._sub.nodes if each.name == name)
        if isinstance(node, AggregateNode):
            return isinstance(node.windows, SessionWindows)
        return any(self.in_sessions(each) for each in node.streams)


def headers_in(column: pa.ChunkedArray) -> list[Headers | None] | None:
    """Records' headers; None where no record has any."""
    return None if column.null_count == len(column) else headers_of(column.to_pylist())
