"""The oracle: applications on real Kafka Streams in a JVM of their own, and what their stores held."""

from __future__ import annotations

import functools
import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from bench_peer_build import PeerBuild, build_peer
from bench_process import Child

from streams_runtime.jvm.jars import cache_folder
from streams_runtime.jvm.java import find_java

SOURCE = Path(__file__).parents[1] / "oracle" / "jvm"
_HEAP = "512m"  # RocksDB's memory is outside of it
_LIMIT_S = 180  # for each application, on a machine that may be busy
_EXIT_MARGIN_S = 60.0

Key = tuple[Any, ...]
"""A record's key: (key,) of a key-value store, (key, start, end) of the others, in ms, as the store shows them."""


@dataclass(frozen=True, slots=True)
class Told:
    """What an application said of its stores: values and timestamps (ms) by store, and records restored by store."""

    values: Mapping[str, Mapping[Key, Any]]
    times: Mapping[str, Mapping[Key, int]]
    restored: Mapping[str, int]


@functools.cache
def built() -> PeerBuild:
    """The oracle's classes and jars. Raises EnvironmentException when they can't be made on this machine."""
    return build_peer(cache_folder(), SOURCE)


def ask(
    mode: Literal["write", "read"], bootstrap: str, applications: Mapping[str, str], folder: Path
) -> dict[str, Told]:
    """Run applications (their ids by kind, see Application.java) and return what each one's stores hold, by id.

    `write` processes all that the input topics hold, `read` only restores; both begin with empty state folders.
    Raises ChildFailedError with the JVM's last lines.
    """
    output = folder / f"{mode}.jsonl"
    arguments = {
        "bootstrap-servers": bootstrap,
        "state-dir": str(folder / f"state-{mode}"),
        "output": str(output),
        "time-limit": str(_LIMIT_S),
    }
    command = [str(find_java()), f"-Xmx{_HEAP}", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    command += ["-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", built().classpath, "Oracle", mode]
    command += [word for name, value in arguments.items() for word in (f"--{name}", value)]
    command += [word for kind, id_ in applications.items() for word in ("--application", f"{kind}={id_}")]
    with Child(f"oracle-{mode}", command, folder) as child:
        child.wait(_LIMIT_S * len(applications) + _EXIT_MARGIN_S)
    return _told(output.read_text().splitlines())


def _told(lines: list[str]) -> dict[str, Told]:
    values: dict[str, dict[str, dict[Key, Any]]] = defaultdict(lambda: defaultdict(dict))
    times: dict[str, dict[str, dict[Key, int]]] = defaultdict(lambda: defaultdict(dict))
    told = {}
    for line in lines:
        it = json.loads(line)
        application = it["application"]
        if "restored" in it:
            told[application] = Told(values[application], times[application], it["restored"])
            continue
        key = (it["key"], it["start"], it["end"]) if "start" in it else (it["key"],)
        held = values[application][it["store"]]
        assert key not in held, f"the oracle shows {key} of {it['store']} twice"
        held[key] = it["value"]
        if "timestamp" in it:
            times[application][it["store"]][key] = it["timestamp"]
    return told
