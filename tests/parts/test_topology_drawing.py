"""A topology as a picture."""

from __future__ import annotations

import itertools
import struct
from xml.etree import ElementTree

import pytest
from full_application import FULL

from streams_runtime.api import parse_application
from streams_runtime.cli.topology.drawing import draw
from streams_runtime.topology.declared.build_topology import build_topology
from streams_runtime.topology.plan import Topology

_SVG = "{http://www.w3.org/2000/svg}"


def topology(where: str = "AMOUNT > 0 and _key.id > 5") -> Topology:
    return build_topology(parse_application(FULL.replace("AMOUNT > 0 and _key.id > 5", where)))


def groups(plan: Topology, kind: str) -> dict[str, list[str]]:
    """The nodes, edges or clusters of the drawing: the lines of each by its title."""
    found = {}
    for group in ElementTree.fromstring(draw(plan, "svg")).iter(f"{_SVG}g"):
        if group.get("class") == kind:
            lines = ["".join(each.itertext()) for each in group.findall(f"{_SVG}text")]
            found[group.findtext(f"{_SVG}title", "")] = lines
    return found


def test_every_step_store_and_topic_is_drawn_once_with_what_it_does() -> None:
    plan = topology()
    nodes = groups(plan, "node")
    topics = {*plan.source_topics, *plan.repartition_topics, *plan.sink_topics}
    assert set(nodes) == {
        *(f"step {node.name}" for node in plan.nodes),
        *(f"store {store.name}" for store in plan.stores),
        *(f"topic {topic}" for topic in topics),
    }
    assert nodes["step paid"] == ["paid", "where AMOUNT > 0 and _key.id > 5; select", "user, cents"]
    assert nodes["store often"] == ["often", "window store", "orders_v2-often-changelog"]
    assert nodes["store users"] == ["users", "key-value store", "orders_v2-users-changelog"]
    assert nodes["topic orders_v2-by-user-repartition"] == ["orders_v2-by-user-repartition"]


def test_sub_topologies_are_boxes_with_their_numbers() -> None:
    plan = topology()
    assert len(plan.subtopologies) > 1
    assert groups(plan, "cluster") == {f"cluster_{sub.id}": [f"Sub-topology {sub.id}"] for sub in plan.subtopologies}


def test_records_flow_from_topic_to_topic() -> None:
    edges = set(groups(topology(), "edge"))
    way = ["topic orders", "step orders", "step paid", "step all", "step by-user", "step by-user-repartition"]
    way += ["topic orders_v2-by-user-repartition", "step by-user-repartition-source", "step totals", "step mean"]
    way += ["step sink-means", "topic means"]
    assert {f"{one}->{other}" for one, other in itertools.pairwise(way)} <= edges
    assert "step totals->store totals" in edges


@pytest.mark.parametrize("where", [r"user rlike '\\d\\n'", "user = '&lt;'", 'user <> "<b>"', "user = 'ß中'"])
def test_expressions_are_drawn_as_they_stand(where: str) -> None:
    written = where.replace("\\", "\\\\").replace('"', '\\"')
    assert groups(topology(written), "node")["step paid"][1].startswith(f"where {where}")


def test_a_png_is_large_enough_to_be_read() -> None:
    picture = draw(topology(), "png")
    assert picture.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", picture[16:24])
    assert width > 1000
    assert height > 300
