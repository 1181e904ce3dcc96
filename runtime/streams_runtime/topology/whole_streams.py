"""Which nodes are given every record that their task reads, so that nobody has to ask what else was there."""

from __future__ import annotations

from streams_runtime.topology.nodes.source_and_sink_nodes import RepartitionSourceNode, SourceNode
from streams_runtime.topology.nodes.step_nodes import MergeNode, TransformNode
from streams_runtime.topology.nodes.stream_nodes import HeadersNode, PeekNode
from streams_runtime.topology.plan import SubTopology

_PASSING = SourceNode | RepartitionSourceNode | TransformNode | PeekNode | HeadersNode | MergeNode


def is_given_all(sub: SubTopology, name: str) -> bool:
    """Whether one row reaches the node of each readable record of the task, with the record's own topic and time."""
    by_name = {node.name: node for node in sub.nodes}
    topics: list[str] = []
    waiting = list(by_name[name].streams)
    while waiting:
        node = by_name[waiting.pop()]
        if not isinstance(node, _PASSING) or (isinstance(node, TransformNode) and node.where is not None):
            return False
        if isinstance(node, SourceNode | RepartitionSourceNode):
            topics.append(node.topic)
        waiting += node.streams
    return sorted(topics) == sorted(
        n.read_topic for n in sub.nodes if n.read_topic is not None
    )  # none that goes elsewhere, and none on two ways
