"""Executors as pods on a real API server: by the rights of the Role, beside an operator that leaves them alone."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from clients import last_values, send
from executor_processes import ExecutorProcesses
from kube_binaries import program
from operator_kit import OperatorProcess, operator
from operator_stage import Stage
from waiting import eventually

from streams_operator import names
from streams_runtime.pipeline.spark.executor_template import LABEL

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600), pytest.mark.usefixtures("crd")]

PATIENCE = 180.0
RECORDS = 500
TIERS = """
def tier(n):
    return "gold" if n % 3 == 0 else "plain"
"""


@pytest.fixture
def running(stage: Stage, tmp_path: Path) -> Iterator[OperatorProcess]:
    """An operator that may let pods make pods."""
    with operator(stage.cluster, stage.namespace, tmp_path, executors_as_pods="true") as process:
        yield process


def spark(stage: Stage, executors: int = 1) -> dict[str, Any]:
    config = {"spark.executor.instances": executors, "spark.executor.memory": "600m"}
    return {"master": f"k8s://{stage.cluster.url}", "config": config}


@contextmanager
def pod_process(stage: Stage, name: str, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The process of a pod that the operator has made, with the pod's account."""
    eventually(lambda: name in stage.kubelet.pods(), f"the pod {name}")
    pod = stage.kubelet.pods()[name]
    volume = next(each for each in pod["spec"]["volumes"] if each["name"] == "application")
    mounted = stage.cluster.get("configmap", volume["configMap"]["name"], namespace=stage.namespace)
    kubeconfig = stage.cluster.kubeconfig_for(f"{stage.namespace}:{names.access('app')}")
    for each in ("application", "account"):
        (folder / each).mkdir()
    (folder / "application" / "application.json").write_text(mounted["data"]["application.json"])
    (folder / "account" / "token").write_text(json.loads(kubeconfig.read_text())["users"][0]["user"]["token"])
    authority = Path(stage.cluster.endpoint["certificate-authority"])
    (folder / "account" / "ca.crt").write_bytes(authority.read_bytes())
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    environment = {
        **os.environ,
        "KUBECONFIG": str(kubeconfig),  # where Spark's client looks; in a pod it finds the account's files
        "POD_NAME": name,
        "POD_NAMESPACE": stage.namespace,
        "POD_UID": pod["metadata"]["uid"],
        "STREAMSAPP_SERVICE": "app",
        "STREAMSAPP_APPLICATION": str(folder / "application"),
        "STREAMSAPP_CODE": str(folder / "code"),
        "STREAMSAPP_STATE": str(folder / "state"),
        "STREAMSAPP_TERMINATION_FILE": str(folder / "termination-log"),
        "STREAMSAPP_SERVICE_ACCOUNT": str(folder / "account"),
        "STREAMSAPP_API_SERVER": stage.cluster.url,
        "STREAMSAPP_LISTEN": f"127.0.0.1:{port}",
    }
    (folder / "termination-log").touch()
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "streams_runtime.cli.process.pod"], env=environment, stdout=log, stderr=log
        )
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()


def topology(stage: Stage) -> dict[str, Any]:
    """Rows go through Spark for it, to a function that executors have from the instance."""
    value = {"format": "json", "schema": "n INT"}
    return {
        "functions": {"tier": {"python": "pod_tiers:tier", "returns": "STRING"}},
        "sources": [{"name": "in", "topic": f"{stage.namespace}-in", "key": {"format": "string"}, "value": value}],
        "steps": [
            {"name": "tiers", "from": "in", "keyBy": "tier(n)"},
            {"name": "totals", "from": "tiers", "aggregate": {"total": "sum(n)"}, "store": "totals"},
        ],
        "sinks": [{"from": "totals", "topic": f"{stage.namespace}-out"}],
    }


def limit_memory(stage: Stage) -> None:
    """From now on the API server takes no container of more than 500 MiB."""
    limit = {"type": "Container", "max": {"memory": "500Mi"}}
    metadata = {"name": "small", "namespace": stage.namespace}
    stage.cluster.apply({"apiVersion": "v1", "kind": "LimitRange", "metadata": metadata, "spec": {"limits": [limit]}})


def totals(numbers: range) -> dict[str, dict[str, int]]:
    gold = sum(each for each in numbers if each % 3 == 0)
    return {"gold": {"total": gold}, "plain": {"total": sum(numbers) - gold}}


@pytest.mark.usefixtures("running")
def test_an_instance_has_its_records_computed_with_by_executors_that_may_die_and_go_with_it(
    stage: Stage, tmp_path: Path
):
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "pod_tiers.py").write_text(TIERS)
    stage.kubelet.hold("app-0")
    stage.apply(replicas=1, spark=spark(stage), topology=topology(stage), code={"configMap": "tiers"})
    eventually(lambda: "app-0" in stage.kubelet.pods(), "the pod")
    limit_memory(stage)
    with (
        pod_process(stage, "app-0", tmp_path) as process,
        ExecutorProcesses(stage.cluster, stage.namespace, tmp_path) as executors,
    ):

        def log() -> str:
            return (tmp_path / "log").read_text()

        def told() -> str:
            return "\n".join([log()[-4000:], *(f"{each}: {executors.log(each)}" for each in executors.running())])

        def send_to(end: int) -> None:
            numbers = range(end - RECORDS, end)
            send(stage.bootstrap, f"{stage.namespace}-in", [(f"k{each}", {"n": each}) for each in numbers])

        def complete_to(end: int) -> bool:
            assert process.poll() is None, told()
            return last_values(stage.bootstrap, f"{stage.namespace}-out") == totals(range(end))

        refused = "maximum memory usage per Container is 500Mi"
        eventually(lambda: refused in log(), lambda: f"why no executor is made: {told()}", PATIENCE)
        stage.cluster.kubectl("delete", "limitrange", "small", f"--namespace={stage.namespace}")
        stage.reaches("RUNNING", seconds=PATIENCE)
        eventually(executors.running, lambda: f"an executor: {told()}", PATIENCE)
        (first,) = executors.running()
        send_to(RECORDS)
        eventually(lambda: complete_to(RECORDS), lambda: f"results: {told()}", PATIENCE)

        executors.waiting.set()
        executors.kill(first)
        send_to(2 * RECORDS)
        eventually(lambda: "runs no executor for this instance" in log(), lambda: f"the warning: {told()}", PATIENCE)
        assert complete_to(RECORDS), "what is to be computed waits for an executor"
        assert stage.status()["state"] == "RUNNING"
        executors.waiting.clear()
        eventually(lambda: complete_to(2 * RECORDS), lambda: f"results: {told()}", PATIENCE)
        eventually(lambda: "runs 1 executors for this instance again" in log(), lambda: f"the log: {told()}")
        (second,) = executors.running()
        assert second != first

        (pod,) = executors.pods().values()
        assert [each["configMap"]["name"] for each in pod["spec"]["volumes"] if each["name"] == "code"] == ["tiers"]
        assert [each["name"] for each in stage.status()["instances"]] == ["app-0"]
        process.send_signal(signal.SIGTERM)
        assert process.wait(70) == 0, told()
        assert executors.pods() == {}
    assert not any(name in text for name in (first, second) for _, text in stage.events())


def executor(stage: Stage, driver: str, name: str) -> dict[str, Any]:
    """As Spark makes it from the template."""
    owner = {"apiVersion": "v1", "kind": "Pod", "name": driver, "uid": stage.uids()[driver], "controller": True}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": stage.namespace,
            "labels": {LABEL: "app", "spark-role": "executor"},
            "ownerReferences": [owner],
        },
        "spec": {
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "serviceAccountName": names.access("app"),
            "containers": [{"name": "executor", "image": "none"}],
        },
    }


def create_as(kubeconfig: Path, found: dict[str, Any]) -> str:
    """What stands against it; "" when it was made."""
    command = [program("kubectl"), f"--kubeconfig={kubeconfig}", "create", "--filename=-"]
    done = subprocess.run(command, input=json.dumps(found), capture_output=True, text=True, timeout=60, check=False)
    return done.stderr


@pytest.mark.usefixtures("running", "controllers")
def test_the_operator_leaves_executors_alone_and_they_go_with_their_pod(stage: Stage):
    stage.apply(replicas=2, spark=spark(stage))
    stage.reaches("RUNNING", "2/2")
    account = stage.cluster.kubeconfig_for(f"{stage.namespace}:{names.access('app')}")
    for number in (0, 1):
        made = executor(stage, f"app-{number}", f"app-{number}-0a1b-exec-1")
        eventually(lambda made=made: create_as(account, made) == "", "the Role counts")
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": stage.namespace}}
    assert "forbidden" in create_as(account, config_map)

    stage.merge('{"spec": {"replicas": 1}}')
    eventually(lambda: "app-1" not in stage.pods(), "the second pod has gone")
    eventually(lambda: stage.pods() == ["app-0", "app-0-0a1b-exec-1"], lambda: f"its executor too: {stage.pods()}")
    stage.reaches("RUNNING", "1/1")

    before = stage.uids()["app-0"]
    stage.kubelet.end("app-0", 137)
    eventually(lambda: stage.uids().get("app-0", before) != before, "the crashed pod was made again", 60)
    eventually(lambda: stage.pods() == ["app-0"], lambda: f"the executor of the one before has gone: {stage.pods()}")

    made = executor(stage, "app-0", "app-0-2c3d-exec-1")
    assert create_as(account, made) == ""
    stage.reaches("RUNNING", "1/1")
    assert not any("exec" in text for _, text in stage.events())
    stage.delete("--timeout=60s")
    eventually(lambda: stage.pods() == [], lambda: f"nothing is left: {stage.pods()}")


@pytest.mark.usefixtures("running")
def test_an_application_on_its_own_cores_can_make_no_pods(stage: Stage):
    stage.apply(replicas=1)
    stage.reaches("RUNNING", "1/1")
    account = stage.cluster.kubeconfig_for(f"{stage.namespace}:{names.access('app')}")
    role = stage.cluster.get("role", names.access("app"), namespace=stage.namespace)
    assert all("resourceNames" in rule for rule in role["rules"])
    assert "forbidden" in create_as(account, executor(stage, "app-0", "app-0-0a1b-exec-1"))
