"""Merges of several stages under the test driver: in which order rows go on, with what, wherever batches begin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from shared_cases import shared_batches
from topology_drivers import ORDERS, USERS, Made, document

from streams_runtime.errors import InvalidApplicationException
from streams_runtime.testing import START, Record, TopologyTestDriver

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("spark")]

REFUNDS = {**ORDERS, "name": "refunds", "topic": "refunds"}
ONCE = {"name": "once", "from": "orders", "dedupe": {"within": "10s"}}
COLUMNS = {"amount": "amount", "topic": "_topic", "tier": "cast(null as string)"}
STEPS: list[dict[str, Any]] = [
    ONCE,
    {"name": "beside", "from": "once", "join": {"table": "users", "type": "left", "select": {"tier": "users.tier"}}},
    {"name": "paid", "from": "beside", "select": {**COLUMNS, "tier": "tier"}},
    {"name": "back", "from": "refunds", "select": COLUMNS},
    {"name": "all", "merge": ["back", "paid"]},
    {
        "name": "counts",
        "from": "all",
        "window": {"tumbling": {"size": "10s"}, "late": {"topic": "late"}},
        "aggregate": {"n": "count(*)"},
        "store": "counts",
    },
]
APPLICATION = document([ORDERS, REFUNDS, USERS], STEPS, {"out": "all", "counts": "counts"})


def at(seconds: int) -> Any:
    return START + timedelta(seconds=seconds)


GIVEN: list[tuple[str, Record]] = [
    ("users", Record("a", {"tier": "gold"}, at(0))),
    ("orders", Record("a", {"amount": 1}, at(1), headers=[("h", b"1")])),
    ("refunds", Record("a", {"amount": 2}, at(2))),
    ("orders", Record("a", {"amount": 3}, at(3))),
    ("orders", Record("b", {"amount": 4}, at(25))),
    ("refunds", Record("b", {"amount": 5}, at(26))),
    ("users", Record("a", {"tier": "blue"}, at(27))),
    ("refunds", Record("a", {"amount": 6}, at(4))),
    ("orders", Record("a", {"amount": 7}, at(28))),
]

CUTS: list[Sequence[int]] = [[], [2, 5], range(1, len(GIVEN))]
"""Before which records batches begin."""


def pipe(driver: TopologyTestDriver, given: list[tuple[str, Record]]) -> None:
    with driver.batch():
        for topic, each in given:
            driver.input_topic(topic).pipe_all([each])


def answers(driver: TopologyTestDriver) -> list[dict[str, Any]]:
    """What each case has got, whose number is the end of its keys."""
    found: list[dict[str, Any]] = [{"out": [], "counts": {}, "late": []} for _ in CUTS]
    for each in read(driver, "out"):
        row = each.key[0], each.value["amount"], each.value["tier"], each.value["topic"]
        found[int(each.key[1])]["out"].append(row)
    for window, value in driver.output_topic("counts").read_latest_by_key().items():
        found[int(window.key[1])]["counts"][window.key[0], *window.window] = value
    for each in read(driver, "late"):
        row = each.value["amount"], dict(each.headers or [])["__streams.late.topic"]
        found[int(each.key[1])]["late"].append(row)
    return found


def read(driver: TopologyTestDriver, topic: str) -> list[Any]:
    return list(driver.output_topic(topic).read_all())


def test_rows_go_on_in_the_order_of_their_records_wherever_batches_begin(made: Made) -> None:
    """Each case has a partition of its own."""
    driver = made(APPLICATION, partitions=len(CUTS))
    cases = [
        ([(topic, replace(each, key=f"{each.key}{case}", partition=case)) for topic, each in GIVEN], cuts)
        for case, cuts in enumerate(CUTS)
    ]
    for together in shared_batches(cases):
        pipe(driver, together)
    found = answers(driver)
    assert found[0] == found[1] == found[2]
    assert found[0]["out"] == [
        ("a", 1, "gold", "orders"),
        ("a", 2, None, "refunds"),
        ("b", 4, None, "orders"),
        ("b", 5, None, "refunds"),
        ("a", 6, None, "refunds"),
        ("a", 7, "blue", "orders"),
    ]
    assert found[0]["late"] == [(6, b"refunds")]
    assert (driver.counters.late_records, driver.counters.records_dropped) == (len(CUTS), len(CUTS))


def test_what_goes_by_the_order_of_offsets_is_refused_behind_it(made: Made) -> None:
    last = {"name": "n", "from": "all", "aggregate": {"x": "last(amount)"}, "store": "n"}
    with pytest.raises(InvalidApplicationException, match="a merge behind a join or a dedupe"):
        made(document([ORDERS], [ONCE, {"name": "all", "merge": ["orders", "once"]}, last], {"out": "n"}))
