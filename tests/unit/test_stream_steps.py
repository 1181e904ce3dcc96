"""Steps that only streams have: what of them the plan, its drawings and the list of expressions show."""

from __future__ import annotations

from typing import Any

from refused_applications import ORDERS, application, step, total

from streams_runtime.api import Reading, StreamsApplication, parse_application, read_application
from streams_runtime.topology.declared.build_topology import build_topology
from streams_runtime.topology.describe import as_json, as_text
from streams_runtime.topology.nodes.stream_nodes import BranchNode, FlatMapNode, HeadersNode, PeekNode, SplitNode
from streams_runtime.topology.plan import Topology

LINES = {**ORDERS, "value": {"format": "json", "schema": "user STRING, lines ARRAY<STRUCT<item: STRING, n: INT>>"}}
EACH = step(name="each", flatMap={"explode": "lines", "as": "line"})


SIZED = step(
    name="sized",
    split=[{"name": "many", "where": "size(lines) > 9"}, {"name": "some", "where": "size(lines) > 0"}],
    default="none",
)


SEEN = step(name="seen", peek={"log": "user", "level": "debug", "atMost": 3, "metric": "lines", "value": "size(lines)"})


def read(*steps: Any) -> Reading:
    reading = read_application(application(*steps, sources=[LINES]))
    assert reading.mistakes == ()
    return reading


def accepted(*steps: Any, **more: Any) -> StreamsApplication:
    return parse_application(application(*steps, sources=[LINES], **more))


def planned(*steps: Any, **more: Any) -> Topology:
    return build_topology(accepted(*steps, **more))


def shown(topology: Topology, name: str) -> dict[str, Any]:
    """The node of this name as `streamsapp topology --output json` shows it."""
    nodes = [node for sub in as_json(topology)["subtopologies"] for node in sub["nodes"]]
    found: dict[str, Any] = next(node for node in nodes if node["name"] == name)
    return found


def test_a_flat_map_is_a_node_between_its_input_and_its_consumers() -> None:
    topology = planned(EACH, sinks=[{"from": "each", "topic": "lines"}])
    assert topology.node("each") == FlatMapNode("each", "orders", "lines", "line", "spec.topology.steps[0]")
    assert "Processor: each (stores: [])\n      --> sink-lines\n      <-- orders" in as_text(topology)
    node = shown(topology, "each")
    assert (node["type"], node["does"], node["topics"]) == ("flat-map", "flatMap lines as line", [])


def test_what_follows_a_flat_map_sees_the_element_beside_the_other_columns_and_the_metadata() -> None:
    selected = {"user": "user", "item": "line.item", "n": "line.n", "all": "size(lines)", "of": "_offset"}
    assert not read_application(application(EACH, step(from_="each", select=selected), sources=[LINES])).mistakes


def test_elements_that_only_spark_can_tell_the_type_of_are_not_judged_before() -> None:
    words = step(name="each", flatMap={"explode": "sequence(1, size(lines))", "as": "n"})
    after = step(from_="each", where="n.anything > 1")
    assert not read_application(application(words, after, sources=[LINES])).mistakes


def test_a_flat_map_with_a_new_key_behind_it_is_repartitioned_before_an_aggregate() -> None:
    topology = planned(EACH, step(name="by", from_="each", keyBy="line.item"), total(name="t", from_="by"))
    assert [[node.name for node in sub.nodes] for sub in topology.subtopologies] == [
        ["orders", "each", "by", "by-repartition"],
        ["by-repartition-source", "t"],
    ]


def test_the_expressions_of_such_steps_are_listed_with_their_fields() -> None:
    fields = [(field.path, field.kind, field.text) for field in read(EACH, SIZED, SEEN).sql]
    assert fields[1:] == [
        ("spec.topology.steps[0].flatMap.explode", "flatMap", "lines"),
        ("spec.topology.steps[1].split[0].where", "split", "size(lines) > 9"),
        ("spec.topology.steps[1].split[1].where", "split", "size(lines) > 0"),
        ("spec.topology.steps[2].peek.log", "peek", "user"),
        ("spec.topology.steps[2].peek.value", "peek", "size(lines)"),
    ]


def test_headers_are_a_node_that_keeps_the_columns() -> None:
    by_name = {"who": "user", "how-many": "size(lines)"}
    topology = planned(step(name="h", headers=by_name), step(name="x", from_="h", where="user is not null"))
    assert topology.node("h") == HeadersNode("h", "orders", tuple(by_name.items()), "spec.topology.steps[0]")
    assert (shown(topology, "h")["type"], shown(topology, "h")["does"]) == ("headers", "headers who, how-many")
    fields = [(field.path, field.kind, field.text) for field in read(step(name="h", headers=by_name)).sql]
    assert fields[1:] == [
        ("spec.topology.steps[0].headers.who", "headers", "user"),
        ("spec.topology.steps[0].headers.how-many", "headers", "size(lines)"),
    ]


def test_a_split_is_a_node_with_its_branches_as_consumers_the_default_last() -> None:
    topology = planned(SIZED, sinks=[{"from": "sized.none", "topic": "empty"}, {"from": "sized.many", "topic": "big"}])
    (sub,) = topology.subtopologies
    assert sub.nodes[1] == SplitNode(
        "sized", "orders", ("size(lines) > 9", "size(lines) > 0"), "spec.topology.steps[0]"
    )
    assert sub.consumers_of("sized") == (
        BranchNode("sized.many", "sized", 0, "size(lines) > 9"),
        BranchNode("sized.some", "sized", 1, "size(lines) > 0"),
        BranchNode("sized.none", "sized", 2, None),
    )
    assert "Processor: sized (stores: [])\n      --> sized.many, sized.some, sized.none" in as_text(topology)
    found = [(node["type"], node["does"]) for node in (shown(topology, f"sized{it}") for it in ("", ".some", ".none"))]
    assert found == [
        ("split", "split, the first that is true"),
        ("branch", "where size(lines) > 0"),
        ("branch", "the rest"),
    ]


def test_what_follows_a_branch_sees_the_columns_of_the_split_step() -> None:
    after = step(name="t", from_="sized.some", where="usr = 'x'")
    (mistake,) = read_application(application(SIZED, after, sources=[LINES])).mistakes
    assert (mistake.path, mistake.remedy) == ("spec.topology.steps[1].where", "did you mean 'user'?")


def test_a_new_key_is_repartitioned_also_where_state_follows_behind_a_branch() -> None:
    steps = (step(name="by", keyBy="user"), {**SIZED, "from": "by"}, total(name="t", from_="sized.none"))
    topology = planned(*steps)
    assert [[node.name for node in sub.nodes] for sub in topology.subtopologies] == [
        ["orders", "by", "by-repartition"],
        ["by-repartition-source", "sized", "sized.many", "sized.some", "sized.none", "t"],
    ]


def test_branches_of_one_split_meet_again_in_a_merge() -> None:
    topology = planned(SIZED, {"name": "m", "merge": ["sized.none", "sized.many"]}, total(name="t", from_="m"))
    assert [node.name for node in topology.subtopologies[0].nodes][-2:] == ["m", "t"]


def test_a_reunion_is_a_merge_in_which_records_of_one_source_meet_again() -> None:
    other = {**LINES, "name": "other", "topic": "other"}
    merges = [
        {"name": "again", "merge": ["sized.none", "sized.many"]},
        {"name": "far", "merge": ["other", "again"]},
        {"name": "both", "merge": ["far", "orders"]},
    ]
    topology = build_topology(parse_application(application(SIZED, *merges, sources=[LINES, other])))
    assert topology.reunions == {"again", "both"}
    assert topology.sources_of("far") == {"orders", "other"}
    moved = planned(SIZED, step(name="by", from_="sized.many", keyBy="user"), total(name="t", from_="by"))
    assert moved.sources_of("t") == {"by-repartition-source"}


def test_a_peek_is_a_node_and_an_end_where_nothing_follows_it() -> None:
    topology = planned(SEEN, step(name="x", from_="seen", where="user is not null"))
    expected = PeekNode("seen", "orders", "user", "debug", 3, "lines", "size(lines)", "spec.topology.steps[0]")
    assert topology.node("seen") == expected
    assert (shown(topology, "seen")["type"], shown(topology, "seen")["does"]) == ("peek", "log user; count lines")
    (sub,) = topology.subtopologies
    assert not sub.leads_out("seen")
    ended = planned(SEEN, step(name="x", from_="seen", where="true"), sinks=[{"from": "x", "topic": "out"}])
    assert ended.subtopologies[0].leads_out("seen")


def test_what_a_peek_does_not_say_has_its_defaults() -> None:
    topology = planned(step(name="seen", peek={"log": "user"}))
    assert topology.node("seen") == PeekNode("seen", "orders", "user", "info", 10, None, None, "spec.topology.steps[0]")
