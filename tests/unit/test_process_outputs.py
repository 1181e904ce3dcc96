"""Outputs of process steps: their plan and topics, the builder's, and what goes to which of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import processor_classes
import pytest
from processor_kit import Harness, Read, application, harness
from state_kit import memory_folder

from streams_runtime.api import StreamsApplication, parse_application
from streams_runtime.api.flow.step_graph import stage_before
from streams_runtime.batch.columns import BRANCH, ELEMENT
from streams_runtime.builder import StreamsBuilder, json
from streams_runtime.errors import ConfigException, UserCodeException
from streams_runtime.topology.changes.compare import changes
from streams_runtime.topology.declared.build_topology import build_topology
from streams_runtime.topology.describe import as_json, as_text
from streams_runtime.topology.nodes.process_node import OutputNode
from streams_runtime.topology.nodes.source_and_sink_nodes import RepartitionSinkNode
from streams_runtime.topology.plan import Topology
from streams_runtime.topology.whole_streams import is_given_all

OUTPUTS = ("large", "small")
LARGE = {"name": "totals", "from": "p.large", "aggregate": {"n": "count(*)"}, "store": "totals"}
SMALL = {**LARGE, "name": "others", "from": "p.small", "store": "others"}
AGAIN = {"name": "q", "process": {"python": "rules:More", "value": "seen STRING"}}


def declared(
    *steps: dict[str, Any], sinks: Sequence[str] = ("p.large",), key: str | None = "STRING"
) -> StreamsApplication:
    """A process step with two outputs, and others behind it."""
    document = application("rules:Alerts", key, outputs=OUTPUTS)
    document["spec"]["topology"]["steps"] += steps
    document["spec"]["topology"]["sinks"] = [{"from": name, "topic": f"to-{at}"} for at, name in enumerate(sinks)]
    return parse_application(document)


def planned(*steps: dict[str, Any], sinks: Sequence[str] = ("p.large",), key: str | None = "STRING") -> Topology:
    return build_topology(declared(*steps, sinks=sinks, key=key))


def test_outputs_are_what_others_take_their_records_from() -> None:
    plan = planned({"name": "more", "from": "p.small", "where": "seen = 'x'"}, sinks=("p.large", "more"))
    (sub,) = plan.subtopologies
    assert sub.consumers_of("p") == (OutputNode("p.large", "p", 0), OutputNode("p.small", "p", 1))
    assert [node.name for node in sub.consumers_of("p.small")] == ["more"]
    assert "Processor: p (stores: [seen, p-process-store])\n      --> p.large, p.small" in as_text(plan)
    nodes = {node["name"]: node for sub in as_json(plan)["subtopologies"] for node in sub["nodes"]}
    assert (nodes["p.small"]["type"], nodes["p.small"]["does"]) == ("output", "what is forwarded to it, or to all")


def test_a_step_behind_an_output_is_not_given_all_that_its_task_reads() -> None:
    (sub,) = planned({**AGAIN, "from": "p.large"}, sinks=("q",), key=None).subtopologies
    assert is_given_all(sub, "p")
    assert not is_given_all(sub, "q")


@pytest.mark.parametrize(
    ("steps", "key", "topics"),
    [
        ([LARGE], "STRING", ["app-p.large-repartition"]),
        ([LARGE, SMALL], "STRING", ["app-p.large-repartition", "app-p.small-repartition"]),
        ([LARGE, SMALL], None, []),
        (
            [{"name": "m", "merge": ["p.small", "p.large"]}, {**LARGE, "from": "m"}],
            "STRING",
            ["app-p.large-repartition", "app-p.small-repartition"],
        ),
        ([{**AGAIN, "from": "p.small"}], "STRING", ["app-p.small-repartition"]),
    ],
)
def test_each_output_with_new_keys_has_a_topic_of_its_own_where_something_keeps_state(
    steps: list[dict[str, Any]], key: str | None, topics: list[str]
) -> None:
    plan = planned(*steps, key=key)
    assert sorted(plan.repartition_topics) == topics
    assert len(plan.subtopologies) == (1 if not topics else 2 if "m" in plan_names(plan) else 1 + len(topics))


def plan_names(plan: Topology) -> set[str]:
    return {node.name for node in plan.nodes}


def test_an_output_keeps_records_without_a_key_for_those_who_take_them() -> None:
    plan = planned({**AGAIN, "from": "p.large"}, SMALL, sinks=("q", "others"))
    kept = {node.name: node.keeps_null_keys for node in plan.nodes if isinstance(node, RepartitionSinkNode)}
    assert kept == {"p.large-repartition": True, "p.small-repartition": False}


def test_of_two_outputs_one_may_go_through_a_topic_and_the_other_one_stay_with_its_task() -> None:
    steps = declared(LARGE, {"name": "more", "from": "p.small", "where": "true"}, sinks=("more",)).spec.topology.steps
    behind = [stage_before(name, steps, lambda step: step.process is not None) for name in ("p.large", "more")]
    assert [each and each.name for each in behind] == [None, "p"]


def test_a_topic_of_an_output_is_named_by_an_upgrade() -> None:
    found = {(each.kind, each.where) for each in changes(planned(LARGE), planned({**LARGE, "from": "p.small"})).items}
    assert ("orphaned", "repartition topic app-p.large-repartition") in found
    assert ("new", "repartition topic app-p.small-repartition") in found


def test_outputs_by_themselves_change_no_store() -> None:
    plain = build_topology(parse_application(application("rules:Alerts")))
    assert changes(plain, planned()).items == ()


def test_properties_are_told_for_the_topic_of_an_output_by_its_name() -> None:
    document = application("rules:Alerts", outputs=OUTPUTS)
    document["spec"]["topology"]["steps"].append(LARGE)
    for name, is_known in (("p.large-repartition", True), ("p.small-repartition", False)):
        document["spec"]["internalTopics"] = {"overrides": {name: {"segment.ms": 60000}}}
        if is_known:
            assert parse_application(document)
        else:
            with pytest.raises(ConfigException, match=r"no internal topic 'p\.small-repartition'"):
                parse_application(document)


def test_the_builder_gives_a_stream_for_each_output_and_names_the_nearest() -> None:
    builder = StreamsBuilder()
    stream = builder.stream("a", key="string", value=json("op STRING, n BIGINT"), name="a")
    stores = {"seen": ("STRING", "n BIGINT")}
    parts = stream.process(
        processor_classes.Everything, "seen STRING", name="p", key="STRING", stores=stores, outputs=OUTPUTS
    )
    for name in OUTPUTS:
        parts[name].to(f"out.{name}")
    document = application("processor_classes:Everything", outputs=OUTPUTS)
    assert builder.build() == parse_application(document).spec.topology
    with pytest.raises(ConfigException, match="'p' has no output 'larg'; did you mean 'large'"):
        parts["larg"]


@pytest.fixture
def addressed() -> Iterator[Harness]:
    with memory_folder() as folder, harness(folder, "processor_classes:Addressed", outputs=OUTPUTS) as made:
        yield made


def ask(offset: int, to: str | None) -> Read:
    return Read("a", 0, offset, offset, "a", (to or "all", 0))


def test_a_row_goes_to_the_output_that_it_was_forwarded_to_or_to_all(addressed: Harness) -> None:
    rows = addressed.run([ask(0, "small"), ask(1, None), ask(2, "large")])
    assert [(each["seen"], each[BRANCH], each[ELEMENT]) for each in rows] == [
        ("0", 1, [0]),
        ("1", None, [0]),
        ("2", 0, [0]),
    ]


def test_a_punctuator_forwards_to_an_output_too(addressed: Harness) -> None:
    addressed.context()
    addressed.run([ask(0, None)])
    addressed.now = 1000
    assert [(each["seen"], each[BRANCH]) for each in addressed.run([], is_tick=True)] == [("tick", 0)]


def test_an_output_that_is_not_there_is_told_with_the_nearest(addressed: Harness) -> None:
    with pytest.raises(
        UserCodeException, match="LookupError: the step declares no output 'smal'; did you mean 'small'"
    ):
        addressed.run([ask(0, "smal")])


def test_without_outputs_there_is_none_to_forward_to() -> None:
    with (
        memory_folder() as folder,
        harness(folder, "processor_classes:Addressed") as made,
        pytest.raises(UserCodeException, match="LookupError: forward to 'small', and the step declares no outputs"),
    ):
        made.run([ask(0, "small")])


def test_without_outputs_rows_have_no_column_for_them() -> None:
    with memory_folder() as folder, harness(folder, "processor_classes:Addressed") as made:
        (row,) = made.run([ask(0, None)])
    assert BRANCH not in row
