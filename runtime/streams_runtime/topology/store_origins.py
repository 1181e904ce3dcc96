"""What stores and internal topics hang on: the keys of a store, and the topics that decide a partition count."""

from __future__ import annotations

from collections.abc import Mapping

from streams_runtime.api.sql.sql_tree import parse_expression
from streams_runtime.topology.nodes.all_nodes import JoinNode, KeyByNode, SourceNode, TableSourceNode, needed_by
from streams_runtime.topology.nodes.foreign_key_nodes import ForeignKeyJoinNode, InternalSink
from streams_runtime.topology.partition_counts import copartitioned
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
            case SourceNode(key=key) | TableSourceNode(key=key):
                keys.add(key.name if key.schema is None else f"{key.name} ({key.schema})")
            case JoinNode() | ForeignKeyJoinNode():
                waiting.append(node.input)
            case _:
                waiting += needed_by(node)
    return frozenset(keys)


def deciding_topics(topology: Topology) -> Mapping[str, frozenset[str]]:
    """For each internal topic the user's topics whose partition counts decide its own."""
    peers = {topic: group for group in copartitioned(topology) for topic in group}
    users = frozenset(topology.source_topics)
    between = {node.topic for node in topology.nodes if isinstance(node, InternalSink)}

    def upstream(topics: tuple[str, ...]) -> frozenset[str]:
        seen: set[str] = set()
        waiting = list(topics)
        while waiting:
            topic = waiting.pop()
            if topic in seen:
                continue
            seen.add(topic)
            if topic in between:
                # The table that reads it says how many partitions it has, whoever writes it.
                waiting += users.intersection(peers[topic])
            elif topic not in users:
                writers = (sub for sub in topology.subtopologies if topic in sub.repartition_sinks)
                waiting += [each for sub in writers for each in sub.source_topics]
                waiting += peers.get(topic, ())
        return users & seen

    found = {topic: upstream((topic,)) for topic in topology.repartition_topics}
    for sub in topology.subtopologies:
        for store in sub.stores:
            if not store.source_changelog:
                found[store.changelog_topic] = upstream(sub.source_topics)
    return found
