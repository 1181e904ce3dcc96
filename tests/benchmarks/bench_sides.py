"""The sides whose instances this harness starts: this project and its peers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench_declared import HERE, SideName
from bench_flink import flink_sql
from bench_instance import Instance
from bench_ours import command
from bench_peer_build import PeerBuild, build_peer
from bench_process import Child
from bench_quix import quixstreams_folder
from bench_side import Launch, PrintingClient, Seen, Side

from streams_runtime.jvm.jars import JarSet, cache_folder, cached
from streams_runtime.jvm.java import find_java

HEAP = "1g"
"""Java heap of Kafka Streams and of Structured Streaming; RocksDB's memory is outside it."""


CONNECTOR = JarSet(
    "structured-streaming",
    ("org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0", "org.apache.kafka:kafka-clients:3.9.1"),
    # Spark has these itself.
    exclusions=("org.scala-lang:scala-library", "org.apache.spark:spark-tags_2.13"),
)
"""Spark's Kafka connector, with which Structured Streaming reads and writes."""


@dataclass(slots=True)
class OursClient:
    """An instance of this project."""

    child: Child
    instance: Instance

    def seen(self) -> Seen:
        """From GET /state; nothing yet while it does not answer."""
        description = self.instance.state()
        return Seen() if description is None else described(description)

    def stop(self) -> Seen:
        """Look a last time, then end it by SIGTERM."""
        last = self.seen()
        self.instance.close()
        return last

    def url(self) -> str | None:
        """Of its server, once that has answered."""
        return self.instance.url


def described(description: Mapping[str, Any]) -> Seen:
    """What an instance's description of itself says of its progress."""
    moments: dict[str, float] = {}
    for entry in description["transitions"]:
        if entry["state"] in {"CREATED", "RUNNING"}:
            moments.setdefault(entry["state"].lower(), entry["at"])
    restoration = [entry for entry in description["restoration"] if entry.get("ended_at") is not None]
    if restoration:
        moments["restore_start"] = min(entry["started_at"] for entry in restoration)
        moments["restore_end"] = max(entry["ended_at"] for entry in restoration)
    restored = sum(entry["restored"] for entry in description["restoration"])
    counters = description["counters"]
    # A position moves when stores have what was committed; an end that is not known yet may be anywhere.
    behind = any(entry["lag"] != 0 for entry in description["lag"])
    return Seen(int(counters["records_processed"]), restored, moments, {"counters": counters}, behind)


class StreamsOperator:
    """This project, with its defaults and what the contestant declares."""

    commits = True
    changelog = True

    def start(self, launch: Launch) -> OursClient:
        """One instance as `streamsapp run` starts it."""
        place, who = launch.made(), launch.contestant
        spec: dict[str, Any] = {"processing": {"guarantee": who.guarantee}, "spark": {"config": dict(who.config)}}
        endpoint = place.folder / "endpoint"
        told = command(
            place, endpoint, launch.application_id, launch.topics, spec, task=launch.task, number=launch.number
        )
        child = Child(launch.name, told, place.folder)
        return OursClient(child, Instance(child, endpoint))


@dataclass(frozen=True, slots=True)
class KafkaStreams:
    """Kafka Streams in a JVM of its own."""

    java: Path
    build: PeerBuild
    commits = True
    changelog = True

    def start(self, launch: Launch) -> PrintingClient:
        """One instance with the contestant's threads."""
        place, who = launch.made(), launch.contestant
        config = dict(who.config)
        if who.exactly_once:
            config["processing.guarantee"] = who.guarantee
        endpoint = place.folder / f"queries-{launch.keep_state}"
        arguments = {
            "task": launch.task,
            "bootstrap-servers": place.bootstrap_servers,
            "application-id": launch.application_id,
            "input": launch.topics["orders"],
            "output": launch.topics["output"],
            **({"users": launch.topics["users"]} if "users" in launch.topics else {}),
            "state-dir": str(place.state),
            "threads": str(who.threads),
            "instances": str(who.instances),
            "queries-file": str(endpoint),
        }
        told = [str(self.java), f"-Xmx{HEAP}", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]
        told += ["-cp", self.build.classpath, "Serve"]
        told += [word for name, value in arguments.items() for word in (f"--{name}", value)]
        told += [word for name, value in config.items() for word in ("--config", f"{name}={value}")]
        endpoint.unlink(missing_ok=True)
        return PrintingClient(Child(launch.name, told, place.folder), endpoint)


@dataclass(frozen=True, slots=True)
class Scripted:
    """A peer that is a Python program in the folder `peers/`, run by the environment's interpreter."""

    program: Path
    options: tuple[str, ...]
    commits: bool
    changelog = False

    def start(self, launch: Launch) -> PrintingClient:
        """One process."""
        place, who = launch.made(), launch.contestant
        told = [sys.executable, str(self.program), *self.options]
        told += ["--task", launch.task, "--bootstrap-servers", place.bootstrap_servers]
        told += ["--application-id", launch.application_id, "--state-dir", str(place.state)]
        told += [word for role, topic in launch.topics.items() for word in (f"--{role}", topic)]
        told += ["--guarantee", who.guarantee, *(["--until-end"] if launch.until_end else [])]
        told += [word for name, value in who.config.items() for word in ("--config", f"{name}={value}")]
        return PrintingClient(Child(launch.name, told, place.folder))


def _kafka_streams() -> Side:
    return KafkaStreams(find_java(), build_peer(cache_folder()))


def _quixstreams() -> Side:
    folder = quixstreams_folder(cache_folder())
    return Scripted(HERE / "peers" / "quixstreams" / "peer.py", ("--packages", str(folder)), commits=True)


def _structured_streaming() -> Side:
    jars = ",".join(map(str, cached(CONNECTOR, cache_folder())))
    options = ("--jars", jars, "--java", str(find_java()), "--heap", HEAP)
    return Scripted(HERE / "peers" / "structured-streaming" / "peer.py", options, commits=False)


SIDES: Mapping[SideName, Callable[[], Side]] = {
    "streams-operator": StreamsOperator,
    "kafka-streams": _kafka_streams,
    "quixstreams": _quixstreams,
    "structured-streaming": _structured_streaming,
    "flink-sql": flink_sql,
}
"""How each side is made ready; it fetches and builds what is missing, and raises EnvironmentException."""
