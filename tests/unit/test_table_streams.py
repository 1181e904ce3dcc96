"""Streams that become tables and tables that become streams: what is refused, and what the plan makes of them."""

from __future__ import annotations

from typing import Any

import pytest
from refused_applications import CLICKS, ORDERS, USERS, S, application, joined, step, total

from streams_runtime.api import StreamsApplication, parse_application, read_application
from streams_runtime.builder import StreamsBuilder, json
from streams_runtime.errors import TopologyException
from streams_runtime.topology.changes.compare import changes
from streams_runtime.topology.column_types import columns_of
from streams_runtime.topology.declared.build_topology import build_topology
from streams_runtime.topology.describe import as_json, as_text
from streams_runtime.topology.nodes.table_nodes import ToStreamNode, ToTableNode
from streams_runtime.topology.partition_counts import internal_topic_names
from streams_runtime.topology.plan import SubTopology, Topology
from streams_runtime.topology.stage_order import stage_order
from streams_runtime.topology.store_specs import StoreSpec
from streams_runtime.topology.table_parts import TablePart, table_parts

KEPT = {"toTable": {"store": "kept"}}
TOLD: dict[str, Any] = {"toStream": {}}
MINUTES: dict[str, Any] = {"window": {"tumbling": {"size": "1m"}}}
CLOSED = {**MINUTES, "suppress": "untilWindowCloses"}
COUNTED = step(name="n", aggregate={"n": "count(*)"}, store="n")
RATED = {**ORDERS, "name": "rated", "topic": "rated"}

REFUSED: dict[str, tuple[list[Any], str, str, str]] = {
    "a table of a table": ([step(from_="users", **KEPT)], f"{S}.toTable", "'users', which is a table", "leave"),
    "a stream of a stream": ([step(**TOLD)], f"{S}.toStream", "'orders', which is a stream", "leave"),
    "a table without keys": ([step(from_="clicks", **KEPT)], f"{S}.toTable", "without a key: clicks", "keyBy"),
    "a table in a store of another": ([step(toTable={"store": "users"})], f"{S}.toTable.store", "twice", "own name"),
    "a table that names its store beside it": ([step(**KEPT, store="x")], f"{S}.store", "without state", "toTable"),
    "an aggregate by windows as keys": (
        [
            step(from_="c", aggregate={"m": "max(n)"}, store="m"),
            step(name="c", from_="t", **TOLD),
            total(name="t", **CLOSED),
        ],
        f"{S}.aggregate",
        "'c', whose keys are windows",
        "put a keyBy before it",
    ),
    "a table by windows as keys": (
        [step(from_="c", **KEPT), step(name="c", from_="t", **TOLD), total(name="t", **CLOSED)],
        f"{S}.toTable",
        "'c', whose keys are windows",
        "keeps the times",
    ),
    "a join with windows": (
        [joined("t", select={"t": "t.n"}), total(name="t", **CLOSED)],
        f"{S}.join.table",
        "'t', whose rows are windows, is not there yet",
        "toStream, keyBy, toTable",
    ),
    "a merge of windows that have closed": (
        [
            step(name="m", merge=["more", "few"], from_=None),
            step(name="few", from_="rated", select={"n": "cast(1 as bigint)"}),
            step(name="more", from_="c", select={"n": "n"}),
            step(name="c", from_="t", **TOLD),
            total(name="t", **CLOSED),
        ],
        f"{S}.merge[0]",
        "a merge of what the toStream 'c' gives, windows that have closed, is not there yet",
        "put a keyBy between",
    ),
    "a merge of windows and records": (
        [
            step(name="m", merge=["few", "more"], from_=None),
            step(name="few", from_="rated", select={"n": "cast(1 as bigint)"}),
            step(name="more", from_="c", select={"n": "n"}),
            step(name="c", from_="t", **TOLD),
            total(name="t", **MINUTES),
        ],
        f"{S}.merge[1]",
        "a merge of 'few', whose keys are no windows, and 'more', whose keys are windows of 1m",
        "by a keyBy before the merge",
    ),
    "a merge of windows and sessions": (
        [
            step(name="m", merge=["c", "d", "v"], from_=None),
            step(name="d", from_="c", where="n > 1"),
            step(name="c", from_="t", **TOLD),
            total(name="t", **MINUTES),
            step(name="v", from_="s", **TOLD),
            total(name="s", window={"session": {"gap": "1m"}}, store="s"),
        ],
        f"{S}.merge[2]",
        "a merge of 'c', whose keys are windows of 1m, and 'v', whose keys are sessions",
        "by a keyBy before the merge",
    ),
    "a merge of windows of two sizes": (
        [
            step(name="m", merge=["c", "v"], from_=None),
            step(name="c", from_="t", **TOLD),
            total(name="t", **MINUTES),
            step(name="v", from_="s", **TOLD),
            total(name="s", window={"sliding": {"timeDifference": "2m"}}, store="s"),
        ],
        f"{S}.merge[1]",
        "'c', whose keys are windows of 1m, and 'v', whose keys are windows of 2m",
        "by a keyBy before the merge",
    ),
    "a merge of days and of a place's days": (
        [
            step(name="m", merge=["c", "v"], from_=None),
            step(name="c", from_="t", **TOLD),
            total(name="t", window={"tumbling": {"size": "1d"}}),
            step(name="v", from_="s", **TOLD),
            total(name="s", window={"tumbling": {"size": "1d", "timezone": "Europe/Berlin"}}, store="s"),
        ],
        f"{S}.merge[1]",
        "whose keys are windows of 1d, and 'v', whose keys are windows of 1d by the clock of Europe/Berlin",
        "by a keyBy before the merge",
    ),
    "an aggregate of merged windows as keys": (
        [
            step(from_="m", aggregate={"m": "max(n)"}, store="m"),
            step(name="m", merge=["c", "d"], from_=None),
            step(name="d", from_="c", where="n > 1"),
            step(name="c", from_="t", **TOLD),
            total(name="t", **MINUTES),
        ],
        f"{S}.aggregate",
        "'m', whose keys are windows",
        "put a keyBy before it",
    ),
    "a moment over windows that are told": (
        [step(name="w", from_="t", where="n > rand()"), total(name="t", **MINUTES), step(name="c", from_="w", **TOLD)],
        "spec.topology.steps[0].where",
        "another value when the row changes",
        "",
    ),
    "a table that waits for itself": (
        [
            joined("k", select={"x": "k.name"}, from_="users"),
            step(name="k", from_="c", **KEPT),
            step(name="c", from_="some", **TOLD),
            step(name="some", from_="users", where="tier = 'gold'"),
        ],
        f"{S}.join.table",
        "'k' is made of 'c', whose records are changes of a table that it is joined with",
        "keyBy between 'c' and 'k'",
    ),
    "a moment over an aggregate that is told": (
        [step(name="w", from_="n", where="n > rand()"), COUNTED, step(name="c", from_="w", **TOLD)],
        "spec.topology.steps[0].where",
        "another value when the row changes",
        "",
    ),
}


def document(steps: list[Any], **more: Any) -> dict[str, Any]:
    named = [{field: value for field, value in each.items() if value is not None} for each in steps]
    return application(*named, sources=(ORDERS, USERS, CLICKS, RATED), **more)


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_fit_is_refused_by_name_and_nothing_else_with_it(case: str) -> None:
    steps, field, found, remedy = REFUSED[case]
    mistakes = read_application(document(steps)).mistakes
    assert [mistake.path for mistake in mistakes] == [field]
    assert found in mistakes[0].found
    assert remedy in mistakes[0].remedy


def planned(*steps: Any, sinks: str = "") -> Topology:
    written = [{"from": name, "topic": f"out-{name}"} for name in sinks.split()]
    return build_topology(parse_application(document([*steps], sinks=written)))


def order(sub: SubTopology) -> list[str]:
    return [f"part {each.name}" if isinstance(each, TablePart) else each for each in stage_order(sub)]


def test_a_table_of_a_re_keyed_stream_is_kept_behind_a_repartition_topic() -> None:
    plan = planned(step(name="by", keyBy="user"), step(name="k", from_="by", **KEPT), sinks="k")
    assert internal_topic_names(plan) == ("shop-by-repartition", "shop-kept-changelog")
    assert plan.store("kept")[1] == StoreSpec("kept", "key-value", "shop-kept-changelog", False, "k")
    assert plan.node("k") == ToTableNode("k", "by-repartition-source", "kept", "spec.topology.steps[1]")
    assert "k" in plan.tables
    assert [column.name for column in columns_of(plan)["k"] or ()] == ["user", "amount", "ts", "at"]


def test_changes_of_a_topics_table_go_on_with_their_records_and_ask_for_no_old_rows() -> None:
    plan = planned(
        step(name="k", **KEPT), step(name="s", from_="k", select={"u": "user"}), step(name="c", from_="s", **TOLD)
    )
    assert plan.node("c") == ToStreamNode("c", "s", "spec.topology.steps[2]")
    assert [table_parts(sub) for sub in plan.subtopologies] == [()] * len(plan.subtopologies)
    assert "c" not in plan.tables


def test_tables_of_several_topics_and_aggregates_that_are_asked_go_by_their_changes() -> None:
    merged = step(name="m", merge=["orders", "rated"])
    merged.pop("from")
    plan = planned(merged, step(name="k", from_="m", **KEPT), COUNTED, step(name="c", from_="n", **TOLD), sinks="k n c")
    (sub,) = (each for each in plan.subtopologies if "orders" in each.source_topics)
    found = {part.name: part for part in table_parts(sub)}
    assert set(found["k"].kept) == {"k"}
    assert [each.name for each in found["k"].sinks] == ["sink-out-k"]
    assert ([each.name for each in found["n"].streams], [each.name for each in found["n"].sinks]) == (
        ["c"],
        ["sink-out-n"],
    )


def test_windows_that_change_are_told_in_a_part_and_those_that_close_are_not() -> None:
    for more, parts in ((MINUTES, ["t"]), (CLOSED, [])):
        plan = planned(total(name="t", **more), step(name="c", from_="t", **TOLD), sinks="t c")
        found = [part for sub in plan.subtopologies for part in table_parts(sub)]
        assert [part.name for part in found] == parts
        assert [each.name for part in found for each in (*part.streams, *part.sinks)] == ["c", "sink-out-t"][
            : 2 * len(parts)
        ]


def test_an_aggregate_that_nobody_asks_is_in_no_part() -> None:
    plan = planned(COUNTED, step(name="w", from_="n", where="n > 1"), sinks="n w")
    assert all(not table_parts(sub) for sub in plan.subtopologies)


def test_stages_come_behind_what_they_ask_for() -> None:
    steps = (
        step(name="some", from_="users", where="tier = 'gold'"),
        step(name="changes", from_="some", **TOLD),
        step(name="kept", from_="changes", **KEPT),
        joined("kept", select={"who": "kept.name"}),
        joined("n", name="j", select={"n": "n.n"}, from_="s"),
        step(name="n", from_="changes", aggregate={"n": "count(*)"}, store="n"),
    )
    (sub,) = (each for each in planned(*steps, sinks="j").subtopologies if "orders" in each.source_topics)
    found = order(sub)
    # The part of the aggregate has nothing behind it: the join asks the store and the batch's changes.
    needed = ["part users", "changes", "s", "j"]
    assert [each for each in found if each in needed] == needed
    assert found.index("changes") < found.index("part n")


def test_a_plan_that_nobody_checked_and_that_would_wait_for_itself_is_refused_too() -> None:
    steps, *_ = REFUSED["a table that waits for itself"]
    whole = parse_application(document([])).model_dump(mode="json", by_alias=True)
    whole["spec"]["topology"]["steps"] = steps
    with pytest.raises(TopologyException, match="wait for each other in a circle"):
        build_topology(StreamsApplication.model_validate(whole))


def test_descriptions_say_what_becomes_of_what_and_which_stores_a_join_asks() -> None:
    steps = (step(name="k", **KEPT), joined("k", name="j", select={"u": "k.user"}, from_="users"))
    plan = planned(*steps, step(name="c", from_="j", **TOLD), sinks="c")
    found = {node["name"]: node for sub in as_json(plan)["subtopologies"] for node in sub["nodes"]}
    assert [(found[name]["type"], found[name]["does"]) for name in ("k", "c")] == [
        ("to-table", "to a table"),
        ("to-stream", "to a stream"),
    ]
    assert (found["k"]["stores"], found["j"]["stores"]) == (["kept"], ["users", "kept"])
    assert "Processor: k (stores: [kept])" in as_text(plan)


def test_an_upgrade_is_told_of_other_keys_columns_and_owners_of_a_kept_table() -> None:
    old = planned(step(name="k", from_="orders", **KEPT))
    more = step(name="s", select={"user": "user", "cents": "cast(amount * 100 as bigint)"})
    by = step(name="by", keyBy="user")
    others = {
        "columns": planned(more, step(name="k", from_="s", **KEPT)),
        "keys": planned(by, step(name="k", from_="by", **KEPT)),
        "owner": planned(step(name="k", aggregate={"n": "count(*)"}, store="kept")),
    }
    found = {name: [each.what for each in changes(old, new).items] for name, new in others.items()}
    assert found["columns"] == ["the column cents of the store kept is another one than before"]
    assert "the keys of the store kept were string and are keyBy user" in found["keys"]
    assert "the store kept was that of a toTable and is that of an aggregate" in found["owner"]
    assert not changes(old, planned(step(name="k", from_="orders", **KEPT), step(name="c", from_="k", **TOLD))).items


def test_a_builder_makes_the_same_steps() -> None:
    builder = StreamsBuilder()
    orders = builder.stream("orders", key="string", value=json("amount DOUBLE"))
    table = orders.to_table("kept")
    table.to_stream(name="changes").to("out")
    orders.group_by_key().count(store="n").to_stream().to("counts")
    assert builder.document["steps"] == [
        {"name": "kept", "from": "orders", "toTable": {"store": "kept"}},
        {"name": "changes", "from": "kept", "toStream": {}},
        {"name": "n", "from": "orders", "aggregate": {"count": "count(*)"}, "store": "n"},
        {"name": "n-to-stream", "from": "n", "toStream": {}},
    ]
    assert builder.reading().application is not None


def test_what_was_looked_up_in_a_global_table_before_an_aggregate_is_no_foreign_key():
    known = {**USERS, "name": "known", "topic": "known", "table": {"store": "known", "global": True}}
    steps = [
        step(join={"table": "known", "key": "user", "select": {"tier": "known.tier"}}),
        step(name="n", from_="s", aggregate={"n": "count(*)"}, store="n"),
        step(name="both", from_="n", join={"table": "users", "select": {"tier": "users.tier"}}),
        step(name="told", from_="both", **TOLD),
    ]
    assert read_application(application(*steps, sources=[ORDERS, USERS, known])).mistakes == ()
