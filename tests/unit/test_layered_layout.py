"""The drawing of a topology: nothing lies over anything else, every line begins and ends at its cards."""

from __future__ import annotations

from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import pytest
from full_application import FULL
from hypothesis import given
from hypothesis import strategies as st
from page_stage import ORDERS

from streams_runtime.api.reading.load import parse_application
from streams_runtime.query.page.layer_order import Hop, back_links, crossings, layers_of, ordered
from streams_runtime.query.page.layered_layout import Box, Gaps, Link, lay_out, spread
from streams_runtime.query.page.topology_document import topology_document
from streams_runtime.query.page.topology_picture import picture_of
from streams_runtime.topology.declared.build_topology import build_topology
from streams_runtime.topology.plan import Topology

EXAMPLES = Path(__file__).parents[2] / "examples"
GAPS = Gaps(20.0, 10.0)
NAMES = [f"n{number}" for number in range(12)]


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[Box], list[Link]]:
    """With cycles, loops, several links between two boxes, and boxes that nothing leads to."""
    names = NAMES[: draw(st.integers(0, len(NAMES)))]
    size = st.floats(1, 200)
    boxes = [Box(name, draw(size), draw(size)) for name in names]
    if not names:
        return boxes, []
    ends = st.tuples(st.sampled_from(names), st.sampled_from(names))
    return boxes, [Link(*pair) for pair in draw(st.lists(ends, max_size=24))]


@given(graphs())
def test_boxes_keep_their_distance_and_links_their_ends(graph: tuple[list[Box], list[Link]]) -> None:
    boxes, links = graph
    layout = lay_out(boxes, links, GAPS)
    sizes = {box.name: box for box in boxes}
    for one, other in combinations(boxes, 2):
        (m1, c1), (m2, c2) = layout.boxes[one.name], layout.boxes[other.name]
        apart = (
            max(m2 - m1 - one.length, m1 - m2 - other.length) >= GAPS.layers - 1e-6
            or max(c2 - c1 - one.breadth, c1 - c2 - other.breadth) >= GAPS.boxes - 1e-6
        )
        assert apart, (one, other)
    for number, (link, points) in enumerate(zip(links, layout.links, strict=True)):
        tail, head = layout.boxes[link.tail], layout.boxes[link.head]
        assert points[0] == (tail[0] + sizes[link.tail].length, tail[1] + sizes[link.tail].breadth / 2)
        assert points[-1] == (head[0], head[1] + sizes[link.head].breadth / 2)
        if number not in layout.back:
            assert all(one[0] <= other[0] for one, other in pairwise(points)), "forward"
    corners = [
        *layout.boxes.values(),
        *((m + sizes[n].length, c + sizes[n].breadth) for n, (m, c) in layout.boxes.items()),
    ]
    assert all(-1e-6 <= m <= layout.length + 1e-6 and -1e-6 <= c <= layout.breadth + 1e-6 for m, c in corners)
    assert lay_out(boxes, links, GAPS) == layout


@given(graphs())
def test_without_the_links_back_there_is_no_cycle(graph: tuple[list[Box], list[Link]]) -> None:
    boxes, links = graph
    names, pairs = [box.name for box in boxes], [(link.tail, link.head) for link in links]
    back = back_links(names, pairs)
    forward = [pair for number, pair in enumerate(pairs) if number not in back]
    layers = layers_of(names, forward)
    assert set(layers) == set(names)
    assert all(layers[tail] < layers[head] for tail, head in forward)
    # None is taken for one that leads back without need.
    for number in back:
        tail, head = pairs[number]
        reached, waiting = set[str](), [head]
        while waiting:
            here = waiting.pop()
            if here not in reached:
                reached.add(here)
                waiting += [to for start, to in pairs if start == here]
        assert tail in reached


def test_crossings_are_counted_and_taken_away() -> None:
    layers, hops = [["a", "b"], ["x", "y"]], [Hop("a", "y"), Hop("b", "x")]
    assert crossings(layers, hops) == 1
    assert crossings(ordered(layers, hops), hops) == 0


def test_lines_of_one_block_cross_no_other_where_they_leave_it() -> None:
    hops = [Hop("block", "first", 0.9), Hop("block", "second", 0.1)]
    assert ordered([["block"], ["first", "second"]], hops) == [["block"], ["second", "first"]]


@pytest.mark.parametrize("name", ["flights-enriched.yaml", "orders", "first.yaml", "weather-at-departure.yaml"])
def test_sinks_and_their_topics_stand_in_the_same_order(name: str) -> None:
    picture = picture_of(TOPOLOGIES[name], "right")
    at = {card["id"]: card["y"] for card in picture["cards"]}
    xs = {card["id"]: card["x"] for card in picture["cards"]}
    last = max(xs.values())
    outer = [
        (at[line["from"]], at[line["to"]])
        for line in picture["lines"]
        if line["to"].startswith("topic ") and xs[line["to"]] == last
    ]
    assert outer
    assert sorted(outer) == sorted(outer, key=lambda pair: pair[1])


@given(st.lists(st.tuples(st.floats(-500, 500), st.floats(0, 100)), max_size=8))
def test_spread_keeps_order_and_gap_and_moves_nothing_without_need(wanted: list[tuple[float, float]]) -> None:
    begins = spread([want for want, _ in wanted], [breadth for _, breadth in wanted], 5.0)
    for (_, breadth), here, following in zip(wanted, begins, begins[1:], strict=False):
        assert following - here >= breadth + 5.0 - 1e-6
    if all(b[0] - a[0] >= a[1] + 5.0 for a, b in pairwise(wanted)):
        assert begins == pytest.approx([want for want, _ in wanted])


def topologies() -> dict[str, Topology]:
    files = {file.name: file.read_text() for file in EXAMPLES.glob("*.yaml")}
    texts = files | {"orders": ORDERS, "full": FULL}
    return {name: build_topology(parse_application(text)) for name, text in texts.items()}


TOPOLOGIES = topologies()


@pytest.mark.parametrize("direction", ["right", "down"])
@pytest.mark.parametrize("name", TOPOLOGIES)
def test_a_topology_is_drawn_whole_and_nothing_lies_over_anything_else(name: str, direction: Any) -> None:
    topology = TOPOLOGIES[name]
    picture = picture_of(topology, direction)
    cards = {card["id"]: card for card in picture["cards"]}
    assert {f"step {node.name}" for node in topology.nodes} <= cards.keys()
    assert len(cards) == len(picture["cards"])
    for one, other in combinations(picture["cards"], 2):
        assert apart(one, other), (one, other)
    for one, other in combinations(picture["blocks"], 2):
        assert apart(one, other), (one, other)
    blocks = {block["id"]: block for block in picture["blocks"]}
    for sub in topology.every_subtopology:
        for node in sub.nodes:
            assert within(cards[f"step {node.name}"], blocks[sub.id])
    for card in cards.values():
        assert within(card, {"x": 0, "y": 0, **picture})
        if card["kind"] in ("topic", "repartition"):
            assert all(apart(card, block) for block in blocks.values())
    for line in picture["lines"]:
        assert touches(line["points"][0], cards[line["from"]]), line
        assert touches(line["points"][-1], cards[line["to"]]), line
    drawn = {(line["from"], line["to"]) for line in picture["lines"]}
    for sub in topology.every_subtopology:
        for node in sub.nodes:
            own = {each.name for each in sub.nodes}
            assert {(f"step {source}", f"step {node.name}") for source in node.inputs if source in own} <= drawn
            for written in node.written_topics:
                assert (f"step {node.name}", f"topic {written}") in drawn
            if node.read_topic is not None:
                assert (f"topic {node.read_topic}", f"step {node.name}") in drawn


def apart(one: dict[str, float], other: dict[str, float]) -> bool:
    return (
        one["x"] + one["width"] <= other["x"] + 0.2
        or other["x"] + other["width"] <= one["x"] + 0.2
        or one["y"] + one["height"] <= other["y"] + 0.2
        or other["y"] + other["height"] <= one["y"] + 0.2
    )


def within(card: dict[str, float], block: dict[str, float]) -> bool:
    return (
        block["x"] - 0.2 <= card["x"]
        and card["x"] + card["width"] <= block["x"] + block["width"] + 0.2
        and block["y"] - 0.2 <= card["y"]
        and card["y"] + card["height"] <= block["y"] + block["height"] + 0.2
    )


def touches(point: list[float], card: dict[str, float]) -> bool:
    x, y = point
    on_side = (
        min(abs(x - card["x"]), abs(x - card["x"] - card["width"])) < 0.2
        and card["y"] <= y <= card["y"] + card["height"]
    )
    on_end = (
        min(abs(y - card["y"]), abs(y - card["y"] - card["height"])) < 0.2
        and card["x"] <= x <= card["x"] + card["width"]
    )
    return on_side or on_end


def test_a_join_with_a_global_table_names_it_in_its_own_block() -> None:
    cards = {card["id"]: card for card in picture_of(TOPOLOGIES["orders"], "right")["cards"]}
    assert (cards["table titled"]["kind"], cards["table titled"]["name"]) == ("table", "countries")


def test_the_document_has_what_the_command_prints_and_both_pictures() -> None:
    document = topology_document(TOPOLOGIES["orders"])
    assert document["repartitionTopics"] == ["orders-by-user-repartition"]
    assert set(document["pictures"]) == {"right", "down"}
    assert [sub["id"] for sub in document["subtopologies"]] == [0, 1, 2]
