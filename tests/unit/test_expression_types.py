"""Types of expressions by Spark's rules, and what a user reads of a mistake in one: its part and its place."""

from __future__ import annotations

import pytest
from generated_expressions import COLUMNS

from streams_runtime.api.expressions.spark_types import of_tree, to_tree
from streams_runtime.api.flow.known_columns import Columns
from streams_runtime.api.reading.load import read_application
from streams_runtime.api.schemas.ddl_schema import parse_schema

SCHEMA = (
    "user STRING, price DOUBLE, n INT, ok BOOLEAN, items ARRAY<STRING>, counts MAP<STRING, INT>, cents DECIMAL(10,2)"
)
FILE = """\
apiVersion: streamsoperator.io/v1alpha1
kind: StreamsApplication
metadata: {name: shop}
spec:
  kafka: {bootstrapServers: "localhost:9092"}
  topology:
    sources:
      - name: orders
        topic: orders
        key: {format: string}
        value: {format: json, schema: "%s"}
    steps:
%s
    sinks: [{from: orders, topic: out, value: {format: json}}]
"""


def known() -> Columns:
    columns, _ = parse_schema(COLUMNS)
    assert columns is not None
    return Columns(columns.all, by_rules=True)


def told(*steps: str) -> list[str]:
    text = FILE % (SCHEMA, "\n".join(steps))
    return [str(each).removeprefix("spec.topology.") for each in read_application(text).mistakes]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("i + l", "bigint"),
        ("i / 2", "double"),
        ("f + i", "double"),
        ("d102 * d102", "decimal(21,4)"),
        ("d102 + 1", "decimal(11,2)"),
        ("d102 + i", "decimal(13,2)"),
        ("d3818 * d3818", "decimal(38,6)"),
        ("d102 / d50", "decimal(16,8)"),
        ("str + 1", "bigint"),
        ("dt + 1", "date"),
        ("dt + interval 2 hours", "timestamp"),
        ("ts - dt", "interval day to second"),
        ("coalesce(i, d102)", "decimal(12,2)"),
        ("case when b then 1 else 1.5 end", "decimal(11,1)"),
        ("st.c.x > 1 and str like 'a%'", "boolean"),
        ("ast.b", "array<string>"),
        ("transform(ai, x -> x * 2L)", "array<bigint>"),
        ("aggregate(al, 0L, (acc, x) -> acc + x, acc -> acc / 2)", "double"),
        ("named_struct('a', i, 'b', upper(str)).b", "string"),
        ("round(d102, 1)", "decimal(10,1)"),
        ("msi['k']", "int"),
    ],
)
def test_an_expression_has_the_type_that_spark_gives_it(text: str, kind: str) -> None:
    found = known().resolved(text)
    assert (str(found.kind), found.refusals) == (kind, ())


@pytest.mark.parametrize(
    "text",
    [
        "from_json(str, 'a int')",  # its type stands in a text
        "sequence(1, i)",
        "greatest(i, str)",
        "no_such_function(i)",
        "nothing + 1",
        "coalesce(i, d102, str)",  # by the order in which Spark goes through them
        "a = b = c",
        "i & l + 1",  # sqlglot and Spark might group them otherwise
        "(",
        " + ".join(["i"] * 3000),
        "1e400",
    ],
)
def test_what_only_spark_knows_has_no_type_and_is_not_refused(text: str) -> None:
    found = known().resolved(text)
    assert (found.kind, found.refusals) == (None, ())


def test_a_type_is_the_same_as_a_tree_of_ddl_and_back() -> None:
    columns, _ = parse_schema(f"{COLUMNS}, q STRUCT<`a b`: INT, `select`: STRING, ü: DATE>")
    assert columns is not None
    for column in columns:
        kind = of_tree(column.type)
        assert kind is not None, column
        assert of_tree(to_tree(kind)) == kind


def test_types_that_multiply_are_left_to_spark() -> None:
    text = "i"
    for number in range(30):
        text = f"transform(array({text}), x{number} -> struct(x{number} as a, x{number} as b))"
    assert known().resolved(text).kind is None
    doubled = [
        f"      - {{name: s{n}, from: {f's{n - 1}' if n else 'orders'}, select: {{a: 'struct({c} as p, {c} as q)'}}}}"
        for n, c in enumerate(["n", *["a"] * 40])
    ]
    assert told(*doubled) == []


def test_every_part_that_spark_refuses_is_told_with_where_it_begins() -> None:
    text = "if(upper(ai) = 'x' and i > b, 1, 2)"
    assert [(each.at, each.part) for each in known().resolved(text).refusals] == [(9, "ai"), (23, "i > b")]


def test_a_mistake_has_line_and_column_of_the_file_however_the_expression_is_written() -> None:
    steps = (
        "      - {name: a, from: orders, where: price + 1}",
        "      - name: b",
        "        from: orders",
        "        where: |",
        "          n > 0",
        "            and price > ok",
        "      - name: c",
        "        from: orders",
        "        select:",
        "          x: 'concat(''it''''s'', upper(items))'",
        '          "y z": "coalesce(ok,',
        '            n)"',
    )
    assert told(*steps) == [
        (
            "steps[0].where: 'price + 1' is DOUBLE, not a condition (line 13, column 40);"
            " compare it: price + 1 is not null"
        ),
        (
            "steps[1].where: 'price > ok' is refused by Spark: DOUBLE > BOOLEAN (line 18, column 17);"
            " cast one of them to the type of the other"
        ),
        (
            "steps[2].select.x: 'items' is refused by Spark: upper takes STRING, and this is ARRAY<STRING>"
            " (line 22, column 41); give it STRING"
        ),
        (
            "steps[2].select[\"y z\"]: 'coalesce(ok, n)' is refused by Spark: coalesce of BOOLEAN, INT"
            " (line 23, column 19); give it arguments of the types that it takes"
        ),
    ]


def test_an_aggregate_that_can_not_take_its_argument_is_told_before_anything_starts() -> None:
    steps = (
        "      - {name: by, from: orders, keyBy: user}",
        "      - name: totals",
        "        from: by",
        "        store: totals",
        "        aggregate:",
        "          a: sum(ok)",
        "          b: max_by(n, counts)",
        "          c: count(*) filter (where n + 1)",
        "          d: avg(price + items)",
        "          e: sum(n) filter (where price = ok)",
    )
    assert told(*steps) == [
        (
            "steps[1].aggregate.a: in 'sum(ok)': ok is BOOLEAN, and sum is of numbers (line 18, column 18);"
            " cast it to DOUBLE, or count it"
        ),
        (
            "steps[1].aggregate.b: in 'max_by(n, counts)': counts is MAP<STRING, INT>, which has no order"
            " (line 19, column 24); give it one field or entry of it"
        ),
        (
            "steps[1].aggregate.c: in 'count(*) filter (where n + 1)': 'n + 1' is INT, not a condition"
            " (line 20, column 37); compare it: n + 1 is not null"
        ),
        (
            "steps[1].aggregate.d: in 'avg(price + items)': 'price + items' is refused by Spark: DOUBLE + ARRAY<STRING>"
            " (line 21, column 18); give it two numbers: cast(… as double)"
        ),
        (
            "steps[1].aggregate.e: in 'sum(n) filter (where price = ok)': 'price = ok' is refused by Spark:"
            " DOUBLE = BOOLEAN (line 22, column 35); cast one of them to the type of the other"
        ),
    ]


def test_a_text_beside_a_number_that_is_none_is_told() -> None:
    assert told("      - {name: a, from: orders, where: price > 'many'}") == [
        (
            "steps[0].where: \"'many'\" stands beside DOUBLE, and Spark, which makes a number of it, fails"
            " over every record (line 13, column 48); write a number, or cast the other one to STRING"
        )
    ]
    assert told("      - {name: a, from: orders, where: price > '12' or price = 'NaN' or user between n and 'z'}") == []
    assert told("      - {name: a, from: orders, where: \"price in ('many', 'few')\"}") == [
        (
            "steps[0].where: \"'many'\" stands beside DOUBLE, and Spark, which makes a number of it, fails"
            " over every record (line 13, column 51); write a number, or cast the other one to STRING"
        )
    ]
    assert (
        told("      - {name: a, from: orders, where: \"price in (1, 'few') or user in ('a', 'b') or n in ('3')\"}")
        == []
    )


def test_types_are_known_behind_a_select() -> None:
    steps = (
        "      - {name: a, from: orders, select: {double: n * 2, price: price, tags: items}}",
        "      - {name: b, from: a, where: double and price > 1}",
    )
    assert told(*steps) == [
        (
            "steps[1].where: 'double and price > 1' is refused by Spark: INT and BOOLEAN (line 14, column 35);"
            " give it two conditions: compare what is none"
        )
    ]


def test_a_type_is_the_same_however_it_is_written() -> None:
    steps = (
        "      - {name: a, from: orders, select: {d: cast(n as decimal)}}",
        "      - {name: b, from: orders, select: {d: 'coalesce(cast(n as decimal(10, 0)), 7BD)'}}",
        "      - {name: c, from: orders, select: {d: n * 2}}",
        "      - {name: ab, merge: [a, b]}",
        "      - {name: ac, merge: [a, c]}",
    )
    assert [each.partition(";")[0] for each in told(*steps)] == ["steps[4].merge: 'd' is DECIMAL in 'a' and INT in 'c'"]


def test_another_configuration_of_sparks_sql_leaves_types_to_spark() -> None:
    text = FILE % (SCHEMA, "      - {name: a, from: orders, where: price > ok}")
    assert read_application(text).mistakes
    assert not read_application(text + '  spark: {config: {"spark.sql.ansi.enabled": "false"}}\n').mistakes


def test_without_a_file_the_place_is_the_character_of_the_field() -> None:
    step = {"name": "a", "from": "orders", "where": "n > 0 and price > ok"}
    source = {"name": "orders", "topic": "t", "value": {"format": "json", "schema": SCHEMA}}
    document = {
        "apiVersion": "streamsoperator.io/v1alpha1",
        "kind": "StreamsApplication",
        "metadata": {"name": "shop"},
        "spec": {"kafka": {"bootstrapServers": "k:9092"}, "topology": {"sources": [source], "steps": [step]}},
    }
    assert "DOUBLE > BOOLEAN (character 11)" in str(read_application(document).mistakes[0])
