"""The test driver's parts that need no Spark: values that fit a schema or not, topics in memory, the outbox."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

import streams_runtime.testing.spark_for_tests as sessions
from streams_runtime.errors import ProducerException
from streams_runtime.kafka.producer.partitioner import partition_for
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.state.serdes import SerdeException
from streams_runtime.testing.driver_records import START, Record, headers_of, ms_of
from streams_runtime.testing.fitting_inputs import fitted
from streams_runtime.testing.memory_topics import Logs, batch_of
from streams_runtime.testing.mock_producer import MockProducer, Sent

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)


def struct(**fields: Any) -> dict[str, Any]:
    return {"type": "struct", "fields": [{"name": name, "type": kind} for name, kind in fields.items()]}


def array(element: Any) -> dict[str, Any]:
    return {"type": "array", "elementType": element}


@pytest.mark.parametrize(
    ("value", "kind", "written"),
    [
        (None, "long", None),
        (2**63 - 1, "long", 2**63 - 1),
        (-128, "byte", -128),
        (3, "double", 3),
        (0.5, "float", 0.5),
        (True, "boolean", True),
        ("", "string", ""),
        (b"\x00\xff", "binary", "AP8="),
        (Decimal("1.10"), "decimal(10,2)", "1.10"),
        (7, "decimal(10,2)", 7),
        (NOON, "timestamp", "2024-05-01T12:00:00+00:00"),
        ("2024-05-01 12:00", "timestamp", "2024-05-01 12:00"),
        (1714564800, "timestamp", 1714564800),
        (NOON.replace(tzinfo=None), "timestamp_ntz", "2024-05-01T12:00:00"),
        (date(2024, 5, 1), "date", "2024-05-01"),
        (["a", None], array("string"), ["a", None]),
        ((1, 2), array("integer"), [1, 2]),
        ({"x": 1}, {"type": "map", "valueType": "long"}, {"x": 1}),
        ({"a": {"b": [NOON]}}, struct(a=struct(b=array("timestamp"))), {"a": {"b": ["2024-05-01T12:00:00+00:00"]}}),
        ({}, struct(a="long"), {}),
        ("whatever", "variant", "whatever"),
    ],
)
def test_what_fits_a_schema_is_written_as_json_has_it(value: Any, kind: Any, written: Any) -> None:
    assert fitted(value, kind, "v") == written


@pytest.mark.parametrize(
    ("value", "kind", "message"),
    [
        ("3", "long", "v is '3' (str), which is no LONG; give an int from -9223372036854775808 to 9223372036854775807"),
        (True, "long", "v is true (bool), which is no LONG; give an int"),
        (3.0, "integer", "v is 3.0 (float), which is no INTEGER; give an int from -2147483648 to 2147483647"),
        (128, "byte", "v is 128 (int), which is no BYTE; give an int from -128 to 127"),
        ("3", "double", "v is '3' (str), which is no DOUBLE; give a float or an int"),
        (True, "double", "v is true (bool), which is no DOUBLE"),
        (1, "boolean", "v is 1 (int), which is no BOOLEAN; give True or False"),
        (1, "string", "v is 1 (int), which is no STRING; give a str"),
        ("AP8=", "binary", "v is 'AP8=' (str), which is no BINARY; give bytes"),
        ("1.1", "decimal(10,2)", "v is '1.1' (str), which is no DECIMAL(10,2); give a Decimal, an int or a float"),
        (NOON.replace(tzinfo=None), "timestamp", "which is no TIMESTAMP; give a datetime with a time zone"),
        (NOON, "timestamp_ntz", "which is no TIMESTAMP_NTZ; give a datetime without a time zone"),
        (NOON, "date", "which is no DATE; give a date"),
        ("abc", array("string"), "v is 'abc' (str), which is no ARRAY; give a list"),
        ([1, "2"], array("long"), "v[1] is '2' (str), which is no LONG"),
        ({"x": "1"}, {"type": "map", "valueType": "long"}, "v['x'] is '1' (str), which is no LONG"),
        ({1: 2}, {"type": "map", "valueType": "long"}, "which is no MAP; give a dict whose keys are names"),
        (3, struct(amount="long"), "v is 3 (int), which is no STRUCT; give a dict whose keys are names"),
        ({"amout": 3}, struct(amount="long"), "v has no column 'amout' in its schema; did you mean 'amount'?"),
        ({"a": {"c": 3}}, struct(a=struct(b="long")), "v.a has no column 'c' in its schema; known here: b"),
        ({"a": "x"}, struct(a="long"), "v.a is 'x' (str), which is no LONG"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place_and_what_would_do(value: Any, kind: Any, message: str) -> None:
    with pytest.raises(SerdeException, match=re.escape(message)):
        fitted(value, kind, "v")


def test_a_topic_in_memory_places_keys_as_kafka_does_and_lets_keyless_records_take_turns() -> None:
    logs = Logs({"in": 3})
    for key in (b"a", b"b", None, b"a", None, None, None):
        logs.append(Sent("in", None, key, b"v", 1), key)
    logs.append(Sent("in", 2, b"a", b"named", 1), b"a")
    logs.append(Sent("in", None, b"a" + bytes(8), b"windowed", 1), b"a")
    found = [(each.key, each.partition) for each in logs.unread("in")]
    own = {key: partition_for(key, 3) for key in (b"a", b"b")}
    keyless = [(None, 0), (None, 1), (None, 2), (None, 0)]
    assert [each for each in found if each[0] is None] == keyless
    assert [each for each in found if each[0] in own][:-1] == [(b"a", own[b"a"]), (b"b", own[b"b"]), (b"a", own[b"a"])]
    assert found[-2:] == [(b"a", 2), (b"a" + bytes(8), own[b"a"])]
    for partition in range(3):
        offsets = [each.offset for each in logs.unread("in") if each.partition == partition]
        assert offsets == list(range(len(offsets)))
        assert logs.end(TopicPartition("in", partition)) == len(offsets)


def test_records_are_taken_once_and_those_of_topics_that_nobody_reads_are_only_counted() -> None:
    logs = Logs({"in": 1, "other": 1})
    logs.append(Sent("in", None, b"a", b"1", 5, [("h", b"x")]), b"a")
    logs.append(Sent("other", None, b"a", None, 6), b"a")
    logs.append(Sent("app-changelog", 4, b"a", b"1", 5), b"a")
    taken = logs.take(["in", "other"])
    assert [(each.topic, each.value) for each in taken] == [("in", b"1"), ("other", None)]
    assert logs.take(["in", "other", "app-changelog"]) == []
    assert logs.end(TopicPartition("app-changelog", 4)) == 1
    logs.append(Sent("in", None, b"a", b"2", 5), b"a")
    batch = batch_of([*taken, *logs.take(["in"])])
    assert {str(each.partition): (each.start, each.end) for each in batch.ranges} == {"in-0": (0, 2), "other-0": (0, 1)}
    assert batch.records is not None
    first = batch.records.to_pylist()[0]
    assert first["headers"] == [{"key": "h", "value": b"x"}]
    assert first["timestamp"] == datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=5)


def test_an_outbox_refuses_times_before_1970_as_the_producer_does_and_keeps_nothing_of_the_batch() -> None:
    outbox = MockProducer()
    with pytest.raises(
        ProducerException, match=re.escape("record 1 for out has the timestamp -1, which is before 1970")
    ):
        outbox.send("out", [b"a", b"b"], [b"1", b"2"], [0, -1])
    assert outbox.records == []
    outbox.send("out", [b"a", None], [b"1", None], [0, 7], headers=[None, [("h", b"x")]], placed_by=[b"k", None])
    assert outbox.records == [Sent("out", None, b"a", b"1", 0), Sent("out", None, None, None, 7, [("h", b"x")])]
    assert outbox.placed == {("out", b"a"): b"k", ("out", None): None}


def test_moments_and_headers_are_taken_in_every_form_that_is_told() -> None:
    assert ms_of(NOON) == ms_of(1714564800000) == 1714564800000
    with pytest.raises(ValueError, match="no time zone; give an aware datetime"):
        ms_of(NOON.replace(tzinfo=None))
    assert ms_of(-1) == -1, "a topic may have a record of such a time, whatever becomes of it"
    assert headers_of({"a": "ü", "b": None}) == [("a", "ü".encode()), ("b", None)]
    assert headers_of([("a", b"x"), ("a", b"y")]) == [("a", b"x"), ("a", b"y")]
    assert headers_of(()) is None


def test_records_are_equal_wherever_they_lie() -> None:
    assert Record("a", {"n": 1}, START, partition=1) == Record("a", {"n": 1}, START, partition=2)
    assert Record("a", {"n": 1}, START) != Record("a", {"n": 1}, START, headers=(("h", b"x"),))


class PlayedSession:
    def __init__(self) -> None:
        self.stops = 0

    def stop(self) -> None:
        self.stops += 1


@pytest.mark.parametrize(("running", "stops"), [(True, 0), (False, 1)])
def test_only_a_spark_that_was_started_for_the_test_is_stopped(
    monkeypatch: pytest.MonkeyPatch, running: bool, stops: int
) -> None:
    session = PlayedSession()
    monkeypatch.setattr(sessions, "is_running", lambda: running)
    monkeypatch.setattr(sessions, "open_session", lambda *_: session)
    with sessions.spark_session() as found:
        assert found is session
        assert session.stops == 0
    assert session.stops == stops
    with pytest.raises(KeyError), sessions.spark_session():
        raise KeyError
    assert session.stops == 2 * stops
