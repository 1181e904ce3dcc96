"""The declared topology: sources, steps and sinks, as they stand in the resource."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from streams_runtime.api.base import Model
from streams_runtime.api.windows_spec import WindowSpec

FormatName = Literal["string", "bytes", "long", "int", "double", "json"]


class FormatSpec(Model):
    """How the bytes of a key or a value become columns."""

    format: FormatName = Field(
        description="string, bytes, long, int and double are Kafka's own serializers, byte for byte; json is"
        " UTF-8 text. A primitive value is one column named value."
    )
    schema_: str | None = Field(
        default=None,
        alias="schema",
        description='For json that is read: the columns as Spark DDL, such as "user STRING, amount DOUBLE".'
        " No default: a schema guessed from data would change with the data.",
    )


class TableSpec(Model):
    """Makes a source a table: the last value of each key."""

    store: str = Field(description="Name of the key-value store that holds the table.")


class SourceSpec(Model):
    """A topic that the application reads."""

    name: str = Field(description="What steps call this source; unique among sources and steps.")
    topic: str = Field(description="The topic; it has to exist. A topic is read by one source.")
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


class StepSpec(Model):
    """One step: where and/or select, or keyBy, or merge, or aggregate."""

    name: str = Field(description="What other steps call this one; unique. Part of its internal topics' names.")
    from_: str | None = Field(
        default=None,
        alias="from",
        description="The source or step whose records this step takes. Not with merge.",
    )
    where: str | None = Field(
        default=None,
        description="Spark SQL condition; records for which it is not true are left out. Before select.",
    )
    select: dict[str, str] | None = Field(
        default=None,
        min_length=1,
        description="The new value: column name to Spark SQL expression. The key stays.",
    )
    key_by: str | None = Field(default=None, description="Spark SQL expression whose value becomes the key.")
    merge: list[str] | None = Field(
        default=None,
        min_length=2,
        description="Sources or steps whose records become one stream; same columns in all.",
    )
    aggregate: dict[str, str] | None = Field(
        default=None,
        min_length=1,
        description="For each key: column name to count(*), count(x), sum(x), min(x), max(x) or avg(x).",
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
        description="Name of the aggregate's store. No default: a made-up name changes when steps are added.",
    )


class SinkSpec(Model):
    """A topic that the application writes."""

    from_: str = Field(alias="from", description="The source or step whose records are written.")
    topic: str = Field(description="The topic; it has to exist.")
    key: FormatSpec | None = Field(default=None, description="Format of the key. Absent: the format that the key has.")
    value: FormatSpec | None = Field(default=None, description="Format of the value. Absent: json.")


class TopologySpec(Model):
    """What the application does with its records."""

    sources: list[SourceSpec] = Field(default_factory=list, description="Topics to read; at least one.")
    steps: list[StepSpec] = Field(default_factory=list, description="What happens to the records, in any order.")
    sinks: list[SinkSpec] = Field(default_factory=list, description="Topics to write.")
    python: str | None = Field(default=None, description="package.module:function that builds the topology.")
