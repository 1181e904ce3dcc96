"""Declared steps between streams and tables, as nodes of the plan."""

from __future__ import annotations

from streams_runtime.api.steps.topology_spec import StepSpec
from streams_runtime.topology.nodes.table_nodes import ToStreamNode, ToTableNode


def table_node(step: StepSpec, before: str, path: str) -> ToTableNode | ToStreamNode | None:
    """The step's node, which takes its records or rows from the node `before`; None for another kind of step."""
    if step.to_table is not None:
        return ToTableNode(step.name, before, step.to_table.store, path)
    return ToStreamNode(step.name, before, path) if step.to_stream is not None else None
