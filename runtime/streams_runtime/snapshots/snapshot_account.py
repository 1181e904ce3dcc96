"""What a client measures of its snapshots, and what `/state` says of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(slots=True)
class SnapshotAccount:
    """Of one store's partition, since its task is here. The snapshots' thread writes it, others read it.

    `since` is when the task came, `created` when the newest snapshot that was made here was, both in seconds since
    1970; None before the first one. `offset` is its offset, `size` the bytes of its files.
    """

    store: str
    partition: int
    since: float
    created: float | None = None
    offset: int | None = None
    size: int = 0

    def as_row(self, now: float) -> dict[str, Any]:
        """For `/state`: with `age`, the seconds since `created`, or since the task is here."""
        age = max(now - (self.since if self.created is None else self.created), 0.0)
        fields = ("store", "partition", "created", "offset", "size")
        return {name: getattr(self, name) for name in fields} | {"age": age}


@dataclass(slots=True)
class SnapshotTotals:
    """Of a client, since its start: snapshots that were made, bytes that went up, attempts that failed.

    `longest_pause` is the longest time, in seconds, that a checkpoint took.
    """

    made: int = 0
    uploaded: int = 0
    failures: int = 0
    longest_pause: float = 0.0


@dataclass(slots=True)
class FetchTotals:
    """Of a client, since its start: snapshots that stores began with, their bytes, and snapshots that were put aside:
    damaged, too old, of another changelog. `received` are all bytes that have come, for snapshots on their way too.
    """

    fetched: int = 0
    downloaded: int = 0
    received: int = 0
    put_aside: int = 0


def described(
    accounts: Sequence[SnapshotAccount], made: SnapshotTotals, fetched: FetchTotals, now: float
) -> dict[str, Any]:
    """For `/state`. `now` in seconds since 1970."""
    return {
        "made": made.made,
        "uploaded_bytes": made.uploaded,
        "failures": made.failures,
        "longest_pause": made.longest_pause,
        "fetched": fetched.fetched,
        "downloaded_bytes": fetched.downloaded,
        "received_bytes": fetched.received,
        "put_aside": fetched.put_aside,
        "stores": [each.as_row(now) for each in sorted(accounts, key=lambda each: (each.store, each.partition))],
    }
