"""From a declared topology to sub-topologies, tasks and internal topics, by example."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from streams_runtime.api import StreamsApplication, load_application, parse_application
from streams_runtime.errors import TopologyException, UnknownStateStoreException
from streams_runtime.topology.declared.build_topology import build_topology
from streams_runtime.topology.nodes.aggregate_node import AggregateNode
from streams_runtime.topology.nodes.dedupe_node import DedupeNode
from streams_runtime.topology.nodes.join_node import JoinNode
from streams_runtime.topology.nodes.source_and_sink_nodes import (
    Format,
    RepartitionSinkNode,
    RepartitionSourceNode,
    SinkNode,
    SourceNode,
    TableSourceNode,
)
from streams_runtime.topology.nodes.step_nodes import KeyByNode, MergeNode, TransformNode
from streams_runtime.topology.nodes.stream_join_node import StreamJoinNode
from streams_runtime.topology.partition_counts import copartitioned, internal_topics, partition_counts, tasks
from streams_runtime.topology.plan import TaskId, Topology
from streams_runtime.topology.store_specs import StoreKind, StoreSpec, Windowing

EXAMPLES = Path(__file__).parents[2] / "examples"
JSON = {"format": "json", "schema": "user STRING, region STRING, n INT"}
COUNT = {"n": "count(*)"}

OF_TIMES = {"message.timestamp.type": "CreateTime", "message.timestamp.after.max.ms": str(2**63 - 1)}
"""Settings of every internal topic: records keep their times, however far ahead of the brokers' clocks these are."""


def app(*steps: Any, sinks: Any = (), sources: Any = ("a",), tables: Any = (), **spec: Any) -> StreamsApplication:
    """An application with keyed sources of the given names, streams and tables."""
    declared: list[dict[str, Any]] = [
        {"name": name, "topic": f"topic-{name}", "key": {"format": "string"}, "value": JSON}
        for name in (*sources, *tables)
    ]
    for table in declared[len(sources) :]:
        table["table"] = {"store": f"{table['name']}-store"}
    return parse_application(
        {
            "apiVersion": "streamsoperator.io/v1alpha1",
            "kind": "StreamsApplication",
            "metadata": {"name": "shop"},
            "spec": {"topology": {"sources": declared, "steps": list(steps), "sinks": list(sinks)}, **spec},
        }
    )


def key_by(name: str, from_: str, key: str = "user") -> dict[str, Any]:
    return {"name": name, "from": from_, "keyBy": key}


def count(name: str, from_: str) -> dict[str, Any]:
    return {"name": name, "from": from_, "aggregate": COUNT, "store": f"{name}-store"}


def names(topology: Topology) -> list[list[str]]:
    return [[node.name for node in sub.nodes] for sub in topology.subtopologies]


def test_an_aggregate_of_a_keyed_source_is_one_sub_topology() -> None:
    topology = build_topology(app(count("c", "a"), sinks=[{"from": "c", "topic": "out"}]))
    (sub,) = topology.subtopologies
    assert [node.name for node in sub.nodes] == ["a", "c", "sink-out"]
    assert (sub.source_topics, sub.sink_topics, sub.repartition_sinks) == (("topic-a",), ("out",), ())
    (store,) = sub.stores
    assert (store.name, store.kind, store.node) == ("c-store", "key-value", "c")
    assert (store.changelog_topic, store.source_changelog) == ("shop-c-store-changelog", False)


def test_a_rekeyed_stream_is_split_at_its_repartition_topic() -> None:
    topology = build_topology(app(key_by("k", "a"), count("c", "k")))
    assert names(topology) == [["a", "k", "k-repartition"], ["k-repartition-source", "c"]]
    assert topology.node("k-repartition") == RepartitionSinkNode("k-repartition", "k", "shop-k-repartition")
    assert topology.node("k-repartition-source") == RepartitionSourceNode(
        "k-repartition-source", "shop-k-repartition", "k"
    )
    assert topology.repartition_topics == ("shop-k-repartition",)
    assert [sub.id for sub in topology.subtopologies if "shop-k-repartition" in sub.source_topics] == [1]


def test_a_rekeyed_stream_without_state_behind_it_needs_no_topic() -> None:
    topology = build_topology(app(key_by("k", "a"), sinks=[{"from": "k", "topic": "out"}]))
    assert names(topology) == [["a", "k", "sink-out"]]
    assert topology.repartition_topics == ()


def test_everything_behind_a_repartitioned_step_reads_its_topic() -> None:
    steps = (key_by("k", "a"), {"name": "w", "from": "k", "where": "n > 1"}, count("c", "w"))
    topology = build_topology(app(*steps, sinks=[{"from": "k", "topic": "out"}]))
    assert names(topology)[1] == ["k-repartition-source", "w", "c", "sink-out"]


def test_only_the_last_key_before_state_is_repartitioned() -> None:
    topology = build_topology(app(key_by("k1", "a"), key_by("k2", "k1", "region"), count("c", "k2")))
    assert topology.repartition_topics == ("shop-k2-repartition",)


def test_a_key_that_reaches_state_through_a_merge_is_repartitioned() -> None:
    steps = (key_by("k", "a"), {"name": "m", "merge": ["b", "k"]}, count("c", "m"))
    topology = build_topology(app(*steps, sources=("a", "b")))
    assert names(topology) == [["a", "k", "k-repartition"], ["b", "k-repartition-source", "m", "c"]]
    assert topology.node("m") == MergeNode("m", ("b", "k-repartition-source"), "spec.topology.steps[1]")


def test_sub_topologies_without_a_connection_are_numbered_in_the_order_of_the_file() -> None:
    topology = build_topology(app(count("y", "b"), count("x", "a"), sources=("a", "b", "c")))
    assert names(topology) == [["a", "x"], ["b", "y"], ["c"]]


def test_upstream_comes_first_even_where_the_file_has_it_last() -> None:
    steps = ({"name": "m", "merge": ["b", "k"]}, count("c", "m"), key_by("k", "a"))
    topology = build_topology(app(*steps, sources=("b", "a")))
    assert names(topology) == [["a", "k", "k-repartition"], ["b", "k-repartition-source", "m", "c"]]


def test_a_sub_topology_may_read_the_repartition_topic_that_it_writes() -> None:
    steps = (key_by("k", "a"), {"name": "m", "merge": ["a", "k"]}, count("c", "m"))
    topology = build_topology(app(*steps))
    (sub,) = topology.subtopologies
    assert [node.name for node in sub.nodes] == ["a", "k", "k-repartition", "k-repartition-source", "m", "c"]
    assert partition_counts(topology, {"topic-a": 4})["shop-k-repartition"] == 4


def test_sub_topologies_that_feed_each_other_are_built_and_their_nodes_can_be_ordered() -> None:
    steps = (
        key_by("k1", "a"),
        key_by("k2", "b"),
        {"name": "m1", "merge": ["a", "k2"]},
        {"name": "m2", "merge": ["b", "k1"]},
        count("c1", "m1"),
        count("c2", "m2"),
    )
    topology = build_topology(app(*steps, sources=("a", "b")))
    assert len(topology.subtopologies) == 2
    order = [node.name for node in topology.nodes]
    assert order.index("k1") < order.index("k1-repartition-source")
    assert order.index("k2") < order.index("k2-repartition-source")


def test_nodes_carry_what_was_declared_and_where() -> None:
    steps = (
        {"name": "t", "from": "a", "where": "n > 1", "select": {"b": "n", "a": "user"}},
        key_by("k", "t", "a"),
        {"name": "g", "from": "k", "aggregate": {"s": "sum(b * 2)", "n": "count(*)"}, "store": "st"},
    )
    topology = build_topology(app(*steps, sinks=[{"from": "g", "topic": "o", "key": {"format": "string"}}]))
    assert topology.node("a") == SourceNode(
        "a", "topic-a", Format("string"), Format("json", JSON["schema"]), None, "spec.topology.sources[0]"
    )
    path = "spec.topology.steps"
    assert topology.node("t") == TransformNode("t", "a", "n > 1", (("b", "n"), ("a", "user")), f"{path}[0]")
    assert topology.node("k") == KeyByNode("k", "t", "a", f"{path}[1]")
    aggregate = topology.node("g")
    assert isinstance(aggregate, AggregateNode)
    assert [(each.column, each.function, each.argument, each.path) for each in aggregate.aggregates] == [
        ("s", "sum", "b * 2", f"{path}[2].aggregate.s"),
        ("n", "count", None, f"{path}[2].aggregate.n"),
    ]
    assert topology.node("sink-o") == SinkNode("sink-o", "g", "o", Format("string"), None, "spec.topology.sinks[0]")


def test_a_table_source_is_its_own_changelog() -> None:
    table = {"name": "t", "topic": "users", "value": JSON, "table": {"store": "people"}}
    named = {"name": "named", "from": "t", "where": "user is not null"}
    document = {
        "apiVersion": "streamsoperator.io/v1alpha1",
        "kind": "StreamsApplication",
        "metadata": {"name": "shop"},
        "spec": {"topology": {"sources": [table], "steps": [named]}},
    }
    accepted = parse_application(document)
    topology = build_topology(accepted)
    node = topology.node("t")
    assert isinstance(node, TableSourceNode)
    assert node.key == Format("bytes")
    _, store = topology.store("people")
    assert (store.changelog_topic, store.source_changelog) == ("users", True)
    assert topology.tables == {"t", "named"}
    assert internal_topics(topology, accepted.spec, {"users": 3}) == ()


def test_what_follows_an_aggregate_is_a_table_too() -> None:
    after = {"name": "after", "from": "c", "select": {"m": "n + 1"}}
    topology = build_topology(app(count("c", "a"), after, {"name": "w", "from": "a", "where": "n > 1"}))
    assert topology.tables == {"c", "after"}


def join(from_: str, kind: str = "inner") -> dict[str, Any]:
    return {"name": "j", "from": from_, "join": {"table": "u", "type": kind, "select": {"region": "u.region"}}}


def test_a_stream_and_the_table_that_it_is_joined_with_are_one_sub_topology() -> None:
    topology = build_topology(app(join("a"), tables=["u"]))
    (sub,) = topology.subtopologies
    assert sub.source_topics == ("topic-a", "topic-u")
    path = "spec.topology.steps[0]"
    assert topology.node("j") == JoinNode("j", "a", "u", False, (("region", "u.region"),), path)
    assert "j" not in topology.tables
    assert copartitioned(topology) == (("topic-a", "topic-u"),)
    with pytest.raises(TopologyException, match=r"joined together.*topic-a has 2, topic-u has 3"):
        partition_counts(topology, {"topic-a": 2, "topic-u": 3})


def test_a_stream_with_another_key_goes_through_a_topic_with_the_partitions_of_the_table() -> None:
    topology = build_topology(app(key_by("k", "a"), join("k"), tables=["u"]))
    assert [sub.source_topics for sub in topology.subtopologies] == [("topic-a",), ("topic-u", "shop-k-repartition")]
    counts = partition_counts(topology, {"topic-a": 8, "topic-u": 3})
    assert counts["shop-k-repartition"] == 3


@pytest.mark.parametrize("kind", ["inner", "left"])
def test_records_without_a_key_go_through_the_topic_only_if_a_left_join_follows(kind: str) -> None:
    topology = build_topology(
        app(key_by("k", "a"), {"name": "w", "from": "k", "where": "n > 1"}, join("w", kind), tables=["u"])
    )
    sink = topology.node("k-repartition")
    assert isinstance(sink, RepartitionSinkNode)
    assert sink.keeps_null_keys is (kind == "left")


def streams(from_: str, other: str, kind: str = "inner", **more: Any) -> dict[str, Any]:
    join = {"stream": other, "type": kind, "within": "5m", "select": {"m": f"{other}.n"}, **more}
    return {"name": "j", "from": from_, "join": join}


def test_two_streams_that_are_joined_are_one_sub_topology_with_a_store_for_each() -> None:
    topology = build_topology(app(streams("a", "b", within={"before": "5m", "after": "1m"}), sources=["a", "b"]))
    (sub,) = topology.subtopologies
    node, path = topology.node("j"), "spec.topology.steps[0]"
    assert node == StreamJoinNode("j", "a", "b", "b", "inner", 300_000, 60_000, 0, (("m", "b.n"),), path)
    kept = Windowing(360_000)
    assert sub.stores == (
        StoreSpec("j-this-join-store", "join", "shop-j-this-join-store-changelog", False, "j", kept),
        StoreSpec("j-other-join-store", "join", "shop-j-other-join-store-changelog", False, "j", kept),
    )
    assert "j" not in topology.tables
    assert copartitioned(topology) == (("topic-a", "topic-b"),)
    with pytest.raises(TopologyException, match=r"joined together.*topic-a has 2, topic-b has 3"):
        partition_counts(topology, {"topic-a": 2, "topic-b": 3})


@pytest.mark.parametrize("kind", ["left", "outer"])
def test_a_join_that_passes_on_what_meets_nobody_keeps_it_in_a_store_more(kind: str) -> None:
    application = app(streams("a", "b", kind, grace="1m"), sources=["a", "b"])
    topology = build_topology(application)
    store = topology.store("j-shared-join-store")[1]
    assert (store.kind, store.windowing) == ("unjoined", None)
    assert topology.store("j-this-join-store")[1].windowing == Windowing(660_000)
    topics = {
        each.name: each.config_dict
        for each in internal_topics(topology, application.spec, {"topic-a": 2, "topic-b": 2})
    }
    assert topics["shop-j-shared-join-store-changelog"]["cleanup.policy"] == "compact"
    kept = topics["shop-j-other-join-store-changelog"]
    assert (kept["cleanup.policy"], kept["retention.ms"]) == ("compact,delete", str(660_000 + 86_400_000))


def test_a_dedupe_remembers_ids_for_the_time_both_ways_and_repartitions_with_null_keys() -> None:
    application = app(key_by("k", "a"), {"name": "o", "from": "k", "dedupe": {"within": "5m", "by": "n"}})
    topology = build_topology(application)
    sub = topology.subtopologies[1]
    assert topology.node("o") == DedupeNode("o", "k-repartition-source", "n", 300_000, "spec.topology.steps[1]")
    kept = Windowing(600_001)
    assert sub.stores == (StoreSpec("o-dedupe-store", "dedupe", "shop-o-dedupe-store-changelog", False, "o", kept),)
    assert not sub.stores[0].is_queryable
    sink = topology.node("k-repartition")
    assert isinstance(sink, RepartitionSinkNode)
    assert sink.keeps_null_keys, "a record without an id is passed on"
    (_, changelog) = internal_topics(topology, application.spec, {"topic-a": 2, "shop-k-repartition": 2})
    settings = changelog.config_dict
    assert (settings["cleanup.policy"], settings["retention.ms"]) == ("compact,delete", str(600_001 + 86_400_000))


def test_topics_that_are_deduped_together_need_partitions_of_one_number() -> None:
    steps = [{"name": "m", "merge": ["a", "b"]}, {"name": "o", "from": "m", "dedupe": {"within": "5m"}}]
    assert copartitioned(build_topology(app(*steps, sources=["a", "b"]))) == (("topic-a", "topic-b"),)


@pytest.mark.parametrize("kind", ["inner", "left", "outer"])
def test_streams_with_other_keys_meet_behind_repartition_topics_of_one_size(kind: str) -> None:
    topology = build_topology(app(key_by("k", "a"), key_by("l", "b"), streams("k", "l", kind), sources=["a", "b"]))
    assert [sub.source_topics for sub in topology.subtopologies] == [
        ("topic-a",),
        ("topic-b",),
        ("shop-k-repartition", "shop-l-repartition"),
    ]
    counts = partition_counts(topology, {"topic-a": 8, "topic-b": 3})
    assert counts["shop-k-repartition"] == counts["shop-l-repartition"] == 8
    sinks = [topology.node(f"{name}-repartition") for name in ("k", "l")]
    assert [isinstance(each, RepartitionSinkNode) and each.keeps_null_keys for each in sinks] == [kind != "inner"] * 2


def test_the_results_of_a_join_of_streams_have_one_order_whatever_they_come_from() -> None:
    steps = [{"name": "w", "from": "j", "where": "m > 1"}, count("c", "w")]
    explode = {"name": "e", "from": "a", "flatMap": {"explode": "array(1)", "as": "x"}}
    topology = build_topology(app(explode, streams("e", "b"), *steps, sources=["a", "b"]))
    assert topology.sources_of("c") == {"j"}
    assert not topology.flat_mapped("c")
    assert topology.flat_mapped("e")


def test_sinks_of_one_topic_have_names_of_their_own() -> None:
    step = {"name": "sink-out", "from": "a", "where": "true"}
    sinks = [{"from": "a", "topic": "out"}, {"from": "sink-out", "topic": "out"}]
    topology = build_topology(app(step, sinks=sinks))
    assert [node.name for node in topology.nodes if isinstance(node, SinkNode)] == ["sink-out-2", "sink-out-3"]
    assert topology.sink_topics == ("out",)


def test_names_that_the_topology_does_not_have_are_refused() -> None:
    topology = build_topology(app(count("c", "a")))
    with pytest.raises(TopologyException, match="no node 'x'; it has a, c"):
        topology.node("x")
    with pytest.raises(UnknownStateStoreException, match="no store 'x'; it has c-store"):
        topology.store("x")


def test_an_application_that_nobody_checked_is_refused_as_well() -> None:
    for steps, reason in (
        ([{"name": "s", "from": "x", "where": "true"}], "no source and no step"),
        ([{"name": "s", "from": "s", "where": "true"}], "in a circle: s"),
        ([{"name": "s", "from": "a", "aggregate": {"n": "n"}, "store": "n"}], "aggregate.n"),
    ):
        document = app().model_dump(mode="json")
        document["spec"]["topology"]["steps"] = steps
        with pytest.raises(TopologyException, match=reason):
            build_topology(StreamsApplication.model_validate(document))


def test_task_ids_print_as_kafka_streams_does_and_read_back() -> None:
    assert str(TaskId(0, 1)) == "0_1"
    assert TaskId.parse("12_345") == TaskId(12, 345)
    assert TaskId(0, 9) < TaskId(0, 10) < TaskId(1, 0)
    for text in ("", "1", "1_", "_1", "a_b", "1_2_3", "01_2", "-1_2", " 1_2"):
        with pytest.raises(ValueError, match="is not a task id"):
            TaskId.parse(text)


def test_a_repartition_topic_has_as_many_partitions_as_the_topics_that_its_records_come_from() -> None:
    steps = (
        {"name": "m", "merge": ["a", "b"]},
        key_by("k1", "m"),
        count("c1", "k1"),
        key_by("k2", "k1"),
        count("c2", "k2"),
    )
    topology = build_topology(app(*steps, sources=("a", "b")))
    counts = partition_counts(topology, {"topic-a": 5, "topic-b": 5, "unrelated": 99})
    assert counts == {"topic-a": 5, "topic-b": 5, "shop-k1-repartition": 5, "shop-k2-repartition": 5}
    assert len(tasks(topology, counts)) == 15


def test_a_repartition_topic_follows_the_users_topic_that_it_meets() -> None:
    steps = (key_by("k", "a"), {"name": "m", "merge": ["b", "k"]}, count("c", "m"), key_by("l", "m"), count("d", "l"))
    topology = build_topology(app(*steps, sources=("a", "b")))
    assert copartitioned(topology) == (("shop-k-repartition", "topic-b"),)
    counts = partition_counts(topology, {"topic-a": 8, "topic-b": 2})
    assert counts["shop-k-repartition"] == 2
    assert counts["shop-l-repartition"] == 2


def test_repartition_topics_that_meet_get_the_larger_count() -> None:
    steps = (key_by("k", "a"), key_by("l", "b"), {"name": "m", "merge": ["k", "l"]}, count("c", "m"))
    topology = build_topology(app(*steps, sources=("a", "b")))
    counts = partition_counts(topology, {"topic-a": 2, "topic-b": 6})
    assert counts["shop-k-repartition"] == counts["shop-l-repartition"] == 6


def test_users_topics_that_meet_in_a_store_must_agree() -> None:
    topology = build_topology(app({"name": "m", "merge": ["a", "b"]}, count("c", "m"), sources=("a", "b")))
    assert partition_counts(topology, {"topic-a": 2, "topic-b": 2}) == {"topic-a": 2, "topic-b": 2}
    with pytest.raises(TopologyException, match="topic-a has 2, topic-b has 3"):
        partition_counts(topology, {"topic-a": 2, "topic-b": 3})


def test_streams_that_are_only_merged_must_agree_too() -> None:
    merged = {"name": "m", "merge": ["a", "b"]}
    topology = build_topology(app(merged, sources=("a", "b"), sinks=[{"from": "m", "topic": "o"}]))
    counts = partition_counts(topology, {"topic-a": 3, "topic-b": 3})
    assert tasks(topology, counts) == (TaskId(0, 0), TaskId(0, 1), TaskId(0, 2))
    said = r"merged.* need the same number of partitions: topic-a has 2, topic-b has 3\..* put a repartition before"
    with pytest.raises(TopologyException, match=said):
        partition_counts(topology, {"topic-a": 2, "topic-b": 3})


def test_a_repartition_before_a_merge_gives_it_the_number_of_the_other_topic() -> None:
    steps = ({"name": "s", "from": "a", "repartition": {}}, {"name": "m", "merge": ["s", "b"]})
    topology = build_topology(app(*steps, sources=("a", "b"), sinks=[{"from": "m", "topic": "o"}]))
    counts = partition_counts(topology, {"topic-a": 2, "topic-b": 5})
    assert counts == {"topic-a": 2, "topic-b": 5, "shop-s-repartition": 5}


@pytest.mark.parametrize("known", [{}, {"topic-a": 0}])
def test_an_unknown_count_is_refused_by_the_topics_name(known: dict[str, int]) -> None:
    with pytest.raises(TopologyException, match="'topic-a' is not known"):
        partition_counts(build_topology(app(count("c", "a"))), known)


def test_internal_topics_are_complete_and_the_nearest_property_wins() -> None:
    internal = {
        "replicationFactor": 3,
        "config": {"segment.bytes": 1, "segment.ms": 2},
        "overrides": {"c-store-changelog": {"segment.ms": 3}},
    }
    accepted = app(key_by("k", "a"), count("c", "k"), internalTopics=internal)
    topology = build_topology(accepted)
    repartition, changelog = internal_topics(topology, accepted.spec, partition_counts(topology, {"topic-a": 4}))
    assert (repartition.name, repartition.kind, repartition.partitions) == ("shop-k-repartition", "repartition", 4)
    assert repartition.config_dict == {
        "cleanup.policy": "delete",
        **OF_TIMES,
        "retention.ms": "-1",
        "segment.bytes": "1",
        "segment.ms": "2",
    }
    assert (changelog.name, changelog.kind, changelog.partitions) == ("shop-c-store-changelog", "changelog", 4)
    assert changelog.config_dict == {
        "cleanup.policy": "compact",
        **OF_TIMES,
        "segment.bytes": "1",
        "segment.ms": "3",
    }
    assert changelog.replication_factor == 3


def test_the_flights_example_has_the_two_stores_that_it_is_about() -> None:
    topology = build_topology(load_application(EXAMPLES / "flights.yaml"))
    assert [store.name for store in topology.stores] == ["by-carrier", "by-origin"]
    assert topology.repartition_topics == ("flights-origin-repartition",)
    assert topology.sink_topics == ("carrier-totals", "origin-totals")


def stored(kind: StoreKind, windowing: Windowing | None) -> StoreSpec:
    return StoreSpec("minutes", kind, "shop-minutes-changelog", False, "minutes", windowing)


@pytest.mark.parametrize(
    ("kind", "windowing"),
    [
        ("key-value", Windowing(60_000)),
        ("window", None),
        ("window", Windowing(60_000)),
        ("session", None),
        ("session", Windowing(60_000, 1_000)),
    ],
)
def test_a_store_has_the_windowing_that_its_kind_needs(kind: StoreKind, windowing: Windowing | None) -> None:
    with pytest.raises(TopologyException, match=f"store 'minutes' of kind {kind} can't be kept by"):
        stored(kind, windowing)


@pytest.mark.parametrize(("retention", "size"), [(0, None), (59_999, 60_000), (1_000, 0)])
def test_windows_that_would_expire_before_they_end_are_refused(retention: int, size: int | None) -> None:
    with pytest.raises(TopologyException, match="before they end"):
        Windowing(retention, size)


@pytest.mark.parametrize(("retention", "interval"), [(1, 60_000), (120_000, 60_000), (120_002, 60_001)])
def test_a_segment_is_half_of_the_retention_and_a_minute_at_least(retention: int, interval: int) -> None:
    assert Windowing(retention).segment_interval == interval


@pytest.mark.parametrize("spec", [stored("window", Windowing(90_000, 60_000)), stored("session", Windowing(90_000))])
def test_a_windowed_changelog_is_compacted_and_keeps_windows_a_day_beyond_their_retention(spec: StoreSpec) -> None:
    accepted = app(count("sums", "a"))
    topology = build_topology(accepted)
    (sub,) = topology.subtopologies
    windowed = replace(topology, subtopologies=(replace(sub, stores=(*sub.stores, spec)),))
    key_value, minutes = internal_topics(windowed, accepted.spec, {"topic-a": 4})
    assert minutes.config_dict == {
        "cleanup.policy": "compact,delete",
        **OF_TIMES,
        "retention.ms": str(90_000 + 24 * 60 * 60 * 1000),
    }
    assert (minutes.kind, minutes.partitions) == ("changelog", 4)
    assert key_value.config_dict == {"cleanup.policy": "compact", **OF_TIMES}
