"""How the bytes of a topology's stores are read, kind by kind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from operator import add

from streams_runtime.api.steps.format_names import REGISTERED
from streams_runtime.pipeline.without_spark.findings import StoreFormats
from streams_runtime.query.stores.views import StoreCodec
from streams_runtime.state.serdes import key_serde, value_serde
from streams_runtime.topology.nodes.aggregate_node import AggregateNode
from streams_runtime.topology.nodes.foreign_key_nodes import ForeignKeyJoinNode
from streams_runtime.topology.nodes.process_node import ProcessNode
from streams_runtime.topology.nodes.source_and_sink_nodes import Format, TableSourceNode
from streams_runtime.topology.nodes.table_nodes import ToTableNode
from streams_runtime.topology.nodes.window_kinds import SlidingWindows, TimeWindows
from streams_runtime.topology.partitioners import partition_by_of
from streams_runtime.topology.plan import Topology
from streams_runtime.topology.store_specs import StoreSpec


def codec_of(topology: Topology, store: str, formats: Callable[[], StoreFormats]) -> StoreCodec:
    """How the bytes of a store are read; `formats` know what Spark has found out, and are not needed for tables but
    those of formats in a registry.
    """
    sub, spec = topology.store(store)
    return replace(_codec(topology, store, spec, formats), partition_by=partition_by_of(topology, sub))


def _codec(topology: Topology, store: str, spec: StoreSpec, formats: Callable[[], StoreFormats]) -> StoreCodec:
    node = topology.node(spec.node)
    if isinstance(node, TableSourceNode) and node.value.name in REGISTERED:
        return StoreCodec(key_serde(node.key), formats().stored_value(node.name))
    if isinstance(node, TableSourceNode):
        return StoreCodec(key_serde(node.key), value_serde(node.value).decode)
    if isinstance(node, ProcessNode):
        declared = next(each for each in node.stores if each.name == store)
        return StoreCodec(
            key_serde(Format(declared.key_format)), value_serde(Format("json")).decode, _end_by_size(spec)
        )
    known = formats()
    if isinstance(node, ToTableNode | ForeignKeyJoinNode):
        return StoreCodec(known.key_serde(node.name), known.stored_value(node.name))
    windows = node.windows if isinstance(node, AggregateNode) else None
    end = windows.end_of if isinstance(windows, TimeWindows | SlidingWindows) else None
    return StoreCodec(known.key_serde(spec.node), known.aggregate(spec.node).finish_value, end)


def _end_by_size(spec: StoreSpec) -> Callable[[int], int] | None:
    size = None if spec.windowing is None else spec.windowing.size
    return None if size is None else partial(add, size)
