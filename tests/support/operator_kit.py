"""The operator as a process against a real API server, and the part of a kubelet: pods say what they are told to."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from kube_cluster import Cluster
from kube_reads import connection
from waiting import eventually

from streams_operator import names

IMAGE = "registry.example/streams-runtime:test"
_END = 30.0
# The code beside these tests, whichever checkout the environment was installed from.
_ROOT = Path(__file__).parents[2]
Object = dict[str, Any]


def resource(namespace: str, bootstrap: str, name: str = "app", **spec: Any) -> Object:
    """An application with one store: it reads NAMESPACE-in and writes NAMESPACE-out."""
    topology = {
        "sources": [{"name": "in", "topic": f"{namespace}-in", "key": {"format": "string"}, "value": _JSON}],
        "steps": [{"name": "totals", "from": "in", "aggregate": {"total": "sum(n)"}, "store": "totals"}],
        "sinks": [{"from": "totals", "topic": f"{namespace}-out"}],
    }
    return {
        "apiVersion": "streamsoperator.io/v1alpha1",
        "kind": "StreamsApplication",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "applicationId": f"{namespace}-{name}",
            "kafka": {"bootstrapServers": bootstrap},
            "topology": topology,
            **spec,
        },
    }


_JSON = {"format": "json", "schema": "n INT"}


class OperatorProcess:
    """`python -m streams_operator` for one namespace."""

    def __init__(self, cluster: Cluster, namespace: str, log: Path, **settings: str) -> None:
        self.log = log
        environment = {
            "PATH": os.environ.get("PATH", ""),
            "PYTHONPATH": os.pathsep.join(str(_ROOT / folder) for folder in ("operator", "runtime")),
            "KUBECONFIG": str(cluster.kubeconfig),
            "STREAMS_OPERATOR_NAMESPACES": namespace,
            "STREAMS_OPERATOR_LEASE_NAMESPACE": namespace,
            "STREAMS_OPERATOR_RUNTIME_IMAGE": IMAGE,
            "STREAMS_OPERATOR_METRICS_PORT": "0",
            "STREAMS_OPERATOR_HEALTH_PORT": "0",
            "STREAMS_OPERATOR_LOG_FORMAT": "json",
            **{f"STREAMS_OPERATOR_{name.upper()}": value for name, value in settings.items()},
        }
        self._out = log.open("ab")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "streams_operator"], env=environment, stdout=self._out, stderr=self._out
        )

    def lines(self) -> list[Object]:
        """What it has logged."""
        return [json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{")]

    def said(self, text: str) -> bool:
        """Whether a log line holds `text`."""
        return any(text in line["event"] for line in self.lines())

    def port(self, what: str) -> int:
        """The port of `probes` or `metrics`, once it has said so."""
        eventually(lambda: self.said(f"{what} at port"), f"the port of {what} was told")
        return next(int(line["event"].split()[-1]) for line in self.lines() if f"{what} at port" in line["event"])

    def ready(self) -> bool:
        """Whether /readyz says so."""
        return httpx.get(f"http://127.0.0.1:{self.port('probes')}/readyz", verify=False).status_code == 200

    def metrics(self) -> str:
        """The text of /metrics."""
        return httpx.get(f"http://127.0.0.1:{self.port('metrics')}/metrics", verify=False).text

    def kill(self) -> None:
        """SIGKILL."""
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        """SIGTERM; the exit code."""
        return self._end(signal.SIGTERM)

    def _end(self, number: int) -> int:
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            code = self.process.wait(_END)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(_END)
            raise
        finally:
            self._out.close()
        return code


@contextmanager
def operator(cluster: Cluster, namespace: str, folder: Path, **settings: str) -> Iterator[OperatorProcess]:
    """A running operator, killed in the end if it is still there; its log is printed when the test fails."""
    process = OperatorProcess(cluster, namespace, folder / f"operator-{time.monotonic_ns()}.log", **settings)
    try:
        yield process
    except BaseException:
        print(process.log.read_text()[-20000:])
        raise
    finally:
        process.kill()


class Kubelet:
    """Reports for the pods of a namespace. A pod that nobody has said anything about becomes RUNNING.

    Also collects pods that no node has and whose deletion stopped halfway, as Kubernetes' pod garbage collector does:
    the API server deletes in two steps, and a client that is killed may end its own request between them.
    """

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self._namespace = namespace
        self._path = f"/api/v1/namespaces/{namespace}/pods"
        self._http = connection(cluster.endpoint, cluster.token)
        self._states: dict[str, str] = {}
        self._unready: set[str] = set()
        self._lost: set[str] = set()
        self._addresses: dict[str, str] = {}
        self._reported: dict[str, str] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._lock = threading.Lock()

    def __enter__(self) -> Kubelet:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(_END)
        self._http.close()

    def hold(self, name: str, state: str = "") -> None:
        """From now on pods of this name reach this state only; empty: they do not even start."""
        with self._lock:
            self._states[name] = state

    def unready(self, name: str) -> None:
        """From now on pods of this name say that all is well, and fail their readiness probe."""
        with self._lock:
            self._unready.add(name)
            self._reported.clear()

    def lose(self, name: str) -> None:
        """The node of the pod of this name is lost: nobody confirms its end, and nobody reports."""
        with self._lock:
            self._lost.add(name)

    def give_address(self, name: str, address: str) -> None:
        """From now on pods of this name have this address; the others have none, and nobody asks them anything."""
        with self._lock:
            self._addresses[name] = address

    def let(self, name: str) -> None:
        """The opposite of `hold` and `unready`."""
        with self._lock:
            self._states.pop(name, None)
            self._unready.discard(name)
            self._reported.clear()

    def waits(self, name: str, reason: str, message: str) -> None:
        """The container of a pod that is held does not start, as a kubelet says it."""
        self._patch(name, {"containerStatuses": [_container(waiting={"reason": reason, "message": message})]})

    def end(self, name: str, code: int, message: Object | None = None, reason: str = "Error") -> None:
        """The container of a pod ends."""
        now = _now()
        words = "" if message is None else json.dumps(message)
        ended = {"exitCode": code, "reason": reason, "startedAt": now, "finishedAt": now, "message": words}
        conditions = [_condition("Ready", "False"), _condition(names.CONDITION_RUNNING, "False", "NOT_RUNNING")]
        if message is not None and message.get("class"):
            conditions = [
                _condition("Ready", "False"),
                _condition(names.CONDITION_RUNNING, "False", "ERROR"),
                _condition(names.CONDITION_RESTARTABLE, "False", message["class"], message["message"]),
            ]
        elif code:
            conditions = conditions[:1]
        phase = "Succeeded" if code == 0 else "Failed"
        self._patch(
            name, {"phase": phase, "conditions": conditions, "containerStatuses": [_container(terminated=ended)]}
        )

    def say(self, name: str, state: str, *, restored: bool = True, left: int = 0) -> None:
        """A running pod's conditions."""
        self._patch(name, running_status(state, restored, left))

    def pods(self) -> dict[str, Object]:
        """The pods by name."""
        answer = self._http.get(self._path)
        answer.raise_for_status()
        return {pod["metadata"]["name"]: pod for pod in answer.json()["items"]}

    def _run(self) -> None:
        while not self._stop.wait(0.1):
            try:
                for name, pod in self.pods().items():
                    self._report(name, pod)
            except httpx.HTTPError:
                continue

    def _report(self, name: str, pod: Object) -> None:
        with self._lock:
            if name in self._lost:
                return
        if "deletionTimestamp" in pod["metadata"] and not pod["metadata"].get("finalizers"):
            self._collect(name, pod["metadata"]["uid"])
            return
        with self._lock:
            state, ready = self._states.get(name, "RUNNING"), name not in self._unready
            address = {"podIP": self._addresses[name]} if name in self._addresses else {}
        uid = pod["metadata"]["uid"]
        over = pod.get("status", {}).get("phase") in ("Failed", "Succeeded")
        if state and not over and self._reported.get(uid) != state:
            self._patch(name, running_status(state, state == "RUNNING", 0, ready) | address)
            self._reported[uid] = state

    def _collect(self, name: str, uid: str) -> None:
        options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid}, "gracePeriodSeconds": 0}
        answer = self._http.request("DELETE", f"{self._path}/{name}", json=options)
        if answer.status_code not in (404, 409):  # it has gone, and another one may have its name
            answer.raise_for_status()

    def _patch(self, name: str, status: Object) -> None:
        answer = self._http.patch(
            f"{self._path}/{name}/status",
            content=json.dumps({"status": status}),
            headers={"Content-Type": "application/strategic-merge-patch+json"},
        )
        if answer.status_code != 404:
            answer.raise_for_status()


def running_status(state: str, restored: bool = True, left: int = 0, ready: bool = True) -> Object:
    """The status that a kubelet and a runtime give to a pod that runs."""
    yes = "True" if state == "RUNNING" else "False"
    return {
        "phase": "Running",
        "conditions": [
            _condition("Ready", yes if ready else "False"),
            _condition(names.CONDITION_RUNNING, yes, state),
            _condition(names.CONDITION_RESTORED, "True" if restored else "False", "Restored", f"{left} records left"),
            _condition(names.CONDITION_RESTARTABLE, "True", "Restartable"),
        ],
        "containerStatuses": [_container(running={"startedAt": _now()})],
    }


def _condition(type: str, status: str, reason: str = "Test", message: str = "") -> Object:
    return {"type": type, "status": status, "reason": reason, "message": message, "lastTransitionTime": _now()}


def _container(**state: Object) -> Object:
    return {
        "name": names.CONTAINER,
        "image": IMAGE,
        "imageID": "",
        "ready": "running" in state,
        "restartCount": 0,
        "state": state,
    }


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
