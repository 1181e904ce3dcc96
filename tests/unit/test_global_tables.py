"""Global tables in a resource and in its plan: what may stand where, and what they leave as it is."""

from __future__ import annotations

from typing import Any

import pytest

from streams_runtime.api import StreamsApplication, parse_application
from streams_runtime.errors import InvalidApplicationException, TopologyException
from streams_runtime.topology.changes.compare import changes
from streams_runtime.topology.declared.build_topology import build_topology
from streams_runtime.topology.describe import as_json, as_mermaid, as_text
from streams_runtime.topology.nodes.join_node import JoinNode
from streams_runtime.topology.nodes.source_and_sink_nodes import TableSourceNode
from streams_runtime.topology.partition_counts import copartitioned, internal_topics, partition_counts, tasks
from streams_runtime.topology.plan import Topology

FLIGHTS = {
    "name": "flights",
    "topic": "flights",
    "value": {"format": "json", "schema": "carrier STRING, distance BIGINT"},
}
AIRLINES = {
    "name": "airlines",
    "topic": "airlines",
    "key": {"format": "string"},
    "value": {"format": "json", "schema": "name STRING"},
    "table": {"store": "airlines", "global": True},
}
NAMED = {
    "name": "named",
    "from": "flights",
    "join": {"table": "airlines", "key": "carrier", "select": {"airline": "airlines.name"}},
}


def app(*steps: Any, sources: Any = (FLIGHTS, AIRLINES), sinks: Any = (), **spec: Any) -> StreamsApplication:
    topology = {"sources": list(sources), "steps": list(steps), "sinks": list(sinks)}
    return parse_application(
        {
            "apiVersion": "streamsoperator.io/v1alpha1",
            "kind": "StreamsApplication",
            "metadata": {"name": "shop"},
            "spec": {"topology": topology, **spec},
        }
    )


def plan(*steps: Any, sources: Any = (FLIGHTS, AIRLINES), sinks: Any = ()) -> Topology:
    return build_topology(app(*steps, sources=sources, sinks=sinks))


def joined(**fields: Any) -> dict[str, Any]:
    join = {name: value for name, value in {**NAMED["join"], **fields}.items() if value is not None}  # type: ignore[dict-item]
    return {**NAMED, "join": join}


def local(source: dict[str, Any]) -> dict[str, Any]:
    return {**source, "table": {"store": source["table"]["store"]}}


def mistakes(*steps: Any, **given: Any) -> dict[str, str]:
    with pytest.raises(InvalidApplicationException) as refused:
        app(*steps, **given)
    return {each.path.removeprefix("spec.topology."): each.found for each in refused.value.mistakes}


def test_a_global_table_has_a_sub_topology_without_tasks_and_moves_nobody_elses() -> None:
    topology = plan(NAMED, sinks=[{"from": "named", "topic": "out"}])
    assert [sub.source_topics for sub in topology.subtopologies] == [("flights",)]
    (table,) = topology.global_tables
    assert (table.id, table.source_topics) == (1, ("airlines",))
    (source,) = table.nodes
    assert isinstance(source, TableSourceNode)
    assert topology.store("airlines")[1].global_
    assert (topology.source_topics, topology.global_topics) == (("flights",), ("airlines",))
    assert [node.on for node in topology.nodes if isinstance(node, JoinNode)] == ["carrier"]
    assert [str(each) for each in tasks(topology, {"flights": 2})] == ["0_0", "0_1"]


def test_partitions_of_a_global_topic_decide_about_no_other_topic() -> None:
    count = {"name": "n", "from": "by", "aggregate": {"n": "count(*)"}, "store": "n"}
    topology = plan(NAMED, {"name": "by", "from": "named", "keyBy": "airline"}, count)
    assert copartitioned(topology) == ()
    counts = partition_counts(topology, {"flights": 3})
    assert counts == {"flights": 3, "shop-by-repartition": 3}
    assert {each.name: each.partitions for each in internal_topics(topology, app().spec, counts)} == {
        "shop-by-repartition": 3,
        "shop-n-changelog": 3,
    }


def test_sources_that_are_merged_before_a_global_join_need_one_number_whatever_the_table_has() -> None:
    others = {**FLIGHTS, "name": "others", "topic": "others"}
    merge = {"name": "all", "merge": ["flights", "others"]}
    topology = plan(merge, {**NAMED, "from": "all"}, sources=(FLIGHTS, others, AIRLINES))
    assert partition_counts(topology, {"flights": 3, "others": 3, "airlines": 7}) == {"flights": 3, "others": 3}
    with pytest.raises(TopologyException, match="flights has 3, others has 1"):
        partition_counts(topology, {"flights": 3, "others": 1})


def test_a_key_by_before_a_global_join_repartitions_nothing_unless_something_else_asks_for_it() -> None:
    key_by = {"name": "by", "from": "flights", "keyBy": "distance"}
    assert plan(key_by, {**NAMED, "from": "by"}).repartition_topics == ()
    count = {"name": "n", "from": "named", "aggregate": {"n": "count(*)"}, "store": "n"}
    topology = plan(key_by, {**NAMED, "from": "by"}, count)
    assert topology.repartition_topics == ("shop-by-repartition",)
    assert topology.node("by-repartition").keeps_null_keys  # type: ignore[union-attr]


def test_what_is_wrong_with_a_global_join_is_said_at_its_field() -> None:
    assert mistakes(joined(key=None)) == {"steps[0].join.key": "is missing; 'airlines' is a global table"}
    assert mistakes(joined(key="carier")) == {"steps[0].join.key": "unknown column 'carier'"}
    assert mistakes(joined(key="distance")) == {
        "steps[0].join.key": "'distance' is BIGINT, the key of 'airlines' STRING"
    }
    assert mistakes(joined(key="cast(carrier as date)")) == {
        "steps[0].join.key": "'cast(carrier as date)' is DATE, for which keys have no format"
    }
    assert mistakes(joined(type="outer")).keys() == {"steps[0].join.type"}
    assert mistakes(joined(select={"a": "airlines.nam"})).keys() == {"steps[0].join.select.a"}
    named = {**FLIGHTS, "value": {"format": "json", "schema": "carrier STRING, airlines STRING"}}
    assert mistakes(NAMED, sources=(named, AIRLINES)) == {
        "steps[0].join.table": "'flights' has a column called 'airlines', as the table is"
    }
    unkeyed = {name: value for name, value in AIRLINES.items() if name != "key"}
    assert mistakes(NAMED, sources=(FLIGHTS, unkeyed)).keys() == {"steps[0].join.table"}


def test_on_is_for_global_tables_only() -> None:
    found = mistakes(NAMED, sources=({**FLIGHTS, "key": {"format": "string"}}, local(AIRLINES)))
    assert found == {
        "steps[0].join.key": "an expression to look up in the table 'airlines', which is joined by the key"
    }
    keyed = {**FLIGHTS, "key": {"format": "string"}}
    other = {**keyed, "name": "others", "topic": "others"}
    join = {"stream": "others", "within": "1m", "key": "carrier", "select": {"d": "others.distance"}}
    found = mistakes({"name": "j", "from": "flights", "join": join}, sources=(keyed, other))
    assert found == {
        "steps[0].join.key": "a key of its own for a join of two streams, which lie together by their keys"
    }


@pytest.mark.parametrize(
    ("step", "field"),
    [
        ({"where": "name = 'x'"}, "from"),
        ({"select": {"a": "name"}}, "from"),
        ({"aggregate": {"n": "count(*)"}, "store": "n"}, "from"),
        ({"keyBy": "name"}, "from"),
        ({"join": {"table": "airlines", "key": "name", "select": {"a": "airlines.name"}}}, "from"),
    ],
)
def test_a_global_table_is_no_input_of_a_step(step: dict[str, Any], field: str) -> None:
    found = mistakes({"name": "s", "from": "airlines", **step})
    assert "'airlines' is a global table" in found[f"steps[0].{field}"]


def test_a_global_table_is_no_input_of_a_merge_or_a_sink_and_no_side_of_a_join_of_tables() -> None:
    found = mistakes({"name": "s", "merge": ["flights", "airlines"]}, sinks=[{"from": "airlines", "topic": "out"}])
    assert found.keys() == {"steps[0].merge[1]", "sinks[0].from"}
    planes = {**local(AIRLINES), "name": "planes", "topic": "planes", "table": {"store": "planes"}}
    join = {"name": "s", "from": "planes", "join": {"table": "airlines", "select": {"a": "airlines.name"}}}
    found = mistakes(join, sources=(FLIGHTS, planes, AIRLINES))
    assert "'airlines' is global" in found["steps[0].join.table"]


def test_global_tables_alone_are_no_application() -> None:
    assert mistakes(sources=(AIRLINES,)).keys() == {"sources"}


def test_records_of_a_global_table_may_be_left_out_and_not_sent_elsewhere() -> None:
    app(NAMED, processing={"onDeserializationError": "continue"})
    letters = {"deadLetter": {"topic": "letters"}}
    field = "spec.processing.onDeserializationError"
    assert mistakes(NAMED, processing={"onDeserializationError": letters}).keys() == {field}


def test_a_topology_shows_its_global_tables() -> None:
    topology = plan(NAMED, sinks=[{"from": "named", "topic": "out"}])
    text = as_text(topology)
    assert "Sub-topology: 1 for global store (will not generate tasks)" in text
    assert "Source: airlines (topics: [airlines], stores: [airlines])" in text
    document = as_json(topology)
    assert [sub["stores"][0]["global"] for sub in document["subtopologies"] if sub["stores"]] == [True]
    drawing = as_mermaid(topology)
    assert "join with airlines on carrier: airline" in drawing
    assert "Sub-topology 1, of every instance" in drawing
    assert drawing.count("-.->") == 1


def test_a_table_that_becomes_global_is_a_change_of_its_store_both_ways() -> None:
    keyed = {**FLIGHTS, "key": {"format": "string"}}
    by_key = joined(key=None)
    one = plan(by_key, sources=(keyed, local(AIRLINES)))
    other = plan(NAMED, sources=(keyed, AIRLINES))
    for before, after, words in ((one, other, "in whole by every instance"), (other, one, "in parts by tasks")):
        (change,) = changes(before, after).items
        assert (change.kind, change.where) == ("changed", "spec.topology.sources[1].table.global")
        assert change.what.endswith(f"is kept {words}")
    assert changes(other, plan(joined(key="upper(carrier)"), sources=(keyed, AIRLINES))).items == ()
    renamed = {**AIRLINES, "topic": "airlines-2"}
    (change,) = changes(other, plan(NAMED, sources=(keyed, renamed))).items
    assert change.what == "the changelog of the store airlines was airlines and is airlines-2"
