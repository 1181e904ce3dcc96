"""Running Kafka Streams on the benchmark's work."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import orjson
from bench_data import Totals
from bench_kafka import Cluster, CommitWatch
from bench_peer_build import PeerBuild
from bench_process import Child
from bench_runs import Outcome, Place, Run, Work
from bench_verify import decode_all, decode_dump, decode_pair

HEAP = "1g"
"""The peer's Java heap; RocksDB's memory is outside it. This work's live data is a few dozen MB."""

EXIT_MARGIN_S = 60.0
"""How long the peer may take to close after its own time limit, seconds."""


@dataclass(frozen=True, slots=True)
class Peer:
    """Kafka Streams with some stream threads; `config` holds `name=value` settings on top of its defaults."""

    cluster: Cluster
    java: Path
    build: PeerBuild
    threads: int
    config: tuple[str, ...] = ()

    def measure(self, work: Work, place: Place, round_: int) -> Outcome:
        """One run from an empty state folder. Raises ChildFailedError when the peer fails."""
        shutil.rmtree(place.state, ignore_errors=True)
        dump = place.folder / "restored.tsv"
        with Child(f"kafka-streams-{work.job}", self._command(work, place, dump), place.folder) as child:
            printed = child.wait(work.limit_s + EXIT_MARGIN_S)
        report = orjson.loads(next(line for line in printed if line.startswith("{")))
        moments = {name: at / 1000 for name, at in report["moments"].items()}
        catch_up = work.job == "catch-up"
        seconds = (_catch_up_spans if catch_up else _restore_spans)(moments, child.started_at)
        variant = ", ".join([f"{self.threads} thread{'s' if self.threads > 1 else ''}", *self.config])
        details = {"stream_threads_busy_s": report["busy_s"]}
        run = Run("kafka-streams", work.job, variant, round_, work.records, seconds, details)
        if catch_up:
            return Outcome(run, report["processed"], self._results(work))
        return Outcome(run, report["restored"], {"restored store": decode_dump(dump)})

    def _results(self, work: Work) -> dict[str, Totals]:
        # Closing has committed all: the watch only reads the offsets, and fails if that is not so.
        CommitWatch(self.cluster, work.application_id, work.input_topic).wait(lambda: None, limit_s=5)
        return {
            "sink topic": decode_all(self.cluster.last_values(work.output_topic), decode_pair),
            "changelog topic": decode_all(self.cluster.last_values(work.changelog_topic), decode_pair),
        }

    def _command(self, work: Work, place: Place, dump: Path) -> list[str]:
        arguments = {
            "mode": work.job,
            "bootstrap-servers": place.bootstrap_servers,
            "application-id": work.application_id,
            "input": work.input_topic,
            "output": work.output_topic,
            "state-dir": str(place.state),
            "threads": str(self.threads),
            "records": str(work.records),
            "time-limit": str(int(work.limit_s)),
            "dump": str(dump),
        }
        command = [str(self.java), f"-Xmx{HEAP}", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]
        command += ["-cp", self.build.classpath, "Peer"]
        command += [word for name, value in arguments.items() for word in (f"--{name}", value)]
        return command + [word for setting in self.config for word in ("--config", setting)]


def _catch_up_spans(at: dict[str, float], started: float) -> dict[str, float]:
    # `work` ends when the last record was processed, before the cache is flushed and offsets are committed:
    # the reading that is kindest to the peer.
    return {
        "work": at["processed"] - at["first_record"],
        "to-committed": at["closed"] - at["first_record"],
        "from-start": at["closed"] - started,
    }


def _restore_spans(at: dict[str, float], started: float) -> dict[str, float]:
    return {
        "work": at["restore_end"] - at["restore_start"],
        "to-running": at["running"] - at["created"],
        "from-start": at["running"] - started,
    }
