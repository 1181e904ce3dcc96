"""Another `partitionBy`, or another number of it, of records that state is made of."""

from __future__ import annotations

from collections.abc import Iterator

from streams_runtime.api.sql.sql_tree import parse_expression
from streams_runtime.topology.changes.change import Change
from streams_runtime.topology.nodes.source_and_sink_nodes import RepartitionSinkNode
from streams_runtime.topology.plan import Topology


def partitioner_changes(old: Topology, new: Topology) -> Iterator[Change]:
    """Repartition topics of both whose records go to other partitions than the state behind them was made in."""
    before = {node.topic: node for node in old.nodes if isinstance(node, RepartitionSinkNode)}
    for node in new.nodes:
        was = before.get(node.topic) if isinstance(node, RepartitionSinkNode) else None
        if was is None or not isinstance(node, RepartitionSinkNode) or _text(was) == _text(node):
            continue
        stores = [each.name for sub in new.subtopologies if node.topic in sub.source_topics for each in sub.stores]
        if stores:
            yield Change(
                "changed",
                f"repartition topic {node.topic}",
                f"its records had their partitions by {_text(was)} and have them by {_text(node)}",
                f"keys go to other partitions than those in which {', '.join(stores)} have what was processed before:"
                " there they begin anew, and the old rows stay where they are",
                "give the step and the stores behind it other names, which begin empty, or put partitionBy back",
            )


def _text(node: RepartitionSinkNode) -> str:
    if node.partition_by is None:
        return "their keys"
    return f"partitionBy {parse_expression(node.partition_by).sql(dialect='spark')}"
