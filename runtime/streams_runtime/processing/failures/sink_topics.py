"""What becomes of records that a sink's topic refuses, by the policy of the application (KIP-210, KIP-1034)."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from streams_runtime.batch.encode import Headers
from streams_runtime.batch.stage import Emission
from streams_runtime.errors import BrokerNotAvailableException, ConfigException, ProducerException, StreamsException
from streams_runtime.kafka.producer.batch_producer import BATCH_BYTES, MESSAGE_BYTES, producer_setting
from streams_runtime.kafka.producer.topic_limits import TopicLimits, encoded
from streams_runtime.processing.failures.error_policy import ErrorPolicy, FailedRecord
from streams_runtime.processing.failures.refused_records import Refusal, Sending, refusals
from streams_runtime.processing.failures.topic_routing import TopicRouting
from streams_runtime.topology.own_topics import OwnTopics

_LOGGER = logging.getLogger("streams_runtime.tasks")
_PREFIX = "__streams.errors."
_FIELD = "spec.processing.onProductionError"
_MISSED_AT_MOST = 3
_ASK_AGAIN = 10.0  # seconds after which a topic that refuses records is asked whether it still would


class Topics(Protocol):
    """Who knows which topics there are, and their configuration (Admin)."""

    def topic_configs(self, names: Collection[str]) -> dict[str, dict[str, str]]:
        """That of those of the topics that are there, defaults included."""

    def partition_counts(self, names: Collection[str]) -> Mapping[str, int]:
        """How many partitions those of the topics have that are there."""


@dataclass(frozen=True, slots=True)
class Sifted:
    """What is to be sent of an emission to one topic, the letters for what is not, and how many records these are."""

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
        admin: Topics,
        sinks: Collection[str],
        others: Collection[str],
        properties: Mapping[str, str],
        own: OwnTopics,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`sinks` are the topics for which the policy is, `others` what is written beside them. `clock` gives s.

        An expression may send no record to those that are `own`.
        """
        self._policy = policy
        self._admin = admin
        self._sinks = frozenset(sinks)
        self._routing = TopicRouting(admin, own, clock)
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
        self._requests = self._batch_bytes
        """Bytes of a request of the producer that was made last, at most."""
        self._missed, self._missed_at = 0, float("-inf")
        """How often a producer has missed a topic of late, and when."""

    def producer_settings(self) -> Mapping[str, str]:
        """What a new producer is to have: requests that no topic refuses for their size.

        librdkafka does not divide a request that is too large, as the Java client does: all of its records are lost.

        Raises:
            BrokerNotAvailableException: ask again.
            ConfigException: the topics' configuration may not be read, and the policy needs it.
        """
        self._ask()
        smallest = min((each.largest for each in self._limits.values()), default=self._batch_bytes)
        self._requests = min(smallest, self._batch_bytes)
        return {BATCH_BYTES: str(smallest)} if smallest < self._batch_bytes else {}

    def route(self, emission: Emission) -> tuple[Sequence[Emission], Sifted]:
        """The records of a sink with `topicBy`, by topic; and what is left out of them, or goes to the letters.

        Raises:
            ProducerException: the policy is `fail`, and a record has no topic that it could go to.
            BrokerNotAvailableException: nobody says which topics there are.
        """
        routed = self._routing.route(emission)
        new = self._routing.present - self._limits.keys()
        if new:
            self._limits = {**dict.fromkeys(new, TopicLimits()), **self._limits, **self._limits_of(new)}
        nothing = replace(emission, chosen=None).take([])
        if not routed.refused:
            return routed.emissions, Sifted(nothing)
        sent = self._to_be_sent(emission, routed.refused)
        self._tell(emission, routed.refused, len(sent))
        return routed.emissions, Sifted(nothing, self._letters(emission, sent), len(routed.refused))

    def _tell(self, emission: Emission, found: Mapping[int, Refusal], letters: int) -> None:
        """The log names the first of the records that have no topic. Raises ProducerException if they are to fail."""
        chosen, row = emission.chosen, min(found)
        assert chosen is not None
        origin = chosen.origin(row)
        came_of = "" if origin is None else f", of the record {origin}"
        record = f"the key {emission.keys[row]!r:.200}{came_of}: {found[row].reason}"
        if self._policy.kind == "fail":
            raise ProducerException(
                f"the sink {chosen.sink.name} ({chosen.sink.path}) can't write the record of {record}. Make the topic,"
                f" or correct topicBy; {_FIELD} may leave such records out. Nothing of this batch was committed; it is"
                " read again when the cause is gone"
            )
        _LOGGER.warning(
            "%d records of the sink %s were %s, for want of a topic; the first, of %s",
            len(found),
            chosen.sink.name,
            self._policy.done_with(letters, len(found)),
            record,
        )

    def _to_be_sent(self, emission: Emission, found: Mapping[int, Refusal]) -> Mapping[int, Refusal]:
        """The refused records for which there are to be letters.

        Raises:
            ProducerException: the user's function lets one fail.
            UserCodeException: it could not decide on one.
        """
        if self._policy.handler is None:
            return found if self._policy.topic is not None else {}
        sent = {}
        for row, refusal in found.items():
            record = _record(emission, row)
            error = ProducerException(
                f"the record {record} can't be written: {refusal.reason}. {_FIELD} ({self._policy.handler.reference})"
                " lets it fail. Nothing of this batch was committed; it is read again when the cause is gone"
            )
            error.refused_as = refusal.exception
            if self._policy.sends_letter(error, record):
                sent[row] = refusal
        return sent

    def sift(self, emission: Emission) -> Sifted:
        """Leave out of an emission what its topic does not take, unless the policy is `fail`; the log tells of it.

        Raises:
            ProducerException: the topic of the letters does not take one either, or the user's function lets one fail.
            UserCodeException: it could not decide on one.
            BrokerNotAvailableException: nobody says what the topic takes by now.
        """
        if self._policy.kind == "fail" or emission.internal or not self._is_of_a_sink(emission.topic):
            return Sifted(emission)
        found = self._refusals(emission)
        if found and self._clock() - self._asked_at > _ASK_AGAIN:
            self._ask()
            found = self._refusals(emission)
        if not found:
            return Sifted(emission)
        row, sent = min(found), self._to_be_sent(emission, found)
        _LOGGER.warning(
            "%d records for the topic %s were %s; the first, of the key %.200r: %s",
            len(found),
            emission.topic,
            self._policy.done_with(len(sent), len(found)),
            emission.keys[row],
            found[row].reason,
        )
        left = [row for row in range(len(emission)) if row not in found]
        return Sifted(emission.take(left), self._letters(emission, sent), len(found))

    def look_again(self) -> None:
        """A batch has failed: whether the topics that expressions name are still there is looked up anew.

        librdkafka does not always say that one is not. It asks for it until the transaction has timed out.
        """
        self._routing.look_again()

    def may_go_on_after(self, error: BaseException) -> bool:
        """Whether a batch whose records were refused comes through when it is done again, with another producer."""
        if not isinstance(error, ProducerException):
            return False
        topic = error.refusing_topic
        if topic is None:
            return error.for_want_of_topic and self._may_be_gone()
        if topic in self._routing.present and self._limits.get(topic, TopicLimits()).largest < self._requests:
            return True  # the producer was made before the topic was known: the next one sends smaller requests
        if self._policy.kind == "fail" or not self._is_of_a_sink(topic):
            return False
        known = self._limits.get(topic, TopicLimits())
        if self._have_refused.get(topic) == known:
            return False
        self._have_refused[topic] = known
        return True

    def _may_be_gone(self) -> bool:
        """Whether an expression has given topics, one of which may be what the producer misses: it does not always say
        which. They are looked for once more, some times within ten seconds, since brokers learn of it one by one.
        """
        if not self._routing.present:
            return False
        self._routing.look_again()
        before, self._missed_at = self._missed_at, self._clock()
        self._missed = self._missed + 1 if self._missed_at - before <= _ASK_AGAIN else 1
        return self._missed <= _MISSED_AT_MOST

    def _is_of_a_sink(self, topic: str) -> bool:
        return topic in self._sinks or topic in self._routing.present

    def _refusals(self, emission: Emission) -> Mapping[int, Refusal]:
        limits = self._limits.get(emission.topic, TopicLimits())
        strict = self._have_refused.get(emission.topic) == limits
        return refusals(emission, limits, self._sending, int(self._clock() * 1000), strict)

    def _letters(self, emission: Emission, found: Mapping[int, Refusal]) -> Emission | None:
        """The records as they would have been written, with headers that say why not.

        One that is too large for the letters' topic too goes there without its value, and a header says how long that
        was: what it was made of is in the topics that are read.
        """
        if self._policy.topic is None or not found:
            return None
        now = int(self._clock() * 1000)
        rows = emission.take(list(found))
        own: list[Headers] = [list(each or ()) for each in rows.headers or [None] * len(rows)]
        wanted = [emission.topic if emission.chosen is None else emission.chosen.names[row] for row in found]
        why: list[Headers | None] = [
            [*kept, *_why(topic, refusal)] for kept, topic, refusal in zip(own, wanted, found.values(), strict=True)
        ]
        times = [each if 0 <= each <= now else now for each in rows.timestamps]
        nowhere = replace(rows, placed_by=None, partition=None, chosen=None, sink=None, chosen_partitions=None)
        addressed = replace(nowhere, topic=self._policy.topic)
        letters = replace(addressed, timestamps=times, headers=why)
        limits = self._limits.get(letters.topic, TopicLimits())
        for row in refusals(letters, limits, self._sending, now):
            why[row] = [*(why[row] or ()), (f"{_PREFIX}value.bytes", str(len(letters.values[row] or b"")).encode())]
            letters.values[row] = None
        refused = refusals(letters, limits, self._sending, now)
        if refused:
            row = min(refused)
            raise ProducerException(
                f"the dead letter topic {letters.topic} does not take a record that {wanted[row]} refuses, of the"
                f" key {letters.keys[row]!r:.200}, even without its value: {refused[row].reason}. Give another topic in"
                f" {_FIELD}. Nothing of this batch was committed"
            )
        return letters

    def _ask(self) -> None:
        self._limits = self._limits_of({*self._written, *self._routing.present})
        self._asked_at = self._clock()

    def _limits_of(self, topics: Collection[str]) -> dict[str, TopicLimits]:
        try:
            configs = self._admin.topic_configs(topics)
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
        return {topic: TopicLimits.of(config) for topic, config in configs.items()}


def _record(emission: Emission, row: int) -> FailedRecord:
    """As it would have been written."""
    topic = emission.topic if emission.chosen is None else emission.chosen.names[row]
    headers = () if emission.headers is None else emission.headers[row] or ()
    written = tuple((name, encoded(content)) for name, content in headers)
    return FailedRecord(topic, None, None, emission.timestamps[row], emission.keys[row], emission.values[row], written)


def _why(topic: str | None, refusal: Refusal) -> Headers:
    found = {"exception": refusal.exception, "message": refusal.reason, "topic": topic}
    return [(f"{_PREFIX}{name}", text.encode()) for name, text in found.items() if text is not None]
