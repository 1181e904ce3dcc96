"""A backlog of several partitions behind a `keyBy`: its windows lose no more than those of one partition do."""

from __future__ import annotations

import json
import random
import time
from pathlib import Path
from typing import Any

import pytest
from clients import client, make_topics, read, run_until_done, until_done
from sessions_model import disordered

from streams_runtime.kafka.producer.batch_producer import BatchProducer

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("spark")]

RECORDS = 4_000
PARTITIONS = 4
# Of late, since the broker deletes from a windowed changelog what is older than its retention.
START = int(time.time()) // 60 * 60_000 - 600_000


def sessions(prefix: str) -> str:
    return f"""
sources: [{{name: seen, topic: {prefix}-seen, key: {{format: string}}, value: {{format: string}}}}]
steps:
  - {{name: by-user, from: seen, keyBy: value}}
  - name: sessions
    from: by-user
    window: {{session: {{gap: 10s, grace: 5s}}, retention: 1h}}
    aggregate: {{n: count(*)}}
    store: sessions
sinks: [{{from: sessions, topic: {prefix}-sessions, value: {{format: json}}}}]
"""


def fill(bootstrap: str, topic: str) -> None:
    """Five minutes of records, up to 3 s out of order, each in any partition."""
    source, producer = random.Random(20), BatchProducer({"bootstrap.servers": bootstrap}, "test")
    rows: list[list[tuple[bytes, int]]] = [[] for _ in range(PARTITIONS)]
    for user, _, at in disordered(RECORDS, 100, 300_000, 3_000):
        source.choice(rows).append((user.encode(), START + at))
    for partition, each in enumerate(rows):
        users, times = zip(*each, strict=True)
        producer.send(topic, [None] * len(each), users, times, partition)
    producer.flush()
    producer.close()


def test_a_backlog_behind_a_key_by_loses_no_record_to_the_order_of_its_partitions(
    broker: Any, namespace: str, tmp_path: Path
) -> None:
    bootstrap, topic = broker.bootstrap_servers, f"{namespace}-seen"
    make_topics(bootstrap, **{topic: PARTITIONS, f"{namespace}-sessions": 1})
    fill(bootstrap, topic)
    with client(bootstrap, namespace, sessions(namespace), tmp_path, processing={"maxBatchRecords": 1_500}) as made:
        run_until_done(made, [topic])
        until_done(made, [f"{namespace}-by-user-repartition"])
        assert made.describe()["counters"]["late_records"] == 0  # type: ignore[index]
    last = {message.key(): message.value() for message in read(bootstrap, f"{namespace}-sessions")}
    assert sum(json.loads(value)["n"] for value in last.values() if value is not None) == RECORDS
