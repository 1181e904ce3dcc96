"""What Spark's analysis has found out about a topology, as values that need no Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from streams_runtime.pipeline.pushdown.after_join import AfterJoin
from streams_runtime.pipeline.pushdown.taken_over import TakenOver
from streams_runtime.state.aggregates.aggregate_state import AggregateState
from streams_runtime.state.serdes import Serde, key_serde, value_serde
from streams_runtime.topology.nodes.source_and_sink_nodes import Format, SinkNode

StoredValue = Callable[[bytes], object]
"""What a stored value is to a user. Raises ValueError for bytes that are no such value."""


class StoreFormats(Protocol):
    """Knows how stores' bytes are read: the compiler, and what was found out by it."""

    def key_serde(self, node: str) -> Serde:
        """How the keys of a node's rows are written."""

    def aggregate(self, node: str) -> AggregateState:
        """The state of an aggregate node."""

    def stored_value(self, node: str) -> StoredValue:
        """How the values of a table that is no aggregate lie in its store."""


@dataclass(frozen=True, slots=True)
class Findings:
    """By names of nodes: the formats of stores' keys and of tables' values, the states of aggregates, and the formats
    that sinks write. By numbers of sub-topologies: what the scan takes over of the first stage, and of those behind
    joins (by the join's name).
    """

    keys: Mapping[str, str]
    values: Mapping[str, str]
    aggregates: Mapping[str, AggregateState]
    sinks: Mapping[str, str]
    first_stages: Mapping[int, Sequence[TakenOver]]
    after_joins: Mapping[int, Mapping[str, AfterJoin]]

    def key_serde(self, node: str) -> Serde:
        """How the keys of a node's rows are written, of one that has a store."""
        return key_serde(Format(self.keys[node]))

    def aggregate(self, node: str) -> AggregateState:
        """The state of an aggregate node."""
        return self.aggregates[node]

    def stored_value(self, node: str) -> StoredValue:
        """How the values of a table that is no aggregate lie in its store."""
        return value_serde(Format(self.values[node])).decode

    def value_format(self, sink: SinkNode) -> str:
        """Name of the format that a sink writes."""
        return self.sinks[sink.name]

    def registered(self, sink: str, part: str) -> None:  # noqa: ARG002
        """What writes a sink's keys or values: nothing of a registry's, whose topologies are not kept."""
        return
