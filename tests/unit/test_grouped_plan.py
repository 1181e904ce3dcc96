"""Tables grouped by another key in the plan: sub-topologies, the topic between them, and what an upgrade changes."""

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
from streams_runtime.topology.describe import as_json, as_text
from streams_runtime.topology.partition_counts import internal_topics, partition_counts, tasks
from streams_runtime.topology.plan import TaskId, Topology
from streams_runtime.topology.table_parts import per_update_aggregates, table_parts

TOPIC = "app-by-tier-repartition"
USERS = source(schema="tier STRING, n BIGINT") | {"name": "users", "topic": "users", "table": {"store": "rows"}}
SINK = [{"from": "by-tier", "topic": "out"}]
S = "spec.topology.steps[0]"


def grouped(**more: Any) -> dict[str, Any]:
    columns = {"users": "count(*)", "n": "sum(n)"}
    step = {"name": "by-tier", "from": "users", "groupBy": "tier", "aggregate": columns, "store": "totals"}
    return step | {name.rstrip("_"): value for name, value in more.items()}


def plan(*steps: dict[str, Any], sources: Any = (USERS,)) -> Topology:
    return topology_of(sources, steps or [grouped()], SINK)


def test_the_groups_are_in_tasks_of_their_own_behind_a_repartition_topic() -> None:
    found = plan({"name": "some", "from": "users", "where": "n > 1"}, grouped(from_="some"))
    rows, groups = found.subtopologies
    assert (rows.source_topics, rows.repartition_sinks) == (("users",), (TOPIC,))
    assert (groups.source_topics, groups.sink_topics) == ((TOPIC,), ("out",))
    assert [(store.name, store.kind, store.changelog_topic) for store in found.stores] == [
        ("rows", "key-value", "users"),
        ("totals", "key-value", "app-totals-changelog"),
    ]
    assert found.tables == {"users", "some", "by-tier"}
    assert [(each.name, str(each.type)) for each in columns_of(found)["by-tier"] or ()] == [
        ("users", "BIGINT"),
        ("n", "BIGINT"),
    ]


def test_the_topic_is_made_as_other_repartition_topics_are() -> None:
    found = plan()
    counts = partition_counts(found, {"users": 3})
    assert tasks(found, counts) == tuple(TaskId(sub, number) for sub in (0, 1) for number in range(3))
    topology = {"sources": [USERS], "steps": [grouped()], "sinks": SINK}
    spec = parse_application(_document(topology)).spec
    made = {topic.name: topic for topic in internal_topics(found, spec, counts)}
    assert (made[TOPIC].kind, made[TOPIC].partitions) == ("repartition", 3)
    assert made[TOPIC].config_dict["cleanup.policy"] == "delete"
    assert made[TOPIC].config_dict["retention.ms"] == "-1"
    assert CatchUp.of(found).stages == (("users",), (TOPIC,))


def test_properties_of_the_topic_can_be_given_by_its_name() -> None:
    topology = {"sources": [USERS], "steps": [grouped()], "sinks": SINK}
    document = _document(topology)
    document["spec"]["internalTopics"] = {"overrides": {"by-tier-repartition": {"segment.bytes": "1000000"}}}
    assert parse_application(document).spec.internal_topics is not None


def test_an_aggregate_that_is_grouped_tells_every_change() -> None:
    clicks = source(schema="tier STRING, n BIGINT")
    counted = {"name": "counted", "from": "in", "aggregate": {"n": "count(*)"}, "store": "counted"}
    found = plan(counted, grouped(from_="counted", groupBy="n % 2"), sources=[clicks])
    assert per_update_aggregates(found.subtopologies[0]) == {"counted"}
    assert per_update_aggregates(found.subtopologies[1]) == frozenset()


def test_a_sources_table_that_is_grouped_goes_to_its_other_sinks_as_before() -> None:
    """It needs old rows for its groups alone."""
    found = topology_of([USERS], [grouped()], [*SINK, {"from": "users", "topic": "copy"}])
    (part,) = table_parts(found.subtopologies[0])
    assert (part.kept, part.sinks) == (frozenset(), ())
    assert [each.name for each in part.regroups] == ["by-tier-repartition"]


def test_a_drawing_says_what_is_grouped_by_what() -> None:
    found = plan()
    nodes = {node["name"]: node for sub in as_json(found)["subtopologies"] for node in sub["nodes"]}
    assert nodes["by-tier-repartition"] == {
        "name": "by-tier-repartition",
        "type": "regroup",
        "does": "groupBy tier",
        "topics": [TOPIC],
        "stores": [],
        "from": ["users"],
        "to": [],
    }
    assert nodes["by-tier"]["does"] == "aggregate users = count(*), n = sum(n)"
    assert f"Sink: by-tier-repartition (topic: {TOPIC})" in as_text(found)


def changed(*steps: dict[str, Any], before: Topology | None = None, sources: Any = (USERS,)) -> dict[str, Change]:
    old = plan() if before is None else before
    return {change.where: change for change in changes(old, plan(*steps, sources=sources)).incompatible}


@pytest.mark.parametrize(
    ("step", "where", "what"),
    [
        (grouped(groupBy="lower(tier)"), f"{S}.from", "were groupBy tier and are groupBy LOWER(tier)"),
        (
            grouped(aggregate={"users": "count(n)", "n": "sum(n)"}),
            f"{S}.aggregate.users",
            "was count(*) and is count(n)",
        ),
    ],
)
def test_groups_by_another_rule_are_told_where_the_store_has_the_old_ones(
    step: dict[str, Any], where: str, what: str
) -> None:
    assert what in changed(step)[where].what


def test_rows_that_come_by_other_steps_would_be_taken_out_as_they_never_came_in() -> None:
    some = {"name": "some", "from": "users", "where": "n > 1"}
    assert "come by other steps than before" in changed(some, grouped(from_="some"))["spec.topology.steps[1].from"].what
    less = {"name": "some", "from": "users", "where": "n > 2", "select": {"tier": "tier", "n": "n"}}
    found = changed(less, grouped(from_="some"), before=plan(some, grouped(from_="some")))
    assert "come by other steps" in found["spec.topology.steps[1].from"].what
    again = {"name": "again", "from": "users", "where": " n  > 1"}
    assert changed(again, grouped(from_="again"), before=plan(some, grouped(from_="some"))) == {}


def test_a_stream_and_a_table_fill_a_store_in_two_ways() -> None:
    stream = {name: value for name, value in USERS.items() if name != "table"}
    by = {"name": "by", "from": "users", "keyBy": "tier"}
    counted = {name: value for name, value in grouped(from_="by").items() if name != "groupBy"}
    found = changed(before=plan(by, counted, sources=[stream]))
    assert "had an aggregate of records of a stream and has one of rows of a table" in found[f"{S}.groupBy"].what
    assert f"{S}.groupBy" not in changed()


def test_a_new_aggregate_of_a_table_that_has_rows_already_is_told() -> None:
    before = topology_of([USERS], [], [{"from": "users", "topic": "copy"}])
    found = changed(before=before)[f"{S}.store"]
    assert "is new, and the table users has rows already" in found.what
    assert "counts fall below 0" in found.consequence
    other = topology_of([source(schema="v BIGINT")], [], [])
    assert f"{S}.store" not in changed(before=other)


def test_a_plan_that_nobody_checked_is_refused_too() -> None:
    windows = {"name": "w", "from": "in", "aggregate": {"n": "count(*)"}, "store": "w"}
    topology = {"sources": [source(schema="v BIGINT")], "steps": [windows], "sinks": []}
    unchecked = parse_application(_document(topology)).model_dump(mode="json", by_alias=True)
    unchecked["spec"]["topology"]["steps"] = [
        windows | {"window": {"tumbling": {"size": "1m"}}},
        grouped(from_="w", groupBy="n", aggregate={"n": "count(*)"}),
    ]
    with pytest.raises(TopologyException, match="'w' is no table that a store keeps by key"):
        build_topology(StreamsApplication.model_validate(unchecked))


def _document(topology: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "streamsoperator.io/v1alpha1",
        "kind": "StreamsApplication",
        "metadata": {"name": "app"},
        "spec": {"topology": topology},
    }
