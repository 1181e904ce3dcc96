"""Global tables of whole clients: complete before they run, followed, the same on each, and the end of their thread."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from clients import client, last_values, make_topics, read, send, until_done, until_running
from confluent_kafka.admin import AdminClient, NewPartitions
from open_transactions import transaction
from waiting import DEADLINE, eventually

from streams_runtime.client import StreamsClient
from streams_runtime.errors import (
    DeserializationException,
    MissingSourceTopicException,
    StateStoreNotAvailableException,
)
from streams_runtime.kafka.admin.kafka_admin import Admin
from streams_runtime.lifecycle.uncaught import UncaughtExceptionResponse
from streams_runtime.query.client.query_client import StreamsQueryClient
from streams_runtime.query.stores.key_value_handle import StoreQueryParameters
from streams_runtime.states import ClientState, GlobalThreadState

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("spark"), pytest.mark.timeout(600)]

AIRLINES = StoreQueryParameters("airlines")


def named(prefix: str) -> str:
    return f"""
sources:
  - {{name: flights, topic: {prefix}-flights, key: {{format: string}},
      value: {{format: json, schema: "carrier STRING"}}}}
  - {{name: airlines, topic: {prefix}-airlines, key: {{format: string}}, value: {{format: json, schema: "name STRING"}},
      table: {{store: airlines, global: true}}}}
steps:
  - {{name: named, from: flights,
      join: {{table: airlines, "key": carrier, type: left, select: {{airline: airlines.name}}}}}}
sinks: [{{from: named, topic: {prefix}-named}}]
"""


@pytest.fixture
def topics(broker: Any, namespace: str) -> str:
    """The application's topics, made; their bootstrap address."""
    bootstrap: str = broker.bootstrap_servers
    make_topics(bootstrap, **{f"{namespace}-flights": 2, f"{namespace}-airlines": 3, f"{namespace}-named": 1})
    return bootstrap


def airlines(made: StreamsClient) -> dict[str, str]:
    with made.store(AIRLINES).all() as entries:
        return {key: value["name"] for key, value in entries}


def started(made: StreamsClient) -> StreamsClient:
    made.start()
    until_running(made)
    return made


def fly(bootstrap: str, namespace: str, made: StreamsClient, *flights: tuple[str, str]) -> None:
    """Write flights, by number and carrier, and wait until they are processed."""
    send(bootstrap, f"{namespace}-flights", [(number, {"carrier": carrier}) for number, carrier in flights])
    until_done(made, [f"{namespace}-flights"])


def written(bootstrap: str, namespace: str) -> dict[str, Any]:
    return {number: value["airline"] for number, value in last_values(bootstrap, f"{namespace}-named").items()}


def test_a_global_table_is_complete_before_the_client_runs_followed_then_and_restored_from_where_it_was(
    topics: str, namespace: str, tmp_path: Path
) -> None:
    heard: list[tuple[str, int, int]] = []
    many = [(f"K{number}", {"name": f"n{number}"}) for number in range(300)]
    send(topics, f"{namespace}-airlines", [*many, ("AA", {"name": "American"}), ("XX", {"name": "gone"})])
    send(topics, f"{namespace}-flights", [("1", {"carrier": "AA"}), ("2", {"carrier": "K299"})])
    with client(topics, namespace, named(namespace), tmp_path) as made:
        seen: list[tuple[ClientState, bool]] = []
        made.set_state_listener(lambda new, _old: seen.append((new, made.context.global_tables_are_complete)))
        started(made)
        eventually(lambda: any(new is ClientState.RUNNING for new, _ in seen), "the listener heard of RUNNING")
        assert (ClientState.RUNNING, True) in seen
        assert (ClientState.RUNNING, False) not in seen
        assert len(airlines(made)) == 302
        until_done(made, [f"{namespace}-flights"])
        assert written(topics, namespace) == {"1": "American", "2": "n299"}
        send(topics, f"{namespace}-airlines", [("XX", None), ("ZZ", {"name": "new"})])
        eventually(lambda: airlines(made).get("ZZ") == "new" and "XX" not in airlines(made), "the table follows")
        fly(topics, namespace, made, ("3", "ZZ"), ("4", "XX"))
        assert written(topics, namespace) == {"1": "American", "2": "n299", "3": "new", "4": None}
        assert {each["topic"] for each in made.describe()["lag"]} == {f"{namespace}-flights"}
    assert (tmp_path / namespace / "global" / "rocksdb" / "airlines").is_dir()
    send(topics, f"{namespace}-airlines", [("ZZ", {"name": "newer"})])
    with client(topics, namespace, named(namespace), tmp_path) as made:
        started(made)
        assert airlines(made)["ZZ"] == "newer"
        restored = [row for row in made.describe()["restoration"] if row["store"] == "airlines"]
        heard += [(row["topic"], row["start"] > 0, row["restored"]) for row in restored]
        assert heard == [(f"{namespace}-airlines", True, 1)]


def test_under_exactly_once_flights_are_joined_with_what_is_committed_before_and_after_a_restart(
    topics: str, namespace: str, tmp_path: Path
) -> None:
    once, source, flights = {"guarantee": "exactly_once_v2"}, f"{namespace}-airlines", f"{namespace}-flights"
    never = b'{"name": "never"}'
    with transaction(topics, f"{namespace}-1", source, [("AA", b'{"name": "American"}')]) as committed:
        committed.commit_transaction(DEADLINE)
    with transaction(topics, f"{namespace}-2", source, [("AA", never), ("BB", never)]) as aborted:
        aborted.abort_transaction(DEADLINE)
    with (
        transaction(topics, f"{namespace}-3", source, [("UA", b'{"name": "United"}')]) as still_open,
        client(topics, namespace, named(namespace), tmp_path, processing=once) as made,
    ):
        started(made)
        assert airlines(made) == {"AA": "American"}
        fly(topics, namespace, made, ("1", "AA"), ("2", "UA"), ("3", "BB"))
        still_open.commit_transaction(DEADLINE)
        eventually(lambda: "UA" in airlines(made), "the table follows what is committed")
        with transaction(topics, f"{namespace}-4", flights, [("never", b'{"carrier": "AA"}')]) as aborted:
            aborted.abort_transaction(DEADLINE)
        fly(topics, namespace, made, ("4", "UA"))
    with transaction(topics, f"{namespace}-5", source, [("UA", never), ("BB", never)]) as aborted:
        aborted.abort_transaction(DEADLINE)
    send(topics, source, [("AA", {"name": "Another"}), ("CC", {"name": "Third"})])
    send(topics, flights, [("5", {"carrier": "AA"}), ("6", {"carrier": "UA"})])
    with client(topics, namespace, named(namespace), tmp_path, processing=once) as made:
        started(made)
        assert airlines(made) == {"AA": "Another", "UA": "United", "CC": "Third"}
        until_done(made, [flights])
        fly(topics, namespace, made, ("7", "BB"), ("8", "CC"))
    found = read(topics, f"{namespace}-named", committed=True)
    assert sorted((each.key().decode(), json.loads(each.value())["airline"]) for each in found) == [
        ("1", "American"),
        ("2", None),
        ("3", None),
        ("4", "United"),
        ("5", "Another"),
        ("6", "United"),
        ("7", None),
        ("8", "Third"),
    ]


def test_each_instance_has_the_whole_table_and_answers_for_it_itself(
    topics: str, namespace: str, tmp_path: Path
) -> None:
    send(topics, f"{namespace}-airlines", [(f"K{number}", {"name": f"n{number}"}) for number in range(50)])
    folders = (tmp_path / "a", tmp_path / "b")
    with (
        client(topics, namespace, named(namespace), folders[0], instance="a") as one,
        client(topics, namespace, named(namespace), folders[1], instance="b") as other,
    ):
        for each in (one, other):
            each.start()

        def shared() -> bool:
            assert not any(each.error for each in (one, other))
            running = all(each.state is ClientState.RUNNING for each in (one, other))
            return running and all(len(each.describe()["tasks"]) == 1 for each in (one, other))

        eventually(shared, "each has one of the two partitions", 180)
        send(topics, f"{namespace}-airlines", [("K0", {"name": "zero"})])
        for each in (one, other):
            eventually(lambda each=each: airlines(each)["K0"] == "zero", "the table follows")  # type: ignore[misc]
            assert len(airlines(each)) == 50
            assert each.store(StoreQueryParameters("airlines", partition=0)).get("K49") == {"name": "n49"}
            with urlopen(f"{each.url}/stores/airlines/owners", timeout=30) as answer:
                told = json.load(answer)
            assert [(row["partition"], row["url"]) for row in told["owners"]] == [(0, each.url)]
            with StreamsQueryClient(each.url) as queries:
                assert queries.get("airlines", "K49") == {"name": "n49"}
                assert [entry.key for entry in queries.range("airlines", "K10", "K12")] == ["K10", "K11", "K12"]
                assert queries.count("airlines") == 50
                assert queries.approximate_num_entries("airlines") > 0
        send(topics, f"{namespace}-flights", [(str(number), {"carrier": f"K{number}"}) for number in range(50)])
        eventually(lambda: len(read(topics, f"{namespace}-named")) == 50, "all flights are written")
    assert written(topics, namespace) == {"0": "zero"} | {str(number): f"n{number}" for number in range(1, 50)}


def test_the_end_of_the_global_thread_is_the_end_of_the_client_in_error(
    topics: str, namespace: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with client(topics, namespace, named(namespace), tmp_path) as made, caplog.at_level(logging.INFO):
        handle = started(made).store(AIRLINES)
        keeper = made._parts._global_thread
        assert keeper is not None
        keeper.stop()
        assert made.wait_for_end(DEADLINE)
        assert (made.state, keeper.state) == (ClientState.ERROR, GlobalThreadState.DEAD)
        assert "GlobalStreamThread has ended" in str(made.error)
        for ask in (lambda: made.store(AIRLINES), lambda: handle.get("AA")):
            with pytest.raises(StateStoreNotAvailableException):
                ask()
        made.close()
        assert made.state is ClientState.ERROR
    told = [record.getMessage() for record in caplog.records]
    assert "State transition from RUNNING to PENDING_ERROR" in told
    assert "State transition from PENDING_ERROR to ERROR" in told


def test_a_record_that_cannot_be_read_ends_the_client_which_is_not_given_another_global_thread(
    topics: str, namespace: str, tmp_path: Path
) -> None:
    asked: list[BaseException] = []

    def replace(error: BaseException) -> UncaughtExceptionResponse:
        asked.append(error)
        return UncaughtExceptionResponse.REPLACE_THREAD

    with client(topics, namespace, named(namespace), tmp_path) as made:
        made.set_uncaught_exception_handler(replace)
        started(made)
        send(topics, f"{namespace}-airlines", [("AA", b"no json")], partition=1)
        assert made.wait_for(ClientState.ERROR, timeout=DEADLINE)
        assert isinstance(made.error, DeserializationException)
        assert f"{namespace}-airlines-1@0" in str(made.error)
        assert asked == [made.error]
        assert "there is no other" in " ".join(made.error.__notes__)


def test_a_missing_global_topic_is_a_missing_source_topic(broker: Any, namespace: str, tmp_path: Path) -> None:
    bootstrap = broker.bootstrap_servers
    make_topics(bootstrap, **{f"{namespace}-flights": 1, f"{namespace}-named": 1})
    with client(bootstrap, namespace, named(namespace), tmp_path) as made:
        made.start()
        assert made.wait_for(ClientState.ERROR, timeout=DEADLINE)
        assert isinstance(made.error, MissingSourceTopicException)
        assert f"{namespace}-airlines (spec.topology.sources[1].topic)" in str(made.error)


def test_a_topic_that_is_made_anew_is_read_from_its_beginning_and_the_store_is_built_anew_at_the_next_start(
    topics: str, namespace: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    topic = f"{namespace}-airlines"
    send(topics, topic, [("AA", {"name": "American"}), ("UA", {"name": "United"})])
    with client(topics, namespace, named(namespace), tmp_path) as made:
        started(made)
        remake(topics, topic, 4)
        send(topics, topic, [("AA", {"name": "Another"})], partition=3)
        eventually(lambda: airlines(made)["AA"] == "Another", "the new topic is read")
        assert airlines(made)["UA"] == "United"
        assert made.state is ClientState.RUNNING
    with client(topics, namespace, named(namespace), tmp_path) as made:
        assert airlines(started(made)) == {"AA": "Another"}
    assert [each for each in caplog.messages if "deleted and made anew" in each]


def test_partitions_that_a_topic_gains_are_read_too(topics: str, namespace: str, tmp_path: Path) -> None:
    with client(topics, namespace, named(namespace), tmp_path) as made:
        started(made)
        grow(topics, f"{namespace}-airlines", 5)
        send(topics, f"{namespace}-airlines", [("AA", {"name": "American"})], partition=4)
        eventually(lambda: airlines(made) == {"AA": "American"}, "the new partition is read")


def remake(bootstrap: str, topic: str, partitions: int) -> None:
    admin = Admin({"bootstrap.servers": bootstrap})
    admin.delete_topics([topic])
    eventually(lambda: not admin.describe_topics([topic], config=False), "the topic is gone")
    admin.close()
    make_topics(bootstrap, **{topic: partitions})


def grow(bootstrap: str, topic: str, partitions: int) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for done in admin.create_partitions([NewPartitions(topic, partitions)]).values():
        done.result(60)
