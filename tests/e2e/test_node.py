"""The node that the tests of this folder use runs real pods, and nothing of it stays on the machine."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from pathlib import Path

import kube_init
import pytest
from kube_isolation import remove_groups_of_the_dead
from kube_kafka import KafkaInCluster
from kube_node import Node, one_node
from kube_node_config import PAUSE_IMAGE
from kube_pods import finished, pod
from kube_sources import made_elsewhere
from kube_traces import held_by_another_process, namespace_of, namespaces_with, processes, processes_with, running_in
from waiting import eventually

from streams_runtime.kafka.admin.kafka_admin import Admin
from streams_runtime.kafka.types import TopicSpec

pytestmark = pytest.mark.e2e

ARCHIVED_CLASSES = Path(__file__).parents[1] / "support" / "archived_classes.py"
TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount"
ASKS_FOR_ITS_NAMESPACE = f"""
import json, os, ssl, urllib.request
token, namespace = (open("{TOKEN}/" + name).read() for name in ("token", "namespace"))
url = f"https://kubernetes.default.svc/api/v1/namespaces/{{namespace}}/pods"
request = urllib.request.Request(url, headers={{"Authorization": "Bearer " + token}})
context = ssl.create_default_context(cafile="{TOKEN}/ca.crt")
pods = json.load(urllib.request.urlopen(request, context=context))["items"]
print(json.dumps([pod["metadata"]["name"] for pod in pods]))
"""


def python(code: str) -> list[str]:
    return ["python", "-c", code]


def test_the_node_is_ready(node: Node):
    nodes = node.cluster.find("nodes")
    ready = [each["status"] for one in nodes for each in one["status"]["conditions"] if each["type"] == "Ready"]
    assert ready
    assert set(ready) == {"True"}


def test_a_pod_reaches_the_api_server_with_its_token(node: Node, node_namespace: str, operator_image: str):
    scope = f"--namespace={node_namespace}"
    node.cluster.kubectl("create", "role", "reader", "--verb=list", "--resource=pods", scope)
    account = f"--serviceaccount={node_namespace}:default"
    node.cluster.kubectl("create", "rolebinding", "reader", "--role=reader", account, scope)
    node.cluster.apply(pod("asks", node_namespace, operator_image, python(ASKS_FOR_ITS_NAMESPACE)))
    assert json.loads(finished(node.cluster, "asks", node_namespace)) == ["asks"]


def test_a_pod_has_a_name_in_its_headless_service(node: Node, node_namespace: str, operator_image: str):
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "group", "namespace": node_namespace},
        "spec": {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": {"app": "named"}},
    }
    waits = python("import signal; signal.sigwait({signal.SIGTERM})")
    names = {"hostname": "named", "subdomain": "group"}
    node.cluster.apply(service, pod("named", node_namespace, operator_image, waits, **names))
    node.cluster.kubectl("wait", "--for=condition=Ready", "pod/named", f"--namespace={node_namespace}", "--timeout=45s")
    address = node.cluster.get("pod", "named", namespace=node_namespace)["status"]["podIP"]
    # The name server learns of a new endpoint a moment after the pod has its address.
    resolves = """
import socket, time
while True:
    try:
        print(socket.gethostbyname("named.group"))
        break
    except socket.gaierror:
        time.sleep(0.1)
"""
    node.cluster.apply(pod("resolves", node_namespace, operator_image, python(resolves)))
    assert finished(node.cluster, "resolves", node_namespace).strip() == address


def test_a_claim_gets_a_volume_that_a_pod_without_rights_can_write(
    node: Node, node_namespace: str, operator_image: str
):
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "kept", "namespace": node_namespace},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    node.cluster.apply(claim)
    mount = {"volumeMounts": [{"name": "kept", "mountPath": "/kept"}]}
    volumes = [{"name": "kept", "persistentVolumeClaim": {"claimName": "kept"}}]
    codes = {"writes": 'open("/kept/file", "w").write("still here")', "reads": 'print(open("/kept/file").read())'}
    for name, code in codes.items():
        node.cluster.apply(pod(name, node_namespace, operator_image, python(code), container=mount, volumes=volumes))
        log = finished(node.cluster, name, node_namespace)
    assert log.strip() == "still here"


def test_the_operators_image_has_neither_java_nor_spark_and_no_root(
    node: Node, node_namespace: str, operator_image: str
):
    code = """
import importlib.util, os, shutil, sys
print(os.getuid(), sys.flags.safe_path, shutil.which("java"), importlib.util.find_spec("pyspark"))
import streams_operator, streams_runtime.api, kopf
"""
    node.cluster.apply(pod("looks", node_namespace, operator_image, python(code)))
    assert finished(node.cluster, "looks", node_namespace).strip() == "10001 True None None"


def test_the_operators_image_starts_the_operator_which_says_what_it_lacks(
    node: Node, node_namespace: str, operator_image: str
):
    node.cluster.apply(pod("starts", node_namespace, operator_image))
    with pytest.raises(AssertionError, match=r"streams_operator: STREAMS_OPERATOR_RUNTIME_IMAGE is not set"):
        finished(node.cluster, "starts", node_namespace)


def test_the_runtimes_image_needs_no_network_and_no_writable_root(node: Node, node_namespace: str, runtime_image: str):
    # The jars are looked for, found complete, and not fetched.
    command = ["python", "-m", "streams_runtime.jvm.machine_setup"]
    node.cluster.apply(pod("looks", node_namespace, runtime_image, command))
    lines = finished(node.cluster, "looks", node_namespace).splitlines()
    assert [re.match(r"\w+", line)[0] for line in lines] == ["java", "spark", "broker"]


def test_jvms_of_the_runtimes_image_start_with_archived_classes(node: Node, node_namespace: str, runtime_image: str):
    node.cluster.apply(pod("looks", node_namespace, runtime_image, python(ARCHIVED_CLASSES.read_text())))
    found = json.loads(finished(node.cluster, "looks", node_namespace).splitlines()[-1])
    assert min(found["spark"], found["broker"]) > 1000, found


@pytest.mark.timeout(600)
def test_pods_and_this_machine_reach_the_same_broker(
    node: Node, node_namespace: str, runtime_image: str, kafka_in_cluster: KafkaInCluster
):
    kafka_in_cluster.alias(node_namespace)
    admin = Admin({"bootstrap.servers": kafka_in_cluster.outside})
    admin.create_topics([TopicSpec(node_namespace, 3)])
    admin.close()
    code = f"""
from confluent_kafka.admin import AdminClient
topics = AdminClient({{"bootstrap.servers": "kafka:9092"}}).list_topics(timeout=20).topics
print(len(topics["{node_namespace}"].partitions))
"""
    node.cluster.apply(pod("asks", node_namespace, runtime_image, python(code)))
    assert finished(node.cluster, "asks", node_namespace).strip() == "3"


# A cluster that is given, or kind's, is not for this project to clean up.
if not made_elsewhere():

    def test_a_node_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
        # Other runs on this machine come and go too: what is this node's is known by its folder and its namespace.
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
        before = what_a_node_could_leave(tmp_path, set())
        with one_node() as node:
            node.cluster.kubectl("wait", "--for=create", "serviceaccount/default", "--timeout=30s")
            node.cluster.apply(pod("stays", "default", PAUSE_IMAGE, ["/pause"]))
            node.cluster.kubectl("wait", "--for=condition=Ready", "pod/stays", "--timeout=45s")
            spaces = namespaces_with(str(tmp_path))
            during = what_a_node_could_leave(tmp_path, spaces)
        seen = {what for what in before if during[what] != before[what]}
        assert seen == {"processes", "links", "routes", "folders", "groups"}, "what is compared must see a node"
        assert what_a_node_could_leave(tmp_path, spaces) == before

    def test_a_node_dies_with_the_run_that_is_killed(tmp_path: Path):
        with held_by_another_process("from kube_node import one_node", "one_node()", tmp_path) as run:
            link = f"st{run.pid:x}-0h"
            spaces = namespaces_with(str(tmp_path))
            assert spaces
            assert Path("/sys/class/net", link).exists()
            run.kill()
            eventually(lambda: not running_in(spaces), lambda: f"its processes are gone: {running_in(spaces)}")
            eventually(lambda: not Path("/sys/class/net", link).exists(), "its network is gone")
        run.wait(10)
        remove_groups_of_the_dead()
        assert not list(Path("/sys/fs/cgroup").glob(f"**/streams-test-{run.pid:x}-*"))


def what_a_node_could_leave(folder: Path, spaces: set[str]) -> dict[str, list[str]]:
    """Everything of this machine that a node of this process changes while it is up."""
    mine = f"{os.getpid():x}-"

    def printed(*command: str) -> list[str]:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=20).stdout.splitlines()

    return {
        "processes": [each for each in processes() if namespace_of(each) in spaces] + processes_with(str(folder)),
        "mounts": Path("/proc/self/mounts").read_text().splitlines(),
        "links": [line.split()[1] for line in printed("ip", "-oneline", "link") if f"st{mine}" in line],
        "routes": [line for line in printed("ip", "route") if f"st{mine}" in line],
        "rules": [line for line in printed("iptables-save") if not line.startswith(("#", ":"))],
        "groups": sorted(str(path) for path in Path("/sys/fs/cgroup").glob(f"**/streams-test-{mine}*")),
        "folders": sorted(map(str, folder.iterdir())),
        "fixed folders": [
            str(path)
            for place in (*kube_init.HIDDEN, "/run")
            for path in Path(place).iterdir()
            if path.name in ("kubelet", "cni", "containerd", "pods", "containers", "volumes", "xtables.lock")
        ],
    }
