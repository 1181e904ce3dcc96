"""Running this project on the benchmark's work: one instance, watched from outside."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from bench_data import Totals
from bench_instance import Instance
from bench_kafka import Cluster, CommitWatch
from bench_process import Child
from bench_runs import Outcome, Place, Run, Work
from bench_verify import decode_all, decode_object, require_count

TOPOLOGIES = Path(__file__).parent / "topologies"
NEXMARK = Path(__file__).parents[2] / "examples" / "nexmark"
STORE = "totals"
VARIANT = "1 instance"


@dataclass(frozen=True, slots=True)
class Ours:
    """This project, one instance with its defaults."""

    cluster: Cluster
    spark: Mapping[str, str] = field(default_factory=dict)
    """Spark properties beside the defaults."""
    beside: Callable[[Child], AbstractContextManager[object]] = nullcontext
    """What is done around the whole life of the instance."""

    def measure(self, work: Work, place: Place, round_: int) -> Outcome:
        """One run from an empty state folder.

        Raises ChildFailedError when the instance fails, TimeoutError when it does not get there in time.
        """
        shutil.rmtree(place.state, ignore_errors=True)
        place.folder.mkdir(parents=True, exist_ok=True)
        endpoint = place.folder / "endpoint"
        watch = self._catch_up if work.job == "catch-up" else _restore
        topics = {"orders": work.input_topic, "output": work.output_topic}
        told = command(place, endpoint, work.application_id, topics, {"spark": {"config": dict(self.spark)}})
        with Child(f"streams-operator-{work.job}", told, place.folder) as child, self.beside(child):
            instance = Instance(child, endpoint)
            spans, counted, description = watch(instance, work)
            found = {"store": _store(instance)}
            instance.close()
        if work.job == "catch-up":
            for name, topic in (("sink topic", work.output_topic), ("changelog topic", work.changelog_topic)):
                found[name] = decode_all(self.cluster.last_values(topic), decode_object)
        details = {"counters": description["counters"], "restoration": description["restoration"]}
        run = Run("streams-operator", work.job, VARIANT, round_, work.records, spans, details)
        return Outcome(run, counted, found)

    def _catch_up(self, instance: Instance, work: Work) -> tuple[dict[str, float], int, dict[str, Any]]:
        watch = CommitWatch(self.cluster, work.application_id, work.input_topic)
        committed = watch.wait(instance.child.require_alive, work.limit_s)
        # Stores have a batch after its commit, and positions move with them.
        description = instance.wait_for("in the stores", _is_stored, work.limit_s)
        # `work` begins with the first RUNNING, before the first batch is planned, and ends when all is
        # committed: the reading that is hardest on this project.
        spent = committed - _moment(description, "RUNNING")
        spans = {"work": spent, "to-committed": spent, "from-start": committed - instance.child.started_at}
        return spans, int(description["counters"]["records_processed"]), description


def _restore(instance: Instance, work: Work) -> tuple[dict[str, float], int, dict[str, Any]]:
    description = _running(instance, work)
    entries, running = description["restoration"], _moment(description, "RUNNING")
    spans = {
        "work": max(entry["ended_at"] for entry in entries) - min(entry["started_at"] for entry in entries),
        "to-running": running - _moment(description, "CREATED"),
        "from-start": running - instance.child.started_at,
    }
    return spans, sum(entry["restored"] for entry in entries), description


def _running(instance: Instance, work: Work) -> dict[str, Any]:
    return instance.wait_for("RUNNING", lambda seen: seen["state"] == "RUNNING", work.limit_s)


def _is_stored(seen: dict[str, Any]) -> bool:
    return seen["state"] == "RUNNING" and bool(seen["lag"]) and all(row["lag"] == 0 for row in seen["lag"])


def _moment(description: dict[str, Any], state: str) -> float:
    """When the client first came into `state`, seconds since the epoch."""
    return float(next(entry["at"] for entry in description["transitions"] if entry["state"] == state))


def _store(instance: Instance) -> Totals:
    entries = instance.store(STORE)
    require_count("this project, count of the store", len(entries), instance.count(STORE))
    return entries


def application_of(task: str) -> dict[str, Any]:
    """The resource of a task of `topologies/`, or of one of NEXMark's queries."""
    query = NEXMARK / f"{task}.yaml"
    content: dict[str, Any] = yaml.safe_load((query if query.is_file() else TOPOLOGIES / f"{task}.yaml").read_text())
    return content


def command(
    place: Place,
    endpoint: Path,
    application_id: str,
    topics: Mapping[str, str],
    spec: Mapping[str, Any],
    task: str = "totals",
    number: int = 0,
) -> list[str]:
    """An instance's command, on the topology of a task with this work's name, topics and parts of the spec.

    `topics` are those of the sources by their names, and `output`.
    """
    app = application_of(task)
    app["metadata"]["name"] = application_id
    for source in app["spec"]["topology"]["sources"]:
        source["topic"] = topics[source["name"]]
    app["spec"]["topology"]["sinks"][0]["topic"] = topics["output"]
    app["spec"].update(spec)
    file = place.folder / f"app-{number}.yaml"
    file.write_text(yaml.safe_dump(app, sort_keys=False))
    endpoint.unlink(missing_ok=True)
    made = [sys.executable, "-m", "streams_runtime.cli.process.instance", str(file)]
    made += ["--bootstrap-servers", place.bootstrap_servers, "--instance-id", f"bench-{number}"]
    made += ["--state-dir", str(place.state), "--listen", "127.0.0.1:0"]
    return [*made, "--endpoint-file", str(endpoint)]
