"""Where an application begins on a real broker: without a committed offset, and where its records were deleted."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from clients import DEADLINE, client, delete_records, make_topics, read, until_running
from confluent_kafka import Producer
from waiting import eventually

from streams_runtime.client import StreamsClient
from streams_runtime.errors import StreamsException
from streams_runtime.kafka.admin.kafka_admin import Admin
from streams_runtime.kafka.client.client_properties import client_properties
from streams_runtime.kafka.producer.batch_producer import BatchProducer
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.states import ClientState

pytestmark = pytest.mark.integration

OLD, NEW = 2 * 3600, 0  # how many seconds ago a record was


class App:
    """Passes on the numbers of a topic by way of a repartition topic; a record's number is its offset."""

    def __init__(self, broker: Any, namespace: str, folder: Path, admin: Admin) -> None:
        self.source, self.sink = f"{namespace}-numbers", f"{namespace}-out"
        self.input = TopicPartition(self.source, 0)
        self.admin = admin
        self._name, self._folder = namespace, folder
        make_topics(admin.address, **{self.source: 1, self.sink: 1})

    def client(self, reset: str | None, application: str = "earliest", **processing: Any) -> Any:
        """A client that is not started; `reset` is its source's, `application` that of the application."""
        own = "" if reset is None else f", offsetReset: {reset}"
        topology = (
            f'sources: [{{name: numbers, topic: {self.source}, value: {{format: json, schema: "n BIGINT"}}{own}}}]\n'
            "steps: [{name: by-n, from: numbers, keyBy: n}]\n"
            f"sinks: [{{from: by-n, topic: {self.sink}, value: {{format: json}}}}]\n"
        )
        kafka = {"offsetReset": application}
        return client(self.admin.address, self._name, topology, self._folder, kafka=kafka, processing=processing)

    def send(self, *numbers: tuple[int, int]) -> None:
        """Write numbers, each with its age in seconds."""
        now = time.time()
        values = [json.dumps({"n": number}).encode() for number, _ in numbers]
        times = [int((now - age) * 1000) for _, age in numbers]
        with closing(BatchProducer({"bootstrap.servers": self.admin.address}, "test")) as producer:
            producer.send(self.source, [None] * len(values), values, times, 0)
            producer.flush()

    def committed(self) -> int | None:
        return self.admin.committed_offsets(self._name, [self.input]).get(self.input)

    def goes_on_from(self, offset: int) -> None:
        """Make this the group's offset, as `streamsapp reset` does: once the session of a closed client has ended."""
        eventually(lambda: not self.admin.group_members(self._name), "the group has no members", DEADLINE)
        self.admin.move_offsets(self._name, {self.input: offset}, self.admin.topic_ids([self.source]))

    def passed_on(self) -> list[int]:
        return sorted(json.loads(message.value())["n"] for message in read(self.admin.address, self.sink, True))

    def expect(self, made: StreamsClient, numbers: Sequence[int], offset: int) -> None:
        """Wait until the group is at this offset and just these numbers have been passed on."""

        def there() -> bool:
            assert made.state is not ClientState.ERROR, made.error
            return self.committed() == offset and self.passed_on() == list(numbers)

        told = lambda: f"{self.passed_on()} at {self.committed()}, not {numbers} at {offset}"  # noqa: E731
        eventually(there, told, DEADLINE)


@pytest.fixture
def app(broker: Any, namespace: str, tmp_path: Path) -> Iterator[App]:
    with closing(Admin(client_properties(broker.bootstrap_servers, {}))) as admin:
        yield App(broker, namespace, tmp_path, admin)


@pytest.mark.parametrize(
    ("reset", "other", "first", "after_deletion"),
    [
        ("earliest", "latest", [0, 1, 2, 3], [6, 7]),
        ("latest", "earliest", [], []),
        ("1h", "none", [2, 3], [7]),
    ],
)
def test_a_source_begins_where_its_offset_reset_says_and_goes_on_where_it_was(
    app: App, reset: str, other: str, first: list[int], after_deletion: list[int]
) -> None:
    app.send((0, OLD), (1, OLD), (2, NEW), (3, NEW))
    with app.client(reset) as made:
        made.start()
        app.expect(made, first, 4)  # also where nothing was read: what comes while it is down is not passed over
    app.send((4, OLD))
    with app.client(None, other) as made:
        made.start()
        app.expect(made, [*first, 4], 5)
    app.send((5, NEW), (6, OLD), (7, NEW))
    delete_records(app.admin, {app.input: 6})
    with app.client(None, reset) as made:
        made.start()
        app.expect(made, [*first, 4, *after_deletion], 8)
        app.send((8, NEW))
        app.expect(made, [*first, 4, *after_deletion, 8], 9)


def test_with_none_an_application_fails_unless_its_group_has_an_offset_that_is_there(app: App) -> None:
    app.send((0, NEW), (1, NEW))
    _fails(app)
    app.goes_on_from(1)
    with app.client(None, "none") as made:  # the repartition topic has no committed offset
        made.start()
        app.expect(made, [1], 2)
    app.send((2, NEW), (3, NEW))
    delete_records(app.admin, {app.input: 3})
    _fails(app)
    assert app.passed_on() == [1]


def _fails(app: App) -> None:
    with app.client("none") as made:
        made.start()
        assert made.wait_for(ClientState.ERROR, timeout=DEADLINE)
        assert isinstance(made.error, StreamsException)
        assert str(made.error).startswith(f"No valid committed offset found for input [{app.source}]")
        assert f"for {app.input}: offsetReset is none. Set the group's offsets" in str(made.error)


@pytest.mark.parametrize("reset", ["latest", "1h"])
def test_under_exactly_once_records_of_open_transactions_are_still_to_come(app: App, reset: str) -> None:
    app.send((0, OLD))
    writer = Producer({"bootstrap.servers": app.admin.address, "transactional.id": f"{app.source}-writer"})
    writer.init_transactions(60)
    writer.begin_transaction()
    writer.produce(app.source, json.dumps({"n": 1}), partition=0, timestamp=int((time.time() - OLD) * 1000))
    assert writer.flush(60) == 0
    app.send((2, NEW))
    with app.client(reset, guarantee="exactly_once_v2") as made:
        made.start()
        until_running(made)
        app.expect(made, [], 1)  # the record of the last hour lies behind the open transaction
        writer.commit_transaction(60)
        app.expect(made, [1, 2], 4)
