"""Noticing internal topics that are deleted behind the application's back, without ever waiting for the brokers."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from typing import Protocol

from streams_runtime.errors import StreamsException
from streams_runtime.kafka.topic_look import TopicLook

# Seconds between two looks: a look is one small request, and records that go to a missing topic wait.
_INTERVAL = 3.0


class Looking(Protocol):
    """Asks for topics and does not wait (kafka.admin.Admin)."""

    def look_for(self, names: Collection[str]) -> TopicLook: ...


class TopicWatch:
    """Call `gone` often. One thread uses it."""

    def __init__(
        self,
        looking: Looking,
        names: Collection[str],
        interval: float = _INTERVAL,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`interval`: seconds between an answer and the next question."""
        self._looking = looking
        self._names = frozenset(names)
        self._interval = interval
        self._clock = clock
        self._look: TopicLook | None = None
        self._next = clock() + interval
        self._gone: frozenset[str] = frozenset()

    def gone(self) -> frozenset[str]:
        """The topics that the brokers did not have when they answered last."""
        if self._look is not None and self._look.done:
            self._gone, self._look = self._look.absent, None
            self._next = self._clock() + self._interval
        elif self._look is None and self._names and self._clock() >= self._next:
            try:
                self._look = self._looking.look_for(self._names)
            except StreamsException:
                self._next = self._clock() + self._interval  # whoever needs the brokers says that they are away
        return self._gone

    def forget(self) -> None:
        """What was noticed has been seen to: look anew."""
        self._look, self._gone = None, frozenset()
        self._next = self._clock() + self._interval
