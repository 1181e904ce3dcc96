"""What streams and tables of a builder have in common: steps that both take, and a name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self

from streams_runtime.builder.builder_formats import Format, format_document
from streams_runtime.builder.builder_global_tables import GlobalKTable
from streams_runtime.builder.recording import Recording, refused


class Flow:
    """What streams and tables have in common. `name` is what expressions of joins call it.

    Each method adds a step and returns what flows out of it; the stream or table itself stays usable. A step's `name`
    has to be unique; without one it is made of its input's and the method's. Every method raises ConfigException, with
    the call's file and line, for a value that can't stand in a resource, such as a Column: write it as text.
    """

    def __init__(self, recording: Recording, name: str) -> None:
        self.name = name
        self._recording = recording

    def filter(self, condition: str, *, name: str | None = None) -> Self:
        """Keep the records for which the Spark SQL `condition` is true (KStream#filter, KTable#filter).

        Of a table, a row for which it is not true is deleted. Raises as every method of Flow does.
        """
        return self._also("filter", name, {"where": condition})

    def select(
        self, columns: Mapping[str, str] | Literal["*"] | None = None, /, *, name: str | None = None, **more: str
    ) -> Self:
        """Replace the value: a Spark SQL expression for each column, as a mapping or by keyword (mapValues).

        With "*", alone or as a column that is "*", the columns that are there stay, but for those that are named. The
        key stays. Raises as every method of Flow does.
        """
        given = {columns: columns} if isinstance(columns, str) else columns or {}
        return self._also("select", name, {"select": {**given, **more}})

    map_values = select

    def to(
        self,
        topic: str | None = None,
        *,
        topic_by: str | None = None,
        topics: Sequence[str] | None = None,
        partition_by: str | None = None,
        key: Format | None = None,
        value: Format | None = None,
    ) -> None:
        """Write the records, or a table's changes, to a topic that exists (KStream#to).

        Instead of a `topic`, the Spark SQL expression `topic_by` gives each record its own (a TopicNameExtractor), one
        of `topics` if there is such a list. `partition_by` is an expression that gives each record its partition (a
        StreamPartitioner); null: its key does. `key` and `value` are formats. Without them the key keeps its format and
        the value is JSON. Raises as every method of Flow does.
        """
        where = {"topic": topic, "topicBy": topic_by, "topics": None if topics is None else list(topics)}
        where["partitionBy"] = partition_by
        formats = {"key": format_document(key), "value": format_document(value)}
        self._recording.add("sinks", "to", {"from": self.name, **where, **formats})

    def _also(self, method: str, name: str | None, fields: Mapping[str, Any]) -> Self:
        return type(self)(self._recording, self._step(method, name, fields))

    def _step(self, method: str, name: str | None, fields: Mapping[str, Any], inputs: bool = True) -> str:
        given = name if name is not None else self._recording.derived(f"{self.name}-{method.replace('_', '-')}")
        taken = {"from": self.name} if inputs else {}
        self._recording.add("steps", method, {"name": given, **taken, **fields})
        return given

    def _checked(self, other: Flow | GlobalKTable) -> str:
        if other._recording is not self._recording:
            raise refused(f"{other.name!r} belongs to another StreamsBuilder; take both from one builder")
        return other.name
