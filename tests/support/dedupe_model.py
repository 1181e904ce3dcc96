"""A dedupe record by record: what every batch has to agree with. Every first is kept for ever; no store, no index."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class DedupeModel:
    """One partition of a dedupe. Times in ms."""

    within: int
    firsts: list[tuple[str, int]] = field(default_factory=list)
    """Id and time of each record that was passed on and has an id."""
    late: int = 0

    def passes(self, key: str | None, time: int) -> bool:
        """Whether a record goes on, after all that were processed before."""
        if key is None:
            return True
        if any(first == key and abs(then - time) <= self.within for first, then in self.firsts if self.knows(then)):
            return False
        self.firsts.append((key, time))
        self.late += not self.knows(time)
        return True

    def knows(self, time: int) -> bool:
        """Whether a first of this time is remembered: it lies no more than twice the time behind the newest one."""
        newest = max(time for _, time in self.firsts)
        return newest - time <= 2 * self.within
