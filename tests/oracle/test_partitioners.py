"""A partition for each record (`partitionBy`) beside Kafka Streams' StreamPartitioner, which writes to real brokers."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import pytest
from clients import make_topics, read, send
from oracle_jvm import ask
from topology_drivers import Made

pytestmark = [pytest.mark.integration, pytest.mark.oracle, pytest.mark.timeout(900)]

GIVEN = [
    (None if n % 11 == 0 else f"k{n % 7}", None if n % 13 == 0 else {"region": (None, 0, 3, 4)[n % 4], "n": n})
    for n in range(1, 80)
]
"""Some records have no key, and some no value: a key decides where there is no region."""


def application() -> dict[str, Any]:
    value = {"format": "json", "schema": "region INT, n BIGINT"}
    return {
        "apiVersion": "streamsoperator.io/v1alpha1",
        "kind": "StreamsApplication",
        "metadata": {"name": "shop"},
        "spec": {
            "topology": {
                "sources": [{"name": "orders", "topic": "orders", "key": {"format": "string"}, "value": value}],
                "steps": [
                    {"name": "spread", "from": "orders", "repartition": {"partitions": 5, "partitionBy": "region"}},
                    {"name": "where", "from": "spread", "select": {"n": "n", "at": "_partition"}},
                ],
                "sinks": [
                    {"from": "orders", "topic": "out", "partitionBy": "region + 1"},
                    {"from": "where", "topic": "where"},
                ],
            }
        },
    }


@pytest.mark.usefixtures("spark")
def test_records_are_where_kafka_streams_puts_them(made: Made, broker: Any, tmp_path: Path) -> None:
    theirs = f"oracle-placed-{uuid.uuid4().hex[:8]}"
    make_topics(broker.bootstrap_servers, **{f"{theirs}-orders": 2, f"{theirs}-out": 7})
    send(broker.bootstrap_servers, f"{theirs}-orders", GIVEN)
    ask("write", broker.bootstrap_servers, {"placed": theirs}, tmp_path)
    driver = made(application(), partitions={"orders": 2, "out": 7})
    with driver.batch():
        for key, value in GIVEN:
            driver.input_topic("orders").pipe(key, value, 1_700_000_000_000)
    places: list[dict[int, int]] = []
    for topic in (f"{theirs}-out", f"{theirs}-spread-repartition"):
        messages = [each for each in read(broker.bootstrap_servers, topic, committed=True) if each.value()]
        places.append({json.loads(each.value())["n"]: each.partition() for each in messages})
    keyless = {value["n"] for key, value in GIVEN if key is None and value and value["region"] is None}
    out = {each.value["n"]: each.partition for each in driver.output_topic("out").read_all() if each.value}
    assert len(out) == len([value for _, value in GIVEN if value])
    # Without a key and a region there is no place: any will do.
    assert {n: at for n, at in out.items() if n not in keyless} == {
        n: at for n, at in places[0].items() if n not in keyless
    }
    where = {each.value["n"]: each.value["at"] for each in driver.output_topic("where").read_all() if each.value}
    assert where == places[1]
    assert len(where) > 50
