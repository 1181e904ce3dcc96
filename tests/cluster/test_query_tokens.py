"""Tokens of a cluster, presented to queries and reviewed by a real API server."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import asgi
import pytest
import yaml
from helm import CHART, helm
from kube_cluster import Cluster
from prometheus_client import CollectorRegistry
from query_fakes import client_with
from waiting import eventually

from streams_runtime.api.spec.queries_spec import KubernetesAccess, QueriesSpec, QueryAccess
from streams_runtime.kubernetes.pod_status_api import ApiAccess
from streams_runtime.kubernetes.query_guard import pod_guard
from streams_runtime.query.server import token_access
from streams_runtime.query.server.access import Gate
from streams_runtime.query.server.http_app import create_app

pytestmark = pytest.mark.cluster

POD_ACCOUNT = "orders-streams"
Ask = Callable[[str], asgi.Answer]


class Switch:
    """The gate of an application of endpoints, which takes a while to make."""

    gate: Gate

    async def admit(self, authorization: str | None, address: str) -> None:
        await self.gate.admit(authorization, address)


switch = Switch()
app = create_app(client_with(0, 1, 2), CollectorRegistry(), switch)


@pytest.fixture
def pod_access(api_server: Cluster, kube_namespace: str, tmp_path: Path) -> ApiAccess:
    """The API server as the pod's own account reaches it; without any right yet."""
    if not (authority := api_server.endpoint.get("certificate-authority")):
        pytest.skip("the certificate of this cluster's authority is not in a file")
    (tmp_path / "token").write_text(token_of(api_server, kube_namespace, POD_ACCOUNT))
    return ApiAccess(api_server.url, tmp_path / "token", Path(authority))


@pytest.fixture(params=["administrator", "chart"])
def delegator(request: pytest.FixtureRequest, api_server: Cluster, kube_namespace: str) -> Iterator[None]:
    """The right to have tokens reviewed, as an administrator gives it to an account, or the chart to a namespace."""
    if request.param == "administrator":
        account = f"--serviceaccount={kube_namespace}:{POD_ACCOUNT}"
        command = ("create", "clusterrolebinding", kube_namespace, "--clusterrole=system:auth-delegator", account)
        api_server.kubectl(*command)
        yield
        api_server.kubectl("delete", "clusterrolebinding", kube_namespace)
        return
    options = (
        "--kube-version=1.34.4",
        "--show-only=templates/rbac.yaml",
        f"--set=rbac.tokenReviewNamespaces={{{kube_namespace}}}",
    )
    made = yaml.safe_load_all(helm("template", kube_namespace, str(CHART), *options).stdout)
    given = [each for each in made if each and each["metadata"]["name"].endswith("-token-reviews")]
    api_server.apply(*given)
    yield
    for each in given:
        api_server.kubectl("delete", each["kind"], each["metadata"]["name"])


def token_of(cluster: Cluster, namespace: str, account: str, *options: str) -> str:
    metadata = {"name": account, "namespace": namespace}
    cluster.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})
    return cluster.kubectl("create", "token", account, f"--namespace={namespace}", *options).stdout.strip()


def asking(namespace: str, access: ApiAccess, **who: Any) -> Ask:
    """Asks a pod of `namespace` whose resource lets `who` in, with a token."""
    spec = QueriesSpec(access=QueryAccess(kubernetes=KubernetesAccess.model_validate(who)))
    gate = pod_guard(spec, namespace, access, Path("no-secrets")).gate
    assert gate is not None

    def ask(token: str) -> asgi.Answer:
        switch.gate = gate
        return asyncio.run(asgi.get(app, "/stores/counts/keys/UA", {"Authorization": f"Bearer {token}"}))

    return ask


def test_without_the_right_to_review_nobody_is_let_in_and_the_answer_names_the_right(
    api_server: Cluster, kube_namespace: str, pod_access: ApiAccess
) -> None:
    ask = asking(kube_namespace, pod_access, serviceAccounts=["reports"])
    answer = ask(token_of(api_server, kube_namespace, "reports"))
    assert (answer.status, answer.json()["title"]) == (503, "AccessNotCheckedException")
    assert "system:auth-delegator" in answer.json()["detail"]


@pytest.mark.usefixtures("delegator")
def test_tokens_count_by_account_group_and_audience(
    api_server: Cluster, kube_namespace: str, pod_access: ApiAccess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(token_access, "REVIEW_CACHE_SECONDS", 0.0)
    reports, other = (token_of(api_server, kube_namespace, name) for name in ("reports", "other"))
    ask = asking(kube_namespace, pod_access, serviceAccounts=["reports"])
    eventually(lambda: ask(reports).status == 200, "the binding counts")
    assert (ask(other).status, ask("invented").status, ask(reports + "x").status) == (403, 401, 401)
    assert f"system:serviceaccount:{kube_namespace}:other" in ask(other).json()["detail"]

    by_group = asking(kube_namespace, pod_access, groups=[f"system:serviceaccounts:{kube_namespace}"])
    assert by_group(other).status == 200
    assert asking("elsewhere", pod_access, serviceAccounts=["reports"])(reports).status == 403
    qualified = asking("elsewhere", pod_access, serviceAccounts=[f"{kube_namespace}/reports"])
    assert qualified(reports).status == 200

    for_queries = asking(kube_namespace, pod_access, serviceAccounts=["reports"], audience="queries")
    made_for_it = token_of(api_server, kube_namespace, "reports", "--audience=queries")
    assert (for_queries(made_for_it).status, for_queries(reports).status) == (200, 401)
    assert ask(made_for_it).status == 401, "nor does it open what is for the API server's own audience"

    api_server.kubectl("delete", "serviceaccount", "reports", f"--namespace={kube_namespace}")
    eventually(lambda: ask(reports).status == 401, "the token of an account that is gone")


def test_an_api_server_that_does_not_answer_lets_nobody_in(pod_access: ApiAccess, kube_namespace: str) -> None:
    away = dataclasses.replace(pod_access, url="https://127.0.0.1:1")
    answer = asking(kube_namespace, away, serviceAccounts=["reports"])("any")
    assert (answer.status, answer.json()["remedy"], answer.headers["retry-after"]) == (503, "retry", "1")
