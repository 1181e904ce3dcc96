"""Topology to plans: checks every expression against Spark's analysis, and builds a batch's DataFrames."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import DataType, StructType

from streams_runtime.api.aggregates import ORDERED
from streams_runtime.api.formats import REGISTERED
from streams_runtime.errors import InvalidApplicationException, Mistake
from streams_runtime.pipeline.avro_ids import Schemas, WriterSchemas
from streams_runtime.pipeline.avro_read import AvroFormat
from streams_runtime.pipeline.avro_write import avro_writer
from streams_runtime.pipeline.decode import Decoder
from streams_runtime.pipeline.dedupe import check_dedupe
from streams_runtime.pipeline.foreign_keys import (
    OTHER,
    check_foreign_key_join,
    foreign_keys,
    results,
    rows_as_json,
    sent_format,
)
from streams_runtime.pipeline.formats import ddl_of, format_of
from streams_runtime.pipeline.global_joins import check_lookup, with_lookup
from streams_runtime.pipeline.joins import MATCH, check_join, joined
from streams_runtime.pipeline.late import late_records
from streams_runtime.pipeline.merges import to_merge
from streams_runtime.pipeline.nodes import (
    OUT_WINDOW,
    Passing,
    applied,
    check_aggregates,
    check_select,
    partials,
    sink_format,
    table_rows,
    usable,
    value_columns,
    written,
)
from streams_runtime.pipeline.peeks import watched
from streams_runtime.pipeline.proto_read import ProtoFormat
from streams_runtime.pipeline.proto_write import proto_writer
from streams_runtime.pipeline.proto_writers import ProtoWriters
from streams_runtime.pipeline.pushdown.partial import stage_of
from streams_runtime.pipeline.pushdown.plan import plan_of
from streams_runtime.pipeline.pushdown.taken_over import TakenOver
from streams_runtime.pipeline.reduce import bind_reductions
from streams_runtime.pipeline.refusing import refusing
from streams_runtime.pipeline.registered import RegisteredFormat, RegisteredWriter
from streams_runtime.pipeline.stream_joins import both_sides, check_stream_join, joined_streams, one_side, side_format
from streams_runtime.pipeline.stream_nodes import ELEMENT, check_stream_node, in_order, numbered
from streams_runtime.pipeline.tables import check_table_join, held_value, rows_of_one_source, tables_of_snapshots
from streams_runtime.pipeline.to_table import decoder_of_rows
from streams_runtime.pipeline.told import change_by_change
from streams_runtime.pipeline.ways import on_way, placed
from streams_runtime.pipeline.windows import (
    FRAGMENT,
    ORDER,
    Missed,
    fragment_columns,
    in_fragments,
    in_windows,
    missed,
    one_by_one,
    those_that_missed,
)
from streams_runtime.state.aggregates import AggregateState
from streams_runtime.state.serdes import Serde, key_serde
from streams_runtime.state.shown import Shown, as_stored, shown
from streams_runtime.state.user_class import user_class_mistakes
from streams_runtime.topology.dedupe import DedupeNode
from streams_runtime.topology.foreign_key_nodes import AnswerNode, ForeignKeyJoinNode, SubscribeNode
from streams_runtime.topology.nodes import (
    AggregateNode,
    Format,
    JoinNode,
    KeyByNode,
    MergeNode,
    Node,
    RepartitionSinkNode,
    RepartitionSourceNode,
    SinkNode,
    SourceNode,
    TableSourceNode,
    TransformNode,
    inputs_of,
    needed_by,
    streams_of,
)
from streams_runtime.topology.order import needed_first
from streams_runtime.topology.plan import SubTopology, Topology
from streams_runtime.topology.stage_order import gathering
from streams_runtime.topology.stream_joins import Side, StreamJoinNode
from streams_runtime.topology.stream_nodes import PeekNode, StreamNode
from streams_runtime.topology.table_nodes import TableJoinNode, ToStreamNode, ToTableNode
from streams_runtime.topology.table_parts import TablePart, table_parts, told_aggregates
from streams_runtime.topology.ways import Forks, forks, keeps_places
from streams_runtime.topology.windows import SessionWindows, SlidingWindows, TimeWindows

Frames = Mapping[str, DataFrame]
Source = SourceNode | TableSourceNode | RepartitionSourceNode
Later = JoinNode | StreamJoinNode | DedupeNode | MergeNode
"""Nodes whose records meet stores, or those of another stage, and go on in a further stage of the batch."""
MeetsStores = JoinNode | StreamJoinNode | DedupeNode | TableJoinNode | AnswerNode | ForeignKeyJoinNode | ToTableNode
Terminal = (
    Later
    | AggregateNode
    | TableSourceNode
    | RepartitionSourceNode
    | ToTableNode
    | RepartitionSinkNode
    | SinkNode
    | PeekNode
)


@dataclass(frozen=True, slots=True)
class Outlet:
    """A node at which rows leave Spark, and the rows that reach it. A peek is one when nothing follows it.

    So is a source of raw records, which Spark has no more to do with.
    """

    node: Terminal
    rows: DataFrame


class Compiler:
    """Knows each source's decoder, each key's format and each aggregate's state; compiles once, builds every batch."""

    def __init__(self, spark: SparkSession, topology: Topology, schemas: Schemas | None = None) -> None:
        """Analyse the whole topology over no records; nothing is read or run. `schemas`: needed for avro and protobuf.

        Raises:
            InvalidApplicationException: what Spark's analysis refuses, all of it, each with its field.
        """
        self._spark = spark
        self._topology = topology
        self._schemas = schemas
        self._writers = None if schemas is None else WriterSchemas(schemas)
        self._proto_writers = None if schemas is None else ProtoWriters(schemas)
        self._registered: dict[tuple[str, str], RegisteredWriter] = {}
        self._tables = topology.tables
        self._reunions = topology.reunions
        parts = [part for sub in topology.subtopologies for part in table_parts(sub)]
        self._over_changes = frozenset(name for part in parts for name in part.kept)
        self._told = frozenset(name for sub in topology.subtopologies for name in told_aggregates(sub))
        subs = topology.subtopologies
        self._gathering = frozenset[str]().union(*(gathering(sub) for sub in subs))
        self._forks: dict[int, Forks] = {sub.id: forks(sub) for sub in subs if keeps_places(sub)}
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

    @property
    def has_functions(self) -> bool:
        """Whether expressions may call functions of the user's."""
        return bool(self._topology.functions)

    def decoder(self, source: str) -> Decoder:
        """How the source node's records are read."""
        return self._decoders[source]

    def registered(self, sink: str, part: str) -> RegisteredWriter | None:
        """What writes a sink's keys or values (`part`), where that is avro or protobuf."""
        return self._registered.get((sink, part))

    def register_schemas(self) -> None:
        """Register the schemas of the sinks; without effect the second time, so that it may be called again.

        Raises:
            SchemaRegistryNotAvailableException: call again.
            SchemaRegistryException: the registry refuses a schema; the message says why.
        """
        for writer in self._registered.values():
            assert self._schemas is not None
            writer.register(self._schemas)

    def learn(self, format: Format, data: pa.ChunkedArray) -> bool:
        """Fetch the schemas that these keys or values were written with; whether any was new.

        Raises what `register_schemas` raises.
        """
        return isinstance(format, RegisteredFormat) and format.learn(data)

    def aggregate(self, node: str) -> AggregateState:
        """The state of an aggregate node."""
        return self._aggregates[node]

    def partial_aggregates(
        self, node: AggregateNode, rows: DataFrame, late: Observation, since: Mapping[int, int] | None = None
    ) -> DataFrame:
        """The batch's contribution to the node's state, from the rows that it takes (see nodes.partials).

        Of time windows, how often a record came too late is left in `late`. `since`: see windows.in_fragments.
        """
        state, several = self._aggregates[node.name], self._several_topics(node)
        if node.name in self._told:
            return change_by_change(state, rows, node.path, several, node.windows, late)
        match node.windows:
            case None:
                return partials(state, rows, node.path)
            case TimeWindows() as windows:
                return partials(state, in_windows(rows, windows, several, late), node.path, (OUT_WINDOW,))
            case SlidingWindows():
                return partials(state, one_by_one(rows, several), node.path, (ORDER,))
            case SessionWindows() as windows:
                fragments = in_fragments(rows, windows, several, since, state.in_turn)
                return partials(state, fragments, node.path, (FRAGMENT,), fragment_columns())

    def late_records(
        self, node: AggregateNode, rows: DataFrame, since: Mapping[int, int], found: Sequence[Missed]
    ) -> DataFrame:
        """The rows that came too late for a window of the node; see late.late_records.

        Of time windows they are looked for by the stream time of each partition before the batch, `since`; of others
        they were found when the batch met the store.
        """
        several = self._several_topics(node)
        if isinstance(node.windows, TimeWindows):
            late = missed(rows, node.windows, several, since)
        else:
            late = those_that_missed(rows, several, found)
        return late_records(node, late, rows.columns)

    def is_told(self, aggregate: str) -> bool:
        """Whether every change of an aggregate counts (see table_parts.told_aggregates)."""
        return aggregate in self._told

    def shown_by(self, table: str) -> Shown:
        """How what a table's store holds becomes what is seen of it: of an aggregate, its columns as JSON."""
        return shown(self._aggregates[table]) if table in self._aggregates else as_stored

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

    def taken_over(self, sub: SubTopology) -> TakenOver | None:
        """What the scan does of the first stage; None: all of it is Spark's."""
        sources = [node for node in sub.nodes if not inputs_of(node)]
        match sources:
            case [SourceNode() | RepartitionSourceNode() as source] if source.name in self._decoders:
                decoder = self._decoders[source.name]
            case _:
                return None
        rows = self._spark.createDataFrame([], self._outputs[source.name].schema)
        match self.stream_outlets(sub, {source.name: rows}, {}):
            case [Outlet(AggregateNode(windows=None) as node, rows)] if node.name not in self._told:
                state = self._aggregates[node.name]
            case _:
                return None
        if state.in_turn or decoder.timestamp is not None:
            return None
        plan = plan_of(rows.agg(*(F.expr(each.expression).alias(each.name) for each in state.columns)))
        stage = None if plan is None else stage_of(plan, decoder.key.name, decoder.json)
        if stage is None:
            return None
        schema = to_arrow_schema(self.partial_aggregates(node, rows, Observation()).schema)
        return TakenOver(source, node, stage, schema)

    def unread_sources(self, sub: SubTopology) -> frozenset[str]:
        """Sources of which nothing is made that leaves the first stage, so that no query asks for their records."""
        by_name = {node.name: node for node in sub.nodes}
        read: set[str] = set()
        waiting = [outlet.node.name for outlet in self._analysed_outlets(sub)]
        while waiting:
            here = waiting.pop()
            if here not in read:
                read.add(here)
                waiting += streams_of(by_name[here])
        return frozenset(node.name for node in sub.nodes if not inputs_of(node)) - read

    def needs_headers(self, sub: SubTopology) -> bool:
        """Whether a batch's records need their headers: where they go on to a topic, or an expression asks for them."""
        outlets = self._analysed_outlets(sub)
        to_topics = SinkNode | RepartitionSinkNode | Later
        forwarded = any(isinstance(outlet.node, to_topics) for outlet in outlets)
        forwarded = forwarded or any(part.sinks or part.streams for part in table_parts(sub))
        return forwarded or any("_headers" in repr(node) for node in sub.nodes)

    def stream_outlets(
        self, sub: SubTopology, sources: Frames, peeks: dict[str, Observation] | None = None
    ) -> list[Outlet]:
        """The first stage of a batch: from the sources' readable records to where rows leave Spark.

        `peeks` is filled: by a peek's name, where the first query that its records go through leaves what it has seen.
        """
        frames = dict(sources)
        if sub.id in self._forks:
            frames = {name: placed(frame, len(sub.source_topics) > 1) for name, frame in frames.items()}
        return self._outlets(sub, frames, peeks)

    def table_outlets(
        self, sub: SubTopology, aggregate: str, rows: pa.Table, peeks: dict[str, Observation] | None = None
    ) -> list[Outlet]:
        """The second stage: from an aggregate's new rows (see nodes.table_rows) to what is behind it.

        `peeks`: as for the first stage.
        """
        return self._outlets(sub, {aggregate: self._spark.createDataFrame(rows)}, peeks)

    def outlets_behind(
        self, sub: SubTopology, node: Later | ToStreamNode, rows: pa.Table, peeks: dict[str, Observation] | None = None
    ) -> list[Outlet]:
        """The stage behind a join: from records with what the table holds beside them (joins.MATCH) on.

        Of a join of streams from its results on (see stream_joins.joined_streams), of a dedupe from the records that it
        passes on, of a toStream from the table's changes on, of a merge from all of its rows on. `peeks`: as for the
        first stage.
        """
        if isinstance(node, JoinNode):
            self.learn(self._decoders[node.table].value, rows[MATCH])
        frame = self._spark.createDataFrame(rows)
        match node:
            case StreamJoinNode():
                formats = (side_format(self._outputs[name]) for name in inputs_of(node))
                frame = joined_streams(node, frame, *formats)
            case JoinNode():
                frame = joined(node, frame, self._decoders[node.table].value)
            case DedupeNode() | ToStreamNode() | MergeNode():
                pass
        return self._outlets(sub, {node.name: frame}, peeks)

    def tables(self, part: TablePart, snapshots: pa.Table) -> DataFrame:
        """Every table's row in each snapshot, and what sinks write of it (see tables.tables_of_snapshots)."""
        for index, source in enumerate(part.sources):
            self.learn(self._decoders[source.name].value, snapshots[held_value(index)])
        formats = {sink.name: self.value_format(sink) for sink in part.sinks}
        return tables_of_snapshots(part, self._spark.createDataFrame(snapshots), self._decoders, formats)

    def foreign_keys(self, node: ForeignKeyJoinNode, side: TablePart, snapshots: pa.Table) -> pa.Table:
        """What the rows of the left table name in each snapshot (see foreign_keys.foreign_keys)."""
        return foreign_keys(node, self._rows(side, snapshots)).toArrow()

    def rows_sent(self, side: TablePart, snapshots: pa.Table) -> pa.Table:
        """The rows of the right table in each snapshot (see foreign_keys.rows_as_json)."""
        return rows_as_json(self._rows(side, snapshots)).toArrow()

    def joined_by_foreign_key(self, node: ForeignKeyJoinNode, side: TablePart, snapshots: pa.Table) -> pa.Table:
        """The join's rows over those of the left table, which have foreign_keys.OTHER beside them (see results)."""
        rows = self._rows(side, snapshots, (OTHER,))
        return results(node, rows, sent_format(self._outputs[node.table])).toArrow()

    def _rows(self, side: TablePart, snapshots: pa.Table, beside: Sequence[str] = ()) -> DataFrame:
        self.learn(self._decoders[side.sources[0].name].value, snapshots[held_value(0)])
        return rows_of_one_source(side, self._spark.createDataFrame(snapshots), self._decoders, beside)

    def _nothing(self, decoder: Decoder) -> DataFrame:
        """No records, as the decoder wants them."""
        return self._spark.createDataFrame(decoder.wanted(headers=True).schema.empty_table())

    def _analysed_outlets(self, sub: SubTopology) -> list[Outlet]:
        """The first stage's outlets, over no records."""
        sources = {node.name: self._outputs[node.name] for node in sub.nodes if not inputs_of(node)}
        return self._outlets(sub, sources)

    def _outlets(
        self, sub: SubTopology, frames: dict[str, DataFrame], peeks: dict[str, Observation] | None = None
    ) -> list[Outlet]:
        found = list(_kept_as_they_come(sub, frames))
        whole = frames
        for node in sub.nodes:
            if not inputs_of(node) or node.name in whole:
                continue
            frames = self._on_their_ways(sub, node, whole)
            if any(name not in frames for name in streams_of(node)):
                # Of several stages: its other inputs come in those.
                found += _some_inputs(node, frames, sub.id in self._forks) if node.name in self._gathering else []
                continue
            if isinstance(node, ToTableNode):
                found.append(Outlet(node, frames[node.input]))
            if node.name in self._over_changes and not isinstance(node, AggregateNode):
                continue  # and so is what follows it: they have no frames here
            if isinstance(node, ToTableNode):
                whole[node.name] = frames[node.input].where(usable(node))
            elif isinstance(node, Passing):
                whole[node.name] = self._applied(node, frames)
                if isinstance(node, PeekNode) and peeks is not None:
                    peeks[node.name] = Observation()
                    whole[node.name] = watched(node, whole[node.name], peeks[node.name])
                if isinstance(node, PeekNode) and not sub.leads_out(node.name):
                    found.append(Outlet(node, whole[node.name]))
            elif isinstance(node, StreamJoinNode):
                found.append(Outlet(node, both_sides(frames[node.input], frames[node.other], sub.id in self._forks)))
            elif isinstance(node, JoinNode):
                found.append(Outlet(node, with_lookup(node, frames[node.input])))
            elif isinstance(node, AggregateNode | DedupeNode | RepartitionSinkNode | SinkNode):
                found.append(Outlet(node, frames[node.input]))
        return found

    def _on_their_ways(self, sub: SubTopology, node: Node, frames: dict[str, DataFrame]) -> dict[str, DataFrame]:
        """The frames as the node takes them: where ways part that meet again, on its way."""
        of_sub = self._forks.get(sub.id, {})
        mine = {name: of_sub[name, node.name] for name in streams_of(node) if (name, node.name) in of_sub}
        parted = {name: on_way(frames[name], way) for name, way in mine.items() if ELEMENT in _columns_of(frames, name)}
        return frames | parted if parted else frames

    def _several_topics(self, node: Node) -> bool:
        """Whether records of more than one topic reach the node; then offsets are no order."""
        return len(self._topology.sources_of(node.name)) > 1

    def _gathered_before(self, node: Node) -> bool:
        """Whether records reach the node, in its sub-topology, from a merge of several stages."""
        inputs = [self._topology.node(name) for name in streams_of(node)]
        return any(
            (isinstance(each, MergeNode) and each.name in self._gathering)
            or (not isinstance(each, StreamJoinNode) and self._gathered_before(each))
            for each in inputs
        )

    def _applied(self, node: Passing, frames: Frames) -> DataFrame:
        if node.name in self._reunions:
            ways = numbered({name: frames[name] for name in inputs_of(node)})
            return in_order(applied(node, ways, table=False))
        return applied(node, frames, inputs_of(node)[0] in self._tables)

    def _analysed(self, node: Node) -> DataFrame:
        match node:
            case SourceNode() | TableSourceNode() | RepartitionSourceNode():
                decoder = self._decoders[node.name] = self._decoder_of(node)
                with refusing(_schema_path(node)):
                    return decoder.readable(decoder.decode(self._nothing(decoder)))
            case AggregateNode():
                return self._analysed_aggregate(node)
            case (
                JoinNode()
                | StreamJoinNode()
                | TableJoinNode()
                | DedupeNode()
                | ForeignKeyJoinNode()
                | AnswerNode()
                | ToTableNode()
            ):
                return self._analysed_later(node)
            case RepartitionSinkNode() | SubscribeNode():
                return written(self._outputs[node.input], "json")
            case SinkNode():
                rows = self._outputs[node.input]
                return self._analysed_sink(node, rows)
            case _:
                if isinstance(node, TransformNode):
                    check_select(node, self._outputs[node.input])
                if isinstance(node, StreamNode):
                    check_stream_node(node, self._outputs[node.input])
                frame = self._applied(node, self._outputs)
                if isinstance(node, KeyByNode):
                    with refusing(f"{node.path}.keyBy"):
                        format_of(frame.schema["_key"].dataType)
                return frame

    def _analysed_sink(self, node: SinkNode, rows: DataFrame) -> DataFrame:
        if node.key is not None and node.key.name in REGISTERED:
            kind = rows.schema["_key"].dataType
            self._registered[node.name, "key"] = _writer(node, "key", node.key, kind)
        else:
            _check_sink_key(node, self.key_format(node.input))
        if node.value is not None and node.value.name in REGISTERED:
            columns = StructType([rows.schema[name] for name in value_columns(rows)])
            self._registered[node.name, "value"] = _writer(node, "value", node.value, columns)
        return written(rows, sink_format(node, rows))

    def _analysed_later(self, node: MeetsStores) -> DataFrame:
        rows = self._outputs[node.input]
        match node:
            case ToTableNode():
                return self._analysed_table(node, rows)
            case DedupeNode():
                return check_dedupe(node, rows)
            case StreamJoinNode():
                return check_stream_join(node, rows, self._outputs[node.other])
            case AnswerNode():
                return rows
            case TableJoinNode() | ForeignKeyJoinNode():
                return self._analysed_tables(node, rows)
            case JoinNode():
                if node.on is not None:
                    check_lookup(node, rows, self._outputs[node.table])
                return check_join(node, rows, self.key_format(node.table), self._decoders[node.table].value)

    def _analysed_tables(self, node: TableJoinNode | ForeignKeyJoinNode, rows: DataFrame) -> DataFrame:
        if isinstance(node, ForeignKeyJoinNode):
            return check_foreign_key_join(node, rows, self._outputs[node.table])
        return check_table_join(node, rows, self._outputs[node.table])

    def _analysed_table(self, node: ToTableNode | AggregateNode, rows: DataFrame) -> DataFrame:
        """The rows of a table, once it is known how they are read from its store, or from what is shown of it."""
        with refusing(f"{node.path}.{'toTable' if isinstance(node, ToTableNode) else 'aggregate'}"):
            decoder = self._decoders[node.name] = decoder_of_rows(rows)
            decoder.readable(decoder.decode(self._nothing(decoder)))
        return rows

    def _analysed_aggregate(self, node: AggregateNode) -> DataFrame:
        flat_mapped, merges = self._topology.flat_mapped(node.name), self._gathered_before(node)
        _check_order(node, self._several_topics(node), flat_mapped, merges)
        merges = isinstance(node.windows, SessionWindows)
        if mistakes := user_class_mistakes(node.aggregates, merges):
            raise InvalidApplicationException(mistakes)
        state = AggregateState(node.aggregates, merges)
        rows = self._outputs[node.input]
        check_aggregates(state, rows)
        self._aggregates[node.name] = state
        if node.name in self._told and node.windows is not None and state.in_turn:
            raise _told_one_by_one(node)
        schema = to_arrow_schema(self.partial_aggregates(node, rows, Observation()).schema)
        state.bind(schema)
        bind_reductions(self._spark, state, node.name in self._told)
        empty = schema.empty_table()
        finished = state.finish(state.of_batch(empty))
        nothing = empty["_time"]
        windows = None if node.windows is None else (nothing, nothing)
        table = table_rows(empty["_key"], empty["_partition"], nothing, finished, windows)
        rows = self._spark.createDataFrame(table)
        return self._analysed_table(node, rows) if node.name in self._told else rows

    def _decoder_of(self, node: Source) -> Decoder:
        if isinstance(node, RepartitionSourceNode) and node.raw:
            return Decoder(Format("bytes"), Format("bytes"))
        if isinstance(node, RepartitionSourceNode):
            origin = self._outputs[node.origin]
            columns = StructType([origin.schema[name] for name in value_columns(origin)])
            return Decoder(self.key_format(node.origin), Format("json", ddl_of(columns)))
        path = f"{node.path}.timestamp"
        key, value = self._read(node.key), self._read(node.value)
        return Decoder(key, value, node.timestamp, path, isinstance(node, TableSourceNode))

    def _read(self, format: Format) -> Format:
        if format.name == "protobuf":
            return ProtoFormat(format.name, format.schema, format.message, self._proto_writers)
        return AvroFormat(format.name, format.schema, None, self._writers) if format.name == "avro" else format


def _writer(node: SinkNode, part: str, format: Format, kind: DataType) -> RegisteredWriter:
    make = proto_writer if format.name == "protobuf" else avro_writer
    return make(node.topic, part, format, kind, node.path)


def _told_one_by_one(node: AggregateNode) -> InvalidApplicationException:
    found = "a class in Python, or reduce, in windows of which every change is asked for is not there yet"
    remedy = "write the aggregate to a topic by a sink, and read that in another application"
    return InvalidApplicationException([Mistake(f"{node.path}.aggregate", found, remedy)])


def _kept_as_they_come(sub: SubTopology, frames: dict[str, DataFrame]) -> Iterator[Outlet]:
    """Tables' records, of which the usable ones are left in `frames`, and raw ones."""
    for node in sub.nodes:
        if isinstance(node, TableSourceNode) and node.name in frames:
            yield Outlet(node, frames[node.name])
            frames[node.name] = frames[node.name].where(usable(node))
        elif isinstance(node, RepartitionSourceNode) and node.raw and node.name in frames:
            yield Outlet(node, frames[node.name])


def _columns_of(frames: Frames, name: str) -> Sequence[str]:
    return frames[name].columns if name in frames else ()


def _some_inputs(node: Node, frames: Frames, keeps_places: bool) -> Iterator[Outlet]:
    """The inputs that are there, of a node that takes them in several stages."""
    if isinstance(node, MergeNode):
        yield from (Outlet(node, to_merge(frames[name])) for name in node.inputs if name in frames)
    if isinstance(node, StreamJoinNode):
        for name, side in ((node.input, Side.LEFT), (node.other, Side.RIGHT)):
            if name in frames:
                yield Outlet(node, one_side(frames[name], side, keeps_places))


def _schema_path(node: Source) -> str:
    return node.topic if isinstance(node, RepartitionSourceNode) else f"{node.path}.value.schema"


def _check_order(node: AggregateNode, several_topics: bool, flat_mapped: bool, gathered: bool) -> None:
    """Refuse what needs one order of all records, where offsets are none."""
    of_what = "several topics" if several_topics else "a flatMap" if flat_mapped else None
    of_what = of_what or ("a merge behind a join or a dedupe" if gathered else None)
    mistakes = [
        Mistake(
            each.path,
            f"{each.function} of the records of {of_what}, which have no order by their offsets",
            "put the aggregate before the merge or the flatMap, or use min, max or approx_percentile",
        )
        for each in node.aggregates
        if of_what is not None and each.function in ORDERED
    ]
    if mistakes:
        raise InvalidApplicationException(mistakes)


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
