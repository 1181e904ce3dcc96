"""Pytest plugin: an API server for the run, namespaces for its tests, the CRD, and controllers on demand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from functools import cached_property
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

import pytest
from kube_api_server import PROGRAMS as API_PROGRAMS
from kube_api_server import controller_manager
from kube_binaries import lacking, program
from kube_cluster import Cluster
from kube_images import TARGETS, image_archive
from kube_kafka import KafkaInCluster, kafka_pod
from kube_leftovers import clear, inhabited
from kube_node import PROGRAMS as NODE_PROGRAMS
from kube_node import Node
from kube_sources import any_api_server, any_node, made_elsewhere
from waiting import eventually

from streams_runtime.errors import EnvironmentException

if TYPE_CHECKING:
    from kube_faults import FaultyApi

CRD = Path(__file__).parent.parent.parent / "crds" / "streamsapplications.yaml"
CONTROLLERS = (
    "garbage-collector-controller",
    "namespace-controller",
    "serviceaccount-controller",
    "root-ca-certificate-publisher-controller",
    "disruption-controller",
)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Make programs and images before the first test that needs them, whose time limit a build would exceed.

    Images take minutes: they are made beside the tests that come before.
    """
    wanted = {name for item in session.items for name in getattr(item, "fixturenames", ())}
    if session.config.option.collectonly or made_elsewhere():
        return
    programs = {*(API_PROGRAMS if "api_server" in wanted else ()), *(NODE_PROGRAMS if "node" in wanted else ())}
    if lacking(*programs):
        # The tests are skipped, and say why.
        return
    for name in programs:
        program(name)
    targets = [target for target in TARGETS if f"{target}_image" in wanted]
    if targets and "node" in getattr(session.items[0], "fixturenames", ()):
        _make_images(targets)
    elif targets:
        Thread(target=_make_images, args=(targets, EnvironmentException), name="images of pods").start()


def _make_images(targets: Sequence[str], *told_later: type[Exception]) -> None:
    """Make the images; `told_later` are failures that the test which asks for the image meets itself."""
    with suppress(*told_later):
        for target in targets:
            image_archive(target)


@pytest.fixture(scope="session")
def shared_clusters() -> Iterator[SharedClusters]:
    """The run's clusters, each made by the first test that needs it; one where one serves for both."""
    with ExitStack() as stack:
        yield SharedClusters(stack)


class SharedClusters:
    """Makes the API server and the node once."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack

    @cached_property
    def node(self) -> Node:
        """A cluster whose pods run."""
        return self._stack.enter_context(any_node())

    @cached_property
    def api_server(self) -> Cluster:
        """An API server. One of its own even when there is a node of its own: other tests' pods do not run there."""
        if made_elsewhere():
            return self.node.cluster
        return self._stack.enter_context(any_api_server())


@pytest.fixture(scope="session")
def api_server(shared_clusters: SharedClusters) -> Cluster:
    """One API server for all tests of the run, started by the first that asks for it."""
    return shared_clusters.api_server


@pytest.fixture(scope="session")
def node(shared_clusters: SharedClusters) -> Node:
    """One cluster with a node for all tests of the run, started by the first that asks for it."""
    return shared_clusters.node


@pytest.fixture(scope="session")
def operator_image(node: Node) -> str:
    """The name of the operator's image, which the node has."""
    return node.load("operator")


@pytest.fixture(scope="session")
def runtime_image(node: Node) -> str:
    """The name of the runtime's image, which the node has."""
    return node.load("runtime")


@pytest.fixture(scope="session")
def kafka_in_cluster(node: Node, runtime_image: str) -> Iterator[KafkaInCluster]:
    """One broker, as a pod of the node, for all tests of the run."""
    with kafka_pod(node.cluster, runtime_image) as kafka:
        yield kafka


@pytest.fixture
def node_namespace(node: Node, namespace: str) -> Iterator[str]:
    """A namespace on the node that no other test has; it goes with all that is in it."""
    with inhabited(node.cluster, namespace):
        yield namespace


@pytest.fixture(scope="session")
def crd(api_server: Cluster) -> str:
    """The name of the StreamsApplication's definition, which the API server serves."""
    name = "streamsapplications.streamsoperator.io"
    api_server.kubectl("apply", "--server-side", "--force-conflicts", f"--filename={CRD}")
    eventually(lambda: api_server.is_established(name), "the definition is established")
    return name


@pytest.fixture
def kube_namespace(api_server: Cluster, namespace: str) -> Iterator[str]:
    """A namespace that no other test has, with the service account `default`; empty again after the test."""
    api_server.kubectl("create", "namespace", namespace)
    if not api_server.has_controllers:
        # Whoever makes a pod without naming an account needs it, and nobody else makes it here.
        metadata = {"name": "default", "namespace": namespace}
        api_server.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})
    yield namespace
    clear(api_server, namespace)


@pytest.fixture
def controllers(api_server: Cluster) -> Iterator[None]:
    """The controllers of CONTROLLERS at work during the test: owned objects are collected, namespaces end."""
    if api_server.has_controllers:
        yield
        return
    with controller_manager(api_server, CONTROLLERS):
        yield


@pytest.fixture
def faulty_api(api_server: Cluster) -> Iterator[FaultyApi]:
    """The API server through a proxy of the test's own that makes requests fail and counts them."""
    from kube_faults import faulty_api

    with faulty_api(api_server) as api:
        yield api
