"""The declared topology: sources, steps and sinks, as they stand in the resource."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from streams_runtime.api.spec.spec_model import Model
from streams_runtime.api.spec.spec_values import Duration, OffsetReset
from streams_runtime.api.steps.functions_spec import FunctionSpec
from streams_runtime.api.steps.process_spec import ProcessSpec
from streams_runtime.api.steps.stream_joins_spec import WithinSpec
from streams_runtime.api.steps.stream_steps_spec import (
    BranchSpec,
    DedupeSpec,
    FlatMapSpec,
    PeekSpec,
    RepartitionSpec,
)
from streams_runtime.api.steps.table_steps_spec import HISTORY, ToStreamSpec, ToTableSpec
from streams_runtime.api.steps.windows_spec import WindowSpec

FormatName = Literal["string", "bytes", "long", "int", "double", "json", "avro", "protobuf", "jsonschema"]


class FormatSpec(Model):
    """How the bytes of a key or a value become columns."""

    format: FormatName = Field(
        description="string, bytes, long, int and double are Kafka's own serializers, byte for byte; json is"
        " UTF-8 text; avro, protobuf and jsonschema are Avro, Protobuf and JSON with the id of their schema in a"
        " registry (spec.kafka.schemaRegistry). A primitive value is one column named value."
    )
    schema_: str | None = Field(
        default=None,
        alias="schema",
        description='For json that is read: the columns as Spark DDL, such as "user STRING, amount DOUBLE".'
        " For avro the schema as JSON: of what is read the reader's, into which every record is resolved; of what is"
        " written the one that is registered (absent: made of the columns). For protobuf the same as the text of a"
        " .proto file, and for jsonschema as a JSON Schema. No default for what is read: a schema guessed from data"
        " would change with the data.",
    )
    message: str | None = Field(
        default=None,
        description="For protobuf with a schema: the message's name in it, without the package; those inside of"
        " others as Outer.Inner. Absent: the first message.",
    )


class TableSpec(Model):
    """Makes a source a table: the last value of each key."""

    store: str = Field(description="Name of the key-value store that holds the table.")
    global_: bool = Field(
        default=False,
        alias="global",
        description="true: every instance keeps the whole table, all partitions of it, and streams are joined with it"
        " by any expression (join.key), without a keyBy. Absent: each task keeps the partition that it reads.",
    )
    history_retention: Duration | None = Field(default=None, description=HISTORY)


class SourceSpec(Model):
    """A topic that the application reads."""

    name: str = Field(description="What steps call this source; unique among sources and steps.")
    topic: str | None = Field(
        default=None,
        description="The topic; it has to exist. Sources of one topic are one source: streams, with equal settings."
        " Either this or topicPattern.",
    )
    topic_pattern: str | None = Field(
        default=None,
        description="Regular expression: the source reads every topic whose whole name fits it, also those that are"
        " made later. At least one has to exist. Streams only.",
    )
    key: FormatSpec | None = Field(
        default=None,
        description="Format of the key. Absent: it is carried on as bytes, and nothing is aggregated by it.",
    )
    value: FormatSpec = Field(description="Format of the value.")
    timestamp: str | None = Field(
        default=None,
        description="Spark SQL expression for the record's time: a TIMESTAMP, or a BIGINT of milliseconds"
        " since 1970. Absent: the timestamp that the record has in Kafka.",
    )
    table: TableSpec | None = Field(
        default=None,
        description="Present: the source is a table (a store kept from the topic), not a stream.",
    )
    offset_reset: OffsetReset | None = Field(
        default=None,
        description="Where partitions begin in which the group has no committed offset, or one that is no longer there:"
        " earliest, latest, a duration counted back from now, or none. Absent: spec.kafka.offsetReset. A table always"
        " begins at the beginning.",
    )

    @property
    def named_topic(self) -> str:
        """The topic; empty where there is none: it reads those of a pattern, or what it reads is missing."""
        return self.topic or ""

    def begins_at(self, application: OffsetReset) -> OffsetReset:
        """Where it begins without a committed offset, in an application with this spec.kafka.offsetReset."""
        if self.table is not None:
            return "earliest"  # a table without its older rows would be another one
        return application if self.offset_reset is None else self.offset_reset


JoinType = Literal["inner", "left", "outer"]


class JoinSpec(Model):
    """What a table holds for a record's key, or the records of another stream with its key, beside the record; of two
    tables, what both hold for one key.
    """

    table: str | None = Field(
        default=None,
        description="The table in which each record's key is looked up: a source that is declared as one, or a step"
        " toTable or aggregate. With a table in from, steps over tables may be named too.",
    )
    stream: str | None = Field(
        default=None,
        description="Instead of table: the stream whose records with the same key are joined with each record, if they"
        " lie close enough.",
    )
    key: str | None = Field(
        default=None,
        description="Spark SQL expression over the record's columns that gives the key to look up. Of two tables: over"
        " the columns of the row in from, a key of the other table (a foreign key); the step needs a store then, and"
        " the topics need not have the same number of partitions. Of a stream: with a global table, and only there."
        " Absent: the record's own key.",
    )
    type: JoinType = Field(
        default="inner",
        description="inner: a record whose key the table does not hold is left out. left: it goes on, with nulls for"
        " the table's columns. outer, of two streams or two tables: so does what only the other side has. Of streams"
        " they go on when no match can come in time any more.",
    )
    within: WithinSpec | None = Field(
        default=None,
        description="With stream: how far apart the two records may lie in time: 5m, or {before: 5m, after: 1m}.",
    )
    grace: Duration | None = Field(
        default=None,
        description="With stream: how long after that, in stream time, a record may still come. Default: 0ms.",
    )
    select: dict[str, str] = Field(
        min_length=1,
        description="Columns that the join adds, or replaces: name to Spark SQL expression over the record's columns"
        " and, behind its name and a dot, the table's (users.tier) or the other stream's.",
    )

    @property
    def other(self) -> str:
        """The table or stream that is joined with; empty where none is named."""
        return self.table or self.stream or ""


EVERY = "*"
"""Of a `select`, as name and as expression: all columns that are there."""


class StepSpec(Model):
    """One step: where and/or select, or one of the other fields that say what becomes of records, such as keyBy."""

    name: str = Field(description="What other steps call this one; unique. Part of its internal topics' names.")
    from_: str | None = Field(
        default=None,
        alias="from",
        description="The source or step whose records this step takes. Not with merge.",
    )
    where: str | None = Field(
        default=None,
        description="Spark SQL condition; records for which it is not true are left out. Before select. Of a table, a"
        " row for which it is no longer true is deleted.",
    )
    select: dict[str, str] | None = Field(
        default=None,
        min_length=1,
        description="The new value: column name to Spark SQL expression. The key stays. With '*': '*' among them"
        " the columns that are there stay, but for those that are named.",
    )
    flat_map: FlatMapSpec | None = Field(
        default=None, description="Make several records of one: one of each element of an array. Of streams only."
    )
    split: list[BranchSpec] | None = Field(
        default=None,
        min_length=1,
        description="Divide a stream into branches, tried in this order. A list, since a cluster keeps no order of"
        " fields.",
    )
    default: str | None = Field(
        default=None,
        description="With split: name of the branch of the records that no condition is true for. Absent: those are"
        " left out.",
    )
    peek: PeekSpec | None = Field(
        default=None, description="Log or count records that pass, and change none. Of streams only."
    )
    headers: dict[str, str] | None = Field(
        default=None,
        min_length=1,
        description="Headers that each record gets, in place of those of the same names: name to Spark SQL expression."
        " Bytes stay as they are, anything else is written as text; null: no such header. Of streams only.",
    )
    dedupe: DedupeSpec | None = Field(
        default=None,
        description="Leave out records that are there twice: with the id of another one that lies close enough in time."
        " Of streams only.",
    )
    process: ProcessSpec | None = Field(
        default=None,
        description="Give each record to a processor of one's own, a class in Python with stores and punctuators. Of"
        " streams only.",
    )
    key_by: str | None = Field(default=None, description="Spark SQL expression whose value becomes the key.")
    repartition: RepartitionSpec | None = Field(
        default=None,
        description="Spread the records over a topic of the application's own, by their keys, such as {partitions: 24}:"
        " for more or fewer tasks behind it. Records without a key are dropped. Of streams only.",
    )
    merge: list[str] | None = Field(
        default=None,
        min_length=2,
        description="Sources or steps whose records become one stream; same columns in all.",
    )
    to_table: ToTableSpec | None = Field(
        default=None,
        description="Make a table of a stream: the last value of each key. A record without a value deletes its key's"
        " row; one without a key is dropped.",
    )
    to_stream: ToStreamSpec | None = Field(
        default=None,
        description="Make a stream of a table: each of its changes is a record, one without a value where a row was"
        " deleted. Of windows each change too, or their last contents with suppress. Written {}, or with suppress: of"
        " each key's changes within a time the last one.",
    )
    group_by: str | None = Field(
        default=None,
        description="With aggregate of a table: Spark SQL expression over a row that gives the group that it counts in."
        " A row that changes is taken out of its old group and added to its new one; rows whose group is null count in"
        " none. The aggregates are count, count_if, sum and avg, which can take a row out. Not of streams.",
    )
    aggregate: dict[str, str] | None = Field(
        default=None,
        min_length=1,
        description="For each key: column name to count(*), count(distinct x), or to count, sum, min, max, avg, first,"
        " last, any_value, variance, var_pop, var_samp, stddev, stddev_pop, stddev_samp or approx_count_distinct of a"
        " Spark SQL expression, or to count_if, bool_and or bool_or of a condition, or to max_by(x, y), min_by(x, y),"
        " approx_percentile(x, 0.95), collect_list(x, 10), collect_set(x, 10) or top(x, y, 10), each with FILTER (WHERE"
        " condition) behind it where only some records count; or to a class in Python:"
        " python('package.module:Class', x, y * 2 as z).",
    )
    join: JoinSpec | None = Field(
        default=None,
        description="Look up each record's key in a table, as the table is when the record's turn comes. With a table"
        " in from, the result is a table, which changes with either. Or join the records of two streams that have one"
        " key and lie close enough.",
    )
    window: WindowSpec | None = Field(
        default=None,
        description="With aggregate: aggregate the records of each window by themselves. Expressions behind it see"
        " _window_start and _window_end.",
    )
    suppress: Literal["untilWindowCloses"] | None = Field(
        default=None,
        description="With window: pass on only the last contents of each window, once it has closed. Absent: pass on"
        " every change.",
    )
    store: str | None = Field(
        default=None,
        description="Name of the store of an aggregate, or of what a join of two tables with key gives. No default: a"
        " made-up name changes when steps are added.",
    )

    @property
    def selected(self) -> Mapping[str, str]:
        """What `select` names, without the star."""
        return {name: text for name, text in (self.select or {}).items() if name != EVERY}

    @property
    def selects_every(self) -> bool:
        """Whether `select` has a star: the columns that are there stay, but for those that it names."""
        return EVERY in (self.select or {})

    @property
    def verbs(self) -> tuple[str, ...]:
        """What the step says of its records, as a file spells it: `where` and `select`, or one of the others."""
        return tuple(alias for name, alias in VERBS.items() if getattr(self, name) is not None)


_BESIDE_A_VERB = ("name", "from_", "default", "group_by", "window", "suppress", "store")
VERBS = {name: field.alias or name for name, field in StepSpec.model_fields.items() if name not in _BESIDE_A_VERB}
"""The fields of a step of which each says what becomes of its records, and how a file spells them."""
OF_RECORDS = ("keyBy", "repartition", "merge", "aggregate")
"""Those that take records alone, and not the rows of a table."""


class SinkSpec(Model):
    """A topic that the application writes, or several: either `topic`, or `topicBy`."""

    from_: str = Field(alias="from", description="The source or step whose records are written.")
    topic: str | None = Field(default=None, description="The topic; it has to exist. Either this or topicBy.")
    topic_by: str | None = Field(
        default=None,
        description="Spark SQL expression that gives each record the name of its topic (a TopicNameExtractor)."
        " processing.onProductionError decides on a record whose topic is not there; topics are never made.",
    )
    topics: list[str] | None = Field(
        default=None,
        description="The topics that topicBy may give; they have to exist. Absent: any that is there when a record is"
        " written.",
    )
    partition_by: str | None = Field(
        default=None,
        description="Spark SQL expression that gives each record the partition that it goes to, an INT or a BIGINT from"
        " 0 (a StreamPartitioner). Null: the one that the key gives. Absent: so for every record. Not of a table, and"
        " not beside topicBy.",
    )
    key: FormatSpec | None = Field(default=None, description="Format of the key. Absent: the format that the key has.")
    value: FormatSpec | None = Field(default=None, description="Format of the value. Absent: json.")

    @property
    def named_topics(self) -> Mapping[tuple[object, ...], str]:
        """The topics that it names, by the field of each; none where any may be written."""
        if self.topic is not None:
            return {("topic",): self.topic}
        return {("topics", index): topic for index, topic in enumerate(self.topics or ())}


class TopologySpec(Model):
    """What the application does with its records."""

    sources: list[SourceSpec] = Field(default_factory=list, description="Topics to read; at least one.")
    steps: list[StepSpec] = Field(default_factory=list, description="What happens to the records, in any order.")
    sinks: list[SinkSpec] = Field(default_factory=list, description="Topics to write.")
    functions: dict[str, FunctionSpec] = Field(
        default_factory=dict,
        description="Functions in Python that expressions may call, by the names by which they call them.",
    )
    python: str | None = Field(
        default=None,
        description="package.module:function that returns a StreamsBuilder, which makes sources, steps and sinks. In a"
        " cluster they stand beside it, as `streamsapp build` prints them; pods refuse to start when their code makes"
        " others.",
    )
