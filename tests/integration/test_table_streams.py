"""Streams that become tables, and tables that become streams, under the test driver: what goes on, and with what."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shared_cases import EXAMPLES, shared, shared_batches
from topology_drivers import ORDERS, TOTALS, USERS, Made, document

from streams_runtime.builder import StreamsBuilder, json, tumbling
from streams_runtime.testing import START, Record, TopologyTestDriver

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("spark")]

LATEST = {"name": "latest", "from": "orders", "toTable": {"store": "latest"}}


def step(name: str, from_: str, **what: Any) -> dict[str, Any]:
    return {"name": name, "from": from_, **what}


def told(from_: str, name: str = "changes") -> dict[str, Any]:
    return step(name, from_, toStream={})


def rows(driver: TopologyTestDriver, topic: str) -> list[tuple[Any, Any]]:
    return [(each.key, each.value) for each in driver.output_topic(topic).read_all()]


def order(key: str | None, amount: int | None, **more: Any) -> Record:
    return Record(key, None if amount is None else {"user": "u", "amount": amount}, **more)


def test_a_table_holds_the_last_value_of_each_key_and_can_be_queried(made: Made) -> None:
    driver = made(document([ORDERS], [LATEST], {"out": "latest"}))
    driver.input_topic("orders").pipe_all(
        [order("a", 1), order("b", 2), order("a", 3), order(None, 9), order("b", None)]
    )
    assert {each.key: each.value["amount"] for each in driver.store("latest").all()} == {"a": 3}
    assert driver.counters.records_dropped == 1
    assert [(key, value and value["amount"]) for key, value in rows(driver, "out")] == [
        ("a", 1),
        ("b", 2),
        ("a", 3),
        ("b", None),
    ]


def test_what_stands_in_a_store_is_read_as_it_was_written_whatever_its_type(made: Made) -> None:
    schema = "t TIMESTAMP, d DATE, l ARRAY<STRUCT<x: DOUBLE>>, b BINARY, n BIGINT, e DECIMAL(20,4), s STRING"
    value = {"format": "json", "schema": schema}
    source = {**ORDERS, "value": value}
    join = {"table": "latest", "select": {"then": "latest"}}
    driver = made(document([source], [LATEST, step("both", "orders", join=join)], {"out": "both"}))
    given = {
        "t": "2024-02-29T12:00:00.123456Z",
        "d": "2024-02-29",
        "l": [{"x": 0.1}, {"x": None}],
        "b": b"\x00\x01\xff",
        "n": -(2**63),
        "e": Decimal("1234567890123456.7890"),
        "s": 'é"\n',
    }
    driver.input_topic("orders").pipe("a", given)
    ((_, found),) = rows(driver, "out")
    assert found["then"] == {name: found[name] for name in given}
    assert (found["t"], found["l"], found["n"]) == (given["t"], given["l"], given["n"])


def test_a_stream_of_changes_has_the_headers_and_the_place_of_the_records_that_brought_them_about(made: Made) -> None:
    steps = [
        step("gold", "users", where="tier = 'gold'"),
        told("gold"),
        step("seen", "changes", select={"tier": "tier", "at": "concat(_topic, ':', _offset)"}),
        step("marked", "seen", headers={"new": "'1'"}),
    ]
    driver = made(document([USERS], steps, {"out": "marked"}))
    with driver.batch():
        users = driver.input_topic("users")
        users.pipe_all([("a", {"tier": "tin"}), ("a", {"tier": "gold"})])
        users.pipe_all([Record("a", {"tier": "tin"}, headers=(("h", b"2"),))])
    first, second = driver.output_topic("out").read_all()
    assert (first.value, first.headers) == ({"tier": "gold", "at": "users:1"}, (("new", b"1"),))
    assert (second.value, second.headers) == (None, (("h", b"2"), ("new", b"1")))


def test_changes_are_aggregated_by_another_key_and_meet_every_step_of_a_stream(made: Made) -> None:
    steps = [
        told("users"),
        step("each", "changes", flatMap={"explode": "split(tier, '-')", "as": "part"}),
        step("counted", "each", peek={"metric": "parts"}),
        step("once", "counted", dedupe={"within": "1s", "by": "part"}),
        step("by-part", "once", keyBy="part"),
        step("parts", "by-part", aggregate={"n": "count(*)"}, store="parts"),
    ]
    driver = made(document([USERS], steps, {"out": "parts"}))
    users = driver.input_topic("users", auto_advance=timedelta(seconds=1))
    users.pipe_all([("a", {"tier": "x-y-x"}), ("b", {"tier": "y"}), ("a", None), ("a", {"tier": "x"})])
    assert {each.key: each.value["n"] for each in driver.store("parts").all()} == {"x": 2, "y": 1}
    assert [sums[0] for sums in driver.counters.peeks.values()] == [5]


def test_windows_go_on_as_a_stream_when_they_have_closed(made: Made) -> None:
    builder = StreamsBuilder()
    orders = builder.stream("orders", key="string", value=json("user STRING, amount BIGINT"))
    minutes = orders.group_by_key().windowed_by(tumbling("1m")).suppress().aggregate(n="sum(amount)", store="minutes")
    changes = minutes.filter("n > 1").to_stream().peek(metric="closed")
    changes.to("windows")
    starts = changes.select(n="n", minute="cast(minute(_window_start) as string)")
    starts.group_by("minute", name="by-minute").aggregate(total="sum(n)", keys="count(*)", store="totals").to("totals")
    driver = made(builder)
    times = [0, 10, 59, 61, 200]
    sent = [order("ab"[at % 2], 2, timestamp=START + timedelta(seconds=at)) for at in times]
    driver.input_topic("orders").pipe_all(sent)
    assert {each.key: each.value for each in driver.store("totals").all()} == {
        "0": {"total": 6, "keys": 2},
        "1": {"total": 2, "keys": 1},
    }
    assert [sums[0] for sums in driver.counters.peeks.values()] == [3]
    windows: list[Any] = driver.output_topic("windows").read_all()
    assert [(each.key.key, each.key.window.start - START, each.value) for each in windows] == [
        ("a", timedelta(0), {"n": 4}),
        ("b", timedelta(0), {"n": 2}),
        ("b", timedelta(minutes=1), {"n": 2}),
    ]


def test_a_table_of_several_topics_has_the_value_whose_turn_came_last(made: Made) -> None:
    other = {**ORDERS, "name": "more", "topic": "more"}
    merged = {"name": "all", "merge": ["orders", "more"]}
    steps = [merged, {**LATEST, "from": "all"}, told("latest")]
    driver = made(document([ORDERS, other], steps, {"out": "changes", "table": "latest"}))
    with driver.batch():
        for topic, amount, second in (("orders", 1, 5), ("orders", 2, 7), ("more", 3, 6), ("more", 4, 4)):
            at = START + timedelta(seconds=second)
            driver.input_topic(topic).pipe_all([order("a", amount, timestamp=at)])
    # The topic `more` has come to second 6 when its last record is read.
    for topic in ("out", "table"):
        assert [value["amount"] for _, value in rows(driver, topic)] == [1, 3, 4, 2]
    assert [each.value["amount"] for each in driver.store("latest").all()] == [2]


def test_the_elements_of_one_record_become_rows_in_their_order(made: Made) -> None:
    steps = [
        step("each", "users", flatMap={"explode": "split(tier, '-')", "as": "part"}),
        step("by", "each", select={"part": "part"}),
        step("last", "by", toTable={"store": "last"}),
        step("some", "last", where="part != 'x'"),
        step("count", "each", aggregate={"n": "count(*)", "most": "max(part)"}, store="count"),
        told("count"),
    ]
    stream = {name: value for name, value in USERS.items() if name != "table"}
    driver = made(document([stream], steps, {"out": "some", "counts": "changes"}))
    driver.input_topic("users").pipe("a", {"tier": "a-x-c-b"})
    assert [value and value["part"] for _, value in rows(driver, "out")] == ["a", None, "c", "b"]
    assert [(value["n"], value["most"]) for _, value in rows(driver, "counts")] == [
        (1, "a"),
        (2, "x"),
        (3, "x"),
        (4, "x"),
    ]


AGGREGATES = {
    "n": "count(*)",
    "given": "count(amount)",
    "total": "sum(amount)",
    "least": "min(amount)",
    "most": "max(user)",
    "mean": "avg(amount)",
    "first": "first(amount)",
    "last": "last(amount)",
    "spread": "variance(amount)",
    "some": "approx_count_distinct(amount)",
    "middle": "approx_percentile(amount, 0.5)",
    "list": "collect_list(amount, 2)",
    "set": "collect_set(amount, 2)",
    "kinds": "count(distinct amount)",
}


@pytest.fixture(scope="module")
def every_aggregate(spark: Any) -> Any:
    counted = {**TOTALS, "aggregate": AGGREGATES}
    with TopologyTestDriver(
        document([ORDERS], [counted, told("totals")], {"out": "changes", "table": "totals"})
    ) as driver:
        yield driver


def by_case(driver: TopologyTestDriver, topic: str, cases: int) -> list[list[Any]]:
    """What each case has in the topic: key, value and time."""
    found: list[list[Any]] = [[] for _ in range(cases)]
    for each in driver.output_topic(topic).read_all():
        key, case, _ = each.key.split()
        found[int(case)].append((key, _near(each.value), each.timestamp))
    return found


RUNS = count()
"""A number for each run, whose keys are its own."""


@settings(max_examples=EXAMPLES)
@given(
    shared(
        st.lists(
            st.tuples(st.sampled_from("ab"), st.one_of(st.none(), st.integers(0, 4)), st.integers(0, 9)),
            min_size=1,
            max_size=12,
        )
    )
)
def test_every_aggregate_tells_after_each_record_what_it_is_in_a_batch_of_its_own(
    every_aggregate: TopologyTestDriver, cases: list[list[tuple[str, int | None, int]]]
) -> None:
    """Each case comes twice, in one batch and record by record; keys say which one they are of."""
    driver, run = every_aggregate, next(RUNS)
    both = [(each, cuts) for cuts in ([], range(12)) for each in cases]
    rows = [
        (
            [
                Record(f"{key} {number} {run}", {"user": key, "amount": amount}, START + timedelta(seconds=second))
                for key, amount, second in each
            ],
            cuts,
        )
        for number, (each, cuts) in enumerate(both)
    ]
    for together in shared_batches(rows):
        driver.input_topic("orders").pipe_all(together)
    out, table = (by_case(driver, topic, len(both)) for topic in ("out", "table"))
    assert out == table
    assert out[: len(cases)] == out[len(cases) :]
    assert [len(told) for told in out] == [len(each) for each, _ in both]


def _near(value: dict[str, Any]) -> dict[str, Any]:
    """Sums of numbers that are no integers may end in another digit."""
    return {name: round(each, 9) if isinstance(each, float) else each for name, each in value.items()}


def test_what_a_store_keeps_of_an_aggregate_is_joined_and_filtered_as_it_is_seen(made: Made) -> None:
    means = step("means", "orders", aggregate={"mean": "avg(amount)"}, store="means")
    join = {"table": "means", "select": {"mean": "means.mean"}}
    steps = [means, step("high", "means", where="mean > 2"), step("seen", "users", join=join)]
    stream = {name: value for name, value in USERS.items() if name != "table"}
    driver = made(document([ORDERS, stream], steps, {"out": "seen", "high": "high"}))
    orders, users = driver.input_topic("orders"), driver.input_topic("users")
    # Without a join a where of an aggregate writes a deletion each time: here it knows what was there before.
    for amount in (1, 2, 6, 1, 1):
        orders.pipe_all([order("a", amount)])
        users.pipe("a", {"tier": "x"})
    assert [value["mean"] for _, value in rows(driver, "out")] == [1.0, 1.5, 3.0, 2.5, 2.2]
    assert rows(driver, "high") == [("a", {"mean": 3.0}), ("a", {"mean": 2.5}), ("a", {"mean": 2.2})]
    orders.pipe_all([order("a", -9)])
    assert rows(driver, "high") == [("a", None)]
