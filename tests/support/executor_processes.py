"""Executors' pods as processes of this machine: what a kubelet does, for pods that no node has."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import httpx
from kube_cluster import Cluster
from kube_reads import connection

_END = 30.0
_SELECTOR = {"labelSelector": "spark-role=executor"}
Object = dict[str, Any]


class ExecutorProcesses:
    """Runs the command of each pod of a namespace that Spark has made as an executor, with its environment.

    A process that ends makes its pod Failed; a pod that goes takes its process along.
    """

    def __init__(self, cluster: Cluster, namespace: str, folder: Path) -> None:
        self._path = f"/api/v1/namespaces/{namespace}/pods"
        self._http = connection(cluster.endpoint, cluster.token)
        self._folder = folder
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._ended: set[str] = set()
        self.waiting = threading.Event()
        """Set: pods stay Pending, as those that no node has room for."""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> ExecutorProcesses:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(_END)
        for process in self._processes.values():
            process.kill()
            process.wait()
        self._http.close()

    def pods(self) -> dict[str, Object]:
        """The pods by name."""
        answer = self._http.get(self._path, params=_SELECTOR)
        answer.raise_for_status()
        return {pod["metadata"]["name"]: pod for pod in answer.json()["items"]}

    def running(self) -> list[str]:
        """Names of the pods whose process is there."""
        return sorted(name for name, process in self._processes.items() if process.poll() is None)

    def kill(self, name: str) -> None:
        """SIGKILL for the process of a pod."""
        self._processes[name].kill()

    def log(self, name: str) -> str:
        """What a pod's process has printed."""
        return (self._folder / f"{name}.log").read_text()

    def _run(self) -> None:
        while not self._stop.wait(0.1):
            try:
                self._look()
            except httpx.HTTPError:
                continue

    def _look(self) -> None:
        pods = self.pods()
        for name, pod in pods.items():
            if name not in self._processes:
                if self.waiting.is_set():
                    continue
                self._processes[name] = self._started(pod)
            code = self._processes[name].poll()
            if code is not None and name not in self._ended:
                self._fail(name, code)
        for name in self._processes.keys() - pods.keys():
            self._processes[name].terminate()

    def _started(self, pod: Object) -> subprocess.Popen[bytes]:
        (container,) = pod["spec"]["containers"]
        facts = {"status.podIP": "127.0.0.1", "metadata.name": pod["metadata"]["name"]}
        given = {
            each["name"]: each["value"] if "value" in each else facts[each["valueFrom"]["fieldRef"]["fieldPath"]]
            for each in container["env"]
        }
        place = self._folder / pod["metadata"]["name"]
        place.mkdir()
        program, *words = container["command"]
        assert program == "python"
        with place.with_suffix(".log").open("wb") as log:
            return subprocess.Popen(
                [sys.executable, *words, *container["args"]],
                env={**os.environ, **given, "SPARK_LOCAL_DIRS": str(place)},
                cwd=place,  # executors put the modules that they are sent there
                stdout=log,
                stderr=log,
            )

    def _fail(self, name: str, code: int) -> None:
        ended = {"exitCode": code % 256, "reason": "Error"}
        container = {"name": "executor", "image": "", "imageID": "", "ready": False, "restartCount": 0}
        status = {"phase": "Failed", "containerStatuses": [{**container, "state": {"terminated": ended}}]}
        answer = self._http.patch(
            f"{self._path}/{name}/status",
            content=json.dumps({"status": status}),
            headers={"Content-Type": "application/strategic-merge-patch+json"},
        )
        if answer.status_code != 404:
            answer.raise_for_status()
        self._ended.add(name)
