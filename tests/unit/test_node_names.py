"""What measurements of a sub-topology's nodes are called: by the names that the user gave."""

from __future__ import annotations

from typing import Any

import yaml

from streams_runtime.api import parse_application
from streams_runtime.processing.node_names import NodeNames
from streams_runtime.topology.declared.build_topology import build_topology

TOPOLOGY = """
sources:
  - {name: orders, topic: orders-in, key: {format: string}, value: {format: json, schema: "user STRING, amount BIGINT"}}
  - {name: users, topic: users-in, key: {format: string}, table: {store: users},
     value: {format: json, schema: "n STRING"}}
steps:
  - {name: by-user, from: orders, keyBy: user}
  - {name: totals, from: by-user, aggregate: {n: count(*)}, store: totals}
  - {name: kept, from: by-user, aggregate: {most: max(amount)}, store: kept}
sinks:
  - {from: totals, topic: out}
  - {from: by-user, topic: copies}
  - {from: by-user, topicBy: user}
  - {from: by-user, topicBy: user, topics: [some, others]}
"""


def names() -> list[NodeNames]:
    document: Any = {
        "apiVersion": "streamsoperator.io/v1alpha1",
        "kind": "StreamsApplication",
        "metadata": {"name": "app"},
        "spec": {"topology": yaml.safe_load(TOPOLOGY)},
    }
    return [NodeNames.of(sub) for sub in build_topology(parse_application(document)).subtopologies]


def test_what_the_topology_adds_for_a_repartition_topic_counts_for_the_step_that_asked_for_it() -> None:
    steps = {node: step for each in names() for node, step in each.steps.items()}
    assert steps["by-user-repartition"] == steps["by-user-repartition-source"] == steps["by-user"] == "by-user"
    assert (steps["orders"], steps["totals"]) == ("orders", "totals")


def test_sources_and_sinks_are_known_by_their_topics() -> None:
    topics = {node: topic for each in names() for node, topic in each.topics.items()}
    sinks = {topic: node for each in names() for topic, node in each.sinks.items()}
    assert topics == {
        "orders": "orders-in",
        "users": "users-in",
        "by-user-repartition-source": "app-by-user-repartition",
    }
    assert sinks == {
        "app-by-user-repartition": "by-user-repartition",
        "out": "sink-out",
        "copies": "sink-copies",
        "some": "sink-of-by-user-2",
        "others": "sink-of-by-user-2",
    }


def test_only_a_store_behind_which_nothing_comes_is_an_end() -> None:
    assert frozenset().union(*(each.ends for each in names())) == {"kept"}
