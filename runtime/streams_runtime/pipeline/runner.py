"""Runs one batch of a sub-topology through Spark: raw records in, rows for stores and topics out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, Observation

from streams_runtime.kafka.producer import Headers
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.pipeline.compile import Compiler, Outlet
from streams_runtime.pipeline.decode import RECORD, Account, account_of, counted
from streams_runtime.pipeline.encode import Bytes, encoded, windowed_keys
from streams_runtime.pipeline.nodes import (
    OUT_KEY,
    OUT_RECORDS,
    OUT_TIME,
    OUT_VALUE,
    OUT_WINDOW,
    partials,
    table_rows,
    taken,
    written,
)
from streams_runtime.pipeline.source import RAW_SCHEMA, BatchInput, OffsetRange, RecordReader
from streams_runtime.state.aggregates import json_rows
from streams_runtime.topology.plan import (
    AggregateNode,
    RepartitionSinkNode,
    RepartitionSourceNode,
    SinkNode,
    SourceNode,
    SubTopology,
    TableSourceNode,
)


@dataclass(frozen=True, slots=True)
class Emission:
    """Records for one topic, in order. `headers` is None where no record has any. Timestamps in ms.

    `placed_by`: the keys that decide the partition where the records' own do not: those within windowed keys.
    """

    topic: str
    internal: bool
    keys: Bytes
    values: Bytes
    timestamps: list[int]
    headers: list[Headers | None] | None = None
    placed_by: Bytes | None = None

    def __len__(self) -> int:
        return len(self.keys)


@dataclass(frozen=True, slots=True)
class Keyed:
    """Rows of a batch for one store: which task's partition, which key, when. `columns` is the rest.

    For an aggregate, each (partition, key) once, `columns` its state; for a table source, rows in offset order,
    `columns` the value's bytes. With windows each (partition, key, start) once: `starts` in ms, and how many `records`
    of the batch each row stands for.
    """

    node: AggregateNode | TableSourceNode
    partitions: pa.ChunkedArray
    keys: pa.ChunkedArray
    timestamps: pa.ChunkedArray
    columns: pa.Table
    starts: pa.ChunkedArray | None = None
    records: pa.ChunkedArray | None = None

    def filter(self, mask: pa.ChunkedArray) -> Keyed:
        """The rows for which `mask` is true."""
        starts, records = (None if each is None else each.filter(mask) for each in (self.starts, self.records))
        partitions, keys, timestamps = (each.filter(mask) for each in (self.partitions, self.keys, self.timestamps))
        return Keyed(self.node, partitions, keys, timestamps, self.columns.filter(mask), starts, records)

    @property
    def windows(self) -> tuple[pa.ChunkedArray, pa.ChunkedArray] | None:
        """Starts and ends of the rows' windows (ms); None where a row is none."""
        if self.starts is None:
            return None
        assert isinstance(self.node, AggregateNode)
        assert self.node.windows is not None
        return self.starts, pc.add(self.starts, self.node.windows.size)


@dataclass(slots=True)
class StageResult:
    """What a batch gives: rows for topics and for stores, and the account of its records."""

    accounts: dict[str, Account] = field(default_factory=dict)
    dropped: int = 0
    late: int = 0
    emissions: list[Emission] = field(default_factory=list)
    keyed: list[Keyed] = field(default_factory=list)

    @property
    def records(self) -> int:
        """Records read."""
        return sum(account.records for account in self.accounts.values())

    @property
    def broken(self) -> int:
        """Records that can't be read."""
        return sum(account.broken for account in self.accounts.values())


class SubTopologyRunner:
    """Runs the batches of one sub-topology."""

    def __init__(self, compiler: Compiler, reader: RecordReader, sub: SubTopology) -> None:
        self._compiler = compiler
        self._reader = reader
        self._sub = sub
        self._parse_once = compiler.has_several_outlets(sub)
        self._headers = compiler.needs_headers(sub)
        self._sources = [
            node for node in sub.nodes if isinstance(node, SourceNode | TableSourceNode | RepartitionSourceNode)
        ]

    def run(self, batch: BatchInput) -> StageResult:
        """The first stage: everything up to the stores, and what goes to topics without passing one.

        Records that can't be read are left out and accounted for; the caller decides what becomes of the batch.
        """
        result = StageResult()
        observations = {node.name: Observation() for node in self._sources}
        decoded = {
            node.name: counted(self._decoded(node, batch, self._headers), observations[node.name])
            for node in self._sources
        }
        readable = {name: self._compiler.decoder(name).readable(frame) for name, frame in decoded.items()}
        if self._parse_once:
            # Several outlets are several queries: keep the parsed records instead of parsing them for each.
            readable = {name: frame.persist() for name, frame in readable.items()}
        try:
            for outlet in self._compiler.stream_outlets(self._sub, readable):
                self._collect(outlet, result)
            result.accounts = {name: account_of(observation) for name, observation in observations.items()}
        finally:
            if self._parse_once:
                for frame in readable.values():
                    frame.unpersist()
        return result

    def warm_up(self) -> None:
        """Run a batch of one record without a value, which changes nothing.

        Spark loads its classes and compiles its code with the first query of a kind; this way not with the first
        records.
        """
        for node in self._sources:
            tombstone = [None, None, node.topic, 0, 0, 0, None]
            columns = [pa.array([value], field.type) for value, field in zip(tombstone, RAW_SCHEMA, strict=True)]
            where = OffsetRange(TopicPartition(node.topic, 0), 0, 1)
            self.run(BatchInput((where,), pa.table(columns, schema=RAW_SCHEMA)))

    def run_table(self, node: AggregateNode, rows: Keyed, finished: pa.Table) -> list[Emission]:
        """The second stage: an aggregate's new rows through the steps and sinks behind it."""
        consumers = self._sub.consumers_of(node.name)
        direct = [consumer for consumer in consumers if isinstance(consumer, SinkNode)]
        emissions = self._direct(direct, rows, finished) if direct else []
        if len(direct) < len(consumers):
            table = table_rows(rows.keys, rows.partitions, rows.timestamps, finished, rows.windows)
            for outlet in self._compiler.table_outlets(self._sub, node.name, table):
                if outlet.node not in direct:
                    assert isinstance(outlet.node, SinkNode)
                    emissions.append(self._emission(outlet.node, outlet.rows))
        return emissions

    def broken(self, source: str, batch: BatchInput) -> pa.Table:
        """The batch's records of a source that can't be read, as they came."""
        node = next(node for node in self._sources if node.name == source)
        return self._compiler.decoder(source).broken(self._decoded(node, batch, headers=True)).toArrow()

    def _decoded(
        self, node: SourceNode | TableSourceNode | RepartitionSourceNode, batch: BatchInput, headers: bool
    ) -> DataFrame:
        return self._compiler.decoder(node.name).decode(self._reader.read(node.topic, batch, headers))

    def _collect(self, outlet: Outlet, result: StageResult) -> None:
        match outlet.node:
            case AggregateNode() as node:
                dropped, late = Observation(), Observation()
                rows = taken(node, outlet.rows, dropped)
                state = self._compiler.aggregate(node.name)
                table = partials(state, *self._compiler.grouped(node, rows, late)).toArrow()
                result.dropped += dropped.get["dropped"]
                result.late += 0 if node.windows is None else late.get["late"]
                result.keyed.append(_keyed(node, table, [column.name for column in state.columns]))
            case TableSourceNode() as node:
                keyed = outlet.rows.where("_key is not null").selectExpr(
                    "_partition",
                    f"{RECORD}.key {OUT_KEY}",
                    f"unix_millis({RECORD}.timestamp) {OUT_TIME}",
                    f"{RECORD}.value {OUT_VALUE}",
                )
                result.keyed.append(_keyed(node, keyed.toArrow(), [OUT_VALUE]))
            case RepartitionSinkNode() as node:
                dropped = Observation()
                rows = taken(node, outlet.rows, dropped)
                result.emissions.append(self._emission(node, rows))
                result.dropped += dropped.get["dropped"]
            case SinkNode() as node:
                result.emissions.append(self._emission(node, outlet.rows))

    def _emission(self, node: SinkNode | RepartitionSinkNode, rows: DataFrame) -> Emission:
        internal = isinstance(node, RepartitionSinkNode)
        value_format = "json" if isinstance(node, RepartitionSinkNode) else self._compiler.value_format(node)
        table = written(rows, value_format).toArrow()
        headers = table["_headers"]
        starts = table[OUT_WINDOW] if OUT_WINDOW in table.column_names else None
        keys = encoded(table[OUT_KEY])
        return Emission(
            node.topic,
            internal,
            keys if starts is None else windowed_keys(keys, starts),
            encoded(table[OUT_VALUE]),
            table[OUT_TIME].to_pylist(),
            None if headers.null_count == len(headers) else _headers(headers),
            None if starts is None else keys,
        )

    def _direct(self, sinks: Sequence[SinkNode], rows: Keyed, finished: pa.Table) -> list[Emission]:
        """An aggregate's rows straight to sinks: no step in between, so no need of Spark."""
        keys, timestamps = encoded(rows.keys), rows.timestamps.to_pylist()
        emissions = []
        for sink in sinks:
            json = self._compiler.value_format(sink) == "json"
            values: Bytes = list(json_rows(finished)) if json else encoded(finished.column(0))
            whole = keys if rows.starts is None else windowed_keys(keys, rows.starts)
            placed_by = None if rows.starts is None else keys
            emissions.append(Emission(sink.topic, False, whole, values, timestamps, placed_by=placed_by))
        return emissions


def _keyed(node: AggregateNode | TableSourceNode, table: pa.Table, columns: list[str]) -> Keyed:
    names = table.column_names
    starts, records = (table[name] if name in names else None for name in (OUT_WINDOW, OUT_RECORDS))
    return Keyed(node, table["_partition"], table[OUT_KEY], table[OUT_TIME], table.select(columns), starts, records)


def _headers(column: pa.ChunkedArray) -> list[Headers | None]:
    return [None if row is None else [(each["key"], each["value"]) for each in row] for row in column.to_pylist()]
