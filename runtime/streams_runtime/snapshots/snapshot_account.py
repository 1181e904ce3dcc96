"""What a client measures of its snapshots."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class SnapshotAccount:
    """Of one store's partition, since its task is here. The snapshots' thread writes it, others read it.

    `created` is when the newest snapshot that was made here was, in seconds since 1970; None before the first one.
    `offset` is its offset, `size` the bytes of its files. `pause` is the longest time, in seconds, that a checkpoint
    took.
    """

    store: str
    partition: int
    created: float | None = None
    offset: int | None = None
    size: int = 0
    snapshots: int = 0
    uploaded: int = 0
    failures: int = 0
    pause: float = 0.0
