"""Joins and filters of tables in the plan: what is a table, what needs old rows, and what has to lie together."""

from __future__ import annotations

from typing import Any

import pytest
from pipeline_kit import source, topology_of

from streams_runtime.api import StreamsApplication, parse_application
from streams_runtime.errors import TopologyException
from streams_runtime.topology.changes.compare import changes
from streams_runtime.topology.column_types import columns_of
from streams_runtime.topology.declared.build_topology import build_topology
from streams_runtime.topology.describe import as_json, as_mermaid, as_text
from streams_runtime.topology.nodes.table_nodes import TableJoinNode
from streams_runtime.topology.partition_counts import copartitioned, internal_topic_names
from streams_runtime.topology.plan import Topology
from streams_runtime.topology.table_parts import table_parts

FILTER = {"where": "v > 1"}
SELECT = {"select": {"v": "v + 1"}}


def table(name: str) -> dict[str, Any]:
    return source(schema="v BIGINT") | {"name": name, "topic": f"topic-{name}", "table": {"store": f"{name}-store"}}


def step(name: str, from_: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "from": from_, **fields}


def join(name: str, from_: str, other: str, **more: Any) -> dict[str, Any]:
    return step(name, from_, join={"table": other, "select": {"w": f"{other}.v"}, **more})


def topology(*steps: dict[str, Any], sinks: str = "", tables: str = "a b c d") -> Topology:
    written = [{"from": name, "topic": f"out-{name}"} for name in sinks.split()]
    return topology_of([table(name) for name in tables.split()], steps, written)


MINUTES: dict[str, Any] = {"window": {"tumbling": {"size": "1m"}}}
COUNTED: dict[str, Any] = {"aggregate": {"v": "count(*)"}, "store": "n"}


def parts(plan: Topology) -> list[tuple[list[str], list[str], set[str], list[str]]]:
    """Each part's sources, steps, what needs old rows, and sinks, by name."""
    found = [part for sub in plan.subtopologies for part in table_parts(sub)]
    return [
        (
            [node.name for node in part.sources],
            [node.name for node in part.steps],
            set(part.kept),
            [node.name for node in part.sinks],
        )
        for part in found
    ]


def test_a_join_of_tables_is_a_table_in_one_sub_topology_with_both() -> None:
    plan = topology(join("j", "a", "b", type="outer"), sinks="j", tables="a b")
    (sub,) = plan.subtopologies
    assert plan.node("j") == TableJoinNode("j", "a", "b", "outer", (("w", "b.v"),), "spec.topology.steps[0]")
    assert plan.tables == {"a", "b", "j"}
    assert copartitioned(plan) == (("topic-a", "topic-b"),)
    assert internal_topic_names(plan) == ()
    assert [column.name for column in columns_of(plan)["j"] or ()] == ["v", "w"]
    assert sub.source_topics == ("topic-a", "topic-b")


def test_steps_over_selects_alone_need_no_old_rows() -> None:
    assert parts(topology(step("s", "a", **SELECT), sinks="a s", tables="a")) == []


def test_a_part_has_what_joins_bring_together_and_the_sinks_that_need_old_rows() -> None:
    steps = (
        step("s", "a", **SELECT),
        step("f", "b", **FILTER),
        join("j", "s", "f"),
        step("t", "j", **SELECT),
        step("g", "c", **FILTER),
        step("u", "d", **SELECT),
    )
    assert parts(topology(*steps, sinks="a s f t g u")) == [
        (["a", "b"], ["s", "f", "j", "t"], {"f", "j", "t"}, ["sink-out-f", "sink-out-t"]),
        (["c"], ["g"], {"g"}, ["sink-out-g"]),
    ]


def test_joins_that_share_a_table_are_one_part() -> None:
    steps = (join("j", "a", "b"), join("k", "c", "d"), join("l", "b", "c"))
    ((sources, names, _, _),) = parts(topology(*steps, sinks="l"))
    assert (sources, names) == (["a", "b", "c", "d"], ["j", "k", "l"])


def test_what_follows_an_aggregate_is_in_no_part() -> None:
    steps = [step("n", "in", **COUNTED), step("f", "n", **FILTER)]
    assert parts(topology_of([source(schema="v BIGINT")], steps, [{"from": "f", "topic": "out"}])) == []


@pytest.mark.parametrize(
    ("steps", "reason"),
    [
        (
            [join("j", "a", "a"), step("g", "j", groupBy="cast(v as string)", aggregate={"n": "count(*)"}, store="g")],
            "rows of a meet themselves in 'j'",
        ),
        (
            [join("j", "a", "n"), step("n", "in", **COUNTED, window={"tumbling": {"size": "1m"}})],
            "the sides are records and windows of 60000 ms",
        ),
    ],
)
def test_a_plan_that_nobody_checked_is_refused_too(steps: list[Any], reason: str) -> None:
    spec = {"topology": {"sources": [table("a"), source(schema="v BIGINT")], "steps": [], "sinks": []}}
    document = parse_application(
        {
            "apiVersion": "streamsoperator.io/v1alpha1",
            "kind": "StreamsApplication",
            "metadata": {"name": "app"},
            "spec": spec,
        }
    ).model_dump(mode="json", by_alias=True)
    document["spec"]["topology"]["steps"] = steps
    with pytest.raises(TopologyException, match=reason):
        build_topology(StreamsApplication.model_validate(document))


def test_a_drawing_says_what_is_joined_and_which_stores_it_asks() -> None:
    plan = topology(step("f", "b", **FILTER), join("j", "a", "f", type="left"), sinks="j", tables="a b")
    found = {node["name"]: node for sub in as_json(plan)["subtopologies"] for node in sub["nodes"]}
    assert found["j"] == {
        "name": "j",
        "type": "table-join",
        "does": "left join of tables with f: w",
        "topics": [],
        "stores": ["a-store", "b-store"],
        "from": ["a", "f"],
        "to": ["sink-out-j"],
    }
    assert "Processor: j (stores: [a-store, b-store])" in as_text(plan)
    assert "left join of tables with f" in as_mermaid(plan)


def test_a_join_that_is_added_to_tables_that_are_there_moves_nothing_but_their_tasks() -> None:
    old, new = topology(sinks="a b", tables="a b"), topology(join("j", "a", "b"), sinks="a b j", tables="a b")
    found = changes(old, new)
    assert [change.where for change in found.items] == ["spec.topology.sources[1]"]
    assert "sub-topology 1 and is in sub-topology 0" in found.items[0].what
