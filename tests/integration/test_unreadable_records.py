"""Records that can't be read, by their text or their times: they are left out before any step meets them."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC
from typing import TYPE_CHECKING, Any

import pytest
from pipeline_bench import Bench, open_tasks
from pipeline_kit import Pipeline, Record, source, topology_of, values

from streams_runtime.errors import DeserializationException
from streams_runtime.kafka.consumer.record_table import LATEST_TIME
from streams_runtime.state.store import Updates
from streams_runtime.state.unjoined_records import STREAM_TIME, joined_values, unjoined_key
from streams_runtime.state.window_keys import window_key
from streams_runtime.testing import START
from streams_runtime.topology.nodes.stream_join_node import Side

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.integration

NO_TIMES = [-1, -5, -(2**63), LATEST_TIME + 1, 1_700_000_000_000_000, 2**63 - 1]
NO_TEXTS = [b"\xff", b"a\xc3", b"\xed\xa0\x80", b"ok\xf5\x80\x80\x80"]
SCHEMA = "n BIGINT, ts BIGINT, at TIMESTAMP"
GIVEN = [("a", 0), ("b", 1_000), ("a", 5_000), ("a", 30_000), ("b", 31_000), ("a", LATEST_TIME - 1), ("b", LATEST_TIME)]
COUNTED = {"aggregate": {"n": "count(*)", "at": "max(_timestamp)"}}


def counted(kind: str, name: str, from_: str = "in", **more: Any) -> dict[str, Any]:
    """A step that counts in windows of this kind."""
    length = {
        "tumbling": {"size": "10s", "grace": "5s"},
        "hopping": {"size": "10s", "advance": "3s"},
        "sliding": {"timeDifference": "10s"},
        "session": {"gap": "10s"},
    }[kind]
    return {"name": name, "from": from_, "store": name, "window": {kind: length}, **COUNTED, **more}


MET = {"name": "met", "from": "in", "join": {"stream": "other", "within": "10s", "type": "outer", "select": {"m": "1"}}}
STEPS: list[dict[str, Any]] = [
    MET,
    {"name": "once", "from": "in", "dedupe": {"within": "10s"}},
    {"name": "beside", "from": "in", "join": {"table": "users", "type": "left", "select": {"m": "users.n"}}},
    {"name": "latest", "from": "in", "toTable": {"store": "latest"}},
    {"name": "changes", "from": "latest", "toStream": {}},
    {"name": "by-n", "from": "in", "keyBy": "cast(n as string)"},
    {"name": "numbers", "from": "by-n", "store": "numbers", **COUNTED},
    counted("tumbling", "tumbling", suppress="untilWindowCloses"),
    counted("hopping", "hopping"),
    counted("sliding", "sliding", suppress="untilWindowCloses"),
    counted("session", "session"),
    {"name": "each", "from": "session", "toStream": {}},
]


def streams(one: dict[str, Any], other: dict[str, Any]) -> list[dict[str, Any]]:
    """Two sources of records with times, `in` and `other`."""
    return [source(schema=SCHEMA, **one), source(schema=SCHEMA, **other) | {"name": "other", "topic": "other"}]


def records(times: Sequence[tuple[str, int]], begin: int) -> list[Record]:
    """A record of each of the two streams for each key and time, which are in its value too."""
    return [
        Record(key.encode(), value(n=number, ts=ms, at=text_of(ms)), topic, 0, begin + number, ms)
        for number, (key, ms) in enumerate(times)
        for topic in ("in", "other")
    ]


def value(**columns: Any) -> bytes:
    return json.dumps(columns).encode()


def text_of(ms: int) -> str | None:
    """A time as JSON has it; None where datetimes don't reach."""
    return str(START.fromtimestamp(ms / 1000, UTC)) if 0 <= ms <= LATEST_TIME else None


def test_no_step_meets_a_time_that_no_record_may_have(spark: SparkSession) -> None:
    users = source(schema="n BIGINT") | {"name": "users", "topic": "users", "table": {"store": "users"}}
    written = ("met", "once", "beside", "changes", "tumbling", "hopping", "sliding", "each")
    topology = topology_of([*streams({}, {}), users], STEPS, [{"from": name, "topic": name} for name in written])
    pipeline = Pipeline(spark, topology)
    good, bad = records(GIVEN, 0), records([("a", time) for time in NO_TIMES], 50)
    with ExitStack() as stack:
        clean, other = (Bench(pipeline, open_tasks(stack, topology)) for _ in range(2))
        clean.process(*good)
        before = int(time.time() * 1000)
        other.process(*good, *bad, policy="deadLetter", topic="letters")
        letters = [each for each in other.producer.records if each.topic == "letters"]
        assert [each for each in other.producer.records if each.topic != "letters"] == clean.producer.records
        assert {each.topic for each in clean.producer.records} >= {*written, "app-by-n-repartition"}
        assert len(letters) == other.counters.deserialization_errors == len(bad)
        assert dict(letters[0].headers or [])["__streams.errors.message"] == (
            b"its time is -1 ms, and records have times from 0 (1970) to 99999999999999 ms"
        )
        assert all(each.timestamp >= before for each in letters), "brokers refuse or delete those of such times"


def test_nor_one_that_a_source_declares(spark: SparkSession) -> None:
    steps = [MET, counted("hopping", "hopping"), counted("hopping", "later", "other")]
    sinks = [{"from": name, "topic": name} for name in ("met", "hopping", "later")]
    topology = topology_of(streams({"timestamp": "ts"}, {"timestamp": "at"}), steps, sinks)
    pipeline = Pipeline(spark, topology)
    good = [replace(each, time=-1) for each in records(GIVEN, 0)]
    texts = ["1969-12-31T23:59:59.999Z", "0001-01-01T00:00:00Z", "5138-11-16T09:46:40Z", "+294247-01-10T04:00:54Z"]
    bad = [Record(b"a", value(ts=ms), offset=50 + number) for number, ms in enumerate(NO_TIMES)]
    bad += [Record(b"a", value(at=text), "other", offset=50 + number) for number, text in enumerate(texts)]
    own = [Record(b"a", value(n=1), "in", offset=70), Record(b"a", None, "other", offset=70, time=-1)]
    with ExitStack() as stack:
        clean, other = (Bench(pipeline, open_tasks(stack, topology)) for _ in range(2))
        clean.process(*good)
        other.process(*good, *bad, *own, policy="continue")
        assert other.producer.records == clean.producer.records
        assert {each.topic for each in clean.producer.records} >= {"met", "hopping", "later"}
        assert other.counters.deserialization_errors == len(bad) + len(own)
        reasons = {
            (b"a", value(ts=-5), "in", 1): "in-0@3 can't be read: its timestamp ts is -5 ms",
            (b"a", value(at=texts[0]), "other", 1): "other-0@3 can't be read: its timestamp at is -1 ms",
            (b"a", None, "other", -7): "other-0@3 can't be read: its time is -7 ms",
        }
        for (key, data, topic, ms), words in reasons.items():
            with pytest.raises(DeserializationException, match=re.escape(f"record {words}, and records have times")):
                other.process(Record(key, data, topic, offset=3, time=ms))


CALENDAR = ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z"]
NO_CALENDAR = ["-290000-01-01T00:00:00Z", "0000-12-31T23:59:59.999999Z", "+10000-01-01T00:00:00Z"]


def dated(column: str, text: str) -> bytes:
    """A value with a time, or with a date, by itself or inside of another column."""
    text = text if column in ("at", "times") else text.partition("T")[0]
    return value(**{column: {"times": [text], "days": {"d": text}}.get(column, text)})


def test_no_step_meets_a_time_in_a_column_that_no_calendar_has(spark: SparkSession) -> None:
    schema = "at TIMESTAMP, da DATE, times ARRAY<TIMESTAMP>, days MAP<STRING, DATE>"
    ids = source(schema="n BIGINT", key=None, name="ids", topic="ids")
    sources = [source(schema=schema), ids | {"key": {"format": "json", "schema": "at TIMESTAMP, da DATE"}}]
    latest = {"aggregate": {"at": "max(at)", "da": "last(da)"}}
    steps: list[dict[str, Any]] = [
        {"name": "by-time", "from": "in", "keyBy": "struct(at, da)"},
        {"name": "latest", "from": "in", "store": "latest", **latest},
        {"name": "session", "from": "in", "store": "session", "window": {"session": {"gap": "10s"}}, **latest},
    ]
    sinks = [{"from": name, "topic": f"to-{name}"} for name in ("in", "by-time", "latest", "session", "ids")]
    topology = topology_of(sources, steps, sinks)
    pipeline = Pipeline(spark, topology)
    columns = ("at", "da", "times", "days")
    good, bad = (
        [
            Record(b"a", dated(column, text), offset=at + number)
            for column in columns
            for number, text in enumerate(texts)
        ]
        for at, texts in ((0, CALENDAR), (50, NO_CALENDAR))
    )
    with ExitStack() as stack:
        clean, other = (Bench(pipeline, open_tasks(stack, topology)) for _ in range(2))
        clean.process(*good)
        other.process(*good, *bad, policy="deadLetter", topic="letters")
        letters = [each for each in other.producer.records if each.topic == "letters"]
        assert [(each.key, each.value) for each in letters] == [(each.key, each.value) for each in bad]
        assert [each for each in other.producer.records if each.topic != "letters"] == clean.producer.records
        assert {each.topic for each in clean.producer.records} >= {"to-in", "to-by-time", "to-latest", "to-session"}
    keys = [Record(dated(column, text), value(n=1), "ids") for column in columns[:2] for text in CALENDAR + NO_CALENDAR]
    (sub,) = (each.id for each in topology.subtopologies if "ids" in each.source_topics)
    found = pipeline.run(*keys, sub=sub)
    assert (found.records, found.broken, len(values(found, "to-ids"))) == (10, 6, 4)


def test_text_that_is_no_utf_8_enters_no_store_and_no_topic(spark: SparkSession) -> None:
    sources = [
        *streams({}, {}),
        source("string", name="texts", topic="texts"),
        source(schema="n BIGINT", key=None, name="ids", topic="ids")
        | {"key": {"format": "json", "schema": "i INT, j STRING"}},
    ]
    steps = [MET, counted("session", "session", suppress="untilWindowCloses")]
    sinks = [{"from": name, "topic": f"to-{name}"} for name in ("met", "session", "texts", "ids")]
    topology = topology_of(sources, steps, sinks)
    pipeline = Pipeline(spark, topology)
    good = records(GIVEN, 0)
    bad = [Record(text, value(n=1), "in", offset=50 + number) for number, text in enumerate(NO_TEXTS)]
    bad.append(Record(b"a", b'{"n": 1, "more": "\xff"}', "in", offset=60))
    with ExitStack() as stack:
        clean, other = (Bench(pipeline, open_tasks(stack, topology)) for _ in range(2))
        clean.process(*good)
        other.process(*good, *bad, policy="deadLetter", topic="letters")
        letters = [each for each in other.producer.records if each.topic == "letters"]
        assert [each for each in other.producer.records if each.topic != "letters"] == clean.producer.records
        assert {each.topic for each in clean.producer.records} >= {"to-met", "to-session"}
        assert [(each.key, each.value) for each in letters] == [(each.key, each.value) for each in bad]
        reasons = [dict(each.headers or [])["__streams.errors.message"] for each in letters]
        assert reasons[1] == rb"its key is not UTF-8 (unexpected end of data at byte 1): a\xc3"
        assert reasons[4] == rb'its value is not UTF-8 (invalid start byte at byte 18): {"n": 1, "more": "\xff"}'
    texts = [Record("ä".encode(), "\ufffd".encode(), "texts"), *(Record(b"a", each, "texts") for each in NO_TEXTS)]
    ids = [Record(b'{"i": 1}', value(n=1), "ids"), Record(b'{"i": 1, "j": "\xff"}', value(n=1), "ids")]
    for sub, given in ((1, texts), (2, ids)):
        found = pipeline.run(*given, sub=sub)
        assert (found.records, found.broken, len(values(found, f"to-{given[0].topic}"))) == (
            len(given),
            len(given) - 1,
            1,
        )


def test_a_key_that_a_store_has_from_elsewhere_goes_on_as_kafkas_deserializer_reads_it(spark: SparkSession) -> None:
    topology = topology_of(
        streams({}, {}),
        [MET, counted("tumbling", "last", suppress="untilWindowCloses")],
        [{"from": name, "topic": name} for name in ("met", "last")],
    )
    with ExitStack() as stack:
        bench = Bench(Pipeline(spark, topology), open_tasks(stack, topology))
        stores = bench.tasks[0].stores
        for name, data in (("last", b'{"n":1,"at":"1970-01-01T00:00:01Z"}'), ("met-this-join-store", b'{"n":1}')):
            stores[name].write(Updates([window_key(b"a\xff", 1_000 * (name != "last"))], [data], [1_000]), 1)
        place = (1_000, Side.LEFT, b"a\xff")
        alone = Updates(
            [unjoined_key(place), STREAM_TIME], [joined_values([b'{"n":1}']), (1_000).to_bytes(8, "big")], [1_000] * 2
        )
        stores["met-shared-join-store"].write(alone, 1)
        bench.store(bench.process(Record(b"b", value(n=2), "in", offset=9, time=60_000)))
        written = [(each.topic, each.key) for each in bench.producer.records if each.topic in ("met", "last")]
        assert sorted(written) == [("last", "a\ufffd".encode() + bytes(8)), ("met", "a\ufffd".encode())]
