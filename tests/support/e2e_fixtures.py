"""Pytest plugin: the operator installed in the run's cluster, and one application's surroundings."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from e2e_kit import Application, operator_in_cluster
from kube_kafka import KafkaInCluster
from kube_node import Node


@pytest.fixture(scope="session")
def installed_operator(node: Node, operator_image: str, runtime_image: str) -> Iterator[None]:
    """The chart's release, for all tests of the run."""
    with operator_in_cluster(node, operator_image, runtime_image):
        yield


@pytest.fixture
def application(
    node: Node, node_namespace: str, installed_operator: None, kafka_in_cluster: KafkaInCluster
) -> Iterator[Callable[[str], Application]]:
    """Given a name: an application in the test's namespace, where `kafka:9092` is the broker; deleted at the end."""
    del installed_operator  # it has to be there, and there is nothing to ask of it
    kafka_in_cluster.alias(node_namespace)
    made: list[Application] = []

    def make(name: str) -> Application:
        made.append(Application(node, node_namespace, name))
        return made[-1]

    yield make
    for each in made:
        print(each.words())  # shown when the test fails
        each.kubectl("delete", "streamsapp", each.name, "--ignore-not-found", "--timeout=180s", timeout=200)
