"""Sources of one topic with equal settings are one source: in the plan, in Python, in a reset and in a comparison."""

from __future__ import annotations

from typing import Any

import pytest

from streams_runtime.api import StreamsApplication, parse_application
from streams_runtime.api.checks.operations.reset_checks import reset_mistakes
from streams_runtime.api.spec.operations.reset_spec import ResetSpec
from streams_runtime.builder import StreamsBuilder, json
from streams_runtime.errors import InvalidApplicationException
from streams_runtime.topics.reset.reset_plan import reset_topics_of
from streams_runtime.topology.changes.compare import changes
from streams_runtime.topology.declared.build_topology import build_topology
from streams_runtime.topology.describe import as_json, as_text
from streams_runtime.topology.nodes.source_and_sink_nodes import SourceNode
from streams_runtime.topology.nodes.step_nodes import TransformNode

FIRST = {
    "name": "orders",
    "topic": "orders",
    "key": {"format": "string"},
    "value": {"format": "json", "schema": "n BIGINT"},
    "timestamp": "n",
    "offsetReset": "1h",
}
AGAIN = {**FIRST, "name": "again"}
OTHER = {**FIRST, "name": "other", "topic": "other"}
TOTALS = {"name": "totals", "from": "again", "aggregate": {"n": "sum(n)"}, "store": "totals"}


def app(*steps: dict[str, Any], sources: Any = (FIRST, AGAIN)) -> StreamsApplication:
    topology = {"sources": list(sources), "steps": list(steps), "sinks": [{"from": "orders", "topic": "out"}]}
    return parse_application(
        {
            "apiVersion": "streamsoperator.io/v1alpha1",
            "kind": "StreamsApplication",
            "metadata": {"name": "shop"},
            "spec": {"topology": topology},
        }
    )


def test_the_topic_is_read_once_and_both_names_have_its_records() -> None:
    topology = build_topology(app(TOTALS))
    assert topology.source_topics == ("orders",)
    (sub,) = topology.subtopologies
    assert [node.name for node in sub.nodes if isinstance(node, SourceNode)] == ["orders"]
    again = topology.node("again")
    assert again == TransformNode("again", "orders", None, None, "spec.topology.sources[1]")
    assert topology.sources_of("totals") == {"orders"}
    assert "again" in as_text(topology)
    assert {each["name"]: each["does"] for each in as_json(topology)["subtopologies"][0]["nodes"]}["again"] == (
        "read by orders"
    )


def test_a_second_source_changes_no_state() -> None:
    before = build_topology(app({**TOTALS, "from": "orders"}, sources=[FIRST]))
    after = build_topology(app(TOTALS))
    assert changes(before, after).items == ()
    assert changes(after, before).items == ()


def test_streams_of_one_topic_in_python_are_one_source_and_their_names_differ() -> None:
    builder = StreamsBuilder()
    one, two = (builder.stream("orders", key="string", value=json("n BIGINT")) for _ in range(2))
    three = builder.stream("orders", key="string", value=json("n BIGINT"), name="third")
    assert [each.name for each in (one, two, three)] == ["orders", "orders-2", "third"]
    one.merge(two, three, name="all").to("out")
    built = builder.build()
    assert [(each.name, each.topic) for each in built.sources] == [
        ("orders", "orders"),
        ("orders-2", "orders"),
        ("third", "orders"),
    ]


def test_unequal_streams_in_python_are_refused_with_both_fields() -> None:
    builder = StreamsBuilder()
    builder.stream("orders", key="string", value=json("n BIGINT")).to("out")
    builder.stream("orders", key="string", value=json("n INT")).to("out")
    with pytest.raises(InvalidApplicationException, match=r"differs from .* stream\('orders'\)\.value") as raised:
        builder.build()
    assert len(raised.value.mistakes) == 1


def reset(sources: Any = (), to: Any = "earliest") -> ResetSpec:
    return ResetSpec.model_validate({"nonce": 1, "to": to, "sources": list(sources)})


@pytest.mark.parametrize(
    ("named", "found"),
    [
        ([], {"orders": "orders", "other": "other"}),
        (["orders"], {"orders": "orders"}),
        (["again"], {"again": "orders"}),
        (["again", "other"], {"again": "orders", "other": "other"}),
    ],
)
def test_a_reset_by_either_name_sets_the_topics_offsets_once(named: list[str], found: dict[str, str]) -> None:
    topology = build_topology(app(sources=[FIRST, AGAIN, OTHER]))
    assert dict(reset_topics_of(reset(named), topology)) == found


@pytest.mark.parametrize(
    "asked", [reset(["orders", "again"]), reset(to={"offsets": {"again": {"0": 1}, "orders": {"0": 2}}})]
)
def test_a_reset_that_names_both_is_refused(asked: ResetSpec) -> None:
    (mistake,) = reset_mistakes(asked, app(sources=[FIRST, AGAIN, OTHER]).spec.topology.sources)
    assert "reads the topic 'orders', as" in mistake.found
    assert not list(reset_mistakes(reset(["again", "other"]), app(sources=[FIRST, AGAIN, OTHER]).spec.topology.sources))
