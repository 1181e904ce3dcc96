"""How large a batch of partial aggregates may be: it takes memory by its keys, of which nobody knows how many come.

A first, small batch tells: of K keys that come equally often, n records have K * (1 - exp(-n / K)). Where some come
more often than others a larger batch has more keys than that says; each batch corrects it for the next one.

A batch whose transaction outlasts its time-out is aborted by the brokers, and would be again at the same size: the next
ones are smaller.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

AGGREGATED_KEYS = 250_000
"""Keys of a batch, about: what becomes of each takes a kilobyte while it is in work."""
FIRST_RECORDS = 250_000
_STEPS = 60  # halvings of an interval, after which it is one number


@dataclass(slots=True)
class BatchSize:
    """At most `most` records; with `keys`, as many as have about so many keys, once that is known (`learn`)."""

    most: int
    keys: int | None = None
    is_known: bool = field(init=False)
    """Whether it is any more than a guess."""
    _by_keys: int = field(init=False)
    _by_time: int = field(init=False)

    def __post_init__(self) -> None:
        self.is_known = self.keys is None
        self._by_keys = self.most if self.keys is None else min(self.most, FIRST_RECORDS)
        self._by_time = self.most

    @property
    def limit(self) -> int:
        """Records that the next batch may have."""
        return min(self._by_keys, self._by_time)

    def learn(self, records: int, keys: int) -> None:
        """So many records had so many keys, in all tables together."""
        if self.keys is not None and records:
            self._by_keys = min(self.most, records_with(self.keys, records, keys, self.most))
            self.is_known = True

    def overran(self, records: int, seconds: float, allowed: float) -> None:
        """A batch of so many records was lost because its commit took longer than is allowed: the next ones have as
        many as take half of that, if time goes by records.
        """
        self._by_time = max(1, int(records * allowed / (2 * max(seconds, allowed))))

    def kept(self, records: int, seconds: float, allowed: float) -> None:
        """A batch was committed in this time. After one that overran, batches grow again by a tenth each, while full
        ones take half of what is allowed at most.
        """
        if seconds <= allowed / 2 and records * 2 >= self._by_time:
            self._by_time = min(self.most, self._by_time + max(1, self._by_time // 10))


def records_with(keys: int, records: int, found: int, most: int) -> int:
    """How many records have so many keys, when of `records` so many were `found`; no more than `most`."""
    share = found / records
    if share >= 1:  # there may be several tables
        return min(most, max(1, int(keys / share)))
    if not found:
        return most
    # Records a key: (1 - exp(-x)) / x is the share, and falls as x grows.
    low, high = 0.0, 1 / share
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if -math.expm1(-middle) > share * middle else (low, middle)
    total = records / high
    return most if keys >= total else min(most, int(-total * math.log1p(-keys / total)))
