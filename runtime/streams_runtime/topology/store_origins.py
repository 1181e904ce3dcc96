"""What a store hangs on: the keys of the records that it keeps."""

from __future__ import annotations

from streams_runtime.api.sql.sql_tree import parse_expression
from streams_runtime.topology.nodes.foreign_key_nodes import ForeignKeyJoinNode
from streams_runtime.topology.nodes.join_node import JoinNode
from streams_runtime.topology.nodes.process_node import ProcessNode
from streams_runtime.topology.nodes.regroup_node import RegroupNode
from streams_runtime.topology.nodes.source_and_sink_nodes import SourceNode, TableSourceNode
from streams_runtime.topology.nodes.step_nodes import KeyByNode
from streams_runtime.topology.plan import Topology


def keys_of(topology: Topology, name: str) -> frozenset[str]:
    """What the records that leave the node `name` have as their keys, in words; several after a merge."""
    nodes = {node.name: node for node in topology.nodes}
    keys, seen, waiting = set(), set(), [name]
    while waiting:
        node = nodes[waiting.pop()]
        if node.name in seen:
            continue
        seen.add(node.name)
        match node:
            case KeyByNode(key=key):
                keys.add(f"keyBy {parse_expression(key).sql(dialect='spark')}")
            case ProcessNode(key=str() as key):
                keys.add(f"keys of {node.name}: {key}")
            case RegroupNode(key=key):
                keys.add(f"groupBy {parse_expression(key).sql(dialect='spark')}")
            case SourceNode(key=key) | TableSourceNode(key=key):
                keys.add(key.name if key.schema is None else f"{key.name} ({key.schema})")
            case JoinNode() | ForeignKeyJoinNode():
                waiting.append(node.input)
            case _:
                waiting += node.needs
    return frozenset(keys)
