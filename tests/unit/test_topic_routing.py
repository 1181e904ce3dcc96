"""Which topic each record of a sink with `topicBy` goes to, and which records go nowhere."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from typing import Any

import pytest
from confluent_kafka import KafkaError
from record_decisions import ASKED

from streams_runtime.batch.stage import ChosenTopics, Emission
from streams_runtime.errors import BrokerNotAvailableException, ConfigException, ProducerException
from streams_runtime.kafka.producer.delivery_reports import is_of_absence
from streams_runtime.processing.failures.error_policy import ErrorHandler, ErrorPolicy
from streams_runtime.processing.failures.sink_topics import SinkTopics
from streams_runtime.processing.failures.topic_routing import Routed, TopicRouting
from streams_runtime.topology.nodes.source_and_sink_nodes import SinkNode
from streams_runtime.topology.own_topics import OwnTopics

PATH = "spec.topology.sinks[0]"
NOW = 1_700_000_000_000
FAIL, CONTINUE, LETTERS = ErrorPolicy("fail"), ErrorPolicy("continue"), ErrorPolicy("deadLetter", "letters")


class Brokers:
    """Topics with these configurations, of which `hidden` ones may not be seen; `asked` are the look-ups, in order."""

    def __init__(self, *topics: str, hidden: Collection[str] = (), **configs: dict[str, str]) -> None:
        self.configs = {**{topic: dict[str, str]() for topic in topics}, **configs}
        self.hidden = hidden
        self.asked: list[list[str]] = []
        self.away = False

    def partition_counts(self, names: Collection[str]) -> Mapping[str, int]:
        self.asked.append(list(names))
        if self.away:
            raise BrokerNotAvailableException("nobody answers")
        if any(name in self.hidden for name in names):
            raise ConfigException("not authorized to look up the topics")
        return {name: 1 for name in names if name in self.configs}

    def topic_configs(self, names: Collection[str]) -> dict[str, dict[str, str]]:
        return {name: self.configs[name] for name in names if name in self.configs}


class Clock:
    now = NOW / 1000

    def __call__(self) -> float:
        return self.now


def emission(*topics: str | None, among: tuple[str, ...] | None = None, **more: Any) -> Emission:
    """A record for each topic: the keys are their numbers, and they came of those offsets."""
    sink = SinkNode("sink-of-orders", "orders", None, None, None, PATH, "topic", among)
    rows = range(len(topics))
    origins = (["orders"] * len(rows), [3] * len(rows), list(rows))
    keys, values = ([f"{what}{row}".encode() for row in rows] for what in "kv")
    chosen = ChosenTopics(sink, topics, origins)
    return Emission("", False, keys, values, [NOW + row for row in rows], chosen=chosen, **more)


def sinks(brokers: Brokers, policy: ErrorPolicy, clock: Clock | None = None, **own: str) -> SinkTopics:
    made = SinkTopics(policy, brokers, ["out"], ["changelog"], {}, OwnTopics(own), clock or Clock())
    made.producer_settings()
    return made


def by_topic(routed: Routed) -> dict[str, list[bytes | None]]:
    return {each.topic: each.keys for each in routed.emissions}


def test_each_topic_gets_its_records_in_their_order_with_all_that_they_have() -> None:
    headers: Any = [[("h", bytes([row]))] for row in range(4)]
    given = emission("a", "b", "a", "c", headers=headers, placed_by=[b"0", b"1", b"2", b"3"])
    routed = TopicRouting(Brokers("a", "b", "c"), OwnTopics({})).route(given)
    first = routed.emissions[0]
    assert by_topic(routed) == {"a": [b"k0", b"k2"], "b": [b"k1"], "c": [b"k3"]}
    assert (first.values, first.timestamps, first.headers) == ([b"v0", b"v2"], [NOW, NOW + 2], [headers[0], headers[2]])
    assert (first.placed_by, first.sink, first.chosen) == ([b"0", b"2"], "sink-of-orders", None)
    assert not routed.refused


@pytest.mark.parametrize(
    ("topic", "exception", "reason"),
    [
        (None, "InvalidTopicException", "gives null"),
        ("", "InvalidTopicException", "no name for a topic"),
        ("..", "InvalidTopicException", "no name for a topic"),
        ("a/b", "InvalidTopicException", "no name for a topic"),
        ("x" * 250, "InvalidTopicException", "of 250 characters"),
        ("orders", "InvalidTopicException", "which this application reads"),
        ("bills-eu", "InvalidTopicException", "which this application reads"),
        ("missing", "UnknownTopicOrPartitionException", "no such topic"),
        ("hidden", "TopicAuthorizationException", "not authorized"),
    ],
)
def test_a_record_without_a_topic_is_known_and_the_others_go_on(topic: str | None, exception: str, reason: str) -> None:
    brokers = Brokers("a", "b", "orders", "bills-eu", hidden=["hidden"])
    own = OwnTopics({"orders": "this application reads"}, ("bills-.*",))
    routed = TopicRouting(brokers, own).route(emission("a", topic, "b"))
    assert by_topic(routed) == {"a": [b"k0"], "b": [b"k2"]}
    assert routed.refused.keys() == {1}
    assert routed.refused[1].exception == exception
    assert reason in routed.refused[1].reason


def test_a_sink_that_lists_its_topics_writes_no_others() -> None:
    routed = TopicRouting(Brokers("a", "b"), OwnTopics({})).route(emission("a", "b", among=("a",)))
    assert by_topic(routed) == {"a": [b"k0"]}
    assert "not among the sink's topics" in routed.refused[1].reason


def test_a_topic_that_is_there_is_looked_for_once_and_one_that_is_not_every_ten_seconds() -> None:
    brokers, clock = Brokers("a"), Clock()
    routing = TopicRouting(brokers, OwnTopics({}), clock)
    for _ in range(3):
        assert routing.route(emission("a", "late")).refused.keys() == {1}
    assert brokers.asked == [["a", "late"]]
    brokers.configs["late"] = {}
    clock.now += 9.9
    assert routing.route(emission("late")).refused
    clock.now += 0.2
    assert not routing.route(emission("late")).refused
    assert brokers.asked == [["a", "late"], ["late"]]
    # Another name that nobody has asked for is no reason to wait.
    assert routing.route(emission("other")).refused
    assert brokers.asked[-1] == ["other"]


def test_any_number_of_names_is_asked_for_in_parts_and_not_all_are_remembered() -> None:
    brokers = Brokers("a", hidden=["n-77"])
    routing = TopicRouting(brokers, OwnTopics({}), Clock())
    names = [f"n-{number}" for number in range(25_000)]
    assert len(routing.route(emission(*names, "a")).refused) == 25_000
    assert max(map(len, brokers.asked)) == 1000
    assert len(brokers.asked) < 60  # one that may not be seen costs some halvings
    assert len(routing._absent) == 10_000
    routing.route(emission(*(f"m-{number}" for number in range(5000))))
    assert len(routing._absent) == 5000


def test_brokers_that_are_away_are_no_verdict() -> None:
    brokers = Brokers("a")
    made = sinks(brokers, CONTINUE)
    brokers.away = True
    with pytest.raises(BrokerNotAvailableException):
        made.route(emission("a"))
    brokers.away = False
    emissions, sifted = made.route(emission("a"))
    assert (len(emissions), sifted.refused) == (1, 0)


def test_fail_names_sink_record_and_topic() -> None:
    made = sinks(Brokers("a"), FAIL)
    found = r"sink-of-orders \(spec\.topology\.sinks\[0\]\) .* key b'k1', of the record orders-3@1: .*gives b for it"
    with pytest.raises(ProducerException, match=found):
        made.route(emission("a", "b"))


def test_continue_leaves_out_and_the_log_tells(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="streams_runtime.tasks"):
        emissions, sifted = sinks(Brokers("a"), CONTINUE).route(emission("a", "b", None))
    assert [each.topic for each in emissions] == ["a"]
    assert (len(sifted.emission), sifted.letters, sifted.refused) == (0, None, 2)
    assert "2 records of the sink sink-of-orders were left out, for want of a topic; the first" in caplog.text
    assert "orders-3@1" in caplog.text


def test_letters_say_which_topic_it_was() -> None:
    own: Any = [None, [("h", b"x")], None]
    _, sifted = sinks(Brokers("a", "letters"), LETTERS).route(emission("a", "b", None, headers=own))
    letters = sifted.letters
    assert letters is not None
    assert (letters.topic, letters.keys, letters.chosen, letters.sink) == ("letters", [b"k1", b"k2"], None, None)
    first, second = letters.headers or ()
    assert first is not None
    assert second is not None
    assert first[0] == ("h", b"x")
    assert dict(first[1:])["__streams.errors.topic"] == b"b"
    assert dict(second).keys() == {"__streams.errors.exception", "__streams.errors.message"}


def test_a_function_decides_on_records_that_have_no_topic() -> None:
    ASKED.clear()
    policy = ErrorPolicy("python", "letters", ErrorHandler.of("record_decisions:by_header", True))
    own: Any = [None, [("do", "continue")], [("do", "deadLetter")], None]
    emissions, sifted = sinks(Brokers("a", "letters"), policy).route(emission("a", "b", None, "a", headers=own))
    assert [each.keys for each in emissions] == [[b"k0", b"k3"]]
    assert sifted.letters is not None
    assert (sifted.letters.keys, sifted.refused) == ([b"k2"], 2)
    assert [(kind, each.topic, each.offset, each.value) for kind, each in ASKED] == [
        ("ProducerException", "b", None, b"v1"),
        ("ProducerException", None, None, b"v2"),
    ]
    with pytest.raises(ProducerException, match="lets it fail") as failing:
        sinks(Brokers("a"), policy).route(emission("b", headers=[[("do", "fail")]]))
    assert failing.value.refused_as == "UnknownTopicOrPartitionException"


def test_a_topic_that_an_expression_names_refuses_records_as_a_declared_one_does() -> None:
    made = sinks(Brokers("letters", small={"max.message.bytes": "100"}), LETTERS)
    [routed], _ = made.route(emission("small"))
    large = Emission("small", False, [b"k"], [bytes(range(256)) * 4], [NOW], sink=routed.sink)
    assert made.sift(large).refused == 1
    # One of a topic that no sink writes is nobody's affair.
    assert made.sift(Emission("letters", False, [b"k"], [bytes(2_000_000)], [NOW])).refused == 0


def refused(topic: str | None = None, missing: bool = False) -> ProducerException:
    made = ProducerException("refused")
    made.refusing_topic, made.for_want_of_topic = topic, missing
    return made


@pytest.mark.parametrize("policy", [FAIL, CONTINUE])
def test_a_topic_that_has_gone_is_looked_for_once_more(policy: ErrorPolicy) -> None:
    brokers, clock = Brokers("a"), Clock()
    made = sinks(brokers, policy, clock)
    assert not made.may_go_on_after(refused(missing=True))  # it can be none of an expression's
    made.route(emission("a"))
    assert not made.may_go_on_after(refused())
    for attempt in range(3):
        assert made.may_go_on_after(refused(missing=True))
        made.route(emission("a"))  # it is there all the same
        assert brokers.asked == [["a"]] * (attempt + 2)
    # A producer that goes on saying so is believed.
    assert not made.may_go_on_after(refused(missing=True))
    clock.now += 11
    made.route(emission("a"))
    assert made.may_go_on_after(refused(missing=True))


def test_after_a_failure_of_any_kind_a_topic_is_looked_for_and_its_limits_are_kept_until_then() -> None:
    brokers = Brokers("a", small={"max.message.bytes": "5000"})
    made = sinks(brokers, CONTINUE)
    made.route(emission("a", "small"))
    made.look_again()
    # The next producer is made before the next record is there.
    assert made.producer_settings() == {"batch.size": "5000"}
    del brokers.configs["a"]
    emissions, left_out = made.route(emission("a", "small"))
    assert ([each.topic for each in emissions], left_out.refused) == (["small"], 1)
    assert brokers.asked == [["a", "small"]] * 2


def test_a_producer_that_sends_too_much_at_once_for_a_new_topic_is_made_anew_once_under_fail_too() -> None:
    made = sinks(Brokers(small={"max.message.bytes": "5000"}), FAIL)
    assert not made.may_go_on_after(refused("small"))
    made.route(emission("small"))
    assert made.may_go_on_after(refused("small"))
    assert made.producer_settings() == {"batch.size": "5000"}
    assert not made.may_go_on_after(refused("small"))


@pytest.mark.parametrize(
    ("code", "is_absent"),
    [
        (KafkaError._UNKNOWN_TOPIC, True),
        (KafkaError._UNKNOWN_PARTITION, True),
        (KafkaError.UNKNOWN_TOPIC_OR_PART, True),
        (KafkaError._DESTROY, True),  # librdkafka let the partition go while the record waited to be sent once more
        (KafkaError.MSG_SIZE_TOO_LARGE, False),
        (KafkaError._PURGE_QUEUE, False),
    ],
)
def test_what_librdkafka_says_of_records_whose_topic_is_gone_counts_as_its_absence(code: int, is_absent: bool) -> None:
    assert is_of_absence(KafkaError(code)) == is_absent
    assert not is_of_absence(None)
