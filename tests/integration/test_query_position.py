"""Queries that wait for records of their own, beside a client on a real broker that processes them."""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from clients import client, make_topics, run_until_done, send
from confluent_kafka import Message, Producer
from totals_application import USERS, totals
from waiting import eventually

from streams_runtime.errors import NotUpToBoundException
from streams_runtime.kafka.producer.partitioner import partition_for
from streams_runtime.kafka.types import TopicPartition
from streams_runtime.query.client.query_client import StreamsQueryClient
from streams_runtime.query.stores.key_value_handle import StoreQueryParameters
from streams_runtime.query.wire.problems import InvalidQueryException

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("spark")]


class Writer:
    """Sends orders of 1, and notes where they came to lie."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._producer, self._topic = Producer({"bootstrap.servers": bootstrap, "partitioner": "murmur2"}), topic
        self.sent: dict[TopicPartition, int] = {}

    def order(self, *users: str) -> None:
        for user in users:
            self._producer.produce(self._topic, b'{"amount": 1}', user.encode(), on_delivery=self._delivered)
        assert self._producer.flush(30) == 0

    def _delivered(self, error: Any, message: Message) -> None:
        assert error is None
        topic, partition, offset = message.topic(), message.partition(), message.offset()
        assert topic is not None
        assert partition is not None
        assert offset is not None
        self.sent[TopicPartition(topic, partition)] = offset


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
def test_whoever_wrote_reads_it_at_every_instance_and_after_a_restart(
    guarantee: str, broker: Any, namespace: str, tmp_path: Path
) -> None:
    bootstrap, topology = broker.bootstrap_servers, totals(namespace)
    make_topics(bootstrap, **{f"{namespace}-orders": 2, f"{namespace}-totals": 2})
    urls: dict[str, str] = {}
    writer = Writer(bootstrap, f"{namespace}-orders")
    spec = {"processing": {"guarantee": guarantee}, "peers": urls.get}
    with (
        client(bootstrap, namespace, topology, tmp_path / "a", instance="a", **spec) as one,
        client(bootstrap, namespace, topology, tmp_path / "b", instance="b", **spec) as other,
    ):
        for each in (one, other):
            each.start()
            urls[each.instance] = each.url
        eventually(lambda: all(len(each.describe()["tasks"]) == 1 for each in (one, other)), "each has a task", 180)
        with StreamsQueryClient(one.url, deadline=90) as queries:
            for number in range(1, 21):
                writer.order(*USERS)
                mine = queries.with_position_bound(writer.sent)
                assert mine.get("totals", USERS[number % len(USERS)]) == {"total": number}
                if number % 5 == 0:
                    assert {key: value["total"] for key, value in mine.all("totals")} == dict.fromkeys(USERS, number)
    with client(bootstrap, namespace, topology, tmp_path / "a", instance="a", **spec) as again:
        run_until_done(again, [f"{namespace}-orders"])
        handle = again.store(StoreQueryParameters("totals", position=writer.sent))
        assert {key: value["total"] for key, value in handle.all()} == dict.fromkeys(USERS, 20)
        with StreamsQueryClient(again.url, deadline=90) as queries:
            assert queries.with_position_bound(writer.sent).get("totals", "u3") == {"total": 20}


def test_a_record_that_does_not_come_is_waited_for_and_then_it_is_said(
    broker: Any, namespace: str, tmp_path: Path
) -> None:
    bootstrap, orders = broker.bootstrap_servers, f"{namespace}-orders"
    make_topics(bootstrap, **{orders: 2, f"{namespace}-totals": 2})
    writer = Writer(bootstrap, orders)
    writer.order(*USERS)
    with client(bootstrap, namespace, totals(namespace), tmp_path) as made, ExitStack() as closing:
        run_until_done(made, [orders])
        queries, patient = (closing.enter_context(StreamsQueryClient(made.url, seconds)) for seconds in (1, 90))
        assert queries.with_position_bound(writer.sent).count("totals") == len(USERS)
        mine = TopicPartition(orders, partition_for(b"u0", 2))
        next_one = {mine: writer.sent[mine] + 1}
        began = time.monotonic()
        with pytest.raises(NotUpToBoundException, match=rf"{mine} before offset {next_one[mine]} alone"):
            queries.with_position_bound(next_one).get("totals", "u0")
        assert time.monotonic() - began > 0.1, "it was asked for again"
        assert queries.get("totals", "u0") == {"total": 1}
        with pytest.raises(NotUpToBoundException):
            made.store(StoreQueryParameters("totals", position=next_one))
        with pytest.raises(InvalidQueryException, match=f"reads {orders}, and not other"):
            queries.with_position_bound({TopicPartition("other", 0): 1}).get("totals", "u0")
        writer.order("u0")
        assert writer.sent[mine] == next_one[mine]
        assert patient.with_position_bound(next_one).get("totals", "u0") == {"total": 2}


def test_behind_a_repartition_topic_its_offsets_count_and_no_others(
    broker: Any, namespace: str, tmp_path: Path
) -> None:
    bootstrap, orders = broker.bootstrap_servers, f"{namespace}-orders"
    make_topics(bootstrap, **{orders: 1, f"{namespace}-totals": 1})
    topology = (
        totals(namespace)
        .replace("steps: [", "steps: [{name: by_amount, from: orders, keyBy: amount}, ")
        .replace("from: orders, aggregate", "from: by_amount, aggregate")
    )
    send(bootstrap, orders, [("u1", {"amount": 3}), ("u2", {"amount": 3})])
    internal = TopicPartition(f"{namespace}-by_amount-repartition", 0)
    with client(bootstrap, namespace, topology, tmp_path) as made:
        run_until_done(made, [orders])
        with StreamsQueryClient(made.url, 90) as queries:
            assert queries.with_position_bound({internal: 1}).get("totals", 3) == {"total": 6}
        with pytest.raises(InvalidQueryException, match=f"reads {internal.topic}, and not {orders}"):
            made.store(StoreQueryParameters("totals", position={TopicPartition(orders, 0): 1}))
