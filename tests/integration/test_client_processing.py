"""Whole clients on a real broker: what they compute, keep, restore and refuse."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from clients import DEADLINE, client, last_values, make_topics, read, run_until_done, send, until_done, until_running
from confluent_kafka import Producer
from waiting import eventually

from streams_runtime.errors import DeserializationException, LockException, MissingSourceTopicException
from streams_runtime.kafka.producer.partitioner import partition_for
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.query.stores.key_value_handle import StoreQueryParameters
from streams_runtime.states import ClientState

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("spark")]

AMOUNTS = 'format: json, schema: "user STRING, amount BIGINT"'


def totals(name: str) -> str:
    return f"""
sources: [{{name: orders, topic: {name}-orders, key: {{format: string}}, value: {{{AMOUNTS}}}}}]
steps:
  - {{name: paid, from: orders, where: "amount > 0"}}
  - {{name: totals, from: paid, aggregate: {{total: sum(amount), n: count(*), mean: avg(amount)}}, store: totals}}
sinks: [{{from: totals, topic: {name}-totals}}]
"""


def topics(bootstrap: str, name: str, partitions: int = 2) -> None:
    make_topics(bootstrap, **{f"{name}-orders": partitions, f"{name}-totals": partitions})


def contents(made: Any, store: str) -> dict[Any, Any]:
    with made.store(StoreQueryParameters(store)).all() as entries:
        return dict(entries)


ORDERS = [("ada", {"user": "ada", "amount": 5}), ("bob", {"user": "bob", "amount": -1})] + [
    (user, {"user": user, "amount": amount}) for amount in range(1, 4) for user in ("ada", "cid", "ünï")
]
EXPECTED = {
    "ada": {"total": 11, "n": 4, "mean": 2.75},
    "cid": {"total": 6, "n": 3, "mean": 2.0},
    "ünï": {"total": 6, "n": 3, "mean": 2.0},
}


def test_a_stream_is_aggregated_into_store_sink_and_changelog_and_goes_on_after_a_restart(
    broker: Any, namespace: str, tmp_path: Path
) -> None:
    bootstrap = broker.bootstrap_servers
    topics(bootstrap, namespace)
    send(bootstrap, f"{namespace}-orders", ORDERS)
    with client(bootstrap, namespace, totals(namespace), tmp_path) as first:
        run_until_done(first, [f"{namespace}-orders"])
        assert contents(first, "totals") == EXPECTED
    assert first.state is ClientState.NOT_RUNNING
    assert last_values(bootstrap, f"{namespace}-totals") == EXPECTED
    changelog = f"{namespace}-totals-changelog"
    for message in read(bootstrap, changelog):
        assert message.partition() == partition_for(message.key(), 2)
    send(bootstrap, f"{namespace}-orders", [("ada", {"user": "ada", "amount": 9})])
    with client(bootstrap, namespace, totals(namespace), tmp_path) as second:
        run_until_done(second, [f"{namespace}-orders"])
        assert contents(second, "totals") == EXPECTED | {"ada": {"total": 20, "n": 5, "mean": 4.0}}
        assert second.describe()["counters"]["restored_records"] == 0  # type: ignore[index]


def test_a_lost_state_folder_is_restored_from_the_changelog(broker: Any, namespace: str, tmp_path: Path) -> None:
    bootstrap = broker.bootstrap_servers
    topics(bootstrap, namespace)
    send(bootstrap, f"{namespace}-orders", ORDERS)
    with client(bootstrap, namespace, totals(namespace), tmp_path / "first") as first:
        run_until_done(first, [f"{namespace}-orders"])
    with client(bootstrap, namespace, totals(namespace), tmp_path / "second") as second:
        run_until_done(second, [f"{namespace}-orders"])
        assert contents(second, "totals") == EXPECTED
        account = second.describe()
    assert account["counters"]["restored_records"] == len(read(bootstrap, f"{namespace}-totals-changelog"))  # type: ignore[index]
    assert account["counters"]["records_processed"] == 0  # type: ignore[index]


@pytest.mark.parametrize("commits", [1, 3])
def test_a_source_written_by_transactions_is_processed_to_its_end(
    broker: Any, namespace: str, tmp_path: Path, commits: int
) -> None:
    """Each transaction ends with a marker that is no record; the last of them has to be committed as well."""
    bootstrap = broker.bootstrap_servers
    topics(bootstrap, namespace, 1)
    with client(bootstrap, namespace, totals(namespace), tmp_path) as made:
        made.start()
        until_running(made)
        producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": namespace})
        producer.init_transactions(DEADLINE)
        for _ in range(commits):
            producer.begin_transaction()
            producer.produce(f"{namespace}-orders", b'{"user": "ada", "amount": 2}', b"ada")
            producer.commit_transaction(DEADLINE)
        orders = TopicPartition(f"{namespace}-orders", 0)
        end = {orders: 2 * commits}
        eventually(lambda: made.context.admin.end_offsets([orders]) == end, "the last marker is written")
        eventually(
            lambda: made.context.admin.committed_offsets(namespace, [orders]) == end, "the last marker is committed"
        )
        # Stores are written after the commit.
        expected = {"ada": {"total": 2 * commits, "n": commits, "mean": 2.0}}
        eventually(lambda: contents(made, "totals") == expected, f"the store has {expected}")


def test_re_keyed_merged_and_table_streams_give_the_same_as_plain_python(
    broker: Any, namespace: str, tmp_path: Path
) -> None:
    bootstrap, n = broker.bootstrap_servers, namespace
    make_topics(bootstrap, **{f"{n}-a": 3, f"{n}-b": 3, f"{n}-users": 2, f"{n}-out": 1, f"{n}-vips": 1})
    rows = [{"shop": f"s{i % 7}", "user": f"u{i % 5}", "amount": i} for i in range(500)]
    send(bootstrap, f"{n}-a", [(row["shop"], row) for row in rows[:300]])
    send(bootstrap, f"{n}-b", [(row["shop"], row) for row in rows[300:]])
    users = [(f"u{i}", {"name": f"N{i}", "tier": "gold" if i % 2 else "tin"}) for i in range(4)]
    send(bootstrap, f"{n}-users", [*users, ("u1", None), ("u3", {"name": "N3", "tier": "tin"})])
    row = 'key: {format: string}, value: {format: json, schema: "shop STRING, user STRING, amount BIGINT"}'
    topology = f"""
sources:
  - {{name: a, topic: {n}-a, {row}}}
  - {{name: b, topic: {n}-b, {row}}}
  - {{name: users, topic: {n}-users, key: {{format: string}}, table: {{store: users}},
     value: {{format: json, schema: "name STRING, tier STRING"}}}}
steps:
  - {{name: both, merge: [a, b]}}
  - {{name: by-user, from: both, keyBy: user}}
  - {{name: spent, from: by-user, aggregate: {{total: sum(amount), most: max(shop), least: min(amount)}}, store: spent}}
  - {{name: cents, from: spent, where: "total > 0", select: {{cents: total * 100}}}}
  - {{name: vips, from: users, where: "tier = 'gold'", select: {{name: name}}}}
sinks:
  - {{from: cents, topic: {n}-out}}
  - {{from: vips, topic: {n}-vips}}
"""
    with client(bootstrap, n, topology, tmp_path) as made:
        run_until_done(made, [f"{n}-a", f"{n}-b", f"{n}-users"])
        until_done(made, [f"{n}-by-user-repartition"])
        of = {user: [row for row in rows if row["user"] == user] for user in {row["user"] for row in rows}}
        expected = {
            user: {
                "total": sum(row["amount"] for row in mine),
                "most": max(row["shop"] for row in mine),
                "least": min(row["amount"] for row in mine),
            }
            for user, mine in of.items()
        }
        assert contents(made, "spent") == expected
        assert contents(made, "users") == {
            "u0": {"name": "N0", "tier": "tin"},
            "u2": {"name": "N2", "tier": "tin"},
            "u3": {"name": "N3", "tier": "tin"},
        }
    assert last_values(bootstrap, f"{n}-out") == {user: {"cents": it["total"] * 100} for user, it in expected.items()}
    # A row that leaves the table, or is deleted in it, is a deletion for whoever follows it; one that never fitted is
    # silent.
    assert last_values(bootstrap, f"{n}-vips") == dict.fromkeys(["u1", "u3"])


def test_a_poison_record_stops_the_client_and_is_named(broker: Any, namespace: str, tmp_path: Path) -> None:
    bootstrap = broker.bootstrap_servers
    topics(bootstrap, namespace, 1)
    send(bootstrap, f"{namespace}-orders", [("ada", {"amount": 1}), ("bob", b"{oops")])
    with client(bootstrap, namespace, totals(namespace), tmp_path) as made:
        made.start()
        assert made.wait_for(ClientState.ERROR, timeout=90)
        error = made.error
    assert isinstance(error, DeserializationException)
    assert (error.topic, error.partition, error.offset) == (f"{namespace}-orders", 0, 1)
    assert f"{namespace}-orders-0@1" in str(error)
    assert "{oops" in str(error)
    assert [state for state, _ in made.transitions][-2:] == [ClientState.PENDING_ERROR, ClientState.ERROR]
    assert read(bootstrap, f"{namespace}-totals") == []


def test_poison_records_are_counted_and_left_out_when_told_to_continue(
    broker: Any, namespace: str, tmp_path: Path
) -> None:
    bootstrap = broker.bootstrap_servers
    topics(bootstrap, namespace)
    send(bootstrap, f"{namespace}-orders", [*ORDERS, ("bob", b"{oops"), ("bob", {"amount": "many"})])
    policy = {"processing": {"onDeserializationError": "continue"}}
    with client(bootstrap, namespace, totals(namespace), tmp_path, **policy) as made:
        run_until_done(made, [f"{namespace}-orders"])
        assert contents(made, "totals") == EXPECTED
        assert made.describe()["counters"]["deserialization_errors"] == 2  # type: ignore[index]


def test_poison_records_go_to_the_dead_letter_topic_with_headers_that_say_why(
    broker: Any, namespace: str, tmp_path: Path
) -> None:
    bootstrap = broker.bootstrap_servers
    topics(bootstrap, namespace, 1)
    make_topics(bootstrap, **{f"{namespace}-dead": 1})
    send(bootstrap, f"{namespace}-orders", [*ORDERS, ("bob", b"{oops")])
    policy = {"processing": {"onDeserializationError": {"deadLetter": {"topic": f"{namespace}-dead"}}}}
    with client(bootstrap, namespace, totals(namespace), tmp_path, **policy) as made:
        run_until_done(made, [f"{namespace}-orders"])
        assert contents(made, "totals") == EXPECTED
    (letter,) = read(bootstrap, f"{namespace}-dead")
    headers = {name: value.decode() for name, value in letter.headers()}
    assert (letter.key(), letter.value()) == (b"bob", b"{oops")
    assert headers["__streams.errors.topic"] == f"{namespace}-orders"
    assert headers["__streams.errors.partition"] == "0"
    assert headers["__streams.errors.offset"] == str(len(ORDERS))
    assert headers["__streams.errors.exception"] == "DeserializationException"
    assert "not JSON" in headers["__streams.errors.message"]


def test_a_missing_source_topic_ends_in_error_and_is_named(broker: Any, namespace: str, tmp_path: Path) -> None:
    with client(broker.bootstrap_servers, namespace, totals(namespace), tmp_path) as made:
        made.start()
        assert made.wait_for(ClientState.ERROR, timeout=60)
        assert isinstance(made.error, MissingSourceTopicException)
        assert f"{namespace}-orders" in str(made.error)


def test_a_state_folder_in_use_ends_in_error_and_names_the_process(broker: Any, namespace: str, tmp_path: Path) -> None:
    bootstrap = broker.bootstrap_servers
    topics(bootstrap, namespace)
    with (
        client(bootstrap, namespace, totals(namespace), tmp_path, "i-0") as first,
        client(bootstrap, namespace, totals(namespace), tmp_path, "i-1") as second,
    ):
        run_until_done(first, [f"{namespace}-orders"])
        second.start()
        assert second.wait_for(ClientState.ERROR, timeout=60)
        assert isinstance(second.error, LockException)
        assert f"{namespace}-i-0" in str(second.error)
        assert first.state is ClientState.RUNNING


def test_an_instance_more_than_there_are_tasks_is_running_and_idle(broker: Any, namespace: str, tmp_path: Path) -> None:
    bootstrap = broker.bootstrap_servers
    topics(bootstrap, namespace, 1)
    send(bootstrap, f"{namespace}-orders", ORDERS)
    with (
        client(bootstrap, namespace, totals(namespace), tmp_path / "0", "i-0") as first,
        client(bootstrap, namespace, totals(namespace), tmp_path / "1", "i-1") as second,
    ):
        run_until_done(first, [f"{namespace}-orders"])
        second.start()
        until_running(second, 60)
        tasks = [len(each.describe()["tasks"]) for each in (first, second)]  # type: ignore[arg-type]
        assert sorted(tasks) == [0, 1]


def test_closing_twice_and_in_error_does_nothing_more(broker: Any, namespace: str, tmp_path: Path) -> None:
    with client(broker.bootstrap_servers, namespace, totals(namespace), tmp_path) as made:
        made.start()
        assert made.wait_for(ClientState.ERROR, timeout=60)
        assert made.close() is True
        assert made.close() is True
        assert made.state is ClientState.ERROR
        assert all(thread.join(0) for thread in made.threads)
