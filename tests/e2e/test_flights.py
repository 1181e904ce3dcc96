"""The cluster path of the README on real data: helm install, kubectl apply, RUNNING, right figures, kubectl delete."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from clients import last_values
from demo_parts.checks import check_once
from demo_parts.second_opinion import SecondOpinion, flights_zip
from e2e_kit import PATIENCE, Application, forwarded
from kube_kafka import KafkaInCluster
from waiting import eventually

from streams_runtime.kafka.admin.kafka_admin import Admin
from streams_runtime.kafka.types import TopicSpec

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1500, func_only=True)]

FILE = Path(__file__).parents[2] / "examples" / "flights.yaml"
PARTITIONS = 4
SINKS = {"carrier-totals": "carrier", "origin-totals": "origin"}
INTERNAL = {"flights-by-carrier-changelog", "flights-by-origin-changelog", "flights-origin-repartition"}


def streamsapp(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("streamsapp")), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done


def produce_flights(address: str) -> int:
    options = ("--key", "carrier", "--null", "NA", "--partitions", str(PARTITIONS), "--output", "json")
    done = streamsapp("produce", "flights", str(flights_zip()), *options, "--bootstrap-servers", address)
    return int(json.loads(done.stdout.splitlines()[-1])["records"])


def query(*arguments: str) -> list[Any]:
    """What `streamsapp query` prints, line by line."""
    done = streamsapp("query", *arguments)
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_flights_from_apply_to_delete(
    application: Callable[[str], Application], kafka_in_cluster: KafkaInCluster, tmp_path: Path
):
    address = kafka_in_cluster.outside
    admin = Admin({"bootstrap.servers": address})
    made = admin.create_topics([TopicSpec(name, PARTITIONS) for name in ("flights", *SINKS)])
    assert not made.refused
    flights = application("flights")
    flights.apply(FILE)
    flights.reaches("RUNNING", "2/2")
    opinion = SecondOpinion(tmp_path, PARTITIONS)
    assert produce_flights(address) == opinion.count()

    def all_counted() -> bool:
        counts = [sum(row["flights"] for row in last_values(address, topic).values()) for topic in SINKS]
        return all(count >= opinion.count() for count in counts)

    eventually(all_counted, "every flight is counted in both sink topics", PATIENCE)
    for topic, column in SINKS.items():
        checked = check_once(opinion, column, last_values(address, topic))
        differing = {key: (checked.ours.get(key), checked.theirs.get(key)) for key in checked.unexplained}
        assert (checked.twice, differing) == (0, {}), topic
    eventually(lambda: flights.status().get("lag") == 0, "the resource shows that nothing is left", PATIENCE)
    header, line = flights.kubectl("get", "streamsapps").splitlines()
    assert header.split() == ["NAME", "STATE", "READY", "TASKS", "RESTORING", "LAG", "SETUP", "AGE"]
    assert line.split()[:-1] == ["flights", "RUNNING", "2/2", "8", "0", "0", "Ready"]

    with forwarded(flights, "flights-0", tmp_path) as url:
        queried = {row["key"]: row["value"] for row in query("by-carrier", "all", "--relay", "--url", url)}
        assert queried == last_values(address, "carrier-totals")
        (row,) = query("by-carrier", "get", "UA", "--relay", "--url", url)
        assert row == {"key": "UA", "value": queried["UA"]}

    flights.kubectl("delete", "streamsapp", "flights", "--timeout=180s", timeout=200)
    eventually(lambda: flights.left() == {"service/kafka"}, f"nothing else is left: {flights.left()}")
    assert set(admin.describe_topics(sorted(INTERNAL), config=False)) == INTERNAL, "deletionPolicy is Retain"
    admin.close()
