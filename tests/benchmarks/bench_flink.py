"""Flink SQL on the benchmark's work: a job in a cluster of its own, all in one JVM."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bench_declared import HERE
from bench_peer_build import PeerBuild, build_peer
from bench_process import Child
from bench_side import Launch, PrintingClient

from streams_runtime.errors import EnvironmentException
from streams_runtime.jvm.jars import cache_folder
from streams_runtime.jvm.java import find_java

SOURCE = HERE / "peers" / "flink-sql"
HEAP = "1500m"
"""Job manager and task manager share it; memory that Flink manages for RocksDB (below) is outside."""

_OPENED = ("lang", "lang.reflect", "net", "io", "nio", "text", "time", "util", "util.concurrent")
"""What Flink's own scripts open to it of java.base."""


@dataclass(frozen=True, slots=True)
class FlinkSql:
    """Works a backlog off and has then ended its job. The contestant's `config` are Flink's settings."""

    java: Path
    build: PeerBuild
    commits = False
    changelog = False

    def start(self, launch: Launch) -> PrintingClient:
        """One instance. Raises EnvironmentException for another work than totals of a backlog."""
        place, who = launch.made(), launch.contestant
        if launch.task != "totals" or not launch.until_end or who.instances > 1:
            raise EnvironmentException(
                f"{who.title} takes part with one instance in backlogs of totals, not in {launch.task};"
                " leave it out of this workload's contestants"
            )
        arguments = {
            "bootstrap-servers": place.bootstrap_servers,
            "application-id": launch.application_id,
            "input": launch.topics["orders"],
            "output": launch.topics["output"],
            "guarantee": who.guarantee,
        }
        config = settings(place.state, who.threads, who.exactly_once) | {k: str(v) for k, v in who.config.items()}
        told = [str(self.java), f"-Xmx{HEAP}", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]
        told += [f"--add-opens=java.base/java.{package}=ALL-UNNAMED" for package in _OPENED]
        told += ["-cp", self.build.classpath, "Serve"]
        told += [word for name, value in arguments.items() for word in (f"--{name}", value)]
        told += [word for name, value in config.items() for word in ("--config", f"{name}={value}")]
        return PrintingClient(Child(launch.name, told, place.folder))


def settings(state: Path, parallelism: int, exactly_once: bool) -> dict[str, str]:
    """What every variant has; the rest is Flink's default."""
    return {
        "parallelism.default": str(parallelism),
        "taskmanager.numberOfTaskSlots": str(parallelism),
        "taskmanager.memory.managed.size": "512m",
        "state.backend.type": "rocksdb",
        "execution.checkpointing.interval": "10 s",
        "execution.checkpointing.mode": "EXACTLY_ONCE" if exactly_once else "AT_LEAST_ONCE",
        "execution.checkpointing.incremental": "true",
        "execution.checkpointing.storage": "filesystem",
        "execution.checkpointing.dir": (state / "checkpoints").as_uri(),
        "io.tmp.dirs": str(state / "tmp"),
    }


def flink_sql() -> FlinkSql:
    """Ready to start. Raises EnvironmentException when its jars and classes can't be made on this machine."""
    return FlinkSql(find_java(), build_peer(cache_folder(), SOURCE, SOURCE / "pom.xml"))
