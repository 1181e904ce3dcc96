"""What holds for every topology that can be declared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from streams_runtime.api import StreamsApplication, parse_application
from streams_runtime.errors import TopologyException
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.tasks.assignment import complete_tasks
from streams_runtime.topology.declared.build_topology import build_topology
from streams_runtime.topology.describe import as_json, as_mermaid, as_text
from streams_runtime.topology.nodes.aggregate_node import AggregateNode
from streams_runtime.topology.nodes.source_and_sink_nodes import RepartitionSinkNode, RepartitionSourceNode, SourceNode
from streams_runtime.topology.partition_counts import copartitioned, internal_topics, partition_counts, tasks
from streams_runtime.topology.plan import SubTopology, TaskId, Topology

KEYED = {"key": {"format": "string"}, "value": {"format": "json", "schema": "k STRING, n INT"}}


@st.composite
def declared(draw: st.DrawFn) -> dict[str, Any]:
    """Sources, steps and sinks of a random valid topology, the steps in random order."""
    sources = [{"name": f"a{i}", "topic": f"t{i}", **KEYED} for i in range(draw(st.integers(1, 3)))]
    streams = [source["name"] for source in sources]
    tables: list[str] = []
    steps: list[dict[str, Any]] = []
    for i in range(draw(st.integers(0, 8))):
        name = f"s{i}"
        kind = draw(st.sampled_from(["where", "keyBy", "merge", "aggregate", "after"]))
        if kind == "merge" and len(streams) > 1:
            inputs = draw(st.lists(st.sampled_from(streams), min_size=2, max_size=3, unique=True))
            steps.append({"name": name, "merge": inputs})
            streams.append(name)
        elif kind == "aggregate":
            from_ = draw(st.sampled_from(streams))
            steps.append({"name": name, "from": from_, "aggregate": {"n": "count(*)"}, "store": f"{name}-store"})
            tables.append(name)
        elif kind == "after" and tables:
            steps.append({"name": name, "from": draw(st.sampled_from(tables)), "where": "n > 1"})
            tables.append(name)
        elif kind == "keyBy":
            steps.append({"name": name, "from": draw(st.sampled_from(streams)), "keyBy": "k"})
            streams.append(name)
        else:
            steps.append({"name": name, "from": draw(st.sampled_from(streams)), "where": "n > 1"})
            streams.append(name)
    ends = draw(st.lists(st.sampled_from(streams + tables), max_size=3))
    sinks = [{"from": name, "topic": f"out{draw(st.integers(0, 1))}"} for name in ends]
    return {"sources": sources, "steps": draw(st.permutations(steps)), "sinks": sinks}


def document(topology: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "streamsoperator.io/v1alpha1",
        "kind": "StreamsApplication",
        "metadata": {"name": "app"},
        "spec": {"topology": topology},
    }


def accepted(topology: dict[str, Any]) -> StreamsApplication:
    # Without the checks of parse_application, which would take most of the time; one test makes them.
    return StreamsApplication.model_validate(document(topology))


def plan(topology: dict[str, Any]) -> Topology:
    return build_topology(accepted(topology))


def reader_of(topology: Topology, topic: str) -> SubTopology:
    """The one sub-topology that reads a topic."""
    (reader,) = (sub for sub in topology.subtopologies if topic in sub.source_topics)
    return reader


def feeds(topology: Topology) -> set[tuple[int, int]]:
    """(writer, reader) of every repartition topic."""
    return {
        (sub.id, reader_of(topology, topic).id) for sub in topology.subtopologies for topic in sub.repartition_sinks
    }


def reachable(edges: set[tuple[int, int]], start: int) -> set[int]:
    found: set[int] = set()
    waiting = [start]
    while waiting:
        here = waiting.pop()
        for first, second in edges:
            if first == here and second not in found:
                found.add(second)
                waiting.append(second)
    return found


@settings(max_examples=examples(40))
@given(declared())
def test_these_topologies_are_valid_applications(spec: dict[str, Any]) -> None:
    assert parse_application(document(spec)) == accepted(spec)


@settings(max_examples=examples(30))
@given(declared())
def test_ids_count_from_zero_in_order(spec: dict[str, Any]) -> None:
    ids = [sub.id for sub in plan(spec).subtopologies]
    assert ids == list(range(len(ids)))


@settings(max_examples=examples(30))
@given(declared())
def test_every_source_and_step_is_in_exactly_one_place(spec: dict[str, Any]) -> None:
    topology = plan(spec)
    found = Counter(node.name for sub in topology.subtopologies for node in sub.nodes)
    assert set(found.values()) == {1}
    assert {each["name"] for each in (*spec["sources"], *spec["steps"])} <= set(found)
    assert len(topology.nodes) == len(found)


@settings(max_examples=examples(30))
@given(declared())
def test_a_sub_topology_is_whole_and_connected(spec: dict[str, Any]) -> None:
    for sub in plan(spec).subtopologies:
        inside = {node.name for node in sub.nodes}
        joined = {sub.nodes[0].name}
        for _ in sub.nodes:
            for node in sub.nodes:
                family = {node.name, *node.inputs}
                assert family <= inside
                if family & joined:
                    joined |= family
        assert joined == inside


@settings(max_examples=examples(30))
@given(declared())
def test_every_node_comes_after_what_it_needs(spec: dict[str, Any]) -> None:
    topology = plan(spec)
    for sub in topology.subtopologies:
        before: set[str] = set()
        for node in sub.nodes:
            assert set(node.inputs) <= before
            before.add(node.name)
    seen: set[str] = set()
    for node in topology.nodes:
        assert set(node.needs) <= seen
        seen.add(node.name)


@settings(max_examples=examples(30))
@given(declared())
def test_upstream_has_the_smaller_id_unless_both_feed_each_other(spec: dict[str, Any]) -> None:
    edges = feeds(plan(spec))
    for writer, reader in edges:
        assert writer <= reader or writer in reachable(edges, reader)


@settings(max_examples=examples(30))
@given(declared())
def test_state_is_never_reached_by_a_new_key_without_a_repartition_topic(spec: dict[str, Any]) -> None:
    topology = plan(spec)
    rekeyed = {step["name"] for step in spec["steps"] if "keyBy" in step}

    def unmoved(name: str) -> bool:
        return name in rekeyed or any(unmoved(each) for each in topology.node(name).inputs)

    assert not [node.name for node in topology.nodes if isinstance(node, AggregateNode) and unmoved(node.name)]


@settings(max_examples=examples(30))
@given(declared())
def test_a_repartition_topic_is_written_once_read_once_and_leads_to_state(spec: dict[str, Any]) -> None:
    topology = plan(spec)
    written = [node.topic for node in topology.nodes if isinstance(node, RepartitionSinkNode)]
    read = [node.topic for node in topology.nodes if isinstance(node, RepartitionSourceNode)]
    assert sorted(written) == sorted(read) == sorted(set(written))
    for topic in read:
        assert reader_of(topology, topic).stores


@settings(max_examples=examples(30))
@given(declared(), st.lists(st.integers(1, 9), min_size=3, max_size=3))
def test_topics_that_meet_in_a_store_have_equal_counts_and_tasks_follow(spec: dict[str, Any], sizes: list[int]) -> None:
    application = accepted(spec)
    topology = build_topology(application)
    given_counts = {f"t{i}": size for i, size in enumerate(sizes)}
    try:
        counts = partition_counts(topology, given_counts)
    except TopologyException:
        groups = [
            [given_counts[topic] for topic in group if topic in given_counts] for group in copartitioned(topology)
        ]
        assert any(len(set(group)) > 1 for group in groups)
        return
    assert set(counts) == {*topology.source_topics, *topology.repartition_topics}
    assert all(1 <= count <= max(sizes) for count in counts.values())
    for group in copartitioned(topology):
        assert len({counts[topic] for topic in group}) == 1
    found = tasks(topology, counts)
    assert sorted(found) == list(found)
    assert len(set(found)) == len(found)
    for sub in topology.subtopologies:
        here = max(counts[topic] for topic in sub.source_topics)
        assert [task for task in found if task.subtopology == sub.id] == [TaskId(sub.id, i) for i in range(here)]
    for topic in internal_topics(topology, application.spec, counts):
        if topic.kind == "repartition":
            assert topic.partitions == counts[topic.name]
        else:
            owner = next(sub for sub in topology.subtopologies for s in sub.stores if s.changelog_topic == topic.name)
            assert topic.partitions == len([task for task in found if task.subtopology == owner.id])


def ranges(counts: Mapping[str, int], members: int) -> list[frozenset[TopicPartition]]:
    """What the brokers' range assignor gives each member: of each topic by itself, the larger shares first."""
    given: list[set[TopicPartition]] = [set() for _ in range(members)]
    for topic, count in counts.items():
        share, more = divmod(count, members)
        owners = [member for member in range(members) for _ in range(share + (member < more))]
        for partition, owner in enumerate(owners):
            given[owner].add(TopicPartition(topic, partition))
    return [frozenset(each) for each in given]


@settings(max_examples=examples(60))
@given(declared(), st.lists(st.integers(1, 9), min_size=3, max_size=3), st.integers(1, 5))
def test_every_task_has_all_its_inputs_at_one_member_or_the_counts_are_refused(
    spec: dict[str, Any], sizes: list[int], members: int
) -> None:
    topology = plan(spec)
    try:
        counts = partition_counts(topology, {f"t{i}": size for i, size in enumerate(sizes)})
    except TopologyException:
        groups = [{size for i, size in enumerate(sizes) if f"t{i}" in group} for group in copartitioned(topology)]
        assert any(len(group) > 1 for group in groups)
        return
    started = [task for assigned in ranges(counts, members) for task in complete_tasks(topology, assigned, counts)]
    assert sorted(started) == list(tasks(topology, counts))


def test_two_members_with_parts_of_topics_of_two_sizes_would_never_start_a_task() -> None:
    """Why topics that are merged need the same number of partitions."""
    merged = [{"name": "s", "merge": ["a0", "a1"]}]
    sources = [{"name": f"a{i}", "topic": f"t{i}", **KEYED} for i in (0, 1)]
    topology = plan({"sources": sources, "steps": merged, "sinks": [{"from": "s", "topic": "out0"}]})
    counts = {"t0": 4, "t1": 2}
    started = [task for assigned in ranges(counts, 2) for task in complete_tasks(topology, assigned, counts)]
    assert sorted(set(tasks(topology, counts)) - set(started)) == [TaskId(0, 1)]
    with pytest.raises(TopologyException, match="t0 has 4, t1 has 2"):
        partition_counts(topology, counts)


@settings(max_examples=examples(30))
@given(declared(), st.data())
def test_adding_a_step_never_renames_anothers_topics(spec: dict[str, Any], data: st.DataObject) -> None:
    before = plan(spec)
    streams = [source["name"] for source in spec["sources"]]
    extra = data.draw(
        st.sampled_from(
            [
                {"name": "new", "from": streams[0], "where": "true"},
                {"name": "new", "from": streams[0], "keyBy": "k"},
                {"name": "new", "from": streams[0], "aggregate": {"n": "count(*)"}, "store": "new"},
            ]
        )
    )
    place = data.draw(st.integers(0, len(spec["steps"])))
    steps = [*spec["steps"][:place], extra, *spec["steps"][place:]]
    after = plan({**spec, "steps": steps})

    def names(topology: Topology) -> dict[str, str]:
        stores = {f"store {store.name}": store.changelog_topic for store in topology.stores}
        moved = {node.origin: node.topic for node in topology.nodes if isinstance(node, RepartitionSourceNode)}
        return {**stores, **moved}

    assert {**names(after), **names(before)} == names(after)


@settings(max_examples=examples(30))
@given(declared())
def test_the_order_of_the_steps_in_the_file_changes_no_connection(spec: dict[str, Any]) -> None:
    turned = {**spec, "steps": list(reversed(spec["steps"]))}

    def groups(topology: Topology) -> set[frozenset[str]]:
        return {frozenset(node.name for node in sub.nodes) for sub in topology.subtopologies}

    assert groups(plan(spec)) == groups(plan(turned))


@settings(max_examples=examples(30))
@given(declared())
def test_every_description_shows_every_node(spec: dict[str, Any]) -> None:
    topology = plan(spec)
    text, drawing, values = as_text(topology), as_mermaid(topology), as_json(topology)
    shown = {node["name"]: node for sub in values["subtopologies"] for node in sub["nodes"]}
    for node in topology.nodes:
        assert f" {node.name} (" in text
        assert f'"{node.name}<br/>' in drawing
        assert shown[node.name]["from"] == list(node.inputs)
    assert drawing.count("subgraph") == len(topology.subtopologies)
    assert text.count("Source:") == sum(isinstance(n, SourceNode | RepartitionSourceNode) for n in topology.nodes)
