"""Joins by a foreign key in the plan: sub-topologies, topics, their partitions, and what an upgrade changes."""

from __future__ import annotations

from typing import Any

import pytest
from pipeline_kit import source, topology_of

from streams_runtime.api import StreamsApplication, parse_application
from streams_runtime.cli.local.progress.catch_up import CatchUp
from streams_runtime.errors import TopologyException
from streams_runtime.topology.changes.change import Change
from streams_runtime.topology.changes.compare import changes
from streams_runtime.topology.column_types import columns_of
from streams_runtime.topology.declared.build_topology import build_topology
from streams_runtime.topology.declared.foreign_key_step import ForeignKeySide
from streams_runtime.topology.describe import as_json, as_mermaid, as_text
from streams_runtime.topology.partition_counts import internal_topic_names, internal_topics, partition_counts, tasks
from streams_runtime.topology.plan import TaskId, Topology
from streams_runtime.topology.stage_order import stage_order
from streams_runtime.topology.table_parts import TablePart, per_update_aggregates

REGISTRATIONS, ANSWERS = (f"app-both-subscription-{kind}-topic" for kind in ("registration", "response"))


def table(name: str, schema: str = "user STRING, n BIGINT", key: str = "string") -> dict[str, Any]:
    return source(schema=schema, key=key) | {
        "name": name,
        "topic": f"topic-{name}",
        "table": {"store": f"{name}-store"},
    }


ORDERS, USERS = table("orders"), table("users", "tier STRING")
SINK = [{"from": "both", "topic": "out"}]


def join(
    on: str = "user", kind: str = "inner", from_: str = "orders", select: Any = None, **more: Any
) -> dict[str, Any]:
    other = more.pop("table", "users")
    fields = {"table": other, "key": on, "type": kind, "select": select or {"tier": f"{other}.tier"}}
    return {"name": "both", "from": from_, "join": fields, "store": "result"} | more


def plan(*steps: dict[str, Any], sources: Any = (ORDERS, USERS)) -> Topology:
    return topology_of(sources, steps or [join()], SINK)


def test_each_table_stays_with_its_own_tasks_and_two_topics_lead_to_the_other_and_back() -> None:
    found = plan({"name": "some", "from": "orders", "where": "n > 1"}, join(from_="some"))
    left, right = found.subtopologies
    assert left.source_topics == ("topic-orders", ANSWERS)
    assert right.source_topics == ("topic-users", REGISTRATIONS)
    assert (left.repartition_sinks, right.repartition_sinks) == ((REGISTRATIONS,), (ANSWERS,))
    assert [(store.name, store.kind, store.is_queryable) for store in found.stores] == [
        ("orders-store", "key-value", True),
        ("result", "key-value", True),
        ("users-store", "key-value", True),
        ("both-subscription-store", "subscription", False),
    ]
    assert found.tables == {"orders", "users", "some", "both"}
    assert found.sink_topics == ("out",)
    assert [column.name for column in columns_of(found)["both"] or ()] == ["user", "n", "tier"]


def test_the_topics_between_have_the_partitions_of_the_table_that_reads_them() -> None:
    found = plan()
    counts = partition_counts(found, {"topic-orders": 3, "topic-users": 2})
    assert (counts[REGISTRATIONS], counts[ANSWERS]) == (2, 3)
    assert tasks(found, counts) == tuple(TaskId(sub, number) for sub, of in ((0, 3), (1, 2)) for number in range(of))
    spec = parse_application(_document([join()])).spec
    made = {topic.name: topic for topic in internal_topics(found, spec, counts)}
    assert {name: (topic.kind, topic.partitions) for name, topic in made.items()} == {
        REGISTRATIONS: ("repartition", 2),
        ANSWERS: ("repartition", 3),
        "app-result-changelog": ("changelog", 3),
        "app-both-subscription-store-changelog": ("changelog", 2),
    }
    assert made[ANSWERS].config_dict["cleanup.policy"] == "delete"
    assert made[ANSWERS].config_dict["retention.ms"] == "-1"
    assert set(internal_topic_names(found)) == set(made)


def test_a_table_may_name_its_own_rows() -> None:
    found = plan(join(on="user", table="orders", select={"boss": "orders.n"}), sources=[ORDERS])
    (sub,) = found.subtopologies
    assert set(sub.source_topics) == {"topic-orders", REGISTRATIONS, ANSWERS}
    counts = partition_counts(found, {"topic-orders": 3})
    assert (counts[REGISTRATIONS], counts[ANSWERS]) == (3, 3)


def test_a_drawing_says_what_is_joined_on_what() -> None:
    found = plan(join(kind="left"))
    nodes = {node["name"]: node for sub in as_json(found)["subtopologies"] for node in sub["nodes"]}
    assert nodes["both"] == {
        "name": "both",
        "type": "foreign-key-join",
        "does": "left join of tables with users on user: tier",
        "topics": [],
        "stores": ["result"],
        "from": ["orders", "both-subscription-response-source"],
        "to": ["sink-out"],
    }
    assert nodes["both-subscription-response"]["stores"] == ["both-subscription-store"]
    assert nodes["both-subscription-registration"]["topics"] == [REGISTRATIONS]
    assert f"Sink: both-subscription-registration (topic: {REGISTRATIONS})" in as_text(found)
    assert "left join of tables with users on user" in as_mermaid(found)


def changed(*steps: dict[str, Any], sources: Any = (ORDERS, USERS)) -> dict[str, Change]:
    return {change.where: change for change in changes(plan(), plan(*steps, sources=sources)).items}


S = "spec.topology.steps[0]"


@pytest.mark.parametrize(
    ("step", "where", "what"),
    [
        (join(on="lower(user)"), f"{S}.join.key", "found by user, and would be found by LOWER(user)"),
        (join(kind="left"), f"{S}.join.type", "was inner and is left"),
        (
            join(select={"tier": "upper(users.tier)"}),
            f"{S}.join.select.tier",
            "was users.tier and is UPPER(users.tier)",
        ),
        (join(select={"t": "users.tier"}), f"{S}.join.select.t", "was not there and is users.tier"),
    ],
)
def test_a_join_by_another_rule_is_told_where_its_stores_keep_the_old_one(
    step: dict[str, Any], where: str, what: str
) -> None:
    found = changed(step)
    assert what in found[where].what
    assert not found[where].compatible


def test_a_key_or_a_column_of_another_type_is_told() -> None:
    wider = table("orders", "user STRING, n DOUBLE")
    assert "n in the store result was BIGINT and is DOUBLE" in changed(join(), sources=(wider, USERS))[f"{S}.from"].what
    other = table("users", "tier STRING", key="long")
    found = changed(join(on="cast(user as bigint)"), sources=(ORDERS, other))
    assert "the keys of users were string and are long" in found[f"{S}.join.table"].what


def test_what_is_the_same_in_other_words_is_no_change() -> None:
    assert changed(join(on=" user ")) == {}


def test_a_join_that_goes_away_leaves_its_stores_and_topics_behind() -> None:
    found = changes(plan(), topology_of([ORDERS, USERS], [], []))
    assert found.orphaned.stores == ("both-subscription-store", "result")
    assert set(found.orphaned.topics) >= {REGISTRATIONS, ANSWERS}
    told = {change.where for change in found.incompatible}
    assert told >= {"store result", f"repartition topic {ANSWERS}", f"repartition topic {REGISTRATIONS}"}


def test_a_source_that_is_replaced_changes_only_the_topics_that_go_by_its_partitions() -> None:
    other = USERS | {"topic": "topic-people"}
    told = set(changed(join(), sources=(ORDERS, other)))
    assert f"topic {REGISTRATIONS}" in told
    assert f"topic {ANSWERS}" not in told


def test_a_plan_that_nobody_checked_is_refused_too() -> None:
    windows = {"tumbling": {"size": "1m"}}
    totals = {"name": "n", "from": "in", "aggregate": {"tier": "count(*)"}, "window": windows, "store": "n"}
    document = _document([])
    document["spec"]["topology"]["sources"].append(source(schema="v BIGINT"))
    unchecked = parse_application(document).model_dump(mode="json", by_alias=True)
    unchecked["spec"]["topology"]["steps"] = [totals, join(table="n")]
    with pytest.raises(TopologyException, match="'n' is no table that a store keeps by key"):
        build_topology(StreamsApplication.model_validate(unchecked))


def _document(steps: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "apiVersion": "streamsoperator.io/v1alpha1",
        "kind": "StreamsApplication",
        "metadata": {"name": "app"},
        "spec": {"topology": {"sources": [ORDERS, USERS], "steps": steps, "sinks": []}},
    }


def test_a_run_has_caught_up_once_the_answers_to_all_subscriptions_are_read() -> None:
    assert CatchUp.of(plan()).stages == (("topic-orders", "topic-users"), (REGISTRATIONS,), (ANSWERS,))


def test_what_a_join_gives_is_joined_on_within_the_tasks_of_its_left_table() -> None:
    regions = table("regions", "name STRING")
    second = join(on="tier", from_="both", table="regions", select={"region": "regions.name"})
    found = plan(join(), second | {"name": "all", "store": "whole"}, sources=(ORDERS, USERS, regions))
    left, users, others = found.subtopologies
    asked, told = (f"app-all-subscription-{kind}-topic" for kind in ("registration", "response"))
    assert left.source_topics == ("topic-orders", ANSWERS, told)
    assert left.repartition_sinks == (REGISTRATIONS, asked)
    assert (users.repartition_sinks, others.repartition_sinks) == ((ANSWERS,), (told,))
    counts = partition_counts(found, {"topic-orders": 3, "topic-users": 2, "topic-regions": 5})
    assert [counts[topic] for topic in (REGISTRATIONS, ANSWERS, asked, told)] == [2, 3, 5, 3]
    stages = stage_order(left)
    sides = [stage for stage in stages if isinstance(stage, ForeignKeySide)]
    assert [side.node.name for side in sides] == ["both", "all"]
    assert [source.name for source in sides[1].table.sources] == ["both"]
    rows = next(stage for stage in stages if isinstance(stage, TablePart) and stage.name == "both")
    assert [sink.topic for sink in rows.sinks] == ["out"]
    assert stages.index(sides[0]) < stages.index(rows)
    assert CatchUp.of(found).stages == (
        ("topic-orders", "topic-users", "topic-regions"),
        (REGISTRATIONS,),
        (ANSWERS,),
        (asked,),
        (told,),
    )


def test_a_side_that_other_tables_make_up_takes_what_its_rows_come_of_and_no_more() -> None:
    steps = [
        {"name": "beside", "from": "orders", "join": {"table": "plans", "select": {"plan": "plans.tier"}}},
        {"name": "some", "from": "beside", "where": "n > 1"},
        {"name": "others", "from": "beside", "where": "n < 1"},
        {"name": "last", "from": "in", "aggregate": {"tier": "max(user)"}, "store": "last"},
        join(from_="some", table="last"),
    ]
    found = plan(*steps, sources=(ORDERS, table("plans", "tier STRING"), source(schema="user STRING")))
    sides = [each for sub in found.subtopologies for each in stage_order(sub) if isinstance(each, ForeignKeySide)]
    tables = [([node.name for node in side.table.sources], [step.name for step in side.table.steps]) for side in sides]
    assert tables == [(["orders", "plans"], ["beside", "some"]), (["last"], [])]
    assert [per_update_aggregates(sub) for sub in found.subtopologies] == [frozenset(), {"last"}]
