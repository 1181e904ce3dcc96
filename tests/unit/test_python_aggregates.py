"""Calls of classes in Python as a resource has them: their form, their columns, how they are described and compared."""

from __future__ import annotations

import pytest

from streams_runtime.api import Reading, read_application
from streams_runtime.api.flow.known_columns import Column, Columns, type_named
from streams_runtime.api.sql.aggregate_calls import AggregateCall, aggregate_problems, parse_aggregate
from streams_runtime.topology.changes.compare import changes
from streams_runtime.topology.declared.build_topology import build_topology
from streams_runtime.topology.plan import Topology

COLUMNS = Columns(
    (Column("amount", type_named("DOUBLE")), Column("at", type_named("STRUCT<day: INT>")), Column("_timestamp"))
)
CALL = "python('shop.stats:Summary', amount, at.day, amount * 2 as twice, _timestamp)"


@pytest.mark.parametrize(
    ("text", "columns", "reference"),
    [
        (CALL, "struct(amount, at.day, amount * 2 as twice, _timestamp)", "shop.stats:Summary"),
        ("Python ( \"stats:Outer.Inner\" , f(',)', amount) as `a b` )", "struct(f(',)', amount) as `a b`)", None),
        ("python('s:C', amount /* all */) -- done", "struct(amount)", "s:C"),
    ],
)
def test_a_call_is_a_class_and_a_struct_of_columns(text: str, columns: str, reference: str | None) -> None:
    assert parse_aggregate(text) == AggregateCall("python", columns, reference or "stats:Outer.Inner")
    assert aggregate_problems(text, COLUMNS) == []
    assert parse_aggregate(text).result_type(COLUMNS) is None


@pytest.mark.parametrize(
    ("text", "found", "remedy"),
    [
        ("python()", "does not begin with a class's name in quotes", "write python('package.module:Class', x)"),
        ("python(amount)", "does not begin with a class's name in quotes", "write python("),
        ("python('stats', amount)", "'stats' names no class", "package.module:Class"),
        ("python('a-b:C', amount)", "'a-b:C' names no class", "package.module:Class"),
        ("python('s:C')", "gives the class no columns", "_timestamp is one too"),
        ("python('s:C', amount + 1)", "'amount + 1' has no name", "write amount + 1 as name"),
        ("python('s:C', *)", "'*' has no name", "as name"),
        ("python('s:C', amount, at.day as AMOUNT)", "beside 'amount'", "keep one"),
        ("python('s:C', amount as _a)", "begins with _", "without the _"),
        ("python('s:C', amuont)", "unknown column 'amuont'", "did you mean 'amount'?"),
        ("python('s:C', sum(amount) as a)", "sum is an aggregate", "aggregate step"),
        ("python('s:C', amount) + 1", "is more than the call", "a select after it"),
        ("python('s:C', amount", "does not close", ""),
        ("pyton('s:C', amount)", "is not an aggregate", "did you mean 'python'?"),
    ],
)
def test_what_is_wrong_with_a_call_is_told_with_what_would_do(text: str, found: str, remedy: str) -> None:
    (problem,) = aggregate_problems(text, COLUMNS)
    assert found in problem.found
    assert remedy in problem.remedy


def read(call: str) -> Reading:
    source = {"name": "in", "topic": "in", "key": {"format": "string"}}
    source |= {"value": {"format": "json", "schema": "amount DOUBLE, at STRUCT<day: INT>"}}
    made = {"name": "s", "from": "in", "aggregate": {"sum": call}, "store": "s"}
    return read_application(
        {
            "apiVersion": "streamsoperator.io/v1alpha1",
            "kind": "StreamsApplication",
            "metadata": {"name": "app"},
            "spec": {"topology": {"sources": [source], "steps": [made], "sinks": [{"from": "s", "topic": "out"}]}},
        }
    )


def topology_of(reading: Reading) -> Topology:
    assert reading.application is not None
    return build_topology(reading.application)


def test_spark_is_asked_about_the_columns_and_the_topology_shows_the_call() -> None:
    asked = read(CALL)
    assert [each.text for each in asked.sql if each.kind == "aggregate"] == [parse_aggregate(CALL).argument]
    assert f"sum = {CALL}" in topology_of(asked).node("s").summary


@pytest.mark.parametrize(
    ("call", "compatible"),
    [
        ("python('shop.stats:Summary',  amount,at.day, amount*2 as twice, _timestamp)", True),
        (CALL.replace("Summary", "Other"), False),
        (CALL.replace("amount * 2", "amount * 3"), False),
        ("sum(amount)", False),
    ],
)
def test_another_class_or_other_columns_do_not_fit_the_store(call: str, compatible: bool) -> None:
    old, new = (topology_of(read(each)) for each in (CALL, call))
    assert [each.where for each in changes(old, new).items] == (
        [] if compatible else ["spec.topology.steps[0].aggregate.sum"]
    )
