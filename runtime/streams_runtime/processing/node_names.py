"""What measurements of a sub-topology are called: the names that a user has given, and what is at its ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from streams_runtime.topology.nodes.all_nodes import Node
from streams_runtime.topology.nodes.regroup_node import RegroupNode
from streams_runtime.topology.nodes.source_and_sink_nodes import (
    RepartitionSinkNode,
    RepartitionSourceNode,
    SinkNode,
)
from streams_runtime.topology.plan import SubTopology


@dataclass(frozen=True, slots=True)
class NodeNames:
    """`steps`: of each node the declared step or source that it is part of; `topics`: what each source reads; `sinks`:
    who writes each topic; `ends`: the nodes whose records end in a store.
    """

    steps: Mapping[str, str]
    topics: Mapping[str, str]
    sinks: Mapping[str, str]
    ends: frozenset[str]

    def step(self, node: str) -> str:
        """The declared step or source of a node; of anything else the name that it has."""
        return self.steps.get(node, node)

    @classmethod
    def of(cls, sub: SubTopology) -> NodeNames:
        """Those of a sub-topology."""
        sinks: dict[str, str] = {}
        for node in sub.nodes:
            if isinstance(node, SinkNode | RepartitionSinkNode | RegroupNode):
                for topic in node.written_topics:
                    sinks.setdefault(topic, node.name)
        return cls(
            {node.name: declared_name(node) for node in sub.nodes},
            {node.name: node.read_topic for node in sub.nodes if node.read_topic is not None},
            sinks,
            frozenset(
                node.name
                for node in sub.nodes
                if node.inputs
                and not (node.written_topics or isinstance(node, SinkNode))
                and not sub.consumers_of(node.name)
            ),
        )


def declared_name(node: Node) -> str:
    """The name of the step or the source that a node was made of."""
    match node:
        case RepartitionSinkNode() | RegroupNode():
            return node.name.removesuffix("-repartition")
        case RepartitionSourceNode():
            return node.name.removesuffix("-repartition-source")
        case _:
            return node.name
