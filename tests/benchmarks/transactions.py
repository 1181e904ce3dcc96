"""`transactions.py`: what a transaction costs with, and without, that which guards it against lost and late answers.

Both write the same transactions to one broker, in turns: records, then offsets, then the commit. Without: no lines of
librdkafka to read, and its calls are made on the thread itself. Prints processor and wall time a transaction, and what
the difference is of a second at so many transactions a second.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack, nullcontext
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "support")]

from confluent_kafka import Consumer  # noqa: E402 - tests' helpers are no packages

from streams_runtime.kafka.admin.kafka_admin import Admin  # noqa: E402
from streams_runtime.kafka.broker.embedded_broker import EmbeddedBroker  # noqa: E402
from streams_runtime.kafka.client.client_properties import client_properties  # noqa: E402
from streams_runtime.kafka.client.librdkafka_errors import QuietLog  # noqa: E402
from streams_runtime.kafka.producer import transactions  # noqa: E402
from streams_runtime.kafka.producer.transactions import TransactionalProducer  # noqa: E402
from streams_runtime.kafka.types import TopicPartition, TopicSpec  # noqa: E402

TOPIC = "out"
BLOCK = 20  # transactions of one of them, before the other has its turn


class Unheard(TransactionalProducer):
    """Has no lines of librdkafka to read."""

    def _made(self) -> Any:
        kept = self._config
        self._config = {name: value for name, value in kept.items() if name not in ("debug", "log_level")}
        try:
            return super()._made()
        finally:
            self._config = kept


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=60, help=f"of {BLOCK} transactions each")
    parser.add_argument("--records", type=int, default=1000, help="of a transaction")
    given = parser.parse_args()
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="streamsapp-bench-"))
        broker = stack.enter_context(EmbeddedBroker(Path(folder)))
        properties = client_properties(broker.bootstrap_servers, {}, exactly_once=True)
        admin = Admin(client_properties(broker.bootstrap_servers, {}))
        stack.callback(admin.close)
        admin.create_topics([TopicSpec(TOPIC, 1)])
        member = Consumer({**client_properties(broker.bootstrap_servers, {}), "group.id": "g"}, logger=QuietLog())
        stack.callback(member.close)
        sides: dict[str, TransactionalProducer] = {
            "guarded": TransactionalProducer(properties, "guarded", "guarded"),
            "unguarded": Unheard(properties, "unguarded", "unguarded"),
        }
        took: dict[str, list[tuple[float, float]]] = {name: [] for name in sides}
        for each in sides.values():
            stack.callback(each.close)
            block(each, member, given.records)  # the first one is not like the others
        for number in range(given.rounds):
            for name in sorted(sides, reverse=number % 2 == 1):
                with unbounded() if name == "unguarded" else nullcontext():
                    took[name].append(measured(partial(block, sides[name], member, given.records)))
    report(took, given.records)
    return 0


def unbounded() -> Any:
    """Calls into librdkafka are made on the thread itself meanwhile."""
    return mock.patch.object(transactions, "bounded", lambda call, *_: call())


def block(producer: TransactionalProducer, member: Any, records: int) -> None:
    keys, values, times = [b"key"] * records, [b"x" * 100] * records, [1] * records
    for number in range(BLOCK):
        producer.begin()
        producer.send(TOPIC, keys, values, times, 0)
        producer.flush()
        producer.add_offsets({TopicPartition(TOPIC, 0): number}, member.consumer_group_metadata())
        producer.commit()


def measured(work: Callable[[], None]) -> tuple[float, float]:
    """Seconds of processors and of the wall, of one transaction."""
    processor, wall = time.process_time(), time.perf_counter()
    work()
    return (time.process_time() - processor) / BLOCK, (time.perf_counter() - wall) / BLOCK


def report(took: dict[str, list[tuple[float, float]]], records: int) -> None:
    print(f"{len(took['guarded']) * BLOCK} transactions of {records} records each; medians of blocks of {BLOCK}")
    medians = {name: [statistics.median(column) for column in zip(*rows, strict=True)] for name, rows in took.items()}
    for name, (processor, wall) in medians.items():
        print(f"{name:>10}: {processor * 1e3:.2f} ms of a processor, {wall * 1e3:.2f} ms by the clock")
    for part, what in enumerate(("of a processor", "by the clock")):
        more = medians["guarded"][part] - medians["unguarded"][part]
        print(f"{what}: {more * 1e3:+.3f} ms a transaction, {more * 1000:+.2f} % of a second at ten a second")


if __name__ == "__main__":
    sys.exit(main())
