"""A topology for people and for programs: Kafka Streams' own text, JSON, and a mermaid drawing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from streams_runtime.topology.plan import (
    AggregateNode,
    KeyByNode,
    MergeNode,
    Node,
    RepartitionSinkNode,
    RepartitionSourceNode,
    SinkNode,
    SourceNode,
    SubTopology,
    TableSourceNode,
    TimeWindows,
    Topology,
    TransformNode,
    inputs_of,
)


def as_text(topology: Topology) -> str:
    """As Kafka Streams' `Topology.describe()` prints it, with full names of internal topics."""
    lines = ["Topologies:"]
    for sub in topology.subtopologies:
        lines.append(f"   Sub-topology: {sub.id}")
        for node in sub.nodes:
            lines += _node_lines(node, sub)
        lines.append("")
    return "\n".join(lines).rstrip("\n")


def as_json(topology: Topology) -> dict[str, Any]:
    """The same as plain values; `to` of a node names its consumers."""
    return {
        "applicationId": topology.application_id,
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
                        "node": store.node,
                    }
                    for store in sub.stores
                ],
                "nodes": [_node_json(node, sub) for node in sub.nodes],
            }
            for sub in topology.subtopologies
        ],
    }


def as_mermaid(topology: Topology) -> str:
    """A mermaid flowchart: topics, sub-topologies with their steps, stores."""
    ids = {node.name: f"n{index}" for index, node in enumerate(topology.nodes)}
    topics = {topic: f"t{index}" for index, topic in enumerate(_all_topics(topology))}
    stores = {store.name: f"s{index}" for index, store in enumerate(topology.stores)}
    lines = ["flowchart LR"]
    lines += [f"  {key}[/{_quoted(topic)}/]" for topic, key in topics.items()]
    for sub in topology.subtopologies:
        lines.append(f'  subgraph sub{sub.id}["Sub-topology {sub.id}"]')
        for node in sub.nodes:
            lines.append(f"    {ids[node.name]}[{_quoted(f'{node.name}<br/>{_does(node)}')}]")
            lines += [f"    {ids[name]} --> {ids[node.name]}" for name in inputs_of(node)]
        for store in sub.stores:
            lines.append(f"    {stores[store.name]}[({_quoted(store.name)})]")
            lines.append(f"    {ids[store.node]} --- {stores[store.name]}")
        lines.append("  end")
    for node in topology.nodes:
        if isinstance(node, SourceNode | TableSourceNode | RepartitionSourceNode):
            lines.append(f"  {topics[node.topic]} --> {ids[node.name]}")
        if isinstance(node, SinkNode | RepartitionSinkNode):
            lines.append(f"  {ids[node.name]} --> {topics[node.topic]}")
    return "\n".join(lines)


def _node_lines(node: Node, sub: SubTopology) -> Iterator[str]:
    consumers = ", ".join(consumer.name for consumer in sub.consumers_of(node.name)) or "none"
    if isinstance(node, SourceNode | TableSourceNode | RepartitionSourceNode):
        stores = f", stores: [{node.store}]" if isinstance(node, TableSourceNode) else ""
        yield f"    Source: {node.name} (topics: [{node.topic}]{stores})"
        yield f"      --> {consumers}"
        return
    if isinstance(node, SinkNode | RepartitionSinkNode):
        yield f"    Sink: {node.name} (topic: {node.topic})"
    else:
        yield f"    Processor: {node.name} (stores: [{_store_of(node) or ''}])"
        yield f"      --> {consumers}"
    yield f"      <-- {', '.join(inputs_of(node))}"


def _node_json(node: Node, sub: SubTopology) -> dict[str, Any]:
    topics = [node.topic] if not isinstance(node, TransformNode | KeyByNode | MergeNode | AggregateNode) else []
    return {
        "name": node.name,
        "type": _TYPES[type(node)],
        "does": _does(node),
        "topics": topics,
        "stores": [store] if (store := _store_of(node)) else [],
        "from": list(inputs_of(node)),
        "to": [consumer.name for consumer in sub.consumers_of(node.name)],
    }


_TYPES: dict[type[Node], str] = {
    SourceNode: "source",
    TableSourceNode: "table-source",
    RepartitionSourceNode: "repartition-source",
    TransformNode: "transform",
    KeyByNode: "key-by",
    MergeNode: "merge",
    AggregateNode: "aggregate",
    RepartitionSinkNode: "repartition-sink",
    SinkNode: "sink",
}


_PLAIN: dict[type[Node], str] = {
    SourceNode: "read",
    TableSourceNode: "read as a table",
    RepartitionSourceNode: "read",
    MergeNode: "merge",
    RepartitionSinkNode: "write",
    SinkNode: "write",
}


def _store_of(node: Node) -> str | None:
    return node.store if isinstance(node, AggregateNode | TableSourceNode) else None


def _does(node: Node) -> str:
    """What the node does, in the user's own expressions."""
    match node:
        case TransformNode():
            where = [f"where {node.where}"] if node.where is not None else []
            select = [f"select {', '.join(name for name, _ in node.select)}"] if node.select is not None else []
            return "; ".join(where + select)
        case KeyByNode():
            return f"keyBy {node.key}"
        case AggregateNode():
            calls = (f"{each.column} = {each.function}({each.argument or '*'})" for each in node.aggregates)
            return f"aggregate {', '.join(calls)}{_windows(node.windows)}"
        case _:
            return _PLAIN[type(node)]


def _windows(windows: TimeWindows | None) -> str:
    if windows is None:
        return ""
    kind = f"{windows.size} ms" if windows.advance == windows.size else f"{windows.size} ms every {windows.advance} ms"
    final = ", each once it has closed" if windows.only_final else ""
    return f" in windows of {kind}, grace {windows.grace} ms{final}"


def _all_topics(topology: Topology) -> list[str]:
    return list(dict.fromkeys((*topology.source_topics, *topology.repartition_topics, *topology.sink_topics)))


def _quoted(text: str) -> str:
    """A mermaid label: `#` first, since it begins the escapes of the others."""
    for sign, escape in (("#", "#35;"), ('"', "#quot;")):
        text = text.replace(sign, escape)
    return f'"{text}"'
