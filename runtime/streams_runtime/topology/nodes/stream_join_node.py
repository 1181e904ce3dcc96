"""The join of two streams in the plan, and the stores that it has."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from streams_runtime.api.reading.legal_names import join_stores
from streams_runtime.api.steps.topology_spec import JoinType


class Side(IntEnum):
    """Where a record of a join comes from. The values sort as the sides' records are passed on when they close."""

    RIGHT = 0
    LEFT = 1

    @property
    def other(self) -> Side:
        """The side that it is joined with."""
        return Side.LEFT if self is Side.RIGHT else Side.RIGHT


@dataclass(frozen=True, slots=True)
class StreamJoinNode:
    """Each record of `input` beside each of `other` with its key and a time that lies close enough. Times in ms.

    A record of `input` meets those that are at most `before` older and at most `after` younger. What a `left` or
    `outer` join passes on without a match is passed on once stream time is past the end of its window by more than
    `grace`. `stream` is what the expressions call `other`; `select` is as in JoinNode.
    """

    name: str
    input: str
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
        columns = ", ".join(name for name, _ in self.select)
        return f"{kind} with the stream {self.stream} within {within}, grace {self.grace} ms: {columns}"
