"""The test driver with aggregates by reduce: written, kept in stores, and told where they fail."""

from __future__ import annotations

from typing import Any

import pytest
from topology_drivers import ORDERS, Made, document

from streams_runtime.errors import InvalidApplicationException, StreamsException
from streams_runtime.state.aggregates.reduce_state import CHUNK_SIZE
from streams_runtime.testing import START, Record

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("spark")]

BALANCE = {
    "name": "balance",
    "from": "orders",
    "aggregate": {"left": "reduce(10, (left, row) -> left - cast(row.amount as int))", "n": "count(*)"},
    "store": "balance",
}
CHANGES = {"changes": "changes"}


def test_orders_are_taken_off_what_every_key_begins_with(made: Made) -> None:
    driver = made(document([ORDERS], [BALANCE], {"balance": "balance"}))
    orders, balance = driver.input_topic("orders"), driver.output_topic("balance")
    orders.pipe("ann", {"amount": 3})
    orders.pipe_all([("ann", {"amount": 2}), ("bob", {"amount": 1}), ("ann", {"amount": 1})])
    assert balance.read() == Record("ann", {"left": 7, "n": 1}, START)
    assert balance.read_latest_by_key() == {"ann": {"left": 4, "n": 3}, "bob": {"left": 9, "n": 1}}
    assert driver.store("balance").get("ann") == {"left": 4, "n": 3}


def test_a_value_that_the_lambda_fails_on_is_told_and_the_driver_goes_on_without_it(made: Made) -> None:
    driver = made(document([ORDERS], [BALANCE], {"balance": "balance"}))
    orders, balance = driver.input_topic("orders"), driver.output_topic("balance")
    with pytest.raises(StreamsException, match=r"aggregate\.left: the expression failed in Spark: \[CAST_OVERFLOW\]"):
        orders.pipe("ann", {"amount": 2**40})
    orders.pipe("ann", {"amount": 1})
    assert balance.read_all() == [Record("ann", {"left": 9, "n": 1}, START)]


def test_every_change_of_a_lambda_is_told_in_the_order_of_the_records(made: Made) -> None:
    trail = "if(row.amount = 0, null, concat(trail, ',', cast(row.amount as string)))"
    folded = {
        "trail": f"reduce('', (trail, row) -> {trail})",
        "seen": "reduce(named_struct('last', cast(null as bigint), 'all', array(0L)), (seen, row) ->"
        " named_struct('last', row.amount, 'all', slice(concat(seen.all, array(row.amount)), -2, 2)))",
        "at": "reduce(cast(null as timestamp), (at, row) -> row._timestamp)",
        "raw": "reduce(cast('' as binary), (raw, row) -> cast(row._key as binary))",
        "newest": "python('custom_classes:Newest', _timestamp as at, amount as a, cast(amount as double) as half,"
        " cast(_key as binary) as raw)",
        "n": "count(*)",
    }
    steps = [{**BALANCE, "aggregate": folded}, {"name": "changes", "from": "balance", "toStream": {}}]
    driver = made(document([ORDERS], steps, CHANGES))
    orders, changes = driver.input_topic("orders"), driver.output_topic("changes")
    amounts = [("ann", 1), ("bob", 5), ("ann", 2), ("ann", 0), ("ann", 3), (None, 4), ("bob", 6)]
    orders.pipe("ann", {"amount": 7})
    orders.pipe_all([(key, {"amount": amount}) for key, amount in amounts])
    records = changes.read_all()
    told = [(each.key, each.value["trail"], each.value["seen"], each.value["n"]) for each in records]
    assert told == [
        ("ann", ",7", {"last": 7, "all": [0, 7]}, 1),
        ("ann", ",7,1", {"last": 1, "all": [7, 1]}, 2),
        ("bob", ",5", {"last": 5, "all": [0, 5]}, 1),
        ("ann", ",7,1,2", {"last": 2, "all": [1, 2]}, 3),
        ("ann", None, {"last": 0, "all": [2, 0]}, 4),
        ("ann", ",3", {"last": 3, "all": [0, 3]}, 5),
        ("bob", ",5,6", {"last": 6, "all": [5, 6]}, 2),
    ]
    assert {(each.value["at"], each.key == "ann", each.value["raw"]) for each in records} == {
        ("2024-01-01T00:00:00.000000Z", True, "YW5u"),
        ("2024-01-01T00:00:00.000000Z", False, "Ym9i"),
    }
    newest = [each.value["newest"] for each in records if each.key == "ann"]
    assert newest == [
        {"days": ["2024-01-01"] * days, "most": most} for days, most in ((1, 7), (2, 7), (3, 7), (3, 2), (3, 3))
    ]
    many = [("cyd", {"amount": number + 1}) for number in range(2 * CHUNK_SIZE + 3)]
    orders.pipe_all(many)
    found = [each.value["trail"] for each in changes.read_all()]
    assert found == ["," + ",".join(map(str, range(1, end + 2))) for end in range(len(many))]


def test_every_change_of_a_lambda_over_sessions_is_told_however_many_there_are(made: Made) -> None:
    trail = "(trail, row) -> concat(trail, ',', cast(row.amount as string))"
    both = "(one, other) -> concat('[', one, '|', other, ']')"
    windows = {"session": {"gap": "10s"}, "retention": "1m"}
    step = {**BALANCE, "aggregate": {"trail": f"reduce('', {trail}, {both})"}, "window": windows}
    driver = made(document([ORDERS], [step, {"name": "changes", "from": "balance", "toStream": {}}], CHANGES))
    orders, changes = driver.input_topic("orders"), driver.output_topic("changes")
    early, late = range(2 * CHUNK_SIZE + 3), range(CHUNK_SIZE)
    orders.pipe_all(
        [("ann", {"amount": number}, number) for number in early]
        + [("ann", {"amount": number}, 15_000 + number) for number in late]
        + [("ann", {"amount": -1}, 8_000), ("ann", {"amount": -2}, 8_001)]
    )
    found = [each.value["trail"] for each in changes.read_all() if each.value is not None]
    firsts, lasts = (["," + ",".join(map(str, each[: end + 1])) for end in range(len(each))] for each in (early, late))
    together = f"[{firsts[-1]}|{lasts[-1]}],-1"
    assert found == [*firsts, *lasts, together, f"{together},-2"]


@pytest.mark.parametrize("windows", [{}, {"window": {"tumbling": {"size": "1m"}}}])
def test_a_failure_in_a_lambda_of_which_every_change_is_told_names_its_field(made: Made, windows: Any) -> None:
    steps = [{**BALANCE, **windows}, {"name": "changes", "from": "balance", "toStream": {}}]
    orders = made(document([ORDERS], steps, CHANGES)).input_topic("orders")
    with pytest.raises(StreamsException, match=r"aggregate\.left: the expression failed in Spark: \[CAST_OVERFLOW\]"):
        orders.pipe("ann", {"amount": 2**40})


def test_users_functions_are_refused_within_a_lambda(made: Made) -> None:
    functions = {"halved": {"python": "user_functions:halved", "returns": "INT"}}
    given = document([ORDERS], [{**BALANCE, "aggregate": {"left": "reduce(0, (n, row) -> halved(n))"}}], {})
    given["spec"]["topology"]["functions"] = functions
    with pytest.raises(InvalidApplicationException, match="halved is a function of yours, and Spark calls none within"):
        made(given)
