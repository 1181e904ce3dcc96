"""Kafka Streams' own TopologyTestDriver in a JVM beside the tests: what it makes of the same records."""

from __future__ import annotations

import functools
import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench_peer_build import PeerBuild, build_peer

from streams_runtime.jvm.jars import cache_folder
from streams_runtime.jvm.java import find_java

SOURCE = Path(__file__).parents[1] / "oracle" / "driver"
_HEAP = "256m"


@functools.cache
def driver_built() -> PeerBuild:
    """The driver's classes and jars. Raises EnvironmentException when they can't be made on this machine."""
    return build_peer(cache_folder(), SOURCE)


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of a case: each sink's records in order, the store at the end, how many records were dropped, and
    whether a handler has ended it before the last record.

    A sink has (key bytes, value, time), the store (key, start or None) with (value, time). Times in ms.
    """

    sinks: Mapping[str, Sequence[tuple[bytes | None, Any, int]]]
    store: Mapping[tuple[str, int | None], tuple[Any, int]]
    dropped: int
    failed: bool = False


class KafkaStreams:
    """Asks a running driver."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    @property
    def runs(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    def answer(self, topology: Mapping[str, Any], records: Sequence[Mapping[str, Any]]) -> Answer:
        """What Kafka Streams makes of the records, in their order. Raises AssertionError when the driver has ended."""
        told = self._ask({"topology": topology, "records": records})
        return Answer(
            {topic: [_sent(each) for each in rows] for topic, rows in told["sinks"].items()},
            {(it["key"], it.get("start")): (_value(it["value"]), it["time"]) for it in told["store"]},
            told["dropped"],
            told["failed"],
        )

    def placed(
        self, clients: Sequence[tuple[Mapping[str, str], Sequence[str]]], keys: Sequence[str], replicas: int
    ) -> list[list[str]]:
        """The standbys that each client gets by its tags and its active tasks; clients are in order of their ids."""
        given = [{"tags": tags, "active": active} for tags, active in clients]
        told = self._ask({"standbys": {"clients": given, "keys": keys, "replicas": replicas}})
        return [list(each) for each in told["placed"]]

    def _ask(self, document: Mapping[str, Any]) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(document) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, f"the driver ended with exit code {self._process.wait(10)}; its log says why"
        return json.loads(line)


@contextmanager
def kafka_streams(folder: Path) -> Iterator[KafkaStreams]:
    """A driver that runs inside the block; its log lies in `folder`."""
    command = [str(find_java()), f"-Xmx{_HEAP}", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    command += ["-Dorg.slf4j.simpleLogger.defaultLogLevel=error", f"-Djava.io.tmpdir={folder}"]
    command += ["-cp", driver_built().classpath, "Driver"]
    with (
        (folder / "driver.log").open("w") as log,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True) as process,
    ):
        try:
            yield KafkaStreams(process)
        finally:
            process.kill()  # all that it has is in memory, and in its folder


def _sent(told: Mapping[str, Any]) -> tuple[bytes | None, Any, int]:
    key = told["key"]
    return None if key is None else bytes.fromhex(key), _value(told["value"]), told["time"]


def _value(text: str | None) -> Any:
    return None if text is None else json.loads(text)
