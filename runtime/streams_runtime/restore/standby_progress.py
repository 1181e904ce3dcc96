"""How far this instance's standbys are: what `/state` and the metrics tell of them."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from streams_runtime.kafka.types import TopicPartition
from streams_runtime.restore.rate_meter import Meter
from streams_runtime.restore.restore_listener import NullListener, StandbyUpdateListener, SuspendReason

_LOGGER = logging.getLogger("streams_runtime.restore")


@dataclass(slots=True)
class Following:
    """A standby store: it has its changelog partition up to `position`, which ended at `end` when last looked at."""

    store: str
    topic: str
    partition: int
    position: int
    end: int

    @property
    def lag(self) -> int:
        """Offsets that it is behind."""
        return max(self.end - self.position, 0)


class StandbyProgress:
    """Keeps each standby's progress, and passes the calls of a StandbyUpdateListener on to the user's."""

    def __init__(self, user: StandbyUpdateListener | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._user = user or NullListener()
        self._clock = clock
        self._lock = threading.Lock()
        self._following: dict[TopicPartition, Following] = {}
        self._looked_at: set[TopicPartition] = set()  # whose end is known
        self._marks: dict[TopicPartition, tuple[float, int]] = {}  # an end that is to be reached, and when it was seen
        self._as_of: dict[TopicPartition, float] = {}  # when the last one was seen that has been reached
        self.updates = Meter()
        self.spent = Meter()
        """Microseconds in which the standbys' updater had standbys."""

    def snapshot(self) -> dict[TopicPartition, dict[str, Any]]:
        """The standby stores of this instance by changelog partition: Following's fields and `lag`.

        One whose changelog's end is not known yet is not among them.
        """
        with self._lock:
            known = {each: self._following[each] for each in sorted(self._looked_at)}
            return {each: asdict(it) | {"lag": it.lag} for each, it in known.items()}

    def ages(self) -> dict[TopicPartition, float]:
        """For how many seconds each store has been behind at most: it has all that was written before that.

        One that has not come to any end yet is not among them.
        """
        with self._lock:
            now = self._clock()
            return {each: now - since for each, since in self._as_of.items()}

    def on_look(self, partition: TopicPartition, position: int, end: int) -> None:
        """The store has the changelog up to `position`; it ends at `end`."""
        with self._lock:
            following = self._following.get(partition)
            if following is not None:
                following.position, following.end = position, end
                self._looked_at.add(partition)
                self._note_age(partition, position, end)

    def _note_age(self, partition: TopicPartition, position: int, end: int) -> None:
        now = self._clock()
        seen_at, mark = self._marks.setdefault(partition, (now, end))
        if position >= mark:
            self._as_of[partition], self._marks[partition] = seen_at, (now, end)
        if position >= end:
            self._as_of[partition] = now

    def on_update_start(self, partition: TopicPartition, store: str, start: int) -> None:
        """StandbyUpdateListener."""
        with self._lock:
            self._following[partition] = Following(store, partition.topic, partition.partition, start, start)
        _LOGGER.info("standby start", extra={"partition": str(partition), "store": store, "start": start})
        self._user.on_update_start(partition, store, start)

    def on_batch_loaded(
        self, partition: TopicPartition, store: str, task: str, batch_end: int, records: int, end: int
    ) -> None:
        """StandbyUpdateListener."""
        self.updates.add(records)
        self.on_look(partition, batch_end, end)
        self._user.on_batch_loaded(partition, store, task, batch_end, records, end)

    def on_update_suspended(
        self, partition: TopicPartition, store: str, position: int, end: int, reason: SuspendReason
    ) -> None:
        """StandbyUpdateListener."""
        with self._lock:
            self._following.pop(partition, None)
            self._looked_at.discard(partition)
            self._marks.pop(partition, None)
            self._as_of.pop(partition, None)
        row = {"partition": str(partition), "store": store, "position": position, "end": end, "reason": str(reason)}
        _LOGGER.info("standby suspended", extra=row)
        self._user.on_update_suspended(partition, store, position, end, reason)
