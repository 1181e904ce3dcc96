"""A standalone Spark cluster from the PySpark distribution: a master and workers, each a process of its own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark
from waiting import eventually

from streams_runtime.jvm.java import find_java, java_home

_HOME = Path(pyspark.__file__).parent
_DEPLOY = "org.apache.spark.deploy"
_MASTER = re.compile(r"Starting Spark master at (spark://\S+)")
_REGISTERED = re.compile("Successfully registered with master")
EXECUTOR_MEMORY = "480m"  # Spark accepts no less than 471
_WORKER_MEMORY = "600m"


class SparkCluster:
    """A master, and workers of one core each that can be killed and added."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._processes: list[subprocess.Popen[bytes]] = []
        self._workers: list[subprocess.Popen[bytes]] = []
        self._start("master", f"{_DEPLOY}.master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        self.master = self._said("master", _MASTER)[1]

    def add_worker(self) -> None:
        """Start one more worker; returns when the master has it."""
        name = f"worker-{len(self._processes)}"
        place = ("--work-dir", str(self._folder / name), self.master)
        size = ("--cores", "1", "--memory", _WORKER_MEMORY)
        address = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        self._workers.append(self._start(name, f"{_DEPLOY}.worker.Worker", *address, *size, *place))
        self._said(name, _REGISTERED)

    def kill_worker(self) -> None:
        """SIGKILL for the oldest worker and the executors that it has started."""
        worker = self._workers.pop(0)
        os.killpg(worker.pid, signal.SIGKILL)
        worker.wait()

    def log(self, name: str) -> str:
        """What the master or a worker has printed."""
        return (self._folder / f"{name}.log").read_text()

    def close(self) -> None:
        """End all that is left."""
        for process in self._processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def _said(self, name: str, what: re.Pattern[str]) -> re.Match[str]:
        """What a process, the last one that was started, says once it is ready."""

        def ready() -> bool:
            ended = self._processes[-1].poll() is not None
            assert not ended, f"the {name} has ended: {self.log(name)}"
            return what.search(self.log(name)) is not None

        eventually(ready, lambda: f"{what.pattern}: {self.log(name)}")
        return what.search(self.log(name))

    def _start(self, name: str, main: str, *arguments: str) -> subprocess.Popen[bytes]:
        environment = {
            **os.environ,
            "JAVA_HOME": str(java_home(find_java())),
            "SPARK_HOME": str(_HOME),
            "SPARK_DAEMON_MEMORY": "128m",
            "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1",
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
        command = [str(_HOME / "bin" / "spark-class"), main, *arguments]
        with (self._folder / f"{name}.log").open("wb") as log:
            # A group of its own, which executors belong to as well.
            process = subprocess.Popen(command, stdout=log, stderr=log, env=environment, start_new_session=True)
        self._processes.append(process)
        return process


@contextmanager
def spark_cluster(folder: Path, workers: int) -> Iterator[SparkCluster]:
    """A cluster with so many workers, gone at the end."""
    folder.mkdir()
    cluster = SparkCluster(folder)
    try:
        for _ in range(workers):
            cluster.add_worker()
        yield cluster
    finally:
        cluster.close()
