"""Noticing topics that a pattern fits, when they are made or deleted, without ever waiting for brokers."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from typing import Protocol

from streams_runtime.api.reading.topic_patterns import fitting
from streams_runtime.errors import StreamsException
from streams_runtime.kafka.admin.pending_requests import TopicListing
from streams_runtime.topology.plan import Topology

# Seconds between two looks, unless metadata.max.age.ms says otherwise: an answer names every topic of the cluster.
_INTERVAL = 30.0


class Listing(Protocol):
    """Asks for the names of all topics and does not wait (kafka.admin.kafka_admin.Admin)."""

    def look_for_all(self) -> TopicListing: ...

    def refresh(self) -> None: ...


class PatternWatch:
    """Call `differs` often: it asks. One thread uses it. Without a pattern it asks nobody, and nothing differs."""

    def __init__(
        self,
        listing: Listing,
        topology: Topology,
        properties: Mapping[str, str],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`properties` are librdkafka's, with what spec.kafka.config says."""
        self._listing = listing
        self._patterns = topology.source_patterns
        age = properties.get("metadata.max.age.ms")
        self._interval = _INTERVAL if age is None else int(age) / 1000
        self._clock = clock
        self._look: TopicListing | None = None
        self._next = clock() + self._interval

    def differs(self, read: Collection[str]) -> bool:
        """Whether the topics that patterns fit are others than those among `read`, by an answer that came just now."""
        if not self._patterns:
            return False
        if self._look is not None and self._look.done:
            names, unanswered = self._look.names, self._look.unanswered
            self._look, self._next = None, self._clock() + self._interval
            if unanswered:
                self._listing.refresh()  # it may go on asking a broker that is gone
            return names is not None and self._fitting(names) != self._fitting(read)
        if self._look is None and self._clock() >= self._next:
            try:
                self._look = self._listing.look_for_all()
            except StreamsException:
                self._next = self._clock() + self._interval  # whoever needs the brokers says that they are away
        return False

    def _fitting(self, topics: Collection[str]) -> frozenset[str]:
        return frozenset(topic for pattern in self._patterns for topic in fitting(pattern, topics))
