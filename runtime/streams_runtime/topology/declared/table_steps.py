"""Declared steps between streams and tables, as nodes of the plan."""

from __future__ import annotations

from datetime import timedelta

from streams_runtime.api.reading.legal_names import suppressed_part
from streams_runtime.api.steps.table_steps_spec import SuppressSpec, ToTableSpec
from streams_runtime.api.steps.topology_spec import StepSpec, TableSpec
from streams_runtime.topology.nodes.suppress_node import SuppressNode
from streams_runtime.topology.nodes.table_nodes import ToStreamNode, ToTableNode


def table_nodes(step: StepSpec, before: str, path: str) -> tuple[ToTableNode | ToStreamNode | SuppressNode, ...]:
    """The step's nodes, which take their records or rows from the node `before`; none for another kind of step.

    The last one is called as the step.
    """
    if step.to_table is not None:
        return (ToTableNode(step.name, before, step.to_table.store, path, history_of(step.to_table)),)
    if step.to_stream is None:
        return ()
    if step.to_stream.suppress is None:
        return (ToStreamNode(step.name, before, path),)
    changes = ToStreamNode(suppressed_part(step.name), before, path)
    return (changes, _suppressed(step.name, changes.name, step.to_stream.suppress, path))


def history_of(table: ToTableSpec | TableSpec) -> int | None:
    """For how long a table keeps what its keys had, in ms; None: it has no history."""
    retention = table.history_retention
    return None if retention is None else retention // timedelta(milliseconds=1)


def _suppressed(name: str, before: str, suppress: SuppressSpec, path: str) -> SuppressNode:
    within = suppress.within // timedelta(milliseconds=1)
    if suppress.buffer is None:
        return SuppressNode(name, before, within, None, None, "emitEarly", path)
    buffer = suppress.buffer
    return SuppressNode(name, before, within, buffer.records, buffer.bytes, buffer.full, path)
