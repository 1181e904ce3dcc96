"""A join of two streams record by record, as KStreamKStreamJoin does it: what every batch has to agree with.

Everything is kept for ever and looked through from the beginning; no store, no index.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from streams_runtime.topology.nodes.stream_join_node import Side, StreamJoinNode

Pair = tuple[str | None, int, str | None, str | None]
"""Key, time (ms), left and right value of a result."""


@dataclass
class JoinModel:
    """One partition of a join. Times in ms."""

    node: StreamJoinNode
    results: list[Pair] = field(default_factory=list)
    late: int = 0
    dropped: int = 0
    seen: list[tuple[Side, str, int, str]] = field(default_factory=list)
    """Every record with a key and a value, in the order in which they came."""
    alone: list[tuple[int, Side, str, str]] = field(default_factory=list)
    """Records that may still meet another, in the order in which they came."""
    now: int = -1

    def process(self, side: Side, key: str | None, time: int, value: str | None) -> None:
        """One record, after all that were processed before."""
        self.now = max(self.now, time)
        if value is None or (key is None and not self.goes_alone(side)):
            self.dropped += 1
            return
        if key is None:
            self.give(side, key, time, value, None)
            return
        if time == self.now:
            self.close()
        met = self.matches(side, key, time)
        for then, other in met:
            self.alone = [each for each in self.alone if each[:3] != (then, side.other, key)]
            self.give(side, key, max(time, then), value, other)
        if not met and self.goes_alone(side):
            if self.window(side, time)[1] < self.now:
                self.give(side, key, time, value, None)
            else:
                self.alone.append((time, side, key, value))
        self.late += self.expired(side, time)
        self.seen.append((side, key, time, value))

    def close(self) -> None:
        """Pass on what has met nobody, and can't in time any more."""
        closed = [each for each in self.alone if self.window(each[1], each[0])[1] + self.node.grace < self.now]
        self.alone = [each for each in self.alone if each not in closed]
        for time, side, key, value in sorted(closed, key=lambda each: each[:3]):
            self.give(side, key, time, value, None)

    def matches(self, side: Side, key: str, time: int) -> list[tuple[int, str]]:
        """Time and value of the other side's records that this one meets; equals in the order in which they came."""
        first, last = self.window(side, time)
        found = [
            (then, value)
            for whose, other, then, value in self.seen
            if (whose, other) == (side.other, key) and first <= then <= last and not self.expired(whose, then)
        ]
        return sorted(found, key=lambda each: each[0])

    def window(self, side: Side, time: int) -> tuple[int, int]:
        """From when to when, inclusive."""
        before, after = self.node.before, self.node.after
        return (time - before, time + after) if side is Side.LEFT else (time - after, time + before)

    def expired(self, side: Side, time: int) -> bool:
        """Whether the side has come so far that it does not know a record of this time any more."""
        latest = max([then for whose, _, then, _ in self.seen if whose is side], default=-1)
        return time <= latest - self.node.before - self.node.after - self.node.grace

    def goes_alone(self, side: Side) -> bool:
        """Whether a record that meets nobody is passed on."""
        return {"inner": False, "left": side is Side.LEFT, "outer": True}[self.node.kind]

    def give(self, side: Side, key: str | None, time: int, value: str, other: str | None) -> None:
        """A result."""
        pair = (value, other) if side is Side.LEFT else (other, value)
        self.results.append((key, time, *pair))
