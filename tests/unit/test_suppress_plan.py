"""A toStream with suppress in files, in Python and in plans: its parts, its store, and what an upgrade does to it."""

from __future__ import annotations

from typing import Any

import pytest
from refused_applications import ORDERS, USERS, S, application, held_back, step, total

from streams_runtime.api import parse_application
from streams_runtime.builder import StreamsBuilder, json, tumbling
from streams_runtime.topology.changes.change import Change
from streams_runtime.topology.changes.compare import changes
from streams_runtime.topology.declared.build_topology import build_topology
from streams_runtime.topology.describe import as_json, as_text
from streams_runtime.topology.nodes.suppress_node import SuppressNode
from streams_runtime.topology.nodes.table_nodes import ToStreamNode
from streams_runtime.topology.partition_counts import internal_topics
from streams_runtime.topology.plan import Topology
from streams_runtime.topology.stage_order import stage_order, stages_of
from streams_runtime.topology.store_specs import StoreSpec
from streams_runtime.topology.table_parts import TablePart

BOUNDS = {"records": 100, "bytes": 5_000, "full": "fail"}
MINUTES: dict[str, Any] = {"window": {"tumbling": {"size": "1m"}}}
N = total(name="n")


def planned(*steps: Any, **fields: Any) -> Topology:
    return build_topology(parse_application(application(*steps, **fields)))


def test_it_is_a_to_stream_and_a_buffer_with_a_compacted_changelog() -> None:
    given = parse_application(application(held_back({"within": "1m", "buffer": BOUNDS})))
    topology = build_topology(given)
    (sub,) = (each for each in topology.subtopologies if "users" in each.source_topics)
    assert sub.nodes[1:] == (
        ToStreamNode("s-suppress", "users", S),
        SuppressNode("s", "s-suppress", 60_000, 100, 5_000, "fail", S),
    )
    spec = StoreSpec("s-suppress-store", "suppress", "shop-s-suppress-store-changelog", False, "s")
    assert sub.stores[1:] == (spec,)
    assert not spec.is_queryable
    counts = dict.fromkeys(topology.source_topics, 2)
    topics = {each.name: each.config_dict for each in internal_topics(topology, given.spec, counts)}
    assert topics["shop-s-suppress-store-changelog"]["cleanup.policy"] == "compact"


def test_without_bounds_anything_may_wait() -> None:
    assert planned(held_back({"within": "1m30s"})).node("s") == SuppressNode(
        "s", "s-suppress", 90_000, None, None, "emitEarly", S
    )


def test_bounds_without_a_word_about_a_full_buffer_let_the_oldest_go_on() -> None:
    node = planned(held_back({"within": "1m", "buffer": {"bytes": 7}})).node("s")
    assert isinstance(node, SuppressNode)
    assert (node.records, node.bytes, node.full) == (None, 7, "emitEarly")


def test_a_stage_begins_behind_it_after_every_change_of_its_table() -> None:
    behind = step(name="more", from_="s", where="n > 1")
    topology = planned(N, held_back({"within": "1m"}, from_="n"), behind, sinks=[{"from": "more", "topic": "out"}])
    (sub,) = (each for each in topology.subtopologies if "orders" in each.source_topics)
    order = [each.name if isinstance(each, TablePart) else each for each in stage_order(sub)]
    assert order == ["n", "s-suppress", "s"]
    assert stages_of(sub)["more"] == "s"


def test_drawings_say_how_long_changes_wait_and_how_many() -> None:
    topology = planned(held_back({"within": "1m", "buffer": BOUNDS}))
    assert "Processor: s (stores: [s-suppress-store])" in as_text(topology)
    nodes = [node for sub in as_json(topology)["subtopologies"] for node in sub["nodes"]]
    (node,) = (each for each in nodes if each["name"] == "s")
    assert node["type"] == "suppress"
    assert node["does"] == "the last change of each key within 60000 ms, at most 100 records and 5000 bytes: fail"
    (free,) = (each for each in planned(held_back({"within": "1m"})).nodes if each.name == "s")
    assert free.summary == "the last change of each key within 60000 ms"


def test_its_changelog_can_be_configured_and_its_sink_has_the_tables_columns() -> None:
    overrides = {"overrides": {"s-suppress-store-changelog": {"segment.ms": 1000}}}
    sinks = [{"from": "s", "topic": "out", "value": {"format": "json"}}]
    planned(held_back({"within": "1m"}), sinks=sinks, internalTopics=overrides)


def test_a_builder_makes_the_same_step() -> None:
    builder = StreamsBuilder()
    orders = builder.stream("orders", key="string", value=json("amount DOUBLE"))
    counts = orders.group_by_key().count(store="n")
    counts.suppress("10s", name="calm", records=100, full="fail").to("calm")
    minutes = orders.group_by_key().windowed_by(tumbling("1m")).count(store="m")
    minutes.suppress("5s", name="calm-minutes").select({"n": "count"}).to("minutes")
    steps = {each["name"]: each for each in builder.document["steps"]}
    buffer = {"records": 100, "full": "fail"}
    assert steps["calm"] == {"name": "calm", "from": "n", "toStream": {"suppress": {"within": "10s", "buffer": buffer}}}
    assert steps["calm-minutes"] == {"name": "calm-minutes", "from": "m", "toStream": {"suppress": {"within": "5s"}}}
    assert builder.reading().application is not None


def only(found: list[Change]) -> Change:
    (change,) = found
    return change


def test_times_and_bounds_may_change_and_what_waits_stays() -> None:
    before = planned(held_back({"within": "1m"}))
    assert changes(before, planned(held_back({"within": "2m", "buffer": BOUNDS}))).items == ()


def test_changes_that_wait_are_not_read_as_something_else() -> None:
    wider = {**USERS, "value": {"format": "json", "schema": "name STRING, tier STRING, age INT"}}
    other_key = {**USERS, "key": {"format": "long"}}
    before = planned(held_back({"within": "1m"}), sources=[ORDERS, USERS])
    column = only(list(changes(before, planned(held_back({"within": "1m"}), sources=[ORDERS, wider])).items))
    assert column.what == "the column age of the changes in the store s-suppress-store is another one than before"
    keys = only(
        [
            each
            for each in changes(before, planned(held_back({"within": "1m"}), sources=[ORDERS, other_key])).items
            if "s-suppress-store" in each.what
        ]
    )
    assert (keys.where, keys.what) == (
        f"{S}.from",
        "the keys of the changes in the store s-suppress-store were string and are long",
    )


@pytest.mark.parametrize(
    ("windows", "words"),
    [
        ({"window": {"tumbling": {"size": "2m"}}}, "windows of 120000 ms"),
        (
            {"window": {"tumbling": {"size": "1d", "timezone": "Europe/Berlin"}}},
            "windows of 86400000 ms by the clock of Europe/Berlin",
        ),
        ({"window": {"session": {"gap": "1m"}}}, "sessions"),
    ],
    ids=["longer", "days of a place", "sessions"],
)
def test_windows_that_wait_are_not_read_as_other_windows(windows: Any, words: str) -> None:
    calm = held_back({"within": "1m"}, from_="n")
    before, after = planned(total(name="n", **MINUTES), calm), planned(total(name="n", store="m", **windows), calm)
    found = only([each for each in changes(before, after).items if "s-suppress-store" in each.what])
    assert f"were string in windows of 60000 ms and are string in {words}" in found.what


def test_a_suppress_that_goes_loses_the_changes_that_wait_and_says_so() -> None:
    before, after = planned(held_back({"within": "1m"})), planned(step(from_="users", toStream={}))
    found = only(list(changes(before, after).incompatible))
    assert found.where == "store s-suppress-store"
    assert found.consequence.startswith(
        "changes that wait in it are never passed on, and its changelog shop-s-suppress"
    )
