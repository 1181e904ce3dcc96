"""Flink SQL on the benchmark's work: a job in a cluster of its own, all in one JVM."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from string import Template

from bench_declared import HERE
from bench_peer_build import PeerBuild, build_peer
from bench_process import Child
from bench_side import Launch, PrintingClient

from streams_runtime.errors import EnvironmentException
from streams_runtime.jvm.jars import cache_folder
from streams_runtime.jvm.java import find_java

SOURCE = HERE / "peers" / "flink-sql"
NEXMARK = SOURCE / "nexmark"
"""A file for each query of NEXMark that Flink can run."""
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
        """One instance. Raises EnvironmentException for work that is not written in Flink SQL, or has no end."""
        place, who = launch.made(), launch.contestant
        script = script_of(launch.task)
        if script is None or not launch.until_end or who.instances > 1:
            raise EnvironmentException(
                f"{who.title} takes part with one instance in backlogs of totals and NEXMark's queries, not in"
                f" {launch.task}; leave it out of this workload's contestants"
            )
        file = place.folder / "script.sql"
        file.write_text(Template(script).substitute(launch.topics, **connectors(launch)))
        config = settings(place.state, who.threads, who.exactly_once) | {k: str(v) for k, v in who.config.items()}
        told = [str(self.java), f"-Xmx{HEAP}", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]
        told += [f"--add-opens=java.base/java.{package}=ALL-UNNAMED" for package in _OPENED]
        told += ["-cp", self.build.classpath, "Serve"]
        told += ["--script", str(file)]
        told += [word for name, value in config.items() for word in ("--config", f"{name}={value}")]
        return PrintingClient(Child(launch.name, told, place.folder))


def script_of(task: str) -> str | None:
    """The statements of a task, the last of which is the job; None where there are none."""
    if task == "totals":
        return (SOURCE / "totals.sql").read_text()
    file = NEXMARK / f"{task}.sql"
    return (NEXMARK / "tables.sql").read_text() + file.read_text() if file.is_file() else None


def connectors(launch: Launch) -> Mapping[str, str]:
    """What stands in a script for the options of tables: `source`, and `stream` and `table` as sinks; and `brokers`."""
    kafka = f"'properties.bootstrap.servers' = '{launch.place.bootstrap_servers}', 'value.format' = 'json'"
    kafka += ", 'value.json.timestamp-format.standard' = 'ISO-8601'"
    group = f"'properties.group.id' = '{launch.application_id}', 'scan.startup.mode' = 'earliest-offset'"
    sink = f"'topic' = '{launch.topics['output']}', {kafka}"
    if launch.contestant.exactly_once:
        sink += ", 'sink.delivery-guarantee' = 'exactly-once'"
        sink += f", 'sink.transactional-id-prefix' = '{launch.application_id}'"
        # The most that a broker allows; Flink asks for an hour.
        sink += ", 'properties.transaction.timeout.ms' = '900000'"
    return {
        "source": f"'connector' = 'kafka', {kafka}, {group}, 'scan.bounded.mode' = 'latest-offset'",
        "stream": f"'connector' = 'kafka', {sink}",
        "table": f"'connector' = 'upsert-kafka', {sink}",
        "brokers": launch.place.bootstrap_servers,
    }


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
        "table.local-time-zone": "UTC",
    }


def flink_sql() -> FlinkSql:
    """Ready to start. Raises EnvironmentException when its jars and classes can't be made on this machine."""
    return FlinkSql(find_java(), build_peer(cache_folder(), SOURCE, SOURCE / "pom.xml"))
