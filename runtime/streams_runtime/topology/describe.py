"""A topology for people and for programs: Kafka Streams' own text, JSON, and a mermaid drawing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from streams_runtime.topology.nodes.all_nodes import Node
from streams_runtime.topology.nodes.foreign_key_nodes import SubscribeNode
from streams_runtime.topology.nodes.join_node import JoinNode
from streams_runtime.topology.nodes.regroup_node import RegroupNode
from streams_runtime.topology.nodes.source_and_sink_nodes import (
    RepartitionSinkNode,
    SinkNode,
    SourceNode,
    TableSourceNode,
)
from streams_runtime.topology.nodes.table_nodes import TableJoinNode
from streams_runtime.topology.plan import SubTopology, Topology


def as_text(topology: Topology) -> str:
    """As Kafka Streams' `Topology.describe()` prints it, with full names of internal topics."""
    lines = ["Topologies:"]
    for sub in topology.every_subtopology:
        tasks = " for global store (will not generate tasks)" if sub in topology.global_tables else ""
        lines.append(f"   Sub-topology: {sub.id}{tasks}")
        for node in sub.nodes:
            lines += _node_lines(node, sub)
        lines.append("")
    if topology.functions:
        lines.append("   Functions:")
        lines += [f"    {each.name} ({each.reference}) --> {each.returns}" for each in topology.functions]
    return "\n".join(lines).rstrip("\n")


def as_json(topology: Topology) -> dict[str, Any]:
    """The same as plain values; `to` of a node names its consumers."""
    return {
        "applicationId": topology.application_id,
        "functions": [
            {"name": each.name, "reference": each.reference, "returns": each.returns, "pandas": each.pandas}
            for each in topology.functions
        ],
        "subtopologies": [
            {
                "id": sub.id,
                "sourceTopics": list(sub.source_topics),
                "sinkTopics": list(sub.sink_topics),
                "repartitionSinks": list(sub.repartition_sinks),
                "stores": [
                    {
                        "name": store.name,
                        "kind": store.kind,
                        "changelogTopic": store.changelog_topic,
                        "sourceChangelog": store.source_changelog,
                        "global": store.global_,
                        "historyRetention": store.history,
                        "node": store.node,
                    }
                    for store in sub.stores
                ],
                "nodes": [_node_json(node, sub) for node in sub.nodes],
            }
            for sub in topology.every_subtopology
        ],
    }


def as_mermaid(topology: Topology) -> str:
    """A mermaid flowchart: topics, sub-topologies with their steps, stores."""
    ids = {node.name: f"n{index}" for index, node in enumerate(topology.nodes)}
    topics = {topic: f"t{index}" for index, topic in enumerate(all_topics(topology))}
    stores = {store.name: f"s{index}" for index, store in enumerate(topology.stores)}
    lines = ["flowchart LR"]
    lines += [f"  {key}[/{_quoted(topic)}/]" for topic, key in topics.items()]
    for sub in topology.every_subtopology:
        lines.append(f'  subgraph sub{sub.id}["{title_of(topology, sub)}"]')
        for node in sub.nodes:
            lines.append(f"    {ids[node.name]}[{_quoted(f'{node.name}<br/>{node.summary}')}]")
            lines += [f"    {ids[name]} --> {ids[node.name]}" for name in node.inputs]
        for store in sub.stores:
            lines.append(f"    {stores[store.name]}[({_quoted(store.name)})]")
            lines.append(f"    {ids[store.node]} --- {stores[store.name]}")
        lines.append("  end")
    for node in topology.nodes:
        if isinstance(node, JoinNode) and node.on is not None:
            lines.append(f"  {ids[node.table]} -.-> {ids[node.name]}")
        if node.read_topic is not None:
            lines.append(f"  {topics[node.read_topic]} --> {ids[node.name]}")
        lines += [f"  {ids[node.name]} --> {topics[topic]}" for topic in node.written_topics]
    return "\n".join(lines)


def title_of(topology: Topology, sub: SubTopology) -> str:
    """What a drawing calls a sub-topology."""
    return f"Sub-topology {sub.id}{', of every instance' if sub in topology.global_tables else ''}"


def _node_lines(node: Node, sub: SubTopology) -> Iterator[str]:
    consumers = ", ".join(consumer.name for consumer in sub.consumers_of(node.name)) or "none"
    if node.read_topic is not None:
        stores = f", stores: [{node.store}]" if isinstance(node, TableSourceNode) else ""
        by_pattern = isinstance(node, SourceNode) and node.by_pattern
        topics = node.read_topic if by_pattern else f"[{node.read_topic}]"
        yield f"    Source: {node.name} (topics: {topics}{stores})"
        yield f"      --> {consumers}"
        return
    if isinstance(node, SinkNode) and node.topic_by is not None:
        among = "" if node.topics is None else f", topics: [{', '.join(node.topics)}]"
        yield f"    Sink: {node.name} (topicBy: {node.topic_by}{among})"
    elif isinstance(node, SinkNode | RepartitionSinkNode | RegroupNode | SubscribeNode):
        chosen = node.partition_by if isinstance(node, SinkNode | RepartitionSinkNode) else None
        yield f"    Sink: {node.name} (topic: {node.topic}{'' if chosen is None else f', partitionBy: {chosen}'})"
    else:
        yield f"    Processor: {node.name} (stores: [{', '.join(stores_of(node, sub))}])"
        yield f"      --> {consumers}"
    yield f"      <-- {', '.join(node.inputs)}"


def _node_json(node: Node, sub: SubTopology) -> dict[str, Any]:
    topics = node.written_topics if node.read_topic is None else [node.read_topic]
    return {
        "name": node.name,
        "type": node.KIND,
        "does": node.summary,
        "topics": list(topics),
        "stores": stores_of(node, sub),
        "from": list(node.inputs),
        "to": [consumer.name for consumer in sub.consumers_of(node.name)],
    }


def stores_of(node: Node, sub: SubTopology) -> list[str]:
    """The stores that the node writes, or asks."""
    owners = [node.table if isinstance(node, JoinNode) else node.name]
    if isinstance(node, TableJoinNode):
        owners = [source for side in node.inputs for source in _sources(side, sub)]
    return [store.name for store in sub.stores if store.node in owners]


def _sources(name: str, sub: SubTopology) -> list[str]:
    """The nodes with a store, or else the sources, that the rows of a table come from."""
    if any(store.node == name for store in sub.stores):
        return [name]
    inputs = [each for node in sub.nodes if node.name == name for each in node.inputs]
    return [source for each in inputs for source in _sources(each, sub)] or [name]


def all_topics(topology: Topology) -> list[str]:
    """The topics that are read or written, and the patterns of topics, each once; changelogs are not among them."""
    patterns = topology.source_patterns
    read = (*topology.source_topics, *patterns, *topology.global_topics, *topology.repartition_topics)
    return list(dict.fromkeys((*read, *topology.sink_topics)))


def _quoted(text: str) -> str:
    """A mermaid label: `#` first, since it begins the escapes of the others."""
    for sign, escape in (("#", "#35;"), ('"', "#quot;")):
        text = text.replace(sign, escape)
    return f'"{text}"'
