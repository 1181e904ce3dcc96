"""Records of long ago in stores whose changelogs keep things by the brokers' clock: one warning a store and hour."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from streams_runtime.api.spec.spec_values import format_duration
from streams_runtime.topology.partition_counts import ChangelogSpan

_LOGGER = logging.getLogger("streams_runtime.age")
_INTERVAL = 3600.0  # seconds between two warnings of one store
_FOR_EVER = "315360000000"  # ms; ten years, which a changelog of tables and windows may have


class AgeLog:
    """Warns for one thread. Used by that thread only.

    Where the newest record of a batch is older than a changelog's span, brokers may delete from the changelog what the
    store keeps, which goes by stream time, and what a client that restores it will miss. Kafka Streams says nothing.
    """

    def __init__(
        self, spans: Mapping[str, ChangelogSpan], clock: Callable[[], int], now: Callable[[], float] = time.monotonic
    ) -> None:
        """`spans` by changelog; `clock` gives ms since 1970, `now` seconds."""
        self._spans = spans
        self._clock = clock
        self._now = now
        self._warned: dict[str, float] = {}

    def take(self, changelog: str, times: Sequence[int]) -> None:
        """A batch has updates of a store; `times` are those of their records, in ms."""
        span = self._spans.get(changelog)
        if span is None or not len(times):
            return
        newest = max(times)
        if newest >= self._clock() - span.ms:
            return
        now = self._now()
        if now - self._warned.get(changelog, float("-inf")) < _INTERVAL:
            return
        self._warned[changelog] = now
        _LOGGER.warning(
            "store %s takes records of %s, and its changelog %s is declared to keep them for %s (%s=%d) by the brokers'"
            " clock: a restored store may lack them. Give that topic a longer %s (kafka-configs.sh --alter), and"
            " declare it, for instance spec.internalTopics.overrides: {%s: {%s: %s}}",
            span.store,
            datetime.fromtimestamp(max(newest, 0) // 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC"),
            changelog,
            format_duration(timedelta(milliseconds=span.ms)),
            span.setting,
            span.ms,
            span.setting,
            span.topic,
            span.setting,
            _FOR_EVER,
        )
