"""The proxy before the API server does to requests what a test tells it to, and to no others."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator

import pytest
from kube_binaries import program
from kube_cluster import Cluster
from kube_faults import FaultyApi
from waiting import eventually

pytestmark = pytest.mark.cluster


def config_map(name: str, namespace: str) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}}


def raw(api: FaultyApi, method: str, path: str, body: object = None) -> subprocess.CompletedProcess[str]:
    text = json.dumps(body) if body is not None else None
    return api.cluster.kubectl(method, f"--raw={path}", *(("--filename=-",) if text else ()), input=text, check=False)


@pytest.fixture
def watch(faulty_api: FaultyApi, kube_namespace: str) -> Iterator[subprocess.Popen[str]]:
    path = f"/api/v1/namespaces/{kube_namespace}/configmaps"
    version = json.loads(raw(faulty_api, "get", path).stdout)["metadata"]["resourceVersion"]
    path += f"?watch=true&resourceVersion={version}"
    faulty_api.forget()
    command = [program("kubectl"), f"--kubeconfig={faulty_api.cluster.kubeconfig}", "get", f"--raw={path}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        eventually(lambda: faulty_api.watches() == 1, "the watch is open")
        yield process
        process.kill()


def test_without_faults_the_proxy_is_the_api_server(faulty_api: FaultyApi, api_server: Cluster, kube_namespace: str):
    faulty_api.cluster.apply(config_map("seen", kube_namespace))
    assert api_server.get("configmap", "seen", namespace=kube_namespace) is not None
    assert faulty_api.cluster.kubeconfig_for(f"{kube_namespace}:default") != faulty_api.cluster.kubeconfig


@pytest.mark.parametrize(("status", "reason"), [(409, "Conflict"), (500, "InternalError")])
def test_as_many_requests_fail_as_were_asked_for(faulty_api: FaultyApi, kube_namespace: str, status: int, reason: str):
    path = f"/api/v1/namespaces/{kube_namespace}/configmaps"
    fault = faulty_api.fail(status, verb="post", path="/configmaps$")
    assert f"({reason})" in raw(faulty_api, "create", path, config_map("first", kube_namespace)).stderr
    assert fault.times == 0
    assert raw(faulty_api, "create", path, config_map("first", kube_namespace)).returncode == 0
    assert [each.status for each in faulty_api.seen("post", "/configmaps$")] == [status, 201]


def test_a_client_that_is_told_to_wait_comes_back(faulty_api: FaultyApi, kube_namespace: str):
    faulty_api.fail(429, verb="get", path="/configmaps$")
    assert raw(faulty_api, "get", f"/api/v1/namespaces/{kube_namespace}/configmaps").returncode == 0
    assert [each.status for each in faulty_api.seen("get", "/configmaps$")] == [429, 200]


def test_only_what_matches_fails(faulty_api: FaultyApi, kube_namespace: str):
    faulty_api.fail(500, verb="delete", times=100)
    faulty_api.fail(500, path="/secrets", times=100)
    assert raw(faulty_api, "get", f"/api/v1/namespaces/{kube_namespace}/configmaps").returncode == 0
    assert raw(faulty_api, "get", f"/api/v1/namespaces/{kube_namespace}/secrets").returncode != 0
    faulty_api.heal()
    assert raw(faulty_api, "get", f"/api/v1/namespaces/{kube_namespace}/secrets").returncode == 0


@pytest.mark.parametrize("status", [500, None])
def test_an_answer_can_be_lost_after_the_request_was_carried_out(
    faulty_api: FaultyApi, api_server: Cluster, kube_namespace: str, status: int | None
):
    faulty_api.fail(status, verb="post", path="/configmaps$", carried_out=True)
    path = f"/api/v1/namespaces/{kube_namespace}/configmaps"
    assert raw(faulty_api, "create", path, config_map("made", kube_namespace)).returncode != 0
    assert api_server.get("configmap", "made", namespace=kube_namespace) is not None


def test_a_watch_carries_events_and_ends_when_it_is_cut(
    faulty_api: FaultyApi, api_server: Cluster, kube_namespace: str, watch: subprocess.Popen[str]
):
    api_server.apply(config_map("event", kube_namespace))
    assert watch.stdout is not None
    names = (json.loads(line)["object"]["metadata"]["name"] for line in watch.stdout)
    assert "event" in names
    assert faulty_api.cut_watches() == 1
    watch.wait(20)
    eventually(lambda: faulty_api.watches() == 0, "the watch is gone")


def test_requests_are_counted_by_verb_and_path(faulty_api: FaultyApi, kube_namespace: str, watch):
    raw(faulty_api, "get", f"/api/v1/namespaces/{kube_namespace}/configmaps/none")
    assert faulty_api.writes() == []
    assert len(faulty_api.seen("watch", "/configmaps$")) == 1
    assert [each.status for each in faulty_api.seen("get", "/configmaps/none$")] == [404]
    faulty_api.cluster.kubectl("create", "configmap", "one", "-n", kube_namespace)
    assert [each.verb for each in faulty_api.writes()] == ["post"]
    faulty_api.forget()
    assert faulty_api.seen() == []


def test_leader_election_is_not_among_the_writes(faulty_api: FaultyApi, kube_namespace: str):
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "leader", "namespace": kube_namespace},
    }
    faulty_api.cluster.apply(lease)
    assert faulty_api.writes() == []
    assert len([each for each in faulty_api.seen() if each.writes]) == 1
