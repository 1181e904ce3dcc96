"""Noticing topics that are deleted, or made anew, behind the application's back, without ever waiting for brokers."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from typing import Protocol

from streams_runtime.errors import StreamsException
from streams_runtime.kafka.admin.pending_requests import TopicLook

# Seconds between two looks: a look is one small request, and records that go to a missing topic wait.
_INTERVAL = 3.0


class Looking(Protocol):
    """Asks for topics and does not wait (kafka.admin.kafka_admin.Admin)."""

    def look_for(self, names: Collection[str]) -> TopicLook: ...

    def refresh(self) -> None: ...


class TopicWatch:
    """Call `gone` often: it asks. One thread uses it.

    Whoever has connections has to know of topics that were made anew under their names, even when all is well with
    them: librdkafka keeps the leader epochs of the old ones and ignores what brokers say of the new (librdkafka #4898).
    """

    def __init__(
        self,
        looking: Looking,
        internal: Collection[str],
        others: Collection[str] = (),
        interval: float = _INTERVAL,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`interval`: seconds between an answer and the next question. What becomes of `others` when they are deleted
        is not for the watch to say: those are the users'.
        """
        self._looking = looking
        self._internal = frozenset(internal)
        self.names = self._internal | frozenset(others)
        self._interval = interval
        self._clock = clock
        self._look: TopicLook | None = None
        self._next = clock()
        self._gone: frozenset[str] = frozenset()
        self._ids: dict[str, str] = {}
        self._renewed: dict[str, str] = {}

    def follow(self, others: Collection[str]) -> None:
        """Look at these, too."""
        self.names |= frozenset(others)

    def gone(self) -> frozenset[str]:
        """The internal topics that the brokers did not have when they answered last."""
        if self._look is not None and self._look.done:
            self.note(self._look.ids, self._look.absent)
            if self._look.unanswered:
                self._looking.refresh()  # it may go on asking a broker that is gone
            self._look = None
            self._next = self._clock() + self._interval
        elif self._look is None and self.names and self._clock() >= self._next:
            try:
                self._look = self._looking.look_for(self.names)
            except StreamsException:
                self._next = self._clock() + self._interval  # whoever needs the brokers says that they are away
        return self._gone

    def renewed(self) -> Mapping[str, str]:
        """The topics that were made anew since they were first seen, or since `forget`, with their ids. Asks nobody."""
        return self._renewed

    def note(self, ids: Mapping[str, str], absent: Collection[str]) -> None:
        """Take in an answer of the brokers: the ids of the topics that they have, and those that they do not have."""
        self._gone = self._internal & frozenset(absent)
        known = {name: self._ids.setdefault(name, each) for name, each in ids.items()}
        self._renewed |= {name: each for name, each in ids.items() if known[name] != each}

    def forget(self) -> None:
        """What was noticed has been seen to: look anew."""
        self._ids |= self._renewed
        self._look, self._gone, self._renewed = None, frozenset(), {}
        self._next = self._clock() + self._interval
