"""How a topology is shown."""

from __future__ import annotations

import re

import pytest

from streams_runtime.api import parse_application
from streams_runtime.topics.external_topics import sink_topics
from streams_runtime.topology.declared.build_topology import build_topology
from streams_runtime.topology.describe import as_json, as_mermaid, as_text
from streams_runtime.topology.plan import Topology

APPLICATION = """\
apiVersion: streamsoperator.io/v1alpha1
kind: StreamsApplication
metadata: {name: shop}
spec:
  topology:
    sources:
      - {name: orders, topic: orders, value: {format: json, schema: "user STRING, n INT"}}
      - {name: users, topic: users, value: {format: string}, table: {store: users}}
    steps:
      - {name: paid, from: orders, where: 'user <> "#x"', select: {user: user}}
      - {name: by-user, from: paid, keyBy: user}
      - {name: totals, from: by-user, aggregate: {n: count(*)}, store: totals}
    sinks:
      - {from: totals, topic: user-totals}
"""

TEXT = """\
Topologies:
   Sub-topology: 0
    Source: orders (topics: [orders])
      --> paid
    Processor: paid (stores: [])
      --> by-user
      <-- orders
    Processor: by-user (stores: [])
      --> by-user-repartition
      <-- paid
    Sink: by-user-repartition (topic: shop-by-user-repartition)
      <-- by-user

   Sub-topology: 1
    Source: users (topics: [users], stores: [users])
      --> none

   Sub-topology: 2
    Source: by-user-repartition-source (topics: [shop-by-user-repartition])
      --> totals
    Processor: totals (stores: [totals])
      --> sink-user-totals
      <-- by-user-repartition-source
    Sink: sink-user-totals (topic: user-totals)
      <-- totals"""


@pytest.fixture(scope="module")
def topology() -> Topology:
    return build_topology(parse_application(APPLICATION))


def test_the_text_is_that_of_kafka_streams(topology: Topology) -> None:
    assert as_text(topology) == TEXT


def test_the_json_has_nodes_topics_and_stores(topology: Topology) -> None:
    found = as_json(topology)
    assert found["applicationId"] == "shop"
    first, second, third = found["subtopologies"]
    assert first["repartitionSinks"] == third["sourceTopics"] == ["shop-by-user-repartition"]
    assert second["stores"] == [
        {
            "name": "users",
            "kind": "key-value",
            "changelogTopic": "users",
            "sourceChangelog": True,
            "global": False,
            "historyRetention": None,
            "node": "users",
        }
    ]
    assert third["nodes"][1] == {
        "name": "totals",
        "type": "aggregate",
        "does": "aggregate n = count(*)",
        "topics": [],
        "stores": ["totals"],
        "from": ["by-user-repartition-source"],
        "to": ["sink-user-totals"],
    }


def test_the_drawing_connects_topics_steps_and_stores(topology: Topology) -> None:
    lines = [line.strip() for line in as_mermaid(topology).splitlines()]
    assert lines[0] == "flowchart LR"
    labels = {line.split("[")[0]: line for line in lines if '"' in line and "subgraph" not in line}
    key = {
        name: next(k for k, label in labels.items() if name in label) for name in ("paid<", "by-user<", '("totals")')
    }
    assert f"{key['paid<']} --> {key['by-user<']}" in lines
    assert any(line.endswith(f"--- {key['(' + chr(34) + 'totals' + chr(34) + ')']}") for line in lines)


def test_signs_that_mermaid_would_read_are_escaped(topology: Topology) -> None:
    assert "where user <> #quot;#35;x#quot;; select user" in as_mermaid(topology)


def test_an_aggregate_is_shown_with_its_number() -> None:
    calls = "n: approx_count_distinct(user), p: 'approx_percentile(1, 0.95)', l: 'collect_list(user, 10)'"
    calls += ", d: count(distinct user), b: 'count( DISTINCT user,user) FILTER(WHERE user > 1)'"
    found = as_json(build_topology(parse_application(APPLICATION.replace("{n: count(*)}", f"{{{calls}}}"))))
    shown = found["subtopologies"][2]["nodes"][1]["does"]
    assert (
        shown == "aggregate n = approx_count_distinct(user), p = approx_percentile(1, 0.95), l = collect_list(user, 10)"
        ", d = count(distinct user), b = count(distinct user, user) FILTER (WHERE user > 1)"
    )


def test_a_join_of_two_streams_has_a_store_for_each_and_says_how_close_they_lie() -> None:
    value = {"key": {"format": "string"}, "value": {"format": "string"}}
    join = {"stream": "b", "type": "left", "within": {"before": "5s", "after": "1s"}, "select": {"x": "b.value"}}
    document = {
        "apiVersion": "streamsoperator.io/v1alpha1",
        "kind": "StreamsApplication",
        "metadata": {"name": "shop"},
        "spec": {
            "topology": {
                "sources": [{"name": name, "topic": name, **value} for name in ("a", "b")],
                "steps": [{"name": "j", "from": "a", "join": join}],
                "sinks": [{"from": "j", "topic": "out"}],
            }
        },
    }
    found = build_topology(parse_application(document))
    stores = "j-this-join-store, j-other-join-store, j-shared-join-store"
    assert f"    Processor: j (stores: [{stores}])\n      --> sink-out\n      <-- a, b" in as_text(found)
    node = next(each for each in as_json(found)["subtopologies"][0]["nodes"] if each["name"] == "j")
    assert (node["type"], node["stores"]) == ("stream-join", stores.split(", "))
    assert node["does"] == "left join with the stream b within 5000 ms before, 1000 ms after, grace 0 ms: x"


def test_a_dedupe_says_by_what_and_how_close_and_has_a_store() -> None:
    value = {"key": {"format": "string"}, "value": {"format": "string"}}
    steps = [{"name": "once", "from": "a", "dedupe": {"within": "5s", "by": "value"}}]
    document = {
        "apiVersion": "streamsoperator.io/v1alpha1",
        "kind": "StreamsApplication",
        "metadata": {"name": "shop"},
        "spec": {"topology": {"sources": [{"name": "a", "topic": "a", **value}], "steps": steps}},
    }
    node = as_json(build_topology(parse_application(document)))["subtopologies"][0]["nodes"][1]
    assert (node["type"], node["stores"]) == ("dedupe", ["once-dedupe-store"])
    assert node["does"] == "dedupe within 5000 ms by value"


def test_a_sink_by_record_shows_its_expression_and_the_topics_that_it_lists() -> None:
    listed = "      - {from: paid, topicBy: \"concat('of-', user)\", topics: [of-a, of-b]}"
    application = parse_application(f"{APPLICATION}{listed}\n      - {{from: paid, topicBy: user}}\n")
    shown = build_topology(application)
    text = as_text(shown)
    assert "    Sink: sink-of-paid (topicBy: concat('of-', user), topics: [of-a, of-b])\n      <-- paid" in text
    assert "    Sink: sink-of-paid-2 (topicBy: user)\n      <-- paid" in text
    nodes = {node["name"]: node for node in as_json(shown)["subtopologies"][0]["nodes"]}
    assert (nodes["sink-of-paid"]["topics"], nodes["sink-of-paid-2"]["topics"]) == (["of-a", "of-b"], [])
    assert nodes["sink-of-paid-2"]["does"] == "write, topicBy user"
    assert shown.sink_topics == ("of-a", "of-b", "user-totals")
    fields = sink_topics(shown, application.spec)
    assert (fields["of-a"], fields["of-b"]) == ("spec.topology.sinks[1].topics[0]", "spec.topology.sinks[1].topics[1]")
    drawing = as_mermaid(shown)
    ids = dict(reversed(each) for each in re.findall(r"(\w+)\[[/\[(]?\"([\w-]+)", drawing))
    assert f"{ids['sink-of-paid']} --> {ids['of-b']}" in drawing
    assert f"{ids['sink-of-paid-2']} -->" not in drawing
