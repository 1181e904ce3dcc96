"""Runs an instance that kills itself at a named point of a batch: `fault_points.py FAULT_FILE INSTANCE_ARGUMENTS…`.

The point is the content of FAULT_FILE; without that file nothing happens. Only this process knows of the points: it
wraps the steps of a batch from outside, so that the runtime itself has nothing for tests in it.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from streams_runtime.cli.process.instance import app
from streams_runtime.kafka.producer.transactions import TransactionalProducer
from streams_runtime.processing.batch_queue import Batches
from streams_runtime.processing.batch_work import Outcome
from streams_runtime.processing.purge import Purge

BEFORE_COMMIT = (
    "after begin",
    "after the repartition topic",
    "after the changelog",
    "after the sink",
    "before the offsets",
    "after the offsets",
)
BEFORE_STORE = "before RocksDB"
AFTER_COMMIT = ("after the commit", BEFORE_STORE, "after RocksDB")

_OUTPUTS = {
    "-repartition": "after the repartition topic",
    "-changelog": "after the changelog",
    "-totals": "after the sink",
}


def _install(file: Path) -> None:
    def die_at(point: str) -> None:
        if file.exists() and file.read_text() == point:
            os.kill(os.getpid(), signal.SIGKILL)

    def wrap(owner: type, name: str, before: str | None, after: str | None) -> None:
        step: Callable[..., Any] = getattr(owner, name)

        def wrapped(*args: Any, **options: Any) -> Any:
            if before:
                die_at(before)
            result = step(*args, **options)
            if after:
                die_at(after)
            return result

        setattr(owner, name, wrapped)

    def store(batches: Batches, outcome: Outcome, *args: Any) -> None:
        if outcome.held:
            die_at(BEFORE_STORE)
        storing(batches, outcome, *args)
        if outcome.held:
            die_at("after RocksDB")

    def send(producer: TransactionalProducer, topic: str, *args: Any, **options: Any) -> None:
        sending(producer, topic, *args, **options)
        for suffix, point in _OUTPUTS.items():
            if topic.endswith(suffix) and file.exists() and args and args[0]:
                TransactionalProducer.flush(producer)  # so that the records lie in the log, in an open transaction
                die_at(point)

    sending = TransactionalProducer.send
    setattr(TransactionalProducer, "send", send)  # noqa: B010
    if os.environ.get("STREAMSAPP_TEST_NO_PURGE"):
        setattr(Purge, "behind", lambda *_: None)  # noqa: B010 - a test reads what repartition topics have held
    wrap(TransactionalProducer, "begin", None, "after begin")
    wrap(TransactionalProducer, "add_offsets", "before the offsets", "after the offsets")
    wrap(TransactionalProducer, "commit", None, "after the commit")
    storing = Batches._store
    setattr(Batches, "_store", store)  # noqa: B010 - a wrapped step is none of the class


if __name__ == "__main__":
    _install(Path(sys.argv[1]))
    app(sys.argv[2:])
