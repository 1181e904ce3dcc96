"""A stream spread over a topic with a declared number of partitions: its plan, its counts, and another number."""

from __future__ import annotations

from typing import Any

import pytest

from streams_runtime.api import StreamsApplication, parse_application
from streams_runtime.errors import TopologyException
from streams_runtime.topology.changes.compare import changes
from streams_runtime.topology.declared.build_topology import build_topology
from streams_runtime.topology.describe import as_json
from streams_runtime.topology.nodes.source_and_sink_nodes import RepartitionSinkNode, RepartitionSourceNode
from streams_runtime.topology.partition_counts import internal_topics, partition_counts, tasks

JSON = {"format": "json", "schema": "user STRING, n BIGINT"}
OUT = [{"from": "s", "topic": "out"}]


def app(*steps: dict[str, Any], table: bool = False, sinks: Any = OUT) -> StreamsApplication:
    """An application over the topic orders, and the table users where it is wanted."""
    sources: list[dict[str, Any]] = [{"name": "orders", "topic": "orders", "key": {"format": "string"}, "value": JSON}]
    if table:
        users = {"name": "users", "topic": "users", "table": {"store": "users"}}
        sources.append({**sources[0], **users})
    return parse_application(
        {
            "apiVersion": "streamsoperator.io/v1alpha1",
            "kind": "StreamsApplication",
            "metadata": {"name": "shop"},
            "spec": {"topology": {"sources": sources, "steps": list(steps), "sinks": sinks}},
        }
    )


def spread(partitions: int | None = None, from_: str = "orders") -> dict[str, Any]:
    return {"name": "s", "from": from_, "repartition": {} if partitions is None else {"partitions": partitions}}


COUNT = {"name": "c", "from": "s", "aggregate": {"count": "count(*)"}, "store": "c"}
KEY_BY = {"name": "k", "from": "orders", "keyBy": "user"}
JOIN = {"name": "j", "from": "s", "join": {"table": "users", "select": {"m": "users.n"}}}


def test_records_go_through_a_topic_whatever_follows() -> None:
    topology = build_topology(app(spread(6)))
    assert [[node.name for node in sub.nodes] for sub in topology.subtopologies] == [
        ["orders", "s-repartition"],
        ["s", "sink-out"],
    ]
    sink = topology.node("s-repartition")
    assert sink == RepartitionSinkNode(
        "s-repartition", "orders", "shop-s-repartition", partitions=6, path="spec.topology.steps[0]"
    )
    assert topology.node("s") == RepartitionSourceNode("s", "shop-s-repartition", "orders")
    assert as_json(topology)["subtopologies"][0]["repartitionSinks"] == ["shop-s-repartition"]


@pytest.mark.parametrize("partitions", [1, 6, 24])
def test_the_topic_has_the_declared_number_of_partitions_and_what_follows_as_many_tasks(partitions: int) -> None:
    application = app(spread(partitions), COUNT, sinks=[])
    topology = build_topology(application)
    counts = partition_counts(topology, {"orders": 4})
    assert counts == {"orders": 4, "shop-s-repartition": partitions}
    assert [str(task) for task in tasks(topology, counts)] == [
        *(f"0_{number}" for number in range(4)),
        *(f"1_{number}" for number in range(partitions)),
    ]
    assert {topic.name: topic.partitions for topic in internal_topics(topology, application.spec, counts)} == {
        "shop-s-repartition": partitions,
        "shop-c-changelog": partitions,
    }


def test_without_a_number_it_has_as_many_as_the_topic_that_its_records_come_from() -> None:
    topology = build_topology(app(spread()))
    assert partition_counts(topology, {"orders": 4})["shop-s-repartition"] == 4


def test_a_topic_behind_it_that_declares_none_has_the_declared_number_too() -> None:
    again = {"name": "again", "from": "s", "keyBy": "user"}
    count = {**COUNT, "from": "again"}
    topology = build_topology(app(spread(6), again, count, sinks=[]))
    assert partition_counts(topology, {"orders": 4})["shop-again-repartition"] == 6


def test_a_key_by_before_it_has_no_topic_of_its_own() -> None:
    topology = build_topology(app(KEY_BY, spread(6, "k"), COUNT, sinks=[]))
    assert topology.repartition_topics == ("shop-s-repartition",)
    assert [[node.name for node in sub.nodes] for sub in topology.subtopologies] == [
        ["orders", "k", "s-repartition"],
        ["s", "c"],
    ]


def test_a_stream_can_be_given_the_partitions_of_the_table_that_it_is_joined_with() -> None:
    sinks = [{"from": "j", "topic": "out"}]
    topology = build_topology(app(spread(3), JOIN, table=True, sinks=sinks))
    assert partition_counts(topology, {"orders": 8, "users": 3})["shop-s-repartition"] == 3
    without = build_topology(app(spread(), JOIN, table=True, sinks=sinks))
    assert partition_counts(without, {"orders": 8, "users": 3})["shop-s-repartition"] == 3


def test_a_declared_number_that_does_not_fit_what_it_is_joined_with_is_refused_with_both() -> None:
    topology = build_topology(app(spread(5), JOIN, table=True, sinks=[{"from": "j", "topic": "out"}]))
    with pytest.raises(TopologyException, match=r"shop-s-repartition has 5, users has 3|users has 3, shop-s-repa"):
        partition_counts(topology, {"orders": 8, "users": 3})


@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [
        (6, 8, "followed repartition.partitions: 6 and follows repartition.partitions: 8"),
        (None, 8, "followed orders and follows repartition.partitions: 8"),
        (6, None, "followed repartition.partitions: 6 and follows orders"),
    ],
)
def test_another_number_is_no_compatible_change(before: int | None, after: int | None, shown: str) -> None:
    old, new = (build_topology(app(spread(each), COUNT, sinks=[])) for each in (before, after))
    found = changes(old, new)
    assert {item.where for item in found.incompatible} == {"topic shop-s-repartition", "topic shop-c-changelog"}
    assert all(shown in item.what for item in found.incompatible)
    assert changes(old, old).compatible
