"""The classes that a file names for its aggregates and processors: loaded and checked before anything is started."""

from __future__ import annotations

from pathlib import Path

from streams_runtime.api import Reading
from streams_runtime.errors import Mistake
from streams_runtime.state.aggregates.user_classes.user_class import user_class_mistakes
from streams_runtime.state.processor_class import processor_class_mistakes
from streams_runtime.topology.declared.build_topology import build_topology
from streams_runtime.topology.nodes.aggregate_node import AggregateNode
from streams_runtime.topology.nodes.process_node import ProcessNode
from streams_runtime.topology.nodes.window_kinds import SessionWindows


def class_mistakes(reading: Reading, file: Path) -> list[Mistake]:
    """What is wrong with them, each at its field; none of a file with mistakes. Modules beside the file are found."""
    if reading.application is None:
        return []
    found: list[Mistake] = []
    for node in build_topology(reading.application).nodes:
        if isinstance(node, AggregateNode):
            found += user_class_mistakes(node.aggregates, isinstance(node.windows, SessionWindows), file.parent)
        elif isinstance(node, ProcessNode):
            found += processor_class_mistakes(node, file.parent)
    return found
