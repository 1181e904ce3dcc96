"""Calls of reduce as a resource has them: their parts, their mistakes, how they are described and compared."""

from __future__ import annotations

from typing import Any

import pytest

from streams_runtime.api import parse_application, read_application
from streams_runtime.api.flow.known_columns import Column, Columns, shown_type, type_named
from streams_runtime.api.sql.aggregate_calls import AggregateCall, aggregate_problems, parse_aggregate
from streams_runtime.api.sql.reduce_aggregates import Lambda, merging_problem, parse_reduce
from streams_runtime.errors import InvalidApplicationException
from streams_runtime.topology.changes.compare import changes
from streams_runtime.topology.declared.build_topology import build_topology

COLUMNS = Columns(
    (
        Column("amount", type_named("DOUBLE")),
        Column("my col", type_named("INT")),
        Column("at", type_named("STRUCT<day: INT>")),
        Column("_timestamp"),
    ),
    {"tier": type_named("STRING")},
)
SUM = "reduce(cast(0 as double), (state, row) -> state + row.amount)"


def test_a_call_is_an_initial_value_and_a_lambda_over_the_columns_that_it_names() -> None:
    found = parse_reduce("Reduce /* all */ ( '' , (s, `r`) -> concat(s, R.amount, r.`my col`, r.AMOUNT), (a, b) -> a )")
    assert found.initial == "''"
    assert found.add == Lambda("s", "`r`", "concat(s, R.amount, r.`my col`, r.AMOUNT)", 36)
    assert found.merge is not None
    assert (found.merge.names, found.merge.body) == (("a", "b"), "a")
    assert found.record == "struct(`amount`, `my col`)"
    assert aggregate_problems("reduce(0, (n, row) -> n + row.at.day + exists(array(1), row -> row > n))", COLUMNS) == []
    call = AggregateCall("reduce", "struct(`amount`)", "cast(0 as double), (state, row) -> state + row.amount")
    assert parse_aggregate(SUM) == call
    assert parse_aggregate("reduce(0, (n, row) -> n + 1)").argument == "struct(_offset)"


@pytest.mark.parametrize(
    ("initial", "kind"),
    [
        ("cast(0 as double)", "DOUBLE"),
        ("(-1)", "INT"),
        ("3000000000", None),
        ("'x'", "STRING"),
        ("false", "BOOLEAN"),
        ("named_struct('n', 0)", None),
        ("cast(null as array<struct<n: bigint>>)", "ARRAY<STRUCT<n: BIGINT>>"),
    ],
)
def test_the_type_is_that_of_the_initial_value_where_it_is_known_without_spark(initial: str, kind: str | None) -> None:
    found = parse_aggregate(f"reduce({initial}, (state, row) -> state)").result_type(COLUMNS)
    assert (None if found is None else shown_type(found)) == kind


@pytest.mark.parametrize(
    ("text", "found", "remedy"),
    [
        ("reduce()", "has 0 arguments", "write an initial value and a lambda, as in reduce(cast(0 as double)"),
        ("reduce(0)", "has 1 arguments", "an initial value and a lambda"),
        ("reduce(0, (a, b) -> a, (a, b) -> a, 1)", "has 4 arguments", "for sessions a second lambda"),
        ("reduce((a, b) -> a, 0)", "does not begin with an initial value", "write reduce("),
        ("reduce(0, amount)", "'amount' is no lambda of two names", "(state, row) ->"),
        ("reduce(0, row -> 1)", "'row -> 1' is no lambda of two names", "(state, row) ->"),
        ("reduce(0, (a, b, c) -> 1)", "'(a, b, c) -> 1' is no lambda of two names", "(state, row) ->"),
        ("reduce(0, (a, b) ->)", "'(a, b) ->' is no lambda of two names", "(state, row) ->"),
        ("reduce(0, (a, A) -> a)", "both names of the lambda are a", "two names"),
        ("reduce(0, (s, row) -> s + )", "has a mistake", ""),
        ("reduce(0, (s, row) -> s) + 1", "is more than the call", "alone"),
        ("reduce(0, (s, row) -> s", "does not close", ""),
        ("reduce(0, (s, row) -> s + row.amuont)", "unknown column 'amuont' at character 27", "did you mean 'amount'?"),
        ("reduce(0, (s, row) -> row.at.dya)", "'at' has no field 'dya' at character 23", "did you mean 'day'?"),
        ("reduce(0, (s, row) -> s + amount)", "'amount' at character 27 is none of s and row", "write row.amount"),
        ("reduce(0, (s, row) -> s + row)", "'row' alone, at character 27, is a whole record", "row.x"),
        ("reduce(0, (s, row) -> s, (a, b) -> a + c)", "'c' at character 40 is none of a and b", "write a or b"),
        ("reduce(amount, (s, row) -> s)", "names the column 'amount'", "the same for every key"),
        ("reduce(null, (s, row) -> s)", "null has no type", "cast(null as double)"),
        ("reduce(0.0, (s, row) -> s)", "0.0 is a DECIMAL", "cast(0.0 as double)"),
        (
            "reduce(cast(0 as decimal(9, 2)), (s, row) -> s)",
            "is DECIMAL(9, 2), which is not kept yet",
            "numbers, STRING",
        ),
        ("reduce(cast(null as map<string, int>), (s, row) -> s)", "MAP<STRING, INT>, which is not kept", "cast it"),
        ("reduce(0, (s, row) -> s + sum(row.amount))", "sum is an aggregate", "aggregate step"),
        ("reduce('', (s, row) -> Tier(row.amount))", "Tier is a function of yours", "in a select before the aggregate"),
        ("reduce(tier(''), (s, row) -> s)", "tier is a function of yours", "python(…)"),
        ("reduced(0, (s, row) -> s)", "is not an aggregate", "did you mean 'reduce'?"),
    ],
)
def test_what_is_wrong_with_a_call_is_told_with_what_would_do(text: str, found: str, remedy: str) -> None:
    (problem,) = aggregate_problems(text, COLUMNS)
    assert found in problem.found
    assert remedy in problem.remedy


def test_sessions_need_a_second_lambda_and_nothing_else_takes_one() -> None:
    merging = f"{SUM[:-1]}, (one, other) -> one + other)"
    assert merging_problem(SUM, sessions=False) is None
    assert merging_problem(merging, sessions=True) is None
    lacking, idle = merging_problem(SUM, sessions=True), merging_problem(merging, sessions=False)
    assert lacking is not None
    assert "how the values of two sessions that become one are put together" in lacking.found
    assert "(earlier, later) -> earlier + later" in lacking.remedy
    assert idle is not None
    assert "the step has none" in idle.found
    assert merging_problem("reduce(0", sessions=True) is None


def application(call: str, **step: Any) -> dict[str, Any]:
    order = {"name": "orders", "topic": "orders", "key": {"format": "string"}}
    order["value"] = {"format": "json", "schema": "amount DOUBLE"}  # type: ignore[assignment]
    steps = [{"name": "s", "from": "orders", "aggregate": {"t": call}, "store": "s"} | step]
    return {
        "apiVersion": "streamsoperator.io/v1alpha1",
        "kind": "StreamsApplication",
        "metadata": {"name": "app"},
        "spec": {"topology": {"sources": [order], "steps": steps, "sinks": [{"from": "s", "topic": "out"}]}},
    }


def test_a_resource_tells_what_is_wrong_at_the_field() -> None:
    with pytest.raises(InvalidApplicationException) as refused:
        parse_application(application(SUM.replace("amount", "amuont"), window={"session": {"gap": "1s"}}))
    found = {mistake.path: mistake for mistake in refused.value.mistakes}
    assert set(found) == {"spec.topology.steps[0].aggregate.t"}
    texts = [mistake.found for mistake in refused.value.mistakes]
    assert any("unknown column 'amuont'" in text for text in texts)
    assert any("two sessions" in text for text in texts)


def test_spark_is_asked_about_each_part() -> None:
    reading = read_application(application(SUM))
    assert reading.mistakes == ()
    parts = [field.text for field in reading.sql if field.kind == "aggregate"]
    assert parts == ["cast(0 as double)", "state + row.amount"]


def test_it_is_described_as_it_was_written_and_changes_are_told() -> None:
    before = build_topology(parse_application(application(SUM)))
    (node,) = (node for node in before.nodes if node.name == "s")
    assert SUM in node.summary
    same = "REDUCE( CAST(0 AS DOUBLE), (x, r) -> x + r.amount )"
    assert changes(before, build_topology(parse_application(application(same)))).items == ()
    other = SUM.replace("state +", "2 * state +")
    (change,) = changes(before, build_topology(parse_application(application(other)))).items
    assert f"t was {SUM} and is {other}" in change.what
