"""What flows out of each source and step: columns, key, stream or table, where known without running."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from streams_runtime.api.checks.function_checks import function_types
from streams_runtime.api.flow.known_columns import Column, Columns, Type, primitive_type, struct_of, type_named
from streams_runtime.api.flow.step_graph import inputs_of_step, is_kept, ordered_steps, outputs_of_step
from streams_runtime.api.reading.readable_parts import Parts
from streams_runtime.api.schemas.avro_schema import parse_avro
from streams_runtime.api.schemas.ddl_schema import parse_schema
from streams_runtime.api.schemas.json_schema import parse_json_schema
from streams_runtime.api.schemas.proto_schema import parse_proto
from streams_runtime.api.sql.aggregate_calls import parse_aggregate
from streams_runtime.api.sql.sql_tree import SqlSyntaxError, parse_struct
from streams_runtime.api.steps.format_names import REGISTERED
from streams_runtime.api.steps.stream_steps_spec import FlatMapSpec
from streams_runtime.api.steps.topology_spec import FormatSpec, JoinSpec, SourceSpec, StepSpec

# What a record has beside its value. After an aggregate a row stands for many records; only these two remain.
_ALWAYS = (("_key", None), ("_timestamp", "TIMESTAMP"))
_OF_A_RECORD = (("_topic", "STRING"), ("_partition", "INT"), ("_offset", "BIGINT"), ("_headers", None))
_OF_A_WINDOW = (("_window_start", "TIMESTAMP"), ("_window_end", "TIMESTAMP"))


@dataclass(frozen=True, slots=True)
class Stream:
    """The output of a source or step.

    `columns` is None where they are not known. `unkeyed` names the sources whose keys nothing can be found by, for want
    of a format or because it is in a registry, and that no keyBy follows; empty means keyed. With `aggregated` a row
    is no longer one record; with `windowed` it is one window. `is_global` is a source's own: a global table.
    `has_history`: it is a table that keeps what its keys had. `by_rules`: see Columns.
    """

    columns: Columns | None
    key: Type | None
    unkeyed: tuple[str, ...]
    table: bool
    aggregated: bool
    windowed: bool = False
    functions: Mapping[str, Type] = field(default_factory=dict)
    is_global: bool = False
    has_history: bool = False
    by_rules: bool = False

    @property
    def visible(self) -> Columns | None:
        """All columns that an expression over this stream may name, metadata included."""
        if self.columns is None:
            return None
        # A table keeps its rows' keys, values and times; the records that they came with are gone.
        metadata = _ALWAYS if self.aggregated or self.table else (*_ALWAYS, *_OF_A_RECORD)
        metadata = (*metadata, *_OF_A_WINDOW) if self.windowed else metadata
        typed = (Column(name, self.key if name == "_key" else _typed(ddl)) for name, ddl in metadata)
        return Columns((*self.columns.all, *typed), self.functions, self.by_rules)


UNKNOWN = Stream(None, None, (), table=False, aggregated=False)


def streams_of(parts: Parts) -> dict[str, Stream]:
    """The output of every source and step that can be read, by name. What rests on a mistake is `UNKNOWN`."""
    functions = function_types(parts.topology.functions) if parts.topology is not None else {}
    # Another configuration of Spark's SQL may be one of its rules.
    by_rules = not any(name.startswith("spark.sql.") for name in (parts.spark.config if parts.spark else ()))
    streams: dict[str, Stream] = {}
    for source in parts.sources:
        if source.name is not None:
            stream = _source_stream(source.model) if source.model else UNKNOWN
            streams[source.name] = replace(stream, functions=functions, by_rules=by_rules)
    for step in ordered_steps(parts):
        if step.name is not None and step.model:
            stream = _step_stream(step.model, streams) if step.clean else UNKNOWN
            stream = replace(stream, functions=functions, by_rules=by_rules)
            for name in outputs_of_step(step.model):
                streams.setdefault(name, stream)
    return streams


def value_columns(spec: FormatSpec) -> Columns | None:
    """The columns that a value of this format has; None where the schema can't be read."""
    kind = primitive_type(spec.format)
    if kind is not None:
        return Columns((Column("value", kind),))
    if spec.schema_ is None:
        return None
    if spec.format == "protobuf":
        return parse_proto(spec.schema_, spec.message).columns
    if spec.format == "jsonschema":
        return parse_json_schema(spec.schema_).columns
    return parse_avro(spec.schema_).columns if spec.format == "avro" else parse_schema(spec.schema_)[0]


def seen_by_join(stream: Stream, name: str, table: Stream) -> Columns | None:
    """What the expressions of a join may name: the stream's columns, and the table's as those of a struct."""
    if stream.visible is None:
        return None
    kind = None if table.columns is None else struct_of(table.columns)
    return Columns((*stream.visible.all, Column(name, kind)), stream.functions, stream.by_rules)


def merged_streams(step: StepSpec, streams: Mapping[str, Stream]) -> list[tuple[str, Stream]]:
    """The inputs of a merge that are known, by name."""
    return [(name, streams[name]) for name in step.merge or () if name in streams]


def _source_stream(source: SourceSpec) -> Stream:
    # Equal keys have other bytes, and so another partition, when another schema's id stands before them.
    has_key = source.key is not None and source.key.format not in REGISTERED
    unkeyed = () if has_key else (source.name,)
    return Stream(
        value_columns(source.value),
        _key_type(source.key),
        unkeyed,
        source.table is not None,
        aggregated=False,
        is_global=source.table is not None and source.table.global_,
        has_history=source.table is not None and source.table.history_retention is not None,
    )


def _key_type(spec: FormatSpec | None) -> Type | None:
    if spec is None:
        return type_named("BINARY")
    if spec.format in REGISTERED:
        return _registered_type(spec.format, spec.schema_, spec.message) if spec.schema_ else None
    if spec.format != "json":
        return primitive_type(spec.format)
    try:
        struct = parse_struct(spec.schema_ or "")
    except SqlSyntaxError:
        return None
    return struct if isinstance(struct, Type) else None


def _registered_type(format: str, schema: str, message: str | None) -> Type | None:
    if format == "protobuf":
        return parse_proto(schema, message).type
    return parse_avro(schema).type if format == "avro" else parse_json_schema(schema).type


def _step_stream(step: StepSpec, streams: Mapping[str, Stream]) -> Stream:
    if step.merge is not None:
        return _merged(step, streams)
    inputs = inputs_of_step(step)
    before = streams.get(inputs[0], UNKNOWN) if inputs else UNKNOWN
    if step.aggregate is not None:
        columns = _aggregated_columns(step.aggregate, before.visible)
        key = before.key if step.group_by is None else _static_type(step.group_by, before.visible)
        return Stream(columns, key, (), table=True, aggregated=True, windowed=step.window is not None)
    if step.to_table is not None:
        has_history = step.to_table.history_retention is not None
        return replace(before, table=True, aggregated=False, has_history=has_history)
    if step.to_stream is not None:
        # A change has its place by the record that brought it about; a window that closes has none.
        return replace(before, table=False, aggregated=before.windowed)
    if step.key_by is not None:
        return replace(before, key=_static_type(step.key_by, before.visible), unkeyed=(), windowed=False)
    # What two records of streams give has no place in a topic. A join by a foreign key keeps rows as a toTable does.
    aggregated = before.aggregated or (step.join is not None and step.join.stream is not None)
    aggregated = aggregated and not (before.table and is_kept(step))
    after = _columns_after(step, before, streams)
    if step.process is not None and step.process.key is not None:
        before = replace(before, key=_column_type(step.process.key), unkeyed=())
    return replace(before, columns=after, aggregated=aggregated, is_global=False)


def _columns_after(step: StepSpec, before: Stream, streams: Mapping[str, Stream]) -> Columns | None:
    if step.join is not None:
        return _joined_columns(step.join, before, streams.get(step.join.other, UNKNOWN))
    if step.process is not None:
        return parse_schema(step.process.value)[0]
    if step.flat_map is not None:
        return _with_element(step.flat_map, before)
    if step.select is None:
        return before.columns
    selected = _selected_columns(step.selected, before.visible)
    return _beside(before.columns, selected) if step.selects_every else selected


def _merged(step: StepSpec, streams: Mapping[str, Stream]) -> Stream:
    inputs = [streams.get(name, UNKNOWN) for name in step.merge or ()]
    known = [each for each in inputs if each.columns is not None]
    unkeyed = tuple(dict.fromkeys(name for each in inputs for name in each.unkeyed))
    return Stream(
        columns=_common_columns(each.columns for each in known if each.columns is not None),
        key=next((each.key for each in inputs if each.key is not None), None),
        unkeyed=unkeyed,
        table=False,
        aggregated=any(each.windowed for each in inputs),
        windowed=any(each.windowed for each in inputs),
    )


def _common_columns(all_columns: Iterable[Columns]) -> Columns | None:
    """The first input's columns, with every input's knowledge of their types."""
    several = list(all_columns)
    if not several:
        return None
    typed = ((column.name, [each.get(column.name) for each in several]) for column in several[0])
    return Columns(tuple(Column(name, next((c.type for c in same if c and c.type), None)) for name, same in typed))


def _selected_columns(select: Mapping[str, str], visible: Columns | None) -> Columns:
    return Columns(tuple(Column(name, _static_type(text, visible)) for name, text in select.items()))


def _joined_columns(join: JoinSpec, stream: Stream, table: Stream) -> Columns | None:
    if stream.columns is None:
        return None
    added = _selected_columns(join.select, seen_by_join(stream, join.other, table))
    return _beside(stream.columns, added)


def _beside(columns: Columns | None, added: Columns) -> Columns | None:
    """The columns, those that are added or replaced last."""
    if columns is None:
        return None
    return Columns((*(each for each in columns if added.get(each.name) is None), *added))


def _with_element(flat_map: FlatMapSpec, before: Stream) -> Columns | None:
    if before.columns is None:
        return None
    array = _static_type(flat_map.explode, before.visible)
    element = array.expressions[0] if array is not None and array.expressions else None
    return Columns((*before.columns, Column(flat_map.as_, element if isinstance(element, Type) else None)))


def _aggregated_columns(aggregate: Mapping[str, str], visible: Columns | None) -> Columns:
    return Columns(tuple(Column(name, _aggregate_type(text, visible)) for name, text in aggregate.items()))


def _aggregate_type(text: str, visible: Columns | None) -> Type | None:
    try:
        return parse_aggregate(text).result_type(visible or Columns(()))
    except SqlSyntaxError:
        return None


def _static_type(text: str, visible: Columns | None) -> Type | None:
    try:
        return (visible or Columns(())).type_of(text)
    except SqlSyntaxError:
        return None


def _column_type(ddl: str) -> Type | None:
    columns = parse_schema(f"x {ddl}")[0]
    return None if columns is None else columns.all[0].type


def _typed(ddl: str | None) -> Type | None:
    return type_named(ddl) if ddl else None
