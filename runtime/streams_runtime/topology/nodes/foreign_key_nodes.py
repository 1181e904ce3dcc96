"""The nodes of the plan that join two tables by a foreign key (KIP-213), on either side of their two topics.

The rows of the left table lie by their own keys, those of the right one by theirs, so neither finds the other where it
is. Each left row is told to the right table's tasks as a subscription, and each right row comes back to the left rows
that name it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from streams_runtime.api.steps.topology_spec import JoinType
from streams_runtime.topology.nodes.plan_node import StepNode, columns_of
from streams_runtime.topology.store_specs import StoreSpec


@dataclass(frozen=True, slots=True)
class SubscribeNode(StepNode):
    """Writes to `topic` which row of the right table each row of the table `input` names."""

    KIND: ClassVar[str] = "foreign-key-subscription"

    topic: str

    @property
    def summary(self) -> str:
        """The subscription in a user's words."""
        return "subscribe to the other table's rows"

    @property
    def internal_topic(self) -> str | None:
        """The topic of the subscriptions."""
        return self.topic


@dataclass(frozen=True, slots=True)
class ResponseNode(StepNode):
    """Keeps the subscriptions of the source `incoming` in `store`, and writes to `topic` what they ask `input` for.

    That is the table's row when a subscription comes, and its new row when it changes. `join` is the name of the node
    that joins.
    """

    KIND: ClassVar[str] = "foreign-key-response"

    incoming: str
    topic: str
    store: str
    join: str
    path: str

    @property
    def summary(self) -> str:
        """The answers in a user's words."""
        return "answer with the table's rows"

    @property
    def inputs(self) -> tuple[str, ...]:
        """The table, and the subscriptions."""
        return (self.input, self.incoming)

    @property
    def internal_topic(self) -> str | None:
        """The topic of the answers."""
        return self.topic

    def store_specs(self, application_id: str) -> tuple[StoreSpec, ...]:
        """Who subscribes to which row."""
        return (StoreSpec.kept(self.store, "subscription", application_id, self.name),)


@dataclass(frozen=True, slots=True)
class ForeignKeyJoinNode(StepNode):
    """Each row of the table `input` beside the row of `table` with the key that the expression `on` gives.

    Its output is a table by the keys of `input`, kept in `store`. Subscriptions go to the topic `registrations`, and
    the rows of `table` come by the source `incoming`. With `left` as its type rows without another one are in it as
    well. `select` is as in TableJoinNode.
    """

    KIND: ClassVar[str] = "foreign-key-join"
    MAKES_TABLE: ClassVar[bool] = True

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
        return f"{self.type} join of tables with {self.table} on {self.on}: {columns_of(self.select)}"

    @property
    def inputs(self) -> tuple[str, ...]:
        """The left table, and the answers."""
        return (self.input, self.incoming)

    def store_specs(self, application_id: str) -> tuple[StoreSpec, ...]:
        """The joined rows."""
        return (StoreSpec.kept(self.store, "key-value", application_id, self.name),)
