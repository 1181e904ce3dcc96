"""`StreamsBuilder`: what org.apache.kafka.streams.StreamsBuilder is in Java, for a topology in Spark SQL."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

from streams_runtime.api.reading.load import Reading, read_application
from streams_runtime.api.spec.resource import GROUP, KIND, VERSION
from streams_runtime.api.steps.topology_spec import TopologySpec
from streams_runtime.builder.builder_formats import Format, format_document
from streams_runtime.builder.builder_global_tables import GlobalKTable
from streams_runtime.builder.function_names import reference_of
from streams_runtime.builder.recording import Recording
from streams_runtime.builder.streams_and_tables import KStream, KTable
from streams_runtime.builder.window_arguments import Time
from streams_runtime.errors import ConfigException, InvalidApplicationException


class StreamsBuilder:
    """Builds a topology in Python: the same model that a file declares as sources, steps and sinks (StreamsBuilder).

    A function without arguments that returns one is what `topology: {python: "module:function"}` names; it has to make
    the same topology at every call. Expressions are Spark SQL. A call that can't be recorded raises ConfigException
    with its file and line; mistakes in names, columns and formats are found by `build`.
    """

    def __init__(self) -> None:
        self._recording = Recording()

    def stream(
        self,
        topic: str | re.Pattern[str],
        *,
        value: Format,
        key: Format | None = None,
        timestamp: str | None = None,
        name: str | None = None,
        offset_reset: str | timedelta | None = None,
    ) -> KStream:
        """Read a topic as a stream of records (StreamsBuilder#stream), or every topic that fits a pattern.

        A pattern is `re.compile("orders-.*")`, without flags and in RE2's syntax; with it the source needs a `name`.
        `value` and `key` are formats; without `key` the key stays bytes. `timestamp` is an expression for a record's
        time, a TIMESTAMP or milliseconds since 1970; without it the time is the one in Kafka. `name` is what steps and
        joins call the source; without it the topic's name, with a number behind it for a further stream of the topic
        (with equal settings all are one source). `offset_reset` says where partitions begin in which the group has no
        committed offset: `earliest`, `latest`, `none`, or how far back from now; without it the
        application's spec.kafka.offsetReset does (AutoOffsetReset).

        Raises:
            ConfigException: a value can't stand in a resource, such as a Column; write it as text. Or a pattern has no
                name, or flags.
        """
        made = self._source("stream", topic, value, key, timestamp, name, offset_reset=offset_reset)
        return KStream(self._recording, made)

    def table(
        self,
        topic: str,
        *,
        value: Format,
        store: str,
        key: Format | None = None,
        timestamp: str | None = None,
        name: str | None = None,
        history_retention: Time | None = None,
    ) -> KTable:
        """Read a topic as a table: the last value of each key, kept in `store` (StreamsBuilder#table).

        With `history_retention` the store also keeps what each key had, so long back in stream time
        (Stores#persistentVersionedKeyValueStore, KIP-889): streams are joined with what was valid at their records'
        times. The other parameters are those of `stream`. Each task keeps the partition that it reads.

        Raises:
            ConfigException: a value can't stand in a resource, such as a Column; write it as text.
        """
        table = {"store": store, "historyRetention": history_retention}
        return KTable(self._recording, self._source("table", topic, value, key, timestamp, name, table))

    def global_table(
        self,
        topic: str,
        *,
        value: Format,
        store: str,
        key: Format | None = None,
        timestamp: str | None = None,
        name: str | None = None,
    ) -> GlobalKTable:
        """Read a topic as a table that every instance keeps whole, in `store` (StreamsBuilder#globalTable).

        Streams are joined with it by any expression, whatever their keys and partitions. The other parameters are those
        of `stream`.

        Raises:
            ConfigException: a value can't stand in a resource, such as a Column; write it as text.
        """
        table = {"store": store, "global": True}
        made = self._source("global_table", topic, value, key, timestamp, name, table)
        return GlobalKTable(self._recording, made)

    def udf(self, name: str, function: Callable[..., Any], returns: str) -> None:
        """Let expressions call the Python function `function` as `name`, with the values of one record.

        `function` is a plain function of a module, which pods import by its module's name and its own. `returns` is its
        type as Spark DDL, such as `STRING` or `ARRAY<DOUBLE>`. It must give the same result for the same values.

        Raises:
            ConfigException: there is a function of this name, or other processes can't import this one; the message
                says why.
        """
        self._recording.add_function("udf", name, {"python": reference_of(function), "returns": returns})

    def pandas_udf(self, name: str, function: Callable[..., Any], returns: str) -> None:
        """Let expressions call `function` as `name`, with a pandas Series for each argument: faster for much data.

        It returns a Series of as many values. Parameters and errors are those of `udf`.
        """
        self._recording.add_function("pandas_udf", name, {"pandas": reference_of(function), "returns": returns})

    @property
    def document(self) -> dict[str, Any]:
        """The topology as plain data, as it stands under `spec.topology` of a resource; nothing is checked."""
        return self._recording.document

    @property
    def origins(self) -> dict[str, str]:
        """The call behind each source, step and sink, as `file:line method(name)`, by its path in a resource."""
        return dict(self._recording.origins)

    def build(self) -> TopologySpec:
        """Return the topology, checked as one that stands in a file (StreamsBuilder#build).

        Raises:
            InvalidApplicationException: lists every mistake, each with the call that it comes from.
        """
        reading = self.reading()
        if reading.application is None:
            raise InvalidApplicationException(reading.reported)
        return reading.application.spec.topology

    def reading(self, name: str = "topology") -> Reading:
        """Read the topology as that of an application called `name`, with defaults in every other field.

        Returns the application, or all mistakes in its place; raises nothing for them. `build` is the method for users.
        """
        resource = {
            "apiVersion": f"{GROUP}/{VERSION}",
            "kind": KIND,
            "metadata": {"name": name},
            "spec": {"topology": self.document},
        }
        return replace(read_application(resource), origins=self.origins)

    def _source(
        self,
        method: str,
        topic: str | re.Pattern[str],
        value: Format,
        key: Format | None,
        timestamp: str | None,
        name: str | None,
        table: Mapping[str, Any] | None = None,
        offset_reset: str | timedelta | None = None,
    ) -> str:
        given = name if name is not None else self._recording.source_name(_named(topic))
        read = {"topic": topic} if isinstance(topic, str) else {"topicPattern": _pattern(topic)}
        fields = {"name": given, **read, "key": format_document(key), "value": format_document(value)}
        more = {"timestamp": timestamp, "table": table, "offsetReset": offset_reset}
        self._recording.add("sources", method, {**fields, **more})
        return given


def _named(topic: str | re.Pattern[str]) -> str:
    if isinstance(topic, str):
        return topic
    raise ConfigException(f"the stream of the pattern {topic.pattern!r} has no name; give it one: name=…")


def _pattern(topic: re.Pattern[str]) -> str:
    if topic.flags != re.compile("").flags:
        raise ConfigException(
            f"the pattern {topic.pattern!r} has flags, which a resource can't say; write them into it, such as (?i)"
        )
    return topic.pattern
