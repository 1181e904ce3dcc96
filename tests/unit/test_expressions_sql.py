"""Spark SQL without Spark: what is a column, an aggregate, one value; and where a text has its mistake."""

from __future__ import annotations

import pytest

from streams_runtime.api.flow.known_columns import Column, Columns, key_format, shown_type
from streams_runtime.api.schemas.ddl_schema import parse_schema
from streams_runtime.api.sql.aggregate_calls import AggregateCall, aggregate_problems, parse_aggregate
from streams_runtime.api.sql.scalars import called_functions, scalar_problems, unfamiliar_functions
from streams_runtime.api.sql.sql_tree import SqlSyntaxError, parse_struct

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
    ("'x", "' at character 1 that is not closed"),
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


@pytest.mark.parametrize("text", ["last-users.n + 1", "n + Last-Users.n", "last-users"])
def test_a_name_with_a_hyphen_is_told_to_need_backticks(text: str) -> None:
    known = Columns((*columns(), Column("last-users")))
    (problem,) = scalar_problems(text, known)
    assert "last-users is a name with a hyphen" in problem.found
    assert "`last-users`" in problem.remedy


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("zz - user", ["unknown column 'zz'"]),
        ("`last-users`.n - zz", ["unknown column 'zz'"]),
        ("n-1", []),
        ("last-users2", ["unknown column 'last'", "unknown column 'users2'"]),
        ("last - users", ["unknown column 'last'", "unknown column 'users'"]),
        ("'last-users' = zz", ["unknown column 'zz'"]),
    ],
)
def test_a_minus_is_no_hyphen_where_it_is_none(text: str, found: list[str]) -> None:
    known = Columns((*columns(), Column("last-users")))
    assert [problem.found for problem in scalar_problems(text, known)] == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("user = 'a", "' at character 8 that is not closed"),
        ("user = 'it's'", "' at character 13 that is not closed"),
        ("user = 'it\\'s", "' at character 8 that is not closed"),
        ('user = "a', '" at character 8 that is not closed'),
        ("`a b = 1", "` at character 1 that is not closed"),
        ("n > 1 /* 'some'", "/* at character 7 that is not closed"),
        ("n > 1 -- it's\n and user = 'a", "' at line 2, character 13 that is not closed"),
    ],
)
def test_what_is_not_closed_is_named_with_its_place(text: str, found: str) -> None:
    (problem,) = scalar_problems(text, columns())
    assert found in problem.found
    assert problem.remedy.startswith("close it")


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
        ("count_if(n > 1)", "count_if", "n > 1"),
        ("BOOL_AND(ok)", "bool_and", "ok"),
        ("bool_or(user in ('a', 'b'))", "bool_or", "user in ('a', 'b')"),
        ("any_value(user)", "any_value", "user"),
    ],
)
def test_an_aggregate_keeps_the_users_own_argument(text: str, function: str, argument: str | None) -> None:
    assert parse_aggregate(text) == AggregateCall(function, argument)
    assert aggregate_problems(text, columns()) == []


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ("max_by(user, n)", AggregateCall("max_by", "user", "n")),
        (
            "MIN_BY(/* a */ concat(user, ',') , n * 2 /* b */) -- c",
            AggregateCall("min_by", "concat(user, ',')", "n * 2"),
        ),
        ("count(*) filter (where ok)", AggregateCall("count", None, None, "ok")),
        ("count(distinct user)", AggregateCall("count_distinct", "user")),
        (
            "COUNT( Distinct /* a */ concat(user, ',') /* b */ ) FILTER (WHERE ok) -- c",
            AggregateCall("count_distinct", "concat(user, ',')", None, "ok"),
        ),
        ("count(distinct (user, n))", AggregateCall("count_distinct", "(user, n)")),
        ("count(distinct user, /* a */ n + 1 )", AggregateCall("count_distinct", "user", "n + 1")),
        ("count(distinct tags)", AggregateCall("count_distinct", "tags")),
        (
            "sum(n) FILTER (WHERE n > 1 and user in ('a', ')'))",
            AggregateCall("sum", "n", None, "n > 1 and user in ('a', ')')"),
        ),
        ("collect_list(user, 3) filter(where ok)", AggregateCall("collect_list", "user", "3", "ok")),
        ("top(user, n, 3)", AggregateCall("top", "user", "n, 3")),
        (
            "TOP(/* a */ concat(user, ',') , coalesce(n, 2) /* b */, 1000 /* c */) FILTER (WHERE ok) -- d",
            AggregateCall("top", "concat(user, ',')", "coalesce(n, 2), 1000", "ok"),
        ),
        ("max_by(user, n) filter (where (ok) /* a */) -- b", AggregateCall("max_by", "user", "n", "(ok)")),
        ("max(filter(tags, tag -> tag > 'a')[0])", AggregateCall("max", "filter(tags, tag -> tag > 'a')[0]")),
    ],
)
def test_an_aggregate_keeps_what_it_goes_by_and_which_records_count(text: str, call: AggregateCall) -> None:
    assert parse_aggregate(text) == call
    assert aggregate_problems(text, columns()) == []


@pytest.mark.parametrize(
    ("text", "found", "remedy"),
    [
        ("max_by(user)", "max_by takes a value and what it goes by", "write max_by(x, y)"),
        ("min_by(user, n, 3)", "min_by takes a value and what it goes by", "write min_by(x, y)"),
        ("max_by(user, zz)", "unknown column 'zz'", "known here"),
        ("max_by(zz, n)", "unknown column 'zz'", "known here"),
        ("top(user, n)", "top takes a value, what it goes by and a number from 1 to 1000", "write top(x, y, 10)"),
        ("top(user, 3)", "top takes a value, what it goes by and a number from 1 to 1000", "write top(x, y, 10)"),
        ("top()", "top takes a value, what it goes by and a number", "write top(x, y, 10)"),
        ("top(user, n, 0)", "found '0' where top takes", "write top(x, y, 10)"),
        ("top(user, n, 1001)", "found '1001' where top takes", "write top(x, y, 10)"),
        ("top(user, n, n)", "found 'n' where top takes", "write top(x, y, 10)"),
        ("top(user, zz, 3)", "unknown column 'zz'", "known here"),
        ("top(zz, n, 3)", "unknown column 'zz'", "known here"),
        ("top(user, sum(n), 3)", "sum is an aggregate", "aggregate step"),
        ("top(distinct user, n, 3)", "DISTINCT in", "another result"),
        ("top(user, n, 3)[0]", "computes with top", "alone in its own column"),
        ("top(user, n, 3) over ()", "a window function", "use count"),
        ("max(top(user, n, 3))", "top is an aggregate", "aggregate step"),
        ("max_by(distinct user, n)", "DISTINCT in", "leave it out: max_by gives the same"),
        ("max_by(user, sum(n))", "sum is an aggregate", "aggregate step"),
        ("max_by(user, n).a", "computes with max_by", "alone in its own column"),
        ("sum(n) filter (where zz)", "unknown column 'zz'", "known here"),
        ("sum(n) filter (where n)", "is INT, not a condition", "compare it"),
        ("sum(n) filter (where sum(n) > 1)", "sum is an aggregate", "aggregate step"),
        ("sum(n) filter (where )", "has a FILTER without a condition", "write count(*)"),
        ("sum(n) filter (ok)", "has a FILTER without a condition", "write count(*)"),
        ("sum(n) filter (where n >)", "something is missing", "one Spark SQL expression"),
        ("sum(n) filter (where ok) over ()", "a window function", "use count"),
        ("sum(n) filter (where ok) + 1", "computes with sum", "alone in its own column"),
        (
            "reduce(0, (a, row) -> a + row.n) filter (where ok)",
            "FILTER behind reduce",
            "if(condition, the new state, state)",
        ),
        ("python('a:B', n) filter (where ok)", "FILTER behind python", "one more column"),
    ],
)
def test_what_is_wrong_with_two_expressions_or_a_filter_is_told(text: str, found: str, remedy: str) -> None:
    (problem,) = aggregate_problems(text, columns())
    assert found in problem.found
    assert remedy in problem.remedy


PERCENTILE, LIST, SET = (
    f"write {call}" for call in ("approx_percentile(x, 0.95)", "collect_list(x, 10)", "collect_set(x, 10)")
)


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ("approx_count_distinct(user)", AggregateCall("approx_count_distinct", "user")),
        ("approx_percentile(amount, 0.95)", AggregateCall("approx_percentile", "amount", "0.95")),
        (
            "Approx_Percentile(if(ok, n, coalesce(n, 1)) , .5)",
            AggregateCall("approx_percentile", "if(ok, n, coalesce(n, 1))", ".5"),
        ),
        ("approx_percentile(tags[0] = 'a,b)', 1)", AggregateCall("approx_percentile", "tags[0] = 'a,b)'", "1")),
        ("collect_list(user, 10)", AggregateCall("collect_list", "user", "10")),
        (
            "collect_set(/* a */ concat(user, ','), 1000 /* b */) -- c",
            AggregateCall("collect_set", "concat(user, ',')", "1000"),
        ),
    ],
)
def test_an_aggregate_with_a_number_keeps_both(text: str, call: AggregateCall) -> None:
    assert parse_aggregate(text) == call


@pytest.mark.parametrize(
    ("text", "found", "remedy"),
    [
        ("approx_percentile(amount)", "approx_percentile takes a column and a number from 0 to 1", PERCENTILE),
        ("approx_percentile(amount, 0.5, 100)", "approx_percentile takes a column and a number", PERCENTILE),
        ("approx_percentile(amount, 95)", "found '95' where approx_percentile takes", PERCENTILE),
        ("approx_percentile(amount, 1.1)", "found '1.1' where", PERCENTILE),
        ("approx_percentile(amount, 0.1234567)", "at most six digits", PERCENTILE),
        ("approx_percentile(amount, array(0.5))", "found 'array(0.5)' where", PERCENTILE),
        ("approx_percentile(amount, n)", "found 'n' where", PERCENTILE),
        ("approx_percentile(user, 0.5)", "user is STRING, and approx_percentile is of numbers", "cast it to DOUBLE"),
        ("approx_percentile(amuont, 0.5)", "unknown column 'amuont'", "did you mean 'amount'?"),
        (
            "approx_percentile(amount + , 0.5)",
            "a mistake at character 28: something is missing",
            "one Spark SQL expression",
        ),
        ("approx_percentile(amount, 0.5", "does not close the '(' at character 18", "one Spark SQL expression"),
        ("approx_percentile(amount, 0.5) over ()", "a window function", "use count"),
        ("approx_percentile(amount, 0.5) + 1", "computes with approx_percentile", "alone in its own column"),
        ("percentile_approx(amount, 0.5)", "percentile_approx is not there yet", "or approx_percentile(x, 0.95)"),
        ("aprox_percentile(amount, 0.5)", "is not an aggregate", "did you mean 'approx_percentile'?"),
        ("approx_count_distinct(user, 0.01)", "approx_count_distinct takes one argument", "use count"),
        ("approx_count_distinct(tags)", "tags is ARRAY<STRING>, which is not counted", "to_json"),
        ("collect_list(user)", "collect_list takes a column and a number from 1 to 1000", LIST),
        ("collect_list()", "collect_list takes a column and a number", LIST),
        ("collect_set(user, 0)", "found '0' where collect_set takes a number from 1 to 1000", SET),
        ("collect_set(user, 1001)", "found '1001' where", SET),
        ("collect_set(user, -1)", "found '-1' where", SET),
        ("collect_set(distinct user, 3)", "DISTINCT in", "leave it out: collect_set gives the same"),
        ("max(distinct n)", "DISTINCT in", "leave it out: max gives the same"),
        ("sum(all n)", "ALL in", "leave it out: sum gives the same"),
        ("count(distinct user, n, ok)", "count(distinct …) takes one expression or two", "a struct in a select before"),
        ("count(distinct *)", "count(distinct …) takes one expression or two", "write count(distinct x)"),
        ("count(distinct)", "count(distinct …) takes one expression or two", "write count(distinct x)"),
        ("count(distinct usr)", "unknown column 'usr'", "did you mean 'user'?"),
        ("count(distinct user, usr)", "unknown column 'usr'", "did you mean 'user'?"),
        ("count(distinct sum(n))", "sum is an aggregate", "aggregate step"),
        ("count(distinct user order by n)", "DISTINCT in", "with nothing behind the expression"),
        ("count(distinct user) + 1", "computes with count", "alone in its own column"),
        ("count(distinct user) over ()", "a window function", "use count"),
        ("count_distinct(user)", "is not an aggregate", "use count(distinct x), which is the same"),
        ("count(all user)", "ALL in", "leave it out: count gives the same"),
        ("sum(distinct n)", "DISTINCT in", "another result"),
        ("collect_list(distinct n, 3)", "DISTINCT in", "collect_set(x, 10) keeps each value once"),
        ("collect_list(user order by n, 3)", "is more than an argument", "use count"),
        ("collect_list(at, 3)", "at is STRUCT", "collect one field of it"),
        ("collect_list(, 3)", "collect_list takes a column and a number", LIST),
        ("collect_lists(user, 3)", "is not an aggregate", "did you mean 'collect_list'?"),
        ("array_agg(user)", "array_agg is not there yet", "use count"),
        ("collect_list(user, )", "found nothing where collect_list takes", LIST),
        ("count_if(n)", "n is INT, and count_if is of conditions", "count_if(n > 0)"),
        ("bool_and(user)", "user is STRING, and bool_and is of conditions", "compare it"),
        ("bool_or(zz > 1)", "unknown column 'zz'", "known here"),
        ("any_value(user, true)", "what happens to nulls can't be chosen", "any_value leaves them out"),
        ("count_if(n > 1, ok)", "unexpected ','", "write one Spark SQL expression"),
        ("every(ok)", "every is not there yet", "bool_and"),
        ("some(ok)", "some is not there yet", "bool_or"),
        ("first_value(user)", "first_value is not there yet", "first"),
    ],
)
def test_what_is_wrong_with_an_aggregate_is_told_with_what_would_do(text: str, found: str, remedy: str) -> None:
    (problem,) = aggregate_problems(text, columns())
    assert found in problem.found
    assert remedy in problem.remedy


@pytest.mark.parametrize(
    "text",
    [
        "count()",
        "count(user, n)",
        "count(distinct user, n, ok)",
        "sum(all n)",
        "sum(n) + 1",
        "(sum(n))",
        "sum(n) over ()",
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
        ("approx_count_distinct(n + 1)", "BIGINT"),
        ("count(distinct n + 1)", "BIGINT"),
        ("count(distinct user, n) filter (where ok)", "BIGINT"),
        ("approx_percentile(n + 1, 0.5)", "DOUBLE"),
        ("collect_list(user, 3)", "ARRAY<STRING>"),
        ("collect_set(n + 1, 3)", None),
        ("count_if(n > 1)", "BIGINT"),
        ("bool_or(n > 1)", "BOOLEAN"),
        ("any_value(date)", "DATE"),
        ("max_by(user, n)", "STRING"),
        ("top(user, n, 3)", "ARRAY<STRING>"),
        ("min_by(n + 1, user)", None),
        ("sum(n) filter (where ok)", "BIGINT"),
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
    assert unfamiliar_functions("collect_set(my_own(user), 3)") == ("my_own",)
    assert unfamiliar_functions("top(my_own(user), n, 3) FILTER (WHERE ok)") == ("my_own",)
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
        found = known.type_of(text)
        assert (shown_type(found) if found else None) == kind
