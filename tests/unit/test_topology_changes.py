"""What an upgrade of a topology does to stores and internal topics that are there."""

from __future__ import annotations

from typing import Any

import pytest
from full_application import FULL

from streams_runtime.api import parse_application
from streams_runtime.topology.changes.change import Change, TopologyChanges
from streams_runtime.topology.changes.compare import changes
from streams_runtime.topology.declared.build_topology import build_topology
from streams_runtime.topology.plan import Topology

JSON = {"format": "json", "schema": "user STRING, region STRING, n INT, x DOUBLE"}


def source(name: str, key: str = "string", **more: Any) -> dict[str, Any]:
    return {"name": name, "topic": f"topic-{name}", "key": {"format": key}, "value": JSON, **more}


def topology(steps: Any, sources: Any = None, sinks: Any = (), **spec: Any) -> Topology:
    declared = {"sources": sources or [source("a")], "steps": list(steps), "sinks": list(sinks)}
    document = {
        "apiVersion": "streamsoperator.io/v1alpha1",
        "kind": "StreamsApplication",
        "metadata": {"name": "shop"},
        "spec": {"topology": declared, **spec},
    }
    return build_topology(parse_application(document))


def total(store: str = "totals", from_: str = "a", aggregate: Any = None, **more: Any) -> dict[str, Any]:
    return {"name": f"{store}-step", "from": from_, "aggregate": aggregate or {"n": "count(*)"}, "store": store, **more}


def by(key: str = "user", name: str = "by", from_: str = "a") -> dict[str, Any]:
    return {"name": name, "from": from_, "keyBy": key}


def tumbling(size: str = "1m", **more: str) -> dict[str, Any]:
    retention = more.pop("retention", None)
    return {"tumbling": {"size": size, **more}, **({"retention": retention} if retention else {})}


def session(gap: str) -> dict[str, Any]:
    return {"session": {"gap": gap}, "retention": "1d"}


def sliding(difference: str) -> dict[str, Any]:
    return {"sliding": {"timeDifference": difference}, "retention": "1d"}


def hopping(size: str, advance: str) -> dict[str, Any]:
    return {"hopping": {"size": size, "advance": advance}, "retention": "1d"}


def only(found: TopologyChanges) -> Change:
    (item,) = found.incompatible
    return item


def verdict_of(before: Any, after: Any) -> TopologyChanges:
    return changes(topology([before]), topology([after]))


def test_another_offset_reset_is_compatible():
    old, new = ([source("a", **more), source("b", **more)] for more in ({}, {"offsetReset": "latest"}))
    kafka = {"offsetReset": "none"}
    assert changes(topology([], old), topology([], new, kafka=kafka)) == TopologyChanges(())


def test_nothing_is_other_in_the_same_topology() -> None:
    same = build_topology(parse_application(FULL))
    assert changes(same, same) == TopologyChanges(())


SHAPE = [by(), total(from_="by", aggregate={"s": "sum(n)"})]
LAST_TWO = "collect_list(v, 2)"
COMPATIBLE: dict[str, tuple[Any, Any]] = {
    "another where": (
        [{"name": "w", "from": "a", "where": "n > 1"}, total(from_="w")],
        [{"name": "w", "from": "a", "where": "n > 2"}, total(from_="w")],
    ),
    "another select that does not reach the aggregate's types": (
        [{"name": "w", "from": "a", "select": {"n": "n", "user": "user"}}, total(from_="w", aggregate={"s": "sum(n)"})],
        [{"name": "w", "from": "a", "select": {"n": "n + 1", "x": "x"}}, total(from_="w", aggregate={"s": "sum(n)"})],
    ),
    "a step without a store": (SHAPE, [{"name": "w", "from": "a", "where": "n > 1"}, by(from_="w"), SHAPE[1]]),
    "a step of another name": ([total()], [{**total(), "name": "other"}]),
    "another spelling of the same expressions": (
        [by("lower(user)"), total(from_="by", aggregate={"s": "sum(n + 1)"})],
        [by("LOWER( user )"), total(from_="by", aggregate={"s": "sum( n+1 )"})],
    ),
    "another spelling of what a value goes by and of which records count": (
        [total(aggregate={"b": "max_by(user, n + 1) FILTER (WHERE n > 1)", "d": "count(distinct user, n + 1)"})],
        [total(aggregate={"b": "MAX_BY(user, n+1) filter(where n>1 /* some */)", "d": "COUNT(DISTINCT user,n+1)"})],
    ),
    "another spelling of what the greatest go by": (
        [total(aggregate={"t": "top(user, n + 1, 3)"})],
        [total(aggregate={"t": "TOP( user , n+1 /* by */, 3 )"})],
    ),
    "a star for the columns that are there": (
        [
            {"name": "w", "from": "a", "select": {"n": "n", "user": "user", "x": "x"}},
            total(from_="w", aggregate={"m": "max(n)"}),
        ],
        [{"name": "w", "from": "a", "select": {"*": "*", "n": "n"}}, total(from_="w", aggregate={"m": "max(n)"})],
    ),
    "columns in another order": (
        [total(aggregate={"a": "count(*)", "b": "sum(n)"})],
        [total(aggregate={"b": "sum(n)", "a": "count(*)"})],
    ),
    "grace, with the retention as it was": (
        [total(window=tumbling(retention="1d"))],
        [total(window=tumbling(retention="1d", grace="5s"))],
    ),
    "suppression": ([total(window=tumbling())], [total(window=tumbling(), suppress="untilWindowCloses")]),
    "a wider whole number": (
        [{"name": "w", "from": "a", "select": {"n": "cast(n as int)"}}, total(from_="w", aggregate={"m": "max(n)"})],
        [{"name": "w", "from": "a", "select": {"n": "cast(n as bigint)"}}, total(from_="w", aggregate={"m": "max(n)"})],
    ),
    "another percentile of the same sketch": (
        [total(aggregate={"p": "approx_percentile(n, 0.5)"})],
        [total(aggregate={"p": "approx_percentile(n, 0.99)"})],
    ),
    "longer lists": (
        [total(aggregate={"l": "collect_list(n, 5)", "s": "collect_set(n, 5)"})],
        [total(aggregate={"l": "collect_list(n, 6)", "s": "collect_set(n, 5)"})],
    ),
    "lists of wider whole numbers": (
        [{"name": "w", "from": "a", "select": {"v": "cast(n as int)"}}, total(from_="w", aggregate={"m": LAST_TWO})],
        [{"name": "w", "from": "a", "select": {"v": "cast(n as bigint)"}}, total(from_="w", aggregate={"m": LAST_TWO})],
    ),
    "percentiles of another type": (
        [
            {"name": "w", "from": "a", "select": {"v": "n"}},
            total(from_="w", aggregate={"p": "approx_percentile(v, 1)"}),
        ],
        [
            {"name": "w", "from": "a", "select": {"v": "x"}},
            total(from_="w", aggregate={"p": "approx_percentile(v, 1)"}),
        ],
    ),
}


@pytest.mark.parametrize("case", COMPATIBLE)
def test_what_leaves_the_stores_as_they_are_is_compatible(case: str) -> None:
    old, new = COMPATIBLE[case]
    assert changes(topology(old), topology(new)).items == ()


def test_an_added_sink_is_compatible() -> None:
    more = topology(SHAPE, sinks=[{"from": "totals-step", "topic": "out"}])
    assert changes(topology(SHAPE), more) == TopologyChanges(())


INCOMPATIBLE: dict[str, tuple[Any, Any, str, str]] = {
    "windows": (total(), total(window=tumbling()), "store", "was a key-value store and is a window store"),
    "sessions": (
        total(window=tumbling()),
        total(window=session("1m")),
        "store",
        "was a window store and is a session store",
    ),
    "size": (
        total(window=tumbling("1m", retention="1d")),
        total(window=tumbling("2m", retention="1d")),
        "window",
        "were of 60000 ms and are of 120000 ms",
    ),
    "advance": (
        total(window=hopping("1m", "10s")),
        total(window=hopping("1m", "20s")),
        "window",
        "every 10000 ms and are of 60000 ms every 20000 ms",
    ),
    "offset": (
        total(window={"tumbling": {"size": "1m"}}),
        total(window={"tumbling": {"size": "1m", "offset": "20s"}}),
        "window",
        "were of 60000 ms and are of 60000 ms with an offset of 20000 ms",
    ),
    "time zone": (
        total(window=tumbling("1d", timezone="Europe/Berlin", retention="9d")),
        total(window=tumbling("1d", timezone="Europe/London", retention="9d")),
        "window",
        "were of 86400000 ms by the clock of Europe/Berlin and are of 86400000 ms by the clock of Europe/London",
    ),
    "sliding": (
        total(window=tumbling("1m", retention="1d")),
        total(window=sliding("1m")),
        "window",
        "were of 60000 ms and are sliding ones of 60000 ms",
    ),
    "time difference": (
        total(window=sliding("1m")),
        total(window=sliding("2m")),
        "window",
        "were sliding ones of 60000 ms and are sliding ones of 120000 ms",
    ),
    "gap": (total(window=session("1m")), total(window=session("2m")), "window", "was 60000 ms and is 120000 ms"),
    "retention": (
        total(window=tumbling(retention="1d")),
        total(window=tumbling(retention="2d")),
        "window",
        "retention of the store totals was 86400000 ms",
    ),
    "function": (
        total(aggregate={"v": "min(n)"}),
        total(aggregate={"v": "max(n)"}),
        "aggregate.v",
        "was min(n) and is max(n)",
    ),
    "argument": (
        total(aggregate={"v": "sum(n)"}),
        total(aggregate={"v": "sum(x)"}),
        "aggregate.v",
        "was sum(n) and is sum(x)",
    ),
    "text": (
        total(aggregate={"v": "count(nullif(user, 'a'))"}),
        total(aggregate={"v": "count(nullif(user, 'A'))"}),
        "aggregate.v",
        "nullif(user, 'A')",
    ),
    "a count of different values": (
        total(aggregate={"v": "count(user)"}),
        total(aggregate={"v": "count(distinct user)"}),
        "aggregate.v",
        "was count(user) and is count(distinct user)",
    ),
    "an exact count": (
        total(aggregate={"v": "approx_count_distinct(user)"}),
        total(aggregate={"v": "count(distinct user)"}),
        "aggregate.v",
        "was approx_count_distinct(user) and is count(distinct user)",
    ),
    "a count of pairs": (
        total(aggregate={"v": "count(distinct user)"}),
        total(aggregate={"v": "count(distinct user, n)"}),
        "aggregate.v",
        "was count(distinct user) and is count(distinct user, n)",
    ),
    "what a value goes by": (
        total(aggregate={"v": "max_by(user, n)"}),
        total(aggregate={"v": "max_by(user, x)"}),
        "aggregate.v",
        "was max_by(user, n) and is max_by(user, x)",
    ),
    "what the greatest go by": (
        total(aggregate={"v": "top(user, n, 3)"}),
        total(aggregate={"v": "top(user, x, 3)"}),
        "aggregate.v",
        "was top(user, n, 3) and is top(user, x, 3)",
    ),
    "fewer of the greatest": (
        total(aggregate={"v": "top(user, n, 3)"}),
        total(aggregate={"v": "top(user, n, 2)"}),
        "aggregate.v",
        "was top(user, n, 3) and is top(user, n, 2)",
    ),
    "more of the greatest": (
        total(aggregate={"v": "top(user, n, 3)"}),
        total(aggregate={"v": "top(user, n, 4)"}),
        "aggregate.v",
        "was top(user, n, 3) and is top(user, n, 4)",
    ),
    "which records count": (
        total(aggregate={"v": "count(*) FILTER (WHERE n > 1)"}),
        total(aggregate={"v": "count(*) FILTER (WHERE n > 2)"}),
        "aggregate.v",
        "was count(*) FILTER (WHERE n > 1) and is count(*) FILTER (WHERE n > 2)",
    ),
    "that only some records count": (
        total(aggregate={"v": "sum(n)"}),
        total(aggregate={"v": "sum(n) FILTER (WHERE n > 2)"}),
        "aggregate.v",
        "was sum(n) and is sum(n) FILTER (WHERE n > 2)",
    ),
    "shorter lists": (
        total(aggregate={"v": "collect_list(n, 5)"}),
        total(aggregate={"v": "collect_list(n, 4)"}),
        "aggregate.v",
        "was collect_list(n, 5) and is collect_list(n, 4)",
    ),
    "a set of a list": (
        total(aggregate={"v": "collect_list(n, 5)"}),
        total(aggregate={"v": "collect_set(n, 5)"}),
        "aggregate.v",
        "was collect_list(n, 5) and is collect_set(n, 5)",
    ),
    "another column": (
        total(),
        total(aggregate={"n": "count(*)", "m": "max(n)"}),
        "aggregate.m",
        "the column m is new",
    ),
    "a column less": (
        total(aggregate={"n": "count(*)", "m": "max(n)"}),
        total(),
        "aggregate",
        "had the column m",
    ),
}


@pytest.mark.parametrize("case", INCOMPATIBLE)
def test_what_gives_a_store_another_meaning_is_not_compatible(case: str) -> None:
    before, after, field, words = INCOMPATIBLE[case]
    item = only(verdict_of(before, after))
    assert item.kind == "changed"
    assert item.where == f"spec.topology.steps[0].{field}"
    assert words in item.what
    assert item.consequence
    assert item.remedy


@pytest.mark.parametrize(
    ("was", "now", "words"),
    [("n", "x", "m was INT and is DOUBLE"), ("cast(x as bigint)", "n", "m was BIGINT and is INT")],
)
@pytest.mark.parametrize("more", [{"z": "1", "v": "v", "user": "user"}, {"z": "1", "*": "*"}])
def test_another_type_of_a_column_is_found_through_selects_and_repartition_topics(
    was: str, now: str, words: str, more: dict[str, str]
) -> None:
    behind = [{"name": "t", "from": "w", "select": more}, by(from_="t"), total(from_="by", aggregate={"m": "max(v)"})]
    one, other = ([{"name": "w", "from": "a", "select": {"v": each, "user": "user"}}, *behind] for each in (was, now))
    item = only(changes(topology(one), topology(other)))
    assert item.where == "spec.topology.steps[3].aggregate.m"
    assert words in item.what


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("collect_list(v, 3)", "m was ARRAY<INT> and is ARRAY<DOUBLE>"),
        ("approx_count_distinct(v)", "m was INT and is DOUBLE"),
        ("count(distinct v)", "m was INT and is DOUBLE"),
        ("count(distinct v, user)", "`value`: INT> and is STRUCT<`by`: STRING, `value`: DOUBLE>"),
        ("top(user, v, 2)", "`by`: INT, `value`: ARRAY<STRING>> and is STRUCT<`by`: DOUBLE, `value`: ARRAY<STRING>>"),
        ("max_by(user, v)", "m was STRUCT<`by`: INT, `value`: STRING> and is STRUCT<`by`: DOUBLE, `value`: STRING>"),
        ("min_by(v, user)", "m was STRUCT<`by`: STRING, `value`: INT> and is STRUCT<`by`: STRING, `value`: DOUBLE>"),
    ],
)
def test_another_type_of_what_is_kept_is_found(call: str, words: str) -> None:
    one, other = (
        [{"name": "w", "from": "a", "select": {"v": each, "user": "user"}}, total(from_="w", aggregate={"m": call})]
        for each in ("n", "x")
    )
    assert words in only(changes(topology(one), topology(other))).what


def test_wider_whole_numbers_have_other_hashes_and_would_be_counted_twice() -> None:
    steps = [total(from_="w", aggregate={"d": "approx_count_distinct(v)"})]
    one, other = ([{"name": "w", "from": "a", "select": {"v": each}}, *steps] for each in ("n", "cast(n as bigint)"))
    assert "d was INT and is BIGINT" in only(changes(topology(one), topology(other))).what


def test_the_sum_of_wider_whole_numbers_is_the_same_sum() -> None:
    steps = [total(from_="w", aggregate={"s": "sum(v)"})]
    one, other = ([{"name": "w", "from": "a", "select": {"v": each}}, *steps] for each in ("cast(n as smallint)", "n"))
    assert changes(topology(one), topology(other)).items == ()


def test_another_key_of_a_source_is_another_key_of_the_store() -> None:
    item = only(changes(topology([total()]), topology([total()], [source("a", key="long")])))
    assert item.where == "spec.topology.steps[0].from"
    assert "keys of the store totals were string and are long" in item.what


def test_another_key_by_is_another_key_of_every_store_behind_it() -> None:
    steps = [total("one", "by"), total("two", "by")]
    found = changes(topology([by("user"), *steps]), topology([by("region"), *steps]))
    assert [item.where for item in found.incompatible] == ["spec.topology.steps[1].from", "spec.topology.steps[2].from"]
    assert all("were keyBy user and are keyBy region" in item.what for item in found.incompatible)


def test_a_store_that_is_gone_leaves_its_changelog_behind() -> None:
    found = changes(topology([total("one"), total("two")]), topology([total("two")]))
    item = only(found)
    assert (item.kind, item.where) == ("orphaned", "store one")
    assert "shop-one-changelog stays on the brokers" in item.consequence
    assert (found.orphaned.stores, found.orphaned.topics) == (("one",), ("shop-one-changelog",))


def test_a_new_store_alone_is_compatible_and_told() -> None:
    found = changes(topology([total("one")]), topology([total("one"), total("two")]))
    assert found.compatible
    assert [(item.kind, item.where) for item in found.items] == [("new", "store two")]
    assert (found.new.stores, found.new.topics) == (("two",), ("shop-two-changelog",))


def test_a_renamed_key_by_leaves_its_repartition_topic_behind() -> None:
    found = changes(topology([by(), total(from_="by")]), topology([by(name="again"), total(from_="again")]))
    assert only(found).where == "repartition topic shop-by-repartition"
    assert "never read" in only(found).consequence
    assert found.orphaned.topics == ("shop-by-repartition",)
    assert found.new.topics == ("shop-again-repartition",)


def test_a_store_whose_sub_topology_has_another_number_is_restored_under_other_tasks() -> None:
    old = topology([total("one")])
    new = topology([total("two", "b"), total("one")], [source("b"), source("a")])
    item = only(changes(old, new))
    assert "was in sub-topology 0 and is in sub-topology 1" in item.what
    assert "1_N instead of 0_N" in item.consequence


def test_a_sub_topology_that_moves_no_store_is_compatible() -> None:
    old = topology([total("one")])
    assert changes(old, topology([total("one")], [source("a"), source("b")])).items == ()


def test_other_topics_before_a_store_may_bring_another_partition_count() -> None:
    old = topology([by(), total(from_="by")])
    joined = [{"name": "all", "merge": ["a", "b"]}, by(from_="all"), total(from_="by")]
    found = changes(old, topology(joined, [source("a"), source("b")]))
    assert {item.where for item in found.incompatible} == {
        "topic shop-by-repartition",
        "topic shop-totals-changelog",
    }
    assert "followed topic-a and follows topic-a and topic-b" in found.incompatible[0].what


def test_a_topic_that_is_merged_in_decides_the_count_of_the_repartition_topic_beside_it() -> None:
    sources = [source("a"), source("b")]
    apart = [by(from_="b"), {"name": "w", "from": "a", "where": "n > 1"}, total(from_="by")]
    merged = [by(from_="b"), {"name": "all", "merge": ["by", "a"]}, total(from_="all")]
    found = {item.where: item.what for item in changes(topology(apart, sources), topology(merged, sources)).items}
    assert "followed topic-b and follows topic-a and topic-b" in found["topic shop-by-repartition"]


def test_another_topic_under_the_same_source_may_bring_another_partition_count() -> None:
    renamed = {**source("a"), "topic": "other"}
    item = only(changes(topology([total()]), topology([total()], [renamed])))
    assert "followed topic-a and follows other" in item.what


def test_another_topic_of_a_stream_without_state_is_compatible() -> None:
    pass_on = [{"name": "w", "from": "a", "where": "n > 1"}]
    assert changes(topology(pass_on), topology(pass_on, [{**source("a"), "topic": "other"}])).items == ()


def test_a_stream_that_becomes_a_table_is_told_by_its_topic() -> None:
    found = changes(topology([total()]), topology([], [source("a", table={"store": "as"})]))
    turned = next(item for item in found.incompatible if item.kind == "changed")
    assert turned.where == "spec.topology.sources[0]"
    assert "topic-a was read as a stream and is read as a table" in turned.what
    assert found.new.stores == ("as",)
    assert found.new.topics == ()


def test_a_table_that_becomes_an_aggregate_of_the_same_name_has_another_changelog() -> None:
    table, plain = source("a", table={"store": "s"}), source("a")
    found = changes(topology([], [table]), topology([total("s")], [plain]))
    assert any("changelog of the store s was topic-a and is shop-s-changelog" in item.what for item in found.items)


def test_another_format_of_a_table_is_only_another_reading_of_its_topic() -> None:
    one, other = source("a", table={"store": "s"}), source("a", "long", table={"store": "s"})
    assert changes(topology([], [one]), topology([], [other])).items == ()


def test_another_application_id_leaves_everything_behind() -> None:
    found = changes(topology(SHAPE), topology(SHAPE, applicationId="other"))
    assert only(found).where == "spec.applicationId"
    assert found.orphaned.stores == found.new.stores == ("totals",)
    assert found.orphaned.topics == ("shop-by-repartition", "shop-totals-changelog")
    assert found.new.topics == ("other-by-repartition", "other-totals-changelog")


def test_a_change_says_where_what_with_which_consequence_and_what_to_do() -> None:
    item = only(changes(topology([total("one"), total("two")]), topology([total("two")])))
    assert str(item) == (
        "store one: only the old topology has it; its contents can't be queried any more, and its changelog"
        " shop-one-changelog stays on the brokers, unused; keep the store's name, or delete what is left of it once"
        " nobody needs it"
    )


def behind_a_join(column: str, key: str = "user") -> Topology:
    """An aggregate of a column that a join adds: `n`, an INT of the stream, or `u.n`, a STRING of the table."""
    table = source("u", table={"store": "users"}) | {"value": {"format": "json", "schema": "n STRING"}}
    join = {"name": "j", "from": "by", "join": {"table": "u", "select": {"m": column}}}
    return topology([by(key), join, total(from_="j", aggregate={"m": "max(m)"})], [source("a"), table])


def test_what_a_join_adds_has_the_type_that_it_has_in_stream_or_table() -> None:
    same = behind_a_join("u.n")
    assert changes(same, same).compatible
    found = only(changes(behind_a_join("n"), behind_a_join("cast(n as string)")))
    assert "m was INT and is STRING" in found.what


def test_behind_a_join_records_have_the_keys_of_the_stream() -> None:
    found = only(changes(behind_a_join("n"), behind_a_join("n", "user || 'x'")))
    assert "keyBy user" in found.what
    assert "string" not in found.what


def streams(kind: str = "left", key: str = "user", right: str = "n INT", **more: Any) -> Topology:
    """A join of the streams `a`, by a key of its own, and `b`."""
    b = source("b") | {"value": {"format": "json", "schema": right}}
    join = {"stream": "b", "type": kind, "within": "5m", "select": {"m": "b.n"}, **more}
    return topology([by(key), {"name": "j", "from": "by", "join": join}], [source("a"), b])


STORES = ("j-this-join-store", "j-other-join-store", "j-shared-join-store")


def test_which_records_of_two_streams_are_joined_may_change_as_long_as_they_are_kept_as_long() -> None:
    closer = streams(within={"before": "1m", "after": "8m"}, grace="1m", select={"x": "b.n + 1"})
    assert changes(streams(), closer).items == ()
    assert changes(streams(), streams("outer")).items == ()


def test_a_join_that_passes_on_more_or_less_has_a_store_more_or_less() -> None:
    assert only(changes(streams(), streams("inner"))).where == f"store {STORES[2]}"
    (item,) = changes(streams("inner"), streams()).items
    assert (item.kind, item.where) == ("new", f"store {STORES[2]}")


def test_records_to_join_that_are_kept_longer_need_another_changelog() -> None:
    found = changes(streams(), streams(grace="1m")).incompatible
    assert [item.where for item in found] == ["spec.topology.steps[1].join.within"] * 2
    assert "j-this-join-store kept records for 600000 ms and keeps them for 660000 ms" in found[0].what


def test_other_keys_of_one_side_do_not_meet_what_is_kept_of_it() -> None:
    found = changes(streams(), streams(key="region")).incompatible
    assert [item.where for item in found] == ["spec.topology.steps[1].from"] * 2
    assert [store in item.what for store, item in zip((STORES[0], STORES[2]), found, strict=True)] == [True, True]
    assert "keyBy user and are keyBy region" in found[0].what


def test_other_columns_of_one_side_are_told_of_the_stores_that_have_them() -> None:
    found = changes(streams(), streams(right="n STRING, k INT")).incompatible
    assert {(item.where, item.what) for item in found} == {
        ("spec.topology.steps[1].join.stream", "n was INT and is STRING"),
        ("spec.topology.steps[1].join.stream", "the column k is new in the store j-other-join-store"),
        ("spec.topology.steps[1].join.stream", "the column k is new in the store j-shared-join-store"),
    }
    assert changes(streams(right="n INT, k INT"), streams()).items == ()


def once(dedupe: Any, key: str = "user") -> Topology:
    """A dedupe of a stream by a key of its own."""
    return topology([by(key), {"name": "once", "from": "by", "dedupe": {"within": "1m", **dedupe}}])


def test_a_dedupe_by_the_same_id_keeps_what_it_remembers() -> None:
    assert changes(once({"by": "n+1"}), once({"by": "n  +  1"})).items == ()
    assert [item.where for item in changes(once({}), topology([by()])).incompatible] == [
        "store once-dedupe-store",
        "repartition topic shop-by-repartition",
    ]


@pytest.mark.parametrize(
    ("before", "after", "where", "what"),
    [
        (once({}), once({}, key="region"), "from", "once-dedupe-store were keyBy user and are keyBy region"),
        (once({}), once({"by": "user"}), "dedupe.by", "were keyBy user and are by user, with the keys keyBy user"),
        (
            once({"by": "n"}),
            once({"by": "n + 1"}),
            "dedupe.by",
            "by n, with the keys keyBy user and are by n + 1, with",
        ),
        (once({"by": "n"}), once({"by": "n"}, key="region"), "from", "with the keys keyBy user and are by n, with the"),
        (once({}), once({"within": "2m"}), "dedupe.within", "kept ids for 120001 ms and keeps them for 240001 ms"),
    ],
    ids=["key", "key to expression", "expression", "key of an expression", "time"],
)
def test_what_a_dedupe_remembers_is_not_read_as_something_else(
    before: Topology, after: Topology, where: str, what: str
) -> None:
    found = only(changes(before, after))
    assert found.where == f"spec.topology.steps[1].{where}"
    assert what in found.what


def test_an_id_of_another_type_is_another_id() -> None:
    wide = source("a") | {"value": JSON | {"schema": JSON["schema"].replace("n INT", "n BIGINT")}}
    step = {"name": "once", "from": "a", "dedupe": {"within": "1m", "by": "n"}}
    found = only(changes(topology([step]), topology([step], [wide])))
    assert "were by n, with the keys string: INT and are by n, with the keys string: BIGINT" in found.what
