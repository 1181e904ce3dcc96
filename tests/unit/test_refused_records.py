"""Records that a sink's topic does not take: known before they are sent, left out or sent on, never lost unseen."""

from __future__ import annotations

import base64
import logging
import random
from collections.abc import Collection
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from record_decisions import ASKED

from streams_runtime.batch.stage import ChosenPartitions, Emission
from streams_runtime.errors import (
    BrokerNotAvailableException,
    ConfigException,
    ProducerException,
    StreamsException,
    UserCodeException,
)
from streams_runtime.kafka.producer.topic_limits import TopicLimits, handed_over_bytes, record_bytes
from streams_runtime.processing.failures.error_policy import ErrorHandler, ErrorPolicy, FailedRecord
from streams_runtime.processing.failures.refused_records import Sending, refusals
from streams_runtime.processing.failures.sink_topics import SinkTopics
from streams_runtime.topology.nodes.source_and_sink_nodes import SinkNode
from streams_runtime.topology.own_topics import OwnTopics

NOW = 1_700_000_000_000
SENDING = Sending(1_000_000, "lz4")
SMALL = {"max.message.bytes": "1000"}


def emission(*records: tuple[bytes | None, bytes | None, int], **more: Any) -> Emission:
    keys, values, times = (list(each) for each in zip(*records, strict=True)) if records else ([], [], [])
    return Emission("out", False, keys, values, times, **more)


def random_bytes(size: int) -> bytes:
    return random.Random(size).randbytes(size)


class Topics:
    """Topics with these configurations; `questions` counts how often they were asked for."""

    def __init__(self, **configs: dict[str, str]) -> None:
        self.configs = configs
        self.questions = 0
        self.failure: Exception | None = None

    def topic_configs(self, names: Collection[str]) -> dict[str, dict[str, str]]:
        self.questions += 1
        if self.failure is not None:
            raise self.failure
        return {name: self.configs[name] for name in names if name in self.configs}


class Clock:
    """In seconds, as it is set."""

    def __init__(self) -> None:
        self.now = NOW / 1000

    def __call__(self) -> float:
        return self.now


def sinks(topics: Topics, policy: ErrorPolicy, clock: Clock | None = None, **properties: str) -> SinkTopics:
    made = SinkTopics(policy, topics, ["out"], ["changelog"], properties, OwnTopics({}), clock or Clock())
    made.producer_settings()
    return made


CONTINUE, LETTERS = ErrorPolicy("continue"), ErrorPolicy("deadLetter", "letters")


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({}, TopicLimits()),
        ({"max.message.bytes": "5", "cleanup.policy": "delete"}, TopicLimits(largest=5)),
        ({"cleanup.policy": "delete,compact"}, TopicLimits(needs_key=True)),
        ({"message.timestamp.before.max.ms": "7"}, TopicLimits(before=7)),
        (
            {"message.timestamp.type": "CreateTime", "message.timestamp.after.max.ms": "8"},
            TopicLimits(after=8),
        ),
        (
            {
                "message.timestamp.type": "LogAppendTime",
                "message.timestamp.after.max.ms": "8",
                "message.timestamp.before.max.ms": "8",
            },
            TopicLimits(),
        ),
    ],
)
def test_a_topics_configuration_says_what_it_takes(config: dict[str, str], expected: TopicLimits) -> None:
    assert TopicLimits.of(config) == expected


@pytest.mark.parametrize(
    ("record", "limits", "exception", "words"),
    [
        ((b"k", b"v", -1), TopicLimits(), "InvalidTimestampException", "before 1970"),
        ((b"k", b"v", NOW - 11), TopicLimits(before=10), "InvalidTimestampException", "before.max.ms"),
        ((b"k", b"v", NOW + 11), TopicLimits(after=10), "InvalidTimestampException", "after.max.ms"),
        ((None, b"v", NOW), TopicLimits(needs_key=True), "InvalidRecordException", "compacted"),
        ((b"k", random_bytes(2000), NOW), TopicLimits(largest=1000), "RecordTooLargeException", "max.message.bytes"),
        ((b"k", b"x" * 1_000_000, NOW), TopicLimits(), "RecordTooLargeException", "message.max.bytes in spec.kafka"),
        ((random_bytes(2000), None, NOW), TopicLimits(largest=1000), "RecordTooLargeException", "2070 bytes"),
    ],
)
def test_each_kind_of_record_that_a_topic_refuses_is_known(
    record: tuple[bytes | None, bytes | None, int], limits: TopicLimits, exception: str, words: str
) -> None:
    good = (b"k", b"v", NOW)
    found = refusals(emission(good, record, good), limits, SENDING, NOW)
    assert found.keys() == {1}
    assert found[1].exception == exception
    assert words in found[1].reason


def test_what_is_at_the_limit_is_taken() -> None:
    limits = TopicLimits(before=10, after=10, needs_key=True, largest=record_bytes(b"k", random_bytes(2000), None))
    at_it = emission((b"k", b"v", NOW - 10), (b"k", b"v", NOW + 10), (b"k", random_bytes(2000), NOW))
    assert refusals(at_it, limits, Sending(1_000_000, "none"), NOW) == {}


def test_a_record_that_fits_compressed_is_taken_unless_that_has_turned_out_wrong() -> None:
    large = emission((b"k", b"x" * 5000, NOW))
    limits = TopicLimits(largest=1000)
    assert refusals(large, limits, SENDING, NOW) == {}
    assert refusals(large, limits, SENDING, NOW, strict=True).keys() == {0}
    assert refusals(large, limits, Sending(1_000_000, "none"), NOW).keys() == {0}
    assert refusals(large, limits, Sending(1_000_000, "unheard-of"), NOW).keys() == {0}


def test_headers_count() -> None:
    limits = TopicLimits(largest=1000)
    headers: Any = [None, [("a", random_bytes(1500))], [("b", base64.b64encode(random_bytes(3000)).decode())]]
    record = (b"k", b"v", NOW)
    assert refusals(emission(record, record, record, headers=headers), limits, SENDING, NOW).keys() == {1, 2}


KEYS = st.none() | st.binary(max_size=300)
VALUES = st.none() | st.binary(max_size=300) | st.integers(0, 3000).map(random_bytes)
TIMES = st.integers(NOW - 50, NOW + 50) | st.just(-1)
LIMITS = st.builds(TopicLimits, st.integers(80, 2000), st.integers(0, 60), st.integers(0, 60), st.booleans())


@given(st.lists(st.tuples(KEYS, VALUES, TIMES), max_size=6), LIMITS, st.integers(100, 2000), st.booleans())
def test_a_batch_has_the_refusals_of_its_records_one_by_one(
    records: list[tuple[bytes | None, bytes | None, int]], limits: TopicLimits, largest: int, headers: bool
) -> None:
    sending = Sending(largest, "none")

    def is_refused(key: bytes | None, value: bytes | None, time: int) -> bool:
        own: Any = [("h", b"1234")] if headers else None
        return (
            (limits.needs_key and key is None)
            or not max(0, NOW - limits.before) <= time <= NOW + limits.after
            or handed_over_bytes(key, value, own) > largest
            or record_bytes(key, value, own) > limits.largest
        )

    more: dict[str, Any] = {"headers": [[("h", b"1234")] for _ in records]} if headers else {}
    expected = {row for row, record in enumerate(records) if is_refused(*record)}
    assert refusals(emission(*records, **more), limits, sending, NOW).keys() == expected


def test_fail_sends_everything_and_leaves_the_word_to_the_brokers() -> None:
    made = sinks(Topics(out=SMALL), ErrorPolicy("fail"))
    given_ = emission((b"k", random_bytes(5000), -1))
    assert made.sift(given_).emission is given_
    assert not made.may_go_on_after(refused("out"))


def test_continue_leaves_out_what_is_refused_and_nothing_else(caplog: pytest.LogCaptureFixture) -> None:
    made = sinks(Topics(out=SMALL), CONTINUE)
    records = [(b"a", b"1", NOW), (b"b", random_bytes(5000), NOW + 1), (b"c", b"3", NOW + 2), (None, None, -5)]
    with caplog.at_level(logging.WARNING, logger="streams_runtime.tasks"):
        found = made.sift(
            emission(*records, headers=[None, None, [("h", b"x")], None], placed_by=[b"1", b"2", b"3", None])
        )
    expected = emission(records[0], records[2], headers=[None, [("h", b"x")]], placed_by=[b"1", b"3"])
    assert (found.emission, found.letters, found.refused) == (expected, None, 2)
    assert "2 records for the topic out were left out; the first, of the key b'b'" in caplog.text
    assert "max.message.bytes" in caplog.text


def test_nothing_is_sifted_of_internal_topics_and_of_those_that_are_no_sinks() -> None:
    made = sinks(Topics(out=SMALL, other=SMALL), CONTINUE)
    for topic, internal in (("out", True), ("other", False)):
        given_ = Emission(topic, internal, [b"k"], [random_bytes(5000)], [NOW])
        assert made.sift(given_).emission is given_


def test_a_letter_has_the_record_and_says_why() -> None:
    made = sinks(Topics(out=SMALL, letters={"max.message.bytes": "9000"}), LETTERS)
    value, own = random_bytes(5000), [("h", b"x")]
    sink = SinkNode("sink-out", "s", "out", None, None, "spec.topology.sinks[0]", partition_by="n")
    given, left = (ChosenPartitions(sink, numbers) for numbers in ([5, 6], [6]))
    records = (b"a", value, NOW - 9), (b"b", b"2", NOW)
    found = made.sift(emission(*records, headers=[own, None], partition=3, chosen_partitions=given))
    assert found.emission == emission(records[1], headers=[None], partition=3, chosen_partitions=left)
    assert found.letters is not None
    [headers] = found.letters.headers or []
    assert headers is not None
    assert headers[0] == own[0]
    assert dict(headers[1:]) == {
        "__streams.errors.exception": b"RecordTooLargeException",
        "__streams.errors.message": b"it has 5075 bytes, and the topic takes 1000 (max.message.bytes)",
        "__streams.errors.topic": b"out",
    }
    letters = found.letters
    assert (letters.topic, letters.keys, letters.values, letters.timestamps) == ("letters", [b"a"], [value], [NOW - 9])
    assert (letters.partition, letters.placed_by, letters.chosen_partitions) == (None, None, None)


def test_a_letter_whose_time_no_topic_takes_has_that_of_the_clock() -> None:
    made = sinks(Topics(out={"message.timestamp.after.max.ms": "10"}, letters={}), LETTERS)
    found = made.sift(emission((b"a", b"1", -7), (b"b", b"2", NOW + 100), (b"c", b"3", NOW)))
    assert found.letters is not None
    assert found.letters.timestamps == [NOW, NOW]
    assert found.letters.keys == [b"a", b"b"]


def test_a_letter_that_is_too_large_too_goes_without_its_value() -> None:
    made = sinks(Topics(out=SMALL, letters=SMALL), LETTERS)
    found = made.sift(emission((b"a", random_bytes(5000), NOW)))
    assert found.letters is not None
    assert found.letters.values == [None]
    [headers] = found.letters.headers or []
    assert ("__streams.errors.value.bytes", b"5000") in (headers or ())


def test_a_letter_that_is_refused_all_the_same_ends_the_batch_by_name() -> None:
    made = sinks(Topics(out=SMALL, letters={"cleanup.policy": "compact"}), LETTERS)
    with pytest.raises(ProducerException, match=r"topic letters does not take .* no key.*onProductionError"):
        made.sift(emission((None, random_bytes(5000), NOW)))


def test_a_topic_that_takes_more_by_now_is_found_out_ten_seconds_later() -> None:
    topics, clock = Topics(out=SMALL), Clock()
    made = sinks(topics, CONTINUE, clock)
    large = emission((b"a", random_bytes(5000), NOW))
    topics.configs["out"] = {"max.message.bytes": "9000"}
    assert made.sift(large).refused == 1
    assert topics.questions == 1
    clock.now += 10.5
    assert made.sift(large).refused == 0
    assert topics.questions == 2


def test_a_good_batch_asks_for_nothing() -> None:
    topics, clock = Topics(out=SMALL), Clock()
    made = sinks(topics, CONTINUE, clock)
    clock.now += 1000
    assert made.sift(emission((b"a", b"1", NOW))).refused == 0
    assert made.sift(emission()).refused == 0
    assert topics.questions == 1


def refused(topic: str | None) -> ProducerException:
    made = ProducerException("refused")
    made.refusing_topic = topic
    return made


def test_a_refusal_by_brokers_is_met_once_for_what_the_topic_takes() -> None:
    topics = Topics(out=SMALL)
    made = sinks(topics, CONTINUE)
    compressible = emission((b"a", b"x" * 5000, NOW))
    assert made.sift(compressible).refused == 0
    assert made.may_go_on_after(refused("out"))
    made.producer_settings()
    assert made.sift(compressible).refused == 1  # how it is compressed is not relied on any more
    assert not made.may_go_on_after(refused("out"))
    topics.configs["out"] = {"max.message.bytes": "500"}
    made.producer_settings()
    assert made.may_go_on_after(refused("out"))


@pytest.mark.parametrize("error", [refused(None), refused("changelog"), StreamsException("x"), MemoryError()])
def test_other_failures_are_not_its_affair(error: BaseException) -> None:
    assert not sinks(Topics(out=SMALL), CONTINUE).may_go_on_after(error)


def test_requests_are_no_larger_than_the_smallest_topic_takes() -> None:
    topics = Topics(out={"max.message.bytes": "70000"}, changelog={"max.message.bytes": "50000"})
    assert sinks(topics, ErrorPolicy("fail")).producer_settings() == {"batch.size": "50000"}
    assert sinks(topics, CONTINUE, **{"batch.size": "20000"}).producer_settings() == {}
    assert sinks(Topics(out={"max.message.bytes": "1048588"}), CONTINUE).producer_settings() == {}
    assert sinks(Topics(), CONTINUE).producer_settings() == {}


def test_rights_that_are_missing_are_named_where_the_policy_needs_them() -> None:
    topics = Topics()
    topics.failure = ConfigException("refused: TOPIC_AUTHORIZATION_FAILED")
    assert sinks(topics, ErrorPolicy("fail")).producer_settings() == {}
    with pytest.raises(ConfigException, match=r"onProductionError: .*AUTHORIZATION.*Allow DescribeConfigs"):
        sinks(topics, CONTINUE)
    topics.failure = BrokerNotAvailableException("away")
    with pytest.raises(BrokerNotAvailableException):
        sinks(topics, ErrorPolicy("fail"))


def decided(topic: str | None = "letters", function: str = "by_header") -> ErrorPolicy:
    return ErrorPolicy("python", topic, ErrorHandler.of(f"record_decisions:{function}", topic is not None))


def test_a_function_decides_on_each_record_that_a_topic_refuses(caplog: pytest.LogCaptureFixture) -> None:
    ASKED.clear()
    made = sinks(Topics(out=SMALL), decided())
    large, said = random_bytes(5000), ["deadLetter", "continue", "fail", "deadLetter"]
    records = [(b"%d" % number, b"1" if number == 2 else large, NOW - number) for number in range(4)]
    found = made.sift(emission(*records, headers=[[("do", each)] for each in said]))
    assert (found.emission.keys, found.refused) == ([b"2"], 3)
    assert found.letters is not None
    assert (found.letters.topic, found.letters.keys) == ("letters", [b"0", b"3"])
    assert found.letters.headers is not None
    assert dict(found.letters.headers[1] or [])["__streams.errors.exception"] == b"RecordTooLargeException"
    assert [each for _, each in ASKED] == [
        FailedRecord("out", None, None, NOW - row, b"%d" % row, large, (("do", said[row].encode()),))
        for row in (0, 1, 3)
    ]
    assert "3 records for the topic out were left out, but for 2 that were sent to letters" in caplog.text


def test_a_record_that_a_function_lets_fail_ends_the_batch_with_its_class() -> None:
    made = sinks(Topics(out=SMALL), decided(None))
    given = emission((b"k", random_bytes(5000), NOW), headers=[[("do", "fail")]])
    with pytest.raises(ProducerException, match="of the key b'k' for out can't be written: it has ") as failing:
        made.sift(given)
    assert failing.value.refused_as == "RecordTooLargeException"
    assert not made.may_go_on_after(failing.value)


def test_without_letters_nothing_is_sent_and_a_function_that_wants_some_ends_the_batch() -> None:
    made = sinks(Topics(out=SMALL), decided(None))
    left = made.sift(emission((b"k", random_bytes(5000), NOW), headers=[[("do", "continue")]]))
    assert (len(left.emission), left.letters, left.refused) == (0, None, 1)
    with pytest.raises(UserCodeException, match="could not decide on the record of the key b'k' for out"):
        made.sift(emission((b"k", random_bytes(5000), NOW), headers=[[("do", "deadLetter")]]))
