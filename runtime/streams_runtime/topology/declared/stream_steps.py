"""Declared steps that only streams have, as nodes of the plan."""

from __future__ import annotations

from datetime import timedelta

from streams_runtime.api.flow.known_columns import key_format, type_named
from streams_runtime.api.flow.step_graph import outputs_of_step
from streams_runtime.api.reading.field_paths import under
from streams_runtime.api.steps.process_spec import ProcessorStoreSpec, ProcessSpec
from streams_runtime.api.steps.topology_spec import StepSpec
from streams_runtime.errors import TopologyException
from streams_runtime.topology.nodes.dedupe_node import DedupeNode
from streams_runtime.topology.nodes.process_node import OutputNode, ProcessNode, ProcessorStore
from streams_runtime.topology.nodes.stream_nodes import BranchNode, FlatMapNode, HeadersNode, PeekNode, SplitNode
from streams_runtime.topology.store_specs import Windowing


def stream_node(
    step: StepSpec, before: str, path: str
) -> FlatMapNode | SplitNode | PeekNode | HeadersNode | DedupeNode | ProcessNode | None:
    """The step's node, which takes its records from the node `before`; None for another kind of step."""
    if step.flat_map is not None:
        return FlatMapNode(step.name, before, step.flat_map.explode, step.flat_map.as_, path)
    if step.split is not None:
        return SplitNode(step.name, before, tuple(branch.where for branch in step.split), path)
    if step.peek is not None:
        peek = step.peek
        return PeekNode(step.name, before, peek.log, peek.level, peek.at_most, peek.metric, peek.value, path)
    if step.headers is not None:
        return HeadersNode(step.name, before, tuple(step.headers.items()), path)
    if step.dedupe is not None:
        return DedupeNode(step.name, before, step.dedupe.by, _ms(step.dedupe.within), path)
    return None if step.process is None else _process_node(step.name, before, step.process, path)


def _process_node(name: str, before: str, process: ProcessSpec, path: str) -> ProcessNode:
    stores = []
    for store, spec in sorted(process.stores.items()):
        kind = key_format(type_named(spec.key))
        if kind is None:
            raise TopologyException(f"{under(path, 'process', 'stores', store, 'key')}: keys of no format")
        stores.append(ProcessorStore(store, kind, spec.value, _windowing(spec)))
    outputs = tuple(process.outputs or ())
    return ProcessNode(name, before, process.python, process.value, process.key, tuple(stores), path, outputs)


def _windowing(store: ProcessorStoreSpec) -> Windowing | None:
    if store.session is not None:
        return Windowing(_ms(store.session.retention))
    return None if store.window is None else Windowing(*map(_ms, (store.window.retention, store.window.size)))


def _ms(duration: timedelta) -> int:
    return duration // timedelta(milliseconds=1)


def branches_of(step: StepSpec) -> list[BranchNode] | list[OutputNode]:
    """The branches of a split, the default last; the outputs of a process step; none of another step."""
    if step.process is not None and step.process.outputs:
        return [OutputNode(name, step.name, number) for number, name in enumerate(outputs_of_step(step))]
    if step.split is None:
        return []
    conditions = [*(branch.where for branch in step.split), None]
    named = enumerate(zip(outputs_of_step(step), conditions, strict=False))  # without a default there is one name less
    return [BranchNode(name, step.name, number, condition) for number, (name, condition) in named]
