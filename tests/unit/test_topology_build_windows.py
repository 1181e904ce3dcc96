"""Windows from the resource to the plan: lengths in ms, the store that they need, and what a drawing says of them."""

from __future__ import annotations

from typing import Any

import pytest
from pipeline_kit import source, topology_of

from streams_runtime.api import ApplicationSpec
from streams_runtime.api.spec.kafka_spec import ProcessingSpec
from streams_runtime.topics.external_topics import sink_topics
from streams_runtime.topology.describe import as_json, as_mermaid
from streams_runtime.topology.nodes.aggregate_node import AggregateNode
from streams_runtime.topology.nodes.window_kinds import SessionWindows, SlidingWindows, TimeWindows
from streams_runtime.topology.plan import Topology
from streams_runtime.topology.store_specs import StoreSpec, Windowing

DAY = 86_400_000


def of(window: dict[str, Any]) -> Topology:
    steps = [
        {"name": "often", "from": "in", "window": window, "aggregate": {"n": "count(*)"}, "store": "often"},
        {"name": "more", "from": "often", "where": "n > 1 and _window_start > timestamp '2020-01-01'"},
    ]
    return topology_of([source(schema="a BIGINT")], steps, [{"from": "more", "topic": "out"}])


@pytest.mark.parametrize(
    ("window", "planned"),
    [
        ({"tumbling": {"size": "1m"}}, TimeWindows(60_000, 60_000, 0, 60_000)),
        ({"tumbling": {"size": "1m", "grace": "5s"}}, TimeWindows(60_000, 60_000, 5_000, 65_000)),
        ({"tumbling": {"size": "1m"}, "retention": "2h"}, TimeWindows(60_000, 60_000, 0, 7_200_000)),
        ({"hopping": {"size": "1m", "advance": "1s500ms"}}, TimeWindows(60_000, 1_500, 0, 60_000)),
        (
            {"tumbling": {"size": "1d", "offset": "22h"}},
            TimeWindows(86_400_000, 86_400_000, 0, 86_400_000, False, 79_200_000),
        ),
        (
            {"tumbling": {"size": "7d", "offset": "4d", "timezone": "Europe/Berlin", "grace": "5s"}, "retention": "9d"},
            TimeWindows(7 * DAY, 7 * DAY, 5_000, 9 * DAY, False, 4 * DAY, "Europe/Berlin"),
        ),
        (
            {"hopping": {"size": "1m", "advance": "2s", "offset": "1s"}},
            TimeWindows(60_000, 2_000, 0, 60_000, False, 1_000),
        ),
    ],
)
def test_windows_have_lengths_in_ms_and_a_window_store(window: dict[str, Any], planned: TimeWindows) -> None:
    topology = of(window)
    node = topology.node("often")
    assert isinstance(node, AggregateNode)
    assert node.windows == planned
    kept = Windowing(planned.retention, planned.longest)
    assert topology.stores == (StoreSpec("often", "window", "app-often-changelog", False, "often", kept),)


def test_a_day_of_25_hours_is_kept_until_its_end_and_grace() -> None:
    node = (topology := of({"tumbling": {"size": "1d", "grace": "2h", "timezone": "Europe/Berlin"}})).node("often")
    assert isinstance(node, AggregateNode)
    assert node.windows is not None
    assert node.windows.retention == 27 * 3_600_000
    assert topology.stores[0].windowing == Windowing(27 * 3_600_000, 25 * 3_600_000)
    assert "in windows of 86400000 ms by the clock of Europe/Berlin, grace 7200000 ms" in as_mermaid(topology)


def test_the_topic_of_late_records_is_one_that_the_step_writes() -> None:
    topology = of({"tumbling": {"size": "1m"}, "late": {"topic": "too-late"}})
    node = topology.node("often")
    assert isinstance(node, AggregateNode)
    assert node.late_topic == "too-late"
    assert topology.sink_topics == topology.subtopologies[0].sink_topics == ("too-late", "out")
    fields = sink_topics(topology, ApplicationSpec.model_construct(processing=ProcessingSpec()))
    assert fields["too-late"] == "spec.topology.steps[0].window.late.topic"
    (drawn,) = (each for each in as_json(topology)["subtopologies"][0]["nodes"] if each["name"] == "often")
    assert drawn["topics"] == ["too-late"]
    assert "grace 0 ms, late records to too-late" in drawn["does"]
    assert "[/" + '"too-late"' + "/]" in as_mermaid(topology)
    assert "n1 --> t1" in as_mermaid(topology)


def test_sliding_windows_have_a_window_store_that_keeps_them_while_others_are_made_of_them() -> None:
    topology = of({"sliding": {"timeDifference": "1m", "grace": "10s"}})
    node = topology.node("often")
    assert isinstance(node, AggregateNode)
    assert node.windows == SlidingWindows(60_000, 10_000, 130_000)
    kept = Windowing(130_000, 60_000)
    assert topology.stores == (StoreSpec("often", "window", "app-often-changelog", False, "often", kept),)
    assert "in sliding windows of 60000 ms, grace 10000 ms" in as_mermaid(topology)


def test_sessions_have_a_gap_and_a_session_store() -> None:
    topology = of({"session": {"gap": "5m", "grace": "10s"}})
    node = topology.node("often")
    assert isinstance(node, AggregateNode)
    assert node.windows == SessionWindows(300_000, 10_000, 310_000)
    assert topology.stores == (
        StoreSpec("often", "session", "app-often-changelog", False, "often", Windowing(310_000)),
    )
    assert "in sessions with gaps of 300000 ms at most, grace 10000 ms" in as_mermaid(topology)


def test_only_the_last_contents_of_windows_may_be_asked_for() -> None:
    step = {"name": "often", "from": "in", "window": {"tumbling": {"size": "1m"}}, "suppress": "untilWindowCloses"}
    rest = {"aggregate": {"n": "count(*)"}, "store": "often"}
    topology = topology_of([source(schema="a BIGINT")], [step | rest], [{"from": "often", "topic": "out"}])
    node = topology.node("often")
    assert isinstance(node, AggregateNode)
    assert node.windows == TimeWindows(60_000, 60_000, 0, 60_000, only_final=True)
    assert "each once it has closed" in as_mermaid(topology)


def test_a_drawing_says_which_windows_they_are() -> None:
    does = [
        node["does"] for node in as_json(of({"hopping": {"size": "1m", "advance": "10s"}}))["subtopologies"][0]["nodes"]
    ]
    assert "aggregate n = count(*) in windows of 60000 ms every 10000 ms, grace 0 ms" in does
    assert "in windows of 60000 ms, grace 5000 ms" in as_mermaid(of({"tumbling": {"size": "1m", "grace": "5s"}}))
    drawn = as_mermaid(of({"hopping": {"size": "1m", "advance": "10s", "offset": "3s"}}))
    assert "in windows of 60000 ms every 10000 ms with an offset of 3000 ms, grace 0 ms" in drawn
