"""Where the rows of a stage leave Spark: from frames of what it begins with to the nodes that end it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, Observation

from streams_runtime.batch.columns import ELEMENT
from streams_runtime.pipeline.steps.applied_nodes import Passing, applied, usable
from streams_runtime.pipeline.steps.global_lookups import with_lookup
from streams_runtime.pipeline.steps.merge_rows import to_merge
from streams_runtime.pipeline.steps.peek_observations import watched
from streams_runtime.pipeline.steps.stream_frames import in_order, numbered
from streams_runtime.pipeline.steps.stream_join_frames import both_sides, one_side
from streams_runtime.pipeline.topology_traits import Traits
from streams_runtime.pipeline.windowing.record_places import on_fork_path
from streams_runtime.topology.nodes.all_nodes import (
    AggregateNode,
    JoinNode,
    MergeNode,
    Node,
    RepartitionSinkNode,
    RepartitionSourceNode,
    SinkNode,
    TableSourceNode,
    inputs_of,
    streams_of,
)
from streams_runtime.topology.nodes.dedupe_node import DedupeNode
from streams_runtime.topology.nodes.stream_join_node import Side, StreamJoinNode
from streams_runtime.topology.nodes.stream_nodes import PeekNode
from streams_runtime.topology.nodes.table_nodes import ToTableNode
from streams_runtime.topology.plan import SubTopology

Frames = Mapping[str, DataFrame]
Later = JoinNode | StreamJoinNode | DedupeNode | MergeNode
"""Nodes whose records meet stores, or those of another stage, and go on in a further stage of the batch."""
Terminal = (
    Later
    | AggregateNode
    | TableSourceNode
    | RepartitionSourceNode
    | ToTableNode
    | RepartitionSinkNode
    | SinkNode
    | PeekNode
)


@dataclass(frozen=True, slots=True)
class OutputFrame:
    """A node at which rows leave Spark, and the rows that reach it. A peek is one when nothing follows it.

    So is a source of raw records, which Spark has no more to do with.
    """

    node: Terminal
    rows: DataFrame


def output_frames(
    traits: Traits, sub: SubTopology, frames: dict[str, DataFrame], peeks: dict[str, Observation] | None = None
) -> list[OutputFrame]:
    """The outlets of a stage that begins with `frames`, by the nodes that give their rows.

    `peeks` is filled: by a peek's name, where the first query that its records go through leaves what it has seen.
    """
    found = list(_passed_through(sub, frames))
    whole = frames
    for node in sub.nodes:
        if not inputs_of(node) or node.name in whole:
            continue
        frames = _on_fork_paths(traits, sub, node, whole)
        if any(name not in frames for name in streams_of(node)):
            # Of several stages: its other inputs come in those.
            found += _some_inputs(node, frames, sub.id in traits.forks) if node.name in traits.merges_stages else []
            continue
        if isinstance(node, ToTableNode):
            found.append(OutputFrame(node, frames[node.input]))
        if node.name in traits.over_changes and not isinstance(node, AggregateNode):
            continue  # and so is what follows it: they have no frames here
        if isinstance(node, ToTableNode):
            whole[node.name] = frames[node.input].where(usable(node))
        elif isinstance(node, Passing):
            whole[node.name] = applied_to(traits, node, frames)
            if isinstance(node, PeekNode) and peeks is not None:
                peeks[node.name] = Observation()
                whole[node.name] = watched(node, whole[node.name], peeks[node.name])
            if isinstance(node, PeekNode) and not sub.leads_out(node.name):
                found.append(OutputFrame(node, whole[node.name]))
        elif isinstance(node, StreamJoinNode):
            found.append(OutputFrame(node, both_sides(frames[node.input], frames[node.other], sub.id in traits.forks)))
        elif isinstance(node, JoinNode):
            found.append(OutputFrame(node, with_lookup(node, frames[node.input])))
        elif isinstance(node, AggregateNode | DedupeNode | RepartitionSinkNode | SinkNode):
            found.append(OutputFrame(node, frames[node.input]))
    return found


def applied_to(traits: Traits, node: Passing, frames: Frames) -> DataFrame:
    """The rows that the node gives, of those of its inputs."""
    if node.name in traits.reunions:
        ways = numbered({name: frames[name] for name in inputs_of(node)})
        return in_order(applied(node, ways, table=False))
    return applied(node, frames, inputs_of(node)[0] in traits.tables)


def _on_fork_paths(traits: Traits, sub: SubTopology, node: Node, frames: dict[str, DataFrame]) -> dict[str, DataFrame]:
    """The frames as the node takes them: where ways part that meet again, on its way."""
    of_sub = traits.forks.get(sub.id, {})
    mine = {name: of_sub[name, node.name] for name in streams_of(node) if (name, node.name) in of_sub}
    parted = {
        name: on_fork_path(frames[name], way) for name, way in mine.items() if ELEMENT in _columns_of(frames, name)
    }
    return frames | parted if parted else frames


def _passed_through(sub: SubTopology, frames: dict[str, DataFrame]) -> Iterator[OutputFrame]:
    """Tables' records, of which the usable ones are left in `frames`, and raw ones."""
    for node in sub.nodes:
        if isinstance(node, TableSourceNode) and node.name in frames:
            yield OutputFrame(node, frames[node.name])
            frames[node.name] = frames[node.name].where(usable(node))
        elif isinstance(node, RepartitionSourceNode) and node.raw and node.name in frames:
            yield OutputFrame(node, frames[node.name])


def _columns_of(frames: Frames, name: str) -> Sequence[str]:
    return frames[name].columns if name in frames else ()


def _some_inputs(node: Node, frames: Frames, keeps_order: bool) -> Iterator[OutputFrame]:
    """The inputs that are there, of a node that takes them in several stages."""
    if isinstance(node, MergeNode):
        yield from (OutputFrame(node, to_merge(frames[name])) for name in node.inputs if name in frames)
    if isinstance(node, StreamJoinNode):
        for name, side in ((node.input, Side.LEFT), (node.other, Side.RIGHT)):
            if name in frames:
                yield OutputFrame(node, one_side(frames[name], side, keeps_order))
