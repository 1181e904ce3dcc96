"""`streamsapp consume` from a real broker."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from clients import delete_records, make_topics, send
from confluent_kafka import Producer
from typer.testing import CliRunner, Result
from waiting import eventually

from streams_runtime.cli.records import consume as command
from streams_runtime.kafka.admin.kafka_admin import Admin
from streams_runtime.kafka.client.librdkafka_errors import QuietLog
from streams_runtime.kafka.types import TopicPartition

pytestmark = pytest.mark.integration

SENT_AT = "2023-11-14T22:13:20.000Z"


def consume(admin: Admin, *arguments: str) -> Result:
    app = typer.Typer()
    app.command()(command.consume)
    return CliRunner().invoke(app, [*arguments, "--bootstrap-servers", admin.address])


def lines_of(result: Result) -> list[dict[str, Any]]:
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_a_topic_is_printed_partition_by_partition_in_its_order(admin: Admin, namespace: str) -> None:
    make_topics(admin.address, **{namespace: 3})
    for partition in (2, 0):
        send(
            admin.address, namespace, [("ada", {"at": partition}), ("bob", None), (None, {"at": partition})], partition
        )
    found = lines_of(consume(admin, namespace))
    assert [(each["partition"], each["offset"]) for each in found] == [(n, at) for n in (0, 2) for at in range(3)]
    assert found[0] == {"partition": 0, "offset": 0, "timestamp": SENT_AT, "key": "ada", "value": {"at": 0}}
    assert [(each["key"], each["value"]) for each in found[3:]] == [
        ("ada", {"at": 2}),
        ("bob", None),
        (None, {"at": 2}),
    ]


def test_thousands_of_records_come_whole(admin: Admin, namespace: str) -> None:
    make_topics(admin.address, **{namespace: 2})
    send(admin.address, namespace, ((f"k{number}", {"n": number}) for number in range(50_000)))
    found = lines_of(consume(admin, namespace))
    assert sorted(each["value"]["n"] for each in found) == list(range(50_000))


def test_an_empty_topic_prints_nothing_and_one_that_is_not_there_is_an_error(admin: Admin, namespace: str) -> None:
    make_topics(admin.address, **{namespace: 1})
    assert lines_of(consume(admin, namespace)) == []
    result = consume(admin, f"{namespace}-none")
    assert result.exit_code == 1
    assert f"there is no topic {namespace}-none at {admin.address}" in result.stderr
    assert "Traceback" not in result.output


def test_what_retention_has_deleted_is_passed_over(admin: Admin, namespace: str) -> None:
    make_topics(admin.address, **{namespace: 1})
    send(admin.address, namespace, [("k", {"n": number}) for number in range(5)])
    delete_records(admin, {TopicPartition(namespace, 0): 3})
    assert [each["offset"] for each in lines_of(consume(admin, namespace))] == [3, 4]


def test_records_of_open_and_of_aborted_transactions_are_left_out(admin: Admin, namespace: str) -> None:
    make_topics(admin.address, **{namespace: 1})
    settings = {"bootstrap.servers": admin.address, "transactional.id": namespace}
    producer = Producer(settings, logger=QuietLog())
    producer.init_transactions(60)
    for value, end in ((b"1", producer.commit_transaction), (b"2", producer.abort_transaction), (b"3", None)):
        producer.begin_transaction()
        producer.produce(namespace, value)
        producer.flush()
        if end is not None:
            end(60)
    assert [each["value"] for each in lines_of(consume(admin, namespace))] == [1]
    producer.abort_transaction(60)


def test_from_a_time_on(admin: Admin, namespace: str) -> None:
    make_topics(admin.address, **{namespace: 2})
    producer = Producer({"bootstrap.servers": admin.address}, logger=QuietLog())
    for partition, times in ((0, (1000, 2000, 3000)), (1, (1000,))):
        for time in times:
            producer.produce(namespace, str(time).encode(), partition=partition, timestamp=time)
    producer.flush()
    from_two = lines_of(consume(admin, namespace, "--from-time", "1970-01-01T00:00:01.500Z"))
    assert [each["value"] for each in from_two] == [2000, 3000]
    assert lines_of(consume(admin, namespace, "--from-time", "3001")) == []
    result = consume(admin, namespace, "--from-time", "yesterday")
    assert result.exit_code == 1
    assert "--from-time: 'yesterday' is no time" in result.stderr


def test_followed_until_ctrl_c(admin: Admin, namespace: str, tmp_path: Path) -> None:
    make_topics(admin.address, **{namespace: 2})
    send(admin.address, namespace, [("k", {"n": 1})], 0)
    output, errors = tmp_path / "output", tmp_path / "errors"
    program = [sys.executable, "-c", "from streams_runtime.cli.main import app; app()"]
    arguments = ["consume", namespace, "--follow", "--bootstrap-servers", admin.address]
    values = lambda: [json.loads(line)["value"]["n"] for line in output.read_text().splitlines()]  # noqa: E731
    with output.open("wb") as stdout, errors.open("wb") as stderr:
        process = subprocess.Popen([*program, *arguments], stdout=stdout, stderr=stderr)
    try:
        for number in (1, 2, 3):
            eventually(lambda number=number: values() == list(range(1, number + 1)), f"{number} came")
            send(admin.address, namespace, [("k", {"n": number + 1})], number % 2)
        eventually(lambda: values() == [1, 2, 3, 4], "the last one came")
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0, errors.read_text()
        assert errors.read_text() == ""
    finally:
        process.kill()
        process.wait()
