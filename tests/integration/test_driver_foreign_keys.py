"""Joins by a foreign key in the test driver: formats and types of keys and columns, steps around them, queries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pipeline_kit import BY_SPARK, mistakes_of, topology_of
from topology_drivers import Made, document

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.integration


def table(name: str, schema: str | None, key: str = "string", value: str = "json", **more: Any) -> dict[str, Any]:
    values = {"format": value} | ({} if schema is None else {"schema": schema})
    return {"name": name, "topic": name, "key": {"format": key}, "value": values, "table": {"store": name}} | more


def joined(on: str, select: dict[str, str], kind: str = "inner", **more: Any) -> dict[str, Any]:
    join = {"table": "plans", "type": kind, "key": on, "select": select}
    return {"name": "both", "from": "users", "join": join, "store": "both"} | more


@pytest.mark.usefixtures("spark")
def test_columns_of_every_type_come_from_both_sides_and_steps_behind_see_them(made: Made) -> None:
    users = table("users", "plan STRUCT<id: INT>, tags MAP<STRING, INT>, since TIMESTAMP, raw BINARY", key="long")
    plans = table("plans", "price DECIMAL(9, 2), days ARRAY<DATE>, since BIGINT", key="int", timestamp="since")
    select = {"price": "plans.price", "all": "plans", "who": "_key", "at": "_timestamp", "raw": "hex(raw)"}
    behind = {"name": "dear", "from": "both", "where": "price > 5", "select": {"who": "who + 1", "tag": "tags['a']"}}
    driver = made(
        document([users, plans], [joined("plan.id", select, "left"), behind], {"out": "both", "dear": "dear"}),
        partitions={"users": 3, "plans": 2},
    )
    plan = {"price": 9.5, "days": ["2024-02-29"], "since": 7000}
    user = {"plan": {"id": -3}, "tags": {"a": 1}, "since": "2024-05-01T12:00:00.000001Z", "raw": b"\xff"}
    driver.input_topic("plans").pipe(-3, plan)
    driver.input_topic("users").pipe(2**40, user, timestamp=5000)
    (record,) = driver.output_topic("out").read_all()
    row = {
        "plan": {"id": -3},
        "tags": {"a": 1},
        "since": "2024-05-01T12:00:00.000001Z",
        "price": 9.5,
        "all": {"price": 9.5, "days": ["2024-02-29"], "since": 7000},
        "who": 2**40,
        "at": "1970-01-01T00:00:05.000000Z",
        "raw": "FF",
    }
    assert (record.key, record.value, record.timestamp.timestamp()) == (2**40, row, 7)
    assert driver.store("both").get(2**40) == row
    assert driver.output_topic("dear").read().value == {"who": 2**40 + 1, "tag": 1}
    driver.input_topic("users").pipe(2**40, user | {"plan": None}, timestamp=6000)
    assert driver.store("both").get(2**40)["all"] is None
    assert driver.output_topic("dear").read().value is None
    driver.input_topic("users").pipe(2**40, None)
    assert driver.store("both").get(2**40) is None


@pytest.mark.usefixtures("spark")
def test_a_table_is_joined_with_itself_and_values_of_one_column_are_named_value(made: Made) -> None:
    staff = table("staff", None, value="string")
    step = {"name": "bosses", "from": "staff", "store": "bosses"}
    join = {"table": "staff", "key": "value", "select": {"value": "concat(value, '<', staff.value)"}}
    sink = {"from": "bosses", "topic": "out", "value": {"format": "string"}}
    driver = made(document([staff], [step | {"join": join}], [sink]), partitions={"staff": 3})
    staff_topic, out = driver.input_topic("staff"), driver.output_topic("out")
    with driver.batch():
        for key, boss in (("cid", "bob"), ("bob", "ada"), ("ada", "ada"), ("dan", "eva")):
            staff_topic.pipe(key, boss)
    assert out.read_latest_by_key() == {"cid": "bob<ada", "bob": "ada<ada", "ada": "ada<ada"}
    staff_topic.pipe("ada", "")
    assert out.read_latest_by_key() == {"bob": "ada<", "ada": None}
    staff_topic.pipe("", "nobody")
    assert out.read_latest_by_key() == {"ada": "<nobody"}


def test_what_only_spark_knows_to_be_wrong_is_told_at_its_field(spark: SparkSession) -> None:
    sources = [table("users", "plan STRING"), table("plans", "price INT", key="long")]
    on, select = "nosuch(plan)", {"a": "nosuch2(plans.price)", "b": "plans.price"}
    sinks = [{"from": "both", "topic": "out"}]
    found = mistakes_of(spark, topology_of(sources, [joined(on, select)], sinks, **BY_SPARK))
    assert set(found) == {"spec.topology.steps[0].join.key", "spec.topology.steps[0].join.select.a"}
    found = mistakes_of(
        spark, topology_of(sources, [joined("if(true, nullif(plan, ''), plan)", {"b": "1"})], sinks, **BY_SPARK)
    )
    assert found == {
        "spec.topology.steps[0].join.key": "if(true, nullif(plan, ''), plan) is string, and the keys of plans are long;"
        " give the type of the other table's key: cast(… as …)"
    }
