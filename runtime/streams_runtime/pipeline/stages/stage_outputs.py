"""Where the rows of a stage leave Spark: from frames of what it begins with to the nodes that end it."""

from __future__ import annotations

from streams_runtime.batch.columns import ELEMENT
from streams_runtime.pipeline.kinds.spark_kinds import kind_of
from streams_runtime.pipeline.spark.observed import Observed
from streams_runtime.pipeline.stages.stage_frames import Frames, OutputFrame, StageFrames
from streams_runtime.pipeline.topology_traits import Traits
from streams_runtime.pipeline.windowing.record_ordinals import on_fork_path
from streams_runtime.topology.nodes.all_nodes import Node
from streams_runtime.topology.plan import SubTopology


def output_frames(
    traits: Traits,
    sub: SubTopology,
    frames: Frames,
    peeks: dict[str, Observed] | None = None,
    is_whole: bool = False,
) -> list[OutputFrame]:
    """The output frames of a stage that begins with `frames`, by the nodes that give their rows.

    `peeks` is filled: by a peek's name, where a query that its records go through leaves what it has seen.
    `is_whole`: see StageFrames.
    """
    stage = StageFrames(traits, sub, dict(frames), peeks, is_whole)
    for node in sub.nodes:
        if node.name in frames:
            kind_of(node).begin(node, stage)
    for node in sub.nodes:
        if node.inputs and node.name not in frames:
            _run_through(node, stage)
    return stage.outputs


def _run_through(node: Node, stage: StageFrames) -> None:
    kind, given = kind_of(node), _on_fork_paths(node, stage)
    if any(name not in given for name in node.streams):
        if node.name in stage.traits.merges_stages:
            kind.take_some(node, given, stage)  # its other inputs come in other stages
    elif kind.KEEPS_ROWS or node.name not in stage.traits.over_changes:
        kind.take(node, given, stage)
    # What is worked out change by change has no frames here, and neither has what follows it.


def _on_fork_paths(node: Node, stage: StageFrames) -> Frames:
    """The frames as the node takes them: where ways part that meet again, on its way."""
    of_sub, given = stage.traits.forks.get(stage.sub.id, {}), stage.given
    mine = {name: of_sub[name, node.name] for name in node.streams if (name, node.name) in of_sub and name in given}
    parted = {name: on_fork_path(given[name], way) for name, way in mine.items() if ELEMENT in given[name].columns}
    return {**given, **parted} if parted else given
