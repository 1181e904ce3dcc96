"""A batch's part of a side of a join by a foreign key."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from streams_runtime.pipeline.compile import Compiler
from streams_runtime.pipeline.runner import Keyed
from streams_runtime.tasks.foreign_left import joined
from streams_runtime.tasks.foreign_right import answered
from streams_runtime.tasks.foreign_rows import Done, in_turn
from streams_runtime.tasks.task import Task
from streams_runtime.topology.foreign_key_nodes import AnswerNode
from streams_runtime.topology.foreign_keys import ForeignKeySide


def met(
    side: ForeignKeySide,
    compiler: Compiler,
    changed: Mapping[str, Keyed],
    arrived: Mapping[str, pa.Table],
    tasks: Mapping[int, Task],
) -> Done:
    """What changes of tables and records of the other side, each by the source's name, come to.

    Raises ProcessorStateException: a store can't be read.
    """
    source = side.table.sources[0]
    events, snapshots = in_turn(source, changed.get(source.name), arrived.get(side.node.incoming), tasks)
    if not events:
        return Done()
    if isinstance(side.node, AnswerNode):
        return answered(side.node, side.table, compiler, events, snapshots, tasks)
    return joined(side.node, side.table, compiler, events, snapshots, tasks)
