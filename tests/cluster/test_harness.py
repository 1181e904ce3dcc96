"""The API server that the tests of this folder use is a real one, and nothing of it stays."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import pytest
from kube_cluster import Cluster
from kube_traces import held_by_another_process, processes_with
from waiting import eventually

pytestmark = pytest.mark.cluster


def config_map(name: str, namespace: str, **metadata: object) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace, **metadata}}


def test_the_administrator_may_do_everything(api_server: Cluster):
    assert api_server.kubectl("auth", "can-i", "*", "*", "--all-namespaces").stdout.strip() == "yes"


def test_the_kubeconfig_is_enough_for_another_program(api_server: Cluster):
    run = ["kubectl", f"--kubeconfig={api_server.kubeconfig}", "get", "--raw=/readyz"]
    assert subprocess.run(run, capture_output=True, text=True, check=True, timeout=20).stdout == "ok"


def test_a_failing_kubectl_says_what_kubectl_said(api_server: Cluster, kube_namespace: str):
    with pytest.raises(AssertionError, match='configmaps "none" not found'):
        api_server.kubectl("get", "configmap", "none", f"--namespace={kube_namespace}")


def test_an_identity_has_the_rights_that_it_was_given_and_no_others(api_server: Cluster, kube_namespace: str):
    user = f"{kube_namespace}:reader"
    kubeconfig = api_server.kubeconfig_for(user)

    def may(verb: str, resource: str) -> bool:
        command = ["kubectl", f"--kubeconfig={kubeconfig}", "auth", "can-i", verb, resource, "-n", kube_namespace]
        return subprocess.run(command, capture_output=True, check=False, timeout=20).returncode == 0

    assert not may("get", "pods")
    api_server.kubectl("create", "role", "reader", "--verb=get", "--resource=pods", "-n", kube_namespace)
    api_server.kubectl(
        "create", "rolebinding", "reader", "--role=reader", f"--serviceaccount={user}", "-n", kube_namespace
    )
    eventually(lambda: may("get", "pods"), "the role counts")
    assert not may("delete", "pods")
    assert not may("get", "secrets")


def test_a_user_that_is_no_service_account_is_refused(api_server: Cluster):
    with pytest.raises(ValueError, match="Give NAMESPACE:NAME"):
        api_server.kubeconfig_for("jane")


def test_owned_objects_are_collected_while_the_controllers_run(api_server: Cluster, kube_namespace: str, controllers):
    api_server.apply(config_map("owner", kube_namespace))
    owner = api_server.get("configmap", "owner", namespace=kube_namespace)
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
    api_server.apply(config_map("owned", kube_namespace, ownerReferences=[reference]))
    api_server.kubectl("delete", "configmap", "owner", "-n", kube_namespace)
    eventually(lambda: api_server.get("configmap", "owned", namespace=kube_namespace) is None, "it was collected")


def test_what_a_test_leaves_is_removed_with_its_finalizers(pytester: pytest.Pytester, api_server: Cluster):
    inner = """
    import json

    def test_that_leaves_something(api_server, kube_namespace):
        held = {"name": "held", "namespace": kube_namespace, "finalizers": ["example.org/never"]}
        api_server.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": held})
    """
    pytester.makepyfile(inner)
    pytester.makeconftest(
        f"""
        import json
        from pathlib import Path
        import pytest
        from kube_cluster import Cluster

        @pytest.fixture(scope="session")
        def api_server():
            endpoint = json.loads({json.dumps(json.dumps(api_server.endpoint))})
            return Cluster(Path({str(pytester.path)!r}), endpoint, {api_server.token!r}, has_controllers=False)

        @pytest.fixture
        def namespace():
            return "left-behind"
        """
    )
    pytester.runpytest_inprocess("-p", "kube_fixtures").assert_outcomes(passed=1)
    assert api_server.get("configmap", "held", namespace="left-behind") is None


def test_an_api_server_dies_with_the_run_that_is_killed(tmp_path: Path):
    imports = "from kube_api_server import api_server"
    with held_by_another_process(imports, "api_server()", tmp_path) as run:
        assert len(processes_with(str(tmp_path))) > 1
        run.kill()
        eventually(lambda: not processes_with(str(tmp_path)), "its processes are gone")


def test_an_interrupted_run_leaves_no_files(tmp_path: Path):
    with held_by_another_process("from kube_api_server import api_server", "api_server()", tmp_path) as run:
        run.send_signal(signal.SIGINT)
        run.wait(60)
    assert list(tmp_path.iterdir()) == []
    assert not processes_with(str(tmp_path))
