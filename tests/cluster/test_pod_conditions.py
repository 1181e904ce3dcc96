"""A pod reports its conditions to a real API server, with the rights of its Role and with no others."""

from __future__ import annotations

import json
import logging
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from kube_cluster import Cluster
from waiting import eventually

from streams_operator.names import access
from streams_operator.plan.objects.identity import Identity
from streams_operator.plan.objects.pod_access import role, role_binding
from streams_runtime.kubernetes.pod_conditions import ClientView, Failure, Transitions, conditions
from streams_runtime.kubernetes.pod_status_api import Answer, ApiAccess, PodIdentity, PodStatusApi
from streams_runtime.kubernetes.reporter import Reporter
from streams_runtime.states import ClientState

pytestmark = pytest.mark.cluster

RUNNING = ClientView(ClientState.RUNNING, running_tasks=2)
ACCOUNT = access("orders")


@dataclass
class Shop:
    """A namespace with two pods, of which the operator's Role names the first, and the access of their account."""

    cluster: Cluster
    namespace: str
    access: ApiAccess

    def pod(self, name: str = "orders-0") -> dict[str, Any]:
        found = self.cluster.get("pod", name, namespace=self.namespace)
        assert isinstance(found, dict), f"no pod {name}"
        return found

    def conditions(self, name: str = "orders-0") -> dict[str, dict[str, Any]]:
        return {each["type"]: each for each in self.pod(name)["status"].get("conditions", [])}

    def api(self, name: str = "orders-0", uid: str | None = None) -> PodStatusApi:
        identity = PodIdentity(name, self.namespace, uid or self.pod(name)["metadata"]["uid"])
        return PodStatusApi(self.access, identity)

    def make_pod(self, name: str) -> None:
        self.cluster.apply(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "namespace": self.namespace},
                "spec": {
                    "serviceAccountName": ACCOUNT,
                    "readinessGates": [{"conditionType": "streamsoperator.io/Running"}],
                    "containers": [{"name": "streams", "image": "none"}],
                },
            }
        )


@pytest.fixture
def shop(api_server: Cluster, kube_namespace: str, tmp_path: Path) -> Shop:
    kubeconfig = json.loads(api_server.kubeconfig_for(f"{kube_namespace}:{ACCOUNT}").read_text())
    if file := api_server.endpoint.get("certificate-authority"):
        (tmp_path / "ca.crt").write_bytes(Path(file).read_bytes())
    else:
        pytest.skip("the certificate of this cluster's authority is not in a file")
    (tmp_path / "token").write_text(kubeconfig["users"][0]["user"]["token"])
    made = Shop(api_server, kube_namespace, ApiAccess(api_server.url, tmp_path / "token", tmp_path / "ca.crt"))
    identity = Identity("orders", kube_namespace, "")
    for each in (role(identity, 1, executors=False), role_binding(identity, None)):
        del each["metadata"]["ownerReferences"]  # there is no resource here, and what has lost its owner is collected
        api_server.apply(each)
    made.make_pod("orders-0")
    made.make_pod("orders-1")
    return made


def items(view: ClientView) -> list[Mapping[str, Any]]:
    return Transitions().status(conditions(view), datetime(2026, 1, 1, tzinfo=UTC))


def allowed_eventually(shop: Shop) -> PodStatusApi:
    """The API with its Role in force: the authoriser learns of a new binding a moment later."""
    api = shop.api()
    eventually(lambda: api.patch(items(RUNNING), 5).answer is Answer.ACCEPTED, "the Role counts")
    return api


def test_a_reporter_s_conditions_arrive_beside_those_of_others(shop: Shop) -> None:
    allowed_eventually(shop).close()
    kubelet = {"status": {"conditions": [{"type": "PodScheduled", "status": "True"}]}}
    shop.cluster.kubectl(
        *("patch", "pod", "orders-0", "-n", shop.namespace, "--subresource=status", "--type=strategic"),
        *("--patch", json.dumps(kubelet)),
    )
    views = [ClientView(ClientState.REBALANCING, restoring_tasks=1, records_left=12)]
    reporter = Reporter(shop.api(), lambda: conditions(views[-1]))
    reporter.start()
    eventually(lambda: shop.conditions()["streamsoperator.io/Restored"]["message"] == "12 records left", "the count")
    views.append(ClientView(ClientState.PENDING_ERROR, failure=Failure("ProducerException", "no room")))
    reporter.wake()
    eventually(lambda: shop.conditions()["streamsoperator.io/Running"]["reason"] == "PENDING_ERROR", "PENDING_ERROR")
    views.append(ClientView(ClientState.ERROR, failure=Failure("ProducerException", "no room")))
    assert reporter.finish(30)

    found = shop.conditions()
    assert set(found) == {
        "PodScheduled",
        *(f"streamsoperator.io/{it}" for it in ("Running", "Restored", "SparkReady", "Restartable")),
    }
    assert found["streamsoperator.io/Running"]["status"] == "False"
    assert found["streamsoperator.io/Running"]["reason"] == "ERROR"
    restartable = found["streamsoperator.io/Restartable"]
    assert (restartable["status"], restartable["reason"], restartable["message"]) == (
        "False",
        "ProducerException",
        "no room",
    )


def test_the_same_conditions_again_leave_the_pod_as_it_is(shop: Shop) -> None:
    api = allowed_eventually(shop)
    before = shop.pod()["metadata"]["resourceVersion"]
    assert api.patch(items(RUNNING), 5).answer is Answer.ACCEPTED
    api.close()
    assert shop.pod()["metadata"]["resourceVersion"] == before


def test_another_pod_s_status_is_refused_with_what_to_do(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    allowed_eventually(shop).close()
    with caplog.at_level(logging.WARNING, "streams_runtime.kubernetes"):
        reporter = Reporter(shop.api("orders-1"), lambda: conditions(RUNNING))
        reporter.start()
        eventually(lambda: bool(caplog.records), "a word about the refusal")
        assert not reporter.finish(0.5)
    assert "pods/status of orders-1" in caplog.records[0].getMessage()
    assert "403" in caplog.records[0].getMessage()
    assert "streamsoperator.io/Running" not in shop.conditions("orders-1")


def test_a_pod_that_is_gone_is_told_as_such(shop: Shop) -> None:
    api = allowed_eventually(shop)
    shop.cluster.kubectl("delete", "pod", "orders-0", "-n", shop.namespace, "--force", "--grace-period=0")
    answered = api.patch(items(RUNNING), 5)
    api.close()
    assert answered.answer is Answer.REFUSED
    assert "has been removed" in answered.text


def test_a_process_of_a_replaced_pod_never_writes_to_its_successor(shop: Shop) -> None:
    old = allowed_eventually(shop)
    shop.cluster.kubectl("delete", "pod", "orders-0", "-n", shop.namespace, "--force", "--grace-period=0")
    shop.make_pod("orders-0")
    answered = old.patch(items(RUNNING), 5)
    old.close()
    assert answered.answer is Answer.REFUSED, answered
    assert "replaced" in answered.text
    assert "streamsoperator.io/Running" not in shop.conditions()


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "pods", None),
        ("GET", "pods/orders-1", None),
        ("GET", "secrets", None),
        ("GET", "configmaps", None),
        ("PATCH", "pods/orders-0", {"metadata": {"labels": {"mine": "true"}}}),
        ("PATCH", "pods/orders-1/status", {"status": {"message": "hello"}}),
        ("PUT", "pods/orders-0/status", {"status": {}}),
        ("DELETE", "pods/orders-0", None),
        ("POST", "pods", {"metadata": {"name": "more"}}),
    ],
)
def test_nothing_else_is_allowed(method: str, path: str, body: object, shop: Shop) -> None:
    allowed_eventually(shop).close()
    trust = ssl.create_default_context(cafile=str(shop.access.authority))
    with httpx.Client(verify=trust, trust_env=False) as http:
        answer = http.request(
            method,
            f"{shop.access.url}/api/v1/namespaces/{shop.namespace}/{path}",
            content=None if body is None else json.dumps(body),
            headers={
                "Authorization": f"Bearer {shop.access.token.read_text()}",
                "Content-Type": "application/strategic-merge-patch+json" if method == "PATCH" else "application/json",
            },
        )
    assert answer.status_code == 403, answer.text
