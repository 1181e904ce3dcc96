"""Findings as a JSON document, and back for the same topology."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streams_runtime.pipeline.without_spark.findings import Findings
from streams_runtime.pipeline.without_spark.value_codec import decoded, encoded, schema_of, text_of_schema
from streams_runtime.state.aggregates.aggregate_state import AggregateState
from streams_runtime.topology.nodes.aggregate_node import AggregateNode
from streams_runtime.topology.nodes.window_kinds import SessionWindows
from streams_runtime.topology.plan import Topology

Document = Mapping[str, Any]


def document_of(findings: Findings) -> Document:
    """The findings as JSON has them. Raises TypeError: a stage is of a class that is not kept."""
    return {
        "keys": dict(findings.keys),
        "values": dict(findings.values),
        "sinks": dict(findings.sinks),
        "aggregates": {
            name: {"ofDoubles": sorted(state.of_doubles), "given": text_of_schema(state.given)}
            for name, state in findings.aggregates.items()
        },
        "firstStages": {str(number): encoded(list(over)) for number, over in findings.first_stages.items()},
        "afterJoins": {
            str(number): {name: encoded(over) for name, over in joins.items()}
            for number, joins in findings.after_joins.items()
        },
    }


def findings_of(document: Document, topology: Topology) -> Findings:
    """The reverse of `document_of`.

    Raises what a document that `document_of` did not write for this topology leads to: KeyError, TypeError, ValueError,
    StreamsException.
    """
    return Findings(
        dict(document["keys"]),
        dict(document["values"]),
        {name: _state(name, kept, topology) for name, kept in document["aggregates"].items()},
        dict(document["sinks"]),
        {int(number): decoded(over, topology) for number, over in document["firstStages"].items()},
        {
            int(number): {name: decoded(over, topology) for name, over in joins.items()}
            for number, joins in document["afterJoins"].items()
        },
    )


def _state(name: str, kept: Mapping[str, Any], topology: Topology) -> AggregateState:
    node = topology.node(name)
    if not isinstance(node, AggregateNode):
        raise TypeError(f"{name} is no aggregate")
    merges = isinstance(node.windows, SessionWindows)
    state = AggregateState(node.aggregates, merges, frozenset(kept["ofDoubles"]))
    state.bind(schema_of(kept["given"]))
    return state
