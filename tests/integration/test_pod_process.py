"""The pod's process with a real client and a real broker; only the API server is played."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
import yaml
from certificates import self_signed
from clients import last_values, make_topics, send
from pod_status_server import PodStatusServer, pod_status_server
from waiting import eventually

from streams_runtime.kafka.broker.ports import free_ports
from streams_runtime.query.client.query_client import QueryCredentials, StreamsQueryClient

pytestmark = pytest.mark.integration

QUERY_TOKEN = "of-those-who-query"

TOPOLOGY = """
sources: [{name: orders, topic: %s-orders, key: {format: string}, value: {format: json, schema: "amount BIGINT"}}]
steps: [{name: totals, from: orders, aggregate: {total: sum(amount)}, store: totals}]
sinks: [{from: totals, topic: %s-totals}]
"""


class Pod:
    """A pod's process, its mounts in a folder, and the API server that it talks to."""

    def __init__(self, folder: Path, server: PodStatusServer, process: subprocess.Popen[bytes], url: str) -> None:
        self.folder = folder
        self.server = server
        self.process = process
        self.url = url

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text()

    @property
    def termination(self) -> dict[str, Any]:
        said: dict[str, Any] = json.loads((self.folder / "termination-log").read_bytes())
        return said

    def wait_for(self, *states: str) -> None:
        """Wait until the pod has reported the last of these states, and see that it reported the others before."""

        def reported() -> bool:
            assert self.process.poll() is None or states[-1] in self.server.states, self.log
            return states[-1] in self.server.states

        eventually(reported, f"{states[-1]} in the pod's conditions; its log:\n{self.log}")
        assert [state for state in self.server.states if state in states] == list(states)

    def status(self, path: str) -> int:
        try:
            # Kubelets do not verify a probe's certificate.
            return httpx.get(self.url + path, trust_env=False, verify=False).status_code
        except httpx.TransportError:
            return 0


@contextmanager
def pod(
    folder: Path, name: str, brokers: str, config: dict[str, str], secret: dict[str, str], guarded: bool = False
) -> Iterator[Pod]:
    """`guarded`: queries by HTTPS, for the token QUERY_TOKEN."""
    document = {
        "apiVersion": "streamsoperator.io/v1alpha1",
        "kind": "StreamsApplication",
        "metadata": {"name": "orders", "namespace": "shop"},
        "spec": {
            "applicationId": name,
            "kafka": {"bootstrapServers": brokers, "config": config, "secretRef": {"name": "kafka"}},
            "topology": yaml.safe_load(TOPOLOGY % (name, name)),
        },
    }
    for each in ("application", "secret", "account", "queries/access", "queries/tls"):
        (folder / each).mkdir(parents=True)
    if guarded:
        access = {"token": {"secretRef": {"name": "queries"}}}
        document["spec"]["queries"] = {"access": access, "tls": {"secretRef": {"name": "tls"}}}
        (folder / "queries" / "access" / "token").write_text(QUERY_TOKEN)
        self_signed(folder / "queries" / "tls")
    (folder / "application" / "application.json.gz").write_bytes(gzip.compress(orjson.dumps(document)))
    for key, value in secret.items():
        (folder / "secret" / key).write_text(value)
    (folder / "account" / "token").write_text("token-of-the-pod")
    (folder / "termination-log").touch()
    (port,) = free_ports(1)
    with (
        pod_status_server() as server,
        (folder / "log").open("wb") as log,
        (folder / "stderr").open("wb") as errors,  # what the JVM says, which can't be told to write JSON
    ):
        process = subprocess.Popen(
            [sys.executable, "-m", "streams_runtime.cli.process.pod"],
            env={
                **os.environ,
                "POD_NAME": f"{name}-0",
                "POD_NAMESPACE": "shop",
                "POD_UID": "uid-1",
                "STREAMSAPP_SERVICE": "orders",
                "STREAMSAPP_APPLICATION": str(folder / "application"),
                "STREAMSAPP_SECRET": str(folder / "secret"),
                "STREAMSAPP_QUERIES": str(folder / "queries"),
                "STREAMSAPP_STATE": str(folder / "state"),
                "STREAMSAPP_TERMINATION_FILE": str(folder / "termination-log"),
                "STREAMSAPP_SERVICE_ACCOUNT": str(folder / "account"),
                "STREAMSAPP_API_SERVER": server.url,
                "STREAMSAPP_LISTEN": f"127.0.0.1:{port}",
            },
            stdout=log,
            stderr=errors,
        )
        try:
            yield Pod(folder, server, process, f"{'https' if guarded else 'http'}://127.0.0.1:{port}")
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()


def test_a_pod_reports_its_way_to_running_and_closes_in_order_when_it_is_told_to(
    broker: Any, namespace: str, tmp_path: Path
) -> None:
    """The broker speaks no TLS: only with the secret property over the resource's can the client reach it."""
    address = broker.bootstrap_servers
    make_topics(address, **{f"{namespace}-orders": 2, f"{namespace}-totals": 1})
    send(address, f"{namespace}-orders", [("ada", {"amount": 7}), ("ada", {"amount": 5})])
    secret = {"security.protocol": "PLAINTEXT\n", "client.rack": "hush-hush"}
    with pod(tmp_path, namespace, address, {"security.protocol": "SSL"}, secret, guarded=True) as started:
        started.wait_for("RUNNING")
        assert started.status("/healthz") == 200
        eventually(
            lambda: started.status("/readyz") == 200,
            lambda: f"ready, once Spark has accepted the topology; its log:\n{started.log}",
        )
        eventually(lambda: started.server.patches[-1].conditions["SparkReady"]["status"] == "True", "SparkReady")
        eventually(lambda: last_values(address, f"{namespace}-totals") == {"ada": {"total": 12}}, "the records' result")
        eventually(lambda: started.server.patches[-1].conditions["Restored"]["status"] == "True", "Restored")
        assert (started.status("/state"), started.status("/state/figures")) == (401, 200)
        headers = {"Authorization": f"Bearer {QUERY_TOKEN}"}
        state = httpx.get(f"{started.url}/state", trust_env=False, verify=False, headers=headers).json()
        assert (state["instance"], state["url"]) == (
            f"{namespace}-0",
            f"https://{namespace}-0.orders.shop.svc:{started.url.rpartition(':')[2]}",
        )
        believed = QueryCredentials(QUERY_TOKEN, ca_file=tmp_path / "queries" / "tls" / "tls.crt")
        with StreamsQueryClient(started.url, credentials=believed) as client:
            assert client.get("totals", "ada") == {"total": 12}

        started.process.send_signal(signal.SIGTERM)
        assert started.process.wait(70) == 0, started.log
        assert started.termination == {"state": "NOT_RUNNING", "class": None, "message": ""}
        last = started.server.patches[-1]
        assert last.path.partition("?")[0] == f"/api/v1/namespaces/shop/pods/{namespace}-0/status"
        assert last.token == "token-of-the-pod"
        assert {name: each["status"] for name, each in last.conditions.items()} == {
            "Running": "False",
            "Restored": "False",
            "SparkReady": "False",
            "Restartable": "True",
        }
        assert last.conditions["Running"]["reason"] == "NOT_RUNNING"
        lines = [json.loads(line) for line in started.log.splitlines()]
        assert any("RUNNING" in line["event"] for line in lines)
        for hidden in ("hush-hush", "token-of-the-pod", QUERY_TOKEN):
            assert hidden not in started.log + (tmp_path / "stderr").read_text() + str(
                [patch.body for patch in started.server.patches]
            )


def test_a_record_that_can_not_be_read_ends_the_pod_in_error_for_everybody_to_see(
    broker: Any, namespace: str, tmp_path: Path
) -> None:
    address = broker.bootstrap_servers
    make_topics(address, **{f"{namespace}-orders": 1, f"{namespace}-totals": 1})
    with pod(tmp_path, namespace, address, {}, {}) as started:
        started.wait_for("RUNNING")
        assert started.server.patches[-1].conditions["Restartable"]["status"] == "True"
        send(address, f"{namespace}-orders", [("ada", {"amount": 7}), ("ada", b"no JSON at all")])
        started.wait_for("RUNNING", "PENDING_ERROR")
        assert started.process.wait(90) == 70, started.log
        assert started.server.states[-2:] == ["PENDING_ERROR", "ERROR"]
        said = started.termination
        assert (said["state"], said["class"]) == ("ERROR", "DeserializationException")
        assert f"{namespace}-orders-0@1" in said["message"]
        for patch in started.server.patches:
            state, restartable = patch.conditions["Running"]["reason"], patch.conditions["Restartable"]
            if state in ("PENDING_ERROR", "ERROR"):
                assert restartable["status"] == "False"
                assert (restartable["reason"], restartable["message"]) == (said["class"], said["message"])
        assert "Traceback" not in started.log + (tmp_path / "stderr").read_text()
