"""Closes clients in the middle of everything, in a process of its own, and prints what was still there at each end.

`python closing_script.py BOOTSTRAP PREFIX FOLDER`: one JSON object a line.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import httpx
import yaml
from clients import make_topics, send, until_done, until_running
from pyspark import SparkContext
from waiting import eventually

from streams_runtime.api import parse_application
from streams_runtime.client import StreamsClient
from streams_runtime.kafka.broker.embedded_broker import EmbeddedBroker
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.pipeline.spark.spark_session import open_session
from streams_runtime.restore.restore_listener import NullListener
from streams_runtime.settings import InstanceSettings
from streams_runtime.state.state_directory import StateDirectory
from streams_runtime.states import ClientState

# A row takes Spark some twenty milliseconds, and a batch of all of them minutes; no rule can compute it beforehand.
SLOW = (
    "aggregate(sequence(1, 300), 0L, (a, x) -> a + aggregate(sequence(1, 300 + amount), 0L, (b, y) -> b + x * y)) > 0"
)
PATIENCE = 150.0  # seconds; only ever waited for in full by a test that fails
ENDED = (ClientState.NOT_RUNNING, ClientState.ERROR)


class Closing:
    """One client from start to end; `found` is what there was when its last state could first be seen."""

    def __init__(self, name: str, bootstrap: str, application: str, folder: Path, where: str = "amount > 0") -> None:
        self.name, self.folder, self.application = name, folder, application
        self.before = threads()
        self.found: dict[str, Any] = {}
        self.answers: list[bool] = []
        self.on_state: Callable[[ClientState], None] = lambda _state: None
        self.restoring = Restoring()
        topology = f"""
sources: [{{name: orders, topic: {application}-orders, key: {{format: string}},
           value: {{format: json, schema: "amount BIGINT"}}}}]
steps:
  - {{name: some, from: orders, where: "{where}"}}
  - {{name: totals, from: some, aggregate: {{total: sum(amount)}}, store: totals}}
"""
        document: Mapping[str, Any] = {
            "apiVersion": "streamsoperator.io/v1alpha1",
            "kind": "StreamsApplication",
            "metadata": {"name": "test"},
            "spec": {"applicationId": application, "topology": yaml.safe_load(topology)},
        }
        settings = InstanceSettings(f"{application}-0", bootstrap, folder)
        self.client = StreamsClient(parse_application(document), settings, self.restoring)
        self.client.set_state_listener(self.heard)

    def heard(self, new: ClientState, _old: ClientState) -> None:
        if new in ENDED:
            self.found = self.census()
        self.on_state(new)

    def close(self, timeout: float | None = PATIENCE) -> None:
        self.answers.append(self.client.close(timeout))

    def running(self) -> None:
        until_running(self.client, PATIENCE)

    def census(self) -> dict[str, Any]:
        open_files = [target(descriptor) for descriptor in os.listdir("/proc/self/fd")]
        lock = StateDirectory(self.folder, self.application, "the next")
        lock.acquire()
        lock.release()
        return {
            "threads": sorted(threads() - self.before - {f"{self.application}-0-close"}),
            "kafka clients": natives("rdk:"),
            "open files": sorted(each for each in open_files if str(self.folder) in each),
            "spark": SparkContext._active_spark_context is not None,
            "queries": answers(self.client.url),
        }

    def report(self) -> None:
        ended = self.client.wait_for_end(PATIENCE)
        # The last state can be seen before those who are told of it have heard, the client's own account among them.
        eventually(
            lambda: not ended or (self.found and self.client.transitions[-1][0] in ENDED),
            "the listener and the client's account have heard of the end",
        )
        account = {
            "name": self.name,
            "state": str(self.client.state),
            "moves": [str(state) for state, _ in self.client.transitions],
            "answers": self.answers,
            "error": repr(self.client.error),
            "left": {what: left for what, left in self.found.items() if left},
        }
        print(json.dumps(account), flush=True)


class Restoring(NullListener):
    """Calls back when a restoration begins, on the thread that restores."""

    begin: Callable[[], None] = staticmethod(lambda: None)

    def on_restore_start(self, partition: TopicPartition, store: str, start: int, end: int) -> None:
        super().on_restore_start(partition, store, start, end)
        self.begin()


def threads() -> set[str]:
    """Names of the threads; a dummy is the trace of one that has ended, and was asked for its name while it did."""
    return {each.name for each in threading.enumerate() if not isinstance(each, threading._DummyThread)}


def natives(prefix: str) -> list[str]:
    names = []
    for comm in Path("/proc/self/task").glob("*/comm"):
        try:
            names.append(comm.read_text().strip())
        except OSError:
            continue
    return sorted(name for name in names if name.startswith(prefix))


def target(descriptor: str) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}")
    except OSError:
        return ""


def answers(url: str) -> bool:
    try:
        httpx.get(f"{url}/healthz", trust_env=False, timeout=2)
    except (httpx.HTTPError, httpx.UnsupportedProtocol):
        return False
    return True


def main(bootstrap: str, prefix: str, root: Path) -> None:
    gc.disable()  # nothing is left to it
    open_session("what Spark keeps for the life of a process").stop()
    names = [f"{prefix}-{name}" for name in ("a", "slow", "bad")]
    make_topics(bootstrap, **{f"{name}-orders": 2 for name in names})
    records = [(f"u{number}", {"amount": 1}) for number in range(2000)]
    send(bootstrap, f"{prefix}-a-orders", records)
    send(bootstrap, f"{prefix}-slow-orders", records)
    send(bootstrap, f"{prefix}-bad-orders", [("ada", b"{oops")])

    it = Closing("created", bootstrap, f"{prefix}-a", root / "0")
    it.close()
    it.report()

    it = Closing("while it rebalances and Spark starts", bootstrap, f"{prefix}-a", root / "0")
    it.client.start()
    it.close()
    it.report()

    it = Closing("from several threads", bootstrap, f"{prefix}-a", root / "0")
    it.client.start()
    it.running()
    until_done(it.client, [f"{prefix}-a-orders"])
    closers = [threading.Thread(target=it.close, name=f"closer-{number}") for number in range(3)]
    it.before |= {each.name for each in closers}
    for each in closers:
        each.start()
    for each in closers:
        each.join()
    it.report()

    it = Closing("in a state listener", bootstrap, f"{prefix}-a", root / "0")
    it.on_state = lambda state, it=it: it.close(None) if state is ClientState.RUNNING else None  # type: ignore[misc]
    it.client.start()
    it.report()

    it = Closing("in a restoration, by its listener", bootstrap, f"{prefix}-a", root / "1")
    it.restoring.begin = lambda it=it: it.close(None)  # type: ignore[misc]
    it.client.start()
    it.report()

    it = Closing("when the thread that restores dies", bootstrap, f"{prefix}-a", root / "5")
    it.restoring.begin = fail
    it.client.start()
    it.report()

    it = Closing("in a batch of Spark", bootstrap, f"{prefix}-slow", root / "2", SLOW)
    it.client.start()
    it.running()
    eventually(busy, "Spark is at work")
    it.close()
    it.report()

    it = Closing("in an error, by its listener", bootstrap, f"{prefix}-bad", root / "3")
    it.on_state = lambda state, it=it: it.close(None) if state is ClientState.PENDING_ERROR else None  # type: ignore[misc]
    it.client.start()
    it.report()

    with EmbeddedBroker(root / "broker") as broker:
        make_topics(broker.bootstrap_servers, **{f"{prefix}-a-orders": 2})
        it = Closing("with a broker that stands still", broker.bootstrap_servers, f"{prefix}-a", root / "4")
        it.client.start()
        it.running()
        assert broker.pid is not None
        os.kill(broker.pid, signal.SIGSTOP)
        try:
            it.close()
            it.report()
        finally:
            os.kill(broker.pid, signal.SIGCONT)


def fail() -> None:
    raise OSError("the user's listener fails")


def busy() -> bool:
    context = SparkContext._active_spark_context
    return context is not None and bool(context.statusTracker().getActiveJobsIds())


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
