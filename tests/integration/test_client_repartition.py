"""A stream spread over more partitions by a whole client: tasks behind the topic, and every record as it was."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import orjson
import pytest
from clients import client, make_topics, read, run_until_done, send, until_done

from streams_runtime.kafka.producer.partitioner import partition_for
from streams_runtime.query.stores.key_value_handle import StoreQueryParameters

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("spark")]

PARTITIONS, KEYS, RECORDS = 3, 20, 300


def spread(prefix: str) -> str:
    return f"""
sources:
  - {{name: orders, topic: {prefix}-orders, key: {{format: string}}, value: {{format: json, schema: "n BIGINT"}}}}
steps:
  - {{name: wide, from: orders, repartition: {{partitions: {PARTITIONS}}}}}
  - {{name: doubled, from: wide, select: {{n: n * 2}}}}
  - {{name: counts, from: wide, aggregate: {{count: count(*)}}, store: counts}}
sinks: [{{from: doubled, topic: {prefix}-doubled}}]
"""


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
def test_records_are_spread_by_their_keys_over_the_declared_partitions(
    broker: Any, namespace: str, tmp_path: Path, guarantee: str
) -> None:
    bootstrap, orders = broker.bootstrap_servers, f"{namespace}-orders"
    topic = f"{namespace}-wide-repartition"
    make_topics(bootstrap, **{orders: 1, f"{namespace}-doubled": 1})
    keys = [f"k{number % KEYS}" if number % 10 else None for number in range(RECORDS)]
    send(bootstrap, orders, [(key, {"n": number}) for number, key in enumerate(keys)])
    settings = {"processing": {"guarantee": guarantee, "maxBatchRecords": 100}}
    with client(bootstrap, namespace, spread(namespace), tmp_path, **settings) as made:
        run_until_done(made, [orders])
        until_done(made, [topic])
        described: Any = made.describe()
        assert described["counters"]["records_dropped"] == keys.count(None), "as Kafka Streams drops them"
        assert sorted(task["id"] for task in described["tasks"]) == ["0_0", "1_0", "1_1", "1_2"]
        counted: dict[str, int] = {}
        for partition in range(PARTITIONS):
            with made.store(StoreQueryParameters("counts", partition=partition)).all() as entries:
                here = {each.key: each.value["count"] for each in entries}
            assert {partition_for(key.encode(), PARTITIONS) for key in here} <= {partition}
            counted |= here
    assert counted == Counter(key for key in keys if key is not None)
    found = [(each.key(), orjson.loads(each.value())["n"]) for each in read(bootstrap, f"{namespace}-doubled")]
    wanted = [(key.encode(), number * 2) for number, key in enumerate(keys) if key is not None]
    assert sorted(found, key=lambda each: each[1]) == wanted
