"""Topology to plans: checks every expression against Spark's analysis, and builds a batch's DataFrames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from streams_runtime.errors import InvalidApplicationException, Mistake
from streams_runtime.pipeline.decode import Decoder
from streams_runtime.pipeline.formats import ddl_of, format_of
from streams_runtime.pipeline.nodes import (
    OUT_WINDOW,
    applied,
    check_aggregates,
    check_select,
    partials,
    sink_format,
    table_rows,
    value_columns,
    written,
)
from streams_runtime.pipeline.refusing import refusing
from streams_runtime.pipeline.source import RAW_SCHEMA
from streams_runtime.pipeline.windows import in_windows
from streams_runtime.state.aggregates import AggregateState
from streams_runtime.state.serdes import Serde, key_serde
from streams_runtime.topology.order import needed_first
from streams_runtime.topology.plan import (
    AggregateNode,
    Format,
    KeyByNode,
    MergeNode,
    Node,
    RepartitionSinkNode,
    RepartitionSourceNode,
    SinkNode,
    SourceNode,
    SubTopology,
    TableSourceNode,
    Topology,
    TransformNode,
    inputs_of,
    needed_by,
)

Frames = Mapping[str, DataFrame]
Source = SourceNode | TableSourceNode | RepartitionSourceNode
Terminal = AggregateNode | TableSourceNode | RepartitionSinkNode | SinkNode


@dataclass(frozen=True, slots=True)
class Outlet:
    """A node at which rows leave Spark, and the rows that reach it."""

    node: Terminal
    rows: DataFrame


class Compiler:
    """Knows each source's decoder, each key's format and each aggregate's state; compiles once, builds every batch."""

    def __init__(self, spark: SparkSession, topology: Topology) -> None:
        """Analyse the whole topology over no records; nothing is read or run.

        Raises:
            InvalidApplicationException: what Spark's analysis refuses, all of it, each with its field.
        """
        self._spark = spark
        self._topology = topology
        self._tables = topology.tables
        self._decoders: dict[str, Decoder] = {}
        self._aggregates: dict[str, AggregateState] = {}
        self._outputs: dict[str, DataFrame] = {}
        mistakes: list[Mistake] = []
        needs = {node.name: needed_by(node) for node in topology.nodes}
        for name in needed_first(needs):
            if any(each not in self._outputs for each in needs[name]):
                continue  # what it builds on is refused already
            try:
                self._outputs[name] = self._analysed(topology.node(name))
            except InvalidApplicationException as error:
                mistakes += error.mistakes
        if mistakes:
            raise InvalidApplicationException(mistakes)

    def decoder(self, source: str) -> Decoder:
        """How the source node's records are read."""
        return self._decoders[source]

    def aggregate(self, node: str) -> AggregateState:
        """The state of an aggregate node."""
        return self._aggregates[node]

    def grouped(self, node: AggregateNode, rows: DataFrame, late: Observation) -> tuple[DataFrame, str, Sequence[str]]:
        """What `partials` makes a batch's contribution from: the rows, the node's field, and what divides a key's rows.

        Of windows, how often a record came too late is left in `late`.
        """
        if node.windows is None:
            return rows, node.path, ()
        return in_windows(rows, node.windows, self._several_topics(node), late), node.path, (OUT_WINDOW,)

    def key_format(self, node: str) -> Format:
        """The format of the keys of the rows that a node gives."""
        return format_of(self._outputs[node].schema["_key"].dataType)

    def key_serde(self, node: str) -> Serde:
        """How the keys of a node's rows are written."""
        return key_serde(self.key_format(node))

    def value_format(self, sink: SinkNode) -> str:
        """Name of the format that a sink writes."""
        return sink_format(sink, self._outputs[sink.input])

    def has_several_outlets(self, sub: SubTopology) -> bool:
        """Whether the first stage of a batch is more than one query."""
        return len(self._analysed_outlets(sub)) > 1

    def needs_headers(self, sub: SubTopology) -> bool:
        """Whether a batch's records need their headers: where they go on to a topic, or an expression asks for them."""
        outlets = self._analysed_outlets(sub)
        forwarded = any(isinstance(outlet.node, SinkNode | RepartitionSinkNode) for outlet in outlets)
        return forwarded or any("_headers" in repr(node) for node in sub.nodes)

    def stream_outlets(self, sub: SubTopology, sources: Frames) -> list[Outlet]:
        """The first stage of a batch: from the sources' readable records to where rows leave Spark."""
        return self._outlets(sub, dict(sources))

    def table_outlets(self, sub: SubTopology, aggregate: str, rows: pa.Table) -> list[Outlet]:
        """The second stage: from an aggregate's new rows (see nodes.table_rows) to the sinks behind it."""
        return self._outlets(sub, {aggregate: self._spark.createDataFrame(rows)})

    def _analysed_outlets(self, sub: SubTopology) -> list[Outlet]:
        """The first stage's outlets, over no records."""
        return self._outlets(sub, {node.name: self._outputs[node.name] for node in sub.nodes if not inputs_of(node)})

    def _outlets(self, sub: SubTopology, frames: dict[str, DataFrame]) -> list[Outlet]:
        found = [
            Outlet(node, frames[node.name])
            for node in sub.nodes
            if isinstance(node, TableSourceNode) and node.name in frames
        ]
        for node in sub.nodes:
            if not inputs_of(node) or any(name not in frames for name in inputs_of(node)):
                continue
            if isinstance(node, TransformNode | KeyByNode | MergeNode):
                frames[node.name] = applied(node, frames, _first_input(node) in self._tables)
            elif isinstance(node, AggregateNode | RepartitionSinkNode | SinkNode):
                found.append(Outlet(node, frames[node.input]))
        return found

    def _several_topics(self, node: Node) -> bool:
        """Whether records of more than one topic reach the node; then offsets are no order."""
        found, waiting = 0, [node]
        while waiting:
            inputs = inputs_of(waiting.pop())
            found += not inputs
            waiting += [self._topology.node(name) for name in inputs]
        return found > 1

    def _analysed(self, node: Node) -> DataFrame:
        match node:
            case SourceNode() | TableSourceNode() | RepartitionSourceNode():
                decoder = self._decoders[node.name] = self._decoder_of(node)
                raw = self._spark.createDataFrame(RAW_SCHEMA.empty_table())
                with refusing(_schema_path(node)):
                    return decoder.readable(decoder.decode(raw))
            case TransformNode() | KeyByNode() | MergeNode():
                if isinstance(node, TransformNode):
                    check_select(node, self._outputs[node.input])
                frame = applied(node, self._outputs, _first_input(node) in self._tables)
                if isinstance(node, KeyByNode):
                    with refusing(f"{node.path}.keyBy"):
                        format_of(frame.schema["_key"].dataType)
                return frame
            case AggregateNode():
                return self._analysed_aggregate(node)
            case RepartitionSinkNode():
                return written(self._outputs[node.input], "json")
            case SinkNode():
                rows = self._outputs[node.input]
                _check_sink_key(node, self.key_format(node.input))
                return written(rows, sink_format(node, rows))

    def _analysed_aggregate(self, node: AggregateNode) -> DataFrame:
        state = AggregateState(node.aggregates)
        rows = self._outputs[node.input]
        check_aggregates(state, rows)
        found = partials(state, *self.grouped(node, rows, Observation()))
        schema = to_arrow_schema(found.schema)
        state.bind(schema)
        self._aggregates[node.name] = state
        empty = schema.empty_table()
        finished = state.finish(empty)
        nothing = empty["_time"]
        windows = None if node.windows is None else (nothing, nothing)
        return self._spark.createDataFrame(table_rows(empty["_key"], empty["_partition"], nothing, finished, windows))

    def _decoder_of(self, node: Source) -> Decoder:
        if isinstance(node, RepartitionSourceNode):
            origin = self._outputs[node.origin]
            columns = StructType([origin.schema[name] for name in value_columns(origin)])
            return Decoder(self.key_format(node.origin), Format("json", ddl_of(columns)))
        path = f"{node.path}.timestamp"
        return Decoder(node.key, node.value, node.timestamp, path, isinstance(node, TableSourceNode))


def _first_input(node: TransformNode | KeyByNode | MergeNode) -> str:
    return inputs_of(node)[0]


def _schema_path(node: Source) -> str:
    return node.topic if isinstance(node, RepartitionSourceNode) else f"{node.path}.value.schema"


def _check_sink_key(node: SinkNode, found: Format) -> None:
    if node.key is not None and node.key.name != found.name:
        raise InvalidApplicationException(
            [
                Mistake(
                    f"{node.path}.key.format",
                    f"the format {node.key.name} is declared, and the keys of {node.input} are {found.name}",
                    f"declare {found.name}, or change the key with a keyBy",
                )
            ]
        )
