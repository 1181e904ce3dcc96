"""What becomes of records that a sink's topic refuses, by the policy of the application (KIP-210, KIP-1034)."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from streams_runtime.batch.encode import Headers
from streams_runtime.batch.stage import Emission
from streams_runtime.errors import BrokerNotAvailableException, ConfigException, ProducerException, StreamsException
from streams_runtime.kafka.producer.batch_producer import BATCH_BYTES, MESSAGE_BYTES, producer_setting
from streams_runtime.kafka.producer.topic_limits import TopicLimits
from streams_runtime.processing.failures.refused_records import Refusal, Sending, refusals
from streams_runtime.processing.failures.unreadable_records import ErrorPolicy

_LOGGER = logging.getLogger("streams_runtime.tasks")
_PREFIX = "__streams.errors."
_FIELD = "spec.processing.onProductionError"
_ASK_AGAIN = 10.0  # seconds after which a topic that refuses records is asked whether it still would


class TopicConfigs(Protocol):
    """Who knows the topics' configuration (Admin)."""

    def topic_configs(self, names: Collection[str]) -> dict[str, dict[str, str]]:
        """That of those of the topics that are there, defaults included."""


@dataclass(frozen=True, slots=True)
class Sifted:
    """What is to be sent of an emission, the letters for what is not, and how many records these are."""

    emission: Emission
    letters: Emission | None = None
    refused: int = 0


class SinkTopics:
    """What the topics that a thread writes take. Used by the thread only.

    Before a record of a sink is sent, it is known whether the topic takes it (`sift`). What brokers refuse all the
    same, because a topic has changed meanwhile, is found out by `may_go_on_after`.
    """

    def __init__(
        self,
        policy: ErrorPolicy,
        admin: TopicConfigs,
        sinks: Collection[str],
        others: Collection[str],
        properties: Mapping[str, str],
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`sinks` are the topics for which the policy is, `others` what is written beside them. `clock` gives s."""
        self._policy = policy
        self._admin = admin
        self._sinks = frozenset(sinks)
        self._written = (*dict.fromkeys((*sinks, *others, *([policy.topic] if policy.topic else []))),)
        self._sending = Sending(
            int(producer_setting(properties, MESSAGE_BYTES)), producer_setting(properties, "compression.type")
        )
        self._batch_bytes = int(producer_setting(properties, BATCH_BYTES))
        self._clock = clock
        self._limits: Mapping[str, TopicLimits] = {}
        self._asked_at = float("-inf")
        self._have_refused: dict[str, TopicLimits] = {}
        """Topics whose brokers have refused what was sent, with the limits that they had then."""

    def producer_settings(self) -> Mapping[str, str]:
        """What a new producer is to have: requests that no topic refuses for their size.

        librdkafka does not divide a request that is too large, as the Java client does: all of its records are lost.

        Raises:
            BrokerNotAvailableException: ask again.
            ConfigException: the topics' configuration may not be read, and the policy needs it.
        """
        self._ask()
        smallest = min((each.largest for each in self._limits.values()), default=self._batch_bytes)
        return {BATCH_BYTES: str(smallest)} if smallest < self._batch_bytes else {}

    def sift(self, emission: Emission) -> Sifted:
        """Leave out of an emission what its topic does not take, unless the policy is `fail`; the log tells of it.

        Raises:
            ProducerException: the topic of the letters does not take one either.
            BrokerNotAvailableException: nobody says what the topic takes by now.
        """
        if self._policy.kind == "fail" or emission.internal or emission.topic not in self._sinks:
            return Sifted(emission)
        found = self._refusals(emission)
        if found and self._clock() - self._asked_at > _ASK_AGAIN:
            self._ask()
            found = self._refusals(emission)
        if not found:
            return Sifted(emission)
        row = min(found)
        _LOGGER.warning(
            "%d records for the topic %s were %s; the first, of the key %.200r: %s",
            len(found),
            emission.topic,
            "left out" if self._policy.topic is None else f"sent to {self._policy.topic}",
            emission.keys[row],
            found[row].reason,
        )
        left = [row for row in range(len(emission)) if row not in found]
        return Sifted(emission.take(left), self._letters(emission, found), len(found))

    def may_go_on_after(self, error: BaseException) -> bool:
        """Whether a batch whose records were refused comes through when it is done again, with another producer."""
        topic = error.refusing_topic if isinstance(error, ProducerException) else None
        if topic is None or self._policy.kind == "fail" or topic not in self._sinks:
            return False
        known = self._limits.get(topic, TopicLimits())
        if self._have_refused.get(topic) == known:
            return False
        self._have_refused[topic] = known
        return True

    def _refusals(self, emission: Emission) -> Mapping[int, Refusal]:
        limits = self._limits.get(emission.topic, TopicLimits())
        strict = self._have_refused.get(emission.topic) == limits
        return refusals(emission, limits, self._sending, int(self._clock() * 1000), strict)

    def _letters(self, emission: Emission, found: Mapping[int, Refusal]) -> Emission | None:
        """The records as they would have been written, with headers that say why not.

        One that is too large for the letters' topic too goes there without its value, and a header says how long that
        was: what it was made of is in the topics that are read.
        """
        if self._policy.topic is None:
            return None
        now = int(self._clock() * 1000)
        rows = emission.take(list(found))
        own: list[Headers] = [list(each or ()) for each in rows.headers or [None] * len(rows)]
        why: list[Headers | None] = [
            [*kept, *_why(emission.topic, refusal)] for kept, refusal in zip(own, found.values(), strict=True)
        ]
        times = [each if 0 <= each <= now else now for each in rows.timestamps]
        letters = replace(rows, topic=self._policy.topic, timestamps=times, headers=why, placed_by=None, partition=None)
        limits = self._limits.get(letters.topic, TopicLimits())
        for row in refusals(letters, limits, self._sending, now):
            why[row] = [*(why[row] or ()), (f"{_PREFIX}value.bytes", str(len(letters.values[row] or b"")).encode())]
            letters.values[row] = None
        refused = refusals(letters, limits, self._sending, now)
        if refused:
            row = min(refused)
            raise ProducerException(
                f"the dead letter topic {letters.topic} does not take a record that {emission.topic} refuses, of the"
                f" key {letters.keys[row]!r:.200}, even without its value: {refused[row].reason}. Give another topic in"
                f" {_FIELD}. Nothing of this batch was committed"
            )
        return letters

    def _ask(self) -> None:
        try:
            configs = self._admin.topic_configs(self._written)
        except BrokerNotAvailableException:
            raise
        except StreamsException as error:
            if self._policy.kind != "fail":
                raise ConfigException(
                    f"{_FIELD}: it needs the configuration of the topics that are written, and that can't be read:"
                    f" {error}. Allow DescribeConfigs on them, or set it to fail"
                ) from error
            _LOGGER.debug("the topics' configuration can't be read: %s", error)
            configs = {}
        self._asked_at = self._clock()
        self._limits = {topic: TopicLimits.of(config) for topic, config in configs.items()}


def _why(topic: str, refusal: Refusal) -> Headers:
    found = {"exception": refusal.exception, "message": refusal.reason, "topic": topic}
    return [(f"{_PREFIX}{name}", text.encode()) for name, text in found.items()]
