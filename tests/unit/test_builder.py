"""StreamsBuilder: each call is a part of the same model that a file declares, and mistakes name the call."""

from __future__ import annotations

import inspect
from datetime import timedelta
from typing import Any

import pytest
import yaml

from streams_runtime.api import parse_application
from streams_runtime.api.steps.topology_spec import TopologySpec
from streams_runtime.builder import StreamsBuilder, hopping, json, session, sliding, tumbling
from streams_runtime.builder.difference import differences
from streams_runtime.errors import ConfigException, InvalidApplicationException

ORDER = "user STRING, amount DOUBLE, tags ARRAY<STRING>"


def declared(text: str) -> TopologySpec:
    document = {
        "apiVersion": "streamsoperator.io/v1alpha1",
        "kind": "StreamsApplication",
        "metadata": {"name": "app"},
        "spec": {"topology": yaml.safe_load(text)},
    }
    return parse_application(document).spec.topology


def orders(builder: StreamsBuilder, **more: Any) -> Any:
    return builder.stream("orders", key="string", value=json(ORDER), **more)


SOURCES = f"""
sources:
  - {{name: orders, topic: orders, key: {{format: string}}, value: {{format: json, schema: "{ORDER}"}}}}
"""


def test_a_sink_may_name_each_records_topic() -> None:
    builder = StreamsBuilder()
    bought = orders(builder)
    bought.to(topic_by="concat('of-', user)", topics=("of-a", "of-b"), key="string")
    bought.to(topic_by="user")
    expected = declared(
        SOURCES
        + """
sinks:
  - {from: orders, topicBy: "concat('of-', user)", topics: [of-a, of-b], key: {format: string}}
  - {from: orders, topicBy: user}
"""
    )
    built = builder.build()
    assert built == expected
    other = declared(f"{SOURCES}\nsinks: [{{from: orders, topicBy: user, topics: [a]}}]")
    assert differences(other, built) == [
        "its sink \"orders → concat('of-', user)\" does not stand here",
        "its sink 'orders → user' differs in topics",
    ]


@pytest.mark.parametrize("where", [{}, {"topic": "a", "topic_by": "user"}])
def test_a_sink_with_no_topic_or_with_two_is_refused_at_its_call(where: Any) -> None:
    builder = StreamsBuilder()
    orders(builder).to(**where)
    with pytest.raises(InvalidApplicationException, match=r"test_builder\.py:\d+ to\("):
        builder.build()


def test_steps_without_state_are_those_of_a_file() -> None:
    builder = StreamsBuilder()
    paid = (
        orders(builder).filter("amount > 0", name="paid").select({"user": "user"}, cents="amount * 100", name="cents")
    )
    split = paid.split(name="sized").branch("cents > 100", "large").branch("cents > 10", "small").default_branch("rest")
    both = split["large"].merge(split["rest"], name="both")
    seen = both.peek(log="user", level="debug", at_most=3, metric="m", value="cents", name="seen")
    seen.headers({"trace": "user"}, name="traced").to("out", key="string", value=json())
    tags = orders_of(builder).flat_map("tags", "tag", name="tags")
    tags.select("*", first="tags[0]", name="more-tags").select({"*": "*"}, tag="lower(tag)", name="low")
    tags.map_values({"value": "tag"}, name="plain").to("tags", value="string")
    assert builder.build() == declared(
        f"""
        sources:
          - {{name: orders, topic: orders, key: {{format: string}}, value: {{format: json, schema: "{ORDER}"}}}}
          - {{name: more, topic: more-orders, value: {{format: json, schema: "{ORDER}"}}, timestamp: _timestamp}}
        steps:
          - {{name: paid, from: orders, where: amount > 0}}
          - {{name: cents, from: paid, select: {{user: user, cents: amount * 100}}}}
          - name: sized
            from: cents
            split: [{{name: large, where: cents > 100}}, {{name: small, where: cents > 10}}]
            default: rest
          - {{name: both, merge: [sized.large, sized.rest]}}
          - {{name: seen, from: both, peek: {{log: user, level: debug, atMost: 3, metric: m, value: cents}}}}
          - {{name: traced, from: seen, headers: {{trace: user}}}}
          - {{name: tags, from: more, flatMap: {{explode: tags, as: tag}}}}
          - {{name: more-tags, from: tags, select: {{"*": "*", first: "tags[0]"}}}}
          - {{name: low, from: more-tags, select: {{"*": "*", tag: lower(tag)}}}}
          - {{name: plain, from: tags, select: {{value: tag}}}}
        sinks:
          - {{from: traced, topic: out, key: {{format: string}}, value: {{format: json}}}}
          - {{from: plain, topic: tags, value: {{format: string}}}}
        """
    )


def orders_of(builder: StreamsBuilder) -> Any:
    return builder.stream("more-orders", value=json(ORDER), timestamp="_timestamp", name="more")


def test_aggregates_windows_and_dedupe_are_those_of_a_file() -> None:
    builder = StreamsBuilder()
    once = orders(builder).dedupe(timedelta(minutes=10), by="user", name="once")
    grouped = once.group_by("user", name="by-user")
    once.repartition(24, name="wide").repartition(name="again").to("spread")
    grouped.aggregate({"total": "sum(amount)"}, n="count(*)", store="totals").to("totals")
    grouped.count(store="counts", name="counted")
    grouped.windowed_by(tumbling("1m", grace="10s", offset="5s"), retention="1d", late="late").suppress().count(
        "n", store="often"
    )
    grouped.windowed_by(hopping(timedelta(minutes=1), "10s")).count("n", store="hops")
    days = tumbling("1d", timezone="Europe/Berlin", offset="6h")
    grouped.windowed_by(days, retention="9d").count("n", store="days")
    grouped.windowed_by(sliding("1m")).count("n", store="around")
    grouped.windowed_by(session("5m", "1m")).count("n", store="visits")
    assert builder.build() == declared(
        SOURCES
        + """
steps:
  - {name: once, from: orders, dedupe: {within: 10m, by: user}}
  - {name: by-user, from: once, keyBy: user}
  - {name: wide, from: once, repartition: {partitions: 24}}
  - {name: again, from: wide, repartition: {}}
  - {name: totals, from: by-user, aggregate: {total: sum(amount), n: count(*)}, store: totals}
  - {name: counted, from: by-user, aggregate: {count: count(*)}, store: counts}
  - {name: often, from: by-user, aggregate: {n: count(*)}, store: often, suppress: untilWindowCloses,
     window: {tumbling: {size: 1m, grace: 10s, offset: 5s}, retention: 1d, late: {topic: late}}}
  - {name: hops, from: by-user, aggregate: {n: count(*)}, store: hops, window: {hopping: {size: 1m, advance: 10s}}}
  - {name: days, from: by-user, aggregate: {n: count(*)}, store: days,
     window: {tumbling: {size: 1d, timezone: Europe/Berlin, offset: 6h}, retention: 9d}}
  - {name: around, from: by-user, aggregate: {n: count(*)}, store: around, window: {sliding: {timeDifference: 1m}}}
  - {name: visits, from: by-user, aggregate: {n: count(*)}, store: visits, window: {session: {gap: 5m, grace: 1m}}}
sinks: [{from: again, topic: spread}, {from: totals, topic: totals}]
"""
    )


def test_joins_with_global_tables_are_those_of_a_file() -> None:
    builder = StreamsBuilder()
    users = builder.global_table("users", key="string", value=json("tier STRING"), store="users")
    cities = builder.global_table("cities", key="string", value=json("city STRING"), store="cities", name="towns")
    named = orders(builder).join(users, {"tier": "users.tier"}, key="user")
    named.left_join(cities, {"city": "towns.city"}, key="upper(user)", name="both").to("out")
    assert builder.build() == declared(
        """
        sources:
          - {name: users, topic: users, key: {format: string}, value: {format: json, schema: tier STRING},
             table: {store: users, global: true}}
          - {name: towns, topic: cities, key: {format: string}, value: {format: json, schema: city STRING},
             table: {store: cities, global: true}}
          - {name: orders, topic: orders, key: {format: string},
             value: {format: json, schema: "user STRING, amount DOUBLE, tags ARRAY<STRING>"}}
        steps:
          - {name: orders-join, from: orders, join: {table: users, "key": user, select: {tier: users.tier}}}
          - name: both
            from: orders-join
            join: {table: towns, type: left, "key": upper(user), select: {city: towns.city}}
        sinks: [{from: both, topic: out}]
        """
    )


def test_where_streams_begin_is_as_in_a_file() -> None:
    builder = StreamsBuilder()
    for name, reset in {"a": "latest", "b": timedelta(hours=1, milliseconds=5), "c": "2d", "d": None}.items():
        builder.stream(name, value="string", offset_reset=reset)
    assert builder.build() == declared(
        """
        sources:
          - {name: a, topic: a, value: {format: string}, offsetReset: latest}
          - {name: b, topic: b, value: {format: string}, offsetReset: 1h5ms}
          - {name: c, topic: c, value: {format: string}, offsetReset: 2d}
          - {name: d, topic: d, value: {format: string}}
        """
    )
    builder.stream("e", value="string", offset_reset=timedelta(hours=-1))
    with pytest.raises(InvalidApplicationException, match=r"stream\('e'\)\.offsetReset: found '-"):
        builder.build()


def test_joins_by_a_foreign_key_are_those_of_a_file() -> None:
    builder = StreamsBuilder()
    bought = builder.table("bought", key="string", value=json("user STRING"), store="bought")
    users = builder.table("users", key="string", value=json("tier STRING"), store="users")
    bought.join(users, {"tier": "users.tier"}, key="user", store="a").to("a")
    bought.left_join(users, {"tier": "users.tier"}, key="user", store="b-store", name="b").to("b")
    assert builder.build() == declared(
        """
        sources:
          - {name: bought, topic: bought, key: {format: string}, value: {format: json, schema: user STRING},
             table: {store: bought}}
          - {name: users, topic: users, key: {format: string}, value: {format: json, schema: tier STRING},
             table: {store: users}}
        steps:
          - {name: a, from: bought, join: {table: users, "key": user, select: {tier: users.tier}}, store: a}
          - {name: b, from: bought, join: {table: users, "key": user, type: left, select: {tier: users.tier}},
             store: b-store}
        sinks: [{from: a, topic: a}, {from: b, topic: b}]
        """
    )


def test_joins_are_those_of_a_file() -> None:
    builder = StreamsBuilder()
    stream = orders(builder)
    users = builder.table("users", key="string", value=json("tier STRING"), store="users")
    cities = builder.table("cities", key="string", value=json("city STRING"), store="cities", name="towns")
    stream.join(users, {"tier": "users.tier"}, name="a")
    stream.left_join(users, {"tier": "users.tier"}, name="b")
    refunds = builder.stream("refunds", key="string", value=json("back DOUBLE"))
    stream.join(refunds, {"back": "refunds.back"}, within="5m", grace="1m", name="c")
    stream.left_join(refunds, {"back": "refunds.back"}, within={"before": "5m", "after": timedelta(0)}, name="d")
    stream.outer_join(refunds, {"back": "refunds.back"}, within="5m", name="e")
    users.join(cities, {"city": "towns.city"}, name="f").filter("city is not null", name="g").to("g")
    users.left_join(cities, {"city": "towns.city"}, name="h").select(city="city", name="i").to("i")
    users.outer_join(cities, {"city": "towns.city"}, name="j").to("j")
    assert builder.build() == declared(
        f"""
        sources:
          - {{name: orders, topic: orders, key: {{format: string}}, value: {{format: json, schema: "{ORDER}"}}}}
          - {{name: users, topic: users, key: {{format: string}}, value: {{format: json, schema: tier STRING}},
             table: {{store: users}}}}
          - {{name: towns, topic: cities, key: {{format: string}}, value: {{format: json, schema: city STRING}},
             table: {{store: cities}}}}
          - {{name: refunds, topic: refunds, key: {{format: string}}, value: {{format: json, schema: back DOUBLE}}}}
        """
        """
        steps:
          - {name: a, from: orders, join: {table: users, select: {tier: users.tier}}}
          - {name: b, from: orders, join: {table: users, type: left, select: {tier: users.tier}}}
          - {name: c, from: orders, join: {stream: refunds, within: 5m, grace: 1m, select: {back: refunds.back}}}
          - {name: d, from: orders, join: {stream: refunds, type: left, within: {before: 5m, after: 0ms},
             select: {back: refunds.back}}}
          - {name: e, from: orders, join: {stream: refunds, type: outer, within: 5m, select: {back: refunds.back}}}
          - {name: f, from: users, join: {table: towns, select: {city: towns.city}}}
          - {name: g, from: f, where: city is not null}
          - {name: h, from: users, join: {table: towns, type: left, select: {city: towns.city}}}
          - {name: i, from: h, select: {city: city}}
          - {name: j, from: users, join: {table: towns, type: outer, select: {city: towns.city}}}
        sinks: [{from: g, topic: g}, {from: i, topic: i}, {from: j, topic: j}]
        """
    )


def test_a_step_without_a_name_is_called_by_its_input_so_that_another_step_renames_nothing() -> None:
    def names(more: bool) -> list[str]:
        builder = StreamsBuilder()
        stream = orders(builder)
        if more:
            builder.stream("others", value="string").filter("value > 'a'")
        stream.filter("amount > 0").flat_map("tags", "tag")
        stream.filter("amount < 0").merge(stream)
        return [each.name for each in builder.build().steps]

    before = ["orders-filter", "orders-filter-flat-map", "orders-filter-2", "orders-filter-2-merge"]
    assert names(more=False) == before
    assert names(more=True) == ["others-filter", *before]


def test_all_mistakes_come_at_once_each_with_the_call_that_it_comes_from() -> None:
    builder = StreamsBuilder()
    line = inspect.currentframe().f_lineno  # type: ignore[union-attr]
    stream = orders(builder).filter("amout > 0", name="paid")
    stream.select({"a b": "user +"}, name="paid")
    stream.windowed = stream.group_by_key().windowed_by(tumbling("0s")).count(store="counts")
    stream.windowed.to("a b")
    with pytest.raises(InvalidApplicationException) as refused:
        builder.build()
    here = "test_builder.py"
    told = [f"{each.path}: {each.found}; {each.remedy}" for each in refused.value.mistakes]
    for expected in (
        f"{here}:{line + 1} filter('paid').where: unknown column 'amout'; did you mean 'amount'?",
        f"{here}:{line + 2} select('paid').name: the name 'paid' is taken by {here}:{line + 1} filter('paid');",
        f"{here}:{line + 2} select('paid').select[\"a b\"]: ",
        f"{here}:{line + 3} count('counts').window.tumbling.size: ",
        f"{here}:{line + 4} to('a b').topic: found 'a b'",
    ):
        assert any(each.startswith(expected) for each in told), (expected, told)
    assert not any("spec.topology" in each for each in told)


class Column:
    def __repr__(self) -> str:
        return "Column<'amount'>"


def joined_without_a_name(builder: StreamsBuilder) -> None:
    orders(builder).join(builder.stream("others", value="string"), {"a": "others.value"}, within="1m")


REFUSED = {
    "a column of PySpark": (
        lambda b: orders(b).filter(Column()),
        "found Column<'amount'>; write expressions as Spark SQL",
    ),
    "a column in a branch": (lambda b: orders(b).split(name="s").branch(Column(), "a"), "found Column<'amount'>"),
    "a stream of another builder": (
        lambda b: orders(b).merge(orders(StreamsBuilder())),
        "'orders' belongs to another StreamsBuilder; take both from one",
    ),
    "a table of another builder": (
        lambda b: orders(b).join(StreamsBuilder().table("users", value="string", store="u"), {"a": "users.value"}),
        "'users' belongs to another StreamsBuilder",
    ),
    "a branch that is not there": (
        lambda b: orders(b).split(name="s").branch("true", "large").default_branch("rest")["larg"],
        "'s' has no branch 'larg'; did you mean 'large'?",
    ),
    "tables joined by a foreign key without a store": (
        lambda b: b.table("orders", value="string", store="o").join(
            b.table("users", value="string", store="u"), {"a": "users.value"}, key="value"
        ),
        "join of the tables 'orders' and 'users' by 'value' has no store for its result; give store=",
    ),
    "two streams joined without a name": (joined_without_a_name, "its stores are called after it; give name="),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_can_not_be_recorded_is_refused_with_the_line_of_the_call(case: str) -> None:
    call, words = REFUSED[case]
    with pytest.raises(ConfigException) as refused:
        call(StreamsBuilder())
    assert words in str(refused.value)
    assert str(refused.value).startswith("test_builder.py:")
