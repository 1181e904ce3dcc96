"""By what the records of a topic go to its partitions: their keys, or an expression (`partitionBy`)."""

from __future__ import annotations

from collections.abc import Iterator

from streams_runtime.api.sql.sql_tree import parse_expression
from streams_runtime.errors import Mistake
from streams_runtime.topology.nodes.source_and_sink_nodes import RepartitionSinkNode
from streams_runtime.topology.plan import SubTopology, Topology


def partition_by_of(topology: Topology, sub: SubTopology) -> str | None:
    """The expression by which the records that a sub-topology reads have their partitions; None: their keys.

    Of one with stores all topics have the same, or `partitioner_mistakes` says so.
    """
    return next((each.partition_by for each in _writers(topology, sub) if each.partition_by is not None), None)


def partitioner_mistakes(topology: Topology) -> Iterator[Mistake]:
    """Records that meet by key in a store, and have their partitions by different things: some would never meet."""
    for sub in topology.subtopologies:
        by_expression = [each for each in _writers(topology, sub) if each.partition_by is not None]
        if not sub.stores or not by_expression:
            continue
        first = by_expression[0]
        texts = {each.topic: _text(each.partition_by or "") for each in by_expression}
        for topic in sub.source_topics:
            if texts.get(topic) != texts[first.topic]:
                other = "their keys" if topic not in texts else f"partitionBy {texts[topic]}"
                found = (
                    f"records of {first.topic} have their partitions by partitionBy {texts[first.topic]}, and those of"
                    f" {topic}, which they meet by key, by {other}"
                )
                remedy = "send both through a repartition with equal partitionBy and partitions, or leave it out"
                yield Mistake(f"{first.path}.repartition.partitionBy", found, remedy)


def _writers(topology: Topology, sub: SubTopology) -> list[RepartitionSinkNode]:
    """The repartitions through which a sub-topology's records come, in the order of its topics."""
    by_topic = {node.topic: node for node in topology.nodes if isinstance(node, RepartitionSinkNode)}
    return [by_topic[topic] for topic in sub.source_topics if topic in by_topic]


def _text(expression: str) -> str:
    """Independent of blanks and the case of key words."""
    return parse_expression(expression).sql(dialect="spark")
