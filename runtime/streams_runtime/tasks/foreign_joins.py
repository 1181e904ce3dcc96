"""A batch's part of a side of a join by a foreign key."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from streams_runtime.pipeline.compile import Compiler
from streams_runtime.pipeline.stage import Keyed
from streams_runtime.tasks.foreign_done import Done
from streams_runtime.tasks.foreign_left import joined
from streams_runtime.tasks.foreign_right import answered
from streams_runtime.tasks.snapshots import events_of
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
    """What changes of tables, by the nodes that keep them, and records of the other side come to.

    `arrived` has these by the name of their source. Raises ProcessorStateException: a store can't be read.
    """
    events = events_of(side.table, changed, tasks, compiler, arrived.get(side.node.incoming))
    if not events.turns:
        return Done()
    if isinstance(side.node, AnswerNode):
        return answered(side.node, side.table, compiler, events, tasks)
    return joined(side.node, side.table, compiler, events, tasks)
