"""What Spark itself says of its time: the stages of its event log, added up by name."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

EVENT_LOG = {
    "spark.eventLog.enabled": "true",
    "spark.eventLog.rolling.enabled": "false",
    "spark.eventLog.compress": "false",
}
"""Spark properties that make one readable file; `spark.eventLog.dir` says where."""


_METRICS = _RUN, _COLLECTING = ("internal.metrics.executorRunTime", "internal.metrics.jvmGCTime")
_FOLDERS = re.compile(r"(?<= at )\S*/")


@dataclass(frozen=True, slots=True)
class Stages:
    """All stages of one name; times in seconds, `run` and `collecting` (garbage) over all tasks."""

    name: str
    count: int = 0
    tasks: int = 0
    elapsed: float = 0.0
    run: float = 0.0
    collecting: float = 0.0

    def plus(self, info: dict[str, Any]) -> Stages:
        """With one stage more, as the event log describes it."""
        found = {each["Name"]: each["Value"] for each in info["Accumulables"] if each.get("Name") in _METRICS}
        return Stages(
            self.name,
            self.count + 1,
            self.tasks + info["Number of Tasks"],
            self.elapsed + (info["Completion Time"] - info["Submission Time"]) / 1000,
            self.run + found.get(_RUN, 0) / 1000,
            self.collecting + found.get(_COLLECTING, 0) / 1000,
        )


def stages_of(folder: Path) -> list[Stages]:
    """The stages of the event logs in a folder, those that took longest first."""
    return added_up(line for file in folder.iterdir() if file.is_file() for line in file.read_bytes().splitlines())


def added_up(events: Iterable[bytes]) -> list[Stages]:
    """The completed stages among the events, by name."""
    found: dict[str, Stages] = {}
    for line in events:
        event = orjson.loads(line)
        if event["Event"] == "SparkListenerStageCompleted":
            info = event["Stage Info"]
            # One that failed or was cancelled may have no end.
            if "Completion Time" in info and "Submission Time" in info:
                name = _FOLDERS.sub("", info["Stage Name"])
                found[name] = found.get(name, Stages(name)).plus(info)
    return sorted(found.values(), key=lambda each: -each.elapsed)
