"""Spark SQL without Spark: what is a column, an aggregate, one value; and where a text has its mistake."""

from __future__ import annotations

import pytest

from streams_runtime.api.aggregates import AggregateCall, aggregate_problems, parse_aggregate
from streams_runtime.api.columns import Columns, key_format, shown_type
from streams_runtime.api.ddl import parse_schema
from streams_runtime.api.scalars import called_functions, scalar_problems, unfamiliar_functions
from streams_runtime.api.sql import SqlSyntaxError, parse_expression, parse_struct

DDL = (
    "user STRING, amount DOUBLE, n INT, ok BOOLEAN, date DATE, comment STRING, `a b` STRING, tags ARRAY<STRING>,"
    " at STRUCT<city: STRING, pos: STRUCT<x: INT>>, props MAP<STRING, INT>, items ARRAY<STRUCT<id: INT>>"
)


def columns() -> Columns:
    found, problems = parse_schema(DDL)
    assert found is not None
    assert not problems
    return found


ACCEPTED = [
    "amount > 0 and not ok or user is null",
    "AMOUNT > 0",
    "user",  # also a function of Spark's
    "comment = 'x' or date > '2024-01-01'",
    "`a b` || user",
    "at.city = 'x' and at.pos.x > 1",
    "props.anything = 1 and props['x'] > 1",
    "items.id[0] = 1 and items[0].id = 1",
    "cast(amount * 100 as bigint)",
    "amount::int",
    "if(ok, 1, 0) + case when ok then 1 else 2 end",
    "transform(tags, tag -> upper(tag) || user)",
    "filter(items, i -> i.id > n)",
    "exists(tags, tag -> tag = 'x')",
    "aggregate(tags, 0, (all, tag) -> all + length(tag))",
    "user in ('a', 'b') and amount between 1 and 2",
    "user like any ('a%', 'b%')",
    "user rlike '^a' and amount <=> 1.5D",
    "timestampadd(MINUTE, 5, date)",
    "extract(year from date) = 2024",
    "date + interval 1 day > current_date",
    "trim(both 'x' from user)",
    "named_struct('user', user, 'n', n)",
    "struct(user, n as m).m",
    "'sum(' || user || ')'",
    "my_own_function(user)",
    "amount % 2 = 0 -- why not",
    "(user, n)",
    "from_json(user, 'a INT').a",
]


@pytest.mark.parametrize("text", ACCEPTED)
def test_what_spark_takes_is_taken(text: str) -> None:
    assert scalar_problems(text, columns()) == []


REFUSED = [
    ("", "is empty"),
    ("-- nothing", "is empty"),
    ("amount >", "something is missing after '>'"),
    ("amount > )", "a ')' too many at character 10"),
    ("(amount", "does not close the '(' at character 1"),
    ("tags[0", "does not close the '['"),
    ("coalesce(amount,, 1)", "nothing before the ',' at character 17"),
    ("coalesce(,amount)", "nothing before the ','"),
    ("coalesce(amount,)", "nothing before the ')'"),
    ("amount,", "ends with a comma"),
    ("amount, n", "unexpected ','"),
    ("amount n ok", "unexpected"),
    ("amount;n", "is not one expression"),
    ("'x", "a quote"),
    ("amount >\n\n  )", "at line 3, character 3"),
    ("select 1", "unexpected"),
    ("1 from t", "unexpected"),
    ("(" * 2000 + "1" + ")" * 2000, "nested too deeply"),
    ("(select max(n) from t) > 1", "a sub-query"),
    ("n in (select 1)", "a sub-query"),
    ("exists (select 1)", "a sub-query"),
    ("lag(amount)", "lag is a window function"),
    ("any(ok)", "any is an aggregate"),
    ("approx_percentile(amount, 0.5)", "approx_percentile is an aggregate"),
    ("struct(*)", "* stands for columns"),
    ("at.*", "* stands for columns"),
    ("?", "a parameter"),
    ("transform(tags, tag -> tga)", "unknown column 'tga'"),
    ("at.pos.y", "'at.pos' has no field 'y'"),
    ("ok.x", "'ok' is BOOLEAN and has no fields"),
]


@pytest.mark.parametrize(("text", "found"), REFUSED)
def test_what_is_no_single_value_is_refused(text: str, found: str) -> None:
    assert any(found in problem.found for problem in scalar_problems(text, columns())), scalar_problems(text, columns())


def test_a_column_that_does_not_exist_is_named_once() -> None:
    assert [problem.found for problem in scalar_problems("x + x + y + X", columns())] == [
        "unknown column 'x'",
        "unknown column 'y'",
        "unknown column 'X'",
    ]


def test_without_known_columns_only_the_text_is_judged() -> None:
    assert scalar_problems("anything > 1", None) == []
    assert scalar_problems("anything >", None) != []


@pytest.mark.parametrize(
    ("text", "function", "argument"),
    [
        ("count(*)", "count", None),
        ("COUNT( * )", "count", None),
        ("count(1)", "count", "1"),
        ("sum(amount * 100)", "sum", "amount * 100"),
        ("Sum( if(ok, amount, 0) )", "sum", "if(ok, amount, 0)"),
        ("max(concat(user, ')'))", "max", "concat(user, ')')"),
        ("/* a */ min(/* b */ n /* c */) -- d", "min", "n"),
        ("avg(at.pos.x)", "avg", "at.pos.x"),
    ],
)
def test_an_aggregate_keeps_the_users_own_argument(text: str, function: str, argument: str | None) -> None:
    assert parse_aggregate(text) == AggregateCall(function, argument)
    assert aggregate_problems(text, columns()) == []


@pytest.mark.parametrize(
    "text",
    [
        "count()",
        "count(user, n)",
        "count(distinct user)",
        "sum(all n)",
        "sum(n) + 1",
        "(sum(n))",
        "sum(n) over ()",
        "sum(n) filter (where ok)",
        "min(n order by user)",
        "max(n) ignore nulls",
        "count(*) as n",
        "sum(*)",
        "mean(n)",
        "n",
        "(select 1)",
        "sum(n",
        "",
    ],
)
def test_anything_but_one_call_is_no_aggregate(text: str) -> None:
    assert len(aggregate_problems(text, columns())) == 1


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("count(user)", "BIGINT"),
        ("sum(n)", "BIGINT"),
        ("sum(amount)", "DOUBLE"),
        ("avg(n)", "DOUBLE"),
        ("max(date)", "DATE"),
        ("min(cast(n as string))", "STRING"),
        ("sum(n + 1)", None),
    ],
)
def test_types_of_aggregates_are_known_where_no_computing_is_needed(text: str, kind: str | None) -> None:
    found = parse_aggregate(text).result_type(columns())
    assert (shown_type(found) if found else None) == kind


@pytest.mark.parametrize(
    ("ddl", "format_name"),
    [
        ("STRING", "string"),
        ("BINARY", "bytes"),
        ("LONG", "long"),
        ("INTEGER", "int"),
        ("DOUBLE", "double"),
        ("STRUCT<a: INT>", "json"),
        ("FLOAT", None),
        ("DATE", None),
        ("ARRAY<STRING>", None),
    ],
)
def test_each_type_of_key_has_its_one_format(ddl: str, format_name: str | None) -> None:
    found, _ = parse_schema(f"k {ddl}")
    assert found is not None
    kind = found.all[0].type
    assert kind is not None
    assert key_format(kind) == format_name


@pytest.mark.parametrize(
    "ddl",
    [
        "a",
        "INT",
        "a FOO",
        "a INT b INT",
        "a INT,, b INT",
        "a INT,",
        "a INT> , b INT",
        "a ARRAY<INT",
        "",
        "a INT; b INT",
    ],
)
def test_a_schema_that_cannot_be_read_has_no_columns(ddl: str) -> None:
    found, problems = parse_schema(ddl)
    assert found is None
    assert len(problems) == 1


def test_a_position_in_a_schema_is_counted_in_the_schema() -> None:
    with pytest.raises(SqlSyntaxError, match=r"at character 8: .* after 'b'"):
        parse_struct("a INT, b STRNG")


def test_every_type_that_json_holds_is_taken() -> None:
    ddl = (
        "a STRING, b BOOLEAN, c BYTE, d SHORT, e INT, f LONG, g FLOAT, h DOUBLE, i DECIMAL(10,2), j DATE, k TIMESTAMP,"
        " l TIMESTAMP_NTZ, m BINARY, n ARRAY<INT>, o MAP<STRING, INT>, p STRUCT<x: INT>, q VARCHAR(3),"
        " `r s` INT NOT NULL COMMENT 'r, s'"
    )
    found, problems = parse_schema(ddl)
    assert problems == []
    assert found is not None
    assert len(found.all) == 18


def test_functions_are_found_by_their_brackets_and_not_in_texts() -> None:
    assert called_functions("Upper(trim(user)) || 'sum('") == ("upper", "trim")
    assert unfamiliar_functions("my_own(upper(user), other(n))") == ("my_own", "other")
    assert unfamiliar_functions("my_own(") == ()


def test_a_tree_has_the_columns_type_where_it_is_one_column_or_a_cast() -> None:
    known = columns()
    for text, kind in (
        ("USER", "STRING"),
        ("(n)", "INT"),
        ("cast(n as double)", "DOUBLE"),
        ("n + 1", None),
        ("zz", None),
    ):
        found = known.type_of(parse_expression(text))
        assert (shown_type(found) if found else None) == kind
