"""The sides of joins by foreign keys that a sub-topology has; one may have both sides of one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from streams_runtime.pipeline.compile import Compiler
from streams_runtime.pipeline.runner import Keyed
from streams_runtime.tasks.foreign_left import joined
from streams_runtime.tasks.foreign_right import answered
from streams_runtime.tasks.foreign_rows import Done
from streams_runtime.tasks.task import Task
from streams_runtime.topology.foreign_key_nodes import AnswerNode, ForeignKeyJoinNode
from streams_runtime.topology.foreign_keys import side_of
from streams_runtime.topology.plan import SubTopology
from streams_runtime.topology.table_parts import TablePart


@dataclass(frozen=True, slots=True)
class ForeignKeySide:
    """One side, and its own table. Of the node are the rows that `done` gives."""

    node: AnswerNode | ForeignKeyJoinNode
    table: TablePart

    def done(
        self,
        compiler: Compiler,
        changed: Mapping[str, Keyed],
        arrived: Mapping[str, pa.Table],
        tasks: Mapping[int, Task],
    ) -> Done:
        """The side's part of a batch: changes of tables and records of the other side, each by the source's name.

        Raises ProcessorStateException: a store can't be read.
        """
        given = changed.get(self.table.sources[0].name), arrived.get(self.node.incoming)
        if isinstance(self.node, AnswerNode):
            return answered(self.node, self.table, compiler, *given, tasks)
        return joined(self.node, self.table, compiler, *given, tasks)


def foreign_key_sides(sub: SubTopology) -> tuple[ForeignKeySide, ...]:
    """All of a sub-topology."""
    return tuple(
        ForeignKeySide(node, side_of(sub, node.input))
        for node in sub.nodes
        if isinstance(node, AnswerNode | ForeignKeyJoinNode)
    )
