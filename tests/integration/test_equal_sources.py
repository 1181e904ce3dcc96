"""Sources of one topic with equal settings: every record once for each, in the test driver and in a whole client."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from clients import client, make_topics, read, run_until_done, send
from topology_drivers import Made

from streams_runtime.query.stores.key_value_handle import StoreQueryParameters

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("spark")]

VALUE = {"format": "json", "schema": "n BIGINT"}
FIRST = {"name": "orders", "topic": "orders", "key": {"format": "string"}, "value": VALUE}
AGAIN = {**FIRST, "name": "again"}


def application(*steps: dict[str, Any], sinks: dict[str, str]) -> dict[str, Any]:
    written = [{"from": name, "topic": topic} for topic, name in sinks.items()]
    return {
        "apiVersion": "streamsoperator.io/v1alpha1",
        "kind": "StreamsApplication",
        "metadata": {"name": "shop"},
        "spec": {"topology": {"sources": [FIRST, AGAIN], "steps": list(steps), "sinks": written}},
    }


@pytest.mark.parametrize("batches", [1, 4])
def test_records_reach_what_follows_each_name_and_meet_again_in_their_order(made: Made, batches: int) -> None:
    driver = made(
        application(
            {"name": "few", "from": "again", "where": "n > 1"},
            {"name": "all", "merge": ["orders", "again", "few"]},
            {"name": "first", "from": "orders", "aggregate": {"n": "sum(n)"}, "store": "first"},
            {"name": "second", "from": "again", "aggregate": {"n": "sum(n)"}, "store": "second"},
            {"name": "both", "from": "all", "aggregate": {"n": "count(*)"}, "store": "both"},
            {
                "name": "pairs",
                "from": "orders",
                "join": {"stream": "again", "within": "1ms", "select": {"m": "again.n"}},
            },
            sinks={"all": "all", "pairs": "pairs"},
        )
    )
    topic = driver.input_topic("orders")
    given = [("a", 1), ("b", 2), ("a", 3), ("c", 1)]
    for begin in range(0, 4, 4 // batches):
        with driver.batch():
            for place, (key, n) in enumerate(given[begin : begin + 4 // batches], begin):
                topic.pipe(key, {"n": n}, 1_700_000_000_000 + 1000 * place)
    seen = [(each.key, each.value["n"]) for each in driver.output_topic("all").read_all()]
    assert seen == [each for each in given for _ in range(2 if each[1] == 1 else 3)]
    for store in ("first", "second"):
        assert {entry.key: entry.value["n"] for entry in driver.store(store).all()} == {"a": 4, "b": 2, "c": 1}
    assert {entry.key: entry.value["n"] for entry in driver.store("both").all()} == {"a": 5, "b": 3, "c": 2}
    joined = [(each.key, each.value) for each in driver.output_topic("pairs").read_all()]
    assert joined == [(key, {"n": n, "m": n}) for key, n in given]


def test_a_client_reads_the_topic_once_for_both(broker: Any, namespace: str, tmp_path: Path) -> None:
    bootstrap, orders = broker.bootstrap_servers, f"{namespace}-orders"
    make_topics(bootstrap, **{orders: 2, f"{namespace}-out": 2})
    source = f'topic: {orders}, key: {{format: string}}, value: {{format: json, schema: "n BIGINT"}}'
    topology = f"""
sources: [{{name: orders, {source}}}, {{name: again, {source}}}]
steps:
  - {{name: sums, from: again, aggregate: {{n: sum(n)}}, store: sums}}
  - {{name: all, merge: [orders, again]}}
sinks: [{{from: all, topic: {namespace}-out}}]
"""
    send(bootstrap, orders, [(f"k{number % 5}", {"n": number}) for number in range(50)])
    settings = {"processing": {"guarantee": "exactly_once_v2"}}
    with client(bootstrap, namespace, topology, tmp_path, **settings) as running:
        run_until_done(running, [orders])
        store = running.store(StoreQueryParameters("sums", "key-value"))
        assert {entry.key: entry.value["n"] for entry in store.all()} == {
            f"k{key}": sum(range(key, 50, 5)) for key in range(5)
        }
    found = sorted(json.loads(each.value())["n"] for each in read(bootstrap, f"{namespace}-out", committed=True))
    assert found == sorted([*range(50), *range(50)])
