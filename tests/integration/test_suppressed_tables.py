"""toStream with suppress under the test driver and in whole clients: what goes on, and after a loss of stores."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import orjson
import pytest
from clients import client, make_topics, read, run_until_done, send, until_done
from topology_drivers import ORDERS, TOTALS, USERS, Made, document, refused
from waiting import DEADLINE, eventually

from streams_runtime.builder import StreamsBuilder, json, tumbling
from streams_runtime.errors import StreamsException
from streams_runtime.states import ClientState
from streams_runtime.testing import START, Record, TopologyTestDriver

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("spark")]

SECOND = timedelta(seconds=1)


def held(from_: str, name: str = "calm", **buffer: Any) -> dict[str, Any]:
    suppress = {"within": "10s"} | ({"buffer": buffer} if buffer else {})
    return {"name": name, "from": from_, "toStream": {"suppress": suppress}}


def at(key: str, seconds: int, value: dict[str, Any] | None, **more: Any) -> Record:
    return Record(key, value, timestamp=START + seconds * SECOND, **more)


def amount(key: str, seconds: int, amount: int) -> Record:
    return at(key, seconds, {"user": "u", "amount": amount})


def gone_on(driver: TopologyTestDriver, topic: str = "out") -> list[tuple[Any, Any, int]]:
    found = driver.output_topic(topic).read_all()
    return [(each.key, each.value, (each.timestamp - START) // SECOND) for each in found]


def test_totals_go_on_once_in_ten_seconds_of_stream_time(made: Made) -> None:
    driver = made(document([ORDERS], [TOTALS, held("totals")], {"out": "calm"}))
    orders = driver.input_topic("orders")
    for seconds in range(10):
        orders.pipe_all([amount("a", seconds, 1)])
        assert driver.output_topic("out").empty
    orders.pipe_all([amount("b", 10, 5)])
    assert gone_on(driver) == [("a", {"total": 10, "n": 10}, 9)]
    orders.pipe_all([amount("a", 11, 1), amount("c", 21, 1)])
    assert gone_on(driver) == [("b", {"total": 5, "n": 1}, 10), ("a", {"total": 11, "n": 11}, 11)]


def test_deletions_wait_too_and_every_change_has_what_its_own_record_had(made: Made) -> None:
    seen = {"name": "seen", "from": "calm", "select": {"tier": "tier", "at": "concat(_topic, ':', _offset)"}}
    driver = made(document([USERS], [held("users"), seen], {"out": "seen"}))
    users = driver.input_topic("users")
    users.pipe_all([at("a", 0, {"tier": "tin"}), at("a", 1, {"tier": "gold"}, headers=(("h", b"1"),))])
    users.pipe_all([at("b", 2, {"tier": "tin"}), at("b", 3, None)])
    with driver.batch():
        users.pipe_all([at("c", 10, {"tier": "tin"}), at("c", 12, {"tier": "tin"})])
    first, second = driver.output_topic("out").read_all()
    assert (first.key, first.value, first.headers) == ("a", {"tier": "gold", "at": "users:1"}, (("h", b"1"),))
    assert (second.key, second.value) == ("b", None)


def test_columns_of_every_type_come_back_as_they_went_in(made: Made) -> None:
    schema = "t TIMESTAMP, d DATE, l ARRAY<STRUCT<x: DOUBLE>>, b BINARY, n BIGINT, e DECIMAL(20,4), s STRING, f DOUBLE"
    source = {**USERS, "value": {"format": "json", "schema": schema}}
    driver = made(
        document(
            [source], [held("users"), {"name": "now", "from": "users", "toStream": {}}], {"out": "calm", "now": "now"}
        )
    )
    value = {
        "t": "2024-02-29T12:00:00.123456Z",
        "d": "2024-02-29",
        "l": [{"x": 0.1}, {"x": None}],
        "b": b"\x00\x01\xff",
        "n": -(2**63),
        "e": Decimal("1234567890123456.7890"),
        "s": 'é"\n',
        "f": None,
    }
    users = driver.input_topic("users")
    users.pipe("a", value, START)
    users.pipe("b", value, START + 10 * SECOND)
    ((_, waited, _),) = gone_on(driver)
    assert waited == gone_on(driver, "now")[0][1]


def test_windows_wait_each_for_itself(made: Made) -> None:
    builder = StreamsBuilder()
    orders = builder.stream("orders", key="string", value=json("user STRING, amount BIGINT"))
    minutes = (
        orders.group_by_key().windowed_by(tumbling("1m", grace="1h")).aggregate(total="sum(amount)", store="minutes")
    )
    calm = minutes.suppress("10s", name="calm")
    calm.to("out")
    calm.select({"from": "_window_start", "total": "total"}).to("starts")
    driver = made(builder)
    times = [58, 61, 59, 68, 71]
    driver.input_topic("orders").pipe_all([amount("a", seconds, 1) for seconds in times])
    found: list[Any] = driver.output_topic("out").read_all()
    assert [(each.key.window.start - START, each.value) for each in found] == [
        (timedelta(0), {"total": 2}),
        (timedelta(minutes=1), {"total": 3}),
    ]
    starts = [datetime.fromisoformat(each.value["from"]) for each in driver.output_topic("starts").read_all()]
    assert [each.astimezone(UTC) - START for each in starts] == [timedelta(0), timedelta(minutes=1)]


def test_what_has_waited_is_aggregated_made_a_table_and_met_by_streams(made: Made) -> None:
    steps = [
        held("users"),
        {"name": "by-tier", "from": "calm", "keyBy": "coalesce(tier, 'none')"},
        {"name": "tiers", "from": "by-tier", "aggregate": {"n": "count(*)"}, "store": "tiers"},
        {"name": "known", "from": "calm", "toTable": {"store": "known"}},
        {"name": "met", "from": "orders", "join": {"table": "known", "type": "left", "select": {"tier": "known.tier"}}},
    ]
    driver = made(document([USERS, ORDERS], steps, {"out": "met"}))
    users, orders = driver.input_topic("users"), driver.input_topic("orders")
    users.pipe_all([at("a", 0, {"tier": "tin"}), at("a", 1, {"tier": "gold"})])
    orders.pipe_all([amount("a", 2, 1)])
    with driver.batch():
        users.pipe_all([at("b", 11, {"tier": "tin"})])
        orders.pipe_all([amount("a", 12, 1)])
    users.pipe_all([at("c", 22, {"tier": "tin"})])
    assert [value["tier"] for _, value, _ in gone_on(driver)] == [None, "gold"]
    assert {each.key: each.value["n"] for each in driver.store("tiers").all()} == {"gold": 1, "tin": 1}


def test_a_full_buffer_emits_early_or_ends_the_application(made: Made) -> None:
    driver = made(document([USERS], [held("users", records=2)], {"out": "calm"}))
    driver.input_topic("users").pipe_all([at(key, 0, {"tier": key}) for key in "cabd"])
    assert [key for key, *_ in gone_on(driver)] == ["a", "b"]
    strict = made(document([USERS], [held("users", records=2, full="fail")], {"out": "calm"}))
    strict.input_topic("users").pipe_all([at(key, 0, {"tier": key}) for key in "ca"])
    with refused(StreamsException, "spec.topology.steps[0].toStream.suppress.buffer: the buffer of calm, partition 0"):
        strict.input_topic("users").pipe_all([at("b", 0, {"tier": "b"})])


def test_keys_that_are_no_text_and_tables_beside_tables_wait_too(made: Made) -> None:
    numbered = {
        **USERS,
        "name": "numbers",
        "topic": "numbers",
        "key": {"format": "long"},
        "table": {"store": "numbers"},
    }
    shaped = {**numbered, "name": "shapes", "topic": "shapes", "table": {"store": "shapes"}}
    shaped["key"] = {"format": "json", "schema": "x INT, y STRING"}
    both = {"name": "both", "from": "numbers", "join": {"table": "users-by-number", "type": "outer"}}
    both["join"] |= {"select": {"tier": "concat_ws('+', tier, `users-by-number`.tier)"}}
    other = {**numbered, "name": "users-by-number", "topic": "others", "table": {"store": "others"}}
    steps = [both, held("both"), held("shapes", "calm-shapes", records=1)]
    driver = made(document([numbered, other, shaped], steps, {"out": "calm", "shapes-out": "calm-shapes"}))
    numbers, others = driver.input_topic("numbers"), driver.input_topic("others")
    numbers.pipe_all([Record(-1, {"tier": "tin"}, timestamp=START), Record(2, {"tier": "tin"}, timestamp=START)])
    others.pipe_all([Record(-1, {"tier": "gold"}, timestamp=START + SECOND)])
    numbers.pipe_all([Record(2, None, timestamp=START + 2 * SECOND)])
    others.pipe_all([Record(3, {"tier": "tin"}, timestamp=START + 11 * SECOND)])
    # The bytes of -1 come after those of 2.
    assert gone_on(driver) == [(2, None, 2), (-1, {"tier": "tin+gold"}, 1)]
    keys = [{"x": 1, "y": "é"}, {"x": 1, "y": None}, {"x": 1, "y": "é"}]
    driver.input_topic("shapes").pipe_all([Record(key, {"tier": "tin"}, timestamp=START) for key in keys])
    # A place for one: of two keys of one time the one with the smaller bytes goes on early.
    assert [key for key, *_ in gone_on(driver, "shapes-out")] == [{"x": 1, "y": "é"}, {"x": 1, "y": "é"}]


def application(prefix: str, **buffer: Any) -> str:
    value = '{format: json, schema: "n BIGINT, at BIGINT"}'
    suppress = orjson.dumps({"within": "10s"} | ({"buffer": buffer} if buffer else {})).decode()
    return f"""
sources: [{{name: orders, topic: {prefix}-orders, key: {{format: string}}, value: {value}, timestamp: at}}]
steps:
  - {{name: totals, from: orders, aggregate: {{total: sum(n)}}, store: totals}}
  - {{name: calm, from: totals, toStream: {{suppress: {suppress}}}}}
sinks: [{{from: calm, topic: {prefix}-calm}}]
"""


BEGIN = int(time.time()) * 1000 - 600_000


def sent(key: str, seconds: int, number: int) -> tuple[str, dict[str, Any]]:
    return key, {"n": number, "at": BEGIN + seconds * 1000}


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
def test_changes_that_wait_are_there_after_all_stores_were_lost(
    broker: Any, namespace: str, tmp_path: Path, guarantee: str
) -> None:
    bootstrap, orders = broker.bootstrap_servers, f"{namespace}-orders"

    def passed() -> list[tuple[bytes | None, int]]:
        return [(each.key(), orjson.loads(each.value())["total"]) for each in read(bootstrap, f"{namespace}-calm")]

    make_topics(bootstrap, **{orders: 1, f"{namespace}-calm": 1})
    settings = {"processing": {"guarantee": guarantee}}
    send(bootstrap, orders, [sent("a", 0, 1), sent("a", 5, 2), sent("b", 9, 4), sent("old", 30, 1), sent("c", 31, 1)])
    with client(bootstrap, namespace, application(namespace), tmp_path / "first", **settings) as made:
        run_until_done(made, [orders])
        until_done(made, [orders])
        assert passed() == [(b"a", 3), (b"b", 4)]
    with client(bootstrap, namespace, application(namespace), tmp_path / "second", **settings) as made:
        # Stream time has come back too: what is late by more than ten seconds goes on at once.
        send(bootstrap, orders, [sent("late", 20, 7), sent("c", 39, 1), sent("d", 41, 1)])
        run_until_done(made, [orders])
        until_done(made, [orders])
        assert passed()[2:] == [(b"late", 7), (b"old", 1), (b"c", 2)]


def test_a_full_buffer_stops_the_client_before_anything_of_the_batch_and_more_room_goes_on(
    broker: Any, namespace: str, tmp_path: Path
) -> None:
    bootstrap, orders = broker.bootstrap_servers, f"{namespace}-orders"
    settings = {"processing": {"guarantee": "exactly_once_v2"}}

    def passed() -> list[tuple[bytes | None, int]]:
        found = read(bootstrap, f"{namespace}-calm", committed=True)
        return [(each.key(), orjson.loads(each.value())["total"]) for each in found]

    make_topics(bootstrap, **{orders: 1, f"{namespace}-calm": 1})
    strict = application(namespace, records=2, full="fail")
    send(bootstrap, orders, [sent("a", 0, 1), sent("b", 1, 2), sent("a", 2, 4)])
    with client(bootstrap, namespace, strict, tmp_path / "first", **settings) as made:
        run_until_done(made, [orders])
        until_done(made, [orders])
        assert passed() == []
    # Two wait; a third is one too many, after a restart from the changelog as well. It moves nothing on.
    send(bootstrap, orders, [sent("b", 3, 8), sent("c", 4, 16)])
    for folder in ("first", "second"):
        with client(bootstrap, namespace, strict, tmp_path / folder, **settings) as made:
            made.start()
            assert made.wait_for(ClientState.ERROR, timeout=DEADLINE)
            assert "the buffer of calm, partition 0, is full: 3 keys of at most 2" in str(made.error)
        assert passed() == []
    with client(
        bootstrap, namespace, application(namespace, records=3, full="fail"), tmp_path / "third", **settings
    ) as made:
        run_until_done(made, [orders])
        send(bootstrap, orders, [sent("d", 12, 1)])
        until_done(made, [orders])
        eventually(lambda: passed() == [(b"a", 5), (b"b", 10)], lambda: f"{passed()}", DEADLINE)
