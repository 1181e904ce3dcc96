"""The operator under the chart's own rights: it needs each of them, and asks for nothing else."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from helm import CHART, helm
from kube_cluster import Cluster
from kube_faults import FaultyApi, Seen, faulty_api
from operator_kit import OperatorProcess, operator
from operator_stage import Stage
from waiting import eventually

from streams_operator.plan.objects.identity import Identity
from streams_operator.plan.objects.pod_access import role

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("crd"), pytest.mark.timeout(300)]

Right = tuple[str, str, str]
"""(API group, resource with its subresource, verb)."""
_PATH = re.compile(
    r"/(?:api|apis/(?P<group>[^/]+))/v1(?:alpha1)?/(?:namespaces/[^/]+/)?(?P<resource>[a-z]+)"
    r"(?:/(?P<name>[^/]+))?(?:/(?P<subresource>[a-z]+))?"
)
_VERBS = {"post": "create", "put": "update", "patch": "patch", "delete": "delete", "watch": "watch"}
# By the admission of owner references that block a deletion, not by a request of its own.
_FINALIZERS: Right = ("streamsoperator.io", "streamsapplications/finalizers", "update")


@pytest.fixture
def release(api_server: Cluster, namespace: str) -> Iterator[str]:
    """Name of a release, of its namespace and of its account."""
    name = f"streams-operator-{namespace[-8:]}"
    api_server.kubectl("create", "namespace", name)
    yield name
    of_release = f"--selector=app.kubernetes.io/instance={name}"
    api_server.kubectl("delete", "clusterroles,clusterrolebindings", of_release)
    api_server.kubectl("delete", "namespace", name, "--wait=false")


def rights_of(rules: Iterable[Mapping[str, Any]]) -> set[Right]:
    return {
        (group, resource, verb)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def used(seen: Iterable[Seen]) -> Iterator[Right]:
    """The rights that the requests needed."""
    for each in seen:
        path = _PATH.fullmatch(each.path)
        if path is None:
            continue
        resource = "/".join(filter(None, (path["resource"], path["subresource"])))
        verb = _VERBS.get(each.verb) or ("get" if path["name"] else "list")
        yield path["group"] or "", resource, verb
        if verb == "patch" and each.status == 201:  # an apply that made the object
            yield path["group"] or "", resource, "create"


def install(cluster: Cluster, release: str, *options: str) -> set[Right]:
    """The chart's account and its rights, without what would need a node; what they allow."""
    common = ("--kube-version=1.34.4", f"--namespace={release}", "--set=rbac.aggregateToDefaultRoles=false")
    shown = [f"--show-only=templates/{each}.yaml" for each in ("rbac", "serviceaccount")]
    text = helm("template", release, str(CHART), *common, *shown, *options).stdout
    parts = [each for each in yaml.safe_load_all(text) if each]
    cluster.apply(*parts)
    return rights_of(rule for each in parts for rule in each.get("rules") or ())


@contextmanager
def under(api: FaultyApi, release: str, stage: Stage, folder: Path, **settings: str) -> Iterator[OperatorProcess]:
    """The operator with the release's account, seen by the proxy."""
    document = json.loads(stage.cluster.kubeconfig_for(f"{release}:{release}").read_text())
    (folder / "account").mkdir()
    as_account = Cluster(folder / "account", api.cluster.endpoint, document["users"][0]["user"]["token"], False)
    lease = {"lease_namespace": release, "lease_name": release}
    with operator(as_account, stage.namespace, folder, **lease, **settings) as process:
        yield process


def label_of(stage: Stage, kind: str, name: str) -> str:
    labels = stage.cluster.get(kind, name, namespace=stage.namespace)["metadata"]["labels"]
    return str(labels["app.kubernetes.io/name"])


def live(stage: Stage, api: FaultyApi) -> None:
    """A life in which everything happens that an operator may ever have to do."""
    metadata = {"name": "client", "namespace": stage.namespace}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"linger.ms": "5"}}
    stage.cluster.apply(secret)
    spec: dict[str, Any] = {"state": {"storage": {"size": "1Gi"}}}
    kafka = {"bootstrapServers": stage.bootstrap, "secretRef": {"name": "client"}}
    stage.apply(replicas=2, kafka=kafka, **spec)
    stage.reaches("RUNNING", "2/2")
    # The same event twice: it is counted.
    for replicas in (1, 2):
        stage.merge(json.dumps({"spec": {"replicas": replicas}}))
        stage.reaches("RUNNING", f"{replicas}/{replicas}")
    # Another version: the ConfigMap of the one before goes.
    stage.merge('{"spec": {"processing": {"maxBatchRecords": 7}}}')
    eventually(lambda: api.seen("delete", "/configmaps/"), "the ConfigMap of the version before is deleted", 60)
    stage.merge('{"spec": {"networkPolicy": {"enabled": true}}}')
    eventually(lambda: stage.kinds("networkpolicy") == ["app"], "the policy is made")
    # Drift is mended: every kind is applied to what is there, and read first where it no longer shows that it is ours.
    drift = '{"metadata": {"labels": {"app.kubernetes.io/name": "else", "streamsoperator.io/application": null}}}'
    eventually(lambda: len(stage.kinds("configmap")) == 1, "one version is left")
    for kind, name in (
        *(
            ("service", "app"),
            ("poddisruptionbudget", "app"),
            ("networkpolicy", "app"),
            ("serviceaccount", "app-streams"),
        ),
        *(("role", "app-streams"), ("rolebinding", "app-streams"), ("persistentvolumeclaim", "state-app-0")),
        ("configmap", stage.kinds("configmap")[0]),
    ):
        where = f"--namespace={stage.namespace}"
        stage.cluster.kubectl("patch", kind, name, where, "--type=merge", f"--patch={drift}")
        eventually(lambda kind=kind, name=name: label_of(stage, kind, name) == "app", f"{kind} is mended")
    # What is no longer asked for goes.
    stage.merge('{"spec": {"disruptionBudget": {"enabled": false}, "networkPolicy": {"enabled": false}}}')
    for kind in ("poddisruptionbudget", "networkpolicy"):
        eventually(lambda kind=kind: stage.kinds(kind) == [], f"the {kind} is deleted")
    # The shutdown of the application: a pod is told by its annotation.
    stage.reaches("RUNNING", "2/2")
    words = {"state": "ERROR", "class": "LockException", "message": "in use", "shutdown": "application"}
    stage.kubelet.end("app-1", 70, words)
    eventually(lambda: api.seen("patch", "/pods/app-0$"), "the other pod is told")
    # A reset: the volumes go, of which nothing here takes off what protects them.
    stage.merge('{"spec": {"suspend": true, "reset": {"nonce": 1, "to": "earliest"}}}')
    for name in stage.kinds("pvc"):
        eventually(lambda name=name: api.seen("delete", f"/{name}$"), f"{name} is deleted", 60)
        stage.cluster.kubectl(
            *("patch", "pvc", name, f"--namespace={stage.namespace}", "--type=merge"),
            '--patch={"metadata": {"finalizers": null}}',
        )
    eventually(lambda: stage.status()["reset"]["state"] == "Done", "the reset is done", 60)
    stage.delete("--timeout=60s")


@pytest.mark.parametrize("namespaced", [True, False], ids=["namespace", "cluster"])
def test_the_operator_needs_every_right_that_the_chart_gives_it_and_no_other(
    stage: Stage, release: str, tmp_path: Path, namespaced: bool
):
    allowed = install(stage.cluster, release, *([f"--set=watchNamespaces={{{stage.namespace}}}"] if namespaced else []))
    with faulty_api(stage.cluster) as api, under(api, release, stage, tmp_path):
        live(stage, api)
        seen = [each for each in api.seen() if not each.agent.startswith("kubectl")]
    assert [each for each in seen if each.status == 403] == []
    given_to_pods = rights_of(role(Identity("app", stage.namespace, ""), 1, executors=False)["rules"])
    needed = {*used(seen), *given_to_pods, _FINALIZERS}
    assert allowed - needed == set(), "a right that is not needed"
    assert needed - allowed == set(), "a right that the chart does not give"
