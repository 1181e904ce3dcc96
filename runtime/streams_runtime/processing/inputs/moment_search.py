"""A search for a moment: how far inputs that are read together are read, by the times that brokers have for records.

Brokers say where a partition comes to a time (ListOffsets). One question has all inputs of all searches that go on.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from streams_runtime.kafka.consumer.record_table import LATEST_TIME
from streams_runtime.kafka.types import TopicPartition

Positions = Mapping[TopicPartition, int]
ALL_TIMES = 2**41
"""Milliseconds; no record is from 2039, and if it is, a search goes on."""
NO_TIME = LATEST_TIME + 1
"""Milliseconds; a record that has come so far can't be read, and says nothing of those behind it."""


class Moments(Protocol):
    """Answers where partitions have come to a time (kafka.admin.kafka_admin.Admin)."""

    def offsets_at(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]: ...


@dataclass(slots=True)
class MomentSearch(ABC):
    """For the largest moment (ms) of which something holds that holds of all before it: `low` is one of these.

    `width` is how much further is looked first. `below` and `above` are where the inputs (`task`) come to `low` and to
    the earliest moment that was found to be too late; both lie between `starts` and `ends`.
    """

    task: Sequence[TopicPartition]
    starts: Positions
    ends: Positions
    low: int
    width: int
    high: int | None = field(init=False, default=None)
    below: dict[TopicPartition, int] = field(init=False)
    above: dict[TopicPartition, int] = field(init=False)

    def __post_init__(self) -> None:
        self.below = {each: self.starts[each] for each in self.task}
        self.above = {each: self.ends[each] for each in self.task}

    @abstractmethod
    def holds(self, cut: Positions) -> bool:
        """Whether it holds of a moment that the inputs come to at these offsets."""

    @property
    def moment(self) -> int:
        """The one to ask for next."""
        return min(self.low + self.width, NO_TIME) if self.high is None else (self.low + self.high) // 2

    @property
    def exact(self) -> bool:
        """Whether no moment lies between the two that are known."""
        return (self.high is not None and self.high - self.low <= 1) or self.low == NO_TIME

    @property
    def found(self) -> bool:
        """Whether nothing is left to ask for."""
        return self.exact

    def hear(self, offsets: Mapping[TopicPartition, int | None]) -> None:
        """Where the inputs come to the moment; None: none of their records is that late."""
        moment, cut = self.moment, {}
        for each in self.task:
            at = offsets.get(each)
            cut[each] = self.ends[each] if at is None else min(max(at, self.starts[each]), self.ends[each])
        if self.holds(cut):
            self.low, self.below = moment, cut
            self.width *= 2
        else:
            self.high, self.above = moment, cut


def search(searches: Sequence[MomentSearch], moments: Moments) -> None:
    """Go on until all have found theirs. Raises BrokerNotAvailableException: nothing is lost."""
    while open_ := [each for each in searches if not each.found]:
        offsets = moments.offsets_at({at: each.moment for each in open_ for at in each.task})
        for each in open_:
            each.hear(offsets)


@dataclass(slots=True)
class Remembered:
    """Where inputs came to in earlier searches, by a name for them, so that the next ones are short: the moment, and
    how much further that was than the one before.
    """

    _come_to: dict[Hashable, tuple[int, int]] = field(default_factory=dict)

    def of(self, name: Hashable) -> tuple[int, int]:
        """Where a search begins, and its first width (ms)."""
        return self._come_to.get(name, (0, ALL_TIMES))

    def take(self, name: Hashable, made: MomentSearch) -> None:
        """It has found its moment."""
        if made.low == NO_TIME:
            self._come_to.pop(name, None)
            return
        before = self._come_to.get(name)
        further = (made.high or made.low) - made.low if before is None else made.low - before[0]
        self._come_to[name] = (made.low, max(1, further))

    def forget(self) -> None:
        """Positions have changed other than by reading on."""
        self._come_to.clear()
