"""Tables grouped by another key, with Spark: numbers that are not finite, keys of every format, and what is refused."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest
from pipeline_kit import Pipeline, source, topology_of

from streams_runtime import StreamsBuilder, json
from streams_runtime.errors import InvalidApplicationException
from streams_runtime.testing import TopologyTestDriver

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]


def application() -> StreamsBuilder:
    """Made in Python: sums of what is not finite, by a struct; and by the table's own keys, in a second step."""
    builder = StreamsBuilder()
    rows = builder.table("in", key="string", value=json("g STRING, t STRING, f FLOAT, b BOOLEAN"), store="rows")
    read = rows.select({"g": "g", "d": "cast(t as double)", "f": "f", "b": "b"})
    columns = {"n": "count(*)", "d": "sum(d)", "mean": "avg(d)", "f": "sum(f)", "true": "count_if(b)"}
    sums = read.group_by("named_struct('g', g)").aggregate(columns | {"old": "sum(d) FILTER (WHERE b)"}, store="sums")
    sums.to_stream().to("sums")
    read.group_by("_key").count("rows", store="own").to("own")
    sums.filter("n > 0").group_by("n").count("groups", store="sizes").to("sizes")
    return builder


def test_what_is_not_finite_leaves_without_a_trace_and_keys_may_be_structs(spark: SparkSession) -> None:
    with TopologyTestDriver(application(), partitions={"in": 3}) as machine:
        topic = machine.input_topic("in")
        headers = [("h", b"1")]
        topic.pipe("a", {"g": "x", "t": "0.1", "f": 0.1, "b": True}, 1, headers)
        with machine.batch():
            topic.pipe("b", {"g": "x", "t": "NaN", "f": 0.2, "b": True}, 2)
            topic.pipe("c", {"g": "x", "t": "-Infinity", "f": None, "b": None}, 3)
            topic.pipe("d", {"g": "x", "t": "1e300", "f": 1.5, "b": False}, 4)
        (sums,) = [row.value for row in machine.store("sums").all()]
        assert (sums["n"], sums["true"]) == (4, 2)
        assert math.isnan(float(sums["d"]))
        topic.pipe("b", None, 5)
        topic.pipe("c", {"g": None, "t": "3", "f": None, "b": None}, 6)
        topic.pipe("d", {"g": "y", "t": "1e300", "f": 1.5, "b": False}, 7)
        found = {row.key["g"]: row.value for row in machine.store("sums").all()}
        small = float.fromhex("0x1.99999a0000000p-4")  # 0.1 as a FLOAT
        assert found == {
            "x": {"n": 1, "d": 0.1, "mean": 0.1, "f": small, "true": 1, "old": 0.1},
            "y": {"n": 1, "d": 1e300, "mean": 1e300, "f": 1.5, "true": 0, "old": None},
            None: {"n": 1, "d": 3.0, "mean": 3.0, "f": None, "true": 0, "old": None},  # a struct of null is not null
        }
        assert {row.key: row.value["rows"] for row in machine.store("own").all()} == {"a": 1, "b": 0, "c": 1, "d": 1}
        assert {row.key: row.value["groups"] for row in machine.store("sizes").all() if row.value["groups"]} == {1: 3}
        assert machine.output_topic("sums").read().headers == tuple(headers)


def refused(spark: SparkSession, schema: str, **more: Any) -> str:
    table = source(schema=schema) | {"table": {"store": "rows"}}
    step = {"name": "g", "from": "in", "groupBy": "k", "aggregate": {"x": "sum(v)"}, "store": "g"} | more
    with pytest.raises(InvalidApplicationException) as caught:
        Pipeline(spark, topology_of([table], [step], [{"from": "g", "topic": "out"}]))
    return str(caught.value)


def test_what_only_spark_can_refuse_is_told_at_its_own_field(spark: SparkSession) -> None:
    where = "spec.topology.steps[0]"
    assert f"{where}.aggregate.x: sums of type DECIMAL(20,2) are not there yet" in refused(
        spark, "k STRING, v DECIMAL(10,2)"
    )
    assert f"{where}.aggregate.x: " in refused(spark, "k STRING, v ARRAY<INT>")
    assert f"{where}.groupBy: " in refused(spark, "k ARRAY<INT>, v INT", groupBy="sequence(1, k[0])")
    both = refused(spark, "k STRING, v INT", aggregate={"x": "sum(from_json(v, 'n INT').n)", "y": "count_if(hash(v))"})
    assert f"{where}.aggregate.x: " in both
    assert f"{where}.aggregate.y: hash(v) is INT, and count_if is of conditions" in both
