"""How far restorations are, and when they will be through: what `/state` and the metrics tell of them."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from streams_runtime.kafka.types import TopicPartition
from streams_runtime.restore.rate_meter import Meter
from streams_runtime.restore.restore_listener import NullListener, StateRestoreListener

_LOGGER = logging.getLogger("streams_runtime.restore")
_LEAST_SECONDS = 1e-3  # a speed over less than that says nothing


@dataclass(slots=True)
class Progress:
    """How far one store's restoration is: offsets of its changelog partition, times in seconds since 1970.

    `position` is what is read, which a bulk load has not taken over yet; `restored` counts records that are applied.
    `snapshot`: the store began with one, which was made at the offset `start`.
    """

    store: str
    topic: str
    partition: int
    start: int
    position: int
    end: int
    restored: int
    started_at: float
    ended_at: float | None = None
    snapshot: bool = False

    def as_row(self, now: float) -> dict[str, Any]:
        """For `/state`: with `remaining` (offsets), `rate` (offsets a second since the start), `eta_seconds`.

        The last two are None while nothing has come; the rate of one that has ended is that of the whole.
        """
        remaining = 0 if self.ended_at is not None else max(self.end - self.position, 0)
        seconds = (self.ended_at or now) - self.started_at
        done = self.position - self.start
        rate = done / max(seconds, _LEAST_SECONDS) if done > 0 else None
        eta = 0.0 if not remaining else None if rate is None else remaining / rate
        return {**asdict(self), "remaining": remaining, "rate": rate, "eta_seconds": eta}


def in_all(rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """All restorations that go on as one: what is left, how fast (offsets a second), and for how many seconds.

    `rows` are those of `Progress.told`. They share the instance's cores, so the slowest is not waited for by its own
    rate: when others end it gets faster.
    """
    ongoing = [row for row in rows if row["ended_at"] is None]
    remaining = sum(row["remaining"] for row in ongoing)
    rates = [row["rate"] for row in ongoing if row["rate"] is not None]
    eta = 0.0 if not remaining else remaining / sum(rates) if rates else None
    return {
        "stores": len(ongoing),
        "remaining": remaining,
        "rate": sum(rates) if rates else None,
        "eta_seconds": eta,
    }


class ProgressListener:
    """Keeps each restoration's progress for `/state`, and passes every call on to the user's listener."""

    def __init__(self, user: StateRestoreListener | None = None, clock: Callable[[], float] = time.time) -> None:
        self._user = user or NullListener()
        self._clock = clock
        self._lock = threading.Lock()
        self._progress: dict[TopicPartition, Progress] = {}
        self._snapshots: dict[TopicPartition, int] = {}
        self.restored = Meter()
        self.spent = Meter()
        """Microseconds in which the threads' updaters had something to restore."""

    @property
    def restored_total(self) -> int:
        """Records that were restored since the start."""
        return self.restored.total

    def snapshot(self) -> list[dict[str, Any]]:
        """All restorations of this instance that go on or have ended, by partition (Progress.told)."""
        now = self._clock()
        with self._lock:
            return [self._progress[each].as_row(now) for each in sorted(self._progress)]

    @property
    def ongoing(self) -> bool:
        """Whether a restoration goes on."""
        with self._lock:
            return any(each.ended_at is None for each in self._progress.values())

    def on_read(self, partition: TopicPartition, offset: int) -> None:
        """A bulk load has read the partition up to `offset`; what it has read is applied later."""
        with self._lock:
            progress = self._progress.get(partition)
            if progress is not None:
                progress.position = max(progress.position, min(offset, progress.end))

    def on_snapshot(self, partition: TopicPartition, offset: int) -> None:
        """A store has begun with a snapshot that was made at this offset."""
        with self._lock:
            self._snapshots[partition] = offset

    def on_restore_start(self, partition: TopicPartition, store: str, start: int, end: int) -> None:
        """StateRestoreListener."""
        with self._lock:
            progress = Progress(store, partition.topic, partition.partition, start, start, end, 0, self._clock())
            progress.snapshot = self._snapshots.pop(partition, None) == start
            self._progress[partition] = progress
        _LOGGER.info("restore start", extra={"partition": str(partition), "store": store, "start": start, "end": end})
        self._user.on_restore_start(partition, store, start, end)

    def on_batch_restored(self, partition: TopicPartition, store: str, batch_end: int, records: int) -> None:
        """StateRestoreListener."""
        with self._lock:
            progress = self._progress[partition]
            progress.position = batch_end
            progress.restored += records
        self.restored.add(records)
        self._user.on_batch_restored(partition, store, batch_end, records)

    def on_restore_end(self, partition: TopicPartition, store: str, total: int) -> None:
        """StateRestoreListener."""
        with self._lock:
            progress = self._progress[partition]
            progress.position, progress.ended_at = progress.end, self._clock()
        _LOGGER.info("restore end", extra={"partition": str(partition), "store": store, "records": total})
        self._user.on_restore_end(partition, store, total)

    def on_restore_suspended(self, partition: TopicPartition, store: str, total: int) -> None:
        """StateRestoreListener."""
        with self._lock:
            self._progress.pop(partition, None)
        _LOGGER.info("restore suspended", extra={"partition": str(partition), "store": store, "records": total})
        self._user.on_restore_suspended(partition, store, total)
