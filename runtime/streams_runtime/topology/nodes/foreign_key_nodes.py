"""The nodes of the plan that join two tables by a foreign key (KIP-213), on either side of their two topics.

The rows of the left table lie by their own keys, those of the right one by theirs, so neither finds the other where it
is. Each left row is told to the right table's tasks as a subscription, and each right row comes back to the left rows
that name it.
"""

from __future__ import annotations

from dataclasses import dataclass

from streams_runtime.api.steps.topology_spec import JoinType


@dataclass(frozen=True, slots=True)
class SubscribeNode:
    """Writes to `topic` which row of the right table each row of the table `input` names."""

    name: str
    input: str
    topic: str


@dataclass(frozen=True, slots=True)
class ResponseNode:
    """Keeps the subscriptions of the source `incoming` in `store`, and writes to `topic` what they ask `input` for.

    That is the table's row when a subscription comes, and its new row when it changes. `join` is the name of the node
    that joins.
    """

    name: str
    input: str
    incoming: str
    topic: str
    store: str
    join: str
    path: str


@dataclass(frozen=True, slots=True)
class ForeignKeyJoinNode:
    """Each row of the table `input` beside the row of `table` with the key that the expression `on` gives.

    Its output is a table by the keys of `input`, kept in `store`. Subscriptions go to the topic `registrations`, and
    the rows of `table` come by the source `incoming`. With `left` as its type rows without another one are in it as
    well. `select` is as in TableJoinNode.
    """

    name: str
    input: str
    table: str
    incoming: str
    type: JoinType
    on: str
    select: tuple[tuple[str, str], ...]
    store: str
    registrations: str
    path: str

    @property
    def summary(self) -> str:
        """The join in a user's words."""
        columns = ", ".join(name for name, _ in self.select)
        return f"{self.type} join of tables with {self.table} on {self.on}: {columns}"


InternalSink = SubscribeNode | ResponseNode
"""Nodes that write a topic which the application reads again."""
