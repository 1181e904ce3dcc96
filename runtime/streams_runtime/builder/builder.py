"""`StreamsBuilder`: what org.apache.kafka.streams.StreamsBuilder is in Java, for a topology in Spark SQL."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from streams_runtime.api.load import Reading, read_application
from streams_runtime.api.models import GROUP, KIND, VERSION
from streams_runtime.api.topology_spec import TopologySpec
from streams_runtime.builder.formats import Format, format_document
from streams_runtime.builder.functions import reference_of
from streams_runtime.builder.global_tables import GlobalKTable
from streams_runtime.builder.recording import Recording
from streams_runtime.builder.streams import KStream, KTable
from streams_runtime.errors import InvalidApplicationException


class StreamsBuilder:
    """Makes the model that a file declares as sources, steps and sinks.

    A function without arguments that returns one is what `topology: {python: "module:function"}` names. It has to make
    the same topology each time that it is called.
    """

    def __init__(self) -> None:
        self._recording = Recording()

    def stream(
        self,
        topic: str,
        *,
        value: Format,
        key: Format | None = None,
        timestamp: str | None = None,
        name: str | None = None,
    ) -> KStream:
        """The records of a topic. `timestamp`: expression for a record's time. Absent: `name` is the topic's."""
        return KStream(self._recording, self._source("stream", topic, value, key, timestamp, name))

    def table(
        self,
        topic: str,
        *,
        value: Format,
        store: str,
        key: Format | None = None,
        timestamp: str | None = None,
        name: str | None = None,
    ) -> KTable:
        """The last value of each key of a topic, in `store`."""
        return KTable(self._recording, self._source("table", topic, value, key, timestamp, name, {"store": store}))

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
        """The same, the whole of it in every instance: streams are joined with it by any expression."""
        table: dict[str, str | bool] = {"store": store, "global": True}
        made = self._source("global_table", topic, value, key, timestamp, name, table)
        return GlobalKTable(self._recording, made)

    def udf(self, name: str, function: Callable[..., Any], returns: str) -> None:
        """Have expressions call `function` as `name`, with the values of one record.

        It is a plain function of a module; `returns` is the type of what it gives, as Spark DDL. Pods find it by its
        module's and its own name.
        """
        self._recording.add_function("udf", name, {"python": reference_of(function), "returns": returns})

    def pandas_udf(self, name: str, function: Callable[..., Any], returns: str) -> None:
        """The same with a function that is called with a pandas Series for each argument, and returns a Series."""
        self._recording.add_function("pandas_udf", name, {"pandas": reference_of(function), "returns": returns})

    @property
    def document(self) -> dict[str, Any]:
        """The topology as it stands in a resource, unchecked."""
        return self._recording.document

    @property
    def origins(self) -> dict[str, str]:
        """The call that each source, step and sink comes from, by its path in a resource."""
        return dict(self._recording.origins)

    def build(self) -> TopologySpec:
        """The topology, checked as that of a file.

        Raises:
            InvalidApplicationException: lists every mistake, each with the call that it comes from.
        """
        reading = self.reading()
        if reading.application is None:
            raise InvalidApplicationException(reading.told)
        return reading.application.spec.topology

    def reading(self, name: str = "topology") -> Reading:
        """An application of this name that has this topology, and nothing else that differs from the defaults."""
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
        topic: str,
        value: Format,
        key: Format | None,
        timestamp: str | None,
        name: str | None,
        table: dict[str, str | bool] | None = None,
    ) -> str:
        given = name if name is not None else topic
        fields = {"name": given, "topic": topic, "key": format_document(key), "value": format_document(value)}
        self._recording.add("sources", method, {**fields, "timestamp": timestamp, "table": table})
        return given
