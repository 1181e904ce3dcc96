"""How many records a batch had, and which of them can not be read."""

from __future__ import annotations

from dataclasses import dataclass, field

from streams_runtime.metrics.sampled import NOTHING, Spread


@dataclass(frozen=True, slots=True)
class BrokenRecord:
    """The first record of a batch that can't be read."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    time: int | None = None
    """In ms since 1970, where it is none that a record may have."""


@dataclass(frozen=True, slots=True)
class Account:
    """How many records a batch had, how many of them can't be read, the first of those, and the others' times (ms)."""

    records: int
    broken: int
    first: BrokenRecord | None
    times: Spread = field(default=NOTHING, compare=False)

    def with_more(self, records: int, times: Spread) -> Account:
        """The account of as many more records, none of which is broken."""
        return Account(self.records + records, self.broken, self.first, self.times + times)
