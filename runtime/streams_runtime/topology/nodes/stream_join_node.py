"""The join of two streams in the plan, and the stores that it has."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar

from streams_runtime.api.reading.legal_names import join_stores
from streams_runtime.api.steps.topology_spec import JoinType
from streams_runtime.topology.nodes.plan_node import StepNode, columns_of
from streams_runtime.topology.store_specs import StoreSpec, Windowing


class Side(IntEnum):
    """Where a record of a join comes from. The values sort as the sides' records are passed on when they close."""

    RIGHT = 0
    LEFT = 1

    @property
    def other(self) -> Side:
        """The side that it is joined with."""
        return Side.LEFT if self is Side.RIGHT else Side.RIGHT


@dataclass(frozen=True, slots=True)
class StreamJoinNode(StepNode):
    """Each record of `input` beside each of `other` with its key and a time that lies close enough. Times in ms.

    A record of `input` meets those that are at most `before` older and at most `after` younger. What a `left` or
    `outer` join passes on without a match is passed on once stream time is past the end of its window by more than
    `grace`. `stream` is what the expressions call `other`; `select` is as in JoinNode.
    """

    KIND: ClassVar[str] = "stream-join"
    LEADS_OUT: ClassVar[bool] = True

    other: str
    stream: str
    kind: JoinType
    before: int
    after: int
    grace: int
    select: tuple[tuple[str, str], ...]
    path: str

    @property
    def retention(self) -> int:
        """How long a side's records are kept."""
        return self.before + self.after + self.grace

    @property
    def stores(self) -> tuple[str, ...]:
        """The names of its stores, as `join_stores` gives them."""
        return join_stores(self.name, self.kind == "inner")

    def store_of(self, side: Side) -> str:
        """The store of a side's records."""
        return self.stores[0 if side is Side.LEFT else 1]

    @property
    def alone_store(self) -> str | None:
        """The store of the records without a match so far; an inner join has none."""
        return None if self.kind == "inner" else self.stores[2]

    def keeps_alone(self, side: Side) -> bool:
        """Whether a record of this side that meets no other is passed on all the same."""
        return self.kind == "outer" or (self.kind == "left" and side is Side.LEFT)

    def behind(self, side: Side) -> int:
        """How much older a record may be that one of this side meets."""
        return self.before if side is Side.LEFT else self.after

    def ahead(self, side: Side) -> int:
        """How much younger."""
        return self.after if side is Side.LEFT else self.before

    @property
    def summary(self) -> str:
        """The join in a user's words."""
        kind = "join" if self.kind == "inner" else f"{self.kind} join"
        within = f"{self.before} ms" if self.before == self.after else f"{self.before} ms before, {self.after} ms after"
        columns = columns_of(self.select)
        return f"{kind} with the stream {self.stream} within {within}, grace {self.grace} ms: {columns}"

    @property
    def inputs(self) -> tuple[str, ...]:
        """Both sides."""
        return (self.input, self.other)

    def store_specs(self, application_id: str) -> tuple[StoreSpec, ...]:
        """Each side's records, and those without a match."""
        windowing = Windowing(self.retention)
        return tuple(
            StoreSpec.kept(store, "unjoined", application_id, self.name)
            if store == self.alone_store
            else StoreSpec.kept(store, "join", application_id, self.name, windowing)
            for store in self.stores
        )
