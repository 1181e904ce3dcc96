"""Process steps as they are declared: their plan, stores and topics, the builder's, and what a version changes."""

from __future__ import annotations

from typing import Any

import processor_classes
import pytest
from processor_kit import application, step_of

from streams_runtime import ProcessorContext, ProcessorRecord, PunctuationType
from streams_runtime.api import StreamsApplication, parse_application
from streams_runtime.builder import StreamsBuilder, json
from streams_runtime.errors import ConfigException
from streams_runtime.processors.user_processors import processor_context, processor_records
from streams_runtime.state.processor_class import processor_class, processor_class_mistakes
from streams_runtime.topology.changes.compare import changes
from streams_runtime.topology.declared.build_topology import build_topology
from streams_runtime.topology.fork_paths import orders_by_time
from streams_runtime.topology.nodes.process_node import ProcessNode, ProcessorStore
from streams_runtime.topology.plan import Topology
from streams_runtime.topology.whole_streams import is_given_all

BY_USER = {"name": "by-user", "from": "a", "keyBy": "op"}
TOTALS = {"name": "totals", "aggregate": {"n": "count(*)"}, "store": "totals"}


def topology(*steps: dict[str, Any], sink: str = "p") -> Topology:
    document = application("rules:Alerts")
    document["spec"]["topology"] |= {"steps": list(steps), "sinks": [{"from": sink, "topic": "out"}]}
    return build_topology(parse_application(document))


def process(source: str = "a", key: str | None = None, **fields: Any) -> dict[str, Any]:
    given = {"python": "rules:Alerts", "value": "n BIGINT", **fields} | ({} if key is None else {"key": key})
    return {"name": "p", "from": source, "process": given}


def test_a_step_has_its_declared_stores_and_one_of_its_own() -> None:
    sub, node = step_of("rules:Alerts")
    assert node == ProcessNode(
        "p",
        "a",
        "rules:Alerts",
        "seen STRING",
        "STRING",
        (ProcessorStore("seen", "string", "n BIGINT"),),
        "spec.topology.steps[0]",
    )
    assert [(each.name, each.kind, each.changelog_topic, each.is_queryable) for each in sub.stores] == [
        ("seen", "key-value", "app-seen-changelog", True),
        ("p-process-store", "process", "app-p-process-store-changelog", False),
    ]


def test_keys_that_a_step_gives_are_spread_over_a_topic_where_something_keeps_state() -> None:
    assert topology(process(key="STRING"), TOTALS | {"from": "p"}).repartition_topics == ("app-p-repartition",)
    assert topology(process(key="STRING")).repartition_topics == ()
    assert topology(process(), TOTALS | {"from": "p"}).repartition_topics == ()


def test_records_with_a_new_key_come_to_a_step_through_a_topic_those_without_one_too() -> None:
    plan = topology(BY_USER, process("by-user"))
    assert plan.repartition_topics == ("app-by-user-repartition",)
    (sink,) = (node for node in plan.nodes if node.name == "by-user-repartition")
    assert getattr(sink, "keeps_null_keys")  # noqa: B009 - of this kind of node


def test_steps_behind_see_the_columns_that_are_forwarded_and_no_others() -> None:
    assert topology(process(), {"name": "more", "from": "p", "where": "n > 1"}, sink="more")
    with pytest.raises(ConfigException, match="unknown column 'op'"):
        topology(process(), {"name": "more", "from": "p", "where": "op = 'x'"}, sink="more")


def test_records_of_several_topics_come_to_a_step_in_the_order_of_their_times() -> None:
    assert orders_by_time(step_of("rules:Alerts", topics=("a", "b"))[0])
    assert not orders_by_time(step_of("rules:Alerts")[0])


SELECT = {"name": "p0", "from": "a", "select": {"op": "op", "n": "n"}}


@pytest.mark.parametrize(
    ("steps", "is_whole"),
    [
        ([process()], True),
        ([SELECT, process("p0")], True),
        ([{"name": "p0", "from": "a", "headers": {"h": "op"}}, process("p0")], True),
        ([{"name": "p0", "from": "a", "where": "n > 1"}, process("p0")], False),
        ([{"name": "p0", "from": "a", "dedupe": {"within": "1s"}}, process("p0")], False),
        ([SELECT, {**SELECT, "name": "p1"}, {"name": "both", "merge": ["p0", "p1"]}, process("both")], False),
        ([BY_USER, process("by-user")], True),
    ],
)
def test_a_step_knows_whether_it_is_given_all_that_its_task_reads(steps: list[Any], is_whole: bool) -> None:
    plan = topology(*steps)
    sub = next(sub for sub in plan.subtopologies if any(node.name == "p" for node in sub.nodes))
    assert is_given_all(sub, "p") == is_whole


def test_the_builder_makes_the_step_of_a_file() -> None:
    builder = StreamsBuilder()
    stream = builder.stream("a", key="string", value=json("op STRING, n BIGINT"), name="a")
    stores = {"seen": ("STRING", "n BIGINT")}
    stream.process(processor_classes.Everything, "seen STRING", name="p", key="STRING", stores=stores).to("out")
    built = builder.build()
    declared = parse_application(application("processor_classes:Everything")).spec.topology
    assert built == declared


def test_the_builder_takes_a_class_by_its_name_and_refuses_one_that_pods_do_not_find() -> None:
    class Local:
        """Within a function."""

    builder = StreamsBuilder()
    stream = builder.stream("a", key="string", value=json("op STRING, n BIGINT"), name="a")
    stream.process("rules:Alerts", "n BIGINT", name="p").to("out")
    assert builder.build().steps[0].process is not None
    with pytest.raises(ConfigException, match="other processes can't import"):
        stream.process(Local, "n BIGINT", name="q")


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("Misnamed", "has no method process; did you mean 'proces'"),
        ("function", "is no class but function; name a class"),
        ("Nothing", "has no 'Nothing'"),
    ],
)
def test_a_class_that_is_none_is_refused_at_its_field(name: str, found: str) -> None:
    node = step_of(f"processor_classes:{name}")[1]
    (mistake,) = processor_class_mistakes(node)
    assert mistake.path == "spec.topology.steps[0].process.python"
    assert found in f"{mistake.found}; {mistake.remedy}"


def test_a_class_says_which_methods_it_has() -> None:
    assert not processor_class("processor_classes:Plain").has_init
    described = processor_class("processor_classes:Failing")
    assert described.has_init
    assert described.has_close


def stores(key: str = "STRING", value: str = "n BIGINT") -> StreamsApplication:
    document = application("rules:Alerts")
    document["spec"]["topology"]["steps"][0]["process"]["stores"] = {"seen": {"key": key, "value": value}}
    return parse_application(document)


@pytest.mark.parametrize(
    ("now", "found"),
    [
        (stores(key="BIGINT"), "the keys of the store seen were string and are long"),
        (stores(value="n STRING"), "the column n of the store seen was BIGINT and is STRING"),
    ],
)
def test_a_store_of_other_types_is_a_change_that_loses_state(now: StreamsApplication, found: str) -> None:
    found_changes = changes(build_topology(stores()), build_topology(now))
    assert found in " ".join(each.what for each in found_changes.items)


def test_a_store_with_more_columns_is_read_on() -> None:
    found_changes = changes(build_topology(stores()), build_topology(stores(value="n BIGINT, more STRING")))
    assert not [each for each in found_changes.items if "store seen" in each.what]


def test_public_names_are_those_that_processors_are_given() -> None:
    assert ProcessorContext is processor_context.ProcessorContext
    assert (ProcessorRecord, PunctuationType) == (processor_records.ProcessorRecord, processor_records.PunctuationType)
