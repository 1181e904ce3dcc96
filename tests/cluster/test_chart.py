"""The chart through Helm: what it makes of its values, and its life in a cluster."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from helm import CHART, helm
from kube_binaries import program
from kube_cluster import Cluster
from waiting import eventually

from streams_operator.operator_settings import read_settings
from streams_operator.plan.objects.identity import Identity
from streams_operator.plan.objects.pod_access import role
from streams_operator.shards import Shard

pytestmark = pytest.mark.cluster

ROOT = Path(__file__).parents[2]
GOLDEN = Path(__file__).parent / "golden"
SETS = sorted(file.name.removesuffix(".values.yaml") for file in GOLDEN.glob("*.values.yaml"))
WRITE_VARIABLE = "STREAMSAPP_WRITE_GOLDEN"
"""Set to anything: the expectations are written anew, and the tests fail so that somebody looks at the difference."""
_VERSION = "1.34.4"
_TIMEOUT = 120.0
_MADE_BY_HELM = re.compile(r"(caBundle|ca\.crt|tls\.crt|tls\.key): [A-Za-z0-9+/=]+$", re.MULTILINE)
Object = dict[str, Any]


def rendered(*options: str) -> str:
    common = ("--kube-version", _VERSION, "--namespace", "streams-system")
    return helm("template", "release", str(CHART), *common, *options).stdout


def objects(text: str) -> list[Object]:
    return [each for each in yaml.safe_load_all(text) if each]


def golden(values: str) -> list[Object]:
    return objects((GOLDEN / f"{values}.expected.yaml").read_text(encoding="utf-8"))


def of_kind(found: list[Object], kind: str, name: str = "") -> Object:
    return next(each for each in found if each["kind"] == kind and name in each["metadata"]["name"])


@pytest.mark.parametrize("values", SETS)
def test_lint_finds_nothing(values: str):
    assert "0 chart(s) failed" in helm("lint", "--strict", str(CHART), f"--values={GOLDEN / values}.values.yaml").stdout


@pytest.mark.parametrize("values", SETS)
def test_the_objects_are_the_expected_ones(values: str):
    text = rendered(f"--values={GOLDEN / values}.values.yaml")
    # The definition is compared with its own file.
    parts = [part for part in text.split("---\n") if "templates/crd.yaml" not in part]
    found = _MADE_BY_HELM.sub(r"\1: made-by-helm", "---\n".join(parts))
    file = GOLDEN / f"{values}.expected.yaml"
    if os.environ.get(WRITE_VARIABLE):
        file.write_text(found, encoding="utf-8")
        pytest.fail(f"{file.name} was written; look at the difference and unset {WRITE_VARIABLE}")
    assert found == file.read_text(encoding="utf-8"), f"set {WRITE_VARIABLE} to write it anew"


def test_the_definition_is_installed_as_it_is():
    found = of_kind(objects(rendered()), "CustomResourceDefinition")
    assert found == yaml.safe_load((ROOT / "crds" / "streamsapplications.yaml").read_text(encoding="utf-8"))
    assert found["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"
    assert "CustomResourceDefinition" not in rendered("--set=crds.install=false")


@pytest.mark.parametrize("values", SETS)
def test_every_pod_meets_the_restricted_standard(values: str):
    for each in golden(values):
        if each["kind"] not in ("Deployment", "Job", "Pod"):
            continue
        pod = each["spec"] if each["kind"] == "Pod" else each["spec"]["template"]["spec"]
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in pod["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }


def test_an_operator_of_namespaces_has_no_rights_in_the_others():
    found = golden("namespaced")
    cluster = of_kind(found, "ClusterRole")
    assert {verb for rule in cluster["rules"] for verb in rule["verbs"]} == {"list", "watch"}
    assert [rule["resources"] for rule in cluster["rules"]] == [["customresourcedefinitions"], ["namespaces"]]
    homes = {each["metadata"]["namespace"] for each in found if each["kind"] == "Role"}
    assert homes == {"shop", "billing", "streams-system"}
    rules = of_kind(golden("defaults"), "ClusterRole", "streams-operator")["rules"]
    assert of_kind(found, "Role", "streams-system-release-streams-operator")["rules"] == rules[2:]


def test_each_shard_has_operators_that_may_renew_its_lease():
    found = golden("sharded")
    leases = next(rule for rule in of_kind(found, "Role", "election")["rules"] if "update" in rule["verbs"])
    given = []
    for each in (each for each in found if each["kind"] == "Deployment"):
        container = each["spec"]["template"]["spec"]["containers"][0]
        given.append(read_settings({variable["name"]: variable.get("value", "") for variable in container["env"]}))
        assert each["spec"]["selector"]["matchLabels"].items() <= each["spec"]["template"]["metadata"]["labels"].items()
    assert [each.shard for each in given] == [Shard(0, 2), Shard(1, 2)]
    assert [each.shard.lease(each.lease_name) for each in given] == leases["resourceNames"]


def test_no_rule_allows_everything():
    for values in SETS:
        for each in golden(values):
            for rule in each.get("rules") or ():
                assert "*" not in [*rule["apiGroups"], *rule["resources"], *rule["verbs"]]


WRONG = {
    "replicas=two": "replicas",
    "replicas=-1": "replicas",
    "replica=2": "replica",
    "operator.shards=0": "operator.shards",
    "operator.shard=2": "operator",
    "log.level=LOUD": "log.level",
    "image.pullPolicy=Sometimes": "image.pullPolicy",
    "image.repository=": "image.repository",
    "image.repository=streams@sha256:c0ffee": "image.repository",
    "image.tag=1.0:2": "image.tag",
    "image.digest=c0ffee": "image.digest",
    "runtime.image.digest=sha256:c0ffee": "runtime.image.digest",
    "watchNamespaces={Shop}": "watchNamespaces.0",
    "deleteDeadline=-1": "deleteDeadline",
    "runAsUser=0": "runAsUser",
    "runtime.runAsUser=0": "runtime.runAsUser",
    "runtime.resources.memory=1Gi": "runtime.resources",
    "serviceAccount.create=false": "serviceAccount",
    "serviceMonitor.interval=often": "serviceMonitor.interval",
    "rbac.executorsAsPods=some": "rbac.executorsAsPods",
    "webhook.failurePolicy=Maybe": "webhook.failurePolicy",
    "webhook.certificate.source=bought": "webhook.certificate.source",
    "networkPolicy.enable=true": "networkPolicy",
}


@pytest.mark.parametrize("value", WRONG)
def test_wrong_values_are_refused_with_their_name(value: str):
    common = ("--kube-version", _VERSION)
    done = helm("template", "release", str(CHART), *common, f"--set={value}", check=False)
    assert done.returncode != 0
    assert WRONG[value].replace(".", "/") in done.stderr.replace(".", "/")


@pytest.fixture
def release(api_server: Cluster, namespace: str) -> Iterator[str]:
    """Name of a release, of its namespace and of its objects, which are all gone afterwards."""
    name = f"streams-operator-{namespace[-8:]}"
    yield name
    helm("uninstall", name, "--namespace", name, "--no-hooks", "--ignore-not-found", cluster=api_server)
    api_server.kubectl("delete", "namespace", name, "--ignore-not-found", "--wait=false")


def install(cluster: Cluster, release: str, *options: str, chart: Path = CHART, command: str = "install") -> str:
    # The tests of a run share one definition, which other tests may have applied by other means.
    common = ("--namespace", release, "--create-namespace", "--take-ownership")
    return helm(command, release, str(chart), *common, *options, cluster=cluster).stdout


def columns(cluster: Cluster) -> list[str]:
    definition = cluster.get("crd", "streamsapplications.streamsoperator.io")
    return [each["name"] for each in definition["spec"]["versions"][0]["additionalPrinterColumns"]]


def application(namespace: str, name: str = "orders") -> Object:
    source = {"name": "orders", "topic": "orders", "value": {"format": "string"}}
    return {
        "apiVersion": "streamsoperator.io/v1alpha1",
        "kind": "StreamsApplication",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"topology": {"sources": [source]}},
    }


def older_chart(folder: Path) -> Path:
    """The chart with a definition that has one column less."""
    shutil.copytree(CHART, folder / "older")
    file = folder / "older" / "files" / "streamsapplications.yaml"
    definition = yaml.safe_load(file.read_text(encoding="utf-8"))
    shown = definition["spec"]["versions"][0]["additionalPrinterColumns"]
    shown[:] = [each for each in shown if each["name"] != "Setup"]
    file.write_text(yaml.safe_dump(definition), encoding="utf-8")
    return folder / "older"


def test_install_upgrade_uninstall(api_server: Cluster, release: str, kube_namespace: str, tmp_path: Path):
    notes = install(api_server, release, chart=older_chart(tmp_path))
    assert f"helm test {release} --namespace {release}" in notes
    of_release = f"app.kubernetes.io/instance={release}"
    assert len(api_server.find("clusterrole,clusterrolebinding", selector=of_release)) == 4
    assert api_server.get("deployment", release, namespace=release)["spec"]["replicas"] == 2
    assert "Setup" not in columns(api_server)
    eventually(lambda: api_server.is_established("streamsapplications.streamsoperator.io"), "it is established")
    eventually(
        lambda: api_server.kubectl("get", "streamsapps", "-n", kube_namespace, check=False).returncode == 0,
        "the definition is served",
    )
    api_server.apply(application(kube_namespace))

    install(api_server, release, "--set=replicas=3", command="upgrade")
    assert api_server.get("deployment", release, namespace=release)["spec"]["replicas"] == 3
    assert "Setup" in columns(api_server)

    helm("uninstall", release, "--namespace", release, "--no-hooks", cluster=api_server)
    assert api_server.find("deployment,service,serviceaccount,role,secret", release, of_release) == []
    assert api_server.find("clusterrole,clusterrolebinding", selector=of_release) == []
    assert "Setup" in columns(api_server)
    assert api_server.get("streamsapp", "orders", namespace=kube_namespace) is not None


def test_the_webhooks_certificate_survives_upgrades(api_server: Cluster, release: str):
    def certificate() -> tuple[Object, str]:
        secret = api_server.get("secret", f"{release}-webhook", namespace=release)
        webhook = api_server.get("validatingwebhookconfiguration", f"{release}-{release}")
        return secret["data"], webhook["webhooks"][0]["clientConfig"]["caBundle"]

    install(api_server, release, "--set=webhook.enabled=true")
    data, authority = certificate()
    assert data["ca.crt"] == authority
    assert base64.b64decode(data["tls.crt"]).startswith(b"-----BEGIN CERTIFICATE-----")
    install(api_server, release, "--set=webhook.enabled=true,replicas=1", command="upgrade")
    assert certificate() == (data, authority)


def test_a_webhook_without_an_operator_stops_no_deletion(api_server: Cluster, release: str, kube_namespace: str):
    install(api_server, release)
    held = application(kube_namespace)
    held["metadata"]["finalizers"] = ["streamsoperator.io/close-in-order"]
    api_server.apply(held)
    install(api_server, release, "--set=webhook.enabled=true,webhook.failurePolicy=Fail", command="upgrade")
    eventually(
        lambda: "failed calling webhook" in create(api_server, application(kube_namespace, "another")),
        "the API server asks the webhook",
    )
    patch = ("patch", "streamsapp", "orders", "-n", kube_namespace, "--type=merge")
    api_server.kubectl("delete", "streamsapp", "orders", "-n", kube_namespace, "--wait=false")
    api_server.kubectl(*patch, '--patch={"metadata":{"finalizers":null}}')
    assert api_server.get("streamsapp", "orders", namespace=kube_namespace) is None


def create(cluster: Cluster, document: Object) -> str:
    command = ("create", "--filename=-", "--dry-run=server")
    return cluster.kubectl(*command, input=json.dumps(document), check=False).stderr


def pod_role(namespace: str, name: str, verbs: list[str]) -> list[Object]:
    """As the operator makes them for the pods of an application."""
    metadata = {"name": name, "namespace": namespace}
    return [
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "Role",
            "metadata": metadata,
            "rules": [
                {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"], "resourceNames": ["orders-0"]},
                {"apiGroups": [""], "resources": ["pods/status"], "verbs": verbs, "resourceNames": ["orders-0"]},
            ],
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": metadata,
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
        },
    ]


def apply_as(kubeconfig: Path, found: list[Object]) -> str:
    """What stands against it; "" when all was applied."""
    command = [program("kubectl"), f"--kubeconfig={kubeconfig}", "apply", "--server-side", "--filename=-"]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": found})
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=_TIMEOUT, check=False)
    return done.stderr if done.returncode else ""


def test_the_operator_can_give_pods_their_rights_and_no_more(api_server: Cluster, release: str, kube_namespace: str):
    install(api_server, release, f"--set=watchNamespaces={{{kube_namespace}}}")
    operator = api_server.kubeconfig_for(f"{release}:{release}")
    eventually(
        lambda: apply_as(operator, pod_role(kube_namespace, "orders-streams", ["patch"])) == "", "the Role counts"
    )
    more = apply_as(operator, pod_role(kube_namespace, "greedy", ["patch", "update"]))
    assert "attempting to grant RBAC permissions not currently held" in more
    assert "forbidden" in apply_as(operator, pod_role("default", "orders-streams", ["patch"]))


@pytest.mark.parametrize("namespaced", [True, False], ids=["namespace", "cluster"])
def test_only_where_executors_may_be_pods_can_the_operator_let_pods_make_pods(
    api_server: Cluster, release: str, kube_namespace: str, namespaced: bool
):
    where = (f"--set=watchNamespaces={{{kube_namespace}}}",) if namespaced else ()
    install(api_server, release, *where)
    operator = api_server.kubeconfig_for(f"{release}:{release}")
    executors = role(Identity("orders", kube_namespace, ""), 1, executors=True)
    del executors["metadata"]["ownerReferences"]  # there is no resource here
    refused = "attempting to grant RBAC permissions not currently held"
    eventually(lambda: refused in apply_as(operator, [executors]), "the operator's other rights count")
    install(api_server, release, *where, "--set=rbac.executorsAsPods=true", command="upgrade")
    eventually(lambda: apply_as(operator, [executors]) == "", "the right counts")


def test_after_the_uninstall_job_no_application_waits_for_an_operator(
    api_server: Cluster, release: str, kube_namespace: str
):
    """The Job's own account and script, without the pod that there is no node for."""
    api_server.kubectl("create", "namespace", release)
    install(api_server, release)
    options = ("--namespace", release, "--kube-version", _VERSION, "--show-only", "templates/uninstall.yaml")
    parts = objects(helm("template", release, str(CHART), *options).stdout)
    job = of_kind(parts, "Job")
    for part in parts:
        if part["kind"] != "Job":
            api_server.apply(part)
    held = application(kube_namespace)
    held["metadata"]["finalizers"] = ["example.com/another", "streamsoperator.io/close-in-order"]
    deleted = application(kube_namespace, "deleted")
    deleted["metadata"]["finalizers"] = ["streamsoperator.io/close-in-order"]
    api_server.apply(held)
    api_server.apply(deleted)
    api_server.kubectl("delete", "streamsapp", "deleted", "-n", kube_namespace, "--wait=false")

    container = job["spec"]["template"]["spec"]["containers"][0]
    account = job["spec"]["template"]["spec"]["serviceAccountName"]
    kubeconfig = api_server.kubeconfig_for(f"{release}:{account}")
    run = subprocess.run(
        [sys.executable, *container["command"][1:], *container["args"]],
        env={each["name"]: each["value"] for each in container["env"]} | {"KUBECONFIG": str(kubeconfig)},
        capture_output=True,
        text=True,
        timeout=_TIMEOUT,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert f"released {kube_namespace}/orders\n" in run.stdout
    left = api_server.get("streamsapp", "orders", namespace=kube_namespace)
    assert left["metadata"]["finalizers"] == ["example.com/another"]
    assert api_server.get("streamsapp", "deleted", namespace=kube_namespace) is None
    patch = ("patch", "streamsapp", "orders", "-n", kube_namespace, "--type=merge")
    api_server.kubectl(*patch, '--patch={"metadata":{"finalizers":null}}')
